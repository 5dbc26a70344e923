/* mortar-heal's command line. */
#include "mortarheal/args.h"
#include "unit/unit.h"

static int parse(struct args *a, struct error *err, char **words)
{
    int count = 0;

    while (words[count])
        count++;
    return args_parse(a, count, words, err);
}

#define PARSE(a, err, ...) parse((a), (err), (char *[]) { "mortar-heal", __VA_ARGS__, NULL })

static void gives(enum verb verb, const char *brick, const char *file, char **words)
{
    struct args a;
    struct error err = { "" };

    assert_int_equal(0, parse(&a, &err, words));
    assert_int_equal(verb, a.verb);
    if (brick)
        assert_string_equal(brick, a.brick);
    else
        assert_null(a.brick);
    if (file)
        assert_string_equal(file, a.file);
    else
        assert_null(a.file);
    args_release(&a);
}

#define GIVES(verb, brick, file, ...) \
    gives((verb), (brick), (file), (char *[]) { "mortar-heal", "-f", "v", __VA_ARGS__, NULL })

static void refused(const char *why, char **words)
{
    struct args a;
    struct error err = { "" };

    assert_int_equal(-EINVAL, parse(&a, &err, words));
    if (!strstr(err.text, why))
        fail_msg("\"%s\" is not in \"%s\"", why, err.text);
    args_release(&a);
}

#define REFUSED(why, ...) refused((why), (char *[]) { "mortar-heal", __VA_ARGS__, NULL })

static void words_of_commands(void **state)
{
    GIVES(VERB_INDEX, NULL, NULL, NULL);
    GIVES(VERB_INFO, NULL, NULL, "info");
    GIVES(VERB_SUMMARY, NULL, NULL, "info", "summary");
    GIVES(VERB_SPLIT_BRAIN, NULL, NULL, "info", "split-brain");
    GIVES(VERB_STATISTICS, NULL, NULL, "statistics");
    GIVES(VERB_COUNT, NULL, NULL, "statistics", "heal-count");
    GIVES(VERB_FULL, NULL, NULL, "full");
    GIVES(VERB_STOP, NULL, NULL, "full", "stop");
    GIVES(VERB_WATCH, NULL, NULL, "progress");
    GIVES(VERB_SOURCE_BRICK, "h:/b", NULL, "resolve", "source-brick", "h:/b");
    GIVES(VERB_SOURCE_BRICK, "h:/b", "/f", "resolve", "source-brick", "h:/b", "/f");
    GIVES(VERB_BIGGER_FILE, NULL, "/f", "split-brain", "bigger-file", "/f");
    GIVES(VERB_LATEST_MTIME, NULL, "gfid:x", "resolve", "latest-mtime", "gfid:x");
    GIVES(VERB_MARK_BRICK, "h:/b", NULL, "mark-brick", "h:/b");
}

static void options(void **state)
{
    struct args a;
    struct error err = { "" };

    assert_int_equal(0, PARSE(&a, &err, "-s", "h1", "--volfile-server=h2", "--volfile-id", "web", "--json", "-v",
                              "--volfile-server-port=7", "--socket=/s", "info"));
    assert_int_equal(2, a.c.server_count);
    assert_string_equal("h2", a.c.servers[1]);
    assert_string_equal("web", a.c.volfile_id);
    assert_int_equal(FORMAT_JSON, a.format);
    assert_true(a.is_long);
    assert_int_equal(7, a.c.server_port);
    assert_string_equal("/s", a.socket);
    args_release(&a);
    assert_int_equal(0, PARSE(&a, &err, "-fvol", "--", "info"));
    assert_string_equal("vol", a.c.volfile);
    args_release(&a);
    assert_int_equal(0, PARSE(&a, &err, "--help"));
    assert_true(a.wants_help);
    args_release(&a);
}

static void mistakes_are_named(void **state)
{
    REFUSED("no volume file", "info");
    REFUSED("both a volume file (v) and a server", "-f", "v", "-s", "h", "--volfile-id", "x");
    REFUSED("--volfile-id as well", "-s", "h", "info");
    REFUSED("no command \"heal\"", "-f", "v", "heal");
    REFUSED("usage: mortar-heal ... resolve bigger-file FILE", "-f", "v", "resolve", "bigger-file");
    REFUSED("usage: mortar-heal ... info", "-f", "v", "info", "nonsense");
    REFUSED("no option --nonsense", "-f", "v", "--nonsense=1");
    REFUSED("wants a value", "-f", "v", "--socket");
    REFUSED("not a number", "-f", "v", "--wait=soon");
    REFUSED("no log level", "-f", "v", "--log-level=LOUD");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_of_commands),
        cmocka_unit_test(options),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
