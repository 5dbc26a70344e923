/* core/env_real.h - the env of a real process: libuv loop, sockets, threads. */
#pragma once

#include "core/env.h"

/* One per process, made on the thread that will run it. `log` is borrowed and must outlive it. NULL for lack of
 * memory or when the loop cannot be made. Pool size: pool_threads (0 = 16). */
struct env *env_real_new(struct log *log, unsigned pool_threads);
/* Runs the loop until env_real_stop() and until then only. Returns the code given to stop. */
int env_real_run(struct env *env);
void env_real_stop(struct env *env, int code);
/* No fiber may be left (asserted in debug builds); frees all. Accepts NULL. */
void env_real_free(struct env *env);
/* For tests: runs fn(arg) in a fiber and the loop until it has returned. */
void env_real_run_fiber(struct env *env, fiber_fn fn, void *arg);
