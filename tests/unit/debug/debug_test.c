/* trace, io-stats, error-gen, delay-gen */
#include "debug/io-stats/profile_internal.h"
#include "unit/graph/test_graph.h"
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

extern const struct translator_class trace_class, io_stats_class, error_gen_class, delay_gen_class;

#define DUMP_XATTR "trusted.io-stats-dump"

/* ---- error-gen ---- */

static FIBER int failures_of(struct test *t, int calls, int err)
{
    int failures = 0;

    for (int i = 0; i < calls; i++) {
        int r = test_op(t, OP_STAT, .inode = t->file);
        assert_true(r == 0 || r == -err);
        failures += r < 0;
    }
    return failures;
}

FIBER_TEST(error_gen_fails_every_nth_operation)
{
    test_push(t, &leaf_class, NULL);
    test_push(t, &error_gen_class, "failure", "25", "error-no", "ENOSPC", NULL);
    test_start(t);
    assert_int_equal(0, failures_of(t, 3, ENOSPC));
    assert_int_equal(1, failures_of(t, 1, ENOSPC));
    assert_int_equal(25, failures_of(t, 100, ENOSPC));
}

FIBER_TEST(a_failed_operation_does_not_reach_the_child)
{
    test_push(t, &leaf_class, NULL);
    test_push(t, &error_gen_class, "failure", "100", "error-no", "ENOTCONN", NULL);
    test_start(t);
    assert_int_equal(10, failures_of(t, 10, ENOTCONN));
    assert_int_equal(0, t->leaf->call_count);
}

FIBER_TEST(error_gen_with_no_failures_passes_everything)
{
    test_push(t, &leaf_class, NULL);
    test_push(t, &error_gen_class, "failure", "0", NULL);
    test_start(t);
    assert_int_equal(0, failures_of(t, 100, EIO));
}

FIBER_TEST(error_gen_hits_only_the_operations_it_is_told)
{
    test_push(t, &leaf_class, NULL);
    test_push(t, &error_gen_class, "failure", "100", "enable", "writev,unlink", NULL);
    test_start(t);
    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->file));
    assert_int_equal(-EIO, test_op(t, OP_UNLINK, .parent = t->dir, .name = "f"));
}

FIBER_TEST(without_a_number_the_error_fits_the_operation)
{
    SCOPED(buf_unref) struct buf *data = buf_copy("abcd", 4);

    test_push(t, &leaf_class, NULL);
    test_push(t, &error_gen_class, "failure", "100", NULL);
    test_start(t);
    assert_int_equal(-ENOSPC, test_op(t, OP_WRITE, .inode = t->file, .data = data));
    assert_int_equal(-EIO, test_op(t, OP_READ, .inode = t->file, .size = 4));
}

FIBER_TEST(a_short_write_writes_half)
{
    SCOPED(buf_unref) struct buf *data = buf_copy("abcdefgh", 8);

    test_push(t, &leaf_class, NULL);
    test_push(t, &error_gen_class, "failure", "100", "error-no", "GF_ERROR_SHORT_WRITE", NULL);
    test_start(t);
    assert_int_equal(4, test_op(t, OP_WRITE, .inode = t->file, .data = data));
    assert_int_equal(4, leaf_last(t->leaf)->data_size);
    assert_memory_equal("abcd", leaf_last(t->leaf)->data, 4);
    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->file));
}

FIBER_TEST(failures_by_chance_come_near_the_percentage)
{
    test_push(t, &leaf_class, NULL);
    test_push(t, &error_gen_class, "failure", "50%", "random-failure", "on", "error-no", "EIO", NULL);
    test_start(t);
    assert_in_range(failures_of(t, 1000, EIO), 350, 650);
}

FIBER_TEST(error_gen_changes_while_the_graph_runs)
{
    SCOPED(volfile_free) struct volfile *file = NULL;
    const char *text = "volume l\n type test/leaf\n option note x\nend-volume\n"
                       "volume e\n type debug/error-gen\n option failure 100\n option error-no EDQUOT\n"
                       " option enable stat\n subvolumes l\nend-volume\n";

    test_build(t, "volume l\n type test/leaf\n option note x\nend-volume\n"
                  "volume e\n type debug/error-gen\n option failure 0\n subvolumes l\nend-volume\n");
    test_start(t);
    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->file));
    assert_int_equal(0, volfile_parse("y.vol", text, strlen(text), &file, NULL));
    assert_int_equal(0, graph_reconfigure(t->graph, file, NULL, &t->err));
    assert_int_equal(-EDQUOT, test_op(t, OP_STAT, .inode = t->file));
    assert_int_equal(0, test_op(t, OP_LOOKUP, .inode = t->file));
}

/* ---- delay-gen ---- */

SIM_TEST(delay_gen_waits_as_long_as_it_is_told)
{
    test_push(t, &leaf_class, NULL);
    test_push(t, &delay_gen_class, "delay-percentage", "100", "delay-duration", "2500", NULL);
    test_start(t);
    uint64_t began_ns = env_now_ns(t->env);
    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->file));
    assert_in_range(env_now_ns(t->env) - began_ns, 2500000, 2600000);
}

SIM_TEST(delay_gen_delays_only_the_operations_it_is_told)
{
    test_push(t, &leaf_class, NULL);
    test_push(t, &delay_gen_class, "delay-percentage", "100", "delay-duration", "1000000", "enable", "lookup", NULL);
    test_start(t);
    uint64_t began_ns = env_now_ns(t->env);
    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->file));
    assert_true(env_now_ns(t->env) - began_ns < 1000000);
    assert_int_equal(0, test_op(t, OP_LOOKUP, .inode = t->file));
    assert_true(env_now_ns(t->env) - began_ns >= 1000000000);
}

SIM_TEST(a_call_whose_time_is_over_while_delayed_is_not_sent)
{
    test_push(t, &leaf_class, NULL);
    test_push(t, &delay_gen_class, "delay-percentage", "100", "delay-duration", "1000000", NULL);
    test_start(t);
    t->call.scope.deadline_ns = env_deadline_ms(t->env, 10);
    assert_int_equal(-ETIMEDOUT, test_op(t, OP_STAT, .inode = t->file));
    assert_int_equal(0, t->leaf->call_count);
}

SIM_TEST(delay_gen_delays_about_the_given_share)
{
    unsigned delayed = 0;

    test_push(t, &leaf_class, NULL);
    test_push(t, &delay_gen_class, "delay-percentage", "20%", "delay-duration", "1000", NULL);
    test_start(t);
    for (int i = 0; i < 1000; i++) {
        uint64_t began_ns = env_now_ns(t->env);
        assert_int_equal(0, test_op(t, OP_STAT, .inode = t->file));
        delayed += env_now_ns(t->env) - began_ns >= 1000000;
    }
    assert_in_range(delayed, 120, 280);
}

/* ---- trace ---- */

FIBER_TEST(trace_writes_a_line_per_operation)
{
    test_push(t, &leaf_class, NULL);
    test_push(t, &trace_class, "log-file", "on", NULL);
    test_start(t);
    leaf_fail(t->leaf, OP_UNLINK, ENOENT, 1);
    test_op(t, OP_UNLINK, .parent = t->dir, .name = "gone");
    assert_logged(t, " I [unlink] 0-t1: gfid=00000000-0000-0000-0000-000000000002 name=\"gone\"");
    assert_logged(t, "ret=-2 err=ENOENT");
}

FIBER_TEST(trace_is_silent_by_default)
{
    test_push(t, &leaf_class, NULL);
    test_push(t, &trace_class, NULL);
    test_start(t);
    test_op(t, OP_STAT, .inode = t->file);
    assert_not_logged(t, "[stat]");
}

FIBER_TEST(trace_shows_the_operations_it_is_told)
{
    test_push(t, &leaf_class, NULL);
    test_push(t, &trace_class, "log-file", "on", "include-ops", "stat,lookup,read", "exclude", "read", NULL);
    test_start(t);
    test_op(t, OP_STAT, .inode = t->file);
    test_op(t, OP_READ, .inode = t->file, .size = 1);
    test_op(t, OP_ACCESS, .inode = t->file);
    assert_logged(t, "[stat]");
    assert_not_logged(t, "[read]");
    assert_not_logged(t, "[access]");
}

FIBER_TEST(the_history_keeps_the_last_operations)
{
    test_push(t, &leaf_class, NULL);
    test_push(t, &trace_class, "log-history", "on", "history-size", "2", NULL);
    test_start(t);
    test_op(t, OP_ACCESS, .inode = t->file);
    test_op(t, OP_STAT, .inode = t->file);
    test_op(t, OP_LOOKUP, .parent = t->dir, .name = "x");
    SCOPED_FREE char *text = graph_statedump(t->graph);
    assert_null(strstr(text, "\nop=access"));
    assert_non_null(strstr(text, "\nseen=3\nop=stat gfid=00000000-0000-0000-0000-000000000003"));
    assert_non_null(strstr(text, "\nop=lookup gfid=00000000-0000-0000-0000-000000000002 name=\"x\""));
}

/* ---- io-stats ---- */

static void latencies_fall_into_powers_of_two(void **state)
{
    assert_int_equal(0, log2_bucket(0, 32));
    assert_int_equal(0, log2_bucket(1, 32));
    assert_int_equal(1, log2_bucket(2, 32));
    assert_int_equal(1, log2_bucket(3, 32));
    assert_int_equal(10, log2_bucket(1024, 32));
    assert_int_equal(31, log2_bucket(UINT64_MAX, 32));
}

static struct profile profile;

static void percentiles_come_from_the_histogram(void **state)
{
    struct sample fast = { .op = OP_READ, .is_timed = true, .took_ns = 3000 };
    struct sample slow = { .op = OP_READ, .is_timed = true, .took_ns = 5000000 };

    memset(&profile, 0, sizeof(profile));
    for (int i = 0; i < 98; i++)
        profile_add(&profile, &fast);
    profile_add(&profile, &slow);
    profile_add(&profile, &slow);
    assert_int_equal(3, profile_percentile_us(&profile.ops[OP_READ], 50));
    assert_int_equal(8191, profile_percentile_us(&profile.ops[OP_READ], 99));
    assert_int_equal(3000, profile.ops[OP_READ].min_ns);
    assert_int_equal(5000000, profile.ops[OP_READ].max_ns);
    assert_int_equal(0, profile_percentile_us(&profile.ops[OP_WRITE], 50));
}

static int read_five(struct leaf *leaf, struct call *call, const struct request *q, struct reply *r)
{
    r->data = buf_copy("12345", 5);
    return 5;
}

/* As protocol/client does: two children asked at the same time, twice in a row. */
static int two_trips(struct leaf *leaf, struct call *call, const struct request *q, struct reply *r)
{
    for (int i = 0; i < 2; i++) {
        uint32_t a = call_round_trip_begin(call), b = call_round_trip_begin(call);
        call_round_trip_end(call, a);
        call_round_trip_end(call, b);
    }
    return 0;
}

static FIBER json_t *stats_of(struct test *t)
{
    const void *data;
    size_t size_bytes;

    assert_true(test_op(t, OP_GETXATTR, .inode = t->root, .text = DUMP_XATTR) > 0);
    assert_int_equal(0, dict_get_bin(t->r->xattrs, DUMP_XATTR, &data, &size_bytes));
    json_t *root = json_loadb(data, size_bytes, 0, NULL);
    assert_non_null(root);
    return root;
}

static int64_t number(json_t *root, const char *part, const char *op, const char *key)
{
    json_t *o = json_object_get(root, part);

    if (op)
        o = json_object_get(json_object_get(o, "ops"), op);
    o = json_object_get(o, key);
    if (!o)
        fail_msg("no %s.%s.%s", part, op ? op : "", key);
    return json_integer_value(o);
}

FIBER_TEST(io_stats_counts_calls_errors_and_bytes)
{
    SCOPED(buf_unref) struct buf *data = buf_copy("abc", 3);

    test_push(t, &leaf_class, NULL);
    test_push(t, &io_stats_class, NULL);
    test_start(t);
    t->leaf->answers[OP_READ] = read_five;
    leaf_fail(t->leaf, OP_STAT, EIO, 1);
    test_op(t, OP_READ, .inode = t->file, .size = 10);
    test_op(t, OP_READ, .inode = t->file, .size = 10);
    test_op(t, OP_WRITE, .inode = t->file, .data = data);
    test_op(t, OP_STAT, .inode = t->file);
    json_t *root = stats_of(t);
    assert_int_equal(2, number(root, "cumulative", "read", "calls"));
    assert_int_equal(1, number(root, "cumulative", "stat", "errors"));
    assert_int_equal(10, number(root, "cumulative", NULL, "bytes_read"));
    assert_int_equal(3, number(root, "cumulative", NULL, "bytes_written"));
    json_t *sizes = json_object_get(json_object_get(root, "cumulative"), "read_sizes_log2");
    assert_int_equal(2, json_integer_value(json_array_get(sizes, 2)));
    json_decref(root);
}

FIBER_TEST(io_stats_counts_round_trips)
{
    test_push(t, &leaf_class, NULL);
    test_push(t, &io_stats_class, NULL);
    test_start(t);
    t->leaf->answers[OP_STAT] = two_trips;
    test_op(t, OP_STAT, .inode = t->file);
    test_op(t, OP_STAT, .inode = t->file);
    test_op(t, OP_ACCESS, .inode = t->file);
    json_t *root = stats_of(t);
    assert_int_equal(4, number(root, "cumulative", "stat", "round_trips"));
    assert_int_equal(2, number(root, "cumulative", "stat", "round_trips_max"));
    assert_int_equal(0, number(root, "cumulative", "access", "round_trips"));
    json_decref(root);
}

SIM_TEST(io_stats_measures_times_when_told)
{
    test_push(t, &leaf_class, NULL);
    test_push(t, &io_stats_class, "latency-measurement", "on", NULL);
    test_start(t);
    t->leaf->delay_ms = 10;
    test_op(t, OP_STAT, .inode = t->file);
    json_t *root = stats_of(t);
    json_t *o = json_object_get(json_object_get(json_object_get(root, "cumulative"), "ops"), "stat");
    assert_in_range((int)json_number_value(json_object_get(o, "avg_us")), 10000, 10100);
    assert_int_equal(1, json_integer_value(json_array_get(json_object_get(o, "latency_us_log2"), 13)));
    json_decref(root);
}

FIBER_TEST(io_stats_writes_a_file_that_stays_in_its_directory)
{
    SCOPED(dict_unref) struct dict *xattrs = dict_new();
    char dir[] = "/tmp/mortar-io-stats-XXXXXX", path[128], text[1024] = "";

    assert_non_null(mkdtemp(dir));
    test_push(t, &leaf_class, NULL);
    test_push(t, &io_stats_class, "ios-dump-dir", dir, "ios-dump-format", "text", NULL);
    test_start(t);
    test_op(t, OP_STAT, .inode = t->file);
    dict_set_str(xattrs, DUMP_XATTR, "/tmp/../x");
    assert_int_equal(0, test_op(t, OP_SETXATTR, .inode = t->root, .xattrs = xattrs));
    snprintf(path, sizeof(path), "%s/tmp-..-x", dir);
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    assert_true(fread(text, 1, sizeof(text) - 1, in) > 0);
    fclose(in);
    assert_non_null(strstr(text, "=== Cumulative stats ==="));
    assert_non_null(strstr(text, "\nstat                  1        0"));
    unlink(path);
    rmdir(dir);
}

FIBER_TEST(a_file_that_cannot_be_written_is_reported)
{
    SCOPED(dict_unref) struct dict *xattrs = dict_new();

    test_push(t, &leaf_class, NULL);
    test_push(t, &io_stats_class, "ios-dump-dir", "/no/such/dir", NULL);
    test_start(t);
    dict_set_bin(xattrs, DUMP_XATTR, "x", 1);
    assert_int_equal(-ENOENT, test_op(t, OP_SETXATTR, .inode = t->root, .xattrs = xattrs));
    assert_logged(t, "[dump-failed]");
    dict_set_str(xattrs, DUMP_XATTR, "..");
    assert_int_equal(-EINVAL, test_op(t, OP_SETXATTR, .inode = t->root, .xattrs = xattrs));
}

FIBER_TEST(only_the_super_user_gets_the_numbers)
{
    SCOPED(dict_unref) struct dict *xattrs = dict_new();

    test_push(t, &leaf_class, NULL);
    test_push(t, &io_stats_class, NULL);
    test_start(t);
    t->call.uid = 1000;
    dict_set_str(xattrs, DUMP_XATTR, "x");
    assert_int_equal(-EPERM, test_op(t, OP_SETXATTR, .inode = t->root, .xattrs = xattrs));
    test_op(t, OP_GETXATTR, .inode = t->root, .text = DUMP_XATTR);
    assert_int_equal(1, leaf_count(t->leaf, OP_GETXATTR)); /* an attribute like any other */
}

SIM_TEST(io_stats_writes_a_file_every_interval)
{
    char dir[] = "/tmp/mortar-io-stats-XXXXXX", path[128];

    assert_non_null(mkdtemp(dir));
    test_push(t, &leaf_class, NULL);
    test_push(t, &io_stats_class, "ios-dump-dir", dir, "ios-dump-interval", "10", NULL);
    test_start(t);
    test_op(t, OP_STAT, .inode = t->file);
    fiber_sleep_ms(NULL, 11000);
    snprintf(path, sizeof(path), "%s/io-stats-t1.json", dir);
    json_t *root = json_load_file(path, 0, NULL);
    assert_non_null(root);
    assert_int_equal(1, number(root, "interval", "stat", "calls"));
    json_decref(root);
    unlink(path);
    fiber_sleep_ms(NULL, 10000);
    root = json_load_file(path, 0, NULL);
    assert_non_null(root);
    assert_int_equal(1, number(root, "cumulative", "stat", "calls"));
    assert_int_equal(0, json_object_size(json_object_get(json_object_get(root, "interval"), "ops")));
    json_decref(root);
    unlink(path);
    rmdir(dir);
}

FIBER_TEST(io_stats_sets_the_log_level_of_the_process)
{
    test_push(t, &leaf_class, NULL);
    test_push(t, &io_stats_class, "log-level", "WARNING", NULL);
    assert_int_equal(LOG_WARNING, log_level(t->log));
    test_start(t);
}

FIBER_TEST(io_stats_is_in_the_statedump)
{
    test_push(t, &leaf_class, NULL);
    test_push(t, &io_stats_class, NULL);
    test_start(t);
    test_op(t, OP_STAT, .inode = t->file);
    SCOPED_FREE char *text = graph_statedump(t->graph);
    assert_non_null(strstr(text, "[debug/io-stats.t1]\nbytes-read=0\nbytes-written=0\nfop.stat=calls:1,errors:0,"));
}

FIBER_TEST(io_stats_takes_several_children_and_asks_the_first)
{
    test_build(t, "volume a\n type test/leaf\n option note x\nend-volume\n"
                  "volume b\n type test/leaf\n option note x\nend-volume\n"
                  "volume V\n type debug/io-stats\n option threads 16\n subvolumes a b\nend-volume\n");
    test_start(t);
    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->file));
    assert_int_equal(1, leaf_of(graph_find(t->graph, "a"))->call_count);
    assert_int_equal(0, leaf_of(graph_find(t->graph, "b"))->call_count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(error_gen_fails_every_nth_operation),
        cmocka_unit_test(a_failed_operation_does_not_reach_the_child),
        cmocka_unit_test(error_gen_with_no_failures_passes_everything),
        cmocka_unit_test(error_gen_hits_only_the_operations_it_is_told),
        cmocka_unit_test(without_a_number_the_error_fits_the_operation),
        cmocka_unit_test(a_short_write_writes_half),
        cmocka_unit_test(failures_by_chance_come_near_the_percentage),
        cmocka_unit_test(error_gen_changes_while_the_graph_runs),
        cmocka_unit_test(delay_gen_waits_as_long_as_it_is_told),
        cmocka_unit_test(delay_gen_delays_only_the_operations_it_is_told),
        cmocka_unit_test(a_call_whose_time_is_over_while_delayed_is_not_sent),
        cmocka_unit_test(delay_gen_delays_about_the_given_share),
        cmocka_unit_test(trace_writes_a_line_per_operation),
        cmocka_unit_test(trace_is_silent_by_default),
        cmocka_unit_test(trace_shows_the_operations_it_is_told),
        cmocka_unit_test(the_history_keeps_the_last_operations),
        cmocka_unit_test(latencies_fall_into_powers_of_two),
        cmocka_unit_test(percentiles_come_from_the_histogram),
        cmocka_unit_test(io_stats_counts_calls_errors_and_bytes),
        cmocka_unit_test(io_stats_counts_round_trips),
        cmocka_unit_test(io_stats_measures_times_when_told),
        cmocka_unit_test(io_stats_writes_a_file_that_stays_in_its_directory),
        cmocka_unit_test(a_file_that_cannot_be_written_is_reported),
        cmocka_unit_test(only_the_super_user_gets_the_numbers),
        cmocka_unit_test(io_stats_writes_a_file_every_interval),
        cmocka_unit_test(io_stats_sets_the_log_level_of_the_process),
        cmocka_unit_test(io_stats_is_in_the_statedump),
        cmocka_unit_test(io_stats_takes_several_children_and_asks_the_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
