/* A parsed volume file becomes a graph; a changed one changes a graph in place. */
#include "graph/graph_internal.h"
#include "core/mem.h"
#include "graph/nearest.h"
#include <stdio.h>

struct builder {
    struct graph *graph;
    const struct volfile *file;
    const struct graph_options *options;
    struct log *log;
    struct error *err;
    struct translator **made; /* per section of the file; NULL: not made */
};

static const char *section_at(const void *arg, unsigned i)
{
    const struct volfile *file = arg;

    return i < file->section_count ? file->sections[i]->name : NULL;
}

static const struct volfile_section *find_root(const struct volfile *file, const char *name, struct error *err)
{
    if (!name)
        return file->sections[file->section_count - 1];
    const struct volfile_section *root = volfile_find(file, name);
    if (!root) {
        const char *near = nearest_name(name, section_at, file);
        error_set(err, -ENOENT, "%s: has no section \"%.64s\" to use as the top%s%.64s%s", file->path, name,
                  near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "");
    }
    return root;
}

/* Marks what can be reached from the root: children stand before parents, so one pass downwards does it. */
static bool *reachable_from(const struct volfile *file, const struct volfile_section *root)
{
    bool *marks = mem_array(file->section_count, sizeof(*marks));

    if (!marks)
        return NULL;
    marks[root->index] = true;
    for (unsigned i = root->index + 1; i-- > 0;) {
        const struct volfile_section *s = file->sections[i];
        for (unsigned k = 0; marks[i] && k < s->child_count; k++)
            marks[s->children[k]->index] = true;
    }
    return marks;
}

static int check_child_count(const struct builder *b, const struct volfile_section *s,
                             const struct translator_class *class)
{
    unsigned count = s->child_count;
    unsigned max = class->is_leaf ? 0 : class->children_max;

    if (class->is_leaf && count > 0)
        return error_set(b->err, -EINVAL, "%s:%u: section \"%.64s\" has %u subvolume%s, %s takes none", b->file->path,
                         s->line, s->name, count, count == 1 ? "" : "s", s->type);
    if (count < class->children_min)
        return error_set(b->err, -EINVAL, "%s:%u: section \"%.64s\" has %u subvolume%s, %s needs at least %u",
                         b->file->path, s->line, s->name, count, count == 1 ? "" : "s", s->type, class->children_min);
    if (max && count > max)
        return error_set(b->err, -EINVAL, "%s:%u: section \"%.64s\" has %u subvolumes, %s takes at most %u",
                         b->file->path, s->line, s->name, count, s->type, max);
    return 0;
}

static const struct translator_class *class_of(const struct builder *b, const struct volfile_section *s)
{
    const struct translator_class *class = class_find(b->graph->classes, s->type);
    const char *advice = NULL;
    char where[224];

    if (class)
        return class;
    snprintf(where, sizeof(where), "%.200s:%u", b->file->path, s->type_line);
    class = class_for_old_type(b->graph->classes, s->type, s->name, where, &advice, b->err);
    if (class)
        LOG(b->log, LOG_WARNING, s->name, "passed-through", "%s: type \"%s\" is not there: %s", where, s->type, advice);
    return class;
}

static int make_translator(struct builder *b, const struct volfile_section *s, const struct translator_class *class)
{
    SCOPED_FREE struct translator **children = mem_array(s->child_count + 1, sizeof(struct translator *));
    struct translator *me;

    if (!children)
        return -ENOMEM;
    for (unsigned i = 0; i < s->child_count; i++)
        children[i] = b->made[s->children[i]->index];
    int r = translator_new(b->graph, class, s->name, children, s->child_count, &me);
    if (r < 0)
        return r;
    me->line = s->line;
    b->made[s->index] = me;
    return 0;
}

static int build_section(struct builder *b, const struct volfile_section *s)
{
    const struct translator_class *class = class_of(b, s);
    const char *volume_id;

    if (!class)
        return -EINVAL;
    int r = check_child_count(b, s, class);
    if (r < 0)
        return r;
    SCOPED(dict_unref) struct dict *options = NULL;
    r = options_collect(b->file, s, b->options ? b->options->overrides : NULL, b->log, &options, b->err);
    if (r < 0)
        return r;
    r = options_check(b->file, s, class, options,
                      class->options || class_find(b->graph->classes, s->type) ? b->log : NULL, b->err);
    if (r < 0)
        return r;
    r = make_translator(b, s, class);
    if (r < 0)
        return error_set(b->err, r, "%s:%u: section \"%.64s\": out of memory", b->file->path, s->line, s->name);
    struct translator *me = b->made[s->index];
    me->options = take(options);
    if (!b->graph->volume_id && dict_get_str(me->options, "volume-id", &volume_id) == 0) {
        b->graph->volume_id = mem_strdup(volume_id);
        if (!b->graph->volume_id)
            return error_set(b->err, -ENOMEM, "%s: out of memory", b->file->path);
    }
    r = translator_init(me, b->err);
    return r < 0 ? error_prefix(b->err, r, "%s:%u: section \"%.64s\" (%s)", b->file->path, s->line, s->name, s->type)
                 : 0;
}

static int keep_names(struct graph *graph, const struct graph_options *options)
{
    if (!options)
        return 0;
    graph->id = options->id;
    if (options->process_id)
        (void)snprintf(graph->process_id, sizeof(graph->process_id), "%s", options->process_id);
    if (options->volfile_id && !(graph->volfile_id = mem_strdup(options->volfile_id)))
        return -ENOMEM;
    if (options->root_name && !(graph->root_name = mem_strdup(options->root_name)))
        return -ENOMEM;
    return 0;
}

static int build_all(struct builder *b, const struct volfile_section *root)
{
    SCOPED_FREE bool *marks = reachable_from(b->file, root);
    int r = 0;

    if (!marks)
        return error_set(b->err, -ENOMEM, "%s: out of memory", b->file->path);
    for (unsigned i = 0; r == 0 && i <= root->index; i++) {
        if (marks[i])
            r = build_section(b, b->file->sections[i]);
    }
    if (r == 0)
        b->graph->root = b->graph->file_root = b->made[root->index];
    return r;
}

int graph_build(struct env *env, const struct volfile *file, class_list classes, const struct graph_options *options,
                struct graph **ret_graph, struct error *err)
{
    const struct volfile_section *root = find_root(file, options ? options->root_name : NULL, err);

    if (!root)
        return -ENOENT;
    struct graph *graph = graph_new(env);
    SCOPED_FREE struct translator **made = mem_array(file->section_count, sizeof(struct translator *));
    if (!graph || !made || keep_names(graph, options) < 0) {
        graph_free(graph);
        return error_set(err, -ENOMEM, "%s: out of memory", file->path);
    }
    graph->classes = classes;
    struct builder b = {
        .graph = graph,
        .file = file,
        .options = options,
        .log = env_log(env),
        .err = err,
        .made = made,
    };
    int r = build_all(&b, root);
    if (r < 0) {
        graph_free(graph);
        return r;
    }
    *ret_graph = graph;
    return 0;
}

/* ---- changes in place ---- */

static bool same_section(const struct graph *graph, const struct translator *t, const struct volfile_section *s)
{
    const struct translator_class *class = class_find(graph->classes, s->type);
    const char *advice;

    if (!class)
        class = class_for_old_type(graph->classes, s->type, s->name, "", &advice, NULL);
    if (strcmp(t->name, s->name) != 0 || t->class != class || t->child_count != s->child_count)
        return false;
    for (unsigned i = 0; i < s->child_count; i++) {
        if (strcmp(t->children[i]->name, s->children[i]->name) != 0)
            return false;
    }
    return true;
}

/* Translators from a file have a line and keep the file's order; those pushed in code have none. */
static const struct translator *next_from_file(const struct graph *graph, unsigned *at)
{
    while (*at < graph->count) {
        const struct translator *t = graph->all[(*at)++];
        if (t->line)
            return t;
    }
    return NULL;
}

bool graph_same_topology(const struct graph *graph, const struct volfile *file)
{
    const struct volfile_section *root = find_root(file, graph->root_name, NULL);
    unsigned at = 0;

    if (!root || !graph->classes)
        return false;
    SCOPED_FREE bool *marks = reachable_from(file, root);
    for (unsigned i = 0; marks && i <= root->index; i++) {
        if (!marks[i])
            continue;
        const struct translator *t = next_from_file(graph, &at);
        if (!t || !same_section(graph, t, file->sections[i]))
            return false;
    }
    return marks && !next_from_file(graph, &at);
}

struct change {
    struct translator *me;
    const struct volfile_section *section;
    struct dict *options; /* the new ones */
};

static int prepare_change(struct change *c, struct graph *graph, const struct volfile *file,
                          const struct graph_options *options, struct error *err)
{
    struct log *log = env_log(graph->env);

    c->section = volfile_find(file, c->me->name);
    int r = options_collect(file, c->section, options ? options->overrides : NULL, log, &c->options, err);
    if (r < 0)
        return r;
    return options_check(file, c->section, c->me->class, c->options, c->me->class->options ? log : NULL, err);
}

/* 1 when something needs a restart. */
static int apply_change(struct change *c, struct error *err)
{
    struct translator *me = c->me;
    bool needs_restart = false;
    int r = 0;

    if (me->class->options)
        r = options_reconfigure(me->class->options, me->options, c->options, me->state, &needs_restart, err);
    if (r == 0)
        r = options_tell(me, c->options, err);
    if (r < 0)
        return error_prefix(err, r, "section \"%.64s\" (%s)", me->name, me->class->type);
    dict_unref(me->options);
    me->options = take(c->options);
    if (me->class->reconfigured)
        me->class->reconfigured(me);
    if (needs_restart)
        TLOG(me, LOG_WARNING, "restart-needed", "an option changed that acts only after a restart of this process");
    return needs_restart ? 1 : 0;
}

static int change_all(struct change *changes, unsigned count, struct graph *graph, const struct volfile *file,
                      const struct graph_options *options, struct error *err)
{
    int restarts = 0;

    for (unsigned i = 0; i < count; i++) {
        int r = prepare_change(&changes[i], graph, file, options, err);
        if (r < 0)
            return r;
    }
    for (unsigned i = 0; i < count; i++) {
        int r = apply_change(&changes[i], err);
        if (r < 0)
            return r;
        restarts += r;
    }
    return restarts;
}

int graph_reconfigure(struct graph *graph, const struct volfile *file, const struct graph_options *options,
                      struct error *err)
{
    unsigned at = 0, count = 0;

    if (!graph_same_topology(graph, file))
        return error_set(err, -EINVAL,
                         "%s: sections, types or subvolumes differ from the running graph; a new graph is "
                         "needed",
                         file->path);
    SCOPED_FREE struct change *changes = mem_array(graph->count + 1, sizeof(*changes));
    if (!changes)
        return error_set(err, -ENOMEM, "%s: out of memory", file->path);
    while (next_from_file(graph, &at))
        changes[count++].me = graph->all[at - 1];
    int r = change_all(changes, count, graph, file, options, err);
    for (unsigned i = 0; i < count; i++)
        dict_unref(changes[i].options);
    return r;
}
