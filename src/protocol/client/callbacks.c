/* What a brick says by itself: docs/protocol.md "Callbacks". None is answered. */
#include "core/mem.h"
#include "protocol/client/client_internal.h"
#include "rpc/handshake.h"
#include "rpc/invalidate.h"
#include "rpc/rpcgen_bridge.h"

static void get_xdata(const char *data, u_int size, struct dict **ret_xdata)
{
    /* What cannot be read is left out: the event itself is good. */
    (void)odict_parse((uint8_t *)data, size, ret_xdata);
}

static void iatt_from_wire(struct iatt *a, const struct wire_iatt33 *w)
{
    *a = (struct iatt) { .ino = w->ino,
                         .dev = w->dev,
                         .rdev = w->rdev,
                         .size = w->size,
                         .blocks = w->blocks,
                         .atime = w->atime,
                         .mtime = w->mtime,
                         .ctime = w->ctime,
                         .atime_nsec = w->atime_nsec,
                         .mtime_nsec = w->mtime_nsec,
                         .ctime_nsec = w->ctime_nsec,
                         .mode = w->mode,
                         .nlink = w->nlink,
                         .uid = w->uid,
                         .gid = w->gid,
                         .blksize = w->blksize };
    memcpy(a->gfid.bytes, w->gfid, 16);
}

static void invalidation(struct remote *s, struct xdr_in *in)
{
    struct wire_cache_invalidation w = { 0 };
    SCOPED(dict_unref) struct dict *xdata = NULL;
    struct iatt stat, parent_stat;

    if (RPCGEN_GET(in, wire_cache_invalidation, &w) < 0)
        return;
    struct event e = {
        .kind = EVENT_INVALIDATE, .invalidate_flags = w.flags, .stat = &stat, .parent_stat = &parent_stat
    };
    iatt_from_wire(&stat, &w.stat);
    iatt_from_wire(&parent_stat, &w.parent_stat);
    get_xdata(w.xdata.xdata_val, w.xdata.xdata_len, &xdata);
    e.xdata = xdata;
    if (gfid_parse(w.gfid, &e.gfid) == 0) {
        remote_lease_broken(s, &e.gfid);
        notify_parents(s->me, &e);
    }
    RPCGEN_FREE(wire_cache_invalidation, &w);
}

static void inodelk_contention(struct remote *s, struct xdr_in *in)
{
    struct wire_inodelk_contention w = { 0 };
    SCOPED(dict_unref) struct dict *xdata = NULL;

    if (RPCGEN_GET(in, wire_inodelk_contention, &w) < 0)
        return;
    struct event e = { .kind = EVENT_INODELK_CONTENTION, .domain = w.domain, .pid = (int32_t)w.pid };
    memcpy(e.gfid.bytes, w.gfid, 16);
    e.range = (struct lock_range) { .type = MIN(w.flock.type, (uint32_t)LOCK_NONE),
                                    .start = w.flock.start,
                                    .length = w.flock.len,
                                    .pid = (int32_t)w.flock.pid };
    get_xdata(w.xdata.xdata_val, w.xdata.xdata_len, &xdata);
    e.xdata = xdata;
    notify_parents(s->me, &e);
    RPCGEN_FREE(wire_inodelk_contention, &w);
}

static void entrylk_contention(struct remote *s, struct xdr_in *in)
{
    struct wire_entrylk_contention w = { 0 };
    SCOPED(dict_unref) struct dict *xdata = NULL;

    if (RPCGEN_GET(in, wire_entrylk_contention, &w) < 0)
        return;
    struct event e = {
        .kind = EVENT_ENTRYLK_CONTENTION, .domain = w.domain, .name = w.name[0] ? w.name : NULL, .pid = (int32_t)w.pid
    };
    memcpy(e.gfid.bytes, w.gfid, 16);
    e.range.type = MIN(w.type, (uint32_t)LOCK_NONE);
    get_xdata(w.xdata.xdata_val, w.xdata.xdata_len, &xdata);
    e.xdata = xdata;
    notify_parents(s->me, &e);
    RPCGEN_FREE(wire_entrylk_contention, &w);
}

/* The storage behind a connection that stays. */
static void child_changed(struct remote *s, bool is_up)
{
    if (s->is_up)
        remote_tell_parents(s, is_up ? EVENT_CHILD_UP : EVENT_CHILD_DOWN);
}

/* ---- our own program ---- */

struct held {
    struct rpc_incoming *in;
    struct event_hold hold;
    struct env *env;
    struct reach *reach; /* a reference */
};

static void held_done(struct held *h)
{
    h->reach->unanswered--;
    h->reach->answered_ns = env_now_ns(h->env);
    reach_unref(h->reach);
    mem_free(h);
}

/* Answers once everything above has let go of what it knew. */
static FIBER void answer_when_released(void *arg)
{
    struct held *h = arg;
    struct xdr_out o;

    while (h->hold.count > 0)
        (void)waitq_wait(&h->hold.released, NULL); /* whoever holds it always ends */
    rpc_reply_begin(h->in, &o, 64);
    xdr_put_u32(&o, 0);
    rpc_reply_send(h->in, &o);
    held_done(h);
}

/* rpc/invalidate.h. The events go up now, in the order of the connection, so that answers that came before are known to
 * be older. */
static void invalidated_by_brick(struct remote *s, struct rpc_incoming *in)
{
    struct held *h = NEW(struct held);
    uint32_t count = xdr_get_u32(&in->body);

    if (!h || !s->reach || count > INVALIDATE_MAX) {
        mem_free(h);
        rpc_reply_error(in, RPC_ACCEPT_GARBAGE);
        return;
    }
    h->in = in;
    h->env = s->me->env;
    h->reach = reach_ref(s->reach); /* INVALIDATE comes after SETVOLUME only */
    h->reach->unanswered++;
    h->reach->proven_ns = 0;
    waitq_init(&h->hold.released);
    for (uint32_t i = 0; i < count && !in->body.failed; i++) {
        struct event e = { .kind = EVENT_INVALIDATE, .hold = &h->hold };

        xdr_get_gfid(&in->body, &e.gfid);
        const char *name = xdr_get_string(&in->body, 255);
        e.name = name[0] ? name : NULL;
        if (in->body.failed)
            break;
        remote_lease_broken(s, &e.gfid);
        notify_parents(s->me, &e);
    }
    if (fiber_spawn(s->me->env, "invalidated", answer_when_released, h) < 0) {
        assert(h->hold.count == 0 || !"out of memory while others hold an event");
        rpc_reply_error(in, RPC_ACCEPT_SYSTEM);
        held_done(h);
    }
}

void remote_on_call(void *arg, struct rpc_incoming *in)
{
    struct remote *s = arg;

    if (in->head.program == PROGRAM_MORTAR && in->head.procedure == MORTAR_INVALIDATE) {
        invalidated_by_brick(s, in);
        return;
    }
    if (in->head.program == PROGRAM_MORTAR && in->head.procedure == MORTAR_HEAL_NEEDED) {
        if (s->is_up)
            notify_parents(s->me, &(struct event) { .kind = EVENT_HEAL_NEEDED });
        rpc_incoming_free(in);
        return;
    }
    if (in->head.program != PROGRAM_CALLBACK) {
        rpc_reply_error(in, RPC_ACCEPT_NO_PROGRAM);
        return;
    }
    switch (in->head.procedure) {
    case CALLBACK_CACHE_INVALIDATION: invalidation(s, &in->body); break;
    case CALLBACK_CHILD_UP:
    case CALLBACK_CHILD_DOWN: child_changed(s, in->head.procedure == CALLBACK_CHILD_UP); break;
    case CALLBACK_INODELK_CONTENTION: inodelk_contention(s, &in->body); break;
    case CALLBACK_ENTRYLK_CONTENTION: entrylk_contention(s, &in->body); break;
    default: /* nothing a file system's client acts on */ break;
    }
    rpc_incoming_free(in);
}
