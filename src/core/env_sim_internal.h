/* core/env_sim_internal.h - the parts of the simulated world that its files share. */
#pragma once

#include "core/env_internal.h"
#include "core/env_sim.h"

struct sim_rng {
    uint64_t s[4];
};

void sim_rng_seed(struct sim_rng *r, uint64_t seed, uint64_t stream);
uint64_t sim_rng_next(struct sim_rng *r);
/* low <= result <= high */
uint64_t sim_rng_range(struct sim_rng *r, uint64_t low, uint64_t high);

struct sim_host {
    struct list node;
    char name[65];
    char address[32];
    uint16_t next_port, next_privileged_port;
};

/* The state of the way between two hosts, when it is not in order. */
struct sim_link {
    struct list node;
    struct sim_host *a, *b;
    bool is_cut, is_held;
    uint64_t held_at_ns;
};

struct sim {
    struct sim_config config;
    struct log *log;
    struct sched sched;
    struct env world; /* owner of the events that belong to no process */
    uint64_t now_ns;
    uint64_t steps, trace_hash;
    bool is_stopped;
    int next_pid;
    unsigned host_count;
    /* One stream of chance per purpose, so that a change in one place does not reshuffle all others. */
    struct sim_rng schedule_rng, network_rng, pool_rng, user_rng;
    struct list processes, hosts, links, listeners, streams, appointments;
    struct waitq healed; /* connections under way over a held link */
};

struct sim_process {
    struct env env; /* first */
    struct sim *sim;
    struct list node;
    char name[65];
    struct sim_host *host;
    struct sim_rng rng;
};

struct sim_listener {
    struct listener listener; /* first */
    struct list node;
    struct sim_process *process;
    char path[108]; /* "": TCP */
    accept_fn on_accept;
    void *arg;
};

/* What is on its way to a stream, or has arrived and was not read. */
struct sim_segment {
    struct list node;
    uint64_t at_ns;
    enum { SEGMENT_DATA, SEGMENT_END, SEGMENT_RESET } kind;
    size_t offset, size_bytes; /* read up to, end */
    uint8_t data[];
};

/* One end of a connection. */
struct sim_stream {
    struct stream stream; /* first */
    struct list node;
    struct sim_process *process;
    struct sim_host *peer_host;
    struct sim_stream *peer; /* NULL: gone */
    struct list in_flight, arrived;
    size_t pending_bytes; /* in both lists */
    size_t window_bytes;  /* the most there may be */
    struct timer arrival; /* of the first in flight; not running while the link is held */
    struct timer breaking;
    struct timer accepting; /* the server's end, until the listener has it */
    char accept_path[108];
    uint16_t accept_port;
    bool has_ended; /* the peer's end has arrived */
    bool is_shut;
    int broken; /* negative errno of all calls */
    bool has_writer;
    struct waitq readers, writers;
};

static inline struct sim_process *sim_process(struct env *env)
{
    return container_of(env, struct sim_process, env);
}

void sim_trace(struct sim *sim, const char *what, uint64_t number);
uint64_t sim_network_delay(struct sim *sim);

/* ---- env_sim_net.c ---- */

struct sim_host *sim_host_get(struct sim *sim, const char *name); /* made if need be; NULL for lack of memory */
struct sim_host *sim_host_find(struct sim *sim, struct sim_process *from, const char *name_or_address);
struct sim_link *sim_link_find(struct sim *sim, struct sim_host *a, struct sim_host *b); /* NULL: in order */
/* Two ends that know each other. 0 or -ENOMEM. */
int sim_stream_pair(struct sim_process *client, struct sim_process *server, struct sim_stream **ret_client,
                    struct sim_stream **ret_server);
void sim_stream_free(struct sim_stream *s);
/* The end dies without a word; the other one gets a reset, as from a kernel that knows the connection no more. */
void sim_stream_abort(struct sim_stream *s, int own_error);

FIBER ssize_t sim_readv(struct stream *s, const struct iovec *iov, int iov_count, struct scope *scope);
FIBER int sim_writev(struct stream *s, struct iovec *iov, int iov_count, struct scope *scope);
ssize_t sim_try_writev(struct stream *s, const struct iovec *iov, int iov_count);
uint64_t sim_silent_ms(const struct stream *s);
void sim_shutdown(struct stream *s);
void sim_close(struct stream *s);

/* ---- env_sim_connect.c ---- */

FIBER int sim_connect(struct env *env, const struct address *to, const struct stream_options *options,
                      struct scope *scope, struct stream **ret_stream);
int sim_listen(struct env *env, const struct address *at, int backlog, accept_fn on_accept, void *arg,
               struct listener **ret_listener);
void sim_listener_close(struct listener *l);
