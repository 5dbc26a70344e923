/* Bytes of files in storage/posix. */
#include "rpc/block_sums.h"
#include "unit/storage/brick_fixture.h"
#include <dirent.h>
#include <stdio.h>
#include <linux/fs.h>
#include <sys/sysmacros.h>

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

/* A file of 5 blocks and a bit: data, hole, hole, zeros, hole, "tail". */
static struct inode *mixed_file(struct brick_test *t)
{
    static const char zeros[4096];
    struct inode *f = brick_create(t, t->root, "a", GFID(1), NULL);
    SCOPED(buf_unref) struct buf *z = buf_copy(zeros, sizeof(zeros));

    assert_int_equal(5, brick_write(t, f, NULL, "first", 0));
    assert_int_equal(4096, brick_op(t, OP_WRITE, .inode = f, .data = z, .offset = 3 * 4096));
    assert_int_equal(4, brick_write(t, f, NULL, "tail", 5 * 4096));
    return f;
}

static struct block_question *block_question(uint32_t block_bytes, uint64_t offset, uint32_t size)
{
    struct block_question *k = NEW(struct block_question);

    memset(k->key, 7, sizeof(k->key));
    k->block_bytes = block_bytes;
    k->range_count = 1;
    k->ranges[0] = (struct block_range) { .offset = offset, .size = size };
    return k;
}

static struct block_answer block_sums(struct brick_test *t, struct inode *f, const struct block_question *k)
{
    SCOPED(buf_unref) struct buf *q = block_question_put(k);
    struct block_answer a;

    assert_true(brick_op(t, OP_BLOCKSUMS, .inode = f, .data = q) > 0);
    assert_int_equal(0, block_answer_get(t->r->data, k, &a));
    return a;
}

static void assert_sum_of(const struct block_question *k, const char *text, const uint8_t *sum)
{
    SCOPED_FREE uint8_t *block = mem_zalloc(k->block_bytes);
    struct block_summer *s = block_summer_new(k->key);
    uint8_t want[BLOCK_SUM_BYTES];

    memcpy(block, text, strlen(text));
    assert_int_equal(0, block_sum(s, block, k->block_bytes, want));
    assert_memory_equal(want, sum, sizeof(want));
    block_summer_free(s);
}

BRICK_TEST(blocksums_tell_data_zeros_and_holes_apart)
{
    brick_start(t, NULL);
    struct inode *f = mixed_file(t);
    SCOPED_FREE struct block_question *k = block_question(4096, 0, 8 * 4096);
    struct block_answer a = block_sums(t, f, k);

    assert_int_equal(5 * 4096 + 4, a.size_bytes);
    assert_true(a.next_data == UINT64_MAX);
    assert_sum_of(k, "first", a.sums);
    assert_int_equal(BLOCK_IS_HOLE, block_kind(a.sums + 16));
    assert_int_equal(BLOCK_IS_HOLE, block_kind(a.sums + 32));
    assert_int_equal(BLOCK_IS_ZERO, block_kind(a.sums + 48));
    assert_int_equal(BLOCK_IS_HOLE, block_kind(a.sums + 64));
    assert_sum_of(k, "tail", a.sums + 80); /* as if zeros followed */
    assert_int_equal(BLOCK_IS_HOLE, block_kind(a.sums + 96));
    assert_int_equal(BLOCK_IS_HOLE, block_kind(a.sums + 112));
}

BRICK_TEST(blocksums_of_several_ranges_come_in_the_order_asked)
{
    brick_start(t, NULL);
    struct inode *f = mixed_file(t);
    SCOPED_FREE struct block_question *k = block_question(4096, 5 * 4096, 4096);

    k->range_count = 2;
    k->ranges[1] = (struct block_range) { .offset = 0, .size = 2 * 4096 };
    struct block_answer a = block_sums(t, f, k);
    assert_int_equal(3, a.count);
    assert_sum_of(k, "tail", a.sums);
    assert_sum_of(k, "first", a.sums + 16);
    assert_int_equal(BLOCK_IS_HOLE, block_kind(a.sums + 32));
    assert_int_equal(3 * 4096, a.next_data); /* after the last range */
}

BRICK_TEST(blocksums_of_large_files_cross_the_steps_of_reading)
{
    brick_start(t, NULL);
    struct inode *f = brick_create(t, t->root, "a", GFID(1), NULL);
    SCOPED(buf_unref) struct buf *b = buf_new(3 << 20);

    memset(b->data, 0, b->size);
    for (size_t at = 0; at < b->size; at += 65536)
        snprintf((char *)b->data + at, 32, "block %zu", at);
    assert_int_equal(b->size, brick_op(t, OP_WRITE, .inode = f, .data = b));
    SCOPED_FREE struct block_question *k = block_question(65536, 0, 4 << 20);
    struct block_answer a = block_sums(t, f, k);
    for (size_t i = 0; i < 48; i++) {
        char text[32];
        snprintf(text, sizeof(text), "block %zu", i * 65536);
        assert_sum_of(k, text, a.sums + 16 * i);
    }
    assert_int_equal(BLOCK_IS_HOLE, block_kind(a.sums + 16 * 48));
    k->ranges[0] = (struct block_range) { .offset = 8 << 20, .size = 65536 };
    a = block_sums(t, f, k);
    assert_int_equal(BLOCK_IS_HOLE, block_kind(a.sums));
    assert_true(a.next_data == UINT64_MAX);
}

BRICK_TEST(blocksums_refuse_what_is_no_question_or_no_file)
{
    brick_start(t, NULL);
    struct inode *f = mixed_file(t);
    SCOPED(buf_unref) struct buf *junk = buf_copy("junk", 4);
    SCOPED_FREE struct block_question *k = block_question(4096, 0, 4096);
    SCOPED(buf_unref) struct buf *q = block_question_put(k);

    assert_int_equal(-EINVAL, brick_op(t, OP_BLOCKSUMS, .inode = f));
    assert_int_equal(-EINVAL, brick_op(t, OP_BLOCKSUMS, .inode = f, .data = junk));
    assert_int_equal(-EINVAL, brick_op(t, OP_BLOCKSUMS, .inode = t->root, .data = q));
    assert_int_equal(-ESTALE, brick_op(t, OP_BLOCKSUMS, .inode = brick_inode(t, GFID(9), S_IFREG), .data = q));
}

#define T(name) cmocka_unit_test(name)

static int64_t atime_of(const char *path)
{
    struct stat st;

    assert_int_equal(0, stat(path, &st));
    return st.st_atim.tv_sec;
}

BRICK_TEST(reading_without_a_trace_leaves_the_access_time)
{
    const struct timespec old[2] = { { .tv_sec = 1000 }, { .tv_sec = 2000 } };

    brick_start(t, NULL);
    struct inode *inode = brick_create(t, t->root, "f", GFID(1), NULL);
    assert_int_equal(5, brick_write(t, inode, NULL, "hello", 0));
    assert_int_equal(0, utimensat(AT_FDCWD, brick_path(t, "f"), old, 0));
    assert_int_equal(5, brick_op(t, OP_READ, .inode = inode, .size = 100, .flags = O_NOATIME));
    assert_memory_equal("hello", t->r->data->data, 5);
    assert_int_equal(1000, atime_of(brick_path(t, "f")));
    assert_int_equal(5, brick_op(t, OP_READ, .inode = inode, .size = 100)); /* and the next one counts again */
    if (atime_of(brick_path(t, "f")) == 1000)
        print_message("this file system keeps no access times\n");
    brick_stop(t);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        T(reading_without_a_trace_leaves_the_access_time),
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
        T(blocksums_tell_data_zeros_and_holes_apart),
        T(blocksums_of_several_ranges_come_in_the_order_asked),
        T(blocksums_of_large_files_cross_the_steps_of_reading),
        T(blocksums_refuse_what_is_no_question_or_no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
