/* mgmt/mirror.h - the cluster's state as GlusterFS's files, for scripts that look there and for the way back.
 *
 * vols/V/{info, bricks/..., *.vol} under the work folder. They are written only, never read by us (but state.json); a file that is the same
 * already is not touched. A folder is removed when its volume is gone, but only one that was written by us.
 */
#pragma once

#include "core/env.h"
#include "mgmt/cluster.h"

/* `state` becomes state.json, which is read at the next start; given; NULL: the old one stays. 0, or -errno with a sentence
 * that names the file. */
FIBER int mirror_write(struct env *env, const struct cluster *c, const char *work_folder, char *state,
                       struct error *err);
/* The folders that the processes of a volume need for their pid files, sockets and logs. Failures show when they start. */
void mirror_make_folders(const char *run_folder, const char *log_folder, const char *volume);
