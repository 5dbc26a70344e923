/* cluster/replicate/applock.c - locks that applications and upper layers ask for, and what else goes everywhere.
 *
 * POSIX locks are taken one child after the other in child order, so that two clients never hold each one half. Locks
 * between translators are first tried everywhere at once.
 */
#include "cluster/replicate/replicate_internal.h"

/* ---- fcntl locks ---- */

/* Children that granted what another refused get back what the owner held before. */
static FIBER void undo_lk(struct translator *me, struct call *call, const struct request *q, uint32_t held)
{
    struct lock_range range = *q->lock;
    struct request unlock = *q;
    struct call own;

    range.type = LOCK_NONE;
    unlock.command = LOCK_UNLOCK;
    unlock.lock = &range;
    call_copy(&own, call); /* also when the caller has given up */
    own.scope.deadline_ns = 0;
    for_each_child(i, held) /* a child that fails has lost the lock with the connection */
    {
        if (q->fd)
            (void)held_lock_restore(me, i, &own, q->fd, q->lock);
        else
            (void)child_call(me, i, &own, &unlock, NULL);
    }
    call_done(&own);
}

static FIBER int lock_in_order(struct translator *me, struct call *call, const struct request *q, struct reply *r,
                               uint32_t *ret_held)
{
    struct replicate *s = replicate_of(me);
    uint32_t up_at_start = s->up;
    int worst = 0;

    for_each_child(i, up_at_start)
    {
        int ret;

        reply_done(r);
        ret = ask_child(me, i, call, q, r);
        if (ret >= 0) {
            *ret_held |= bit(i);
            continue;
        }
        worst = result_worse(worst, ret);
        /* Refused on one is refused; a caller that gave up holds nothing. */
        if (ret == -EAGAIN || ret == -EACCES || scope_check(&call->scope, me->env) < 0)
            return ret;
    }
    return witness_cover(me, *ret_held) < 0 ? (worst ? worst : -ENOTCONN) : 0;
}

static FIBER int unlock_everywhere(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    SCOPED(fan_free) struct fan *fan = fan_new(me, call, replicate_of(me)->up, q);

    if (!fan)
        return -ENOMEM;
    fan_run(fan);
    if (!fan_ok(fan))
        return fan_worst(fan) ? fan_worst(fan) : -ENOTCONN;
    reply_move(r, &fan->list[mask_first(fan_ok(fan))].r);
    return 0;
}

FIBER int replicate_lk(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    uint32_t held = 0;
    int ret = children_admit(me);

    if (!q->lock)
        return -EINVAL;
    struct inode_state *state = q->command == LOCK_GET ? NULL : inode_state(me, q->inode);
    if (state)
        state->was_locked = true;
    else if (q->command != LOCK_GET)
        return -ENOMEM;
    if (q->command == LOCK_UNLOCK || (q->lock->type == LOCK_NONE && q->command != LOCK_GET)) {
        held_lock_note(me, call, q);
        return unlock_everywhere(me, call, q, r);
    }
    if (ret < 0)
        return ret;
    if (q->command == LOCK_GET)
        return ask_child(me, mask_first(replicate_of(me)->up), call, q, r);
    ret = lock_in_order(me, call, q, r, &held);
    if (ret < 0) {
        reply_done(r);
        undo_lk(me, call, q, held);
        return ret;
    }
    held_lock_note(me, call, q);
    held_locks_replay(me, replicate_of(me)->up & ~held); /* those that came up meanwhile, or failed */
    return ret;
}

/* ---- inodelk and entrylk from above ---- */

static FIBER void undo_internal(struct translator *me, struct call *call, const struct request *q, uint32_t held)
{
    struct request unlock = *q;
    struct fan *fan;
    struct call own;

    unlock.command = LOCK_UNLOCK;
    call_copy(&own, call);
    own.scope.deadline_ns = 0;
    fan = fan_new(me, &own, held, &unlock);
    if (fan)
        fan_run(fan);
    fan_free(fan);
    call_done(&own);
}

/* 0, or -EAGAIN when somebody else holds it somewhere (nothing is held then), or the error. */
static FIBER int try_everywhere(struct translator *me, struct call *call, const struct request *q)
{
    struct request try = *q;
    SCOPED(fan_free) struct fan *fan = NULL;
    uint32_t held;

    try.command = LOCK_TRY;
    fan = fan_new(me, call, replicate_of(me)->up, &try);
    if (!fan)
        return -ENOMEM;
    fan_run(fan);
    held = fan_ok(fan);
    if (!fan_failed_with(fan, -EAGAIN) && witness_cover(me, held) == 0)
        return 0;
    undo_internal(me, call, q, held);
    if (fan_failed_with(fan, -EAGAIN))
        return -EAGAIN;
    return fan_worst(fan) ? fan_worst(fan) : -ENOTCONN;
}

FIBER int replicate_internal_lock(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    uint32_t held = 0;
    int ret;

    if (q->command == LOCK_UNLOCK)
        return unlock_everywhere(me, call, q, r);
    ret = children_admit(me);
    if (ret < 0)
        return ret;
    ret = try_everywhere(me, call, q);
    if (ret != -EAGAIN)
        return ret;
    ret = lock_in_order(me, call, q, r, &held);
    if (ret < 0)
        undo_internal(me, call, q, held);
    return ret;
}

/* ---- the rest ---- */

/* ipc, lease: every live child hears of it, one success is enough for the answer, quorum for a lease. */
FIBER int replicate_everywhere(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    SCOPED(fan_free) struct fan *fan = NULL;
    int ret = children_admit(me);

    if (ret < 0)
        return ret;
    fan = fan_new(me, call, replicate_of(me)->up, q);
    if (!fan)
        return -ENOMEM;
    fan_run(fan);
    if (children_quorum(me, fan_ok(fan)) < 0)
        return fan_worst(fan) ? fan_worst(fan) : -ENOTCONN;
    reply_move(r, &fan->list[mask_first(fan_ok(fan))].r);
    return r->ret;
}

FIBER int replicate_statfs(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct replicate *s = replicate_of(me);
    SCOPED(fan_free) struct fan *fan = NULL;
    int least = -1, ret = children_admit(me);

    if (ret < 0)
        return ret;
    fan = fan_new(me, call, s->up & ~s->arbiter, q);
    if (!fan)
        return -ENOMEM;
    fan_run(fan);
    for_each_child(i, fan_ok(fan))
    {
        const struct fs_stat *st = fan->list[i].r.statfs;

        if (!st)
            continue;
        if (least < 0 || st->bavail * MAX(st->frsize, UINT64_C(1)) <
                             fan->list[least].r.statfs->bavail * MAX(fan->list[least].r.statfs->frsize, UINT64_C(1)))
            least = (int)i;
    }
    if (least < 0)
        return fan_worst(fan) ? fan_worst(fan) : -ENOTCONN;
    reply_move(r, &fan->list[least].r);
    return 0;
}
