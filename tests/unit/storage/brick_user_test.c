/* User mode: a brick without CAP_SYS_ADMIN, symlinks and special files included. The whole program gives the right up. */
#include "unit/storage/brick_fixture.h"
#include <stdio.h>
#include <sys/sysmacros.h>

BRICK_TEST(trusted_names_are_kept_as_user_names)
{
    SCOPED(dict_unref) struct dict *x = dict_new();
    brick_start(t, NULL);
    assert_non_null(strstr(brick_log(t), "[user-namespace]"));
    assert_xattr(t->dir, "user.gfid", &gfid_root, 16);
    struct inode *f = brick_create(t, t->root, "big", GFID(1), NULL);
    assert_xattr(brick_path(t, "big"), "user.gfid", GFID(1), 16);
    assert_xattr(brick_path(t, "big"), "user.gfid2path.fd913bbfc43e6a69", ROOT_TEXT "/big", 40);
    dict_set_bin(x, "trusted.afr.dirty", "\0\0\0\1\0\0\0\0\0\0\0\0", 12);
    assert_int_equal(0, brick_op(t, OP_XATTROP, .inode = f, .flags = XATTROP_ADD32, .xattrs = x));
    assert_xattr(brick_path(t, "big"), "user.afr.dirty", "\0\0\0\1\0\0\0\0\0\0\0\0", 12);
    assert_int_equal(12, brick_op(t, OP_GETXATTR, .inode = f, .text = "trusted.afr.dirty"));
    assert_true(brick_op(t, OP_GETXATTR, .inode = f) > 0);
    assert_true(dict_has(t->r->xattrs, "trusted.afr.dirty"));
    assert_false(dict_has(t->r->xattrs, "trusted.gfid")); /* as GlusterFS bricks list */
    assert_false(dict_has(t->r->xattrs, "user.gfid"));
}

BRICK_TEST(clients_cannot_forge_internal_names)
{
    SCOPED(dict_unref) struct dict *x = dict_new();
    brick_start(t, NULL);
    struct inode *f = brick_create(t, t->root, "a", GFID(1), NULL);
    dict_set_bin(x, "user.gfid", GFID(2), 16);
    assert_int_equal(-EPERM, brick_op(t, OP_SETXATTR, .inode = f, .xattrs = x));
    assert_int_equal(-ENODATA, brick_op(t, OP_GETXATTR, .inode = f, .text = "user.gfid"));
    assert_int_equal(-EPERM, brick_op(t, OP_REMOVEXATTR, .inode = f, .text = "user.gfid"));
    SCOPED(dict_unref) struct dict *own = dict_new();
    dict_set_bin(own, "user.gfids", "x", 1);
    assert_int_equal(0, brick_op(t, OP_SETXATTR, .inode = f, .xattrs = own));
    assert_true(brick_op(t, OP_GETXATTR, .inode = f) > 0);
    assert_true(dict_has(t->r->xattrs, "user.gfids"));
}

static void make_specials(struct brick_test *t)
{
    assert_int_equal(0, brick_op(t, OP_SYMLINK, .parent = t->root, .name = "l",
                                 .inode = brick_inode(t, GFID(1), S_IFLNK), .text = "target"));
    assert_int_equal(0, brick_op(t, OP_MKNOD, .parent = t->root, .name = "p", .inode = brick_inode(t, GFID(2), S_IFIFO),
                                 .mode = S_IFIFO | 0640));
    assert_int_equal(0, brick_op(t, OP_MKNOD, .parent = t->root, .name = "s",
                                 .inode = brick_inode(t, GFID(3), S_IFSOCK), .mode = S_IFSOCK | 0640));
}

static void assert_found(struct brick_test *t, const char *name, const struct gfid *g)
{
    assert_int_equal(0, brick_lookup(t, t->root, name, NULL));
    assert_true(gfid_equal(&t->r->stat.gfid, g));
    assert_int_equal(1, t->r->stat.nlink);
}

BRICK_TEST(symlinks_and_special_files_keep_their_xattrs)
{
    SCOPED(dict_unref) struct dict *x = dict_new();
    SCOPED(dict_unref) struct dict *ask = dict_new();
    const void *data;
    size_t size;
    brick_start(t, NULL);
    make_specials(t);
    dict_set_bin(x, "trusted.afr.web-client-1", "\0\0\0\0\0\0\0\1\0\0\0\0", 12);
    struct inode *l = brick_inode(t, GFID(1), S_IFLNK);
    assert_int_equal(0, brick_op(t, OP_XATTROP, .inode = l, .flags = XATTROP_ADD32, .xattrs = x));
    assert_true(on_brick(t, ".glusterfs/xattr/11/11/11111111-2222-3333-4444-000000000001"));
    brick_stop(t);
    brick_start(t, NULL);
    assert_found(t, "l", GFID(1));
    assert_found(t, "p", GFID(2));
    assert_found(t, "s", GFID(3));
    dict_set_uint(ask, "trusted.afr.web-client-1", 12);
    assert_int_equal(0, brick_op(t, OP_LOOKUP, .inode = brick_inode(t, GFID(1), 0), .xdata = ask));
    assert_int_equal(0, dict_get_bin(t->r->xdata, "trusted.afr.web-client-1", &data, &size));
    assert_memory_equal("\0\0\0\0\0\0\0\1\0\0\0\0", data, 12);
    assert_true(brick_op(t, OP_GETXATTR, .inode = brick_inode(t, GFID(1), 0), .text = "glusterfs.gfidtopath") > 0);
    const char *path;
    assert_int_equal(0, dict_get_str(t->r->xattrs, "glusterfs.gfidtopath", &path));
    assert_string_equal("/l", path);
    dict_clear(x);
    dict_set_bin(x, "user.x", "1", 1);
    assert_int_equal(-EPERM, brick_op(t, OP_SETXATTR, .inode = brick_inode(t, GFID(1), 0), .xattrs = x));
}

BRICK_TEST(side_files_follow_renames_and_go_with_the_inode)
{
    brick_start(t, NULL);
    make_specials(t);
    assert_int_equal(0, brick_op(t, OP_RENAME, .parent = t->root, .name = "l", .parent2 = t->root, .name2 = "m"));
    assert_found(t, "m", GFID(1));
    assert_int_equal(0,
                     brick_op(t, OP_LINK, .inode = brick_inode(t, GFID(1), S_IFLNK), .parent2 = t->root, .name2 = "n"));
    assert_int_equal(0, brick_op(t, OP_UNLINK, .parent = t->root, .name = "m"));
    assert_found(t, "n", GFID(1));
    assert_int_equal(0, brick_op(t, OP_UNLINK, .parent = t->root, .name = "n"));
    assert_false(on_brick(t, ".glusterfs/xattr/11/11/11111111-2222-3333-4444-000000000001"));
}

BRICK_TEST(an_inode_number_used_again_gets_no_old_gfid)
{
    struct stat st;
    char index[96];
    brick_start(t, NULL);
    make_specials(t);
    assert_int_equal(0, lstat(brick_path(t, "l"), &st));
    snprintf(index, sizeof index, ".glusterfs/xattr/ino/%02x/%llx", (unsigned)(st.st_ino & 255),
             (unsigned long long)st.st_ino);
    brick_stop(t);
    /* As if l had been another inode when the index was written. */
    assert_int_equal(0, unlink(brick_path(t, "%s", index)));
    assert_int_equal(0, symlink("11111111-2222-3333-4444-000000000002", brick_path(t, "%s", index)));
    brick_start(t, NULL);
    assert_int_equal(-ENODATA, brick_lookup(t, t->root, "l", NULL));
}

BRICK_TEST(a_copied_brick_gets_a_new_index)
{
    brick_start(t, NULL);
    make_specials(t);
    brick_stop(t);
    /* What a copy to another file system does to the index: other inode numbers, the text in `of` no longer right. */
    assert_int_equal(0, unlink(brick_path(t, ".glusterfs/xattr/ino/of")));
    assert_int_equal(0, rename(brick_path(t, ".glusterfs/xattr/ino"), brick_path(t, ".glusterfs/xattr/old")));
    brick_start(t, NULL);
    assert_found(t, "l", GFID(1));
    assert_found(t, "p", GFID(2));
}

BRICK_TEST(files_of_every_mode_take_xattrs)
{
    brick_start(t, NULL);
    struct inode *f = brick_inode(t, GFID(1), S_IFREG);
    assert_int_equal(0, brick_op(t, OP_MKNOD, .parent = t->root, .name = "secret", .inode = f, .mode = S_IFREG));
    assert_found(t, "secret", GFID(1));
}

BRICK_TEST(a_trusted_brick_is_not_taken_for_an_empty_one)
{
    assert_int_equal(0, mkdir(brick_path(t, ".glusterfs"), 0700));
    assert_int_equal(0, mkdir(brick_path(t, ".glusterfs/00"), 0700));
    assert_int_equal(0, mkdir(brick_path(t, ".glusterfs/00/00"), 0700));
    assert_int_equal(0, symlink("../../..", brick_path(t, ".glusterfs/00/00/" ROOT_TEXT)));
    assert_int_equal(-EPERM, brick_try(t, NULL));
    char want[256];
    snprintf(
        want, sizeof want,
        "section \"web-posix\" (storage/posix): brick %s was written with trusted.* attributes, which this process may not read; run it as "
        "root or with CAP_SYS_ADMIN",
        t->dir);
    assert_string_equal(want, t->err.text);
}

BRICK_TEST(trusted_on_request_needs_the_right)
{
    assert_int_equal(-EPERM, brick_try(t, "xattr-namespace", "trusted", NULL));
    char want[256];
    snprintf(
        want, sizeof want,
        "section \"web-posix\" (storage/posix): brick %s is to keep trusted.* attributes (option xattr-namespace trusted), which needs "
        "CAP_SYS_ADMIN; run it as root or set xattr-namespace to user",
        t->dir);
    assert_string_equal(want, t->err.text);
}

#define T(name) cmocka_unit_test(name)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        T(trusted_names_are_kept_as_user_names),
        T(clients_cannot_forge_internal_names),
        T(symlinks_and_special_files_keep_their_xattrs),
        T(side_files_follow_renames_and_go_with_the_inode),
        T(an_inode_number_used_again_gets_no_old_gfid),
        T(a_copied_brick_gets_a_new_index),
        T(files_of_every_mode_take_xattrs),
        T(a_trusted_brick_is_not_taken_for_an_empty_one),
        T(trusted_on_request_needs_the_right),
    };
    brick_tests_are_unprivileged = true;
    if (!brick_drop_sys_admin())
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
