/* rpc/rpcgen_bridge.h - structs that rpcgen made (handshake.x), through our buffers.
 *
 * For what is rare: the xdr_ functions take memory for every string. Release what was read with RPCGEN_FREE. Lists are
 * for writing only: reading them recurses once per element, and stacks are small.
 */
#pragma once

#include "rpc/xdr_buf.h"
#include <rpc/types.h>
#include <rpc/xdr.h>

/* libtirpc has macros of these names; ours are core/mem.h's functions. */
#undef mem_alloc
#undef mem_free

#define RPCGEN_PUT(o, type, value) rpcgen_put((o), (xdrproc_t)(void (*)(void))xdr_##type, (1 ? (value) : (type *)0))
#define RPCGEN_GET(in, type, ret)  rpcgen_get((in), (xdrproc_t)(void (*)(void))xdr_##type, (1 ? (ret) : (type *)0))
#define RPCGEN_FREE(type, value)   xdr_free((xdrproc_t)(void (*)(void))xdr_##type, (1 ? (value) : (type *)0))

void rpcgen_put(struct xdr_out *o, xdrproc_t proc, void *value);
/* `ret` must be zeroed. 0 or -EBADMSG (then nothing is to be released). */
int rpcgen_get(struct xdr_in *in, xdrproc_t proc, void *ret);
