/* fcntl and flock locks. They hold between all clients of the volume. Programs that lock expect to see, once they have
 * the lock, all that others wrote before they gave it back; so when a lock is granted the kernel's data, attributes and
 * name of the file are dropped before the answer goes out. */
#include "mount/fuse/fuse_internal.h"
#include <fcntl.h>

#define LOCK_TO_END ((uint64_t)INT64_MAX) /* the kernel's OFFSET_MAX */

static int range_from_kernel(const struct fuse_lk_in *args, struct lock_range *range)
{
    *range = (struct lock_range) { .start = args->lk.start, .pid = (int32_t)args->lk.pid };
    if (args->lk.end < args->lk.start)
        return -EINVAL;
    range->length = args->lk.end >= LOCK_TO_END ? 0 : args->lk.end - args->lk.start + 1;
    lk_owner_from_u64(&range->owner, args->owner);
    switch (args->lk.type) {
    case F_RDLCK: range->type = LOCK_READ; return 0;
    case F_WRLCK: range->type = LOCK_WRITE; return 0;
    case F_UNLCK: range->type = LOCK_NONE; return 0;
    default: return -EINVAL;
    }
}

/* From now on the names in the file's directory are not kept by the kernel; those it keeps it is told to drop. */
static void note_lock(struct mount *m, struct node *node)
{
    struct node *directory = node->name ? node_by_gfid(m, &node->parent) : NULL;
    struct node *n, *next;

    if (!directory || mount_options(m)->entry_timeout_s <= 0)
        return;
    bool is_new = !names_are_shared(m, &directory->gfid);
    directory->locked_ns = env_now_ns(m->env);
    m->has_locks = true;
    if (!is_new)
        return;
    HASH_ITER(hh, m->nodes, n, next)
    {
        if (n->name && gfid_equal(&n->parent, &directory->gfid))
            inval_name_post(m, n);
    }
}

static FIBER int ask_lock(struct request_in *in, enum lock_command command, struct reply *r, struct lock_range *range)
{
    const struct fuse_lk_in *args = (const void *)in->args;
    struct handle *h = handle_by_id(args->fh);
    SCOPED(fd_unref) struct fd *fd = h->fd ? fd_ref(h->fd) : NULL;
    struct request q = { .op = OP_LK, .fd = fd, .command = command, .lock = range };
    int result = range_from_kernel(args, range);

    if (result < 0)
        return result;
    if (!fd)
        return -EBADF;
    q.inode = fd->inode;
    in->call.lk_owner = range->owner;
    if (command != LOCK_GET && range->type == LOCK_NONE)
        q.command = LOCK_UNLOCK;
    if (command != LOCK_GET)
        note_lock(in->m, in->node);
    if (args->lk_flags & FUSE_LK_FLOCK)
        h->has_flock = true;
    else if (command != LOCK_GET)
        in->node->has_posix_locks = true;
    return ask(in, &q, r);
}

FIBER int on_getlk(struct request_in *in)
{
    const struct fuse_lk_in *args = (const void *)in->args;
    SCOPED(reply_free) struct reply *r = reply_new();
    struct fuse_lk_out out = { .lk = args->lk };
    struct lock_range range;
    int result = r ? ask_lock(in, LOCK_GET, r, &range) : -ENOMEM;

    if (result < 0)
        return result;
    if (!r->lock || r->lock->type == LOCK_NONE) {
        out.lk.type = F_UNLCK;
    } else {
        out.lk.type = r->lock->type == LOCK_WRITE ? F_WRLCK : F_RDLCK;
        out.lk.start = r->lock->start;
        out.lk.end = r->lock->length ? r->lock->start + r->lock->length - 1 : LOCK_TO_END;
        out.lk.pid = (uint32_t)r->lock->pid;
    }
    (void)answer(in, &out, sizeof(out));
    return 0;
}

/* Waiting for a lock may take for ever, and the mount may move to another graph meanwhile: then it begins again there. */
static FIBER int ask_and_wait(struct request_in *in, struct reply *r, struct lock_range *range)
{
    for (;;) {
        in->waits_for_lock = true;
        int result = ask_lock(in, LOCK_WAIT, r, range);
        in->waits_for_lock = false;
        if (!in->must_move)
            return result;
        if (result >= 0) { /* granted at the last moment */
            in->must_move = false;
            return result;
        }
        reply_done(r);
        result = moving_step_aside(in);
        if (result < 0)
            return result;
    }
}

static FIBER int set_lock(struct request_in *in, enum lock_command command)
{
    const struct fuse_lk_in *args = (const void *)in->args;
    SCOPED(reply_free) struct reply *r = reply_new();
    struct lock_range range;
    int result;

    if (!r)
        return -ENOMEM;
    result = command == LOCK_WAIT ? ask_and_wait(in, r, &range) : ask_lock(in, command, r, &range);
    if (result < 0)
        return result;
    held_note(handle_by_id(args->fh), &range, args->lk_flags & FUSE_LK_FLOCK);
    if (range.type != LOCK_NONE) {
        in->node->told_is_set = false;
        in->node->cache_ns = env_now_ns(in->m->env);
        in->m->upcalls++; /* its last holder may have changed anything */
        own_attr_forget(in->node);
        inval_all_wait(in->m, in->node);
    }
    (void)answer(in, NULL, 0);
    return 0;
}

FIBER int on_setlk(struct request_in *in)
{
    return set_lock(in, LOCK_TRY);
}

FIBER int on_setlkw(struct request_in *in)
{
    return set_lock(in, LOCK_WAIT);
}
