/* Connections to mortard: clients of GlusterFS and ours, bricks, the command.
 *
 * A connection over the socket may do everything. Over the network anybody may ask for versions, volume files and ports,
 * as with GlusterFS, and look at volumes; who is on a machine of the cluster gets the trusted volume files.
 */
#include "core/mem.h"
#include "mgmt/daemon_internal.h"
#include "mgmt/links.h"
#include "mgmt/nodes.h"
#include "mgmt/volgen.h"
#include "rpc/handshake.h"
#include "rpc/programs.h"
#include "rpc/rpcgen_bridge.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <xxhash.h>

#define BACKLOG 128

/* ---- answers ---- */

static void answer_common(struct rpc_incoming *in)
{
    struct wire_common_rsp rsp = { 0 };
    struct xdr_out o;

    rpc_reply_begin(in, &o, 64);
    RPCGEN_PUT(&o, wire_common_rsp, &rsp);
    rpc_reply_send(in, &o);
}

static void answer_versions(struct rpc_incoming *in)
{
    struct wire_program mgmt = { .name = "Mortar management", .prognum = PROGRAM_MGMT, .progver = MGMT_VERSION };
    struct wire_program portmap = {
        .name = "Gluster Portmap", .prognum = PROGRAM_PORTMAP, .progver = PORTMAP_VERSION, .next = &mgmt
    };
    struct wire_program handshake = {
        .name = "Gluster Handshake", .prognum = PROGRAM_HANDSHAKE, .progver = HANDSHAKE_VERSION, .next = &portmap
    };
    struct wire_program dump = {
        .name = "GF-DUMP", .prognum = PROGRAM_DUMP, .progver = DUMP_VERSION, .next = &handshake
    };
    struct wire_dump_rsp rsp = { .programs = &dump };
    struct xdr_out o;

    rpc_reply_begin(in, &o, 512);
    RPCGEN_PUT(&o, wire_dump_rsp, &rsp);
    rpc_reply_send(in, &o);
}

/* ---- volume files ---- */

/* The volume of a key "V", "V.tcp", "V.HOST.path"; NULL: none. A volume's name has no dot. */
static struct volume *volume_of_key(const struct mortard *d, const char *key)
{
    char name[VOLUME_NAME_MAX + 1];
    size_t length = strcspn(key, ".");

    if (length > VOLUME_NAME_MAX)
        return NULL;
    memcpy(name, key, length);
    name[length] = '\0';
    return cluster_find_volume(d->cluster, name);
}

static unsigned shared_bricks(const struct volume *v, unsigned brick)
{
    unsigned count = 0;

    for (unsigned i = 0; i < v->brick_count; i++)
        count += gfid_equal(&v->bricks[i].node, &v->bricks[brick].node) && v->bricks[i].fsid == v->bricks[brick].fsid;
    return count;
}

static char *brick_file(const struct mortard *d, const struct volume *v, const char *key)
{
    for (unsigned i = 0; i < v->brick_count; i++) {
        SCOPED_FREE char *id = volgen_brick_id(v, i);
        struct volgen_node node = { d->options->work_folder, shared_bricks(v, i) };

        if (id && strcmp(id, key) == 0)
            return volgen_brick(v, i, &node);
    }
    return NULL;
}

/* The file of a key (docs/management.md "Keys of volume files"): returned; NULL: there is none, or no memory. */
static char *volume_file(const struct mortard *d, const char *key, bool is_trusted)
{
    struct volume *v;
    char *file;

    if (*key == '/')
        key++;
    if (strncmp(key, "shd/", 4) == 0 || strncmp(key, "rebalance/", 10) == 0) {
        v = cluster_find_volume(d->cluster, strchr(key, '/') + 1);
        return !v ? NULL : *key == 's' ? volgen_heal(v) : volgen_rebalance(v);
    }
    v = volume_of_key(d, key);
    if (!v)
        return NULL;
    file = brick_file(d, v, key);
    if (file)
        return file;
    key += strlen(v->name);
    return *key == '\0' || strcmp(key, ".tcp") == 0 ? volgen_client(v, is_trusted) : NULL;
}

/* "host:24007 host:24007 ": where else to ask. */
static char *server_list(const struct mortard *d)
{
    char *list = mem_strdup("");

    for (unsigned i = 0; list && i < d->cluster->node_count; i++) {
        char *longer = mem_printf("%s%s:%u ", list, d->cluster->nodes[i].names[0], CLIENT_PORT_DEFAULT);

        mem_free(list);
        list = longer;
    }
    return list;
}

static void put_servers(struct xdr_out *o, const struct mortard *d)
{
    SCOPED(dict_unref) struct dict *more = dict_new();
    SCOPED_FREE char *list = server_list(d);

    if (more && list && d->cluster->node_count > 1)
        (void)dict_set_str(more, "servers-list", list); /* one less to fall back on */
    xdr_put_odict_opaque(o, more);
}

static void remember_file(struct connection *c, const char *key, const char *text)
{
    char *copy = mem_strdup(key);

    if (!copy)
        return;
    mem_free(c->volume_key);
    c->volume_key = copy;
    c->volume_hash = XXH3_64bits(text, strlen(text));
}

static void answer_getspec(struct connection *c, struct rpc_incoming *in)
{
    const char *key;
    SCOPED_FREE char *text = NULL;
    struct xdr_out o;

    (void)xdr_get_u32(&in->body); /* flags */
    key = xdr_get_string(&in->body, 4096);
    if (in->body.failed) {
        rpc_reply_error(in, RPC_ACCEPT_GARBAGE);
        return;
    }
    text = volume_file(c->d, key, c->is_local || c->is_trusted);
    if (text)
        remember_file(c, key, text);
    rpc_reply_begin(in, &o, 1024);
    xdr_put_u32(&o, text ? (uint32_t)strlen(text) : (uint32_t)-1);
    xdr_put_u32(&o, text ? 0 : ENOENT);
    xdr_put_string(&o, text ? text : "");
    put_servers(&o, c->d);
    rpc_reply_send(in, &o);
}

void server_tell_volume_files(struct mortard *d)
{
    struct connection *c;

    list_for_each (c, &d->connections, node) {
        SCOPED_FREE char *text = NULL;
        struct xdr_out o;

        if (!c->volume_key)
            continue;
        text = volume_file(d, c->volume_key, c->is_local || c->is_trusted);
        if (!text || XXH3_64bits(text, strlen(text)) == c->volume_hash)
            continue;
        c->volume_hash = XXH3_64bits(text, strlen(text)); /* told once; it asks again */
        rpc_oneway_begin(c->peer, &o, PROGRAM_CALLBACK, CALLBACK_VERSION, CALLBACK_FETCHSPEC);
        (void)rpc_peer_send(c->peer, &o); /* if it is gone it asks when it is back */
    }
}

/* ---- ports ---- */

static void answer_portmap(struct connection *c, struct rpc_incoming *in)
{
    struct wire_portbybrick_rsp rsp = { .op_ret = -1, .op_errno = ENOENT };
    struct process *p;
    const char *path;
    struct xdr_out o;

    if (in->head.procedure == PORTMAP_SIGNIN || in->head.procedure == PORTMAP_SIGNOUT ||
        in->head.procedure == PORTMAP_NULL) {
        struct wire_sign_rsp done = { 0 };

        rpc_reply_begin(in, &o, 64);
        RPCGEN_PUT(&o, wire_sign_rsp, &done); /* ports are given by us, so there is nothing to learn */
        rpc_reply_send(in, &o);
        return;
    }
    if (in->head.procedure != PORTMAP_PORTBYBRICK) {
        rpc_reply_error(in, RPC_ACCEPT_NO_PROCEDURE);
        return;
    }
    path = xdr_get_string(&in->body, 4096);
    if (in->body.failed) {
        rpc_reply_error(in, RPC_ACCEPT_GARBAGE);
        return;
    }
    list_for_each (p, &c->d->processes, node) {
        if (p->brick && strcmp(p->brick, path) == 0 && process_look(p))
            rsp = (struct wire_portbybrick_rsp) { .port = p->port };
    }
    rpc_reply_begin(in, &o, 64);
    RPCGEN_PUT(&o, wire_portbybrick_rsp, &rsp);
    rpc_reply_send(in, &o);
}

/* ---- commands ---- */

static void send_json(struct rpc_incoming *in, const json_t *json)
{
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    struct xdr_out o;

    rpc_reply_begin(in, &o, 1024);
    xdr_put_opaque(&o, text ? text : "", text ? strlen(text) : 0);
    rpc_reply_send(in, &o);
    free(text);
}

static FIBER void run_command(void *arg)
{
    struct rpc_incoming *in = arg;
    struct connection *c = in->arg;
    size_t size_bytes;
    const void *text = xdr_get_opaque(&in->body, JSON_MAX_BYTES, &size_bytes);
    json_t *request = in->body.failed ? NULL : json_loadb(text, size_bytes, 0, NULL);
    bool is_question = in->head.procedure == MGMT_ASK;
    json_t *answer = !request      ? NULL
                     : is_question ? node_answer(c->d, request, c->is_proven, c->host)
                                   : command_run(c->d, request, c->is_local);

    if (request)
        send_json(in, answer);
    else
        rpc_reply_error(in, RPC_ACCEPT_GARBAGE);
    json_decref(request);
    json_decref(answer);
    c->under_way--;
    (void)waitq_wake_all(&c->d->connection_ended, 0); /* on_closed and server_close wait */
}

static void on_mgmt(struct connection *c, struct rpc_incoming *in)
{
    in->arg = c;
    switch (in->head.version == MGMT_VERSION ? in->head.procedure : UINT32_MAX) {
    case MGMT_HELLO: link_hello(c, in); return;
    case MGMT_PROVE: link_prove(c, in); return;
    case MGMT_MESSAGE: link_message(c, in); return;
    case MGMT_COMMAND:
    case MGMT_ASK: break;
    default: rpc_reply_error(in, RPC_ACCEPT_NO_PROCEDURE); return;
    }
    if (fiber_spawn(c->d->env, "command", run_command, in) < 0) {
        rpc_reply_error(in, RPC_ACCEPT_SYSTEM);
        return;
    }
    c->under_way++;
}

/* ---- connections ---- */

static void on_call(void *arg, struct rpc_incoming *in)
{
    struct connection *c = arg;

    switch (in->head.program) {
    case PROGRAM_DUMP:
        if (in->head.procedure == DUMP_DUMP)
            answer_versions(in);
        else
            answer_common(in);
        break;
    case PROGRAM_HANDSHAKE:
        if (in->head.procedure == HANDSHAKE_GETSPEC)
            answer_getspec(c, in);
        else if (in->head.procedure == HANDSHAKE_NULL || in->head.procedure == HANDSHAKE_PING)
            answer_common(in);
        else
            rpc_reply_error(in, RPC_ACCEPT_NO_PROCEDURE);
        break;
    case PROGRAM_PORTMAP: answer_portmap(c, in); break;
    case PROGRAM_MGMT: on_mgmt(c, in); break;
    default: rpc_reply_error(in, RPC_ACCEPT_NO_PROGRAM);
    }
}

static FIBER void on_closed(void *arg, int err)
{
    struct connection *c = arg;
    struct mortard *d = c->d;

    (void)err;
    while (c->under_way > 0)
        (void)waitq_wait(&d->connection_ended, NULL);
    list_del(&c->node);
    rpc_peer_unref(c->peer);
    mem_free(c->volume_key);
    mem_free(c);
    (void)waitq_wake_all(&d->connection_ended, 0); /* server_close waits */
}

/* Is it the address of a machine of the cluster? Machines known by name only are not found by it. */
static bool is_member_address(const struct mortard *d, const char *host)
{
    return strcmp(host, "127.0.0.1") == 0 || strcmp(host, "::1") == 0 || cluster_find_host(d->cluster, host) != NULL;
}

static struct connection *on_connection(struct mortard *d, struct stream *stream, bool is_local)
{
    const struct rpc_handlers handlers = { .on_call = on_call, .on_closed = on_closed };
    struct connection *c = NEW(struct connection);
    uint16_t port;

    if (!c || d->is_stopping) {
        mem_free(c);
        stream_close(stream);
        return NULL;
    }
    c->d = d;
    c->is_local = is_local;
    c->is_trusted = is_local || (stream_peer_address(stream, c->host, &port) && is_member_address(d, c->host));
    c->peer = rpc_peer_new(d->env, stream, &handlers, c);
    if (!c->peer) {
        stream_close(stream);
        mem_free(c);
        return NULL;
    }
    c->peer->reader.max_bytes = is_local ? RECORD_MAX_BYTES : RECORD_MAX_BYTES_UNKNOWN;
    list_add_tail(&d->connections, &c->node);
    return c;
}

struct connection *connection_new(struct mortard *d, struct stream *stream)
{
    return on_connection(d, stream, false);
}

static void on_tcp(void *arg, struct stream *stream)
{
    (void)on_connection(arg, stream, false); /* NULL: the other side sees that it is closed */
}

static void on_socket(void *arg, struct stream *stream)
{
    (void)on_connection(arg, stream, true); /* as above */
}

FIBER int server_open(struct mortard *d, struct error *err)
{
    struct address *at = NEW(struct address);
    int r;

    if (!at)
        return -ENOMEM;
    at->family = ADDRESS_TCP;
    at->port = d->options->port;
    (void)snprintf(at->host, sizeof(at->host), "%s", d->options->bind_address);
    r = listener_open(d->env, at, BACKLOG, on_tcp, d, &d->tcp);
    if (r < 0)
        (void)error_set(err, r, "port %u cannot be listened at: %s%s", d->options->port, strerror(-r),
                        r == -EADDRINUSE ? " (is another management daemon running?)" : "");
    memset(at, 0, sizeof(*at));
    at->family = ADDRESS_UNIX;
    (void)snprintf(at->path, sizeof(at->path), "%s", d->options->socket_path);
    if (r == 0) {
        mode_t old = umask(0177); /* root alone */

        r = listener_open(d->env, at, BACKLOG, on_socket, d, &d->local);
        (void)umask(old);
        if (r < 0)
            (void)error_set(err, r, "%s cannot be listened at: %s", d->options->socket_path, strerror(-r));
    }
    mem_free(at);
    return r;
}

FIBER void server_close(struct mortard *d)
{
    struct connection *c;

    listener_close(take(d->tcp));
    listener_close(take(d->local));
    list_for_each (c, &d->connections, node)
        rpc_peer_disconnect(c->peer, 0);
    links_look(d); /* it ends */
    while (!list_empty(&d->connections) || d->is_linking)
        (void)waitq_wait(&d->connection_ended, NULL);
}
