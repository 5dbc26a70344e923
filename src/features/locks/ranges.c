/* features/locks/ranges.c - POSIX byte ranges of one inode: conflicts, splitting and merging. No waiting, no memory. */
#include "features/locks/locks_internal.h"

bool posix_same_owner(const struct posix_lock *a, const struct posix_lock *b)
{
    return a->client == b->client && lk_owner_equal(&a->owner, &b->owner);
}

bool posix_conflict(const struct posix_lock *a, const struct posix_lock *b)
{
    return (a->type == LOCK_WRITE || b->type == LOCK_WRITE) && ranges_overlap(a->start, a->end, b->start, b->end) &&
           !posix_same_owner(a, b);
}

struct posix_lock *posix_ranges_conflict(struct list *granted, const struct posix_lock *want)
{
    struct posix_lock *g;

    list_for_each (g, granted, of_inode)
        if (posix_conflict(g, want))
            return g;
    return NULL;
}

static void move(struct list *to, struct posix_lock *lock)
{
    list_del(&lock->of_inode);
    list_add_tail(to, &lock->of_inode);
}

static bool touches(const struct posix_lock *a, uint64_t start, uint64_t end)
{
    return (a->end == UINT64_MAX || a->end + 1 >= start) && (end == UINT64_MAX || end + 1 >= a->start);
}

/* Cuts [start, end] out of `lock`, which overlaps it. True when the spare was used for a second half. */
static bool cut(struct posix_lock *lock, uint64_t start, uint64_t end, struct posix_lock *spare, struct list *dead)
{
    if (lock->start < start && lock->end > end) {
        spare->client = lock->client;
        spare->owner = lock->owner;
        spare->inode = lock->inode;
        spare->pid = lock->pid;
        spare->type = lock->type;
        spare->is_mandatory = lock->is_mandatory;
        spare->fd = lock->fd;
        spare->since_ns = lock->since_ns;
        spare->start = end + 1;
        spare->end = lock->end;
        lock->end = start - 1;
        list_add_head(&lock->of_inode, &spare->of_inode);
        return true;
    }
    if (lock->start < start)
        lock->end = start - 1;
    else if (lock->end > end)
        lock->start = end + 1;
    else
        move(dead, lock);
    return false;
}

void posix_ranges_apply(struct list *granted, struct posix_lock *want, struct posix_lock *spare, struct list *dead)
{
    uint64_t start = want->start, end = want->end; /* cut by these; `want` may grow by merging */
    bool is_spare_used = false;
    struct posix_lock *g;

    list_for_each (g, granted, of_inode) {
        if (!posix_same_owner(g, want))
            continue;
        if (g->type == want->type) {
            if (!touches(g, start, end))
                continue;
            want->start = MIN(want->start, g->start);
            want->end = MAX(want->end, g->end);
            move(dead, g);
        } else if (ranges_overlap(g->start, g->end, start, end)) {
            is_spare_used |= cut(g, start, end, spare, dead);
        }
    }
    list_add_tail(want->type == LOCK_NONE ? dead : granted, &want->of_inode);
    if (!is_spare_used)
        list_add_tail(dead, &spare->of_inode);
}
