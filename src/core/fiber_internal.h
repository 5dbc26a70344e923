/* core/fiber_internal.h - the scheduler under fiber.h: run queue, stacks, and what a loop does with them.
 *
 * A fiber gets a stack when it first runs and gives it back when it ends, so that a burst of short fibers lives on one
 * warm stack. A sched belongs to one thread: a real env has its own, the processes of a simulator share one. */
#pragma once

#include "core/fiber.h"

struct fiber_stack; /* fiber_stack.c */

/* One wait of one fiber, on its stack. Whoever ends it takes it off all lists first. */
struct waiter {
    struct list in_queue; /* the waitq; empty: not in one */
    struct list in_scope; /* the scope; empty: not in one */
    struct fiber *fiber;
    struct scope *scope;
    int result;
    bool is_over;
};

struct fiber {
    struct list node;   /* sched->runnable, or sched->starved (waits for a stack) */
    struct list of_env; /* env->fibers */
    struct sched *sched;
    struct env *env;
    const char *name;
    fiber_fn fn;
    void *arg;
    struct group *group; /* a child: group_fn_ is run instead of fn */
    int (*group_fn)(void *arg);
    struct fiber_stack *stack; /* NULL: has not run yet */
    struct waiter *waiter;     /* what it waits for, NULL while runnable or running */
    bool is_sleeping;
};

struct sched {
    struct list runnable;
    size_t runnable_count;
    struct list starved; /* runnable, but FIBER_MAX_LIVE stacks are in use */
    struct list free_stacks;
    struct list free_fibers;
    size_t stacks_free, stacks_live; /* live: under a fiber */
    uint64_t switches;
    struct fiber_stack *loop; /* the loop's own stack, described for the switch */
};

/* One stack is kept from the start, so that some fiber can always run. 0 or -ENOMEM. */
int sched_init(struct sched *s) MUST_USE;
void sched_done(struct sched *s); /* no fiber may be left (asserted) */
/* Runs this runnable fiber until it waits or ends. From the loop only. */
void sched_run_fiber(struct sched *s, struct fiber *f);
/* Runs the fibers that are runnable now, and those they wake, for at most `rounds` rounds. True: some are left. */
bool sched_run_rounds(struct sched *s, unsigned rounds);
/* Ends the wait with `result`: the fiber becomes runnable. */
void waiter_end(struct waiter *w, int result);
/* As fiber_sleep_ms, until that time. */
FIBER int fiber_sleep_until(struct scope *scope, uint64_t wake_ns);
/* A crashed process: all waits with a scope end with -ESHUTDOWN. */
void fiber_end_scoped_waits(struct env *env);

/* ---- fiber_stack.c ---- */

struct fiber_stack *stack_new(void (*entry)(void *arg)) MUST_USE;
void stack_free(struct fiber_stack *st);
struct fiber_stack *stack_new_for_loop(void) MUST_USE; /* describes the thread's own stack */
/* Before each fiber: entry(arg) begins on an empty stack at the next switch. */
void stack_prepare(struct fiber_stack *st, void *arg);
/* Leaves `from` and goes on in `to`. is_last: `from` will not be resumed before stack_prepare. */
void stack_switch(struct fiber_stack *from, struct fiber_stack *to, bool is_last);
/* The first thing on a fresh stack. */
void stack_entered(struct fiber_stack *st);
struct list *stack_node(struct fiber_stack *st);
struct fiber_stack *stack_of_node(struct list *node);
