/* cluster/replicate/listing.c - reading directories.
 *
 * Cookies are a brick's own, so a listing stays with the child it began with. Attributes of an entry are passed on only
 * when that child is known to be good for the entry; otherwise the caller has to look it up.
 */
#include "cluster/replicate/replicate_internal.h"
#include "core/mem.h"
#include "graph/graph.h"

/* May the listing child's word on this entry stand? It must be good for it, and the one that a stat would ask unless
 * all bricks have the same times: theirs differ where they come from their own clocks. */
static bool is_proven(struct translator *me, struct call *call, const struct dir_entry *entry, unsigned child,
                      bool all_clean)
{
    struct replicate *s = replicate_of(me);
    const struct inode stranger = { .gfid = entry->stat.gfid, .type = iatt_type(&entry->stat) };
    SCOPED(inode_unref) struct inode *inode = inode_table_find(me->graph, &entry->stat.gfid);
    struct inode_state *state = inode ? inode_state(me, inode) : NULL;
    uint32_t good = all_clean ? s->all & ~s->arbiter : 0;

    if (state && state->known.generation == s->generation)
        good = state->known.data & state->known.metadata;
    if (!(good & bit(child)))
        return false;
    return s->times_are_sent || read_choose(me, call, &stranger, good) == child;
}

static void forget_attributes(struct dir_entry *entry)
{
    memset(&entry->stat, 0, sizeof(entry->stat));
    if (entry->xattrs)
        dict_unref(take(entry->xattrs));
}

static void filter(struct translator *me, struct call *call, const struct request *q, unsigned child,
                   struct dir_entries *entries)
{
    struct replicate *s = replicate_of(me);
    bool all_clean = s->up == s->all && !s->heals_pending && !s->consistent_metadata;
    bool hides = gfid_is_root(&q->inode->gfid) && call->pid >= 0;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < entries->count; i++) {
        struct dir_entry *entry = &entries->list[i];

        if (hides && name_is_private(entry->name)) {
            forget_attributes(entry); /* the name lives in the list */
            continue;
        }
        if (iatt_is_set(&entry->stat) && !is_proven(me, call, entry, child, all_clean))
            forget_attributes(entry);
        if (kept != i)
            entries->list[kept] = *entry;
        kept++;
    }
    entries->count = kept;
}

static FIBER int list_from(struct translator *me, struct call *call, const struct request *q, unsigned child,
                           const struct known *known, struct reply *r)
{
    int ret = known ? ask_child_proven(me, child, call, q, known, r) : ask_child(me, child, call, q, r);

    /* A page of nothing but private names is not the end. */
    while (ret > 0 && r->entries) {
        uint64_t next = r->entries->list[r->entries->count - 1].offset;
        struct request more = *q;

        filter(me, call, q, child, r->entries);
        if (r->entries->count > 0 || r->entries->at_end)
            return (int)r->entries->count;
        more.offset = next;
        reply_done(r);
        ret = ask_child(me, child, call, &more, r);
    }
    return ret;
}

static FIBER int begin_listing(struct translator *me, struct call *call, const struct request *q,
                               struct fd_state *state, struct reply *r)
{
    struct replicate *s = replicate_of(me);
    struct known known;
    uint32_t from;
    int ret = known_get(me, call, q->inode, NULL, false, &known);

    if (ret < 0)
        return ret;
    from = known.data ? known.data : known.seen & ~s->arbiter; /* no copy is right: any shows most of the names */
    from &= s->up;
    ret = -ENOTCONN;
    while (from) {
        unsigned child = read_choose(me, call, q->inode, from);

        state->listing_child = (int)child;
        ret = list_from(me, call, q, child, known.data ? &known : NULL, r);
        if (ret >= 0 || (!result_is_unknown(ret) && ret != -ESTALE) || scope_check(&call->scope, me->env) < 0)
            return ret;
        s->failovers++;
        reply_done(r);
        from &= ~bit(child);
    }
    return ret;
}

FIBER int replicate_readdir(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct fd_state *state = fd_state(me, q->fd);
    int ret = children_admit(me);

    if (ret < 0)
        return ret;
    if (!state)
        return -ENOMEM;
    if (q->offset == 0 || state->listing_child < 0)
        return begin_listing(me, call, q, state, r);
    return list_from(me, call, q, (unsigned)state->listing_child, NULL, r);
}
