/* rpc/xdr_buf.h - reading and writing XDR (RFC 4506) in plain buffers, bounds-checked, without an allocation per field.
 *
 * Both directions carry a sticky failure: after the first overrun or lack of memory every further call does nothing
 * and gives zeros, so that a codec checks once at its end.
 *
 *     struct xdr_out o;                         struct xdr_in in = xdr_in_of(b);
 *     xdr_out_init(&o, 256);                    uint32_t n = xdr_get_u32(&in);
 *     xdr_put_u32(&o, 7);                       const char *name = xdr_get_string(&in, 255);
 *     xdr_put_string(&o, "name");               if (in.failed) return -EBADMSG;
 *     if (o.failed) ...
 *     xdr_out_done(&o);
 *
 * Reading a string makes it a C string in place: the text moves one byte forward over its length word, and a NUL takes
 * the byte that becomes free. So the bytes of a received message belong to its reader alone and change by reading.
 *
 * An xdr_out may carry inserts: bufs that lie logically at an offset of the bytes, so that data of files is sent from
 * where it is.
 */
#pragma once

#include "core/buf.h"
#include "core/dict.h"
#include "core/iatt.h"

#define XDR_INSERTS_MAX 8

struct xdr_insert {
    size_t at; /* in the bytes of the xdr_out */
    struct buf *data;
};

struct xdr_out {
    struct buf *buf; /* capacity is what may be written; NULL before the first byte */
    size_t size;
    bool failed;
    unsigned insert_count;
    size_t insert_bytes;
    struct xdr_insert inserts[XDR_INSERTS_MAX];
};

void xdr_out_init(struct xdr_out *o, size_t reserve_bytes);
void xdr_out_done(struct xdr_out *o);
/* Room for n bytes at the end, which count as written; NULL when it failed. */
uint8_t *xdr_reserve_slow(struct xdr_out *o, size_t n);
static inline uint8_t *xdr_reserve(struct xdr_out *o, size_t n)
{
    if (!o->failed && o->buf && o->buf->capacity - o->size >= n) {
        o->size += n;
        return o->buf->data + o->size - n;
    }
    return xdr_reserve_slow(o, n);
}

static inline void xdr_put_u32(struct xdr_out *o, uint32_t v)
{
    uint8_t *p = xdr_reserve(o, 4);
    if (p)
        put_be32(p, v);
}

static inline void xdr_put_u64(struct xdr_out *o, uint64_t v)
{
    uint8_t *p = xdr_reserve(o, 8);
    if (p)
        put_be64(p, v);
}

/* Bytes without length or padding. */
void xdr_put_bytes(struct xdr_out *o, const void *data, size_t size_bytes);
/* opaque<>: length, bytes, zero padding. */
void xdr_put_opaque(struct xdr_out *o, const void *data, size_t size_bytes);
void xdr_put_string(struct xdr_out *o, const char *text); /* NULL as "" */
/* The buf's bytes belong here; shared. Copies them when there are too many inserts. */
void xdr_put_insert(struct xdr_out *o, struct buf *data);
/* opaque<> whose bytes are an insert. */
void xdr_put_opaque_insert(struct xdr_out *o, struct buf *data);
/* The bytes and inserts of `from`, which is empty afterwards. */
void xdr_append(struct xdr_out *o, struct xdr_out *from);
/* Overwrites a word written before. */
static inline void xdr_patch_u32(struct xdr_out *o, size_t at, uint32_t v)
{
    if (!o->failed)
        put_be32(o->buf->data + at, v);
}
static inline size_t xdr_total(const struct xdr_out *o)
{
    return o->size + o->insert_bytes;
}

struct xdr_in {
    uint8_t *at, *end;
    struct buf *buf; /* borrowed: what the bytes lie in, for slices; may be NULL (then slices are copies) */
    bool failed;
};

static inline struct xdr_in xdr_in_of(struct buf *b)
{
    return (struct xdr_in) { .at = b->data, .end = b->data + b->size, .buf = b };
}

static inline size_t xdr_left(const struct xdr_in *in)
{
    return (size_t)(in->end - in->at);
}

/* The next n bytes, or NULL. */
static inline uint8_t *xdr_get_bytes(struct xdr_in *in, size_t n)
{
    if (in->failed || xdr_left(in) < n) {
        in->failed = true;
        return NULL;
    }
    in->at += n;
    return in->at - n;
}

static inline uint32_t xdr_get_u32(struct xdr_in *in)
{
    const uint8_t *p = xdr_get_bytes(in, 4);
    return p ? get_be32(p) : 0;
}

static inline uint64_t xdr_get_u64(struct xdr_in *in)
{
    const uint8_t *p = xdr_get_bytes(in, 8);
    return p ? get_be64(p) : 0;
}

/* opaque<max>: its bytes (never NULL on success) and their number. */
uint8_t *xdr_get_opaque(struct xdr_in *in, size_t max_bytes, size_t *ret_size_bytes);
/* string<max> as a C string in place; a NUL inside is a failure. "" after a failure, never NULL. */
const char *xdr_get_string(struct xdr_in *in, size_t max_bytes);
/* opaque<> as a window on the message. Returned, NULL after a failure. */
struct buf *xdr_get_opaque_buf(struct xdr_in *in, size_t max_bytes);

/* ---- attributes: docs/protocol.md "iattx" and "iatt33" ---- */

#define IATTX_BYTES  148
#define IATT33_BYTES 100

void xdr_put_gfid(struct xdr_out *o, const struct gfid *g);
void xdr_get_gfid(struct xdr_in *in, struct gfid *ret_gfid);
void xdr_put_iattx(struct xdr_out *o, const struct iatt *a); /* mode 0: all zero */
void xdr_get_iattx(struct xdr_in *in, struct iatt *ret_iatt);
void xdr_put_iatt33(struct xdr_out *o, const struct iatt *a);
void xdr_get_iatt33(struct xdr_in *in, struct iatt *ret_iatt);

/* ---- dictionaries: docs/protocol.md "dictionaries" ---- */

/* gfx_dict of the 4.x program. `gfid_req`, if not NULL, is sent as one more pair "gfid-req". */
void xdr_put_xdict(struct xdr_out *o, const struct dict *d, const struct gfid *gfid_req);
/* A dict (returned, the caller's) or NULL for none. */
void xdr_get_xdict(struct xdr_in *in, struct dict **ret_dict);

/* Old serialisation, without the opaque<> around it: bytes of it, 0 for none. */
void xdr_put_odict(struct xdr_out *o, const struct dict *d);
/* From `size_bytes` of an opaque: 0 and a dict (returned; NULL for size 0), -EINVAL, -ENOMEM. `data` is changed. */
int odict_parse(uint8_t *data, size_t size_bytes, struct dict **ret_dict);
/* opaque<> that holds one. */
void xdr_put_odict_opaque(struct xdr_out *o, const struct dict *d);
void xdr_get_odict_opaque(struct xdr_in *in, size_t max_bytes, struct dict **ret_dict);
