/* features/thin-arbiter - the brick that remembers, for pairs of bricks elsewhere, which of the two may be stale.
 *
 * Each pair has a file without contents in the root; its pending counters ("trusted.afr.<brick>") say who is blamed. An
 * addition that would leave both bricks of a pair blamed is refused with EINVAL and changes nothing; counters are on
 * disk before the addition is answered. Additions to one file are made one after the other, so nothing comes between
 * looking and adding. Needs xattrop and fsync from its child. Nothing but these files is kept here: whatever would make
 * data or directories is refused, so that a mistake in a volume file does not make a brick of it.
 */
#include "core/mem.h"
#include "graph/translator.h"

#define PENDING_PREFIX "trusted.afr."
#define DIRTY_KEY      "trusted.afr.dirty"

struct thin_arbiter {
    struct fiber_mutex turn; /* blames come once per outage: one at a time for all files */
    uint64_t blames, refusals;
};

/* ---- counters ---- */

static bool is_pending_key(const char *key)
{
    return strncmp(key, PENDING_PREFIX, strlen(PENDING_PREFIX)) == 0 && strcmp(key, DIRTY_KEY) != 0;
}

static bool is_zero(const struct dict_value *v)
{
    for (size_t i = 0; i < v->size_bytes; i++) {
        if (v->bytes[i])
            return false;
    }
    return true;
}

static bool is_blamed_after(const struct dict_value *now, const struct dict_value *add)
{
    static const uint8_t none[4];

    for (size_t i = 0; i + 4 <= MAX(now ? now->size_bytes : 0, add ? add->size_bytes : 0); i += 4) {
        const uint8_t *a = now && i + 4 <= now->size_bytes ? now->bytes + i : none;
        const uint8_t *b = add && i + 4 <= add->size_bytes ? add->bytes + i : none;

        if (get_be32(a) + get_be32(b) != 0)
            return true;
    }
    return false;
}

/* How many bricks would be blamed after the addition. */
static unsigned blamed_after(const struct dict *now, const struct dict *add)
{
    const struct dict_value *v;
    const char *key;
    unsigned blamed = 0;
    size_t at = 0;

    while (dict_next(add, &at, &key, &v))
        blamed += is_pending_key(key) && is_blamed_after(dict_get(now, key), v);
    at = 0;
    while (dict_next(now, &at, &key, &v))
        blamed += is_pending_key(key) && !dict_has(add, key) && is_blamed_after(v, NULL);
    return blamed;
}

static bool adds_nothing(const struct dict *add)
{
    const struct dict_value *v;
    const char *key;
    size_t at = 0;

    while (dict_next(add, &at, &key, &v)) {
        if (!is_zero(v))
            return false;
    }
    return true;
}

/* ---- operations ---- */

/* A dict with the same keys as `like` and zeros: an xattrop with it tells the counters and changes nothing. */
static struct dict *zeros_like(const struct dict *like)
{
    static const uint8_t none[64];
    SCOPED(dict_unref) struct dict *zeros = dict_new();
    const struct dict_value *v;
    const char *key;
    size_t at = 0;

    while (zeros && dict_next(like, &at, &key, &v)) {
        if (v->size_bytes > sizeof(none) || dict_set_bin(zeros, key, none, v->size_bytes) < 0)
            return NULL;
    }
    return take(zeros);
}

/* All counters of the file, also those that the request does not name. */
static FIBER int look(struct translator *me, struct call *call, const struct request *q, struct dict **ret_now)
{
    SCOPED(dict_unref) struct dict *zeros = zeros_like(q->xattrs);
    SCOPED(dict_unref) struct dict *now = NULL;
    SCOPED(reply_free) struct reply *r = reply_new();
    int ret;

    if (!r || !zeros)
        return zeros ? -ENOMEM : -EINVAL;
    ret = child_getxattr(me, 0, call, q->inode, q->fd, NULL, r);
    if (ret < 0)
        return ret;
    now = r->xattrs ? dict_copy(r->xattrs) : dict_new();
    reply_done(r);
    if (!now)
        return -ENOMEM;
    ret = child_xattrop(me, 0, call, q->inode, q->fd, XATTROP_ADD32, zeros, NULL, r);
    if (ret >= 0 && r->xattrs)
        ret = dict_merge(now, r->xattrs);
    if (ret < 0)
        return ret;
    *ret_now = take(now);
    return 0;
}

static FIBER int check(struct translator *me, struct call *call, const struct request *q)
{
    struct thin_arbiter *s = me->state;
    SCOPED(dict_unref) struct dict *now = NULL;
    int r = look(me, call, q, &now);

    if (r < 0 || blamed_after(now, q->xattrs) < 2)
        return r;
    s->refusals++;
    TLOG(me, LOG_INFO, "both-blamed", "gfid=%s: the other brick of the pair is blamed already",
         GFID_TEXT(&q->inode->gfid));
    return -EINVAL;
}

static FIBER int add(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct thin_arbiter *s = me->state;
    const struct request sync = { .op = OP_FSYNC, .inode = q->inode, .fd = q->fd };
    int ret = check(me, call, q);

    if (ret >= 0)
        ret = child_call(me, 0, call, q, r);
    if (ret < 0)
        return ret;
    s->blames++;
    ret = child_call(me, 0, call, &sync, NULL);
    if (ret < 0)
        reply_done(r); /* it may be there, and is not on disk: whoever asked must not count on it */
    return ret;
}

static FIBER int thin_arbiter_xattrop(struct translator *me, struct call *call, const struct request *q,
                                      struct reply *r)
{
    struct thin_arbiter *s = me->state;
    int ret;

    if (!q->xattrs || adds_nothing(q->xattrs))
        return default_op(me, call, q, r);
    if (q->flags != XATTROP_ADD32)
        return -EINVAL;
    ret = fiber_mutex_lock(&s->turn, &call->scope);
    if (ret < 0)
        return ret;
    ret = add(me, call, q, r);
    fiber_mutex_unlock(&s->turn);
    return ret;
}

static bool is_pair_file(const struct request *q)
{
    return gfid_is_root(&q->parent->gfid) && is_pending_key(q->name);
}

static FIBER int thin_arbiter_make(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    if (!is_pair_file(q) || (q->op == OP_MKNOD && (q->mode & S_IFMT) != S_IFREG))
        return -EPERM;
    return default_op(me, call, q, r);
}

static FIBER int thin_arbiter_refuse(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    return -EPERM;
}

/* ---- life ---- */

static int thin_arbiter_init(struct translator *me, struct error *err)
{
    struct thin_arbiter *s = me->state;

    fiber_mutex_init(&s->turn);
    return 0;
}

static void thin_arbiter_dump(struct translator *me, struct dump *out)
{
    const struct thin_arbiter *s = me->state;

    dump_printf(out, "blames", "%llu", (unsigned long long)s->blames);
    dump_printf(out, "refusals", "%llu", (unsigned long long)s->refusals);
}

const struct translator_class thin_arbiter_class = {
    .type = "features/thin-arbiter",
    .state_size = sizeof(struct thin_arbiter),
    .children_min = 1,
    .children_max = 1,
    .init = thin_arbiter_init,
    .dump = thin_arbiter_dump,
    .ops = {
        [OP_XATTROP] = thin_arbiter_xattrop,
        [OP_MKNOD] = thin_arbiter_make,
        [OP_CREATE] = thin_arbiter_make,
        [OP_MKDIR] = thin_arbiter_refuse,
        [OP_SYMLINK] = thin_arbiter_refuse,
        [OP_LINK] = thin_arbiter_refuse,
        [OP_RENAME] = thin_arbiter_refuse,
        [OP_UNLINK] = thin_arbiter_refuse,
        [OP_WRITE] = thin_arbiter_refuse,
        [OP_TRUNCATE] = thin_arbiter_refuse,
        [OP_FALLOCATE] = thin_arbiter_refuse,
        [OP_COPY_RANGE] = thin_arbiter_refuse,
    },
};
