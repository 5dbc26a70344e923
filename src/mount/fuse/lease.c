/* What may be served without asking, because the bricks have promised to tell before it changes (translator_lease()).
 *
 * Attributes that were asked for are kept with the node. They are served again while there is a lease that is no younger
 * than the question, and nothing was done through this mount that could have moved them. (Access times move when other
 * clients read; that is no change anybody is told of.) The kernel may keep them for as long as the lease is sure to
 * last, which is less than a brick waits for us.
 *
 * Data is in the kernel's pages only: they may stay over an open if the lease is no younger than the oldest of them.
 *
 * Left to itself (AUTO_INVAL_DATA) the kernel drops all pages of a file whenever its attributes show another mtime, also
 * after each write of its own: whoever reads and writes a file in turn gets all that was read ahead again and again. It
 * also asks for the attributes before each read once they are old. Where all bricks tell of changes neither is needed,
 * and the mount judges instead: other times mean other data unless the pages are leased. */
#include "mount/fuse/fuse_internal.h"
#include <fcntl.h>

uint64_t attr_mark(const struct mount *m, const struct node *node)
{
    return m->name_changes + node->own_changes; /* neither ever becomes less */
}

/* Operations on names move attributes of the inodes they lead to, which the request does not name. */
static bool changes_names(const struct request_in *in)
{
    switch (in->head.opcode) {
    case FUSE_UNLINK:
    case FUSE_RMDIR:
    case FUSE_RENAME:
    case FUSE_RENAME2:
    case FUSE_LINK: return true;
    default: return false;
    }
}

static bool moves_access_time(const struct request_in *in)
{
    switch (in->head.opcode) {
    case FUSE_READ:
    case FUSE_READLINK:
    case FUSE_READDIR:
    case FUSE_READDIRPLUS: return true;
    default: return false;
    }
}

void attr_moves(struct request_in *in)
{
    if (!in->node)
        return;
    if (request_changes(in) || moves_access_time(in))
        in->node->own_changes++;
    if (changes_names(in))
        in->m->name_changes++;
}

void attr_keep(struct request_in *in, struct node *node, const struct reply *r, uint64_t mark)
{
    if (gfid_dir_is_above(in->m, node))
        return; /* changes by its path do not count here */
    if (r->asked_ns == 0 || in->upcalls != in->m->upcalls || mark != attr_mark(in->m, node))
        return;
    if (!node->kept)
        node->kept = NEW(struct kept_attr);
    if (node->kept)
        *node->kept = (struct kept_attr) { r->stat, r->asked_ns, mark };
}

const struct iatt *attr_kept(struct mount *m, struct node *node, uint64_t *ret_age_ns)
{
    const struct kept_attr *k = node->kept;
    uint64_t timeout_ns = (uint64_t)(mount_options(m)->attribute_timeout_s * 1e9), left_ns;
    struct inode *inode = k && k->mark == attr_mark(m, node) && !node->left ? node_inode(m, node) : NULL;
    struct lease lease;

    if (!inode || !translator_lease(m->me, inode, &lease) || lease.since_ns > k->asked_ns)
        return NULL;
    left_ns = lease.until_ns - env_now_ns(m->env);
    *ret_age_ns = timeout_ns > left_ns ? timeout_ns - left_ns : 0;
    m->count.served_kept++;
    return &k->stat;
}

bool pages_are_leased(struct mount *m, struct node *node)
{
    struct inode *inode = node->cache_ns && !node->left ? node_inode(m, node) : NULL;
    struct lease lease;

    return inode && translator_lease(m->me, inode, &lease) && lease.since_ns <= node->cache_ns;
}

FIBER void attr_settle(struct mount *m, struct node *node, const struct iatt *a)
{
    if (!m->judges_times || node->type != S_IFREG || list_empty(&node->handles)) /* an open judges again */
        return;
    if (!node->told_is_set || (node->told.mtime == a->mtime && node->told.mtime_nsec == a->mtime_nsec))
        return; /* not set: we wrote, or somebody else did and the pages are going already */
    if (pages_are_leased(m, node))
        return;
    node->cache_ns = env_now_ns(m->env);
    inval_inode_wait(m, node, false);
}

FIBER bool bricks_give_leases(struct request_in *in)
{
    struct mount *m = in->m;
    SCOPED(reply_free) struct reply *r = reply_new();
    struct request q = { .op = OP_LOOKUP, .inode = node_inode(m, &m->root) };
    struct lease lease;

    return r && q.inode && ask(in, &q, r) >= 0 && translator_lease(m->me, q.inode, &lease);
}
