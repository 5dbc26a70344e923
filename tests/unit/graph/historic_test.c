/* Volume files of people and of all GlusterFS releases: every type is known, hand-written and generated files load. */
#include "unit/graph/test_graph.h"
#include <stdio.h>

/* Stand-ins for what would need a disk or a network; they take any option. */
static const struct option any_options[] = { OPT_ANY("*"), OPT_END };

#define STAND_IN(name_, type_, alias_, leaf_)                                          \
    static const struct translator_class name_ = {                                     \
        .type = type_, .aliases = { alias_ }, .options = any_options, .is_leaf = leaf_ \
    }

STAND_IN(client_class, "protocol/client", NULL, true);
STAND_IN(server_class, "protocol/server", NULL, false);
STAND_IN(posix_class, "storage/posix", NULL, true);
STAND_IN(replicate_class, "cluster/replicate", "cluster/afr", false);
STAND_IN(locks_class, "features/locks", "features/posix-locks", false);
STAND_IN(index_class, "features/index", NULL, false);

static const struct translator_class *const stand_ins[] = { &client_class,    &server_class, &posix_class,
                                                            &replicate_class, &locks_class,  &index_class };

static bool is_stand_in(const char *type)
{
    for (unsigned i = 0; i < ARRAY_SIZE(stand_ins); i++) {
        if (strcmp(stand_ins[i]->type, type) == 0)
            return true;
    }
    return false;
}

static void use_stand_ins(struct test *t)
{
    unsigned count = 0;

    for (unsigned i = 0; i < ARRAY_SIZE(stand_ins); i++)
        t->classes[count++] = stand_ins[i];
    for (class_list c = all_classes; *c; c++) {
        if (!is_stand_in((*c)->type))
            t->classes[count++] = *c;
    }
    t->classes[count] = NULL;
}

static const char client_2008[] = "volume brick1\n"
                                  "  type protocol/client\n"
                                  "  option transport-type tcp/client\n"
                                  "  option remote-host 10.8.1.9\n"
                                  "  option remote-subvolume brick\n"
                                  "end-volume\n"
                                  "\n"
                                  "volume brick2\n"
                                  "  type protocol/client\n"
                                  "  option transport-type tcp/client\n"
                                  "  option remote-host 10.8.1.10\n"
                                  "  option remote-subvolume brick\n"
                                  "end-volume\n"
                                  "\n"
                                  "volume afr\n"
                                  "  type cluster/afr\n"
                                  "  subvolumes brick1 brick2\n"
                                  "end-volume\n"
                                  "\n"
                                  "volume writebehind\n"
                                  "  type performance/write-behind\n"
                                  "  option aggregate-size 0MB\n"
                                  "  option flush-behind off\n"
                                  "  subvolumes afr\n"
                                  "end-volume\n"
                                  "\n"
                                  "volume readahead\n"
                                  "  type performance/read-ahead\n"
                                  "  option page-size 128kB\n"
                                  "  option page-count 4\n"
                                  "  option force-atime-update off\n"
                                  "  subvolumes writebehind\n"
                                  "end-volume\n";

static const char server_2008[] = "volume posix\n"
                                  "  type storage/posix\n"
                                  "  option directory /gfsvol/data\n"
                                  "end-volume\n"
                                  "\n"
                                  "volume plocks\n"
                                  "  type features/posix-locks\n"
                                  "  subvolumes posix\n"
                                  "end-volume\n"
                                  "\n"
                                  "volume writebehind\n"
                                  "  type performance/write-behind\n"
                                  "  option flush-behind off   # 'off' was the default then\n"
                                  "  subvolumes plocks\n"
                                  "end-volume\n"
                                  "\n"
                                  "volume readahead\n"
                                  "  type performance/read-ahead\n"
                                  "  option page-size 128kB\n"
                                  "  option page-count 4\n"
                                  "  option force-atime-update off\n"
                                  "  subvolumes writebehind\n"
                                  "end-volume\n"
                                  "\n"
                                  "volume brick\n"
                                  "  type performance/io-threads\n"
                                  "  option thread-count 4\n"
                                  "  option cache-size 64MB\n"
                                  "  subvolumes readahead\n"
                                  "end-volume\n"
                                  "\n"
                                  "volume server\n"
                                  "  type protocol/server\n"
                                  "  option transport-type tcp/server\n"
                                  "  subvolumes brick\n"
                                  "  option auth.ip.brick.allow 10.8.1.*,127.0.0.1\n"
                                  "end-volume\n";

FIBER_TEST(the_hand_written_client_file_of_2008_loads)
{
    use_stand_ins(t);
    test_build(t, client_2008);
    assert_int_equal(5, t->graph->count);
    assert_string_equal("readahead", t->graph->root->name);
    assert_int_equal(2, graph_find(t->graph, "afr")->child_count);
}

FIBER_TEST(the_hand_written_server_file_of_2008_loads)
{
    const char *text = NULL;

    use_stand_ins(t);
    test_build(t, server_2008);
    assert_int_equal(6, t->graph->count);
    assert_string_equal("server", t->graph->root->name);
    dict_get_str(graph_find(t->graph, "writebehind")->options, "flush-behind", &text);
    assert_string_equal("off", text);
    dict_get_str(t->graph->root->options, "auth.ip.brick.allow", &text);
    assert_string_equal("10.8.1.*,127.0.0.1", text);
}

/* As glusterd 10.3 writes them. */
static const char client_10[] =
    "volume rep-client-0\n type protocol/client\n option send-gids true\n"
    " option remote-subvolume /bricks/r1\n option remote-host 198.18.2.1\nend-volume\n"
    "volume rep-client-1\n type protocol/client\n option send-gids true\n"
    " option remote-subvolume /bricks/r2\n option remote-host 198.18.2.1\nend-volume\n"
    "volume rep-replicate-0\n type cluster/replicate\n option use-anonymous-inode yes\n"
    " option use-compound-fops off\n option granular-entry-heal on\n"
    " option afr-pending-xattr rep-client-0,rep-client-1\n"
    " subvolumes rep-client-0 rep-client-1\nend-volume\n"
    "volume rep-dht\n type cluster/distribute\n option force-migration off\n"
    " option lock-migration off\n subvolumes rep-replicate-0\nend-volume\n"
    "volume rep-utime\n type features/utime\n option noatime on\n subvolumes rep-dht\nend-volume\n"
    "volume rep-write-behind\n type performance/write-behind\n subvolumes rep-utime\nend-volume\n"
    "volume rep-open-behind\n type performance/open-behind\n"
    " subvolumes rep-write-behind\nend-volume\n"
    "volume rep-quick-read\n type performance/quick-read\n subvolumes rep-open-behind\nend-volume\n"
    "volume rep-md-cache\n type performance/md-cache\n subvolumes rep-quick-read\nend-volume\n"
    "volume rep\n type debug/io-stats\n option global-threading off\n option count-fop-hits off\n"
    " option latency-measurement off\n option threads 16\n option log-level INFO\n"
    " subvolumes rep-md-cache\nend-volume\n";

static const char brick_10[] =
    "volume arb-posix\n type storage/posix\n option shared-brick-count 3\n option directory /bricks/ar3\n"
    " option volume-id 0fe76aed-4e1d-4202-acfa-b977b8c8a8b3\nend-volume\n"
    "volume arb-arbiter\n type features/arbiter\n subvolumes arb-posix\nend-volume\n"
    "volume arb-trash\n type features/trash\n option trash-internal-op off\n option brick-path /bricks/ar3\n"
    " option trash-dir .trashcan\n subvolumes arb-arbiter\nend-volume\n"
    "volume arb-changelog\n type features/changelog\n option changelog-barrier-timeout 120\n"
    " option changelog-notification off\n option changelog-dir /bricks/ar3/.glusterfs/changelogs\n"
    " option changelog-brick /bricks/ar3\n subvolumes arb-trash\nend-volume\n"
    "volume arb-bitrot-stub\n type features/bitrot-stub\n option bitrot disable\n option export /bricks/ar3\n"
    " subvolumes arb-changelog\nend-volume\n"
    "volume arb-access-control\n type features/access-control\n subvolumes arb-bitrot-stub\nend-volume\n"
    "volume arb-locks\n type features/locks\n option enforce-mandatory-lock off\n subvolumes arb-access-control\nend-volume\n"
    "volume arb-worm\n type features/worm\n option worm-files-deletable on\n option worm-file-level off\n option worm off\n"
    " subvolumes arb-locks\nend-volume\n"
    "volume arb-read-only\n type features/read-only\n option read-only off\n subvolumes arb-worm\nend-volume\n"
    "volume arb-leases\n type features/leases\n option leases off\n subvolumes arb-read-only\nend-volume\n"
    "volume arb-upcall\n type features/upcall\n option cache-invalidation off\n subvolumes arb-leases\nend-volume\n"
    "volume arb-io-threads\n type performance/io-threads\n subvolumes arb-upcall\nend-volume\n"
    "volume arb-selinux\n type features/selinux\n option selinux on\n subvolumes arb-io-threads\nend-volume\n"
    "volume arb-marker\n type features/marker\n option inode-quota off\n option quota off\n option gsync-force-xtime off\n"
    " option xtime off\n option quota-version 0\n option timestamp-file /var/lib/glusterd/vols/arb/marker.tstamp\n"
    " option volume-uuid 0fe76aed-4e1d-4202-acfa-b977b8c8a8b3\n subvolumes arb-selinux\nend-volume\n"
    "volume arb-barrier\n type features/barrier\n option barrier-timeout 120\n option barrier disable\n"
    " subvolumes arb-marker\nend-volume\n"
    "volume arb-index\n type features/index\n option xattrop-pending-watchlist trusted.afr.arb-\n"
    " option xattrop-dirty-watchlist trusted.afr.dirty\n option index-base /bricks/ar3/.glusterfs/indices\n"
    " subvolumes arb-barrier\nend-volume\n"
    "volume arb-quota\n type features/quota\n option deem-statfs off\n option server-quota off\n option volume-uuid arb\n"
    " subvolumes arb-index\nend-volume\n"
    "volume /bricks/ar3\n type debug/io-stats\n option global-threading off\n option count-fop-hits off\n"
    " option latency-measurement off\n option threads 16\n option log-level INFO\n"
    " option volume-id 0fe76aed-4e1d-4202-acfa-b977b8c8a8b3\n option unique-id /bricks/ar3\n subvolumes arb-quota\nend-volume\n"
    "volume arb-server\n type protocol/server\n option transport.listen-backlog 1024\n"
    " option auth.addr./bricks/ar3.allow *\n option auth-path /bricks/ar3\n option transport-type tcp\n"
    " subvolumes /bricks/ar3\nend-volume\n";

FIBER_TEST(a_generated_client_file_loads_without_warnings)
{
    use_stand_ins(t);
    test_build(t, client_10);
    assert_int_equal(10, t->graph->count);
    assert_not_logged(t, " W [");
    assert_not_logged(t, "unknown-option");
}

FIBER_TEST(a_generated_brick_file_loads_without_warnings)
{
    use_stand_ins(t);
    test_build(t, brick_10);
    assert_int_equal(19, t->graph->count);
    assert_string_equal("0fe76aed-4e1d-4202-acfa-b977b8c8a8b3", t->graph->volume_id);
    assert_not_logged(t, " W [");
    assert_not_logged(t, "unknown-option");
}

/* Every name that a release tree of GlusterFS 1.3 to 11 has. */
static const char *const types[] = {
    "cluster/afr",
    "cluster/replicate",
    "cluster/unify",
    "cluster/stripe",
    "cluster/dht",
    "cluster/distribute",
    "cluster/nufa",
    "cluster/switch",
    "cluster/ha",
    "cluster/map",
    "cluster/pump",
    "cluster/ec",
    "cluster/disperse",
    "cluster/tier",
    "debug/trace",
    "debug/error-gen",
    "debug/io-stats",
    "debug/sink",
    "debug/delay-gen",
    "encryption/rot-13",
    "playground/rot-13",
    "encryption/crypt",
    "features/filter",
    "features/fixed-id",
    "features/posix-locks",
    "features/locks",
    "features/trash",
    "features/path-converter",
    "features/quota",
    "features/access-control",
    "system/posix-acl",
    "features/mac-compat",
    "features/quiesce",
    "features/read-only",
    "features/marker",
    "features/index",
    "features/worm",
    "features/changelog",
    "features/gfid-access",
    "features/cdc",
    "features/compress",
    "features/quotad",
    "features/glupy",
    "features/qemu-block",
    "features/prot_client",
    "features/prot_server",
    "features/prot_dht",
    "features/arbiter",
    "features/barrier",
    "features/bit-rot",
    "features/bitrot-stub",
    "features/changetimerecorder",
    "features/ganesha",
    "features/shard",
    "features/snapview-client",
    "features/snapview-server",
    "features/upcall",
    "features/leases",
    "features/selinux",
    "features/sdfs",
    "features/cloudsync",
    "features/namespace",
    "features/thin-arbiter",
    "features/utime",
    "features/metadisp",
    "features/simple-quota",
    "mgmt/glusterd",
    "mount/fuse",
    "mount/api",
    "nfs/server",
    "performance/read-ahead",
    "performance/write-behind",
    "performance/io-threads",
    "performance/io-cache",
    "performance/stat-prefetch",
    "performance/symlink-cache",
    "performance/quick-read",
    "performance/md-cache",
    "performance/open-behind",
    "performance/readdir-ahead",
    "performance/nl-cache",
    "performance/decompounder",
    "protocol/client",
    "protocol/server",
    "protocol/legacy-client",
    "protocol/legacy-server",
    "storage/posix",
    "storage/bdb",
    "storage/bd",
    "meta",
    "playground/template",
    "testing/features/template",
    "testing/performance/symlink-cache",
};

static void it_loads_or_says_what_to_use_instead_body(struct test *t, const char *type)
{
    char text[256];

    snprintf(text, sizeof(text),
             "volume l\n type test/leaf\n option note x\nend-volume\n"
             "volume a\n type %s\n subvolumes l\nend-volume\n",
             type);
    int r = test_try_build(t, text);
    if (r < 0)
        assert_null(strstr(t->err.text, "expected a known type"));
    if (r < 0 && strstr(t->err.text, "is not there"))
        assert_non_null(strchr(strstr(t->err.text, "is not there"), ':'));
}

static void it_loads_or_says_what_to_use_instead(void **state)
{
    struct test *t = mem_zalloc(sizeof(*t));

    test_open(t);
    t->env = env_real_new(t->log, 1);
    it_loads_or_says_what_to_use_instead_body(t, *state);
    graph_free(t->graph);
    reply_free(t->r);
    env_real_free(t->env);
    test_close(t);
    mem_free(t);
}

static struct CMUnitTest tests[4 + ARRAY_SIZE(types)] = {
    cmocka_unit_test(the_hand_written_client_file_of_2008_loads),
    cmocka_unit_test(the_hand_written_server_file_of_2008_loads),
    cmocka_unit_test(a_generated_client_file_loads_without_warnings),
    cmocka_unit_test(a_generated_brick_file_loads_without_warnings),
};

int main(void)
{
    for (unsigned i = 0; i < ARRAY_SIZE(types); i++)
        tests[4 + i] = (struct CMUnitTest) {
            .name = types[i],
            .test_func = it_loads_or_says_what_to_use_instead,
            .initial_state = (void *)types[i],
        };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
