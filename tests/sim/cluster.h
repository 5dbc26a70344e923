/* sim/cluster.h - bricks, clients and heal daemons of one simulated volume, their graphs from volume files, started and
 * killed.
 *
 * A heal daemon lives on the host of its brick, as a process of its own: it may die alone, and dies with the host. */
#pragma once

#include "core/env_sim.h"
#include "graph/graph.h"
#include "sim/converge.h"
#include "sim/simdisk.h"
#include "sim/tap.h"

#define CLUSTER_MAX_BRICKS  5u
#define CLUSTER_MAX_CLIENTS 6u
#define CLUSTER_PORT        24100

enum sabotage {
    SABOTAGE_NONE,
    SABOTAGE_NO_DIRTY,    /* dirty and pending marks never reach the disk */
    SABOTAGE_SERVE_STALE, /* what bricks blame is hidden from readers */
    SABOTAGE_NO_WITNESS,  /* the witness answers that it has blamed a brick, and has not */
    SABOTAGE_FALSE_LEASE, /* leases that nothing ends */
    /* of heal daemons */
    SABOTAGE_NO_SYNC,      /* healed data is not synced before the counters go */
    SABOTAGE_WRONG_SOURCE, /* what two bricks blame on each other is exchanged */
    SABOTAGE_NO_NEW_MARKS, /* an inode that heal makes is not marked as incomplete */
    SABOTAGE_EARLY_UNLOCK, /* locks go as soon as they were granted */
    SABOTAGE_COUNT,
};

extern const char *const sabotage_names[SABOTAGE_COUNT]; /* as in saboteur.c and on the command line */

struct cluster_config {
    uint64_t seed;
    unsigned bricks, clients;
    const char *quorum; /* "auto", "none" */
    bool has_arbiter;   /* the last of three bricks keeps no data */
    bool has_witness;   /* a thin arbiter beside two bricks; it is bricks[2] */
    bool has_healers;   /* a heal daemon per brick */
    bool clients_heal;  /* on access */
    bool is_granular;   /* bricks keep the names that others missed */
    enum sabotage sabotage;
    bool verbose;
};

enum node_kind { NODE_BRICK, NODE_CLIENT, NODE_HEALER, NODE_WITNESS };

struct node {
    struct cluster *cluster;
    struct env *env; /* NULL: not running */
    struct graph *graph;
    char host[32];
    enum node_kind kind;
    unsigned index;
    bool is_up, is_starting;
    struct simdisk_host disk; /* bricks, witness */
    struct tap tap;           /* others */
    unsigned starts;
};

struct cluster {
    struct cluster_config config;
    struct sim *sim;
    struct log *log;
    struct node bricks[CLUSTER_MAX_BRICKS];
    struct node clients[CLUSTER_MAX_CLIENTS];
    struct node healers[CLUSTER_MAX_BRICKS];
    bool times_may_differ; /* set last, not synced, lost with the power; left out after I/O errors; or split brain */
    char error[512];
};

/* Bricks, and the witness behind them. */
static inline unsigned cluster_brick_nodes(const struct cluster *c)
{
    return c->config.bricks + c->config.has_witness;
}

int cluster_new(const struct cluster_config *config, struct cluster **ret_cluster);
void cluster_free(struct cluster *c);

/* Starts the process and its graph (in a fiber of its own; is_up tells when it is done). */
void node_start(struct node *n);
/* The process dies now: killed (the disk stays as it is) or by a power cut (unsynced changes are lost by chance). */
void node_kill(struct node *n);
void node_power_cut(struct node *n);
/* An empty disk in place of the brick's, and on all others the marks that say so (as replace-brick leaves them). The
 * brick must not run. */
void node_replace_disk(struct node *brick);
/* Something is done to the brick's disk behind its back (sim/damage.h). The brick must not run. */
void node_damage(struct node *brick);
/* Are all bricks equal (sim/converge.h)? report may be NULL; is_split of it is used. */
bool cluster_has_converged(struct cluster *c, struct converge *report);
/* What each disk holds, as text on standard error: names, inodes, counters, index. For whoever looks at a failing seed. */
void cluster_dump(struct cluster *c);
/* Runs the cluster until *flag, or for that long. */
bool cluster_run_until(struct cluster *c, const bool *flag, uint64_t max_ns);
