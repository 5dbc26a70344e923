/* XML and JSON that mortar-heal writes. */
#include "mortarheal/out.h"
#include "unit/unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* What fn writes to standard output. */
static void writes(void (*fn)(struct out *o), bool is_json, const char *want)
{
    char have[1024] = "", path[] = "/tmp/mortar-out.XXXXXX";
    int file = mkstemp(path), kept;
    struct out o;
    ssize_t n;

    assert_true(file >= 0);
    (void)fflush(stdout);
    kept = dup(STDOUT_FILENO);
    assert_true(dup2(file, STDOUT_FILENO) >= 0);
    out_begin(&o, is_json);
    fn(&o);
    out_end(&o);
    (void)fflush(stdout);
    assert_true(dup2(kept, STDOUT_FILENO) >= 0);
    n = pread(file, have, sizeof(have) - 1, 0);
    close(file);
    close(kept);
    unlink(path);
    assert_true(n >= 0);
    assert_string_equal(want, have);
}

static void one_brick(struct out *o)
{
    out_open_list(o, "bricks");
    out_open_with(o, "brick", "hostUuid", "-");
    out_text(o, "name", "h:/<b> & \"c\"\n");
    out_number(o, "n", 3);
    out_close(o, "brick");
    out_close_list(o);
    out_text(o, "empty", "");
}

static void xml_is_indented_and_escaped(void **state)
{
    writes(one_brick, false,
           "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n"
           "<cliOutput>\n"
           "  <brick hostUuid=\"-\">\n"
           "    <name>h:/&lt;b&gt; &amp; &quot;c&quot;?</name>\n"
           "    <n>3</n>\n"
           "  </brick>\n"
           "  <empty/>\n"
           "</cliOutput>\n");
}

static void json_has_commas_where_they_belong(void **state)
{
    writes(one_brick, true,
           "{\n"
           "  \"bricks\": [\n"
           "    {\n"
           "      \"hostUuid\": \"-\",\n"
           "      \"name\": \"h:/<b> & \\\"c\\\"\\u000a\",\n"
           "      \"n\": 3\n"
           "    }\n"
           "  ],\n"
           "  \"empty\": \"\"\n"
           "}\n");
}

static void odd_bytes(struct out *o)
{
    out_text(o, "name", "caf\xc3\xa9 \xff\xe2\x82 \xf0\x9f\x98\x80");
}

static void bytes_that_are_no_utf8_become_a_sign_for_that(void **state)
{
    writes(odd_bytes, true,
           "{\n  \"name\": \"caf\xc3\xa9 \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd \xf0\x9f\x98\x80\"\n}\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(xml_is_indented_and_escaped),
        cmocka_unit_test(json_has_commas_where_they_belong),
        cmocka_unit_test(bytes_that_are_no_utf8_become_a_sign_for_that),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
