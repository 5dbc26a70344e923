/* protocol/client/client_internal.h - one connection to one brick; shared by the files of this folder.
 *
 *   client.c    - options, life cycle, events
 *   connect.c   - connecting, version list, port map, SETVOLUME, retrying
 *   ops.c       - one operation as one message
 *   compound.c  - several as one message
 *   fds.c       - descriptors of the brick: opened again after a reconnect, with their locks
 *   late.c      - answers that nobody waits for any more
 *   callbacks.c - what the brick tells by itself
 *   lease.c     - what the brick has promised to tell before it changes
 */
#pragma once

#include "graph/graph.h"
#include "rpc/compound.h"
#include "rpc/fops.h"
#include "rpc/peer.h"

/* Can the brick reach us? One per connection, kept alive by INVALIDATEs that are not answered yet. */
struct reach {
    uint32_t refs;
    uint32_t unanswered;
    uint64_t answered_ns; /* when the last INVALIDATE was answered */
    uint64_t proven_ns;   /* the latest question that was sent after that, and answered, began */
};

/* Of an inode. */
struct remote_inode {
    bool was_locked; /* a POSIX lock was ever asked for */
    uint32_t generation;
    uint64_t since_ns, until_ns; /* the lease on connection `generation`; 0: none */
    uint64_t broken_ns;          /* answers to questions that began before may be older than the last INVALIDATE */
};

struct remote {
    struct translator *me;

    /* options */
    char *username, *password;
    char *host, *subvolume, *transport_type, *family, *connect_path;
    uint32_t port; /* 0: ask the port map */
    uint32_t ping_timeout_s, frame_timeout_s;
    bool sends_groups, filters_direct, has_strict_locks, binds_insecure, uses_tls;
    uint32_t keepalive_time_s, keepalive_interval_s, keepalive_count, user_timeout_s;

    /* connection: changed by the connecting fiber (connect.c) only */
    struct rpc_peer *peer; /* of the present connection, from its start to its end; a reference */
    bool is_up;            /* operations may be sent */
    bool speaks_mortar;    /* the other side has our own program */
    uint32_t generation;   /* counts SETVOLUMEs: fd numbers belong to one */
    uint32_t xid;          /* where the next connection goes on counting */
    char volume_id[64];    /* what the brick said it belongs to; "" before */
    char process_id[GFID_TEXT_LEN + 1];
    bool has_reported; /* up, down or trying */
    uint64_t connects, failures;

    struct reach *reach; /* of the present connection, made when it comes up */
    uint64_t broken_ns;  /* as in remote_inode, for inodes that had no object then */
    uint64_t leases_broken;

    bool is_stopping, is_running;
    struct scope attempt; /* of one try to connect */
    struct waitq stopped; /* stop() waits for the connecting fiber */
    struct waitq changes; /* the connecting fiber waits here while connected */
    bool is_closed;       /* the present peer's on_closed came */
};

/* Of an fd: what the brick knows of it. */
struct remote_fd {
    int64_t number; /* FD_ANONYMOUS: not open there */
    uint32_t generation;
    bool is_bad;   /* its locks were lost: EBADF */
    bool is_dirty; /* changed something since the last FLUSH */
    struct list locks;
};

/* late.c: calls whose caller may give up although something stays on the brick. */
enum late_kind { LATE_NOTHING, LATE_DESCRIPTOR, LATE_LOCK };

struct late_step {
    enum fop_proc proc;
    enum late_kind kind;
    struct gfid gfid;        /* of the descriptor */
    struct fop_request undo; /* of the lock; its texts are the two below */
    char *name, *domain;
};

struct late_call {
    struct rpc_call c;
    struct remote *s;
    struct call who;
    bool is_compound;
    uint32_t count;
    struct late_step steps[];
};

bool leaves_something(const struct request *q, uint32_t count);
/* c is to be sent with its on_late, which frees all. Returned; NULL for lack of memory. */
struct late_call *late_call_new(struct remote *s, const struct call *call, const struct request *q,
                                const struct fop_request *w, uint32_t count, bool is_compound) MUST_USE;
void late_call_free(struct late_call *l);
/* Its caller has given up waiting for a POSIX lock. */
void late_end_wait(struct late_call *l);
/* connect.c */
FIBER void remote_run(void *arg);
/* ops.c */
/* q as the wire has it. `steps`: the compound q is number `step` of, or NULL. 0 or -errno. */
int remote_request(struct remote *s, struct call *call, const struct request *q, const struct request *steps,
                   uint32_t step, struct fop_request *w);
/* Reads the answer into r, and keeps what is to be remembered. begun_ns: remote_lease_begin() before the request was
 * sent. The operation's result. */
int remote_answer(struct remote *s, struct call *call, const struct request *q, const struct fop_request *w,
                  struct xdr_in *in, struct buf *raw, bool is_step, uint64_t begun_ns, struct reply *r);
/* The brick sent what cannot be read: the connection is of no use. */
/* Up, down or trying, with what the brick lacks. */
void remote_tell_parents(struct remote *s, enum event_kind kind);
void remote_bad_answer(struct remote *s, const char *what);
FIBER int remote_op(struct remote *s, struct call *call, const struct request *q, struct reply *r);
/* compound.c */
FIBER int remote_compound(struct remote *s, struct call *call, const struct request *q, struct reply *r);
/* Through a compound of one step, for what a credential cannot carry. */
FIBER int remote_op_as_step(struct remote *s, struct call *call, const struct request *q, struct reply *r);
/* fds.c */
struct remote_fd *remote_fd_of(struct remote *s, struct fd *fd); /* NULL: never opened here */
/* Number to send, -EBADF when its locks were lost. */
int remote_fd_number(struct remote *s, struct fd *fd, int64_t *ret_number);
int remote_fd_opened(struct remote *s, struct fd *fd, int64_t number);
void remote_fd_release(struct translator *me, struct fd *fd, void *ctx);
void remote_release_number(struct remote *s, const struct gfid *gfid, int64_t number, bool is_dir);
/* Before q is sent: what makes the next FLUSH of its descriptors worth a message. */
void remote_fd_note(struct remote *s, const struct request *q);
/* Has this FLUSH nothing to do on the brick? */
bool remote_flush_is_idle(struct remote *s, const struct request *q);
/* A lock was granted or given back, or all of an owner's (flush). */
void remote_fd_locked(struct remote *s, struct fd *fd, const struct lock_range *range, bool is_unlock);
void remote_fd_flushed(struct remote *s, struct fd *fd, const struct lk_owner *owner);
FIBER int remote_reopen_all(struct remote *s);
/* lease.c */
struct remote_inode *remote_inode(struct remote *s, struct inode *inode, bool make); /* NULL: none, or no memory */
void remote_inode_forget(struct translator *me, struct inode *inode, void *ctx);
/* A new connection: nothing is promised on it. 0 or -ENOMEM. */
int remote_reach_new(struct remote *s);
struct reach *reach_ref(struct reach *k);
void reach_unref(struct reach *k); /* accepts NULL */
/* For remote_answer(). 0: what is answered will be no lease. */
uint64_t remote_lease_begin(const struct remote *s);
/* The brick has answered q, with success or not. */
void remote_lease_learn(struct remote *s, const struct request *q, const struct reply *r, int result,
                        uint64_t begun_ns);
void remote_lease_broken(struct remote *s, const struct gfid *gfid);
bool remote_lease(struct translator *me, struct inode *inode, struct lease *ret_lease);
/* callbacks.c */
void remote_on_call(void *arg, struct rpc_incoming *in);
