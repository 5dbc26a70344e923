#include "rpc/rpcgen_bridge.h"

void rpcgen_put(struct xdr_out *o, xdrproc_t proc, void *value)
{
    XDR xdrs;
    size_t size = xdr_sizeof(proc, value);
    uint8_t *p = xdr_reserve(o, size);

    if (!p)
        return;
    xdrmem_create(&xdrs, (char *)p, (u_int)size, XDR_ENCODE);
    if (!proc(&xdrs, value))
        o->failed = true;
    xdr_destroy(&xdrs);
}

int rpcgen_get(struct xdr_in *in, xdrproc_t proc, void *ret)
{
    XDR xdrs;

    if (in->failed || xdr_left(in) > INT32_MAX)
        return -EBADMSG;
    xdrmem_create(&xdrs, (char *)in->at, (u_int)xdr_left(in), XDR_DECODE);
    bool is_good = proc(&xdrs, ret);
    u_int used = xdr_getpos(&xdrs);
    xdr_destroy(&xdrs);
    if (!is_good) {
        xdr_free(proc, ret);
        in->failed = true;
        return -EBADMSG;
    }
    in->at += used;
    return 0;
}
