/* The locks programs hold on a file, as the kernel asked for them: what has to be taken along to another graph. */
#include "mount/fuse/fuse_internal.h"

static uint64_t last_of(const struct lock_range *r)
{
    return r->length == 0 || r->start + r->length < r->start ? UINT64_MAX : r->start + r->length - 1;
}

static void drop(struct held_range *l)
{
    list_del(&l->of_node);
    mem_free(l);
}

/* Without memory the range is not taken along to another graph; nothing else depends on it. */
static void add(struct handle *h, const struct lock_range *like, uint64_t start, uint64_t last, bool is_flock)
{
    struct held_range *l = NEW(struct held_range);

    if (!l)
        return;
    l->handle = h;
    l->range = *like;
    l->range.start = start;
    l->range.length = last == UINT64_MAX ? 0 : last - start + 1;
    l->is_flock = is_flock;
    list_add_head(&h->node->held, &l->of_node); /* in front: a walk that splits does not meet the rest again */
}

void held_note(struct handle *h, const struct lock_range *range, bool is_flock)
{
    uint64_t start = range->start, last = last_of(range);
    struct held_range *l;

    list_for_each (l, &h->node->held, of_node) {
        uint64_t end = last_of(&l->range);

        if (l->is_flock != is_flock || !lk_owner_equal(&l->range.owner, &range->owner) || end < start ||
            l->range.start > last)
            continue;
        if (l->range.start < start)
            add(l->handle, &l->range, l->range.start, start - 1, is_flock);
        if (end > last)
            add(l->handle, &l->range, last + 1, end, is_flock);
        drop(l);
    }
    if (range->type != LOCK_NONE)
        add(h, range, start, last, is_flock);
}

void held_flushed(struct node *node, const struct lk_owner *owner)
{
    struct held_range *l;

    list_for_each (l, &node->held, of_node) {
        if (!l->is_flock && lk_owner_equal(&l->range.owner, owner))
            drop(l);
    }
}

void held_closed(struct handle *h)
{
    struct held_range *l;

    list_for_each (l, &h->node->held, of_node) {
        if (l->handle == h)
            drop(l);
    }
}
