/* features/quiesce - hides an outage of the child: operations wait until it is up again, `timeout` at most.
 *
 * Nothing is sent while the child is down. Reads that fail because it goes down under way are asked again; changes are
 * not, since they may have happened. */
#include "graph/translator.h"

struct quiesce {
    uint32_t timeout_s;
    bool child_is_down; /* known to be; before the first event it counts as up */
    struct waitq waiting;
    uint64_t held_count;
};

static FIBER int wait_for_child(struct translator *me, struct call *call, uint64_t give_up_ns)
{
    struct quiesce *s = me->state;
    struct scope scope;

    s->held_count++;
    while (s->child_is_down) {
        int r = scope_check(&call->scope, me->env);
        if (r < 0)
            return r;
        uint64_t deadline_ns = call->scope.deadline_ns;
        scope_init(&scope, deadline_ns && deadline_ns < give_up_ns ? deadline_ns : give_up_ns);
        r = waitq_wait(&s->waiting, &scope);
        scope_done(&scope);
        if (r == -ETIMEDOUT)
            return deadline_ns && deadline_ns < give_up_ns ? r : -ENOTCONN;
    }
    return 0;
}

static FIBER int quiesce_any(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct quiesce *s = me->state;
    uint64_t give_up_ns = env_deadline_ms(me->env, (uint64_t)s->timeout_s * 1000);

    for (;;) {
        int result = s->child_is_down ? wait_for_child(me, call, give_up_ns) : 0;
        if (result == 0)
            result = default_op(me, call, q, r);
        if (result != -ENOTCONN || (op_needs(q->op) & OP_CHANGES) || env_now_ns(me->env) >= give_up_ns ||
            !s->child_is_down)
            return result;
        reply_done(r);
    }
}

static void quiesce_notify(struct translator *me, unsigned child, const struct event *event)
{
    struct quiesce *s = me->state;

    if (event->kind == EVENT_CHILD_DOWN)
        s->child_is_down = true;
    if (event->kind == EVENT_CHILD_UP) {
        s->child_is_down = false;
        waitq_wake_all(&s->waiting, 0);
    }
    notify_parents(me, event);
}

static int quiesce_init(struct translator *me, struct error *err)
{
    waitq_init(&((struct quiesce *)me->state)->waiting);
    return 0;
}

static FIBER void quiesce_stop(struct translator *me)
{
    struct quiesce *s = me->state;

    s->child_is_down = false;
    waitq_wake_all(&s->waiting, 0);
}

static const struct option quiesce_options[] = {
    OPT_TIME("timeout", struct quiesce, timeout_s, .def = "45", .live = true, .help = "how long operations wait"),
    OPT_IGNORED("failover-hosts", .help = "volume files name the servers"),
    OPT_END,
};

const struct translator_class quiesce_class = {
    .type = "features/quiesce",
    .state_size = sizeof(struct quiesce),
    .options = quiesce_options,
    .ops = { [OP_COMPOUND] = default_compound },
    .any = quiesce_any,
    .children_min = 1,
    .children_max = 1,
    .init = quiesce_init,
    .stop = quiesce_stop,
    .notify = quiesce_notify,
};
