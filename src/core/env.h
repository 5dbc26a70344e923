/* core/env.h - the world behind one interface: time, timers, randomness, streams, the blocking pool, signals.
 *
 * One env belongs to one process (one simulated process in the simulator) and one loop thread. There are two kinds:
 * env_real.h (libuv, sockets, the kernel) and env_sim.h (virtual time, in-memory streams, a seeded scheduler). All
 * code outside the two goes through these functions; nothing calls time(2), socket(2), random(3), threads or sleeps.
 *
 * A simulated process that crashed keeps unwinding its fibers: from then on every env call that could have an effect
 * outside returns -ESHUTDOWN, timers no longer fire, waits with a scope and sleeps end with -ESHUTDOWN, and pool jobs
 * (which are plain computation) run at once.
 */
#pragma once

#include "core/base.h"
#include "core/fiber.h"
#include "core/list.h"
#include <sys/uio.h>
#include <time.h>

struct env;
struct log;

/* ---- time and chance ---- */

uint64_t env_now_ns(struct env *env);                      /* monotonic */
void env_wall_time(struct env *env, struct timespec *ret); /* UTC */
void env_random(struct env *env, void *data, size_t size_bytes);
uint64_t env_random_u64(struct env *env);
static inline uint64_t env_deadline_ms(struct env *env, uint64_t ms)
{
    return env_now_ns(env) + ms * 1000000;
}

struct timer {
    uint64_t at_ns; /* 0: not running */
    void (*fn)(void *arg);
    void *arg;
    struct env *env;
    uint64_t seq;                        /* internal: order among equal times */
    struct timer *child, *next, **owner; /* internal: pairing heap */
};

/* The struct is the caller's and must stay until the timer fired or was stopped. fn(arg) runs on the loop, outside any
 * fiber; it may start the timer again. Starting a running timer moves it. */
void timer_start(struct env *env, struct timer *t, uint64_t at_ns, void (*fn)(void *arg), void *arg);
void timer_stop(struct timer *t); /* also when it is not running */

/* ---- blocking work ---- */

/* Runs fn(arg) on a pool thread and suspends the fiber until it has returned. fn gets plain data only: no graph
 * object, inode or dict. Cannot be cancelled. In the simulator fn runs on the loop after a seeded delay. */
FIBER void env_pool_run(struct env *env, void (*fn)(void *arg), void *arg);
/* The same without a fiber: done(arg) is called on the loop afterwards. 0 or -ENOMEM. */
int env_pool_post(struct env *env, void (*fn)(void *arg), void (*done)(void *arg), void *arg) MUST_USE;

/* ---- streams ---- */

enum address_family { ADDRESS_TCP, ADDRESS_UNIX };

struct address {
    enum address_family family;
    char host[256];       /* TCP: numeric address or name; listening: "" = any address */
    uint16_t port;        /* TCP */
    char path[108];       /* UNIX */
    bool bind_privileged; /* connecting: try source ports below 1024 first */
};

struct stream;
struct listener;

struct stream_options { /* seconds; 0 = the kernel's default */
    uint32_t keepalive_time_s, keepalive_interval_s, keepalive_count, user_timeout_s;
};

/* Name look-up (on the pool), connection, TCP_NODELAY. 0 and a stream (returned), or -errno (-EHOSTUNREACH when the
 * name does not resolve, -ECONNREFUSED, -ETIMEDOUT, -ECANCELED, ...). */
FIBER int stream_connect(struct env *env, const struct address *to, const struct stream_options *options,
                         struct scope *scope, struct stream **ret_stream);
/* At least 1 and at most `max_bytes` bytes; 0 = the other side closed; else -errno. One reader at a time. */
FIBER ssize_t stream_read(struct stream *s, void *data, size_t max_bytes, struct scope *scope);
FIBER ssize_t stream_readv(struct stream *s, const struct iovec *iov, int iov_count, struct scope *scope);
/* All of it, or -errno (then the stream is broken). One writer at a time; iov may be changed by the call. */
FIBER int stream_writev(struct stream *s, struct iovec *iov, int iov_count, struct scope *scope);
/* As much as fits now without waiting (0 = nothing: the caller uses stream_writev from a fiber), or -errno. */
ssize_t stream_try_writev(struct stream *s, const struct iovec *iov, int iov_count);
/* Both directions end; waiting and later calls return -ENOTCONN (read: 0 or -ENOTCONN). Idempotent. */
void stream_shutdown(struct stream *s);
/* Frees it; no fiber may be inside a call on it. Accepts NULL. */
void stream_close(struct stream *s);
/* Numeric "address:port" of the other side, "" for unix sockets without a name. */
const char *stream_peer_name(const struct stream *s);
const char *stream_local_name(const struct stream *s);
/* Numeric address and port of the peer. Returns false for unix sockets. */
bool stream_peer_address(const struct stream *s, char host[static 64], uint16_t *ret_port);
/* The connection's file descriptor in the real env (for passing descriptors), -1 in the simulator. */
int stream_fd(const struct stream *s);
/* For a connection that came in (stream_connect takes them as an argument). Zeros leave what there is. */
void stream_set_options(struct stream *s, const struct stream_options *options);
/* For how long nothing at all has come from the other side's kernel although it owes an acknowledgement, of data or of
 * the kernel's own probes; 0: it owes nothing, or that is not known. */
uint64_t stream_silent_ms(const struct stream *s);
/* Bytes taken by a write that the other side's kernel has not acknowledged yet; 0 where that is not known. */
size_t stream_unacked_bytes(const struct stream *s);

typedef void (*accept_fn)(void *arg, struct stream *s); /* on the loop, outside any fiber; the stream is given */

/* 0 and a listener (returned), or -errno (-EADDRINUSE, -EACCES, ...). port 0 takes a free one. An existing unix socket
 * path without a listener behind it is replaced. */
int listener_open(struct env *env, const struct address *at, int backlog, accept_fn on_accept, void *arg,
                  struct listener **ret_listener);
uint16_t listener_port(const struct listener *l);
void listener_close(struct listener *l); /* accepts NULL */

/* ---- what only the real world has (the simulator answers -ENOSYS) ---- */

/* Until the file descriptor is readable (or has an error): 0, -ETIMEDOUT, -ECANCELED. For /dev/fuse and the like. */
FIBER int env_wait_readable(struct env *env, int fd, struct scope *scope);
/* To be called before closing a descriptor that env_wait_readable was used with. Nobody may be waiting for it. */
void env_forget_fd(struct env *env, int fd);
/* fn(arg) on the loop whenever the process gets the signal. One handler per signal. */
int env_on_signal(struct env *env, int signo, void (*fn)(void *arg), void *arg);

/* The host's name as in uname(2); simulated processes have names like "brick0". */
const char *env_host_name(struct env *env);
int env_pid(struct env *env);
/* The log lines of this process go to; never NULL. */
struct log *env_log(struct env *env);
