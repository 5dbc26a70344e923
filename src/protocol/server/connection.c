/* A client's connection: what comes in is handed to fibers, what it opened is closed with it. */
#include "core/mem.h"
#include "protocol/server/server_internal.h"
#include <stdio.h>

/* ---- descriptors: the lowest free number first, as GlusterFS bricks give them ---- */

static int grow(struct connection *c)
{
    uint32_t room = c->fd_room ? 2 * c->fd_room : 32;
    struct fd **more = c->fd_room == FD_TABLE_MAX ? NULL : mem_realloc(c->fds, room * sizeof(void *));

    if (!more)
        return c->fd_room == FD_TABLE_MAX ? -EMFILE : -ENOMEM;
    memset(more + c->fd_room, 0, (room - c->fd_room) * sizeof(void *));
    c->fds = more;
    c->fd_room = room;
    return 0;
}

int64_t connection_fd_add(struct connection *c, struct fd *fd)
{
    while (c->fd_free < c->fd_room && c->fds[c->fd_free])
        c->fd_free++;
    if (c->fd_free == c->fd_room) {
        int r = grow(c);
        if (r < 0)
            return r;
    }
    c->fds[c->fd_free] = fd_ref(fd);
    c->fd_count++;
    interest_opened(c, fd->inode, 1);
    return c->fd_free++;
}

struct fd *connection_fd(struct connection *c, int64_t number)
{
    return number >= 0 && number < c->fd_room ? c->fds[number] : NULL;
}

int connection_fd_close(struct connection *c, int64_t number)
{
    struct fd *fd = connection_fd(c, number);

    if (!fd)
        return -EBADF;
    c->fds[number] = NULL;
    c->fd_free = MIN(c->fd_free, (uint32_t)number);
    c->fd_count--;
    interest_opened(c, fd->inode, -1);
    fd_unref(fd);
    return 0;
}

/* ---- requests ---- */

static void request_ended(struct connection *c)
{
    if (--c->in_flight == 0)
        waitq_wake_all(&c->drained, 0);
}

/* Every request of a connection starts here, in a fiber of its own. */
static FIBER void serve(void *arg)
{
    struct rpc_incoming *in = arg;
    struct connection *c = in->arg;

    switch (in->head.program) {
    case PROGRAM_FOPS: serve_fop(c, in); break;
    case PROGRAM_MORTAR: serve_compound(c, in); break;
    default: handshake_call(c, in); break;
    }
    request_ended(c);
}

static void serve_in_fiber(struct connection *c, struct rpc_incoming *in)
{
    in->arg = c;
    if (fiber_spawn(c->s->me->env, "serve", serve, in) < 0) {
        rpc_reply_error(in, RPC_ACCEPT_SYSTEM);
        return;
    }
    c->in_flight++;
    c->s->requests++;
}

static bool has_program(const struct connection *c, const struct rpc_call_head *h, uint32_t *ret_version)
{
    switch (h->program) {
    case PROGRAM_DUMP: *ret_version = DUMP_VERSION; return true;
    case PROGRAM_HANDSHAKE: *ret_version = HANDSHAKE_VERSION; return true;
    case PROGRAM_PORTMAP: *ret_version = PORTMAP_VERSION; return c->is_standalone;
    case PROGRAM_FOPS: *ret_version = FOPS_VERSION; return !c->is_standalone;
    case PROGRAM_MORTAR: *ret_version = MORTAR_PROGRAM_VERSION; return !c->is_standalone;
    default: return false;
    }
}

static void on_call(void *arg, struct rpc_incoming *in)
{
    struct connection *c = arg;
    const struct rpc_call_head *h = &in->head;
    uint32_t version;

    if (!has_program(c, h, &version))
        rpc_reply_error(in, RPC_ACCEPT_NO_PROGRAM);
    else if (h->version != version)
        rpc_reply_error(in, RPC_ACCEPT_NO_VERSION);
    else if (h->program == PROGRAM_DUMP)
        handshake_dump(c, in);
    else if (h->program == PROGRAM_PORTMAP)
        handshake_portmap(c, in);
    else if (h->program != PROGRAM_HANDSHAKE && (!c->client || c->is_gone))
        rpc_reply_error(in, RPC_ACCEPT_GARBAGE); /* operations come after SETVOLUME */
    else
        serve_in_fiber(c, in);
}

/* ---- the end ---- */

static FIBER void close_fds(struct connection *c)
{
    struct call call;
    SCOPED(reply_free) struct reply *r = reply_new();

    call_init(&call, c->s->me->graph);
    call.client = c->client;
    for (uint32_t i = 0; i < c->fd_room; i++) {
        struct fd *fd = take(c->fds[i]);
        if (!fd)
            continue;
        struct request q = { .op = OP_FLUSH, .inode = fd->inode, .fd = fd };
        if (r && !fd->is_dir) {
            (void)translator_call(c->bound, &call, &q, r); /* nobody is left to be told */
            reply_done(r);
        }
        interest_opened(c, fd->inode, -1);
        fd_unref(fd);
    }
    call_done(&call);
}

static void connection_free(struct connection *c)
{
    struct server *s = c->s;

    list_del(&c->node);
    if (c->client)
        c->client->edge = NULL;
    client_unref(c->client);
    rpc_peer_unref(c->peer);
    mem_free(c->fds);
    mem_free(c->username);
    mem_free(c->password);
    mem_free(c->subdir);
    dict_unref(c->hosts);
    mem_free(c);
    waitq_wake_all(&s->ended, 0);
}

static FIBER void on_closed(void *arg, int err)
{
    struct connection *c = arg;

    c->is_gone = true;
    if (c->is_caching)
        c->s->caching_count--;
    if (c->client) {
        TLOG(c->s->me, LOG_INFO, "client-gone", "client=%s uid=%s err=%s", c->client->name, c->client->uid,
             errno_name(err));
        client_gone(c->client); /* its locks go, and with them the requests that wait for them */
    }
    while (c->in_flight > 0)
        (void)waitq_wait(&c->drained, NULL); /* requests always end */
    close_fds(c);
    connection_free(c);
}

/* ---- the beginning ---- */

static void accept_stream(struct server *s, struct stream *stream, bool is_standalone)
{
    const struct rpc_handlers handlers = { .on_call = on_call, .on_closed = on_closed };
    struct connection *c = NEW(struct connection);

    if (!c) {
        stream_close(stream);
        return;
    }
    c->s = s;
    c->id = ++s->next_id;
    c->is_standalone = is_standalone;
    waitq_init(&c->drained);
    if (!stream_peer_address(stream, c->host, &c->port))
        c->host[0] = '\0';
    c->peer = rpc_peer_new(s->me->env, stream, &handlers, c);
    if (!c->peer) {
        stream_close(stream);
        mem_free(c);
        return;
    }
    c->peer->incoming_limit = s->outstanding_limit;
    list_add_tail(&s->connections, &c->node);
    silence_watch(c);
    s->accepted++;
}

void connection_accept(void *arg, struct stream *stream)
{
    accept_stream(arg, stream, false);
}

void connection_accept_standalone(void *arg, struct stream *stream)
{
    accept_stream(arg, stream, true);
}
