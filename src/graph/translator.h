/* graph/translator.h - what a translator is, what it is asked, and what it may answer. Read this first.
 *
 * A graph is a tree of translators. Each has a class (the code), a state (its options and data), children and parents.
 * Requests go down: a translator asks a child with child_call() or a child_<op>() helper, a plain function call that
 * returns 0 or a count, or a negative errno. Events go up through notify.
 *
 * Every operation has one shape,
 *
 *     FIBER int op(struct translator *me, struct call *call, const struct request *q, struct reply *r);
 *
 * because much of the tree does not care which operation it carries: tracing, counting, delaying, fanning out to
 * replicas, sending over the wire, steps of a compound. Which fields of q and r an operation uses is the table at
 * enum op. A class that does not fill an entry passes that operation to its first child; `any` catches all the rest.
 *
 * Who owns what
 *   q and everything in it is borrowed for the duration of the call: take references of what you keep.
 *   r is zeroed by child_call() before the child runs; what is in it afterwards is the caller's: reply_done(r)
 *   releases it. A child sets fields on success; on failure only r->xdata may be set.
 *   A translator that passes a request on with changes copies the struct (`struct request own = *q;`) and changes the
 *   copy. Dicts are shared: dict_copy before changing one you did not make.
 *
 * Inodes. q->inode is always the object the operation is about; q->fd, where given, is an open descriptor of it. An
 * operation that has q->fd == NULL goes by gfid (the wire's anonymous descriptor). For operations that make an inode
 * (mknod, mkdir, symlink, create) the caller makes it first: q->inode->gfid is the new gfid, never null.
 * A lookup by name has q->parent and q->name, and q->inode when the caller already holds one for the name, else NULL;
 * the reply's stat.gfid says what was found and inode_table_get() gives the object. A lookup by gfid has q->inode only.
 *
 * The call carries who asks (uid, gid, groups, pid, lock owner, client), until when (scope), and the trace id.
 */
#pragma once

#include "core/buf.h"
#include "core/dict.h"
#include "core/env.h"
#include "core/error.h"
#include "core/fiber.h"
#include "core/iatt.h"
#include "core/log.h"
#include "core/option.h"
#include "graph/inode.h"
#include <fcntl.h>

/* <fcntl.h> has macros of these names (64 and 128, for a flock(2) mode the kernel dropped); ours are an enum below. */
#undef LOCK_READ
#undef LOCK_WRITE

struct graph;
struct translator;
struct translator_class;
struct client;
struct dump;

/* ---- operations ----
 *
 * X(NAME, name, what it needs): I inode, F fd (must not be NULL), P parent and name, 2 parent2 and name2, W changes
 * something. Fields used beyond those (q: request, r: reply); every operation may use q->xdata and r->xdata:
 *
 *   lookup       q: [inode] [parent name]                        r: stat, post (parent after, zero when by gfid)
 *   stat         q: inode [fd]                                   r: stat
 *   readlink     q: inode size                                   r: text, stat; returns the length
 *   access       q: inode flags (R_OK W_OK X_OK mask)
 *   mknod        q: parent name inode mode rdev umask            r: stat, pre, post (of the parent)
 *   mkdir        q: parent name inode mode umask                 r: stat, pre, post
 *   symlink      q: parent name inode text (target) umask        r: stat, pre, post
 *   create       q: parent name inode fd flags mode umask        r: stat, pre, post      (fd is opened)
 *                (a name that exists with another gfid: EEXIST, with or without O_EXCL; the caller looks it up, opens)
 *   link         q: inode, parent2 name2 (the new name)          r: stat, pre2, post2
 *   unlink       q: parent name [inode] flags                    r: pre, post
 *   rmdir        q: parent name [inode] flags (1 = recursive)    r: pre, post
 *   rename       q: parent name parent2 name2 [inode] [inode2: what is overwritten] flags (RENAME_*)
 *                   valid (RENAME_ONTO_NOTHING: name2 led nowhere a moment ago)
 *                                                                r: stat, pre, post (old parent), pre2, post2 (new)
 *   open         q: inode fd flags [size]                        r: [stat] [data]         (fd is opened)
 *                   data: all of a file of up to q->size bytes, if the brick had it at hand
 *   opendir      q: inode fd
 *   read         q: inode [fd] offset size flags (O_NOATIME)     r: data, stat; returns bytes (0 = end)
 *   write        q: inode [fd] offset data flags                 r: pre, post; returns bytes
 *   truncate     q: inode [fd] offset (the new size)             r: pre, post
 *   fallocate    q: inode [fd] flags (FALLOC_FL_*) offset size   r: pre, post
 *   seek         q: inode fd offset flags (SEEK_DATA/SEEK_HOLE)  r: offset
 *   copy_range   q: inode [fd] offset, inode2 [fd2] offset2, size, flags
 *                                        r: stat (source after), pre, post (destination); returns bytes
 *   flush        q: inode fd                                     (on every close(2))
 *   fsync        q: inode [fd] flags (1 = data only)             r: pre, post
 *   fsyncdir     q: inode fd flags
 *   statfs       q: inode                                        r: statfs
 *   setattr      q: inode [fd] attr valid (ATTR_*)               r: pre, post
 *   setxattr     q: inode [fd] xattrs flags (XATTR_CREATE/REPLACE)  r: (xdata may carry iatts)
 *   getxattr     q: inode [fd] text (name; NULL = all)           r: xattrs; returns size of the value or list
 *   removexattr  q: inode [fd] text
 *   xattrop      q: inode [fd] flags (enum xattrop) xattrs       r: xattrs
 *   readdir      q: inode fd offset size (budget in bytes)       r: entries; returns their number (0 = end)
 *   readdirp     the same, entries carry stat; q->xattrs: names wanted per entry
 *   lk           q: inode fd command (enum lock_command) lock     r: lock
 *   inodelk      q: inode [fd] text (domain) command lock
 *   entrylk      q: inode (the directory) [fd] text (domain) name (NULL = all) command lock.type
 *   rchecksum    q: inode [fd] offset size                       r: weak_checksum, strong_checksum (32 bytes)
 *   blocksums    q: inode [fd] data (a question)                r: stat, data (its answer), see rpc/block_sums.h
 *   lease        q: inode flags text                             (reserved for the lease cache)
 *   getactivelk  q: inode                                        r: locks
 *   ipc          q: command                                      (xdata only; inode may be NULL)
 *   compound     q: steps step_count                             r: steps, step_count (steps done, last may have failed)
 *
 * Errors every operation may answer: ENOTCONN (child down), ETIMEDOUT and ECANCELED (scope), EIO, ENOMEM, ESTALE (the
 * gfid, or the parent's, is unknown), ENOENT (the parent exists, the name does not). Locks that are refused: EAGAIN.
 */
#define OPS(X)                                                   \
    X(LOOKUP, lookup, 0)                                         \
    X(STAT, stat, OP_INODE)                                      \
    X(READLINK, readlink, OP_INODE)                              \
    X(ACCESS, access, OP_INODE)                                  \
    X(MKNOD, mknod, OP_INODE | OP_PARENT | OP_CHANGES)           \
    X(MKDIR, mkdir, OP_INODE | OP_PARENT | OP_CHANGES)           \
    X(SYMLINK, symlink, OP_INODE | OP_PARENT | OP_CHANGES)       \
    X(CREATE, create, OP_INODE | OP_PARENT | OP_FD | OP_CHANGES) \
    X(LINK, link, OP_INODE | OP_PARENT2 | OP_CHANGES)            \
    X(UNLINK, unlink, OP_PARENT | OP_CHANGES)                    \
    X(RMDIR, rmdir, OP_PARENT | OP_CHANGES)                      \
    X(RENAME, rename, OP_PARENT | OP_PARENT2 | OP_CHANGES)       \
    X(OPEN, open, OP_INODE | OP_FD)                              \
    X(OPENDIR, opendir, OP_INODE | OP_FD)                        \
    X(READ, read, OP_INODE)                                      \
    X(WRITE, write, OP_INODE | OP_CHANGES)                       \
    X(TRUNCATE, truncate, OP_INODE | OP_CHANGES)                 \
    X(FALLOCATE, fallocate, OP_INODE | OP_CHANGES)               \
    X(SEEK, seek, OP_INODE)                                      \
    X(COPY_RANGE, copy_range, OP_INODE | OP_CHANGES)             \
    X(FLUSH, flush, OP_INODE | OP_FD)                            \
    X(FSYNC, fsync, OP_INODE)                                    \
    X(FSYNCDIR, fsyncdir, OP_INODE | OP_FD)                      \
    X(STATFS, statfs, OP_INODE)                                  \
    X(SETATTR, setattr, OP_INODE | OP_CHANGES)                   \
    X(SETXATTR, setxattr, OP_INODE | OP_CHANGES)                 \
    X(GETXATTR, getxattr, OP_INODE)                              \
    X(REMOVEXATTR, removexattr, OP_INODE | OP_CHANGES)           \
    X(XATTROP, xattrop, OP_INODE | OP_CHANGES)                   \
    X(READDIR, readdir, OP_INODE | OP_FD)                        \
    X(READDIRP, readdirp, OP_INODE | OP_FD)                      \
    X(LK, lk, OP_INODE)                                          \
    X(INODELK, inodelk, OP_INODE)                                \
    X(ENTRYLK, entrylk, OP_INODE)                                \
    X(RCHECKSUM, rchecksum, OP_INODE)                            \
    X(BLOCKSUMS, blocksums, OP_INODE)                            \
    X(LEASE, lease, OP_INODE)                                    \
    X(GETACTIVELK, getactivelk, OP_INODE)                        \
    X(IPC, ipc, 0)                                               \
    X(COMPOUND, compound, 0)

#define RENAME_ONTO_NOTHING 1u /* a hint, as inode2 is */

enum op_needs { OP_INODE = 1, OP_FD = 2, OP_PARENT = 4, OP_PARENT2 = 8, OP_CHANGES = 16 };

enum op {
#define X(upper, lower, needs) OP_##upper,
    OPS(X)
#undef X
        OP_COUNT
};

static_assert(OP_COUNT < 64, "sets of operations are 64-bit masks");

const char *op_name(enum op op); /* "read" */
unsigned op_needs(enum op op);   /* enum op_needs bits */
int op_parse(const char *name);  /* enum op or -EINVAL; any case; the field's old names (writev, readv...) too */

/* "read,write" or "read write" -> a bit per operation (1 << op). Empty text: all operations. 0 or -EINVAL with a sentence. */
int op_set_parse(const char *text, uint64_t *ret_set, struct error *err);
static inline bool op_set_has(uint64_t set, enum op op)
{
    return set >> op & 1;
}

/* ---- the call ---- */

#define LK_OWNER_MAX 96 /* bytes; the wire's credential cannot carry more */

struct lk_owner {
    uint32_t size;
    uint8_t bytes[LK_OWNER_MAX];
};

static inline bool lk_owner_equal(const struct lk_owner *a, const struct lk_owner *b)
{
    return a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;
}
void lk_owner_from_u64(struct lk_owner *o, uint64_t v); /* 8 bytes, least significant first */

enum { /* pids of internal clients (docs/protocol.md "pids with a meaning") */
       PID_GSYNCD = -1,
       PID_REBALANCE = -3,
       PID_NO_ROOT_SQUASH = -4,
       PID_SELF_HEAL = -6,
       PID_HEAL_INFO = -7,
       PID_ADD_REPLICA = -12, /* marks new bricks */
};

struct call {
    struct scope scope; /* deadline and cancellation; every wait made for this call uses it */
    uint32_t uid, gid;
    const uint32_t *groups; /* borrowed; supplementary groups */
    uint32_t group_count;
    int32_t pid; /* of the application; negative: internal client */
    struct lk_owner lk_owner;
    struct client *client; /* on a brick: whose connection; else NULL */
    uint64_t trace_id;
    /* The client's clock at the time of the call and which times it sets (docs/protocol.md "ctime flags"); 0 = none. */
    uint32_t time_flags;
    int64_t time_s;
    uint32_t time_ns;
    uint32_t *own_groups; /* internal: what call_own_groups made */
    bool is_lazy;         /* nobody waits for it: it may go out together with others */
    /* Messages waited for one after the other so far (see call_round_trip_begin). */
    uint32_t round_trips;
};

/* Whoever waits for an answer from another process brackets the wait with these two. Waits of the same call that
 * overlap (a fan-out) count as one, because they began at the same value; waits after each other add up. Whoever works
 * on a call_copy() and waits for that work merges the count back with call_merge_round_trips(). */
static inline uint32_t call_round_trip_begin(const struct call *call)
{
    return call->round_trips;
}

static inline void call_round_trip_end(struct call *call, uint32_t begun_at)
{
    if (call->round_trips <= begun_at)
        call->round_trips = begun_at + 1;
}

static inline void call_merge_round_trips(struct call *call, const struct call *copy)
{
    if (call->round_trips < copy->round_trips)
        call->round_trips = copy->round_trips;
}

enum time_flags {
    TIME_CTIME = 1,
    TIME_MTIME = 2,
    TIME_ATIME = 4,
    TIME_PARENT_CTIME = 8,
    TIME_PARENT_MTIME = 16,
    TIME_PARENT_ATIME = 32,
};

/* A call of the process itself: root, pid of the process, no deadline. */
void call_init(struct call *call, struct graph *graph);
/* A child call with the same identity and deadline but a cancel switch and lifetime of its own (for work that goes on
 * after `from` was answered). Groups stay borrowed unless call_own_groups() copies them. */
void call_copy(struct call *call, const struct call *from);
int call_own_groups(struct call *call) MUST_USE;
void call_done(struct call *call);
DEFINE_SCOPED(call_done, struct call)

/* ---- request and reply ---- */

enum lock_command { LOCK_TRY, LOCK_WAIT, LOCK_UNLOCK, LOCK_GET };
enum lock_type { LOCK_READ = 0, LOCK_WRITE = 1, LOCK_NONE = 2 };

struct lock_range {
    enum lock_type type;
    uint64_t start;
    uint64_t length; /* 0 = to the end of everything */
    int32_t pid;
    struct lk_owner owner; /* lk only: the application's owner; inodelk and entrylk use call->lk_owner */
};

enum xattrop {
    XATTROP_ADD32 = 0, /* arrays of big-endian int32 */
    XATTROP_ADD64 = 1,
    XATTROP_OR = 2,
    XATTROP_AND = 3,
    XATTROP_GET_AND_SET = 4,
    XATTROP_ADD32_DEFAULT = 5,
    XATTROP_ADD64_DEFAULT = 6,
};

struct request {
    enum op op;
    struct inode *inode;
    struct fd *fd;
    struct inode *parent, *parent2;
    const char *name, *name2;
    struct inode *inode2;
    struct fd *fd2;
    uint64_t offset, offset2;
    uint64_t size;
    uint32_t flags;
    uint32_t mode, umask;
    uint64_t rdev;
    uint32_t valid;
    const struct iatt *attr;
    struct buf *data;
    const char *text;
    struct dict *xattrs;
    enum lock_command command;
    const struct lock_range *lock;
    struct dict *xdata;
    struct request *steps; /* compound */
    uint32_t step_count;
};

struct dir_entry {
    uint64_t ino;
    uint64_t offset;  /* cookie to go on after this entry */
    uint32_t type;    /* DT_* */
    struct iatt stat; /* readdirp; mode 0: not known, look it up */
    struct dict *xattrs;
    uint32_t name_len; /* bytes, without the NUL */
    char *name;        /* lives in the list */
};

struct dir_entries {
    struct dir_entry *list;
    uint32_t count, room;
    bool at_end;             /* nothing comes after the last entry */
    struct dir_names *names; /* internal */
};

struct fs_stat {
    uint64_t bsize, frsize, blocks, bfree, bavail, files, ffree, favail, fsid, flag, namemax;
};

struct active_lock {
    struct lock_range range;
    uint32_t flags;
    char client_uid[256];
};

struct reply {
    int ret; /* what the operation returned; set by child_call */
    /* When the question left this process, the last of several; 0 = not known, or not one that gives leases. What the
     * reply says is still so as long as there is a lease since then or before, if no EVENT_INVALIDATE came meanwhile. */
    uint64_t asked_ns;
    struct iatt stat, pre, post, pre2, post2;
    struct dict *xdata;
    struct dict *xattrs;
    struct buf *data;
    char *text; /* mem_free */
    struct dir_entries *entries;
    uint64_t offset;
    struct fs_stat *statfs;
    struct lock_range *lock;
    struct active_lock *locks;
    uint32_t lock_count;
    uint32_t weak_checksum;
    uint8_t strong_checksum[32];
    struct reply *steps; /* compound: step_count of them */
    uint32_t step_count;
};

void reply_init(struct reply *r);
void reply_done(struct reply *r); /* releases all; the struct is as after reply_init */
DEFINE_SCOPED(reply_done, struct reply)
/* Moves `from` into `to` (which must be empty or done); `from` is empty afterwards. */
void reply_move(struct reply *to, struct reply *from);
/* On the heap: replies are about 1 KiB and stacks are small. Returned. */
struct reply *reply_new(void) MUST_USE;
void reply_free(struct reply *r); /* accepts NULL */
DEFINE_SCOPED(reply_free, struct reply)

struct dir_entries *dir_entries_new(void) MUST_USE;
/* Adds a copy; 0 or -ENOMEM. ret_entry (may be NULL) is valid until the next add. */
int dir_entries_add(struct dir_entries *e, const char *name, size_t name_len, uint64_t ino, uint64_t offset,
                    uint32_t type, struct dir_entry **ret_entry) MUST_USE;
/* Takes entry `index` out; those after it move up. */
void dir_entries_drop(struct dir_entries *e, uint32_t index);
void dir_entries_free(struct dir_entries *e); /* accepts NULL */

/* ---- asking children ---- */

typedef FIBER int (*op_fn)(struct translator *me, struct call *call, const struct request *q, struct reply *r);

/* The only way to call a child: counts, traces, zeroes r, asserts what the operation needs and what it may answer,
 * stores the result in r->ret and returns it. r may be NULL when the caller wants only the result. */
FIBER int child_call(struct translator *me, unsigned child, struct call *call, const struct request *q,
                     struct reply *r);
/* Hands the request to the first child: what a missing operation does. A leaf answers -EOPNOTSUPP for what it lacks. */
FIBER int default_op(struct translator *me, struct call *call, const struct request *q, struct reply *r);
/* Compound by its steps, each asked of `me` itself: the default compound. Stops at the first failure and returns it;
 * r->step_count says how many ran (the last of them may have failed). A class without an entry for compound and without
 * `any` gets this when it has an entry for one of the steps, else the compound passes through it in one piece. A class
 * with `any` that wants to see the steps says `.ops[OP_COMPOUND] = default_compound`. */
FIBER int default_compound(struct translator *me, struct call *call, const struct request *q, struct reply *r);
/* Runs the operation on `me` itself, as a parent would (protocol/server, mount/fuse and tests start here). */
FIBER int translator_call(struct translator *me, struct call *call, const struct request *q, struct reply *r);

/* Short forms. All take the child's index; see the table above for what lands in r. */
FIBER int child_lookup(struct translator *me, unsigned child, struct call *call, struct inode *inode,
                       struct inode *parent, const char *name, struct dict *xdata, struct reply *r);
FIBER int child_stat(struct translator *me, unsigned child, struct call *call, struct inode *inode, struct fd *fd,
                     struct dict *xdata, struct reply *r);
FIBER int child_read(struct translator *me, unsigned child, struct call *call, struct inode *inode, struct fd *fd,
                     uint64_t size_bytes, uint64_t offset, struct reply *r);
FIBER int child_write(struct translator *me, unsigned child, struct call *call, struct inode *inode, struct fd *fd,
                      struct buf *data, uint64_t offset, uint32_t flags, struct dict *xdata, struct reply *r);
FIBER int child_getxattr(struct translator *me, unsigned child, struct call *call, struct inode *inode, struct fd *fd,
                         const char *name, struct reply *r);
FIBER int child_setxattr(struct translator *me, unsigned child, struct call *call, struct inode *inode, struct fd *fd,
                         struct dict *xattrs, uint32_t flags, struct reply *r);
FIBER int child_xattrop(struct translator *me, unsigned child, struct call *call, struct inode *inode, struct fd *fd,
                        enum xattrop how, struct dict *xattrs, struct dict *xdata, struct reply *r);
FIBER int child_inodelk(struct translator *me, unsigned child, struct call *call, struct inode *inode, struct fd *fd,
                        const char *domain, enum lock_command command, const struct lock_range *range, struct reply *r);
FIBER int child_entrylk(struct translator *me, unsigned child, struct call *call, struct inode *inode,
                        const char *domain, const char *name, enum lock_command command, enum lock_type type,
                        struct reply *r);

/* ---- events ---- */

enum event_kind {
    EVENT_CHILD_UP,           /* the translator that sends it can serve (again) */
    EVENT_CHILD_DOWN,         /* it cannot */
    EVENT_CHILD_TRYING,       /* it does not know yet, but has tried once and failed (mounts stop waiting for it) */
    EVENT_INVALIDATE,         /* upcall: attributes, data or entries of gfid changed elsewhere; of the null gfid: of
                                 anything may have, while a brick was away */
    EVENT_INODELK_CONTENTION, /* somebody waits for an inode lock that this client holds */
    EVENT_ENTRYLK_CONTENTION,
    EVENT_AUTH_FAILED,    /* the brick refused us; text says why */
    EVENT_STORAGE_FAILED, /* health check failed: the brick must stop serving */
    EVENT_VOLFILE_CHANGED,
    EVENT_HEAL_NEEDED, /* something was added to a brick's index since the heal daemon listed it (features/index) */
};

/* Whoever cannot act on an event at once, but whose acting the sender waits for, takes the hold and drops it when done;
 * the sender keeps it in memory until nobody holds it. */
struct event_hold {
    uint32_t count;
    struct waitq released;
};

static inline struct event_hold *event_hold_take(struct event_hold *h)
{
    if (h)
        h->count++;
    return h;
}

static inline void event_hold_drop(struct event_hold *h)
{
    if (h && --h->count == 0)
        (void)waitq_wake_all(&h->released, 0);
}

/* What GlusterFS's bricks do not do. */
#define BRICK_LACKS_NOTICES      1u /* who holds all names of a directory is not told that others wait for it */
#define BRICK_LACKS_RENAME_FLAGS 2u /* RENAME with flags is refused with EINVAL */
#define BRICK_LACKS_INDEX_STAT   4u /* the index is listed by READDIR only */

struct event {
    enum event_kind kind;
    struct gfid gfid;
    struct client *client;   /* on a brick: whom it is for; NULL = not client-bound */
    const char *domain;      /* locks */
    const char *name;        /* entrylk: NULL = whole directory; INVALIDATE: a name in the directory gfid, or NULL */
    struct event_hold *hold; /* INVALIDATE: the brick waits until it is released; NULL = nobody waits */
    struct lock_range range; /* inodelk: of the held lock */
    int32_t pid;
    uint32_t invalidate_flags; /* docs/protocol.md "CACHE_INVALIDATION" */
    const struct iatt *stat, *parent_stat;
    struct dict *xdata;
    const char *text;
    uint32_t lacks; /* CHILD_UP: what bricks behind the sender cannot do, BRICK_LACKS_* */
};

/* Tells all parents. Not FIBER: whoever must wait spawns a fiber. Children are started before their parents: a notify
 * may come between init and start. A leaf without a start function is announced as up by graph_start(). */
void notify_parents(struct translator *me, const struct event *event);

/* ---- leases ---- */

/* A promise of the bricks: nobody else has changed attributes, data or (of a directory) names of the inode since
 * since_ns, and before such a change is answered EVENT_INVALIDATE will have come, and with it the end of the lease. It
 * holds while env_now_ns() < until_ns; who gives away what it knows (to the kernel's caches) gives that time with it. */
struct lease {
    uint64_t since_ns, until_ns;
};

/* Is there one now? Asks nobody and never suspends. What was learnt from a question that began at or after since_ns is
 * still so, but for changes made through this graph. A translator without a word of its own hands the question to its
 * only child. ret_lease is written on success only. */
bool translator_lease(struct translator *me, struct inode *inode, struct lease *ret_lease);

/* ---- classes and instances ---- */

struct translator_class {
    const char *type;       /* "cluster/replicate" */
    const char *aliases[4]; /* "cluster/afr" */
    size_t state_size;      /* zeroed before the options are parsed into it */
    const struct option *options;
    op_fn ops[OP_COUNT];
    op_fn any;                           /* instead of passing through, for operations without an entry of their own */
    unsigned children_min, children_max; /* max 0 = no limit (leaf: both 0 with is_leaf) */
    bool is_leaf;
    bool uses_inode_ctx, uses_fd_ctx, uses_client_ctx; /* a slot is reserved only where asked for */

    /* All optional. Order of life: init (options are parsed, children are initialised) - start (children are started;
     * connect, open) - operations - stop (parents are stopped; waits for own work) - fini. */
    int (*init)(struct translator *me, struct error *err);
    FIBER int (*start)(struct translator *me, struct error *err);
    FIBER void (*stop)(struct translator *me);
    void (*fini)(struct translator *me); /* also after a failed init */
    /* After live options changed in the state. */
    void (*reconfigured)(struct translator *me);
    /* An option the table declares OPTION_ANY or with a '*': checked and kept by the class. */
    int (*any_option)(struct translator *me, const char *key, const char *value, struct error *err);
    /* An event from child number `child`. Missing: handed on to the parents. */
    void (*notify)(struct translator *me, unsigned child, const struct event *event);
    /* The last reference went: release what the slot holds. Never called with a NULL slot. Must not suspend. */
    void (*inode_forget)(struct translator *me, struct inode *inode, void *ctx);
    void (*fd_release)(struct translator *me, struct fd *fd, void *ctx);
    /* A client's connection is gone (bricks): drop its locks and the like. Called on every translator of the brick. */
    void (*client_gone)(struct translator *me, struct client *client);
    /* translator_lease(). Missing: what the only child says; with several children there is none. */
    bool (*lease)(struct translator *me, struct inode *inode, struct lease *ret_lease);
    /* Adds key=value lines to a statedump section. */
    void (*dump)(struct translator *me, struct dump *out);
};

struct op_stats {
    uint64_t calls, failures;
};

struct translator {
    const struct translator_class *class;
    char *name;
    struct graph *graph;
    struct env *env; /* graph's */
    void *state;
    struct dict *options; /* as given in the volume file, text values */
    struct translator **children;
    unsigned child_count;
    struct translator **parents;
    unsigned parent_count;
    int inode_slot, fd_slot, client_slot; /* -1: none */
    bool is_up;                           /* as last told to the parents with EVENT_CHILD_UP / DOWN */
    bool is_initialised, is_started;
    unsigned line; /* in the volume file, for messages */
    struct op_stats stats[OP_COUNT];
    uint64_t ops_in_flight;
};

/* Logging with the translator's name as place. */
#define TLOG(me, level, event, ...) LOG(env_log((me)->env), (level), (me)->name, (event), __VA_ARGS__)

/* ---- statedump ---- */

void dump_printf(struct dump *out, const char *key, const char *fmt, ...) PRINTF_LIKE(3, 4); /* "key=value" */
void dump_section(struct dump *out, const char *fmt, ...) PRINTF_LIKE(2, 3);                 /* "[section]" */
