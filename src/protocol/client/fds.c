/* What the brick knows of our descriptors: their numbers there, and the posix locks taken through them.
 *
 * A brick forgets both when a connection ends. After the next SETVOLUME they are made again before the brick counts as
 * up: OPEN by gfid as root, then each lock again, without waiting. A lock that somebody else got meanwhile makes the
 * descriptor bad: it answers EBADF from then on, for its user believed that he held the lock all the time. With
 * `strict-locks on` descriptors with locks are bad at once. A descriptor that cannot be opened again and holds no locks
 * goes by its gfid (FD_ANONYMOUS), so that the brick says for each operation what is wrong.
 */
#include "core/mem.h"
#include "protocol/client/client_internal.h"
#include <fcntl.h>

#define REOPEN_AT_ONCE 32

struct held_lock {
    struct list node;
    struct lock_range range;
};

struct remote_fd *remote_fd_of(struct remote *s, struct fd *fd)
{
    return *fd_ctx(fd, s->me);
}

int remote_fd_number(struct remote *s, struct fd *fd, int64_t *ret_number)
{
    const struct remote_fd *f = remote_fd_of(s, fd);

    if (f && f->is_bad)
        return -EBADF;
    *ret_number = f && f->generation == s->generation ? f->number : FD_ANONYMOUS;
    return 0;
}

int remote_fd_opened(struct remote *s, struct fd *fd, int64_t number)
{
    void **slot = fd_ctx(fd, s->me);
    struct remote_fd *f = *slot;

    if (!f) {
        f = NEW(struct remote_fd);
        if (!f) {
            remote_release_number(s, &fd->inode->gfid, number, fd->is_dir);
            return -ENOMEM;
        }
        list_init(&f->locks);
        *slot = f;
    } else if (f->number >= 0 && f->generation == s->generation) {
        remote_release_number(s, &fd->inode->gfid, f->number, fd->is_dir); /* opened twice */
    }
    f->number = number;
    f->generation = s->generation;
    f->is_bad = false;
    return 0;
}

/* ---- closing ---- */

static void release_done(struct rpc_call *c)
{
    rpc_call_done(c);
    mem_free(c);
}

void remote_release_number(struct remote *s, const struct gfid *gfid, int64_t number, bool is_dir)
{
    struct fop_request w = { .proc = is_dir ? FOP_RELEASEDIR : FOP_RELEASE, .gfid = *gfid, .fd = number };
    struct rpc_call *c = mem_alloc(sizeof(*c));
    struct xdr_out o;

    /* Without memory the number stays taken until the connection ends. */
    if (!c || !s->peer || number < 0) {
        mem_free(c);
        return;
    }
    rpc_call_begin(s->peer, c, &o, PROGRAM_FOPS, FOPS_VERSION, w.proc, NULL);
    c->on_done = release_done;
    c->is_lazy = true;
    fop_put_request(&o, &w, false);
    if (rpc_peer_start(s->peer, c, &o) < 0)
        mem_free(c);
}

static void drop_locks(struct remote_fd *f)
{
    struct held_lock *l;

    while ((l = list_first(&f->locks, struct held_lock, node))) {
        list_del(&l->node);
        mem_free(l);
    }
}

void remote_fd_release(struct translator *me, struct fd *fd, void *ctx)
{
    struct remote *s = me->state;
    struct remote_fd *f = ctx;

    if (s->is_up && f->generation == s->generation)
        remote_release_number(s, &fd->inode->gfid, f->number, fd->is_dir);
    drop_locks(f);
    mem_free(f);
}

/* ---- locks held ---- */

static uint64_t end_of(const struct lock_range *l) /* the last byte */
{
    return l->length == 0 || l->start + l->length < l->start ? UINT64_MAX : l->start + l->length - 1;
}

static void set_end(struct lock_range *l, uint64_t last)
{
    l->length = last == UINT64_MAX ? 0 : last - l->start + 1;
}

/* A lock that is not remembered for lack of memory is not taken again after a reconnect: the file is then bad. */
static void hold(struct remote_fd *f, const struct lock_range *range)
{
    struct held_lock *l = NEW(struct held_lock);

    if (!l) {
        f->is_bad = true;
        return;
    }
    l->range = *range;
    list_add_tail(&f->locks, &l->node);
}

/* Takes `cut` out of what is held: a lock of the same owner replaces or splits what it overlaps. */
static void cut_out(struct remote_fd *f, const struct lock_range *cut)
{
    uint64_t cut_last = end_of(cut);
    struct held_lock *l;
    struct list keep = LIST_INIT(keep);

    list_for_each (l, &f->locks, node) {
        struct lock_range *have = &l->range;
        uint64_t last = end_of(have);
        if (!lk_owner_equal(&have->owner, &cut->owner) || last < cut->start || have->start > cut_last)
            continue;
        if (last > cut_last) {
            struct lock_range tail = *have;
            tail.start = cut_last + 1;
            set_end(&tail, last);
            hold(f, &tail); /* behind all others: met again, and found not to overlap */
        }
        if (have->start < cut->start) {
            set_end(have, cut->start - 1);
            continue;
        }
        list_del(&l->node);
        mem_free(l);
    }
}

void remote_fd_locked(struct remote *s, struct fd *fd, const struct lock_range *range, bool is_unlock)
{
    struct remote_fd *f = remote_fd_of(s, fd);

    if (!f || f->generation != s->generation)
        return;
    cut_out(f, range);
    if (!is_unlock && range->type != LOCK_NONE)
        hold(f, range);
}

void remote_fd_flushed(struct remote *s, struct fd *fd, const struct lk_owner *owner)
{
    struct remote_fd *f = remote_fd_of(s, fd);
    struct held_lock *l;

    if (!f)
        return;
    f->is_dirty = false;
    list_for_each (l, &f->locks, node) {
        if (!lk_owner_equal(&l->range.owner, owner))
            continue;
        list_del(&l->node);
        mem_free(l);
    }
}

/* ---- closing without a message ----
 *
 * FLUSH drops the closer's posix locks on the inode and tells what went wrong with its changes. Without either there is
 * nothing to ask: the inode's slot is set once a lock was ever asked for, the descriptor's flag by changes through it. */

static void make_dirty(struct remote *s, struct fd *fd)
{
    struct remote_fd *f = fd ? remote_fd_of(s, fd) : NULL;

    if (f)
        f->is_dirty = true;
}

void remote_fd_note(struct remote *s, const struct request *q)
{
    if (q->op == OP_LK && q->command != LOCK_GET) {
        struct remote_inode *k = remote_inode(s, q->inode, true);

        if (k)
            k->was_locked = true;
    } else if (q->op == OP_WRITE || q->op == OP_TRUNCATE || q->op == OP_FALLOCATE || q->op == OP_COPY_RANGE) {
        make_dirty(s, q->fd);
        make_dirty(s, q->fd2);
    }
}

bool remote_flush_is_idle(struct remote *s, const struct request *q)
{
    const struct remote_fd *f = remote_fd_of(s, q->fd);
    const struct remote_inode *k = remote_inode(s, q->inode, true);

    return f && !f->is_bad && !f->is_dirty && f->generation == s->generation && k && !k->was_locked;
}

/* ---- after a reconnect ---- */

static FIBER int ask(struct remote *s, struct call *who, const struct fop_request *w, struct fop_answer *a)
{
    struct rpc_call c;
    struct xdr_out o;

    rpc_call_begin(s->peer, &c, &o, PROGRAM_FOPS, FOPS_VERSION, w->proc, who);
    fop_put_request(&o, w, false);
    int r = rpc_peer_call(s->peer, &c, &o, &s->attempt);
    if (r == 0)
        r = fop_get_answer(&c.body, w->proc, c.reply.data, false, a);
    if (r == 0)
        r = a->op_ret < 0 ? (a->op_errno > 0 ? -a->op_errno : -EIO) : 0;
    rpc_call_done(&c);
    return r;
}

static bool is_of_connection(int r)
{
    return r == -ENOTCONN || r == -ETIMEDOUT || r == -ECANCELED || r == -ESHUTDOWN || r == -EBADMSG;
}

static FIBER int lock_again(struct remote *s, struct fd *fd, struct remote_fd *f, struct reply *r)
{
    /* A brick of ours that just started serves these before fresh requests (features/locks "reclaim"). */
    SCOPED(dict_unref) struct dict *reclaim = list_empty(&f->locks) ? NULL : dict_new();
    struct held_lock *l;
    int result = 0;
    struct call who;

    if (list_empty(&f->locks))
        return 0;
    if (!reclaim || dict_set_int(reclaim, "mortar.lock-reclaim", 1) < 0)
        return -ENOMEM;
    call_init(&who, s->me->graph);
    list_for_each (l, &f->locks, node) {
        struct fop_request w = { .proc = FOP_LK, .gfid = fd->inode->gfid, .fd = f->number, .command = 1 };
        w.xdata = reclaim;
        struct fop_answer a = { .r = r };
        w.type = w.lock.type = l->range.type;
        w.lock.start = l->range.start;
        w.lock.length = l->range.length;
        w.lock.pid = (uint32_t)l->range.pid;
        w.lock.owner = who.lk_owner = l->range.owner;
        result = ask(s, &who, &w, &a);
        reply_done(r);
        if (result < 0)
            break;
    }
    call_done(&who);
    return result;
}

/* 0, also when the descriptor went bad; an error of the connection ends the try to come up. */
static FIBER int reopen(struct remote *s, struct fd *fd)
{
    struct remote_fd *f = remote_fd_of(s, fd);
    SCOPED(reply_free) struct reply *r = reply_new();
    struct fop_request w = { .proc = fd->is_dir ? FOP_OPENDIR : FOP_OPEN, .gfid = fd->inode->gfid };
    struct fop_answer a = { .r = r };

    if (!r)
        return -ENOMEM;
    if (f->is_bad || (s->has_strict_locks && !list_empty(&f->locks))) {
        f->is_bad = true;
        return 0;
    }
    w.flags =
        fop_flags_to_wire(fd->flags & ~(uint32_t)(O_CREAT | O_EXCL | O_TRUNC | (s->filters_direct ? O_DIRECT : 0)));
    int result = ask(s, NULL, &w, &a);
    reply_done(r);
    if (is_of_connection(result))
        return result;
    f->generation = s->generation;
    f->number = result == 0 ? a.fd : FD_ANONYMOUS;
    if (result == 0)
        result = lock_again(s, fd, f, r);
    if (is_of_connection(result))
        return result;
    if (result < 0 && !list_empty(&f->locks)) {
        TLOG(s->me, LOG_WARNING, "locks-lost", "gfid=%s err=%s", GFID_TEXT(&fd->inode->gfid), errno_name(result));
        f->is_bad = true;
        drop_locks(f);
    }
    return 0;
}

struct fd_list {
    struct remote *s;
    struct fd **list;
    size_t count, room;
    bool failed;
};

static void collect(struct fd *fd, void *arg)
{
    struct fd_list *all = arg;

    if (!remote_fd_of(all->s, fd) || all->failed)
        return;
    if (all->count == all->room) {
        all->room = all->room ? 2 * all->room : 64;
        struct fd **more = mem_realloc(all->list, all->room * sizeof(void *));
        if (!more) {
            all->failed = true;
            return;
        }
        all->list = more;
    }
    all->list[all->count++] = fd_ref(fd);
}

struct reopening {
    struct remote *s;
    struct fd *fd;
};

static FIBER int reopen_one(void *arg)
{
    struct reopening *one = arg;

    return reopen(one->s, one->fd);
}

/* Up to REOPEN_AT_ONCE descriptors at the same time. */
static FIBER int reopen_some(struct remote *s, struct fd **list, size_t count)
{
    struct reopening some[REOPEN_AT_ONCE];
    struct group g;
    int r = 0;

    group_init(&g, s->me->env);
    for (size_t i = 0; i < count && r == 0; i++) {
        some[i] = (struct reopening) { .s = s, .fd = list[i] };
        r = group_run(&g, "reopen", reopen_one, &some[i]);
    }
    group_wait_all(&g);
    if (r == 0 && g.succeeded < count)
        r = -ENOTCONN; /* the connection is of no use: reopen() forgives everything else */
    return r;
}

FIBER int remote_reopen_all(struct remote *s)
{
    struct fd_list all = { .s = s };
    int r;

    fd_each(s->me->graph, collect, &all);
    r = all.failed ? -ENOMEM : 0;
    for (size_t at = 0; at < all.count && r == 0; at += REOPEN_AT_ONCE)
        r = reopen_some(s, all.list + at, MIN(all.count - at, (size_t)REOPEN_AT_ONCE));
    for (size_t i = 0; i < all.count; i++)
        fd_unref(all.list[i]);
    mem_free(all.list);
    return r;
}
