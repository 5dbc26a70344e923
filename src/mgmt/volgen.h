/* mgmt/volgen.h - the volume files of a volume, made from what the cluster knows of it.
 *
 * Sections, names and options are those of GlusterFS 10.3, for its processes read these files too (docs/management.md
 * "Generated volume files"); the order of options within a section has no meaning. Same volume, same text: whoever holds
 * an older text learns by comparing whether something changed.
 *
 *     SCOPED_FREE char *text = volgen_client(v, true);
 */
#pragma once

#include "mgmt/volume.h"

/* Of the machine a brick is on. */
struct volgen_node {
    const char *work_folder;     /* "/var/lib/glusterd" */
    unsigned shared_brick_count; /* bricks of this volume there that lie on the same file system as this one */
};

/* For mounts. A trusted client shows the volume's user name and password, so auth.allow does not hold for it. Returned;
 * NULL for lack of memory. */
char *volgen_client(const struct volume *v, bool is_trusted) MUST_USE;
/* For the process that heals the volume. */
char *volgen_heal(const struct volume *v) MUST_USE;
/* For the process that moves files between the volume's bricks. */
char *volgen_rebalance(const struct volume *v) MUST_USE;
/* For the process that serves brick number `brick`. */
char *volgen_brick(const struct volume *v, unsigned brick, const struct volgen_node *node) MUST_USE;

/* "V.HOST.path-with-dashes": what the brick's file is called in a request for it. Returned; NULL for lack of memory. */
char *volgen_brick_id(const struct volume *v, unsigned brick) MUST_USE;
