/* Grammar of volume files: what the real parser accepts, and that printing gives the same file again. */
#include "unit/unit.h"
#include "core/mem.h"
#include "graph/volfile.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct volfile *parse(const char *text)
{
    struct volfile *file = NULL;
    struct error err;

    if (volfile_parse("x.vol", text, strlen(text), &file, &err) < 0)
        fail_msg("%s", err.text);
    return file;
}

#define LEAF(name) "volume " name "\n type storage/posix\n option directory /d\nend-volume\n"

static void one_section_has_name_type_and_options(void **state)
{
    SCOPED(volfile_free) struct volfile *file = parse(LEAF("posix"));

    assert_int_equal(1, file->section_count);
    assert_string_equal("posix", file->sections[0]->name);
    assert_string_equal("storage/posix", file->sections[0]->type);
    assert_string_equal("/d", volfile_option(file->sections[0], "directory"));
    assert_null(volfile_option(file->sections[0], "other"));
    assert_int_equal(1, file->sections[0]->line);
    assert_int_equal(3, file->sections[0]->options[0].line);
}

static void lines_have_no_meaning(void **state)
{
    SCOPED(volfile_free)
    struct volfile *file = parse("volume a type t option k v end-volume volume\nb\ntype\nt\n"
                                 "subvolumes\na\nend-volume");

    assert_int_equal(2, file->section_count);
    assert_ptr_equal(file->sections[0], file->sections[1]->children[0]);
}

static void crlf_tabs_and_a_missing_last_newline_are_fine(void **state)
{
    SCOPED(volfile_free) struct volfile *file = parse("volume a\r\n\ttype t\r\n\toption k v\r\nend-volume");

    assert_string_equal("v", volfile_option(file->sections[0], "k"));
}

static void a_comment_begins_only_at_the_start_of_a_token(void **state)
{
    SCOPED(volfile_free)
    struct volfile *file =
        parse("# top\nvolume a#b # name\n type t#1\n option k#x v#y#z#\n #option no no\nend-volume # end");

    assert_string_equal("a#b", file->sections[0]->name);
    assert_string_equal("t#1", file->sections[0]->type);
    assert_int_equal(1, file->sections[0]->option_count);
    assert_string_equal("v#y#z#", volfile_option(file->sections[0], "k#x"));
}

static void a_comment_may_follow_a_string_without_a_blank(void **state)
{
    SCOPED(volfile_free) struct volfile *file = parse("volume a type t option k \"v\"#comment\nend-volume");

    assert_string_equal("v", volfile_option(file->sections[0], "k"));
}

static void a_comment_at_the_end_of_the_file_needs_no_newline(void **state)
{
    SCOPED(volfile_free) struct volfile *file = parse(LEAF("a") "#");

    assert_int_equal(1, file->section_count);
}

static void words_may_hold_nearly_every_character(void **state)
{
    SCOPED(volfile_free)
    struct volfile *file =
        parse("volume /export/b1 type t option auth.addr./b.allow *,10.0.0.1:a=@-\xc3\xa9'{}();!$ end-volume");

    assert_string_equal("/export/b1", file->sections[0]->name);
    assert_string_equal("*,10.0.0.1:a=@-\xc3\xa9'{}();!$", volfile_option(file->sections[0], "auth.addr./b.allow"));
}

static void longer_words_that_begin_like_keywords_are_words(void **state)
{
    SCOPED(volfile_free)
    struct volfile *file =
        parse("volume volumes type types option option1 end-volumes option subvolumes2 typed end-volume");

    assert_string_equal("volumes", file->sections[0]->name);
    assert_string_equal("types", file->sections[0]->type);
    assert_string_equal("end-volumes", volfile_option(file->sections[0], "option1"));
    assert_string_equal("typed", volfile_option(file->sections[0], "subvolumes2"));
}

static void a_string_is_never_a_keyword(void **state)
{
    SCOPED(volfile_free)
    struct volfile *file =
        parse("volume \"end-volume\" type \"type\" option a \"volume\" option \"option\" b end-volume");

    assert_string_equal("end-volume", file->sections[0]->name);
    assert_string_equal("type", file->sections[0]->type);
    assert_string_equal("volume", volfile_option(file->sections[0], "a"));
    assert_string_equal("b", volfile_option(file->sections[0], "option"));
}

static void strings_keep_blanks_and_comment_signs(void **state)
{
    SCOPED(volfile_free) struct volfile *file = parse("volume \"a b\" type t option k \" # x \" end-volume");

    assert_string_equal("a b", file->sections[0]->name);
    assert_string_equal(" # x ", volfile_option(file->sections[0], "k"));
}

static void a_backslash_in_a_string_gives_the_next_character(void **state)
{
    SCOPED(volfile_free) struct volfile *file = parse("volume a type t option k \"q\\\"b\\\\n\\n\" end-volume");

    assert_string_equal("q\"b\\nn", volfile_option(file->sections[0], "k"));
}

static void a_newline_inside_a_string_is_dropped(void **state)
{
    SCOPED(volfile_free)
    struct volfile *file = parse("volume a\ntype t\noption k \"one\n two\\\nthree\"\nend-volume\n" LEAF("b"));

    assert_string_equal("one twothree", volfile_option(file->sections[0], "k"));
    assert_int_equal(7, file->sections[1]->line);
}

static void a_backslash_outside_a_string_ends_the_word_and_is_dropped(void **state)
{
    SCOPED(volfile_free) struct volfile *file = parse("volume a\\ type t option k\\v \\ end-volume");

    assert_string_equal("a", file->sections[0]->name);
    assert_string_equal("v", volfile_option(file->sections[0], "k"));
}

static void there_is_no_line_continuation(void **state)
{
    SCOPED(volfile_free) struct volfile *file = parse("volume a type t option k \\\nv end-volume");

    assert_string_equal("v", volfile_option(file->sections[0], "k"));
}

static void an_escaped_back_tick_is_an_ordinary_character_in_a_string(void **state)
{
    SCOPED(volfile_free) struct volfile *file = parse("volume a type t option k \"x\\`y\" end-volume");

    assert_string_equal("x`y", volfile_option(file->sections[0], "k"));
}

static void an_empty_value_is_kept_for_the_builder_to_report(void **state)
{
    SCOPED(volfile_free) struct volfile *file = parse("volume a type t option k \"\" end-volume");

    assert_string_equal("", volfile_option(file->sections[0], "k"));
}

static void options_may_stand_before_and_after_subvolumes(void **state)
{
    SCOPED(volfile_free)
    struct volfile *file = parse(LEAF("a") LEAF("b") "volume c type t option x 1 subvolumes a b option y 2 end-volume");

    assert_int_equal(2, file->sections[2]->child_count);
    assert_string_equal("b", file->sections[2]->children[1]->name);
    assert_string_equal("1", volfile_option(file->sections[2], "x"));
    assert_string_equal("2", volfile_option(file->sections[2], "y"));
}

static void a_type_with_subvolumes_needs_no_option(void **state)
{
    SCOPED(volfile_free) struct volfile *file = parse(LEAF("a") "volume b type t subvolumes a end-volume");

    assert_int_equal(0, file->sections[1]->option_count);
}

static void the_old_spelling_of_subvolumes_is_accepted(void **state)
{
    SCOPED(volfile_free) struct volfile *file = parse(LEAF("a") "volume b type t subvolumeS a end-volume");

    assert_int_equal(1, file->sections[1]->child_count);
}

static void the_last_of_two_equal_options_wins(void **state)
{
    SCOPED(volfile_free) struct volfile *file = parse("volume a type t option k 1 option k 2 end-volume");

    assert_string_equal("2", volfile_option(file->sections[0], "k"));
}

static void a_section_is_found_by_name(void **state)
{
    SCOPED(volfile_free) struct volfile *file = parse(LEAF("a") LEAF("b"));

    assert_ptr_equal(file->sections[1], volfile_find(file, "b"));
    assert_null(volfile_find(file, "c"));
}

static void assert_same(const struct volfile *a, const struct volfile *b)
{
    assert_int_equal(a->section_count, b->section_count);
    for (unsigned i = 0; i < a->section_count; i++) {
        const struct volfile_section *x = a->sections[i], *y = b->sections[i];
        assert_string_equal(x->name, y->name);
        assert_string_equal(x->type, y->type);
        assert_int_equal(x->option_count, y->option_count);
        for (unsigned k = 0; k < x->option_count; k++) {
            assert_string_equal(x->options[k].key, y->options[k].key);
            assert_string_equal(x->options[k].value, y->options[k].value);
        }
        assert_int_equal(x->child_count, y->child_count);
        for (unsigned k = 0; k < x->child_count; k++)
            assert_string_equal(x->children[k]->name, y->children[k]->name);
    }
}

static void printed_text_parses_to_the_same_file(void **state)
{
    SCOPED(volfile_free)
    struct volfile *file = parse(LEAF("a") LEAF(
        "\"b c\"") "volume \"volume\" type \"#t\" option \"k\\\"\" \"a\\\\b\\`\" option e \"\" option c \"x#y\" "
                   "subvolumes a \"b c\" end-volume");
    SCOPED_FREE char *text = volfile_print(file);
    SCOPED(volfile_free) struct volfile *again = parse(text);

    assert_same(file, again);
}

static void printed_text_looks_like_a_generated_file(void **state)
{
    SCOPED(volfile_free) struct volfile *file = parse(LEAF("a") "volume b type t subvolumes a end-volume");
    SCOPED_FREE char *text = volfile_print(file);

    assert_string_equal("volume a\n    type storage/posix\n    option directory /d\nend-volume\n\n"
                        "volume b\n    type t\n    subvolumes a\nend-volume\n",
                        text);
}

static void thousands_of_sections_parse(void **state)
{
    enum { COUNT = 5000 };
    SCOPED_FREE char *text = mem_alloc(COUNT * 80);
    size_t used = 0;

    for (int i = 0; i < COUNT; i++)
        used += (size_t)sprintf(text + used, "volume s%d type t %s%.0d%s end-volume\n", i,
                                i ? "subvolumes s" : "option k v", i ? i - 1 : 0, i == 1 ? "0" : "");
    struct volfile *file = NULL;
    assert_int_equal(0, volfile_parse("x.vol", text, used, &file, NULL));
    assert_int_equal(COUNT, file->section_count);
    assert_ptr_equal(file->sections[4998], file->sections[4999]->children[0]);
    volfile_free(file);
}

static void a_file_is_read_from_disk(void **state)
{
    char path[] = "/tmp/mortar-volfile-XXXXXX";
    int fd = mkstemp(path);
    struct volfile *file = NULL;

    assert_int_equal(strlen(LEAF("a")), write(fd, LEAF("a"), strlen(LEAF("a"))));
    close(fd);
    assert_int_equal(0, volfile_read(path, &file, NULL));
    assert_string_equal(path, file->path);
    volfile_free(file);
    unlink(path);
}

static void a_missing_file_is_named(void **state)
{
    struct volfile *file = NULL;
    struct error err;

    assert_int_equal(-ENOENT, volfile_read("/no/such.vol", &file, &err));
    assert_string_equal("/no/such.vol: cannot be opened: No such file or directory", err.text);
}

static void a_directory_is_no_volume_file(void **state)
{
    struct volfile *file = NULL;
    struct error err;

    assert_int_equal(-EISDIR, volfile_read("/tmp", &file, &err));
    assert_string_equal("/tmp: cannot be read: Is a directory", err.text);
}

static void every_failed_allocation_is_an_error_and_leaks_nothing(void **state)
{
    const char *text = LEAF("a") LEAF("b") "volume c type t option \"k\" v subvolumes a b option l w end-volume";
    struct mem_stats before, after;
    struct volfile *file = NULL;
    uint64_t n = 0;
    int r;

    mem_get_stats(&before);
    do {
        mem_fail_at(++n);
        r = volfile_parse("x.vol", text, strlen(text), &file, NULL);
        assert_true(r == 0 || r == -ENOMEM);
    } while (r < 0);
    mem_fail_at(0);
    assert_true(n > 20);
    volfile_free(file);
    mem_get_stats(&after);
    assert_int_equal(before.live_blocks, after.live_blocks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_section_has_name_type_and_options),
        cmocka_unit_test(lines_have_no_meaning),
        cmocka_unit_test(crlf_tabs_and_a_missing_last_newline_are_fine),
        cmocka_unit_test(a_comment_begins_only_at_the_start_of_a_token),
        cmocka_unit_test(a_comment_may_follow_a_string_without_a_blank),
        cmocka_unit_test(a_comment_at_the_end_of_the_file_needs_no_newline),
        cmocka_unit_test(words_may_hold_nearly_every_character),
        cmocka_unit_test(longer_words_that_begin_like_keywords_are_words),
        cmocka_unit_test(a_string_is_never_a_keyword),
        cmocka_unit_test(strings_keep_blanks_and_comment_signs),
        cmocka_unit_test(a_backslash_in_a_string_gives_the_next_character),
        cmocka_unit_test(a_newline_inside_a_string_is_dropped),
        cmocka_unit_test(a_backslash_outside_a_string_ends_the_word_and_is_dropped),
        cmocka_unit_test(there_is_no_line_continuation),
        cmocka_unit_test(an_escaped_back_tick_is_an_ordinary_character_in_a_string),
        cmocka_unit_test(an_empty_value_is_kept_for_the_builder_to_report),
        cmocka_unit_test(options_may_stand_before_and_after_subvolumes),
        cmocka_unit_test(a_type_with_subvolumes_needs_no_option),
        cmocka_unit_test(the_old_spelling_of_subvolumes_is_accepted),
        cmocka_unit_test(the_last_of_two_equal_options_wins),
        cmocka_unit_test(a_section_is_found_by_name),
        cmocka_unit_test(printed_text_parses_to_the_same_file),
        cmocka_unit_test(printed_text_looks_like_a_generated_file),
        cmocka_unit_test(thousands_of_sections_parse),
        cmocka_unit_test(a_file_is_read_from_disk),
        cmocka_unit_test(a_missing_file_is_named),
        cmocka_unit_test(a_directory_is_no_volume_file),
        cmocka_unit_test(every_failed_allocation_is_an_error_and_leaks_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
