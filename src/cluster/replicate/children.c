/* cluster/replicate/children.c - who is up, and what children tell. */
#include "cluster/replicate/replicate_internal.h"
#include "graph/graph.h"
#include <stdio.h>

#define FIRST_REPORT_MS 10000 /* how long the parents wait at most for children that have not spoken */

int children_quorum(struct translator *me, uint32_t mask)
{
    return quorum_met(&replicate_of(me)->quorum, mask) ? 0 : -ENOTCONN;
}

int children_admit(struct translator *me)
{
    struct replicate *s = replicate_of(me);

    if (s->consistent_io && s->quorum.type == QUORUM_NONE && s->up != s->all)
        return -ENOTCONN;
    return witness_may_tell(me, s->up);
}

uint32_t children_lack(const struct replicate *s, uint32_t children)
{
    uint32_t lacks = 0;

    for_each_child(i, children) lacks |= s->child[i].lacks;
    return lacks;
}

/* ---- towards the parents ---- */

static bool all_have_spoken(const struct replicate *s)
{
    for (unsigned i = 0; i < s->child_count; i++) {
        if (!s->child[i].has_spoken)
            return false;
    }
    return true;
}

static void tell(struct translator *me, enum event_kind kind)
{
    const struct event event = { .kind = kind };

    replicate_of(me)->has_told_parents = true;
    notify_parents(me, &event);
}

static void tell_parents(struct translator *me)
{
    struct replicate *s = replicate_of(me);
    bool is_due = all_have_spoken(s) || !s->first_report.at_ns;

    if (!s->has_told_parents && !is_due)
        return;
    timer_stop(&s->first_report);
    if (!s->has_told_parents)
        tell(me, s->up ? EVENT_CHILD_UP : EVENT_CHILD_TRYING);
    else if (s->up && !me->is_up)
        tell(me, EVENT_CHILD_UP);
    else if (!s->up && me->is_up)
        tell(me, EVENT_CHILD_DOWN);
}

static void first_report_due(void *arg)
{
    tell_parents(arg);
}

/* features/utime above us gives every change the client's time, so all bricks keep the same. */
static bool utime_is_above(const struct translator *t)
{
    for (; t; t = t->parent_count ? t->parents[0] : NULL) {
        if (strcmp(t->class->type, "features/utime") == 0)
            return true;
    }
    return false;
}

void children_start(struct translator *me)
{
    struct replicate *s = replicate_of(me);

    s->times_are_sent = utime_is_above(me);
    if (!s->has_told_parents)
        timer_start(me->env, &s->first_report, env_deadline_ms(me->env, FIRST_REPORT_MS), first_report_due, me);
}

/* ---- changes ---- */

static void log_quorum(struct translator *me)
{
    struct replicate *s = replicate_of(me);
    bool has_quorum = children_admit(me) == 0 || (s->up && witness_is_up(me));

    if (s->quorum.type == QUORUM_NONE || has_quorum == s->had_quorum)
        return;
    s->had_quorum = has_quorum;
    if (has_quorum)
        TLOG(me, LOG_INFO, "quorum-met", "up=%u of=%u: Client-quorum is met", mask_count(s->up), s->child_count);
    else
        TLOG(me, LOG_WARNING, "quorum-lost", "up=%u of=%u: Client-quorum is not met", mask_count(s->up),
             s->child_count);
}

void children_quorum_changed(struct translator *me)
{
    log_quorum(me);
}

static void child_changed(struct translator *me, unsigned child, bool is_up)
{
    struct replicate *s = replicate_of(me);
    bool was_up = (s->up & bit(child)) != 0;

    s->child[child].has_spoken = true;
    if (was_up || is_up) {
        /* An up event for a child that is up says that it reconnected: its locks are gone all the same. */
        s->child[child].epoch++;
        s->generation++;
        s->heals_pending |= bit(child);
    }
    s->up = is_up ? s->up | bit(child) : s->up & ~bit(child);
    if (is_up)
        locality_find(me, child);
    if (was_up != is_up && is_up)
        TLOG(me, LOG_INFO, "child-up", "child=%s", me->children[child]->name);
    if (was_up != is_up && !is_up)
        TLOG(me, LOG_WARNING, "child-down", "child=%s up=%u of=%u", me->children[child]->name, mask_count(s->up),
             s->child_count);
    witness_child_changed(me, child);
    log_quorum(me);
    sessions_children_changed(me);
    debts_pay(me);
    if (is_up)
        held_locks_replay(me, bit(child));
    healer_child_changed(me, is_up);
    tell_parents(me);
}

/* Locks of attributes are asked for in our domain, but the brick keeps them, and tells of them, in one of their own
 * (docs/protocol.md "Locks"). */
static bool is_our_domain(struct translator *me, const struct event *event)
{
    size_t length = strlen(me->name);

    return event->domain && strncmp(event->domain, me->name, length) == 0 &&
           (event->domain[length] == '\0' || strcmp(event->domain + length, ":metadata") == 0);
}

static void invalidated(struct translator *me, const struct event *event)
{
    SCOPED(inode_unref) struct inode *inode = inode_table_find(me->graph, &event->gfid);

    if (inode)
        known_forget(me, inode);
    notify_parents(me, event);
}

void children_notify(struct translator *me, unsigned child, const struct event *event)
{
    struct replicate *s = replicate_of(me);

    if (witness_notify(me, child, event))
        return;
    switch (event->kind) {
    case EVENT_CHILD_UP:
        s->child[child].lacks = event->lacks;
        child_changed(me, child, true);
        return;
    case EVENT_CHILD_DOWN: child_changed(me, child, false); return;
    case EVENT_CHILD_TRYING:
        s->child[child].has_spoken = true;
        tell_parents(me);
        return;
    case EVENT_INVALIDATE: invalidated(me, event); return;
    case EVENT_HEAL_NEEDED: healer_noticed(me); return;
    case EVENT_INODELK_CONTENTION:
    case EVENT_ENTRYLK_CONTENTION:
        if (is_our_domain(me, event))
            session_contended(me, event);
        else
            notify_parents(me, event);
        return;
    default: notify_parents(me, event); return;
    }
}
