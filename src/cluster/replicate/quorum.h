/* cluster/replicate/quorum.h - how many children make a decision: pure. */
#pragma once

#include "cluster/replicate/changelog.h"

enum quorum_type { QUORUM_NONE, QUORUM_AUTO, QUORUM_FIXED, QUORUM_WITNESS };

struct quorum {
    enum quorum_type type;
    unsigned fixed_count; /* QUORUM_FIXED */
    unsigned child_count;
    uint32_t stale; /* QUORUM_WITNESS: the children that the witness blames, as far as we may rely on it */
};

/* Is this set of children enough? auto: more than half, or exactly half with the first child among them. none: at
 * least one. witness: all that are not stale, and at least one. */
bool quorum_met(const struct quorum *q, uint32_t children);
/* Could it be enough for somebody who knows more than we do? */
bool quorum_may_be_met(const struct quorum *q, uint32_t children);
/* How many children a majority needs (heal direction): the fixed count, else N/2+1. */
unsigned quorum_needed(const struct quorum *q);
