/* sim/simindex - sim/index: what features/index does, with its directories on the simulated disk.
 *
 * A link is made before the counters move and removed after they are zero, each a step of its own in the disk's
 * journal, so that a power cut falls between them as on a real brick. */
#include "core/mem.h"
#include "graph/graph.h"
#include "sim/classes.h"
#include "sim/simdisk.h"
#include <dirent.h>
#include <stdio.h>

enum kind { KIND_XATTROP, KIND_DIRTY, KIND_CHANGES };
static_assert(KIND_CHANGES + 1 == DISK_INDEX_KINDS, "disk.h counts them");

struct simindex {
    struct gfid virtual[DISK_INDEX_KINDS]; /* new at each start */
};

static struct disk *disk(struct translator *me)
{
    return ((struct simdisk_host *)me->graph->edge)->disk;
}

/* ---- counters ---- */

static bool kind_of(const char *key, enum kind *ret)
{
    if (strncmp(key, "trusted.afr.", 12) != 0)
        return false;
    *ret = strcmp(key, "trusted.afr.dirty") == 0 ? KIND_DIRTY : KIND_XATTROP;
    return true;
}

struct watched {
    bool has[2], not_zero[2];
};

static struct watched look_at(const struct dict *xattrs)
{
    struct watched w = { 0 };
    const char *key;
    const struct dict_value *v;
    enum kind kind;
    for (size_t at = 0; dict_next(xattrs, &at, &key, &v);) {
        if (!kind_of(key, &kind))
            continue;
        w.has[kind] = true;
        for (size_t i = 0; i < v->size_bytes; i++)
            w.not_zero[kind] |= v->bytes[i] != 0;
    }
    return w;
}

/* Heal daemons that listed the index and want to know of the next entry: once per listing. */
static void tell_healers(struct translator *me)
{
    struct client *client;
    list_for_each (client, &me->graph->clients, of_graph) {
        void **slot = client_ctx(client, me);
        if (!*slot)
            continue;
        *slot = NULL;
        notify_parents(me, &(struct event) { .kind = EVENT_HEAL_NEEDED, .client = client });
    }
}

static void simindex_client_gone(struct translator *me, struct client *client)
{
    struct gfid dir = disk_index_gfid(KIND_DIRTY);
    *client_ctx(client, me) = NULL;
    if (me->graph->edge && disk_entry_count(disk_find(disk(me), &dir)))
        tell_healers(me);
}

static int add_link(struct translator *me, enum kind kind, const struct gfid *gfid)
{
    struct gfid dir = disk_index_gfid(kind), base = disk_index_base();
    int r = disk_link(disk(me), &base, &dir, GFID_TEXT(gfid));
    if (r == 0 && kind == KIND_XATTROP)
        tell_healers(me);
    return r == -EEXIST ? 0 : r;
}

static int remove_link(struct translator *me, enum kind kind, const struct gfid *gfid)
{
    struct gfid dir = disk_index_gfid(kind);
    return disk_unlink(disk(me), &dir, GFID_TEXT(gfid), false);
}

static int add_name(struct translator *me, const struct gfid *dir, const char *name)
{
    struct gfid top = disk_index_gfid(KIND_CHANGES), base = disk_index_base();
    struct iatt a = { .gfid = disk_changes_gfid(dir), .mode = S_IFDIR | 0700 };
    int r = disk_make(disk(me), &top, GFID_TEXT(dir), &a, NULL, NULL);
    if (r < 0 && r != -EEXIST)
        return r;
    r = disk_link(disk(me), &base, &a.gfid, name);
    return r == -EEXIST ? 0 : r;
}

static int remove_name(struct translator *me, const struct gfid *dir, const char *name)
{
    struct gfid changes = disk_changes_gfid(dir);
    return disk_unlink(disk(me), &changes, name, false);
}

static int remove_dir(struct translator *me, const struct gfid *dir, bool even_if_full)
{
    struct gfid top = disk_index_gfid(KIND_CHANGES), changes = disk_changes_gfid(dir);
    const char *name;
    struct gfid of;
    uint64_t cookie;
    while (even_if_full) {
        struct disk_node *n = disk_find(disk(me), &changes);
        if (!n || !disk_next_entry(n, 0, &name, &of, &cookie))
            break;
        char text[256];
        snprintf(text, sizeof(text), "%s", name);
        int r = disk_unlink(disk(me), &changes, text, false);
        if (r < 0)
            return r;
    }
    return disk_rmdir(disk(me), &top, GFID_TEXT(dir));
}

static int before(struct translator *me, const struct request *q)
{
    struct watched w = look_at(q->xattrs);
    const char *name;
    int r = 0;
    for (unsigned kind = 0; r == 0 && kind < KIND_CHANGES; kind++)
        if (w.not_zero[kind])
            r = add_link(me, (enum kind)kind, &q->inode->gfid);
    if (r == 0 && dict_get_str(q->xdata, "glusterfs.xattrop-entry-create", &name) == 0)
        r = add_name(me, &q->inode->gfid, name);
    return r;
}

static void after(struct translator *me, const struct request *q, const struct dict *result)
{
    struct watched w = look_at(result);
    const char *name;
    for (unsigned kind = 0; kind < KIND_CHANGES; kind++)
        if (w.has[kind] && !w.not_zero[kind])
            (void)remove_link(me, (enum kind)kind, &q->inode->gfid);
    bool all_zero = w.has[KIND_XATTROP] && !w.not_zero[KIND_XATTROP];
    if (dict_get_str(q->xdata, "glusterfs.xattrop-entry-delete", &name) == 0) {
        (void)remove_name(me, &q->inode->gfid, name);
        if (all_zero)
            (void)remove_dir(me, &q->inode->gfid, false);
    }
    if (all_zero && dict_has(q->xdata, "glusterfs.xattrop-purge-index"))
        (void)remove_dir(me, &q->inode->gfid, true);
}

/* A real brick's index takes one xattrop of an inode after the other. */
struct node {
    struct fiber_mutex busy;
};

static struct node *node_of(struct translator *me, struct inode *inode)
{
    void **slot = inode_ctx(inode, me);
    if (!*slot) {
        struct node *n = NEW(struct node);
        assert(n);
        fiber_mutex_init(&n->busy);
        *slot = n;
    }
    return *slot;
}

static void simindex_forget(struct translator *me UNUSED, struct inode *inode UNUSED, void *ctx)
{
    mem_free(ctx);
}

static void answer_link_count(struct translator *me, const struct request *q, struct reply *r)
{
    const char *what;
    if (!me->graph->edge || dict_get_str(q->xdata, "link-count", &what) < 0 ||
        strcmp(what, "glusterfs.xattrop_index_count") != 0)
        return;
    struct gfid dir = disk_index_gfid(KIND_XATTROP);
    if (!r->xdata)
        r->xdata = dict_new();
    (void)dict_set_int(r->xdata, "link-count", disk_entry_count(disk_find(disk(me), &dir)) ? 1 : 0);
}

static FIBER int simindex_xattrop(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    SCOPED(inode_unref) UNUSED struct inode *kept = inode_ref(q->inode);
    struct node *n = node_of(me, q->inode);
    int e = fiber_mutex_lock(&n->busy, &call->scope);
    if (e < 0)
        return e;
    e = me->graph->edge ? before(me, q) : -ESHUTDOWN;
    if (e == 0)
        e = child_call(me, 0, call, q, r);
    if (me->graph->edge && e >= 0) {
        after(me, q, r->xattrs);
    } else if (me->graph->edge && (e == -ENOENT || e == -ESTALE)) {
        (void)remove_link(me, KIND_XATTROP, &q->inode->gfid);
        (void)remove_link(me, KIND_DIRTY, &q->inode->gfid);
    }
    fiber_mutex_unlock(&n->busy);
    answer_link_count(me, q, r);
    return e;
}

/* ---- the directories, seen as inodes ---- */

static struct gfid xor_gfid(const struct gfid *a, const struct gfid *b)
{
    struct gfid g;
    for (unsigned i = 0; i < 16; i++)
        g.bytes[i] = a->bytes[i] ^ b->bytes[i];
    return g;
}

/* Is it one of ours? Then the gfid of the directory on the disk, and (entry-changes/X) X, else the null gfid. */
static bool is_virtual(struct translator *me, const struct inode *inode, enum kind *ret_kind, struct gfid *ret_on_disk,
                       struct gfid *ret_of)
{
    struct simindex *s = me->state;
    if (!inode || !me->graph->edge)
        return false;
    *ret_of = gfid_null;
    for (unsigned kind = 0; kind < DISK_INDEX_KINDS; kind++) {
        if (gfid_equal(&inode->gfid, &s->virtual[kind])) {
            *ret_kind = (enum kind)kind;
            *ret_on_disk = disk_index_gfid(kind);
            return true;
        }
    }
    struct gfid of = xor_gfid(&s->virtual[KIND_CHANGES], &inode -> gfid), top = disk_index_gfid(KIND_CHANGES);
    if (!disk_child(disk(me), &top, GFID_TEXT(&of)))
        return false;
    *ret_kind = KIND_CHANGES;
    *ret_of = of;
    *ret_on_disk = disk_changes_gfid(&of);
    return true;
}

static int stat_dir(struct translator *me, const struct gfid *on_disk, const struct gfid *as, struct iatt *ret)
{
    struct disk_node *n = disk_find(disk(me), on_disk);
    if (!n)
        return -ESTALE;
    disk_stat(n, ret);
    ret->gfid = *as;
    ret->ino = gfid_to_ino(as);
    return 0;
}

static int look_up(struct translator *me, const struct request *q, enum kind kind, const struct gfid *on_disk,
                   const struct gfid *of, struct reply *r)
{
    struct simindex *s = me->state;
    struct disk_node *n = disk_child(disk(me), on_disk, q->name);
    struct gfid g;
    if (!n)
        return -ENOENT;
    disk_stat(n, &r->stat);
    if (gfid_is_null(of) && gfid_parse(q->name, &g) == 0) {
        r->stat.gfid = xor_gfid(&s->virtual[kind], &g);
    } else {
        r->stat.gfid = xor_gfid(&s->virtual[KIND_DIRTY], of);
        for (size_t i = 0; q->name[i]; i++)
            r->stat.gfid.bytes[i % 16] = (uint8_t)(r->stat.gfid.bytes[i % 16] * 31 + (uint8_t)q->name[i]);
    }
    r->stat.ino = gfid_to_ino(&r->stat.gfid);
    return stat_dir(me, on_disk, &q->parent->gfid, &r->post);
}

static FIBER int simindex_lookup(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    enum kind kind;
    struct gfid on_disk, of;
    if (q->parent && q->name && is_virtual(me, q->parent, &kind, &on_disk, &of))
        return look_up(me, q, kind, &on_disk, &of, r);
    if (!q->parent && is_virtual(me, q->inode, &kind, &on_disk, &of))
        return stat_dir(me, &on_disk, &q->inode->gfid, &r->stat);
    int e = child_call(me, 0, call, q, r);
    answer_link_count(me, q, r);
    return e;
}

static FIBER int simindex_stat(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    enum kind kind;
    struct gfid on_disk, of;
    if (is_virtual(me, q->inode, &kind, &on_disk, &of))
        return stat_dir(me, &on_disk, &q->inode->gfid, &r->stat);
    int e = child_call(me, 0, call, q, r);
    answer_link_count(me, q, r);
    return e;
}

static FIBER int simindex_opendir(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    enum kind kind;
    struct gfid on_disk, of;
    if (is_virtual(me, q->inode, &kind, &on_disk, &of))
        return 0;
    return child_call(me, 0, call, q, r);
}

static uint32_t type_of(struct translator *me, const char *name)
{
    struct gfid g;
    struct disk_node *n = gfid_parse(name, &g) == 0 ? disk_find(disk(me), &g) : NULL;
    struct iatt a;
    if (!n)
        return DT_UNKNOWN;
    disk_stat(n, &a);
    return (a.mode & S_IFMT) >> 12;
}

static int list(struct translator *me, const struct request *q, enum kind kind, const struct gfid *on_disk,
                const struct gfid *of, struct dir_entries *out)
{
    struct disk_node *dir = disk_find(disk(me), on_disk);
    const char *name;
    struct gfid gfid;
    uint64_t cookie = q->offset, used = 0;
    bool is_top = gfid_is_null(of), with_types = dict_has(q->xdata, "get-gfid-type");
    while (dir && disk_next_entry(dir, cookie, &name, &gfid, &cookie)) {
        used += strlen(name) + 32;
        if (used > q->size && out->count)
            return 0;
        uint32_t type = is_top && with_types ? type_of(me, name) : is_top && kind == KIND_CHANGES ? DT_DIR : DT_REG;
        struct dir_entry *entry;
        int e = dir_entries_add(out, name, strlen(name), cookie, cookie, type, &entry);
        if (e < 0)
            return e;
        if (q->op == OP_READDIRP) {
            disk_stat(disk_find(disk(me), &gfid), &entry->stat);
            entry->stat.gfid = gfid_null; /* it is not an inode */
        }
    }
    out->at_end = true;
    return 0;
}

static FIBER int simindex_readdir(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    enum kind kind;
    struct gfid on_disk, of;
    if (!is_virtual(me, q->inode, &kind, &on_disk, &of))
        return child_call(me, 0, call, q, r);
    if (kind == KIND_XATTROP && dict_has(q->xdata, "mortar.heal-notice") && call->client && !call->client->is_gone)
        *client_ctx(call->client, me) = me; /* that it is set is all it says */
    r->entries = dir_entries_new();
    int e = r->entries ? list(me, q, kind, &on_disk, &of, r->entries) : -ENOMEM;
    if (e < 0) {
        dir_entries_free(take(r->entries));
        return e;
    }
    return (int)r->entries->count;
}

static FIBER int simindex_fsyncdir(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    enum kind kind;
    struct gfid on_disk, of;
    return is_virtual(me, q->inode, &kind, &on_disk, &of) ? 0 : child_call(me, 0, call, q, r);
}

static FIBER int simindex_unlink(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    enum kind kind;
    struct gfid on_disk, of, g;
    if (!is_virtual(me, q->parent, &kind, &on_disk, &of)) {
        int e = child_call(me, 0, call, q, r);
        answer_link_count(me, q, r);
        return e;
    }
    int e = stat_dir(me, &on_disk, &q->parent->gfid, &r->pre);
    if (e == 0 && !gfid_is_null(&of))
        e = remove_name(me, &of, q->name);
    else if (e == 0)
        e = kind == KIND_CHANGES ? -EISDIR : gfid_parse(q->name, &g) < 0 ? -ENOENT : remove_link(me, kind, &g);
    return e < 0 ? e : stat_dir(me, &on_disk, &q->parent->gfid, &r->post);
}

static FIBER int simindex_rmdir(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    enum kind kind;
    struct gfid on_disk, of, g;
    if (!is_virtual(me, q->parent, &kind, &on_disk, &of))
        return child_call(me, 0, call, q, r);
    if (kind != KIND_CHANGES || !gfid_is_null(&of))
        return -ENOTDIR;
    if (gfid_parse(q->name, &g) < 0)
        return -ENOENT;
    int e = stat_dir(me, &on_disk, &q->parent->gfid, &r->pre);
    if (e == 0)
        e = remove_dir(me, &g, true);
    return e < 0 ? e : stat_dir(me, &on_disk, &q->parent->gfid, &r->post);
}

static FIBER int simindex_getxattr(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    static const char *const gfids[] = { "glusterfs.xattrop_index_gfid", "glusterfs.xattrop_dirty_gfid",
                                         "glusterfs.xattrop_entry_changes_gfid" };
    static const char *const counts[] = { "glusterfs.xattrop_index_count", "glusterfs.xattrop_dirty_count",
                                          "glusterfs.xattrop_entry_changes_count" };
    struct simindex *s = me->state;
    for (unsigned kind = 0; q->text && me->graph->edge && kind < DISK_INDEX_KINDS; kind++) {
        struct gfid dir = disk_index_gfid(kind);
        int e;
        if (!strcmp(q->text, gfids[kind])) {
            e = dict_put_bin(&r->xattrs, q->text, s->virtual[kind].bytes, 16);
            return e < 0 ? e : 16;
        }
        if (!strcmp(q->text, counts[kind])) {
            e = dict_put_uint(&r->xattrs, q->text, disk_entry_count(disk_find(disk(me), &dir)));
            return e < 0 ? e : 8;
        }
    }
    return child_call(me, 0, call, q, r);
}

static FIBER int simindex_start(struct translator *me, struct error *err)
{
    struct simindex *s = me->state;
    for (unsigned kind = 0; kind < DISK_INDEX_KINDS; kind++)
        s->virtual[kind] = gfid_random(me->env);
    return 0;
}

const struct translator_class simindex_class = {
    .type = "sim/index",
    .state_size = sizeof(struct simindex),
    .children_min = 1,
    .children_max = 1,
    .uses_inode_ctx = true,
    .uses_client_ctx = true,
    .client_gone = simindex_client_gone,
    .start = simindex_start,
    .inode_forget = simindex_forget,
    .ops = {
        [OP_XATTROP] = simindex_xattrop,
        [OP_GETXATTR] = simindex_getxattr,
        [OP_LOOKUP] = simindex_lookup,
        [OP_STAT] = simindex_stat,
        [OP_OPENDIR] = simindex_opendir,
        [OP_READDIR] = simindex_readdir,
        [OP_READDIRP] = simindex_readdir,
        [OP_UNLINK] = simindex_unlink,
        [OP_RMDIR] = simindex_rmdir,
        [OP_FSYNCDIR] = simindex_fsyncdir,
        [OP_COMPOUND] = default_compound,
    },
};
