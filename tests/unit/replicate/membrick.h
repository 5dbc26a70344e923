/* A brick in memory, as replication sees one: names, files, xattrs, inodelk, entrylk, xattrop, and scripted failures.
 *
 * A `mem_store` is the disk and lock table of one brick; it outlives graphs. A "test/membrick" translator is one
 * client's connection to it. So several clients are several graphs over the same stores. A compound is one message.
 */
#pragma once

#include "graph/graph.h"

#define STORES_MAX 5

struct mem_entry {
    struct list of_node;
    char name[256];
    struct gfid gfid;
    uint64_t cookie;
};

struct mem_node {
    struct list of_store;
    struct gfid gfid;
    struct iatt stat;
    struct dict *xattrs;
    uint8_t *data;
    size_t room;
    char *target;
    struct list entries; /* struct mem_entry */
};

struct mem_store {
    struct list nodes, locks;
    bool is_arbiter;
    char entry_changed[256]; /* the last glusterfs.xattrop-entry-create */
};

enum fault {
    FAULT_NONE,
    FAULT_REFUSE,     /* the step fails with EIO and does nothing */
    FAULT_LOST,       /* the step is done, its answer is not: the connection breaks */
    FAULT_DOWN_BEFORE /* the connection breaks before the step */
};

struct mem_brick {
    struct translator *me;
    uint32_t store_number;
    struct mem_store *store;
    bool is_up;
    uint64_t messages;        /* calls that came, a compound is one */
    uint64_t steps;           /* operations, those in compounds counted one by one */
    uint64_t count[OP_COUNT]; /* of those */
    uint64_t fault_at;        /* the fault_at-th step from now; 0: none */
    enum fault fault;
    uint64_t connection; /* raised when it breaks: who owns locks */
    unsigned yields_max; /* each message lets others run up to so many times first */
    uint32_t contentions;
    uint32_t lacks; /* BRICK_LACKS_*, told by mem_brick_up() */
};
extern const struct translator_class membrick_class;

/* The stores of a test: reset makes them empty (a root directory each). */
extern struct mem_store mem_stores[STORES_MAX];
void mem_stores_reset(void);

struct mem_node *mem_find(struct mem_store *store, const struct gfid *gfid);
/* The inode is another one from now on. */
void mem_rename_gfid(struct mem_store *store, struct mem_node *n, const struct gfid *gfid);
struct mem_node *mem_name(struct mem_store *store, const struct gfid *parent, const char *name);
/* Takes the name away behind everybody's back. */
void mem_drop_name(struct mem_store *store, const struct gfid *parent, const char *name);
/* Counter of an xattr: index 0 data, 1 metadata, 2 entry. Absent: 0. */
int32_t mem_counter(struct mem_store *store, const struct gfid *gfid, const char *key, int index);
void mem_set_counter(struct mem_store *store, const struct gfid *gfid, const char *key, int index, int32_t value);
size_t mem_lock_count(struct mem_store *store);

/* Tells this client that somebody waits for each lock it holds here. */
void mem_contend(struct mem_brick *b);
/* The connection breaks: locks are dropped, the parents are told. Or comes back. */
void mem_brick_down(struct mem_brick *b);
void mem_brick_up(struct mem_brick *b);

/* The client dies at the n-th step from now that any of these bricks sees: all its connections break. 0 bricks: no
 * more. Returns how many steps of the previous order were still to come. */
uint64_t mem_crash_client_at(struct mem_brick *const *bricks, unsigned count, uint64_t n);
