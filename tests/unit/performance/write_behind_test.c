/* performance/write-behind: what is seen, in which order, and how errors come back. */
#include "performance/write-behind/write_behind.h"
#include "unit/performance/slow_file.h"
#include <fcntl.h>
#include <stdio.h>

static struct slow_file file;

static void start(struct test *t, uint32_t delay_max_ms, const char *key, const char *value)
{
    test_push(t, &leaf_class, NULL);
    if (key)
        test_push(t, &write_behind_class, key, value, NULL);
    else
        test_push(t, &write_behind_class, NULL);
    test_start(t);
    slow_file_init(&file, t, 1);
    file.delay_max_ms = delay_max_ms;
}

static FIBER int put(struct test *t, struct fd *fd, uint64_t offset, const char *text)
{
    SCOPED(buf_unref) struct buf *data = buf_copy(text, strlen(text));
    return test_op(t, OP_WRITE, .inode = t->file, .fd = fd, .offset = offset, .data = data, .size = data->size);
}

static FIBER void assert_reads(struct test *t, struct fd *fd, uint64_t offset, const char *text)
{
    assert_int_equal(strlen(text),
                     test_op(t, OP_READ, .inode = t->file, .fd = fd, .offset = offset, .size = strlen(text)));
    assert_memory_equal(text, t->r->data->data, strlen(text));
}

static FIBER void wait_until_written(struct test *t)
{
    while (file.in_flight || !file.writes)
        (void)fiber_sleep_ms(NULL, 1);
    (void)fiber_sleep_ms(NULL, 1);
    (void)t;
}

SIM_TEST(a_write_is_answered_before_it_is_written_and_read_back_at_once)
{
    start(t, 5, NULL, NULL);
    assert_int_equal(5, put(t, t->fd, 0, "hello"));
    assert_int_equal(0, file.size);
    assert_false(iatt_is_set(&t->r->post));
    assert_reads(t, NULL, 0, "hello"); /* by anybody */
}

SIM_TEST(stat_and_lookup_know_the_new_size)
{
    start(t, 5, NULL, NULL);
    assert_int_equal(5, put(t, t->fd, 10, "hello"));
    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->file));
    assert_int_equal(15, t->r->stat.size);
    assert_int_equal(5, put(t, t->fd, 20, "hello"));
    assert_int_equal(0, test_op(t, OP_LOOKUP, .inode = t->file));
    assert_int_equal(25, t->r->stat.size);
    assert_int_equal(5, put(t, t->fd, 30, "hello"));
    assert_int_equal(0, test_op(t, OP_LOOKUP, .parent = t->dir, .name = "file")); /* the leaf says it is t->file */
    assert_int_equal(35, t->r->stat.size);
}

SIM_TEST(small_neighbours_are_merged)
{
    start(t, 5, NULL, NULL);
    file.delay_max_ms = 0;
    t->leaf->delay_ms = 5;
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(4, put(t, t->fd, 4 * i, "abcd"));
    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->file));
    assert_int_equal(400, t->r->stat.size);
    assert_int_equal(2, file.writes); /* the first at once, all others together */
}

SIM_TEST(aggregate_size_zero_merges_nothing)
{
    start(t, 0, "aggregate-size", "0MB");
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(4, put(t, t->fd, 4 * i, "abcd"));
    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->file));
    assert_int_equal(10, file.writes);
}

SIM_TEST(overlapping_writes_keep_their_order)
{
    start(t, 9, "aggregate-size", "0");
    for (unsigned i = 0; i < 50; i++) {
        char text[8];
        snprintf(text, sizeof(text), "%04u", i);
        assert_int_equal(4, put(t, t->fd, (i * 3) % 7, text));
    }
    assert_int_equal(4, put(t, t->fd, 0, "last"));
    assert_reads(t, t->fd, 0, "last");
    assert_true(file.most_in_flight > 0);
}

SIM_TEST(strict_ordering_has_one_write_under_way)
{
    test_push(t, &leaf_class, NULL);
    test_push(t, &write_behind_class, "aggregate-size", "0", "strict-write-ordering", "on", NULL);
    test_start(t);
    slow_file_init(&file, t, 1);
    file.delay_max_ms = 3;
    for (unsigned i = 0; i < 20; i++)
        assert_int_equal(4, put(t, t->fd, 100 * i, "abcd"));
    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->file));
    assert_int_equal(1, file.most_in_flight);
}

SIM_TEST(without_it_distant_writes_go_side_by_side)
{
    start(t, 0, "aggregate-size", "0");
    t->leaf->delay_ms = 0;
    file.delay_max_ms = 5;
    for (unsigned i = 0; i < 20; i++)
        assert_int_equal(4, put(t, t->fd, 100 * i, "abcd"));
    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->file));
    assert_true(file.most_in_flight > 5);
}

SIM_TEST(appends_of_two_descriptors_stay_whole_and_in_order)
{
    start(t, 4, NULL, NULL);
    struct fd *a = fd_new(t->file, O_WRONLY | O_APPEND, 1), *b = fd_new(t->file, O_WRONLY | O_APPEND, 2);
    char want[801] = "";
    for (unsigned i = 0; i < 100; i++) {
        char text[9];
        snprintf(text, sizeof(text), "%c%06u\n", i % 2 ? 'b' : 'a', i);
        memcpy(want + 8 * i, text, sizeof(text));
        assert_int_equal(8, put(t, i % 2 ? b : a, 0, text));
    }
    assert_reads(t, NULL, 0, want);
    fd_unref(a);
    fd_unref(b);
}

SIM_TEST(the_window_bounds_what_is_not_written_yet)
{
    start(t, 0, "cache-size", "512KB");
    t->leaf->answers[OP_WRITE] = NULL;
    t->leaf->delay_ms = 10;
    struct buf *data = buf_new(128 * 1024);
    memset(data->data, 'x', data->size);
    uint64_t began_ns = env_now_ns(t->env);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(131072,
                         test_op(t, OP_WRITE, .inode = t->file, .fd = t->fd, .offset = i * 131072, .data = data));
    assert_true(env_now_ns(t->env) - began_ns < 1000000);
    assert_int_equal(131072, test_op(t, OP_WRITE, .inode = t->file, .fd = t->fd, .offset = 4 * 131072, .data = data));
    assert_true(env_now_ns(t->env) - began_ns >= 10000000);
    buf_unref(data);
}

SIM_TEST(o_sync_and_strict_o_direct_and_readers_with_xdata_go_through)
{
    start(t, 2, "strict-O_DIRECT", "on");
    SCOPED(dict_unref) struct dict *x = dict_new();
    SCOPED(buf_unref) struct buf *data = buf_copy("data", 4);
    struct fd *sync = fd_new(t->file, O_WRONLY | O_SYNC, 1), *direct = fd_new(t->file, O_WRONLY | O_DIRECT, 1);
    assert_int_equal(4, put(t, t->fd, 0, "0000"));
    assert_int_equal(4, put(t, sync, 0, "1111"));
    assert_memory_equal("1111", file.data, 4);
    assert_int_equal(4, put(t, direct, 0, "2222"));
    assert_memory_equal("2222", file.data, 4);
    assert_int_equal(4, put(t, NULL, 0, "3333"));
    assert_memory_equal("3333", file.data, 4);
    dict_set_int(x, "glusterfs.open-fd-count", 0);
    assert_int_equal(4, test_op(t, OP_WRITE, .inode = t->file, .fd = t->fd, .data = data, .xdata = x));
    assert_memory_equal("data", file.data, 4);
    assert_true(iatt_is_set(&t->r->post));
    fd_unref(sync);
    fd_unref(direct);
}

SIM_TEST(o_direct_is_cached_unless_strict)
{
    start(t, 2, NULL, NULL);
    struct fd *direct = fd_new(t->file, O_WRONLY | O_DIRECT, 1);
    assert_int_equal(4, put(t, direct, 0, "2222"));
    assert_int_equal(0, file.size);
    fd_unref(direct);
}

/* ---- errors ---- */

SIM_TEST(an_error_in_the_background_is_told_once_at_the_next_write)
{
    start(t, 1, NULL, NULL);
    file.fail_next = ENOSPC;
    assert_int_equal(4, put(t, t->fd, 0, "abcd"));
    wait_until_written(t);
    assert_int_equal(-ENOSPC, put(t, t->fd, 0, "abcd"));
    assert_int_equal(4, put(t, t->fd, 0, "efgh"));
    assert_reads(t, t->fd, 0, "efgh");
}

SIM_TEST(fsync_waits_and_tells_the_error_of_its_descriptor_only)
{
    start(t, 3, NULL, NULL);
    struct fd *other = fd_new(t->file, O_RDWR, 2);
    file.fail_next = EIO;
    assert_int_equal(4, put(t, t->fd, 0, "abcd"));
    assert_int_equal(0, test_op(t, OP_FSYNC, .inode = t->file, .fd = other));
    assert_int_equal(-EIO, test_op(t, OP_FSYNC, .inode = t->file, .fd = t->fd));
    assert_int_equal(0, test_op(t, OP_FSYNC, .inode = t->file, .fd = t->fd));
    assert_int_equal(3, file.fsyncs);
    fd_unref(other);
}

SIM_TEST(flush_tells_the_error_when_flush_behind_is_off)
{
    start(t, 3, "flush-behind", "off");
    file.fail_next = EDQUOT;
    assert_int_equal(4, put(t, t->fd, 0, "abcd"));
    assert_int_equal(-EDQUOT, test_op(t, OP_FLUSH, .inode = t->file, .fd = t->fd));
    assert_int_equal(1, file.flushes);
    assert_int_equal(4, put(t, t->fd, 0, "abcd"));
    assert_int_equal(0, test_op(t, OP_FLUSH, .inode = t->file, .fd = t->fd));
    assert_memory_equal("abcd", file.data, 4);
}

static FIBER void make_file(struct test *t)
{
    assert_int_equal(
        0, test_op(t, OP_CREATE, .parent = t->dir, .name = "new", .inode = t->file, .fd = t->fd, .flags = O_RDWR));
}

SIM_TEST(flush_behind_answers_at_once_for_a_new_file_and_flushes_after_the_data)
{
    start(t, 9, NULL, NULL);
    make_file(t);
    assert_int_equal(4, put(t, t->fd, 0, "abcd"));
    uint64_t began_ns = env_now_ns(t->env);
    assert_int_equal(0, test_op(t, OP_FLUSH, .inode = t->file, .fd = t->fd));
    assert_int_equal(began_ns, env_now_ns(t->env));
    assert_int_equal(0, file.flushes);
    while (!file.flushes)
        (void)fiber_sleep_ms(NULL, 1);
    assert_memory_equal("abcd", file.data, 4);
}

SIM_TEST(flush_of_a_file_that_existed_before_waits_for_the_data)
{
    start(t, 9, NULL, NULL);
    file.fail_next = EIO;
    assert_int_equal(4, put(t, t->fd, 0, "abcd"));
    assert_int_equal(-EIO, test_op(t, OP_FLUSH, .inode = t->file, .fd = t->fd));
    assert_int_equal(4, put(t, t->fd, 0, "abcd"));
    assert_int_equal(0, test_op(t, OP_FLUSH, .inode = t->file, .fd = t->fd));
    assert_memory_equal("abcd", file.data, 4);
}

SIM_TEST(with_posix_locks_flush_waits_so_that_the_lock_goes_after_the_data)
{
    start(t, 9, NULL, NULL);
    make_file(t);
    struct lock_range range = { .type = LOCK_WRITE };
    assert_int_equal(0, test_op(t, OP_LK, .inode = t->file, .fd = t->fd, .command = LOCK_TRY, .lock = &range));
    assert_int_equal(4, put(t, t->fd, 0, "abcd"));
    assert_int_equal(0, test_op(t, OP_FLUSH, .inode = t->file, .fd = t->fd));
    assert_memory_equal("abcd", file.data, 4);
    assert_int_equal(1, file.flushes);
    assert_int_equal(4, put(t, t->fd, 0, "efgh"));
    assert_int_equal(0, test_op(t, OP_LK, .inode = t->file, .fd = t->fd, .command = LOCK_UNLOCK, .lock = &range));
    assert_memory_equal("efgh", file.data, 4);
}

SIM_TEST(a_lock_on_one_file_protects_what_is_written_to_another)
{
    start(t, 9, NULL, NULL);
    struct lock_range range = { .type = LOCK_NONE };
    make_file(t);
    assert_int_equal(4, put(t, t->fd, 0, "abcd"));
    assert_int_equal(0, test_op(t, OP_FLUSH, .inode = t->file, .fd = t->fd));
    assert_int_equal(0, test_op(t, OP_LK, .inode = t->new_inode, .command = LOCK_UNLOCK, .lock = &range));
    assert_memory_equal("abcd", file.data, 4);
}

SIM_TEST(a_failed_write_stops_the_replicating_clients_xattrop_and_data_precedes_its_unlock)
{
    start(t, 3, NULL, NULL);
    struct lock_range range = { .type = LOCK_NONE };
    file.fail_next = EIO;
    assert_int_equal(4, put(t, t->fd, 0, "abcd"));
    assert_int_equal(-EIO, test_op(t, OP_XATTROP, .inode = t->file));
    assert_int_equal(0, test_op(t, OP_XATTROP, .inode = t->file));
    assert_int_equal(-EIO, test_op(t, OP_FSYNC, .inode = t->file, .fd = t->fd)); /* the writer hears as well */
    assert_int_equal(4, put(t, t->fd, 0, "efgh"));
    assert_int_equal(0, test_op(t, OP_INODELK, .inode = t->file, .text = "d", .command = LOCK_UNLOCK, .lock = &range));
    assert_memory_equal("efgh", file.data, 4);
}

SIM_TEST(resync_tries_again_after_a_failed_fsync)
{
    start(t, 2, "resync-failed-syncs-after-fsync", "on");
    file.fail_next = EIO;
    assert_int_equal(4, put(t, t->fd, 0, "abcd"));
    assert_int_equal(-EIO, test_op(t, OP_FSYNC, .inode = t->file, .fd = t->fd));
    assert_int_equal(0, file.size);
    assert_int_equal(0, test_op(t, OP_FSYNC, .inode = t->file, .fd = t->fd));
    assert_memory_equal("abcd", file.data, 4);
}

SIM_TEST(without_resync_failed_data_is_given_up)
{
    start(t, 2, NULL, NULL);
    file.fail_next = EIO;
    assert_int_equal(4, put(t, t->fd, 0, "abcd"));
    assert_int_equal(-EIO, test_op(t, OP_FSYNC, .inode = t->file, .fd = t->fd));
    (void)fiber_sleep_ms(NULL, 3000);
    assert_int_equal(0, file.size);
    assert_int_equal(1, file.writes);
}

SIM_TEST(trickling_off_holds_small_writes_for_a_second_at_most)
{
    start(t, 0, "trickling-writes", "off");
    assert_int_equal(4, put(t, t->fd, 0, "abcd"));
    (void)fiber_sleep_ms(NULL, 500);
    assert_int_equal(0, file.writes);
    assert_int_equal(4, put(t, t->fd, 4, "efgh"));
    (void)fiber_sleep_ms(NULL, 600);
    assert_int_equal(1, file.writes);
    assert_memory_equal("abcdefgh", file.data, 8);
}

SIM_TEST(what_a_gone_client_wrote_is_still_written_and_stopping_writes_all)
{
    start(t, 20, NULL, NULL);
    struct client *one = client_new(t->graph, "one", "one");
    t->call.client = one;
    assert_int_equal(4, put(t, t->fd, 0, "abcd"));
    t->call.client = NULL;
    client_gone(one);
    client_unref(one);
    graph_stop(t->graph);
    assert_memory_equal("abcd", file.data, 4);
}

static int list_two(struct leaf *leaf, struct call *call, const struct request *q, struct reply *r)
{
    (void)leaf;
    (void)call;
    (void)q;
    struct dir_entry *e;
    r->entries = dir_entries_new();
    for (uint8_t i = 3; i <= 4; i++) {
        assert_int_equal(0, dir_entries_add(r->entries, "name", 4, i, i, 8, &e));
        e->stat = (struct iatt) { .gfid = test_gfid(i), .mode = S_IFREG | 0644 };
    }
    return 2;
}

SIM_TEST(a_listing_leaves_attributes_of_dirty_inodes_out)
{
    start(t, 3, NULL, NULL);
    t->leaf->answers[OP_READDIRP] = list_two;
    assert_int_equal(4, put(t, t->fd, 0, "abcd"));
    assert_int_equal(2, test_op(t, OP_READDIRP, .inode = t->dir, .fd = t->dir_fd, .size = 4096));
    assert_false(iatt_is_set(&t->r->entries->list[0].stat));
    assert_true(iatt_is_set(&t->r->entries->list[1].stat));
    (void)fiber_sleep_ms(NULL, 20);
    assert_int_equal(2, test_op(t, OP_READDIRP, .inode = t->dir, .fd = t->dir_fd, .size = 4096));
    assert_true(iatt_is_set(&t->r->entries->list[0].stat));
}

/* ---- the model ---- */

#define WORKERS      3
#define REGION_BYTES 1024
#define STEPS        120

struct worker {
    struct test *t;
    struct fd *fd;
    unsigned number;
    uint64_t random;
    uint8_t model[REGION_BYTES];
    uint64_t size; /* of the file, as far as this worker has made it */
    bool is_done;
};

static uint64_t worker_random(struct worker *w)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return w->random;
}

static FIBER int worker_op(struct worker *w, struct reply *r, const struct request *q)
{
    static struct call call; /* the same for all: never cancelled, no deadline */
    reply_done(r);
    if (!call.pid)
        call_init(&call, w->t->graph);
    return translator_call(w->t->graph->root, &call, q, r);
}

/* Reads of its own region must show what it wrote last, whatever is still under way. */
static FIBER void worker_step(struct worker *w, struct reply *r)
{
    struct inode *inode = w->t->file;
    uint64_t base = w->number * REGION_BYTES, at = worker_random(w) % REGION_BYTES;
    uint64_t n = 1 + worker_random(w) % (REGION_BYTES - at);
    unsigned what = (unsigned)(worker_random(w) % 16);

    if (what < 10) {
        if (what < 5)
            n = MIN(n, (uint64_t)16);
        SCOPED(buf_unref) struct buf *data = buf_new(n);
        memset(data->data, (int)worker_random(w), n);
        memcpy(w->model + at, data->data, n);
        w->size = MAX(w->size, base + at + n);
        struct request q = { .op = OP_WRITE, .inode = inode, .fd = w->fd, .offset = base + at, .data = data };
        assert_int_equal(n, worker_op(w, r, &q));
    } else if (what < 13) {
        struct request q = { .op = OP_READ, .inode = inode, .fd = w->fd, .offset = base + at, .size = n };
        int got = worker_op(w, r, &q);
        assert_true(got >= 0);
        uint64_t least = w->size > base + at ? MIN(n, w->size - base - at) : 0;
        assert_true((uint64_t)got >= least);
        assert_memory_equal(w->model + at, r->data->data, (size_t)got);
    } else if (what == 13) {
        struct request q = { .op = OP_STAT, .inode = inode };
        assert_int_equal(0, worker_op(w, r, &q));
        assert_true(r->stat.size >= w->size);
    } else {
        struct request q = { .op = what == 14 ? OP_FSYNC : OP_FLUSH, .inode = inode, .fd = w->fd };
        assert_int_equal(0, worker_op(w, r, &q));
    }
}

static void worker_fiber(void *arg)
{
    struct worker *w = arg;
    SCOPED(reply_free) struct reply *r = reply_new();

    for (unsigned i = 0; i < STEPS; i++)
        worker_step(w, r);
    w->is_done = true;
}

static uint64_t model_seed;

static void random_writers_always_read_what_they_wrote_body(struct test *t)
{
    static struct worker workers[WORKERS];

    test_push(t, &leaf_class, NULL);
    test_push(t, &write_behind_class, "aggregate-size", model_seed % 3 ? "256B" : "0", "strict-write-ordering",
              model_seed % 5 ? "off" : "on", "trickling-writes", model_seed % 7 ? "on" : "off", NULL);
    test_start(t);
    slow_file_init(&file, t, model_seed);
    file.delay_max_ms = (uint32_t)(model_seed % 6);
    file.writes_short = true;
    for (unsigned i = 0; i < WORKERS; i++) {
        workers[i] = (struct worker) {
            .t = t, .fd = fd_new(t->file, O_RDWR, 1), .number = i, .random = model_seed * 31 + i + 1
        };
        assert_int_equal(0, fiber_spawn(t->env, "worker", worker_fiber, &workers[i]));
    }
    for (unsigned i = 0; i < WORKERS; i++) {
        while (!workers[i].is_done)
            (void)fiber_sleep_ms(NULL, 1);
        fd_unref(workers[i].fd);
    }
    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->file));
    for (unsigned i = 0; i < WORKERS; i++)
        assert_memory_equal(workers[i].model, file.data + i * REGION_BYTES, REGION_BYTES);
}

static void random_writers_always_read_what_they_wrote(void **state)
{
    (void)state;
    for (model_seed = 1; model_seed <= 60; model_seed++)
        test_in_sim(random_writers_always_read_what_they_wrote_body, model_seed);
}

SIM_TEST(lack_of_memory_is_told_and_loses_nothing_silently)
{
    bool has_fired = true;
    unsigned failures = 0;

    start(t, 1, NULL, NULL);
    for (uint64_t nth = 1; has_fired; nth++) {
        char text[9];
        snprintf(text, sizeof(text), "%08u", (unsigned)nth);
        SCOPED(buf_unref) struct buf *data = buf_copy(text, 8);
        mem_fail_at(nth);
        int put = test_op(t, OP_WRITE, .inode = t->file, .fd = t->fd, .offset = 0, .data = data);
        int more = put > 0 ? test_op(t, OP_WRITE, .inode = t->file, .fd = t->fd, .offset = 8, .data = data) : put;
        int synced = test_op(t, OP_FSYNC, .inode = t->file, .fd = t->fd);
        has_fired = mem_fail_at(0) == 0;
        failures += put < 0 || more < 0 || synced < 0;
        if (put > 0 && synced == 0)
            assert_memory_equal(text, file.data, 8);
        if (more > 0 && synced == 0)
            assert_memory_equal(text, file.data + 8, 8);
        assert_true(put == 8 || put == -ENOMEM);
        assert_true(synced == 0 || synced == -ENOMEM);
    }
    assert_true(failures > 2);
}

/* ---- the model with failures: an fsync that succeeds means that all before it is written ---- */

static leaf_answer_fn plain_write;

static FIBER int maybe_fail(struct leaf *leaf, struct call *call, const struct request *q, struct reply *r)
{
    if (slow_random(&file) % 5 == 0)
        file.fail_next = EIO;
    return plain_write(leaf, call, q, r);
}

static void fsync_body(struct test *t)
{
    static struct worker w;
    uint8_t unknown[REGION_BYTES] = { 0 };
    unsigned reported = 0, clean = 0;

    test_push(t, &leaf_class, NULL);
    test_push(t, &write_behind_class, "aggregate-size", model_seed % 2 ? "128B" : "0",
              "resync-failed-syncs-after-fsync", model_seed % 3 ? "off" : "on", NULL);
    test_start(t);
    slow_file_init(&file, t, model_seed);
    file.delay_max_ms = 3;
    plain_write = t->leaf->answers[OP_WRITE];
    t->leaf->answers[OP_WRITE] = maybe_fail;
    w = (struct worker) { .t = t, .fd = t->fd, .random = model_seed };
    for (unsigned i = 0; i < 200; i++) {
        uint64_t at = worker_random(&w) % (REGION_BYTES - 32), n = 1 + worker_random(&w) % 32;
        int result;
        if (worker_random(&w) % 4 == 0) {
            result = test_op(t, OP_FSYNC, .inode = t->file, .fd = t->fd);
            for (unsigned b = 0; result == 0 && b < REGION_BYTES; b++)
                if (!unknown[b] && w.model[b] != file.data[b])
                    fail_msg("seed %llu: byte %u was lost without an error", (unsigned long long)model_seed, b);
            clean += result == 0;
        } else {
            SCOPED(buf_unref) struct buf *data = buf_new(n);
            memset(data->data, (int)worker_random(&w), n);
            result = test_op(t, OP_WRITE, .inode = t->file, .fd = t->fd, .offset = at, .data = data);
            if (result > 0) {
                memcpy(w.model + at, data->data, n);
                memset(unknown + at, 0, n);
            }
        }
        if (result < 0) { /* told: what was written before may be lost */
            assert_int_equal(-EIO, result);
            reported++;
            memset(unknown, 1, sizeof(unknown));
        }
    }
    assert_true(reported > 0 && clean > 0);
}

static void an_fsync_that_succeeds_means_that_nothing_was_lost_silently(void **state)
{
    (void)state;
    for (model_seed = 1; model_seed <= 60; model_seed++)
        test_in_sim(fsync_body, model_seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_write_is_answered_before_it_is_written_and_read_back_at_once),
        cmocka_unit_test(stat_and_lookup_know_the_new_size),
        cmocka_unit_test(small_neighbours_are_merged),
        cmocka_unit_test(aggregate_size_zero_merges_nothing),
        cmocka_unit_test(overlapping_writes_keep_their_order),
        cmocka_unit_test(strict_ordering_has_one_write_under_way),
        cmocka_unit_test(without_it_distant_writes_go_side_by_side),
        cmocka_unit_test(appends_of_two_descriptors_stay_whole_and_in_order),
        cmocka_unit_test(the_window_bounds_what_is_not_written_yet),
        cmocka_unit_test(o_sync_and_strict_o_direct_and_readers_with_xdata_go_through),
        cmocka_unit_test(o_direct_is_cached_unless_strict),
        cmocka_unit_test(an_error_in_the_background_is_told_once_at_the_next_write),
        cmocka_unit_test(fsync_waits_and_tells_the_error_of_its_descriptor_only),
        cmocka_unit_test(flush_tells_the_error_when_flush_behind_is_off),
        cmocka_unit_test(flush_behind_answers_at_once_for_a_new_file_and_flushes_after_the_data),
        cmocka_unit_test(flush_of_a_file_that_existed_before_waits_for_the_data),
        cmocka_unit_test(with_posix_locks_flush_waits_so_that_the_lock_goes_after_the_data),
        cmocka_unit_test(a_lock_on_one_file_protects_what_is_written_to_another),
        cmocka_unit_test(a_failed_write_stops_the_replicating_clients_xattrop_and_data_precedes_its_unlock),
        cmocka_unit_test(resync_tries_again_after_a_failed_fsync),
        cmocka_unit_test(without_resync_failed_data_is_given_up),
        cmocka_unit_test(trickling_off_holds_small_writes_for_a_second_at_most),
        cmocka_unit_test(what_a_gone_client_wrote_is_still_written_and_stopping_writes_all),
        cmocka_unit_test(a_listing_leaves_attributes_of_dirty_inodes_out),
        cmocka_unit_test(random_writers_always_read_what_they_wrote),
        cmocka_unit_test(lack_of_memory_is_told_and_loses_nothing_silently),
        cmocka_unit_test(an_fsync_that_succeeds_means_that_nothing_was_lost_silently),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
