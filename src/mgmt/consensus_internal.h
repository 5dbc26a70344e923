/* mgmt/consensus_internal.h - the parts of the wrapper around libraft (Debian's libraft 0.15, interface in <raft.h>).
 *
 *   consensus.c          life, proposals, membership; the state machine as the library sees it
 *   consensus_io.c       the library's input and output: journal, clock, messages
 *   consensus_message.c  its messages as bytes
 *   consensus_members.c  going back to earlier members
 */
#pragma once

#include "mgmt/consensus.h"
#include "rpc/xdr_buf.h"
#include <raft.h>

struct consensus {
    struct env *env;
    struct journal *journal;
    struct consensus_hooks hooks;
    void *arg;
    uint64_t member;
    char *address;

    struct raft raft;
    struct raft_io io;
    struct raft_fsm fsm;
    bool is_started, is_stopping, is_closed;
    char why_stopped[256];
    struct waitq closed;
    uint64_t leader_told; /* what hooks.changed was last called for */
    unsigned members_told;
    void *unclaimed;    /* the result of the last change applied, until its proposer takes it */
    unsigned proposals; /* the library knows of */

    /* consensus_members.c: those of the last snapshot, as in an entry */
    struct raft_buffer snapshot_members;
    uint64_t snapshot_members_index; /* 0: there is no snapshot */

    /* consensus_io.c */
    raft_io_tick_cb tick;
    raft_io_recv_cb receive;
    raft_io_close_cb on_io_close;
    unsigned tick_ms;
    uint64_t ticks;
    struct timer ticker;
    struct list jobs; /* for the journal, in order */
    struct waitq job_ready;
    bool is_writer_running, is_io_closing;
    struct list sent;    /* messages whose end the library has not been told */
    uint64_t next_index; /* of the entry appended next */
    uint64_t term;
    struct journal_image *loaded; /* between the check at start and the library's own load */
};

/* Fills c->io. */
void consensus_io_init(struct consensus *c);
/* After something happened: tells the owner of a new leader or members. */
void consensus_look(struct consensus *c);
/* Leader only: goes on giving a vote to a member that has none. */
void consensus_promote(struct consensus *c);
/* The member stops taking part. */
void consensus_fail(struct consensus *c, const char *why);
/* Errors of the library as ours. */
int consensus_errno(int raft_error);

/* Appends the message's bytes; o->failed tells. */
void message_put(struct xdr_out *o, const struct raft_message *m);
/* Reads one; its buffers come from raft_malloc, as the library wants them. 0, -EBADMSG, -ENOMEM. `data` is changed. */
void message_clear_entries(struct raft_append_entries *a);
int message_get(void *data, size_t size_bytes, struct raft_message *ret_message);

/* Members as they are in messages and in the journal. get: 0 and a configuration the caller closes, -EBADMSG; the bytes
 * change by reading. */
void members_put(struct xdr_out *o, const struct raft_configuration *members);
int members_get(struct xdr_in *in, struct raft_configuration *ret_members);
/* Members from the bytes of an entry. 0 and a configuration the caller closes, -EBADMSG. */
int members_decode(const void *data, size_t size_bytes, struct raft_configuration *ret_members);
/* Remembers the members of a snapshot. 0 or -ENOMEM. */
int members_keep(struct consensus *c, const struct raft_configuration *members, uint64_t index);
/* Before the library sees the message: if it takes back entries that named members, those before hold again. */
void members_take_back(struct consensus *c, const struct raft_append_entries *a);
