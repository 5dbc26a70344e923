/* mortarheal/volume.h - the volume's graph, its replica sets, and its bricks as people name them. */
#pragma once

#include "graph/graph.h"
#include "mortarheal/args.h"

#define SETS_MAX 4096

struct brick {
    struct translator *set; /* its cluster/replicate */
    unsigned child;
    char *name; /* "HOST:PATH" */
    char *uuid; /* of its host, or NULL */
    bool is_up;
};

struct volume {
    struct env *env;
    struct args *args;
    struct graph *graph;
    char *name;
    struct translator **sets; /* in the order of the volume file */
    unsigned set_count;
    struct brick *bricks; /* in that order */
    unsigned brick_count;
};

/* Fetches or reads the volume file, starts its graph and waits until every brick has been reached or was found to be
 * away. `as_daemon`: the graph heals by itself. 0, or -errno with a sentence. */
FIBER int volume_open(struct volume *v, struct env *env, struct args *args, bool as_daemon, struct error *err);
FIBER void volume_close(struct volume *v);
/* The number of the brick HOST:PATH, or of the child of that name (web-client-1), or -ENOENT. */
int volume_find_brick(const struct volume *v, const char *name);
/* A call as an internal client; call_done() in the end. */
void volume_call(struct volume *v, struct call *call, int32_t pid);
