/* features/locks: inodelk and entrylk, queues and notices, counts and statedump. */
#include "unit/features/asker.h"
#include <fcntl.h>
#include <stdio.h>

/* ---- inodelk ---- */

SIM_TEST(writers_exclude_each_other_and_readers_share)
{
    static struct asker a, b;
    start(t, NULL, NULL);
    asker_init(&a, t, NULL, 1);
    asker_init(&b, t, NULL, 2);
    assert_int_equal(0, inodelk(&a, LOCK_TRY, LOCK_READ, 0, 0));
    assert_int_equal(0, inodelk(&b, LOCK_TRY, LOCK_READ, 10, 5));
    assert_int_equal(-EAGAIN, inodelk(&b, LOCK_TRY, LOCK_WRITE, 20, 5));
    assert_int_equal(0, inodelk(&a, LOCK_UNLOCK, LOCK_NONE, 0, 0));
    assert_int_equal(0, inodelk(&b, LOCK_TRY, LOCK_WRITE, 20, 5));
    assert_int_equal(-EAGAIN, inodelk(&a, LOCK_TRY, LOCK_READ, 24, 1));
    assert_int_equal(0, inodelk(&a, LOCK_TRY, LOCK_READ, 25, 1));
}

SIM_TEST(unlock_needs_exactly_the_range_that_was_locked)
{
    static struct asker a;
    start(t, NULL, NULL);
    asker_init(&a, t, NULL, 1);
    assert_int_equal(0, inodelk(&a, LOCK_TRY, LOCK_WRITE, 0, 100));
    assert_int_equal(-EINVAL, inodelk(&a, LOCK_UNLOCK, LOCK_NONE, 0, 50));
    assert_int_equal(0, inodelk(&a, LOCK_UNLOCK, LOCK_NONE, 0, 100));
    assert_int_equal(-EINVAL, inodelk(&a, LOCK_UNLOCK, LOCK_NONE, 0, 100));
}

SIM_TEST(metadata_range_lives_in_a_domain_of_its_own)
{
    static struct asker a, b;
    start(t, NULL, NULL);
    asker_init(&a, t, NULL, 1);
    asker_init(&b, t, NULL, 2);
    assert_int_equal(0, inodelk(&a, LOCK_TRY, LOCK_WRITE, 0, 0));
    assert_int_equal(0, inodelk(&b, LOCK_TRY, LOCK_WRITE, LOCKS_METADATA_START, 0));
    assert_int_equal(-EAGAIN, inodelk(&a, LOCK_TRY, LOCK_WRITE, LOCKS_METADATA_START, 0));
}

SIM_TEST(the_same_owner_on_another_connection_is_another_owner)
{
    static struct asker a, b;
    start(t, NULL, NULL);
    struct client *one = new_client(t, "one"), *two = new_client(t, "two");
    asker_init(&a, t, one, 7);
    asker_init(&b, t, two, 7);
    assert_int_equal(0, inodelk(&a, LOCK_TRY, LOCK_WRITE, 0, 0));
    assert_int_equal(0, inodelk(&a, LOCK_TRY, LOCK_WRITE, 0, 10)); /* never conflicts with itself */
    assert_int_equal(-EAGAIN, inodelk(&b, LOCK_TRY, LOCK_WRITE, 0, 0));
    client_gone(one);
    assert_int_equal(0, inodelk(&b, LOCK_TRY, LOCK_WRITE, 0, 0));
    assert_int_equal(-ENOTCONN, inodelk(&a, LOCK_TRY, LOCK_WRITE, 0, 0));
    client_gone(two);
    client_unref(one);
    client_unref(two);
}

SIM_TEST(waiters_are_served_in_order_and_readers_do_not_overtake_a_writer)
{
    static struct asker a, b, c, d;
    start(t, NULL, NULL);
    asker_init(&a, t, NULL, 1);
    asker_init(&b, t, NULL, 2);
    asker_init(&c, t, NULL, 3);
    asker_init(&d, t, NULL, 4);
    assert_int_equal(0, inodelk(&a, LOCK_TRY, LOCK_READ, 0, 0));
    prepare(&b, OP_INODELK, LOCK_WAIT, LOCK_WRITE, 0, 0);
    ask_later(&b);
    prepare(&c, OP_INODELK, LOCK_WAIT, LOCK_READ, 0, 0);
    ask_later(&c);
    assert_false(b.is_done || c.is_done);
    assert_int_equal(-EAGAIN, inodelk(&d, LOCK_TRY, LOCK_READ, 0, 0)); /* grantable, but somebody came before */
    assert_int_equal(0, inodelk(&a, LOCK_TRY, LOCK_READ, 5, 5));       /* a holder may go on */
    assert_int_equal(0, inodelk(&a, LOCK_UNLOCK, LOCK_NONE, 5, 5));
    assert_int_equal(0, inodelk(&a, LOCK_UNLOCK, LOCK_NONE, 0, 0));
    settle();
    assert_true(b.is_done && !c.is_done);
    assert_int_equal(0, inodelk(&b, LOCK_UNLOCK, LOCK_NONE, 0, 0));
    settle();
    assert_true(c.is_done);
    assert_int_equal(0, c.result);
}

SIM_TEST(a_cancelled_waiter_lets_those_behind_it_go)
{
    static struct asker a, b, c;
    start(t, NULL, NULL);
    asker_init(&a, t, NULL, 1);
    asker_init(&b, t, NULL, 2);
    asker_init(&c, t, NULL, 3);
    assert_int_equal(0, inodelk(&a, LOCK_TRY, LOCK_READ, 0, 0));
    prepare(&b, OP_INODELK, LOCK_WAIT, LOCK_WRITE, 0, 0);
    ask_later(&b);
    prepare(&c, OP_INODELK, LOCK_WAIT, LOCK_READ, 0, 0);
    ask_later(&c);
    scope_cancel(&b.call.scope);
    settle();
    assert_true(b.is_done && c.is_done);
    assert_int_equal(-ECANCELED, b.result);
    assert_int_equal(0, c.result);
}

SIM_TEST(a_deadline_ends_the_wait)
{
    static struct asker a, b;
    start(t, NULL, NULL);
    asker_init(&a, t, NULL, 1);
    asker_init(&b, t, NULL, 2);
    assert_int_equal(0, inodelk(&a, LOCK_TRY, LOCK_WRITE, 0, 0));
    b.call.scope.deadline_ns = env_deadline_ms(t->env, 50);
    assert_int_equal(-ETIMEDOUT, inodelk(&b, LOCK_WAIT, LOCK_WRITE, 0, 0));
    assert_int_equal(0, inodelk(&a, LOCK_UNLOCK, LOCK_NONE, 0, 0));
    assert_int_equal(0, inodelk(&a, LOCK_TRY, LOCK_WRITE, 0, 0));
}

SIM_TEST(a_client_that_goes_loses_what_it_holds_and_waits_for)
{
    static struct asker a, b, c;
    start(t, NULL, NULL);
    struct client *one = new_client(t, "one");
    asker_init(&a, t, one, 1);
    asker_init(&b, t, one, 2);
    asker_init(&c, t, NULL, 3);
    assert_int_equal(0, inodelk(&a, LOCK_TRY, LOCK_WRITE, 0, 0));
    assert_int_equal(0, lk(&a, LOCK_TRY, LOCK_WRITE, 0, 0));
    assert_int_equal(0, entrylk(&a, LOCK_TRY, "x"));
    prepare(&b, OP_INODELK, LOCK_WAIT, LOCK_WRITE, 0, 0);
    ask_later(&b);
    prepare(&c, OP_INODELK, LOCK_WAIT, LOCK_WRITE, 0, 0);
    ask_later(&c);
    client_gone(one);
    settle();
    assert_int_equal(-ENOTCONN, b.result);
    assert_true(c.is_done);
    assert_int_equal(0, c.result);
    assert_int_equal(0, lk(&c, LOCK_TRY, LOCK_WRITE, 0, 0));
    assert_int_equal(0, entrylk(&c, LOCK_TRY, "x"));
    client_unref(one);
}

SIM_TEST(ranges_past_the_end_of_everything_are_refused)
{
    static struct asker a;
    start(t, NULL, NULL);
    asker_init(&a, t, NULL, 1);
    assert_int_equal(-EINVAL, inodelk(&a, LOCK_TRY, LOCK_WRITE, 5, INT64_MAX));
    assert_int_equal(-EINVAL, inodelk(&a, LOCK_TRY, LOCK_WRITE, (uint64_t)INT64_MAX + 1, 1));
    assert_int_equal(-EINVAL, lk(&a, LOCK_TRY, LOCK_WRITE, 2, UINT64_MAX));
}

/* ---- entrylk ---- */

SIM_TEST(entrylk_conflicts_by_name_and_with_the_whole_directory)
{
    static struct asker a, b;
    start(t, NULL, NULL);
    asker_init(&a, t, NULL, 1);
    asker_init(&b, t, NULL, 2);
    assert_int_equal(0, entrylk(&a, LOCK_TRY, "x"));
    assert_int_equal(0, entrylk(&b, LOCK_TRY, "y"));
    assert_int_equal(-EAGAIN, entrylk(&b, LOCK_TRY, "x"));
    assert_int_equal(-EAGAIN, entrylk(&b, LOCK_TRY, NULL));
    assert_int_equal(0, entrylk(&a, LOCK_UNLOCK, "x"));
    assert_int_equal(-EINVAL, entrylk(&a, LOCK_UNLOCK, "x"));
    assert_int_equal(0, entrylk(&b, LOCK_TRY, NULL));
    assert_int_equal(-EAGAIN, entrylk(&a, LOCK_TRY, "z"));
}

/* ---- contention notices ---- */

struct notices {
    unsigned count;
    struct event last;
    char domain[64];
    uint64_t at_ns;
};
static struct notices notices; /* the handler has no argument of its own */

static void on_event(struct graph *graph, struct translator *from, const struct event *event)
{
    (void)from;
    if (event->kind != EVENT_INODELK_CONTENTION && event->kind != EVENT_ENTRYLK_CONTENTION)
        return;
    notices.count++;
    notices.last = *event;
    snprintf(notices.domain, sizeof(notices.domain), "%s", event->domain);
    notices.at_ns = env_now_ns(graph->env);
}

static void watch(struct test *t)
{
    memset(&notices, 0, sizeof(notices));
    graph_set_event_handler(t->graph, on_event);
}

SIM_TEST(holder_hears_at_once_that_somebody_waits_and_again_after_the_delay)
{
    static struct asker a, b, c;
    start(t, NULL, NULL);
    watch(t);
    struct client *one = new_client(t, "one"), *two = new_client(t, "two");
    asker_init(&a, t, one, 11);
    asker_init(&b, t, two, 2);
    asker_init(&c, t, two, 3);
    assert_int_equal(0, inodelk(&a, LOCK_TRY, LOCK_WRITE, 0, 0));
    assert_int_equal(0, notices.count);
    prepare(&b, OP_INODELK, LOCK_WAIT, LOCK_WRITE, 0, 0);
    ask_later(&b);
    assert_int_equal(1, notices.count);
    assert_int_equal(EVENT_INODELK_CONTENTION, notices.last.kind);
    assert_ptr_equal(one, notices.last.client);
    assert_string_equal("vol", notices.domain);
    assert_int_equal(LOCK_WRITE, notices.last.range.type);
    assert_int_equal(0, notices.last.range.length);
    assert_int_equal(11, notices.last.pid);
    prepare(&c, OP_INODELK, LOCK_WAIT, LOCK_WRITE, 0, 0);
    ask_later(&c);
    assert_int_equal(1, notices.count); /* not within the delay */
    (void)fiber_sleep_ms(NULL, 6500);
    assert_int_equal(2, notices.count);
    client_gone(one);
    client_gone(two);
    client_unref(one);
    client_unref(two);
    settle();
}

SIM_TEST(a_refused_try_is_reason_enough_for_a_notice)
{
    static struct asker a, b;
    start(t, NULL, NULL);
    watch(t);
    asker_init(&a, t, NULL, 1);
    asker_init(&b, t, NULL, 2);
    assert_int_equal(0, entrylk(&a, LOCK_TRY, "x"));
    assert_int_equal(-EAGAIN, entrylk(&b, LOCK_TRY, "x"));
    assert_int_equal(1, notices.count);
    assert_int_equal(EVENT_ENTRYLK_CONTENTION, notices.last.kind);
}

SIM_TEST(a_new_holder_hears_of_those_who_wait_already_but_after_its_grant)
{
    static struct asker a, b, c;
    start(t, NULL, NULL);
    asker_init(&a, t, NULL, 1);
    asker_init(&b, t, NULL, 2);
    asker_init(&c, t, NULL, 3);
    assert_int_equal(0, inodelk(&a, LOCK_TRY, LOCK_WRITE, 0, 0));
    prepare(&b, OP_INODELK, LOCK_WAIT, LOCK_WRITE, 0, 0);
    ask_later(&b);
    prepare(&c, OP_INODELK, LOCK_WAIT, LOCK_WRITE, 0, 0);
    ask_later(&c);
    watch(t);
    assert_int_equal(0, inodelk(&a, LOCK_UNLOCK, LOCK_NONE, 0, 0));
    (void)fiber_sleep_ms(NULL, 10);
    assert_true(b.is_done);
    assert_int_equal(1, notices.count);
    assert_int_equal(2, notices.last.pid);
    assert_true(notices.at_ns > b.done_ns);
    assert_true(notices.at_ns < b.done_ns + 5000000);
    assert_int_equal(0, inodelk(&b, LOCK_UNLOCK, LOCK_NONE, 0, 0));
    settle();
    assert_int_equal(0, c.result);
}

SIM_TEST(notices_can_be_switched_off)
{
    static struct asker a, b;
    start(t, "notify-contention", "off");
    watch(t);
    asker_init(&a, t, NULL, 1);
    asker_init(&b, t, NULL, 2);
    assert_int_equal(0, inodelk(&a, LOCK_TRY, LOCK_WRITE, 0, 0));
    assert_int_equal(-EAGAIN, inodelk(&b, LOCK_TRY, LOCK_WRITE, 0, 0));
    assert_int_equal(0, notices.count);
}

SIM_TEST(a_lock_held_too_long_is_revoked)
{
    static struct asker a, b;
    start(t, "revocation-secs", "4");
    asker_init(&a, t, NULL, 1);
    asker_init(&b, t, NULL, 2);
    assert_int_equal(0, inodelk(&a, LOCK_TRY, LOCK_WRITE, 0, 0));
    uint64_t began_ns = env_now_ns(t->env);
    assert_int_equal(0, inodelk(&b, LOCK_WAIT, LOCK_WRITE, 0, 0));
    assert_true(env_now_ns(t->env) - began_ns >= 4000000000u);
    assert_true(env_now_ns(t->env) - began_ns < 6000000000u);
    assert_int_equal(-EINVAL, inodelk(&a, LOCK_UNLOCK, LOCK_NONE, 0, 0));
    assert_logged(t, "lock-revoked");
}

SIM_TEST(a_lock_too_many_wait_for_is_revoked_and_the_waiting_are_refused_if_wanted)
{
    static struct asker a, b, c;
    test_push(t, &leaf_class, NULL);
    test_push(t, &locks_class, "reclaim-grace", "0", "revocation-max-blocked", "2", "revocation-clear-all", "on", NULL);
    test_start(t);
    asker_init(&a, t, NULL, 1);
    asker_init(&b, t, NULL, 2);
    asker_init(&c, t, NULL, 3);
    assert_int_equal(0, inodelk(&a, LOCK_TRY, LOCK_WRITE, 0, 0));
    prepare(&b, OP_INODELK, LOCK_WAIT, LOCK_WRITE, 0, 0);
    ask_later(&b);
    assert_false(b.is_done);
    prepare(&c, OP_INODELK, LOCK_WAIT, LOCK_WRITE, 0, 0);
    ask_later(&c);
    settle();
    assert_int_equal(-EAGAIN, b.result);
    assert_int_equal(-EAGAIN, c.result);
    assert_int_equal(0, inodelk(&b, LOCK_TRY, LOCK_WRITE, 0, 0));
}

/* ---- reports ---- */

static int64_t count_of(struct test *t, const char *key)
{
    int64_t v = -1;
    (void)dict_get_int(t->r->xdata, key, &v);
    return v;
}

SIM_TEST(lookup_reports_how_many_locks_there_are)
{
    static struct asker a, b;
    SCOPED(dict_unref) struct dict *x = dict_new();
    start(t, NULL, NULL);
    asker_init(&a, t, NULL, 1);
    asker_init(&b, t, NULL, 2);
    assert_int_equal(0, inodelk(&a, LOCK_TRY, LOCK_READ, 0, 0));
    assert_int_equal(0, inodelk(&b, LOCK_TRY, LOCK_READ, 0, 0));
    assert_int_equal(0, lk(&a, LOCK_TRY, LOCK_WRITE, 0, 0));
    assert_int_equal(0, entrylk(&a, LOCK_TRY, "name"));
    dict_set_int(x, "glusterfs.inodelk-count", 0);
    dict_set_int(x, "glusterfs.posixlk-count", 0);
    dict_set_int(x, "glusterfs.entrylk-count", 0);
    dict_set_int(x, "glusterfs.parent-entrylk", 0);
    dict_set_int(x, "glusterfs.multi-dom-lk-cnt-req", 1);
    dict_set_int(x, "glusterfs.inodelk-dom-prefix:vol", 0);
    dict_set_int(x, "glusterfs.inodelk-dom-prefix:other", 0);
    assert_int_equal(0, test_op(t, OP_LOOKUP, .inode = t->file, .parent = t->dir, .name = "name", .xdata = x));
    assert_int_equal(2, count_of(t, "glusterfs.inodelk-count"));
    assert_int_equal(1, count_of(t, "glusterfs.posixlk-count"));
    assert_int_equal(0, count_of(t, "glusterfs.entrylk-count"));
    assert_int_equal(1, count_of(t, "glusterfs.parent-entrylk"));
    assert_int_equal(2, count_of(t, "glusterfs.inodelk-dom-prefix:vol"));
    assert_int_equal(0, count_of(t, "glusterfs.inodelk-dom-prefix:other"));
    /* By name only, without an inode: the answer's gfid says which. */
    assert_int_equal(0, test_op(t, OP_LOOKUP, .parent = t->dir, .name = "name", .xdata = x));
    assert_int_equal(2, count_of(t, "glusterfs.inodelk-count"));
}

SIM_TEST(a_write_can_ask_for_the_count_of_one_domain)
{
    static struct asker a;
    SCOPED(dict_unref) struct dict *x = dict_new();
    start(t, NULL, NULL);
    struct buf *data = buf_copy("xxxx", 4);
    asker_init(&a, t, NULL, 1);
    assert_int_equal(0, inodelk(&a, LOCK_TRY, LOCK_READ, 0, 0));
    dict_set_str(x, "glusterfs.inodelk-dom-count", "vol");
    assert_int_equal(4, test_op(t, OP_WRITE, .inode = t->file, .data = data, .xdata = x));
    assert_int_equal(1, count_of(t, "glusterfs.inodelk-count"));
    dict_set_str(x, "glusterfs.inodelk-dom-count", "other");
    assert_int_equal(4, test_op(t, OP_WRITE, .inode = t->file, .data = data, .xdata = x));
    assert_int_equal(0, count_of(t, "glusterfs.inodelk-count"));
    buf_unref(data);
}

SIM_TEST(clear_locks_drops_what_it_is_told_to)
{
    static struct asker a, b;
    const char *text;
    struct translator *me = start(t, NULL, NULL);
    asker_init(&a, t, NULL, 1);
    asker_init(&b, t, NULL, 2);
    assert_int_equal(0, inodelk(&a, LOCK_TRY, LOCK_WRITE, 0, 100));
    prepare(&b, OP_INODELK, LOCK_WAIT, LOCK_WRITE, 0, 0);
    ask_later(&b);
    const char *blocked = "glusterfs.clrlk.tinode.kblocked", *granted = "glusterfs.clrlk.tinode.kgranted.0,0-99";
    assert_true(test_op(t, OP_GETXATTR, .inode = t->file, .text = blocked) > 0);
    assert_int_equal(0, dict_get_str(t->r->xattrs, blocked, &text));
    char want[128];
    snprintf(want, sizeof(want), "%s: inode blocked locks=1 granted locks=0", me->name);
    assert_string_equal(want, text);
    settle();
    assert_int_equal(-EAGAIN, b.result);
    assert_true(test_op(t, OP_GETXATTR, .inode = t->file, .text = granted) > 0);
    assert_int_equal(0, inodelk(&b, LOCK_TRY, LOCK_WRITE, 0, 0));
    assert_true(test_op(t, OP_GETXATTR, .inode = t->file, .text = "glusterfs.clrlk.tposix.kall") > 0);
    assert_int_equal(0, dict_get_str(t->r->xattrs, "glusterfs.clrlk.tposix.kall", &text));
    assert_string_equal("No locks cleared.", text);
    assert_int_equal(-EINVAL, test_op(t, OP_GETXATTR, .inode = t->file, .text = "glusterfs.clrlk.tinode.k"));
    assert_int_equal(-EINVAL, test_op(t, OP_GETXATTR, .inode = t->file, .text = "glusterfs.clrlk.tinode.kall.9-1"));
}

SIM_TEST(statedump_lists_locks)
{
    static struct asker a, b;
    start(t, NULL, NULL);
    asker_init(&a, t, NULL, 1);
    asker_init(&b, t, NULL, 2);
    assert_int_equal(0, inodelk(&a, LOCK_TRY, LOCK_WRITE, 0, 0));
    assert_int_equal(0, lk(&a, LOCK_TRY, LOCK_READ, 4, 4));
    prepare(&b, OP_INODELK, LOCK_WAIT, LOCK_WRITE, 0, 0);
    ask_later(&b);
    char *text = graph_statedump(t->graph);
    assert_non_null(strstr(text, "lock-dump.domain.domain=vol"));
    assert_non_null(strstr(text, "inodelk.inodelk[0](ACTIVE)=type=WRITE"));
    assert_non_null(strstr(text, "inodelk.inodelk[1](BLOCKED)=type=WRITE"));
    assert_non_null(strstr(text, "posixlk.posixlk[0](ACTIVE)=type=READ, whence=0, start=4, len=4"));
    mem_free(text);
    scope_cancel(&b.call.scope);
    settle();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writers_exclude_each_other_and_readers_share),
        cmocka_unit_test(unlock_needs_exactly_the_range_that_was_locked),
        cmocka_unit_test(metadata_range_lives_in_a_domain_of_its_own),
        cmocka_unit_test(the_same_owner_on_another_connection_is_another_owner),
        cmocka_unit_test(waiters_are_served_in_order_and_readers_do_not_overtake_a_writer),
        cmocka_unit_test(a_cancelled_waiter_lets_those_behind_it_go),
        cmocka_unit_test(a_deadline_ends_the_wait),
        cmocka_unit_test(a_client_that_goes_loses_what_it_holds_and_waits_for),
        cmocka_unit_test(ranges_past_the_end_of_everything_are_refused),
        cmocka_unit_test(entrylk_conflicts_by_name_and_with_the_whole_directory),
        cmocka_unit_test(holder_hears_at_once_that_somebody_waits_and_again_after_the_delay),
        cmocka_unit_test(a_refused_try_is_reason_enough_for_a_notice),
        cmocka_unit_test(a_new_holder_hears_of_those_who_wait_already_but_after_its_grant),
        cmocka_unit_test(notices_can_be_switched_off),
        cmocka_unit_test(a_lock_held_too_long_is_revoked),
        cmocka_unit_test(a_lock_too_many_wait_for_is_revoked_and_the_waiting_are_refused_if_wanted),
        cmocka_unit_test(lookup_reports_how_many_locks_there_are),
        cmocka_unit_test(a_write_can_ask_for_the_count_of_one_domain),
        cmocka_unit_test(clear_locks_drops_what_it_is_told_to),
        cmocka_unit_test(statedump_lists_locks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
