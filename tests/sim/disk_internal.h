/* sim/disk_internal.h - what the files of the simulated disk share: its trees and its journal of changes. */
#pragma once

#include "core/mem.h"
#include "sim/disk.h"
#include <uthash.h>

#define DISK_BLOCK 4096u

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

/* ---- disk_tree.c: one image ---- */

struct disk_node *tree_find(const struct tree *t, const struct gfid *gfid); /* NULL: none */
struct disk_node *tree_add(struct tree *t, const struct gfid *gfid);
void tree_clear(struct tree *t);
void tree_copy(struct tree *to, const struct tree *from); /* `to` is empty */
void tree_remove(struct tree *t, struct disk_node *n);
struct entry *node_entry(const struct disk_node *dir, const char *name); /* NULL: none */
/* What was checked against the present image may find less on the durable one: then nothing happens. */
void tree_apply(struct tree *t, const struct change *c);

/* ---- disk.c: the journal ---- */

struct change *change_new(enum change_kind kind);
/* Applies it to the present image and appends it to the journal, which owns it. 0. */
int disk_commit(struct disk *d, struct change *c);
