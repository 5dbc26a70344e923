/* A client and a brick in one process: t->graph is a graph of protocol/client alone, p->brick one of protocol/server
 * over a test/leaf named "brick". They talk through a real unix socket or TCP, or in the simulator.
 *
 *     FIBER_TEST(stat_travels)
 *     {
 *         struct pair *p = pair_new(t, NULL, NULL);
 *         assert_int_equal(0, test_op(t, OP_STAT, .inode = t->file));
 *         pair_free(p);
 *     }
 */
#pragma once

#include "unit/graph/test_graph.h"

struct pair {
    struct test *t;
    struct env *env; /* the brick's: the test's own, or of another host */
    struct graph *brick;
    struct leaf *leaf;
    char path[96]; /* of the socket */
    bool is_up;    /* as the client's parent was told */
    uint32_t ups, downs;
    struct waitq changes;
    struct event last; /* the last other event; its pointers are dead */
    uint32_t events;
    bool holds_events; /* `held` is to be dropped by the test */
    struct event_hold *held;
    char client[1024]; /* the client's volume file */
    char last_domain[64], last_name[64];
};

/* Options as lines of a volume file ("option a b\n"), may be NULL. Waits until the client is up. */
struct pair *pair_new(struct test *t, const char *client_options, const char *server_options);
void pair_free(struct pair *p);
/* SIM_TEST only: the brick is another process on host "far" and is reached by TCP. */
struct pair *pair_new_far(struct test *t, const char *client_options, const char *server_options);
/* SIM_TEST with pair_new_far(): the graph of a second client of the brick, started and up; the handler gets its events.
 * Stop and free it before pair_free(). */
FIBER struct graph *pair_second_client(struct pair *p, graph_event_fn on_event);
/* The same in two steps, for tests of failing to come up. */
struct pair *pair_start(struct test *t, const char *client_options, const char *server_options);
/* Up (or down) within some seconds, else the test fails. */
FIBER void pair_wait(struct pair *p, bool is_up);
/* The brick's process "restarts": connections break, state of clients is gone. */
FIBER void pair_restart_brick(struct pair *p, const char *server_options);
FIBER void pair_stop_brick(struct pair *p);
FIBER void pair_start_brick(struct pair *p, const char *server_options);
/* A second client of the same brick, up; and its end. */
FIBER struct graph *pair_join(struct pair *p);
FIBER void pair_leave(struct graph *graph);
FIBER void pair_wait_event(struct pair *p, uint32_t count);
