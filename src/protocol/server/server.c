/* protocol/server - lets clients of the GlusterFS 4.x protocol work on a brick's graph.
 *
 * Every request runs in a fiber of its own, as the user its credential names, on the section its SETVOLUME asked for.
 * A client's descriptors and locks live as long as its connection. What children report about a client (contention,
 * invalidation) is sent to it as a callback.
 *
 * With `option standalone-port N` the brick also answers clients that look for a management daemon: it hands out volume
 * files (volume-filename.KEY, client-volume-filename, or one made up for this brick alone) and the brick's own port.
 * This is a port of its own, because clients take a peer that lists the port map program for a daemon, not for a brick.
 */
#include "core/mem.h"
#include "protocol/server/server_internal.h"
#include <stdio.h>

static const struct option server_options[] = {
    OPT_STR("transport-type", struct server, transport_type, .def = "tcp", .help = "tcp, socket or unix"),
    OPT_STR("transport.address-family", struct server, family, .aliases = { "address-family" }),
    OPT_U32("transport.socket.listen-port", struct server, port, .def = "24007", .max = 65535,
            .aliases = { "listen-port", "client-listen-port", "transport.listen-port" },
            .help = "TCP port; 0 takes a free one"),
    OPT_STR("transport.socket.bind-address", struct server, bind_address, .aliases = { "bind-address" },
            .help = "address to listen at, any when not given"),
    OPT_STR("transport.socket.listen-path", struct server, listen_path, .aliases = { "listen-path", "bind-path" },
            .help = "path of a unix socket to listen at"),
    OPT_U32("transport.listen-backlog", struct server, backlog, .def = "1024", .min = 1, .max = 65535),
    OPT_U32("standalone-port", struct server, standalone_port, .max = 65535,
            .help = "TCP port at which a brick without a management daemon hands out volume files and its own port"),
    OPT_STR("standalone-volume", struct server, standalone_volume,
            .help = "name of the volume file that is made up; default: the section's name without \"-server\""),
    OPT_STR("client-volume-filename", struct server, volume_file, .help = "volume file for clients"),
    OPT_ANY("volume-filename.*", .help = "volume file for clients that ask for this name"),
    OPT_ANY("auth.addr.*.allow", .live = true, .help = "addresses that may use the section"),
    OPT_ANY("auth.addr.*.reject", .live = true, .help = "addresses that may not"),
    OPT_ANY("auth.ip.*.allow", .live = true),
    OPT_ANY("auth.ip.*.reject", .live = true),
    OPT_ANY("auth.login.*.allow", .live = true, .help = "users that may use the section"),
    OPT_ANY("auth.login.*.password", .live = true),
    OPT_ANY("auth.login.*.ssl-allow", .live = true),
    OPT_ANY("auth-path"),
    OPT_U32("rpc.outstanding-rpc-limit", struct server, outstanding_limit, .def = "64", .max = 65536, .live = true,
            .help = "requests of one client under way; 0: no limit"),
    OPT_U32("inode-lru-limit", struct server, inode_limit, .def = "16384", .max = 1048576, .live = true,
            .help = "inodes kept in memory although nobody uses them"),
    OPT_BOOL("rpc-auth-allow-insecure", struct server, allows_insecure, .def = "on", .live = true,
             .aliases = { "allow-insecure" }, .help = "accept clients with source ports from 1024 on"),
    OPT_BOOL("root-squash", struct server, squashes_root, .def = "off", .live = true,
             .help = "root of clients is anonuid and anongid here"),
    OPT_BOOL("all-squash", struct server, squashes_all, .def = "off", .live = true,
             .help = "every user of clients is anonuid and anongid here"),
    OPT_U32("anonuid", struct server, anonuid, .def = "65534", .live = true),
    OPT_U32("anongid", struct server, anongid, .def = "65534", .live = true),
    OPT_BOOL("manage-gids", struct server, manages_gids, .def = "off", .live = true,
             .help = "take supplementary groups from this host's user data base"),
    OPT_U32("gid-timeout", struct server, gid_timeout_s, .def = "300", .unit = "s", .live = true,
            .help = "how long they are remembered"),
    OPT_BOOL("dynamic-auth", struct server, has_dynamic_auth, .def = "on", .live = true,
             .help = "check connected clients again when auth options change"),
    OPT_BOOL("strict-auth-accept", struct server, is_strict, .def = "off", .live = true,
             .help = "refuse clients that name no user"),
    OPT_BOOL("transport.socket.ssl-enabled", struct server, uses_tls, .def = "off"),
    OPT_BOOL("transport.socket.keepalive", struct server, keeps_alive, .def = "on", .live = true,
             .help = "the kernel asks idle clients whether they are still there"),
    OPT_TIME("transport.socket.keepalive-time", struct server, keepalive_time_s, .def = "20", .live = true),
    OPT_TIME("transport.socket.keepalive-interval", struct server, keepalive_interval_s, .def = "2", .live = true),
    OPT_U32("transport.socket.keepalive-count", struct server, keepalive_count, .def = "9", .live = true),
    OPT_TIME(
        "transport.tcp-user-timeout", struct server, user_timeout_s, .def = "42", .max = 1013, .live = true,
        .help = "a client whose host acknowledges nothing for this long is gone, and its locks; 0: the kernel decides"),
    OPT_IGNORED("event-threads", .help = "one thread serves all connections"),
    OPT_IGNORED("tcp-window-size", .help = "the kernel sizes windows by itself"),
    OPT_IGNORED("non-blocking-io", .help = "it always is"),
    OPT_IGNORED("verify-volfile-checksum", .help = "clients check volume files by themselves"),
    OPT_IGNORED("config-directory", .aliases = { "conf-dir" }),
    OPT_IGNORED("statedump-path", .help = "mortarfs has an option for it"),
    OPT_IGNORED("trace", .help = "use log level TRACE"),
    OPT_IGNORED("transport.*"),
    OPT_END,
};

static bool wants_unix(const struct server *s)
{
    return s->listen_path || strncmp(s->transport_type, "unix", 4) == 0 ||
           (s->family && strcmp(s->family, "unix") == 0);
}

static bool is_known_transport(const char *type)
{
    static const char *const known[] = { "tcp", "socket", "unix", "tcp/server", "socket/server", "unix/server", "rpc" };

    for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
        if (strcmp(type, known[i]) == 0)
            return true;
    }
    return false;
}

static int server_init(struct translator *me, struct error *err)
{
    struct server *s = me->state;

    s->me = me;
    list_init(&s->connections);
    waitq_init(&s->ended);
    s->groups = groups_cache_new();
    if (!s->groups)
        return error_set(err, -ENOMEM, "section \"%s\": no memory", me->name);
    if (!is_known_transport(s->transport_type))
        return error_set(err, -EINVAL, "section \"%s\": transport-type \"%s\" is not available; use tcp or unix",
                         me->name, s->transport_type);
    if (s->uses_tls)
        return error_set(err, -EINVAL, "section \"%s\": TLS is not available yet; set \"%s off\"", me->name,
                         "option transport.socket.ssl-enabled");
    if (wants_unix(s) && !s->listen_path)
        return error_set(err, -EINVAL, "section \"%s\" needs \"option transport.socket.listen-path PATH\"", me->name);
    inode_table_set_limit(me->graph, s->inode_limit);
    return 0;
}

static void server_fini(struct translator *me)
{
    struct server *s = me->state;

    groups_cache_free(s->groups);
    interest_done(s);
}

/* The graph keeps what it needs; these only have to be known. */
static int server_any_option(struct translator *me, const char *key, const char *value, struct error *err)
{
    return 0;
}

/* ---- life ---- */

static int listen_tcp(struct server *s, uint16_t port, accept_fn fn, struct listener **ret, struct error *err)
{
    struct address a = { .family = ADDRESS_TCP, .port = port };

    if (s->bind_address)
        strncpy(a.host, s->bind_address, sizeof(a.host) - 1);
    int r = listener_open(s->me->env, &a, (int)s->backlog, fn, s, ret);
    if (r < 0)
        return error_set(err, r, "section \"%s\": cannot listen at %s port %u: %s", s->me->name,
                         a.host[0] ? a.host : "any address,", port, strerror(-r));
    return 0;
}

static int listen_unix(struct server *s, struct error *err)
{
    struct address a = { .family = ADDRESS_UNIX };

    if (strlen(s->listen_path) >= sizeof(a.path))
        return error_set(err, -ENAMETOOLONG, "section \"%s\": the path %s is too long for a unix socket", s->me->name,
                         s->listen_path);
    memcpy(a.path, s->listen_path, strlen(s->listen_path));
    int r = listener_open(s->me->env, &a, (int)s->backlog, connection_accept, s, &s->local);
    if (r < 0)
        return error_set(err, r, "section \"%s\": cannot listen at %s: %s", s->me->name, s->listen_path, strerror(-r));
    return 0;
}

static void close_listeners(struct server *s)
{
    listener_close(s->tcp);
    listener_close(s->local);
    listener_close(s->standalone);
    s->tcp = s->local = s->standalone = NULL;
}

static FIBER int server_start(struct translator *me, struct error *err)
{
    struct server *s = me->state;
    bool only_unix = wants_unix(s) && !dict_has(me->options, "transport.socket.listen-port") &&
                     !dict_has(me->options, "listen-port");
    int r = 0;

    if (wants_unix(s))
        r = listen_unix(s, err);
    if (r == 0 && !only_unix)
        r = listen_tcp(s, (uint16_t)s->port, connection_accept, &s->tcp, err);
    if (r == 0 && s->standalone_port)
        r = listen_tcp(s, (uint16_t)s->standalone_port, connection_accept_standalone, &s->standalone, err);
    if (r < 0) {
        close_listeners(s);
        return r;
    }
    TLOG(me, LOG_INFO, "listening", "port=%u path=%s standalone-port=%u", s->tcp ? listener_port(s->tcp) : 0,
         s->local ? s->listen_path : "-", s->standalone_port);
    return 0;
}

static FIBER void server_stop(struct translator *me)
{
    struct server *s = me->state;
    struct connection *c;

    close_listeners(s);
    list_for_each (c, &s->connections, node)
        rpc_peer_disconnect(c->peer, -ESHUTDOWN);
    while (!list_empty(&s->connections))
        (void)waitq_wait(&s->ended, NULL); /* woken by the end of each connection */
    timer_stop(&s->silence);
}

static void check_again(struct server *s)
{
    struct connection *c;

    list_for_each (c, &s->connections, node) {
        bool is_trusted;
        struct auth_question q = { .options = s->me->options,
                                   .host = c->host,
                                   .port = c->port,
                                   .username = c->username,
                                   .password = c->password,
                                   .subdir = c->subdir,
                                   .allows_insecure = s->allows_insecure,
                                   .is_strict = s->is_strict,
                                   .hosts = c->hosts };
        if (!c->client)
            continue;
        q.brick = c->bound->name;
        if (auth_check(&q, &is_trusted))
            continue;
        TLOG(s->me, LOG_INFO, "client-refused", "client=%s reason=\"the auth options changed\"", c->client->name);
        rpc_peer_disconnect(c->peer, -EACCES);
    }
}

static void server_reconfigured(struct translator *me)
{
    struct server *s = me->state;
    struct connection *c;

    inode_table_set_limit(me->graph, s->inode_limit);
    list_for_each (c, &s->connections, node)
        c->peer->incoming_limit = s->outstanding_limit;
    silence_reconfigured(s);
    if (s->has_dynamic_auth)
        check_again(s);
}

static void server_notify(struct translator *me, unsigned child, const struct event *event)
{
    struct server *s = me->state;

    if (event->kind == EVENT_CHILD_UP || event->kind == EVENT_CHILD_DOWN)
        s->is_child_up = event->kind == EVENT_CHILD_UP;
    upcall_send(s, event);
    notify_parents(me, event);
}

static void server_dump(struct translator *me, struct dump *out)
{
    struct server *s = me->state;
    struct connection *c;
    unsigned number = 0;
    char key[64];

    dump_printf(out, "accepted", "%llu", (unsigned long long)s->accepted);
    dump_printf(out, "refused", "%llu", (unsigned long long)s->refused);
    dump_printf(out, "requests", "%llu", (unsigned long long)s->requests);
    dump_printf(out, "invalidations", "%llu", (unsigned long long)s->invalidations);
    dump_printf(out, "invalidations-late", "%llu", (unsigned long long)s->invalidations_late);
    list_for_each (c, &s->connections, node) {
        snprintf(key, sizeof(key), "conn.%u", number++);
        dump_printf(out, key, "%s:%u client=%s section=%s in-flight=%u queued-bytes=%zu", c->host, c->port,
                    c->client ? c->client->uid : "-", c->bound ? c->bound->name : "-", c->in_flight,
                    c->peer->queued_bytes);
    }
}

const struct translator_class server_class = {
    .type = "protocol/server",
    .state_size = sizeof(struct server),
    .options = server_options,
    .children_min = 1,
    .uses_inode_ctx = true,
    .inode_forget = interest_forget,
    .init = server_init,
    .fini = server_fini,
    .any_option = server_any_option,
    .start = server_start,
    .stop = server_stop,
    .reconfigured = server_reconfigured,
    .notify = server_notify,
    .dump = server_dump,
};
