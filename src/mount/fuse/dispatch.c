#include "mount/fuse/dispatch.h"
#include "mount/fuse/fuse_internal.h"

struct operation {
    const char *name;
    op_handler run;
    size_t args_min;   /* bytes of the fixed part */
    unsigned names;    /* NUL-terminated strings that must follow it */
    bool without_node; /* head.nodeid is not one of ours */
};

#define IN(type) sizeof(struct type)

static const struct operation operations[] = {
    [FUSE_INIT] = { "init", on_init, 2 * sizeof(uint32_t), 0, true },
    [FUSE_LOOKUP] = { "lookup", on_lookup, 0, 1, false },
    [FUSE_GETATTR] = { "getattr", on_getattr, IN(fuse_getattr_in), 0, false },
    [FUSE_SETATTR] = { "setattr", on_setattr, IN(fuse_setattr_in), 0, false },
    [FUSE_READLINK] = { "readlink", on_readlink, 0, 0, false },
    [FUSE_SYMLINK] = { "symlink", on_symlink, 0, 2, false },
    [FUSE_MKNOD] = { "mknod", on_mknod, IN(fuse_mknod_in), 1, false },
    [FUSE_MKDIR] = { "mkdir", on_mkdir, IN(fuse_mkdir_in), 1, false },
    [FUSE_UNLINK] = { "unlink", on_unlink, 0, 1, false },
    [FUSE_RMDIR] = { "rmdir", on_rmdir, 0, 1, false },
    [FUSE_RENAME] = { "rename", on_rename, IN(fuse_rename_in), 2, false },
    [FUSE_RENAME2] = { "rename2", on_rename2, IN(fuse_rename2_in), 2, false },
    [FUSE_LINK] = { "link", on_link, IN(fuse_link_in), 1, false },
    [FUSE_OPEN] = { "open", on_open, IN(fuse_open_in), 0, false },
    [FUSE_CREATE] = { "create", on_create, IN(fuse_create_in), 1, false },
    [FUSE_READ] = { "read", on_read, IN(fuse_read_in), 0, false },
    [FUSE_WRITE] = { "write", on_write, IN(fuse_write_in), 0, false },
    [FUSE_STATFS] = { "statfs", on_statfs, 0, 0, false },
    [FUSE_RELEASE] = { "release", on_release, IN(fuse_release_in), 0, false },
    [FUSE_FLUSH] = { "flush", on_flush, IN(fuse_flush_in), 0, false },
    [FUSE_FSYNC] = { "fsync", on_fsync, IN(fuse_fsync_in), 0, false },
    [FUSE_SETXATTR] = { "setxattr", on_setxattr, FUSE_COMPAT_SETXATTR_IN_SIZE, 0, false },
    [FUSE_GETXATTR] = { "getxattr", on_getxattr, IN(fuse_getxattr_in), 1, false },
    [FUSE_LISTXATTR] = { "listxattr", on_listxattr, IN(fuse_getxattr_in), 0, false },
    [FUSE_REMOVEXATTR] = { "removexattr", on_removexattr, 0, 1, false },
    [FUSE_OPENDIR] = { "opendir", on_opendir, IN(fuse_open_in), 0, false },
    [FUSE_READDIR] = { "readdir", on_readdir, IN(fuse_read_in), 0, false },
    [FUSE_READDIRPLUS] = { "readdirplus", on_readdirplus, IN(fuse_read_in), 0, false },
    [FUSE_RELEASEDIR] = { "releasedir", on_releasedir, IN(fuse_release_in), 0, false },
    [FUSE_FSYNCDIR] = { "fsyncdir", on_fsyncdir, IN(fuse_fsync_in), 0, false },
    [FUSE_GETLK] = { "getlk", on_getlk, IN(fuse_lk_in), 0, false },
    [FUSE_SETLK] = { "setlk", on_setlk, IN(fuse_lk_in), 0, false },
    [FUSE_SETLKW] = { "setlkw", on_setlkw, IN(fuse_lk_in), 0, false },
    [FUSE_ACCESS] = { "access", on_access, IN(fuse_access_in), 0, false },
    [FUSE_FALLOCATE] = { "fallocate", on_fallocate, IN(fuse_fallocate_in), 0, false },
    [FUSE_LSEEK] = { "lseek", on_lseek, IN(fuse_lseek_in), 0, false },
    [FUSE_COPY_FILE_RANGE] = { "copy_file_range", on_copy_range, IN(fuse_copy_file_range_in), 0, false },
};

static void request_free(struct request_in *in)
{
    struct mount *m = in->m;

    if (in->head.unique && !list_empty(&in->of_mount)) {
        list_del(&in->of_mount);
        HASH_DEL(m->by_unique, in);
    }
    buf_unref(in->data);
    groups_unref(in->groups);
    node_unpin(m, in->node);
    node_unpin(m, in->found);
    mem_free(in);
}

static void forget(struct request_in *in)
{
    struct mount *m = in->m;

    if (in->head.opcode == FUSE_FORGET) {
        const struct fuse_forget_in *one = (const void *)in->args;

        if (in->args_bytes >= sizeof(*one)) {
            node_forget(m, node_by_id(m, in->head.nodeid), one->nlookup);
            m->count.forgets++;
        }
    } else if (in->args_bytes >= sizeof(struct fuse_batch_forget_in)) {
        const struct fuse_batch_forget_in *batch = (const void *)in->args;
        const struct fuse_forget_one *one = (const void *)(in->args + sizeof(*batch));
        size_t room = (in->args_bytes - sizeof(*batch)) / sizeof(*one);

        for (size_t i = 0; i < MIN((size_t)batch->count, room); i++)
            node_forget(m, node_by_id(m, one[i].nodeid), one[i].nlookup);
        m->count.forgets += MIN((size_t)batch->count, room);
    }
}

/* What may be given up halfway when nobody will see the result: questions. Not changes, and not what a process that is
 * ending still has to do: its close gives its locks back. */
static bool is_question(uint32_t opcode)
{
    switch (opcode) {
    case FUSE_LOOKUP:
    case FUSE_GETATTR:
    case FUSE_READLINK:
    case FUSE_READ:
    case FUSE_STATFS:
    case FUSE_FSYNC:
    case FUSE_GETXATTR:
    case FUSE_LISTXATTR:
    case FUSE_OPENDIR:
    case FUSE_READDIR:
    case FUSE_READDIRPLUS:
    case FUSE_FSYNCDIR:
    case FUSE_GETLK:
    case FUSE_ACCESS:
    case FUSE_LSEEK: return true;
    default: return false;
    }
}

/* A signal reached the caller. Waiting for a lock ends with EINTR; other operations go on, as on a local disk, unless
 * the signal is SIGKILL and it is a question: then nobody will see the answer, and a caller stuck behind a dead brick can
 * go. */
static void interrupt(struct request_in *in)
{
    const struct fuse_interrupt_in *args = (const void *)in->args;
    struct request_in *target = NULL;
    uint64_t unique;

    if (in->args_bytes < sizeof(*args))
        return;
    unique = args->unique;
    HASH_FIND(hh, in->m->by_unique, &unique, sizeof(unique), target);
    if (!target || target->is_answered)
        return;
    in->m->count.interrupts++;
    target->is_interrupted = true;
    if (target->head.opcode == FUSE_SETLKW ||
        (is_question(target->head.opcode) && thread_has_sigkill(target->head.pid)))
        scope_cancel(&target->call.scope);
}

static bool args_are_whole(const struct request_in *in, const struct operation *o)
{
    const uint8_t *at = in->args + o->args_min, *end = in->args + in->args_bytes;

    if (in->args_bytes < o->args_min)
        return false;
    for (unsigned i = 0; i < o->names; i++) {
        at = memchr(at, 0, (size_t)(end - at));
        if (!at)
            return false;
        at++;
    }
    return true;
}

static void fill_call(struct request_in *in)
{
    struct fuse *f = mount_options(in->m);

    call_init(&in->call, in->m->me->graph);
    in->upcalls = in->m->upcalls;
    in->call.uid = in->head.uid;
    in->call.gid = in->head.gid;
    in->call.pid = f->client_pid ? f->client_pid : (int32_t)in->head.pid;
    in->call.trace_id = in->head.unique;
    /* Whoever locks names itself in its arguments; all others need an owner for internal locks below. */
    lk_owner_from_u64(&in->call.lk_owner, in->head.unique);
    /* Root is not checked by groups anywhere. */
    if (in->head.uid != 0 && groups_get(in->m, in->head.pid, in->head.uid, false, &in->groups) == 0) {
        in->call.groups = in->groups->list;
        in->call.group_count = in->groups->count;
    }
}

/* What was done to a directory of .gfid was done to the one that is seen by its path. */
static void tell_of_alias(const struct request_in *in, const struct operation *o)
{
    const char *name = (const char *)in->args + o->args_min;

    for (unsigned i = 0; i < o->names; i++, name += strlen(name) + 1)
        gfid_dir_changed(in->m, in->node, name);
    gfid_dir_changed(in->m, in->node, NULL);
}

static bool changes_alias(const struct request_in *in)
{
    return in->node && !list_empty(&in->node->of_aliases) && request_changes(in);
}

static FIBER void serve(void *arg)
{
    struct request_in *in = arg;
    struct mount *m = in->m;
    const struct operation *o = &operations[in->head.opcode];
    int r;

    while (m->is_moving)
        (void)waitq_wait(&m->moved, NULL);
    m->running++;
    attr_moves(in);
    if (changes_alias(in))
        gfid_dir_will_change(m, in->node);
    r = in->node == &m->gfid_dir ? gfid_dir_serve(in) : o->run(in);
    attr_moves(in);
    if (changes_alias(in))
        tell_of_alias(in, o);
    if (!in->is_answered) {
        assert(r < 0);
        if (r == -ESTALE)
            note_stale(in);
        answer_error(in, r);
    }
    call_done(&in->call);
    request_free(in);
    if (--m->running == 0)
        (void)waitq_wake_all(&m->idle, 0);
}

void dispatch(struct request_in *in)
{
    struct mount *m = in->m;
    uint32_t code = in->head.opcode;
    const struct operation *o = code < ARRAY_SIZE(operations) ? &operations[code] : NULL;
    int r = 0;

    if (code == FUSE_FORGET || code == FUSE_BATCH_FORGET) {
        forget(in);
        request_free(in);
        return;
    }
    if (code == FUSE_INTERRUPT) {
        interrupt(in);
        request_free(in);
        return;
    }
    if (!o || !o->run)
        r = code == FUSE_IOCTL ? -ENOTTY : -ENOSYS; /* after ENOSYS the kernel does not ask again */
    else if (!args_are_whole(in, o))
        r = -EIO;
    if (r == 0) {
        if (!o->without_node) {
            in->node = node_by_id(m, in->head.nodeid);
            node_pin(in->node);
        }
        inval_let_pass(in);
        fill_call(in); /* now: an interrupt may come before the fiber runs */
        list_add_tail(&m->requests, &in->of_mount);
        HASH_ADD(hh, m->by_unique, head.unique, sizeof(in->head.unique), in);
        r = fiber_spawn(m->env, "fuse-request", serve, in);
        if (r == 0)
            return;
        call_done(&in->call);
    }
    if (code != FUSE_DESTROY)
        answer_error(in, r);
    request_free(in);
}
