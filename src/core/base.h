/* core/base.h - the few words every file of the tree uses.
 *
 * FIBER marks a function that may suspend its fiber; only FIBER functions call it (core/fiber.h).
 * SCOPED(fn) on a pointer variable calls fn(variable) when the variable goes out of scope; fn must accept NULL and
 * must have been announced with DEFINE_SCOPED(fn, type). take(p) hands the pointer on and leaves NULL behind.
 *
 *     SCOPED(buf_unref) struct buf *b = buf_new(size_bytes);
 *     if (!b)
 *         return -ENOMEM;
 *     ...
 *     *ret_data = take(b);
 *     return 0;
 */
#pragma once

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#if defined(__clang__)
#define FIBER __attribute__((annotate("fiber")))
#else
#define FIBER
#endif

#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
#define UNUSED                 __attribute__((unused))
#define MUST_USE               __attribute__((warn_unused_result))

/* Announces that SCOPED(fn) may be used with variables of type `type *`. */
#define DEFINE_SCOPED(fn, type)              \
    static inline void fn##_scoped(type **p) \
    {                                        \
        if (*p)                              \
            fn(*p);                          \
    }
#define SCOPED(fn) __attribute__((cleanup(fn##_scoped)))

#define take(p)                 \
    ({                          \
        typeof(p) taken_ = (p); \
        (p) = NULL;             \
        taken_;                 \
    })

#define container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))
#define ARRAY_SIZE(a)                   (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b)                          \
    ({                                     \
        typeof(a) min_a_ = (a);            \
        typeof(b) min_b_ = (b);            \
        min_a_ < min_b_ ? min_a_ : min_b_; \
    })
#define MAX(a, b)                          \
    ({                                     \
        typeof(a) max_a_ = (a);            \
        typeof(b) max_b_ = (b);            \
        max_a_ > max_b_ ? max_a_ : max_b_; \
    })

/* Big-endian bytes of a format at any alignment. */
static inline uint32_t get_be32(const void *p)
{
    const uint8_t *b = p;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static inline uint64_t get_be64(const void *p)
{
    return (uint64_t)get_be32(p) << 32 | get_be32((const uint8_t *)p + 4);
}

static inline void put_be32(void *p, uint32_t v)
{
    uint8_t *b = p;
    b[0] = (uint8_t)(v >> 24);
    b[1] = (uint8_t)(v >> 16);
    b[2] = (uint8_t)(v >> 8);
    b[3] = (uint8_t)v;
}

static inline void put_be64(void *p, uint64_t v)
{
    put_be32(p, (uint32_t)(v >> 32));
    put_be32((uint8_t *)p + 4, (uint32_t)v);
}
