/* cluster/replicate/heal_judge.h - which copies are good and which are made equal to them: pure, tested by tables.
 *
 * The children's answers to one look-up go in as plain data, a judgement comes out. The rules are those by which reads
 * believe (known.c, lookup.c): what a reader was served is what heal keeps.
 *
 *   data, metadata   Copies that nobody blames are candidates. Of those that differ without a record: data the longest, of
 *                    them the marked, of them the one changed last; attributes those without mark, of them the set most
 *                    children have.
 *   entry            Candidates vote on every name (heal_judge_name): it exists if any has it, unless a majority of all
 *                    children says no. All blamed: the union of all names is made, nothing removed.
 *   all are blamed   Data, metadata: with all answers, the count of accusers may tell (a record that was cut off); else
 *                    split brain. Without all answers: undecided (VERDICT_UNKNOWN).
 */
#pragma once

#include "cluster/replicate/changelog.h"
#include "cluster/replicate/heal.h"
#include "cluster/replicate/quorum.h"

/* What the children said about one inode. Large: on the heap. */
struct heal_answers {
    unsigned child_count;
    uint32_t asked;
    uint32_t ok;          /* have it */
    uint32_t absent;      /* said that they do not (ENOENT, ESTALE); others failed */
    uint32_t no_gfid;     /* names: an entry is there that lost its gfid */
    uint32_t at_work;     /* children where somebody holds main-domain or other locks on it (as far as they count) */
    uint32_t healing;     /* children where a healer holds the lock (heal_ask_healers only) */
    uint32_t flagged_bad; /* children that say that this copy is damaged (bitrot) */
    uint32_t malformed;   /* children with counters that make no sense: taken as dirty */
    int result[CHILDREN_MAX];
    struct iatt stat[CHILDREN_MAX];
    struct counters dirty[CHILDREN_MAX];
    struct counters pending[CHILDREN_MAX][CHILDREN_MAX]; /* [i][j]: i against j */
};

/* The replica set as far as it matters. */
struct heal_set {
    unsigned child_count;
    uint32_t arbiter; /* mask */
    struct quorum quorum;
    uint32_t policy;      /* option favorite-child-policy: enum heal_policy */
    bool forced_metadata; /* option metadata-splitbrain-forced-heal */
    uint32_t stale;       /* blamed at the witness when it was last asked: no source where another one is */
};

enum heal_policy { HEAL_POLICY_NONE, HEAL_POLICY_SIZE, HEAL_POLICY_CTIME, HEAL_POLICY_MTIME, HEAL_POLICY_MAJORITY };

struct heal_judgement {
    enum verdict verdict; /* CLEAN, HEAL, MERGE (entry), SPLIT_BRAIN, UNKNOWN (too few answers) */
    uint32_t taking_part; /* children the decision is about */
    uint32_t sources;     /* good and, as far as can be seen here, equal to `source` */
    uint32_t sinks;       /* taking_part less sources: to be made equal. Without heal of data: only undo */
    unsigned source;      /* the one to copy from: never the arbiter unless there is nothing to copy */
    uint32_t dirty;       /* children with a mark in this class */
    uint32_t accused;     /* blamed by anybody who takes part */
    bool is_resolved;     /* was a split brain; the choice, the policy or equality decided */
    enum heal_refusal refusal;
};

/* Are these children enough to decide? See heal_is_enough. */
bool heal_set_is_enough(const struct heal_set *set, uint32_t children);

/* What the answers say about one class. */
void heal_accusations(const struct heal_answers *a, enum change change, struct accusations *ret);

/* Data of a regular file. taking_part: children locked and open for it; only those that answered count. */
void heal_judge_data(const struct heal_set *set, const struct heal_answers *a, uint32_t taking_part,
                     const struct heal_choice *choice, struct heal_judgement *ret);

/* Attributes. same[i]: mask of the children whose xattrs are those of child i (i itself included). */
void heal_judge_metadata(const struct heal_set *set, const struct heal_answers *a, uint32_t taking_part,
                         const uint32_t *same, const struct heal_choice *choice, struct heal_judgement *ret);

/* Names of a directory as a whole: `sources` are those that vote on names. */
void heal_judge_entry(const struct heal_set *set, const struct heal_answers *a, uint32_t taking_part,
                      struct heal_judgement *ret);

/* One name. `parent`: the judgement of the directory. What each child has under the name is in `a` (ok: stat tells which
 * inode; absent). */
struct heal_name_facts {
    uint32_t kept;      /* of the children that have the name, those whose inode the others have too, under any name */
    uint32_t elsewhere; /* of the children that lack it, those that have the inode in use under another name */
};

enum heal_name_verdict {
    HEAL_NAME_EQUAL,     /* nothing to do */
    HEAL_NAME_EXISTS,    /* `like` has the right inode: children in `wrong` get it */
    HEAL_NAME_GONE,      /* children in `wrong` lose it */
    HEAL_NAME_SPLIT,     /* several inodes, none is right (split says GFID or TYPE) */
    HEAL_NAME_UNDECIDED, /* some child that matters failed */
};

struct heal_name_judgement {
    enum heal_name_verdict verdict;
    unsigned like;  /* EXISTS: a child that has it right */
    uint32_t right; /* children that have it right */
    uint32_t wrong; /* children to be changed */
    uint32_t split; /* enum heal_split */
    bool is_resolved;
    enum heal_refusal refusal;
};

void heal_judge_name(const struct heal_set *set, const struct heal_judgement *parent, const struct heal_answers *a,
                     const struct heal_name_facts *facts, const struct heal_choice *choice,
                     struct heal_name_judgement *ret);
/* May the name be one of two of a rename that was cut off, so that facts.elsewhere matters? */
bool heal_name_may_be_moved(const struct heal_set *set, const struct heal_judgement *parent,
                            const struct heal_answers *a);

/* Of two attribute sets: owner, group and mode are the same. */
bool heal_same_attributes(const struct iatt *a, const struct iatt *b);
