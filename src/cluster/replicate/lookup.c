/* cluster/replicate/lookup.c - finding an inode by name or gfid: all children are asked, one answer is made.
 *
 * By name, the children that nobody blames for the entries of the directory decide whether the name exists and which
 * inode it is. Where they differ, a change is under way (somebody holds the directory's lock) or was cut off; then a
 * name that enough of them have exists. Two good children that hold different inodes under one name cannot be served.
 * What no record explains (a name that one good child lacks, holds without a gfid, or with another inode) is healed at
 * once, for nothing else would.
 */
#include "cluster/replicate/heal.h"
#include "cluster/replicate/replicate_internal.h"
#include "core/mem.h"

struct look {
    struct translator *me;
    struct call *call;
    const struct request *q;
    struct fan *fan;
    uint32_t ok, absent;     /* succeeded; said ENOENT */
    uint32_t voters;         /* children whose word counts for names of this directory */
    unsigned clash[2];       /* two of them that hold different inodes, where decide() ended with that */
    bool clashes, is_uneven; /* uneven: voters differ although nobody is at work */
    uint64_t generation, asked_at;
};

static bool is_private(const struct call *call, const struct request *q)
{
    if (!q->name || !q->parent || !gfid_is_root(&q->parent->gfid) || call->pid < 0)
        return false;
    return name_is_private(q->name);
}

bool name_is_private(const char *name)
{
    static const char anonymous[] = ".glusterfs-anonymous-inode";

    return strcmp(name, ".landfill") == 0 || strncmp(name, anonymous, sizeof(anonymous) - 1) == 0;
}

static bool parent_is_locked(const struct look *l)
{
    uint64_t count;

    for_each_child(i, l->ok | l->absent)
    {
        if (dict_get_uint(l->fan->list[i].r.xdata, "glusterfs.parent-entrylk", &count) == 0 && count > 0)
            return true;
    }
    return false;
}

static bool any_gfid_changed(const struct look *l)
{
    for_each_child(i, l->fan->targets)
    {
        if (dict_has(l->fan->list[i].r.xdata, "gfid-changed"))
            return true;
    }
    return false;
}

static bool same_inode(const struct iatt *a, const struct iatt *b)
{
    return gfid_equal(&a->gfid, &b->gfid) && iatt_type(a) == iatt_type(b);
}

/* Of `among`, those that hold the same inode as child `like`. */
static uint32_t agreeing(const struct look *l, uint32_t among, unsigned like)
{
    uint32_t same = 0;

    for_each_child(i, among)
    {
        if (same_inode(&l->fan->list[i].r.stat, &l->fan->list[like].r.stat))
            same |= bit(i);
    }
    return same;
}

static int mismatch(struct look *l, unsigned a, unsigned b)
{
    l->clashes = true;
    l->clash[0] = a;
    l->clash[1] = b;
    return -EIO;
}

static void log_mismatch(const struct look *l)
{
    unsigned a = l->clash[0], b = l->clash[1];
    const struct iatt *x = &l->fan->list[a].r.stat, *y = &l->fan->list[b].r.stat;

    TLOG(l->me, LOG_ERROR, "name-mismatch",
         "parent=%s name=%s child=%s gfid=%s type=%o size=%llu mtime=%lld child=%s gfid=%s type=%o size=%llu "
         "mtime=%lld: one name, two inodes; \"mortar-heal ... resolve source-brick HOST:BRICK PATH\" takes one",
         l->q->parent ? GFID_TEXT(&l->q->parent->gfid) : "-", l->q->name ? l->q->name : "-", l->me->children[a]->name,
         GFID_TEXT(&x->gfid), iatt_type(x), (unsigned long long)x->size, (long long)x->mtime, l->me->children[b]->name,
         GFID_TEXT(&y->gfid), iatt_type(y), (unsigned long long)y->size, (long long)y->mtime);
}

static int log_undecided(const struct look *l)
{
    TLOG(l->me, LOG_ERROR, "name-undecided",
         "parent=%s name=%s: the copies within reach differ and each is recorded as behind another; bring the other "
         "bricks back or heal the directory",
         l->q->parent ? GFID_TEXT(&l->q->parent->gfid) : "-", l->q->name ? l->q->name : "-");
    return -EIO;
}

/* Only the children that are not blamed for the parent's entries have a say. Asks again only when it matters. */
static FIBER int find_voters(struct look *l)
{
    struct replicate *s = replicate_of(l->me);
    struct known parent;
    int r;

    l->voters = s->all;
    if (!l->q->name || !l->q->parent)
        return 0;
    r = known_get(l->me, l->call, l->q->parent, NULL, true, &parent);
    if (r < 0)
        return r;
    l->voters = parent.data;
    /* The arbiter has all names; it is not in `data` only because it serves nothing. */
    if (!(parent.accused & s->arbiter))
        l->voters |= s->arbiter & parent.seen;
    return 0;
}

/* The inode the answers stand for: l->ok is reduced to the children that hold it. 0, -ENOENT, -EIO, ... */
static FIBER int decide(struct look *l)
{
    uint32_t yes, no, same;
    unsigned like;
    int r;

    if (!l->ok)
        return -ENOENT;
    like = mask_first(l->ok);
    same = agreeing(l, l->ok, like);
    if (same == l->ok && !l->absent)
        return 0;
    r = find_voters(l);
    if (r < 0)
        return r;
    yes = l->ok & l->voters;
    no = l->absent & l->voters;
    if (!(yes | no)) {
        /* All are blamed. Without quorum the union of their names is the best there is, and what heal will make; with
         * quorum the child that knows is out of reach, and a guess could bring back what was removed. */
        if (replicate_of(l->me)->quorum.type != QUORUM_NONE)
            return log_undecided(l);
        yes = l->ok;
        no = l->absent;
    }
    l->is_uneven = yes && no && !parent_is_locked(l);
    if (!yes)
        return -ENOENT;
    like = mask_first(yes);
    same = agreeing(l, yes, like);
    if (same != yes) {
        if (!parent_is_locked(l))
            return mismatch(l, like, mask_first(yes & ~same));
        /* A rename over the name is under way: the side that has enough children is it. */
        for_each_child(i, yes)
        {
            if (witness_may_tell(l->me, agreeing(l, yes, i)) == 0)
                like = i;
        }
        same = agreeing(l, yes, like);
    }
    /* Being made just now, and not by enough yet; or removed by enough. */
    if (no && witness_may_tell(l->me, same) < 0 &&
        (parent_is_locked(l) || 2 * mask_count(no) > replicate_of(l->me)->child_count))
        return -ENOENT;
    l->ok = agreeing(l, l->ok, like);
    return 0;
}

static int enough_answers(const struct look *l)
{
    if (witness_may_tell(l->me, l->ok | l->absent) == 0)
        return 0;
    return fan_worst(l->fan) && fan_worst(l->fan) != -ENOENT ? fan_worst(l->fan) : -ENOTCONN;
}

/* Whose answer the caller gets. */
static unsigned choose(struct look *l, struct inode *inode, const struct known *known)
{
    uint32_t from = known->data & known->metadata & l->ok;

    if (!from)
        from = known->metadata & l->ok;
    if (!from)
        from = l->ok & ~replicate_of(l->me)->arbiter;
    if (!from)
        from = l->ok;
    return read_choose(l->me, l->call, inode, from);
}

static int make_answer(struct look *l, struct reply *r)
{
    struct replicate *s = replicate_of(l->me);
    struct testimony t = { .ok = l->ok, .fan = l->fan, .generation = l->generation, .asked_at = l->asked_at };
    const struct iatt *found = &l->fan->list[mask_first(l->ok)].r.stat;
    SCOPED(inode_unref) struct inode *inode = inode_table_get(l->me->graph, &found->gfid, iatt_type(found));
    struct known known;
    uint64_t size, blocks, asked_ns = fan_asked_ns(l->fan);
    unsigned child;

    if (!inode)
        return -ENOMEM;
    known_judge(l->me, inode, &t, &known);
    if (!(known.data | known.metadata) && known.arbiter_is_good)
        return -ENOTCONN;
    child = choose(l, inode, &known);
    if (!(known.data & bit(child)) && known.data) {
        size = l->fan->list[mask_first(known.data)].r.stat.size;
        blocks = l->fan->list[mask_first(known.data)].r.stat.blocks;
        l->fan->list[child].r.stat.size = size;
        l->fan->list[child].r.stat.blocks = blocks;
    }
    reply_move(r, &l->fan->list[child].r);
    r->asked_ns = asked_ns;
    return counters_hide(s, l->q->xdata, &r->xdata);
}

static FIBER int ask_all(struct look *l)
{
    struct replicate *s = replicate_of(l->me);
    SCOPED(dict_unref) struct dict *xdata = counters_ask(s, l->q->xdata);
    struct request q = *l->q;
    int ret;

    if (!xdata)
        return -ENOMEM;
    q.xdata = xdata;
    l->generation = s->generation;
    l->asked_at = s->clock;
    l->fan = fan_new(l->me, l->call, s->up, &q);
    if (!l->fan)
        return -ENOMEM;
    fan_run(l->fan);
    l->ok = fan_ok(l->fan);
    l->absent = fan_failed_with(l->fan, -ENOENT);
    if (any_gfid_changed(l))
        return -ESTALE;
    ret = enough_answers(l);
    return ret == 0 ? decide(l) : ret;
}

/* Is the name as it should not be, with no record of why? Whoever heals or resolves looks without this. */
static bool wants_name_heal(const struct look *l)
{
    return l->fan && l->q->name && l->q->parent && l->call->pid >= 0 && !is_private(l->call, l->q) &&
           (l->clashes || l->is_uneven || fan_failed_with(l->fan, -ENODATA)) &&
           heal_is_enough(l->me, replicate_of(l->me)->up);
}

/* True: something was healed, look again. */
static FIBER bool heal_this_name(struct look *l)
{
    SCOPED(heal_report_free) struct heal_report *report = heal_report_new();
    struct heal_how how = { .flags = 0 };

    return report && heal_name(l->me, l->call, l->q->parent, l->q->name, &how, report, NULL) == 0 &&
           report->class[CHANGE_ENTRY].names_fixed > 0;
}

static FIBER int look(struct look *l, struct reply *r)
{
    int ret = ask_all(l);

    if (wants_name_heal(l) && heal_this_name(l)) {
        fan_free(l->fan);
        *l = (struct look) { .me = l->me, .call = l->call, .q = l->q };
        ret = ask_all(l);
    }
    if (ret == -EIO && l->clashes)
        log_mismatch(l);
    return ret < 0 ? ret : make_answer(l, r);
}

static bool expects_free_name(const struct inode_state *parent)
{
    return parent->absent_after[parent->was_absent];
}

static void note_name(struct translator *me, struct inode *directory, bool is_absent)
{
    struct inode_state *parent = inode_state(me, directory);

    if (!parent)
        return;
    parent->absent_after[parent->was_absent] = is_absent;
    parent->was_absent = is_absent;
}

/* While we hold a directory's lock nobody else changes its names, so one good copy knows which are free. That is what
 * whoever makes files in it or renames to them asks first; which look-ups those will be shows in what came before. */
static struct session *own_directory(struct translator *me, const struct request *q, uint32_t *ret_good)
{
    struct replicate *s = replicate_of(me);
    struct session *session = q->parent && q->name ? session_find(me, q->parent, CHANGE_ENTRY) : NULL;
    uint32_t targets;

    if (!session || !session->is_marked_session || session->keep_dirty || session->generation != s->generation ||
        !expects_free_name(inode_state(me, q->parent)))
        return NULL;
    targets = session_targets(session);
    *ret_good = targets & session->good & ~session->missed & ~s->arbiter;
    return *ret_good && children_quorum(me, targets) == 0 ? session : NULL;
}

static FIBER bool is_free_name(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    uint32_t good, good_after;
    struct session *session = own_directory(me, q, &good);
    uint64_t opened_ns = session ? session->opened_ns : 0;
    unsigned child;
    int ret;

    if (!session)
        return false;
    child = read_choose(me, call, q->parent, good);
    ret = child_call(me, child, call, q, r);
    reply_done(r);
    /* It has to have been ours all the time. */
    return ret == -ENOENT && own_directory(me, q, &good_after) == session && session->opened_ns == opened_ns &&
           (good_after & bit(child));
}

FIBER int replicate_lookup(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct look l = { .me = me, .call = call, .q = q };
    int ret = children_admit(me);

    if (ret < 0)
        return ret;
    if (is_private(call, q))
        return -EPERM;
    ret = is_free_name(me, call, q, r) ? -ENOENT : look(&l, r);
    if (ret == -ENOENT && l.fan)
        r->asked_ns = fan_asked_ns(l.fan);
    fan_free(l.fan);
    if (q->parent && q->name)
        note_name(me, q->parent, ret == -ENOENT);
    return ret;
}
