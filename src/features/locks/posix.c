/* features/locks/posix.c - lk: POSIX ranges of applications, waiting, deadlocks, reclaim; mandatory locking. */
#include "features/locks/locks_internal.h"
#include <fcntl.h>

/* How long a request may wait only because others with conflicting wishes came before it. Past that it overtakes: a
 * kernel would have granted it at once, and its owner may hold what those others need on another brick. */
#define FAIR_WAIT_NS ((uint64_t)1000000000)

/* ---- life of a lock ---- */

static struct posix_lock *posix_new(const struct posix_lock *like)
{
    struct posix_lock *lock = mem_dup(like, sizeof(*like));
    if (!lock)
        return NULL;
    list_init(&lock->of_inode);
    list_init(&lock->of_client);
    list_init(&lock->of_waiting);
    list_init(&lock->marked);
    if (lock->client)
        client_ref(lock->client);
    lock->spare = NULL;
    return lock;
}

static void posix_free(struct translator *me, struct posix_lock *lock)
{
    if (!lock)
        return;
    posix_free(me, lock->spare); /* one level: a spare has none */
    list_del(&lock->of_inode);
    list_del(&lock->of_waiting);
    list_del(&lock->of_client);
    if (lock->client) {
        lock_client_put(me, lock->client);
        client_unref(lock->client);
    }
    mem_free(lock);
}

/* A lock object with its spare, known to its client, on no inode list yet. */
static int posix_make(struct translator *me, const struct posix_lock *like, struct posix_lock **ret_lock)
{
    struct list *of_client;
    int r = lock_list_of(me, like->client, true, &of_client);
    if (r < 0)
        return r;
    struct posix_lock *lock = posix_new(like);
    if (!lock) {
        lock_client_put(me, like->client);
        return -ENOMEM;
    }
    list_add_tail(of_client, &lock->of_client);
    lock->spare = posix_new(like);
    if (!lock->spare) {
        posix_free(me, lock);
        return -ENOMEM;
    }
    *ret_lock = lock;
    return 0;
}

static void pin(struct inode *inode, struct lock_inode *li)
{
    if (!li->is_pinned)
        inode_ref(inode);
    li->is_pinned = true;
}

/* May free li. */
static void unpin_if_empty(struct inode *inode, struct lock_inode *li)
{
    if (!li->is_pinned || !list_empty(&li->posix_granted) || !list_empty(&li->posix_waiting))
        return;
    li->is_pinned = false;
    inode_unref(inode);
}

/* Makes the lock (given) part of what its owner holds. */
static void apply(struct translator *me, struct lock_inode *li, struct posix_lock *lock)
{
    struct list dead = LIST_INIT(dead);
    struct posix_lock *spare = take(lock->spare);

    lock->since_ns = env_now_ns(me->env);
    list_add_tail(&lock->of_client, &spare->of_client); /* next to it on its client's list */
    posix_ranges_apply(&li->posix_granted, lock, spare, &dead);
    while (!list_empty(&dead))
        posix_free(me, list_first(&dead, struct posix_lock, of_inode));
}

/* ---- queue ---- */

static bool owner_holds(const struct lock_inode *li, const struct posix_lock *want)
{
    struct posix_lock *g;

    list_for_each (g, &li->posix_granted, of_inode)
        if (posix_same_owner(g, want))
            return true;
    return false;
}

/* Must `want` let somebody go first who came before it? Those who hold a lock here, or waited long, need not. */
static bool is_behind_others(struct translator *me, const struct lock_inode *li, const struct posix_lock *want)
{
    struct posix_lock *w;

    if (want->is_probe || (want->waiter && env_now_ns(me->env) - want->since_ns >= FAIR_WAIT_NS))
        return false;
    list_for_each (w, &li->posix_waiting, of_inode) {
        if (w == want)
            return false;
        if (!w->is_probe && posix_conflict(w, want))
            return !owner_holds(li, want);
    }
    return false;
}

static bool is_enforced(const struct locks *s, const struct posix_lock *lock)
{
    return s->mandatory != MANDATORY_OPTIMAL || lock->is_mandatory;
}

static struct posix_lock *mandatory_conflict(struct translator *me, const struct posix_lock *want)
{
    struct lock_inode *li = lock_inode_find(me, want->inode);
    struct posix_lock *g;

    if (li)
        list_for_each (g, &li->posix_granted, of_inode)
            if (posix_conflict(g, want) && is_enforced(me->state, g))
                return g;
    return NULL;
}

static bool is_blocked(struct translator *me, struct lock_inode *li, const struct posix_lock *want)
{
    return want->is_probe ? mandatory_conflict(me, want) : posix_ranges_conflict(&li->posix_granted, want);
}

/* Grants what can be granted now, in order; then the inode may be let go of. */
static void serve(struct translator *me, struct inode *inode, struct lock_inode *li)
{
    struct posix_lock *w;

    list_for_each (w, &li->posix_waiting, of_inode) {
        if (w->client && w->client->is_gone)
            continue; /* client_gone is about to take it out */
        if (is_blocked(me, li, w) || is_behind_others(me, li, w))
            continue;
        list_del(&w->of_inode);
        list_del(&w->of_waiting);
        waiter_settle(w->waiter, 0);
        w->waiter = NULL;
        if (w->is_probe)
            posix_free(me, w);
        else
            apply(me, li, w);
    }
    unpin_if_empty(inode, li);
}

/* Would waiting for `want` never end, because those in the way wait (in however many steps) for its owner? */
static bool would_deadlock(struct translator *me, struct posix_lock *want)
{
    struct locks *s = me->state;
    struct list *work = &s->marked;
    bool is_found = false;

    list_add_tail(work, &want->marked);
    for (struct list *node = work->next; node != work && !is_found; node = node->next) {
        struct posix_lock *at = list_entry(node, struct posix_lock, marked), *g, *w;
        list_for_each (g, &lock_inode_find(me, at->inode)->posix_granted, of_inode) {
            if (!posix_conflict(g, at))
                continue;
            is_found = is_found || posix_same_owner(g, want);
            list_for_each (w, &s->posix_waiting, of_waiting)
                if (list_empty(&w->marked) && posix_same_owner(w, g))
                    list_add_tail(work, &w->marked);
        }
    }
    while (!list_empty(work))
        list_del(work->next);
    return is_found;
}

/* `lock` is given. */
static FIBER int wait_in_queue(struct translator *me, struct call *call, struct inode *inode, struct lock_inode *li,
                               struct posix_lock *lock)
{
    struct locks *s = me->state;
    struct lock_waiter waiter;

    waiter_init(&waiter);
    lock->waiter = &waiter;
    lock->since_ns = env_now_ns(me->env);
    list_add_tail(&li->posix_waiting, &lock->of_inode);
    list_add_tail(&s->posix_waiting, &lock->of_waiting);
    pin(inode, li);
    locks_tick_within(me, 1000);

    int result = waitq_wait(&waiter.q, &call->scope);
    if (waiter.is_settled)
        return waiter.result;
    posix_free(me, lock);
    serve(me, inode, li);
    return result;
}

void posix_tick(struct translator *me)
{
    struct locks *s = me->state;
    struct posix_lock *w;

again:
    list_for_each (w, &s->posix_waiting, of_waiting) {
        struct lock_inode *li = lock_inode_find(me, w->inode);
        if (env_now_ns(me->env) - w->since_ns < FAIR_WAIT_NS || (w->client && w->client->is_gone) ||
            is_blocked(me, li, w))
            continue;
        serve(me, w->inode, li); /* grants at least this one */
        goto again;
    }
}

/* ---- reclaim ---- */

void locks_grace_start(struct translator *me)
{
    struct locks *s = me->state;

    if (!s->reclaim_grace_s)
        return;
    s->in_grace = true;
    timer_start(me->env, &s->grace_timer, env_deadline_ms(me->env, s->reclaim_grace_s * (uint64_t)1000),
                locks_grace_end, me);
}

void locks_grace_end(void *arg)
{
    struct translator *me = arg;
    struct locks *s = me->state;

    timer_stop(&s->grace_timer);
    s->in_grace = false;
    waitq_wake_all(&s->grace, 0);
}

static FIBER int wait_for_grace(struct translator *me, struct call *call, const struct request *q,
                                const struct posix_lock *want)
{
    struct locks *s = me->state;

    while (s->in_grace) {
        struct lock_inode *li = lock_inode_find(me, q->inode);
        if (dict_has(q->xdata, LOCKS_RECLAIM) || (li && (li->is_new || owner_holds(li, want))))
            return 0;
        int r = waitq_wait(&s->grace, &call->scope);
        if (r < 0)
            return r;
    }
    return 0;
}

/* ---- another connection of the same program ---- */

#define PROCESS_PREFIX "CTX_ID:" /* of a client's uid, then a UUID */
#define PROCESS_BYTES  (sizeof(PROCESS_PREFIX) - 1 + GFID_TEXT_LEN)

static bool is_same_process(const struct client *a, const struct client *b)
{
    return a && b && strnlen(a->uid, PROCESS_BYTES) == PROCESS_BYTES &&
           strncmp(a->uid, PROCESS_PREFIX, sizeof(PROCESS_PREFIX) - 1) == 0 &&
           strncmp(a->uid, b->uid, PROCESS_BYTES) == 0;
}

static int give_to(struct translator *me, struct posix_lock *lock, struct client *client)
{
    struct list *of_client;
    int r = lock_list_of(me, client, true, &of_client);

    if (r < 0)
        return r;
    list_del(&lock->of_client);
    list_add_tail(of_client, &lock->of_client);
    lock_client_put(me, lock->client);
    client_unref(lock->client);
    lock->client = client_ref(client);
    return 0;
}

static int take_over(struct translator *me, const struct posix_lock *want)
{
    struct lock_inode *li = lock_inode_find(me, want->inode);
    struct posix_lock *g;

    if (!li)
        return 0;
    list_for_each (g, &li->posix_granted, of_inode) {
        if (g->client == want->client || !lk_owner_equal(&g->owner, &want->owner) ||
            !ranges_overlap(g->start, g->end, want->start, want->end) || !is_same_process(g->client, want->client))
            continue;
        int r = give_to(me, g, want->client);
        if (r < 0)
            return r;
        g->fd = want->fd;
    }
    return 0;
}

/* ---- requests ---- */

static int answer_conflict(struct translator *me, const struct request *q, const struct posix_lock *want,
                           struct reply *r)
{
    struct lock_inode *li = lock_inode_find(me, q->inode);
    struct posix_lock *g = li ? posix_ranges_conflict(&li->posix_granted, want) : NULL;
    struct lock_range range = *q->lock;

    range.type = LOCK_NONE;
    if (g) {
        range.type = g->type;
        range.start = g->start;
        range.length = g->end >= INT64_MAX ? 0 : g->end - g->start + 1;
        range.pid = g->pid;
        range.owner = g->owner;
    }
    r->lock = mem_dup(&range, sizeof(range));
    return r->lock ? 0 : -ENOMEM;
}

static int unlock(struct translator *me, const struct request *q, const struct posix_lock *want)
{
    struct lock_inode *li = lock_inode_find(me, q->inode);
    struct posix_lock *lock;

    if (!li || list_empty(&li->posix_granted))
        return 0;
    int r = posix_make(me, want, &lock);
    if (r < 0)
        return r;
    apply(me, li, lock);
    serve(me, q->inode, li);
    return 0;
}

static FIBER int lock_or_wait(struct translator *me, struct call *call, const struct request *q,
                              const struct posix_lock *want)
{
    struct lock_inode *li = lock_inode_get(me, q->inode);
    struct posix_lock *lock;
    bool waits = q->command == LOCK_WAIT && !dict_has(q->xdata, LOCKS_RECLAIM);

    if (!li)
        return -ENOMEM;
    int r = posix_make(me, want, &lock);
    if (r < 0)
        return r;
    bool is_taken = is_blocked(me, li, lock);
    if (!is_taken && !(waits && is_behind_others(me, li, lock))) {
        pin(q->inode, li);
        if (q->fd)
            *fd_ctx(q->fd, me) = li; /* any value: asks for fd_release */
        apply(me, li, lock);
        serve(me, q->inode, li); /* a downgrade lets others in */
        return 0;
    }
    if (!waits)
        r = -EAGAIN;
    else if (is_taken && would_deadlock(me, lock))
        r = -EDEADLK;
    if (r < 0) {
        posix_free(me, lock);
        return r;
    }
    if (q->fd)
        *fd_ctx(q->fd, me) = li;
    return wait_in_queue(me, call, q->inode, li, lock);
}

FIBER int locks_lk(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct locks *s = me->state;
    uint64_t end, mode = 0;

    if (!q->lock || lock_range_end(q->lock, &end) < 0)
        return -EINVAL;
    (void)dict_get_uint(q->xdata, "glusterfs.lk.lkmode", &mode); /* absent: advisory */
    const struct posix_lock want = { .inode = q->inode,
                                     .client = call->client,
                                     .owner = q->lock->owner,
                                     .pid = q->lock->pid,
                                     .type = q->command == LOCK_UNLOCK ? LOCK_NONE : q->lock->type,
                                     .start = q->lock->start,
                                     .end = end,
                                     .is_mandatory = mode != 0,
                                     .fd = q->fd };
    if (s->trace)
        TLOG(me, LOG_INFO, "lock", "kind=posix gfid=%s command=%d type=%d start=%llu end=%llu client=%s",
             GFID_TEXT(&q->inode->gfid), (int)q->command, (int)want.type, (unsigned long long)want.start,
             (unsigned long long)end, call->client ? call->client->uid : "");
    bool is_unlock = want.type == LOCK_NONE && q->command != LOCK_GET;
    int result = is_unlock ? 0 : wait_for_grace(me, call, q, &want);
    if (result < 0)
        return result;
    if (q->command == LOCK_GET)
        return answer_conflict(me, q, &want, r);
    SCOPED_FREE struct lock_range *range = mem_dup(q->lock, sizeof(*range)); /* before anything is granted */
    if (!range)
        return -ENOMEM;
    if (dict_has(q->xdata, LOCKS_TAKEOVER))
        result = take_over(me, &want);
    if (result == 0)
        result = is_unlock ? unlock(me, q, &want) : lock_or_wait(me, call, q, &want);
    if (result == 0)
        r->lock = take(range);
    return result;
}

FIBER int locks_getactivelk(struct translator *me, struct call *call UNUSED, const struct request *q, struct reply *r)
{
    struct lock_inode *li = lock_inode_find(me, q->inode);
    struct posix_lock *g;
    uint32_t count = 0;

    if (li)
        list_for_each (g, &li->posix_granted, of_inode)
            count++;
    if (!count)
        return 0;
    r->locks = mem_array(count, sizeof(*r->locks));
    if (!r->locks)
        return -ENOMEM;
    list_for_each (g, &li->posix_granted, of_inode) {
        struct active_lock *a = &r->locks[r->lock_count++];
        a->range = (struct lock_range) { .type = g->type,
                                         .start = g->start,
                                         .length = g->end >= INT64_MAX ? 0 : g->end - g->start + 1,
                                         .pid = g->pid,
                                         .owner = g->owner };
        a->flags = g->is_mandatory;
        const char *uid = g->client ? g->client->uid : "";
        memcpy(a->client_uid, uid, MIN(strlen(uid), sizeof(a->client_uid) - 1));
    }
    return 0;
}

/* ---- dropping ---- */

void posix_drop(struct translator *me, struct inode *inode, const struct client *client, const struct lk_owner *owner,
                const struct fd *fd)
{
    struct lock_inode *li = lock_inode_find(me, inode);
    struct posix_lock *g;

    if (!li || list_empty(&li->posix_granted))
        return;
    list_for_each (g, &li->posix_granted, of_inode)
        if ((fd || g->client == client) && (!owner || lk_owner_equal(&g->owner, owner)) && (!fd || g->fd == fd))
            posix_free(me, g);
    serve(me, inode, li);
}

static bool in_range(const struct posix_lock *lock, const struct lock_range *range)
{
    uint64_t end;
    return !range || (lock_range_end(range, &end) == 0 && ranges_overlap(lock->start, lock->end, range->start, end));
}

uint32_t posix_clear_granted(struct translator *me, struct inode *inode, const struct lock_range *range)
{
    struct lock_inode *li = lock_inode_find(me, inode);
    struct posix_lock *g;
    uint32_t count = 0;

    if (!li)
        return 0;
    list_for_each (g, &li->posix_granted, of_inode)
        if (in_range(g, range)) {
            posix_free(me, g);
            count++;
        }
    serve(me, inode, li);
    return count;
}

uint32_t posix_drop_waiting(struct translator *me, struct inode *inode, const struct client *client,
                            const struct lk_owner *owner, const struct lock_range *range, int result)
{
    struct lock_inode *li = lock_inode_find(me, inode);
    struct posix_lock *w;
    uint32_t count = 0;

    if (!li)
        return 0;
    list_for_each (w, &li->posix_waiting, of_inode) {
        if ((owner && (w->client != client || !lk_owner_equal(&w->owner, owner))) || !in_range(w, range))
            continue;
        waiter_settle(w->waiter, result);
        posix_free(me, w);
        count++;
    }
    serve(me, inode, li);
    return count;
}

void posix_client_gone(struct translator *me, struct client *client)
{
    struct locks *s = me->state;

    for (;;) {
        struct lock_client *lc = client ? *client_ctx(client, me) : NULL;
        struct list *head = client ? (lc ? &lc->posix : NULL) : &s->local_posix;
        if (!head || list_empty(head))
            return;
        struct posix_lock *lock = list_first(head, struct posix_lock, of_client);
        struct inode *inode = lock->inode;
        if (lock->waiter)
            waiter_settle(lock->waiter, -ENOTCONN);
        posix_free(me, lock);
        serve(me, inode, lock_inode_find(me, inode)); /* pinned until here */
    }
}

/* ---- mandatory locking ---- */

bool locks_has_foreign_posix(struct translator *me, struct call *call, struct inode *inode)
{
    struct lock_inode *li = lock_inode_find(me, inode);
    struct posix_lock *g;

    if (li)
        list_for_each (g, &li->posix_granted, of_inode)
            if (g->client != call->client || !lk_owner_equal(&g->owner, &call->lk_owner))
                return true;
    return false;
}

/* The traditional mark of a file with mandatory locking: setgid without group execute. */
static FIBER int has_mandatory_bits(struct translator *me, struct call *call, const struct request *q)
{
    SCOPED(reply_free) struct reply *r = reply_new();
    if (!r)
        return -ENOMEM;
    int result = child_stat(me, 0, call, q->inode, q->fd, NULL, r);
    return result < 0 ? result : (r->stat.mode & (S_ISGID | S_IXGRP)) == S_ISGID;
}

FIBER int locks_mandatory_check(struct translator *me, struct call *call, const struct request *q, enum lock_type type,
                                uint64_t start, uint64_t end)
{
    struct locks *s = me->state;
    bool is_nonblocking = ((q->fd ? q->fd->flags : 0) | q->flags) & O_NONBLOCK;

    if (s->mandatory == MANDATORY_OFF || call->pid < 0)
        return 0;
    const struct posix_lock want = { .inode = q->inode,
                                     .client = call->client,
                                     .owner = call->lk_owner,
                                     .pid = call->pid,
                                     .type = type,
                                     .start = start,
                                     .end = end,
                                     .is_probe = true };
    if (!mandatory_conflict(me, &want))
        return 0;
    if (s->mandatory == MANDATORY_FILE) {
        int bits = has_mandatory_bits(me, call, q);
        if (bits <= 0)
            return bits;
    }
    while (mandatory_conflict(me, &want)) {
        struct posix_lock *probe;
        if (is_nonblocking)
            return -EAGAIN;
        int r = posix_make(me, &want, &probe);
        if (r < 0)
            return r;
        if (would_deadlock(me, probe)) {
            posix_free(me, probe);
            return -EDEADLK;
        }
        r = wait_in_queue(me, call, q->inode, lock_inode_find(me, q->inode), probe);
        if (r < 0)
            return r;
    }
    return 0;
}
