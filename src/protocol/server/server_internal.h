/* protocol/server/server_internal.h - a brick's door; shared by the files of this folder.
 *
 *   server.c     - options, life cycle, listeners, events
 *   connection.c - one client's connection: its requests, its descriptors, its end
 *   handshake.c  - version list, SETVOLUME, GETSPEC, port map
 *   auth.c       - who may come in
 *   auth_hosts.c - host names in its lists
 *   identity.c   - as whom a request is done: squashing, groups
 *   ops.c        - one file operation, from the wire's words to the graph's and back
 *   compound.c   - several in one message
 *   volfiles.c   - volume files handed out
 *   upcalls.c    - events for clients
 *   silence.c    - clients whose host has gone without a word
 *   interest.c   - who keeps copies of what, and must hear of changes
 */
#pragma once

#include "graph/graph.h"
#include "rpc/compound.h"
#include "rpc/fops.h"
#include "rpc/peer.h"

#define FD_TABLE_MAX 1048576 /* open descriptors of one client */

struct groups_cache; /* identity.c */

struct server {
    struct translator *me;

    /* options */
    char *transport_type, *family, *listen_path, *bind_address, *volume_file, *standalone_volume;
    uint32_t port, standalone_port, backlog;
    uint32_t outstanding_limit, inode_limit, anonuid, anongid, gid_timeout_s;
    bool allows_insecure, squashes_root, squashes_all, manages_gids, has_dynamic_auth, is_strict, uses_tls;
    uint32_t keepalive_time_s, keepalive_interval_s, keepalive_count, user_timeout_s;
    bool keeps_alive;

    struct listener *tcp, *local, *standalone;
    struct list connections;
    struct timer silence; /* silence.c's; runs while there are connections to watch */
    struct waitq ended;   /* stop() waits here for connections */
    bool is_child_up;
    uint32_t caching_count; /* connections that keep copies */
    uint64_t next_id, change_number;
    struct interest *forgotten; /* interest.c: records of inodes without an object */
    uint32_t sweep_at;
    uint64_t invalidations, invalidations_late;
    struct groups_cache *groups;
    uint64_t accepted, refused, requests;
};

/* Of one client, from accept until its last request and descriptor are gone. */
struct connection {
    struct list node;
    struct server *s;
    struct rpc_peer *peer;
    bool is_standalone; /* came to the port for volume files */
    char host[64];      /* numeric; "" = unix socket */
    uint16_t port;
    bool is_gone;
    uint64_t id; /* never used again */

    /* since SETVOLUME */
    bool is_caching; /* interest.c: keeps copies and answers INVALIDATE */
    bool is_late;    /* has not answered the last one yet */
    struct client *client;
    struct translator *bound; /* the section it asked for */
    char *username, *password;
    char *subdir;
    struct gfid subdir_gfid; /* what this client calls its root; null: the root */
    bool is_trusted;
    struct dict *hosts; /* what host names in the auth lists stood for at SETVOLUME */

    struct fd **fds;
    uint32_t fd_room, fd_free; /* no slot below fd_free is free */
    uint32_t fd_count;
    uint32_t in_flight;
    struct waitq drained;
};

/* connection.c */
void connection_accept(void *arg, struct stream *stream);
void connection_accept_standalone(void *arg, struct stream *stream);
/* Slot number, or -EMFILE, -ENOMEM. Takes a reference of its own. */
int64_t connection_fd_add(struct connection *c, struct fd *fd);
struct fd *connection_fd(struct connection *c, int64_t number); /* borrowed; NULL: no such number */
/* 0 or -EBADF. */
int connection_fd_close(struct connection *c, int64_t number);

/* handshake.c; each answers and frees `in`. SETVOLUME and GETSPEC run in a fiber. */
void handshake_dump(struct connection *c, struct rpc_incoming *in);
void handshake_portmap(struct connection *c, struct rpc_incoming *in);
FIBER void handshake_call(struct connection *c, struct rpc_incoming *in);

/* auth.c: deciding only. */
struct auth_question {
    const struct dict *options; /* of the server's section */
    const char *brick;
    const char *host; /* numeric, "" = unix socket */
    uint16_t port;
    const char *username, *password, *subdir; /* may be NULL */
    bool allows_insecure, is_strict;
    const struct dict *hosts; /* "NAME/ADDRESS": what names in the lists stand for, see auth_look_up(); NULL = none */
};
enum auth_vote { AUTH_DONT_CARE, AUTH_ACCEPT, AUTH_REJECT };
enum auth_vote auth_by_address(const struct auth_question *q);
enum auth_vote auth_by_login(const struct auth_question *q);
/* May it come in? *ret_trusted: it named a user and knew the password. */
bool auth_check(const struct auth_question *q, bool *ret_trusted);

/* auth_hosts.c: for auth_question.hosts. */
FIBER int auth_look_up(struct server *s, const char *brick, struct dict **ret_hosts);

/* identity.c */
struct groups_cache *groups_cache_new(void) MUST_USE;
void groups_cache_free(struct groups_cache *cache); /* accepts NULL */
/* The call as whom the request of `cred` is done. Ends with call_done(). */
FIBER void identity_call(struct connection *c, const struct rpc_cred *cred, struct call *call);

/* silence.c */
void silence_watch(struct connection *c); /* from its first moment until its end */
void silence_reconfigured(struct server *s);

/* interest.c */
struct step;

struct change { /* the inode gfid, or the name in the directory gfid */
    struct gfid gfid;
    char *name;
};

/* What a request has changed, to be told before it is answered. */
struct changes {
    struct change *list;
    uint32_t count, room;
};

struct interest_before { /* the state when a step began */
    uint64_t change_number;
    struct gfid victims[2]; /* what the names of UNLINK, RMDIR and RENAME stood for; null: nobody cares */
};

FIBER void interest_begin(struct connection *c, struct call *call, struct step *st);
/* After the step: its client is interested in what it was told, and what it changed is added to `changes`. */
void interest_end(struct connection *c, struct step *st, int result, struct changes *changes);
/* Tells all others and waits for them; empties `changes`. */
FIBER void interest_tell(struct connection *c, struct changes *changes);
void interest_opened(struct connection *c, struct inode *inode, int by); /* 1: a descriptor more; -1: one less */
void interest_forget(struct translator *me, struct inode *inode, void *ctx);
void interest_done(struct server *s); /* no connection is left */

/* ops.c */
struct step { /* one operation while it is done */
    struct fop_request w;
    struct request q;
    struct reply r;
    struct inode *inode, *parent, *parent2, *inode2; /* references */
    struct fd *fd, *fd2;                             /* references */
    struct lock_range lock;
    int64_t number;                  /* of the descriptor that was opened */
    int64_t translated, translated2; /* descriptor numbers after FD_OF_STEP */
    struct interest_before before;
};
/* Does the operation of st->w (read before) and leaves the result in st->r, st->number. Its result. */
FIBER int step_run(struct connection *c, struct call *call, struct step *st);
void step_put_answer(struct connection *c, struct xdr_out *o, struct step *st, int result, bool is_step);
void step_done(struct step *st);
/* Answers and frees `in`. */
FIBER void serve_fop(struct connection *c, struct rpc_incoming *in);
bool step_may_wait(const struct fop_request *w); /* for other clients, without a limit */
/* A reference to the inode of a gfid, or -ESTALE, -ENOENT... */
FIBER int resolve_inode(struct connection *c, const struct gfid *gfid, struct inode **ret_inode);

/* compound.c */
FIBER void serve_compound(struct connection *c, struct rpc_incoming *in);

/* volfiles.c */
/* The volume file for a GETSPEC key: text (returned) or -ENOENT, -ENOSYS, -EIO. `host`: where the client reached us. */
FIBER int volfile_for_key(struct server *s, bool is_standalone, const char *key, const char *host, char **ret_text);

/* upcalls.c */
void upcall_send(struct server *s, const struct event *event);
