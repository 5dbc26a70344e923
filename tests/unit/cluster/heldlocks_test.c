/* cluster/replicate: POSIX locks are put back on children that forgot them, or never had them. */
#include "cluster/replicate/replicate.h"
#include "features/locks/locks.h"
#include "unit/graph/test_graph.h"
#include <fcntl.h>

#define CHILDREN 3

static struct translator *child[CHILDREN];

static void tell(unsigned i, enum event_kind kind)
{
    notify_parents(child[i], &(struct event) { .kind = kind });
}

static FIBER void settle(void)
{
    (void)fiber_sleep_ms(NULL, 20);
}

static FIBER void start(struct test *t, unsigned up)
{
    static const char *const names[CHILDREN] = { "locks0", "locks1", "locks2" };

    test_build(t, "volume leaf0\n type test/leaf\n option note x\nend-volume\n"
                  "volume leaf1\n type test/leaf\n option note x\nend-volume\n"
                  "volume leaf2\n type test/leaf\n option note x\nend-volume\n"
                  "volume locks0\n type features/locks\n option reclaim-grace 0\n subvolumes leaf0\nend-volume\n"
                  "volume locks1\n type features/locks\n option reclaim-grace 0\n subvolumes leaf1\nend-volume\n"
                  "volume locks2\n type features/locks\n option reclaim-grace 0\n subvolumes leaf2\nend-volume\n"
                  "volume mirror\n type cluster/replicate\n option quorum-type auto\n"
                  " option afr-pending-xattr a,b,c\n subvolumes locks0 locks1 locks2\nend-volume\n");
    test_start(t);
    for (unsigned i = 0; i < CHILDREN; i++) {
        child[i] = graph_find(t->graph, names[i]);
        tell(i, up & 1u << i ? EVENT_CHILD_UP : EVENT_CHILD_DOWN);
    }
    settle();
}

static FIBER int lk_at(struct test *t, struct translator *at, uint64_t owner, enum lock_command command,
                       enum lock_type type, uint64_t begin, uint64_t length)
{
    struct lock_range range = { .type = type, .start = begin, .length = length, .pid = 7 };
    struct request q = { .op = OP_LK, .inode = t->file, .fd = t->fd, .command = command, .lock = &range };

    lk_owner_from_u64(&range.owner, owner);
    t->call.lk_owner = range.owner;
    reply_done(t->r);
    return translator_call(at, &t->call, &q, t->r);
}

static FIBER int lk(struct test *t, uint64_t owner, enum lock_command command, enum lock_type type, uint64_t begin,
                    uint64_t length)
{
    return lk_at(t, t->graph->root, owner, command, type, begin, length);
}

/* The type of the lock that is in a stranger's way at this byte of the child. */
static FIBER enum lock_type type_at(struct test *t, unsigned i, uint64_t byte)
{
    assert_int_equal(0, lk_at(t, child[i], 999, LOCK_GET, LOCK_WRITE, byte, 1));
    return t->r->lock->type;
}

/* The brick ends and starts empty. */
static FIBER void restart(struct test *t, unsigned i)
{
    struct request q = { .op = OP_GETXATTR, .inode = t->file, .text = "glusterfs.clrlk.tposix.kall" };

    tell(i, EVENT_CHILD_DOWN);
    reply_done(t->r);
    assert_true(translator_call(child[i], &t->call, &q, t->r) > 0);
    assert_int_equal(LOCK_NONE, type_at(t, i, 0));
}

SIM_TEST(a_child_that_restarted_gets_the_locks_back)
{
    start(t, 7);
    assert_int_equal(0, lk(t, 1, LOCK_TRY, LOCK_WRITE, 0, 0));
    for (unsigned i = 0; i < CHILDREN; i++) {
        assert_int_equal(LOCK_WRITE, type_at(t, i, 5));
        restart(t, i);
        tell(i, EVENT_CHILD_UP);
        settle();
        assert_int_equal(LOCK_WRITE, type_at(t, i, 5));
        assert_int_equal(-EAGAIN, lk(t, 2, LOCK_TRY, LOCK_WRITE, 0, 0));
    }
    assert_int_equal(0, lk(t, 1, LOCK_UNLOCK, LOCK_NONE, 0, 0));
    for (unsigned i = 0; i < CHILDREN; i++)
        assert_int_equal(LOCK_NONE, type_at(t, i, 5));
}

struct user {
    struct test *t;
    uint64_t owner;
};

static FIBER int lock_one_byte(void *arg)
{
    struct user *u = arg;
    struct lock_range range = { .type = LOCK_WRITE, .start = u->owner, .length = 1 };
    struct request q = { .op = OP_LK, .inode = u->t->file, .fd = u->t->fd, .command = LOCK_TRY, .lock = &range };
    struct call call;

    call_init(&call, u->t->graph);
    lk_owner_from_u64(&range.owner, u->owner);
    call.lk_owner = range.owner;
    int r = translator_call(u->t->graph->root, &call, &q, NULL);
    call_done(&call);
    return r;
}

SIM_TEST(a_descriptor_that_two_use_at_once_is_opened_once_on_a_child)
{
    struct user users[2] = { { t, 1 }, { t, 2 } };
    struct group g;

    start(t, 7);
    for (unsigned i = 0; i < CHILDREN; i++)
        leaf_of(child[i]->children[0])->delay_ms = 5;
    group_init(&g, t->env);
    assert_int_equal(0, group_run(&g, "user", lock_one_byte, &users[0]));
    assert_int_equal(0, group_run(&g, "user", lock_one_byte, &users[1]));
    group_wait_all(&g);
    assert_int_equal(2, g.succeeded);
    for (unsigned i = 0; i < CHILDREN; i++) {
        assert_int_equal(1, leaf_count(leaf_of(child[i]->children[0]), OP_OPEN));
        assert_int_equal(LOCK_WRITE, type_at(t, i, 1));
        assert_int_equal(LOCK_WRITE, type_at(t, i, 2));
    }
    assert_int_equal(0, lk(t, 1, LOCK_UNLOCK, LOCK_NONE, 0, 0));
    assert_int_equal(0, lk(t, 2, LOCK_UNLOCK, LOCK_NONE, 0, 0));
}

SIM_TEST(a_child_that_was_away_when_the_lock_was_taken_gets_it)
{
    start(t, 6);
    assert_int_equal(0, lk(t, 1, LOCK_TRY, LOCK_READ, 10, 10));
    assert_int_equal(0, lk(t, 1, LOCK_TRY, LOCK_WRITE, 14, 2));
    tell(0, EVENT_CHILD_UP);
    settle();
    assert_int_equal(LOCK_NONE, type_at(t, 0, 9));
    assert_int_equal(LOCK_READ, type_at(t, 0, 10));
    assert_int_equal(LOCK_WRITE, type_at(t, 0, 14));
    assert_int_equal(LOCK_WRITE, type_at(t, 0, 15));
    assert_int_equal(LOCK_READ, type_at(t, 0, 16));
    assert_int_equal(LOCK_NONE, type_at(t, 0, 20));
    assert_int_equal(0, lk(t, 1, LOCK_UNLOCK, LOCK_NONE, 0, 0));
}

SIM_TEST(what_was_given_back_is_not_put_back)
{
    start(t, 7);
    assert_int_equal(0, lk(t, 1, LOCK_TRY, LOCK_WRITE, 0, 100));
    restart(t, 1);
    assert_int_equal(0, lk(t, 1, LOCK_UNLOCK, LOCK_NONE, 40, 20));
    tell(1, EVENT_CHILD_UP);
    settle();
    assert_int_equal(LOCK_WRITE, type_at(t, 1, 39));
    assert_int_equal(LOCK_NONE, type_at(t, 1, 40));
    assert_int_equal(LOCK_NONE, type_at(t, 1, 59));
    assert_int_equal(LOCK_WRITE, type_at(t, 1, 60));
    restart(t, 1);
    t->call.lk_owner = (struct lk_owner) { .size = 8, .bytes = { 1 } };
    assert_int_equal(0, test_op(t, OP_FLUSH, .inode = t->file, .fd = t->fd));
    tell(1, EVENT_CHILD_UP);
    settle();
    assert_int_equal(LOCK_NONE, type_at(t, 1, 0));
}

SIM_TEST(a_refused_upgrade_leaves_everywhere_what_was_held_before)
{
    start(t, 7);
    assert_int_equal(0, lk(t, 1, LOCK_TRY, LOCK_READ, 0, 10));
    assert_int_equal(0, lk_at(t, child[2], 2, LOCK_TRY, LOCK_READ, 5, 1));
    assert_int_equal(-EAGAIN, lk(t, 1, LOCK_TRY, LOCK_WRITE, 0, 20));
    for (unsigned i = 0; i < CHILDREN; i++) {
        assert_int_equal(LOCK_READ, type_at(t, i, 0));
        assert_int_equal(LOCK_READ, type_at(t, i, 9));
        assert_int_equal(LOCK_NONE, type_at(t, i, 10));
    }
    assert_int_equal(0, lk_at(t, child[2], 2, LOCK_UNLOCK, LOCK_NONE, 0, 0));
    assert_int_equal(0, lk(t, 1, LOCK_UNLOCK, LOCK_NONE, 0, 0));
}

SIM_TEST(a_released_descriptor_takes_its_locks_along)
{
    start(t, 7);
    struct fd *kept = t->fd;
    t->fd = fd_new(t->file, O_RDWR, 1);
    assert_int_equal(0, lk(t, 1, LOCK_TRY, LOCK_WRITE, 0, 0));
    fd_unref(t->fd);
    t->fd = kept;
    restart(t, 0);
    tell(0, EVENT_CHILD_UP);
    settle();
    assert_int_equal(LOCK_NONE, type_at(t, 0, 0));
}

/* A brick that replicates over its own disk and another brick: for that one all its clients are one connection. */
SIM_TEST(locks_of_a_client_that_is_gone_are_given_back_on_other_bricks)
{
    test_build(t, "volume leaf0\n type test/leaf\n option note x\nend-volume\n"
                  "volume locks0\n type features/locks\n option reclaim-grace 0\n subvolumes leaf0\nend-volume\n"
                  "volume other\n type test/leaf\n option note x\nend-volume\n"
                  "volume mirror\n type cluster/replicate\n option afr-pending-xattr a,b\n"
                  " subvolumes locks0 other\nend-volume\n");
    test_start(t);
    child[0] = graph_find(t->graph, "locks0");
    child[1] = graph_find(t->graph, "other");
    tell(0, EVENT_CHILD_UP);
    tell(1, EVENT_CHILD_UP);
    settle();
    struct client *one = client_new(t->graph, "one", "one"), *two = client_new(t->graph, "two", "two");
    t->call.client = one;
    assert_int_equal(0, lk(t, 1, LOCK_TRY, LOCK_WRITE, 0, 10));
    t->call.client = two;
    assert_int_equal(0, lk(t, 2, LOCK_TRY, LOCK_WRITE, 10, 10));
    t->call.client = NULL;
    struct leaf *other = leaf_of(child[1]);
    leaf_clear(other);
    client_gone(one);
    settle();
    assert_int_equal(1, leaf_count(other, OP_LK));
    assert_int_equal(LOCK_UNLOCK, leaf_last(other)->command);
    assert_int_equal(0, leaf_last(other)->lock.start);
    assert_int_equal(10, leaf_last(other)->lock.length);
    assert_int_equal(LOCK_NONE, type_at(t, 0, 5));
    assert_int_equal(LOCK_WRITE, type_at(t, 0, 15));
    client_gone(two);
    settle();
    client_unref(one);
    client_unref(two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_that_restarted_gets_the_locks_back),
        cmocka_unit_test(a_descriptor_that_two_use_at_once_is_opened_once_on_a_child),
        cmocka_unit_test(a_child_that_was_away_when_the_lock_was_taken_gets_it),
        cmocka_unit_test(what_was_given_back_is_not_put_back),
        cmocka_unit_test(a_refused_upgrade_leaves_everywhere_what_was_held_before),
        cmocka_unit_test(locks_of_a_client_that_is_gone_are_given_back_on_other_bricks),
        cmocka_unit_test(a_released_descriptor_takes_its_locks_along),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
