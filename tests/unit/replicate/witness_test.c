/* Two copies and a witness: c0 and c1 are bricks, c2 is the thin arbiter. */
#include "cluster/replicate/witness.h"
#include "core/mem.h"
#include "unit/replicate/world.h"
#include <fcntl.h>
#include <stdio.h>

#define WITNESS   2
#define PAIR      " option thin-arbiter host:/path\n option afr-pending-xattr c0,c1,ta"
#define FILE_NAME "trusted.afr.ta"

static struct mem_node *witness_file(void)
{
    return mem_name(&mem_stores[WITNESS], &gfid_root, FILE_NAME);
}

/* How often the witness has this child blamed. */
static int32_t blames(unsigned child)
{
    struct mem_node *file = witness_file();

    return file ? mem_counter(&mem_stores[WITNESS], &file->gfid, pending_name(child), DATA) : -1;
}

static void open_pair(struct world *w, struct test *t)
{
    world_open(w, t, 3, PAIR);
    assert_non_null(witness_file()); /* enrolled: as soon as all are up */
    world_forget_messages(w);
}

static int chmod_to(struct world *w, uint32_t mode)
{
    struct iatt attr = { .mode = mode };

    return ask(w, OP_SETATTR, .inode = w->file, .attr = &attr, .valid = ATTR_MODE);
}

/* ---- both are there ---- */

SIM_TEST(with_both_bricks_nobody_asks_the_witness)
{
    struct world w;
    char text[16];

    open_pair(&w, t);
    assert_int_equal(5, world_write(&w, 0, "hello"));
    assert_int_equal(0, world_create(&w, "other", 10));
    assert_int_equal(0, chmod_to(&w, 0600));
    assert_int_equal(5, world_read(&w, text, sizeof(text)));
    assert_int_equal(0, messages(&w, WITNESS));
    world_close(&w);
}

SIM_TEST(without_the_witness_both_bricks_go_on)
{
    struct world w;
    char text[16];

    open_pair(&w, t);
    mem_brick_down(w.b[WITNESS]);
    assert_int_equal(5, world_write(&w, 0, "hello"));
    assert_int_equal(5, world_read(&w, text, sizeof(text)));
    world_close(&w);
}

SIM_TEST(one_brick_of_two_is_no_quorum_by_itself)
{
    struct quorum q = { .type = QUORUM_WITNESS, .child_count = 2 };

    assert_true(quorum_met(&q, 3));
    assert_false(quorum_met(&q, 1));
    assert_false(quorum_met(&q, 2));
    assert_true(quorum_may_be_met(&q, 2));
    q.stale = 2;
    assert_true(quorum_met(&q, 3));
    assert_true(quorum_met(&q, 1));
    assert_false(quorum_met(&q, 2));
    assert_false(quorum_may_be_met(&q, 2));
    assert_false(quorum_met(&q, 0));
}

/* ---- one goes ---- */

SIM_TEST(a_write_on_one_brick_is_answered_after_the_other_was_blamed)
{
    struct world w;

    open_pair(&w, t);
    mem_brick_down(w.b[1]);
    assert_int_equal(5, world_write(&w, 0, "hello"));
    assert_int_equal(1, blames(1));
    assert_int_equal(0, blames(0));
    assert_int_equal(1, counter(&w, 0, &w.file->gfid, PENDING(1), DATA));
    world_close(&w);
}

SIM_TEST(the_witness_is_told_once_per_outage)
{
    struct world w;
    uint64_t told;

    open_pair(&w, t);
    mem_brick_down(w.b[0]);
    assert_int_equal(5, world_write(&w, 0, "hello"));
    told = messages(&w, WITNESS);
    assert_int_equal(5, world_write(&w, 0, "HELLO"));
    assert_int_equal(0, world_create(&w, "other", 10));
    assert_int_equal(0, chmod_to(&w, 0600));
    assert_int_equal(told, messages(&w, WITNESS));
    assert_int_equal(1, blames(0));
    world_close(&w);
}

SIM_TEST(a_brick_that_refuses_a_write_is_blamed_before_the_answer)
{
    struct world w;

    open_pair(&w, t);
    assert_int_equal(1, world_write(&w, 0, "a"));
    w.b[1]->fault = FAULT_REFUSE;
    w.b[1]->fault_at = 1;
    assert_int_equal(1, world_write(&w, 0, "b"));
    assert_int_equal(1, blames(1));
    assert_int_equal(1, counter(&w, 0, &w.file->gfid, PENDING(1), DATA));
    world_close(&w);
}

SIM_TEST(without_the_witness_one_brick_neither_changes_nor_tells)
{
    struct world w;
    char text[16];

    open_pair(&w, t);
    assert_int_equal(5, world_write(&w, 0, "hello"));
    world_quiet(&w);
    mem_brick_down(w.b[WITNESS]);
    mem_brick_down(w.b[1]);
    assert_int_equal(-ENOTCONN, world_write(&w, 0, "HELLO"));
    assert_int_equal(-ENOTCONN, world_read(&w, text, sizeof(text)));
    assert_int_equal(-ENOTCONN, world_lookup(&w, "file"));
    assert_int_equal(-ENOTCONN, world_create(&w, "other", 10));
    assert_int_equal(0, mem_counter(&mem_stores[0], &w.file->gfid, DIRTY, DATA));
    mem_brick_up(w.b[WITNESS]);
    assert_int_equal(5, world_read(&w, text, sizeof(text)));
    assert_int_equal(5, world_write(&w, 0, "HELLO"));
    world_close(&w);
}

SIM_TEST(when_the_witness_goes_after_the_blame_changes_stop)
{
    struct world w;

    open_pair(&w, t);
    mem_brick_down(w.b[1]);
    assert_int_equal(5, world_write(&w, 0, "hello"));
    mem_brick_down(w.b[WITNESS]);
    assert_int_equal(-ENOTCONN, world_write(&w, 0, "HELLO"));
    mem_brick_up(w.b[WITNESS]);
    assert_int_equal(5, world_write(&w, 0, "HELLO"));
    world_close(&w);
}

SIM_TEST(readers_of_one_brick_ask_and_blame_nobody)
{
    struct world w;
    char text[16];
    uint64_t asked;

    open_pair(&w, t);
    assert_int_equal(5, world_write(&w, 0, "hello"));
    world_quiet(&w);
    mem_brick_down(w.b[0]);
    world_forget_messages(&w);
    assert_int_equal(5, world_read(&w, text, sizeof(text)));
    assert_string_equal("hello", text);
    asked = messages(&w, WITNESS);
    assert_int_equal(1, asked);
    assert_int_equal(0, world_lookup(&w, "file"));
    assert_int_equal(2 * asked, messages(&w, WITNESS));
    assert_int_equal(0, blames(0));
    assert_int_equal(0, blames(1));
    world_close(&w);
}

/* ---- in turn ---- */

SIM_TEST(a_brick_that_missed_changes_serves_nothing_alone)
{
    struct world w;
    char text[16];

    open_pair(&w, t);
    assert_int_equal(3, world_write(&w, 0, "old"));
    world_quiet(&w);
    mem_brick_down(w.b[0]);
    assert_int_equal(3, world_write(&w, 0, "new"));
    mem_brick_down(w.b[1]);
    mem_brick_up(w.b[0]);
    assert_int_equal(-ENOTCONN, world_read(&w, text, sizeof(text)));
    assert_int_equal(-ENOTCONN, world_write(&w, 0, "bad"));
    assert_int_equal(-ENOTCONN, world_lookup(&w, "file"));
    assert_int_equal(0, blames(1));
    mem_brick_up(w.b[1]);
    assert_int_equal(3, world_read(&w, text, sizeof(text)));
    assert_string_equal("new", text);
    world_close(&w);
}

/* Each sees one brick only. */
static void open_divided(struct world *a, struct world *b, struct test *t)
{
    open_pair(a, t);
    world_join(b, t, 3, PAIR);
    world_rest(b);
    mem_brick_down(a->b[0]);
    mem_brick_down(b->b[1]);
}

SIM_TEST(of_two_clients_that_see_one_brick_each_one_goes_on)
{
    struct world a, b;
    char text[16];

    open_divided(&a, &b, t);
    assert_int_equal(3, world_write(&a, 0, "one"));
    assert_int_equal(-ENOTCONN, world_write(&b, 0, "two"));
    assert_int_equal(-ENOTCONN, world_read(&b, text, sizeof(text)));
    assert_int_equal(3, world_read(&a, text, sizeof(text)));
    assert_string_equal("one", text);
    world_close(&b);
    world_close(&a);
}

SIM_TEST(clients_of_one_brick_count_on_the_same_blame)
{
    struct world a, b;
    char text[16];
    uint64_t told;

    open_pair(&a, t);
    world_join(&b, t, 3, PAIR);
    world_rest(&b);
    mem_brick_down(a.b[0]);
    mem_brick_down(b.b[0]);
    assert_int_equal(3, world_write(&a, 0, "one"));
    assert_int_equal(3, world_read(&b, text, sizeof(text))); /* blames as well: it counts on it from now on */
    assert_string_equal("one", text);
    assert_int_equal(2, blames(0));
    told = messages(&a, WITNESS) + messages(&b, WITNESS);
    assert_int_equal(3, world_write(&a, 0, "two"));
    assert_int_equal(3, world_read(&b, text, sizeof(text)));
    assert_string_equal("two", text);
    assert_int_equal(told, messages(&a, WITNESS) + messages(&b, WITNESS));
    world_close(&b);
    world_close(&a);
}

SIM_TEST(a_reader_of_the_other_brick_notices_the_blame)
{
    struct world a, b;
    char text[16];

    open_divided(&a, &b, t);
    assert_int_equal(0, world_read(&b, text, sizeof(text)));
    assert_int_equal(3, world_write(&a, 0, "one"));
    assert_int_equal(-ENOTCONN, world_read(&b, text, sizeof(text)));
    world_close(&b);
    world_close(&a);
}

/* ---- healing ---- */

static void heal_file(struct world *w, unsigned from, unsigned to)
{
    struct mem_node *good = mem_find(&mem_stores[from], &w->file->gfid);
    struct mem_node *bad = mem_find(&mem_stores[to], &w->file->gfid);

    bad->data = mem_realloc(bad->data, good->room);
    bad->room = good->room;
    memcpy(bad->data, good->data, good->room);
    bad->stat = good->stat;
    for (int class = DATA; class <= ENTRY; class ++) {
        mem_set_counter(&mem_stores[from], &w->file->gfid, pending_name(to), class, 0);
        mem_set_counter(&mem_stores[from], &w->file->gfid, DIRTY, class, 0);
    }
}

SIM_TEST(after_healing_the_brick_may_go_on_alone)
{
    struct world w;
    char text[16];
    uint64_t times = 0;

    open_pair(&w, t);
    mem_brick_down(w.b[1]);
    assert_int_equal(3, world_write(&w, 0, "new"));
    mem_brick_up(w.b[1]);
    world_rest(&w);
    assert_int_equal(0, witness_heal_begin(w.top, 1, &times));
    assert_int_equal(1, times);
    world_quiet(&w);
    heal_file(&w, 0, 1);
    assert_int_equal(0, witness_clear(w.top, 1, times));
    assert_int_equal(0, blames(1));
    mem_brick_down(w.b[0]);
    assert_int_equal(3, world_read(&w, text, sizeof(text)));
    assert_string_equal("new", text);
    assert_int_equal(3, world_write(&w, 0, "own"));
    assert_int_equal(1, blames(0));
    world_close(&w);
}

SIM_TEST(a_blame_that_somebody_relied_on_meanwhile_stays)
{
    struct world healer, w;
    uint64_t times = 0;

    open_pair(&healer, t);
    world_join(&w, t, 3, PAIR);
    world_rest(&w);
    mem_brick_down(w.b[1]);
    assert_int_equal(3, world_write(&w, 0, "one"));
    assert_int_equal(0, witness_heal_begin(healer.top, 1, &times));
    assert_int_equal(1, times);
    assert_int_equal(3, world_write(&w, 0, "two")); /* its belief was taken: it blames again */
    assert_int_equal(2, blames(1));
    assert_int_equal(-EAGAIN, witness_clear(healer.top, 1, times));
    assert_int_equal(2, blames(1));
    world_close(&w);
    world_close(&healer);
}

SIM_TEST(healing_needs_both_bricks_and_the_witness)
{
    struct world w;
    uint64_t times = 0;

    open_pair(&w, t);
    assert_int_equal(0, witness_heal_begin(w.top, 1, &times));
    assert_int_equal(0, times);
    mem_brick_down(w.b[1]);
    assert_int_equal(3, world_write(&w, 0, "new"));
    assert_int_equal(-ENOTCONN, witness_heal_begin(w.top, 1, &times));
    mem_brick_up(w.b[1]);
    mem_brick_down(w.b[WITNESS]);
    assert_int_equal(-ENOTCONN, witness_heal_begin(w.top, 1, &times));
    assert_int_equal(-ENOTCONN, witness_clear(w.top, 1, 1));
    world_close(&w);
}

/* ---- a witness that lost its memory ---- */

static void empty_witness(void)
{
    struct mem_node *file = witness_file();
    const struct gfid other = test_gfid(99);

    mem_rename_gfid(&mem_stores[WITNESS], file, &other);
    for (unsigned i = 0; i < 2; i++)
        mem_set_counter(&mem_stores[WITNESS], &other, pending_name(i), DATA, 0);
}

SIM_TEST(a_witness_that_was_emptied_has_no_word)
{
    struct world w;
    char text[16];

    open_pair(&w, t);
    mem_brick_down(w.b[0]);
    assert_int_equal(3, world_write(&w, 0, "new"));
    mem_brick_down(w.b[1]);
    mem_brick_down(w.b[WITNESS]);
    world_rest(&w);
    empty_witness();
    mem_brick_up(w.b[WITNESS]);
    mem_brick_up(w.b[0]);
    assert_int_equal(-ENOTCONN, world_read(&w, text, sizeof(text)));
    assert_int_equal(-ENOTCONN, world_write(&w, 0, "bad"));
    assert_int_equal(0, blames(1));
    world_close(&w);
}

SIM_TEST(an_emptied_witness_counts_again_when_both_bricks_are_there)
{
    struct world w;

    open_pair(&w, t);
    mem_brick_down(w.b[WITNESS]);
    empty_witness();
    mem_brick_up(w.b[WITNESS]);
    world_rest(&w);
    mem_brick_down(w.b[0]);
    assert_int_equal(3, world_write(&w, 0, "new"));
    assert_int_equal(1, blames(0));
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_both_bricks_nobody_asks_the_witness),
        cmocka_unit_test(without_the_witness_both_bricks_go_on),
        cmocka_unit_test(one_brick_of_two_is_no_quorum_by_itself),
        cmocka_unit_test(a_write_on_one_brick_is_answered_after_the_other_was_blamed),
        cmocka_unit_test(the_witness_is_told_once_per_outage),
        cmocka_unit_test(a_brick_that_refuses_a_write_is_blamed_before_the_answer),
        cmocka_unit_test(without_the_witness_one_brick_neither_changes_nor_tells),
        cmocka_unit_test(when_the_witness_goes_after_the_blame_changes_stop),
        cmocka_unit_test(readers_of_one_brick_ask_and_blame_nobody),
        cmocka_unit_test(a_brick_that_missed_changes_serves_nothing_alone),
        cmocka_unit_test(of_two_clients_that_see_one_brick_each_one_goes_on),
        cmocka_unit_test(clients_of_one_brick_count_on_the_same_blame),
        cmocka_unit_test(a_reader_of_the_other_brick_notices_the_blame),
        cmocka_unit_test(after_healing_the_brick_may_go_on_alone),
        cmocka_unit_test(a_blame_that_somebody_relied_on_meanwhile_stays),
        cmocka_unit_test(healing_needs_both_bricks_and_the_witness),
        cmocka_unit_test(a_witness_that_was_emptied_has_no_word),
        cmocka_unit_test(an_emptied_witness_counts_again_when_both_bricks_are_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
