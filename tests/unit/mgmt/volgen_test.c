/* Generated volume files say what those of GlusterFS's daemon say for the same volume: same sections, types, children in
 * the same order, same options in any order. */
#include "golden.h"
#include "graph/volfile.h"
#include "mgmt/volgen.h"
#include <stdio.h>

static void compare_options(const struct volfile_section *want, const struct volfile_section *got, unsigned *ret_wrong)
{
    for (unsigned i = 0; i < want->option_count; i++) {
        const char *value = volfile_option(got, want->options[i].key);

        if (!value || strcmp(value, want->options[i].value) != 0) {
            print_message("# %s: %s is %s, not %s\n", want->name, want->options[i].key, value ? value : "missing",
                          want->options[i].value);
            ++*ret_wrong;
        }
    }
    for (unsigned i = 0; i < got->option_count; i++) {
        if (!volfile_option(want, got->options[i].key)) {
            print_message("# %s: %s %s is one too many\n", got->name, got->options[i].key, got->options[i].value);
            ++*ret_wrong;
        }
    }
}

static void compare_sections(const struct volfile_section *want, const struct volfile_section *got, unsigned *ret_wrong)
{
    if (strcmp(want->name, got->name) != 0 || strcmp(want->type, got->type) != 0)
        fail_msg("%s %s instead of %s %s", got->name, got->type, want->name, want->type);
    if (want->child_count != got->child_count)
        fail_msg("%s has %u children instead of %u", want->name, got->child_count, want->child_count);
    for (unsigned i = 0; i < want->child_count; i++)
        assert_string_equal(want->children[i]->name, got->children[i]->name);
    compare_options(want, got, ret_wrong);
}

/* `text` is given. */
static void check_same(const char *volume, const char *file, char *text)
{
    SCOPED_FREE char *generated = text;
    SCOPED_FREE char *path = golden_path(volume, file);
    SCOPED(volfile_free) struct volfile *want = NULL;
    SCOPED(volfile_free) struct volfile *got = NULL;
    unsigned wrong = 0;
    struct error err;

    assert_non_null(generated);
    if (volfile_read(path, &want, &err) < 0)
        fail_msg("%s", err.text);
    if (volfile_parse("generated", generated, strlen(generated), &got, &err) < 0)
        fail_msg("%s\n%s", err.text, generated);
    for (unsigned i = 0; i < want->section_count && i < got->section_count; i++)
        compare_sections(want->sections[i], got->sections[i], &wrong);
    assert_int_equal(want->section_count, got->section_count);
    if (wrong > 0)
        fail_msg("%u options of %s/%s differ", wrong, volume, file);
}

static void check_volume(const char *name)
{
    SCOPED(volume_free) struct volume *v = golden_volume(name);
    struct volgen_node node = { .work_folder = "/var/lib/glusterd", .shared_brick_count = v->brick_count };

    check_same(name, "client.vol", volgen_client(v, false));
    check_same(name, "trusted.vol", volgen_client(v, true));
    check_same(name, "last-brick.vol", volgen_brick(v, v->brick_count - 1, &node));
    if (v->kind == VOLUME_REPLICATE)
        check_same(name, "heal.vol", volgen_heal(v));
}

static void one_brick(void **state)
{
    check_volume("one");
}

static void mirror_of_two(void **state)
{
    check_volume("rep");
}

static void mirror_of_three(void **state)
{
    check_volume("rep3");
}

static void mirror_with_arbiter(void **state)
{
    check_volume("arb");
}

static void two_mirrors_of_two(void **state)
{
    check_volume("distrep");
}

static void mirror_with_many_options(void **state)
{
    check_volume("opts");
}

static void values_with_blanks_and_quotes_are_quoted(void **state)
{
    SCOPED(volume_free) struct volume *v = golden_volume("rep");
    SCOPED_FREE char *text = NULL;
    SCOPED(volfile_free) struct volfile *file = NULL;
    struct error err;

    assert_int_equal(0, settings_set(&v->settings, "server.statedump-path", "/tmp/a \"b\" \\c"));
    text = volgen_brick(v, 0, &(struct volgen_node) { "/var/lib/glusterd", 1 });
    assert_non_null(text);
    assert_int_equal(0, volfile_parse("x", text, strlen(text), &file, &err));
    assert_string_equal("/tmp/a \"b\" \\c", volfile_option(volfile_find(file, "rep-server"), "statedump-path"));
}

static void brick_ids_are_host_and_path_with_dashes(void **state)
{
    SCOPED(volume_free) struct volume *v = golden_volume("rep");
    SCOPED_FREE char *id = volgen_brick_id(v, 1);

    assert_string_equal("rep.198.18.0.1.bricks-rep-b2", id);
}

/* The n-th allocation fails, for every n. */
static void lack_of_memory_gives_null(void **state)
{
    SCOPED(volume_free) struct volume *v = golden_volume("rep");

    for (uint64_t n = 1;; n++) {
        char *text;

        (void)mem_fail_at(n);
        text = volgen_client(v, true);
        if (mem_fail_at(0) > 0) {
            assert_non_null(text);
            mem_free(text);
            return;
        }
        assert_null(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_brick),
        cmocka_unit_test(mirror_of_two),
        cmocka_unit_test(mirror_of_three),
        cmocka_unit_test(mirror_with_arbiter),
        cmocka_unit_test(two_mirrors_of_two),
        cmocka_unit_test(mirror_with_many_options),
        cmocka_unit_test(values_with_blanks_and_quotes_are_quoted),
        cmocka_unit_test(brick_ids_are_host_and_path_with_dashes),
        cmocka_unit_test(lack_of_memory_gives_null),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
