/* What the brick has promised to tell before it changes: leases, as rpc/invalidate.h defines them. A brick of ours notes
 * every inode it tells a client of (protocol/server/interest.c); here is the client's side of the same book, kept so
 * that it never believes in more than the brick has noted. Times are those of the question, which is before the brick
 * looked. */
#include "core/mem.h"
#include "protocol/client/client_internal.h"
#include "rpc/invalidate.h"

#define MS 1000000ull

struct remote_inode *remote_inode(struct remote *s, struct inode *inode, bool make)
{
    void **slot = inode_ctx(inode, s->me);

    if (!*slot && make)
        *slot = NEW(struct remote_inode);
    return *slot;
}

void remote_inode_forget(struct translator *me, struct inode *inode, void *ctx)
{
    struct remote *s = me->state;
    struct remote_inode *k = ctx;

    s->broken_ns = MAX(s->broken_ns, k->broken_ns);
    mem_free(k);
}

/* ---- the connection ---- */

int remote_reach_new(struct remote *s)
{
    struct reach *k = NEW(struct reach);

    if (!k)
        return -ENOMEM;
    k->refs = 1;
    reach_unref(s->reach);
    s->reach = k;
    return 0;
}

struct reach *reach_ref(struct reach *k)
{
    k->refs++;
    return k;
}

void reach_unref(struct reach *k)
{
    if (k && --k->refs == 0)
        mem_free(k);
}

uint64_t remote_lease_begin(const struct remote *s)
{
    return s->speaks_mortar && s->reach && s->reach->unanswered == 0 ? env_now_ns(s->me->env) : 0;
}

static void answered(struct remote *s, uint64_t begun_ns)
{
    struct reach *k = s->reach;

    if (k && k->unanswered == 0 && begun_ns > k->answered_ns)
        k->proven_ns = MAX(k->proven_ns, begun_ns);
}

/* ---- inodes ---- */

static void grant(struct remote *s, struct inode *inode, uint64_t begun_ns)
{
    struct remote_inode *k = remote_inode(s, inode, true);
    uint64_t until_ns = begun_ns + INVALIDATE_LEASE_S * 1000 * MS - INVALIDATE_LEASE_MARGIN_MS * MS;

    if (!k || begun_ns <= k->broken_ns || begun_ns <= s->broken_ns)
        return;
    if (k->since_ns == 0 || k->generation != s->generation || k->until_ns <= begun_ns) {
        k->since_ns = begun_ns;
        k->until_ns = until_ns;
        k->generation = s->generation;
    } else {
        k->until_ns = MAX(k->until_ns, until_ns);
    }
}

static void grant_found(struct remote *s, const struct iatt *a, uint64_t begun_ns)
{
    if (!iatt_is_set(a) || gfid_is_null(&a->gfid))
        return;
    SCOPED(inode_unref) struct inode *inode = inode_table_get(s->me->graph, &a->gfid, iatt_type(a));
    if (inode)
        grant(s, inode, begun_ns);
}

void remote_lease_learn(struct remote *s, const struct request *q, const struct reply *r, int result, uint64_t begun_ns)
{
    if (begun_ns == 0)
        return;
    answered(s, begun_ns);
    if (invalidate_is_untold(q->op))
        return;
    if (q->parent && (result >= 0 || result == -ENOENT))
        grant(s, q->parent, begun_ns);
    if (result < 0)
        return;
    if (q->parent2)
        grant(s, q->parent2, begun_ns);
    /* A hint of ours for a name is not told to the brick. */
    if (q->inode && !(q->op == OP_UNLINK || q->op == OP_RMDIR || q->op == OP_RENAME))
        grant(s, q->inode, begun_ns);
    grant_found(s, &r->stat, begun_ns);
    for (uint32_t i = 0; r->entries && i < r->entries->count; i++)
        grant_found(s, &r->entries->list[i].stat, begun_ns);
}

void remote_lease_broken(struct remote *s, const struct gfid *gfid)
{
    SCOPED(inode_unref) struct inode *inode = inode_table_find(s->me->graph, gfid);
    struct remote_inode *k = inode ? remote_inode(s, inode, true) : NULL;

    s->leases_broken++;
    if (!k) {
        s->broken_ns = env_now_ns(s->me->env);
        return;
    }
    k->broken_ns = env_now_ns(s->me->env);
    k->since_ns = k->until_ns = 0;
}

bool remote_lease(struct translator *me, struct inode *inode, struct lease *ret_lease)
{
    struct remote *s = me->state;
    struct remote_inode *k = remote_inode(s, inode, false);
    uint64_t now_ns = env_now_ns(me->env), until_ns;

    if (!s->is_up || !s->reach || s->reach->unanswered > 0 || s->reach->proven_ns == 0 || !k || k->since_ns == 0 ||
        k->generation != s->generation)
        return false;
    until_ns = s->reach->proven_ns + (INVALIDATE_WAIT_MS - INVALIDATE_WAIT_MARGIN_MS) * MS;
    until_ns = MIN(until_ns, k->until_ns);
    if (now_ns >= until_ns)
        return false;
    *ret_lease = (struct lease) { k->since_ns, until_ns };
    return true;
}
