/* cluster/replicate/heal_data.c - contents of regular files: decide, make as long as the source, copy, sync, undo.
 *
 * Clients wait for two short holds of the lock of the whole file, and for one of a range at a time between them. A small
 * file is healed within the first hold: it is read, written, cut and synced in two messages, which takes no longer than
 * the sync of a client's own write would; option data-self-heal-algorithm diff has it compared like others. The arbiter holds the locks and gets no data.
 *
 * Nothing is kept of a heal that was interrupted: the next one compares again from the beginning. A note "equal up to here,
 * while the counters are these" could not be believed: counters that healers (GlusterFS's, who do not know the note) took
 * off and clients raised again to the same value look as if nothing had happened. Comparing costs reading on both sides
 * and 4 KiB of sums for 16 MiB; what was copied before is not copied again.
 */
#include "cluster/replicate/heal_copy.h"
#include "core/mem.h"

#define SMALL_BYTES (128u << 10)
#define TINY_BYTES  4096u /* no holes inside; some file systems keep so little without a block */

/* ---- beginning: with the lock of the whole file ---- */

static const struct iatt *source_stat(const struct heal *h)
{
    return &h->round.answers->stat[h->round.judged.source];
}

static void copy_init(struct heal_copy *c, struct heal *h, const struct heal_lock *healers)
{
    const struct replicate *s = replicate_of(h->me);
    const struct iatt *like = source_stat(h);

    *c = (struct heal_copy) {
        .h = h,
        .healers = healers,
        .sinks = h->round.judged.sinks & ~h->set.arbiter,
        .size_bytes = like->size,
        .is_sparse = like->blocks * 512 < like->size,
        .takes_all = s->data_heal_algorithm == HEAL_ALGORITHM_FULL,
        .batch_bytes = BATCH_BYTES_FIRST,
    };
    for_each_child(i, c->sinks)
    {
        const struct iatt *have = &h->round.answers->stat[i];

        if (have->size == 0 && have->blocks == 0)
            c->empty |= bit(i);
    }
    fiber_mutex_init(&c->copying);
    env_random(h->me->env, c->key, sizeof(c->key));
}

static bool is_small(const struct heal_copy *c)
{
    if (replicate_of(c->h->me)->data_heal_algorithm == HEAL_ALGORITHM_DIFF)
        return c->size_bytes == 0;
    return c->size_bytes <= SMALL_BYTES && (!c->is_sparse || c->size_bytes <= TINY_BYTES);
}

/* Runs a fan that was filled; sinks that failed leave. */
static FIBER void change_sinks(struct heal_copy *c, struct fan *fan)
{
    fan_run(fan);
    for_each_child(i, fan->targets)
    {
        if (fan->list[i].ret < 0)
            heal_copy_drop(c, i, fan->list[i].ret);
    }
}

/* What is behind the end of the source was cut off; what is before it reads as zeros until it is copied. */
static FIBER int fit_sizes(struct heal_copy *c)
{
    const struct request q = { .op = OP_TRUNCATE, .inode = c->h->inode, .offset = c->size_bytes };
    SCOPED(fan_free) struct fan *fan = NULL;
    uint32_t other = 0;

    for_each_child(i, c->sinks) other |= c->h->round.answers->stat[i].size != c->size_bytes ? bit(i) : 0;
    if (!other)
        return 0;
    fan = fan_new(c->h->me, &c->h->call, other, &q);
    if (!fan)
        return -ENOMEM;
    change_sinks(c, fan);
    return 0;
}

/* ---- small files ---- */

static int fill_small(const struct heal_copy *c, struct buf *data, struct fan *fan)
{
    struct heal *h = c->h;

    if (fan_steps(fan, 3) < 0)
        return -ENOMEM;
    for_each_child(i, fan->targets)
    {
        struct fan_child *f = &fan->list[i];
        uint32_t n = 0;

        if (data->size)
            f->steps[n++] = (struct request) { .op = OP_WRITE, .inode = h->inode, .data = data };
        if (h->round.answers->stat[i].size > c->size_bytes || !n)
            f->steps[n++] = (struct request) { .op = OP_TRUNCATE, .inode = h->inode, .offset = c->size_bytes };
        if (replicate_of(h->me)->ensure_durability)
            f->steps[n++] = (struct request) { .op = OP_FSYNC, .inode = h->inode };
        f->q.step_count = n;
    }
    return 0;
}

/* A write that was cut short is a full disk. */
static void find_short(const struct fan *fan, size_t size)
{
    for_each_child(i, fan->targets)
    {
        struct fan_child *f = &fan->list[i];

        if (f->ret >= 0 && size && f->r.steps && f->r.steps[0].ret < (int)size)
            f->ret = -ENOSPC;
    }
}

static FIBER int copy_small(struct heal_copy *c)
{
    struct heal *h = c->h;
    const struct request nothing = { 0 };
    SCOPED(reply_free) struct reply *r = reply_new();
    SCOPED(fan_free) struct fan *fan = NULL;
    SCOPED(buf_unref) struct buf *data = NULL;
    int result = 0;

    if (!r)
        return -ENOMEM;
    if (c->size_bytes)
        result = child_read(h->me, h->round.judged.source, &h->call, h->inode, NULL, c->size_bytes, 0, r);
    if (result >= 0 && (uint64_t)result != c->size_bytes)
        result = -EIO; /* nobody else can have cut it */
    heal_note(h, h->round.judged.source, result);
    if (result < 0)
        return result;
    data = r->data ? buf_ref(r->data) : buf_new(0);
    fan = fan_new(h->me, &h->call, c->sinks, &nothing);
    if (!data || !fan || fill_small(c, data, fan) < 0)
        return -ENOMEM;
    fan_run(fan);
    find_short(fan, data->size);
    for_each_child(i, fan->targets)
    {
        if (fan->list[i].ret < 0)
            heal_copy_drop(c, i, fan->list[i].ret);
        else
            heal_class(h)->bytes_copied += data->size;
    }
    return 0;
}

/* Mostly a mark is left on one copy only because a message was lost, and the copies are equal. Those that are, and that
 * nobody blames, need no blame to be healed under: until it is taken off, a client that reaches the source no more would
 * have no good copy, and one that cannot read it would take the other for good. */
static FIBER int spare_equal(struct heal_copy *c)
{
    struct heal_judgement *judged = &c->h->round.judged;
    uint32_t unblamed = 0;

    for_each_child(i, c->sinks & ~judged->accused)
    {
        if (c->h->round.answers->stat[i].size == c->size_bytes)
            unblamed |= bit(i);
    }
    if (!unblamed || !is_small(c))
        return 0;

    const struct request q = { .op = OP_READ, .inode = c->h->inode, .size = c->size_bytes };
    SCOPED(fan_free) struct fan *fan = fan_new(c->h->me, &c->h->call, unblamed | bit(judged->source), &q);
    const struct fan_child *source;

    if (!fan)
        return -ENOMEM;
    fan_run(fan);
    source = &fan->list[judged->source];
    for_each_child(i, unblamed)
    {
        const struct fan_child *f = &fan->list[i];

        if (source->ret < 0 || f->ret != source->ret || (uint64_t)f->ret != c->size_bytes)
            continue; /* what cannot be read now is said when it is copied */
        if (f->ret == 0 || memcmp(f->r.data->data, source->r.data->data, (size_t)f->ret) == 0) {
            c->sinks &= ~bit(i);
            judged->sinks &= ~bit(i);
            judged->sources |= bit(i);
        }
    }
    return 0;
}

/* ---- the end ---- */

/* Sinks that are synced stay; so must sources be whose mark goes: whoever made it did not come to syncing them. */
static FIBER int sync_copies(struct heal_copy *c, bool are_sinks_synced)
{
    struct heal_judgement *judged = &c->h->round.judged;
    uint32_t marked = judged->sources & judged->dirty & ~c->h->set.arbiter;
    uint32_t wanted = marked | (are_sinks_synced ? 0 : c->sinks);
    uint32_t synced = wanted ? heal_sync(c->h, NULL, wanted) : 0;

    c->sinks &= synced | ~wanted;
    judged->sources &= synced | ~wanted;
    if (judged->sources & bit(judged->source))
        return 0;
    return c->h->report->child_error[judged->source] ? c->h->report->child_error[judged->source] : -EIO;
}

/* With the lock of the whole file in hand. */
static FIBER int finish(struct heal_copy *c, uint32_t children)
{
    struct heal *h = c->h;
    SCOPED(reply_free) struct reply *r = reply_new();
    unsigned source = h->round.judged.source;

    if (!r)
        return -ENOMEM;
    if (!(children & bit(source)))
        return -ENOTCONN;
    h->round.healed = (c->sinks | (h->round.judged.sinks & h->set.arbiter)) & children;
    if (h->round.healed && child_stat(h->me, source, &h->call, h->inode, NULL, NULL, r) >= 0)
        heal_times(h, h->round.healed, &r->stat);
    return heal_undo(h, children);
}

/* Between two holds of the lock of the whole file. */
static FIBER int copy_large(struct heal_copy *c, struct heal_lock *whole)
{
    struct heal *h = c->h;
    int r = fit_sizes(c);

    heal_unlock(h, whole);
    if (r == 0)
        r = heal_copy_file(c);
    if (r == 0)
        r = sync_copies(c, false);
    if (r == 0)
        r = heal_lock(h, whole, heal_copy_present(c));
    return r;
}

static FIBER int make_equal(struct heal *h, const struct heal_lock *healers, struct heal_lock *whole)
{
    struct heal_copy c;
    int r;

    copy_init(&c, h, healers);
    r = spare_equal(&c);
    if (r == 0)
        r = heal_blame_sinks(h, h->round.judged.taking_part);
    if (r < 0)
        return r;
    copy_init(&c, h, healers); /* who takes part has changed, perhaps the source, too */
    if (c.sinks && !is_small(&c)) {
        r = copy_large(&c, whole);
    } else {
        if (c.sinks)
            r = copy_small(&c);
        if (r == 0)
            r = sync_copies(&c, true);
    }
    return r < 0 ? r : finish(&c, heal_holders(h, whole) & heal_copy_present(&c));
}

FIBER int heal_data(struct heal *h)
{
    struct heal_lock healers = { .kind = HEAL_LOCK_HEAL_DATA, .inode = h->inode };
    struct heal_lock whole = { .kind = HEAL_LOCK_DATA, .inode = h->inode };
    int r;

    heal_class_begin(h, CHANGE_DATA);
    r = heal_lock(h, &healers, heal_present(h));
    if (r == 0)
        r = heal_lock(h, &whole, heal_holders(h, &healers));
    if (r == 0)
        r = heal_ask(h, h->inode, heal_holders(h, &whole), h->round.answers);
    if (r == 0) {
        uint32_t taking_part = heal_holders(h, &whole) & heal_holders(h, &healers);

        heal_judge_data(&h->set, h->round.answers, taking_part, &h->how->choice, &h->round.judged);
        if (heal_decided(h))
            r = make_equal(h, &healers, &whole);
    }
    heal_unlock(h, &whole);
    heal_unlock(h, &healers);
    return heal_class_end(h, r);
}
