/* A crash after every single step of an operation, then a restart: what is left is repaired by look-up, or gone. */
#include "unit/storage/brick_fixture.h"
#include <stdio.h>
#include <linux/fs.h>

#define STEPS_MAX 40

/* Runs op(t, n) with a crash at step n for n = 1, 2, ... until it runs through; restarts after each. Returns how many
 * steps the operation has. */
typedef int (*crash_op)(struct brick_test *t, uint8_t n);
static uint8_t sweep(struct brick_test *t, crash_op op, void (*prepare)(struct brick_test *t, uint8_t n))
{
    for (uint8_t n = 1; n < STEPS_MAX; n++) {
        brick_start(t, NULL);
        if (prepare)
            prepare(t, n);
        brick_stop(t);
        brick_start(t, NULL);
        posix_crash_at(t->posix, n);
        int r = op(t, n);
        bool fired = posix_crash_at(t->posix, 0) == 0;
        brick_stop(t);
        if (r == 0 && !fired)
            return n;
        assert_int_equal(-ESHUTDOWN, r);
    }
    fail_msg("no end of steps");
    return 0;
}

static const char *name_n(const char *prefix, uint8_t n)
{
    static char text[4][32];
    static unsigned next;
    char *at = text[next++ % 4];
    snprintf(at, sizeof text[0], "%s-%u", prefix, n);
    return at;
}

static struct dict *gfid_request(uint8_t n)
{
    struct dict *x = dict_new();
    dict_set_gfid(x, "gfid-req", GFID(n));
    return x;
}

/* The entry is whole: gfid on disk, a handle that is the same inode, one name. */
static void assert_whole(struct brick_test *t, struct inode *parent, const char *name, const struct gfid *g)
{
    struct stat a, b;
    assert_int_equal(0, brick_lookup(t, parent, name, NULL));
    assert_true(gfid_equal(&t->r->stat.gfid, g));
    if (!S_ISDIR(t->r->stat.mode))
        assert_int_equal(1, t->r->stat.nlink);
    assert_int_equal(0, brick_op(t, OP_LOOKUP, .inode = brick_inode(t, g, 0)));
    assert_int_equal(0, S_ISDIR(t->r->stat.mode) ? stat(handle_path(t, g), &a) : lstat(handle_path(t, g), &a));
    if (parent == t->root) {
        assert_int_equal(0, lstat(brick_path(t, "%s", name), &b));
        assert_int_equal(a.st_ino, b.st_ino);
    }
}

/* ---- creation ---- */

static int do_create(struct brick_test *t, uint8_t n)
{
    struct inode *f = brick_inode(t, GFID(n), S_IFREG);
    t->call.time_flags = 0x1f;
    t->call.time_s = 1000;
    t->call.uid = 1000;
    return brick_op(t, OP_CREATE, .parent = t->root, .name = name_n("c", n), .inode = f, .fd = brick_fd(t, f, O_RDWR),
                    .flags = O_RDWR | O_EXCL, .mode = 0644);
}

static int do_symlink(struct brick_test *t, uint8_t n)
{
    return brick_op(t, OP_SYMLINK, .parent = t->root, .name = name_n("s", n), .inode = brick_inode(t, GFID(n), S_IFLNK),
                    .text = "target");
}

static int do_mkdir(struct brick_test *t, uint8_t n)
{
    return brick_op(t, OP_MKDIR, .parent = t->root, .name = name_n("d", n), .inode = brick_inode(t, GFID(n), S_IFDIR),
                    .mode = 0755);
}

static void assert_repaired(struct brick_test *t, const char *prefix, uint8_t steps)
{
    /* Entries without a gfid are nobody's for a second. */
    brick_start(t, NULL);
    assert_int_equal(0, fiber_sleep_ms(NULL, 1050));
    for (uint8_t n = 1; n <= steps; n++) {
        SCOPED(dict_unref) struct dict *x = gfid_request(n);
        int r = brick_lookup(t, t->root, name_n(prefix, n), x);
        if (n == 1)
            assert_int_equal(-ENOENT, r); /* nothing was done yet */
        else
            assert_int_equal(0, r);
        if (r == 0)
            assert_whole(t, t->root, name_n(prefix, n), GFID(n));
    }
}

BRICK_TEST(create)
{
    assert_repaired(t, "c", sweep(t, do_create, NULL));
}

BRICK_TEST(make_symlink)
{
    assert_repaired(t, "s", sweep(t, do_symlink, NULL));
}

BRICK_TEST(make_directory)
{
    assert_repaired(t, "d", sweep(t, do_mkdir, NULL));
}

/* ---- unlink, rmdir ---- */

static void prepare_file(struct brick_test *t, uint8_t n)
{
    brick_create(t, t->root, name_n("u", n), GFID(n), NULL);
}

static int do_unlink(struct brick_test *t, uint8_t n)
{
    return brick_op(t, OP_UNLINK, .parent = t->root, .name = name_n("u", n));
}

BRICK_TEST(unlink_file)
{
    uint8_t steps = sweep(t, do_unlink, prepare_file);
    brick_start(t, NULL);
    for (uint8_t n = 1; n < steps; n++)
        assert_whole(t, t->root, name_n("u", n), GFID(n));
    assert_int_equal(-ENOENT, brick_lookup(t, t->root, name_n("u", steps), NULL));
    struct stat st;
    assert_int_not_equal(0, lstat(handle_path(t, GFID(steps)), &st));
}

static void prepare_dir(struct brick_test *t, uint8_t n)
{
    brick_mkdir(t, t->root, name_n("r", n), GFID(n));
}

static int do_rmdir(struct brick_test *t, uint8_t n)
{
    return brick_op(t, OP_RMDIR, .parent = t->root, .name = name_n("r", n));
}

BRICK_TEST(remove_directory)
{
    uint8_t steps = sweep(t, do_rmdir, prepare_dir);
    brick_start(t, NULL);
    assert_whole(t, t->root, name_n("r", 1), GFID(1));
    for (uint8_t n = 2; n <= steps; n++) {
        struct stat st;
        assert_int_equal(-ENOENT, brick_lookup(t, t->root, name_n("r", n), NULL));
        assert_int_equal(-ENOENT, brick_op(t, OP_LOOKUP, .inode = brick_inode(t, GFID(n), 0)));
        assert_int_not_equal(0, lstat(handle_path(t, GFID(n)), &st)); /* a dangling one is cleaned up */
        /* The gfid may be used again. */
        assert_int_equal(0, brick_op(t, OP_MKDIR, .parent = t->root, .name = name_n("r", n),
                                     .inode = brick_inode(t, GFID(n), S_IFDIR), .mode = 0755));
    }
}

/* ---- rename ---- */

static void prepare_rename(struct brick_test *t, uint8_t n)
{
    brick_create(t, t->root, name_n("from", n), GFID(n), NULL);
    brick_create(t, t->root, name_n("to", n), GFID((uint8_t)(n + 100)), NULL);
}

static int do_rename(struct brick_test *t, uint8_t n)
{
    return brick_op(t, OP_RENAME, .parent = t->root, .name = name_n("from", n), .parent2 = t->root,
                    .name2 = name_n("to", n));
}

BRICK_TEST(rename_over_a_file)
{
    uint8_t steps = sweep(t, do_rename, prepare_rename);
    brick_start(t, NULL);
    for (uint8_t n = 1; n <= steps; n++) {
        if (brick_lookup(t, t->root, name_n("from", n), NULL) == 0) {
            assert_whole(t, t->root, name_n("from", n), GFID(n));
            assert_whole(t, t->root, name_n("to", n), GFID((uint8_t)(n + 100)));
        } else {
            assert_whole(t, t->root, name_n("to", n), GFID(n));
        }
    }
}

static void prepare_move(struct brick_test *t, uint8_t n)
{
    struct inode *d = brick_mkdir(t, t->root, name_n("from", n), GFID(n));
    brick_create(t, d, "inside", GFID((uint8_t)(n + 150)), NULL);
    brick_mkdir(t, t->root, name_n("to", n), GFID((uint8_t)(n + 100)));
}

BRICK_TEST(rename_of_a_directory_over_an_empty_one)
{
    uint8_t steps = sweep(t, do_rename, prepare_move);
    brick_start(t, NULL);
    for (uint8_t n = 1; n <= steps; n++) {
        const char *at = brick_lookup(t, t->root, name_n("from", n), NULL) == 0 ? name_n("from", n) : name_n("to", n);
        char name[32];
        snprintf(name, sizeof name, "%s", at);
        assert_whole(t, t->root, name, GFID(n));
        assert_whole(t, brick_inode(t, GFID(n), S_IFDIR), "inside", GFID((uint8_t)(n + 150)));
    }
}

/* ---- link ---- */

static void prepare_link(struct brick_test *t, uint8_t n)
{
    brick_create(t, t->root, name_n("a", n), GFID(n), NULL);
}

static int do_link(struct brick_test *t, uint8_t n)
{
    return brick_op(t, OP_LINK, .inode = brick_inode(t, GFID(n), S_IFREG), .parent2 = t->root, .name2 = name_n("b", n));
}

BRICK_TEST(make_link)
{
    uint8_t steps = sweep(t, do_link, prepare_link);
    brick_start(t, NULL);
    for (uint8_t n = 1; n <= steps; n++) {
        int r = brick_lookup(t, t->root, name_n("b", n), NULL);
        assert_true(r == 0 || r == -ENOENT);
        assert_int_equal(0, brick_lookup(t, t->root, name_n("a", n), NULL));
        assert_int_equal(r == 0 ? 2 : 1, t->r->stat.nlink);
    }
}

#define T(name) cmocka_unit_test(name)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        T(create),
        T(make_symlink),
        T(make_directory),
        T(unlink_file),
        T(remove_directory),
        T(rename_over_a_file),
        T(rename_of_a_directory_over_an_empty_one),
        T(make_link),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
