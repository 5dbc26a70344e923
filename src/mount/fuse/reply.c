/* Answers to the kernel, and attributes in its form. */
#include "mount/fuse/fuse_internal.h"
#include <limits.h>
#include <math.h>

#define NAMES_SHARED_NS ((uint64_t)60 * 1000000000) /* after the last lock in a directory */

/* Larger numbers are not errors to the kernel: it would drop the answer and the caller would hang. */
#define KERNEL_MAX_ERRNO 511

int fuse_error(int r)
{
    switch (r) {
    case -ECANCELED: return -EINTR;
    case -ESHUTDOWN: return -ENOTCONN;
    default: return r < -KERNEL_MAX_ERRNO || r > 0 ? -EIO : r;
    }
}

static int send_answer(struct request_in *in, int error, struct iovec *iov, int count)
{
    struct fuse_out_header head = { .unique = in->head.unique, .error = error };
    size_t bytes = sizeof(head);
    ssize_t n;

    assert(!in->is_answered);
    in->is_answered = true;
    iov[0] = (struct iovec) { &head, sizeof(head) };
    for (int i = 1; i < count; i++)
        bytes += iov[i].iov_len;
    head.len = (uint32_t)bytes;
    n = writev(in->m->dev_fd, iov, count);
    iov[0].iov_base = NULL; /* head ends here */
    if (n >= 0)
        return 0;
    in->m->count.replies_lost++; /* ENOENT: the caller has been killed; ENODEV: unmounted */
    return -errno;
}

int answer_iov(struct request_in *in, struct iovec *iov, int count)
{
    return send_answer(in, 0, iov, count);
}

int answer(struct request_in *in, const void *data, size_t bytes)
{
    struct iovec iov[2] = { { 0 }, { (void *)data, bytes } };

    return send_answer(in, 0, iov, bytes ? 2 : 1);
}

void answer_error(struct request_in *in, int err)
{
    struct iovec iov[1];

    (void)send_answer(in, fuse_error(err), iov, 1); /* nobody is left to hear of a failure */
}

static void split_seconds(double s, uint64_t *ret_s, uint32_t *ret_ns)
{
    double whole = floor(s);

    *ret_s = (uint64_t)whole;
    *ret_ns = (uint32_t)((s - whole) * 1e9);
}

/* Half the number space for programs that cannot hold 64 bits (option enable-ino32). */
static uint64_t ino_of(const struct mount *m, const struct gfid *gfid)
{
    uint64_t ino = gfid_to_ino(gfid);
    const struct fuse *f = m->me->state;

    return f->ino32 ? (uint32_t)(ino ^ (ino >> 32)) : ino;
}

void attr_fill(struct mount *m, struct fuse_attr *out, const struct iatt *a)
{
    /* A larger buffer for stdio and cp: each request to us costs a round trip. */
    uint32_t blksize = S_ISREG(a->mode) ? MAX(a->blksize, 131072u) : MAX(a->blksize, 512u);

    *out = (struct fuse_attr) {
        .ino = ino_of(m, &a->gfid),
        .size = a->size,
        .blocks = a->blocks,
        .atime = (uint64_t)a->atime,
        .mtime = (uint64_t)a->mtime,
        .ctime = (uint64_t)a->ctime,
        .atimensec = a->atime_nsec,
        .mtimensec = a->mtime_nsec,
        .ctimensec = a->ctime_nsec,
        .mode = a->mode,
        .nlink = a->nlink,
        .uid = a->uid,
        .gid = a->gid,
        .rdev = (uint32_t)a->rdev,
        .blksize = blksize,
    };
}

bool names_are_shared(struct mount *m, const struct gfid *directory)
{
    struct node *node = m->has_locks ? node_by_gfid(m, directory) : NULL;

    return node && node->locked_ns && env_now_ns(m->env) - node->locked_ns < NAMES_SHARED_NS;
}

/* Somebody has changed something since the request began; its answer may be older than that. */
static bool is_overtaken(const struct request_in *in)
{
    return in->upcalls != in->m->upcalls;
}

void entry_fill(struct request_in *in, struct fuse_entry_out *out, struct node *node, const struct iatt *a)
{
    struct mount *m = in->m;
    struct fuse *f = mount_options(m);

    memset(out, 0, sizeof(*out));
    out->nodeid = node_id(m, node);
    out->generation = node->generation;
    attr_fill(m, &out->attr, a);
    if (is_overtaken(in) || gfid_dir_is_above(m, in->node) || gfid_dir_is_above(m, node))
        return;
    if (!node->name || !names_are_shared(m, &node->parent))
        split_seconds(f->entry_timeout_s, &out->entry_valid, &out->entry_valid_nsec);
    split_seconds(f->attribute_timeout_s, &out->attr_valid, &out->attr_valid_nsec);
}

int answer_entry(struct request_in *in, struct node *node, const struct iatt *a, const struct fuse_open_out *open)
{
    struct {
        struct fuse_entry_out entry;
        struct fuse_open_out open;
    } out;
    int r;

    entry_fill(in, &out.entry, node, a);
    if (open)
        out.open = *open;
    node_pin(node);
    node->lookups++;
    node_told(in->m, node, a);
    r = answer(in, &out, open ? sizeof(out) : sizeof(out.entry));
    if (r < 0)
        node_forget(in->m, node, 1); /* the kernel has not seen it */
    node_unpin(in->m, node);
    return r;
}

int answer_attr(struct request_in *in, struct node *node, const struct iatt *a)
{
    own_attr_forget(node); /* newer, or of a change that is not one of names */
    return answer_old_attr(in, node, a, 0);
}

int answer_old_attr(struct request_in *in, struct node *node, const struct iatt *a, uint64_t age_ns)
{
    struct fuse_attr_out out = { 0 };
    double left_s = mount_options(in->m)->attribute_timeout_s - (double)age_ns / 1e9;

    if (!is_overtaken(in) && !gfid_dir_is_above(in->m, node))
        split_seconds(left_s > 0 ? left_s : 0, &out.attr_valid, &out.attr_valid_nsec);
    attr_fill(in->m, &out.attr, a);
    node_told(in->m, node, a);
    return answer(in, &out, sizeof(out));
}
