/* storage/posix/lookup.c - from a name or a gfid to an inode, with the repairs docs/on-disk.md lists under "lookup". */
#include "storage/posix/posix_internal.h"
#include <fnmatch.h>
#include <stdio.h>
#include <sys/xattr.h>

/* ---- questions in xdata ---- */

int posix_put_value(struct dict **d, const char *name, const void *data, size_t size_bytes)
{
    return dict_put_bin(d, name, data, size_bytes);
}

static bool is_xattr_name(const char *key)
{
    return strncmp(key, "trusted.", 8) == 0 || strncmp(key, "user.", 5) == 0 || strncmp(key, "system.", 7) == 0 ||
           strncmp(key, "security.", 9) == 0;
}

static bool has_pattern(const char *key)
{
    return strpbrk(key, "*?[") != NULL;
}

static int answer_xattr(struct posix *s, const struct xnode *x, const char *name, struct dict **answers)
{
    ssize_t n = px_get(s, x, name, s->value, XATTR_BYTES_MAX);
    if (n < 0)
        return 0; /* absent, or not to be had: not in the answer */
    return posix_put_value(answers, name, s->value, (size_t)n);
}

/* All xattrs for metadata heal, but those that live as attributes elsewhere or belong to this brick alone. */
static bool is_listed(const struct call *call, const char *name)
{
    return !posix_xattr_is_hidden(call, name) && strncmp(name, "system.posix_acl_", 17) != 0 &&
           strcmp(name, "security.selinux") != 0;
}

static int answer_list(struct posix *s, const struct call *call, const struct xnode *x, struct dict **answers)
{
    ssize_t used = px_list(s, x, s->names, XATTR_BYTES_MAX);
    for (ssize_t at = 0; at < used; at += (ssize_t)strlen(s->names + at) + 1) {
        if (!is_listed(call, s->names + at))
            continue;
        int r = answer_xattr(s, x, s->names + at, answers);
        if (r < 0)
            return r;
    }
    return 0;
}

static int answer_content(struct posix *s, const struct xnode *x, const struct stat *st, uint64_t max,
                          struct dict **answers)
{
    if (!S_ISREG(st->st_mode) || x->fd < 0 || (uint64_t)st->st_size > max || st->st_size > XATTR_BYTES_MAX)
        return 0;
    /* What is not in memory is not worth stopping the loop for: the client reads it then. */
    struct iovec iov = { .iov_base = s->value, .iov_len = (size_t)st->st_size };
    ssize_t n = st->st_size ? preadv2(x->fd, &iov, 1, 0, RWF_NOWAIT) : 0;
    if (n != st->st_size)
        return 0;
    return posix_put_value(answers, "glusterfs.content", s->value, (size_t)n);
}

static int answer_one(struct posix *s, struct pnode *n, const struct xnode *x, const struct stat *st,
                      const struct dict *asked, const char *key, struct dict **answers)
{
    uint64_t v;
    if (strcmp(key, "glusterfs.content") == 0)
        return dict_get_uint(asked, key, &v) == 0 ? answer_content(s, x, st, v, answers) : 0;
    if (strcmp(key, "glusterfs.open-fd-count") == 0)
        return dict_put_uint(answers, key, n->open_count);
    if (strcmp(key, "glusterfs.open-active-fd-count") == 0)
        return dict_put_uint(answers, key, n->open_count);
    if (strcmp(key, "get-size") == 0)
        return dict_put_uint(answers, key, (uint64_t)st->st_size);
    if (strcmp(key, "get-link-count") == 0)
        return dict_put_uint(answers, key, S_ISDIR(st->st_mode) ? st->st_nlink : st->st_nlink - 1);
    if (strcmp(key, "gf_request_link_count") == 0)
        return dict_put_uint(answers, "gf_response_link_count", st->st_nlink ? st->st_nlink - 1 : 0);
    if (strcmp(key, "gf_get_file_block_count") == 0)
        return dict_put_uint(answers, key, (uint64_t)st->st_blocks);
    return 0;
}

/* Most names a client asks for are not there: one listing answers for all of them. */
static bool name_is_there(const char *names, ssize_t used, const char *name)
{
    size_t len = strlen(name) + 1;
    for (ssize_t at = 0; at < used;) {
        size_t n = strlen(names + at) + 1;
        if (n == len && memcmp(names + at, name, n) == 0)
            return true;
        at += (ssize_t)n;
    }
    return false;
}

static int answer_pattern(struct posix *s, const struct xnode *x, ssize_t used, const char *pattern,
                          struct dict **answers)
{
    for (ssize_t at = 0; at < used; at += (ssize_t)strlen(s->names + at) + 1) {
        if (fnmatch(pattern, s->names + at, 0) != 0)
            continue;
        int r = answer_xattr(s, x, s->names + at, answers);
        if (r < 0)
            return r;
    }
    return 0;
}

int posix_answer(struct translator *me, const struct call *call, struct pnode *n, const struct xnode *x,
                 const struct stat *st, const struct dict *asked, struct dict **ret_answers)
{
    struct posix *s = me->state;
    const char *key;
    const struct dict_value *value;
    ssize_t used = -1;
    size_t at = 0;
    int r = 0;

    while (r == 0 && dict_next(asked, &at, &key, &value)) {
        if (!is_xattr_name(key)) {
            r = answer_one(s, n, x, st, asked, key, ret_answers);
            continue;
        }
        if (used < 0)
            used = px_list(s, x, s->names, XATTR_BYTES_MAX);
        if (used < 0)
            used = 0;
        if (has_pattern(key))
            r = answer_pattern(s, x, used, key, ret_answers);
        else if (name_is_there(s->names, used, key))
            r = answer_xattr(s, x, key, ret_answers);
    }
    if (r == 0 && dict_has(asked, "list-xattr"))
        r = answer_list(s, call, x, ret_answers);
    return r;
}

/* ---- names ---- */

bool posix_name_is_private(const struct inode *parent, const char *name)
{
    return gfid_is_root(&parent->gfid) && strcmp(name, PRIVATE_DIR) == 0;
}

bool posix_name_is_valid(const char *name)
{
    return *name && !strchr(name, '/');
}

/* ---- giving a gfid to what has none ---- */

static bool is_fresh(struct translator *me, const struct stat *st)
{
    struct timespec now;
    env_wall_time(me->env, &now);
    int64_t age_ns = (now.tv_sec - st->st_ctim.tv_sec) * 1000000000ll + now.tv_nsec - st->st_ctim.tv_nsec;
    /* A clock that was set back would keep files unreachable: what lies in the future is old. */
    return age_ns >= 0 && age_ns < 1000000000;
}

/* Does the gfid belong to another inode of this brick? */
static bool is_taken(struct posix *s, const struct gfid *g, const struct stat *st)
{
    char rel[HANDLE_REL_LEN + 1];
    struct stat have;

    /* A directory's handle leads to it. */
    int flags = S_ISDIR(st->st_mode) ? 0 : AT_SYMLINK_NOFOLLOW;
    return fstatat(s->gfs_fd, handle_rel(g, rel), &have, flags) == 0 && have.st_ino != st->st_ino;
}

static int assign_gfid(struct translator *me, const struct request *q, const struct xnode *x, const struct stat *st,
                       struct gfid *ret_gfid)
{
    struct posix *s = me->state;
    struct gfid wanted;

    if (dict_get_gfid(q->xdata, "gfid-req", &wanted) < 0 || gfid_is_null(&wanted))
        return dict_has(q->xdata, "gfidless-lookup") ? 1 : -ENODATA;
    if (is_fresh(me, st))
        return -ENOENT; /* perhaps half made by somebody else */
    if (is_taken(s, &wanted, st))
        return -EEXIST;
    STEP(s);
    int r = px_set(s, x, XATTR_GFID, wanted.bytes, sizeof wanted.bytes, XATTR_CREATE);
    if (r == -EEXIST)
        return px_get_gfid(s, x, ret_gfid);
    if (r == 0)
        *ret_gfid = wanted;
    return r;
}

/* ---- lookup ---- */

struct found {
    struct stat st;
    struct pfile *file; /* NULL only while it is not open yet */
    struct gfid gfid;   /* null: it has none */
};

static int identify(struct translator *me, const struct request *q, struct pfile *dir, struct found *f)
{
    struct posix *s = me->state;
    struct pnode *known = pnode_by_ino(s, f->st.st_ino);
    if (known) {
        f->gfid = known->gfid;
        f->file = pfile_ref(known->file);
        return 0;
    }
    int r = pentry_open(s, dir, q->name, &f->st, &f->file);
    if (r < 0)
        return r;
    struct xnode x = xnode_of_file(s, f->file);
    r = px_get_gfid(s, &x, &f->gfid);
    if (r == -ENODATA)
        r = assign_gfid(me, q, &x, &f->st, &f->gfid);
    return r;
}

/* Puts what was found under its inode and sees to its handle. */
static int adopt(struct translator *me, const struct request *q, struct pfile *dir, struct found *f,
                 struct inode **ret_inode, struct pnode **ret_node)
{
    struct posix *s = me->state;
    SCOPED(inode_unref)
    struct inode *inode = q->inode && gfid_equal(&q->inode->gfid, &f->gfid)
                              ? inode_ref(q->inode)
                              : inode_table_get(me->graph, &f->gfid, f->st.st_mode & S_IFMT);
    struct pnode *n = inode ? pnode_of(me, inode) : NULL;
    if (!n)
        return -ENOMEM;
    if (!n->has_handle) {
        STEP(s);
        int r = handle_make(s, &f->gfid, dir, &q->parent->gfid, q->name, S_ISDIR(f->st.st_mode));
        if (r < 0 && r != -EEXIST)
            return r;
        /* EEXIST: two inodes of one gfid; the clients see it by the attributes. */
        n->has_handle = r == 0;
        if (fstat(f->file->fd, &f->st) < 0)
            return -errno;
    }
    if (n->file != f->file)
        pnode_set_file(s, n, f->file);
    *ret_inode = take(inode);
    *ret_node = n;
    return 0;
}

static int fill(struct translator *me, struct call *call, const struct request *q, struct pnode *n, struct found *f,
                struct reply *r)
{
    struct posix *s = me->state;
    struct xnode x = xnode_of_file(s, f->file);
    struct iatt a;

    pnode_load_mdata(s, n, &x);
    posix_iatt(s, n, &f->gfid, &f->st, &a);
    if (n->is_unlinked)
        a.nlink = 0;
    /* Rebalance is done with the file: clients may overwrite what it copied. */
    if (dict_has(q->xdata, "glusterfs.clean.writexattr"))
        (void)px_remove(s, &x, "trusted.glusterfs.protect.writes"); /* there may be none */
    int e = q->xdata ? posix_answer(me, call, n, &x, &f->st, q->xdata, &r->xdata) : 0;
    if (e == 0)
        r->stat = a;
    return e;
}

static int fill_without_gfid(struct translator *me, struct call *call, const struct request *q, struct found *f,
                             struct reply *r)
{
    struct pnode none = { 0 };
    struct xnode x = xnode_of_file(me->state, f->file);
    iatt_from_stat(&r->stat, &f->st);
    r->stat.gfid = gfid_null;
    return posix_answer(me, call, &none, &x, &f->st, q->xdata, &r->xdata);
}

static FIBER int lookup_name(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct posix *s = me->state;
    SCOPED(pfile_unref) struct pfile *dir = NULL;
    int e = pnode_dir(me, q->parent, &dir);
    if (e < 0)
        return e == -ENOENT ? -ESTALE : e;
    struct pnode *dir_node = pnode_of(me, q->parent);
    struct found f = { .gfid = gfid_null };
    e = pentry_stat(me, dir_node, dir, q->name, &f.st);
    if (e < 0)
        return e;
    if (f.st.st_dev != s->dev)
        return -EXDEV; /* something is mounted inside the brick */
    e = identify(me, q, dir, &f);
    SCOPED(pfile_unref) struct pfile *owned = f.file;
    if (e < 0)
        return e;
    if (gfid_is_null(&f.gfid))
        return fill_without_gfid(me, call, q, &f, r);
    SCOPED(inode_unref) struct inode *inode = NULL;
    struct pnode *n = NULL;
    e = adopt(me, q, dir, &f, &inode, &n);
    if (e != 0)
        return e;
    assert(n);
    e = fill(me, call, q, n, &f, r);
    if (e == 0)
        e = pfile_iatt(s, dir_node, dir, &r->post);
    return e;
}

static FIBER int lookup_gfid(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct posix *s = me->state;
    SCOPED(pfile_unref) struct pfile *file = NULL;
    struct pnode *n = pnode_of(me, q->inode);
    int e = n ? pnode_file(me, q->inode, &file) : -ENOMEM;
    if (e < 0)
        return e == -ESTALE ? -ENOENT : e;
    if (n->is_unlinked && !dict_has(q->xdata, "unlinked-lookup"))
        return -ENOENT;
    struct found f = { .file = file, .gfid = q->inode->gfid };
    if (fstat(file->fd, &f.st) < 0)
        return -errno;
    if (!n->is_unlinked && f.st.st_nlink <= 1 && n->open_count == 0 && !S_ISDIR(f.st.st_mode)) {
        /* Only the handle is left of it. */
        STEP(s);
        pnode_drop_file(s, n);
        n->has_handle = false;
        side_forget(s, &n->gfid, f.st.st_ino);
        e = handle_remove(s, &n->gfid);
        return e < 0 ? e : -ENOENT;
    }
    if (S_ISDIR(f.st.st_mode) && f.st.st_nlink == 0) {
        pnode_drop_file(s, n); /* removed behind our back */
        return -ENOENT;
    }
    return fill(me, call, q, n, &f, r);
}

/* ".." of a directory is in its handle. */
static FIBER int lookup_parent(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    char text[DIR_LINK_MAX];
    struct gfid parent = gfid_root;
    const char *name;

    if (!gfid_is_root(&q->parent->gfid)) {
        int e = handle_read_dir(me->state, &q->parent->gfid, text);
        if (e == 0)
            e = handle_parse_dir_text(text, &parent, &name);
        if (e < 0)
            return -ESTALE;
    }
    SCOPED(inode_unref) struct inode *inode = inode_table_get(me->graph, &parent, S_IFDIR);
    if (!inode)
        return -ENOMEM;
    struct request own = { .op = OP_LOOKUP, .inode = inode, .xdata = q->xdata };
    return lookup_gfid(me, call, &own, r);
}

FIBER int posix_lookup(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    if (!q->parent || !q->name)
        return q->inode ? lookup_gfid(me, call, q, r) : -EINVAL;
    if (!posix_name_is_valid(q->name) || posix_name_is_private(q->parent, q->name))
        return -EPERM;
    if (strlen(q->name) > NAME_MAX)
        return -ENAMETOOLONG;
    if (strcmp(q->name, "..") == 0)
        return lookup_parent(me, call, q, r);
    if (strcmp(q->name, ".") == 0) {
        struct request own = { .op = OP_LOOKUP, .inode = q->parent, .xdata = q->xdata };
        return lookup_gfid(me, call, &own, r);
    }
    return lookup_name(me, call, q, r);
}
