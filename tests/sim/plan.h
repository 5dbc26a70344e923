/* sim/plan.h - a kind of cluster, its faults and what must hold; runs it for many seeds and prints TAP.
 *
 * A run: the cluster comes up, directories and files are made, clients work while faults come and go, the last fault
 * ends. With heal daemons the bricks must then become equal within HEAL_BOUND_S of virtual time, but for inodes whose
 * split brain is reported, where the plan allows any. At last a reader looks at everything.
 */
#pragma once

#include "sim/faults.h"

#define SIM_SECOND   1000000000ull
#define HEAL_BOUND_S 900 /* from the end of the last fault until all is equal */

struct plan {
    const char *name;
    struct cluster_config config; /* seed is set by each run */
    int victim;                   /* -1: any brick suffers */
    bool kills_clients, replaces_disks;
    bool only_power_cuts;          /* faults.h */
    bool heals_late;               /* heal daemons are started after the last fault */
    bool is_rich;                  /* workload.h */
    bool holds_files, locks_files; /* workload.h; no faults */
    bool may_split;                /* inodes may end in split brain, if reported; if any brick suffers, see model.h */
    bool witness_suffers_too;      /* not only in its turn */
    bool may_stay_unequal;         /* healed as far as it goes; whether all becomes equal is not asked */
    bool damages;                  /* when all is healed, one brick behind its back; healed by order */
    unsigned ops;                  /* per client */
};

struct seeds {
    uint64_t first, last;
};

struct result {
    bool is_broken; /* the harness itself failed */
    uint64_t violations, checks;
    struct workload_stats stats;
    uint64_t steps;
    uint64_t heal_ms; /* virtual time from the last fault until all was equal */
    unsigned splits;  /* inodes that stayed in split brain, reported */
    char first[512];
};

/* Bricks, clients and (with_healers) heal daemons are started and connected. */
bool plan_bring_up(struct cluster *c, bool with_healers);
/* Waits until all bricks are equal, but for split brains that are found so far: at most HEAL_BOUND_S; else a violation.
 * What was appended, or attributes that were set, and not synced go with the power, and no mark says so (who looks
 * sees it): with had_power_cut somebody orders that all is looked at, but only when nothing else is left to heal. */
void plan_wait_for_heal(struct cluster *c, struct workload *w, bool had_power_cut, bool may_split);
void plan_run_seed(const struct plan *plan, uint64_t seed, struct result *ret);

struct plan_table {
    const char *program;
    const struct plan *plans; /* with sabotage: the checks must notice */
    unsigned count;
    uint64_t seeds_short, seeds_long; /* of each plan: in `make test`, in `make test-long` */
};

/* The whole of a program that runs plans; replicate_sim.c describes its command line. */
int plan_main(const struct plan_table *table, int argc, char **argv);
