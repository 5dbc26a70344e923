/* sim/tap.h - a count of messages of one simulated process, and something that happens at one of them.
 *
 *     node->tap = (struct tap) { .sim = sim, .is_counting = true, .stop_at = 17, .fn = kill_it, .arg = node };
 *
 * Messages are those between replicate and its bricks, of all bricks together; a compound is one. fn runs outside any
 * fiber. The count goes on over restarts of the process.
 */
#pragma once

#include "core/env_sim.h"

struct tap {
    struct sim *sim;
    bool is_counting;
    uint64_t count;   /* messages so far while is_counting */
    uint64_t stop_at; /* the number of the message at which fn runs; 0: none */
    bool stop_after;  /* when its answer is back; else before it goes out */
    void (*fn)(void *arg);
    void *arg;
};
