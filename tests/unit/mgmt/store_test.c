/* GlusterFS's store: what its daemon wrote is read, and printed again it is the same. */
#include "golden.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static char *read_file(const char *path)
{
    char *text = mem_zalloc(65536);
    int fd = open(path, O_RDONLY);

    assert_true(fd >= 0);
    assert_true(read(fd, text, 65535) >= 0);
    close(fd);
    return text;
}

static void mirror_is_read(void **state)
{
    SCOPED(volume_free) struct volume *v = golden_volume("arb");

    assert_int_equal(VOLUME_REPLICATE, v->kind);
    assert_int_equal(VOLUME_STARTED, v->state);
    assert_int_equal(3, v->brick_count);
    assert_int_equal(3, v->replica_count);
    assert_int_equal(1, v->arbiter_count);
    assert_false(volume_is_arbiter(v, 1));
    assert_true(volume_is_arbiter(v, 2));
    assert_string_equal("198.18.0.1", v->bricks[2].host);
    assert_string_equal("/bricks/arb/b3", v->bricks[2].path);
    assert_string_equal("arb-client-2", v->bricks[2].id);
    assert_string_equal("on", volume_option_get(v, "cluster.granular-entry-heal"));
}

static void what_was_read_prints_the_same(void **state)
{
    static const char *const volumes[] = { "one", "rep", "rep3", "arb", "distrep", "opts" };

    for (size_t i = 0; i < sizeof(volumes) / sizeof(volumes[0]); i++) {
        SCOPED(volume_free) struct volume *v = golden_volume(volumes[i]);
        SCOPED_FREE char *path = golden_path(volumes[i], "info");
        SCOPED_FREE char *want = read_file(path);
        SCOPED_FREE char *got = store_print_info(v);

        assert_string_equal(want, got);
        for (unsigned b = 0; b < v->brick_count; b++) {
            SCOPED_FREE char *name = store_brick_file(&v->bricks[b]);
            SCOPED_FREE char *part = mem_printf("bricks/%s", name);
            SCOPED_FREE char *file = golden_path(volumes[i], part);
            SCOPED_FREE char *brick_want = read_file(file);
            SCOPED_FREE char *brick_got = store_print_brick(&v->bricks[b]);

            assert_string_equal(brick_want, brick_got);
        }
    }
}

/* ---- broken stores: `info` with one brick, lines changed ---- */

static void write_file(const char *folder, const char *name, const char *text)
{
    SCOPED_FREE char *path = mem_printf("%s/%s", folder, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(strlen(text), write(fd, text, strlen(text)));
    close(fd);
}

#define GOOD_ID    "volume-id=46e34529-a634-427e-8597-6144721a0dd1\n"
#define GOOD_BRICK "uuid=87dd9d68-ac44-42d1-86ad-cbb9aae478cf\nhostname=h\npath=/b\n"

static void expect_refusal(const char *info, const char *brick, const char *sentence)
{
    char folder[] = "/tmp/store-XXXXXX";
    SCOPED_FREE char *bricks = NULL;
    struct volume *v = NULL;
    struct error err = { "" };

    assert_non_null(mkdtemp(folder));
    bricks = mem_printf("%s/bricks", folder);
    assert_int_equal(0, mkdir(bricks, 0700));
    write_file(folder, "info", info);
    if (brick)
        write_file(bricks, "h:-b", brick);
    assert_true(store_read_volume(folder, "v", &v, &err) < 0);
    assert_null(v);
    if (!strstr(err.text, sentence))
        fail_msg("\"%s\" does not say \"%s\"", err.text, sentence);
    SCOPED_FREE char *command = mem_printf("rm -r %s", folder);
    assert_int_equal(0, system(command));
}

static void broken_stores_are_refused_with_a_sentence(void **state)
{
    expect_refusal("type=0\ncount=1\n" GOOD_ID "nonsense\n", NULL, "info:4: \"nonsense\" is not a line KEY=VALUE");
    expect_refusal("type=0\ncount=x\n", NULL, "info:2: \"x\" is no value for count");
    expect_refusal("type=0\ncount=-1\n", NULL, "info:2: \"-1\" is no value for count");
    expect_refusal("type=0\ncount=1\nvolume-id=12\n", NULL, "info:3: \"12\" is no value for volume-id");
    expect_refusal("type=0\ncount=1\nbrick-0=h:-b\n", GOOD_BRICK, "volume-id is missing");
    expect_refusal("type=0\ncount=1\n" GOOD_ID, NULL, "count says 1 bricks, 0 are listed");
    expect_refusal("type=0\ncount=1\n" GOOD_ID "brick-0=h:-b\n", NULL, "bricks/h:-b: No such file or directory");
    expect_refusal("type=0\ncount=1\n" GOOD_ID "brick-0=../h:-b\n", NULL, "cannot be the name of a brick's file");
    expect_refusal("type=0\ncount=1\n" GOOD_ID "brick-0=h:-b\n", "hostname=h\npath=/b\n", "uuid, hostname or path");
    expect_refusal("type=1\ncount=1\n" GOOD_ID "brick-0=h:-b\n", GOOD_BRICK, "stripe, tier");
    expect_refusal("type=2\ncount=1\nreplica_count=2\n" GOOD_ID "brick-0=h:-b\n", GOOD_BRICK, "do not make sets of 2");
    expect_refusal("type=2\ncount=1\nreplica_count=0\n" GOOD_ID "brick-0=h:-b\n", GOOD_BRICK, "do not make sets of 0");
    expect_refusal("type=0\nstatus=7\ncount=1\n" GOOD_ID "brick-0=h:-b\n", GOOD_BRICK, "status 7 is unknown");
    expect_refusal("type=0\ntransport-type=1\ncount=1\n" GOOD_ID "brick-0=h:-b\n", GOOD_BRICK, "rdma is gone");
}

static void options_set_last_come_first(void **state)
{
    SCOPED(volume_free) struct volume *v = volume_new("v");

    assert_int_equal(0, settings_set(&v->settings, "a.x", "1"));
    assert_int_equal(0, settings_set(&v->settings, "a.y", "2"));
    assert_int_equal(0, settings_set(&v->settings, "a.x", "3"));
    assert_int_equal(2, v->settings.count);
    assert_string_equal("a.x", v->settings.list[0].key);
    assert_string_equal("3", v->settings.list[0].value);
    assert_true(settings_reset(&v->settings, "a.y"));
    assert_false(settings_reset(&v->settings, "a.y"));
    assert_null(volume_option_get(v, "a.y"));
    assert_int_equal(1, v->settings.count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mirror_is_read),
        cmocka_unit_test(what_was_read_prints_the_same),
        cmocka_unit_test(broken_stores_are_refused_with_a_sentence),
        cmocka_unit_test(options_set_last_come_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
