/* mgmt/volume.h - what the cluster knows of a volume: its bricks and options.
 *
 * A volume is plain data. It is changed by the state machine only (mgmt/change.h), read by the generator of volume files
 * (mgmt/volgen.h), and written to and read from GlusterFS's store (mgmt/store.h). Bricks stand in the order of `volume
 * info`; every `group_size` of them make one replica set. A brick's `id` is its name for ever: the pending counters on
 * the disks of the others carry it (docs/on-disk.md "Counters").
 */
#pragma once

#include "core/base.h"
#include "core/error.h"
#include "core/gfid.h"
#include "mgmt/settings.h"

#define VOLUME_BRICKS_MAX 1024
#define VOLUME_NAME_MAX   255

enum volume_kind { VOLUME_DISTRIBUTE = 0, VOLUME_REPLICATE = 2, VOLUME_DISPERSE = 4 };
enum volume_state { VOLUME_CREATED = 0, VOLUME_STARTED = 1, VOLUME_STOPPED = 2 };

struct brick {
    struct gfid node; /* uuid of the machine it is on */
    char *host;       /* as the user gave it */
    char *path;
    char *id; /* "V-client-N" */
    char *real_path, *mount_dir;
    uint64_t fsid;
    uint32_t port; /* the last one used; 0: none */
    bool is_leaving;
};

struct volume {
    char *name;
    enum volume_kind kind;
    enum volume_state state;
    struct gfid id;
    struct gfid username, password; /* what trusted clients show */
    uint32_t version;               /* raised by every change */
    uint32_t replica_count, arbiter_count, disperse_count, redundancy_count;
    uint32_t op_version, client_op_version;
    struct brick *bricks;
    unsigned brick_count;
    struct settings settings; /* full names of keys */
};

/* A volume without bricks. Returned; NULL for lack of memory. */
struct volume *volume_new(const char *name) MUST_USE;
/* Returned; NULL for lack of memory. */
struct volume *volume_copy(const struct volume *v) MUST_USE;
void volume_free(struct volume *v); /* accepts NULL */
DEFINE_SCOPED(volume_free, struct volume)

/* A zeroed brick at the end; borrowed from the volume, valid until the next one is added. NULL: no memory, or
 * VOLUME_BRICKS_MAX. Its strings are owned by the volume. */
struct brick *volume_add_brick(struct volume *v);
/* Takes the brick out; it is freed. */
void volume_drop_brick(struct volume *v, unsigned brick);
/* Moves brick `from` to position `to`, those between them by one. */
void volume_move_brick(struct volume *v, unsigned from, unsigned to);
/* Its position, or -1. */
int volume_find_brick(const struct volume *v, const char *host, const char *path);
/* Bricks of one replica set, 1 for distributed volumes. */
unsigned volume_group_size(const struct volume *v);
bool volume_is_arbiter(const struct volume *v, unsigned brick);

/* What was set, or NULL. `key` is a full name. */
const char *volume_option_get(const struct volume *v, const char *key);
/* What holds: what was set, else the default of the key; "" for none. */
const char *volume_option_value(const struct volume *v, const char *key);
bool volume_option_is_on(const struct volume *v, const char *key);

/* "/srv/a b" -> "-srv-a b": how a path becomes part of a file's name. With `keep_first` false the leading dash is left
 * out. Returned; NULL for lack of memory. */
char *path_with_dashes(const char *path, bool keep_first) MUST_USE;
