/* cluster/replicate/heal_crawl.c - the heal daemon: when to look for what needs heal, and the bricks' indices.
 *
 * A crawl lists `xattrop` and `dirty` of each brick and queues what is there. It is made when a brick comes up, when a
 * brick says that something was added (our own bricks do), when a person asks, and every heal-timeout anyway. While
 * something gets healed there is another one right after, for heal of a directory brings up its files. Crawls that
 * nobody but a notice asked for are further and further apart as long as they heal nothing: a brick that is away for
 * hours, while the others are written to, must not keep them listing.
 */
#include "cluster/replicate/heal_daemon.h"
#include "cluster/replicate/healer_internal.h"
#include "core/mem.h"
#include "graph/graph.h"

#define LIST_BYTES       (64 * 1024)
#define NOTICE_KEY       "mortar.heal-notice" /* features/index */
#define NODE_UUID        "trusted.glusterfs.node-uuid"
#define COLLECT_MS       50   /* entries come in bunches */
#define PAUSE_FIRST_MS   1000 /* after a crawl that healed nothing */
#define PAUSE_LONGEST_MS 60000
#define SWEEPS_MAX       64 /* in one crawl */
#define BRICKS_MIN       2  /* one copy heals nothing */

/* ---- statistics ---- */

static int64_t wall_s(struct env *env)
{
    struct timespec now;

    env_wall_time(env, &now);
    return now.tv_sec;
}

struct heal_crawl *heal_crawl_of(struct healer *h, int child, bool is_full)
{
    struct heal_history *history;

    if (child < 0 || !h->history)
        return NULL;
    history = &h->history[child];
    for (unsigned i = history->count; i-- > 0;) {
        struct heal_crawl *crawl = &history->crawl[(history->first + i) % CRAWLS_KEPT];

        if (crawl->is_full == is_full)
            return crawl->end_s ? NULL : crawl;
    }
    return NULL;
}

static void crawl_begins(struct healer *h, unsigned child, bool is_full)
{
    struct heal_history *history = &h->history[child];
    struct heal_crawl *crawl;

    if (history->count == CRAWLS_KEPT)
        history->first = (history->first + 1) % CRAWLS_KEPT;
    else
        history->count++;
    crawl = &history->crawl[(history->first + history->count - 1) % CRAWLS_KEPT];
    *crawl =
        (struct heal_crawl) { .start_s = wall_s(h->me->env), .start_ns = env_now_ns(h->me->env), .is_full = is_full };
}

static void crawl_ends(struct healer *h, unsigned child, bool is_full)
{
    struct heal_crawl *crawl = heal_crawl_of(h, (int)child, is_full);

    if (crawl)
        crawl->end_s = wall_s(h->me->env);
}

/* Not: the brick is away, or does not have the inode yet. */
static bool is_failure(int error)
{
    return error && error != -ENOTCONN && error != -ESTALE && error != -ENOENT;
}

static void tally(struct heal_tally *t, const struct heal_report *report)
{
    t->healed += report->outcome == HEAL_DONE;
    t->split += report->outcome == HEAL_SPLIT_BRAIN;
    t->failed += report->outcome == HEAL_ERROR || (report->outcome == HEAL_LEFT && is_failure(report->error));
    t->bytes_compared += report->class[CHANGE_DATA].bytes_compared;
    t->bytes_copied += report->class[CHANGE_DATA].bytes_copied;
}

void heal_tally_add(struct healer *h, const struct heal_job *job, const struct heal_report *report)
{
    struct heal_crawl *crawl = heal_crawl_of(h, job->found_on, !(job->flags & HEAL_FROM_INDEX));

    tally(&h->all, report);
    if (crawl)
        tally(&crawl->tally, report);
}

FIBER char *heal_path_of(struct translator *me, struct call *call, uint32_t children, struct inode *inode)
{
    static const char name[] = "glusterfs.gfid2path";
    SCOPED(reply_free) struct reply *r = reply_new();
    const char *text;
    char *path = NULL;

    if (gfid_is_root(&inode->gfid))
        return mem_strdup("/");
    for_each_child(i, children)
    {
        if (!r || path)
            break;
        if (child_getxattr(me, i, call, inode, NULL, name, r) >= 0 && dict_get_str(r->xattrs, name, &text) == 0)
            path = mem_strdup(text);
        reply_done(r);
    }
    return path;
}

/* ---- the index of one brick ---- */

struct listing {
    struct translator *me;
    struct call *call;
    unsigned child;
    struct inode *dir;
    struct fd *fd;
    struct reply *r;
};

/* The virtual directory under the name `which`; NULL: the brick has none now. Returned. */
static FIBER struct inode *virtual_dir(struct listing *l, const char *which)
{
    SCOPED(inode_unref) struct inode *root = inode_table_get(l->me->graph, &gfid_root, S_IFDIR);
    struct inode *dir = NULL;
    struct gfid gfid;

    if (!root)
        return NULL;
    if (child_getxattr(l->me, l->child, l->call, root, NULL, which, l->r) >= 0 &&
        dict_get_gfid(l->r->xattrs, which, &gfid) == 0)
        dir = inode_table_get(l->me->graph, &gfid, S_IFDIR);
    reply_done(l->r);
    return dir;
}

static FIBER uint64_t count_of(struct listing *l, const char *which)
{
    SCOPED(inode_unref) struct inode *root = inode_table_get(l->me->graph, &gfid_root, S_IFDIR);
    uint64_t count = 0;

    if (root && child_getxattr(l->me, l->child, l->call, root, NULL, which, l->r) >= 0)
        (void)dict_get_uint(l->r->xattrs, which, &count); /* only for the progress shown */
    reply_done(l->r);
    return count;
}

typedef FIBER int (*entry_fn)(struct listing *l, const struct gfid *gfid, const char *name);

static FIBER int list_pages(struct listing *l, struct dict *xdata, entry_fn fn)
{
    struct request q = { .op = OP_OPENDIR, .inode = l->dir, .fd = l->fd };
    uint64_t offset = 0;
    int ret = child_call(l->me, l->child, l->call, &q, l->r);

    reply_done(l->r);
    while (ret >= 0) {
        q = (struct request) {
            .op = OP_READDIR, .inode = l->dir, .fd = l->fd, .offset = offset, .size = LIST_BYTES, .xdata = xdata
        };
        ret = child_call(l->me, l->child, l->call, &q, l->r);
        struct dir_entries *page = ret > 0 ? take(l->r->entries) : NULL;
        reply_done(l->r);
        if (!page)
            return ret;
        for (uint32_t i = 0; ret >= 0 && i < page->count; i++) {
            struct gfid gfid;

            offset = page->list[i].offset;
            if (gfid_parse(page->list[i].name, &gfid) == 0)
                ret = fn(l, &gfid, page->list[i].name);
        }
        bool at_end = page->at_end || !page->count;
        dir_entries_free(page);
        if (at_end)
            return ret < 0 ? ret : 0;
    }
    return ret;
}

static FIBER int list_index(struct translator *me, struct call *call, unsigned child, const char *which, bool listens,
                            entry_fn fn)
{
    SCOPED(reply_free) struct reply *r = reply_new();
    SCOPED(dict_unref) struct dict *xdata = NULL;
    struct listing l = { .me = me, .call = call, .child = child, .r = r };
    int ret;

    if (!r || (listens && dict_put_uint(&xdata, NOTICE_KEY, 1) < 0))
        return -ENOMEM;
    l.dir = virtual_dir(&l, which);
    if (!l.dir)
        return -ENOTCONN;
    l.fd = fd_new(l.dir, O_RDONLY | O_DIRECTORY, PID_SELF_HEAL);
    ret = l.fd ? list_pages(&l, xdata, fn) : -ENOMEM;
    fd_unref(l.fd);
    inode_unref(l.dir);
    return ret;
}

static FIBER int queue_entry(struct listing *l, const struct gfid *gfid, const char *name)
{
    struct healer *h = replicate_of(l->me)->healer;
    struct heal_crawl *crawl = heal_crawl_of(h, (int)l->child, false);
    int r = heal_queue_add_waiting(l->me, l->call, gfid, 0, HEAL_FROM_INDEX, (int)l->child);

    if (r == 0 && crawl)
        crawl->tally.found++;
    return r == 0 || r == -EALREADY || r == -EAGAIN ? 0 : r;
}

/* Names of a directory that is gone were put aside under a gfid of their own, or stayed behind. */
static FIBER int purge_changes(struct listing *l, const struct gfid *gfid, const char *name)
{
    SCOPED(inode_unref) struct inode *inode = inode_table_get(l->me->graph, gfid, S_IFDIR);
    SCOPED(heal_view_free) struct heal_view *view = heal_view_new();
    struct request q = { .op = OP_RMDIR, .parent = l->dir, .name = name };

    if (!inode || !view)
        return -ENOMEM;
    if (heal_look(l->me, l->call, inode, view) == 0 && view->is_gone)
        (void)child_call(l->me, l->child, l->call, &q, NULL); /* else the next crawl */
    return 0;
}

/* ---- one crawl ---- */

static FIBER void find_local(struct translator *me, struct call *call)
{
    struct replicate *s = replicate_of(me);
    SCOPED(inode_unref) struct inode *root = inode_table_get(me->graph, &gfid_root, S_IFDIR);
    SCOPED(reply_free) struct reply *r = reply_new();
    const char *uuid;

    s->healer->local = s->all;
    for_each_child(i, s->node_uuid && root && r ? s->up : 0)
    {
        if (child_getxattr(me, i, call, root, NULL, NODE_UUID, r) >= 0 &&
            dict_get_str(r->xattrs, NODE_UUID, &uuid) == 0 && strcasecmp(uuid, s->node_uuid) != 0)
            s->healer->local &= ~bit(i); /* the daemon of its own host crawls it */
        reply_done(r);
    }
}

static FIBER int sweep(struct translator *me, struct call *call, uint32_t children)
{
    int ret = 0;

    for_each_child(i, children)
    {
        int r = list_index(me, call, i, "glusterfs.xattrop_index_gfid", true, queue_entry);

        if (r == 0)
            r = list_index(me, call, i, "glusterfs.xattrop_dirty_gfid", false, queue_entry);
        ret = ret ? ret : r; /* a brick that has gone does not keep the others from being healed */
        if (scope_check(&call->scope, me->env) < 0)
            return -ECANCELED;
    }
    return ret;
}

static FIBER void clean_up(struct translator *me, struct call *call, uint32_t children)
{
    struct replicate *s = replicate_of(me);
    struct heal_how how = { .flags = 0 };

    for_each_child(i, children)(void)
        list_index(me, call, i, "glusterfs.xattrop_entry_changes_gfid", false, purge_changes);
    if (s->up == s->all && s->anonymous_inode)
        (void)heal_clean_anonymous(me, call, &how); /* else after another crawl */
}

static FIBER int index_crawl(struct translator *me, struct call *call)
{
    struct replicate *s = replicate_of(me);
    struct healer *h = s->healer;
    uint64_t healed_at_start = h->all.healed, healed;
    uint32_t children;
    int ret = 0;

    find_local(me, call);
    children = s->up & h->local;
    h->crawl_number++;
    SCOPED(reply_free) struct reply *r = reply_new();
    for_each_child(i, r ? children : 0)
    {
        struct listing l = { .me = me, .call = call, .child = i, .r = r };

        crawl_begins(h, i, false);
        heal_crawl_of(h, (int)i, false)->expected =
            count_of(&l, "glusterfs.xattrop_index_count") + count_of(&l, "glusterfs.xattrop_dirty_count");
    }
    h->is_crawling = true;
    for (int sweeps = 0; ret != -ECANCELED && sweeps < SWEEPS_MAX; sweeps++) {
        healed = h->all.healed;
        ret = sweep(me, call, children & s->up);
        if (heal_queue_drain(me, call) < 0)
            ret = -ECANCELED;
        if (h->all.healed == healed)
            break;
    }
    if (ret == 0 && children == s->all && s->up == s->all)
        heal_troubles_forget_unlisted(h);
    if (ret != -ECANCELED)
        clean_up(me, call, children & s->up);
    h->is_crawling = false;
    for_each_child(i, children) crawl_ends(h, i, false);
    if (h->all.healed > healed_at_start)
        TLOG(me, LOG_INFO, "heal-crawl", "healed=%llu waiting=%u",
             (unsigned long long)(h->all.healed - healed_at_start), h->trouble_count);
    return ret;
}

static FIBER void full_crawl(struct translator *me, struct call *call)
{
    struct replicate *s = replicate_of(me);
    struct healer *h = s->healer;
    uint32_t children = s->up;
    int r;

    for_each_child(i, children) crawl_begins(h, i, true);
    h->is_walking = true;
    h->stops_walk = false;
    TLOG(me, LOG_INFO, "heal-walk", "begins=1");
    r = heal_walk(me, call);
    h->is_walking = false;
    for_each_child(i, children) crawl_ends(h, i, true);
    if (r == -ENOTCONN || r == -ESTALE)
        h->wants_full = true; /* it goes on where it was when the bricks are back */
    TLOG(me, LOG_INFO, "heal-walk", "ends=%s", r == 0 ? "whole" : errno_name(r));
}

/* ---- when ---- */

static bool may_crawl(const struct replicate *s)
{
    return s->self_heal_daemon && mask_count(s->up) >= BRICKS_MIN;
}

/* Waits until there is something to do, at most until `until_ns` (0: no limit). */
static FIBER void wait_for_work(struct healer *h, uint64_t until_ns)
{
    struct scope limit;

    scope_init(&limit, until_ns);
    if (waitq_wait(&h->wake, &limit) == -ESHUTDOWN) /* this process ends: nobody would call healer_stop */
        h->is_stopping = true;
    scope_done(&limit);
}

/* Not before this an index crawl is made. */
static uint64_t next_index_ns(struct translator *me)
{
    struct replicate *s = replicate_of(me);
    struct healer *h = s->healer;
    uint64_t due = h->last_ns + s->heal_timeout_s * UINT64_C(1000000000);

    if (h->is_ordered)
        return 0;
    if (h->wants_index)
        due = MIN(due, h->last_ns + h->pause_ms * 1000000);
    if (h->retry_ns) {
        uint64_t retry = MAX(h->retry_ns, h->last_ns + PAUSE_FIRST_MS * UINT64_C(1000000));

        due = MIN(due, retry);
    }
    return due;
}

/* Whoever missed changes is blamed at the witness too. That goes when a crawl that began after everybody was told to rely
 * on it no longer has left nothing to heal. */
static FIBER void crawl_with_witness(struct translator *me)
{
    struct replicate *s = replicate_of(me);
    struct healer *h = s->healer;
    struct witness_crawl crawl;
    int r;

    witness_crawl_begin(me, &crawl);
    r = index_crawl(me, &h->call); /* what it could not do, the next one does */
    if (!witness_crawl_end(me, &crawl, r == 0 && h->trouble_count == 0 ? s->up & h->local : 0))
        h->wants_index = true;
}

static FIBER void index_crawl_now(struct translator *me)
{
    struct healer *h = replicate_of(me)->healer;
    uint64_t healed = h->all.healed;

    if (!h->is_ordered)
        (void)fiber_sleep_ms(&h->call.scope, COLLECT_MS); /* cut short at stop only */
    if (h->is_ordered)
        heal_troubles_retry(h);
    h->wants_index = h->is_ordered = false;
    crawl_with_witness(me);
    if (h->all.healed > healed)
        h->pause_ms = 0;
    else
        h->pause_ms = MIN(MAX(h->pause_ms * 2, (uint64_t)PAUSE_FIRST_MS), (uint64_t)PAUSE_LONGEST_MS);
    h->retry_ns = heal_troubles_next_ns(h);
    h->last_ns = env_now_ns(me->env);
}

FIBER void heal_index_if_due(struct translator *me)
{
    struct healer *h = replicate_of(me)->healer;

    if (!h->is_stopping && may_crawl(replicate_of(me)) && env_now_ns(me->env) >= next_index_ns(me))
        index_crawl_now(me);
}

static FIBER void daemon_main(void *arg)
{
    struct translator *me = arg;
    struct replicate *s = replicate_of(me);
    struct healer *h = s->healer;

    h->wants_full |= may_crawl(s) && heal_walk_is_unfinished(me, &h->call);
    while (!h->is_stopping) {
        uint64_t due = next_index_ns(me);

        if (!may_crawl(s)) {
            wait_for_work(h, 0);
        } else if (env_now_ns(me->env) >= due) {
            index_crawl_now(me);
        } else if (h->wants_full) {
            h->wants_full = false;
            full_crawl(me, &h->call);
        } else {
            wait_for_work(h, due);
        }
    }
    call_done(&h->call);
    h->has_main = false;
    (void)waitq_wake_all(&h->changes, 0);
    replicate_fiber_ended(me);
}

int healer_start(struct translator *me)
{
    struct healer *h = replicate_of(me)->healer;
    int r;

    if (!h->history)
        return 0;
    call_init(&h->call, me->graph);
    h->call.pid = PID_SELF_HEAL;
    h->has_main = true;
    h->wants_index = true;
    r = replicate_spawn(me, "heal-daemon", daemon_main, me);
    if (r < 0) {
        h->has_main = false;
        call_done(&h->call);
    }
    return r;
}

static void wake(struct healer *h)
{
    (void)waitq_wake_all(&h->wake, 0);
}

void healer_child_changed(struct translator *me, bool is_up)
{
    struct healer *h = replicate_of(me)->healer;

    if (!h || !h->has_main)
        return;
    if (is_up) {
        h->wants_index = true;
        h->pause_ms = 0;
    }
    wake(h);
}

void healer_noticed(struct translator *me)
{
    struct healer *h = replicate_of(me)->healer;

    if (!h || !h->has_main)
        return;
    h->wants_index = true;
    wake(h);
}

void healer_reconfigured(struct translator *me)
{
    struct healer *h = replicate_of(me)->healer;

    if (h && h->has_main)
        wake(h);
}

bool heal_daemon_is(const struct translator *t)
{
    return strcmp(t->class->type, "cluster/replicate") == 0 &&
           ((const struct replicate *)t->state)->is_self_heal_daemon;
}

int heal_daemon_order(struct translator *me, enum heal_order order)
{
    struct replicate *s = replicate_of(me);
    struct healer *h = s->healer;

    if (!heal_daemon_is(me))
        return -EINVAL;
    if (!h->has_main || h->is_stopping)
        return -ESHUTDOWN;
    if (order == HEAL_ORDER_STOP) {
        h->stops_walk = h->is_walking;
        h->wants_full = false;
        return 0;
    }
    h->wants_full |= order == HEAL_ORDER_FULL;
    h->wants_index = h->is_ordered = true;
    wake(h);
    return may_crawl(s) ? 0 : -ENOTCONN;
}
