/* One file operation: the wire's gfids and numbers become inodes and descriptors, the graph's answer becomes bytes.
 *
 * An inode that is not in memory is looked up by its gfid once, so that translators know what it is; docs/protocol.md
 * "gfids and resolution".
 */
#include "core/mem.h"
#include "protocol/server/server_internal.h"
#include <fcntl.h>
#include <linux/falloc.h>
#include <unistd.h>

/* How a procedure addresses what it is about. */
enum target {
    BY_NOTHING,
    BY_GFID,   /* gfid, always */
    BY_FD,     /* a descriptor, or gfid when it is anonymous */
    BY_PARENT, /* gfid of the parent and name */
    BY_LOOKUP, /* either */
};

static const struct {
    uint8_t op; /* enum op */
    uint8_t target;
} procs[FOP_PROC_COUNT] = {
    [FOP_STAT] = { OP_STAT, BY_GFID },
    [FOP_READLINK] = { OP_READLINK, BY_GFID },
    [FOP_MKNOD] = { OP_MKNOD, BY_PARENT },
    [FOP_MKDIR] = { OP_MKDIR, BY_PARENT },
    [FOP_UNLINK] = { OP_UNLINK, BY_PARENT },
    [FOP_RMDIR] = { OP_RMDIR, BY_PARENT },
    [FOP_SYMLINK] = { OP_SYMLINK, BY_PARENT },
    [FOP_RENAME] = { OP_RENAME, BY_PARENT },
    [FOP_LINK] = { OP_LINK, BY_GFID },
    [FOP_TRUNCATE] = { OP_TRUNCATE, BY_GFID },
    [FOP_OPEN] = { OP_OPEN, BY_GFID },
    [FOP_READ] = { OP_READ, BY_FD },
    [FOP_WRITE] = { OP_WRITE, BY_FD },
    [FOP_STATFS] = { OP_STATFS, BY_GFID },
    [FOP_FLUSH] = { OP_FLUSH, BY_FD },
    [FOP_FSYNC] = { OP_FSYNC, BY_FD },
    [FOP_SETXATTR] = { OP_SETXATTR, BY_GFID },
    [FOP_GETXATTR] = { OP_GETXATTR, BY_GFID },
    [FOP_REMOVEXATTR] = { OP_REMOVEXATTR, BY_GFID },
    [FOP_OPENDIR] = { OP_OPENDIR, BY_GFID },
    [FOP_FSYNCDIR] = { OP_FSYNCDIR, BY_FD },
    [FOP_ACCESS] = { OP_ACCESS, BY_GFID },
    [FOP_CREATE] = { OP_CREATE, BY_PARENT },
    [FOP_FTRUNCATE] = { OP_TRUNCATE, BY_FD },
    [FOP_FSTAT] = { OP_STAT, BY_FD },
    [FOP_LK] = { OP_LK, BY_FD },
    [FOP_LOOKUP] = { OP_LOOKUP, BY_LOOKUP },
    [FOP_READDIR] = { OP_READDIR, BY_FD },
    [FOP_INODELK] = { OP_INODELK, BY_GFID },
    [FOP_FINODELK] = { OP_INODELK, BY_FD },
    [FOP_ENTRYLK] = { OP_ENTRYLK, BY_GFID },
    [FOP_FENTRYLK] = { OP_ENTRYLK, BY_FD },
    [FOP_XATTROP] = { OP_XATTROP, BY_GFID },
    [FOP_FXATTROP] = { OP_XATTROP, BY_FD },
    [FOP_FGETXATTR] = { OP_GETXATTR, BY_FD },
    [FOP_FSETXATTR] = { OP_SETXATTR, BY_FD },
    [FOP_RCHECKSUM] = { OP_RCHECKSUM, BY_FD },
    [FOP_SETATTR] = { OP_SETATTR, BY_GFID },
    [FOP_FSETATTR] = { OP_SETATTR, BY_FD },
    [FOP_READDIRP] = { OP_READDIRP, BY_FD },
    [FOP_FREMOVEXATTR] = { OP_REMOVEXATTR, BY_FD },
    [FOP_FALLOCATE] = { OP_FALLOCATE, BY_FD },
    [FOP_DISCARD] = { OP_FALLOCATE, BY_FD },
    [FOP_ZEROFILL] = { OP_FALLOCATE, BY_FD },
    [FOP_IPC] = { OP_IPC, BY_NOTHING },
    [FOP_SEEK] = { OP_SEEK, BY_FD },
    [FOP_GETACTIVELK] = { OP_GETACTIVELK, BY_GFID },
    [FOP_COPY_FILE_RANGE] = { OP_COPY_RANGE, BY_FD },
    [FOP_BLOCKSUMS] = { OP_BLOCKSUMS, BY_FD },
};

static bool is_offered(enum fop_proc proc)
{
    return procs[proc].target != BY_NOTHING || proc == FOP_IPC;
}

/* ---- inodes ---- */

static FIBER int learn_type(struct connection *c, struct inode *inode)
{
    SCOPED(reply_free) struct reply *r = reply_new();
    struct call call;
    struct request q = { .op = OP_LOOKUP, .inode = inode };

    if (!r)
        return -ENOMEM;
    call_init(&call, c->s->me->graph);
    call.client = c->client;
    int result = translator_call(c->bound, &call, &q, r);
    call_done(&call);
    if (result >= 0)
        inode_unref(inode_table_get(c->s->me->graph, &inode->gfid, iatt_type(&r->stat)));
    return result < 0 ? result : 0;
}

FIBER int resolve_inode(struct connection *c, const struct gfid *gfid, struct inode **ret_inode)
{
    if (gfid_is_null(gfid))
        return -EINVAL;
    if (gfid_is_root(gfid) && !gfid_is_null(&c->subdir_gfid))
        gfid = &c->subdir_gfid;
    SCOPED(inode_unref)
    struct inode *inode = inode_table_get(c->s->me->graph, gfid, gfid_is_root(gfid) ? S_IFDIR : 0);
    if (!inode)
        return -ENOMEM;
    if (inode->type == 0) {
        int r = learn_type(c, inode);
        if (r < 0)
            return r == -ENOENT ? -ESTALE : r;
    }
    *ret_inode = take(inode);
    return 0;
}

/* What was found or made is remembered with its type, for the requests that follow. */
static void remember(struct connection *c, const struct iatt *stat)
{
    if (iatt_is_set(stat) && !gfid_is_null(&stat->gfid))
        inode_unref(inode_table_get(c->s->me->graph, &stat->gfid, iatt_type(stat)));
}

static int check_name(const char *name)
{
    if (!name || name[0] == '\0')
        return -EINVAL;
    return strchr(name, '/') ? -EPERM : 0;
}

/* ---- filling the request ---- */

static bool makes_inode(enum op op)
{
    return op == OP_MKNOD || op == OP_MKDIR || op == OP_SYMLINK || op == OP_CREATE;
}

static int new_inode(struct connection *c, struct step *st)
{
    struct gfid gfid;

    if (dict_get_gfid(st->w.xdata, "gfid-req", &gfid) < 0 || gfid_is_null(&gfid))
        return -EINVAL;
    st->inode = inode_table_get(c->s->me->graph, &gfid, 0);
    return st->inode ? 0 : -ENOMEM;
}

static FIBER int resolve_parent(struct connection *c, struct step *st)
{
    enum op op = st->q.op;
    int r = check_name(st->w.name);

    if (r == 0)
        r = resolve_inode(c, &st->w.gfid, &st->parent);
    if (r == 0 && makes_inode(op))
        r = new_inode(c, st);
    if (r == 0 && op == OP_RENAME) {
        r = check_name(st->w.name2);
        if (r == 0)
            r = resolve_inode(c, &st->w.gfid2, &st->parent2);
    }
    if (r == 0 && op == OP_CREATE) {
        st->fd = fd_new(st->inode, st->q.flags, 0);
        r = st->fd ? 0 : -ENOMEM;
    }
    return r;
}

static FIBER int resolve_fd(struct connection *c, int64_t number, const struct gfid *gfid, struct fd **ret_fd,
                            struct inode **ret_inode)
{
    if (number == FD_ANONYMOUS) {
        int r = resolve_inode(c, gfid, ret_inode);
        return r == -ESTALE ? -ENOENT : r;
    }
    struct fd *fd = connection_fd(c, number);
    if (!fd)
        return -EBADF;
    *ret_fd = fd_ref(fd);
    *ret_inode = inode_ref(fd->inode);
    return 0;
}

static FIBER int resolve_gfid(struct connection *c, struct step *st)
{
    int r = resolve_inode(c, &st->w.gfid, &st->inode);

    if (r == 0 && st->q.op == OP_LINK) {
        r = check_name(st->w.name2);
        if (r == 0)
            r = resolve_inode(c, &st->w.gfid2, &st->parent2);
    }
    if (r == 0 && (st->q.op == OP_OPEN || st->q.op == OP_OPENDIR)) {
        st->fd = fd_new(st->inode, st->q.op == OP_OPENDIR ? O_DIRECTORY : st->q.flags, 0);
        r = st->fd ? 0 : -ENOMEM;
    }
    return r;
}

static FIBER int resolve_lookup(struct connection *c, struct step *st)
{
    struct gfid *gfid = &st->w.gfid;

    if (st->w.name[0] == '\0') {
        if (gfid_is_root(gfid) && !gfid_is_null(&c->subdir_gfid))
            *gfid = c->subdir_gfid;
        st->inode = gfid_is_null(gfid) ? NULL : inode_table_get(c->s->me->graph, gfid, 0);
        st->q.name = NULL;
        return st->inode ? 0 : gfid_is_null(gfid) ? -EINVAL : -ENOMEM;
    }
    if (strchr(st->w.name, '/'))
        return -EPERM;
    return resolve_inode(c, &st->w.gfid2, &st->parent);
}

static FIBER int resolve(struct connection *c, struct step *st)
{
    int r = 0;

    switch (procs[st->w.proc].target) {
    case BY_GFID: r = resolve_gfid(c, st); break;
    case BY_FD:
        r = resolve_fd(c, st->translated, &st->w.gfid, &st->fd, &st->inode);
        if (r == 0 && st->q.op == OP_COPY_RANGE)
            r = resolve_fd(c, st->translated2, &st->w.gfid2, &st->fd2, &st->inode2);
        break;
    case BY_PARENT: r = resolve_parent(c, st); break;
    case BY_LOOKUP: r = resolve_lookup(c, st); break;
    default: break;
    }
    st->q.inode = st->inode;
    st->q.inode2 = st->inode2;
    st->q.parent = st->parent;
    st->q.parent2 = st->parent2;
    st->q.fd = st->fd;
    st->q.fd2 = st->fd2;
    return r;
}

static int fill_lk(const struct call *call, struct step *st)
{
    static const enum lock_command commands[] = { LOCK_GET, LOCK_TRY, LOCK_WAIT };

    if (st->w.command >= ARRAY_SIZE(commands))
        return -EINVAL;
    st->q.command = commands[st->w.command];
    if (st->q.command != LOCK_GET && st->w.lock.type == LOCK_NONE)
        st->q.command = LOCK_UNLOCK;
    if (st->lock.owner.size == 0)
        st->lock.owner = call->lk_owner;
    return 0;
}

static int fill_inodelk(struct step *st)
{
    if (st->w.command != 1 && st->w.command != 2)
        return -EINVAL;
    st->q.command = st->w.command == 1 ? LOCK_TRY : LOCK_WAIT;
    if (st->w.type == LOCK_NONE || st->w.lock.type == LOCK_NONE)
        st->q.command = LOCK_UNLOCK;
    return 0;
}

static int fill_entrylk(struct step *st)
{
    static const enum lock_command commands[] = { LOCK_WAIT, LOCK_UNLOCK, LOCK_TRY };

    if (st->w.command >= ARRAY_SIZE(commands))
        return -EINVAL;
    st->q.command = commands[st->w.command];
    st->lock.type = st->w.type == 0 ? LOCK_READ : LOCK_WRITE;
    st->q.name = st->w.named ? st->w.name : NULL;
    return 0;
}

static int fill_lock(const struct call *call, struct step *st)
{
    const struct fop_lock *l = &st->w.lock;

    st->lock = (struct lock_range) { .type = l->type > LOCK_NONE ? LOCK_NONE : l->type,
                                     .start = l->start,
                                     .length = l->length,
                                     .pid = (int32_t)l->pid,
                                     .owner = l->owner };
    st->q.lock = &st->lock;
    if (l->whence != 0)
        return -EINVAL;
    switch (st->q.op) {
    case OP_LK: return fill_lk(call, st);
    case OP_INODELK: return fill_inodelk(st);
    default: return fill_entrylk(st);
    }
}

static int fill(const struct call *call, struct step *st)
{
    const struct fop_request *w = &st->w;

    st->q = (struct request) { .op = procs[w->proc].op,
                               .name = w->name,
                               .name2 = w->name2,
                               .offset = w->offset,
                               .offset2 = w->offset2,
                               .size = w->size,
                               .flags = w->flags,
                               .mode = w->mode,
                               .umask = w->umask,
                               .rdev = w->rdev,
                               .valid = w->valid,
                               .attr = &w->attr,
                               .data = w->data,
                               .text = w->text,
                               .xattrs = w->xattrs,
                               .xdata = w->xdata };
    switch (st->q.op) {
    case OP_OPEN:
    case OP_CREATE: st->q.flags = fop_flags_from_wire(w->flags); break;
    case OP_GETXATTR: st->q.text = w->named ? w->text : NULL; break;
    case OP_FALLOCATE:
        if (w->proc == FOP_DISCARD)
            st->q.flags = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
        else if (w->proc == FOP_ZEROFILL)
            st->q.flags = FALLOC_FL_ZERO_RANGE;
        break;
    case OP_READDIRP: st->q.xattrs = w->xdata; break; /* the xattrs wanted of each entry are among it */
    case OP_SEEK:
        if (w->flags != WIRE_SEEK_DATA && w->flags != WIRE_SEEK_HOLE)
            return -EINVAL;
        st->q.flags = w->flags == WIRE_SEEK_HOLE ? SEEK_HOLE : SEEK_DATA;
        break;
    case OP_IPC: st->q.command = (enum lock_command)w->command; break;
    case OP_LK:
    case OP_INODELK:
    case OP_ENTRYLK: return fill_lock(call, st);
    default: break;
    }
    return 0;
}

bool step_may_wait(const struct fop_request *w)
{
    switch (w->proc) {
    case FOP_LK:
    case FOP_INODELK:
    case FOP_FINODELK: return w->command == 2;
    case FOP_ENTRYLK:
    case FOP_FENTRYLK: return w->command == 0;
    default: return false;
    }
}

/* ---- doing it ---- */

static FIBER int ask(struct connection *c, struct call *call, struct step *st)
{
    return translator_call(c->bound, call, &st->q, &st->r);
}

/* CREATE of a name that exists, without O_EXCL, opens it. In the graph creating always means making. */
static FIBER int open_existing(struct connection *c, struct call *call, struct step *st)
{
    SCOPED(reply_free) struct reply *found = reply_new();
    struct request q = { .op = OP_LOOKUP, .parent = st->parent, .name = st->w.name };

    if (!found)
        return -ENOMEM;
    int r = translator_call(c->bound, call, &q, found);
    if (r < 0)
        return r;
    struct inode *inode = inode_table_get(c->s->me->graph, &found->stat.gfid, iatt_type(&found->stat));
    struct fd *fd = inode ? fd_new(inode, st->q.flags & ~(uint32_t)(O_CREAT | O_EXCL), 0) : NULL;
    fd_unref(st->fd);
    inode_unref(st->inode);
    st->fd = fd;
    st->inode = inode;
    if (!fd)
        return -ENOMEM;
    q = (struct request) { .op = OP_OPEN, .inode = inode, .fd = fd, .flags = fd->flags };
    reply_done(&st->r);
    r = translator_call(c->bound, call, &q, &st->r);
    if (r >= 0) {
        st->r.stat = found->stat;
        if (st->q.flags & O_TRUNC)
            st->r.stat.size = st->r.stat.blocks = 0;
    }
    return r;
}

static FIBER int create(struct connection *c, struct call *call, struct step *st)
{
    int r = ask(c, call, st);

    /* Gone between the two steps: it is created after all. More than a few rounds mean something else. */
    for (int tries = 0; r == -EEXIST && !(st->q.flags & O_EXCL) && tries < 8; tries++) {
        r = open_existing(c, call, st);
        if (r != -ENOENT && r != -ESTALE)
            break;
        fd_unref(st->fd);
        inode_unref(st->inode);
        st->fd = NULL;
        st->inode = NULL;
        r = new_inode(c, st);
        if (r < 0)
            break;
        st->q.inode = st->inode;
        st->q.fd = st->fd = fd_new(st->inode, st->q.flags, 0);
        r = st->fd ? ask(c, call, st) : -ENOMEM;
    }
    return r;
}

/* An operation that needs a descriptor, asked with the anonymous one. */
static FIBER int with_own_fd(struct connection *c, struct call *call, struct step *st)
{
    bool is_dir = st->inode->type == S_IFDIR;
    struct request open = { .op = is_dir ? OP_OPENDIR : OP_OPEN, .inode = st->inode, .flags = O_RDONLY };

    if (st->q.op == OP_FLUSH || st->q.op == OP_FSYNCDIR)
        return 0; /* there is nothing that only such a descriptor knows */
    open.fd = st->q.fd = st->fd = fd_new(st->inode, open.flags, 0);
    if (!st->fd)
        return -ENOMEM;
    int r = translator_call(c->bound, call, &open, &st->r);
    reply_done(&st->r);
    return r < 0 ? r : ask(c, call, st);
}

static FIBER int run_resolved(struct connection *c, struct call *call, struct step *st)
{
    if (st->q.op == OP_CREATE)
        return create(c, call, st);
    if ((op_needs(st->q.op) & OP_FD) && !st->fd)
        return with_own_fd(c, call, st);
    return ask(c, call, st);
}

static int keep_fd(struct connection *c, struct step *st)
{
    int64_t number = c->is_gone ? -ENOTCONN : connection_fd_add(c, st->fd);

    if (number < 0)
        return (int)number;
    st->fd->client = c->client;
    st->number = number;
    return 0;
}

FIBER int step_run(struct connection *c, struct call *call, struct step *st)
{
    enum fop_proc proc = st->w.proc;

    st->number = 0;
    reply_init(&st->r);
    if (proc == FOP_RELEASE || proc == FOP_RELEASEDIR)
        return connection_fd_close(c, st->translated);
    if (!is_offered(proc)) /* leases that are off are ENOSYS on GlusterFS bricks */
        return proc == FOP_LEASE ? -ENOSYS : -EOPNOTSUPP;
    if (c->is_gone)
        return -ENOTCONN;
    int r = fill(call, st);
    if (r == 0)
        r = resolve(c, st);
    if (r < 0)
        return r;
    interest_begin(c, call, st);
    r = run_resolved(c, call, st);
    if (r < 0)
        return r;
    remember(c, &st->r.stat);
    if (proc == FOP_OPEN || proc == FOP_OPENDIR || proc == FOP_CREATE) {
        int error = keep_fd(c, st);
        if (error < 0) {
            reply_done(&st->r);
            return error;
        }
    }
    return r;
}

void step_done(struct step *st)
{
    fop_request_done(&st->w);
    reply_done(&st->r);
    fd_unref(st->fd);
    fd_unref(st->fd2);
    inode_unref(st->inode);
    inode_unref(st->inode2);
    inode_unref(st->parent);
    inode_unref(st->parent2);
}

/* ---- answering ---- */

/* A client of a sub-directory calls that its root. */
static void hide_subdir(const struct connection *c, struct reply *r)
{
    struct iatt *all[] = { &r->stat, &r->pre, &r->post, &r->pre2, &r->post2 };

    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        if (gfid_equal(&all[i]->gfid, &c->subdir_gfid)) {
            all[i]->gfid = gfid_root;
            all[i]->ino = 1;
        }
    }
}

void step_put_answer(struct connection *c, struct xdr_out *o, struct step *st, int result, bool is_step)
{
    struct fop_answer a = {
        .op_ret = result < 0 ? -1 : result, .op_errno = result < 0 ? -result : 0, .fd = st->number, .r = &st->r
    };

    if (result >= 0 && !gfid_is_null(&c->subdir_gfid))
        hide_subdir(c, &st->r);
    if (result >= 0 && st->r.entries && st->r.entries->at_end)
        a.op_errno = ENOENT; /* "that was the last of them" */
    fop_put_answer(o, st->w.proc, &a, is_step);
}

FIBER void serve_fop(struct connection *c, struct rpc_incoming *in)
{
    SCOPED_FREE struct step *st = NEW(struct step);
    struct changes changes = { 0 };
    struct call call;
    struct xdr_out o;

    if (in->head.procedure == FOP_NULL) {
        rpc_reply_begin(in, &o, 64);
        xdr_put_bytes(&o, (uint8_t[12]) { 0 }, 12);
        rpc_reply_send(in, &o);
        return;
    }
    int r = !st ? -ENOMEM : fop_get_request(&in->body, in->head.procedure, in->record.data, false, &st->w);
    if (r < 0) {
        rpc_reply_error(in, r == -EOPNOTSUPP ? RPC_ACCEPT_NO_PROCEDURE
                            : r == -ENOMEM   ? RPC_ACCEPT_SYSTEM
                                             : RPC_ACCEPT_GARBAGE);
        return;
    }
    if (step_may_wait(&st->w))
        rpc_incoming_uncount(in);
    in->is_lazy = in->head.procedure == FOP_RELEASE || in->head.procedure == FOP_RELEASEDIR;
    st->translated = st->w.fd;
    st->translated2 = st->w.fd2;
    identity_call(c, &in->head.cred, &call);
    r = step_run(c, &call, st);
    interest_end(c, st, r, &changes);
    interest_tell(c, &changes);
    rpc_reply_begin(in, &o, 512);
    step_put_answer(c, &o, st, r, false);
    rpc_reply_send(in, &o);
    call_done(&call);
    step_done(st);
}
