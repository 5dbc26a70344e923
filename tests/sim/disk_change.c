/* sim/disk_change.c - changing the simulated disk, with the answers a file system gives. */
#include "sim/disk_internal.h"
#include <fcntl.h>
#include <stdio.h>

#define DISK_MAX_FILE (64u << 20) /* simulated files are small; larger is a test's mistake */

static int dir_for_new(struct disk *d, const struct gfid *parent, const char *name)
{
    struct disk_node *dir = disk_find(d, parent);
    if (!dir)
        return -ESTALE;
    if (!S_ISDIR(dir->attr.mode))
        return -ENOTDIR;
    if (node_entry(dir, name))
        return -EEXIST;
    return d->is_full ? -ENOSPC : 0;
}

int disk_make(struct disk *d, const struct gfid *parent, const char *name, const struct iatt *attr, const char *target,
              const struct dict *xattrs)
{
    int r = dir_for_new(d, parent, name);
    if (r < 0)
        return r;
    if (disk_find(d, &attr->gfid))
        return -EEXIST;
    struct change *c = change_new(CHANGE_MAKE);
    c->gfid = attr->gfid;
    c->parent = *parent;
    c->name = mem_strdup(name);
    c->attr = *attr;
    c->text = target ? mem_strdup(target) : NULL;
    c->xattrs = dict_copy(xattrs);
    return disk_commit(d, c);
}

int disk_link(struct disk *d, const struct gfid *gfid, const struct gfid *parent, const char *name)
{
    struct disk_node *n = disk_find(d, gfid);
    if (!n)
        return -ESTALE;
    if (S_ISDIR(n->attr.mode))
        return -EPERM;
    int r = dir_for_new(d, parent, name);
    if (r < 0)
        return r;
    struct change *c = change_new(CHANGE_LINK);
    c->gfid = *gfid;
    c->parent = *parent;
    c->name = mem_strdup(name);
    return disk_commit(d, c);
}

static int remove_name(struct disk *d, const struct gfid *parent, const char *name, bool want_dir, bool keep)
{
    struct disk_node *dir = disk_find(d, parent);
    if (!dir)
        return -ESTALE;
    struct disk_node *n = disk_child(d, parent, name);
    if (!n)
        return -ENOENT;
    bool is_dir = S_ISDIR(n->attr.mode);
    if (want_dir && !is_dir)
        return -ENOTDIR;
    if (!want_dir && is_dir)
        return -EISDIR;
    if (is_dir && n->entry_count)
        return -ENOTEMPTY;
    struct change *c = change_new(CHANGE_UNLINK);
    c->parent = *parent;
    c->name = mem_strdup(name);
    c->keep = keep;
    return disk_commit(d, c);
}

int disk_unlink(struct disk *d, const struct gfid *parent, const char *name, bool keep_node)
{
    return remove_name(d, parent, name, false, keep_node);
}

int disk_rmdir(struct disk *d, const struct gfid *parent, const char *name)
{
    return remove_name(d, parent, name, true, false);
}

/* The deepest first entry below the directory, or the directory's own. */
static void find_leaf(struct disk *d, struct gfid *dir, char name[static 256])
{
    const char *inner;
    struct gfid gfid;
    uint64_t cookie;
    for (;;) {
        const struct disk_node *n = disk_child(d, dir, name);
        if (!n || !S_ISDIR(n->attr.mode) || !disk_next_entry(n, 0, &inner, &gfid, &cookie))
            return;
        *dir = n->gfid;
        snprintf(name, 256, "%s", inner);
    }
}

int disk_remove_tree(struct disk *d, const struct gfid *parent, const char *name)
{
    for (;;) {
        struct gfid dir = *parent;
        char leaf[256];
        snprintf(leaf, sizeof(leaf), "%s", name);
        find_leaf(d, &dir, leaf);
        const struct disk_node *n = disk_child(d, &dir, leaf);
        bool is_last = gfid_equal(&dir, parent) && !strcmp(leaf, name);
        int r = n && !S_ISDIR(n->attr.mode) && !is_last ? disk_unlink(d, &dir, leaf, false) : disk_rmdir(d, &dir, leaf);
        if (r < 0 || is_last)
            return r;
    }
}

static bool is_below(struct disk *d, const struct gfid *dir, const struct gfid *ancestor)
{
    struct gfid at = *dir;
    for (unsigned depth = 0; depth < 1000; depth++) {
        if (gfid_equal(&at, ancestor))
            return true;
        if (gfid_is_root(&at))
            return false;
        struct disk_node *n = disk_find(d, &at);
        if (!n)
            return false;
        at = n->parent;
    }
    return true;
}

static int check_victim(const struct disk_node *n, const struct disk_node *victim)
{
    bool is_dir = S_ISDIR(n->attr.mode), over_dir = S_ISDIR(victim->attr.mode);
    if (is_dir && !over_dir)
        return -ENOTDIR;
    if (!is_dir && over_dir)
        return -EISDIR;
    return over_dir && victim->entry_count ? -ENOTEMPTY : 0;
}

int disk_rename(struct disk *d, const struct gfid *parent, const char *name, const struct gfid *parent2,
                const char *name2, uint32_t flags, bool keep_victim)
{
    struct disk_node *to = disk_find(d, parent2);
    if (!disk_find(d, parent) || !to)
        return -ESTALE;
    struct disk_node *n = disk_child(d, parent, name), *victim = disk_child(d, parent2, name2);
    if (!n || (!victim && flags & RENAME_EXCHANGE))
        return -ENOENT;
    if (victim && flags & RENAME_NOREPLACE)
        return -EEXIST;
    if (S_ISDIR(n->attr.mode) && is_below(d, parent2, &n->gfid))
        return -EINVAL;
    if (victim == n)
        return 0;
    int r = victim && !(flags & RENAME_EXCHANGE) ? check_victim(n, victim) : 0;
    if (r < 0)
        return r;
    struct change *c = change_new(CHANGE_RENAME);
    c->parent = *parent;
    c->name = mem_strdup(name);
    c->parent2 = *parent2;
    c->name2 = mem_strdup(name2);
    c->flags = flags;
    c->keep = keep_victim;
    return disk_commit(d, c);
}

static int change_of(struct disk *d, const struct gfid *gfid, enum change_kind kind, struct change **ret)
{
    if (!disk_find(d, gfid))
        return -ESTALE;
    *ret = change_new(kind);
    (*ret)->gfid = *gfid;
    return 0;
}

int disk_set_attr(struct disk *d, const struct gfid *gfid, const struct iatt *attr, uint32_t valid)
{
    struct change *c;
    int r = change_of(d, gfid, CHANGE_ATTR, &c);
    if (r < 0)
        return r;
    c->attr = *attr;
    c->valid = valid;
    return disk_commit(d, c);
}

int disk_set_xattr(struct disk *d, const struct gfid *gfid, const char *key, const void *value, size_t size_bytes)
{
    struct change *c;
    int r = change_of(d, gfid, CHANGE_XATTR, &c);
    if (r < 0)
        return r;
    c->name = mem_strdup(key);
    c->bytes = mem_dup(value, size_bytes ? size_bytes : 1);
    c->size = size_bytes;
    return disk_commit(d, c);
}

int disk_remove_xattr(struct disk *d, const struct gfid *gfid, const char *key)
{
    struct change *c;
    struct disk_node *n = disk_find(d, gfid);
    if (n && !dict_has(n->xattrs, key))
        return -ENODATA;
    int r = change_of(d, gfid, CHANGE_NO_XATTR, &c);
    if (r < 0)
        return r;
    c->name = mem_strdup(key);
    return disk_commit(d, c);
}

int disk_write(struct disk *d, const struct gfid *gfid, uint64_t offset, const void *data, size_t size_bytes)
{
    struct change *c;
    if (d->is_full)
        return -ENOSPC;
    if (offset > DISK_MAX_FILE || size_bytes > DISK_MAX_FILE - offset)
        return -EFBIG;
    int r = change_of(d, gfid, CHANGE_WRITE, &c);
    if (r < 0)
        return r;
    c->offset = offset;
    c->bytes = mem_dup(data, size_bytes ? size_bytes : 1);
    c->size = size_bytes;
    return disk_commit(d, c);
}

/* Data that was written to this range and waits in memory is dropped: else it would come back when it is written out
 * after the change that took it away. */
static void forget_unsynced(struct disk *d, const struct gfid *gfid, uint64_t start, uint64_t end)
{
    for (struct change *c = d->first; c; c = c->next) {
        if (c->kind != CHANGE_WRITE || !gfid_equal(&c->gfid, gfid) || c->offset >= end || c->offset + c->size <= start)
            continue;
        uint64_t from = MAX(start, c->offset) - c->offset, to = MIN(end - c->offset, (uint64_t)c->size);
        memset(c->bytes + from, 0, to - from);
        if (to == c->size)
            c->size = from; /* nothing of it reaches beyond */
    }
}

int disk_truncate(struct disk *d, const struct gfid *gfid, uint64_t size_bytes)
{
    struct change *c;
    if (size_bytes > DISK_MAX_FILE)
        return -EFBIG;
    int r = change_of(d, gfid, CHANGE_TRUNCATE, &c);
    if (r < 0)
        return r;
    c->offset = size_bytes;
    forget_unsynced(d, gfid, size_bytes, UINT64_MAX);
    return disk_commit(d, c);
}

int disk_punch(struct disk *d, const struct gfid *gfid, uint64_t offset, uint64_t size_bytes)
{
    struct change *c;
    int r = change_of(d, gfid, CHANGE_PUNCH, &c);
    if (r < 0)
        return r;
    c->offset = offset;
    c->size = size_bytes;
    forget_unsynced(d, gfid, offset, offset + size_bytes);
    return disk_commit(d, c);
}
