/* mgmt/brickdir.h - a folder becomes a brick: whether it may, and the mark that says whose it is.
 *
 * The checks and sentences are GlusterFS's (docs/management.md "A folder becomes a brick"). These block: they are for the
 * pool.
 */
#pragma once

#include "core/error.h"
#include "core/gfid.h"

#define BRICK_PATH_MAX 4000

struct brickdir {
    /* asked */
    char host[256]; /* as the user gave it, for sentences */
    char path[BRICK_PATH_MAX];
    const char *work_folder; /* bricks must not lie in it */
    struct gfid volume_id;
    bool is_forced;
    /* answered */
    char real_path[BRICK_PATH_MAX], mount_dir[BRICK_PATH_MAX];
    uint64_t fsid;
    bool was_made, was_marked; /* by this call: to be undone if the volume does not come to be */
    char scratch[BRICK_PATH_MAX + 8];
    int ret; /* 0, or a negative errno with a sentence */
    struct error err;
};

/* Checks the folder, makes it if only it is missing, and marks it with the volume's id. arg: struct brickdir. */
void brickdir_prepare(void *arg);
/* Takes back what brickdir_prepare did. */
void brickdir_undo(void *arg);
/* Before a start: the folder is there and has the volume's mark. Forced: a missing mark is written again. */
void brickdir_check(void *arg);
