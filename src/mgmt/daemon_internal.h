/* mgmt/daemon_internal.h - what the parts of mortard share. */
#pragma once

#include "mgmt/daemon.h"
#include "rpc/peer.h"

#define CHANGE_MS           15000 /* how long a change may take to be agreed on */
#define CLIENT_PORT_DEFAULT 24007
#define JSON_MAX_BYTES      (16 * 1024 * 1024)

struct process;

struct mortard {
    struct env *env;
    const struct mortard_options *options;
    struct gfid node;        /* this machine */
    uint64_t member;         /* the same, as agreement knows it */
    struct cluster *cluster; /* what is served: `replica`, or until that is as new, what was known at the last end */
    struct cluster *replica; /* what agreement has told since the start */
    uint64_t kept_index;     /* of what was known at the last end */
    struct journal *journal;
    struct consensus *consensus;
    uint64_t joined_ns;         /* since when it waits to be a member; 0: it is one */
    bool is_changing_cluster;   /* between two of them: agreement is stopped */
    struct waitq state_changed; /* after every change that was applied, and when there is another leader */
    uint64_t changes;           /* applied since the start */

    /* links.c */
    uint8_t secret[32];
    unsigned attempts; /* connections being made */
    bool is_linking;
    struct waitq links_wanted;

    /* server.c */
    struct listener *tcp, *local;
    struct list connections;
    struct waitq connection_ended;

    /* bricks.c, reconcile.c */
    struct list processes;
    struct waitq reconcile_wanted, reconciled;
    uint64_t wanted, done; /* how often it was asked for, and up to which of these it has answered */
    bool is_reconciling, is_forced;
    unsigned heals; /* that were asked for and are under way */

    struct scope life;
    bool is_stopping;
    char why_stopped[256];
    struct waitq ending;
};

/* ---- daemon.c ---- */

/* Proposes a change and waits until it is applied here. 0, or -errno with a sentence: what the change was refused for, or
 * that there is no majority. `change` is borrowed. */
FIBER int mortard_change(struct mortard *d, const json_t *change, struct error *err);
/* Who leads; waits for an election. 0, or -ENOTCONN with GlusterFS's sentence for a lost quorum. */
FIBER int mortard_find_leader(struct mortard *d, struct gfid *ret_node, struct error *err);
/* Until the change of this index is applied here. 0, -ETIMEDOUT, -ECANCELED. */
FIBER int mortard_wait_applied(struct mortard *d, uint64_t index);
/* Forgets the cluster of one that this machine is, and waits to be made a member of the one that has this secret; if that
 * does not happen in a while, it is a cluster of one again. */
FIBER int mortard_join(struct mortard *d, const uint8_t secret[static 32], struct error *err);
/* Looks whether a join that was begun has come to an end; now and then (reconcile.c). */
FIBER void mortard_look_joined(struct mortard *d);
/* Is a cluster of one again, without volumes. */
FIBER int mortard_leave(struct mortard *d, struct error *err);
/* The number by which agreement knows a machine. */
static inline uint64_t member_of(const struct gfid *node)
{
    return get_be64(node->bytes) | 1; /* never 0 */
}
/* Serves what agreement has told, once that is as new as what was kept. */
void mortard_adopt(struct mortard *d);
/* What is served, as text to be kept for the next start. Returned; NULL for lack of memory, or when it is old itself. */
char *mortard_state_text(struct mortard *d) MUST_USE;
/* "FOLDER/a/b": returned, NULL for lack of memory. */
char *work_path(const struct mortard *d, const char *rest) MUST_USE;

/* ---- server.c ---- */

struct connection {
    struct list node; /* d->connections */
    struct mortard *d;
    struct rpc_peer *peer;
    bool is_local;    /* over the socket: may do everything */
    bool is_trusted;  /* an address of this cluster */
    char *volume_key; /* the volume file it has; NULL: none */
    uint64_t volume_hash;
    unsigned under_way;
    char host[64]; /* its address; "": a socket */

    /* another machine of the cluster (links.c) */
    bool is_proven;
    struct gfid node_id;
    struct gfid claimed; /* while it is not proven */
    uint8_t my_nonce[16], their_nonce[16];
};

/* A connection over the network; the stream is given. Borrowed; it goes when it is closed and nothing of it is under way.
 * NULL: no memory, or the daemon ends. */
struct connection *connection_new(struct mortard *d, struct stream *stream);
FIBER int server_open(struct mortard *d, struct error *err);
FIBER void server_close(struct mortard *d);
/* Volume files may have changed: tells the connections whose file is another one now. */
void server_tell_volume_files(struct mortard *d);

/* ---- bricks.c ---- */

#define WHY_BYTES 256

/* Runs a program that ends, or goes into the background when it works, and waits for that. 0, or -errno and the last line
 * it said. `words` end with NULL. */
FIBER int program_run(struct mortard *d, char *const *words, char why[static WHY_BYTES]);

enum process_state { PROCESS_STARTING, PROCESS_UP, PROCESS_DOWN };

struct process {
    struct list node; /* d->processes */
    struct mortard *d;
    char *key;            /* "brick V.HOST.path" or "heal V" */
    char *volume, *brick; /* brick: its path; NULL: a heal daemon */
    char *pid_file;
    enum process_state state;
    int pid;
    uint16_t port;
    unsigned failures;   /* starts in a row that failed, or ended soon */
    uint64_t retry_ns;   /* not to be tried before */
    uint64_t started_ns; /* by us; 0: it was running before */
    char why[256];       /* it is down; "" if it was not tried */
    bool is_wanted;
};

/* The process; NULL: none. */
struct process *process_find(const struct mortard *d, const char *key);
/* Starts it, or finds it running from before. 0, or -errno; p->why says it. */
FIBER int process_start(struct process *p, char *const *words);
FIBER void process_stop(struct process *p);
/* Does it still run? Its state is set. */
bool process_look(struct process *p);
/* The port in its arguments; 0: none. */
uint16_t process_port(const struct process *p);
void process_free(struct process *p);
/* Is pid a process that has `word` among its arguments? */
bool pid_has_word(int pid, const char *word);

/* ---- reconcile.c ---- */

void reconcile_start(struct mortard *d);
/* Something changed: soon. */
void reconcile_soon(struct mortard *d);
/* Now, and waits for it. `forced`: processes that failed are tried at once. */
FIBER void reconcile_now(struct mortard *d, bool forced);
char *brick_key(const struct volume *v, unsigned brick) MUST_USE;

/* ---- heal.c ---- */

/* Says of bricks of a started volume that they lack everything, so that heal fills them. What could not be said is in the
 * log: it can be said again with mortar-heal mark-brick. `bricks`: ["HOST:/path"...]. */
FIBER void heal_mark_bricks(struct mortard *d, const char *volume, const json_t *bricks);

/* ---- command.c ---- */

/* Answers a request; new reference. */
FIBER json_t *command_run(struct mortard *d, const json_t *request, bool is_local);
