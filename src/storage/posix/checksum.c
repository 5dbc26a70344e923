/* storage/posix/checksum.c - rchecksum: two sums of a range, by which heal tells equal blocks without moving them. */
#include "rpc/block_sums.h"
#include "storage/posix/posix_internal.h"

#define RANGE_BYTES_MAX (8u << 20)

struct sum_job {
    int fd;
    uint64_t offset;
    size_t size;
    bool sha256;
    uint8_t *data;
    ssize_t n;
    struct range_sums sums;
    bool all_zero;
};

static void sum_on_pool(void *arg)
{
    struct sum_job *j = arg;
    j->n = pread(j->fd, j->data, j->size, (off_t)j->offset);
    if (j->n < 0) {
        j->n = -errno;
        return;
    }
    size_t size = (size_t)j->n;
    j->all_zero = size > 0 && j->data[0] == 0 && memcmp(j->data, j->data + 1, size - 1) == 0;
    int r = range_sums_of(j->data, size, j->sha256, &j->sums);
    if (r < 0)
        j->n = r;
}

FIBER int posix_rchecksum(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct posix *s = me->state;
    SCOPED(pfile_unref) struct pfile *f = NULL;
    int e = pnode_of_request(me, q, &f);
    if (e < 0)
        return e;
    if (f->type != S_IFREG || f->is_path)
        return -EINVAL;
    if (q->size == 0 || q->size > RANGE_BYTES_MAX)
        return -EINVAL;
    SCOPED(buf_unref) struct buf *b = buf_new((size_t)q->size);
    SCOPED_FREE struct sum_job *j = NEW(struct sum_job);
    if (!b || !j)
        return -ENOMEM;
    *j = (struct sum_job) {
        .fd = f->fd, .offset = q->offset, .size = (size_t)q->size, .sha256 = s->fips_rchecksum, .data = b->data
    };
    env_pool_run(me->env, sum_on_pool, j);
    if (j->n < 0)
        return (int)j->n;
    if (dict_has(q->xdata, "check-zero-filled"))
        e = dict_put_uint(&r->xdata, "buf-has-zeroes", j->all_zero);
    if (e == 0 && s->fips_rchecksum)
        e = dict_put_uint(&r->xdata, "fips-mode-rchecksum", 1);
    r->weak_checksum = j->sums.weak;
    memcpy(r->strong_checksum, j->sums.strong, sizeof r->strong_checksum);
    return e;
}
