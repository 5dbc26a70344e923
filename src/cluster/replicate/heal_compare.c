/* cluster/replicate/heal_compare.c - which pieces of a window differ. Our bricks are asked for the sums of all its blocks at
 * once, and then for finer blocks where some differ; others for the sum of the window as a whole. */
#include "cluster/replicate/heal_copy.h"
#include "core/mem.h"

static FIBER struct fan *ask_copies(struct heal_copy *c, const struct request *q, uint32_t children)
{
    struct fan *fan = fan_new(c->h->me, &c->h->call, children, q);

    if (fan)
        fan_run(fan);
    return fan;
}

/* Drops sinks that failed. 0, or -EREMOTEIO: the source did. */
static int look_at_failures(struct heal_copy *c, const struct fan *fan)
{
    unsigned source = c->h->round.judged.source;

    for_each_child(i, fan->targets)
    {
        if (fan->list[i].ret < 0 && i != source)
            heal_copy_drop(c, i, fan->list[i].ret);
    }
    if (fan->list[source].ret >= 0)
        return 0;
    heal_note(c->h, source, fan->list[source].ret);
    return -EREMOTEIO;
}

static bool lacks_program(const struct fan *fan)
{
    return fan_failed_with(fan, -EOPNOTSUPP) | fan_failed_with(fan, -ENOSYS);
}

/* ---- our bricks ---- */

/* One question to the source and the sinks that are worth asking: pieces that differ. */
static FIBER int compare_blocks(struct heal_copy *c, const struct block_question *k, struct pieces *p,
                                uint64_t *ret_next)
{
    unsigned source = c->h->round.judged.source;
    uint32_t asked = (c->sinks & ~c->empty) | bit(source);
    SCOPED(buf_unref) struct buf *data = block_question_put(k);
    const struct request q = { .op = OP_BLOCKSUMS, .inode = c->h->inode, .data = data };
    SCOPED(fan_free) struct fan *fan = data ? ask_copies(c, &q, asked & heal_copy_present(c)) : NULL;
    const uint8_t *sums[CHILDREN_MAX] = { NULL };
    struct block_answer a;

    if (!fan)
        return -ENOMEM;
    if (!(fan->targets & bit(source)))
        return -EREMOTEIO;
    if (lacks_program(fan))
        return -EOPNOTSUPP;
    for_each_child(i, fan_ok(fan))
    {
        if (block_answer_get(fan->list[i].r.data, k, &a) < 0) {
            fan->list[i].ret = -EIO;
            continue;
        }
        sums[i] = a.sums;
        if (dict_has(fan->list[i].r.xdata, CLIENTS_BUSY_KEY))
            replicate_of(c->h->me)->clients_busy_ns = env_deadline_ms(c->h->me->env, CLIENTS_BUSY_FOR_MS);
        *ret_next = MIN(*ret_next, a.next_data);
    }
    int r = look_at_failures(c, fan);
    if (r < 0)
        return r;
    heal_class(c->h)->bytes_compared +=
        (uint64_t)mask_count(fan_ok(fan) & c->sinks) * block_question_count(k) * k->block_bytes;
    return pieces_compare(p, k, sums[source], sums, c->sinks, c->takes_all);
}

static FIBER int compare_closer(struct heal_copy *c, struct block_question *k, struct pieces *p)
{
    uint64_t next = UINT64_MAX;
    int r = 0;

    if (!c->takes_all && pieces_closer(p, c->empty, FINE_BYTES, k) > 0)
        r = compare_blocks(c, k, p, &next);
    pieces_sort(p);
    return r;
}

static FIBER int compare_with_program(struct heal_copy *c, uint64_t offset, uint32_t size_bytes, struct pieces *p,
                                      uint64_t *ret_next)
{
    SCOPED_FREE struct block_question *k = NEW(struct block_question);
    int r;

    if (!k)
        return -ENOMEM;
    memcpy(k->key, c->key, sizeof(k->key));
    k->block_bytes = COARSE_BYTES;
    k->range_count = 1;
    k->ranges[0] = (struct block_range) { .offset = offset, .size = size_bytes };
    r = compare_blocks(c, k, p, ret_next);
    return r < 0 ? r : compare_closer(c, k, p);
}

/* ---- GlusterFS's bricks ---- */

static bool is_same(const struct reply *a, const struct reply *b)
{
    return a->weak_checksum == b->weak_checksum &&
           memcmp(a->strong_checksum, b->strong_checksum, sizeof(a->strong_checksum)) == 0;
}

static FIBER int compare_range(struct heal_copy *c, uint64_t offset, uint32_t size_bytes, struct pieces *p)
{
    unsigned source = c->h->round.judged.source;
    const struct request q = { .op = OP_RCHECKSUM, .inode = c->h->inode, .offset = offset, .size = size_bytes };
    uint32_t asked = c->sinks & ~c->empty & heal_copy_present(c), differing = c->sinks & c->empty;
    SCOPED(fan_free) struct fan *fan = NULL;

    if (c->takes_all || !asked)
        return pieces_add(p, offset, size_bytes, PIECE_COPY, c->sinks);
    if (!(heal_copy_present(c) & bit(source)))
        return -EREMOTEIO;
    fan = ask_copies(c, &q, asked | bit(source));
    if (!fan)
        return -ENOMEM;
    int r = look_at_failures(c, fan);
    if (r < 0)
        return r;
    for_each_child(i, fan_ok(fan) & c->sinks)
    {
        heal_class(c->h)->bytes_compared += size_bytes;
        if (!is_same(&fan->list[i].r, &fan->list[source].r))
            differing |= bit(i);
    }
    return differing ? pieces_add(p, offset, size_bytes, PIECE_COPY, differing) : 0;
}

static FIBER int compare_ranges(struct heal_copy *c, uint64_t offset, uint32_t size_bytes, struct pieces *p)
{
    uint32_t window = MIN(replicate_of(c->h->me)->data_heal_window * GLUSTER_BYTES, WINDOW_BYTES);
    uint64_t end = MIN(offset + size_bytes, c->size_bytes);
    int r = 0;

    if (c->is_sparse)
        window = GLUSTER_BYTES;
    for (uint64_t at = offset; at < end && r == 0; at += window)
        r = compare_range(c, at, (uint32_t)MIN(end - at, (uint64_t)window), p);
    return r;
}

/* ---- any ---- */

FIBER int heal_compare(struct heal_copy *c, uint64_t offset, uint32_t size_bytes, struct pieces *p, uint64_t *ret_next)
{
    int r = -EOPNOTSUPP;

    *ret_next = UINT64_MAX;
    if (!c->lacks_program)
        r = compare_with_program(c, offset, size_bytes, p, ret_next);
    if (r == -EOPNOTSUPP) {
        c->lacks_program = true;
        pieces_done(p);
        *ret_next = offset + size_bytes;
        r = compare_ranges(c, offset, size_bytes, p);
    }
    return r;
}
