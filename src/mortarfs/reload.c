/* When the volume file changes: options in place where that is enough, else a new graph beside the old one, to which the
 * mount moves. The old one ends then, but for open files that have no name any more: those live in it until they are
 * closed. So it is with an option that cannot change in place, such as the host of a brick that was replaced. A brick whose
 * graph has another shape must be restarted: its clients hold descriptors in the old one. */
#include "core/mem.h"
#include "mortarfs/process_internal.h"
#include "mount/fuse/fuse.h"

#define PLACE "volume-file"

/* How many translators would need more than that; or a negative errno. */
static FIBER int change_options(struct process *p, const struct volfile *file, struct error *err)
{
    SCOPED(dict_unref) struct dict *overrides = NULL;
    struct graph_options options = { .root_name = p->c->volume_name, .volfile_id = p->c->volfile_id };
    int r = overrides_make(p, file, &overrides);

    if (r < 0)
        return r;
    options.overrides = overrides;
    options.id = p->graph->id;
    return graph_reconfigure(p->graph, file, &options, err);
}

static bool is_brick(const struct process *p)
{
    return strcmp(p->graph->root->class->type, "protocol/server") == 0;
}

/* ---- graphs that open files still need ---- */

#define LEFT_MAX 16 /* more, and such files are lost at the next change */

struct left_graph {
    struct list node;
    struct process *p;
    struct graph *graph;
    struct translator *fuse;
};

static FIBER void reload(void *arg);

static void run_soon(struct process *p)
{
    if (!p->is_reloading)
        p->is_reloading = fiber_spawn(p->env, "reload", reload, p) == 0;
}

static void on_left(void *arg)
{
    struct left_graph *l = arg;

    l->p->left_is_due = true;
    if (!l->p->is_stopping)
        run_soon(l->p);
}

static FIBER void end_left(struct left_graph *l)
{
    list_del(&l->node);
    l->p->left_count--;
    graph_stop(l->graph);
    LOG(l->p->log, LOG_INFO, PLACE, "old-graph-ended", "graph=%u", l->graph->id);
    graph_free(l->graph);
    mem_free(l);
}

static FIBER void end_left_that_may(struct process *p)
{
    struct left_graph *l;

again:
    list_for_each (l, &p->left, node) {
        if (fuse_is_left(l->fuse) || !fuse_leave(p->fuse, l->fuse))
            continue;
        end_left(l);
        goto again; /* the list may have changed meanwhile */
    }
}

FIBER void reload_end_left(struct process *p)
{
    struct left_graph *l;

    while ((l = list_first(&p->left, struct left_graph, node)))
        end_left(l);
}

/* The mount has moved away from this graph: it ends, now or when its last file is closed. `l` is given. */
static FIBER void leave_graph(struct process *p, struct graph *graph, struct translator *fuse, struct left_graph *l)
{
    if (!l || !fuse_is_left(fuse)) {
        mem_free(l);
        graph_stop(graph);
        graph_free(graph);
        return;
    }
    *l = (struct left_graph) { .p = p, .graph = graph, .fuse = fuse };
    list_add_tail(&p->left, &l->node);
    p->left_count++;
    fuse_on_left(fuse, on_left, l);
    LOG(p->log, LOG_INFO, PLACE, "old-graph-stays", "graph=%u: removed files are open in it", graph->id);
}

/* ---- following the file ---- */

/* Of a process that nobody holds files in: a heal daemon. */
static FIBER int replace_graph(struct process *p, const char *text, struct error *err)
{
    struct graph *old = p->graph, *graph;
    struct translator *fuse;
    int r = graph_make(p, text, false, &graph, &fuse, err);

    if (r < 0)
        return r;
    p->graph = graph;
    graph_stop(old);
    graph_free(old);
    return 0;
}

static FIBER int change_graph(struct process *p, const char *text, struct error *err)
{
    struct graph *old = p->graph, *graph;
    struct translator *fuse;
    int r;

    if (is_brick(p))
        return error_set(err, -EBUSY, "%s describes another graph; restart this process to use it", volfile_label(p));
    if (!p->fuse)
        return replace_graph(p, text, err);
    r = graph_make(p, text, true, &graph, &fuse, err);
    if (r < 0)
        return r;
    struct left_graph *left = p->left_count < LEFT_MAX ? NEW(struct left_graph) : NULL;
    r = fuse_take_over(fuse, p->fuse, left != NULL, err);
    if (r < 0) {
        mem_free(left);
        graph_stop(graph);
        graph_free(graph);
        return r;
    }
    struct translator *old_fuse = p->fuse;
    p->graph = graph;
    p->fuse = fuse;
    leave_graph(p, old, old_fuse, left);
    return 0;
}

static FIBER int follow(struct process *p, struct error *err)
{
    SCOPED_FREE char *text = NULL;
    SCOPED(volfile_free) struct volfile *file = NULL;
    int r = volfile_get(p, &text, err);

    if (r < 0)
        return r;
    if (strcmp(text, p->volfile_text) == 0)
        return 0;
    r = volfile_parse(volfile_label(p), text, strlen(text), &file, err);
    if (r < 0)
        return r;
    r = graph_same_topology(p->graph, file) ? change_options(p, file, err) : 1;
    if (r > 0 && is_brick(p) && graph_same_topology(p->graph, file)) {
        LOG(p->log, LOG_WARNING, PLACE, "restart-needed", "translators=%d file=%s", r, volfile_label(p));
        r = 0;
    }
    if (r > 0)
        r = change_graph(p, text, err);
    if (r < 0)
        return r;
    mem_free(p->volfile_text);
    p->volfile_text = take(text);
    LOG(p->log, LOG_INFO, PLACE, "changed", "file=%s graph=%u", volfile_label(p), p->graph->id);
    return 0;
}

static FIBER void follow_and_tell(struct process *p)
{
    struct error *err = NEW(struct error);

    if (follow(p, err) < 0)
        LOG(p->log, LOG_ERROR, PLACE, "not-changed", "file=%s reason=\"%s\"; the old graph stays in use",
            volfile_label(p), err ? err->text : "");
    mem_free(err);
}

static FIBER void reload(void *arg)
{
    struct process *p = arg;

    while ((p->reload_again || p->left_is_due) && !p->is_stopping) {
        if (p->left_is_due) {
            p->left_is_due = false;
            end_left_that_may(p);
        }
        if (p->reload_again) {
            p->reload_again = false;
            follow_and_tell(p);
        }
    }
    p->is_reloading = false;
}

void reload_request(struct process *p)
{
    if (!p->is_ready || p->is_stopping)
        return;
    p->reload_again = true;
    run_soon(p);
}
