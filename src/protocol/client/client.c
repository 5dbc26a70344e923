/* protocol/client - one brick on another machine (or behind a unix socket), as the leaf of a graph.
 *
 * Promises its parent: an operation is sent at most once and ends with the brick's answer, -ENOTCONN when the connection
 * was lost (then it may or may not have happened), or the end of the call's scope. EVENT_CHILD_UP means that all open
 * descriptors and their locks are in place again; between CHILD_DOWN and CHILD_UP everything fails with -ENOTCONN at
 * once. Nothing is sent again by itself. Errors are the brick's, unchanged, and so are readdir's cookies: one stream
 * comes from one brick, and whoever merges several keeps them apart.
 */
#include "core/mem.h"
#include "protocol/client/client_internal.h"

static const struct option remote_options[] = {
    OPT_STR("remote-host", struct remote, host, .help = "host of the brick"),
    OPT_U32("remote-port", struct remote, port, .aliases = { "transport.remote-port", "transport.socket.remote-port" },
            .max = 65535, .help = "port of the brick; without it the management daemon's port map is asked"),
    OPT_STR("remote-subvolume", struct remote, subvolume, .help = "section of the brick's graph, its path as a rule"),
    OPT_STR("username", struct remote, username),
    OPT_STR("password", struct remote, password),
    OPT_STR("transport-type", struct remote, transport_type, .def = "tcp", .help = "tcp, socket or unix"),
    OPT_STR("transport.address-family", struct remote, family, .aliases = { "address-family" }),
    OPT_STR("transport.socket.connect-path", struct remote, connect_path, .aliases = { "connect-path" },
            .help = "path of the brick's unix socket"),
    OPT_TIME("frame-timeout", struct remote, frame_timeout_s, .def = "1800", .max = 86400, .live = true,
             .aliases = { "rpc-timeout", "transport-timeout" }, .help = "an operation without an answer fails"),
    OPT_TIME("ping-timeout", struct remote, ping_timeout_s, .def = "4", .max = 1013, .live = true,
             .help = "a connection on which nothing comes back for so long is given up; 0: never"),
    OPT_BOOL("send-gids", struct remote, sends_groups, .def = "on", .live = true,
             .help = "send the supplementary groups of users"),
    OPT_BOOL("filter-O_DIRECT", struct remote, filters_direct, .def = "off", .live = true,
             .help = "open files without O_DIRECT on the brick"),
    OPT_BOOL("strict-locks", struct remote, has_strict_locks, .def = "off", .live = true,
             .help = "after a reconnect, files with locks answer EBADF instead of locking again"),
    OPT_BOOL("client-bind-insecure", struct remote, binds_insecure, .def = "off",
             .help = "do not try source ports below 1024"),
    OPT_BOOL("transport.socket.ssl-enabled", struct remote, uses_tls, .def = "off"),
    OPT_TIME("transport.socket.keepalive-time", struct remote, keepalive_time_s, .def = "20"),
    OPT_TIME("transport.socket.keepalive-interval", struct remote, keepalive_interval_s, .def = "2"),
    OPT_U32("transport.socket.keepalive-count", struct remote, keepalive_count, .def = "9"),
    OPT_TIME("transport.tcp-user-timeout", struct remote, user_timeout_s, .def = "42", .max = 1013),
    OPT_IGNORED("testing.old-protocol", .help = "only the 4.x program is spoken"),
    OPT_IGNORED("event-threads", .help = "one thread serves all connections"),
    OPT_IGNORED("tcp-window-size", .help = "the kernel sizes windows by itself"),
    OPT_IGNORED("non-blocking-io", .help = "it always is"),
    OPT_IGNORED("transport.socket.nodelay", .help = "it always is"),
    OPT_IGNORED("transport.socket.keepalive"),
    OPT_IGNORED("transport.socket.read-fail-log"),
    OPT_IGNORED("transport.socket.own-thread"),
    OPT_IGNORED("transport.socket.bind-address", .help = "the kernel chooses"),
    OPT_IGNORED("volume-id", .help = "the brick says it"),
    OPT_END,
};

static bool is_unix(const struct remote *s)
{
    return s->connect_path || (s->transport_type && strncmp(s->transport_type, "unix", 4) == 0) ||
           (s->family && strcmp(s->family, "unix") == 0);
}

static bool is_known_transport(const char *type)
{
    static const char *const known[] = { "tcp", "socket", "unix", "tcp/client", "socket/client", "unix/client" };

    for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
        if (strcmp(type, known[i]) == 0)
            return true;
    }
    return false;
}

static int remote_init(struct translator *me, struct error *err)
{
    struct remote *s = me->state;

    s->me = me;
    waitq_init(&s->stopped);
    waitq_init(&s->changes);
    scope_init(&s->attempt, 0);
    s->xid = 1;
    struct gfid id = gfid_random(me->env);
    gfid_format(&id, s->process_id);
    if (strlen(me->graph->process_id) == GFID_TEXT_LEN)
        memcpy(s->process_id, me->graph->process_id, GFID_TEXT_LEN + 1);
    if (!is_known_transport(s->transport_type))
        return error_set(err, -EINVAL, "section \"%s\": transport-type \"%s\" is not available; use tcp or unix",
                         me->name, s->transport_type);
    if (s->uses_tls)
        return error_set(err, -EINVAL, "section \"%s\": TLS is not available yet; set \"%s off\"", me->name,
                         "option transport.socket.ssl-enabled");
    if (!s->subvolume)
        return error_set(err, -EINVAL, "section \"%s\" needs \"option remote-subvolume NAME\"", me->name);
    if (is_unix(s) && !s->connect_path)
        return error_set(err, -EINVAL, "section \"%s\" needs \"option transport.socket.connect-path PATH\"", me->name);
    if (!is_unix(s) && !s->host)
        return error_set(err, -EINVAL, "section \"%s\" needs \"option remote-host HOST\"", me->name);
    return 0;
}

static FIBER int remote_start(struct translator *me, struct error *err)
{
    struct remote *s = me->state;
    int r = fiber_spawn(me->env, "client-connect", remote_run, s);

    if (r < 0)
        return error_set(err, r, "section \"%s\": no memory to connect", me->name);
    s->is_running = true;
    return 0;
}

static FIBER void remote_stop(struct translator *me)
{
    struct remote *s = me->state;

    s->is_stopping = true;
    scope_cancel(&s->attempt);
    if (s->peer)
        rpc_peer_disconnect(s->peer, -ESHUTDOWN);
    waitq_wake_all(&s->changes, 0);
    while (s->is_running)
        (void)waitq_wait(&s->stopped, NULL); /* woken by the end of remote_run() */
}

static void remote_fini(struct translator *me)
{
    struct remote *s = me->state;

    reach_unref(take(s->reach));
}

static void remote_reconfigured(struct translator *me)
{
    struct remote *s = me->state;

    if (!s->peer)
        return;
    s->peer->ping_timeout_s = s->ping_timeout_s;
    s->peer->frame_timeout_s = s->frame_timeout_s;
    s->peer->sends_groups = s->sends_groups;
}

/* What GlusterFS's messages have no room for. */
static bool needs_own_program(const struct remote *s, const struct call *call, const struct request *q)
{
    return (s->sends_groups && call->group_count > rpc_groups_that_fit(MAX(call->lk_owner.size, 4u))) ||
           (q->op == OP_RENAME && q->flags != 0) || q->op == OP_BLOCKSUMS;
}

static FIBER int remote_any(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct remote *s = me->state;

    if (!s->is_up)
        return -ENOTCONN;
    if (q->op == OP_COMPOUND && s->speaks_mortar && q->step_count > 0 && q->step_count <= COMPOUND_STEPS_MAX)
        return remote_compound(s, call, q, r);
    if (q->op == OP_COMPOUND)
        return default_compound(me, call, q, r);
    if (q->op == OP_FLUSH && remote_flush_is_idle(s, q))
        return 0;
    if (s->speaks_mortar && needs_own_program(s, call, q))
        return remote_op_as_step(s, call, q, r);
    return remote_op(s, call, q, r);
}

static void remote_dump(struct translator *me, struct dump *out)
{
    struct remote *s = me->state;

    dump_printf(out, "connected", "%d", s->is_up);
    dump_printf(out, "connects", "%llu", (unsigned long long)s->connects);
    dump_printf(out, "failed-connects", "%llu", (unsigned long long)s->failures);
    dump_printf(out, "own-program", "%d", s->speaks_mortar);
    dump_printf(out, "leases-broken", "%llu", (unsigned long long)s->leases_broken);
    if (!s->peer)
        return;
    dump_printf(out, "peer", "%s", stream_peer_name(s->peer->stream));
    dump_printf(out, "outstanding", "%u", s->peer->outstanding_count);
    dump_printf(out, "queued-bytes", "%zu", s->peer->queued_bytes);
}

const struct translator_class client_class = {
    .type = "protocol/client",
    .state_size = sizeof(struct remote),
    .options = remote_options,
    .any = remote_any,
    .is_leaf = true,
    .uses_fd_ctx = true,
    .uses_inode_ctx = true,
    .init = remote_init,
    .start = remote_start,
    .stop = remote_stop,
    .fini = remote_fini,
    .reconfigured = remote_reconfigured,
    .inode_forget = remote_inode_forget,
    .fd_release = remote_fd_release,
    .lease = remote_lease,
    .dump = remote_dump,
};
