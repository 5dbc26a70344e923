#include "cluster/replicate/heal_pieces.h"
#include "core/mem.h"
#include <stdlib.h>

void pieces_done(struct pieces *p)
{
    mem_free(p->list);
    *p = (struct pieces) { 0 };
}

int pieces_add(struct pieces *p, uint64_t offset, uint64_t size_bytes, enum piece_kind kind, uint32_t sinks)
{
    struct piece *last = p->count ? &p->list[p->count - 1] : NULL;

    if (last && last->offset + last->size == offset && last->kind == kind && last->sinks == sinks) {
        last->size += size_bytes;
        return 0;
    }
    if (!p->list || p->count == p->room) {
        uint32_t room = p->room ? 2 * p->room : 16;
        struct piece *more = mem_realloc(p->list, room * sizeof(*more));

        if (!more)
            return -ENOMEM;
        p->list = more;
        p->room = room;
    }
    p->list[p->count++] = (struct piece) { .offset = offset, .size = size_bytes, .kind = kind, .sinks = sinks };
    return 0;
}

uint64_t pieces_bytes(const struct pieces *p, enum piece_kind kind)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < p->count; i++)
        bytes += p->list[i].kind == kind ? p->list[i].size : 0;
    return bytes;
}

/* Does this sink need something here? sum NULL: it is known to be empty. */
static bool differs(const uint8_t *source, const uint8_t *sum)
{
    enum block_kind want = block_kind(source), have = sum ? block_kind(sum) : BLOCK_IS_HOLE;

    switch (want) {
    case BLOCK_IS_HOLE: return have != BLOCK_IS_HOLE;
    case BLOCK_IS_ZERO: return have == BLOCK_IS_DATA || !sum;
    default: return have != BLOCK_IS_DATA || memcmp(source, sum, BLOCK_SUM_BYTES) != 0;
    }
}

static enum piece_kind kind_for(const uint8_t *source)
{
    switch (block_kind(source)) {
    case BLOCK_IS_HOLE: return PIECE_HOLE;
    case BLOCK_IS_ZERO: return PIECE_ZERO;
    default: return PIECE_COPY;
    }
}

int pieces_compare(struct pieces *p, const struct block_question *k, const uint8_t *source,
                   const uint8_t *const sums[CHILDREN_MAX], uint32_t sinks, bool takes_all)
{
    size_t at = 0;

    for (uint32_t n = 0; n < k->range_count; n++) {
        const struct block_range *range = &k->ranges[n];

        for (uint64_t in = 0; in < range->size; in += k->block_bytes, at += BLOCK_SUM_BYTES) {
            uint32_t differing = takes_all && block_kind(source + at) == BLOCK_IS_DATA ? sinks : 0;

            for_each_child(i, sinks & ~differing) differing |=
                differs(source + at, sums[i] ? sums[i] + at : NULL) ? bit(i) : 0;
            int r = differing ? pieces_add(p, range->offset + in, k->block_bytes, kind_for(source + at), differing) : 0;
            if (r < 0)
                return r;
        }
    }
    return 0;
}

static bool is_worth_a_look(const struct piece *piece, uint32_t empty)
{
    return piece->kind == PIECE_COPY && piece->size < PIECE_CLOSER_MAX && (piece->sinks & ~empty);
}

uint32_t pieces_closer(struct pieces *p, uint32_t empty, uint32_t block_bytes, struct block_question *k)
{
    uint64_t asked_bytes = 0;
    uint32_t kept = 0;

    k->block_bytes = block_bytes;
    k->range_count = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        const struct piece *piece = &p->list[i];

        if (is_worth_a_look(piece, empty) && k->range_count < BLOCK_RANGES_MAX &&
            asked_bytes + piece->size <= (uint64_t)BLOCKS_MAX * block_bytes) {
            k->ranges[k->range_count++] = (struct block_range) { piece->offset, (uint32_t)piece->size };
            asked_bytes += piece->size;
        } else {
            p->list[kept++] = *piece;
        }
    }
    p->count = kept;
    return k->range_count;
}

static int add_blank(const struct piece *piece, uint64_t offset, uint64_t block_bytes, enum piece_kind kind,
                     uint64_t size_bytes, struct pieces *p)
{
    if (offset >= size_bytes)
        return 0;
    return pieces_add(p, offset, MIN(block_bytes, size_bytes - offset), kind, piece->sinks);
}

int pieces_blank(const struct piece *list, uint32_t count, uint32_t block_bytes, const struct block_answer *a,
                 struct pieces *ret_blank, struct pieces *ret_copies)
{
    const uint8_t *sum = a->sums;
    int r = 0;

    for (uint32_t i = 0; i < count; i++) {
        for (uint64_t in = 0; in < list[i].size && r == 0; in += block_bytes, sum += BLOCK_SUM_BYTES) {
            enum piece_kind kind = kind_for(sum);

            if (kind == PIECE_COPY)
                r = pieces_add(ret_copies, list[i].offset + in, block_bytes, kind, list[i].sinks);
            else
                r = add_blank(&list[i], list[i].offset + in, block_bytes, kind, a->size_bytes, ret_blank);
        }
    }
    return r;
}

static int by_offset(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;

    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

void pieces_sort(struct pieces *p)
{
    if (p->count > 1)
        qsort(p->list, p->count, sizeof(*p->list), by_offset);
}
