/* cluster/replicate/entry.c - changes of names in directories.
 *
 * A session covers all names of a directory; the mark is on disk before the first change, so a client that dies
 * between two bricks always leaves a trace. A directory that is removed or replaced is locked too, without a mark:
 * nobody else may make a name in it on one brick while it goes on another.
 */
#include "cluster/replicate/replicate_internal.h"

static struct claim *claim_name(struct txn *txn, struct inode *directory, const char *name)
{
    struct claim *claim = txn_claim(txn, directory, CHANGE_ENTRY);

    claim->name = name;
    return claim;
}

static void claim_whole(struct txn *txn, struct inode *directory)
{
    for (unsigned i = 0; i < txn->claim_count; i++) {
        if (txn->claim[i].inode == directory) {
            txn->claim[i].name = NULL;
            return;
        }
    }
    claim_name(txn, directory, NULL)->wants_mark = false;
}

/* This name of the inode goes, and perhaps the inode with it. */
static void claim_victim(struct txn *txn, struct inode *victim)
{
    static const enum change changes[] = { CHANGE_DATA, CHANGE_METADATA };

    for (size_t i = 0; victim && i < ARRAY_SIZE(changes); i++) {
        if (!session_find(txn->me, victim, changes[i]))
            continue;
        struct claim *claim = txn_claim(txn, victim, changes[i]);

        claim->wants_mark = false;
        claim->only_if_open = true;
    }
}

static bool is_ours(const struct txn *txn)
{
    for_each_child(i, txn->ok)
    {
        if (!gfid_equal(&txn->answer[i]->stat.gfid, &txn->q->inode->gfid))
            return false;
    }
    return true;
}

static void made(struct txn *txn)
{
    if (is_ours(txn))
        known_new(txn->me, txn->q->inode, txn->ok);
    if (txn->q->op == OP_CREATE) {
        struct fd_state *state = fd_state(txn->me, txn->q->fd);

        if (state)
            state->opened |= txn->ok;
    }
}

static uint32_t type_made(const struct request *q)
{
    switch (q->op) {
    case OP_MKDIR: return S_IFDIR;
    case OP_SYMLINK: return S_IFLNK;
    case OP_MKNOD: return q->mode & S_IFMT ? q->mode & S_IFMT : S_IFREG;
    default: return S_IFREG;
    }
}

FIBER int replicate_make(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    SCOPED(txn_free) struct txn *txn = NULL;

    if (gfid_is_root(&q->parent->gfid) && call->pid >= 0 && name_is_private(q->name))
        return -EPERM;
    txn = txn_new(me, call, q, CHANGE_ENTRY);
    if (!txn)
        return -ENOMEM;
    q->inode->type = type_made(q); /* whatever the caller took it for: its marks depend on it */
    claim_name(txn, q->parent, q->name);
    txn->makes_inode = true;
    txn->done = made;
    return txn_run(txn, r);
}

FIBER int replicate_link(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    SCOPED(txn_free) struct txn *txn = txn_new(me, call, q, CHANGE_ENTRY);

    if (!txn)
        return -ENOMEM;
    claim_name(txn, q->parent2, q->name2);
    return txn_run(txn, r);
}

FIBER int replicate_unlink(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    SCOPED(txn_free) struct txn *txn = txn_new(me, call, q, CHANGE_ENTRY);

    if (!txn)
        return -ENOMEM;
    claim_name(txn, q->parent, q->name);
    claim_victim(txn, q->inode);
    return txn_run(txn, r);
}

/* A directory goes: what its copies are worth must be known before, for what bricks say about it goes with it. */
static FIBER void claim_removed(struct txn *txn, struct inode *directory)
{
    struct known known;

    claim_whole(txn, directory);
    if (!known_is_fresh(txn->me, directory))
        (void)known_get(txn->me, txn->call, directory, NULL, false, &known); /* unknown: nobody counts as behind */
    txn->removed = directory;
}

/* The directory behind a name, when the caller did not say: *ret is NULL when there is none or it is no directory. */
static FIBER int find_directory(struct translator *me, struct call *call, struct inode *parent, const char *name,
                                struct inode **ret)
{
    const struct request q = { .op = OP_LOOKUP, .parent = parent, .name = name };
    SCOPED(reply_free) struct reply *r = reply_new();
    int result;

    *ret = NULL;
    if (!r)
        return -ENOMEM;
    result = replicate_lookup(me, call, &q, r);
    if (result == -ENOENT)
        return 0;
    if (result < 0)
        return result;
    if (iatt_type(&r->stat) != S_IFDIR)
        return 0;
    *ret = inode_table_get(me->graph, &r->stat.gfid, S_IFDIR);
    return *ret ? 0 : -ENOMEM;
}

FIBER int replicate_rmdir(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    SCOPED(txn_free) struct txn *txn = txn_new(me, call, q, CHANGE_ENTRY);
    SCOPED(inode_unref) struct inode *directory = q->inode ? inode_ref(q->inode) : NULL;

    if (!txn)
        return -ENOMEM;
    if (!directory) {
        int ret = find_directory(me, call, q->parent, q->name, &directory);

        if (ret < 0)
            return ret;
    }
    claim_name(txn, q->parent, q->name);
    if (directory)
        claim_removed(txn, directory);
    claim_victim(txn, directory);
    return txn_run(txn, r);
}

FIBER int replicate_rename(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    const struct replicate *s = replicate_of(me);
    SCOPED(txn_free) struct txn *txn = txn_new(me, call, q, CHANGE_ENTRY);
    SCOPED(inode_unref) struct inode *replaced = q->inode2 ? inode_ref(q->inode2) : NULL;

    if (!txn)
        return -ENOMEM;
    /* What only some bricks can do would be pending for the others, for a rename that users take for atomic. */
    if (q->flags && (children_lack(s, s->up) & BRICK_LACKS_RENAME_FLAGS))
        return -EINVAL;
    /* Only a directory can replace one. */
    if (!replaced && !(q->valid & RENAME_ONTO_NOTHING) &&
        (!q->inode || q->inode->type == S_IFDIR || q->inode->type == 0)) {
        int ret = find_directory(me, call, q->parent2, q->name2, &replaced);

        if (ret < 0)
            return ret;
    }
    if (q->parent == q->parent2) {
        claim_name(txn, q->parent, q->name)->name2 = q->name2;
    } else {
        claim_name(txn, q->parent, q->name);
        claim_name(txn, q->parent2, q->name2);
    }
    if (replaced && replaced->type == S_IFDIR)
        claim_removed(txn, replaced);
    claim_victim(txn, replaced);
    return txn_run(txn, r);
}
