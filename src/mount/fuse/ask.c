/* Handing operations to the graph below. */
#include "mount/fuse/fuse_internal.h"

/* A group list longer than this cannot travel whole in a GlusterFS credential; what the brick will ask for goes first.
 * docs/protocol.md "AUTH_GLUSTERFS_v3". */
#define GROUPS_ON_WIRE 80

static void put_relevant_groups_first(struct request_in *in, const struct request *q)
{
    struct node *node;

    if (!in->groups || in->groups->count <= GROUPS_ON_WIRE)
        return;
    if (q->parent2 && (node = node_by_gfid(in->m, &q->parent2->gfid)))
        groups_put_first(in->groups, node->gid);
    if (in->node)
        groups_put_first(in->groups, in->node->gid);
}

/* The caller may have got new groups since they were read. */
static bool groups_changed(struct request_in *in)
{
    struct groups *now = NULL;
    bool is_same;

    if (in->is_fresh_groups || in->head.uid == 0 || groups_get(in->m, in->head.pid, in->head.uid, true, &now) < 0)
        return false;
    in->is_fresh_groups = true;
    is_same = groups_equal(in->groups, now);
    groups_unref(in->groups);
    in->groups = now;
    in->call.groups = now->list;
    in->call.group_count = now->count;
    return !is_same;
}

static bool is_elsewhere(const struct graph *graph, const struct inode *inode)
{
    return inode && inode->graph != graph;
}

struct translator *ask_top(struct mount *m, const struct request *q)
{
    const struct inode *inode = q->inode ? q->inode : q->parent ? q->parent : q->parent2;
    struct graph *graph = inode ? inode->graph : m->me->graph;

    if (is_elsewhere(graph, q->parent) || is_elsewhere(graph, q->parent2) || is_elsewhere(graph, q->inode2) ||
        is_elsewhere(graph, q->fd ? q->fd->inode : NULL) || is_elsewhere(graph, q->fd2 ? q->fd2->inode : NULL))
        return NULL;
    return graph == m->me->graph ? m->me : graph->root;
}

FIBER int ask(struct request_in *in, const struct request *q, struct reply *r)
{
    struct translator *top = ask_top(in->m, q);
    int result;

    if (!top)
        return -EXDEV; /* one of them has lost its last name and lives in an earlier graph */
    put_relevant_groups_first(in, q);
    result = child_call(top, 0, &in->call, q, r);
    if ((result == -EACCES || result == -EPERM) && groups_changed(in)) {
        in->m->count.retries++;
        put_relevant_groups_first(in, q);
        if (r)
            reply_done(r);
        result = child_call(top, 0, &in->call, q, r);
    }
    return result;
}

static bool is_unknown(int r)
{
    return r == -ENOENT || r == -ESTALE;
}

FIBER int ask_stat(struct request_in *in, struct node *node, struct reply *r)
{
    struct handle *h = node_handle(node, false);
    struct fd *open = h ? h->fd : node->spare;
    struct request q = { .op = OP_STAT, .inode = node_inode(in->m, node) };
    int result;

    if (!q.inode)
        return -ENOMEM;
    if (open) {
        /* The name may be gone while the file is open, or about to be. */
        SCOPED(fd_unref) struct fd *fd = fd_ref(open);

        q.fd = fd;
        q.inode = fd->inode;
        result = ask(in, &q, r);
        if (result != -EBADF && result != -EBADFD && !is_unknown(result))
            return result;
        reply_done(r);
        q.fd = NULL;
        q.inode = node_inode(in->m, node);
    }
    result = ask(in, &q, r);
    return result == -ENOENT ? -ESTALE : result; /* the kernel looks the name up again */
}
