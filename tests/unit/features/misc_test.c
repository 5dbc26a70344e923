/* read-only, barrier, quiesce, arbiter, selinux, utime, distribute, and the features that are switched off. */
#include "unit/graph/test_graph.h"
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdio.h>

extern const struct translator_class arbiter_class, barrier_class, bitrot_stub_class, changelog_class, distribute_class,
    leases_class, marker_class, md_cache_class, namespace_class, quiesce_class, quota_class, read_only_class,
    sdfs_class, selinux_class, trash_class, upcall_class, utime_class, worm_class;

static FIBER void begin(struct test *t, const struct translator_class *class, const char *key, const char *value)
{
    test_push(t, &leaf_class, NULL);
    test_push(t, class, key, value, NULL);
    test_start(t);
    t->call.pid = 77;
}

/* ---- read-only ---- */

FIBER_TEST(read_only_refuses_changes_of_users)
{
    SCOPED(buf_unref) struct buf *data = buf_copy("x", 1);

    begin(t, &read_only_class, "read-only", "on");
    assert_int_equal(-EROFS, test_op(t, OP_WRITE, .inode = t->file, .data = data));
    assert_int_equal(-EROFS, test_op(t, OP_UNLINK, .parent = t->dir, .name = "f"));
    assert_int_equal(-EROFS, test_op(t, OP_OPEN, .inode = t->file, .fd = t->fd, .flags = O_WRONLY));
    assert_int_equal(-EROFS, test_op(t, OP_OPEN, .inode = t->file, .fd = t->fd, .flags = O_RDONLY | O_TRUNC));
    assert_int_equal(0, t->leaf->call_count);
}

FIBER_TEST(read_only_lets_reading_pass)
{
    begin(t, &read_only_class, "read-only", "on");
    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->file));
    assert_int_equal(0, test_op(t, OP_OPEN, .inode = t->file, .fd = t->fd, .flags = O_RDONLY));
    assert_int_equal(0, test_op(t, OP_LOOKUP, .inode = t->file));
}

FIBER_TEST(read_only_lets_internal_clients_pass)
{
    begin(t, &read_only_class, "read-only", "on");
    t->call.pid = PID_SELF_HEAL;
    assert_int_equal(0, test_op(t, OP_UNLINK, .parent = t->dir, .name = "f"));
}

FIBER_TEST(read_only_off_lets_everything_pass)
{
    begin(t, &read_only_class, "read-only", "off");
    assert_int_equal(0, test_op(t, OP_UNLINK, .parent = t->dir, .name = "f"));
}

FIBER_TEST(read_only_looks_into_compounds)
{
    struct request steps[1] = { { .op = OP_TRUNCATE } };

    begin(t, &read_only_class, "read-only", "on");
    steps[0].inode = t->file;
    assert_int_equal(-EROFS, test_op(t, OP_COMPOUND, .steps = steps, .step_count = 1));
}

/* ---- utime ---- */

static uint32_t flags_at_leaf(struct test *t)
{
    return leaf_last(t->leaf)->time_flags;
}

FIBER_TEST(utime_says_which_times_a_change_of_names_sets)
{
    begin(t, &utime_class, "noatime", "on");
    test_op(t, OP_CREATE, .parent = t->dir, .name = "f", .inode = t->new_inode, .fd = t->fd);
    assert_int_equal(0x1f, flags_at_leaf(t));
    test_op(t, OP_MKDIR, .parent = t->dir, .name = "f", .inode = t->new_inode);
    assert_int_equal(0x1f, flags_at_leaf(t));
    test_op(t, OP_UNLINK, .parent = t->dir, .name = "f");
    assert_int_equal(0x19, flags_at_leaf(t));
    test_op(t, OP_RENAME, .parent = t->dir, .name = "f", .parent2 = t->dir, .name2 = "g");
    assert_int_equal(0x19, flags_at_leaf(t));
    test_op(t, OP_LINK, .inode = t->file, .parent2 = t->dir, .name2 = "g");
    assert_int_equal(0x19, flags_at_leaf(t));
}

FIBER_TEST(utime_says_which_times_a_change_of_content_sets)
{
    SCOPED(buf_unref) struct buf *data = buf_copy("x", 1);

    begin(t, &utime_class, "noatime", "on");
    test_op(t, OP_WRITE, .inode = t->file, .data = data);
    assert_int_equal(0x03, flags_at_leaf(t));
    test_op(t, OP_TRUNCATE, .inode = t->file);
    assert_int_equal(0x03, flags_at_leaf(t));
    test_op(t, OP_FALLOCATE, .inode = t->file);
    assert_int_equal(0x03, flags_at_leaf(t));
    test_op(t, OP_FALLOCATE, .inode = t->file, .flags = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE);
    assert_int_equal(0x03, flags_at_leaf(t));
    test_op(t, OP_REMOVEXATTR, .inode = t->file, .text = "user.a");
    assert_int_equal(0x01, flags_at_leaf(t));
    test_op(t, OP_LOOKUP, .inode = t->file);
    assert_int_equal(0, flags_at_leaf(t));
}

FIBER_TEST(utime_leaves_given_times_to_the_attributes_of_setattr)
{
    struct iatt attr = { 0 };

    begin(t, &utime_class, "noatime", "on");
    test_op(t, OP_SETATTR, .inode = t->file, .attr = &attr, .valid = ATTR_MODE);
    assert_int_equal(0x01, flags_at_leaf(t));
    test_op(t, OP_SETATTR, .inode = t->file, .attr = &attr, .valid = ATTR_MTIME);
    assert_int_equal(0x01, flags_at_leaf(t));
    test_op(t, OP_SETATTR, .inode = t->file, .attr = &attr, .valid = ATTR_ATIME | ATTR_ATIME_NOW);
    assert_int_equal(0x01, flags_at_leaf(t));
}

FIBER_TEST(utime_stamps_reads_only_when_access_times_are_wanted)
{
    begin(t, &utime_class, "noatime", "off");
    test_op(t, OP_READ, .inode = t->file, .size = 1);
    assert_int_equal(0x04, flags_at_leaf(t));
    test_op(t, OP_OPEN, .inode = t->file, .fd = t->fd);
    assert_int_equal(0x04, flags_at_leaf(t));
}

FIBER_TEST(utime_leaves_reads_alone_by_default)
{
    begin(t, &utime_class, "noatime", "on");
    test_op(t, OP_READ, .inode = t->file, .size = 1);
    assert_int_equal(0, flags_at_leaf(t));
    assert_int_equal(0, leaf_last(t->leaf)->time_s);
}

FIBER_TEST(utime_carries_the_clock_and_puts_the_call_back)
{
    struct timespec now;

    begin(t, &utime_class, "noatime", "on");
    env_wall_time(t->env, &now);
    test_op(t, OP_TRUNCATE, .inode = t->file);
    assert_in_range(leaf_last(t->leaf)->time_s, now.tv_sec, now.tv_sec + 2);
    assert_int_equal(0, t->call.time_flags);
    assert_int_equal(0, t->call.time_s);
}

/* ---- barrier ---- */

struct held {
    struct test *t;
    const struct request *q;
    struct reply *r;
    bool is_answered;
    int result;
};

static int ask(void *arg)
{
    struct held *h = arg;

    h->result = translator_call(h->t->graph->root, &h->t->call, h->q, h->r);
    h->is_answered = true;
    return 0;
}

static int change_option(struct test *t, const char *type, const char *key, const char *value)
{
    char text[512];
    SCOPED(volfile_free) struct volfile *file = NULL;

    snprintf(
        text, sizeof(text),
        "volume l\n type test/leaf\n option note x\nend-volume\nvolume top\n type %s\n option %s %s\n subvolumes l\nend-volume\n",
        type, key, value);
    assert_int_equal(0, volfile_parse("y.vol", text, strlen(text), &file, &t->err));
    if (!t->graph) {
        int r = test_try_build(t, text);
        return r;
    }
    return graph_reconfigure(t->graph, file, NULL, &t->err);
}

SIM_TEST(barrier_holds_the_answer_until_it_is_lifted)
{
    struct group g;
    struct request q = { .op = OP_UNLINK, .name = "f" };
    struct held h = { .t = t, .q = &q };

    assert_int_equal(0, change_option(t, "features/barrier", "barrier", "enable"));
    test_start(t);
    q.parent = t->dir;
    h.r = t->r;
    group_init(&g, t->env);
    assert_int_equal(0, group_run(&g, "held", ask, &h));
    fiber_sleep_ms(NULL, 1000);
    assert_int_equal(1, leaf_count(t->leaf, OP_UNLINK)); /* it has happened */
    assert_false(h.is_answered);
    assert_int_equal(0, change_option(t, "features/barrier", "barrier", "disable"));
    group_wait_all(&g);
    assert_true(h.is_answered);
    assert_int_equal(0, h.result);
}

SIM_TEST(barrier_gives_up_after_its_timeout)
{
    assert_int_equal(0, change_option(t, "features/barrier", "barrier", "enable"));
    test_start(t);
    uint64_t began_ns = env_now_ns(t->env);
    assert_int_equal(0, test_op(t, OP_UNLINK, .parent = t->dir, .name = "f"));
    assert_in_range((env_now_ns(t->env) - began_ns) / 1000000000, 119, 121);
    assert_logged(t, "[barrier-timeout]");
    assert_int_equal(0, test_op(t, OP_UNLINK, .parent = t->dir, .name = "g"));
    assert_in_range((env_now_ns(t->env) - began_ns) / 1000000000, 119, 121);
}

SIM_TEST(barrier_does_not_hold_what_promises_nothing_durable)
{
    SCOPED(buf_unref) struct buf *data = buf_copy("x", 1);

    assert_int_equal(0, change_option(t, "features/barrier", "barrier", "enable"));
    test_start(t);
    uint64_t began_ns = env_now_ns(t->env);
    assert_int_equal(1, test_op(t, OP_WRITE, .inode = t->file, .fd = t->fd, .data = data));
    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->file));
    assert_int_equal(0, test_op(t, OP_MKDIR, .parent = t->dir, .name = "d", .inode = t->new_inode));
    assert_true(env_now_ns(t->env) - began_ns < 1000000000);
}

SIM_TEST(barrier_holds_synchronous_writes)
{
    SCOPED(buf_unref) struct buf *data = buf_copy("x", 1);

    assert_int_equal(0, change_option(t, "features/barrier", "barrier", "enable"));
    test_start(t);
    t->fd->flags |= O_SYNC;
    uint64_t began_ns = env_now_ns(t->env);
    assert_int_equal(1, test_op(t, OP_WRITE, .inode = t->file, .fd = t->fd, .data = data));
    assert_true((env_now_ns(t->env) - began_ns) / 1000000000 >= 119);
}

/* ---- quiesce ---- */

static void child_event(struct test *t, enum event_kind kind)
{
    notify_parents(t->leaf->me, &(struct event) { .kind = kind });
}

SIM_TEST(quiesce_waits_for_the_child_to_come_back)
{
    struct group g;
    struct request q = { .op = OP_STAT };
    struct held h = { .t = t, .q = &q };

    begin(t, &quiesce_class, "timeout", "45");
    q.inode = t->file;
    h.r = t->r;
    child_event(t, EVENT_CHILD_DOWN);
    group_init(&g, t->env);
    assert_int_equal(0, group_run(&g, "held", ask, &h));
    fiber_sleep_ms(NULL, 5000);
    assert_int_equal(0, t->leaf->call_count);
    child_event(t, EVENT_CHILD_UP);
    group_wait_all(&g);
    assert_int_equal(0, h.result);
    assert_int_equal(1, t->leaf->call_count);
}

SIM_TEST(quiesce_gives_up_after_its_timeout)
{
    begin(t, &quiesce_class, "timeout", "45");
    child_event(t, EVENT_CHILD_DOWN);
    uint64_t began_ns = env_now_ns(t->env);
    assert_int_equal(-ENOTCONN, test_op(t, OP_STAT, .inode = t->file));
    assert_in_range((env_now_ns(t->env) - began_ns) / 1000000000, 44, 46);
}

SIM_TEST(quiesce_keeps_to_the_deadline_of_the_call)
{
    begin(t, &quiesce_class, "timeout", "45");
    child_event(t, EVENT_CHILD_DOWN);
    t->call.scope.deadline_ns = env_deadline_ms(t->env, 3000);
    uint64_t began_ns = env_now_ns(t->env);
    assert_int_equal(-ETIMEDOUT, test_op(t, OP_STAT, .inode = t->file));
    assert_in_range((env_now_ns(t->env) - began_ns) / 1000000000, 2, 4);
}

static int down_once(struct leaf *leaf, struct call *call, const struct request *q, struct reply *r)
{
    if (leaf->call_count > 1)
        return 0;
    notify_parents(leaf->me, &(struct event) { .kind = EVENT_CHILD_DOWN });
    return -ENOTCONN;
}

static void come_up(void *arg)
{
    struct leaf *leaf = arg;

    notify_parents(leaf->me, &(struct event) { .kind = EVENT_CHILD_UP });
}

SIM_TEST(quiesce_repeats_a_read_that_the_outage_cut_off)
{
    struct timer timer = { 0 };

    begin(t, &quiesce_class, "timeout", "45");
    t->leaf->answers[OP_STAT] = down_once;
    timer_start(t->env, &timer, env_deadline_ms(t->env, 2000), come_up, t->leaf);
    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->file));
    assert_int_equal(2, t->leaf->call_count);
}

SIM_TEST(quiesce_does_not_repeat_a_change_that_may_have_happened)
{
    begin(t, &quiesce_class, "timeout", "45");
    t->leaf->answers[OP_UNLINK] = down_once;
    assert_int_equal(-ENOTCONN, test_op(t, OP_UNLINK, .parent = t->dir, .name = "f"));
    assert_int_equal(1, t->leaf->call_count);
}

/* ---- arbiter ---- */

FIBER_TEST(arbiter_keeps_data_from_the_child)
{
    SCOPED(buf_unref) struct buf *data = buf_copy("hello", 5);

    begin(t, &arbiter_class, NULL, NULL);
    assert_int_equal(0, test_op(t, OP_LOOKUP, .inode = t->file));
    leaf_clear(t->leaf);
    assert_int_equal(5, test_op(t, OP_WRITE, .inode = t->file, .fd = t->fd, .data = data, .offset = 100));
    assert_int_equal(S_IFREG | 0644, t->r->pre.mode);
    assert_int_equal(S_IFREG | 0644, t->r->post.mode);
    assert_int_equal(0, test_op(t, OP_TRUNCATE, .inode = t->file, .offset = 9));
    assert_int_equal(0, test_op(t, OP_FALLOCATE, .inode = t->file, .size = 9));
    assert_int_equal(0, t->leaf->call_count);
}

FIBER_TEST(arbiter_asks_the_child_when_it_has_never_seen_the_inode)
{
    SCOPED(buf_unref) struct buf *data = buf_copy("hello", 5);

    begin(t, &arbiter_class, NULL, NULL);
    assert_int_equal(5, test_op(t, OP_WRITE, .inode = t->file, .fd = t->fd, .data = data));
    assert_int_equal(1, leaf_count(t->leaf, OP_STAT));
    assert_int_equal(0, leaf_count(t->leaf, OP_WRITE));
    assert_int_equal(S_IFREG | 0644, t->r->post.mode);
}

FIBER_TEST(arbiter_answers_what_a_replicated_write_asks)
{
    SCOPED(buf_unref) struct buf *data = buf_copy("h", 1);
    SCOPED(dict_unref) struct dict *xdata = dict_new();
    uint64_t v = 99;

    begin(t, &arbiter_class, NULL, NULL);
    dict_set_uint(xdata, "glusterfs.open-fd-count", 4);
    dict_set_uint(xdata, "glusterfs.write-is-append", 4);
    assert_int_equal(1, test_op(t, OP_WRITE, .inode = t->file, .fd = t->fd, .data = data, .xdata = xdata));
    assert_int_equal(0, dict_get_uint(t->r->xdata, "glusterfs.open-fd-count", &v));
    assert_int_equal(1, v);
    assert_int_equal(0, dict_get_uint(t->r->xdata, "glusterfs.write-is-append", &v));
    assert_int_equal(1, v);
}

FIBER_TEST(arbiter_has_no_data_to_read)
{
    begin(t, &arbiter_class, NULL, NULL);
    assert_int_equal(-ENOSYS, test_op(t, OP_READ, .inode = t->file, .fd = t->fd, .size = 1));
    assert_int_equal(-ENOSYS, test_op(t, OP_SEEK, .inode = t->file, .fd = t->fd));
}

FIBER_TEST(arbiter_reports_a_child_that_cannot_say)
{
    SCOPED(buf_unref) struct buf *data = buf_copy("h", 1);

    begin(t, &arbiter_class, NULL, NULL);
    leaf_fail(t->leaf, OP_STAT, ESTALE, 0);
    assert_int_equal(-ESTALE, test_op(t, OP_WRITE, .inode = t->file, .fd = t->fd, .data = data));
}

FIBER_TEST(arbiter_stores_everything_else)
{
    SCOPED(dict_unref) struct dict *xattrs = dict_new();

    begin(t, &arbiter_class, NULL, NULL);
    assert_int_equal(0, test_op(t, OP_CREATE, .parent = t->dir, .name = "f", .inode = t->new_inode, .fd = t->fd));
    assert_int_equal(0, test_op(t, OP_XATTROP, .inode = t->file, .xattrs = xattrs));
    assert_int_equal(2, t->leaf->call_count);
}

/* ---- selinux ---- */

#define USER_NAME  "security.selinux"
#define BRICK_NAME "trusted.glusterfs.selinux"

static int label_answer(struct leaf *leaf, struct call *call, const struct request *q, struct reply *r)
{
    if (q->op == OP_LOOKUP)
        return dict_put_bin(&r->xdata, BRICK_NAME, "label", 5);
    return dict_put_bin(&r->xattrs, BRICK_NAME, "label", 5) < 0 ? -ENOMEM : 5;
}

FIBER_TEST(selinux_renames_what_goes_down)
{
    SCOPED(dict_unref) struct dict *xattrs = dict_new();

    begin(t, &selinux_class, "selinux", "on");
    dict_set_bin(xattrs, "user.a", "1", 1);
    dict_set_bin(xattrs, USER_NAME, "label", 5);
    assert_int_equal(0, test_op(t, OP_SETXATTR, .inode = t->file, .xattrs = xattrs));
    assert_true(dict_has(leaf_last(t->leaf)->xattrs, BRICK_NAME));
    assert_false(dict_has(leaf_last(t->leaf)->xattrs, USER_NAME));
    assert_true(dict_has(leaf_last(t->leaf)->xattrs, "user.a"));
    assert_true(dict_has(xattrs, USER_NAME)); /* the caller's dict is as it was */
    assert_int_equal(0, test_op(t, OP_REMOVEXATTR, .inode = t->file, .text = USER_NAME));
    assert_string_equal(BRICK_NAME, leaf_last(t->leaf)->text);
}

FIBER_TEST(selinux_renames_what_comes_up)
{
    SCOPED(dict_unref) struct dict *xdata = dict_new();

    begin(t, &selinux_class, "selinux", "on");
    t->leaf->answers[OP_GETXATTR] = t->leaf->answers[OP_LOOKUP] = label_answer;
    assert_int_equal(5, test_op(t, OP_GETXATTR, .inode = t->file, .text = USER_NAME));
    assert_string_equal(BRICK_NAME, leaf_last(t->leaf)->text);
    assert_true(dict_has(t->r->xattrs, USER_NAME));
    assert_false(dict_has(t->r->xattrs, BRICK_NAME));
    dict_set_int(xdata, USER_NAME, 0);
    assert_int_equal(0, test_op(t, OP_LOOKUP, .inode = t->file, .xdata = xdata));
    assert_true(dict_has(leaf_last(t->leaf)->xdata, BRICK_NAME));
    assert_true(dict_has(t->r->xdata, USER_NAME));
}

FIBER_TEST(selinux_off_renames_nothing)
{
    begin(t, &selinux_class, "selinux", "off");
    assert_int_equal(0, test_op(t, OP_REMOVEXATTR, .inode = t->file, .text = USER_NAME));
    assert_string_equal(USER_NAME, leaf_last(t->leaf)->text);
}

/* ---- pass-through ---- */

FIBER_TEST(features_that_are_off_pass_everything_through)
{
    test_push(t, &leaf_class, NULL);
    test_push(t, &trash_class, "trash", "off", NULL);
    test_push(t, &changelog_class, "changelog", "off", "encoding", "binary", NULL);
    test_push(t, &bitrot_stub_class, "bitrot", "disable", "export", "/b", NULL);
    test_push(t, &worm_class, "worm", "off", NULL);
    test_push(t, &leases_class, "leases", "off", NULL);
    test_push(t, &upcall_class, "cache-invalidation", "off", NULL);
    test_push(t, &marker_class, "xtime", "off", "quota", "off", NULL);
    test_push(t, &quota_class, "server-quota", "off", "deem-statfs", "off", NULL);
    test_push(t, &namespace_class, "tag-namespaces", "off", NULL);
    test_push(t, &sdfs_class, "pass-through", "true", NULL);
    test_push(t, &distribute_class, "lookup-unhashed", "auto", "min-free-disk", "5%", NULL);
    test_push(t, &md_cache_class, "md-cache-timeout", "600", NULL);
    test_start(t);
    assert_int_equal(0, test_op(t, OP_SETATTR, .inode = t->file, .attr = &t->leaf->stat, .valid = ATTR_MODE));
    assert_int_equal(1, t->leaf->call_count);
}

FIBER_TEST(switching_a_feature_on_in_a_running_graph_is_refused)
{
    assert_int_equal(0, change_option(t, "features/quota", "server-quota", "off"));
    assert_int_equal(-ENOTSUP, change_option(t, "features/quota", "server-quota", "on"));
    assert_string_equal(
        "section \"top\" (features/quota): option \"server-quota on\" is refused: quotas are not there yet; "
        "switch features.quota off",
        t->err.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_only_refuses_changes_of_users),
        cmocka_unit_test(read_only_lets_reading_pass),
        cmocka_unit_test(read_only_lets_internal_clients_pass),
        cmocka_unit_test(read_only_off_lets_everything_pass),
        cmocka_unit_test(read_only_looks_into_compounds),
        cmocka_unit_test(utime_says_which_times_a_change_of_names_sets),
        cmocka_unit_test(utime_says_which_times_a_change_of_content_sets),
        cmocka_unit_test(utime_leaves_given_times_to_the_attributes_of_setattr),
        cmocka_unit_test(utime_stamps_reads_only_when_access_times_are_wanted),
        cmocka_unit_test(utime_leaves_reads_alone_by_default),
        cmocka_unit_test(utime_carries_the_clock_and_puts_the_call_back),
        cmocka_unit_test(barrier_holds_the_answer_until_it_is_lifted),
        cmocka_unit_test(barrier_gives_up_after_its_timeout),
        cmocka_unit_test(barrier_does_not_hold_what_promises_nothing_durable),
        cmocka_unit_test(barrier_holds_synchronous_writes),
        cmocka_unit_test(quiesce_waits_for_the_child_to_come_back),
        cmocka_unit_test(quiesce_gives_up_after_its_timeout),
        cmocka_unit_test(quiesce_keeps_to_the_deadline_of_the_call),
        cmocka_unit_test(quiesce_repeats_a_read_that_the_outage_cut_off),
        cmocka_unit_test(quiesce_does_not_repeat_a_change_that_may_have_happened),
        cmocka_unit_test(arbiter_keeps_data_from_the_child),
        cmocka_unit_test(arbiter_asks_the_child_when_it_has_never_seen_the_inode),
        cmocka_unit_test(arbiter_answers_what_a_replicated_write_asks),
        cmocka_unit_test(arbiter_has_no_data_to_read),
        cmocka_unit_test(arbiter_reports_a_child_that_cannot_say),
        cmocka_unit_test(arbiter_stores_everything_else),
        cmocka_unit_test(selinux_renames_what_goes_down),
        cmocka_unit_test(selinux_renames_what_comes_up),
        cmocka_unit_test(selinux_off_renames_nothing),
        cmocka_unit_test(features_that_are_off_pass_everything_through),
        cmocka_unit_test(switching_a_feature_on_in_a_running_graph_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
