/* features/read-only - with `read-only on`, whoever is no internal client gets EROFS for everything that would change
 * something. Heal and rebalance (negative pids) go through: they keep replicas alike, they do not change content. */
#include "graph/translator.h"
#include <fcntl.h>

struct read_only {
    bool is_on;
};

static bool would_change(const struct request *q)
{
    if (q->op == OP_OPEN)
        return (q->flags & O_ACCMODE) != O_RDONLY || (q->flags & O_TRUNC);
    return op_needs(q->op) & OP_CHANGES;
}

static FIBER int read_only_any(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    const struct read_only *s = me->state;

    if (s->is_on && call->pid >= 0 && would_change(q))
        return -EROFS;
    return default_op(me, call, q, r);
}

static const struct option read_only_options[] = {
    OPT_BOOL("read-only", struct read_only, is_on, .def = "off", .live = true,
             .help = "nobody but heal and rebalance may change anything"),
    OPT_END,
};

const struct translator_class read_only_class = {
    .type = "features/read-only",
    .state_size = sizeof(struct read_only),
    .options = read_only_options,
    .ops = { [OP_COMPOUND] = default_compound },
    .any = read_only_any,
    .children_min = 1,
    .children_max = 1,
};
