/* mgmt/change.h - the changes of the replicated state machine.
 *
 * A change is a JSON object whose "op" says what it is. It is applied on every machine, in the same order, and must have
 * the same outcome everywhere: whatever could differ (random ids, the time, whether a folder exists) was decided before
 * and is in the change. So its checks are about the cluster's state only; they are made here, and not where the command
 * came in, because another change may have come first. A change that is refused changes nothing.
 *
 *     { "op": "volume-set", "name": "home", "pairs": [["cluster.quorum-type", "auto"]] }
 *
 * Ops and their members (docs/management.md "Changes"):
 *   volume-create  volume (bricks without ids)      volume-start, volume-stop  name, force
 *   volume-delete  name                             volume-set  name ("all": of the cluster), pairs
 *   volume-reset   name, key (absent: all), force   add-bricks  name, replica, arbiter, bricks
 *   remove-bricks  name, replica, bricks [[host, path]...]        replace-brick  name, host, path, brick
 *   node-add  node, names      node-remove  node    volume-import  volume (with ids)
 */
#pragma once

#include "mgmt/cluster.h"

/* 0; else a negative errno with GlusterFS's sentence. -ENOMEM: this machine can go on only by starting again, for its
 * state may differ from the others'. -EBADMSG: not a change. */
int change_apply(struct cluster *c, const json_t *change, struct error *err);

/* Would the pairs be accepted for this volume (NULL: for the cluster)? The same check that volume-set makes. */
int change_check_setting(const struct cluster *c, const struct volume *v, const char *key, const char *value,
                         struct error *err);
