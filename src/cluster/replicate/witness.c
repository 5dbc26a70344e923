/* cluster/replicate/witness.c - a belief that one child of a pair is stale: how it is got, what backs it, when it ends.
 *
 *   blame -> take a token on the child that goes on - check that the witness is ours - blame at the witness - believe
 *
 * A belief ends at once when the token's connection or the witness's breaks, and after what is under way when somebody
 * wants to clear blames. s->quorum.stale is the belief; it is changed in this file only.
 */
#include "cluster/replicate/witness_internal.h"
#include "core/mem.h"
#include "graph/graph.h"

/* ---- calls of our own ---- */

void witness_call_begin(struct witness *w, struct witness_call *c, const struct lk_owner *owner)
{
    struct env *env = w->me->env;

    call_init(&c->call, w->me->graph);
    c->call.pid = PID_NO_ROOT_SQUASH;
    c->call.scope.deadline_ns = env_deadline_ms(env, WITNESS_WAIT_MS);
    if (owner)
        c->call.lk_owner = *owner;
    list_add_tail(&w->asking, &c->of_asking);
    if (replicate_of(w->me)->is_stopping)
        scope_cancel(&c->call.scope);
}

void witness_call_end(struct witness_call *c)
{
    list_del(&c->of_asking);
    call_done(&c->call);
}

/* ---- tokens ---- */

static FIBER int token_ask(struct translator *me, struct call *call, const struct token *token,
                           enum lock_command command, enum lock_type type)
{
    SCOPED(inode_unref) struct inode *root = inode_table_get(me->graph, &gfid_root, S_IFDIR);
    const struct lock_range range = { .type = type };

    if (!root)
        return -ENOMEM;
    return child_inodelk(me, token->child, call, root, NULL, replicate_of(me)->witness->domain, command, &range, NULL);
}

FIBER int token_take(struct translator *me, struct token *token, unsigned child, enum lock_type type)
{
    struct replicate *s = replicate_of(me);
    struct witness_call c;
    int r;

    token->child = child;
    token->epoch = s->child[child].epoch;
    lk_owner_from_u64(&token->owner, ++s->next_owner);
    witness_call_begin(s->witness, &c, &token->owner);
    r = token_ask(me, &c.call, token, LOCK_WAIT, type);
    witness_call_end(&c);
    /* With the connection the lock is gone. */
    return r == 0 && s->child[child].epoch != token->epoch ? -ENOTCONN : r;
}

FIBER void token_give_back(struct translator *me, const struct token *token)
{
    struct replicate *s = replicate_of(me);
    struct witness_call c;

    if (s->child[token->child].epoch != token->epoch)
        return;
    witness_call_begin(s->witness, &c, &token->owner);
    /* If it does not arrive the connection is broken, and the lock gone with it. */
    (void)token_ask(me, &c.call, token, LOCK_UNLOCK, LOCK_NONE);
    witness_call_end(&c);
}

/* ---- the end of a belief ---- */

struct goodbye {
    struct translator *me;
    struct token token;
    uint32_t epoch; /* of the witness */
};

static FIBER void goodbye_fiber(void *arg)
{
    struct goodbye *g = arg;
    struct translator *me = g->me;
    struct witness *w = replicate_of(me)->witness;

    token_give_back(me, &g->token);
    if (w->epoch == g->epoch) {
        struct witness_call c;

        witness_call_begin(w, &c, &g->token.owner);
        w->class->drop(me, &c.call);
        witness_call_end(&c);
    }
    mem_free(g);
    replicate_fiber_ended(me);
}

/* What changes for everybody: copies are judged anew, sessions end. */
static void belief_changed(struct translator *me, uint32_t stale)
{
    struct replicate *s = replicate_of(me);

    s->quorum.stale = stale;
    s->generation++;
    children_quorum_changed(me);
    sessions_children_changed(me);
    debts_pay(me);
    (void)waitq_wake_all(&s->witness->changes, 0);
}

static void belief_end(struct translator *me)
{
    struct replicate *s = replicate_of(me);
    struct goodbye *g;

    if (!s->quorum.stale)
        return;
    g = NEW(struct goodbye);
    if (g) {
        *g = (struct goodbye) { .me = me, .token = s->witness->token, .epoch = s->witness->epoch };
        if (replicate_spawn(me, "witness-goodbye", goodbye_fiber, g) < 0)
            mem_free(g); /* the token stays until the connection ends, and healing waits so long */
    }
    belief_changed(me, 0);
}

static FIBER void recall_fiber(void *arg)
{
    struct translator *me = arg;
    struct witness *w = replicate_of(me)->witness;

    while (w->users > 0 || w->is_acquiring)
        (void)waitq_wait(&w->changes, NULL); /* woken when an operation ends */
    belief_end(me);
    w->is_recalled = false;
    (void)waitq_wake_all(&w->changes, 0);
    replicate_fiber_ended(me);
}

static void recalled(struct translator *me)
{
    struct replicate *s = replicate_of(me);
    struct witness *w = s->witness;

    /* The notice may come before the answer that grants the token. */
    if (w->is_recalled || (!s->quorum.stale && !w->is_acquiring))
        return;
    w->recalls++;
    w->is_recalled = replicate_spawn(me, "witness-recall", recall_fiber, me) == 0;
    if (!w->is_recalled)
        TLOG(me, LOG_WARNING, "witness-recall", "err=ENOMEM: healing waits for this client");
}

/* ---- the beginning ---- */

static void warn_refused(struct translator *me, unsigned child)
{
    struct witness *w = replicate_of(me)->witness;

    w->refusals++;
    if (w->has_warned)
        return;
    w->has_warned = true;
    TLOG(me, LOG_ERROR, "witness-refuses",
         "child=%s: the witness has it recorded as behind, so it serves nothing alone; bring back %s",
         me->children[child]->name, me->children[other_child(child)]->name);
}

/* The token is held. */
static FIBER int blame_with(struct translator *me, const struct token *token, unsigned child)
{
    struct witness *w = replicate_of(me)->witness;
    struct witness_word word;
    struct witness_call c;
    int r;

    witness_call_begin(w, &c, &token->owner);
    r = w->class->ask(me, &c.call, &word);
    if (r == 0)
        replicate_of(me)->witness_said = word.blamed;
    if (r == 0 && (word.blamed & bit(token->child)))
        r = -EPERM;
    if (r == 0)
        r = witness_check_identity(me, token->child, &word.id);
    if (r == 0)
        r = w->class->blame(me, &c.call, child, &word);
    witness_call_end(&c);
    if (r == -EPERM)
        warn_refused(me, token->child);
    return r;
}

static FIBER int acquire(struct translator *me, unsigned child)
{
    struct replicate *s = replicate_of(me);
    struct witness *w = s->witness;
    uint32_t epoch = w->epoch;
    struct token token;
    struct witness_call c;
    int r;

    r = token_take(me, &token, other_child(child), LOCK_READ);
    if (r < 0)
        return r;
    r = blame_with(me, &token, child);
    if (r == 0 && (w->epoch != epoch || s->child[token.child].epoch != token.epoch))
        r = -ENOTCONN;
    if (r == 0) {
        w->blames_made++;
        w->token = token;
        s->witness_said = bit(child);
        TLOG(me, LOG_WARNING, "witness-blames", "child=%s: recorded as behind until it is healed",
             me->children[child]->name);
        belief_changed(me, bit(child));
        return 0;
    }
    token_give_back(me, &token);
    if (w->epoch == epoch) {
        witness_call_begin(w, &c, &token.owner);
        w->class->drop(me, &c.call);
        witness_call_end(&c);
    }
    return r;
}

FIBER int witness_blame(struct translator *me, unsigned child)
{
    struct replicate *s = replicate_of(me);
    struct witness *w = s->witness;
    int r;

    if (!w || s->quorum.type != QUORUM_WITNESS)
        return -ENOTCONN;
    while (w->is_acquiring)
        (void)waitq_wait(&w->changes, NULL); /* woken when it is done, which has a deadline */
    if (s->quorum.stale)
        return s->quorum.stale == bit(child) ? 0 : -ENOTCONN;
    if (!w->is_up || !(s->up & bit(other_child(child))) || s->is_stopping)
        return -ENOTCONN;
    w->is_acquiring = true;
    r = acquire(me, child);
    w->is_acquiring = false;
    (void)waitq_wake_all(&w->changes, 0);
    if (r < 0 && r != -EPERM)
        TLOG(me, LOG_WARNING, "witness-failed", "child=%s err=%s: cannot be recorded as behind",
             me->children[child]->name, errno_name(r));
    return r < 0 ? -ENOTCONN : 0;
}

FIBER int witness_cover(struct translator *me, uint32_t children)
{
    struct replicate *s = replicate_of(me);

    if (children_quorum(me, children) == 0)
        return 0;
    if (!s->witness || mask_count(children) != 1)
        return -ENOTCONN;
    if (witness_blame(me, other_child(mask_first(children))) < 0)
        return -ENOTCONN;
    return children_quorum(me, children);
}

int witness_may_tell(struct translator *me, uint32_t children)
{
    const struct replicate *s = replicate_of(me);

    if (s->witness && s->witness->grants && (children & s->witness->granted))
        return 0;
    return children_quorum(me, children);
}

FIBER int witness_ask(struct translator *me, struct witness_word *ret_word)
{
    struct replicate *s = replicate_of(me);
    struct witness *w = s->witness;
    struct witness_word word;
    struct witness_call c;
    int r;

    if (!w || !w->is_up)
        return -ENOTCONN;
    w->asked++;
    witness_call_begin(w, &c, NULL);
    r = w->class->ask(me, &c.call, &word);
    witness_call_end(&c);
    for_each_child(i, s->up)
    {
        if (r == 0)
            r = witness_check_identity(me, i, &word.id);
    }
    if (r < 0)
        return r == -ENOENT || r == -ESTALE ? -ESTALE : -ENOTCONN;
    if (is_lone(s) && (word.blamed & s->up))
        warn_refused(me, mask_first(s->up));
    s->witness_said = word.blamed;
    *ret_word = word;
    return 0;
}

/* ---- events ---- */

void witness_child_changed(struct translator *me, unsigned child)
{
    struct replicate *s = replicate_of(me);
    struct witness *w = s->witness;

    if (!w)
        return;
    w->has_warned = false;
    w->is_enrolled = false;
    if (s->quorum.stale && w->token.child == child && w->token.epoch != s->child[child].epoch)
        belief_end(me);
    (void)waitq_wake_all(&w->changes, 0);
    witness_enrol_start(me);
}

static void connection_changed(struct translator *me, bool is_up)
{
    struct witness *w = replicate_of(me)->witness;

    if (!w->is_up && !is_up)
        return;
    if (w->is_up != is_up)
        TLOG(me, is_up ? LOG_INFO : LOG_WARNING, is_up ? "witness-up" : "witness-down", "witness=%s%s",
             me->children[w->child]->name, is_up ? "" : ": if a brick is lost now nothing can be changed");
    belief_end(me);
    w->is_up = is_up;
    w->epoch++;
    w->has_warned = false;
    w->is_enrolled = false;
    (void)waitq_wake_all(&w->changes, 0);
    witness_enrol_start(me);
    if (is_up)
        healer_noticed(me); /* perhaps nobody could tell it that all is healed */
}

bool witness_notify(struct translator *me, unsigned child, const struct event *event)
{
    struct replicate *s = replicate_of(me);
    struct witness *w = s->witness;

    if (!w)
        return false;
    if (w->class->is_recall(me, child, event) || (child < s->child_count && event->kind == EVENT_INODELK_CONTENTION &&
                                                  event->domain && strcmp(event->domain, w->domain) == 0)) {
        recalled(me);
        return true;
    }
    if (child != w->child)
        return false;
    if (event->kind == EVENT_CHILD_UP || event->kind == EVENT_CHILD_DOWN)
        connection_changed(me, event->kind == EVENT_CHILD_UP);
    return true; /* files of the witness are nobody's business above */
}

/* ---- life ---- */

int witness_init(struct translator *me, struct error *err)
{
    struct replicate *s = replicate_of(me);
    struct witness *w;

    if (!s->thin_arbiter)
        return 0;
    w = s->witness = NEW(struct witness);
    if (!w)
        return -ENOMEM;
    w->me = me;
    list_init(&w->asking);
    waitq_init(&w->changes);
    w->domain = mem_printf("%s:witness", me->name);
    return w->domain ? witness_brick_init(me, err) : -ENOMEM;
}

void witness_stop(struct translator *me)
{
    struct witness *w = replicate_of(me)->witness;
    struct witness_call *c;

    if (!w)
        return;
    timer_stop(&w->again);
    list_for_each (c, &w->asking, of_asking)
        scope_cancel(&c->call.scope);
}

void witness_done(struct translator *me)
{
    struct witness *w = take(replicate_of(me)->witness);

    if (!w)
        return;
    timer_stop(&w->again);
    witness_brick_done(w);
    mem_free(w->domain);
    mem_free(w);
}

bool witness_is_up(const struct translator *me)
{
    const struct replicate *s = me->state;

    return s->witness && s->witness->is_up;
}

void witness_dump(struct translator *me, struct dump *out)
{
    const struct replicate *s = replicate_of(me);
    const struct witness *w = s->witness;

    if (!w)
        return;
    dump_printf(out, "witness", "%s", w->class->name);
    dump_printf(out, "witness-up", "%d", w->is_up);
    dump_printf(out, "witness-enrolled", "%d", w->is_enrolled);
    dump_printf(out, "witness-stale-child", "%d", s->quorum.stale ? (int)mask_first(s->quorum.stale) : -1);
    dump_printf(out, "witness-blames", "%llu", (unsigned long long)w->blames_made);
    dump_printf(out, "witness-asked", "%llu", (unsigned long long)w->asked);
    dump_printf(out, "witness-recalls", "%llu", (unsigned long long)w->recalls);
    dump_printf(out, "witness-refusals", "%llu", (unsigned long long)w->refusals);
}
