#include "mortarfs/volserver.h"
#include "core/mem.h"
#include "rpc/handshake.h"
#include "rpc/peer.h"
#include "rpc/programs.h"
#include "rpc/rpcgen_bridge.h"
#include <stdio.h>
#include <stdlib.h>

#define SERVERS_MAX       (CMDLINE_SERVERS_MAX + 256)
#define DEFAULT_PORT      24007
#define ANSWER_MS         30000
#define RETRY_MS          3000 /* between tries to get a lost connection back, as GlusterFS */
#define GETSPEC_FOR_MOUNT 1    /* flags: we want the list of servers */
#define OPVERSION_MAX     "100000"

struct server {
    char *host;
    uint16_t port;
};

struct volserver {
    struct env *env;
    const struct cmdline *c;
    void (*changed)(void *arg);
    void *arg;
    struct server servers[SERVERS_MAX];
    unsigned server_count, current;
    bool is_unix, has_fetched, is_stopping, is_reconnecting;
    struct rpc_peer *peer;
    bool is_closed;
    struct waitq changes;
    struct scope life;
};

static int add_server(struct volserver *v, const char *host, size_t host_len, uint16_t port)
{
    char *copy;

    for (unsigned i = 0; i < v->server_count; i++) {
        const struct server *s = &v->servers[i];

        if (strlen(s->host) == host_len && strncmp(s->host, host, host_len) == 0 && s->port == port)
            return 0;
    }
    if (v->server_count == SERVERS_MAX)
        return -E2BIG;
    copy = mem_strndup(host, host_len);
    if (!copy)
        return -ENOMEM;
    v->servers[v->server_count++] = (struct server) { copy, port };
    return 0;
}

struct volserver *volserver_new(struct env *env, const struct cmdline *c, void (*changed)(void *arg), void *arg)
{
    struct volserver *v = NEW(struct volserver);

    if (!v)
        return NULL;
    v->env = env;
    v->c = c;
    v->changed = changed;
    v->arg = arg;
    v->is_unix = c->server_transport && strcmp(c->server_transport, "unix") == 0;
    v->is_closed = true;
    waitq_init(&v->changes);
    scope_init(&v->life, 0);
    for (unsigned i = 0; i < c->server_count; i++) {
        if (add_server(v, c->servers[i], strlen(c->servers[i]), (uint16_t)c->server_port) < 0) {
            mem_free(v);
            return NULL;
        }
    }
    return v;
}

/* ---- the connection ---- */

static void on_call(void *arg, struct rpc_incoming *in)
{
    struct volserver *v = arg;

    if (in->head.program == PROGRAM_CALLBACK && in->head.procedure == CALLBACK_FETCHSPEC && v->has_fetched)
        v->changed(v->arg);
    rpc_incoming_free(in);
}

static FIBER int ensure_connected(struct volserver *v, struct scope *scope);

/* A lost connection is made again in the background, with any server; what changed meanwhile is then fetched. */
static FIBER void reconnect(void *arg)
{
    struct volserver *v = arg;

    while (!v->is_stopping && ensure_connected(v, &v->life) < 0) {
        v->current++;
        if (v->current % v->server_count == 0 || v->server_count == 1)
            (void)fiber_sleep_ms(&v->life, RETRY_MS);
    }
    v->is_reconnecting = false;
    (void)waitq_wake_all(&v->changes, 0);
    if (!v->is_stopping)
        v->changed(v->arg);
}

static FIBER void on_closed(void *arg, int err)
{
    struct volserver *v = arg;

    v->is_closed = true;
    (void)waitq_wake_all(&v->changes, 0);
    if (!v->has_fetched || v->is_stopping || v->is_reconnecting)
        return;
    LOG(env_log(v->env), LOG_INFO, "volfile-server", "lost", "server=%s err=%s",
        v->servers[v->current % v->server_count].host, errno_name(err));
    v->current++;
    v->is_reconnecting = fiber_spawn(v->env, "volfile-server", reconnect, v) == 0;
}

static FIBER void drop_peer(struct volserver *v)
{
    if (!v->peer)
        return;
    rpc_peer_disconnect(v->peer, 0);
    while (!v->is_closed)
        (void)waitq_wait(&v->changes, NULL);
    rpc_peer_unref(take(v->peer));
}

static FIBER int ensure_connected(struct volserver *v, struct scope *scope)
{
    const struct rpc_handlers handlers = { .on_call = on_call, .on_closed = on_closed };
    const struct stream_options options = { .keepalive_time_s = 20, .keepalive_interval_s = 2, .keepalive_count = 9 };
    const struct server *s = &v->servers[v->current % v->server_count];
    struct address *to;
    struct stream *stream = NULL;
    int r;

    if (v->peer && !v->is_closed)
        return 0;
    drop_peer(v);
    to = NEW(struct address);
    if (!to)
        return -ENOMEM;
    to->family = v->is_unix ? ADDRESS_UNIX : ADDRESS_TCP;
    to->bind_privileged = true;
    to->port = s->port ? s->port : DEFAULT_PORT;
    (void)snprintf(v->is_unix ? to->path : to->host, v->is_unix ? sizeof(to->path) : sizeof(to->host), "%s", s->host);
    r = stream_connect(v->env, to, &options, scope, &stream);
    mem_free(to);
    if (r < 0)
        return r;
    v->peer = rpc_peer_new(v->env, stream, &handlers, v);
    if (!v->peer) {
        stream_close(stream);
        return -ENOMEM;
    }
    v->is_closed = false;
    v->peer->reader.max_bytes = RECORD_MAX_BYTES;
    return 0;
}

FIBER void volserver_free(struct volserver *v)
{
    if (!v)
        return;
    v->is_stopping = true;
    scope_cancel(&v->life);
    while (v->is_reconnecting)
        (void)waitq_wait(&v->changes, NULL);
    drop_peer(v);
    scope_done(&v->life);
    for (unsigned i = 0; i < v->server_count; i++)
        mem_free(v->servers[i].host);
    mem_free(v);
}

/* ---- asking ---- */

static int request_xdata(const struct volserver *v, struct dict **ret_xdata)
{
    SCOPED(dict_unref) struct dict *d = dict_new();
    int r = d ? dict_set_str(d, "min-op-version", "1") : -ENOMEM;

    if (r == 0)
        r = dict_set_str(d, "max-op-version", OPVERSION_MAX);
    if (r == 0 && v->c->brick_name)
        r = dict_set_str(d, "brick_name", v->c->brick_name);
    if (r == 0)
        *ret_xdata = take(d);
    return r;
}

/* "host:port host:port " of the other members of the pool. */
static void note_servers(struct volserver *v, char *data, size_t bytes)
{
    SCOPED(dict_unref) struct dict *d = NULL;
    const char *list;

    if (v->is_unix || odict_parse((uint8_t *)data, bytes, &d) < 0 ||
        (dict_get_str(d, "servers-list", &list) < 0 && dict_get_str(d, "cluster.brick-vol-servers", &list) < 0))
        return;
    while (*(list += strspn(list, " "))) {
        size_t len = strcspn(list, " ");
        const char *colon = memrchr(list, ':', len);
        unsigned long port = colon ? strtoul(colon + 1, NULL, 10) : 0;

        if (colon && port > 0 && port <= UINT16_MAX)
            (void)add_server(v, list, (size_t)(colon - list), (uint16_t)port); /* one less to fall back on */
        list += len;
    }
}

static int put_request(struct volserver *v, struct xdr_out *o)
{
    SCOPED(dict_unref) struct dict *xdata = NULL;
    int r = request_xdata(v, &xdata);

    if (r < 0)
        return r;
    xdr_put_u32(o, v->c->mount_point ? GETSPEC_FOR_MOUNT : 0);
    xdr_put_string(o, v->c->volfile_id);
    xdr_put_odict_opaque(o, xdata);
    return 0;
}

static int explain(const struct volserver *v, int op_errno, struct error *err)
{
    const char *host = v->servers[v->current % v->server_count].host;

    switch (op_errno) {
    case ENOENT: return error_set(err, -ENOENT, "%s knows no volume \"%s\"", host, v->c->volfile_id);
    case EOPNOTSUPP:
        return error_set(err, -EOPNOTSUPP,
                         "volume \"%s\" of %s uses options newer than op-version %s, which this client "
                         "understands",
                         v->c->volfile_id, host, OPVERSION_MAX);
    default:
        return error_set(err, op_errno > 0 && op_errno < 4096 ? -op_errno : -EIO,
                         "%s did not give the volume file of \"%s\": %s", host, v->c->volfile_id, strerror(op_errno));
    }
}

static int take_answer(struct volserver *v, struct rpc_call *c, char **ret_text, size_t *ret_bytes, struct error *err)
{
    struct wire_getspec_rsp *rsp = NEW(struct wire_getspec_rsp);
    int r = rsp ? RPCGEN_GET(&c->body, wire_getspec_rsp, rsp) : -ENOMEM;

    if (r < 0) {
        mem_free(rsp);
        return error_set(err, r, "the answer of %s cannot be read", v->servers[v->current % v->server_count].host);
    }
    if (rsp->op_ret < 0) {
        r = explain(v, rsp->op_errno, err);
    } else {
        *ret_text = mem_strdup(rsp->spec);
        *ret_bytes = strlen(rsp->spec);
        r = *ret_text ? 0 : -ENOMEM;
        note_servers(v, rsp->xdata.xdata_val, rsp->xdata.xdata_len);
    }
    RPCGEN_FREE(wire_getspec_rsp, rsp);
    mem_free(rsp);
    return r;
}

static FIBER int ask_server(struct volserver *v, char **ret_text, size_t *ret_bytes, struct error *err)
{
    const char *host = v->servers[v->current % v->server_count].host;
    struct rpc_call *c = NEW(struct rpc_call);
    struct xdr_out o;
    struct scope scope;
    int r;

    if (!c)
        return -ENOMEM;
    scope_init(&scope, env_deadline_ms(v->env, ANSWER_MS));
    r = ensure_connected(v, &scope);
    if (r < 0) {
        (void)error_set(err, r, "volume file server %s: %s", host, strerror(-r));
    } else {
        rpc_call_begin(v->peer, c, &o, PROGRAM_HANDSHAKE, HANDSHAKE_VERSION, HANDSHAKE_GETSPEC, NULL);
        r = put_request(v, &o);
        r = r < 0 ? r : rpc_peer_call(v->peer, c, &o, &scope);
        if (r < 0)
            (void)error_set(err, r, "volume file server %s does not answer: %s", host, strerror(-r));
        else
            r = take_answer(v, c, ret_text, ret_bytes, err);
        rpc_call_done(c);
    }
    scope_done(&scope);
    mem_free(c);
    return r;
}

FIBER int volserver_fetch(struct volserver *v, char **ret_text, size_t *ret_bytes, struct error *err)
{
    unsigned tries = v->server_count * (v->has_fetched ? 1 : MAX(v->c->fetch_attempts, 1u));
    int r = -EINVAL;

    for (unsigned i = 0; i < tries; i++) {
        r = ask_server(v, ret_text, ret_bytes, err);
        if (r == 0) {
            v->has_fetched = true;
            return 0;
        }
        LOG(env_log(v->env), LOG_WARNING, "volfile-server", "fetch-failed", "server=%s err=%s",
            v->servers[v->current % v->server_count].host, errno_name(r));
        drop_peer(v);
        v->current++;
    }
    return r;
}
