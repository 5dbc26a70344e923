/* One operation as one message of the 4.x program. */
#include "core/mem.h"
#include "protocol/client/client_internal.h"
#include <fcntl.h>
#include <linux/falloc.h>
#include <unistd.h>

/* Procedures: by gfid, and by descriptor where that is another one (0: the same procedure, with FD_ANONYMOUS). */
static const struct {
    uint8_t by_gfid, by_fd;
} procs[OP_COUNT] = {
    [OP_LOOKUP] = { FOP_LOOKUP, 0 },
    [OP_STAT] = { FOP_STAT, FOP_FSTAT },
    [OP_READLINK] = { FOP_READLINK, 0 },
    [OP_ACCESS] = { FOP_ACCESS, 0 },
    [OP_MKNOD] = { FOP_MKNOD, 0 },
    [OP_MKDIR] = { FOP_MKDIR, 0 },
    [OP_SYMLINK] = { FOP_SYMLINK, 0 },
    [OP_CREATE] = { FOP_CREATE, 0 },
    [OP_LINK] = { FOP_LINK, 0 },
    [OP_UNLINK] = { FOP_UNLINK, 0 },
    [OP_RMDIR] = { FOP_RMDIR, 0 },
    [OP_RENAME] = { FOP_RENAME, 0 },
    [OP_OPEN] = { FOP_OPEN, 0 },
    [OP_OPENDIR] = { FOP_OPENDIR, 0 },
    [OP_READ] = { FOP_READ, 0 },
    [OP_WRITE] = { FOP_WRITE, 0 },
    [OP_TRUNCATE] = { FOP_TRUNCATE, FOP_FTRUNCATE },
    [OP_FALLOCATE] = { FOP_FALLOCATE, 0 },
    [OP_SEEK] = { FOP_SEEK, 0 },
    [OP_COPY_RANGE] = { FOP_COPY_FILE_RANGE, 0 },
    [OP_FLUSH] = { FOP_FLUSH, 0 },
    [OP_FSYNC] = { FOP_FSYNC, 0 },
    [OP_FSYNCDIR] = { FOP_FSYNCDIR, 0 },
    [OP_STATFS] = { FOP_STATFS, 0 },
    [OP_SETATTR] = { FOP_SETATTR, FOP_FSETATTR },
    [OP_SETXATTR] = { FOP_SETXATTR, FOP_FSETXATTR },
    [OP_GETXATTR] = { FOP_GETXATTR, FOP_FGETXATTR },
    [OP_REMOVEXATTR] = { FOP_REMOVEXATTR, FOP_FREMOVEXATTR },
    [OP_XATTROP] = { FOP_XATTROP, FOP_FXATTROP },
    [OP_READDIR] = { FOP_READDIR, 0 },
    [OP_READDIRP] = { FOP_READDIRP, 0 },
    [OP_LK] = { FOP_LK, 0 },
    [OP_INODELK] = { FOP_INODELK, FOP_FINODELK },
    [OP_ENTRYLK] = { FOP_ENTRYLK, FOP_FENTRYLK },
    [OP_RCHECKSUM] = { FOP_RCHECKSUM, 0 },
    [OP_BLOCKSUMS] = { FOP_BLOCKSUMS, 0 },
    [OP_LEASE] = { FOP_LEASE, 0 },
    [OP_GETACTIVELK] = { FOP_GETACTIVELK, 0 },
    [OP_IPC] = { FOP_IPC, 0 },
};

/* ---- request ---- */

/* An fd that an earlier step of the compound opens is named by that step. */
static bool opened_by_step(struct fd *fd, const struct request *steps, uint32_t step, int64_t *ret_number)
{
    for (uint32_t i = step; i-- > 0;) {
        enum op op = steps[i].op;
        if (steps[i].fd == fd && (op == OP_OPEN || op == OP_OPENDIR || op == OP_CREATE)) {
            *ret_number = FD_OF_STEP(i);
            return true;
        }
    }
    return false;
}

static int fd_number(struct remote *s, struct fd *fd, const struct request *steps, uint32_t step, int64_t *ret_number)
{
    *ret_number = FD_ANONYMOUS;
    if (!fd || (steps && opened_by_step(fd, steps, step, ret_number)))
        return 0;
    return remote_fd_number(s, fd, ret_number);
}

static void fill_lock(const struct request *q, struct fop_request *w)
{
    static const uint32_t lk_commands[] = { [LOCK_TRY] = 1, [LOCK_WAIT] = 2, [LOCK_UNLOCK] = 1, [LOCK_GET] = 0 };
    static const uint32_t entry_commands[] = { [LOCK_TRY] = 2, [LOCK_WAIT] = 0, [LOCK_UNLOCK] = 1, [LOCK_GET] = 2 };

    w->command = q->op == OP_ENTRYLK ? entry_commands[q->command] : lk_commands[q->command];
    w->type = q->lock ? q->lock->type : LOCK_WRITE;
    if (q->command == LOCK_UNLOCK && q->op != OP_ENTRYLK)
        w->type = LOCK_NONE;
    w->named = q->name != NULL;
    if (!q->lock)
        return;
    w->lock = (struct fop_lock) {
        .type = w->type, .start = q->lock->start, .length = q->lock->length, .pid = (uint32_t)q->lock->pid
    };
    if (q->op == OP_LK)
        w->lock.owner = q->lock->owner;
}

/* Deallocation and zeroing have procedures of their own. */
static void choose_fallocate(const struct request *q, struct fop_request *w)
{
    if (q->flags == (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE))
        w->proc = FOP_DISCARD;
    else if (q->flags == FALLOC_FL_ZERO_RANGE)
        w->proc = FOP_ZEROFILL;
}

static void fill_gfids(const struct request *q, struct fop_request *w)
{
    bool is_entry = op_needs(q->op) & OP_PARENT;

    if (is_entry)
        w->gfid = q->parent->gfid;
    else if (q->op == OP_LOOKUP && q->parent)
        w->gfid2 = q->parent->gfid;
    else if (q->inode)
        w->gfid = q->inode->gfid;
    if (q->parent2)
        w->gfid2 = q->parent2->gfid;
    else if (q->op == OP_COPY_RANGE)
        w->gfid2 = q->inode2->gfid;
    if (q->op == OP_MKNOD || q->op == OP_MKDIR || q->op == OP_SYMLINK || q->op == OP_CREATE)
        w->gfid_req = &q->inode->gfid;
}

int remote_request(struct remote *s, struct call *call, const struct request *q, const struct request *steps,
                   uint32_t step, struct fop_request *w)
{
    *w = (struct fop_request) { .proc = procs[q->op].by_gfid,
                                .fd2 = FD_ANONYMOUS,
                                .offset = q->offset,
                                .offset2 = q->offset2,
                                .size = q->data ? q->data->size : q->size,
                                .rdev = q->rdev,
                                .flags = q->flags,
                                .mode = q->mode,
                                .umask = q->umask,
                                .valid = q->valid,
                                .command = (uint32_t)q->command,
                                .named = q->text != NULL,
                                .name = q->name,
                                .name2 = q->name2,
                                .text = q->text,
                                .xattrs = q->xattrs,
                                .xdata = q->xdata,
                                .data = q->data };
    if (w->proc == FOP_NULL)
        return -EOPNOTSUPP;
    remote_fd_note(s, q);
    int r = fd_number(s, q->fd, steps, step, &w->fd);
    if (r == 0)
        r = fd_number(s, q->fd2, steps, step, &w->fd2);
    if (r < 0)
        return r;
    if (procs[q->op].by_fd && w->fd != FD_ANONYMOUS)
        w->proc = procs[q->op].by_fd;
    fill_gfids(q, w);
    if (q->attr)
        w->attr = *q->attr;
    if (q->op == OP_LK || q->op == OP_INODELK || q->op == OP_ENTRYLK)
        fill_lock(q, w);
    if (q->op == OP_FALLOCATE)
        choose_fallocate(q, w);
    if (q->op == OP_OPEN || q->op == OP_CREATE) {
        w->flags = fop_flags_to_wire(q->flags & ~(s->filters_direct ? (uint32_t)O_DIRECT : 0));
    }
    if (q->op == OP_SEEK)
        w->flags = q->flags == SEEK_HOLE ? WIRE_SEEK_HOLE : WIRE_SEEK_DATA;
    if (q->op == OP_RENAME && q->flags != 0 && !steps)
        return -EINVAL; /* only our own program has a place for RENAME_* */
    if (fop_is_ours(w->proc) && !steps)
        return -EOPNOTSUPP;
    if (w->size > UINT32_MAX && q->op != OP_FALLOCATE)
        w->size = q->op == OP_WRITE ? w->size : UINT32_MAX;
    return q->op == OP_WRITE && w->size > RECORD_MAX_BYTES / 2 ? -EMSGSIZE : 0;
}

/* ---- answer ---- */

/* What the answer changes in what we remember. */
static int remember(struct remote *s, struct call *call, const struct request *q, const struct fop_answer *a)
{
    switch (q->op) {
    case OP_OPEN:
    case OP_OPENDIR:
    case OP_CREATE: return remote_fd_opened(s, q->fd, a->fd);
    case OP_LK:
        if (q->fd && q->lock && q->command != LOCK_GET)
            remote_fd_locked(s, q->fd, q->lock, q->command == LOCK_UNLOCK);
        break;
    case OP_FLUSH: remote_fd_flushed(s, q->fd, &call->lk_owner); break;
    default: break;
    }
    return 0;
}

/* Of a failure only xdata stays. */
static int failure(struct reply *r, int32_t op_errno)
{
    struct dict *xdata = take(r->xdata);

    reply_done(r);
    r->xdata = xdata;
    return op_errno > 0 && op_errno < 4096 ? -op_errno : -EIO;
}

void remote_bad_answer(struct remote *s, const char *what)
{
    if (!s->peer) /* it has ended since the answer came */
        return;
    TLOG(s->me, LOG_ERROR, "bad-answer", "peer=%s op=%s", stream_peer_name(s->peer->stream), what);
    rpc_peer_disconnect(s->peer, -EBADMSG);
}

int remote_answer(struct remote *s, struct call *call, const struct request *q, const struct fop_request *w,
                  struct xdr_in *in, struct buf *raw, bool is_step, uint64_t begun_ns, struct reply *r)
{
    struct fop_answer a = { .r = r };

    if (fop_get_answer(in, w->proc, raw, is_step, &a) < 0) {
        remote_bad_answer(s, fop_name(w->proc));
        return -EIO;
    }
    if (a.op_ret < 0) {
        remote_lease_learn(s, q, r, a.op_errno == ENOENT ? -ENOENT : -EIO, begun_ns);
        int error = failure(r, a.op_errno);

        r->asked_ns = begun_ns;
        return error;
    }
    r->asked_ns = begun_ns;
    if (q->op == OP_LOOKUP && !q->parent && q->inode && !gfid_equal(&r->stat.gfid, &q->inode->gfid))
        return failure(r, ESTALE);
    remote_lease_learn(s, q, r, a.op_ret, begun_ns);
    int error = remember(s, call, q, &a);
    return error < 0 ? failure(r, -error) : a.op_ret;
}

/* ---- the operation ---- */

/* A posix lock belongs to the owner in it, whoever the caller is. */
static const struct call *identity(struct call *call, const struct request *q, struct call *own)
{
    if (q->op != OP_LK || !q->lock || q->lock->owner.size == 0)
        return call;
    *own = *call;
    own->lk_owner = q->lock->owner;
    return own;
}

static FIBER int exchange(struct remote *s, struct call *call, const struct request *q, const struct fop_request *w,
                          struct rpc_call *c)
{
    struct call own;
    struct xdr_out o;
    void (*on_late)(struct rpc_call *) = c->on_late;

    rpc_call_begin(s->peer, c, &o, PROGRAM_FOPS, FOPS_VERSION, w->proc, identity(call, q, &own));
    c->on_late = on_late;
    c->answers_read = w->proc == FOP_READ;
    fop_put_request(&o, w, false);
    uint32_t begun_at = call_round_trip_begin(call);
    int r = rpc_peer_call(s->peer, c, &o, &call->scope);
    call_round_trip_end(call, begun_at);
    return r;
}

static FIBER int op_with_undo(struct remote *s, struct call *call, const struct request *q, const struct fop_request *w,
                              struct reply *r)
{
    struct late_call *l = late_call_new(s, call, q, w, 1, false);
    uint64_t begun_ns = remote_lease_begin(s);

    if (!l)
        return -ENOMEM;
    int result = exchange(s, call, q, w, &l->c);
    if (rpc_call_is_under_way(&l->c)) { /* l lives until the answer comes */
        if (q->op == OP_LK && s->speaks_mortar && s->peer)
            late_end_wait(l);
        return result;
    }
    if (result == 0)
        result = remote_answer(s, call, q, w, &l->c.body, l->c.reply.data, false, begun_ns, r);
    late_call_free(l);
    return result;
}

FIBER int remote_op(struct remote *s, struct call *call, const struct request *q, struct reply *r)
{
    struct fop_request w;
    struct rpc_call c;
    int result = remote_request(s, call, q, NULL, 0, &w);

    if (result < 0)
        return result;
    if (leaves_something(q, 1))
        return op_with_undo(s, call, q, &w, r);
    c.on_late = NULL;
    uint64_t begun_ns = remote_lease_begin(s);
    result = exchange(s, call, q, &w, &c);
    if (result == 0)
        result = remote_answer(s, call, q, &w, &c.body, c.reply.data, false, begun_ns, r);
    rpc_call_done(&c);
    return result;
}
