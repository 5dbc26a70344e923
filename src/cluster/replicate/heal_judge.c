/* cluster/replicate/heal_judge.c - which copies are good. */
#include "cluster/replicate/heal_judge.h"

bool heal_set_is_enough(const struct heal_set *set, uint32_t children)
{
    unsigned count = mask_count(children);

    if (count < 2 && set->child_count > 1)
        return false;
    switch (set->quorum.type) {
    case QUORUM_NONE: return count == set->child_count;
    case QUORUM_FIXED: return count + set->quorum.fixed_count > set->child_count;
    case QUORUM_AUTO: break;
    }
    return quorum_met(&set->quorum, children);
}
