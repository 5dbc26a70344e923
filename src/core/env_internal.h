/* core/env_internal.h - what the two kinds of env share: the operations table and the parts every env begins with. */
#pragma once

#include "core/env.h"
#include "core/fiber_internal.h"

/* The kernel's clocks, for what must work before there is an env (core/env_real_clock.c). */
uint64_t clock_monotonic_ns(void);
void clock_wall_time(struct timespec *ret);

/* ---- timers: an intrusive pairing heap, so that starting one needs no memory ---- */

struct timer_heap {
    struct timer *first; /* the earliest, or NULL */
    uint64_t next_seq;
};

/* Takes the earliest timer off the heap, if it is due, marks it as not running and returns it, else NULL. */
struct timer *timer_heap_take_due(struct timer_heap *heap, uint64_t now_ns);
/* Stops all. */
void timer_heap_clear(struct timer_heap *heap);

/* ---- pool ---- */

struct pool_job {
    struct list node; /* internal to the pool */
    struct env *env;
    void (*fn)(void *arg);
    void (*done)(struct pool_job *job); /* on the loop */
    void *arg;
    struct timer timer; /* the simulator's */
};

/* ---- the table ---- */

struct env_ops {
    uint64_t (*now_ns)(struct env *env);
    void (*wall_time)(struct env *env, struct timespec *ret);
    void (*random)(struct env *env, void *data, size_t size_bytes);
    void (*pool_submit)(struct env *env, struct pool_job *job);
    FIBER int (*connect)(struct env *env, const struct address *to, const struct stream_options *options,
                         struct scope *scope, struct stream **ret_stream);
    FIBER ssize_t (*readv)(struct stream *s, const struct iovec *iov, int iov_count, struct scope *scope);
    FIBER int (*writev)(struct stream *s, struct iovec *iov, int iov_count, struct scope *scope);
    ssize_t (*try_writev)(struct stream *s, const struct iovec *iov, int iov_count);
    void (*shutdown)(struct stream *s);
    void (*close)(struct stream *s);
    int (*fd)(const struct stream *s);
    void (*set_options)(struct stream *s, const struct stream_options *options);
    uint64_t (*silent_ms)(const struct stream *s);
    size_t (*unacked)(const struct stream *s);
    int (*listen)(struct env *env, const struct address *at, int backlog, accept_fn on_accept, void *arg,
                  struct listener **ret_listener);
    void (*listener_close)(struct listener *l);
    FIBER int (*wait_readable)(struct env *env, int fd, struct scope *scope);
    void (*forget_fd)(struct env *env, int fd);
    int (*on_signal)(struct env *env, int signo, void (*fn)(void *arg), void *arg);
};

/* The first member of env_real and of sim's processes. */
struct env {
    const struct env_ops *ops;
    struct sched *sched; /* own, or the simulator's */
    struct log *log;
    char host_name[65];
    int pid;
    bool is_crashed; /* simulated processes only */
    struct timer_heap timers;
    uint64_t loop_now_ns; /* the time as of the present turn of the loop: never later than now */
    struct list fibers;   /* all live ones of this env */
    size_t fiber_count;   /* live and queued */
};

void env_init(struct env *env, const struct env_ops *ops, struct sched *sched, struct log *log);

/* The first member of the streams of both kinds. */
struct stream {
    struct env *env;
    bool is_unix;
    uint16_t peer_port;
    char peer_host[64];
    char peer_name[128];
    char local_name[128];
};

struct listener {
    struct env *env;
    uint16_t port;
};
