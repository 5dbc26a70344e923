/* What a client asks before it works: docs/protocol.md "Life cycle of connections". */
#include "core/mem.h"
#include "protocol/server/server_internal.h"
#include "rpc/handshake.h"
#include "rpc/invalidate.h"
#include "rpc/rpcgen_bridge.h"
#include <stdarg.h>
#include <stdio.h>
#include <strings.h>

#define FOPS_VERSION_TEXT "1298437" /* the fop program's number, as SETVOLUME carries it */
#define DICT_BYTES_MAX    (1024 * 1024)
#define SUBDIR_DEPTH_MAX  1024

static void reply_common(struct rpc_incoming *in)
{
    struct wire_common_rsp rsp = { 0 };
    struct xdr_out o;

    rpc_reply_begin(in, &o, 64);
    RPCGEN_PUT(&o, wire_common_rsp, &rsp);
    rpc_reply_send(in, &o);
}

/* ---- version list ---- */

static void reply_programs(struct connection *c, struct rpc_incoming *in)
{
    struct wire_program mortar = { .name = "Mortar", .prognum = PROGRAM_MORTAR, .progver = MORTAR_PROGRAM_VERSION };
    struct wire_program fops = {
        .name = "GlusterFS 4.x v1", .prognum = PROGRAM_FOPS, .progver = FOPS_VERSION, .next = &mortar
    };
    struct wire_program portmap = { .name = "Gluster Portmap", .prognum = PROGRAM_PORTMAP, .progver = PORTMAP_VERSION };
    struct wire_program handshake = { .name = "GlusterFS Handshake",
                                      .prognum = PROGRAM_HANDSHAKE,
                                      .progver = HANDSHAKE_VERSION,
                                      .next = c->is_standalone ? &portmap : &fops };
    struct wire_program dump = {
        .name = "GF-DUMP", .prognum = PROGRAM_DUMP, .progver = DUMP_VERSION, .next = &handshake
    };
    struct wire_dump_rsp rsp = { .programs = &dump };
    struct xdr_out o;

    rpc_reply_begin(in, &o, 512);
    RPCGEN_PUT(&o, wire_dump_rsp, &rsp);
    rpc_reply_send(in, &o);
}

void handshake_dump(struct connection *c, struct rpc_incoming *in)
{
    if (in->head.procedure == DUMP_DUMP)
        reply_programs(c, in);
    else if (in->head.procedure == DUMP_NULL || in->head.procedure == DUMP_PING)
        reply_common(in);
    else
        rpc_reply_error(in, RPC_ACCEPT_NO_PROCEDURE);
}

/* ---- port map of a brick that stands alone ---- */

void handshake_portmap(struct connection *c, struct rpc_incoming *in)
{
    struct server *s = c->s;
    struct wire_portbybrick_rsp rsp = { .op_ret = -1 };
    struct xdr_out o;

    if (in->head.procedure != PORTMAP_PORTBYBRICK) {
        rpc_reply_error(in, RPC_ACCEPT_NO_PROCEDURE);
        return;
    }
    const char *brick = xdr_get_string(&in->body, FOP_NAME_MAX);
    if (in->body.failed) {
        rpc_reply_error(in, RPC_ACCEPT_GARBAGE);
        return;
    }
    struct translator *t = graph_find(s->me->graph, brick);
    if (t && t != s->me && s->tcp)
        rsp = (struct wire_portbybrick_rsp) { .port = listener_port(s->tcp) };
    rpc_reply_begin(in, &o, 64);
    RPCGEN_PUT(&o, wire_portbybrick_rsp, &rsp);
    rpc_reply_send(in, &o);
}

/* ---- SETVOLUME ---- */

struct setvolume {
    struct connection *c;
    struct dict *d;      /* what the client said */
    struct dict *answer; /* what it is told */
    const char *brick, *uid;
};

/* Says why not; the errno for the client. */
static PRINTF_LIKE(3, 4) int refuse(struct setvolume *v, int code, const char *fmt, ...)
{
    char text[256];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    (void)dict_set_str(v->answer, "ERROR", text); /* the errno says it as well */
    return code;
}

static int check_words(struct setvolume *v)
{
    const char *version, *volume_id, *ours = v->c->s->me->graph->volume_id;

    if (dict_get_str(v->d, "remote-subvolume", &v->brick) < 0)
        return refuse(v, -EINVAL, "No remote-subvolume option specified");
    if (dict_get_str(v->d, "process-uuid", &v->uid) < 0)
        return refuse(v, -EINVAL, "UUID not specified");
    if (dict_get_str(v->d, "fops-version", &version) < 0 || strcmp(version, FOPS_VERSION_TEXT) != 0)
        return refuse(v, -EINVAL, "version mismatch: this brick speaks program %s only", FOPS_VERSION_TEXT);
    if (ours && dict_get_str(v->d, "volume-id", &volume_id) == 0 && strcasecmp(volume_id, ours) != 0)
        return refuse(v, -EINVAL, "Volume-ID different, possible case of same brick re-used in another volume");
    v->c->bound = graph_find(v->c->s->me->graph, v->brick);
    if (!v->c->bound || v->c->bound == v->c->s->me) {
        v->c->bound = NULL;
        return refuse(v, -ENOENT, "Brick not found");
    }
    return 0;
}

static char *copy_of(const struct dict *d, const char *key)
{
    const char *text;

    return dict_get_str(d, key, &text) == 0 ? mem_strdup(text) : NULL;
}

static FIBER int check_auth(struct setvolume *v)
{
    struct connection *c = v->c;
    struct server *s = c->s;

    c->username = copy_of(v->d, "username");
    c->password = copy_of(v->d, "password");
    c->subdir = copy_of(v->d, "subdir-mount");
    dict_unref(take(c->hosts));
    if (auth_look_up(s, v->brick, &c->hosts) < 0)
        return refuse(v, -ENOMEM, "no memory");
    struct auth_question q = { .options = s->me->options,
                               .brick = v->brick,
                               .host = c->host,
                               .port = c->port,
                               .username = c->username,
                               .password = c->password,
                               .subdir = c->subdir,
                               .allows_insecure = s->allows_insecure,
                               .is_strict = s->is_strict,
                               .hosts = c->hosts };
    if (auth_check(&q, &c->is_trusted))
        return 0;
    s->refused++;
    return refuse(v, -EACCES, "Authentication failed");
}

/* From the root down to the directory a client wants as its root. */
static FIBER int find_subdir(struct connection *c)
{
    SCOPED_FREE char *path = mem_strdup(c->subdir);
    SCOPED(reply_free) struct reply *r = reply_new();
    struct gfid at = gfid_root;
    struct call call;
    char *save;
    int result = 0, depth = 0;

    if (!path || !r)
        return -ENOMEM;
    call_init(&call, c->s->me->graph);
    for (char *name = strtok_r(path, "/", &save); name && result >= 0; name = strtok_r(NULL, "/", &save)) {
        SCOPED(inode_unref) struct inode *parent = inode_table_get(c->s->me->graph, &at, S_IFDIR);
        struct request q = { .op = OP_LOOKUP, .parent = parent, .name = name };
        if (!parent || ++depth > SUBDIR_DEPTH_MAX || strcmp(name, "..") == 0) {
            result = parent ? -EINVAL : -ENOMEM;
            break;
        }
        result = translator_call(c->bound, &call, &q, r);
        if (result >= 0 && iatt_type(&r->stat) != S_IFDIR)
            result = -ENOTDIR;
        at = r->stat.gfid;
        reply_done(r);
    }
    call_done(&call);
    if (result >= 0 && !gfid_is_root(&at))
        c->subdir_gfid = at;
    return result < 0 ? result : 0;
}

static int make_client(struct setvolume *v)
{
    struct connection *c = v->c;
    char name[96];
    int64_t opversion = 0;

    snprintf(name, sizeof(name), "%s:%u", c->host, c->port);
    c->client = client_new(c->s->me->graph, v->uid, name);
    if (!c->client)
        return refuse(v, -ENOMEM, "no memory");
    (void)dict_get_int(v->d, "opversion", &opversion); /* may be absent */
    c->client->opversion = (uint32_t)opversion;
    c->client->is_trusted = c->is_trusted;
    c->client->edge = c;
    c->is_caching = dict_has(v->d, INVALIDATE_KEY);
    c->s->caching_count += c->is_caching;
    c->peer->reader.max_bytes = RECORD_MAX_BYTES;
    return 0;
}

static FIBER int set_volume(struct setvolume *v)
{
    struct connection *c = v->c;

    if (c->is_standalone)
        return refuse(v, -EINVAL, "this port hands out volume files only");
    if (c->client)
        return refuse(v, -EALREADY, "SETVOLUME came twice on one connection");
    int r = check_words(v);
    if (r == 0)
        r = check_auth(v);
    if (r == 0 && !c->s->is_child_up)
        r = refuse(v, -EAGAIN, "Not received child_up for this xlator");
    if (r == 0 && c->subdir && c->subdir[0]) {
        r = find_subdir(c);
        if (r < 0)
            r = refuse(v, -ENOENT, "subdirectory for mount \"%.128s\" is not found", c->subdir);
    }
    if (r == 0 && c->is_gone)
        r = -ENOTCONN;
    return r < 0 ? r : make_client(v);
}

static int fill_answer(struct setvolume *v)
{
    struct server *s = v->c->s;
    char text[64];
    int r = dict_set_str(v->answer, "ERROR", "Success");

    if (r == 0)
        r = dict_set_str(v->answer, "clnt-lk-version", "0");
    if (r == 0)
        r = dict_set_str(v->answer, "child_up", "1");
    if (r == 0)
        r = dict_set_str(v->answer, "transport-ptr", "1");
    if (r == 0 && s->me->graph->volume_id)
        r = dict_set_str(v->answer, "volume-id", s->me->graph->volume_id);
    snprintf(text, sizeof(text), "%.40s-%d", env_host_name(s->me->env), env_pid(s->me->env));
    return r < 0 ? r : dict_set_str(v->answer, "process-uuid", text);
}

static void forget_words(struct connection *c)
{
    mem_free(take(c->username));
    mem_free(take(c->password));
    mem_free(take(c->subdir));
    c->bound = NULL;
}

static FIBER void answer_setvolume(struct connection *c, struct rpc_incoming *in)
{
    SCOPED(dict_unref) struct dict *d = NULL;
    SCOPED(dict_unref) struct dict *answer = dict_new();
    struct setvolume v = { .c = c, .answer = answer };
    struct xdr_out o;

    xdr_get_odict_opaque(&in->body, DICT_BYTES_MAX, &d);
    v.d = d;
    int r = !answer ? -ENOMEM : in->body.failed ? refuse(&v, -EINVAL, "the dictionary cannot be read") : set_volume(&v);
    if (r == 0)
        r = fill_answer(&v);
    if (r < 0) {
        const char *why = "";
        (void)dict_get_str(answer, "ERROR", &why); /* stays "" when absent */
        TLOG(c->s->me, LOG_WARNING, "client-refused", "client=%s:%u section=%s err=%s reason=\"%s\"", c->host, c->port,
             v.brick ? v.brick : "-", errno_name(r), why);
        if (!c->client)
            forget_words(c);
    } else {
        TLOG(c->s->me, LOG_INFO, "client-accepted", "client=%s section=%s uid=%s trusted=%d", c->client->name, v.brick,
             v.uid, c->is_trusted);
    }
    rpc_reply_begin(in, &o, 512);
    xdr_put_u32(&o, r < 0 ? (uint32_t)-1 : 0);
    xdr_put_u32(&o, (uint32_t)-r);
    xdr_put_odict_opaque(&o, answer);
    rpc_reply_send(in, &o);
}

/* ---- GETSPEC and the rest ---- */

/* The address at which the client reached us, without the port. */
static void own_address(struct connection *c, char host[static 64])
{
    const char *name = stream_local_name(c->peer->stream), *colon = strrchr(name, ':');
    size_t size = colon ? MIN((size_t)(colon - name), (size_t)63) : 0;

    memcpy(host, name, size);
    host[size] = '\0';
    if (host[0] == '[') { /* "[::1]:24007" */
        memmove(host, host + 1, strlen(host));
        host[strcspn(host, "]")] = '\0';
    }
}

static FIBER void answer_getspec(struct connection *c, struct rpc_incoming *in)
{
    SCOPED_FREE char *text = NULL;
    struct xdr_out o;
    char host[64];

    (void)xdr_get_u32(&in->body); /* flags */
    const char *key = xdr_get_string(&in->body, 1024);
    if (in->body.failed) {
        rpc_reply_error(in, RPC_ACCEPT_GARBAGE);
        return;
    }
    own_address(c, host);
    int r = volfile_for_key(c->s, c->is_standalone, key, host, &text);
    rpc_reply_begin(in, &o, 256);
    xdr_put_u32(&o, r < 0 ? (uint32_t)-1 : (uint32_t)strlen(text));
    xdr_put_u32(&o, (uint32_t)-r);
    xdr_put_string(&o, r < 0 ? "" : text);
    xdr_put_u32(&o, 0);
    rpc_reply_send(in, &o);
}

static void answer_lk_ver(struct rpc_incoming *in)
{
    struct wire_set_lk_ver_req req = { 0 };
    struct xdr_out o;

    if (RPCGEN_GET(&in->body, wire_set_lk_ver_req, &req) < 0) {
        rpc_reply_error(in, RPC_ACCEPT_GARBAGE);
        return;
    }
    struct wire_set_lk_ver_rsp rsp = { .lk_ver = req.lk_ver };
    RPCGEN_FREE(wire_set_lk_ver_req, &req);
    rpc_reply_begin(in, &o, 64);
    RPCGEN_PUT(&o, wire_set_lk_ver_rsp, &rsp);
    rpc_reply_send(in, &o);
}

FIBER void handshake_call(struct connection *c, struct rpc_incoming *in)
{
    switch (in->head.procedure) {
    case HANDSHAKE_NULL:
    case HANDSHAKE_PING: reply_common(in); break;
    case HANDSHAKE_SETVOLUME: answer_setvolume(c, in); break;
    case HANDSHAKE_GETSPEC: answer_getspec(c, in); break;
    case HANDSHAKE_SET_LK_VER: answer_lk_ver(in); break;
    default: rpc_reply_error(in, RPC_ACCEPT_NO_PROCEDURE); break;
    }
}
