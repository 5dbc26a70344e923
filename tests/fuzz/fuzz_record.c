/* Bytes of a connection: records, fragments, heads of calls and replies. The first byte says how they are chopped. */
#include "rpc/record.h"

static ssize_t peek(void *arg, const uint8_t *head, size_t have)
{
    ssize_t n = rpc_write_head_bytes(head, have);

    return n != 0 ? n : rpc_read_reply_head_bytes(head, have);
}

static void use(struct record *m)
{
    struct xdr_in in = xdr_in_of(m->head);
    struct rpc_call_head head;

    (void)xdr_get_u32(&in);
    if (xdr_get_u32(&in) == 0)
        (void)rpc_get_call_head(&in, &head);
    else
        (void)rpc_get_reply_head(&in);
    record_done(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct record_reader r;
    struct iovec iov[2];
    size_t at = 1, step = size ? (size_t)data[0] + 1 : 1;
    struct record m;
    int result = 0;

    if (size < 2 || record_reader_init(&r, 1024 * 1024, peek, NULL) < 0)
        return 0;
    while (at < size && result >= 0) {
        int count = record_reader_space(&r, iov);
        size_t n = 0;
        for (int i = 0; i < count && at < size && n < step; i++) {
            size_t wanted = MIN(iov[i].iov_len, step - n), part = MIN(wanted, size - at);
            memcpy(iov[i].iov_base, data + at, part);
            at += part;
            n += part;
        }
        record_reader_got(&r, n);
        while ((result = record_reader_next(&r, &m)) > 0)
            use(&m);
    }
    record_reader_done(&r);
    return 0;
}
