/* storage/posix/posix.h - the brick: a directory of this machine served with GlusterFS's on-disk format.
 *
 * docs/on-disk.md describes what is kept where. The leaf of every brick graph; it talks to the kernel itself (the
 * simulator has a storage translator of its own).
 */
#pragma once

#include "graph/translator.h"

extern const struct translator_class posix_class;

/* Test aid, a crash in the middle of an operation: from the steps-th step that changes the brick from now on (1 = the
 * next), every step fails with -ESHUTDOWN and nothing is undone, as if the process had been killed there. The brick
 * must then be stopped and started again. 0 switches it off. Returns how many steps were still to come (0: it fired,
 * or was off). */
uint32_t posix_crash_at(struct translator *me, uint32_t steps);
