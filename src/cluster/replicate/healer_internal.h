/* cluster/replicate/healer_internal.h - when heal runs: the queue of heals, crawls of a heal daemon, heals of a client.
 *
 *   heal_queue.c   inodes that wait for heal, workers that heal them, what cannot be healed now
 *   heal_crawl.c   the heal daemon: when to crawl, the indices of the bricks, statistics
 *   heal_walk.c    the whole tree, with a mark from which it can be gone on with
 *   heal_daemon.c  what heal_daemon.h says
 *
 * Nouns. A `job` is an inode that waits for heal or is being healed; there is one at most per inode. A `trouble` is an
 * inode that could not be healed: it is tried again after a pause that doubles, or when a brick comes or goes; until
 * then crawls pass it by. It is logged when it comes up and not again for the same reason.
 */
#pragma once

#include "cluster/replicate/heal.h"
#include "cluster/replicate/replicate_internal.h"
#include <uthash.h>

#define TROUBLES_MAX       65536                     /* more are healed or tried as crawls find them */
#define TROUBLE_FIRST_MS   1000                      /* pause before the first repetition; doubles ... */
#define TROUBLE_LONGEST_MS 600000                    /* ... up to this */
#define CRAWLS_KEPT        50                        /* as GlusterFS */
#define CHECKPOINT_KEY     "trusted.afr.mortar-walk" /* on the root of each brick; heal leaves trusted.afr.* alone */

struct heal_tally {
    uint64_t found, healed, failed, split;
    uint64_t bytes_compared, bytes_copied;
};

struct heal_job {
    struct gfid gfid;
    uint32_t type;  /* S_IFMT bits or 0 */
    uint32_t flags; /* enum heal_flag */
    int found_on;   /* child whose index or tree had it; -1: none */
    bool is_running;
    bool again;       /* was asked for while it ran */
    struct list node; /* of waiting, while it waits */
    UT_hash_handle hh;
};

struct heal_trouble {
    struct gfid gfid;
    enum heal_outcome outcome;
    int error;
    int child; /* whose error it is; -1: not known */
    uint32_t tries;
    uint64_t next_ns;    /* not before */
    uint64_t generation; /* of the replica set when it was tried */
    uint64_t crawl;      /* the last one that listed it */
    bool is_listed;      /* by an index; else a walk found it */
    int64_t since_s;     /* wall clock */
    char *path;          /* or NULL */
    UT_hash_handle hh;
};

struct heal_crawl {
    int64_t start_s, end_s; /* end 0: under way */
    bool is_full;
    struct heal_tally tally;
    uint64_t start_ns;
    uint64_t expected; /* entries in the index at the start */
};

/* Crawls of one child; the last one is the present one. */
struct heal_history {
    struct heal_crawl crawl[CRAWLS_KEPT];
    unsigned first, count;
};

struct heal_worker {
    struct call call;
    struct list node;
};

struct healer {
    struct translator *me;

    /* the queue */
    struct heal_job *jobs;
    struct list waiting;
    unsigned waiting_count, running_count;
    struct list workers;
    struct waitq changes; /* room came, or a job ended */
    struct heal_trouble *troubles;
    unsigned trouble_count;
    struct heal_tally all; /* since the start */

    /* the daemon */
    struct heal_history *history; /* by child; NULL: not a daemon */
    bool is_crawling, is_walking, has_main;
    uint64_t crawl_number;
    bool wants_index, wants_full, is_ordered; /* ordered: by a person, at once */
    uint64_t last_ns;                         /* when the last index crawl ended */
    uint64_t pause_ms;                        /* after it, before one that only a notice asks for */
    uint64_t retry_ns;                        /* when a trouble is to be tried again; 0: none */
    struct waitq wake;
    struct call call; /* of the crawling fiber; cancelled at stop */
    bool stops_walk;
    uint32_t local; /* children whose indices are ours to crawl */
    bool is_stopping;
};

/* ---- the queue (heal_queue.c) ---- */

/* Queues the inode; 0, -EALREADY (it waits or runs; a running one runs again), -EAGAIN (it is in trouble and its time
 * has not come), -ENOBUFS (the queue is full), -ENOMEM, -ESHUTDOWN. Does not suspend. */
int heal_queue_add(struct translator *me, const struct gfid *gfid, uint32_t type, uint32_t flags, int found_on);
/* The same, but waits for room. -ECANCELED at stop. */
FIBER int heal_queue_add_waiting(struct translator *me, struct call *call, const struct gfid *gfid, uint32_t type,
                                 uint32_t flags, int found_on);
/* Until no job waits or runs. 0 or -ECANCELED. */
FIBER int heal_queue_drain(struct translator *me, struct call *call);
struct heal_trouble *heal_trouble_find(struct healer *h, const struct gfid *gfid);
/* Troubles are to be tried again at once. */
void heal_troubles_retry(struct healer *h);
/* Those that the present crawl has not listed are no troubles any more: somebody else healed or removed them. */
void heal_troubles_forget_unlisted(struct healer *h);
/* A brick lacks the inode until its directory is healed: it is tried again as soon as something has been healed. */
bool heal_trouble_is_early(const struct translator *me, const struct heal_trouble *t);
/* When the first of those that failed is to be tried again; 0: none. */
uint64_t heal_troubles_next_ns(struct healer *h);

/* ---- the daemon (heal_crawl.c, heal_walk.c) ---- */

/* The one of the child that is under way, or NULL. */
struct heal_crawl *heal_crawl_of(struct healer *h, int child, bool is_full);
void heal_tally_add(struct healer *h, const struct heal_job *job, const struct heal_report *report);
/* A walk lets the indices go first. */
FIBER void heal_index_if_due(struct translator *me);
/* The whole tree. 0: all of it; -ECANCELED, or why it could not go on: what was done is kept in a mark. */
FIBER int heal_walk(struct translator *me, struct call *call);
/* Has a walk that was not ended left a mark? */
FIBER bool heal_walk_is_unfinished(struct translator *me, struct call *call);
/* Path of the inode as a child knows it, for people. Returned, or NULL. */
FIBER char *heal_path_of(struct translator *me, struct call *call, uint32_t children, struct inode *inode);
