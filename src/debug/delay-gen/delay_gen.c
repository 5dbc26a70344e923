/* debug/delay-gen - makes operations slow on purpose: `delay-percentage` of those named by `enable` (all when empty)
 * wait `delay-duration` microseconds before they go to the child. A call whose time is over meanwhile is not sent. */
#include "graph/translator.h"
#include "core/mem.h"

struct delay_gen {
    double percent;
    uint32_t duration_us;
    char *enable;
    uint64_t ops; /* set of operations */
    uint64_t delayed;
};

static void wake(void *arg)
{
    waitq_wake_all(arg, 0);
}

static FIBER int wait_us(struct translator *me, struct call *call, uint64_t us)
{
    struct waitq waiting;
    struct timer timer = { 0 };

    waitq_init(&waiting);
    timer_start(me->env, &timer, env_now_ns(me->env) + us * 1000, wake, &waiting);
    int r = waitq_wait(&waiting, &call->scope);
    timer_stop(&timer);
    return r;
}

static FIBER int delay_gen_any(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct delay_gen *s = me->state;

    if (op_set_has(s->ops, q->op) && (double)(env_random_u64(me->env) % 1000000) < s->percent * 10000) {
        s->delayed++;
        int result = wait_us(me, call, s->duration_us);
        if (result < 0)
            return result;
    }
    return default_op(me, call, q, r);
}

static int delay_gen_init(struct translator *me, struct error *err)
{
    struct delay_gen *s = me->state;
    int r = op_set_parse(s->enable ? s->enable : "", &s->ops, err);

    return r < 0 ? error_prefix(err, r, "option \"enable\"") : 0;
}

static void delay_gen_reconfigured(struct translator *me)
{
    struct error err;

    if (delay_gen_init(me, &err) < 0)
        TLOG(me, LOG_WARNING, "bad-option", "%s; the old list stays", err.text);
}

static void delay_gen_dump(struct translator *me, struct dump *out)
{
    dump_printf(out, "delayed", "%llu", (unsigned long long)((struct delay_gen *)me->state)->delayed);
}

static const struct option delay_gen_options[] = {
    OPT_PERCENT("delay-percentage", struct delay_gen, percent, .def = "10%", .live = true, .help = "share that waits"),
    OPT_U32("delay-duration", struct delay_gen, duration_us, .unit = "us", .def = "100000", .live = true,
            .help = "how long it waits"),
    OPT_STR("enable", struct delay_gen, enable, .live = true, .help = "operations that wait"),
    OPT_END,
};

const struct translator_class delay_gen_class = {
    .type = "debug/delay-gen",
    .state_size = sizeof(struct delay_gen),
    .options = delay_gen_options,
    .ops = { [OP_COMPOUND] = default_compound },
    .any = delay_gen_any,
    .children_min = 1,
    .children_max = 1,
    .init = delay_gen_init,
    .reconfigured = delay_gen_reconfigured,
    .dump = delay_gen_dump,
};
