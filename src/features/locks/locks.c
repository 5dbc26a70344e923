/* features/locks - see locks.h. This file: options, the operations that pass through, and life cycle. */
#include "features/locks/locks_internal.h"
#include <fcntl.h>

static const char *const mandatory_words[] = { "off", "file", "forced", "optimal", NULL };

static const struct option locks_options[] = {
    OPT_ENUM("mandatory-locking", struct locks, mandatory, mandatory_words, .def = "off",
             .help =
                 "which POSIX locks stop other clients' reads and writes: off none, file those on files with setgid "
                 "and without group execute permission, forced all, optimal those taken as mandatory"),
    OPT_ANY("mandatory-locks", .aliases = { "mandatory" }, .help = "old form: on means mandatory-locking forced"),
    OPT_BOOL("trace", struct locks, trace, .def = "off", .live = true, .help = "log every lock request"),
    OPT_TIME("revocation-secs", struct locks, revocation_s, .def = "0", .max = INT32_MAX, .live = true,
             .help = "take an inodelk or entrylk away that was held so long while others wait; 0 = never"),
    OPT_U32("revocation-max-blocked", struct locks, revocation_max_blocked, .def = "0", .max = INT32_MAX, .live = true,
            .help = "take an inodelk or entrylk away that so many others wait for; 0 = never"),
    OPT_BOOL("revocation-clear-all", struct locks, revocation_clears_all, .def = "off", .live = true,
             .help = "a revocation refuses those who wait as well"),
    OPT_BOOL("notify-contention", struct locks, notifies, .def = "yes", .live = true,
             .help = "tell holders of inodelks and entrylks that somebody waits"),
    OPT_TIME("notify-contention-delay", struct locks, notify_delay_s, .def = "5", .max = 60, .live = true,
             .help = "time between two such notices for one lock"),
    OPT_TIME("reclaim-grace", struct locks, reclaim_grace_s, .def = "3", .max = 300,
             .help = "after start, how long new POSIX locks wait for clients to reclaim theirs"),
    OPT_IGNORED("enforce-mandatory-lock", .help = "mandatory locks are always enforced here"),
    OPT_IGNORED("monkey-unlocking", .help = "was a fault injection; debug/error-gen injects faults"),
    OPT_END,
};

/* ---- shared helpers ---- */

void waiter_init(struct lock_waiter *w)
{
    waitq_init(&w->q);
    w->is_settled = false;
    w->result = 0;
}

void waiter_settle(struct lock_waiter *w, int result)
{
    w->is_settled = true;
    w->result = result;
    waitq_wake_one(&w->q, result);
}

int lock_range_end(const struct lock_range *range, uint64_t *ret_end)
{
    if (range->start > INT64_MAX)
        return -EINVAL;
    if (range->length == 0) {
        *ret_end = INT64_MAX;
        return 0;
    }
    if (range->length - 1 > INT64_MAX - range->start)
        return -EINVAL;
    *ret_end = range->start + range->length - 1;
    return 0;
}

struct lock_inode *lock_inode_find(struct translator *me, struct inode *inode)
{
    return *inode_ctx(inode, me);
}

struct lock_inode *lock_inode_get(struct translator *me, struct inode *inode)
{
    void **slot = inode_ctx(inode, me);
    if (*slot)
        return *slot;
    struct lock_inode *li = NEW(struct lock_inode);
    if (!li)
        return NULL;
    list_init(&li->domains);
    list_init(&li->posix_granted);
    list_init(&li->posix_waiting);
    *slot = li;
    return li;
}

static void locks_inode_forget(struct translator *me UNUSED, struct inode *inode UNUSED, void *ctx)
{
    struct lock_inode *li = ctx;

    /* Locks keep a reference, so there are none left. */
    assert(list_empty(&li->domains) && list_empty(&li->posix_granted) && list_empty(&li->posix_waiting));
    mem_free(li);
}

int lock_list_of(struct translator *me, struct client *client, bool is_posix, struct list **ret_list)
{
    struct locks *s = me->state;

    if (!client) {
        *ret_list = is_posix ? &s->local_posix : &s->local_cluster;
        return 0;
    }
    if (client->is_gone)
        return -ENOTCONN;
    void **slot = client_ctx(client, me);
    if (!*slot) {
        struct lock_client *lc = NEW(struct lock_client);
        if (!lc)
            return -ENOMEM;
        list_init(&lc->cluster);
        list_init(&lc->posix);
        *slot = lc;
    }
    struct lock_client *lc = *slot;
    *ret_list = is_posix ? &lc->posix : &lc->cluster;
    return 0;
}

void lock_client_put(struct translator *me, struct client *client)
{
    if (!client)
        return;
    void **slot = client_ctx(client, me);
    struct lock_client *lc = *slot;
    if (lc && list_empty(&lc->cluster) && list_empty(&lc->posix)) {
        *slot = NULL;
        mem_free(lc);
    }
}

/* ---- the tick ---- */

static void tick(void *arg)
{
    struct translator *me = arg;
    struct locks *s = me->state;

    cluster_tick(me);
    posix_tick(me);
    if (!list_empty(&s->contended) || !list_empty(&s->posix_waiting))
        locks_tick_within(me, 1000);
}

void locks_tick_within(struct translator *me, uint64_t delay_ms)
{
    struct locks *s = me->state;
    uint64_t at_ns = env_deadline_ms(me->env, delay_ms);

    if (s->tick.at_ns && s->tick.at_ns <= at_ns)
        return;
    timer_start(me->env, &s->tick, at_ns, tick, me);
}

/* ---- operations that pass through ---- */

static FIBER int locks_pass(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    int result = child_call(me, 0, call, q, r);
    if (result < 0 || !q->xdata)
        return result;
    int counted = locks_answer_counts(me, q, r);
    if (counted == 0)
        return result;
    reply_done(r);
    return counted;
}

static FIBER int locks_make(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct locks *s = me->state;
    int result = locks_pass(me, call, q, r);

    if (result >= 0 && s->in_grace) {
        struct lock_inode *li = lock_inode_get(me, q->inode);
        if (li)
            li->is_new = true;
    }
    return result;
}

static FIBER int locks_read(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    int result = q->size ? locks_mandatory_check(me, call, q, LOCK_READ, q->offset, q->offset + q->size - 1) : 0;
    return result < 0 ? result : locks_pass(me, call, q, r);
}

static FIBER int locks_write(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    uint64_t size = q->op == OP_FALLOCATE ? q->size : q->data ? q->data->size : 0;
    int result = size ? locks_mandatory_check(me, call, q, LOCK_WRITE, q->offset, q->offset + size - 1) : 0;
    return result < 0 ? result : locks_pass(me, call, q, r);
}

static FIBER int locks_truncate(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    int result = locks_mandatory_check(me, call, q, LOCK_WRITE, q->offset, INT64_MAX);
    return result < 0 ? result : locks_pass(me, call, q, r);
}

static FIBER int locks_open(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct locks *s = me->state;

    if (s->mandatory && (q->flags & O_TRUNC) && locks_has_foreign_posix(me, call, q->inode)) {
        struct request own = *q;
        own.flags |= O_NONBLOCK; /* open(2) never waits for a mandatory lock */
        int result = locks_mandatory_check(me, call, &own, LOCK_WRITE, 0, INT64_MAX);
        if (result < 0)
            return result;
    }
    return locks_pass(me, call, q, r);
}

/* Every close(2) comes by as flush: the owner's POSIX locks on the file go, whichever descriptor they came through. */
static FIBER int locks_flush(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    int result = locks_pass(me, call, q, r);

    posix_drop(me, q->inode, call->client, &call->lk_owner, NULL);
    return result;
}

static FIBER int locks_getxattr(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    int result = 0;

    if (q->text && locks_virtual_getxattr(me, call, q, r, &result))
        return result;
    return locks_pass(me, call, q, r);
}

/* ---- life cycle ---- */

static int locks_any_option(struct translator *me, const char *key, const char *value, struct error *err)
{
    struct locks *s = me->state;
    bool is_on;

    if (parse_bool(value, &is_on) < 0)
        return error_set(err, -EINVAL, "\"%s\" is neither on nor off (option \"%s\"; newer: mandatory-locking %s)",
                         value, key, "off, file, forced or optimal");
    if (is_on)
        s->mandatory = MANDATORY_FORCED;
    return 0;
}

static int locks_init(struct translator *me, struct error *err UNUSED)
{
    struct locks *s = me->state;

    list_init(&s->local_cluster);
    list_init(&s->local_posix);
    list_init(&s->contended);
    list_init(&s->posix_waiting);
    list_init(&s->marked);
    waitq_init(&s->grace);
    return 0;
}

static FIBER int locks_start(struct translator *me, struct error *err UNUSED)
{
    locks_grace_start(me);
    return 0;
}

static void drop_all_of(struct translator *me, struct list *cluster)
{
    while (!list_empty(cluster))
        cluster_lock_drop(me, list_first(cluster, struct cluster_lock, of_client), -ENOTCONN);
}

static void locks_client_gone(struct translator *me, struct client *client)
{
    client_ref(client); /* the last lock may hold the last reference */
    struct lock_client *lc;
    while ((lc = *client_ctx(client, me)) && !list_empty(&lc->cluster))
        cluster_lock_drop(me, list_first(&lc->cluster, struct cluster_lock, of_client), -ENOTCONN);
    posix_client_gone(me, client);
    client_unref(client);
}

static FIBER void locks_stop(struct translator *me)
{
    struct locks *s = me->state;

    locks_grace_end(me);
    drop_all_of(me, &s->local_cluster);
    posix_client_gone(me, NULL);
    timer_stop(&s->tick);
}

static void locks_fini(struct translator *me)
{
    struct locks *s = me->state;

    timer_stop(&s->tick);
    timer_stop(&s->grace_timer);
}

static void locks_fd_release(struct translator *me, struct fd *fd, void *ctx UNUSED)
{
    posix_drop(me, fd->inode, fd->client, NULL, fd);
}

const struct translator_class locks_class = {
    .type = "features/locks",
    .aliases = { "features/posix-locks" },
    .state_size = sizeof(struct locks),
    .options = locks_options,
    .ops = {
        [OP_MKNOD] = locks_make,
        [OP_CREATE] = locks_make,
        [OP_OPEN] = locks_open,
        [OP_READ] = locks_read,
        [OP_WRITE] = locks_write,
        [OP_FALLOCATE] = locks_write,
        [OP_TRUNCATE] = locks_truncate,
        [OP_FLUSH] = locks_flush,
        [OP_GETXATTR] = locks_getxattr,
        [OP_LK] = locks_lk,
        [OP_INODELK] = locks_inodelk,
        [OP_ENTRYLK] = locks_entrylk,
        [OP_GETACTIVELK] = locks_getactivelk,
        [OP_COMPOUND] = default_compound,
    },
    .any = locks_pass,
    .children_min = 1,
    .children_max = 1,
    .uses_inode_ctx = true,
    .uses_fd_ctx = true,
    .uses_client_ctx = true,
    .init = locks_init,
    .start = locks_start,
    .stop = locks_stop,
    .fini = locks_fini,
    .any_option = locks_any_option,
    .inode_forget = locks_inode_forget,
    .fd_release = locks_fd_release,
    .client_gone = locks_client_gone,
    .dump = locks_dump,
};
