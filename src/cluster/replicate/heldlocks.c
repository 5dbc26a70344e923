/* cluster/replicate/heldlocks.c - the POSIX locks applications hold through us, and putting them back.
 *
 * A brick forgets locks when it ends, and knows nothing of those taken while it was away. What was granted is remembered
 * here, per inode, as ranges by (client, owner, descriptor). A child that comes up, or was left out when a lock was
 * granted, is given them as reclaims, which a brick of ours serves before fresh requests (features/locks "reclaim").
 * A request that was refused after some children had granted it leaves there what its owner held before.
 */
#include "cluster/replicate/replicate_internal.h"
#include "core/mem.h"
#include "graph/graph.h"

struct held_lock {
    struct held_lock *next;
    struct client *client; /* compared, and passed on while it lasts: client_gone drops its locks */
    struct fd *fd;         /* likewise: fd_state_release drops them */
    struct lock_range range;
    uint64_t end; /* inclusive */
};

#define LAST_BYTE ((uint64_t)INT64_MAX) /* of the largest file */
#define ROUNDS    8                     /* of putting back, while its owner changes what it holds */

static uint64_t end_of(const struct lock_range *range)
{
    return range->length ? range->start + range->length - 1 : LAST_BYTE;
}

static void set_range(struct lock_range *range, uint64_t start, uint64_t end)
{
    range->start = start;
    range->length = end >= LAST_BYTE ? 0 : end - start + 1;
}

static bool is_of(const struct held_lock *l, const struct client *client, const struct lk_owner *owner)
{
    return l->client == client && lk_owner_equal(&l->range.owner, owner);
}

static struct inode_state *state_of(struct translator *me, struct inode *inode)
{
    return *inode_ctx(inode, me);
}

/* ---- remembering ---- */

static void add(struct translator *me, struct inode_state *state, const struct held_lock *like, uint64_t start,
                uint64_t end)
{
    struct held_lock *l = mem_dup(like, sizeof(*like));

    if (!l)
        return; /* not put back later: as if there were no such thing */
    set_range(&l->range, start, end);
    l->end = end;
    l->next = state->held;
    state->held = l;
    replicate_of(me)->held_count++;
}

static void drop(struct translator *me, struct held_lock **at)
{
    struct held_lock *l = *at;

    *at = l->next;
    mem_free(l);
    replicate_of(me)->held_count--;
}

/* Takes [start, end] out of what the owner holds. */
static void cut_out(struct translator *me, struct inode_state *state, const struct client *client,
                    const struct lk_owner *owner, uint64_t start, uint64_t end)
{
    struct held_lock *cut = NULL, *l;

    for (struct held_lock **at = &state->held; (l = *at);) {
        if (!is_of(l, client, owner) || l->end < start || l->range.start > end) {
            at = &l->next;
            continue;
        }
        *at = l->next;
        l->next = cut;
        cut = l;
    }
    while (cut) {
        if (cut->range.start < start)
            add(me, state, cut, cut->range.start, start - 1);
        if (cut->end > end)
            add(me, state, cut, end + 1, cut->end);
        drop(me, &cut);
    }
}

void held_lock_note(struct translator *me, const struct call *call, const struct request *q)
{
    bool is_unlock = q->command == LOCK_UNLOCK || q->lock->type == LOCK_NONE;
    struct inode_state *state = is_unlock ? state_of(me, q->inode) : inode_state(me, q->inode);

    if (!state || (!q->fd && !is_unlock))
        return;
    cut_out(me, state, call->client, &q->lock->owner, q->lock->start, end_of(q->lock));
    state->held_version++;
    if (is_unlock || !fd_state(me, q->fd))
        return;
    struct held_lock like = { .client = call->client, .fd = q->fd, .range = *q->lock };
    add(me, state, &like, q->lock->start, end_of(q->lock));
}

static void drop_where(struct translator *me, struct inode *inode, const struct client *client,
                       const struct lk_owner *owner, const struct fd *fd)
{
    struct inode_state *state = state_of(me, inode);

    if (!state || !state->held)
        return;
    state->held_version++;
    for (struct held_lock **at = &state->held; *at;) {
        if (fd ? (*at)->fd == fd : is_of(*at, client, owner))
            drop(me, at);
        else
            at = &(*at)->next;
    }
}

void held_lock_flushed(struct translator *me, struct inode *inode, const struct client *client,
                       const struct lk_owner *owner)
{
    drop_where(me, inode, client, owner, NULL);
}

void held_lock_fd_released(struct translator *me, struct fd *fd)
{
    drop_where(me, fd->inode, NULL, NULL, fd);
}

/* ---- putting back ---- */

/* The owner's piece at `pos` or the first behind it. */
static const struct held_lock *piece_at(const struct inode_state *state, const struct client *client,
                                        const struct lk_owner *owner, uint64_t pos)
{
    const struct held_lock *best = NULL;

    for (const struct held_lock *l = state->held; l; l = l->next)
        if (is_of(l, client, owner) && l->end >= pos && (!best || l->range.start < best->range.start))
            best = l;
    return best;
}

FIBER int held_lock_restore(struct translator *me, unsigned child, struct call *call, struct fd *fd,
                            const struct lock_range *range)
{
    SCOPED(dict_unref) struct dict *reclaim = dict_new();
    struct inode_state *state = inode_state(me, fd->inode);
    uint64_t pos = range->start, end = end_of(range);
    int result = 0;

    if (!reclaim || !state || dict_set_int(reclaim, "mortar.lock-reclaim", 1) < 0)
        return -ENOMEM;
    for (bool is_last = pos > end; !is_last && result >= 0;) {
        const struct held_lock *piece = piece_at(state, call->client, &range->owner, pos);
        bool is_gap = !piece || piece->range.start > pos;
        uint64_t until = is_gap ? (piece ? piece->range.start - 1 : LAST_BYTE) : piece->end;
        struct lock_range own = *range;

        until = MIN(until, end);
        set_range(&own, pos, until);
        own.type = is_gap ? LOCK_NONE : piece->range.type;
        own.pid = is_gap ? range->pid : piece->range.pid;
        struct request q = { .op = OP_LK, .inode = fd->inode, .fd = fd, .lock = &own, .xdata = reclaim };
        q.command = is_gap ? LOCK_UNLOCK : LOCK_TRY;
        SCOPED(reply_free) struct reply *r = reply_new();
        result = r ? ask_child(me, child, call, &q, r) : -ENOMEM;
        is_last = until == end;
        pos = until + 1;
    }
    return result;
}

struct item {
    struct fd *fd; /* a reference */
    struct client *client;
    struct lock_range range;
};

struct replay {
    struct translator *me;
    unsigned child;
    uint32_t epoch;
    struct item *items;
    size_t count, room;
};

static void collect(struct inode *inode, void *arg)
{
    struct replay *p = arg;
    struct inode_state *state = state_of(p->me, inode);

    for (const struct held_lock *l = state ? state->held : NULL; l && p->count < p->room; l = l->next)
        p->items[p->count++] = (struct item) { .fd = fd_ref(l->fd),
                                               .client = l->client ? client_ref(l->client) : NULL,
                                               .range = l->range };
}

/* All that is held now. Without memory: nothing. */
static void collect_all(struct replay *p)
{
    p->room = replicate_of(p->me)->held_count;
    p->items = p->room ? mem_array(p->room, sizeof(*p->items)) : NULL;
    if (p->items)
        inode_table_each(p->me->graph, collect, p);
}

static FIBER void put_back(struct replay *p, const struct item *item)
{
    struct inode_state *state = state_of(p->me, item->fd->inode);
    uint64_t version = 0;
    struct call call;
    int r = 0;

    call_init(&call, p->me->graph);
    call.pid = 0;
    call.client = item->client;
    call.lk_owner = item->range.owner;
    for (unsigned i = 0; i < ROUNDS && r >= 0 && (i == 0 || version != state->held_version); i++) {
        version = state->held_version;
        r = held_lock_restore(p->me, p->child, &call, item->fd, &item->range);
    }
    call_done(&call);
    if (r < 0 && r != -ENOTCONN)
        TLOG(p->me, LOG_WARNING, "lock-not-restored", "child=%s gfid=%s err=%s", p->me->children[p->child]->name,
             GFID_TEXT(&item->fd->inode->gfid), errno_name(r));
}

static void replay_fiber(void *arg)
{
    struct replay *p = arg;
    struct translator *me = p->me;
    struct replicate *s = replicate_of(me);

    collect_all(p);
    for (size_t i = 0; p->items && i < p->count; i++) {
        if (s->child[p->child].epoch == p->epoch && (s->up & bit(p->child)))
            put_back(p, &p->items[i]);
        fd_unref(p->items[i].fd);
        client_unref(p->items[i].client);
    }
    mem_free(p->items);
    mem_free(p);
    replicate_fiber_ended(me);
}

void held_locks_replay(struct translator *me, uint32_t children)
{
    struct replicate *s = replicate_of(me);

    for (unsigned i = 0; i < s->child_count && s->held_count; i++) {
        struct replay *p = children & bit(i) ? NEW(struct replay) : NULL;
        if (!p)
            continue; /* not wanted; or no memory: the next time it comes up */
        *p = (struct replay) { .me = me, .child = i, .epoch = s->child[i].epoch };
        if (replicate_spawn(me, "lock-replay", replay_fiber, p) < 0)
            mem_free(p);
    }
}

/* ---- a client of a brick that replicates itself is gone ---- */

struct gone {
    struct client *client; /* a reference */
    struct replay all;
};

static void gone_free(struct gone *g)
{
    for (size_t i = 0; g->all.items && i < g->all.count; i++) {
        fd_unref(g->all.items[i].fd);
        client_unref(g->all.items[i].client);
    }
    mem_free(g->all.items);
    client_unref(g->client);
    mem_free(g);
}

static void give_back_fiber(void *arg)
{
    struct gone *g = arg;
    struct translator *me = g->all.me;
    struct replicate *s = replicate_of(me);

    for (size_t i = 0; g->all.items && i < g->all.count; i++) {
        struct item *item = &g->all.items[i];
        struct call call;

        call_init(&call, me->graph);
        call.client = g->client;
        call.lk_owner = item->range.owner;
        for (unsigned c = 0; c < s->child_count && item->client == g->client; c++)
            if (s->up & bit(c))
                (void)held_lock_restore(me, c, &call, item->fd, &item->range); /* nothing is held: unlocks */
        call_done(&call);
    }
    gone_free(g);
    replicate_fiber_ended(me);
}

/* Locks on this host went with the client; those that went on to others by connections of ours did not. */
void held_locks_client_gone(struct translator *me, struct client *client)
{
    struct gone *g = replicate_of(me)->held_count ? NEW(struct gone) : NULL;

    if (!g)
        return;
    g->all.me = me;
    g->client = client_ref(client);
    collect_all(&g->all); /* now: its descriptors go next */
    for (size_t i = 0; g->all.items && i < g->all.count; i++) {
        struct item *item = &g->all.items[i];
        if (item->client == client)
            drop_where(me, item->fd->inode, client, &item->range.owner, NULL);
    }
    if (replicate_spawn(me, "lock-return", give_back_fiber, g) < 0) {
        gone_free(g); /* no memory for a fiber: the other bricks drop them when the descriptors are closed there */
    }
}
