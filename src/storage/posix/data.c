/* storage/posix/data.c - open, read, write, and everything else about the bytes of files.
 *
 * Reads that the page cache can answer and small buffered writes run on the loop; the rest is one pool job per
 * operation. What changes size or data holds pnode.busy while it is on the pool, and waits for it before it runs on the
 * loop: attributes before and after, and where an append lands, are exact. */
#include "storage/posix/posix_internal.h"
#include <linux/falloc.h>
#include <stdio.h>
#include <sys/statvfs.h>

#define READ_BYTES_MAX  (8u << 20)
#define COPY_STEP_BYTES (1u << 30)

/* ---- open ---- */

/* It could not be opened for writing when it was opened (a program that ran from the brick, a file system mounted
 * read-only): perhaps now. */
static int make_writable(struct pfile *f)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", f->fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    f->is_writable = dup3(fd, f->fd, O_CLOEXEC) >= 0;
    close(fd);
    return f->is_writable ? 0 : -EIO;
}

static int open_checked(struct pfile *f, uint32_t flags)
{
    if (f->type == S_IFDIR)
        return -EISDIR;
    if (f->type == S_IFLNK)
        return -ELOOP;
    if (f->type != S_IFREG)
        return -ENXIO;
    if (f->is_path)
        return -EACCES;
    return (flags & O_ACCMODE) == O_RDONLY || f->is_writable ? 0 : make_writable(f);
}

/* O_DIRECT has a descriptor of its own beside the ordinary one, which serves what is not aligned. */
static struct pfile *open_direct(struct posix *s, struct pfile *f, uint32_t flags)
{
    struct stat st;
    if (!(flags & O_DIRECT) && !s->o_direct)
        return NULL;
    snprintf(s->path, PATH_MAX, "/proc/self/fd/%d", f->fd);
    int fd = open(s->path, O_RDWR | O_DIRECT | O_CLOEXEC);
    if (fd < 0)
        return NULL; /* the file system has no such thing: its cache it is */
    return fstat(fd, &st) == 0 ? pfile_new(fd, false, &st) : (close(fd), NULL);
}

FIBER int posix_open(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct posix *s = me->state;
    SCOPED(pfile_unref) struct pfile *f = NULL;
    void **slot = fd_ctx(q->fd, me);

    int e = pnode_file(me, q->inode, &f);
    if (e == 0)
        e = open_checked(f, q->flags);
    if (e < 0)
        return e;
    struct pnode *n = pnode_of(me, q->inode);
    if ((q->flags & O_TRUNC) && (q->flags & O_ACCMODE) != O_RDONLY) {
        e = fiber_mutex_lock(&n->busy, &call->scope);
        if (e < 0)
            return e;
        e = ftruncate(f->fd, 0) < 0 ? -errno : 0;
        fiber_mutex_unlock(&n->busy);
    }
    if (e == 0)
        e = mdata_stamp(s, n, f, call, false);
    if (e < 0 || *slot)
        return e;
    struct pfd *p = NEW(struct pfd);
    if (!p)
        return -ENOMEM;
    p->direct = open_direct(s, f, q->flags);
    p->file = take(f);
    p->node = n;
    n->open_count++;
    *slot = p;
    return 0;
}

/* ---- read ---- */

struct read_job {
    int fd;
    uint64_t offset;
    size_t size;
    uint8_t *data;
    ssize_t n; /* bytes or -errno */
};

static void read_on_pool(void *arg)
{
    struct read_job *j = arg;
    size_t got = 0;
    while (got < j->size) {
        ssize_t n = pread(j->fd, j->data + got, j->size - got, (off_t)(j->offset + got));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && got == 0) {
            j->n = -errno;
            return;
        }
        if (n <= 0)
            break;
        got += (size_t)n;
    }
    j->n = (ssize_t)got;
}

static bool is_aligned(uint64_t offset, size_t size, const void *data)
{
    return !((offset | size | (uintptr_t)data) & (PAGE_BYTES - 1));
}

static FIBER void read_bytes(struct translator *me, struct read_job *j)
{
    struct posix *s = me->state;
    struct iovec iov = { .iov_base = j->data, .iov_len = j->size };
    j->n = preadv2(j->fd, &iov, 1, (off_t)j->offset, RWF_NOWAIT);
    if (j->n == (ssize_t)j->size || (j->n == 0 && j->size == 0)) {
        s->inline_ops++;
        return;
    }
    s->pool_ops++;
    env_pool_run(me->env, read_on_pool, j);
}

/* Reads through this descriptor do not move the access time from now on, or do again. All who have the file open share
 * it: a read of theirs at the same time does not count either. */
static int set_noatime(int fd, bool on)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0 || fcntl(fd, F_SETFL, on ? flags | O_NOATIME : flags & ~O_NOATIME) < 0)
        return -errno;
    return 0;
}

static FIBER int read_quietly(struct translator *me, struct read_job *j)
{
    int e = set_noatime(j->fd, true);

    if (e < 0)
        return e;
    read_bytes(me, j);
    return set_noatime(j->fd, false);
}

FIBER int posix_read(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct posix *s = me->state;
    SCOPED(pfile_unref) struct pfile *f = NULL;
    int e = pnode_of_request(me, q, &f);
    if (e == 0)
        e = open_checked(f, O_RDONLY);
    if (e < 0)
        return e;
    struct stat st;
    if (fstat(f->fd, &st) < 0)
        return -errno;
    uint64_t left = q->offset < (uint64_t)st.st_size ? (uint64_t)st.st_size - q->offset : 0;
    uint64_t wanted = MIN(q->size, (uint64_t)READ_BYTES_MAX);
    size_t size = (size_t)MIN(wanted, left);
    SCOPED(buf_unref) struct buf *b = buf_new(size ? (size + PAGE_BYTES - 1) & ~(size_t)(PAGE_BYTES - 1) : 1);
    if (!b)
        return -ENOMEM;
    struct read_job j = { .fd = f->fd, .offset = q->offset, .size = size, .data = b->data };
    struct pfd *p = pfd_of(me, q->fd);
    SCOPED(pfile_unref) struct pfile *direct = p && p->direct ? pfile_ref(p->direct) : NULL;
    if (size && direct && is_aligned(q->offset, b->capacity, b->data)) {
        j.fd = direct->fd;
        j.size = b->capacity;
        env_pool_run(me->env, read_on_pool, &j);
        j.n = j.n > (ssize_t)size ? (ssize_t)size : j.n;
    } else if (size && (q->flags & O_NOATIME)) {
        e = read_quietly(me, &j);
        if (e < 0)
            return e;
    } else if (size) {
        read_bytes(me, &j);
    }
    if (j.n < 0)
        return (int)j.n;
    b->size = (size_t)j.n;
    struct pnode *n = pnode_of(me, q->inode);
    if (!n)
        return -ENOMEM;
    e = mdata_stamp(s, n, f, call, false);
    if (e == 0)
        e = pfile_iatt(s, n, f, &r->stat);
    if (e == 0 && q->xdata) {
        struct xnode x = xnode_of_file(s, f);
        e = posix_answer(me, call, n, &x, &st, q->xdata, &r->xdata);
    }
    if (e < 0)
        return e;
    r->data = take(b);
    return (int)j.n;
}

/* ---- write ---- */

struct write_job {
    int fd, direct_fd;
    const uint8_t *data;
    size_t size;
    uint64_t offset;
    bool at_end; /* O_APPEND */
    int rwf;     /* RWF_DSYNC, RWF_SYNC */
    struct stat pre, post;
    ssize_t n;
};

static ssize_t write_all(int fd, const struct write_job *j)
{
    size_t done = 0;
    while (done < j->size) {
        struct iovec iov = { .iov_base = (void *)(uintptr_t)(j->data + done), .iov_len = j->size - done };
        ssize_t n = pwritev2(fd, &iov, 1, (off_t)(j->offset + done), j->rwf);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return done ? (ssize_t)done : -errno;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

static void write_on_pool(void *arg)
{
    struct write_job *j = arg;
    j->n = 0;
    if (fstat(j->fd, &j->pre) < 0) {
        j->n = -errno;
        return;
    }
    if (j->at_end)
        j->offset = (uint64_t)j->pre.st_size;
    int fd = j->direct_fd >= 0 && is_aligned(j->offset, j->size, j->data) ? j->direct_fd : j->fd;
    j->n = write_all(fd, j);
    if (fstat(j->fd, &j->post) < 0 && j->n >= 0)
        j->n = -errno;
}

static int write_flags(const struct request *q)
{
    uint32_t flags = q->flags | (q->fd ? q->fd->flags : 0);
    if ((flags & O_SYNC) == O_SYNC)
        return RWF_SYNC;
    return flags & O_DSYNC ? RWF_DSYNC : 0;
}

/* On the loop when it is short work and nobody is at the inode, else on the pool with the inode held. */
static FIBER int write_bytes(struct translator *me, struct call *call, struct pnode *n, struct write_job *j)
{
    struct posix *s = me->state;
    bool on_pool = j->size > s->inline_write_bytes || j->rwf || j->direct_fd >= 0;

    if (!on_pool && !n->busy.is_held) {
        s->inline_ops++;
        write_on_pool(j); /* the same work, here */
        return 0;
    }
    int e = fiber_mutex_lock(&n->busy, &call->scope);
    if (e < 0)
        return e;
    s->pool_ops++;
    env_pool_run(me->env, write_on_pool, j);
    fiber_mutex_unlock(&n->busy);
    return 0;
}

static int answer_write(struct translator *me, struct call *call, const struct request *q, struct pnode *n,
                        struct pfile *f, const struct write_job *j, struct reply *r)
{
    if (!q->xdata)
        return 0;
    struct xnode x = xnode_of_file(me->state, f);
    int e = posix_answer(me, call, n, &x, &j->post, q->xdata, &r->xdata);
    if (e == 0 && dict_has(q->xdata, "glusterfs.write-is-append"))
        e = dict_put_uint(&r->xdata, "glusterfs.write-is-append", j->offset >= (uint64_t)j->pre.st_size);
    return e;
}

/* Rebalance copies in the background: what a client has written meanwhile must stay. */
static int check_overwrite(struct posix *s, const struct request *q, struct pfile *f)
{
    if (!dict_has(q->xdata, "glusterfs.avoid.overwrite"))
        return 0;
    struct xnode x = xnode_of_file(s, f);
    return px_get(s, &x, "trusted.glusterfs.protect.writes", s->value, XATTR_BYTES_MAX) >= 0 ? -EBUSY : 0;
}

FIBER int posix_write(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct posix *s = me->state;
    SCOPED(pfile_unref) struct pfile *f = NULL;
    struct pnode *n = pnode_of(me, q->inode);
    int e = n ? pnode_of_request(me, q, &f) : -ENOMEM;
    if (e == 0)
        e = open_checked(f, O_RDWR);
    if (e == 0)
        e = posix_room_check(s, call, q->xdata, q->data->size);
    if (e == 0)
        e = check_overwrite(s, q, f);
    if (e == 0 && !posix_step(s))
        e = -ESHUTDOWN;
    if (e < 0)
        return e;
    struct pfd *p = pfd_of(me, q->fd);
    SCOPED(pfile_unref) struct pfile *direct = p && p->direct ? pfile_ref(p->direct) : NULL;
    SCOPED_FREE struct write_job *j = NEW(struct write_job);
    if (!j)
        return -ENOMEM;
    *j = (struct write_job) {
        .fd = f->fd,
        .direct_fd = direct ? direct->fd : -1,
        .data = q->data->data,
        .size = q->data->size,
        .offset = q->offset,
        .at_end = q->fd && (q->fd->flags & O_APPEND),
        .rwf = write_flags(q),
    };
    e = write_bytes(me, call, n, j);
    if (e < 0 || j->n < 0)
        return e < 0 ? e : (int)j->n;
    struct xnode x = xnode_of_file(s, f);
    pnode_load_mdata(s, n, &x);
    posix_iatt(s, n, &n->gfid, &j->pre, &r->pre);
    e = mdata_stamp_content(s, n, f, call, &j->post);
    posix_iatt(s, n, &n->gfid, &j->post, &r->post);
    if (e == 0)
        e = answer_write(me, call, q, n, f, j, r);
    return e < 0 ? e : (int)j->n;
}

/* ---- truncate, fallocate ---- */

struct range_job {
    int fd;
    int mode; /* FALLOC_FL_*; -1: truncate to offset */
    uint64_t offset, size;
    struct stat pre, post;
    int r;
};

/* Frees what a failed allocation left: blocks past the end, and unwritten blocks inside, which seek shows as holes. */
static void fallocate_undo(const struct range_job *j)
{
    off_t at = (off_t)j->offset, end = (off_t)(j->offset + j->size);

    (void)ftruncate(j->fd, j->pre.st_size); /* the error that counts is the allocation's */
    end = MIN(end, (off_t)j->pre.st_size);
    while (at < end) {
        off_t hole = lseek(j->fd, at, SEEK_HOLE);
        if (hole < 0 || hole >= end)
            return;
        off_t data = lseek(j->fd, hole, SEEK_DATA);
        if (data < 0 || data > end)
            data = end;
        (void)fallocate(j->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, hole, data - hole);
        at = data;
    }
}

static void range_on_pool(void *arg)
{
    struct range_job *j = arg;
    if (fstat(j->fd, &j->pre) < 0) {
        j->r = -errno;
        return;
    }
    int r =
        j->mode < 0 ? ftruncate(j->fd, (off_t)j->offset) : fallocate(j->fd, j->mode, (off_t)j->offset, (off_t)j->size);
    j->r = r < 0 ? -errno : 0;
    if (j->mode >= 0 && !(j->mode & FALLOC_FL_PUNCH_HOLE) && j->r == -ENOSPC)
        fallocate_undo(j);
    if (j->r == 0 && fstat(j->fd, &j->post) < 0)
        j->r = -errno;
}

static FIBER int range_op(struct translator *me, struct call *call, const struct request *q, struct reply *r, int mode)
{
    struct posix *s = me->state;
    SCOPED(pfile_unref) struct pfile *f = NULL;
    struct pnode *n = pnode_of(me, q->inode);
    int e = n ? pnode_of_request(me, q, &f) : -ENOMEM;
    if (e == 0)
        e = open_checked(f, O_RDWR);
    if (e == 0 && !posix_step(s))
        e = -ESHUTDOWN;
    if (e < 0)
        return e;
    SCOPED_FREE struct range_job *j = NEW(struct range_job);
    if (!j)
        return -ENOMEM;
    *j = (struct range_job) { .fd = f->fd, .mode = mode, .offset = q->offset, .size = q->size };
    if (fstat(f->fd, &j->pre) < 0)
        return -errno;
    bool frees = mode < 0 && j->pre.st_blocks && q->offset < (uint64_t)j->pre.st_size;
    bool is_quick = mode < 0 && (!frees || (j->pre.st_size <= (1 << 20) && !posix_frees_slowly(s)));
    if (is_quick && !n->busy.is_held) {
        range_on_pool(j); /* the same work, here */
    } else {
        e = fiber_mutex_lock(&n->busy, &call->scope);
        if (e < 0)
            return e;
        env_pool_run(me->env, range_on_pool, j);
        fiber_mutex_unlock(&n->busy);
    }
    if (j->r < 0)
        return j->r;
    struct xnode x = xnode_of_file(s, f);
    pnode_load_mdata(s, n, &x);
    posix_iatt(s, n, &n->gfid, &j->pre, &r->pre);
    e = mdata_stamp_content(s, n, f, call, &j->post);
    posix_iatt(s, n, &n->gfid, &j->post, &r->post);
    return e;
}

FIBER int posix_truncate(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    if (q->offset > INT64_MAX)
        return -EINVAL;
    return range_op(me, call, q, r, -1);
}

FIBER int posix_allocate(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    if (q->size == 0 || q->offset > INT64_MAX || q->size > INT64_MAX - q->offset)
        return -EINVAL;
    if (q->flags & ~(uint32_t)(FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE))
        return -EOPNOTSUPP; /* moving data inside a file would break replicas and shards */
    if (!(q->flags & FALLOC_FL_PUNCH_HOLE)) {
        int e = posix_room_check(me->state, call, q->xdata, q->size);
        if (e < 0)
            return e;
    }
    return range_op(me, call, q, r, (int)q->flags);
}

FIBER int posix_seek(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    SCOPED(pfile_unref) struct pfile *f = NULL;
    int e = pnode_of_request(me, q, &f);
    if (e == 0)
        e = open_checked(f, O_RDONLY);
    if (e < 0)
        return e;
    if (q->flags != SEEK_DATA && q->flags != SEEK_HOLE)
        return -EINVAL;
    off_t at = lseek(f->fd, (off_t)q->offset, (int)q->flags);
    if (at < 0)
        return -errno;
    r->offset = (uint64_t)at;
    return 0;
}

/* ---- copy_range ---- */

struct copy_job {
    int from, to;
    uint64_t from_offset, to_offset, size;
    struct stat pre, post, source;
    ssize_t n;
};

static void copy_on_pool(void *arg)
{
    struct copy_job *j = arg;
    off_t in = (off_t)j->from_offset, out = (off_t)j->to_offset;
    uint64_t done = 0;

    j->n = fstat(j->to, &j->pre) < 0 ? -errno : 0;
    while (j->n == 0 && done < j->size) {
        ssize_t n = copy_file_range(j->from, &in, j->to, &out, (size_t)(j->size - done), 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && done == 0)
            j->n = -errno;
        if (n <= 0)
            break;
        done += (uint64_t)n;
    }
    if (j->n == 0)
        j->n = (ssize_t)done;
    if (fstat(j->to, &j->post) < 0 || fstat(j->from, &j->source) < 0)
        j->n = -errno;
}

FIBER int posix_copy_range(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct posix *s = me->state;
    SCOPED(pfile_unref) struct pfile *from = NULL;
    SCOPED(pfile_unref) struct pfile *to = NULL;
    struct request target = { .inode = q->inode2, .fd = q->fd2 };
    if (!q->inode2)
        return -EINVAL;
    struct pnode *n = pnode_of(me, q->inode), *n2 = pnode_of(me, q->inode2);
    int e = n && n2 ? pnode_of_request(me, q, &from) : -ENOMEM;
    if (e == 0)
        e = pnode_of_request(me, &target, &to);
    if (e == 0)
        e = open_checked(from, O_RDONLY);
    if (e == 0)
        e = open_checked(to, O_RDWR);
    if (e == 0)
        e = posix_room_check(s, call, q->xdata, q->size);
    if (e != 0)
        return e;
    SCOPED_FREE struct copy_job *j = NEW(struct copy_job);
    if (!j)
        return -ENOMEM;
    *j = (struct copy_job) { .from = from->fd,
                             .to = to->fd,
                             .from_offset = q->offset,
                             .to_offset = q->offset2,
                             .size = MIN(q->size, (uint64_t)COPY_STEP_BYTES) };
    e = fiber_mutex_lock(&n2->busy, &call->scope);
    if (e < 0)
        return e;
    env_pool_run(me->env, copy_on_pool, j);
    fiber_mutex_unlock(&n2->busy);
    if (j->n < 0)
        return (int)j->n;
    struct xnode x = xnode_of_file(s, to);
    pnode_load_mdata(s, n2, &x);
    posix_iatt(s, n2, &n2->gfid, &j->pre, &r->pre);
    e = mdata_stamp_content(s, n2, to, call, &j->post);
    posix_iatt(s, n2, &n2->gfid, &j->post, &r->post);
    if (e == 0)
        e = pfile_iatt(s, n, from, &r->stat);
    return e < 0 ? e : (int)j->n;
}

/* ---- flush, fsync ---- */

FIBER int posix_flush(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    return 0; /* nothing is held back here */
}

struct sync_job {
    int fd;
    bool data_only;
    int r;
};

static void sync_on_pool(void *arg)
{
    struct sync_job *j = arg;
    j->r = (j->data_only ? fdatasync(j->fd) : fsync(j->fd)) < 0 ? -errno : 0;
}

FIBER int posix_fsync(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct posix *s = me->state;
    SCOPED(pfile_unref) struct pfile *f = NULL;
    struct pnode *n = pnode_of(me, q->inode);
    int e = n ? pnode_of_request(me, q, &f) : -ENOMEM;
    if (e < 0)
        return e;
    if (f->is_path)
        return 0;
    struct iatt pre;
    e = pfile_iatt(s, n, f, &pre);
    if (e < 0)
        return e;
    struct sync_job j = { .fd = f->fd, .data_only = q->flags & 1 };
    s->pool_ops++;
    env_pool_run(me->env, sync_on_pool, &j);
    if (j.r < 0)
        return j.r;
    e = pfile_iatt(s, n, f, &r->post);
    if (e < 0)
        return e;
    r->pre = pre;
    if (!q->xdata)
        return 0;
    struct stat st;
    if (fstat(f->fd, &st) < 0)
        return -errno;
    struct xnode x = xnode_of_file(s, f);
    return posix_answer(me, call, n, &x, &st, q->xdata, &r->xdata);
}

FIBER int posix_fsyncdir(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct posix *s = me->state;
    SCOPED(pfile_unref) struct pfile *f = NULL;
    int e = pnode_dir(me, q->inode, &f);
    if (e < 0)
        return e;
    struct sync_job j = { .fd = f->fd, .data_only = q->flags & 1 };
    s->pool_ops++;
    env_pool_run(me->env, sync_on_pool, &j);
    return j.r;
}

/* ---- statfs ---- */

FIBER int posix_statfs(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct posix *s = me->state;
    struct statvfs v;
    if (fstatvfs(s->brick_fd, &v) < 0)
        return -errno;
    struct fs_stat *out = NEW(struct fs_stat);
    if (!out)
        return -ENOMEM;
    uint64_t reserved = posix_reserve_bytes(s, &v) / v.f_frsize;
    uint64_t n = s->shared_brick_count ? s->shared_brick_count : 1;
    *out = (struct fs_stat) {
        .bsize = v.f_bsize,
        .frsize = v.f_frsize,
        .blocks = v.f_blocks / n,
        .bfree = (v.f_bfree > reserved ? v.f_bfree - reserved : 0) / n,
        .bavail = (v.f_bavail > reserved ? v.f_bavail - reserved : 0) / n,
        .files = v.f_files / n,
        .ffree = v.f_ffree / n,
        .favail = v.f_favail / n,
        .fsid = v.f_fsid,
        .flag = v.f_flag,
        .namemax = v.f_namemax,
    };
    if (!s->export_statfs_size)
        out->blocks = out->bfree = out->bavail = out->files = out->ffree = out->favail = 0;
    r->statfs = out;
    return 0;
}
