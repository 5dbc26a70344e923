/* sim/workload.h - what clients do in a simulation, checked against the model as they go. */
#pragma once

#include "sim/cluster.h"
#include "sim/model.h"

#define WORKLOAD_MAX_SPLITS 256

struct life;

struct workload_stats {
    uint64_t ops, failed, reads, kept_reads, writes, name_changes;
};

struct workload {
    struct cluster *cluster;
    struct model model;
    unsigned ops_per_client;
    unsigned finished; /* clients */
    bool is_finished;
    bool holds_files; /* opens files that others remove: workload_hold.c; before workload_prepare, without faults */
    bool locks_files; /* sections under locks: workload_lock.c; likewise */
    unsigned inside;  /* sections under way */
    bool is_rich;     /* attributes, truncation, directories and links too; set before workload_prepare */
    struct gfid dir_gfids[8], file_gfids[16];
    bool is_prepared;
    struct workload_stats stats;
    struct gfid splits[WORKLOAD_MAX_SPLITS]; /* in split brain, as heal_look says */
    unsigned split_count;
    struct life *lives[CLUSTER_MAX_CLIENTS]; /* internal */
};

int workload_init(struct workload *w, struct cluster *c, unsigned ops_per_client);
void workload_done(struct workload *w);
/* Makes directories and files through client 0, while all is well; is_prepared tells. */
void workload_prepare(struct workload *w);
/* Starts a client's life: it goes on until its operations are used up, over crashes of its process too. */
int workload_start_client(struct workload *w, unsigned client);
/* The client's process was started again after a crash: its life goes on. */
void workload_client_restarted(struct workload *w, unsigned client);
/* After quiet: a reader looks at every register through this client; acknowledged values must be there. */
void workload_verify(struct workload *w, unsigned client, bool *ret_done);
/* Looks at the disks: where replicas differ, a counter must say so. Returns the number of unmarked differences. */
unsigned workload_check_disks(struct workload *w);
/* Asks, through this process's replicate, which inodes that any disk has are in split brain: fills w->splits. Of a name
 * that leads to several inodes, these and the directory count. */
void workload_find_splits(struct workload *w, struct node *through, bool *ret_done);
bool workload_is_split(const struct workload *w, const struct gfid *gfid);
