/* performance/write-behind/write_behind_internal.h - pending.c keeps the queues, write_behind.c has the operations. */
#pragma once

#include "core/mem.h"
#include "graph/graph.h"
#include "performance/write-behind/write_behind.h"

struct write_behind {
    uint64_t window_bytes;
    uint64_t aggregate_bytes;
    bool flushes_behind;
    bool trickles;
    bool is_strict_o_direct;
    bool is_strict_order;
    bool resyncs_failed;
    bool passes_through;

    struct list dirty;   /* dirty_inode.of_dirty: those with writes */
    uint64_t last_seq;   /* of all writes ever queued here */
    uint64_t ends;       /* writes that have ended, in whatever way */
    uint32_t background; /* fibers at work */
    struct waitq idle;   /* stop waits here for the last one */
    uint64_t writes, merged, sent, failed;
};

enum pending_state {
    PENDING_QUEUED,
    PENDING_IN_FLIGHT,
    PENDING_FAILED, /* kept to be tried again: resync-failed-syncs-after-fsync */
};

struct pending {
    struct list of_inode;
    struct dirty_inode *of;
    uint64_t seq;
    uint64_t offset, size; /* offset has no meaning for an append */
    struct fd *fd;         /* a reference */
    struct client *client; /* a reference, or NULL */
    struct call call;
    uint32_t flags;
    struct buf *data;
    bool is_merged; /* data is ours, with room up to its capacity */
    bool is_append;
    bool was_synced; /* an fsync waits or waited for it */
    enum pending_state state;
};

/* Slot of a descriptor that writes came through, or that made its file. */
struct descriptor {
    int err;       /* of a write that was acknowledged and failed; not told yet */
    bool is_maker; /* the file was made with it: nobody else has it open yet, or expects it to be complete */
};

/* Slot of an inode that was written to or locked through us. */
struct dirty_inode {
    struct translator *me;
    struct inode *inode; /* borrowed: writes hold a descriptor of it */
    struct list of_dirty;
    struct list writes;    /* by seq */
    uint64_t queued_bytes; /* not failed */
    uint64_t failed_bytes;
    uint32_t in_flight;
    uint32_t hurried;    /* fibers that wait for writes: nothing is held back to grow */
    struct waitq change; /* woken whenever a write has ended */
    struct timer hold;   /* with trickling-writes off; or before the next try of failed writes */
    uint64_t last_end;   /* write_behind.ends when a write here ended last */
    bool has_locks;      /* POSIX locks were asked for */
    int mark_error;      /* of a failed write that no xattrop has told yet */
};

/* What somebody depends on: writes up to seq that end behind `offset`. */
struct dependence {
    uint64_t seq;
    uint64_t offset;
};

struct dirty_inode *dirty_find(struct translator *me, struct inode *inode); /* NULL: nothing known of it */
struct dirty_inode *dirty_get(struct translator *me, struct inode *inode);  /* NULL: no memory */
bool dirty_has_writes(const struct dirty_inode *d);
/* May attributes that were asked for when `ends` was the count of ended writes be older than an acknowledged write? */
bool dirty_since(const struct dirty_inode *d, uint64_t ends);
/* Waits until the writes are done (or have failed). 0, -ETIMEDOUT, -ECANCELED. */
FIBER int dirty_wait(struct dirty_inode *d, struct scope *scope, struct dependence on);
/* Queues a write, waiting for room in the window: its size, or -errno. */
FIBER int dirty_add(struct dirty_inode *d, struct call *call, const struct request *q);
/* Marks present writes as wanted by an fsync. */
void dirty_mark_synced(struct dirty_inode *d);
/* Failed writes that are kept go into the queue again. */
void dirty_retry(struct dirty_inode *d);
/* Gives up on failed writes that are kept. */
void dirty_drop_failed(struct dirty_inode *d);
/* Sends all that may go now, complete or not. */
void dirty_push(struct dirty_inode *d);
struct descriptor *descriptor_get(struct translator *me, struct fd *fd); /* NULL: no memory */
/* Error of the descriptor (fd may be NULL) that was not told yet; it is told now. 0 or negative errno. */
int descriptor_take_error(struct translator *me, struct fd *fd);
/* One more / less fiber at work in the background. */
void background_begin(struct translator *me);
void background_end(struct translator *me);
