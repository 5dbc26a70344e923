/* cluster/replicate/fan.c - one request to many children at once. */
#include "cluster/replicate/replicate_internal.h"
#include "core/mem.h"

struct fan *fan_new(struct translator *me, struct call *call, uint32_t targets, const struct request *q)
{
    struct replicate *s = replicate_of(me);
    struct fan *fan = mem_zalloc(sizeof(*fan) + s->child_count * sizeof(struct fan_child));

    if (!fan)
        return NULL;
    fan->me = me;
    fan->call = call;
    fan->targets = targets;
    fan->list = (struct fan_child *)(fan + 1);
    for (unsigned i = 0; i < s->child_count; i++) {
        struct fan_child *c = &fan->list[i];

        c->fan = fan;
        c->child = i;
        c->epoch = s->child[i].epoch;
        c->ret = -ENOTCONN;
        if (!(targets & bit(i)))
            continue;
        c->q = *q;
        reply_init(&c->r);
    }
    return fan;
}

void fan_free(struct fan *fan)
{
    if (!fan)
        return;
    for_each_child(i, fan->targets)
    {
        reply_done(&fan->list[i].r);
        mem_free(fan->list[i].steps);
        dict_unref(fan->list[i].own_xattrs);
    }
    mem_free(fan);
}

int fan_steps(struct fan *fan, uint32_t count)
{
    for_each_child(i, fan->targets)
    {
        struct fan_child *c = &fan->list[i];

        c->steps = mem_array(count, sizeof(struct request));
        if (!c->steps)
            return -ENOMEM;
        memset(&c->q, 0, sizeof(c->q));
        c->q.op = OP_COMPOUND;
        c->q.steps = c->steps;
        c->q.step_count = count;
    }
    return 0;
}

/* The descriptor of a request, or of its steps, as this child knows it. */
static FIBER void adapt_fd(struct translator *me, unsigned child, struct call *call, struct request *q)
{
    if (q->fd && fd_ensure(me, child, call, q->fd) < 0 && !(op_needs(q->op) & OP_FD))
        q->fd = NULL; /* by gfid, then */
    if (q->fd2 && fd_ensure(me, child, call, q->fd2) < 0)
        q->fd2 = NULL;
}

static bool opens_itself(enum op op)
{
    return op == OP_OPEN || op == OP_OPENDIR || op == OP_CREATE;
}

static FIBER void adapt(struct translator *me, unsigned child, struct call *call, struct request *q)
{
    if (q->op != OP_COMPOUND) {
        if (!opens_itself(q->op))
            adapt_fd(me, child, call, q);
        return;
    }
    for (uint32_t i = 0; i < q->step_count; i++) {
        if (!opens_itself(q->steps[i].op))
            adapt_fd(me, child, call, &q->steps[i]);
    }
}

static FIBER int fan_ask(void *arg)
{
    struct fan_child *c = arg;
    struct translator *me = c->fan->me;
    struct child *child = &replicate_of(me)->child[c->child];

    adapt(me, c->child, c->fan->call, &c->q);
    /* The child may have gone and come back since the request was made: what it was based on (locks) is lost. */
    if (child->epoch != c->epoch)
        return c->ret = -ENOTCONN;
    c->ret = child_call(me, c->child, c->fan->call, &c->q, &c->r);
    if (child->epoch != c->epoch)
        c->ret = -ENOTCONN;
    return c->ret;
}

FIBER void fan_run(struct fan *fan)
{
    group_init(&fan->group, fan->me->env);
    for_each_child(i, fan->targets)
    {
        struct fan_child *c = &fan->list[i];

        if (i == 31 || !(fan->targets >> (i + 1))) {
            fan_ask(c); /* the last one needs no fiber of its own */
            break;
        }
        if (group_run(&fan->group, "replica", fan_ask, c) < 0)
            c->ret = -ENOMEM;
    }
    group_wait_all(&fan->group);
}

uint32_t fan_ok(const struct fan *fan)
{
    uint32_t ok = 0;

    for_each_child(i, fan->targets)
    {
        if (fan->list[i].ret >= 0)
            ok |= bit(i);
    }
    return ok;
}

uint32_t fan_failed_with(const struct fan *fan, int result)
{
    uint32_t with = 0;

    for_each_child(i, fan->targets)
    {
        if (fan->list[i].ret == result)
            with |= bit(i);
    }
    return with;
}

int fan_worst(const struct fan *fan)
{
    int worst = 0;

    for_each_child(i, fan->targets)
    {
        if (fan->list[i].ret < 0)
            worst = result_worse(worst, fan->list[i].ret);
    }
    return worst;
}

int fan_step(const struct fan *fan, unsigned child, uint32_t step, struct reply **ret_reply)
{
    struct fan_child *c = &fan->list[child];
    struct replicate *s = replicate_of(fan->me);

    if (!(fan->targets & bit(child)) || s->child[child].epoch != c->epoch)
        return -ENOTCONN;
    if (step >= c->r.step_count || !c->r.steps)
        return c->ret < 0 && c->r.step_count == 0 ? c->ret : -ENOTCONN;
    if (ret_reply)
        *ret_reply = &c->r.steps[step];
    return c->r.steps[step].ret;
}

uint64_t fan_asked_ns(const struct fan *fan)
{
    uint64_t last_ns = 0;

    for_each_child(i, fan->targets)
    {
        int ret = fan->list[i].ret;

        if (ret < 0 && ret != -ENOENT)
            continue;
        if (fan->list[i].r.asked_ns == 0)
            return 0;
        last_ns = MAX(last_ns, fan->list[i].r.asked_ns);
    }
    return last_ns;
}
