/* rpc/fops_internal.h - parts that requests (fops.c) and answers (fops_answer.c) share. */
#pragma once

#include "rpc/fops.h"

void fop_put_lock(struct xdr_out *o, const struct fop_lock *l);
void fop_get_lock(struct xdr_in *in, struct fop_lock *l);
void fop_put_data(struct xdr_out *o, struct buf *data, bool is_step);
struct buf *fop_get_data(struct xdr_in *in, struct buf *raw, bool is_step);
