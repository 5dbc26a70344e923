/* Changes of the cluster's state: what each does, and that a refused one changes nothing. */
#include "unit/unit.h"
#include "core/mem.h"
#include "mgmt/change.h"
#include <stdlib.h>

#define NODE1 "11111111-1111-4111-8111-111111111111"
#define NODE2 "22222222-2222-4222-8222-222222222222"
#define NODE3 "33333333-3333-4333-8333-333333333333"
#define ID    "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"

/* `text` is JSON with ' for ". */
static json_t *parse(const char *text)
{
    SCOPED_FREE char *copy = mem_strdup(text);
    json_error_t why;
    json_t *json;

    for (char *c = copy; *c; c++) {
        if (*c == '\'')
            *c = '"';
    }
    json = json_loads(copy, 0, &why);
    if (!json)
        fail_msg("%s: %s", why.text, text);
    return json;
}

static char *state_of(const struct cluster *c)
{
    json_t *json = cluster_to_json(c);
    char *text = json_dumps(json, JSON_SORT_KEYS);

    json_decref(json);
    return text;
}

static void apply(struct cluster *c, const char *text)
{
    json_t *change = parse(text);
    struct error err = { "" };

    if (change_apply(c, change, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    json_decref(change);
}

static void refuse(struct cluster *c, const char *text, const char *sentence)
{
    json_t *change = parse(text);
    char *before = state_of(c), *after;
    struct error err = { "" };

    assert_true(change_apply(c, change, &err) < 0);
    assert_string_equal(sentence, err.text);
    after = state_of(c);
    assert_string_equal(before, after);
    free(before);
    free(after);
    json_decref(change);
}

#define BRICK(node, host, path) "{'node':'" node "','host':'" host "','path':'" path "','fsid':7}"
#define VOLUME(name, kind, replica, arbiter, bricks)                                                            \
    "{'op':'volume-create','volume':{'name':'" name "','kind':" kind ",'state':0,'id':'" ID "','username':'" ID \
    "','password':'" ID "','version':0,'replica':" replica ",'arbiter':" arbiter                                \
    ",'disperse':0,'redundancy':0,'op_version':1,'client_op_version':1,'settings':[],'bricks':[" bricks "]}}"
#define MIRROR VOLUME("v", "2", "2", "0", BRICK(NODE1, "h1", "/b/1") "," BRICK(NODE2, "h2", "/b/2"))

static struct cluster *three_nodes(void)
{
    struct cluster *c = cluster_new();

    apply(c, "{'op':'node-add','node':'" NODE1 "','names':['h1']}");
    apply(c, "{'op':'node-add','node':'" NODE2 "','names':['h2']}");
    apply(c, "{'op':'node-add','node':'" NODE3 "','names':['h3']}");
    return c;
}

static struct cluster *with_mirror(void)
{
    struct cluster *c = three_nodes();

    apply(c, MIRROR);
    return c;
}

static void a_created_mirror_has_ids_and_first_options(void **state)
{
    SCOPED(cluster_free) struct cluster *c = with_mirror();
    struct volume *v = cluster_find_volume(c, "v");

    assert_int_equal(VOLUME_CREATED, v->state);
    assert_int_equal(1, v->version);
    assert_int_equal(2, v->brick_count);
    assert_string_equal("v-client-0", v->bricks[0].id);
    assert_string_equal("v-client-1", v->bricks[1].id);
    assert_int_equal(5, v->settings.count);
    assert_string_equal("cluster.granular-entry-heal", v->settings.list[0].key);
    assert_string_equal("storage.fips-mode-rchecksum", v->settings.list[1].key);
    assert_string_equal("transport.address-family", v->settings.list[2].key);
    assert_string_equal("nfs.disable", v->settings.list[3].key);
    assert_string_equal("performance.client-io-threads", v->settings.list[4].key);
    assert_string_equal("off", v->settings.list[4].value);
}

static void create_is_refused_with_reasons(void **state)
{
    SCOPED(cluster_free) struct cluster *c = with_mirror();

    refuse(c, MIRROR, "Volume v already exists");
    refuse(c, VOLUME("w", "0", "1", "0", BRICK("44444444-4444-4444-8444-444444444444", "h4", "/b/4")),
           "Host h4 is not in 'Peer in Cluster' state");
    refuse(c, VOLUME("w", "0", "1", "0", BRICK(NODE1, "h1", "/b/1/sub")),
           "Brick: h1:/b/1/sub not available. Brick may be containing or be contained by an existing brick.");
    refuse(c, VOLUME("w", "0", "1", "0", BRICK(NODE1, "h1", "/b")),
           "Brick: h1:/b not available. Brick may be containing or be contained by an existing brick.");
    refuse(c, VOLUME("w", "2", "2", "0", BRICK(NODE1, "h1", "/n") "," BRICK(NODE1, "h1", "/n")),
           "Brick: h1:/n not available. Brick may be containing or be contained by an existing brick.");
    refuse(c, VOLUME("all", "0", "1", "0", BRICK(NODE1, "h1", "/n")), "\"all\" cannot be the name of a volume.");
    refuse(c, VOLUME("a/b", "0", "1", "0", BRICK(NODE1, "h1", "/n")), "\"a/b\" cannot be the name of a volume.");
    refuse(c, VOLUME("w", "2", "2", "0", BRICK(NODE1, "h1", "/n")), "\"bricks\" is missing or of the wrong kind");
    apply(c, VOLUME("w", "0", "1", "0", BRICK(NODE1, "h1", "/b/10")));
}

static void volumes_live_and_die(void **state)
{
    SCOPED(cluster_free) struct cluster *c = with_mirror();

    refuse(c, "{'op':'volume-stop','name':'v'}", "Volume v is not in the started state");
    apply(c, "{'op':'volume-start','name':'v'}");
    assert_int_equal(VOLUME_STARTED, cluster_find_volume(c, "v")->state);
    assert_int_equal(2, cluster_find_volume(c, "v")->version);
    refuse(c, "{'op':'volume-start','name':'v'}", "Volume v already started");
    apply(c, "{'op':'volume-start','name':'v','force':true}");
    refuse(c, "{'op':'volume-delete','name':'v'}",
           "Volume v has been started.Volume needs to be stopped before deletion.");
    apply(c, "{'op':'volume-stop','name':'v'}");
    assert_int_equal(VOLUME_STOPPED, cluster_find_volume(c, "v")->state);
    apply(c, "{'op':'volume-delete','name':'v'}");
    assert_null(cluster_find_volume(c, "v"));
    refuse(c, "{'op':'volume-delete','name':'v'}", "Volume v does not exist");
}

static void options_are_set_under_their_full_names(void **state)
{
    SCOPED(cluster_free) struct cluster *c = with_mirror();
    struct volume *v = cluster_find_volume(c, "v");

    apply(c, "{'op':'volume-set','name':'v','pairs':[['quorum-type','fixed'],['cluster.quorum-count','2'],"
             "['features.cache-invalidation','on'],['user.smb','disable']]}");
    assert_string_equal("fixed", settings_get(&v->settings, "cluster.quorum-type"));
    assert_string_equal("2", settings_get(&v->settings, "cluster.quorum-count"));
    assert_string_equal("disable", settings_get(&v->settings, "user.smb"));
    assert_string_equal("user.smb", v->settings.list[0].key);
    assert_int_equal(2, v->version);
    apply(c, "{'op':'volume-set','name':'v','pairs':[['storage.build-pgfid','on'],['performance.nl-cache','on']]}");
    assert_int_equal(40000, v->op_version);
    assert_int_equal(31100, v->client_op_version);
}

static void wrong_options_are_refused_all_together(void **state)
{
    SCOPED(cluster_free) struct cluster *c = with_mirror();

    refuse(c, "{'op':'volume-set','name':'v','pairs':[['cluster.quorum-type','auto'],['cluster.quorum-type','x']]}",
           "option quorum-type x: 'x' is not valid (possible options are none, auto, fixed.)");
    refuse(c, "{'op':'volume-set','name':'v','pairs':[['cluster.quorom-type','auto']]}",
           "option : cluster.quorom-type does not exist\nDid you mean cluster.quorum-type?");
    refuse(c, "{'op':'volume-set','name':'v','pairs':[['cluster.op-version','90000']]}",
           "Not a valid option for single volume");
    refuse(c, "{'op':'volume-set','name':'all','pairs':[['cluster.quorum-type','auto']]}",
           "Not a valid option for all volumes");
    refuse(c, "{'op':'volume-set','name':'all','pairs':[['cluster.op-version','90000']]}",
           "Required op-version (90000) should not be equal or lower than current cluster op-version (100000).");
    refuse(c, "{'op':'volume-set','name':'all','pairs':[['cluster.op-version','110000']]}",
           "Required op_version (110000) is not supported. Max supported op version is 100000");
    refuse(c, "{'op':'volume-set','name':'v','pairs':[['features.shard','on']]}",
           "option features.shard cannot be set to on: this feature is not supported");
    refuse(c, "{'op':'volume-set','name':'v','pairs':[['disperse.eager-lock','on']]}",
           "Cannot set disperse.eager-lock for a non-disperse volume.");
    apply(c, "{'op':'volume-set','name':'v','pairs':[['features.shard','false']]}");
}

static void reset_brings_back_what_new_volumes_have(void **state)
{
    SCOPED(cluster_free) struct cluster *c = with_mirror();
    struct volume *v = cluster_find_volume(c, "v");

    apply(c, "{'op':'volume-set','name':'v','pairs':[['nfs.disable','off'],['cluster.quorum-type','auto'],"
             "['network.ping-timeout','10']]}");
    apply(c, "{'op':'volume-reset','name':'v','key':'quorum-type'}");
    assert_null(settings_get(&v->settings, "cluster.quorum-type"));
    apply(c, "{'op':'volume-reset','name':'v','key':'nfs.disable'}");
    assert_string_equal("on", settings_get(&v->settings, "nfs.disable"));
    apply(c, "{'op':'volume-reset','name':'v'}");
    assert_int_equal(5, v->settings.count);
    refuse(c, "{'op':'volume-reset','name':'v','key':'nosuch.key'}", "option : nosuch.key does not exist");
}

static void a_third_replica_goes_to_every_set(void **state)
{
    SCOPED(cluster_free) struct cluster *c = three_nodes();
    struct volume *v;

    apply(c, VOLUME("v", "2", "2", "0",
                    BRICK(NODE1, "h1", "/b/1") "," BRICK(NODE2, "h2", "/b/1") "," BRICK(NODE1, "h1", "/b/2") "," BRICK(
                        NODE2, "h2", "/b/2")));
    refuse(c, "{'op':'add-bricks','name':'v','replica':3,'bricks':[" BRICK(NODE3, "h3", "/b/1") "]}",
           "Incorrect number of bricks (1) supplied for replica count (3).");
    refuse(c, "{'op':'add-bricks','name':'v','bricks':[" BRICK(NODE3, "h3", "/b/1") "]}",
           "Incorrect number of bricks supplied 1 with count 2");
    apply(c, "{'op':'add-bricks','name':'v','replica':3,'bricks':[" BRICK(NODE3, "h3", "/b/1") "," BRICK(NODE3, "h3",
                                                                                                         "/b/2") "]}");
    v = cluster_find_volume(c, "v");
    assert_int_equal(3, v->replica_count);
    assert_int_equal(6, v->brick_count);
    assert_string_equal("v-client-4", v->bricks[2].id);
    assert_string_equal("/b/1", v->bricks[2].path);
    assert_string_equal("v-client-2", v->bricks[3].id);
    assert_string_equal("v-client-5", v->bricks[5].id);
    assert_string_equal("h3", v->bricks[5].host);
}

static void an_arbiter_joins_a_mirror(void **state)
{
    SCOPED(cluster_free) struct cluster *c = with_mirror();

    apply(c, "{'op':'add-bricks','name':'v','replica':3,'arbiter':1,'bricks':[" BRICK(NODE3, "h3", "/b/1") "]}");
    assert_int_equal(1, cluster_find_volume(c, "v")->arbiter_count);
    assert_true(volume_is_arbiter(cluster_find_volume(c, "v"), 2));
}

static void one_brick_becomes_a_mirror_and_back(void **state)
{
    SCOPED(cluster_free) struct cluster *c = three_nodes();

    apply(c, VOLUME("v", "0", "1", "0", BRICK(NODE1, "h1", "/b/1")));
    apply(c, "{'op':'add-bricks','name':'v','replica':2,'bricks':[" BRICK(NODE2, "h2", "/b/1") "]}");
    assert_int_equal(VOLUME_REPLICATE, cluster_find_volume(c, "v")->kind);
    refuse(c, "{'op':'remove-bricks','name':'v','bricks':[['h1','/b/1']]}",
           "Removing bricks from replicate configuration is not allowed without reducing replica count explicitly.");
    refuse(c, "{'op':'remove-bricks','name':'v','replica':1,'bricks':[['h9','/b/1']]}",
           "Incorrect brick h9:/b/1 for volume v");
    refuse(c, "{'op':'remove-bricks','name':'v','bricks':[['h1','/b/1'],['h2','/b/1']]}",
           "Deleting all the bricks of the volume is not allowed");
    apply(c, "{'op':'remove-bricks','name':'v','replica':1,'bricks':[['h1','/b/1']]}");
    assert_int_equal(VOLUME_DISTRIBUTE, cluster_find_volume(c, "v")->kind);
    assert_string_equal("v-client-1", cluster_find_volume(c, "v")->bricks[0].id);
    apply(c, "{'op':'add-bricks','name':'v','replica':2,'bricks':[" BRICK(NODE1, "h1", "/b/1") "]}");
    assert_string_equal("v-client-2", cluster_find_volume(c, "v")->bricks[1].id);
}

static void a_replaced_brick_keeps_place_and_id(void **state)
{
    SCOPED(cluster_free) struct cluster *c = with_mirror();
    struct volume *v;

    refuse(c, "{'op':'replace-brick','name':'v','host':'h1','path':'/x','brick':" BRICK(NODE3, "h3", "/n") "}",
           "brick: h1:/x does not exist in volume: v");
    refuse(c, "{'op':'replace-brick','name':'v','host':'h1','path':'/b/1','brick':" BRICK(NODE2, "h2", "/b/2") "}",
           "Brick: h2:/b/2 not available. Brick may be containing or be contained by an existing brick.");
    apply(c, "{'op':'replace-brick','name':'v','host':'h1','path':'/b/1','brick':" BRICK(NODE3, "h3", "/n") "}");
    v = cluster_find_volume(c, "v");
    assert_string_equal("h3", v->bricks[0].host);
    assert_string_equal("v-client-0", v->bricks[0].id);
    assert_string_equal("v-client-1", v->bricks[1].id);
    apply(c, "{'op':'replace-brick','name':'v','host':'h3','path':'/n','brick':" BRICK(NODE3, "h3", "/n") "}");
}

static void machines_with_bricks_stay(void **state)
{
    SCOPED(cluster_free) struct cluster *c = with_mirror();

    refuse(c, "{'op':'node-remove','node':'" NODE1 "'}",
           "Peer h1 hosts one or more bricks. If the peer is in not recoverable state then use either replace-brick or "
           "remove-brick command with force to remove all bricks from the peer and attempt the peer detach again.");
    apply(c, "{'op':'node-remove','node':'" NODE3 "'}");
    assert_int_equal(2, c->node_count);
    refuse(c, "{'op':'node-add','node':'" NODE3 "','names':['h1']}", "h1 is the name of another peer already");
    apply(c, "{'op':'node-add','node':'" NODE2 "','names':['h2','192.0.2.2']}");
    assert_ptr_equal(cluster_find_host(c, "h2"), cluster_find_host(c, "192.0.2.2"));
}

static void what_is_no_change_is_refused(void **state)
{
    SCOPED(cluster_free) struct cluster *c = with_mirror();

    refuse(c, "{}", "\"\" is no change this version knows");
    refuse(c, "[]", "\"\" is no change this version knows");
    refuse(c, "{'op':'nosuch'}", "\"nosuch\" is no change this version knows");
    refuse(c, "{'op':'volume-start'}", "the change has no \"name\"");
    refuse(c, "{'op':'volume-create'}", "\"name\" is missing or of the wrong kind");
    refuse(c, "{'op':'volume-set','name':'v'}", "the change has no \"pairs\"");
    refuse(c, "{'op':'volume-set','name':'v','pairs':[['a']]}", "a pair is not two strings");
    refuse(c, "{'op':'node-add','node':'x','names':['h']}", "\"x\" is not a uuid");
    refuse(c, "{'op':'node-add','node':'" NODE1 "'}", "the change has no \"names\"");
}

static void a_snapshot_restores_the_same_state(void **state)
{
    SCOPED(cluster_free) struct cluster *c = with_mirror();
    SCOPED(cluster_free) struct cluster *again = NULL;
    json_t *json;
    char *before, *after;
    struct error err = { "" };

    apply(c, "{'op':'volume-set','name':'v','pairs':[['network.ping-timeout','10']]}");
    apply(c, "{'op':'volume-set','name':'all','pairs':[['cluster.server-quorum-ratio','51%']]}");
    json = cluster_to_json(c);
    if (cluster_from_json(json, &again, &err) < 0)
        fail_msg("%s", err.text);
    before = state_of(c);
    after = state_of(again);
    assert_string_equal(before, after);
    free(before);
    free(after);
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_created_mirror_has_ids_and_first_options),
        cmocka_unit_test(create_is_refused_with_reasons),
        cmocka_unit_test(volumes_live_and_die),
        cmocka_unit_test(options_are_set_under_their_full_names),
        cmocka_unit_test(wrong_options_are_refused_all_together),
        cmocka_unit_test(reset_brings_back_what_new_volumes_have),
        cmocka_unit_test(a_third_replica_goes_to_every_set),
        cmocka_unit_test(an_arbiter_joins_a_mirror),
        cmocka_unit_test(one_brick_becomes_a_mirror_and_back),
        cmocka_unit_test(a_replaced_brick_keeps_place_and_id),
        cmocka_unit_test(machines_with_bricks_stay),
        cmocka_unit_test(what_is_no_change_is_refused),
        cmocka_unit_test(a_snapshot_restores_the_same_state),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
