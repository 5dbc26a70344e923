/* storage/posix/posix_internal.h - what the files of storage/posix share.
 *
 * How an operation runs. It first *locates* the inodes it is about: pnode_file() and pnode_dir() give an open descriptor
 * from the inode's cache, or open one through the gfid handle; this is the only part that may go to the pool, when the
 * kernel says (RESOLVE_CACHED) that the disk is needed. Everything after that runs on the loop without a suspension,
 * so that entry operations, attribute changes and xattrops are atomic with respect to each other without locks.
 * Exceptions are the operations that move much data or wait for the disk (read misses, large or synchronous writes,
 * fsync, fallocate, copy_range, rchecksum, blocksums): one pool job each; those that change size or data hold pnode.busy.
 *
 * The nouns:
 *   file  - struct pfile, a refcounted descriptor: regular files O_RDWR, directories O_RDONLY, everything else O_PATH.
 *   pnode - what is kept per inode (inode ctx): the cached file (bounded LRU), the mdata times, counts.
 *   entry - (directory file, name): one place in the tree.
 *   xnode - a place whose xattrs are wanted: a descriptor, or a path when the kernel cannot use the descriptor.
 */
#pragma once

#include "storage/posix/posix.h"
#include "core/mem.h"
#include "graph/graph.h"
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uthash.h>

#define XATTR_BYTES_MAX 65536
#define HANDLE_REL_LEN  (2 + 1 + 2 + 1 + GFID_TEXT_LEN)       /* "xx/yy/<gfid text>" */
#define DIR_LINK_MAX    (6 + 6 + GFID_TEXT_LEN + 1 + 255 + 1) /* text of a directory's handle, with NUL */
#define MDATA_BYTES     57
#define NODE_FILES_MAX  8192 /* cached descriptors; lowered to a quarter of RLIMIT_NOFILE at start */
#define PRIVATE_DIR     ".glusterfs"
#define PAGE_BYTES      4096

#define XATTR_GFID      "trusted.gfid"
#define XATTR_MDATA     "trusted.glusterfs.mdata"
#define XATTR_GFID2PATH "trusted.gfid2path."
#define XATTR_PGFID     "trusted.pgfid."
#define XATTR_VOLUME_ID "trusted.glusterfs.volume-id"
#define XATTR_LINKTO    "trusted.glusterfs.dht.linkto"

struct posix {
    /* options */
    char *directory;
    char *volume_id_text;
    char *glusterd_uuid;
    char *hostname;
    char *gfid2path_separator;
    bool o_direct, export_statfs_size, mandate_attribute, node_uuid_pathinfo, update_pgfid, gfid2path, ctime;
    bool fips_rchecksum, disable_landfill_purge, has_reserve_bytes;
    uint32_t xattr_namespace; /* index in posix_namespaces */
    uint32_t batch_fsync_mode;
    uint32_t janitor_s, health_interval_s, health_timeout_s, shared_brick_count, max_hardlinks;
    int32_t brick_uid, brick_gid;
    uint32_t force_create_mode, force_directory_mode, create_mask, create_directory_mask;
    struct percent_or_size reserve;
    uint64_t inline_write_bytes;

    /* the brick */
    int brick_fd, gfs_fd, unlink_fd;
    struct gfid volume_id;
    bool user_namespace; /* trusted.* is kept as user.* */
    uint32_t uid, gid;   /* of the process: what new files get by themselves */
    uint64_t dev;        /* st_dev of the brick */

    /* disk reserve */
    int64_t room_bytes; /* may be written before the file system is asked again */
    uint64_t room_until_ns;

    struct pnode *nodes;  /* uthash by inode number: pnodes with a cached file */
    struct list node_lru; /* of pnodes with a cached file, oldest first */
    uint32_t node_files, node_files_max;

    struct list to_close; /* files that were removed, whose last close is left to the pool */
    bool is_closing;      /* a job is at it */
    uint64_t close_ns;    /* how long such a close takes, on average */
    struct waitq closed;  /* who waits for the end of the present ones */

    struct timer health_timer, janitor_timer;
    bool health_running, janitor_running, has_failed, is_stopping;
    bool has_new_landfill; /* since the janitor began its last round */
    struct waitq idle;     /* stop waits here for the two */
    uint64_t temp_seq;

    uint32_t crash_steps; /* posix_crash_at; 0: off */
    bool crashed;

    /* Used between two suspensions only. */
    char *path;  /* PATH_MAX */
    char *value; /* XATTR_BYTES_MAX + 1 */
    char *names; /* XATTR_BYTES_MAX */

    uint64_t inline_ops, pool_ops; /* statedump */
};

enum posix_namespace { NAMESPACE_AUTO, NAMESPACE_TRUSTED, NAMESPACE_USER };

/* ---- descriptors and nodes (node.c) ---- */

struct pfile {
    int fd;
    uint32_t refs;
    bool is_path;     /* O_PATH: no data, no f*xattr */
    bool is_writable; /* regular files */
    uint32_t type;    /* S_IFMT bits */
    uint64_t ino;
    struct list later; /* in posix.to_close */
};

struct pnode {
    struct gfid gfid;
    struct pfile *file; /* cached; NULL: none */
    uint64_t ino;       /* of file */
    UT_hash_handle hh;  /* in posix.nodes while file is set */
    struct list lru;
    uint32_t type;       /* S_IFMT bits; 0: not known */
    uint32_t open_count; /* descriptors clients have open through open and create */
    bool has_handle;     /* seen on disk since the node is known */
    bool is_unlinked;    /* its handle is in .glusterfs/unlink */
    bool mdata_known, has_mdata;
    struct mdata_times mdata;
    uint64_t hot_until_ns; /* directories: names are looked up on the loop until then */
    struct fiber_mutex busy;
};

struct pfd { /* fd ctx */
    struct pfile *file;
    struct pfile *direct;  /* a second descriptor with O_DIRECT, or NULL */
    struct pnode *node;    /* borrowed: the fd holds its inode */
    DIR *dir;              /* directories, once read */
    bool skip_directories; /* readdir-filter-directories at opendir */
    bool busy;             /* a fiber is reading dir on the pool */
};

struct pfile *pfile_new(int fd, bool is_path, const struct stat *st) MUST_USE; /* takes fd; NULL: closed it */
struct pfile *pfile_ref(struct pfile *f);
void pfile_unref(struct pfile *f);
DEFINE_SCOPED(pfile_unref, struct pfile)

struct pnode *pnode_of(struct translator *me, struct inode *inode);       /* made if need be; NULL for lack of memory */
struct pnode *pnode_find(struct translator *me, const struct gfid *gfid); /* of a live inode object, else NULL */
void pnode_set_file(struct posix *s, struct pnode *n, struct pfile *f);
void pnode_drop_file(struct posix *s, struct pnode *n);
void pnode_free(struct posix *s, struct pnode *n);
/* The node whose cached file is this inode of the brick, or NULL. The descriptor pins the number, so it is exact. */
struct pnode *pnode_by_ino(struct posix *s, uint64_t ino);

/* An open file of the inode. -ESTALE when the brick does not know its gfid. Returned. */
FIBER int pnode_file(struct translator *me, struct inode *inode, struct pfile **ret_file);
/* The same, and it must be a directory (-ENOTDIR). */
FIBER int pnode_dir(struct translator *me, struct inode *inode, struct pfile **ret_file);
/* Of the request's fd if the client opened it here, else of the inode. Returned. */
FIBER int pnode_of_request(struct translator *me, const struct request *q, struct pfile **ret_file);
/* Stats a name. From the pool if the kernel does not have it at hand. */
FIBER int pentry_stat(struct translator *me, struct pnode *dir_node, struct pfile *dir, const char *name,
                      struct stat *ret_st);
/* Opens a name as pfile of its type; st is what entry_stat said. Returned. */
int pentry_open(struct posix *s, struct pfile *dir, const char *name, const struct stat *st, struct pfile **ret_file);
struct pfd *pfd_of(struct translator *me, struct fd *fd);
void posix_fd_release(struct translator *me, struct fd *fd, void *ctx);
void posix_inode_forget(struct translator *me, struct inode *inode, void *ctx);

/* ---- handles (handle.c) ---- */

char *handle_rel(const struct gfid *g, char text[static HANDLE_REL_LEN + 1]); /* below .glusterfs; returns text */
/* Text of the symlink that is a directory's handle. */
void handle_dir_text(const struct gfid *parent, const char *name, char text[static DIR_LINK_MAX]);
/* Parent gfid and name out of that text: 0 or -EINVAL. */
int handle_parse_dir_text(const char *text, struct gfid *ret_parent, const char **ret_name);
int handle_read_dir(struct posix *s, const struct gfid *g, char text[static DIR_LINK_MAX]);
/* Makes the handle of the entry (hard link or symlink). There already for the same inode: 0; for another: -EEXIST. */
int handle_make(struct posix *s, const struct gfid *g, struct pfile *dir, const struct gfid *dir_gfid, const char *name,
                bool is_dir);
int handle_remove(struct posix *s, const struct gfid *g);
/* Opens what the handle names; .glusterfs/unlink is looked into as well. -ENOENT when there is nothing, after removing
 * a dangling handle. Blocks: from the pool unless cached_only. -EAGAIN: not at hand. */
int handle_open(struct posix *s, const struct gfid *g, bool cached_only, struct pfile **ret_file,
                bool *ret_is_unlinked);
/* Real path of the gfid below the brick, "/a/b" or "/" (directories by their handles; others by gfid2path).
 * Returned; NULL with -errno in *ret. */
char *handle_dir_path(struct posix *s, const struct gfid *g, int *ret);
int handle_tree_make(struct posix *s, struct error *err);

/* ---- xattrs (xattr.c, xattr_side.c) ---- */

struct xnode {
    int fd; /* -1: use path */
    const char *path;
    bool follow;     /* path is /proc/self/fd/N: its last step is to be taken */
    bool is_special; /* symlink, device, fifo, socket */
    uint64_t ino;
};

/* path_of_entry() and xnode_of_file() may leave their path in s->path. */
struct xnode xnode_of_file(struct posix *s, const struct pfile *f);
struct xnode xnode_of_entry(struct posix *s, const struct pfile *dir, const char *name, const struct stat *st);
/* -ENODATA when absent, -ERANGE when it does not fit. Names are those callers use ("trusted.gfid"). */
ssize_t px_get(struct posix *s, const struct xnode *x, const char *name, void *data, size_t size_bytes);
int px_set(struct posix *s, const struct xnode *x, const char *name, const void *data, size_t size_bytes, int flags);
int px_remove(struct posix *s, const struct xnode *x, const char *name);
/* NUL-separated names into `names`; returns their length. */
ssize_t px_list(struct posix *s, const struct xnode *x, char *names, size_t size_bytes);
int px_get_gfid(struct posix *s, const struct xnode *x, struct gfid *ret_gfid); /* -ENODATA: none */
/* Is this a name that clients may neither see nor change? */
bool posix_xattr_is_protected(const char *name);
bool posix_xattr_is_hidden(const struct call *call, const char *name);

/* Side files: xattrs of inodes on which the kernel refuses user.* (docs/on-disk.md "user mode"). */
ssize_t side_get(struct posix *s, const struct xnode *x, const char *name, void *data, size_t size_bytes);
int side_set(struct posix *s, const struct xnode *x, const char *name, const void *data, size_t size_bytes, int flags);
int side_remove(struct posix *s, const struct xnode *x, const char *name);
ssize_t side_list(struct posix *s, const struct xnode *x, char *names, size_t size_bytes);
void side_forget(struct posix *s, const struct gfid *g, uint64_t ino); /* the inode is gone */
int side_start(struct posix *s, struct error *err);

/* ---- attributes (attr.c) ---- */

void posix_iatt(struct posix *s, struct pnode *n, const struct gfid *g, const struct stat *st, struct iatt *ret);
/* Of an open file; reads mdata if it is not known yet. */
int pfile_iatt(struct posix *s, struct pnode *n, const struct pfile *f, struct iatt *ret);
void pnode_load_mdata(struct posix *s, struct pnode *n, const struct xnode *x);
void mdata_encode(const struct mdata_times *m, uint8_t bytes[static MDATA_BYTES]);
int mdata_decode(const void *data, size_t size_bytes, struct mdata_times *ret);
/* Times the call brings for the object itself (TIME_CTIME...) or, with is_parent, for its directory. */
int mdata_stamp(struct posix *s, struct pnode *n, const struct pfile *f, const struct call *call, bool is_parent);
/* After content changed. Some clients send no time with some changes (GlusterFS: punching holes): an inode that has
 * times of clients then moves by this brick's clock. Heal sets the source's times itself. */
int mdata_stamp_content(struct posix *s, struct pnode *n, const struct pfile *f, const struct call *call,
                        const struct stat *post);
int mdata_create(struct posix *s, struct pnode *n, const struct xnode *x, const struct call *call);
int mdata_store(struct posix *s, struct pnode *n, const struct xnode *x, const struct mdata_times *m);

/* ---- the rest ---- */

/* One step that changes the brick: false when the crash under test is now (posix_crash_at). */
bool posix_step(struct posix *s);
#define STEP(s)                \
    do {                       \
        if (!posix_step(s))    \
            return -ESHUTDOWN; \
    } while (0)

/* May this call use `bytes` more? 0 or -ENOSPC. */
int posix_room_check(struct posix *s, const struct call *call, const struct dict *xdata, uint64_t bytes);
/* What `reserve` is on this file system. */
struct statvfs;
uint64_t posix_reserve_bytes(const struct posix *s, const struct statvfs *v);
bool posix_is_internal(const struct call *call, const struct dict *xdata);

/* closer.c. Gives up the reference on a file that was removed; the last one frees its blocks. */
void pfile_close_removed(struct translator *me, struct pfile *f, bool is_large);
bool posix_frees_slowly(const struct posix *s);
bool posix_is_tight(struct posix *s);                /* is little room left? */
FIBER void posix_wait_closed(struct translator *me); /* until all such files are closed */

/* Answers the xattr names and other questions in `asked` about a node (lookup, stat, readdirp, ...). */
int posix_answer(struct translator *me, const struct call *call, struct pnode *n, const struct xnode *x,
                 const struct stat *st, const struct dict *asked, struct dict **ret_answers);
/* The value of s->value[0..size) put under name. */
int posix_put_value(struct dict **d, const char *name, const void *data, size_t size_bytes);

int gfid2path_set(struct posix *s, const struct xnode *x, const struct gfid *parent, const char *name);
int gfid2path_remove(struct posix *s, const struct xnode *x, const struct gfid *parent, const char *name);
int pgfid_add(struct posix *s, const struct xnode *x, const struct gfid *parent, int32_t change);
void gfid2path_key(const struct gfid *parent, const char *name, char key[static 48], char *value, size_t value_bytes);

bool posix_name_is_private(const struct inode *parent, const char *name);
bool posix_name_is_valid(const char *name);
static inline bool is_dot(const char *name)
{
    return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

int brick_open(struct translator *me, struct error *err);
void brick_close(struct posix *s);
void posix_watch_start(struct translator *me);
FIBER void posix_watch_stop(struct translator *me);
int posix_landfill_move(struct posix *s, struct pfile *dir, const char *name, const struct gfid *g);
/* Something was moved there: it is emptied soon, for until then files in it have a link more than users know. */
void posix_landfill_filled(struct translator *me);

#define OP(name) \
    FIBER int posix_##name(struct translator *me, struct call *call, const struct request *q, struct reply *r)
OP(lookup);
OP(stat);
OP(readlink);
OP(access);
OP(mknod);
OP(mkdir);
OP(symlink);
OP(create);
OP(link);
OP(unlink);
OP(rmdir);
OP(rename);
OP(open);
OP(opendir);
OP(read);
OP(write);
OP(truncate);
OP(allocate);
OP(seek);
OP(copy_range);
OP(flush);
OP(fsync);
OP(fsyncdir);
OP(statfs);
OP(setattr);
OP(setxattr);
OP(getxattr);
OP(removexattr);
OP(xattrop);
OP(readdir);
OP(readdirp);
OP(rchecksum);
OP(blocksums);
#undef OP
