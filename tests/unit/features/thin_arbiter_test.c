/* features/thin-arbiter over a brick in memory. */
#include "unit/graph/test_graph.h"
#include "unit/replicate/membrick.h"

#define FIRST  "trusted.afr.v-client-0"
#define SECOND "trusted.afr.v-client-1"
#define NAME   "trusted.afr.v-ta-2"

extern const struct translator_class thin_arbiter_class;

struct bed {
    struct graph *graph;
    struct call call;
    struct reply *r;
    struct inode *root, *file;
    struct mem_brick *brick;
};

static FIBER void bed_open(struct bed *b, struct test *t)
{
    static const char text[] = "volume m\n type test/membrick\n option store 0\nend-volume\n"
                               "volume ta\n type features/thin-arbiter\n subvolumes m\nend-volume\n";
    static const struct translator_class *classes[] = { &membrick_class, &thin_arbiter_class, NULL };
    SCOPED(volfile_free) struct volfile *file = NULL;
    const struct gfid gfid = test_gfid(7);
    struct error err = { "" };

    mem_stores_reset();
    assert_int_equal(0, volfile_parse("x.vol", text, strlen(text), &file, &err));
    if (graph_build(t->env, file, classes, NULL, &b->graph, &err) < 0 || graph_start(b->graph, &err) < 0)
        fail_msg("%s", err.text);
    call_init(&b->call, b->graph);
    b->r = reply_new();
    b->root = inode_table_get(b->graph, &gfid_root, S_IFDIR);
    b->file = inode_table_get(b->graph, &gfid, S_IFREG);
    b->brick = graph_find(b->graph, "m")->state;
}

static FIBER void bed_close(struct bed *b)
{
    reply_free(b->r);
    inode_unref(b->root);
    inode_unref(b->file);
    call_done(&b->call);
    graph_stop(b->graph);
    graph_free(b->graph);
}

static FIBER int bed_call(struct bed *b, const struct request *q)
{
    reply_done(b->r);
    return translator_call(b->graph->root, &b->call, q, b->r);
}
#define ask(b, op_, ...) bed_call((b), &(struct request) { .op = (op_), __VA_ARGS__ })

static FIBER int make(struct bed *b)
{
    return ask(b, OP_MKNOD, .parent = b->root, .name = NAME, .inode = b->file, .mode = S_IFREG | 0644);
}

static void put(struct dict *d, const char *key, uint32_t data, uint32_t entry)
{
    uint8_t bytes[12] = { 0 };

    put_be32(bytes, data);
    put_be32(bytes + 8, entry);
    assert_int_equal(0, dict_set_bin(d, key, bytes, sizeof(bytes)));
}

static FIBER int add(struct bed *b, const char *key, uint32_t data, uint32_t entry)
{
    SCOPED(dict_unref) struct dict *d = dict_new();

    put(d, key, data, entry);
    return ask(b, OP_XATTROP, .inode = b->file, .flags = XATTROP_ADD32, .xattrs = d);
}

static int32_t data_of(struct bed *b, const char *key)
{
    return mem_counter(b->brick->store, &b->file->gfid, key, 0);
}

FIBER_TEST(one_brick_of_a_pair_may_be_blamed)
{
    struct bed b;

    bed_open(&b, t);
    assert_int_equal(0, make(&b));
    assert_int_equal(0, add(&b, FIRST, 1, 0));
    assert_int_equal(0, add(&b, FIRST, 1, 1));
    assert_int_equal(2, data_of(&b, FIRST));
    bed_close(&b);
}

FIBER_TEST(the_other_one_is_refused_and_nothing_changes)
{
    struct bed b;

    bed_open(&b, t);
    assert_int_equal(0, make(&b));
    assert_int_equal(0, add(&b, FIRST, 0, 1));
    assert_int_equal(-EINVAL, add(&b, SECOND, 1, 0));
    assert_int_equal(0, data_of(&b, SECOND));
    assert_int_equal(1, mem_counter(b.brick->store, &b.file->gfid, FIRST, 2));
    bed_close(&b);
}

FIBER_TEST(both_at_once_are_refused)
{
    SCOPED(dict_unref) struct dict *d = dict_new();
    struct bed b;

    bed_open(&b, t);
    assert_int_equal(0, make(&b));
    put(d, FIRST, 1, 0);
    put(d, SECOND, 1, 0);
    assert_int_equal(-EINVAL, ask(&b, OP_XATTROP, .inode = b.file, .flags = XATTROP_ADD32, .xattrs = d));
    bed_close(&b);
}

FIBER_TEST(when_the_blame_is_off_the_other_one_may_be_blamed)
{
    struct bed b;

    bed_open(&b, t);
    assert_int_equal(0, make(&b));
    assert_int_equal(0, add(&b, FIRST, 1, 0));
    assert_int_equal(0, add(&b, FIRST, (uint32_t)-1, 0));
    assert_int_equal(0, add(&b, SECOND, 1, 0));
    assert_int_equal(1, data_of(&b, SECOND));
    bed_close(&b);
}

FIBER_TEST(the_blame_is_synced_before_the_answer)
{
    struct bed b;

    bed_open(&b, t);
    assert_int_equal(0, make(&b));
    assert_int_equal(0, b.brick->count[OP_FSYNC]);
    assert_int_equal(0, add(&b, FIRST, 1, 0));
    assert_int_equal(1, b.brick->count[OP_FSYNC]);
    bed_close(&b);
}

FIBER_TEST(a_blame_that_is_not_on_disk_is_not_acknowledged)
{
    struct bed b;

    bed_open(&b, t);
    assert_int_equal(0, make(&b));
    b.brick->fault = FAULT_REFUSE;
    b.brick->fault_at = 4; /* looking takes two steps, adding one */
    assert_int_equal(-EIO, add(&b, FIRST, 1, 0));
    assert_null(b.r->xattrs);
    bed_close(&b);
}

FIBER_TEST(only_the_files_of_pairs_are_kept)
{
    SCOPED(buf_unref) struct buf *data = buf_copy("x", 1);
    struct bed b;

    bed_open(&b, t);
    assert_int_equal(-EPERM, ask(&b, OP_MKNOD, .parent = b.root, .name = "file", .inode = b.file, .mode = S_IFREG));
    assert_int_equal(-EPERM, ask(&b, OP_MKNOD, .parent = b.root, .name = NAME, .inode = b.file, .mode = S_IFIFO));
    assert_int_equal(-EPERM, ask(&b, OP_MKDIR, .parent = b.root, .name = NAME, .inode = b.file, .mode = 0755));
    assert_int_equal(0, make(&b));
    assert_int_equal(-EPERM, ask(&b, OP_WRITE, .inode = b.file, .data = data));
    assert_int_equal(-EPERM, ask(&b, OP_UNLINK, .parent = b.root, .name = NAME));
    bed_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_brick_of_a_pair_may_be_blamed),
        cmocka_unit_test(the_other_one_is_refused_and_nothing_changes),
        cmocka_unit_test(both_at_once_are_refused),
        cmocka_unit_test(when_the_blame_is_off_the_other_one_may_be_blamed),
        cmocka_unit_test(the_blame_is_synced_before_the_answer),
        cmocka_unit_test(a_blame_that_is_not_on_disk_is_not_acknowledged),
        cmocka_unit_test(only_the_files_of_pairs_are_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
