#include "core/dict.h"
#include "core/mem.h"
#include "unit/unit.h"

#include <stdio.h>

static uint64_t live_blocks(void)
{
    struct mem_stats stats;

    mem_get_stats(&stats);
    return stats.live_blocks;
}

static void null_reads_as_empty(void **state)
{
    size_t at = 0;
    const char *key;
    const struct dict_value *value;
    int64_t v;

    assert_int_equal(dict_count(NULL), 0);
    assert_false(dict_has(NULL, "a"));
    assert_null(dict_get(NULL, "a"));
    assert_int_equal(dict_get_int(NULL, "a", &v), -ENOENT);
    assert_false(dict_next(NULL, &at, &key, &value));
    dict_unref(NULL);
    assert_null(dict_ref(NULL));
}

static void setting_again_replaces_and_keeps_the_place(void **state)
{
    SCOPED(dict_unref) struct dict *d = dict_new();
    size_t at = 0;
    const char *key;
    const struct dict_value *value;

    assert_int_equal(dict_set_int(d, "first", 1), 0);
    assert_int_equal(dict_set_str(d, "second", "two"), 0);
    assert_int_equal(dict_set_str(d, "first", "uno"), 0);
    assert_int_equal(dict_count(d), 2);
    assert_true(dict_next(d, &at, &key, &value));
    assert_string_equal(key, "first");
    assert_int_equal(value->type, DICT_STR);
    assert_int_equal(value->size_bytes, 3);
    assert_true(dict_next(d, &at, &key, &value));
    assert_string_equal(key, "second");
    assert_false(dict_next(d, &at, &key, &value));
}

static void a_value_may_be_set_from_the_pair_it_replaces(void **state)
{
    SCOPED(dict_unref) struct dict *d = dict_new();
    const char *text;

    assert_int_equal(dict_set_str(d, "k", "some text"), 0);
    assert_int_equal(dict_get_str(d, "k", &text), 0);
    assert_int_equal(dict_set_str(d, "k", text + 5), 0);
    assert_int_equal(dict_get_str(d, "k", &text), 0);
    assert_string_equal(text, "text");
}

static void numbers_and_decimal_text_convert_both_ways(void **state)
{
    SCOPED(dict_unref) struct dict *d = dict_new();
    int64_t i;
    uint64_t u;
    const char *text;

    assert_int_equal(dict_set_int(d, "int", -5), 0);
    assert_int_equal(dict_set_uint(d, "uint", UINT64_MAX), 0);
    assert_int_equal(dict_set_str(d, "str", "42"), 0);
    assert_int_equal(dict_set_old(d, "old", "43\0", 3), 0);
    assert_int_equal(dict_set_bin(d, "bin", "-9223372036854775808", 20), 0);
    assert_int_equal(dict_set_double(d, "double", 0.5), 0);
    assert_int_equal(dict_get_int(d, "int", &i), 0);
    assert_int_equal(i, -5);
    assert_int_equal(dict_get_uint(d, "int", &u), -EINVAL);
    assert_int_equal(dict_get_uint(d, "uint", &u), 0);
    assert_true(u == UINT64_MAX);
    assert_int_equal(dict_get_int(d, "uint", &i), -EINVAL);
    assert_int_equal(dict_get_int(d, "str", &i), 0);
    assert_int_equal(i, 42);
    assert_int_equal(dict_get_uint(d, "old", &u), 0);
    assert_int_equal(u, 43);
    assert_int_equal(dict_get_int(d, "bin", &i), 0);
    assert_true(i == INT64_MIN);
    assert_int_equal(dict_get_uint(d, "bin", &u), -EINVAL);
    assert_int_equal(dict_get_int(d, "double", &i), -EINVAL);
    assert_int_equal(dict_get_str(d, "int", &text), 0);
    assert_string_equal(text, "-5");
    assert_int_equal(dict_get_str(d, "uint", &text), 0);
    assert_string_equal(text, "18446744073709551615");
    assert_int_equal(dict_get_str(d, "double", &text), 0);
    assert_string_equal(text, "0.5");
}

static void text_that_is_no_number_is_refused(void **state)
{
    static const char *const bad[] = { "", "-", "1x", " 1", "1 ", "0x10", "18446744073709551616", "1.5" };
    SCOPED(dict_unref) struct dict *d = dict_new();
    uint64_t u = 77;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_int_equal(dict_set_str(d, "k", bad[i]), 0);
        assert_int_equal(dict_get_uint(d, "k", &u), -EINVAL);
    }
    assert_int_equal(u, 77);
}

static void bytes_with_an_inner_nul_are_not_text(void **state)
{
    SCOPED(dict_unref) struct dict *d = dict_new();
    const char *text;
    const void *data;
    size_t n;

    assert_int_equal(dict_set_bin(d, "k", "a\0b", 3), 0);
    assert_int_equal(dict_get_str(d, "k", &text), -EINVAL);
    assert_int_equal(dict_get_bin(d, "k", &data, &n), 0);
    assert_int_equal(n, 3);
    assert_int_equal(dict_set_bin(d, "k", "ab\0", 3), 0);
    assert_int_equal(dict_get_str(d, "k", &text), 0);
    assert_string_equal(text, "ab");
    assert_int_equal(dict_set_bin(d, "k", NULL, 0), 0);
    assert_int_equal(dict_get_str(d, "k", &text), 0);
    assert_string_equal(text, "");
}

static void gfids_and_16_byte_blobs_convert_both_ways(void **state)
{
    SCOPED(dict_unref) struct dict *d = dict_new();
    struct gfid g;
    const void *data;
    size_t n;

    assert_int_equal(dict_set_gfid(d, "gfid", &gfid_root), 0);
    assert_int_equal(dict_set_bin(d, "bin", gfid_root.bytes, 16), 0);
    assert_int_equal(dict_set_bin(d, "short", gfid_root.bytes, 15), 0);
    assert_int_equal(dict_get_bin(d, "gfid", &data, &n), 0);
    assert_int_equal(n, 16);
    assert_memory_equal(data, gfid_root.bytes, 16);
    assert_int_equal(dict_get_gfid(d, "bin", &g), 0);
    assert_true(gfid_is_root(&g));
    assert_int_equal(dict_get_gfid(d, "short", &g), -EINVAL);
}

static void attributes_and_times_are_kept_whole(void **state)
{
    SCOPED(dict_unref) struct dict *d = dict_new();
    struct iatt a = { .gfid = gfid_root, .size = 9, .mode = S_IFDIR }, a_back;
    struct mdata_times m = { .atime = 1, .ctime_nsec = 6 }, m_back;

    assert_int_equal(dict_set_iatt(d, "iatt", &a), 0);
    assert_int_equal(dict_set_mdata(d, "mdata", &m), 0);
    SCOPED(dict_unref) struct dict *copy = dict_copy(d);
    assert_int_equal(dict_get_iatt(copy, "iatt", &a_back), 0);
    assert_int_equal(a_back.size, 9);
    assert_int_equal(dict_get_mdata(copy, "mdata", &m_back), 0);
    assert_int_equal(m_back.ctime_nsec, 6);
    assert_int_equal(dict_get_mdata(copy, "iatt", &m_back), -EINVAL);
    assert_int_equal(dict_get_iatt(copy, "mdata", &a_back), -EINVAL);
}

static void a_copy_is_independent(void **state)
{
    SCOPED(dict_unref) struct dict *d = dict_new();
    const char *text;

    assert_int_equal(dict_set_str(d, "k", "old"), 0);
    SCOPED(dict_unref) struct dict *copy = dict_copy(d);
    assert_int_equal(dict_set_str(d, "k", "new"), 0);
    assert_int_equal(dict_get_str(copy, "k", &text), 0);
    assert_string_equal(text, "old");
    SCOPED(dict_unref) struct dict *empty = dict_copy(NULL);
    assert_int_equal(dict_count(empty), 0);
}

static void make_key(char *key, size_t key_bytes, unsigned i)
{
    snprintf(key, key_bytes, "trusted.key-%u", i);
}

static void a_large_dict_finds_deletes_and_iterates_in_order(void **state)
{
    enum { COUNT = 5000 };
    SCOPED(dict_unref) struct dict *d = dict_new();
    char key[32];
    uint64_t v;

    for (unsigned i = 0; i < COUNT; i++) {
        make_key(key, sizeof(key), i);
        assert_int_equal(dict_set_uint(d, key, i), 0);
    }
    for (unsigned i = 0; i < COUNT; i += 2) {
        make_key(key, sizeof(key), i);
        dict_del(d, key);
        dict_del(d, key);
    }
    assert_int_equal(dict_count(d), COUNT / 2);
    for (unsigned i = 0; i < COUNT; i++) {
        make_key(key, sizeof(key), i);
        assert_int_equal(dict_get_uint(d, key, &v), i % 2 ? 0 : -ENOENT);
    }
    for (unsigned i = 0; i < COUNT; i += 2) { /* come back at the end */
        make_key(key, sizeof(key), i);
        assert_int_equal(dict_set_uint(d, key, i), 0);
    }
    size_t at = 0;
    const char *got;
    const struct dict_value *value;
    unsigned expected = 1, count = 0;
    while (dict_next(d, &at, &got, &value)) {
        assert_int_equal(value->u, expected);
        expected += 2;
        if (expected == COUNT + 1)
            expected = 0;
        count++;
    }
    assert_int_equal(count, COUNT);
    dict_clear(d);
    assert_int_equal(dict_count(d), 0);
    assert_int_equal(dict_set_uint(d, "again", 1), 0);
    assert_true(dict_has(d, "again"));
}

static void churn_on_one_key_does_not_grow_the_dict(void **state)
{
    SCOPED(dict_unref) struct dict *d = dict_new();
    char key[32];

    for (unsigned i = 0; i < 40; i++) {
        make_key(key, sizeof(key), i);
        assert_int_equal(dict_set_uint(d, key, i), 0);
    }
    for (unsigned i = 0; i < 20000; i++) {
        make_key(key, sizeof(key), i % 40);
        dict_del(d, key);
        assert_int_equal(dict_set_uint(d, key, i), 0);
    }
    assert_int_equal(dict_count(d), 40);
    for (unsigned i = 0; i < 40; i++) {
        make_key(key, sizeof(key), i);
        assert_true(dict_has(d, key));
    }
}

static void limits_are_refused(void **state)
{
    SCOPED(dict_unref) struct dict *d = dict_new();
    SCOPED_FREE char *key = mem_zalloc(DICT_MAX_KEY + 2);
    char small[32];

    memset(key, 'k', DICT_MAX_KEY + 1);
    assert_int_equal(dict_set_int(d, key, 1), -E2BIG);
    key[DICT_MAX_KEY] = '\0';
    assert_int_equal(dict_set_int(d, key, 1), 0);
    for (unsigned i = 1; i < DICT_MAX_PAIRS; i++) {
        make_key(small, sizeof(small), i);
        assert_int_equal(dict_set_int(d, small, 1), 0);
    }
    assert_int_equal(dict_set_int(d, "one too many", 1), -E2BIG);
    assert_int_equal(dict_set_int(d, "trusted.key-1", 2), 0);
    assert_int_equal(dict_count(d), DICT_MAX_PAIRS);
}

static void put_makes_the_dict_only_when_it_succeeds(void **state)
{
    struct dict *d = NULL;
    uint64_t before = live_blocks();

    for (uint64_t n = 1; n <= 2; n++) {
        mem_fail_at(n);
        assert_int_equal(dict_put_uint(&d, "k", 1), -ENOMEM);
        mem_fail_at(0);
        assert_null(d);
    }
    assert_int_equal(live_blocks(), before);
    assert_int_equal(dict_put_uint(&d, "k", 1), 0);
    assert_int_equal(dict_put_bin(&d, "b", "x", 1), 0);
    assert_int_equal(dict_count(d), 2);
    dict_unref(d);
}

static void failed_allocations_leave_the_dict_unchanged(void **state)
{
    uint64_t before = live_blocks();
    bool has_passed = false;

    for (uint64_t n = 1; !has_passed; n++) {
        struct dict *d = dict_new();
        char key[32];
        mem_fail_at(n);
        unsigned count = 0;
        int r = 0;
        for (; count < 100 && r == 0; count++) {
            make_key(key, sizeof(key), count);
            r = dict_set_str(d, key, "value");
        }
        has_passed = mem_fail_at(0) > 0;
        if (r < 0) {
            assert_int_equal(r, -ENOMEM);
            assert_int_equal(dict_count(d), count - 1);
            assert_false(dict_has(d, key));
        }
        for (unsigned i = 0; i < dict_count(d); i++) {
            make_key(key, sizeof(key), i);
            assert_true(dict_has(d, key));
        }
        dict_unref(d);
    }
    assert_int_equal(live_blocks(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_reads_as_empty),
        cmocka_unit_test(setting_again_replaces_and_keeps_the_place),
        cmocka_unit_test(a_value_may_be_set_from_the_pair_it_replaces),
        cmocka_unit_test(numbers_and_decimal_text_convert_both_ways),
        cmocka_unit_test(text_that_is_no_number_is_refused),
        cmocka_unit_test(bytes_with_an_inner_nul_are_not_text),
        cmocka_unit_test(gfids_and_16_byte_blobs_convert_both_ways),
        cmocka_unit_test(attributes_and_times_are_kept_whole),
        cmocka_unit_test(a_copy_is_independent),
        cmocka_unit_test(a_large_dict_finds_deletes_and_iterates_in_order),
        cmocka_unit_test(churn_on_one_key_does_not_grow_the_dict),
        cmocka_unit_test(limits_are_refused),
        cmocka_unit_test(put_makes_the_dict_only_when_it_succeeds),
        cmocka_unit_test(failed_allocations_leave_the_dict_unchanged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
