/* features/locks under random askers: nobody holds what conflicts, everybody who waits gets an answer, nothing is left;
 * and the same requests when the n-th allocation fails. */
#include "features/locks/locks_internal.h"
#include "unit/graph/test_graph.h"
#include <stdio.h>

#define ASKERS 8
#define STEPS  150
#define SPAN   16 /* bytes that are locked */

static uint64_t seed;

struct asker {
    struct test *t;
    struct client *client;
    struct call call;
    uint64_t random;
    enum op op;
    unsigned number;
    bool is_done, is_held;
    enum lock_type type;
    uint64_t start, length;
};

static struct asker askers[ASKERS];

static uint64_t draw(struct asker *a)
{
    a->random ^= a->random << 13;
    a->random ^= a->random >> 7;
    a->random ^= a->random << 17;
    return a->random;
}

static bool overlap(const struct asker *a, const struct asker *b)
{
    if (a->op == OP_ENTRYLK)
        return a->start == b->start;
    return a->start < b->start + b->length && b->start < a->start + a->length &&
           (a->type == LOCK_WRITE || b->type == LOCK_WRITE);
}

static void assert_alone(const struct asker *a)
{
    for (unsigned i = 0; i < ASKERS; i++) {
        const struct asker *b = &askers[i];
        if (b != a && b->is_held && !b->client->is_gone && overlap(a, b))
            fail_msg("seed %llu: asker %u and %u hold what conflicts", (unsigned long long)seed, a->number, b->number);
    }
}

static FIBER int ask(struct asker *a, enum lock_command command)
{
    struct lock_range range = { .type = a->type, .start = a->start, .length = a->length, .owner = a->call.lk_owner };
    char name[8];
    struct request q = { .op = a->op, .inode = a->t->file, .text = "vol", .command = command, .lock = &range };

    snprintf(name, sizeof(name), "n%u", (unsigned)a->start);
    if (a->op == OP_ENTRYLK)
        q.name = name;
    SCOPED(reply_free) struct reply *r = reply_new();
    return translator_call(a->t->graph->root, &a->call, &q, r);
}

static void asker_fiber(void *arg)
{
    struct asker *a = arg;

    for (unsigned i = 0; i < STEPS && !a->client->is_gone; i++) {
        a->type = draw(a) % 2 ? LOCK_WRITE : LOCK_READ;
        a->start = draw(a) % SPAN;
        a->length = 1 + draw(a) % (SPAN - a->start);
        if (a->op == OP_ENTRYLK)
            a->start %= 3;
        a->call.scope.deadline_ns = draw(a) % 4 ? 0 : env_deadline_ms(a->t->env, draw(a) % 5);
        int r = ask(a, draw(a) % 3 ? LOCK_WAIT : LOCK_TRY);
        if (r == 0 && !a->client->is_gone) {
            assert_alone(a);
            a->is_held = true;
            (void)fiber_sleep_ms(NULL, draw(a) % 4);
            a->is_held = false;
            r = ask(a, LOCK_UNLOCK);
            assert_true(r == 0 || a->client->is_gone);
        } else if (!a->client->is_gone) {
            assert_true(r == -EAGAIN || r == -ETIMEDOUT);
        }
    }
    a->is_done = true;
}

static enum op random_op;

static void random_body(struct test *t)
{
    test_push(t, &leaf_class, NULL);
    struct translator *me = test_push(t, &locks_class, "reclaim-grace", "0", NULL);
    test_start(t);
    memset(askers, 0, sizeof(askers));
    for (unsigned i = 0; i < ASKERS; i++) {
        struct asker *a = &askers[i];
        *a = (struct asker) { .t = t, .random = seed * 1000 + i + 1, .op = random_op, .number = i };
        a->client = client_new(t->graph, "uid", "name");
        call_init(&a->call, t->graph);
        a->call.client = a->client;
        lk_owner_from_u64(&a->call.lk_owner, i + 1);
    }
    for (unsigned i = 0; i < ASKERS; i++)
        assert_int_equal(0, fiber_spawn(t->env, "asker", asker_fiber, &askers[i]));
    (void)fiber_sleep_ms(NULL, 100);
    client_gone(askers[0].client); /* in the middle of it, whatever it holds or waits for */
    for (unsigned i = 0; i < ASKERS; i++)
        while (!askers[i].is_done)
            (void)fiber_sleep_ms(NULL, 5);
    struct lock_inode *li = lock_inode_find(me, t->file);
    assert_true(!li || (list_empty(&li->domains) && list_empty(&li->posix_granted) && list_empty(&li->posix_waiting)));
    assert_true(!li || !li->is_pinned);
    for (unsigned i = 0; i < ASKERS; i++) {
        assert_null(*client_ctx(askers[i].client, me));
        client_gone(askers[i].client);
        client_unref(askers[i].client);
    }
}

static void random_askers(enum op op)
{
    random_op = op;
    for (seed = 1; seed <= 25; seed++)
        test_in_sim(random_body, seed);
}

static void random_inodelks_exclude_each_other_and_all_get_answers(void **state)
{
    (void)state;
    random_askers(OP_INODELK);
}

static void random_entrylks_exclude_each_other_and_all_get_answers(void **state)
{
    (void)state;
    random_askers(OP_ENTRYLK);
}

static void random_posix_locks_exclude_each_other_and_all_get_answers(void **state)
{
    (void)state;
    random_askers(OP_LK);
}

/* ---- no memory ---- */

static FIBER int try_with_failure(struct test *t, uint64_t nth, enum op op, enum lock_command command, uint64_t owner,
                                  uint64_t start)
{
    struct lock_range range = { .type = LOCK_WRITE, .start = start, .length = 10 };

    lk_owner_from_u64(&range.owner, owner);
    t->call.lk_owner = range.owner;
    mem_fail_at(nth);
    int r = test_op(t, op, .inode = t->file, .text = "vol", .name = op == OP_ENTRYLK ? "n" : NULL, .command = command,
                    .lock = &range);
    mem_fail_at(0);
    return r;
}

static void sweep_body(struct test *t)
{
    static const enum op ops[] = { OP_INODELK, OP_ENTRYLK, OP_LK };

    test_push(t, &leaf_class, NULL);
    struct translator *me = test_push(t, &locks_class, "reclaim-grace", "0", NULL);
    test_start(t);
    for (unsigned i = 0; i < ARRAY_SIZE(ops); i++) {
        uint64_t nth = 0;
        int r;
        do {
            r = try_with_failure(t, ++nth, ops[i], LOCK_TRY, 1, 0);
            assert_true(r == 0 || r == -ENOMEM);
            /* What was refused is not held; what was granted is. */
            int other = try_with_failure(t, 0, ops[i], LOCK_TRY, 2, 0);
            assert_int_equal(r == 0 ? -EAGAIN : 0, other);
            if (other == 0)
                assert_int_equal(0, try_with_failure(t, 0, ops[i], LOCK_UNLOCK, 2, 0));
        } while (r != 0);
        assert_true(nth > 1);
        for (nth = 1; (r = try_with_failure(t, nth, ops[i], LOCK_UNLOCK, 1, 0)) != 0; nth++)
            assert_int_equal(-ENOMEM, r);
        assert_int_equal(0, try_with_failure(t, 0, ops[i], LOCK_TRY, 2, 0));
        assert_int_equal(0, try_with_failure(t, 0, ops[i], LOCK_UNLOCK, 2, 0));
    }
    assert_int_equal(2, t->file->refs); /* t->file and t->fd */
    struct lock_inode *li = lock_inode_find(me, t->file);
    assert_true(list_empty(&li->domains));
}

static void lack_of_memory_refuses_and_leaves_nothing_behind(void **state)
{
    (void)state;
    test_in_sim(sweep_body, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_inodelks_exclude_each_other_and_all_get_answers),
        cmocka_unit_test(random_entrylks_exclude_each_other_and_all_get_answers),
        cmocka_unit_test(random_posix_locks_exclude_each_other_and_all_get_answers),
        cmocka_unit_test(lack_of_memory_refuses_and_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
