/* sim/simdisk.h - storage/simdisk: the translator under a simulated brick, over a struct disk.
 *
 * Answers like storage/posix as far as the translators above can see: gfids given by the caller, extended attributes,
 * counters changed atomically, descriptors that outlive names, the xdata keys replication uses. Each operation waits a
 * seeded moment first and then happens in one step. The disk is found through `graph->edge` (struct simdisk_host).
 */
#pragma once

#include "graph/translator.h"
#include "sim/disk.h"

struct simdisk_host {
    struct disk *disk;
    uint64_t syncs; /* fsyncs done, for tests that count */
};

extern const struct translator_class simdisk_class;
