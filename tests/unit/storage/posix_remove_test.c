/* Names of storage/posix that go away or move. */
#include "unit/storage/brick_fixture.h"
#include <dirent.h>
#include <stdio.h>
#include <linux/fs.h>
#include <sys/sysmacros.h>

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

BRICK_TEST(what_was_made_anew_keeps_its_handle_when_the_landfill_is_emptied)
{
    struct stat st, made;
    /* The first turn of the janitor comes at once; the second after all is done. */
    brick_start(t, "janitor-sleep-duration", "1", NULL);
    assert_int_equal(0, fiber_sleep_ms(NULL, 50));
    struct inode *d = brick_mkdir(t, t->root, "d", GFID(1));
    brick_mkdir(t, d, "e", GFID(2));
    struct inode *into = brick_mkdir(t, t->root, "into", GFID(4));
    assert_int_equal(0, brick_op(t, OP_RMDIR, .parent = t->root, .name = "d", .flags = 1));
    d = brick_mkdir(t, into, "d", GFID(1));
    brick_mkdir(t, d, "e", GFID(2));
    for (int i = 0; i < 100 && rmdir(brick_path(t, ".glusterfs/landfill")) != 0; i++)
        assert_int_equal(0, fiber_sleep_ms(NULL, 50));
    assert_int_equal(0, stat(brick_path(t, "into/d/e"), &made));
    assert_int_equal(0, stat(handle_path(t, GFID(1)), &st));
    assert_int_equal(0, stat(handle_path(t, GFID(2)), &st));
    assert_int_equal(made.st_ino, st.st_ino);
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

#define T(name) cmocka_unit_test(name)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        T(unlink_removes_name_and_handle),
        T(unlink_of_one_of_two_names),
        T(unlink_of_an_open_file_keeps_it_until_release),
        T(unlink_conditions),
        T(rmdir_removes_the_handle),
        T(recursive_rmdir_goes_through_landfill),
        T(what_was_made_anew_keeps_its_handle_when_the_landfill_is_emptied),
        T(rename_moves_the_path_mark),
        T(rename_over_a_file_removes_its_handle),
        T(rename_of_a_directory_moves_its_handle),
        T(rename_flags),
        T(rename_onto_another_name_of_the_same_file_does_nothing),
        T(link_limits),
        T(pgfid_counts_links_per_directory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
