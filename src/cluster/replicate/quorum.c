/* cluster/replicate/quorum.c */
#include "cluster/replicate/quorum.h"

bool quorum_met(const struct quorum *q, uint32_t children)
{
    unsigned count = mask_count(children);

    switch (q->type) {
    case QUORUM_FIXED: return count >= q->fixed_count && count > 0;
    case QUORUM_AUTO: return 2 * count > q->child_count || (2 * count == q->child_count && (children & 1));
    case QUORUM_NONE: break;
    }
    return count > 0;
}

unsigned quorum_needed(const struct quorum *q)
{
    return q->type == QUORUM_FIXED ? q->fixed_count : q->child_count / 2 + 1;
}
