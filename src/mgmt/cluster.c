/* The cluster's state as plain data. */
#include "mgmt/cluster.h"
#include "core/mem.h"
#include <errno.h>

struct cluster *cluster_new(void)
{
    struct cluster *c = NEW(struct cluster);

    if (c)
        c->op_version = OP_VERSION_MAX;
    return c;
}

static void node_done(struct node *n)
{
    for (unsigned i = 0; i < n->name_count; i++)
        mem_free(n->names[i]);
    mem_free(n->names);
}

void cluster_free(struct cluster *c)
{
    if (!c)
        return;
    for (unsigned i = 0; i < c->node_count; i++)
        node_done(&c->nodes[i]);
    for (unsigned i = 0; i < c->volume_count; i++)
        volume_free(c->volumes[i]);
    mem_free(c->nodes);
    mem_free(c->volumes);
    settings_clear(&c->settings);
    mem_free(c);
}

struct volume *cluster_find_volume(const struct cluster *c, const char *name)
{
    for (unsigned i = 0; i < c->volume_count; i++) {
        if (strcmp(c->volumes[i]->name, name) == 0)
            return c->volumes[i];
    }
    return NULL;
}

struct node *cluster_find_node(const struct cluster *c, const struct gfid *id)
{
    for (unsigned i = 0; i < c->node_count; i++) {
        if (gfid_equal(&c->nodes[i].id, id))
            return &c->nodes[i];
    }
    return NULL;
}

bool node_has_name(const struct node *n, const char *name)
{
    for (unsigned i = 0; i < n->name_count; i++) {
        if (strcmp(n->names[i], name) == 0)
            return true;
    }
    return false;
}

struct node *cluster_find_host(const struct cluster *c, const char *name)
{
    for (unsigned i = 0; i < c->node_count; i++) {
        if (node_has_name(&c->nodes[i], name))
            return &c->nodes[i];
    }
    return NULL;
}

int cluster_add_volume(struct cluster *c, struct volume *v)
{
    struct volume **grown;
    unsigned at = 0;

    if (c->volume_count >= CLUSTER_VOLUMES_MAX)
        return -E2BIG;
    grown = mem_realloc(c->volumes, (c->volume_count + 1) * sizeof(struct volume *));
    if (!grown)
        return -ENOMEM;
    c->volumes = grown;
    while (at < c->volume_count && strcmp(grown[at]->name, v->name) < 0)
        at++;
    memmove(&grown[at + 1], &grown[at], (c->volume_count - at) * sizeof(struct volume *));
    grown[at] = v;
    c->volume_count++;
    return 0;
}

void cluster_drop_volume(struct cluster *c, struct volume *v)
{
    for (unsigned i = 0; i < c->volume_count; i++) {
        if (c->volumes[i] != v)
            continue;
        c->volume_count--;
        memmove(&c->volumes[i], &c->volumes[i + 1], (c->volume_count - i) * sizeof(struct volume *));
        volume_free(v);
        return;
    }
}

struct node *cluster_add_node(struct cluster *c, const struct gfid *id)
{
    struct node *grown;

    if (c->node_count >= CLUSTER_NODES_MAX)
        return NULL;
    grown = mem_realloc(c->nodes, (c->node_count + 1) * sizeof(*grown));
    if (!grown)
        return NULL;
    c->nodes = grown;
    grown[c->node_count] = (struct node) { .id = *id };
    return &grown[c->node_count++];
}

void cluster_drop_node(struct cluster *c, struct node *n)
{
    node_done(n);
    c->node_count--;
    memmove(n, n + 1, (size_t)(c->nodes + c->node_count - n) * sizeof(*n));
}

int node_add_name(struct node *n, const char *name)
{
    char **grown;

    if (node_has_name(n, name))
        return 0;
    if (n->name_count >= NODE_NAMES_MAX)
        return -E2BIG;
    grown = mem_realloc(n->names, (n->name_count + 1) * sizeof(char *));
    if (!grown)
        return -ENOMEM;
    n->names = grown;
    grown[n->name_count] = mem_strdup(name);
    if (!grown[n->name_count])
        return -ENOMEM;
    n->name_count++;
    return 0;
}
