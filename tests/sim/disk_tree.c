/* sim/disk_tree.c - one image of the simulated disk: nodes, names, data, and what each kind of change does to it. */
#include "sim/disk_internal.h"
#include <fcntl.h>
#include <stdio.h>

/* ---- trees ---- */

struct disk_node *tree_find(const struct tree *t, const struct gfid *gfid)
{
    struct disk_node *n = NULL;
    HASH_FIND(hh, t->nodes, gfid->bytes, 16, n);
    return n;
}

void tree_remove(struct tree *t, struct disk_node *n)
{
    HASH_DEL(t->nodes, n);
    for (size_t i = 0; i < n->entry_count; i++)
        mem_free(n->entries[i].name);
    mem_free(n->entries);
    mem_free(n->data);
    mem_free(n->is_allocated);
    mem_free(n->target);
    dict_unref(n->xattrs);
    mem_free(n);
}

void tree_clear(struct tree *t)
{
    while (t->nodes)
        tree_remove(t, t->nodes);
}

struct disk_node *tree_add(struct tree *t, const struct gfid *gfid)
{
    struct disk_node *n = NEW(struct disk_node);
    assert(n);
    n->gfid = *gfid;
    n->next_cookie = 1;
    HASH_ADD(hh, t->nodes, gfid.bytes, 16, n);
    return n;
}

static void *grown(void *old, size_t bytes)
{
    void *p = mem_realloc(old, bytes);
    assert(p);
    return p;
}

struct entry *node_entry(const struct disk_node *dir, const char *name)
{
    for (size_t i = 0; i < dir->entry_count; i++)
        if (!strcmp(dir->entries[i].name, name))
            return &dir->entries[i];
    return NULL;
}

static void entry_add(struct disk_node *dir, const char *name, const struct gfid *gfid)
{
    if (dir->entry_count == dir->entry_room) {
        dir->entry_room = dir->entry_room ? dir->entry_room * 2 : 8;
        dir->entries = grown(dir->entries, dir->entry_room * sizeof(*dir->entries));
    }
    dir->entries[dir->entry_count++] =
        (struct entry) { .name = mem_strdup(name), .gfid = *gfid, .cookie = dir->next_cookie++ };
}

static void entry_remove(struct disk_node *dir, const char *name)
{
    struct entry *e = node_entry(dir, name);
    assert(e);
    mem_free(e->name);
    memmove(e, e + 1, (size_t)(dir->entries + dir->entry_count - e - 1) * sizeof(*e));
    dir->entry_count--;
}

static void node_reserve(struct disk_node *n, uint64_t size)
{
    if (size <= n->room)
        return;
    uint64_t room = (MAX(size, n->room * 2) + DISK_BLOCK - 1) / DISK_BLOCK * DISK_BLOCK;
    n->data = grown(n->data, room);
    memset(n->data + n->room, 0, room - n->room);
    n->is_allocated = grown(n->is_allocated, room / DISK_BLOCK);
    memset(n->is_allocated + n->room / DISK_BLOCK, 0, (room - n->room) / DISK_BLOCK);
    n->room = room;
}

static void node_truncate(struct disk_node *n, uint64_t size)
{
    node_reserve(n, size);
    if (size < n->size) {
        memset(n->data + size, 0, n->size - size);
        for (uint64_t b = (size + DISK_BLOCK - 1) / DISK_BLOCK; b < n->room / DISK_BLOCK; b++)
            n->is_allocated[b] = 0;
    }
    n->size = size;
}

static void node_write(struct disk_node *n, uint64_t offset, const uint8_t *bytes, size_t size)
{
    if (size == 0)
        return;
    node_reserve(n, offset + size);
    memcpy(n->data + offset, bytes, size);
    for (uint64_t b = offset / DISK_BLOCK; b * DISK_BLOCK < offset + size; b++)
        n->is_allocated[b] = 1;
    n->size = MAX(n->size, offset + size);
}

static void node_punch(struct disk_node *n, uint64_t offset, uint64_t size)
{
    if (offset >= n->size)
        return;
    size = MIN(size, n->size - offset);
    memset(n->data + offset, 0, size);
    for (uint64_t b = (offset + DISK_BLOCK - 1) / DISK_BLOCK; (b + 1) * DISK_BLOCK <= offset + size; b++)
        n->is_allocated[b] = 0;
}

/* A name goes away; the node with it when that was its last one. */
static void tree_unname(struct tree *t, struct disk_node *dir, const char *name, bool keep)
{
    struct entry *e = node_entry(dir, name);
    struct gfid gfid = e->gfid;
    entry_remove(dir, name);
    struct disk_node *n = tree_find(t, &gfid);
    if (!n)
        return;
    if (S_ISDIR(n->attr.mode)) {
        tree_remove(t, n);
        return;
    }
    n->attr.nlink--;
    if (n->attr.nlink == 0 && !keep)
        tree_remove(t, n);
}

/* ---- applying changes; what was checked against the present image may find less on the durable one ---- */

static void apply_make(struct tree *t, const struct change *c)
{
    struct disk_node *dir = tree_find(t, &c->parent);
    if (!dir || tree_find(t, &c->gfid))
        return;
    struct disk_node *n = tree_add(t, &c->gfid);
    n->attr = c->attr;
    n->attr.nlink = S_ISDIR(c->attr.mode) ? 2 : 1;
    n->target = c->text ? mem_strdup(c->text) : NULL;
    n->xattrs = dict_copy(c->xattrs);
    n->parent = c->parent;
    entry_add(dir, c->name, &c->gfid);
}

static void apply_rename(struct tree *t, const struct change *c)
{
    struct disk_node *from = tree_find(t, &c->parent), *to = tree_find(t, &c->parent2);
    struct entry *e = from ? node_entry(from, c->name) : NULL;
    if (!e || !to)
        return;
    struct gfid gfid = e->gfid;
    struct entry *victim = node_entry(to, c->name2);
    struct gfid other = victim ? victim->gfid : gfid_null;
    if (c->flags & RENAME_EXCHANGE) {
        if (!victim)
            return;
        e->gfid = other;
        victim->gfid = gfid;
        struct disk_node *o = tree_find(t, &other);
        if (o)
            o->parent = c->parent;
    } else {
        if (victim)
            tree_unname(t, to, c->name2, c->keep);
        entry_remove(from, c->name);
        entry_add(to, c->name2, &gfid);
    }
    struct disk_node *n = tree_find(t, &gfid);
    if (n)
        n->parent = c->parent2;
}

static void apply_attr(struct disk_node *n, const struct iatt *a, uint32_t valid)
{
    if (valid & ATTR_MODE)
        n->attr.mode = (n->attr.mode & S_IFMT) | (a->mode & 07777);
    if (valid & ATTR_UID)
        n->attr.uid = a->uid;
    if (valid & ATTR_GID)
        n->attr.gid = a->gid;
    if (valid & ATTR_ATIME) {
        n->attr.atime = a->atime;
        n->attr.atime_nsec = a->atime_nsec;
    }
    if (valid & ATTR_MTIME) {
        n->attr.mtime = a->mtime;
        n->attr.mtime_nsec = a->mtime_nsec;
    }
    if (valid & ATTR_CTIME) {
        n->attr.ctime = a->ctime;
        n->attr.ctime_nsec = a->ctime_nsec;
    }
}

static void apply_link(struct tree *t, const struct change *c)
{
    struct disk_node *n = tree_find(t, &c->gfid), *dir = tree_find(t, &c->parent);
    if (!n || !dir || node_entry(dir, c->name))
        return;
    entry_add(dir, c->name, &c->gfid);
    n->attr.nlink++;
}

void tree_apply(struct tree *t, const struct change *c)
{
    struct disk_node *n = tree_find(t, &c->gfid);
    struct disk_node *dir = tree_find(t, &c->parent);
    switch (c->kind) {
    case CHANGE_MAKE: apply_make(t, c); return;
    case CHANGE_LINK: apply_link(t, c); return;
    case CHANGE_UNLINK:
        if (dir && node_entry(dir, c->name))
            tree_unname(t, dir, c->name, c->keep);
        return;
    case CHANGE_RENAME: apply_rename(t, c); return;
    default: break;
    }
    if (!n)
        return;
    if (c->kind == CHANGE_ATTR)
        apply_attr(n, &c->attr, c->valid);
    else if (c->kind == CHANGE_XATTR)
        (void)dict_set_bin(n->xattrs, c->name, c->bytes, c->size);
    else if (c->kind == CHANGE_NO_XATTR)
        dict_del(n->xattrs, c->name);
    else if (c->kind == CHANGE_TRUNCATE)
        node_truncate(n, c->offset);
    else if (c->kind == CHANGE_PUNCH)
        node_punch(n, c->offset, c->size);
    else if (c->kind == CHANGE_WRITE)
        node_write(n, c->offset, c->bytes, c->size);
}

/* ---- copying ---- */

void tree_copy(struct tree *to, const struct tree *from)
{
    for (const struct disk_node *n = from->nodes; n; n = n->hh.next) {
        struct disk_node *c = tree_add(to, &n->gfid);
        c->attr = n->attr;
        c->target = n->target ? mem_strdup(n->target) : NULL;
        c->xattrs = dict_copy(n->xattrs);
        c->parent = n->parent;
        node_truncate(c, n->size);
        if (n->size)
            memcpy(c->data, n->data, n->size);
        if (n->room && c->room)
            memcpy(c->is_allocated, n->is_allocated, MIN(c->room, n->room) / DISK_BLOCK);
        for (size_t i = 0; i < n->entry_count; i++) {
            c->next_cookie = n->entries[i].cookie;
            entry_add(c, n->entries[i].name, &n->entries[i].gfid);
        }
        c->next_cookie = n->next_cookie;
    }
}
