/* rpc/block_sums.h - our own program: what many blocks of a file hold, in one question, so that heal finds what differs
 * without moving data. The operation is OP_BLOCKSUMS, its procedure a step of COMPOUND only.
 *
 *   question (request's data): key 16 bytes, u32 block size, u32 range count, then each range: u64 offset, u32 size
 *   answer (reply's data):     u64 file size, u64 next data, then 16 bytes for every block of every range, in order
 *
 * A block's 16 bytes are BLOCK_IS_HOLE (all zero: no data is allocated for any of it), BLOCK_IS_ZERO (15 zeros and a one:
 * allocated, but all zero) or its sum. Past the end of the file all is hole; a block that the end cuts is summed as
 * if zeros followed. `next data` is the first byte at or after the end of the last range that is not hole, or
 * UINT64_MAX when nothing follows.
 *
 * The sum is the GMAC tag (AES-128-GCM over no plaintext, the block as additional data, a zero nonce) under the
 * question's key. With a key drawn after the contents were written, two blocks of up to 1 MiB that differ have equal
 * sums with a chance of at most 2^16 in 2^128, whatever they hold: a bound that is proven, not hoped for. It is no
 * secret and proves nothing to anybody: only sums under the same key are compared, by whoever drew it.
 *
 * xdata of the answer may say CLIENTS_BUSY_KEY: other clients are at work on the brick, heal should not take all of it.
 *
 *     struct block_question *k = ...;                      struct block_answer a;
 *     env_random(env, k->key, sizeof(k->key));             r = block_answer_get(reply->data, k, &a);
 *     k->block_bytes = 65536;                              block_kind(a.sums + BLOCK_SUM_BYTES * n)
 *     k->ranges[k->range_count++] = (struct block_range) { 0, 16 << 20 };
 */
#pragma once

#include "core/buf.h"

#define CLIENTS_BUSY_KEY   "mortar.clients-busy"
#define BLOCK_SUM_BYTES    16
#define BLOCK_KEY_BYTES    16
#define BLOCK_BYTES_MIN    4096
#define BLOCK_BYTES_MAX    (1u << 20)
#define BLOCK_RANGES_MAX   256
#define BLOCKS_MAX         8192        /* of one question: 128 KiB of sums */
#define BLOCK_RANGES_BYTES (64u << 20) /* of one question */

struct block_range {
    uint64_t offset; /* bytes, a multiple of the block size */
    uint32_t size;   /* the same; not 0 */
};

/* About 4 KiB: keep it on the heap. */
struct block_question {
    uint8_t key[BLOCK_KEY_BYTES];
    uint32_t block_bytes; /* a power of two, BLOCK_BYTES_MIN to BLOCK_BYTES_MAX */
    uint32_t range_count; /* 1 to BLOCK_RANGES_MAX */
    struct block_range ranges[BLOCK_RANGES_MAX];
};

/* How many blocks the ranges have; -EINVAL when the question breaks a limit. */
int block_question_count(const struct block_question *k);
/* The question as bytes (returned); NULL for lack of memory. */
struct buf *block_question_put(const struct block_question *k) MUST_USE;
/* 0 or -EINVAL: anything but a question within the limits. */
int block_question_get(const struct buf *b, struct block_question *ret_question);

struct block_answer {
    uint64_t size_bytes; /* of the file */
    uint64_t next_data;
    uint32_t count;      /* blocks */
    const uint8_t *sums; /* BLOCK_SUM_BYTES each; lies in the buffer */
};

/* Room for the answer of `count` blocks, all holes until written. Returned; NULL for lack of memory. */
struct buf *block_answer_new(uint32_t count) MUST_USE;
/* The size and next data of an answer. */
void block_answer_head(struct buf *b, uint64_t size_bytes, uint64_t next_data);
/* Where the sum of block number `n` goes. */
static inline uint8_t *block_answer_sum(struct buf *b, uint32_t n)
{
    return b->data + 16 + (size_t)n * BLOCK_SUM_BYTES;
}
/* 0, or -EBADMSG: it does not fit the question. What it points to lives as long as b. */
int block_answer_get(const struct buf *b, const struct block_question *k, struct block_answer *ret_answer);

enum block_kind { BLOCK_IS_DATA, BLOCK_IS_ZERO, BLOCK_IS_HOLE };

enum block_kind block_kind(const uint8_t sum[static BLOCK_SUM_BYTES]);

/* ---- making sums; takes CPU time, so bricks do it on the pool ---- */

struct block_summer;
struct block_summer *block_summer_new(const uint8_t key[static BLOCK_KEY_BYTES]) MUST_USE; /* NULL: no memory */
void block_summer_free(struct block_summer *s);                                            /* accepts NULL */
/* The sum of allocated data: all zero bytes give BLOCK_IS_ZERO. 0 or -EIO (libcrypto refused). */
int block_sum(struct block_summer *s, const void *data, size_t size_bytes, uint8_t ret_sum[static BLOCK_SUM_BYTES]);

/* ---- what RCHECKSUM answers: two sums of one range ---- */

#define RANGE_SUM_BYTES 32

struct range_sums {
    uint32_t weak;                   /* Adler-32, but beginning with 0 instead of 1, as GlusterFS's bricks give it */
    uint8_t strong[RANGE_SUM_BYTES]; /* SHA-256, or MD5 and 16 zero bytes */
};

/* 0 or -EIO (libcrypto refused: MD5 is off on some systems). Takes CPU time. */
int range_sums_of(const void *data, size_t size_bytes, bool wants_sha256, struct range_sums *ret_sums);
