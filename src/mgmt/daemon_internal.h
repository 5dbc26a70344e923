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
    struct gfid node; /* this machine */
    uint64_t member;  /* the same, as agreement knows it */
    struct cluster *cluster;
    struct journal *journal;
    struct consensus *consensus;
    struct waitq state_changed; /* after every change that was applied, and when there is another leader */
    uint64_t changes;           /* applied since the start */

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
};

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
