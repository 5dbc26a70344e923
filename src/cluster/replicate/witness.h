/* cluster/replicate/witness.h - a third party that remembers which copy of a pair may be stale.
 *
 * Two copies alone cannot tell which of them went on while they were apart. The `witness` holds one word per pair: nobody
 * is blamed, or one child is. It refuses to blame both. From that the pair works with one child:
 *
 *   - A change that reached one child only is answered after the other is blamed at the witness (witness_cover). That
 *     is asked once: the `belief` that the other is blamed holds until the blame may have been cleared.
 *   - Whoever sees one child only asks the witness before it reads from it: a blamed child serves nothing.
 *   - While both are there nobody asks the witness: the counters of the two tell who missed what (docs/architecture.md
 *     "Two copies and a witness" has the proof).
 *
 * A belief is backed by a `token`: a shared lock in a domain of its own on the root of the child that goes on. That is
 * the child every change and read of the believer must reach, over the same connection, so whoever lost the token
 * without knowing it can do nothing there either. Who wants to clear a blame first takes all tokens away
 * (witness_heal_begin): holders finish what is under way, forget the belief and ask again, which counts the blame up;
 * so a clear that finds the count as it was has nobody behind its back (witness_clear).
 *
 * A witness that was emptied or replaced would know nothing of old blames. So its identity is written on both children
 * when both are there and owe each other nothing (`enrolment`), and a single child works only with the witness that is
 * written on it.
 *
 * Behind the interface stands a struct witness_class. There is one: witness_brick.c, a file on a brick of its own, as
 * GlusterFS's thin arbiter keeps it.
 *
 *     r = witness_cover(me, bit(0));         child 0 has the change; is that enough?
 *     if (r < 0) return r;                   -ENOTCONN: no word from the witness, or it blames child 0
 */
#pragma once

#include "cluster/replicate/quorum.h"
#include "graph/translator.h"

struct witness;

/* What the witness says of the pair. */
struct witness_word {
    struct gfid id;    /* of this witness; another one after it was emptied or replaced */
    uint32_t blamed;   /* children */
    uint64_t times[2]; /* how often each was blamed since it was last cleared */
};

/* A kind of witness. All are FIBER and answer within the call's deadline; `me` is the replication translator. */
struct witness_class {
    const char *name;
    /* What it says now. -ENOENT: it has no word for this pair. */
    FIBER int (*ask)(struct translator *me, struct call *call, struct witness_word *ret_word);
    /* Makes the word for this pair if there is none, and tells it. */
    FIBER int (*enrol)(struct translator *me, struct call *call, struct witness_word *ret_word);
    /* Blames the child once more: on the witness's disk before it returns. -EPERM: the other one is blamed, nothing has
     * changed. Afterwards clears by others wait until drop(). */
    FIBER int (*blame)(struct translator *me, struct call *call, unsigned child, struct witness_word *ret_word);
    /* The caller of blame() believes it no longer. */
    FIBER void (*drop)(struct translator *me, struct call *call);
    /* Waits until nobody is between blame() and drop(). */
    FIBER int (*recall)(struct translator *me, struct call *call);
    /* Takes the blame off the child if it was blamed `times` times; -EAGAIN: it was blamed again. */
    FIBER int (*clear)(struct translator *me, struct call *call, unsigned child, uint64_t times);
    /* Is it an event by which this witness asks believers to drop()? */
    bool (*is_recall)(struct translator *me, unsigned child, const struct event *event);
};

/* ---- life ---- */

/* Sets up the witness of option thin-arbiter, if there is one: s->witness, quorum type. 0, or the error. */
int witness_init(struct translator *me, struct error *err);
void witness_done(struct translator *me);
/* Before the graph stops: no new background work. Work under way is counted as every fiber of replicate's. */
void witness_stop(struct translator *me);
bool witness_is_up(const struct translator *me);
void witness_dump(struct translator *me, struct dump *out);

/* An event from child number `child` of the graph: true when it was the witness's alone. */
bool witness_notify(struct translator *me, unsigned child, const struct event *event);
/* A child of the pair went up or down: its tokens are gone. */
void witness_child_changed(struct translator *me, unsigned child);

/* ---- the data path ---- */

/* Runs an operation from above. With both children up or without a witness that is all it does. With one child it first
 * blames the other (changes, locks) or asks the witness (reads); reads under which the children changed are repeated.
 * -ENOTCONN: the witness is out of reach, or blames the child that is left. In the operations table in front of what
 * witness_gate.c lists. */
FIBER int witness_gate(struct translator *me, struct call *call, const struct request *q, struct reply *r);

/* Are these children enough to answer for a change? 0, at once if they make a quorum, else after the others are blamed
 * at the witness; -ENOTCONN. */
FIBER int witness_cover(struct translator *me, uint32_t children);
/* May what these children say be passed on to a reader? As children_quorum, and also a single child for which a read
 * under way has the witness's word. */
int witness_may_tell(struct translator *me, uint32_t children);

/* Blames this child of the pair; what is answered from then on may miss it. 0 (recorded durably, by us or before), or
 * -ENOTCONN: the witness is out of reach, or the other child is the stale one. */
FIBER int witness_blame(struct translator *me, unsigned child);
/* What the witness says. 0, -ENOTCONN, or -ESTALE: it is not the one written on the children that are up. */
FIBER int witness_ask(struct translator *me, struct witness_word *ret_word);

/* ---- healing ---- */

/* Before the sweep that heals `child`: takes all beliefs away. Needs both children and the witness. *ret_times: 0 when
 * the child is not blamed, else to be given to witness_clear(). 0 or -ENOTCONN. */
FIBER int witness_heal_begin(struct translator *me, unsigned child, uint64_t *ret_times);
/* After a sweep begun with witness_heal_begin() that found nothing more to heal on the good child, pending or dirty, and
 * left nothing unhealed: takes the blame off `child`. -EAGAIN: somebody relied on the blame meanwhile, begin again. */
FIBER int witness_clear(struct translator *me, unsigned child, uint64_t times);

/* The same around a crawl of the indices, for whichever child is blamed. */
struct witness_crawl {
    uint64_t times[2];
    uint64_t generation; /* of the pair, when it began */
};
FIBER void witness_crawl_begin(struct translator *me, struct witness_crawl *ret_crawl);
/* `clean`: children whose indices were crawled from the beginning to the end and have nothing left that needs heal. False
 * when a blame could have been taken off but for somebody who relies on it: crawl again. */
FIBER bool witness_crawl_end(struct translator *me, const struct witness_crawl *crawl, uint32_t clean);
