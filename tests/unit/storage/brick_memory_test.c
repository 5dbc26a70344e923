/* Lack of memory at every single allocation: an error, no crash, nothing half done, no leak. */
#include "unit/storage/brick_fixture.h"
#include <stdio.h>

/* Runs the request with the 1st, 2nd, ... allocation failing until one run needs fewer. Optional parts of an answer may
 * be left out for lack of memory, so a run may also succeed. */
typedef int (*attempt_fn)(struct brick_test *t);
static void sweep(struct brick_test *t, attempt_fn attempt, void (*reset)(struct brick_test *t))
{
    for (uint64_t n = 1; n < 200; n++) {
        reply_done(t->r);
        mem_fail_at(n);
        int r = attempt(t);
        bool fired = mem_fail_at(0) == 0;
        if (!fired) {
            assert_true(r >= 0);
            return;
        }
        assert_true(r == -ENOMEM || r >= 0);
        if (reset && r >= 0)
            reset(t);
    }
    fail_msg("no end of allocations");
}

static struct inode *subject;
static struct fd *subject_fd;
static struct dict *asked;

static int try_create(struct brick_test *t)
{
    return brick_op(t, OP_CREATE, .parent = t->root, .name = "a", .inode = subject, .fd = subject_fd,
                    .flags = O_RDWR | O_EXCL, .mode = 0644);
}

static void drop_a(struct brick_test *t)
{
    brick_release(t, subject_fd);
    assert_int_equal(0, brick_op(t, OP_UNLINK, .parent = t->root, .name = "a"));
    subject_fd = brick_fd(t, subject, O_RDWR);
}

BRICK_TEST(create)
{
    brick_start(t, NULL);
    subject = brick_inode(t, GFID(1), S_IFREG);
    subject_fd = brick_fd(t, subject, O_RDWR);
    sweep(t, try_create, drop_a);
    assert_true(on_brick(t, "a"));
    assert_int_equal(0, brick_lookup(t, t->root, "a", NULL));
    assert_int_equal(1, t->r->stat.nlink);
}

static int try_symlink(struct brick_test *t)
{
    return brick_op(t, OP_SYMLINK, .parent = t->root, .name = "l", .inode = subject, .text = "x");
}

static void drop_l(struct brick_test *t)
{
    assert_int_equal(0, brick_op(t, OP_UNLINK, .parent = t->root, .name = "l"));
}

BRICK_TEST(make_symlink)
{
    brick_start(t, "xattr-namespace", "user", NULL);
    subject = brick_inode(t, GFID(1), S_IFLNK);
    sweep(t, try_symlink, drop_l);
    assert_int_equal(0, brick_lookup(t, t->root, "l", NULL));
}

static int try_lookup(struct brick_test *t)
{
    return brick_lookup(t, t->root, "a", asked);
}

static int try_readdirp(struct brick_test *t)
{
    return brick_op(t, OP_READDIRP, .inode = t->root, .fd = subject_fd, .size = 65536, .xattrs = asked);
}

static int try_getxattr(struct brick_test *t)
{
    return brick_op(t, OP_GETXATTR, .inode = subject);
}

static int try_path(struct brick_test *t)
{
    return brick_op(t, OP_GETXATTR, .inode = subject, .text = "trusted.glusterfs.pathinfo");
}

static int try_xattrop(struct brick_test *t)
{
    SCOPED(dict_unref) struct dict *x = dict_new();
    if (!x || dict_set_bin(x, "trusted.afr.dirty", "\0\0\0\1\0\0\0\0\0\0\0\0", 12) < 0)
        return -ENOMEM;
    return brick_op(t, OP_XATTROP, .inode = subject, .xattrs = x, .xdata = asked);
}

static int try_read(struct brick_test *t)
{
    return brick_op(t, OP_READ, .inode = subject, .size = 4096, .xdata = asked);
}

static int try_write(struct brick_test *t)
{
    SCOPED(buf_unref) struct buf *b = buf_copy("hello", 5);
    return b ? brick_op(t, OP_WRITE, .inode = subject, .data = b, .xdata = asked) : -ENOMEM;
}

static int try_rename(struct brick_test *t)
{
    static bool back;
    int r = brick_op(t, OP_RENAME, .parent = t->root, .name = back ? "b" : "a", .parent2 = t->root,
                     .name2 = back ? "a" : "b");
    if (r == 0)
        back = !back;
    return r;
}

BRICK_TEST(everything_else)
{
    brick_start(t, NULL);
    struct inode *d = brick_mkdir(t, t->root, "d", GFID(2));
    subject = brick_create(t, d, "x", GFID(1), NULL);
    brick_create(t, t->root, "a", GFID(3), NULL);
    subject_fd = brick_fd(t, t->root, O_RDONLY);
    assert_int_equal(0, brick_op(t, OP_OPENDIR, .inode = t->root, .fd = subject_fd));
    asked = dict_new();
    dict_set_int(asked, "list-xattr", 1);
    dict_set_uint(asked, "glusterfs.open-fd-count", 4);
    dict_set_uint(asked, "glusterfs.write-is-append", 4);
    dict_set_uint(asked, "trusted.gfid", 16);
    sweep(t, try_lookup, NULL);
    sweep(t, try_readdirp, NULL);
    sweep(t, try_getxattr, NULL);
    sweep(t, try_path, NULL);
    sweep(t, try_xattrop, NULL);
    sweep(t, try_write, NULL);
    sweep(t, try_read, NULL);
    sweep(t, try_rename, NULL);
    dict_unref(take(asked));
}

#define T(name) cmocka_unit_test(name)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        T(create),
        T(make_symlink),
        T(everything_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
