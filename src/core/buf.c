#include "core/buf.h"
#include "core/mem_internal.h"

/* What buf_new makes: the window and where its memory is. Small data follows the struct in the same block. */
struct owned_buf {
    struct buf b;
    void *block; /* NULL: the data is behind this struct */
    size_t block_bytes;
    _Alignas(16) uint8_t small[];
};

struct buf *buf_new(size_t size_bytes)
{
    bool is_large = size_bytes >= MEM_PAGE_BYTES;
    struct owned_buf *o = mem_alloc(sizeof(*o) + (is_large ? 0 : size_bytes));

    if (!o)
        return NULL;
    o->block = NULL;
    o->block_bytes = 0;
    if (is_large) {
        o->block = mem_page_alloc(size_bytes, &o->block_bytes);
        if (!o->block) {
            mem_free(o);
            return NULL;
        }
    }
    o->b =
        (struct buf) { .data = is_large ? o->block : o->small, .size = size_bytes, .capacity = size_bytes, .refs = 1 };
    return &o->b;
}

struct buf *buf_copy(const void *data, size_t size_bytes)
{
    struct buf *b = buf_new(size_bytes);

    if (b && size_bytes > 0)
        memcpy(b->data, data, size_bytes);
    return b;
}

struct buf *buf_wrap(void *data, size_t size_bytes, void (*free_fn)(struct buf *b, void *arg), void *arg)
{
    struct owned_buf *o = mem_alloc(sizeof(*o));

    if (!o)
        return NULL;
    o->block = NULL;
    o->block_bytes = 0;
    o->b = (struct buf) {
        .data = data, .size = size_bytes, .capacity = size_bytes, .refs = 1, .free_fn = free_fn, .free_arg = arg
    };
    return &o->b;
}

struct buf *buf_slice(struct buf *b, size_t offset, size_t size_bytes)
{
    assert(offset <= b->size && size_bytes <= b->size - offset);
    struct owned_buf *o = mem_alloc(sizeof(*o));

    if (!o)
        return NULL;
    struct buf *origin = b->origin ? b->origin : b; /* a slice of a slice holds the memory's owner directly */
    o->block = NULL;
    o->block_bytes = 0;
    o->b = (struct buf) {
        .data = b->data + offset, .size = size_bytes, .capacity = size_bytes, .refs = 1, .origin = buf_ref(origin)
    };
    return &o->b;
}

struct buf *buf_ref(struct buf *b)
{
    assert(b->refs > 0 && b->refs < UINT32_MAX);
    b->refs++;
    return b;
}

void buf_unref(struct buf *b)
{
    if (!b)
        return;
    assert(b->refs > 0);
    if (--b->refs > 0)
        return;
    struct owned_buf *o = container_of(b, struct owned_buf, b);
    struct buf *origin = b->origin;
    if (b->free_fn)
        b->free_fn(b, b->free_arg);
    mem_page_free(o->block, o->block_bytes);
    mem_free(o);
    buf_unref(origin);
}
