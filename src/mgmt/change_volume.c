/* Changes: a volume's life. */
#include "core/mem.h"
#include "mgmt/change_internal.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Is one the other, or inside it? */
static bool paths_meet(const char *a, const char *b)
{
    size_t length = MIN(strlen(a), strlen(b));
    const char *longer = strlen(a) > length ? a : b;

    return strncmp(a, b, length) == 0 &&
           (longer[length] == '\0' || longer[length] == '/' || (length > 0 && longer[length - 1] == '/'));
}

static const char *path_of(const struct brick *b)
{
    return b->real_path ? b->real_path : b->path;
}

static bool meets_a_brick(const struct brick *b, const struct volume *v, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (gfid_equal(&v->bricks[i].node, &b->node) && paths_meet(path_of(&v->bricks[i]), path_of(b)))
            return true;
    }
    return false;
}

int change_check_bricks(const struct cluster *c, const struct volume *v, unsigned first, unsigned count,
                        const struct volume *except, struct error *err)
{
    for (unsigned i = first; i < first + count; i++) {
        const struct brick *b = &v->bricks[i];
        bool is_taken = meets_a_brick(b, v, i);

        if (!cluster_find_node(c, &b->node))
            return error_set(err, -EINVAL, "Host %s is not in 'Peer in Cluster' state", b->host);
        if (*b->path != '/' || strchr(b->path, '\n') || strchr(b->host, '\n'))
            return error_set(err, -EINVAL, "Wrong brick type: %s:%s, use <HOSTNAME>:<export-dir-abs-path>", b->host,
                             b->path);
        for (unsigned other = 0; other < c->volume_count && !is_taken; other++) {
            if (c->volumes[other] != except)
                is_taken = meets_a_brick(b, c->volumes[other], c->volumes[other]->brick_count);
        }
        if (is_taken)
            return error_set(
                err, -EEXIST,
                "Brick: %s:%s not available. Brick may be containing or be contained by an existing brick.", b->host,
                b->path);
    }
    return 0;
}

/* The number in "V-client-N", or -1. */
static long id_number(const struct volume *v, const struct brick *b)
{
    SCOPED_FREE char *prefix = mem_printf("%s-client-", v->name);
    size_t length = prefix ? strlen(prefix) : 0;

    if (!b->id || length == 0 || strncmp(b->id, prefix, length) != 0)
        return -1;
    return strtol(b->id + length, NULL, 10);
}

int change_name_bricks(struct volume *v, unsigned first)
{
    long next = 0;

    for (unsigned i = 0; i < v->brick_count; i++) {
        long number = id_number(v, &v->bricks[i]);

        next = MAX(next, number + 1);
    }
    for (unsigned i = first; i < v->brick_count; i++) {
        char *id = mem_printf("%s-client-%ld", v->name, next++);

        if (!id)
            return -ENOMEM;
        mem_free(v->bricks[i].id);
        v->bricks[i].id = id;
    }
    return 0;
}

static bool is_volume_name(const char *name)
{
    if (*name == '-' || *name == '\0')
        return false;
    for (; *name; name++) {
        if (!((*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') || (*name >= '0' && *name <= '9') ||
              *name == '_' || *name == '-'))
            return false;
    }
    return true;
}

/* What is written into every new volume, the last one first in `volume info`. */
static int set_first_settings(struct volume *v)
{
    bool is_mirror = v->kind == VOLUME_REPLICATE;
    int r = 0;

    if (is_mirror)
        r = settings_set(&v->settings, "performance.client-io-threads", "off");
    r = r < 0 ? r : settings_set(&v->settings, "nfs.disable", "on");
    if (!settings_get(&v->settings, "transport.address-family"))
        r = r < 0 ? r : settings_set(&v->settings, "transport.address-family", "inet");
    r = r < 0 ? r : settings_set(&v->settings, "storage.fips-mode-rchecksum", "on");
    if (is_mirror)
        r = r < 0 ? r : settings_set(&v->settings, "cluster.granular-entry-heal", "on");
    return r;
}

static int check_new(const struct cluster *c, const struct volume *v, struct error *err)
{
    if (!is_volume_name(v->name) || strcmp(v->name, "all") == 0)
        return error_set(err, -EINVAL, "\"%s\" cannot be the name of a volume.", v->name);
    if (cluster_find_volume(c, v->name))
        return error_set(err, -EEXIST, "Volume %s already exists", v->name);
    if (v->kind == VOLUME_DISPERSE)
        return error_set(err, -EOPNOTSUPP, "Dispersed volumes are not supported yet");
    if (v->kind == VOLUME_REPLICATE &&
        (v->replica_count < 2 || v->arbiter_count > 1 || v->arbiter_count >= v->replica_count))
        return error_set(err, -EINVAL, "replica count should be greater than 1");
    return change_check_bricks(c, v, 0, v->brick_count, NULL, err);
}

static int add_new(struct cluster *c, struct volume *v, struct error *err)
{
    int r = cluster_add_volume(c, v);

    return r == -E2BIG ? error_set(err, r, "A cluster can have %u volumes", CLUSTER_VOLUMES_MAX) : r;
}

int change_volume_create(struct cluster *c, const json_t *change, struct error *err)
{
    SCOPED(volume_free) struct volume *v = NULL;
    int r = volume_from_json(json_object_get(change, "volume"), &v, err);

    r = r < 0 ? r : check_new(c, v, err);
    if (r < 0)
        return r;
    v->state = VOLUME_CREATED;
    v->version = 1;
    v->op_version = 40000;
    v->client_op_version = v->kind == VOLUME_REPLICATE ? 30800 : 2;
    r = set_first_settings(v);
    r = r < 0 ? r : change_name_bricks(v, 0);
    r = r < 0 ? r : add_new(c, v, err);
    if (r == 0)
        (void)take(v); /* the cluster's now */
    return r;
}

/* Taken over from an older installation: everything about it stays as it was. */
int change_volume_import(struct cluster *c, const json_t *change, struct error *err)
{
    SCOPED(volume_free) struct volume *v = NULL;
    int r = volume_from_json(json_object_get(change, "volume"), &v, err);

    r = r < 0 ? r : check_new(c, v, err);
    for (unsigned i = 0; r == 0 && i < v->brick_count; i++) {
        if (!v->bricks[i].id)
            r = error_set(err, -EBADMSG, "brick %u has no id", i);
    }
    r = r < 0 ? r : add_new(c, v, err);
    if (r == 0)
        (void)take(v); /* the cluster's now */
    return r;
}

int change_volume_delete(struct cluster *c, const json_t *change, struct error *err)
{
    struct volume *v;
    int r = change_find_volume(c, change, &v, err);

    if (r < 0)
        return r;
    if (v->state == VOLUME_STARTED)
        return error_set(err, -EBUSY, "Volume %s has been started.Volume needs to be stopped before deletion.",
                         v->name);
    cluster_drop_volume(c, v);
    return 0;
}

int change_volume_start(struct cluster *c, const json_t *change, struct error *err)
{
    struct volume *v;
    int r = change_find_volume(c, change, &v, err);

    if (r < 0)
        return r;
    if (v->state == VOLUME_STARTED)
        return change_flag(change, "force") ? 0 : error_set(err, -EALREADY, "Volume %s already started", v->name);
    v->state = VOLUME_STARTED;
    v->version++;
    return 0;
}

int change_volume_stop(struct cluster *c, const json_t *change, struct error *err)
{
    struct volume *v;
    int r = change_find_volume(c, change, &v, err);

    if (r < 0)
        return r;
    if (v->state != VOLUME_STARTED)
        return error_set(err, -EALREADY, "Volume %s is not in the started state", v->name);
    v->state = VOLUME_STOPPED;
    v->version++;
    return 0;
}
