/* From the command line to a running graph. */
#include "core/mem.h"
#include "mortarfs/process_internal.h"
#include "mount/fuse/fuse.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

extern const struct translator_class worm_class;

struct read_job {
    const char *path;
    char *text;
    int result;
};

static void read_file(void *arg)
{
    struct read_job *j = arg;
    struct stat st;
    size_t used = 0;
    ssize_t n = 1;
    int fd = open(j->path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &st) < 0) {
        j->result = -errno;
    } else if (st.st_size > VOLFILE_MAX_BYTES) {
        j->result = -EFBIG;
    } else if (!(j->text = mem_alloc((size_t)st.st_size + 1))) {
        j->result = -ENOMEM;
    } else {
        while (used < (size_t)st.st_size && (n = read(fd, j->text + used, (size_t)st.st_size - used)) > 0)
            used += (size_t)n;
        j->text[used] = 0;
        j->result = n < 0 ? -errno : 0;
    }
    if (fd >= 0)
        (void)close(fd);
}

const char *volfile_label(const struct process *p)
{
    return p->c->volfile ? p->c->volfile : p->c->volfile_id;
}

FIBER int volfile_get(struct process *p, char **ret_text, struct error *err)
{
    SCOPED_FREE struct read_job *j = NULL;
    size_t bytes;

    if (p->volserver)
        return volserver_fetch(p->volserver, ret_text, &bytes, err);
    j = NEW(struct read_job);
    if (!j)
        return -ENOMEM;
    j->path = p->c->volfile;
    env_pool_run(p->env, read_file, j);
    if (j->result < 0) {
        mem_free(j->text);
        return error_set(err, j->result, "volume file %s: %s", p->c->volfile, strerror(-j->result));
    }
    *ret_text = j->text;
    return 0;
}

/* Sets KEY in every section of one type. */
static int override_type(struct dict *d, const struct volfile *file, const char *type, const char *key,
                         const char *value)
{
    for (unsigned i = 0; i < file->section_count; i++) {
        const struct volfile_section *s = file->sections[i];

        if (!s->type || strcmp(s->type, type) != 0)
            continue;
        SCOPED_FREE char *full = mem_printf("%s.%s", s->name, key);
        int r = full ? dict_set_str(d, full, value) : -ENOMEM;
        if (r < 0)
            return r;
    }
    return 0;
}

int overrides_make(const struct process *p, const struct volfile *file, struct dict **ret_overrides)
{
    SCOPED(dict_unref) struct dict *d = dict_copy(p->c->xlator_options);
    char port[16];
    int r = d ? 0 : -ENOMEM;

    if (r == 0 && p->c->subdir)
        r = override_type(d, file, "protocol/client", "subdir-mount", p->c->subdir);
    if (r == 0 && p->c->brick_port) {
        (void)snprintf(port, sizeof(port), "%u", p->c->brick_port);
        r = override_type(d, file, "protocol/server", "transport.socket.listen-port", port);
    }
    if (r < 0)
        return r;
    *ret_overrides = take(d);
    return 0;
}

static int fuse_options(struct process *p, struct dict **ret_options)
{
    SCOPED(dict_unref) struct dict *d = dict_copy(p->c->fuse_options);
    const char *process = p->c->process_name;
    const char *subtype = cmdline_is_compat(p->c) ? "glusterfs" : "mortar";
    SCOPED_FREE char *source = p->volserver
                                   ? mem_printf("%s:%s%s%s", p->c->servers[0], p->c->volfile_id[0] == '/' ? "" : "/",
                                                p->c->volfile_id, p->c->subdir ? p->c->subdir : "")
                                   : mem_strdup(p->c->volfile);
    int r;

    if (!d || !source)
        return -ENOMEM;
    if (process && strncmp(process, "fuse.", 5) == 0 && process[5])
        subtype = process + 5;
    r = dict_set_str(d, "mountpoint", p->c->mount_point);
    /* mount.mortar passes the source as the user wrote it. */
    if (r == 0 && !dict_has(d, "source"))
        r = dict_set_str(d, "source", source);
    if (r == 0)
        r = dict_set_str(d, "subtype", subtype);
    if (r == 0 && p->c->no_root_squash && !dict_has(d, "client-pid"))
        r = dict_set_int(d, "client-pid", PID_NO_ROOT_SQUASH);
    if (r < 0)
        return r;
    *ret_options = take(d);
    return 0;
}

static int push_mount(struct process *p, struct graph *graph, bool replaces, struct translator **ret_fuse,
                      struct error *err)
{
    SCOPED(dict_unref) struct dict *options = NULL;
    int r = fuse_options(p, &options);

    if (r < 0)
        return r;
    if (p->c->worm) {
        SCOPED(dict_unref) struct dict *on = dict_new();

        r = on ? dict_set_str(on, "worm", "on") : -ENOMEM;
        if (r == 0)
            r = graph_push(graph, &worm_class, "worm", on, NULL, err);
        if (r < 0)
            return r;
    }
    r = graph_push(graph, &fuse_class, "fuse", options, ret_fuse, err);
    if (r < 0)
        return r;
    fuse_on_end(*ret_fuse, process_on_unmount, p);
    if (replaces)
        fuse_will_take_over(*ret_fuse);
    return 0;
}

static int check_use(struct process *p, const struct graph *graph, struct error *err)
{
    bool is_brick = strcmp(graph->root->class->type, "protocol/server") == 0;

    if (is_brick && p->c->mount_point)
        return error_set(err, -EINVAL,
                         "%s: the last section, \"%s\", is a server (protocol/server): start it without the "
                         "mount point %s, or use the volume file of a client",
                         volfile_label(p), graph->root->name, p->c->mount_point);
    return 0;
}

static FIBER int build(struct process *p, const char *text, bool replaces, struct graph **ret_graph,
                       struct translator **ret_fuse, struct error *err)
{
    SCOPED(volfile_free) struct volfile *file = NULL;
    SCOPED(dict_unref) struct dict *overrides = NULL;
    struct graph_options options = { .root_name = p->c->volume_name, .volfile_id = p->c->volfile_id };
    int r = volfile_parse(volfile_label(p), text, strlen(text), &file, err);

    if (r < 0)
        return r;
    r = overrides_make(p, file, &overrides);
    if (r < 0)
        return r;
    options.overrides = overrides;
    options.id = p->graph_count++;
    options.process_id = p->process_id;
    r = graph_build(p->env, file, all_classes, &options, ret_graph, err);
    if (r < 0)
        return r;
    (*ret_graph)->edge = p;
    graph_set_event_handler(*ret_graph, process_on_event);
    r = check_use(p, *ret_graph, err);
    if (r == 0 && p->c->mount_point)
        r = push_mount(p, *ret_graph, replaces, ret_fuse, err);
    return r;
}

FIBER int graph_make(struct process *p, const char *text, bool replaces, struct graph **ret_graph,
                     struct translator **ret_fuse, struct error *err)
{
    struct graph *graph = NULL;
    struct translator *fuse = NULL;
    int r = build(p, text, replaces, &graph, &fuse, err);

    if (r == 0)
        r = graph_start(graph, err);
    if (r < 0) {
        if (err && !err->text[0])
            (void)error_set(err, r, "%s: %s", volfile_label(p), strerror(-r));
        graph_free(graph);
        return r;
    }
    *ret_graph = graph;
    *ret_fuse = fuse;
    return 0;
}
