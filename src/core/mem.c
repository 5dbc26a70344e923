/* core/mem.c - counting, failure injection and the pool of large blocks.
 *
 * Counters are sharded by thread: a thread owns its shard, so that counting is a plain add without a locked
 * instruction. Threads past the last shard share that one and use atomic adds. */
#include "core/mem_internal.h"

#include <malloc.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__)
#define KEEP_BLOCKS false /* a freed block must look freed to the sanitizer */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KEEP_BLOCKS false
#endif
#endif
#ifndef KEEP_BLOCKS
#define KEEP_BLOCKS true
#endif

#define SHARD_COUNT 64

struct shard {
    _Alignas(64) _Atomic uint64_t allocated_blocks;
    _Atomic uint64_t freed_blocks;
    _Atomic uint64_t live_bytes; /* wraps: one thread's frees of another's blocks; only the sum means something */
};

static struct shard shards[SHARD_COUNT];
static _Atomic unsigned shards_taken;
static _Atomic uint64_t fail_countdown; /* 0: no injection */
static _Thread_local struct shard *own_shard __attribute__((tls_model("initial-exec")));

static struct shard *take_shard(void)
{
    unsigned n = atomic_fetch_add(&shards_taken, 1);

    if (n >= SHARD_COUNT - 1) {
        atomic_store(&shards_taken, SHARD_COUNT - 1); /* never wraps */
        n = SHARD_COUNT - 1;
    }
    own_shard = &shards[n];
    return own_shard;
}

static inline void count_to(struct shard *s, _Atomic uint64_t *counter, uint64_t add)
{
    if (s == &shards[SHARD_COUNT - 1])
        atomic_fetch_add_explicit(counter, add, memory_order_relaxed);
    else
        atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + add, memory_order_relaxed);
}

static inline struct shard *shard(void)
{
    return own_shard ? own_shard : take_shard();
}

static void count_alloc(size_t bytes)
{
    struct shard *s = shard();

    count_to(s, &s->allocated_blocks, 1);
    count_to(s, &s->live_bytes, bytes);
}

static void count_free(size_t bytes)
{
    struct shard *s = shard();

    count_to(s, &s->freed_blocks, 1);
    count_to(s, &s->live_bytes, -(uint64_t)bytes);
}

static bool injection_fires(void)
{
    uint64_t left = atomic_load(&fail_countdown);

    while (left > 0)
        if (atomic_compare_exchange_weak(&fail_countdown, &left, left - 1))
            return left == 1;
    return false;
}

static inline bool must_fail(void)
{
    return __builtin_expect(atomic_load_explicit(&fail_countdown, memory_order_relaxed) != 0, 0) && injection_fires();
}

void *mem_alloc(size_t size_bytes)
{
    void *block = must_fail() ? NULL : malloc(size_bytes ? size_bytes : 1);

    if (block)
        count_alloc(malloc_usable_size(block));
    return block;
}

void *mem_zalloc(size_t size_bytes)
{
    void *block = must_fail() ? NULL : calloc(1, size_bytes ? size_bytes : 1);

    if (block)
        count_alloc(malloc_usable_size(block));
    return block;
}

void *mem_array(size_t count, size_t item_bytes)
{
    size_t size_bytes;

    if (__builtin_mul_overflow(count, item_bytes, &size_bytes))
        return NULL;
    return mem_zalloc(size_bytes);
}

void *mem_realloc(void *block, size_t size_bytes)
{
    if (!block)
        return mem_alloc(size_bytes);
    if (must_fail())
        return NULL;
    size_t before = malloc_usable_size(block);
    void *moved = realloc(block, size_bytes ? size_bytes : 1);
    if (!moved)
        return NULL;
    count_free(before);
    count_alloc(malloc_usable_size(moved));
    return moved;
}

void *mem_dup(const void *data, size_t size_bytes)
{
    void *block = mem_alloc(size_bytes);

    if (block && size_bytes > 0)
        memcpy(block, data, size_bytes);
    return block;
}

char *mem_strndup(const char *text, size_t max_bytes)
{
    size_t n = strnlen(text, max_bytes);
    char *copy = mem_alloc(n + 1);

    if (copy) {
        memcpy(copy, text, n);
        copy[n] = '\0';
    }
    return copy;
}

char *mem_strdup(const char *text)
{
    return mem_dup(text, strlen(text) + 1);
}

void mem_free(void *block)
{
    if (!block)
        return;
    count_free(malloc_usable_size(block));
    free(block);
}

char *mem_printf(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (n < 0)
        return NULL;
    char *text = mem_alloc((size_t)n + 1);
    if (!text)
        return NULL;
    va_start(args, fmt);
    vsnprintf(text, (size_t)n + 1, fmt, args);
    va_end(args);
    return text;
}

void mem_get_stats(struct mem_stats *ret_stats)
{
    uint64_t bytes = 0, allocated = 0, freed = 0;

    for (size_t i = 0; i < SHARD_COUNT; i++) {
        bytes += atomic_load_explicit(&shards[i].live_bytes, memory_order_relaxed);
        allocated += atomic_load_explicit(&shards[i].allocated_blocks, memory_order_relaxed);
        freed += atomic_load_explicit(&shards[i].freed_blocks, memory_order_relaxed);
    }
    *ret_stats =
        (struct mem_stats) { .live_bytes = bytes, .live_blocks = allocated - freed, .total_blocks = allocated };
}

uint64_t mem_fail_at(uint64_t n)
{
    return atomic_exchange(&fail_countdown, n);
}

/* ---- large blocks ---- */

#define CLASS_COUNT      9                 /* 4 KiB << 0..8 */
#define CLASS_KEEP_BYTES (4 * 1024 * 1024) /* per class */

struct kept_block {
    struct kept_block *next;
};

static struct {
    struct kept_block *first;
    size_t count;
} kept[CLASS_COUNT]; /* touched by the keeper thread only */
static atomic_flag keeper_exists = ATOMIC_FLAG_INIT;
static _Thread_local enum { UNKNOWN, KEEPER, PLAIN } thread_kind;

static bool is_keeper(void)
{
    if (thread_kind == UNKNOWN)
        thread_kind = KEEP_BLOCKS && !atomic_flag_test_and_set(&keeper_exists) ? KEEPER : PLAIN;
    return thread_kind == KEEPER;
}

/* The class of blocks of exactly these bytes, or -1. */
static int class_of(size_t block_bytes)
{
    for (int c = 0; c < CLASS_COUNT; c++)
        if (block_bytes == (size_t)MEM_PAGE_BYTES << c)
            return c;
    return -1;
}

/* The next class if that wastes little, else whole pages. */
static size_t round_up(size_t size_bytes)
{
    for (int c = 0; c < CLASS_COUNT; c++) {
        size_t class_bytes = (size_t)MEM_PAGE_BYTES << c;
        if (size_bytes <= class_bytes && size_bytes > class_bytes - class_bytes / 4)
            return class_bytes;
    }
    return (size_bytes + MEM_PAGE_BYTES - 1) & ~(size_t)(MEM_PAGE_BYTES - 1);
}

void *mem_page_alloc(size_t size_bytes, size_t *ret_block_bytes)
{
    if (size_bytes > SIZE_MAX / 2 || must_fail())
        return NULL;
    size_t block_bytes = round_up(size_bytes);
    int c = is_keeper() ? class_of(block_bytes) : -1;
    void *block = NULL;

    if (c >= 0 && kept[c].first) {
        block = kept[c].first;
        kept[c].first = kept[c].first->next;
        kept[c].count--;
    } else if (posix_memalign(&block, MEM_PAGE_BYTES, block_bytes) != 0) {
        return NULL;
    }
    count_alloc(block_bytes);
    *ret_block_bytes = block_bytes;
    return block;
}

void mem_page_free(void *block, size_t block_bytes)
{
    if (!block)
        return;
    int c = is_keeper() ? class_of(block_bytes) : -1;

    count_free(block_bytes);
    if (c >= 0 && (kept[c].count + 1) * block_bytes <= CLASS_KEEP_BYTES) {
        struct kept_block *b = block;
        b->next = kept[c].first;
        kept[c].first = b;
        kept[c].count++;
    } else {
        free(block);
    }
}
