/* mgmt/change_internal.h - one function per op; each checks everything before it changes anything. */
#pragma once

#include "mgmt/change.h"

int change_volume_create(struct cluster *c, const json_t *change, struct error *err);
int change_volume_import(struct cluster *c, const json_t *change, struct error *err);
int change_volume_delete(struct cluster *c, const json_t *change, struct error *err);
int change_volume_start(struct cluster *c, const json_t *change, struct error *err);
int change_volume_stop(struct cluster *c, const json_t *change, struct error *err);
int change_volume_set(struct cluster *c, const json_t *change, struct error *err);
int change_volume_reset(struct cluster *c, const json_t *change, struct error *err);
int change_add_bricks(struct cluster *c, const json_t *change, struct error *err);
int change_remove_bricks(struct cluster *c, const json_t *change, struct error *err);
int change_replace_brick(struct cluster *c, const json_t *change, struct error *err);
int change_node_add(struct cluster *c, const json_t *change, struct error *err);
int change_node_remove(struct cluster *c, const json_t *change, struct error *err);

/* A member that is a string; NULL with -EBADMSG's sentence when it is not there. */
const char *change_text(const json_t *change, const char *key, struct error *err);
bool change_flag(const json_t *change, const char *key);
/* The volume named by the change. 0, -ENOENT `Volume V does not exist`, -EBADMSG. */
int change_find_volume(const struct cluster *c, const json_t *change, struct volume **ret_volume, struct error *err);
/* Are the bricks [first, first + count) of v on members, and apart from all others? `except`: a volume that is about to be
 * replaced by v, and whose bricks do not count; may be NULL. */
int change_check_bricks(const struct cluster *c, const struct volume *v, unsigned first, unsigned count,
                        const struct volume *except, struct error *err);
/* Gives the bricks from `first` on ids that no brick of the volume has or had as far as the ids left tell. 0, -ENOMEM. */
int change_name_bricks(struct volume *v, unsigned first);
