/* sim/workload_lock.c - sections under a lock on a file that is removed at the end of each: open or make it, take the
 * lock, look whether the name still leads to it, remove the name, give the lock back. Two at a time in every client.
 * Each must end, and no two may be inside at once. */
#include "core/mem.h"
#include "sim/workload_internal.h"
#include <fcntl.h>
#include <stdio.h>

#define LOCKERS 2u /* of a client */
#define NAME    "lock"

struct locker {
    struct actor *a;
    unsigned number;
    struct fd *fd;
};

static FIBER int ask_as(struct locker *l, struct request *q, struct reply *r)
{
    struct call call;
    call_init(&call, l->a->graph);
    call.scope.deadline_ns = env_deadline_ms(l->a->env, OP_DEADLINE_MS);
    call.pid = 2000 + (int)(l->a->index * LOCKERS + l->number);
    lk_owner_from_u64(&call.lk_owner, 1000 + l->a->index * LOCKERS + l->number);
    int ret = translator_call(l->a->graph->root, &call, q, r);
    call_done(&call);
    l->a->w->stats.ops++;
    if (l->a->w->cluster->config.verbose)
        fprintf(stderr, "# %.6f s: %s locker %u: %s: %s\n", (double)env_now_ns(l->a->env) / 1e9, l->a->who, l->number,
                op_name(q->op), ret < 0 ? errno_name(ret) : "ok");
    return ret;
}

static FIBER int find(struct locker *l, struct gfid *ret_gfid)
{
    SCOPED(reply_free) struct reply *r = reply_new();
    struct request q = { .op = OP_LOOKUP, .parent = l->a->dirs[0], .name = NAME };
    int ret = ask_as(l, &q, r);
    if (ret >= 0)
        *ret_gfid = r->stat.gfid;
    return ret;
}

/* As open(2) with O_CREAT does it. -EAGAIN: what was found is gone, or somebody was faster. */
static FIBER int open_or_make(struct locker *l)
{
    struct gfid gfid;
    int ret = find(l, &gfid);
    bool is_new = ret == -ENOENT;
    if (ret < 0 && !is_new)
        return ret;
    if (is_new)
        gfid = gfid_random(l->a->env);
    SCOPED(inode_unref) struct inode *inode = inode_table_get(l->a->graph, &gfid, S_IFREG);
    SCOPED(fd_unref) struct fd *fd = fd_new(inode, O_RDWR, 1000);
    SCOPED(reply_free) struct reply *r = reply_new();
    struct request q = { .op = OP_OPEN, .inode = inode, .fd = fd, .flags = O_RDWR };
    if (is_new) {
        q.op = OP_CREATE;
        q.parent = l->a->dirs[0];
        q.name = NAME;
        q.flags = O_RDWR | O_CREAT | O_EXCL;
        q.mode = S_IFREG | 0644;
    }
    ret = ask_as(l, &q, r);
    if (ret == -EEXIST || ret == -ENOENT || ret == -ESTALE)
        return -EAGAIN;
    if (ret >= 0)
        l->fd = take(fd);
    return ret;
}

static FIBER int lock(struct locker *l, enum lock_command command)
{
    struct lock_range range = { .type = command == LOCK_UNLOCK ? LOCK_NONE : LOCK_WRITE };
    SCOPED(reply_free) struct reply *r = reply_new();
    struct request q = { .op = OP_LK, .inode = l->fd->inode, .fd = l->fd, .command = command, .lock = &range };
    lk_owner_from_u64(&range.owner, 1000 + l->a->index * LOCKERS + l->number);
    range.pid = 2000 + (int)(l->a->index * LOCKERS + l->number);
    return ask_as(l, &q, r);
}

static FIBER int section(struct locker *l)
{
    struct workload *w = l->a->w;
    struct gfid gfid;
    int ret = find(l, &gfid);
    if (ret == -ENOENT || (ret >= 0 && !gfid_equal(&gfid, &l->fd->inode->gfid)))
        return 0; /* an ordinary lost race */
    if (ret < 0)
        return ret;
    if (w->inside++ > 0)
        model_violation(&w->model, "%s: two sections at once", l->a->who);
    (void)fiber_sleep_ms(NULL, 2);
    SCOPED(reply_free) struct reply *r = reply_new();
    struct request q = { .op = OP_UNLINK, .parent = l->a->dirs[0], .name = NAME };
    w->inside--; /* from now on the name may be gone, and the next one made */
    return ask_as(l, &q, r);
}

static FIBER int run_locker(void *arg)
{
    struct locker *l = arg;
    struct model *m = &l->a->w->model;
    int ret = open_or_make(l);
    if (ret == -EAGAIN)
        return 0;
    if (ret < 0) {
        model_violation(m, "%s: opening the lock file gave %s", l->a->who, errno_name(ret));
        return 0;
    }
    ret = lock(l, LOCK_WAIT);
    if (ret < 0)
        model_violation(m, "%s: locking %s gave %s", l->a->who, GFID_TEXT(&l->fd->inode->gfid), errno_name(ret));
    if (ret >= 0)
        ret = section(l);
    if (ret < 0)
        model_violation(m, "%s: a section gave %s", l->a->who, errno_name(ret));
    ret = lock(l, LOCK_UNLOCK);
    if (ret < 0)
        model_violation(m, "%s: unlocking gave %s", l->a->who, errno_name(ret));
    fd_unref(take(l->fd));
    return 0;
}

FIBER void lock_op(struct actor *a)
{
    struct locker lockers[LOCKERS];
    struct group group;

    group_init(&group, a->env);
    for (unsigned i = 0; i < LOCKERS; i++) {
        lockers[i] = (struct locker) { .a = a, .number = i };
        int r = group_run(&group, "locker", run_locker, &lockers[i]);
        assert(r == 0);
    }
    group_wait_all(&group);
}
