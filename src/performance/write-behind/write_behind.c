/* performance/write-behind - see write_behind.h. This file: options, operations, life cycle. */
#include "performance/write-behind/write_behind_internal.h"
#include <fcntl.h>
#include <inttypes.h>

static const struct option write_behind_options[] = {
    OPT_SIZE("cache-size", struct write_behind, window_bytes, .aliases = { "window-size" }, .def = "1MB", .min = 524288,
             .max = 1073741824, .live = true, .help = "bytes of acknowledged but unwritten data per file"),
    OPT_SIZE("aggregate-size", struct write_behind, aggregate_bytes, .def = "128KB", .max = 1073741824, .live = true,
             .help = "small writes next to each other are merged up to this size; 0 = not"),
    OPT_BOOL("flush-behind", struct write_behind, flushes_behind, .def = "on", .live = true,
             .help = "closing a new file does not wait for its data; off = it does, and reports errors"),
    OPT_BOOL("trickling-writes", struct write_behind, trickles, .aliases = { "enable-trickling-writes" }, .def = "on",
             .live = true, .help = "a small write goes at once when none is under way"),
    OPT_BOOL("strict-O_DIRECT", struct write_behind, is_strict_o_direct, .def = "off", .live = true,
             .help = "writes of descriptors opened with O_DIRECT are not acknowledged early"),
    OPT_BOOL("strict-write-ordering", struct write_behind, is_strict_order, .def = "off", .live = true,
             .help = "no write of a file overtakes another"),
    OPT_BOOL("resync-failed-syncs-after-fsync", struct write_behind, resyncs_failed, .def = "off", .live = true,
             .help = "writes that failed under an fsync are tried again until flush"),
    OPT_BOOL("pass-through", struct write_behind, passes_through, .def = "false", .live = true,
             .help = "acknowledge nothing early"),
    OPT_IGNORED("write-behind", .help = "leave the translator out, or use pass-through"),
    OPT_IGNORED("block-size", .help = "use aggregate-size"),
    OPT_IGNORED("disable-for-first-nbytes", .help = "the first write goes at once anyway"),
    OPT_IGNORED("enable-O_SYNC", .help = "O_SYNC is always obeyed"),
    OPT_END,
};

static struct dependence on_all_so_far(struct translator *me)
{
    return (struct dependence) { .seq = ((struct write_behind *)me->state)->last_seq };
}

/* ---- writes ---- */

static bool may_acknowledge_early(const struct write_behind *s, const struct request *q)
{
    if (s->passes_through || !q->fd || !q->data || q->data->size == 0 || dict_count(q->xdata) > 0)
        return false;
    uint32_t flags = q->fd->flags | q->flags;
    if ((q->fd->flags & O_ACCMODE) == O_RDONLY || (flags & (O_SYNC | O_DSYNC)) ||
        (s->is_strict_o_direct && (flags & O_DIRECT)))
        return false;
    return q->offset <= INT64_MAX && q->data->size <= INT64_MAX - q->offset;
}

static FIBER int write_behind_write(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    bool is_early = may_acknowledge_early(me->state, q);
    struct dirty_inode *d = is_early ? dirty_get(me, q->inode) : dirty_find(me, q->inode);

    if (is_early && d)
        return dirty_add(d, call, q);
    if (d) {
        int waited = dirty_wait(d, &call->scope, on_all_so_far(me));
        if (waited == 0)
            waited = descriptor_take_error(me, q->fd);
        if (waited < 0)
            return waited;
    }
    return child_call(me, 0, call, q, r);
}

/* ---- operations that depend on what was written ---- */

static FIBER int wait_for_all(struct translator *me, struct call *call, struct inode *inode)
{
    struct dirty_inode *d = dirty_find(me, inode);
    return d ? dirty_wait(d, &call->scope, on_all_so_far(me)) : 0;
}

/* stat, setattr, truncate, fallocate, seek, copy_range, link, rchecksum, blocksums: after all writes to their inodes. */
static FIBER int write_behind_after(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    int waited = wait_for_all(me, call, q->inode);
    if (waited == 0)
        waited = wait_for_all(me, call, q->inode2);
    return waited < 0 ? waited : child_call(me, 0, call, q, r);
}

static FIBER int write_behind_open(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    const struct write_behind *s = me->state;
    uint64_t ends = s->ends;
    int result = q->flags & O_TRUNC ? wait_for_all(me, call, q->inode) : 0;

    if (result >= 0)
        result = child_call(me, 0, call, q, r);
    if (result >= 0 && dirty_since(dirty_find(me, q->inode), ends))
        reply_done(r); /* older than what was acknowledged: who wants to know asks */
    return result;
}

static FIBER int write_behind_create(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    int result = child_call(me, 0, call, q, r);
    struct descriptor *f = result >= 0 ? descriptor_get(me, q->fd) : NULL;

    if (f)
        f->is_maker = true; /* without memory: its close waits */
    return result;
}

/* Only what ends behind the read's start can change its answer (or where the file ends). */
static FIBER int write_behind_read(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct dirty_inode *d = dirty_find(me, q->inode);

    if (d) {
        struct dependence on = on_all_so_far(me);
        on.offset = q->offset;
        int waited = dirty_wait(d, &call->scope, on);
        if (waited < 0)
            return waited;
    }
    return child_call(me, 0, call, q, r);
}

/* A name may lead to an inode the caller did not name: then the answer is asked for again after its writes. */
static FIBER int write_behind_lookup(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    int result = wait_for_all(me, call, q->inode);
    if (result < 0)
        return result;
    struct write_behind *s = me->state;
    struct dependence on = on_all_so_far(me);
    uint64_t ends = s->ends;
    result = child_call(me, 0, call, q, r);
    if (result < 0 || (list_empty(&s->dirty) && s->ends == ends))
        return result;
    SCOPED(inode_unref) struct inode *found = inode_table_find(me->graph, &r->stat.gfid);
    if (!found || found == q->inode || !dirty_since(dirty_find(me, found), ends))
        return result;
    reply_done(r);
    result = dirty_wait(dirty_find(me, found), &call->scope, on);
    return result < 0 ? result : child_call(me, 0, call, q, r);
}

/* Attributes of dirty inodes are not known here: mode 0 says "look it up". */
static FIBER int write_behind_readdirp(struct translator *me, struct call *call, const struct request *q,
                                       struct reply *r)
{
    struct write_behind *s = me->state;
    uint64_t ends = s->ends;
    int result = child_call(me, 0, call, q, r);

    if (result <= 0 || !r->entries || (list_empty(&s->dirty) && s->ends == ends))
        return result;
    for (uint32_t i = 0; i < r->entries->count; i++) {
        struct dir_entry *e = &r->entries->list[i];
        if (!iatt_is_set(&e->stat))
            continue;
        SCOPED(inode_unref) struct inode *inode = inode_table_find(me->graph, &e->stat.gfid);
        if (inode && dirty_since(dirty_find(me, inode), ends))
            memset(&e->stat, 0, sizeof(e->stat));
    }
    return result;
}

/* Without the inode every dirty one may be meant. */
static FIBER int wait_for_everybody(struct translator *me, struct call *call)
{
    struct write_behind *s = me->state;
    struct dependence on = on_all_so_far(me);
    struct dirty_inode *d;

again:
    list_for_each (d, &s->dirty, of_dirty) {
        const struct pending *oldest = list_first(&d->writes, struct pending, of_inode);
        if (!oldest || oldest->seq > on.seq || oldest->state == PENDING_FAILED)
            continue;
        int r = dirty_wait(d, &call->scope, on);
        if (r < 0)
            return r;
        goto again; /* the list has changed */
    }
    return 0;
}

static FIBER int write_behind_rename(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    int waited = q->inode ? wait_for_all(me, call, q->inode) : wait_for_everybody(me, call);
    return waited < 0 ? waited : child_call(me, 0, call, q, r);
}

/* A replicating client counts and unlocks here: what it believes written must be, or it must hear of the failure. */
static FIBER int write_behind_xattrop(struct translator *me, struct call *call, const struct request *q,
                                      struct reply *r)
{
    int waited = wait_for_all(me, call, q->inode);
    struct dirty_inode *d = dirty_find(me, q->inode);

    if (waited == 0 && d && d->mark_error) {
        waited = d->mark_error;
        d->mark_error = 0;
    }
    return waited < 0 ? waited : child_call(me, 0, call, q, r);
}

static FIBER int write_behind_inodelk(struct translator *me, struct call *call, const struct request *q,
                                      struct reply *r)
{
    if (q->command == LOCK_UNLOCK || (q->lock && q->lock->type == LOCK_NONE)) {
        int waited = wait_for_all(me, call, q->inode);
        if (waited < 0)
            return waited;
    }
    return child_call(me, 0, call, q, r);
}

/* Whoever gets a lock next must find what was written under this one, also to other files: programs lock one file and
 * change another, in another process if they are shell scripts. */
static FIBER int write_behind_lk(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    if (q->command != LOCK_GET) {
        struct dirty_inode *d = dirty_get(me, q->inode);
        if (!d)
            return -ENOMEM;
        d->has_locks = true;
        int waited = wait_for_everybody(me, call);
        if (waited < 0)
            return waited;
    }
    return child_call(me, 0, call, q, r);
}

/* ---- fsync and flush ---- */

static FIBER int write_behind_fsync(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct dirty_inode *d = dirty_find(me, q->inode);
    int failed = 0;

    if (d) {
        dirty_retry(d);
        dirty_mark_synced(d);
        failed = dirty_wait(d, &call->scope, on_all_so_far(me));
        if (failed < 0)
            return failed;
        failed = descriptor_take_error(me, q->fd);
    }
    int result = child_call(me, 0, call, q, r);
    return failed < 0 ? failed : result;
}

struct late_flush {
    struct translator *me;
    struct call call;
    struct client *client;
    struct fd *fd;
    struct dependence on;
};

static void late_flush_free(struct late_flush *f)
{
    call_done(&f->call);
    client_unref(f->client);
    fd_unref(f->fd);
    mem_free(f);
}

static void late_flush_fiber(void *arg)
{
    struct late_flush *f = arg;
    struct translator *me = f->me;
    struct request q = { .op = OP_FLUSH, .inode = f->fd->inode, .fd = f->fd };
    struct dirty_inode *d = dirty_find(me, q.inode);

    if (d) {
        (void)dirty_wait(d, NULL, f->on); /* its writes end by themselves */
        dirty_drop_failed(d);
    }
    (void)child_call(me, 0, &f->call, &q, NULL); /* was answered already: that is what flush-behind means */
    late_flush_free(f);
    background_end(me);
}

static int flush_later(struct translator *me, const struct call *call, struct fd *fd)
{
    struct late_flush *f = NEW(struct late_flush);
    if (!f)
        return -ENOMEM;
    f->me = me;
    call_copy(&f->call, call);
    f->call.scope.deadline_ns = 0;
    f->client = call->client ? client_ref(call->client) : NULL;
    f->fd = fd_ref(fd);
    f->on = on_all_so_far(me);
    int r = call_own_groups(&f->call);
    if (r == 0)
        r = fiber_spawn(me->env, "flush-behind", late_flush_fiber, f);
    if (r < 0) {
        late_flush_free(f);
        return r;
    }
    background_begin(me);
    return 0;
}

/* Files that others may have open or look at are complete when they are closed: the next reader, on whatever mount,
 * finds what was written. Somebody who finds a new file early must expect to find it incomplete. */
static bool may_flush_later(struct translator *me, const struct dirty_inode *d, const struct request *q)
{
    const struct write_behind *s = me->state;
    const struct descriptor *f = *fd_ctx(q->fd, me);

    return s->flushes_behind && dirty_has_writes(d) && !d->has_locks && f && f->is_maker &&
           !(q->fd->flags & O_APPEND) && dict_count(q->xdata) == 0;
}

static FIBER int write_behind_flush(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct dirty_inode *d = dirty_find(me, q->inode);
    int failed = 0;

    if (d && d->has_locks) { /* as write_behind_lk: the flush may drop locks */
        failed = wait_for_everybody(me, call);
        dirty_drop_failed(d);
    } else if (d) {
        if (may_flush_later(me, d, q) && flush_later(me, call, q->fd) == 0)
            return descriptor_take_error(me, q->fd);
        failed = dirty_wait(d, &call->scope, on_all_so_far(me));
        dirty_drop_failed(d);
    }
    int told = descriptor_take_error(me, q->fd);
    int result = child_call(me, 0, call, q, r); /* in any case: it drops locks */
    return failed < 0 ? failed : told < 0 ? told : result;
}

/* ---- life cycle ---- */

static int write_behind_init(struct translator *me, struct error *err UNUSED)
{
    struct write_behind *s = me->state;

    list_init(&s->dirty);
    waitq_init(&s->idle);
    return 0;
}

static FIBER void write_behind_stop(struct translator *me)
{
    struct write_behind *s = me->state;
    struct dirty_inode *d;

    while (!list_empty(&s->dirty) || s->background) {
        /* One at a time: what is pushed or dropped may change the list. */
        d = list_first(&s->dirty, struct dirty_inode, of_dirty);
        if (d) {
            SCOPED(inode_unref) struct inode *keep = inode_ref(d->inode);
            dirty_drop_failed(d);
            if (dirty_has_writes(d))
                (void)dirty_wait(d, NULL, on_all_so_far(me)); /* its writes end by themselves */
        } else {
            (void)waitq_wait(&s->idle, NULL);
        }
    }
}

static void write_behind_inode_forget(struct translator *me UNUSED, struct inode *inode UNUSED, void *ctx)
{
    struct dirty_inode *d = ctx;

    assert(list_empty(&d->writes));
    timer_stop(&d->hold);
    mem_free(d);
}

static void write_behind_fd_release(struct translator *me UNUSED, struct fd *fd UNUSED, void *ctx)
{
    mem_free(ctx);
}

static void dump_dirty(struct dump *out, const struct dirty_inode *d)
{
    dump_section(out, "xlator.%s.%s.inode", d->me->class->type, d->me->name);
    dump_printf(out, "gfid", "%s", GFID_TEXT(&d->inode->gfid));
    dump_printf(out, "window_current", "%" PRIu64, d->queued_bytes);
    dump_printf(out, "failed-bytes", "%" PRIu64, d->failed_bytes);
    dump_printf(out, "in-flight", "%u", d->in_flight);
}

static void write_behind_dump(struct translator *me, struct dump *out)
{
    struct write_behind *s = me->state;
    struct dirty_inode *d;

    dump_printf(out, "aggregate_size", "%" PRIu64, s->aggregate_bytes);
    dump_printf(out, "window_size", "%" PRIu64, s->window_bytes);
    dump_printf(out, "flush_behind", "%d", s->flushes_behind);
    dump_printf(out, "trickling_writes", "%d", s->trickles);
    dump_printf(out, "writes", "accepted=%" PRIu64 " merged=%" PRIu64 " sent=%" PRIu64 " failed=%" PRIu64, s->writes,
                s->merged, s->sent, s->failed);
    list_for_each (d, &s->dirty, of_dirty)
        dump_dirty(out, d);
}

const struct translator_class write_behind_class = {
    .type = "performance/write-behind",
    .state_size = sizeof(struct write_behind),
    .options = write_behind_options,
    .ops = {
        [OP_LOOKUP] = write_behind_lookup,
        [OP_STAT] = write_behind_after,
        [OP_LINK] = write_behind_after,
        [OP_RENAME] = write_behind_rename,
        [OP_OPEN] = write_behind_open,
        [OP_CREATE] = write_behind_create,
        [OP_READ] = write_behind_read,
        [OP_WRITE] = write_behind_write,
        [OP_TRUNCATE] = write_behind_after,
        [OP_FALLOCATE] = write_behind_after,
        [OP_SEEK] = write_behind_after,
        [OP_COPY_RANGE] = write_behind_after,
        [OP_FLUSH] = write_behind_flush,
        [OP_FSYNC] = write_behind_fsync,
        [OP_SETATTR] = write_behind_after,
        [OP_XATTROP] = write_behind_xattrop,
        [OP_READDIRP] = write_behind_readdirp,
        [OP_LK] = write_behind_lk,
        [OP_INODELK] = write_behind_inodelk,
        [OP_RCHECKSUM] = write_behind_after,
        [OP_BLOCKSUMS] = write_behind_after,
    },
    .children_min = 1,
    .children_max = 1,
    .uses_inode_ctx = true,
    .uses_fd_ctx = true,
    .init = write_behind_init,
    .stop = write_behind_stop,
    .fd_release = write_behind_fd_release,
    .inode_forget = write_behind_inode_forget,
    .dump = write_behind_dump,
};
