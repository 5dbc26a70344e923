#include "unit/storage/brick_fixture.h"
#include <stdio.h>
#include <stdlib.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>

bool brick_tests_are_unprivileged;

bool brick_drop_sys_admin(void)
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[2];
    if (syscall(SYS_capget, &header, data) < 0)
        return false;
    data[0].effective &= ~(1u << CAP_SYS_ADMIN);
    data[0].permitted &= ~(1u << CAP_SYS_ADMIN);
    return syscall(SYS_capset, &header, data) == 0;
}

bool brick_mount(const char *type, const char *source, const char *at, unsigned long flags, const char *data)
{
    static bool is_private;
    if (!is_private && (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0))
        return false;
    is_private = true;
    (void)mkdir(at, 0755); /* it may be there */
    return mount(source, at, type, flags, data) == 0;
}

static bool takes_xattr(const char *dir, const char *name)
{
    return setxattr(dir, name, "1", 1, 0) == 0 && removexattr(dir, name) == 0;
}

static bool make_brick_dir(struct brick_test *t, const char *parent, bool must_take_user)
{
    snprintf(t->dir, sizeof t->dir, "%s/mortar-brick-XXXXXX", parent);
    if (!mkdtemp(t->dir))
        return false;
    if ((brick_tests_are_unprivileged || takes_xattr(t->dir, "trusted.probe")) &&
        (!must_take_user || takes_xattr(t->dir, "user.probe")))
        return true;
    rmdir(t->dir);
    return false;
}

static void run_command(const char *fmt, const char *arg)
{
    char command[256];
    snprintf(command, sizeof command, fmt, arg);
    if (system(command) != 0)
        fail_msg("%s", command);
}

struct run {
    struct brick_test *t;
    brick_fn fn;
};

static void run_body(void *arg)
{
    struct run *run = arg;
    run->fn(run->t);
    brick_stop(run->t);
}

void brick_in_fiber(brick_fn fn, bool is_on_disk)
{
    struct brick_test *t = mem_zalloc(sizeof *t);
    assert_non_null(t);
    /* Every sync of a disk that others use costs tens of milliseconds; tmpfs takes user.* since Linux 6.6. */
    if ((is_on_disk || !make_brick_dir(t, "/dev/shm", true)) && !make_brick_dir(t, "/tmp", false)) {
        print_message("# needs the right to set trusted.* xattrs (root)\n");
        mem_free(t);
        skip();
    }
    snprintf(t->log_path, sizeof t->log_path, "%s.log", t->dir);
    assert_int_equal(0, log_open(t->log_path, LOG_DEBUG, &t->log, NULL));
    t->env = env_real_new(t->log, 2);
    assert_non_null(t->env);
    t->r = reply_new();
    assert_non_null(t->r);
    env_real_run_fiber(t->env, run_body, &(struct run) { .t = t, .fn = fn });
    reply_free(t->r);
    env_real_free(t->env);
    log_close(t->log);
    unlink(t->log_path);
    run_command("rm -rf %s", t->dir);
    mem_free(t);
}

static int start(struct brick_test *t, va_list args)
{
    SCOPED(dict_unref) struct dict *options = dict_new();
    const char *key;

    assert_non_null(options);
    assert_int_equal(0, dict_set_str(options, "directory", t->dir));
    while ((key = va_arg(args, const char *)))
        assert_int_equal(0, dict_set_str(options, key, va_arg(args, const char *)));
    t->graph = graph_new(t->env);
    assert_non_null(t->graph);
    int r = graph_push(t->graph, &posix_class, "web-posix", options, &t->posix, &t->err);
    t->me = t->posix;
    if (r == 0 && t->push)
        t->push(t);
    if (r == 0)
        r = graph_start(t->graph, &t->err);
    if (r < 0) {
        graph_free(take(t->graph));
        return r;
    }
    call_init(&t->call, t->graph);
    t->root = brick_inode(t, &gfid_root, S_IFDIR);
    return 0;
}

int brick_try(struct brick_test *t, ...)
{
    va_list args;
    va_start(args, t);
    int r = start(t, args);
    va_end(args);
    return r;
}

void brick_start(struct brick_test *t, ...)
{
    va_list args;
    va_start(args, t);
    int r = start(t, args);
    va_end(args);
    if (r < 0)
        fail_msg("brick does not start: %s", t->err.text);
}

void brick_stop(struct brick_test *t)
{
    if (!t->graph)
        return;
    reply_done(t->r);
    for (unsigned i = 0; i < t->fd_count; i++)
        fd_unref(t->fds[i]);
    for (unsigned i = 0; i < t->inode_count; i++)
        inode_unref(t->inodes[i]);
    t->fd_count = t->inode_count = 0;
    call_done(&t->call);
    graph_stop(t->graph);
    graph_free(take(t->graph));
}

FIBER int brick_call(struct brick_test *t, const struct request *q)
{
    reply_done(t->r);
    return translator_call(t->me, &t->call, q, t->r);
}

struct inode *brick_inode(struct brick_test *t, const struct gfid *g, uint32_t type)
{
    struct inode *inode = inode_table_get(t->graph, g, type);
    assert_non_null(inode);
    assert_true(t->inode_count < INODES_MAX);
    t->inodes[t->inode_count++] = inode;
    return inode;
}

struct fd *brick_fd(struct brick_test *t, struct inode *inode, uint32_t flags)
{
    struct fd *fd = fd_new(inode, flags, 1);
    assert_non_null(fd);
    assert_true(t->fd_count < INODES_MAX);
    t->fds[t->fd_count++] = fd;
    return fd;
}

void brick_release(struct brick_test *t, struct fd *fd)
{
    for (unsigned i = 0; i < t->fd_count; i++) {
        if (t->fds[i] == fd)
            t->fds[i] = t->fds[--t->fd_count];
    }
    fd_unref(fd);
}

FIBER struct inode *brick_mkdir(struct brick_test *t, struct inode *parent, const char *name, const struct gfid *g)
{
    struct inode *inode = brick_inode(t, g, S_IFDIR);
    assert_int_equal(0, brick_op(t, OP_MKDIR, .parent = parent, .name = name, .inode = inode, .mode = 0755));
    return inode;
}

FIBER struct inode *brick_create(struct brick_test *t, struct inode *parent, const char *name, const struct gfid *g,
                                 struct fd **ret_fd)
{
    struct inode *inode = brick_inode(t, g, S_IFREG);
    struct fd *fd = brick_fd(t, inode, O_RDWR);
    assert_int_equal(0, brick_op(t, OP_CREATE, .parent = parent, .name = name, .inode = inode, .fd = fd,
                                 .flags = O_RDWR | O_EXCL, .mode = 0644));
    if (ret_fd)
        *ret_fd = fd;
    else
        brick_release(t, fd);
    return inode;
}

FIBER int brick_lookup(struct brick_test *t, struct inode *parent, const char *name, struct dict *xdata)
{
    return brick_op(t, OP_LOOKUP, .parent = parent, .name = name, .xdata = xdata);
}

FIBER int brick_write(struct brick_test *t, struct inode *inode, struct fd *fd, const char *text, uint64_t offset)
{
    SCOPED(buf_unref) struct buf *b = buf_copy(text, strlen(text));
    assert_non_null(b);
    return brick_op(t, OP_WRITE, .inode = inode, .fd = fd, .data = b, .offset = offset);
}

const char *brick_path(struct brick_test *t, const char *fmt, ...)
{
    static char paths[4][512];
    static unsigned next;
    char *path = paths[next++ % 4];
    int n = snprintf(path, sizeof paths[0], "%s/", t->dir);
    va_list args;
    va_start(args, fmt);
    vsnprintf(path + n, sizeof paths[0] - (size_t)n, fmt, args);
    va_end(args);
    return path;
}

const char *handle_path(struct brick_test *t, const struct gfid *g)
{
    const char *text = GFID_TEXT(g);
    return brick_path(t, ".glusterfs/%.2s/%.2s/%s", text, text + 2, text);
}

bool on_brick(struct brick_test *t, const char *rel)
{
    struct stat st;
    return lstat(brick_path(t, "%s", rel), &st) == 0;
}

void assert_xattr(const char *path, const char *name, const void *want, size_t size_bytes)
{
    char have[1024];
    ssize_t n = lgetxattr(path, name, have, sizeof have);
    if (n != (ssize_t)size_bytes)
        fail_msg("%s of %s has %zd bytes instead of %zu", name, path, n, size_bytes);
    assert_memory_equal(have, want, size_bytes);
}

void assert_no_xattr(const char *path, const char *name)
{
    assert_int_equal(-1, lgetxattr(path, name, NULL, 0));
}

const char *brick_log(struct brick_test *t)
{
    static char text[65536];
    int fd = open(t->log_path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

void assert_same_inode(const char *a, const char *b)
{
    struct stat x, y;
    assert_int_equal(0, lstat(a, &x));
    assert_int_equal(0, lstat(b, &y));
    assert_int_equal(x.st_ino, y.st_ino);
}

void assert_link_text(const char *path, const char *want)
{
    char have[512];
    ssize_t n = readlink(path, have, sizeof have - 1);
    assert_true(n >= 0);
    have[n] = '\0';
    assert_string_equal(want, have);
}
