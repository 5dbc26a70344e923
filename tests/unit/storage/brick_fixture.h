/* What tests of storage/posix need: a brick in a directory of its own, a graph on it, restarts.
 *
 *     BRICK_TEST(create_gives_a_handle)
 *     {
 *         brick_start(t, NULL);
 *         struct inode *f = brick_create(t, t->root, "a");
 *         ...
 *     }
 *
 * The body runs in a fiber; directory, graph and inodes are gone afterwards. Without the right to set trusted.* xattrs
 * the tests skip with a message, but for programs that set brick_tests_are_unprivileged. gfids are made with GFID(n): 11111111-2222-3333-4444-0000000000nn.
 */
#pragma once

#include "core/env_real.h"
#include "core/mem.h"
#include "graph/graph.h"
#include "storage/posix/posix.h"
#include "unit/unit.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define INODES_MAX 256
#define ROOT_TEXT  "00000000-0000-0000-0000-000000000001"

struct brick_test {
    struct env *env;
    struct log *log;
    char log_path[80];
    char dir[64]; /* the brick */
    struct graph *graph;
    struct translator *me; /* what brick_op asks: the top of the graph */
    struct translator *posix;
    void (*push)(struct brick_test *t); /* puts more on top of posix; sets me */
    struct call call;
    struct inode *root;
    struct inode *inodes[INODES_MAX]; /* references to give back */
    unsigned inode_count;
    struct fd *fds[INODES_MAX];
    unsigned fd_count;
    struct reply *r; /* of the last brick_op */
    struct error err;
};

extern bool brick_tests_are_unprivileged;
/* Gives up CAP_SYS_ADMIN for this process, before any thread is made. False: could not. */
bool brick_drop_sys_admin(void);
/* A file system mounted at `at` (made), in a mount name space of this process's own. False: not possible here. */
bool brick_mount(const char *type, const char *source, const char *at, unsigned long flags, const char *data);

typedef void (*brick_fn)(struct brick_test *t);
void brick_in_fiber(brick_fn fn, bool is_on_disk);

#define BRICK_TEST_AT(name, is_on_disk)            \
    static void name##_body(struct brick_test *t); \
    static void name(void **state)                 \
    {                                              \
        brick_in_fiber(name##_body, is_on_disk);   \
    }                                              \
    static void name##_body(struct brick_test *t)

/* In memory (tmpfs) where that takes all xattrs. */
#define BRICK_TEST(name)      BRICK_TEST_AT(name, false)
/* For what tmpfs cannot do, as reads that never wait (RWF_NOWAIT). */
#define BRICK_DISK_TEST(name) BRICK_TEST_AT(name, true)

#define GFID(n) (&(struct gfid) { { 0x11, 0x11, 0x11, 0x11, 0x22, 0x22, 0x33, 0x33, 0x44, 0x44, 0, 0, 0, 0, 0, (n) } })

/* "key", "value" pairs and NULL. The first fails the test when the brick refuses; the second returns the errno, the
 * sentence is in t->err. */
void brick_start(struct brick_test *t, ...);
int brick_try(struct brick_test *t, ...);
void brick_stop(struct brick_test *t);

FIBER int brick_call(struct brick_test *t, const struct request *q);
#define brick_op(t, op_, ...) brick_call((t), &(struct request) { .op = (op_), __VA_ARGS__ })

struct inode *brick_inode(struct brick_test *t, const struct gfid *g, uint32_t type); /* owned by t */
struct fd *brick_fd(struct brick_test *t, struct inode *inode, uint32_t flags);       /* owned by t */
void brick_release(struct brick_test *t, struct fd *fd);                              /* gives it back early */
FIBER struct inode *brick_mkdir(struct brick_test *t, struct inode *parent, const char *name, const struct gfid *g);
/* Makes and opens it; *ret_fd (may be NULL: closed again) is owned by t. */
FIBER struct inode *brick_create(struct brick_test *t, struct inode *parent, const char *name, const struct gfid *g,
                                 struct fd **ret_fd);
FIBER int brick_lookup(struct brick_test *t, struct inode *parent, const char *name, struct dict *xdata);
FIBER int brick_write(struct brick_test *t, struct inode *inode, struct fd *fd, const char *text, uint64_t offset);

/* Path below the brick in a static buffer (four take turns). */
const char *brick_path(struct brick_test *t, const char *fmt, ...) PRINTF_LIKE(2, 3);
const char *handle_path(struct brick_test *t, const struct gfid *g);
bool on_brick(struct brick_test *t, const char *rel);
/* The xattr is exactly these bytes. */
void assert_xattr(const char *path, const char *name, const void *want, size_t size_bytes);
void assert_no_xattr(const char *path, const char *name);
/* Two names of one inode. */
void assert_same_inode(const char *a, const char *b);
/* Of a symlink. */
void assert_link_text(const char *path, const char *want);
const char *brick_log(struct brick_test *t);
