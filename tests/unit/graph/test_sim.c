/* Tests of translators in the simulated world. */
#include "unit/graph/test_graph.h"

static void run_in_sim(void *arg)
{
    struct test_run *run = arg;

    test_run(run);
    sim_stop(run->t->sim);
}

void test_in_sim(test_fn fn, uint64_t seed)
{
    struct test *t = mem_zalloc(sizeof(*t));
    struct test_run run = { .t = t, .fn = fn };

    assert_non_null(t);
    test_open(t);
    t->sim = sim_new(&(struct sim_config) { .seed = seed }, t->log);
    assert_non_null(t->sim);
    t->env = sim_process_new(t->sim, "host", "test");
    assert_non_null(t->env);
    assert_int_equal(0, fiber_spawn(t->env, "test", run_in_sim, &run));
    assert_true(sim_run(t->sim, UINT64_MAX));
    while (sim_live_fibers(t->env) > 0)
        sim_run(t->sim, sim_now_ns(t->sim) + 1000000);
    sim_process_free(t->env);
    sim_free(t->sim);
    test_close(t);
    mem_free(t);
}
