#include "unit/protocol/pair.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define WAIT_MS 10000

static void on_event(struct graph *graph, struct translator *from, const struct event *event)
{
    struct pair *p = graph->edge;

    if (event->kind == EVENT_CHILD_UP) {
        p->is_up = true;
        p->ups++;
    } else if (event->kind == EVENT_CHILD_DOWN) {
        p->is_up = false;
        p->downs++;
    } else {
        p->last = *event;
        if (p->holds_events)
            p->held = event_hold_take(event->hold);
        snprintf(p->last_domain, sizeof(p->last_domain), "%s", event->domain ? event->domain : "");
        snprintf(p->last_name, sizeof(p->last_name), "%s", event->name ? event->name : "");
        p->events++;
    }
    waitq_wake_all(&p->changes, 0);
}

static struct graph *build(struct test *t, struct env *env, const char *text)
{
    struct volfile *file = NULL;
    struct graph *graph = NULL;
    struct graph_options options = { .id = 0 };

    if (volfile_parse("test", text, strlen(text), &file, &t->err) < 0 ||
        graph_build(env, file, t->classes, &options, &graph, &t->err) < 0)
        fail_msg("%s", t->err.text);
    volfile_free(file);
    return graph;
}

/* ---- the brick's process ---- */

struct errand {
    struct pair *p;
    void (*fn)(struct pair *p);
    bool is_done;
};

static FIBER void run_errand(void *arg)
{
    struct errand *e = arg;

    e->fn(e->p);
    e->is_done = true;
}

/* Runs fn in a fiber of the brick's process and waits for it. */
static FIBER void over_there(struct pair *p, void (*fn)(struct pair *p))
{
    struct errand e = { .p = p, .fn = fn };

    if (p->env == p->t->env) {
        fn(p);
        return;
    }
    assert_int_equal(0, fiber_spawn(p->env, "errand", run_errand, &e));
    while (!e.is_done)
        assert_int_equal(0, fiber_sleep_ms(NULL, 1));
}

static FIBER void start(struct pair *p)
{
    if (graph_start(p->brick, &p->t->err) < 0)
        fail_msg("%s", p->t->err.text);
}

static FIBER void stop(struct pair *p)
{
    graph_stop(p->brick);
    graph_free(p->brick);
}

FIBER void pair_start_brick(struct pair *p, const char *server_options)
{
    char text[1024], transport[256];

    if (p->env == p->t->env)
        snprintf(transport, sizeof(transport), "option transport-type unix\n option transport.socket.listen-path %s",
                 p->path);
    else
        snprintf(transport, sizeof(transport), "option transport.socket.listen-port 49152");
    snprintf(text, sizeof(text),
             "volume brick\n type test/leaf\n option note brick\nend-volume\n"
             "volume server\n type protocol/server\n %s\n option auth.addr.brick.allow *\n %s\n"
             " subvolumes brick\nend-volume\n",
             transport, server_options ? server_options : "");
    p->brick = build(p->t, p->env, text);
    p->leaf = leaf_of(graph_find(p->brick, "brick"));
    over_there(p, start);
}

FIBER void pair_stop_brick(struct pair *p)
{
    over_there(p, stop);
    p->brick = NULL;
    p->leaf = NULL;
}

/* ---- the pair ---- */

static struct pair *start_pair(struct test *t, struct env *env, const char *client_options, const char *server_options)
{
    struct pair *p = mem_zalloc(sizeof(*p));
    char text[1024], transport[256];

    assert_non_null(p);
    p->t = t;
    p->env = env;
    waitq_init(&p->changes);
    snprintf(p->path, sizeof(p->path), "/tmp/mortar-pair-%d-%llx", (int)getpid(),
             (unsigned long long)env_random_u64(t->env));
    pair_start_brick(p, server_options);
    if (env == t->env)
        snprintf(transport, sizeof(transport), "option transport-type unix\n option transport.socket.connect-path %s",
                 p->path);
    else
        snprintf(transport, sizeof(transport), "option remote-host far\n option remote-port 49152");
    snprintf(text, sizeof(text),
             "volume client\n type protocol/client\n %s\n option remote-subvolume brick\n %s\nend-volume\n", transport,
             client_options ? client_options : "");
    snprintf(p->client, sizeof(p->client), "%s", text);
    test_build(t, text);
    t->graph->edge = p;
    graph_set_event_handler(t->graph, on_event);
    test_start(t);
    return p;
}

struct pair *pair_start(struct test *t, const char *client_options, const char *server_options)
{
    return start_pair(t, t->env, client_options, server_options);
}

struct pair *pair_new_far(struct test *t, const char *client_options, const char *server_options)
{
    struct env *env = sim_process_new(t->sim, "far", "brick");

    assert_non_null(env);
    struct pair *p = start_pair(t, env, client_options, server_options);
    pair_wait(p, true);
    return p;
}

FIBER struct graph *pair_second_client(struct pair *p, graph_event_fn handler)
{
    struct graph *graph = build(p->t, p->t->env,
                                "volume client\n type protocol/client\n option remote-host far\n"
                                " option remote-port 49152\n option remote-subvolume brick\nend-volume\n");

    graph_set_event_handler(graph, handler);
    if (graph_start(graph, &p->t->err) < 0)
        fail_msg("%s", p->t->err.text);
    for (int i = 0; i < WAIT_MS && !graph->root->is_up; i++)
        assert_int_equal(0, fiber_sleep_ms(NULL, 1));
    assert_true(graph->root->is_up);
    return graph;
}

FIBER void pair_wait(struct pair *p, bool is_up)
{
    struct scope scope;

    scope_init(&scope, env_deadline_ms(p->t->env, WAIT_MS));
    while (p->is_up != is_up) {
        if (waitq_wait(&p->changes, &scope) < 0)
            fail_msg("the client did not come %s\n%s", is_up ? "up" : "down", test_log(p->t));
    }
}

FIBER void pair_wait_event(struct pair *p, uint32_t count)
{
    struct scope scope;

    scope_init(&scope, env_deadline_ms(p->t->env, WAIT_MS));
    while (p->events < count) {
        if (waitq_wait(&p->changes, &scope) < 0)
            fail_msg("no event came\n%s", test_log(p->t));
    }
}

struct pair *pair_new(struct test *t, const char *client_options, const char *server_options)
{
    struct pair *p = pair_start(t, client_options, server_options);

    pair_wait(p, true);
    return p;
}

FIBER void pair_restart_brick(struct pair *p, const char *server_options)
{
    pair_stop_brick(p);
    pair_wait(p, false);
    pair_start_brick(p, server_options);
    pair_wait(p, true);
}

FIBER struct graph *pair_join(struct pair *p)
{
    struct graph *graph = build(p->t, p->t->env, p->client);

    assert_int_equal(0, graph_start(graph, &p->t->err));
    for (int i = 0; !graph->root->is_up; i++) {
        assert_true(i < WAIT_MS);
        assert_int_equal(0, fiber_sleep_ms(NULL, 1));
    }
    return graph;
}

FIBER void pair_leave(struct graph *graph)
{
    graph_stop(graph);
    graph_free(graph);
}

/* The client's graph goes with the test, but must not tell us any more. */
void pair_free(struct pair *p)
{
    graph_set_event_handler(p->t->graph, NULL);
    if (p->brick)
        pair_stop_brick(p);
    if (p->env != p->t->env) {
        while (sim_live_fibers(p->env) > 0)
            assert_int_equal(0, fiber_sleep_ms(NULL, 1));
        sim_process_free(p->env);
    }
    unlink(p->path);
    mem_free(p);
}
