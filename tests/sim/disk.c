#include "sim/disk.h"
#include "core/mem.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <uthash.h>

#define BLOCK         4096u
#define DISK_MAX_FILE (64u << 20) /* simulated files are small; larger is a test's mistake */

struct entry {
    char *name;
    struct gfid gfid;
    uint64_t cookie;
};

struct disk_node {
    struct gfid gfid;
    struct iatt attr; /* size and blocks are kept below */
    char *target;
    struct dict *xattrs;
    uint8_t *data;
    uint64_t size, room;
    uint8_t *is_allocated; /* one byte per block up to room */
    struct entry *entries;
    size_t entry_count, entry_room;
    uint64_t next_cookie;
    struct gfid parent; /* of a directory */
    UT_hash_handle hh;
};

struct tree {
    struct disk_node *nodes;
};

enum change_kind {
    CHANGE_MAKE,
    CHANGE_LINK,
    CHANGE_UNLINK,
    CHANGE_RENAME,
    CHANGE_ATTR,
    CHANGE_XATTR,
    CHANGE_NO_XATTR,
    CHANGE_TRUNCATE,
    CHANGE_PUNCH,
    CHANGE_WRITE, /* the only one that is data: may be lost or kept by chance */
};

struct change {
    enum change_kind kind;
    struct gfid gfid, parent, parent2;
    char *name, *name2, *text;
    uint32_t flags, valid;
    bool keep;
    struct iatt attr;
    struct dict *xattrs;
    uint8_t *bytes;
    size_t size;
    uint64_t offset;
    struct change *next;
};

struct disk {
    struct tree now, durable;
    struct change *first, **last;
    size_t unsynced;
    unsigned eio_percent;
    bool is_full;
};

/* ---- trees ---- */

static struct disk_node *tree_find(const struct tree *t, const struct gfid *gfid)
{
    struct disk_node *n = NULL;
    HASH_FIND(hh, t->nodes, gfid->bytes, 16, n);
    return n;
}

static void node_free(struct tree *t, struct disk_node *n)
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

static void tree_clear(struct tree *t)
{
    while (t->nodes)
        node_free(t, t->nodes);
}

static struct disk_node *tree_add(struct tree *t, const struct gfid *gfid)
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

static struct entry *node_entry(const struct disk_node *dir, const char *name)
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
    uint64_t room = (MAX(size, n->room * 2) + BLOCK - 1) / BLOCK * BLOCK;
    n->data = grown(n->data, room);
    memset(n->data + n->room, 0, room - n->room);
    n->is_allocated = grown(n->is_allocated, room / BLOCK);
    memset(n->is_allocated + n->room / BLOCK, 0, (room - n->room) / BLOCK);
    n->room = room;
}

static void node_truncate(struct disk_node *n, uint64_t size)
{
    node_reserve(n, size);
    if (size < n->size) {
        memset(n->data + size, 0, n->size - size);
        for (uint64_t b = (size + BLOCK - 1) / BLOCK; b < n->room / BLOCK; b++)
            n->is_allocated[b] = 0;
    }
    n->size = size;
}

static void node_write(struct disk_node *n, uint64_t offset, const uint8_t *bytes, size_t size)
{
    node_reserve(n, offset + size);
    memcpy(n->data + offset, bytes, size);
    for (uint64_t b = offset / BLOCK; b * BLOCK < offset + size; b++)
        n->is_allocated[b] = 1;
    n->size = MAX(n->size, offset + size);
}

static void node_punch(struct disk_node *n, uint64_t offset, uint64_t size)
{
    if (offset >= n->size)
        return;
    size = MIN(size, n->size - offset);
    memset(n->data + offset, 0, size);
    for (uint64_t b = (offset + BLOCK - 1) / BLOCK; (b + 1) * BLOCK <= offset + size; b++)
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
        node_free(t, n);
        return;
    }
    n->attr.nlink--;
    if (n->attr.nlink == 0 && !keep)
        node_free(t, n);
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

static void apply(struct tree *t, const struct change *c)
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

/* ---- the journal ---- */

static void change_free(struct change *c)
{
    mem_free(c->name);
    mem_free(c->name2);
    mem_free(c->text);
    mem_free(c->bytes);
    dict_unref(c->xattrs);
    mem_free(c);
}

static struct change *change_new(enum change_kind kind)
{
    struct change *c = NEW(struct change);
    assert(c);
    c->kind = kind;
    return c;
}

static int commit(struct disk *d, struct change *c)
{
    apply(&d->now, c);
    *d->last = c;
    d->last = &c->next;
    d->unsynced++;
    return 0;
}

/* Applies to the durable image every change that `survives` says, and keeps in the journal what it says stays. */
enum fate { FATE_DURABLE, FATE_STAYS, FATE_LOST };

static void journal_sweep(struct disk *d, enum fate (*fate)(const struct change *c, void *arg), void *arg)
{
    struct change *c = d->first;
    d->first = NULL;
    d->last = &d->first;
    d->unsynced = 0;
    while (c) {
        struct change *next = c->next;
        c->next = NULL;
        enum fate f = fate(c, arg);
        if (f == FATE_STAYS) {
            *d->last = c;
            d->last = &c->next;
            d->unsynced++;
        } else {
            if (f == FATE_DURABLE) {
                c->keep = false;
                apply(&d->durable, c);
            }
            change_free(c);
        }
        c = next;
    }
}

static enum fate fate_sync(const struct change *c, void *arg)
{
    const struct gfid *synced = arg;
    bool is_data = c->kind == CHANGE_WRITE;
    return !is_data || !synced || gfid_equal(&c->gfid, synced) ? FATE_DURABLE : FATE_STAYS;
}

void disk_sync(struct disk *d, const struct gfid *gfid)
{
    struct gfid copy = *gfid;
    journal_sweep(d, fate_sync, &copy);
}

void disk_sync_all(struct disk *d)
{
    journal_sweep(d, fate_sync, NULL);
}

struct power_cut {
    size_t prefix; /* changes left of those that may survive */
    disk_random_fn random;
    void *arg;
};

static enum fate fate_power_cut(const struct change *c, void *arg)
{
    struct power_cut *p = arg;
    if (p->prefix == 0)
        return FATE_LOST;
    p->prefix--;
    return c->kind != CHANGE_WRITE || p->random(p->arg) % 2 ? FATE_DURABLE : FATE_LOST;
}

static void tree_copy(struct tree *to, const struct tree *from)
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
        if (n->room)
            memcpy(c->is_allocated, n->is_allocated, MIN(c->room, n->room) / BLOCK);
        for (size_t i = 0; i < n->entry_count; i++) {
            c->next_cookie = n->entries[i].cookie;
            entry_add(c, n->entries[i].name, &n->entries[i].gfid);
        }
        c->next_cookie = n->next_cookie;
    }
}

void disk_power_cut(struct disk *d, disk_random_fn random, void *arg)
{
    struct power_cut p = { .prefix = random(arg) % (d->unsynced + 1), .random = random, .arg = arg };
    journal_sweep(d, fate_power_cut, &p);
    tree_clear(&d->now);
    tree_copy(&d->now, &d->durable);
}

/* ---- life ---- */

static void add_root(struct tree *t)
{
    struct disk_node *root = tree_add(t, &gfid_root);
    root->attr = (struct iatt) { .mode = S_IFDIR | 0755, .nlink = 2, .blksize = BLOCK };
    root->xattrs = dict_new();
    root->parent = gfid_root;
}

struct disk *disk_new(void)
{
    struct disk *d = NEW(struct disk);
    if (!d)
        return NULL;
    d->last = &d->first;
    add_root(&d->now);
    add_root(&d->durable);
    return d;
}

static enum fate fate_none(const struct change *c UNUSED, void *arg UNUSED)
{
    return FATE_LOST;
}

void disk_free(struct disk *d)
{
    if (!d)
        return;
    journal_sweep(d, fate_none, NULL);
    tree_clear(&d->now);
    tree_clear(&d->durable);
    mem_free(d);
}

void disk_set_faults(struct disk *d, unsigned eio_percent, bool is_full)
{
    d->eio_percent = eio_percent;
    d->is_full = is_full;
}

unsigned disk_eio_percent(const struct disk *d)
{
    return d->eio_percent;
}

bool disk_is_full(const struct disk *d)
{
    return d->is_full;
}

size_t disk_unsynced(const struct disk *d)
{
    return d->unsynced;
}

/* ---- looking ---- */

struct disk_node *disk_find(struct disk *d, const struct gfid *gfid)
{
    return tree_find(&d->now, gfid);
}

struct disk_node *disk_child(struct disk *d, const struct gfid *parent, const char *name)
{
    struct disk_node *dir = disk_find(d, parent);
    struct entry *e = dir ? node_entry(dir, name) : NULL;
    return e ? disk_find(d, &e->gfid) : NULL;
}

void disk_stat(const struct disk_node *n, struct iatt *ret)
{
    *ret = n->attr;
    ret->gfid = n->gfid;
    ret->ino = gfid_to_ino(&n->gfid);
    ret->blksize = BLOCK;
    ret->size = S_ISDIR(n->attr.mode) ? BLOCK : n->target ? strlen(n->target) : n->size;
    uint64_t blocks = 0;
    for (uint64_t b = 0; b < n->room / BLOCK; b++)
        blocks += n->is_allocated[b];
    ret->blocks = blocks * (BLOCK / 512);
}

const char *disk_target(const struct disk_node *n)
{
    return n->target;
}

const struct dict *disk_xattrs(const struct disk_node *n)
{
    return n->xattrs;
}

size_t disk_read(const struct disk_node *n, uint64_t offset, void *data, size_t size_bytes)
{
    if (offset >= n->size)
        return 0;
    size_t count = (size_t)MIN((uint64_t)size_bytes, n->size - offset);
    memcpy(data, n->data + offset, count);
    return count;
}

bool disk_seek(const struct disk_node *n, uint64_t offset, bool want_data, uint64_t *ret_offset)
{
    for (uint64_t at = offset; at < n->size; at = (at / BLOCK + 1) * BLOCK) {
        if ((n->is_allocated[at / BLOCK] != 0) == want_data) {
            *ret_offset = at;
            return true;
        }
    }
    if (want_data || offset >= n->size)
        return false;
    *ret_offset = n->size;
    return true;
}

size_t disk_entry_count(const struct disk_node *dir)
{
    return dir->entry_count;
}

bool disk_next_entry(const struct disk_node *dir, uint64_t after_cookie, const char **ret_name, struct gfid *ret_gfid,
                     uint64_t *ret_cookie)
{
    for (size_t i = 0; i < dir->entry_count; i++) {
        const struct entry *e = &dir->entries[i];
        if (e->cookie <= after_cookie)
            continue;
        *ret_name = e->name;
        *ret_gfid = e->gfid;
        *ret_cookie = e->cookie;
        return true;
    }
    return false;
}

const struct gfid *disk_parent(const struct disk_node *dir)
{
    return &dir->parent;
}

const struct gfid *disk_gfid(const struct disk_node *n)
{
    return &n->gfid;
}

void disk_each(struct disk *d, void (*fn)(struct disk_node *n, void *arg), void *arg)
{
    struct disk_node *n, *next;
    HASH_ITER(hh, d->now.nodes, n, next)
    {
        fn(n, arg);
    }
}

/* ---- changing ---- */

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
    return commit(d, c);
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
    return commit(d, c);
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
    return commit(d, c);
}

int disk_unlink(struct disk *d, const struct gfid *parent, const char *name, bool keep_node)
{
    return remove_name(d, parent, name, false, keep_node);
}

int disk_rmdir(struct disk *d, const struct gfid *parent, const char *name)
{
    return remove_name(d, parent, name, true, false);
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
    return commit(d, c);
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
    return commit(d, c);
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
    return commit(d, c);
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
    return commit(d, c);
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
    return commit(d, c);
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
    return commit(d, c);
}

int disk_punch(struct disk *d, const struct gfid *gfid, uint64_t offset, uint64_t size_bytes)
{
    struct change *c;
    int r = change_of(d, gfid, CHANGE_PUNCH, &c);
    if (r < 0)
        return r;
    c->offset = offset;
    c->size = size_bytes;
    return commit(d, c);
}

void disk_drop(struct disk *d, const struct gfid *gfid)
{
    struct disk_node *n = disk_find(d, gfid);
    if (n && !S_ISDIR(n->attr.mode) && n->attr.nlink == 0)
        node_free(&d->now, n);
}

void disk_drop_orphans(struct disk *d)
{
    struct disk_node *n, *next;
    HASH_ITER(hh, d->now.nodes, n, next)
    {
        if (!S_ISDIR(n->attr.mode) && n->attr.nlink == 0)
            node_free(&d->now, n);
    }
}
