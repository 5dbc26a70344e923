/* cluster/replicate/heal_listing.c - the names of a directory on one child: of the directory itself, or of the index of
 * names that somebody missed. */
#include "cluster/replicate/heal_internal.h"
#include "core/mem.h"
#include "graph/graph.h"

struct heal_listing *heal_listing_open(struct heal *h, unsigned child, struct inode *directory, bool is_of_index)
{
    struct heal_listing *l = NEW(struct heal_listing);

    if (!l)
        return NULL;
    l->h = h;
    l->child = child;
    l->is_of_index = is_of_index;
    l->fd = fd_new(directory, O_RDONLY | O_DIRECTORY, PID_SELF_HEAL);
    if (l->fd) {
        l->fd->is_dir = true;
        return l;
    }
    mem_free(l);
    return NULL;
}

void heal_listing_free(struct heal_listing *l)
{
    if (!l)
        return;
    dir_entries_free(l->entries);
    fd_unref(l->fd);
    mem_free(l);
}

static FIBER int open_now(struct heal_listing *l)
{
    const struct request q = { .op = OP_OPENDIR, .inode = l->fd->inode, .fd = l->fd };
    int r;

    if (l->is_open)
        return 0;
    r = child_call(l->h->me, l->child, &l->h->call, &q, NULL);
    l->is_open = r >= 0;
    return r < 0 ? r : 0;
}

FIBER int heal_listing_next(struct heal_listing *l, uint64_t size_bytes)
{
    const struct request q = { .op = l->is_of_index ? OP_READDIR : OP_READDIRP,
                               .inode = l->fd->inode,
                               .fd = l->fd,
                               .offset = l->offset,
                               .size = size_bytes };
    SCOPED(reply_free) struct reply *r = reply_new();
    int result;

    if (!r)
        return -ENOMEM;
    if (l->at_end)
        return 0;
    result = open_now(l);
    if (result == 0)
        result = child_call(l->h->me, l->child, &l->h->call, &q, r);
    if (result < 0)
        return result;
    dir_entries_free(l->entries);
    l->entries = take(r->entries);
    if (!l->entries || !l->entries->count)
        return 0;
    l->offset = l->entries->list[l->entries->count - 1].offset;
    l->at_end = l->entries->at_end;
    return (int)l->entries->count;
}

/* ---- the index of names ---- */

static FIBER int look(struct heal *h, unsigned child, struct inode *parent, const char *name, struct inode **ret)
{
    const struct request q = { .op = OP_LOOKUP, .parent = parent, .name = name };
    SCOPED(reply_free) struct reply *r = reply_new();
    int result;

    if (!r)
        return -ENOMEM;
    result = child_call(h->me, child, &h->call, &q, r);
    if (result < 0)
        return result;
    *ret = inode_table_get(h->me->graph, &r->stat.gfid, S_IFDIR);
    return *ret ? 0 : -ENOMEM;
}

static FIBER int find_index(struct heal *h, unsigned child, struct inode **ret)
{
    static const char key[] = "glusterfs.xattrop_entry_changes_gfid";
    SCOPED(inode_unref) struct inode *root = inode_table_get(h->me->graph, &gfid_root, S_IFDIR);
    const struct request q = { .op = OP_GETXATTR, .inode = root, .text = key };
    SCOPED(reply_free) struct reply *r = reply_new();
    struct gfid gfid;
    int result;

    if (!r || !root)
        return -ENOMEM;
    result = child_call(h->me, child, &h->call, &q, r);
    if (result < 0)
        return result;
    if (dict_get_gfid(r->xattrs, key, &gfid) < 0)
        return -ENODATA;
    *ret = inode_table_get(h->me->graph, &gfid, S_IFDIR);
    return *ret ? 0 : -ENOMEM;
}

FIBER int heal_find_names(struct heal *h, unsigned child, struct inode **ret_directory)
{
    SCOPED(inode_unref) struct inode *index = NULL;
    int r = find_index(h, child, &index);

    if (r < 0)
        return r;
    return look(h, child, index, GFID_TEXT(&h->inode->gfid), ret_directory);
}
