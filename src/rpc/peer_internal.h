/* rpc/peer_internal.h - between peer.c (calls) and peer_io.c (queue, writer, timers). */
#pragma once

#include "rpc/peer.h"

FIBER void rpc_peer_reader(void *arg);
FIBER void rpc_peer_writer(void *arg);
void rpc_peer_drop_queue(struct rpc_peer *p);
/* A call has just been sent: pings and the frame timer run while any is under way. */
void rpc_peer_watch(struct rpc_peer *p);
