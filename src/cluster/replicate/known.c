/* cluster/replicate/known.c - which children may serve an inode.
 *
 * Knowledge is made from the counters of all live children and holds until a child goes up or down, a change fails on a
 * child, or a brick tells of a change by somebody else. A child whose state is not known serves nothing.
 */
#include "cluster/replicate/replicate_internal.h"
#include "core/mem.h"
#include "graph/graph.h"
#include <stdio.h>

#define ASK_TRIES 3

struct inode_state *inode_state(struct translator *me, struct inode *inode)
{
    void **slot = inode_ctx(inode, me);

    if (!*slot)
        *slot = NEW(struct inode_state);
    return *slot;
}

void inode_state_forget(struct translator *me, struct inode *inode, void *ctx)
{
    struct inode_state *state = ctx;

    for (int i = 0; i < CHANGE_COUNT; i++)
        assert(!state->session[i]); /* sessions hold a reference on their inode */
    assert(!state->held);           /* and open descriptors do */
    mem_free(state);
}

bool known_is_fresh(struct translator *me, struct inode *inode)
{
    struct inode_state *state = inode_state(me, inode);

    return state && state->known.generation == replicate_of(me)->generation;
}

void known_forget(struct translator *me, struct inode *inode)
{
    struct inode_state *state = inode_state(me, inode);

    if (!state)
        return;
    state->known.generation = 0;
    state->known.changed_at = ++replicate_of(me)->clock;
}

void known_bad(struct translator *me, struct inode *inode, enum change change, uint32_t bad)
{
    struct inode_state *state = inode_state(me, inode);

    if (!state || !bad)
        return;
    state->known.changed_at = ++replicate_of(me)->clock;
    if (change == CHANGE_METADATA)
        state->known.metadata &= ~bad;
    else
        state->known.data &= ~bad;
}

void known_new(struct translator *me, struct inode *inode, uint32_t children)
{
    struct replicate *s = replicate_of(me);
    struct inode_state *state = inode_state(me, inode);

    if (!state)
        return;
    state->known.generation = s->generation;
    state->known.changed_at = ++s->clock;
    state->known.data = state->known.metadata = children & ~s->arbiter;
    state->known.asked_ns = 0;
    state->known.seen = children;
    state->known.accused = 0;
}

static bool anybody_locks(const struct testimony *t)
{
    uint64_t count;

    for_each_child(i, t->ok)
    {
        if (dict_get_uint(t->fan->list[i].r.xdata, "glusterfs.inodelk-count", &count) == 0 && count > 0)
            return true;
        if (dict_get_uint(t->fan->list[i].r.xdata, "glusterfs.entrylk-count", &count) == 0 && count > 0)
            return true;
    }
    return false;
}

static uint32_t longest_copies(const struct testimony *t, uint32_t candidates)
{
    uint64_t size_bytes[CHILDREN_MAX] = { 0 };

    for_each_child(i, candidates) size_bytes[i] = t->fan->list[i].r.stat.size;
    return children_with_longest(candidates, size_bytes);
}

static uint32_t flagged_bad(const struct testimony *t)
{
    uint32_t bad = 0;

    for_each_child(i, t->ok)
    {
        if (dict_has(t->fan->list[i].r.xdata, "glusterfs.bad-inode"))
            bad |= bit(i);
    }
    return bad;
}

static void read_accusations(struct replicate *s, const struct testimony *t, enum change change,
                             struct accusations *ret)
{
    accusations_init(ret, s->child_count);
    for_each_child(i, t->ok) counters_read(s, change, i, t->fan->list[i].r.xdata, ret);
}

/* Marks without anybody at work. Contents are on disk before their mark goes, so a copy without the mark that others
 * have has lost it, with what was done under it (a brick lost power), or has not seen a change that was never
 * answered: the marked ones are as good or better. */
static uint32_t marked_ones(uint32_t candidates, const struct accusations *a, bool is_at_work)
{
    uint32_t marked = candidates & a->dirty;

    return marked && !is_at_work ? marked : candidates;
}

/* Attributes may be lost after their mark was taken off elsewhere, and their own mark's removal with them. */
static uint32_t unmarked_ones(uint32_t candidates, const struct accusations *a, bool is_at_work)
{
    uint32_t unmarked = candidates & ~a->dirty;

    return unmarked && !is_at_work ? unmarked : candidates;
}

static bool same_attributes(const struct iatt *a, const struct iatt *b)
{
    return a->mode == b->mode && a->uid == b->uid && a->gid == b->gid;
}

/* Attributes differ without a record: those that most children have. */
static uint32_t usual_attributes(const struct testimony *t, uint32_t candidates)
{
    uint32_t best = 0;

    for_each_child(i, candidates)
    {
        uint32_t same = 0;

        for_each_child(j, t->ok)
        {
            if (same_attributes(&t->fan->list[i].r.stat, &t->fan->list[j].r.stat))
                same |= bit(j);
        }
        if (mask_count(same) > mask_count(best))
            best = same;
    }
    return candidates & best;
}

static uint32_t missed_in_session(const struct inode_state *state, enum change change)
{
    return state->session[change] ? state->session[change]->missed : 0;
}

static void note_heals(struct replicate *s, const struct testimony *t)
{
    uint64_t pending;

    for_each_child(i, t->ok)
    {
        if (dict_get_uint(t->fan->list[i].r.xdata, "link-count", &pending) == 0 && pending == 0)
            s->heals_pending &= ~bit(i);
        else
            s->heals_pending |= bit(i);
    }
}

/* Is a change under way, by somebody else or by us? Then marks and differences mean nothing. */
static bool is_at_work(const struct inode_state *state, const struct testimony *t, enum change contents)
{
    return state->session[contents] || state->session[CHANGE_METADATA] || anybody_locks(t);
}

static void judge(struct translator *me, struct inode *inode, const struct testimony *t, uint32_t type,
                  struct known *ret)
{
    struct inode_state *state = inode_state(me, inode);
    struct replicate *s = replicate_of(me);
    enum change contents = type == S_IFDIR ? CHANGE_ENTRY : CHANGE_DATA;
    bool busy = is_at_work(state, t, contents);
    uint32_t fit = t->ok & ~flagged_bad(t) & ~s->arbiter & ~s->quorum.stale;
    struct accusations a;

    ret->seen = t->ok;
    read_accusations(s, t, contents, &a);
    ret->accused = accusations_accused(&a) & t->ok;
    ret->arbiter_is_good = (t->ok & s->arbiter & ~accusations_accused(&a)) != 0;
    ret->data = fit & ~accusations_accused(&a) & ~missed_in_session(state, contents);
    if (type == S_IFREG && !busy) {
        ret->shorter = ret->data & ~longest_copies(t, ret->data);
        ret->data &= ~ret->shorter;
    }
    ret->data = marked_ones(ret->data, &a, busy);
    read_accusations(s, t, CHANGE_METADATA, &a);
    ret->accused |= accusations_accused(&a) & t->ok;
    ret->metadata = fit & ~accusations_accused(&a) & ~missed_in_session(state, CHANGE_METADATA);
    ret->metadata = unmarked_ones(ret->metadata, &a, busy);
    if (!busy)
        ret->metadata = usual_attributes(t, ret->metadata);
    if (ret->accused & s->up)
        heal_soon(me, inode);
    split_brain_apply(me, inode, type, fit, ret);
}

void known_judge(struct translator *me, struct inode *inode, const struct testimony *t, struct known *ret)
{
    struct replicate *s = replicate_of(me);
    struct inode_state *state = inode_state(me, inode);
    uint32_t type = inode->type;
    bool is_current;

    memset(ret, 0, sizeof(*ret));
    if (!state || !t->ok)
        return;
    if (!type)
        type = iatt_type(&t->fan->list[mask_first(t->ok)].r.stat);
    note_heals(s, t);
    judge(me, inode, t, type, ret);
    ret->asked_ns = fan_asked_ns(t->fan);
    is_current = t->generation == s->generation && t->asked_at >= state->known.changed_at;
    ret->changed_at = state->known.changed_at;
    ret->generation = is_current && witness_may_tell(me, t->ok) == 0 ? s->generation : 0;
    if (is_current)
        state->known = *ret;
}

static FIBER struct fan *ask(struct translator *me, struct call *call, uint32_t children, struct inode *inode,
                             struct fd *fd)
{
    struct replicate *s = replicate_of(me);
    struct request q = { .op = fd ? OP_STAT : OP_LOOKUP, .inode = inode, .fd = fd, .xdata = s->ask };
    struct fan *fan = fan_new(me, call, children, &q);

    if (fan)
        fan_run(fan);
    return fan;
}

/* Children that know no name of the inode any more are asked by its descriptor. Somebody may be removing the name right
 * now, so that some children still find it: each one's answer counts, whichever way it was reached. */
static FIBER int ask_by_fd(struct fan *fan, struct inode *inode, struct fd *fd)
{
    uint32_t nameless = fan_failed_with(fan, -ENOENT) | fan_failed_with(fan, -ESTALE);
    SCOPED(fan_free) struct fan *by_fd = nameless ? ask(fan->me, fan->call, nameless, inode, fd) : NULL;

    if (!nameless)
        return 0;
    if (!by_fd)
        return -ENOMEM;
    for_each_child(i, fan_ok(by_fd))
    {
        reply_done(&fan->list[i].r);
        reply_move(&fan->list[i].r, &by_fd->list[i].r);
        fan->list[i].ret = by_fd->list[i].ret;
    }
    return 0;
}

/* One question to all live children. 0 or the error; ret->generation is 0 when the world moved on meanwhile. */
static FIBER int ask_once(struct translator *me, struct call *call, struct inode *inode, struct fd *fd,
                          struct known *ret)
{
    struct replicate *s = replicate_of(me);
    struct testimony t = { .generation = s->generation, .asked_at = s->clock };
    SCOPED(fan_free) struct fan *fan = ask(me, call, s->up, inode, NULL);
    int r = fan && fd ? ask_by_fd(fan, inode, fd) : 0;

    if (!fan)
        return -ENOMEM;
    if (r < 0)
        return r;
    s->refreshes++;
    t.ok = fan_ok(fan);
    t.fan = fan;
    if (witness_may_tell(me, t.ok) < 0)
        return fan_worst(fan) ? fan_worst(fan) : -ENOTCONN;
    known_judge(me, inode, &t, ret);
    return 0;
}

FIBER int known_get(struct translator *me, struct call *call, struct inode *inode, struct fd *fd, bool ask_again,
                    struct known *ret)
{
    struct inode_state *state = inode_state(me, inode);

    if (!state)
        return -ENOMEM;
    (void)split_brain_is_chosen(me, inode); /* a choice whose time is over changes what is known */
    if (!ask_again && known_is_fresh(me, inode)) {
        *ret = state->known;
        ret->is_just_asked = false;
        return 0;
    }
    for (int tries = 1;; tries++) {
        int r = children_admit(me);

        if (r == 0)
            r = ask_once(me, call, inode, fd, ret);
        /* Changing all the time: the last judgement holds for this one read, less what was found bad since. */
        if (r < 0 || ret->generation || tries == ASK_TRIES) {
            ret->is_just_asked = true;
            return r;
        }
    }
}

/* ---- leases ---- */

static unsigned youngest(const struct lease *leases, uint32_t held)
{
    unsigned last = mask_first(held);

    for_each_child(i, held)
    {
        if (leases[i].since_ns > leases[last].since_ns)
            last = i;
    }
    return last;
}

/* Could the children that are not in `held` change the inode without telling us? With a witness any of them could, also
 * the one that is stale now: it may be healed and the other one blamed while we do not look. */
static bool may_change_without(const struct replicate *s, uint32_t held)
{
    uint32_t others = s->all & ~held;

    return s->quorum.type == QUORUM_WITNESS ? others != 0 : quorum_may_be_met(&s->quorum, others);
}

bool known_lease(struct translator *me, struct inode *inode, struct lease *ret_lease)
{
    struct replicate *s = replicate_of(me);
    struct lease leases[CHILDREN_MAX], all = { 0, UINT64_MAX };
    uint32_t held = 0;

    for_each_child(i, s->up)
    {
        if (translator_lease(me->children[i], inode, &leases[i]))
            held |= bit(i);
    }
    if (may_change_without(s, held))
        return false;
    /* Those that are not needed do not make it younger. */
    while (!may_change_without(s, held & ~bit(youngest(leases, held))))
        held &= ~bit(youngest(leases, held));
    for_each_child(i, held)
    {
        all.since_ns = MAX(all.since_ns, leases[i].since_ns);
        all.until_ns = MIN(all.until_ns, leases[i].until_ns);
    }
    *ret_lease = all;
    return true;
}
