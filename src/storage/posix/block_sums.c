/* storage/posix/block_sums.c - blocksums: sums of many blocks in one pool job (rpc/block_sums.h). Holes are not read. */
#include "rpc/block_sums.h"
#include "storage/posix/posix_internal.h"

#define READ_STEP_BYTES (1u << 20)

struct sums_job {
    int fd;
    struct block_question k;
    struct buf *answer;
    uint8_t *data; /* READ_STEP_BYTES */
    uint64_t size_bytes;
    uint64_t data_at, data_end; /* the data extent that begins at or after the block under work */
    uint32_t block;             /* its number */
    int r;
};

/* Finds the first data at or after `from`; UINT64_MAX when there is none. */
static int find_data(struct sums_job *j, uint64_t from)
{
    off_t at = lseek(j->fd, (off_t)from, SEEK_DATA);

    if (at < 0 && errno == ENXIO) {
        j->data_at = j->data_end = UINT64_MAX;
        return 0;
    }
    if (at < 0)
        return -errno;
    j->data_at = (uint64_t)at;
    at = lseek(j->fd, at, SEEK_HOLE);
    j->data_end = at < 0 ? j->size_bytes : (uint64_t)at; /* it was cut short meanwhile */
    return 0;
}

/* Reads what there is and zeros for what there is not. */
static int read_padded(struct sums_job *j, uint64_t offset, size_t size)
{
    size_t got = 0;

    while (got < size) {
        ssize_t n = pread(j->fd, j->data + got, size - got, (off_t)(offset + got));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        got += (size_t)n;
    }
    memset(j->data + got, 0, size - got);
    return 0;
}

/* The blocks of [offset, offset + size), all of them in an extent of data. */
static int sum_data(struct sums_job *j, struct block_summer *summer, uint64_t offset, size_t size)
{
    int r = read_padded(j, offset, size);

    for (size_t at = 0; at < size && r == 0; at += j->k.block_bytes)
        r = block_sum(summer, j->data + at, j->k.block_bytes, block_answer_sum(j->answer, j->block++));
    return r;
}

static int sum_range(struct sums_job *j, struct block_summer *summer, const struct block_range *range)
{
    uint64_t at = range->offset, end = range->offset + range->size;
    uint32_t mask = j->k.block_bytes - 1;
    int r = 0;

    while (at < end && r == 0) {
        if (at >= j->data_end || j->data_at == 0)
            r = find_data(j, at);
        if (r < 0)
            break;
        uint64_t first = MIN(end, j->data_at & ~(uint64_t)mask);
        if (at < first) { /* whole blocks of hole: the answer says so already */
            j->block += (uint32_t)((first - at) / j->k.block_bytes);
            at = first;
            continue;
        }
        uint64_t stop = j->data_end > UINT64_MAX - mask ? end : MIN(end, (j->data_end + mask) & ~(uint64_t)mask);
        size_t size = (size_t)MIN(stop - at, (uint64_t)READ_STEP_BYTES);
        r = sum_data(j, summer, at, size);
        at += size;
    }
    return r;
}

static void sum_on_pool(void *arg)
{
    struct sums_job *j = arg;
    struct block_summer *summer = block_summer_new(j->k.key);
    struct stat st;

    j->r = !summer ? -ENOMEM : fstat(j->fd, &st) < 0 ? -errno : 0;
    if (j->r == 0)
        j->size_bytes = (uint64_t)st.st_size;
    for (uint32_t i = 0; i < j->k.range_count && j->r == 0; i++) {
        j->data_at = j->data_end = 0;
        j->r = sum_range(j, summer, &j->k.ranges[i]);
    }
    if (j->r == 0) {
        const struct block_range *last = &j->k.ranges[j->k.range_count - 1];

        j->r = find_data(j, last->offset + last->size);
    }
    block_summer_free(summer);
}

static struct sums_job *job_new(const struct request *q, int fd, int *ret_error)
{
    struct sums_job *j = NEW(struct sums_job);

    *ret_error = -ENOMEM;
    if (!j)
        return NULL;
    *ret_error = block_question_get(q->data, &j->k);
    if (*ret_error == 0) {
        j->fd = fd;
        j->answer = block_answer_new((uint32_t)block_question_count(&j->k));
        j->data = mem_alloc(READ_STEP_BYTES);
        *ret_error = j->answer && j->data ? 0 : -ENOMEM;
    }
    return j;
}

static void job_free(struct sums_job *j)
{
    if (!j)
        return;
    buf_unref(j->answer);
    mem_free(j->data);
    mem_free(j);
}
DEFINE_SCOPED(job_free, struct sums_job)

FIBER int posix_blocksums(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct posix *s = me->state;
    SCOPED(pfile_unref) struct pfile *f = NULL;
    struct pnode *n = pnode_of(me, q->inode);
    int e = n ? pnode_of_request(me, q, &f) : -ENOMEM;

    if (e < 0)
        return e;
    if (f->type != S_IFREG || f->is_path)
        return -EINVAL;
    SCOPED(job_free) struct sums_job *j = job_new(q, f->fd, &e);
    if (e < 0)
        return e;
    s->pool_ops++;
    env_pool_run(me->env, sum_on_pool, j);
    if (j->r < 0)
        return j->r;
    block_answer_head(j->answer, j->size_bytes, j->data_at);
    e = pfile_iatt(s, n, f, &r->stat);
    if (e < 0)
        return e;
    r->data = take(j->answer);
    return (int)r->data->size;
}
