/* mgmt/journal.h - what a member of the cluster must not forget: its term and vote, the log of changes, the snapshot.
 *
 * There are two kinds: files in a folder (journal_open), and memory for simulated machines (tests). Both promise that
 * what a call that returned 0 wrote is there after a crash, and that a call cut short by one has happened or has not.
 * Entries are numbered from 1 without gaps; the snapshot stands for all up to its index, of which some may be in the log
 * as well. Format of the files: docs/management.md "The journal".
 */
#pragma once

#include "core/env.h"
#include "core/error.h"

#define JOURNAL_ENTRY_MAX_BYTES (16 * 1024 * 1024)

struct journal_entry {
    uint64_t index, term;
    uint16_t type; /* the consensus library's */
    void *data;
    size_t size_bytes;
};

struct journal_snapshot {
    uint64_t index, term; /* of the last entry it stands for; index 0: there is none */
    uint64_t members_index;
    void *members, *data;
    size_t members_bytes, data_bytes;
};

struct journal_image {
    uint64_t term, vote;
    struct journal_snapshot snapshot;
    struct journal_entry *entries;
    size_t entry_count;
};
void journal_snapshot_clear(struct journal_snapshot *s);
void journal_image_clear(struct journal_image *image);

struct journal;
struct journal_ops {
    int (*load)(struct journal *j, struct journal_image *ret_image, struct error *err);
    int (*set_vote)(struct journal *j, uint64_t term, uint64_t vote);
    FIBER int (*append)(struct journal *j, const struct journal_entry *entries, size_t count);
    FIBER int (*truncate)(struct journal *j, uint64_t index);
    FIBER int (*put_snapshot)(struct journal *j, const struct journal_snapshot *s, uint64_t keep_from);
    FIBER int (*get_snapshot)(struct journal *j, struct journal_snapshot *ret_snapshot);
    FIBER int (*erase)(struct journal *j);
    void (*free)(struct journal *j);
};
struct journal {
    const struct journal_ops *ops;
};

/* Files in `folder`, which is made if need be. 0 and a journal (returned), or -errno with a sentence. */
int journal_open(struct env *env, const char *folder, struct journal **ret_journal, struct error *err);

/* Everything that is kept, into *ret_image (the caller clears it; after a failure it is empty). An empty folder gives an empty image. -EBADMSG with a
 * sentence when something that had been stored safely is damaged: the machine must not vote or apply then. Blocks. */
static inline int journal_load(struct journal *j, struct journal_image *ret_image, struct error *err)
{
    return j->ops->load(j, ret_image, err);
}
/* Durable when it returns. Blocks the loop for two small writes: it happens at elections only. */
static inline int journal_set_vote(struct journal *j, uint64_t term, uint64_t vote)
{
    return j->ops->set_vote(j, term, vote);
}
/* The following suspend until it is durable; one at a time, in order. 0 or -errno. */
static inline FIBER int journal_append(struct journal *j, const struct journal_entry *entries, size_t count)
{
    return j->ops->append(j, entries, count);
}
/* Forgets the entries from `index` on. */
static inline FIBER int journal_truncate(struct journal *j, uint64_t index)
{
    return j->ops->truncate(j, index);
}
/* Replaces the snapshot; entries before `keep_from` are forgotten. If the log ends before the snapshot, all are. */
static inline FIBER int journal_put_snapshot(struct journal *j, const struct journal_snapshot *s, uint64_t keep_from)
{
    return j->ops->put_snapshot(j, s, keep_from);
}
static inline FIBER int journal_get_snapshot(struct journal *j, struct journal_snapshot *ret_snapshot)
{
    return j->ops->get_snapshot(j, ret_snapshot);
}
/* Forgets everything: this machine joins another cluster, or leaves one. */
static inline FIBER int journal_erase(struct journal *j)
{
    return j->ops->erase(j);
}
/* Accepts NULL. */
static inline void journal_free(struct journal *j)
{
    if (j)
        j->ops->free(j);
}
DEFINE_SCOPED(journal_free, struct journal)
