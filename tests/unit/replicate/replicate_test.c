/* Replication with all children up, with one down, and how many messages it takes. */
#include "unit/replicate/world.h"
#include <fcntl.h>
#include <stdio.h>

static void assert_no_marks(struct world *w, const struct gfid *gfid)
{
    for (unsigned i = 0; i < w->count; i++) {
        for (int c = 0; c < 3; c++) {
            assert_int_equal(0, counter(w, i, gfid, DIRTY, c));
            for (unsigned j = 0; j < w->count; j++)
                assert_int_equal(0, counter(w, i, gfid, PENDING(j), c));
        }
    }
}

FIBER_TEST(a_write_reaches_all)
{
    struct world w;

    world_open(&w, t, 3, "");
    assert_int_equal(5, world_write(&w, 0, "hello"));
    assert_true(same_data(&w, &w.file->gfid, 7));
    assert_int_equal(5, mem_find(w.b[0]->store, &w.file->gfid)->stat.size);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(1, counter(&w, i, &w.file->gfid, DIRTY, DATA));
    world_quiet(&w);
    assert_no_marks(&w, &w.file->gfid);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(0, mem_lock_count(w.b[i]->store));
    world_close(&w);
}

FIBER_TEST(a_session_costs_one_message_per_change)
{
    struct world w;

    world_open(&w, t, 3, "");
    assert_int_equal(0, ask(&w, OP_LOOKUP, .parent = w.root, .name = "file"));
    assert_int_equal(1, messages(&w, 0));
    world_forget_messages(&w);
    assert_int_equal(1, world_write(&w, 0, "a"));
    assert_int_equal(1, messages(&w, 0)); /* lock, mark and data together */
    assert_int_equal(1, world_write(&w, 1, "b"));
    assert_int_equal(1, world_write(&w, 2, "c"));
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(3, messages(&w, i));
    world_close(&w);
}

FIBER_TEST(names_cost_one_message_each_in_a_session)
{
    struct world w;

    world_open(&w, t, 3, "");
    assert_int_equal(0, world_create(&w, "first", 10)); /* opens the session: one more */
    assert_int_equal(2, messages(&w, 1));
    world_forget_messages(&w);
    assert_int_equal(0, world_create(&w, "second", 11));
    assert_int_equal(1, messages(&w, 1));
    assert_int_equal(0, ask(&w, OP_UNLINK, .parent = w.root, .name = "second"));
    assert_int_equal(2, messages(&w, 1));
    assert_int_equal(
        0, ask(&w, OP_RENAME, .parent = w.root, .name = "first", .parent2 = w.root, .name2 = "third", .inode = w.file));
    assert_int_equal(3, messages(&w, 1));
    assert_int_equal(0, ask(&w, OP_LINK, .inode = w.file, .parent2 = w.root, .name2 = "hard"));
    assert_int_equal(4, messages(&w, 1));
    world_close(&w);
}

FIBER_TEST(attributes_cost_one_message)
{
    struct world w;
    struct iatt attr = { .mode = 0600 };

    world_open(&w, t, 3, "");
    assert_int_equal(0, ask(&w, OP_LOOKUP, .parent = w.root, .name = "file"));
    world_forget_messages(&w);
    assert_int_equal(0, ask(&w, OP_SETATTR, .inode = w.file, .attr = &attr, .valid = ATTR_MODE));
    assert_int_equal(1, messages(&w, 0));
    assert_int_equal(1, messages(&w, 2));
    assert_int_equal(S_IFREG | 0600, mem_find(w.b[2]->store, &w.file->gfid)->stat.mode);
    world_close(&w);
}

FIBER_TEST(a_child_that_is_down_is_blamed_before_the_answer)
{
    struct world w;

    world_open(&w, t, 3, "");
    mem_brick_down(w.b[1]);
    assert_int_equal(3, world_write(&w, 0, "new"));
    assert_int_equal(1, counter(&w, 0, &w.file->gfid, PENDING(1), DATA));
    assert_int_equal(1, counter(&w, 2, &w.file->gfid, PENDING(1), DATA));
    assert_int_equal(3, world_write(&w, 0, "two"));
    assert_int_equal(1, counter(&w, 0, &w.file->gfid, PENDING(1), DATA)); /* once per session */
    world_quiet(&w);
    assert_int_equal(0, counter(&w, 0, &w.file->gfid, DIRTY, DATA));
    assert_int_equal(1, counter(&w, 0, &w.file->gfid, PENDING(1), DATA));
    world_close(&w);
}

FIBER_TEST(a_child_that_comes_back_stale_never_serves)
{
    struct world w;
    char text[16];

    for (unsigned child = 0; child < 3; child++) {
        world_open(&w, t, 3, "");
        assert_int_equal(3, world_write(&w, 0, "old"));
        mem_brick_down(w.b[child]);
        assert_int_equal(3, world_write(&w, 0, "new"));
        mem_brick_up(w.b[child]);
        assert_int_equal(3, world_read(&w, text, sizeof(text)));
        assert_string_equal("new", text);
        assert_int_equal(0, w.b[child]->count[OP_READ]);
        world_close(&w);
    }
}

FIBER_TEST(new_names_made_while_a_child_is_down_are_marked)
{
    struct world w;
    const struct gfid gfid = test_gfid(20);

    world_open(&w, t, 3, " option granular-entry-heal on");
    mem_brick_down(w.b[2]);
    assert_int_equal(0, world_create(&w, "new", 20));
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(1, counter(&w, i, &gfid_root, PENDING(2), ENTRY));
        assert_int_equal(1, counter(&w, i, &gfid, PENDING(2), DATA));
        assert_int_equal(1, counter(&w, i, &gfid, PENDING(2), METADATA));
    }
    mem_brick_up(w.b[2]);
    assert_int_equal(0, world_lookup(&w, "new")); /* no stale "there is none" */
    assert_true(gfid_equal(&gfid, &w.r->stat.gfid));
    world_close(&w);
}

FIBER_TEST(a_name_removed_while_a_child_was_down_stays_removed)
{
    struct world w;

    world_open(&w, t, 3, "");
    mem_brick_down(w.b[0]);
    assert_int_equal(0, ask(&w, OP_UNLINK, .parent = w.root, .name = "file"));
    mem_brick_up(w.b[0]);
    assert_int_equal(-ENOENT, world_lookup(&w, "file"));
    world_close(&w);
}

FIBER_TEST(below_quorum_nothing_goes)
{
    struct world w;
    char text[8];

    world_open(&w, t, 3, "");
    mem_brick_down(w.b[0]);
    mem_brick_down(w.b[1]);
    assert_int_equal(-ENOTCONN, world_write(&w, 0, "x"));
    assert_int_equal(-ENOTCONN, world_read(&w, text, sizeof(text)));
    assert_int_equal(-ENOTCONN, world_lookup(&w, "file"));
    assert_int_equal(-ENOTCONN, world_create(&w, "x", 30));
    assert_logged(t, "Client-quorum is not met");
    world_close(&w);
}

FIBER_TEST(a_pair_without_quorum_goes_on_with_one)
{
    struct world w;

    world_open(&w, t, 2, "");
    assert_logged(t, "no-quorum");
    mem_brick_down(w.b[0]);
    assert_int_equal(3, world_write(&w, 0, "one"));
    assert_int_equal(1, counter(&w, 1, &w.file->gfid, PENDING(0), DATA));
    world_close(&w);
}

FIBER_TEST(split_brain_reads_fail_and_are_named)
{
    struct world w;
    char text[8];

    world_open(&w, t, 2, "");
    mem_set_counter(w.b[0]->store, &w.file->gfid, PENDING(1), DATA, 1);
    mem_set_counter(w.b[1]->store, &w.file->gfid, PENDING(0), DATA, 1);
    world_quiet(&w);
    assert_int_equal(-EIO, world_read(&w, text, sizeof(text)));
    assert_logged(t, "copies=c0(size=0,mtime=0.000000000),c1(size=0,mtime=0.000000000)");
    assert_logged(t, "resolve source-brick");
    assert_int_equal(-EIO, world_write(&w, 0, "x"));
    assert_int_equal(-EIO, ask(&w, OP_OPEN, .inode = w.file, .fd = w.fd));
    assert_int_equal(0, world_lookup(&w, "file"));
    assert_int_equal(0, ask(&w, OP_STAT, .inode = w.file));
    assert_true(ask(&w, OP_GETXATTR, .inode = w.file, .text = "replica.split-brain-status") > 0);
    const char *status;
    assert_int_equal(0, dict_get_str(w.r->xattrs, "replica.split-brain-status", &status));
    assert_string_equal("data-split-brain:yes    metadata-split-brain:no    Choices:c0,c1", status);
    world_close(&w);
}

static FIBER int set_virtual(struct world *w, const char *name, const char *value)
{
    SCOPED(dict_unref) struct dict *d = dict_new();

    assert_int_equal(0, dict_set_bin(d, name, value, strlen(value)));
    return ask(w, OP_SETXATTR, .inode = w->file, .xattrs = d);
}

static void split_file(struct world *w, struct test *t)
{
    world_open(w, t, 2, "");
    assert_int_equal(3, world_write(w, 0, "old"));
    world_quiet(w);
    mem_set_counter(w->b[0]->store, &w->file->gfid, PENDING(1), DATA, 1);
    mem_set_counter(w->b[1]->store, &w->file->gfid, PENDING(0), DATA, 1);
}

SIM_TEST(in_split_brain_a_chosen_copy_is_served_for_a_while)
{
    struct world w;
    char text[8];

    split_file(&w, t);
    assert_int_equal(-EINVAL, set_virtual(&w, "replica.split-brain-choice", "nobody"));
    assert_int_equal(-EIO, world_read(&w, text, sizeof(text)));
    assert_int_equal(0, set_virtual(&w, "replica.split-brain-choice-timeout", "1"));
    assert_int_equal(0, set_virtual(&w, "replica.split-brain-choice", "c1"));
    assert_int_equal(3, world_read(&w, text, sizeof(text)));
    assert_int_equal(0, fiber_sleep_ms(NULL, 61000));
    assert_int_equal(-EIO, world_read(&w, text, sizeof(text)));
    assert_int_equal(0, set_virtual(&w, "replica.split-brain-choice", "c0"));
    assert_int_equal(3, world_read(&w, text, sizeof(text)));
    assert_int_equal(0, set_virtual(&w, "replica.split-brain-choice", "none"));
    assert_int_equal(-EIO, world_read(&w, text, sizeof(text)));
    w.call.uid = 5;
    assert_int_equal(-EPERM, set_virtual(&w, "replica.split-brain-choice", "c0"));
    world_close(&w);
}

SIM_TEST(without_split_brain_there_is_nothing_to_choose)
{
    struct world w;

    world_open(&w, t, 2, "");
    assert_int_equal(-EINVAL, set_virtual(&w, "replica.split-brain-choice", "c0"));
    assert_int_equal(-EINVAL, set_virtual(&w, "replica.split-brain-heal-finalize", "c0"));
    assert_int_equal(-EINVAL, set_virtual(&w, "replica.split-brain-nonsense", "c0"));
    world_close(&w);
}

SIM_TEST(only_the_management_says_that_a_brick_lacks_everything)
{
    SCOPED(dict_unref) struct dict *d = dict_new();
    struct world w;

    world_open(&w, t, 3, "    option granular-entry-heal on\n");
    assert_int_equal(0, dict_set_str(d, "trusted.add-brick", "c2"));
    assert_int_equal(-EPERM, ask(&w, OP_SETXATTR, .inode = w.root, .xattrs = d));
    w.call.pid = PID_ADD_REPLICA;
    assert_int_equal(-EPERM, ask(&w, OP_SETXATTR, .inode = w.file, .xattrs = d));
    assert_int_equal(0, ask(&w, OP_SETXATTR, .inode = w.root, .xattrs = d));
    world_quiet(&w);
    for (unsigned i = 0; i < 2; i++) {
        for (int n = 0; n < 3; n++)
            assert_int_equal(1, counter(&w, i, &gfid_root, PENDING(2), n));
        assert_int_equal(0, counter(&w, i, &gfid_root, DIRTY, ENTRY));
    }
    assert_int_equal(0, counter(&w, 2, &gfid_root, PENDING(2), ENTRY));
    world_close(&w);
}

FIBER_TEST(two_clients_take_turns)
{
    struct world a, b;

    world_open(&a, t, 3, "");
    world_join(&b, t, 3, "");
    for (int i = 0; i < 5; i++) {
        char name[8];

        snprintf(name, sizeof(name), "a%d", i);
        assert_int_equal(0, world_create(&a, name, (uint8_t)(40 + i)));
        snprintf(name, sizeof(name), "b%d", i);
        assert_int_equal(0, world_create(&b, name, (uint8_t)(50 + i)));
    }
    assert_int_equal(1, world_write(&a, 0, "a"));
    assert_int_equal(1, world_write(&b, 0, "b"));
    assert_true(same_data(&a, &a.file->gfid, 7));
    world_close(&b);
    world_close(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_write_reaches_all),
        cmocka_unit_test(a_session_costs_one_message_per_change),
        cmocka_unit_test(names_cost_one_message_each_in_a_session),
        cmocka_unit_test(attributes_cost_one_message),
        cmocka_unit_test(a_child_that_is_down_is_blamed_before_the_answer),
        cmocka_unit_test(a_child_that_comes_back_stale_never_serves),
        cmocka_unit_test(new_names_made_while_a_child_is_down_are_marked),
        cmocka_unit_test(a_name_removed_while_a_child_was_down_stays_removed),
        cmocka_unit_test(below_quorum_nothing_goes),
        cmocka_unit_test(a_pair_without_quorum_goes_on_with_one),
        cmocka_unit_test(split_brain_reads_fail_and_are_named),
        cmocka_unit_test(in_split_brain_a_chosen_copy_is_served_for_a_while),
        cmocka_unit_test(without_split_brain_there_is_nothing_to_choose),
        cmocka_unit_test(only_the_management_says_that_a_brick_lacks_everything),
        cmocka_unit_test(two_clients_take_turns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
