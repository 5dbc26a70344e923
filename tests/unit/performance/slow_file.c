#include "unit/performance/slow_file.h"
#include <fcntl.h>

uint64_t slow_random(struct slow_file *f)
{
    f->random ^= f->random << 13;
    f->random ^= f->random >> 7;
    f->random ^= f->random << 17;
    return f->random;
}

static FIBER void take_a_while(struct slow_file *f)
{
    if (f->delay_max_ms)
        (void)fiber_sleep_ms(NULL, slow_random(f) % (f->delay_max_ms + 1));
}

static void fill_stat(const struct slow_file *f, const struct request *q, struct iatt *a)
{
    memset(a, 0, sizeof(*a));
    a->gfid = q->inode ? q->inode->gfid : test_gfid(3);
    a->mode = S_IFREG | 0644;
    a->size = f->size;
    a->mtime = a->ctime = (int64_t)f->changes;
}

static FIBER int slow_write(struct leaf *leaf, struct call *call, const struct request *q, struct reply *r)
{
    struct slow_file *f = leaf->arg;
    (void)call;
    f->writes++;
    f->in_flight++;
    f->most_in_flight = MAX(f->most_in_flight, f->in_flight);
    take_a_while(f);
    f->in_flight--;
    if (f->fail_next) {
        int err = f->fail_next;
        f->fail_next = 0;
        return -err;
    }
    uint64_t n = q->data->size;
    if (f->writes_short && n > 1 && slow_random(f) % 4 == 0)
        n = n / 2;
    uint64_t at = q->fd && (q->fd->flags & O_APPEND) ? f->size : q->offset;
    assert_true(at + n <= SLOW_BYTES);
    memcpy(f->data + at, q->data->data, n);
    f->size = MAX(f->size, at + n);
    f->changes++;
    fill_stat(f, q, &r->post);
    return (int)n;
}

static FIBER int slow_read(struct leaf *leaf, struct call *call, const struct request *q, struct reply *r)
{
    struct slow_file *f = leaf->arg;
    (void)call;
    f->reads++;
    uint64_t n = q->offset >= f->size ? 0 : MIN(q->size, f->size - q->offset);
    r->data = buf_copy(f->data + MIN(q->offset, (uint64_t)SLOW_BYTES), n);
    fill_stat(f, q, &r->stat);
    take_a_while(f);
    return (int)n;
}

static FIBER int slow_stat(struct leaf *leaf, struct call *call, const struct request *q, struct reply *r)
{
    (void)call;
    fill_stat(leaf->arg, q, &r->stat);
    take_a_while(leaf->arg);
    return 0;
}

static FIBER int slow_truncate(struct leaf *leaf, struct call *call, const struct request *q, struct reply *r)
{
    struct slow_file *f = leaf->arg;
    (void)call;
    take_a_while(f);
    if (q->offset < f->size)
        memset(f->data + q->offset, 0, f->size - q->offset);
    f->size = q->offset;
    f->changes++;
    fill_stat(f, q, &r->post);
    return 0;
}

static FIBER int slow_fsync(struct leaf *leaf, struct call *call, const struct request *q, struct reply *r)
{
    struct slow_file *f = leaf->arg;
    (void)call;
    f->fsyncs++;
    take_a_while(f);
    fill_stat(f, q, &r->post);
    return 0;
}

static FIBER int slow_flush(struct leaf *leaf, struct call *call, const struct request *q, struct reply *r)
{
    (void)call;
    (void)q;
    (void)r;
    ((struct slow_file *)leaf->arg)->flushes++;
    return 0;
}

void slow_file_init(struct slow_file *f, struct test *t, uint64_t seed)
{
    memset(f, 0, sizeof(*f));
    f->random = seed * 0x9e3779b97f4a7c15u + 1;
    t->leaf->arg = f;
    t->leaf->answers[OP_WRITE] = slow_write;
    t->leaf->answers[OP_READ] = slow_read;
    t->leaf->answers[OP_STAT] = slow_stat;
    t->leaf->answers[OP_LOOKUP] = slow_stat;
    t->leaf->answers[OP_TRUNCATE] = slow_truncate;
    t->leaf->answers[OP_FSYNC] = slow_fsync;
    t->leaf->answers[OP_FLUSH] = slow_flush;
}
