/* core/env_real_internal.h - the parts of the real env that its files share. */
#pragma once

#include "core/env_internal.h"
#include "core/env_real.h"

#include <uv.h>

struct real_pool;

struct env_real {
    struct env env; /* first */
    struct sched sched;
    uv_loop_t loop;
    uv_prepare_t prepare; /* before the loop sleeps: due timers and runnable fibers */
    uv_idle_t idle;       /* active while fibers are left runnable: the loop does not sleep */
    uv_timer_t timer;     /* for the earliest of env.timers */
    uint64_t timer_at_ns; /* what `timer` is set to; 0: not running */
    bool is_stopped;
    int exit_code;
    struct real_pool *pool;
    struct list fd_watches;
    struct list signals;
    uint8_t random[256];
    size_t random_left;
};

static inline struct env_real *real(struct env *env)
{
    return container_of(env, struct env_real, env);
}

/* ---- env_real_pool.c ---- */

int real_pool_new(struct env_real *r, unsigned threads, struct real_pool **ret_pool);
void real_pool_submit(struct env *env, struct pool_job *job);
/* Runs what is queued, ends the threads, calls what is done. The async handle closes with the loop. */
void real_pool_free(struct real_pool *pool);

/* ---- env_real_poll.c: waiting for file descriptors ---- */

/* A descriptor under watch. The kernel's notice is level-triggered: while nobody waits, the first notice of a kind
 * ends the interest in it, and waiting renews it. So a reader that always comes back costs no epoll_ctl. */
struct fd_poll {
    uv_poll_t handle;
    struct env_real *env;
    int interest; /* UV_READABLE | UV_WRITABLE as told to libuv */
    struct waitq readers, writers;
    void (*on_readable)(struct fd_poll *p); /* instead of waking readers (listeners) */
    void (*closed)(struct fd_poll *p);      /* after fd_poll_close: the memory may go */
};

int fd_poll_open(struct env_real *r, struct fd_poll *p, int fd);
/* Does not close the descriptor; the caller does that right after. */
void fd_poll_close(struct fd_poll *p, void (*closed)(struct fd_poll *p));
/* Interest in `events` from now on, without a wait. */
int fd_poll_want(struct fd_poll *p, int events);
FIBER int fd_poll_wait(struct fd_poll *p, int event, struct scope *scope);

FIBER int real_wait_readable(struct env *env, int fd, struct scope *scope);
void real_forget_fd(struct env *env, int fd);
void real_free_fd_watches(struct env_real *r);

/* ---- env_real_stream.c, env_real_listen.c, env_real_connect.c ---- */

struct real_stream {
    struct stream stream; /* first */
    int fd;
    int broken; /* negative errno that every later write gets; 0: fine */
    bool is_shut;
    bool was_short; /* the last read got less than it had room for: the next one waits first */
    bool has_writer;
    struct fd_poll poll;
};

/* Takes the descriptor (given). */
int real_stream_new(struct env_real *r, int fd, bool is_unix, struct stream **ret_stream);
/* Finds the names of both ends anew: once a connection that was under way stands. */
void real_stream_name(struct stream *s);
FIBER ssize_t real_readv(struct stream *s, const struct iovec *iov, int iov_count, struct scope *scope);
FIBER int real_writev(struct stream *s, struct iovec *iov, int iov_count, struct scope *scope);
ssize_t real_try_writev(struct stream *s, const struct iovec *iov, int iov_count);
void real_shutdown(struct stream *s);
void real_close(struct stream *s);
int real_fd(const struct stream *s);
size_t real_unacked(const struct stream *s);
uint64_t real_silent_ms(const struct stream *s);
void real_socket_options(int fd, const struct stream_options *o);
void real_set_options(struct stream *s, const struct stream_options *o);

FIBER int real_connect(struct env *env, const struct address *to, const struct stream_options *options,
                       struct scope *scope, struct stream **ret_stream);

int real_listen(struct env *env, const struct address *at, int backlog, accept_fn on_accept, void *arg,
                struct listener **ret_listener);
void real_listener_close(struct listener *l);
