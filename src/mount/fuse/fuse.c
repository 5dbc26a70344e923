/* mount/fuse - the translator: options, start and stop, events, moving the mount to another graph, statedump. */
#include "mount/fuse/fuse_internal.h"
#include <fcntl.h>
#include <stdio.h>

#define STOP_PATIENCE_MS 2000 /* for requests under way at unmount; then they are cancelled */

static const char *const direct_io_words[] = { "auto", "enable", "disable", "on", "off", "yes",
                                               "no",   "true",   "false",   "1",  "0",   NULL };

static const struct option fuse_options[] = {
    OPT_PATH("mountpoint", struct fuse, mount_point, .aliases = { "mount-point" }, .help = "where to mount"),
    OPT_STR("source", struct fuse, source, .def = "mortar", .help = "first column of the mount table"),
    OPT_STR("subtype", struct fuse, subtype, .def = "mortar", .help = "the mount table shows fuse.SUBTYPE"),
    OPT_STR("fuse-mountopts", struct fuse, mount_options, .help = "options for the kernel, separated by commas"),
    OPT_DOUBLE("attribute-timeout", struct fuse, attribute_timeout_s, .def = "1", .max = 31536000, .unit = "s",
               .live = true, .help = "how long the kernel may use attributes without asking"),
    OPT_DOUBLE("entry-timeout", struct fuse, entry_timeout_s, .def = "1", .max = 31536000, .unit = "s", .live = true,
               .help = "how long the kernel may use names without asking"),
    OPT_DOUBLE("negative-timeout", struct fuse, negative_timeout_s, .def = "0", .max = 31536000, .unit = "s",
               .live = true, .help = "how long the kernel may believe that a name does not exist"),
    OPT_TIME("gid-timeout", struct fuse, gid_timeout_s, .def = "300", .live = true,
             .help = "how long the groups of a process are kept"),
    OPT_TIME("wait-for-bricks", struct fuse, wait_for_bricks_s, .def = "60",
             .help = "how long to wait for bricks at the start; 0 = do not wait"),
    OPT_ENUM("direct-io-mode", struct fuse, direct_io, direct_io_words, .def = "auto",
             .help = "enable: no page cache; auto, disable: as programs ask with O_DIRECT"),
    OPT_BOOL("read-only", struct fuse, read_only, .def = "off", .help = "mount read-only"),
    OPT_BOOL("acl", struct fuse, acl, .def = "off", .help = "POSIX access control lists"),
    OPT_BOOL("selinux", struct fuse, selinux, .def = "off", .help = "pass security.selinux attributes through"),
    OPT_BOOL("allow-other", struct fuse, allow_other, .def = "on", .help = "other users may use root's mount"),
    OPT_BOOL("fopen-keep-cache", struct fuse, keep_cache, .def = "off",
             .help = "keep pages over an open whenever size and times are the same"),
    OPT_BOOL("use-readdirp", struct fuse, use_readdirp, .def = "yes", .help = "read directories with attributes"),
    OPT_BOOL("auto-invalidation", struct fuse, auto_inval, .def = "on",
             .help = "the kernel drops pages when attributes show another time or size"),
    OPT_BOOL("kernel-writeback-cache", struct fuse, writeback, .def = "off",
             .help = "the kernel collects writes; only where one client uses a file at a time"),
    OPT_U32("attr-times-granularity", struct fuse, granularity_ns, .def = "0", .max = 1000000000, .unit = "ns",
            .help = "of times, for the kernel's writeback cache"),
    OPT_BOOL("enable-ino32", struct fuse, ino32, .def = "off", .help = "inode numbers of 32 bits"),
    OPT_BOOL("aux-gfid-mount", struct fuse, gfid_access, .def = "off",
             .help = "root finds every file and directory as .gfid/UUID in the root"),
    OPT_BOOL("resolve-gids", struct fuse, resolve_gids, .def = "off",
             .help = "accepted; groups always come from the calling process, however many there are"),
    OPT_I32("client-pid", struct fuse, client_pid, .min = INT32_MIN, .help = "pid sent to the bricks"),
    OPT_U32("background-qlen", struct fuse, background, .def = "64", .min = 16, .max = 65535,
            .help = "requests the kernel may queue in the background"),
    OPT_U32("congestion-threshold", struct fuse, congestion, .def = "48", .min = 12, .max = 65535,
            .help = "background requests from which the kernel holds back"),
    OPT_U32("lru-limit", struct fuse, lru_limit, .def = "65536", .live = true,
            .help = "inodes kept without a reference of the kernel"),
    OPT_IGNORED("invalidate-limit", .help = "the queue of invalidations has a limit of its own"),
    OPT_IGNORED("dump-fuse", .aliases = { "fuse-dumpfile" }, .help = "strace -e trace=read,writev shows requests"),
    OPT_IGNORED("strict-volfile-check", .help = "the volume file always comes from the server"),
    OPT_IGNORED("uid-map-root", .help = "use server.root-squash"),
    OPT_IGNORED("sync-to-mount", .help = "starting returns when the mount can be used"),
    OPT_IGNORED("no-root-squash", .help = "set by client-pid"),
    OPT_IGNORED("capability", .help = "security.capability is always passed through"),
    OPT_IGNORED("event-history", .help = "debug/trace shows operations"),
    OPT_IGNORED("thin-client", .help = "no longer exists"),
    OPT_IGNORED("reader-thread-count", .help = "one reader serves all requests without waiting"),
    OPT_IGNORED("flush-handle-interrupt", .help = "waiting requests of killed processes always end"),
    OPT_IGNORED("fuse-dev-eperm-ratelimit-ns", .help = "reading the device does not log"),
    OPT_END,
};

void fuse_on_end(struct translator *fuse, void (*fn)(void *arg), void *arg)
{
    struct fuse *f = fuse->state;

    f->on_end = fn;
    f->on_end_arg = arg;
}

void fuse_will_take_over(struct translator *fuse)
{
    struct fuse *f = fuse->state;

    f->takes_over = true;
}

/* The words for bool select the same as enable and disable. */
static void settle_direct_io(struct fuse *f)
{
    static const uint8_t meaning[] = { DIRECT_AUTO, DIRECT_ON, DIRECT_OFF, DIRECT_ON, DIRECT_OFF, DIRECT_ON,
                                       DIRECT_OFF,  DIRECT_ON, DIRECT_OFF, DIRECT_ON, DIRECT_OFF };

    f->direct_io = meaning[f->direct_io];
}

static int fuse_init(struct translator *me, struct error *err)
{
    struct fuse *f = me->state;

    settle_direct_io(f);
    waitq_init(&f->coming);
    if (!f->mount_point)
        return error_set(err, -EINVAL, "mount/fuse %s: option mountpoint is missing", me->name);
    inode_table_set_limit(me->graph, f->lru_limit);
    return 0;
}

/* Until the child can serve, at most wait-for-bricks seconds. */
FIBER int fuse_wait_for_child(struct translator *me, struct error *err)
{
    struct fuse *f = me->state;
    struct scope scope;
    int r = 0;

    scope_init(&scope, env_deadline_ms(me->env, f->wait_for_bricks_s * 1000ull));
    while (r == 0 && !f->child_came && !me->children[0]->is_up && !f->refusal[0])
        r = waitq_wait(&f->coming, &scope);
    scope_done(&scope);
    if (f->refusal[0])
        return error_set(err, -EACCES, "%s", f->refusal);
    if (r == -ETIMEDOUT)
        return error_set(err, -ENOTCONN,
                         "no usable brick within %u s (option wait-for-bricks); are the brick processes running and "
                         "reachable, and do the addresses in the volume file name them?",
                         f->wait_for_bricks_s);
    return r;
}

/* A mount whose root cannot be looked up is of no use: find out before mounting. */
FIBER int fuse_look_at_root(struct translator *me, struct error *err)
{
    SCOPED(reply_free) struct reply *r = reply_new();
    SCOPED(inode_unref) struct inode *root = inode_table_get(me->graph, &gfid_root, S_IFDIR);
    struct request q = { .op = OP_LOOKUP, .inode = root };
    struct call call;
    int result;

    if (!r || !root)
        return -ENOMEM;
    call_init(&call, me->graph);
    result = child_call(me, 0, &call, &q, r);
    call_done(&call);
    if (result < 0)
        return error_set(err, result, "the root directory of the volume cannot be read: %s", strerror(-result));
    return 0;
}

static FIBER int fuse_start(struct translator *me, struct error *err)
{
    struct fuse *f = me->state;
    struct mount *m;
    int r;

    if (f->takes_over)
        return 0;
    r = fuse_wait_for_child(me, err);
    if (r == 0)
        r = fuse_look_at_root(me, err);
    if (r < 0)
        return r;
    r = mount_new(me, &m);
    if (r < 0)
        return error_set(err, r, "mounting %s: out of memory", f->mount_point);
    r = kernel_mount(m, err);
    if (r == 0)
        r = mount_read_start(m);
    if (r < 0) {
        kernel_unmount(m);
        mount_free(m);
        return r;
    }
    kernel_raise_read_ahead(m);
    f->mount = m;
    return 0;
}

static bool is_busy(const struct mount *m)
{
    return m->running > 0 || inval_is_busy(m);
}

static void cancel_all(struct mount *m)
{
    struct request_in *in;

    list_for_each (in, &m->requests, of_mount)
        scope_cancel(&in->call.scope);
}

/* Requests that came in before the unmount get their answers; those that hang behind a dead brick are cancelled. */
static FIBER void drain_requests(struct mount *m)
{
    struct scope scope;

    for (int round = 0; round < 2 && is_busy(m); round++) {
        scope_init(&scope, env_deadline_ms(m->env, STOP_PATIENCE_MS));
        while (is_busy(m) && waitq_wait(&m->idle, &scope) == 0)
            ;
        scope_done(&scope);
        cancel_all(m);
    }
}

static FIBER void fuse_stop(struct translator *me)
{
    struct fuse *f = me->state;
    struct mount *m = take(f->mount);

    if (!m)
        return;
    f->on_end = NULL;
    kernel_unmount(m);
    drain_requests(m);
    mount_read_stop(m);
    while (is_busy(m)) {
        cancel_all(m);
        (void)waitq_wait(&m->idle, NULL);
    }
    mount_free(m);
}

static void fuse_fini(struct translator *me)
{
    options_release(fuse_options, me->state);
}

static void fuse_reconfigured(struct translator *me)
{
    struct fuse *f = me->state;

    inode_table_set_limit(me->graph, f->lru_limit);
}

static void fuse_notify(struct translator *me, unsigned child, const struct event *event)
{
    struct fuse *f = me->state;

    switch (event->kind) {
    case EVENT_CHILD_UP:
        f->child_came = true;
        (void)waitq_wake_all(&f->coming, 0);
        break;
    case EVENT_AUTH_FAILED:
        if (!f->mount && event->text) {
            (void)snprintf(f->refusal, sizeof(f->refusal), "%s", event->text);
            (void)waitq_wake_all(&f->coming, 0);
        }
        break;
    case EVENT_INVALIDATE:
        if (f->mount)
            inval_upcall(f->mount, event);
        break;
    default: break;
    }
    notify_parents(me, event);
}

/* ---- statedump ---- */

static void fuse_dump(struct translator *me, struct dump *out)
{
    struct fuse *f = me->state;
    struct mount *m = f->mount;

    dump_printf(out, "mountpoint", "%s", f->mount_point);
    if (!m)
        return;
#define NUMBER(name, value) dump_printf(out, name, "%llu", (unsigned long long)(value))
    dump_printf(out, "kernel_protocol", "7.%u", m->kernel_minor);
    dump_printf(out, "init_flags_offered", "%#llx", (unsigned long long)m->kernel_flags);
    dump_printf(out, "init_flags", "%#llx", (unsigned long long)m->flags);
    NUMBER("nodes", HASH_COUNT(m->nodes) + 1);
    NUMBER("requests", m->count.requests);
    NUMBER("requests_running", m->running);
    NUMBER("replies_lost", m->count.replies_lost);
    NUMBER("interrupts", m->count.interrupts);
    NUMBER("forgets", m->count.forgets);
    NUMBER("retries", m->count.retries);
    NUMBER("bytes_read", m->count.bytes_read);
    NUMBER("bytes_written", m->count.bytes_written);
    NUMBER("reads_filled_with_zeros", m->count.zero_filled);
    NUMBER("caches_kept", m->count.caches_kept);
    NUMBER("attributes_served", m->count.served_kept);
    NUMBER("absent_names_served", m->count.served_absent);
    NUMBER("known_names", m->known_names);
    NUMBER("invalidations", m->count.invalidations);
    NUMBER("invalidations_queued", m->lanes[LANE_INODES].queued + m->lanes[LANE_NAMES].queued);
    NUMBER("invalidations_dropped", m->count.invalidations_dropped);
    NUMBER("group_reads", m->count.group_reads);
#undef NUMBER
}

const struct translator_class fuse_class = {
    .type = "mount/fuse",
    .state_size = sizeof(struct fuse),
    .options = fuse_options,
    .children_min = 1,
    .children_max = 1,
    .init = fuse_init,
    .start = fuse_start,
    .stop = fuse_stop,
    .fini = fuse_fini,
    .reconfigured = fuse_reconfigured,
    .notify = fuse_notify,
    .dump = fuse_dump,
};
