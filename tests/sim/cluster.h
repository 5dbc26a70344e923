/* sim/cluster.h - bricks and clients of one simulated volume, their graphs from volume files, started and killed. */
#pragma once

#include "core/env_sim.h"
#include "graph/graph.h"
#include "sim/simdisk.h"

#define CLUSTER_MAX_BRICKS  5u
#define CLUSTER_MAX_CLIENTS 6u
#define CLUSTER_PORT        24100

enum sabotage {
    SABOTAGE_NONE,
    SABOTAGE_NO_DIRTY,    /* dirty and pending marks never reach the disk */
    SABOTAGE_SERVE_STALE, /* what bricks blame is hidden from readers */
};

struct cluster_config {
    uint64_t seed;
    unsigned bricks, clients;
    const char *quorum; /* "auto", "none" */
    enum sabotage sabotage;
    bool verbose;
};

struct node { /* a brick or a client */
    struct cluster *cluster;
    struct env *env; /* NULL: not running */
    struct graph *graph;
    char host[32];
    unsigned index;
    bool is_brick, is_up, is_starting;
    struct simdisk_host disk; /* bricks */
    unsigned starts;
};

struct cluster {
    struct cluster_config config;
    struct sim *sim;
    struct log *log;
    struct node bricks[CLUSTER_MAX_BRICKS];
    struct node clients[CLUSTER_MAX_CLIENTS];
    char error[512];
};

int cluster_new(const struct cluster_config *config, struct cluster **ret_cluster);
void cluster_free(struct cluster *c);

/* Starts the process and its graph (in a fiber of its own; is_up tells when it is done). */
void node_start(struct node *n);
/* The process dies now: killed (the disk stays as it is) or by a power cut (unsynced changes are lost by chance). */
void node_kill(struct node *n);
void node_power_cut(struct node *n);
/* Runs the cluster until *flag, or for that long. */
bool cluster_run_until(struct cluster *c, const bool *flag, uint64_t max_ns);
