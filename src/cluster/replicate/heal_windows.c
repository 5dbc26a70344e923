/* cluster/replicate/heal_windows.c - goes through a file in windows. Some are compared at the same time; copying is done in
 * one of them after the other, while the others go on comparing. */
#include "cluster/replicate/heal_copy.h"

/* Another good copy takes the place of a source that failed. 0, or its error when there is none. */
static int other_source(struct heal_copy *c, unsigned failed)
{
    struct heal_judgement *judged = &c->h->round.judged;
    uint32_t others = judged->sources & ~bit(failed) & ~c->h->set.arbiter & heal_copy_present(c);
    int error = c->h->report->child_error[failed];

    if (judged->source != failed)
        return 0; /* the fiber of another window saw to it */
    if (!others)
        return error ? error : -ENOTCONN;
    judged->sources &= ~bit(failed);
    judged->source = mask_first(others);
    return 0;
}

static FIBER int copy_in_turn(struct heal_copy *c, const struct pieces *p)
{
    int r;

    if (!p->count)
        return 0;
    r = fiber_mutex_lock(&c->copying, &c->h->caller->scope);
    if (r < 0)
        return r;
    r = c->result < 0 ? c->result : heal_copy_pieces(c, p);
    fiber_mutex_unlock(&c->copying);
    return r;
}

static FIBER int one_window(struct heal_copy *c, uint64_t offset, uint32_t size_bytes, uint64_t *ret_next)
{
    for (;;) {
        SCOPED_PIECES struct pieces p = { 0 };
        unsigned source = c->h->round.judged.source;
        int r = heal_pace(c->h, size_bytes, 0);

        if (r == 0)
            r = heal_compare(c, offset, size_bytes, &p, ret_next);
        if (r == 0)
            r = copy_in_turn(c, &p);
        if (r == -EREMOTEIO)
            r = other_source(c, source);
        else
            return r;
        if (r < 0)
            return r;
    }
}

static FIBER int go_through(void *arg)
{
    struct heal_copy *c = arg;

    while (c->result == 0 && c->sinks && c->next < c->size_bytes) {
        uint64_t offset = c->next, next = offset + WINDOW_BYTES;
        uint64_t left = c->size_bytes - offset;
        uint32_t size = (uint32_t)MIN((left + COARSE_BYTES - 1) & ~(uint64_t)(COARSE_BYTES - 1), WINDOW_BYTES);
        int r;

        c->next = next;
        r = one_window(c, offset, size, &next);
        if (r < 0 && c->result == 0)
            c->result = r;
        /* Where nobody has data nothing needs to be looked at. */
        if (r == 0 && next != UINT64_MAX)
            c->next = MAX(c->next, next & ~(uint64_t)(COARSE_BYTES - 1));
        else if (r == 0)
            c->next = c->size_bytes;
    }
    return c->result;
}

FIBER int heal_copy_file(struct heal_copy *c)
{
    struct group group;

    group_init(&group, c->h->me->env);
    for (unsigned i = 1; i < WINDOWS_AT_ONCE && (uint64_t)i * WINDOW_BYTES < c->size_bytes; i++) {
        if (group_run(&group, "heal-window", go_through, c) < 0)
            break; /* fewer will do */
    }
    (void)go_through(c);
    group_wait_all(&group);
    return c->result;
}
