/* cluster/replicate/heal.h - making copies equal again: the one engine behind heal daemon, clients and commands.
 *
 * Bricks keep counters about each other (changelog.h): what a brick missed, and which changes were begun here whose end
 * nobody recorded. Heal of an inode reads them under the locks that writers take, decides which copies are good
 * (`sources`), makes the others (`sinks`) equal to them, and only when that is on disk takes the counters off again.
 *
 *     struct heal_how how = { .pace = NULL };
 *     struct heal_report *report = heal_report_new();
 *     int r = heal_inode(me, call, inode, &how, report);     0: report->outcome says what came of it
 *     heal_report_free(report);
 *
 * Invariants
 * - A copy that anybody blames is never a source; what was acknowledged is on every copy that nobody blames, as long as
 *   the answers are enough (heal_is_enough): every acknowledged change is recorded on a set that meets each such set.
 * - Not all children are needed. Whoever is away while something is decided without it (dirty marks, a split brain) is
 *   blamed before the marks go; a copy made good blames whom its source blames before the source's blame of it goes.
 * - A counter goes only by the amount that was read under the lock before the work began: what came in meanwhile stays.
 * - Whoever dies in the middle leaves counters with which the next heal starts again.
 * - Main-domain locks are held for one decision or one window; the lock of the self-heal domain for the whole heal of a
 *   class. GlusterFS's healers and clients take the same locks.
 *
 * What it does not do: decide when to heal (the daemon and read paths do), keep statistics, walk directories deeper.
 *
 * Nouns. `class` is an enum change: data (regular files), metadata, entry (names of a directory). A `window` is what one
 * hold of a main-domain lock covers. `taking part`: children that are locked and answered. `left`: children that need
 * heal and did not get it.
 */
#pragma once

#include "cluster/replicate/changelog.h"
#include "core/error.h"
#include "graph/translator.h"

/* ---- what is asked ---- */

/* Asked before each window of data and each bunch of names, while no main-domain lock is held: may suspend, returns 0 to
 * go on or a negative errno (-ECANCELED) to end the heal; what is healed so far stays recorded as not healed. */
struct heal_pace {
    FIBER int (*before)(struct heal_pace *pace, struct call *call, uint64_t bytes, uint32_t names);
};

/* How a split brain is to be resolved. Copies that are equal are always resolved. */
enum heal_choose {
    HEAL_CHOOSE_POLICY,       /* option favorite-child-policy says (which may be none) */
    HEAL_CHOOSE_NOTHING,      /* only look */
    HEAL_CHOOSE_CHILD,        /* choice.child has the right copy: data, metadata, gfid, type */
    HEAL_CHOOSE_BIGGER,       /* data and gfid of files: the strictly largest */
    HEAL_CHOOSE_LATEST_MTIME, /* data and gfid of files: the one changed last */
};

struct heal_choice {
    enum heal_choose how;
    unsigned child; /* HEAL_CHOOSE_CHILD */
};

enum heal_flag {
    HEAL_FULL = 1,       /* compare what counters say nothing about: xattrs, and all names of a directory */
    HEAL_FROM_INDEX = 2, /* the gfid came from an index: drop index links that no counter justifies */
    HEAL_RESOLVE = 4, /* the choice is a user's: needs all children, refuses with report->refusal what does not fit */
};

struct heal_how {
    uint32_t flags;   /* enum heal_flag */
    uint32_t classes; /* mask of bit(enum change); 0: all */
    struct heal_choice choice;
    struct heal_pace *pace; /* may be NULL */
    /* An inode that this heal made on a sink, or found in need of heal: it is marked in the bricks' index already; whoever
     * wants to be quick may queue it. May be NULL; must not suspend. */
    void (*found)(void *arg, const struct gfid *gfid, uint32_t type);
    void *found_arg;
};

/* ---- what came of it ---- */

enum heal_outcome {
    HEAL_CLEAN,       /* nothing to do (also: the inode is gone everywhere) */
    HEAL_DONE,        /* all that was wrong is healed, on all children of the set */
    HEAL_BUSY,        /* another healer, or changes under way: try later */
    HEAL_LEFT,        /* some was healed or nothing; some child is away or failed and stays blamed */
    HEAL_SPLIT_BRAIN, /* no copy can be trusted and no choice resolves it; the rest is healed */
    HEAL_ERROR,       /* report->error */
};

/* Kinds of split brain; bits of heal_report.split_brain and heal_view.split_brain. */
enum heal_split {
    HEAL_SPLIT_DATA = 1,
    HEAL_SPLIT_METADATA = 2,
    HEAL_SPLIT_GFID = 4, /* one name, several inodes */
    HEAL_SPLIT_TYPE = 8, /* and of different types */
};

/* Why a user's choice was not carried out. */
enum heal_refusal {
    HEAL_REFUSED_NOT,
    HEAL_REFUSED_NOT_SPLIT,  /* there is no split brain */
    HEAL_REFUSED_NOT_ALL,    /* not all children answer */
    HEAL_REFUSED_NO_BIGGER,  /* no copy is strictly the largest */
    HEAL_REFUSED_NO_LATER,   /* no copy is strictly the latest */
    HEAL_REFUSED_DIRECTORY,  /* bigger, latest: not for directories */
    HEAL_REFUSED_METADATA,   /* bigger: metadata can only be taken from a named child */
    HEAL_REFUSED_CHILD_AWAY, /* the chosen child is down or lacks it */
};

struct heal_class_report {
    enum heal_outcome outcome;             /* HEAL_CLEAN when the class was not asked for or does not apply */
    uint32_t sources, sinks;               /* as decided; 0: nothing was to be decided */
    uint32_t healed;                       /* sinks made equal */
    uint32_t left;                         /* children that stay blamed */
    uint64_t bytes_compared, bytes_copied; /* data, summed over sinks */
    uint64_t names_looked_at, names_fixed; /* entry */
};

struct heal_report {
    enum heal_outcome outcome; /* the worst of the classes */
    int error;                 /* HEAL_ERROR, HEAL_LEFT: a negative errno that says why, or 0 */
    bool is_gone;              /* no child knows the gfid any more */
    uint32_t split_brain;      /* enum heal_split bits still unresolved */
    uint32_t resolved;         /* enum heal_split bits that the choice or policy resolved */
    enum heal_refusal refusal;
    struct heal_class_report class[CHANGE_COUNT];
    int child_error[CHILDREN_MAX]; /* last error per child, 0: none */
};

struct heal_report *heal_report_new(void) MUST_USE; /* returned; zeroed. NULL for lack of memory */
void heal_report_free(struct heal_report *report);  /* accepts NULL */
DEFINE_SCOPED(heal_report_free, struct heal_report)
const char *heal_outcome_text(enum heal_outcome outcome);

/* Heals one inode: data, then metadata, then entry, as far as wanted by counters, flags and classes. call says who asks and
 * until when (cancelled: -ECANCELED in report->error); locks and changes go out as an internal client's. 0 with the
 * report filled, -ENOMEM, or -ENOTCONN when too few children are up. */
FIBER int heal_inode(struct translator *me, struct call *call, struct inode *inode, const struct heal_how *how,
                     struct heal_report *ret);
/* Heals one name of a directory: a name that some lack, that leads to different inodes, or to an entry without gfid. The
 * inodes' contents are left to heal_inode (they are marked where needed). Same results; the entry class of the report
 * counts. ret_inode (may be NULL): the inode the name leads to afterwards, a reference, or NULL. */
FIBER int heal_name(struct translator *me, struct call *call, struct inode *parent, const char *name,
                    const struct heal_how *how, struct heal_report *ret, struct inode **ret_inode);
/* Names in the directory for inodes whose names were taken away on a sink, while other children still have them, are
 * removed when no child has another name for them any more, or all have. Needs all children; -ENOTCONN without.
 * Returns the number of entries removed. */
FIBER int heal_clean_anonymous(struct translator *me, struct call *call, const struct heal_how *how);

/* ---- looking only ---- */

struct heal_view_child {
    int error;                        /* 0: answered */
    struct iatt stat;                 /* size, mtime, gfid, owner... as this child has them */
    uint32_t blamed_by[CHANGE_COUNT]; /* children that blame it */
    bool is_dirty[CHANGE_COUNT];
};

/* Where an inode stands, without locks. */
struct heal_view {
    uint32_t answered;
    uint32_t needs;       /* mask of bit(enum change): a counter other than that of a change under way, or a
                                  difference nobody is at work on */
    uint32_t split_brain; /* enum heal_split bits: DATA, METADATA; for directories GFID and TYPE are not looked for */
    bool is_pending;      /* some child is blamed */
    bool is_healing;      /* the self-heal domain is locked */
    bool is_at_work;      /* only marks, and somebody holds the lock under which they were made */
    bool is_gone;         /* no child that answered knows it, and enough did */
    int64_t since_s;      /* seconds since the epoch of the last change of the oldest stale copy; 0: not known */
    struct heal_view_child child[CHILDREN_MAX];
};

struct heal_view *heal_view_new(void) MUST_USE; /* returned; zeroed. NULL for lack of memory */
void heal_view_free(struct heal_view *view);    /* accepts NULL */
DEFINE_SCOPED(heal_view_free, struct heal_view)

/* One look-up of all live children. 0, -ENOMEM, -ENOTCONN (too few answered to tell). */
FIBER int heal_look(struct translator *me, struct call *call, struct inode *inode, struct heal_view *ret);
/* The same for a name in a directory: split_brain is about GFID and TYPE, child[].stat about what the name leads to
 * there, needs has CHANGE_ENTRY when children differ. */
FIBER int heal_look_name(struct translator *me, struct call *call, struct inode *parent, const char *name,
                         struct heal_view *ret);

/* Are these children enough to decide about heal (quorum.h, but never one alone)? With quorum-type none: only all. */
bool heal_is_enough(struct translator *me, uint32_t children);
