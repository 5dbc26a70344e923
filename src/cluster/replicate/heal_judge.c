/* cluster/replicate/heal_judge.c - which copies are good. */
#include "cluster/replicate/heal_judge.h"

bool heal_set_is_enough(const struct heal_set *set, uint32_t children)
{
    unsigned count = mask_count(children);

    if (count < 2 && set->child_count > 1)
        return false;
    switch (set->quorum.type) {
    case QUORUM_NONE:
    case QUORUM_WITNESS: return count == set->child_count;
    case QUORUM_FIXED: return count + set->quorum.fixed_count > set->child_count;
    case QUORUM_AUTO: break;
    }
    return quorum_met(&set->quorum, children);
}

/* On a directory a data count says "all names", so it is about entries as well. */
static bool counts(const struct counters *c, enum change change)
{
    return c->n[change] != 0 || (change == CHANGE_ENTRY && c->n[CHANGE_DATA] != 0);
}

void heal_accusations(const struct heal_answers *a, enum change change, struct accusations *ret)
{
    accusations_init(ret, a->child_count);
    for_each_child(i, a->ok)
    {
        uint32_t blames = 0;

        for (unsigned j = 0; j < a->child_count; j++)
            blames |= counts(&a->pending[i][j], change) ? bit(j) : 0;
        accusations_add(ret, i, blames, counts(&a->dirty[i], change) || (a->malformed & bit(i)));
    }
}

bool heal_same_attributes(const struct iatt *a, const struct iatt *b)
{
    return a->mode == b->mode && a->uid == b->uid && a->gid == b->gid;
}

/* ---- who is a candidate ---- */

static unsigned times_accused(const struct accusations *acc, unsigned child)
{
    unsigned times = 0;

    for_each_child(i, acc->answered & ~acc->fools) times += (acc->blames[i] & bit(child)) != 0;
    return times;
}

static uint32_t accused_less_than(const struct accusations *acc, uint32_t among, unsigned times)
{
    uint32_t children = 0;

    for_each_child(i, among) children |= times_accused(acc, i) < times ? bit(i) : 0;
    return children;
}

struct case_ {
    const struct heal_set *set;
    const struct heal_answers *a;
    const struct heal_choice *choice;
    enum change change;
    struct accusations acc;
    bool is_complete; /* every child answered */
    uint32_t copies;  /* children that take part and have a copy in this class */
    uint32_t candidates;
    struct heal_judgement *ret;
};

static void open_case(struct case_ *c, uint32_t taking_part)
{
    struct heal_judgement *ret = c->ret;

    *ret = (struct heal_judgement) { .verdict = VERDICT_UNKNOWN };
    heal_accusations(c->a, c->change, &c->acc);
    ret->taking_part = taking_part & c->a->ok;
    ret->dirty = c->acc.dirty;
    ret->accused = accusations_accused(&c->acc);
    c->is_complete = ret->taking_part == mask_all(c->set->child_count);
    c->copies = ret->taking_part;
    if (c->change == CHANGE_DATA)
        c->copies &= ~c->set->arbiter;
}

/* false: too few answers to tell; the verdict stays UNKNOWN. */
static bool find_candidates(struct case_ *c)
{
    uint32_t sound = c->copies & ~c->a->flagged_bad;

    if (!heal_set_is_enough(c->set, c->ret->taking_part))
        return false;
    c->candidates = accused_less_than(&c->acc, sound, 1);
    /* After a client died in the middle of recording failures, everybody may be blamed by a minority only. With one
     * accuser in a pair a "majority" of two would clear both sides: that is a split brain, not a torn record. */
    if (!c->candidates && c->is_complete && c->change != CHANGE_ENTRY && c->set->child_count > 2)
        c->candidates = accused_less_than(&c->acc, sound, quorum_needed(&c->set->quorum));
    if (c->candidates & ~c->set->stale)
        c->candidates &= ~c->set->stale;
    return c->candidates || c->is_complete;
}

static void heal_from(struct case_ *c, uint32_t sources, unsigned source)
{
    struct heal_judgement *ret = c->ret;
    uint32_t others = ret->taking_part & ~c->copies; /* the arbiter has no data that could be wrong */

    ret->source = source;
    ret->sources = sources | accused_less_than(&c->acc, others, 1);
    ret->sinks = ret->taking_part & ~ret->sources;
    ret->verdict = VERDICT_HEAL;
}

/* Candidates are equal as far as can be seen. */
static void all_are_good(struct case_ *c, unsigned source)
{
    heal_from(c, c->candidates, source);
    if (!c->ret->sinks && !((c->ret->dirty | c->ret->accused) & c->ret->taking_part))
        c->ret->verdict = VERDICT_CLEAN;
}

/* ---- times and sizes ---- */

static int compare_times(int64_t a_s, uint32_t a_ns, int64_t b_s, uint32_t b_ns)
{
    if (a_s != b_s)
        return a_s < b_s ? -1 : 1;
    return a_ns < b_ns ? -1 : a_ns > b_ns;
}

static int by_size(const struct iatt *a, const struct iatt *b)
{
    return a->size < b->size ? -1 : a->size > b->size;
}

static int by_mtime(const struct iatt *a, const struct iatt *b)
{
    return compare_times(a->mtime, a->mtime_nsec, b->mtime, b->mtime_nsec);
}

static int by_ctime(const struct iatt *a, const struct iatt *b)
{
    return compare_times(a->ctime, a->ctime_nsec, b->ctime, b->ctime_nsec);
}

typedef int (*compare_fn)(const struct iatt *a, const struct iatt *b);

/* The children of `among` than which none is greater. */
static uint32_t greatest(const struct heal_answers *a, uint32_t among, compare_fn compare)
{
    uint32_t best = 0;

    for_each_child(i, among)
    {
        int order = best ? compare(&a->stat[i], &a->stat[mask_first(best)]) : 1;

        if (order > 0)
            best = bit(i);
        else if (order == 0)
            best |= bit(i);
    }
    return best;
}

static bool same_size_and_mtime(const struct iatt *a, const struct iatt *b)
{
    return by_size(a, b) == 0 && by_mtime(a, b) == 0;
}

/* ---- split brain ---- */

/* A single greatest, or 0. */
static uint32_t only_greatest(const struct heal_answers *a, uint32_t among, compare_fn compare)
{
    uint32_t best = greatest(a, among, compare);

    return mask_count(best) == 1 ? best : 0;
}

static uint32_t by_policy(const struct case_ *c)
{
    switch ((enum heal_policy)c->set->policy) {
    case HEAL_POLICY_SIZE: return only_greatest(c->a, c->copies, by_size);
    case HEAL_POLICY_CTIME: return only_greatest(c->a, c->copies, by_ctime);
    case HEAL_POLICY_MTIME: return only_greatest(c->a, c->copies, by_mtime);
    case HEAL_POLICY_MAJORITY:
        for_each_child(i, c->copies)
        {
            uint32_t same = 0;

            for_each_child(j, c->copies) same |= same_size_and_mtime(&c->a->stat[i], &c->a->stat[j]) ? bit(j) : 0;
            if (2 * mask_count(same) > c->set->child_count)
                return bit(i);
        }
        break;
    case HEAL_POLICY_NONE: break;
    }
    return 0;
}

static bool is_directory(const struct case_ *c)
{
    return iatt_type(&c->a->stat[mask_first(c->copies)]) == S_IFDIR;
}

static uint32_t by_choice(struct case_ *c)
{
    struct heal_judgement *ret = c->ret;
    uint32_t best = 0;

    switch (c->choice->how) {
    case HEAL_CHOOSE_NOTHING: return 0;
    case HEAL_CHOOSE_POLICY: return is_directory(c) && c->set->policy == HEAL_POLICY_SIZE ? 0 : by_policy(c);
    case HEAL_CHOOSE_CHILD:
        best = c->copies & bit(c->choice->child);
        ret->refusal = best ? HEAL_REFUSED_NOT : HEAL_REFUSED_CHILD_AWAY;
        return best;
    case HEAL_CHOOSE_BIGGER:
    case HEAL_CHOOSE_LATEST_MTIME: break;
    }
    if (is_directory(c)) {
        ret->refusal = HEAL_REFUSED_DIRECTORY;
    } else if (c->choice->how == HEAL_CHOOSE_LATEST_MTIME) {
        best = only_greatest(c->a, c->copies, by_mtime);
        ret->refusal = best ? HEAL_REFUSED_NOT : HEAL_REFUSED_NO_LATER;
    } else if (c->change == CHANGE_METADATA) {
        ret->refusal = HEAL_REFUSED_METADATA;
    } else {
        best = only_greatest(c->a, c->copies, by_size);
        ret->refusal = best ? HEAL_REFUSED_NOT : HEAL_REFUSED_NO_BIGGER;
    }
    return best;
}

/* Every copy is blamed, and all children answered. `equal`: the copies cannot be told apart. */
static void resolve(struct case_ *c, bool are_equal, unsigned source_if_equal)
{
    uint32_t chosen;

    if (are_equal && c->copies) {
        c->ret->is_resolved = true;
        heal_from(c, c->copies, source_if_equal);
        return;
    }
    chosen = c->copies ? by_choice(c) : 0;
    if (!chosen) {
        c->ret->verdict = VERDICT_SPLIT_BRAIN;
        c->ret->sinks = c->ret->taking_part;
        return;
    }
    c->ret->is_resolved = true;
    heal_from(c, chosen, mask_first(chosen));
}

/* ---- data ---- */

static bool are_empty(const struct heal_answers *a, uint32_t copies)
{
    for_each_child(i, copies)
    {
        if (a->stat[i].size)
            return false;
    }
    return true;
}

static bool sizes_differ(const struct heal_answers *a, uint32_t copies)
{
    return copies && greatest(a, copies, by_size) != copies;
}

/* Contents are on disk before their mark goes, so among copies of one length those with a mark are as good or better
 * than those without. */
static unsigned best_of(const struct case_ *c)
{
    uint32_t best = greatest(c->a, c->candidates, by_size);

    if (best & c->acc.dirty)
        best &= c->acc.dirty;
    return mask_first(greatest(c->a, best, by_ctime));
}

void heal_judge_data(const struct heal_set *set, const struct heal_answers *a, uint32_t taking_part,
                     const struct heal_choice *choice, struct heal_judgement *ret)
{
    struct case_ c = { .set = set, .a = a, .choice = choice, .change = CHANGE_DATA, .ret = ret };

    open_case(&c, taking_part);
    if (!find_candidates(&c))
        return;
    if (!c.candidates)
        resolve(&c, are_empty(a, c.copies), c.copies ? mask_first(c.copies) : 0);
    else if ((c.candidates & (c.acc.dirty | ret->accused)) || sizes_differ(a, c.candidates))
        heal_from(&c, bit(best_of(&c)), best_of(&c));
    else
        all_are_good(&c, mask_first(c.candidates));
}

/* ---- metadata ---- */

struct likeness {
    const struct heal_answers *a;
    const uint32_t *xattrs; /* by child: children with the same xattrs */
};

static uint32_t with_attributes_of(const struct likeness *l, uint32_t among, unsigned child)
{
    uint32_t same = 0;

    for_each_child(i, among) same |= heal_same_attributes(&l->a->stat[i], &l->a->stat[child]) ? bit(i) : 0;
    return same;
}

static uint32_t like(const struct likeness *l, uint32_t among, unsigned child)
{
    return with_attributes_of(l, among, child) & l->xattrs[child];
}

typedef uint32_t (*likeness_fn)(const struct likeness *l, uint32_t among, unsigned child);

/* Those of `candidates` in the largest group of `among`; the first of several. */
static uint32_t usual(const struct likeness *l, uint32_t candidates, uint32_t among, likeness_fn group)
{
    uint32_t best = 0;

    for_each_child(i, candidates)
    {
        uint32_t same = group(l, among, i);

        if (mask_count(same) > mask_count(best))
            best = same;
    }
    return candidates & best;
}

/* Attributes may be lost after their mark was taken off elsewhere, and their own mark's removal with them: so those
 * without a mark come first. */
static unsigned usual_one(const struct case_ *c, const struct likeness *l)
{
    uint32_t best = c->candidates & ~c->acc.dirty ? c->candidates & ~c->acc.dirty : c->candidates;

    best = usual(l, best, c->a->ok, with_attributes_of);
    best = usual(l, best, c->a->ok, like);
    return mask_first(greatest(c->a, best, by_ctime));
}

static void resolve_metadata(struct case_ *c, const struct likeness *l)
{
    unsigned first = mask_first(c->copies);

    /* Copies that differ in their times only: the last change counts. */
    resolve(c, like(l, c->copies, first) == c->copies, mask_first(greatest(c->a, c->copies, by_mtime)));
    if (c->ret->verdict == VERDICT_SPLIT_BRAIN && c->set->forced_metadata) {
        c->ret->is_resolved = true;
        c->ret->refusal = HEAL_REFUSED_NOT;
        heal_from(c, bit(first), first);
    }
}

void heal_judge_metadata(const struct heal_set *set, const struct heal_answers *a, uint32_t taking_part,
                         const uint32_t *same, const struct heal_choice *choice, struct heal_judgement *ret)
{
    struct case_ c = { .set = set, .a = a, .choice = choice, .change = CHANGE_METADATA, .ret = ret };
    const struct likeness l = { .a = a, .xattrs = same };
    unsigned source;

    open_case(&c, taking_part);
    if (!find_candidates(&c))
        return;
    if (!c.candidates) {
        resolve_metadata(&c, &l);
        return;
    }
    source = usual_one(&c, &l);
    c.candidates = like(&l, c.candidates, source);
    all_are_good(&c, source);
}

/* ---- entry ---- */

void heal_judge_entry(const struct heal_set *set, const struct heal_answers *a, uint32_t taking_part,
                      struct heal_judgement *ret)
{
    const struct heal_choice none = { .how = HEAL_CHOOSE_NOTHING };
    struct case_ c = { .set = set, .a = a, .choice = &none, .change = CHANGE_ENTRY, .ret = ret };

    open_case(&c, taking_part);
    if (!find_candidates(&c))
        return;
    if (c.candidates) {
        all_are_good(&c, mask_first(c.candidates));
        return;
    }
    ret->verdict = VERDICT_MERGE;
    ret->sinks = ret->taking_part;
    ret->source = mask_first(ret->taking_part);
    ret->is_resolved = true;
}

/* ---- one name ---- */

static bool same_inode(const struct iatt *a, const struct iatt *b)
{
    return gfid_equal(&a->gfid, &b->gfid) && iatt_type(a) == iatt_type(b);
}

struct name_case {
    const struct heal_set *set;
    const struct heal_answers *a;
    const struct heal_judgement *parent;
    const struct heal_choice *choice;
    struct heal_name_judgement *ret;
    uint32_t yes, no; /* of those that have a say */
};

static uint32_t holding(const struct name_case *n, uint32_t among, unsigned child)
{
    uint32_t same = 0;

    for_each_child(i, among) same |= same_inode(&n->a->stat[i], &n->a->stat[child]) ? bit(i) : 0;
    return same;
}

static uint32_t split_kind(const struct name_case *n)
{
    uint32_t split = HEAL_SPLIT_GFID;

    for_each_child(i, n->yes)
    {
        if (iatt_type(&n->a->stat[i]) != iatt_type(&n->a->stat[mask_first(n->yes)]))
            split = HEAL_SPLIT_TYPE;
    }
    return split;
}

static bool any_directory(const struct name_case *n)
{
    for_each_child(i, n->yes)
    {
        if (iatt_type(&n->a->stat[i]) == S_IFDIR)
            return true;
    }
    return false;
}

/* The children with the one inode that a majority has, or 0. */
static uint32_t majority(const struct name_case *n)
{
    for_each_child(i, n->yes)
    {
        uint32_t same = holding(n, n->yes, i);

        if (2 * mask_count(same) > n->set->child_count)
            return same;
    }
    return 0;
}

/* All greatest ones hold the same inode: these, else 0. */
static uint32_t one_greatest(const struct name_case *n, compare_fn compare)
{
    uint32_t best = greatest(n->a, n->yes, compare);

    return holding(n, best, mask_first(best)) == best ? best : 0;
}

static uint32_t name_by_policy(const struct name_case *n)
{
    switch ((enum heal_policy)n->set->policy) {
    case HEAL_POLICY_SIZE: return any_directory(n) ? 0 : one_greatest(n, by_size);
    case HEAL_POLICY_CTIME: return one_greatest(n, by_ctime);
    case HEAL_POLICY_MTIME: return one_greatest(n, by_mtime);
    case HEAL_POLICY_MAJORITY: return n->set->child_count == 2 ? 0 : majority(n);
    case HEAL_POLICY_NONE: break;
    }
    return 0;
}

static uint32_t name_by_choice(const struct name_case *n)
{
    struct heal_name_judgement *ret = n->ret;
    bool is_complete = (n->a->ok | n->a->absent) == mask_all(n->set->child_count);
    uint32_t best = 0;

    if (n->choice->how == HEAL_CHOOSE_NOTHING)
        return 0;
    if (!is_complete) {
        ret->refusal = n->choice->how == HEAL_CHOOSE_POLICY ? HEAL_REFUSED_NOT : HEAL_REFUSED_NOT_ALL;
        return 0;
    }
    switch (n->choice->how) {
    case HEAL_CHOOSE_POLICY: return name_by_policy(n);
    case HEAL_CHOOSE_CHILD:
        best = n->yes & bit(n->choice->child);
        ret->refusal = best ? HEAL_REFUSED_NOT : HEAL_REFUSED_CHILD_AWAY;
        return best;
    default: break;
    }
    if (any_directory(n)) {
        ret->refusal = HEAL_REFUSED_DIRECTORY;
    } else if (n->choice->how == HEAL_CHOOSE_BIGGER) {
        best = one_greatest(n, by_size);
        ret->refusal = best ? HEAL_REFUSED_NOT : HEAL_REFUSED_NO_BIGGER;
    } else {
        best = one_greatest(n, by_mtime);
        ret->refusal = best ? HEAL_REFUSED_NOT : HEAL_REFUSED_NO_LATER;
    }
    return best;
}

/* One change was cut off, a rename or a link over a name: nobody is blamed, so nothing that was acknowledged depends on
 * which inode it is. That one is kept of which there is no other name; it would be lost. */
static uint32_t without_another_name(const struct name_case *n, uint32_t kept)
{
    uint32_t lonely = n->yes & ~kept;

    if (n->parent->verdict == VERDICT_MERGE || !(n->parent->dirty & n->parent->taking_part))
        return 0;
    if (!lonely || lonely == n->yes)
        lonely = greatest(n->a, n->yes, by_ctime);
    return holding(n, lonely, mask_first(lonely)) == lonely ? lonely : 0;
}

/* Several inodes under the name: those children that have the right one, or 0. */
static uint32_t choose_inode(const struct name_case *n, uint32_t kept)
{
    uint32_t right = n->parent->verdict == VERDICT_MERGE ? 0 : majority(n);

    if (!right) {
        right = name_by_choice(n);
        n->ret->is_resolved = right != 0;
    }
    return right ? right : without_another_name(n, kept);
}

/* There has to be a record that says why a name is missing where others have it. Damage leaves none, and must not be
 * carried to the last copy. */
static bool may_remove(const struct name_case *n)
{
    return (n->parent->dirty & n->parent->taking_part) || (n->a->ok & n->parent->accused) == n->a->ok;
}

static uint32_t voters_of(const struct heal_judgement *parent, const struct heal_answers *a)
{
    return (parent->verdict == VERDICT_MERGE ? parent->taking_part : parent->sources) & ~a->no_gfid;
}

/* A change was cut off, and it is open which side is to follow: whoever lacks the name was at it as well. */
static bool is_open(const struct name_case *n)
{
    return n->yes && n->no && n->parent->verdict != VERDICT_MERGE && (n->no & ~n->parent->dirty) == 0 &&
           holding(n, n->yes, mask_first(n->yes)) == n->yes && 2 * mask_count(n->yes) <= n->set->child_count;
}

bool heal_name_may_be_moved(const struct heal_set *set, const struct heal_judgement *parent,
                            const struct heal_answers *a)
{
    uint32_t voters = voters_of(parent, a);
    const struct name_case n = {
        .set = set, .a = a, .parent = parent, .yes = a->ok & voters, .no = a->absent & voters
    };

    return is_open(&n);
}

static bool is_gone(const struct name_case *n, const struct heal_name_facts *facts, uint32_t right)
{
    if (!n->yes)
        return true;
    if (n->parent->verdict == VERDICT_MERGE)
        return false;
    /* A directory has one name. Whoever heals the directory of one name first takes that one; the other one stays. */
    if (is_open(n) && (n->no & ~facts->elsewhere) == 0)
        return true;
    return n->no && !quorum_met(&n->set->quorum, right) && 2 * mask_count(n->no) > n->set->child_count && may_remove(n);
}

void heal_judge_name(const struct heal_set *set, const struct heal_judgement *parent, const struct heal_answers *a,
                     const struct heal_name_facts *facts, const struct heal_choice *choice,
                     struct heal_name_judgement *ret)
{
    uint32_t voters = voters_of(parent, a), answered = a->ok | a->absent | a->no_gfid, right = 0;
    struct name_case n = { .set = set, .a = a, .parent = parent, .choice = choice, .ret = ret };

    *ret = (struct heal_name_judgement) { .verdict = HEAL_NAME_UNDECIDED };
    if (voters & ~answered || !voters)
        return;
    n.yes = a->ok & voters;
    n.no = a->absent & voters;
    if (n.yes) {
        right = holding(&n, n.yes, mask_first(n.yes));
        if (right != n.yes)
            right = choose_inode(&n, facts->kept);
        if (!right) {
            ret->verdict = HEAL_NAME_SPLIT;
            ret->split = split_kind(&n);
            return;
        }
    }
    if (is_gone(&n, facts, right)) {
        ret->wrong = a->ok & parent->taking_part;
        ret->verdict = ret->wrong ? HEAL_NAME_GONE : HEAL_NAME_EQUAL;
        return;
    }
    ret->like = mask_first(right);
    ret->right = holding(&n, a->ok, ret->like);
    ret->wrong = answered & parent->taking_part & ~ret->right;
    ret->verdict = ret->wrong ? HEAL_NAME_EXISTS : HEAL_NAME_EQUAL;
}
