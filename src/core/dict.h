/* core/dict.h - typed values under string keys: extra data of requests and replies, xattrs, options.
 *
 * NULL is an empty dict for every reading function, so that "no extra data" costs nothing. A key occurs once; setting
 * it again replaces the value. Iteration goes in order of first insertion. Dicts are refcounted and shared by
 * reference: whoever did not make a dict and wants to change it makes a dict_copy first. Getters convert between
 * numbers and decimal text, and between 16-byte blobs and gfids, as docs/protocol.md ("dictionaries") says.
 *
 * Getters return 0, -ENOENT when the key is absent, -EINVAL when the value cannot be read as that type. Setters return
 * 0 or -ENOMEM (the dict is then unchanged) or -E2BIG past DICT_MAX_PAIRS and DICT_MAX_KEY.
 */
#pragma once

#include "core/buf.h"
#include "core/iatt.h"

#define DICT_MAX_PAIRS 65536
#define DICT_MAX_KEY   4096 /* bytes */

enum dict_type {                /* numbers are those of the wire */
                 DICT_OLD = 1,  /* untyped bytes from an old-style serialisation */
                 DICT_INT = 2,  /* int64 */
                 DICT_UINT = 3, /* uint64 */
                 DICT_DOUBLE = 4,
                 DICT_STR = 5, /* text; size_bytes does not count the NUL, which is always there in memory */
                 DICT_BIN = 6, /* raw bytes */
                 DICT_GFID = 7,
                 DICT_IATT = 8,
                 DICT_MDATA = 9,
};

struct mdata_times {
    int64_t atime, mtime, ctime;
    uint32_t atime_nsec, mtime_nsec, ctime_nsec;
};

struct dict_value {
    enum dict_type type;
    size_t size_bytes; /* of bytes[], for OLD, STR and BIN */
    union {
        int64_t i;
        uint64_t u;
        double d;
        const uint8_t *bytes; /* OLD, STR, BIN: one NUL follows, not counted; lives as long as the pair */
        struct gfid gfid;
        struct iatt *iatt;
        struct mdata_times *mdata;
    };
};

struct dict;

struct dict *dict_new(void) MUST_USE;                  /* returned */
struct dict *dict_copy(const struct dict *d) MUST_USE; /* deep; NULL gives a new empty dict. returned */
struct dict *dict_ref(struct dict *d);                 /* accepts NULL */
void dict_unref(struct dict *d);
DEFINE_SCOPED(dict_unref, struct dict)

size_t dict_count(const struct dict *d);
bool dict_has(const struct dict *d, const char *key);
/* Removes the key if it is there. */
void dict_del(struct dict *d, const char *key);
void dict_clear(struct dict *d);

int dict_set_int(struct dict *d, const char *key, int64_t v);
int dict_set_uint(struct dict *d, const char *key, uint64_t v);
int dict_set_double(struct dict *d, const char *key, double v);
int dict_set_str(struct dict *d, const char *key, const char *text);
int dict_set_bin(struct dict *d, const char *key, const void *data, size_t size_bytes);
int dict_set_old(struct dict *d, const char *key, const void *data, size_t size_bytes);
int dict_set_gfid(struct dict *d, const char *key, const struct gfid *g);
int dict_set_iatt(struct dict *d, const char *key, const struct iatt *a);
int dict_set_mdata(struct dict *d, const char *key, const struct mdata_times *m);
int dict_set_value(struct dict *d, const char *key, const struct dict_value *v);
/* Makes *d if it is NULL, then sets: for "add a reply key when there is one". */
int dict_put_uint(struct dict **d, const char *key, uint64_t v);
int dict_put_bin(struct dict **d, const char *key, const void *data, size_t size_bytes);
/* All pairs of `from` (may be NULL) into `to`. On failure some may have arrived. */
int dict_merge(struct dict *to, const struct dict *from);

int dict_get_int(const struct dict *d, const char *key, int64_t *ret_v);
int dict_get_uint(const struct dict *d, const char *key, uint64_t *ret_v);
/* Text that lives as long as the pair; numbers give their decimal text. OLD, BIN and STR count when their bytes hold
 * no NUL but a last one. */
int dict_get_str(const struct dict *d, const char *key, const char **ret_text);
/* Raw bytes of OLD, BIN, STR (without the NUL), GFID. */
int dict_get_bin(const struct dict *d, const char *key, const void **ret_data, size_t *ret_size_bytes);
int dict_get_gfid(const struct dict *d, const char *key, struct gfid *ret_gfid);
int dict_get_iatt(const struct dict *d, const char *key, struct iatt *ret_iatt);
int dict_get_mdata(const struct dict *d, const char *key, struct mdata_times *ret_mdata);
const struct dict_value *dict_get(const struct dict *d, const char *key); /* NULL when absent */

/* size_t at = 0; while (dict_next(d, &at, &key, &value)) ...   The dict must not change meanwhile. */
bool dict_next(const struct dict *d, size_t *at, const char **ret_key, const struct dict_value **ret_value);
