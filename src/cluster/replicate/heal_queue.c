/* cluster/replicate/heal_queue.c - inodes that wait for heal, and the fibers that heal them.
 *
 * In a heal daemon shd-max-threads of them work at once and shd-wait-qlength may wait; in a client it is
 * background-self-heal-count and heal-wait-queue-length. What does not fit is left to the next crawl: the bricks' indices
 * know it.
 */
#include "cluster/replicate/healer_internal.h"
#include "core/mem.h"
#include "graph/graph.h"

static unsigned running_max(const struct replicate *s)
{
    return s->is_self_heal_daemon ? s->shd_max_threads : s->background_heal_count;
}

static unsigned waiting_max(const struct replicate *s)
{
    return s->is_self_heal_daemon ? s->shd_wait_length : s->heal_wait_queue_length;
}

/* ---- troubles ---- */

struct heal_trouble *heal_trouble_find(struct healer *h, const struct gfid *gfid)
{
    struct heal_trouble *t;

    HASH_FIND(hh, h->troubles, gfid, sizeof(*gfid), t);
    return t;
}

static void trouble_drop(struct healer *h, struct heal_trouble *t)
{
    HASH_DELETE(hh, h->troubles, t);
    h->trouble_count--;
    mem_free(t->path);
    mem_free(t);
}

void heal_troubles_retry(struct healer *h)
{
    struct heal_trouble *t, *next;

    HASH_ITER(hh, h->troubles, t, next)
    {
        t->next_ns = 0;
        t->tries = 0;
    }
}

/* Whoever waits for a brick waits for that, not for time. */
uint64_t heal_troubles_next_ns(struct healer *h)
{
    struct heal_trouble *t, *next;
    uint64_t first = 0;

    HASH_ITER(hh, h->troubles, t, next)
    {
        bool waits_for_brick =
            t->error == -ENOTCONN || (t->outcome == HEAL_LEFT && !t->error && !heal_trouble_is_early(h->me, t));

        if (!waits_for_brick && (!first || t->next_ns < first))
            first = t->next_ns;
    }
    return first;
}

void heal_troubles_forget_unlisted(struct healer *h)
{
    struct heal_trouble *t, *next;

    HASH_ITER(hh, h->troubles, t, next)
    {
        if (t->is_listed && t->crawl != h->crawl_number)
            trouble_drop(h, t);
    }
}

/* Is it too early to try it again? That an index lists it is noted on the way. */
static bool is_put_off(struct healer *h, const struct gfid *gfid, uint32_t flags)
{
    struct heal_trouble *t = heal_trouble_find(h, gfid);

    if (t && (flags & HEAL_FROM_INDEX)) {
        t->is_listed = true;
        t->crawl = h->crawl_number;
    }
    return t && !heal_trouble_is_early(h->me, t) && env_now_ns(h->me->env) < t->next_ns &&
           t->generation == replicate_of(h->me)->generation;
}

static int first_child_error(const struct heal_report *report, int *ret_child)
{
    for (int i = 0; i < CHILDREN_MAX; i++) {
        if (report->child_error[i]) {
            *ret_child = i;
            return report->child_error[i];
        }
    }
    *ret_child = -1;
    return report->error;
}

bool heal_trouble_is_early(const struct translator *me, const struct heal_trouble *t)
{
    const struct replicate *s = me->state;

    return t->outcome == HEAL_LEFT && s->up == s->all && (!t->error || t->error == -ESTALE || t->error == -ENOENT);
}

static void log_trouble(struct translator *me, const struct heal_trouble *t)
{
    const char *brick = t->child < 0 ? "-" : me->children[t->child]->name;

    if (t->outcome == HEAL_SPLIT_BRAIN)
        TLOG(me, LOG_ERROR, "heal-split-brain",
             "gfid=%s path=%s: no copy can be trusted; \"mortar-heal ... resolve\" takes one", GFID_TEXT(&t->gfid),
             t->path ? t->path : "-");
    else if (heal_trouble_is_early(me, t))
        TLOG(me, LOG_DEBUG, "heal-early", "gfid=%s path=%s: a brick does not have it yet; its directory comes first",
             GFID_TEXT(&t->gfid), t->path ? t->path : "-");
    else if (t->error == -ENOTCONN || (t->outcome == HEAL_LEFT && !t->error))
        TLOG(me, LOG_INFO, "heal-waits", "gfid=%s path=%s brick=%s: not all bricks are there", GFID_TEXT(&t->gfid),
             t->path ? t->path : "-", brick);
    else
        TLOG(me, LOG_ERROR, "heal-failed", "gfid=%s path=%s brick=%s err=%s: tried again in a while",
             GFID_TEXT(&t->gfid), t->path ? t->path : "-", brick, errno_name(t->error));
}

static FIBER void trouble_note(struct translator *me, struct call *call, struct inode *inode,
                               const struct heal_report *report, uint32_t flags)
{
    enum heal_outcome outcome = report->outcome;
    struct replicate *s = replicate_of(me);
    struct healer *h = s->healer;
    struct heal_trouble *t = heal_trouble_find(h, &inode->gfid);
    int child, error = first_child_error(report, &child);
    struct timespec now;
    uint64_t pause_ms;
    bool is_news;

    if (!t && h->trouble_count < TROUBLES_MAX && (t = NEW(struct heal_trouble))) {
        env_wall_time(me->env, &now);
        t->gfid = inode->gfid;
        t->since_s = now.tv_sec;
        t->outcome = HEAL_CLEAN;
        HASH_ADD(hh, h->troubles, gfid, sizeof(t->gfid), t);
        h->trouble_count++;
    }
    if (!t)
        return;
    is_news = t->outcome != outcome || t->error != error || t->child != child;
    t->outcome = outcome;
    t->error = error;
    t->child = child;
    t->generation = s->generation;
    t->crawl = h->crawl_number;
    t->is_listed |= (flags & HEAL_FROM_INDEX) != 0;
    pause_ms = MIN((uint64_t)TROUBLE_FIRST_MS << (t->tries < 16 ? t->tries : 16), (uint64_t)TROUBLE_LONGEST_MS);
    t->next_ns = env_deadline_ms(me->env, pause_ms);
    t->tries++;
    if (!is_news || outcome == HEAL_BUSY)
        return;
    char *path = heal_path_of(me, call, s->up, inode);
    t = heal_trouble_find(h, &inode->gfid); /* it may have been healed meanwhile */
    if (!t) {
        mem_free(path);
        return;
    }
    mem_free(t->path);
    t->path = path;
    log_trouble(me, t);
}

/* ---- workers ---- */

static struct heal_job *job_find(struct healer *h, const struct gfid *gfid)
{
    struct heal_job *job;

    HASH_FIND(hh, h->jobs, gfid, sizeof(*gfid), job);
    return job;
}

static void job_free(struct healer *h, struct heal_job *job)
{
    HASH_DELETE(hh, h->jobs, job);
    mem_free(job);
}

/* What heal made or marked on the way is better healed now than at the next crawl. */
static void found_more(void *arg, const struct gfid *gfid, uint32_t type)
{
    struct translator *me = arg;
    struct heal_trouble *t = heal_trouble_find(replicate_of(me)->healer, gfid);

    if (t)
        t->next_ns = 0;                                        /* what kept it from being healed may be over */
    (void)heal_queue_add(me, gfid, type, HEAL_FROM_INDEX, -1); /* no room: the index knows it */
}

/* A gfid that no brick knows stays in an index for ever unless somebody takes it out. */
static FIBER void drop_from_index(struct translator *me, struct call *call, const struct heal_job *job)
{
    static const char *const lists[] = { "glusterfs.xattrop_index_gfid", "glusterfs.xattrop_dirty_gfid" };
    SCOPED(inode_unref) struct inode *root = inode_table_get(me->graph, &gfid_root, S_IFDIR);
    SCOPED(reply_free) struct reply *r = reply_new();
    char text[GFID_TEXT_LEN + 1];
    struct gfid gfid;

    for (size_t i = 0; root && r && i < ARRAY_SIZE(lists); i++) {
        int ret = child_getxattr(me, (unsigned)job->found_on, call, root, NULL, lists[i], r);

        if (ret < 0 || dict_get_gfid(r->xattrs, lists[i], &gfid) < 0) {
            reply_done(r);
            continue;
        }
        reply_done(r);
        SCOPED(inode_unref) struct inode *list = inode_table_get(me->graph, &gfid, S_IFDIR);
        struct request q = { .op = OP_UNLINK, .parent = list, .name = gfid_format(&job->gfid, text) };
        if (list)
            (void)child_call(me, (unsigned)job->found_on, call, &q, NULL); /* is in one of them; else the next crawl */
    }
}

static FIBER void heal_one(struct translator *me, struct call *call, struct heal_job *job)
{
    struct healer *h = replicate_of(me)->healer;
    SCOPED(heal_report_free) struct heal_report *report = heal_report_new();
    SCOPED(inode_unref) struct inode *inode = inode_table_get(me->graph, &job->gfid, job->type);
    struct heal_how how = { .flags = job->flags, .found = found_more, .found_arg = me };
    struct heal_trouble *trouble;
    int ret;

    if (!report || !inode)
        return; /* the index still has it */
    ret = heal_inode(me, call, inode, &how, report);
    if (ret < 0) {
        report->outcome = HEAL_ERROR;
        report->error = ret;
    }
    if (h->is_stopping)
        return;
    heal_tally_add(h, job, report);
    if (report->outcome != HEAL_CLEAN && report->outcome != HEAL_DONE) {
        trouble_note(me, call, inode, report, job->flags);
        return;
    }
    trouble = heal_trouble_find(h, &job->gfid);
    if (trouble)
        trouble_drop(h, trouble);
    if (report->is_gone && job->found_on >= 0 && (job->flags & HEAL_FROM_INDEX))
        drop_from_index(me, call, job);
}

static void job_ended(struct healer *h, struct heal_job *job)
{
    job->is_running = false;
    if (job->again && !h->is_stopping) {
        job->again = false;
        list_add_tail(&h->waiting, &job->node);
        h->waiting_count++;
    } else {
        job_free(h, job);
    }
    (void)waitq_wake_all(&h->changes, 0);
}

static FIBER void work(void *arg)
{
    struct translator *me = arg;
    struct healer *h = replicate_of(me)->healer;
    struct heal_worker worker;
    struct heal_job *job;

    call_init(&worker.call, me->graph);
    worker.call.pid = PID_SELF_HEAL;
    list_add_tail(&h->workers, &worker.node);
    while (!h->is_stopping && h->running_count <= running_max(replicate_of(me)) &&
           (job = list_first(&h->waiting, struct heal_job, node))) {
        list_del(&job->node);
        h->waiting_count--;
        job->is_running = true;
        (void)waitq_wake_all(&h->changes, 0);
        heal_one(me, &worker.call, job);
        job_ended(h, job);
    }
    list_del(&worker.node);
    call_done(&worker.call);
    h->running_count--;
    (void)waitq_wake_all(&h->changes, 0);
    replicate_fiber_ended(me);
}

static void hire(struct translator *me)
{
    struct healer *h = replicate_of(me)->healer;

    if (h->running_count >= running_max(replicate_of(me)))
        return;
    h->running_count++;
    if (replicate_spawn(me, "heal", work, me) < 0)
        h->running_count--; /* no memory now; the next job tries again */
}

/* ---- adding ---- */

int heal_queue_add(struct translator *me, const struct gfid *gfid, uint32_t type, uint32_t flags, int found_on)
{
    struct healer *h = replicate_of(me)->healer;
    struct heal_job *job;

    if (h->is_stopping)
        return -ESHUTDOWN;
    job = job_find(h, gfid);
    if (job) {
        job->again |= job->is_running;
        job->flags |= flags;
        return -EALREADY;
    }
    if (is_put_off(h, gfid, flags))
        return -EAGAIN;
    if (h->waiting_count >= waiting_max(replicate_of(me)))
        return -ENOBUFS;
    job = NEW(struct heal_job);
    if (!job)
        return -ENOMEM;
    job->gfid = *gfid;
    job->type = type;
    job->flags = flags;
    job->found_on = found_on;
    HASH_ADD(hh, h->jobs, gfid, sizeof(job->gfid), job);
    list_add_tail(&h->waiting, &job->node);
    h->waiting_count++;
    hire(me);
    return 0;
}

FIBER int heal_queue_add_waiting(struct translator *me, struct call *call, const struct gfid *gfid, uint32_t type,
                                 uint32_t flags, int found_on)
{
    struct healer *h = replicate_of(me)->healer;
    int r;

    while ((r = heal_queue_add(me, gfid, type, flags, found_on)) == -ENOBUFS) {
        r = waitq_wait(&h->changes, &call->scope);
        if (r < 0)
            return r;
    }
    return r;
}

FIBER int heal_queue_drain(struct translator *me, struct call *call)
{
    struct healer *h = replicate_of(me)->healer;

    while (h->waiting_count || h->running_count) {
        int r = waitq_wait(&h->changes, &call->scope);

        if (r < 0)
            return r;
    }
    return 0;
}

/* A client found out, by a lookup or a read, that some copy is behind. */
void heal_soon(struct translator *me, const struct inode *inode)
{
    const struct replicate *s = replicate_of(me);

    if (s->is_self_heal_daemon || !s->healer || !s->background_heal_count)
        return;
    if (inode->type == S_IFDIR ? !(s->entry_self_heal || s->metadata_self_heal)
                               : !(s->data_self_heal_option || s->metadata_self_heal))
        return;
    (void)heal_queue_add(me, &inode->gfid, inode->type, 0, -1); /* what does not fit is left to the daemon */
}

/* ---- life ---- */

int healer_init(struct translator *me)
{
    struct replicate *s = replicate_of(me);
    struct healer *h = NEW(struct healer);

    if (!h)
        return -ENOMEM;
    s->healer = h;
    h->me = me;
    list_init(&h->waiting);
    list_init(&h->workers);
    waitq_init(&h->changes);
    waitq_init(&h->wake);
    if (s->is_self_heal_daemon) {
        h->history = mem_array(s->child_count, sizeof(*h->history));
        if (!h->history)
            return -ENOMEM;
    }
    return 0;
}

FIBER void healer_stop(struct translator *me)
{
    struct healer *h = replicate_of(me)->healer;
    struct heal_worker *worker;

    h->is_stopping = true;
    list_for_each (worker, &h->workers, node)
        scope_cancel(&worker->call.scope);
    if (h->has_main)
        scope_cancel(&h->call.scope);
    (void)waitq_wake_all(&h->wake, 0);
    while (h->running_count || h->has_main)
        (void)waitq_wait(&h->changes, NULL); /* every worker and the crawling fiber end, for they are cancelled */
}

void healer_fini(struct translator *me)
{
    struct healer *h = replicate_of(me)->healer;
    struct heal_job *job, *next_job;
    struct heal_trouble *trouble, *next_trouble;

    if (!h)
        return;
    HASH_ITER(hh, h->jobs, job, next_job)
    job_free(h, job);
    HASH_ITER(hh, h->troubles, trouble, next_trouble)
    trouble_drop(h, trouble);
    mem_free(h->history);
    mem_free(h);
    replicate_of(me)->healer = NULL;
}
