/* protocol/server: who has been told of something hears of its changes, before they are answered. */
#include "rpc/invalidate.h"
#include "unit/protocol/pair.h"
#include <fcntl.h>

/* The second client asks. */
static FIBER int other(struct graph *graph, const struct request *q)
{
    SCOPED(reply_free) struct reply *r = reply_new();
    struct call call;

    call_init(&call, graph);
    int result = translator_call(graph->root, &call, q, r);
    call_done(&call);
    return result;
}

static FIBER int other_changes(struct test *t, struct graph *graph)
{
    SCOPED(inode_unref) struct inode *file = inode_table_get(graph, &t->file->gfid, S_IFREG);

    return other(graph, &(struct request) { .op = OP_TRUNCATE, .inode = file, .offset = 7 });
}

static FIBER int other_makes(struct test *t, struct graph *graph, const char *name)
{
    SCOPED(inode_unref) struct inode *root = inode_table_get(graph, &gfid_root, S_IFDIR);
    SCOPED(inode_unref) struct inode *dir = inode_table_get(graph, &t->new_inode->gfid, S_IFDIR);

    return other(graph, &(struct request) { .op = OP_MKDIR, .parent = root, .name = name, .inode = dir, .mode = 0755 });
}

SIM_TEST(who_has_looked_hears_of_a_change_before_it_is_answered)
{
    struct pair *p = pair_new(t, NULL, NULL);
    struct graph *second = pair_join(p);

    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->file));
    assert_int_equal(0, other_changes(t, second));
    assert_int_equal(1, p->events);
    assert_int_equal(EVENT_INVALIDATE, p->last.kind);
    assert_true(gfid_equal(&t->file->gfid, &p->last.gfid));
    assert_string_equal("", p->last_name);
    pair_leave(second);
    pair_free(p);
}

SIM_TEST(who_has_not_looked_is_not_told)
{
    struct pair *p = pair_new(t, NULL, NULL);
    struct graph *second = pair_join(p);

    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->dir));
    assert_int_equal(0, other_changes(t, second));
    assert_int_equal(0, p->events);
    pair_leave(second);
    pair_free(p);
}

SIM_TEST(a_change_of_ones_own_is_no_news)
{
    struct pair *p = pair_new(t, NULL, NULL);
    struct graph *second = pair_join(p);

    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->file));
    assert_int_equal(0, test_op(t, OP_TRUNCATE, .inode = t->file, .offset = 7));
    assert_int_equal(0, p->events);
    pair_leave(second);
    pair_free(p);
}

SIM_TEST(who_was_told_is_told_again_only_after_looking_again)
{
    struct pair *p = pair_new(t, NULL, NULL);
    struct graph *second = pair_join(p);

    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->file));
    assert_int_equal(0, other_changes(t, second));
    assert_int_equal(0, other_changes(t, second));
    assert_int_equal(1, p->events);
    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->file));
    assert_int_equal(0, other_changes(t, second));
    assert_int_equal(2, p->events);
    pair_leave(second);
    pair_free(p);
}

SIM_TEST(what_was_looked_at_long_ago_is_told_only_while_it_is_open)
{
    struct pair *p = pair_new(t, NULL, NULL);
    struct graph *second = pair_join(p);

    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->file));
    assert_int_equal(0, fiber_sleep_ms(NULL, (INVALIDATE_LEASE_S + 1) * 1000));
    assert_int_equal(0, other_changes(t, second));
    assert_int_equal(0, p->events);
    assert_int_equal(0, test_op(t, OP_OPEN, .inode = t->file, .fd = t->fd, .flags = O_RDWR));
    assert_int_equal(0, fiber_sleep_ms(NULL, (INVALIDATE_LEASE_S + 1) * 1000));
    assert_int_equal(0, other_changes(t, second));
    assert_int_equal(1, p->events);
    pair_leave(second);
    pair_free(p);
}

SIM_TEST(a_name_that_was_not_there_is_told_when_it_is_made)
{
    struct pair *p = pair_new(t, NULL, NULL);
    struct graph *second = pair_join(p);

    leaf_fail(p->leaf, OP_LOOKUP, ENOENT, 1);
    assert_int_equal(-ENOENT, test_op(t, OP_LOOKUP, .parent = t->root, .name = "new"));
    assert_int_equal(0, other_makes(t, second, "new"));
    assert_int_equal(2, p->events); /* the name, and the directory's times */
    assert_true(gfid_equal(&gfid_root, &p->last.gfid));
    pair_leave(second);
    pair_free(p);
}

static FIBER int let_go_later(void *arg)
{
    struct pair *p = arg;

    assert_int_equal(0, fiber_sleep_ms(NULL, 300));
    event_hold_drop(p->held);
    return 0;
}

SIM_TEST(the_change_is_answered_when_the_other_has_let_go)
{
    struct pair *p = pair_new(t, NULL, NULL);
    struct graph *second = pair_join(p);
    struct group g;

    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->file));
    p->holds_events = true;
    group_init(&g, t->env);
    uint64_t before_ns = env_now_ns(t->env);
    assert_int_equal(0, group_run(&g, "let-go", let_go_later, p));
    assert_int_equal(0, other_changes(t, second));
    assert_in_range(env_now_ns(t->env) - before_ns, 300000000ull, 400000000ull);
    group_wait_all(&g);
    pair_leave(second);
    pair_free(p);
}

SIM_TEST(one_that_does_not_let_go_is_waited_for_once_and_not_for_long)
{
    struct pair *p = pair_new(t, NULL, NULL);
    struct graph *second = pair_join(p);

    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->file));
    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->root));
    p->holds_events = true;
    uint64_t before_ns = env_now_ns(t->env);
    assert_int_equal(0, other_changes(t, second));
    assert_in_range(env_now_ns(t->env) - before_ns, INVALIDATE_WAIT_MS * 1000000ull, INVALIDATE_WAIT_MS * 1100000ull);
    p->holds_events = false;
    uint32_t events = p->events;
    before_ns = env_now_ns(t->env);
    assert_int_equal(0, other_makes(t, second, "x"));
    assert_true(env_now_ns(t->env) - before_ns < 100000000ull);
    assert_int_equal(0, fiber_sleep_ms(NULL, 10));
    assert_true(p->events > events); /* it is late: told, but not waited for */
    event_hold_drop(p->held);
    assert_int_equal(0, fiber_sleep_ms(NULL, 10));
    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->file));
    events = p->events;
    assert_int_equal(0, other_changes(t, second));
    assert_int_equal(events + 1, p->events); /* it has answered: it counts again */
    pair_leave(second);
    pair_free(p);
}

static FIBER int answer_late(struct leaf *leaf, struct call *call, const struct request *q, struct reply *r)
{
    r->stat = leaf->stat;
    (void)fiber_sleep_ms(NULL, 100); /* the answer is made, and another change overtakes it */
    return 0;
}

struct looking {
    struct test *t;
    struct pair *p;
    uint32_t events_at_answer;
};

static FIBER int look(void *arg)
{
    struct looking *l = arg;
    int result = test_op(l->t, OP_STAT, .inode = l->t->file);

    l->events_at_answer = l->p->events;
    return result;
}

SIM_TEST(an_answer_that_a_change_overtook_comes_after_the_news)
{
    struct pair *p = pair_new(t, NULL, NULL);
    struct graph *second = pair_join(p);
    struct looking l = { .t = t, .p = p };
    struct group g;

    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->dir)); /* somebody keeps copies at all */
    p->leaf->answers[OP_STAT] = answer_late;
    group_init(&g, t->env);
    assert_int_equal(0, group_run(&g, "look", look, &l));
    assert_int_equal(0, fiber_sleep_ms(NULL, 20));
    SCOPED(inode_unref) struct inode *file = inode_table_get(p->brick, &t->file->gfid, S_IFREG);
    assert_int_equal(0, other_changes(t, second));
    group_wait_all(&g);
    assert_int_equal(1, g.succeeded);
    assert_true(l.events_at_answer >= 1);
    pair_leave(second);
    inode_unref(take(file));
    pair_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_has_looked_hears_of_a_change_before_it_is_answered),
        cmocka_unit_test(who_has_not_looked_is_not_told),
        cmocka_unit_test(a_change_of_ones_own_is_no_news),
        cmocka_unit_test(who_was_told_is_told_again_only_after_looking_again),
        cmocka_unit_test(what_was_looked_at_long_ago_is_told_only_while_it_is_open),
        cmocka_unit_test(a_name_that_was_not_there_is_told_when_it_is_made),
        cmocka_unit_test(the_change_is_answered_when_the_other_has_let_go),
        cmocka_unit_test(one_that_does_not_let_go_is_waited_for_once_and_not_for_long),
        cmocka_unit_test(an_answer_that_a_change_overtook_comes_after_the_news),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
