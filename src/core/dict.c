/* core/dict.c - pairs in order of insertion; found by walking while few, by a hash index when many.
 *
 * A pair is one block: the struct, the payload (bytes, an iatt, room for a number's text), the key. Pointers into a
 * pair thus stay good until the pair is replaced or removed. Removal from a large dict leaves a hole that the next
 * rebuild closes. */
#include "core/dict.h"
#include "core/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

#define INLINE_PAIRS      8  /* without a table of their own */
#define INDEX_FROM        16 /* pairs from which the index pays */
#define NUMBER_TEXT_BYTES 32
#define SLOT_EMPTY        0U
#define SLOT_DELETED      UINT32_MAX

struct pair {
    struct dict_value value;
    const char *key; /* in this block */
    uint32_t key_len;
    uint32_t hash;       /* only when the dict has an index */
    uint32_t room_bytes; /* of payload[] before the key */
    bool has_text;       /* a number's text has been written to payload[] */
    _Alignas(8) uint8_t payload[];
};

struct dict {
    uint32_t refs;
    uint32_t count;    /* pairs */
    uint32_t used;     /* entries of pairs[] in use, holes included */
    uint32_t capacity; /* of pairs[] */
    struct pair **pairs;
    uint32_t *index;      /* 1 + position in pairs[], or SLOT_*; NULL while small */
    uint32_t index_slots; /* power of two */
    uint32_t index_used;  /* slots that are not SLOT_EMPTY */
    struct pair *inline_pairs[INLINE_PAIRS];
};

/* ---- life cycle ---- */

struct dict *dict_new(void)
{
    struct dict *d = NEW(struct dict);

    if (!d)
        return NULL;
    d->refs = 1;
    d->pairs = d->inline_pairs;
    d->capacity = INLINE_PAIRS;
    return d;
}

struct dict *dict_ref(struct dict *d)
{
    if (d) {
        assert(d->refs > 0 && d->refs < UINT32_MAX);
        d->refs++;
    }
    return d;
}

void dict_clear(struct dict *d)
{
    for (uint32_t i = 0; i < d->used; i++)
        mem_free(d->pairs[i]);
    if (d->pairs != d->inline_pairs)
        mem_free(d->pairs);
    mem_free(d->index);
    d->pairs = d->inline_pairs;
    d->capacity = INLINE_PAIRS;
    d->index = NULL;
    d->count = d->used = d->index_slots = d->index_used = 0;
}

void dict_unref(struct dict *d)
{
    if (!d)
        return;
    assert(d->refs > 0);
    if (--d->refs > 0)
        return;
    dict_clear(d);
    mem_free(d);
}

struct dict *dict_copy(const struct dict *d)
{
    struct dict *copy = dict_new();

    if (!copy || !d)
        return copy;
    if (dict_merge(copy, d) < 0) {
        dict_unref(copy);
        return NULL;
    }
    return copy;
}

/* ---- finding ---- */

static uint32_t hash_key(const char *key, size_t key_len)
{
    return (uint32_t)XXH3_64bits(key, key_len);
}

/* Position in pairs[], or -1. */
static int64_t find_position(const struct dict *d, const char *key, size_t key_len)
{
    if (!d->index) {
        for (uint32_t i = 0; i < d->used; i++) {
            const struct pair *p = d->pairs[i];
            if (p->key_len == key_len && memcmp(p->key, key, key_len) == 0)
                return i;
        }
        return -1;
    }
    uint32_t hash = hash_key(key, key_len);
    for (uint32_t slot = hash & (d->index_slots - 1);; slot = (slot + 1) & (d->index_slots - 1)) {
        uint32_t entry = d->index[slot];
        if (entry == SLOT_EMPTY)
            return -1;
        if (entry == SLOT_DELETED)
            continue;
        const struct pair *p = d->pairs[entry - 1];
        if (p->hash == hash && p->key_len == key_len && memcmp(p->key, key, key_len) == 0)
            return entry - 1;
    }
}

static struct pair *find(const struct dict *d, const char *key)
{
    if (!d || d->count == 0)
        return NULL;
    int64_t at = find_position(d, key, strlen(key));
    return at < 0 ? NULL : d->pairs[at];
}

size_t dict_count(const struct dict *d)
{
    return d ? d->count : 0;
}

bool dict_has(const struct dict *d, const char *key)
{
    return find(d, key) != NULL;
}

const struct dict_value *dict_get(const struct dict *d, const char *key)
{
    const struct pair *p = find(d, key);

    return p ? &p->value : NULL;
}

bool dict_next(const struct dict *d, size_t *at, const char **ret_key, const struct dict_value **ret_value)
{
    if (!d)
        return false;
    while (*at < d->used) {
        const struct pair *p = d->pairs[(*at)++];
        if (!p)
            continue;
        *ret_key = p->key;
        *ret_value = &p->value;
        return true;
    }
    return false;
}

/* ---- the index ---- */

static void index_insert(struct dict *d, uint32_t position)
{
    uint32_t slot = d->pairs[position]->hash & (d->index_slots - 1);

    while (d->index[slot] != SLOT_EMPTY)
        slot = (slot + 1) & (d->index_slots - 1);
    d->index[slot] = position + 1;
    d->index_used++;
}

/* Closes the holes; the index, if there is one, is stale afterwards. */
static void close_holes(struct dict *d)
{
    uint32_t to = 0;

    for (uint32_t i = 0; i < d->used; i++)
        if (d->pairs[i])
            d->pairs[to++] = d->pairs[i];
    d->used = to;
}

/* A new index with room for twice the present pairs. Without memory the old one stays. */
static int rebuild_index(struct dict *d)
{
    uint32_t slots = 64;

    while (slots < 4 * (d->count + 1))
        slots *= 2;
    uint32_t *index = mem_array(slots, sizeof(*index));
    if (!index)
        return -ENOMEM;
    bool was_indexed = d->index != NULL;
    close_holes(d);
    mem_free(d->index);
    d->index = index;
    d->index_slots = slots;
    d->index_used = 0;
    for (uint32_t i = 0; i < d->used; i++) {
        if (!was_indexed)
            d->pairs[i]->hash = hash_key(d->pairs[i]->key, d->pairs[i]->key_len);
        index_insert(d, i);
    }
    return 0;
}

/* Room for one more pair, in pairs[] and in the index. */
static int make_room(struct dict *d)
{
    if (d->count >= DICT_MAX_PAIRS)
        return -E2BIG;
    bool wants_index = d->count >= INDEX_FROM;
    if ((d->index && (d->index_used + 1) * 2 > d->index_slots) || (!d->index && wants_index)) {
        int r = rebuild_index(d);
        if (r < 0)
            return r;
    }
    if (d->used < d->capacity)
        return 0;
    struct pair **wider = mem_array((size_t)d->capacity * 2, sizeof(struct pair *));
    if (!wider)
        return -ENOMEM;
    memcpy(wider, d->pairs, d->used * sizeof(struct pair *));
    if (d->pairs != d->inline_pairs)
        mem_free(d->pairs);
    d->pairs = wider;
    d->capacity *= 2;
    return 0;
}

/* ---- setting ---- */

static struct pair *pair_new(const char *key, size_t key_len, size_t room_bytes)
{
    struct pair *p = mem_alloc(sizeof(*p) + room_bytes + key_len + 1);

    if (!p)
        return NULL;
    p->key = memcpy(p->payload + room_bytes, key, key_len + 1);
    p->key_len = (uint32_t)key_len;
    p->room_bytes = (uint32_t)room_bytes;
    p->has_text = false;
    p->hash = 0;
    return p;
}

/* Puts a finished pair in place of the one with its key, or at the end. The pair is given. */
static int put_pair(struct dict *d, struct pair *p)
{
    int64_t at = find_position(d, p->key, p->key_len);

    if (at >= 0) {
        p->hash = d->pairs[at]->hash;
        mem_free(d->pairs[at]);
        d->pairs[at] = p;
        return 0;
    }
    int r = make_room(d);
    if (r < 0)
        return r;
    d->pairs[d->used++] = p;
    d->count++;
    if (d->index) {
        p->hash = hash_key(p->key, p->key_len);
        index_insert(d, d->used - 1);
    }
    return 0;
}

/* The common part of all setters: `bytes` (size_bytes of them) is what the payload begins with, a NUL follows. */
static int set_pair(struct dict *d, const char *key, enum dict_type type, const void *bytes, size_t size_bytes,
                    struct pair **ret_pair)
{
    size_t key_len = strlen(key);

    if (key_len > DICT_MAX_KEY || size_bytes > UINT32_MAX / 2)
        return -E2BIG;
    size_t room_bytes = size_bytes + 1;
    if (type == DICT_INT || type == DICT_UINT || type == DICT_DOUBLE)
        room_bytes = NUMBER_TEXT_BYTES;
    else if (type == DICT_GFID)
        room_bytes = 0;
    struct pair *p = pair_new(key, key_len, room_bytes);
    if (!p)
        return -ENOMEM;
    p->value = (struct dict_value) { .type = type, .size_bytes = size_bytes };
    if (bytes) {
        if (size_bytes > 0)
            memcpy(p->payload, bytes, size_bytes);
        p->payload[size_bytes] = '\0';
        p->value.bytes = p->payload;
    }
    int r = put_pair(d, p);
    if (r < 0) {
        mem_free(p);
        return r;
    }
    *ret_pair = p;
    return 0;
}

int dict_set_int(struct dict *d, const char *key, int64_t v)
{
    struct pair *p;
    int r = set_pair(d, key, DICT_INT, NULL, 0, &p);

    if (r == 0)
        p->value.i = v;
    return r;
}

int dict_set_uint(struct dict *d, const char *key, uint64_t v)
{
    struct pair *p;
    int r = set_pair(d, key, DICT_UINT, NULL, 0, &p);

    if (r == 0)
        p->value.u = v;
    return r;
}

int dict_set_double(struct dict *d, const char *key, double v)
{
    struct pair *p;
    int r = set_pair(d, key, DICT_DOUBLE, NULL, 0, &p);

    if (r == 0)
        p->value.d = v;
    return r;
}

static int set_bytes(struct dict *d, const char *key, enum dict_type type, const void *data, size_t size_bytes)
{
    struct pair *p;

    return set_pair(d, key, type, size_bytes ? data : "", size_bytes, &p);
}

int dict_set_str(struct dict *d, const char *key, const char *text)
{
    return set_bytes(d, key, DICT_STR, text, strlen(text));
}

int dict_set_bin(struct dict *d, const char *key, const void *data, size_t size_bytes)
{
    return set_bytes(d, key, DICT_BIN, data, size_bytes);
}

int dict_set_old(struct dict *d, const char *key, const void *data, size_t size_bytes)
{
    return set_bytes(d, key, DICT_OLD, data, size_bytes);
}

int dict_set_gfid(struct dict *d, const char *key, const struct gfid *g)
{
    struct gfid copy = *g; /* g may lie in the pair that is replaced */
    struct pair *p;
    int r = set_pair(d, key, DICT_GFID, NULL, 0, &p);

    if (r == 0)
        p->value.gfid = copy;
    return r;
}

int dict_set_iatt(struct dict *d, const char *key, const struct iatt *a)
{
    struct pair *p;
    int r = set_pair(d, key, DICT_IATT, a, sizeof(*a), &p);

    if (r == 0)
        p->value.iatt = (struct iatt *)(void *)p->payload;
    return r;
}

int dict_set_mdata(struct dict *d, const char *key, const struct mdata_times *m)
{
    struct pair *p;
    int r = set_pair(d, key, DICT_MDATA, m, sizeof(*m), &p);

    if (r == 0)
        p->value.mdata = (struct mdata_times *)(void *)p->payload;
    return r;
}

int dict_set_value(struct dict *d, const char *key, const struct dict_value *v)
{
    switch (v->type) {
    case DICT_INT: return dict_set_int(d, key, v->i);
    case DICT_UINT: return dict_set_uint(d, key, v->u);
    case DICT_DOUBLE: return dict_set_double(d, key, v->d);
    case DICT_OLD:
    case DICT_STR:
    case DICT_BIN: return set_bytes(d, key, v->type, v->bytes, v->size_bytes);
    case DICT_GFID: return dict_set_gfid(d, key, &v->gfid);
    case DICT_IATT: return dict_set_iatt(d, key, v->iatt);
    case DICT_MDATA: return dict_set_mdata(d, key, v->mdata);
    }
    return -EINVAL;
}

int dict_put_uint(struct dict **d, const char *key, uint64_t v)
{
    struct dict *fresh = *d ? NULL : dict_new();

    if (!*d && !fresh)
        return -ENOMEM;
    int r = dict_set_uint(fresh ? fresh : *d, key, v);
    if (r < 0)
        dict_unref(fresh);
    else if (fresh)
        *d = fresh;
    return r;
}

int dict_put_bin(struct dict **d, const char *key, const void *data, size_t size_bytes)
{
    struct dict *fresh = *d ? NULL : dict_new();

    if (!*d && !fresh)
        return -ENOMEM;
    int r = dict_set_bin(fresh ? fresh : *d, key, data, size_bytes);
    if (r < 0)
        dict_unref(fresh);
    else if (fresh)
        *d = fresh;
    return r;
}

int dict_merge(struct dict *to, const struct dict *from)
{
    size_t at = 0;
    const char *key;
    const struct dict_value *value;

    if (to == from)
        return 0;
    while (dict_next(from, &at, &key, &value)) {
        int r = dict_set_value(to, key, value);
        if (r < 0)
            return r;
    }
    return 0;
}

void dict_del(struct dict *d, const char *key)
{
    size_t key_len = strlen(key);
    int64_t at = find_position(d, key, key_len);

    if (at < 0)
        return;
    struct pair *p = d->pairs[at];
    d->count--;
    if (!d->index) {
        d->used--;
        memmove(d->pairs + at, d->pairs + at + 1, (d->used - (size_t)at) * sizeof(struct pair *));
        mem_free(p);
        return;
    }
    uint32_t slot = p->hash & (d->index_slots - 1);
    while (d->index[slot] != (uint32_t)at + 1)
        slot = (slot + 1) & (d->index_slots - 1);
    d->index[slot] = SLOT_DELETED;
    d->pairs[at] = NULL;
    mem_free(p);
    while (d->used > 0 && !d->pairs[d->used - 1])
        d->used--;
}

/* ---- getting ---- */

static bool is_bytes(const struct dict_value *v)
{
    return v->type == DICT_STR || v->type == DICT_BIN || v->type == DICT_OLD;
}

/* Decimal digits with an optional sign and nothing else. Positive numbers in *ret_u, their sign apart. */
static int parse_decimal(const struct dict_value *v, bool *ret_is_negative, uint64_t *ret_u)
{
    size_t n = v->size_bytes;
    size_t i = 0;
    uint64_t u = 0;

    if (n > 0 && v->bytes[n - 1] == '\0')
        n--;
    bool is_negative = n > 0 && v->bytes[0] == '-';
    if (n > 0 && (v->bytes[0] == '-' || v->bytes[0] == '+'))
        i++;
    if (i == n)
        return -EINVAL;
    for (; i < n; i++) {
        unsigned digit = v->bytes[i] - (unsigned)'0';
        if (digit > 9 || __builtin_mul_overflow(u, 10, &u) || __builtin_add_overflow(u, digit, &u))
            return -EINVAL;
    }
    *ret_is_negative = is_negative;
    *ret_u = u;
    return 0;
}

int dict_get_int(const struct dict *d, const char *key, int64_t *ret_v)
{
    const struct dict_value *v = dict_get(d, key);
    bool is_negative = false;
    uint64_t u;

    if (!v)
        return -ENOENT;
    if (v->type == DICT_INT) {
        *ret_v = v->i;
        return 0;
    }
    if (v->type == DICT_UINT)
        u = v->u;
    else if (!is_bytes(v) || parse_decimal(v, &is_negative, &u) < 0)
        return -EINVAL;
    if (u > (uint64_t)INT64_MAX + (is_negative ? 1 : 0))
        return -EINVAL;
    *ret_v = is_negative ? (int64_t)(0 - u) : (int64_t)u;
    return 0;
}

int dict_get_uint(const struct dict *d, const char *key, uint64_t *ret_v)
{
    const struct dict_value *v = dict_get(d, key);
    bool is_negative = false;
    uint64_t u;

    if (!v)
        return -ENOENT;
    if (v->type == DICT_UINT) {
        u = v->u;
    } else if (v->type == DICT_INT) {
        is_negative = v->i < 0;
        u = (uint64_t)v->i;
    } else if (!is_bytes(v) || parse_decimal(v, &is_negative, &u) < 0) {
        return -EINVAL;
    }
    if (is_negative && u != 0)
        return -EINVAL;
    *ret_v = u;
    return 0;
}

/* The number's text, written into the pair on first demand. */
static const char *number_text(struct pair *p)
{
    char *text = (char *)p->payload;

    if (p->has_text)
        return text;
    if (p->value.type == DICT_INT)
        snprintf(text, NUMBER_TEXT_BYTES, "%" PRId64, p->value.i);
    else if (p->value.type == DICT_UINT)
        snprintf(text, NUMBER_TEXT_BYTES, "%" PRIu64, p->value.u);
    else
        snprintf(text, NUMBER_TEXT_BYTES, "%.17g", p->value.d);
    p->has_text = true;
    return text;
}

int dict_get_str(const struct dict *d, const char *key, const char **ret_text)
{
    struct pair *p = find(d, key);

    if (!p)
        return -ENOENT;
    const struct dict_value *v = &p->value;
    if (v->type == DICT_INT || v->type == DICT_UINT || v->type == DICT_DOUBLE) {
        *ret_text = number_text(p);
        return 0;
    }
    if (!is_bytes(v))
        return -EINVAL;
    const uint8_t *nul = memchr(v->bytes, '\0', v->size_bytes);
    if (nul && nul != v->bytes + v->size_bytes - 1)
        return -EINVAL;
    *ret_text = (const char *)v->bytes;
    return 0;
}

int dict_get_bin(const struct dict *d, const char *key, const void **ret_data, size_t *ret_size_bytes)
{
    const struct dict_value *v = dict_get(d, key);

    if (!v)
        return -ENOENT;
    if (v->type == DICT_GFID) {
        *ret_data = v->gfid.bytes;
        *ret_size_bytes = sizeof(v->gfid.bytes);
        return 0;
    }
    if (!is_bytes(v))
        return -EINVAL;
    *ret_data = v->bytes;
    *ret_size_bytes = v->size_bytes;
    return 0;
}

int dict_get_gfid(const struct dict *d, const char *key, struct gfid *ret_gfid)
{
    const struct dict_value *v = dict_get(d, key);

    if (!v)
        return -ENOENT;
    if (v->type == DICT_GFID) {
        *ret_gfid = v->gfid;
        return 0;
    }
    if ((v->type != DICT_BIN && v->type != DICT_OLD) || v->size_bytes != sizeof(ret_gfid->bytes))
        return -EINVAL;
    memcpy(ret_gfid->bytes, v->bytes, sizeof(ret_gfid->bytes));
    return 0;
}

int dict_get_iatt(const struct dict *d, const char *key, struct iatt *ret_iatt)
{
    const struct dict_value *v = dict_get(d, key);

    if (!v)
        return -ENOENT;
    if (v->type != DICT_IATT)
        return -EINVAL;
    *ret_iatt = *v->iatt;
    return 0;
}

int dict_get_mdata(const struct dict *d, const char *key, struct mdata_times *ret_mdata)
{
    const struct dict_value *v = dict_get(d, key);

    if (!v)
        return -ENOENT;
    if (v->type != DICT_MDATA)
        return -EINVAL;
    *ret_mdata = *v->mdata;
    return 0;
}
