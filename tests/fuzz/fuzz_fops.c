/* Bodies of file operations. Byte 0: procedure; byte 1: request or answer, alone or as a step. */
#include "core/mem.h"
#include "rpc/block_sums.h"
#include "rpc/fops.h"

static void check_request(struct xdr_in *in, enum fop_proc proc, bool is_step)
{
    struct fop_request w;
    struct xdr_out o;

    if (fop_get_request(in, proc, NULL, is_step, &w) < 0)
        return;
    if (proc == FOP_BLOCKSUMS) {
        SCOPED_FREE struct block_question *k = NEW(struct block_question);
        if (k && block_question_get(w.data, k) == 0)
            buf_unref(block_question_put(k));
    }
    xdr_out_init(&o, 64);
    fop_put_request(&o, &w, is_step);
    xdr_out_done(&o);
    fop_request_done(&w);
}

static void check_answer(struct xdr_in *in, enum fop_proc proc, bool is_step)
{
    struct reply *r = reply_new();
    struct fop_answer a = { .r = r };
    struct xdr_out o;

    if (r && fop_get_answer(in, proc, NULL, is_step, &a) == 0) {
        xdr_out_init(&o, 64);
        fop_put_answer(&o, proc, &a, is_step);
        xdr_out_done(&o);
    }
    reply_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct buf *b = buf_copy(data + 2, size - 2);
    if (!b)
        return 0;
    struct xdr_in in = xdr_in_of(b);
    enum fop_proc proc = data[0] % FOP_PROC_COUNT;
    bool is_step = data[1] & 2;
    if (data[1] & 1)
        check_request(&in, proc, is_step);
    else
        check_answer(&in, proc, is_step);
    buf_unref(b);
    return 0;
}
