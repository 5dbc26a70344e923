/* core/iatt.h - attributes of an inode, as they travel through the graph (docs/protocol.md "iattx"). */
#pragma once

#include "core/gfid.h"
#include <sys/stat.h>
#include <time.h>

struct iatt {
    struct gfid gfid;
    uint64_t ino, dev, rdev;
    uint64_t size;                      /* bytes */
    uint64_t blocks;                    /* units of 512 bytes */
    int64_t atime, mtime, ctime, btime; /* seconds since the epoch */
    uint32_t atime_nsec, mtime_nsec, ctime_nsec, btime_nsec;
    uint32_t mode; /* S_IFMT type bits and 07777 permission bits; 0 = "attributes not available" */
    uint32_t nlink, uid, gid, blksize;
};

/* Bits of a setattr's `valid` (docs/protocol.md "SETATTR"). */
enum attr_valid {
    ATTR_MODE = 0x1,
    ATTR_UID = 0x2,
    ATTR_GID = 0x4,
    ATTR_SIZE = 0x8,
    ATTR_ATIME = 0x10,
    ATTR_MTIME = 0x20,
    ATTR_CTIME = 0x40,
    ATTR_ATIME_NOW = 0x80,
    ATTR_MTIME_NOW = 0x100,
};

static inline bool iatt_is_set(const struct iatt *a)
{
    return a->mode != 0;
}

static inline uint32_t iatt_type(const struct iatt *a)
{
    return a->mode & S_IFMT;
}

/* Fills everything but gfid; ino is left to the caller (gfid_to_ino). */
void iatt_from_stat(struct iatt *a, const struct stat *st);
void iatt_to_stat(const struct iatt *a, struct stat *st); /* st_ino from gfid */
