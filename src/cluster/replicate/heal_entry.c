/* cluster/replicate/heal_entry.c - the names of a directory.
 *
 * Names are compared without locks, many at a time; only those that differ are looked at again and made equal, a bunch
 * under one hold of the directory's lock. What changes meanwhile changes on all children, or is recorded again by whoever
 * changed it, and those records stay.
 *
 * Which names: those that the children recorded as missed by somebody, one by one; all of them where a record says so, or
 * where a client died in the middle of a change (a mark without names). A name is decided by heal_judge_name(): with good
 * copies by them, without any the union of all is made and nothing removed.
 */
#include "cluster/replicate/heal_internal.h"
#include "core/mem.h"

#define BUNCH_NAMES   32    /* compared at once, and made equal under one lock */
#define LISTING_BYTES 16384 /* of names asked for at once */

struct walk {
    struct heal *h;
    uint32_t failed;       /* children where some name is not as it should be */
    bool has_split;        /* names that nobody can decide */
    uint32_t walked_first; /* the child whose names were compared with everybody's; 0: none yet */
};

struct bunch {
    struct walk *walk;
    unsigned child; /* whose names these are */
    uint32_t count, differing;
    const struct dir_entry *entry[BUNCH_NAMES];
    bool differs[BUNCH_NAMES];
    struct heal_name_work work[BUNCH_NAMES];
    uint32_t children; /* that hold the lock */
    uint32_t next;     /* for the fibers: the next one to take */
};

/* ---- comparing ---- */

static FIBER int compare_one(void *arg)
{
    struct bunch *b = arg;
    struct heal *h = b->walk->h;
    uint32_t n = b->next++;
    const struct iatt *expected =
        iatt_is_set(&b->entry[n]->stat) && !gfid_is_null(&b->entry[n]->stat.gfid) ? &b->entry[n]->stat : NULL;
    uint32_t whom = h->round.judged.taking_part;

    if (expected)
        whom = b->walk->walked_first ? b->walk->walked_first : whom & ~bit(b->child);
    b->differs[n] = !heal_name_is_equal(h, b->entry[n]->name, whom, expected, NULL);
    return 0;
}

static FIBER int fix_one(void *arg)
{
    struct bunch *b = arg;
    uint32_t n = b->next++;

    while (n < b->count && !b->differs[n])
        n = b->next++;
    return n < b->count ? heal_fix_name(b->walk->h, b->children, &b->work[n]) : 0;
}

/* fn for `count` names, each in a fiber of its own. */
static FIBER int for_names(struct bunch *b, uint32_t count, group_fn fn)
{
    struct group group;
    uint32_t left = count;

    b->next = 0;
    group_init(&group, b->walk->h->me->env);
    while (left > 0 && group_run(&group, "heal-name", fn, b) == 0)
        left--;
    group_wait_all(&group);
    return left > 0 || group.succeeded < group.ended ? -ENOMEM : 0;
}

/* ---- making equal ---- */

/* Under a new hold of the lock: who still has a say. A source that missed something meanwhile is none any more. */
static FIBER int still_good(struct heal *h, uint32_t holders, uint32_t *ret_children)
{
    SCOPED(heal_answers_free) struct heal_answers *now = heal_answers_new();
    struct heal_judgement *judged = &h->round.judged;
    int r = now ? heal_ask(h, h->inode, holders, now) : -ENOMEM;

    if (r < 0)
        return r;
    *ret_children = now->ok & judged->taking_part;
    if (judged->verdict != VERDICT_MERGE) {
        judged->sources &= heal_unchanged(h, now);
        if (!judged->sources)
            return -EAGAIN;
    }
    judged->taking_part = *ret_children;
    return heal_set_is_enough(&h->set, *ret_children) ? 0 : -ENOTCONN;
}

/* A name may have waited for another one of the same bunch (a directory renamed within this one). */
static FIBER int fix_again(struct bunch *b)
{
    int r = 0;

    for (uint32_t i = 0; i < b->count && r == 0; i++) {
        if (b->differs[i] && b->work[i].outcome == HEAL_LEFT)
            r = heal_fix_name(b->walk->h, b->children, &b->work[i]);
    }
    return r;
}

static void note_bunch(struct bunch *b)
{
    struct walk *walk = b->walk;

    heal_class(walk->h)->names_looked_at += b->count - b->differing;
    for (uint32_t i = 0; i < b->count; i++) {
        if (!b->differs[i])
            continue;
        heal_name_report(walk->h, &b->work[i]);
        walk->failed |= b->work[i].failed;
        walk->has_split = walk->has_split || b->work[i].split;
    }
}

static FIBER int fix_bunch(struct bunch *b)
{
    struct heal *h = b->walk->h;
    struct heal_lock lock = { .kind = HEAL_LOCK_NAMES, .inode = h->inode };
    int r = heal_lock(h, &lock, heal_present(h));

    if (r < 0)
        return r;
    r = still_good(h, heal_holders(h, &lock), &b->children);
    if (r == 0)
        r = for_names(b, b->differing, fix_one);
    if (r == 0)
        r = fix_again(b);
    heal_unlock(h, &lock);
    if (r == 0)
        note_bunch(b);
    return r;
}

static bool is_skipped(const struct heal *h, const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
           (gfid_is_root(&h->inode->gfid) && name_is_private(name));
}

static FIBER int do_bunch(struct bunch *b)
{
    struct heal *h = b->walk->h;
    int r = b->count ? heal_pace(h, 0, b->count) : 0;

    if (r < 0 || !b->count)
        return r;
    r = for_names(b, b->count, compare_one);
    if (r < 0)
        return r;
    b->differing = 0;
    for (uint32_t i = 0; i < b->count; i++) {
        b->differing += b->differs[i];
        memset(&b->work[i], 0, sizeof(b->work[i]));
        b->work[i].name = b->entry[i]->name;
    }
    if (b->differing)
        return fix_bunch(b);
    heal_class(h)->names_looked_at += b->count;
    return 0;
}

/* ---- walking ---- */

static FIBER int do_piece(struct walk *walk, unsigned child, const struct dir_entries *entries)
{
    SCOPED_FREE struct bunch *b = NEW(struct bunch);
    int r = 0;

    if (!b)
        return -ENOMEM;
    b->walk = walk;
    b->child = child;
    for (uint32_t i = 0; i < entries->count && r == 0; i++) {
        if (!is_skipped(walk->h, entries->list[i].name))
            b->entry[b->count++] = &entries->list[i];
        if (b->count < BUNCH_NAMES && i + 1 < entries->count)
            continue;
        r = do_bunch(b);
        b->count = 0;
    }
    return r;
}

static FIBER int walk_listing(struct walk *walk, unsigned child, struct inode *directory, bool is_of_index)
{
    SCOPED(heal_listing_free) struct heal_listing *listing = heal_listing_open(walk->h, child, directory, is_of_index);
    uint64_t size_bytes = MAX(replicate_of(walk->h->me)->heal_readdir_size_bytes, (uint64_t)LISTING_BYTES);
    int r = listing ? 0 : -ENOMEM;

    while (r == 0 && (r = heal_listing_next(listing, size_bytes)) > 0)
        r = do_piece(walk, child, listing->entries);
    return r;
}

/* Sinks first: what a sink has too many is put aside before its new name is made. */
static FIBER int walk_all(struct walk *walk)
{
    struct heal *h = walk->h;
    uint32_t sinks = h->round.judged.sinks, others = h->round.judged.taking_part & ~sinks;
    int r = 0;

    for_each_child(i, sinks)
    {
        if (r == 0)
            r = walk_listing(walk, i, h->inode, false);
        if (r == 0 && !walk->walked_first)
            walk->walked_first = bit(i);
    }
    for_each_child(i, others)
    {
        if (r == 0 && (h->round.judged.taking_part & bit(i)))
            r = walk_listing(walk, i, h->inode, false);
        if (r == 0 && !walk->walked_first)
            walk->walked_first = bit(i);
    }
    return r;
}

/* Names are recorded by whoever was there when somebody missed a change. */
static FIBER int walk_recorded(struct walk *walk)
{
    struct heal *h = walk->h;
    int r = 0;

    for_each_child(i, h->round.judged.taking_part)
    {
        SCOPED(inode_unref) struct inode *names = NULL;

        r = heal_find_names(h, i, &names);
        if (r == 0)
            r = walk_listing(walk, i, names, true);
        if (r < 0 && r != -ENOENT && r != -ESTALE)
            return r;
    }
    return 0;
}

/* ---- the class ---- */

static bool blames_anybody(const struct heal *h, unsigned i)
{
    for_each_child(j, mask_all(h->set.child_count))
    {
        if (h->round.answers->pending[i][j].n[CHANGE_ENTRY])
            return true;
    }
    return false;
}

/* Are all changes that somebody missed recorded by name? */
static FIBER bool is_recorded(struct heal *h)
{
    const struct heal_answers *a = h->round.answers;

    if ((h->how->flags & HEAL_FULL) || !replicate_of(h->me)->granular_entry_heal || a->malformed)
        return false;
    for_each_child(i, a->ok)
    {
        SCOPED(inode_unref) struct inode *names = NULL;

        if (a->dirty[i].n[CHANGE_ENTRY] || a->dirty[i].n[CHANGE_DATA])
            return false;
        for_each_child(j, mask_all(h->set.child_count))
        {
            if (a->pending[i][j].n[CHANGE_DATA])
                return false;
        }
        if (blames_anybody(h, i) && heal_find_names(h, i, &names) < 0)
            return false;
    }
    return true;
}

/* Decides under the lock. *ret_goes_on: there is something to do. */
static FIBER int decide(struct heal *h, bool *ret_goes_on, bool *ret_is_recorded)
{
    struct heal_lock lock = { .kind = HEAL_LOCK_NAMES, .inode = h->inode };
    int r = heal_lock(h, &lock, heal_present(h));

    if (r < 0)
        return r;
    r = heal_ask(h, h->inode, heal_holders(h, &lock), h->round.answers);
    if (r == 0) {
        heal_judge_entry(&h->set, h->round.answers, lock.held, &h->round.judged);
        *ret_goes_on = heal_decided(h) || ((h->how->flags & HEAL_FULL) && h->round.judged.verdict == VERDICT_CLEAN);
        *ret_is_recorded = is_recorded(h); /* before our own blame of sinks, which says "all names" */
    }
    if (r == 0 && *ret_goes_on && h->round.judged.verdict == VERDICT_HEAL)
        r = heal_blame_sinks(h, h->round.judged.taking_part);
    heal_unlock(h, &lock);
    return r;
}

static FIBER void copy_times(struct heal *h, uint32_t children)
{
    SCOPED(heal_answers_free) struct heal_answers *now = heal_answers_new();
    unsigned source = h->round.judged.source;

    if (!now || h->round.judged.verdict != VERDICT_HEAL || heal_ask(h, h->inode, children, now) < 0)
        return;
    if (now->ok & bit(source) & h->round.judged.sources)
        heal_times(h, h->round.healed & now->ok, &now->stat[source]);
}

/* All names were looked at. */
static FIBER int finish(struct walk *walk)
{
    struct heal *h = walk->h;
    struct heal_judgement *judged = &h->round.judged;
    struct heal_lock lock = { .kind = HEAL_LOCK_NAMES, .inode = h->inode };
    int r;

    if (walk->has_split)
        return 0; /* the report says so; nobody is equal */
    judged->sources &= ~walk->failed;
    h->round.healed = heal_sync(h, NULL, judged->taking_part & ~judged->sources & ~walk->failed);
    judged->sources = heal_sync(h, NULL, judged->sources);
    if (judged->verdict == VERDICT_HEAL && !judged->sources)
        return -EIO;
    r = heal_lock(h, &lock, heal_present(h));
    if (r < 0)
        return r;
    copy_times(h, heal_holders(h, &lock));
    r = heal_undo(h, heal_holders(h, &lock));
    heal_unlock(h, &lock);
    return r;
}

static FIBER int walk_and_finish(struct heal *h, bool is_recorded_by_name)
{
    struct walk walk = { .h = h };
    struct heal_class_report *report = heal_class(h);
    bool is_clean = h->round.judged.verdict == VERDICT_CLEAN;
    int r = is_recorded_by_name ? walk_recorded(&walk) : walk_all(&walk);

    if (r < 0 || is_clean)
        return r;
    if (report->outcome == HEAL_CLEAN || report->outcome == HEAL_DONE)
        report->outcome = HEAL_LEFT; /* until the undo says otherwise */
    return finish(&walk);
}

FIBER int heal_entry(struct heal *h)
{
    struct heal_lock healers = { .kind = HEAL_LOCK_HEAL_ENTRY, .inode = h->inode };
    bool goes_on = false, is_recorded_by_name = false;
    int r;

    heal_class_begin(h, CHANGE_ENTRY);
    r = heal_lock(h, &healers, heal_present(h));
    if (r == 0)
        r = decide(h, &goes_on, &is_recorded_by_name);
    if (r == 0 && goes_on)
        r = walk_and_finish(h, is_recorded_by_name);
    heal_unlock(h, &healers);
    return heal_class_end(h, r);
}
