#include "mortarheal/volume.h"
#include "cluster/replicate/heal_info.h"
#include "core/mem.h"
#include "mortarfs/volserver.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define VOLFILE_BYTES_MAX (16 * 1024 * 1024)
#define LOOK_AGAIN_MS     5
#define PATHINFO          "trusted.glusterfs.pathinfo"
#define NODE_UUID         "trusted.glusterfs.node-uuid"

/* ---- the volume file ---- */

/* Reads size_bytes bytes or up to the end; how many, or -errno. */
static ssize_t read_bytes(int fd, char *data, size_t size_bytes)
{
    size_t used = 0;

    while (used < size_bytes) {
        ssize_t n = read(fd, data + used, size_bytes - used);

        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        used += (size_t)n;
    }
    return (ssize_t)used;
}

static int read_open_file(int fd, char **ret_text)
{
    SCOPED_FREE char *text = NULL;
    struct stat st = { 0 };
    ssize_t n;

    if (fstat(fd, &st) < 0)
        return -errno;
    if (st.st_size > VOLFILE_BYTES_MAX)
        return -EFBIG;
    text = mem_alloc((size_t)st.st_size + 1);
    if (!text)
        return -ENOMEM;
    n = read_bytes(fd, text, (size_t)st.st_size);
    if (n < 0)
        return (int)n;
    text[n] = '\0';
    *ret_text = take(text);
    return 0;
}

static int read_file(const char *path, char **ret_text, struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC), r = fd < 0 ? -errno : read_open_file(fd, ret_text);

    if (fd >= 0)
        (void)close(fd);
    return r < 0 ? error_set(err, r, "volume file %s: %s", path, strerror(-r)) : 0;
}

static void nothing_changed(void *arg)
{
}

static FIBER int get_text(struct volume *v, char **ret_text, struct error *err)
{
    struct volserver *server;
    size_t bytes;
    int r;

    if (v->args->c.volfile)
        return read_file(v->args->c.volfile, ret_text, err);
    server = volserver_new(v->env, &v->args->c, nothing_changed, NULL);
    if (!server)
        return -ENOMEM;
    r = volserver_fetch(server, ret_text, &bytes, err);
    volserver_free(server);
    return r;
}

/* ---- the graph ---- */

static int add_override(struct dict *d, const char *section, const char *key, const char *value)
{
    SCOPED_FREE char *full = mem_printf("%s.%s", section, key);

    return full ? dict_set_str(d, full, value) : -ENOMEM;
}

/* A graph that only looks heals nothing by itself, whatever the file says. */
static int overrides(const struct volfile *file, bool as_daemon, struct dict *d)
{
    int r = 0;

    for (unsigned i = 0; r == 0 && i < file->section_count; i++) {
        const struct volfile_section *s = file->sections[i];

        if (!s->type || strcmp(s->type, "cluster/replicate") != 0)
            continue;
        r = add_override(d, s->name, "iam-self-heal-daemon", as_daemon ? "on" : "off");
        if (r == 0)
            r = add_override(d, s->name, "self-heal-daemon", "on");
        if (r == 0)
            r = add_override(d, s->name, "background-self-heal-count", "0");
    }
    return r;
}

static void on_event(struct graph *graph, struct translator *from, const struct event *event)
{
}

static FIBER int start_graph(struct volume *v, bool as_daemon, struct error *err)
{
    SCOPED_FREE char *text = NULL;
    SCOPED(volfile_free) struct volfile *file = NULL;
    SCOPED(dict_unref) struct dict *changes = dict_new();
    const char *label = v->args->c.volfile ? v->args->c.volfile : v->args->c.volfile_id;
    struct graph_options options = { .overrides = changes, .volfile_id = v->args->c.volfile_id };
    int r = changes ? get_text(v, &text, err) : -ENOMEM;

    if (r == 0 && text)
        r = volfile_parse(label, text, strlen(text), &file, err);
    if (r == 0)
        r = overrides(file, as_daemon, changes);
    if (r == 0)
        r = graph_build(v->env, file, all_classes, &options, &v->graph, err);
    if (r < 0)
        return r;
    graph_set_event_handler(v->graph, on_event);
    r = graph_start(v->graph, err);
    if (r < 0) {
        graph_free(take(v->graph));
        return r;
    }
    return 0;
}

/* ---- sets and bricks ---- */

void volume_call(struct volume *v, struct call *call, int32_t pid)
{
    call_init(call, v->graph);
    call->pid = pid;
}

static FIBER void wait_for_bricks(struct volume *v)
{
    uint64_t end = env_deadline_ms(v->env, v->args->wait_s * 1000ull);

    for (unsigned i = 0; i < v->set_count; i++) {
        while (!heal_info_is_ready(v->sets[i]) && env_now_ns(v->env) < end)
            (void)fiber_sleep_ms(NULL, LOOK_AGAIN_MS); /* every turn looks at the time */
    }
}

static const char *option_of(const struct translator *t, const char *key)
{
    const char *text;

    return dict_get_str(t->options, key, &text) == 0 ? text : NULL;
}

/* "<POSIX(/bricks/1):host:/bricks/1/>": the directory in parentheses. Returned, or NULL. */
static char *directory_in(const char *pathinfo)
{
    const char *from = strchr(pathinfo, '('), *to = from ? strstr(from, "):") : NULL;

    return to ? mem_strndup(from + 1, (size_t)(to - from - 1)) : NULL;
}

static FIBER char *ask_text(struct brick *b, struct call *call, const char *name)
{
    SCOPED(inode_unref) struct inode *root = inode_table_get(b->set->graph, &gfid_root, S_IFDIR);
    SCOPED(reply_free) struct reply *r = reply_new();
    const char *text;

    if (!root || !r || child_getxattr(b->set, b->child, call, root, NULL, name, r) < 0 ||
        dict_get_str(r->xattrs, name, &text) < 0)
        return NULL;
    return mem_strdup(text);
}

static FIBER int name_brick(struct volume *v, struct brick *b)
{
    struct translator *t = b->set->children[b->child];
    SCOPED_FREE char *info = NULL;
    SCOPED_FREE char *directory = NULL;
    const char *host, *subvolume;
    struct call call;

    while (t->child_count && strcmp(t->class->type, "protocol/client") != 0)
        t = t->children[0];
    host = option_of(t, "remote-host");
    subvolume = option_of(t, "remote-subvolume");
    b->is_up = heal_info_child_is_up(b->set, b->child);
    if (b->is_up) {
        volume_call(v, &call, PID_HEAL_INFO);
        call.scope.deadline_ns = env_deadline_ms(v->env, v->args->wait_s * 1000ull);
        b->uuid = ask_text(b, &call, NODE_UUID);
        if (!subvolume || subvolume[0] != '/')
            info = ask_text(b, &call, PATHINFO);
        call_done(&call);
    }
    if (info)
        directory = directory_in(info);
    b->name = mem_printf("%s:%s", host ? host : "localhost",
                         directory   ? directory
                         : subvolume ? subvolume
                                     : b->set->children[b->child]->name);
    return b->name ? 0 : -ENOMEM;
}

static int find_sets(struct volume *v, struct error *err)
{
    unsigned bricks = 0;

    v->sets = mem_array(v->graph->count, sizeof(void *));
    if (!v->sets)
        return -ENOMEM;
    for (unsigned i = 0; i < v->graph->count; i++) {
        if (strcmp(v->graph->all[i]->class->type, "cluster/replicate") != 0)
            continue;
        v->sets[v->set_count++] = v->graph->all[i];
        bricks += v->graph->all[i]->child_count;
    }
    v->bricks = mem_array(bricks + 1, sizeof(*v->bricks));
    if (!v->bricks)
        return -ENOMEM;
    if (v->set_count == 0)
        return error_set(err, -EINVAL,
                         "This command is supported for only volumes of replicate/disperse type. Volume %s is not of "
                         "type replicate/disperse",
                         v->name);
    return 0;
}

/* "web-replicate-0" -> "web" */
static char *volume_name(const struct volume *v)
{
    const char *dash;

    for (unsigned i = 0; i < v->graph->count; i++) {
        const struct translator *t = v->graph->all[i];

        dash = strcmp(t->class->type, "cluster/replicate") == 0 ? strstr(t->name, "-replicate-") : NULL;
        if (dash)
            return mem_strndup(t->name, (size_t)(dash - t->name));
    }
    return mem_strdup(v->args->c.volfile_id ? v->args->c.volfile_id : v->graph->root->name);
}

FIBER int volume_open(struct volume *v, struct env *env, struct args *args, bool as_daemon, struct error *err)
{
    int r;

    *v = (struct volume) { .env = env, .args = args };
    r = start_graph(v, as_daemon, err);
    if (r < 0)
        return r;
    v->name = volume_name(v);
    r = v->name ? find_sets(v, err) : -ENOMEM;
    if (r < 0)
        return r;
    wait_for_bricks(v);
    for (unsigned i = 0; i < v->set_count; i++) {
        for (unsigned child = 0; r == 0 && child < v->sets[i]->child_count; child++) {
            v->bricks[v->brick_count] = (struct brick) { .set = v->sets[i], .child = child };
            r = name_brick(v, &v->bricks[v->brick_count++]);
        }
    }
    return r;
}

FIBER void volume_close(struct volume *v)
{
    if (v->graph) {
        graph_stop(v->graph);
        graph_free(v->graph);
    }
    for (unsigned i = 0; i < v->brick_count; i++) {
        mem_free(v->bricks[i].name);
        mem_free(v->bricks[i].uuid);
    }
    mem_free(v->bricks);
    mem_free(v->sets);
    mem_free(v->name);
    *v = (struct volume) { 0 };
}

int volume_find_brick(const struct volume *v, const char *name)
{
    for (unsigned i = 0; i < v->brick_count; i++) {
        if (strcmp(v->bricks[i].name, name) == 0 ||
            strcmp(v->bricks[i].set->children[v->bricks[i].child]->name, name) == 0)
            return (int)i;
    }
    return -ENOENT;
}
