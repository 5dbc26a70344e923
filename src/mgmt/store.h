/* mgmt/store.h - GlusterFS's text files of a volume: `vols/V/info` and `vols/V/bricks/HOST:-path-with-dashes`.
 *
 * They are read when an existing installation is taken over, and written as a mirror of our own state, for scripts that
 * look there and for the way back. Format: docs/management.md "The management store". Text in, text out: which folder it
 * is in is the caller's business, and so is writing it safely.
 */
#pragma once

#include "mgmt/volume.h"

#define STORE_FILE_MAX_BYTES (4 * 1024 * 1024)

/* Reads `folder`/info and the files of its bricks. 0 and a volume (returned), or a negative errno with a sentence that
 * names the file and line: what is missing, not a number, or of a kind that no longer exists (stripe, tier). Keys that
 * are not known here are kept as options if they have a dot, else ignored. */
int store_read_volume(const char *folder, const char *name, struct volume **ret_volume, struct error *err);
/* The text of `info`, and of the file of one brick. Returned; NULL for lack of memory. */
char *store_print_info(const struct volume *v) MUST_USE;
char *store_print_brick(const struct brick *b) MUST_USE;
/* "HOST:-path-with-dashes": the name of a brick's file. Returned; NULL for lack of memory. */
char *store_brick_file(const struct brick *b) MUST_USE;
