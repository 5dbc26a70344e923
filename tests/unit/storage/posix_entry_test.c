/* Names of storage/posix: creating them and finding them again. */
#include "unit/storage/brick_fixture.h"
#include <dirent.h>
#include <stdio.h>
#include <linux/fs.h>
#include <sys/sysmacros.h>

/* ---- start ---- */

BRICK_TEST(start_makes_the_tree)
{
    struct stat st;
    brick_start(t, NULL);
    assert_xattr(t->dir, "trusted.gfid", &gfid_root, 16);
    assert_link_text(brick_path(t, ".glusterfs/00/00/" ROOT_TEXT), "../../..");
    assert_int_equal(0, stat(brick_path(t, ".glusterfs"), &st));
    assert_int_equal(0600, st.st_mode & 07777);
    assert_int_equal(0, stat(brick_path(t, ".glusterfs/ff"), &st));
    assert_int_equal(0700, st.st_mode & 07777);
    assert_true(on_brick(t, ".glusterfs/unlink"));
    assert_true(on_brick(t, ".glusterfs/landfill"));
    assert_true(on_brick(t, ".glusterfs/indices"));
}

BRICK_TEST(root_is_found_by_gfid)
{
    brick_start(t, NULL);
    assert_int_equal(0, brick_op(t, OP_LOOKUP, .inode = t->root));
    assert_true(gfid_is_root(&t->r->stat.gfid));
    assert_int_equal(1, t->r->stat.ino);
    assert_true(S_ISDIR(t->r->stat.mode));
}

BRICK_TEST(private_directory_is_hidden)
{
    brick_start(t, NULL);
    assert_int_equal(-EPERM, brick_lookup(t, t->root, ".glusterfs", NULL));
    assert_int_equal(-EPERM, brick_op(t, OP_RMDIR, .parent = t->root, .name = ".glusterfs"));
    assert_int_equal(-EPERM, brick_op(t, OP_MKDIR, .parent = t->root, .name = ".glusterfs",
                                      .inode = brick_inode(t, GFID(1), S_IFDIR), .mode = 0755));
}

/* ---- creation ---- */

BRICK_TEST(create_leaves_gfid_path_mark_and_handle)
{
    struct stat st;
    brick_start(t, NULL);
    struct inode *f = brick_create(t, t->root, "big", GFID(1), NULL);
    assert_int_equal(1, t->r->stat.nlink);
    assert_true(gfid_equal(&t->r->stat.gfid, &f->gfid));
    assert_xattr(brick_path(t, "big"), "trusted.gfid", GFID(1), 16);
    assert_xattr(brick_path(t, "big"), "trusted.gfid2path.fd913bbfc43e6a69", ROOT_TEXT "/big", 40);
    assert_no_xattr(brick_path(t, "big"), "trusted.glusterfs.mdata");
    assert_same_inode(brick_path(t, "big"), handle_path(t, GFID(1)));
    assert_int_equal(0, stat(brick_path(t, "big"), &st));
    assert_int_equal(2, st.st_nlink);
    assert_int_equal(0100644, st.st_mode);
}

BRICK_TEST(path_marks_have_the_known_keys)
{
    brick_start(t, NULL);
    brick_create(t, t->root, "t1", GFID(1), NULL);
    brick_create(t, t->root, "file1", GFID(2), NULL);
    brick_create(t, t->root, "f1", GFID(3), NULL);
    brick_create(t, t->root, "hl", GFID(4), NULL);
    assert_xattr(brick_path(t, "t1"), "trusted.gfid2path.7e07425567aa03e0", ROOT_TEXT "/t1", 39);
    assert_xattr(brick_path(t, "file1"), "trusted.gfid2path.d16e15bafe6e4256", ROOT_TEXT "/file1", 42);
    assert_xattr(brick_path(t, "f1"), "trusted.gfid2path.5b24eafb4345038c", ROOT_TEXT "/f1", 39);
    assert_xattr(brick_path(t, "hl"), "trusted.gfid2path.fc3a546245cf3421", ROOT_TEXT "/hl", 39);
}

BRICK_TEST(create_with_client_times_keeps_them)
{
    static const uint8_t want[57] = { 1,    0,    0,    0,    0, 0, 0,    0,    0,    0,    0,    0,   0, 0x6b, 0x0d,
                                      0xc3, 0x6a, 0,    0,    0, 0, 0x1f, 0xe3, 0xcf, 0x26, 0,    0,   0, 0,    0x6b,
                                      0x0d, 0xc3, 0x6a, 0,    0, 0, 0,    0x1f, 0xe3, 0xcf, 0x26, 0,   0, 0,    0,
                                      0x6b, 0x0d, 0xc3, 0x6a, 0, 0, 0,    0,    0x1f, 0xe3, 0xcf, 0x26 };
    brick_start(t, NULL);
    t->call.time_flags = 0x1f;
    t->call.time_s = 0x6b0dc36a;
    t->call.time_ns = 0x1fe3cf26;
    brick_create(t, t->root, "a", GFID(1), NULL);
    assert_xattr(brick_path(t, "a"), "trusted.glusterfs.mdata", want, sizeof want);
    assert_int_equal(0x6b0dc36a, t->r->stat.mtime);
    assert_int_equal(0x1fe3cf26, t->r->stat.mtime_nsec);
    assert_true(t->r->post.mtime >= 0x6b0dc36a); /* the root had a later time of its own */
    assert_true(lgetxattr(t->dir, "trusted.glusterfs.mdata", NULL, 0) == 57);
}

BRICK_TEST(create_stores_given_xattrs)
{
    SCOPED(dict_unref) struct dict *x = dict_new();
    brick_start(t, NULL);
    dict_set_str(x, "trusted.glusterfs.dht.linkto", "web-client-1");
    dict_set_bin(x, "user.color", "red", 3);
    dict_set_int(x, "user.asked", 0);
    dict_set_gfid(x, "gfid-req", GFID(1));
    struct inode *f = brick_inode(t, GFID(1), S_IFREG);
    assert_int_equal(
        0, brick_op(t, OP_MKNOD, .parent = t->root, .name = "a", .inode = f, .mode = S_IFREG | 01000, .xdata = x));
    assert_xattr(brick_path(t, "a"), "trusted.glusterfs.dht.linkto", "web-client-1", 13);
    assert_xattr(brick_path(t, "a"), "user.color", "red", 3);
    assert_no_xattr(brick_path(t, "a"), "user.asked");
    assert_int_equal(S_IFREG | 01000, t->r->stat.mode);
}

BRICK_TEST(create_of_an_existing_name)
{
    brick_start(t, NULL);
    struct inode *f = brick_create(t, t->root, "a", GFID(1), NULL);
    struct inode *g = brick_inode(t, GFID(2), S_IFREG);
    struct fd *fd = brick_fd(t, g, O_RDWR), *same = brick_fd(t, f, O_RDWR);
    assert_int_equal(-EEXIST, brick_op(t, OP_CREATE, .parent = t->root, .name = "a", .inode = g, .fd = fd,
                                       .flags = O_RDWR, .mode = 0644));
    assert_int_equal(0, brick_op(t, OP_CREATE, .parent = t->root, .name = "a", .inode = f, .fd = same, .flags = O_RDWR,
                                 .mode = 0644));
    assert_false(on_brick(t, ".glusterfs/11/11/11111111-2222-3333-4444-000000000002"));
}

BRICK_TEST(create_gives_the_owner_and_inherits_the_group)
{
    struct stat st;
    brick_start(t, NULL);
    struct inode *d = brick_mkdir(t, t->root, "d", GFID(1));
    assert_int_equal(0, chown(brick_path(t, "d"), 0, 77));
    assert_int_equal(0, chmod(brick_path(t, "d"), 02755));
    t->call.uid = 1000;
    t->call.gid = 1001;
    brick_create(t, d, "in", GFID(2), NULL);
    brick_create(t, t->root, "out", GFID(3), NULL);
    brick_mkdir(t, d, "sub", GFID(4));
    assert_int_equal(0, stat(brick_path(t, "d/in"), &st));
    assert_int_equal(1000, st.st_uid);
    assert_int_equal(77, st.st_gid);
    assert_int_equal(0, stat(brick_path(t, "out"), &st));
    assert_int_equal(1001, st.st_gid);
    assert_int_equal(0, stat(brick_path(t, "d/sub"), &st));
    assert_int_equal(02755, st.st_mode & 07777);
    assert_int_equal(77, st.st_gid);
}

BRICK_TEST(create_applies_umask_unless_the_parent_has_a_default_acl)
{
    static const uint8_t acl[] = { 2, 0, 0,    0,    1,    0,    7,    0, 0xff, 0xff, 0xff, 0xff, 4,    0,
                                   7, 0, 0xff, 0xff, 0xff, 0xff, 0x20, 0, 4,    0,    0xff, 0xff, 0xff, 0xff };
    struct stat st;
    brick_start(t, NULL);
    struct inode *d = brick_mkdir(t, t->root, "d", GFID(1));
    assert_int_equal(0, setxattr(brick_path(t, "d"), "system.posix_acl_default", acl, sizeof acl, 0));
    struct inode *plain = brick_inode(t, GFID(2), S_IFREG), *with = brick_inode(t, GFID(3), S_IFREG);
    assert_int_equal(0, brick_op(t, OP_MKNOD, .parent = t->root, .name = "plain", .inode = plain,
                                 .mode = S_IFREG | 0666, .umask = 022));
    assert_int_equal(
        0, brick_op(t, OP_MKNOD, .parent = d, .name = "with", .inode = with, .mode = S_IFREG | 0666, .umask = 022));
    assert_int_equal(0, stat(brick_path(t, "plain"), &st));
    assert_int_equal(0644, st.st_mode & 07777);
    assert_int_equal(0, stat(brick_path(t, "d/with"), &st));
    assert_int_equal(0664, st.st_mode & 07777);
}

BRICK_TEST(create_masks_and_forces_modes)
{
    brick_start(t, "create-mask", "0750", "force-create-mode", "0040", "create-directory-mask", "0700",
                "force-directory-mode", "0001", NULL);
    brick_create(t, t->root, "a", GFID(1), NULL);
    assert_int_equal(0100640, t->r->stat.mode);
    brick_mkdir(t, t->root, "d", GFID(2));
    assert_int_equal(040701, t->r->stat.mode);
}

BRICK_TEST(stale_pointer_files_are_replaced_on_request)
{
    SCOPED(dict_unref) struct dict *linkto = dict_new();
    SCOPED(dict_unref) struct dict *force = dict_new();
    brick_start(t, NULL);
    dict_set_str(linkto, "trusted.glusterfs.dht.linkto", "web-client-1");
    dict_set_str(force, "force-replace", "yes");
    assert_int_equal(0, brick_op(t, OP_MKNOD, .parent = t->root, .name = "a", .inode = brick_inode(t, GFID(1), S_IFREG),
                                 .mode = S_IFREG | 01000, .xdata = linkto));
    struct inode *f = brick_inode(t, GFID(2), S_IFREG);
    assert_int_equal(-EEXIST,
                     brick_op(t, OP_MKNOD, .parent = t->root, .name = "a", .inode = f, .mode = S_IFREG | 0644));
    assert_int_equal(
        0, brick_op(t, OP_MKNOD, .parent = t->root, .name = "a", .inode = f, .mode = S_IFREG | 0644, .xdata = force));
    assert_int_not_equal(0, access(handle_path(t, GFID(1)), F_OK));
    assert_int_equal(-EEXIST, brick_op(t, OP_MKNOD, .parent = t->root, .name = "a", .inode = brick_inode(t, GFID(3), 0),
                                       .mode = S_IFREG | 0644, .xdata = force));
}

BRICK_TEST(names_that_cannot_be)
{
    char name[300];
    brick_start(t, NULL);
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    struct inode *f = brick_inode(t, GFID(1), S_IFREG);
    assert_int_equal(-ENAMETOOLONG,
                     brick_op(t, OP_MKNOD, .parent = t->root, .name = name, .inode = f, .mode = S_IFREG));
    assert_int_equal(-ENAMETOOLONG, brick_lookup(t, t->root, name, NULL));
    assert_int_equal(-EPERM, brick_op(t, OP_MKNOD, .parent = t->root, .name = "a/b", .inode = f, .mode = S_IFREG));
    assert_int_equal(-EEXIST, brick_op(t, OP_MKNOD, .parent = t->root, .name = "..", .inode = f, .mode = S_IFREG));
    name[255] = '\0';
    assert_int_equal(0, brick_op(t, OP_MKNOD, .parent = t->root, .name = name, .inode = f, .mode = S_IFREG | 0644));
    struct inode *d = brick_mkdir(t, t->root, "d", GFID(2));
    assert_int_equal(
        0, brick_op(t, OP_MKDIR, .parent = d, .name = name, .inode = brick_inode(t, GFID(3), S_IFDIR), .mode = 0755));
    assert_int_equal(0, brick_op(t, OP_RMDIR, .parent = d, .name = name));
    assert_int_equal(-ENOTDIR, brick_lookup(t, f, "x", NULL));
}

BRICK_TEST(mkdir_makes_a_symlink_as_handle)
{
    brick_start(t, NULL);
    struct inode *d = brick_mkdir(t, t->root, "d", GFID(1));
    brick_mkdir(t, d, "e", GFID(2));
    assert_link_text(handle_path(t, GFID(1)), "../../00/00/" ROOT_TEXT "/d");
    assert_link_text(handle_path(t, GFID(2)), "../../11/11/11111111-2222-3333-4444-000000000001/e");
    assert_xattr(brick_path(t, "d/e"), "trusted.gfid", GFID(2), 16);
}

BRICK_TEST(mkdir_of_a_gfid_that_is_elsewhere_is_refused)
{
    brick_start(t, NULL);
    struct inode *d = brick_mkdir(t, t->root, "d", GFID(1));
    assert_int_equal(-EEXIST, brick_op(t, OP_MKDIR, .parent = t->root, .name = "other", .inode = d, .mode = 0755));
    assert_false(on_brick(t, "other"));
    assert_link_text(handle_path(t, GFID(1)), "../../00/00/" ROOT_TEXT "/d");
}

BRICK_TEST(mkdir_checks_the_parent_layout)
{
    SCOPED(dict_unref) struct dict *x = dict_new();
    uint64_t failed = 0;
    brick_start(t, NULL);
    assert_int_equal(0, setxattr(t->dir, "trusted.glusterfs.dht", "0123456789abcdef", 16, 0));
    dict_set_str(x, "glusterfs.preop.parent.key", "trusted.glusterfs.dht");
    dict_set_bin(x, "trusted.glusterfs.dht", "0123456789abcdeX", 16);
    struct inode *d = brick_inode(t, GFID(1), S_IFDIR);
    assert_int_equal(-EIO, brick_op(t, OP_MKDIR, .parent = t->root, .name = "d", .inode = d, .mode = 0755, .xdata = x));
    assert_int_equal(0, dict_get_uint(t->r->xdata, "glusterfs.preop.check.failed", &failed));
    assert_int_equal(1, failed);
    assert_false(on_brick(t, "d"));
    dict_set_bin(x, "trusted.glusterfs.dht", "0123456789abcdef", 16);
    assert_int_equal(0, brick_op(t, OP_MKDIR, .parent = t->root, .name = "d", .inode = d, .mode = 0755, .xdata = x));
    assert_no_xattr(brick_path(t, "d"), "trusted.glusterfs.dht");
}

BRICK_TEST(special_files_have_gfids_too)
{
    brick_start(t, NULL);
    struct inode *l = brick_inode(t, GFID(1), S_IFLNK), *p = brick_inode(t, GFID(2), S_IFIFO);
    struct inode *c = brick_inode(t, GFID(3), S_IFCHR);
    assert_int_equal(0, brick_op(t, OP_SYMLINK, .parent = t->root, .name = "l", .inode = l, .text = "target"));
    assert_int_equal(0, brick_op(t, OP_MKNOD, .parent = t->root, .name = "p", .inode = p, .mode = S_IFIFO | 0640));
    assert_int_equal(0, brick_op(t, OP_MKNOD, .parent = t->root, .name = "c", .inode = c, .mode = S_IFCHR | 0600,
                                 .rdev = makedev(1, 3)));
    assert_xattr(brick_path(t, "l"), "trusted.gfid", GFID(1), 16);
    assert_xattr(brick_path(t, "p"), "trusted.gfid", GFID(2), 16);
    assert_same_inode(brick_path(t, "l"), handle_path(t, GFID(1)));
    assert_int_equal(6, brick_op(t, OP_READLINK, .inode = l, .size = 100));
    assert_string_equal("target", t->r->text);
    assert_int_equal(0, brick_lookup(t, t->root, "c", NULL));
    assert_int_equal(makedev(1, 3), t->r->stat.rdev);
    assert_int_equal(S_IFCHR | 0600, t->r->stat.mode);
    t->call.uid = 0;
    struct iatt a = { .uid = 7, .gid = 8, .mtime = 1000 };
    assert_int_equal(0, brick_op(t, OP_SETATTR, .inode = l, .attr = &a, .valid = ATTR_UID | ATTR_GID | ATTR_MTIME));
    assert_int_equal(7, t->r->post.uid);
    assert_int_equal(1000, t->r->post.mtime);
    struct iatt m = { .mode = 0600 };
    assert_int_equal(0, brick_op(t, OP_SETATTR, .inode = p, .attr = &m, .valid = ATTR_MODE));
    assert_int_equal(S_IFIFO | 0600, t->r->post.mode);
}

BRICK_TEST(internal_mknod_links_a_known_gfid)
{
    SCOPED(dict_unref) struct dict *x = dict_new();
    brick_start(t, NULL);
    dict_set_str(x, "glusterfs-internal-fop", "yes");
    struct inode *f = brick_create(t, t->root, "a", GFID(1), NULL);
    assert_int_equal(
        0, brick_op(t, OP_MKNOD, .parent = t->root, .name = "b", .inode = f, .mode = S_IFREG | 0600, .xdata = x));
    assert_int_equal(2, t->r->stat.nlink);
    assert_same_inode(brick_path(t, "a"), brick_path(t, "b"));
}

/* ---- lookup ---- */

BRICK_TEST(lookup_finds_by_name_and_by_gfid)
{
    brick_start(t, NULL);
    brick_create(t, t->root, "a", GFID(1), NULL);
    assert_int_equal(0, brick_lookup(t, t->root, "a", NULL));
    assert_true(gfid_equal(&t->r->stat.gfid, GFID(1)));
    assert_int_equal(gfid_to_ino(GFID(1)), t->r->stat.ino);
    assert_true(iatt_is_set(&t->r->post));
    assert_int_equal(0, brick_op(t, OP_LOOKUP, .inode = brick_inode(t, GFID(1), 0)));
    assert_true(S_ISREG(t->r->stat.mode));
    assert_int_equal(-ENOENT, brick_lookup(t, t->root, "b", NULL));
    assert_int_equal(-ENOENT, brick_op(t, OP_LOOKUP, .inode = brick_inode(t, GFID(9), 0)));
    assert_int_equal(-ESTALE, brick_lookup(t, brick_inode(t, GFID(9), 0), "b", NULL));
}

BRICK_TEST(lookup_after_restart)
{
    brick_start(t, NULL);
    struct inode *d = brick_mkdir(t, t->root, "d", GFID(1));
    brick_create(t, d, "a", GFID(2), NULL);
    brick_stop(t);
    brick_start(t, NULL);
    assert_int_equal(0, brick_lookup(t, brick_inode(t, GFID(1), S_IFDIR), "a", NULL));
    assert_true(gfid_equal(&t->r->stat.gfid, GFID(2)));
    assert_int_equal(1, t->r->stat.nlink);
}

BRICK_TEST(lookup_gives_an_old_file_a_gfid)
{
    SCOPED(dict_unref) struct dict *x = dict_new();
    struct timespec old[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
    brick_start(t, NULL);
    dict_set_gfid(x, "gfid-req", GFID(5));
    assert_int_equal(0, close(open(brick_path(t, "a"), O_CREAT | O_WRONLY, 0644)));
    assert_int_equal(-ENODATA, brick_lookup(t, t->root, "a", NULL));
    /* A file of this very second may be half made by somebody else. */
    assert_int_equal(0, utimensat(AT_FDCWD, brick_path(t, "a"), old, 0));
    assert_int_equal(-ENOENT, brick_lookup(t, t->root, "a", x));
    assert_no_xattr(brick_path(t, "a"), "trusted.gfid");
    assert_int_equal(0, fiber_sleep_ms(NULL, 1050)); /* ctime cannot be set by anybody */
    assert_int_equal(0, brick_lookup(t, t->root, "a", x));
    assert_true(gfid_equal(&t->r->stat.gfid, GFID(5)));
    assert_int_equal(1, t->r->stat.nlink);
    assert_xattr(brick_path(t, "a"), "trusted.gfid", GFID(5), 16);
    assert_same_inode(brick_path(t, "a"), handle_path(t, GFID(5)));
}

BRICK_TEST(lookup_gives_back_a_gfid_that_was_lost_but_not_that_of_another_inode)
{
    SCOPED(dict_unref) struct dict *x = dict_new();
    brick_start(t, NULL);
    dict_set_gfid(x, "gfid-req", GFID(1));
    brick_create(t, t->root, "a", GFID(1), NULL);
    brick_create(t, t->root, "b", GFID(2), NULL);
    brick_mkdir(t, t->root, "d", GFID(3));
    brick_stop(t);
    assert_int_equal(0, removexattr(brick_path(t, "a"), "trusted.gfid"));
    assert_int_equal(0, removexattr(brick_path(t, "b"), "trusted.gfid"));
    assert_int_equal(0, removexattr(brick_path(t, "d"), "trusted.gfid"));
    brick_start(t, NULL);
    assert_int_equal(0, fiber_sleep_ms(NULL, 1050));
    assert_int_equal(-EEXIST, brick_lookup(t, t->root, "b", x));
    assert_no_xattr(brick_path(t, "b"), "trusted.gfid");
    assert_int_equal(0, brick_lookup(t, t->root, "a", x));
    assert_true(gfid_equal(&t->r->stat.gfid, GFID(1)));
    assert_int_equal(1, t->r->stat.nlink);
    dict_set_gfid(x, "gfid-req", GFID(3));
    assert_int_equal(0, brick_lookup(t, t->root, "d", x));
    assert_int_equal(0, brick_op(t, OP_LOOKUP, .inode = brick_inode(t, GFID(3), S_IFDIR)));
}

BRICK_TEST(an_inode_found_by_its_handle_gets_its_lost_gfid_back)
{
    brick_start(t, NULL);
    brick_create(t, t->root, "a", GFID(1), NULL);
    brick_stop(t);
    assert_int_equal(0, removexattr(brick_path(t, "a"), "trusted.gfid"));
    brick_start(t, NULL);
    assert_int_equal(0, brick_op(t, OP_LOOKUP, .inode = brick_inode(t, GFID(1), S_IFREG)));
    assert_xattr(brick_path(t, "a"), "trusted.gfid", GFID(1), 16);
}

BRICK_TEST(lookup_without_gfid_on_request)
{
    SCOPED(dict_unref) struct dict *x = dict_new();
    brick_start(t, NULL);
    dict_set_int(x, "gfidless-lookup", 1);
    assert_int_equal(0, close(open(brick_path(t, "a"), O_CREAT | O_WRONLY, 0644)));
    assert_int_equal(0, brick_lookup(t, t->root, "a", x));
    assert_true(gfid_is_null(&t->r->stat.gfid));
    assert_true(S_ISREG(t->r->stat.mode));
}

BRICK_DISK_TEST(lookup_answers_xattrs_and_content)
{
    SCOPED(dict_unref) struct dict *x = dict_new();
    const void *data;
    size_t size;
    brick_start(t, NULL);
    struct inode *f = brick_create(t, t->root, "a", GFID(1), NULL);
    assert_int_equal(5, brick_write(t, f, NULL, "hello", 0));
    assert_int_equal(0, setxattr(brick_path(t, "a"), "trusted.afr.web-client-0", "0123456789ab", 12, 0));
    assert_int_equal(0, setxattr(brick_path(t, "a"), "user.x", "y", 1, 0));
    dict_set_uint(x, "trusted.afr.web-client-0", 12);
    dict_set_uint(x, "trusted.afr.web-client-1", 12);
    dict_set_uint(x, "glusterfs.content", 65536);
    dict_set_uint(x, "glusterfs.open-fd-count", 4);
    assert_int_equal(0, brick_lookup(t, t->root, "a", x));
    assert_int_equal(0, dict_get_bin(t->r->xdata, "trusted.afr.web-client-0", &data, &size));
    assert_int_equal(12, size);
    assert_false(dict_has(t->r->xdata, "trusted.afr.web-client-1"));
    assert_int_equal(0, dict_get_bin(t->r->xdata, "glusterfs.content", &data, &size));
    assert_int_equal(5, size);
    assert_memory_equal("hello", data, 5);
    assert_false(dict_has(t->r->xdata, "user.x"));
    dict_set_int(x, "list-xattr", 1);
    assert_int_equal(0, brick_lookup(t, t->root, "a", x));
    assert_true(dict_has(t->r->xdata, "user.x"));
    assert_false(dict_has(t->r->xdata, "trusted.gfid2path.0000000000000000"));
}

BRICK_TEST(lookup_makes_a_lost_handle_again)
{
    brick_start(t, NULL);
    brick_create(t, t->root, "a", GFID(1), NULL);
    brick_mkdir(t, t->root, "d", GFID(2));
    brick_stop(t);
    assert_int_equal(0, unlink(handle_path(t, GFID(1))));
    assert_int_equal(0, unlink(handle_path(t, GFID(2))));
    brick_start(t, NULL);
    assert_int_equal(-ENOENT, brick_op(t, OP_LOOKUP, .inode = brick_inode(t, GFID(1), 0)));
    assert_int_equal(0, brick_lookup(t, t->root, "a", NULL));
    assert_int_equal(1, t->r->stat.nlink);
    assert_int_equal(0, brick_lookup(t, t->root, "d", NULL));
    assert_same_inode(brick_path(t, "a"), handle_path(t, GFID(1)));
    assert_link_text(handle_path(t, GFID(2)), "../../00/00/" ROOT_TEXT "/d");
}

BRICK_TEST(lookup_removes_a_handle_without_a_name)
{
    brick_start(t, NULL);
    brick_create(t, t->root, "a", GFID(1), NULL);
    brick_stop(t);
    assert_int_equal(0, unlink(brick_path(t, "a")));
    brick_start(t, NULL);
    assert_int_equal(-ENOENT, brick_op(t, OP_LOOKUP, .inode = brick_inode(t, GFID(1), 0)));
    assert_int_not_equal(0, access(handle_path(t, GFID(1)), F_OK));
}

BRICK_TEST(lookup_reaches_very_deep_directories)
{
    brick_start(t, NULL);
    struct inode *at = t->root;
    for (uint8_t i = 1; i <= 60; i++)
        at = brick_mkdir(t, at, "deep", GFID(i));
    brick_create(t, at, "bottom", GFID(100), NULL);
    brick_stop(t);
    brick_start(t, NULL);
    assert_int_equal(0, brick_lookup(t, brick_inode(t, GFID(60), S_IFDIR), "bottom", NULL));
    assert_true(gfid_equal(&t->r->stat.gfid, GFID(100)));
}

BRICK_TEST(dotdot_is_the_parent)
{
    brick_start(t, NULL);
    struct inode *d = brick_mkdir(t, t->root, "d", GFID(1)), *e = brick_mkdir(t, d, "e", GFID(2));
    assert_int_equal(0, brick_lookup(t, e, "..", NULL));
    assert_true(gfid_equal(&t->r->stat.gfid, GFID(1)));
    assert_int_equal(0, brick_lookup(t, d, "..", NULL));
    assert_true(gfid_is_root(&t->r->stat.gfid));
}

#define T(name) cmocka_unit_test(name)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        T(start_makes_the_tree),
        T(root_is_found_by_gfid),
        T(private_directory_is_hidden),
        T(create_leaves_gfid_path_mark_and_handle),
        T(path_marks_have_the_known_keys),
        T(create_with_client_times_keeps_them),
        T(create_stores_given_xattrs),
        T(create_of_an_existing_name),
        T(create_gives_the_owner_and_inherits_the_group),
        T(create_applies_umask_unless_the_parent_has_a_default_acl),
        T(create_masks_and_forces_modes),
        T(stale_pointer_files_are_replaced_on_request),
        T(names_that_cannot_be),
        T(mkdir_makes_a_symlink_as_handle),
        T(mkdir_of_a_gfid_that_is_elsewhere_is_refused),
        T(mkdir_checks_the_parent_layout),
        T(special_files_have_gfids_too),
        T(internal_mknod_links_a_known_gfid),
        T(lookup_finds_by_name_and_by_gfid),
        T(lookup_after_restart),
        T(lookup_gives_an_old_file_a_gfid),
        T(lookup_gives_back_a_gfid_that_was_lost_but_not_that_of_another_inode),
        T(an_inode_found_by_its_handle_gets_its_lost_gfid_back),
        T(lookup_without_gfid_on_request),
        T(lookup_answers_xattrs_and_content),
        T(lookup_makes_a_lost_handle_again),
        T(lookup_removes_a_handle_without_a_name),
        T(lookup_reaches_very_deep_directories),
        T(dotdot_is_the_parent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
