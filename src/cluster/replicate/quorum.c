/* cluster/replicate/quorum.c */
#include "cluster/replicate/quorum.h"

bool quorum_met(const struct quorum *q, uint32_t children)
{
    unsigned count = mask_count(children);

    switch (q->type) {
    case QUORUM_FIXED: return count >= q->fixed_count && count > 0;
    case QUORUM_AUTO: return 2 * count > q->child_count || (2 * count == q->child_count && (children & 1));
    case QUORUM_WITNESS: return (children & ~q->stale) && (children | q->stale) == mask_all(q->child_count);
    case QUORUM_NONE: break;
    }
    return count > 0;
}

bool quorum_may_be_met(const struct quorum *q, uint32_t children)
{
    /* Another client may have had the witness blame any child that we do not know to be the stale one. */
    return q->type == QUORUM_WITNESS ? (children & ~q->stale) != 0 : quorum_met(q, children);
}

unsigned quorum_needed(const struct quorum *q)
{
    return q->type == QUORUM_FIXED ? q->fixed_count : q->child_count / 2 + 1;
}
