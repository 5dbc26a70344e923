/* Telling the kernel to drop what it has cached. Writing a notification may block: the kernel waits for pages that are
 * being read or written, or for a directory in which something is being made, and only our loop can end those. So
 * notifications are always written by a pool thread, a few at a time. */
#include "mount/fuse/fuse_internal.h"
#include <fcntl.h>
#include <unistd.h>

/* docs/protocol.md "CACHE_INVALIDATION" */
#define UPCALL_NLINK  0x1
#define UPCALL_RENAME 0x80
#define UPCALL_FORGET 0x100

struct notice {
    struct list of_mount;
    struct event_hold *hold; /* a brick waits until it is written; NULL: nobody does (any more) */
    uint64_t target;         /* nodeid of what the kernel locks for it: the inode, or the directory of the name */
    enum lane_kind lane;
    int dev_fd;
    struct notice *also; /* written right after it */
    uint8_t bytes[sizeof(struct fuse_out_header) + sizeof(struct fuse_notify_inval_inode_out) + FUSE_NAME_LEN + 1];
};

static struct notice *notice_new(struct mount *m, enum fuse_notify_code code, const void *body, size_t body_bytes,
                                 const char *name)
{
    struct notice *n = NEW(struct notice);
    size_t name_bytes = name ? strlen(name) + 1 : 0;
    struct fuse_out_header head = { .error = (int32_t)code };

    if (!n)
        return NULL;
    head.len = (uint32_t)(sizeof(head) + body_bytes + name_bytes);
    assert(head.len <= sizeof(n->bytes));
    memcpy(n->bytes, &head, sizeof(head));
    memcpy(n->bytes + sizeof(head), body, body_bytes);
    if (name)
        memcpy(n->bytes + sizeof(head) + body_bytes, name, name_bytes);
    list_init(&n->of_mount);
    n->lane = code == FUSE_NOTIFY_INVAL_ENTRY ? LANE_NAMES : LANE_INODES;
    n->dev_fd = m->dev_fd;
    return n;
}

static struct notice *inode_notice(struct mount *m, struct node *node, bool attributes_only)
{
    struct fuse_notify_inval_inode_out out = { .ino = node_id(m, node), .off = attributes_only ? -1 : 0 };

    return notice_new(m, FUSE_NOTIFY_INVAL_INODE, &out, sizeof(out), NULL);
}

static struct notice *entry_notice(struct mount *m, struct node *parent, const char *name)
{
    struct fuse_notify_inval_entry_out out = { .parent = node_id(m, parent), .namelen = (uint32_t)strlen(name) };

    if (out.namelen > FUSE_NAME_LEN)
        return NULL;
    out.flags = m->flags & FUSE_HAS_EXPIRE_ONLY ? FUSE_EXPIRE_ONLY : 0;
    return notice_new(m, FUSE_NOTIFY_INVAL_ENTRY, &out, sizeof(out), name);
}

static struct notice *name_notice(struct mount *m, struct node *node)
{
    struct node *parent = node->name ? node_by_gfid(m, &node->parent) : NULL;

    return parent ? entry_notice(m, parent, node->name) : NULL;
}

static void write_notice(void *arg)
{
    struct fuse_out_header head;

    for (struct notice *n = arg; n; n = n->also) {
        memcpy(&head, n->bytes, sizeof(head));
        (void)!write(n->dev_fd, n->bytes, head.len); /* ENOENT: the kernel has nothing of it */
    }
}

static FIBER void run_notice(struct mount *m, struct notice *n)
{
    struct lane *lane = &m->lanes[n->lane];

    list_add_tail(&lane->out, &n->of_mount);
    while (lane->running >= FUSE_NOTIFY_RUNNING)
        (void)waitq_wait(&lane->one_less, NULL);
    lane->running++;
    env_pool_run(m->env, write_notice, n);
    list_del(&n->of_mount);
    lane->running--;
    (void)waitq_wake_one(&lane->one_less, 0);
    event_hold_drop(take(n->hold));
    m->count.invalidations++;
}

static FIBER void drain(struct mount *m, struct lane *lane)
{
    struct notice *n;

    while ((n = list_first(&lane->waiting, struct notice, of_mount))) {
        list_del(&n->of_mount);
        lane->queued--;
        run_notice(m, n);
        mem_free(n);
    }
    lane->fibers--;
    if (!inval_is_busy(m))
        (void)waitq_wake_all(&m->idle, 0);
}

static FIBER void drain_inodes(void *arg)
{
    struct mount *m = arg;

    drain(m, &m->lanes[LANE_INODES]);
}

static FIBER void drain_names(void *arg)
{
    struct mount *m = arg;

    drain(m, &m->lanes[LANE_NAMES]);
}

bool inval_is_busy(const struct mount *m)
{
    for (unsigned i = 0; i < LANE_COUNT; i++) {
        if (m->lanes[i].fibers > 0 || m->lanes[i].running > 0)
            return true;
    }
    return false;
}

static void post(struct mount *m, struct notice *n)
{
    struct lane *lane;

    if (!n)
        return;
    lane = &m->lanes[n->lane];
    if (lane->queued >= FUSE_NOTIFY_QUEUED || m->is_ended) {
        m->count.invalidations_dropped++;
        event_hold_drop(n->hold);
        mem_free(n);
        return;
    }
    list_add_tail(&lane->waiting, &n->of_mount);
    lane->queued++;
    if (lane->fibers < FUSE_NOTIFY_RUNNING &&
        fiber_spawn(m->env, "fuse-notify", n->lane == LANE_NAMES ? drain_names : drain_inodes, m) == 0)
        lane->fibers++;
}

static FIBER void wait_for(struct mount *m, struct notice *n)
{
    if (!n)
        return;
    run_notice(m, n);
    mem_free(n);
}

FIBER void inval_inode_wait(struct mount *m, struct node *node, bool attributes_only)
{
    wait_for(m, inode_notice(m, node, attributes_only));
}

void inval_inode_post(struct mount *m, struct node *node, bool attributes_only)
{
    post(m, inode_notice(m, node, attributes_only));
}

FIBER void inval_all_wait(struct mount *m, struct node *node)
{
    struct notice *n = inode_notice(m, node, false);

    if (!n)
        return;
    n->also = mount_options(m)->entry_timeout_s > 0 ? name_notice(m, node) : NULL;
    if (n->also)
        n->lane = LANE_NAMES;
    run_notice(m, n);
    mem_free(n->also);
    mem_free(n);
}

void inval_name_post(struct mount *m, struct node *node)
{
    post(m, name_notice(m, node));
}

bool request_changes(const struct request_in *in)
{
    switch (in->head.opcode) {
    case FUSE_WRITE:
    case FUSE_SETATTR:
    case FUSE_FALLOCATE:
    case FUSE_COPY_FILE_RANGE:
    case FUSE_SETXATTR:
    case FUSE_REMOVEXATTR:
    case FUSE_SYMLINK:
    case FUSE_MKNOD:
    case FUSE_MKDIR:
    case FUSE_UNLINK:
    case FUSE_RMDIR:
    case FUSE_RENAME:
    case FUSE_RENAME2:
    case FUSE_LINK:
    case FUSE_CREATE: return true;
    case FUSE_OPEN: return (((const struct fuse_open_in *)(const void *)in->args)->flags & O_TRUNC) != 0;
    default: return false;
    }
}

/* While the kernel changes a directory or file of ours it holds locks that a notification about it waits for; and what
 * it changes may be waiting below for the very client that made the other change. Two clients busy with one object are
 * in no order anyway: the notification goes out, but the brick does not wait for it. */
static bool is_being_changed(struct mount *m, const struct node *node)
{
    struct request_in *in;

    list_for_each (in, &m->requests, of_mount) {
        if (in->node == node && request_changes(in))
            return true;
    }
    return false;
}

void inval_let_pass(struct request_in *in)
{
    struct mount *m = in->m;
    uint64_t target = in->head.nodeid;
    struct notice *n;

    if (!request_changes(in))
        return;
    for (unsigned i = 0; i < LANE_COUNT; i++) {
        list_for_each (n, &m->lanes[i].waiting, of_mount) {
            if (n->target == target)
                event_hold_drop(take(n->hold));
        }
        list_for_each (n, &m->lanes[i].out, of_mount) {
            if (n->target == target)
                event_hold_drop(take(n->hold));
        }
    }
}

static void post_held(struct mount *m, struct notice *n, struct node *target, struct event_hold *hold)
{
    if (!n)
        return;
    n->target = node_id(m, target);
    if (!is_being_changed(m, target))
        n->hold = event_hold_take(hold);
    post(m, n);
}

/* Nobody knows what has changed. Files that are not open are judged when they are opened. */
static void inval_everything(struct mount *m)
{
    struct node *node, *next;

    own_attr_forget(&m->root);
    HASH_ITER(hh, m->nodes, node, next)
    {
        own_attr_forget(node);
        node->told_is_set = false;
        node->no_caps_ns = 0;
        node->cache_ns = env_now_ns(m->env);
        if (!list_empty(&node->handles))
            inval_inode_post(m, node, false);
    }
}

void inval_upcall(struct mount *m, const struct event *event)
{
    struct node *node = node_by_gfid(m, &event->gfid);

    m->upcalls++;
    if (gfid_is_null(&event->gfid))
        inval_everything(m);
    if (!node)
        return;
    own_attr_forget(node);
    if (event->name) {
        post_held(m, entry_notice(m, node, event->name), node, event->hold);
        return;
    }
    node->told_is_set = false;
    node->no_caps_ns = 0;
    node->cache_ns = env_now_ns(m->env);
    post_held(m, inode_notice(m, node, false), node, event->hold);
    if (event->invalidate_flags & (UPCALL_NLINK | UPCALL_RENAME | UPCALL_FORGET))
        inval_name_post(m, node);
}

void inval_init(struct mount *m)
{
    for (unsigned i = 0; i < LANE_COUNT; i++) {
        list_init(&m->lanes[i].waiting);
        list_init(&m->lanes[i].out);
        waitq_init(&m->lanes[i].one_less);
    }
}

void inval_free_all(struct mount *m)
{
    struct notice *n;

    for (unsigned i = 0; i < LANE_COUNT; i++) {
        while ((n = list_first(&m->lanes[i].waiting, struct notice, of_mount))) {
            list_del(&n->of_mount);
            event_hold_drop(n->hold);
            mem_free(n);
        }
    }
}
