/* The directory .gfid of the root (option aux-gfid-mount): .gfid/UUID is the file or directory with that gfid, wherever its
 * names are. Tools that get gfids from a change log or from heal info work with it. It cannot be listed, and only root can
 * use it: it leads past the permissions of the directories on the way.
 *
 * A file is the same node there and by its path. A directory must be another one, an alias: the kernel knows a directory
 * in one place only and would take the second for a rename. What is below an alias is an alias too if it is a directory.
 * The kernel keeps neither names nor attributes of aliases, since notices of changes go to the other node. */
#include "mount/fuse/fuse_internal.h"

static const struct gfid gfid_dir_gfid = { { [15] = 0x0d } }; /* as with GlusterFS */

static void init_node(struct node *node, const struct gfid *gfid)
{
    node->gfid = *gfid;
    node->type = S_IFDIR;
    list_init(&node->handles);
    list_init(&node->held);
    list_init(&node->of_aliases);
}

void gfid_dir_init(struct mount *m)
{
    init_node(&m->gfid_dir, &gfid_dir_gfid);
    m->gfid_dir.lookups = 1; /* never forgotten */
    list_init(&m->aliases);
}

bool gfid_dir_is_above(const struct mount *m, const struct node *node)
{
    return node == &m->gfid_dir || (node && !list_empty(&node->of_aliases));
}

struct node *gfid_dir_alias(struct mount *m, const struct iatt *a)
{
    struct node *node;

    list_for_each (node, &m->aliases, of_aliases) {
        if (gfid_equal(&node->gfid, &a->gfid))
            return node;
    }
    node = NEW(struct node);
    if (!node)
        return NULL;
    init_node(node, &a->gfid);
    node->generation = ++m->next_generation;
    list_add_tail(&m->aliases, &node->of_aliases);
    return node;
}

static void own_iatt(struct mount *m, struct iatt *a)
{
    *a = (struct iatt) { .gfid = gfid_dir_gfid, .mode = S_IFDIR | 0700, .nlink = 2, .size = 4096, .blksize = 4096 };
    a->ino = gfid_to_ino(&a->gfid);
}

bool gfid_dir_look_up(struct request_in *in, const char *name)
{
    struct mount *m = in->m;
    struct iatt a;

    if (in->node != &m->root || !mount_options(m)->gfid_access || strcmp(name, GFID_DIR_NAME) != 0)
        return false;
    own_iatt(m, &a);
    (void)answer_entry(in, &m->gfid_dir, &a, NULL);
    return true;
}

/* The name is a gfid. */
static FIBER int look_up(struct request_in *in)
{
    SCOPED(reply_free) struct reply *r = reply_new();
    SCOPED(inode_unref) struct inode *inode = NULL;
    struct request q = { .op = OP_LOOKUP };
    struct node *node;
    struct gfid gfid;

    if (gfid_parse((const char *)in->args, &gfid) < 0 || gfid_is_null(&gfid) || gfid_equal(&gfid, &gfid_dir_gfid))
        return -ENOENT;
    q.inode = inode = inode_table_get(in->m->me->graph, &gfid, 0);
    if (!r || !inode)
        return -ENOMEM;
    int result = ask(in, &q, r);
    if (result < 0)
        return result == -ESTALE ? -ENOENT : result;
    if (!iatt_is_set(&r->stat) || !gfid_equal(&r->stat.gfid, &gfid))
        return -EIO;
    node = S_ISDIR(r->stat.mode) ? gfid_dir_alias(in->m, &r->stat) : node_get(in->m, &r->stat);
    if (!node)
        return -ENOMEM;
    if (node->type != iatt_type(&r->stat)) {
        node_pin(node);
        node_unpin(in->m, node);
        return -ESTALE;
    }
    result = answer_entry(in, node, &r->stat, NULL);
    return in->is_answered ? 0 : result;
}

FIBER int gfid_dir_serve(struct request_in *in)
{
    struct iatt a;

    switch (in->head.opcode) {
    case FUSE_LOOKUP: return look_up(in);
    case FUSE_GETATTR:
        own_iatt(in->m, &a);
        (void)answer_attr(in, in->node, &a);
        return 0;
    case FUSE_ACCESS: (void)answer(in, NULL, 0); return 0;
    case FUSE_GETXATTR: return -ENODATA;
    case FUSE_LISTXATTR: return -EOPNOTSUPP;
    default: return -EPERM;
    }
}

void gfid_dir_will_change(struct mount *m, const struct node *alias)
{
    struct node *by_path = node_by_gfid(m, &alias->gfid);

    if (!by_path)
        return;
    by_path->own_changes++;
    absent_free(m, by_path);
}

void gfid_dir_changed(struct mount *m, const struct node *alias, const char *name)
{
    struct node *by_path = node_by_gfid(m, &alias->gfid);

    if (by_path)
        by_path->own_changes++;
    if (name && strlen(name) > FUSE_NAME_LEN)
        return; /* nothing was changed under such a name, or it is the target of a link */
    inval_upcall(m, &(struct event) { .kind = EVENT_INVALIDATE, .gfid = alias->gfid, .name = name });
}
