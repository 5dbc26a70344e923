/* The simulated world: time, connections, faults, crashes, and that a seed decides everything. */
#include "core/env_sim.h"
#include "core/log.h"
#include "core/mem.h"
#include "unit/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SECOND_NS 1000000000ULL
#define PORT      24007

/* Two hosts; a server on one that answers every byte with the next letter, a client on the other. */
struct world {
    struct sim *sim;
    struct env *server, *client;
    struct listener *listener;
    size_t accepted, served;
    int server_result; /* of the last read that was no data */
    struct address to;
    struct stream *stream; /* the client's */
    struct scope scope;
    ssize_t result;
    uint64_t ended_ns;
    bool has_ended;
};

static void world_init(struct world *w, uint64_t seed)
{
    struct sim_config config = { .seed = seed };

    *w = (struct world) { .to = { .family = ADDRESS_TCP, .host = "alpha", .port = PORT } };
    w->sim = sim_new(&config, log_discard());
    w->server = sim_process_new(w->sim, "alpha", "server");
    w->client = sim_process_new(w->sim, "beta", "client");
    assert_non_null(w->server);
    assert_non_null(w->client);
    scope_init(&w->scope, 0);
}

static void world_done(struct world *w)
{
    if (!sim_is_crashed(w->client))
        stream_close(w->stream);
    listener_close(w->listener);
    sim_run(w->sim, UINT64_MAX);
    assert_int_equal(sim_live_fibers(w->server), 0);
    assert_int_equal(sim_live_fibers(w->client), 0);
    sim_process_free(w->server);
    sim_process_free(w->client);
    sim_free(w->sim);
}

struct session {
    struct world *w;
    struct stream *s;
};

static void serve(void *arg)
{
    struct session *session = arg;
    struct world *w = session->w;
    uint8_t data[1000];

    for (;;) {
        ssize_t n = stream_read(session->s, data, sizeof(data), NULL);
        if (n <= 0) {
            w->server_result = (int)n;
            break;
        }
        w->served += (size_t)n;
        for (ssize_t i = 0; i < n; i++)
            data[i]++;
        struct iovec iov = { .iov_base = data, .iov_len = (size_t)n };
        int r = stream_writev(session->s, &iov, 1, NULL);
        if (r < 0) {
            w->server_result = r;
            break;
        }
    }
    stream_close(session->s);
    mem_free(session);
}

static void on_accept(void *arg, struct stream *s)
{
    struct world *w = arg;
    struct session *session = NEW(struct session);

    assert_false(fiber_is_running());
    if (session)
        *session = (struct session) { .w = w, .s = s };
    w->accepted++;
    if (!session || fiber_spawn(w->server, "serve", serve, session) < 0) {
        stream_close(s);
        mem_free(session);
    }
}

static void listen_on(struct world *w)
{
    struct address at = { .family = ADDRESS_TCP, .host = "", .port = PORT };

    assert_int_equal(listener_open(w->server, &at, 16, on_accept, w, &w->listener), 0);
}

static void end(struct world *w, ssize_t result)
{
    w->result = result;
    w->ended_ns = sim_now_ns(w->sim);
    w->has_ended = true;
}

static void connect_only(void *arg)
{
    struct world *w = arg;

    end(w, stream_connect(w->client, &w->to, NULL, &w->scope, &w->stream));
}

static void start_client(struct world *w, fiber_fn fn)
{
    w->has_ended = false;
    assert_int_equal(fiber_spawn(w->client, "client", fn, w), 0);
}

static void run_client(struct world *w, fiber_fn fn)
{
    start_client(w, fn);
    sim_run(w->sim, UINT64_MAX);
    assert_true(w->has_ended);
}

/* Sends `abc` and reads until three letters have come back. */
static void ask(void *arg)
{
    struct world *w = arg;
    char answer[4] = "";
    size_t got = 0;
    struct iovec iov = { .iov_base = "abc", .iov_len = 3 };
    ssize_t r = stream_writev(w->stream, &iov, 1, &w->scope);

    while (r >= 0 && got < 3) {
        r = stream_read(w->stream, answer + got, 3 - got, &w->scope);
        if (r == 0)
            r = -EPIPE;
        got += r > 0 ? (size_t)r : 0;
    }
    end(w, r < 0 ? r : strcmp(answer, "bcd"));
}

/* Reads once. */
static void read_once(void *arg)
{
    struct world *w = arg;
    char c;

    end(w, stream_read(w->stream, &c, 1, &w->scope));
}

static void connected_world(struct world *w, uint64_t seed)
{
    world_init(w, seed);
    listen_on(w);
    run_client(w, connect_only);
    assert_int_equal(w->result, 0);
    assert_int_equal(w->accepted, 1);
}

/* ---- time ---- */

static void sleep_an_hour(void *arg)
{
    struct world *w = arg;

    end(w, fiber_sleep_ms(NULL, 3600000));
}

static void an_hour_passes_at_once(void **state)
{
    struct world w;
    struct timespec before, after;

    world_init(&w, 1);
    uint64_t begin_ns = sim_now_ns(w.sim);
    env_wall_time(w.client, &before);
    run_client(&w, sleep_an_hour);
    env_wall_time(w.client, &after);
    assert_int_equal(w.result, 0);
    assert_true(w.ended_ns - begin_ns >= 3600 * SECOND_NS);
    assert_true(w.ended_ns - begin_ns < 3601 * SECOND_NS);
    assert_int_equal(after.tv_sec - before.tv_sec, 3600);
    world_done(&w);
}

static void the_run_ends_at_the_given_time(void **state)
{
    struct world w;

    world_init(&w, 1);
    start_client(&w, sleep_an_hour);
    assert_false(sim_run(w.sim, 100 * SECOND_NS));
    assert_false(w.has_ended);
    assert_int_equal(sim_now_ns(w.sim), 100 * SECOND_NS);
    assert_int_equal(sim_live_fibers(w.client), 1);
    world_done(&w);
    assert_true(w.has_ended);
}

static void stop_the_world(void *arg)
{
    sim_stop(((struct world *)arg)->sim);
}

static void appointments_are_kept_and_may_stop_the_run(void **state)
{
    struct world w;

    world_init(&w, 1);
    assert_int_equal(sim_at(w.sim, 5 * SECOND_NS, stop_the_world, &w), 0);
    assert_true(sim_run(w.sim, UINT64_MAX));
    assert_int_equal(sim_now_ns(w.sim), 5 * SECOND_NS);
    assert_int_equal(sim_at(w.sim, 6 * SECOND_NS, stop_the_world, &w), 0);
    sim_process_free(w.server);
    sim_process_free(w.client);
    sim_free(w.sim); /* with an appointment left */
}

static void yield_until_the_deadline(void *arg)
{
    struct world *w = arg;

    while (scope_check(&w->scope, w->client) == 0)
        fiber_yield();
    end(w, scope_check(&w->scope, w->client));
}

static void polling_fibers_meet_their_deadline(void **state)
{
    struct world w;

    world_init(&w, 1);
    scope_init(&w.scope, env_deadline_ms(w.client, 1));
    run_client(&w, yield_until_the_deadline);
    assert_int_equal(w.result, -ETIMEDOUT);
    world_done(&w);
}

static void add_one(void *arg)
{
    ++*(int *)arg;
}

static void use_pool(void *arg)
{
    struct world *w = arg;
    int sum = 0;

    for (int i = 0; i < 10; i++)
        env_pool_run(w->client, add_one, &sum);
    assert_int_equal(env_pool_post(w->client, add_one, add_one, &w->served), 0);
    end(w, sum);
}

static void pool_jobs_take_time_on_the_loop(void **state)
{
    struct world w;

    world_init(&w, 1);
    uint64_t begin_ns = sim_now_ns(w.sim);
    run_client(&w, use_pool);
    assert_int_equal(w.result, 10);
    assert_int_equal(w.served, 2);
    assert_true(w.ended_ns >= begin_ns + 50000);
    world_done(&w);
}

static void what_only_the_real_world_has_is_refused(void **state)
{
    struct world w;

    connected_world(&w, 1);
    assert_int_equal(env_on_signal(w.client, 10, add_one, NULL), -ENOSYS);
    assert_int_equal(stream_fd(w.stream), -1);
    assert_string_equal(env_host_name(w.client), "beta");
    assert_true(env_pid(w.client) != env_pid(w.server));
    world_done(&w);
}

/* ---- connections ---- */

static void questions_are_answered_under_every_seed(void **state)
{
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct world w;
        connected_world(&w, seed);
        run_client(&w, ask);
        assert_int_equal(w.result, 0);
        stream_close(take(w.stream));
        sim_run(w.sim, UINT64_MAX);
        assert_int_equal(w.server_result, 0); /* it saw the end */
        world_done(&w);
    }
}

static void ends_know_each_others_addresses(void **state)
{
    struct world w;
    char host[64];
    uint16_t port = 0;

    connected_world(&w, 1);
    assert_string_equal(stream_peer_name(w.stream), "10.0.0.1:24007");
    assert_true(stream_peer_address(w.stream, host, &port));
    assert_string_equal(host, "10.0.0.1");
    assert_int_equal(port, PORT);
    assert_int_equal(strncmp(stream_local_name(w.stream), "10.0.0.2:", 9), 0);
    world_done(&w);
}

static void connecting_to_nobody_is_refused(void **state)
{
    struct world w;

    world_init(&w, 1);
    run_client(&w, connect_only);
    assert_int_equal(w.result, -ECONNREFUSED);
    strcpy(w.to.host, "no-such-host");
    run_client(&w, connect_only);
    assert_int_equal(w.result, -EHOSTUNREACH);
    world_done(&w);
}

static void addresses_are_taken_once_and_local_names_stay_local(void **state)
{
    struct world w;
    struct address at = { .family = ADDRESS_TCP, .host = "alpha", .port = PORT };
    struct listener *other = NULL;

    world_init(&w, 1);
    listen_on(&w);
    assert_int_equal(listener_open(w.server, &at, 16, on_accept, &w, &other), -EADDRINUSE);
    assert_int_equal(listener_open(w.client, &at, 16, on_accept, &w, &other), -EADDRNOTAVAIL);
    at = (struct address) { .family = ADDRESS_TCP };
    assert_int_equal(listener_open(w.client, &at, 16, on_accept, &w, &other), 0);
    assert_true(listener_port(other) >= 49152);
    listener_close(other);
    strcpy(w.to.host, "localhost"); /* of the client: nobody listens there */
    run_client(&w, connect_only);
    assert_int_equal(w.result, -ECONNREFUSED);
    strcpy(w.to.host, "10.0.0.1");
    run_client(&w, connect_only);
    assert_int_equal(w.result, 0);
    world_done(&w);
}

static void unix_paths_belong_to_one_host(void **state)
{
    struct world w;
    struct address path = { .family = ADDRESS_UNIX, .path = "/run/x" };

    world_init(&w, 1);
    assert_int_equal(listener_open(w.server, &path, 16, on_accept, &w, &w.listener), 0);
    w.to = path;
    run_client(&w, connect_only);
    assert_int_equal(w.result, -ECONNREFUSED);
    struct env *neighbour = sim_process_new(w.sim, "alpha", "neighbour");
    struct env *client = w.client;
    w.client = neighbour;
    run_client(&w, connect_only);
    assert_int_equal(w.result, 0);
    run_client(&w, ask);
    assert_int_equal(w.result, 0);
    stream_close(take(w.stream));
    sim_run(w.sim, UINT64_MAX);
    sim_process_free(neighbour);
    w.client = client;
    world_done(&w);
}

enum { BULK_BYTES = 1000000 };

static void send_bulk(void *arg)
{
    struct world *w = arg;
    SCOPED_FREE uint8_t *data = mem_zalloc(BULK_BYTES);
    struct iovec iov[2] = { { .iov_base = data, .iov_len = 10 },
                            { .iov_base = data + 10, .iov_len = BULK_BYTES - 10 } };

    for (size_t i = 0; i < BULK_BYTES; i++)
        data[i] = (uint8_t)(i * 2654435761U >> 11);
    assert_int_equal(stream_writev(w->stream, iov, 2, &w->scope), 0);
}

static void receive_bulk(void *arg)
{
    struct world *w = arg;
    uint8_t data[777];

    for (size_t at = 0; at < BULK_BYTES;) {
        ssize_t n = stream_read(w->stream, data, sizeof(data), &w->scope);
        if (n <= 0) {
            end(w, n);
            return;
        }
        for (ssize_t i = 0; i < n; i++, at++)
            assert_int_equal(data[i], (uint8_t)((uint8_t)(at * 2654435761U >> 11) + 1));
    }
    end(w, 0);
}

static void more_than_a_window_arrives_whole_and_in_order(void **state)
{
    for (uint64_t seed = 0; seed < 5; seed++) {
        struct world w;
        connected_world(&w, seed);
        assert_int_equal(fiber_spawn(w.client, "send", send_bulk, &w), 0);
        run_client(&w, receive_bulk);
        assert_int_equal(w.result, 0);
        assert_int_equal(w.served, BULK_BYTES);
        world_done(&w);
    }
}

static void a_full_window_holds_the_writer_until_the_deadline(void **state)
{
    struct world w;

    connected_world(&w, 3);
    scope_init(&w.scope, env_deadline_ms(w.client, 1000));
    sim_hold(w.sim, "alpha", "beta");
    struct iovec iov = { .iov_base = "x", .iov_len = 1 };
    size_t sent = 0;
    while (stream_try_writev(w.stream, &iov, 1) == 1)
        sent++;
    assert_in_range(sent, 16384, 262144);
    run_client(&w, ask);
    assert_int_equal(w.result, -ETIMEDOUT);
    assert_int_equal(stream_try_writev(w.stream, &iov, 1), -ETIMEDOUT); /* broken for good */
    sim_heal(w.sim, "alpha", "beta");
    world_done(&w);
}

/* ---- faults ---- */

static void a_cut_link_breaks_connections_and_refuses_new_ones(void **state)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct world w;
        connected_world(&w, seed);
        start_client(&w, read_once);
        sim_run(w.sim, sim_now_ns(w.sim) + SECOND_NS);
        assert_false(w.has_ended);
        sim_cut(w.sim, "beta", "alpha");
        sim_run(w.sim, sim_now_ns(w.sim) + SECOND_NS);
        assert_true(w.has_ended);
        assert_int_equal(w.result, -ECONNRESET);
        assert_int_equal(w.server_result, -ECONNRESET);
        stream_close(take(w.stream));

        uint64_t begin_ns = sim_now_ns(w.sim); /* the deadline comes before the seeded end */
        scope_init(&w.scope, env_deadline_ms(w.client, 500));
        run_client(&w, connect_only);
        assert_int_equal(w.result, -ETIMEDOUT);
        assert_true(w.ended_ns - begin_ns >= SECOND_NS / 2 && w.ended_ns - begin_ns < SECOND_NS);

        scope_init(&w.scope, 0);
        begin_ns = sim_now_ns(w.sim);
        run_client(&w, connect_only);
        assert_int_equal(w.result, -ETIMEDOUT);
        assert_true(w.ended_ns - begin_ns >= SECOND_NS && w.ended_ns - begin_ns < 22 * SECOND_NS);

        sim_heal(w.sim, "alpha", "beta");
        run_client(&w, connect_only);
        assert_int_equal(w.result, 0);
        run_client(&w, ask);
        assert_int_equal(w.result, 0);
        world_done(&w);
    }
}

static void a_held_link_delays_bytes_and_connections(void **state)
{
    struct world w;

    connected_world(&w, 7);
    sim_hold(w.sim, "alpha", "beta");
    start_client(&w, ask);
    sim_run(w.sim, 100 * SECOND_NS);
    assert_false(w.has_ended);
    assert_int_equal(w.served, 0);
    sim_heal(w.sim, "alpha", "beta");
    sim_run(w.sim, UINT64_MAX);
    assert_true(w.has_ended);
    assert_int_equal(w.result, 0);
    stream_close(take(w.stream));

    sim_hold(w.sim, "alpha", "beta");
    start_client(&w, connect_only);
    sim_run(w.sim, sim_now_ns(w.sim) + 100 * SECOND_NS);
    assert_false(w.has_ended);
    sim_heal(w.sim, "alpha", "beta");
    sim_run(w.sim, UINT64_MAX);
    assert_true(w.has_ended);
    assert_int_equal(w.result, 0);
    world_done(&w);
}

static void a_reset_breaks_once_and_new_connections_work(void **state)
{
    struct world w;

    connected_world(&w, 9);
    sim_reset_connections(w.sim, "alpha", "beta");
    run_client(&w, ask);
    assert_int_equal(w.result, -ECONNRESET);
    stream_close(take(w.stream));
    run_client(&w, connect_only);
    assert_int_equal(w.result, 0);
    run_client(&w, ask);
    assert_int_equal(w.result, 0);
    world_done(&w);
}

/* ---- crashes ---- */

static void a_crashed_server_resets_its_clients(void **state)
{
    for (uint64_t seed = 0; seed < 10; seed++) {
        struct world w;
        connected_world(&w, seed);
        start_client(&w, read_once);
        sim_run(w.sim, sim_now_ns(w.sim) + SECOND_NS);
        sim_crash(w.server);
        assert_true(sim_is_crashed(w.server));
        sim_run(w.sim, UINT64_MAX);
        assert_int_equal(w.result, -ECONNRESET);
        assert_int_equal(w.server_result, -ESHUTDOWN);
        assert_int_equal(sim_live_fibers(w.server), 0);
        stream_close(take(w.stream));
        run_client(&w, connect_only);
        assert_int_equal(w.result, -ECONNREFUSED);
        struct env *again = sim_process_new(w.sim, "alpha", "server"); /* restarted */
        struct listener *l = NULL;
        struct address at = { .family = ADDRESS_TCP, .port = PORT };
        assert_int_equal(listener_open(w.server, &at, 16, on_accept, &w, &l), -ESHUTDOWN);
        assert_int_equal(listener_open(again, &at, 16, on_accept, &w, &l), 0);
        listener_close(l);
        sim_process_free(again);
        world_done(&w);
    }
}

struct victim {
    struct env *env;
    struct scope scope;
    struct waitq q;
    struct timer timer;
    int results[4];
    bool timer_fired;
};

static void wait_in_scope(void *arg)
{
    struct victim *v = arg;
    int sum = 0;

    v->results[0] = waitq_wait(&v->q, &v->scope);
    v->results[1] = waitq_wait(&v->q, &v->scope);
    env_pool_run(v->env, add_one, &sum);
    assert_int_equal(sum, 1);
}

static void sleep_without_scope(void *arg)
{
    struct victim *v = arg;

    v->results[2] = fiber_sleep_ms(NULL, 1000);
    v->results[3] = fiber_sleep_ms(NULL, 1000);
}

static void note_fired(void *arg)
{
    ((struct victim *)arg)->timer_fired = true;
}

static void the_fibers_of_a_crashed_process_unwind(void **state)
{
    struct world w;
    struct victim v = { .timer_fired = false };

    world_init(&w, 1);
    v.env = w.server;
    scope_init(&v.scope, 0);
    waitq_init(&v.q);
    assert_int_equal(fiber_spawn(w.server, "scope", wait_in_scope, &v), 0);
    assert_int_equal(fiber_spawn(w.server, "sleep", sleep_without_scope, &v), 0);
    timer_start(w.server, &v.timer, env_deadline_ms(w.server, 500), note_fired, &v);
    sim_run(w.sim, sim_now_ns(w.sim) + 1000000);
    assert_int_equal(sim_live_fibers(w.server), 2);
    sim_crash(w.server);
    sim_crash(w.server);
    timer_start(w.server, &v.timer, env_deadline_ms(w.server, 500), note_fired, &v);
    assert_int_equal(v.timer.at_ns, 0);
    sim_run(w.sim, UINT64_MAX);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(v.results[i], -ESHUTDOWN);
    assert_false(v.timer_fired);
    assert_int_equal(sim_live_fibers(w.server), 0);
    world_done(&w);
}

static void a_client_that_crashes_while_connecting_leaves_nothing_behind(void **state)
{
    for (uint64_t seed = 0; seed < 30; seed++) {
        struct world w;
        world_init(&w, seed);
        listen_on(&w);
        start_client(&w, connect_only);
        sim_run(w.sim, sim_now_ns(w.sim) + 30000 * seed);
        sim_crash(w.client);
        sim_run(w.sim, UINT64_MAX);
        assert_true(w.has_ended);
        assert_true(w.result == -ESHUTDOWN || w.result == 0);
        stream_close(take(w.stream));
        world_done(&w);
    }
}

/* ---- determinism ---- */

static uint64_t busy_run(uint64_t seed)
{
    struct world w;

    connected_world(&w, seed);
    assert_int_equal(fiber_spawn(w.client, "send", send_bulk, &w), 0);
    start_client(&w, receive_bulk);
    assert_int_equal(fiber_spawn(w.client, "pool", use_pool, &w), 0);
    assert_int_equal(fiber_spawn(w.server, "pool", use_pool, &w), 0);
    sim_run(w.sim, UINT64_MAX);
    sim_hold(w.sim, "alpha", "beta");
    sim_heal(w.sim, "alpha", "beta");
    uint64_t hash = sim_trace_hash(w.sim) ^ sim_steps(w.sim) ^ env_random_u64(w.client) ^ sim_random(w.sim);
    world_done(&w);
    return hash;
}

static void one_seed_is_one_history(void **state)
{
    uint64_t first = busy_run(1);
    SCOPED_FREE void *moved = mem_alloc(100000); /* other addresses the second time */

    assert_non_null(moved);
    assert_int_equal(busy_run(1), first);
    assert_int_not_equal(busy_run(2), first);
    assert_int_equal(busy_run(77), busy_run(77));
}

static void lack_of_memory_while_connecting_is_an_error(void **state)
{
    struct mem_stats before, after;
    bool has_passed = false;

    mem_get_stats(&before);
    for (uint64_t n = 1; !has_passed; n++) {
        struct world w;
        world_init(&w, n);
        listen_on(&w);
        start_client(&w, connect_only);
        mem_fail_at(n);
        while (!w.has_ended)
            sim_run(w.sim, sim_now_ns(w.sim) + 100);
        has_passed = mem_fail_at(0) > 0;
        assert_true(w.result == 0 || (!has_passed && w.result == -ENOMEM));
        world_done(&w);
    }
    mem_get_stats(&after);
    assert_int_equal(after.live_blocks, before.live_blocks);
}

/* ---- the log carries virtual time ---- */

static void the_log_limits_floods_by_virtual_time(void **state)
{
    struct world w;
    struct log *l = NULL;
    char path[] = "/tmp/mortar-simlog-XXXXXX";
    static char text[8192];
    int fd = mkstemp(path);

    world_init(&w, 1);
    assert_int_equal(log_open(path, LOG_INFO, &l, NULL), 0);
    log_set_env(l, w.client);
    for (int i = 0; i < 100; i++)
        LOG(l, LOG_INFO, "x", "flood", "i=%d", i);
    run_client(&w, sleep_an_hour);
    LOG(l, LOG_INFO, "x", "flood", "late");
    ssize_t n = read(fd, text, sizeof(text) - 1);
    assert_true(n > 0);
    text[n] = '\0';
    assert_int_equal(strncmp(text, "[2026-01-01 00:00:01.", 21), 0);
    assert_non_null(strstr(text, "i=19\n"));
    assert_null(strstr(text, "i=20\n"));
    assert_non_null(strstr(text, "[2026-01-01 01:00:01."));
    assert_non_null(strstr(text, "late left_out=80\n"));
    log_close(l);
    close(fd);
    unlink(path);
    world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_hour_passes_at_once),
        cmocka_unit_test(the_run_ends_at_the_given_time),
        cmocka_unit_test(appointments_are_kept_and_may_stop_the_run),
        cmocka_unit_test(polling_fibers_meet_their_deadline),
        cmocka_unit_test(pool_jobs_take_time_on_the_loop),
        cmocka_unit_test(what_only_the_real_world_has_is_refused),
        cmocka_unit_test(questions_are_answered_under_every_seed),
        cmocka_unit_test(ends_know_each_others_addresses),
        cmocka_unit_test(connecting_to_nobody_is_refused),
        cmocka_unit_test(addresses_are_taken_once_and_local_names_stay_local),
        cmocka_unit_test(unix_paths_belong_to_one_host),
        cmocka_unit_test(more_than_a_window_arrives_whole_and_in_order),
        cmocka_unit_test(a_full_window_holds_the_writer_until_the_deadline),
        cmocka_unit_test(a_cut_link_breaks_connections_and_refuses_new_ones),
        cmocka_unit_test(a_held_link_delays_bytes_and_connections),
        cmocka_unit_test(a_reset_breaks_once_and_new_connections_work),
        cmocka_unit_test(a_crashed_server_resets_its_clients),
        cmocka_unit_test(the_fibers_of_a_crashed_process_unwind),
        cmocka_unit_test(a_client_that_crashes_while_connecting_leaves_nothing_behind),
        cmocka_unit_test(one_seed_is_one_history),
        cmocka_unit_test(lack_of_memory_while_connecting_is_an_error),
        cmocka_unit_test(the_log_limits_floods_by_virtual_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
