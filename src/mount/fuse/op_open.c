/* Opening and closing, and what the kernel may keep of a file over an open. */
#include "mount/fuse/fuse_internal.h"
#include <fcntl.h>

#define STALE_AGAIN_NS 1000000000u

uint32_t open_flags(struct mount *m, uint32_t flags)
{
    if (m->flags & FUSE_WRITEBACK_CACHE) { /* the kernel fills pages before it writes them, and appends by itself */
        if ((flags & O_ACCMODE) == O_WRONLY)
            flags = (flags & ~(uint32_t)O_ACCMODE) | O_RDWR;
        flags &= ~(uint32_t)O_APPEND;
    }
    return flags & ~(uint32_t)(O_TRUNC | O_NOCTTY);
}

/* Through its pages the kernel may cut a write in two where a page ends that it has not got whole; between the two
 * appends another client's may land. Writes past the pages stay whole. Shared mappings need a reader's descriptor. */
static bool appends_past_pages(const struct mount *m, uint32_t flags)
{
    return (flags & O_APPEND) && !(m->flags & FUSE_WRITEBACK_CACHE) &&
           ((flags & O_ACCMODE) == O_WRONLY || (m->flags & FUSE_DIRECT_IO_ALLOW_MMAP));
}

void open_answer(struct mount *m, struct handle *h, struct fuse_open_out *out)
{
    h->is_direct = mount_options(m)->direct_io == DIRECT_ON || appends_past_pages(m, h->flags);
    out->fh = (uint64_t)(uintptr_t)h;
    if (h->is_direct)
        out->open_flags |= FOPEN_DIRECT_IO | FOPEN_PARALLEL_DIRECT_WRITES;
}

static bool are_steady(const struct node *node)
{
    return node->told_is_set && node->cache_ns >= node->told_ns + FUSE_STEADY_NS;
}

/* The attributes now are `a`. True: the pages the kernel has may stay. If not, it drops them itself when the open is
 * answered, but it goes on believing the attributes it has: size and mtime must be taken from it first. (A ctime alone
 * moves when bricks keep their records; it may be old for as long as attributes may.) */
static FIBER bool settle_cache(struct mount *m, struct node *node, const struct iatt *a)
{
    bool is_same = told_matches(node, a);
    bool is_dropped = node->is_written && a->size == node->kernel_end;
    bool is_visible = !node->told_is_set || node->told.size != a->size || node->told.mtime != a->mtime ||
                      node->told.mtime_nsec != a->mtime_nsec;

    bool may_stay = pages_are_leased(m, node) || (is_same && (are_steady(node) || mount_options(m)->keep_cache));

    m->count.caches_kept += may_stay;
    if (!may_stay)
        node->cache_ns = env_now_ns(m->env);
    if (!is_same)
        node_told(m, node, a);
    if (is_visible && !is_dropped)
        inval_inode_wait(m, node, true);
    return may_stay;
}

static FIBER int truncate_opened(struct request_in *in, struct node *node, struct fd *fd, bool kill_suid,
                                 struct reply *r)
{
    struct request q = { .op = OP_TRUNCATE, .inode = fd->inode };
    int result;

    q.fd = (fd->flags & O_ACCMODE) == O_RDONLY ? NULL : fd; /* O_RDONLY | O_TRUNC: the kernel has checked it */
    result = ask(in, &q, r);
    if (result >= 0 && kill_suid)
        kill_suid_bits(in, node, r->post.mode);
    return result;
}

/* A small file that is opened for reading is read, if the kernel will not keep the pages it has. */
static bool will_be_read(struct mount *m, struct node *node, uint32_t flags)
{
    bool is_kept = are_steady(node) || pages_are_leased(m, node);

    return (flags & O_ACCMODE) == O_RDONLY && !(flags & (O_TRUNC | O_DIRECT)) && node->type == S_IFREG && !is_kept &&
           node->kernel_end > 0 && node->kernel_end <= FUSE_FIRST_BYTES;
}

static FIBER int open_inode(struct request_in *in, struct node *node, uint32_t flags, struct reply *r,
                            struct fd **ret_fd)
{
    struct inode *inode = node_inode(in->m, node);
    SCOPED(fd_unref) struct fd *fd = inode ? fd_new(inode, open_flags(in->m, flags), in->call.pid) : NULL;
    struct request q = { .op = OP_OPEN, .inode = inode, .fd = fd };
    int result;

    if (!fd)
        return -ENOMEM;
    q.flags = fd->flags;
    q.size = will_be_read(in->m, node, flags) ? FUSE_FIRST_BYTES : 0;
    result = ask(in, &q, r);
    if (result < 0)
        return result == -ENOENT ? -ESTALE : result;
    *ret_fd = take(fd);
    return 0;
}

/* A name that others replace all the time is replaced between look-up, check of attributes and open as well. The kernel
 * walks the path again after the first ESTALE, but only once; on a local disk the caller would not notice. So the
 * look-up of that second walk (keep_spare) leaves a descriptor with the node: the attributes are asked for by it, and
 * the open takes it. */
static struct stale *stale_of(struct request_in *in)
{
    return &in->m->stale[in->head.pid % ARRAY_SIZE(in->m->stale)];
}

bool is_walking_again(struct request_in *in)
{
    const struct stale *s = stale_of(in);

    return s->pid == in->head.pid && env_now_ns(in->m->env) - s->at_ns < STALE_AGAIN_NS;
}

FIBER int keep_spare(struct request_in *in, struct node *node)
{
    SCOPED(inode_unref) struct inode *inode = node_inode(in->m, node) ? inode_ref(node->inode) : NULL;
    SCOPED(fd_unref) struct fd *fd = inode ? fd_new(inode, O_RDWR, in->call.pid) : NULL;
    struct request q = { .op = OP_OPEN, .inode = inode, .fd = fd, .flags = O_RDWR };
    struct call as_root;
    int result;

    if (!fd)
        return -ENOMEM;
    if (node->left)
        return -ESTALE;
    call_copy(&as_root, &in->call); /* the kernel checks what the caller may do when it opens */
    as_root.uid = as_root.gid = 0;
    result = child_call(in->m->me, 0, &as_root, &q, NULL);
    call_done(&as_root);
    if (result < 0)
        return result;
    fd_unref(node->spare);
    node->spare = take(fd);
    node->spare_ns = env_now_ns(in->m->env);
    return 0;
}

void note_stale(struct request_in *in)
{
    *stale_of(in) = (struct stale) { .pid = in->head.pid, .at_ns = env_now_ns(in->m->env) };
}

/* Several threads may have found the same file: each gets the descriptor. */
static int use_spare(struct request_in *in, struct node *node, struct fd **ret_fd)
{
    if (!node->spare || node->spare->inode != node_inode(in->m, node))
        return -ESTALE;
    in->m->count.retries++;
    *ret_fd = fd_ref(node->spare);
    return 0;
}

static void drop_old_spare(struct request_in *in, struct node *node)
{
    if (node->spare && env_now_ns(in->m->env) - node->spare_ns >= STALE_AGAIN_NS)
        fd_unref(take(node->spare));
}

/* Truncates if asked to and finds out the attributes. */
static FIBER int after_open(struct request_in *in, struct node *node, struct fd *fd, uint32_t flags, bool kill_suid,
                            struct reply *r)
{
    struct request stat = { .op = OP_STAT, .inode = fd->inode, .fd = fd };

    if (flags & O_TRUNC) {
        reply_done(r);
        return truncate_opened(in, node, fd, kill_suid, r);
    }
    if (iatt_is_set(&r->stat)) /* our bricks tell with the open */
        return 0;
    reply_done(r);
    return ask(in, &stat, r);
}

FIBER int open_node(struct request_in *in, struct node *node, uint32_t flags, bool kill_suid, struct fuse_open_out *out)
{
    struct mount *m = in->m;
    SCOPED(reply_free) struct reply *r = reply_new();
    SCOPED(fd_unref) struct fd *fd = NULL;
    struct handle *h;
    int result;

    if (!r)
        return -ENOMEM;
    uint64_t changes = node->changes;
    if (flags & O_TRUNC)
        node->own_changes++;
    result = open_inode(in, node, flags, r, &fd);
    if (result == -ESTALE)
        result = use_spare(in, node, &fd);
    else
        drop_old_spare(in, node);
    if (result >= 0)
        result = after_open(in, node, fd, flags, kill_suid, r);
    if (result < 0)
        return result == -ENOENT ? -ESTALE : result;
    if (flags & O_TRUNC) { /* the kernel drops its pages itself */
        node->own_changes++;
        node->cache_ns = env_now_ns(m->env);
        node->kernel_end = 0;
        node->told_is_set = false;
    } else if (settle_cache(m, node, &r->stat)) {
        out->open_flags |= FOPEN_KEEP_CACHE;
    }
    h = handle_new(node, fd, flags);
    if (!h)
        return -ENOMEM;
    if (r->data && !(out->open_flags & FOPEN_KEEP_CACHE)) {
        h->first = take(r->data);
        h->first_ns = env_now_ns(m->env);
        h->first_upcalls = in->upcalls;
        h->first_changes = changes;
    }
    open_answer(m, h, out);
    return 0;
}

FIBER int on_open(struct request_in *in)
{
    const struct fuse_open_in *args = (const void *)in->args;
    struct fuse_open_out out = { 0 };
    int result = open_node(in, in->node, args->flags, args->open_flags & FUSE_OPEN_KILL_SUIDGID, &out);

    if (result < 0)
        return result;
    if (answer(in, &out, sizeof(out)) < 0)
        handle_free(in->m, handle_by_id(out.fh)); /* the caller was killed: no release will come */
    return 0;
}

FIBER int on_flush(struct request_in *in)
{
    const struct fuse_flush_in *args = (const void *)in->args;
    struct handle *h = handle_by_id(args->fh);
    SCOPED(fd_unref) struct fd *fd = h->fd ? fd_ref(h->fd) : NULL;
    struct request q = { .op = OP_FLUSH, .fd = fd };
    int result = 0;

    if (!fd)
        return -EBADF;
    q.inode = fd->inode;
    lk_owner_from_u64(&in->call.lk_owner, args->lock_owner);
    /* A reader without locks has nothing that could fail or must be given back. */
    if ((h->flags & O_ACCMODE) != O_RDONLY || in->node->has_posix_locks)
        result = ask(in, &q, NULL);
    held_flushed(in->node, &in->call.lk_owner);
    if (result < 0) {
        in->node->cache_ns = 0;
        return result;
    }
    (void)answer(in, NULL, 0);
    return 0;
}

FIBER int on_release(struct request_in *in)
{
    const struct fuse_release_in *args = (const void *)in->args;
    struct handle *h = handle_by_id(args->fh);

    if (h->fd && (h->has_flock || args->release_flags & FUSE_RELEASE_FLOCK_UNLOCK)) {
        struct lock_range all = { .type = LOCK_NONE, .pid = in->call.pid };
        struct request q = { .op = OP_LK, .inode = h->fd->inode, .fd = h->fd, .command = LOCK_UNLOCK, .lock = &all };

        lk_owner_from_u64(&all.owner, args->lock_owner);
        in->call.lk_owner = all.owner;
        (void)ask(in, &q, NULL); /* the brick drops it with the descriptor as well */
    }
    (void)answer(in, NULL, 0);
    handle_free(in->m, h);
    return 0;
}

FIBER int on_opendir(struct request_in *in)
{
    struct mount *m = in->m;
    struct inode *inode = node_inode(m, in->node);
    SCOPED(fd_unref) struct fd *fd = inode ? fd_new(inode, O_RDONLY | O_DIRECTORY, in->call.pid) : NULL;
    struct request q = { .op = OP_OPENDIR, .inode = inode, .fd = fd };
    struct fuse_open_out out = { 0 };
    struct handle *h;
    int result;

    if (!fd)
        return -ENOMEM;
    fd->is_dir = true;
    result = ask(in, &q, NULL);
    if (result < 0)
        return result == -ENOENT ? -ESTALE : result;
    h = handle_new(in->node, fd, O_RDONLY);
    if (!h)
        return -ENOMEM;
    out.fh = (uint64_t)(uintptr_t)h;
    if (answer(in, &out, sizeof(out)) < 0)
        handle_free(m, h);
    return 0;
}

FIBER int on_releasedir(struct request_in *in)
{
    const struct fuse_release_in *args = (const void *)in->args;

    (void)answer(in, NULL, 0);
    handle_free(in->m, handle_by_id(args->fh));
    return 0;
}
