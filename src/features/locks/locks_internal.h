/* features/locks/locks_internal.h - what the files of this translator share.
 *
 * locks.c    options, passing operations on, life cycle      queue.c   inodelk and entrylk
 * ranges.c   POSIX ranges of one inode, pure                 posix.c   lk, mandatory locking
 * report.c   counts for xdata, clear-locks, statedump
 */
#pragma once

#include "core/mem.h"
#include "features/locks/locks.h"
#include "graph/graph.h"

enum mandatory_mode { MANDATORY_OFF, MANDATORY_FILE, MANDATORY_FORCED, MANDATORY_OPTIMAL };

struct locks {
    uint32_t mandatory; /* enum mandatory_mode */
    bool trace;
    uint32_t revocation_s;
    uint32_t revocation_max_blocked;
    bool revocation_clears_all;
    bool notifies;
    uint32_t notify_delay_s;
    uint32_t reclaim_grace_s;

    struct list local_cluster; /* locks of callers without a client (same process) */
    struct list local_posix;
    struct list contended;     /* lock_domain.of_contended: somebody waits */
    struct list posix_waiting; /* posix_lock.of_waiting: all inodes, for deadlock detection */
    struct list marked;        /* posix_lock.marked: work list of deadlock detection, else empty */
    struct timer tick;         /* runs while somebody waits: notices, revocation, overtaking */
    bool in_grace;
    struct timer grace_timer;
    struct waitq grace; /* fresh requests wait here until it is over */
    uint64_t revoked, contentions;
};

/* A fiber that waits for a lock. Lives on its stack; whoever grants or drops the lock settles it. */
struct lock_waiter {
    struct waitq q;
    bool is_settled;
    int result;
};

enum lock_kind { LOCK_OF_INODE, LOCK_OF_ENTRY };

/* An inodelk or entrylk, granted or waiting. */
struct cluster_lock {
    struct list of_domain;
    struct list of_client;
    struct lock_domain *domain;
    struct client *client; /* a reference, or NULL */
    struct lk_owner owner;
    int32_t pid;
    enum lock_type type;
    uint64_t start, end; /* inodelk; end inclusive */
    char *name;          /* entrylk; NULL = all names */
    uint64_t since_ns;   /* granted, or began to wait */
    uint64_t noticed_ns;
    bool was_noticed;
    struct lock_waiter *waiter; /* NULL: granted */
};

/* Exists while it has locks. */
struct lock_domain {
    struct list of_inode;
    struct list of_contended;
    enum lock_kind kind;
    char *name;
    struct inode *inode; /* a reference: keeps the slot alive */
    struct list granted, waiting;
    uint32_t granted_count, waiting_count;
};

/* A POSIX lock, or a request for one, or (is_probe) a read or write that waits for a mandatory lock to go. */
struct posix_lock {
    struct list of_inode;
    struct list of_client;
    struct list of_waiting;
    struct list marked; /* deadlock detection */
    struct inode *inode;
    struct client *client; /* a reference, or NULL */
    struct lk_owner owner;
    int32_t pid;
    enum lock_type type;
    uint64_t start, end;
    bool is_mandatory;
    bool is_probe;
    const struct fd *fd; /* compared only: what it was taken through */
    uint64_t since_ns;
    struct lock_waiter *waiter;
    struct posix_lock *spare; /* of a waiting one: what a split needs */
};

/* Slot of an inode. */
struct lock_inode {
    struct list domains;
    struct list posix_granted, posix_waiting;
    bool is_pinned; /* POSIX locks hold one inode reference */
    bool is_new;    /* made since the brick started: nothing to reclaim */
};

/* Slot of a client. */
struct lock_client {
    struct list cluster, posix;
};

/* ---- locks.c ---- */
struct lock_inode *lock_inode_find(struct translator *me, struct inode *inode); /* NULL: no locks */
struct lock_inode *lock_inode_get(struct translator *me, struct inode *inode);  /* NULL: no memory */
/* The list a new lock of this client goes on. 0, -ENOTCONN (the client is gone) or -ENOMEM. */
int lock_list_of(struct translator *me, struct client *client, bool is_posix, struct list **ret_list);
/* Drops the slot's object when it holds no more. */
void lock_client_put(struct translator *me, struct client *client);
void waiter_init(struct lock_waiter *w);
void waiter_settle(struct lock_waiter *w, int result);
/* The tick will run within delay_ms. */
void locks_tick_within(struct translator *me, uint64_t delay_ms);
/* [start, start + length) as an inclusive range; length 0 = to the end. 0 or -EINVAL. */
int lock_range_end(const struct lock_range *range, uint64_t *ret_end);

/* ---- queue.c ---- */
FIBER int locks_inodelk(struct translator *me, struct call *call, const struct request *q, struct reply *r);
FIBER int locks_entrylk(struct translator *me, struct call *call, const struct request *q, struct reply *r);
/* Takes the lock out, whatever its state, and serves the queue. A waiter gets `result`. */
void cluster_lock_drop(struct translator *me, struct cluster_lock *lock, int result);
void cluster_tick(struct translator *me);

/* ---- ranges.c ---- */
static inline bool ranges_overlap(uint64_t a_start, uint64_t a_end, uint64_t b_start, uint64_t b_end)
{
    return a_start <= b_end && b_start <= a_end;
}
bool posix_same_owner(const struct posix_lock *a, const struct posix_lock *b);
bool posix_conflict(const struct posix_lock *a, const struct posix_lock *b);
/* Makes `want` (type NONE: unlock) part of the owner's ranges in `granted`. `want` and `spare` are given: the list or
 * `dead` has them afterwards; what fell away is on `dead` (linked by of_inode), for the caller to free. */
void posix_ranges_apply(struct list *granted, struct posix_lock *want, struct posix_lock *spare, struct list *dead);
/* First granted lock in the way of `want`, or NULL. */
struct posix_lock *posix_ranges_conflict(struct list *granted, const struct posix_lock *want);

/* ---- posix.c ---- */
FIBER int locks_lk(struct translator *me, struct call *call, const struct request *q, struct reply *r);
FIBER int locks_getactivelk(struct translator *me, struct call *call, const struct request *q, struct reply *r);
/* 0, or -EAGAIN / an error of waiting: may this operation touch the range? `flags`: O_NONBLOCK of the request. */
FIBER int locks_mandatory_check(struct translator *me, struct call *call, const struct request *q, enum lock_type type,
                                uint64_t start, uint64_t end);
bool locks_has_foreign_posix(struct translator *me, struct call *call, struct inode *inode);
/* All locks of this owner (owner NULL: any; fd NULL: any) on the inode go; requests that wait stay. */
void posix_drop(struct translator *me, struct inode *inode, const struct client *client, const struct lk_owner *owner,
                const struct fd *fd);
void posix_client_gone(struct translator *me, struct client *client);
/* Ends waiting requests (owner NULL: of everybody; range NULL: any), returns how many. */
uint32_t posix_drop_waiting(struct translator *me, struct inode *inode, const struct client *client,
                            const struct lk_owner *owner, const struct lock_range *range, int result);
uint32_t posix_clear_granted(struct translator *me, struct inode *inode, const struct lock_range *range);
void posix_tick(struct translator *me);
void locks_grace_start(struct translator *me);
void locks_grace_end(void *arg); /* translator */

/* ---- report.c ---- */
/* Adds the lock counts that q->xdata asks for to r->xdata. 0 or -ENOMEM. */
int locks_answer_counts(struct translator *me, const struct request *q, struct reply *r);
/* Is it one of our virtual names? Then the answer is in r and *ret_result. */
bool locks_virtual_getxattr(struct translator *me, struct call *call, const struct request *q, struct reply *r,
                            int *ret_result);
void locks_dump(struct translator *me, struct dump *out);
