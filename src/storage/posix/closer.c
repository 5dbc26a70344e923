/* storage/posix/closer.c - the last close of a removed inode frees its blocks. On most file systems that is a matter of
 * microseconds for a small file; with large files, or where freed blocks are discarded at once (ext4 without a journal),
 * it takes the disk's time. So it is watched: quick closes are made on the loop, slow ones in one job at a time on the
 * pool, as many as have come together meanwhile. */
#include "storage/posix/posix_internal.h"
#include <sys/statvfs.h>

#define SLOW_CLOSE_NS 60000      /* on average; a hand-over to the pool costs a third of that */
#define TIGHT_BYTES   (64 << 20) /* with less room above the reserve, who removes waits until it is really free */

struct close_job {
    struct translator *me;
    struct list files;
    uint64_t count, begun_ns;
};

static void note_duration(struct posix *s, uint64_t ns)
{
    s->close_ns = (s->close_ns * 7 + ns) / 8;
}

bool posix_frees_slowly(const struct posix *s)
{
    return s->close_ns > SLOW_CLOSE_NS;
}

bool posix_is_tight(struct posix *s)
{
    struct statvfs v;
    return fstatvfs(s->brick_fd, &v) < 0 || v.f_bfree * v.f_frsize < posix_reserve_bytes(s, &v) + TIGHT_BYTES;
}

static void close_all(void *arg)
{
    struct close_job *j = arg;
    struct pfile *f;
    list_for_each (f, &j->files, later)
        close(f->fd);
}

static void start_closing(struct translator *me);

static void closed_all(void *arg)
{
    struct close_job *j = arg;
    struct translator *me = j->me;
    struct posix *s = me->state;
    struct pfile *f;

    note_duration(s, (env_now_ns(me->env) - j->begun_ns) / j->count);
    while ((f = list_first(&j->files, struct pfile, later))) {
        list_del(&f->later);
        mem_free(f);
    }
    mem_free(j);
    s->is_closing = false;
    start_closing(me);
    if (!s->is_closing)
        (void)waitq_wake_all(&s->closed, 0);
}

static void start_closing(struct translator *me)
{
    struct posix *s = me->state;
    struct close_job *j;
    struct pfile *f;

    if (s->is_closing || list_empty(&s->to_close))
        return;
    j = NEW(struct close_job);
    if (j) {
        *j = (struct close_job) { .me = me, .begun_ns = env_now_ns(me->env) };
        list_init(&j->files);
        list_for_each (f, &s->to_close, later)
            j->count++;
        list_splice_tail(&j->files, &s->to_close);
        s->is_closing = env_pool_post(me->env, close_all, closed_all, j) == 0;
    }
    if (s->is_closing)
        return;
    if (j)
        list_splice_tail(&s->to_close, &j->files);
    mem_free(j);
    while ((f = list_first(&s->to_close, struct pfile, later))) {
        list_del(&f->later);
        close(f->fd);
        mem_free(f);
    }
}

void pfile_close_removed(struct translator *me, struct pfile *f, bool is_large)
{
    struct posix *s = me->state;

    if (!f || f->refs > 1) {
        pfile_unref(f);
        return;
    }
    if (s->is_stopping || (!is_large && !posix_frees_slowly(s))) {
        uint64_t begun = env_now_ns(me->env);
        pfile_unref(f);
        note_duration(s, env_now_ns(me->env) - begun);
        return;
    }
    list_add_tail(&s->to_close, &f->later);
    start_closing(me);
}

FIBER void posix_wait_closed(struct translator *me)
{
    struct posix *s = me->state;
    while (s->is_closing)
        (void)waitq_wait(&s->closed, NULL); /* closing ends by itself */
}
