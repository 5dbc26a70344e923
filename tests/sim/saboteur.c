/* sim/saboteur - stands between replicate and a brick and breaks one rule, to show that the checks see it.
 *
 * no-dirty: counters are never written: an xattrop that adds to them is answered as if it had been done.
 * serve-stale: what bricks say about each other is hidden: replies to lookups and stats carry no counters. */
#include "sim/classes.h"

enum { MODE_NONE, MODE_NO_DIRTY, MODE_SERVE_STALE };

struct saboteur {
    uint32_t mode;
};

static const char *const modes[] = { "none", "no-dirty", "serve-stale", NULL };
static const struct option saboteur_options[] = { OPT_ENUM("mode", struct saboteur, mode, modes, .def = "none"),
                                                  OPT_END };

static bool is_counter(const char *key)
{
    return !strncmp(key, "trusted.afr.", 12);
}

static FIBER int saboteur_xattrop(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct saboteur *s = me->state;
    if (s->mode != MODE_NO_DIRTY)
        return default_op(me, call, q, r);
    SCOPED(dict_unref) struct dict *zeros = dict_new();
    const char *key;
    const struct dict_value *v;
    static const uint8_t none[12];
    for (size_t at = 0; dict_next(q->xattrs, &at, &key, &v);) {
        int e = is_counter(key) ? dict_set_bin(zeros, key, none, sizeof(none)) : dict_set_value(zeros, key, v);
        if (e < 0)
            return e;
    }
    struct request own = *q;
    own.xattrs = zeros;
    return default_op(me, call, &own, r);
}

static FIBER int saboteur_look(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct saboteur *s = me->state;
    int ret = default_op(me, call, q, r);
    if (ret < 0 || s->mode != MODE_SERVE_STALE || !r->xdata)
        return ret;
    struct dict *shown = dict_new();
    const char *key;
    const struct dict_value *v;
    for (size_t at = 0; dict_next(r->xdata, &at, &key, &v);)
        if (!is_counter(key))
            (void)dict_set_value(shown, key, v);
    dict_unref(r->xdata);
    r->xdata = shown;
    return ret;
}

const struct translator_class saboteur_class = {
    .type = "sim/saboteur",
    .state_size = sizeof(struct saboteur),
    .options = saboteur_options,
    .children_min = 1,
    .children_max = 1,
    .ops = { [OP_XATTROP] = saboteur_xattrop, [OP_LOOKUP] = saboteur_look, [OP_STAT] = saboteur_look },
};
