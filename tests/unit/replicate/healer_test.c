/* Heals that a client starts by itself. */
#include "unit/replicate/world.h"
#include "core/mem.h"
#include "cluster/replicate/heal_daemon.h"

#define ALL_HEALS "    option data-self-heal on\n    option metadata-self-heal on\n    option entry-self-heal on\n"

/* The last brick misses a write, comes back, and the file is looked up. */
static FIBER void miss_a_write(struct world *w, struct test *t, const char *options)
{
    world_open(w, t, 3, options);
    assert_int_equal(3, world_write(w, 0, "one"));
    world_quiet(w);
    mem_brick_down(w->b[2]);
    assert_int_equal(3, world_write(w, 0, "two"));
    world_quiet(w);
    mem_brick_up(w->b[2]);
    assert_int_equal(0, world_lookup(w, "file"));
}

static FIBER bool is_equal_within(struct world *w, unsigned seconds)
{
    for (unsigned i = 0; i < seconds * 10; i++) {
        if (same_data(w, &w->file->gfid, 7) && !counter(w, 0, &w->file->gfid, PENDING(2), DATA))
            return true;
        assert_int_equal(0, fiber_sleep_ms(NULL, 100));
    }
    return false;
}

SIM_TEST(a_client_that_is_asked_to_heals_what_it_finds_behind)
{
    struct world w;

    miss_a_write(&w, t, ALL_HEALS);
    assert_true(is_equal_within(&w, 20));
    assert_int_equal(0, counter(&w, 1, &w.file->gfid, PENDING(2), DATA));
    world_close(&w);
}

SIM_TEST(by_default_it_leaves_that_to_the_daemon)
{
    struct world w;

    miss_a_write(&w, t, "");
    assert_false(is_equal_within(&w, 20));
    assert_int_not_equal(0, counter(&w, 0, &w.file->gfid, PENDING(2), DATA));
    world_close(&w);
}

SIM_TEST(without_background_heals_it_does_as_well)
{
    struct world w;

    miss_a_write(&w, t, ALL_HEALS "    option background-self-heal-count 0\n");
    assert_false(is_equal_within(&w, 20));
    world_close(&w);
}

SIM_TEST(nobody_waits_for_the_heal)
{
    struct world w;
    char text[4] = "";

    miss_a_write(&w, t, ALL_HEALS);
    assert_int_equal(3, world_read(&w, text, sizeof(text))); /* from a good copy, at once */
    assert_string_equal("two", text);
    assert_true(is_equal_within(&w, 20));
    world_close(&w);
}

SIM_TEST(a_client_is_no_daemon)
{
    SCOPED(dict_unref) struct dict *d = dict_new();
    int64_t is_daemon = -1;
    struct world w;

    world_open(&w, t, 2, ALL_HEALS);
    struct translator *set = graph_find(w.graph, "set");
    assert_non_null(set);
    assert_false(heal_daemon_is(set));
    assert_int_equal(-EINVAL, heal_daemon_order(set, HEAL_ORDER_FULL));
    assert_int_equal(0, heal_daemon_report(set, "0.", d));
    assert_int_equal(0, dict_get_int(d, "0.daemon", &is_daemon));
    assert_int_equal(0, is_daemon);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_that_is_asked_to_heals_what_it_finds_behind),
        cmocka_unit_test(by_default_it_leaves_that_to_the_daemon),
        cmocka_unit_test(without_background_heals_it_does_as_well),
        cmocka_unit_test(nobody_waits_for_the_heal),
        cmocka_unit_test(a_client_is_no_daemon),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
