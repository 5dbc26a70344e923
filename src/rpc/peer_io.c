/* What a peer has to send, and how long it waits for answers. */
#include "core/mem.h"
#include "rpc/peer_internal.h"

#define IOV_MAX_PER_MESSAGE (2 * XDR_INSERTS_MAX + 1)
#define IOV_MAX_PER_SEND    64
#define FRAME_CHECK_MS      10000

struct queued {
    struct list node;
    struct xdr_out out;
    size_t sent; /* bytes of it that are gone already */
};

static void queued_free(struct rpc_peer *p, struct queued *q)
{
    list_del(&q->node);
    p->queued_bytes -= xdr_total(&q->out);
    xdr_out_done(&q->out);
    mem_free(q);
}

static void queued_sent(struct rpc_peer *p, struct queued *q)
{
    p->sent_bytes += xdr_total(&q->out) - q->sent;
    queued_free(p, q);
}

void rpc_peer_drop_queue(struct rpc_peer *p)
{
    struct queued *q;

    while ((q = list_first(&p->queue, struct queued, node)))
        queued_free(p, q);
}

/* Adds data..data+size to iov, without its first *skip bytes. */
static void add_part(struct iovec *iov, int *count, uint8_t *data, size_t size, size_t *skip)
{
    if (*skip >= size) {
        *skip -= size;
        return;
    }
    iov[(*count)++] = (struct iovec) { data + *skip, size - *skip };
    *skip = 0;
}

static int message_iov(const struct xdr_out *o, size_t skip, struct iovec iov[static IOV_MAX_PER_MESSAGE])
{
    size_t at = 0;
    int count = 0;

    for (unsigned i = 0; i < o->insert_count; i++) {
        const struct xdr_insert *insert = &o->inserts[i];
        add_part(iov, &count, o->buf->data + at, insert->at - at, &skip);
        add_part(iov, &count, insert->data->data, insert->data->size, &skip);
        at = insert->at;
    }
    add_part(iov, &count, o->buf->data + at, o->size - at, &skip);
    return count;
}

/* How many bytes of the message went out at once. */
static ssize_t send_now(struct rpc_peer *p, const struct xdr_out *o)
{
    struct iovec iov[IOV_MAX_PER_MESSAGE];
    int count = message_iov(o, 0, iov);
    ssize_t n = stream_try_writev(p->stream, iov, count);

    if (n > 0)
        p->sent_bytes += (size_t)n;
    return n;
}

static int check_message(struct rpc_peer *p, const struct xdr_out *o)
{
    if (p->is_closing)
        return -ENOTCONN;
    if (o->failed)
        return -ENOMEM;
    if (xdr_total(o) - RPC_MARK_BYTES >= RPC_MARK_LAST)
        return -EMSGSIZE;
    return 0;
}

static int enqueue(struct rpc_peer *p, struct xdr_out *o, size_t sent)
{
    struct queued *q = NEW(struct queued);

    if (!q)
        return -ENOMEM;
    q->out = *o;
    *o = (struct xdr_out) { 0 }; /* given */
    q->sent = sent;
    list_add_tail(&p->queue, &q->node);
    p->queued_bytes += xdr_total(&q->out);
    waitq_wake_one(&p->writer, 0);
    if (p->queued_bytes > RPC_QUEUE_MAX_BYTES)
        rpc_peer_disconnect(p, -ENOBUFS);
    return 0;
}

static int send_message(struct rpc_peer *p, struct xdr_out *o, bool at_once)
{
    int r = check_message(p, o);
    ssize_t n = 0;

    if (r == 0) {
        p->accepted_bytes += xdr_total(o);
        xdr_patch_u32(o, 0, RPC_MARK_LAST | (uint32_t)(xdr_total(o) - RPC_MARK_BYTES));
        if (at_once && list_empty(&p->queue))
            n = send_now(p, o);
        if (n < 0) {
            rpc_peer_disconnect(p, (int)n);
            r = -ENOTCONN;
        } else if ((size_t)n < xdr_total(o)) {
            r = enqueue(p, o, (size_t)n);
            if (r == 0)
                return 0; /* o lives on in the queue */
            if (n > 0)
                rpc_peer_disconnect(p, r); /* half a message is out */
        }
    }
    xdr_out_done(o);
    return r;
}

int rpc_peer_send(struct rpc_peer *p, struct xdr_out *o)
{
    return send_message(p, o, true);
}

int rpc_peer_send_soon(struct rpc_peer *p, struct xdr_out *o)
{
    return send_message(p, o, false);
}

/* As many messages as one send takes, each whole. */
static int gather(struct rpc_peer *p, struct iovec *iov, unsigned *ret_messages)
{
    struct queued *q;
    int count = 0;

    *ret_messages = 0;
    list_for_each (q, &p->queue, node) {
        if (count + 2 * (int)q->out.insert_count + 1 > IOV_MAX_PER_SEND)
            break;
        count += message_iov(&q->out, q->sent, iov + count);
        ++*ret_messages;
    }
    return count;
}

FIBER void rpc_peer_writer(void *arg)
{
    struct rpc_peer *p = arg;
    struct iovec iov[IOV_MAX_PER_SEND];

    while (!p->is_closing) {
        if (list_empty(&p->queue)) {
            (void)waitq_wait(&p->writer, NULL); /* woken by a message or the end */
            continue;
        }
        unsigned messages;
        int count = gather(p, iov, &messages);
        int r = stream_writev(p->stream, iov, count, NULL);
        if (r < 0) {
            rpc_peer_disconnect(p, r);
            break;
        }
        while (messages-- > 0)
            queued_sent(p, list_entry(p->queue.next, struct queued, node)); /* they are the first ones still */
        if (p->queued_bytes <= RPC_QUEUE_CALL_BYTES)
            waitq_wake_all(&p->room, 0);
    }
    rpc_peer_unref(p);
}

/* ---- how long to wait ---- */

static void ping_done(struct rpc_call *c)
{
    struct rpc_peer *p = c->arg;

    p->is_pinging = false;
    rpc_call_done(c);
}

static void ping(struct rpc_peer *p)
{
    struct xdr_out o;

    rpc_call_begin(p, &p->ping, &o, PROGRAM_DUMP, DUMP_VERSION, DUMP_PING, NULL);
    p->ping.on_done = ping_done;
    p->ping.arg = p;
    p->is_ping_delivered = false;
    if (rpc_peer_start(p, &p->ping, &o) == 0)
        p->is_pinging = true;
    p->ping_end = p->accepted_bytes;
}

/* How far the other side's kernel has what we sent. */
static void note_progress(struct rpc_peer *p, uint64_t now_ns)
{
    uint64_t acked = p->sent_bytes - MIN((uint64_t)stream_unacked_bytes(p->stream), p->sent_bytes);

    if (acked > p->acked_bytes) {
        p->acked_bytes = acked;
        p->acked_ns = now_ns;
    }
    if (p->is_pinging && !p->is_ping_delivered && acked >= p->ping_end) {
        p->is_ping_delivered = true;
        p->ping_delivered_ns = now_ns;
    }
}

/* When the connection is to be given up, as far as is known now. */
static uint64_t give_up_at(const struct rpc_peer *p, uint64_t silent_since_ns, uint64_t timeout_ns)
{
    if (!p->is_pinging)
        return UINT64_MAX;
    if (!p->is_ping_delivered)
        return MAX(silent_since_ns, p->acked_ns) + timeout_ns;
    return MAX(silent_since_ns + timeout_ns, p->ping_delivered_ns + timeout_ns / 2);
}

static void ping_due(void *arg)
{
    struct rpc_peer *p = arg;
    uint64_t timeout_ns = p->ping_timeout_s * 1000000000ull, now_ns = env_now_ns(p->env);
    uint64_t silent_since_ns = MAX(p->received_ns, p->waiting_since_ns);

    if ((p->outstanding_count == 0 && !p->is_pinging) || timeout_ns == 0)
        return; /* the next call starts the watch again */
    note_progress(p, now_ns);
    if (!p->is_pinging && now_ns >= silent_since_ns + timeout_ns / 4) {
        ping(p);
        note_progress(p, now_ns);
    }
    uint64_t end_ns = give_up_at(p, silent_since_ns, timeout_ns);
    if (now_ns >= end_ns)
        rpc_peer_disconnect(p, -ETIMEDOUT);
    if (!p->is_closing)
        timer_start(p->env, &p->ping_timer, MIN(end_ns, now_ns + timeout_ns / 8), ping_due, p);
}

static void frame_check(void *arg)
{
    struct rpc_peer *p = arg;
    uint64_t now_ns = env_now_ns(p->env), limit_ns = p->frame_timeout_s * 1000000000ull;

    for (unsigned i = 0; i < RPC_BUCKETS; i++) {
        struct rpc_call *c;
        list_for_each (c, &p->outstanding[i], bucket) {
            if (c == &p->ping || now_ns - c->sent_ns < limit_ns)
                continue;
            list_del(&c->bucket);
            p->outstanding_count--;
            c->err = -ENOTCONN;
            c->on_done(c);
        }
    }
    if (p->outstanding_count > 0)
        timer_start(p->env, &p->frame_timer, env_deadline_ms(p->env, FRAME_CHECK_MS), frame_check, p);
}

void rpc_peer_watch(struct rpc_peer *p)
{
    if (p->is_closing)
        return;
    if (p->ping_timeout_s > 0 && p->ping_timer.at_ns == 0)
        timer_start(p->env, &p->ping_timer, env_deadline_ms(p->env, p->ping_timeout_s * 125ull), ping_due, p);
    if (p->frame_timeout_s > 0 && p->frame_timer.at_ns == 0)
        timer_start(p->env, &p->frame_timer, env_deadline_ms(p->env, FRAME_CHECK_MS), frame_check, p);
}
