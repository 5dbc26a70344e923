/* storage/posix/dir.c - opendir, readdir, readdirp. Cookies are the file system's own d_off. */
#include "storage/posix/posix_internal.h"
#include <sys/syscall.h>

#define DENTS_BYTES      32768
#define QUICK_NS         1000000       /* a job that took less did not wait for the disk */
#define HOT_NS           1000000000ull /* how long the directory then counts as being in memory */
#define ENTRY_BYTES      32            /* of a readdir entry in a message, besides the name */
#define ENTRY_STAT_BYTES 224           /* of a readdirp entry */

FIBER int posix_opendir(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct posix *s = me->state;
    SCOPED(pfile_unref) struct pfile *f = NULL;
    void **slot = fd_ctx(q->fd, me);

    int e = pnode_dir(me, q->inode, &f);
    if (e < 0)
        return e;
    struct pnode *n = pnode_of(me, q->inode);
    e = mdata_stamp(s, n, f, call, false);
    if (e < 0 || *slot)
        return e;
    /* A description of its own: the position is moved by reading. */
    int fd = openat(f->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat st;
    if (fd < 0)
        return -errno;
    struct pfd *p = fstat(fd, &st) == 0 ? NEW(struct pfd) : NULL;
    if (!p) {
        close(fd);
        return -ENOMEM;
    }
    p->file = pfile_new(fd, false, &st);
    if (!p->file) {
        mem_free(p);
        return -ENOMEM;
    }
    p->node = n;
    p->skip_directories = dict_has(q->xdata, "readdir-filter-directories");
    n->open_count++;
    *slot = p;
    return 0;
}

/* ---- reading the kernel's entries ---- */

struct kernel_entry { /* linux_dirent64 */
    uint64_t ino;
    int64_t off;
    uint16_t reclen;
    uint8_t type;
    char name[];
};

struct dents_job {
    int fd;
    uint64_t offset;
    uint8_t *bytes;
    bool with_stat;
    ssize_t n;
};

static void dents_on_pool(void *arg)
{
    struct dents_job *j = arg;
    if (lseek(j->fd, (off_t)j->offset, SEEK_SET) < 0) {
        j->n = -errno;
        return;
    }
    j->n = syscall(SYS_getdents64, j->fd, j->bytes, DENTS_BYTES);
    if (j->n < 0)
        j->n = -errno;
    /* What readdirp asks next is brought into memory here, so that the loop need not wait for the disk. */
    for (ssize_t at = 0; j->with_stat && at < j->n;) {
        struct kernel_entry *k = (void *)(j->bytes + at);
        struct stat st;
        (void)fstatat(j->fd, k->name, &st, AT_SYMLINK_NOFOLLOW); /* only to have it read */
        at += k->reclen;
    }
}

struct listing {
    struct translator *me;
    struct call *call;
    const struct request *q;
    struct pfile *dir;
    struct pnode *node;
    bool with_stat, is_root, skip_directories;
    struct dir_entries *out;
    uint64_t left; /* of the budget */
    bool is_full;
};

/* Of an entry whose inode may not be known: everything by path, nothing is opened. */
static int entry_details(struct listing *l, const struct kernel_entry *k, struct dir_entry *e)
{
    struct posix *s = l->me->state;
    struct stat st;
    struct pnode fresh = { 0 }, *n;
    struct gfid g;

    if (fstatat(l->dir->fd, k->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0; /* gone meanwhile: the client finds out */
    n = pnode_by_ino(s, st.st_ino);
    struct xnode x = n ? xnode_of_file(s, n->file) : xnode_of_entry(s, l->dir, k->name, &st);
    if (n)
        g = n->gfid;
    else if (px_get_gfid(s, &x, &g) < 0)
        return 0;
    if (!n)
        n = pnode_find(l->me, &g);
    if (!n)
        n = &fresh;
    pnode_load_mdata(s, n, &x);
    posix_iatt(s, n, &g, &st, &e->stat);
    e->ino = e->stat.ino;
    int r = l->q->xattrs ? posix_answer(l->me, l->call, n, &x, &st, l->q->xattrs, &e->xattrs) : 0;
    return r;
}

static int add_entry(struct listing *l, const struct kernel_entry *k)
{
    struct posix *s = l->me->state;
    size_t len = strlen(k->name);
    bool dots = is_dot(k->name);

    if (l->is_root && !dots && strcmp(k->name, PRIVATE_DIR) == 0)
        return 0;
    if (l->skip_directories && !dots && k->type == DT_DIR)
        return 0;
    uint64_t cost = (l->with_stat ? ENTRY_STAT_BYTES : ENTRY_BYTES) + len;
    if (cost > l->left) {
        l->is_full = true;
        return 0;
    }
    l->left -= cost;
    struct dir_entry *e;
    uint64_t ino = k->ino;
    struct pnode *known = dots ? NULL : pnode_by_ino(s, k->ino);
    if (known)
        ino = gfid_to_ino(&known->gfid);
    int r = dir_entries_add(l->out, k->name, len, ino, (uint64_t)k->off, k->type, &e);
    if (r < 0 || !l->with_stat)
        return r;
    if (!dots)
        return entry_details(l, k, e);
    if (k->name[1] == '\0') {
        r = pfile_iatt(s, l->node, l->dir, &e->stat);
        e->ino = e->stat.ino;
    }
    return r;
}

static int add_entries(struct listing *l, const struct dents_job *j)
{
    for (ssize_t at = 0; at < j->n && !l->is_full;) {
        const struct kernel_entry *k = (const void *)(j->bytes + at);
        int r = add_entry(l, k);
        if (r < 0)
            return r;
        at += k->reclen;
    }
    return 0;
}

/* On the loop while the directory is warm; the first time through the pool, which makes it so. The position of the
 * descriptor is in use meanwhile, so the node is held. */
static FIBER int read_dents(struct translator *me, struct call *call, struct pnode *n, struct dents_job *j)
{
    struct posix *s = me->state;
    uint64_t now = env_now_ns(me->env);
    if (n->hot_until_ns > now && !n->busy.is_held) {
        bool with_stat = j->with_stat;
        j->with_stat = false;
        dents_on_pool(j); /* the same work, here */
        j->with_stat = with_stat;
        return (int)j->n;
    }
    int e = fiber_mutex_lock(&n->busy, &call->scope);
    if (e < 0)
        return e;
    s->pool_ops++;
    env_pool_run(me->env, dents_on_pool, j);
    fiber_mutex_unlock(&n->busy);
    uint64_t done = env_now_ns(me->env);
    if (done - now < QUICK_NS)
        n->hot_until_ns = done + HOT_NS;
    return (int)j->n;
}

static FIBER int list(struct translator *me, struct call *call, const struct request *q, struct reply *r,
                      bool with_stat)
{
    SCOPED(pfile_unref) struct pfile *own = NULL;
    struct pfd *p = pfd_of(me, q->fd);
    struct pnode *n = pnode_of(me, q->inode);
    struct stat st;
    if (!n)
        return -ENOMEM;
    if (p) {
        own = pfile_ref(p->file);
    } else {
        SCOPED(pfile_unref) struct pfile *cached = NULL;
        int e = pnode_dir(me, q->inode, &cached);
        if (e < 0)
            return e;
        int fd = openat(cached->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0)
            return -errno;
        own = pfile_new(fd, false, &st);
        if (!own)
            return -ENOMEM;
    }
    if (own->type != S_IFDIR)
        return -ENOTDIR;
    SCOPED_FREE uint8_t *bytes = mem_alloc(DENTS_BYTES);
    struct listing l = { .me = me,
                         .call = call,
                         .q = q,
                         .dir = own,
                         .node = n,
                         .with_stat = with_stat,
                         .is_root = gfid_is_root(&q->inode->gfid),
                         .left = q->size,
                         .out = dir_entries_new(),
                         .skip_directories =
                             (p && p->skip_directories) || dict_has(q->xdata, "readdir-filter-directories") };
    int e = bytes && l.out ? 0 : -ENOMEM;
    struct dents_job j = { .fd = own->fd, .offset = q->offset, .bytes = bytes, .with_stat = with_stat };
    while (e == 0 && !l.is_full) {
        int got = read_dents(me, call, n, &j);
        e = got < 0 ? got : 0;
        if (got <= 0)
            break;
        const struct kernel_entry *last = NULL;
        for (ssize_t at = 0; at < j.n; at += last->reclen)
            last = (const void *)(bytes + at);
        e = add_entries(&l, &j);
        j.offset = (uint64_t)last->off;
    }
    if (e == 0 && l.is_full && l.out->count == 0)
        e = -EINVAL; /* not even one entry fits the caller's budget */
    if (e < 0) {
        dir_entries_free(l.out);
        return e;
    }
    l.out->at_end = !l.is_full;
    r->entries = l.out;
    return (int)l.out->count;
}

FIBER int posix_readdir(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    return list(me, call, q, r, false);
}

FIBER int posix_readdirp(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    return list(me, call, q, r, true);
}
