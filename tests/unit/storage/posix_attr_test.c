/* Attributes, xattrs and listings of storage/posix. */
#include "unit/storage/brick_fixture.h"
#include <dirent.h>
#include <stdio.h>
#include <linux/fs.h>
#include <sys/sysmacros.h>

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

/* Both bricks of a mirror give a directory without stored times that of the change, and not each its own clock's. */
BRICK_TEST(first_change_of_a_directory_has_the_time_of_the_call)
{
    struct timespec now;
    brick_start(t, NULL);
    assert_int_equal(0, clock_gettime(CLOCK_REALTIME, &now));
    t->call.time_flags = 0x1f;
    t->call.time_s = now.tv_sec;
    t->call.time_ns = 0;
    brick_create(t, t->root, "a", GFID(1), NULL);
    assert_int_equal(now.tv_sec, t->r->post.mtime);
    assert_int_equal(0, t->r->post.mtime_nsec);
    assert_int_equal(now.tv_sec, t->r->post.ctime);
    assert_int_equal(0, t->r->post.ctime_nsec);
}

#define T(name) cmocka_unit_test(name)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        T(first_change_of_a_directory_has_the_time_of_the_call),
        T(setattr_changes_and_answers_both_states),
        T(client_times_never_go_back_but_by_utimes),
        T(content_changed_without_a_time_moves_by_the_clock_of_the_brick),
        T(ctime_off_shows_the_inode),
        T(statfs_shares_and_reserves),
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
