/* Inode table with its LRU list, descriptors, clients. */
#include "unit/graph/test_graph.h"

static struct inode *get(struct test *t, uint32_t n)
{
    struct gfid gfid = { { 0 } };

    put_be32(gfid.bytes + 8, n);
    gfid.bytes[15] = 200;
    return inode_table_get(t->graph, &gfid, S_IFREG);
}

FIBER_TEST(one_object_per_gfid)
{
    test_push(t, &leaf_class, NULL);
    test_start(t);
    struct inode *a = get(t, 1), *b = get(t, 1), *c = get(t, 2);
    assert_ptr_equal(a, b);
    assert_ptr_not_equal(a, c);
    inode_unref(a);
    inode_unref(b);
    inode_unref(c);
}

FIBER_TEST(an_unreferenced_inode_is_kept_and_found)
{
    test_push(t, &leaf_class, NULL);
    test_start(t);
    struct inode *a = get(t, 1);
    struct gfid gfid = a->gfid;
    *inode_ctx(a, t->leaf->me) = t;
    inode_unref(a);
    struct inode *again = inode_table_find(t->graph, &gfid);
    assert_ptr_equal(a, again);
    assert_ptr_equal(t, *inode_ctx(again, t->leaf->me));
    assert_int_equal(0, t->leaf->forgotten);
    inode_unref(again);
}

FIBER_TEST(finding_does_not_make)
{
    struct gfid gfid = test_gfid(77);

    test_push(t, &leaf_class, NULL);
    test_start(t);
    assert_null(inode_table_find(t->graph, &gfid));
}

FIBER_TEST(a_known_type_is_not_overwritten_by_unknown)
{
    struct gfid gfid = test_gfid(77);

    test_push(t, &leaf_class, NULL);
    test_start(t);
    struct inode *a = inode_table_get(t->graph, &gfid, 0);
    assert_int_equal(0, a->type);
    inode_unref(inode_table_get(t->graph, &gfid, S_IFDIR));
    inode_unref(inode_table_get(t->graph, &gfid, 0));
    assert_int_equal(S_IFDIR, a->type);
    inode_unref(a);
}

FIBER_TEST(the_oldest_unreferenced_inode_is_forgotten_first)
{
    test_push(t, &leaf_class, NULL);
    test_start(t);
    inode_table_set_limit(t->graph, 2);
    size_t before = inode_table_count(t->graph);
    struct gfid first = { { 0 } };
    for (uint32_t i = 1; i <= 3; i++) {
        struct inode *inode = get(t, i);
        if (i == 1)
            first = inode->gfid;
        *inode_ctx(inode, t->leaf->me) = t;
        inode_unref(inode);
    }
    assert_int_equal(before + 2, inode_table_count(t->graph));
    assert_int_equal(1, t->leaf->forgotten);
    assert_null(inode_table_find(t->graph, &first));
}

FIBER_TEST(an_empty_slot_is_not_told_about)
{
    test_push(t, &leaf_class, NULL);
    test_start(t);
    inode_unref(get(t, 1));
    inode_table_set_limit(t->graph, 0);
    assert_int_equal(0, t->leaf->forgotten);
}

FIBER_TEST(referenced_inodes_stay_past_the_limit)
{
    struct inode *kept[100];

    test_push(t, &leaf_class, NULL);
    test_start(t);
    inode_table_set_limit(t->graph, 0);
    for (uint32_t i = 0; i < 100; i++)
        kept[i] = get(t, i);
    assert_true(inode_table_count(t->graph) >= 100);
    for (uint32_t i = 0; i < 100; i++)
        inode_unref(kept[i]);
}

static void count_one(struct inode *inode, void *arg)
{
    (*(size_t *)arg)++;
}

FIBER_TEST(thousands_of_inodes_are_found_again)
{
    enum { COUNT = 20000 };
    static struct inode *all[COUNT];
    size_t seen = 0;

    test_push(t, &leaf_class, NULL);
    test_start(t);
    for (uint32_t i = 0; i < COUNT; i++)
        all[i] = get(t, i);
    for (uint32_t i = 0; i < COUNT; i++) {
        struct inode *again = get(t, i);
        assert_ptr_equal(all[i], again);
        inode_unref(again);
    }
    inode_table_each(t->graph, count_one, &seen);
    assert_int_equal(inode_table_count(t->graph), seen);
    for (uint32_t i = 0; i < COUNT; i++)
        inode_unref(all[i]);
}

FIBER_TEST(a_descriptor_holds_its_inode_and_is_released_once)
{
    test_push(t, &leaf_class, NULL);
    test_start(t);
    struct inode *inode = get(t, 1);
    struct fd *fd = fd_new(inode, 2, 77);
    inode_unref(inode);
    inode_table_set_limit(t->graph, 0);
    assert_int_equal(1, inode->open_fds);
    assert_false(fd->is_dir);
    *fd_ctx(fd, t->leaf->me) = t;
    fd_unref(fd_ref(fd));
    assert_int_equal(0, t->leaf->released);
    fd_unref(fd);
    assert_int_equal(1, t->leaf->released);
}

static void count_fd(struct fd *fd, void *arg)
{
    (*(size_t *)arg)++;
}

FIBER_TEST(all_open_descriptors_can_be_visited)
{
    size_t seen = 0;

    test_push(t, &leaf_class, NULL);
    test_start(t);
    fd_each(t->graph, count_fd, &seen);
    assert_int_equal(2, seen); /* t->fd and t->dir_fd */
    assert_true(t->dir_fd->is_dir);
}

FIBER_TEST(a_client_that_goes_is_announced_once)
{
    test_push(t, &leaf_class, NULL);
    test_start(t);
    struct client *client = client_new(t->graph, "CTX_ID:1", "10.0.0.1:1023");
    *client_ctx(client, t->leaf->me) = t;
    client_gone(client);
    client_gone(client);
    assert_true(client->is_gone);
    assert_int_equal(1, t->leaf->gone);
    client_unref(client);
}

FIBER_TEST(ending_a_graph_forgets_all_inodes)
{
    test_push(t, &leaf_class, NULL);
    test_start(t);
    for (uint32_t i = 0; i < 10; i++)
        inode_unref(get(t, i));
    assert_true(inode_table_count(t->graph) > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_object_per_gfid),
        cmocka_unit_test(an_unreferenced_inode_is_kept_and_found),
        cmocka_unit_test(finding_does_not_make),
        cmocka_unit_test(a_known_type_is_not_overwritten_by_unknown),
        cmocka_unit_test(the_oldest_unreferenced_inode_is_forgotten_first),
        cmocka_unit_test(an_empty_slot_is_not_told_about),
        cmocka_unit_test(referenced_inodes_stay_past_the_limit),
        cmocka_unit_test(thousands_of_inodes_are_found_again),
        cmocka_unit_test(a_descriptor_holds_its_inode_and_is_released_once),
        cmocka_unit_test(all_open_descriptors_can_be_visited),
        cmocka_unit_test(a_client_that_goes_is_announced_once),
        cmocka_unit_test(ending_a_graph_forgets_all_inodes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
