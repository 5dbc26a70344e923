/* Attributes, extended attributes, links' targets, file-system figures. */
#include "mount/fuse/fuse_internal.h"
#include <limits.h>

/* An answer of another file or type than the one asked about must not reach the kernel: it would mark the inode bad. */
static int check_same(const struct node *node, const struct iatt *a)
{
    if (!iatt_is_set(a))
        return -EIO;
    return iatt_type(a) == node->type ? 0 : -ESTALE;
}

FIBER int on_getattr(struct request_in *in)
{
    uint64_t age_ns = 0;
    const struct iatt *own = in->node->type == S_IFDIR ? own_attr(in->m, in->node, &age_ns) : NULL;
    SCOPED(reply_free) struct reply *r = NULL;
    uint64_t mark = attr_mark(in->m, in->node);
    int result;

    if (!own)
        own = attr_kept(in->m, in->node, &age_ns);
    if (own) {
        (void)answer_old_attr(in, in->node, own, age_ns);
        return 0;
    }
    r = reply_new();
    if (!r)
        return -ENOMEM;
    in->node->changes++; /* whoever looks between open and read sees the read move the access time */
    result = ask_stat(in, in->node, r);
    if (result == 0)
        result = check_same(in->node, &r->stat);
    if (result < 0)
        return result;
    r->stat.gfid = in->node->gfid;
    attr_keep(in, in->node, r, mark);
    attr_settle(in->m, in->node, &r->stat);
    (void)answer_attr(in, in->node, &r->stat);
    return 0;
}

/* Asks with a descriptor when one of the wanted kind is open, else by gfid. */
static FIBER int ask_with_fd(struct request_in *in, struct request *q, struct handle *h, struct reply *r)
{
    SCOPED(fd_unref) struct fd *fd = h && h->fd ? fd_ref(h->fd) : NULL;
    int result;

    q->fd = fd;
    if (fd)
        q->inode = fd->inode;
    result = ask(in, q, r);
    if (!fd || (result != -EBADF && result != -EBADFD && result != -ENOENT && result != -ESTALE))
        return result;
    reply_done(r);
    q->fd = NULL;
    q->inode = node_inode(in->m, in->node);
    return q->inode ? ask(in, q, r) : -ENOMEM;
}

FIBER void clear_mode_bits(struct request_in *in, struct node *node, uint32_t mode, uint32_t bits)
{
    struct iatt attr = { .mode = mode & 07777 & ~bits };
    struct request q = { .op = OP_SETATTR, .inode = node_inode(in->m, node), .valid = ATTR_MODE, .attr = &attr };
    struct handle *h = node_handle(node, false);
    SCOPED(fd_unref) struct fd *fd = h ? fd_ref(h->fd) : NULL;
    struct call as_root;

    if (!(mode & bits) || !q.inode)
        return;
    q.fd = fd;
    if (fd)
        q.inode = fd->inode;
    /* In the name of root: the writer need not own the file. What was written stays if this fails. */
    call_copy(&as_root, &in->call);
    as_root.uid = as_root.gid = 0;
    (void)child_call(ask_top(in->m, &q), 0, &as_root, &q, NULL);
    call_done(&as_root);
    node->told_is_set = false;
}

FIBER void kill_suid_bits(struct request_in *in, struct node *node, uint32_t mode)
{
    uint32_t bits = S_ISUID;

    if (!S_ISREG(mode))
        return;
    if (mode & S_IXGRP) /* without it, set-group-id is a mark of old for mandatory locks */
        bits |= S_ISGID;
    clear_mode_bits(in, node, mode, bits);
}

FIBER void kill_suid_after_write(struct request_in *in, struct node *node, const struct iatt *post)
{
    SCOPED(reply_free) struct reply *r = NULL;
    struct request q = { .op = OP_STAT, .inode = node_inode(in->m, node) };
    uint64_t now = env_now_ns(in->m->env);

    if (iatt_is_set(post)) {
        kill_suid_bits(in, node, post->mode);
        return;
    }
    /* Asked once in a while and not after each write, for the answer is nearly always the same. */
    if (node->type != S_IFREG || (node->plain_ns != 0 && now < node->plain_ns + FUSE_STEADY_NS))
        return;
    r = reply_new();
    if (!r || !q.inode || ask(in, &q, r) < 0)
        return;
    if (!(r->stat.mode & (S_ISUID | S_ISGID)))
        node->plain_ns = now;
    kill_suid_bits(in, node, r->stat.mode);
}

static FIBER int set_size(struct request_in *in, const struct fuse_setattr_in *args, struct reply *r)
{
    struct node *node = in->node;
    struct handle *h = args->valid & FATTR_FH ? handle_by_id(args->fh) : node_handle(node, true);
    struct request q = { .op = OP_TRUNCATE, .inode = node_inode(in->m, node), .offset = args->size };
    int result;

    if (!q.inode)
        return -ENOMEM;
    node->changes++;
    if (args->valid & FATTR_LOCKOWNER)
        lk_owner_from_u64(&in->call.lk_owner, args->lock_owner);
    if (args->valid & FATTR_FH) {
        SCOPED(fd_unref) struct fd *fd = h->fd ? fd_ref(h->fd) : NULL;

        if (!fd)
            return -EBADF;
        q.fd = fd;
        q.inode = fd->inode;
        result = ask(in, &q, r);
    } else {
        /* truncate(2) goes by name; the descriptor serves only when the name is gone meanwhile. */
        result = ask(in, &q, r);
        if ((result == -ENOENT || result == -ESTALE) && h && h->fd) {
            SCOPED(fd_unref) struct fd *fd = fd_ref(h->fd);

            reply_done(r);
            q.fd = fd;
            result = ask(in, &q, r);
        }
    }
    if (result >= 0 && args->valid & FATTR_KILL_SUIDGID)
        kill_suid_bits(in, node, r->post.mode);
    return result;
}

static uint32_t other_attributes(const struct fuse_setattr_in *args, struct iatt *attr)
{
    uint32_t valid = 0;

    *attr = (struct iatt) {
        .mode = args->mode & 07777,
        .uid = args->uid,
        .gid = args->gid,
        .atime = (int64_t)args->atime,
        .mtime = (int64_t)args->mtime,
        .ctime = (int64_t)args->ctime,
        .atime_nsec = args->atimensec,
        .mtime_nsec = args->mtimensec,
        .ctime_nsec = args->ctimensec,
    };
    if (args->valid & FATTR_MODE)
        valid |= ATTR_MODE;
    if (args->valid & FATTR_UID)
        valid |= ATTR_UID;
    if (args->valid & FATTR_GID)
        valid |= ATTR_GID;
    if (args->valid & FATTR_ATIME)
        valid |= args->valid & FATTR_ATIME_NOW ? ATTR_ATIME | ATTR_ATIME_NOW : ATTR_ATIME;
    if (args->valid & FATTR_MTIME)
        valid |= args->valid & FATTR_MTIME_NOW ? ATTR_MTIME | ATTR_MTIME_NOW : ATTR_MTIME;
    return valid;
}

/* "Now" is the kernel's now: all replicas get the same time, and it is not before the request was made. */
static void resolve_now(struct mount *m, struct iatt *attr, uint32_t *valid)
{
    struct timespec now;

    env_wall_time(m->env, &now);
    if (*valid & ATTR_ATIME_NOW) {
        attr->atime = now.tv_sec;
        attr->atime_nsec = (uint32_t)now.tv_nsec;
    }
    if (*valid & ATTR_MTIME_NOW) {
        attr->mtime = now.tv_sec;
        attr->mtime_nsec = (uint32_t)now.tv_nsec;
    }
}

FIBER int on_setattr(struct request_in *in)
{
    const struct fuse_setattr_in *args = (const void *)in->args;
    SCOPED(reply_free) struct reply *r = reply_new();
    struct request q = { .op = OP_SETATTR, .inode = node_inode(in->m, in->node) };
    struct iatt attr;
    int result = 0;

    own_attr_forget(in->node);
    if (!r || !q.inode)
        return -ENOMEM;
    if (args->valid & FATTR_SIZE) {
        result = set_size(in, args, r);
        if (result < 0)
            return result == -ENOENT ? -ESTALE : result;
    }
    q.valid = other_attributes(args, &attr);
    if (args->valid & FATTR_SIZE) /* truncation sets the times; root's suid bits stay */
        q.valid &= ~(uint32_t)(ATTR_MTIME | ATTR_MTIME_NOW | ATTR_ATIME | ATTR_ATIME_NOW);
    if (q.valid) {
        resolve_now(in->m, &attr, &q.valid);
        q.attr = &attr;
        reply_done(r);
        result = ask_with_fd(in, &q, node_handle(in->node, false), r);
        if (result < 0)
            return result == -ENOENT ? -ESTALE : result;
    }
    /* The answer carries the attributes afterwards; ask when the operation did not tell. */
    if (!iatt_is_set(&r->post) || (args->valid & FATTR_SIZE && args->valid & FATTR_KILL_SUIDGID)) {
        reply_done(r);
        result = ask_stat(in, in->node, r);
        if (result < 0)
            return result;
        r->post = r->stat;
    }
    result = check_same(in->node, &r->post);
    if (result < 0)
        return result;
    r->post.gfid = in->node->gfid;
    attr_settle(in->m, in->node, &r->post);
    (void)answer_attr(in, in->node, &r->post);
    return 0;
}

FIBER int on_readlink(struct request_in *in)
{
    SCOPED(reply_free) struct reply *r = reply_new();
    struct request q = { .op = OP_READLINK, .inode = node_inode(in->m, in->node), .size = PATH_MAX };
    int result;

    if (!r || !q.inode)
        return -ENOMEM;
    result = ask(in, &q, r);
    if (result < 0)
        return result == -ENOENT ? -ESTALE : result;
    if (!r->text)
        return -EIO;
    (void)answer(in, r->text, strlen(r->text));
    return 0;
}

FIBER int on_access(struct request_in *in)
{
    const struct fuse_access_in *args = (const void *)in->args;
    struct request q = { .op = OP_ACCESS, .inode = node_inode(in->m, in->node), .flags = args->mask };
    int result;

    if (!q.inode)
        return -ENOMEM;
    result = ask(in, &q, NULL);
    if (result < 0)
        return result;
    (void)answer(in, NULL, 0);
    return 0;
}

FIBER int on_statfs(struct request_in *in)
{
    SCOPED(reply_free) struct reply *r = reply_new();
    struct request q = { .op = OP_STATFS };
    struct fuse_statfs_out out = { 0 };
    struct node *node = in->node ? in->node : &in->m->root;
    int result;

    q.inode = node_inode(in->m, node);
    if (!r || !q.inode)
        return -ENOMEM;
    result = ask(in, &q, r);
    if (result < 0)
        return result;
    if (!r->statfs)
        return -EIO;
    out.st = (struct fuse_kstatfs) {
        .blocks = r->statfs->blocks,
        .bfree = r->statfs->bfree,
        .bavail = r->statfs->bavail,
        .files = r->statfs->files,
        .ffree = r->statfs->ffree,
        .bsize = (uint32_t)r->statfs->bsize,
        .frsize = (uint32_t)(r->statfs->frsize ? r->statfs->frsize : r->statfs->bsize),
        .namelen = (uint32_t)MIN(r->statfs->namemax ? r->statfs->namemax : FUSE_NAME_LEN, (uint64_t)FUSE_NAME_LEN),
    };
    (void)answer(in, &out, sizeof(out));
    return 0;
}
