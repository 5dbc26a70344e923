/* core/mem_internal.h - blocks of a few large sizes, kept for the next one who asks.
 *
 * Page-aligned blocks of 4 KiB to 1 MiB (powers of two) are what file data travels in; malloc would go to the kernel
 * for many of them. The first thread that asks (the loop thread) keeps those it gives back, up to a limit; all others
 * get and free plainly. A kept block does not count as live, and taking one counts as an allocation, so that
 * accounting and injected failures see no difference.
 */
#pragma once

#include "core/mem.h"

#define MEM_PAGE_BYTES 4096

/* At least size_bytes (which is at least one page), page-aligned. *ret_block_bytes goes to mem_page_free. */
void *mem_page_alloc(size_t size_bytes, size_t *ret_block_bytes) MUST_USE;
void mem_page_free(void *block, size_t block_bytes);
