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
        snprintf(p->last_domain, sizeof(p->last_domain), "%s", event->domain ? event->domain : "");
        snprintf(p->last_name, sizeof(p->last_name), "%s", event->name ? event->name : "");
        p->events++;
    }
    waitq_wake_all(&p->changes, 0);
}

static struct graph *build(struct test *t, const char *text)
{
    struct volfile *file = NULL;
    struct graph *graph = NULL;
    struct graph_options options = { .id = 0 };

    if (volfile_parse("test", text, strlen(text), &file, &t->err) < 0 ||
        graph_build(t->env, file, t->classes, &options, &graph, &t->err) < 0)
        fail_msg("%s", t->err.text);
    volfile_free(file);
    return graph;
}

FIBER void pair_start_brick(struct pair *p, const char *server_options)
{
    char text[1024];

    snprintf(text, sizeof(text),
             "volume brick\n type test/leaf\n option note brick\nend-volume\n"
             "volume server\n type protocol/server\n option transport.socket.listen-path %s\n"
             " option transport-type unix\n option auth.addr.brick.allow *\n %s\n subvolumes brick\nend-volume\n",
             p->path, server_options ? server_options : "");
    p->brick = build(p->t, text);
    p->leaf = leaf_of(graph_find(p->brick, "brick"));
    if (graph_start(p->brick, &p->t->err) < 0)
        fail_msg("%s", p->t->err.text);
}

FIBER void pair_stop_brick(struct pair *p)
{
    graph_stop(p->brick);
    graph_free(p->brick);
    p->brick = NULL;
    p->leaf = NULL;
}

struct pair *pair_start(struct test *t, const char *client_options, const char *server_options)
{
    struct pair *p = mem_zalloc(sizeof(*p));
    char text[1024];

    assert_non_null(p);
    p->t = t;
    waitq_init(&p->changes);
    snprintf(p->path, sizeof(p->path), "/tmp/mortar-pair-%d-%llx", (int)getpid(),
             (unsigned long long)env_random_u64(t->env));
    pair_start_brick(p, server_options);
    snprintf(text, sizeof(text),
             "volume client\n type protocol/client\n option transport-type unix\n"
             " option transport.socket.connect-path %s\n option remote-subvolume brick\n %s\nend-volume\n",
             p->path, client_options ? client_options : "");
    test_build(t, text);
    t->graph->edge = p;
    graph_set_event_handler(t->graph, on_event);
    test_start(t);
    return p;
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

/* The client's graph goes with the test, but must not tell us any more. */
void pair_free(struct pair *p)
{
    graph_set_event_handler(p->t->graph, NULL);
    if (p->brick)
        pair_stop_brick(p);
    unlink(p->path);
    mem_free(p);
}
