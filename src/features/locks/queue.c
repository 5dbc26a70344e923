/* features/locks/queue.c - inodelk and entrylk: domains, fair queues, contention notices, revocation. */
#include "features/locks/locks_internal.h"

static bool same_owner(const struct cluster_lock *a, const struct cluster_lock *b)
{
    return a->client == b->client && lk_owner_equal(&a->owner, &b->owner);
}

static bool conflict(const struct cluster_lock *a, const struct cluster_lock *b)
{
    if (same_owner(a, b))
        return false;
    if (a->domain->kind == LOCK_OF_ENTRY)
        return !a->name || !b->name || strcmp(a->name, b->name) == 0;
    return (a->type == LOCK_WRITE || b->type == LOCK_WRITE) && ranges_overlap(a->start, a->end, b->start, b->end);
}

/* ---- domains ---- */

static struct lock_domain *domain_find(struct lock_inode *li, enum lock_kind kind, const char *name)
{
    struct lock_domain *d;

    list_for_each (d, &li->domains, of_inode)
        if (d->kind == kind && strcmp(d->name, name) == 0)
            return d;
    return NULL;
}

static struct lock_domain *domain_get(struct translator *me, struct inode *inode, enum lock_kind kind, const char *name)
{
    struct lock_inode *li = lock_inode_get(me, inode);
    if (!li)
        return NULL;
    struct lock_domain *d = domain_find(li, kind, name);
    if (d)
        return d;
    d = NEW(struct lock_domain);
    if (!d)
        return NULL;
    d->name = mem_strdup(name);
    if (!d->name) {
        mem_free(d);
        return NULL;
    }
    d->kind = kind;
    d->inode = inode_ref(inode);
    list_init(&d->granted);
    list_init(&d->waiting);
    list_init(&d->of_contended);
    list_add_tail(&li->domains, &d->of_inode);
    return d;
}

/* Frees the domain if it holds no lock; may drop the last reference to the inode. */
static void domain_put(struct lock_domain *d)
{
    if (!list_empty(&d->granted) || !list_empty(&d->waiting))
        return;
    list_del(&d->of_contended);
    list_del(&d->of_inode);
    inode_unref(d->inode);
    mem_free(d->name);
    mem_free(d);
}

static void lock_unlink(struct translator *me, struct cluster_lock *lock)
{
    struct lock_domain *d = lock->domain;

    if (!list_empty(&lock->of_domain)) {
        if (lock->waiter)
            d->waiting_count--;
        else
            d->granted_count--;
    }
    list_del(&lock->of_domain);
    list_del(&lock->of_client);
    if (list_empty(&d->waiting))
        list_del(&d->of_contended);
    lock_client_put(me, lock->client);
}

static void lock_free(struct cluster_lock *lock)
{
    client_unref(lock->client);
    mem_free(lock->name);
    mem_free(lock);
}

/* ---- granting ---- */

static bool blocked_by_granted(const struct cluster_lock *want)
{
    struct cluster_lock *g;

    list_for_each (g, &want->domain->granted, of_domain)
        if (conflict(g, want))
            return true;
    return false;
}

/* An owner that holds a lock here, or waits for another one, must not queue behind those who wait for it. */
static bool is_owner_known(const struct cluster_lock *want)
{
    struct cluster_lock *l;

    list_for_each (l, &want->domain->granted, of_domain)
        if (same_owner(l, want))
            return true;
    list_for_each (l, &want->domain->waiting, of_domain)
        if (l != want && same_owner(l, want))
            return true;
    return false;
}

/* Is somebody with a conflicting wish ahead of `want` in the queue (anybody, when it is not queued yet)? */
static bool blocked_by_waiting(const struct cluster_lock *want)
{
    struct cluster_lock *w;

    list_for_each (w, &want->domain->waiting, of_domain) {
        if (w == want)
            return false;
        if (conflict(w, want))
            return !is_owner_known(want);
    }
    return false;
}

static void mark_granted(struct translator *me, struct cluster_lock *lock)
{
    struct lock_domain *d = lock->domain;

    lock->since_ns = env_now_ns(me->env);
    lock->was_noticed = false;
    list_add_tail(&d->granted, &lock->of_domain);
    d->granted_count++;
}

/* Serves the queue after something went. */
static void domain_grant(struct translator *me, struct lock_domain *d)
{
    struct cluster_lock *w;
    bool has_granted = false;

    list_for_each (w, &d->waiting, of_domain) {
        if (w->client && w->client->is_gone)
            continue; /* client_gone is about to take it out */
        if (blocked_by_granted(w) || blocked_by_waiting(w))
            continue;
        list_del(&w->of_domain);
        d->waiting_count--;
        waiter_settle(w->waiter, 0);
        w->waiter = NULL;
        mark_granted(me, w);
        has_granted = true;
    }
    if (list_empty(&d->waiting))
        list_del(&d->of_contended);
    else if (has_granted)
        locks_tick_within(me, 1); /* the new holder must hear of those who wait, but after its grant */
}

void cluster_lock_drop(struct translator *me, struct cluster_lock *lock, int result)
{
    struct lock_domain *d = lock->domain;

    lock_unlink(me, lock);
    if (lock->waiter)
        waiter_settle(lock->waiter, result);
    lock_free(lock);
    domain_grant(me, d);
    domain_put(d);
}

/* ---- notices and revocation ---- */

static void notice(struct translator *me, struct cluster_lock *held)
{
    struct locks *s = me->state;
    struct lock_domain *d = held->domain;
    uint64_t now = env_now_ns(me->env);

    if (!s->notifies || (held->was_noticed && now - held->noticed_ns < s->notify_delay_s * (uint64_t)1000000000))
        return;
    held->was_noticed = true;
    held->noticed_ns = now;
    s->contentions++;
    struct event e = {
        .kind = d->kind == LOCK_OF_INODE ? EVENT_INODELK_CONTENTION : EVENT_ENTRYLK_CONTENTION,
        .gfid = d->inode->gfid,
        .client = held->client,
        .domain = d->name,
        .name = held->name,
        .pid = held->pid,
        .range = { .type = held->type,
                   .start = held->start,
                   .length = held->end >= INT64_MAX ? 0 : held->end - held->start + 1,
                   .pid = held->pid },
    };
    notify_parents(me, &e);
}

static void notice_holders(struct translator *me, const struct cluster_lock *want)
{
    struct cluster_lock *g;

    list_for_each (g, &want->domain->granted, of_domain)
        if (conflict(g, want))
            notice(me, g);
}

static bool is_overdue(const struct locks *s, const struct cluster_lock *held, uint64_t now)
{
    if (s->revocation_s && now - held->since_ns >= s->revocation_s * (uint64_t)1000000000)
        return true;
    return s->revocation_max_blocked && held->domain->waiting_count >= s->revocation_max_blocked;
}

/* Takes locks from holders that others have waited for too long, if the options say so. */
static void revoke_overdue(struct translator *me, struct lock_domain *d)
{
    struct locks *s = me->state;
    uint64_t now = env_now_ns(me->env);
    struct cluster_lock *lock;
    uint32_t count = 0;

    if ((!s->revocation_s && !s->revocation_max_blocked) || list_empty(&d->waiting))
        return;
    list_for_each (lock, &d->granted, of_domain) {
        if (!is_overdue(s, lock, now))
            continue;
        lock_unlink(me, lock);
        lock_free(lock);
        count++;
    }
    if (!count)
        return;
    s->revoked += count;
    if (s->revocation_clears_all)
        list_for_each (lock, &d->waiting, of_domain) {
            lock_unlink(me, lock);
            waiter_settle(lock->waiter, -EAGAIN);
            lock_free(lock);
        }
    TLOG(me, LOG_WARNING, "lock-revoked", "gfid=%s domain=%s locks=%u", GFID_TEXT(&d->inode->gfid), d->name, count);
    domain_grant(me, d);
    domain_put(d);
}

void cluster_tick(struct translator *me)
{
    struct locks *s = me->state;
    struct lock_domain *d;

    list_for_each (d, &s->contended, of_contended) {
        struct cluster_lock *w;
        list_for_each (w, &d->waiting, of_domain)
            notice_holders(me, w);
        revoke_overdue(me, d);
    }
}

/* ---- requests ---- */

static void lock_copy_owner(struct cluster_lock *lock, const struct call *call, int32_t pid)
{
    lock->client = call->client ? client_ref(call->client) : NULL;
    lock->owner = call->lk_owner;
    lock->pid = pid;
}

static int unlock(struct translator *me, const struct cluster_lock *want)
{
    struct cluster_lock *g;

    list_for_each (g, &want->domain->granted, of_domain) {
        if (!same_owner(g, want))
            continue;
        bool is_it = want->domain->kind == LOCK_OF_INODE
                         ? g->start == want->start && g->end == want->end
                         : (g->name && want->name ? strcmp(g->name, want->name) == 0 : g->name == want->name);
        if (is_it) {
            cluster_lock_drop(me, g, 0);
            return 0;
        }
    }
    return -EINVAL;
}

/* Queues the lock (given) and waits. */
static FIBER int wait_for_grant(struct translator *me, struct call *call, struct cluster_lock *lock)
{
    struct locks *s = me->state;
    struct lock_domain *d = lock->domain;
    struct lock_waiter waiter;

    waiter_init(&waiter);
    lock->waiter = &waiter;
    lock->since_ns = env_now_ns(me->env);
    list_add_tail(&d->waiting, &lock->of_domain);
    d->waiting_count++;
    if (list_empty(&d->of_contended))
        list_add_tail(&s->contended, &d->of_contended);
    locks_tick_within(me, 1000);
    notice_holders(me, lock);
    if (s->revocation_max_blocked)
        locks_tick_within(me, 0);

    int result = waitq_wait(&waiter.q, &call->scope);
    if (waiter.is_settled)
        return waiter.result;
    cluster_lock_drop(me, lock, result); /* cancelled or too late: those behind it may go */
    return result;
}

/* `lock` is given; its domain is set and may be empty. */
static FIBER int lock_or_wait(struct translator *me, struct call *call, enum lock_command command,
                              struct cluster_lock *lock)
{
    struct lock_domain *d = lock->domain;
    struct list *of_client;
    int r = lock_list_of(me, lock->client, false, &of_client);

    if (r == 0)
        list_add_tail(of_client, &lock->of_client);
    if (r == 0 && (blocked_by_granted(lock) || blocked_by_waiting(lock))) {
        if (command == LOCK_WAIT)
            return wait_for_grant(me, call, lock);
        notice_holders(me, lock);
        r = -EAGAIN;
    }
    if (r == 0) {
        mark_granted(me, lock);
        return 0;
    }
    lock_unlink(me, lock);
    lock_free(lock);
    domain_put(d);
    return r;
}

static FIBER int cluster_request(struct translator *me, struct call *call, const struct request *q,
                                 struct cluster_lock *lock)
{
    struct locks *s = me->state;

    if (s->trace)
        TLOG(me, LOG_INFO, "lock", "kind=%s gfid=%s domain=%s command=%d type=%d start=%llu name=%s client=%s",
             lock->domain->kind == LOCK_OF_INODE ? "inode" : "entry", GFID_TEXT(&q->inode->gfid), lock->domain->name,
             (int)q->command, (int)lock->type, (unsigned long long)lock->start, lock->name ? lock->name : "",
             call->client ? call->client->uid : "");
    if (q->command != LOCK_UNLOCK && lock->type != LOCK_NONE)
        return lock_or_wait(me, call, q->command, lock);

    /* unlock() may free the domain with the lock it finds: this one must not keep it. */
    SCOPED(inode_unref) struct inode *keep = inode_ref(q->inode);
    struct lock_domain *d = lock->domain;
    bool is_empty = list_empty(&d->granted) && list_empty(&d->waiting);
    int r = is_empty ? -EINVAL : unlock(me, lock);
    lock_free(lock);
    if (is_empty)
        domain_put(d);
    return r;
}

static struct cluster_lock *lock_new(struct translator *me, const struct call *call, const struct request *q,
                                     enum lock_kind kind, const char *domain, int32_t pid)
{
    struct cluster_lock *lock = NEW(struct cluster_lock);
    if (!lock)
        return NULL;
    list_init(&lock->of_domain);
    list_init(&lock->of_client);
    if (kind == LOCK_OF_ENTRY && q->name) {
        lock->name = mem_strdup(q->name);
        if (!lock->name) {
            mem_free(lock);
            return NULL;
        }
    }
    lock->domain = domain_get(me, q->inode, kind, domain);
    if (!lock->domain) {
        mem_free(lock->name);
        mem_free(lock);
        return NULL;
    }
    lock->type = q->lock ? q->lock->type : LOCK_WRITE;
    lock_copy_owner(lock, call, pid);
    return lock;
}

FIBER int locks_inodelk(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    uint64_t end = 0;

    if (!q->lock || !q->text || q->command == LOCK_GET || lock_range_end(q->lock, &end) < 0)
        return -EINVAL;
    SCOPED_FREE char *metadata_domain = NULL;
    if (q->lock->start == LOCKS_METADATA_START && q->lock->length == 0) {
        metadata_domain = mem_printf("%s:metadata", q->text);
        if (!metadata_domain)
            return -ENOMEM;
    }
    struct cluster_lock *lock = lock_new(me, call, q, LOCK_OF_INODE, metadata_domain ? metadata_domain : q->text,
                                         q->lock->pid ? q->lock->pid : call->pid);
    if (!lock)
        return -ENOMEM;
    lock->start = q->lock->start;
    lock->end = end;
    int result = cluster_request(me, call, q, lock);
    if (result == 0)
        (void)locks_answer_counts(me, q, r); /* without memory: granted all the same, only not counted */
    return result;
}

FIBER int locks_entrylk(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    if (!q->text || q->command == LOCK_GET)
        return -EINVAL;
    struct cluster_lock *lock = lock_new(me, call, q, LOCK_OF_ENTRY, q->text, call->pid);
    if (!lock)
        return -ENOMEM;
    int result = cluster_request(me, call, q, lock);
    if (result == 0)
        (void)locks_answer_counts(me, q, r); /* without memory: granted all the same, only not counted */
    return result;
}
