/* What the counters say: who is not read, and the other pure rules. */
#include "cluster/replicate/quorum.h"
#include "cluster/replicate/result.h"
#include "unit/unit.h"

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
        cmocka_unit_test(anybodys_blame_stops_reading), cmocka_unit_test(counters_round_trip),
        cmocka_unit_test(shorter_copies_are_dropped),   cmocka_unit_test(quorum_counts),
        cmocka_unit_test(errors_have_an_order),         cmocka_unit_test(hash_vectors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
