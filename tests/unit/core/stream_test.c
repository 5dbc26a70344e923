/* Streams of the real env, over TCP and unix sockets on this host. */
#include "core/env_real.h"
#include "core/log.h"
#include "core/mem.h"
#include "unit/unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PATIENCE_MS 20000 /* a test that gets there has failed */

/* A listener and both ends of one connection. */
struct world {
    struct env *env;
    char folder[64];
    struct address address;
    struct listener *listener;
    struct stream *client, *server;
    struct waitq accepted;
    size_t accept_count;
};

static int set_up(void **state)
{
    struct world *w = NEW(struct world);

    w->env = env_real_new(log_discard(), 4);
    strcpy(w->folder, "/tmp/mortar-stream-XXXXXX");
    assert_non_null(mkdtemp(w->folder));
    waitq_init(&w->accepted);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    stream_close(w->client);
    stream_close(w->server);
    listener_close(w->listener);
    env_real_free(w->env);
    rmdir(w->folder);
    mem_free(w);
    return 0;
}

static void on_accept(void *arg, struct stream *s)
{
    struct world *w = arg;

    stream_close(w->server);
    w->server = s;
    w->accept_count++;
    waitq_wake_one(&w->accepted, 0);
}

static void listen_tcp(struct world *w)
{
    w->address = (struct address) { .family = ADDRESS_TCP, .host = "127.0.0.1" };
    assert_int_equal(listener_open(w->env, &w->address, 16, on_accept, w, &w->listener), 0);
    w->address.port = listener_port(w->listener);
    assert_true(w->address.port > 0);
}

static void listen_unix(struct world *w)
{
    w->address = (struct address) { .family = ADDRESS_UNIX };
    snprintf(w->address.path, sizeof(w->address.path), "%s/socket", w->folder);
    assert_int_equal(listener_open(w->env, &w->address, 16, on_accept, w, &w->listener), 0);
}

static void connect_both(struct world *w)
{
    struct scope scope;

    scope_init(&scope, env_deadline_ms(w->env, PATIENCE_MS));
    assert_int_equal(stream_connect(w->env, &w->address, NULL, &scope, &w->client), 0);
    while (!w->server)
        assert_int_equal(waitq_wait(&w->accepted, &scope), 0);
}

#define STREAM_TEST(name)                                                       \
    static void name##_body(void *arg);                                         \
    static void name(void **state)                                              \
    {                                                                           \
        env_real_run_fiber(((struct world *)*state)->env, name##_body, *state); \
    }                                                                           \
    static void name##_body(void *arg)
#define RUN(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* ---- moving bytes ---- */

static void say_hello_both_ways(struct world *w)
{
    char text[32];
    struct iovec iov[] = { { .iov_base = "he", .iov_len = 2 }, { .iov_len = 0 }, { .iov_base = "llo", .iov_len = 3 } };

    assert_int_equal(stream_writev(w->client, iov, 3, NULL), 0);
    assert_int_equal(stream_read(w->server, text, sizeof(text), NULL), 5);
    assert_memory_equal(text, "hello", 5);
    struct iovec back = { .iov_base = "HELLO", .iov_len = 5 };
    assert_int_equal(stream_try_writev(w->server, &back, 1), 5);
    char a[2], b[2];
    struct iovec parts[] = { { .iov_base = a, .iov_len = 2 }, { .iov_base = b, .iov_len = 2 } };
    assert_int_equal(stream_readv(w->client, parts, 2, NULL), 4);
    assert_memory_equal(b, "LL", 2);
    assert_int_equal(stream_read(w->client, text, sizeof(text), NULL), 1);
    assert_int_equal(text[0], 'O');
}

STREAM_TEST(tcp_carries_bytes_both_ways)
{
    struct world *w = arg;
    char host[64], name[80];
    uint16_t port = 0;

    listen_tcp(w);
    connect_both(w);
    say_hello_both_ways(w);
    assert_true(stream_peer_address(w->client, host, &port));
    assert_string_equal(host, "127.0.0.1");
    assert_int_equal(port, w->address.port);
    snprintf(name, sizeof(name), "127.0.0.1:%u", w->address.port);
    assert_string_equal(stream_peer_name(w->client), name);
    assert_string_equal(stream_local_name(w->server), name);
    assert_string_equal(stream_peer_name(w->server), stream_local_name(w->client));
    assert_true(stream_fd(w->client) >= 0);
}

STREAM_TEST(unix_sockets_carry_bytes_both_ways)
{
    struct world *w = arg;
    char host[64];
    uint16_t port;

    listen_unix(w);
    connect_both(w);
    say_hello_both_ways(w);
    assert_false(stream_peer_address(w->client, host, &port));
    assert_string_equal(stream_peer_name(w->client), w->address.path);
    assert_string_equal(stream_peer_name(w->server), "");
}

STREAM_TEST(any_address_means_ipv4_too_and_names_resolve)
{
    struct world *w = arg;

    w->address = (struct address) { .family = ADDRESS_TCP, .host = "" };
    assert_int_equal(listener_open(w->env, &w->address, 16, on_accept, w, &w->listener), 0);
    w->address.port = listener_port(w->listener);
    strcpy(w->address.host, "localhost");
    connect_both(w);
    say_hello_both_ways(w);
}

enum { BULK_BYTES = 16 * 1024 * 1024, PIECE_BYTES = 100000 };

struct bulk {
    struct world *w;
    uint64_t sent, received;
    int result;
};

static int send_bulk(void *arg)
{
    struct bulk *b = arg;
    SCOPED_FREE uint8_t *piece = mem_zalloc(PIECE_BYTES);

    while (b->sent < BULK_BYTES) {
        size_t n = MIN((size_t)PIECE_BYTES, (size_t)(BULK_BYTES - b->sent));
        for (size_t i = 0; i < n; i++)
            piece[i] = (uint8_t)((b->sent + i) * 2654435761U >> 13);
        struct iovec iov[2] = { { .iov_base = piece, .iov_len = n / 3 },
                                { .iov_base = piece + n / 3, .iov_len = n - n / 3 } };
        int r = stream_writev(b->w->client, iov, 2, NULL);
        if (r < 0)
            return r;
        b->sent += n;
    }
    return 0;
}

static int receive_bulk(void *arg)
{
    struct bulk *b = arg;
    SCOPED_FREE uint8_t *piece = mem_zalloc(PIECE_BYTES);

    while (b->received < BULK_BYTES) {
        ssize_t n = stream_read(b->w->server, piece, PIECE_BYTES, NULL);
        if (n <= 0)
            return -EIO;
        for (ssize_t i = 0; i < n; i++)
            if (piece[i] != (uint8_t)((b->received + (uint64_t)i) * 2654435761U >> 13))
                return -EILSEQ;
        b->received += (uint64_t)n;
    }
    return 0;
}

static void move_bulk(struct world *w)
{
    struct bulk b = { .w = w };
    struct group g;

    connect_both(w);
    group_init(&g, w->env);
    assert_int_equal(group_run(&g, "send", send_bulk, &b), 0);
    assert_int_equal(group_run(&g, "receive", receive_bulk, &b), 0);
    group_wait_all(&g);
    assert_int_equal(g.succeeded, 2);
}

STREAM_TEST(more_than_the_sockets_hold_arrives_whole_over_tcp)
{
    listen_tcp(arg);
    move_bulk(arg);
}

STREAM_TEST(more_than_the_sockets_hold_arrives_whole_over_unix)
{
    listen_unix(arg);
    move_bulk(arg);
}

/* ---- ends ---- */

struct reader {
    struct stream *s;
    struct scope scope;
    ssize_t result;
    bool has_ended;
};

static int read_once(void *arg)
{
    struct reader *r = arg;
    char text[16];

    r->result = stream_read(r->s, text, sizeof(text), &r->scope);
    r->has_ended = true;
    return 0;
}

static void start_reader(struct reader *r, struct group *g, struct env *env, struct stream *s)
{
    *r = (struct reader) { .s = s };
    scope_init(&r->scope, env_deadline_ms(env, PATIENCE_MS));
    group_init(g, env);
    assert_int_equal(group_run(g, "read", read_once, r), 0);
    for (int i = 0; i < 200; i++) /* over several turns of the loop: it really waits */
        fiber_yield();
    assert_false(r->has_ended);
}

STREAM_TEST(reading_ends_with_0_when_the_peer_closes)
{
    struct world *w = arg;
    struct reader r;
    struct group g;

    listen_tcp(w);
    connect_both(w);
    start_reader(&r, &g, w->env, w->server);
    stream_close(take(w->client));
    group_wait_all(&g);
    assert_int_equal(r.result, 0);
}

STREAM_TEST(writing_to_a_closed_peer_fails_and_stays_broken)
{
    struct world *w = arg;
    int r = 0;

    listen_unix(w);
    connect_both(w);
    stream_close(take(w->server));
    for (int i = 0; i < 100 && r == 0; i++) {
        struct iovec iov = { .iov_base = "x", .iov_len = 1 };
        r = stream_writev(w->client, &iov, 1, NULL);
    }
    assert_true(r == -EPIPE || r == -ECONNRESET);
    struct iovec iov = { .iov_base = "x", .iov_len = 1 };
    assert_int_equal(stream_writev(w->client, &iov, 1, NULL), r);
    assert_int_equal(stream_try_writev(w->client, &iov, 1), r);
}

STREAM_TEST(a_cancelled_read_leaves_the_stream_usable)
{
    struct world *w = arg;
    struct reader r;
    struct group g;

    listen_tcp(w);
    connect_both(w);
    start_reader(&r, &g, w->env, w->server);
    scope_cancel(&r.scope);
    group_wait_all(&g);
    assert_int_equal(r.result, -ECANCELED);
    say_hello_both_ways(w);
}

STREAM_TEST(a_read_ends_at_its_deadline)
{
    struct world *w = arg;
    struct scope scope;
    char c;

    listen_tcp(w);
    connect_both(w);
    scope_init(&scope, env_deadline_ms(w->env, 5));
    assert_int_equal(stream_read(w->server, &c, 1, &scope), -ETIMEDOUT);
    say_hello_both_ways(w);
}

STREAM_TEST(shutdown_wakes_the_reader_and_ends_both_directions)
{
    struct world *w = arg;
    struct reader r, far;
    struct group g, far_group;
    struct iovec iov = { .iov_base = "x", .iov_len = 1 };
    char c;

    listen_tcp(w);
    connect_both(w);
    start_reader(&r, &g, w->env, w->server);
    start_reader(&far, &far_group, w->env, w->client);
    stream_shutdown(w->server);
    stream_shutdown(w->server);
    group_wait_all(&g);
    group_wait_all(&far_group);
    assert_true(r.result == -ENOTCONN || r.result == 0);
    assert_int_equal(far.result, 0);
    assert_int_equal(stream_writev(w->server, &iov, 1, NULL), -ENOTCONN);
    assert_true(stream_read(w->server, &c, 1, NULL) <= 0);
}

struct writer {
    struct world *w;
    struct scope scope;
    int result;
};

static int write_until_it_fails(void *arg)
{
    struct writer *x = arg;
    SCOPED_FREE uint8_t *piece = mem_zalloc(PIECE_BYTES);

    while (x->result == 0) {
        struct iovec iov = { .iov_base = piece, .iov_len = PIECE_BYTES };
        x->result = stream_writev(x->w->client, &iov, 1, &x->scope);
    }
    return 0;
}

STREAM_TEST(a_writer_that_waits_is_cancelled_and_the_stream_is_broken)
{
    struct world *w = arg;
    struct writer x = { .w = w };
    struct group g;

    listen_tcp(w);
    connect_both(w);
    scope_init(&x.scope, env_deadline_ms(w->env, PATIENCE_MS));
    group_init(&g, w->env);
    assert_int_equal(group_run(&g, "write", write_until_it_fails, &x), 0);
    while (list_empty(&x.scope.waiters)) /* until the sockets are full */
        (void)fiber_sleep_ms(NULL, 1);
    struct iovec iov = { .iov_base = "x", .iov_len = 1 };
    assert_int_equal(stream_try_writev(w->client, &iov, 1), 0); /* somebody else is in the middle of a write */
    scope_cancel(&x.scope);
    group_wait_all(&g);
    assert_int_equal(x.result, -ECANCELED);
    assert_int_equal(stream_try_writev(w->client, &iov, 1), -ECANCELED);
}

/* ---- connecting ---- */

STREAM_TEST(connecting_to_nobody_is_refused)
{
    struct world *w = arg;

    listen_tcp(w);
    listener_close(take(w->listener));
    assert_int_equal(stream_connect(w->env, &w->address, NULL, NULL, &w->client), -ECONNREFUSED);
    w->address = (struct address) { .family = ADDRESS_UNIX, .path = "/tmp/mortar-no-such-socket" };
    assert_int_equal(stream_connect(w->env, &w->address, NULL, NULL, &w->client), -ECONNREFUSED);
    assert_null(w->client);
}

STREAM_TEST(a_name_that_does_not_resolve_is_unreachable)
{
    struct world *w = arg;
    struct address to = { .family = ADDRESS_TCP, .host = "no-such-host.invalid", .port = 1 };

    assert_int_equal(stream_connect(w->env, &to, NULL, NULL, &w->client), -EHOSTUNREACH);
}

struct connecter {
    struct world *w;
    struct address to;
    struct scope scope;
    int result;
};

static int connect_once(void *arg)
{
    struct connecter *c = arg;

    c->result = stream_connect(c->w->env, &c->to, NULL, &c->scope, &c->w->client);
    return 0;
}

STREAM_TEST(connecting_is_cancelled_during_the_look_up_and_with_a_cancelled_scope)
{
    struct world *w = arg;
    struct connecter c = { .w = w, .to = { .family = ADDRESS_TCP, .host = "no-such-host.invalid", .port = 1 } };
    struct group g;

    scope_init(&c.scope, 0);
    group_init(&g, w->env);
    assert_int_equal(group_run(&g, "connect", connect_once, &c), 0);
    fiber_yield(); /* it has asked the pool and waits; or the answer is already on its way */
    scope_cancel(&c.scope);
    group_wait_all(&g);
    assert_true(c.result == -ECANCELED || c.result == -EHOSTUNREACH);
    assert_int_equal(stream_connect(w->env, &c.to, NULL, &c.scope, &w->client), -ECANCELED);
}

STREAM_TEST(a_full_unix_backlog_makes_connecting_wait)
{
    struct world *w = arg;
    struct stream *more[64] = { NULL };
    struct scope scope;

    listen_unix(w); /* its backlog is 16, and nothing is accepted while this fiber does not suspend */
    scope_init(&scope, env_deadline_ms(w->env, PATIENCE_MS));
    for (size_t i = 0; i < ARRAY_SIZE(more); i++)
        assert_int_equal(stream_connect(w->env, &w->address, NULL, &scope, &more[i]), 0);
    while (w->accept_count < ARRAY_SIZE(more))
        assert_int_equal(waitq_wait(&w->accepted, &scope), 0);
    for (size_t i = 0; i < ARRAY_SIZE(more); i++)
        stream_close(more[i]);
}

STREAM_TEST(options_and_privileged_ports_still_connect)
{
    struct world *w = arg;
    struct stream_options o = {
        .keepalive_time_s = 20, .keepalive_interval_s = 2, .keepalive_count = 9, .user_timeout_s = 42
    };
    char host[64];
    uint16_t port = 0;

    listen_tcp(w);
    w->address.bind_privileged = true;
    assert_int_equal(stream_connect(w->env, &w->address, &o, NULL, &w->client), 0);
    while (!w->server)
        assert_int_equal(waitq_wait(&w->accepted, NULL), 0);
    say_hello_both_ways(w);
    assert_true(stream_peer_address(w->server, host, &port));
    if (geteuid() == 0)
        assert_true(port < 1024);
}

/* ---- listening ---- */

STREAM_TEST(a_port_in_use_is_an_error)
{
    struct world *w = arg;
    struct listener *second = NULL;

    listen_tcp(w);
    assert_int_equal(listener_open(w->env, &w->address, 16, on_accept, w, &second), -EADDRINUSE);
    assert_null(second);
}

STREAM_TEST(a_socket_file_is_replaced_only_when_nobody_listens)
{
    struct world *w = arg;
    struct listener *second = NULL;

    listen_unix(w);
    assert_int_equal(listener_open(w->env, &w->address, 16, on_accept, w, &second), -EADDRINUSE);
    char kept[sizeof(w->address.path) + 4];
    snprintf(kept, sizeof(kept), "%s.x", w->address.path);
    assert_int_equal(rename(w->address.path, kept),
                     0); /* closing removes the path; the file stays under another name */
    listener_close(take(w->listener));
    assert_int_equal(rename(kept, w->address.path), 0);
    assert_int_equal(listener_open(w->env, &w->address, 16, on_accept, w, &w->listener), 0);
    connect_both(w);
    say_hello_both_ways(w);
}

static void close_listener_and_stream(void *arg, struct stream *s)
{
    struct world *w = arg;

    stream_close(s);
    listener_close(take(w->listener));
    waitq_wake_one(&w->accepted, 0);
}

STREAM_TEST(a_listener_may_be_closed_from_its_own_callback)
{
    struct world *w = arg;

    w->address = (struct address) { .family = ADDRESS_TCP, .host = "127.0.0.1" };
    assert_int_equal(listener_open(w->env, &w->address, 16, close_listener_and_stream, w, &w->listener), 0);
    w->address.port = listener_port(w->listener);
    assert_int_equal(stream_connect(w->env, &w->address, NULL, NULL, &w->client), 0);
    while (w->listener)
        assert_int_equal(waitq_wait(&w->accepted, NULL), 0);
}

STREAM_TEST(lack_of_memory_while_connecting_is_an_error_and_leaks_nothing)
{
    struct world *w = arg;
    bool has_passed = false;

    listen_tcp(w);
    for (uint64_t n = 1; !has_passed; n++) {
        struct scope scope;
        scope_init(&scope, env_deadline_ms(w->env, PATIENCE_MS));
        mem_fail_at(n);
        int r = stream_connect(w->env, &w->address, NULL, &scope, &w->client);
        has_passed = mem_fail_at(0) > 0;
        assert_true(has_passed ? r == 0 : r == 0 || r == -ENOMEM);
        if (r == 0)
            stream_close(take(w->client));
    }
}

/* ---- descriptors and signals ---- */

static int write_later(void *arg)
{
    int *fds = arg;

    for (int i = 0; i < 100; i++)
        fiber_yield();
    return write(fds[1], "x", 1) == 1 ? 0 : -EIO;
}

STREAM_TEST(any_descriptor_can_be_waited_for)
{
    struct world *w = arg;
    int fds[2];
    struct group g;
    struct scope scope;
    char c;

    assert_int_equal(pipe2(fds, O_NONBLOCK | O_CLOEXEC), 0);
    for (int i = 0; i < 3; i++) {
        group_init(&g, w->env);
        assert_int_equal(group_run(&g, "write", write_later, fds), 0);
        assert_int_equal(env_wait_readable(w->env, fds[0], NULL), 0);
        assert_int_equal(read(fds[0], &c, 1), 1);
        group_wait_all(&g);
    }
    scope_init(&scope, env_deadline_ms(w->env, 3));
    assert_int_equal(env_wait_readable(w->env, fds[0], &scope), -ETIMEDOUT);
    close(fds[1]);
    assert_int_equal(env_wait_readable(w->env, fds[0], NULL), 0);
    close(fds[0]); /* without env_forget_fd: the number comes back as a socket's */
    listen_tcp(w);
    connect_both(w);
    say_hello_both_ways(w);
}

static void count_signal(void *arg)
{
    waitq_wake_one(&((struct world *)arg)->accepted, 0);
}

STREAM_TEST(signals_call_their_handler_on_the_loop)
{
    struct world *w = arg;

    assert_int_equal(env_on_signal(w->env, SIGUSR2, count_signal, w), 0);
    assert_int_equal(env_on_signal(w->env, SIGUSR2, count_signal, w), 0);
    raise(SIGUSR2);
    assert_int_equal(waitq_wait(&w->accepted, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(tcp_carries_bytes_both_ways),
        RUN(unix_sockets_carry_bytes_both_ways),
        RUN(any_address_means_ipv4_too_and_names_resolve),
        RUN(more_than_the_sockets_hold_arrives_whole_over_tcp),
        RUN(more_than_the_sockets_hold_arrives_whole_over_unix),
        RUN(reading_ends_with_0_when_the_peer_closes),
        RUN(writing_to_a_closed_peer_fails_and_stays_broken),
        RUN(a_cancelled_read_leaves_the_stream_usable),
        RUN(a_read_ends_at_its_deadline),
        RUN(shutdown_wakes_the_reader_and_ends_both_directions),
        RUN(a_writer_that_waits_is_cancelled_and_the_stream_is_broken),
        RUN(connecting_to_nobody_is_refused),
        RUN(a_name_that_does_not_resolve_is_unreachable),
        RUN(connecting_is_cancelled_during_the_look_up_and_with_a_cancelled_scope),
        RUN(a_full_unix_backlog_makes_connecting_wait),
        RUN(options_and_privileged_ports_still_connect),
        RUN(a_port_in_use_is_an_error),
        RUN(a_socket_file_is_replaced_only_when_nobody_listens),
        RUN(a_listener_may_be_closed_from_its_own_callback),
        RUN(lack_of_memory_while_connecting_is_an_error_and_leaks_nothing),
        RUN(any_descriptor_can_be_waited_for),
        RUN(signals_call_their_handler_on_the_loop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
