/* From bytes to messages, in every chopping. */
#include "rpc/record.h"
#include "unit/unit.h"
#include <stdlib.h>

#define STREAM_MAX (1024 * 1024)

struct stream_bytes {
    uint8_t *data;
    size_t size, at;
};

static void add(struct stream_bytes *s, const void *data, size_t size)
{
    assert_non_null(s->data);
    assert_true(s->size + size <= STREAM_MAX);
    memcpy(s->data + s->size, data, size);
    s->size += size;
}

static void add_mark(struct stream_bytes *s, uint32_t size, bool is_last)
{
    uint8_t mark[4];

    put_be32(mark, size | (is_last ? RPC_MARK_LAST : 0));
    add(s, mark, 4);
}

/* A message of `size` bytes that begin with `seed`, in fragments of at most `fragment` bytes. */
static void add_message(struct stream_bytes *s, uint8_t seed, size_t size, size_t fragment)
{
    for (size_t at = 0; at < size || at == 0; at += fragment) {
        size_t n = MIN(fragment, size - at);
        add_mark(s, (uint32_t)n, at + n == size);
        for (size_t i = 0; i < n; i++) {
            uint8_t byte = (uint8_t)(seed + (at + i) * 13);
            add(s, &byte, 1);
        }
    }
}

/* The next bytes, at most `most` at once, where the reader wants them. */
static bool feed(struct record_reader *r, struct stream_bytes *s, size_t most)
{
    struct iovec iov[2];
    int count = record_reader_space(r, iov);
    size_t n = 0;

    assert_true(count > 0);
    for (int i = 0; i < count && n < most && s->at < s->size; i++) {
        size_t wanted = MIN(iov[i].iov_len, most - n), part = MIN(wanted, s->size - s->at);
        memcpy(iov[i].iov_base, s->data + s->at, part);
        s->at += part;
        n += part;
    }
    record_reader_got(r, n);
    return n > 0;
}

static void assert_message(const struct record *m, uint8_t seed, size_t size)
{
    size_t head = m->head->size, data = m->data ? m->data->size : 0;

    assert_int_equal(size, head + data);
    for (size_t i = 0; i < size; i++) {
        const uint8_t *at =
            i < head || !m->data ? m->head->data + i : m->data->data + (i - head); // NOLINT: head + data
        if (*at != (uint8_t)(seed + i * 13))
            fail_msg("byte %zu of %zu differs", i, size);
    }
}

/* All messages are split 100 bytes behind their beginning when they are large. */
static ssize_t split_at_100(void *arg, const uint8_t *head, size_t have)
{
    return have < 8 ? -EAGAIN : 100;
}

static ssize_t split_at_3000(void *arg, const uint8_t *head, size_t have)
{
    return have < 2000 ? -EAGAIN : 3000;
}

static const size_t sizes[] = { 4, 100, 4000, 16383, 16384, 16385, 70000, 1, 0, 131072, 131072, 5, 200000, 12 };

static void check(record_peek_fn peek, size_t most, size_t fragment)
{
    struct stream_bytes s = { .data = malloc(STREAM_MAX) };
    struct record_reader r;
    size_t found = 0;
    int result;

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
        add_message(&s, (uint8_t)i, sizes[i], fragment);
    assert_int_equal(0, record_reader_init(&r, STREAM_MAX, peek, NULL));
    do {
        struct record m;
        while ((result = record_reader_next(&r, &m)) > 0) {
            assert_true(found < ARRAY_SIZE(sizes));
            assert_message(&m, (uint8_t)found, sizes[found]);
            record_done(&m);
            found++;
        }
        assert_int_equal(0, result);
    } while (feed(&r, &s, most));
    assert_int_equal(ARRAY_SIZE(sizes), found);
    record_reader_done(&r);
    free(s.data);
}

static void messages_come_out_however_the_bytes_come_in(void **state)
{
    check(NULL, SIZE_MAX, SIZE_MAX / 2);
    check(NULL, 1, SIZE_MAX / 2);
    check(NULL, 4097, SIZE_MAX / 2);
    check(split_at_100, SIZE_MAX, SIZE_MAX / 2);
    check(split_at_100, 7, SIZE_MAX / 2);
    check(split_at_100, 50001, SIZE_MAX / 2);
    check(split_at_3000, SIZE_MAX, SIZE_MAX / 2);
    check(split_at_3000, 999, SIZE_MAX / 2);
}

static void fragments_are_joined(void **state)
{
    check(NULL, SIZE_MAX, 7);
    check(split_at_100, 3, 7);
    check(split_at_100, SIZE_MAX, 20000);
    check(NULL, 1000, 100000);
}

static void raw_data_of_a_large_message_is_a_buf_of_its_own(void **state)
{
    struct stream_bytes s = { .data = malloc(STREAM_MAX) };
    struct record_reader r;
    struct record m;

    add_message(&s, 1, 100 + 131072, SIZE_MAX / 2);
    assert_int_equal(0, record_reader_init(&r, STREAM_MAX, split_at_100, NULL));
    while (record_reader_next(&r, &m) == 0)
        assert_true(feed(&r, &s, 10000));
    assert_int_equal(100, m.head->size);
    assert_int_equal(131072, m.data->size);
    assert_int_equal(0, (uintptr_t)m.data->data % 4096);
    record_done(&m);
    record_reader_done(&r);
    free(s.data);
}

static void messages_kept_stay_whole_while_others_come(void **state)
{
    struct stream_bytes s = { .data = malloc(STREAM_MAX) };
    struct record_reader r;
    struct record kept[100];

    for (int i = 0; i < 100; i++)
        add_message(&s, (uint8_t)i, 3000, SIZE_MAX / 2);
    assert_int_equal(0, record_reader_init(&r, STREAM_MAX, NULL, NULL));
    for (int i = 0; i < 100; i++)
        while (record_reader_next(&r, &kept[i]) == 0)
            assert_true(feed(&r, &s, 5000));
    for (int i = 0; i < 100; i++) {
        assert_message(&kept[i], (uint8_t)i, 3000);
        record_done(&kept[i]);
    }
    record_reader_done(&r);
    free(s.data);
}

static void messages_past_the_limit_are_refused(void **state)
{
    struct stream_bytes s = { .data = malloc(STREAM_MAX) }, f = { .data = malloc(STREAM_MAX) };
    struct record_reader r;
    struct record m;

    add_mark(&s, 1001, true);
    assert_int_equal(0, record_reader_init(&r, 1000, NULL, NULL));
    assert_true(feed(&r, &s, SIZE_MAX));
    assert_int_equal(-EMSGSIZE, record_reader_next(&r, &m));
    record_reader_done(&r);
    add_message(&f, 0, 1001, 100);
    assert_int_equal(0, record_reader_init(&r, 1000, NULL, NULL));
    assert_true(feed(&r, &f, SIZE_MAX));
    assert_int_equal(-EMSGSIZE, record_reader_next(&r, &m));
    record_reader_done(&r);
    free(s.data);
    free(f.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_come_out_however_the_bytes_come_in),
        cmocka_unit_test(fragments_are_joined),
        cmocka_unit_test(raw_data_of_a_large_message_is_a_buf_of_its_own),
        cmocka_unit_test(messages_kept_stay_whole_while_others_come),
        cmocka_unit_test(messages_past_the_limit_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
