/* core/timer.c - the pairing heap of timers: starting is O(1), and so is stopping one that is not near its time, which
 * is what nearly all deadlines do. */
#include "core/env_internal.h"

static bool is_before(const struct timer *a, const struct timer *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->seq < b->seq;
}

/* Puts t where *owner points to, in front of what is there. */
static void attach(struct timer *t, struct timer **owner)
{
    t->next = *owner;
    t->owner = owner;
    if (t->next)
        t->next->owner = &t->next;
    *owner = t;
}

/* The earlier of two detached roots, with the other as its first child. */
static struct timer *meld(struct timer *a, struct timer *b)
{
    if (!a)
        return b;
    if (!b)
        return a;
    if (is_before(b, a)) {
        struct timer *swap = a;
        a = b;
        b = swap;
    }
    attach(b, &a->child);
    return a;
}

/* Melds a list of siblings, in pairs from left to right, then from right to left. */
static struct timer *meld_siblings(struct timer *first)
{
    struct timer *pairs = NULL;

    while (first) {
        struct timer *a = first;
        struct timer *b = a->next;
        first = b ? b->next : NULL;
        a->next = NULL;
        if (b)
            b->next = NULL;
        a = meld(a, b);
        a->next = pairs;
        pairs = a;
    }
    struct timer *root = NULL;
    while (pairs) {
        struct timer *a = pairs;
        pairs = a->next;
        a->next = NULL;
        root = meld(root, a);
    }
    return root;
}

static void set_root(struct timer_heap *heap, struct timer *root)
{
    heap->first = root;
    if (root) {
        root->next = NULL;
        root->owner = &heap->first;
    }
}

static void detach(struct timer_heap *heap, struct timer *t)
{
    assert(t->owner);
    *t->owner = t->next;
    if (t->next)
        t->next->owner = t->owner;
    struct timer *below = meld_siblings(t->child);
    if (below)
        set_root(heap, meld(heap->first, below));
    t->child = t->next = NULL;
    t->owner = NULL;
    t->at_ns = 0;
}

void timer_start(struct env *env, struct timer *t, uint64_t at_ns, void (*fn)(void *arg), void *arg)
{
    timer_stop(t);
    t->fn = fn;
    t->arg = arg;
    t->env = env;
    if (env->is_crashed)
        return;
    t->at_ns = at_ns ? at_ns : 1; /* 0 means "not running" */
    t->seq = env->timers.next_seq++;
    t->child = t->next = NULL;
    set_root(&env->timers, meld(env->timers.first, t));
}

void timer_stop(struct timer *t)
{
    if (t->at_ns)
        detach(&t->env->timers, t);
}

struct timer *timer_heap_take_due(struct timer_heap *heap, uint64_t now_ns)
{
    struct timer *t = heap->first;

    if (!t || t->at_ns > now_ns)
        return NULL;
    detach(heap, t);
    return t;
}

void timer_heap_clear(struct timer_heap *heap)
{
    while (heap->first)
        detach(heap, heap->first);
}
