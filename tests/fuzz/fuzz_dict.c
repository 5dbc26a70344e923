/* Both serialisations of dicts, and the handshake messages around the old one. Byte 0 says which. */
#include "rpc/handshake.h"
#include "rpc/rpcgen_bridge.h"

static void check_old(uint8_t *data, size_t size)
{
    struct dict *d = NULL;
    struct xdr_out o;

    if (odict_parse(data, size, &d) == 0) {
        xdr_out_init(&o, 64);
        xdr_put_odict(&o, d);
        xdr_out_done(&o);
    }
    dict_unref(d);
}

static void check_typed(struct xdr_in *in)
{
    struct dict *d = NULL;
    struct xdr_out o;

    xdr_get_xdict(in, &d);
    xdr_out_init(&o, 64);
    xdr_put_xdict(&o, d, NULL);
    xdr_out_done(&o);
    dict_unref(d);
}

#define CHECK_RPCGEN(in, type)                    \
    do {                                          \
        struct type value_ = { 0 };               \
        if (RPCGEN_GET((in), type, &value_) == 0) \
            RPCGEN_FREE(type, &value_);           \
    } while (0)

static void check_handshake(struct xdr_in *in, unsigned which)
{
    switch (which) {
    case 2: CHECK_RPCGEN(in, wire_common_rsp); break;
    case 3: CHECK_RPCGEN(in, wire_getspec_req); break;
    case 4: CHECK_RPCGEN(in, wire_getspec_rsp); break;
    case 5: CHECK_RPCGEN(in, wire_cache_invalidation); break;
    case 6: CHECK_RPCGEN(in, wire_inodelk_contention); break;
    default: CHECK_RPCGEN(in, wire_entrylk_contention); break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    struct buf *b = buf_copy(data + 1, size - 1);
    if (!b)
        return 0;
    struct xdr_in in = xdr_in_of(b);
    unsigned which = data[0] % 8;
    if (which == 0)
        check_old(b->data, b->size);
    else if (which == 1)
        check_typed(&in);
    else
        check_handshake(&in, which);
    buf_unref(b);
    return 0;
}
