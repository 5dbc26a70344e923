/* storage/posix/entry_new.c - create, mknod, symlink, mkdir and link. The order of the steps is that of docs/on-disk.md
 * "creating": an entry without gfid or without handle is what a crash leaves, and what the next look-up repairs. */
#include "storage/posix/posix_internal.h"
#include <stdio.h>
#include <sys/xattr.h>

#define NEW_ENTRY_BYTES PAGE_BYTES /* what one more entry may cost, for the disk reserve */

struct birth {
    struct translator *me;
    struct call *call;
    const struct request *q;
    struct pfile *dir;
    struct pnode *dir_node;
    struct pnode *node; /* of the new inode */
    struct pfile *file; /* once it exists */
    struct stat dir_st;
    struct iatt pre;
    uint32_t mode; /* with masks applied */
    bool exists;   /* the name is made: undo means unlinking it */
    bool linked;   /* the name is one more link to an inode that was there */
};

/* ---- checks ---- */

/* glusterfs.preop.parent.key: the parent's layout must be the one the client knows. */
static int check_parent_xattr(struct birth *b, struct dict **ret_xdata)
{
    struct posix *s = b->me->state;
    const char *name;
    const void *want;
    size_t want_bytes;

    if (dict_get_str(b->q->xdata, "glusterfs.preop.parent.key", &name) < 0)
        return 0;
    if (dict_get_bin(b->q->xdata, name, &want, &want_bytes) < 0)
        return 0;
    struct xnode x = xnode_of_file(s, b->dir);
    ssize_t n = px_get(s, &x, name, s->value, XATTR_BYTES_MAX);
    if (n < 0)
        return (int)n;
    if ((size_t)n == want_bytes && memcmp(s->value, want, want_bytes) == 0)
        return 0;
    (void)dict_put_uint(ret_xdata, "glusterfs.preop.check.failed", 1); /* without it the client sees a plain EIO */
    return -EIO;
}

static uint32_t masked_mode(struct birth *b, uint32_t mode, bool is_dir)
{
    struct posix *s = b->me->state;
    uint32_t umask_bits = b->q->umask & 0777;

    /* With a default ACL the kernel masks by it; without one, by the umask of the application. */
    if ((mode & umask_bits) && fgetxattr(b->dir->fd, "system.posix_acl_default", NULL, 0) < 0)
        mode &= ~umask_bits;
    if (is_dir)
        return (mode & (s->create_directory_mask | ~0777u)) | s->force_directory_mode;
    return (mode & (s->create_mask | ~0777u)) | s->force_create_mode;
}

static FIBER int birth_start(struct birth *b, struct inode *parent, const char *name)
{
    struct posix *s = b->me->state;

    if (!posix_name_is_valid(name) || posix_name_is_private(parent, name))
        return -EPERM;
    if (is_dot(name))
        return -EEXIST;
    if (strlen(name) > NAME_MAX)
        return -ENAMETOOLONG;
    if (gfid_is_null(&b->q->inode->gfid))
        return -EPERM;
    int e = posix_room_check(s, b->call, b->q->xdata, NEW_ENTRY_BYTES);
    if (e == 0)
        e = pnode_dir(b->me, parent, &b->dir);
    if (e != 0)
        return e;
    b->dir_node = pnode_of(b->me, parent);
    b->node = pnode_of(b->me, b->q->inode);
    if (!b->dir_node || !b->node)
        return -ENOMEM;
    if (fstat(b->dir->fd, &b->dir_st) < 0)
        return -errno;
    struct xnode x = xnode_of_file(s, b->dir);
    pnode_load_mdata(s, b->dir_node, &x);
    posix_iatt(s, b->dir_node, &b->dir_node->gfid, &b->dir_st, &b->pre);
    return 0;
}

/* ---- steps ---- */

static int give_owner(struct birth *b)
{
    struct posix *s = b->me->state;
    bool inherits = b->dir_st.st_mode & S_ISGID;
    uint32_t gid = inherits ? b->dir_st.st_gid : b->call->gid;

    if (b->call->uid == s->uid && (inherits || gid == s->gid))
        return 0;
    STEP(s);
    return fchownat(b->file->fd, "", b->call->uid, inherits ? (gid_t)-1 : gid, AT_EMPTY_PATH) < 0 ? -errno : 0;
}

/* chown clears these bits, and mkdir ignores them. */
static int give_special_bits(struct birth *b)
{
    uint32_t keep = b->dir_st.st_mode & S_ISGID;
    if (b->file->is_path || !(b->mode & (S_ISUID | S_ISGID)))
        return 0;
    if (b->file->type != S_IFDIR)
        keep = 0;
    return fchmod(b->file->fd, (b->mode & 07777) | keep) < 0 ? -errno : 0;
}

static bool is_stored_key(const struct birth *b, const char *key, const struct dict_value *v, const char *checked)
{
    if (v->type != DICT_BIN && v->type != DICT_OLD && v->type != DICT_STR)
        return false; /* numbers under the name of an xattr are questions */
    if (checked && strcmp(key, checked) == 0)
        return false;
    if (posix_xattr_is_protected(key))
        return false;
    return strncmp(key, "trusted.", 8) == 0 || strncmp(key, "user.", 5) == 0 || strncmp(key, "security.", 9) == 0 ||
           strncmp(key, "system.posix_acl_", 17) == 0;
}

static int set_given_xattrs(struct birth *b, const struct xnode *x, bool *ret_has_mdata)
{
    struct posix *s = b->me->state;
    const char *key, *checked = NULL;
    const struct dict_value *v;
    size_t at = 0;

    *ret_has_mdata = false;
    if (!b->q->xdata)
        return 0;
    if (dict_get_str(b->q->xdata, "glusterfs.preop.parent.key", &checked) < 0)
        checked = NULL;
    while (dict_next(b->q->xdata, &at, &key, &v)) {
        if (!is_stored_key(b, key, v, checked))
            continue;
        STEP(s);
        /* Text values are kept with their NUL. */
        size_t bytes = v->size_bytes + (v->type == DICT_STR ? 1 : 0);
        bool is_acl = strncmp(key, "system.", 7) == 0; /* may be there already, inherited */
        int e = px_set(s, x, key, v->bytes, bytes, is_acl ? 0 : XATTR_CREATE);
        if (e < 0)
            return e;
        if (strcmp(key, XATTR_MDATA) == 0) {
            *ret_has_mdata = true;
            b->node->mdata_known = b->node->has_mdata = false;
        }
    }
    return 0;
}

/* Steps 6 to 9 of "creating". */
static int name_inode(struct birth *b)
{
    struct posix *s = b->me->state;
    const struct request *q = b->q;
    bool is_dir = b->file->type == S_IFDIR, has_mdata;
    struct xnode x = xnode_of_file(s, b->file);
    int e = 0;

    if (!is_dir) {
        STEP(s);
        e = pgfid_add(s, &x, &q->parent->gfid, 1);
        if (e == 0)
            e = gfid2path_set(s, &x, &q->parent->gfid, q->name);
    }
    if (e == 0)
        e = set_given_xattrs(b, &x, &has_mdata);
    if (e == 0 && !has_mdata) {
        STEP(s);
        e = mdata_create(s, b->node, &x, b->call);
    }
    if (e < 0)
        return e;
    STEP(s);
    e = px_set(s, &x, XATTR_GFID, q->inode->gfid.bytes, 16, XATTR_CREATE);
    if (e < 0)
        return e;
    STEP(s);
    return handle_make(s, &q->inode->gfid, b->dir, &q->parent->gfid, q->name, is_dir);
}

static int birth_reply(struct birth *b, struct reply *r)
{
    struct posix *s = b->me->state;
    struct iatt stat, post;

    b->node->has_handle = true;
    pnode_set_file(s, b->node, b->file);
    int e = mdata_stamp(s, b->dir_node, b->dir, b->call, true);
    if (e == 0)
        e = pfile_iatt(s, b->node, b->file, &stat);
    if (e == 0)
        e = pfile_iatt(s, b->dir_node, b->dir, &post);
    if (e < 0)
        return e;
    r->stat = stat;
    r->pre = b->pre;
    r->post = post;
    return 0;
}

static void birth_undo(struct birth *b)
{
    struct posix *s = b->me->state;
    const struct gfid *g = &b->q->inode->gfid;
    char text[DIR_LINK_MAX], rel[HANDLE_REL_LEN + 1];
    struct stat st;

    if (!b->exists || s->crashed)
        return;
    bool is_dir = b->file && b->file->type == S_IFDIR;
    if (b->file && !b->linked) {
        /* Only a handle that is ours: the gfid may belong to another inode, which is why we are here. */
        bool ours = fstatat(s->gfs_fd, handle_rel(g, rel), &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_ino == b->file->ino;
        if (is_dir) {
            char want[DIR_LINK_MAX];
            handle_dir_text(&b->q->parent->gfid, b->q->name, want);
            ours = handle_read_dir(s, g, text) == 0 && strcmp(text, want) == 0;
        }
        if (ours)
            (void)handle_remove(s, g);
        side_forget(s, g, b->file->ino);
    }
    /* What cannot be undone is an entry that the next look-up repairs. */
    (void)unlinkat(b->dir->fd, b->q->name, is_dir ? AT_REMOVEDIR : 0);
    pnode_drop_file(s, b->node);
    b->node->has_handle = b->node->mdata_known = b->node->has_mdata = false;
}

static void birth_done(struct birth *b)
{
    pfile_unref(b->dir);
    pfile_unref(b->file);
}

/* After the name was made: fd is its descriptor (O_PATH if is_path) or -errno. */
static int birth_opened(struct birth *b, int fd, bool is_path)
{
    struct stat st;
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0) {
        int e = -errno;
        close(fd);
        return e;
    }
    b->file = pfile_new(fd, is_path, &st);
    return b->file ? 0 : -ENOMEM;
}

static int birth_finish(struct birth *b, struct reply *r)
{
    int e = give_owner(b);
    if (e == 0)
        e = give_special_bits(b);
    if (e == 0)
        e = name_inode(b);
    if (e == 0)
        e = birth_reply(b, r);
    if (e < 0)
        birth_undo(b);
    return e;
}

static int open_or_errno(int dir_fd, const char *name, int flags, uint32_t mode)
{
    int fd = openat(dir_fd, name, flags | O_NOFOLLOW | O_CLOEXEC, mode);
    return fd < 0 ? -errno : fd;
}

static int make_file(struct birth *b)
{
    STEP((struct posix *)b->me->state);
    int fd = open_or_errno(b->dir->fd, b->q->name, O_RDWR | O_CREAT | O_EXCL, b->mode & 07777);
    if (fd < 0)
        return fd;
    b->exists = true;
    return birth_opened(b, fd, false);
}

/* ---- mknod ---- */

/* An internal client (heal, linkto) makes a name for a gfid that is here already: one more link to that inode. */
static FIBER int link_existing(struct birth *b)
{
    struct posix *s = b->me->state;
    char rel[HANDLE_REL_LEN + 1];

    if (!dict_has(b->q->xdata, "glusterfs-internal-fop"))
        return -ENOENT;
    int e = pnode_file(b->me, b->q->inode, &b->file);
    if (e < 0)
        return -ENOENT;
    if (b->file->type == S_IFDIR)
        return -EISDIR;
    STEP(s);
    int from = b->node->is_unlinked ? s->unlink_fd : s->gfs_fd;
    handle_rel(&b->q->inode->gfid, rel);
    if (linkat(from, b->node->is_unlinked ? rel + 6 : rel, b->dir->fd, b->q->name, 0) < 0)
        return -errno;
    b->exists = b->linked = true;
    if (b->node->is_unlinked) {
        /* It has a name again, so it gets its handle back. */
        if (renameat(s->unlink_fd, rel + 6, s->gfs_fd, rel) == 0)
            b->node->is_unlinked = false;
    }
    struct xnode x = xnode_of_file(s, b->file);
    e = pgfid_add(s, &x, &b->q->parent->gfid, 1);
    return e < 0 ? e : gfid2path_set(s, &x, &b->q->parent->gfid, b->q->name);
}

static int make_node(struct birth *b)
{
    struct posix *s = b->me->state;
    if (S_ISREG(b->mode) || !(b->mode & S_IFMT))
        return make_file(b);
    STEP(s);
    if (mknodat(b->dir->fd, b->q->name, b->mode, (dev_t)b->q->rdev) < 0)
        return -errno;
    b->exists = true;
    return birth_opened(b, open_or_errno(b->dir->fd, b->q->name, O_PATH, 0), true);
}

/* DHT: the name is taken by a pointer file that leads nowhere any more. */
static int remove_stale_linkto(struct birth *b)
{
    struct posix *s = b->me->state;
    struct stat st;
    struct gfid g;

    if (!dict_has(b->q->xdata, "force-replace"))
        return -EEXIST;
    if (fstatat(b->dir->fd, b->q->name, &st, AT_SYMLINK_NOFOLLOW) < 0 || (st.st_mode & ~S_IFMT) != S_ISVTX ||
        !S_ISREG(st.st_mode))
        return -EEXIST;
    struct xnode x = xnode_of_entry(s, b->dir, b->q->name, &st);
    if (px_get(s, &x, XATTR_LINKTO, s->value, XATTR_BYTES_MAX) < 0)
        return -EEXIST;
    if (px_get_gfid(s, &x, &g) == 0) {
        struct pnode *n = pnode_find(b->me, &g);
        if (n)
            pnode_drop_file(s, n);
        if (st.st_nlink <= 2)
            (void)handle_remove(s, &g); /* the name goes next; a handle alone is removed by look-up */
    }
    STEP(s);
    return unlinkat(b->dir->fd, b->q->name, 0) < 0 ? -errno : 0;
}

FIBER int posix_mknod(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct birth b = { .me = me, .call = call, .q = q };
    int e = birth_start(&b, q->parent, q->name);
    if (e == 0)
        e = check_parent_xattr(&b, &r->xdata);
    if (e == 0) {
        b.mode = masked_mode(&b, q->mode, false);
        e = link_existing(&b);
        if (e == 0) {
            e = birth_reply(&b, r);
        } else if (e == -ENOENT && !b.exists) {
            e = make_node(&b);
            if (e == -EEXIST && !b.exists && remove_stale_linkto(&b) == 0)
                e = make_node(&b);
            e = e == 0 ? birth_finish(&b, r) : e;
        }
        if (e < 0 && !b.file)
            birth_undo(&b);
    }
    birth_done(&b);
    return e;
}

/* ---- symlink, mkdir ---- */

FIBER int posix_symlink(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct posix *s = me->state;
    struct birth b = { .me = me, .call = call, .q = q };
    int e = birth_start(&b, q->parent, q->name);
    if (e == 0 && !posix_step(s))
        e = -ESHUTDOWN;
    if (e == 0) {
        e = symlinkat(q->text, b.dir->fd, q->name) < 0 ? -errno : 0;
        if (e == 0) {
            b.exists = true;
            e = birth_opened(&b, open_or_errno(b.dir->fd, q->name, O_PATH, 0), true);
            if (e < 0)
                birth_undo(&b);
            else
                e = birth_finish(&b, r);
        }
    }
    birth_done(&b);
    return e;
}

FIBER int posix_mkdir(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct posix *s = me->state;
    struct birth b = { .me = me, .call = call, .q = q };
    int e = birth_start(&b, q->parent, q->name);
    if (e == 0)
        e = check_parent_xattr(&b, &r->xdata);
    if (e == 0 && !posix_step(s))
        e = -ESHUTDOWN;
    if (e == 0) {
        b.mode = masked_mode(&b, q->mode, true);
        e = mkdirat(b.dir->fd, q->name, b.mode & 07777) < 0 ? -errno : 0;
        if (e == 0) {
            b.exists = true;
            e = birth_opened(&b, open_or_errno(b.dir->fd, q->name, O_RDONLY | O_DIRECTORY, 0), false);
            if (e < 0)
                (void)unlinkat(b.dir->fd, q->name, AT_REMOVEDIR); /* else the next look-up gives it a gfid */
            else
                e = birth_finish(&b, r);
        }
        if (e == 0)
            b.node->hot_until_ns = env_now_ns(me->env) + 5000000000ull; /* new: all of it is in memory */
    }
    birth_done(&b);
    return e;
}

/* ---- create ---- */

static FIBER int open_fd(struct birth *b)
{
    void **slot = fd_ctx(b->q->fd, b->me);
    struct pfd *p = *slot ? NULL : NEW(struct pfd);
    if (!p)
        return *slot ? 0 : -ENOMEM;
    p->file = pfile_ref(b->file);
    p->node = b->node;
    b->node->open_count++;
    *slot = p;
    return 0;
}

/* The name is there. Opening it is right only if it is the inode the caller means; otherwise the caller looks it up,
 * finds out its gfid, and opens that. */
static FIBER int create_existing(struct birth *b, struct reply *r)
{
    struct posix *s = b->me->state;
    struct stat st;
    struct gfid g;

    if (b->q->flags & O_EXCL)
        return -EEXIST;
    if (fstatat(b->dir->fd, b->q->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return S_ISDIR(st.st_mode) ? -EISDIR : -EEXIST;
    int e = pentry_open(s, b->dir, b->q->name, &st, &b->file);
    if (e < 0)
        return e;
    struct xnode x = xnode_of_file(s, b->file);
    if (px_get_gfid(s, &x, &g) < 0 || !gfid_equal(&g, &b->q->inode->gfid))
        return -EEXIST;
    if ((b->q->flags & O_TRUNC) && ftruncate(b->file->fd, 0) < 0)
        return -errno;
    e = birth_reply(b, r);
    return e < 0 ? e : open_fd(b);
}

FIBER int posix_create(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct birth b = { .me = me, .call = call, .q = q };
    int e = birth_start(&b, q->parent, q->name);
    if (e == 0)
        e = check_parent_xattr(&b, &r->xdata);
    if (e == 0) {
        b.mode = masked_mode(&b, q->mode, false);
        e = make_file(&b);
        if (e == -EEXIST && !b.exists) {
            e = create_existing(&b, r);
        } else if (e == 0) {
            e = birth_finish(&b, r);
            if (e == 0)
                e = open_fd(&b);
        } else {
            birth_undo(&b);
        }
    }
    birth_done(&b);
    return e;
}

/* ---- link ---- */

static int link_step(struct birth *b, struct stat *st)
{
    struct posix *s = b->me->state;
    const struct request *q = b->q;
    char rel[HANDLE_REL_LEN + 1];

    if (b->file->type == S_IFDIR)
        return -EPERM;
    if (b->node->is_unlinked)
        return -ENOENT;
    if (fstat(b->file->fd, st) < 0)
        return -errno;
    if (s->max_hardlinks && st->st_nlink > s->max_hardlinks)
        return -EMLINK;
    STEP(s);
    return linkat(s->gfs_fd, handle_rel(&q->inode->gfid, rel), b->dir->fd, q->name2, 0) < 0 ? -errno : 0;
}

FIBER int posix_link(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct posix *s = me->state;
    struct birth b = { .me = me, .call = call, .q = q };
    struct stat st;
    int e = birth_start(&b, q->parent2, q->name2);
    if (e == 0)
        e = pnode_file(me, q->inode, &b.file);
    if (e == 0)
        e = link_step(&b, &st);
    if (e == 0) {
        struct xnode x = xnode_of_file(s, b.file);
        e = pgfid_add(s, &x, &q->parent2->gfid, 1);
        if (e == 0)
            e = gfid2path_set(s, &x, &q->parent2->gfid, q->name2);
        if (e < 0)
            (void)unlinkat(b.dir->fd, q->name2, 0); /* at worst one name more than its marks say */
    }
    if (e == 0)
        e = mdata_stamp(s, b.node, b.file, call, false);
    if (e == 0)
        e = birth_reply(&b, r);
    if (e == 0) {
        r->pre2 = r->pre;
        r->post2 = r->post;
        memset(&r->pre, 0, sizeof r->pre);
        memset(&r->post, 0, sizeof r->post);
    }
    birth_done(&b);
    return e;
}
