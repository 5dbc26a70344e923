/* cluster/replicate/witness_gate.c - what one child of a pair may be asked.
 *
 * Every operation that changes or reads something passes here. While something is under way that relies on a belief,
 * the belief is not given up; and a read during which a child went or came is repeated, because it may have begun with
 * two children and ended with one that nobody vouched for.
 */
#include "cluster/replicate/witness_internal.h"

#define READ_TRIES 5

enum gate_kind { GATE_OPEN, GATE_READ, GATE_CHANGE, GATE_LOCK };

struct gated {
    op_fn op;
    enum gate_kind kind;
    bool is_once; /* not to be repeated: it leaves something at the children */
};

static const struct gated gated[OP_COUNT] = {
    [OP_LOOKUP] = { replicate_lookup, GATE_READ },
    [OP_STAT] = { replicate_stat, GATE_READ },
    [OP_READLINK] = { replicate_read, GATE_READ },
    [OP_ACCESS] = { replicate_read, GATE_READ },
    [OP_OPEN] = { replicate_open, GATE_READ, .is_once = true },
    [OP_OPENDIR] = { replicate_opendir, GATE_READ, .is_once = true },
    [OP_READ] = { replicate_read, GATE_READ },
    [OP_SEEK] = { replicate_read, GATE_READ },
    [OP_STATFS] = { replicate_statfs, GATE_READ },
    [OP_GETXATTR] = { replicate_getxattr, GATE_READ },
    [OP_READDIR] = { replicate_readdir, GATE_READ },
    [OP_READDIRP] = { replicate_readdir, GATE_READ },
    [OP_RCHECKSUM] = { replicate_read, GATE_READ },
    [OP_BLOCKSUMS] = { replicate_read, GATE_READ },
    [OP_GETACTIVELK] = { replicate_read, GATE_READ },
    [OP_MKNOD] = { replicate_make, GATE_CHANGE },
    [OP_MKDIR] = { replicate_make, GATE_CHANGE },
    [OP_SYMLINK] = { replicate_make, GATE_CHANGE },
    [OP_CREATE] = { replicate_make, GATE_CHANGE },
    [OP_LINK] = { replicate_link, GATE_CHANGE },
    [OP_UNLINK] = { replicate_unlink, GATE_CHANGE },
    [OP_RMDIR] = { replicate_rmdir, GATE_CHANGE },
    [OP_RENAME] = { replicate_rename, GATE_CHANGE },
    [OP_WRITE] = { replicate_write, GATE_CHANGE },
    [OP_TRUNCATE] = { replicate_truncate, GATE_CHANGE },
    [OP_FALLOCATE] = { replicate_fallocate, GATE_CHANGE },
    [OP_COPY_RANGE] = { replicate_copy_range, GATE_CHANGE },
    [OP_FSYNC] = { replicate_fsync, GATE_CHANGE },
    [OP_SETATTR] = { replicate_attributes, GATE_CHANGE },
    [OP_SETXATTR] = { replicate_attributes, GATE_CHANGE },
    [OP_REMOVEXATTR] = { replicate_attributes, GATE_CHANGE },
    [OP_XATTROP] = { replicate_attributes, GATE_CHANGE },
    [OP_LK] = { replicate_lk, GATE_LOCK },
    [OP_INODELK] = { replicate_internal_lock, GATE_LOCK },
    [OP_ENTRYLK] = { replicate_internal_lock, GATE_LOCK },
    [OP_LEASE] = { replicate_everywhere, GATE_LOCK },
    [OP_IPC] = { replicate_everywhere, GATE_LOCK },
};

/* ---- in and out ---- */

static FIBER int enter(struct witness *w, struct call *call)
{
    int r = 0;

    while (r == 0 && w->is_recalled)
        r = waitq_wait(&w->changes, &call->scope);
    if (r == 0)
        w->users++;
    return r;
}

static void leave(struct witness *w)
{
    assert(w->users > 0);
    if (--w->users == 0)
        (void)waitq_wake_all(&w->changes, 0);
}

/* One child is up, and nobody is believed to be stale. */
static bool is_unsure(struct translator *me)
{
    const struct replicate *s = replicate_of(me);

    return is_lone(s) && s->quorum.type == QUORUM_WITNESS && children_quorum(me, s->up) < 0;
}

static FIBER int be_sure(struct translator *me)
{
    const struct replicate *s = replicate_of(me);

    return is_unsure(me) ? witness_blame(me, other_child(mask_first(s->up))) : 0;
}

/* ---- reads ---- */

/* The word of the witness for the child that is up. 0 with *ret_granted: give the grant back; 0: no grant is needed. */
static FIBER int ask_leave(struct translator *me, bool *ret_granted)
{
    struct replicate *s = replicate_of(me);

    while (is_unsure(me)) {
        uint32_t up = s->up;
        uint64_t generation = s->generation;
        struct witness_word word;
        int r = witness_ask(me, &word);

        if (r < 0 || (word.blamed & up))
            return -ENOTCONN;
        if (s->generation != generation)
            continue;
        if (word.blamed)
            return witness_blame(me, other_child(mask_first(up)));
        s->witness->grants++;
        s->witness->granted = up;
        *ret_granted = true;
        return 0;
    }
    return 0;
}

static FIBER int read_once(struct translator *me, struct call *call, const struct request *q, struct reply *r,
                           bool *ret_is_stable)
{
    struct replicate *s = replicate_of(me);
    struct witness *w = s->witness;
    bool is_granted = false;
    uint64_t generation;
    int ret = enter(w, call);

    *ret_is_stable = true;
    if (ret < 0)
        return ret;
    ret = ask_leave(me, &is_granted);
    generation = s->generation;
    if (ret == 0) {
        ret = gated[q->op].op(me, call, q, r);
        *ret_is_stable = generation == s->generation;
    }
    if (is_granted)
        w->grants--;
    leave(w);
    return ret;
}

static FIBER int gate_read(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    bool is_stable;

    for (unsigned tries = 1;; tries++) {
        int ret = read_once(me, call, q, r, &is_stable);

        if (is_stable || scope_check(&call->scope, me->env) < 0)
            return ret;
        if (gated[q->op].is_once) {
            /* Open it is; what came along may not be true. */
            if (ret >= 0)
                reply_done(r);
            return ret;
        }
        reply_done(r);
        if (tries == READ_TRIES)
            return -ENOTCONN;
    }
}

/* ---- the rest ---- */

static FIBER int gate_change(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct witness *w = replicate_of(me)->witness;
    int ret = enter(w, call);

    if (ret < 0)
        return ret;
    ret = be_sure(me);
    if (ret == 0)
        ret = gated[q->op].op(me, call, q, r);
    leave(w);
    return ret;
}

/* A lock may wait for long, so nothing waits for it. A lock held on one child only is as good as the belief: if it is
 * given up, whoever holds it can change nothing. */
static FIBER int gate_lock(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    bool gives_back = q->command == LOCK_UNLOCK || (q->op == OP_LK && q->lock && q->lock->type == LOCK_NONE);
    int ret = gives_back ? 0 : be_sure(me);

    return ret < 0 ? ret : gated[q->op].op(me, call, q, r);
}

FIBER int witness_gate(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    const struct gated *g = &gated[q->op];

    if (!replicate_of(me)->witness)
        return g->op(me, call, q, r);
    switch (g->kind) {
    case GATE_READ: return gate_read(me, call, q, r);
    case GATE_CHANGE: return gate_change(me, call, q, r);
    case GATE_LOCK: return gate_lock(me, call, q, r);
    default: return g->op(me, call, q, r);
    }
}
