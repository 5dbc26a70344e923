/* cluster/replicate/heal_info.h - what a replica set has to heal, gathered from the indices of its bricks, without locks.
 *
 *     struct heal_info *info = heal_info_new(me);
 *     r = heal_info_gather(info, call, HEAL_INFO_PATHS);
 *     for (i = 0; i < info->child_count; i++)
 *         for (n = 0; n < info->child[i].count; n++)
 *             ... info->entries[info->child[i].entries[n]] ...
 *     heal_info_free(info);
 *
 * An `entry` is an inode that the index of some brick lists and that needs heal indeed: what is only being changed at the
 * moment is left out. It occurs once in `entries` although the indices of several bricks list it.
 */
#pragma once

#include "cluster/replicate/heal.h"

enum heal_state {
    HEAL_STATE_NONE, /* nothing is wrong with it */
    HEAL_STATE_PENDING,
    HEAL_STATE_SPLIT_BRAIN,
    HEAL_STATE_HEALING, /* somebody holds the lock that healers take */
};

struct heal_entry {
    struct gfid gfid;
    uint32_t type; /* S_IFMT bits, 0: not known */
    enum heal_state state;
    uint32_t needs;       /* mask of bit(enum change) */
    uint32_t split_brain; /* enum heal_split bits */
    uint32_t behind;      /* children that are blamed or lack it */
    uint32_t listed_on;   /* children whose index lists it */
    int64_t since_s;      /* wall clock; 0: not known */
    char *path;           /* NULL: not asked for, or no brick knows */
};

struct heal_info_child {
    bool is_up;
    uint32_t *entries; /* numbers in heal_info.entries */
    uint32_t count, room;
};

struct heal_info {
    struct translator *me;
    unsigned child_count;
    struct heal_info_child child[CHILDREN_MAX];
    struct heal_entry *entries;
    uint32_t count, room;
    void *known; /* internal: gfid -> number */
};

enum heal_info_flag {
    HEAL_INFO_PATHS = 1, /* ask for paths */
    HEAL_INFO_NAMES = 2, /* compare the names of directories that blame each other: one message per page and brick */
};

struct heal_info *heal_info_new(struct translator *me) MUST_USE; /* returned; NULL for lack of memory */
void heal_info_free(struct heal_info *info);                     /* accepts NULL */
DEFINE_SCOPED(heal_info_free, struct heal_info)
/* Once per object. 0, -ENOMEM; children that do not answer are not up. */
FIBER int heal_info_gather(struct heal_info *info, struct call *call, unsigned flags);

/* Have all children said whether they are there? (Until then a command waits.) */
bool heal_info_is_ready(const struct translator *me);
bool heal_info_child_is_up(const struct translator *me, unsigned child);
/* Number of entries in the index of pending heals of a child, as the brick counts them. 0 or -errno. */
FIBER int heal_info_count(struct translator *me, struct call *call, unsigned child, uint64_t *ret_count);
