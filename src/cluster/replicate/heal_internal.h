/* cluster/replicate/heal_internal.h - the parts of the heal engine and what they hand to each other.
 *
 *   heal.c           one inode: what is wanted, order, report; looking only
 *   heal_judge.c     pure decisions
 *   heal_ask.c       answers of children as plain data; the steps that are the same for every class
 *   heal_lock.c      locks of the self-heal domain and of the main domain
 *   heal_undo.c      counters taken off after success
 *   heal_data.c heal_metadata.c heal_entry.c   the classes
 *   heal_name.c      one name: looking, taking it away from and making it on a sink
 *   heal_listing.c   names of a directory on one child
 *   heal_anonymous.c names put aside
 *
 * Every class goes the same way, and its function returns 0 with its part of the report filled, or an error that ends the
 * whole heal (-ENOMEM, -ECANCELED, -ETIMEDOUT):
 *
 *     heal_lock(h, &healers)            self-heal domain; busy: HEAL_BUSY
 *     heal_lock(h, &main)               main domain, all of the class; children locked on both take part
 *       heal_ask, heal_judge_...        decided under the lock: h->round
 *     heal_unlock(h, &main)
 *     ...copy, window by window, each under its own main lock and heal_still_good()
 *     sync the sinks
 *     heal_lock(h, &main)
 *       heal_undo(h)                    exactly the counters of h->round.answers
 *     heal_unlock(h, &main); heal_unlock(h, &healers)
 */
#pragma once

#include "cluster/replicate/heal.h"
#include "cluster/replicate/heal_judge.h"
#include "cluster/replicate/replicate_internal.h"

#define HEAL_LOCK_WAIT_MS  120000 /* a client must give way by then; then the heal is HEAL_BUSY */
#define ANONYMOUS_NAME_MAX 72     /* bytes, with the NUL */

/* One class of one inode, from the decision to the undo. */
struct heal_round {
    enum change change;
    struct heal_answers *answers; /* as they were when the decision was made: what undo takes off. Owned */
    struct heal_judgement judged;
    uint32_t healed; /* sinks that are equal to the sources and whose copy is on disk; set by the class */
};

struct heal {
    struct translator *me;
    struct list of_all;   /* s->heals */
    struct call *waiting; /* of the fiber that waits for locks, or NULL; cancelled at stop */
    struct call *caller;  /* who asked; its scope ends the heal */
    struct call call; /* ours: root, PID_SELF_HEAL, an lock owner of its own, the caller's deadline and cancellation */
    struct inode *inode;
    const struct heal_how *how;
    struct heal_report *report;
    struct heal_set set;
    struct heal_round round;      /* of the class under way */
    uint32_t epoch[CHILDREN_MAX]; /* of children when the heal began: who went away since takes no part any more */
    uint32_t has_anonymous;       /* children known to have the directory for names put aside */
    struct fiber_mutex links;     /* names of inodes with several names are made one after the other */
};

/* Fills it; call heal_done() in the end. 0 or -ENOMEM, -ENOTCONN (too few children are up). */
int heal_begin(struct heal *h, struct translator *me, struct call *caller, struct inode *inode,
               const struct heal_how *how, struct heal_report *report);
void heal_done(struct heal *h);

/* Children that are up and have been since heal_begin. */
uint32_t heal_present(const struct heal *h);
/* Starts a class: h->round and its part of the report are empty afterwards. */
void heal_class_begin(struct heal *h, enum change change);
/* After the decision: writes it to the report. true: there is something to make equal or to undo (HEAL, MERGE). false: the
 * outcome is in the report. */
bool heal_decided(struct heal *h);
/* Ends a class. Errors that end the whole heal are returned (-ENOMEM, -ECANCELED, -ETIMEDOUT); others become its outcome:
 * -EAGAIN busy, the rest left, with the sinks that stay as they are. */
int heal_class_end(struct heal *h, int result);
/* The end of the whole: h->report->outcome from those of the classes, or from the error that ended it. */
void heal_report_end(struct heal *h, int result);
/* The report of the class under way. */
struct heal_class_report *heal_class(struct heal *h);
/* Notes an error of a child in the report (the last one stays); result >= 0 is nothing. */
void heal_note(struct heal *h, unsigned child, int result);
/* Notes what every target answered; returns the mask of those that succeeded. */
uint32_t heal_note_fan(struct heal *h, const struct fan *fan);
/* 0, or -ECANCELED, -ETIMEDOUT: the asker gave up, or the graph stops. */
int heal_check(struct heal *h);
/* Asks how->pace, if there is one. 0 or a negative errno to end with. Call without main-domain locks. */
FIBER int heal_pace(struct heal *h, uint64_t bytes, uint32_t names);

/* ---- locks (heal_lock.c) ---- */

enum heal_lock_kind {
    HEAL_LOCK_HEAL_DATA,  /* self-heal domain, inode lock of everything: serialises healers */
    HEAL_LOCK_HEAL_ENTRY, /* self-heal domain, all names */
    HEAL_LOCK_MOVE,       /* a domain of our own: while a name of an inode is taken away because it has another */
    HEAL_LOCK_DATA,       /* main domain, [offset, offset + length), length 0: to the end */
    HEAL_LOCK_METADATA,   /* main domain, the range of attributes */
    HEAL_LOCK_NAMES,      /* main domain, all names of a directory */
    HEAL_LOCK_NAME,       /* main domain, one name */
};

struct heal_lock {
    enum heal_lock_kind kind;
    struct inode *inode;     /* borrowed while it is held */
    struct fd *fd;           /* by which the inode is reached if its name is gone; may be NULL; borrowed */
    uint64_t offset, length; /* HEAL_LOCK_DATA */
    const char *name;        /* HEAL_LOCK_NAME; borrowed */
    uint32_t held;           /* children; of those that went away since, the lock is gone: use heal_holders() */
    uint32_t epoch[CHILDREN_MAX];
};

/* Takes the lock on all of `children`: at once without waiting; where somebody is in the way, one child after the other in
 * order. Self-heal domain: waits only if we got a majority at the first try, else -EAGAIN (another healer is at it).
 * 0 when enough (heal_is_enough) are held: unlock them; or -EAGAIN, -ENOTCONN, -ECANCELED, -ETIMEDOUT, -ENOMEM with
 * nothing held. */
FIBER int heal_lock(struct heal *h, struct heal_lock *lock, uint32_t children);
/* Gives back what is held, also when the call was cancelled. Accepts one that is not held. */
FIBER void heal_unlock(struct heal *h, struct heal_lock *lock);
/* Of the children held, those still connected as they were. */
uint32_t heal_holders(const struct heal *h, const struct heal_lock *lock);

/* ---- asking (heal_ask.c) ---- */

struct heal_answers *heal_answers_new(void) MUST_USE; /* returned */
void heal_answers_free(struct heal_answers *a);       /* accepts NULL */
DEFINE_SCOPED(heal_answers_free, struct heal_answers)
/* Looks the inode up by gfid on `children` with all counters. 0 (whatever they answered) or -ENOMEM. */
FIBER int heal_ask(struct heal *h, struct inode *inode, uint32_t children, struct heal_answers *ret);
/* The same, and whether a healer is at it: ret->healing. */
FIBER int heal_ask_healers(struct heal *h, struct inode *inode, uint32_t children, struct heal_answers *ret);
/* The same for a name in a directory. */
FIBER int heal_ask_name(struct heal *h, struct inode *parent, const char *name, uint32_t children,
                        struct heal_answers *ret);
/* Under a new main-domain lock: is what was decided in h->round still so? The counters of `children` (that hold the lock)
 * are read again; returns the children that may still take part: those that answered, less sinks that are gone. 0 when the
 * source is among them no more or somebody blames it now (its copy missed something while we worked: end this heal, its
 * counters stay). */
FIBER uint32_t heal_still_good(struct heal *h, uint32_t children);

/* What was changed of the inode (fd may be NULL) is on disk on the children returned. What cannot be synced (directories
 * of GlusterFS bricks, special files) and option ensure-durability off count as synced. */
FIBER uint32_t heal_sync(struct heal *h, struct fd *fd, uint32_t children);

/* The children in `now` against which no counter of the class has moved since the decision (pure). */
uint32_t heal_unchanged(const struct heal *h, const struct heal_answers *now);

/* ---- undo (heal_undo.c) ---- */

/* With the main-domain lock held on `children`, after the decision and before the first change of a sink: sees to it that
 * all sources blame all sinks, so that a copy half made is never taken for a good one. What it adds is part of
 * h->round.answers afterwards. A source that cannot be written is no source any more. 0, -ENOMEM, -ENOTCONN (no source
 * left, or too few). */
FIBER int heal_blame_sinks(struct heal *h, uint32_t children);

/* With the main-domain lock of the class held on `children`: h->round.healed and the sources are equal and on disk. Takes
 * off exactly the counters of h->round.answers among them, and first sees to it that whoever is not equal stays blamed by
 * all of them. Fills outcome, healed and left of the class report. 0 or an error (counters stay, nothing is lost). */
FIBER int heal_undo(struct heal *h, uint32_t children);
/* Drops index links on `children` that no counter justifies (a zero xattrop). */
FIBER void heal_touch_index(struct heal *h, struct inode *inode, uint32_t children);

/* ---- names ---- */

/* One name of h->inode, while h->round.judged says which children have a say. */
struct heal_name_work {
    const char *name; /* borrowed */
    enum heal_outcome outcome;
    uint32_t failed; /* children where the name is not as it should be */
    uint32_t split;  /* enum heal_split */
    bool is_fixed;   /* something was changed */
    bool is_resolved;
    enum heal_refusal refusal;
    struct iatt stat; /* what it leads to; mode 0: nothing */
};

/* With the main-domain lock of the name held on `children`: makes it the same on all of them. 0 with w filled, or
 * -ENOMEM. */
FIBER int heal_fix_name(struct heal *h, uint32_t children, struct heal_name_work *w);
/* Adds it to the report of the class. */
void heal_name_report(struct heal *h, const struct heal_name_work *w);
/* Without locks: do all of `children` have the same inode under the name (that of `expected`, if given)? Or, without
 * `expected`, no inode. ret_stat may be NULL; untouched when there is none. */
FIBER bool heal_name_is_equal(struct heal *h, const char *name, uint32_t children, const struct iatt *expected,
                              struct iatt *ret_stat);

/* Takes the name of h->inode on this child away, by renaming it to the directory for names put aside. 0, -EOPNOTSUPP (the
 * volume has none), or the child's error. */
FIBER int heal_put_aside(struct heal *h, unsigned child, const char *name, struct inode *inode);
/* Which of `children` have the inode in use: they know it, and under a name that is not put aside. 0 or -ENOMEM. */
FIBER int heal_find_use(struct heal *h, uint32_t children, struct inode *inode, uint32_t *ret_in_use);
/* Gives an inode that was put aside a name in h->inode. 0, -ENOENT (it is not there), or the child's error. */
FIBER int heal_take_back(struct heal *h, unsigned child, const char *name, struct inode *inode);

/* The names of a directory on one child, piece by piece. */
struct heal_listing {
    struct heal *h;
    unsigned child;
    struct fd *fd;
    bool is_of_index; /* an index has names only: GlusterFS's does not know READDIRP */
    bool is_open, at_end;
    uint64_t offset;
    struct dir_entries *entries; /* the piece */
};

struct heal_listing *heal_listing_open(struct heal *h, unsigned child, struct inode *directory,
                                       bool is_of_index) MUST_USE; /* returned */
void heal_listing_free(struct heal_listing *l);                    /* accepts NULL */
DEFINE_SCOPED(heal_listing_free, struct heal_listing)
/* Number of names in l->entries now, 0 at the end, or the child's error. */
FIBER int heal_listing_next(struct heal_listing *l, uint64_t size_bytes);
/* The directory in this child's index that lists the names of h->inode somebody missed. 0 and a reference, -ENOENT when no
 * name is recorded, or another error. */
FIBER int heal_find_names(struct heal *h, unsigned child, struct inode **ret_directory);

/* ---- classes ---- */

/* Are the xattrs that heal keeps equal the same? Pure. */
bool heal_same_xattrs(const struct dict *a, const struct dict *b);

/* Without locks: do these children have different ones? */
FIBER bool heal_xattrs_differ(struct heal *h, uint32_t children);

/* Each takes its own locks. h->report->class[..] is zeroed before. */
FIBER int heal_data(struct heal *h);
FIBER int heal_metadata(struct heal *h);
FIBER int heal_entry(struct heal *h);

/* Times of the source on the sinks, as the last step of a class, with its lock held: atime, mtime and, where bricks keep
 * the times clients give them, ctime. Failures are ignored: times are no reason to keep a file blamed. */
FIBER void heal_times(struct heal *h, uint32_t sinks, const struct iatt *like);
/* The same for another inode, one whose names changed. */
FIBER void heal_times_of(struct heal *h, struct inode *inode, uint32_t children, const struct iatt *like);
