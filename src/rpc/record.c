#include "rpc/record.h"

/* Read ahead after a large message: the head of the next one. */
#define LARGE_AHEAD_BYTES 1024

void record_done(struct record *m)
{
    buf_unref(m->head);
    buf_unref(m->data);
    *m = (struct record) { 0 };
}

int record_reader_init(struct record_reader *r, size_t max_bytes, record_peek_fn peek, void *arg)
{
    *r = (struct record_reader) { .max_bytes = max_bytes, .peek = peek, .peek_arg = arg };
    r->chunk = buf_new(RECORD_CHUNK_BYTES);
    return r->chunk ? 0 : -ENOMEM;
}

void record_reader_done(struct record_reader *r)
{
    buf_unref(r->chunk);
    buf_unref(r->joined);
    record_done(&r->large);
    *r = (struct record_reader) { 0 };
}

/* At least `need` contiguous bytes of chunk from start on. Windows handed out keep the old chunk alive. */
static int make_room(struct record_reader *r, size_t need)
{
    size_t have = r->end - r->start;

    if (r->chunk->refs == 1 && have == 0)
        r->start = r->end = 0;
    if (r->chunk->capacity - r->start >= need)
        return 0;
    if (r->chunk->refs == 1 && r->chunk->capacity >= need) {
        memmove(r->chunk->data, r->chunk->data + r->start, have);
    } else {
        struct buf *fresh = buf_new(MAX(need, (size_t)RECORD_CHUNK_BYTES));
        if (!fresh)
            return -ENOMEM;
        memcpy(fresh->data, r->chunk->data + r->start, have);
        buf_unref(r->chunk);
        r->chunk = fresh;
    }
    r->start = 0;
    r->end = have;
    return 0;
}

int record_reader_space(struct record_reader *r, struct iovec iov[static 2])
{
    int count = 0;

    if (r->filling) {
        iov[count++] = (struct iovec) { r->filling->data + r->filled, r->filling->size - r->filled };
    }
    int error = make_room(r, r->end - r->start + LARGE_AHEAD_BYTES);
    if (error < 0)
        return error;
    size_t room = r->chunk->capacity - r->end;
    if (r->filling || (r->expect_large && r->start == r->end))
        room = LARGE_AHEAD_BYTES;
    iov[count++] = (struct iovec) { r->chunk->data + r->end, room };
    return count;
}

void record_reader_got(struct record_reader *r, size_t n)
{
    if (r->filling) {
        size_t part = MIN(n, r->filling->size - r->filled);
        r->filled += part;
        n -= part;
    }
    assert(n <= r->chunk->capacity - r->end);
    r->end += n;
}

/* The bytes of the large message that are in chunk already; the rest will be read in place. */
static int start_large(struct record_reader *r, size_t size_bytes)
{
    struct buf *b = buf_new(size_bytes);
    if (!b)
        return -ENOMEM;
    size_t have = MIN(r->end - r->start, size_bytes);
    memcpy(b->data, r->chunk->data + r->start, have);
    r->start += have;
    r->filling = b;
    r->filled = have;
    r->expect_large = true;
    return 0;
}

/* A message of `size` bytes is not complete in chunk, where its first `have` bytes begin after its mark. */
static int begin_large(struct record_reader *r, size_t size, size_t have)
{
    const uint8_t *head = r->chunk->data + r->start + RPC_MARK_BYTES;
    ssize_t n = r->peek ? r->peek(r->peek_arg, head, have) : 0;

    if (n == -EAGAIN || (n > 0 && (size_t)n < size && (size_t)n > have)) {
        size_t need = n > 0 ? (size_t)n : have + LARGE_AHEAD_BYTES;
        if (need <= RECORD_LARGE_BYTES)
            return make_room(r, RPC_MARK_BYTES + need);
        n = 0; /* a dict of unusual size: the message as a whole */
    }
    if (n < 0)
        return (int)n;
    r->start += RPC_MARK_BYTES;
    if (n == 0 || (size_t)n >= size) {
        int error = start_large(r, size);
        r->large.head = r->filling;
        return error;
    }
    r->large.head = buf_slice(r->chunk, r->start, (size_t)n);
    if (!r->large.head)
        return -ENOMEM;
    r->start += (size_t)n;
    int error = start_large(r, size - (size_t)n);
    r->large.data = r->filling;
    return error;
}

/* Moves what is there of the present fragment to the message that is being joined. */
static int join_fragment(struct record_reader *r)
{
    size_t n = MIN(r->end - r->start, r->fragment_left);
    struct buf *b = r->joined;

    if (b->capacity - b->size < n) {
        struct buf *bigger = buf_new(MIN(r->max_bytes, 2 * b->capacity + n));
        if (!bigger)
            return -ENOMEM;
        memcpy(bigger->data, b->data, b->size);
        bigger->size = b->size;
        buf_unref(b);
        r->joined = b = bigger;
    }
    memcpy(b->data + b->size, r->chunk->data + r->start, n);
    b->size += n;
    r->start += n;
    r->fragment_left -= n;
    return 0;
}

static int begin_fragment(struct record_reader *r, uint32_t mark)
{
    size_t size = mark & ~RPC_MARK_LAST;

    if (!r->joined) {
        r->joined = buf_new(4096);
        if (!r->joined)
            return -ENOMEM;
        r->joined->size = 0;
        r->fragment_count = 0;
    }
    if (size > r->max_bytes - r->joined->size || ++r->fragment_count > RECORD_FRAGMENTS_MAX)
        return -EMSGSIZE;
    r->fragment_left = size;
    r->fragment_is_last = mark & RPC_MARK_LAST;
    r->start += RPC_MARK_BYTES;
    return 0;
}

/* One step: 1 message, 0 more bytes needed, -EAGAIN go on, else an error. */
static int step(struct record_reader *r, struct record *ret_record)
{
    if (r->filling) {
        if (r->filled < r->filling->size)
            return 0;
        r->filling = NULL;
        *ret_record = r->large;
        r->large = (struct record) { 0 };
        return 1;
    }
    if (r->joined && (r->fragment_left > 0 || r->fragment_is_last)) {
        int error = join_fragment(r);
        if (error < 0 || r->fragment_left > 0)
            return error;
        if (!r->fragment_is_last)
            return -EAGAIN;
        *ret_record = (struct record) { .head = take(r->joined) };
        return 1;
    }
    size_t have = r->end - r->start;
    if (have < RPC_MARK_BYTES)
        return 0;
    uint32_t mark = get_be32(r->chunk->data + r->start);
    size_t size = mark & ~RPC_MARK_LAST;
    if (size > r->max_bytes)
        return -EMSGSIZE;
    if (!(mark & RPC_MARK_LAST) || r->joined) {
        int error = begin_fragment(r, mark);
        return error < 0 ? error : -EAGAIN;
    }
    have -= RPC_MARK_BYTES;
    if (have < size) {
        if (size < RECORD_LARGE_BYTES)
            return make_room(r, RPC_MARK_BYTES + size);
        return begin_large(r, size, have);
    }
    ret_record->head = buf_slice(r->chunk, r->start + RPC_MARK_BYTES, size);
    ret_record->data = NULL;
    r->start += RPC_MARK_BYTES + size;
    r->expect_large = size >= RECORD_LARGE_BYTES;
    return ret_record->head ? 1 : -ENOMEM;
}

int record_reader_next(struct record_reader *r, struct record *ret_record)
{
    int result;

    do
        result = step(r, ret_record);
    while (result == -EAGAIN);
    return result;
}
