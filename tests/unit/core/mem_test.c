/* Memory, errors, gfids, attributes, buffers. */
#include "core/buf.h"
#include "core/error.h"
#include "core/iatt.h"
#include "core/mem.h"
#include "unit/unit.h"

static uint64_t live_blocks(void)
{
    struct mem_stats stats;

    mem_get_stats(&stats);
    return stats.live_blocks;
}

static void every_block_is_counted_until_it_is_freed(void **state)
{
    struct mem_stats before, during, after;

    mem_get_stats(&before);
    char *text = mem_printf("%s-%d", "brick", 7);
    assert_string_equal(text, "brick-7");
    text = mem_realloc(text, 100000);
    assert_non_null(text);
    mem_get_stats(&during);
    assert_int_equal(during.live_blocks, before.live_blocks + 1);
    assert_true(during.live_bytes >= before.live_bytes + 100000);
    mem_free(text);
    mem_get_stats(&after);
    assert_int_equal(after.live_blocks, before.live_blocks);
    assert_int_equal(after.live_bytes, before.live_bytes);
    assert_int_equal(after.total_blocks, before.total_blocks + 2);
}

static void array_refuses_a_product_that_overflows(void **state)
{
    assert_null(mem_array(SIZE_MAX / 2, 3));
}

static void strndup_stops_at_the_limit_and_at_the_nul(void **state)
{
    SCOPED_FREE char *cut = mem_strndup("abcdef", 3);
    SCOPED_FREE char *whole = mem_strndup("ab", 10);

    assert_string_equal(cut, "abc");
    assert_string_equal(whole, "ab");
}

static void the_nth_allocation_fails_once(void **state)
{
    mem_fail_at(2);
    SCOPED_FREE void *first = mem_alloc(1);
    SCOPED_FREE void *second = mem_alloc(1);
    SCOPED_FREE void *third = mem_alloc(1);
    assert_non_null(first);
    assert_null(second);
    assert_non_null(third);
    assert_int_equal(mem_fail_at(0), 0);
    mem_fail_at(5);
    SCOPED_FREE void *fourth = mem_alloc(1);
    assert_non_null(fourth);
    assert_int_equal(mem_fail_at(0), 4);
}

static void realloc_that_fails_keeps_the_block(void **state)
{
    SCOPED_FREE char *text = mem_strdup("kept");

    mem_fail_at(1);
    assert_null(mem_realloc(text, 1000));
    mem_fail_at(0);
    assert_string_equal(text, "kept");
}

static void error_text_is_cut_and_terminated(void **state)
{
    struct error err;
    char longer[600];

    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    assert_int_equal(error_set(&err, -EINVAL, "%s", longer), -EINVAL);
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
    assert_int_equal(error_set(NULL, -EIO, "dropped"), -EIO);
}

static void error_prefix_goes_before_what_is_there(void **state)
{
    struct error err;

    error_set(&err, -EINVAL, "no such type");
    assert_int_equal(error_prefix(&err, -EINVAL, "line %d", 3), -EINVAL);
    assert_string_equal(err.text, "line 3: no such type");
    assert_int_equal(error_prefix(NULL, -EIO, "x"), -EIO);
}

static void gfid_text_goes_both_ways(void **state)
{
    struct gfid g;

    assert_int_equal(gfid_parse("0F3c6d2e-1a2b-4c3d-8e4f-0123456789aB", &g), 0);
    assert_string_equal(GFID_TEXT(&g), "0f3c6d2e-1a2b-4c3d-8e4f-0123456789ab");
    assert_int_equal(g.bytes[0], 0x0f);
    assert_int_equal(gfid_to_ino(&g), 0x8e4f0123456789ab);
    assert_int_equal(gfid_to_ino(&gfid_root), 1);
    assert_true(gfid_to_ino(&gfid_null) == UINT64_MAX);
    assert_true(gfid_is_root(&gfid_root) && gfid_is_null(&gfid_null));
}

static void gfid_text_with_a_flaw_is_refused(void **state)
{
    static const char *const bad[] = { "",
                                       "0f3c6d2e",
                                       "0f3c6d2e-1a2b-4c3d-8e4f-0123456789a",
                                       "0f3c6d2e-1a2b-4c3d-8e4f-0123456789abc",
                                       "0f3c6d2e-1a2b-4c3d-8e4f-0123456789a ",
                                       "0f3c6d2e-1a2b-4c3d-8e4f-0123456789ag",
                                       "0f3c6d2e01a2b-4c3d-8e4f-0123456789ab",
                                       "0f3c6d2e-1a2b-4c3d-8e4f0-123456789ab" };
    struct gfid g = gfid_root;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_int_equal(gfid_parse(bad[i], &g), -EINVAL);
    assert_true(gfid_is_root(&g));
}

static void attributes_survive_the_way_through_stat(void **state)
{
    struct stat st = { .st_mode = S_IFREG | 0640,
                       .st_nlink = 3,
                       .st_uid = 5,
                       .st_gid = 6,
                       .st_size = 1234567,
                       .st_blocks = 2416,
                       .st_dev = 0x801,
                       .st_rdev = 0x102,
                       .st_blksize = 4096,
                       .st_atim = { 11, 12 },
                       .st_mtim = { 13, 14 },
                       .st_ctim = { 15, 16 } };
    struct iatt a = { .gfid = gfid_root };
    struct stat back;

    iatt_from_stat(&a, &st);
    assert_int_equal(a.mode, S_IFREG | 0640);
    assert_int_equal(a.size, 1234567);
    assert_int_equal(a.mtime_nsec, 14);
    assert_int_equal(iatt_type(&a), S_IFREG);
    assert_true(gfid_is_root(&a.gfid));
    iatt_to_stat(&a, &back);
    assert_int_equal(back.st_ino, 1);
    assert_int_equal(back.st_nlink, 3);
    assert_int_equal(back.st_rdev, 0x102);
    assert_int_equal(back.st_ctim.tv_nsec, 16);
    assert_int_equal(back.st_blocks, 2416);
}

static void large_buffers_are_page_aligned(void **state)
{
    static const size_t sizes[] = { 4096, 5000, 65536, 131072, 1048576, 3000000 };

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        SCOPED(buf_unref) struct buf *b = buf_new(sizes[i]);
        assert_non_null(b);
        assert_int_equal((uintptr_t)b->data % 4096, 0);
        assert_int_equal(b->size, sizes[i]);
        assert_int_equal(b->capacity, sizes[i]);
        memset(b->data, 0x5a, b->capacity);
    }
}

static void a_slice_keeps_the_memory_alive(void **state)
{
    uint64_t before = live_blocks();
    struct buf *b = buf_copy("hello, world", 12);
    struct buf *tail = buf_slice(b, 7, 5);

    buf_unref(b);
    struct buf *end = buf_slice(tail, 1, 4);
    buf_unref(tail);
    assert_memory_equal(end->data, "orld", 4);
    assert_int_equal(end->size, 4);
    buf_unref(end);
    assert_int_equal(live_blocks(), before);
}

static void count_free(struct buf *b, void *arg)
{
    ++*(int *)arg;
}

static void wrapped_memory_is_given_back_once_at_the_last_reference(void **state)
{
    int freed = 0;
    char memory[16];
    struct buf *b = buf_wrap(memory, sizeof(memory), count_free, &freed);
    struct buf *slice = buf_slice(b, 0, 8);

    buf_unref(b);
    assert_int_equal(freed, 0);
    buf_unref(buf_ref(slice));
    assert_int_equal(freed, 0);
    buf_unref(slice);
    assert_int_equal(freed, 1);
    buf_unref(NULL);
}

static void buffers_report_lack_of_memory_and_leak_nothing(void **state)
{
    uint64_t before = live_blocks();

    for (uint64_t n = 1; n <= 2; n++) {
        mem_fail_at(n);
        assert_null(buf_new(65536));
        mem_fail_at(0);
    }
    mem_fail_at(1);
    assert_null(buf_copy("x", 1));
    mem_fail_at(0);
    assert_int_equal(live_blocks(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_block_is_counted_until_it_is_freed),
        cmocka_unit_test(array_refuses_a_product_that_overflows),
        cmocka_unit_test(strndup_stops_at_the_limit_and_at_the_nul),
        cmocka_unit_test(the_nth_allocation_fails_once),
        cmocka_unit_test(realloc_that_fails_keeps_the_block),
        cmocka_unit_test(error_text_is_cut_and_terminated),
        cmocka_unit_test(error_prefix_goes_before_what_is_there),
        cmocka_unit_test(gfid_text_goes_both_ways),
        cmocka_unit_test(gfid_text_with_a_flaw_is_refused),
        cmocka_unit_test(attributes_survive_the_way_through_stat),
        cmocka_unit_test(large_buffers_are_page_aligned),
        cmocka_unit_test(a_slice_keeps_the_memory_alive),
        cmocka_unit_test(wrapped_memory_is_given_back_once_at_the_last_reference),
        cmocka_unit_test(buffers_report_lack_of_memory_and_leak_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
