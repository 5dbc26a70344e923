/* Both serialisations of dicts: docs/protocol.md "Dictionaries". */
#include "core/mem.h"
#include "rpc/xdr_buf.h"
#include <inttypes.h>
#include <stdio.h>

#define XDICT_HEADER_BYTES 12
#define XDICT_NULL         0xffffffffu /* count -1: no dict at all */
#define MDATA_BYTES        36
#define GFID_REQ_KEY       "gfid-req"

static void put_key(struct xdr_out *o, const char *key)
{
    xdr_put_opaque(o, key, strlen(key) + 1);
}

static void put_mdata(struct xdr_out *o, const struct mdata_times *m)
{
    xdr_put_u64(o, (uint64_t)m->atime);
    xdr_put_u64(o, (uint64_t)m->mtime);
    xdr_put_u64(o, (uint64_t)m->ctime);
    xdr_put_u32(o, m->atime_nsec);
    xdr_put_u32(o, m->mtime_nsec);
    xdr_put_u32(o, m->ctime_nsec);
}

static void put_value(struct xdr_out *o, const struct dict_value *v)
{
    uint64_t bits;

    xdr_put_u32(o, v->type);
    switch (v->type) {
    case DICT_OLD:
    case DICT_BIN: xdr_put_opaque(o, v->bytes, v->size_bytes); break;
    case DICT_STR: /* the NUL behind the text counts */ xdr_put_opaque(o, v->bytes, v->size_bytes + 1); break;
    case DICT_INT:
    case DICT_UINT: xdr_put_u64(o, v->u); break;
    case DICT_DOUBLE:
        memcpy(&bits, &v->d, 8);
        xdr_put_u64(o, bits);
        break;
    case DICT_GFID: xdr_put_gfid(o, &v->gfid); break;
    case DICT_IATT: xdr_put_iattx(o, v->iatt); break;
    case DICT_MDATA: put_mdata(o, v->mdata); break;
    }
}

void xdr_put_xdict(struct xdr_out *o, const struct dict *d, const struct gfid *gfid_req)
{
    size_t start = o->size, at = 0;
    uint32_t count = 0;
    const char *key;
    const struct dict_value *v;
    uint8_t *header = xdr_reserve(o, XDICT_HEADER_BYTES);

    if (!header)
        return;
    if (gfid_req) {
        put_key(o, GFID_REQ_KEY);
        xdr_put_u32(o, DICT_GFID);
        xdr_put_gfid(o, gfid_req);
        count++;
    }
    while (dict_next(d, &at, &key, &v)) {
        if (gfid_req && strcmp(key, GFID_REQ_KEY) == 0)
            continue;
        put_key(o, key);
        put_value(o, v);
        count++;
    }
    xdr_patch_u32(o, start, (uint32_t)(o->size - start - XDICT_HEADER_BYTES));
    xdr_patch_u32(o, start + 4, d || count > 0 ? count : XDICT_NULL);
    xdr_patch_u32(o, start + 8, count);
}

/* The key of the next pair, in place; NULL after a failure. */
static const char *get_key(struct xdr_in *in)
{
    size_t size;
    uint8_t *p = xdr_get_opaque(in, DICT_MAX_KEY + 1, &size);
    if (!p || size == 0 || p[0] == 0) {
        in->failed = true;
        return NULL;
    }
    if (p[size - 1] != 0) { /* the length word makes room for the NUL, as in xdr_get_string() */
        memmove(p - 1, p, size);
        p[size - 1] = 0;
        p--;
    }
    return (const char *)p;
}

static int set_text(struct dict *d, const char *key, const uint8_t *p, size_t size)
{
    if (size > 0 && p[size - 1] == 0)
        size--;
    struct dict_value v = { .type = DICT_STR, .size_bytes = size, .bytes = p };
    return dict_set_value(d, key, &v);
}

static int get_mdata(struct xdr_in *in, struct dict *d, const char *key)
{
    struct mdata_times m = { 0 };
    m.atime = (int64_t)xdr_get_u64(in);
    m.mtime = (int64_t)xdr_get_u64(in);
    m.ctime = (int64_t)xdr_get_u64(in);
    m.atime_nsec = xdr_get_u32(in);
    m.mtime_nsec = xdr_get_u32(in);
    m.ctime_nsec = xdr_get_u32(in);
    return in->failed ? -EINVAL : dict_set_mdata(d, key, &m);
}

static int get_iatt(struct xdr_in *in, struct dict *d, const char *key)
{
    struct iatt a;
    xdr_get_iattx(in, &a);
    return in->failed ? -EINVAL : dict_set_iatt(d, key, &a);
}

static int get_number(struct xdr_in *in, struct dict *d, const char *key, uint32_t type)
{
    uint64_t bits = xdr_get_u64(in);
    double number;

    if (in->failed)
        return -EINVAL;
    if (type == DICT_INT)
        return dict_set_int(d, key, (int64_t)bits);
    if (type == DICT_UINT)
        return dict_set_uint(d, key, bits);
    memcpy(&number, &bits, 8);
    return dict_set_double(d, key, number);
}

static int get_value(struct xdr_in *in, struct dict *d, const char *key)
{
    uint32_t type = xdr_get_u32(in);
    size_t size;
    uint8_t *p;
    struct gfid gfid;

    switch (type) {
    case DICT_OLD:
    case DICT_BIN:
    case DICT_STR:
        p = xdr_get_opaque(in, SIZE_MAX, &size);
        if (!p)
            return -EINVAL;
        if (type == DICT_STR)
            return set_text(d, key, p, size);
        return type == DICT_OLD ? dict_set_old(d, key, p, size) : dict_set_bin(d, key, p, size);
    case DICT_INT:
    case DICT_UINT:
    case DICT_DOUBLE: return get_number(in, d, key, type);
    case DICT_GFID: xdr_get_gfid(in, &gfid); return in->failed ? -EINVAL : dict_set_gfid(d, key, &gfid);
    case DICT_IATT: return get_iatt(in, d, key);
    case DICT_MDATA: return get_mdata(in, d, key);
    default: return -EINVAL;
    }
}

void xdr_get_xdict(struct xdr_in *in, struct dict **ret_dict)
{
    (void)xdr_get_u32(in); /* the size: only READ and WRITE use it, to find their data */
    int32_t count = (int32_t)xdr_get_u32(in);
    uint32_t pairs = xdr_get_u32(in);

    *ret_dict = NULL;
    if (count <= 0 && pairs == 0)
        return;
    if (in->failed || count <= 0 || pairs > DICT_MAX_PAIRS) {
        in->failed = true;
        return;
    }
    SCOPED(dict_unref) struct dict *d = dict_new();
    if (!d) {
        in->failed = true;
        return;
    }
    for (uint32_t i = 0; i < pairs; i++) {
        const char *key = get_key(in);
        if (!key || get_value(in, d, key) < 0) {
            in->failed = true;
            return;
        }
    }
    *ret_dict = take(d);
}

/* ---- the old form ---- */

/* What a value looks like as untyped bytes; false: it has no old form. `text` holds numbers. */
static bool old_bytes(const struct dict_value *v, char text[static 64], const void **ret_data, size_t *ret_size)
{
    *ret_data = text;
    switch (v->type) {
    case DICT_INT: *ret_size = (size_t)snprintf(text, 64, "%" PRId64, v->i) + 1; return true;
    case DICT_UINT: *ret_size = (size_t)snprintf(text, 64, "%" PRIu64, v->u) + 1; return true;
    case DICT_DOUBLE:
        *ret_size = (size_t)snprintf(text, 64, "%f", v->d) + 1;
        *ret_size = MIN(*ret_size, (size_t)64);
        return true;
    case DICT_STR:
        *ret_data = v->bytes;
        *ret_size = v->size_bytes + 1;
        return true;
    case DICT_OLD:
    case DICT_BIN:
        *ret_data = v->bytes;
        *ret_size = v->size_bytes;
        return true;
    case DICT_GFID:
        *ret_data = v->gfid.bytes;
        *ret_size = 16;
        return true;
    case DICT_IATT:
    case DICT_MDATA: break;
    }
    return false;
}

void xdr_put_odict(struct xdr_out *o, const struct dict *d)
{
    size_t start = o->size, at = 0, size;
    uint32_t count = 0;
    const char *key;
    const struct dict_value *v;
    const void *data;
    char text[64];

    if (!d)
        return;
    xdr_put_u32(o, 0);
    while (dict_next(d, &at, &key, &v)) {
        if (!old_bytes(v, text, &data, &size))
            continue;
        xdr_put_u32(o, (uint32_t)strlen(key));
        xdr_put_u32(o, (uint32_t)size);
        xdr_put_bytes(o, key, strlen(key) + 1);
        xdr_put_bytes(o, data, size);
        count++;
    }
    xdr_patch_u32(o, start, count);
}

void xdr_put_odict_opaque(struct xdr_out *o, const struct dict *d)
{
    size_t start = o->size;

    xdr_put_u32(o, 0);
    xdr_put_odict(o, d);
    size_t size = o->size - start - 4;
    xdr_patch_u32(o, start, (uint32_t)size);
    xdr_put_bytes(o, "\0\0\0", -size & 3);
}

static int odict_pair(struct xdr_in *in, struct dict *d)
{
    uint32_t key_size = xdr_get_u32(in), value_size = xdr_get_u32(in);
    if (in->failed || key_size == 0 || key_size > DICT_MAX_KEY || value_size > INT32_MAX)
        return -EINVAL;
    char *key = (char *)xdr_get_bytes(in, (size_t)key_size + 1);
    uint8_t *value = xdr_get_bytes(in, value_size);
    if (in->failed || key[0] == 0)
        return -EINVAL;
    key[key_size] = 0;
    return dict_set_old(d, key, value, value_size);
}

int odict_parse(uint8_t *data, size_t size_bytes, struct dict **ret_dict)
{
    if (size_bytes == 0) {
        *ret_dict = NULL;
        return 0;
    }
    struct xdr_in in = { .at = data, .end = data + size_bytes };
    int32_t count = (int32_t)xdr_get_u32(&in);
    if (in.failed || count < 0 || count > DICT_MAX_PAIRS)
        return -EINVAL;
    SCOPED(dict_unref) struct dict *d = dict_new();
    if (!d)
        return -ENOMEM;
    for (int32_t i = 0; i < count; i++) {
        int r = odict_pair(&in, d);
        if (r < 0)
            return r;
    }
    *ret_dict = take(d);
    return 0;
}

void xdr_get_odict_opaque(struct xdr_in *in, size_t max_bytes, struct dict **ret_dict)
{
    size_t size;
    uint8_t *p = xdr_get_opaque(in, max_bytes, &size);

    if (!p || odict_parse(p, size, ret_dict) < 0)
        in->failed = true;
}
