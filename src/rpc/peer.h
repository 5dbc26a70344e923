/* rpc/peer.h - one RPC connection. Both sides may call: a client asks file operations, a brick sends callbacks.
 *
 *   peer      - owns a stream, a reader fiber and a writer fiber. Refcounted; goes when closed and unreferenced.
 *   call      - what we asked and wait for: lives in the caller's memory, known by its xid until the answer comes.
 *   incoming  - what the other side asks: given to the handler, which answers it once, from any fiber, or frees it.
 *
 * A message is sent from where it was made when the socket takes it; only what does not fit waits for the writer fiber,
 * which then sends many messages at once. When the connection ends, every call ends with -ENOTCONN, then on_closed is
 * called once. Nothing is sent again by itself.
 *
 *     struct xdr_out o;
 *     struct rpc_call c;
 *     rpc_call_begin(peer, &c, &o, PROGRAM_DUMP, DUMP_VERSION, DUMP_DUMP, call);
 *     xdr_put_u64(&o, 0xcaed);
 *     r = rpc_peer_call(peer, &c, &o, scope);        gives o away
 *     if (r == 0) ...read c.body...
 *     rpc_call_done(&c);
 */
#pragma once

#include "core/env.h"
#include "rpc/record.h"

#define RPC_QUEUE_MAX_BYTES  (256u * 1024 * 1024) /* not sent yet; a peer that takes less is cut off */
#define RPC_QUEUE_CALL_BYTES (16u * 1024 * 1024)  /* from so much on, rpc_peer_call() waits before it sends */
#define RPC_BUCKETS          64
#define RPC_INCOMING_MAX     4096 /* calls under way of one peer, those included that are not counted */

struct rpc_peer;

struct rpc_call {
    struct list bucket; /* internal */
    uint32_t xid;
    bool answers_read; /* the reply ends in raw data: set it before sending */
    bool is_lazy;      /* see rpc_peer_send_soon(): set it before sending */
    uint64_t sent_ns;
    /* When the answer is there or never will be; on the loop, must not suspend. Set by rpc_peer_call(). */
    void (*on_done)(struct rpc_call *c);
    /* rpc_peer_call() only: called instead when the caller has given up, e.g. to undo what was done for nobody. The call
     * must then be on the heap and stays under way as long as rpc_call_is_under_way(). */
    void (*on_late)(struct rpc_call *c);
    void *arg;
    int err; /* 0, -ENOTCONN, -EBADMSG; valid when done */
    struct record reply;
    struct xdr_in body; /* after the reply's head */
    struct waitq waiting;
};

struct rpc_incoming {
    struct rpc_peer *peer; /* a reference */
    uint32_t xid;
    bool is_counted; /* against the peer's limit */
    bool is_lazy;    /* nobody waits for the answer: the handler may set it, see rpc_peer_send_soon() */
    struct rpc_call_head head;
    struct record record;
    struct xdr_in body; /* the procedure's argument */
    struct list node;   /* the handler's */
    void *arg;          /* the handler's */
};

struct rpc_handlers {
    /* A call came in: given. On the reader's fiber; must not suspend. */
    void (*on_call)(void *arg, struct rpc_incoming *in);
    /* The connection has ended, for the reason err (0: the other side closed it). On the reader's fiber; may suspend. */
    FIBER void (*on_closed)(void *arg, int err);
};

struct rpc_peer {
    struct env *env;
    struct stream *stream;
    struct rpc_handlers handlers;
    void *arg;
    uint32_t refs;
    bool is_closing; /* nothing is sent or read any more */
    bool is_closed;  /* on_closed has been called */
    int close_error;
    uint32_t xid; /* of the last call; the owner may set where to go on */
    enum rpc_flavor flavor;
    bool sends_groups; /* supplementary groups in credentials */

    struct record_reader reader;
    unsigned incoming_limit, incoming_count; /* counted ones under way; limit 0: none */
    unsigned incoming_total;                 /* all under way, up to RPC_INCOMING_MAX */
    struct waitq below_limit;

    struct list outstanding[RPC_BUCKETS];
    unsigned outstanding_count; /* without the ping */
    uint32_t frame_timeout_s;   /* 0: none */
    struct timer frame_timer;

    struct list queue; /* of messages, in order */
    size_t queued_bytes;
    struct waitq writer;
    struct waitq room; /* callers wait here for the queue to become shorter */

    uint32_t ping_timeout_s; /* 0: no pings; see rpc_peer_watch() */
    struct timer ping_timer;
    struct rpc_call ping;
    bool is_pinging;
    bool is_ping_delivered;
    uint64_t accepted_bytes, sent_bytes;  /* for sending: taken by us, taken by the kernel */
    uint64_t ping_end, acked_bytes;       /* positions in accepted_bytes */
    uint64_t received_ns;                 /* the last bytes of the other side came */
    uint64_t waiting_since_ns;            /* the first of the calls under way was sent */
    uint64_t acked_ns, ping_delivered_ns; /* when acked_bytes last grew, when it reached ping_end */
};

/* Starts the fibers. The stream is given. Returned; NULL for lack of memory. The defaults: no limits, no pings, AUTH
 * flavor v2, messages up to RECORD_MAX_BYTES_UNKNOWN. */
struct rpc_peer *rpc_peer_new(struct env *env, struct stream *stream, const struct rpc_handlers *handlers,
                              void *arg) MUST_USE;
struct rpc_peer *rpc_peer_ref(struct rpc_peer *p);
void rpc_peer_unref(struct rpc_peer *p); /* accepts NULL */
/* Ends the connection soon; on_closed follows from the reader. Idempotent. */
void rpc_peer_disconnect(struct rpc_peer *p, int err);

/* ---- asking ---- */

/* A fresh call and the head of its message; `who` NULL = root without owner. */
void rpc_call_begin(struct rpc_peer *p, struct rpc_call *c, struct xdr_out *o, uint32_t program, uint32_t version,
                    uint32_t procedure, const struct call *who);
/* Sends o (which is empty afterwards) and waits. 0 and c->body; -ENOTCONN (also: the other side does not know the
 * procedure), -EBADMSG, -ENOMEM, -EMSGSIZE, -ETIMEDOUT, -ECANCELED (the answer will be dropped). */
FIBER int rpc_peer_call(struct rpc_peer *p, struct rpc_call *c, struct xdr_out *o, struct scope *scope);
/* Its caller has given up (deadline, cancelled, the simulated process died), and on_late will be called. */
static inline bool rpc_call_is_under_way(const struct rpc_call *c)
{
    return !list_empty(&c->bucket);
}
/* The same without waiting: c->on_done is called later. On an error it is not. */
int rpc_peer_start(struct rpc_peer *p, struct rpc_call *c, struct xdr_out *o);
/* Releases the answer. The call must not be under way. */
void rpc_call_done(struct rpc_call *c);
/* A message nobody answers (callbacks). */
void rpc_oneway_begin(struct rpc_peer *p, struct xdr_out *o, uint32_t program, uint32_t version, uint32_t procedure);
int rpc_peer_send(struct rpc_peer *p, struct xdr_out *o);
/* The same when other fibers have had their turn, together with what they send: for what nobody waits for. */
int rpc_peer_send_soon(struct rpc_peer *p, struct xdr_out *o);

/* ---- answering: each of these frees `in` ---- */

/* Head of a successful reply. */
void rpc_reply_begin(struct rpc_incoming *in, struct xdr_out *o, size_t reserve_bytes);
void rpc_reply_send(struct rpc_incoming *in, struct xdr_out *o);
void rpc_reply_error(struct rpc_incoming *in, enum rpc_accept accept);
void rpc_reply_denied(struct rpc_incoming *in);
void rpc_incoming_free(struct rpc_incoming *in);
/* Stops counting it against the limit: it may take for ever. */
void rpc_incoming_uncount(struct rpc_incoming *in);
