/* Heal of names, attributes and what goes wrong with them, over bricks in memory. */
#include "unit/replicate/heal_world.h"
#include <stdio.h>

#define ANONYMOUS " option use-anonymous-inode yes\n option volume-id 11111111-2222-3333-4444-555555555555\n"

static void set_xattr(struct world *w, struct inode *inode, const char *key, const char *value)
{
    SCOPED(dict_unref) struct dict *d = dict_new();

    assert_int_equal(0, dict_set_bin(d, key, value, strlen(value)));
    assert_int_equal(0, ask(w, OP_SETXATTR, .inode = inode, .xattrs = d));
}

/* Something done to one brick alone, as if behind the others' backs. */
static FIBER int brick_call(struct world *w, unsigned brick, const struct request *q)
{
    reply_done(w->r);
    return translator_call(w->b[brick]->me, &w->call, q, w->r);
}

static FIBER int make_dir(struct world *w, struct inode *parent, const char *name, uint8_t number)
{
    const struct gfid gfid = test_gfid(number);
    SCOPED(inode_unref) struct inode *inode = inode_table_get(w->graph, &gfid, S_IFDIR);

    return ask(w, OP_MKDIR, .parent = parent, .name = name, .inode = inode, .mode = 0755);
}

static FIBER int make_file(struct world *w, struct inode *parent, const char *name, uint8_t number)
{
    const struct gfid gfid = test_gfid(number);
    SCOPED(inode_unref) struct inode *inode = inode_table_get(w->graph, &gfid, 0);

    return ask(w, OP_MKNOD, .parent = parent, .name = name, .inode = inode, .mode = S_IFREG | 0644);
}

static FIBER void healed_and_equal(struct world *w)
{
    world_quiet(w);
    heal_crawl(w);
    assert_true(no_counters(w));
    assert_true(bricks_are_equal(w));
    for (unsigned i = 0; i < w->count; i++)
        assert_int_equal(0, mem_lock_count(w->b[i]->store));
}

FIBER_TEST(a_clean_inode_is_left_alone)
{
    SCOPED(heal_report_free) struct heal_report *report = heal_report_new();
    struct world w;

    world_open(&w, t, 3, "");
    world_forget_messages(&w);
    assert_int_equal(HEAL_CLEAN, heal_now(&w, &w.file->gfid, report));
    assert_int_equal(1, messages(&w, 0)); /* one look-up */
    assert_int_equal(HEAL_CLEAN, heal_now(&w, &gfid_root, report));
    world_close(&w);
}

FIBER_TEST(attributes_and_xattrs_that_were_missed_are_healed)
{
    SCOPED(heal_report_free) struct heal_report *report = heal_report_new();
    struct iatt attr = { .mode = 0600, .uid = 7, .gid = 8 };
    struct world w;

    world_open(&w, t, 3, "");
    set_xattr(&w, w.file, "user.goes", "x");
    world_quiet(&w);
    mem_brick_down(w.b[1]);
    assert_int_equal(0, ask(&w, OP_SETATTR, .inode = w.file, .attr = &attr, .valid = ATTR_MODE | ATTR_UID | ATTR_GID));
    set_xattr(&w, w.file, "user.comes", "y");
    assert_int_equal(0, ask(&w, OP_REMOVEXATTR, .inode = w.file, .text = "user.goes"));
    mem_brick_up(w.b[1]);
    world_quiet(&w);
    assert_int_equal(HEAL_DONE, heal_now(&w, &w.file->gfid, report));
    assert_int_equal(5, report->class[METADATA].sources);
    assert_int_equal(2, report->class[METADATA].sinks);
    assert_int_equal(2, report->class[METADATA].healed);
    assert_int_equal(0, report->class[METADATA].left);
    assert_true(bricks_are_equal(&w));
    assert_true(no_counters(&w));
    assert_int_equal(HEAL_CLEAN, heal_now(&w, &w.file->gfid, report));
    world_close(&w);
}

FIBER_TEST(attributes_that_differ_without_a_record_go_by_the_majority)
{
    SCOPED(heal_report_free) struct heal_report *report = heal_report_new();
    struct world w;

    world_open(&w, t, 3, "");
    mem_find(w.b[0]->store, &w.file->gfid)->stat.mode = S_IFREG | 0777;
    assert_int_equal(HEAL_DONE, heal_now(&w, &w.file->gfid, report));
    assert_int_equal(S_IFREG | 0644, mem_find(w.b[0]->store, &w.file->gfid)->stat.mode);
    assert_true(no_counters(&w));
    world_close(&w);
}

static FIBER void change_names(struct world *w)
{
    SCOPED(inode_unref) struct inode *link = NULL;
    const struct gfid link_gfid = test_gfid(30);

    assert_int_equal(0, make_file(w, w->root, "new", 20));
    assert_int_equal(0, make_dir(w, w->root, "newdir", 21));
    assert_int_equal(0, make_file(w, w->dir, "inner", 22));
    assert_int_equal(0, ask(w, OP_LINK, .inode = w->file, .parent2 = w->dir, .name2 = "hard"));
    assert_int_equal(0, ask(w, OP_UNLINK, .parent = w->root, .name = "gone"));
    assert_int_equal(0, ask(w, OP_RENAME, .parent = w->root, .name = "file", .parent2 = w->root, .name2 = "renamed",
                            .inode = w->file));
    link = inode_table_get(w->graph, &link_gfid, S_IFLNK);
    assert_int_equal(0, ask(w, OP_SYMLINK, .parent = w->root, .name = "sym", .inode = link, .text = "to/there"));
}

FIBER_TEST(names_that_were_missed_are_healed)
{
    static const char *const options[] = { "", " option granular-entry-heal on", ANONYMOUS,
                                           ANONYMOUS " option granular-entry-heal on" };
    struct world w;

    for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
        world_open(&w, t, 3, options[i]);
        assert_int_equal(0, make_file(&w, w.root, "gone", 19));
        world_quiet(&w);
        mem_brick_down(w.b[2]);
        change_names(&w);
        mem_brick_up(w.b[2]);
        healed_and_equal(&w);
        assert_int_equal(0, world_lookup(&w, "renamed"));
        assert_int_equal(-ENOENT, world_lookup(&w, "gone"));
        world_close(&w);
    }
}

FIBER_TEST(a_directory_renamed_to_another_keeps_what_is_in_it_on_the_sink)
{
    const struct gfid moved = test_gfid(21), inner = test_gfid(22);
    struct inode *inode;
    struct mem_node *before;
    struct world w;

    world_open(&w, t, 3, ANONYMOUS);
    inode = inode_table_get(w.graph, &moved, S_IFDIR);
    assert_int_equal(0, make_dir(&w, w.root, "moved", 21));
    assert_int_equal(0, make_file(&w, inode, "inner", 22));
    world_quiet(&w);
    before = mem_find(w.b[1]->store, &inner);
    mem_brick_down(w.b[1]);
    assert_int_equal(
        0, ask(&w, OP_RENAME, .parent = w.root, .name = "moved", .parent2 = w.dir, .name2 = "there", .inode = inode));
    inode_unref(inode);
    mem_brick_up(w.b[1]);
    healed_and_equal(&w);
    assert_ptr_equal(before, mem_find(w.b[1]->store, &inner)); /* it was never made anew */
    assert_ptr_equal(mem_find(w.b[1]->store, &moved), mem_name(w.b[1]->store, &w.dir->gfid, "there"));
    world_close(&w);
}

FIBER_TEST(an_inode_whose_names_changed_gets_its_times)
{
    struct world w;

    world_open(&w, t, 3, "");
    assert_int_equal(0, make_file(&w, w.root, "twice", 20));
    {
        SCOPED(inode_unref) struct inode *twice = inode_table_get(w.graph, &(struct gfid) { { [15] = 20 } }, S_IFREG);

        assert_int_equal(0, ask(&w, OP_LINK, .inode = twice, .parent2 = w.root, .name2 = "other"));
    }
    world_quiet(&w);
    mem_brick_down(w.b[1]);
    assert_int_equal(
        0, ask(&w, OP_RENAME, .parent = w.root, .name = "file", .parent2 = w.dir, .name2 = "renamed", .inode = w.file));
    assert_int_equal(0, ask(&w, OP_UNLINK, .parent = w.root, .name = "other"));
    for (unsigned i = 0; i < 3; i += 2) {
        mem_name(w.b[i]->store, &w.dir->gfid, "renamed")->stat.ctime = 77;
        mem_name(w.b[i]->store, &gfid_root, "twice")->stat.ctime = 78;
    }
    mem_brick_up(w.b[1]);
    healed_and_equal(&w);
    assert_int_equal(77, mem_name(w.b[1]->store, &w.dir->gfid, "renamed")->stat.ctime);
    assert_int_equal(78, mem_name(w.b[1]->store, &gfid_root, "twice")->stat.ctime);
    world_close(&w);
}

FIBER_TEST(what_was_put_aside_and_is_not_wanted_is_removed)
{
    const struct gfid moved = test_gfid(21);
    struct gfid anonymous;
    struct world w;

    assert_int_equal(0, gfid_parse("10111111-2222-3333-4444-555555555555", &anonymous));
    world_open(&w, t, 3, ANONYMOUS);
    assert_int_equal(0, make_dir(&w, w.root, "moved", 21));
    world_quiet(&w);
    mem_brick_down(w.b[1]);
    assert_int_equal(0, ask(&w, OP_RMDIR, .parent = w.root, .name = "moved"));
    mem_brick_up(w.b[1]);
    healed_and_equal(&w);
    assert_null(mem_find(w.b[1]->store, &moved));
    assert_true(list_empty(&mem_find(w.b[1]->store, &anonymous)->entries));
    world_close(&w);
}

FIBER_TEST(two_of_three_are_enough_and_the_third_stays_blamed)
{
    SCOPED(heal_report_free) struct heal_report *report = heal_report_new();
    struct world w;

    world_open(&w, t, 3, " option quorum-type fixed\n option quorum-count 2");
    mem_set_counter(w.b[0]->store, &w.file->gfid, PENDING(1), METADATA, 1);
    mem_set_counter(w.b[0]->store, &w.file->gfid, PENDING(2), METADATA, 1);
    mem_find(w.b[0]->store, &w.file->gfid)->stat.mode = S_IFREG | 0600;
    mem_brick_down(w.b[2]);
    assert_int_equal(HEAL_LEFT, heal_now(&w, &w.file->gfid, report));
    assert_int_equal(2, report->class[METADATA].healed);
    assert_int_equal(4, report->class[METADATA].left);
    assert_int_equal(0, counter(&w, 0, &w.file->gfid, PENDING(1), METADATA));
    assert_int_equal(1, counter(&w, 0, &w.file->gfid, PENDING(2), METADATA));
    /* Or the old copy and the healed one would be taken for a majority. */
    assert_int_equal(1, counter(&w, 1, &w.file->gfid, PENDING(2), METADATA));
    mem_brick_up(w.b[2]);
    assert_int_equal(HEAL_DONE, heal_now(&w, &w.file->gfid, report));
    assert_true(no_counters(&w));
    assert_true(bricks_are_equal(&w));
    world_close(&w);
}

FIBER_TEST(one_alone_heals_nothing)
{
    SCOPED(heal_report_free) struct heal_report *report = heal_report_new();
    struct world w;

    world_open(&w, t, 3, "");
    mem_brick_down(w.b[1]);
    mem_brick_down(w.b[2]);
    assert_int_equal(HEAL_ERROR, heal_now(&w, &w.file->gfid, report));
    assert_int_equal(-ENOTCONN, report->error);
    world_close(&w);
}

FIBER_TEST(marks_without_blame_are_resolved)
{
    SCOPED(heal_report_free) struct heal_report *report = heal_report_new();
    struct world w;

    world_open(&w, t, 3, "");
    mem_set_counter(w.b[0]->store, &gfid_root, DIRTY, ENTRY, 1);
    mem_set_counter(w.b[2]->store, &gfid_root, DIRTY, ENTRY, 3);
    mem_set_counter(w.b[1]->store, &w.file->gfid, DIRTY, METADATA, 1);
    assert_int_equal(HEAL_DONE, heal_now(&w, &gfid_root, report));
    assert_int_equal(HEAL_DONE, heal_now(&w, &w.file->gfid, report));
    assert_true(no_counters(&w));
    world_close(&w);
}

FIBER_TEST(marks_resolved_without_a_child_blame_it)
{
    SCOPED(heal_report_free) struct heal_report *report = heal_report_new();
    struct world w;

    world_open(&w, t, 3, "");
    mem_set_counter(w.b[0]->store, &gfid_root, DIRTY, ENTRY, 1);
    mem_brick_down(w.b[2]);
    assert_int_equal(HEAL_LEFT, heal_now(&w, &gfid_root, report));
    assert_int_equal(0, counter(&w, 0, &gfid_root, DIRTY, ENTRY));
    assert_int_equal(1, counter(&w, 0, &gfid_root, PENDING(2), ENTRY));
    assert_int_equal(1, counter(&w, 1, &gfid_root, PENDING(2), ENTRY));
    mem_brick_up(w.b[2]);
    healed_and_equal(&w);
    world_close(&w);
}

FIBER_TEST(a_name_removed_behind_the_bricks_back_is_made_again)
{
    SCOPED(heal_report_free) struct heal_report *report = heal_report_new();
    const struct heal_how how = { 0 };
    struct inode *found;
    struct world w;

    world_open(&w, t, 3, "");
    w.b[1]->fault_at = 0;
    {
        const struct request q = { .op = OP_UNLINK, .parent = w.root, .name = "file" };

        assert_int_equal(0, brick_call(&w, 1, &q));
    }
    assert_null(mem_name(w.b[1]->store, &gfid_root, "file"));
    assert_int_equal(0, heal_name(w.top, &w.call, w.root, "file", &how, report, &found));
    assert_int_equal(HEAL_DONE, report->outcome);
    assert_ptr_equal(w.file, found);
    inode_unref(found);
    healed_and_equal(&w);
    assert_int_equal(0, heal_name(w.top, &w.call, w.root, "file", &how, report, NULL));
    assert_int_equal(HEAL_CLEAN, report->outcome);
    world_close(&w);
}

FIBER_TEST(a_name_that_most_lack_without_a_record_is_not_removed)
{
    SCOPED(heal_report_free) struct heal_report *report = heal_report_new();
    const struct heal_how how = { 0 };
    struct world w;

    world_open(&w, t, 3, "");
    for (unsigned i = 1; i < 3; i++) {
        const struct request q = { .op = OP_UNLINK, .parent = w.root, .name = "file" };

        assert_int_equal(0, brick_call(&w, i, &q));
    }
    assert_int_equal(0, heal_name(w.top, &w.call, w.root, "file", &how, report, NULL));
    assert_int_equal(HEAL_DONE, report->outcome);
    healed_and_equal(&w);
    world_close(&w);
}

/* Child 1 has another inode under the name, and each child blames the other for the directory. */
static FIBER void split_name(struct world *w)
{
    const struct gfid other = test_gfid(77);

    mem_rename_gfid(w->b[1]->store, mem_find(w->b[1]->store, &w->file->gfid), &other);
    mem_set_counter(w->b[0]->store, &gfid_root, PENDING(1), ENTRY, 1);
    mem_set_counter(w->b[1]->store, &gfid_root, PENDING(0), ENTRY, 1);
}

FIBER_TEST(one_name_with_two_inodes_is_a_split_brain_until_one_is_chosen)
{
    SCOPED(heal_report_free) struct heal_report *report = heal_report_new();
    SCOPED(heal_view_free) struct heal_view *view = heal_view_new();
    const struct heal_how choose = { .choice = { .how = HEAL_CHOOSE_CHILD, .child = 1 }, .flags = HEAL_RESOLVE };
    const struct gfid other = test_gfid(77);
    struct world w;

    world_open(&w, t, 2, "");
    split_name(&w);
    assert_int_equal(HEAL_SPLIT_BRAIN, heal_now(&w, &gfid_root, report));
    assert_int_equal(HEAL_SPLIT_GFID, report->split_brain);
    assert_logged(t, "name-split-brain");
    assert_int_equal(1, counter(&w, 0, &gfid_root, PENDING(1), ENTRY)); /* still to be healed */
    assert_int_equal(0, heal_look_name(w.top, &w.call, w.root, "file", view));
    assert_int_equal(HEAL_SPLIT_GFID, view->split_brain);
    assert_true(gfid_equal(&other, &view->child[1].stat.gfid));
    assert_int_equal(0, heal_name(w.top, &w.call, w.root, "file", &choose, report, NULL));
    assert_int_equal(HEAL_DONE, report->outcome);
    assert_int_equal(HEAL_SPLIT_GFID, report->resolved);
    healed_and_equal(&w);
    assert_non_null(mem_find(w.b[0]->store, &other));
    world_close(&w);
}

FIBER_TEST(metadata_split_brain_needs_a_choice)
{
    SCOPED(heal_report_free) struct heal_report *report = heal_report_new();
    SCOPED(heal_view_free) struct heal_view *view = heal_view_new();
    const struct heal_how bigger = { .choice = { .how = HEAL_CHOOSE_BIGGER }, .flags = HEAL_RESOLVE };
    const struct heal_how child = { .choice = { .how = HEAL_CHOOSE_CHILD, .child = 1 }, .flags = HEAL_RESOLVE };
    struct world w;

    world_open(&w, t, 2, "");
    mem_set_counter(w.b[0]->store, &w.file->gfid, PENDING(1), METADATA, 2);
    mem_set_counter(w.b[1]->store, &w.file->gfid, PENDING(0), METADATA, 1);
    mem_find(w.b[1]->store, &w.file->gfid)->stat.mode = S_IFREG | 0600;
    assert_int_equal(HEAL_SPLIT_BRAIN, heal_now(&w, &w.file->gfid, report));
    assert_int_equal(0, heal_look(w.top, &w.call, w.file, view));
    assert_int_equal(HEAL_SPLIT_METADATA, view->split_brain);
    assert_int_equal(bit(METADATA), view->needs);
    assert_int_equal(HEAL_SPLIT_BRAIN, heal_how(&w, &w.file->gfid, &bigger, report));
    assert_int_equal(HEAL_REFUSED_METADATA, report->refusal);
    assert_int_equal(HEAL_DONE, heal_how(&w, &w.file->gfid, &child, report));
    assert_int_equal(HEAL_SPLIT_METADATA, report->resolved);
    assert_true(no_counters(&w));
    assert_int_equal(S_IFREG | 0600, mem_find(w.b[0]->store, &w.file->gfid)->stat.mode);
    assert_int_equal(HEAL_CLEAN, heal_how(&w, &w.file->gfid, &child, report));
    assert_int_equal(HEAL_REFUSED_NOT_SPLIT, report->refusal);
    world_close(&w);
}

FIBER_TEST(equal_copies_that_blame_each_other_are_no_split_brain)
{
    SCOPED(heal_report_free) struct heal_report *report = heal_report_new();
    struct world w;

    world_open(&w, t, 2, "");
    mem_set_counter(w.b[0]->store, &w.file->gfid, PENDING(1), METADATA, 2);
    mem_set_counter(w.b[1]->store, &w.file->gfid, PENDING(0), METADATA, 1);
    assert_int_equal(HEAL_DONE, heal_now(&w, &w.file->gfid, report));
    assert_true(no_counters(&w));
    world_close(&w);
}

FIBER_TEST(a_session_gives_way_to_the_healer)
{
    SCOPED(heal_report_free) struct heal_report *report = heal_report_new();
    struct world w;

    world_open(&w, t, 3, "");
    mem_brick_down(w.b[1]);
    assert_int_equal(0, make_file(&w, w.root, "new", 20));
    mem_brick_up(w.b[1]);
    assert_int_equal(0, make_file(&w, w.root, "newer", 21)); /* its session is open */
    assert_true(mem_lock_count(w.b[0]->store) > 0);
    assert_int_equal(HEAL_DONE, heal_now(&w, &gfid_root, report));
    healed_and_equal(&w);
    world_close(&w);
}

FIBER_TEST(what_another_healer_has_is_left_to_it)
{
    SCOPED(heal_report_free) struct heal_report *report = heal_report_new();
    const struct lock_range range = { .type = LOCK_WRITE };
    struct world w, other;

    world_open(&w, t, 3, "");
    world_join(&other, t, 3, "");
    mem_set_counter(w.b[0]->store, &gfid_root, PENDING(1), ENTRY, 1);
    for (unsigned i = 0; i < 2; i++) {
        const struct request q = {
            .op = OP_ENTRYLK, .inode = other.root, .text = "set:self-heal", .command = LOCK_TRY, .lock = &range
        };

        assert_int_equal(0, brick_call(&other, i, &q));
    }
    assert_int_equal(HEAL_BUSY, heal_now(&w, &gfid_root, report));
    world_close(&other);
    assert_int_equal(HEAL_DONE, heal_now(&w, &gfid_root, report));
    world_close(&w);
}

static FIBER int refuse(struct heal_pace *pace, struct call *call, uint64_t bytes, uint32_t names)
{
    return -ECANCELED;
}

FIBER_TEST(a_heal_that_is_called_off_leaves_the_counters)
{
    SCOPED(heal_report_free) struct heal_report *report = heal_report_new();
    struct heal_pace pace = { .before = refuse };
    const struct heal_how how = { .pace = &pace };
    struct world w;

    world_open(&w, t, 3, "");
    mem_set_counter(w.b[0]->store, &gfid_root, PENDING(1), ENTRY, 1);
    assert_int_equal(HEAL_ERROR, heal_how(&w, &gfid_root, &how, report));
    assert_int_equal(-ECANCELED, report->error);
    assert_int_equal(1, counter(&w, 0, &gfid_root, PENDING(1), ENTRY));
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(0, mem_lock_count(w.b[i]->store));
    world_close(&w);
}

FIBER_TEST(an_inode_that_nobody_knows_is_gone)
{
    SCOPED(heal_report_free) struct heal_report *report = heal_report_new();
    const struct gfid gfid = test_gfid(99);
    struct world w;

    world_open(&w, t, 3, "");
    assert_int_equal(HEAL_CLEAN, heal_now(&w, &gfid, report));
    assert_true(report->is_gone);
    world_close(&w);
}

FIBER_TEST(an_emptied_brick_that_is_marked_is_filled)
{
    struct mem_node *root;
    struct mem_entry *e;
    struct world w;

    world_open(&w, t, 3, ANONYMOUS " option granular-entry-heal on");
    assert_int_equal(0, make_file(&w, w.dir, "inner", 20));
    assert_int_equal(0, make_dir(&w, w.dir, "sub", 21));
    set_xattr(&w, w.dir, "trusted.glusterfs.dht", "layout");
    world_quiet(&w);
    root = mem_find(w.b[1]->store, &gfid_root);
    list_for_each (e, &root->entries, of_node) {
        const struct request q = { .op = OP_RMDIR, .parent = w.root, .name = e->name, .flags = 1 };

        assert_int_equal(0, brick_call(&w, 1, &q));
    }
    assert_null(mem_find(w.b[1]->store, &w.dir->gfid));
    for (unsigned i = 0; i < 3; i += 2) {
        SCOPED(dict_unref) struct dict *d = dict_new();
        const struct request q = { .op = OP_XATTROP, .inode = w.root, .flags = XATTROP_ADD32, .xattrs = d };
        uint8_t bytes[12] = { 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1 };

        assert_int_equal(0, dict_set_bin(d, PENDING(1), bytes, sizeof(bytes)));
        assert_int_equal(0, brick_call(&w, i, &q));
    }
    mem_set_counter(w.b[1]->store, &gfid_root, DIRTY, ENTRY, 1);
    healed_and_equal(&w);
    assert_non_null(mem_name(w.b[1]->store, &w.dir->gfid, "sub"));
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clean_inode_is_left_alone),
        cmocka_unit_test(attributes_and_xattrs_that_were_missed_are_healed),
        cmocka_unit_test(attributes_that_differ_without_a_record_go_by_the_majority),
        cmocka_unit_test(names_that_were_missed_are_healed),
        cmocka_unit_test(a_directory_renamed_to_another_keeps_what_is_in_it_on_the_sink),
        cmocka_unit_test(an_inode_whose_names_changed_gets_its_times),
        cmocka_unit_test(what_was_put_aside_and_is_not_wanted_is_removed),
        cmocka_unit_test(two_of_three_are_enough_and_the_third_stays_blamed),
        cmocka_unit_test(one_alone_heals_nothing),
        cmocka_unit_test(marks_without_blame_are_resolved),
        cmocka_unit_test(marks_resolved_without_a_child_blame_it),
        cmocka_unit_test(a_name_removed_behind_the_bricks_back_is_made_again),
        cmocka_unit_test(a_name_that_most_lack_without_a_record_is_not_removed),
        cmocka_unit_test(one_name_with_two_inodes_is_a_split_brain_until_one_is_chosen),
        cmocka_unit_test(metadata_split_brain_needs_a_choice),
        cmocka_unit_test(equal_copies_that_blame_each_other_are_no_split_brain),
        cmocka_unit_test(a_session_gives_way_to_the_healer),
        cmocka_unit_test(what_another_healer_has_is_left_to_it),
        cmocka_unit_test(a_heal_that_is_called_off_leaves_the_counters),
        cmocka_unit_test(an_inode_that_nobody_knows_is_gone),
        cmocka_unit_test(an_emptied_brick_that_is_marked_is_filled),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
