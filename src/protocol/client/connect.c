/* From nothing to a brick that answers: docs/protocol.md "Life cycle of connections". */
#include "core/mem.h"
#include "protocol/client/client_internal.h"
#include "rpc/invalidate.h"
#include <stdio.h>
#include <stdlib.h>

#define GFS_ID           0xcaed /* what clients send in a version list request */
#define ATTEMPT_MS       30000  /* from connecting to the answer to SETVOLUME */
#define PROGRAMS_MAX     256    /* of a version list; GlusterFS's daemon has 8 */
#define CLIENT_OPVERSION "100000"
#define CLIENT_VERSION   "10.3" /* the GlusterFS release whose wire we speak */

/* Pauses before tries, after a failure or a lost connection. GlusterFS waits 3 s always; ours stay well below the
 * reclaim-grace of a brick that starts, so that locks are replayed in time. */
static const uint32_t pauses_ms[] = { 0, 200, 500, 1000 };

struct programs {
    bool has_fops, has_portmap, has_mortar;
};

/* ---- one connection ---- */

static FIBER void on_closed(void *arg, int err)
{
    struct remote *s = arg;

    s->is_closed = true;
    waitq_wake_all(&s->changes, 0);
}

static void fill_address(const struct remote *s, uint16_t port, struct address *a)
{
    *a = (struct address) { .family = s->connect_path ? ADDRESS_UNIX : ADDRESS_TCP,
                            .port = port,
                            .bind_privileged = !s->binds_insecure };
    if (s->connect_path)
        snprintf(a->path, sizeof(a->path), "%s", s->connect_path);
    else
        snprintf(a->host, sizeof(a->host), "%s", s->host);
}

static FIBER int open_peer(struct remote *s, uint16_t port)
{
    const struct rpc_handlers handlers = { .on_call = remote_on_call, .on_closed = on_closed };
    const struct stream_options options = { .keepalive_time_s = s->keepalive_time_s,
                                            .keepalive_interval_s = s->keepalive_interval_s,
                                            .keepalive_count = s->keepalive_count,
                                            .user_timeout_s = s->user_timeout_s };
    struct address address;
    struct stream *stream;

    fill_address(s, port, &address);
    int r = stream_connect(s->me->env, &address, &options, &s->attempt, &stream);
    if (r < 0)
        return r;
    s->peer = rpc_peer_new(s->me->env, stream, &handlers, s);
    if (!s->peer) {
        stream_close(stream);
        return -ENOMEM;
    }
    s->is_closed = false;
    s->peer->xid = s->xid;
    s->peer->ping_timeout_s = s->ping_timeout_s;
    s->peer->frame_timeout_s = s->frame_timeout_s;
    s->peer->sends_groups = s->sends_groups;
    s->peer->reader.max_bytes = RECORD_MAX_BYTES;
    return 0;
}

/* Ends the connection and waits until nobody will call us about it any more. */
static FIBER void close_peer(struct remote *s, int err)
{
    if (!s->peer)
        return;
    rpc_peer_disconnect(s->peer, err);
    while (!s->is_closed)
        (void)waitq_wait(&s->changes, NULL); /* the reader always ends with on_closed() */
    s->xid = s->peer->xid;
    rpc_peer_unref(s->peer);
    s->peer = NULL;
}

/* ---- questions ---- */

/* By hand, because what rpcgen makes of a list recurses once per element. */
static int get_programs(struct xdr_in *in, struct programs *p)
{
    (void)xdr_get_u64(in); /* gfs_id */
    (void)xdr_get_u64(in); /* op_ret, op_errno */
    for (int i = 0; i < PROGRAMS_MAX && xdr_get_u32(in) == 1; i++) {
        (void)xdr_get_string(in, 256);
        uint64_t number = xdr_get_u64(in), version = xdr_get_u64(in);
        p->has_fops |= number == PROGRAM_FOPS && version == FOPS_VERSION;
        p->has_portmap |= number == PROGRAM_PORTMAP;
        p->has_mortar |= number == PROGRAM_MORTAR && version == MORTAR_PROGRAM_VERSION;
    }
    return in->failed ? -EBADMSG : 0;
}

static FIBER int ask_programs(struct remote *s, struct programs *p)
{
    struct rpc_call c;
    struct xdr_out o;

    rpc_call_begin(s->peer, &c, &o, PROGRAM_DUMP, DUMP_VERSION, DUMP_DUMP, NULL);
    xdr_put_u64(&o, GFS_ID);
    int r = rpc_peer_call(s->peer, &c, &o, &s->attempt);
    if (r == 0)
        r = get_programs(&c.body, p);
    rpc_call_done(&c);
    return r;
}

static FIBER int ask_port(struct remote *s, uint16_t *ret_port)
{
    struct rpc_call c;
    struct xdr_out o;

    rpc_call_begin(s->peer, &c, &o, PROGRAM_PORTMAP, PORTMAP_VERSION, PORTMAP_PORTBYBRICK, NULL);
    xdr_put_string(&o, s->subvolume);
    int r = rpc_peer_call(s->peer, &c, &o, &s->attempt);
    if (r == 0) {
        int32_t op_ret = (int32_t)xdr_get_u32(&c.body);
        (void)xdr_get_u32(&c.body); /* op_errno */
        (void)xdr_get_u32(&c.body); /* status */
        uint32_t port = xdr_get_u32(&c.body);
        if (c.body.failed)
            r = -EBADMSG;
        else if (op_ret < 0 || port == 0 || port > UINT16_MAX)
            r = -ECONNREFUSED; /* the brick is not running */
        else
            *ret_port = (uint16_t)port;
    }
    rpc_call_done(&c);
    return r;
}

/* ---- SETVOLUME ---- */

static int set_process_uuid(struct remote *s, struct dict *d)
{
    SCOPED_FREE char *text =
        mem_printf("CTX_ID:%s-GRAPH_ID:%u-PID:%d-HOST:%s-PC_NAME:%s-RECON_NO:-%u", s->process_id, s->me->graph->id,
                   env_pid(s->me->env), env_host_name(s->me->env), s->me->name, s->generation);
    return text ? dict_set_str(d, "process-uuid", text) : -ENOMEM;
}

/* All options of the section, as GlusterFS does it, and what the brick wants to know. */
static int setvolume_dict(struct remote *s, struct dict **ret_dict)
{
    SCOPED(dict_unref) struct dict *d = dict_copy(s->me->options);
    const struct {
        const char *key, *value;
    } pairs[] = {
        { "remote-subvolume", s->subvolume },
        { "fops-version", "1298437" },
        { "client-version", CLIENT_VERSION },
        { "opversion", CLIENT_OPVERSION },
        { "clnt-lk-version", "1" },
        { "process-name", "mortarfs" },
        { "volfile-key", s->me->graph->volfile_id },
        { "volfile-checksum", "0" },
        { "volume-id", s->volume_id[0] ? s->volume_id : NULL },
        { INVALIDATE_KEY, "1" },
    };

    if (!d)
        return -ENOMEM;
    for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
        int r = pairs[i].value ? dict_set_str(d, pairs[i].key, pairs[i].value) : 0;
        if (r < 0)
            return r;
    }
    int r = set_process_uuid(s, d);
    if (r < 0)
        return r;
    *ret_dict = take(d);
    return 0;
}

static void refused(struct remote *s, int op_errno, const struct dict *d)
{
    const char *why = "no reason given";

    (void)dict_get_str(d, "ERROR", &why); /* keeps the default when absent */
    TLOG(s->me, LOG_WARNING, "setvolume-refused", "peer=%s subvolume=%s err=%s reason=\"%s\"",
         stream_peer_name(s->peer->stream), s->subvolume, errno_name(op_errno), why);
    if (op_errno == EACCES || (op_errno == ENOENT && dict_has(s->me->options, "subdir-mount")))
        notify_parents(s->me, &(struct event) { .kind = EVENT_AUTH_FAILED, .text = why });
    else if (op_errno == ESTALE)
        notify_parents(s->me, &(struct event) { .kind = EVENT_VOLFILE_CHANGED });
}

static int accepted(struct remote *s, const struct dict *d)
{
    const char *id;
    int64_t is_child_up = 1;

    if (dict_get_str(d, "volume-id", &id) == 0 && id[0]) {
        if (s->volume_id[0] && strcmp(s->volume_id, id) != 0) {
            TLOG(s->me, LOG_ERROR, "volume-id-differs", "peer=%s expected=%s found=%s",
                 stream_peer_name(s->peer->stream), s->volume_id, id);
            return -EPROTO;
        }
        snprintf(s->volume_id, sizeof(s->volume_id), "%s", id);
    }
    (void)dict_get_int(d, "child_up", &is_child_up); /* absent: it is */
    return is_child_up ? 0 : -EAGAIN;
}

static int read_setvolume(struct remote *s, struct xdr_in *in)
{
    SCOPED(dict_unref) struct dict *d = NULL;
    int32_t op_ret = (int32_t)xdr_get_u32(in), op_errno = (int32_t)xdr_get_u32(in);

    xdr_get_odict_opaque(in, RECORD_MAX_BYTES_UNKNOWN, &d);
    if (in->failed)
        return -EBADMSG;
    if (op_ret >= 0)
        return accepted(s, d);
    refused(s, op_errno, d);
    return op_errno > 0 && op_errno < 4096 ? -op_errno : -EIO;
}

static FIBER int set_volume(struct remote *s)
{
    SCOPED(dict_unref) struct dict *d = NULL;
    struct rpc_call c;
    struct xdr_out o;

    s->generation++;
    int r = remote_reach_new(s);
    if (r == 0)
        r = setvolume_dict(s, &d);
    if (r < 0)
        return r;
    rpc_call_begin(s->peer, &c, &o, PROGRAM_HANDSHAKE, HANDSHAKE_VERSION, HANDSHAKE_SETVOLUME, NULL);
    xdr_put_odict_opaque(&o, d);
    r = rpc_peer_call(s->peer, &c, &o, &s->attempt);
    if (r == 0)
        r = read_setvolume(s, &c.body);
    rpc_call_done(&c);
    return r;
}

/* ---- tries ---- */

/* Connected to a brick, whose programs are known. */
static FIBER int reach_brick(struct remote *s, struct programs *p)
{
    uint16_t port = s->port ? (uint16_t)s->port : MGMT_PORT;
    int r = open_peer(s, port);

    if (r == 0)
        r = ask_programs(s, p);
    if (r < 0 || !p->has_portmap)
        return r;
    r = ask_port(s, &port);
    if (r < 0)
        return r;
    close_peer(s, 0);
    *p = (struct programs) { 0 };
    r = open_peer(s, port);
    return r < 0 ? r : ask_programs(s, p);
}

static FIBER int come_up(struct remote *s)
{
    struct programs p = { 0 };
    int r = reach_brick(s, &p);

    if (r < 0)
        return r;
    if (!p.has_fops) {
        TLOG(s->me, LOG_ERROR, "no-program", "peer=%s does not offer file operations (program %d version %d)",
             stream_peer_name(s->peer->stream), PROGRAM_FOPS, FOPS_VERSION);
        return -EPROTONOSUPPORT;
    }
    s->speaks_mortar = p.has_mortar;
    s->peer->flavor = AUTH_FLAVOR_V3;
    r = set_volume(s);
    return r < 0 ? r : remote_reopen_all(s);
}

void remote_tell_parents(struct remote *s, enum event_kind kind)
{
    struct event event = { .kind = kind };

    if (!s->speaks_mortar)
        event.lacks = BRICK_LACKS_NOTICES | BRICK_LACKS_RENAME_FLAGS | BRICK_LACKS_INDEX_STAT;
    s->has_reported = true;
    notify_parents(s->me, &event);
}

static FIBER void be_up(struct remote *s)
{
    s->connects++;
    s->is_up = true;
    TLOG(s->me, LOG_INFO, "connected", "peer=%s subvolume=%s own-program=%d", stream_peer_name(s->peer->stream),
         s->subvolume, s->speaks_mortar);
    remote_tell_parents(s, EVENT_CHILD_UP);
    if (s->connects > 1) /* what changed meanwhile, nobody has told us */
        notify_parents(s->me, &(struct event) { .kind = EVENT_INVALIDATE, .gfid = gfid_null });
    while (!s->is_closed)
        (void)waitq_wait(&s->changes, NULL); /* woken by on_closed() */
    s->is_up = false;
    TLOG(s->me, s->is_stopping ? LOG_INFO : LOG_WARNING, "disconnected", "peer=%s err=%s",
         stream_peer_name(s->peer->stream), errno_name(s->peer->close_error));
    close_peer(s, 0);
    remote_tell_parents(s, EVENT_CHILD_DOWN);
}

static FIBER bool try_once(struct remote *s)
{
    scope_init(&s->attempt, env_deadline_ms(s->me->env, ATTEMPT_MS));
    int r = come_up(s);
    if (r == 0 && s->is_closed)
        r = -ENOTCONN;
    if (r == 0 && !s->is_stopping) {
        be_up(s);
        return true;
    }
    close_peer(s, r);
    s->failures++;
    if (s->is_stopping)
        return false;
    TLOG(s->me, LOG_INFO, "connect-failed", "host=%s port=%u subvolume=%s err=%s",
         s->connect_path ? s->connect_path : s->host, s->port, s->subvolume, errno_name(r));
    if (!s->has_reported)
        remote_tell_parents(s, EVENT_CHILD_TRYING);
    return false;
}

FIBER void remote_run(void *arg)
{
    struct remote *s = arg;
    size_t tries = 0;

    while (!s->is_stopping) {
        if (try_once(s))
            tries = 0;
        else
            tries = MIN(tries + 1, ARRAY_SIZE(pauses_ms) - 1);
        if (s->is_stopping)
            break;
        scope_init(&s->attempt, 0);
        if (fiber_sleep_ms(&s->attempt, pauses_ms[tries]) == -ESHUTDOWN) /* cancelled by stop() */
            break;                                                       /* a simulated process that died */
    }
    s->is_running = false;
    waitq_wake_all(&s->stopped, 0);
}
