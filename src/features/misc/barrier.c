/* features/barrier - while a snapshot is taken, nobody is told that something durable has happened.
 *
 * With `barrier enable`, replies of rename, rmdir, unlink, truncate, fsync and O_SYNC writes are held (the operations
 * themselves run). `barrier disable`, or `barrier-timeout` after switching on, lets all of them go. */
#include "graph/translator.h"
#include <fcntl.h>

struct barrier {
    bool is_on;
    uint32_t timeout_s;
    bool is_holding; /* on, and the time is not over */
    struct waitq held;
    struct timer timer;
    uint64_t held_count;
};

static bool is_held(const struct request *q)
{
    switch (q->op) {
    case OP_RENAME:
    case OP_RMDIR:
    case OP_UNLINK:
    case OP_TRUNCATE:
    case OP_FSYNC: return true;
    case OP_WRITE: return ((q->fd ? q->fd->flags : 0) | q->flags) & (O_SYNC | O_DSYNC);
    default: return false;
    }
}

static void let_go(struct barrier *s)
{
    s->is_holding = false;
    timer_stop(&s->timer);
    waitq_wake_all(&s->held, 0);
}

static void barrier_timeout(void *arg)
{
    struct translator *me = arg;
    struct barrier *s = me->state;

    TLOG(me, LOG_WARNING, "barrier-timeout", "replies were held for %u s, the barrier is given up", s->timeout_s);
    let_go(s);
}

static void follow_option(struct translator *me)
{
    struct barrier *s = me->state;

    if (!s->is_on) {
        let_go(s);
    } else if (!s->is_holding) {
        s->is_holding = true;
        timer_start(me->env, &s->timer, env_deadline_ms(me->env, (uint64_t)s->timeout_s * 1000), barrier_timeout, me);
    }
}

static FIBER int barrier_any(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct barrier *s = me->state;
    int result = default_op(me, call, q, r);

    if (s->is_holding && is_held(q)) {
        s->held_count++;
        (void)waitq_wait(&s->held, &call->scope); /* late or cancelled: the operation has happened all the same */
    }
    return result;
}

static int barrier_init(struct translator *me, struct error *err)
{
    struct barrier *s = me->state;

    waitq_init(&s->held);
    follow_option(me);
    return 0;
}

static FIBER void barrier_stop(struct translator *me)
{
    let_go(me->state);
}

static void barrier_fini(struct translator *me)
{
    struct barrier *s = me->state;

    timer_stop(&s->timer);
}

static void barrier_dump(struct translator *me, struct dump *out)
{
    const struct barrier *s = me->state;

    dump_printf(out, "enabled", "%d", s->is_holding);
    dump_printf(out, "held", "%llu", (unsigned long long)s->held_count);
}

static const struct option barrier_options[] = {
    OPT_BOOL("barrier", struct barrier, is_on, .def = "disable", .live = true, .help = "hold replies now"),
    OPT_TIME("barrier-timeout", struct barrier, timeout_s, .def = "120", .live = true,
             .help = "hold them this long at most"),
    OPT_END,
};

const struct translator_class barrier_class = {
    .type = "features/barrier",
    .state_size = sizeof(struct barrier),
    .options = barrier_options,
    .ops = { [OP_COMPOUND] = default_compound },
    .any = barrier_any,
    .children_min = 1,
    .children_max = 1,
    .init = barrier_init,
    .stop = barrier_stop,
    .fini = barrier_fini,
    .reconfigured = follow_option,
    .dump = barrier_dump,
};
