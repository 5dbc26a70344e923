/* Shorthands for tests of heal over the bricks of world.h. */
#pragma once

#include "cluster/replicate/heal.h"
#include "unit/replicate/world.h"

/* Heals one inode with everything else at its default, or as `how` says; the report is overwritten. */
FIBER enum heal_outcome heal_now(struct world *w, const struct gfid *gfid, struct heal_report *report);
FIBER enum heal_outcome heal_how(struct world *w, const struct gfid *gfid, const struct heal_how *how,
                                 struct heal_report *report);
/* Heals whatever any brick has a counter for, as a crawl of the indices would, until nothing changes any more. */
FIBER void heal_crawl(struct world *w);
/* All bricks hold the same names, inodes, attributes, xattrs and contents. Prints the first difference. */
bool bricks_are_equal(const struct world *w);
/* No counter is left on any brick. Prints the first one. */
bool no_counters(const struct world *w);
