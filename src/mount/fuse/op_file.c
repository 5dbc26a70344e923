/* Reading, writing and the rest of what is done with an open file. */
#include "mount/fuse/fuse_internal.h"
#include <fcntl.h>

#define READ_PIECES 8 /* answers of the graph that make up one of ours */

/* The descriptor of a handle, with a reference. NULL: lost at a change of graphs. */
static struct fd *fd_of(uint64_t fh)
{
    struct handle *h = handle_by_id(fh);

    return h->fd ? fd_ref(h->fd) : NULL;
}

struct pieces {
    struct buf *list[READ_PIECES];
    unsigned count;
    size_t bytes;
};

static void pieces_done(struct pieces *p)
{
    while (p->count > 0)
        buf_unref(p->list[--p->count]);
}

/* Reads until `want` bytes are there or the file ends; short answers of the graph are no end. */
static FIBER int read_pieces(struct request_in *in, struct request *q, size_t want, struct pieces *p)
{
    SCOPED(reply_free) struct reply *r = reply_new();
    size_t size = q->size;
    uint64_t offset = q->offset;

    if (!r)
        return -ENOMEM;
    do {
        q->offset = offset + p->bytes;
        q->size = size - p->bytes;
        int result = ask(in, q, r);
        if (result < 0)
            return result;
        size_t got = r->data ? MIN(r->data->size, q->size) : 0;
        if (got == 0)
            break;
        p->list[p->count++] = take(r->data);
        p->list[p->count - 1]->size = got;
        p->bytes += got;
        reply_done(r);
    } while (p->bytes < want && p->count < READ_PIECES - 1);
    return 0;
}

/* The file has become shorter than the kernel believes. A short answer would make it cut the file at once, under the
 * feet of programs that have mapped it (SIGBUS). Zeros up to its size are what a hole would give; the true size follows
 * with the attributes, which it is told to ask for. */
static int fill_to_kernel_end(struct request_in *in, size_t want, struct pieces *p)
{
    struct buf *zeros = buf_new(want - p->bytes);

    if (!zeros)
        return -ENOMEM;
    memset(zeros->data, 0, zeros->size);
    p->list[p->count++] = zeros;
    p->bytes = want;
    in->m->count.zero_filled++;
    in->node->told_is_set = false;
    inval_inode_post(in->m, in->node, true);
    return 0;
}

/* What came with the open, if nothing can have changed since. It serves one read. */
static struct buf *take_first(struct request_in *in, struct handle *h)
{
    struct mount *m = in->m;
    struct buf *first = take(h->first);

    if (first && env_now_ns(m->env) - h->first_ns < FUSE_FIRST_NS && h->first_upcalls == m->upcalls &&
        h->first_changes == h->node->changes)
        return first;
    buf_unref(first);
    return NULL;
}

static int answer_first(struct request_in *in, const struct buf *first)
{
    const struct fuse_read_in *args = (const void *)in->args;
    size_t at = (size_t)MIN(args->offset, (uint64_t)first->size);
    size_t bytes = MIN((size_t)args->size, first->size - at);

    in->m->count.bytes_read += bytes;
    (void)answer(in, first->data + at, bytes);
    return 0;
}

FIBER int on_read(struct request_in *in)
{
    const struct fuse_read_in *args = (const void *)in->args;
    SCOPED(buf_unref) struct buf *first = take_first(in, handle_by_id(args->fh));
    SCOPED(fd_unref) struct fd *fd = fd_of(args->fh);
    struct request q = { .op = OP_READ, .fd = fd, .offset = args->offset, .size = args->size };
    bool is_cached = !handle_by_id(args->fh)->is_direct && !(args->flags & O_DIRECT);
    uint64_t end = in->node->kernel_end;
    size_t want = end > args->offset ? (size_t)MIN((uint64_t)args->size, end - args->offset) : 1;
    struct iovec iov[1 + READ_PIECES];
    struct pieces p = { .count = 0 };
    int result;

    if (!fd)
        return -EBADF;
    if (first && first->size >= end)
        return answer_first(in, first);
    q.inode = fd->inode;
    if (args->read_flags & FUSE_READ_LOCKOWNER)
        lk_owner_from_u64(&in->call.lk_owner, args->lock_owner);
    result = read_pieces(in, &q, want, &p);
    if (result == 0 && is_cached && end > args->offset && p.bytes < want)
        result = fill_to_kernel_end(in, want, &p);
    if (result == 0) {
        for (unsigned i = 0; i < p.count; i++)
            iov[1 + i] = (struct iovec) { p.list[i]->data, p.list[i]->size };
        in->m->count.bytes_read += p.bytes;
        (void)answer_iov(in, iov, 1 + (int)p.count);
    }
    pieces_done(&p);
    return result;
}

FIBER int on_write(struct request_in *in)
{
    const struct fuse_write_in *args = (const void *)in->args;
    struct mount *m = in->m;
    struct node *node = in->node;
    SCOPED(fd_unref) struct fd *fd = fd_of(args->fh);
    SCOPED(reply_free) struct reply *r = reply_new();
    struct request q = { .op = OP_WRITE, .fd = fd, .offset = args->offset, .data = in->data };
    struct fuse_write_out out = { 0 };
    uint64_t end;
    int result;

    if (!fd || !r)
        return fd ? -ENOMEM : -EBADF;
    if (!in->data || in->data->size != args->size)
        return -EIO;
    node->changes++;
    q.inode = fd->inode;
    q.flags = args->flags & (O_APPEND | O_SYNC | O_DSYNC | O_DIRECT);
    if (args->write_flags & FUSE_WRITE_LOCKOWNER)
        lk_owner_from_u64(&in->call.lk_owner, args->lock_owner);
    result = ask(in, &q, r);
    if (result < 0) {
        node->cache_ns = 0; /* this or an earlier write is in the kernel's pages, but nowhere else */
        return result;
    }
    if (args->write_flags & FUSE_WRITE_KILL_SUIDGID)
        kill_suid_after_write(in, node, &r->post);
    end = args->offset + (uint64_t)result;
    node_wrote(m, node, end, &r->pre, &r->post);
    m->count.bytes_written += (uint64_t)result;
    out.size = (uint32_t)result;
    (void)answer(in, &out, sizeof(out));
    /* The kernel has put appended data where it believed the end to be. */
    if (fd->flags & O_APPEND && (!iatt_is_set(&r->post) || r->post.size != end))
        inval_inode_post(m, node, false);
    return 0;
}

static FIBER int sync_file(struct request_in *in, enum op op)
{
    const struct fuse_fsync_in *args = (const void *)in->args;
    SCOPED(fd_unref) struct fd *fd = fd_of(args->fh);
    struct request q = { .op = op, .fd = fd };
    int result;

    if (!fd)
        return -EBADF;
    q.inode = fd->inode;
    q.flags = args->fsync_flags & FUSE_FSYNC_FDATASYNC ? 1 : 0;
    result = ask(in, &q, NULL);
    if (result < 0) {
        in->node->cache_ns = 0;
        return result;
    }
    (void)answer(in, NULL, 0);
    return 0;
}

FIBER int on_fsync(struct request_in *in)
{
    return sync_file(in, OP_FSYNC);
}

FIBER int on_fsyncdir(struct request_in *in)
{
    return sync_file(in, OP_FSYNCDIR);
}

FIBER int on_fallocate(struct request_in *in)
{
    const struct fuse_fallocate_in *args = (const void *)in->args;
    SCOPED(fd_unref) struct fd *fd = fd_of(args->fh);
    struct request q = {
        .op = OP_FALLOCATE, .fd = fd, .flags = args->mode, .offset = args->offset, .size = args->length
    };
    int result;

    if (!fd)
        return -EBADF;
    q.inode = fd->inode;
    in->node->changes++;
    result = ask(in, &q, NULL);
    if (result < 0)
        return result == -ENOSYS ? -EOPNOTSUPP : result; /* ENOSYS would end fallocate for the whole mount */
    if (!(args->mode & FALLOC_FL_KEEP_SIZE))
        in->node->kernel_end = MAX(in->node->kernel_end, args->offset + args->length);
    in->node->told_is_set = false;
    (void)answer(in, NULL, 0);
    return 0;
}

FIBER int on_lseek(struct request_in *in)
{
    const struct fuse_lseek_in *args = (const void *)in->args;
    SCOPED(fd_unref) struct fd *fd = fd_of(args->fh);
    SCOPED(reply_free) struct reply *r = reply_new();
    struct request q = { .op = OP_SEEK, .fd = fd, .offset = args->offset, .flags = args->whence };
    struct fuse_lseek_out out = { 0 };
    int result;

    if (!fd || !r)
        return fd ? -ENOMEM : -EBADF;
    q.inode = fd->inode;
    result = ask(in, &q, r);
    if (result < 0)
        return result; /* ENOSYS: the kernel then treats files as without holes */
    out.offset = r->offset;
    (void)answer(in, &out, sizeof(out));
    return 0;
}

FIBER int on_copy_range(struct request_in *in)
{
    const struct fuse_copy_file_range_in *args = (const void *)in->args;
    SCOPED(fd_unref) struct fd *from = fd_of(args->fh_in);
    SCOPED(fd_unref) struct fd *to = fd_of(args->fh_out);
    struct node *target = node_by_id(in->m, args->nodeid_out);
    SCOPED(reply_free) struct reply *r = reply_new();
    struct request q = { .op = OP_COPY_RANGE, .fd = from, .fd2 = to };
    struct fuse_write_out out = { 0 };
    int result;

    if (!from || !to || !r)
        return r ? -EBADF : -ENOMEM;
    q.inode = from->inode;
    q.inode2 = to->inode;
    q.offset = args->off_in;
    q.offset2 = args->off_out;
    q.size = MIN(args->len, (uint64_t)1 << 30); /* what one answer can count and one time-out covers */
    q.flags = (uint32_t)args->flags;
    node_pin(target);
    target->changes++;
    target->own_changes++;
    result = ask(in, &q, r);
    target->own_changes++;
    if (result >= 0) {
        target->kernel_end = MAX(target->kernel_end, args->off_out + (uint64_t)result);
        target->told_is_set = false;
        out.size = (uint32_t)result;
        (void)answer(in, &out, sizeof(out));
    }
    node_unpin(in->m, target);
    return result == -ENOSYS ? -EOPNOTSUPP : result;
}
