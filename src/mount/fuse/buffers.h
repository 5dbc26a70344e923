/* mount/fuse/buffers.h - page-aligned buffers of FUSE_BODY_BYTES that requests are read into and that come back when
 * the last slice of them is gone. Fresh memory of that size costs 256 page faults, hence the few kept for reuse. The
 * store may be released while buffers are still out. */
#pragma once

#include "core/buf.h"

struct buffer_store;

struct buffer_store *buffer_store_new(void) MUST_USE;
void buffer_store_release(struct buffer_store *s); /* accepts NULL */
struct buf *buffer_take(struct buffer_store *s) MUST_USE;
