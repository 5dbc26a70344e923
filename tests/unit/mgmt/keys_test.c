/* Keys of `volume set`: found by full and short name; wrong values get GlusterFS's sentences. */
#include "unit/unit.h"
#include "mgmt/keys.h"

static void full_and_unambiguous_short_names_are_found(void **state)
{
    assert_string_equal("cluster.quorum-type", volume_key_find("cluster.quorum-type")->name);
    assert_string_equal("cluster.self-heal-daemon", volume_key_find("self-heal-daemon")->name);
    assert_null(volume_key_find("eager-lock")); /* cluster.eager-lock, disperse.eager-lock */
    assert_null(volume_key_find("nosuch"));
    assert_null(volume_key_find("cluster.nosuch"));
    assert_null(volume_key_find(""));
}

static void nearest_keys_are_offered(void **state)
{
    assert_string_equal("cluster.quorum-type", volume_key_nearest("cluster.quorom-type"));
    assert_string_equal("quorum-type", volume_key_nearest("quorum-tpye"));
    assert_null(volume_key_nearest("zzzzzzzzzzzz"));
}

static void every_default_is_a_value_of_its_key(void **state)
{
    const struct volume_key *key;
    unsigned count = 0;

    for (size_t i = 0; (key = volume_key_at(i)); i++) {
        struct error err = { "" };

        count++;
        assert_non_null(strchr(key->name, '.'));
        /* What is shown while they are not set cannot be set: "off", and a template with the path of each brick. */
        if (strcmp(key->name, "cluster.server-quorum-type") == 0 || (key->def && strstr(key->def, "{{")))
            continue;
        if (key->def && volume_key_check(volume_key_find(key->name), key->def, &err) < 0)
            fail_msg("%s: %s", key->name, err.text);
        if (key->kind == KEY_WORDS)
            assert_non_null(key->words);
    }
    assert_int_equal(395, count);
}

static void expect_good(const char *key, const char *value)
{
    struct error err = { "" };

    if (volume_key_check(volume_key_find(key), value, &err) < 0)
        fail_msg("%s %s: %s", key, value, err.text);
}

static void expect_bad(const char *key, const char *value, const char *sentence)
{
    struct error err = { "" };

    assert_true(volume_key_check(volume_key_find(key), value, &err) < 0);
    assert_string_equal(sentence, err.text);
}

static void good_values_pass(void **state)
{
    expect_good("cluster.eager-lock", "ON");
    expect_good("performance.io-thread-count", "64");
    expect_good("network.ping-timeout", "1m");
    expect_good("performance.cache-size", "64MB");
    expect_good("storage.reserve", "5");
    expect_good("storage.reserve", "5%");
    expect_good("storage.reserve", "5GB");
    expect_good("cluster.quorum-type", "fixed");
    expect_good("auth.allow", "192.168.*,10.0.0.0/8,host.example.com");
    expect_good("auth.allow", "/dir(10.0.0.1|10.0.0.2),/other(::1)");
}

static void wrong_values_are_refused_with_a_sentence(void **state)
{
    expect_bad("cluster.eager-lock", "maybe", "option eager-lock maybe: 'maybe' is not a valid boolean value");
    expect_bad("performance.io-thread-count", "100", "'100' in 'option thread-count 100' is out of range [1 - 64]");
    expect_bad("storage.owner-uid", "-5", "'-5' in 'option brick-uid -5' is smaller than minimum value '-1'");
    expect_bad("performance.io-thread-count", "abc", "invalid number format \"abc\" in option \"thread-count\"");
    expect_bad("performance.io-thread-count", "", "invalid number format \"\" in option \"thread-count\"");
    expect_bad("cluster.quorum-type", "wrong",
               "option quorum-type wrong: 'wrong' is not valid (possible options are none, auto, fixed.)");
    expect_bad("cluster.quorum-type", "aut",
               "option quorum-type aut: 'aut' is not valid (possible options are none, auto, fixed.)");
    expect_bad("cluster.quorum-type", "uto",
               "option quorum-type uto: 'uto' is not valid (possible options are none, auto, fixed.)");
    expect_bad("cluster.server-quorum-ratio", "101%",
               "'101.000000' in 'option server-quorum-ratio 101%' is out of range [0 - 100]");
    expect_bad("cluster.heal-timeout", "3", "'3' in 'option heal-timeout 3' is out of range [5 - 2147483647]");
    expect_bad("auth.allow", "a;b", "option allow a;b: 'a;b' is not a valid internet-address-list");
    expect_bad("auth.allow", "*.example.com",
               "option allow *.example.com: '*.example.com' is not a valid internet-address-list");
    expect_bad("server.statedump-path", "relative",
               "option statedump-path relative: 'relative' is not an absolute path name");
    expect_bad("server.statedump-path", "/a\n/b", "option statedump-path: the value holds a newline");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_and_unambiguous_short_names_are_found), cmocka_unit_test(nearest_keys_are_offered),
        cmocka_unit_test(every_default_is_a_value_of_its_key),        cmocka_unit_test(good_values_pass),
        cmocka_unit_test(wrong_values_are_refused_with_a_sentence),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
