/* Names of operations, dispatch, replies, compounds, calls. */
#include "unit/graph/test_graph.h"
#include <stdio.h>

/* A middle translator that marks what goes through it. */
struct marker {
    uint32_t stats, any;
};

static FIBER int marker_stat(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    ((struct marker *)me->state)->stats++;
    return default_op(me, call, q, r);
}

static const struct translator_class marker_class = {
    .type = "test/marker",
    .state_size = sizeof(struct marker),
    .ops = { [OP_STAT] = marker_stat },
    .children_min = 1,
};

static FIBER int catcher_any(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    ((struct marker *)me->state)->any++;
    return default_op(me, call, q, r);
}

static const struct translator_class catcher_class = {
    .type = "test/catcher",
    .state_size = sizeof(struct marker),
    .any = catcher_any,
    .children_min = 1,
};

static const struct translator_class bare_leaf_class = { .type = "test/bare", .is_leaf = true };

static void every_operation_has_a_name_that_parses(void **state)
{
    for (unsigned op = 0; op < OP_COUNT; op++)
        assert_int_equal(op, op_parse(op_name(op)));
    assert_string_equal("copy_range", op_name(OP_COPY_RANGE));
}

static void old_names_and_other_case_parse(void **state)
{
    assert_int_equal(OP_WRITE, op_parse("WRITEV"));
    assert_int_equal(OP_TRUNCATE, op_parse("ftruncate"));
    assert_int_equal(OP_INODELK, op_parse("finodelk"));
    assert_int_equal(OP_READ, op_parse("Read"));
    assert_int_equal(-EINVAL, op_parse("reed"));
}

static void what_an_operation_needs_is_known(void **state)
{
    assert_int_equal(OP_INODE | OP_PARENT | OP_FD | OP_CHANGES, op_needs(OP_CREATE));
    assert_int_equal(0, op_needs(OP_LOOKUP));
}

static void a_set_of_operations_is_read_from_a_list(void **state)
{
    uint64_t set;

    assert_int_equal(0, op_set_parse("read, writev\tlookup", &set, NULL));
    assert_true(op_set_has(set, OP_READ));
    assert_true(op_set_has(set, OP_WRITE));
    assert_true(op_set_has(set, OP_LOOKUP));
    assert_false(op_set_has(set, OP_STAT));
}

static void an_empty_list_means_all_operations(void **state)
{
    uint64_t set;

    assert_int_equal(0, op_set_parse("", &set, NULL));
    for (unsigned op = 0; op < OP_COUNT; op++)
        assert_true(op_set_has(set, op));
}

static void lk_owners_are_least_significant_byte_first(void **state)
{
    struct lk_owner o;

    lk_owner_from_u64(&o, 0x0102030405060708u);
    assert_int_equal(8, o.size);
    assert_int_equal(8, o.bytes[0]);
    assert_int_equal(1, o.bytes[7]);
}

FIBER_TEST(a_missing_operation_passes_to_the_first_child)
{
    struct translator *middle;

    test_push(t, &leaf_class, NULL);
    middle = test_push(t, &marker_class, NULL);
    test_start(t);
    assert_int_equal(0, test_op(t, OP_TRUNCATE, .inode = t->file, .offset = 7));
    assert_int_equal(1, t->leaf->call_count);
    assert_int_equal(7, leaf_last(t->leaf)->offset);
    assert_int_equal(0, ((struct marker *)middle->state)->stats);
}

FIBER_TEST(an_operation_of_its_own_is_asked)
{
    struct translator *middle;

    test_push(t, &leaf_class, NULL);
    middle = test_push(t, &marker_class, NULL);
    test_start(t);
    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->file));
    assert_int_equal(1, ((struct marker *)middle->state)->stats);
    assert_int_equal(S_IFREG | 0644, t->r->stat.mode);
}

FIBER_TEST(any_catches_what_has_no_entry)
{
    struct translator *middle;

    test_push(t, &leaf_class, NULL);
    middle = test_push(t, &catcher_class, NULL);
    test_start(t);
    test_op(t, OP_STAT, .inode = t->file);
    test_op(t, OP_READ, .inode = t->file, .size = 1);
    assert_int_equal(2, ((struct marker *)middle->state)->any);
}

FIBER_TEST(a_leaf_without_the_operation_says_so)
{
    test_push(t, &bare_leaf_class, NULL);
    test_start(t);
    assert_int_equal(-EOPNOTSUPP, test_op(t, OP_STAT, .inode = t->file));
}

FIBER_TEST(calls_and_failures_are_counted_at_every_level)
{
    test_push(t, &leaf_class, NULL);
    struct translator *middle = test_push(t, &marker_class, NULL);
    test_start(t);
    leaf_fail(t->leaf, OP_STAT, EIO, 1);
    assert_int_equal(-EIO, test_op(t, OP_STAT, .inode = t->file));
    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->file));
    assert_int_equal(2, middle->stats[OP_STAT].calls);
    assert_int_equal(1, middle->stats[OP_STAT].failures);
    assert_int_equal(2, t->leaf->me->stats[OP_STAT].calls);
    assert_int_equal(1, t->leaf->me->stats[OP_STAT].failures);
    assert_int_equal(0, middle->ops_in_flight);
}

FIBER_TEST(the_result_is_also_in_the_reply)
{
    test_push(t, &leaf_class, NULL);
    test_start(t);
    leaf_fail(t->leaf, OP_STAT, ENOENT, 1);
    test_op(t, OP_STAT, .inode = t->file);
    assert_int_equal(-ENOENT, t->r->ret);
}

FIBER_TEST(a_caller_that_wants_only_the_result_gives_no_reply)
{
    struct request q = { .op = OP_STAT };

    test_push(t, &leaf_class, NULL);
    struct translator *middle = test_push(t, &marker_class, NULL);
    test_start(t);
    q.inode = t->file;
    assert_int_equal(0, child_call(middle, 0, &t->call, &q, NULL));
}

FIBER_TEST(the_default_compound_runs_steps_in_order)
{
    struct request steps[2] = { { .op = OP_STAT }, { .op = OP_TRUNCATE, .offset = 9 } };

    test_push(t, &leaf_class, NULL);
    test_push(t, &marker_class, NULL);
    test_start(t);
    steps[0].inode = steps[1].inode = t->file;
    assert_int_equal(0, test_op(t, OP_COMPOUND, .steps = steps, .step_count = 2));
    assert_int_equal(2, t->r->step_count);
    assert_int_equal(2, t->leaf->call_count);
    assert_int_equal(OP_STAT, t->leaf->calls[0].op);
    assert_int_equal(OP_TRUNCATE, t->leaf->calls[1].op);
    assert_int_equal(S_IFREG | 0644, t->r->steps[0].stat.mode);
}

FIBER_TEST(the_default_compound_stops_at_the_first_failure)
{
    struct request steps[3] = { { .op = OP_STAT }, { .op = OP_TRUNCATE }, { .op = OP_STAT } };

    test_push(t, &leaf_class, NULL);
    test_push(t, &marker_class, NULL);
    test_start(t);
    leaf_fail(t->leaf, OP_TRUNCATE, ENOSPC, 0);
    for (unsigned i = 0; i < 3; i++)
        steps[i].inode = t->file;
    assert_int_equal(-ENOSPC, test_op(t, OP_COMPOUND, .steps = steps, .step_count = 3));
    assert_int_equal(2, t->r->step_count);
    assert_int_equal(-ENOSPC, t->r->steps[1].ret);
    assert_int_equal(2, t->leaf->call_count);
}

FIBER_TEST(a_compound_passes_in_one_piece_through_who_takes_no_part)
{
    struct request steps[2] = { { .op = OP_TRUNCATE }, { .op = OP_FSYNC } };

    test_push(t, &leaf_class, NULL);
    test_push(t, &marker_class, NULL);
    test_start(t);
    steps[0].inode = steps[1].inode = t->file;
    assert_int_equal(0, test_op(t, OP_COMPOUND, .steps = steps, .step_count = 2));
    assert_int_equal(1, t->leaf->call_count);
    assert_int_equal(OP_COMPOUND, leaf_last(t->leaf)->op);
    assert_int_equal(2, leaf_last(t->leaf)->step_count);
}

FIBER_TEST(an_empty_compound_succeeds)
{
    test_push(t, &bare_leaf_class, NULL);
    test_start(t);
    assert_int_equal(0, test_op(t, OP_COMPOUND));
}

FIBER_TEST(the_short_forms_fill_the_request)
{
    struct lock_range range = { .type = LOCK_WRITE, .start = 5, .length = 6 };

    test_push(t, &leaf_class, NULL);
    struct translator *me = test_push(t, &marker_class, NULL);
    test_start(t);
    assert_int_equal(0, child_lookup(me, 0, &t->call, NULL, t->dir, "n", NULL, t->r));
    assert_string_equal("n", leaf_last(t->leaf)->name);
    assert_int_equal(0, child_stat(me, 0, &t->call, t->file, t->fd, NULL, t->r));
    assert_true(leaf_last(t->leaf)->has_fd);
    assert_int_equal(0, child_read(me, 0, &t->call, t->file, NULL, 10, 20, t->r));
    assert_int_equal(10, leaf_last(t->leaf)->size);
    assert_int_equal(20, leaf_last(t->leaf)->offset);
    SCOPED(buf_unref) struct buf *data = buf_copy("abc", 3);
    assert_int_equal(3, child_write(me, 0, &t->call, t->file, NULL, data, 4, 1, NULL, t->r));
    assert_memory_equal("abc", leaf_last(t->leaf)->data, 3);
    assert_int_equal(0, child_getxattr(me, 0, &t->call, t->file, NULL, "user.a", t->r));
    assert_string_equal("user.a", leaf_last(t->leaf)->text);
    assert_int_equal(0, child_inodelk(me, 0, &t->call, t->file, NULL, "d", LOCK_WAIT, &range, t->r));
    assert_int_equal(5, leaf_last(t->leaf)->lock.start);
    assert_int_equal(LOCK_WAIT, leaf_last(t->leaf)->command);
    assert_int_equal(0, child_entrylk(me, 0, &t->call, t->dir, "d", "x", LOCK_TRY, LOCK_READ, t->r));
    assert_string_equal("x", leaf_last(t->leaf)->name);
    assert_int_equal(LOCK_READ, leaf_last(t->leaf)->lock.type);
}

FIBER_TEST(a_call_of_the_process_is_root_without_a_deadline)
{
    test_push(t, &leaf_class, NULL);
    test_start(t);
    assert_int_equal(0, t->call.uid);
    assert_int_equal(env_pid(t->env), t->call.pid);
    assert_int_equal(0, t->call.scope.deadline_ns);
    assert_int_equal(0, scope_check(&t->call.scope, t->env));
}

FIBER_TEST(a_copied_call_has_a_cancel_switch_of_its_own)
{
    uint32_t groups[2] = { 5, 6 };
    struct call copy;

    test_push(t, &leaf_class, NULL);
    test_start(t);
    t->call.groups = groups;
    t->call.group_count = 2;
    call_copy(&copy, &t->call);
    assert_int_equal(0, call_own_groups(&copy));
    groups[0] = 99;
    scope_cancel(&t->call.scope);
    assert_int_equal(0, scope_check(&copy.scope, t->env));
    assert_int_equal(5, copy.groups[0]);
    assert_int_equal(t->call.trace_id, copy.trace_id);
    call_done(&copy);
    t->call.groups = NULL;
    t->call.group_count = 0;
}

static void waits_after_each_other_add_up_and_overlapping_ones_do_not(void **state)
{
    struct call call = { 0 };

    uint32_t a = call_round_trip_begin(&call), b = call_round_trip_begin(&call);
    call_round_trip_end(&call, a);
    call_round_trip_end(&call, b);
    assert_int_equal(1, call.round_trips);
    call_round_trip_end(&call, call_round_trip_begin(&call));
    assert_int_equal(2, call.round_trips);
}

static void a_moved_reply_leaves_nothing_behind(void **state)
{
    struct reply *from = reply_new(), *to = reply_new();

    from->data = buf_copy("x", 1);
    reply_move(to, from);
    assert_null(from->data);
    assert_int_equal(1, to->data->size);
    reply_free(from);
    reply_free(to);
}

static void reply_done_releases_everything(void **state)
{
    struct mem_stats before, after;

    mem_get_stats(&before);
    struct reply *r = reply_new();
    r->xdata = dict_new();
    r->xattrs = dict_new();
    r->data = buf_copy("x", 1);
    r->text = mem_strdup("t");
    r->entries = dir_entries_new();
    assert_int_equal(0, dir_entries_add(r->entries, "n", 1, 1, 1, 0, NULL));
    r->statfs = NEW(struct fs_stat);
    r->lock = NEW(struct lock_range);
    r->locks = NEW(struct active_lock);
    r->steps = mem_array(1, sizeof(struct reply));
    r->step_count = 1;
    r->steps[0].text = mem_strdup("inner");
    reply_free(r);
    mem_get_stats(&after);
    assert_int_equal(before.live_blocks, after.live_blocks);
}

static void entries_keep_their_names_while_the_list_grows(void **state)
{
    struct dir_entries *e = dir_entries_new();
    char name[16];

    for (int i = 0; i < 5000; i++) {
        int n = snprintf(name, sizeof(name), "name%d", i);
        assert_int_equal(0, dir_entries_add(e, name, (size_t)n, (uint64_t)i, (uint64_t)i + 1, 8, NULL));
    }
    assert_int_equal(5000, e->count);
    assert_string_equal("name0", e->list[0].name);
    assert_string_equal("name4999", e->list[4999].name);
    assert_int_equal(8, e->list[4999].name_len);
    dir_entries_drop(e, 0);
    assert_int_equal(4999, e->count);
    assert_string_equal("name1", e->list[0].name);
    dir_entries_free(e);
}

static struct event last_event;
static unsigned event_count;

static void remember_event(struct graph *graph, struct translator *from, const struct event *event)
{
    last_event = *event;
    event_count++;
}

FIBER_TEST(events_go_up_to_the_process)
{
    event_count = 0;
    test_push(t, &leaf_class, NULL);
    struct translator *top = test_push(t, &marker_class, NULL);
    graph_set_event_handler(t->graph, remember_event);
    test_start(t);
    assert_int_equal(1, event_count); /* the leaf has no start: graph_start says it is up */
    assert_int_equal(EVENT_CHILD_UP, last_event.kind);
    assert_true(top->is_up);
    notify_parents(t->leaf->me, &(struct event) { .kind = EVENT_CHILD_DOWN });
    assert_int_equal(2, event_count);
    assert_false(top->is_up);
    notify_parents(t->leaf->me, &(struct event) { .kind = EVENT_AUTH_FAILED, .text = "no" });
    assert_string_equal("no", last_event.text);
    assert_false(top->is_up);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation_has_a_name_that_parses),
        cmocka_unit_test(old_names_and_other_case_parse),
        cmocka_unit_test(what_an_operation_needs_is_known),
        cmocka_unit_test(a_set_of_operations_is_read_from_a_list),
        cmocka_unit_test(an_empty_list_means_all_operations),
        cmocka_unit_test(lk_owners_are_least_significant_byte_first),
        cmocka_unit_test(a_missing_operation_passes_to_the_first_child),
        cmocka_unit_test(an_operation_of_its_own_is_asked),
        cmocka_unit_test(any_catches_what_has_no_entry),
        cmocka_unit_test(a_leaf_without_the_operation_says_so),
        cmocka_unit_test(calls_and_failures_are_counted_at_every_level),
        cmocka_unit_test(the_result_is_also_in_the_reply),
        cmocka_unit_test(a_caller_that_wants_only_the_result_gives_no_reply),
        cmocka_unit_test(the_default_compound_runs_steps_in_order),
        cmocka_unit_test(the_default_compound_stops_at_the_first_failure),
        cmocka_unit_test(a_compound_passes_in_one_piece_through_who_takes_no_part),
        cmocka_unit_test(an_empty_compound_succeeds),
        cmocka_unit_test(the_short_forms_fill_the_request),
        cmocka_unit_test(a_call_of_the_process_is_root_without_a_deadline),
        cmocka_unit_test(a_copied_call_has_a_cancel_switch_of_its_own),
        cmocka_unit_test(waits_after_each_other_add_up_and_overlapping_ones_do_not),
        cmocka_unit_test(a_moved_reply_leaves_nothing_behind),
        cmocka_unit_test(reply_done_releases_everything),
        cmocka_unit_test(entries_keep_their_names_while_the_list_grows),
        cmocka_unit_test(events_go_up_to_the_process),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
