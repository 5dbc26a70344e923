/* The cluster's state as JSON. What is read is checked field by field: it comes from disks and other machines. */
#include "core/mem.h"
#include "mgmt/cluster.h"
#include <errno.h>

/* ---- writing ---- */

static json_t *uuid_json(const struct gfid *id)
{
    return json_string(GFID_TEXT(id));
}

/* Adds a member; false for lack of memory. `value` is given. */
static bool put(json_t *object, const char *key, json_t *value)
{
    return object && value && json_object_set_new(object, key, value) == 0;
}

static bool put_text(json_t *object, const char *key, const char *text)
{
    return !text || put(object, key, json_string(text));
}

static json_t *done(json_t *object, bool is_whole)
{
    if (is_whole)
        return object;
    json_decref(object);
    return NULL;
}

json_t *brick_to_json(const struct brick *b)
{
    json_t *o = json_object();
    bool ok = put(o, "node", uuid_json(&b->node)) && put_text(o, "host", b->host) && put_text(o, "path", b->path) &&
              put_text(o, "id", b->id) && put_text(o, "real_path", b->real_path) &&
              put_text(o, "mount_dir", b->mount_dir) && put(o, "fsid", json_integer((json_int_t)b->fsid)) &&
              put(o, "leaving", json_boolean(b->is_leaving));

    return done(o, ok);
}

static json_t *settings_to_json(const struct settings *s)
{
    json_t *list = json_array();
    bool ok = list != NULL;

    for (unsigned i = 0; i < s->count && ok; i++)
        ok = json_array_append_new(list, json_pack("[ss]", s->list[i].key, s->list[i].value)) == 0;
    return done(list, ok);
}

static json_t *bricks_to_json(const struct volume *v)
{
    json_t *list = json_array();
    bool ok = list != NULL;

    for (unsigned i = 0; i < v->brick_count && ok; i++)
        ok = json_array_append_new(list, brick_to_json(&v->bricks[i])) == 0;
    return done(list, ok);
}

json_t *volume_to_json(const struct volume *v)
{
    json_t *o = json_object();
    bool ok =
        put(o, "name", json_string(v->name)) && put(o, "kind", json_integer(v->kind)) &&
        put(o, "state", json_integer(v->state)) && put(o, "id", uuid_json(&v->id)) &&
        put(o, "username", uuid_json(&v->username)) && put(o, "password", uuid_json(&v->password)) &&
        put(o, "version", json_integer(v->version)) && put(o, "replica", json_integer(v->replica_count)) &&
        put(o, "arbiter", json_integer(v->arbiter_count)) && put(o, "disperse", json_integer(v->disperse_count)) &&
        put(o, "redundancy", json_integer(v->redundancy_count)) && put(o, "op_version", json_integer(v->op_version)) &&
        put(o, "client_op_version", json_integer(v->client_op_version)) && put(o, "bricks", bricks_to_json(v)) &&
        put(o, "settings", settings_to_json(&v->settings));

    return done(o, ok);
}

static json_t *node_to_json(const struct node *n)
{
    json_t *names = json_array();
    json_t *o = json_object();
    bool ok = names != NULL;

    for (unsigned i = 0; i < n->name_count && ok; i++)
        ok = json_array_append_new(names, json_string(n->names[i])) == 0;
    if (!ok)
        json_decref(names);
    ok = ok && put(o, "names", names) && put(o, "id", uuid_json(&n->id));
    return done(o, ok);
}

json_t *cluster_to_json(const struct cluster *c)
{
    json_t *o = json_object();
    json_t *nodes = json_array();
    json_t *volumes = json_array();
    bool ok = o && nodes && volumes;

    for (unsigned i = 0; i < c->node_count && ok; i++)
        ok = json_array_append_new(nodes, node_to_json(&c->nodes[i])) == 0;
    for (unsigned i = 0; i < c->volume_count && ok; i++)
        ok = json_array_append_new(volumes, volume_to_json(c->volumes[i])) == 0;
    ok = ok && json_object_set(o, "nodes", nodes) == 0 && json_object_set(o, "volumes", volumes) == 0 &&
         put(o, "op_version", json_integer(c->op_version)) && put(o, "settings", settings_to_json(&c->settings)) &&
         put(o, "settings_version", json_integer(c->settings_version));
    json_decref(nodes);
    json_decref(volumes);
    return done(o, ok);
}

/* ---- reading ---- */

static int bad(const char *key, struct error *err)
{
    return error_set(err, -EBADMSG, "\"%s\" is missing or of the wrong kind", key);
}

static int get_text(const json_t *o, const char *key, bool is_needed, char **ret, struct error *err)
{
    const json_t *value = json_object_get(o, key);

    if (!value && !is_needed)
        return 0;
    if (!json_is_string(value))
        return bad(key, err);
    *ret = mem_strdup(json_string_value(value));
    return *ret ? 0 : -ENOMEM;
}

static int get_uuid(const json_t *o, const char *key, struct gfid *ret, struct error *err)
{
    const char *text = json_string_value(json_object_get(o, key));

    return text && gfid_parse(text, ret) == 0 ? 0 : bad(key, err);
}

static int get_u32(const json_t *o, const char *key, uint32_t *ret, struct error *err)
{
    const json_t *value = json_object_get(o, key);
    json_int_t number = json_integer_value(value);

    if (!json_is_integer(value) || number < 0 || number > UINT32_MAX)
        return bad(key, err);
    *ret = (uint32_t)number;
    return 0;
}

int brick_from_json(const json_t *json, struct volume *v, struct error *err)
{
    struct brick *b = volume_add_brick(v);
    int r;

    if (!b)
        return v->brick_count >= VOLUME_BRICKS_MAX ? error_set(err, -E2BIG, "more than %u bricks", VOLUME_BRICKS_MAX)
                                                   : -ENOMEM;
    r = get_uuid(json, "node", &b->node, err);
    r = r < 0 ? r : get_text(json, "host", true, &b->host, err);
    r = r < 0 ? r : get_text(json, "path", true, &b->path, err);
    r = r < 0 ? r : get_text(json, "id", false, &b->id, err);
    r = r < 0 ? r : get_text(json, "real_path", false, &b->real_path, err);
    r = r < 0 ? r : get_text(json, "mount_dir", false, &b->mount_dir, err);
    if (r < 0)
        return r;
    b->fsid = (uint64_t)json_integer_value(json_object_get(json, "fsid"));
    b->is_leaving = json_is_true(json_object_get(json, "leaving"));
    return 0;
}

static int settings_from_json(const json_t *list, struct settings *s, struct error *err)
{
    size_t i;
    json_t *pair;

    if (!json_is_array(list))
        return bad("settings", err);
    json_array_foreach(list, i, pair)
    {
        const char *key = json_string_value(json_array_get(pair, 0));
        const char *value = json_string_value(json_array_get(pair, 1));

        if (!key || !value)
            return bad("settings", err);
        if (settings_append(s, key, value) < 0)
            return -ENOMEM;
    }
    return 0;
}

static int volume_numbers(const json_t *json, struct volume *v, struct error *err)
{
    uint32_t kind = 0, state = 0;
    int r = get_u32(json, "kind", &kind, err);

    r = r < 0 ? r : get_u32(json, "state", &state, err);
    r = r < 0 ? r : get_u32(json, "version", &v->version, err);
    r = r < 0 ? r : get_u32(json, "replica", &v->replica_count, err);
    r = r < 0 ? r : get_u32(json, "arbiter", &v->arbiter_count, err);
    r = r < 0 ? r : get_u32(json, "disperse", &v->disperse_count, err);
    r = r < 0 ? r : get_u32(json, "redundancy", &v->redundancy_count, err);
    r = r < 0 ? r : get_u32(json, "op_version", &v->op_version, err);
    r = r < 0 ? r : get_u32(json, "client_op_version", &v->client_op_version, err);
    if (r < 0)
        return r;
    if (kind != VOLUME_DISTRIBUTE && kind != VOLUME_REPLICATE && kind != VOLUME_DISPERSE)
        return bad("kind", err);
    if (state > VOLUME_STOPPED)
        return bad("state", err);
    v->kind = (enum volume_kind)kind;
    v->state = (enum volume_state)state;
    return 0;
}

int volume_from_json(const json_t *json, struct volume **ret_volume, struct error *err)
{
    const char *name = json_string_value(json_object_get(json, "name"));
    const json_t *bricks = json_object_get(json, "bricks");
    SCOPED(volume_free) struct volume *v = name ? volume_new(name) : NULL;
    size_t i;
    json_t *brick;
    int r;

    if (!name || !*name || strlen(name) > VOLUME_NAME_MAX)
        return bad("name", err);
    if (!v)
        return -ENOMEM;
    r = volume_numbers(json, v, err);
    r = r < 0 ? r : get_uuid(json, "id", &v->id, err);
    r = r < 0 ? r : get_uuid(json, "username", &v->username, err);
    r = r < 0 ? r : get_uuid(json, "password", &v->password, err);
    r = r < 0 ? r : settings_from_json(json_object_get(json, "settings"), &v->settings, err);
    json_array_foreach(bricks, i, brick)
    {
        r = r < 0 ? r : brick_from_json(brick, v, err);
    }
    if (r < 0)
        return r;
    if (v->brick_count == 0 || volume_group_size(v) == 0 || v->brick_count % volume_group_size(v) != 0)
        return bad("bricks", err);
    *ret_volume = take(v);
    return 0;
}

static int node_from_json(const json_t *json, struct cluster *c, struct error *err)
{
    struct gfid id;
    struct node *n;
    size_t i;
    json_t *name;
    int r = get_uuid(json, "id", &id, err);

    if (r < 0)
        return r;
    n = cluster_find_node(c, &id) ? NULL : cluster_add_node(c, &id);
    if (!n)
        return bad("nodes", err);
    json_array_foreach(json_object_get(json, "names"), i, name)
    {
        if (!json_is_string(name))
            return bad("names", err);
        r = node_add_name(n, json_string_value(name));
        if (r < 0)
            return r == -E2BIG ? bad("names", err) : r;
    }
    return 0;
}

static int volumes_from_json(const json_t *list, struct cluster *c, struct error *err)
{
    size_t i;
    json_t *item;

    json_array_foreach(list, i, item)
    {
        SCOPED(volume_free) struct volume *v = NULL;
        int r = volume_from_json(item, &v, err);

        if (r < 0 || !v)
            return r;
        if (cluster_find_volume(c, v->name))
            return bad("volumes", err);
        r = cluster_add_volume(c, v);
        if (r < 0)
            return r;
        (void)take(v); /* the cluster's now */
    }
    return 0;
}

int cluster_from_json(const json_t *json, struct cluster **ret_cluster, struct error *err)
{
    SCOPED(cluster_free) struct cluster *c = cluster_new();
    size_t i;
    json_t *node;
    int r;

    if (!c)
        return -ENOMEM;
    r = get_u32(json, "op_version", &c->op_version, err);
    r = r < 0 ? r : get_u32(json, "settings_version", &c->settings_version, err);
    r = r < 0 ? r : settings_from_json(json_object_get(json, "settings"), &c->settings, err);
    json_array_foreach(json_object_get(json, "nodes"), i, node)
    {
        r = r < 0 ? r : node_from_json(node, c, err);
    }
    r = r < 0 ? r : volumes_from_json(json_object_get(json, "volumes"), c, err);
    if (r < 0)
        return r;
    *ret_cluster = take(c);
    return 0;
}
