/* mgmt/command_internal.h - one function per command. Requests and answers: docs/management.md "Commands". */
#pragma once

#include "mgmt/daemon_internal.h"

/* Adds its results to `answer`. 0, or a negative errno with the sentence for the user. */
typedef int (*command_fn)(struct mortard *d, const json_t *request, json_t *answer, struct error *err);

FIBER int command_volume_create(struct mortard *d, const json_t *request, json_t *answer, struct error *err);
FIBER int command_volume_start(struct mortard *d, const json_t *request, json_t *answer, struct error *err);
FIBER int command_volume_stop(struct mortard *d, const json_t *request, json_t *answer, struct error *err);
FIBER int command_volume_delete(struct mortard *d, const json_t *request, json_t *answer, struct error *err);
FIBER int command_volume_set(struct mortard *d, const json_t *request, json_t *answer, struct error *err);
FIBER int command_volume_reset(struct mortard *d, const json_t *request, json_t *answer, struct error *err);
int command_volume_get(struct mortard *d, const json_t *request, json_t *answer, struct error *err);
int command_volume_info(struct mortard *d, const json_t *request, json_t *answer, struct error *err);
int command_volume_list(struct mortard *d, const json_t *request, json_t *answer, struct error *err);
FIBER int command_volume_status(struct mortard *d, const json_t *request, json_t *answer, struct error *err);
int command_volume_help(struct mortard *d, const json_t *request, json_t *answer, struct error *err);
FIBER int command_add_brick(struct mortard *d, const json_t *request, json_t *answer, struct error *err);
FIBER int command_remove_brick(struct mortard *d, const json_t *request, json_t *answer, struct error *err);
FIBER int command_replace_brick(struct mortard *d, const json_t *request, json_t *answer, struct error *err);
FIBER int command_import(struct mortard *d, const json_t *request, json_t *answer, struct error *err);
int command_heal(struct mortard *d, const json_t *request, json_t *answer, struct error *err);
FIBER int command_peer_probe(struct mortard *d, const json_t *request, json_t *answer, struct error *err);
FIBER int command_peer_detach(struct mortard *d, const json_t *request, json_t *answer, struct error *err);
int command_peer_status(struct mortard *d, const json_t *request, json_t *answer, struct error *err);
int command_uuid(struct mortard *d, const json_t *request, json_t *answer, struct error *err);

/* Has a change agreed on; it is given, NULL: no memory to make it. As mortard_change. */
FIBER int command_propose(struct mortard *d, json_t *change, struct error *err);

const char *request_text(const json_t *request, const char *key); /* NULL: not there */
bool request_flag(const json_t *request, const char *key);
uint32_t request_number(const json_t *request, const char *key, uint32_t otherwise);
/* The volume of "name". 0 or -ENOENT with `Volume V does not exist`. */
int request_volume(const struct mortard *d, const json_t *request, struct volume **ret_volume, struct error *err);

/* ---- bricks that are to be (command_bricks.c) ---- */

struct new_bricks {
    json_t *json; /* as changes want them */
    json_t *undo; /* for each folder that was prepared: the question that takes it back, with its "node" */
};

/* Reads "HOST:/path" of the array, checks and marks the folders. 0, or -errno with the sentence; then nothing is left
 * behind. Sets of `group_size` bricks on one machine are refused unless forced. */
FIBER int new_bricks_prepare(struct mortard *d, const json_t *bricks, const struct gfid *volume_id, unsigned group_size,
                             bool is_forced, struct new_bricks *ret_bricks, struct error *err);
/* The volume did not come to be: takes the marks back. */
FIBER void new_bricks_undo(struct mortard *d, struct new_bricks *b);
void new_bricks_done(struct new_bricks *b);
/* What of the volume runs here: rows of `volume status`. New reference; NULL for lack of memory. */
json_t *status_rows(struct mortard *d, const struct volume *v);
/* Before a start: the bricks of this machine are in order. */
FIBER int bricks_check(struct mortard *d, const struct volume *v, bool is_forced, struct error *err);
