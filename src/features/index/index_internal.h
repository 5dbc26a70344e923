/* features/index/index_internal.h - what the files of features/index share.
 *
 * Three kinds of index (docs/on-disk.md "indices"): `xattrop` and `dirty` hold one hard link per inode, named by its
 * gfid, while a watched xattr of it is not zero; `entry-changes` holds a directory per changed directory with one link
 * per changed name. All links go to one empty base file per kind, so an entry costs no inode.
 *
 * Invariant: a link is made before the xattr becomes non-zero and removed after it became zero, so a crash leaves an
 * entry too many and never one too few. xattrops on one inode therefore pass through here one at a time.
 * What is in the directories is counted in memory: "is there anything to heal" costs nothing to answer.
 *
 * A base file is used for BASE_AGE_S only, so its modification time says since when the entries that link to it are
 * there, to that many seconds; linking does not change it. Listings with attributes (readdirp) show it.
 *
 * A heal daemon that lists `xattrop` with HEAL_NOTICE_KEY in the extra data is told once (EVENT_HEAL_NEEDED) when
 * something is added to it later; it then lists again.
 */
#pragma once

#include "features/index/index.h"
#include "core/mem.h"
#include "graph/graph.h"
#include <uthash.h>

enum index_kind { INDEX_XATTROP, INDEX_DIRTY, INDEX_CHANGES, INDEX_KINDS };

#define BASE_NAME_BYTES 64
#define BASE_AGE_S      60   /* a base file gets no new links after so long */
#define BASES_QUICK     120  /* after so many in one run, ... */
#define BASE_AGE_LONG_S 3600 /* ... after so long: a brick that is away for weeks does not fill the directory */
#define HEAL_NOTICE_KEY "mortar.heal-notice" /* cluster/replicate/heal_crawl.c says it */

struct index_dir {
    int fd;           /* of index-base/<kind> */
    struct gfid gfid; /* virtual, new at each start */
    struct gfid uuid; /* of the base file */
    bool has_base;    /* made already in this run */
    uint64_t base_ns; /* when */
    uint32_t bases;   /* how many in this run */
    uint64_t count;   /* entries, base files not counted */
};

struct index {
    char *base, *pending_list, *dirty_list, *ec_list; /* options */
    struct index_dir dirs[INDEX_KINDS];
    int brick_fd; /* of .glusterfs, for types of gfids; -1: none */
    struct virtual_dir *virtual_dirs;
    unsigned virtual_count;
    unsigned listeners; /* clients to be told of the next entry */
};

enum link_state { LINK_UNKNOWN, LINK_IS_THERE, LINK_IS_GONE };

struct index_node { /* inode ctx */
    struct fiber_mutex busy;
    enum link_state links[INDEX_KINDS]; /* of xattrop and dirty */
};

/* A directory of entry-changes that somebody looked at, by its virtual gfid. */
struct virtual_dir {
    struct gfid gfid; /* virtual */
    struct gfid of;   /* the changed directory */
    UT_hash_handle hh;
};

/* ---- store.c: the directories on disk ---- */

int index_store_open(struct translator *me, struct error *err);
void index_store_close(struct index *s);
int index_store_add(struct translator *me, enum index_kind kind, const struct gfid *g);
int index_store_remove(struct index *s, enum index_kind kind, const struct gfid *g);
int index_store_add_name(struct translator *me, const struct gfid *dir, const char *name);
int index_store_remove_name(struct index *s, const struct gfid *dir, const char *name);
/* rmdir of entry-changes/<gfid>; what is not empty is put aside for a later purge. */
int index_store_remove_dir(struct translator *me, const struct gfid *dir, bool even_if_full);
/* An open descriptor of entry-changes/<gfid>, or -errno. */
int index_store_open_dir(struct index *s, const struct gfid *dir);

/* ---- virtual.c: index directories as inodes ---- */

/* Is the inode one of the index? Then *ret_kind says which, and *ret_of the changed directory (null gfid: the top). */
bool index_is_virtual(struct translator *me, const struct inode *inode, enum index_kind *ret_kind, struct gfid *ret_of);
void index_forget_virtual(struct index *s);

FIBER int index_lookup(struct translator *me, struct call *call, const struct request *q, struct reply *r);
FIBER int index_stat(struct translator *me, struct call *call, const struct request *q, struct reply *r);
FIBER int index_opendir(struct translator *me, struct call *call, const struct request *q, struct reply *r);
FIBER int index_readdir(struct translator *me, struct call *call, const struct request *q, struct reply *r);
FIBER int index_unlink(struct translator *me, struct call *call, const struct request *q, struct reply *r);
FIBER int index_rmdir(struct translator *me, struct call *call, const struct request *q, struct reply *r);
FIBER int index_fsyncdir(struct translator *me, struct call *call, const struct request *q, struct reply *r);
void index_client_gone(struct translator *me, struct client *client);
void index_fd_release(struct translator *me, struct fd *fd, void *ctx);

/* "link-count" in xdata: says whether anything waits for heal, in failed answers too. */
void index_answer_link_count(struct index *s, const struct dict *asked, struct dict **answers);
/* Something was added to `xattrop`: heal daemons that want to know are told. */
void index_tell_healers(struct translator *me);
/* The link of an inode was changed behind its node's back. */
void index_link_changed(struct translator *me, enum index_kind kind, const struct gfid *g, enum link_state now);
