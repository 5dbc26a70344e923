/* cluster/replicate/heal_lock.c - the locks of a heal, taken as GlusterFS's healers and clients take theirs.
 *
 * First all children at once, without waiting. Where somebody is in the way, everything is given back and the children
 * are asked one after the other in their order, waiting: whoever holds the first child's lock gets the others, so nobody
 * waits in a circle. In the self-heal domain only he waits who got the larger part at the first try; the other healer
 * goes away. A holder of the main-domain lock is told by the brick that we wait and gives way.
 */
#include "cluster/replicate/heal_internal.h"
#include <stdio.h>

static bool is_of_healers(const struct heal_lock *lock)
{
    return lock->kind == HEAL_LOCK_HEAL_DATA || lock->kind == HEAL_LOCK_HEAL_ENTRY || lock->kind == HEAL_LOCK_MOVE;
}

static const char *domain_suffix(const struct heal_lock *lock)
{
    return lock->kind == HEAL_LOCK_MOVE ? ":move" : is_of_healers(lock) ? ":self-heal" : "";
}

struct lock_request {
    char domain[512];
    struct lock_range range;
    struct request q;
};

/* The domain of healers is named after ours; a name that does not fit is cut, on every client at the same place. */
static void make_request(const struct heal *h, const struct heal_lock *lock, enum lock_command command,
                         struct lock_request *ret)
{
    memset(ret, 0, sizeof(*ret));
    ret->range.type = LOCK_WRITE;
    ret->q.op = OP_INODELK;
    ret->q.inode = lock->inode;
    ret->q.fd = lock->fd;
    ret->q.command = command;
    ret->q.lock = &ret->range;
    ret->q.text = ret->domain;
    (void)snprintf(ret->domain, sizeof(ret->domain), "%s%s", h->me->name, domain_suffix(lock));
    switch (lock->kind) {
    case HEAL_LOCK_HEAL_DATA:
    case HEAL_LOCK_MOVE: break;
    case HEAL_LOCK_DATA:
        ret->range.start = lock->offset;
        ret->range.length = lock->length;
        break;
    case HEAL_LOCK_METADATA: ret->range.start = METADATA_LOCK_START; break;
    case HEAL_LOCK_HEAL_ENTRY:
    case HEAL_LOCK_NAMES:
    case HEAL_LOCK_NAME:
        ret->q.op = OP_ENTRYLK;
        ret->q.fd = NULL;
        ret->q.name = lock->kind == HEAL_LOCK_NAME ? lock->name : NULL;
        break;
    }
}

uint32_t heal_holders(const struct heal *h, const struct heal_lock *lock)
{
    const struct replicate *s = replicate_of(h->me);
    uint32_t held = 0;

    for_each_child(i, lock->held & s->up)
    {
        if (s->child[i].epoch == lock->epoch[i])
            held |= bit(i);
    }
    return held;
}

FIBER void heal_unlock(struct heal *h, struct heal_lock *lock)
{
    uint32_t held = heal_holders(h, lock);
    SCOPED(fan_free) struct fan *fan = NULL;
    struct lock_request unlock;
    struct call own;

    lock->held = 0;
    if (!held)
        return;
    make_request(h, lock, LOCK_UNLOCK, &unlock);
    call_copy(&own, &h->call);
    own.scope.deadline_ns = 0; /* a lock must not outlive its purpose; a lost connection ends the wait */
    fan = fan_new(h->me, &own, held, &unlock.q);
    if (fan)
        fan_run(fan);
    call_done(&own);
}

/* ---- at once ---- */

/* Returns the children that refused because somebody else holds it; *ret_error: what others said. */
static FIBER int try_all(struct heal *h, struct heal_lock *lock, uint32_t children, uint32_t *ret_refused,
                         int *ret_error)
{
    SCOPED(fan_free) struct fan *fan = NULL;
    struct lock_request try;

    make_request(h, lock, LOCK_TRY, &try);
    fan = fan_new(h->me, &h->call, children, &try.q);
    if (!fan)
        return -ENOMEM;
    fan_run(fan);
    lock->held = fan_ok(fan);
    *ret_refused = fan_failed_with(fan, -EAGAIN);
    for_each_child(i, children & ~lock->held & ~*ret_refused)
    {
        heal_note(h, i, fan->list[i].ret);
        *ret_error = result_worse(*ret_error, fan->list[i].ret);
    }
    return 0;
}

static bool is_larger_part(const struct heal *h, uint32_t held)
{
    const struct quorum majority = { .type = QUORUM_AUTO, .child_count = h->set.child_count };

    return held && quorum_met(&majority, held);
}

/* ---- one after the other ---- */

struct waiting {
    struct heal *h;
    struct heal_lock *lock;
    uint32_t children;
    struct call call;
    int error;
    bool has_ended;
    struct waitq ended;
};

static FIBER int lock_one(struct waiting *w, unsigned child, const struct request *q)
{
    struct replicate *s = replicate_of(w->h->me);
    int r;

    if (s->child[child].epoch != w->lock->epoch[child])
        return -ENOTCONN;
    r = child_call(w->h->me, child, &w->call, q, NULL);
    if (r < 0)
        return r;
    if (s->child[child].epoch != w->lock->epoch[child])
        return -ENOTCONN;
    w->lock->held |= bit(child);
    return 0;
}

static FIBER void waiting_fiber(void *arg)
{
    struct waiting *w = arg;
    struct translator *me = w->h->me;
    struct lock_request wait;

    make_request(w->h, w->lock, LOCK_WAIT, &wait);
    for_each_child(i, w->children)
    {
        int r = lock_one(w, i, &wait.q);

        heal_note(w->h, i, r);
        if (r == -ECANCELED || r == -ETIMEDOUT || r == -EDEADLK) {
            w->error = r;
            break;
        }
    }
    w->has_ended = true;
    waitq_wake_all(&w->ended, 0);
    replicate_fiber_ended(me);
}

/* Waits in a fiber of its own, so that the caller's cancellation ends it and no lock is forgotten. */
static FIBER int lock_in_order(struct heal *h, struct heal_lock *lock, uint32_t children)
{
    struct waiting w = { .h = h, .lock = lock, .children = children };
    uint64_t latest_ns = env_deadline_ms(h->me->env, HEAL_LOCK_WAIT_MS);
    int r;

    waitq_init(&w.ended);
    call_copy(&w.call, &h->call);
    if (!w.call.scope.deadline_ns || w.call.scope.deadline_ns > latest_ns)
        w.call.scope.deadline_ns = latest_ns;
    h->waiting = &w.call;
    r = replicate_spawn(h->me, "heal-lock", waiting_fiber, &w);
    if (r == 0) {
        r = waitq_wait(&w.ended, &h->caller->scope);
        if (r < 0)
            scope_cancel(&w.call.scope);
        while (!w.has_ended)
            (void)waitq_wait(&w.ended, NULL); /* the fiber wakes us when its request has ended */
        if (r == 0)
            r = w.error;
    }
    h->waiting = NULL;
    call_done(&w.call);
    /* Nobody gave way in time: as busy as one who refuses at once. The caller's own deadline is another matter. */
    return r == -ETIMEDOUT && heal_check(h) == 0 ? -EAGAIN : r;
}

FIBER int heal_lock(struct heal *h, struct heal_lock *lock, uint32_t children)
{
    struct replicate *s = replicate_of(h->me);
    uint32_t refused = 0;
    int error = 0, r = heal_check(h);

    lock->held = 0;
    children &= heal_present(h);
    if (r < 0)
        return r;
    if (!heal_set_is_enough(&h->set, children))
        return -ENOTCONN;
    for_each_child(i, s->all) lock->epoch[i] = s->child[i].epoch;
    r = try_all(h, lock, children, &refused, &error);
    if (r == 0 && refused) {
        bool waits = !is_of_healers(lock) || is_larger_part(h, heal_holders(h, lock));

        heal_unlock(h, lock);
        r = waits ? lock_in_order(h, lock, children) : -EAGAIN;
    }
    if (r == 0 && !heal_set_is_enough(&h->set, heal_holders(h, lock)))
        r = error ? error : -ENOTCONN;
    if (r < 0)
        heal_unlock(h, lock);
    return r;
}
