/* storage/posix/attr.c - attributes: stat, setattr, access, readlink, and the client's times (mdata). */
#include "storage/posix/posix_internal.h"
#include <stdio.h>

/* ---- mdata: 57 bytes, docs/on-disk.md "mdata" ---- */

void mdata_encode(const struct mdata_times *m, uint8_t bytes[static MDATA_BYTES])
{
    bytes[0] = 1;
    put_be64(bytes + 1, 0);
    put_be64(bytes + 9, (uint64_t)m->ctime);
    put_be64(bytes + 17, m->ctime_nsec);
    put_be64(bytes + 25, (uint64_t)m->mtime);
    put_be64(bytes + 33, m->mtime_nsec);
    put_be64(bytes + 41, (uint64_t)m->atime);
    put_be64(bytes + 49, m->atime_nsec);
}

int mdata_decode(const void *data, size_t size_bytes, struct mdata_times *ret)
{
    const uint8_t *b = data;
    if (size_bytes != MDATA_BYTES || b[0] != 1)
        return -EINVAL;
    *ret = (struct mdata_times) {
        .ctime = (int64_t)get_be64(b + 9),
        .ctime_nsec = (uint32_t)get_be64(b + 17),
        .mtime = (int64_t)get_be64(b + 25),
        .mtime_nsec = (uint32_t)get_be64(b + 33),
        .atime = (int64_t)get_be64(b + 41),
        .atime_nsec = (uint32_t)get_be64(b + 49),
    };
    return 0;
}

void pnode_load_mdata(struct posix *s, struct pnode *n, const struct xnode *x)
{
    uint8_t bytes[MDATA_BYTES];

    if (n->mdata_known || !s->ctime)
        return;
    ssize_t got = px_get(s, x, XATTR_MDATA, bytes, sizeof bytes);
    if (got < 0 && got != -ENODATA && got != -ERANGE)
        return;
    n->has_mdata = got >= 0 && mdata_decode(bytes, (size_t)got, &n->mdata) == 0;
    n->mdata_known = true;
}

int mdata_store(struct posix *s, struct pnode *n, const struct xnode *x, const struct mdata_times *m)
{
    uint8_t bytes[MDATA_BYTES];
    mdata_encode(m, bytes);
    int r = px_set(s, x, XATTR_MDATA, bytes, sizeof bytes, 0);
    if (r < 0)
        return r;
    n->mdata = *m;
    n->mdata_known = n->has_mdata = true;
    return 0;
}

static void raise_time(int64_t *s, uint32_t *ns, int64_t to_s, uint32_t to_ns)
{
    if (to_s > *s || (to_s == *s && to_ns > *ns)) {
        *s = to_s;
        *ns = to_ns;
    }
}

static void mdata_from_stat(struct mdata_times *m, const struct stat *st)
{
    *m = (struct mdata_times) {
        .atime = st->st_atim.tv_sec,
        .atime_nsec = (uint32_t)st->st_atim.tv_nsec,
        .mtime = st->st_mtim.tv_sec,
        .mtime_nsec = (uint32_t)st->st_mtim.tv_nsec,
        .ctime = st->st_ctim.tv_sec,
        .ctime_nsec = (uint32_t)st->st_ctim.tv_nsec,
    };
}

int mdata_create(struct posix *s, struct pnode *n, const struct xnode *x, const struct call *call)
{
    if (!s->ctime || !(call->time_flags & TIME_CTIME))
        return 0;
    struct mdata_times m = {
        .atime = call->time_s,
        .mtime = call->time_s,
        .ctime = call->time_s,
        .atime_nsec = call->time_ns,
        .mtime_nsec = call->time_ns,
        .ctime_nsec = call->time_ns,
    };
    return mdata_store(s, n, x, &m);
}

static bool same_times(const struct mdata_times *a, const struct mdata_times *b)
{
    return a->ctime == b->ctime && a->mtime == b->mtime && a->atime == b->atime && a->ctime_nsec == b->ctime_nsec &&
           a->mtime_nsec == b->mtime_nsec && a->atime_nsec == b->atime_nsec;
}

static bool is_moment_after(int64_t time_s, int64_t at_s)
{
    return time_s >= at_s && time_s - at_s <= 1;
}

static int mdata_raise(struct posix *s, struct pnode *n, const struct pfile *f, uint32_t flags, int64_t at_s,
                       uint32_t at_ns)
{
    struct xnode x = xnode_of_file(s, f);
    pnode_load_mdata(s, n, &x);
    struct mdata_times m = n->mdata;
    if (!n->has_mdata) {
        struct stat st;
        if (fstat(f->fd, &st) < 0)
            return -errno;
        mdata_from_stat(&m, &st);
        /* What the kernel has stamped a moment ago, for this change, is another time on each brick of a mirror. */
        if (flags & (TIME_CTIME | TIME_MTIME) && is_moment_after(m.ctime, at_s))
            m.ctime = INT64_MIN;
        if (flags & TIME_MTIME && is_moment_after(m.mtime, at_s))
            m.mtime = INT64_MIN;
    }
    if (flags & (TIME_CTIME | TIME_MTIME)) /* content does not change without the inode */
        raise_time(&m.ctime, &m.ctime_nsec, at_s, at_ns);
    if (flags & TIME_MTIME)
        raise_time(&m.mtime, &m.mtime_nsec, at_s, at_ns);
    if (flags & TIME_ATIME)
        raise_time(&m.atime, &m.atime_nsec, at_s, at_ns);
    if (n->has_mdata && same_times(&m, &n->mdata))
        return 0;
    int r = mdata_store(s, n, &x, &m);
    if (r != -ENOSPC && r != -EDQUOT)
        return r;
    /* The change itself is made, perhaps one that makes room: it is not failed for its time stamp. */
    n->mdata = m;
    n->mdata_known = n->has_mdata = true;
    return 0;
}

int mdata_stamp(struct posix *s, struct pnode *n, const struct pfile *f, const struct call *call, bool is_parent)
{
    uint32_t flags = is_parent ? call->time_flags >> 3 : call->time_flags & 7;
    return s->ctime && flags ? mdata_raise(s, n, f, flags, call->time_s, call->time_ns) : 0;
}

int mdata_stamp_content(struct posix *s, struct pnode *n, const struct pfile *f, const struct call *call,
                        const struct stat *post)
{
    if (call->time_flags || !s->ctime || !n->has_mdata || call->pid < 0)
        return mdata_stamp(s, n, f, call, false);
    return mdata_raise(s, n, f, TIME_MTIME, post->st_mtim.tv_sec, (uint32_t)post->st_mtim.tv_nsec);
}

/* ---- iatts ---- */

/* Blocks as GlusterFS shows them: those the size needs, so that replicas agree whatever their file systems do with ends
 * of files and with xattrs (at most a block each). Fewer (holes) or many more (preallocation) are shown as they are. */
static uint64_t shown_blocks(const struct stat *st)
{
    uint64_t unit = st->st_blksize > 0 ? (uint64_t)st->st_blksize / 512 : 8;
    uint64_t needed = ((uint64_t)st->st_size + 511) / 512, have = (uint64_t)st->st_blocks;
    return have > needed && have <= needed + 2 * unit ? needed : have;
}

void posix_iatt(struct posix *s, struct pnode *n, const struct gfid *g, const struct stat *st, struct iatt *ret)
{
    iatt_from_stat(ret, st);
    ret->gfid = *g;
    ret->ino = gfid_to_ino(g);
    ret->blocks = shown_blocks(st);
    if (!S_ISDIR(st->st_mode) && ret->nlink > 0)
        ret->nlink--; /* the handle is not one of the user's names */
    if (!s->ctime || !n || !n->has_mdata)
        return;
    ret->atime = n->mdata.atime;
    ret->mtime = n->mdata.mtime;
    ret->ctime = n->mdata.ctime;
    ret->atime_nsec = n->mdata.atime_nsec;
    ret->mtime_nsec = n->mdata.mtime_nsec;
    ret->ctime_nsec = n->mdata.ctime_nsec;
}

int pfile_iatt(struct posix *s, struct pnode *n, const struct pfile *f, struct iatt *ret)
{
    struct stat st;
    if (fstat(f->fd, &st) < 0)
        return -errno;
    struct xnode x = xnode_of_file(s, f);
    pnode_load_mdata(s, n, &x);
    posix_iatt(s, n, &n->gfid, &st, ret);
    return 0;
}

/* ---- operations ---- */

FIBER int posix_stat(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct posix *s = me->state;
    SCOPED(pfile_unref) struct pfile *f = NULL;
    int e = pnode_of_request(me, q, &f);
    if (e < 0)
        return e;
    struct pnode *n = pnode_of(me, q->inode);
    if (!n)
        return -ENOMEM;
    e = pfile_iatt(s, n, f, &r->stat);
    if (e < 0 || !q->xdata)
        return e;
    struct stat st;
    if (fstat(f->fd, &st) < 0)
        return -errno;
    struct xnode x = xnode_of_file(s, f);
    return posix_answer(me, call, n, &x, &st, q->xdata, &r->xdata);
}

FIBER int posix_access(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    SCOPED(pfile_unref) struct pfile *f = NULL;
    int e = pnode_file(me, q->inode, &f);
    if (e < 0)
        return e;
    /* Permissions of users are features/access-control's business; what remains is what nobody may do. */
    struct stat st;
    if (fstat(f->fd, &st) < 0)
        return -errno;
    if ((q->flags & X_OK) && S_ISREG(st.st_mode) && !(st.st_mode & 0111))
        return -EACCES;
    return 0;
}

FIBER int posix_readlink(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct posix *s = me->state;
    SCOPED(pfile_unref) struct pfile *f = NULL;
    int e = pnode_file(me, q->inode, &f);
    if (e < 0)
        return e;
    if (f->type != S_IFLNK)
        return -EINVAL;
    struct pnode *n = pnode_of(me, q->inode);
    if (!n)
        return -ENOMEM;
    ssize_t len = readlinkat(f->fd, "", s->path, PATH_MAX - 1);
    if (len < 0)
        return -errno;
    if (q->size && (uint64_t)len > q->size)
        len = (ssize_t)q->size;
    s->path[len] = '\0';
    SCOPED_FREE char *text = mem_strndup(s->path, (size_t)len);
    if (!text)
        return -ENOMEM;
    e = mdata_stamp(s, n, f, call, false);
    if (e == 0)
        e = pfile_iatt(s, n, f, &r->stat);
    if (e < 0)
        return e;
    r->text = take(text);
    return (int)len;
}

static struct timespec wanted_time(uint32_t valid, uint32_t set, uint32_t now, int64_t at_s, uint32_t at_ns)
{
    if (!(valid & set))
        return (struct timespec) { .tv_nsec = UTIME_OMIT };
    if ((valid & now) && at_s == 0 && at_ns == 0)
        return (struct timespec) { .tv_nsec = UTIME_NOW };
    return (struct timespec) { .tv_sec = at_s, .tv_nsec = at_ns };
}

/* Path of the object for calls that take no O_PATH descriptor. */
static int set_owner(struct pfile *f, const struct iatt *a, uint32_t valid)
{
    uid_t uid = valid & ATTR_UID ? a->uid : (uid_t)-1;
    gid_t gid = valid & ATTR_GID ? a->gid : (gid_t)-1;
    return fchownat(f->fd, "", uid, gid, AT_EMPTY_PATH) < 0 ? -errno : 0;
}

static int set_mode(struct posix *s, struct pfile *f, uint32_t mode)
{
    if (f->type == S_IFLNK)
        return -EOPNOTSUPP;
    if (!f->is_path)
        return fchmod(f->fd, mode & 07777) < 0 ? -errno : 0;
    snprintf(s->path, PATH_MAX, "/proc/self/fd/%d", f->fd);
    return chmod(s->path, mode & 07777) < 0 ? -errno : 0;
}

static int set_times(struct posix *s, struct pfile *f, const struct iatt *a, uint32_t valid)
{
    struct timespec t[2] = {
        wanted_time(valid, ATTR_ATIME, ATTR_ATIME_NOW, a->atime, a->atime_nsec),
        wanted_time(valid, ATTR_MTIME, ATTR_MTIME_NOW, a->mtime, a->mtime_nsec),
    };
    if (!f->is_path)
        return futimens(f->fd, t) < 0 ? -errno : 0;
    char handle[HANDLE_REL_LEN + 1];
    struct pnode *n = pnode_by_ino(s, f->ino);
    if (n && utimensat(s->gfs_fd, handle_rel(&n->gfid, handle), t, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    snprintf(s->path, PATH_MAX, "/proc/self/fd/%d", f->fd);
    return utimensat(AT_FDCWD, s->path, t, 0) < 0 ? -errno : 0;
}

/* Explicit times are stored as they are, also backwards; ctime follows the call's clock. */
static int set_mdata_times(struct posix *s, struct pnode *n, struct pfile *f, const struct call *call,
                           const struct iatt *a, uint32_t valid)
{
    struct stat st;
    if (!s->ctime || (!n->has_mdata && !call->time_flags))
        return 0;
    if (fstat(f->fd, &st) < 0)
        return -errno;
    struct mdata_times m = n->mdata;
    if (!n->has_mdata)
        mdata_from_stat(&m, &st);
    if (valid & ATTR_ATIME) {
        m.atime = st.st_atim.tv_sec;
        m.atime_nsec = (uint32_t)st.st_atim.tv_nsec;
    }
    if (valid & ATTR_MTIME) {
        m.mtime = st.st_mtim.tv_sec;
        m.mtime_nsec = (uint32_t)st.st_mtim.tv_nsec;
    }
    if (valid & ATTR_CTIME) { /* heal: the source's ctime */
        m.ctime = a->ctime;
        m.ctime_nsec = a->ctime_nsec;
    } else if (call->time_flags) {
        raise_time(&m.ctime, &m.ctime_nsec, call->time_s, call->time_ns);
    } else {
        raise_time(&m.ctime, &m.ctime_nsec, st.st_ctim.tv_sec, (uint32_t)st.st_ctim.tv_nsec);
    }
    struct xnode x = xnode_of_file(s, f);
    return mdata_store(s, n, &x, &m);
}

static int apply_attrs(struct posix *s, struct pnode *n, struct pfile *f, const struct call *call,
                       const struct request *q)
{
    int e = 0;
    /* chown first: it clears setuid and setgid, which the mode may then set. */
    if (q->valid & (ATTR_UID | ATTR_GID)) {
        STEP(s);
        e = set_owner(f, q->attr, q->valid);
    }
    if (e == 0 && (q->valid & ATTR_MODE)) {
        STEP(s);
        e = set_mode(s, f, q->attr->mode);
    }
    if (e == 0 && (q->valid & ATTR_SIZE)) {
        STEP(s);
        e = ftruncate(f->fd, (off_t)q->attr->size) < 0 ? -errno : 0;
    }
    bool has_times = q->valid & (ATTR_ATIME | ATTR_MTIME | ATTR_CTIME);
    if (e == 0 && (q->valid & (ATTR_ATIME | ATTR_MTIME))) {
        STEP(s);
        e = set_times(s, f, q->attr, q->valid);
    }
    if (e == 0 && !has_times && !(q->valid & (ATTR_UID | ATTR_GID | ATTR_MODE | ATTR_SIZE)) && !f->is_path)
        e = fchown(f->fd, (uid_t)-1, (gid_t)-1) < 0 ? -errno : 0; /* nothing asked: only the ctime moves */
    if (e < 0)
        return e;
    return has_times ? set_mdata_times(s, n, f, call, q->attr, q->valid) : mdata_stamp(s, n, f, call, false);
}

static int setattr_now(struct posix *s, struct pnode *n, struct pfile *f, const struct call *call,
                       const struct request *q, struct reply *r)
{
    struct iatt pre, post;
    int e = pfile_iatt(s, n, f, &pre);
    if (e == 0)
        e = apply_attrs(s, n, f, call, q);
    if (e == 0)
        e = pfile_iatt(s, n, f, &post);
    if (e < 0)
        return e;
    r->pre = pre;
    r->post = post;
    return 0;
}

FIBER int posix_setattr(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    SCOPED(pfile_unref) struct pfile *f = NULL;
    int e = pnode_of_request(me, q, &f);
    if (e < 0)
        return e;
    struct pnode *n = pnode_of(me, q->inode);
    if (!n)
        return -ENOMEM;
    if (!(q->valid & ATTR_SIZE))
        return setattr_now(me->state, n, f, call, q, r);
    e = fiber_mutex_lock(&n->busy, &call->scope);
    if (e < 0)
        return e;
    e = setattr_now(me->state, n, f, call, q, r);
    fiber_mutex_unlock(&n->busy);
    return e;
}
