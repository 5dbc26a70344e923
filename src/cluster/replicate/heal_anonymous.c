/* cluster/replicate/heal_anonymous.c - names put aside instead of removed.
 *
 * A name that a sink has too many may be the old name of what was renamed meanwhile: its new directory may be healed later.
 * So it is renamed into a directory of its own in the root, by its gfid, and taken from there when the new name is made.
 * What nobody came for is removed by heal_clean_anonymous(). GlusterFS does the same, under the same name.
 */
#include "cluster/replicate/heal_internal.h"
#include "core/mem.h"
#include "graph/graph.h"
#include <stdio.h>

#define LIST_BYTES 16384

/* 0 and the name and gfid of the directory; -ENOENT when the volume has none. */
static int anonymous_directory(const struct replicate *s, char name[static ANONYMOUS_NAME_MAX], struct gfid *ret_gfid)
{
    if (!s->anonymous_inode || !s->volume_id || gfid_parse(s->volume_id, ret_gfid) < 0)
        return -ENOENT;
    (void)snprintf(name, ANONYMOUS_NAME_MAX, ".glusterfs-anonymous-inode-%s", GFID_TEXT(ret_gfid));
    ret_gfid->bytes[0] ^= 1;
    return 0;
}

/* The directory as an inode object; NULL when the volume has none (or no memory: as good as none). Returned. */
static struct inode *anonymous_inode(const struct heal *h, char name[static ANONYMOUS_NAME_MAX])
{
    struct gfid gfid;

    if (anonymous_directory(replicate_of(h->me), name, &gfid) < 0)
        return NULL;
    return inode_table_get(h->me->graph, &gfid, S_IFDIR);
}

static FIBER int make_directory(struct heal *h, unsigned child, struct inode *directory, const char *name)
{
    SCOPED(inode_unref) struct inode *root = inode_table_get(h->me->graph, &gfid_root, S_IFDIR);
    const struct request q = { .op = OP_MKDIR, .inode = directory, .parent = root, .name = name, .mode = 0755 };
    int r;

    if (!root)
        return -ENOMEM;
    if (h->has_anonymous & bit(child))
        return 0;
    r = child_call(h->me, child, &h->call, &q, NULL);
    if (r == -EEXIST)
        r = 0;
    if (r >= 0)
        h->has_anonymous |= bit(child);
    return r < 0 ? r : 0;
}

FIBER int heal_put_aside(struct heal *h, unsigned child, const char *name, struct inode *inode)
{
    char directory_name[ANONYMOUS_NAME_MAX], gfid_name[GFID_TEXT_LEN + 1];
    SCOPED(inode_unref) struct inode *directory = anonymous_inode(h, directory_name);
    const struct request q = { .op = OP_RENAME,
                               .inode = inode,
                               .parent = h->inode,
                               .name = name,
                               .parent2 = directory,
                               .name2 = gfid_format(&inode->gfid, gfid_name),
                               .valid = RENAME_ONTO_NOTHING };
    int r;

    if (!directory)
        return -EOPNOTSUPP;
    r = make_directory(h, child, directory, directory_name);
    if (r < 0)
        return r;
    r = child_call(h->me, child, &h->call, &q, NULL);
    return r < 0 ? r : 0;
}

FIBER int heal_take_back(struct heal *h, unsigned child, const char *name, struct inode *inode)
{
    char directory_name[ANONYMOUS_NAME_MAX], gfid_name[GFID_TEXT_LEN + 1];
    SCOPED(inode_unref) struct inode *directory = anonymous_inode(h, directory_name);
    const struct request q = { .op = OP_RENAME,
                               .inode = inode,
                               .parent = directory,
                               .name = gfid_format(&inode->gfid, gfid_name),
                               .parent2 = h->inode,
                               .name2 = name,
                               .valid = RENAME_ONTO_NOTHING };
    int r;

    if (!directory)
        return -ENOENT;
    r = child_call(h->me, child, &h->call, &q, NULL);
    return r == -ESTALE ? -ENOENT : r < 0 ? r : 0;
}

FIBER int heal_find_use(struct heal *h, uint32_t children, struct inode *inode, uint32_t *ret_in_use)
{
    SCOPED(heal_answers_free) struct heal_answers *there = heal_answers_new();
    SCOPED(heal_answers_free) struct heal_answers *aside = heal_answers_new();
    char directory_name[ANONYMOUS_NAME_MAX];
    SCOPED(inode_unref) struct inode *directory = anonymous_inode(h, directory_name);
    int r = there && aside ? heal_ask(h, inode, children, there) : -ENOMEM;

    if (r == 0 && directory)
        r = heal_ask_name(h, directory, GFID_TEXT(&inode->gfid), there->ok, aside);
    if (r < 0)
        return r;
    *ret_in_use = there->ok & ~aside->ok;
    for_each_child(i, there->ok & aside->ok)
    {
        if (inode->type != S_IFDIR && there->stat[i].nlink > 1)
            *ret_in_use |= bit(i);
    }
    return 0;
}

/* ---- cleaning ---- */

struct cleaning {
    struct heal *h;
    struct inode *directory;
    int removed;
};

static FIBER int remove_aside(struct cleaning *c, unsigned child, const char *name, struct inode *inode)
{
    struct request q = { .op = OP_UNLINK, .inode = inode, .parent = c->directory, .name = name };
    int r;

    if (inode->type == S_IFDIR) {
        q.op = OP_RMDIR;
        q.flags = 1; /* with all that is in it */
    }
    r = child_call(c->h->me, child, &c->h->call, &q, NULL);
    if (r >= 0)
        c->removed++;
    return r < 0 ? r : 0;
}

/* The copy on this child has another name, or no child has the inode in use: nobody will come for it. */
static FIBER bool is_left_over(struct cleaning *c, unsigned child, struct inode *inode)
{
    uint32_t in_use = 0;

    if (heal_present(c->h) != mask_all(c->h->set.child_count) ||
        heal_find_use(c->h, heal_present(c->h), inode, &in_use) < 0)
        return false;
    /* Who went away meanwhile may be the one that has it in use. */
    if (heal_present(c->h) != mask_all(c->h->set.child_count))
        return false;
    return !in_use || (in_use & bit(child));
}

static FIBER int clean_entry(struct cleaning *c, unsigned child, const char *name)
{
    SCOPED(heal_answers_free) struct heal_answers *a = heal_answers_new();
    SCOPED(inode_unref) struct inode *inode = NULL;

    if (!a)
        return -ENOMEM;
    if (heal_ask_name(c->h, c->directory, name, bit(child), a) < 0 || !a->ok)
        return 0;
    inode = inode_table_get(c->h->me->graph, &a->stat[child].gfid, iatt_type(&a->stat[child]));
    if (!inode)
        return -ENOMEM;
    if (!is_left_over(c, child, inode))
        return 0;
    return remove_aside(c, child, name, inode);
}

static FIBER int clean_child(struct cleaning *c, unsigned child)
{
    SCOPED(heal_listing_free) struct heal_listing *listing = heal_listing_open(c->h, child, c->directory, false);
    int r = listing ? 0 : -ENOMEM;

    while (r == 0 && (r = heal_listing_next(listing, LIST_BYTES)) > 0) {
        r = heal_pace(c->h, 0, listing->entries->count);
        for (uint32_t i = 0; r == 0 && i < listing->entries->count; i++) {
            const struct dir_entry *e = &listing->entries->list[i];

            if (strcmp(e->name, ".") != 0 && strcmp(e->name, "..") != 0)
                (void)clean_entry(c, child, e->name); /* what cannot be removed now is there next time */
        }
    }
    return r == -ENOENT || r == -ESTALE ? 0 : r;
}

FIBER int heal_clean_anonymous(struct translator *me, struct call *call, const struct heal_how *how)
{
    SCOPED(heal_report_free) struct heal_report *report = heal_report_new();
    SCOPED(inode_unref) struct inode *root = inode_table_get(me->graph, &gfid_root, S_IFDIR);
    char name[ANONYMOUS_NAME_MAX];
    struct cleaning c = { 0 };
    struct heal h;
    int r;

    if (!report || !root)
        return -ENOMEM;
    if (replicate_of(me)->up != replicate_of(me)->all)
        return -ENOTCONN;
    r = heal_begin(&h, me, call, root, how, report);
    if (r < 0)
        return r;
    c.h = &h;
    c.directory = anonymous_inode(&h, name);
    for (unsigned i = 0; c.directory && i < h.set.child_count && r >= 0; i++)
        r = clean_child(&c, i);
    inode_unref(c.directory);
    heal_done(&h);
    return r < 0 ? r : c.removed;
}
