/* core/buf.h - refcounted bytes: what data of files and messages travels in, without copies.
 *
 * A buf is a window (data, size) on memory that lives as long as any window on it. Windows are immutable once shared:
 * write into a buf only while you hold the only reference. Reference counts are not atomic: bufs belong to the loop
 * thread; a pool job may read or fill the bytes of a buf its waiting fiber holds.
 *
 *     SCOPED(buf_unref) struct buf *b = buf_new(4096);
 *     memcpy(b->data, ...); b->size = n;
 *     SCOPED(buf_unref) struct buf *tail = buf_slice(b, 100, b->size - 100);
 */
#pragma once

#include "core/base.h"
#include <sys/uio.h>

struct buf {
    uint8_t *data;
    size_t size;     /* bytes of the window; the owner of a fresh buf may lower it */
    size_t capacity; /* bytes that may be written at data by its only owner */
    uint32_t refs;
    struct buf *origin;                        /* the buf this one is a slice of, or NULL */
    void (*free_fn)(struct buf *b, void *arg); /* for foreign memory, else NULL */
    void *free_arg;
};

/* size == capacity == size_bytes; contents undefined; data aligned to 4096 when size_bytes >= 4096. Returned. */
struct buf *buf_new(size_t size_bytes) MUST_USE;
struct buf *buf_copy(const void *data, size_t size_bytes) MUST_USE;
/* Window on memory of somebody else; free_fn(b, arg) runs when the last reference goes. Returned. */
struct buf *buf_wrap(void *data, size_t size_bytes, void (*free_fn)(struct buf *b, void *arg), void *arg) MUST_USE;
/* A window on part of b, which it keeps alive. offset + size_bytes must lie inside b (asserted). Returned. */
struct buf *buf_slice(struct buf *b, size_t offset, size_t size_bytes) MUST_USE;
struct buf *buf_ref(struct buf *b);
void buf_unref(struct buf *b); /* accepts NULL */
DEFINE_SCOPED(buf_unref, struct buf)
