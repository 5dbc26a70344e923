/* The rules of replication one by one: who is asked, who is believed, what is refused. */
#include "unit/replicate/world.h"
#include <fcntl.h>
#include <stdio.h>

/* ---- options ---- */

static void refused(struct test *t, const char *option, const char *part)
{
    char text[512];

    snprintf(text, sizeof(text),
             "volume c0\n type test/leaf\n option number 1\nend-volume\n"
             "volume c1\n type test/leaf\n option number 1\nend-volume\n"
             "volume set\n type cluster/afr\n %s\n subvolumes c0 c1\nend-volume\n",
             option);
    assert_true(test_try_build(t, text) < 0);
    if (!strstr(t->err.text, part))
        fail_msg("\"%s\" does not say \"%s\"", t->err.text, part);
}

SIM_TEST(options_that_make_no_sense_are_refused)
{
    refused(t, "option quorum-type fixed", "quorum-count");
    refused(t, "option quorum-type most", "quorum-type");
    refused(t, "option arbiter-count 1", "three subvolumes");
    refused(t, "option afr-pending-xattr a", "fewer");
    refused(t, "option afr-pending-xattr a,b,c", "more");
    refused(t, "option read-subvolume c7", "c7");
    refused(t, "option read-hash-mode 6", "read-hash-mode");
    refused(t, "option thin-arbiter host:/path", "two bricks, then the thin arbiter; here are 2");
}

/* ---- arbiter ---- */

SIM_TEST(the_arbiter_gets_no_data_and_serves_none)
{
    struct world w;
    char text[16];

    world_open(&w, t, 3, " option arbiter-count 1");
    mem_stores[2].is_arbiter = true;
    assert_int_equal(5, world_write(&w, 0, "hello"));
    assert_int_equal(1, w.b[2]->count[OP_WRITE]);
    assert_int_equal(0, mem_find(&mem_stores[2], &w.file->gfid)->stat.size);
    world_quiet(&w);
    for (unsigned down = 0; down < 2; down++) {
        mem_brick_down(w.b[down]);
        assert_int_equal(5, world_read(&w, text, sizeof(text)));
        assert_string_equal("hello", text);
        mem_brick_up(w.b[down]);
    }
    assert_int_equal(0, w.b[2]->count[OP_READ]);
    assert_int_equal(0, ask(&w, OP_STATFS, .inode = w.root));
    assert_int_equal(999, w.r->statfs->bavail); /* brick 1's, not the arbiter's smaller 998 */
    world_close(&w);
}

SIM_TEST(an_old_copy_and_the_arbiter_are_not_enough)
{
    struct world w;
    char text[16];

    world_open(&w, t, 3, " option arbiter-count 1");
    mem_stores[2].is_arbiter = true;
    assert_int_equal(3, world_write(&w, 0, "old"));
    mem_brick_down(w.b[0]);
    assert_int_equal(3, world_write(&w, 0, "new"));
    mem_brick_down(w.b[1]);
    mem_brick_up(w.b[0]);
    assert_int_equal(-ENOTCONN, world_read(&w, text, sizeof(text)));
    assert_int_equal(-ENOTCONN, world_write(&w, 0, "x"));
    world_close(&w);
}

SIM_TEST(the_last_copy_with_data_is_never_blamed_for_it)
{
    struct world w;
    char text[16];

    world_open(&w, t, 3, " option arbiter-count 1");
    mem_stores[2].is_arbiter = true;
    mem_brick_down(w.b[0]);
    assert_int_equal(3, world_write(&w, 0, "old"));
    world_quiet(&w);
    mem_brick_up(w.b[0]);
    assert_int_equal(3, world_write(&w, 0, "new"));
    mem_brick_down(w.b[1]); /* in the session: it may have lost what it had answered */
    world_rest(&w);
    assert_int_equal(0, counter(&w, 0, &w.file->gfid, PENDING(1), DATA));
    assert_int_equal(0, counter(&w, 2, &w.file->gfid, PENDING(1), DATA));
    assert_int_equal(-ENOTCONN, world_read(&w, text, sizeof(text)));
    mem_brick_up(w.b[1]);
    world_rest(&w);
    assert_int_equal(3, world_read(&w, text, sizeof(text)));
    assert_string_equal("new", text);
    world_close(&w);
}

/* ---- failures of changes ---- */

SIM_TEST(the_same_refusal_everywhere_leaves_no_mark)
{
    struct world w;

    world_open(&w, t, 3, "");
    assert_int_equal(-ENOENT, ask(&w, OP_UNLINK, .parent = w.root, .name = "nobody"));
    assert_int_equal(-EEXIST, world_create(&w, "file", 70));
    world_quiet(&w);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(0, counter(&w, i, &gfid_root, DIRTY, ENTRY));
    world_close(&w);
}

SIM_TEST(a_change_on_a_minority_fails_and_stays_marked)
{
    struct world w;

    world_open(&w, t, 3, "");
    for (unsigned i = 1; i < 3; i++) {
        w.b[i]->fault = FAULT_REFUSE;
        w.b[i]->fault_at = 3; /* lock, mark, and then the name */
    }
    assert_int_equal(-EIO, world_create(&w, "half", 71));
    world_quiet(&w);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(1, counter(&w, i, &gfid_root, DIRTY, ENTRY));
        for (unsigned j = 0; j < 3; j++)
            assert_int_equal(0, counter(&w, i, &gfid_root, PENDING(j), ENTRY));
    }
    world_close(&w);
}

SIM_TEST(rename_flags_that_a_brick_does_not_know_are_refused_before_anything_changes)
{
    struct world w;

    world_open(&w, t, 3, "");
    assert_int_equal(0, world_create(&w, "other", 72));
    world_quiet(&w);
    mem_brick_down(w.b[1]);
    w.b[1]->lacks = BRICK_LACKS_RENAME_FLAGS;
    mem_brick_up(w.b[1]);
    assert_int_equal(-EINVAL, ask(&w, OP_RENAME, .parent = w.root, .name = "file", .parent2 = w.root, .name2 = "other",
                                  .flags = RENAME_EXCHANGE));
    assert_int_equal(-EINVAL, ask(&w, OP_RENAME, .parent = w.root, .name = "file", .parent2 = w.root, .name2 = "free",
                                  .flags = RENAME_NOREPLACE));
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(0, w.b[i]->count[OP_RENAME] + counter(&w, i, &gfid_root, DIRTY, ENTRY));
    assert_int_equal(0, ask(&w, OP_RENAME, .parent = w.root, .name = "file", .parent2 = w.root, .name2 = "free"));
    mem_brick_down(w.b[1]); /* as long as it is away it hinders nobody */
    assert_int_equal(0, ask(&w, OP_RENAME, .parent = w.root, .name = "free", .parent2 = w.root, .name2 = "file",
                            .flags = RENAME_NOREPLACE));
    world_close(&w);
}

SIM_TEST(a_new_inode_that_a_brick_missed_is_marked_but_a_symlink_is_not)
{
    struct gfid made = test_gfid(80), link = test_gfid(81);
    struct world w;

    world_open(&w, t, 3, "");
    mem_brick_down(w.b[2]);
    assert_int_equal(0, world_create(&w, "made", 80));
    SCOPED(inode_unref) struct inode *inode = inode_table_get(w.top->graph, &link, S_IFLNK);
    assert_int_equal(0, ask(&w, OP_SYMLINK, .parent = w.root, .name = "link", .inode = inode, .text = "target"));
    assert_int_equal(1, counter(&w, 0, &made, PENDING(2), METADATA));
    assert_int_equal(0, counter(&w, 0, &link, PENDING(2), METADATA));
    assert_int_equal(2, counter(&w, 0, &gfid_root, PENDING(2), ENTRY));
    inode_unref(take(inode));
    world_close(&w);
}

SIM_TEST(old_copies_alone_cannot_carry_a_change)
{
    struct world w;

    world_open(&w, t, 3, "");
    mem_set_counter(&mem_stores[0], &w.file->gfid, PENDING(1), DATA, 1);
    mem_set_counter(&mem_stores[0], &w.file->gfid, PENDING(2), DATA, 1);
    w.b[0]->fault = FAULT_REFUSE;
    w.b[0]->fault_at = 3;
    assert_int_equal(-EIO, world_write(&w, 0, "x"));
    world_quiet(&w);
    assert_int_equal(0, counter(&w, 1, &w.file->gfid, PENDING(0), DATA));
    assert_int_equal(0, counter(&w, 2, &w.file->gfid, PENDING(0), DATA));
    world_close(&w);
}

SIM_TEST(missed_names_are_recorded_one_by_one)
{
    struct world w;

    world_open(&w, t, 3, " option granular-entry-heal on");
    mem_brick_down(w.b[1]);
    assert_int_equal(0, world_create(&w, "first", 72));
    assert_string_equal("first", mem_stores[0].entry_changed);
    assert_int_equal(
        0, ask(&w, OP_RENAME, .parent = w.root, .name = "first", .parent2 = w.dir, .name2 = "second", .inode = w.file));
    assert_string_equal("second", mem_stores[2].entry_changed);
    world_close(&w);
}

/* ---- names ---- */

SIM_TEST(a_name_only_on_a_copy_that_is_behind_is_not_there)
{
    struct world w;

    world_open(&w, t, 3, "");
    mem_brick_down(w.b[2]);
    assert_int_equal(0, ask(&w, OP_UNLINK, .parent = w.root, .name = "file"));
    mem_brick_up(w.b[2]);
    world_quiet(&w);
    assert_int_equal(-ENOENT, world_lookup(&w, "file"));
    world_close(&w);
}

static void give_other_gfid(unsigned brick, const char *name, struct inode *directory, uint8_t number)
{
    const struct gfid gfid = test_gfid(number);
    struct mem_node *n = mem_name(&mem_stores[brick], &directory->gfid, name);

    assert_non_null(n);
    mem_rename_gfid(&mem_stores[brick], n, &gfid);
}

SIM_TEST(one_name_with_two_inodes_is_refused)
{
    struct world w;

    world_open(&w, t, 2, "");
    give_other_gfid(1, "file", w.root, 80);
    assert_int_equal(-EIO, world_lookup(&w, "file"));
    assert_logged(t, "one name, two inodes");
    assert_logged(t, "resolve source-brick");
    world_close(&w);
}

SIM_TEST(a_name_that_most_agree_on_is_healed_by_who_looks)
{
    const struct gfid was = test_gfid(3);
    struct world w;

    world_open(&w, t, 3, "");
    world_quiet(&w);
    give_other_gfid(1, "file", w.root, 80);
    assert_int_equal(0, world_lookup(&w, "file"));
    assert_true(gfid_equal(&w.file->gfid, &w.r->stat.gfid));
    assert_true(gfid_equal(&was, &mem_name(&mem_stores[1], &w.root->gfid, "file")->gfid));
    world_close(&w);
}

SIM_TEST(a_name_that_one_lacks_without_a_record_is_healed_by_who_looks)
{
    struct world w;

    world_open(&w, t, 3, "");
    world_quiet(&w);
    mem_drop_name(&mem_stores[2], &w.root->gfid, "file");
    assert_int_equal(0, world_lookup(&w, "file"));
    assert_non_null(mem_name(&mem_stores[2], &w.root->gfid, "file"));
    world_close(&w);
}

SIM_TEST(another_inode_on_a_copy_that_is_behind_is_ignored)
{
    struct world w;

    world_open(&w, t, 3, "");
    give_other_gfid(1, "file", w.root, 80);
    mem_set_counter(&mem_stores[0], &gfid_root, PENDING(1), ENTRY, 1);
    mem_set_counter(&mem_stores[2], &gfid_root, PENDING(1), ENTRY, 1);
    assert_int_equal(0, world_lookup(&w, "file"));
    assert_true(gfid_equal(&w.r->stat.gfid, &w.file->gfid));
    world_close(&w);
}

SIM_TEST(private_names_of_the_root_are_hidden)
{
    struct world w;
    uint32_t seen = 0;

    world_open(&w, t, 3, "");
    const struct gfid gfid = test_gfid(90);
    struct inode *landfill = inode_table_get(w.graph, &gfid, S_IFDIR);
    w.call.pid = -1;
    assert_int_equal(0, ask(&w, OP_MKDIR, .parent = w.root, .name = ".landfill", .inode = landfill, .mode = 0755));
    w.call.pid = 1;
    assert_int_equal(-EPERM, world_lookup(&w, ".landfill"));
    assert_int_equal(-EPERM, world_create(&w, ".glusterfs-anonymous-inode-x", 81));
    struct fd *fd = fd_new(w.root, O_RDONLY, 1);
    fd->is_dir = true;
    uint64_t offset = 0;
    while (ask(&w, OP_READDIRP, .inode = w.root, .fd = fd, .size = 4096, .offset = offset) > 0) {
        for (uint32_t i = 0; i < w.r->entries->count; i++) {
            assert_string_not_equal(".landfill", w.r->entries->list[i].name);
            offset = w.r->entries->list[i].offset;
            seen++;
        }
    }
    assert_int_equal(2, seen); /* file and dir, in pages of two names */
    inode_unref(landfill);
    fd_unref(fd);
    world_close(&w);
}

/* ---- extended attributes ---- */

SIM_TEST(counters_are_nobodys_business)
{
    struct world w;
    SCOPED(dict_unref) struct dict *xattrs = dict_new();

    world_open(&w, t, 3, "");
    assert_int_equal(1, world_write(&w, 0, "x"));
    assert_int_equal(0, dict_set_bin(xattrs, DIRTY, "x", 1));
    assert_int_equal(-EPERM, ask(&w, OP_SETXATTR, .inode = w.file, .xattrs = xattrs));
    assert_int_equal(-EPERM, ask(&w, OP_REMOVEXATTR, .inode = w.file, .text = PENDING(1)));
    assert_int_equal(-ENODATA, ask(&w, OP_GETXATTR, .inode = w.file, .text = DIRTY));
    assert_int_equal(0, ask(&w, OP_GETXATTR, .inode = w.file));
    assert_false(dict_has(w.r->xattrs, DIRTY));
    assert_int_equal(0, world_lookup(&w, "file"));
    assert_false(dict_has(w.r->xdata, DIRTY));
    world_close(&w);
}

/* ---- reads ---- */

SIM_TEST(what_a_client_cut_off_from_one_brick_wrote_is_read_by_others)
{
    struct world a, b;
    char text[16];

    for (unsigned cut = 0; cut < 3; cut++) {
        world_open(&a, t, 3, "");
        assert_int_equal(3, world_write(&a, 0, "old"));
        world_quiet(&a);
        assert_int_equal(3, world_read(&a, text, sizeof(text)));
        world_join(&b, t, 3, "");
        mem_brick_down(b.b[cut]);
        assert_int_equal(3, world_write(&b, 0, "new"));
        assert_int_equal(3, world_read(&a, text, sizeof(text)));
        assert_string_equal("new", text);
        world_close(&b);
        world_close(&a);
    }
}

SIM_TEST(a_read_goes_on_when_its_brick_goes)
{
    struct world w;
    char text[16];

    world_open(&w, t, 3, "");
    assert_int_equal(3, world_write(&w, 0, "abc"));
    world_quiet(&w);
    for (unsigned i = 0; i < 3; i++) {
        w.b[i]->fault = FAULT_DOWN_BEFORE;
        w.b[i]->fault_at = 1;
        assert_int_equal(3, world_read(&w, text, sizeof(text)));
        w.b[i]->fault_at = 0;
        mem_brick_up(w.b[i]);
    }
    world_close(&w);
}

SIM_TEST(shorter_copies_without_a_record_are_not_read)
{
    struct world w;
    char text[16];

    world_open(&w, t, 3, "");
    assert_int_equal(4, world_write(&w, 0, "long"));
    world_quiet(&w);
    mem_find(&mem_stores[0], &w.file->gfid)->stat.size = 2;
    mem_find(&mem_stores[1], &w.file->gfid)->stat.size = 3;
    world_quiet(&w);
    assert_int_equal(0, world_lookup(&w, "file"));
    assert_int_equal(4, w.r->stat.size);
    assert_int_equal(4, world_read(&w, text, sizeof(text)));
    world_close(&w);
}

SIM_TEST(a_copy_without_the_mark_that_others_have_gives_way)
{
    struct world w;
    char text[16];

    for (unsigned without = 0; without < 3; without++) {
        world_open(&w, t, 3, "");
        assert_int_equal(3, world_write(&w, 0, "abc"));
        world_quiet(&w);
        for (unsigned i = 0; i < 3; i++)
            mem_set_counter(&mem_stores[i], &w.file->gfid, DIRTY, DATA, i != without);
        world_forget_messages(&w);
        struct world reader;
        world_join(&reader, t, 3, "");
        assert_int_equal(3, world_read(&reader, text, sizeof(text)));
        assert_int_equal(0, reader.b[without]->count[OP_READ]);
        world_close(&reader);
        world_close(&w);
    }
}

/* ---- descriptors ---- */

SIM_TEST(a_descriptor_is_opened_on_a_brick_that_returns)
{
    struct world w;

    world_open(&w, t, 3, "");
    mem_brick_down(w.b[1]);
    struct fd *fd = fd_new(w.file, O_RDWR, 1);
    assert_int_equal(0, ask(&w, OP_OPEN, .inode = w.file, .fd = fd, .flags = O_RDWR));
    assert_int_equal(0, w.b[1]->count[OP_OPEN]);
    mem_brick_up(w.b[1]);
    SCOPED(buf_unref) struct buf *data = buf_copy("x", 1);
    assert_int_equal(1, ask(&w, OP_WRITE, .inode = w.file, .fd = fd, .data = data));
    assert_int_equal(1, w.b[1]->count[OP_OPEN]);
    assert_int_equal(1, w.b[1]->count[OP_WRITE]);
    fd_unref(fd);
    world_close(&w);
}

SIM_TEST(a_brick_that_drops_out_of_a_session_counts_as_behind)
{
    struct world w;

    world_open(&w, t, 3, "");
    assert_int_equal(4, world_write(&w, 0, "long"));
    mem_brick_down(w.b[2]); /* with power, perhaps: what it answered may not be on its disk */
    world_quiet(&w);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(1, counter(&w, i, &w.file->gfid, PENDING(2), DATA));
        assert_int_equal(0, counter(&w, i, &w.file->gfid, DIRTY, DATA));
    }
    world_close(&w);
}

SIM_TEST(opening_with_truncation_is_a_change)
{
    struct world w;

    world_open(&w, t, 3, "");
    assert_int_equal(4, world_write(&w, 0, "long"));
    struct fd *fd = fd_new(w.file, O_RDWR | O_TRUNC, 1);
    world_quiet(&w);
    mem_brick_down(w.b[2]);
    assert_int_equal(0, ask(&w, OP_OPEN, .inode = w.file, .fd = fd, .flags = O_RDWR | O_TRUNC));
    assert_int_equal(0, mem_find(&mem_stores[0], &w.file->gfid)->stat.size);
    assert_int_equal(1, counter(&w, 0, &w.file->gfid, PENDING(2), DATA));
    fd_unref(fd);
    world_close(&w);
}

/* ---- sessions ---- */

SIM_TEST(appending_writes_do_not_ride)
{
    struct world w;

    world_open(&w, t, 3, "");
    struct fd *fd = fd_new(w.file, O_RDWR | O_APPEND, 1);
    assert_int_equal(0, ask(&w, OP_OPEN, .inode = w.file, .fd = fd, .flags = O_RDWR | O_APPEND));
    world_forget_messages(&w);
    SCOPED(buf_unref) struct buf *data = buf_copy("x", 1);
    assert_int_equal(1, ask(&w, OP_WRITE, .inode = w.file, .fd = fd, .data = data));
    assert_int_equal(2, messages(&w, 0));
    fd_unref(fd);
    world_close(&w);
}

SIM_TEST(an_idle_session_closes_by_itself)
{
    struct world w;

    world_open(&w, t, 3, " option post-op-delay-secs 2");
    assert_int_equal(1, world_write(&w, 0, "x"));
    assert_int_equal(0, fiber_sleep_ms(NULL, 1900));
    assert_int_equal(1, mem_lock_count(&mem_stores[0]));
    assert_int_equal(0, fiber_sleep_ms(NULL, 300));
    assert_int_equal(0, mem_lock_count(&mem_stores[0]));
    assert_int_equal(0, counter(&w, 0, &w.file->gfid, DIRTY, DATA));
    world_close(&w);
}

SIM_TEST(stopping_the_graph_closes_sessions)
{
    struct world w;
    struct gfid gfid;

    world_open(&w, t, 3, "");
    assert_int_equal(1, world_write(&w, 0, "x"));
    assert_int_equal(0, world_create(&w, "new", 82));
    gfid = w.file->gfid;
    world_close(&w);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(0, mem_lock_count(&mem_stores[i]));
        assert_int_equal(0, mem_counter(&mem_stores[i], &gfid, DIRTY, DATA));
        assert_int_equal(0, mem_counter(&mem_stores[i], &gfid_root, DIRTY, ENTRY));
    }
}

SIM_TEST(data_is_on_disk_before_the_mark_goes)
{
    struct world w;

    world_open(&w, t, 3, "");
    assert_int_equal(4, world_write(&w, 0, "long"));
    world_quiet(&w);
    assert_int_equal(0, w.b[0]->count[OP_FSYNC]); /* appended: its loss would show as a shorter copy */
    assert_int_equal(2, world_write(&w, 1, "on"));
    world_quiet(&w);
    assert_int_equal(1, w.b[0]->count[OP_FSYNC]);
    world_close(&w);
}

struct racer {
    struct world *w;
    uint8_t first;
    const char *text;
    int failed;
    struct waitq *done;
    unsigned *running;
};

static FIBER void race(void *arg)
{
    struct racer *racer = arg;

    for (uint8_t i = 0; i < 20; i++) {
        char name[16];

        snprintf(name, sizeof(name), "%s%u", racer->text, i);
        racer->failed += world_create(racer->w, name, racer->first + i) < 0;
        racer->failed += world_write(racer->w, 0, racer->text) < 0;
    }
    if (--*racer->running == 0)
        waitq_wake_all(racer->done, 0);
}

SIM_TEST(clients_that_race_all_get_on_and_copies_stay_equal)
{
    struct world a, b;
    struct waitq done;
    unsigned running = 2;

    waitq_init(&done);
    world_open(&a, t, 3, "");
    world_join(&b, t, 3, "");
    struct racer one = { .w = &a, .first = 100, .text = "aaaa", .done = &done, .running = &running };
    struct racer two = { .w = &b, .first = 150, .text = "bbbb", .done = &done, .running = &running };
    assert_int_equal(0, fiber_spawn(t->env, "one", race, &one));
    assert_int_equal(0, fiber_spawn(t->env, "two", race, &two));
    assert_int_equal(0, waitq_wait(&done, NULL));
    assert_int_equal(0, one.failed);
    assert_int_equal(0, two.failed);
    assert_true(same_data(&a, &a.file->gfid, 7));
    world_quiet(&a);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(0, counter(&a, i, &gfid_root, DIRTY, ENTRY));
        assert_int_equal(0, counter(&a, i, &a.file->gfid, DIRTY, DATA));
    }
    /* 80 changes of two files in turns of two milliseconds at least: both went on all the time */
    assert_true(env_now_ns(t->env) < 20ull * 1000000000);
    world_close(&b);
    world_close(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_that_make_no_sense_are_refused),
        cmocka_unit_test(the_arbiter_gets_no_data_and_serves_none),
        cmocka_unit_test(an_old_copy_and_the_arbiter_are_not_enough),
        cmocka_unit_test(the_last_copy_with_data_is_never_blamed_for_it),
        cmocka_unit_test(the_same_refusal_everywhere_leaves_no_mark),
        cmocka_unit_test(a_change_on_a_minority_fails_and_stays_marked),
        cmocka_unit_test(rename_flags_that_a_brick_does_not_know_are_refused_before_anything_changes),
        cmocka_unit_test(a_new_inode_that_a_brick_missed_is_marked_but_a_symlink_is_not),
        cmocka_unit_test(old_copies_alone_cannot_carry_a_change),
        cmocka_unit_test(missed_names_are_recorded_one_by_one),
        cmocka_unit_test(a_name_only_on_a_copy_that_is_behind_is_not_there),
        cmocka_unit_test(one_name_with_two_inodes_is_refused),
        cmocka_unit_test(a_name_that_most_agree_on_is_healed_by_who_looks),
        cmocka_unit_test(a_name_that_one_lacks_without_a_record_is_healed_by_who_looks),
        cmocka_unit_test(another_inode_on_a_copy_that_is_behind_is_ignored),
        cmocka_unit_test(private_names_of_the_root_are_hidden),
        cmocka_unit_test(counters_are_nobodys_business),
        cmocka_unit_test(what_a_client_cut_off_from_one_brick_wrote_is_read_by_others),
        cmocka_unit_test(a_read_goes_on_when_its_brick_goes),
        cmocka_unit_test(shorter_copies_without_a_record_are_not_read),
        cmocka_unit_test(a_copy_without_the_mark_that_others_have_gives_way),
        cmocka_unit_test(a_descriptor_is_opened_on_a_brick_that_returns),
        cmocka_unit_test(a_brick_that_drops_out_of_a_session_counts_as_behind),
        cmocka_unit_test(opening_with_truncation_is_a_change),
        cmocka_unit_test(appending_writes_do_not_ride),
        cmocka_unit_test(an_idle_session_closes_by_itself),
        cmocka_unit_test(stopping_the_graph_closes_sessions),
        cmocka_unit_test(data_is_on_disk_before_the_mark_goes),
        cmocka_unit_test(clients_that_race_all_get_on_and_copies_stay_equal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
