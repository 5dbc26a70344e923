/* mortarfs/control.h - the socket by which commands talk to this process (rpc/control.h says what they may ask). */
#pragma once

#include "core/env.h"
#include "core/error.h"
#include "graph/graph.h"

struct control;

/* Listens at the path. `graph` is asked for the present graph (may answer NULL) with `arg`. -errno with a sentence. */
int control_open(struct env *env, const char *path, struct graph *(*graph)(void *arg), void *arg,
                 struct control **ret_control, struct error *err);
/* Ends all connections. Accepts NULL. */
FIBER void control_close(struct control *c);
