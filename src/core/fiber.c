/* core/fiber.c - starting, switching, waiting. */
#include "core/env_internal.h"
#include "core/mem.h"

#define KEEP_STACKS 1024 /* unused ones; each holds the pages its fibers have touched */
#define KEEP_FIBERS 4096

#if defined(__SANITIZE_THREAD__)
#define MAX_LIVE 2000 /* ThreadSanitizer ends at about 8,000 threads and fibers */
#else
#define MAX_LIVE FIBER_MAX_LIVE
#endif

/* In the thread's own block also when this is part of a shared library: it is read at every switch. */
static _Thread_local struct fiber *running __attribute__((tls_model("initial-exec")));

bool fiber_is_running(void)
{
    return running != NULL;
}

struct env *fiber_env(void)
{
    assert(running);
    return running->env;
}

const char *fiber_name(void)
{
    assert(running);
    return running->name;
}

/* ---- scheduler ---- */

static void fiber_main(void *arg);

int sched_init(struct sched *s)
{
    *s = (struct sched) { .runnable_count = 0 };
    list_init(&s->runnable);
    list_init(&s->starved);
    list_init(&s->free_stacks);
    list_init(&s->free_fibers);
    s->loop = stack_new_for_loop();
    struct fiber_stack *first = stack_new(fiber_main);
    if (!s->loop || !first) {
        stack_free(first);
        stack_free(s->loop);
        return -ENOMEM;
    }
    list_add_head(&s->free_stacks, stack_node(first));
    s->stacks_free = 1;
    return 0;
}

void sched_done(struct sched *s)
{
    assert(s->stacks_live == 0 && list_empty(&s->runnable) && list_empty(&s->starved));
    while (!list_empty(&s->free_stacks))
        stack_free(stack_of_node(s->free_stacks.next));
    while (!list_empty(&s->free_fibers)) {
        struct fiber *f = list_entry(s->free_fibers.next, struct fiber, node);
        list_del(&f->node);
        mem_free(f);
    }
    stack_free(s->loop);
}

static inline void make_runnable(struct fiber *f)
{
    list_add_tail(&f->sched->runnable, &f->node);
    f->sched->runnable_count++;
}

/* From the running fiber to the loop; returns when the fiber is resumed. */
static void leave(void)
{
    struct fiber *f = running;

    stack_switch(f->stack, f->sched->loop, false);
}

/* A stack for f, or false: it waits among the starved until another fiber ends. */
static bool give_stack(struct sched *s, struct fiber *f)
{
    if (s->stacks_live < MAX_LIVE) {
        if (!list_empty(&s->free_stacks)) {
            f->stack = stack_of_node(s->free_stacks.next);
            list_del(stack_node(f->stack));
            s->stacks_free--;
        } else {
            f->stack = stack_new(fiber_main);
        }
    }
    if (!f->stack) {
        assert(s->stacks_live > 0); /* the stack made by sched_init is free otherwise */
        list_add_tail(&s->starved, &f->node);
        return false;
    }
    s->stacks_live++;
    stack_prepare(f->stack, f);
    return true;
}

static void take_stack_back(struct sched *s, struct fiber_stack *st)
{
    s->stacks_live--;
    if (s->stacks_free >= KEEP_STACKS) {
        stack_free(st);
    } else {
        list_add_head(&s->free_stacks, stack_node(st)); /* the warmest first */
        s->stacks_free++;
    }
    if (!list_empty(&s->starved)) {
        struct fiber *next = list_entry(s->starved.next, struct fiber, node);
        list_del(&next->node);
        make_runnable(next);
    }
}

static void release_fiber(struct sched *s, struct fiber *f)
{
    list_del(&f->of_env);
    f->env->fiber_count--;
    if (s->stacks_free + s->stacks_live <= KEEP_FIBERS)
        list_add_head(&s->free_fibers, &f->node);
    else
        mem_free(f);
}

void sched_run_fiber(struct sched *s, struct fiber *f)
{
    assert(!running);
    list_del(&f->node);
    s->runnable_count--;
    if (!f->stack && !give_stack(s, f))
        return;
    s->switches++;
    running = f;
    stack_switch(s->loop, f->stack, false);
    running = NULL;
    if (f->fn || f->group_fn)
        return;
    take_stack_back(s, f->stack); /* it has ended */
    release_fiber(s, f);
}

bool sched_run_rounds(struct sched *s, unsigned rounds)
{
    for (; rounds > 0 && s->runnable_count > 0; rounds--)
        for (size_t left = s->runnable_count; left > 0 && s->runnable_count > 0; left--)
            sched_run_fiber(s, list_entry(s->runnable.next, struct fiber, node));
    return s->runnable_count > 0;
}

/* ---- life of a fiber ---- */

static void end_child(struct group *g, int result);

static void fiber_main(void *arg)
{
    struct fiber *f = arg;

    stack_entered(f->stack);
    if (f->group)
        end_child(f->group, f->group_fn(f->arg));
    else
        f->fn(f->arg);
    f->fn = NULL;
    f->group_fn = NULL;
    stack_switch(f->stack, f->sched->loop, true);
    assert(!"an ended fiber was resumed");
}

static struct fiber *fiber_new(struct env *env, const char *name)
{
    struct sched *s = env->sched;
    struct fiber *f;

    if (!list_empty(&s->free_fibers)) {
        f = list_entry(s->free_fibers.next, struct fiber, node);
        list_del(&f->node);
    } else {
        f = NEW(struct fiber);
        if (!f)
            return NULL;
        list_init(&f->node);
    }
    f->sched = s;
    f->env = env;
    f->name = name;
    f->stack = NULL;
    f->waiter = NULL;
    f->group = NULL;
    list_add_tail(&env->fibers, &f->of_env);
    env->fiber_count++;
    return f;
}

int fiber_spawn(struct env *env, const char *name, fiber_fn fn, void *arg)
{
    struct fiber *f = fiber_new(env, name);

    if (!f)
        return -ENOMEM;
    f->fn = fn;
    f->arg = arg;
    make_runnable(f);
    return 0;
}

/* ---- scope ---- */

void scope_init(struct scope *s, uint64_t deadline_ns)
{
    s->deadline_ns = deadline_ns;
    s->is_cancelled = false;
    list_init(&s->waiters);
}

void scope_cancel(struct scope *s)
{
    s->is_cancelled = true;
    while (!list_empty(&s->waiters))
        waiter_end(list_entry(s->waiters.next, struct waiter, in_scope), -ECANCELED);
}

int scope_check(const struct scope *s, struct env *env)
{
    if (!s)
        return 0;
    if (s->is_cancelled)
        return -ECANCELED;
    if (s->deadline_ns && s->deadline_ns <= env_now_ns(env))
        return -ETIMEDOUT;
    return 0;
}

void scope_done(struct scope *s)
{
    assert(list_empty(&s->waiters));
}

/* ---- waiting ---- */

void waiter_end(struct waiter *w, int result)
{
    assert(!w->is_over);
    list_del(&w->in_queue);
    list_del(&w->in_scope);
    w->is_over = true;
    w->result = result;
    w->fiber->waiter = NULL;
    make_runnable(w->fiber);
}

/* A timer runs on until its fiber does: between a wake-up and that, it may still fire. */
static void end_by_timer(struct waiter *w, int result)
{
    if (!w->is_over)
        waiter_end(w, result);
}

static void deadline_passed(void *arg)
{
    end_by_timer(arg, -ETIMEDOUT);
}

static void sleep_is_over(void *arg)
{
    end_by_timer(arg, 0);
}

/* Suspends the running fiber until waiter_end(w). */
static int suspend(struct waiter *w, struct timer *timer)
{
    running->waiter = w;
    leave();
    assert(w->is_over);
    if (timer)
        timer_stop(timer);
    return w->result;
}

static void waiter_init(struct waiter *w, struct scope *scope)
{
    w->fiber = running;
    w->scope = scope;
    w->is_over = false;
    w->result = 0;
    list_init(&w->in_queue);
    list_init(&w->in_scope);
    if (scope)
        list_add_tail(&scope->waiters, &w->in_scope);
}

/* The reason not to begin a wait, or 0. The time is that of the loop's turn: it costs no clock call. */
static int refuse_wait(const struct scope *scope)
{
    if (!scope)
        return 0;
    if (scope->is_cancelled)
        return -ECANCELED;
    if (running->env->is_crashed)
        return -ESHUTDOWN;
    if (scope->deadline_ns && scope->deadline_ns <= running->env->loop_now_ns)
        return -ETIMEDOUT;
    return 0;
}

void waitq_init(struct waitq *q)
{
    list_init(&q->waiters);
}

FIBER int waitq_wait(struct waitq *q, struct scope *scope)
{
    struct waiter w;
    struct timer deadline = { .at_ns = 0 };

    assert(running);
    int r = refuse_wait(scope);
    if (r < 0)
        return r;
    waiter_init(&w, scope);
    list_add_tail(&q->waiters, &w.in_queue);
    if (!scope || !scope->deadline_ns)
        return suspend(&w, NULL);
    timer_start(running->env, &deadline, scope->deadline_ns, deadline_passed, &w);
    return suspend(&w, &deadline);
}

bool waitq_wake_one(struct waitq *q, int result)
{
    if (list_empty(&q->waiters))
        return false;
    waiter_end(list_entry(q->waiters.next, struct waiter, in_queue), result);
    return true;
}

size_t waitq_wake_all(struct waitq *q, int result)
{
    size_t count = 0;

    while (waitq_wake_one(q, result))
        count++;
    return count;
}

bool waitq_is_empty(const struct waitq *q)
{
    return list_empty(&q->waiters);
}

FIBER void fiber_yield(void)
{
    assert(running);
    make_runnable(running);
    leave();
}

FIBER int fiber_sleep_until(struct scope *scope, uint64_t wake_ns)
{
    struct waiter w;
    struct timer alarm = { .at_ns = 0 };

    assert(running);
    int r = refuse_wait(scope);
    if (r < 0)
        return r;
    if (running->env->is_crashed)
        return -ESHUTDOWN;
    bool is_cut_short = scope && scope->deadline_ns && scope->deadline_ns < wake_ns;
    waiter_init(&w, scope);
    if (is_cut_short)
        timer_start(running->env, &alarm, scope->deadline_ns, deadline_passed, &w);
    else
        timer_start(running->env, &alarm, wake_ns, sleep_is_over, &w);
    running->is_sleeping = true;
    r = suspend(&w, &alarm);
    running->is_sleeping = false;
    return r;
}

FIBER int fiber_sleep_ms(struct scope *scope, uint64_t ms)
{
    assert(running);
    return fiber_sleep_until(scope, env_deadline_ms(running->env, ms));
}

void fiber_end_scoped_waits(struct env *env)
{
    struct fiber *f;

    list_for_each (f, &env->fibers, of_env)
        if (f->waiter && (f->waiter->scope || f->is_sleeping))
            waiter_end(f->waiter, -ESHUTDOWN);
}

/* ---- mutex ---- */

void fiber_mutex_init(struct fiber_mutex *m)
{
    m->is_held = false;
    waitq_init(&m->waiting);
}

FIBER int fiber_mutex_lock(struct fiber_mutex *m, struct scope *scope)
{
    if (m->is_held)
        return waitq_wait(&m->waiting, scope); /* 0: it was handed over */
    m->is_held = true;
    return 0;
}

void fiber_mutex_unlock(struct fiber_mutex *m)
{
    assert(m->is_held);
    if (!waitq_wake_one(&m->waiting, 0))
        m->is_held = false;
}

/* ---- group ---- */

void group_init(struct group *g, struct env *env)
{
    *g = (struct group) { .env = env };
    waitq_init(&g->waiting);
}

int group_run(struct group *g, const char *name, group_fn fn, void *arg)
{
    struct fiber *f = fiber_new(g->env, name);

    if (!f)
        return -ENOMEM;
    f->group = g;
    f->group_fn = fn;
    f->arg = arg;
    g->started++;
    make_runnable(f);
    return 0;
}

static bool is_all_ended(const struct group *g)
{
    return g->ended == g->started;
}

/* Are there `count` successes, or can there be no more? */
static bool is_decided(const struct group *g, size_t count)
{
    size_t failed = g->ended - g->succeeded;

    return g->succeeded >= count || g->started - failed < count;
}

static void end_child(struct group *g, int result)
{
    g->ended++;
    if (result >= 0)
        g->succeeded++;
    if (is_all_ended(g) || is_decided(g, g->wanted))
        waitq_wake_all(&g->waiting, 0);
}

FIBER void group_wait_all(struct group *g)
{
    g->wanted = SIZE_MAX;
    while (!is_all_ended(g))
        (void)waitq_wait(&g->waiting, NULL);
}

FIBER bool group_wait_count(struct group *g, size_t count)
{
    g->wanted = count;
    while (!is_decided(g, count))
        (void)waitq_wait(&g->waiting, NULL);
    return g->succeeded >= count;
}
