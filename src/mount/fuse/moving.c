/* Moving the mount to another graph, with what is open and what is locked.
 *
 * No request may be under way meanwhile: those that come wait, those that wait for a lock begin again afterwards. Each open
 * file is opened again in the new graph and its locks are taken there; a brick of ours takes them over from the old
 * connection in one step (features/locks "takeover"), GlusterFS's gets an unlock and a lock. A file that cannot be opened
 * again because its last name is gone stays in the old graph (node->left), which lives until the last of them is closed. */
#include "mount/fuse/fuse_internal.h"
#include <fcntl.h>

/* ---- standing still ---- */

static FIBER void stand_still(struct mount *m)
{
    struct request_in *in;

    m->is_moving = true; /* no new request starts, so handles and nodes stay */
    list_for_each (in, &m->requests, of_mount) {
        if (!in->waits_for_lock)
            continue;
        in->must_move = true;
        scope_cancel(&in->call.scope);
    }
    while (m->running > 0)
        (void)waitq_wait(&m->idle, NULL);
}

static void go_on(struct mount *m)
{
    m->is_moving = false;
    (void)waitq_wake_all(&m->moved, 0);
}

FIBER int moving_step_aside(struct request_in *in)
{
    struct mount *m = in->m;

    in->must_move = false;
    if (--m->running == 0)
        (void)waitq_wake_all(&m->idle, 0);
    while (m->is_moving)
        (void)waitq_wait(&m->moved, NULL);
    m->running++;
    scope_done(&in->call.scope);
    scope_init(&in->call.scope, 0);
    return in->is_interrupted ? -EINTR : 0;
}

/* ---- files that are left behind ---- */

void moving_left_opened(struct node *node)
{
    struct fuse *f = node->left ? node->left->state : NULL;

    if (f)
        f->left_handles++;
}

void moving_left_closed(struct node *node)
{
    struct fuse *f = node->left ? node->left->state : NULL;

    if (f && --f->left_handles == 0 && f->on_left)
        f->on_left(f->on_left_arg);
}

static void leave(struct node *node, struct translator *from)
{
    struct handle *h;

    node->left = from;
    list_for_each (h, &node->handles, of_node) {
        fd_unref(take(h->moved_fd));
        if (!h->fd)
            continue;
        moving_left_opened(node);
        if (!node->inode || node->inode->graph != from->graph) {
            inode_unref(node->inode);
            node->inode = inode_ref(h->fd->inode);
        }
    }
}

/* ---- open files ---- */

/* The handle's moved_fd, or why there is none. */
static FIBER int reopen(struct translator *to, struct inode *inode, struct handle *h)
{
    const struct fd *old = h->fd;
    SCOPED(fd_unref) struct fd *fd = fd_new(inode, old->flags, old->pid);
    struct request q = { .op = old->is_dir ? OP_OPENDIR : OP_OPEN, .inode = inode, .fd = fd };
    struct call call;
    int r;

    if (!fd)
        return -ENOMEM;
    fd->is_dir = old->is_dir;
    q.flags = fd->flags;
    call_init(&call, to->graph);
    r = child_call(to, 0, &call, &q, NULL);
    call_done(&call);
    if (r >= 0)
        h->moved_fd = take(fd);
    return r < 0 ? r : 0;
}

/* Flushes what the old graph may still hold back of open files. */
static FIBER void flush_old(struct translator *from, struct node *node)
{
    struct handle *h;

    list_for_each (h, &node->handles, of_node) {
        struct request q = { .op = OP_FSYNC, .fd = h->fd, .flags = 1 };
        struct call call;

        if (!h->fd || h->fd->is_dir || (h->flags & O_ACCMODE) == O_RDONLY)
            continue;
        q.inode = h->fd->inode;
        call_init(&call, from->graph);
        (void)child_call(from, 0, &call, &q, NULL); /* an error shows at the program's own fsync or close */
        call_done(&call);
    }
}

/* ---- locks ---- */

static FIBER int lock_in(struct translator *top, struct fd *fd, const struct lock_range *range,
                         enum lock_command command, struct dict *xdata)
{
    struct lock_range copy = *range;
    struct request q = { .op = OP_LK, .inode = fd->inode, .fd = fd, .command = command, .lock = &copy, .xdata = xdata };
    struct call call;
    int r;

    if (command == LOCK_UNLOCK)
        copy.type = LOCK_NONE;
    call_init(&call, top->graph);
    call.lk_owner = range->owner;
    call.pid = range->pid;
    r = child_call(top, 0, &call, &q, NULL);
    call_done(&call);
    return r < 0 ? r : 0;
}

static FIBER int retake(struct translator *to, struct translator *from, const struct held_range *l)
{
    SCOPED(dict_unref) struct dict *xdata = dict_new();
    struct handle *h = l->handle;
    int r;

    if (!xdata || dict_set_int(xdata, "mortar.lock-takeover", 1) < 0 ||
        dict_set_int(xdata, "mortar.lock-reclaim", 1) < 0)
        return -ENOMEM;
    r = lock_in(to, h->moved_fd, &l->range, LOCK_TRY, xdata);
    if (r != -EAGAIN)
        return r;
    /* A brick that does not know that the old connection is ours too. */
    (void)lock_in(from, h->fd, &l->range, LOCK_UNLOCK, NULL); /* if it fails, so does the lock */
    return lock_in(to, h->moved_fd, &l->range, LOCK_TRY, xdata);
}

/* ---- the move ---- */

static void lose(struct translator *to, struct handle *h, int r, const char *what)
{
    TLOG(to, LOG_WARNING, what, "gfid=%s err=%s", GFID_TEXT(&h->node->gfid), errno_name(r));
    fd_unref(take(h->moved_fd));
}

static FIBER void move_locks(struct translator *to, struct translator *from, struct node *node)
{
    struct held_range *l;

    list_for_each (l, &node->held, of_node) {
        int r = l->handle->moved_fd ? retake(to, from, l) : 0;

        if (r < 0)
            lose(to, l->handle, r, "lock-lost");
    }
}

static FIBER void move_node(struct translator *to, struct translator *from, struct node *node, bool may_leave)
{
    SCOPED(inode_unref) struct inode *inode = inode_table_get(to->graph, &node->gfid, node->type);
    bool is_gone = false;
    struct handle *h;

    list_for_each (h, &node->handles, of_node) {
        if (!h->fd)
            continue; /* lost at an earlier change */
        int r = inode ? reopen(to, inode, h) : -ENOMEM;
        is_gone |= r == -ENOENT || r == -ESTALE;
        if (r < 0 && !(may_leave && node->type == S_IFREG && is_gone))
            lose(to, h, r, "file-lost");
    }
    if (is_gone && may_leave && node->type == S_IFREG) {
        leave(node, from);
        return;
    }
    move_locks(to, from, node);
    list_for_each (h, &node->handles, of_node) {
        fd_unref(h->fd);
        h->fd = take(h->moved_fd);
        dir_entries_free(take(h->batch));
        h->batch_next = 0;
    }
}

static void each_node(struct mount *m, void (*fn)(struct node *node, void *arg), void *arg)
{
    struct node *node, *next;

    fn(&m->root, arg);
    HASH_ITER(hh, m->nodes, node, next)
    fn(node, arg);
    list_for_each (node, &m->aliases, of_aliases)
        fn(node, arg);
}

struct open_nodes {
    struct node **list;
    size_t count, room;
};

static void collect(struct node *node, void *arg)
{
    struct open_nodes *all = arg;

    if (list_empty(&node->handles) || node->left)
        return;
    if (all->count < all->room)
        all->list[all->count] = node;
    all->count++;
}

static int collect_open(struct mount *m, struct open_nodes *all)
{
    each_node(m, collect, all);
    all->list = mem_array(all->count ? all->count : 1, sizeof(void *));
    if (!all->list)
        return -ENOMEM;
    all->room = all->count;
    all->count = 0;
    each_node(m, collect, all);
    return 0;
}

static void drop_inode(struct node *node, void *arg)
{
    if (node->left)
        return;
    fd_unref(take(node->spare));
    inode_unref(take(node->inode));
}

FIBER int fuse_take_over(struct translator *to, struct translator *from, bool may_leave, struct error *err)
{
    struct fuse *old = from->state, *f = to->state;
    struct mount *m = old->mount;
    struct open_nodes all = { 0 };
    int r;

    if (!m)
        return error_set(err, -EINVAL, "there is no mount to take over");
    r = fuse_wait_for_child(to, err);
    if (r == 0)
        r = fuse_look_at_root(to, err);
    if (r < 0)
        return r;
    stand_still(m);
    if (collect_open(m, &all) < 0) {
        go_on(m);
        return error_set(err, -ENOMEM, "out of memory for %zu open files", all.count);
    }
    for (size_t i = 0; i < all.count; i++)
        flush_old(from, all.list[i]);
    for (size_t i = 0; i < all.count; i++)
        move_node(to, from, all.list[i], may_leave);
    m->me = to;
    each_node(m, drop_inode, NULL);
    f->mount = take(old->mount);
    f->on_end = old->on_end;
    f->on_end_arg = old->on_end_arg;
    mem_free(all.list);
    go_on(m);
    return 0;
}

/* ---- the end of an old graph ---- */

bool fuse_is_left(const struct translator *fuse)
{
    const struct fuse *f = fuse->state;

    return f->left_handles > 0;
}

void fuse_on_left(struct translator *fuse, void (*fn)(void *arg), void *arg)
{
    struct fuse *f = fuse->state;

    f->on_left = fn;
    f->on_left_arg = arg;
}

static void let_go(struct node *node, void *arg)
{
    if (node->left != arg)
        return;
    node->left = NULL;
    drop_inode(node, NULL);
}

FIBER bool fuse_leave(struct translator *present, struct translator *left)
{
    struct fuse *f = present->state;

    if (!f->mount)
        return true;
    stand_still(f->mount); /* requests use inodes of the old graph */
    bool is_free = !fuse_is_left(left);
    if (is_free)
        each_node(f->mount, let_go, left);
    go_on(f->mount);
    return is_free;
}
