/* graph/inode.h - inode and fd objects, and clients of a brick: graph-wide, refcounted, with slots for translators.
 *
 * A graph has one inode table: at most one inode object per gfid. Objects without references stay in an LRU list (with
 * what translators keep in their slots) until the table's limit pushes them out; then each translator with a slot is
 * told (inode_forget). Inodes know no names or paths: those exist only at the edges.
 *
 * An fd is an open descriptor of an inode, made by the edge (mount, server) before it asks open, opendir or create, and
 * shared by all translators of the graph; when its last reference goes, translators with a slot release theirs
 * (fd_release), parents first.
 *
 * A client is one connection identity on a brick (SETVOLUME's process-uuid): owner of locks and descriptors there.
 * None of this suspends; all of it belongs to the loop thread.
 */
#pragma once

#include "core/gfid.h"
#include "core/base.h"
#include "core/list.h"

struct graph;
struct translator;

struct inode {
    struct gfid gfid;
    uint32_t type; /* S_IFMT bits; 0 = not known yet */
    uint32_t refs;
    uint32_t open_fds; /* live fd objects */
    struct graph *graph;
    struct list lru;         /* internal */
    struct inode *hash_next; /* internal */
    void **slots;            /* one per translator that uses inode ctx */
    /* For the edge (mount/fuse): kernel references and generation. */
    uint64_t lookups;
};

/* The object of this gfid, made if need be; a new reference (returned), NULL for lack of memory. type 0 = unknown; a
 * known type is not overwritten by 0. */
struct inode *inode_table_get(struct graph *graph, const struct gfid *gfid, uint32_t type);
/* The object if there is one, with a new reference, or NULL. */
struct inode *inode_table_find(struct graph *graph, const struct gfid *gfid);
struct inode *inode_ref(struct inode *inode);
void inode_unref(struct inode *inode); /* accepts NULL */
DEFINE_SCOPED(inode_unref, struct inode)
/* The slot of `me` on the inode: read it, set it. `me` must use inode ctx (asserted). */
void **inode_ctx(struct inode *inode, struct translator *me);
/* For graph.c. Free: forgets all unreferenced inodes and returns how many were still referenced (those leak: somebody
 * holds on to them). */
struct inode_table;
struct inode_table *inode_table_new(void) MUST_USE;
size_t inode_table_free(struct inode_table *table);
void inode_table_set_limit(struct graph *graph, uint32_t unreferenced_max); /* default 16384 */
size_t inode_table_count(const struct graph *graph);
/* Calls fn for every inode object (statedump, child-down sweeps). fn may change slots, not the table. */
void inode_table_each(struct graph *graph, void (*fn)(struct inode *inode, void *arg), void *arg);

struct fd {
    struct inode *inode; /* a reference */
    uint32_t flags;      /* O_* as given to open */
    int32_t pid;
    uint32_t refs;
    bool is_dir;
    struct list of_inode; /* internal */
    void **slots;
    uint64_t edge;         /* for the edge: its own handle */
    struct client *client; /* on a brick */
};

struct fd *fd_new(struct inode *inode, uint32_t flags, int32_t pid) MUST_USE; /* returned; takes its own inode ref */
struct fd *fd_ref(struct fd *fd);
void fd_unref(struct fd *fd); /* accepts NULL */
DEFINE_SCOPED(fd_unref, struct fd)
void **fd_ctx(struct fd *fd, struct translator *me);
/* Calls fn for every live fd of the graph (reopening after a reconnect). fn must not suspend. */
void fd_each(struct graph *graph, void (*fn)(struct fd *fd, void *arg), void *arg);

struct client {
    char *uid;  /* SETVOLUME process-uuid */
    char *name; /* numeric address:port, for logs */
    uint32_t refs;
    bool is_trusted; /* authenticated by user name */
    bool is_gone;
    struct graph *graph;
    struct list of_graph; /* internal */
    void **slots;
    void *edge; /* protocol/server's connection */
    uint32_t opversion;
};

struct client *client_new(struct graph *graph, const char *uid, const char *name) MUST_USE; /* returned */
struct client *client_ref(struct client *client);
void client_unref(struct client *client); /* accepts NULL */
void **client_ctx(struct client *client, struct translator *me);
/* Marks it gone and tells every translator of the graph (client_gone). Idempotent. */
void client_gone(struct client *client);
