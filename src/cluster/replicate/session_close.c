/* cluster/replicate/session_close.c - taking marks off and unlocking, in one compound per child.
 *
 * Before a mark goes, what was done under it must be on disk everywhere: a brick that loses power after that has no
 * record that it lost something. Children that missed a change were recorded as such before the change was
 * answered; their own mark stays, for heal to take off.
 */
#include "cluster/replicate/replicate_internal.h"

#define STOPPING_MS 10000 /* an unmount waits no longer for a brick that does not answer; its mark stays */

struct settling {
    struct session *session;
    struct call *call;
    uint32_t children, unmark, blamed;
    struct lock_range range;
};

/* Marks may have been raised more than once: then the child needs a dict of its own. */
static struct dict *delta_for(const struct settling *t, unsigned child, struct dict *common)
{
    uint32_t marks = t->session->marks[child];

    if (marks == 1)
        return dict_ref(common);
    return counters_delta(replicate_of(t->session->me), t->session->change, -(int32_t)marks, t->blamed);
}

static int fill(const struct settling *t, struct fan *fan)
{
    struct replicate *s = replicate_of(t->session->me);
    SCOPED(dict_unref) struct dict *common = counters_delta(s, t->session->change, -1, t->blamed);
    struct request unlock;
    struct lock_range *range = (struct lock_range *)&t->range;

    if (!common || fan_steps(fan, 2) < 0)
        return -ENOMEM;
    session_lock_request(t->session, LOCK_UNLOCK, range, &unlock);
    for_each_child(i, fan->targets)
    {
        struct fan_child *c = &fan->list[i];
        struct request *step = c->steps;

        c->q.step_count = 1;
        if (t->unmark & bit(i)) {
            c->own_xattrs = delta_for(t, i, common);
            if (!c->own_xattrs)
                return -ENOMEM;
            step->op = OP_XATTROP;
            step->inode = t->session->inode;
            step->fd = t->session->fd;
            step->flags = XATTROP_ADD32;
            step->xattrs = c->own_xattrs;
            step++;
            c->q.step_count = 2;
        }
        *step = unlock;
    }
    return 0;
}

static FIBER void unlock_only(struct settling *t, uint32_t children)
{
    SCOPED(fan_free) struct fan *fan = NULL;
    struct request unlock;

    session_lock_request(t->session, LOCK_UNLOCK, &t->range, &unlock);
    fan = fan_new(t->session->me, t->call, children, &unlock);
    if (fan)
        fan_run(fan);
}

static FIBER void settle(struct settling *t)
{
    const struct request nothing = { 0 };
    SCOPED(fan_free) struct fan *fan = fan_new(t->session->me, t->call, t->children, &nothing);
    uint32_t still_locked = 0;

    if (!fan || fill(t, fan) < 0) {
        unlock_only(t, t->children);
        return;
    }
    fan_run(fan);
    /* A compound ends at its first failure, and an inode that is gone has no mark to take off. */
    for_each_child(i, fan->targets)
    {
        if (fan->list[i].ret < 0 && fan->list[i].r.step_count < fan->list[i].q.step_count)
            still_locked |= bit(i);
    }
    still_locked &= replicate_of(t->session->me)->up;
    if (still_locked)
        unlock_only(t, still_locked);
}

FIBER void session_release(struct session *session, uint32_t children, uint32_t unmark, uint32_t blamed)
{
    struct replicate *s = replicate_of(session->me);
    struct settling t = { .session = session, .unmark = unmark, .blamed = blamed };
    struct call call;

    for_each_child(i, children & s->up)
    {
        if (s->child[i].epoch == session->epoch[i])
            t.children |= bit(i);
    }
    if (!t.children)
        return;
    call_init(&call, session->me->graph);
    call.lk_owner = session->owner;
    call.is_lazy = !session->contended_ns;
    if (s->is_stopping)
        call.scope.deadline_ns = env_deadline_ms(session->me->env, STOPPING_MS);
    t.call = &call;
    settle(&t);
    call_done(&call);
}

/* GlusterFS bricks sync directories only by descriptor; their names survive as they do there. */
static uint32_t cannot_sync(const struct fan *fan)
{
    return fan_failed_with(fan, -EISDIR) | fan_failed_with(fan, -EINVAL) | fan_failed_with(fan, -EBADF) |
           fan_failed_with(fan, -EOPNOTSUPP);
}

/* What was written is on disk on all of `children` afterwards, except on those returned. */
static FIBER uint32_t sync_data(struct session *session, uint32_t children)
{
    const struct request q = { .op = OP_FSYNC, .inode = session->inode, .fd = session->fd };
    struct fan *fan;
    struct call call;
    uint32_t lost = children;

    call_init(&call, session->me->graph);
    if (replicate_of(session->me)->is_stopping)
        call.scope.deadline_ns = env_deadline_ms(session->me->env, STOPPING_MS);
    fan = fan_new(session->me, &call, children, &q);
    if (fan) {
        fan_run(fan);
        lost = children & ~fan_ok(fan) & ~cannot_sync(fan);
        /* The file is gone everywhere: nothing to keep. */
        if (lost == children && fan_failed_with(fan, fan_worst(fan)) == children &&
            (fan_worst(fan) == -ESTALE || fan_worst(fan) == -ENOENT))
            lost = 0;
    }
    fan_free(fan);
    call_done(&call);
    return lost;
}

/* Children whose connection broke under the session: a brick that lost power has lost what it had not yet written to
 * disk, and possibly the mark with it. */
static uint32_t dropped_since(const struct session *session)
{
    return session->has_volatile ? session->marked & ~session->missed & ~session_holders(session, session->marked) : 0;
}

/* May these be left as the only ones that are not blamed? Not the arbiter alone: it has no data to heal from. */
static bool is_base(const struct session *session, uint32_t children)
{
    uint32_t without = session->change == CHANGE_DATA ? replicate_of(session->me)->arbiter : 0;

    return (children & session->good & ~without) != 0;
}

FIBER void session_close_now(struct session *session)
{
    struct replicate *s = replicate_of(session->me);
    uint32_t locked = session_holders(session, session->locked);
    uint32_t lost = dropped_since(session);
    uint32_t unmark = session->marked & locked & ~session->missed;

    if (session->keep_dirty || !session->is_marked_session)
        unmark = 0;
    if (unmark && s->ensure_durability &&
        (session->is_unstable || (session->change == CHANGE_ENTRY && session->has_volatile))) {
        uint32_t not_synced = sync_data(session, unmark);

        unmark &= ~not_synced;
        lost |= not_synced;
    }
    if (lost && !session->keep_dirty)
        known_bad(session->me, session->inode, session->change, lost);
    if (lost && !session->keep_dirty && (!is_base(session, unmark) || witness_cover(session->me, unmark) < 0)) {
        /* Too few to say that the others are behind: until that can be said, the marks tell that copies may differ. */
        debt_add(session, lost);
        unmark = lost = 0;
    }
    session->locked = 0;
    session_release(session, locked, unmark, unmark ? lost : 0);
}
