/* protocol/client and protocol/server together: waiting, giving up, connections that break. */
#include "unit/protocol/pair.h"
#include <fcntl.h>
#include <stdlib.h>

static FIBER int answer_slowly(struct leaf *leaf, struct call *call, const struct request *q, struct reply *r)
{
    (void)fiber_sleep_ms(NULL, 200); /* as long as the brick does it; the client gives up before */
    return 0;
}

static int with_deadline(struct test *t, uint64_t ms, const struct request *q)
{
    struct call call;

    call_init(&call, t->graph);
    lk_owner_from_u64(&call.lk_owner, 7);
    call.scope.deadline_ns = env_deadline_ms(t->env, ms);
    int r = translator_call(t->graph->root, &call, q, NULL);
    call_done(&call);
    return r;
}

static void wait_for_count(struct pair *p, enum op op, uint32_t count)
{
    for (int i = 0; leaf_count(p->leaf, op) < count; i++) {
        if (i == 10000)
            fail_msg("the brick saw %u of %s, not %u", leaf_count(p->leaf, op), op_name(op), count);
        assert_int_equal(0, fiber_sleep_ms(NULL, 1));
    }
}

SIM_TEST(a_lock_that_comes_too_late_is_given_back)
{
    struct pair *p = pair_new(t, NULL, NULL);
    struct lock_range range = { .type = LOCK_WRITE };
    struct request q = { .op = OP_INODELK, .inode = t->file, .text = "domain", .command = LOCK_WAIT, .lock = &range };

    p->leaf->answers[OP_INODELK] = answer_slowly;
    assert_int_equal(-ETIMEDOUT, with_deadline(t, 50, &q));
    wait_for_count(p, OP_INODELK, 2);
    assert_int_equal(LOCK_UNLOCK, leaf_last(p->leaf)->command);
    assert_string_equal("domain", leaf_last(p->leaf)->text);
    pair_free(p);
}

SIM_TEST(what_a_late_compound_left_is_undone)
{
    struct pair *p = pair_new(t, NULL, NULL);
    struct lock_range range = { .type = LOCK_WRITE, .start = 3, .length = 4 };
    struct request steps[] = {
        { .op = OP_INODELK, .inode = t->file, .text = "d1", .command = LOCK_TRY, .lock = &range },
        { .op = OP_OPEN, .inode = t->file, .fd = t->fd, .flags = O_RDWR },
        { .op = OP_INODELK, .inode = t->file, .fd = t->fd, .text = "d2", .command = LOCK_WAIT, .lock = &range },
        { .op = OP_STAT, .inode = t->file },
    };
    struct request q = { .op = OP_COMPOUND, .steps = steps, .step_count = 4 };

    p->leaf->answers[OP_INODELK] = answer_slowly;
    assert_int_equal(-ETIMEDOUT, with_deadline(t, 50, &q));
    wait_for_count(p, OP_INODELK, 4);
    assert_int_equal(0, fiber_sleep_ms(NULL, 1000));
    assert_int_equal(LOCK_UNLOCK, p->leaf->calls[5].command);
    assert_string_equal("d1", p->leaf->calls[5].text);
    assert_int_equal(3, p->leaf->calls[5].lock.start);
    assert_int_equal(LOCK_UNLOCK, p->leaf->calls[6].command);
    assert_string_equal("d2", p->leaf->calls[6].text);
    assert_true(list_empty(&p->brick->fds));
    pair_free(p);
}

SIM_TEST(a_descriptor_that_comes_too_late_is_closed)
{
    struct pair *p = pair_new(t, NULL, NULL);
    struct request q = { .op = OP_OPEN, .inode = t->file, .fd = t->fd, .flags = O_RDWR };

    p->leaf->answers[OP_OPEN] = answer_slowly;
    assert_int_equal(-ETIMEDOUT, with_deadline(t, 50, &q));
    assert_int_equal(0, fiber_sleep_ms(NULL, 1000));
    assert_int_equal(1, leaf_count(p->leaf, OP_OPEN));
    assert_true(list_empty(&p->brick->fds));
    pair_free(p);
}

SIM_TEST(an_operation_that_takes_long_is_no_silence)
{
    struct pair *p = pair_new(t, "option ping-timeout 5", NULL);

    p->leaf->delay_ms = 20000;
    uint64_t before_ns = env_now_ns(t->env);
    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->file));
    assert_true(env_now_ns(t->env) - before_ns >= 20000000000ull);
    assert_int_equal(1, p->ups);
    pair_free(p);
}

static void cut(void *arg)
{
    struct test *t = arg;

    sim_cut(t->sim, "host", "far");
}

SIM_TEST(a_silent_brick_is_given_up_after_the_ping_timeout)
{
    struct pair *p = pair_new_far(t, "option ping-timeout 5", NULL);
    uint64_t before_ns = env_now_ns(t->env);

    sim_hold(t->sim, "host", "far");
    assert_int_equal(-ENOTCONN, test_op(t, OP_STAT, .inode = t->file));
    assert_in_range(env_now_ns(t->env) - before_ns, 5000000000ull, 5001000000ull);
    pair_wait(p, false);
    sim_heal(t->sim, "host", "far");
    pair_wait(p, true);
    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->file));
    pair_free(p);
}

SIM_TEST(a_silent_client_is_given_up_after_the_user_timeout)
{
    struct pair *p = pair_new_far(t, NULL, NULL);

    assert_int_equal(0, test_op(t, OP_OPEN, .inode = t->file, .fd = t->fd, .flags = O_RDWR));
    assert_int_equal(0, fiber_sleep_ms(NULL, 123456));
    uint64_t before_ns = env_now_ns(t->env);
    sim_hold(t->sim, "host", "far"); /* packets are lost, no connection is reset */
    while (leaf_count(p->leaf, OP_FLUSH) == 0 && env_now_ns(t->env) - before_ns < 100000000000ull)
        assert_int_equal(0, fiber_sleep_ms(NULL, 10));
    assert_in_range(env_now_ns(t->env) - before_ns, 42000000000ull, 42100000000ull);
    sim_heal(t->sim, "host", "far");
    pair_wait(p, false); /* it had nothing to say, and noticed nothing */
    pair_wait(p, true);
    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->file));
    pair_free(p);
}

SIM_TEST(how_long_a_client_may_be_silent_is_an_option)
{
    struct pair *p = pair_new_far(t, NULL, "option transport.tcp-user-timeout 6");

    assert_int_equal(0, test_op(t, OP_OPEN, .inode = t->file, .fd = t->fd, .flags = O_RDWR));
    sim_hold(t->sim, "host", "far");
    assert_int_equal(0, fiber_sleep_ms(NULL, 5900));
    assert_int_equal(0, leaf_count(p->leaf, OP_FLUSH));
    assert_int_equal(0, fiber_sleep_ms(NULL, 200));
    assert_int_equal(1, leaf_count(p->leaf, OP_FLUSH));
    sim_heal(t->sim, "host", "far");
    pair_wait(p, true);
    pair_free(p);
}

SIM_TEST(without_a_user_timeout_only_the_kernel_decides)
{
    struct pair *p = pair_new_far(t, NULL, "option transport.tcp-user-timeout 0");

    assert_int_equal(0, test_op(t, OP_OPEN, .inode = t->file, .fd = t->fd, .flags = O_RDWR));
    sim_hold(t->sim, "host", "far");
    assert_int_equal(0, fiber_sleep_ms(NULL, 500000));
    assert_int_equal(0, leaf_count(p->leaf, OP_FLUSH));
    sim_heal(t->sim, "host", "far");
    pair_wait(p, true);
    pair_free(p);
}

struct writing {
    struct test *t;
    struct buf *data;
};

static FIBER int write_one(void *arg)
{
    struct writing *w = arg;
    struct call call;

    call_init(&call, w->t->graph);
    int r = translator_call(w->t->graph->root, &call,
                            &(struct request) { .op = OP_WRITE, .inode = w->t->file, .data = w->data }, NULL);
    call_done(&call);
    return r;
}

SIM_TEST(a_brick_that_takes_nothing_does_not_fill_the_memory)
{
    struct pair *p = pair_new_far(t, NULL, NULL);
    SCOPED(buf_unref) struct buf *b = buf_new(1024 * 1024);
    struct writing w = { .t = t, .data = b };
    struct group g;

    memset(b->data, 1, b->size);
    sim_hold(t->sim, "host", "far");
    group_init(&g, t->env);
    for (int i = 0; i < 100; i++)
        assert_int_equal(0, group_run(&g, "write", write_one, &w));
    assert_int_equal(0, fiber_sleep_ms(NULL, 1000));
    SCOPED_FREE char *dump = graph_statedump(t->graph);
    const char *queued = strstr(dump, "queued-bytes=");
    assert_non_null(queued);
    assert_in_range(strtoul(queued + strlen("queued-bytes="), NULL, 10), 1, 18 * 1024 * 1024);
    sim_heal(t->sim, "host", "far");
    group_wait_all(&g);
    assert_int_equal(100, g.succeeded);
    assert_int_equal(1, p->ups);
    pair_free(p);
}

SIM_TEST(a_connection_that_breaks_ends_what_is_under_way)
{
    struct pair *p = pair_new_far(t, NULL, NULL);

    p->leaf->delay_ms = 3000;
    assert_int_equal(0, sim_at(t->sim, env_now_ns(t->env) + 1000000000, cut, t));
    assert_int_equal(-ENOTCONN, test_op(t, OP_STAT, .inode = t->file));
    pair_wait(p, false);
    sim_heal(t->sim, "host", "far");
    pair_wait(p, true);
    p->leaf->delay_ms = 0;
    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->file));
    pair_free(p);
}

SIM_TEST(an_operation_without_an_answer_ends_after_the_frame_timeout)
{
    struct pair *p = pair_new(t, "option frame-timeout 30", NULL);

    p->leaf->delay_ms = 100000;
    assert_int_equal(-ENOTCONN, test_op(t, OP_STAT, .inode = t->file));
    assert_int_equal(0, p->downs);
    pair_free(p);
}

SIM_TEST(requests_that_wait_for_locks_do_not_stop_others)
{
    struct pair *p = pair_new(t, NULL, "option rpc.outstanding-rpc-limit 1");
    struct lock_range range = { .type = LOCK_WRITE };
    struct request q = { .op = OP_INODELK, .inode = t->file, .text = "domain", .command = LOCK_WAIT, .lock = &range };

    p->leaf->answers[OP_INODELK] = answer_slowly;
    assert_int_equal(-ETIMEDOUT, with_deadline(t, 10, &q));
    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->file));
    assert_int_equal(1, leaf_count(p->leaf, OP_INODELK)); /* it is still there */
    pair_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lock_that_comes_too_late_is_given_back),
        cmocka_unit_test(what_a_late_compound_left_is_undone),
        cmocka_unit_test(a_descriptor_that_comes_too_late_is_closed),
        cmocka_unit_test(an_operation_that_takes_long_is_no_silence),
        cmocka_unit_test(a_silent_brick_is_given_up_after_the_ping_timeout),
        cmocka_unit_test(a_silent_client_is_given_up_after_the_user_timeout),
        cmocka_unit_test(how_long_a_client_may_be_silent_is_an_option),
        cmocka_unit_test(without_a_user_timeout_only_the_kernel_decides),
        cmocka_unit_test(a_brick_that_takes_nothing_does_not_fill_the_memory),
        cmocka_unit_test(a_connection_that_breaks_ends_what_is_under_way),
        cmocka_unit_test(an_operation_without_an_answer_ends_after_the_frame_timeout),
        cmocka_unit_test(requests_that_wait_for_locks_do_not_stop_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
