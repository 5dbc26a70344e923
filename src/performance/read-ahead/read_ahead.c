/* performance/read-ahead - see read_ahead.h. */
#include "performance/read-ahead/read_ahead.h"
#include "core/mem.h"
#include "graph/graph.h"
#include <fcntl.h>
#include <inttypes.h>

#define PAGE_MAX_AGE_NS ((uint64_t)1000000000)

struct read_ahead {
    uint64_t page_bytes;
    uint32_t page_count;
    bool updates_atime;
    bool passes_through;

    uint64_t locks;      /* granted so far: pages asked for before the last one are dead */
    uint32_t background; /* fibers at work */
    struct waitq idle;   /* stop waits here for the last one */
    uint64_t pages, hits, misses, dropped;
};

/* Slot of an inode: what its pages are measured by. */
struct known_inode {
    uint64_t generation; /* pages of another one are dead */
    bool has_seen;
    uint64_t size; /* as last seen in a reply, with the times */
    int64_t mtime, ctime;
    uint32_t mtime_nsec, ctime_nsec;
};

struct page {
    struct list of_reader;
    uint32_t refs; /* the reader's list, the fetching fiber, fibers that wait for it */
    uint64_t offset, size;
    uint64_t generation;
    uint64_t locks;    /* read_ahead.locks when it was asked for */
    uint64_t began_ns; /* the data is at least as young */
    struct waitq ready;
    bool is_ready;
    int result; /* bytes, or negative errno */
    struct buf *data;
    struct iatt stat;
};

/* Slot of a descriptor. */
struct reader {
    struct list pages; /* by offset, without gaps */
    uint64_t expected; /* where a sequential read goes on */
    uint32_t streak;   /* sequential reads so far */
};

static const struct option read_ahead_options[] = {
    OPT_SIZE("page-size", struct read_ahead, page_bytes, .def = "131072", .min = 4096, .max = 67108864, .live = true,
             .help = "bytes asked for at once"),
    OPT_U32("page-count", struct read_ahead, page_count, .def = "4", .min = 1, .max = 16, .live = true,
            .help = "pages asked for ahead"),
    OPT_BOOL("force-atime-update", struct read_ahead, updates_atime, .def = "false", .live = true,
             .help = "reads that are served from a page still touch the file's access time"),
    OPT_BOOL("pass-through", struct read_ahead, passes_through, .def = "false", .live = true,
             .help = "fetch nothing ahead"),
    OPT_IGNORED("read-ahead", .help = "leave the translator out, or use pass-through"),
    OPT_END,
};

/* ---- what is known of inodes ---- */

static struct known_inode *known_find(struct translator *me, struct inode *inode)
{
    return inode ? *inode_ctx(inode, me) : NULL;
}

static struct known_inode *known_get(struct translator *me, struct inode *inode)
{
    void **slot = inode_ctx(inode, me);
    if (!*slot)
        *slot = NEW(struct known_inode);
    return *slot;
}

static void invalidate(struct translator *me, struct inode *inode)
{
    struct known_inode *k = known_find(me, inode);
    if (k)
        k->generation++;
}

/* Remembers attributes from a reply; others than before mean that the file changed. */
static void note_attributes(struct translator *me, struct inode *inode, const struct iatt *a)
{
    struct known_inode *k = known_find(me, inode);

    if (!k || !iatt_is_set(a))
        return;
    if (k->has_seen && (k->size != a->size || k->mtime != a->mtime || k->ctime != a->ctime ||
                        k->mtime_nsec != a->mtime_nsec || k->ctime_nsec != a->ctime_nsec))
        k->generation++;
    k->has_seen = true;
    k->size = a->size;
    k->mtime = a->mtime;
    k->mtime_nsec = a->mtime_nsec;
    k->ctime = a->ctime;
    k->ctime_nsec = a->ctime_nsec;
}

/* ---- pages ---- */

static void page_unref(struct page *p)
{
    if (--p->refs > 0)
        return;
    buf_unref(p->data);
    mem_free(p);
}

static void page_drop(struct page *p)
{
    list_del(&p->of_reader);
    page_unref(p);
}

static void pages_drop(struct translator *me, struct reader *f)
{
    struct read_ahead *s = me->state;

    struct page *p;

    list_for_each (p, &f->pages, of_reader) {
        s->dropped++;
        page_drop(p);
    }
}

static struct page *page_at(struct reader *f, uint64_t offset)
{
    struct page *p;

    list_for_each (p, &f->pages, of_reader)
        if (p->offset <= offset && offset < p->offset + p->size)
            return p;
    return NULL;
}

static bool page_is_good(struct translator *me, const struct page *p, const struct known_inode *k)
{
    const struct read_ahead *s = me->state;

    return p->is_ready && p->result >= 0 && p->generation == k->generation && p->locks == s->locks &&
           env_now_ns(me->env) - p->began_ns <= PAGE_MAX_AGE_NS;
}

/* ---- fetching ---- */

struct fetch {
    struct translator *me;
    struct call call;
    struct client *client;
    struct fd *fd;
    struct page *page; /* NULL: only to touch the access time */
    uint64_t offset, size;
};

static void fetch_free(struct fetch *f)
{
    if (f->page)
        page_unref(f->page);
    call_done(&f->call);
    client_unref(f->client);
    fd_unref(f->fd);
    mem_free(f);
}

static void page_fill(struct translator *me, struct fd *fd, struct page *p, int result, struct reply *r)
{
    struct known_inode *k = known_find(me, fd->inode);

    p->is_ready = true;
    p->result = result;
    if (result >= 0) {
        p->data = take(r->data);
        p->stat = r->stat;
        if (k && p->generation == k->generation) {
            note_attributes(me, fd->inode, &r->stat);
            p->generation = k->generation; /* it is as new as what it told */
        }
    }
    waitq_wake_all(&p->ready, 0);
}

static void fetch_fiber(void *arg)
{
    struct fetch *f = arg;
    struct translator *me = f->me;
    struct read_ahead *s = me->state;
    struct reply *r = reply_new();
    int result = r ? child_read(me, 0, &f->call, f->fd->inode, f->fd, f->size, f->offset, r) : -ENOMEM;

    if (f->page)
        page_fill(me, f->fd, f->page, result, r);
    reply_free(r);
    fetch_free(f);
    if (--s->background == 0)
        waitq_wake_all(&s->idle, 0);
}

/* Reads in the background; the page (may be NULL) is shared. */
static int fetch_start(struct translator *me, const struct call *call, struct fd *fd, struct page *page,
                       uint64_t offset, uint64_t size)
{
    struct read_ahead *s = me->state;
    struct fetch *f = NEW(struct fetch);

    if (!f)
        return -ENOMEM;
    f->me = me;
    call_copy(&f->call, call);
    f->call.scope.deadline_ns = 0;
    f->client = call->client ? client_ref(call->client) : NULL;
    f->fd = fd_ref(fd);
    f->offset = offset;
    f->size = size;
    if (page) {
        page->refs++;
        f->page = page;
    }
    int r = call_own_groups(&f->call);
    if (r == 0)
        r = fiber_spawn(me->env, "read-ahead", fetch_fiber, f);
    if (r < 0) {
        fetch_free(f);
        return r;
    }
    s->background++;
    return 0;
}

static int page_add(struct translator *me, const struct call *call, struct fd *fd, struct reader *f, uint64_t offset,
                    uint64_t size, const struct known_inode *k)
{
    struct page *p = NEW(struct page);
    if (!p)
        return -ENOMEM;
    p->refs = 1;
    p->offset = offset;
    p->size = size;
    p->generation = k->generation;
    p->locks = ((struct read_ahead *)me->state)->locks;
    p->began_ns = env_now_ns(me->env);
    waitq_init(&p->ready);
    list_init(&p->of_reader);
    int r = fetch_start(me, call, fd, p, offset, size);
    if (r < 0) {
        page_unref(p);
        return r;
    }
    list_add_tail(&f->pages, &p->of_reader);
    ((struct read_ahead *)me->state)->pages++;
    return 0;
}

static uint32_t count_pages(const struct reader *f)
{
    uint32_t n = 0;
    for (const struct list *at = f->pages.next; at != &f->pages; at = at->next)
        n++;
    return n;
}

/* Asks for what comes after the last page, one page more with every sequential read. */
static void fetch_ahead(struct translator *me, const struct call *call, const struct request *q, struct reader *f,
                        const struct known_inode *k)
{
    struct read_ahead *s = me->state;
    uint32_t depth = MIN(s->page_count, f->streak), count = count_pages(f);
    uint64_t size = MAX(s->page_bytes, q->size);
    uint64_t next = f->expected;

    if (count) {
        const struct page *last = list_entry(f->pages.prev, struct page, of_reader);
        next = last->offset + last->size;
    }
    for (; count < depth; count++, next += size) {
        if (next > INT64_MAX - size || (k->has_seen && next >= k->size) ||
            page_add(me, call, q->fd, f, next, size, k) < 0)
            return;
    }
}

/* ---- reading ---- */

/* Waits until the pages under [offset, end) are there. False: some are not even asked for, or the wait ended. */
static FIBER bool wait_for_pages(struct call *call, struct reader *f, uint64_t offset, uint64_t end)
{
    for (uint64_t at = offset; at < end;) {
        struct page *p = page_at(f, at);
        if (!p)
            return false;
        uint64_t next = p->offset + p->size;
        if (!p->is_ready) {
            p->refs++;
            int r = waitq_wait(&p->ready, &call->scope);
            page_unref(p);
            if (r < 0)
                return false;
            next = offset; /* all may have changed meanwhile */
        }
        at = next;
    }
    return true;
}

/* Copies the range from several pages. */
static struct buf *assemble(struct reader *f, uint64_t offset, uint64_t size)
{
    struct buf *b = buf_new(size);

    for (uint64_t done = 0; b && done < size;) {
        const struct page *p = page_at(f, offset + done);
        uint64_t skip = offset + done - p->offset, n = MIN(p->size - skip, size - done);
        memcpy(b->data + done, p->data->data + skip, n);
        done += n;
    }
    return b;
}

/* The whole read from pages, if they are all there, good and full: bytes, else 0. Does not wait. */
static int serve(struct translator *me, const struct request *q, struct reader *f, const struct known_inode *k,
                 struct reply *r)
{
    uint64_t end = q->offset + q->size;
    struct page *first = page_at(f, q->offset), *last = first, *p;

    for (uint64_t at = q->offset; at < end; at = p->offset + p->size, last = p) {
        p = page_at(f, at);
        if (!p || !page_is_good(me, p, k) || !p->data || p->data->size < MIN(p->size, end - p->offset))
            return 0;
    }
    if (!first)
        return 0;
    struct buf *data = end <= first->offset + first->size ? buf_slice(first->data, q->offset - first->offset, q->size)
                                                          : assemble(f, q->offset, q->size);
    if (!data)
        return 0;
    r->data = data;
    r->stat = last->stat;
    list_for_each (p, &f->pages, of_reader)
        if (p->offset + p->size <= end)
            page_drop(p); /* read: not kept */
    return (int)q->size;
}

static struct reader *reader_get(struct translator *me, struct fd *fd)
{
    void **slot = fd_ctx(fd, me);
    struct reader *f = *slot;

    if (f)
        return f;
    f = NEW(struct reader);
    if (!f)
        return NULL;
    list_init(&f->pages);
    *slot = f;
    return f;
}

static FIBER int read_plainly(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    int result = child_call(me, 0, call, q, r);
    if (result >= 0)
        note_attributes(me, q->inode, &r->stat);
    return result;
}

static FIBER int read_ahead_read(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct read_ahead *s = me->state;

    if (s->passes_through || !q->fd || q->size == 0 || q->size > INT32_MAX || q->offset > INT64_MAX - q->size ||
        ((q->fd->flags | q->flags) & O_DIRECT) || dict_count(q->xdata) > 0)
        return read_plainly(me, call, q, r);
    struct reader *f = reader_get(me, q->fd);
    struct known_inode *k = known_get(me, q->inode);
    if (!f || !k)
        return read_plainly(me, call, q, r);

    int result = 0;
    if (q->offset != f->expected) {
        pages_drop(me, f);
        f->streak = 0;
    } else if (wait_for_pages(call, f, q->offset, q->offset + q->size)) {
        result = serve(me, q, f, k, r);
    }
    if (result > 0) {
        s->hits++;
        if (s->updates_atime)
            (void)fetch_start(me, call, q->fd, NULL, q->offset, 1); /* without memory the time stays older */
    } else {
        s->misses++;
        pages_drop(me, f);
        result = read_plainly(me, call, q, r);
    }
    if (result < 0)
        return result;
    f->expected = q->offset + (uint64_t)result;
    f->streak++;
    if ((uint64_t)result == q->size)
        fetch_ahead(me, call, q, f, k);
    return result;
}

/* ---- operations that change or show something ---- */

static FIBER int read_ahead_change(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    int result = child_call(me, 0, call, q, r);

    /* Also after a failure: part may have been done. */
    invalidate(me, q->inode);
    invalidate(me, q->inode2);
    if (result >= 0)
        note_attributes(me, q->inode, &r->post);
    return result;
}

static FIBER int read_ahead_open(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    int result = child_call(me, 0, call, q, r);
    if (q->flags & O_TRUNC)
        invalidate(me, q->inode);
    return result;
}

/* What the lock protects may be another file. */
static FIBER int read_ahead_lk(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    int result = child_call(me, 0, call, q, r);
    if (q->command != LOCK_GET && q->command != LOCK_UNLOCK)
        ((struct read_ahead *)me->state)->locks++;
    return result;
}

static FIBER int read_ahead_show(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    int result = child_call(me, 0, call, q, r);
    if (result < 0)
        return result;
    SCOPED(inode_unref) struct inode *found = inode_table_find(me->graph, &r->stat.gfid);
    note_attributes(me, found, &r->stat);
    return result;
}

/* setattr and fsync: no change of data, but the attributes tell. */
static FIBER int read_ahead_post(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    int result = child_call(me, 0, call, q, r);
    if (result >= 0)
        note_attributes(me, q->inode, &r->post);
    return result;
}

/* ---- life cycle ---- */

static int read_ahead_init(struct translator *me, struct error *err UNUSED)
{
    waitq_init(&((struct read_ahead *)me->state)->idle);
    return 0;
}

static FIBER void read_ahead_stop(struct translator *me)
{
    struct read_ahead *s = me->state;

    while (s->background)
        (void)waitq_wait(&s->idle, NULL); /* reads end by themselves */
}

static void invalidate_each(struct inode *inode, void *arg)
{
    invalidate(arg, inode);
}

static void read_ahead_notify(struct translator *me, unsigned child UNUSED, const struct event *event)
{
    if (event->kind == EVENT_INVALIDATE) {
        SCOPED(inode_unref) struct inode *inode = inode_table_find(me->graph, &event->gfid);
        invalidate(me, inode);
        if (gfid_is_null(&event->gfid))
            inode_table_each(me->graph, invalidate_each, me);
    }
    notify_parents(me, event);
}

static void read_ahead_fd_release(struct translator *me, struct fd *fd UNUSED, void *ctx)
{
    struct reader *f = ctx;

    pages_drop(me, f);
    mem_free(f);
}

static void read_ahead_inode_forget(struct translator *me UNUSED, struct inode *inode UNUSED, void *ctx)
{
    mem_free(ctx);
}

static void read_ahead_dump(struct translator *me, struct dump *out)
{
    struct read_ahead *s = me->state;

    dump_printf(out, "page_size", "%" PRIu64, s->page_bytes);
    dump_printf(out, "page_count", "%u", s->page_count);
    dump_printf(out, "force_atime_update", "%d", s->updates_atime);
    dump_printf(out, "pages", "fetched=%" PRIu64 " hits=%" PRIu64 " misses=%" PRIu64 " dropped=%" PRIu64, s->pages,
                s->hits, s->misses, s->dropped);
}

const struct translator_class read_ahead_class = {
    .type = "performance/read-ahead",
    .state_size = sizeof(struct read_ahead),
    .options = read_ahead_options,
    .ops = {
        [OP_LOOKUP] = read_ahead_show,
        [OP_STAT] = read_ahead_show,
        [OP_OPEN] = read_ahead_open,
        [OP_READ] = read_ahead_read,
        [OP_WRITE] = read_ahead_change,
        [OP_TRUNCATE] = read_ahead_change,
        [OP_FALLOCATE] = read_ahead_change,
        [OP_COPY_RANGE] = read_ahead_change,
        [OP_FSYNC] = read_ahead_post,
        [OP_SETATTR] = read_ahead_post,
        [OP_LK] = read_ahead_lk,
    },
    .children_min = 1,
    .children_max = 1,
    .uses_inode_ctx = true,
    .uses_fd_ctx = true,
    .init = read_ahead_init,
    .stop = read_ahead_stop,
    .notify = read_ahead_notify,
    .fd_release = read_ahead_fd_release,
    .inode_forget = read_ahead_inode_forget,
    .dump = read_ahead_dump,
};
