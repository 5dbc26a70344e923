/* protocol/client and protocol/server together, operation by operation. */
#include "protocol/client/client_internal.h"
#include "unit/protocol/pair.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <linux/falloc.h>
#include <unistd.h>

static struct buf *bytes(const char *text)
{
    return buf_copy(text, strlen(text));
}

FIBER_TEST(stat_travels)
{
    struct pair *p = pair_new(t, NULL, NULL);

    p->leaf->stat.size = 4711;
    p->leaf->stat.mtime = -3;
    p->leaf->stat.mtime_nsec = 9;
    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->file));
    assert_int_equal(4711, t->r->stat.size);
    assert_int_equal(-3, t->r->stat.mtime);
    assert_int_equal(9, t->r->stat.mtime_nsec);
    assert_int_equal(S_IFREG | 0644, t->r->stat.mode);
    assert_true(gfid_equal(&t->file->gfid, &t->r->stat.gfid));
    assert_int_equal(OP_STAT, leaf_last(p->leaf)->op);
    assert_false(leaf_last(p->leaf)->has_fd);
    pair_free(p);
}

FIBER_TEST(an_error_travels_with_its_number)
{
    struct pair *p = pair_new(t, NULL, NULL);

    leaf_fail(p->leaf, OP_UNLINK, EBUSY, 1);
    assert_int_equal(-EBUSY, test_op(t, OP_UNLINK, .parent = t->root, .name = "x"));
    pair_free(p);
}

static FIBER int answer_read(struct leaf *leaf, struct call *call, const struct request *q, struct reply *r)
{
    r->data = buf_new(q->size);
    for (size_t i = 0; i < q->size; i++)
        r->data->data[i] = (uint8_t)(q->offset + i);
    r->stat = leaf->stat;
    return (int)q->size;
}

static void check_read(struct test *t, size_t size)
{
    assert_int_equal(size, test_op(t, OP_READ, .inode = t->file, .size = size, .offset = 5));
    assert_int_equal(size, t->r->data->size);
    for (size_t i = 0; i < size; i++)
        assert_int_equal((uint8_t)(5 + i), t->r->data->data[i]);
    reply_done(t->r);
}

FIBER_TEST(data_is_read_in_all_sizes)
{
    struct pair *p = pair_new(t, NULL, NULL);

    p->leaf->answers[OP_READ] = answer_read;
    check_read(t, 0);
    check_read(t, 1);
    check_read(t, 4096);
    check_read(t, 16000);
    check_read(t, 131072);
    check_read(t, 1000003);
    pair_free(p);
}

static FIBER int answer_write(struct leaf *leaf, struct call *call, const struct request *q, struct reply *r)
{
    uint64_t *sum = leaf->arg;

    *sum = 0;
    for (size_t i = 0; i < q->data->size; i++)
        *sum = *sum * 31 + q->data->data[i];
    return (int)q->data->size;
}

static void check_write(struct test *t, struct pair *p, size_t size)
{
    SCOPED(buf_unref) struct buf *b = buf_new(size);
    uint64_t sum = 0, seen = 0;

    for (size_t i = 0; i < size; i++) {
        b->data[i] = (uint8_t)(i * 7);
        sum = sum * 31 + b->data[i];
    }
    p->leaf->arg = &seen;
    assert_int_equal(size, test_op(t, OP_WRITE, .inode = t->file, .data = b, .offset = 77, .size = size));
    assert_int_equal(sum, seen);
    assert_int_equal(77, leaf_last(p->leaf)->offset);
}

FIBER_TEST(data_is_written_in_all_sizes)
{
    struct pair *p = pair_new(t, NULL, NULL);

    p->leaf->answers[OP_WRITE] = answer_write;
    check_write(t, p, 1);
    check_write(t, p, 4095);
    check_write(t, p, 16384);
    check_write(t, p, 131072);
    check_write(t, p, 131072);
    check_write(t, p, 3);
    check_write(t, p, 2000001);
    pair_free(p);
}

FIBER_TEST(lookup_by_name_and_by_gfid)
{
    struct pair *p = pair_new(t, NULL, NULL);

    assert_int_equal(0, test_op(t, OP_LOOKUP, .parent = t->root, .name = "some file"));
    assert_string_equal("some file", leaf_last(p->leaf)->name);
    assert_true(gfid_is_root(&leaf_last(p->leaf)->parent));
    assert_int_equal(0, test_op(t, OP_LOOKUP, .inode = t->file));
    assert_string_equal("", leaf_last(p->leaf)->name);
    assert_true(gfid_equal(&t->file->gfid, &leaf_last(p->leaf)->gfid));
    pair_free(p);
}

FIBER_TEST(create_gives_a_descriptor_that_later_operations_use)
{
    struct pair *p = pair_new(t, NULL, NULL);
    SCOPED(fd_unref) struct fd *fd = fd_new(t->new_inode, O_RDWR, 1);

    assert_int_equal(0, test_op(t, OP_CREATE, .parent = t->root, .name = "n", .inode = t->new_inode, .fd = fd,
                                .flags = O_RDWR | O_CREAT | O_EXCL, .mode = 0640, .umask = 022));
    const struct leaf_call *c = leaf_last(p->leaf);
    assert_int_equal(OP_CREATE, c->op);
    assert_true(gfid_equal(&t->new_inode->gfid, &c->gfid));
    assert_int_equal(0640, c->mode);
    assert_int_equal(022, c->umask);
    assert_int_equal(O_RDWR | O_CREAT | O_EXCL, c->flags);
    SCOPED(buf_unref) struct buf *b = bytes("hello");
    assert_int_equal(5, test_op(t, OP_WRITE, .inode = t->new_inode, .fd = fd, .data = b, .size = 5));
    assert_true(leaf_last(p->leaf)->has_fd);
    assert_memory_equal("hello", leaf_last(p->leaf)->data, 5);
    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->new_inode, .fd = fd));
    assert_true(leaf_last(p->leaf)->has_fd);
    pair_free(p);
}

FIBER_TEST(credentials_and_times_travel)
{
    struct pair *p = pair_new(t, NULL, NULL);
    uint32_t groups[] = { 5, 6, 7 };

    t->call.uid = 1000;
    t->call.gid = 100;
    t->call.pid = 77;
    t->call.groups = groups;
    t->call.group_count = 3;
    t->call.time_flags = TIME_CTIME | TIME_MTIME;
    t->call.time_s = 1700000000;
    t->call.time_ns = 123;
    assert_int_equal(0, test_op(t, OP_TRUNCATE, .inode = t->file, .offset = 9));
    const struct leaf_call *c = leaf_last(p->leaf);
    assert_int_equal(1000, c->uid);
    assert_int_equal(100, c->gid);
    assert_int_equal(77, c->pid);
    assert_int_equal(TIME_CTIME | TIME_MTIME, c->time_flags);
    assert_int_equal(1700000000, c->time_s);
    assert_int_equal(123, c->time_ns);
    t->call.group_count = 0;
    pair_free(p);
}

FIBER_TEST(closing_is_a_message_only_when_there_is_something_to_flush)
{
    struct pair *p = pair_new(t, NULL, NULL);
    SCOPED(buf_unref) struct buf *b = bytes("x");
    struct lock_range range = { .type = LOCK_WRITE, .length = 1 };

    assert_int_equal(0, test_op(t, OP_OPEN, .inode = t->file, .fd = t->fd, .flags = O_RDWR));
    assert_int_equal(0, test_op(t, OP_FLUSH, .inode = t->file, .fd = t->fd));
    assert_int_equal(0, leaf_count(p->leaf, OP_FLUSH));
    assert_int_equal(1, test_op(t, OP_WRITE, .inode = t->file, .fd = t->fd, .data = b, .size = 1));
    leaf_fail(p->leaf, OP_FLUSH, EDQUOT, 1);
    assert_int_equal(-EDQUOT, test_op(t, OP_FLUSH, .inode = t->file, .fd = t->fd));
    assert_int_equal(0, test_op(t, OP_FLUSH, .inode = t->file, .fd = t->fd));
    assert_int_equal(2, leaf_count(p->leaf, OP_FLUSH));
    assert_int_equal(0, test_op(t, OP_FLUSH, .inode = t->file, .fd = t->fd));
    assert_int_equal(2, leaf_count(p->leaf, OP_FLUSH));
    assert_int_equal(0, test_op(t, OP_LK, .inode = t->file, .fd = t->fd, .command = LOCK_TRY, .lock = &range));
    assert_int_equal(0, test_op(t, OP_FLUSH, .inode = t->file, .fd = t->fd));
    assert_int_equal(0, test_op(t, OP_FLUSH, .inode = t->file, .fd = t->fd));
    assert_int_equal(4, leaf_count(p->leaf, OP_FLUSH));
    pair_free(p);
}

FIBER_TEST(without_a_brick_everything_fails_at_once)
{
    struct pair *p = pair_new(t, NULL, NULL);

    pair_stop_brick(p);
    pair_wait(p, false);
    assert_int_equal(-ENOTCONN, test_op(t, OP_STAT, .inode = t->file));
    pair_start_brick(p, NULL);
    pair_wait(p, true);
    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->file));
    pair_free(p);
}

FIBER_TEST(a_reconnect_opens_descriptors_again)
{
    struct pair *p = pair_new(t, NULL, NULL);

    assert_int_equal(0, test_op(t, OP_OPEN, .inode = t->file, .fd = t->fd, .flags = O_RDWR | O_TRUNC));
    pair_restart_brick(p, NULL);
    assert_int_equal(1, leaf_count(p->leaf, OP_OPEN));
    assert_int_equal(O_RDWR, leaf_last(p->leaf)->flags);
    assert_int_equal(0, test_op(t, OP_FSYNC, .inode = t->file, .fd = t->fd));
    assert_true(leaf_last(p->leaf)->has_fd);
    pair_free(p);
}

FIBER_TEST(a_reconnect_opens_many_descriptors_again)
{
    struct pair *p = pair_new(t, NULL, NULL);
    struct fd *fds[100];

    for (int i = 0; i < 100; i++) {
        fds[i] = fd_new(t->file, O_RDONLY, 1);
        assert_int_equal(0, test_op(t, OP_OPEN, .inode = t->file, .fd = fds[i], .flags = O_RDONLY));
    }
    pair_restart_brick(p, NULL);
    assert_int_equal(100, leaf_count(p->leaf, OP_OPEN));
    for (int i = 0; i < 100; i++)
        fd_unref(fds[i]);
    pair_free(p);
}

static int lock(struct test *t, enum lock_command command, enum lock_type type, uint64_t start, uint64_t length)
{
    struct lock_range range = { .type = type, .start = start, .length = length, .pid = 1 };

    lk_owner_from_u64(&range.owner, 99);
    return test_op(t, OP_LK, .inode = t->file, .fd = t->fd, .command = command, .lock = &range);
}

FIBER_TEST(a_reconnect_takes_locks_again)
{
    struct pair *p = pair_new(t, NULL, NULL);

    assert_int_equal(0, test_op(t, OP_OPEN, .inode = t->file, .fd = t->fd, .flags = O_RDWR));
    assert_int_equal(0, lock(t, LOCK_TRY, LOCK_WRITE, 0, 100));
    assert_int_equal(0, lock(t, LOCK_UNLOCK, LOCK_NONE, 40, 20));
    pair_restart_brick(p, NULL);
    assert_int_equal(2, leaf_count(p->leaf, OP_LK));
    assert_int_equal(0, test_op(t, OP_FSYNC, .inode = t->file, .fd = t->fd));
    assert_int_equal(0, lock(t, LOCK_UNLOCK, LOCK_NONE, 0, 0));
    pair_restart_brick(p, NULL);
    assert_int_equal(0, leaf_count(p->leaf, OP_LK));
    pair_free(p);
}

FIBER_TEST(strict_locks_make_a_descriptor_with_locks_bad)
{
    struct pair *p = pair_new(t, "option strict-locks on", NULL);

    assert_int_equal(0, test_op(t, OP_OPEN, .inode = t->file, .fd = t->fd, .flags = O_RDWR));
    assert_int_equal(0, lock(t, LOCK_TRY, LOCK_WRITE, 0, 0));
    pair_restart_brick(p, NULL);
    assert_int_equal(-EBADF, test_op(t, OP_FSYNC, .inode = t->file, .fd = t->fd));
    assert_int_equal(0, test_op(t, OP_FSYNC, .inode = t->file));
    pair_free(p);
}

static FIBER int answer_readdirp(struct leaf *leaf, struct call *call, const struct request *q, struct reply *r)
{
    struct dir_entry *e;

    r->entries = dir_entries_new();
    for (int i = 0; i < 3; i++) {
        char name[8] = { 'f', (char)('0' + i) };
        assert_int_equal(0, dir_entries_add(r->entries, name, 2, 100 + i, 1ull << (60 + i), 8, &e));
        e->stat = leaf->stat;
        e->stat.size = 10 + i;
    }
    assert_int_equal(0, dict_put_uint(&e->xattrs, "user.a", 1));
    r->entries->at_end = true;
    return 3;
}

FIBER_TEST(directories_are_listed)
{
    struct pair *p = pair_new(t, NULL, NULL);
    uint64_t v;

    p->leaf->answers[OP_READDIRP] = answer_readdirp;
    assert_int_equal(0, test_op(t, OP_OPENDIR, .inode = t->dir, .fd = t->dir_fd));
    assert_int_equal(3, test_op(t, OP_READDIRP, .inode = t->dir, .fd = t->dir_fd, .size = 4096));
    assert_int_equal(3, t->r->entries->count);
    assert_true(t->r->entries->at_end);
    assert_string_equal("f2", t->r->entries->list[2].name);
    assert_int_equal(1ull << 62, t->r->entries->list[2].offset);
    assert_int_equal(12, t->r->entries->list[2].stat.size);
    assert_int_equal(0, dict_get_uint(t->r->entries->list[2].xattrs, "user.a", &v));
    pair_free(p);
}

FIBER_TEST(a_compound_is_one_message_and_later_steps_use_earlier_descriptors)
{
    struct pair *p = pair_new(t, NULL, NULL);
    SCOPED(fd_unref) struct fd *fd = fd_new(t->new_inode, O_RDWR, 1);
    SCOPED(buf_unref) struct buf *b = bytes("12345");
    struct request steps[] = {
        { .op = OP_CREATE, .parent = t->root, .name = "n", .inode = t->new_inode, .fd = fd, .flags = O_RDWR | O_CREAT },
        { .op = OP_WRITE, .inode = t->new_inode, .fd = fd, .data = b, .size = 5, .offset = 3 },
        { .op = OP_STAT, .inode = t->new_inode, .fd = fd },
    };

    t->call.round_trips = 0;
    assert_int_equal(0, test_op(t, OP_COMPOUND, .steps = steps, .step_count = 3));
    assert_int_equal(1, t->call.round_trips);
    assert_int_equal(3, t->r->step_count);
    assert_int_equal(5, t->r->steps[1].ret);
    assert_int_equal(3, p->leaf->call_count);
    assert_true(p->leaf->calls[1].has_fd);
    assert_memory_equal("12345", p->leaf->calls[1].data, 5);
    assert_true(p->leaf->calls[2].has_fd);
    pair_free(p);
}

FIBER_TEST(a_compound_stops_at_the_first_failure)
{
    struct pair *p = pair_new(t, NULL, NULL);
    struct request steps[] = {
        { .op = OP_STAT, .inode = t->file },
        { .op = OP_RMDIR, .parent = t->root, .name = "d" },
        { .op = OP_STAT, .inode = t->file },
    };

    leaf_fail(p->leaf, OP_RMDIR, ENOTEMPTY, 0);
    assert_int_equal(-ENOTEMPTY, test_op(t, OP_COMPOUND, .steps = steps, .step_count = 3));
    assert_int_equal(2, t->r->step_count);
    assert_int_equal(0, t->r->steps[0].ret);
    assert_int_equal(-ENOTEMPTY, t->r->steps[1].ret);
    assert_int_equal(1, leaf_count(p->leaf, OP_STAT));
    pair_free(p);
}

static FIBER int answer_groups(struct leaf *leaf, struct call *call, const struct request *q, struct reply *r)
{
    r->stat = leaf->stat;
    r->stat.gfid = q->inode->gfid;
    r->stat.size = call->group_count;
    r->stat.blocks = call->groups[call->group_count - 1];
    return 0;
}

FIBER_TEST(more_groups_than_a_credential_carries_travel)
{
    struct pair *p = pair_new(t, NULL, NULL);
    uint32_t groups[300];

    for (uint32_t i = 0; i < 300; i++)
        groups[i] = i;
    t->call.uid = 1000;
    t->call.groups = groups;
    t->call.group_count = 300;
    p->leaf->answers[OP_STAT] = answer_groups;
    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->file));
    assert_int_equal(300, t->r->stat.size);
    assert_int_equal(299, t->r->stat.blocks);
    t->call.group_count = 0;
    pair_free(p);
}

FIBER_TEST(a_client_that_is_not_allowed_is_refused)
{
    struct pair *p = pair_start(t, NULL, "option auth.addr.brick.reject *");

    pair_wait_event(p, 1);
    assert_int_equal(EVENT_AUTH_FAILED, p->last.kind);
    assert_false(p->is_up);
    pair_free(p);
}

FIBER_TEST(root_squash_makes_root_nobody)
{
    struct pair *p = pair_new(t, NULL, "option root-squash on\noption anonuid 1234\noption anongid 567");

    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->file));
    assert_int_equal(1234, leaf_last(p->leaf)->uid);
    assert_int_equal(567, leaf_last(p->leaf)->gid);
    pair_free(p);
}

FIBER_TEST(managed_groups_are_those_of_this_host)
{
    struct pair *p = pair_new(t, NULL, "option manage-gids on");
    uint32_t groups[] = { 7000, 7001, 7002 };

    t->call.uid = 1; /* daemon, whose only group is its own */
    t->call.groups = groups;
    t->call.group_count = 3;
    p->leaf->answers[OP_STAT] = answer_groups;
    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->file));
    assert_int_equal(1, t->r->stat.size);
    assert_int_equal(1, t->r->stat.blocks);
    t->call.group_count = 0;
    pair_free(p);
}

FIBER_TEST(all_squash_makes_everybody_nobody)
{
    struct pair *p = pair_new(t, NULL, "option all-squash on");
    uint32_t groups[] = { 5 };

    t->call.uid = 1000;
    t->call.gid = 1000;
    t->call.groups = groups;
    t->call.group_count = 1;
    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->file));
    assert_int_equal(65534, leaf_last(p->leaf)->uid);
    assert_int_equal(65534, leaf_last(p->leaf)->gid);
    t->call.group_count = 0;
    pair_free(p);
}

FIBER_TEST(internal_clients_that_are_trusted_stay_root)
{
    struct pair *p = pair_new(t, "option username u\noption password secret",
                              "option root-squash on\noption auth.login.brick.allow u\n"
                              "option auth.login.u.password secret");

    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->file));
    assert_int_equal(65534, leaf_last(p->leaf)->uid);
    t->call.pid = PID_SELF_HEAL;
    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->file));
    assert_int_equal(0, leaf_last(p->leaf)->uid);
    pair_free(p);
}

FIBER_TEST(deallocation_and_zeroing_keep_their_meaning)
{
    struct pair *p = pair_new(t, NULL, NULL);
    const uint32_t punch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;

    assert_int_equal(0, test_op(t, OP_FALLOCATE, .inode = t->file, .flags = punch, .offset = 4096, .size = 8192));
    assert_int_equal(punch, leaf_last(p->leaf)->flags);
    assert_int_equal(8192, leaf_last(p->leaf)->size);
    assert_int_equal(0, test_op(t, OP_FALLOCATE, .inode = t->file, .flags = FALLOC_FL_ZERO_RANGE, .size = 8192));
    assert_int_equal(FALLOC_FL_ZERO_RANGE, leaf_last(p->leaf)->flags);
    assert_int_equal(0, test_op(t, OP_FALLOCATE, .inode = t->file, .flags = FALLOC_FL_KEEP_SIZE, .size = 1ull << 40));
    assert_int_equal(FALLOC_FL_KEEP_SIZE, leaf_last(p->leaf)->flags);
    assert_int_equal(1ull << 40, leaf_last(p->leaf)->size);
    pair_free(p);
}

FIBER_TEST(contention_reaches_the_holder)
{
    struct pair *p = pair_new(t, NULL, NULL);
    struct client *client = list_first(&p->brick->clients, struct client, of_graph);
    struct event e = { .kind = EVENT_INODELK_CONTENTION,
                       .client = client,
                       .gfid = t->file->gfid,
                       .domain = "web-replicate-0",
                       .range = { .type = LOCK_WRITE, .start = 5, .length = 6 },
                       .pid = 9 };

    notify_parents(p->leaf->me, &e);
    pair_wait_event(p, 1);
    assert_int_equal(EVENT_INODELK_CONTENTION, p->last.kind);
    assert_true(gfid_equal(&t->file->gfid, &p->last.gfid));
    assert_string_equal("web-replicate-0", p->last_domain);
    assert_int_equal(5, p->last.range.start);
    assert_int_equal(6, p->last.range.length);
    e.kind = EVENT_ENTRYLK_CONTENTION;
    e.name = "entry";
    notify_parents(p->leaf->me, &e);
    pair_wait_event(p, 2);
    assert_int_equal(EVENT_ENTRYLK_CONTENTION, p->last.kind);
    assert_string_equal("entry", p->last_name);
    e.kind = EVENT_INVALIDATE;
    e.invalidate_flags = 0x18;
    notify_parents(p->leaf->me, &e);
    pair_wait_event(p, 3);
    assert_int_equal(0x18, p->last.invalidate_flags);
    e.kind = EVENT_HEAL_NEEDED;
    notify_parents(p->leaf->me, &e);
    pair_wait_event(p, 4);
    assert_int_equal(EVENT_HEAL_NEEDED, p->last.kind);
    pair_free(p);
}

FIBER_TEST(a_lost_connection_ends_the_client_on_the_brick)
{
    struct pair *p = pair_new(t, NULL, NULL);

    assert_int_equal(0, test_op(t, OP_OPEN, .inode = t->file, .fd = t->fd, .flags = O_RDWR));
    graph_stop(t->graph);
    while (!list_empty(&p->brick->clients))
        assert_int_equal(0, fiber_sleep_ms(NULL, 1));
    assert_int_equal(1, p->leaf->gone);
    assert_int_equal(1, leaf_count(p->leaf, OP_FLUSH));
    assert_true(list_empty(&p->brick->fds));
    pair_free(p);
}

FIBER_TEST(rename_keeps_its_flags_towards_our_bricks)
{
    struct pair *p = pair_new(t, NULL, NULL);

    assert_int_equal(0, test_op(t, OP_RENAME, .parent = t->root, .name = "a", .parent2 = t->dir, .name2 = "b"));
    assert_int_equal(0, leaf_last(p->leaf)->flags);
    assert_string_equal("b", leaf_last(p->leaf)->name2);
    assert_int_equal(0, test_op(t, OP_RENAME, .parent = t->root, .name = "a", .parent2 = t->dir, .name2 = "b",
                                .flags = RENAME_EXCHANGE));
    assert_int_equal(RENAME_EXCHANGE, leaf_last(p->leaf)->flags);
    assert_true(gfid_equal(&t->dir->gfid, &leaf_last(p->leaf)->parent2));
    pair_free(p);
}

static FIBER int answer_listing(struct leaf *leaf, struct call *call, const struct request *q, struct reply *r)
{
    uint64_t *both = leaf->arg;

    *both = dict_has(q->xattrs, "user.a") && dict_has(q->xdata, "b");
    r->entries = dir_entries_new();
    return 0;
}

FIBER_TEST(a_listing_says_which_xattrs_it_wants)
{
    struct pair *p = pair_new(t, NULL, NULL);
    SCOPED(dict_unref) struct dict *xattrs = dict_new();
    SCOPED(dict_unref) struct dict *xdata = dict_new();
    uint64_t both = 0;

    assert_int_equal(0, dict_set_uint(xattrs, "user.a", 0));
    assert_int_equal(0, dict_set_uint(xdata, "b", 0));
    p->leaf->answers[OP_READDIRP] = answer_listing;
    p->leaf->arg = &both;
    assert_int_equal(
        0, test_op(t, OP_READDIRP, .inode = t->dir, .fd = t->dir_fd, .size = 4096, .xattrs = xattrs, .xdata = xdata));
    assert_int_equal(1, both);
    pair_free(p);
}

static FIBER int answer_blocksums(struct leaf *leaf, struct call *call, const struct request *q, struct reply *r)
{
    r->data = buf_copy("sums of blocks", 14);
    r->stat = leaf->stat;
    return 14;
}

FIBER_TEST(a_question_about_blocks_goes_as_a_step_of_our_own_program)
{
    struct pair *p = pair_new(t, NULL, NULL);
    SCOPED(buf_unref) struct buf *question = buf_copy("which blocks?", 13);

    p->leaf->answers[OP_BLOCKSUMS] = answer_blocksums;
    assert_int_equal(14, test_op(t, OP_BLOCKSUMS, .inode = t->file, .data = question));
    assert_int_equal(14, t->r->data->size);
    assert_memory_equal("sums of blocks", t->r->data->data, 14);
    assert_int_equal(p->leaf->stat.mode, t->r->stat.mode);
    assert_int_equal(13, leaf_last(p->leaf)->data_size);
    assert_memory_equal("which blocks?", leaf_last(p->leaf)->data, 13);
    pair_free(p);
}

FIBER_TEST(a_brick_without_our_program_is_not_asked_about_blocks)
{
    struct pair *p = pair_new(t, NULL, NULL);
    SCOPED(buf_unref) struct buf *question = buf_copy("which blocks?", 13);

    ((struct remote *)t->graph->root->state)->speaks_mortar = false; /* as found in a version list without it */
    assert_int_equal(-EOPNOTSUPP, test_op(t, OP_BLOCKSUMS, .inode = t->file, .data = question));
    assert_int_equal(0, leaf_count(p->leaf, OP_BLOCKSUMS));
    pair_free(p);
}

FIBER_TEST(seeking_says_data_or_hole)
{
    struct pair *p = pair_new(t, NULL, NULL);

    assert_int_equal(0, test_op(t, OP_SEEK, .inode = t->file, .offset = 5, .flags = SEEK_DATA));
    assert_int_equal(SEEK_DATA, leaf_last(p->leaf)->flags);
    assert_int_equal(0, test_op(t, OP_SEEK, .inode = t->file, .offset = 5, .flags = SEEK_HOLE));
    assert_int_equal(SEEK_HOLE, leaf_last(p->leaf)->flags);
    pair_free(p);
}

/* ---- lack of memory ---- */

static bool is_outage(int r)
{
    return r == -ENOMEM || r == -ENOTCONN || r == -EIO || r == -ETIMEDOUT;
}

/* The n-th allocation of client or brick fails, for every n: an error or the result, and both go on working. */
static void sweep(struct test *t, struct pair *p, const struct request *q, int expected)
{
    bool fired = true;

    for (uint64_t n = 1; fired; n++) {
        assert_true(n < 1000);
        mem_fail_at(n);
        int r = translator_call(t->graph->root, &t->call, q, t->r);
        fired = mem_fail_at(0) == 0;
        reply_done(t->r);
        if (r != expected && !is_outage(r))
            fail_msg("%s with the allocation %u failing gave %d", op_name(q->op), (unsigned)n, r);
        if (!fired)
            assert_int_equal(expected, r);
        assert_int_equal(0, fiber_sleep_ms(NULL, 1)); /* a connection that was ended for it is seen to end */
        pair_wait(p, true);
    }
}

SIM_TEST(lack_of_memory_is_an_error_and_no_more)
{
    struct pair *p = pair_new(t, NULL, NULL);
    SCOPED(buf_unref) struct buf *b = bytes("12345");
    struct lock_range range = { .type = LOCK_WRITE };
    struct request steps[] = {
        { .op = OP_INODELK, .inode = t->file, .text = "d", .command = LOCK_WAIT, .lock = &range },
        { .op = OP_WRITE, .inode = t->file, .data = b, .size = 5 },
    };

    p->leaf->answers[OP_READDIRP] = answer_readdirp;
    sweep(t, p, &(struct request) { .op = OP_STAT, .inode = t->file }, 0);
    sweep(t, p, &(struct request) { .op = OP_LOOKUP, .parent = t->root, .name = "x" }, 0);
    sweep(t, p, &(struct request) { .op = OP_WRITE, .inode = t->file, .data = b, .size = 5 }, 5);
    sweep(t, p, &(struct request) { .op = OP_STATFS, .inode = t->root }, 0);
    sweep(t, p, &(struct request) { .op = OP_OPEN, .inode = t->file, .fd = t->fd, .flags = O_RDWR }, 0);
    sweep(t, p, &(struct request) { .op = OP_COMPOUND, .steps = steps, .step_count = 2 }, 0);
    pair_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stat_travels),
        cmocka_unit_test(an_error_travels_with_its_number),
        cmocka_unit_test(data_is_read_in_all_sizes),
        cmocka_unit_test(data_is_written_in_all_sizes),
        cmocka_unit_test(lookup_by_name_and_by_gfid),
        cmocka_unit_test(create_gives_a_descriptor_that_later_operations_use),
        cmocka_unit_test(credentials_and_times_travel),
        cmocka_unit_test(closing_is_a_message_only_when_there_is_something_to_flush),
        cmocka_unit_test(without_a_brick_everything_fails_at_once),
        cmocka_unit_test(a_reconnect_opens_descriptors_again),
        cmocka_unit_test(a_reconnect_opens_many_descriptors_again),
        cmocka_unit_test(a_reconnect_takes_locks_again),
        cmocka_unit_test(strict_locks_make_a_descriptor_with_locks_bad),
        cmocka_unit_test(directories_are_listed),
        cmocka_unit_test(a_compound_is_one_message_and_later_steps_use_earlier_descriptors),
        cmocka_unit_test(a_compound_stops_at_the_first_failure),
        cmocka_unit_test(more_groups_than_a_credential_carries_travel),
        cmocka_unit_test(a_client_that_is_not_allowed_is_refused),
        cmocka_unit_test(root_squash_makes_root_nobody),
        cmocka_unit_test(managed_groups_are_those_of_this_host),
        cmocka_unit_test(all_squash_makes_everybody_nobody),
        cmocka_unit_test(internal_clients_that_are_trusted_stay_root),
        cmocka_unit_test(deallocation_and_zeroing_keep_their_meaning),
        cmocka_unit_test(rename_keeps_its_flags_towards_our_bricks),
        cmocka_unit_test(a_listing_says_which_xattrs_it_wants),
        cmocka_unit_test(a_question_about_blocks_goes_as_a_step_of_our_own_program),
        cmocka_unit_test(a_brick_without_our_program_is_not_asked_about_blocks),
        cmocka_unit_test(seeking_says_data_or_hole),
        cmocka_unit_test(lack_of_memory_is_an_error_and_no_more),
        cmocka_unit_test(contention_reaches_the_holder),
        cmocka_unit_test(a_lost_connection_ends_the_client_on_the_brick),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
