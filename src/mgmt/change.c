/* Changes: which function does which, and those about machines. */
#include "core/mem.h"
#include "mgmt/change_internal.h"
#include <errno.h>

static const struct {
    const char *op;
    int (*apply)(struct cluster *c, const json_t *change, struct error *err);
} ops[] = {
    { "volume-create", change_volume_create }, { "volume-import", change_volume_import },
    { "volume-delete", change_volume_delete }, { "volume-start", change_volume_start },
    { "volume-stop", change_volume_stop },     { "volume-set", change_volume_set },
    { "volume-reset", change_volume_reset },   { "add-bricks", change_add_bricks },
    { "remove-bricks", change_remove_bricks }, { "replace-brick", change_replace_brick },
    { "node-add", change_node_add },           { "node-remove", change_node_remove },
};

int change_apply(struct cluster *c, const json_t *change, struct error *err)
{
    const char *op = json_string_value(json_object_get(change, "op"));

    for (size_t i = 0; op && i < sizeof(ops) / sizeof(ops[0]); i++) {
        if (strcmp(ops[i].op, op) == 0)
            return ops[i].apply(c, change, err);
    }
    return error_set(err, -EBADMSG, "\"%s\" is no change this version knows", op ? op : "");
}

const char *change_text(const json_t *change, const char *key, struct error *err)
{
    const char *text = json_string_value(json_object_get(change, key));

    if (!text)
        (void)error_set(err, -EBADMSG, "the change has no \"%s\"", key);
    return text;
}

bool change_flag(const json_t *change, const char *key)
{
    return json_is_true(json_object_get(change, key));
}

int change_find_volume(const struct cluster *c, const json_t *change, struct volume **ret_volume, struct error *err)
{
    const char *name = change_text(change, "name", err);
    struct volume *v = name ? cluster_find_volume(c, name) : NULL;

    if (!name)
        return -EBADMSG;
    if (!v)
        return error_set(err, -ENOENT, "Volume %s does not exist", name);
    *ret_volume = v;
    return 0;
}

/* ---- machines ---- */

static int node_id(const json_t *change, struct gfid *ret_id, struct error *err)
{
    const char *text = change_text(change, "node", err);

    if (!text)
        return -EBADMSG;
    return gfid_parse(text, ret_id) < 0 ? error_set(err, -EBADMSG, "\"%s\" is not a uuid", text) : 0;
}

/* A known machine gets the names it does not have yet; a name belongs to one machine only. */
int change_node_add(struct cluster *c, const json_t *change, struct error *err)
{
    const json_t *names = json_object_get(change, "names");
    struct node *n, *owner;
    struct gfid id;
    size_t i;
    json_t *name;
    int r = node_id(change, &id, err);

    if (r < 0)
        return r;
    if (json_array_size(names) == 0)
        return error_set(err, -EBADMSG, "the change has no \"names\"");
    n = cluster_find_node(c, &id);
    json_array_foreach(names, i, name)
    {
        if (!json_is_string(name))
            return error_set(err, -EBADMSG, "a name is not a string");
        owner = cluster_find_host(c, json_string_value(name));
        if (owner && owner != n)
            return error_set(err, -EEXIST, "%s is the name of another peer already", json_string_value(name));
    }
    if ((n ? n->name_count : 0) + json_array_size(names) > NODE_NAMES_MAX)
        return error_set(err, -E2BIG, "A peer can have %u names", NODE_NAMES_MAX);
    if (!n && c->node_count >= CLUSTER_NODES_MAX)
        return error_set(err, -E2BIG, "A cluster can have %u peers", CLUSTER_NODES_MAX);
    n = n ? n : cluster_add_node(c, &id);
    json_array_foreach(names, i, name)
    {
        r = n ? node_add_name(n, json_string_value(name)) : -ENOMEM;
        if (r < 0)
            return r;
    }
    return 0;
}

int change_node_remove(struct cluster *c, const json_t *change, struct error *err)
{
    struct gfid id;
    struct node *n;
    int r = node_id(change, &id, err);

    if (r < 0)
        return r;
    n = cluster_find_node(c, &id);
    if (!n)
        return error_set(err, -ENOENT, "%s is not part of cluster", GFID_TEXT(&id));
    for (unsigned i = 0; i < c->volume_count; i++) {
        for (unsigned b = 0; b < c->volumes[i]->brick_count; b++) {
            if (gfid_equal(&c->volumes[i]->bricks[b].node, &id))
                return error_set(
                    err, -EBUSY,
                    "Peer %s hosts one or more bricks. If the peer is in not recoverable state then use "
                    "either replace-brick or remove-brick command with force to remove all bricks from the "
                    "peer and attempt the peer detach again.",
                    n->names[0]);
        }
    }
    cluster_drop_node(c, n);
    return 0;
}
