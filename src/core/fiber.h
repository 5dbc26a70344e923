/* core/fiber.h - fibers: straight-line code that waits without blocking the thread.
 *
 * A fiber is a stack of its own (64 KiB, guard page below) on the thread of its env's loop. It runs until it waits;
 * everything not marked FIBER runs without a switch and is therefore atomic with respect to other fibers. The nouns:
 *
 *   fiber  - started with fiber_spawn() from anywhere on the loop thread; ends when its function returns.
 *   scope  - how long waiting is worth while: a deadline and a cancel switch. Every wait takes one (NULL: wait for ever,
 *            only for owners that will be woken for sure). A cancelled or late wait returns -ECANCELED or -ETIMEDOUT,
 *            and the code goes on along its ordinary error path; a fiber is never destroyed halfway.
 *   waitq  - where fibers wait for an event; strictly first come first served.
 *   group  - structured fan-out: start children, wait for all, the first, or enough of them.
 *
 * Invariants: wait primitives assert that they run in a fiber; a fiber never changes threads; a spawned fiber starts
 * from the loop, not inside fiber_spawn. Past FIBER_MAX_LIVE, starts are queued, not refused.
 *
 *     struct group g;
 *     group_init(&g, env);
 *     for (i = 0; i < n; i++)
 *         group_run(&g, ask_child, &args[i]);
 *     group_wait_all(&g);
 */
#pragma once

#include "core/base.h"
#include "core/list.h"

struct env;
struct fiber;

#define FIBER_STACK_BYTES (64 * 1024)
#define FIBER_MAX_LIVE    16384 /* two mappings each; vm.max_map_count is 65530 by default */

typedef void (*fiber_fn)(void *arg);

/* Starts fn(arg) in a new fiber of `env` soon. 0 or -ENOMEM. `name` (static text) is shown by statedump and gdb. */
int fiber_spawn(struct env *env, const char *name, fiber_fn fn, void *arg) MUST_USE;
bool fiber_is_running(void); /* are we in a fiber? */
struct env *fiber_env(void); /* of the running fiber */
const char *fiber_name(void);

/* ---- scope ---- */

struct scope {
    uint64_t deadline_ns; /* on env_now_ns(); 0 = none */
    bool is_cancelled;
    struct list waiters; /* internal */
};

void scope_init(struct scope *s, uint64_t deadline_ns);
/* All present waits in the scope end with -ECANCELED, and all future ones at once. May be called from anywhere on the
 * loop thread, also twice. */
void scope_cancel(struct scope *s);
/* 0, -ECANCELED or -ETIMEDOUT (deadline passed), without waiting. */
int scope_check(const struct scope *s, struct env *env);
/* No wait may be in the scope any more (asserted). */
void scope_done(struct scope *s);

/* ---- waiting ---- */

struct waitq {
    struct list waiters; /* internal */
};

void waitq_init(struct waitq *q);
/* Waits at the end of the queue. Returns what the waker gave (0 or a count or negative errno), -ETIMEDOUT or
 * -ECANCELED. A wake-up that crossed with a cancellation is the wake-up. */
FIBER int waitq_wait(struct waitq *q, struct scope *scope);
/* Wakes the first waiter (false: there was none) or all of them (how many); they run later, in order. */
bool waitq_wake_one(struct waitq *q, int result);
size_t waitq_wake_all(struct waitq *q, int result);
bool waitq_is_empty(const struct waitq *q);

/* Lets other runnable fibers go first. */
FIBER void fiber_yield(void);
/* 0 after that time, or -ETIMEDOUT (the scope's deadline came first), -ECANCELED. */
FIBER int fiber_sleep_ms(struct scope *scope, uint64_t ms);

/* A mutex among fibers: first come first served. Hold it across waits only when the header of its owner says so. */
struct fiber_mutex {
    bool is_held;
    struct waitq waiting;
};
void fiber_mutex_init(struct fiber_mutex *m);
FIBER int fiber_mutex_lock(struct fiber_mutex *m, struct scope *scope);
void fiber_mutex_unlock(struct fiber_mutex *m);

/* ---- fan-out ---- */

typedef int (*group_fn)(void *arg); /* FIBER; 0 or count = success, negative errno = failure */

struct group {
    struct env *env;
    size_t started, ended, succeeded;
    size_t wanted;        /* internal: successes the owner waits for */
    struct waitq waiting; /* the owner waits here */
};

void group_init(struct group *g, struct env *env);
/* Starts fn(arg) as a child. `arg` must live until the child has ended. On -ENOMEM nothing was started. */
int group_run(struct group *g, const char *name, group_fn fn, void *arg) MUST_USE;
/* Until all children have ended. Never times out: children end by their own scopes. */
FIBER void group_wait_all(struct group *g);
/* Until `count` children have succeeded, or so many have failed that this cannot happen any more: true / false.
 * The rest goes on; call group_wait_all before the group or the arguments go away. */
FIBER bool group_wait_count(struct group *g, size_t count);
