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
