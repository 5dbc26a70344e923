/* Changes: bricks that come and go. A changed copy of the volume is checked, then takes the volume's place. */
#include "core/mem.h"
#include "mgmt/change_internal.h"
#include <errno.h>

static void swap_in(struct cluster *c, const struct volume *old, struct volume *fresh)
{
    for (unsigned i = 0; i < c->volume_count; i++) {
        if (c->volumes[i] == old) {
            volume_free(c->volumes[i]);
            c->volumes[i] = fresh;
            fresh->version++;
            return;
        }
    }
}

static uint32_t count_of(const json_t *change, const char *key, uint32_t otherwise)
{
    const json_t *value = json_object_get(change, key);

    return json_is_integer(value) && json_integer_value(value) > 0
               ? (uint32_t)MIN(json_integer_value(value), UINT32_MAX)
               : otherwise;
}

/* ---- add ---- */

static int check_replica(const struct volume *v, uint32_t replica, uint32_t arbiter, unsigned added, struct error *err)
{
    unsigned size = MAX(volume_group_size(v), 1u);

    if (replica < size || (v->kind == VOLUME_DISTRIBUTE && replica == 1 && arbiter > 0))
        return error_set(err, -EINVAL, "Incorrect replica count (%u) supplied. Volume already has (%u)", replica, size);
    if (v->arbiter_count > 0 && replica != size)
        return error_set(err, -EINVAL, "Increasing replica count for arbiter volumes is not supported.");
    if (arbiter > 0 && v->arbiter_count == 0 && replica == size)
        return error_set(err, -EINVAL, "Cannot convert replica %u volume to arbiter volume.", size);
    if (arbiter > 0 && v->arbiter_count == 0 && (size != 2 || replica != 3))
        return error_set(err, -EINVAL,
                         "For arbiter configuration, replica count must be 2 and arbiter count must be 1. The 3rd "
                         "brick of the replica will be the arbiter");
    if (replica == size && added % size != 0)
        return error_set(err, -EINVAL, "Incorrect number of bricks supplied %u with count %u", added, size);
    if (replica != size && added != v->brick_count / size * (replica - size))
        return error_set(err, -EINVAL, "Incorrect number of bricks (%u) supplied for replica count (%u).", added,
                         replica);
    if (replica != size && v->state == VOLUME_STOPPED)
        return error_set(err, -EINVAL,
                         " Volume must not be in stopped state when replica-count needs to  be increased.");
    return 0;
}

/* The new bricks are at the end; those that make sets larger move to the end of their set. */
static void place_in_sets(struct volume *v, unsigned old_count, unsigned size, unsigned replica)
{
    unsigned sets = old_count / size, more = replica - size;

    for (unsigned set = 0; set < sets; set++) {
        for (unsigned i = 0; i < more; i++)
            volume_move_brick(v, old_count + set * more + i, set * replica + size + i);
    }
}

static int append_bricks(struct volume *v, const json_t *bricks, struct error *err)
{
    unsigned first = v->brick_count;
    size_t i;
    json_t *brick;

    if (json_array_size(bricks) == 0)
        return error_set(err, -EBADMSG, "the change has no \"bricks\"");
    json_array_foreach(bricks, i, brick)
    {
        int r = brick_from_json(brick, v, err);

        if (r < 0)
            return r;
    }
    return change_name_bricks(v, first);
}

int change_add_bricks(struct cluster *c, const json_t *change, struct error *err)
{
    SCOPED(volume_free) struct volume *v = NULL;
    uint32_t replica, arbiter;
    unsigned old_count, size;
    struct volume *old;
    int r = change_find_volume(c, change, &old, err);

    if (r < 0)
        return r;
    size = volume_group_size(old);
    replica = count_of(change, "replica", size);
    arbiter = count_of(change, "arbiter", 0);
    v = volume_copy(old);
    if (!v)
        return -ENOMEM;
    old_count = v->brick_count;
    r = append_bricks(v, json_object_get(change, "bricks"), err);
    r = r < 0 ? r : check_replica(old, replica, arbiter, v->brick_count - old_count, err);
    r = r < 0 ? r : change_check_bricks(c, v, old_count, v->brick_count - old_count, old, err);
    if (r < 0)
        return r;
    if (replica > size) {
        place_in_sets(v, old_count, size, replica);
        v->kind = VOLUME_REPLICATE;
        v->replica_count = replica;
        v->arbiter_count = MAX(v->arbiter_count, arbiter);
    }
    swap_in(c, old, take(v));
    return 0;
}

/* ---- remove ---- */

static int find_leaving(const struct volume *v, const json_t *pair, struct error *err)
{
    const char *host = json_string_value(json_array_get(pair, 0));
    const char *path = json_string_value(json_array_get(pair, 1));
    int at;

    if (!host || !path)
        return error_set(err, -EBADMSG, "a brick is not a host and a path");
    at = volume_find_brick(v, host, path);
    return at < 0 ? error_set(err, -ENOENT, "Incorrect brick %s:%s for volume %s", host, path, v->name) : at;
}

/* Takes the named bricks out; `ret_left` tells for each set of the old volume how many stay. */
static int drop_listed(struct volume *v, const struct volume *old, const json_t *bricks, unsigned *left,
                       struct error *err)
{
    unsigned size = volume_group_size(old);
    size_t i;
    json_t *pair;

    for (unsigned set = 0; set < old->brick_count / size; set++)
        left[set] = size;
    json_array_foreach(bricks, i, pair)
    {
        int at = find_leaving(v, pair, err);

        if (at < 0)
            return at;
        left[(unsigned)volume_find_brick(old, v->bricks[at].host, v->bricks[at].path) / size]--;
        volume_drop_brick(v, (unsigned)at);
    }
    return 0;
}

static int check_left(const struct volume *old, const unsigned *left, unsigned replica, struct error *err)
{
    unsigned size = volume_group_size(old), full = 0, sets = old->brick_count / size;

    for (unsigned set = 0; set < sets; set++) {
        /* Whole sets may go while the others stay whole; or every set gets smaller by the same number. */
        if (replica == size && left[set] != size && left[set] != 0)
            return error_set(
                err, -EINVAL,
                "Removing bricks from replicate configuration is not allowed without reducing replica count "
                "explicitly.");
        if (replica != size && left[set] != replica)
            return error_set(err, -EINVAL, "Remove exactly %u brick(s) from each subvolume.", size - replica);
        full += left[set] > 0;
    }
    return full == 0 ? error_set(err, -EINVAL, "Deleting all the bricks of the volume is not allowed") : 0;
}

int change_remove_bricks(struct cluster *c, const json_t *change, struct error *err)
{
    SCOPED(volume_free) struct volume *v = NULL;
    SCOPED_FREE unsigned *left = NULL;
    uint32_t replica;
    struct volume *old;
    int r = change_find_volume(c, change, &old, err);

    if (r < 0)
        return r;
    replica = count_of(change, "replica", volume_group_size(old));
    if (replica > volume_group_size(old))
        return error_set(err, -EINVAL, "Incorrect replica count (%u) supplied. Volume already has (%u)", replica,
                         volume_group_size(old));
    v = volume_copy(old);
    left = mem_array(old->brick_count, sizeof(*left));
    if (!v || !left)
        return -ENOMEM;
    r = drop_listed(v, old, json_object_get(change, "bricks"), left, err);
    r = r < 0 ? r : check_left(old, left, replica, err);
    if (r < 0)
        return r;
    if (replica < volume_group_size(old)) {
        v->replica_count = replica;
        v->arbiter_count = 0;
        v->kind = replica == 1 ? VOLUME_DISTRIBUTE : VOLUME_REPLICATE;
    }
    swap_in(c, old, take(v));
    return 0;
}

/* ---- replace ---- */

int change_replace_brick(struct cluster *c, const json_t *change, struct error *err)
{
    SCOPED(volume_free) struct volume *v = NULL;
    const char *host = change_text(change, "host", err);
    const char *path = host ? change_text(change, "path", err) : NULL;
    struct volume *old;
    struct brick *fresh;
    int at, r = path ? change_find_volume(c, change, &old, err) : -EBADMSG;

    if (r < 0)
        return r;
    at = volume_find_brick(old, host, path);
    if (at < 0)
        return error_set(err, -ENOENT, "brick: %s:%s does not exist in volume: %s", host, path, old->name);
    if (old->kind == VOLUME_DISTRIBUTE)
        return error_set(err, -EINVAL,
                         "replace-brick is not permitted on distribute only volumes. Please use add-brick and "
                         "remove-brick operations instead.");
    v = volume_copy(old);
    if (!v)
        return -ENOMEM;
    r = brick_from_json(json_object_get(change, "brick"), v, err);
    if (r < 0)
        return r;
    /* The slot keeps its id: the counters of the others that name it stay right. */
    fresh = &v->bricks[v->brick_count - 1];
    mem_free(fresh->id);
    fresh->id = take(v->bricks[at].id);
    volume_drop_brick(v, (unsigned)at);
    r = change_check_bricks(c, v, v->brick_count - 1, 1, old, err);
    if (r < 0)
        return r;
    volume_move_brick(v, v->brick_count - 1, (unsigned)at);
    swap_in(c, old, take(v));
    return 0;
}
