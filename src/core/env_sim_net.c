/* core/env_sim_net.c - hosts, the links between them, and what flows through connections.
 *
 * A stream holds what is on its way to it (in_flight, each segment with its time of arrival, in order) and what has
 * arrived. A write appends to the other end's in_flight; a timer of the world moves the first segment over when its
 * time has come, unless the link is held. Segments live outside mem.h: they are the kernel's memory, not the program's.
 */
#include "core/env_sim_internal.h"
#include "core/mem.h"

#include <stdio.h>
#include <stdlib.h>

#define WINDOW_MIN_BYTES 16384
#define WINDOW_MAX_BYTES 262144
#define BREAK_MAX_NS     100000000 /* until an end notices that the link was cut */
#define BURST_BYTES      1048576   /* largest segment */

static inline struct sim_stream *sim_stream(struct stream *s)
{
    return container_of(s, struct sim_stream, stream);
}

/* ---- hosts and links ---- */

struct sim_host *sim_host_get(struct sim *sim, const char *name)
{
    struct sim_host *h;

    list_for_each (h, &sim->hosts, node)
        if (strcmp(h->name, name) == 0)
            return h;
    h = NEW(struct sim_host);
    if (!h)
        return NULL;
    unsigned n = ++sim->host_count;
    snprintf(h->name, sizeof(h->name), "%s", name);
    snprintf(h->address, sizeof(h->address), "10.%u.%u.%u", n >> 16 & 255, n >> 8 & 255, n & 255);
    h->next_port = 49152;
    h->next_privileged_port = 1023;
    list_add_tail(&sim->hosts, &h->node);
    return h;
}

struct sim_host *sim_host_find(struct sim *sim, struct sim_process *from, const char *name)
{
    struct sim_host *h;

    if (from && (name[0] == '\0' || strcmp(name, "localhost") == 0 || strncmp(name, "127.", 4) == 0 ||
                 strcmp(name, "::1") == 0))
        return from->host;
    list_for_each (h, &sim->hosts, node)
        if (strcmp(h->name, name) == 0 || strcmp(h->address, name) == 0)
            return h;
    return NULL;
}

struct sim_link *sim_link_find(struct sim *sim, struct sim_host *a, struct sim_host *b)
{
    struct sim_link *l;

    list_for_each (l, &sim->links, node)
        if ((l->a == a && l->b == b) || (l->a == b && l->b == a))
            return l;
    return NULL;
}

static bool is_held(struct sim_stream *s)
{
    struct sim_link *l = sim_link_find(s->process->sim, s->process->host, s->peer_host);

    return l && l->is_held;
}

static bool is_cut(struct sim_stream *s)
{
    struct sim_link *l = sim_link_find(s->process->sim, s->process->host, s->peer_host);

    return l && l->is_cut;
}

/* ---- delivery ---- */

static void drop_segments(struct sim_stream *s, struct list *from)
{
    while (!list_empty(from)) {
        struct sim_segment *g = list_entry(from->next, struct sim_segment, node);
        s->pending_bytes -= g->size_bytes - g->offset;
        list_del(&g->node);
        free(g);
    }
}

static void break_stream(struct sim_stream *s, int err)
{
    if (s->broken)
        return;
    s->broken = err;
    timer_stop(&s->arrival);
    timer_stop(&s->breaking);
    drop_segments(s, &s->in_flight);
    waitq_wake_all(&s->readers, 0); /* they look again */
    waitq_wake_all(&s->writers, 0);
}

static void deliver(void *arg);

/* Sets the timer for the first segment in flight. */
static void await_arrival(struct sim_stream *s)
{
    struct sim *sim = s->process->sim;

    if (list_empty(&s->in_flight) || s->arrival.at_ns || is_held(s))
        return;
    const struct sim_segment *g = list_entry(s->in_flight.next, struct sim_segment, node);
    timer_start(&sim->world, &s->arrival, MAX(g->at_ns, sim->now_ns), deliver, s);
}

static void deliver(void *arg)
{
    struct sim_stream *s = arg;
    struct sim *sim = s->process->sim;

    if (is_held(s))
        return; /* sim_heal goes on */
    struct sim_segment *g = list_entry(s->in_flight.next, struct sim_segment, node);
    list_del(&g->node);
    sim_trace(sim, "segment", g->size_bytes * 4 + g->kind);
    switch (g->kind) {
    case SEGMENT_DATA: list_add_tail(&s->arrived, &g->node); break;
    case SEGMENT_END:
        s->has_ended = true;
        waitq_wake_all(&s->writers, 0);
        free(g);
        break;
    case SEGMENT_RESET:
        free(g);
        if (sim_rng_next(&sim->network_rng) % 2) /* unread data may be lost with the connection, or not */
            drop_segments(s, &s->arrived);
        break_stream(s, -ECONNRESET);
        return;
    }
    waitq_wake_all(&s->readers, 0);
    await_arrival(s);
}

/* Puts a segment on its way to `to`. */
static void dispatch(struct sim_stream *to, int kind, const void *data, size_t size_bytes)
{
    struct sim *sim = to->process->sim;
    struct sim_segment *g = calloc(1, sizeof(*g) + size_bytes);
    uint64_t last_ns = 0;

    assert(g);
    if (!list_empty(&to->in_flight))
        last_ns = list_entry(to->in_flight.prev, struct sim_segment, node)->at_ns;
    g->kind = kind;
    g->size_bytes = size_bytes;
    g->at_ns = MAX(sim->now_ns + sim_network_delay(sim), last_ns); /* in order */
    if (size_bytes > 0)
        memcpy(g->data, data, size_bytes);
    to->pending_bytes += size_bytes;
    list_add_tail(&to->in_flight, &g->node);
    await_arrival(to);
}

/* ---- life cycle ---- */

static struct sim_stream *new_end(struct sim_process *p, struct sim_host *peer_host, size_t window_bytes)
{
    struct sim_stream *s = NEW(struct sim_stream);

    if (!s)
        return NULL;
    s->stream.env = &p->env;
    s->process = p;
    s->peer_host = peer_host;
    s->window_bytes = window_bytes;
    list_init(&s->in_flight);
    list_init(&s->arrived);
    waitq_init(&s->readers);
    waitq_init(&s->writers);
    list_add_tail(&p->sim->streams, &s->node);
    return s;
}

int sim_stream_pair(struct sim_process *client, struct sim_process *server, struct sim_stream **ret_client,
                    struct sim_stream **ret_server)
{
    size_t window_bytes = sim_rng_range(&client->sim->network_rng, WINDOW_MIN_BYTES, WINDOW_MAX_BYTES);
    struct sim_stream *c = new_end(client, server->host, window_bytes);
    struct sim_stream *s = new_end(server, client->host, window_bytes);

    if (!c || !s) {
        sim_stream_free(c);
        sim_stream_free(s);
        return -ENOMEM;
    }
    c->peer = s;
    s->peer = c;
    *ret_client = c;
    *ret_server = s;
    return 0;
}

void sim_stream_free(struct sim_stream *s)
{
    if (!s)
        return;
    assert(waitq_is_empty(&s->readers) && waitq_is_empty(&s->writers));
    timer_stop(&s->arrival);
    timer_stop(&s->breaking);
    timer_stop(&s->accepting);
    drop_segments(s, &s->in_flight);
    drop_segments(s, &s->arrived);
    list_del(&s->node);
    mem_free(s);
}

/* Parts the ends; the other one is told by a last segment, unless the wire is cut: then it will notice by itself. */
static void part(struct sim_stream *s, int kind)
{
    struct sim_stream *peer = s->peer;

    if (!peer)
        return;
    s->peer = NULL;
    peer->peer = NULL;
    if (!peer->broken && !is_cut(s))
        dispatch(peer, kind, NULL, 0);
}

void sim_stream_abort(struct sim_stream *s, int own_error)
{
    bool is_unclaimed = s->accepting.at_ns != 0; /* no listener has seen it yet */

    part(s, SEGMENT_RESET);
    break_stream(s, own_error);
    if (is_unclaimed)
        sim_stream_free(s);
}

void sim_shutdown(struct stream *stream)
{
    struct sim_stream *s = sim_stream(stream);

    if (s->is_shut)
        return;
    s->is_shut = true;
    part(s, SEGMENT_END);
    waitq_wake_all(&s->readers, 0);
    waitq_wake_all(&s->writers, 0);
}

void sim_close(struct stream *stream)
{
    struct sim_stream *s = sim_stream(stream);
    bool lost_data = !list_empty(&s->arrived) || !list_empty(&s->in_flight);

    part(s, lost_data ? SEGMENT_RESET : SEGMENT_END); /* as TCP does: closing with unread data resets */
    sim_stream_free(s);
}

/* ---- reading ---- */

/* Moves bytes of the first arrived segment. Returns how many; *ret_is_used_up: the segment is gone. */
static size_t read_segment(struct sim_stream *s, uint8_t *to, size_t max_bytes, bool *ret_is_used_up)
{
    struct sim_segment *g = list_entry(s->arrived.next, struct sim_segment, node);
    size_t n = MIN(max_bytes, g->size_bytes - g->offset);

    memcpy(to, g->data + g->offset, n);
    g->offset += n;
    *ret_is_used_up = g->offset == g->size_bytes;
    if (*ret_is_used_up) {
        list_del(&g->node);
        free(g);
    }
    return n;
}

/* Moves arrived bytes out, sometimes no more than the first segment. */
static ssize_t read_arrived(struct sim_stream *s, const struct iovec *iov, int iov_count)
{
    bool stops_early = sim_rng_next(&s->process->sim->network_rng) % 4 == 0;
    bool is_over = false;
    size_t total = 0;

    for (int i = 0; i < iov_count; i++) {
        for (size_t at = 0; at < iov[i].iov_len && !list_empty(&s->arrived) && !is_over;) {
            bool is_used_up;
            size_t n = read_segment(s, (uint8_t *)iov[i].iov_base + at, iov[i].iov_len - at, &is_used_up);
            at += n;
            total += n;
            is_over = is_used_up && stops_early;
        }
    }
    s->pending_bytes -= total;
    if (s->peer)
        waitq_wake_all(&s->peer->writers, 0); /* there is room again */
    return (ssize_t)total;
}

FIBER ssize_t sim_readv(struct stream *stream, const struct iovec *iov, int iov_count, struct scope *scope)
{
    struct sim_stream *s = sim_stream(stream);

    for (;;) {
        if (s->stream.env->is_crashed)
            return -ESHUTDOWN;
        if (s->is_shut)
            return -ENOTCONN;
        if (!list_empty(&s->arrived))
            return read_arrived(s, iov, iov_count);
        if (s->broken)
            return s->broken;
        if (s->has_ended)
            return 0;
        int r = waitq_wait(&s->readers, scope);
        if (r < 0)
            return r;
    }
}

/* ---- writing ---- */

static int why_not_write(const struct sim_stream *s)
{
    if (s->stream.env->is_crashed)
        return -ESHUTDOWN;
    if (s->broken)
        return s->broken;
    if (s->is_shut)
        return -ENOTCONN;
    return s->has_ended ? -EPIPE : 0;
}

/* Takes what fits now, in segments of seeded size; 0: the window is full. */
static size_t write_some(struct sim_stream *s, const uint8_t *data, size_t size_bytes)
{
    struct sim *sim = s->process->sim;

    if (!s->peer || is_cut(s)) /* the other end is gone, this one does not know yet */
        return size_bytes;
    size_t used = s->peer->pending_bytes;
    size_t room = used < s->peer->window_bytes ? s->peer->window_bytes - used : 0;
    size_t n = MIN(size_bytes, room);
    for (size_t at = 0; at < n;) {
        size_t piece = MIN(n - at, (size_t)BURST_BYTES);
        if (piece > 1 && sim_rng_next(&sim->network_rng) % 4 == 0)
            piece = sim_rng_range(&sim->network_rng, 1, piece - 1);
        dispatch(s->peer, SEGMENT_DATA, data + at, piece);
        at += piece;
    }
    return n;
}

static FIBER int write_all(struct sim_stream *s, const struct iovec *iov, int iov_count, struct scope *scope)
{
    for (int i = 0; i < iov_count; i++) {
        for (size_t at = 0; at < iov[i].iov_len;) {
            int r = why_not_write(s);
            if (r < 0)
                return r;
            size_t n = write_some(s, (const uint8_t *)iov[i].iov_base + at, iov[i].iov_len - at);
            at += n;
            r = n == 0 ? waitq_wait(&s->writers, scope) : 0;
            if (r < 0)
                return r;
        }
    }
    return 0;
}

FIBER int sim_writev(struct stream *stream, struct iovec *iov, int iov_count, struct scope *scope)
{
    struct sim_stream *s = sim_stream(stream);
    int r = why_not_write(s);

    assert(!s->has_writer);
    if (r < 0)
        return r;
    s->has_writer = true;
    r = write_all(s, iov, iov_count, scope);
    s->has_writer = false;
    if (r < 0)
        break_stream(s, r);
    return r;
}

ssize_t sim_try_writev(struct stream *stream, const struct iovec *iov, int iov_count)
{
    struct sim_stream *s = sim_stream(stream);
    int r = why_not_write(s);
    size_t total = 0;

    if (r < 0)
        return r;
    if (s->has_writer)
        return 0;
    for (int i = 0; i < iov_count; i++) {
        size_t n = write_some(s, iov[i].iov_base, iov[i].iov_len);
        total += n;
        if (n < iov[i].iov_len)
            break;
    }
    return (ssize_t)total;
}

/* As if probes were sent all the time. */
uint64_t sim_silent_ms(const struct stream *stream)
{
    const struct sim_stream *s = container_of(stream, struct sim_stream, stream);
    const struct sim_link *l = sim_link_find(s->process->sim, s->process->host, s->peer_host);

    return l && l->is_held ? (s->process->sim->now_ns - l->held_at_ns) / 1000000 : 0;
}

/* ---- faults ---- */

static void notice_break(void *arg)
{
    struct sim_stream *s = arg;

    sim_trace(s->process->sim, "break", 0);
    if (sim_rng_next(&s->process->sim->network_rng) % 2)
        drop_segments(s, &s->arrived);
    break_stream(s, -ECONNRESET);
}

/* What was on its way is lost at once; each end learns of it by itself, some of them now. */
static void break_connections(struct sim *sim, struct sim_host *a, struct sim_host *b)
{
    struct sim_stream *s;

    list_for_each (s, &sim->streams, node) {
        bool is_between = (s->process->host == a && s->peer_host == b) || (s->process->host == b && s->peer_host == a);
        if (!is_between || s->broken)
            continue;
        timer_stop(&s->arrival);
        drop_segments(s, &s->in_flight);
        s->peer = NULL;
        uint64_t delay_ns = sim_rng_next(&sim->network_rng) % 2 ? sim_rng_range(&sim->network_rng, 0, BREAK_MAX_NS) : 0;
        timer_start(&sim->world, &s->breaking, sim->now_ns + delay_ns, notice_break, s);
    }
}

static struct sim_link *get_link(struct sim *sim, const char *host_a, const char *host_b)
{
    struct sim_host *a = sim_host_get(sim, host_a);
    struct sim_host *b = sim_host_get(sim, host_b);

    assert(a && b);
    struct sim_link *l = sim_link_find(sim, a, b);
    if (l)
        return l;
    l = NEW(struct sim_link);
    assert(l);
    l->a = a;
    l->b = b;
    list_add_tail(&sim->links, &l->node);
    return l;
}

void sim_cut(struct sim *sim, const char *host_a, const char *host_b)
{
    struct sim_link *l = get_link(sim, host_a, host_b);

    sim_trace(sim, "cut", 0);
    if (l->is_cut)
        return;
    l->is_cut = true;
    break_connections(sim, l->a, l->b);
}

void sim_hold(struct sim *sim, const char *host_a, const char *host_b)
{
    struct sim_link *l = get_link(sim, host_a, host_b);

    sim_trace(sim, "hold", 0);
    if (!l->is_held)
        l->held_at_ns = sim->now_ns;
    l->is_held = true;
}

void sim_heal(struct sim *sim, const char *host_a, const char *host_b)
{
    struct sim_link *l = get_link(sim, host_a, host_b);
    struct sim_stream *s;

    sim_trace(sim, "heal", 0);
    l->is_cut = false;
    l->is_held = false;
    list_for_each (s, &sim->streams, node)
        await_arrival(s);
    waitq_wake_all(&sim->healed, 0);
}

void sim_reset_connections(struct sim *sim, const char *host_a, const char *host_b)
{
    struct sim_link *l = get_link(sim, host_a, host_b);

    sim_trace(sim, "reset", 0);
    break_connections(sim, l->a, l->b);
}
