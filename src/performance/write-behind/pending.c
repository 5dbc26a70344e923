/* performance/write-behind/pending.c - the queue of acknowledged writes of each inode. */
#include "performance/write-behind/write_behind_internal.h"
#include <fcntl.h>

#define HOLD_MS          1000        /* how long a small write is held back with trickling-writes off */
#define RETRY_MS         1000        /* between two tries of a failed write */
#define MERGE_START_SIZE (16 * 1024) /* first buffer of a merged write */

static void dispatch(struct dirty_inode *d);

/* ---- inodes and descriptors ---- */

struct dirty_inode *dirty_find(struct translator *me, struct inode *inode)
{
    return inode ? *inode_ctx(inode, me) : NULL;
}

struct dirty_inode *dirty_get(struct translator *me, struct inode *inode)
{
    void **slot = inode_ctx(inode, me);
    if (*slot)
        return *slot;
    struct dirty_inode *d = NEW(struct dirty_inode);
    if (!d)
        return NULL;
    d->me = me;
    d->inode = inode;
    list_init(&d->of_dirty);
    list_init(&d->writes);
    waitq_init(&d->change);
    *slot = d;
    return d;
}

bool dirty_has_writes(const struct dirty_inode *d)
{
    return d && !list_empty(&d->writes);
}

bool dirty_since(const struct dirty_inode *d, uint64_t ends)
{
    return dirty_has_writes(d) || (d && d->last_end > ends);
}

struct descriptor *descriptor_get(struct translator *me, struct fd *fd)
{
    void **slot = fd_ctx(fd, me);
    if (!*slot)
        *slot = NEW(struct descriptor);
    return *slot;
}

int descriptor_take_error(struct translator *me, struct fd *fd)
{
    struct descriptor *f = fd ? *fd_ctx(fd, me) : NULL;
    int err = f ? f->err : 0;

    if (f)
        f->err = 0;
    return err;
}

void background_begin(struct translator *me)
{
    ((struct write_behind *)me->state)->background++;
}

void background_end(struct translator *me)
{
    struct write_behind *s = me->state;

    if (--s->background == 0)
        waitq_wake_all(&s->idle, 0);
}

/* ---- one write ---- */

static void pending_free(struct pending *w)
{
    struct dirty_inode *d = w->of;

    d->last_end = ++((struct write_behind *)d->me->state)->ends;
    if (w->state == PENDING_FAILED)
        d->failed_bytes -= w->size;
    else
        d->queued_bytes -= w->size;
    list_del(&w->of_inode);
    if (list_empty(&d->writes)) {
        list_del(&d->of_dirty);
        timer_stop(&d->hold);
    }
    struct fd *fd = take(w->fd);
    client_unref(w->client);
    call_done(&w->call);
    buf_unref(w->data);
    mem_free(w);
    fd_unref(fd); /* last: the inode may go with it */
}

static struct pending *pending_new(struct dirty_inode *d, const struct call *call, const struct request *q)
{
    struct write_behind *s = d->me->state;
    struct pending *w = NEW(struct pending);
    if (!w)
        return NULL;
    call_copy(&w->call, call);
    w->call.scope.deadline_ns = 0; /* acknowledged: it is done however long it takes */
    if (call_own_groups(&w->call) < 0) {
        mem_free(w);
        return NULL;
    }
    if (call->client)
        w->client = client_ref(call->client);
    w->of = d;
    w->seq = ++s->last_seq;
    w->offset = q->offset;
    w->size = q->data->size;
    w->fd = fd_ref(q->fd);
    w->flags = q->flags;
    w->data = buf_ref(q->data);
    w->is_append = (q->fd->flags | q->flags) & O_APPEND;
    list_init(&w->of_inode);
    if (list_empty(&d->writes))
        list_add_tail(&s->dirty, &d->of_dirty);
    list_add_tail(&d->writes, &w->of_inode);
    d->queued_bytes += w->size;
    return w;
}

static bool same_caller(const struct call *a, const struct call *b)
{
    return a->uid == b->uid && a->gid == b->gid && a->pid == b->pid && a->client == b->client &&
           a->group_count == b->group_count &&
           (a->group_count == 0 || memcmp(a->groups, b->groups, a->group_count * sizeof(*a->groups)) == 0) &&
           lk_owner_equal(&a->lk_owner, &b->lk_owner);
}

/* Room for `more` bytes behind the data of a merged write. */
static int make_room(struct pending *w, uint64_t more, uint64_t max_bytes)
{
    uint64_t needed = w->size + more;

    if (w->is_merged && w->data->capacity >= needed)
        return 0;
    struct buf *b = buf_new(MIN(max_bytes, MAX((uint64_t)MERGE_START_SIZE, needed * 2)));
    if (!b)
        return -ENOMEM;
    memcpy(b->data, w->data->data, w->size);
    b->size = w->size;
    buf_unref(w->data);
    w->data = b;
    w->is_merged = true;
    return 0;
}

/* Adds the request to the last queued write if it continues it. */
static bool merge(struct dirty_inode *d, const struct call *call, const struct request *q)
{
    struct write_behind *s = d->me->state;
    struct pending *w = list_empty(&d->writes) ? NULL : list_entry(d->writes.prev, struct pending, of_inode);
    bool is_append = (q->fd->flags | q->flags) & O_APPEND;
    uint64_t max_bytes = MIN(s->aggregate_bytes, s->window_bytes);

    if (!w || w->state != PENDING_QUEUED || w->fd != q->fd || w->flags != q->flags || w->is_append != is_append ||
        (!is_append && w->offset + w->size != q->offset) || w->size + q->data->size > max_bytes ||
        !same_caller(&w->call, call) || make_room(w, q->data->size, max_bytes) < 0)
        return false;
    memcpy(w->data->data + w->size, q->data->data, q->data->size);
    w->size += q->data->size;
    w->data->size = w->size;
    ++s->last_seq; /* w keeps the number of its first part: who waits for that one waits for all of it */
    w->call.time_flags = call->time_flags;
    w->call.time_s = call->time_s;
    w->call.time_ns = call->time_ns;
    d->queued_bytes += q->data->size;
    s->merged++;
    return true;
}

/* ---- sending ---- */

static void note_failure(struct pending *w, int err)
{
    struct dirty_inode *d = w->of;
    struct write_behind *s = d->me->state;

    s->failed++;
    struct descriptor *f = *fd_ctx(w->fd, d->me); /* there since dirty_add() */
    if (!f->err)
        f->err = err;
    if (!d->mark_error)
        d->mark_error = err;
    TLOG(d->me, LOG_WARNING, "write-failed", "gfid=%s offset=%llu size=%llu err=%s", GFID_TEXT(&d->inode->gfid),
         (unsigned long long)w->offset, (unsigned long long)w->size, errno_name(err));
}

void dirty_retry(struct dirty_inode *d)
{
    struct pending *w;

    list_for_each (w, &d->writes, of_inode)
        if (w->state == PENDING_FAILED) {
            w->state = PENDING_QUEUED;
            d->failed_bytes -= w->size;
            d->queued_bytes += w->size;
        }
    dirty_push(d);
}

static void hold_over(void *arg)
{
    dirty_retry(arg);
}

static bool may_touch_the_same(const struct pending *a, const struct pending *b)
{
    return a->is_append || b->is_append || (a->offset < b->offset + b->size && b->offset < a->offset + a->size);
}

/* Newer data for the same bytes must not be overwritten by a late second try. */
static bool is_superseded(const struct pending *w)
{
    const struct pending *newer;

    list_for_each (newer, &w->of->writes, of_inode)
        if (newer->seq > w->seq && may_touch_the_same(w, newer))
            return true;
    return false;
}

static void drop_superseded(struct dirty_inode *d)
{
    struct pending *w;

    list_for_each (w, &d->writes, of_inode)
        if (w->state == PENDING_FAILED && is_superseded(w))
            pending_free(w);
}

static bool keep_for_retry(struct pending *w)
{
    struct dirty_inode *d = w->of;
    struct write_behind *s = d->me->state;

    if (!s->resyncs_failed || !w->was_synced || d->me->graph->is_stopping ||
        d->failed_bytes + w->size > s->window_bytes || is_superseded(w))
        return false;
    w->state = PENDING_FAILED;
    d->queued_bytes -= w->size;
    d->failed_bytes += w->size;
    if (!d->hold.at_ns)
        timer_start(d->me->env, &d->hold, env_deadline_ms(d->me->env, RETRY_MS), hold_over, d);
    return true;
}

static void end_write(struct pending *w, int result)
{
    struct dirty_inode *d = w->of;
    /* The last descriptor may go with the write, and d with its inode. */
    SCOPED(inode_unref) struct inode *keep = inode_ref(d->inode);

    d->in_flight--;
    if (result < 0)
        note_failure(w, result);
    if (result >= 0 || !keep_for_retry(w))
        pending_free(w);
    waitq_wake_all(&d->change, 0);
    dispatch(d);
}

/* The whole of it, in as many pieces as the child takes. */
static FIBER int write_out(struct pending *w)
{
    struct translator *me = w->of->me;
    SCOPED(reply_free) struct reply *r = reply_new();
    uint64_t done = 0;

    if (!r)
        return -ENOMEM;
    while (done < w->size) {
        SCOPED(buf_unref) struct buf *part = done ? buf_slice(w->data, done, w->size - done) : buf_ref(w->data);
        if (!part)
            return -ENOMEM;
        int n = child_write(me, 0, &w->call, w->fd->inode, w->fd, part, w->is_append ? w->offset : w->offset + done,
                            w->flags, NULL, r);
        reply_done(r);
        if (n < 0)
            return n;
        if (n == 0)
            return -EIO;
        done += (uint64_t)n;
    }
    return 0;
}

static void send_fiber(void *arg)
{
    struct pending *w = arg;
    struct translator *me = w->of->me;

    end_write(w, write_out(w));
    background_end(me);
}

/* May `w` go although what is before it in the queue has not ended? */
static bool is_in_order(const struct dirty_inode *d, const struct pending *w)
{
    const struct write_behind *s = d->me->state;
    const struct pending *before;

    list_for_each (before, &d->writes, of_inode) {
        if (before == w)
            return true;
        if (before->state == PENDING_FAILED)
            continue;
        if (s->is_strict_order || may_touch_the_same(before, w))
            return false;
    }
    return true;
}

static bool is_worth_sending(const struct dirty_inode *d, const struct pending *w)
{
    const struct write_behind *s = d->me->state;

    return d->hurried || w->size >= s->aggregate_bytes || (s->trickles && d->in_flight == 0) ||
           d->queued_bytes >= s->window_bytes || d->me->graph->is_stopping;
}

static void send(struct pending *w)
{
    struct dirty_inode *d = w->of;
    struct write_behind *s = d->me->state;

    w->state = PENDING_IN_FLIGHT;
    d->in_flight++;
    s->sent++;
    background_begin(d->me);
    int r = fiber_spawn(d->me->env, "write-behind", send_fiber, w);
    if (r < 0) {
        /* No memory for a fiber: as if the child had failed. */
        d->in_flight--;
        note_failure(w, r);
        pending_free(w);
        waitq_wake_all(&d->change, 0);
        background_end(d->me);
    }
}

static void dispatch(struct dirty_inode *d)
{
    SCOPED(inode_unref) struct inode *keep = inode_ref(d->inode);
    struct pending *w;

    list_for_each (w, &d->writes, of_inode)
        if (w->state == PENDING_QUEUED && is_worth_sending(d, w) && is_in_order(d, w))
            send(w);
    if (!list_empty(&d->writes) && !d->in_flight && !d->hold.at_ns)
        timer_start(d->me->env, &d->hold, env_deadline_ms(d->me->env, HOLD_MS), hold_over, d);
}

void dirty_push(struct dirty_inode *d)
{
    d->hurried++;
    dispatch(d);
    d->hurried--;
}

/* ---- waiting ---- */

static bool depends(const struct dirty_inode *d, struct dependence on)
{
    const struct pending *w;

    list_for_each (w, &d->writes, of_inode) {
        if (w->seq > on.seq)
            break;
        if (w->state != PENDING_FAILED && (w->is_append || w->offset + w->size > on.offset))
            return true;
    }
    return false;
}

FIBER int dirty_wait(struct dirty_inode *d, struct scope *scope, struct dependence on)
{
    int r = 0;

    if (!dirty_has_writes(d))
        return 0;
    SCOPED(inode_unref) struct inode *keep = inode_ref(d->inode);
    d->hurried++;
    dispatch(d);
    while (r >= 0 && depends(d, on))
        r = waitq_wait(&d->change, scope);
    d->hurried--;
    return r < 0 ? r : 0;
}

/* Until `size` more bytes fit into the window. A write larger than the window goes alone. */
static FIBER int wait_for_room(struct dirty_inode *d, struct scope *scope, uint64_t size)
{
    const struct write_behind *s = d->me->state;
    int r = 0;

    if (d->queued_bytes == 0 || d->queued_bytes + size <= s->window_bytes)
        return 0;
    d->hurried++;
    dispatch(d);
    while (r >= 0 && d->queued_bytes && d->queued_bytes + size > s->window_bytes)
        r = waitq_wait(&d->change, scope);
    d->hurried--;
    return r < 0 ? r : 0;
}

FIBER int dirty_add(struct dirty_inode *d, struct call *call, const struct request *q)
{
    struct write_behind *s = d->me->state;
    int r = descriptor_get(d->me, q->fd) ? wait_for_room(d, &call->scope, q->data->size) : -ENOMEM;
    if (r == 0)
        r = descriptor_take_error(d->me, q->fd);
    if (r < 0)
        return r;
    if (!merge(d, call, q) && !pending_new(d, call, q))
        return -ENOMEM;
    s->writes++;
    if (d->failed_bytes)
        drop_superseded(d);
    dispatch(d);
    return (int)q->data->size;
}

void dirty_mark_synced(struct dirty_inode *d)
{
    struct pending *w;

    list_for_each (w, &d->writes, of_inode)
        w->was_synced = true;
}

void dirty_drop_failed(struct dirty_inode *d)
{
    SCOPED(inode_unref) struct inode *keep = inode_ref(d->inode);
    struct pending *w;

    list_for_each (w, &d->writes, of_inode)
        if (w->state == PENDING_FAILED)
            pending_free(w);
}
