#include "rpc/xdr_buf.h"

void xdr_out_init(struct xdr_out *o, size_t reserve_bytes)
{
    o->buf = buf_new(reserve_bytes);
    o->size = 0;
    o->failed = !o->buf;
    o->insert_count = 0;
    o->insert_bytes = 0;
}

void xdr_out_done(struct xdr_out *o)
{
    buf_unref(o->buf);
    o->buf = NULL;
    for (unsigned i = 0; i < o->insert_count; i++)
        buf_unref(o->inserts[i].data);
    o->insert_count = 0;
    o->insert_bytes = 0;
}

uint8_t *xdr_reserve_slow(struct xdr_out *o, size_t n)
{
    if (o->failed)
        return NULL;
    size_t have = o->buf ? o->buf->capacity : 0;
    struct buf *bigger = buf_new(MAX(have * 2, o->size + n + 256));
    if (!bigger) {
        o->failed = true;
        return NULL;
    }
    if (o->buf)
        memcpy(bigger->data, o->buf->data, o->size);
    buf_unref(o->buf);
    o->buf = bigger;
    o->size += n;
    return o->buf->data + o->size - n;
}

void xdr_put_bytes(struct xdr_out *o, const void *data, size_t size_bytes)
{
    uint8_t *p = xdr_reserve(o, size_bytes);
    if (p && size_bytes > 0)
        memcpy(p, data, size_bytes);
}

static size_t padding(size_t size_bytes)
{
    return -size_bytes & 3;
}

void xdr_put_opaque(struct xdr_out *o, const void *data, size_t size_bytes)
{
    uint8_t *p = xdr_reserve(o, 4 + size_bytes + padding(size_bytes));
    if (!p)
        return;
    put_be32(p, (uint32_t)size_bytes);
    if (size_bytes > 0)
        memcpy(p + 4, data, size_bytes);
    memset(p + 4 + size_bytes, 0, padding(size_bytes));
}

void xdr_put_string(struct xdr_out *o, const char *text)
{
    xdr_put_opaque(o, text, text ? strlen(text) : 0);
}

void xdr_put_insert(struct xdr_out *o, struct buf *data)
{
    if (o->failed || data->size == 0)
        return;
    if (o->insert_count == XDR_INSERTS_MAX) {
        xdr_put_bytes(o, data->data, data->size);
        return;
    }
    o->inserts[o->insert_count++] = (struct xdr_insert) { .at = o->size, .data = buf_ref(data) };
    o->insert_bytes += data->size;
}

void xdr_put_opaque_insert(struct xdr_out *o, struct buf *data)
{
    xdr_put_u32(o, (uint32_t)data->size);
    xdr_put_insert(o, data);
    xdr_put_bytes(o, "\0\0\0", padding(data->size));
}

void xdr_append(struct xdr_out *o, struct xdr_out *from)
{
    size_t at = 0;

    o->failed = o->failed || from->failed;
    for (unsigned i = 0; i < from->insert_count && !o->failed; i++) {
        xdr_put_bytes(o, from->buf->data + at, from->inserts[i].at - at);
        xdr_put_insert(o, from->inserts[i].data);
        at = from->inserts[i].at;
    }
    if (!o->failed)
        xdr_put_bytes(o, from->buf->data + at, from->size - at);
    xdr_out_done(from);
}

uint8_t *xdr_get_opaque(struct xdr_in *in, size_t max_bytes, size_t *ret_size_bytes)
{
    size_t size = xdr_get_u32(in);
    if (in->failed || size > max_bytes || size > xdr_left(in)) {
        in->failed = true;
        *ret_size_bytes = 0;
        return NULL;
    }
    uint8_t *p = xdr_get_bytes(in, size);
    (void)xdr_get_bytes(in, padding(size));
    *ret_size_bytes = size;
    return in->failed ? NULL : p;
}

/* Over the length word, see the header. size > 0. */
static char *terminate_in_place(uint8_t *p, size_t size)
{
    memmove(p - 1, p, size);
    p[size - 1] = 0;
    return (char *)p - 1;
}

const char *xdr_get_string(struct xdr_in *in, size_t max_bytes)
{
    size_t size;
    uint8_t *p = xdr_get_opaque(in, max_bytes, &size);
    if (!p || size == 0)
        return "";
    if (memchr(p, 0, size)) {
        in->failed = true;
        return "";
    }
    return terminate_in_place(p, size);
}

struct buf *xdr_get_opaque_buf(struct xdr_in *in, size_t max_bytes)
{
    size_t size;
    uint8_t *p = xdr_get_opaque(in, max_bytes, &size);
    if (!p)
        return NULL;
    struct buf *b = in->buf ? buf_slice(in->buf, (size_t)(p - in->buf->data), size) : buf_copy(p, size);
    if (!b)
        in->failed = true;
    return b;
}
