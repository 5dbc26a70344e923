/* The command line as tools of the field write it. */
#include "core/mem.h"
#include "mortarfs/cmdline.h"
#include "unit/unit.h"
#include <stdio.h>
#include <stdlib.h>

#define PARSE(c, err, ...)                                                    \
    ({                                                                        \
        char *argv_[] = { (char *)"/usr/sbin/glusterfs", __VA_ARGS__, NULL }; \
        cmdline_parse((c), (int)ARRAY_SIZE(argv_) - 1, argv_, (err));         \
    })

static const char *fuse_option(const struct cmdline *c, const char *key)
{
    const char *text = NULL;

    (void)dict_get_str(c->fuse_options, key, &text);
    return text ? text : "(none)";
}

static void mount_line_of_mount_glusterfs(void **state)
{
    struct cmdline c;
    struct error err = { "" };
    const char *value;

    assert_int_equal(PARSE(&c, &err, "--log-level=DEBUG", "--log-file=/tmp/x.log", "--attribute-timeout=0.5", "--acl",
                           "--use-readdirp=no", "--xlator-option=*dht.lookup-unhashed=yes", "--process-name", "fuse",
                           "--volfile-server=h1", "--volfile-server=h2", "--volfile-id=/vol", "/mnt/vol"),
                     0);
    assert_string_equal(c.program, "glusterfs");
    assert_true(cmdline_is_compat(&c));
    assert_int_equal(c.server_count, 2);
    assert_string_equal(c.servers[1], "h2");
    assert_string_equal(c.volfile_id, "/vol");
    assert_string_equal(c.mount_point, "/mnt/vol");
    assert_string_equal(c.log_level, "DEBUG");
    assert_string_equal(c.process_name, "fuse");
    assert_string_equal(fuse_option(&c, "attribute-timeout"), "0.5");
    assert_string_equal(fuse_option(&c, "acl"), "on");
    assert_string_equal(fuse_option(&c, "use-readdirp"), "no");
    assert_int_equal(dict_get_str(c.xlator_options, "*dht.lookup-unhashed", &value), 0);
    assert_string_equal(value, "yes");
    assert_int_equal(c.server_port, 24007);
    cmdline_release(&c);
}

static void brick_line_of_glusterd(void **state)
{
    struct cmdline c;
    struct error err = { "" };
    const char *value;

    assert_int_equal(PARSE(&c, &err, "-s", "h1", "--volfile-id", "v.h1.bricks-b1", "-p", "/run/b1.pid", "-S",
                           "/run/gluster/0123456789abcdef.socket", "--brick-name", "/bricks/b1", "-l",
                           "/var/log/b1.log", "--xlator-option", "*-posix.glusterd-uuid=8d2b", "--process-name",
                           "brick", "--brick-port", "49152", "--xlator-option", "v-server.listen-port=49152"),
                     0);
    assert_null(c.mount_point);
    assert_string_equal(c.brick_name, "/bricks/b1");
    assert_int_equal(c.brick_port, 49152);
    assert_string_equal(c.pid_file, "/run/b1.pid");
    assert_int_equal(dict_get_str(c.xlator_options, "v-server.listen-port", &value), 0);
    assert_string_equal(value, "49152");
    cmdline_release(&c);
}

static void letters_take_their_value_attached_or_apart(void **state)
{
    struct cmdline c;
    struct error err = { "" };

    assert_int_equal(PARSE(&c, &err, "-N", "-f/etc/a.vol", "-LWARNING", "-l", "-", "/mnt"), 0);
    assert_true(c.no_daemon);
    assert_string_equal(c.volfile, "/etc/a.vol");
    assert_string_equal(c.log_level, "WARNING");
    assert_string_equal(c.log_file, "-");
    cmdline_release(&c);
}

static void relative_paths_become_absolute(void **state)
{
    struct cmdline c;
    struct error err = { "" };

    assert_int_equal(PARSE(&c, &err, "-f", "a.vol", "mnt"), 0);
    assert_true(c.volfile[0] == '/');
    assert_true(c.mount_point[0] == '/');
    assert_non_null(strstr(c.volfile, "/a.vol"));
    cmdline_release(&c);
}

static void debug_stays_in_the_foreground(void **state)
{
    struct cmdline c;
    struct error err = { "" };

    assert_int_equal(PARSE(&c, &err, "--debug", "-f", "/a.vol"), 0);
    assert_true(c.no_daemon);
    cmdline_release(&c);
}

static void what_has_no_effect_is_accepted(void **state)
{
    struct cmdline c;
    struct error err = { "" };

    assert_int_equal(PARSE(&c, &err, "-f", "/a.vol", "--event-history=off", "--mem-accounting", "--global-threading",
                           "--reader-thread-count=4", "--io-engine=io_uring", "--dump-fuse", "/tmp/d", "--brick-mux"),
                     0);
    assert_null(c.mount_point);
    cmdline_release(&c);
}

static void what_has_no_effect_is_named_for_the_log(void **state)
{
    struct cmdline c;
    struct error err = { "" };

    assert_int_equal(PARSE(&c, &err, "-f", "/a.vol", "--event-history=off", "--dump-fuse", "/tmp/d", "--io-engine",
                           "io_uring", "--root-squash"),
                     0);
    assert_int_equal(c.skipped_count, 2);
    assert_string_equal(c.skipped[0], "dump-fuse");
    assert_string_equal(c.skipped[1], "io-engine");
    cmdline_release(&c);
}

static void questions_need_no_volume_file(void **state)
{
    struct cmdline c;
    struct error err = { "" };

    assert_int_equal(PARSE(&c, &err, "--version"), 0);
    assert_true(c.wants_version);
    cmdline_release(&c);
    assert_int_equal(PARSE(&c, &err, "--print-logdir"), 0);
    assert_string_equal(c.print, "/var/log/glusterfs");
    cmdline_release(&c);
    assert_int_equal(PARSE(&c, &err, "--print-statedumpdir"), 0);
    assert_string_equal(c.print, "/var/run/gluster");
    cmdline_release(&c);
}

#define REFUSED(sentence, ...)                                     \
    do {                                                           \
        struct cmdline c_;                                         \
        struct error err_ = { "" };                                \
        assert_int_equal(PARSE(&c_, &err_, __VA_ARGS__), -EINVAL); \
        assert_string_equal(err_.text, sentence);                  \
        cmdline_release(&c_);                                      \
    } while (0)

static void mistakes_get_a_sentence(void **state)
{
    REFUSED("there is no option --volfil; \"glusterfs --help\" lists them", "--volfil=/a");
    REFUSED("there is no option -x; \"glusterfs --help\" lists them", "-x");
    REFUSED("option --volfile-id wants a value: --volfile-id=ID", "-s", "h", "--volfile-id");
    REFUSED("\"12x\" is not a number (option --volfile-server-port)", "--volfile-server-port=12x");
    REFUSED("--xlator-option wants PATTERN.KEY=VALUE, not \"abc\"", "--xlator-option", "abc");
    REFUSED("there is no log level \"LOUD\" (NONE CRITICAL ERROR WARNING INFO DEBUG TRACE)", "-f", "/a", "-L", "LOUD");
    REFUSED("there is no transport \"rdma\" (tcp, unix); RDMA is gone", "-s", "h", "--volfile-id=v",
            "--volfile-server-transport=rdma");
    REFUSED("both a volume file (/a) and a server for it (h): give one", "-f", "/a", "-s", "h", "--volfile-id=v");
    REFUSED("--volfile-server wants --volfile-id as well: the name of the volume", "-s", "h", "/mnt");
    REFUSED("no volume file: give --volfile=FILE, or --volfile-server=HOST and --volfile-id=VOLUME", "/mnt");
    REFUSED("one mount point is enough: \"/a\" and \"/b\"", "-f", "/v", "/a", "/b");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mount_line_of_mount_glusterfs),
        cmocka_unit_test(brick_line_of_glusterd),
        cmocka_unit_test(letters_take_their_value_attached_or_apart),
        cmocka_unit_test(relative_paths_become_absolute),
        cmocka_unit_test(debug_stays_in_the_foreground),
        cmocka_unit_test(what_has_no_effect_is_accepted),
        cmocka_unit_test(what_has_no_effect_is_named_for_the_log),
        cmocka_unit_test(questions_need_no_volume_file),
        cmocka_unit_test(mistakes_get_a_sentence),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
