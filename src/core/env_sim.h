/* core/env_sim.h - the simulated world: many processes in one thread, virtual time, one seed.
 *
 * A `sim` owns the clock, the seeded scheduler and the network; each simulated process is an env made with
 * sim_process_new(). The scheduler picks the next runnable fiber or due event by the seed; time jumps to the next
 * event when nothing is runnable. Everything that happens is a function of the seed.
 *
 * Network: streams between processes by (host name, port) or unix path (same host only). Each direction delivers bytes
 * in order with a seeded delay and seeded chunking. Faults: sim_cut (connections break, new ones are refused or hang),
 * sim_hold (bytes are delayed until sim_heal), sim_crash (a process dies: its streams are reset for the others; its own
 * later calls return -ESHUTDOWN; its fibers unwind).
 *
 * A host has a name, and an address that is made up (10.0.0.1, 10.0.0.2, ... in order of appearance) for peer names;
 * connecting works by either. "localhost" and 127.0.0.1 are the own host. Every turn of a fiber takes some virtual
 * nanoseconds, so that a loop that polls with fiber_yield meets its deadline.
 *
 *     struct sim *sim = sim_new(&(struct sim_config) { .seed = 1 }, log_discard());
 *     struct env *brick = sim_process_new(sim, "host0", "brick0");
 *     fiber_spawn(brick, "main", brick_main, &state);
 *     sim_run(sim, UINT64_MAX);
 *     sim_process_free(brick);
 *     sim_free(sim);
 *
 * After sim_crash, waits with a scope, sleeps and stream calls of the process end with -ESHUTDOWN, and its timers never
 * fire again. A fiber that waits without a scope is woken by whoever was going to: tear the process's graph down in a
 * fiber (fiber_spawn works in a crashed process), run the simulator until sim_live_fibers() is 0, then free it.
 */
#pragma once

#include "core/env.h"

struct sim;

struct sim_config {
    uint64_t seed;
    uint64_t delay_min_ns, delay_max_ns; /* of a message; 0/0 = 20 us .. 500 us */
    uint64_t pool_min_ns, pool_max_ns;   /* of a pool job; 0/0 = 5 us .. 200 us */
};

struct sim *sim_new(const struct sim_config *config, struct log *log); /* returned; log borrowed */
void sim_free(struct sim *sim);                                        /* all processes must be freed before */

/* A process on a host. Names are copied. Returned; NULL for lack of memory. */
struct env *sim_process_new(struct sim *sim, const char *host, const char *name);
/* The process dies now. It is freed with sim_process_free() once its fibers have unwound (sim_run does that work). */
void sim_crash(struct env *process);
bool sim_is_crashed(struct env *process);
void sim_process_free(struct env *process); /* no live fibers (asserted) */
size_t sim_live_fibers(struct env *process);

/* Runs until nothing can ever happen, or `until_ns` of virtual time, or sim_stop(). Returns true when stopped by
 * sim_stop, false otherwise. */
bool sim_run(struct sim *sim, uint64_t until_ns);
void sim_stop(struct sim *sim);
uint64_t sim_now_ns(const struct sim *sim);
uint64_t sim_random(struct sim *sim); /* from the schedule's own random stream */
/* One line for a failing test: seed, step count. */
uint64_t sim_steps(const struct sim *sim);
/* A hash of everything that happened so far: equal for two runs of the same seed and program. */
uint64_t sim_trace_hash(const struct sim *sim);

/* Links between hosts, symmetric. cut: connections break with -ECONNRESET now or in a seeded while, connecting fails.
 * hold: nothing arrives until healed, connections stay. */
void sim_cut(struct sim *sim, const char *host_a, const char *host_b);
void sim_hold(struct sim *sim, const char *host_a, const char *host_b);
void sim_heal(struct sim *sim, const char *host_a, const char *host_b);
/* Breaks the present connections between the two once; new ones work. */
void sim_reset_connections(struct sim *sim, const char *host_a, const char *host_b);
/* fn(arg) at that time, on the loop, outside any process (fault schedules). */
int sim_at(struct sim *sim, uint64_t at_ns, void (*fn)(void *arg), void *arg);
