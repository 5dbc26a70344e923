/* Tests of features/locks: somebody who asks, at once or in a fiber of its own. In the simulator, so that time is exact. */
#pragma once

#include "features/locks/locks.h"
#include "unit/graph/test_graph.h"

/* Somebody who asks for locks: a client with one lock owner. */
struct asker {
    struct test *t;
    struct call call;
    struct request q;
    struct lock_range range;
    int result;
    bool is_done;
    uint64_t done_ns;
};

static inline struct client *new_client(struct test *t, const char *uid)
{
    struct client *c = client_new(t->graph, uid, uid);
    assert_non_null(c);
    return c;
}

static inline void asker_init(struct asker *a, struct test *t, struct client *client, uint64_t owner)
{
    memset(a, 0, sizeof(*a));
    a->t = t;
    call_init(&a->call, t->graph);
    a->call.client = client;
    a->call.pid = (int32_t)owner;
    lk_owner_from_u64(&a->call.lk_owner, owner);
}

static inline void prepare(struct asker *a, enum op op, enum lock_command command, enum lock_type type, uint64_t start,
                           uint64_t length)
{
    a->range = (struct lock_range) { .type = type, .start = start, .length = length, .pid = a->call.pid };
    a->range.owner = a->call.lk_owner;
    a->q = (struct request) { .op = op, .inode = a->t->file, .text = "vol", .command = command, .lock = &a->range };
    a->is_done = false;
    a->result = 1;
}

static inline FIBER int ask(struct asker *a)
{
    SCOPED(reply_free) struct reply *r = reply_new();
    assert_non_null(r);
    a->result = translator_call(a->t->graph->root, &a->call, &a->q, r);
    a->is_done = true;
    a->done_ns = env_now_ns(a->t->env);
    return a->result;
}

static inline void ask_fiber(void *arg)
{
    (void)ask(arg);
}

static inline void ask_later(struct asker *a)
{
    assert_int_equal(0, fiber_spawn(a->t->env, "asker", ask_fiber, a));
    (void)fiber_sleep_ms(NULL, 1); /* let it reach the queue */
}

static inline FIBER int inodelk(struct asker *a, enum lock_command command, enum lock_type type, uint64_t start,
                                uint64_t len)
{
    prepare(a, OP_INODELK, command, type, start, len);
    return ask(a);
}

static inline FIBER int lk(struct asker *a, enum lock_command command, enum lock_type type, uint64_t start,
                           uint64_t len)
{
    prepare(a, OP_LK, command, type, start, len);
    return ask(a);
}

static inline FIBER int entrylk(struct asker *a, enum lock_command command, const char *name)
{
    prepare(a, OP_ENTRYLK, command, LOCK_WRITE, 0, 0);
    a->q.inode = a->t->dir;
    a->q.name = name;
    return ask(a);
}

static inline FIBER void settle(void)
{
    (void)fiber_sleep_ms(NULL, 2);
}

static inline struct translator *start(struct test *t, const char *key, const char *value)
{
    test_push(t, &leaf_class, NULL);
    struct translator *me = key ? test_push(t, &locks_class, "reclaim-grace", "0", key, value, NULL)
                                : test_push(t, &locks_class, "reclaim-grace", "0", NULL);
    test_start(t);
    return me;
}
