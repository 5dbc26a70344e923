/* storage/posix/entry_remove.c - unlink, rmdir and rename. Handles go before names: a name without a handle is repaired
 * by the next look-up, a handle without a name would keep a removed file for ever (docs/on-disk.md "removing"). */
#include "storage/posix/posix_internal.h"
#include <stdio.h>
#include <linux/fs.h>

#define SLOW_FREE_BYTES (1 << 20) /* above this, the last close is left to the pool */

struct victim {
    struct stat st;
    struct gfid gfid;   /* null: it has none */
    struct pfile *file; /* may be NULL without gfid */
    struct pnode *node; /* NULL: no inode object */
    bool has_handle, is_last;
};

static bool handle_is(struct posix *s, const struct gfid *g, const struct stat *st)
{
    char rel[HANDLE_REL_LEN + 1];
    struct stat have;
    return fstatat(s->gfs_fd, handle_rel(g, rel), &have, AT_SYMLINK_NOFOLLOW) == 0 && have.st_ino == st->st_ino;
}

/* What the name is now. Nothing suspends between this and the end of the operation. */
static int victim_look(struct translator *me, struct pfile *dir, const char *name, struct victim *v)
{
    struct posix *s = me->state;

    *v = (struct victim) { .gfid = gfid_null };
    if (fstatat(dir->fd, name, &v->st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    v->node = pnode_by_ino(s, v->st.st_ino);
    if (v->node) {
        v->gfid = v->node->gfid;
        v->file = pfile_ref(v->node->file);
    } else {
        int e = pentry_open(s, dir, name, &v->st, &v->file);
        if (e < 0)
            return e;
        struct xnode x = xnode_of_file(s, v->file);
        e = px_get_gfid(s, &x, &v->gfid);
        if (e < 0 && e != -ENODATA) {
            pfile_unref(take(v->file));
            return e;
        }
        if (e == 0)
            v->node = pnode_find(me, &v->gfid);
    }
    if (S_ISDIR(v->st.st_mode) || gfid_is_null(&v->gfid))
        v->has_handle = S_ISDIR(v->st.st_mode);
    else
        v->has_handle = (v->node && v->node->has_handle) || handle_is(s, &v->gfid, &v->st);
    v->is_last = !S_ISDIR(v->st.st_mode) && v->st.st_nlink <= (v->has_handle ? 2u : 1u);
    return 0;
}

/* Who removes a large file, or any from an almost full disk, may use the room when the answer comes. */
static FIBER void victim_done(struct translator *me, struct victim *v)
{
    struct posix *s = me->state;
    bool is_gone = v->is_last || S_ISDIR(v->st.st_mode);
    bool is_large = v->st.st_size > SLOW_FREE_BYTES;

    if (!v->file || !is_gone || v->file->refs > 1) {
        pfile_unref(v->file);
        return;
    }
    pfile_close_removed(me, v->file, is_large);
    if (s->is_closing && (is_large || posix_is_tight(s)))
        posix_wait_closed(me);
}

/* The last name of a non-directory goes: its handle first. */
static int give_up_handle(struct posix *s, struct victim *v)
{
    char rel[HANDLE_REL_LEN + 1];

    if (!v->has_handle)
        return 0;
    STEP(s);
    if (!v->node || v->node->open_count == 0)
        return handle_remove(s, &v->gfid);
    handle_rel(&v->gfid, rel);
    if (renameat(s->gfs_fd, rel, s->unlink_fd, rel + 6) < 0)
        return -errno;
    v->node->is_unlinked = true;
    v->node->has_handle = false;
    return 0;
}

/* The removal failed after all. */
static void take_back_handle(struct posix *s, struct victim *v, struct pfile *dir, const char *name)
{
    char rel[HANDLE_REL_LEN + 1];

    if (!v->has_handle || s->crashed)
        return;
    handle_rel(&v->gfid, rel);
    if (v->node && v->node->is_unlinked) {
        if (renameat(s->unlink_fd, rel + 6, s->gfs_fd, rel) == 0) {
            v->node->is_unlinked = false;
            v->node->has_handle = true;
        }
        return;
    }
    (void)linkat(dir->fd, name, s->gfs_fd, rel, 0); /* else the next look-up makes it */
}

static void victim_gone(struct posix *s, struct victim *v)
{
    if (v->is_last && !gfid_is_null(&v->gfid) && !(v->node && v->node->is_unlinked))
        side_forget(s, &v->gfid, v->st.st_ino);
    if (!v->node || v->node->is_unlinked)
        return;
    if (v->is_last || S_ISDIR(v->st.st_mode)) {
        pnode_drop_file(s, v->node);
        v->node->has_handle = false;
    }
}

/* Marks of one of several names go with it. */
static int unmark_name(struct posix *s, struct victim *v, const struct gfid *parent, const char *name)
{
    struct xnode x = xnode_of_file(s, v->file);
    STEP(s);
    int e = pgfid_add(s, &x, parent, -1);
    return e < 0 ? e : gfid2path_remove(s, &x, parent, name);
}

static int check_unlink(struct posix *s, const struct request *q, struct victim *v)
{
    if (S_ISDIR(v->st.st_mode))
        return -EISDIR;
    if (dict_has(q->xdata, "dont-unlink-for-open-fd") && v->node && v->node->open_count)
        return -EBUSY;
    if (!dict_has(q->xdata, "unlink-only-if-dht-linkto-file"))
        return 0;
    if (!S_ISREG(v->st.st_mode) || (v->st.st_mode & 07777) != S_ISVTX)
        return -EBUSY;
    struct xnode x = xnode_of_file(s, v->file);
    return px_get(s, &x, XATTR_LINKTO, s->value, XATTR_BYTES_MAX) < 0 ? -EBUSY : 0;
}

static int answer_unlink(struct translator *me, struct call *call, const struct request *q, struct victim *v,
                         struct reply *r)
{
    struct posix *s = me->state;
    struct pnode none = { .gfid = v->gfid };
    if (!q->xdata || !v->file)
        return 0;
    struct xnode x = xnode_of_file(s, v->file);
    return posix_answer(me, call, v->node ? v->node : &none, &x, &v->st, q->xdata, &r->xdata);
}

/* DHT wants to know what is left of the file. */
static int answer_iatt_after(struct posix *s, const struct request *q, struct victim *v, struct reply *r)
{
    struct stat st;
    struct iatt a;

    if (!dict_has(q->xdata, "dht-get-iatt-in-xattr") || !v->file || gfid_is_null(&v->gfid))
        return 0;
    if (fstat(v->file->fd, &st) < 0)
        return -errno;
    posix_iatt(s, v->node, &v->gfid, &st, &a);
    if (!r->xdata)
        r->xdata = dict_new();
    return r->xdata ? dict_set_iatt(r->xdata, "dht-get-iatt-in-xattr", &a) : -ENOMEM;
}

static int unlink_now(struct translator *me, struct call *call, const struct request *q, struct pfile *dir,
                      struct victim *v)
{
    struct posix *s = me->state;
    bool has_gfid = !gfid_is_null(&v->gfid);
    int e = 0;

    if (v->is_last)
        e = has_gfid ? give_up_handle(s, v) : 0;
    else if (has_gfid)
        e = unmark_name(s, v, &q->parent->gfid, q->name);
    if (e < 0)
        return e;
    STEP(s);
    if (unlinkat(dir->fd, q->name, 0) < 0) {
        e = -errno;
        if (v->is_last)
            take_back_handle(s, v, dir, q->name);
        return e;
    }
    /* The file lives on under other names or descriptors: its ctime moves. */
    if (v->node && (!v->is_last || v->node->is_unlinked))
        e = mdata_stamp(s, v->node, v->file, call, false);
    victim_gone(s, v);
    return e;
}

FIBER int posix_unlink(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct posix *s = me->state;
    SCOPED(pfile_unref) struct pfile *dir = NULL;
    struct stat warm;

    if (!posix_name_is_valid(q->name) || posix_name_is_private(q->parent, q->name))
        return -EPERM;
    int e = pnode_dir(me, q->parent, &dir);
    if (e < 0)
        return e;
    struct pnode *dir_node = pnode_of(me, q->parent);
    e = pentry_stat(me, dir_node, dir, q->name, &warm);
    if (e < 0)
        return e;
    struct victim v;
    struct iatt pre, post;
    e = pfile_iatt(s, dir_node, dir, &pre);
    if (e == 0)
        e = victim_look(me, dir, q->name, &v);
    if (e != 0)
        return e;
    e = check_unlink(s, q, &v);
    if (e == 0)
        e = answer_unlink(me, call, q, &v, r);
    if (e == 0)
        e = unlink_now(me, call, q, dir, &v);
    if (e == 0)
        e = answer_iatt_after(s, q, &v, r);
    if (e == 0)
        e = mdata_stamp(s, dir_node, dir, call, true);
    if (e == 0)
        e = pfile_iatt(s, dir_node, dir, &post);
    victim_done(me, &v);
    if (e == 0) {
        r->pre = pre;
        r->post = post;
    }
    return e;
}

/* ---- rmdir ---- */

/* The handle of a directory goes if it still leads to this place. */
static int remove_dir_handle(struct posix *s, const struct gfid *g, const struct gfid *parent, const char *name)
{
    char text[DIR_LINK_MAX], want[DIR_LINK_MAX];

    if (gfid_is_null(g) || handle_read_dir(s, g, text) < 0)
        return 0;
    handle_dir_text(parent, name, want);
    if (strcmp(text, want) != 0)
        return 0;
    STEP(s);
    return handle_remove(s, g);
}

static int rmdir_now(struct posix *s, const struct request *q, struct pfile *dir, struct victim *v)
{
    STEP(s);
    if (q->flags) {
        struct gfid g = v->gfid;
        if (gfid_is_null(&g))
            return -ENODATA;
        return posix_landfill_move(s, dir, q->name, &g);
    }
    if (unlinkat(dir->fd, q->name, AT_REMOVEDIR) < 0)
        return errno == EEXIST ? -ENOTEMPTY : -errno;
    return 0;
}

FIBER int posix_rmdir(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct posix *s = me->state;
    SCOPED(pfile_unref) struct pfile *dir = NULL;
    struct stat warm;

    if (!posix_name_is_valid(q->name) || posix_name_is_private(q->parent, q->name))
        return -EPERM;
    if (is_dot(q->name))
        return q->name[1] ? -ENOTEMPTY : -EINVAL;
    int e = pnode_dir(me, q->parent, &dir);
    if (e < 0)
        return e;
    struct pnode *dir_node = pnode_of(me, q->parent);
    e = pentry_stat(me, dir_node, dir, q->name, &warm);
    if (e < 0)
        return e;
    if (!S_ISDIR(warm.st_mode))
        return -ENOTDIR;
    struct victim v;
    struct iatt pre, post;
    e = pfile_iatt(s, dir_node, dir, &pre);
    if (e == 0)
        e = victim_look(me, dir, q->name, &v);
    if (e != 0)
        return e;
    e = rmdir_now(s, q, dir, &v);
    if (e == 0 && q->flags)
        posix_landfill_filled(me);
    if (e == 0) {
        victim_gone(s, &v);
        e = remove_dir_handle(s, &v.gfid, &q->parent->gfid, q->name);
    }
    if (e == 0)
        e = mdata_stamp(s, dir_node, dir, call, true);
    if (e == 0)
        e = pfile_iatt(s, dir_node, dir, &post);
    victim_done(me, &v);
    if (e == 0) {
        r->pre = pre;
        r->post = post;
    }
    return e;
}

/* ---- rename ---- */

struct move {
    struct translator *me;
    struct call *call;
    const struct request *q;
    struct pfile *from, *to;
    struct pnode *from_node, *to_node;
    struct victim source, target;
    bool has_target;
    struct iatt pre, pre2;
};

static FIBER int move_start(struct move *m)
{
    const struct request *q = m->q;
    struct stat warm;

    if (!posix_name_is_valid(q->name) || !posix_name_is_valid(q->name2) || posix_name_is_private(q->parent, q->name) ||
        posix_name_is_private(q->parent2, q->name2))
        return -EPERM;
    if (is_dot(q->name) || is_dot(q->name2))
        return -EINVAL;
    if (strlen(q->name2) > NAME_MAX)
        return -ENAMETOOLONG;
    if (q->flags & ~(uint32_t)(RENAME_NOREPLACE | RENAME_EXCHANGE))
        return -EINVAL;
    int e = pnode_dir(m->me, q->parent, &m->from);
    if (e == 0)
        e = pnode_dir(m->me, q->parent2, &m->to);
    if (e < 0)
        return e;
    m->from_node = pnode_of(m->me, q->parent);
    m->to_node = pnode_of(m->me, q->parent2);
    (void)pentry_stat(m->me, m->to_node, m->to, q->name2, &warm); /* only to have it in memory below */
    return pentry_stat(m->me, m->from_node, m->from, q->name, &warm);
}

static int move_look(struct move *m)
{
    struct posix *s = m->me->state;
    int e = victim_look(m->me, m->from, m->q->name, &m->source);
    if (e < 0)
        return e;
    e = victim_look(m->me, m->to, m->q->name2, &m->target);
    if (e < 0 && e != -ENOENT)
        return e;
    m->has_target = e == 0;
    if (m->has_target && (m->q->flags & RENAME_NOREPLACE))
        return -EEXIST;
    if (!m->has_target && (m->q->flags & RENAME_EXCHANGE))
        return -ENOENT;
    e = pfile_iatt(s, m->from_node, m->from, &m->pre);
    return e < 0 ? e : pfile_iatt(s, m->to_node, m->to, &m->pre2);
}

/* What the kernel would refuse, so that no handle is touched for nothing. */
static int move_check(struct move *m)
{
    bool exchange = m->q->flags & RENAME_EXCHANGE;
    if (!m->has_target || exchange)
        return 0;
    bool from_dir = S_ISDIR(m->source.st.st_mode), to_dir = S_ISDIR(m->target.st.st_mode);
    if (from_dir && !to_dir)
        return -ENOTDIR;
    if (!from_dir && to_dir)
        return -EISDIR;
    return 0;
}

static int move_dir_handle(struct posix *s, const struct gfid *g, struct pfile *dir, const struct gfid *parent,
                           const char *name)
{
    if (gfid_is_null(g))
        return 0;
    STEP(s);
    return handle_make(s, g, dir, parent, name, true);
}

/* Before rename(2): handles that would be wrong afterwards go. */
static int move_before(struct move *m)
{
    struct posix *s = m->me->state;
    const struct request *q = m->q;
    int e = 0;

    if (q->flags & RENAME_EXCHANGE) {
        if (S_ISDIR(m->target.st.st_mode))
            e = remove_dir_handle(s, &m->target.gfid, &q->parent2->gfid, q->name2);
    } else if (m->has_target && S_ISDIR(m->target.st.st_mode)) {
        /* Only an empty one can be replaced; its handle goes after, when that is known. */
        e = 0;
    } else if (m->has_target && m->target.is_last && !gfid_is_null(&m->target.gfid)) {
        e = give_up_handle(s, &m->target);
    }
    if (e == 0 && S_ISDIR(m->source.st.st_mode))
        e = remove_dir_handle(s, &m->source.gfid, &q->parent->gfid, q->name);
    return e;
}

static void move_undo(struct move *m)
{
    struct posix *s = m->me->state;
    const struct request *q = m->q;

    if (s->crashed)
        return;
    /* Handles that cannot be made again now are made by the next look-up by name. */
    if (S_ISDIR(m->source.st.st_mode))
        (void)move_dir_handle(s, &m->source.gfid, m->from, &q->parent->gfid, q->name);
    if (!m->has_target)
        return;
    if (S_ISDIR(m->target.st.st_mode))
        (void)move_dir_handle(s, &m->target.gfid, m->to, &q->parent2->gfid, q->name2);
    else if (m->target.is_last)
        take_back_handle(s, &m->target, m->to, q->name2);
}

static int move_marks(struct posix *s, struct victim *v, const struct gfid *from, const char *from_name,
                      const struct gfid *to, const char *to_name)
{
    if (S_ISDIR(v->st.st_mode) || gfid_is_null(&v->gfid))
        return 0;
    STEP(s);
    struct xnode x = xnode_of_file(s, v->file);
    int e = 0;
    if (!gfid_equal(from, to)) {
        e = pgfid_add(s, &x, from, -1);
        if (e == 0)
            e = pgfid_add(s, &x, to, 1);
    }
    if (e == 0)
        e = gfid2path_remove(s, &x, from, from_name);
    return e < 0 ? e : gfid2path_set(s, &x, to, to_name);
}

static int move_after(struct move *m)
{
    struct posix *s = m->me->state;
    const struct request *q = m->q;
    bool exchange = q->flags & RENAME_EXCHANGE;
    const struct gfid *from = &q->parent->gfid, *to = &q->parent2->gfid;
    int e = 0;

    if (m->has_target && !exchange) {
        if (S_ISDIR(m->target.st.st_mode) && !gfid_is_null(&m->target.gfid))
            e = remove_dir_handle(s, &m->target.gfid, to, q->name2);
        else if (!m->target.is_last && m->target.file && !gfid_is_null(&m->target.gfid))
            e = unmark_name(s, &m->target, to, q->name2);
        if (e == 0 && m->target.node && (!m->target.is_last || m->target.node->is_unlinked))
            e = mdata_stamp(s, m->target.node, m->target.file, m->call, false);
        victim_gone(s, &m->target);
    }
    if (e == 0 && S_ISDIR(m->source.st.st_mode))
        e = move_dir_handle(s, &m->source.gfid, m->to, to, q->name2);
    if (e == 0 && exchange && S_ISDIR(m->target.st.st_mode))
        e = move_dir_handle(s, &m->target.gfid, m->from, from, q->name);
    if (e == 0)
        e = move_marks(s, &m->source, from, q->name, to, q->name2);
    if (e == 0 && exchange)
        e = move_marks(s, &m->target, to, q->name2, from, q->name);
    if (e == 0 && exchange && m->target.node)
        e = mdata_stamp(s, m->target.node, m->target.file, m->call, false);
    return e;
}

static int move_reply(struct move *m, struct reply *r)
{
    struct posix *s = m->me->state;
    struct pnode none = { .gfid = m->source.gfid };
    struct pnode *n = m->source.node ? m->source.node : &none;
    struct iatt stat, post, post2;

    int e = m->source.node ? mdata_stamp(s, n, m->source.file, m->call, false) : 0;
    if (e == 0)
        e = mdata_stamp(s, m->from_node, m->from, m->call, true);
    if (e == 0 && m->to_node != m->from_node)
        e = mdata_stamp(s, m->to_node, m->to, m->call, true);
    if (e == 0)
        e = pfile_iatt(s, n, m->source.file, &stat);
    if (e == 0)
        e = pfile_iatt(s, m->from_node, m->from, &post);
    if (e == 0)
        e = pfile_iatt(s, m->to_node, m->to, &post2);
    if (e < 0)
        return e;
    r->stat = stat;
    r->pre = m->pre;
    r->pre2 = m->pre2;
    r->post = post;
    r->post2 = post2;
    return 0;
}

static int move_now(struct move *m, struct reply *r)
{
    struct posix *s = m->me->state;
    const struct request *q = m->q;

    int e = move_check(m);
    if (e == 0 && q->xdata && m->has_target)
        e = answer_unlink(m->me, m->call, q, &m->target, r);
    if (e < 0)
        return e;
    /* Two names of one inode: rename(2) does nothing, and neither do we. */
    if (m->has_target && m->target.st.st_ino == m->source.st.st_ino)
        return move_reply(m, r);
    e = move_before(m);
    if (e == -ESHUTDOWN)
        return e;
    if (e == 0) {
        STEP(s);
        e = renameat2(m->from->fd, q->name, m->to->fd, q->name2, q->flags) < 0 ? -errno : 0;
    }
    if (e < 0) {
        move_undo(m);
        return e == -EEXIST && !(q->flags & RENAME_NOREPLACE) ? -ENOTEMPTY : e;
    }
    e = move_after(m);
    return e < 0 ? e : move_reply(m, r);
}

FIBER int posix_rename(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    SCOPED_FREE struct move *m = NEW(struct move);
    if (!m)
        return -ENOMEM;
    *m = (struct move) { .me = me, .call = call, .q = q };
    int e = move_start(m);
    if (e == 0)
        e = move_look(m);
    if (e == 0)
        e = move_now(m, r);
    victim_done(me, &m->source);
    victim_done(me, &m->target);
    pfile_unref(m->from);
    pfile_unref(m->to);
    return e;
}
