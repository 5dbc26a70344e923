/* cluster/replicate/heal_metadata.c - owner, mode, extended attributes (ACLs among them) and times.
 *
 * All of it happens under one hold of the main-domain lock of the attributes: it is little. The owner goes first, because
 * the kernel drops capabilities and set-id bits with it; then xattrs; then the mode, whose group bits are the mask of an
 * ACL that is there by then; the times last.
 */
#include "cluster/replicate/heal_internal.h"
#include "core/mem.h"

#define OWNER (ATTR_UID | ATTR_GID)
#define TIMES (ATTR_ATIME | ATTR_MTIME | ATTR_CTIME)

/* ---- which xattrs count ---- */

static bool begins(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* What belongs to this copy, and not to what is stored in it. */
static bool is_healed(const char *key)
{
    if (begins(key, "trusted.afr.") || begins(key, "trusted.gfid") || begins(key, "trusted.pgfid.") ||
        strcmp(key, "trusted.glusterfs.mdata") == 0 || strcmp(key, "trusted.glusterfs.quota.size") == 0 ||
        strcmp(key, "trusted.glusterfs.volume-id") == 0 || strcmp(key, "security.selinux") == 0)
        return false;
    return begins(key, "trusted.") || begins(key, "user.") || begins(key, "security.") || begins(key, "system.");
}

static bool has_same_value(const struct dict *d, const char *key, const struct dict_value *value)
{
    const struct dict_value *other = dict_get(d, key);

    return other && other->size_bytes == value->size_bytes &&
           memcmp(other->bytes, value->bytes, value->size_bytes) == 0;
}

static bool is_bytes(const struct dict_value *value)
{
    return value->type == DICT_BIN || value->type == DICT_STR || value->type == DICT_OLD;
}

static bool contains(const struct dict *all, const struct dict *some)
{
    const struct dict_value *value;
    const char *key;
    size_t at = 0;

    while (dict_next(some, &at, &key, &value)) {
        if (is_healed(key) && is_bytes(value) && !has_same_value(all, key, value))
            return false;
    }
    return true;
}

bool heal_same_xattrs(const struct dict *a, const struct dict *b)
{
    return contains(a, b) && contains(b, a);
}

/* ---- making one sink equal ---- */

struct copy {
    struct heal *h;
    struct fan *listings;
    const struct iatt *like;
};

struct sink {
    struct copy *copy;
    unsigned child;
    int result;
};

static FIBER int set_attr(struct heal *h, struct inode *inode, unsigned child, const struct iatt *like, uint32_t valid,
                          struct iatt *ret_post)
{
    const struct request q = { .op = OP_SETATTR, .inode = inode, .attr = like, .valid = valid };
    SCOPED(reply_free) struct reply *r = reply_new();
    int result;

    if (!r)
        return -ENOMEM;
    result = child_call(h->me, child, &h->call, &q, r);
    if (result >= 0 && ret_post)
        *ret_post = r->post;
    return result;
}

static FIBER int set_xattrs(struct heal *h, unsigned child, const struct dict *from, const struct dict *have)
{
    SCOPED(dict_unref) struct dict *set = dict_new();
    const struct request q = { .op = OP_SETXATTR, .inode = h->inode, .xattrs = set };
    const struct dict_value *value;
    const char *key;
    size_t at = 0;
    int r = set ? 0 : -ENOMEM;

    while (r == 0 && dict_next(from, &at, &key, &value)) {
        if (is_healed(key) && is_bytes(value) && !has_same_value(have, key, value))
            r = dict_set_bin(set, key, value->bytes, value->size_bytes);
    }
    if (r == 0 && dict_count(set) > 0)
        r = child_call(h->me, child, &h->call, &q, NULL);
    return r;
}

static FIBER int remove_xattrs(struct heal *h, unsigned child, const struct dict *from, const struct dict *have)
{
    const struct dict_value *value;
    const char *key;
    size_t at = 0;

    while (dict_next(have, &at, &key, &value)) {
        const struct request q = { .op = OP_REMOVEXATTR, .inode = h->inode, .text = key };
        int r;

        if (!is_healed(key) || dict_has(from, key))
            continue;
        r = child_call(h->me, child, &h->call, &q, NULL);
        if (r < 0 && r != -ENODATA)
            return r;
    }
    return 0;
}

static FIBER int heal_sink(void *arg)
{
    struct sink *sink = arg;
    struct heal *h = sink->copy->h;
    const struct iatt *like = sink->copy->like, *have = &h->round.answers->stat[sink->child];
    const struct dict *from = sink->copy->listings->list[h->round.judged.source].r.xattrs;
    const struct dict *to = sink->copy->listings->list[sink->child].r.xattrs;
    bool has_new_owner = like->uid != have->uid || like->gid != have->gid;
    int r = 0;

    if (has_new_owner)
        r = set_attr(h, h->inode, sink->child, like, OWNER, NULL);
    if (r >= 0)
        r = remove_xattrs(h, sink->child, from, to);
    if (r >= 0)
        r = set_xattrs(h, sink->child, from, to);
    if (r >= 0 && iatt_type(like) != S_IFLNK)
        r = set_attr(h, h->inode, sink->child, like, ATTR_MODE, NULL);
    return sink->result = r < 0 ? r : 0;
}

static FIBER uint32_t heal_sinks(struct copy *copy, uint32_t sinks)
{
    struct heal *h = copy->h;
    SCOPED_FREE struct sink *list = mem_array(h->set.child_count, sizeof(*list));
    uint32_t healed = 0;
    struct group group;

    if (!list)
        return 0;
    group_init(&group, h->me->env);
    for_each_child(i, sinks)
    {
        list[i] = (struct sink) { .copy = copy, .child = i, .result = -ENOMEM };
        if (group_run(&group, "heal-metadata", heal_sink, &list[i]) < 0)
            continue; /* stays as it is, and blamed */
    }
    group_wait_all(&group);
    for_each_child(i, sinks)
    {
        heal_note(h, i, list[i].result);
        healed |= list[i].result == 0 ? bit(i) : 0;
    }
    return healed;
}

/* ---- times ---- */

static bool same_times(const struct iatt *a, const struct iatt *b)
{
    return a->atime == b->atime && a->atime_nsec == b->atime_nsec && a->mtime == b->mtime &&
           a->mtime_nsec == b->mtime_nsec && a->ctime == b->ctime && a->ctime_nsec == b->ctime_nsec;
}

/* The brick keeps the clients' times and has none for this inode yet: give it all of them. */
static FIBER int give_times(struct heal *h, struct inode *inode, unsigned child, const struct iatt *like)
{
    const struct mdata_times m = {
        .atime = like->atime,
        .atime_nsec = like->atime_nsec,
        .mtime = like->mtime,
        .mtime_nsec = like->mtime_nsec,
        .ctime = like->ctime,
        .ctime_nsec = like->ctime_nsec,
    };
    SCOPED(dict_unref) struct dict *d = dict_new();
    const struct request q = { .op = OP_SETXATTR, .inode = inode, .xattrs = d };

    if (!d || dict_set_mdata(d, "set-ctime-mdata", &m) < 0)
        return -ENOMEM;
    return child_call(h->me, child, &h->call, &q, NULL);
}

FIBER void heal_times_of(struct heal *h, struct inode *inode, uint32_t children, const struct iatt *like)
{
    for_each_child(i, children)
    {
        struct iatt post;

        if (set_attr(h, inode, i, like, TIMES, &post) < 0)
            continue;
        if (post.ctime != like->ctime || post.ctime_nsec != like->ctime_nsec)
            (void)give_times(h, inode, i, like); /* a brick that keeps its own times refuses */
    }
}

FIBER void heal_times(struct heal *h, uint32_t sinks, const struct iatt *like)
{
    heal_times_of(h, h->inode, sinks, like);
}

/* ---- the class ---- */

static FIBER struct fan *list_xattrs(struct heal *h, uint32_t children)
{
    const struct request q = { .op = OP_GETXATTR, .inode = h->inode };
    struct fan *fan = fan_new(h->me, &h->call, children, &q);

    if (fan)
        fan_run(fan);
    return fan;
}

static void find_likeness(const struct fan *listings, uint32_t children, uint32_t *same)
{
    for_each_child(i, children)
    {
        same[i] = 0;
        for_each_child(j, children)
        {
            if (i == j || heal_same_xattrs(listings->list[i].r.xattrs, listings->list[j].r.xattrs))
                same[i] |= bit(j);
        }
    }
}

FIBER bool heal_xattrs_differ(struct heal *h, uint32_t children)
{
    SCOPED(fan_free) struct fan *listings = list_xattrs(h, children);

    if (!listings)
        return false;
    children = fan_ok(listings);
    for_each_child(i, children)
    {
        if (!heal_same_xattrs(listings->list[i].r.xattrs, listings->list[mask_first(children)].r.xattrs))
            return true;
    }
    return false;
}

static FIBER int decide(struct heal *h, uint32_t children, struct fan **ret_listings)
{
    struct heal_answers *a = h->round.answers;
    uint32_t same[CHILDREN_MAX] = { 0 };
    struct fan *listings;
    int r = heal_ask(h, h->inode, children, a);

    if (r < 0)
        return r;
    listings = list_xattrs(h, a->ok);
    if (!listings)
        return -ENOMEM;
    children = heal_note_fan(h, listings) & a->ok;
    find_likeness(listings, children, same);
    heal_judge_metadata(&h->set, a, children, same, &h->how->choice, &h->round.judged);
    *ret_listings = listings;
    return 0;
}

/* Whose times count. The contents of a copy that is blamed for them may be being healed just now, by somebody else, and
 * its times are those of that until it ends. NULL: nobody's, and whoever heals the contents sets them. */
static const struct iatt *times_like(const struct heal *h)
{
    const struct heal_round *round = &h->round;
    struct accusations data;
    uint32_t fit = round->judged.sources;

    heal_accusations(round->answers, CHANGE_DATA, &data);
    fit &= ~accusations_accused(&data);
    if (fit & bit(round->judged.source))
        return &round->answers->stat[round->judged.source];
    fit &= ~h->set.arbiter; /* nobody writes there */
    return fit ? &round->answers->stat[mask_first(fit)] : NULL;
}

static FIBER int make_equal(struct heal *h, struct fan *listings)
{
    struct heal_round *round = &h->round;
    struct copy copy = { .h = h, .listings = listings };
    const struct iatt *times;
    uint32_t timeless = 0;
    int r = heal_blame_sinks(h, round->judged.taking_part);

    if (r < 0)
        return r;
    copy.like = &round->answers->stat[round->judged.source];
    round->healed = heal_sinks(&copy, round->judged.sinks);
    times = times_like(h);
    for_each_child(i, times ? round->judged.taking_part : 0)
    {
        if ((round->healed & bit(i)) || !same_times(times, &round->answers->stat[i]))
            timeless |= bit(i);
    }
    heal_times(h, timeless & (round->healed | round->judged.sources), times);
    round->healed = heal_sync(h, NULL, round->healed);
    /* Whoever made the marks did not come to syncing what is under them. */
    round->judged.sources = heal_sync(h, NULL, round->judged.sources & round->judged.dirty) |
                            (round->judged.sources & ~round->judged.dirty);
    return heal_undo(h, round->judged.taking_part);
}

FIBER int heal_metadata(struct heal *h)
{
    struct heal_lock lock = { .kind = HEAL_LOCK_METADATA, .inode = h->inode };
    struct fan *listings = NULL;
    int r;

    heal_class_begin(h, CHANGE_METADATA);
    r = heal_lock(h, &lock, heal_present(h));
    if (r == 0)
        r = decide(h, heal_holders(h, &lock), &listings);
    if (r == 0 && heal_decided(h))
        r = make_equal(h, listings);
    fan_free(listings);
    heal_unlock(h, &lock);
    return heal_class_end(h, r);
}
