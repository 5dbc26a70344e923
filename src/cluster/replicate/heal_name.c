/* cluster/replicate/heal_name.c - one name of a directory, on all children, under the main-domain lock.
 *
 * A sink gets a name in this order: whatever is there under it goes (put aside where it may still be wanted); if the sink
 * does not know the inode at all, those that have it note that the sink's copy is empty; only then the name appears. So
 * a copy that is only a beginning is never taken for the whole.
 */
#include "cluster/replicate/heal_internal.h"
#include "core/mem.h"
#include "graph/graph.h"
#include <limits.h>

struct fixing {
    struct heal *h;
    struct heal_name_work *w;
    uint32_t children;
    struct heal_answers *a; /* the name on each child */
    struct heal_name_judgement judged;
    struct heal_name_facts facts;
    struct heal_lock move; /* held while a name goes because the inode has another */
    struct inode *moving;
    struct inode *inode; /* EXISTS: what the name leads to. A reference */
    char *target;        /* of a symlink */
};

/* ---- looking ---- */

static bool is_same(const struct iatt *a, const struct iatt *b)
{
    return gfid_equal(&a->gfid, &b->gfid) && iatt_type(a) == iatt_type(b);
}

FIBER bool heal_name_is_equal(struct heal *h, const char *name, uint32_t children, const struct iatt *expected,
                              struct iatt *ret_stat)
{
    const struct request q = { .op = OP_LOOKUP, .parent = h->inode, .name = name };
    SCOPED(fan_free) struct fan *fan = children ? fan_new(h->me, &h->call, children, &q) : NULL;

    if (!fan)
        return !children;
    fan_run(fan);
    if (fan_failed_with(fan, -ENOENT) == children && !expected)
        return true;
    if (fan_ok(fan) != children)
        return false;
    if (!expected)
        expected = &fan->list[mask_first(children)].r.stat;
    for_each_child(i, children)
    {
        if (!is_same(&fan->list[i].r.stat, expected))
            return false;
    }
    if (ret_stat)
        *ret_stat = *expected;
    return !gfid_is_null(&expected->gfid);
}

static struct inode *inode_of(const struct heal *h, const struct iatt *stat)
{
    return inode_table_get(h->me->graph, &stat->gfid, iatt_type(stat));
}

/* Children of `among` that know the inode, under whatever name. -ENOMEM or 0. */
static FIBER int who_knows(struct heal *h, struct inode *inode, uint32_t among, uint32_t *ret_known, uint32_t *ret_not)
{
    SCOPED(heal_answers_free) struct heal_answers *a = heal_answers_new();
    int r = a ? heal_ask(h, inode, among, a) : -ENOMEM;

    if (r < 0)
        return r;
    *ret_known = a->ok;
    if (ret_not)
        *ret_not = a->absent;
    return 0;
}

static bool has_several_inodes(const struct heal_answers *a)
{
    for_each_child(i, a->ok)
    {
        if (!is_same(&a->stat[i], &a->stat[mask_first(a->ok)]))
            return true;
    }
    return false;
}

/* Of the children that have the name, those whose inode all others know as well. */
static FIBER int find_kept(struct fixing *f)
{
    const struct heal_answers *a = f->a;

    if (!has_several_inodes(a))
        return 0;
    for_each_child(i, a->ok)
    {
        uint32_t others = (a->ok | a->absent) & ~bit(i), know = 0;
        SCOPED(inode_unref) struct inode *inode = inode_of(f->h, &a->stat[i]);
        int r = inode ? who_knows(f->h, inode, others, &know, NULL) : -ENOMEM;

        if (r < 0)
            return r;
        if (know == others)
            f->facts.kept |= bit(i);
    }
    return 0;
}

/* A rename that was cut off: one side has the old name, the other the new one, and either may be taken away, not both.
 * Who looks at the other name meanwhile must not do the same, so the inode is locked until the name is gone. -EAGAIN:
 * somebody else is at it. */
static FIBER int find_other_names(struct fixing *f)
{
    const struct heal_answers *a = f->a;
    uint32_t know = 0;
    int r;

    if (!heal_name_may_be_moved(&f->h->set, &f->h->round.judged, a))
        return 0;
    f->moving = inode_of(f->h, &a->stat[mask_first(a->ok & f->h->round.judged.sources)]);
    if (!f->moving)
        return -ENOMEM;
    r = who_knows(f->h, f->moving, a->absent, &know, NULL);
    if (r < 0 || know != a->absent)
        return r; /* on one of them it is new: nothing was moved there */
    f->move = (struct heal_lock) { .kind = HEAL_LOCK_MOVE, .inode = f->moving };
    r = heal_lock(f->h, &f->move, f->children);
    return r < 0 ? r : heal_find_use(f->h, a->absent, f->moving, &f->facts.elsewhere);
}

/* ---- entries without gfid ---- */

static FIBER int give_gfid(struct fixing *f, unsigned child, const struct gfid *gfid)
{
    SCOPED(dict_unref) struct dict *xdata = dict_new();
    const struct request q = { .op = OP_LOOKUP, .parent = f->h->inode, .name = f->w->name, .xdata = xdata };

    if (!xdata || dict_set_gfid(xdata, "gfid-req", gfid) < 0)
        return -ENOMEM;
    return child_call(f->h->me, child, &f->h->call, &q, NULL);
}

/* Those that have the inode note what `lacking` do not have of it. 0 when all of them could. */
static FIBER int mark_new(struct heal *h, struct inode *inode, uint32_t type, uint32_t by, uint32_t lacking)
{
    struct replicate *s = replicate_of(h->me);
    SCOPED(dict_unref) struct dict *marks = counters_new_inode(s, type, lacking);
    const struct request q = { .op = OP_XATTROP, .inode = inode, .flags = XATTROP_ADD32, .xattrs = marks };
    SCOPED(fan_free) struct fan *fan = marks ? fan_new(h->me, &h->call, by, &q) : NULL;

    if (!fan)
        return -ENOMEM;
    fan_run(fan);
    if (heal_note_fan(h, fan) != by)
        return fan_worst(fan);
    return 0;
}

/* Is it noted already, by all of `by`, that these children lack the inode? */
static bool is_marked(const struct heal_answers *a, uint32_t type, uint32_t by, uint32_t lacking)
{
    enum change contents = type == S_IFDIR ? CHANGE_ENTRY : CHANGE_DATA;
    bool has_contents = type == S_IFDIR || type == S_IFREG;

    for_each_child(i, by)
    {
        for_each_child(j, lacking)
        {
            const struct counters *c = &a->pending[i][j];

            if (!c->n[CHANGE_METADATA] || (has_contents && !c->n[contents]) ||
                (contents == CHANGE_ENTRY && !c->n[CHANGE_DATA]))
                return false;
        }
    }
    return true;
}

/* Lost its gfid behind the brick's back: it gets that of the others. Where the brick still knows the inode by its gfid, it
 * is that one, or the brick refuses; else it is marked as behind, for nobody knows whose contents these are. Without
 * anybody who knows a gfid, and with all children there to say so, it gets a new one. */
static FIBER int give_gfids(struct fixing *f)
{
    struct heal_answers *a = f->a;
    uint32_t with = a->ok & f->h->round.judged.sources, known = 0, unknown = 0;
    struct gfid gfid = gfid_for_new_inode(f->h->me->env);
    SCOPED(inode_unref) struct inode *inode = NULL;
    int r = 0;

    if (!with && (a->ok || (a->no_gfid | a->absent) != mask_all(f->h->set.child_count)))
        return 0;
    if (with) {
        gfid = a->stat[mask_first(with)].gfid;
        inode = inode_of(f->h, &a->stat[mask_first(with)]);
        r = inode ? who_knows(f->h, inode, a->no_gfid, &known, &unknown) : -ENOMEM;
        if (r == 0 && unknown && !is_marked(a, inode->type, with, unknown))
            r = mark_new(f->h, inode, inode->type, with, unknown);
    }
    if (r < 0)
        return r == -ENOMEM ? r : 0;
    for_each_child(i, a->no_gfid)
    {
        r = give_gfid(f, i, &gfid);
        heal_note(f->h, i, r);
        f->w->is_fixed = f->w->is_fixed || r >= 0;
    }
    return heal_ask_name(f->h, f->h->inode, f->w->name, f->children, a);
}

/* ---- taking a name ---- */

static FIBER int remove_name(struct fixing *f, unsigned child, const struct iatt *stat, struct inode *inode)
{
    struct request q = { .op = OP_UNLINK, .inode = inode, .parent = f->h->inode, .name = f->w->name };
    int r;

    if (iatt_type(stat) == S_IFDIR) {
        q.op = OP_RMDIR;
        q.flags = 1; /* with all that is in it */
    }
    r = child_call(f->h->me, child, &f->h->call, &q, NULL);
    return r < 0 && r != -ENOENT ? r : 0;
}

static FIBER int take_name(struct fixing *f, unsigned child)
{
    struct heal *h = f->h;
    const struct iatt *stat = &f->a->stat[child];
    SCOPED(inode_unref) struct inode *inode = inode_of(h, stat);
    SCOPED(heal_answers_free) struct heal_answers *there = heal_answers_new();
    int r;

    if (!inode || !there)
        return -ENOMEM;
    if (iatt_type(stat) != S_IFDIR) {
        r = heal_ask(h, inode, f->children & ~bit(child), there);
        if (r < 0)
            return r;
        if (stat->nlink > 1 || !there->ok) {
            r = remove_name(f, child, stat, inode);
            if (r == 0 && stat->nlink > 1 && (there->ok & h->round.judged.sources))
                heal_times_of(h, inode, bit(child), &there->stat[mask_first(there->ok & h->round.judged.sources)]);
            return r;
        }
    }
    r = heal_put_aside(h, child, f->w->name, inode);
    return r == -EOPNOTSUPP ? remove_name(f, child, stat, inode) : r;
}

/* ---- making a name ---- */

static FIBER int read_target(struct fixing *f)
{
    const struct request q = { .op = OP_READLINK, .inode = f->inode, .size = PATH_MAX };
    SCOPED(reply_free) struct reply *r = reply_new();
    int result;

    if (f->target || f->inode->type != S_IFLNK)
        return 0;
    if (!r)
        return -ENOMEM;
    result = child_call(f->h->me, f->judged.like, &f->h->call, &q, r);
    if (result < 0)
        return result;
    f->target = take(r->text);
    return f->target ? 0 : -EIO;
}

static FIBER int make_inode(struct fixing *f, unsigned child)
{
    const struct iatt *like = &f->a->stat[f->judged.like];
    SCOPED(dict_unref) struct dict *xdata = dict_new();
    struct request q = { .op = OP_MKNOD,
                         .inode = f->inode,
                         .parent = f->h->inode,
                         .name = f->w->name,
                         .mode = like->mode,
                         .rdev = like->rdev,
                         .xdata = xdata };
    struct call as_owner;
    int r = xdata ? dict_set_int(xdata, "glusterfs-internal-fop", 1) : -ENOMEM;

    if (r < 0)
        return r;
    if (f->inode->type == S_IFDIR) {
        q.op = OP_MKDIR;
    } else if (f->inode->type == S_IFLNK) {
        q.op = OP_SYMLINK;
        q.text = f->target;
    }
    call_copy(&as_owner, &f->h->call);
    as_owner.uid = like->uid;
    as_owner.gid = like->gid;
    r = child_call(f->h->me, child, &as_owner, &q, NULL);
    call_done(&as_owner);
    return r < 0 ? r : 0;
}

/* The child knows the inode under another name, or put it aside. */
static FIBER int give_name(struct fixing *f, unsigned child)
{
    const struct request link = { .op = OP_LINK, .inode = f->inode, .parent2 = f->h->inode, .name2 = f->w->name };
    int r = heal_take_back(f->h, child, f->w->name, f->inode);

    if (r != -ENOENT)
        return r;
    /* A directory has one name: its old one is taken away when the directory it is in is healed. */
    if (f->inode->type == S_IFDIR)
        return -EBUSY;
    r = child_call(f->h->me, child, &f->h->call, &link, NULL);
    return r < 0 ? r : 0;
}

static FIBER int make_name(struct fixing *f, unsigned child, bool is_known)
{
    int r = 0;

    if (f->a->ok & bit(child))
        r = take_name(f, child);
    if (r < 0)
        return r;
    return is_known ? give_name(f, child) : make_inode(f, child);
}

/* Beginnings on several children while one has all: should that one be lost, they must not pass for each other's proof. */
static FIBER void mark_each_other(struct fixing *f, uint32_t made)
{
    if (mask_count(made) < 2 || heal_set_is_enough(&f->h->set, f->judged.right))
        return;
    for_each_child(i, made)(void) mark_new(f->h, f->inode, f->inode->type, bit(i), made & ~bit(i));
}

static FIBER int make_names_now(struct fixing *f)
{
    uint32_t known = 0, unknown = 0, made = 0;
    int r = who_knows(f->h, f->inode, f->judged.wrong, &known, &unknown);

    if (r == 0 && unknown && !is_marked(f->a, f->inode->type, f->judged.right, unknown))
        r = mark_new(f->h, f->inode, f->inode->type, f->judged.right, unknown);
    if (r == 0)
        r = read_target(f);
    f->w->failed = f->judged.wrong;
    if (r < 0)
        return r;
    /* An entry that could not be given its gfid yet is in the way: it may be of this very second. */
    for_each_child(i, (known | unknown) & ~f->a->no_gfid)
    {
        r = make_name(f, i, known & bit(i));
        heal_note(f->h, i, r);
        if (r < 0)
            continue;
        f->w->failed &= ~bit(i);
        f->w->is_fixed = true;
        made |= bit(i) & unknown;
    }
    /* Nobody blames an inode for its times when one of its names changes. */
    heal_times_of(f->h, f->inode, known & ~f->w->failed, &f->a->stat[f->judged.like]);
    mark_each_other(f, made);
    if (made && f->h->how->found)
        f->h->how->found(f->h->how->found_arg, &f->inode->gfid, f->inode->type);
    return 0;
}

/* Two names of one inode, made at the same time, must not become two inodes. */
static FIBER int make_names(struct fixing *f)
{
    const struct iatt *like = &f->a->stat[f->judged.like];
    bool is_alone = iatt_type(like) == S_IFDIR || like->nlink <= 1;
    int r;

    f->inode = inode_of(f->h, like);
    if (!f->inode)
        return -ENOMEM;
    if (is_alone)
        return make_names_now(f);
    r = fiber_mutex_lock(&f->h->links, NULL); /* held for a few requests only */
    if (r < 0)
        return r;
    r = make_names_now(f);
    fiber_mutex_unlock(&f->h->links);
    return r;
}

static FIBER void take_names(struct fixing *f)
{
    for_each_child(i, f->judged.wrong)
    {
        int r = take_name(f, i);

        heal_note(f->h, i, r);
        if (r < 0)
            f->w->failed |= bit(i);
        else
            f->w->is_fixed = true;
    }
}

/* ---- all of it ---- */

static void log_split(const struct fixing *f)
{
    TLOG(f->h->me, LOG_WARNING, "name-split-brain",
         "parent=%s name=%s type=%s: one name, several inodes; choose one with the heal command's split-brain forms",
         GFID_TEXT(&f->h->inode->gfid), f->w->name, f->judged.split & HEAL_SPLIT_TYPE ? "differs" : "same");
}

static FIBER int carry_out(struct fixing *f)
{
    struct heal_name_work *w = f->w;
    int r = 0;

    w->failed = 0;
    switch (f->judged.verdict) {
    case HEAL_NAME_EXISTS:
        r = make_names(f);
        w->stat = f->a->stat[f->judged.like];
        break;
    case HEAL_NAME_EQUAL:
        if (f->judged.right)
            w->stat = f->a->stat[f->judged.like];
        break;
    case HEAL_NAME_GONE: take_names(f); break;
    case HEAL_NAME_SPLIT:
        log_split(f);
        w->split = f->judged.split;
        w->failed = f->children;
        break;
    case HEAL_NAME_UNDECIDED: w->failed = f->children; break;
    }
    return r;
}

static FIBER int fix(struct fixing *f)
{
    struct heal *h = f->h;
    int r = heal_ask_name(h, h->inode, f->w->name, f->children, f->a);

    for_each_child(i, f->children) heal_note(h, i, f->a->result[i] == -ENOENT ? 0 : f->a->result[i]);
    if (r == 0 && f->a->no_gfid)
        r = give_gfids(f);
    if (r == 0)
        r = find_kept(f);
    if (r == 0)
        r = find_other_names(f);
    if (r < 0)
        return r;
    heal_judge_name(&h->set, &h->round.judged, f->a, &f->facts, &h->how->choice, &f->judged);
    f->w->refusal = f->judged.refusal;
    f->w->is_resolved = f->judged.is_resolved;
    r = carry_out(f);
    f->w->failed |= f->children & ~(f->a->ok | f->a->absent | f->a->no_gfid); /* what they have is not known */
    if (f->w->split)
        f->w->outcome = HEAL_SPLIT_BRAIN;
    else if (f->w->failed)
        f->w->outcome = HEAL_LEFT;
    else
        f->w->outcome = f->w->is_fixed ? HEAL_DONE : HEAL_CLEAN;
    return r;
}

FIBER int heal_fix_name(struct heal *h, uint32_t children, struct heal_name_work *w)
{
    struct fixing f = { .h = h, .w = w, .children = children, .a = heal_answers_new() };
    int r;

    w->failed = children;
    w->outcome = HEAL_LEFT;
    w->split = 0;
    r = f.a ? fix(&f) : -ENOMEM;
    if (r < 0) {
        w->failed = children;
        w->outcome = HEAL_LEFT;
    }
    heal_unlock(h, &f.move);
    mem_free(f.target);
    inode_unref(f.inode);
    inode_unref(f.moving);
    heal_answers_free(f.a);
    return r == -ENOMEM ? r : 0;
}

/* ---- a name by itself ---- */

static FIBER int one_name(struct heal *h, struct heal_name_work *w)
{
    struct heal_lock lock = { .kind = HEAL_LOCK_NAME, .inode = h->inode, .name = w->name };
    int r = heal_lock(h, &lock, heal_present(h));

    if (r < 0)
        return r;
    r = heal_ask(h, h->inode, heal_holders(h, &lock), h->round.answers);
    if (r == 0) {
        heal_judge_entry(&h->set, h->round.answers, lock.held, &h->round.judged);
        if (h->round.judged.verdict == VERDICT_UNKNOWN)
            r = -ENOTCONN;
    }
    if (r == 0)
        r = heal_fix_name(h, h->round.judged.taking_part, w);
    heal_unlock(h, &lock);
    return r;
}

void heal_name_report(struct heal *h, const struct heal_name_work *w)
{
    struct heal_class_report *report = heal_class(h);

    report->names_looked_at++;
    report->names_fixed += w->is_fixed;
    report->left |= w->failed;
    report->outcome = MAX(report->outcome, w->outcome);
    h->report->split_brain |= w->split;
    if (w->is_resolved)
        h->report->resolved |= HEAL_SPLIT_GFID;
    if (w->refusal)
        h->report->refusal = w->refusal;
}

static FIBER int name_under_lock(struct heal *h, struct heal_name_work *w)
{
    int r;

    heal_class_begin(h, CHANGE_ENTRY);
    if (heal_name_is_equal(h, w->name, heal_present(h), NULL, &w->stat)) {
        heal_class(h)->names_looked_at++;
        return 0;
    }
    r = one_name(h, w);
    if (r == 0)
        heal_name_report(h, w);
    return heal_class_end(h, r);
}

FIBER int heal_name(struct translator *me, struct call *call, struct inode *parent, const char *name,
                    const struct heal_how *how, struct heal_report *ret, struct inode **ret_inode)
{
    struct heal_name_work w = { .name = name };
    struct heal h;
    int r;

    memset(ret, 0, sizeof(*ret));
    if (ret_inode)
        *ret_inode = NULL;
    if (gfid_is_root(&parent->gfid) && name_is_private(name))
        return 0;
    r = heal_begin(&h, me, call, parent, how, ret);
    if (r < 0)
        return r;
    r = name_under_lock(&h, &w);
    heal_report_end(&h, r);
    if (ret_inode && iatt_is_set(&w.stat))
        *ret_inode = inode_of(&h, &w.stat);
    heal_done(&h);
    return r == -ENOMEM ? r : 0;
}
