/* rpc/peer_internal.h - between peer.c (calls) and peer_io.c (queue, writer, timers). */
#pragma once

#include "rpc/peer.h"

FIBER void rpc_peer_reader(void *arg);
FIBER void rpc_peer_writer(void *arg);
void rpc_peer_drop_queue(struct rpc_peer *p);
/* A call has just been sent: pings and the frame timer run while any is under way.
 *
 * A connection is given up when calls are under way and nothing has come for ping_timeout, although a ping asked for it.
 * After a quarter of that silence the ping goes out. Its own way counts for us: while what was sent before it still
 * moves (a slow line), the clock waits; once it has arrived there must be an answer. So a stopped process is noticed
 * within ping_timeout, and a long queue is not taken for one. */
void rpc_peer_watch(struct rpc_peer *p);
