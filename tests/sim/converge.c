#include "sim/converge.h"
#include "core/mem.h"
#include <stdarg.h>
#include <stdio.h>
#include <uthash.h>

#define ANONYMOUS ".glusterfs-anonymous-inode"

/* An inode that names of one disk lead to. */
struct reached {
    struct gfid gfid;
    uint32_t names;
    struct reached *next; /* directories still to be read */
    UT_hash_handle hh;
};

struct walk {
    struct converge *c;
    unsigned disk; /* its number */
    struct reached *all, *todo;
};

static void differ(struct converge *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void differ(struct converge *c, const char *fmt, ...)
{
    if (c->differences++ > 0)
        return;
    va_list args;
    va_start(args, fmt);
    vsnprintf(c->first, sizeof(c->first), fmt, args);
    va_end(args);
}

static bool is_split(const struct converge *c, const struct gfid *gfid)
{
    return c->is_split && c->is_split(c->arg, gfid);
}

static bool is_dir(const struct disk_node *n)
{
    struct iatt a;
    disk_stat(n, &a);
    return S_ISDIR(a.mode);
}

static bool is_private(const char *name)
{
    return !strncmp(name, ANONYMOUS, strlen(ANONYMOUS));
}

/* ---- one brick in itself ---- */

static void reach(struct walk *w, const struct gfid *gfid, const struct gfid *parent, const char *name)
{
    struct reached *r = NULL;
    struct disk_node *n = disk_find(w->c->disks[w->disk], gfid);
    if (!n) {
        differ(w->c, "brick %u: name %s of %s leads to %s, which is not there", w->disk, name, GFID_TEXT(parent),
               GFID_TEXT(gfid));
        return;
    }
    HASH_FIND(hh, w->all, gfid->bytes, 16, r);
    if (!r) {
        r = NEW(struct reached);
        assert(r);
        r->gfid = *gfid;
        HASH_ADD(hh, w->all, gfid.bytes, 16, r);
        if (is_dir(n)) {
            r->next = w->todo;
            w->todo = r;
        }
    }
    if (++r->names > 1 && is_dir(n))
        differ(w->c, "brick %u: directory %s has two names, one is %s in %s", w->disk, GFID_TEXT(gfid), name,
               GFID_TEXT(parent));
}

static void walk_tree(struct walk *w)
{
    reach(w, &gfid_root, &gfid_root, "/");
    while (w->todo) {
        struct reached *dir = w->todo;
        const struct disk_node *n = disk_find(w->c->disks[w->disk], &dir->gfid);
        const char *name;
        struct gfid gfid;
        w->todo = dir->next;
        for (uint64_t cookie = 0; disk_next_entry(n, cookie, &name, &gfid, &cookie);)
            reach(w, &gfid, &dir->gfid, name);
    }
}

static void walk_done(struct walk *w)
{
    struct reached *r, *next;
    HASH_ITER(hh, w->all, r, next)
    {
        HASH_DEL(w->all, r);
        mem_free(r);
    }
}

static void check_counters(struct walk *w, const struct disk_node *n)
{
    const char *key;
    const struct dict_value *v;
    for (size_t at = 0; dict_next(disk_xattrs(n), &at, &key, &v);) {
        if (strncmp(key, "trusted.afr.", 12) != 0 || v->size_bytes != 12)
            continue;
        if (get_be32(v->bytes) | get_be32(v->bytes + 4) | get_be32(v->bytes + 8))
            differ(w->c, "brick %u: %s of %s is left at %u/%u/%u", w->disk, key, GFID_TEXT(disk_gfid(n)),
                   get_be32(v->bytes), get_be32(v->bytes + 4), get_be32(v->bytes + 8));
    }
}

static void check_node(struct disk_node *n, void *arg)
{
    struct walk *w = arg;
    const struct gfid *gfid = disk_gfid(n);
    struct reached *r = NULL;
    struct iatt a;
    if (disk_is_index(gfid) || is_split(w->c, gfid))
        return;
    HASH_FIND(hh, w->all, gfid->bytes, 16, r);
    disk_stat(n, &a);
    if (!r)
        differ(w->c, "brick %u: no name leads to %s", w->disk, GFID_TEXT(gfid));
    else if (!S_ISDIR(a.mode) && a.nlink != r->names)
        differ(w->c, "brick %u: %s has %u names and a link count of %u", w->disk, GFID_TEXT(gfid), r->names, a.nlink);
    check_counters(w, n);
}

static void check_index(struct walk *w)
{
    static const char *const kinds[DISK_INDEX_KINDS] = { "xattrop", "dirty", "entry-changes" };
    for (unsigned kind = 0; kind < DISK_INDEX_KINDS; kind++) {
        struct gfid dir = disk_index_gfid(kind), of, base;
        const char *name;
        for (uint64_t cookie = 0;
             disk_next_entry(disk_find(w->c->disks[w->disk], &dir), cookie, &name, &base, &cookie);)
            if (gfid_parse(name, &of) < 0 || !is_split(w->c, &of))
                differ(w->c, "brick %u: %s stays in index directory %s", w->disk, name, kinds[kind]);
    }
}

static void check_anonymous(struct walk *w)
{
    const struct disk_node *root = disk_find(w->c->disks[w->disk], &gfid_root);
    const char *name, *parked;
    struct gfid gfid, other;
    uint64_t inner;
    for (uint64_t cookie = 0; disk_next_entry(root, cookie, &name, &gfid, &cookie);) {
        const struct disk_node *dir = is_private(name) ? disk_find(w->c->disks[w->disk], &gfid) : NULL;
        if (dir && disk_next_entry(dir, 0, &parked, &other, &inner))
            differ(w->c, "brick %u: %s is left in the anonymous-inode directory", w->disk, parked);
    }
}

/* ---- two bricks ---- */

static void compare_xattrs(struct walk *w, unsigned other, const struct disk_node *a, const struct disk_node *b,
                           bool both_ways)
{
    const char *key;
    const struct dict_value *v;
    const void *bytes;
    size_t size;
    for (size_t at = 0; dict_next(disk_xattrs(a), &at, &key, &v);) {
        if (!strncmp(key, "trusted.afr.", 12))
            continue;
        if (dict_get_bin(disk_xattrs(b), key, &bytes, &size) < 0 || size != v->size_bytes ||
            memcmp(bytes, v->bytes, size) != 0) {
            w->c->of_power++;
            differ(w->c, "%s of %s differs between bricks %u and %u", key, GFID_TEXT(disk_gfid(a)), w->disk, other);
        }
    }
    if (both_ways)
        compare_xattrs(w, other, b, a, false);
}

static void compare_bytes(struct walk *w, unsigned other, const struct disk_node *a, const struct disk_node *b,
                          uint64_t size)
{
    uint8_t x[256], y[256];
    for (uint64_t at = 0; at < size; at += sizeof(x)) {
        size_t n = disk_read(a, at, x, sizeof(x));
        if (disk_read(b, at, y, sizeof(y)) != n || memcmp(x, y, n) != 0) {
            differ(w->c, "bytes of %s at %llu differ between bricks %u and %u", GFID_TEXT(disk_gfid(a)),
                   (unsigned long long)at, w->disk, other);
            return;
        }
    }
}

static void compare_data(struct walk *w, unsigned other, const struct disk_node *a, const struct disk_node *b)
{
    struct iatt x, y;
    disk_stat(a, &x);
    disk_stat(b, &y);
    if ((int)other == w->c->arbiter) {
        if (y.size != 0)
            differ(w->c, "%s has %llu bytes on the arbiter", GFID_TEXT(disk_gfid(a)), (unsigned long long)y.size);
    } else if (x.size != y.size) {
        w->c->of_power++;
        differ(w->c, "size of %s is %llu on brick %u and %llu on brick %u", GFID_TEXT(disk_gfid(a)),
               (unsigned long long)x.size, w->disk, (unsigned long long)y.size, other);
    } else {
        compare_bytes(w, other, a, b, x.size);
    }
}

static void compare_inode(struct walk *w, unsigned other, const struct disk_node *a, const struct disk_node *b)
{
    const char *gfid = GFID_TEXT(disk_gfid(a));
    struct iatt x, y;
    disk_stat(a, &x);
    disk_stat(b, &y);
    if ((x.mode & S_IFMT) != (y.mode & S_IFMT)) {
        differ(w->c, "type of %s differs between bricks %u and %u", gfid, w->disk, other);
        return;
    }
    bool same_attributes = x.mode == y.mode && x.uid == y.uid && x.gid == y.gid && x.rdev == y.rdev;
    w->c->of_power += !same_attributes;
    if (!same_attributes)
        differ(w->c, "attributes of %s differ: %o %u:%u on brick %u, %o %u:%u on brick %u", gfid, x.mode, x.uid, x.gid,
               w->disk, y.mode, y.uid, y.gid, other);
    if (!S_ISDIR(x.mode) && w->c->with_mtimes && (int)other != w->c->arbiter &&
        (x.mtime != y.mtime || x.mtime_nsec != y.mtime_nsec))
        differ(w->c, "mtime of %s is %lld.%09u on brick %u and %lld.%09u on brick %u", gfid, (long long)x.mtime,
               x.mtime_nsec, w->disk, (long long)y.mtime, y.mtime_nsec, other);
    if (!S_ISDIR(x.mode) && x.nlink != y.nlink)
        differ(w->c, "%s has %u links on brick %u and %u on brick %u", gfid, x.nlink, w->disk, y.nlink, other);
    if (S_ISLNK(x.mode) && strcmp(disk_target(a), disk_target(b)) != 0)
        differ(w->c, "target of %s differs between bricks %u and %u", gfid, w->disk, other);
    if (S_ISREG(x.mode))
        compare_data(w, other, a, b);
    compare_xattrs(w, other, a, b, true);
}

/* Names of the directory on one disk that lead elsewhere, or nowhere, on the other. */
static void compare_names(struct walk *w, unsigned from, unsigned other, const struct gfid *dir)
{
    const struct disk_node *n = disk_find(w->c->disks[from], dir);
    const char *name;
    struct gfid gfid;
    for (uint64_t cookie = 0; disk_next_entry(n, cookie, &name, &gfid, &cookie);) {
        const struct disk_node *there = disk_child(w->c->disks[other], dir, name);
        if (is_private(name))
            continue;
        if (!there)
            differ(w->c, "name %s of %s is on brick %u and not on brick %u", name, GFID_TEXT(dir), from, other);
        else if (!gfid_equal(&gfid, disk_gfid(there)))
            differ(w->c, "name %s of %s leads to %s on brick %u and to %s on brick %u", name, GFID_TEXT(dir),
                   GFID_TEXT(&gfid), from, GFID_TEXT(disk_gfid(there)), other);
    }
}

static void compare(struct walk *w, unsigned other)
{
    for (struct reached *r = w->all; r; r = r->hh.next) {
        const struct disk_node *a = disk_find(w->c->disks[w->disk], &r->gfid);
        const struct disk_node *b = disk_find(w->c->disks[other], &r->gfid);
        if (!b || is_split(w->c, &r->gfid))
            continue; /* missing: its name was reported */
        compare_inode(w, other, a, b);
        if (is_dir(a) && is_dir(b)) {
            compare_names(w, w->disk, other, &r->gfid);
            compare_names(w, other, w->disk, &r->gfid);
        }
    }
}

void converge_check(struct converge *c)
{
    c->differences = c->of_power = 0;
    c->first[0] = '\0';
    for (unsigned i = 0; i < c->count; i++) {
        struct walk w = { .c = c, .disk = i };
        walk_tree(&w);
        if (i == 0)
            for (unsigned other = 1; other < c->count; other++)
                compare(&w, other);
        disk_each(c->disks[i], check_node, &w);
        check_index(&w);
        check_anonymous(&w);
        walk_done(&w);
    }
}
