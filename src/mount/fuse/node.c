/* Nodes and handles: what the kernel's numbers stand for, and what it was told about them. */
#include "mount/fuse/fuse_internal.h"
#include <fcntl.h>

struct node *node_by_id(struct mount *m, uint64_t nodeid)
{
    /* The kernel only sends numbers it got from us and has not given back. */
    return nodeid == FUSE_ROOT_ID ? &m->root : (struct node *)(uintptr_t)nodeid;
}

uint64_t node_id(struct mount *m, const struct node *node)
{
    return node == &m->root ? FUSE_ROOT_ID : (uint64_t)(uintptr_t)node;
}

struct node *node_by_gfid(struct mount *m, const struct gfid *gfid)
{
    struct node *node = NULL;

    if (gfid_is_root(gfid))
        return &m->root;
    HASH_FIND(hh, m->nodes, gfid, sizeof(*gfid), node);
    return node;
}

struct node *node_get(struct mount *m, const struct iatt *a)
{
    struct node *node = node_by_gfid(m, &a->gfid);

    assert(m);
    if (node)
        return node;
    node = NEW(struct node);
    if (!node)
        return NULL;
    node->gfid = a->gfid;
    node->type = iatt_type(a);
    node->generation = ++m->next_generation; /* addresses are used again, the pair is not */
    list_init(&node->handles);
    list_init(&node->held);
    list_init(&node->of_aliases);
    HASH_ADD(hh, m->nodes, gfid, sizeof(node->gfid), node);
    return node;
}

static void node_free(struct mount *m, struct node *node)
{
    if (!list_empty(&node->of_aliases))
        list_del(&node->of_aliases);
    else if (node != &m->root)
        HASH_DEL(m->nodes, node); // NOLINT: of the nodes in the table, one has no predecessor, and that is the head
    fd_unref(node->spare);
    inode_unref(node->inode);
    mem_free(node->name);
    mem_free(node->own);
    mem_free(node->kept);
    absent_free(m, node);
    if (node != &m->root)
        mem_free(node);
}

static void free_if_unused(struct mount *m, struct node *node)
{
    if (node->lookups == 0 && node->pins == 0 && list_empty(&node->handles))
        node_free(m, node);
}

void node_pin(struct node *node)
{
    node->pins++;
}

void node_unpin(struct mount *m, struct node *node)
{
    if (!node)
        return;
    assert(node->pins > 0);
    node->pins--;
    free_if_unused(m, node);
}

void node_forget(struct mount *m, struct node *node, uint64_t lookups)
{
    if (node == &m->root || node == &m->gfid_dir)
        return; /* never forgotten */
    node->lookups -= MIN(lookups, node->lookups);
    free_if_unused(m, node);
}

static void free_with_handles(struct mount *m, struct node *node)
{
    struct handle *h;

    node->lookups = 0;
    node_pin(node);
    while ((h = list_first(&node->handles, struct handle, of_node)))
        handle_free(m, h);
    node->pins = 1;
    node_unpin(m, node);
}

void node_free_all(struct mount *m)
{
    struct node *node, *next;
    struct handle *h;

    HASH_ITER(hh, m->nodes, node, next)
    free_with_handles(m, node);
    while ((node = list_first(&m->aliases, struct node, of_aliases)))
        free_with_handles(m, node);
    while ((h = list_first(&m->root.handles, struct handle, of_node)))
        handle_free(m, h);
    inode_unref(take(m->root.inode));
    mem_free(take(m->root.own));
    mem_free(take(m->root.kept));
    absent_free(m, &m->root);
}

struct inode *node_inode(struct mount *m, struct node *node)
{
    struct graph *graph = m->me->graph;

    if (node->inode && (node->left || node->inode->graph == graph))
        return node->inode;
    inode_unref(node->inode);
    node->inode = inode_table_get(graph, &node->gfid, node->type);
    return node->inode;
}

void node_set_name(struct node *node, const struct node *parent, const char *name)
{
    char *copy;

    node->parent = parent->gfid;
    if (node->name && strcmp(node->name, name) == 0)
        return;
    copy = mem_strdup(name);
    mem_free(node->name);
    node->name = copy; /* NULL: the name is a help, not needed */
}

struct handle *node_handle(struct node *node, bool for_writing)
{
    struct handle *h;

    list_for_each (h, &node->handles, of_node) {
        if (h->fd && (!for_writing || (h->flags & O_ACCMODE) != O_RDONLY))
            return h;
    }
    return NULL;
}

static struct told told_of(const struct iatt *a)
{
    return (struct told) { a->size, a->mtime, a->ctime, a->mtime_nsec, a->ctime_nsec };
}

static bool told_equal(const struct told *a, const struct told *b)
{
    return a->size == b->size && a->mtime == b->mtime && a->mtime_nsec == b->mtime_nsec && a->ctime == b->ctime &&
           a->ctime_nsec == b->ctime_nsec;
}

bool told_matches(const struct node *node, const struct iatt *a)
{
    struct told now = told_of(a);

    return node->told_is_set && told_equal(&node->told, &now);
}

void node_told(struct mount *m, struct node *node, const struct iatt *a)
{
    if (!iatt_is_set(a))
        return;
    node->kernel_end = a->size;
    node->is_written = false;
    node->gid = a->gid;
    node->plain_ns = a->mode & (S_ISUID | S_ISGID) ? 0 : env_now_ns(m->env);
    if (told_matches(node, a))
        return;
    node->told = told_of(a);
    node->told_is_set = true;
    node->told_ns = env_now_ns(m->env);
}

void node_wrote(struct mount *m, struct node *node, uint64_t end, const struct iatt *pre, const struct iatt *post)
{
    node->changes++;
    node->is_written = true;
    node->kernel_end = MAX(node->kernel_end, end);
    if (iatt_is_set(pre) && iatt_is_set(post) && told_matches(node, pre) && post->size == MAX(node->told.size, end)) {
        /* Nobody else has changed it since it was told, so the kernel's pages are those of the brick. */
        node->told = told_of(post);
        node->told_ns = env_now_ns(m->env);
        return;
    }
    node->told_is_set = false;
}

struct handle *handle_new(struct node *node, struct fd *fd, uint32_t flags)
{
    struct handle *h = NEW(struct handle);

    if (!h)
        return NULL;
    h->node = node;
    h->fd = fd_ref(fd);
    h->flags = flags;
    fiber_mutex_init(&h->dir_lock);
    list_add_tail(&node->handles, &h->of_node);
    moving_left_opened(node);
    return h;
}

void handle_free(struct mount *m, struct handle *h)
{
    struct node *node = h->node;

    held_closed(h);
    list_del(&h->of_node);
    if (h->fd)
        moving_left_closed(node);
    fd_unref(h->fd);
    buf_unref(h->first);
    dir_entries_free(h->batch);
    mem_free(h);
    free_if_unused(m, node);
}

struct handle *handle_by_id(uint64_t fh)
{
    return (struct handle *)(uintptr_t)fh;
}
