/* performance/io-threads: limits, classes, turns. */
#include "performance/io-threads/io_threads.h"
#include "rpc/block_sums.h"
#include "unit/graph/test_graph.h"
#include <stdio.h>

#define ASKERS 24

struct asker {
    struct test *t;
    struct call call;
    enum op op;
    uint64_t tag;
    int result;
    bool is_done;
};

/* The leaf holds every operation until the test lets it go. */
static struct gate {
    struct waitq q;
    unsigned inside, most;
    uint64_t order[64];
    unsigned entered;
    uint32_t by_op[OP_COUNT];
} gate;

static FIBER int hold(struct leaf *leaf, struct call *call, const struct request *q, struct reply *r)
{
    (void)leaf;
    (void)r;
    gate.inside++;
    gate.by_op[q->op]++;
    gate.most = MAX(gate.most, gate.inside);
    gate.order[gate.entered++] = q->size;
    int result = waitq_wait(&gate.q, &call->scope);
    gate.inside--;
    gate.by_op[q->op]--;
    return result;
}

static void ask_fiber(void *arg)
{
    struct asker *a = arg;
    struct lock_range lock = { .type = LOCK_WRITE, .start = 0 };
    struct request q = {
        .op = a->op, .inode = a->t->file, .size = a->tag, .text = "d", .lock = &lock, .command = LOCK_TRY
    };
    SCOPED(reply_free) struct reply *r = reply_new();
    a->result = translator_call(a->t->graph->root, &a->call, &q, r);
    a->is_done = true;
}

static FIBER void settle(void)
{
    (void)fiber_sleep_ms(NULL, 1);
}

/* The next one is asked after this one has arrived: the simulator starts fibers in any order. */
static FIBER void ask_as(struct asker *a, struct test *t, enum op op, struct client *client, uint64_t tag, int32_t pid)
{
    *a = (struct asker) { .t = t, .op = op, .tag = tag };
    call_init(&a->call, t->graph);
    a->call.client = client;
    a->call.pid = pid;
    assert_int_equal(0, fiber_spawn(t->env, "asker", ask_fiber, a));
    settle();
}

static FIBER void ask(struct asker *a, struct test *t, enum op op, struct client *client, uint64_t tag)
{
    ask_as(a, t, op, client, tag, 100);
}

static void start(struct test *t, const char *key, const char *value)
{
    memset(&gate, 0, sizeof(gate));
    waitq_init(&gate.q);
    test_push(t, &leaf_class, NULL);
    test_push(t, &io_threads_class, "thread-count", "4", key, value, NULL);
    test_start(t);
    for (unsigned op = 0; op < OP_COUNT; op++)
        if (op != OP_IPC)
            t->leaf->answers[op] = hold;
}

static FIBER void let_all_go(struct asker *askers, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        while (!askers[i].is_done) {
            waitq_wake_all(&gate.q, 0);
            settle();
        }
}

SIM_TEST(no_more_than_thread_count_run_at_once_and_all_get_done)
{
    static struct asker a[ASKERS];
    start(t, "low-prio-threads", "16");
    for (unsigned i = 0; i < ASKERS; i++)
        ask(&a[i], t, OP_READ, NULL, i);
    settle();
    assert_int_equal(4, gate.inside);
    let_all_go(a, ASKERS);
    assert_int_equal(4, gate.most);
    for (unsigned i = 0; i < ASKERS; i++) {
        assert_int_equal(0, a[i].result);
        assert_int_equal(i / 4, gate.order[i] / 4); /* one client: first come first served */
    }
}

SIM_TEST(a_class_has_its_own_limit)
{
    static struct asker a[4];
    start(t, "low-prio-threads", "2");
    for (unsigned i = 0; i < 4; i++)
        ask(&a[i], t, OP_READ, NULL, i);
    settle();
    assert_int_equal(2, gate.inside);
    let_all_go(a, 4);
}

SIM_TEST(names_come_before_data_and_no_class_starves)
{
    static struct asker a[10];
    start(t, "low-prio-threads", "4");
    for (unsigned i = 0; i < 4; i++)
        ask(&a[i], t, OP_READ, NULL, i);
    for (unsigned i = 4; i < 6; i++)
        ask(&a[i], t, OP_READ, NULL, i);
    settle();
    ask(&a[6], t, OP_STAT, NULL, 0);
    settle();
    assert_int_equal(1, gate.by_op[OP_STAT]); /* nothing of its class runs: at once */
    ask(&a[7], t, OP_STAT, NULL, 0);
    settle();
    assert_int_equal(1, gate.by_op[OP_STAT]);
    waitq_wake_one(&gate.q, 0); /* a read ends: five ran, room for four, so nobody yet */
    settle();
    waitq_wake_one(&gate.q, 0);
    settle();
    assert_int_equal(2, gate.by_op[OP_STAT]); /* before the reads that waited longer */
    assert_int_equal(2, gate.by_op[OP_READ]);
    let_all_go(a, 8);
}

SIM_TEST(internal_clients_go_one_at_a_time_while_others_are_at_work)
{
    static struct asker a[4];
    start(t, "low-prio-threads", "4");
    ask(&a[0], t, OP_READ, NULL, 0);
    for (unsigned i = 1; i < 4; i++) {
        ask_as(&a[i], t, OP_STAT, NULL, i, PID_SELF_HEAL);
    }
    settle();
    assert_int_equal(2, gate.inside);
    let_all_go(a, 4);
}

SIM_TEST(internal_clients_that_disturb_nobody_are_not_held_down)
{
    static struct asker a[3];
    start(t, "low-prio-threads", "4");
    for (unsigned i = 0; i < 3; i++) {
        ask_as(&a[i], t, OP_STAT, NULL, i, PID_SELF_HEAL);
    }
    settle();
    assert_int_equal(3, gate.inside);
    let_all_go(a, 3);
}

SIM_TEST(least_priority_can_be_switched_off)
{
    static struct asker a[3];
    start(t, "enable-least-priority", "off");
    for (unsigned i = 0; i < 3; i++) {
        ask_as(&a[i], t, OP_STAT, NULL, i, PID_SELF_HEAL);
    }
    settle();
    assert_int_equal(3, gate.inside);
    let_all_go(a, 3);
}

SIM_TEST(clients_take_turns)
{
    static struct asker a[12];
    start(t, "low-prio-threads", "1");
    struct client *greedy = client_new(t->graph, "greedy", "g"), *modest = client_new(t->graph, "modest", "m");
    for (unsigned i = 0; i < 8; i++)
        ask(&a[i], t, OP_READ, greedy, 100 + i);
    settle();
    for (unsigned i = 8; i < 10; i++)
        ask(&a[i], t, OP_READ, modest, 200 + i);
    settle();
    let_all_go(a, 10);
    assert_int_equal(100, gate.order[0]);
    assert_int_equal(101, gate.order[1]);
    assert_int_equal(208, gate.order[2]);
    assert_int_equal(102, gate.order[3]);
    assert_int_equal(209, gate.order[4]);
    client_unref(greedy);
    client_unref(modest);
}

SIM_TEST(lock_requests_need_no_admission)
{
    static struct asker a[8];
    start(t, "low-prio-threads", "4");
    for (unsigned i = 0; i < 4; i++)
        ask(&a[i], t, OP_WRITE, NULL, i);
    for (unsigned i = 4; i < 6; i++)
        ask(&a[i], t, OP_INODELK, NULL, i);
    ask(&a[6], t, OP_LK, NULL, 6);
    ask(&a[7], t, OP_ENTRYLK, NULL, 7);
    settle();
    assert_int_equal(8, gate.inside);
    let_all_go(a, 8);
}

SIM_TEST(a_cancelled_request_leaves_the_queue)
{
    static struct asker a[3];
    start(t, "low-prio-threads", "1");
    for (unsigned i = 0; i < 3; i++)
        ask(&a[i], t, OP_READ, NULL, i);
    settle();
    scope_cancel(&a[1].call.scope);
    settle();
    assert_int_equal(-ECANCELED, a[1].result);
    let_all_go(a, 3);
    assert_int_equal(2, gate.entered);
}

SIM_TEST(requests_of_a_gone_client_are_dropped_if_wanted)
{
    static struct asker a[4];
    start(t, "cleanup-disconnected-reqs", "on");
    struct client *one = client_new(t->graph, "one", "o");
    for (unsigned i = 0; i < 4; i++)
        ask(&a[i], t, OP_READ, NULL, i);
    settle();
    static struct asker b[2];
    for (unsigned i = 0; i < 2; i++)
        ask(&b[i], t, OP_READ, one, 10 + i);
    settle();
    client_gone(one);
    settle();
    assert_true(b[0].is_done && b[1].is_done);
    assert_int_equal(-ENOTCONN, b[0].result);
    let_all_go(a, 4);
    assert_int_equal(4, gate.entered);
    client_unref(one);
}

SIM_TEST(pass_through_admits_everything)
{
    static struct asker a[8];
    start(t, "pass-through", "on");
    for (unsigned i = 0; i < 8; i++)
        ask(&a[i], t, OP_READ, NULL, i);
    settle();
    assert_int_equal(8, gate.inside);
    let_all_go(a, 8);
}

SIM_TEST(old_options_are_taken)
{
    test_build(t, "volume leaf\n type test/leaf\n option note x\nend-volume\n"
                  "volume brick\n type performance/io-threads\n option thread-count 4\n option cache-size 64MB\n"
                  " option queue-limit 10\n option autoscaling on\n option min-threads 1\n option max-threads 3\n"
                  " subvolumes leaf\nend-volume\n");
    assert_logged(t, "option-ignored");
    assert_not_logged(t, "unknown-option");
}

static FIBER int takes_10_ms(struct leaf *leaf, struct call *call, const struct request *q, struct reply *r)
{
    gate.order[gate.entered++] = env_now_ns(leaf->me->env) / 1000000;
    return fiber_sleep_ms(&call->scope, 10);
}

/* Milliseconds between the beginnings of two comparisons that were asked for at once. */
static FIBER uint64_t apart_ms(struct test *t, const char *share, bool has_client, bool *ret_tells)
{
    struct asker client, compare[2];
    struct call call;

    start(t, "compare-share", share);
    struct request q = { .op = OP_BLOCKSUMS, .inode = t->file };
    for (unsigned op = 0; op < OP_COUNT; op++)
        t->leaf->answers[op] = takes_10_ms;
    if (has_client) {
        ask(&client, t, OP_READ, NULL, 1);
        (void)fiber_sleep_ms(NULL, 30);
    }
    gate.entered = 0;
    ask_as(&compare[0], t, OP_BLOCKSUMS, NULL, 1, PID_SELF_HEAL);
    ask_as(&compare[1], t, OP_BLOCKSUMS, NULL, 2, PID_SELF_HEAL);
    (void)fiber_sleep_ms(NULL, 150);
    assert_true(compare[0].is_done && compare[1].is_done);
    assert_int_equal(2, gate.entered);
    uint64_t apart = gate.order[1] - gate.order[0];
    if (has_client) {
        ask(&client, t, OP_READ, NULL, 1);
        (void)fiber_sleep_ms(NULL, 30);
    }
    call_init(&call, t->graph);
    call.pid = PID_SELF_HEAL;
    assert_int_equal(0, translator_call(t->graph->root, &call, &q, t->r));
    call_done(&call);
    *ret_tells = dict_has(t->r->xdata, CLIENTS_BUSY_KEY);
    return apart;
}

SIM_TEST(comparing_pauses_while_clients_are_at_work)
{
    bool tells;
    uint64_t apart = apart_ms(t, "25", true, &tells);

    assert_in_range(apart, 39, 42); /* 10 ms of work, 30 of pause */
    assert_true(tells);
}

SIM_TEST(comparing_does_not_pause_when_nobody_is_disturbed)
{
    bool tells;
    uint64_t apart = apart_ms(t, "25", false, &tells);

    assert_in_range(apart, 0, 2); /* at the same time */
    assert_false(tells);
}

SIM_TEST(a_whole_share_is_no_pause)
{
    bool tells;

    assert_in_range(apart_ms(t, "100", true, &tells), 9, 12);
    assert_true(tells);
}

SIM_TEST(comparisons_do_not_keep_out_what_heal_does_with_a_lock_in_hand)
{
    struct asker client, compare[2], write;

    start(t, "compare-share", "50");
    ask(&client, t, OP_READ, NULL, 0);
    ask_as(&compare[0], t, OP_BLOCKSUMS, NULL, 1, PID_SELF_HEAL);
    ask_as(&compare[1], t, OP_BLOCKSUMS, NULL, 2, PID_SELF_HEAL);
    ask_as(&write, t, OP_WRITE, NULL, 3, PID_SELF_HEAL);
    assert_int_equal(1, gate.by_op[OP_BLOCKSUMS]);
    assert_int_equal(1, gate.by_op[OP_WRITE]);
    while (!client.is_done || !compare[0].is_done || !compare[1].is_done || !write.is_done) {
        (void)waitq_wake_all(&gate.q, 0);
        settle();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_more_than_thread_count_run_at_once_and_all_get_done),
        cmocka_unit_test(a_class_has_its_own_limit),
        cmocka_unit_test(names_come_before_data_and_no_class_starves),
        cmocka_unit_test(internal_clients_go_one_at_a_time_while_others_are_at_work),
        cmocka_unit_test(internal_clients_that_disturb_nobody_are_not_held_down),
        cmocka_unit_test(least_priority_can_be_switched_off),
        cmocka_unit_test(clients_take_turns),
        cmocka_unit_test(lock_requests_need_no_admission),
        cmocka_unit_test(a_cancelled_request_leaves_the_queue),
        cmocka_unit_test(requests_of_a_gone_client_are_dropped_if_wanted),
        cmocka_unit_test(pass_through_admits_everything),
        cmocka_unit_test(comparing_pauses_while_clients_are_at_work),
        cmocka_unit_test(comparing_does_not_pause_when_nobody_is_disturbed),
        cmocka_unit_test(a_whole_share_is_no_pause),
        cmocka_unit_test(comparisons_do_not_keep_out_what_heal_does_with_a_lock_in_hand),
        cmocka_unit_test(old_options_are_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
