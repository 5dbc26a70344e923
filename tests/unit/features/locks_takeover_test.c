/* features/locks: what a program holds goes from one of its connections to another, in one step. */
#include "features/locks/locks.h"
#include "unit/graph/test_graph.h"

#define THIS_PROGRAM  "CTX_ID:11111111-2222-4333-8444-555555555555-GRAPH_ID:"
#define OTHER_PROGRAM "CTX_ID:99999999-2222-4333-8444-555555555555-GRAPH_ID:"

static FIBER int lock(struct test *t, struct client *client, enum lock_command command, uint64_t start, uint64_t length,
                      uint64_t owner, bool takes_over)
{
    SCOPED(dict_unref) struct dict *xdata = dict_new();
    SCOPED(reply_free) struct reply *r = reply_new();
    struct lock_range range = { .type = command == LOCK_UNLOCK ? LOCK_NONE : LOCK_WRITE,
                                .start = start,
                                .length = length };
    struct request q = { .op = OP_LK, .inode = t->file, .command = command, .lock = &range };
    struct call call;

    lk_owner_from_u64(&range.owner, owner);
    if (takes_over) {
        assert_int_equal(0, dict_set_int(xdata, LOCKS_TAKEOVER, 1));
        q.xdata = xdata;
    }
    call_init(&call, t->graph);
    call.client = client;
    call.lk_owner = range.owner;
    int result = translator_call(t->graph->root, &call, &q, r);
    call_done(&call);
    return result;
}

static struct client *client(struct test *t, const char *uid)
{
    struct client *c = client_new(t->graph, uid, uid);

    assert_non_null(c);
    return c;
}

static void start(struct test *t)
{
    test_push(t, &leaf_class, NULL);
    test_push(t, &locks_class, "reclaim-grace", "0", NULL);
    test_start(t);
}

static void end(struct client *c)
{
    client_gone(c);
    client_unref(c);
}

SIM_TEST(a_lock_goes_from_one_connection_to_another_of_the_same_program)
{
    start(t);
    struct client *old = client(t, THIS_PROGRAM "0"), *new = client(t, THIS_PROGRAM "1"), *other = client(t, "x");

    assert_int_equal(0, lock(t, old, LOCK_TRY, 0, 10, 7, false));
    assert_int_equal(-EAGAIN, lock(t, new, LOCK_TRY, 0, 10, 7, false)); /* it does not say that it takes over */
    assert_int_equal(0, lock(t, new, LOCK_TRY, 0, 10, 7, true));
    end(old); /* nothing of it is left */
    assert_int_equal(-EAGAIN, lock(t, other, LOCK_TRY, 0, 10, 7, false));
    assert_int_equal(0, lock(t, new, LOCK_UNLOCK, 0, 10, 7, false));
    assert_int_equal(0, lock(t, other, LOCK_TRY, 0, 10, 7, false));
    end(new);
    end(other);
}

SIM_TEST(nothing_is_taken_from_another_program_or_another_owner)
{
    start(t);
    struct client *old = client(t, THIS_PROGRAM "0"), *other = client(t, OTHER_PROGRAM "0");
    struct client *new = client(t, THIS_PROGRAM "1"), *nameless = client(t, "CTX_ID:short");

    assert_int_equal(0, lock(t, old, LOCK_TRY, 0, 10, 7, false));
    assert_int_equal(-EAGAIN, lock(t, other, LOCK_TRY, 0, 10, 7, true));
    assert_int_equal(-EAGAIN, lock(t, nameless, LOCK_TRY, 0, 10, 7, true));
    assert_int_equal(-EAGAIN, lock(t, new, LOCK_TRY, 0, 10, 8, true));
    end(old);
    assert_int_equal(0, lock(t, new, LOCK_TRY, 0, 10, 8, true)); /* there is nothing to take over: a lock like any */
    end(other);
    end(new);
    end(nameless);
}

SIM_TEST(ranges_go_over_one_after_the_other)
{
    start(t);
    struct client *old = client(t, THIS_PROGRAM "0"), *new = client(t, THIS_PROGRAM "1"), *other = client(t, "x");

    assert_int_equal(0, lock(t, old, LOCK_TRY, 0, 10, 7, false));
    assert_int_equal(0, lock(t, old, LOCK_TRY, 20, 10, 7, false));
    assert_int_equal(0, lock(t, new, LOCK_TRY, 20, 10, 7, true));
    assert_int_equal(0, lock(t, old, LOCK_UNLOCK, 0, 0, 7, false)); /* of what it still has */
    assert_int_equal(0, lock(t, other, LOCK_TRY, 0, 10, 1, false));
    assert_int_equal(-EAGAIN, lock(t, other, LOCK_TRY, 20, 10, 1, false));
    end(old);
    end(new);
    end(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lock_goes_from_one_connection_to_another_of_the_same_program),
        cmocka_unit_test(nothing_is_taken_from_another_program_or_another_owner),
        cmocka_unit_test(ranges_go_over_one_after_the_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
