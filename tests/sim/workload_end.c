/* sim/workload_end.c - what readers and disks must show after quiet. */
#include "cluster/replicate/heal.h"
#include "core/mem.h"
#include "sim/workload_internal.h"
#include <stdio.h>

struct verify {
    struct workload *w;
    unsigned client;
    bool *done;
};

static FIBER void verify(void *arg)
{
    struct verify *v = arg;
    struct actor *a = actor_new(v->w, v->client);
    for (unsigned f = 0; f < (v->w->is_rich ? SHARED_FILES + v->w->cluster->config.clients : SHARED_FILES); f++)
        for (unsigned b = 0; b < BLOCKS; b++)
            read_block(a, f, b);
    for (unsigned d = 0; d < DIRS; d++)
        for (unsigned n = 0; n < NAMES; n++)
            check_name(a, d, n);
    if (v->w->is_rich)
        check_old(a);
    for (unsigned i = 0; v->w->is_rich && i < ATTRS; i++) {
        check_attr(a, i, ATTR_OWNER_AND_MODE);
        check_attr(a, i, ATTR_XATTR);
    }
    *v->done = true;
    actor_free(a);
    mem_free(v);
}

void workload_verify(struct workload *w, unsigned client, bool *ret_done)
{
    struct verify *v = NEW(struct verify);
    assert(v);
    *v = (struct verify) { .w = w, .client = client, .done = ret_done };
    int r = fiber_spawn(w->cluster->clients[client].env, "verify", verify, v);
    assert(r == 0);
}

/* ---- split brains ---- */

void actor_failed(struct actor *a, const struct gfid *gfid, const char *what, unsigned x, unsigned y, int error)
{
    struct workload *w = a->w;
    if (!w->model.is_final || !w->cluster->config.has_healers || actor_is_dead(a))
        return;
    if (error != -EIO || !workload_is_split(w, gfid))
        model_violation(&w->model, "%s: after all is healed, %s %u/%u answers %s%s", a->who, what, x, y,
                        errno_name(error), error == -EIO ? " and heal reports no split brain" : "");
}

bool workload_is_split(const struct workload *w, const struct gfid *gfid)
{
    for (unsigned i = 0; i < w->split_count; i++)
        if (gfid_equal(&w->splits[i], gfid))
            return true;
    return false;
}

static void add_split(struct workload *w, const struct gfid *gfid)
{
    if (workload_is_split(w, gfid))
        return;
    if (w->split_count == WORKLOAD_MAX_SPLITS)
        model_violation(&w->model, "more than %d split brains", WORKLOAD_MAX_SPLITS);
    else
        w->splits[w->split_count++] = *gfid;
}

struct looking {
    struct workload *w;
    struct node *through;
    bool *done;
    struct gfid *gfids; /* of all inodes of all disks */
    size_t count, room;
};

static void note_gfid(struct disk_node *n, void *arg)
{
    struct looking *l = arg;
    if (disk_is_index(disk_gfid(n)))
        return;
    for (size_t i = 0; i < l->count; i++)
        if (gfid_equal(&l->gfids[i], disk_gfid(n)))
            return;
    if (l->count == l->room) {
        l->room = l->room * 2 + 64;
        l->gfids = mem_realloc(l->gfids, l->room * sizeof(*l->gfids));
        assert(l->gfids);
    }
    l->gfids[l->count++] = *disk_gfid(n);
}

/* What is in a directory that cannot be made elsewhere cannot be there either. */
static void add_names_below(struct workload *w, const struct gfid *dir)
{
    const struct cluster *c = w->cluster;
    for (unsigned i = 0; i < c->config.bricks; i++) {
        const struct disk_node *n = disk_find(c->bricks[i].disk.disk, dir);
        const char *name;
        struct gfid gfid;
        for (uint64_t cookie = 0; n && disk_next_entry(n, cookie, &name, &gfid, &cookie);)
            add_split(w, &gfid);
    }
}

static FIBER void look_at_name(struct looking *l, struct call *call, struct inode *dir, const char *name)
{
    SCOPED(heal_view_free) struct heal_view *view = heal_view_new();
    if (heal_look_name(l->through->graph->root, call, dir, name, view) < 0 || !view->split_brain)
        return;
    add_split(l->w, &dir->gfid); /* a reader of the name gets EIO, too */
    for (unsigned i = 0; i < l->w->cluster->config.bricks; i++) {
        if (view->child[i].error < 0)
            continue;
        add_split(l->w, &view->child[i].stat.gfid);
        add_names_below(l->w, &view->child[i].stat.gfid);
    }
}

static FIBER void look_at_names(struct looking *l, struct call *call, struct inode *dir)
{
    const struct cluster *c = l->w->cluster;
    for (unsigned i = 0; i < c->config.bricks; i++) {
        const char *name;
        struct gfid gfid;
        struct disk_node *n;
        for (uint64_t cookie = 0; (n = disk_find(c->bricks[i].disk.disk, &dir->gfid)) &&
                                  disk_next_entry(n, cookie, &name, &gfid, &cookie);) {
            char text[64];
            snprintf(text, sizeof(text), "%s", name);
            if (text[0] != '.')
                look_at_name(l, call, dir, text);
        }
    }
}

static bool is_dir_somewhere(const struct cluster *c, const struct gfid *gfid)
{
    for (unsigned i = 0; i < c->config.bricks; i++) {
        const struct disk_node *n = disk_find(c->bricks[i].disk.disk, gfid);
        struct iatt a = { 0 };
        if (n)
            disk_stat(n, &a);
        if (S_ISDIR(a.mode))
            return true;
    }
    return false;
}

static FIBER void look(void *arg)
{
    struct looking *l = arg;
    struct translator *replicate = l->through->graph->root;
    struct call call;
    call_init(&call, l->through->graph);
    for (size_t i = 0; i < l->count; i++) {
        SCOPED(inode_unref) struct inode *inode = inode_table_get(l->through->graph, &l->gfids[i], 0);
        SCOPED(heal_view_free) struct heal_view *view = heal_view_new();
        if (heal_look(replicate, &call, inode, view) == 0 && view->split_brain)
            add_split(l->w, &l->gfids[i]);
        if (is_dir_somewhere(l->w->cluster, &l->gfids[i]))
            look_at_names(l, &call, inode);
    }
    call_done(&call);
    *l->done = true;
    mem_free(l->gfids);
    mem_free(l);
}

void workload_find_splits(struct workload *w, struct node *through, bool *ret_done)
{
    struct looking *l = NEW(struct looking);
    assert(l && through->is_up);
    *l = (struct looking) { .w = w, .through = through, .done = ret_done };
    for (unsigned i = 0; i < w->cluster->config.bricks; i++)
        disk_each(w->cluster->bricks[i].disk.disk, note_gfid, l);
    int r = fiber_spawn(through->env, "look", look, l);
    assert(r == 0);
}

/* ---- disks ---- */

static bool has_mark(const struct cluster *c, const struct gfid *gfid)
{
    static const uint8_t none[12];
    for (unsigned i = 0; i < c->config.bricks; i++) {
        struct disk_node *n = disk_find(c->bricks[i].disk.disk, gfid);
        const char *key;
        const struct dict_value *v;
        if (!n)
            continue;
        for (size_t at = 0; dict_next(disk_xattrs(n), &at, &key, &v);)
            if (!strncmp(key, "trusted.afr.", 12) && v->size_bytes == 12 && memcmp(v->bytes, none, 12) != 0)
                return true;
    }
    return false;
}

static bool same_data(struct disk *a, struct disk *b, const struct gfid *gfid)
{
    struct disk_node *x = disk_find(a, gfid), *y = disk_find(b, gfid);
    if (!x || !y)
        return x == y;
    for (unsigned i = 0; i < BLOCKS; i++) {
        uint8_t p[MODEL_BLOCK] = { 0 }, q[MODEL_BLOCK] = { 0 };
        size_t got = disk_read(x, i * MODEL_BLOCK, p, sizeof(p));
        if (got != disk_read(y, i * MODEL_BLOCK, q, sizeof(q)) || memcmp(p, q, sizeof(p)) != 0)
            return false;
    }
    return true;
}

static bool same_name(struct disk *a, struct disk *b, const struct gfid *dir, const char *name)
{
    struct disk_node *x = disk_child(a, dir, name), *y = disk_child(b, dir, name);
    return !x || !y ? x == y : gfid_equal(disk_gfid(x), disk_gfid(y));
}

unsigned workload_check_disks(struct workload *w)
{
    struct cluster *c = w->cluster;
    unsigned unmarked = 0;
    for (unsigned i = 1; i < c->config.bricks; i++) {
        struct disk *a = c->bricks[0].disk.disk, *b = c->bricks[i].disk.disk;
        bool is_arbiter = c->config.has_arbiter && i == c->config.bricks - 1;
        for (unsigned f = 0; f < SHARED_FILES; f++)
            if (!is_arbiter && !same_data(a, b, &w->file_gfids[f]) && !has_mark(c, &w->file_gfids[f])) {
                model_violation(&w->model, "file %u differs between bricks 0 and %u and no counter says so", f, i);
                unmarked++;
            }
        for (unsigned d = 0; d < DIRS; d++)
            for (unsigned n = 0; n < NAMES; n++) {
                char text[16];
                if (same_name(a, b, &w->dir_gfids[d], name_text(n, text)) || has_mark(c, &w->dir_gfids[d]))
                    continue;
                model_violation(&w->model, "name %u/%u differs between bricks 0 and %u and no counter says so", d, n,
                                i);
                unmarked++;
            }
    }
    return unmarked;
}
