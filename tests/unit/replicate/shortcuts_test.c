/* Round trips that are saved: contents that come with an open, names that are known to be free. */
#include "unit/replicate/world.h"
#include <fcntl.h>

/* ---- a small file is read as it is opened ---- */

static FIBER int open_for_reading(struct world *w, uint64_t size)
{
    SCOPED(fd_unref) struct fd *fd = fd_new(w->file, O_RDONLY, 1);

    return ask(w, OP_OPEN, .inode = w->file, .fd = fd, .flags = O_RDONLY, .size = size);
}

static uint64_t reads(const struct world *w)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < w->count; i++)
        n += w->b[i]->count[OP_READ];
    return n;
}

SIM_TEST(one_brick_reads_a_small_file_as_it_is_opened)
{
    struct world w;

    world_open_with_times(&w, t, 3, "on");
    assert_int_equal(5, world_write(&w, 0, "hello"));
    assert_int_equal(0, open_for_reading(&w, 4096));
    assert_int_equal(1, reads(&w));
    assert_non_null(w.r->data);
    assert_int_equal(5, w.r->data->size);
    assert_memory_equal("hello", w.r->data->data, 5);
    assert_int_equal(5, world_write(&w, 0, "world"));
    assert_int_equal(0, open_for_reading(&w, 4096));
    assert_memory_equal("world", w.r->data->data, 5);
    world_close(&w);
}

SIM_TEST(a_file_that_is_larger_than_asked_for_does_not_come_with_the_open)
{
    struct world w;

    world_open_with_times(&w, t, 2, "on");
    assert_int_equal(5, world_write(&w, 0, "hello"));
    assert_int_equal(0, open_for_reading(&w, 4));
    assert_null(w.r->data);
    assert_int_equal(5, w.r->stat.size);
    world_close(&w);
}

SIM_TEST(a_stale_brick_is_not_read_at_open)
{
    struct world w;

    world_open_with_times(&w, t, 3, "on");
    assert_int_equal(3, world_write(&w, 0, "old"));
    mem_brick_down(w.b[0]);
    assert_int_equal(3, world_write(&w, 0, "new"));
    mem_brick_up(w.b[0]);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(0, open_for_reading(&w, 4096));
        if (w.r->data)
            assert_memory_equal("new", w.r->data->data, 3);
    }
    assert_int_equal(0, w.b[0]->count[OP_READ]);
    world_close(&w);
}

SIM_TEST(opening_is_no_reading_where_access_times_are_kept)
{
    struct world w;

    world_open_with_times(&w, t, 2, "off");
    assert_int_equal(5, world_write(&w, 0, "hello"));
    assert_int_equal(0, open_for_reading(&w, 4096));
    assert_null(w.r->data);
    assert_int_equal(0, reads(&w));
    world_close(&w);
    world_open(&w, t, 2, ""); /* bricks keep their own, but not for this: O_NOATIME */
    assert_int_equal(5, world_write(&w, 0, "hello"));
    assert_int_equal(0, open_for_reading(&w, 4096));
    assert_non_null(w.r->data);
    world_close(&w);
}

/* ---- names that are free ---- */

/* How many bricks are asked about the name. */
static FIBER uint64_t asked_about(struct world *w, const char *name, int expected)
{
    uint64_t n = 0;

    world_forget_messages(w);
    assert_int_equal(expected, world_lookup(w, name));
    for (unsigned i = 0; i < w->count; i++)
        n += messages(w, i);
    return n;
}

SIM_TEST(who_makes_files_asks_one_brick_which_names_are_free)
{
    struct world w;

    world_open(&w, t, 3, "");
    assert_int_equal(3, asked_about(&w, "a", -ENOENT)); /* nobody holds the directory */
    assert_int_equal(0, world_create(&w, "a", 90));
    assert_int_equal(3, asked_about(&w, "b", -ENOENT)); /* nothing is known of what comes after a free name */
    assert_int_equal(0, world_create(&w, "b", 91));
    assert_int_equal(1, asked_about(&w, "c", -ENOENT));
    assert_int_equal(0, world_create(&w, "c", 92));
    assert_int_equal(1, asked_about(&w, "d", -ENOENT));
    world_quiet(&w); /* the directory is given back */
    assert_int_equal(3, asked_about(&w, "d", -ENOENT));
    world_close(&w);
}

SIM_TEST(a_name_that_is_there_after_all_is_asked_for_everywhere)
{
    struct world w;

    world_open(&w, t, 3, "");
    assert_int_equal(0, world_create(&w, "a", 90));
    assert_int_equal(-ENOENT, world_lookup(&w, "b"));
    assert_int_equal(-ENOENT, world_lookup(&w, "c"));
    assert_int_equal(4, asked_about(&w, "a", 0)); /* one in vain, then all */
    assert_int_equal(4, asked_about(&w, "a", 0)); /* after a name that was there, the last one was free */
    assert_int_equal(3, asked_about(&w, "a", 0)); /* now it is expected to be there */
    world_close(&w);
}

SIM_TEST(the_order_of_free_and_taken_names_is_learnt)
{
    struct world w;

    world_open(&w, t, 3, "");
    assert_int_equal(0, world_create(&w, "there", 90));
    for (int i = 0; i < 3; i++) { /* as mv does: the old name is there, the new one is not */
        (void)asked_about(&w, "there", 0);
        (void)asked_about(&w, "free", -ENOENT);
    }
    assert_int_equal(3, asked_about(&w, "there", 0));
    assert_int_equal(1, asked_about(&w, "free", -ENOENT));
    world_close(&w);
}

SIM_TEST(a_brick_that_missed_a_change_is_not_asked_which_names_are_free)
{
    struct world w;

    world_open(&w, t, 3, "");
    mem_brick_down(w.b[0]);
    assert_int_equal(0, world_create(&w, "a", 90));
    mem_brick_up(w.b[0]);
    assert_int_equal(0, world_create(&w, "b", 91));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(-ENOENT, world_lookup(&w, "free"));
        assert_int_equal(0, world_lookup(&w, "a")); /* never believed to be free, although brick 0 lacks it */
    }
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_brick_reads_a_small_file_as_it_is_opened),
        cmocka_unit_test(a_file_that_is_larger_than_asked_for_does_not_come_with_the_open),
        cmocka_unit_test(a_stale_brick_is_not_read_at_open),
        cmocka_unit_test(opening_is_no_reading_where_access_times_are_kept),
        cmocka_unit_test(who_makes_files_asks_one_brick_which_names_are_free),
        cmocka_unit_test(a_name_that_is_there_after_all_is_asked_for_everywhere),
        cmocka_unit_test(the_order_of_free_and_taken_names_is_learnt),
        cmocka_unit_test(a_brick_that_missed_a_change_is_not_asked_which_names_are_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
