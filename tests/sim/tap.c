/* sim/tap - stands between replicate and one brick in clients and heal daemons, counts the messages of the process and
 * stops it at a chosen one, so that a test can let something die exactly there.
 *
 * Before message n it waits, so that what the test does happens before the message goes out; or (stop_after) it waits
 * with the answer, so that the brick has acted and the process does not know. */
#include "sim/tap.h"
#include "graph/graph.h"
#include "sim/classes.h"

#define STOP_MS 1

static FIBER void stop(struct translator *me, struct tap *tap)
{
    (void)sim_at(tap->sim, sim_now_ns(tap->sim), tap->fn, tap->arg);
    (void)fiber_sleep_ms(NULL, STOP_MS);
}

static FIBER int tap_any(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct tap *tap = me->graph->edge;
    if (!tap || !tap->is_counting)
        return default_op(me, call, q, r);
    uint64_t number = ++tap->count;
    bool stops = tap->fn && number == tap->stop_at;
    if (stops && !tap->stop_after)
        stop(me, tap);
    int ret = default_op(me, call, q, r);
    if (stops && tap->stop_after)
        stop(me, tap);
    return ret;
}

const struct translator_class tap_class = {
    .type = "sim/tap",
    .children_min = 1,
    .children_max = 1,
    .any = tap_any,
};
