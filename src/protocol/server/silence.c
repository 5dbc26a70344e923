/* Clients that are cut off without a reset: packets are dropped, a host lost its power. What they hold (locks, replicate's
 * sessions) keeps others waiting, so it goes after transport.tcp-user-timeout.
 *
 * The kernel's own TCP_USER_TIMEOUT is set too, but it is not enough: its time begins anew when something is sent after a
 * while of idleness, because probes stop as soon as data is under way. A lock that is asked for when the holder has been
 * away for 40 s would wait for 42 s more. So we ask the kernel how long the other one has said nothing, now and then, and
 * at the moment when the time would be over. */
#include "protocol/server/server_internal.h"

#define LOOK_MAX_MS 10000 /* half of the time after which an idle connection is probed */

static struct stream_options options_of(const struct server *s)
{
    struct stream_options o = { .user_timeout_s = s->user_timeout_s };

    if (s->keeps_alive) {
        o.keepalive_time_s = s->keepalive_time_s;
        o.keepalive_interval_s = s->keepalive_interval_s;
        o.keepalive_count = s->keepalive_count;
    }
    return o;
}

/* Ends those that have been silent for too long. When to look again. */
static uint64_t end_silent(struct server *s)
{
    uint64_t limit_ms = s->user_timeout_s * 1000ull;
    uint64_t next_ms = MIN(limit_ms / 4, (uint64_t)LOOK_MAX_MS);
    struct connection *c;

    list_for_each (c, &s->connections, node) {
        uint64_t silent_ms = c->is_gone ? 0 : stream_silent_ms(c->peer->stream);

        if (silent_ms < limit_ms) {
            next_ms = MIN(next_ms, limit_ms - silent_ms);
            continue;
        }
        TLOG(s->me, LOG_WARNING, "client-silent", "client=%s host=%s silent-ms=%llu", c->client ? c->client->name : "-",
             c->host, (unsigned long long)silent_ms);
        rpc_peer_disconnect(c->peer, -ETIMEDOUT);
    }
    return next_ms;
}

static void look(void *arg)
{
    struct server *s = arg;
    struct env *env = s->me->env;

    if (list_empty(&s->connections) || s->user_timeout_s == 0)
        return;
    timer_start(env, &s->silence, env_deadline_ms(env, end_silent(s)), look, s);
}

void silence_watch(struct connection *c)
{
    struct stream_options o = options_of(c->s);

    stream_set_options(c->peer->stream, &o);
    if (c->s->silence.at_ns == 0)
        look(c->s);
}

void silence_reconfigured(struct server *s)
{
    struct stream_options o = options_of(s);
    struct connection *c;

    list_for_each (c, &s->connections, node) {
        if (!c->is_gone)
            stream_set_options(c->peer->stream, &o);
    }
    timer_stop(&s->silence);
    look(s);
}
