/* mount/fuse, inside. The nouns:
 *
 *   mount   - the connection to the kernel: device, mount point, nodes, requests; independent of any graph.
 *   node    - an inode the kernel knows. Its address is the kernel's nodeid (the root's is 1). It lives while the kernel
 *             counts references (lookups), a request uses it (pins) or a handle is open on it.
 *   handle  - an open file or directory; its address is the kernel's fh.
 *   request - one message of the kernel, in a fiber of its own; answered exactly once.
 *
 * What the kernel believes. A node remembers the size, mtime and ctime last told to the kernel (struct told). At every
 * open, and whenever a lock was granted, the attributes are asked again: if they differ, the kernel's copy of data and
 * attributes is dropped before the answer goes out (inval.c). Data is kept over an open only when the attributes are the
 * same and were so for a second before the first page can have been read: two changes within one tick of the brick's
 * clock carry the same times.
 */
#pragma once

#include "mount/fuse/fuse.h"
#include "core/mem.h"
#include <linux/fuse.h>
#include <uthash.h>

#ifndef FUSE_DIRECT_IO_ALLOW_MMAP
#define FUSE_DIRECT_IO_ALLOW_MMAP (1ULL << 36)
#endif

#define FUSE_MAX_WRITE      (1024u * 1024u)
#define FUSE_REQUEST_PAGES  (FUSE_MAX_WRITE / 4096)
#define FUSE_NAME_LEN       255 /* bytes; the kernel lets 1024 through */
/* Header and fixed part of a WRITE: read into a place of their own so that the data that follows is page-aligned. */
#define FUSE_HEAD_BYTES     (sizeof(struct fuse_in_header) + sizeof(struct fuse_write_in))
#define FUSE_BODY_BYTES     (FUSE_MAX_WRITE + 4096)
/* Data of a WRITE this large stays in the buffer it was read into; smaller data is cheaper to copy. */
#define FUSE_KEEP_BYTES     (16u * 1024u)
#define FUSE_SPARE_BUFFERS  16            /* of FUSE_BODY_BYTES each, kept for reuse */
#define FUSE_STEADY_NS      1000000000u   /* see above, "What the kernel believes" */
#define FUSE_NOTIFY_RUNNING 4             /* notifications written at a time, each holding a pool thread */
#define FUSE_NOTIFY_QUEUED  65536         /* beyond that, upcalls are dropped and time-outs must do */
#define FUSE_FIRST_BYTES    (64u * 1024u) /* files this small are read as they are opened */
#define FUSE_FIRST_NS       20000000u     /* and that is good for a read which follows at once */
#define FUSE_RECENT_NAMES   16
#define FUSE_DIR_BATCH      (64u * 1024u)
#define FUSE_DIR_FRESH_NS   500000000u /* attributes of a batch older than this are not told to the kernel */

struct buffer_store;

enum direct_io { DIRECT_AUTO, DIRECT_ON, DIRECT_OFF };

/* State of the translator: its options, and the mount while it carries one. */
struct fuse {
    double attribute_timeout_s, entry_timeout_s, negative_timeout_s;
    uint32_t wait_for_bricks_s, gid_timeout_s, lru_limit, background, congestion, granularity_ns;
    uint32_t direct_io; /* index in direct_io_words */
    int32_t client_pid;
    bool read_only, acl, selinux, keep_cache, use_readdirp, auto_inval, writeback, ino32, resolve_gids, allow_other,
        gfid_access;
    char *mount_point, *source, *subtype, *mount_options;

    struct mount *mount;   /* NULL before start and after fuse_take_over() */
    uint32_t left_handles; /* open files that could not move with the mount and go on here */
    void (*on_left)(void *arg);
    void *on_left_arg;
    struct waitq coming; /* start waits here for the child */
    bool child_came, takes_over;
    char refusal[256]; /* why the bricks refused us, "" = they did not */
    void (*on_end)(void *arg);
    void *on_end_arg;
};

struct counters {
    uint64_t requests, replies_lost, interrupts, forgets, invalidations, invalidations_dropped, caches_kept, retries;
    uint64_t bytes_read, bytes_written, zero_filled, group_reads, served_kept, served_absent;
};

/* Attributes that were asked for, and may be served again under a lease; see lease.c. */
struct kept_attr {
    struct iatt stat;
    uint64_t asked_ns, mark;
};

/* Of a directory: names that are not there, see absent.c. */
struct absent_names;

struct told {
    uint64_t size;
    int64_t mtime, ctime;
    uint32_t mtime_nsec, ctime_nsec;
};

/* What a name led to when it was last looked up or changed through us. */
struct recent_name {
    struct gfid parent;
    uint32_t hash;
    char *name;
    struct gfid gfid; /* null: nothing is there */
    uint64_t at_ns;
};

/* A lock that is held, so that it can be taken along to another graph (moving.c). */
struct held_range {
    struct list of_node;
    struct handle *handle; /* through which it was taken */
    struct lock_range range;
    bool is_flock;
};

struct node {
    struct gfid gfid;
    uint32_t type;
    uint64_t lookups; /* the kernel's references */
    uint32_t pins;    /* requests that use it */
    uint64_t generation;
    uint32_t gid;        /* as last seen */
    struct inode *inode; /* of the graph in use, see node_inode() */
    struct list handles;
    struct list held;        /* held_range */
    struct list of_aliases;  /* of the mount, for a directory as it is seen in .gfid; else empty */
    struct translator *left; /* on top of an earlier graph: its open descriptors stay there; NULL as a rule */
    struct fd *spare;        /* opened by a look-up, for the open that follows; see keep_spare() */
    uint64_t spare_ns;
    bool has_posix_locks; /* somebody here has locked it: close must tell the bricks */
    uint64_t locked_ns;   /* directory: when a file in it was locked last; 0 = never. See names_are_shared() */
    struct iatt *own;     /* directory: its attributes after our last change of its names; see names.c */
    uint64_t own_ns;      /* when they came */
    struct kept_attr *kept;
    struct absent_names *absent; /* directory */
    uint64_t own_changes;        /* through us, that may have moved its attributes; see attr_mark() */
    struct told told;
    bool is_written;     /* by the kernel since it was told: it has dropped its size and times itself */
    bool told_is_set;    /* false: nothing is known, the next open must drop the cache */
    uint64_t told_ns;    /* when `told` was first seen */
    uint64_t cache_ns;   /* since when pages now in the kernel's cache can have been read; 0 = not known */
    uint64_t no_caps_ns; /* when it was known to have no security.capability; 0 = not known */
    uint64_t plain_ns;   /* when it was last seen without set-user-id and set-group-id; 0 = not known */
    uint64_t changes;    /* of its contents, through us: what was read before is no answer any more */
    uint64_t kernel_end; /* the file's size as the kernel has it */
    struct gfid parent;  /* a directory and a name it was found under; name NULL = none */
    char *name;
    UT_hash_handle hh;
};

struct handle {
    struct list of_node;
    struct node *node;
    struct fd *fd;       /* NULL: could not be opened again after a change of graphs */
    struct fd *moved_fd; /* while the mount moves: the same in the other graph */
    uint32_t flags;
    bool has_flock, is_direct;
    struct buf *first; /* all of the file, as it was when it was opened; or NULL */
    uint64_t first_ns, first_upcalls, first_changes;
    /* directories: entries read ahead of the kernel's requests */
    struct fiber_mutex dir_lock;
    struct dir_entries *batch;
    uint32_t batch_next;
    uint64_t batch_offset; /* where batch_next stands */
    uint64_t batch_ns, batch_upcalls;
};

struct groups {
    uint32_t *list;
    uint32_t count;
    uint32_t refs;
};

struct request_in {
    struct mount *m;
    struct fuse_in_header head;
    struct node *node;  /* pinned; NULL when the operation has none */
    struct node *found; /* pinned: what a look-up found; as a rule NULL */
    struct call call;
    struct groups *groups;
    struct buf *data; /* of a WRITE */
    uint64_t upcalls; /* of the mount when it began */
    bool is_answered, is_fresh_groups;
    bool waits_for_lock; /* below; may be asked to begin again in another graph: must_move */
    bool must_move, is_interrupted;
    struct list of_mount;
    UT_hash_handle hh; /* by head.unique */
    size_t args_bytes;
    uint8_t args[]; /* followed by one NUL that is not counted */
};

struct stale { /* a thread that was answered with ESTALE */
    uint32_t pid;
    uint64_t at_ns;
};

/* Notifications about names wait in the kernel for whatever is done in the directory, even for an open that creates; and
 * that open may wait for a notification about an inode. So each kind has threads of its own. */
enum lane_kind { LANE_INODES, LANE_NAMES, LANE_COUNT };

struct lane {
    struct list waiting, out; /* notices: to be written, being written */
    uint32_t queued, running, fibers;
    struct waitq one_less;
};

struct mount {
    struct env *env;
    struct translator *me; /* on top of the graph in use */
    int dev_fd;
    char *mount_point;
    bool is_mounted, is_ended, by_helper, is_moving;
    bool judges_times; /* the kernel leaves it to us whether other times mean other data; see attr_settle() */
    uint32_t kernel_minor;
    uint64_t kernel_flags, flags; /* offered, taken (both words of INIT) */
    struct node root;
    struct node *nodes;   /* hash by gfid, without the root */
    struct node gfid_dir; /* the directory .gfid, which is on no brick */
    struct list aliases;  /* node.of_aliases */
    bool has_locks;       /* some node's locked_ns is set */
    uint64_t next_generation;
    struct list requests;
    struct request_in *by_unique;
    uint32_t running;
    struct waitq idle;  /* fuse_take_over and stop wait for running == 0 */
    struct waitq moved; /* requests wait while is_moving */
    struct scope reading;
    struct waitq reader_ended;
    bool is_reading;
    struct buffer_store *buffers;
    struct buf *body; /* what the next request is read into */
    uint8_t head[FUSE_HEAD_BYTES];
    struct group_cache *group_cache;
    struct stale stale[64]; /* by thread number */
    struct recent_name recent[FUSE_RECENT_NAMES];
    unsigned recent_next;
    struct lane lanes[LANE_COUNT]; /* inval.c */
    uint32_t known_names;          /* absent.c: of all directories */
    uint64_t name_changes;         /* through us, of names whose inodes are not known */
    uint64_t upcalls;              /* what answers a request that began before the last one must not be kept */
    struct counters count;
};

static inline struct fuse *mount_options(struct mount *m)
{
    return m->me->state;
}

/* ---- fuse.c ---- */
/* Until the child can serve, at most wait-for-bricks seconds. */
FIBER int fuse_wait_for_child(struct translator *me, struct error *err);
/* A mount whose root cannot be looked up is of no use: 0, or why it cannot. */
FIBER int fuse_look_at_root(struct translator *me, struct error *err);

/* ---- device.c: reading requests ---- */
int mount_new(struct translator *me, struct mount **ret_mount);
void mount_free(struct mount *m); /* no request may be left; accepts NULL */
int mount_read_start(struct mount *m);
FIBER void mount_read_stop(struct mount *m);

/* ---- kernel.c: mounting ---- */
/* Opens the device and mounts; m->dev_fd is set. -errno with a sentence. */
FIBER int kernel_mount(struct mount *m, struct error *err);
FIBER void kernel_unmount(struct mount *m);
/* Lets the kernel read ahead as far as one request carries (root only; best effort). */
FIBER void kernel_raise_read_ahead(struct mount *m);

/* ---- reply.c ---- */
/* Do several clients work in this directory under locks? Then the kernel must not remember its names: a database makes
 * and removes its journal under a lock on another file, and whoever gets the lock next must see that. */
bool names_are_shared(struct mount *m, const struct gfid *directory);
int answer(struct request_in *in, const void *data, size_t bytes);
int answer_iov(struct request_in *in, struct iovec *iov, int count); /* iov[0] is left for the header */
void answer_error(struct request_in *in, int err);
/* Inode found or made: counts the lookup and answers. `open` may be NULL. Notes what the kernel is told. */
int answer_entry(struct request_in *in, struct node *node, const struct iatt *a, const struct fuse_open_out *open);
int answer_attr(struct request_in *in, struct node *node, const struct iatt *a);
/* The same for attributes that are `age_ns` old already. */
int answer_old_attr(struct request_in *in, struct node *node, const struct iatt *a, uint64_t age_ns);
void attr_fill(struct mount *m, struct fuse_attr *out, const struct iatt *a);
void entry_fill(struct request_in *in, struct fuse_entry_out *out, struct node *node, const struct iatt *a);
int fuse_error(int r); /* what the kernel may be told for an internal error */

/* ---- node.c ---- */
struct node *node_by_id(struct mount *m, uint64_t nodeid);
uint64_t node_id(struct mount *m, const struct node *node);
/* The node of this gfid, made if need be, not counted yet. NULL for lack of memory. */
struct node *node_get(struct mount *m, const struct iatt *a);
struct node *node_by_gfid(struct mount *m, const struct gfid *gfid);
void node_pin(struct node *node);
void node_unpin(struct mount *m, struct node *node); /* accepts NULL; frees it when nothing uses it */
void node_forget(struct mount *m, struct node *node, uint64_t lookups);
/* Its inode in the graph in use. NULL for lack of memory. */
struct inode *node_inode(struct mount *m, struct node *node);
void node_set_name(struct node *node, const struct node *parent, const char *name);
void node_free_all(struct mount *m);
/* An open descriptor of it, or NULL; `flags_ok` says which flags will do. */
struct handle *node_handle(struct node *node, bool for_writing);
/* Is this what was told? */
bool told_matches(const struct node *node, const struct iatt *a);
/* The kernel was just given these attributes. */
void node_told(struct mount *m, struct node *node, const struct iatt *a);
/* The kernel wrote up to `end`; pre and post are the brick's view, if it gave one. */
void node_wrote(struct mount *m, struct node *node, uint64_t end, const struct iatt *pre, const struct iatt *post);

struct handle *handle_new(struct node *node, struct fd *fd, uint32_t flags); /* takes its own reference of fd */
void handle_free(struct mount *m, struct handle *h);                         /* may free the node */
struct handle *handle_by_id(uint64_t fh);

/* ---- names.c: what the kernel asks twice ---- */
/* The name leads to `gfid` now, or (NULL) nowhere. */
void recent_note(struct mount *m, const struct gfid *parent, const char *name, const struct gfid *gfid);
/* What it led to a moment ago; NULL: not known. Others may have changed it since, so this is a hint. */
const struct recent_name *recent_find(struct mount *m, const struct gfid *parent, const char *name);
void recent_forget(struct mount *m, const struct gfid *parent, const char *name);
void recent_free(struct mount *m);
/* The directory's attributes after a change of its names, as the brick told with the change. Not set: they are not
 * known any more. */
void own_attr_note(struct request_in *in, struct node *dir, const struct iatt *post);
/* All that is known is void: somebody else changed it, or we changed it otherwise. */
void own_attr_forget(struct node *dir);
/* NULL, or attributes that the kernel could still have if it had not dropped them for our own change. *ret_age_ns says
 * how old they are. */
const struct iatt *own_attr(struct mount *m, const struct node *dir, uint64_t *ret_age_ns);

/* ---- gfid_dir.c ---- */
#define GFID_DIR_NAME ".gfid"
void gfid_dir_init(struct mount *m);
/* Is it .gfid or a directory in it? What is below has no name of its own there. */
bool gfid_dir_is_above(const struct mount *m, const struct node *node);
/* A second node of a directory: the kernel would take the same one in two places for a rename. NULL: no memory. */
struct node *gfid_dir_alias(struct mount *m, const struct iatt *a);
/* Is this look-up one of .gfid itself? Then it is answered. */
bool gfid_dir_look_up(struct request_in *in, const char *name);
/* All operations on .gfid itself, as an op_handler does them. */
FIBER int gfid_dir_serve(struct request_in *in);
/* An alias is about to be used to change the directory or names in it: what is known of the other node is void. */
void gfid_dir_will_change(struct mount *m, const struct node *alias);
/* An alias was used to change the directory or a name in it (NULL: its attributes): who sees it by its path must know. */
void gfid_dir_changed(struct mount *m, const struct node *alias, const char *name);

/* ---- held.c ---- */
/* The range is the owner's now (type NONE: no longer) through this descriptor. */
void held_note(struct handle *h, const struct lock_range *range, bool is_flock);
/* A process closed a descriptor of the file: its POSIX locks went. */
void held_flushed(struct node *node, const struct lk_owner *owner);
void held_closed(struct handle *h); /* what was taken through it went */

/* ---- moving.c ---- */
/* For a request that was asked to (must_move): lets the mount move and returns when that is done. -EINTR when the caller
 * got a signal meanwhile. */
FIBER int moving_step_aside(struct request_in *in);
/* A descriptor of a node that was left behind was opened, or closed. */
void moving_left_opened(struct node *node);
void moving_left_closed(struct node *node);

/* ---- lease.c: what may be served without asking ---- */
/* Changes when attributes of the node may have moved through us. What was asked before is void then. */
uint64_t attr_mark(const struct mount *m, const struct node *node);
/* The request may move attributes: called when it begins and when it ends. */
void attr_moves(struct request_in *in);
/* These were asked for by `in`, when the mark was `mark`. */
void attr_keep(struct request_in *in, struct node *node, const struct reply *r, uint64_t mark);
/* NULL, or attributes that are true now; *ret_age_ns as the kernel should see it: they hold as long as attributes of that
 * age may be kept. */
const struct iatt *attr_kept(struct mount *m, struct node *node, uint64_t *ret_age_ns);
/* The kernel is about to be told these attributes of a file: if they show a change that was not ours, the pages go
 * first. */
FIBER void attr_settle(struct mount *m, struct node *node, const struct iatt *a);
/* Can there be leases here at all? Asks the bricks. */
FIBER bool bricks_give_leases(struct request_in *in);
/* Are the pages that the kernel may have of the node what it would read now? */
bool pages_are_leased(struct mount *m, struct node *node);

/* ---- absent.c: names that are not there ---- */
/* The directory was made by `in` and is empty; r is the answer. */
void absent_all(struct request_in *in, struct node *dir, const struct reply *r);
/* A look-up by `in` did not find it; `mark` is attr_mark() of the directory when it began. */
void absent_note(struct request_in *in, struct node *dir, const char *name, const struct reply *r, uint64_t mark);
/* We are about to do something with the name: it may be there from now on, whatever comes of it. */
void absent_may_come(struct mount *m, struct node *dir, const char *name);
/* We have taken it away. */
void absent_has_gone(struct mount *m, struct node *dir, const char *name);
/* Is it known not to be there? Then *ret_until_ns is how long that is sure to hold. */
bool absent_is_sure(struct mount *m, struct node *dir, const char *name, uint64_t *ret_until_ns);
void absent_free(struct mount *m, struct node *dir);

/* ---- groups.c ---- */
struct group_cache *group_cache_new(void);
void group_cache_free(struct group_cache *c);
/* Supplementary groups of the calling thread; `fresh` reads them again. 0 and a reference (returned), or -errno. */
int groups_get(struct mount *m, uint32_t pid, uint32_t uid, bool fresh, struct groups **ret_groups);
void groups_unref(struct groups *g);
bool groups_equal(const struct groups *a, const struct groups *b);
void groups_put_first(struct groups *g, uint32_t gid);
bool thread_has_sigkill(uint32_t pid);

/* ---- inval.c ---- */
/* Drops the kernel's attributes and, unless attributes_only, data of the node. _wait returns when it is done. */
FIBER void inval_inode_wait(struct mount *m, struct node *node, bool attributes_only);
/* Data, attributes and the name: before a lock is handed out. */
FIBER void inval_all_wait(struct mount *m, struct node *node);
void inval_inode_post(struct mount *m, struct node *node, bool attributes_only);
/* Makes the kernel look the node's last known name up again. */
void inval_name_post(struct mount *m, struct node *node);
void inval_upcall(struct mount *m, const struct event *event);
/* This request holds locks in the kernel that a notification may be waiting for: nobody may wait for that one. */
void inval_let_pass(struct request_in *in);
/* Does it change its node, or names in it? */
bool request_changes(const struct request_in *in);
void inval_init(struct mount *m);
bool inval_is_busy(const struct mount *m); /* m->idle is woken when it no longer is */
void inval_free_all(struct mount *m);

/* ---- ask.c: handing operations to the graph ---- */
/* On top of which graph the request belongs: its inodes and descriptors may have been left in an earlier one. NULL: they
 * are of different graphs. */
struct translator *ask_top(struct mount *m, const struct request *q);
/* Asks the child; repeats once with fresh groups after EACCES and EPERM. */
FIBER int ask(struct request_in *in, const struct request *q, struct reply *r);
/* Attributes by descriptor when one is open, else (or when that fails) by gfid. */
FIBER int ask_stat(struct request_in *in, struct node *node, struct reply *r);

/* ---- op_*.c: answer and return 0 or more, or return -errno unanswered ---- */
typedef FIBER int (*op_handler)(struct request_in *in);
FIBER int on_init(struct request_in *in);
FIBER int on_lookup(struct request_in *in);
FIBER int on_getattr(struct request_in *in);
FIBER int on_setattr(struct request_in *in);
FIBER int on_readlink(struct request_in *in);
FIBER int on_symlink(struct request_in *in);
FIBER int on_mknod(struct request_in *in);
FIBER int on_mkdir(struct request_in *in);
FIBER int on_unlink(struct request_in *in);
FIBER int on_rmdir(struct request_in *in);
FIBER int on_rename(struct request_in *in);
FIBER int on_rename2(struct request_in *in);
FIBER int on_link(struct request_in *in);
FIBER int on_open(struct request_in *in);
FIBER int on_create(struct request_in *in);
FIBER int on_read(struct request_in *in);
FIBER int on_write(struct request_in *in);
FIBER int on_statfs(struct request_in *in);
FIBER int on_release(struct request_in *in);
FIBER int on_flush(struct request_in *in);
FIBER int on_fsync(struct request_in *in);
FIBER int on_setxattr(struct request_in *in);
FIBER int on_getxattr(struct request_in *in);
FIBER int on_listxattr(struct request_in *in);
FIBER int on_removexattr(struct request_in *in);
FIBER int on_opendir(struct request_in *in);
FIBER int on_readdir(struct request_in *in);
FIBER int on_readdirplus(struct request_in *in);
FIBER int on_releasedir(struct request_in *in);
FIBER int on_fsyncdir(struct request_in *in);
FIBER int on_getlk(struct request_in *in);
FIBER int on_setlk(struct request_in *in);
FIBER int on_setlkw(struct request_in *in);
FIBER int on_access(struct request_in *in);
FIBER int on_fallocate(struct request_in *in);
FIBER int on_lseek(struct request_in *in);
FIBER int on_copy_range(struct request_in *in);

/* The thread is told ESTALE: it walks the path again, if it has not done so yet. */
void note_stale(struct request_in *in);
/* Was this thread told ESTALE just now? Then its look-ups should keep a descriptor of what they find: 0, or -ESTALE when
 * that is gone already. */
bool is_walking_again(struct request_in *in);
FIBER int keep_spare(struct request_in *in, struct node *node);
/* What the graph opens a file with. */
uint32_t open_flags(struct mount *m, uint32_t flags);
void open_answer(struct mount *m, struct handle *h, struct fuse_open_out *out);
/* op_open.c: opens `node`, finishes the kernel's view of it and fills `out` (fh is a new handle). */
FIBER int open_node(struct request_in *in, struct node *node, uint32_t flags, bool kill_suid,
                    struct fuse_open_out *out);
/* Clears set-user-id and set-group-id as the kernel would, after data of somebody without privilege was written. */
FIBER void kill_suid_bits(struct request_in *in, struct node *node, uint32_t mode);
/* The same after a write that was answered with `post`, which is not set when the write waits in a cache below. */
FIBER void kill_suid_after_write(struct request_in *in, struct node *node, const struct iatt *post);
/* Clears those of `bits` that are set in `mode`, the node's present mode. */
FIBER void clear_mode_bits(struct request_in *in, struct node *node, uint32_t mode, uint32_t bits);
