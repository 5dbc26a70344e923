/* cluster/replicate/heal_ask.c - the frame of a heal: its calls, and answers of children as plain data. */
#include "cluster/replicate/heal_internal.h"
#include "core/mem.h"
#include "graph/graph.h"

/* ---- begin and end ---- */

static void fill_set(const struct replicate *s, struct heal_set *ret)
{
    *ret = (struct heal_set) {
        .child_count = s->child_count,
        .arbiter = s->arbiter,
        .quorum = s->quorum,
        .policy = s->favorite_child_policy,
        .forced_metadata = s->forced_metadata_heal,
        .stale = s->witness_said,
    };
    ret->quorum.stale = 0; /* what may go on without the other child may not decide about it */
}

bool heal_is_enough(struct translator *me, uint32_t children)
{
    struct heal_set set;

    fill_set(replicate_of(me), &set);
    return heal_set_is_enough(&set, children);
}

int heal_begin(struct heal *h, struct translator *me, struct call *caller, struct inode *inode,
               const struct heal_how *how, struct heal_report *report)
{
    struct replicate *s = replicate_of(me);

    memset(h, 0, sizeof(*h));
    if (!heal_is_enough(me, s->up))
        return -ENOTCONN;
    h->round.answers = heal_answers_new();
    if (!h->round.answers)
        return -ENOMEM;
    h->me = me;
    list_add_tail(&s->heals, &h->of_all);
    h->caller = caller;
    h->inode = inode_ref(inode);
    h->how = how;
    h->report = report;
    fill_set(s, &h->set);
    for_each_child(i, s->all) h->epoch[i] = s->child[i].epoch;
    call_init(&h->call, me->graph);
    h->call.pid = PID_SELF_HEAL;
    h->call.trace_id = caller->trace_id;
    h->call.scope.deadline_ns = caller->scope.deadline_ns;
    lk_owner_from_u64(&h->call.lk_owner, ++s->next_owner);
    fiber_mutex_init(&h->links);
    return 0;
}

void heal_done(struct heal *h)
{
    if (!h->me)
        return;
    list_del(&h->of_all);
    heal_answers_free(take(h->round.answers));
    call_done(&h->call);
    inode_unref(take(h->inode));
    h->me = NULL;
}

uint32_t heal_present(const struct heal *h)
{
    const struct replicate *s = replicate_of(h->me);
    uint32_t present = 0;

    for_each_child(i, s->up)
    {
        if (s->child[i].epoch == h->epoch[i])
            present |= bit(i);
    }
    return present;
}

struct heal_class_report *heal_class(struct heal *h)
{
    return &h->report->class[h->round.change];
}

void heal_note(struct heal *h, unsigned child, int result)
{
    if (result < 0)
        h->report->child_error[child] = result;
}

uint32_t heal_note_fan(struct heal *h, const struct fan *fan)
{
    for_each_child(i, fan->targets) heal_note(h, i, fan->list[i].ret);
    return fan_ok(fan);
}

int heal_check(struct heal *h)
{
    return replicate_of(h->me)->is_stopping ? -ECANCELED : scope_check(&h->caller->scope, h->me->env);
}

void heals_stop(struct translator *me)
{
    struct heal *h;

    list_for_each (h, &replicate_of(me)->heals, of_all) {
        if (h->waiting)
            scope_cancel(&h->waiting->scope);
    }
}

FIBER int heal_pace(struct heal *h, uint64_t bytes, uint32_t names)
{
    int r = heal_check(h);

    if (r < 0 || !h->how->pace)
        return r;
    return h->how->pace->before(h->how->pace, h->caller, bytes, names);
}

/* ---- a class ---- */

void heal_class_begin(struct heal *h, enum change change)
{
    h->round.change = change;
    h->round.healed = 0;
    memset(&h->round.judged, 0, sizeof(h->round.judged));
    memset(h->round.answers, 0, sizeof(*h->round.answers));
    memset(heal_class(h), 0, sizeof(struct heal_class_report));
}

static enum heal_split split_of(enum change change)
{
    return change == CHANGE_DATA ? HEAL_SPLIT_DATA : HEAL_SPLIT_METADATA;
}

bool heal_decided(struct heal *h)
{
    const struct heal_judgement *judged = &h->round.judged;
    struct heal_class_report *report = heal_class(h);
    uint32_t away = judged->accused & ~judged->taking_part;

    report->sources = judged->sources;
    report->sinks = judged->sinks;
    if (judged->refusal)
        h->report->refusal = judged->refusal;
    switch (judged->verdict) {
    case VERDICT_HEAL:
    case VERDICT_MERGE:
        if (judged->is_resolved && h->round.change != CHANGE_ENTRY)
            h->report->resolved |= split_of(h->round.change);
        return true;
    case VERDICT_SPLIT_BRAIN:
        report->outcome = HEAL_SPLIT_BRAIN;
        report->left = judged->taking_part;
        h->report->split_brain |= split_of(h->round.change);
        return false;
    case VERDICT_CLEAN:
        report->left = away;
        report->outcome = away ? HEAL_LEFT : HEAL_CLEAN;
        return false;
    default: /* too few answers, or the good copy is out of reach */
        report->left = judged->accused;
        report->outcome = HEAL_LEFT;
        return false;
    }
}

int heal_class_end(struct heal *h, int result)
{
    struct heal_class_report *report = heal_class(h);

    if (result >= 0)
        return 0;
    if (result == -ENOMEM || result == -ECANCELED || result == -ETIMEDOUT)
        return result;
    report->outcome = result == -EAGAIN ? HEAL_BUSY : HEAL_LEFT;
    report->left |= h->round.judged.sinks;
    if (result != -EAGAIN)
        h->report->error = result;
    return 0;
}

void heal_report_end(struct heal *h, int result)
{
    struct heal_report *report = h->report;

    for (int i = 0; i < CHANGE_COUNT; i++)
        report->outcome = MAX(report->outcome, report->class[i].outcome);
    if (result >= 0)
        return;
    report->error = result;
    report->outcome = HEAL_ERROR;
}

/* ---- to disk ---- */

/* Special files have nothing to sync; GlusterFS bricks sync directories only by descriptor. */
static bool is_no_failure(int result)
{
    return result >= 0 || result == -EISDIR || result == -EINVAL || result == -EBADF || result == -EOPNOTSUPP ||
           result == -ELOOP || result == -ENXIO;
}

FIBER uint32_t heal_sync(struct heal *h, struct fd *fd, uint32_t children)
{
    const struct request q = { .op = OP_FSYNC, .inode = h->inode, .fd = fd };
    SCOPED(fan_free) struct fan *fan = NULL;
    uint32_t synced = 0;

    if (!children || !replicate_of(h->me)->ensure_durability)
        return children;
    fan = fan_new(h->me, &h->call, children, &q);
    if (!fan)
        return 0;
    fan_run(fan);
    for_each_child(i, children)
    {
        if (is_no_failure(fan->list[i].ret))
            synced |= bit(i);
        else
            heal_note(h, i, fan->list[i].ret);
    }
    return synced;
}

/* ---- answers ---- */

struct heal_answers *heal_answers_new(void)
{
    return NEW(struct heal_answers);
}

void heal_answers_free(struct heal_answers *a)
{
    mem_free(a);
}

static bool holds_count(const struct dict *xdata, const char *key)
{
    uint64_t count;

    return dict_get_uint(xdata, key, &count) == 0 && count > 0;
}

/* Absent is zero; what makes no sense is a mark of its own. */
static void read_counters(const struct dict *xdata, const char *key, unsigned child, struct heal_answers *ret,
                          struct counters *counters)
{
    const void *data;
    size_t size_bytes;
    int r = dict_get_bin(xdata, key, &data, &size_bytes);

    if (r == 0)
        r = counters_parse(data, size_bytes, counters);
    if (r < 0 && r != -ENOENT)
        ret->malformed |= bit(child);
}

static void read_answer(const struct replicate *s, unsigned child, int result, const struct reply *r,
                        struct heal_answers *ret)
{
    ret->result[child] = result;
    if (result == -ENOENT || result == -ESTALE)
        ret->absent |= bit(child);
    if (result == -ENODATA)
        ret->no_gfid |= bit(child);
    if (result < 0)
        return;
    ret->ok |= bit(child);
    ret->stat[child] = r->stat;
    read_counters(r->xdata, s->dirty_key, child, ret, &ret->dirty[child]);
    for (unsigned j = 0; j < s->child_count; j++)
        read_counters(r->xdata, s->child[j].pending_key, child, ret, &ret->pending[child][j]);
    if (holds_count(r->xdata, "glusterfs.inodelk-count") || holds_count(r->xdata, "glusterfs.entrylk-count"))
        ret->at_work |= bit(child);
    if (dict_has(r->xdata, "glusterfs.bad-inode"))
        ret->flagged_bad |= bit(child);
}

/* Bricks count inode locks by domain; of locks on names they tell the sum only. */
static FIBER int ask(struct translator *me, struct call *call, const struct request *q, uint32_t children,
                     const char *healers, struct heal_answers *ret)
{
    struct replicate *s = replicate_of(me);
    SCOPED(fan_free) struct fan *fan = fan_new(me, call, children, q);

    if (!fan)
        return -ENOMEM;
    fan_run(fan);
    memset(ret, 0, sizeof(*ret));
    ret->child_count = s->child_count;
    ret->asked = children;
    for_each_child(i, children)
    {
        const struct reply *r = &fan->list[i].r;

        read_answer(s, i, fan->list[i].ret, r, ret);
        if (healers && (holds_count(r->xdata, healers) || holds_count(r->xdata, "glusterfs.entrylk-count")))
            ret->healing |= bit(i);
    }
    return 0;
}

FIBER int heal_ask_healers(struct heal *h, struct inode *inode, uint32_t children, struct heal_answers *ret)
{
    SCOPED(dict_unref) struct dict *xdata = dict_copy(replicate_of(h->me)->ask);
    SCOPED_FREE char *key = mem_printf("glusterfs.inodelk-dom-prefix:%s:self-heal", h->me->name);
    const struct request q = { .op = OP_LOOKUP, .inode = inode, .xdata = xdata };

    if (!xdata || !key || dict_set_int(xdata, "glusterfs.multi-dom-lk-cnt-req", 1) < 0 ||
        dict_set_int(xdata, key, 0) < 0)
        return -ENOMEM;
    return ask(h->me, &h->call, &q, children, key, ret);
}

FIBER int heal_ask(struct heal *h, struct inode *inode, uint32_t children, struct heal_answers *ret)
{
    const struct request q = { .op = OP_LOOKUP, .inode = inode, .xdata = replicate_of(h->me)->ask };

    return ask(h->me, &h->call, &q, children, NULL, ret);
}

FIBER int heal_ask_name(struct heal *h, struct inode *parent, const char *name, uint32_t children,
                        struct heal_answers *ret)
{
    const struct request q = { .op = OP_LOOKUP, .parent = parent, .name = name, .xdata = replicate_of(h->me)->ask };

    return ask(h->me, &h->call, &q, children, NULL, ret);
}

/* ---- between the decision and the undo ---- */

/* A counter against this child moved since the decision: it missed something while we worked. */
static bool has_missed(const struct heal_round *round, const struct heal_answers *now, unsigned child)
{
    for_each_child(i, now->ok & round->answers->ok)
    {
        if (now->pending[i][child].n[round->change] != round->answers->pending[i][child].n[round->change])
            return true;
    }
    return false;
}

uint32_t heal_unchanged(const struct heal *h, const struct heal_answers *now)
{
    uint32_t unchanged = 0;

    for_each_child(i, now->ok & h->round.judged.taking_part)
    {
        if (!has_missed(&h->round, now, i))
            unchanged |= bit(i);
    }
    return unchanged;
}

FIBER uint32_t heal_still_good(struct heal *h, uint32_t children)
{
    SCOPED(heal_answers_free) struct heal_answers *now = heal_answers_new();
    uint32_t good;

    if (!now || heal_ask(h, h->inode, children, now) < 0 || !heal_set_is_enough(&h->set, now->ok))
        return 0;
    good = heal_unchanged(h, now);
    return good & bit(h->round.judged.source) ? good : 0;
}
