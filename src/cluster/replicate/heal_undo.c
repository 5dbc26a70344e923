/* cluster/replicate/heal_undo.c - blaming before the work, and taking counters off after it.
 *
 * Order of writing, so that a crash anywhere leaves somebody who tells: first whoever is not equal is blamed by all that
 * are, then what blamed the equal ones goes. A child that was away while marks were resolved is not equal: what it has
 * was not looked at.
 */
#include "cluster/replicate/heal_internal.h"
#include "core/mem.h"

struct undo {
    struct heal *h;
    struct heal_answers *now;
    uint32_t good;    /* equal, on disk, and nothing has happened to them since */
    uint32_t blamed;  /* must be blamed by all of those */
    uint32_t holders; /* children under the lock that answered */
};

/* ---- adding ---- */

static void add_counters(struct counters *to, const struct counters *add)
{
    for (int i = 0; i < CHANGE_COUNT; i++)
        to->n[i] += add->n[i];
}

/* What a child is blamed with. The names it missed are listed on those that blamed it first, not on those that do so now:
 * these say "all names" (a data count on a directory). */
static struct counters one_blame(const struct heal *h)
{
    struct counters c = { 0 };

    c.n[h->round.change] = 1;
    if (h->round.change == CHANGE_ENTRY && replicate_of(h->me)->granular_entry_heal)
        c.n[CHANGE_DATA] = 1;
    return c;
}

static bool blames(const struct heal *h, const struct heal_answers *a, unsigned i, unsigned j)
{
    return a->pending[i][j].n[h->round.change] != 0;
}

/* Those of `blamed` that child i does not blame yet. */
static uint32_t not_yet_blamed(const struct heal *h, const struct heal_answers *a, unsigned i, uint32_t blamed)
{
    uint32_t missing = 0;

    for_each_child(j, blamed & ~bit(i))
    {
        if (!blames(h, a, i, j))
            missing |= bit(j);
    }
    return missing;
}

static struct dict *blame_dict(const struct heal *h, uint32_t blamed)
{
    const struct replicate *s = replicate_of(h->me);
    const struct counters one = one_blame(h), zero = { 0 };
    struct dict *d = dict_new();
    int r = d ? counters_put(d, s->dirty_key, &zero) : -ENOMEM;

    for (unsigned j = 0; j < s->child_count && r == 0; j++)
        r = counters_put(d, s->child[j].pending_key, blamed & bit(j) ? &one : &zero);
    if (r == 0)
        return d;
    dict_unref(d);
    return NULL;
}

static int fill_blames(const struct heal *h, const struct heal_answers *a, struct fan *fan, uint32_t blamed)
{
    for_each_child(i, fan->targets)
    {
        struct fan_child *c = &fan->list[i];

        c->own_xattrs = c->q.xattrs = blame_dict(h, not_yet_blamed(h, a, i, blamed));
        if (!c->own_xattrs)
            return -ENOMEM;
    }
    return 0;
}

/* All of `by` blame all of `blamed` afterwards; a->pending says so. Returns those that could write it; *ret_error. */
static FIBER uint32_t blame(struct heal *h, struct heal_answers *a, uint32_t by, uint32_t blamed, int *ret_error)
{
    const struct request q = { .op = OP_XATTROP, .inode = h->inode, .flags = XATTROP_ADD32 };
    const struct counters one = one_blame(h);
    SCOPED(fan_free) struct fan *fan = NULL;
    uint32_t lacking = 0, done;

    for_each_child(i, by)
    {
        if (not_yet_blamed(h, a, i, blamed))
            lacking |= bit(i);
    }
    if (!lacking)
        return by;
    /* A pair's witness knows first, and may know better. */
    if (replicate_of(h->me)->witness && witness_cover(h->me, by) < 0)
        return by & ~lacking;
    fan = fan_new(h->me, &h->call, lacking, &q);
    if (!fan || fill_blames(h, a, fan, blamed) < 0) {
        *ret_error = -ENOMEM;
        return 0;
    }
    fan_run(fan);
    done = heal_note_fan(h, fan);
    for_each_child(i, done)
    {
        for_each_child(j, not_yet_blamed(h, a, i, blamed)) add_counters(&a->pending[i][j], &one);
    }
    return (by & ~lacking) | done;
}

FIBER int heal_blame_sinks(struct heal *h, uint32_t children)
{
    struct heal_judgement *judged = &h->round.judged;
    int error = -ENOTCONN;
    uint32_t wrote = blame(h, h->round.answers, judged->sources & children, judged->sinks, &error);

    /* A source that cannot say who is behind is not believed, but not written to either. */
    judged->sources = wrote;
    judged->taking_part = judged->sources | (judged->sinks & children);
    judged->sinks &= children;
    if (!judged->sources || !heal_set_is_enough(&h->set, judged->taking_part))
        return error;
    if (!(judged->sources & bit(judged->source))) {
        uint32_t with_data = judged->sources & ~(h->round.change == CHANGE_DATA ? h->set.arbiter : 0);

        if (!with_data)
            return -ENOTCONN;
        judged->source = mask_first(with_data);
    }
    return 0;
}

/* ---- taking off ---- */

static bool has_mark(const struct heal *h, unsigned i)
{
    const struct heal_answers *then = h->round.answers;

    return then->dirty[i].n[h->round.change] != 0 || (then->malformed & bit(i));
}

/* Whoever is not good, and known to be behind or not looked at when marks were resolved. */
static uint32_t to_blame(const struct undo *u)
{
    const struct heal *h = u->h;
    const struct heal_answers *then = h->round.answers;
    uint32_t others = mask_all(h->set.child_count) & ~u->good;
    uint32_t blamed = others & h->round.judged.taking_part;
    bool decides = h->round.judged.is_resolved;

    for_each_child(i, u->good)
    {
        decides = decides || has_mark(h, i);
        for_each_child(j, others)
        {
            if (blames(h, u->now, i, j))
                blamed |= bit(j);
        }
    }
    /* A child without the inode has no copy that could be taken for good; it gets its marks when it gets the inode. */
    return decides ? blamed | (others & ~then->absent) : blamed;
}

/* Settles who is good and has everybody else blamed by them. 0 or why not. */
static FIBER int settle(struct undo *u)
{
    int error = -ENOTCONN;

    for (;;) {
        uint32_t wrote;

        if (!(u->good & u->h->round.judged.sources) && u->h->round.judged.sources)
            return error;
        if (!heal_set_is_enough(&u->h->set, u->good))
            return error;
        u->blamed = to_blame(u);
        wrote = blame(u->h, u->now, u->good, u->blamed, &error);
        if (wrote == u->good)
            return 0;
        u->good = wrote;
    }
}

static void take_off(const struct heal_round *round, const struct counters *then, struct counters *ret)
{
    memset(ret, 0, sizeof(*ret));
    ret->n[round->change] = -then->n[round->change];
    /* A data count on a directory says "all names". */
    if (round->change == CHANGE_ENTRY)
        ret->n[CHANGE_DATA] = -then->n[CHANGE_DATA];
}

/* What comes off child i: its blame of the good ones; and, if it is good itself, its mark. */
static struct dict *undo_dict(const struct undo *u, unsigned i)
{
    const struct replicate *s = replicate_of(u->h->me);
    const struct heal_answers *then = u->h->round.answers;
    struct counters c = { 0 };
    struct dict *d = dict_new();
    int r;

    if (!d)
        return NULL;
    if (u->good & bit(i))
        take_off(&u->h->round, &then->dirty[i], &c);
    r = counters_put(d, s->dirty_key, &c);
    for (unsigned j = 0; j < s->child_count && r == 0; j++) {
        memset(&c, 0, sizeof(c));
        if (u->good & bit(j))
            take_off(&u->h->round, &then->pending[i][j], &c);
        r = counters_put(d, s->child[j].pending_key, &c);
    }
    if (r == 0)
        return d;
    dict_unref(d);
    return NULL;
}

/* The brick drops the list of names when all counters have become zero: that may be when the names are healed or, where
 * the attributes took longer, when these are. */
static struct dict *purge_dict(const struct heal *h)
{
    struct dict *d = h->round.change != CHANGE_DATA ? dict_new() : NULL;

    /* Without it the list of names stays until the next heal. */
    if (d && dict_set_int(d, "glusterfs.xattrop-purge-index", 1) < 0)
        dict_unref(take(d));
    return d;
}

/* Returns the children whose counters were taken off. */
static FIBER uint32_t write_undo(struct undo *u)
{
    SCOPED(dict_unref) struct dict *purge = purge_dict(u->h);
    const struct request q = { .op = OP_XATTROP, .inode = u->h->inode, .flags = XATTROP_ADD32, .xdata = purge };
    SCOPED(fan_free) struct fan *fan = fan_new(u->h->me, &u->h->call, u->holders, &q);

    if (!fan)
        return 0;
    for_each_child(i, fan->targets)
    {
        fan->list[i].own_xattrs = fan->list[i].q.xattrs = undo_dict(u, i);
        if (!fan->list[i].own_xattrs)
            return 0;
    }
    fan_run(fan);
    return heal_note_fan(u->h, fan);
}

static FIBER int undo(struct undo *u, uint32_t children)
{
    struct heal *h = u->h;
    struct heal_round *round = &h->round;
    struct heal_class_report *report = heal_class(h);
    uint32_t written;
    int r = heal_ask(h, h->inode, children, u->now);

    if (r < 0)
        return r;
    u->holders = u->now->ok & round->answers->ok;
    u->good = (round->judged.sources | round->healed) & heal_unchanged(h, u->now) & children;
    r = settle(u);
    report->left |= (round->judged.sinks | u->blamed) & ~(u->good & (round->judged.sources | round->healed));
    if (r < 0)
        return r;
    written = write_undo(u);
    report->healed = round->healed & u->good;
    report->outcome = report->left || written != u->holders ? HEAL_LEFT : HEAL_DONE;
    known_forget(h->me, h->inode);
    return 0;
}

FIBER int heal_undo(struct heal *h, uint32_t children)
{
    struct undo u = { .h = h, .now = heal_answers_new() };
    int r = -ENOMEM;

    if (u.now)
        r = undo(&u, children);
    if (r < 0) {
        heal_class(h)->outcome = HEAL_LEFT;
        heal_class(h)->left |= h->round.judged.sinks;
    }
    heal_answers_free(u.now);
    return r == -ENOMEM ? r : 0;
}

FIBER void heal_touch_index(struct heal *h, struct inode *inode, uint32_t children)
{
    struct replicate *s = replicate_of(h->me);
    const struct request q = { .op = OP_XATTROP, .inode = inode, .flags = XATTROP_ADD32, .xattrs = s->zero_adds };
    SCOPED(fan_free) struct fan *fan = fan_new(h->me, &h->call, children, &q);

    if (fan)
        fan_run(fan);
}
