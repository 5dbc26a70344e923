/* mortarfs/process_internal.h - the parts of a process: start.c builds graphs, reload.c changes them, process.c runs it
 * all. */
#pragma once

#include "graph/graph.h"
#include "mortarfs/process.h"
#include "mortarfs/control.h"
#include "mortarfs/volserver.h"

extern const struct translator_class *const all_classes[];

struct process {
    struct env *env;
    struct log *log;
    enum log_level level; /* as asked for; SIGUSR2 goes back to it */
    struct cmdline *c;
    struct daemon_link *link;
    struct volserver *volserver; /* NULL: the volume file is local */
    struct control *control;     /* NULL: no --socket-file */
    struct graph *graph;         /* in use */
    struct translator *fuse;     /* on top of it, NULL: no mount */
    char *volfile_text;          /* of the graph in use */
    uint32_t graph_count;
    char process_id[GFID_TEXT_LEN + 1]; /* of all its graphs */
    struct list left;                   /* reload.c: graphs that open files still need */
    unsigned left_count;
    bool left_is_due; /* some may go */
    bool is_ready, is_stopping;
    bool is_reloading, reload_again;
    int exit_code;
    struct timer patience; /* for stopping */
};

/* ---- start.c ---- */
FIBER int volfile_get(struct process *p, char **ret_text, struct error *err);
/* Builds and starts a graph of this text; with a mount point, mount/fuse is on top of it. `replaces`: the graph is to
 * take a mount over, so starting it does not mount. */
FIBER int graph_make(struct process *p, const char *text, bool replaces, struct graph **ret_graph,
                     struct translator **ret_fuse, struct error *err);
/* Options of the command line that belong to sections of the file. Returned. */
int overrides_make(const struct process *p, const struct volfile *file, struct dict **ret_overrides);
const char *volfile_label(const struct process *p);

/* ---- reload.c ---- */
/* Fetches or reads the volume file again, soon, and makes the graph follow it. Any number of calls. */
void reload_request(struct process *p);
/* At the end, when the graph in use is gone. */
FIBER void reload_end_left(struct process *p);

/* ---- statedump.c ---- */
void statedump_write(struct process *p);

/* ---- process.c ---- */
void process_stop(struct process *p, int exit_code);
void process_on_event(struct graph *graph, struct translator *from, const struct event *event);
void process_on_unmount(void *arg);
