/* sim/converge.h - are the copies of a replica set equal, and is nothing left of their healing?
 *
 * Looks at the disks of all bricks, without any process: names, gfids, types, modes, owners, devices, targets, sizes,
 * bytes (holes as they read), extended attributes, link counts; that each brick is sound in itself (every inode has a
 * name, link counts are right, no directory is missing that names lead to); that no counter is left, the index
 * directories are empty and nothing is parked in the anonymous-inode directory.
 *
 *     struct converge c = { .disks = { a, b }, .count = 2, .arbiter = -1 };
 *     converge_check(&c);
 *     assert_int_equal(c.differences, 0);     else c.first says the first, as a sentence
 *
 * Not compared: order of names, how many blocks are allocated, access times, times of directories.
 */
#pragma once

#include "sim/disk.h"

#define CONVERGE_MAX_DISKS 5u

struct converge {
    struct disk *disks[CONVERGE_MAX_DISKS];
    unsigned count;
    int arbiter;      /* keeps no data; -1: none */
    bool with_mtimes; /* of everything but directories */
    /* An inode that is known to be in split brain may differ and stay listed. NULL: none is. */
    bool (*is_split)(void *arg, const struct gfid *gfid);
    void *arg;
    unsigned differences;
    unsigned of_power; /* of these, what a power cut may cause without a mark: sizes (appended data) and attributes */
    char first[400];
};

void converge_check(struct converge *c);
