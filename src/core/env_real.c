/* core/env_real.c - the loop of a real process.
 *
 * libuv waits for the kernel; what the program does in answer is fibers. They run from the prepare step, just before
 * the loop would sleep: first due timers, then all runnable fibers and those they wake, for DRAIN_ROUNDS rounds; if
 * some are left (fibers that yield), the idle handle keeps the loop from sleeping. A wake-up therefore costs a list
 * operation and no system call. */
#include "core/env_real_internal.h"
#include "core/log.h"
#include "core/mem.h"

#include <signal.h>
#include <sys/random.h>
#include <unistd.h>

#define DRAIN_ROUNDS 64

/* ---- time and chance ---- */

static uint64_t real_now_ns(struct env *env)
{
    return clock_monotonic_ns();
}

static void real_wall_time(struct env *env, struct timespec *ret)
{
    clock_wall_time(ret);
}

static void fill_random(uint8_t *to, size_t size_bytes)
{
    while (size_bytes > 0) {
        ssize_t n = getrandom(to, size_bytes, 0);
        if (n < 0) {
            assert(errno == EINTR); /* the only error there is for valid arguments */
            continue;
        }
        to += n;
        size_bytes -= (size_t)n;
    }
}

static void real_random(struct env *env, void *data, size_t size_bytes)
{
    struct env_real *r = real(env);

    if (size_bytes > sizeof(r->random)) {
        fill_random(data, size_bytes);
        return;
    }
    if (r->random_left < size_bytes) {
        fill_random(r->random, sizeof(r->random));
        r->random_left = sizeof(r->random);
    }
    r->random_left -= size_bytes;
    memcpy(data, r->random + r->random_left, size_bytes);
}

/* ---- the loop ---- */

static void ignore_idle(uv_idle_t *handle)
{
}

static void ignore_timer(uv_timer_t *handle)
{
    ((struct env_real *)handle->data)->timer_at_ns = 0; /* its work is that the loop woke up */
}

/* Deadlines come and go with every call and nearly never pass: a timer that is set too early is left alone, fires once
 * for nothing, and is then set for the earliest of those that are left. */
static void set_timer(struct env_real *r)
{
    const struct timer *first = r->env.timers.first;

    if (!first || (r->timer_at_ns && r->timer_at_ns <= first->at_ns))
        return;
    r->timer_at_ns = first->at_ns;
    uv_update_time(&r->loop);
    uint64_t now_ns = clock_monotonic_ns();
    uint64_t ms = first->at_ns > now_ns ? (first->at_ns - now_ns + 999999) / 1000000 : 0;
    uv_timer_start(&r->timer, ignore_timer, ms, 0);
}

static void run_due_timers(struct env_real *r)
{
    uint64_t last_seq = r->env.timers.next_seq; /* those started meanwhile have to wait for their turn */

    r->env.loop_now_ns = clock_monotonic_ns();
    while (r->env.timers.first && r->env.timers.first->seq < last_seq) {
        struct timer *t = timer_heap_take_due(&r->env.timers, r->env.loop_now_ns);
        if (!t)
            return;
        t->fn(t->arg);
    }
}

static void before_sleep(uv_prepare_t *handle)
{
    struct env_real *r = handle->data;

    run_due_timers(r);
    bool some_left = sched_run_rounds(&r->sched, DRAIN_ROUNDS);
    if (some_left != (bool)uv_is_active((uv_handle_t *)&r->idle)) {
        if (some_left)
            uv_idle_start(&r->idle, ignore_idle);
        else
            uv_idle_stop(&r->idle);
    }
    set_timer(r);
    if (r->is_stopped)
        uv_stop(&r->loop);
}

/* ---- signals ---- */

struct signal_watch {
    uv_signal_t handle;
    struct list node;
    int signo;
    void (*fn)(void *arg);
    void *arg;
};

static void on_signal(uv_signal_t *handle, int signo)
{
    struct signal_watch *w = handle->data;

    w->fn(w->arg);
}

static void free_signal_watch(uv_handle_t *handle)
{
    mem_free(handle->data);
}

static int real_on_signal(struct env *env, int signo, void (*fn)(void *arg), void *arg)
{
    struct env_real *r = real(env);
    struct signal_watch *w;

    list_for_each (w, &r->signals, node) {
        if (w->signo == signo) {
            w->fn = fn;
            w->arg = arg;
            return 0;
        }
    }
    w = NEW(struct signal_watch);
    if (!w)
        return -ENOMEM;
    w->signo = signo;
    w->fn = fn;
    w->arg = arg;
    w->handle.data = w;
    int err = uv_signal_init(&r->loop, &w->handle);
    if (err < 0) {
        mem_free(w);
        return err;
    }
    list_add_tail(&r->signals, &w->node);
    err = uv_signal_start(&w->handle, on_signal, signo);
    if (err < 0) {
        list_del(&w->node);
        uv_close((uv_handle_t *)&w->handle, free_signal_watch);
    }
    return err;
}

/* ---- life cycle ---- */

static const struct env_ops real_ops = {
    .now_ns = real_now_ns,
    .wall_time = real_wall_time,
    .random = real_random,
    .pool_submit = real_pool_submit,
    .connect = real_connect,
    .readv = real_readv,
    .writev = real_writev,
    .try_writev = real_try_writev,
    .shutdown = real_shutdown,
    .close = real_close,
    .fd = real_fd,
    .set_options = real_set_options,
    .silent_ms = real_silent_ms,
    .unacked = real_unacked,
    .listen = real_listen,
    .listener_close = real_listener_close,
    .wait_readable = real_wait_readable,
    .forget_fd = real_forget_fd,
    .on_signal = real_on_signal,
};

static int start_handles(struct env_real *r)
{
    uv_prepare_init(&r->loop, &r->prepare); /* these three cannot fail */
    uv_idle_init(&r->loop, &r->idle);
    uv_timer_init(&r->loop, &r->timer);
    r->prepare.data = r->idle.data = r->timer.data = r;
    return uv_prepare_start(&r->prepare, before_sleep); /* keeps the loop alive until stopped */
}

static void close_loop(struct env_real *r)
{
    uv_prepare_stop(&r->prepare);
    uv_close((uv_handle_t *)&r->prepare, NULL);
    uv_close((uv_handle_t *)&r->idle, NULL);
    uv_close((uv_handle_t *)&r->timer, NULL);
    uv_run(&r->loop, UV_RUN_DEFAULT); /* until the last handle has closed */
    int err = uv_loop_close(&r->loop);
    assert(err == 0);
}

struct env *env_real_new(struct log *log, unsigned pool_threads)
{
    struct env_real *r = NEW(struct env_real);

    if (!r)
        return NULL;
    if (sched_init(&r->sched) < 0) {
        mem_free(r);
        return NULL;
    }
    env_init(&r->env, &real_ops, &r->sched, log);
    list_init(&r->fd_watches);
    list_init(&r->signals);
    r->env.pid = getpid();
    r->env.loop_now_ns = clock_monotonic_ns();
    if (gethostname(r->env.host_name, sizeof(r->env.host_name) - 1) < 0)
        strcpy(r->env.host_name, "localhost");
    if (uv_loop_init(&r->loop) < 0) {
        sched_done(&r->sched);
        mem_free(r);
        return NULL;
    }
    signal(SIGPIPE, SIG_IGN); /* a lost connection is a return value */
    if (start_handles(r) < 0 || real_pool_new(r, pool_threads ? pool_threads : 16, &r->pool) < 0) {
        close_loop(r);
        sched_done(&r->sched);
        mem_free(r);
        return NULL;
    }
    return &r->env;
}

int env_real_run(struct env *env)
{
    struct env_real *r = real(env);

    while (!r->is_stopped)
        uv_run(&r->loop, UV_RUN_DEFAULT);
    r->is_stopped = false;
    return r->exit_code;
}

void env_real_stop(struct env *env, int code)
{
    real(env)->is_stopped = true;
    real(env)->exit_code = code;
    uv_stop(&real(env)->loop);
}

void env_real_free(struct env *env)
{
    if (!env)
        return;
    struct env_real *r = real(env);
    struct signal_watch *w;

    assert(env->fiber_count == 0);
    real_pool_free(r->pool);
    timer_heap_clear(&env->timers);
    real_free_fd_watches(r);
    list_for_each (w, &r->signals, node)
        uv_close((uv_handle_t *)&w->handle, free_signal_watch);
    close_loop(r);
    sched_done(&r->sched);
    mem_free(r);
}

struct awaited_fiber {
    struct env *env;
    fiber_fn fn;
    void *arg;
};

static void run_awaited(void *arg)
{
    struct awaited_fiber *a = arg;

    a->fn(a->arg);
    env_real_stop(a->env, 0);
}

void env_real_run_fiber(struct env *env, fiber_fn fn, void *arg)
{
    struct awaited_fiber a = { .env = env, .fn = fn, .arg = arg };
    int r = fiber_spawn(env, "awaited", run_awaited, &a);

    assert(r == 0);
    env_real_run(env);
}
