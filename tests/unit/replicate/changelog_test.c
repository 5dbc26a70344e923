/* What the counters say: the table of cases that decides who is read and who is healed, and the other pure rules. */
#include "cluster/replicate/quorum.h"
#include "cluster/replicate/result.h"
#include "unit/unit.h"

#define ALL 7u

/* Rows: whom child i blames; D: dirty set. */
static struct direction decide(enum change change, uint32_t row0, uint32_t row1, uint32_t row2, uint32_t dirty)
{
    const uint32_t rows[3] = { row0, row1, row2 };
    struct accusations a;

    accusations_init(&a, 3);
    for (unsigned i = 0; i < 3; i++)
        accusations_add(&a, i, rows[i], (dirty & bit(i)) != 0);
    return accusations_direction(&a, change, ALL, 2);
}

static struct direction decide_pair(enum change change, uint32_t row0, uint32_t row1, uint32_t dirty)
{
    struct accusations a;

    accusations_init(&a, 2);
    accusations_add(&a, 0, row0, dirty & 1);
    accusations_add(&a, 1, row1, dirty & 2);
    return accusations_direction(&a, change, 3, 2);
}

static void check(struct direction d, enum verdict verdict, uint32_t sources, uint32_t sinks, uint32_t witnesses)
{
    assert_int_equal(verdict, d.verdict);
    assert_int_equal(sources, d.sources);
    assert_int_equal(sinks, d.sinks);
    assert_int_equal(witnesses, d.witnesses);
}

static void all_zero_is_clean(void **state)
{
    check(decide(CHANGE_DATA, 0, 0, 0, 0), VERDICT_CLEAN, 7, 0, 0);
    check(decide(CHANGE_METADATA, 0, 0, 0, 0), VERDICT_CLEAN, 7, 0, 0);
    check(decide(CHANGE_ENTRY, 0, 0, 0, 0), VERDICT_CLEAN, 7, 0, 0);
}

static void two_blame_one(void **state)
{
    check(decide(CHANGE_DATA, 2, 0, 2, 0), VERDICT_HEAL, 5, 2, 0);
    check(decide(CHANGE_ENTRY, 2, 0, 2, 0), VERDICT_HEAL, 5, 2, 0);
}

static void one_blames_two(void **state)
{
    check(decide(CHANGE_DATA, 6, 0, 0, 0), VERDICT_HEAL, 1, 6, 0);
}

static void mutual_blame_leaves_the_third_as_source(void **state)
{
    /* 0 blames 1, 1 blames 0, 2 blames nobody: no sink is named by the source; comparing finishes it. */
    check(decide(CHANGE_DATA, 2, 1, 0, 0), VERDICT_COMPARE, 4, 0, 0);
    /* with 2 blaming 0 */
    check(decide(CHANGE_DATA, 2, 1, 1, 0), VERDICT_HEAL, 4, 1, 0);
}

static void a_cycle_of_blame_makes_all_sources(void **state)
{
    check(decide(CHANGE_DATA, 2, 4, 1, 0), VERDICT_COMPARE, 7, 0, 0);
    check(decide(CHANGE_METADATA, 2, 4, 1, 0), VERDICT_COMPARE, 7, 0, 0);
    /* names are merged instead */
    check(decide(CHANGE_ENTRY, 2, 4, 1, 0), VERDICT_MERGE, 0, 7, 0);
}

static void everybody_blamed_by_a_majority_is_split_brain(void **state)
{
    check(decide(CHANGE_DATA, 6, 5, 3, 0), VERDICT_SPLIT_BRAIN, 0, 7, 0);
    check(decide(CHANGE_ENTRY, 6, 5, 3, 0), VERDICT_MERGE, 0, 7, 0);
}

static void a_pair_that_blames_each_other_is_split_brain(void **state)
{
    check(decide_pair(CHANGE_DATA, 2, 1, 0), VERDICT_SPLIT_BRAIN, 0, 3, 0);
    check(decide_pair(CHANGE_METADATA, 2, 1, 0), VERDICT_SPLIT_BRAIN, 0, 3, 0);
    check(decide_pair(CHANGE_ENTRY, 2, 1, 0), VERDICT_MERGE, 0, 3, 0);
    check(decide_pair(CHANGE_DATA, 2, 0, 0), VERDICT_HEAL, 1, 2, 0);
    check(decide_pair(CHANGE_DATA, 0, 1, 0), VERDICT_HEAL, 2, 1, 0);
}

static void dirty_alone_means_compare_or_merge(void **state)
{
    check(decide(CHANGE_DATA, 0, 0, 0, 3), VERDICT_COMPARE, 7, 0, 3);
    check(decide(CHANGE_METADATA, 0, 0, 0, 1), VERDICT_COMPARE, 7, 0, 1);
    check(decide(CHANGE_ENTRY, 0, 0, 0, 4), VERDICT_MERGE, 7, 0, 4);
}

static void blame_with_dirty_is_still_healed_from_the_sources(void **state)
{
    check(decide(CHANGE_DATA, 2, 0, 2, 1), VERDICT_HEAL, 5, 2, 1);
    /* a directory whose source has unfinished changes is merged, though */
    check(decide(CHANGE_ENTRY, 2, 0, 2, 1), VERDICT_MERGE, 5, 2, 1);
    /* dirty on the sink only does not matter */
    check(decide(CHANGE_ENTRY, 2, 0, 2, 2), VERDICT_HEAL, 5, 2, 0);
}

static void a_fools_accusations_do_not_count(void **state)
{
    /* child 1 blames itself and 0 */
    check(decide(CHANGE_DATA, 0, 3, 0, 0), VERDICT_COMPARE, 7, 0, 2);
    check(decide(CHANGE_DATA, 2, 3, 0, 0), VERDICT_HEAL, 5, 2, 0);
}

static void without_all_answers_there_is_no_decision(void **state)
{
    struct accusations a;

    accusations_init(&a, 3);
    accusations_add(&a, 0, 2, false);
    accusations_add(&a, 1, 0, false);
    assert_int_equal(VERDICT_UNKNOWN, accusations_direction(&a, CHANGE_DATA, ALL, 2).verdict);
}

static void anybodys_blame_stops_reading(void **state)
{
    struct accusations a;

    accusations_init(&a, 3);
    accusations_add(&a, 0, 2, false);
    accusations_add(&a, 1, 0, true);
    accusations_add(&a, 2, 4 | 1, false); /* a fool's blame counts here: better not read than read old data */
    assert_int_equal(3, accusations_accused(&a));
}

static void counters_round_trip(void **state)
{
    const uint8_t golden[12] = { 0, 0, 0, 1, 0, 0, 1, 0, 0xff, 0xff, 0xff, 0xfe };
    uint8_t again[12];
    struct counters c;

    assert_int_equal(0, counters_parse(golden, 12, &c));
    assert_int_equal(1, c.n[CHANGE_DATA]);
    assert_int_equal(256, c.n[CHANGE_METADATA]);
    assert_int_equal(-2, c.n[CHANGE_ENTRY]);
    counters_format(&c, again);
    assert_memory_equal(golden, again, 12);
    assert_int_equal(-EINVAL, counters_parse(golden, 11, &c));
    assert_int_equal(-EINVAL, counters_parse(golden, 0, &c));
}

static void shorter_copies_are_dropped(void **state)
{
    const uint64_t sizes[3] = { 10, 4, 10 };

    assert_int_equal(5, children_with_longest(7, sizes));
    assert_int_equal(2, children_with_longest(2, sizes));
    assert_int_equal(0, children_with_longest(0, sizes));
}

static void quorum_counts(void **state)
{
    struct quorum q = { .type = QUORUM_AUTO, .child_count = 3 };

    assert_false(quorum_met(&q, 1));
    assert_true(quorum_met(&q, 6));
    q.child_count = 2;
    assert_true(quorum_met(&q, 1));
    assert_false(quorum_met(&q, 2));
    q.child_count = 4;
    assert_true(quorum_met(&q, 3));
    assert_false(quorum_met(&q, 12));
    assert_true(quorum_met(&q, 14));
    q = (struct quorum) { .type = QUORUM_FIXED, .fixed_count = 1, .child_count = 3 };
    assert_true(quorum_met(&q, 4));
    assert_false(quorum_met(&q, 0));
    q.fixed_count = 3;
    assert_false(quorum_met(&q, 3));
    q = (struct quorum) { .type = QUORUM_NONE, .child_count = 2 };
    assert_true(quorum_met(&q, 2));
    assert_false(quorum_met(&q, 0));
    assert_int_equal(2, quorum_needed(&q));
}

static void errors_have_an_order(void **state)
{
    const int order[] = { -ENOTCONN, -EIO, -ENOSPC, -ESTALE, -ENOENT, -ENODATA };

    for (unsigned i = 1; i < ARRAY_SIZE(order); i++) {
        assert_int_equal(order[i], result_worse(order[i - 1], order[i]));
        assert_int_equal(order[i], result_worse(order[i], order[i - 1]));
    }
    assert_int_equal(-EPERM, result_worse(0, -EPERM));
    assert_int_equal(-EACCES, result_worse(-EPERM, -EACCES)); /* the last one of equals */
}

static void hash_vectors(void **state)
{
    const uint8_t root[16] = { [15] = 1 };
    const uint8_t other[16] = { 0xdc, 0xa3, 0x71, 0xfc, 0x4b, 0xf6, 0x49, 0x67,
                                0x88, 0xf4, 0x88, 0x95, 0xda, 0xa8, 0x64, 0x12 };

    assert_int_equal(0xfe513317, super_fast_hash(root, 16));
    assert_int_equal(0xb43c3c6f, super_fast_hash(other, 16));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_zero_is_clean),
        cmocka_unit_test(two_blame_one),
        cmocka_unit_test(one_blames_two),
        cmocka_unit_test(mutual_blame_leaves_the_third_as_source),
        cmocka_unit_test(a_cycle_of_blame_makes_all_sources),
        cmocka_unit_test(everybody_blamed_by_a_majority_is_split_brain),
        cmocka_unit_test(a_pair_that_blames_each_other_is_split_brain),
        cmocka_unit_test(dirty_alone_means_compare_or_merge),
        cmocka_unit_test(blame_with_dirty_is_still_healed_from_the_sources),
        cmocka_unit_test(a_fools_accusations_do_not_count),
        cmocka_unit_test(without_all_answers_there_is_no_decision),
        cmocka_unit_test(anybodys_blame_stops_reading),
        cmocka_unit_test(counters_round_trip),
        cmocka_unit_test(shorter_copies_are_dropped),
        cmocka_unit_test(quorum_counts),
        cmocka_unit_test(errors_have_an_order),
        cmocka_unit_test(hash_vectors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
