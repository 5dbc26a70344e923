#include "mount/fuse/buffers.h"
#include "mount/fuse/fuse_internal.h"

struct buffer_store {
    struct buf *spare[FUSE_SPARE_BUFFERS]; /* plain bufs: the memory behind what buffer_take() gives */
    uint32_t spare_count, out_count;
    bool is_released;
};

struct lent { /* one buffer that is out */
    struct buffer_store *store;
    struct buf *memory;
};

struct buffer_store *buffer_store_new(void)
{
    return NEW(struct buffer_store);
}

static void free_when_done(struct buffer_store *s)
{
    if (s->is_released && s->out_count == 0)
        mem_free(s);
}

void buffer_store_release(struct buffer_store *s)
{
    if (!s)
        return;
    while (s->spare_count > 0)
        buf_unref(s->spare[--s->spare_count]);
    s->is_released = true;
    free_when_done(s);
}

static void come_back(struct buf *b UNUSED, void *arg)
{
    struct lent *lent = arg;
    struct buffer_store *s = lent->store;

    s->out_count--;
    if (!s->is_released && s->spare_count < FUSE_SPARE_BUFFERS)
        s->spare[s->spare_count++] = lent->memory;
    else
        buf_unref(lent->memory);
    mem_free(lent);
    free_when_done(s);
}

struct buf *buffer_take(struct buffer_store *s)
{
    SCOPED_FREE struct lent *lent = NEW(struct lent);
    SCOPED(buf_unref) struct buf *memory = NULL;
    struct buf *b;

    if (!lent)
        return NULL;
    memory = s->spare_count > 0 ? s->spare[--s->spare_count] : buf_new(FUSE_BODY_BYTES);
    if (!memory)
        return NULL;
    b = buf_wrap(memory->data, FUSE_BODY_BYTES, come_back, lent);
    if (!b)
        return NULL;
    lent->store = s;
    lent->memory = take(memory);
    lent = NULL; /* come_back() frees it */
    s->out_count++;
    return b;
}
