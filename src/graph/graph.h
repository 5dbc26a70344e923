/* graph/graph.h - from a parsed volume file to running translators, and back to rest.
 *
 *     graph_build(env, volfile, classes, &options, &graph, err)   translators exist, options checked, init done
 *     graph_start(graph, err)                                     FIBER: leaves first; they connect and open
 *     translator_call(graph->root, ...)
 *     graph_stop(graph)                                           FIBER: root first; waits for what is under way
 *     graph_free(graph)
 */
#pragma once

#include "graph/translator.h"
#include "graph/volfile.h"

struct graph;
/* NULL-terminated list of all classes of the program. */
typedef const struct translator_class *const *class_list;
/* All classes there are; each translator has a line in mortarfs/classes.c. */
extern const struct translator_class *const all_classes[];

typedef void (*graph_event_fn)(struct graph *graph, struct translator *from, const struct event *event);

struct graph {
    struct env *env;
    struct translator *root;
    struct translator **all; /* in file order: children before parents */
    unsigned count;
    unsigned inode_slots, fd_slots, client_slots;
    struct inode_table *inodes;
    struct list clients;
    struct list fds;
    uint32_t id;         /* counts graphs of the process; part of the client's process-uuid */
    char process_id[40]; /* the same for all graphs of a process; "": not given */
    char *volfile_id;
    char *volume_id; /* UUID text, if an option volume-id names one */
    bool is_stopping;
    bool is_tracing; /* log every operation: the log's level was TRACE when the graph was built */
    void *edge;      /* the process's: mortarfs, tests */
    class_list classes;
    uint64_t last_trace_id;
    graph_event_fn event_handler;
    char *root_name;              /* internal: the root the builder asked for, or NULL */
    struct translator *file_root; /* internal: root of the part that came from the file */
};

struct graph_options {
    const char *root_name;        /* NULL: the last section */
    const struct dict *overrides; /* "pattern.key" -> value: --xlator-option; NULL = none */
    uint32_t id;
    const char
        *process_id; /* UUID text by which bricks see that two graphs are one program's; NULL: each client makes one */
    const char *volfile_id;
};

/* Builds the part of the file reachable from the root and runs init from the leaves up. Unknown type: error that names
 * line, type and what to use instead. Unknown option: WARNING in the log. Bad value: error. 0 and a graph (returned),
 * or -errno with the sentence in err. */
int graph_build(struct env *env, const struct volfile *file, class_list classes, const struct graph_options *options,
                struct graph **ret_graph, struct error *err);
/* A graph without translators, for graph_push(). Returned; NULL for lack of memory. */
struct graph *graph_new(struct env *env) MUST_USE;
/* A failure stops again what was started. Leaves without a start function are announced as up (EVENT_CHILD_UP) when all
 * translators have started. */
FIBER int graph_start(struct graph *graph, struct error *err);
FIBER void graph_stop(struct graph *graph);
void graph_free(struct graph *graph); /* accepts NULL; stopped or never started */
/* Same sections, types and children as the file? Then options may be changed in place. */
bool graph_same_topology(const struct graph *graph, const struct volfile *file);
/* Changes live options in place, defaults included. All values are checked before the first is changed. Returns how many
 * translators have an option that changed but works only after a restart (each is named in a WARNING and keeps its old
 * value), or -errno. The topology must be the same (-EINVAL otherwise). */
int graph_reconfigure(struct graph *graph, const struct volfile *file, const struct graph_options *options,
                      struct error *err);
struct translator *graph_find(const struct graph *graph, const char *name); /* NULL: none */
/* The process's own handler for events that reach the root. */
void graph_set_event_handler(struct graph *graph, graph_event_fn fn);

/* Adds one translator in code (mount/fuse on top of the root, tests): of `class`, above the present root (a leaf when
 * there is none), given options as text pairs (NULL: none). It becomes graph->root. Its init is run. Before graph_start()
 * and before the first inode, descriptor or client of the graph (-EBUSY otherwise). ret_translator may be NULL. */
int graph_push(struct graph *graph, const struct translator_class *class, const char *name, const struct dict *options,
               struct translator **ret_translator, struct error *err);

/* Statedump of the process: global part and one section per translator, GlusterFS's layout. Returned text. */
char *graph_statedump(struct graph *graph) MUST_USE;
