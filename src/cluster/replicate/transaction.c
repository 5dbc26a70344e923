/* cluster/replicate/transaction.c - one change on all replicas.
 *
 *   join the sessions it needs (lock and dirty mark) - ask all children at once - judge - record who missed it - answer
 *
 * Nothing is answered as done before (a) enough children did it, one of them a good one, and (b) the children that did
 * not are recorded as behind on enough of those that did. A change whose outcome is uncertain leaves its dirty mark.
 */
#include "cluster/replicate/replicate_internal.h"
#include "core/mem.h"

#define RIDE_AFTER_CONTENTION_NS 10000000000ull

struct txn *txn_new(struct translator *me, struct call *call, const struct request *q, enum change change)
{
    struct txn *txn = NEW(struct txn);

    if (!txn)
        return NULL;
    txn->me = me;
    txn->call = call;
    txn->q = q;
    txn->change = change;
    call_copy(&txn->own, call);
    txn->own.scope.deadline_ns = 0;
    return txn;
}

void txn_free(struct txn *txn)
{
    if (!txn)
        return;
    fan_free(txn->fan);
    for (unsigned i = 0; i < CLAIMS_MAX; i++)
        dict_unref(txn->ending[i]);
    call_merge_round_trips(txn->call, &txn->own);
    call_done(&txn->own);
    mem_free(txn);
}

struct claim *txn_claim(struct txn *txn, struct inode *inode, enum change change)
{
    struct claim *claim = &txn->claim[txn->claim_count++];

    assert(txn->claim_count <= CLAIMS_MAX);
    claim->inode = inode;
    claim->change = change;
    claim->wants_mark = true;
    claim->end = UINT64_MAX;
    return claim;
}

void ride_adapt(struct translator *me, unsigned child, struct request *q)
{
    struct replicate *s = replicate_of(me);

    if (!(s->arbiter & bit(child)))
        return;
    if (q->op == OP_COPY_RANGE) {
        *q = (struct request) { .op = OP_WRITE, .inode = q->inode2, .fd = q->fd2, .offset = q->offset2 };
        q->data = s->arbiter_data;
    } else if (q->op == OP_WRITE) {
        q->data = s->arbiter_data;
    }
}

/* ---- joining ---- */

/* All clients take several inodes in the same order, so that none waits for one while holding a later one. */
static void sort_claims(struct txn *txn)
{
    for (unsigned i = 1; i < txn->claim_count; i++) {
        for (unsigned j = i; j > 0; j--) {
            struct claim *a = &txn->claim[j - 1], *b = &txn->claim[j], tmp;

            int order = memcmp(&a->inode->gfid, &b->inode->gfid, sizeof(struct gfid));

            if (order < 0 || (order == 0 && a->change <= b->change))
                break;
            tmp = *a;
            *a = *b;
            *b = tmp;
        }
    }
}

static void leave_all(struct txn *txn)
{
    for (unsigned i = 0; i < txn->claim_count; i++) {
        if (txn->claim[i].session)
            session_leave(&txn->claim[i]);
    }
}

static bool may_ride(const struct txn *txn)
{
    struct inode *inode = txn->claim[0].inode;
    struct inode_state *state = inode_state(txn->me, inode);
    uint64_t now = env_now_ns(txn->me->env);

    if (!txn->is_idempotent || txn->claim_count != 1 || !state || !known_is_fresh(txn->me, inode))
        return false;
    /* Where others want the lock too, the first attempt will often fail: better not leave half a change behind. */
    if (state->contended_ns && now - state->contended_ns < RIDE_AFTER_CONTENTION_NS)
        return false;
    return (txn->change == CHANGE_METADATA ? state->known.metadata : state->known.data) != 0;
}

static FIBER int join_all(struct txn *txn)
{
    struct ride ride = { .q = txn->q };

    sort_claims(txn);
    for (unsigned i = 0; i < txn->claim_count; i++) {
        struct claim *claim = &txn->claim[i];
        struct fd *fd = claim->inode == txn->q->inode ? txn->q->fd : NULL;
        int r;

        if (txn->q->op == OP_COPY_RANGE)
            fd = txn->q->fd2;
        r = session_join(txn->me, txn->call, claim, fd && !fd->is_dir && claim->change != CHANGE_ENTRY ? fd : NULL,
                         may_ride(txn) ? &ride : NULL);
        if (r < 0) {
            leave_all(txn);
            return r;
        }
    }
    txn->fan = ride.fan;
    return 0;
}

/* ---- asking ---- */

static uint32_t targets_of(const struct txn *txn)
{
    uint32_t targets = replicate_of(txn->me)->all;

    for (unsigned i = 0; i < txn->claim_count; i++) {
        if (txn->claim[i].session && !txn->claim[i].only_if_open)
            targets &= session_targets(txn->claim[i].session);
    }
    return targets;
}

/* Which children are good for this change. Names: where no copy of the directories is, all are (they will be merged). */
static uint32_t good_of(const struct txn *txn)
{
    uint32_t good = replicate_of(txn->me)->all;

    for (unsigned i = 0; i < txn->claim_count; i++) {
        if (txn->claim[i].wants_mark)
            good &= txn->claim[i].session->good;
    }
    return good || txn->change != CHANGE_ENTRY ? good : replicate_of(txn->me)->all;
}

/* Children on whose copy the change can be based: the arbiter has no data. */
static uint32_t base_of(const struct txn *txn)
{
    return good_of(txn) & ~(txn->change == CHANGE_DATA ? replicate_of(txn->me)->arbiter : 0);
}

/* Is there anybody whose copy the change can be based on? */
static int check_good(const struct txn *txn)
{
    struct replicate *s = replicate_of(txn->me);
    uint32_t good = good_of(txn);

    if (txn->change == CHANGE_ENTRY)
        return 0;
    if (!good)
        return -EIO;
    if (!(good & ~s->arbiter))
        return -ENOTCONN; /* the arbiter knows that the copies within reach are old */
    return 0;
}

/* The change is the last step of what each child was asked, or all of it. */
static void collect(struct txn *txn)
{
    txn->asked = txn->fan->targets;
    for_each_child(i, txn->asked)
    {
        struct fan_child *c = &txn->fan->list[i];

        if (c->steps) {
            txn->result[i] = fan_step(txn->fan, i, c->q.step_count - 1, &txn->answer[i]);
        } else {
            txn->result[i] = c->ret;
            txn->answer[i] = &c->r;
        }
        if (txn->result[i] >= 0)
            txn->ok |= bit(i);
    }
}

/* ---- inodes that go ---- */

/* An inode that is about to go still has marks if it was changed just now, and afterwards nobody could take them off:
 * the bricks would list it as dirty for ever. So they are taken off in front of the change, in the same message. */
static bool ends_marks(const struct claim *claim)
{
    const struct session *session = claim->session;

    if (!session || claim->wants_mark || !session->is_marked_session || session->keep_dirty || session->is_unstable)
        return false;
    for_each_child(i, session->marked)
    {
        if (session->marks[i] != 1)
            return false;
    }
    return true;
}

static int put_endings(struct txn *txn, unsigned count)
{
    struct replicate *s = replicate_of(txn->me);

    if (fan_steps(txn->fan, count + 1) < 0)
        return -ENOMEM;
    for_each_child(i, txn->fan->targets) txn->fan->list[i].q.step_count = 0;
    for (unsigned n = 0; n < txn->claim_count; n++) {
        struct session *session = txn->claim[n].session;

        if (!ends_marks(&txn->claim[n]))
            continue;
        txn->ending[n] = counters_delta(s, session->change, -1, 0);
        if (!txn->ending[n])
            return -ENOMEM;
        for_each_child(i, txn->fan->targets & session_holders(session, session->marked) & ~session->missed)
        {
            struct fan_child *c = &txn->fan->list[i];

            c->steps[c->q.step_count++] = (struct request) {
                .op = OP_XATTROP, .inode = session->inode, .flags = XATTROP_ADD32, .xattrs = txn->ending[n]
            };
        }
    }
    for_each_child(i, txn->fan->targets)
    {
        struct fan_child *c = &txn->fan->list[i];

        c->steps[c->q.step_count++] = *txn->q;
    }
    return 0;
}

static void marks_have_ended(struct txn *txn)
{
    for (unsigned n = 0; n < txn->claim_count; n++) {
        struct session *session = txn->claim[n].session;

        if (!txn->ending[n])
            continue;
        session->is_marked_session = false;
        session->marked = 0;
    }
}

static FIBER int ask_all(struct txn *txn)
{
    uint32_t targets = targets_of(txn);
    unsigned endings = 0;

    if (witness_cover(txn->me, targets) < 0)
        return -ENOTCONN;
    targets = targets_of(txn);
    call_merge_round_trips(&txn->own, txn->call); /* what opening the sessions took came before */
    txn->fan = fan_new(txn->me, &txn->own, targets, txn->q);
    if (!txn->fan)
        return -ENOMEM;
    for (unsigned n = 0; n < txn->claim_count; n++)
        endings += ends_marks(&txn->claim[n]);
    if (endings && put_endings(txn, endings) < 0)
        return -ENOMEM;
    for_each_child(i, targets)
    {
        if (!endings)
            ride_adapt(txn->me, i, &txn->fan->list[i].q);
    }
    fan_run(txn->fan);
    marks_have_ended(txn);
    collect(txn);
    return 0;
}

/* ---- judging ---- */

static void keep_dirty(struct txn *txn)
{
    for (unsigned i = 0; i < txn->claim_count; i++) {
        if (txn->claim[i].session && !txn->claim[i].only_if_open)
            txn->claim[i].session->keep_dirty = true;
    }
}

static bool returns_length(enum op op)
{
    return op == OP_WRITE || op == OP_COPY_RANGE;
}

/* A child that wrote less than the others did not do all of it. */
static void drop_short(struct txn *txn)
{
    struct replicate *s = replicate_of(txn->me);
    int longest = 0;

    if (!returns_length(txn->q->op))
        return;
    for_each_child(i, txn->ok & ~s->arbiter) longest = MAX(longest, txn->result[i]);
    for_each_child(i, txn->ok & ~s->arbiter)
    {
        if (txn->result[i] < longest)
            txn->ok &= ~bit(i);
    }
    for_each_child(i, txn->ok & s->arbiter) txn->result[i] = longest;
}

static int worst_of(const struct txn *txn, uint32_t children)
{
    int worst = 0;

    for_each_child(i, children & txn->asked)
    {
        if (txn->result[i] < 0)
            worst = result_worse(worst, txn->result[i]);
    }
    return worst;
}

/* Everybody refused, and for the same reason: nothing has changed anywhere. */
static bool is_symmetric(const struct txn *txn)
{
    int first = txn->result[mask_first(txn->asked)];

    if (result_is_unknown(first))
        return false;
    for_each_child(i, txn->asked)
    {
        if (txn->result[i] != first)
            return false;
    }
    return true;
}

/* Why it failed for want of children. What a child that is behind says (no such name, say) is no reason to give. */
static int reason(const struct txn *txn)
{
    int worst = worst_of(txn, good_of(txn));

    return worst ? worst : -ENOTCONN;
}

/* 0: done, by txn->ok, and if those alone are no quorum the witness has the others as stale. */
static FIBER int judge(struct txn *txn)
{
    struct replicate *s = replicate_of(txn->me);
    uint32_t good = base_of(txn);

    drop_short(txn);
    if (!txn->ok && txn->asked && is_symmetric(txn))
        return txn->result[mask_first(txn->asked)];
    if (!(txn->ok & good) || witness_cover(txn->me, txn->ok) < 0) {
        s->quorum_failures++;
        keep_dirty(txn);
        return reason(txn);
    }
    return 0;
}

/* Has the child missed changes of the directory that goes, so that names in its copy mean nothing? */
static bool is_behind_in_removed(const struct txn *txn, unsigned child)
{
    struct inode_state *state = txn->removed ? inode_state(txn->me, txn->removed) : NULL;

    if (!state || !known_is_fresh(txn->me, txn->removed))
        return false;
    if (replicate_of(txn->me)->arbiter & bit(child))
        return !state->known.arbiter_is_good;
    return state->known.data && !(state->known.data & bit(child));
}

/* Children that count as behind after the change. */
static uint32_t missed_by(struct txn *txn)
{
    uint32_t missed = (replicate_of(txn->me)->all & ~txn->ok) | txn->behind;

    if (txn->q->op != OP_RMDIR && txn->q->op != OP_RENAME)
        return missed;
    for_each_child(i, missed & txn->asked)
    {
        /* It has names there that the others lack. Blaming it would have heal delete them: only mark. */
        bool has_names = txn->result[i] == -ENOTEMPTY || txn->result[i] == -EEXIST;

        if (has_names && !is_behind_in_removed(txn, i)) {
            missed &= ~bit(i);
            keep_dirty(txn);
        }
    }
    return missed;
}

/* ---- recording who is behind ---- */

struct record {
    struct txn *txn;
    uint32_t missed;
    struct dict *delta;                      /* +1 against missed, in the class of the change */
    struct dict *named;                      /* the same for names that are recorded one by one */
    struct dict *new_inode;                  /* marks on an inode just made, or NULL */
    struct dict *name_xdata[2 * CLAIMS_MAX]; /* granular names, one per step */
    unsigned step_count;
    struct request step[2 * CLAIMS_MAX + 1];
};

static struct request *add_step(struct record *rec, struct inode *inode, struct fd *fd, struct dict *delta)
{
    struct request *step = &rec->step[rec->step_count++];

    *step = (struct request) { .op = OP_XATTROP, .inode = inode, .fd = fd, .flags = XATTROP_ADD32, .xattrs = delta };
    return step;
}

static int add_name(struct record *rec, struct inode *directory, const char *name)
{
    struct request *step = add_step(rec, directory, NULL, name ? rec->named : rec->delta);
    struct dict *xdata;

    if (!name || !replicate_of(rec->txn->me)->granular_entry_heal)
        return 0;
    xdata = dict_new();
    if (!xdata)
        return -ENOMEM;
    rec->name_xdata[rec->step_count - 1] = step->xdata = xdata;
    return dict_set_str(xdata, "glusterfs.xattrop-entry-create", name);
}

static int record_fill(struct record *rec)
{
    struct txn *txn = rec->txn;
    struct replicate *s = replicate_of(txn->me);
    int r = 0;

    rec->delta = counters_delta(s, txn->change, 0, rec->missed);
    rec->named = counters_delta_named(s, txn->change, rec->missed);
    if (!rec->delta || !rec->named)
        return -ENOMEM;
    for (unsigned i = 0; i < txn->claim_count && r == 0; i++) {
        struct claim *claim = &txn->claim[i];

        if (!claim->wants_mark)
            continue;
        if (claim->change != CHANGE_ENTRY) {
            add_step(rec, claim->inode, claim->session->fd, rec->delta);
            continue;
        }
        r = add_name(rec, claim->inode, claim->name);
        if (r == 0 && claim->name2)
            r = add_name(rec, claim->inode, claim->name2);
    }
    /* GlusterFS's client leaves no marks on a new link, and its heal daemon trips over them: it heals by what the
     * directory says, and the counters of link and directory stay for ever. */
    if (r < 0 || !txn->makes_inode || txn->q->inode->type == S_IFLNK)
        return r;
    rec->new_inode = counters_new_inode(s, txn->q->inode->type, rec->missed);
    if (!rec->new_inode)
        return -ENOMEM;
    add_step(rec, txn->q->inode, NULL, rec->new_inode);
    return 0;
}

static void record_free(struct record *rec)
{
    if (!rec)
        return;
    dict_unref(rec->delta);
    dict_unref(rec->named);
    dict_unref(rec->new_inode);
    for (size_t i = 0; i < ARRAY_SIZE(rec->name_xdata); i++)
        dict_unref(rec->name_xdata[i]);
    mem_free(rec);
}
DEFINE_SCOPED(record_free, struct record)

/* One round: writes the record on `holders`; returns those that have it. */
static FIBER uint32_t record_round(struct txn *txn, uint32_t missed, uint32_t holders)
{
    SCOPED(record_free) struct record *rec = NEW(struct record);
    const struct request nothing = { 0 };
    SCOPED(fan_free) struct fan *fan = NULL;
    struct call call;
    uint32_t recorded;

    if (!rec)
        return 0;
    rec->txn = txn;
    rec->missed = missed;
    if (record_fill(rec) < 0)
        return 0;
    call_init(&call, txn->me->graph);
    fan = fan_new(txn->me, &call, holders, &nothing);
    if (!fan || fan_steps(fan, rec->step_count) < 0) {
        call_done(&call);
        return 0;
    }
    for_each_child(i, fan->targets) memcpy(fan->list[i].steps, rec->step, rec->step_count * sizeof(struct request));
    fan_run(fan);
    recorded = fan_ok(fan);
    call_done(&call);
    return recorded;
}

static bool is_recorded(const struct txn *txn, uint32_t missed)
{
    bool has_names = txn->change == CHANGE_ENTRY && replicate_of(txn->me)->granular_entry_heal;

    if (has_names || txn->makes_inode)
        return false;
    for (unsigned i = 0; i < txn->claim_count; i++) {
        if (txn->claim[i].wants_mark && (missed & ~txn->claim[i].session->blamed))
            return false;
    }
    return true;
}

static void note_missed(struct txn *txn, uint32_t missed, bool is_blamed)
{
    for (unsigned i = 0; i < txn->claim_count; i++) {
        struct claim *claim = &txn->claim[i];

        if (!claim->wants_mark)
            continue;
        known_bad(txn->me, claim->inode, txn->change, missed);
        claim->session->missed |= missed;
        claim->session->good &= ~missed;
        if (is_blamed)
            claim->session->blamed |= missed;
    }
}

/* A debt is paid while those that are behind are within reach too: then everybody sees it who asks all. Where one child
 * may be asked alone the witness has to know. */
static FIBER bool is_enough(struct txn *txn, uint32_t recorded, uint32_t missed)
{
    bool is_debt = txn->is_debt && !replicate_of(txn->me)->witness;

    return witness_cover(txn->me, is_debt ? recorded | missed : recorded) == 0;
}

/* Holders are the children that did the change. Whoever cannot write the record is behind itself. */
static FIBER int record_in_rounds(struct txn *txn, uint32_t missed, uint32_t good)
{
    for (;;) {
        uint32_t holders = txn->ok, recorded = 0;

        /* A brick blames the other one of a pair only after the witness does: else both could end up blamed. */
        if (is_enough(txn, holders, missed))
            recorded = record_round(txn, missed, holders);
        if (!(recorded & good) || !is_enough(txn, recorded, missed)) {
            keep_dirty(txn);
            return -ENOTCONN;
        }
        txn->ok = recorded;
        if (recorded == holders)
            break;
        missed |= holders & ~recorded;
        note_missed(txn, missed, false);
    }
    note_missed(txn, missed, true);
    return 0;
}

static FIBER int record_missed(struct txn *txn, uint32_t missed)
{
    uint32_t good = base_of(txn);
    struct session *session = txn->claim[0].session;
    bool is_shared = txn->change != CHANGE_ENTRY && !txn->is_debt;
    int r;

    note_missed(txn, missed, false);
    /* Changes that run at the same time have the same to record: once is enough. */
    while (is_shared && (session->recording & missed) && !is_recorded(txn, missed))
        (void)waitq_wait(&session->waiting, NULL); /* woken when the record is written */
    if (!missed || (!txn->is_debt && is_recorded(txn, missed)))
        return 0;
    replicate_of(txn->me)->blames++;
    if (!is_shared)
        return record_in_rounds(txn, missed, good);
    session->recording |= missed;
    r = record_in_rounds(txn, missed, good);
    session->recording &= ~missed;
    waitq_wake_all(&session->waiting, 0);
    return r;
}

/* ---- answering ---- */

/* Bricks keep their own times: each inode's attributes come from the child that a later stat will ask, or tar would
 * find that the file changed as it read it. */
static void take_directory(struct txn *txn, uint32_t from, struct inode *directory, struct iatt *pre, struct iatt *post,
                           bool is_second)
{
    const struct reply *a;

    if (!directory)
        return;
    a = txn->answer[read_choose(txn->me, txn->call, directory, from)];
    if (!a)
        return;
    *pre = is_second ? a->pre2 : a->pre;
    *post = is_second ? a->post2 : a->post;
}

static uint64_t asked_ns(const struct txn *txn)
{
    uint64_t last_ns = 0;

    for_each_child(i, txn->ok)
    {
        if (!txn->answer[i] || txn->answer[i]->asked_ns == 0)
            return 0;
        last_ns = MAX(last_ns, txn->answer[i]->asked_ns);
    }
    return last_ns;
}

static void answer(struct txn *txn, struct reply *r)
{
    struct replicate *s = replicate_of(txn->me);
    uint32_t from = txn->ok & good_of(txn) & ~s->arbiter;
    struct inode *subject = txn->q->inode ? txn->q->inode : txn->claim[0].inode;
    struct iatt pre, post, pre2 = { 0 }, post2 = { 0 };
    uint64_t last_ns = asked_ns(txn);
    unsigned child;

    if (!from)
        from = txn->ok & ~s->arbiter ? txn->ok & ~s->arbiter : txn->ok;
    if (txn->q->op == OP_COPY_RANGE)
        subject = txn->q->inode2;
    child = read_choose(txn->me, txn->call, subject, from);
    if (txn->answer[child]) {
        pre = txn->answer[child]->pre;
        post = txn->answer[child]->post;
        take_directory(txn, from, txn->q->parent, &pre, &post, false);
        take_directory(txn, from, txn->q->parent2, &pre2, &post2, true);
        reply_move(r, txn->answer[child]);
        r->asked_ns = last_ns;
        r->pre = pre;
        r->post = post;
        r->pre2 = pre2;
        r->post2 = post2;
    }
    r->ret = txn->result[child];
}

static FIBER int carry_out(struct txn *txn, struct reply *r)
{
    bool rode = txn->fan != NULL;
    int result;

    if (txn->behind)
        txn->claim[0].session->good &= ~txn->behind;
    result = check_good(txn);

    if (result < 0) {
        if (rode)
            keep_dirty(txn);
        return result;
    }
    if (rode) {
        collect(txn);
    } else {
        result = ask_all(txn);
        if (result < 0)
            return result;
    }
    result = judge(txn);
    if (result < 0)
        return result;
    for (unsigned i = 0; i < txn->claim_count; i++) {
        if (txn->claim[i].wants_mark)
            txn->claim[i].session->has_volatile = true;
    }
    result = record_missed(txn, missed_by(txn));
    if (result < 0)
        return result;
    if (txn->done)
        txn->done(txn);
    answer(txn, r);
    return r->ret;
}

FIBER int txn_run(struct txn *txn, struct reply *r)
{
    int result = children_admit(txn->me);

    if (result == 0)
        result = join_all(txn);
    if (result < 0)
        return result;
    result = carry_out(txn, r);
    leave_all(txn);
    return result;
}

FIBER int txn_record(struct txn *txn, uint32_t missed)
{
    int result = children_admit(txn->me);

    if (result == 0)
        result = join_all(txn);
    if (result < 0)
        return result;
    txn->is_debt = true;
    txn->ok = targets_of(txn) & ~missed;
    result = children_quorum(txn->me, txn->ok | missed) < 0 || !(txn->ok & base_of(txn)) ? -ENOTCONN : 0;
    if (result == 0)
        result = record_missed(txn, missed);
    leave_all(txn);
    return result;
}
