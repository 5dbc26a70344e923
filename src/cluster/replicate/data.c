/* cluster/replicate/data.c - changes of a file's contents, and making them durable. */
#include "cluster/replicate/replicate_internal.h"
#include <fcntl.h>
#include <linux/falloc.h>

static uint64_t end_of(uint64_t start, uint64_t size_bytes)
{
    return start + size_bytes < start ? UINT64_MAX : start + size_bytes;
}

static bool is_synchronous(const struct request *q)
{
    uint32_t flags = q->flags | (q->fd ? q->fd->flags : 0);

    return (flags & O_DSYNC) != 0;
}

/* Written at the end: a brick that loses it is shorter afterwards, which is seen without a mark. */
static bool is_append(const struct txn *txn)
{
    for_each_child(i, txn->ok & ~replicate_of(txn->me)->arbiter)
    {
        const struct iatt *pre = &txn->answer[i]->pre;

        if (!iatt_is_set(pre) || txn->q->offset < pre->size)
            return false;
    }
    return true;
}

static void wrote(struct txn *txn)
{
    struct session *session = txn->claim[0].session;

    if (txn->q->op == OP_WRITE && (is_synchronous(txn->q) || is_append(txn)))
        return;
    if (txn->q->op != OP_FSYNC)
        session->is_unstable = true;
}

/* Copies that lost appended data with the power are seen by their size, until a change makes the sizes equal: it has to
 * say who is behind. While a session is open whoever lost something has lost the session, too. */
static FIBER uint32_t find_shorter(struct translator *me, struct call *call, struct inode *inode, struct fd *fd)
{
    struct known known;

    if (session_find(me, inode, CHANGE_DATA) || known_get(me, call, inode, fd, false, &known) < 0)
        return 0;
    return known.shorter;
}

static FIBER int change_data(struct translator *me, struct call *call, const struct request *q, struct reply *r,
                             uint64_t start, uint64_t end, bool is_idempotent)
{
    SCOPED(txn_free) struct txn *txn = txn_new(me, call, q, CHANGE_DATA);
    struct claim *claim;
    int ret;

    if (!txn)
        return -ENOMEM;
    claim = txn_claim(txn, q->op == OP_COPY_RANGE ? q->inode2 : q->inode, CHANGE_DATA);
    claim->start = start;
    claim->end = end;
    txn->is_idempotent = is_idempotent;
    txn->done = wrote;
    txn->behind = find_shorter(me, call, claim->inode, q->op == OP_COPY_RANGE ? q->fd2 : q->fd);
    ret = txn_run(txn, r);
    if (ret >= 0 && replicate_of(me)->consistent_metadata) {
        memset(&r->pre, 0, sizeof(r->pre));
        memset(&r->post, 0, sizeof(r->post));
    }
    return ret;
}

FIBER int replicate_write(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    bool appends = q->fd && (q->fd->flags & O_APPEND);

    /* Where an appending write lands, each brick decides by itself: alone in the file, and once only. */
    if (appends)
        return change_data(me, call, q, r, 0, UINT64_MAX, false);
    return change_data(me, call, q, r, q->offset, end_of(q->offset, q->data ? q->data->size : 0), true);
}

FIBER int replicate_truncate(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    return change_data(me, call, q, r, 0, UINT64_MAX, true);
}

FIBER int replicate_fallocate(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    bool shifts = q->flags & (FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE);

    return change_data(me, call, q, r, 0, UINT64_MAX, !shifts);
}

FIBER int replicate_copy_range(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    /* The source is read on each brick by itself, so every brick must have a good copy of it. */
    struct replicate *s = replicate_of(me);
    struct known source;
    int ret = children_admit(me);

    if (ret == 0)
        ret = known_get(me, call, q->inode, q->fd, false, &source);
    if (ret != 0)
        return ret;
    if ((source.data | s->arbiter) != s->all || session_find(me, q->inode, CHANGE_DATA))
        return -EOPNOTSUPP; /* the caller copies by reading and writing instead */
    return change_data(me, call, q, r, q->offset2, end_of(q->offset2, q->size), false);
}

/* ---- fsync ---- */

/* Some child could not make it durable: that is a change it missed, so it needs mark and record like any other. */
static FIBER int fsync_as_change(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    SCOPED(txn_free) struct txn *txn = txn_new(me, call, q, CHANGE_DATA);

    if (!txn)
        return -ENOMEM;
    txn_claim(txn, q->inode, CHANGE_DATA);
    return txn_run(txn, r);
}

static FIBER int fsync_everywhere(struct translator *me, struct call *call, const struct request *q, struct reply *r,
                                  bool *ret_all)
{
    struct replicate *s = replicate_of(me);
    SCOPED(fan_free) struct fan *fan = fan_new(me, call, s->up, q);
    uint32_t ok, from;

    if (!fan)
        return -ENOMEM;
    fan_run(fan);
    ok = fan_ok(fan);
    *ret_all = ok == fan->targets;
    if (witness_cover(me, ok) < 0)
        return fan_worst(fan) ? fan_worst(fan) : -ENOTCONN;
    from = ok & ~s->arbiter ? ok & ~s->arbiter : ok;
    reply_move(r, &fan->list[read_choose(me, call, q->inode, from)].r);
    return 0;
}

FIBER int replicate_fsync(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct session *session = session_find(me, q->inode, CHANGE_DATA);
    uint64_t served = session ? session->served : 0;
    bool was_unstable = session && session->is_unstable, was_volatile = session && session->has_volatile;
    bool reached_all = false;
    int ret = children_admit(me);

    if (ret < 0)
        return ret;
    if (session)
        session->is_unstable = session->has_volatile = false; /* writes from here on set it again */
    ret = fsync_everywhere(me, call, q, r, &reached_all);
    if (reached_all)
        return ret;
    session = session_find(me, q->inode, CHANGE_DATA);
    if (session && session->served >= served) {
        session->is_unstable |= was_unstable;
        session->has_volatile |= was_volatile;
    }
    if (ret < 0)
        return ret;
    reply_done(r);
    return fsync_as_change(me, call, q, r);
}
