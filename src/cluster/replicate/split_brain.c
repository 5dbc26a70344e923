/* cluster/replicate/split_brain.c - copies of which none can be trusted: refusing to serve them, and what a user may say
 * about it through virtual xattrs of a mount (split_brain_set), as GlusterFS has them:
 *
 *   replica.split-brain-choice          name of a child, or none: this client serves the inode from it for a while
 *   replica.split-brain-choice-timeout  minutes; for how long, for all inodes
 *   replica.split-brain-heal-finalize   name of a child: its copy is the right one
 *
 * and, from the management only, trusted.add-brick and trusted.replace-brick: a child lacks everything.
 */
#include "cluster/replicate/heal.h"
#include "cluster/replicate/replicate_internal.h"
#include "core/mem.h"
#include "graph/graph.h"
#include <stdio.h>
#include <stdlib.h>

#define PREFIX "replica.split-brain-"

/* ---- refusing ---- */

static void describe(struct translator *me, const struct heal_view *view, uint32_t children, char *text,
                     size_t size_bytes)
{
    size_t len = 0;

    text[0] = '\0';
    for_each_child(i, children)
    {
        const struct iatt *a = &view->child[i].stat;
        int n = view->child[i].error
                    ? snprintf(text + len, size_bytes - len, "%s%s", len ? "," : "", me->children[i]->name)
                    : snprintf(text + len, size_bytes - len, "%s%s(size=%llu,mtime=%lld.%09u)", len ? "," : "",
                               me->children[i]->name, (unsigned long long)a->size, (long long)a->mtime, a->mtime_nsec);

        if (n < 0 || (size_t)n >= size_bytes - len)
            return;
        len += (size_t)n;
    }
}

FIBER int known_none(struct translator *me, struct call *call, struct inode *inode, const struct known *known,
                     const char *what)
{
    SCOPED(heal_view_free) struct heal_view *view = heal_view_new();
    char sides[512];

    if (known->arbiter_is_good)
        return -ENOTCONN;
    if (view && heal_look(me, call, inode, view) < 0)
        memset(view, 0, sizeof(*view));
    for (unsigned i = 0; view && i < replicate_of(me)->child_count; i++) {
        if (!(view->answered & bit(i)) && !view->child[i].error)
            view->child[i].error = -ENOTCONN;
    }
    if (view)
        describe(me, view, known->seen & ~replicate_of(me)->arbiter, sides, sizeof(sides));
    TLOG(me, LOG_ERROR, "split-brain",
         "gfid=%s type=%s copies=%s: each is recorded as behind another, so none can be trusted; "
         "\"mortar-heal ... resolve source-brick HOST:BRICK gfid:%s\" takes one",
         GFID_TEXT(&inode->gfid), what, view ? sides : "?", GFID_TEXT(&inode->gfid));
    return -EIO;
}

/* ---- a choice for this client ---- */

static int child_named(struct translator *me, const char *name)
{
    for (unsigned i = 0; i < me->child_count; i++) {
        if (strcmp(me->children[i]->name, name) == 0)
            return (int)i;
    }
    return -EINVAL;
}

bool split_brain_is_chosen(struct translator *me, struct inode *inode)
{
    struct inode_state *state = inode_state(me, inode);

    if (!state || !state->choice)
        return false;
    if (env_now_ns(me->env) < state->choice_until_ns)
        return true;
    state->choice = 0;
    known_forget(me, inode);
    return false;
}

void split_brain_apply(struct translator *me, struct inode *inode, uint32_t type, uint32_t ok, struct known *known)
{
    uint32_t choice;

    if (!split_brain_is_chosen(me, inode))
        return;
    choice = inode_state(me, inode)->choice & ok;
    if (!known->data && type != S_IFDIR)
        known->data = choice;
    if (!known->metadata)
        known->metadata = choice;
}

/* What programs have read so far came from elsewhere. */
static void forget_what_was_read(struct translator *me, struct inode *inode)
{
    known_forget(me, inode);
    notify_parents(me, &(struct event) { .kind = EVENT_INVALIDATE, .gfid = inode->gfid });
}

static FIBER int choose(struct translator *me, struct call *call, struct inode *inode, const char *name)
{
    struct inode_state *state = inode_state(me, inode);
    struct replicate *s = replicate_of(me);
    struct known known;
    int child, r;

    if (!state)
        return -ENOMEM;
    state->choice = 0;
    if (strcmp(name, "none") == 0) {
        forget_what_was_read(me, inode);
        return 0;
    }
    child = child_named(me, name);
    if (child < 0)
        return child;
    known_forget(me, inode);
    r = known_get(me, call, inode, NULL, true, &known);
    if (r < 0)
        return r;
    if ((known.data && known.metadata) || known.arbiter_is_good || !(known.seen & bit((unsigned)child)) ||
        (s->arbiter & bit((unsigned)child)))
        return -EINVAL;
    state = inode_state(me, inode);
    state->choice = bit((unsigned)child);
    state->choice_until_ns = env_deadline_ms(me->env, s->choice_timeout_s * UINT64_C(1000));
    forget_what_was_read(me, inode);
    return 0;
}

static int set_timeout(struct translator *me, const char *minutes)
{
    char *end;
    unsigned long n = strtoul(minutes, &end, 10);

    if (end == minutes || *end || n > UINT32_MAX / 60)
        return -EINVAL;
    replicate_of(me)->choice_timeout_s = (uint32_t)n * 60;
    return 0;
}

static FIBER int finalize(struct translator *me, struct call *call, struct inode *inode, const char *name)
{
    SCOPED(heal_report_free) struct heal_report *report = heal_report_new();
    int child = child_named(me, name), r;
    struct heal_how how = { .flags = HEAL_RESOLVE, .choice = { .how = HEAL_CHOOSE_CHILD, .child = (unsigned)child } };

    if (child < 0)
        return child;
    if (!report)
        return -ENOMEM;
    r = heal_inode(me, call, inode, &how, report);
    if (inode_state(me, inode))
        inode_state(me, inode)->choice = 0;
    forget_what_was_read(me, inode);
    if (r < 0)
        return r;
    if (report->refusal == HEAL_REFUSED_NOT_SPLIT || report->refusal == HEAL_REFUSED_DIRECTORY)
        return -EINVAL;
    if (report->refusal || report->split_brain)
        return -EIO;
    return report->outcome == HEAL_DONE || report->outcome == HEAL_CLEAN ? 0 : report->error ? report->error : -EIO;
}

/* ---- a child that lacks everything ---- */

/* Adds to the record of all others that `child` missed attributes and names of the root; with names recorded one by one
 * also that all of them are meant. */
static FIBER int record_lack(struct translator *me, struct call *call, struct inode *root, unsigned child,
                             uint32_t recorders)
{
    struct replicate *s = replicate_of(me);
    struct counters all = { .n = {
                                [CHANGE_DATA] = s->granular_entry_heal, [CHANGE_METADATA] = 1, [CHANGE_ENTRY] = 1 } };
    SCOPED(dict_unref) struct dict *d = dict_new();
    uint8_t bytes[COUNTERS_BYTES];

    counters_format(&all, bytes);
    if (!d || dict_set_bin(d, s->child[child].pending_key, bytes, sizeof(bytes)) < 0)
        return -ENOMEM;
    struct request q = { .op = OP_XATTROP, .inode = root, .flags = XATTROP_ADD32, .xattrs = d };
    SCOPED(fan_free) struct fan *fan = fan_new(me, call, recorders, &q);
    if (!fan)
        return -ENOMEM;
    fan_run(fan);
    if (fan_ok(fan) && children_quorum(me, fan_ok(fan) | bit(child)) == 0)
        return 0;
    return fan_worst(fan) ? fan_worst(fan) : -ENOTCONN;
}

static FIBER int lacks_everything(struct translator *me, struct call *call, const char *name)
{
    SCOPED(inode_unref) struct inode *root = inode_table_get(me->graph, &gfid_root, S_IFDIR);
    struct claim attributes = { .inode = root, .change = CHANGE_METADATA, .wants_mark = true, .end = UINT64_MAX };
    struct claim names = { .inode = root, .change = CHANGE_ENTRY, .wants_mark = true, .end = UINT64_MAX };
    int child = child_named(me, name), r = root ? 0 : -ENOMEM;

    if (child < 0)
        return child;
    if (r == 0)
        r = session_join(me, call, &attributes, NULL, NULL);
    if (r < 0)
        return r;
    r = session_join(me, call, &names, NULL, NULL);
    if (r == 0) {
        uint32_t recorders =
            session_targets(attributes.session) & session_targets(names.session) & ~bit((unsigned)child);

        r = record_lack(me, call, root, (unsigned)child, recorders);
        session_want_close(names.session);
        session_leave(&names);
    }
    session_want_close(attributes.session);
    session_leave(&attributes);
    known_forget(me, root);
    if (r == 0)
        TLOG(me, LOG_INFO, "child-emptied", "child=%s: recorded as lacking everything", name);
    return r;
}

/* ---- the operation ---- */

static FIBER int set_one(struct translator *me, struct call *call, struct inode *inode, const char *name,
                         const char *value)
{
    if (strcmp(name, "trusted.add-brick") == 0 || strcmp(name, "trusted.replace-brick") == 0)
        return call->pid == PID_ADD_REPLICA && gfid_is_root(&inode->gfid) ? lacks_everything(me, call, value) : -EPERM;
    if (call->uid != 0)
        return -EPERM;
    if (strcmp(name, PREFIX "choice") == 0)
        return choose(me, call, inode, value);
    if (strcmp(name, PREFIX "choice-timeout") == 0)
        return set_timeout(me, value);
    if (strcmp(name, PREFIX "heal-finalize") == 0)
        return finalize(me, call, inode, value);
    return -EINVAL;
}

FIBER bool split_brain_set(struct translator *me, struct call *call, const struct request *q, int *ret)
{
    const struct dict_value *v;
    const char *name, *value;
    size_t at = 0;

    if (q->op != OP_SETXATTR)
        return false;
    while (dict_next(q->xattrs, &at, &name, &v)) {
        if (strncmp(name, PREFIX, sizeof(PREFIX) - 1) != 0 && strcmp(name, "trusted.add-brick") != 0 &&
            strcmp(name, "trusted.replace-brick") != 0)
            continue;
        *ret = dict_get_str(q->xattrs, name, &value) < 0 ? -EINVAL : set_one(me, call, q->inode, name, value);
        return true;
    }
    return false;
}
