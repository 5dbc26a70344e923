/* cluster/replicate/heal_copy.c - makes sinks equal to the source in some pieces, with the lock of their range in hand.
 *
 * One hold of the lock: look whether the decision still stands, read from the source, write to the sinks, unlock. How much
 * goes into one is adapted so that it takes HOLD_TARGET_MS: a client that waits for the lock meanwhile must not notice. */
#include "cluster/replicate/heal_copy.h"
#include "core/mem.h"
#include <linux/falloc.h>

#define BATCH_PIECES 60         /* a compound has 64 steps at most */
#define READ_BYTES   (1u << 20) /* what every brick reads in one go */

uint32_t heal_copy_present(const struct heal_copy *c)
{
    return heal_present(c->h) & heal_holders(c->h, c->healers) & c->h->round.judged.taking_part;
}

void heal_copy_drop(struct heal_copy *c, unsigned child, int result)
{
    heal_note(c->h, child, result);
    c->sinks &= ~bit(child);
}

/* ---- the lock of a range ---- */

struct hold {
    struct heal_copy *c;
    struct heal_lock lock;
    uint64_t since_ns;
};

/* Locks [offset, end) and looks whether the source is still good; sinks that are gone are dropped. */
static FIBER int hold_begin(struct hold *hold, uint64_t offset, uint64_t end, uint64_t bytes)
{
    struct heal_copy *c = hold->c;
    uint32_t good;
    int r = heal_pace(c->h, bytes, 0);

    if (r == 0 && c->pause_ms)
        r = fiber_sleep_ms(&c->h->caller->scope, c->pause_ms);
    if (r < 0)
        return r;
    hold->lock =
        (struct heal_lock) { .kind = HEAL_LOCK_DATA, .inode = c->h->inode, .offset = offset, .length = end - offset };
    r = heal_lock(c->h, &hold->lock, heal_copy_present(c));
    if (r < 0)
        return r;
    hold->since_ns = env_now_ns(c->h->me->env);
    good = heal_still_good(c->h, heal_holders(c->h, &hold->lock));
    c->sinks &= good;
    if (good)
        return 0;
    heal_unlock(c->h, &hold->lock);
    return -EAGAIN;
}

/* Clients at work on the bricks wait longer for everything while we copy, so the time it takes tells how much it is. */
static uint64_t pause_after(const struct replicate *s, uint64_t now_ns, uint64_t took_ms)
{
    if (now_ns >= s->clients_busy_ns)
        return 0;
    return MIN(took_ms * (100 - s->heal_share) / s->heal_share, (uint64_t)PAUSE_MAX_MS);
}

static FIBER void hold_end(struct hold *hold, bool was_full)
{
    struct heal_copy *c = hold->c;
    uint64_t took_ms = (env_now_ns(c->h->me->env) - hold->since_ns) / 1000000;

    heal_unlock(c->h, &hold->lock);
    c->pause_ms = pause_after(replicate_of(c->h->me), env_now_ns(c->h->me->env), took_ms);
    if (took_ms > HOLD_TARGET_MS)
        c->batch_bytes = MAX(c->batch_bytes / 2, BATCH_BYTES_MIN);
    else if (was_full && took_ms < HOLD_TARGET_MS / 3)
        c->batch_bytes = MIN(c->batch_bytes * 2, BATCH_BYTES_MAX);
}

/* ---- a batch ---- */

struct batch {
    struct piece piece[BATCH_PIECES];
    struct buf *data[BATCH_PIECES]; /* PIECE_COPY, once read; what the source has no more is NULL */
    uint32_t count;
    uint64_t bytes;
    uint32_t taken; /* pieces of the list that are wholly in this or an earlier batch */
    uint64_t at;    /* bytes of the next piece that are */
};

static void batch_drop_data(struct batch *b)
{
    for (uint32_t i = 0; i < b->count; i++)
        buf_unref(take(b->data[i]));
}

static void batch_free(struct batch *b)
{
    if (!b)
        return;
    batch_drop_data(b);
    mem_free(b);
}
DEFINE_SCOPED(batch_free, struct batch)

/* The next pieces of one sort: copies, or what needs no data. False: none is left. */
static bool batch_next(struct batch *b, const struct pieces *p, uint32_t limit_bytes)
{
    bool is_copy = b->taken < p->count && p->list[b->taken].kind == PIECE_COPY;

    batch_drop_data(b);
    b->count = 0;
    b->bytes = 0;
    while (b->taken < p->count && b->count < BATCH_PIECES && b->bytes < limit_bytes) {
        const struct piece *from = &p->list[b->taken];
        uint64_t left = from->size - b->at;
        uint64_t room = MIN(limit_bytes - b->bytes, (uint64_t)READ_BYTES);
        uint64_t size = is_copy ? MIN(left, room) : left;

        if ((from->kind == PIECE_COPY) != is_copy)
            break;
        b->piece[b->count++] = (struct piece) { from->offset + b->at, size, from->kind, from->sinks };
        b->bytes += is_copy ? size : 0;
        b->at += size;
        if (size == left) {
            b->taken++;
            b->at = 0;
        }
    }
    return b->count > 0;
}

static uint64_t batch_end(const struct batch *b)
{
    return b->piece[b->count - 1].offset + b->piece[b->count - 1].size;
}

/* Bytes of a piece as the source has them now. 0, or -EIO: it gave less than it has. */
static int take_data(struct batch *b, uint32_t n, const struct reply *r)
{
    uint64_t got = r->data ? r->data->size : 0;

    if (got < b->piece[n].size && b->piece[n].offset + got < r->stat.size)
        return -EIO;
    b->data[n] = got ? buf_ref(r->data) : NULL;
    return 0;
}

/* Reads what is to be copied. */
static FIBER int batch_read(struct heal_copy *c, struct batch *b)
{
    SCOPED_FREE struct request *steps = mem_array(b->count, sizeof(*steps));
    struct request q = { .op = OP_COMPOUND, .steps = steps, .step_count = b->count };
    SCOPED(reply_free) struct reply *r = reply_new();

    if (!steps || !r)
        return -ENOMEM;
    for (uint32_t i = 0; i < b->count; i++)
        steps[i] = (struct request) {
            .op = OP_READ, .inode = c->h->inode, .offset = b->piece[i].offset, .size = b->piece[i].size
        };
    int result = child_call(c->h->me, c->h->round.judged.source, &c->h->call, &q, r);
    for (uint32_t i = 0; i < b->count && result >= 0; i++)
        result = take_data(b, i, &r->steps[i]);
    heal_note(c->h, c->h->round.judged.source, result);
    return result < 0 ? -EREMOTEIO : 0;
}

/* ---- writing ---- */

static struct buf *zeros(uint64_t size_bytes)
{
    struct buf *b = buf_new((size_t)size_bytes);

    if (b)
        memset(b->data, 0, b->size);
    return b;
}

static bool is_all_zero(const struct buf *b)
{
    return b->data[0] == 0 && memcmp(b->data, b->data + 1, b->size - 1) == 0;
}

/* The step that makes the piece on this child; false: nothing is to be done there. */
static bool fill_step(const struct heal_copy *c, unsigned child, const struct batch *b, uint32_t n,
                      struct request *step)
{
    const struct piece *piece = &b->piece[n];
    bool is_hole = piece->kind == PIECE_HOLE;

    if (!(piece->sinks & bit(child)) || (piece->kind == PIECE_COPY && !b->data[n]))
        return false;
    *step = (struct request) { .op = OP_WRITE, .inode = c->h->inode, .offset = piece->offset, .data = b->data[n] };
    /* Zeros of a sparse file come only from bricks that cannot tell what is hole. */
    is_hole = is_hole || (c->is_sparse && b->data[n] && is_all_zero(b->data[n]));
    if ((piece->kind == PIECE_COPY && !is_hole) || (c->cannot_punch & bit(child)))
        return true;
    *step = (struct request) { .op = OP_FALLOCATE,
                               .inode = c->h->inode,
                               .offset = piece->offset,
                               .size = b->data[n] ? b->data[n]->size : piece->size,
                               .flags = is_hole ? FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE : FALLOC_FL_ZERO_RANGE };
    return true;
}

static int fill_fan(const struct heal_copy *c, const struct batch *b, struct fan *fan)
{
    if (fan_steps(fan, b->count) < 0)
        return -ENOMEM;
    for_each_child(i, fan->targets)
    {
        struct fan_child *f = &fan->list[i];

        f->q.step_count = 0;
        for (uint32_t n = 0; n < b->count; n++)
            f->q.step_count += fill_step(c, i, b, n, &f->steps[f->q.step_count]);
    }
    return 0;
}

/* A write that was cut short is a full disk. */
static int result_on(const struct fan *fan, unsigned child)
{
    const struct fan_child *f = &fan->list[child];

    if (f->ret < 0)
        return f->ret;
    for (uint32_t n = 0; n < f->q.step_count; n++) {
        if (f->steps[n].op == OP_WRITE && f->r.steps && f->r.steps[n].ret < (int)f->steps[n].data->size)
            return -ENOSPC;
    }
    return 0;
}

static bool failed_to_punch(const struct fan *fan, unsigned child)
{
    const struct fan_child *f = &fan->list[child];

    return f->ret == -EOPNOTSUPP && f->r.step_count > 0 && f->steps[f->r.step_count - 1].op == OP_FALLOCATE;
}

static void account(struct heal_copy *c, const struct fan *fan, unsigned child)
{
    const struct fan_child *f = &fan->list[child];

    for (uint32_t n = 0; n < f->q.step_count; n++)
        heal_class(c->h)->bytes_copied += f->steps[n].op == OP_WRITE ? f->steps[n].data->size : 0;
}

static uint32_t sinks_of(const struct batch *b)
{
    uint32_t sinks = 0;

    for (uint32_t i = 0; i < b->count; i++)
        sinks |= b->piece[i].sinks;
    return sinks;
}

/* Writes to `sinks`; returns those that cannot make holes and have to get zeros instead. */
static FIBER int write_to(struct heal_copy *c, const struct batch *b, uint32_t sinks, uint32_t *ret_again)
{
    const struct request nothing = { 0 };
    SCOPED(fan_free) struct fan *fan = fan_new(c->h->me, &c->h->call, sinks, &nothing);

    *ret_again = 0;
    if (!fan || fill_fan(c, b, fan) < 0)
        return -ENOMEM;
    fan_run(fan);
    for_each_child(i, sinks)
    {
        int r = result_on(fan, i);

        if (failed_to_punch(fan, i))
            *ret_again |= bit(i);
        else if (r < 0)
            heal_copy_drop(c, i, r);
        else
            account(c, fan, i);
    }
    return 0;
}

/* Gives pieces without data their zeros, for children that cannot punch. */
static int fill_zeros(struct batch *b)
{
    for (uint32_t i = 0; i < b->count; i++) {
        if (b->piece[i].kind == PIECE_COPY || b->data[i])
            continue;
        b->data[i] = zeros(b->piece[i].size);
        if (!b->data[i])
            return -ENOMEM;
    }
    return 0;
}

static FIBER int batch_write(struct heal_copy *c, struct batch *b, const struct hold *hold)
{
    uint32_t sinks = c->sinks & sinks_of(b) & heal_holders(c->h, &hold->lock), again = 0;
    int r = 0;

    if (sinks & c->cannot_punch)
        r = fill_zeros(b);
    if (r == 0 && sinks)
        r = write_to(c, b, sinks, &again);
    if (r < 0 || !again)
        return r;
    c->cannot_punch |= again;
    r = fill_zeros(b);
    return r < 0 ? r : write_to(c, b, again, &again);
}

/* ---- pieces without data ---- */

/* With the lock in hand: is the source still hole or zero there? What is not becomes a copy. */
static FIBER int ask_again(struct heal_copy *c, const struct batch *b, struct pieces *ret_blank,
                           struct pieces *ret_copies)
{
    SCOPED_FREE struct block_question *k = NEW(struct block_question);
    SCOPED(reply_free) struct reply *r = reply_new();
    struct block_answer a;
    int result = -ENOMEM;

    if (!k || !r)
        return -ENOMEM;
    memcpy(k->key, c->key, sizeof(k->key));
    k->block_bytes = FINE_BYTES;
    for (uint32_t i = 0; i < b->count; i++)
        k->ranges[k->range_count++] = (struct block_range) { b->piece[i].offset, (uint32_t)b->piece[i].size };
    SCOPED(buf_unref) struct buf *data = block_question_put(k);
    const struct request q = { .op = OP_BLOCKSUMS, .inode = c->h->inode, .data = data };
    if (data)
        result = child_call(c->h->me, c->h->round.judged.source, &c->h->call, &q, r);
    if (result >= 0)
        result = block_answer_get(r->data, k, &a) < 0 ? -EIO : 0;
    heal_note(c->h, c->h->round.judged.source, result);
    return result < 0 ? -EREMOTEIO : pieces_blank(b->piece, b->count, FINE_BYTES, &a, ret_blank, ret_copies);
}

static FIBER int blank_held(struct heal_copy *c, const struct batch *asked, const struct hold *hold,
                            struct pieces *copies)
{
    SCOPED_PIECES struct pieces blank = { 0 };
    SCOPED(batch_free) struct batch *b = NEW(struct batch);
    int r = b ? ask_again(c, asked, &blank, copies) : -ENOMEM;

    while (r == 0 && batch_next(b, &blank, BATCH_BYTES_MAX))
        r = batch_write(c, b, hold);
    return r;
}

/* ---- all of it ---- */

/* One hold of the lock. Adds to `copies` what turned out to need data after all. */
static FIBER int one_hold(struct heal_copy *c, struct batch *b, struct pieces *copies)
{
    struct hold hold = { .c = c };
    bool is_copy = b->piece[0].kind == PIECE_COPY;
    int r = hold_begin(&hold, b->piece[0].offset, batch_end(b), b->bytes);

    if (r < 0)
        return r;
    if (!is_copy && !c->lacks_program)
        r = blank_held(c, b, &hold, copies);
    else
        r = batch_read(c, b);
    if (r == 0 && is_copy)
        r = batch_write(c, b, &hold);
    hold_end(&hold, b->bytes >= c->batch_bytes);
    return r;
}

static FIBER int copy_list(struct heal_copy *c, const struct pieces *p, struct pieces *copies)
{
    SCOPED(batch_free) struct batch *b = NEW(struct batch);
    int r = b ? 0 : -ENOMEM;

    while (r == 0 && c->sinks && batch_next(b, p, c->batch_bytes))
        r = one_hold(c, b, copies);
    return r;
}

FIBER int heal_copy_pieces(struct heal_copy *c, const struct pieces *p)
{
    SCOPED_PIECES struct pieces copies = { 0 };
    int r = copy_list(c, p, &copies);

    if (r == 0 && copies.count)
        r = copy_list(c, &copies, &copies);
    return r;
}
