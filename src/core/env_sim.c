/* core/env_sim.c - the clock, the scheduler and the processes of the simulated world.
 *
 * One step is one turn of one fiber or one event. Nothing here or in the files it shares with may depend on an
 * address, on the real time, or on the order of a hash table: two runs of a seed must not differ in anything. */
#include "core/env_sim_internal.h"
#include "core/log.h"
#include "core/mem.h"

#include <stdio.h>

#define CHOICE_MAX       16         /* runnable fibers that are chosen from */
#define EPOCH_S          1767225600 /* 2026-01-01: where virtual time starts on the wall clock */
#define START_NS         1000000000 /* of the monotonic clock; 0 means "none" for deadlines */
#define TURN_MIN_NS      50         /* what one turn of a fiber takes */
#define TURN_MAX_NS      250
#define DEFAULT_NET_MIN  20000
#define DEFAULT_NET_MAX  500000
#define DEFAULT_POOL_MIN 5000
#define DEFAULT_POOL_MAX 200000

/* ---- chance: xoshiro256**, seeded by splitmix64 ---- */

static uint64_t splitmix(uint64_t *x)
{
    uint64_t z = *x += 0x9e3779b97f4a7c15;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

void sim_rng_seed(struct sim_rng *r, uint64_t seed, uint64_t stream)
{
    uint64_t x = seed;
    uint64_t y = splitmix(&x) ^ stream * 0xd1342543de82ef95;

    for (size_t i = 0; i < ARRAY_SIZE(r->s); i++)
        r->s[i] = splitmix(&y);
}

static uint64_t rotate_left(uint64_t v, unsigned by)
{
    return v << by | v >> (64 - by);
}

uint64_t sim_rng_next(struct sim_rng *r)
{
    uint64_t result = rotate_left(r->s[1] * 5, 7) * 9;
    uint64_t t = r->s[1] << 17;

    r->s[2] ^= r->s[0];
    r->s[3] ^= r->s[1];
    r->s[1] ^= r->s[2];
    r->s[0] ^= r->s[3];
    r->s[2] ^= t;
    r->s[3] = rotate_left(r->s[3], 45);
    return result;
}

uint64_t sim_rng_range(struct sim_rng *r, uint64_t low, uint64_t high)
{
    uint64_t width = high - low + 1;

    return width == 0 ? sim_rng_next(r) : low + sim_rng_next(r) % width;
}

/* ---- trace ---- */

void sim_trace(struct sim *sim, const char *what, uint64_t number)
{
    uint64_t h = sim->trace_hash;

    for (; *what; what++)
        h = (h ^ (uint8_t)*what) * 0x100000001b3;
    h = (h ^ number) * 0x9e3779b97f4a7c15;
    h = (h ^ sim->now_ns) * 0x9e3779b97f4a7c15;
    sim->trace_hash = h ^ h >> 29;
}

uint64_t sim_trace_hash(const struct sim *sim)
{
    return sim->trace_hash;
}

uint64_t sim_steps(const struct sim *sim)
{
    return sim->steps;
}

uint64_t sim_now_ns(const struct sim *sim)
{
    return sim->now_ns;
}

uint64_t sim_random(struct sim *sim)
{
    return sim_rng_next(&sim->user_rng);
}

uint64_t sim_network_delay(struct sim *sim)
{
    return sim_rng_range(&sim->network_rng, sim->config.delay_min_ns, sim->config.delay_max_ns);
}

/* ---- what a process sees ---- */

static uint64_t process_now_ns(struct env *env)
{
    return sim_process(env)->sim->now_ns;
}

static void process_wall_time(struct env *env, struct timespec *ret)
{
    uint64_t now_ns = sim_process(env)->sim->now_ns;

    ret->tv_sec = EPOCH_S + (time_t)(now_ns / 1000000000);
    ret->tv_nsec = (long)(now_ns % 1000000000);
}

static void process_random(struct env *env, void *data, size_t size_bytes)
{
    struct sim_rng *rng = &sim_process(env)->rng;
    uint8_t *to = data;

    while (size_bytes > 0) {
        uint64_t v = sim_rng_next(rng);
        size_t n = MIN(size_bytes, sizeof(v));
        memcpy(to, &v, n);
        to += n;
        size_bytes -= n;
    }
}

static void run_job(void *arg)
{
    struct pool_job *job = arg;

    sim_trace(sim_process(job->env)->sim, "job", (uint64_t)job->env->pid);
    job->fn(job->arg);
    job->done(job);
}

/* The event is the world's, not the process's: a job under way ends even if the process crashes meanwhile. */
static void process_pool_submit(struct env *env, struct pool_job *job)
{
    struct sim *sim = sim_process(env)->sim;
    uint64_t delay_ns = sim_rng_range(&sim->pool_rng, sim->config.pool_min_ns, sim->config.pool_max_ns);

    job->timer = (struct timer) { .at_ns = 0 };
    timer_start(&sim->world, &job->timer, sim->now_ns + delay_ns, run_job, job);
}

static int process_fd(const struct stream *s)
{
    return -1;
}

static void process_set_options(struct stream *s, const struct stream_options *options)
{
    /* what they are for, sim_silent_ms() tells without */
}

static size_t process_unacked(const struct stream *s)
{
    return 0; /* links have no buffers of their own */
}

static FIBER int process_wait_readable(struct env *env, int fd, struct scope *scope)
{
    return -ENOSYS;
}

static void process_forget_fd(struct env *env, int fd)
{
}

static int process_on_signal(struct env *env, int signo, void (*fn)(void *arg), void *arg)
{
    return -ENOSYS;
}

static const struct env_ops sim_ops = {
    .now_ns = process_now_ns,
    .wall_time = process_wall_time,
    .random = process_random,
    .pool_submit = process_pool_submit,
    .connect = sim_connect,
    .readv = sim_readv,
    .writev = sim_writev,
    .try_writev = sim_try_writev,
    .shutdown = sim_shutdown,
    .close = sim_close,
    .fd = process_fd,
    .set_options = process_set_options,
    .silent_ms = sim_silent_ms,
    .unacked = process_unacked,
    .listen = sim_listen,
    .listener_close = sim_listener_close,
    .wait_readable = process_wait_readable,
    .forget_fd = process_forget_fd,
    .on_signal = process_on_signal,
};

/* ---- the world ---- */

struct sim *sim_new(const struct sim_config *config, struct log *log)
{
    struct sim *sim = NEW(struct sim);

    if (!sim)
        return NULL;
    if (sched_init(&sim->sched) < 0) {
        mem_free(sim);
        return NULL;
    }
    sim->config = *config;
    if (sim->config.delay_max_ns == 0) {
        sim->config.delay_min_ns = DEFAULT_NET_MIN;
        sim->config.delay_max_ns = DEFAULT_NET_MAX;
    }
    if (sim->config.pool_max_ns == 0) {
        sim->config.pool_min_ns = DEFAULT_POOL_MIN;
        sim->config.pool_max_ns = DEFAULT_POOL_MAX;
    }
    sim->log = log;
    sim->now_ns = START_NS;
    sim->next_pid = 100;
    sim_rng_seed(&sim->schedule_rng, config->seed, 1);
    sim_rng_seed(&sim->network_rng, config->seed, 2);
    sim_rng_seed(&sim->pool_rng, config->seed, 3);
    sim_rng_seed(&sim->user_rng, config->seed, 4);
    env_init(&sim->world, &sim_ops, &sim->sched, log);
    list_init(&sim->processes);
    list_init(&sim->hosts);
    list_init(&sim->links);
    list_init(&sim->listeners);
    list_init(&sim->streams);
    list_init(&sim->appointments);
    waitq_init(&sim->healed);
    return sim;
}

struct appointment {
    struct list node;
    struct timer timer;
    struct sim *sim;
    void (*fn)(void *arg);
    void *arg;
};

static void free_all(struct sim *sim)
{
    struct sim_host *host;
    struct sim_link *link;
    struct appointment *a;

    list_for_each (link, &sim->links, node)
        mem_free(link);
    list_for_each (host, &sim->hosts, node)
        mem_free(host);
    list_for_each (a, &sim->appointments, node)
        mem_free(a);
}

void sim_free(struct sim *sim)
{
    if (!sim)
        return;
    assert(list_empty(&sim->processes));
    timer_heap_clear(&sim->world.timers);
    free_all(sim);
    sched_done(&sim->sched);
    mem_free(sim);
}

static void keep_appointment(void *arg)
{
    struct appointment *a = arg;

    list_del(&a->node);
    sim_trace(a->sim, "appointment", 0);
    a->fn(a->arg);
    mem_free(a);
}

int sim_at(struct sim *sim, uint64_t at_ns, void (*fn)(void *arg), void *arg)
{
    struct appointment *a = NEW(struct appointment);

    if (!a)
        return -ENOMEM;
    a->sim = sim;
    a->fn = fn;
    a->arg = arg;
    list_add_tail(&sim->appointments, &a->node);
    timer_start(&sim->world, &a->timer, at_ns, keep_appointment, a);
    return 0;
}

/* ---- processes ---- */

struct env *sim_process_new(struct sim *sim, const char *host, const char *name)
{
    struct sim_process *p = NEW(struct sim_process);

    if (!p)
        return NULL;
    p->host = sim_host_get(sim, host);
    if (!p->host) {
        mem_free(p);
        return NULL;
    }
    env_init(&p->env, &sim_ops, &sim->sched, sim->log);
    p->sim = sim;
    p->env.pid = sim->next_pid++;
    p->env.loop_now_ns = sim->now_ns;
    snprintf(p->env.host_name, sizeof(p->env.host_name), "%s", host);
    snprintf(p->name, sizeof(p->name), "%s", name);
    sim_rng_seed(&p->rng, sim->config.seed, 1000 + (uint64_t)p->env.pid);
    list_add_tail(&sim->processes, &p->node);
    return &p->env;
}

void sim_crash(struct env *env)
{
    struct sim_process *p = sim_process(env);
    struct sim_stream *s;

    if (env->is_crashed)
        return;
    sim_trace(p->sim, "crash", (uint64_t)env->pid);
    env->is_crashed = true;
    timer_heap_clear(&env->timers);
    list_for_each (s, &p->sim->streams, node)
        if (s->process == p)
            sim_stream_abort(s, -ESHUTDOWN);
    fiber_end_scoped_waits(env);
}

bool sim_is_crashed(struct env *env)
{
    return env->is_crashed;
}

size_t sim_live_fibers(struct env *env)
{
    return env->fiber_count;
}

void sim_process_free(struct env *env)
{
    if (!env)
        return;
    struct sim_process *p = sim_process(env);
    struct sim_stream *s;
    struct sim_listener *l;

    assert(env->fiber_count == 0);
    list_for_each (s, &p->sim->streams, node) /* as the kernel does when a process ends */
        if (s->process == p)
            sim_close(&s->stream);
    list_for_each (l, &p->sim->listeners, node)
        if (l->process == p)
            sim_listener_close(&l->listener);
    timer_heap_clear(&env->timers);
    list_del(&p->node);
    mem_free(p);
}

/* ---- running ---- */

/* The env whose first timer is the earliest, or NULL. Among those that are due the seed chooses. */
static struct env *choose_timer(struct sim *sim, uint64_t *ret_at_ns)
{
    struct env *earliest = sim->world.timers.first ? &sim->world : NULL;
    struct env *chosen = NULL;
    struct sim_process *p;
    uint64_t due = 0;

    if (earliest && earliest->timers.first->at_ns <= sim->now_ns) {
        chosen = earliest;
        due = 1;
    }
    list_for_each (p, &sim->processes, node) {
        const struct timer *t = p->env.timers.first;
        if (!t)
            continue;
        if (!earliest || t->at_ns < earliest->timers.first->at_ns)
            earliest = &p->env;
        if (t->at_ns <= sim->now_ns && sim_rng_next(&sim->schedule_rng) % ++due == 0)
            chosen = &p->env;
    }
    if (!chosen)
        chosen = earliest;
    if (chosen)
        *ret_at_ns = chosen->timers.first->at_ns;
    return chosen;
}

static void run_timer(struct sim *sim, struct env *env)
{
    struct timer *t = timer_heap_take_due(&env->timers, sim->now_ns);

    assert(t);
    sim->steps++;
    env->loop_now_ns = sim->now_ns;
    sim_trace(sim, "timer", (uint64_t)env->pid);
    t->fn(t->arg);
}

static void run_some_fiber(struct sim *sim)
{
    size_t choices = MIN(sim->sched.runnable_count, (size_t)CHOICE_MAX);
    size_t skip = sim_rng_next(&sim->schedule_rng) % choices;
    struct list *node = sim->sched.runnable.next;

    while (skip-- > 0)
        node = node->next;
    struct fiber *f = list_entry(node, struct fiber, node);
    sim->steps++;
    sim->now_ns += sim_rng_range(&sim->schedule_rng, TURN_MIN_NS, TURN_MAX_NS);
    f->env->loop_now_ns = sim->now_ns;
    sim_trace(sim, f->name, (uint64_t)f->env->pid);
    sched_run_fiber(&sim->sched, f);
}

bool sim_run(struct sim *sim, uint64_t until_ns)
{
    sim->is_stopped = false;
    while (!sim->is_stopped) {
        uint64_t at_ns = 0;
        struct env *env = choose_timer(sim, &at_ns);
        bool is_due = env && at_ns <= sim->now_ns;
        bool has_fiber = sim->sched.runnable_count > 0;

        if (sim->now_ns >= until_ns || (!has_fiber && !env)) {
            /* Nothing will happen, but time passes for who waits for it. */
            if (until_ns != UINT64_MAX)
                sim->now_ns = MAX(sim->now_ns, until_ns);
            return false;
        }
        if (has_fiber && !(is_due && sim_rng_next(&sim->schedule_rng) % 2)) {
            run_some_fiber(sim);
        } else {
            if (at_ns > until_ns) { /* nothing is runnable before that */
                sim->now_ns = until_ns;
                return false;
            }
            sim->now_ns = MAX(sim->now_ns, at_ns);
            run_timer(sim, env);
        }
    }
    return true;
}

void sim_stop(struct sim *sim)
{
    sim->is_stopped = true;
}
