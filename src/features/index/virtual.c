/* features/index/virtual.c - index directories seen as inodes: lookup, opendir, readdir, unlink, rmdir on gfids that
 * exist only while this brick runs. */
#include "features/index/index_internal.h"
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define VIRTUAL_DIRS_MAX 4096 /* looked-at directories of entry-changes; older ones must be looked up again */
#define ENTRY_BYTES      32   /* of an entry in a message, besides its name */
#define STAT_BYTES       160  /* of its attributes */

bool index_is_virtual(struct translator *me, const struct inode *inode, enum index_kind *ret_kind, struct gfid *ret_of)
{
    struct index *s = me->state;
    struct virtual_dir *v;

    for (int kind = 0; kind < INDEX_KINDS; kind++) {
        if (gfid_equal(&inode->gfid, &s->dirs[kind].gfid)) {
            *ret_kind = (enum index_kind)kind;
            *ret_of = gfid_null;
            return true;
        }
    }
    if (!s->virtual_dirs)
        return false;
    HASH_FIND(hh, s->virtual_dirs, &inode->gfid, sizeof inode->gfid, v);
    if (!v)
        return false;
    *ret_kind = INDEX_CHANGES;
    *ret_of = v->of;
    return true;
}

static struct gfid xor_gfid(const struct gfid *a, const struct gfid *b)
{
    struct gfid g;
    for (int i = 0; i < 16; i++)
        g.bytes[i] = a->bytes[i] ^ b->bytes[i];
    return g;
}

static void forget_one(struct index *s, struct virtual_dir *v)
{
    HASH_DELETE(hh, s->virtual_dirs, v);
    s->virtual_count--;
    mem_free(v);
}

void index_forget_virtual(struct index *s)
{
    struct virtual_dir *v, *next;
    HASH_ITER(hh, s->virtual_dirs, v, next)
    forget_one(s, v);
}

/* The gfid a directory of entry-changes has during this run: looking again gives the same. */
static int virtual_gfid(struct index *s, const struct gfid *of, struct gfid *ret_gfid)
{
    struct gfid g = xor_gfid(&s->dirs[INDEX_CHANGES].gfid, of);
    struct virtual_dir *v;

    HASH_FIND(hh, s->virtual_dirs, &g, sizeof g, v);
    if (!v) {
        if (s->virtual_count >= VIRTUAL_DIRS_MAX)
            forget_one(s, s->virtual_dirs); /* the oldest */
        v = NEW(struct virtual_dir);
        if (!v)
            return -ENOMEM;
        v->gfid = g;
        v->of = *of;
        HASH_ADD(hh, s->virtual_dirs, gfid, sizeof v->gfid, v);
        s->virtual_count++;
    }
    *ret_gfid = g;
    return 0;
}

void index_link_changed(struct translator *me, enum index_kind kind, const struct gfid *g, enum link_state now)
{
    SCOPED(inode_unref) struct inode *inode = inode_table_find(me->graph, g);
    struct index_node *n = inode ? *inode_ctx(inode, me) : NULL;
    if (n)
        n->links[kind] = now;
}

void index_answer_link_count(struct index *s, const struct dict *asked, struct dict **answers)
{
    const char *what;
    if (dict_get_str(asked, "link-count", &what) < 0 || strcmp(what, "glusterfs.xattrop_index_count") != 0)
        return;
    if (!*answers)
        *answers = dict_new();
    /* Without an answer the asker takes the slow and safe way. */
    if (*answers)
        (void)dict_set_int(*answers, "link-count", s->dirs[INDEX_XATTROP].count ? 1 : 0);
}

/* ---- descriptors ---- */

static int open_virtual(struct index *s, enum index_kind kind, const struct gfid *of)
{
    if (!gfid_is_null(of))
        return index_store_open_dir(s, of);
    int fd = openat(s->dirs[kind].fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int stat_virtual(struct index *s, enum index_kind kind, const struct gfid *of, const struct gfid *as,
                        struct iatt *ret)
{
    struct stat st;
    int fd = open_virtual(s, kind, of);
    if (fd < 0)
        return fd == -ENOENT ? -ESTALE : fd;
    int r = fstat(fd, &st) < 0 ? -errno : 0;
    close(fd);
    if (r < 0)
        return r;
    iatt_from_stat(ret, &st);
    ret->gfid = *as;
    ret->ino = gfid_to_ino(as);
    return 0;
}

/* ---- lookup ---- */

static int lookup_virtual_name(struct index *s, enum index_kind kind, const struct gfid *of, const char *name,
                               struct iatt *ret)
{
    struct gfid g, as;
    struct stat st;

    int fd = open_virtual(s, kind, of);
    if (fd < 0)
        return fd == -ENOENT ? -ESTALE : fd;
    int r = fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
    close(fd);
    if (r < 0)
        return r;
    bool is_top = gfid_is_null(of);
    if (is_top && gfid_parse(name, &g) < 0)
        return -ENOENT; /* a base file */
    if (is_top && kind == INDEX_CHANGES) {
        r = virtual_gfid(s, &g, &as);
        if (r < 0)
            return r;
    } else if (is_top) {
        as = xor_gfid(&s->dirs[kind].gfid, &g);
    } else {
        /* A name has no gfid of its own: one that is stable while the directory is known. */
        as = xor_gfid(&s->dirs[INDEX_DIRTY].gfid, of);
        for (size_t i = 0; name[i]; i++)
            as.bytes[i % 16] = (uint8_t)(as.bytes[i % 16] * 31 + (uint8_t)name[i]);
    }
    iatt_from_stat(ret, &st);
    ret->gfid = as;
    ret->ino = gfid_to_ino(&as);
    return 0;
}

static int answer_type(const struct request *q, enum index_kind kind, struct reply *r)
{
    if (!dict_has(q->xdata, "glusterfs.index-ia-type-get-req"))
        return 0;
    return dict_put_uint(&r->xdata, "glusterfs.index-ia-type-get-rsp", kind == INDEX_CHANGES ? 2 : 1);
}

FIBER int index_lookup(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct index *s = me->state;
    enum index_kind kind;
    struct gfid of;
    int e;

    if (q->parent && q->name && index_is_virtual(me, q->parent, &kind, &of)) {
        e = lookup_virtual_name(s, kind, &of, q->name, &r->stat);
        if (e == 0)
            e = stat_virtual(s, kind, &of, &q->parent->gfid, &r->post);
        return e == 0 ? answer_type(q, kind, r) : e;
    }
    if (!q->parent && q->inode && index_is_virtual(me, q->inode, &kind, &of)) {
        e = stat_virtual(s, kind, &of, &q->inode->gfid, &r->stat);
        return e == 0 ? answer_type(q, kind, r) : e;
    }
    e = child_call(me, 0, call, q, r);
    if (q->xdata)
        index_answer_link_count(s, q->xdata, &r->xdata);
    return e;
}

FIBER int index_stat(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct index *s = me->state;
    enum index_kind kind;
    struct gfid of;

    if (index_is_virtual(me, q->inode, &kind, &of))
        return stat_virtual(s, kind, &of, &q->inode->gfid, &r->stat);
    int e = child_call(me, 0, call, q, r);
    if (q->xdata)
        index_answer_link_count(s, q->xdata, &r->xdata);
    return e;
}

/* ---- telling heal daemons ---- */

static void listen_for_client(struct translator *me, struct client *client)
{
    struct index *s = me->state;
    void **slot = client && !client->is_gone ? client_ctx(client, me) : NULL;

    if (!slot || *slot)
        return;
    *slot = client; /* that it is set is all it says */
    s->listeners++;
}

void index_client_gone(struct translator *me, struct client *client)
{
    struct index *s = me->state;
    void **slot = client_ctx(client, me);

    if (*slot)
        s->listeners--;
    *slot = NULL;
    /* It may have left marks in `dirty` that nobody else takes off. */
    if (s->dirs[INDEX_DIRTY].count)
        index_tell_healers(me);
}

void index_tell_healers(struct translator *me)
{
    struct index *s = me->state;
    struct client *client;

    if (!s->listeners)
        return;
    list_for_each (client, &me->graph->clients, of_graph) {
        void **slot = client_ctx(client, me);

        if (!*slot)
            continue;
        *slot = NULL;
        s->listeners--;
        notify_parents(me, &(struct event) { .kind = EVENT_HEAL_NEEDED, .client = client });
    }
}

/* ---- listing ---- */

FIBER int index_opendir(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    enum index_kind kind;
    struct gfid of;

    if (!index_is_virtual(me, q->inode, &kind, &of))
        return child_call(me, 0, call, q, r);
    void **slot = fd_ctx(q->fd, me);
    if (*slot)
        return 0;
    int fd = open_virtual(me->state, kind, &of);
    if (fd < 0)
        return fd == -ENOENT ? -ESTALE : fd;
    DIR *dir = fdopendir(fd);
    if (!dir) {
        close(fd);
        return -ENOMEM;
    }
    *slot = dir;
    return 0;
}

void index_fd_release(struct translator *me, struct fd *fd, void *ctx)
{
    closedir(ctx);
}

/* What the gfid is on this brick: its handle says. */
static uint32_t type_of(struct index *s, const struct gfid *g)
{
    char text[GFID_TEXT_LEN + 1], rel[8 + GFID_TEXT_LEN];
    struct stat st;

    gfid_format(g, text);
    rel[0] = text[0];
    rel[1] = text[1];
    rel[2] = '/';
    rel[3] = text[2];
    rel[4] = text[3];
    rel[5] = '/';
    memcpy(rel + 6, text, GFID_TEXT_LEN + 1);
    if (fstatat(s->brick_fd, rel, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return DT_UNKNOWN;
    if (S_ISLNK(st.st_mode) && st.st_nlink == 1)
        return DT_DIR;
    return IFTODT(st.st_mode);
}

static bool is_listed(bool is_top, const char *name, struct gfid *ret_gfid)
{
    if (name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2])))
        return false;
    return !is_top || gfid_parse(name, ret_gfid) == 0;
}

/* The times of an entry are those of its base file. It has no gfid: it is not an inode. */
static void stat_entry(DIR *dir, struct dir_entry *entry)
{
    struct stat st;

    if (fstatat(dirfd(dir), entry->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        iatt_from_stat(&entry->stat, &st);
}

static int list_virtual(struct index *s, const struct request *q, DIR *dir, enum index_kind kind, bool is_top,
                        struct dir_entries *out)
{
    bool with_types = dict_has(q->xdata, "get-gfid-type");
    uint64_t left = q->size, each = ENTRY_BYTES + (q->op == OP_READDIRP ? STAT_BYTES : 0);
    struct dirent *e;
    struct gfid g;

    seekdir(dir, (long)q->offset);
    while (errno = 0, (e = readdir(dir))) {
        if (!is_listed(is_top, e->d_name, &g))
            continue;
        size_t len = strlen(e->d_name);
        if (len + each > left)
            return 0;
        left -= len + each;
        uint32_t type = is_top && with_types ? type_of(s, &g) : is_top && kind == INDEX_CHANGES ? DT_DIR : DT_REG;
        struct dir_entry *entry;
        int r = dir_entries_add(out, e->d_name, len, e->d_ino, (uint64_t)e->d_off, type, &entry);
        if (r < 0)
            return r;
        if (q->op == OP_READDIRP)
            stat_entry(dir, entry);
    }
    if (errno)
        return -errno;
    out->at_end = true;
    return 0;
}

FIBER int index_readdir(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    enum index_kind kind;
    struct gfid of;

    if (!index_is_virtual(me, q->inode, &kind, &of))
        return child_call(me, 0, call, q, r);
    if (kind == INDEX_XATTROP && dict_has(q->xdata, HEAL_NOTICE_KEY))
        listen_for_client(me, call->client);
    DIR *own = NULL, *dir = *fd_ctx(q->fd, me);
    if (!dir) {
        int fd = open_virtual(me->state, kind, &of);
        if (fd < 0)
            return fd == -ENOENT ? -ESTALE : fd;
        dir = own = fdopendir(fd);
        if (!dir) {
            close(fd);
            return -ENOMEM;
        }
    }
    struct dir_entries *out = dir_entries_new();
    int e = out ? list_virtual(me->state, q, dir, kind, gfid_is_null(&of), out) : -ENOMEM;
    if (own)
        closedir(own);
    if (e < 0) {
        dir_entries_free(out);
        return e;
    }
    r->entries = out;
    return (int)out->count;
}

FIBER int index_fsyncdir(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    enum index_kind kind;
    struct gfid of;
    return index_is_virtual(me, q->inode, &kind, &of) ? 0 : child_call(me, 0, call, q, r);
}

/* ---- removing ---- */

FIBER int index_unlink(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct index *s = me->state;
    enum index_kind kind;
    struct gfid of, g;

    if (!index_is_virtual(me, q->parent, &kind, &of)) {
        int e = child_call(me, 0, call, q, r);
        if (q->xdata)
            index_answer_link_count(s, q->xdata, &r->xdata);
        return e;
    }
    int e = stat_virtual(s, kind, &of, &q->parent->gfid, &r->pre);
    if (e < 0)
        return e;
    if (!gfid_is_null(&of)) {
        e = index_store_remove_name(s, &of, q->name);
    } else if (kind == INDEX_CHANGES || gfid_parse(q->name, &g) < 0) {
        e = kind == INDEX_CHANGES ? -EISDIR : -ENOENT;
    } else {
        e = index_store_remove(s, kind, &g);
        if (e == 0)
            index_link_changed(me, kind, &g, LINK_IS_GONE);
    }
    return e < 0 ? e : stat_virtual(s, kind, &of, &q->parent->gfid, &r->post);
}

FIBER int index_rmdir(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct index *s = me->state;
    enum index_kind kind;
    struct gfid of, g;

    if (!index_is_virtual(me, q->parent, &kind, &of))
        return child_call(me, 0, call, q, r);
    if (kind != INDEX_CHANGES || !gfid_is_null(&of))
        return -ENOTDIR;
    if (gfid_parse(q->name, &g) < 0)
        return -ENOENT;
    int e = stat_virtual(s, kind, &of, &q->parent->gfid, &r->pre);
    if (e == 0)
        e = index_store_remove_dir(me, &g, true);
    return e < 0 ? e : stat_virtual(s, kind, &of, &q->parent->gfid, &r->post);
}
