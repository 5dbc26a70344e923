/* Leases of protocol/client against what protocol/server notes: rpc/invalidate.h. */
#include "unit/protocol/pair.h"
#include "rpc/invalidate.h"
#include <fcntl.h>

static bool has_lease(struct test *t, struct inode *inode, struct lease *ret)
{
    return translator_lease(t->graph->root, inode, ret);
}

static void rest(uint64_t ms)
{
    assert_int_equal(0, fiber_sleep_ms(NULL, ms));
}

static void look(struct test *t)
{
    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->file));
}

static void no_handler(struct graph *graph, struct translator *from, const struct event *event)
{
}

/* Keeps whatever is held for it until release(). */
static struct event_hold *kept_hold;

static void keep_hold(struct graph *graph, struct translator *from, const struct event *event)
{
    if (event->kind == EVENT_INVALIDATE && event->hold && !kept_hold)
        kept_hold = event_hold_take(event->hold);
}

static void drop_hold(void)
{
    event_hold_drop(take(kept_hold));
}

/* What another client does, by gfid. */
static FIBER int other(struct graph *graph, struct gfid gfid, struct request *q)
{
    SCOPED(inode_unref) struct inode *inode = inode_table_get(graph, &gfid, 0);
    struct call call;
    int r;

    call_init(&call, graph);
    if (op_needs(q->op) & OP_PARENT)
        q->parent = inode;
    else
        q->inode = inode;
    r = translator_call(graph->root, &call, q, NULL);
    call_done(&call);
    return r;
}

static FIBER void other_truncates(struct graph *graph, struct test *t)
{
    assert_int_equal(0, other(graph, t->file->gfid, &(struct request) { .op = OP_TRUNCATE, .offset = 5 }));
}

static void end(struct pair *p, struct graph *second)
{
    graph_stop(second);
    graph_free(second);
    pair_free(p);
}

SIM_TEST(what_was_told_is_leased_until_the_brick_may_have_given_us_up)
{
    struct pair *p = pair_new_far(t, NULL, NULL);
    struct lease l;

    assert_false(has_lease(t, t->file, &l));
    look(t);
    assert_true(has_lease(t, t->file, &l));
    assert_true(t->r->asked_ns >= l.since_ns);
    assert_true(l.until_ns <= t->r->asked_ns + (uint64_t)INVALIDATE_WAIT_MS * 1000000);
    assert_false(has_lease(t, t->dir, &l));
    rest(INVALIDATE_WAIT_MS);
    assert_false(has_lease(t, t->file, &l));
    pair_free(p);
}

SIM_TEST(any_answer_proves_that_the_brick_reaches_us)
{
    struct pair *p = pair_new_far(t, NULL, NULL);
    struct lease l, again;

    look(t);
    assert_true(has_lease(t, t->file, &l));
    rest(INVALIDATE_WAIT_MS);
    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->dir));
    assert_true(has_lease(t, t->file, &again));
    assert_int_equal(l.since_ns, again.since_ns);
    pair_free(p);
}

SIM_TEST(a_lease_ends_with_its_time)
{
    struct pair *p = pair_new_far(t, NULL, NULL);
    struct lease l;

    look(t);
    rest(INVALIDATE_LEASE_S * 1000);
    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->dir));
    assert_false(has_lease(t, t->file, &l));
    look(t);
    assert_true(has_lease(t, t->file, &l));
    assert_int_equal(t->r->asked_ns, l.since_ns);
    pair_free(p);
}

SIM_TEST(a_lease_ends_with_the_connection)
{
    struct pair *p = pair_new_far(t, NULL, NULL);
    struct lease l;

    look(t);
    pair_restart_brick(p, NULL);
    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->dir));
    assert_false(has_lease(t, t->file, &l));
    pair_free(p);
}

SIM_TEST(a_change_by_another_ends_the_lease_before_it_is_answered)
{
    struct pair *p = pair_new_far(t, NULL, NULL);
    struct graph *second = pair_second_client(p, no_handler);
    struct lease l;

    look(t);
    assert_true(has_lease(t, t->file, &l));
    other_truncates(second, t);
    assert_int_equal(1, p->events);
    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->dir));
    assert_false(has_lease(t, t->file, &l));
    look(t);
    assert_true(has_lease(t, t->file, &l));
    end(p, second);
}

SIM_TEST(our_own_change_ends_nothing)
{
    struct pair *p = pair_new_far(t, NULL, NULL);
    struct graph *second = pair_second_client(p, no_handler);
    struct lease l, after;

    look(t);
    assert_true(has_lease(t, t->file, &l));
    assert_int_equal(0, test_op(t, OP_TRUNCATE, .inode = t->file, .offset = 7));
    assert_true(has_lease(t, t->file, &after));
    assert_int_equal(l.since_ns, after.since_ns);
    end(p, second);
}

SIM_TEST(a_name_that_another_makes_ends_the_lease_on_the_directory)
{
    struct pair *p = pair_new_far(t, NULL, NULL);
    struct graph *second = pair_second_client(p, no_handler);
    struct inode *made = inode_table_get(second, &t->new_inode->gfid, 0);
    struct lease l;

    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->dir)); /* the brick looks its gfid up */
    leaf_fail(p->leaf, OP_LOOKUP, ENOENT, 1);
    assert_int_equal(-ENOENT, test_op(t, OP_LOOKUP, .parent = t->dir, .name = "new"));
    assert_true(has_lease(t, t->dir, &l));
    assert_int_equal(0, other(second, t->dir->gfid,
                              &(struct request) { .op = OP_MKNOD, .inode = made, .name = "new", .mode = S_IFREG }));
    inode_unref(made);
    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->file));
    assert_false(has_lease(t, t->dir, &l));
    end(p, second);
}

SIM_TEST(who_is_late_has_no_lease_and_is_told_all_the_same)
{
    struct pair *p = pair_new_far(t, NULL, NULL);
    struct graph *second = pair_second_client(p, no_handler);
    struct lease l;

    look(t);
    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->dir));
    graph_set_event_handler(t->graph, keep_hold);
    other_truncates(second, t); /* is answered although the first client is not done */
    assert_non_null(kept_hold);
    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->root));
    graph_set_event_handler(t->graph, no_handler);
    assert_false(has_lease(t, t->dir, &l)); /* not even on what has not changed */
    assert_int_equal(0, other(second, t->dir->gfid, &(struct request) { .op = OP_SETXATTR }));
    drop_hold();
    rest(50);
    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->root));
    assert_true(has_lease(t, t->root, &l));
    assert_false(has_lease(t, t->dir, &l));
    end(p, second);
}

/* The brick must not forget whom it has told of what, however many other inodes come. */
SIM_TEST(a_lease_outlives_the_inode_table_of_the_brick)
{
    struct pair *p = pair_new_far(t, NULL, "option inode-lru-limit 16");
    struct graph *second = pair_second_client(p, no_handler);
    struct gfid gfid = t->file->gfid;
    struct lease l;

    look(t);
    for (unsigned i = 0; i < 200; i++) {
        gfid.bytes[1] = (uint8_t)(i + 1);
        (void)other(second, gfid, &(struct request) { .op = OP_STAT });
    }
    assert_true(has_lease(t, t->file, &l));
    other_truncates(second, t);
    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->dir));
    assert_false(has_lease(t, t->file, &l));
    end(p, second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_told_is_leased_until_the_brick_may_have_given_us_up),
        cmocka_unit_test(any_answer_proves_that_the_brick_reaches_us),
        cmocka_unit_test(a_lease_ends_with_its_time),
        cmocka_unit_test(a_lease_ends_with_the_connection),
        cmocka_unit_test(a_change_by_another_ends_the_lease_before_it_is_answered),
        cmocka_unit_test(our_own_change_ends_nothing),
        cmocka_unit_test(a_name_that_another_makes_ends_the_lease_on_the_directory),
        cmocka_unit_test(who_is_late_has_no_lease_and_is_told_all_the_same),
        cmocka_unit_test(a_lease_outlives_the_inode_table_of_the_brick),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
