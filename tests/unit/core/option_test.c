#include "core/mem.h"
#include "core/option.h"
#include "unit/unit.h"

static const char *const colours[] = { "red", "Green", "blue", NULL };

struct all {
    bool on;
    uint32_t u32, count, time_s, colour, mode;
    uint64_t u64, size;
    int32_t i32;
    double percent, ratio;
    struct percent_or_size free_space;
    char *text, *path;
};

static const struct option table[] = {
    OPT_BOOL("on", struct all, on, .def = "yes", .live = true),
    OPT_U32("u32", struct all, u32),
    OPT_U32("page-count", struct all, count, .aliases = { "count", "pages" }, .def = "4", .min = 1, .max = 16,
            .live = true),
    OPT_U64("u64", struct all, u64),
    OPT_I32("brick-uid", struct all, i32, .def = "-1", .min = -1),
    OPT_SIZE("cache-size", struct all, size, .def = "32MB", .min = 4096, .max = 34359738368),
    OPT_PERCENT("quorum-ratio", struct all, percent, .def = "51"),
    OPT_PERCENT_OR_SIZE("min-free", struct all, free_space, .def = "10%"),
    OPT_TIME("ping", struct all, time_s, .unit = "s", .def = "42", .max = 1013),
    OPT_DOUBLE("ratio", struct all, ratio, .def = "0.5"),
    OPT_STR("text", struct all, text, .live = true),
    OPT_PATH("path", struct all, path, .def = "/var/run"),
    OPT_ENUM("colour", struct all, colour, colours, .def = "green"),
    OPT_MODE("mode", struct all, mode, .def = "0644"),
    OPT_ANY("auth.addr.*.allow"),
    OPT_IGNORED("old-thing", .help = "nothing needs it any more"),
    OPT_END,
};

static const struct option *entry(const char *name)
{
    const struct option *o = option_find(table, name);

    assert_non_null(o);
    return o;
}

static void accepts(const char *name, const char *text, const char *shown)
{
    struct all s = { .on = false };
    struct error err;
    char buffer[64];

    assert_int_equal(option_store(entry(name), text, NULL, &err), 0);
    assert_int_equal(option_store(entry(name), text, &s, &err), 0);
    assert_string_equal(option_format(entry(name), &s, buffer, sizeof(buffer)), shown);
    options_release(table, &s);
}

static void refuses(const char *name, const char *text, int code, const char *sentence)
{
    struct all s, untouched;
    struct error err = { .text = "" };

    memset(&s, 0, sizeof(s));
    memset(&untouched, 0, sizeof(untouched));
    assert_int_equal(option_store(entry(name), text, &s, &err), code);
    assert_string_equal(err.text, sentence);
    assert_memory_equal(&s, &untouched, sizeof(s));
    assert_int_equal(option_store(entry(name), text, NULL, NULL), code);
}

static void booleans(void **state)
{
    static const char *const yes[] = { "1", "on", "YES", "True", "enable" };
    static const char *const no[] = { "0", "off", "No", "FALSE", "disable" };

    for (size_t i = 0; i < 5; i++) {
        accepts("on", yes[i], "on");
        accepts("on", no[i], "off");
    }
    refuses("on", "maybe", -EINVAL, "\"maybe\" is not on or off (option \"on\")");
    refuses("on", "", -EINVAL, "\"\" is not on or off (option \"on\")");
}

static void whole_numbers(void **state)
{
    accepts("u32", "4294967295", "4294967295");
    accepts("u32", "0x10", "16");
    accepts("u32", "010", "8");
    accepts("u32", "+7", "7");
    accepts("page-count", "16", "16");
    accepts("u64", "18446744073709551615", "18446744073709551615");
    accepts("brick-uid", "-1", "-1");
    accepts("brick-uid", "2147483647", "2147483647");
    refuses("page-count", "abc", -EINVAL, "\"abc\" is not a number (option \"page-count\", 1 to 16)");
    refuses("page-count", "0", -ERANGE, "\"0\" is out of range (option \"page-count\", 1 to 16)");
    refuses("page-count", "17", -ERANGE, "\"17\" is out of range (option \"page-count\", 1 to 16)");
    refuses("u32", "", -EINVAL, "\"\" is not a number (option \"u32\")");
    refuses("u32", " 1", -EINVAL, "\" 1\" is not a number (option \"u32\")");
    refuses("u32", "1x", -EINVAL, "\"1x\" is not a number (option \"u32\")");
    refuses("u32", "-1", -ERANGE, "\"-1\" is out of range (option \"u32\")");
    refuses("u32", "4294967296", -ERANGE, "\"4294967296\" is out of range (option \"u32\")");
    refuses("u64", "18446744073709551616", -ERANGE, "\"18446744073709551616\" is out of range (option \"u64\")");
    refuses("brick-uid", "-2", -ERANGE, "\"-2\" is out of range (option \"brick-uid\", at least -1)");
    refuses("brick-uid", "2147483648", -ERANGE, "\"2147483648\" is out of range (option \"brick-uid\", at least -1)");
}

static void sizes(void **state)
{
    uint64_t v = 5;

    accepts("cache-size", "4096", "4096");
    accepts("cache-size", "4096B", "4096");
    accepts("cache-size", "64kb", "65536");
    accepts("cache-size", "1MB", "1048576");
    accepts("cache-size", "1.5MB", "1572864");
    accepts("cache-size", "2GB", "2147483648");
    refuses("cache-size", "1M", -EINVAL,
            "\"1M\" is not a size in bytes or with KB, MB, GB, TB, PB (option \"cache-size\", 4096 to 34359738368)");
    refuses("cache-size", "1KB", -ERANGE, "\"1KB\" is out of range (option \"cache-size\", 4096 to 34359738368)");
    assert_int_equal(parse_size("1TB", &v), 0);
    assert_int_equal(v, 1ULL << 40);
    assert_int_equal(parse_size("1PB", &v), 0);
    assert_int_equal(v, 1ULL << 50);
    assert_int_equal(parse_size("18446744073709551615", &v), 0);
    assert_true(v == UINT64_MAX);
    assert_int_equal(parse_size("16384PB", &v), -ERANGE);
    assert_int_equal(parse_size("16384.5PB", &v), -ERANGE);
    static const char *const bad[] = { "", "-1", "KB", ".", "1 KB", "1e3", "0x10", "1KBB", "1.2.3" };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_int_equal(parse_size(bad[i], &v), -EINVAL);
}

static void percents(void **state)
{
    accepts("quorum-ratio", "0", "0%");
    accepts("quorum-ratio", "100%", "100%");
    accepts("quorum-ratio", "50.5", "50.5%");
    refuses("quorum-ratio", "101%", -ERANGE, "\"101%\" is out of range (option \"quorum-ratio\", 0 to 100 percent)");
    refuses("quorum-ratio", "half", -EINVAL,
            "\"half\" is not a percentage (option \"quorum-ratio\", 0 to 100, \"%\" may follow)");
    refuses("quorum-ratio", "5%%", -EINVAL,
            "\"5%%\" is not a percentage (option \"quorum-ratio\", 0 to 100, \"%\" may follow)");
    accepts("min-free", "5%", "5%");
    accepts("min-free", "5", "5");
    accepts("min-free", "10GB", "10737418240");
    refuses("min-free", "101%", -ERANGE, "\"101%\" is out of range (option \"min-free\", 0 to 100 percent)");
    refuses(
        "min-free", "lots", -EINVAL,
        "\"lots\" is not a percentage or a size (option \"min-free\", 0 to 100, \"%\" may follow, else bytes or KB, "
        "MB, GB, TB, PB)");
}

static void times(void **state)
{
    uint32_t v = 0;

    accepts("ping", "42", "42");
    accepts("ping", "1m", "60");
    accepts("ping", "10min", "600");
    refuses("ping", "1h", -ERANGE, "\"1h\" is out of range (option \"ping\", 0 to 1013 s)");
    refuses("ping", "soon", -EINVAL,
            "\"soon\" is not a time in seconds or with s, m, h, d, w (option \"ping\", 0 to 1013 s)");
    static const struct {
        const char *text;
        uint32_t seconds;
    } good[] = { { "2s", 2 },     { "2sec", 2 },       { "0x10", 16 },   { "1h", 3600 },   { "1hr", 3600 },
                 { "1d", 86400 }, { "2days", 172800 }, { "1w", 604800 }, { "1wk", 604800 } };
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        assert_int_equal(parse_time(good[i].text, &v), 0);
        assert_int_equal(v, good[i].seconds);
    }
    static const char *const bad[] = { "", "1M", "1S", "1 s", "1.5s", "s", "1day" };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_int_equal(parse_time(bad[i], &v), -EINVAL);
    assert_int_equal(parse_time("-1", &v), -ERANGE);
    assert_int_equal(parse_time("8000w", &v), -ERANGE);
}

static void other_types(void **state)
{
    accepts("ratio", "-0.25", "-0.25");
    refuses("ratio", "1e5", -EINVAL, "\"1e5\" is not a decimal number (option \"ratio\")");
    accepts("text", "", "");
    accepts("text", "any thing", "any thing");
    accepts("path", "/a/b", "/a/b");
    refuses("path", "a/b", -EINVAL, "\"a/b\" is not an absolute path (option \"path\")");
    accepts("colour", "BLUE", "blue");
    accepts("colour", "green", "Green");
    refuses("colour", "pink", -EINVAL, "\"pink\" is not one of: red, Green, blue (option \"colour\")");
    accepts("mode", "0755", "0755");
    accepts("mode", "7777", "7777");
    refuses("mode", "0788", -EINVAL, "\"0788\" is not an octal mode such as 0755 (option \"mode\")");
    refuses("mode", "", -EINVAL, "\"\" is not an octal mode such as 0755 (option \"mode\")");
    refuses("mode", "10000", -ERANGE, "\"10000\" is out of range (option \"mode\", 0000 to 7777 octal)");
    accepts("old-thing", "whatever", "");
    accepts("auth.addr./brick.allow", "*", "");
}

static void keys_are_found_by_name_alias_and_pattern(void **state)
{
    assert_ptr_equal(entry("count"), entry("page-count"));
    assert_ptr_equal(entry("pages"), entry("page-count"));
    assert_string_equal(entry("auth.addr./a/b.allow")->name, "auth.addr.*.allow");
    assert_null(option_find(table, "auth.addr..allow"));
    assert_null(option_find(table, "auth.addr.allow"));
    assert_null(option_find(table, "auth.addr.x.allowed"));
    assert_null(option_find(table, "Page-count"));
    assert_null(option_find(NULL, "x"));
}

static void parse_gives_defaults_and_then_what_is_given(void **state)
{
    SCOPED(dict_unref) struct dict *given = dict_new();
    struct all s = { .on = false };
    struct error err;

    assert_int_equal(dict_set_str(given, "pages", "9"), 0);
    assert_int_equal(dict_set_str(given, "text", "hello"), 0);
    assert_int_equal(dict_set_str(given, "unknown", "left alone"), 0);
    assert_int_equal(options_parse(table, given, &s, &err), 0);
    assert_true(s.on);
    assert_int_equal(s.count, 9);
    assert_int_equal(s.size, 32 << 20);
    assert_int_equal(s.i32, -1);
    assert_int_equal(s.colour, 1);
    assert_int_equal(s.mode, 0644);
    assert_true(s.free_space.is_percent && s.free_space.percent == 10);
    assert_string_equal(s.text, "hello");
    assert_string_equal(s.path, "/var/run");
    options_release(table, &s);
    assert_null(s.text);
    options_release(table, &s);
}

static void a_bad_value_fails_the_parse_with_its_sentence(void **state)
{
    SCOPED(dict_unref) struct dict *given = dict_new();
    struct all s = { .on = false };
    struct error err;

    assert_int_equal(dict_set_str(given, "count", "99"), 0);
    assert_int_equal(options_parse(table, given, &s, &err), -ERANGE);
    assert_string_equal(err.text, "\"99\" is out of range (option \"page-count\", 1 to 16)");
    assert_int_equal(s.count, 4);
    assert_int_equal(dict_set_gfid(given, "count", &gfid_root), 0);
    assert_int_equal(options_parse(table, given, &s, &err), -EINVAL);
    assert_string_equal(err.text, "the value of option \"count\" is not text");
    options_release(table, &s);
    assert_int_equal(options_parse(NULL, given, &s, &err), 0);
}

static void reconfigure_changes_the_live_ones_and_reports_the_others(void **state)
{
    SCOPED(dict_unref) struct dict *before = dict_new(), *after = dict_new();
    struct all s = { .on = false };
    bool needs_restart = true;

    assert_int_equal(dict_set_str(before, "page-count", "9"), 0);
    assert_int_equal(dict_set_str(before, "text", "old"), 0);
    assert_int_equal(options_parse(table, before, &s, NULL), 0);
    assert_int_equal(dict_set_str(after, "on", "no"), 0);
    assert_int_equal(options_reconfigure(table, before, after, &s, &needs_restart, NULL), 0);
    assert_false(needs_restart);
    assert_false(s.on);
    assert_int_equal(s.count, 4); /* back to the default */
    assert_null(s.text);
    assert_int_equal(dict_set_str(before, "ping", "42"), 0); /* spelt out, but no change */
    assert_int_equal(options_reconfigure(table, before, after, &s, &needs_restart, NULL), 0);
    assert_false(needs_restart);
    assert_int_equal(dict_set_str(after, "ping", "10"), 0);
    assert_int_equal(options_reconfigure(table, before, after, &s, &needs_restart, NULL), 0);
    assert_true(needs_restart);
    assert_int_equal(s.time_s, 42);
    options_release(table, &s);
}

static void reconfigure_with_a_bad_value_changes_nothing(void **state)
{
    SCOPED(dict_unref) struct dict *after = dict_new();
    struct all s = { .on = false };
    struct error err;
    bool needs_restart;

    assert_int_equal(options_parse(table, NULL, &s, NULL), 0);
    assert_int_equal(dict_set_str(after, "on", "off"), 0);
    assert_int_equal(dict_set_str(after, "ping", "soon"), 0);
    assert_int_equal(options_reconfigure(table, NULL, after, &s, &needs_restart, &err), -EINVAL);
    assert_true(s.on);
    options_release(table, &s);
}

static void lack_of_memory_fails_the_parse_and_leaks_nothing(void **state)
{
    SCOPED(dict_unref) struct dict *given = dict_new();
    struct mem_stats before, after;
    bool has_passed = false;

    assert_int_equal(dict_set_str(given, "text", "hello"), 0);
    mem_get_stats(&before);
    for (uint64_t n = 1; !has_passed; n++) {
        struct all s = { .on = false };
        mem_fail_at(n);
        int r = options_parse(table, given, &s, NULL);
        has_passed = mem_fail_at(0) > 0;
        assert_int_equal(r, has_passed ? 0 : -ENOMEM);
        options_release(table, &s);
    }
    mem_get_stats(&after);
    assert_int_equal(after.live_blocks, before.live_blocks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(booleans),
        cmocka_unit_test(whole_numbers),
        cmocka_unit_test(sizes),
        cmocka_unit_test(percents),
        cmocka_unit_test(times),
        cmocka_unit_test(other_types),
        cmocka_unit_test(keys_are_found_by_name_alias_and_pattern),
        cmocka_unit_test(parse_gives_defaults_and_then_what_is_given),
        cmocka_unit_test(a_bad_value_fails_the_parse_with_its_sentence),
        cmocka_unit_test(reconfigure_changes_the_live_ones_and_reports_the_others),
        cmocka_unit_test(reconfigure_with_a_bad_value_changes_nothing),
        cmocka_unit_test(lack_of_memory_fails_the_parse_and_leaks_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
