/* features/locks: POSIX locks, reclaiming them, mandatory locking. */
#include "unit/features/asker.h"
#include <fcntl.h>
#include <stdio.h>

/* ---- lk ---- */

SIM_TEST(getlk_names_the_lock_in_the_way)
{
    static struct asker a, b;
    start(t, NULL, NULL);
    asker_init(&a, t, NULL, 1);
    asker_init(&b, t, NULL, 2);
    assert_int_equal(0, lk(&a, LOCK_TRY, LOCK_WRITE, 10, 10));
    struct lock_range range = { .type = LOCK_WRITE, .start = 0, .length = 0, .pid = 2, .owner = b.call.lk_owner };
    t->call.lk_owner = b.call.lk_owner;
    assert_int_equal(0, test_op(t, OP_LK, .inode = t->file, .command = LOCK_GET, .lock = &range));
    assert_int_equal(LOCK_WRITE, t->r->lock->type);
    assert_int_equal(10, t->r->lock->start);
    assert_int_equal(10, t->r->lock->length);
    assert_int_equal(1, t->r->lock->pid);
    range.length = 10;
    assert_int_equal(0, test_op(t, OP_LK, .inode = t->file, .command = LOCK_GET, .lock = &range));
    assert_int_equal(LOCK_NONE, t->r->lock->type);
}

SIM_TEST(a_blocking_lk_gets_its_turn)
{
    static struct asker a, b, c;
    start(t, NULL, NULL);
    asker_init(&a, t, NULL, 1);
    asker_init(&b, t, NULL, 2);
    asker_init(&c, t, NULL, 3);
    assert_int_equal(0, lk(&a, LOCK_TRY, LOCK_WRITE, 0, 0));
    prepare(&b, OP_LK, LOCK_WAIT, LOCK_WRITE, 0, 10);
    ask_later(&b);
    prepare(&c, OP_LK, LOCK_WAIT, LOCK_WRITE, 5, 10);
    ask_later(&c);
    assert_int_equal(0, lk(&a, LOCK_UNLOCK, LOCK_NONE, 0, 0));
    settle();
    assert_true(b.is_done && !c.is_done);
    assert_int_equal(0, lk(&b, LOCK_UNLOCK, LOCK_NONE, 5, 5)); /* half is enough for c */
    settle();
    assert_true(c.is_done);
    assert_int_equal(0, c.result);
}

SIM_TEST(a_waiting_writer_is_not_starved_by_readers_but_holds_them_up_for_a_second_at_most)
{
    static struct asker a, b, c, d;
    start(t, NULL, NULL);
    asker_init(&a, t, NULL, 1);
    asker_init(&b, t, NULL, 2);
    asker_init(&c, t, NULL, 3);
    asker_init(&d, t, NULL, 4);
    assert_int_equal(0, lk(&a, LOCK_TRY, LOCK_READ, 0, 0));
    prepare(&b, OP_LK, LOCK_WAIT, LOCK_WRITE, 0, 0);
    ask_later(&b);
    prepare(&c, OP_LK, LOCK_WAIT, LOCK_READ, 0, 0);
    ask_later(&c);
    assert_false(c.is_done);
    assert_int_equal(0, lk(&d, LOCK_TRY, LOCK_READ, 0, 0)); /* a try is answered by what is held */
    (void)fiber_sleep_ms(NULL, 3000);
    assert_true(c.is_done && !b.is_done);
    assert_int_equal(0, lk(&a, LOCK_UNLOCK, LOCK_NONE, 0, 0));
    assert_int_equal(0, lk(&c, LOCK_UNLOCK, LOCK_NONE, 0, 0));
    assert_int_equal(0, lk(&d, LOCK_UNLOCK, LOCK_NONE, 0, 0));
    settle();
    assert_int_equal(0, b.result);
}

SIM_TEST(a_cycle_of_waiting_owners_is_a_deadlock)
{
    static struct asker a, b, c;
    start(t, NULL, NULL);
    asker_init(&a, t, NULL, 1);
    asker_init(&b, t, NULL, 2);
    asker_init(&c, t, NULL, 3);
    assert_int_equal(0, lk(&a, LOCK_TRY, LOCK_WRITE, 0, 1));
    assert_int_equal(0, lk(&b, LOCK_TRY, LOCK_WRITE, 1, 1));
    assert_int_equal(0, lk(&c, LOCK_TRY, LOCK_WRITE, 2, 1));
    prepare(&a, OP_LK, LOCK_WAIT, LOCK_WRITE, 1, 1);
    ask_later(&a);
    prepare(&b, OP_LK, LOCK_WAIT, LOCK_WRITE, 2, 1);
    ask_later(&b);
    assert_int_equal(-EDEADLK, lk(&c, LOCK_WAIT, LOCK_WRITE, 0, 1));
    assert_int_equal(0, lk(&c, LOCK_UNLOCK, LOCK_NONE, 2, 1));
    settle();
    assert_int_equal(0, b.result);
    assert_int_equal(0, lk(&b, LOCK_UNLOCK, LOCK_NONE, 0, 0));
    settle();
    assert_int_equal(0, a.result);
}

SIM_TEST(closing_drops_the_owners_locks_and_no_others)
{
    static struct asker a, b, c;
    start(t, NULL, NULL);
    asker_init(&a, t, NULL, 1);
    asker_init(&b, t, NULL, 2);
    asker_init(&c, t, NULL, 3);
    assert_int_equal(0, lk(&a, LOCK_TRY, LOCK_WRITE, 0, 10));
    assert_int_equal(0, lk(&b, LOCK_TRY, LOCK_WRITE, 10, 10));
    a.q = (struct request) { .op = OP_FLUSH, .inode = t->file, .fd = t->fd };
    assert_int_equal(0, ask(&a));
    assert_int_equal(0, lk(&c, LOCK_TRY, LOCK_WRITE, 0, 10));
    assert_int_equal(-EAGAIN, lk(&c, LOCK_TRY, LOCK_WRITE, 10, 10));
}

SIM_TEST(the_last_reference_to_a_descriptor_drops_what_was_locked_through_it)
{
    static struct asker a, b;
    start(t, NULL, NULL);
    asker_init(&a, t, NULL, 1);
    asker_init(&b, t, NULL, 2);
    struct fd *fd = fd_new(t->file, O_RDWR, 1);
    prepare(&a, OP_LK, LOCK_TRY, LOCK_WRITE, 0, 0);
    a.q.fd = fd;
    assert_int_equal(0, ask(&a));
    assert_int_equal(-EAGAIN, lk(&b, LOCK_TRY, LOCK_WRITE, 0, 0));
    fd_unref(fd);
    assert_int_equal(0, lk(&b, LOCK_TRY, LOCK_WRITE, 0, 0));
}

SIM_TEST(an_interrupted_lk_ends_and_leaves_what_was_held)
{
    static struct asker a, b, c;
    start(t, NULL, NULL);
    asker_init(&a, t, NULL, 1);
    asker_init(&b, t, NULL, 2);
    asker_init(&c, t, NULL, 2);
    assert_int_equal(0, lk(&a, LOCK_TRY, LOCK_WRITE, 0, 10));
    assert_int_equal(0, lk(&b, LOCK_TRY, LOCK_WRITE, 20, 10));
    prepare(&b, OP_LK, LOCK_WAIT, LOCK_WRITE, 0, 10);
    ask_later(&b);
    c.q = (struct request) { .op = OP_GETXATTR, .inode = t->file, .text = "glusterfs.intrlk.40-10" };
    assert_int_equal(2, ask(&c)); /* "0" */
    settle();
    assert_false(b.is_done);
    c.q.text = "glusterfs.intrlk.0-10";
    assert_int_equal(2, ask(&c)); /* "1" */
    settle();
    assert_int_equal(-EINTR, b.result);
    assert_int_equal(-EAGAIN, lk(&a, LOCK_TRY, LOCK_READ, 20, 1));
}

SIM_TEST(active_locks_are_listed)
{
    static struct asker a;
    start(t, NULL, NULL);
    struct client *one = new_client(t, "uid-one");
    asker_init(&a, t, one, 1);
    assert_int_equal(0, lk(&a, LOCK_TRY, LOCK_READ, 3, 0));
    assert_int_equal(0, test_op(t, OP_GETACTIVELK, .inode = t->file));
    assert_int_equal(1, t->r->lock_count);
    assert_int_equal(3, t->r->locks[0].range.start);
    assert_int_equal(0, t->r->locks[0].range.length);
    assert_string_equal("uid-one", t->r->locks[0].client_uid);
    client_gone(one);
    client_unref(one);
}

/* ---- reclaim ---- */

SIM_TEST(after_a_start_fresh_locks_wait_until_others_had_time_to_reclaim)
{
    static struct asker a, b;
    SCOPED(dict_unref) struct dict *reclaim = dict_new();
    test_push(t, &leaf_class, NULL);
    test_push(t, &locks_class, NULL);
    test_start(t);
    uint64_t began_ns = env_now_ns(t->env);
    asker_init(&a, t, NULL, 1);
    asker_init(&b, t, NULL, 2);
    prepare(&b, OP_LK, LOCK_TRY, LOCK_WRITE, 0, 0);
    ask_later(&b);
    assert_false(b.is_done);
    assert_int_equal(0, dict_set_int(reclaim, LOCKS_RECLAIM, 1));
    prepare(&a, OP_LK, LOCK_TRY, LOCK_WRITE, 0, 0);
    a.q.xdata = reclaim;
    assert_int_equal(0, ask(&a));
    assert_true(a.done_ns - began_ns < 1000000000u);
    assert_int_equal(0, lk(&a, LOCK_TRY, LOCK_READ, 5, 1)); /* who holds one need not wait */
    assert_int_equal(-EAGAIN, ({
        while (!b.is_done)
            settle();
        b.result;
    }));
    assert_true(b.done_ns - began_ns >= 3000000000u);
    assert_true(b.done_ns - began_ns < 3100000000u);
}

SIM_TEST(a_file_made_since_the_start_has_nothing_to_reclaim)
{
    static struct asker a;
    test_push(t, &leaf_class, NULL);
    test_push(t, &locks_class, NULL);
    test_start(t);
    uint64_t began_ns = env_now_ns(t->env);
    asker_init(&a, t, NULL, 1);
    assert_int_equal(0, test_op(t, OP_MKNOD, .inode = t->new_inode, .parent = t->dir, .name = "n", .mode = S_IFREG));
    prepare(&a, OP_LK, LOCK_TRY, LOCK_WRITE, 0, 0);
    a.q.inode = t->new_inode;
    assert_int_equal(0, ask(&a));
    assert_true(a.done_ns - began_ns < 1000000000u);
}

SIM_TEST(a_reclaim_takes_nothing_from_others)
{
    static struct asker a, b;
    SCOPED(dict_unref) struct dict *reclaim = dict_new();
    start(t, NULL, NULL);
    asker_init(&a, t, NULL, 1);
    asker_init(&b, t, NULL, 2);
    assert_int_equal(0, lk(&b, LOCK_TRY, LOCK_WRITE, 0, 0));
    assert_int_equal(0, dict_set_int(reclaim, LOCKS_RECLAIM, 1));
    prepare(&a, OP_LK, LOCK_WAIT, LOCK_WRITE, 0, 0);
    a.q.xdata = reclaim;
    assert_int_equal(-EAGAIN, ask(&a));
}

/* ---- mandatory ---- */

SIM_TEST(forced_mandatory_locks_stop_others_reads_and_writes)
{
    static struct asker a;
    start(t, "mandatory-locking", "forced");
    struct buf *data = buf_copy("xxxx", 4);
    asker_init(&a, t, NULL, 1);
    assert_int_equal(0, lk(&a, LOCK_TRY, LOCK_READ, 10, 10));
    lk_owner_from_u64(&t->call.lk_owner, 2);
    assert_int_equal(0, test_op(t, OP_READ, .inode = t->file, .offset = 10, .size = 4));
    assert_int_equal(-EAGAIN, test_op(t, OP_WRITE, .inode = t->file, .offset = 17, .data = data, .flags = O_NONBLOCK));
    assert_int_equal(4, test_op(t, OP_WRITE, .inode = t->file, .offset = 20, .data = data, .flags = O_NONBLOCK));
    assert_int_equal(-EAGAIN, test_op(t, OP_OPEN, .inode = t->file, .fd = t->fd, .flags = O_RDWR | O_TRUNC));
    t->call.scope.deadline_ns = env_deadline_ms(t->env, 20);
    assert_int_equal(-ETIMEDOUT, test_op(t, OP_TRUNCATE, .inode = t->file, .offset = 0));
    t->call.scope.deadline_ns = 0;
    assert_int_equal(0, lk(&a, LOCK_UNLOCK, LOCK_NONE, 0, 0));
    assert_int_equal(0, test_op(t, OP_TRUNCATE, .inode = t->file, .offset = 0));
    buf_unref(data);
}

SIM_TEST(mandatory_file_means_setgid_without_group_execute)
{
    static struct asker a;
    start(t, "mandatory-locking", "file");
    asker_init(&a, t, NULL, 1);
    assert_int_equal(0, lk(&a, LOCK_TRY, LOCK_WRITE, 0, 0));
    lk_owner_from_u64(&t->call.lk_owner, 2);
    assert_int_equal(0, test_op(t, OP_READ, .inode = t->file, .size = 4, .flags = O_NONBLOCK));
    t->leaf->stat.mode = S_IFREG | 02644;
    assert_int_equal(-EAGAIN, test_op(t, OP_READ, .inode = t->file, .size = 4, .flags = O_NONBLOCK));
    t->leaf->stat.mode = S_IFREG | 02654;
    assert_int_equal(0, test_op(t, OP_READ, .inode = t->file, .size = 4, .flags = O_NONBLOCK));
}

SIM_TEST(mandatory_optimal_means_locks_taken_as_mandatory_and_internal_clients_pass)
{
    static struct asker a;
    SCOPED(dict_unref) struct dict *mode = dict_new();
    start(t, "mandatory-locking", "optimal");
    asker_init(&a, t, NULL, 1);
    assert_int_equal(0, lk(&a, LOCK_TRY, LOCK_WRITE, 0, 0));
    lk_owner_from_u64(&t->call.lk_owner, 2);
    assert_int_equal(0, test_op(t, OP_READ, .inode = t->file, .size = 4, .flags = O_NONBLOCK));
    assert_int_equal(0, dict_set_uint(mode, "glusterfs.lk.lkmode", 1));
    prepare(&a, OP_LK, LOCK_TRY, LOCK_WRITE, 0, 0);
    a.q.xdata = mode;
    assert_int_equal(0, ask(&a));
    assert_int_equal(-EAGAIN, test_op(t, OP_READ, .inode = t->file, .size = 4, .flags = O_NONBLOCK));
    t->call.pid = PID_SELF_HEAL;
    assert_int_equal(0, test_op(t, OP_READ, .inode = t->file, .size = 4, .flags = O_NONBLOCK));
}

SIM_TEST(a_read_that_waits_for_a_mandatory_lock_goes_on_when_it_is_gone)
{
    static struct asker a, b;
    start(t, "mandatory-locking", "forced");
    asker_init(&a, t, NULL, 1);
    asker_init(&b, t, NULL, 2);
    assert_int_equal(0, lk(&a, LOCK_TRY, LOCK_WRITE, 0, 0));
    b.q = (struct request) { .op = OP_READ, .inode = t->file, .size = 4 };
    ask_later(&b);
    assert_false(b.is_done);
    assert_int_equal(0, lk(&a, LOCK_UNLOCK, LOCK_NONE, 0, 0));
    settle();
    assert_true(b.is_done);
    assert_int_equal(0, b.result);
}

SIM_TEST(old_option_mandatory_on_means_forced)
{
    static struct asker a;
    start(t, "mandatory", "on");
    asker_init(&a, t, NULL, 1);
    assert_int_equal(0, lk(&a, LOCK_TRY, LOCK_WRITE, 0, 0));
    lk_owner_from_u64(&t->call.lk_owner, 2);
    assert_int_equal(-EAGAIN, test_op(t, OP_READ, .inode = t->file, .size = 4, .flags = O_NONBLOCK));
}

SIM_TEST(advisory_locks_stop_nobody)
{
    static struct asker a;
    start(t, NULL, NULL);
    asker_init(&a, t, NULL, 1);
    assert_int_equal(0, lk(&a, LOCK_TRY, LOCK_WRITE, 0, 0));
    lk_owner_from_u64(&t->call.lk_owner, 2);
    assert_int_equal(0, test_op(t, OP_READ, .inode = t->file, .size = 4));
    assert_int_equal(0, test_op(t, OP_TRUNCATE, .inode = t->file));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(getlk_names_the_lock_in_the_way),
        cmocka_unit_test(a_blocking_lk_gets_its_turn),
        cmocka_unit_test(a_waiting_writer_is_not_starved_by_readers_but_holds_them_up_for_a_second_at_most),
        cmocka_unit_test(a_cycle_of_waiting_owners_is_a_deadlock),
        cmocka_unit_test(closing_drops_the_owners_locks_and_no_others),
        cmocka_unit_test(the_last_reference_to_a_descriptor_drops_what_was_locked_through_it),
        cmocka_unit_test(an_interrupted_lk_ends_and_leaves_what_was_held),
        cmocka_unit_test(active_locks_are_listed),
        cmocka_unit_test(after_a_start_fresh_locks_wait_until_others_had_time_to_reclaim),
        cmocka_unit_test(a_file_made_since_the_start_has_nothing_to_reclaim),
        cmocka_unit_test(a_reclaim_takes_nothing_from_others),
        cmocka_unit_test(forced_mandatory_locks_stop_others_reads_and_writes),
        cmocka_unit_test(mandatory_file_means_setgid_without_group_execute),
        cmocka_unit_test(mandatory_optimal_means_locks_taken_as_mandatory_and_internal_clients_pass),
        cmocka_unit_test(a_read_that_waits_for_a_mandatory_lock_goes_on_when_it_is_gone),
        cmocka_unit_test(old_option_mandatory_on_means_forced),
        cmocka_unit_test(advisory_locks_stop_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
