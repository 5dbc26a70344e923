/* cluster/replicate/heal_copy.h - heal of a file's contents between its decision and its undo.
 *
 *   heal_data.c      the class: decide, truncate, copy, sync, undo; small files in one go
 *   heal_windows.c   goes through the file, several windows at once: compare, then copy what differs
 *   heal_compare.c   one window: which pieces differ (heal_pieces.h), without a lock
 *   heal_copy.c      pieces, under the lock of a range
 *
 * Why comparing needs no lock. From the decision on, whoever writes, writes to source and sink, or blames the one that
 * missed it (and then this heal ends without undo). Per byte: let the source go through the values s, v1, v2... and the
 * sink through k, v1, v2..., the same writes in the same order. If the two are seen equal, at whatever moments, then either
 * the sink was seen after v1: what follows is the same on both; or it was seen at k, which is s or a value that the source
 * has taken and the sink is about to: it will be equal too. So equal is final. Different may be a write under way: what is
 * copied is read under the lock, and with it in hand nobody writes.
 */
#pragma once

#include "cluster/replicate/heal_internal.h"
#include "cluster/replicate/heal_pieces.h"

#define WINDOW_BYTES        (16u << 20) /* compared at once, with our bricks */
#define WINDOWS_AT_ONCE     3           /* the disk of one child works while the answer of another travels */
#define COARSE_BYTES        (64u << 10) /* blocks of the first look: 4 KiB of sums for a window */
#define FINE_BYTES          BLOCK_BYTES_MIN
#define GLUSTER_BYTES       (128u << 10) /* what data-self-heal-window-size counts; blocks of sparse files */
#define HOLD_TARGET_MS      30   /* the lock of a range is to be held for so long, by copying more or less under it */
#define PAUSE_MAX_MS        500  /* between two holds */
#define CLIENTS_BUSY_FOR_MS 1000 /* what a brick says of its clients is believed for so long */
#define BATCH_BYTES_MIN     (64u << 10)
#define BATCH_BYTES_FIRST   (1u << 20)
#define BATCH_BYTES_MAX     (4u << 20)

/* Option data-self-heal-algorithm, in the order of its words. */
enum heal_algorithm { HEAL_ALGORITHM_DYNAMIC, HEAL_ALGORITHM_DIFF, HEAL_ALGORITHM_FULL, HEAL_ALGORITHM_RESET };

struct heal_copy {
    struct heal *h;
    const struct heal_lock *healers;
    uint32_t sinks;        /* that have all so far; who fails a write or goes away leaves */
    uint32_t empty;        /* of those, they held nothing when we began */
    uint64_t size_bytes;   /* of the source then; what clients write behind it they write everywhere */
    bool is_sparse;        /* the source then took less space than its size */
    bool takes_all;        /* option: do not compare */
    bool lacks_program;    /* some brick does not know BLOCKSUMS: RCHECKSUM of one range at a time */
    uint32_t cannot_punch; /* children without FALLOC_FL_PUNCH_HOLE or ZERO_RANGE: they get zeros written */
    uint8_t key[BLOCK_KEY_BYTES];
    uint64_t next;              /* the next window begins here */
    struct fiber_mutex copying; /* one range is locked at a time: else those who wait for all of it never get in */
    uint32_t batch_bytes;
    uint64_t pause_ms; /* before the next hold, for clients to have their share */
    int result;        /* the first error that ends it */
};

/* Children that still may take part. */
uint32_t heal_copy_present(const struct heal_copy *c);
/* A child failed: it is noted and no sink any more. */
void heal_copy_drop(struct heal_copy *c, unsigned child, int result);

/* Compares [offset, offset + size) (multiples of COARSE_BYTES) of source and sinks, and adds what differs. *ret_next: where
 * the next data of any of them begins, at or after the end. 0, -ENOMEM, or -EREMOTEIO: the source failed (its error is in
 * the report). */
FIBER int heal_compare(struct heal_copy *c, uint64_t offset, uint32_t size_bytes, struct pieces *p, uint64_t *ret_next);

/* Makes the sinks equal to the source in the pieces, a batch for each hold of the lock. 0, or an error that ends the heal:
 * -EAGAIN (somebody is in the way, or the source has missed something), -ENOTCONN, -ENOMEM, -ECANCELED, -ETIMEDOUT,
 * -EREMOTEIO (the source failed). */
FIBER int heal_copy_pieces(struct heal_copy *c, const struct pieces *p);

/* The whole file; another source takes the place of one that fails. The same errors, but that one only when no other is
 * left; 0 also when no sink is left. */
FIBER int heal_copy_file(struct heal_copy *c);
