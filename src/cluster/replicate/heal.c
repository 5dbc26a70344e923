/* cluster/replicate/heal.c - one inode: what is wanted, in which order, and the report; and looking only. */
#include "cluster/replicate/heal_internal.h"
#include "core/mem.h"

struct heal_report *heal_report_new(void)
{
    return NEW(struct heal_report);
}

void heal_report_free(struct heal_report *report)
{
    mem_free(report);
}

struct heal_view *heal_view_new(void)
{
    return NEW(struct heal_view);
}

void heal_view_free(struct heal_view *view)
{
    mem_free(view);
}

const char *heal_outcome_text(enum heal_outcome outcome)
{
    static const char *const texts[] = {
        [HEAL_CLEAN] = "clean",
        [HEAL_DONE] = "done",
        [HEAL_BUSY] = "busy",
        [HEAL_LEFT] = "left",
        [HEAL_SPLIT_BRAIN] = "split-brain",
        [HEAL_ERROR] = "error",
    };

    return (unsigned)outcome < ARRAY_SIZE(texts) ? texts[outcome] : "?";
}

/* ---- what is wanted ---- */

struct wanted {
    uint32_t classes;    /* bit(enum change) */
    uint32_t split;      /* HEAL_SPLIT_TYPE: one gfid, different types */
    bool is_pending;     /* somebody is blamed */
    bool has_difference; /* without a record */
};

static uint32_t applicable(uint32_t type)
{
    switch (type) {
    case S_IFDIR: return bit(CHANGE_METADATA) | bit(CHANGE_ENTRY);
    case S_IFREG: return bit(CHANGE_DATA) | bit(CHANGE_METADATA);
    default: return bit(CHANGE_METADATA);
    }
}

static void look_at_counters(const struct heal_answers *a, enum change change, struct wanted *ret)
{
    struct accusations acc;

    heal_accusations(a, change, &acc);
    if (acc.dirty || accusations_accused(&acc))
        ret->classes |= bit(change);
    if (accusations_accused(&acc))
        ret->is_pending = true;
}

static void look_at_copies(const struct heal_answers *a, uint32_t arbiter, struct wanted *ret)
{
    unsigned first = mask_first(a->ok), sized = mask_first(a->ok & ~arbiter ? a->ok & ~arbiter : a->ok);
    uint32_t differing = 0;

    for_each_child(i, a->ok)
    {
        if (iatt_type(&a->stat[i]) != iatt_type(&a->stat[first]))
            ret->split = HEAL_SPLIT_TYPE;
        if (!heal_same_attributes(&a->stat[i], &a->stat[first]))
            differing |= bit(CHANGE_METADATA);
        if (!(arbiter & bit(i)) && a->stat[i].size != a->stat[sized].size)
            differing |= bit(CHANGE_DATA);
    }
    differing &= applicable(iatt_type(&a->stat[first]));
    ret->has_difference = differing != 0;
    ret->classes |= differing;
}

static void find_wanted(const struct heal_answers *a, uint32_t arbiter, struct wanted *ret)
{
    uint32_t classes;

    memset(ret, 0, sizeof(*ret));
    if (!a->ok)
        return;
    classes = applicable(iatt_type(&a->stat[mask_first(a->ok)]));
    for (int change = 0; change < CHANGE_COUNT; change++) {
        if (classes & bit((unsigned)change))
            look_at_counters(a, (enum change)change, ret);
    }
    look_at_copies(a, arbiter, ret);
}

/* ---- one inode ---- */

static FIBER int heal_classes(struct heal *h, uint32_t classes)
{
    static FIBER int (*const heal_class_fn[CHANGE_COUNT])(struct heal * h) = {
        [CHANGE_DATA] = heal_data,
        [CHANGE_METADATA] = heal_metadata,
        [CHANGE_ENTRY] = heal_entry,
    };
    int r = 0;

    for (unsigned change = 0; change < CHANGE_COUNT && r >= 0; change++) {
        if (classes & bit(change))
            r = heal_class_fn[change](h);
    }
    return r;
}

/* Nobody may be left to say that it is gone, or too few. */
static int without_answer(struct heal *h, const struct heal_answers *a)
{
    h->report->is_gone = heal_set_is_enough(&h->set, a->absent);
    if (h->report->is_gone)
        return 0;
    h->report->outcome = HEAL_LEFT;
    h->report->error = -ENOTCONN;
    return 0;
}

static FIBER int heal_wanted(struct heal *h, const struct heal_answers *a)
{
    const struct heal_how *how = h->how;
    uint32_t asked = how->classes ? how->classes : bit(CHANGE_COUNT) - 1;
    struct wanted wanted;
    int r;

    find_wanted(a, h->set.arbiter, &wanted);
    if (wanted.split) {
        h->report->split_brain |= wanted.split;
        h->report->outcome = HEAL_SPLIT_BRAIN;
        return 0;
    }
    if (how->flags & HEAL_FULL) {
        wanted.classes |= applicable(iatt_type(&a->stat[mask_first(a->ok)])) & bit(CHANGE_ENTRY);
        wanted.classes |= heal_xattrs_differ(h, a->ok) ? bit(CHANGE_METADATA) : 0;
    }
    /* Only marks, and somebody holds the lock: whoever made them is at work and will take them off. */
    if (!wanted.is_pending && a->at_work && !(how->flags & (HEAL_FULL | HEAL_RESOLVE)) && wanted.classes) {
        h->report->outcome = HEAL_BUSY;
        return 0;
    }
    r = heal_classes(h, wanted.classes & asked);
    if (r >= 0 && !wanted.classes && (how->flags & HEAL_FROM_INDEX))
        heal_touch_index(h, h->inode, a->ok);
    return r;
}

static FIBER int heal_one(struct heal *h)
{
    SCOPED(heal_answers_free) struct heal_answers *a = heal_answers_new();
    int r = heal_check(h);

    if (r < 0)
        return r;
    r = a ? heal_ask(h, h->inode, heal_present(h), a) : -ENOMEM;
    if (r < 0)
        return r;
    if (!a->ok)
        return without_answer(h, a);
    if ((h->how->flags & HEAL_RESOLVE) && a->ok != mask_all(h->set.child_count)) {
        h->report->refusal = HEAL_REFUSED_NOT_ALL;
        h->report->outcome = HEAL_LEFT;
        return 0;
    }
    return heal_wanted(h, a);
}

FIBER int heal_inode(struct translator *me, struct call *call, struct inode *inode, const struct heal_how *how,
                     struct heal_report *ret)
{
    struct heal h;
    int r;

    memset(ret, 0, sizeof(*ret));
    r = heal_begin(&h, me, call, inode, how, ret);
    if (r < 0)
        return r;
    r = heal_one(&h);
    heal_report_end(&h, r);
    if ((how->flags & HEAL_RESOLVE) && !ret->refusal && !ret->resolved && !ret->split_brain)
        ret->refusal = HEAL_REFUSED_NOT_SPLIT;
    heal_done(&h);
    return r == -ENOMEM ? r : 0;
}

/* ---- looking only ---- */

static void view_child(const struct heal_answers *a, unsigned child, struct heal_view_child *ret)
{
    ret->error = a->result[child] < 0 ? a->result[child] : 0;
    ret->stat = a->stat[child];
    for (int change = 0; change < CHANGE_COUNT; change++) {
        ret->is_dirty[change] = a->dirty[child].n[change] != 0 || (a->malformed & bit(child));
        for_each_child(i, a->ok & ~bit(child))
        {
            if (a->pending[i][child].n[change])
                ret->blamed_by[change] |= bit(i);
        }
    }
}

/* No copy of this class can be believed. Xattrs are not compared here: heal would find equal ones and resolve it. */
static bool is_split(const struct heal_set *set, const struct heal_answers *a, enum change change)
{
    const struct heal_choice nothing = { .how = HEAL_CHOOSE_NOTHING };
    uint32_t same[CHILDREN_MAX] = { 0 };
    struct heal_judgement judged;

    for_each_child(i, a->ok) same[i] = bit(i);
    if (change == CHANGE_DATA)
        heal_judge_data(set, a, a->ok, &nothing, &judged);
    else
        heal_judge_metadata(set, a, a->ok, same, &nothing, &judged);
    return judged.verdict == VERDICT_SPLIT_BRAIN;
}

static int64_t stale_since(const struct heal_view *view)
{
    int64_t since_s = 0;

    for_each_child(i, view->answered)
    {
        const struct heal_view_child *c = &view->child[i];
        bool is_blamed = c->blamed_by[CHANGE_DATA] || c->blamed_by[CHANGE_METADATA] || c->blamed_by[CHANGE_ENTRY];

        if (is_blamed && (!since_s || c->stat.ctime < since_s))
            since_s = c->stat.ctime;
    }
    return since_s;
}

static void fill_view(const struct heal *h, const struct heal_answers *a, struct heal_view *ret)
{
    struct wanted wanted;

    memset(ret, 0, sizeof(*ret));
    ret->answered = a->ok;
    for_each_child(i, a->asked) view_child(a, i, &ret->child[i]);
    for_each_child(i, mask_all(h->set.child_count) & ~a->asked) ret->child[i].error = -ENOTCONN;
    ret->is_gone = !a->ok;
    if (!a->ok)
        return;
    find_wanted(a, h->set.arbiter, &wanted);
    ret->is_pending = wanted.is_pending;
    ret->is_at_work = !wanted.is_pending && a->at_work && wanted.classes;
    ret->needs = ret->is_at_work ? 0 : wanted.classes;
    ret->split_brain = wanted.split;
    if ((wanted.classes & bit(CHANGE_DATA)) && is_split(&h->set, a, CHANGE_DATA))
        ret->split_brain |= HEAL_SPLIT_DATA;
    if ((wanted.classes & bit(CHANGE_METADATA)) && is_split(&h->set, a, CHANGE_METADATA))
        ret->split_brain |= HEAL_SPLIT_METADATA;
    ret->since_s = stale_since(ret);
}

static FIBER int look(struct heal *h, struct heal_view *ret)
{
    SCOPED(heal_answers_free) struct heal_answers *a = heal_answers_new();
    int r = a ? heal_ask_healers(h, h->inode, heal_present(h), a) : -ENOMEM;

    if (r < 0)
        return r;
    if (!heal_set_is_enough(&h->set, a->ok | a->absent))
        return -ENOTCONN;
    fill_view(h, a, ret);
    ret->is_healing = ret->is_pending && a->healing;
    return 0;
}

FIBER int heal_look(struct translator *me, struct call *call, struct inode *inode, struct heal_view *ret)
{
    const struct heal_how how = { 0 };
    struct heal h;
    int r = heal_begin(&h, me, call, inode, &how, NULL);

    if (r < 0)
        return r;
    r = look(&h, ret);
    heal_done(&h);
    return r;
}

static void view_name(const struct heal_answers *a, struct heal_view *ret)
{
    memset(ret, 0, sizeof(*ret));
    ret->answered = a->ok | a->absent | a->no_gfid;
    ret->is_gone = !a->ok && !a->no_gfid;
    for_each_child(i, a->asked)
    {
        view_child(a, i, &ret->child[i]);
        if (a->ok & bit(i)) {
            const struct iatt *one = &a->stat[i], *other = &a->stat[mask_first(a->ok)];

            if (iatt_type(one) != iatt_type(other))
                ret->split_brain |= HEAL_SPLIT_TYPE;
            else if (!gfid_equal(&one->gfid, &other->gfid))
                ret->split_brain |= HEAL_SPLIT_GFID;
        }
    }
    if (ret->split_brain || a->no_gfid || (a->ok && a->absent))
        ret->needs = bit(CHANGE_ENTRY);
}

FIBER int heal_look_name(struct translator *me, struct call *call, struct inode *parent, const char *name,
                         struct heal_view *ret)
{
    const struct heal_how how = { 0 };
    SCOPED(heal_answers_free) struct heal_answers *a = heal_answers_new();
    struct heal h;
    int r;

    if (!a)
        return -ENOMEM;
    r = heal_begin(&h, me, call, parent, &how, NULL);
    if (r < 0)
        return r;
    r = heal_ask_name(&h, parent, name, heal_present(&h), a);
    if (r == 0 && !heal_set_is_enough(&h.set, a->ok | a->absent | a->no_gfid))
        r = -ENOTCONN;
    if (r == 0) {
        view_name(a, ret);
        for_each_child(i, mask_all(h.set.child_count) & ~a->asked) ret->child[i].error = -ENOTCONN;
    }
    heal_done(&h);
    return r;
}
