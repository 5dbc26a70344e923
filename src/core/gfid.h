/* core/gfid.h - the 16-byte name of an inode everywhere (docs/on-disk.md "gfids"). */
#pragma once

#include "core/base.h"

struct gfid {
    uint8_t bytes[16];
};
static_assert(sizeof(struct gfid) == 16, "a gfid is 16 raw bytes on disk and wire");

#define GFID_TEXT_LEN 36 /* lower-case canonical UUID text, without the NUL */

extern const struct gfid gfid_null;
extern const struct gfid gfid_root; /* 00000000-0000-0000-0000-000000000001 */

static inline bool gfid_equal(const struct gfid *a, const struct gfid *b)
{
    return memcmp(a->bytes, b->bytes, 16) == 0;
}

static inline bool gfid_is_null(const struct gfid *g)
{
    return gfid_equal(g, &gfid_null);
}

static inline bool gfid_is_root(const struct gfid *g)
{
    return gfid_equal(g, &gfid_root);
}

struct env;
/* A random version-4 UUID from the env's randomness. */
struct gfid gfid_random(struct env *env);
/* The same for a new inode. Its first two bytes are those of all that this process makes within a second: a brick keeps
 * a directory per value of them (.glusterfs/xx/yy), and files made together then share one instead of touching, on a
 * young brick making, a directory each. The other 106 random bits keep gfids apart. */
struct gfid gfid_for_new_inode(struct env *env);
/* Writes 36 characters and a NUL; returns `text`. */
char *gfid_format(const struct gfid *g, char text[static GFID_TEXT_LEN + 1]);
/* Exactly 36 characters of canonical UUID text, either case: 0, else -EINVAL. */
int gfid_parse(const char *text, struct gfid *ret_gfid);
/* The 64-bit inode number users see: bytes 8..15 as big-endian (root: 1; null: all ones). */
uint64_t gfid_to_ino(const struct gfid *g);

#define GFID_TEXT(g) (gfid_format((g), (char[GFID_TEXT_LEN + 1]) { 0 }))
