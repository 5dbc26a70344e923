#include "unit/replicate/heal_world.h"
#include <stdio.h>

FIBER enum heal_outcome heal_how(struct world *w, const struct gfid *gfid, const struct heal_how *how,
                                 struct heal_report *report)
{
    SCOPED(inode_unref) struct inode *inode = inode_table_get(w->graph, gfid, 0);
    struct call call;
    int r;

    call_init(&call, w->graph);
    r = heal_inode(w->top, &call, inode, how, report);
    call_done(&call);
    if (r < 0) {
        report->error = r;
        report->outcome = HEAL_ERROR;
    }
    return report->outcome;
}

FIBER enum heal_outcome heal_now(struct world *w, const struct gfid *gfid, struct heal_report *report)
{
    const struct heal_how how = { 0 };

    return heal_how(w, gfid, &how, report);
}

/* ---- a crawl ---- */

static bool has_counter(struct mem_node *n)
{
    const struct dict_value *value;
    const char *key;
    size_t at = 0;

    while (dict_next(n->xattrs, &at, &key, &value)) {
        if (strncmp(key, "trusted.afr.", 12) != 0)
            continue;
        for (size_t i = 0; i < value->size_bytes; i++) {
            if (value->bytes[i])
                return true;
        }
    }
    return false;
}

#define LISTED_MAX 64

static unsigned list_pending(const struct world *w, struct gfid *list)
{
    unsigned count = 0;

    for (unsigned i = 0; i < w->count; i++) {
        struct mem_node *n;

        if (!w->b[i]->is_up)
            continue;
        list_for_each (n, &w->b[i]->store->nodes, of_store) {
            if (has_counter(n) && count < LISTED_MAX)
                list[count++] = n->gfid;
        }
    }
    return count;
}

FIBER void heal_crawl(struct world *w)
{
    const struct heal_how how = { .flags = HEAL_FROM_INDEX };
    SCOPED(heal_report_free) struct heal_report *report = heal_report_new();
    struct gfid list[LISTED_MAX];
    struct call call;

    call_init(&call, w->graph);
    for (int round = 0; round < 6; round++) {
        unsigned count = list_pending(w, list);
        bool is_healed = false;

        for (unsigned i = 0; i < count; i++)
            is_healed = heal_how(w, &list[i], &how, report) == HEAL_DONE || is_healed;
        if (!is_healed && round > 1)
            break;
    }
    (void)heal_clean_anonymous(w->top, &call, &how); /* needs all bricks */
    call_done(&call);
}

/* ---- comparing ---- */

static bool differ(const char *what, const struct gfid *gfid, const char *name, unsigned brick)
{
    printf("# brick %u differs from brick 0: %s of %s %s\n", brick, what, GFID_TEXT(gfid), name);
    return false;
}

static bool same_xattrs(struct mem_node *a, struct mem_node *b)
{
    const struct dict_value *value;
    const char *key;
    size_t at = 0;

    while (dict_next(a->xattrs, &at, &key, &value)) {
        const struct dict_value *other = dict_get(b->xattrs, key);

        if (strncmp(key, "trusted.afr.", 12) == 0)
            continue;
        if (!other || other->size_bytes != value->size_bytes ||
            memcmp(other->bytes, value->bytes, value->size_bytes) != 0)
            return false;
    }
    return true;
}

static bool same_node(struct mem_node *a, struct mem_node *b, unsigned brick)
{
    if (a->stat.mode != b->stat.mode || a->stat.uid != b->stat.uid || a->stat.gid != b->stat.gid)
        return differ("attributes", &a->gfid, "", brick);
    if (!same_xattrs(a, b) || !same_xattrs(b, a))
        return differ("xattrs", &a->gfid, "", brick);
    if (a->stat.size != b->stat.size || (a->stat.size && memcmp(a->data, b->data, a->stat.size) != 0))
        return differ("contents", &a->gfid, "", brick);
    if ((a->target != NULL) != (b->target != NULL) || (a->target && strcmp(a->target, b->target) != 0))
        return differ("target", &a->gfid, "", brick);
    return true;
}

static bool is_internal_name(const char *name)
{
    return strncmp(name, ".glusterfs-anonymous-inode", 26) == 0;
}

static bool has_names_of(struct mem_store *a, struct mem_store *b, unsigned brick)
{
    struct mem_node *dir;

    list_for_each (dir, &a->nodes, of_store) {
        struct mem_entry *e;

        list_for_each (e, &dir->entries, of_node) {
            struct mem_node *n = mem_name(b, &dir->gfid, e->name);

            if (!is_internal_name(e->name) && (!n || !gfid_equal(&n->gfid, &e->gfid)))
                return differ("name", &dir->gfid, e->name, brick);
        }
    }
    return true;
}

/* The directory for names put aside is made where it is needed. */
static bool is_internal(struct mem_store *store, const struct mem_node *n)
{
    struct mem_entry *e;

    list_for_each (e, &mem_find(store, &gfid_root)->entries, of_node) {
        if (is_internal_name(e->name) && gfid_equal(&e->gfid, &n->gfid))
            return true;
    }
    return false;
}

bool bricks_are_equal(const struct world *w)
{
    struct mem_store *first = w->b[0]->store;

    for (unsigned i = 1; i < w->count; i++) {
        struct mem_store *other = w->b[i]->store;
        struct mem_node *n;

        if (!has_names_of(first, other, i) || !has_names_of(other, first, i))
            return false;
        list_for_each (n, &first->nodes, of_store) {
            struct mem_node *same = mem_find(other, &n->gfid);

            if (is_internal(first, n))
                continue;
            if (!same)
                return differ("existence", &n->gfid, "", i);
            if (!same_node(n, same, i))
                return false;
        }
    }
    return true;
}

bool no_counters(const struct world *w)
{
    for (unsigned i = 0; i < w->count; i++) {
        struct mem_node *n;

        list_for_each (n, &w->b[i]->store->nodes, of_store) {
            if (has_counter(n)) {
                printf("# brick %u has counters left on %s\n", i, GFID_TEXT(&n->gfid));
                return false;
            }
        }
    }
    return true;
}
