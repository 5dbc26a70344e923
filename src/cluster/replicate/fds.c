/* cluster/replicate/fds.c - descriptors: opening everywhere, reopening on a child that came back, closing. */
#include "cluster/replicate/replicate_internal.h"
#include "core/mem.h"
#include <fcntl.h>

struct fd_state *fd_state(struct translator *me, struct fd *fd)
{
    void **slot = fd_ctx(fd, me);
    struct fd_state *state = *slot;

    if (state)
        return state;
    state = *slot = NEW(struct fd_state);
    if (state) {
        state->listing_child = -1;
        waitq_init(&state->waiting);
    }
    return state;
}

void fd_state_release(struct translator *me, struct fd *fd, void *ctx)
{
    held_lock_fd_released(me, fd);
    mem_free(ctx);
}

/* A second descriptor on the child would take the place of the first, which is closed then, and its locks with it. */
static FIBER int wait_for_other(struct fd_state *state, unsigned child, struct call *call)
{
    int r = 0;

    while (r >= 0 && (state->opening & bit(child)))
        r = waitq_wait(&state->waiting, &call->scope);
    return r;
}

FIBER int fd_ensure(struct translator *me, unsigned child, struct call *call, struct fd *fd)
{
    struct replicate *s = replicate_of(me);
    struct fd_state *state = fd_state(me, fd);
    struct request q = { .op = fd->is_dir ? OP_OPENDIR : OP_OPEN, .inode = fd->inode, .fd = fd };
    struct call own;
    int r;

    if (!state)
        return -ENOMEM;
    if (state->opened & bit(child))
        return 0;
    r = wait_for_other(state, child, call);
    if (r < 0)
        return r;
    if (state->opened & bit(child))
        return 0;
    if (state->generation != s->generation)
        state->refused = 0;
    state->generation = s->generation;
    if (state->refused & bit(child))
        return -EBADF;
    q.flags = fd->flags & ~(uint32_t)(O_CREAT | O_EXCL | O_TRUNC);
    call_copy(&own, call);
    state->opening |= bit(child);
    r = child_call(me, child, &own, &q, NULL);
    state->opening &= ~bit(child);
    waitq_wake_all(&state->waiting, 0);
    call_done(&own);
    if (r >= 0)
        state->opened |= bit(child);
    else
        state->refused |= bit(child);
    return r;
}

/* Asks all live children; enough must succeed. */
static FIBER int open_everywhere(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct replicate *s = replicate_of(me);
    struct fd_state *state = fd_state(me, q->fd);
    SCOPED(fan_free) struct fan *fan = fan_new(me, call, s->up, q);
    uint32_t ok;

    if (!fan || !state)
        return -ENOMEM;
    fan_run(fan);
    ok = fan_ok(fan);
    state->opened |= ok;
    if (witness_may_tell(me, ok) < 0)
        return fan_worst(fan) ? fan_worst(fan) : -ENOTCONN;
    reply_move(r, &fan->list[mask_first(ok)].r);
    return counters_hide(s, q->xdata, &r->xdata);
}

/* Opens, and asks for attributes and counters in the same message: whoever opens a file wants to know how it looks now,
 * and what was believed of its copies is renewed. `reader` is asked for the contents as well, if they are few. */
static FIBER struct fan *open_and_stat(struct translator *me, struct call *call, const struct request *q,
                                       uint32_t reader)
{
    struct replicate *s = replicate_of(me);
    const struct request nothing = { 0 };
    struct fan *fan = fan_new(me, call, s->up, &nothing);

    if (!fan || fan_steps(fan, 3) < 0) {
        fan_free(fan);
        return NULL;
    }
    for_each_child(i, fan->targets)
    {
        struct fan_child *c = &fan->list[i];

        c->steps[0] = *q;
        c->steps[0].size = 0;
        c->steps[1] = (struct request) { .op = OP_STAT, .inode = q->inode, .xdata = s->ask };
        c->steps[2] = (struct request) { .op = OP_READ, .inode = q->inode, .size = q->size, .flags = O_NOATIME };
        c->q.step_count = reader & bit(i) ? 3 : 2;
    }
    fan_run(fan);
    return fan;
}

/* The child whose contents may go along with the answer; none if it is not known to be good, or if access times are sent:
 * who opens a file has not read it yet, and a read that is answered from these contents would not count. */
static uint32_t choose_reader(struct translator *me, struct call *call, const struct request *q,
                              const struct known *known)
{
    const struct replicate *s = replicate_of(me);
    uint32_t from = known->data & known->metadata & s->up;

    if ((call->time_flags & TIME_ATIME) || q->size == 0 || !from || q->inode->type != S_IFREG)
        return 0;
    return bit(read_choose(me, call, q->inode, from));
}

/* Makes the answer to `step` the whole answer of the child. */
static void keep_step(struct fan_child *c, uint32_t step)
{
    struct reply *steps = take(c->r.steps);
    uint32_t count = c->r.step_count;

    reply_done(&c->r);
    c->ret = steps[step].ret;
    reply_move(&c->r, &steps[step]);
    for (uint32_t i = 0; i < count; i++)
        reply_done(&steps[i]);
    mem_free(steps);
}

static FIBER int open_told(struct translator *me, struct call *call, const struct request *q,
                           const struct known *before, struct reply *r)
{
    struct replicate *s = replicate_of(me);
    struct fd_state *state = fd_state(me, q->fd);
    struct testimony t = { .generation = s->generation, .asked_at = s->clock };
    uint32_t reader = choose_reader(me, call, q, before);
    SCOPED(fan_free) struct fan *fan = state ? open_and_stat(me, call, q, reader) : NULL;
    SCOPED(buf_unref) struct buf *contents = NULL;
    struct known known;
    uint32_t ok = 0, from;
    int worst = 0;

    if (!fan)
        return -ENOMEM;
    for_each_child(i, fan->targets)
    {
        int opened = fan_step(fan, i, 0, NULL);

        if (opened >= 0)
            ok |= bit(i);
        else
            worst = result_worse(worst, opened);
        if (fan_step(fan, i, 1, NULL) < 0)
            continue;
        t.ok |= bit(i);
        struct reply *read;
        if ((reader & bit(i)) && fan_step(fan, i, 2, &read) >= 0)
            contents = take(read->data);
        keep_step(&fan->list[i], 1);
    }
    state->opened |= ok;
    if (witness_may_tell(me, ok) < 0)
        return worst ? worst : -ENOTCONN;
    t.fan = fan;
    if (witness_may_tell(me, t.ok) < 0)
        return 0; /* open, and the caller asks for attributes if it wants them */
    known_judge(me, q->inode, &t, &known);
    from = known.data & known.metadata & t.ok;
    if (!from)
        return 0;
    r->stat = fan->list[read_choose(me, call, q->inode, from)].r.stat;
    if ((reader & from) && contents && contents->size == r->stat.size)
        r->data = take(contents);
    return 0;
}

FIBER int replicate_open(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct request own = *q;
    struct known known;
    int ret = children_admit(me);

    if (ret == 0)
        ret = known_get(me, call, q->inode, NULL, false, &known);
    if (ret == 0 && !(known.data && known.metadata))
        ret = known_get(me, call, q->inode, NULL, true, &known);
    if (ret != 0)
        return ret;
    if (q->inode->type != S_IFDIR && !(known.data && known.metadata))
        return known_none(me, call, q->inode, &known, known.data ? "metadata" : "data");
    own.flags &= ~(uint32_t)O_TRUNC;
    if (!(q->flags & O_TRUNC) && !q->xdata)
        return open_told(me, call, &own, &known, r);
    ret = open_everywhere(me, call, &own, r);
    if (ret < 0 || !(q->flags & O_TRUNC))
        return ret;
    /* Emptying the file is a change like any other. */
    reply_done(r);
    return replicate_truncate(me, call,
                              &(struct request) { .op = OP_TRUNCATE, .inode = q->inode, .fd = q->fd, .offset = 0 }, r);
}

FIBER int replicate_opendir(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    int ret = children_admit(me);

    return ret < 0 ? ret : open_everywhere(me, call, q, r);
}

/* All children; one success is enough, since what matters (locks given back) is gone with the others' connections. */
static FIBER int close_everywhere(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct replicate *s = replicate_of(me);
    struct fd_state *state = fd_state(me, q->fd);
    SCOPED(fan_free) struct fan *fan = NULL;

    if (!state)
        return -ENOMEM;
    if (!(state->opened & s->up))
        return 0;
    fan = fan_new(me, call, state->opened & s->up, q);
    if (!fan)
        return -ENOMEM;
    fan_run(fan);
    if (!fan_ok(fan))
        return fan_worst(fan);
    reply_move(r, &fan->list[mask_first(fan_ok(fan))].r);
    return 0;
}

FIBER int replicate_flush(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct inode_state *state = inode_state(me, q->inode);
    int ret = 0;

    /* All that children do at a flush is to drop the owner's POSIX locks; and errors of writes came with the writes. */
    if (!state || state->was_locked) {
        ret = close_everywhere(me, call, q, r);
        held_lock_flushed(me, q->inode, call->client, &call->lk_owner);
    }
    struct session *session = session_find(me, q->inode, CHANGE_DATA);
    struct session *attributes = session_find(me, q->inode, CHANGE_METADATA);
    bool holds_fd =
        (session && session->fd && session->fd != q->fd) || (attributes && attributes->fd && attributes->fd != q->fd);

    /* The sessions themselves may hold one. */
    if (q->inode->open_fds <= (holds_fd ? 2u : 1u)) {
        if (session)
            session_released(session);
        if (attributes)
            session_released(attributes);
    }
    return ret;
}

FIBER int replicate_fsyncdir(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    return close_everywhere(me, call, q, r);
}
