/* Events of the brick that a client must hear of: callbacks, which nobody answers. */
#include "protocol/server/server_internal.h"
#include "rpc/handshake.h"
#include "rpc/rpcgen_bridge.h"

#define UPCALL_CACHE_INVALIDATION 1
#define UPCALL_EXPIRE_S           60

static void iatt_to_wire(const struct iatt *a, struct wire_iatt33 *w)
{
    if (!a)
        return;
    *w = (struct wire_iatt33) { .ino = a->ino,
                                .dev = a->dev,
                                .mode = a->mode,
                                .nlink = a->nlink,
                                .uid = a->uid,
                                .gid = a->gid,
                                .rdev = a->rdev,
                                .size = a->size,
                                .blksize = a->blksize,
                                .blocks = a->blocks,
                                .atime = (u_int)a->atime,
                                .atime_nsec = a->atime_nsec,
                                .mtime = (u_int)a->mtime,
                                .mtime_nsec = a->mtime_nsec,
                                .ctime = (u_int)a->ctime,
                                .ctime_nsec = a->ctime_nsec };
    memcpy(w->gfid, a->gfid.bytes, 16);
}

/* The dict as the bytes of an opaque<>, in *o. */
static void fill_xdata(struct xdr_out *o, const struct dict *xdata, char **ret_data, u_int *ret_size)
{
    xdr_out_init(o, 256);
    xdr_put_odict(o, xdata);
    *ret_data = o->buf ? (char *)o->buf->data : NULL;
    *ret_size = o->failed ? 0 : (u_int)o->size;
}

static void put_invalidation(struct xdr_out *o, const struct event *e)
{
    char text[GFID_TEXT_LEN + 1];
    struct xdr_out xdata;
    struct wire_cache_invalidation w = { .gfid = gfid_format(&e->gfid, text),
                                         .event_type = UPCALL_CACHE_INVALIDATION,
                                         .flags = e->invalidate_flags,
                                         .expire_time_attr = UPCALL_EXPIRE_S };

    iatt_to_wire(e->stat, &w.stat);
    iatt_to_wire(e->parent_stat, &w.parent_stat);
    fill_xdata(&xdata, e->xdata, &w.xdata.xdata_val, &w.xdata.xdata_len);
    RPCGEN_PUT(o, wire_cache_invalidation, &w);
    xdr_out_done(&xdata);
}

static void put_inodelk(struct xdr_out *o, const struct event *e)
{
    struct xdr_out xdata;
    struct wire_inodelk_contention w = {
        .flock = { .type = e->range.type, .start = e->range.start, .len = e->range.length, .pid = (u_int)e->range.pid },
        .pid = (u_int)e->pid,
        .domain = (char *)(e->domain ? e->domain : "")
    };

    memcpy(w.gfid, e->gfid.bytes, 16);
    fill_xdata(&xdata, e->xdata, &w.xdata.xdata_val, &w.xdata.xdata_len);
    RPCGEN_PUT(o, wire_inodelk_contention, &w);
    xdr_out_done(&xdata);
}

static void put_entrylk(struct xdr_out *o, const struct event *e)
{
    struct xdr_out xdata;
    struct wire_entrylk_contention w = { .type = e->range.type,
                                         .pid = (u_int)e->pid,
                                         .name = (char *)(e->name ? e->name : ""),
                                         .domain = (char *)(e->domain ? e->domain : "") };

    memcpy(w.gfid, e->gfid.bytes, 16);
    fill_xdata(&xdata, e->xdata, &w.xdata.xdata_val, &w.xdata.xdata_len);
    RPCGEN_PUT(o, wire_entrylk_contention, &w);
    xdr_out_done(&xdata);
}

static uint32_t procedure_of(enum event_kind kind)
{
    switch (kind) {
    case EVENT_CHILD_UP: return CALLBACK_CHILD_UP;
    case EVENT_CHILD_DOWN: return CALLBACK_CHILD_DOWN;
    case EVENT_INVALIDATE: return CALLBACK_CACHE_INVALIDATION;
    case EVENT_INODELK_CONTENTION: return CALLBACK_INODELK_CONTENTION;
    case EVENT_ENTRYLK_CONTENTION: return CALLBACK_ENTRYLK_CONTENTION;
    default: return 0;
    }
}

static void send_to(struct connection *c, uint32_t procedure, const struct event *e)
{
    struct xdr_out o;

    rpc_oneway_begin(c->peer, &o, PROGRAM_CALLBACK, CALLBACK_VERSION, procedure);
    if (procedure == CALLBACK_CACHE_INVALIDATION)
        put_invalidation(&o, e);
    else if (procedure == CALLBACK_INODELK_CONTENTION)
        put_inodelk(&o, e);
    else if (procedure == CALLBACK_ENTRYLK_CONTENTION)
        put_entrylk(&o, e);
    (void)rpc_peer_send(c->peer, &o); /* a client that is going away misses it */
}

/* In our own program, which whoever asked for it speaks. It has no body. */
static void send_heal_needed(struct connection *c)
{
    struct xdr_out o;

    rpc_oneway_begin(c->peer, &o, PROGRAM_MORTAR, MORTAR_PROGRAM_VERSION, MORTAR_HEAL_NEEDED);
    (void)rpc_peer_send(c->peer, &o); /* a client that is going away misses it */
}

void upcall_send(struct server *s, const struct event *event)
{
    uint32_t procedure = procedure_of(event->kind);
    struct connection *c;

    if (event->kind == EVENT_HEAL_NEEDED && event->client && event->client->edge && !event->client->is_gone)
        send_heal_needed(event->client->edge);
    if (procedure == 0)
        return;
    if (event->client) {
        if (event->client->edge && !event->client->is_gone)
            send_to(event->client->edge, procedure, event);
        return;
    }
    /* What is not for one client is about the brick as a whole. */
    if (procedure != CALLBACK_CHILD_UP && procedure != CALLBACK_CHILD_DOWN)
        return;
    list_for_each (c, &s->connections, node) {
        if (c->client && !c->is_gone)
            send_to(c, procedure, event);
    }
}
