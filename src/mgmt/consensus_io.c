/* What the Raft library needs of the world: time and chance from env, the journal, messages through the owner.
 *
 * Work for the journal is done by one fiber, in order. The library's callbacks run on that fiber or from timers; they do
 * not suspend.
 */
#include "core/mem.h"
#include "mgmt/consensus_internal.h"
#include <errno.h>
#include <stdlib.h>

#define TICKS_PER_PROMOTION 10 /* a second */

enum job_kind { JOB_APPEND, JOB_TRUNCATE, JOB_PUT_SNAPSHOT, JOB_GET_SNAPSHOT, JOB_WORK };

struct job {
    struct list node; /* c->jobs */
    enum job_kind kind;
    union {
        struct raft_io_append *append;
        struct raft_io_snapshot_put *put;
        struct raft_io_snapshot_get *get;
        struct raft_io_async_work *work;
    };
    union {
        raft_io_append_cb append_cb;
        raft_io_snapshot_put_cb put_cb;
        raft_io_snapshot_get_cb get_cb;
        raft_io_async_work_cb work_cb;
    };
    struct journal_entry *entries; /* append: the data is the library's until its callback */
    unsigned entry_count;
    uint64_t index; /* truncate; put snapshot: the first entry to keep */
    struct journal_snapshot snapshot;
};

static struct consensus *of(struct raft_io *io)
{
    return io->impl;
}

int consensus_errno(int raft_error)
{
    switch (raft_error) {
    case 0: return 0;
    case RAFT_NOMEM: return -ENOMEM;
    case RAFT_NOTLEADER: return -ENOTCONN;
    case RAFT_LEADERSHIPLOST:
    case RAFT_CANCELED:
    case RAFT_SHUTDOWN: return -ESTALE;
    case RAFT_CANTCHANGE:
    case RAFT_BUSY: return -EBUSY;
    case RAFT_CANTBOOTSTRAP: return -EEXIST;
    case RAFT_NOSPACE: return -ENOSPC;
    case RAFT_TOOBIG: return -EMSGSIZE;
    default: return -EIO;
    }
}

static int raft_error(int r)
{
    return r == 0 ? 0 : r == -ENOMEM ? RAFT_NOMEM : r == -ENOSPC ? RAFT_NOSPACE : RAFT_IOERR;
}

/* ---- members as bytes, as they are kept with a snapshot ---- */

static int members_pack(const struct raft_configuration *conf, struct journal_snapshot *s)
{
    struct xdr_out o;
    int r;

    xdr_out_init(&o, 256);
    members_put(&o, conf);
    s->members = o.failed ? NULL : mem_dup(o.buf->data, o.size);
    s->members_bytes = o.size;
    r = s->members ? 0 : -ENOMEM;
    xdr_out_done(&o);
    return r;
}

static int members_unpack(const struct journal_snapshot *s, struct raft_configuration *conf)
{
    SCOPED_FREE uint8_t *copy = mem_dup(s->members, s->members_bytes); /* reading strings changes the bytes */
    struct xdr_in in = { .at = copy, .end = copy + s->members_bytes, .failed = !copy };

    return members_get(&in, conf);
}

/* ---- loading ---- */

/* In memory of the library's. NULL for lack of memory or bytes that are no members. */
static struct raft_snapshot *snapshot_for_library(const struct journal_snapshot *s)
{
    struct raft_snapshot *copy = raft_calloc(1, sizeof(*copy));

    if (!copy || members_unpack(s, &copy->configuration) < 0) {
        raft_free(copy);
        return NULL;
    }
    copy->index = s->index;
    copy->term = s->term;
    copy->configuration_index = s->members_index;
    copy->bufs = raft_calloc(1, sizeof(*copy->bufs));
    if (copy->bufs)
        copy->bufs[0] = (struct raft_buffer) { raft_malloc(s->data_bytes + 1), s->data_bytes };
    if (!copy->bufs || !copy->bufs[0].base) {
        raft_free(copy->bufs);
        raft_configuration_close(&copy->configuration);
        raft_free(copy);
        return NULL;
    }
    copy->n_bufs = 1;
    memcpy(copy->bufs[0].base, s->data, s->data_bytes);
    return copy;
}

/* The entries' data in one block, which the library frees with the last of them. */
static int entries_for_library(const struct journal_image *image, struct raft_entry **ret_entries)
{
    size_t all_bytes = 1, at = 0;
    struct raft_entry *entries = raft_calloc(image->entry_count, sizeof(*entries));
    uint8_t *batch;

    for (size_t i = 0; i < image->entry_count; i++)
        all_bytes += (image->entries[i].size_bytes + 7) & ~(size_t)7;
    batch = raft_malloc(all_bytes);
    if (!entries || !batch) {
        raft_free(entries);
        raft_free(batch);
        return -ENOMEM;
    }
    for (size_t i = 0; i < image->entry_count; i++) {
        const struct journal_entry *e = &image->entries[i];

        entries[i] = (struct raft_entry) { .term = e->term, .type = e->type, .batch = batch };
        entries[i].buf = (struct raft_buffer) { batch + at, e->size_bytes };
        memcpy(batch + at, e->data, e->size_bytes);
        at += (e->size_bytes + 7) & ~(size_t)7;
    }
    *ret_entries = entries;
    return 0;
}

static int io_load(struct raft_io *io, raft_term *term, raft_id *vote, struct raft_snapshot **snapshot,
                   raft_index *start_index, struct raft_entry *entries[], size_t *entry_count)
{
    struct consensus *c = of(io);
    const struct journal_image *image = c->loaded;

    *term = image->term;
    *vote = image->vote;
    *snapshot = NULL;
    *entries = NULL;
    *entry_count = 0;
    if (image->snapshot.index > 0) {
        *snapshot = snapshot_for_library(&image->snapshot);
        if (!*snapshot || members_keep(c, &(*snapshot)->configuration, (*snapshot)->configuration_index) < 0)
            return RAFT_NOMEM;
    }
    *start_index = image->entry_count > 0 ? image->entries[0].index : image->snapshot.index + 1;
    if (image->entry_count > 0 && entries_for_library(image, entries) < 0)
        return RAFT_NOMEM;
    *entry_count = image->entry_count;
    c->next_index = *start_index + image->entry_count;
    c->term = image->term;
    return 0;
}

/* ---- the vote ---- */

static int io_set_term(struct raft_io *io, raft_term term)
{
    struct consensus *c = of(io);
    int r = journal_set_vote(c->journal, term, 0);

    if (r == 0)
        c->term = term;
    else
        consensus_fail(c, "the journal cannot be written");
    return raft_error(r);
}

static int io_set_vote(struct raft_io *io, raft_id member)
{
    struct consensus *c = of(io);
    int r = journal_set_vote(c->journal, c->term, member);

    if (r < 0)
        consensus_fail(c, "the journal cannot be written");
    return raft_error(r);
}

/* From consensus_found, in a fiber, before anything else runs. */
static FIBER int io_bootstrap(struct raft_io *io, const struct raft_configuration *conf)
{
    struct consensus *c = of(io);
    struct raft_buffer members;
    struct journal_entry e = { .index = 1, .term = 1, .type = RAFT_CHANGE };
    int r;

    if (raft_configuration_encode(conf, &members) != 0)
        return RAFT_NOMEM;
    e.data = members.base;
    e.size_bytes = members.len;
    r = journal_set_vote(c->journal, 1, 0);
    r = r < 0 ? r : journal_append(c->journal, &e, 1);
    raft_free(members.base);
    return raft_error(r);
}

static int io_recover(struct raft_io *io, const struct raft_configuration *conf)
{
    (void)io;
    (void)conf;
    return RAFT_INVALID; /* never asked for: members are changed by consensus_add and consensus_remove only */
}

/* ---- messages that were sent ---- */

/* The library must be told that a message is out of its hands, but not before its call of send has returned. */
struct sent {
    struct list node; /* c->sent */
    struct timer timer;
    struct consensus *c;
    struct raft_io_send *req;
    raft_io_send_cb cb;
};

static void end_send(struct sent *sent, int status)
{
    list_del(&sent->node);
    timer_stop(&sent->timer);
    sent->cb(sent->req, status);
    mem_free(sent);
}

static void on_sent(void *arg)
{
    end_send(arg, 0);
}

/* ---- the journal's fiber ---- */

static void job_free(struct job *job)
{
    mem_free(job->entries);
    journal_snapshot_clear(&job->snapshot);
    mem_free(job);
}

static FIBER int job_run(struct consensus *c, struct job *job, struct raft_snapshot **ret_snapshot)
{
    switch (job->kind) {
    case JOB_APPEND: return journal_append(c->journal, job->entries, job->entry_count);
    case JOB_TRUNCATE: return journal_truncate(c->journal, job->index);
    case JOB_PUT_SNAPSHOT: return journal_put_snapshot(c->journal, &job->snapshot, job->index);
    case JOB_GET_SNAPSHOT: {
        int r = journal_get_snapshot(c->journal, &job->snapshot);

        if (r == 0 && !(*ret_snapshot = snapshot_for_library(&job->snapshot)))
            r = -ENOMEM;
        return r;
    }
    case JOB_WORK: return job->work->work(job->work) == 0 ? 0 : -EIO;
    }
    return 0;
}

static void job_answer(struct job *job, int status, struct raft_snapshot *snapshot)
{
    switch (job->kind) {
    case JOB_APPEND: job->append_cb(job->append, status); break;
    case JOB_PUT_SNAPSHOT: job->put_cb(job->put, status); break;
    case JOB_GET_SNAPSHOT: job->get_cb(job->get, snapshot, status); break;
    case JOB_WORK: job->work_cb(job->work, status); break;
    case JOB_TRUNCATE: break;
    }
}

static FIBER void write_jobs(void *arg)
{
    struct consensus *c = arg;

    while (!c->is_io_closing || !list_empty(&c->jobs)) {
        struct raft_snapshot *snapshot = NULL;
        struct job *job = list_first(&c->jobs, struct job, node);
        int r;

        if (!job) {
            (void)waitq_wait(&c->job_ready, NULL); /* there is work, or the end */
            continue;
        }
        list_del(&job->node);
        r = job_run(c, job, &snapshot);
        if (r < 0 && job->kind != JOB_GET_SNAPSHOT)
            consensus_fail(c, "the journal cannot be written");
        job_answer(job, raft_error(r), snapshot);
        job_free(job);
    }
    for (struct sent *s; (s = list_first(&c->sent, struct sent, node));)
        end_send(s, RAFT_CANCELED);
    c->on_io_close(&c->io);
}

static int submit(struct consensus *c, struct job *job)
{
    list_add_tail(&c->jobs, &job->node);
    (void)waitq_wake_one(&c->job_ready, 0); /* or it is at work already */
    return 0;
}

static int io_append(struct raft_io *io, struct raft_io_append *req, const struct raft_entry entries[], unsigned count,
                     raft_io_append_cb cb)
{
    struct consensus *c = of(io);
    struct job *job = NEW(struct job);

    if (!job)
        return RAFT_NOMEM;
    *job = (struct job) { .kind = JOB_APPEND, .append = req, .append_cb = cb, .entry_count = count };
    job->entries = mem_array(count, sizeof(*job->entries));
    if (!job->entries) {
        mem_free(job);
        return RAFT_NOMEM;
    }
    for (unsigned i = 0; i < count; i++)
        job->entries[i] = (struct journal_entry) { c->next_index++, entries[i].term, entries[i].type,
                                                   entries[i].buf.base, entries[i].buf.len };
    return submit(c, job);
}

static int io_truncate(struct raft_io *io, raft_index index)
{
    struct consensus *c = of(io);
    struct job *job = NEW(struct job);

    if (!job)
        return RAFT_NOMEM;
    *job = (struct job) { .kind = JOB_TRUNCATE, .index = index };
    c->next_index = index;
    return submit(c, job);
}

/* trailing 0: the snapshot came from the leader, and the log here has nothing to do with it. */
static int io_snapshot_put(struct raft_io *io, unsigned trailing, struct raft_io_snapshot_put *req,
                           const struct raft_snapshot *s, raft_io_snapshot_put_cb cb)
{
    struct consensus *c = of(io);
    struct job *job = NEW(struct job);
    size_t data_bytes = 0;

    if (!job)
        return RAFT_NOMEM;
    *job = (struct job) { .kind = JOB_PUT_SNAPSHOT, .put = req, .put_cb = cb };
    for (unsigned i = 0; i < s->n_bufs; i++)
        data_bytes += s->bufs[i].len;
    job->snapshot =
        (struct journal_snapshot) { .index = s->index, .term = s->term, .members_index = s->configuration_index };
    job->snapshot.data = mem_alloc(data_bytes + 1);
    if (!job->snapshot.data || members_pack(&s->configuration, &job->snapshot) < 0 ||
        members_keep(c, &s->configuration, s->configuration_index) < 0) {
        job_free(job);
        return RAFT_NOMEM;
    }
    for (unsigned i = 0; i < s->n_bufs; i++) {
        memcpy((uint8_t *)job->snapshot.data + job->snapshot.data_bytes, s->bufs[i].base, s->bufs[i].len);
        job->snapshot.data_bytes += s->bufs[i].len;
    }
    job->index = trailing == 0 ? UINT64_MAX : s->index > trailing ? s->index - trailing + 1 : 0;
    if (trailing == 0)
        c->next_index = s->index + 1;
    return submit(c, job);
}

static int io_snapshot_get(struct raft_io *io, struct raft_io_snapshot_get *req, raft_io_snapshot_get_cb cb)
{
    struct job *job = NEW(struct job);

    if (!job)
        return RAFT_NOMEM;
    *job = (struct job) { .kind = JOB_GET_SNAPSHOT, .get = req, .get_cb = cb };
    return submit(of(io), job);
}

static int io_async_work(struct raft_io *io, struct raft_io_async_work *req, raft_io_async_work_cb cb)
{
    struct job *job = NEW(struct job);

    if (!job)
        return RAFT_NOMEM;
    *job = (struct job) { .kind = JOB_WORK, .work = req, .work_cb = cb };
    return submit(of(io), job);
}

/* ---- messages ---- */

static int io_send(struct raft_io *io, struct raft_io_send *req, const struct raft_message *m, raft_io_send_cb cb)
{
    struct consensus *c = of(io);
    struct sent *sent = NEW(struct sent);
    struct xdr_out o;

    if (!sent)
        return RAFT_NOMEM;
    *sent = (struct sent) { .c = c, .req = req, .cb = cb };
    xdr_out_init(&o, 256);
    message_put(&o, m);
    if (!o.failed)
        c->hooks.send(c->arg, m->server_id, m->server_address, o.buf->data, o.size);
    xdr_out_done(&o);
    list_add_tail(&c->sent, &sent->node);
    timer_start(c->env, &sent->timer, env_now_ns(c->env), on_sent, sent);
    return 0;
}

/* ---- clock and life ---- */

static void on_tick(void *arg)
{
    struct consensus *c = arg;

    timer_start(c->env, &c->ticker, env_deadline_ms(c->env, c->tick_ms), on_tick, c);
    c->tick(&c->io);
    if (++c->ticks % TICKS_PER_PROMOTION == 0)
        consensus_promote(c);
    consensus_look(c);
}

static int io_init(struct raft_io *io, raft_id id, const char *address)
{
    (void)io;
    (void)id;
    (void)address;
    return 0;
}

static int io_start(struct raft_io *io, unsigned msecs, raft_io_tick_cb tick, raft_io_recv_cb receive)
{
    struct consensus *c = of(io);

    c->tick = tick;
    c->tick_ms = msecs;
    c->receive = receive;
    if (fiber_spawn(c->env, "journal", write_jobs, c) < 0)
        return RAFT_NOMEM;
    c->is_writer_running = true;
    timer_start(c->env, &c->ticker, env_deadline_ms(c->env, msecs), on_tick, c);
    return 0;
}

/* The fiber of the journal finishes what there is to do, and tells the library. */
static void io_close(struct raft_io *io, raft_io_close_cb cb)
{
    struct consensus *c = of(io);

    c->on_io_close = cb;
    c->is_io_closing = true;
    timer_stop(&c->ticker);
    if (c->is_writer_running)
        (void)waitq_wake_one(&c->job_ready, 0); /* or it is at work and sees it */
    else if (fiber_spawn(c->env, "journal", write_jobs, c) < 0)
        abort(); /* without it the stop would never end */
}

static raft_time io_time(struct raft_io *io)
{
    return env_now_ns(of(io)->env) / 1000000;
}

static int io_random(struct raft_io *io, int min, int max)
{
    return max <= min ? min : min + (int)(env_random_u64(of(io)->env) % (uint64_t)(max - min));
}

void consensus_io_init(struct consensus *c)
{
    c->io = (struct raft_io) {
        .version = 2,
        .impl = c,
        .init = io_init,
        .close = io_close,
        .load = io_load,
        .start = io_start,
        .bootstrap = io_bootstrap,
        .recover = io_recover,
        .set_term = io_set_term,
        .set_vote = io_set_vote,
        .send = io_send,
        .append = io_append,
        .truncate = io_truncate,
        .snapshot_put = io_snapshot_put,
        .snapshot_get = io_snapshot_get,
        .time = io_time,
        .random = io_random,
        .async_work = io_async_work,
    };
    list_init(&c->jobs);
    list_init(&c->sent);
    waitq_init(&c->job_ready);
}
