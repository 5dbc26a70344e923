/* cluster/replicate/session_open.c - taking the lock and setting the dirty mark on all live children.
 *
 * One compound per child, all at once: lock (without waiting), mark, and perhaps the first change. If somebody else
 * holds the lock on any child, everything is given back and the locks are taken one child after the other, waiting, in
 * child order: whoever holds an earlier child's lock gets the later ones, so two clients never wait for each other.
 * A change that went out with the first attempt may then be on some children already; its mark stays on those until
 * the session that repeats it closes, or for heal.
 */
#include "cluster/replicate/replicate_internal.h"

enum { STEP_LOCK, STEP_MARK, STEP_RIDE };

#define OPEN_TRIES 3

void session_lock_request(const struct session *session, enum lock_command command, struct lock_range *range,
                          struct request *q)
{
    memset(q, 0, sizeof(*q));
    memset(range, 0, sizeof(*range));
    range->type = LOCK_WRITE;
    q->op = session->change == CHANGE_ENTRY ? OP_ENTRYLK : OP_INODELK;
    q->inode = session->inode;
    q->fd = session->change == CHANGE_ENTRY ? NULL : session->fd;
    q->text = session->me->name;
    q->command = command;
    if (session->change == CHANGE_METADATA)
        range->start = METADATA_LOCK_START;
    q->lock = range;
}

static void mark_request(const struct session *session, struct dict *delta, struct request *q)
{
    memset(q, 0, sizeof(*q));
    q->op = OP_XATTROP;
    q->inode = session->inode;
    q->fd = session->fd;
    q->flags = XATTROP_ADD32;
    q->xattrs = delta;
}

static void note_epochs(struct session *session)
{
    struct replicate *s = replicate_of(session->me);

    session->generation = s->generation;
    session->tried = s->up;
    for_each_child(i, s->all) session->epoch[i] = s->child[i].epoch;
}

/* The child carries our mark and has told its counters. */
static void note_mark(struct session *session, unsigned child, const struct dict *counters, struct accusations *a)
{
    struct replicate *s = replicate_of(session->me);
    int32_t dirty = counters_dirty(s, session->change, counters);
    uint32_t ours = session->marks[child] + 1;

    /* Heal may have cleared a mark that an earlier attempt left. */
    if (dirty > 0 && (uint32_t)dirty < ours)
        ours = (uint32_t)dirty;
    session->marks[child] = ours;
    session->marked |= bit(child);
    counters_read(s, session->change, child, counters, a);
}

/* Enough children are locked and marked: who is good? */
static void settle_good(struct session *session, const struct accusations *a)
{
    uint32_t accused = accusations_accused(a);

    session->good = session->marked & ~accused;
    if (accused)
        known_bad(session->me, session->inode, session->change, accused);
}

struct attempt {
    uint32_t refused; /* somebody else holds the lock there */
    uint32_t rode;    /* the first change was begun there */
    int error;
};

static void evaluate(struct session *session, struct fan *fan, bool has_ride, struct accusations *a,
                     struct attempt *ret)
{
    uint32_t mark_step = session->is_marked_session ? STEP_MARK : 0;
    uint32_t ride_step = mark_step + 1;

    for_each_child(i, fan->targets)
    {
        struct reply *mark = NULL;
        int r = fan_step(fan, i, STEP_LOCK, NULL);

        if (r == 0) {
            session->locked |= bit(i);
            r = mark_step ? fan_step(fan, i, mark_step, &mark) : 0;
            if (r >= 0 && mark)
                note_mark(session, i, mark->xattrs, a);
            if (r >= 0 && has_ride && fan_step(fan, i, ride_step, NULL) != -ENOTCONN)
                ret->rode |= bit(i);
        } else if (r == -EAGAIN) {
            ret->refused |= bit(i);
        }
        if (r < 0)
            ret->error = result_worse(ret->error, r);
    }
    /* Without an answer at all the change may have begun too. */
    if (has_ride)
        ret->rode |= fan->targets & ~session->locked & ~ret->refused;
}

static int add_ride(struct session *session, struct fan *fan, const struct ride *ride)
{
    for_each_child(i, fan->targets)
    {
        fan->list[i].steps[STEP_RIDE] = *ride->q;
        ride_adapt(session->me, i, &fan->list[i].steps[STEP_RIDE]);
    }
    return 0;
}

static void fill(struct session *session, struct fan *fan, struct dict *delta, struct lock_range *range)
{
    for_each_child(i, fan->targets)
    {
        session_lock_request(session, LOCK_TRY, range, &fan->list[i].steps[STEP_LOCK]);
        if (delta)
            mark_request(session, delta, &fan->list[i].steps[STEP_MARK]);
    }
}

static FIBER int give_back(struct session *session, int error)
{
    uint32_t locked = session->locked;

    session->locked = 0;
    session_release(session, locked, session->marked & ~session->rode, 0);
    session->marked = 0;
    for_each_child(i, locked & ~session->rode) session->marks[i] = 0;
    return error;
}

static FIBER int try_all(struct session *session, struct call *call, struct ride *ride)
{
    struct translator *me = session->me;
    struct replicate *s = replicate_of(me);
    const struct request nothing = { 0 };
    SCOPED(dict_unref) struct dict *delta = NULL;
    SCOPED(fan_free) struct fan *fan = NULL;
    struct lock_range range;
    struct accusations a;
    struct attempt result = { 0 };

    note_epochs(session);
    if (witness_cover(me, session->tried) < 0)
        return -ENOTCONN;
    accusations_init(&a, s->child_count);
    if (session->is_marked_session)
        delta = counters_delta(s, session->change, 1, 0);
    fan = fan_new(me, call, session->tried, &nothing);
    if (!fan || (session->is_marked_session && !delta) || fan_steps(fan, 1 + !!delta + !!ride) < 0)
        return -ENOMEM;
    fill(session, fan, delta, &range);
    if (ride)
        add_ride(session, fan, ride);
    fan_run(fan);
    evaluate(session, fan, ride != NULL, &a, &result);
    if (result.refused || witness_cover(me, session_targets(session)) < 0) {
        session->rode = result.rode;
        return give_back(session, result.refused ? -EAGAIN : result.error ? result.error : -ENOTCONN);
    }
    settle_good(session, &a);
    if (ride)
        ride->fan = take(fan);
    return 0;
}

FIBER int session_open_try(struct session *session, struct call *call, struct ride *ride)
{
    struct translator *me = session->me;
    struct call own;
    int r;

    /* With a change on board the call says who asks for it; locks belong to us, whoever asks. */
    if (ride)
        call_copy(&own, call);
    else
        call_init(&own, me->graph);
    own.scope.deadline_ns = 0;
    own.lk_owner = session->owner;
    own.client = NULL;
    own.round_trips = call->round_trips;
    r = try_all(session, &own, ride);
    call_merge_round_trips(call, &own);
    call_done(&own);
    return r;
}

/* ---- with waiting ---- */

/* One child after the other. Returns the first error that is not about a single child. */
static FIBER int lock_in_order(struct session *session, int *ret_worst)
{
    struct translator *me = session->me;
    struct lock_range range;
    struct request q;

    session_lock_request(session, LOCK_WAIT, &range, &q);
    for_each_child(i, session->tried)
    {
        struct replicate *s = replicate_of(me);
        int r;

        if (s->child[i].epoch != session->epoch[i])
            continue;
        r = child_call(me, i, &session->lock_call, &q, NULL);
        if (r == 0 && s->child[i].epoch == session->epoch[i])
            session->locked |= bit(i);
        else if (r == -ECANCELED)
            return r;
        else if (r < 0)
            *ret_worst = result_worse(*ret_worst, r);
    }
    return 0;
}

static FIBER int mark_locked(struct session *session, int *ret_worst)
{
    struct translator *me = session->me;
    struct replicate *s = replicate_of(me);
    SCOPED(dict_unref) struct dict *delta = counters_delta(s, session->change, 1, 0);
    SCOPED(fan_free) struct fan *fan = NULL;
    struct accusations a;
    struct request q;

    if (!delta)
        return -ENOMEM;
    mark_request(session, delta, &q);
    fan = fan_new(me, &session->lock_call, session_holders(session, session->locked), &q);
    if (!fan)
        return -ENOMEM;
    fan_run(fan);
    accusations_init(&a, s->child_count);
    for_each_child(i, fan_ok(fan)) note_mark(session, i, fan->list[i].r.xattrs, &a);
    if (fan_worst(fan) < 0)
        *ret_worst = result_worse(*ret_worst, fan_worst(fan));
    settle_good(session, &a);
    return 0;
}

static FIBER int wait_once(struct session *session)
{
    struct translator *me = session->me;
    int worst = 0, r;

    note_epochs(session);
    if (witness_cover(me, session->tried) < 0)
        return -ENOTCONN;
    r = lock_in_order(session, &worst);
    if (r == 0 && session->is_marked_session)
        r = mark_locked(session, &worst);
    if (r == 0 && witness_cover(me, session_targets(session)) < 0)
        r = worst ? worst : -ENOTCONN;
    return r < 0 ? give_back(session, r == -EAGAIN ? -EDEADLK : r) : 0;
}

FIBER int session_open_waiting(struct session *session)
{
    struct replicate *s = replicate_of(session->me);

    for (int tries = 1;; tries++) {
        int r = wait_once(session);

        /* A child that came up meanwhile would miss every change of this session: include it. */
        if (r == 0 && tries < OPEN_TRIES && (s->up & ~session->tried)) {
            give_back(session, 0);
            continue;
        }
        return r;
    }
}
