/* core_bench - what the primitives of src/core cost, one line each.
 *
 *     build/bench/micro/core_bench [NAME PREFIX]
 *
 * Figures to compare with are in docs/architecture.md: a fiber switch below 10 ns, a pooled fiber about 20 ns plus its
 * two switches, a round trip over loopback TCP 15-18 us of CPU time, over a unix socket 10-11 us. */
#include "core/buf.h"
#include "core/dict.h"
#include "core/env_real.h"
#include "core/env_sim.h"
#include "core/log.h"
#include "core/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

struct bench {
    struct env *env;
    const char *prefix;
    struct waitq q, done;
    struct fiber_mutex mutex;
    uint64_t left;
    struct stream *client, *server;
};

struct stopwatch {
    uint64_t wall_ns, cpu_ns;
};

static uint64_t cpu_now_ns(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000 +
           (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
}

static struct stopwatch start_watch(struct bench *b)
{
    return (struct stopwatch) { .wall_ns = env_now_ns(b->env), .cpu_ns = cpu_now_ns() };
}

static void report(struct bench *b, const char *name, struct stopwatch since, uint64_t count)
{
    double wall = (double)(env_now_ns(b->env) - since.wall_ns) / (double)count;
    double cpu = (double)(cpu_now_ns() - since.cpu_ns) / (double)count;

    printf("%-28s %10.1f ns wall %10.1f ns cpu\n", name, wall, cpu);
    fflush(stdout);
}

static bool wanted(struct bench *b, const char *name)
{
    return strncmp(name, b->prefix, strlen(b->prefix)) == 0;
}

static void start(struct bench *b, fiber_fn fn)
{
    if (fiber_spawn(b->env, "bench", fn, b) < 0)
        abort();
}

/* ---- fibers ---- */

static void yield_many(void *arg)
{
    struct bench *b = arg;

    while (b->left > 0) {
        b->left--;
        fiber_yield();
    }
    waitq_wake_one(&b->done, 0);
}

static void bench_switch(struct bench *b)
{
    struct stopwatch w = start_watch(b);

    b->left = 20000000;
    start(b, yield_many);
    (void)waitq_wait(&b->done, NULL);
    report(b, "fiber: yield (2 switches)", w, 20000000);
}

static void end_at_once(void *arg)
{
    struct bench *b = arg;

    if (--b->left == 0)
        waitq_wake_one(&b->done, 0);
}

static void bench_spawn(struct bench *b)
{
    enum { ROUNDS = 50000, BATCH = 100 };
    struct stopwatch w = start_watch(b);

    for (int i = 0; i < ROUNDS; i++) {
        b->left = BATCH;
        for (int j = 0; j < BATCH; j++)
            start(b, end_at_once);
        (void)waitq_wait(&b->done, NULL);
    }
    report(b, "fiber: spawn, run, end", w, (uint64_t)ROUNDS * BATCH);
}

static void wait_many(void *arg)
{
    struct bench *b = arg;

    while (waitq_wait(&b->q, NULL) == 1) {
    }
    waitq_wake_one(&b->done, 0);
}

static void bench_wake(struct bench *b)
{
    enum { ROUNDS = 10000000 };
    struct stopwatch w = start_watch(b);

    start(b, wait_many);
    for (int i = 0; i < ROUNDS; i++) {
        while (!waitq_wake_one(&b->q, 1))
            fiber_yield();
    }
    fiber_yield();
    waitq_wake_one(&b->q, 0);
    (void)waitq_wait(&b->done, NULL);
    report(b, "fiber: wake, run, wait", w, ROUNDS);
}

static void wait_in_scope(void *arg)
{
    struct bench *b = arg;
    struct scope s;

    scope_init(&s, env_deadline_ms(b->env, 3600000));
    while (waitq_wait(&b->q, &s) == 1) {
    }
    scope_done(&s);
    waitq_wake_one(&b->done, 0);
}

static void bench_wake_deadline(struct bench *b)
{
    enum { ROUNDS = 10000000 };
    struct stopwatch w = start_watch(b);

    start(b, wait_in_scope);
    for (int i = 0; i < ROUNDS; i++) {
        while (!waitq_wake_one(&b->q, 1))
            fiber_yield();
    }
    fiber_yield();
    waitq_wake_one(&b->q, 0);
    (void)waitq_wait(&b->done, NULL);
    report(b, "fiber: the same, deadline", w, ROUNDS);
}

static int child(void *arg)
{
    return 0;
}

static void bench_group(struct bench *b)
{
    enum { ROUNDS = 2000000 };
    struct stopwatch w = start_watch(b);

    for (int i = 0; i < ROUNDS; i++) {
        struct group g;
        group_init(&g, b->env);
        for (int j = 0; j < 3; j++)
            if (group_run(&g, "child", child, NULL) < 0)
                abort();
        group_wait_all(&g);
    }
    report(b, "fiber: group of 3", w, ROUNDS);
}

/* ---- memory, buffers, dicts ---- */

static void bench_mem(struct bench *b)
{
    enum { ROUNDS = 20000000 };
    struct stopwatch w = start_watch(b);

    for (int i = 0; i < ROUNDS; i++) {
        void *p = mem_alloc(200);
        __asm__ volatile("" : : "r"(p) : "memory");
        mem_free(p);
    }
    report(b, "mem: alloc and free 200", w, ROUNDS);
}

static void bench_buf(struct bench *b)
{
    static const size_t sizes[] = { 512, 4096, 131072 };
    enum { ROUNDS = 5000000 };

    for (size_t s = 0; s < ARRAY_SIZE(sizes); s++) {
        char name[40];
        struct stopwatch w = start_watch(b);
        for (int i = 0; i < ROUNDS; i++) {
            struct buf *data = buf_new(sizes[s]);
            buf_unref(data);
        }
        snprintf(name, sizeof(name), "buf: new and unref %zu", sizes[s]);
        report(b, name, w, ROUNDS);
    }
}

static const char *const keys[] = { "trusted.afr.dirty", "trusted.afr.web-client-0", "trusted.afr.web-client-1",
                                    "glusterfs.open-fd-count", "gfid-req" };

static struct dict *five_keys(void)
{
    struct dict *d = dict_new();

    for (uint64_t i = 0; i < ARRAY_SIZE(keys); i++)
        if (dict_set_uint(d, keys[i], i) < 0)
            abort();
    return d;
}

static void bench_dict(struct bench *b)
{
    enum { ROUNDS = 2000000 };
    struct stopwatch w = start_watch(b);
    uint64_t v, sum = 0;

    for (int i = 0; i < ROUNDS; i++)
        dict_unref(five_keys());
    report(b, "dict: build 5 keys, free", w, ROUNDS);

    struct dict *d = five_keys();
    w = start_watch(b);
    for (int i = 0; i < ROUNDS; i++) {
        for (size_t k = 0; k < ARRAY_SIZE(keys); k++)
            if (dict_get_uint(d, keys[k], &v) == 0)
                sum += v;
    }
    report(b, "dict: get all 5", w, ROUNDS);
    w = start_watch(b);
    for (int i = 0; i < ROUNDS; i++)
        sum += dict_has(d, "not-there");
    report(b, "dict: absent key", w, ROUNDS);
    if (sum == 1)
        printf("\n");
    dict_unref(d);
}

/* ---- timers, pool ---- */

static void ignore(void *arg)
{
}

static void bench_timer(struct bench *b)
{
    enum { TIMERS = 1000, ROUNDS = 10000 };
    struct timer *timers = mem_array(TIMERS, sizeof(*timers));
    struct stopwatch w = start_watch(b);
    uint64_t now_ns = env_now_ns(b->env);

    for (int i = 0; i < ROUNDS; i++) {
        for (int t = 0; t < TIMERS; t++)
            timer_start(b->env, &timers[t], now_ns + 3600000000000 + (uint64_t)t, ignore, NULL);
        for (int t = 0; t < TIMERS; t++)
            timer_stop(&timers[t]);
    }
    report(b, "timer: start and stop", w, (uint64_t)TIMERS * ROUNDS);
    mem_free(timers);
}

static void bench_pool(struct bench *b)
{
    enum { ROUNDS = 50000 };
    struct stopwatch w = start_watch(b);

    for (int i = 0; i < ROUNDS; i++)
        env_pool_run(b->env, ignore, NULL);
    report(b, "pool: empty job", w, ROUNDS);
}

/* ---- streams ---- */

static void on_accept(void *arg, struct stream *s)
{
    struct bench *b = arg;

    b->server = s;
    waitq_wake_one(&b->q, 0);
}

static void echo(void *arg)
{
    struct bench *b = arg;
    char data[1024];

    for (;;) {
        ssize_t n = stream_read(b->server, data, sizeof(data), NULL);
        if (n <= 0)
            break;
        struct iovec iov = { .iov_base = data, .iov_len = (size_t)n };
        if (stream_writev(b->server, &iov, 1, NULL) < 0)
            break;
    }
    stream_close(b->server);
    waitq_wake_one(&b->done, 0);
}

static void drain(void *arg)
{
    struct bench *b = arg;
    uint8_t *data = mem_alloc(131072);
    uint64_t sum = 0;

    for (;;) {
        ssize_t n = stream_read(b->server, data, 131072, NULL);
        if (n <= 0)
            break;
        sum += (uint64_t)n;
    }
    mem_free(data);
    b->left = sum;
    stream_close(b->server);
    waitq_wake_one(&b->done, 0);
}

static void connect_pair(struct bench *b, struct address *at, struct listener **ret_l)
{
    if (listener_open(b->env, at, 4, on_accept, b, ret_l) < 0)
        abort();
    at->port = listener_port(*ret_l);
    b->server = NULL;
    if (stream_connect(b->env, at, NULL, NULL, &b->client) < 0)
        abort();
    while (!b->server)
        (void)waitq_wait(&b->q, NULL);
}

static void bench_stream(struct bench *b, const char *kind, struct address at)
{
    enum { ROUNDS = 200000, PIECES = 8192, PIECE_BYTES = 65536 };
    struct listener *l;
    char data[128] = "", name[40];

    connect_pair(b, &at, &l);
    start(b, echo);
    struct stopwatch w = start_watch(b);
    for (int i = 0; i < ROUNDS; i++) {
        struct iovec iov = { .iov_base = data, .iov_len = sizeof(data) };
        if (stream_writev(b->client, &iov, 1, NULL) < 0 || stream_read(b->client, data, sizeof(data), NULL) <= 0)
            abort();
    }
    snprintf(name, sizeof(name), "stream %s: round trip", kind);
    report(b, name, w, ROUNDS);
    stream_close(b->client);
    (void)waitq_wait(&b->done, NULL);
    listener_close(l);

    connect_pair(b, &at, &l);
    start(b, drain);
    uint8_t *piece = mem_zalloc(PIECE_BYTES);
    w = start_watch(b);
    for (int i = 0; i < PIECES; i++) {
        struct iovec iov = { .iov_base = piece, .iov_len = PIECE_BYTES };
        if (stream_writev(b->client, &iov, 1, NULL) < 0)
            abort();
    }
    stream_close(b->client);
    (void)waitq_wait(&b->done, NULL);
    snprintf(name, sizeof(name), "stream %s: per 64 KiB", kind);
    report(b, name, w, PIECES);
    mem_free(piece);
    listener_close(l);
}

/* ---- all ---- */

static void run_all(void *arg)
{
    struct bench *b = arg;
    static const struct {
        const char *name;
        void (*fn)(struct bench *b);
    } parts[] = { { "fiber-switch", bench_switch },
                  { "fiber-spawn", bench_spawn },
                  { "fiber-wake", bench_wake },
                  { "fiber-deadline", bench_wake_deadline },
                  { "fiber-group", bench_group },
                  { "mem", bench_mem },
                  { "buf", bench_buf },
                  { "dict", bench_dict },
                  { "timer", bench_timer },
                  { "pool", bench_pool } };

    for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
        if (wanted(b, parts[i].name))
            parts[i].fn(b);
    struct address unix_at = { .family = ADDRESS_UNIX };
    snprintf(unix_at.path, sizeof(unix_at.path), "/tmp/core-bench-%d", env_pid(b->env));
    if (wanted(b, "stream-tcp"))
        bench_stream(b, "tcp", (struct address) { .family = ADDRESS_TCP, .host = "127.0.0.1" });
    if (wanted(b, "stream-unix"))
        bench_stream(b, "unix", unix_at);
}

int main(int argc, char **argv)
{
    struct bench b = { .prefix = argc > 1 ? argv[1] : "" };

    b.env = env_real_new(log_discard(), 0);
    if (!b.env)
        return 1;
    waitq_init(&b.q);
    waitq_init(&b.done);
    env_real_run_fiber(b.env, run_all, &b);
    env_real_free(b.env);
    return 0;
}
