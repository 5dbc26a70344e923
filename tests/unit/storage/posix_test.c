/* Operations of storage/posix and what they leave on the disk. */
#include "unit/storage/brick_fixture.h"
#include <dirent.h>
#include <stdio.h>
#include <linux/fs.h>
#include <sys/sysmacros.h>

#define ROOT_TEXT "00000000-0000-0000-0000-000000000001"

static void assert_same_inode(const char *a, const char *b)
{
    struct stat x, y;
    assert_int_equal(0, lstat(a, &x));
    assert_int_equal(0, lstat(b, &y));
    assert_int_equal(x.st_ino, y.st_ino);
}

static void assert_link_text(const char *path, const char *want)
{
    char have[512];
    ssize_t n = readlink(path, have, sizeof have - 1);
    assert_true(n >= 0);
    have[n] = '\0';
    assert_string_equal(want, have);
}

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

BRICK_TEST(lookup_answers_xattrs_and_content)
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

/* ---- data ---- */

BRICK_TEST(write_and_read_back)
{
    struct fd *fd;
    brick_start(t, NULL);
    struct inode *f = brick_create(t, t->root, "a", GFID(1), &fd);
    assert_int_equal(5, brick_write(t, f, fd, "hello", 3));
    assert_int_equal(0, t->r->pre.size);
    assert_int_equal(8, t->r->post.size);
    assert_int_equal(8, brick_op(t, OP_READ, .inode = f, .fd = fd, .size = 100));
    assert_memory_equal("\0\0\0hello", t->r->data->data, 8);
    assert_int_equal(8, t->r->stat.size);
    assert_int_equal(2, brick_op(t, OP_READ, .inode = f, .size = 2, .offset = 4));
    assert_memory_equal("el", t->r->data->data, 2);
    assert_int_equal(0, brick_op(t, OP_READ, .inode = f, .size = 2, .offset = 8));
    assert_int_equal(0, t->r->data->size);
}

BRICK_TEST(large_and_synchronous_writes)
{
    struct fd *fd;
    brick_start(t, NULL);
    struct inode *f = brick_create(t, t->root, "a", GFID(1), &fd);
    SCOPED(buf_unref) struct buf *b = buf_new(1 << 20);
    memset(b->data, 'x', b->size);
    assert_int_equal(1 << 20, brick_op(t, OP_WRITE, .inode = f, .fd = fd, .data = b));
    assert_int_equal(1 << 20,
                     brick_op(t, OP_WRITE, .inode = f, .fd = fd, .data = b, .offset = 1 << 20, .flags = O_SYNC));
    assert_int_equal(2 << 20, t->r->post.size);
    assert_int_equal(1 << 20, brick_op(t, OP_READ, .inode = f, .fd = fd, .size = 1 << 20, .offset = 1 << 19));
    assert_memory_equal(b->data, t->r->data->data, 1 << 20);
}

BRICK_TEST(append_goes_to_the_end_and_says_so)
{
    SCOPED(dict_unref) struct dict *x = dict_new();
    uint64_t v;
    brick_start(t, NULL);
    struct inode *f = brick_create(t, t->root, "a", GFID(1), NULL);
    struct fd *fd = brick_fd(t, f, O_WRONLY | O_APPEND);
    assert_int_equal(0, brick_op(t, OP_OPEN, .inode = f, .fd = fd, .flags = O_WRONLY | O_APPEND));
    assert_int_equal(3, brick_write(t, f, fd, "one", 0));
    dict_set_uint(x, "glusterfs.write-is-append", 4);
    dict_set_uint(x, "glusterfs.open-fd-count", 4);
    SCOPED(buf_unref) struct buf *b = buf_copy("two", 3);
    assert_int_equal(3, brick_op(t, OP_WRITE, .inode = f, .fd = fd, .data = b, .xdata = x));
    assert_int_equal(6, t->r->post.size);
    assert_int_equal(0, dict_get_uint(t->r->xdata, "glusterfs.write-is-append", &v));
    assert_int_equal(1, v);
    assert_int_equal(0, dict_get_uint(t->r->xdata, "glusterfs.open-fd-count", &v));
    assert_int_equal(1, v);
    assert_int_equal(3, brick_op(t, OP_WRITE, .inode = f, .data = b, .offset = 2, .xdata = x));
    assert_int_equal(0, dict_get_uint(t->r->xdata, "glusterfs.write-is-append", &v));
    assert_int_equal(0, v);
    assert_int_equal(6, brick_op(t, OP_READ, .inode = f, .size = 100));
    assert_memory_equal("ontwoo", t->r->data->data, 6);
}

struct appender {
    struct brick_test *t;
    struct inode *inode;
    struct fd *fd;
    struct buf *data;
    uint64_t ends; /* sum of post sizes */
};

static int append_some(void *arg)
{
    struct appender *a = arg;
    SCOPED(reply_free) struct reply *r = reply_new();
    for (int i = 0; i < 20; i++) {
        struct request q = { .op = OP_WRITE, .inode = a->inode, .fd = a->fd, .data = a->data };
        reply_done(r);
        if (translator_call(a->t->me, &a->t->call, &q, r) != (int)a->data->size ||
            r->post.size != r->pre.size + a->data->size)
            return -EIO;
        a->ends += r->post.size;
    }
    return 0;
}

BRICK_TEST(appends_at_once_do_not_overwrite_each_other)
{
    struct group g;
    struct appender a[4];
    brick_start(t, NULL);
    struct inode *f = brick_create(t, t->root, "a", GFID(1), NULL);
    struct fd *fd = brick_fd(t, f, O_WRONLY | O_APPEND);
    assert_int_equal(0, brick_op(t, OP_OPEN, .inode = f, .fd = fd, .flags = O_WRONLY | O_APPEND));
    group_init(&g, t->env);
    for (unsigned i = 0; i < 4; i++) {
        /* Two of them on the pool, two on the loop. */
        a[i] = (struct appender) { .t = t, .inode = f, .fd = fd, .data = buf_new(i < 2 ? 100000 : 1000) };
        memset(a[i].data->data, 'a' + (int)i, a[i].data->size);
        assert_int_equal(0, group_run(&g, "append", append_some, &a[i]));
    }
    group_wait_all(&g);
    assert_int_equal(4, g.succeeded);
    assert_int_equal(0, brick_op(t, OP_STAT, .inode = f));
    assert_int_equal(20 * (100000 + 100000 + 1000 + 1000), t->r->stat.size);
    for (unsigned i = 0; i < 4; i++)
        buf_unref(a[i].data);
}

BRICK_TEST(direct_reads_and_writes_of_any_alignment)
{
    brick_start(t, NULL);
    struct inode *f = brick_create(t, t->root, "a", GFID(1), NULL);
    struct fd *fd = brick_fd(t, f, O_RDWR | O_DIRECT);
    assert_int_equal(0, brick_op(t, OP_OPEN, .inode = f, .fd = fd, .flags = O_RDWR | O_DIRECT));
    SCOPED(buf_unref) struct buf *b = buf_new(8192);
    memset(b->data, 'z', b->size);
    assert_int_equal(8192, brick_op(t, OP_WRITE, .inode = f, .fd = fd, .data = b));
    assert_int_equal(3, brick_write(t, f, fd, "odd", 8192));
    assert_int_equal(8195, brick_op(t, OP_READ, .inode = f, .fd = fd, .size = 65536));
    assert_memory_equal("zzodd", t->r->data->data + 8190, 5);
    assert_int_equal(100, brick_op(t, OP_READ, .inode = f, .fd = fd, .size = 100, .offset = 5));
}

BRICK_TEST(truncate_both_ways)
{
    brick_start(t, NULL);
    struct inode *f = brick_create(t, t->root, "a", GFID(1), NULL);
    assert_int_equal(5, brick_write(t, f, NULL, "hello", 0));
    assert_int_equal(0, brick_op(t, OP_TRUNCATE, .inode = f, .offset = 2));
    assert_int_equal(5, t->r->pre.size);
    assert_int_equal(2, t->r->post.size);
    assert_int_equal(0, brick_op(t, OP_TRUNCATE, .inode = f, .offset = 100));
    assert_int_equal(100, t->r->post.size);
    assert_int_equal(-EINVAL, brick_op(t, OP_TRUNCATE, .inode = f, .offset = UINT64_MAX));
}

BRICK_TEST(fallocate_punch_zero_and_refusals)
{
    brick_start(t, NULL);
    struct inode *f = brick_create(t, t->root, "a", GFID(1), NULL);
    assert_int_equal(0, brick_op(t, OP_FALLOCATE, .inode = f, .offset = 0, .size = 65536));
    assert_int_equal(65536, t->r->post.size);
    assert_true(t->r->post.blocks >= 128);
    assert_int_equal(
        0, brick_op(t, OP_FALLOCATE, .inode = f, .flags = FALLOC_FL_KEEP_SIZE, .offset = 65536, .size = 65536));
    assert_int_equal(65536, t->r->post.size);
    assert_int_equal(4, brick_write(t, f, NULL, "data", 8192));
    assert_int_equal(0, brick_op(t, OP_FALLOCATE, .inode = f, .flags = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                 .offset = 8192, .size = 4096));
    assert_int_equal(4, brick_op(t, OP_READ, .inode = f, .offset = 8192, .size = 4));
    assert_memory_equal("\0\0\0\0", t->r->data->data, 4);
    assert_int_equal(-EOPNOTSUPP,
                     brick_op(t, OP_FALLOCATE, .inode = f, .flags = FALLOC_FL_COLLAPSE_RANGE, .size = 4096));
    assert_int_equal(-EINVAL, brick_op(t, OP_FALLOCATE, .inode = f, .size = 0));
}

BRICK_TEST(seek_finds_holes)
{
    struct fd *fd;
    brick_start(t, NULL);
    struct inode *f = brick_create(t, t->root, "a", GFID(1), &fd);
    assert_int_equal(4, brick_write(t, f, fd, "data", 1 << 20));
    assert_int_equal(0, brick_op(t, OP_SEEK, .inode = f, .fd = fd, .offset = 0, .flags = SEEK_DATA));
    assert_int_equal(1 << 20, t->r->offset);
    assert_int_equal(0, brick_op(t, OP_SEEK, .inode = f, .fd = fd, .offset = 0, .flags = SEEK_HOLE));
    assert_int_equal(0, t->r->offset);
    assert_int_equal(-ENXIO, brick_op(t, OP_SEEK, .inode = f, .fd = fd, .offset = 2 << 20, .flags = SEEK_DATA));
}

BRICK_TEST(copy_range_copies)
{
    brick_start(t, NULL);
    struct inode *a = brick_create(t, t->root, "a", GFID(1), NULL), *b = brick_create(t, t->root, "b", GFID(2), NULL);
    assert_int_equal(11, brick_write(t, a, NULL, "hello world", 0));
    assert_int_equal(5, brick_op(t, OP_COPY_RANGE, .inode = a, .offset = 6, .inode2 = b, .offset2 = 2, .size = 5));
    assert_int_equal(7, t->r->post.size);
    assert_int_equal(7, brick_op(t, OP_READ, .inode = b, .size = 100));
    assert_memory_equal("\0\0world", t->r->data->data, 7);
}

BRICK_TEST(fsync_and_fsyncdir)
{
    struct fd *fd;
    brick_start(t, NULL);
    struct inode *f = brick_create(t, t->root, "a", GFID(1), &fd);
    assert_int_equal(0, brick_op(t, OP_FSYNC, .inode = f, .fd = fd));
    assert_true(iatt_is_set(&t->r->post));
    struct fd *dir = brick_fd(t, t->root, O_RDONLY);
    assert_int_equal(0, brick_op(t, OP_OPENDIR, .inode = t->root, .fd = dir));
    assert_int_equal(0, brick_op(t, OP_FSYNCDIR, .inode = t->root, .fd = dir));
    assert_int_equal(0, brick_op(t, OP_FLUSH, .inode = f, .fd = fd));
}

BRICK_TEST(open_of_what_has_no_data_is_refused)
{
    brick_start(t, NULL);
    struct inode *d = brick_mkdir(t, t->root, "d", GFID(1));
    assert_int_equal(-EISDIR, brick_op(t, OP_OPEN, .inode = d, .fd = brick_fd(t, d, O_RDONLY)));
    struct inode *f = brick_create(t, t->root, "a", GFID(2), NULL);
    assert_int_equal(-ENOTDIR, brick_op(t, OP_OPENDIR, .inode = f, .fd = brick_fd(t, f, O_RDONLY)));
}

BRICK_TEST(rchecksum_of_a_block)
{
    static const uint8_t sha_of_abc[] = { 0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea };
    static const uint8_t md5_of_abc[] = { 0x90, 0x01, 0x50, 0x98, 0x3c, 0xd2, 0x4f, 0xb0 };
    brick_start(t, "fips-mode-rchecksum", "on", NULL);
    struct inode *f = brick_create(t, t->root, "a", GFID(1), NULL);
    assert_int_equal(3, brick_write(t, f, NULL, "abc", 0));
    assert_int_equal(0, brick_op(t, OP_RCHECKSUM, .inode = f, .size = 131072));
    assert_memory_equal(sha_of_abc, t->r->strong_checksum, 8);
    assert_true(dict_has(t->r->xdata, "fips-mode-rchecksum"));
    brick_stop(t);
    brick_start(t, NULL);
    assert_int_equal(0, brick_op(t, OP_RCHECKSUM, .inode = brick_inode(t, GFID(1), 0), .size = 131072));
    assert_memory_equal(md5_of_abc, t->r->strong_checksum, 8);
}

/* ---- attributes ---- */

BRICK_TEST(setattr_changes_and_answers_both_states)
{
    brick_start(t, NULL);
    struct inode *f = brick_create(t, t->root, "a", GFID(1), NULL);
    struct iatt a = { .mode = 04711, .uid = 5, .gid = 6, .atime = 100, .mtime = 200, .mtime_nsec = 5 };
    assert_int_equal(0, brick_op(t, OP_SETATTR, .inode = f, .attr = &a,
                                 .valid = ATTR_MODE | ATTR_UID | ATTR_GID | ATTR_ATIME | ATTR_MTIME));
    assert_int_equal(0100644, t->r->pre.mode);
    assert_int_equal(0104711, t->r->post.mode);
    assert_int_equal(5, t->r->post.uid);
    assert_int_equal(6, t->r->post.gid);
    assert_int_equal(200, t->r->post.mtime);
    assert_int_equal(5, t->r->post.mtime_nsec);
    assert_int_equal(100, t->r->post.atime);
    struct iatt size = { .size = 10 };
    assert_int_equal(0, brick_op(t, OP_SETATTR, .inode = f, .attr = &size, .valid = ATTR_SIZE));
    assert_int_equal(10, t->r->post.size);
}

BRICK_TEST(client_times_never_go_back_but_by_utimes)
{
    brick_start(t, NULL);
    t->call.time_flags = 0x1f;
    t->call.time_s = 1000;
    struct inode *f = brick_create(t, t->root, "a", GFID(1), NULL);
    t->call.time_flags = TIME_CTIME | TIME_MTIME;
    t->call.time_s = 900;
    assert_int_equal(1, brick_write(t, f, NULL, "x", 0));
    assert_int_equal(1000, t->r->post.mtime);
    t->call.time_s = 2000;
    assert_int_equal(1, brick_write(t, f, NULL, "x", 0));
    assert_int_equal(1000, t->r->pre.mtime);
    assert_int_equal(2000, t->r->post.mtime);
    t->call.time_flags = TIME_CTIME;
    t->call.time_s = 3000;
    struct iatt a = { .mtime = 500, .mtime_nsec = 7 };
    assert_int_equal(0, brick_op(t, OP_SETATTR, .inode = f, .attr = &a, .valid = ATTR_MTIME));
    assert_int_equal(500, t->r->post.mtime);
    assert_int_equal(7, t->r->post.mtime_nsec);
    assert_int_equal(3000, t->r->post.ctime);
    assert_int_equal(1000, t->r->post.atime);
    brick_stop(t);
    brick_start(t, NULL);
    assert_int_equal(0, brick_lookup(t, t->root, "a", NULL));
    assert_int_equal(500, t->r->stat.mtime);
}

BRICK_TEST(content_changed_without_a_time_moves_by_the_clock_of_the_brick)
{
    brick_start(t, NULL);
    t->call.time_flags = 0x1f;
    t->call.time_s = 1000;
    struct inode *f = brick_create(t, t->root, "a", GFID(1), NULL);
    t->call.time_flags = 0;
    assert_int_equal(
        0, brick_op(t, OP_FALLOCATE, .inode = f, .flags = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, .size = 4096));
    assert_int_equal(1000, t->r->pre.mtime);
    assert_true(t->r->post.mtime > 1000000);
    assert_true(t->r->post.ctime > 1000000);
}

BRICK_TEST(ctime_off_shows_the_inode)
{
    brick_start(t, "ctime", "off", NULL);
    t->call.time_flags = 0x1f;
    t->call.time_s = 1000;
    brick_create(t, t->root, "a", GFID(1), NULL);
    assert_no_xattr(brick_path(t, "a"), "trusted.glusterfs.mdata");
    assert_true(t->r->stat.mtime > 1000);
}

BRICK_TEST(statfs_shares_and_reserves)
{
    brick_start(t, "reserve", "0", NULL);
    assert_int_equal(0, brick_op(t, OP_STATFS, .inode = t->root));
    uint64_t blocks = t->r->statfs->blocks;
    brick_stop(t);
    brick_start(t, "shared-brick-count", "2", NULL);
    assert_int_equal(0, brick_op(t, OP_STATFS, .inode = t->root));
    assert_int_equal(blocks / 2, t->r->statfs->blocks);
    brick_stop(t);
    brick_start(t, "export-statfs-size", "off", NULL);
    assert_int_equal(0, brick_op(t, OP_STATFS, .inode = t->root));
    assert_int_equal(0, t->r->statfs->blocks);
}

/* ---- removal ---- */

BRICK_TEST(unlink_removes_name_and_handle)
{
    brick_start(t, NULL);
    brick_create(t, t->root, "a", GFID(1), NULL);
    assert_int_equal(0, brick_op(t, OP_UNLINK, .parent = t->root, .name = "a"));
    assert_true(iatt_is_set(&t->r->pre) && iatt_is_set(&t->r->post));
    assert_false(on_brick(t, "a"));
    assert_int_not_equal(0, access(handle_path(t, GFID(1)), F_OK));
    assert_int_equal(-ENOENT, brick_op(t, OP_UNLINK, .parent = t->root, .name = "a"));
    assert_int_equal(-ENOENT, brick_op(t, OP_LOOKUP, .inode = brick_inode(t, GFID(1), 0)));
}

BRICK_TEST(unlink_of_one_of_two_names)
{
    SCOPED(dict_unref) struct dict *x = dict_new();
    uint64_t links;
    brick_start(t, NULL);
    struct inode *f = brick_create(t, t->root, "f1", GFID(1), NULL);
    assert_int_equal(0, brick_op(t, OP_LINK, .inode = f, .parent2 = t->root, .name2 = "hl"));
    assert_int_equal(2, t->r->stat.nlink);
    assert_true(iatt_is_set(&t->r->post2));
    assert_xattr(brick_path(t, "f1"), "trusted.gfid2path.fc3a546245cf3421", ROOT_TEXT "/hl", 39);
    dict_set_uint(x, "get-link-count", 0);
    assert_int_equal(0, brick_op(t, OP_UNLINK, .parent = t->root, .name = "f1", .xdata = x));
    assert_int_equal(0, dict_get_uint(t->r->xdata, "get-link-count", &links));
    assert_int_equal(2, links);
    assert_no_xattr(brick_path(t, "hl"), "trusted.gfid2path.5b24eafb4345038c");
    assert_xattr(brick_path(t, "hl"), "trusted.gfid2path.fc3a546245cf3421", ROOT_TEXT "/hl", 39);
    assert_same_inode(brick_path(t, "hl"), handle_path(t, GFID(1)));
    assert_int_equal(0, brick_op(t, OP_STAT, .inode = f));
    assert_int_equal(1, t->r->stat.nlink);
}

BRICK_TEST(unlink_of_an_open_file_keeps_it_until_release)
{
    struct fd *fd;
    brick_start(t, NULL);
    struct inode *f = brick_create(t, t->root, "a", GFID(1), &fd);
    assert_int_equal(5, brick_write(t, f, fd, "hello", 0));
    assert_int_equal(0, brick_op(t, OP_UNLINK, .parent = t->root, .name = "a"));
    assert_true(on_brick(t, ".glusterfs/unlink/11111111-2222-3333-4444-000000000001"));
    assert_int_not_equal(0, access(handle_path(t, GFID(1)), F_OK));
    assert_int_equal(5, brick_op(t, OP_READ, .inode = f, .fd = fd, .size = 10));
    assert_int_equal(0, t->r->stat.nlink);
    assert_int_equal(5, brick_write(t, f, fd, "again", 5));
    assert_int_equal(0, brick_op(t, OP_STAT, .inode = f));
    assert_int_equal(10, t->r->stat.size);
    struct iatt m = { .mode = 0600 };
    assert_int_equal(0, brick_op(t, OP_SETATTR, .inode = f, .attr = &m, .valid = ATTR_MODE));
    assert_int_equal(-ENOENT, brick_op(t, OP_LOOKUP, .inode = f));
    SCOPED(dict_unref) struct dict *x = dict_new();
    dict_set_uint(x, "unlinked-lookup", 1);
    assert_int_equal(0, brick_op(t, OP_LOOKUP, .inode = f, .xdata = x));
    assert_int_equal(0, t->r->stat.nlink);
    brick_release(t, fd);
    assert_false(on_brick(t, ".glusterfs/unlink/11111111-2222-3333-4444-000000000001"));
}

BRICK_TEST(unlink_conditions)
{
    SCOPED(dict_unref) struct dict *linkto = dict_new();
    SCOPED(dict_unref) struct dict *unopened = dict_new();
    struct fd *fd;
    brick_start(t, NULL);
    dict_set_int(linkto, "unlink-only-if-dht-linkto-file", 1);
    dict_set_int(unopened, "dont-unlink-for-open-fd", 1);
    brick_create(t, t->root, "a", GFID(1), &fd);
    assert_int_equal(-EBUSY, brick_op(t, OP_UNLINK, .parent = t->root, .name = "a", .xdata = unopened));
    assert_int_equal(-EBUSY, brick_op(t, OP_UNLINK, .parent = t->root, .name = "a", .xdata = linkto));
    assert_int_equal(0, chmod(brick_path(t, "a"), 01000));
    assert_int_equal(-EBUSY, brick_op(t, OP_UNLINK, .parent = t->root, .name = "a", .xdata = linkto));
    assert_int_equal(0, setxattr(brick_path(t, "a"), "trusted.glusterfs.dht.linkto", "b", 2, 0));
    assert_int_equal(0, brick_op(t, OP_UNLINK, .parent = t->root, .name = "a", .xdata = linkto));
}

BRICK_TEST(rmdir_removes_the_handle)
{
    brick_start(t, NULL);
    struct inode *d = brick_mkdir(t, t->root, "d", GFID(1));
    brick_create(t, d, "a", GFID(2), NULL);
    assert_int_equal(-ENOTEMPTY, brick_op(t, OP_RMDIR, .parent = t->root, .name = "d"));
    assert_link_text(handle_path(t, GFID(1)), "../../00/00/" ROOT_TEXT "/d");
    assert_int_equal(0, brick_op(t, OP_UNLINK, .parent = d, .name = "a"));
    assert_int_equal(0, brick_op(t, OP_RMDIR, .parent = t->root, .name = "d"));
    struct stat st;
    assert_int_not_equal(0, lstat(handle_path(t, GFID(1)), &st));
    assert_int_equal(-ESTALE, brick_lookup(t, d, "a", NULL));
    assert_int_equal(-ENOTDIR, (brick_create(t, t->root, "f", GFID(3), NULL),
                                brick_op(t, OP_RMDIR, .parent = t->root, .name = "f")));
    assert_int_equal(-EISDIR,
                     (brick_mkdir(t, t->root, "e", GFID(4)), brick_op(t, OP_UNLINK, .parent = t->root, .name = "e")));
}

BRICK_TEST(recursive_rmdir_goes_through_landfill)
{
    struct stat st;
    brick_start(t, "janitor-sleep-duration", "1", NULL);
    struct inode *d = brick_mkdir(t, t->root, "d", GFID(1)), *e = brick_mkdir(t, d, "e", GFID(2));
    brick_create(t, e, "a", GFID(3), NULL);
    assert_int_equal(0, brick_op(t, OP_RMDIR, .parent = t->root, .name = "d", .flags = 1));
    assert_false(on_brick(t, "d"));
    for (int i = 0; i < 100 && access(handle_path(t, GFID(3)), F_OK) == 0; i++)
        assert_int_equal(0, fiber_sleep_ms(NULL, 50));
    assert_int_not_equal(0, access(handle_path(t, GFID(3)), F_OK));
    for (int i = 0; i < 100 && rmdir(brick_path(t, ".glusterfs/landfill")) != 0; i++)
        assert_int_equal(0, fiber_sleep_ms(NULL, 50));
    assert_int_not_equal(0, lstat(handle_path(t, GFID(2)), &st));
    assert_int_not_equal(0, lstat(handle_path(t, GFID(1)), &st));
}

/* ---- rename ---- */

BRICK_TEST(rename_moves_the_path_mark)
{
    brick_start(t, NULL);
    struct inode *d = brick_mkdir(t, t->root, "d", GFID(1));
    brick_create(t, t->root, "f1", GFID(2), NULL);
    assert_int_equal(0, brick_op(t, OP_RENAME, .parent = t->root, .name = "f1", .parent2 = t->root, .name2 = "hl"));
    assert_true(gfid_equal(&t->r->stat.gfid, GFID(2)));
    assert_no_xattr(brick_path(t, "hl"), "trusted.gfid2path.5b24eafb4345038c");
    assert_xattr(brick_path(t, "hl"), "trusted.gfid2path.fc3a546245cf3421", ROOT_TEXT "/hl", 39);
    assert_int_equal(0, brick_op(t, OP_RENAME, .parent = t->root, .name = "hl", .parent2 = d, .name2 = "x"));
    assert_int_equal(0, brick_lookup(t, d, "x", NULL));
    assert_int_equal(1, t->r->stat.nlink);
    assert_int_equal(-ENOENT, brick_op(t, OP_RENAME, .parent = t->root, .name = "hl", .parent2 = d, .name2 = "y"));
}

BRICK_TEST(rename_over_a_file_removes_its_handle)
{
    struct fd *fd;
    brick_start(t, NULL);
    brick_create(t, t->root, "a", GFID(1), NULL);
    brick_create(t, t->root, "b", GFID(2), NULL);
    assert_int_equal(0, brick_op(t, OP_RENAME, .parent = t->root, .name = "a", .parent2 = t->root, .name2 = "b"));
    assert_int_not_equal(0, access(handle_path(t, GFID(2)), F_OK));
    assert_same_inode(brick_path(t, "b"), handle_path(t, GFID(1)));
    struct inode *c = brick_create(t, t->root, "c", GFID(3), &fd);
    assert_int_equal(0, brick_op(t, OP_RENAME, .parent = t->root, .name = "b", .parent2 = t->root, .name2 = "c"));
    assert_true(on_brick(t, ".glusterfs/unlink/11111111-2222-3333-4444-000000000003"));
    assert_int_equal(2, brick_write(t, c, fd, "ok", 0));
}

BRICK_TEST(rename_of_a_directory_moves_its_handle)
{
    brick_start(t, NULL);
    struct inode *d = brick_mkdir(t, t->root, "d", GFID(1)), *e = brick_mkdir(t, t->root, "e", GFID(2));
    brick_create(t, d, "a", GFID(3), NULL);
    assert_int_equal(0, brick_op(t, OP_RENAME, .parent = t->root, .name = "d", .parent2 = e, .name2 = "n"));
    assert_link_text(handle_path(t, GFID(1)), "../../11/11/11111111-2222-3333-4444-000000000002/n");
    assert_int_equal(0, brick_lookup(t, d, "a", NULL));
    brick_stop(t);
    brick_start(t, NULL);
    assert_int_equal(0, brick_lookup(t, brick_inode(t, GFID(1), S_IFDIR), "a", NULL));
    /* Over an empty directory, and not over a full one. */
    struct inode *full = brick_mkdir(t, t->root, "full", GFID(4)), *empty = brick_mkdir(t, t->root, "empty", GFID(5));
    brick_create(t, full, "x", GFID(6), NULL);
    assert_int_equal(-ENOTEMPTY,
                     brick_op(t, OP_RENAME, .parent = t->root, .name = "empty", .parent2 = t->root, .name2 = "full"));
    assert_link_text(handle_path(t, GFID(5)), "../../00/00/" ROOT_TEXT "/empty");
    assert_link_text(handle_path(t, GFID(4)), "../../00/00/" ROOT_TEXT "/full");
    assert_int_equal(0,
                     brick_op(t, OP_RENAME, .parent = t->root, .name = "full", .parent2 = t->root, .name2 = "empty"));
    assert_link_text(handle_path(t, GFID(4)), "../../00/00/" ROOT_TEXT "/empty");
    struct stat st;
    assert_int_not_equal(0, lstat(handle_path(t, &empty->gfid), &st));
}

BRICK_TEST(rename_flags)
{
    brick_start(t, NULL);
    brick_create(t, t->root, "f1", GFID(1), NULL);
    brick_mkdir(t, t->root, "d", GFID(2));
    assert_int_equal(-EEXIST, brick_op(t, OP_RENAME, .parent = t->root, .name = "f1", .parent2 = t->root, .name2 = "d",
                                       .flags = RENAME_NOREPLACE));
    assert_int_equal(-EISDIR,
                     brick_op(t, OP_RENAME, .parent = t->root, .name = "f1", .parent2 = t->root, .name2 = "d"));
    assert_int_equal(-ENOTDIR,
                     brick_op(t, OP_RENAME, .parent = t->root, .name = "d", .parent2 = t->root, .name2 = "f1"));
    assert_int_equal(0, brick_op(t, OP_RENAME, .parent = t->root, .name = "f1", .parent2 = t->root, .name2 = "d",
                                 .flags = RENAME_EXCHANGE));
    assert_link_text(handle_path(t, GFID(2)), "../../00/00/" ROOT_TEXT "/f1");
    assert_same_inode(brick_path(t, "d"), handle_path(t, GFID(1)));
    assert_no_xattr(brick_path(t, "d"), "trusted.gfid2path.5b24eafb4345038c");
    assert_int_equal(0, brick_lookup(t, t->root, "f1", NULL));
    assert_true(S_ISDIR(t->r->stat.mode));
}

BRICK_TEST(rename_onto_another_name_of_the_same_file_does_nothing)
{
    brick_start(t, NULL);
    struct inode *f = brick_create(t, t->root, "a", GFID(1), NULL);
    assert_int_equal(0, brick_op(t, OP_LINK, .inode = f, .parent2 = t->root, .name2 = "b"));
    assert_int_equal(0, brick_op(t, OP_RENAME, .parent = t->root, .name = "a", .parent2 = t->root, .name2 = "b"));
    assert_true(on_brick(t, "a") && on_brick(t, "b"));
}

BRICK_TEST(link_limits)
{
    char name[16];
    brick_start(t, "max-hardlinks", "3", NULL);
    struct inode *f = brick_create(t, t->root, "a", GFID(1), NULL);
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "l%d", i);
        assert_int_equal(0, brick_op(t, OP_LINK, .inode = f, .parent2 = t->root, .name2 = name));
    }
    assert_int_equal(-EMLINK, brick_op(t, OP_LINK, .inode = f, .parent2 = t->root, .name2 = "more"));
    struct inode *d = brick_mkdir(t, t->root, "d", GFID(2));
    assert_int_equal(-EPERM, brick_op(t, OP_LINK, .inode = d, .parent2 = t->root, .name2 = "more"));
    assert_int_equal(-EEXIST, brick_op(t, OP_UNLINK, .parent = t->root, .name = "l0")
                                  ? 0
                                  : brick_op(t, OP_LINK, .inode = f, .parent2 = t->root, .name2 = "l1"));
}

BRICK_TEST(pgfid_counts_links_per_directory)
{
    static const uint8_t two[4] = { 0, 0, 0, 2 }, one[4] = { 0, 0, 0, 1 };
    brick_start(t, "update-link-count-parent", "on", NULL);
    struct inode *f = brick_create(t, t->root, "a", GFID(1), NULL);
    assert_int_equal(0, brick_op(t, OP_LINK, .inode = f, .parent2 = t->root, .name2 = "b"));
    assert_xattr(brick_path(t, "a"), "trusted.pgfid." ROOT_TEXT, two, 4);
    assert_int_equal(0, brick_op(t, OP_UNLINK, .parent = t->root, .name = "b"));
    assert_xattr(brick_path(t, "a"), "trusted.pgfid." ROOT_TEXT, one, 4);
    struct inode *d = brick_mkdir(t, t->root, "d", GFID(2));
    assert_int_equal(0, brick_op(t, OP_RENAME, .parent = t->root, .name = "a", .parent2 = d, .name2 = "a"));
    assert_no_xattr(brick_path(t, "d/a"), "trusted.pgfid." ROOT_TEXT);
    assert_xattr(brick_path(t, "d/a"), "trusted.pgfid.11111111-2222-3333-4444-000000000002", one, 4);
}

/* ---- xattrs ---- */

BRICK_TEST(setxattr_getxattr_removexattr)
{
    SCOPED(dict_unref) struct dict *x = dict_new();
    const void *data;
    size_t size;
    struct iatt a;
    brick_start(t, NULL);
    struct inode *f = brick_create(t, t->root, "a", GFID(1), NULL);
    dict_set_bin(x, "user.color", "red", 3);
    assert_int_equal(0, brick_op(t, OP_SETXATTR, .inode = f, .xattrs = x));
    assert_int_equal(0, dict_get_iatt(t->r->xdata, "virt-gf-poststat", &a));
    assert_int_equal(0, dict_get_iatt(t->r->xdata, "virt-gf-prestat", &a));
    assert_int_equal(-EEXIST, brick_op(t, OP_SETXATTR, .inode = f, .xattrs = x, .flags = XATTR_CREATE));
    assert_int_equal(3, brick_op(t, OP_GETXATTR, .inode = f, .text = "user.color"));
    assert_int_equal(0, dict_get_bin(t->r->xattrs, "user.color", &data, &size));
    assert_memory_equal("red", data, 3);
    assert_true(brick_op(t, OP_GETXATTR, .inode = f) > 0);
    assert_true(dict_has(t->r->xattrs, "user.color"));
    assert_false(dict_has(t->r->xattrs, "trusted.gfid"));
    assert_int_equal(0, brick_op(t, OP_REMOVEXATTR, .inode = f, .text = "user.color"));
    assert_int_equal(-ENODATA, brick_op(t, OP_REMOVEXATTR, .inode = f, .text = "user.color"));
    assert_int_equal(-ENODATA, brick_op(t, OP_GETXATTR, .inode = f, .text = "user.color"));
}

BRICK_TEST(internal_xattrs_are_hidden_and_protected)
{
    SCOPED(dict_unref) struct dict *x = dict_new();
    brick_start(t, NULL);
    t->call.time_flags = 0x1f;
    t->call.time_s = 1000;
    struct inode *f = brick_create(t, t->root, "big", GFID(1), NULL);
    dict_set_bin(x, "trusted.gfid", GFID(2), 16);
    assert_int_equal(-EPERM, brick_op(t, OP_SETXATTR, .inode = f, .xattrs = x));
    assert_int_equal(-EPERM, brick_op(t, OP_REMOVEXATTR, .inode = f, .text = "trusted.gfid"));
    assert_int_equal(-EPERM, brick_op(t, OP_REMOVEXATTR, .inode = f, .text = "trusted.gfid2path.fd913bbfc43e6a69"));
    assert_int_equal(-ENODATA, brick_op(t, OP_GETXATTR, .inode = f, .text = "trusted.gfid2path.fd913bbfc43e6a69"));
    assert_int_equal(-ENODATA, brick_op(t, OP_GETXATTR, .inode = f, .text = "trusted.glusterfs.mdata"));
    assert_int_equal(0, brick_op(t, OP_GETXATTR, .inode = f));
    assert_false(dict_has(t->r->xattrs, "trusted.gfid2path.fd913bbfc43e6a69"));
    assert_false(dict_has(t->r->xattrs, "trusted.glusterfs.mdata"));
    t->call.pid = PID_SELF_HEAL;
    assert_int_equal(57, brick_op(t, OP_GETXATTR, .inode = f, .text = "trusted.glusterfs.mdata"));
}

BRICK_TEST(xattrop_adds_arrays)
{
    SCOPED(dict_unref) struct dict *x = dict_new();
    static const uint8_t one[12] = { 0, 0, 0, 1, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff };
    static const uint8_t sum[12] = { 0, 0, 0, 2, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xfe };
    static const uint8_t zero[12] = { 0 };
    const void *data;
    size_t size;
    brick_start(t, NULL);
    struct inode *f = brick_create(t, t->root, "a", GFID(1), NULL);
    dict_set_bin(x, "trusted.afr.dirty", one, 12);
    assert_int_equal(0, brick_op(t, OP_XATTROP, .inode = f, .flags = XATTROP_ADD32, .xattrs = x));
    assert_int_equal(0, brick_op(t, OP_XATTROP, .inode = f, .flags = XATTROP_ADD32, .xattrs = x));
    assert_int_equal(0, dict_get_bin(t->r->xattrs, "trusted.afr.dirty", &data, &size));
    assert_int_equal(12, size);
    assert_memory_equal(sum, data, 12);
    assert_xattr(brick_path(t, "a"), "trusted.afr.dirty", sum, 12);
    /* Zeros read and write nothing. */
    dict_set_bin(x, "trusted.afr.dirty", zero, 12);
    dict_set_bin(x, "trusted.afr.web-client-1", zero, 12);
    assert_int_equal(0, brick_op(t, OP_XATTROP, .inode = f, .flags = XATTROP_ADD32, .xattrs = x));
    assert_int_equal(0, dict_get_bin(t->r->xattrs, "trusted.afr.dirty", &data, &size));
    assert_memory_equal(sum, data, 12);
    assert_int_equal(0, dict_get_bin(t->r->xattrs, "trusted.afr.web-client-1", &data, &size));
    assert_memory_equal(zero, data, 12);
    assert_no_xattr(brick_path(t, "a"), "trusted.afr.web-client-1");
}

BRICK_TEST(xattrop_other_forms)
{
    SCOPED(dict_unref) struct dict *x = dict_new();
    static const uint8_t a[8] = { 0, 0, 0, 0, 0, 0, 0, 5 }, minus[8] = { 255, 255, 255, 255, 255, 255, 255, 254 };
    static const uint8_t with_default[16] = { 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0 };
    static const uint8_t result[8] = { 0, 0, 0, 0, 0, 0, 1, 1 };
    const void *data;
    size_t size;
    brick_start(t, NULL);
    struct inode *f = brick_create(t, t->root, "a", GFID(1), NULL);
    dict_set_bin(x, "trusted.ec.size", a, 8);
    assert_int_equal(0, brick_op(t, OP_XATTROP, .inode = f, .flags = XATTROP_ADD64, .xattrs = x));
    dict_set_bin(x, "trusted.ec.size", minus, 8);
    assert_int_equal(0, brick_op(t, OP_XATTROP, .inode = f, .flags = XATTROP_ADD64, .xattrs = x));
    assert_int_equal(0, dict_get_bin(t->r->xattrs, "trusted.ec.size", &data, &size));
    assert_int_equal(3, get_be64(data));
    dict_set_bin(x, "trusted.ec.size", a, 8);
    assert_int_equal(0, brick_op(t, OP_XATTROP, .inode = f, .flags = XATTROP_GET_AND_SET, .xattrs = x));
    assert_int_equal(0, dict_get_bin(t->r->xattrs, "trusted.ec.size", &data, &size));
    assert_int_equal(3, get_be64(data));
    assert_xattr(brick_path(t, "a"), "trusted.ec.size", a, 8);
    SCOPED(dict_unref) struct dict *d = dict_new();
    dict_set_bin(d, "trusted.x", with_default, 16);
    assert_int_equal(0, brick_op(t, OP_XATTROP, .inode = f, .flags = XATTROP_ADD64_DEFAULT, .xattrs = d));
    assert_xattr(brick_path(t, "a"), "trusted.x", result, 8);
}

BRICK_TEST(virtual_names)
{
    const char *text;
    char want[256];
    brick_start(t, "glusterd-uuid", "abc", "hostname", "node1", NULL);
    struct inode *d = brick_mkdir(t, t->root, "d", GFID(1));
    struct inode *f = brick_create(t, d, "File", GFID(2), NULL);
    assert_true(brick_op(t, OP_GETXATTR, .inode = f, .text = "trusted.glusterfs.pathinfo") > 0);
    assert_int_equal(0, dict_get_str(t->r->xattrs, "trusted.glusterfs.pathinfo", &text));
    snprintf(want, sizeof want, "<POSIX(%s):node1:%s/d/File>", t->dir, t->dir);
    assert_string_equal(want, text);
    assert_true(brick_op(t, OP_GETXATTR, .inode = t->root, .text = "glusterfs.pathinfo") > 0);
    assert_int_equal(0, dict_get_str(t->r->xattrs, "glusterfs.pathinfo", &text));
    snprintf(want, sizeof want, "<POSIX(%s):node1:%s/>", t->dir, t->dir);
    assert_string_equal(want, text);
    assert_int_equal(0, brick_op(t, OP_LINK, .inode = f, .parent2 = t->root, .name2 = "second"));
    assert_true(brick_op(t, OP_GETXATTR, .inode = f, .text = "glusterfs.gfidtopath") > 0);
    assert_int_equal(0, dict_get_str(t->r->xattrs, "glusterfs.gfidtopath", &text));
    assert_true(strstr(text, "/d/File") && strstr(text, "/second") && strchr(text, ':'));
    assert_true(brick_op(t, OP_GETXATTR, .inode = d, .text = "glusterfs.get_real_filename:fILE") > 0);
    assert_int_equal(0, dict_get_str(t->r->xattrs, "glusterfs.get_real_filename:fILE", &text));
    assert_string_equal("File", text);
    assert_int_equal(-ENOENT, brick_op(t, OP_GETXATTR, .inode = d, .text = "glusterfs.get_real_filename:none"));
    assert_true(brick_op(t, OP_GETXATTR, .inode = f, .text = "trusted.glusterfs.node-uuid") > 0);
}

/* ---- directories ---- */

static unsigned list_all(struct brick_test *t, struct inode *dir, struct fd *fd, enum op op, uint64_t budget)
{
    unsigned count = 0;
    uint64_t offset = 0;
    for (;;) {
        int n = brick_call(t, &(struct request) { .op = op, .inode = dir, .fd = fd, .size = budget, .offset = offset });
        assert_true(n >= 0);
        if (n == 0)
            return count;
        count += (unsigned)n;
        offset = t->r->entries->list[n - 1].offset;
        if (t->r->entries->at_end)
            return count;
    }
}

BRICK_TEST(readdir_lists_everything_once_in_small_steps)
{
    char name[32];
    brick_start(t, NULL);
    struct inode *d = brick_mkdir(t, t->root, "d", GFID(1));
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "d/file-%d", i);
        assert_int_equal(0, close(open(brick_path(t, "%s", name), O_CREAT | O_WRONLY, 0644)));
    }
    struct fd *fd = brick_fd(t, d, O_RDONLY);
    assert_int_equal(0, brick_op(t, OP_OPENDIR, .inode = d, .fd = fd));
    assert_int_equal(1002, list_all(t, d, fd, OP_READDIR, 4096));
    assert_int_equal(1002, list_all(t, d, fd, OP_READDIR, 131072));
    assert_int_equal(1002, list_all(t, d, fd, OP_READDIRP, 4096));
    assert_int_equal(-EINVAL, brick_op(t, OP_READDIR, .inode = d, .fd = fd, .size = 10));
}

BRICK_TEST(readdirp_carries_attributes_and_xattrs)
{
    SCOPED(dict_unref) struct dict *wanted = dict_new();
    brick_start(t, NULL);
    brick_create(t, t->root, "a", GFID(1), NULL);
    brick_mkdir(t, t->root, "d", GFID(2));
    assert_int_equal(0, setxattr(brick_path(t, "a"), "user.x", "1", 1, 0));
    struct fd *fd = brick_fd(t, t->root, O_RDONLY);
    assert_int_equal(0, brick_op(t, OP_OPENDIR, .inode = t->root, .fd = fd));
    dict_set_int(wanted, "user.x", 0);
    for (int round = 0; round < 2; round++) {
        int n = brick_op(t, OP_READDIRP, .inode = t->root, .fd = fd, .size = 65536, .xattrs = wanted);
        assert_int_equal(4, n); /* . .. a d, and no .glusterfs */
        for (int i = 0; i < n; i++) {
            struct dir_entry *e = &t->r->entries->list[i];
            if (strcmp(e->name, "a") == 0) {
                assert_true(gfid_equal(&e->stat.gfid, GFID(1)));
                assert_int_equal(1, e->stat.nlink);
                assert_true(dict_has(e->xattrs, "user.x"));
                assert_int_equal(gfid_to_ino(GFID(1)), e->ino);
            } else if (strcmp(e->name, "d") == 0) {
                assert_true(gfid_equal(&e->stat.gfid, GFID(2)));
                assert_int_equal(DT_DIR, e->type);
            } else if (strcmp(e->name, ".") == 0) {
                assert_true(gfid_is_root(&e->stat.gfid));
            } else {
                assert_string_equal("..", e->name);
                assert_false(iatt_is_set(&e->stat));
            }
        }
        assert_true(t->r->entries->at_end);
        brick_stop(t); /* the second time nothing is known but what is on the disk */
        brick_start(t, NULL);
        fd = brick_fd(t, t->root, O_RDONLY);
        assert_int_equal(0, brick_op(t, OP_OPENDIR, .inode = t->root, .fd = fd));
    }
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
        T(mkdir_makes_a_symlink_as_handle),
        T(mkdir_of_a_gfid_that_is_elsewhere_is_refused),
        T(mkdir_checks_the_parent_layout),
        T(special_files_have_gfids_too),
        T(internal_mknod_links_a_known_gfid),
        T(lookup_finds_by_name_and_by_gfid),
        T(lookup_after_restart),
        T(lookup_gives_an_old_file_a_gfid),
        T(lookup_without_gfid_on_request),
        T(lookup_answers_xattrs_and_content),
        T(lookup_makes_a_lost_handle_again),
        T(lookup_removes_a_handle_without_a_name),
        T(lookup_reaches_very_deep_directories),
        T(dotdot_is_the_parent),
        T(write_and_read_back),
        T(large_and_synchronous_writes),
        T(append_goes_to_the_end_and_says_so),
        T(appends_at_once_do_not_overwrite_each_other),
        T(direct_reads_and_writes_of_any_alignment),
        T(truncate_both_ways),
        T(fallocate_punch_zero_and_refusals),
        T(seek_finds_holes),
        T(copy_range_copies),
        T(fsync_and_fsyncdir),
        T(open_of_what_has_no_data_is_refused),
        T(rchecksum_of_a_block),
        T(setattr_changes_and_answers_both_states),
        T(client_times_never_go_back_but_by_utimes),
        T(content_changed_without_a_time_moves_by_the_clock_of_the_brick),
        T(ctime_off_shows_the_inode),
        T(statfs_shares_and_reserves),
        T(unlink_removes_name_and_handle),
        T(unlink_of_one_of_two_names),
        T(unlink_of_an_open_file_keeps_it_until_release),
        T(unlink_conditions),
        T(rmdir_removes_the_handle),
        T(recursive_rmdir_goes_through_landfill),
        T(rename_moves_the_path_mark),
        T(rename_over_a_file_removes_its_handle),
        T(rename_of_a_directory_moves_its_handle),
        T(rename_flags),
        T(rename_onto_another_name_of_the_same_file_does_nothing),
        T(link_limits),
        T(pgfid_counts_links_per_directory),
        T(setxattr_getxattr_removexattr),
        T(internal_xattrs_are_hidden_and_protected),
        T(xattrop_adds_arrays),
        T(xattrop_other_forms),
        T(virtual_names),
        T(readdir_lists_everything_once_in_small_steps),
        T(readdirp_carries_attributes_and_xattrs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
