/* performance/read-ahead: sequential reads come from pages, and never anything older than they may. */
#include "performance/read-ahead/read_ahead.h"
#include "performance/write-behind/write_behind.h"
#include "unit/performance/slow_file.h"
#include <fcntl.h>
#include <stdlib.h>

static struct slow_file file;

static void prepare(struct test *t, uint64_t size)
{
    test_start(t);
    slow_file_init(&file, t, 1);
    file.size = size;
    for (uint64_t i = 0; i < size; i++)
        file.data[i] = (uint8_t)(i * 7 + i / 256);
}

static void start(struct test *t, uint64_t size)
{
    test_push(t, &leaf_class, NULL);
    test_push(t, &read_ahead_class, "page-size", "4096", NULL);
    prepare(t, size);
}

/* The shortest pages are 4096 bytes, so the cases read 512 bytes at a time out of those. */
static FIBER void read_at(struct test *t, struct fd *fd, uint64_t offset, uint64_t size)
{
    int want = offset >= file.size ? 0 : (int)MIN(size, file.size - offset);
    assert_int_equal(want, test_op(t, OP_READ, .inode = t->file, .fd = fd, .offset = offset, .size = size));
    assert_memory_equal(file.data + offset, t->r->data->data, (size_t)want);
    (void)fiber_sleep_ms(NULL, 1); /* what was asked for ahead arrives */
}

SIM_TEST(a_file_read_from_front_to_back_is_fetched_ahead)
{
    start(t, SLOW_BYTES);
    for (uint64_t at = 0; at < SLOW_BYTES; at += 512)
        read_at(t, t->fd, at, 512);
    assert_int_equal(1 + 2, file.reads); /* the first, then two pages for all the rest */
}

SIM_TEST(a_read_waits_for_the_page_that_is_on_its_way)
{
    start(t, SLOW_BYTES);
    file.delay_max_ms = 5;
    for (uint64_t at = 0; at < SLOW_BYTES; at += 512) {
        assert_int_equal(512, test_op(t, OP_READ, .inode = t->file, .fd = t->fd, .offset = at, .size = 512));
        assert_memory_equal(file.data + at, t->r->data->data, 512);
    }
    assert_int_equal(3, file.reads);
}

SIM_TEST(random_reads_fetch_nothing_ahead)
{
    start(t, SLOW_BYTES);
    read_at(t, t->fd, 4096, 512);
    read_at(t, t->fd, 1024, 512);
    read_at(t, t->fd, 6000, 512);
    assert_int_equal(3 + 3, file.reads); /* each might be the start of a sequence: one page */
}

SIM_TEST(a_small_file_costs_one_read_and_its_end_comes_from_the_child)
{
    start(t, 100);
    read_at(t, t->fd, 0, 512);
    assert_int_equal(1, file.reads);
    file.size = 104; /* somebody else appends */
    read_at(t, t->fd, 100, 512);
    assert_int_equal(2, file.reads);
}

SIM_TEST(a_write_makes_pages_useless)
{
    start(t, SLOW_BYTES);
    SCOPED(buf_unref) struct buf *data = buf_copy("new data", 8);
    read_at(t, t->fd, 0, 512);
    assert_int_equal(8, test_op(t, OP_WRITE, .inode = t->file, .offset = 600, .data = data));
    read_at(t, t->fd, 512, 512);
}

SIM_TEST(a_page_fetched_while_a_write_was_under_way_is_not_served_after_it)
{
    start(t, SLOW_BYTES);
    test_op(t, OP_STAT, .inode = t->file);
    SCOPED(buf_unref) struct buf *data = buf_copy("new data", 8);
    file.delay_max_ms = 20;
    for (unsigned i = 0; i < 40; i++) {
        file.data[600] = (uint8_t)i;
        assert_int_equal(512, test_op(t, OP_READ, .inode = t->file, .fd = t->fd, .offset = 0, .size = 512));
        assert_int_equal(8, test_op(t, OP_WRITE, .inode = t->file, .offset = 600, .data = data));
        assert_int_equal(512, test_op(t, OP_READ, .inode = t->file, .fd = t->fd, .offset = 512, .size = 512));
        assert_memory_equal("new data", t->r->data->data + 88, 8);
    }
}

SIM_TEST(truncate_and_lock_and_notice_from_below_make_pages_useless)
{
    struct lock_range range = { .type = LOCK_READ };
    start(t, SLOW_BYTES);
    read_at(t, t->fd, 0, 512);
    assert_int_equal(0, test_op(t, OP_TRUNCATE, .inode = t->file, .offset = 700));
    read_at(t, t->fd, 512, 512);
    file.size = SLOW_BYTES;
    read_at(t, t->fd, 0, 512);
    file.data[515] ^= 1; /* elsewhere */
    assert_int_equal(0, test_op(t, OP_LK, .inode = t->dir, .command = LOCK_TRY, .lock = &range));
    read_at(t, t->fd, 512, 512);
    file.data[1030] ^= 1;
    struct event e = { .kind = EVENT_INVALIDATE, .gfid = t->file->gfid };
    notify_parents(t->leaf->me, &e);
    read_at(t, t->fd, 1024, 512);
}

SIM_TEST(other_attributes_make_pages_useless)
{
    start(t, SLOW_BYTES);
    read_at(t, t->fd, 0, 512);
    file.data[520] ^= 1; /* elsewhere */
    file.changes++;
    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->file));
    read_at(t, t->fd, 512, 512);
}

SIM_TEST(a_page_lives_for_a_second)
{
    start(t, SLOW_BYTES);
    read_at(t, t->fd, 0, 512);
    file.data[520] ^= 1; /* elsewhere, and nobody tells */
    (void)fiber_sleep_ms(NULL, 1001);
    read_at(t, t->fd, 512, 512);
}

SIM_TEST(two_descriptors_have_pages_of_their_own)
{
    start(t, SLOW_BYTES);
    struct fd *other = fd_new(t->file, O_RDONLY, 2);
    for (uint64_t at = 0; at < SLOW_BYTES; at += 512) {
        read_at(t, t->fd, at, 512);
        read_at(t, other, at, 512);
    }
    assert_int_equal(6, file.reads);
    fd_unref(other);
}

SIM_TEST(reads_larger_than_a_page_and_across_pages_are_put_together)
{
    start(t, SLOW_BYTES);
    read_at(t, t->fd, 0, 1000);
    for (uint64_t at = 1000; at + 1000 <= SLOW_BYTES; at += 1000)
        read_at(t, t->fd, at, 1000); /* one of them crosses a page */
    read_at(t, t->fd, 0, 6000);
    read_at(t, t->fd, 6000, 2192);
}

SIM_TEST(o_direct_and_pass_through_fetch_nothing_ahead)
{
    start(t, SLOW_BYTES);
    struct fd *direct = fd_new(t->file, O_RDONLY | O_DIRECT, 2);
    read_at(t, direct, 0, 512);
    read_at(t, direct, 512, 512);
    assert_int_equal(2, file.reads);
    fd_unref(direct);
}

SIM_TEST(force_atime_update_touches_the_file_for_a_served_read)
{
    test_push(t, &leaf_class, NULL);
    test_push(t, &read_ahead_class, "page-size", "4096", "force-atime-update", "on", NULL);
    prepare(t, SLOW_BYTES);
    read_at(t, t->fd, 0, 512);
    read_at(t, t->fd, 512, 512);
    (void)fiber_sleep_ms(NULL, 1);
    assert_int_equal(1, leaf_last(t->leaf)->size == 1 ? 1 : leaf_count(t->leaf, OP_READ) >= 3);
}

SIM_TEST(a_failed_page_is_asked_for_again)
{
    start(t, SLOW_BYTES);
    read_at(t, t->fd, 0, 512);
    leaf_clear(t->leaf);
    t->leaf->answers[OP_READ] = NULL;
    leaf_fail(t->leaf, OP_READ, EIO, 0);
    struct fd *fd = fd_new(t->file, O_RDONLY, 2);
    assert_int_equal(-EIO, test_op(t, OP_READ, .inode = t->file, .fd = fd, .offset = 0, .size = 512));
    slow_file_init(&file, t, 1);
    file.size = 1024;
    read_at(t, fd, 0, 512);
    read_at(t, fd, 512, 512);
    fd_unref(fd);
}

/* A writer and a reader on the same graph with write-behind below: after a write was answered, a read shows it. */
SIM_TEST(together_with_write_behind_a_read_never_shows_less_than_what_was_written)
{
    test_push(t, &leaf_class, NULL);
    test_push(t, &write_behind_class, NULL);
    test_push(t, &read_ahead_class, "page-size", "4096", NULL);
    prepare(t, SLOW_BYTES);
    file.delay_max_ms = 2;
    static uint8_t model[SLOW_BYTES];
    memcpy(model, file.data, SLOW_BYTES);
    srand(5);
    uint64_t at = 0;
    for (unsigned i = 0; i < 600; i++) {
        if (rand() % 3 == 0) {
            uint64_t where = (at + (uint64_t)rand() % 2048) % (SLOW_BYTES - 64);
            SCOPED(buf_unref) struct buf *data = buf_new(64);
            memset(data->data, (int)i, 64);
            memcpy(model + where, data->data, 64);
            assert_int_equal(64, test_op(t, OP_WRITE, .inode = t->file, .fd = t->fd, .offset = where, .data = data));
        }
        assert_int_equal(512, test_op(t, OP_READ, .inode = t->file, .fd = t->fd, .offset = at, .size = 512));
        assert_memory_equal(model + at, t->r->data->data, 512);
        at = (at + 512) % SLOW_BYTES;
    }
}

SIM_TEST(the_volume_file_of_2008_is_taken)
{
    test_build(t, "volume leaf\n type test/leaf\n option note x\nend-volume\n"
                  "volume writebehind\n type performance/write-behind\n option aggregate-size 0MB\n"
                  " option flush-behind off\n subvolumes leaf\nend-volume\n"
                  "volume readahead\n type performance/read-ahead\n option page-size 128kB\n option page-count 4\n"
                  " option force-atime-update off\n subvolumes writebehind\nend-volume\n");
    assert_not_logged(t, "unknown-option");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_read_from_front_to_back_is_fetched_ahead),
        cmocka_unit_test(a_read_waits_for_the_page_that_is_on_its_way),
        cmocka_unit_test(random_reads_fetch_nothing_ahead),
        cmocka_unit_test(a_small_file_costs_one_read_and_its_end_comes_from_the_child),
        cmocka_unit_test(a_write_makes_pages_useless),
        cmocka_unit_test(a_page_fetched_while_a_write_was_under_way_is_not_served_after_it),
        cmocka_unit_test(truncate_and_lock_and_notice_from_below_make_pages_useless),
        cmocka_unit_test(other_attributes_make_pages_useless),
        cmocka_unit_test(a_page_lives_for_a_second),
        cmocka_unit_test(two_descriptors_have_pages_of_their_own),
        cmocka_unit_test(reads_larger_than_a_page_and_across_pages_are_put_together),
        cmocka_unit_test(o_direct_and_pass_through_fetch_nothing_ahead),
        cmocka_unit_test(force_atime_update_touches_the_file_for_a_served_read),
        cmocka_unit_test(a_failed_page_is_asked_for_again),
        cmocka_unit_test(together_with_write_behind_a_read_never_shows_less_than_what_was_written),
        cmocka_unit_test(the_volume_file_of_2008_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
