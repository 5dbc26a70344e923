/* What has to be done to make copies equal. */
#include "cluster/replicate/heal_pieces.h"
#include "core/mem.h"
#include <stdio.h>
#include "unit/unit.h"

#define B 65536

/* One sum per letter: '.' hole, '0' zeros, any other letter data of its own. */
static uint8_t *sums(const char *text)
{
    uint8_t *s = mem_zalloc(strlen(text) * BLOCK_SUM_BYTES);

    assert_non_null(s);
    for (size_t i = 0; text[i]; i++) {
        if (text[i] == '0')
            s[i * BLOCK_SUM_BYTES + 15] = 1;
        else if (text[i] != '.')
            memset(s + i * BLOCK_SUM_BYTES, text[i], BLOCK_SUM_BYTES);
    }
    return s;
}

/* Compares a source with sink 1 and, if given, sink 2; a sink "-" is known to be empty. "C0+2:1 " is a copy of blocks 0
 * and 1 to the sinks of mask 1. */
static void check_how(const char *source, const char *sink1, const char *sink2, bool takes_all, const char *want)
{
    SCOPED_FREE struct block_question *k = NEW(struct block_question);
    SCOPED_FREE uint8_t *s = sums(source), *s1 = sums(sink1), *s2 = sink2 ? sums(sink2) : NULL;
    const uint8_t *of[CHILDREN_MAX] = { [1] = *sink1 == '-' ? NULL : s1, [2] = sink2 && *sink2 == '-' ? NULL : s2 };
    SCOPED_PIECES struct pieces p = { 0 };
    char text[256] = "";

    k->block_bytes = B;
    k->range_count = 1;
    k->ranges[0] = (struct block_range) { .offset = 0, .size = (uint32_t)strlen(source) * B };
    assert_int_equal(0, pieces_compare(&p, k, s, of, sink2 ? 6 : 2, takes_all));
    for (uint32_t i = 0; i < p.count; i++) {
        size_t n = strlen(text);
        snprintf(text + n, sizeof(text) - n, "%c%u+%u:%u ", "CZH"[p.list[i].kind], (unsigned)(p.list[i].offset / B),
                 (unsigned)(p.list[i].size / B), p.list[i].sinks);
    }
    assert_string_equal(want, text);
}

static void check(const char *source, const char *sink1, const char *sink2, const char *want)
{
    check_how(source, sink1, sink2, false, want);
}

static void all_data_is_copied_when_that_is_wanted(void **state)
{
    check_how("ab.0", "axx0", NULL, true, "C0+2:2 H2+1:2 ");
    check_how("ab", "ab", "ab", true, "C0+2:6 ");
}

static void equal_copies_need_nothing(void **state)
{
    check("abc", "abc", NULL, "");
    check("a.0", "a.0", "a.0", "");
}

static void data_is_copied_where_it_differs(void **state)
{
    check("abc", "axc", NULL, "C1+1:2 ");
    check("abc", "xyc", NULL, "C0+2:2 ");
    check("abc", "a.0", NULL, "C1+2:2 ");
}

static void zeros_and_holes_read_the_same(void **state)
{
    check("00", "0.", NULL, "");
}

static void zeros_over_data_and_space_that_the_source_does_not_take(void **state)
{
    check("0a", "xa", NULL, "Z0+1:2 ");
    check("..a", "x0a", NULL, "H0+2:2 ");
}

static void an_empty_sink_gets_data_and_allocated_zeros(void **state)
{
    check("a.0b", "-", NULL, "C0+1:2 Z2+1:2 C3+1:2 ");
}

static void every_sink_gets_only_what_it_lacks(void **state)
{
    check("abcd", "abxd", "xbcd", "C0+1:4 C2+1:2 ");
    check("ab", "xy", "xb", "C0+1:6 C1+1:2 ");
    check("ab", "ab", "-", "C0+2:4 ");
}

static void pieces_that_only_touch_stay_apart_when_they_differ_in_kind_or_sinks(void **state)
{
    check("a.", "xx", NULL, "C0+1:2 H1+1:2 ");
}

static void small_differences_are_looked_at_closer(void **state)
{
    SCOPED_FREE struct block_question *k = NEW(struct block_question);
    SCOPED_PIECES struct pieces p = { 0 };

    assert_int_equal(0, pieces_add(&p, 0, B, PIECE_COPY, 2));
    assert_int_equal(0, pieces_add(&p, 2 * B, B, PIECE_ZERO, 2));
    assert_int_equal(0, pieces_add(&p, 4 * B, PIECE_CLOSER_MAX, PIECE_COPY, 2));
    assert_int_equal(0, pieces_add(&p, 4 << 20, B, PIECE_COPY, 4)); /* for an empty sink only */
    assert_int_equal(0, pieces_add(&p, 5 << 20, 2 * B, PIECE_COPY, 6));
    assert_int_equal(2, pieces_closer(&p, 4, 4096, k));
    assert_int_equal(4096, k->block_bytes);
    assert_int_equal(0, k->ranges[0].offset);
    assert_int_equal(B, k->ranges[0].size);
    assert_int_equal(5 << 20, k->ranges[1].offset);
    assert_int_equal(2 * B, k->ranges[1].size);
    assert_int_equal(48, block_question_count(k));
    assert_int_equal(3, p.count);
    assert_int_equal(PIECE_CLOSER_MAX + B, pieces_bytes(&p, PIECE_COPY));
    assert_int_equal(2 * B, p.list[0].offset);
    assert_int_equal(4 << 20, p.list[2].offset);
}

static void blank_pieces_are_looked_at_again_and_cut_at_the_end_of_the_file(void **state)
{
    const struct piece asked[] = { { 0, 3 * 4096, PIECE_HOLE, 2 }, { 8 * 4096, 4 * 4096, PIECE_ZERO, 4 } };
    SCOPED_FREE uint8_t *s = sums("..a" /* the second piece: */ "000.");
    const struct block_answer a = { .size_bytes = 10 * 4096 + 100, .count = 7, .sums = s };
    SCOPED_PIECES struct pieces blank = { 0 };
    SCOPED_PIECES struct pieces copies = { 0 };

    assert_int_equal(0, pieces_blank(asked, 2, 4096, &a, &blank, &copies));
    assert_int_equal(1, copies.count);
    assert_int_equal(2 * 4096, copies.list[0].offset);
    assert_int_equal(4096, copies.list[0].size);
    assert_int_equal(2, copies.list[0].sinks);
    assert_int_equal(2 * 4096, pieces_bytes(&blank, PIECE_HOLE));
    assert_int_equal(2 * 4096 + 100, pieces_bytes(&blank, PIECE_ZERO));
    assert_int_equal(8 * 4096, blank.list[1].offset);
    assert_int_equal(4, blank.list[1].sinks);
}

static void pieces_are_sorted_by_offset(void **state)
{
    SCOPED_PIECES struct pieces p = { 0 };

    assert_int_equal(0, pieces_add(&p, 8192, 4096, PIECE_COPY, 2));
    assert_int_equal(0, pieces_add(&p, 0, 4096, PIECE_COPY, 2));
    pieces_sort(&p);
    assert_int_equal(0, p.list[0].offset);
    assert_int_equal(8192, p.list[1].offset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_copies_need_nothing),
        cmocka_unit_test(data_is_copied_where_it_differs),
        cmocka_unit_test(zeros_and_holes_read_the_same),
        cmocka_unit_test(zeros_over_data_and_space_that_the_source_does_not_take),
        cmocka_unit_test(an_empty_sink_gets_data_and_allocated_zeros),
        cmocka_unit_test(every_sink_gets_only_what_it_lacks),
        cmocka_unit_test(pieces_that_only_touch_stay_apart_when_they_differ_in_kind_or_sinks),
        cmocka_unit_test(all_data_is_copied_when_that_is_wanted),
        cmocka_unit_test(small_differences_are_looked_at_closer),
        cmocka_unit_test(blank_pieces_are_looked_at_again_and_cut_at_the_end_of_the_file),
        cmocka_unit_test(pieces_are_sorted_by_offset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
