/* cluster/replicate/witness_enrol.c - whose word counts for this pair, and taking blames back.
 *
 * A witness that lost its memory knows of no blame, and would let a stale child serve. So the children carry the
 * identity of the witness that knows about them. It is written while both are up, nobody relies on a blame, and neither
 * owes the other anything; then "nobody is blamed" is true, whatever an earlier witness knew. Until then a single child
 * does nothing.
 */
#include "cluster/replicate/witness_internal.h"
#include "graph/graph.h"

#define AGAIN_MS 10000 /* what stands in the way of enrolment (heals pending) takes a while */

/* ---- identity on the children ---- */

static FIBER int read_identity(struct translator *me, unsigned child)
{
    struct replicate *s = replicate_of(me);
    struct witness *w = s->witness;
    struct enrolment *of = &w->of[child];
    uint32_t epoch = s->child[child].epoch;
    SCOPED(inode_unref) struct inode *root = inode_table_get(me->graph, &gfid_root, S_IFDIR);
    SCOPED(reply_free) struct reply *reply = reply_new();
    struct witness_call c;
    struct gfid id = gfid_null;
    const void *data;
    size_t size_bytes;
    int r;

    if (!root || !reply)
        return -ENOMEM;
    witness_call_begin(w, &c, NULL);
    r = child_getxattr(me, child, &c.call, root, NULL, WITNESS_KEY, reply);
    witness_call_end(&c);
    if (r < 0 && r != -ENODATA)
        return r;
    if (r >= 0 && dict_get_bin(reply->xattrs, WITNESS_KEY, &data, &size_bytes) == 0 && size_bytes == sizeof(id))
        memcpy(&id, data, sizeof(id));
    *of = (struct enrolment) { .is_known = true, .epoch = epoch, .id = id };
    return s->child[child].epoch == epoch ? 0 : -ENOTCONN;
}

static bool is_written(struct translator *me, unsigned child, const struct gfid *id)
{
    const struct replicate *s = replicate_of(me);
    const struct enrolment *of = &s->witness->of[child];

    return of->is_known && of->epoch == s->child[child].epoch && gfid_equal(&of->id, id);
}

FIBER int witness_check_identity(struct translator *me, unsigned child, const struct gfid *id)
{
    struct witness *w = replicate_of(me)->witness;
    int r;

    if (is_written(me, child, id))
        return 0;
    r = read_identity(me, child);
    if (r < 0 || is_written(me, child, id))
        return r;
    if (!w->has_warned)
        TLOG(me, LOG_ERROR, "witness-unknown",
             "child=%s witness=%s: it is not the witness that knows about this brick (new, or emptied?); it counts as "
             "soon as both bricks are up and healed",
             me->children[child]->name, GFID_TEXT(id));
    w->has_warned = true;
    return -ESTALE;
}

/* ---- enrolment ---- */

/* Neither brick has anything pending. Bricks without features/index say nothing, and cannot be healed either. */
static FIBER int check_nothing_pending(struct translator *me)
{
    struct replicate *s = replicate_of(me);
    SCOPED(inode_unref) struct inode *root = inode_table_get(me->graph, &gfid_root, S_IFDIR);
    struct request q = { .op = OP_LOOKUP, .inode = root, .xdata = s->ask };
    SCOPED(fan_free) struct fan *fan = NULL;
    struct witness_call c;
    uint64_t pending;
    int r = 0;

    if (!root)
        return -ENOMEM;
    witness_call_begin(s->witness, &c, NULL);
    fan = fan_new(me, &c.call, s->all, &q);
    if (fan)
        fan_run(fan);
    witness_call_end(&c);
    if (!fan)
        return -ENOMEM;
    for_each_child(i, s->all)
    {
        if (fan->list[i].ret < 0)
            r = fan->list[i].ret;
        else if (dict_get_uint(fan->list[i].r.xdata, "link-count", &pending) == 0 && pending > 0)
            r = -EBUSY;
    }
    return r;
}

static FIBER int write_identity(struct translator *me, unsigned child, const struct gfid *id)
{
    struct replicate *s = replicate_of(me);
    SCOPED(inode_unref) struct inode *root = inode_table_get(me->graph, &gfid_root, S_IFDIR);
    SCOPED(dict_unref) struct dict *xattrs = dict_new();
    struct witness_call c;
    int r;

    s->witness->of[child].is_known = false;
    if (!root || !xattrs)
        return -ENOMEM;
    r = dict_set_bin(xattrs, WITNESS_KEY, id, sizeof(*id));
    if (r < 0)
        return r;
    witness_call_begin(s->witness, &c, NULL);
    r = child_setxattr(me, child, &c.call, root, NULL, xattrs, 0, NULL);
    witness_call_end(&c);
    return r < 0 ? r : read_identity(me, child);
}

/* All tokens are ours: nobody relies on a blame. */
static FIBER int enrol_alone(struct translator *me, const struct gfid *id)
{
    int r = 0;

    for (unsigned i = 0; i < 2 && r == 0; i++)
        r = read_identity(me, i);
    if (r == 0 && is_written(me, 0, id) && is_written(me, 1, id))
        return 0; /* somebody else was faster */
    if (r == 0)
        r = check_nothing_pending(me);
    for (unsigned i = 0; i < 2 && r == 0; i++)
        r = write_identity(me, i, id);
    return r;
}

static FIBER int with_all_tokens(struct translator *me, const struct gfid *id)
{
    struct token token[2];
    int r = token_take(me, &token[0], 0, LOCK_WRITE);

    if (r < 0)
        return r;
    r = token_take(me, &token[1], 1, LOCK_WRITE);
    if (r == 0) {
        r = enrol_alone(me, id);
        token_give_back(me, &token[1]);
    }
    token_give_back(me, &token[0]);
    return r;
}

static FIBER int enrol(struct translator *me)
{
    struct witness *w = replicate_of(me)->witness;
    struct witness_word word;
    struct witness_call c;
    int r;

    witness_call_begin(w, &c, NULL);
    r = w->class->enrol(me, &c.call, &word);
    witness_call_end(&c);
    for (unsigned i = 0; i < 2 && r == 0; i++)
        r = read_identity(me, i);
    if (r < 0)
        return r;
    if (is_written(me, 0, &word.id) && is_written(me, 1, &word.id))
        return 0;
    r = with_all_tokens(me, &word.id);
    if (r == 0)
        TLOG(me, LOG_INFO, "witness-enrolled", "witness=%s", GFID_TEXT(&word.id));
    return r;
}

static void try_again(void *arg)
{
    witness_enrol_start(arg);
}

static FIBER void enrol_fiber(void *arg)
{
    struct translator *me = arg;
    struct replicate *s = replicate_of(me);
    struct witness *w = s->witness;
    uint64_t generation = s->generation;
    uint32_t epoch = w->epoch;
    int r = enrol(me);

    w->is_enrolling = false;
    w->is_enrolled = r == 0 && s->generation == generation && w->epoch == epoch;
    if (w->is_enrolled)
        healer_noticed(me); /* a crawl before could not take blames back */
    if (r == -EBUSY)
        TLOG(me, LOG_WARNING, "witness-waits", "witness=%s: it counts when the bricks are healed",
             me->children[w->child]->name);
    if (!w->is_enrolled && !s->is_stopping)
        timer_start(me->env, &w->again, env_deadline_ms(me->env, AGAIN_MS), try_again, me);
    replicate_fiber_ended(me);
}

void witness_enrol_start(struct translator *me)
{
    struct replicate *s = replicate_of(me);
    struct witness *w = s->witness;

    if (s->up != s->all || !w->is_up || w->is_enrolled || w->is_enrolling || s->is_stopping)
        return;
    timer_stop(&w->again);
    w->is_enrolling = replicate_spawn(me, "witness-enrol", enrol_fiber, me) == 0;
    if (!w->is_enrolling)
        timer_start(me->env, &w->again, env_deadline_ms(me->env, AGAIN_MS), try_again, me);
}

/* ---- healing ---- */

/* Both children know this witness, and it is there. */
static FIBER int ask_for_heal(struct translator *me, struct witness_word *ret_word)
{
    struct replicate *s = replicate_of(me);

    if (!s->witness || s->up != s->all)
        return -ENOTCONN;
    return witness_ask(me, ret_word) < 0 ? -ENOTCONN : 0;
}

FIBER int witness_heal_begin(struct translator *me, unsigned child, uint64_t *ret_times)
{
    struct replicate *s = replicate_of(me);
    struct witness_word word;
    struct witness_call c;
    struct token token;
    int r;

    assert(child < 2);
    if (!s->witness) {
        *ret_times = 0;
        return 0;
    }
    r = ask_for_heal(me, &word);
    if (r == 0 && !(word.blamed & bit(child))) {
        *ret_times = 0;
        return 0;
    }
    if (r == 0)
        r = token_take(me, &token, other_child(child), LOCK_WRITE);
    if (r < 0)
        return -ENOTCONN;
    witness_call_begin(s->witness, &c, &token.owner);
    r = s->witness->class->recall(me, &c.call);
    witness_call_end(&c);
    token_give_back(me, &token);
    if (r == 0)
        r = ask_for_heal(me, &word);
    if (r < 0)
        return -ENOTCONN;
    *ret_times = word.times[child];
    return 0;
}

FIBER int witness_clear(struct translator *me, unsigned child, uint64_t times)
{
    struct replicate *s = replicate_of(me);
    struct witness_word word;
    struct witness_call c;
    int r;

    assert(child < 2);
    if (!s->witness || times == 0)
        return 0;
    r = ask_for_heal(me, &word);
    if (r < 0)
        return r;
    if (word.times[child] != times)
        return -EAGAIN;
    witness_call_begin(s->witness, &c, NULL);
    lk_owner_from_u64(&c.call.lk_owner, ++s->next_owner);
    r = s->witness->class->clear(me, &c.call, child, times);
    witness_call_end(&c);
    if (r == 0)
        s->witness_said = 0;
    if (r == 0)
        TLOG(me, LOG_INFO, "witness-clears", "child=%s: it is healed and may serve alone again",
             me->children[child]->name);
    return r == 0 || r == -EAGAIN ? r : -ENOTCONN;
}

FIBER void witness_crawl_begin(struct translator *me, struct witness_crawl *ret_crawl)
{
    struct replicate *s = replicate_of(me);

    *ret_crawl = (struct witness_crawl) { .generation = s->generation };
    if (!s->witness)
        return;
    for (unsigned i = 0; i < 2; i++) {
        if (witness_heal_begin(me, i, &ret_crawl->times[i]) < 0)
            ret_crawl->times[i] = 0; /* then this crawl heals what it can, and the next one clears */
    }
    ret_crawl->generation = s->generation;
}

FIBER bool witness_crawl_end(struct translator *me, const struct witness_crawl *crawl, uint32_t clean)
{
    struct replicate *s = replicate_of(me);
    bool is_done = true;

    for (unsigned i = 0; s->witness && i < 2; i++) {
        if (crawl->times[i] && (clean & bit(other_child(i))) && crawl->generation == s->generation)
            is_done &= witness_clear(me, i, crawl->times[i]) != -EAGAIN;
    }
    return is_done && !s->quorum.stale; /* this crawl itself had to blame */
}
