/* mgmt/consensus.h - agreement of the machines of a cluster on one order of changes.
 *
 * Wraps a Raft library; nothing outside consensus*.c knows which. The owner brings three things: a journal that outlives
 * crashes, a way to send a message to another member (lost ones do no harm), and a state machine. Every change that a
 * majority has in its journals is given to every member's state machine, in the same order, again from the last snapshot
 * on after a restart.
 *
 * A member is known by a number and reached under an address; what an address means is the owner's business. A machine by
 * itself is a cluster of one (consensus_found) and needs nobody. To join another one it starts without having founded
 * anything, and a member of that cluster adds it.
 *
 * Messages carry a proposal's result back to the member that made it only; others see the effect in their state machine.
 */
#pragma once

#include "core/env.h"
#include "core/error.h"
#include "mgmt/journal.h"

#define CONSENSUS_PROPOSAL_MAX_BYTES (8 * 1024 * 1024)
#define CONSENSUS_SNAPSHOT_EVERY     256 /* entries */
#define CONSENSUS_KEPT_ENTRIES       64  /* that a snapshot leaves in the log, for members that are a little behind */

struct consensus;

struct consensus_hooks {
    /* A change that was agreed on. What it returns in *ret_result goes to the proposer, who frees it (mem_free); on a member
     * that did not propose it, it is freed here. A failure stops this member: its state may differ from the others'. */
    int (*apply)(void *arg, const void *data, size_t size_bytes, void **ret_result);
    /* All of the state, in new memory (mem_alloc; given). 0 or -ENOMEM. */
    int (*snapshot)(void *arg, void **ret_data, size_t *ret_bytes);
    /* Takes it as the state. 0 or -errno. */
    int (*restore)(void *arg, const void *data, size_t size_bytes);
    /* Sends it to a member if that can be done at once, else drops it. */
    void (*send)(void *arg, uint64_t member, const char *address, const void *message, size_t size_bytes);
    /* The leader or the members have changed. */
    void (*changed)(void *arg);
    /* This member can no longer take part (its journal fails, or its state machine did): `why` says so. */
    void (*stopped)(void *arg, const char *why);
};

/* `journal` is borrowed. `member` is not 0. Returned; NULL for lack of memory. */
struct consensus *consensus_new(struct env *env, uint64_t member, const char *address, struct journal *journal,
                                const struct consensus_hooks *hooks, void *arg) MUST_USE;
/* Stops and waits for what is under way. Accepts NULL. */
FIBER void consensus_free(struct consensus *c);
/* Makes a cluster of this machine alone, if the journal is empty; before consensus_start. 0, or -EEXIST: it is not. */
FIBER int consensus_found(struct consensus *c);
/* Loads the journal, gives the snapshot to the state machine and begins to take part. 0, or -errno with a sentence. */
int consensus_start(struct consensus *c, struct error *err);

/* Has this change agreed on and applied here. 0 and the result of apply; -ENOTCONN: this member is not the leader;
 * -ETIMEDOUT, -ECANCELED: no majority in time, and -ESTALE: leadership was lost: the change may still come. */
FIBER int consensus_propose(struct consensus *c, const void *data, size_t size_bytes, struct scope *scope,
                            void **ret_result);
/* Everything that was agreed on before the call is applied here when it returns 0; else as consensus_propose. Leader only. */
FIBER int consensus_barrier(struct consensus *c, struct scope *scope);
/* A message that came from a member. Broken ones are dropped. */
void consensus_receive(struct consensus *c, uint64_t member, const char *address, const void *message,
                       size_t size_bytes);

/* Membership; leader only. 0 (also if it is so already), -ENOTCONN, -ETIMEDOUT, -ECANCELED, -EBUSY: another change of
 * membership is under way. An added member has a vote as soon as it has caught up. */
FIBER int consensus_add(struct consensus *c, uint64_t member, const char *address, struct scope *scope);
FIBER int consensus_remove(struct consensus *c, uint64_t member, struct scope *scope);

bool consensus_is_leader(const struct consensus *c);
/* The leader as far as known, 0: nobody. *ret_address is borrowed until the loop goes on. */
uint64_t consensus_leader(const struct consensus *c, const char **ret_address);
uint64_t consensus_applied(const struct consensus *c);      /* index of the last change applied here */
unsigned consensus_member_count(const struct consensus *c); /* that have a vote */
