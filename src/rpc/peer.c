#include "rpc/peer.h"
#include "core/mem.h"
#include "rpc/peer_internal.h"

static struct list *bucket_of(struct rpc_peer *p, uint32_t xid)
{
    return &p->outstanding[xid % RPC_BUCKETS];
}

static struct rpc_call *find_call(struct rpc_peer *p, uint32_t xid)
{
    struct rpc_call *c;

    list_for_each (c, bucket_of(p, xid), bucket) {
        if (c->xid == xid)
            return c;
    }
    return NULL;
}

static void take_off(struct rpc_peer *p, struct rpc_call *c)
{
    list_del(&c->bucket);
    if (c != &p->ping)
        p->outstanding_count--;
}

/* ---- life ---- */

static ssize_t peek_data(void *arg, const uint8_t *head, size_t have)
{
    struct rpc_peer *p = arg;

    if (have < 8)
        return -EAGAIN;
    if (get_be32(head + 4) == 0)
        return rpc_write_head_bytes(head, have);
    struct rpc_call *c = find_call(p, get_be32(head));
    return c && c->answers_read ? rpc_read_reply_head_bytes(head, have) : 0;
}

static int peer_init(struct rpc_peer *p)
{
    int r = record_reader_init(&p->reader, RECORD_MAX_BYTES_UNKNOWN, peek_data, p);
    if (r < 0)
        return r;
    r = fiber_spawn(p->env, "rpc-write", rpc_peer_writer, p);
    if (r < 0)
        return r;
    p->refs++;
    r = fiber_spawn(p->env, "rpc-read", rpc_peer_reader, p);
    if (r < 0)
        return r;
    p->refs++;
    return 0;
}

struct rpc_peer *rpc_peer_new(struct env *env, struct stream *stream, const struct rpc_handlers *handlers, void *arg)
{
    struct rpc_peer *p = NEW(struct rpc_peer);

    if (!p)
        return NULL;
    p->env = env;
    p->stream = stream;
    p->handlers = *handlers;
    p->arg = arg;
    p->refs = 1;
    p->flavor = AUTH_FLAVOR_V2;
    p->sends_groups = true;
    p->received_ns = p->acked_ns = env_now_ns(env);
    for (unsigned i = 0; i < RPC_BUCKETS; i++)
        list_init(&p->outstanding[i]);
    list_init(&p->ping.bucket);
    list_init(&p->queue);
    waitq_init(&p->writer);
    waitq_init(&p->room);
    waitq_init(&p->below_limit);
    if (peer_init(p) < 0) {
        /* The stream stays the caller's. A writer that was started ends by itself with the last reference. */
        p->stream = NULL;
        p->is_closing = true;
        rpc_peer_unref(p);
        return NULL;
    }
    return p;
}

struct rpc_peer *rpc_peer_ref(struct rpc_peer *p)
{
    p->refs++;
    return p;
}

void rpc_peer_unref(struct rpc_peer *p)
{
    if (!p || --p->refs > 0)
        return;
    rpc_peer_drop_queue(p);
    record_reader_done(&p->reader);
    stream_close(p->stream);
    mem_free(p);
}

void rpc_peer_disconnect(struct rpc_peer *p, int err)
{
    if (p->is_closing)
        return;
    p->is_closing = true;
    p->close_error = err;
    timer_stop(&p->ping_timer);
    timer_stop(&p->frame_timer);
    stream_shutdown(p->stream);
    waitq_wake_all(&p->writer, 0);
    waitq_wake_all(&p->room, 0);
    waitq_wake_all(&p->below_limit, 0);
}

/* ---- reading ---- */

static void finish_call(struct rpc_peer *p, struct rpc_call *c, int err)
{
    take_off(p, c);
    c->err = err;
    c->on_done(c);
}

static void fail_all(struct rpc_peer *p)
{
    for (unsigned i = 0; i < RPC_BUCKETS; i++) {
        struct rpc_call *c;
        while ((c = list_first(&p->outstanding[i], struct rpc_call, bucket)))
            finish_call(p, c, -ENOTCONN);
    }
}

static int take_reply(struct rpc_peer *p, struct record *m, struct xdr_in *in, uint32_t xid)
{
    struct rpc_call *c = find_call(p, xid);

    if (!c) { /* its caller gave up */
        record_done(m);
        return 0;
    }
    int r = rpc_get_reply_head(in);
    c->reply = *m;
    c->body = *in;
    finish_call(p, c, r);
    return r == -EBADMSG ? r : 0;
}

/* A call whose head we cannot use is answered here; is there anything to hand on? */
static bool answer_bad_head(struct rpc_incoming *in, int r)
{
    struct xdr_out o;

    if (r == 0)
        return false;
    if (r == -EPROTONOSUPPORT) {
        xdr_out_init(&o, 64);
        xdr_put_u32(&o, 0);
        rpc_put_version_mismatch(&o, in->xid);
        rpc_reply_send(in, &o);
    } else {
        rpc_reply_denied(in);
    }
    return true;
}

static int take_call(struct rpc_peer *p, struct record *m, struct xdr_in *body, uint32_t xid)
{
    struct rpc_incoming *in = mem_alloc(sizeof(*in));

    if (!in) {
        record_done(m);
        return -ENOMEM;
    }
    in->peer = rpc_peer_ref(p);
    p->incoming_total++;
    in->xid = xid;
    in->record = *m;
    in->is_counted = in->is_lazy = false;
    in->arg = NULL;
    list_init(&in->node);
    int r = rpc_get_call_head(body, &in->head);
    in->body = *body;
    if (r == -EBADMSG) {
        rpc_incoming_free(in);
        return r;
    }
    if (answer_bad_head(in, r))
        return 0;
    if (p->incoming_limit > 0 && in->head.program != PROGRAM_HANDSHAKE && in->head.program != PROGRAM_DUMP) {
        in->is_counted = true;
        p->incoming_count++;
    }
    p->handlers.on_call(p->arg, in);
    return 0;
}

static int take_record(struct rpc_peer *p, struct record *m)
{
    struct xdr_in in = xdr_in_of(m->head);
    uint32_t xid = xdr_get_u32(&in), direction = xdr_get_u32(&in);

    if (in.failed || direction > 1) {
        record_done(m);
        return -EBADMSG;
    }
    return direction == 1 ? take_reply(p, m, &in, xid) : take_call(p, m, &in, xid);
}

/* Is so much under way that the rest may wait in the socket? */
static bool has_enough(const struct rpc_peer *p)
{
    return p->incoming_total >= RPC_INCOMING_MAX || (p->incoming_limit > 0 && p->incoming_count >= p->incoming_limit);
}

static FIBER int take_records(struct rpc_peer *p)
{
    struct record m = { 0 };
    int r = 0;

    while (r == 0 && !p->is_closing) {
        if (has_enough(p)) {
            (void)waitq_wait(&p->below_limit, NULL); /* woken by an answer or the end */
            continue;
        }
        r = record_reader_next(&p->reader, &m);
        if (r <= 0)
            return r;
        r = take_record(p, &m);
    }
    return r;
}

FIBER void rpc_peer_reader(void *arg)
{
    struct rpc_peer *p = arg;
    struct iovec iov[2];
    int r = 0;

    while (r == 0 && !p->is_closing) {
        int count = record_reader_space(&p->reader, iov);
        if (count < 0) {
            r = count;
            break;
        }
        ssize_t n = stream_readv(p->stream, iov, count, NULL);
        if (n <= 0) {
            r = (int)n;
            break;
        }
        p->received_ns = env_now_ns(p->env);
        record_reader_got(&p->reader, (size_t)n);
        r = take_records(p);
    }
    rpc_peer_disconnect(p, r);
    fail_all(p);
    p->is_closed = true;
    p->handlers.on_closed(p->arg, p->close_error);
    rpc_peer_unref(p);
}

/* ---- asking ---- */

void rpc_call_begin(struct rpc_peer *p, struct rpc_call *c, struct xdr_out *o, uint32_t program, uint32_t version,
                    uint32_t procedure, const struct call *who)
{
    *c = (struct rpc_call) { 0 };
    list_init(&c->bucket);
    do
        c->xid = ++p->xid;
    while (find_call(p, c->xid)); /* the counter came round and met a lock request that still waits */
    xdr_out_init(o, 512);
    xdr_put_u32(o, 0); /* the mark, see rpc_peer_send() */
    rpc_put_call_head(o, c->xid, program, version, procedure, p->flavor, who, p->sends_groups);
}

int rpc_peer_start(struct rpc_peer *p, struct rpc_call *c, struct xdr_out *o)
{
    c->sent_ns = env_now_ns(p->env);
    list_add_tail(bucket_of(p, c->xid), &c->bucket);
    if (c != &p->ping && p->outstanding_count++ == 0)
        p->waiting_since_ns = c->sent_ns;
    int r = c->is_lazy ? rpc_peer_send_soon(p, o) : rpc_peer_send(p, o);
    if (r < 0) {
        take_off(p, c);
        return r;
    }
    if (c != &p->ping)
        rpc_peer_watch(p);
    return 0;
}

static void wake_caller(struct rpc_call *c)
{
    waitq_wake_one(&c->waiting, 1);
}

/* A brick that takes data slowly makes its callers slow, not our memory full. */
static FIBER int wait_for_room(struct rpc_peer *p, struct scope *scope)
{
    int r = 0;

    while (r >= 0 && p->queued_bytes > RPC_QUEUE_CALL_BYTES && !p->is_closing)
        r = waitq_wait(&p->room, scope);
    return r < 0 ? r : 0;
}

FIBER int rpc_peer_call(struct rpc_peer *p, struct rpc_call *c, struct xdr_out *o, struct scope *scope)
{
    waitq_init(&c->waiting);
    c->on_done = wake_caller;
    rpc_peer_ref(p);
    int r = wait_for_room(p, scope);
    if (r < 0) {
        xdr_out_done(o);
        rpc_peer_unref(p);
        return r;
    }
    r = rpc_peer_start(p, c, o);
    if (r == 0) {
        r = waitq_wait(&c->waiting, scope);
        if (r >= 0)
            r = c->err;
        else if (c->on_late)
            c->on_done = c->on_late;
        else
            take_off(p, c);
    }
    rpc_peer_unref(p);
    return r;
}

void rpc_call_done(struct rpc_call *c)
{
    record_done(&c->reply);
}

void rpc_oneway_begin(struct rpc_peer *p, struct xdr_out *o, uint32_t program, uint32_t version, uint32_t procedure)
{
    xdr_out_init(o, 512);
    xdr_put_u32(o, 0);
    rpc_put_call_head(o, ++p->xid, program, version, procedure, AUTH_FLAVOR_NONE, NULL, false);
}

/* ---- answering ---- */

void rpc_reply_begin(struct rpc_incoming *in, struct xdr_out *o, size_t reserve_bytes)
{
    xdr_out_init(o, RPC_MARK_BYTES + RPC_REPLY_HEAD_BYTES + reserve_bytes);
    xdr_put_u32(o, 0);
    rpc_put_reply_head(o, in->xid, RPC_ACCEPT_OK);
}

void rpc_reply_send(struct rpc_incoming *in, struct xdr_out *o)
{
    /* Without memory for the answer the other side would wait for ever; end the connection instead. */
    if ((in->is_lazy ? rpc_peer_send_soon(in->peer, o) : rpc_peer_send(in->peer, o)) < 0)
        rpc_peer_disconnect(in->peer, -ENOMEM);
    rpc_incoming_free(in);
}

void rpc_reply_error(struct rpc_incoming *in, enum rpc_accept accept)
{
    struct xdr_out o;

    xdr_out_init(&o, 64);
    xdr_put_u32(&o, 0);
    rpc_put_reply_head(&o, in->xid, accept);
    rpc_reply_send(in, &o);
}

void rpc_reply_denied(struct rpc_incoming *in)
{
    struct xdr_out o;

    xdr_out_init(&o, 64);
    xdr_put_u32(&o, 0);
    rpc_put_denied(&o, in->xid);
    rpc_reply_send(in, &o);
}

void rpc_incoming_uncount(struct rpc_incoming *in)
{
    if (!in->is_counted)
        return;
    in->is_counted = false;
    in->peer->incoming_count--;
    waitq_wake_all(&in->peer->below_limit, 0);
}

void rpc_incoming_free(struct rpc_incoming *in)
{
    rpc_incoming_uncount(in);
    if (in->peer->incoming_total-- == RPC_INCOMING_MAX)
        waitq_wake_all(&in->peer->below_limit, 0);
    record_done(&in->record);
    rpc_peer_unref(in->peer);
    mem_free(in);
}
