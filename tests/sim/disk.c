/* sim/disk.c - journal, power cuts and life of the simulated disk, and looking at it. */
#include "sim/disk_internal.h"

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

struct change *change_new(enum change_kind kind)
{
    struct change *c = NEW(struct change);
    assert(c);
    c->kind = kind;
    return c;
}

int disk_commit(struct disk *d, struct change *c)
{
    tree_apply(&d->now, c);
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
                tree_apply(&d->durable, c);
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

void disk_power_cut(struct disk *d, disk_random_fn random, void *arg)
{
    struct power_cut p = { .prefix = random(arg) % (d->unsynced + 1), .random = random, .arg = arg };
    journal_sweep(d, fate_power_cut, &p);
    tree_clear(&d->now);
    tree_copy(&d->now, &d->durable);
}

/* ---- index directories ---- */

#define INDEX_MARK "sim index" /* how their gfids begin */

struct gfid disk_index_gfid(unsigned kind)
{
    struct gfid g = { INDEX_MARK };
    g.bytes[15] = (uint8_t)(kind + 1);
    return g;
}

struct gfid disk_index_base(void)
{
    return disk_index_gfid(DISK_INDEX_KINDS);
}

struct gfid disk_changes_gfid(const struct gfid *dir)
{
    /* The mark, and the rest mixed so that two directories do not meet. */
    struct gfid g = { INDEX_MARK };
    uint64_t mix = 0xcbf29ce484222325ull;
    for (unsigned i = 0; i < 16; i++)
        mix = (mix ^ dir->bytes[i]) * 0x100000001b3ull;
    for (unsigned i = 0; i < 6; i++)
        g.bytes[9 + i] = (uint8_t)(mix >> (8 * i));
    return g;
}

bool disk_is_index(const struct gfid *gfid)
{
    return memcmp(gfid->bytes, INDEX_MARK, strlen(INDEX_MARK)) == 0;
}

/* ---- life ---- */

static void add_dir(struct tree *t, const struct gfid *gfid)
{
    struct disk_node *dir = tree_add(t, gfid);
    dir->attr = (struct iatt) { .mode = S_IFDIR | 0755, .nlink = 2, .blksize = DISK_BLOCK };
    dir->xattrs = dict_new();
    dir->parent = *gfid;
}

static void add_first_nodes(struct tree *t)
{
    add_dir(t, &gfid_root);
    for (unsigned kind = 0; kind < DISK_INDEX_KINDS; kind++) {
        struct gfid index = disk_index_gfid(kind);
        add_dir(t, &index);
    }
    struct gfid base = disk_index_base();
    struct disk_node *n = tree_add(t, &base);
    n->attr = (struct iatt) { .mode = S_IFREG, .nlink = 1, .blksize = DISK_BLOCK };
    n->xattrs = dict_new();
}

struct disk *disk_new(void)
{
    struct disk *d = NEW(struct disk);
    if (!d)
        return NULL;
    d->last = &d->first;
    add_first_nodes(&d->now);
    add_first_nodes(&d->durable);
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
    ret->blksize = DISK_BLOCK;
    ret->size = S_ISDIR(n->attr.mode) ? DISK_BLOCK : n->target ? strlen(n->target) : n->size;
    uint64_t blocks = 0;
    for (uint64_t b = 0; b < n->room / DISK_BLOCK; b++)
        blocks += n->is_allocated[b];
    ret->blocks = blocks * (DISK_BLOCK / 512);
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
    for (uint64_t at = offset; at < n->size; at = (at / DISK_BLOCK + 1) * DISK_BLOCK) {
        if ((n->is_allocated[at / DISK_BLOCK] != 0) == want_data) {
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

void disk_drop(struct disk *d, const struct gfid *gfid)
{
    struct disk_node *n = disk_find(d, gfid);
    if (n && !S_ISDIR(n->attr.mode) && n->attr.nlink == 0)
        tree_remove(&d->now, n);
}

void disk_drop_orphans(struct disk *d)
{
    struct disk_node *n, *next;
    HASH_ITER(hh, d->now.nodes, n, next)
    {
        if (!S_ISDIR(n->attr.mode) && n->attr.nlink == 0)
            tree_remove(&d->now, n);
    }
}
