/* sim/memjournal.h - a journal in memory, which outlives the simulated process that uses it.
 *
 * A crash during a call leaves, as a disk would, the call done, not done, or (append) done for its first entries.
 */
#pragma once

#include "core/env_sim.h"
#include "mgmt/journal.h"

/* What is on the "disk". Zeroed at first; cleared at the end with journal_image_clear(&disk->image). */
struct memjournal_disk {
    struct journal_image image;
};

/* The disk is borrowed. Returned; NULL for lack of memory. */
struct journal *memjournal_new(struct env *env, struct sim *sim, struct memjournal_disk *disk);
