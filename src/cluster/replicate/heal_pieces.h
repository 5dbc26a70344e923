/* cluster/replicate/heal_pieces.h - what has to be done to make copies of a file equal: pure, tested by tables.
 *
 * Sums of blocks (rpc/block_sums.h) of the source and of the sinks go in, pieces come out: ranges in which some sinks
 * differ, and what makes them equal there. Neighbours that need the same are one piece.
 *
 *   source          sink            piece
 *   data            equal sum       none
 *   data            anything else   PIECE_COPY
 *   zeros           zeros, hole     none: they read the same
 *   zeros           data            PIECE_ZERO
 *   hole            hole            none
 *   hole            data, zeros     PIECE_HOLE: space that the source does not take
 *
 * A sink that is known to be empty is compared with its sums given as NULL: all hole, and there zeros are PIECE_ZERO, so
 * that a file whose space was allocated has it allocated on a new brick too.
 */
#pragma once

#include "cluster/replicate/changelog.h"
#include "rpc/block_sums.h"

enum piece_kind { PIECE_COPY, PIECE_ZERO, PIECE_HOLE };

struct piece {
    uint64_t offset, size; /* bytes */
    enum piece_kind kind;
    uint32_t sinks; /* mask of children */
};

struct pieces {
    struct piece *list;
    uint32_t count, room;
};

void pieces_done(struct pieces *p); /* frees the list; a zeroed struct is an empty one */
/* `SCOPED_PIECES struct pieces p = { 0 };`: done when it goes out of scope. */
#define SCOPED_PIECES __attribute__((cleanup(pieces_done)))
/* Adds a range at or after the end of the last one, or widens that. 0 or -ENOMEM. */
int pieces_add(struct pieces *p, uint64_t offset, uint64_t size_bytes, enum piece_kind kind, uint32_t sinks);
uint64_t pieces_bytes(const struct pieces *p, enum piece_kind kind);

/* Adds what makes `sinks` equal to the source in the blocks asked about. Ranges of the question must ascend. sums[i]: of
 * sink i, or NULL when it is all hole. takes_all: data is copied even where it is equal. 0 or -ENOMEM. */
int pieces_compare(struct pieces *p, const struct block_question *k, const uint8_t *source,
                   const uint8_t *const sums[CHILDREN_MAX], uint32_t sinks, bool takes_all);

/* Takes those pieces out of the list that are worth a closer look, and asks about them in *k (whose key stays), in blocks of
 * `block_bytes`: PIECE_COPY of less than PIECE_CLOSER_MAX bytes, for a sink that is not in `empty`. All of a window fit in
 * one question. Returns how many were taken. */
#define PIECE_CLOSER_MAX (1u << 20)
uint32_t pieces_closer(struct pieces *p, uint32_t empty, uint32_t block_bytes, struct block_question *k);
/* `count` pieces without data, and what the source says about their blocks now: what is still hole or zero goes to
 * ret_blank, cut at the end of the file, the rest to ret_copies. 0 or -ENOMEM. */
int pieces_blank(const struct piece *list, uint32_t count, uint32_t block_bytes, const struct block_answer *a,
                 struct pieces *ret_blank, struct pieces *ret_copies);
void pieces_sort(struct pieces *p); /* by offset */
