#include "mortarfs/control.h"
#include "cluster/replicate/heal_daemon.h"
#include "core/log.h"
#include "core/mem.h"
#include "rpc/control.h"
#include "rpc/peer.h"
#include "rpc/programs.h"
#include "rpc/rpcgen_bridge.h"
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONNECTIONS_MAX 64

struct control {
    struct env *env;
    struct graph *(*graph)(void *arg);
    void *arg;
    char *path;
    struct listener *listener;
    struct list links;
    unsigned link_count;
    struct waitq ended;
};

struct link {
    struct control *c;
    struct rpc_peer *peer;
    struct list node;
};

/* ---- answers ---- */

static int heal_status(struct graph *graph, const char *subject, struct dict *d)
{
    unsigned sets = 0;
    char prefix[16];
    int r = 0;

    for (unsigned i = 0; r == 0 && i < graph->count; i++) {
        if (strcmp(graph->all[i]->class->type, "cluster/replicate") != 0 ||
            (*subject && strcmp(subject, graph->all[i]->name) != 0))
            continue;
        (void)snprintf(prefix, sizeof(prefix), "%u.", sets++);
        r = heal_daemon_report(graph->all[i], prefix, d);
    }
    return r < 0 ? r : dict_set_uint(d, "sets", sets);
}

/* The first failure, after all have been told. */
static int heal_order(struct graph *graph, const char *subject, enum heal_order order, struct dict *d)
{
    int r = 0;
    unsigned told = 0;

    for (unsigned i = 0; i < graph->count; i++) {
        if (!heal_daemon_is(graph->all[i]) || (*subject && strcmp(subject, graph->all[i]->name) != 0))
            continue;
        int one = heal_daemon_order(graph->all[i], order);

        r = r < 0 ? r : one;
        told++;
    }
    if (!told) {
        (void)dict_set_str(d, "error",
                           "this process is no heal daemon: its volume file has no cluster/replicate with "
                           "option iam-self-heal-daemon");
        return -EINVAL;
    }
    if (r == -ENOTCONN)
        (void)dict_set_str(d, "error", "fewer than two bricks are up; it begins when they are");
    return r;
}

static int answer(struct control *c, const char *verb, const char *subject, struct dict *d)
{
    struct graph *graph = c->graph(c->arg);

    if (!graph)
        return -EAGAIN;
    if (strcmp(verb, "heal-status") == 0)
        return heal_status(graph, subject, d);
    if (strcmp(verb, "heal-index") == 0)
        return heal_order(graph, subject, HEAL_ORDER_INDEX, d);
    if (strcmp(verb, "heal-full") == 0)
        return heal_order(graph, subject, HEAL_ORDER_FULL, d);
    if (strcmp(verb, "heal-stop") == 0)
        return heal_order(graph, subject, HEAL_ORDER_STOP, d);
    (void)dict_set_str(d, "error", "there is no such verb; this process may be older than the command");
    return -EOPNOTSUPP;
}

static void on_call(void *arg, struct rpc_incoming *in)
{
    struct link *l = arg;
    SCOPED(dict_unref) struct dict *d = dict_new();
    const char *verb, *subject;
    struct xdr_out o;
    int r;

    if (in->head.program != PROGRAM_MORTAR || in->head.procedure != MORTAR_CONTROL) {
        rpc_reply_error(in, RPC_ACCEPT_NO_PROGRAM);
        return;
    }
    verb = xdr_get_string(&in->body, CONTROL_VERB_MAX);
    subject = xdr_get_string(&in->body, CONTROL_SUBJECT_MAX);
    if (in->body.failed || !d) {
        rpc_reply_error(in, RPC_ACCEPT_GARBAGE);
        return;
    }
    r = answer(l->c, verb, subject, d);
    rpc_reply_begin(in, &o, 4096);
    xdr_put_u32(&o, r < 0 ? (uint32_t)-1 : 0);
    xdr_put_u32(&o, (uint32_t)-r);
    xdr_put_odict_opaque(&o, d);
    rpc_reply_send(in, &o);
}

/* ---- connections ---- */

static FIBER void on_closed(void *arg, int err)
{
    struct link *l = arg;
    struct control *c = l->c;

    list_del(&l->node);
    c->link_count--;
    rpc_peer_unref(l->peer);
    mem_free(l);
    (void)waitq_wake_all(&c->ended, 0);
}

static void on_accept(void *arg, struct stream *stream)
{
    const struct rpc_handlers handlers = { .on_call = on_call, .on_closed = on_closed };
    struct control *c = arg;
    struct link *l = c->link_count < CONNECTIONS_MAX ? NEW(struct link) : NULL;

    if (l)
        l->peer = rpc_peer_new(c->env, stream, &handlers, l);
    if (!l || !l->peer) {
        stream_close(stream);
        mem_free(l);
        return;
    }
    l->c = c;
    list_add_tail(&c->links, &l->node);
    c->link_count++;
}

int control_open(struct env *env, const char *path, struct graph *(*graph)(void *arg), void *arg,
                 struct control **ret_control, struct error *err)
{
    struct address at = { .family = ADDRESS_UNIX };
    struct control *c;
    int r;

    if (strlen(path) >= sizeof(at.path))
        return error_set(err, -ENAMETOOLONG, "--socket-file %s: a socket's path may have %zu characters at most", path,
                         sizeof(at.path) - 1);
    memcpy(at.path, path, strlen(path) + 1);
    c = NEW(struct control);
    if (!c)
        return error_set(err, -ENOMEM, "out of memory");
    c->env = env;
    c->graph = graph;
    c->arg = arg;
    list_init(&c->links);
    waitq_init(&c->ended);
    c->path = mem_strdup(path);
    r = c->path ? listener_open(env, &at, CONNECTIONS_MAX, on_accept, c, &c->listener) : -ENOMEM;
    if (r == 0 && chmod(path, 0600) < 0)
        r = -errno;
    if (r < 0) {
        listener_close(c->listener);
        mem_free(c->path);
        mem_free(c);
        return error_set(err, r, "--socket-file %s: %s", path, strerror(-r));
    }
    *ret_control = c;
    return 0;
}

FIBER void control_close(struct control *c)
{
    struct link *l;

    if (!c)
        return;
    listener_close(c->listener);
    list_for_each (l, &c->links, node)
        rpc_peer_disconnect(l->peer, 0);
    while (!list_empty(&c->links))
        (void)waitq_wait(&c->ended, NULL); /* woken by the end of each */
    (void)unlink(c->path);
    mem_free(c->path);
    mem_free(c);
}
