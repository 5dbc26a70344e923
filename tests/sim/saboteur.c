/* sim/saboteur - stands between replicate and a brick and breaks one rule, to show that the checks see it.
 *
 * In clients:
 *   no-dirty: counters are never written: an xattrop that adds to them is answered as if it had been done.
 *   serve-stale: what bricks say about each other is hidden: replies to lookups and stats carry no counters.
 *   no-witness: nothing, here; the one in front of the witness plays no-dirty.
 *   false-lease: a lease lasts for ever.
 * In heal daemons:
 *   no-sync: fsync is answered and not done, so counters go before the healed data is safe.
 *   wrong-source: in answers and in changes of counters the first two bricks are exchanged.
 *   no-new-marks: an inode that heal makes is not marked, and so looks whole before it is.
 *   early-unlock: a lock is given back as soon as it was granted. */
#include "sim/classes.h"
#include "sim/cluster.h"

struct saboteur {
    uint32_t mode; /* enum sabotage */
};

static const char *const modes[] = { "none",    "no-dirty",     "serve-stale",  "no-witness",   "false-lease",
                                     "no-sync", "wrong-source", "no-new-marks", "early-unlock", NULL };
static_assert(ARRAY_SIZE(modes) == SABOTAGE_COUNT + 1, "one name per enum sabotage");
static const struct option saboteur_options[] = { OPT_ENUM("mode", struct saboteur, mode, modes, .def = "none"),
                                                  OPT_END };

static bool is_mode(const struct translator *me, enum sabotage mode)
{
    return ((const struct saboteur *)me->state)->mode == (uint32_t)mode;
}

static bool is_counter(const char *key)
{
    return !strncmp(key, "trusted.afr.", 12);
}

/* Contents and attributes at once: only a new inode is blamed so. */
static bool marks_new_inode(const struct dict_value *v)
{
    int32_t data, metadata, entry;
    if (v->size_bytes != 12)
        return false;
    data = (int32_t)get_be32(v->bytes);
    metadata = (int32_t)get_be32(v->bytes + 4);
    entry = (int32_t)get_be32(v->bytes + 8);
    return metadata > 0 && (data > 0 || entry > 0);
}

/* Counters as this mode shows or writes them. */
static int falsify(struct translator *me, const struct dict *from, struct dict **ret)
{
    static const char *const pair[] = { "trusted.afr.sim-client-0", "trusted.afr.sim-client-1" };
    static const uint8_t none[12];
    SCOPED(dict_unref) struct dict *to = dict_new();
    const char *key;
    const struct dict_value *v;
    int e = to ? 0 : -ENOMEM;
    for (size_t at = 0; e == 0 && dict_next(from, &at, &key, &v);) {
        bool is_zeroed = is_counter(key) &&
                         (is_mode(me, SABOTAGE_NO_DIRTY) || (is_mode(me, SABOTAGE_NO_NEW_MARKS) && marks_new_inode(v)));
        if (is_counter(key) && is_mode(me, SABOTAGE_SERVE_STALE))
            continue;
        if (is_mode(me, SABOTAGE_WRONG_SOURCE) && (!strcmp(key, pair[0]) || !strcmp(key, pair[1])))
            key = !strcmp(key, pair[0]) ? pair[1] : pair[0];
        e = is_zeroed ? dict_set_bin(to, key, none, sizeof(none)) : dict_set_value(to, key, v);
    }
    if (e == 0)
        *ret = take(to);
    return e;
}

static int falsify_answer(struct translator *me, struct dict **answer)
{
    struct dict *shown;
    if (!*answer)
        return 0;
    int e = falsify(me, *answer, &shown);
    if (e < 0)
        return e;
    dict_unref(*answer);
    *answer = shown;
    return 0;
}

static FIBER int saboteur_xattrop(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    if (is_mode(me, SABOTAGE_SERVE_STALE))
        return default_op(me, call, q, r);
    SCOPED(dict_unref) struct dict *changed = NULL;
    struct request own = *q;
    int e = falsify(me, q->xattrs, &changed);
    if (e < 0)
        return e;
    own.xattrs = changed;
    int ret = default_op(me, call, &own, r);
    if (ret >= 0 && is_mode(me, SABOTAGE_WRONG_SOURCE) && (e = falsify_answer(me, &r->xattrs)) < 0)
        return e;
    return ret;
}

static FIBER int saboteur_look(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    int ret = default_op(me, call, q, r);
    if (ret >= 0 && (is_mode(me, SABOTAGE_SERVE_STALE) || is_mode(me, SABOTAGE_WRONG_SOURCE))) {
        int e = falsify_answer(me, &r->xdata);
        if (e < 0)
            return e;
    }
    return ret;
}

static FIBER int saboteur_fsync(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    return is_mode(me, SABOTAGE_NO_SYNC) ? 0 : default_op(me, call, q, r);
}

static FIBER int saboteur_lock(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    if (!is_mode(me, SABOTAGE_EARLY_UNLOCK))
        return default_op(me, call, q, r);
    if (q->command == LOCK_UNLOCK)
        return 0;
    int ret = default_op(me, call, q, r);
    if (ret < 0)
        return ret;
    struct lock_range range = q->lock ? *q->lock : (struct lock_range) { 0 };
    struct request unlock = *q;
    unlock.command = LOCK_UNLOCK;
    unlock.lock = q->lock ? &range : NULL;
    return child_call(me, 0, call, &unlock, NULL);
}

static bool saboteur_lease(struct translator *me, struct inode *inode, struct lease *ret_lease)
{
    if (!is_mode(me, SABOTAGE_FALSE_LEASE))
        return translator_lease(me->children[0], inode, ret_lease);
    *ret_lease = (struct lease) { 1, UINT64_MAX };
    return true;
}

const struct translator_class saboteur_class = {
    .type = "sim/saboteur",
    .state_size = sizeof(struct saboteur),
    .options = saboteur_options,
    .children_min = 1,
    .children_max = 1,
    .lease = saboteur_lease,
    .ops = {
        [OP_XATTROP] = saboteur_xattrop,
        [OP_LOOKUP] = saboteur_look,
        [OP_STAT] = saboteur_look,
        [OP_FSYNC] = saboteur_fsync,
        [OP_INODELK] = saboteur_lock,
        [OP_ENTRYLK] = saboteur_lock,
    },
};
