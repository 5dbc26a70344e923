/* core/env.c - hands each call to the kind of env it is for; what both kinds do alike is done here. */
#include "core/env_internal.h"
#include "core/mem.h"

void env_init(struct env *env, const struct env_ops *ops, struct sched *sched, struct log *log)
{
    env->ops = ops;
    env->sched = sched;
    env->log = log;
    list_init(&env->fibers);
}

uint64_t env_now_ns(struct env *env)
{
    return env->ops->now_ns(env);
}

void env_wall_time(struct env *env, struct timespec *ret)
{
    env->ops->wall_time(env, ret);
}

void env_random(struct env *env, void *data, size_t size_bytes)
{
    env->ops->random(env, data, size_bytes);
}

uint64_t env_random_u64(struct env *env)
{
    uint64_t v;

    env->ops->random(env, &v, sizeof(v));
    return v;
}

const char *env_host_name(struct env *env)
{
    return env->host_name;
}

int env_pid(struct env *env)
{
    return env->pid;
}

struct log *env_log(struct env *env)
{
    return env->log;
}

/* ---- pool ---- */

struct waiting_job {
    struct pool_job job;
    struct waitq finished;
};

static void wake_waiting_job(struct pool_job *job)
{
    waitq_wake_one(&container_of(job, struct waiting_job, job)->finished, 0);
}

FIBER void env_pool_run(struct env *env, void (*fn)(void *arg), void *arg)
{
    struct waiting_job w = { .job = { .env = env, .fn = fn, .done = wake_waiting_job, .arg = arg } };

    assert(fiber_is_running());
    if (env->is_crashed) {
        fn(arg);
        return;
    }
    waitq_init(&w.finished);
    env->ops->pool_submit(env, &w.job);
    (void)waitq_wait(&w.finished, NULL); /* ends with the job and not before */
}

struct posted_job {
    struct pool_job job;
    void (*done)(void *arg);
};

static void finish_posted_job(struct pool_job *job)
{
    struct posted_job *p = container_of(job, struct posted_job, job);
    void (*done)(void *arg) = p->done;
    void *arg = job->arg;

    mem_free(p);
    if (done)
        done(arg);
}

int env_pool_post(struct env *env, void (*fn)(void *arg), void (*done)(void *arg), void *arg)
{
    if (env->is_crashed)
        return -ESHUTDOWN;
    struct posted_job *p = NEW(struct posted_job);
    if (!p)
        return -ENOMEM;
    *p = (struct posted_job) { .job = { .env = env, .fn = fn, .done = finish_posted_job, .arg = arg }, .done = done };
    env->ops->pool_submit(env, &p->job);
    return 0;
}

/* ---- streams ---- */

FIBER int stream_connect(struct env *env, const struct address *to, const struct stream_options *options,
                         struct scope *scope, struct stream **ret_stream)
{
    static const struct stream_options plain;

    assert(fiber_is_running());
    if (env->is_crashed)
        return -ESHUTDOWN;
    return env->ops->connect(env, to, options ? options : &plain, scope, ret_stream);
}

FIBER ssize_t stream_readv(struct stream *s, const struct iovec *iov, int iov_count, struct scope *scope)
{
    return s->env->is_crashed ? -ESHUTDOWN : s->env->ops->readv(s, iov, iov_count, scope);
}

FIBER ssize_t stream_read(struct stream *s, void *data, size_t max_bytes, struct scope *scope)
{
    struct iovec iov = { .iov_base = data, .iov_len = max_bytes };

    return stream_readv(s, &iov, 1, scope);
}

FIBER int stream_writev(struct stream *s, struct iovec *iov, int iov_count, struct scope *scope)
{
    return s->env->is_crashed ? -ESHUTDOWN : s->env->ops->writev(s, iov, iov_count, scope);
}

ssize_t stream_try_writev(struct stream *s, const struct iovec *iov, int iov_count)
{
    return s->env->is_crashed ? -ESHUTDOWN : s->env->ops->try_writev(s, iov, iov_count);
}

void stream_shutdown(struct stream *s)
{
    s->env->ops->shutdown(s);
}

void stream_close(struct stream *s)
{
    if (s)
        s->env->ops->close(s);
}

const char *stream_peer_name(const struct stream *s)
{
    return s->peer_name;
}

const char *stream_local_name(const struct stream *s)
{
    return s->local_name;
}

bool stream_peer_address(const struct stream *s, char host[static 64], uint16_t *ret_port)
{
    if (s->is_unix)
        return false;
    memcpy(host, s->peer_host, sizeof(s->peer_host));
    *ret_port = s->peer_port;
    return true;
}

int stream_fd(const struct stream *s)
{
    return s->env->ops->fd(s);
}

void stream_set_options(struct stream *s, const struct stream_options *options)
{
    s->env->ops->set_options(s, options);
}

uint64_t stream_silent_ms(const struct stream *s)
{
    return s->env->ops->silent_ms(s);
}

size_t stream_unacked_bytes(const struct stream *s)
{
    return s->env->ops->unacked(s);
}

int listener_open(struct env *env, const struct address *at, int backlog, accept_fn on_accept, void *arg,
                  struct listener **ret_listener)
{
    if (env->is_crashed)
        return -ESHUTDOWN;
    return env->ops->listen(env, at, backlog, on_accept, arg, ret_listener);
}

uint16_t listener_port(const struct listener *l)
{
    return l->port;
}

void listener_close(struct listener *l)
{
    if (l)
        l->env->ops->listener_close(l);
}

/* ---- the real world ---- */

FIBER int env_wait_readable(struct env *env, int fd, struct scope *scope)
{
    assert(fiber_is_running());
    return env->ops->wait_readable(env, fd, scope);
}

void env_forget_fd(struct env *env, int fd)
{
    env->ops->forget_fd(env, fd);
}

int env_on_signal(struct env *env, int signo, void (*fn)(void *arg), void *arg)
{
    return env->ops->on_signal(env, signo, fn, arg);
}
