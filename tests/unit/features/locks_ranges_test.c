/* POSIX ranges against the plainest model there is: one cell per byte. */
#include "features/locks/locks_internal.h"
#include "unit/unit.h"
#include <stdlib.h>

#define BYTES  40
#define OWNERS 3

struct model {
    enum lock_type of[BYTES][OWNERS];
};

static struct posix_lock *make(unsigned owner, enum lock_type type, uint64_t start, uint64_t end)
{
    struct posix_lock *lock = NEW(struct posix_lock);
    assert_non_null(lock);
    list_init(&lock->of_inode);
    lk_owner_from_u64(&lock->owner, owner);
    lock->type = type;
    lock->start = start;
    lock->end = end;
    return lock;
}

static void free_all(struct list *head)
{
    while (!list_empty(head)) {
        struct posix_lock *lock = list_first(head, struct posix_lock, of_inode);
        list_del(&lock->of_inode);
        mem_free(lock);
    }
}

static void apply(struct list *granted, unsigned owner, enum lock_type type, uint64_t start, uint64_t end)
{
    struct list dead = LIST_INIT(dead);
    posix_ranges_apply(granted, make(owner, type, start, end), make(owner, type, start, end), &dead);
    free_all(&dead);
}

static enum lock_type type_at(struct list *granted, unsigned owner, uint64_t byte)
{
    struct posix_lock *g;
    struct lk_owner who;
    unsigned found = 0;
    enum lock_type type = LOCK_NONE;

    lk_owner_from_u64(&who, owner);
    list_for_each (g, granted, of_inode)
        if (lk_owner_equal(&g->owner, &who) && g->start <= byte && byte <= g->end) {
            type = g->type;
            found++;
        }
    assert_true(found <= 1); /* an owner's ranges never overlap */
    return type;
}

static unsigned count(struct list *granted)
{
    struct posix_lock *g;
    unsigned n = 0;
    list_for_each (g, granted, of_inode)
        n++;
    return n;
}

/* The fewest ranges that say the same: neighbours of one type are one range. */
static unsigned model_count(const struct model *m)
{
    unsigned n = 0;
    for (unsigned o = 0; o < OWNERS; o++)
        for (unsigned b = 0; b < BYTES; b++)
            if (m->of[b][o] != LOCK_NONE && (b == 0 || m->of[b - 1][o] != m->of[b][o]))
                n++;
    return n;
}

static bool model_conflict(const struct model *m, unsigned owner, enum lock_type type, unsigned start, unsigned end)
{
    for (unsigned b = start; b <= end; b++)
        for (unsigned o = 0; o < OWNERS; o++)
            if (o != owner && m->of[b][o] != LOCK_NONE && (type == LOCK_WRITE || m->of[b][o] == LOCK_WRITE))
                return true;
    return false;
}

static void random_step(struct list *granted, struct model *m)
{
    unsigned owner = (unsigned)rand() % OWNERS, start = (unsigned)rand() % BYTES;
    unsigned end = start + (unsigned)rand() % (BYTES - start);
    enum lock_type type = (enum lock_type)(rand() % 3);
    struct posix_lock want = { .type = type, .start = start, .end = end };

    lk_owner_from_u64(&want.owner, owner);
    bool is_blocked = type != LOCK_NONE && model_conflict(m, owner, type, start, end);
    if (type != LOCK_NONE)
        assert_int_equal(is_blocked, posix_ranges_conflict(granted, &want) != NULL);
    if (is_blocked)
        return;
    apply(granted, owner, type, start, end);
    for (unsigned b = start; b <= end; b++)
        m->of[b][owner] = type;
}

static void ranges_behave_as_one_cell_per_byte(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 200; seed++) {
        struct list granted = LIST_INIT(granted);
        struct model m;
        for (unsigned b = 0; b < BYTES; b++)
            for (unsigned o = 0; o < OWNERS; o++)
                m.of[b][o] = LOCK_NONE;
        srand(seed);
        for (unsigned i = 0; i < 200; i++) {
            random_step(&granted, &m);
            for (unsigned b = 0; b < BYTES; b++)
                for (unsigned o = 0; o < OWNERS; o++)
                    if (type_at(&granted, o, b) != m.of[b][o])
                        fail_msg("seed %u step %u: byte %u owner %u", seed, i, b, o);
            assert_int_equal(model_count(&m), count(&granted));
        }
        free_all(&granted);
    }
}

static void unlocking_the_middle_leaves_both_ends(void **state)
{
    struct list granted = LIST_INIT(granted);
    (void)state;
    apply(&granted, 1, LOCK_WRITE, 0, INT64_MAX);
    apply(&granted, 1, LOCK_NONE, 100, 199);
    assert_int_equal(2, count(&granted));
    assert_int_equal(LOCK_WRITE, type_at(&granted, 1, 99));
    assert_int_equal(LOCK_NONE, type_at(&granted, 1, 100));
    assert_int_equal(LOCK_NONE, type_at(&granted, 1, 199));
    assert_int_equal(LOCK_WRITE, type_at(&granted, 1, 200));
    assert_int_equal(LOCK_WRITE, type_at(&granted, 1, INT64_MAX));
    free_all(&granted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_behave_as_one_cell_per_byte),
        cmocka_unit_test(unlocking_the_middle_leaves_both_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
