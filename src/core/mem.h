/* core/mem.h - the heap, counted, and made to fail by tests.
 *
 * All long-lived memory of the project comes from here, so that a statedump can say how much there is and a test can
 * sweep "the n-th allocation fails". Pool jobs may allocate too: the counters are atomic. Sizes are bytes. Every
 * function returns NULL only for lack of memory (or an injected failure).
 */
#pragma once

#include "core/base.h"

void *mem_alloc(size_t size_bytes) MUST_USE;               /* contents undefined */
void *mem_zalloc(size_t size_bytes) MUST_USE;              /* zeroed */
void *mem_array(size_t count, size_t item_bytes) MUST_USE; /* zeroed; NULL when the product overflows */
/* Grows or shrinks; on failure the old block stays valid and NULL is returned. */
void *mem_realloc(void *block, size_t size_bytes) MUST_USE;
char *mem_strdup(const char *text) MUST_USE;
char *mem_strndup(const char *text, size_t max_bytes) MUST_USE;
void *mem_dup(const void *data, size_t size_bytes) MUST_USE;
void mem_free(void *block); /* accepts NULL */
DEFINE_SCOPED(mem_free, void)

/* `SCOPED_FREE char *s = mem_strdup(...)`: freed when it goes out of scope. */
static inline void mem_free_any_scoped(void *p)
{
    mem_free(*(void **)p);
}
#define SCOPED_FREE __attribute__((cleanup(mem_free_any_scoped)))

#define NEW(type) ((type *)mem_zalloc(sizeof(type)))

/* One printf into a new string; returned to the caller. */
char *mem_printf(const char *fmt, ...) PRINTF_LIKE(1, 2) MUST_USE;

struct mem_stats {
    uint64_t live_bytes;
    uint64_t live_blocks;
    uint64_t total_blocks; /* ever allocated */
};
void mem_get_stats(struct mem_stats *ret_stats);

/* Test aid: the n-th allocation from now (1 = the next) fails once; 0 switches injection off. Returns how many
 * allocations of the previous injection were still to come (0: it fired). */
uint64_t mem_fail_at(uint64_t n);
