/* Fibers, scopes, wait queues, mutexes, groups, timers and the pool, on the real loop. */
#include "core/env_real.h"
#include "core/gfid.h"
#include "core/log.h"
#include "core/mem.h"
#include "unit/unit.h"

#include <fenv.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

static int make_env(void **state)
{
    *state = env_real_new(log_discard(), 4);
    return *state ? 0 : -1;
}

static int free_env(void **state)
{
    env_real_free(*state);
    return 0;
}

/* The test's body in a fiber of its env. */
#define FIBER_TEST(name)                                 \
    static void name##_body(void *arg);                  \
    static void name(void **state)                       \
    {                                                    \
        assert_false(fiber_is_running());                \
        env_real_run_fiber(*state, name##_body, *state); \
    }                                                    \
    static void name##_body(void *arg)
#define RUN(name) cmocka_unit_test_setup_teardown(name, make_env, free_env)

static void spawn(struct env *env, fiber_fn fn, void *arg)
{
    assert_int_equal(fiber_spawn(env, "test", fn, arg), 0);
}

/* ---- start and order ---- */

struct trace {
    char text[64];
    size_t len;
    struct waitq q;
    struct scope scope;
    int result;
};

static void put(struct trace *t, char c)
{
    t->text[t->len++] = c;
    t->text[t->len] = '\0';
}

static void put_a(void *arg)
{
    put(arg, 'a');
    fiber_yield();
    put(arg, 'A');
}

static void put_b(void *arg)
{
    put(arg, 'b');
    fiber_yield();
    put(arg, 'B');
}

FIBER_TEST(fibers_start_later_and_take_turns)
{
    struct trace t = { .len = 0 };

    spawn(arg, put_a, &t);
    spawn(arg, put_b, &t);
    assert_int_equal(t.len, 0);
    fiber_yield();
    assert_string_equal(t.text, "ab");
    fiber_yield();
    assert_string_equal(t.text, "abAB");
    assert_true(fiber_is_running());
    assert_ptr_equal(fiber_env(), arg);
    assert_string_equal(fiber_name(), "awaited");
}

struct crowd {
    struct env *env;
    struct waitq q, all_ended;
    size_t waiting, ended, most_waiting;
    uint64_t sum;
};

static void wait_in_crowd(void *arg)
{
    struct crowd *c = arg;

    c->waiting++;
    c->most_waiting = MAX(c->most_waiting, c->waiting);
    int r = waitq_wait(&c->q, NULL);
    c->waiting--;
    c->sum += (uint64_t)r;
    if (++c->ended == 20000)
        waitq_wake_one(&c->all_ended, 0);
}

FIBER_TEST(twenty_thousand_fibers_are_capped_and_all_run)
{
    struct crowd c = { .env = arg };

    waitq_init(&c.q);
    waitq_init(&c.all_ended);
    for (int i = 0; i < 20000; i++)
        spawn(arg, wait_in_crowd, &c);
    while (c.ended < 20000) {
        fiber_yield();
        assert_true(c.waiting <= FIBER_MAX_LIVE);
        waitq_wake_all(&c.q, 1);
    }
    assert_int_equal(c.sum, 20000);
    assert_true(c.most_waiting > 1000);
}

static void end_at_once(void *arg)
{
    ++*(int *)arg;
}

FIBER_TEST(a_spawn_without_memory_starts_nothing)
{
    int count = 0;

    mem_fail_at(1);
    int r = fiber_spawn(arg, "x", end_at_once, &count);
    mem_fail_at(0);
    assert_true(r == -ENOMEM || r == 0);
    fiber_yield();
    assert_int_equal(count, r == 0 ? 1 : 0);
}

static void change_rounding(void *arg)
{
    fesetround(FE_UPWARD);
    fiber_yield();
    *(int *)arg = fegetround();
}

FIBER_TEST(floating_point_modes_belong_to_the_fiber)
{
    int rounding = -1;

    spawn(arg, change_rounding, &rounding);
    fiber_yield();
    assert_int_equal(fegetround(), FE_TONEAREST);
    fiber_yield();
    assert_int_equal(rounding, FE_UPWARD);
}

/* ---- waiting ---- */

static void wait_and_trace(void *arg)
{
    struct trace *t = arg;

    t->result = waitq_wait(&t->q, &t->scope);
    put(t, 'x');
}

static void trace_init(struct trace *t, uint64_t deadline_ns)
{
    *t = (struct trace) { .result = 12345 };
    waitq_init(&t->q);
    scope_init(&t->scope, deadline_ns);
}

FIBER_TEST(a_waiter_gets_what_the_waker_gave)
{
    struct trace t;

    trace_init(&t, 0);
    assert_false(waitq_wake_one(&t.q, 1));
    spawn(arg, wait_and_trace, &t);
    fiber_yield();
    assert_false(waitq_is_empty(&t.q));
    assert_true(waitq_wake_one(&t.q, 77));
    assert_true(waitq_is_empty(&t.q));
    assert_int_equal(t.len, 0); /* it runs later */
    fiber_yield();
    assert_int_equal(t.result, 77);
}

FIBER_TEST(cancelling_ends_present_and_future_waits)
{
    struct trace t;

    trace_init(&t, 0);
    spawn(arg, wait_and_trace, &t);
    fiber_yield();
    scope_cancel(&t.scope);
    scope_cancel(&t.scope);
    fiber_yield();
    assert_int_equal(t.result, -ECANCELED);
    assert_true(waitq_is_empty(&t.q));
    assert_int_equal(waitq_wait(&t.q, &t.scope), -ECANCELED);
    assert_int_equal(fiber_sleep_ms(&t.scope, 1000), -ECANCELED);
    assert_int_equal(scope_check(&t.scope, arg), -ECANCELED);
    scope_done(&t.scope);
}

FIBER_TEST(a_wake_up_that_crossed_with_a_cancellation_counts)
{
    struct trace t;

    trace_init(&t, 0);
    spawn(arg, wait_and_trace, &t);
    fiber_yield();
    assert_true(waitq_wake_one(&t.q, 5));
    scope_cancel(&t.scope);
    fiber_yield();
    assert_int_equal(t.result, 5);
}

FIBER_TEST(a_wake_up_after_a_cancellation_goes_to_the_next_waiter)
{
    struct trace first, second;

    trace_init(&first, 0);
    trace_init(&second, 0);
    spawn(arg, wait_and_trace, &first);
    fiber_yield();
    scope_cancel(&first.scope);
    assert_false(waitq_wake_one(&first.q, 5)); /* nobody is left, although `first` has not run yet */
    fiber_yield();
    assert_int_equal(first.result, -ECANCELED);
    assert_int_equal(second.result, 12345);
}

FIBER_TEST(a_deadline_ends_the_wait_and_not_before)
{
    struct trace t;
    uint64_t begin_ns = env_now_ns(arg);

    trace_init(&t, env_deadline_ms(arg, 20));
    assert_int_equal(waitq_wait(&t.q, &t.scope), -ETIMEDOUT);
    assert_true(env_now_ns(arg) >= begin_ns + 20 * 1000000);
    assert_int_equal(waitq_wait(&t.q, &t.scope), -ETIMEDOUT);
    assert_int_equal(scope_check(&t.scope, arg), -ETIMEDOUT);
    assert_int_equal(scope_check(NULL, arg), 0);
}

FIBER_TEST(sleep_is_cut_short_by_the_deadline)
{
    struct scope late, early;

    scope_init(&late, env_deadline_ms(arg, 60000));
    scope_init(&early, env_deadline_ms(arg, 5));
    assert_int_equal(fiber_sleep_ms(&late, 5), 0);
    assert_int_equal(fiber_sleep_ms(&early, 60000), -ETIMEDOUT);
    assert_int_equal(fiber_sleep_ms(NULL, 1), 0);
}

FIBER_TEST(a_deadline_that_crossed_with_a_wake_up_leaves_no_timer_behind)
{
    enum { COUNT = 50 };
    SCOPED_FREE struct trace *t = mem_array(COUNT, sizeof(*t));

    for (size_t i = 0; i < COUNT; i++) {
        trace_init(&t[i], env_deadline_ms(arg, i % 5));
        spawn(arg, wait_and_trace, &t[i]);
    }
    for (size_t i = 0; i < COUNT; i++) {
        fiber_yield();
        waitq_wake_one(&t[i].q, 1);
    }
    (void)fiber_sleep_ms(NULL, 10);
    for (size_t i = 0; i < COUNT; i++) {
        assert_true(t[i].result == 1 || t[i].result == -ETIMEDOUT);
        assert_int_equal(t[i].len, 1);
    }
}

/* ---- mutex ---- */

struct shared_lock {
    struct fiber_mutex mutex;
    struct trace trace;
    int inside;
    char next_name;
};

static void lock_and_trace(void *arg)
{
    struct shared_lock *l = arg;
    char name = l->next_name++;

    for (int i = 0; i < 2; i++) {
        assert_int_equal(fiber_mutex_lock(&l->mutex, NULL), 0);
        assert_int_equal(l->inside++, 0);
        put(&l->trace, name);
        fiber_yield();
        l->inside--;
        fiber_mutex_unlock(&l->mutex);
    }
}

FIBER_TEST(a_mutex_goes_to_the_first_who_asked)
{
    struct shared_lock l = { .next_name = 'a' };

    fiber_mutex_init(&l.mutex);
    for (int i = 0; i < 3; i++)
        spawn(arg, lock_and_trace, &l);
    while (l.trace.len < 6)
        fiber_yield();
    assert_string_equal(l.trace.text, "abcabc");
    fiber_yield();
    fiber_yield();
    struct scope s;
    scope_init(&s, env_deadline_ms(arg, 2));
    assert_int_equal(fiber_mutex_lock(&l.mutex, NULL), 0);
    assert_int_equal(fiber_mutex_lock(&l.mutex, &s), -ETIMEDOUT);
    fiber_mutex_unlock(&l.mutex);
    assert_int_equal(fiber_mutex_lock(&l.mutex, NULL), 0);
    fiber_mutex_unlock(&l.mutex);
}

/* ---- groups ---- */

struct child {
    unsigned yields;
    int result;
    bool has_ended;
};

static int run_child(void *arg)
{
    struct child *c = arg;

    for (unsigned i = 0; i < c->yields; i++)
        fiber_yield();
    c->has_ended = true;
    return c->result;
}

static void start_children(struct group *g, struct env *env, struct child *c, size_t count)
{
    group_init(g, env);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(group_run(g, "child", run_child, &c[i]), 0);
}

FIBER_TEST(wait_all_waits_for_every_child)
{
    struct child c[] = { { .yields = 3, .result = 0 }, { .yields = 0, .result = -EIO }, { .yields = 7, .result = 5 } };
    struct group g;

    start_children(&g, arg, c, 3);
    group_wait_all(&g);
    assert_true(c[0].has_ended && c[1].has_ended && c[2].has_ended);
    assert_int_equal(g.succeeded, 2);
    assert_int_equal(g.ended, 3);
    group_wait_all(&g);
}

FIBER_TEST(wait_count_returns_at_the_quorum)
{
    struct child c[] = { { .yields = 1, .result = 0 }, { .yields = 2, .result = 0 }, { .yields = 50, .result = 0 } };
    struct group g;

    start_children(&g, arg, c, 3);
    assert_true(group_wait_count(&g, 2));
    assert_false(c[2].has_ended);
    group_wait_all(&g);
    assert_true(c[2].has_ended);
}

FIBER_TEST(wait_count_gives_up_when_too_many_have_failed)
{
    struct child c[] = { { .yields = 1, .result = -EIO },
                         { .yields = 2, .result = -EIO },
                         { .yields = 50, .result = 0 } };
    struct group g;

    start_children(&g, arg, c, 3);
    assert_false(group_wait_count(&g, 2));
    assert_false(c[2].has_ended);
    assert_true(group_wait_count(&g, 1));
    assert_false(group_wait_count(&g, 4));
    assert_true(group_wait_count(&g, 0));
    group_wait_all(&g);
}

FIBER_TEST(a_group_without_children_is_over)
{
    struct group g;

    group_init(&g, arg);
    group_wait_all(&g);
    assert_true(group_wait_count(&g, 0));
    assert_false(group_wait_count(&g, 1));
}

/* ---- timers ---- */

struct ticks {
    struct timer timer[8];
    char order[16];
    size_t count;
    struct env *env;
};

static struct ticks *ticks_now;

static void tick(void *arg)
{
    ticks_now->order[ticks_now->count++] = (char)('0' + ((struct timer *)arg - ticks_now->timer));
}

FIBER_TEST(timers_fire_in_order_and_equal_times_in_order_of_start)
{
    struct ticks t = { .count = 0 };
    uint64_t base_ns = env_deadline_ms(arg, 3);
    static const unsigned at_ms[] = { 3, 1, 2, 1, 0, 2, 1, 5 };

    ticks_now = &t;
    for (size_t i = 0; i < 8; i++)
        timer_start(arg, &t.timer[i], base_ns + at_ms[i] * 100000, tick, &t.timer[i]);
    timer_stop(&t.timer[3]);
    timer_stop(&t.timer[3]);
    timer_start(arg, &t.timer[1], base_ns + 150000, tick, &t.timer[1]); /* moved */
    (void)fiber_sleep_ms(NULL, 10);
    assert_string_equal(t.order, "4612507");
    timer_stop(&t.timer[0]);
}

enum { MANY_TIMERS = 1000 };

struct many_timers {
    struct timer timer[MANY_TIMERS];
    uint64_t at_ns[MANY_TIMERS];
    uint64_t last_ns;
    size_t count;
};

static struct many_timers *many_now;

static void check_order(void *arg)
{
    size_t i = (size_t)((struct timer *)arg - many_now->timer);

    assert_true(many_now->at_ns[i] >= many_now->last_ns);
    many_now->last_ns = many_now->at_ns[i];
    many_now->count++;
}

FIBER_TEST(a_thousand_timers_in_random_order_fire_sorted)
{
    SCOPED_FREE struct many_timers *m = NEW(struct many_timers);
    uint64_t base_ns = env_now_ns(arg);

    many_now = m;
    for (size_t i = 0; i < MANY_TIMERS; i++) {
        m->at_ns[i] = base_ns + env_random_u64(arg) % 5000000;
        timer_start(arg, &m->timer[i], m->at_ns[i], check_order, &m->timer[i]);
    }
    for (size_t i = 0; i < MANY_TIMERS; i += 4)
        timer_stop(&m->timer[i]);
    (void)fiber_sleep_ms(NULL, 8);
    assert_int_equal(m->count, MANY_TIMERS - MANY_TIMERS / 4);
}

/* ---- pool ---- */

struct job {
    pthread_t thread;
    bool is_done;
    struct waitq q;
};

static void note_thread(void *arg)
{
    ((struct job *)arg)->thread = pthread_self();
}

static void note_done(void *arg)
{
    struct job *j = arg;

    j->is_done = true;
    waitq_wake_one(&j->q, 0);
}

static void add_one(void *arg)
{
    __atomic_fetch_add((int *)arg, 1, __ATOMIC_RELAXED);
}

FIBER_TEST(the_pool_runs_jobs_on_other_threads)
{
    struct job j = { .is_done = false };

    waitq_init(&j.q);
    env_pool_run(arg, note_thread, &j);
    assert_false(pthread_equal(j.thread, pthread_self()));
    assert_int_equal(env_pool_post(arg, note_thread, note_done, &j), 0);
    assert_false(j.is_done);
    assert_int_equal(waitq_wait(&j.q, NULL), 0);
    assert_true(j.is_done);
    mem_fail_at(1);
    assert_int_equal(env_pool_post(arg, note_thread, note_done, &j), -ENOMEM);
    mem_fail_at(0);
}

struct relay {
    sem_t baton;
    unsigned passed, ended;
    struct waitq q;
};

static void wait_for_baton(void *arg)
{
    struct relay *r = arg;
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 5;
    if (sem_timedwait(&r->baton, &until) == 0)
        __atomic_fetch_add(&r->passed, 1, __ATOMIC_RELAXED);
}

static void pass_baton(void *arg)
{
    struct relay *r = arg;

    for (int i = 0; i < 3; i++)
        sem_post(&r->baton);
}

static void note_end(void *arg)
{
    struct relay *r = arg;

    r->ended++;
    waitq_wake_all(&r->q, 0);
}

FIBER_TEST(a_job_does_not_wait_for_one_before_it_while_there_is_room)
{
    struct relay r = { .passed = 0 };
    int ignored = 0;

    waitq_init(&r.q);
    sem_init(&r.baton, 0, 0);
    env_pool_run(arg, add_one, &ignored); /* one thread is idle from now on */
    (void)fiber_sleep_ms(NULL, 5);
    for (int i = 0; i < 3; i++)
        assert_int_equal(env_pool_post(arg, wait_for_baton, note_end, &r), 0);
    assert_int_equal(env_pool_post(arg, pass_baton, note_end, &r), 0);
    while (r.ended < 4)
        (void)waitq_wait(&r.q, NULL);
    assert_int_equal(r.passed, 3);
    sem_destroy(&r.baton);
}

struct pool_user {
    struct env *env;
    int *sum;
};

static int use_pool(void *arg)
{
    struct pool_user *u = arg;

    for (int i = 0; i < 20; i++)
        env_pool_run(u->env, add_one, u->sum);
    return 0;
}

FIBER_TEST(many_fibers_share_the_pool)
{
    int sum = 0;
    struct pool_user u = { .env = arg, .sum = &sum };
    struct group g;

    group_init(&g, arg);
    for (int i = 0; i < 100; i++)
        assert_int_equal(group_run(&g, "user", use_pool, &u), 0);
    group_wait_all(&g);
    assert_int_equal(sum, 2000);
}

/* ---- the loop itself ---- */

static void stop_with_7(void *arg)
{
    env_real_stop(arg, 7);
}

static void run_returns_the_code_given_to_stop(void **state)
{
    struct timer t = { .at_ns = 0 };

    timer_start(*state, &t, env_now_ns(*state) + 1000000, stop_with_7, *state);
    assert_int_equal(env_real_run(*state), 7);
}

static void random_bytes_differ(void **state)
{
    uint8_t a[600] = { 0 }, b[600] = { 0 };

    env_random(*state, a, sizeof(a));
    env_random(*state, b, sizeof(b));
    assert_memory_not_equal(a, b, sizeof(a));
    assert_true(env_random_u64(*state) != env_random_u64(*state));
    assert_true(strlen(env_host_name(*state)) > 0);
    struct gfid g = gfid_random(*state);
    assert_int_equal(g.bytes[6] >> 4, 4);
    assert_int_equal(g.bytes[8] >> 6, 2);
}

static void gfids_of_new_inodes_begin_alike(void **state)
{
    struct gfid g[3];
    for (int i = 0; i < 3; i++)
        g[i] = gfid_for_new_inode(*state);
    /* A second may end between two of them, not twice. */
    assert_true(memcmp(&g[0], &g[1], 2) == 0 || memcmp(&g[1], &g[2], 2) == 0);
    assert_false(gfid_equal(&g[0], &g[1]));
    assert_int_equal(g[0].bytes[6] >> 4, 4);
    assert_int_equal(g[0].bytes[8] >> 6, 2);
}

static void a_new_env_reports_lack_of_memory(void **state)
{
    struct mem_stats before, after;
    bool has_passed = false;

    mem_get_stats(&before);
    for (uint64_t n = 1; !has_passed; n++) {
        mem_fail_at(n);
        struct env *env = env_real_new(log_discard(), 1);
        has_passed = mem_fail_at(0) > 0;
        assert_true(has_passed ? env != NULL : env == NULL);
        env_real_free(env);
    }
    mem_get_stats(&after);
    assert_int_equal(after.live_blocks, before.live_blocks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(fibers_start_later_and_take_turns),
        RUN(twenty_thousand_fibers_are_capped_and_all_run),
        RUN(a_spawn_without_memory_starts_nothing),
        RUN(floating_point_modes_belong_to_the_fiber),
        RUN(a_waiter_gets_what_the_waker_gave),
        RUN(cancelling_ends_present_and_future_waits),
        RUN(a_wake_up_that_crossed_with_a_cancellation_counts),
        RUN(a_wake_up_after_a_cancellation_goes_to_the_next_waiter),
        RUN(a_deadline_ends_the_wait_and_not_before),
        RUN(sleep_is_cut_short_by_the_deadline),
        RUN(a_deadline_that_crossed_with_a_wake_up_leaves_no_timer_behind),
        RUN(a_mutex_goes_to_the_first_who_asked),
        RUN(wait_all_waits_for_every_child),
        RUN(wait_count_returns_at_the_quorum),
        RUN(wait_count_gives_up_when_too_many_have_failed),
        RUN(a_group_without_children_is_over),
        RUN(timers_fire_in_order_and_equal_times_in_order_of_start),
        RUN(a_thousand_timers_in_random_order_fire_sorted),
        RUN(the_pool_runs_jobs_on_other_threads),
        RUN(a_job_does_not_wait_for_one_before_it_while_there_is_room),
        RUN(many_fibers_share_the_pool),
        RUN(run_returns_the_code_given_to_stop),
        RUN(random_bytes_differ),
        RUN(gfids_of_new_inodes_begin_alike),
        cmocka_unit_test(a_new_env_reports_lack_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
