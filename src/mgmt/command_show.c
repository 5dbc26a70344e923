/* Commands that show. */
#include "core/mem.h"
#include "mgmt/command_internal.h"
#include "mgmt/groups.h"
#include "mgmt/keys.h"
#include "mgmt/nodes.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>

/* Adds a member; `value` is given. 0 or -ENOMEM. */
static int put(json_t *object, const char *key, json_t *value)
{
    return value && json_object_set_new(object, key, value) == 0 ? 0 : -ENOMEM;
}

static int append(json_t *list, json_t *value)
{
    return value && json_array_append_new(list, value) == 0 ? 0 : -ENOMEM;
}

/* ---- info, list ---- */

/* A volume as `volume info` tells it: without the secrets. */
static json_t *describe(const struct mortard *d, const struct volume *v)
{
    json_t *o = volume_to_json(v);
    json_t *settings = o ? json_object_get(o, "settings") : NULL;
    int r = o ? 0 : -ENOMEM;

    /* The cluster's own options are shown with every volume. */
    for (unsigned i = 0; i < d->cluster->settings.count && r == 0; i++)
        r = append(settings, json_pack("[ss]", d->cluster->settings.list[i].key, d->cluster->settings.list[i].value));
    (void)json_object_del(o, "username"); /* they are there */
    (void)json_object_del(o, "password");
    if (r < 0) {
        json_decref(o);
        return NULL;
    }
    return o;
}

/* Volumes of the request: the one named, or all. */
static int list_volumes(struct mortard *d, const json_t *request, json_t *answer,
                        json_t *(*show)(const struct mortard *d, const struct volume *v), struct error *err)
{
    const char *name = request_text(request, "name");
    json_t *list = json_array();
    struct volume *v;
    int r = put(answer, "volumes", list);

    if (r < 0)
        return r;
    if (name && strcmp(name, "all") != 0) {
        r = request_volume(d, request, &v, err);
        return r < 0 ? r : append(list, show(d, v));
    }
    for (unsigned i = 0; i < d->cluster->volume_count && r == 0; i++)
        r = append(list, show(d, d->cluster->volumes[i]));
    return r;
}

int command_volume_info(struct mortard *d, const json_t *request, json_t *answer, struct error *err)
{
    return list_volumes(d, request, answer, describe, err);
}

static json_t *name_only(const struct mortard *d, const struct volume *v)
{
    (void)d;
    return json_string(v->name);
}

int command_volume_list(struct mortard *d, const json_t *request, json_t *answer, struct error *err)
{
    return list_volumes(d, request, answer, name_only, err);
}

/* ---- status ---- */

static int put_space(json_t *row, const struct brick *b)
{
    struct statvfs fs;

    if (statvfs(b->path, &fs) < 0)
        return 0; /* what is not there is not shown */
    return json_object_update_new(row, json_pack("{s:I, s:I, s:I, s:I, s:i}", "size_total",
                                                 (json_int_t)fs.f_blocks * (json_int_t)fs.f_frsize, "size_free",
                                                 (json_int_t)fs.f_bavail * (json_int_t)fs.f_frsize, "inodes_total",
                                                 (json_int_t)fs.f_files, "inodes_free", (json_int_t)fs.f_ffree,
                                                 "block_size", (int)fs.f_bsize)) == 0
               ? 0
               : -ENOMEM;
}

static json_t *brick_row(const struct mortard *d, const struct volume *v, unsigned i)
{
    const struct brick *b = &v->bricks[i];
    SCOPED_FREE char *key = brick_key(v, i);
    struct process *p = key ? process_find(d, key) : NULL;
    bool is_up = p && process_look(p);
    json_t *row = json_pack("{s:s, s:s, s:s, s:s, s:b, s:i, s:i, s:s}", "kind", "brick", "host", b->host, "path",
                            b->path, "node", GFID_TEXT(&b->node), "online", is_up, "port", is_up ? (int)p->port : 0,
                            "pid", is_up ? p->pid : 0, "why", p ? p->why : "");

    if (row && put_space(row, b) < 0) {
        json_decref(row);
        return NULL;
    }
    return row;
}

static json_t *heal_row(const struct mortard *d, const struct volume *v)
{
    SCOPED_FREE char *key = mem_printf("heal shd/%s", v->name);
    struct process *p = key ? process_find(d, key) : NULL;
    bool is_up = p && process_look(p);

    return json_pack("{s:s, s:s, s:s, s:s, s:b, s:i, s:i, s:s}", "kind", "heal", "host", "localhost", "path", "",
                     "node", GFID_TEXT(&d->node), "online", is_up, "port", 0, "pid", is_up ? p->pid : 0, "why",
                     p ? p->why : "");
}

json_t *status_rows(struct mortard *d, const struct volume *v)
{
    json_t *rows = json_array();
    bool is_here = false;
    int r = rows ? 0 : -ENOMEM;

    for (unsigned i = 0; i < v->brick_count && r == 0 && v->state == VOLUME_STARTED; i++) {
        if (!gfid_equal(&v->bricks[i].node, &d->node))
            continue;
        is_here = true;
        r = append(rows, brick_row(d, v, i));
    }
    if (r == 0 && is_here && v->kind == VOLUME_REPLICATE && volume_option_is_on(v, "cluster.self-heal-daemon"))
        r = append(rows, heal_row(d, v));
    if (r < 0) {
        json_decref(rows);
        return NULL;
    }
    return rows;
}

/* Rows of one machine, added to those there are. Its heal daemon is known by its name. */
static FIBER int add_rows(struct mortard *d, const char *volume, const struct gfid *node, json_t *rows)
{
    json_t *answer = NULL;
    size_t i;
    json_t *row;
    int r = node_ask(d, node, json_pack("{s:s, s:s}", "ask", "status", "name", volume), &answer, NULL);

    if (r < 0)
        return r == -ENOMEM ? r : 0; /* who cannot be reached is not shown */
    json_array_foreach(json_object_get(answer, "rows"), i, row)
    {
        if (strcmp(json_string_value(json_object_get(row, "kind")), "heal") == 0)
            (void)json_object_set_new(row, "host", json_string(node_name(d, node))); /* or it keeps its own */
        if (json_array_append(rows, row) < 0)
            r = -ENOMEM;
    }
    json_decref(answer);
    return r;
}

/* Bricks in the order of the volume, then the heal daemons, this machine's first. */
static json_t *sort_rows(const struct volume *v, const json_t *rows)
{
    json_t *sorted = json_array();
    size_t i;
    json_t *row;

    for (unsigned b = 0; sorted && b < v->brick_count; b++) {
        json_array_foreach(rows, i, row)
        {
            if (strcmp(request_text(row, "kind"), "brick") == 0 &&
                strcmp(request_text(row, "host"), v->bricks[b].host) == 0 &&
                strcmp(request_text(row, "path"), v->bricks[b].path) == 0)
                (void)json_array_append(sorted, row); /* no memory: not shown */
        }
    }
    for (int local = 1; sorted && local >= 0; local--) {
        json_array_foreach(rows, i, row)
        {
            if (strcmp(request_text(row, "kind"), "heal") == 0 &&
                (strcmp(request_text(row, "host"), "localhost") == 0) == (local == 1))
                (void)json_array_append(sorted, row); /* as above */
        }
    }
    return sorted;
}

/* One volume's status, added to the list. */
static FIBER int add_status(struct mortard *d, const char *name, json_t *list)
{
    SCOPED(volume_free) struct volume *v = NULL; /* the state may change while machines are asked */
    struct volume *known = cluster_find_volume(d->cluster, name);
    json_t *rows = json_array(), *sorted;
    struct gfid *nodes = mem_array(CLUSTER_NODES_MAX, sizeof(*nodes));
    unsigned count = d->cluster->node_count;
    int r;

    if (known)
        v = volume_copy(known);
    for (unsigned i = 0; nodes && i < count; i++)
        nodes[i] = d->cluster->nodes[i].id;
    r = v && rows && nodes ? 0 : -ENOMEM;
    for (unsigned i = 0; r == 0 && i < count && v->state == VOLUME_STARTED; i++)
        r = add_rows(d, name, &nodes[i], rows);
    sorted = r == 0 ? sort_rows(v, rows) : NULL;
    if (r == 0)
        r = append(list,
                   json_pack("{s:s, s:b, s:o}", "name", name, "started", v->state == VOLUME_STARTED, "rows", sorted));
    json_decref(rows);
    mem_free(nodes);
    return r;
}

FIBER int command_volume_status(struct mortard *d, const json_t *request, json_t *answer, struct error *err)
{
    const char *name = request_text(request, "name");
    json_t *list = json_array(), *names = json_array();
    struct volume *v;
    size_t i;
    json_t *one;
    int r = put(answer, "volumes", list);

    if (r == 0 && name && strcmp(name, "all") != 0) {
        r = request_volume(d, request, &v, err);
        if (r == 0 && v->state != VOLUME_STARTED)
            r = error_set(err, -EINVAL, "Volume %s is not started", v->name);
        r = r < 0 ? r : append(names, json_string(name));
    } else {
        for (unsigned k = 0; k < d->cluster->volume_count && r == 0; k++)
            r = append(names, json_string(d->cluster->volumes[k]->name));
    }
    json_array_foreach(names, i, one)
    {
        if (r == 0 && cluster_find_volume(d->cluster, json_string_value(one)))
            r = add_status(d, json_string_value(one), list);
    }
    json_decref(names);
    return r;
}

/* ---- options ---- */

static int put_option(json_t *list, const char *key, const char *value, bool is_default)
{
    return append(list, json_pack("{s:s, s:s?, s:b}", "key", key, "value", value, "default", is_default));
}

static int put_value(const struct mortard *d, const struct volume *v, const struct volume_key *key, json_t *list)
{
    const char *set = v ? volume_option_get(v, key->name) : settings_get(&d->cluster->settings, key->name);
    char number[16];

    if (strcmp(key->name, "cluster.op-version") == 0) {
        (void)snprintf(number, sizeof(number), "%u", d->cluster->op_version);
        return put_option(list, key->name, number, false);
    }
    if (set)
        return put_option(list, key->name, set, false);
    return put_option(list, key->name, v && key->def ? volume_option_value(v, key->name) : key->def, true);
}

static int put_all_values(const struct mortard *d, const struct volume *v, json_t *list)
{
    const struct volume_key *key;
    int r = 0;

    for (size_t i = 0; (key = volume_key_at(i)) && r == 0; i++) {
        bool is_first = volume_key_find(key->name) == key;

        if (is_first && !(key->flags & KEY_HIDDEN) && (v || (key->flags & KEY_GLOBAL)))
            r = put_value(d, v, key, list);
    }
    for (unsigned i = 0; v && i < v->settings.count && r == 0; i++) {
        if (strncmp(v->settings.list[i].key, "user.", 5) == 0)
            r = put_option(list, v->settings.list[i].key, v->settings.list[i].value, false);
    }
    return r;
}

int command_volume_get(struct mortard *d, const json_t *request, json_t *answer, struct error *err)
{
    const char *name = request_text(request, "name"), *wanted = request_text(request, "key");
    const struct volume_key *key = wanted ? volume_key_find(wanted) : NULL;
    json_t *list = json_array();
    struct volume *v = NULL;
    int r = put(answer, "options", list);

    if (r == 0 && name && strcmp(name, "all") != 0)
        r = request_volume(d, request, &v, err);
    if (r < 0)
        return r;
    if (!wanted || strcmp(wanted, "all") == 0)
        return put_all_values(d, v, list);
    if (v && strncmp(wanted, "user.", 5) == 0 && volume_option_get(v, wanted))
        return put_option(list, wanted, volume_option_get(v, wanted), false);
    if (!key) {
        const char *near = volume_key_nearest(wanted);

        return near ? error_set(err, -EINVAL, "Did you mean %s?", near)
                    : error_set(err, -EINVAL, "option : %s does not exist", wanted);
    }
    return put_value(d, v, key, list);
}

int command_volume_help(struct mortard *d, const json_t *request, json_t *answer, struct error *err)
{
    const char *group = request_text(request, "group");
    const struct volume_key *key;
    json_t *list = json_array();
    int r = put(answer, "options", list);

    (void)d;
    if (group) {
        const char *text = group_text(group);

        return text ? put(answer, "text", json_string(text)) : error_set(err, -ENOENT, "there is no group %s", group);
    }
    for (size_t i = 0; (key = volume_key_at(i)) && r == 0; i++) {
        if (volume_key_find(key->name) == key && !(key->flags & KEY_HIDDEN))
            r = append(list, json_pack("{s:s, s:s?, s:s}", "key", key->name, "value", key->def, "help", key->help));
    }
    return r;
}

/* ---- machines ---- */

int command_uuid(struct mortard *d, const json_t *request, json_t *answer, struct error *err)
{
    (void)request;
    (void)err;
    return put(answer, "uuid", json_string(GFID_TEXT(&d->node))) < 0 ||
                   put(answer, "work_folder", json_string(d->options->work_folder)) < 0 ||
                   put(answer, "log_folder", json_string(d->options->log_folder)) < 0
               ? -ENOMEM
               : 0;
}
