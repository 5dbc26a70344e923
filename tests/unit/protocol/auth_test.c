/* Who may come in. */
#include "protocol/server/server_internal.h"
#include "unit/unit.h"
#include <stdarg.h>

/* Pairs of option and value, then NULL. */
static struct dict *options(const char *key, ...)
{
    struct dict *d = dict_new();
    va_list args;

    va_start(args, key);
    while (key) {
        assert_int_equal(0, dict_set_str(d, key, va_arg(args, const char *)));
        key = va_arg(args, const char *);
    }
    va_end(args);
    return d;
}

static bool may(const struct dict *d, const char *host)
{
    struct auth_question q = { .options = d, .brick = "b", .host = host, .port = 1000, .allows_insecure = true };
    bool is_trusted;

    return auth_check(&q, &is_trusted);
}

static void without_options_nobody_comes_in(void **state)
{
    SCOPED(dict_unref) struct dict *d = options(NULL);

    assert_false(may(d, "10.0.0.1"));
}

static void addresses_match_by_pattern_prefix_and_text(void **state)
{
    SCOPED(dict_unref)
    struct dict *d = options("auth.addr.b.allow", "192.168.*,10.0.0.0/9, fe80::/10,1.2.3.4,localhost", NULL);

    assert_true(may(d, "192.168.7.8"));
    assert_true(may(d, "10.127.255.255"));
    assert_false(may(d, "10.128.0.0"));
    assert_true(may(d, "fe80::1"));
    assert_false(may(d, "fec0::1"));
    assert_true(may(d, "1.2.3.4"));
    assert_false(may(d, "1.2.3.5"));
    assert_true(may(d, "127.0.0.1"));
}

static void host_names_match_what_they_stand_for(void **state)
{
    SCOPED(dict_unref) struct dict *d = options("auth.addr.b.allow", "web1.example,10.0.0.1", NULL);
    SCOPED(dict_unref) struct dict *hosts = options("web1.example/192.0.2.7", "1", NULL);
    struct auth_question q = { .options = d, .brick = "b", .host = "192.0.2.7", .port = 1, .hosts = hosts };
    bool is_trusted;

    assert_true(auth_check(&q, &is_trusted));
    q.host = "192.0.2.8";
    assert_false(auth_check(&q, &is_trusted));
}

static void a_rejection_wins(void **state)
{
    SCOPED(dict_unref) struct dict *d = options("auth.addr.b.allow", "*", "auth.addr.b.reject", "10.*", NULL);
    SCOPED(dict_unref) struct dict *negated = options("auth.addr.b.allow", "!10.0.0.1,*", NULL);

    assert_true(may(d, "11.0.0.1"));
    assert_false(may(d, "10.0.0.1"));
    assert_false(may(negated, "10.0.0.1"));
    assert_true(may(negated, "10.0.0.2"));
}

static void the_names_of_old_files_work(void **state)
{
    SCOPED(dict_unref) struct dict *d = options("auth.ip.b.allow", "127.0.0.1", NULL);

    assert_true(may(d, "127.0.0.1"));
    assert_false(may(d, "127.0.0.2"));
}

static void options_of_another_section_do_not_count(void **state)
{
    SCOPED(dict_unref) struct dict *d = options("auth.addr.c.allow", "*", NULL);

    assert_false(may(d, "127.0.0.1"));
}

static void unprivileged_ports_count_when_they_must_not(void **state)
{
    SCOPED(dict_unref) struct dict *d = options("auth.addr.b.allow", "*", NULL);
    struct auth_question q = { .options = d, .brick = "b", .host = "1.1.1.1", .port = 1024 };
    bool is_trusted;

    assert_false(auth_check(&q, &is_trusted));
    q.port = 1023;
    assert_true(auth_check(&q, &is_trusted));
    q.port = 1024;
    q.allows_insecure = true;
    assert_true(auth_check(&q, &is_trusted));
}

static void a_user_needs_the_password(void **state)
{
    SCOPED(dict_unref)
    struct dict *d = options("auth.login.b.allow", "ann,bob", "auth.login.ann.password", "secret", "auth.addr.b.allow",
                             "10.*", NULL);
    struct auth_question q = { .options = d, .brick = "b", .host = "1.1.1.1", .username = "ann", .password = "secret" };
    bool is_trusted;

    assert_true(auth_check(&q, &is_trusted));
    assert_true(is_trusted);
    q.password = "wrong";
    assert_false(auth_check(&q, &is_trusted));
    q.password = NULL;
    q.host = "10.0.0.1";
    assert_false(auth_check(&q, &is_trusted));
    q.username = "bob"; /* has no password option */
    assert_false(auth_check(&q, &is_trusted));
    q.username = "eve"; /* is not listed: her address decides */
    assert_true(auth_check(&q, &is_trusted));
    assert_false(is_trusted);
    q.is_strict = true;
    assert_false(auth_check(&q, &is_trusted));
}

static void directories_have_addresses_of_their_own(void **state)
{
    SCOPED(dict_unref) struct dict *d = options("auth.addr.b.allow", "/web(10.0.0.1|10.0.1.*),/pub,!10.9.9.9", NULL);
    struct auth_question q = { .options = d, .brick = "b", .host = "10.0.1.7", .port = 1, .subdir = "/web" };
    bool is_trusted;

    assert_true(auth_check(&q, &is_trusted));
    q.host = "10.0.2.7";
    assert_false(auth_check(&q, &is_trusted));
    q.subdir = "/pub";
    assert_true(auth_check(&q, &is_trusted));
    q.subdir = NULL;
    assert_false(auth_check(&q, &is_trusted));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_options_nobody_comes_in),
        cmocka_unit_test(addresses_match_by_pattern_prefix_and_text),
        cmocka_unit_test(host_names_match_what_they_stand_for),
        cmocka_unit_test(a_rejection_wins),
        cmocka_unit_test(the_names_of_old_files_work),
        cmocka_unit_test(options_of_another_section_do_not_count),
        cmocka_unit_test(unprivileged_ports_count_when_they_must_not),
        cmocka_unit_test(a_user_needs_the_password),
        cmocka_unit_test(directories_have_addresses_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
