/* mortarfs/volserver.h - where a volume file comes from when it is not a local file: a management daemon, or a brick
 * that serves its own (docs/protocol.md "Management connection").
 *
 * Holds one connection to one of a list of servers. When it is lost, or nobody answers, the next of the list is tried.
 * The answer may name more servers, which are added. `changed` is called when the server says that there is a new file,
 * and after every reconnection: whoever is told fetches again and compares.
 */
#pragma once

#include "core/env.h"
#include "core/error.h"
#include "mortarfs/cmdline.h"

struct volserver;

/* `c` is borrowed and must outlive it. Returned; NULL for lack of memory. changed(arg) runs on the loop. */
struct volserver *volserver_new(struct env *env, const struct cmdline *c, void (*changed)(void *arg),
                                void *arg) MUST_USE;
/* Ends the connection and waits for what is under way. Accepts NULL. */
FIBER void volserver_free(struct volserver *v);
/* The text of the file (returned; size without the NUL that follows it). Tries every server `fetch_attempts` times
 * before the first success, later each once. -errno with a sentence naming the servers. */
FIBER int volserver_fetch(struct volserver *v, char **ret_text, size_t *ret_bytes, struct error *err);
