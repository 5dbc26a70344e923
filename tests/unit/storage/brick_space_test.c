/* A brick that fills up: reserve, ENOSPC, and nothing leaked by what failed. On an ext4 image of 100 MB. */
#include "unit/storage/brick_fixture.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

#define MIB (1 << 20)

static char image[80];

/* The brick's directory becomes a small file system of its own. */
static bool small_disk(struct brick_test *t)
{
    char command[512];
    snprintf(image, sizeof image, "%s.img", t->dir);
    /* The first call gives the process a mount name space of its own. */
    if (!brick_mount("tmpfs", "none", t->dir, 0, NULL) || umount(t->dir) < 0)
        return false;
    snprintf(command, sizeof command,
             "truncate -s 100M %s && mkfs.ext4 -q -F -m 0 -O ^has_journal %s >/dev/null 2>&1 && mount -o loop %s %s",
             image, image, image, t->dir);
    if (system(command) == 0)
        return true;
    unlink(image);
    return false;
}

static void end_disk(struct brick_test *t)
{
    brick_stop(t);
    assert_int_equal(0, umount(t->dir));
    unlink(image);
}

#define SMALL_DISK_OR_SKIP(t)                                                   \
    do {                                                                        \
        if (!small_disk(t)) {                                                   \
            print_message("# needs mkfs.ext4 and the right to mount images\n"); \
            return;                                                             \
        }                                                                       \
    } while (0)

static double used_part(struct brick_test *t)
{
    struct statvfs v;
    assert_int_equal(0, statvfs(t->dir, &v));
    return 1 - (double)v.f_bfree / (double)v.f_blocks;
}

static int fill(struct brick_test *t, struct inode *f, size_t chunk, uint64_t *ret_size)
{
    SCOPED(buf_unref) struct buf *b = buf_new(chunk);
    memset(b->data, 'x', b->size);
    for (uint64_t at = 0;; at += chunk) {
        int r = brick_op(t, OP_WRITE, .inode = f, .data = b, .offset = at);
        *ret_size = at;
        if (r < 0)
            return r;
        if ((size_t)r < chunk)
            return -ENOSPC;
    }
}

BRICK_TEST(reserve_is_kept)
{
    uint64_t size;
    SMALL_DISK_OR_SKIP(t);
    brick_start(t, "reserve", "30", NULL);
    struct inode *f = brick_create(t, t->root, "a", GFID(1), NULL);
    assert_int_equal(-ENOSPC, fill(t, f, MIB, &size));
    assert_true(used_part(t) > 0.65 && used_part(t) < 0.71);
    /* Not even one large write crosses the line. */
    SCOPED(buf_unref) struct buf *b = buf_new(4 * MIB);
    memset(b->data, 'y', b->size);
    assert_int_equal(-ENOSPC, brick_op(t, OP_WRITE, .inode = f, .data = b, .offset = size));
    assert_int_equal(-ENOSPC, brick_op(t, OP_FALLOCATE, .inode = f, .size = 1ull << 30));
    assert_true(used_part(t) < 0.71);
    /* Heal and others of the house may. */
    t->call.pid = PID_SELF_HEAL;
    assert_int_equal(4 * MIB, brick_op(t, OP_WRITE, .inode = f, .data = b, .offset = size));
    t->call.pid = 1;
    struct inode *g = brick_inode(t, GFID(2), S_IFDIR);
    assert_int_equal(-ENOSPC, brick_op(t, OP_MKDIR, .parent = t->root, .name = "d", .inode = g, .mode = 0755));
    /* What makes room always works, and is noticed at once. */
    assert_int_equal(0, brick_op(t, OP_TRUNCATE, .inode = f, .offset = 0));
    assert_int_equal(0, brick_op(t, OP_MKDIR, .parent = t->root, .name = "d", .inode = g, .mode = 0755));
    assert_int_equal(0, brick_op(t, OP_UNLINK, .parent = t->root, .name = "a"));
    end_disk(t);
}

BRICK_TEST(reserve_in_bytes)
{
    uint64_t size;
    SMALL_DISK_OR_SKIP(t);
    brick_start(t, "reserve", "60MB", NULL);
    struct inode *f = brick_create(t, t->root, "a", GFID(1), NULL);
    assert_int_equal(-ENOSPC, fill(t, f, MIB, &size));
    struct statvfs v;
    assert_int_equal(0, statvfs(t->dir, &v));
    assert_true(v.f_bfree * v.f_frsize >= 60 * MIB && v.f_bfree * v.f_frsize < 63 * MIB);
    end_disk(t);
}

BRICK_TEST(failed_fallocate_leaves_nothing)
{
    SMALL_DISK_OR_SKIP(t);
    brick_start(t, "reserve", "0", NULL);
    struct inode *f = brick_create(t, t->root, "a", GFID(1), NULL);
    assert_int_equal(4, brick_write(t, f, NULL, "data", 10 * MIB));
    assert_int_equal(0, brick_op(t, OP_FSYNC, .inode = f));
    double before = used_part(t);
    assert_int_equal(-ENOSPC, brick_op(t, OP_FALLOCATE, .inode = f, .size = 200 * MIB));
    assert_int_equal(0, brick_op(t, OP_STAT, .inode = f));
    assert_int_equal(10 * MIB + 4, t->r->stat.size);
    assert_true(used_part(t) - before < 0.01);
    assert_int_equal(-ENOSPC, brick_op(t, OP_FALLOCATE, .inode = f, .flags = FALLOC_FL_KEEP_SIZE, .size = 200 * MIB));
    assert_true(used_part(t) - before < 0.01);
    assert_int_equal(4, brick_op(t, OP_READ, .inode = f, .offset = 10 * MIB, .size = 4));
    assert_memory_equal("data", t->r->data->data, 4);
    end_disk(t);
}

BRICK_TEST(full_disk_fails_writes_and_lets_go)
{
    uint64_t size;
    SMALL_DISK_OR_SKIP(t);
    brick_start(t, "reserve", "0", NULL);
    struct inode *f = brick_create(t, t->root, "a", GFID(1), NULL);
    assert_int_equal(-ENOSPC, fill(t, f, 64 * 1024, &size));
    assert_true(used_part(t) > 0.96);
    brick_stop(t);
    brick_start(t, "reserve", "0", NULL); /* a full brick can be started, else nobody could make room */
    assert_int_equal(0, brick_op(t, OP_UNLINK, .parent = t->root, .name = "a"));
    brick_create(t, t->root, "b", GFID(2), NULL);
    end_disk(t);
}

#define T(name) cmocka_unit_test(name)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        T(reserve_is_kept),
        T(reserve_in_bytes),
        T(failed_fallocate_leaves_nothing),
        T(full_disk_fails_writes_and_lets_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
