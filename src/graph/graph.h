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

struct graph {
    struct env *env;
    struct translator *root;
    struct translator **all; /* in file order: children before parents */
    unsigned count;
    unsigned inode_slots, fd_slots, client_slots;
    struct inode_table *inodes;
    struct list clients;
    struct list fds;
    uint32_t id; /* counts graphs of the process; part of the client's process-uuid */
    char *volfile_id;
    char *volume_id; /* UUID text, if an option volume-id names one */
    bool is_stopping;
    void *edge; /* the process's: mortarfs, tests */
};

/* NULL-terminated list of all classes of the program. */
typedef const struct translator_class *const *class_list;

struct graph_options {
    const char *root_name;        /* NULL: the last section */
    const struct dict *overrides; /* "pattern.key" -> value: --xlator-option; NULL = none */
    uint32_t id;
    const char *volfile_id;
};

/* Builds the part of the file reachable from the root and runs init from the leaves up. Unknown type: error that names
 * line, type and what to use instead. Unknown option: WARNING in the log. Bad value: error. 0 and a graph (returned),
 * or -errno with the sentence in err. */
int graph_build(struct env *env, const struct volfile *file, class_list classes, const struct graph_options *options,
                struct graph **ret_graph, struct error *err);
FIBER int graph_start(struct graph *graph, struct error *err);
FIBER void graph_stop(struct graph *graph);
void graph_free(struct graph *graph); /* accepts NULL; stopped or never started */
/* Same sections, types and children as the file? Then options may be changed in place. */
bool graph_same_topology(const struct graph *graph, const struct volfile *file);
/* Changes live options in place; *ret_restart_needed lists (text, may be "") options that need a restart. */
int graph_reconfigure(struct graph *graph, const struct volfile *file, const struct graph_options *options,
                      struct error *err);
struct translator *graph_find(const struct graph *graph, const char *name); /* NULL: none */
/* Tells every translator without a start function's knowledge that the whole graph came up, and the process's own
 * handler for events that reach the top. */
void graph_set_event_handler(struct graph *graph,
                             void (*fn)(struct graph *graph, struct translator *from, const struct event *event));

/* Builds a one-translator graph part in code (mount/fuse on top of the root, tests): new translator of `class` above
 * `child` (or a leaf when child is NULL), given options as text pairs. It becomes graph->root. */
int graph_push(struct graph *graph, const struct translator_class *class, const char *name, const struct dict *options,
               struct translator **ret_translator, struct error *err);

/* Statedump of the process: global part and one section per translator, GlusterFS's layout. Returned text. */
char *graph_statedump(struct graph *graph) MUST_USE;
