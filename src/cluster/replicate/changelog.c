/* cluster/replicate/changelog.c - the matrix of pending counters and its interpretation. */
#include "cluster/replicate/changelog.h"

int counters_parse(const void *data, size_t size_bytes, struct counters *ret_counters)
{
    if (size_bytes != COUNTERS_BYTES)
        return -EINVAL;
    for (int i = 0; i < CHANGE_COUNT; i++)
        ret_counters->n[i] = (int32_t)get_be32((const uint8_t *)data + 4 * i);
    return 0;
}

void counters_format(const struct counters *c, uint8_t bytes[static COUNTERS_BYTES])
{
    for (int i = 0; i < CHANGE_COUNT; i++)
        put_be32(bytes + 4 * i, (uint32_t)c->n[i]);
}

void accusations_init(struct accusations *a, unsigned child_count)
{
    assert(child_count <= CHILDREN_MAX);
    memset(a, 0, sizeof(*a));
    a->child_count = child_count;
}

void accusations_add(struct accusations *a, unsigned child, uint32_t blames, bool is_dirty)
{
    assert(child < a->child_count);
    a->answered |= bit(child);
    if (blames & bit(child))
        a->fools |= bit(child);
    if (is_dirty || (blames & bit(child)))
        a->dirty |= bit(child);
    a->blames[child] = blames & ~bit(child);
}

uint32_t accusations_accused(const struct accusations *a)
{
    uint32_t accused = 0;

    for_each_child(i, a->answered) accused |= a->blames[i];
    return accused;
}

static unsigned times_accused(const struct accusations *a, unsigned child)
{
    unsigned times = 0;

    for_each_child(i, a->answered & ~a->fools) times += (a->blames[i] & bit(child)) != 0;
    return times;
}

static uint32_t innocent_of_all(const struct accusations *a, uint32_t locked)
{
    uint32_t sources = 0;

    for_each_child(j, locked)
    {
        if (times_accused(a, j) == 0)
            sources |= bit(j);
    }
    return sources;
}

/* After a client died in the middle of recording failures, everybody may be blamed by a minority only. */
static uint32_t blamed_by_minority(const struct accusations *a, uint32_t locked, unsigned quorum_count)
{
    uint32_t sources = 0;

    for_each_child(j, locked)
    {
        if (times_accused(a, j) < quorum_count)
            sources |= bit(j);
    }
    return sources;
}

struct direction accusations_direction(const struct accusations *a, enum change change, uint32_t locked,
                                       unsigned quorum_count)
{
    struct direction d = { .verdict = VERDICT_UNKNOWN };
    uint32_t accused = accusations_accused(a);

    if (a->answered != mask_all(a->child_count))
        return d;
    d.sources = innocent_of_all(a, locked);
    /* With one accuser in a pair a "majority" of two would clear both sides: that is a split brain, not a torn record. */
    if (!d.sources && change != CHANGE_ENTRY && a->child_count > 2)
        d.sources = blamed_by_minority(a, locked, quorum_count);
    for_each_child(i, d.sources & ~a->fools) d.sinks |= a->blames[i];
    d.sinks &= ~d.sources;
    d.witnesses = d.sources & a->dirty;
    if (!d.sources) {
        d.sinks = locked;
        d.verdict = change == CHANGE_ENTRY ? VERDICT_MERGE : VERDICT_SPLIT_BRAIN;
        return d;
    }
    if (change == CHANGE_ENTRY && d.witnesses)
        d.verdict = VERDICT_MERGE;
    else if (d.sinks)
        d.verdict = VERDICT_HEAL;
    else if (accused || a->dirty)
        d.verdict = change == CHANGE_ENTRY ? VERDICT_MERGE : VERDICT_COMPARE;
    else
        d.verdict = VERDICT_CLEAN;
    return d;
}

uint32_t children_with_longest(uint32_t candidates, const uint64_t *size_bytes)
{
    uint64_t longest = 0;
    uint32_t with = 0;

    for_each_child(i, candidates) longest = MAX(longest, size_bytes[i]);
    for_each_child(i, candidates)
    {
        if (size_bytes[i] == longest)
            with |= bit(i);
    }
    return with;
}
