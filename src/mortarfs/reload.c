/* When the volume file changes: options in place where that is enough, else a new graph beside the old one, to which the
 * mount moves. A brick whose graph has another shape must be restarted: its clients hold descriptors in the old one. */
#include "core/mem.h"
#include "mortarfs/process_internal.h"
#include "mount/fuse/fuse.h"

#define PLACE "volume-file"

static FIBER int change_options(struct process *p, const struct volfile *file, struct error *err)
{
    SCOPED(dict_unref) struct dict *overrides = NULL;
    struct graph_options options = { .root_name = p->c->volume_name, .volfile_id = p->c->volfile_id };
    int r = overrides_make(p, file, &overrides);

    if (r < 0)
        return r;
    options.overrides = overrides;
    options.id = p->graph->id;
    r = graph_reconfigure(p->graph, file, &options, err);
    if (r > 0)
        LOG(p->log, LOG_WARNING, PLACE, "restart-needed", "translators=%d file=%s", r, volfile_label(p));
    return r;
}

static FIBER int change_graph(struct process *p, const char *text, struct error *err)
{
    struct graph *old = p->graph, *graph;
    struct translator *fuse;
    int r;

    if (!p->fuse)
        return error_set(err, -EBUSY, "%s describes another graph; restart this process to use it", volfile_label(p));
    r = graph_make(p, text, true, &graph, &fuse, err);
    if (r < 0)
        return r;
    r = fuse_take_over(fuse, p->fuse, err);
    if (r < 0) {
        graph_stop(graph);
        graph_free(graph);
        return r;
    }
    p->graph = graph;
    p->fuse = fuse;
    graph_stop(old);
    graph_free(old);
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
    if (graph_same_topology(p->graph, file))
        r = change_options(p, file, err);
    else
        r = change_graph(p, text, err);
    if (r < 0)
        return r;
    mem_free(p->volfile_text);
    p->volfile_text = take(text);
    LOG(p->log, LOG_INFO, PLACE, "changed", "file=%s graph=%u", volfile_label(p), p->graph->id);
    return 0;
}

static FIBER void reload(void *arg)
{
    struct process *p = arg;
    struct error *err = NEW(struct error);

    do {
        p->reload_again = false;
        if (follow(p, err) < 0)
            LOG(p->log, LOG_ERROR, PLACE, "not-changed", "file=%s reason=\"%s\"; the old graph stays in use",
                volfile_label(p), err ? err->text : "");
    } while (p->reload_again && !p->is_stopping);
    mem_free(err);
    p->is_reloading = false;
}

void reload_request(struct process *p)
{
    if (!p->is_ready || p->is_stopping)
        return;
    p->reload_again = true;
    if (p->is_reloading)
        return;
    p->is_reloading = fiber_spawn(p->env, "reload", reload, p) == 0;
}
