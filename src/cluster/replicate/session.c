/* cluster/replicate/session.c - a lock and a dirty mark, held over many operations.
 *
 *   CLOSED -> OPENING (first change joins) -> OPEN -> CLOSING (idle, contended, children changed) -> CLOSED
 *
 * A session object exists while somebody refers to it: every joined or waiting change, and the session itself while it
 * is not CLOSED. It closes only without claims, so a change that joined keeps lock and mark until it leaves.
 *
 * Giving way: a session that another client waits for stops admitting changes HOLD_CONTENDED_MS after it was opened,
 * but has admitted at least those that waited for it to open: both clients progress. Since notices of contention are
 * sent once and can be lost, a busy session gives way every SESSION_AGE_MAX_MS in any case; the lock queue of the brick
 * is fair, so whoever waited gets its turn.
 */
#include "cluster/replicate/replicate_internal.h"
#include "core/mem.h"
#include "graph/graph.h"

#define MS 1000000ull

static void on_timer(void *arg);
static void start_closing(struct session *session);

/* ---- our fibers ---- */

int replicate_spawn(struct translator *me, const char *name, fiber_fn fn, void *arg)
{
    int r = fiber_spawn(me->env, name, fn, arg);

    if (r == 0)
        replicate_of(me)->fibers++;
    return r;
}

void replicate_fiber_ended(struct translator *me)
{
    struct replicate *s = replicate_of(me);

    assert(s->fibers > 0);
    s->fibers--;
    waitq_wake_all(&s->settled, 0);
}

/* ---- objects ---- */

static struct session *session_get(struct translator *me, struct inode *inode, enum change change)
{
    struct replicate *s = replicate_of(me);
    struct inode_state *state = inode_state(me, inode);
    struct session *session;

    if (!state)
        return NULL;
    session = state->session[change];
    if (session) {
        session->refs++;
        return session;
    }
    session = NEW(struct session);
    if (!session)
        return NULL;
    session->me = me;
    session->inode = inode_ref(inode);
    session->change = change;
    session->refs = 1;
    waitq_init(&session->waiting);
    list_init(&session->claims);
    list_add_tail(&s->sessions, &session->of_all);
    s->session_count++;
    state->session[change] = session;
    return session;
}

void session_unref(struct session *session)
{
    struct replicate *s = replicate_of(session->me);

    assert(session->refs > 0);
    if (--session->refs > 0)
        return;
    assert(session->state == SESSION_CLOSED && list_empty(&session->claims));
    inode_state(session->me, session->inode)->session[session->change] = NULL;
    timer_stop(&session->timer);
    list_del(&session->of_all);
    s->session_count--;
    waitq_wake_all(&s->settled, 0);
    inode_unref(session->inode);
    mem_free(session);
}

struct session *session_find(struct translator *me, struct inode *inode, enum change change)
{
    struct inode_state *state = inode_state(me, inode);
    struct session *session = state ? state->session[change] : NULL;

    return session && session->state == SESSION_OPEN ? session : NULL;
}

bool session_holds(const struct session *session, unsigned child)
{
    struct replicate *s = replicate_of(session->me);

    return (session->locked & s->up & bit(child)) && s->child[child].epoch == session->epoch[child];
}

uint32_t session_holders(const struct session *session, uint32_t children)
{
    uint32_t held = 0;

    for_each_child(i, children)
    {
        if (session_holds(session, i))
            held |= bit(i);
    }
    return held;
}

uint32_t session_targets(const struct session *session)
{
    return session_holders(session, session->is_marked_session ? session->marked : session->locked);
}

/* ---- when to close ---- */

/* Others may wait for this directory without our hearing of it: GlusterFS's bricks send notices about inode locks, but
 * none about locks on all names. */
static bool is_unwarned(const struct session *session)
{
    const struct replicate *s = replicate_of(session->me);

    return session->change == CHANGE_ENTRY && (children_lack(s, session->locked) & BRICK_LACKS_NOTICES);
}

static uint64_t idle_limit_ns(const struct session *session)
{
    struct replicate *s = replicate_of(session->me);

    uint64_t limit_ms = (uint64_t)s->post_op_delay_s * 1000;

    if (session->contended_ns)
        return IDLE_CONTENDED_MS * MS;
    if (!s->eager_lock)
        return 0;
    if (is_unwarned(session) && s->post_op_delay_s)
        return MUTE_IDLE_MAX_MS * MS;
    return (session->is_released ? MIN(limit_ms, (uint64_t)IDLE_RELEASED_MS) : limit_ms) * MS;
}

/* No further change may join: what is under way ends, then it closes. */
static bool is_over(const struct session *session)
{
    struct replicate *s = replicate_of(session->me);
    uint64_t age_ns = env_now_ns(session->me->env) - session->opened_ns;

    if (session->generation != s->generation || session->keep_dirty || s->is_stopping)
        return true;
    if (session->served == 0)
        return false;
    return !s->eager_lock || age_ns >= (is_unwarned(session) ? MUTE_AGE_MAX_MS : SESSION_AGE_MAX_MS) * MS ||
           (session->contended_ns && age_ns >= HOLD_CONTENDED_MS * MS);
}

static void closed(struct session *session, int result)
{
    session->state = SESSION_CLOSED;
    timer_stop(&session->timer);
    if (session->fd)
        fd_unref(take(session->fd));
    waitq_wake_all(&session->waiting, result);
    session_unref(session);
}

static FIBER void closing_fiber(void *arg)
{
    struct session *session = arg;
    struct translator *me = session->me;

    session_close_now(session);
    closed(session, 0);
    replicate_fiber_ended(me);
}

static void start_closing(struct session *session)
{
    assert(session->state == SESSION_OPEN && list_empty(&session->claims));
    timer_stop(&session->timer);
    session->state = SESSION_CLOSING;
    if (replicate_spawn(session->me, "session-close", closing_fiber, session) == 0)
        return;
    session->state = SESSION_OPEN; /* no memory now: again in a while */
    timer_start(session->me->env, &session->timer, env_deadline_ms(session->me->env, 100), on_timer, session);
}

static void arm(struct session *session)
{
    uint64_t at_ns = session->used_ns + idle_limit_ns(session);

    /* Files changed one after the other: their sessions end together, in few messages. */
    if (session->change != CHANGE_ENTRY && !session->contended_ns)
        at_ns += END_TOGETHER_MS * MS - at_ns % (END_TOGETHER_MS * MS);
    /* A timer that fires too early only looks again, so a session in use does not move it each time. */
    if (!session->timer.at_ns || session->timer.at_ns > at_ns)
        timer_start(session->me->env, &session->timer, at_ns, on_timer, session);
}

static void on_timer(void *arg)
{
    struct session *session = arg;

    if (session->state != SESSION_OPEN || !list_empty(&session->claims))
        return;
    if (is_over(session) || env_now_ns(session->me->env) >= session->used_ns + idle_limit_ns(session))
        start_closing(session);
    else
        arm(session);
}

void session_want_close(struct session *session)
{
    if (session->state != SESSION_OPEN)
        return;
    if (list_empty(&session->claims))
        start_closing(session);
    else
        session->generation = 0; /* equals none: is_over */
}

void session_released(struct session *session)
{
    session->is_released = true;
    if (session->state == SESSION_OPEN && list_empty(&session->claims))
        arm(session);
}

static void close_longest_idle(struct replicate *s, const struct session *except)
{
    struct session *session;

    list_for_each (session, &s->sessions, of_all) {
        if (session != except && session->state == SESSION_OPEN && list_empty(&session->claims)) {
            start_closing(session);
            return;
        }
    }
}

/* ---- opening ---- */

static void opened(struct session *session)
{
    struct replicate *s = replicate_of(session->me);

    session->state = SESSION_OPEN;
    session->opened_ns = session->used_ns = env_now_ns(session->me->env);
    s->sessions_opened++;
    waitq_wake_all(&session->waiting, 0);
    if (s->session_count > SESSIONS_MAX)
        close_longest_idle(s, session);
}

static FIBER void opening_fiber(void *arg)
{
    struct session *session = arg;
    struct translator *me = session->me;
    int r;

    call_init(&session->lock_call, me->graph);
    session->lock_call.lk_owner = session->owner;
    session->is_waiting = true;
    r = replicate_of(me)->is_stopping ? -ENOTCONN : session_open_waiting(session);
    session->is_waiting = false;
    call_done(&session->lock_call);
    if (r < 0) {
        closed(session, r);
    } else {
        opened(session);
        arm(session);
    }
    replicate_fiber_ended(me);
}

/* The ranges of an inode's data and attributes overlap, so its two sessions would keep each other out. Locks of one
 * owner do not; but they overtake those who wait, so where somebody does we queue up like everybody. */
static void choose_owner(struct session *session)
{
    const struct inode_state *state = inode_state(session->me, session->inode);
    const struct session *other = session->change == CHANGE_DATA       ? state->session[CHANGE_METADATA]
                                  : session->change == CHANGE_METADATA ? state->session[CHANGE_DATA]
                                                                       : NULL;

    if (other && other->state != SESSION_CLOSED && !other->contended_ns)
        session->owner = other->owner;
    else
        lk_owner_from_u64(&session->owner, ++replicate_of(session->me)->next_owner);
}

static void begin_opening(struct session *session, const struct claim *claim, struct fd *fd)
{
    choose_owner(session);
    session->state = SESSION_OPENING;
    session->refs++;
    session->is_marked_session = claim->wants_mark;
    session->fd = fd && claim->wants_mark ? fd_ref(fd) : NULL;
    session->tried = session->locked = session->marked = session->good = 0;
    session->missed = session->blamed = session->recording = session->rode = 0;
    session->is_released = false;
    memset(session->marks, 0, sizeof(session->marks));
    session->keep_dirty = session->is_unstable = session->has_volatile = false;
    session->contended_ns = session->served = 0;
}

/* 1: open, and the claim has joined; 0: being opened in the background; else the error. */
static FIBER int open_as_first(struct session *session, struct call *call, struct claim *claim, struct fd *fd,
                               struct ride *ride)
{
    struct replicate *s = replicate_of(session->me);
    int r;

    begin_opening(session, claim, fd);
    r = session_open_try(session, call, ride);
    if (r == 0) {
        opened(session);
        list_add_tail(&session->claims, &claim->of_session);
        session->served++;
        return 1;
    }
    if (r == -EAGAIN) {
        /* Waiting for the locks belongs to the session: a caller that gives up must not leave a lock behind. */
        s->lock_retries++;
        inode_state(session->me, session->inode)->contended_ns = env_now_ns(session->me->env);
        r = replicate_spawn(session->me, "session-open", opening_fiber, session);
        if (r == 0)
            return 0;
    }
    closed(session, r);
    return r;
}

/* ---- claims ---- */

static bool names_meet(const struct claim *a, const struct claim *b)
{
    const char *of_a[2] = { a->name, a->name2 }, *of_b[2] = { b->name, b->name2 };

    if (!a->name || !b->name)
        return true;
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 2; j++) {
            if (of_a[i] && of_b[j] && strcmp(of_a[i], of_b[j]) == 0)
                return true;
        }
    }
    return false;
}

static bool claims_meet(const struct claim *a, const struct claim *b)
{
    switch (a->change) {
    case CHANGE_ENTRY: return names_meet(a, b);
    case CHANGE_DATA: return a->start < b->end && b->start < a->end;
    default: return true;
    }
}

static bool must_wait(const struct session *session, const struct claim *claim)
{
    struct claim *earlier;

    list_for_each (earlier, &session->claims, of_session) {
        if (earlier == claim)
            return false;
        if (claims_meet(earlier, claim))
            return true;
    }
    return false;
}

static void drop_claim(struct session *session, struct claim *claim)
{
    list_del(&claim->of_session);
    session->used_ns = env_now_ns(session->me->env);
    waitq_wake_all(&session->waiting, 0);
    if (session->state != SESSION_OPEN || !list_empty(&session->claims))
        return;
    list_del(&session->of_all);
    list_add_tail(&replicate_of(session->me)->sessions, &session->of_all);
    if (is_over(session) || idle_limit_ns(session) == 0)
        start_closing(session);
    else
        arm(session);
}

static bool fits(const struct session *session, const struct claim *claim)
{
    return !is_over(session) && (session->is_marked_session || !claim->wants_mark);
}

/* 0: the claim is in and first; -EAGAIN: the session does not do (any more), look again; else the error. */
static FIBER int claim_in(struct session *session, struct call *call, struct claim *claim, struct fd *fd)
{
    int r = 0;

    list_add_tail(&session->claims, &claim->of_session);
    while (r == 0 && must_wait(session, claim))
        r = waitq_wait(&session->waiting, &call->scope);
    if (r == 0 && fits(session, claim)) {
        session->served++;
        session->is_released = false;
        if (!session->fd && fd && claim->wants_mark)
            session->fd = fd_ref(fd);
        return 0;
    }
    drop_claim(session, claim);
    return r == 0 ? -EAGAIN : r;
}

static FIBER int join(struct session *session, struct call *call, struct claim *claim, struct fd *fd, struct ride *ride)
{
    int r = 0;

    while (r == 0 || r == -EAGAIN) {
        r = 0;
        if (session->state == SESSION_CLOSED) {
            if (replicate_of(session->me)->is_stopping)
                return -ENOTCONN;
            r = open_as_first(session, call, claim, fd, ride);
            if (r == 1)
                return 0;
        } else if (session->state == SESSION_OPEN && fits(session, claim)) {
            r = claim_in(session, call, claim, fd);
            if (r == 0)
                return 0;
        } else {
            if (session->state == SESSION_OPEN)
                session_want_close(session);
            r = waitq_wait(&session->waiting, &call->scope);
        }
    }
    return r;
}

FIBER int session_join(struct translator *me, struct call *call, struct claim *claim, struct fd *fd, struct ride *ride)
{
    struct session *session = session_get(me, claim->inode, claim->change);
    int r;

    if (!session)
        return -ENOMEM;
    list_init(&claim->of_session);
    if (claim->only_if_open) {
        r = session->state == SESSION_OPEN && fits(session, claim) ? claim_in(session, call, claim, fd) : -EAGAIN;
        if (r == -EAGAIN) {
            session_unref(session);
            return 0;
        }
    } else {
        r = join(session, call, claim, fd, ride);
    }
    if (r < 0) {
        /* Given up while the locks are being waited for: what rode with the first attempt is not repeated. */
        if (ride && session->rode)
            session->keep_dirty = true;
        session_unref(session);
        return r;
    }
    claim->session = session;
    return 0;
}

void session_leave(struct claim *claim)
{
    struct session *session = take(claim->session);

    drop_claim(session, claim);
    session_unref(session);
}

/* ---- events ---- */

void session_contended(struct translator *me, const struct event *event)
{
    enum change change = event->kind == EVENT_ENTRYLK_CONTENTION     ? CHANGE_ENTRY
                         : event->range.start == METADATA_LOCK_START ? CHANGE_METADATA
                                                                     : CHANGE_DATA;
    SCOPED(inode_unref) struct inode *inode = inode_table_find(me->graph, &event->gfid);
    struct inode_state *state = inode ? inode_state(me, inode) : NULL;
    struct session *session = state ? state->session[change] : NULL;

    if (!session || session->state == SESSION_CLOSED || session->state == SESSION_CLOSING)
        return;
    replicate_of(me)->sessions_contended++;
    state->contended_ns = env_now_ns(me->env);
    if (!session->contended_ns)
        session->contended_ns = state->contended_ns;
    if (session->state == SESSION_OPEN && list_empty(&session->claims))
        arm(session);
}

void sessions_children_changed(struct translator *me)
{
    struct replicate *s = replicate_of(me);
    struct session *session;

    list_for_each (session, &s->sessions, of_all) {
        if (session->state == SESSION_OPEN && list_empty(&session->claims))
            start_closing(session);
    }
}

FIBER void sessions_stop(struct translator *me)
{
    struct replicate *s = replicate_of(me);
    struct session *session;

    s->is_stopping = true;
    heals_stop(me);
    sessions_children_changed(me);
    list_for_each (session, &s->sessions, of_all) {
        if (session->is_waiting)
            scope_cancel(&session->lock_call.scope);
    }
    while (s->session_count > 0 || s->fibers > 0)
        (void)waitq_wait(&s->settled, NULL); /* woken whenever one of them ends */
}
