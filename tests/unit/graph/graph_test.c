/* Building, overriding, starting, changing and dumping graphs. */
#include "unit/graph/test_graph.h"
#include <stdio.h>

#define LEAF(name) "volume " name "\n type test/leaf\n option note x\nend-volume\n"
#define UTIME(name, child) \
    "volume " name "\n type features/utime\n option noatime on\n subvolumes " child "\nend-volume\n"

/* What happened in which order: i init, s start, t stop, f fini, with the option "tag" of the section. */
static char journal[256];

struct noisy {
    char *tag;
    uint32_t fail_start;
};

static void note(struct translator *me, char what)
{
    size_t len = strlen(journal);

    snprintf(journal + len, sizeof(journal) - len, "%c%s ", what, ((struct noisy *)me->state)->tag);
}

static int noisy_init(struct translator *me, struct error *err)
{
    note(me, 'i');
    return 0;
}

static FIBER int noisy_start(struct translator *me, struct error *err)
{
    note(me, 's');
    if (((struct noisy *)me->state)->fail_start)
        return error_set(err, -EADDRINUSE, "port 1 is in use, choose another");
    return 0;
}

static FIBER void noisy_stop(struct translator *me)
{
    note(me, 't');
}

static void noisy_fini(struct translator *me)
{
    note(me, 'f');
}

static const struct option noisy_options[] = {
    OPT_STR("tag", struct noisy, tag, .def = "?"),
    OPT_U32("fail-start", struct noisy, fail_start),
    OPT_END,
};

static const struct translator_class noisy_class = {
    .type = "test/noisy",
    .state_size = sizeof(struct noisy),
    .options = noisy_options,
    .init = noisy_init,
    .start = noisy_start,
    .stop = noisy_stop,
    .fini = noisy_fini,
};

static struct graph *build(struct test *t, const char *text, const struct graph_options *options)
{
    SCOPED(volfile_free) struct volfile *file = NULL;
    static const struct translator_class *classes[] = { &leaf_class, &noisy_class, NULL, NULL };
    struct graph *graph = NULL;

    for (class_list c = all_classes; *c; c++) {
        if (strcmp((*c)->type, "features/utime") == 0)
            classes[2] = *c;
    }
    assert_int_equal(0, volfile_parse("x.vol", text, strlen(text), &file, &t->err));
    if (graph_build(t->env, file, classes, options, &graph, &t->err) < 0)
        return NULL;
    return graph;
}

static struct leaf *leaf_named(struct graph *graph, const char *name)
{
    struct translator *me = graph_find(graph, name);

    assert_non_null(me);
    return leaf_of(me);
}

FIBER_TEST(the_last_section_is_the_root)
{
    struct graph *graph = build(t, LEAF("a") UTIME("b", "a"), NULL);

    assert_string_equal("b", graph->root->name);
    assert_int_equal(2, graph->count);
    assert_ptr_equal(graph->root, graph->root->children[0]->parents[0]);
    graph_free(graph);
}

FIBER_TEST(the_root_can_be_chosen)
{
    struct graph *graph = build(t, LEAF("a") UTIME("b", "a"), &(struct graph_options) { .root_name = "a" });

    assert_string_equal("a", graph->root->name);
    assert_int_equal(1, graph->count);
    graph_free(graph);
}

FIBER_TEST(a_root_that_is_not_there_is_refused_with_a_hint)
{
    assert_null(build(t, LEAF("brick1"), &(struct graph_options) { .root_name = "brick2" }));
    assert_string_equal("x.vol: has no section \"brick2\" to use as the top (did you mean \"brick1\"?)", t->err.text);
}

FIBER_TEST(sections_that_the_root_cannot_reach_are_left_out)
{
    struct graph *graph =
        build(t, LEAF("a") "volume odd\n type no/such\n option k v\nend-volume\n" UTIME("b", "a"), NULL);

    assert_int_equal(2, graph->count);
    assert_null(graph_find(graph, "odd"));
    graph_free(graph);
}

FIBER_TEST(an_alias_is_the_same_type)
{
    struct graph *graph = build(t, "volume a\n type test/alias\n option remark y\nend-volume\n", NULL);

    assert_string_equal("y", leaf_named(graph, "a")->note);
    graph_free(graph);
}

FIBER_TEST(overrides_go_to_all_sections_whose_name_matches)
{
    SCOPED(dict_unref) struct dict *overrides = dict_new();

    dict_set_str(overrides, "*-leaf.number", "7");
    dict_set_str(overrides, "other.number", "9");
    struct graph *graph = build(t,
                                LEAF("a-leaf") LEAF("b-leaf")
                                    LEAF("c") "volume n\n type test/noisy\n subvolumes a-leaf b-leaf c\nend-volume\n",
                                &(struct graph_options) { .overrides = overrides });
    assert_int_equal(7, leaf_named(graph, "a-leaf")->number);
    assert_int_equal(7, leaf_named(graph, "b-leaf")->number);
    assert_int_equal(1, leaf_named(graph, "c")->number);
    graph_free(graph);
}

FIBER_TEST(an_override_replaces_the_value_of_the_file)
{
    SCOPED(dict_unref) struct dict *overrides = dict_new();

    dict_set_str(overrides, "a.note", "from the command line");
    struct graph *graph = build(t, LEAF("a"), &(struct graph_options) { .overrides = overrides });
    assert_string_equal("from the command line", leaf_named(graph, "a")->note);
    graph_free(graph);
}

FIBER_TEST(a_bad_override_names_the_command_line)
{
    SCOPED(dict_unref) struct dict *overrides = dict_new();

    dict_set_str(overrides, "a.number", "99");
    assert_null(build(t, LEAF("a"), &(struct graph_options) { .overrides = overrides }));
    assert_string_equal("command line: section \"a\": \"99\" is out of range (option \"number\", 1 to 16)",
                        t->err.text);
}

FIBER_TEST(the_last_of_two_equal_options_acts)
{
    struct graph *graph = build(t, "volume a\n type test/leaf\n option number 2\n option number 3\nend-volume\n", NULL);

    assert_int_equal(3, leaf_named(graph, "a")->number);
    graph_free(graph);
}

FIBER_TEST(the_volume_id_of_the_file_is_known)
{
    struct graph *graph = build(
        t, "volume a\n type test/leaf\n option volume-id 0fe76aed-4e1d-4202-acfa-b977b8c8a8b3\nend-volume\n", NULL);

    assert_string_equal("0fe76aed-4e1d-4202-acfa-b977b8c8a8b3", graph->volume_id);
    graph_free(graph);
}

#define NOISY_PAIR                                            \
    "volume a\n type test/noisy\n option tag a\nend-volume\n" \
    "volume b\n type test/noisy\n option tag b\n subvolumes a\nend-volume\n"

FIBER_TEST(life_runs_children_first_and_ends_parents_first)
{
    journal[0] = '\0';
    struct graph *graph = build(t, NOISY_PAIR, NULL);
    assert_int_equal(0, graph_start(graph, NULL));
    graph_stop(graph);
    graph_free(graph);
    assert_string_equal("ia ib sa sb tb ta fb fa ", journal);
}

FIBER_TEST(a_failed_start_stops_what_was_started)
{
    journal[0] = '\0';
    struct graph *graph =
        build(t,
              "volume a\n type test/noisy\n option tag a\nend-volume\n"
              "volume b\n type test/noisy\n option tag b\n option fail-start 1\n subvolumes a\nend-volume\n",
              NULL);
    assert_int_equal(-EADDRINUSE, graph_start(graph, &t->err));
    assert_string_equal("section \"b\" (test/noisy): port 1 is in use, choose another", t->err.text);
    graph_free(graph);
    assert_string_equal("ia ib sa sb ta fb fa ", journal);
}

FIBER_TEST(a_failed_build_ends_what_was_initialised)
{
    journal[0] = '\0';
    assert_null(build(t,
                      "volume a\n type test/noisy\n option tag a\nend-volume\n"
                      "volume b\n type test/noisy\n option fail-start x\n subvolumes a\nend-volume\n",
                      NULL));
    assert_string_equal("ia fa ", journal);
}

static struct volfile *parse(struct test *t, const char *text)
{
    struct volfile *file = NULL;

    assert_int_equal(0, volfile_parse("y.vol", text, strlen(text), &file, &t->err));
    return file;
}

FIBER_TEST(other_options_do_not_change_the_topology)
{
    SCOPED(volfile_free)
    struct volfile *file = parse(t, "volume a\n type test/alias\n option number 4\nend-volume\n" UTIME("b", "a"));
    struct graph *graph = build(t, LEAF("a") UTIME("b", "a"), NULL);

    assert_true(graph_same_topology(graph, file));
    graph_free(graph);
}

FIBER_TEST(another_name_type_or_number_of_sections_is_another_topology)
{
    struct graph *graph = build(t, LEAF("a") UTIME("b", "a"), NULL);
    SCOPED(volfile_free) struct volfile *name = parse(t, LEAF("z") UTIME("b", "z"));
    SCOPED(volfile_free)
    struct volfile *type = parse(t, LEAF("a") "volume b\n type test/noisy\n subvolumes a\nend-volume\n");
    SCOPED(volfile_free) struct volfile *more = parse(t, LEAF("a") UTIME("b", "a") UTIME("c", "b"));
    SCOPED(volfile_free) struct volfile *less = parse(t, LEAF("a"));

    assert_false(graph_same_topology(graph, name));
    assert_false(graph_same_topology(graph, type));
    assert_false(graph_same_topology(graph, more));
    assert_false(graph_same_topology(graph, less));
    graph_free(graph);
}

FIBER_TEST(the_order_of_subvolumes_belongs_to_the_topology)
{
    struct graph *graph =
        build(t, LEAF("a") LEAF("b") "volume n\n type test/noisy\n subvolumes a b\nend-volume\n", NULL);
    SCOPED(volfile_free)
    struct volfile *other = parse(t, LEAF("a") LEAF("b") "volume n\n type test/noisy\n subvolumes b a\nend-volume\n");

    assert_false(graph_same_topology(graph, other));
    graph_free(graph);
}

FIBER_TEST(a_translator_pushed_in_code_is_no_part_of_the_topology)
{
    struct graph *graph = build(t, LEAF("a"), NULL);
    SCOPED(volfile_free) struct volfile *file = parse(t, LEAF("a"));

    assert_int_equal(0, graph_push(graph, &noisy_class, "top", NULL, NULL, &t->err));
    assert_string_equal("top", graph->root->name);
    assert_true(graph_same_topology(graph, file));
    graph_free(graph);
}

FIBER_TEST(live_options_change_in_place)
{
    struct graph *graph = build(t, LEAF("a"), NULL);
    SCOPED(volfile_free)
    struct volfile *file = parse(t, "volume a\n type test/leaf\n option note x\n option number 5\nend-volume\n");

    assert_int_equal(0, graph_reconfigure(graph, file, NULL, &t->err));
    assert_int_equal(5, leaf_named(graph, "a")->number);
    assert_int_equal(1, leaf_named(graph, "a")->reconfigured);
    graph_free(graph);
}

FIBER_TEST(an_option_that_is_gone_falls_back_to_its_default)
{
    struct graph *graph = build(t, "volume a\n type test/leaf\n option note x\n option number 5\nend-volume\n", NULL);
    SCOPED(volfile_free) struct volfile *file = parse(t, LEAF("a"));

    assert_int_equal(0, graph_reconfigure(graph, file, NULL, &t->err));
    assert_int_equal(1, leaf_named(graph, "a")->number);
    graph_free(graph);
}

FIBER_TEST(an_option_that_needs_a_restart_is_named_and_keeps_its_value)
{
    struct graph *graph = build(t, LEAF("a"), NULL);
    SCOPED(volfile_free) struct volfile *file = parse(t, "volume a\n type test/leaf\n option note new\nend-volume\n");

    assert_int_equal(1, graph_reconfigure(graph, file, NULL, &t->err));
    assert_string_equal("x", leaf_named(graph, "a")->note);
    assert_logged(t, "[restart-needed] 0-a:");
    graph_free(graph);
}

FIBER_TEST(a_bad_value_changes_nothing_anywhere)
{
    struct graph *graph =
        build(t, LEAF("a") LEAF("b") "volume n\n type test/noisy\n subvolumes a b\nend-volume\n", NULL);
    SCOPED(volfile_free)
    struct volfile *file = parse(t, "volume a\n type test/leaf\n option number 5\nend-volume\n"
                                    "volume b\n type test/leaf\n option number 55\nend-volume\n"
                                    "volume n\n type test/noisy\n subvolumes a b\nend-volume\n");

    assert_int_equal(-ERANGE, graph_reconfigure(graph, file, NULL, &t->err));
    assert_string_equal("y.vol:7: section \"b\": \"55\" is out of range (option \"number\", 1 to 16)", t->err.text);
    assert_int_equal(1, leaf_named(graph, "a")->number);
    graph_free(graph);
}

FIBER_TEST(overrides_hold_at_a_live_change)
{
    SCOPED(dict_unref) struct dict *overrides = dict_new();
    struct graph_options options = { .overrides = overrides };

    dict_set_str(overrides, "a.number", "8");
    struct graph *graph = build(t, LEAF("a"), &options);
    SCOPED(volfile_free)
    struct volfile *file = parse(t, "volume a\n type test/leaf\n option note x\n option number 5\nend-volume\n");
    assert_int_equal(0, graph_reconfigure(graph, file, &options, &t->err));
    assert_int_equal(8, leaf_named(graph, "a")->number);
    graph_free(graph);
}

FIBER_TEST(another_topology_is_not_changed_in_place)
{
    struct graph *graph = build(t, LEAF("a"), NULL);
    SCOPED(volfile_free) struct volfile *file = parse(t, LEAF("b"));

    assert_int_equal(-EINVAL, graph_reconfigure(graph, file, NULL, &t->err));
    assert_string_equal("y.vol: sections, types or subvolumes differ from the running graph; a new graph is needed",
                        t->err.text);
    graph_free(graph);
}

FIBER_TEST(pushing_onto_a_graph_in_use_is_refused)
{
    test_push(t, &leaf_class, NULL);
    test_start(t);
    assert_int_equal(-EBUSY, test_push_refused(t, &noisy_class, NULL));
    assert_string_equal("translator \"t1\" (test/noisy) comes too late: the graph is in use", t->err.text);
}

FIBER_TEST(a_push_that_is_refused_leaves_the_graph_as_it_was)
{
    test_push(t, &leaf_class, NULL);
    assert_int_equal(-EINVAL, test_push_refused(t, &noisy_class, "fail-start", "x", NULL));
    assert_int_equal(1, t->graph->count);
    assert_int_equal(0, t->leaf->me->parent_count);
    test_start(t);
    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->file));
}

FIBER_TEST(the_statedump_has_the_layout_that_tools_read)
{
    test_build(t, LEAF("vol-leaf") UTIME("vol-utime", "vol-leaf"));
    test_start(t);
    test_op(t, OP_STAT, .inode = t->file);
    SCOPED_FREE char *text = graph_statedump(t->graph);
    assert_non_null(text);
    assert_int_equal(0, strncmp(text, "DUMP-START-TIME: 20", 19));
    const char *last = strstr(text, "\nDUMP-END-TIME: 20");
    assert_non_null(last);
    assert_ptr_equal(text + strlen(text) - 1, strchr(last + 1, '\n'));
    assert_non_null(strstr(text, "\n[mallinfo]\n"));
    assert_non_null(strstr(text, "\n[global.glusterfs - Memory usage]\n"));
    assert_non_null(strstr(text, "\n[test/leaf.vol-leaf]\ncalls=1\n"));
    assert_non_null(strstr(text, "\n[features/utime.vol-utime]\n"));
    assert_non_null(strstr(text, "\n[xlator.features/utime.vol-utime.priv]\nup=1\n"));
    assert_non_null(strstr(text, "op.stat=1,0\n"));
    assert_non_null(strstr(text, "option.noatime=on\n"));
}

static void every_failed_allocation_ends_a_build_cleanly_body(struct test *t)
{
    SCOPED(volfile_free) struct volfile *file = parse(t, LEAF("a") UTIME("b", "a"));
    struct mem_stats before, after;
    struct graph *graph = NULL;
    uint64_t n = 0;
    int r;

    mem_get_stats(&before);
    do {
        mem_fail_at(++n);
        r = graph_build(t->env, file, t->classes, NULL, &graph, NULL);
    } while (r == -ENOMEM);
    mem_fail_at(0);
    assert_int_equal(0, r);
    assert_true(n > 15);
    graph_free(graph);
    mem_get_stats(&after);
    assert_int_equal(before.live_blocks, after.live_blocks);
}

static void every_failed_allocation_ends_a_build_cleanly(void **state)
{
    test_in_fiber(every_failed_allocation_ends_a_build_cleanly_body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_section_is_the_root),
        cmocka_unit_test(the_root_can_be_chosen),
        cmocka_unit_test(a_root_that_is_not_there_is_refused_with_a_hint),
        cmocka_unit_test(sections_that_the_root_cannot_reach_are_left_out),
        cmocka_unit_test(an_alias_is_the_same_type),
        cmocka_unit_test(overrides_go_to_all_sections_whose_name_matches),
        cmocka_unit_test(an_override_replaces_the_value_of_the_file),
        cmocka_unit_test(a_bad_override_names_the_command_line),
        cmocka_unit_test(the_last_of_two_equal_options_acts),
        cmocka_unit_test(the_volume_id_of_the_file_is_known),
        cmocka_unit_test(life_runs_children_first_and_ends_parents_first),
        cmocka_unit_test(a_failed_start_stops_what_was_started),
        cmocka_unit_test(a_failed_build_ends_what_was_initialised),
        cmocka_unit_test(other_options_do_not_change_the_topology),
        cmocka_unit_test(another_name_type_or_number_of_sections_is_another_topology),
        cmocka_unit_test(the_order_of_subvolumes_belongs_to_the_topology),
        cmocka_unit_test(a_translator_pushed_in_code_is_no_part_of_the_topology),
        cmocka_unit_test(live_options_change_in_place),
        cmocka_unit_test(an_option_that_is_gone_falls_back_to_its_default),
        cmocka_unit_test(an_option_that_needs_a_restart_is_named_and_keeps_its_value),
        cmocka_unit_test(a_bad_value_changes_nothing_anywhere),
        cmocka_unit_test(overrides_hold_at_a_live_change),
        cmocka_unit_test(another_topology_is_not_changed_in_place),
        cmocka_unit_test(pushing_onto_a_graph_in_use_is_refused),
        cmocka_unit_test(a_push_that_is_refused_leaves_the_graph_as_it_was),
        cmocka_unit_test(the_statedump_has_the_layout_that_tools_read),
        cmocka_unit_test(every_failed_allocation_ends_a_build_cleanly),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
