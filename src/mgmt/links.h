/* mgmt/links.h - machines of a cluster talk to each other.
 *
 * Every machine keeps a connection to every other one; which of the two made it does not matter. Both prove that they know
 * the cluster's secret before anything is believed: it never travels, but for the moment when a machine is taken into the
 * cluster (docs/management.md "Machines"). Over a proven connection go messages of agreement (lost ones do no harm) and
 * questions from machine to machine.
 */
#pragma once

#include "mgmt/daemon_internal.h"

#define SECRET_BYTES    32
#define NODE_ANSWER_MS  30000
#define LINK_RETRY_MS   1000
#define LINK_CONNECT_MS 5000

/* Reads the secret, or makes one. 0 or -errno with a sentence. */
int secret_load(struct mortard *d, struct error *err);
int secret_store(struct mortard *d, const uint8_t secret[static SECRET_BYTES], struct error *err);

/* Begins to keep connections to the others. */
void links_start(struct mortard *d);
/* Somebody may have come or gone: looks now. */
void links_look(struct mortard *d);
/* A proven connection to this machine; NULL: there is none. */
struct connection *link_find(const struct mortard *d, const struct gfid *node);
void link_send(struct mortard *d, uint64_t member, const void *message, size_t size_bytes);

/* Asks another machine (a question of mgmt/nodes.h). 0 and the answer (new reference), or -ENOTCONN, -ETIMEDOUT ...;
 * `question` is borrowed. */
FIBER int link_ask(struct mortard *d, const struct gfid *node, const json_t *question, json_t **ret_answer);
/* Asks the leader for a change; -EAGAIN: it leads no more, nothing was done. */
FIBER int link_ask_change(struct mortard *d, const struct gfid *leader, const json_t *change, json_t **ret_answer);
/* The same with a machine that is not one of ours, by a connection for this question. */
FIBER int link_ask_stranger(struct mortard *d, const char *host, const json_t *question, json_t **ret_answer);

/* What came in over a connection (server.c). */
void link_hello(struct connection *c, struct rpc_incoming *in);
void link_prove(struct connection *c, struct rpc_incoming *in);
void link_message(struct connection *c, struct rpc_incoming *in);
