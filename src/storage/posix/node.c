/* storage/posix/node.c - descriptors and per-inode state: the only place that opens what already exists. */
#include "storage/posix/posix_internal.h"
#include <sys/xattr.h>
#include <sys/syscall.h>

#define HOT_NS     1000000000ull /* how long a directory counts as being in the kernel's caches */
#define HOT_JOB_NS 300000        /* a pool look-up that took less did not wait for the disk */

/* ---- files ---- */

struct pfile *pfile_new(int fd, bool is_path, const struct stat *st)
{
    struct pfile *f = NEW(struct pfile);
    if (!f) {
        close(fd);
        return NULL;
    }
    *f = (struct pfile) { .fd = fd, .refs = 1, .is_path = is_path, .type = st->st_mode & S_IFMT, .ino = st->st_ino };
    f->is_writable = f->type == S_IFREG && !is_path && (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR;
    return f;
}

struct pfile *pfile_ref(struct pfile *f)
{
    f->refs++;
    return f;
}

void pfile_unref(struct pfile *f)
{
    if (!f || --f->refs > 0)
        return;
    close(f->fd);
    mem_free(f);
}

/* ---- nodes ---- */

struct pnode *pnode_of(struct translator *me, struct inode *inode)
{
    void **slot = inode_ctx(inode, me);
    if (*slot)
        return *slot;
    struct pnode *n = NEW(struct pnode);
    if (!n)
        return NULL;
    n->gfid = inode->gfid;
    list_init(&n->lru);
    fiber_mutex_init(&n->busy);
    *slot = n;
    return n;
}

struct pnode *pnode_find(struct translator *me, const struct gfid *gfid)
{
    struct inode *inode = inode_table_find(me->graph, gfid);
    if (!inode)
        return NULL;
    struct pnode *n = *inode_ctx(inode, me);
    inode_unref(inode); /* the object stays in the table's LRU: nothing suspends before the caller is done */
    return n;
}

struct pnode *pnode_by_ino(struct posix *s, uint64_t ino)
{
    struct pnode *n;
    HASH_FIND(hh, s->nodes, &ino, sizeof ino, n);
    return n;
}

void pnode_drop_file(struct posix *s, struct pnode *n)
{
    if (!n->file)
        return;
    assert(s->nodes);
    HASH_DELETE(hh, s->nodes, n);
    list_del(&n->lru);
    s->node_files--;
    pfile_unref(take(n->file));
}

void pnode_set_file(struct posix *s, struct pnode *n, struct pfile *f)
{
    pnode_drop_file(s, n);
    struct pnode *other = pnode_by_ino(s, f->ino);
    if (other)
        pnode_drop_file(s, other);
    n->file = pfile_ref(f);
    n->ino = f->ino;
    n->type = f->type;
    HASH_ADD(hh, s->nodes, ino, sizeof n->ino, n);
    list_add_tail(&s->node_lru, &n->lru);
    s->node_files++;
    while (s->node_files > s->node_files_max && !list_empty(&s->node_lru))
        pnode_drop_file(s, list_entry(s->node_lru.next, struct pnode, lru));
}

void pnode_free(struct posix *s, struct pnode *n)
{
    pnode_drop_file(s, n);
    mem_free(n);
}

void posix_inode_forget(struct translator *me, struct inode *inode, void *ctx)
{
    pnode_free(me->state, ctx);
}

/* ---- opening by gfid ---- */

struct open_job {
    struct posix *s; /* only its descriptors are used */
    struct gfid gfid;
    struct pfile *file;
    bool is_unlinked;
    int r;
};

static void open_on_pool(void *arg)
{
    struct open_job *j = arg;
    j->r = handle_open(j->s, &j->gfid, false, &j->file, &j->is_unlinked);
}

/* The handle of anything but a directory is the inode itself, so it says the gfid when the xattr was lost behind our back. */
static void restore_gfid(struct posix *s, const struct gfid *g, const struct pfile *f)
{
    struct xnode x = xnode_of_file(s, f);
    struct gfid there;

    if (f->type != S_IFDIR && px_get_gfid(s, &x, &there) == -ENODATA)
        (void)px_set(s, &x, XATTR_GFID, g->bytes, sizeof g->bytes, XATTR_CREATE); /* else at the next look */
}

FIBER int pnode_file(struct translator *me, struct inode *inode, struct pfile **ret_file)
{
    struct posix *s = me->state;
    struct pnode *n = pnode_of(me, inode);
    if (!n)
        return -ENOMEM;
    if (n->file) {
        list_del(&n->lru);
        list_add_tail(&s->node_lru, &n->lru);
        *ret_file = pfile_ref(n->file);
        return 0;
    }
    struct open_job j = { .s = s, .gfid = inode->gfid };
    j.r = handle_open(s, &j.gfid, true, &j.file, &j.is_unlinked);
    if (j.r == -EAGAIN) {
        s->pool_ops++;
        env_pool_run(me->env, open_on_pool, &j);
    }
    if (j.r < 0)
        return j.r == -ENOENT ? -ESTALE : j.r;
    assert(j.file);
    n->is_unlinked = j.is_unlinked;
    if (!j.is_unlinked) {
        n->has_handle = true;
        restore_gfid(s, &inode->gfid, j.file);
    }
    pnode_set_file(s, n, j.file);
    *ret_file = j.file;
    return 0;
}

FIBER int pnode_dir(struct translator *me, struct inode *inode, struct pfile **ret_file)
{
    SCOPED(pfile_unref) struct pfile *f = NULL;
    int r = pnode_file(me, inode, &f);
    if (r != 0)
        return r;
    if (f->type != S_IFDIR)
        return -ENOTDIR;
    *ret_file = take(f);
    return 0;
}

struct pfd *pfd_of(struct translator *me, struct fd *fd)
{
    return fd ? *fd_ctx(fd, me) : NULL;
}

FIBER int pnode_of_request(struct translator *me, const struct request *q, struct pfile **ret_file)
{
    struct pfd *p = pfd_of(me, q->fd);
    if (p) {
        *ret_file = pfile_ref(p->file);
        return 0;
    }
    return pnode_file(me, q->inode, ret_file);
}

/* ---- names ---- */

struct stat_job {
    int dir_fd;
    const char *name;
    struct stat *st;
    int r;
};

static void stat_on_pool(void *arg)
{
    struct stat_job *j = arg;
    j->r = fstatat(j->dir_fd, j->name, j->st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

/* On the loop: the directory has answered quickly of late. One slow answer ends that, so that a directory makes the
 * loop wait for the disk once in a while at most. */
static int stat_hot(struct translator *me, struct pnode *dir_node, struct stat_job *j, uint64_t now)
{
    stat_on_pool(j); /* the same work, here */
    uint64_t done = env_now_ns(me->env);
    dir_node->hot_until_ns = done - now < HOT_JOB_NS ? done + HOT_NS : 0;
    return j->r;
}

FIBER int pentry_stat(struct translator *me, struct pnode *dir_node, struct pfile *dir, const char *name,
                      struct stat *ret_st)
{
    struct posix *s = me->state;
    struct stat_job j = { .dir_fd = dir->fd, .name = name, .st = ret_st };
    uint64_t now = env_now_ns(me->env);

    if (dir_node->hot_until_ns > now)
        return stat_hot(me, dir_node, &j, now);
    /* What the kernel has in its dentry cache, present or known to be absent, costs no disk. */
    struct {
        uint64_t flags, mode, resolve;
    } how = { O_PATH | O_NOFOLLOW | O_CLOEXEC, 0, 0x20 /* RESOLVE_CACHED */ };
    long fd = syscall(SYS_openat2, dir->fd, name, &how, sizeof how);
    if (fd >= 0) {
        int r = fstat((int)fd, ret_st) < 0 ? -errno : 0;
        close((int)fd);
        dir_node->hot_until_ns = now + HOT_NS;
        return r;
    }
    if (errno != EAGAIN && errno != ENOSYS && errno != EINVAL)
        return -errno;
    s->pool_ops++;
    env_pool_run(me->env, stat_on_pool, &j);
    uint64_t done = env_now_ns(me->env);
    if (done - now < HOT_JOB_NS)
        dir_node->hot_until_ns = done + HOT_NS;
    return j.r;
}

static int entry_open_fd(struct pfile *dir, const char *name, uint32_t type, bool *ret_is_path)
{
    int fd = -1;
    *ret_is_path = false;
    if (type == S_IFREG) {
        fd = openat(dir->fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0 && (errno == EACCES || errno == EROFS || errno == EPERM || errno == ETXTBSY))
            fd = openat(dir->fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    } else if (type == S_IFDIR) {
        fd = openat(dir->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    }
    if (fd >= 0)
        return fd;
    if ((type == S_IFREG || type == S_IFDIR) && errno != EACCES)
        return -errno;
    *ret_is_path = true;
    fd = openat(dir->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int pentry_open(struct posix *s, struct pfile *dir, const char *name, const struct stat *st, struct pfile **ret_file)
{
    bool is_path;
    struct stat opened;
    int fd = entry_open_fd(dir, name, st->st_mode & S_IFMT, &is_path);
    if (fd < 0)
        return fd;
    if (fstat(fd, &opened) < 0 || opened.st_ino != st->st_ino) {
        close(fd); /* somebody else works in the brick */
        return -ENOENT;
    }
    struct pfile *f = pfile_new(fd, is_path, &opened);
    if (!f)
        return -ENOMEM;
    *ret_file = f;
    return 0;
}

/* ---- descriptors of clients ---- */

void posix_fd_release(struct translator *me, struct fd *fd, void *ctx)
{
    struct posix *s = me->state;
    struct pfd *p = ctx;
    struct pnode *n = p->node;
    struct pfile *f = p->file;
    char text[GFID_TEXT_LEN + 1];
    struct stat st;

    if (p->dir)
        closedir(p->dir);
    pfile_unref(p->direct);
    mem_free(p);
    if (--n->open_count > 0 || !n->is_unlinked) {
        pfile_unref(f);
        return;
    }
    /* Nobody can reach it any more. Should the removal fail, the next start empties the directory. */
    (void)unlinkat(s->unlink_fd, gfid_format(&n->gfid, text), 0);
    side_forget(s, &n->gfid, f->ino);
    pnode_drop_file(s, n);
    pfile_close_removed(me, f, fstat(f->fd, &st) < 0 || st.st_size > (1 << 20));
}
