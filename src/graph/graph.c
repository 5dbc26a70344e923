/* Life of a graph: translators made, started, stopped, freed. */
#include "graph/graph_internal.h"
#include "core/mem.h"

struct graph *graph_new(struct env *env)
{
    struct graph *graph = NEW(struct graph);

    if (!graph)
        return NULL;
    graph->inodes = inode_table_new();
    if (!graph->inodes) {
        mem_free(graph);
        return NULL;
    }
    graph->env = env;
    list_init(&graph->clients);
    list_init(&graph->fds);
    graph->is_tracing = log_level(env_log(env)) >= LOG_TRACE;
    return graph;
}

/* ---- translators ---- */

static void translator_free(struct translator *me)
{
    if (me->is_initialised && me->class->fini)
        me->class->fini(me);
    if (me->state && me->class->options)
        options_release(me->class->options, me->state);
    dict_unref(me->options);
    mem_free(me->state);
    mem_free(me->name);
    mem_free(me->children);
    mem_free(me->parents);
    mem_free(me);
}

static int add_parent(struct translator *child, struct translator *parent)
{
    struct translator **parents = mem_realloc(child->parents, (child->parent_count + 1) * sizeof(struct translator *));

    if (!parents)
        return -ENOMEM;
    child->parents = parents;
    child->parents[child->parent_count++] = parent;
    return 0;
}

static void drop_parent(struct translator *child, const struct translator *parent)
{
    if (child->parent_count && child->parents[child->parent_count - 1] == parent)
        child->parent_count--;
}

static int fill(struct translator *me, const char *name, struct translator **children, unsigned child_count)
{
    struct graph *graph = me->graph;

    me->name = mem_strdup(name);
    me->state = mem_zalloc(me->class->state_size ? me->class->state_size : 1);
    me->children = mem_array(child_count ? child_count : 1, sizeof(struct translator *));
    if (!me->name || !me->state || !me->children)
        return -ENOMEM;
    struct translator **all = mem_realloc(graph->all, (graph->count + 1) * sizeof(struct translator *));
    if (!all)
        return -ENOMEM;
    graph->all = all;
    for (unsigned i = 0; i < child_count; i++) {
        int r = add_parent(children[i], me);
        if (r < 0)
            return r;
        me->children[me->child_count++] = children[i];
    }
    return 0;
}

int translator_new(struct graph *graph, const struct translator_class *class, const char *name,
                   struct translator **children, unsigned child_count, struct translator **ret_translator)
{
    struct translator *me = NEW(struct translator);

    if (!me)
        return -ENOMEM;
    me->class = class;
    me->graph = graph;
    me->env = graph->env;
    int r = fill(me, name, children, child_count);
    if (r < 0) {
        for (unsigned i = 0; i < me->child_count; i++)
            drop_parent(me->children[i], me);
        translator_free(me);
        return r;
    }
    me->inode_slot = class->uses_inode_ctx ? (int)graph->inode_slots++ : -1;
    me->fd_slot = class->uses_fd_ctx ? (int)graph->fd_slots++ : -1;
    me->client_slot = class->uses_client_ctx ? (int)graph->client_slots++ : -1;
    graph->all[graph->count++] = me;
    *ret_translator = me;
    return 0;
}

int translator_init(struct translator *me, struct error *err)
{
    int r = 0;

    if (me->class->options)
        r = options_parse(me->class->options, me->options, me->state, err);
    if (r == 0)
        r = options_tell(me, me->options, err);
    if (r < 0)
        return r;
    me->is_initialised = true; /* fini runs also after a failed init */
    return me->class->init ? me->class->init(me, err) : 0;
}

struct translator *graph_find(const struct graph *graph, const char *name)
{
    for (unsigned i = 0; i < graph->count; i++) {
        if (strcmp(graph->all[i]->name, name) == 0)
            return graph->all[i];
    }
    return NULL;
}

void graph_set_event_handler(struct graph *graph, graph_event_fn fn)
{
    graph->event_handler = fn;
}

/* Takes the newest translator, which nobody has as a child yet, out again. */
static void take_back(struct graph *graph, struct translator *me)
{
    assert(graph->count > 0 && graph->all[graph->count - 1] == me);
    graph->count--;
    for (unsigned i = 0; i < me->child_count; i++)
        drop_parent(me->children[i], me);
    translator_free(me);
}

int graph_push(struct graph *graph, const struct translator_class *class, const char *name, const struct dict *options,
               struct translator **ret_translator, struct error *err)
{
    struct translator *me = NULL;

    if (inode_table_count(graph) > 0 || !list_empty(&graph->fds) || !list_empty(&graph->clients))
        return error_set(err, -EBUSY, "translator \"%s\" (%s) comes too late: the graph is in use", name, class->type);
    int r = translator_new(graph, class, name, &graph->root, graph->root ? 1 : 0, &me);
    if (r < 0)
        return error_set(err, r, "translator \"%s\" (%s): out of memory", name, class->type);
    me->options = dict_copy(options);
    r = me->options ? translator_init(me, err) : error_set(err, -ENOMEM, "out of memory");
    if (r < 0) {
        take_back(graph, me);
        return error_prefix(err, r, "translator \"%s\" (%s)", name, class->type);
    }
    graph->root = me;
    if (ret_translator)
        *ret_translator = me;
    return 0;
}

/* ---- start and stop ---- */

static FIBER void stop_down_from(struct graph *graph, unsigned count)
{
    for (unsigned i = count; i-- > 0;) {
        struct translator *t = graph->all[i];
        if (t->is_started && t->class->stop)
            t->class->stop(t);
        t->is_started = false;
    }
}

FIBER int graph_start(struct graph *graph, struct error *err)
{
    for (unsigned i = 0; i < graph->count; i++) {
        struct translator *t = graph->all[i];
        int r = t->class->start ? t->class->start(t, err) : 0;
        if (r < 0) {
            stop_down_from(graph, i);
            return error_prefix(err, r, "section \"%.64s\" (%s)", t->name, t->class->type);
        }
        t->is_started = true;
    }
    for (unsigned i = 0; i < graph->count; i++) {
        struct translator *t = graph->all[i];
        if (t->child_count == 0 && !t->class->start && !t->is_up)
            notify_parents(t, &(struct event) { .kind = EVENT_CHILD_UP });
    }
    return 0;
}

FIBER void graph_stop(struct graph *graph)
{
    graph->is_stopping = true;
    stop_down_from(graph, graph->count);
}

void graph_free(struct graph *graph)
{
    if (!graph)
        return;
    if (!list_empty(&graph->fds) || !list_empty(&graph->clients))
        LOG(env_log(graph->env), LOG_ERROR, "graph", "leak",
            "descriptors or clients are still open when the graph ends");
    size_t left = inode_table_free(graph->inodes);
    if (left)
        LOG(env_log(graph->env), LOG_ERROR, "graph", "leak", "%zu inodes are still in use when the graph ends", left);
    for (unsigned i = graph->count; i-- > 0;)
        translator_free(graph->all[i]);
    mem_free(graph->all);
    mem_free(graph->volfile_id);
    mem_free(graph->volume_id);
    mem_free(graph->root_name);
    mem_free(graph);
}
