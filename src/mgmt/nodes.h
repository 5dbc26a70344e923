/* mgmt/nodes.h - what machines of a cluster ask each other, over mgmt/links.h. JSON both ways; "ask" says what.
 *
 *   probe        (from anybody) who are you, and could you join?
 *   join         (from anybody, to a machine alone and without volumes) secret: forget your own cluster of one, and wait
 *   leave        you are no member any more
 *   change       (to the leader) have this change agreed on; gives ret, error, index
 *   member       (to the leader) add or remove: a machine's vote
 *   brick-prepare, brick-undo, start-check, settle, status   about bricks of the machine asked
 *
 * Answers have "ret" (0 or a negative errno) and "error".
 */
#pragma once

#include "mgmt/daemon_internal.h"

/* Answers a question of another machine, whose address is `seen` here; new reference. */
FIBER json_t *node_answer(struct mortard *d, const json_t *question, bool is_proven, const char *seen);
/* Asks a machine, this one included. 0 and the answer (new reference), or a negative errno, then with a sentence: its own,
 * or that it cannot be reached. `question` is given. */
FIBER int node_ask(struct mortard *d, const struct gfid *node, json_t *question, json_t **ret_answer,
                   struct error *err);
/* Its first name; "localhost" for this machine. */
const char *node_name(const struct mortard *d, const struct gfid *node);
bool node_is_connected(const struct mortard *d, const struct gfid *node);
