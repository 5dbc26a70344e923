/* core/env_sim_connect.c - how connections of the simulated world come to be. */
#include "core/env_sim_internal.h"
#include "core/mem.h"

#include <stdio.h>

#define GIVE_UP_MIN_NS   1000000000ULL /* connecting over a cut link, when no deadline comes first */
#define GIVE_UP_MAX_NS   20000000000ULL
#define RETRY_NS         200000000ULL /* a lost first packet is sent again */
#define PORT_FIRST       49152
#define PRIVILEGED_LAST  512 /* from 1023 downwards, round and round */
#define PRIVILEGED_FIRST 1023

/* ---- listening ---- */

static struct sim_listener *find_listener(struct sim *sim, struct sim_host *host, const char *path, uint16_t port)
{
    struct sim_listener *l;

    list_for_each (l, &sim->listeners, node)
        if (l->process->host == host && !l->process->env.is_crashed && strcmp(l->path, path) == 0 &&
            l->listener.port == port)
            return l;
    return NULL;
}

static uint16_t free_port(struct sim_process *p)
{
    for (;;) {
        uint16_t port = p->host->next_port++;
        if (p->host->next_port == 0)
            p->host->next_port = PORT_FIRST;
        if (!find_listener(p->sim, p->host, "", port))
            return port;
    }
}

static uint16_t privileged_port(struct sim_host *host)
{
    uint16_t port = host->next_privileged_port--;

    if (host->next_privileged_port < PRIVILEGED_LAST)
        host->next_privileged_port = PRIVILEGED_FIRST;
    return port;
}

int sim_listen(struct env *env, const struct address *at, int backlog, accept_fn on_accept, void *arg,
               struct listener **ret_listener)
{
    struct sim_process *p = sim_process(env);
    bool is_unix = at->family == ADDRESS_UNIX;
    const char *path = is_unix ? at->path : "";
    uint16_t port = is_unix ? 0 : at->port;

    if (is_unix && path[0] == '\0')
        return -EINVAL;
    if (!is_unix && strcmp(at->host, "0.0.0.0") != 0 && strcmp(at->host, "::") != 0 &&
        sim_host_find(p->sim, p, at->host) != p->host)
        return -EADDRNOTAVAIL;
    if (!is_unix && port == 0)
        port = free_port(p);
    if (find_listener(p->sim, p->host, path, port))
        return -EADDRINUSE;
    struct sim_listener *l = NEW(struct sim_listener);
    if (!l)
        return -ENOMEM;
    l->listener.env = env;
    l->listener.port = port;
    l->process = p;
    snprintf(l->path, sizeof(l->path), "%s", path);
    l->on_accept = on_accept;
    l->arg = arg;
    list_add_tail(&p->sim->listeners, &l->node);
    *ret_listener = &l->listener;
    return 0;
}

void sim_listener_close(struct listener *listener)
{
    struct sim_listener *l = container_of(listener, struct sim_listener, listener);

    list_del(&l->node);
    mem_free(l);
}

/* The server's end reaches the listener, if there still is one. */
static void accept_end(void *arg)
{
    struct sim_stream *s = arg;
    struct sim *sim = s->process->sim;
    struct sim_listener *l = find_listener(sim, s->process->host, s->accept_path, s->accept_port);

    sim_trace(sim, "accept", s->accept_port);
    if (l && l->process == s->process && !s->broken) {
        s->process->env.loop_now_ns = sim->now_ns;
        l->on_accept(l->arg, &s->stream);
    } else {
        sim_stream_abort(s, -ECONNRESET);
        sim_stream_free(s);
    }
}

/* ---- connecting ---- */

static void name_tcp(struct sim_stream *s, const struct sim_host *own, uint16_t own_port, const struct sim_host *peer,
                     uint16_t peer_port)
{
    snprintf(s->stream.local_name, sizeof(s->stream.local_name), "%s:%u", own->address, own_port);
    snprintf(s->stream.peer_name, sizeof(s->stream.peer_name), "%s:%u", peer->address, peer_port);
    snprintf(s->stream.peer_host, sizeof(s->stream.peer_host), "%s", peer->address);
    s->stream.peer_port = peer_port;
}

static void name_ends(struct sim_stream *c, struct sim_stream *s, const struct address *to, uint16_t port)
{
    if (to->family == ADDRESS_UNIX) {
        c->stream.is_unix = s->stream.is_unix = true;
        snprintf(c->stream.peer_name, sizeof(c->stream.peer_name), "%s", to->path);
        snprintf(s->stream.local_name, sizeof(s->stream.local_name), "%s", to->path);
        return;
    }
    uint16_t own_port = to->bind_privileged ? privileged_port(c->process->host) : free_port(c->process);
    name_tcp(c, c->process->host, own_port, s->process->host, port);
    name_tcp(s, s->process->host, port, c->process->host, own_port);
}

/* Until the first packet gets through: 0, or why it never will. */
static FIBER int get_through(struct sim_process *p, struct sim_host *host, struct scope *scope)
{
    struct sim *sim = p->sim;
    uint64_t give_up_ns = sim->now_ns + sim_rng_range(&sim->network_rng, GIVE_UP_MIN_NS, GIVE_UP_MAX_NS);

    for (;;) {
        int r = fiber_sleep_until(scope, sim->now_ns + sim_network_delay(sim));
        if (r < 0)
            return r;
        struct sim_link *l = sim_link_find(sim, p->host, host);
        if (!l || (!l->is_cut && !l->is_held))
            return 0;
        if (l->is_cut && sim->now_ns >= give_up_ns)
            return -ETIMEDOUT;
        if (l->is_cut)
            r = fiber_sleep_until(scope, sim->now_ns + RETRY_NS);
        else
            r = waitq_wait(&sim->healed, scope);
        if (r < 0)
            return r;
    }
}

FIBER int sim_connect(struct env *env, const struct address *to, const struct stream_options *options,
                      struct scope *scope, struct stream **ret_stream)
{
    struct sim_process *p = sim_process(env);
    struct sim *sim = p->sim;
    bool is_unix = to->family == ADDRESS_UNIX;
    struct sim_host *host = is_unix ? p->host : sim_host_find(sim, p, to->host);
    uint16_t port = is_unix ? 0 : to->port;
    int r = host ? get_through(p, host, scope) : -EHOSTUNREACH;

    if (r < 0)
        return r;
    struct sim_listener *l = find_listener(sim, host, is_unix ? to->path : "", port);
    if (!l) {
        r = fiber_sleep_until(scope, sim->now_ns + sim_network_delay(sim));
        return r < 0 ? r : -ECONNREFUSED;
    }
    struct sim_stream *c = NULL, *s = NULL;
    r = sim_stream_pair(p, l->process, &c, &s);
    if (r < 0)
        return r;
    name_ends(c, s, to, port);
    s->accept_port = port;
    snprintf(s->accept_path, sizeof(s->accept_path), "%s", is_unix ? to->path : "");
    timer_start(&sim->world, &s->accepting, sim->now_ns + sim_network_delay(sim), accept_end, s);
    r = fiber_sleep_until(scope, sim->now_ns + sim_network_delay(sim));
    if (r == 0 && c->broken)
        r = c->broken;
    if (r < 0)
        sim_close(&c->stream);
    else
        *ret_stream = &c->stream;
    return r;
}
