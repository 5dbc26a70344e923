/* features/index - keeps the list of inodes with pending or dirty counters (index_internal.h says how), and answers
 * what heal asks for: virtual gfids of the lists, counts, "is there anything at all". */
#include "features/index/index_internal.h"

/* ---- watched xattrs ---- */

/* Is `key` in the comma-separated list? As a whole, or (prefix) beginning with an item. */
static bool in_list(const char *list, const char *key, bool prefix)
{
    while (list && *list) {
        size_t n = strcspn(list, ", ");
        if (n && strncmp(list, key, n) == 0 && (prefix || key[n] == '\0'))
            return true;
        list += n;
        list += strspn(list, ", ");
    }
    return false;
}

static int kind_of(const struct index *s, const char *key)
{
    if (in_list(s->dirty_list, key, false))
        return INDEX_DIRTY;
    if (in_list(s->pending_list, key, true) || in_list(s->ec_list, key, false))
        return INDEX_XATTROP;
    return -1;
}

struct watched {
    bool has[INDEX_KINDS];      /* a key of that kind is in the dict */
    bool not_zero[INDEX_KINDS]; /* and its value is not all zeros */
};

static void look_at(const struct index *s, const struct dict *xattrs, struct watched *w)
{
    const char *key;
    const struct dict_value *v;
    size_t at = 0;

    memset(w, 0, sizeof *w);
    while (dict_next(xattrs, &at, &key, &v)) {
        int kind = kind_of(s, key);
        if (kind < 0 || (v->type != DICT_BIN && v->type != DICT_OLD && v->type != DICT_STR))
            continue;
        w->has[kind] = true;
        for (size_t i = 0; i < v->size_bytes && !w->not_zero[kind]; i++)
            w->not_zero[kind] = v->bytes[i] != 0;
    }
}

/* ---- xattrop ---- */

static struct index_node *node_of(struct translator *me, struct inode *inode)
{
    void **slot = inode_ctx(inode, me);
    struct index_node *n = *slot;
    if (n)
        return n;
    n = NEW(struct index_node);
    if (!n)
        return NULL;
    fiber_mutex_init(&n->busy);
    *slot = n;
    return n;
}

static int add_link(struct translator *me, struct index_node *n, enum index_kind kind, const struct gfid *g)
{
    if (n->links[kind] == LINK_IS_THERE)
        return 0;
    int r = index_store_add(me, kind, g);
    if (r == 0)
        n->links[kind] = LINK_IS_THERE;
    return r;
}

static void remove_link(struct translator *me, struct index_node *n, enum index_kind kind, const struct gfid *g)
{
    if (n->links[kind] == LINK_IS_GONE)
        return;
    int r = index_store_remove(me->state, kind, g);
    if (r == 0 || r == -ENOENT)
        n->links[kind] = LINK_IS_GONE; /* else it stays: heal looks once for nothing */
}

/* Before the counters move: whatever they may become is in the index. */
static int before(struct translator *me, struct index_node *n, const struct request *q)
{
    struct index *s = me->state;
    struct watched w;
    const char *name;
    int r = 0;

    look_at(s, q->xattrs, &w);
    for (int kind = 0; r == 0 && kind < INDEX_CHANGES; kind++) {
        if (w.not_zero[kind])
            r = add_link(me, n, (enum index_kind)kind, &q->inode->gfid);
    }
    if (r == 0 && q->xdata && dict_get_str(q->xdata, "glusterfs.xattrop-entry-create", &name) == 0)
        r = index_store_add_name(me, &q->inode->gfid, name);
    return r;
}

static void after(struct translator *me, struct index_node *n, const struct request *q, const struct dict *result)
{
    struct index *s = me->state;
    struct watched w;
    const char *name;

    look_at(s, result, &w);
    for (int kind = 0; kind < INDEX_CHANGES; kind++) {
        if (w.not_zero[kind])
            (void)add_link(me, n, (enum index_kind)kind,
                           &q->inode->gfid); /* it was there; if not, the next one makes it */
        else if (w.has[kind])
            remove_link(me, n, (enum index_kind)kind, &q->inode->gfid);
    }
    if (!q->xdata)
        return;
    bool all_zero = w.has[INDEX_XATTROP] && !w.not_zero[INDEX_XATTROP];
    if (dict_get_str(q->xdata, "glusterfs.xattrop-entry-delete", &name) == 0) {
        (void)index_store_remove_name(s, &q->inode->gfid, name); /* a name too many is looked at once for nothing */
        if (all_zero)
            (void)index_store_remove_dir(me, &q->inode->gfid, false);
    }
    if (all_zero && dict_has(q->xdata, "glusterfs.xattrop-purge-index"))
        (void)index_store_remove_dir(me, &q->inode->gfid, true);
}

/* The inode has been removed with counters that were not zero (a session was still open): nothing is left to heal. */
static void remove_links(struct translator *me, struct index_node *n, const struct gfid *g)
{
    for (int kind = 0; kind < INDEX_CHANGES; kind++)
        remove_link(me, n, (enum index_kind)kind, g);
}

static FIBER int index_xattrop(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct index_node *n = node_of(me, q->inode);
    if (!n)
        return -ENOMEM;
    SCOPED(inode_unref) UNUSED struct inode *kept = inode_ref(q->inode);
    int e = fiber_mutex_lock(&n->busy, &call->scope);
    if (e < 0)
        return e;
    e = before(me, n, q);
    if (e == 0)
        e = child_call(me, 0, call, q, r);
    if (e >= 0)
        after(me, n, q, r->xattrs);
    else if (e == -ENOENT || e == -ESTALE)
        remove_links(me, n, &q->inode->gfid);
    fiber_mutex_unlock(&n->busy);
    if (q->xdata)
        index_answer_link_count(me->state, q->xdata, &r->xdata);
    return e;
}

/* ---- getxattr ---- */

static FIBER int index_getxattr(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    static const struct {
        const char *name;
        enum index_kind kind;
        bool is_count;
    } names[] = {
        { "glusterfs.xattrop_index_gfid", INDEX_XATTROP, false },
        { "glusterfs.xattrop_dirty_gfid", INDEX_DIRTY, false },
        { "glusterfs.xattrop_entry_changes_gfid", INDEX_CHANGES, false },
        { "glusterfs.xattrop_index_count", INDEX_XATTROP, true },
        { "glusterfs.xattrop_dirty_count", INDEX_DIRTY, true },
        { "glusterfs.xattrop_entry_changes_count", INDEX_CHANGES, true },
    };
    struct index *s = me->state;

    for (size_t i = 0; q->text && i < ARRAY_SIZE(names); i++) {
        if (strcmp(q->text, names[i].name) != 0)
            continue;
        const struct index_dir *d = &s->dirs[names[i].kind];
        int e = names[i].is_count ? dict_put_uint(&r->xattrs, q->text, d->count)
                                  : dict_put_bin(&r->xattrs, q->text, d->gfid.bytes, 16);
        return e < 0 ? e : names[i].is_count ? 8 : 16;
    }
    return child_call(me, 0, call, q, r);
}

/* ---- life ---- */

static int index_init(struct translator *me, struct error *err)
{
    struct index *s = me->state;

    s->brick_fd = -1;
    for (int kind = 0; kind < INDEX_KINDS; kind++)
        s->dirs[kind].fd = -1;
    if (!s->base)
        return error_set(err, -EINVAL, "there is no 'option index-base': it names <brick>/.glusterfs/indices");
    return 0;
}

static FIBER int index_start(struct translator *me, struct error *err)
{
    return index_store_open(me, err);
}

static void index_fini(struct translator *me)
{
    index_forget_virtual(me->state);
    index_store_close(me->state);
}

static void index_forget(struct translator *me, struct inode *inode, void *ctx)
{
    mem_free(ctx);
}

static void index_dump(struct translator *me, struct dump *out)
{
    struct index *s = me->state;
    dump_printf(out, "xattrop-pending-count", "%llu", (unsigned long long)s->dirs[INDEX_XATTROP].count);
    dump_printf(out, "dirty-count", "%llu", (unsigned long long)s->dirs[INDEX_DIRTY].count);
    dump_printf(out, "entry-changes-count", "%llu", (unsigned long long)s->dirs[INDEX_CHANGES].count);
}

static const struct option index_options[] = {
    OPT_PATH("index-base", struct index, base, .help = "<brick>/.glusterfs/indices"),
    OPT_STR("xattrop-pending-watchlist", struct index, pending_list, .def = "trusted.afr.",
            .help = "beginnings of xattr names; an inode with one that is not zero is listed in xattrop"),
    OPT_STR("xattrop-dirty-watchlist", struct index, dirty_list, .def = "trusted.afr.dirty",
            .help = "xattr names; an inode with one that is not zero is listed in dirty"),
    OPT_STR("xattrop64-watchlist", struct index, ec_list, .def = "trusted.ec.dirty",
            .help = "xattr names of 64-bit counters; an inode with one that is not zero is listed in xattrop"),
    OPT_END,
};

const struct translator_class index_class = {
    .type = "features/index",
    .state_size = sizeof(struct index),
    .options = index_options,
    .ops = {
        [OP_XATTROP] = index_xattrop,
        [OP_GETXATTR] = index_getxattr,
        [OP_LOOKUP] = index_lookup,
        [OP_STAT] = index_stat,
        [OP_OPENDIR] = index_opendir,
        [OP_READDIR] = index_readdir,
        [OP_READDIRP] = index_readdir,
        [OP_UNLINK] = index_unlink,
        [OP_RMDIR] = index_rmdir,
        [OP_FSYNCDIR] = index_fsyncdir,
        [OP_COMPOUND] = default_compound,
    },
    .children_min = 1,
    .children_max = 1,
    .uses_inode_ctx = true,
    .uses_fd_ctx = true,
    .uses_client_ctx = true,
    .init = index_init,
    .start = index_start,
    .fini = index_fini,
    .inode_forget = index_forget,
    .fd_release = index_fd_release,
    .client_gone = index_client_gone,
    .dump = index_dump,
};
