/* Telling the kernel to drop what it has cached. Writing a notification may block: the kernel waits for pages that are
 * being read or written, or for a directory in which something is being made, and only our loop can end those. So
 * notifications are always written by a pool thread, a few at a time. */
#include "mount/fuse/fuse_internal.h"
#include <unistd.h>

/* docs/protocol.md "CACHE_INVALIDATION" */
#define UPCALL_NLINK  0x1
#define UPCALL_RENAME 0x80
#define UPCALL_FORGET 0x100

struct notice {
    struct list of_mount;
    struct mount *m;
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
    n->m = m;
    n->dev_fd = m->dev_fd;
    return n;
}

static struct notice *inode_notice(struct mount *m, struct node *node, bool attributes_only)
{
    struct fuse_notify_inval_inode_out out = { .ino = node_id(m, node), .off = attributes_only ? -1 : 0 };

    return notice_new(m, FUSE_NOTIFY_INVAL_INODE, &out, sizeof(out), NULL);
}

static struct notice *name_notice(struct mount *m, struct node *node)
{
    struct node *parent = node->name ? node_by_gfid(m, &node->parent) : NULL;
    struct fuse_notify_inval_entry_out out = { 0 };

    if (!parent)
        return NULL;
    out.parent = node_id(m, parent);
    out.namelen = (uint32_t)strlen(node->name);
    out.flags = m->flags & FUSE_HAS_EXPIRE_ONLY ? FUSE_EXPIRE_ONLY : 0;
    return notice_new(m, FUSE_NOTIFY_INVAL_ENTRY, &out, sizeof(out), node->name);
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
    while (m->notices_running >= FUSE_NOTIFY_RUNNING)
        (void)waitq_wait(&m->notice_done, NULL);
    m->notices_running++;
    env_pool_run(m->env, write_notice, n);
    m->notices_running--;
    (void)waitq_wake_one(&m->notice_done, 0);
    m->count.invalidations++;
}

static FIBER void drain(void *arg)
{
    struct mount *m = arg;
    struct notice *n;

    while ((n = list_first(&m->notices, struct notice, of_mount))) {
        list_del(&n->of_mount);
        m->notices_queued--;
        run_notice(m, n);
        mem_free(n);
    }
    if (--m->notice_fibers == 0)
        (void)waitq_wake_all(&m->idle, 0);
}

static void post(struct mount *m, struct notice *n)
{
    if (!n)
        return;
    if (m->notices_queued >= FUSE_NOTIFY_QUEUED || m->is_ended) {
        m->count.invalidations_dropped++;
        mem_free(n);
        return;
    }
    list_add_tail(&m->notices, &n->of_mount);
    m->notices_queued++;
    if (m->notice_fibers < FUSE_NOTIFY_RUNNING && fiber_spawn(m->env, "fuse-notify", drain, m) == 0)
        m->notice_fibers++;
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
    run_notice(m, n);
    mem_free(n->also);
    mem_free(n);
}

void inval_name_post(struct mount *m, struct node *node)
{
    post(m, name_notice(m, node));
}

void inval_upcall(struct mount *m, const struct event *event)
{
    struct node *node = node_by_gfid(m, &event->gfid);

    if (!node)
        return;
    node->told_is_set = false;
    inval_inode_post(m, node, false);
    if (event->invalidate_flags & (UPCALL_NLINK | UPCALL_RENAME | UPCALL_FORGET))
        inval_name_post(m, node);
}

void inval_free_all(struct mount *m)
{
    struct notice *n;

    while ((n = list_first(&m->notices, struct notice, of_mount))) {
        list_del(&n->of_mount);
        mem_free(n);
    }
}
