/* cluster/replicate/changelog.h - what the counters on the bricks say: pure decisions, no calls.
 *
 * Every brick keeps, per inode, three counters for every brick of the replica set (operations that I saw and that one
 * missed) and three `dirty` counters (operations begun here whose end is not recorded): big-endian int32, in the order
 * of enum change. One row of counters comes from one brick's answer; all rows together are an `accusations` per change.
 *
 *     accusations_init(&a, 3);
 *     accusations_add(&a, 0, counters_of_child_0, dirty);        for each child that answered
 *     uint32_t not_to_be_read = accusations_accused(&a);
 *
 * Sets of children are bit masks: bit i is child i.
 */
#pragma once

#include "core/base.h"

#define CHILDREN_MAX 32

enum change { CHANGE_DATA, CHANGE_METADATA, CHANGE_ENTRY, CHANGE_COUNT };

#define COUNTERS_BYTES 12 /* of one counter xattr */

struct counters {
    int32_t n[CHANGE_COUNT];
};

static inline uint32_t bit(unsigned child)
{
    return UINT32_C(1) << child;
}

static inline unsigned mask_count(uint32_t mask)
{
    return (unsigned)__builtin_popcount(mask);
}

/* Lowest child of a mask that is not empty. */
static inline unsigned mask_first(uint32_t mask)
{
    return (unsigned)__builtin_ctz(mask);
}

static inline uint32_t mask_all(unsigned child_count)
{
    return child_count >= 32 ? UINT32_MAX : bit(child_count) - 1;
}

/* for_each_child(i, mask): i runs over the children in the mask, lowest first. */
#define for_each_child(i, mask) \
    for (uint32_t rest_##i = (mask), i = 0; rest_##i && ((i = mask_first(rest_##i)), true); rest_##i &= rest_##i - 1)

/* 12 raw bytes <-> counters. A value of another size is -EINVAL. */
int counters_parse(const void *data, size_t size_bytes, struct counters *ret_counters);
void counters_format(const struct counters *c, uint8_t bytes[static COUNTERS_BYTES]);

/* Who blames whom in one class of change. */
struct accusations {
    unsigned child_count;
    uint32_t answered; /* children whose counters are known */
    uint32_t dirty;    /* children with dirty set, or that blame themselves (old bricks' way to say so) */
    uint32_t fools;    /* children that blame themselves: their accusations of others do not count for heal */
    uint32_t blames[CHILDREN_MAX]; /* [i]: the others that i blames */
};

void accusations_init(struct accusations *a, unsigned child_count);
/* Child i has non-zero pending counters against `blames` (may include itself) and is or is not dirty. */
void accusations_add(struct accusations *a, unsigned child, uint32_t blames, bool is_dirty);
/* Everyone blamed by anybody else: not to be read. */
uint32_t accusations_accused(const struct accusations *a);

enum verdict {                      /* of heal (heal_judge.h) */
               VERDICT_UNKNOWN,     /* too few children answered: no decision */
               VERDICT_CLEAN,       /* nobody is blamed and nothing is dirty */
               VERDICT_HEAL,        /* sources and sinks are known */
               VERDICT_MERGE,       /* entries: no copy is right, their union is (conservative merge) */
               VERDICT_SPLIT_BRAIN, /* data or metadata: every copy is blamed */
};

/* Sizes of a regular file whose locks nobody holds: the children whose copy is as long as the longest of `candidates`.
 * Shorter ones lost something without a record and must not be read. */
uint32_t children_with_longest(uint32_t candidates, const uint64_t *size_bytes);
