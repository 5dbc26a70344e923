/* sim/faults.h - what goes wrong in a simulation, when, and that it ends.
 *
 * One fault at a time: it begins, lasts a seeded while, and is repaired; then a seeded pause. With `victim` >= 0 only
 * that brick and its links are ever hurt (two bricks without quorum cannot stand more: whoever is away last decides).
 */
#pragma once

#include "sim/workload.h"

struct faults {
    struct cluster *cluster;
    struct workload *workload;
    int victim;          /* -1: any brick */
    bool spares_witness; /* another struct faults hurts it at the same time */
    bool kills_clients;
    bool has_healers;     /* that run, and die too */
    bool replaces_disks;  /* when all copies are equal: the empty one is then the only failure */
    bool only_power_cuts; /* of the victim, soon after it came back */
    bool cuts_lose;       /* a power cut may hit the only good copy: what was not synced may go */
    bool is_stopping;     /* no new ones */
    bool is_quiet;        /* stopped, and the last one is repaired */
    unsigned kind, brick, client;
    uint64_t count[12];
};

void faults_start(struct faults *f);
void faults_stop(struct faults *f);
bool faults_cut_power(const struct faults *f); /* at any time */
