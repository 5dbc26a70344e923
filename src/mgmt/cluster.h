/* mgmt/cluster.h - everything the machines of a cluster agree on: who they are, and their volumes.
 *
 * This is the state of the replicated state machine: the same on every machine that has applied the same changes
 * (mgmt/change.h). What differs from machine to machine (ports, processes, who is connected) is not in it.
 */
#pragma once

#include "mgmt/volume.h"
#include <jansson.h>

#define CLUSTER_NODES_MAX   256
#define CLUSTER_VOLUMES_MAX 4096
#define OP_VERSION_MAX      100000
#define NODE_NAMES_MAX      16

struct node {
    struct gfid id;
    char **names; /* how it was probed, first name first; addresses too */
    unsigned name_count;
};

struct cluster {
    uint32_t op_version;
    struct node *nodes;
    unsigned node_count;
    struct volume **volumes; /* by name */
    unsigned volume_count;
    struct settings settings; /* of `volume set all` */
    uint32_t settings_version;
};

/* Without nodes and volumes. Returned; NULL for lack of memory. */
struct cluster *cluster_new(void) MUST_USE;
void cluster_free(struct cluster *c); /* accepts NULL */
DEFINE_SCOPED(cluster_free, struct cluster)

/* Borrowed from the cluster, until it changes; NULL: none. */
struct volume *cluster_find_volume(const struct cluster *c, const char *name);
struct node *cluster_find_node(const struct cluster *c, const struct gfid *id);
struct node *cluster_find_host(const struct cluster *c, const char *name);
bool node_has_name(const struct node *n, const char *name);

/* The volume is given. 0, or -ENOMEM, -E2BIG (too many). Its name must be free. */
int cluster_add_volume(struct cluster *c, struct volume *v);
void cluster_drop_volume(struct cluster *c, struct volume *v); /* frees it */
/* A new node without names, borrowed until the next is added. NULL: no memory or too many. */
struct node *cluster_add_node(struct cluster *c, const struct gfid *id);
void cluster_drop_node(struct cluster *c, struct node *n);
/* 0 (also if it has the name already), -ENOMEM, -E2BIG. */
int node_add_name(struct node *n, const char *name);

/* ---- as JSON: snapshots of the state machine, and volumes and bricks in changes ---- */

/* New references; NULL for lack of memory. */
json_t *cluster_to_json(const struct cluster *c) MUST_USE;
json_t *volume_to_json(const struct volume *v) MUST_USE;
json_t *brick_to_json(const struct brick *b) MUST_USE;
/* `json` is borrowed. 0, -ENOMEM, or -EBADMSG with a sentence: these come from disks and other machines. */
int cluster_from_json(const json_t *json, struct cluster **ret_cluster, struct error *err);
int volume_from_json(const json_t *json, struct volume **ret_volume, struct error *err);
/* Appends it to the volume. */
int brick_from_json(const json_t *json, struct volume *v, struct error *err);
