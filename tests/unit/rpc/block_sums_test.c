/* Sums of blocks: the bytes of questions and answers, and known sums. */
#include "rpc/block_sums.h"
#include "core/mem.h"
#include "unit/unit.h"

static struct block_question *question(void)
{
    struct block_question *k = NEW(struct block_question);

    assert_non_null(k);
    for (size_t i = 0; i < sizeof(k->key); i++)
        k->key[i] = (uint8_t)i;
    k->block_bytes = 4096;
    k->range_count = 2;
    k->ranges[0] = (struct block_range) { .offset = 0x100000000, .size = 8192 };
    k->ranges[1] = (struct block_range) { .offset = 4096, .size = 4096 };
    return k;
}

static void a_question_has_these_bytes(void **state)
{
    static const uint8_t golden[] = {
        0, 1, 2,    3, 4, 5, 6,    7, 8, 9, 10,   11, 12, 13, 14, 15, /* key */
        0, 0, 0x10, 0, 0, 0, 0,    2,                                 /* block size, ranges */
        0, 0, 0,    1, 0, 0, 0,    0, 0, 0, 0x20, 0,                  /* offset, size */
        0, 0, 0,    0, 0, 0, 0x10, 0, 0, 0, 0x10, 0,
    };
    SCOPED_FREE struct block_question *k = question(), *back = NEW(struct block_question);
    SCOPED(buf_unref) struct buf *b = block_question_put(k);

    assert_int_equal(sizeof(golden), b->size);
    assert_memory_equal(golden, b->data, sizeof(golden));
    assert_int_equal(0, block_question_get(b, back));
    assert_memory_equal(k, back, sizeof(*k));
    assert_int_equal(3, block_question_count(back));
}

static void a_cut_or_padded_question_is_refused(void **state)
{
    SCOPED_FREE struct block_question *k = question(), *back = NEW(struct block_question);
    SCOPED(buf_unref) struct buf *b = block_question_put(k);

    for (size_t size = 0; size < b->size; size++) {
        SCOPED(buf_unref) struct buf *cut = buf_copy(b->data, size);
        assert_int_equal(-EINVAL, block_question_get(cut, back));
    }
    SCOPED(buf_unref) struct buf *longer = buf_new(b->size + 1);
    memcpy(longer->data, b->data, b->size);
    assert_int_equal(-EINVAL, block_question_get(longer, back));
    assert_int_equal(-EINVAL, block_question_get(NULL, back));
}

/* The count of a question of one range. */
static int count_of(uint32_t block_bytes, uint64_t offset, uint32_t size)
{
    SCOPED_FREE struct block_question *k = question();

    k->block_bytes = block_bytes;
    k->range_count = 1;
    k->ranges[0] = (struct block_range) { .offset = offset, .size = size };
    return block_question_count(k);
}

static void a_question_past_a_limit_is_refused(void **state)
{
    SCOPED_FREE struct block_question *k = question();

    assert_int_equal(-EINVAL, count_of(2048, 0, 4096));
    assert_int_equal(-EINVAL, count_of(12288, 0, 12288));
    assert_int_equal(-EINVAL, count_of(2 << 20, 0, 2 << 20));
    assert_int_equal(-EINVAL, count_of(4096, 0, 0));
    assert_int_equal(-EINVAL, count_of(4096, 0, 4097));
    assert_int_equal(-EINVAL, count_of(4096, 512, 4096));
    assert_int_equal(-EINVAL, count_of(4096, UINT64_MAX - 4095, 4096));
    assert_int_equal(-EINVAL, count_of(4096, 0, (BLOCKS_MAX + 1) * 4096));
    assert_int_equal(BLOCKS_MAX, count_of(4096, 0, BLOCKS_MAX * 4096));
    assert_int_equal(64, count_of(1 << 20, 0, 64 << 20));
    k->block_bytes = 1 << 20;
    k->ranges[0] = k->ranges[1] = (struct block_range) { .size = 64 << 20 }; /* too many bytes in all */
    assert_int_equal(-EINVAL, block_question_count(k));
    k->range_count = 0;
    assert_int_equal(-EINVAL, block_question_count(k));
    k->range_count = BLOCK_RANGES_MAX + 1;
    assert_int_equal(-EINVAL, block_question_count(k));
}

static void an_answer_has_these_bytes_and_only_as_many_sums_as_were_asked(void **state)
{
    SCOPED_FREE struct block_question *k = question();
    SCOPED(buf_unref) struct buf *b = block_answer_new(3);
    struct block_answer a;

    block_answer_head(b, 0x1122334455, UINT64_MAX);
    block_answer_sum(b, 1)[15] = 1;
    block_answer_sum(b, 2)[0] = 7;
    assert_int_equal(16 + 3 * 16, b->size);
    assert_memory_equal("\0\0\0\x11\x22\x33\x44\x55\xff\xff\xff\xff\xff\xff\xff\xff", b->data, 16);
    assert_int_equal(0, block_answer_get(b, k, &a));
    assert_int_equal(0x1122334455, a.size_bytes);
    assert_true(a.next_data == UINT64_MAX);
    assert_int_equal(3, a.count);
    assert_int_equal(BLOCK_IS_HOLE, block_kind(a.sums));
    assert_int_equal(BLOCK_IS_ZERO, block_kind(a.sums + 16));
    assert_int_equal(BLOCK_IS_DATA, block_kind(a.sums + 32));
    k->range_count = 1;
    assert_int_equal(-EBADMSG, block_answer_get(b, k, &a));
    assert_int_equal(-EBADMSG, block_answer_get(NULL, k, &a));
}

/* Computed with Python's cryptography package: AESGCM(key).encrypt(nonce, b"", data). */
static void sums_are_gmac_tags(void **state)
{
    static const uint8_t of_x[] = { 0xaa, 0xdc, 0x76, 0x68, 0xca, 0x2d, 0x27, 0xef,
                                    0x01, 0x5e, 0xe6, 0x00, 0x13, 0x0b, 0x6f, 0xd1 };
    static const uint8_t of_last_bit[] = { 0x80, 0x43, 0x81, 0xeb, 0x81, 0x8b, 0x72, 0xf8,
                                           0x1d, 0x66, 0x54, 0x81, 0xe4, 0x33, 0xf9, 0x4c };
    SCOPED_FREE uint8_t *block = mem_zalloc(4096);
    uint8_t key[BLOCK_KEY_BYTES] = { 0 }, sum[BLOCK_SUM_BYTES];

    for (size_t i = 0; i < sizeof(key); i++)
        key[i] = (uint8_t)i;
    struct block_summer *s = block_summer_new(key);
    assert_int_equal(0, block_sum(s, block, 4096, sum));
    assert_int_equal(BLOCK_IS_ZERO, block_kind(sum));
    block[4095] = 1;
    assert_int_equal(0, block_sum(s, block, 4096, sum));
    assert_memory_equal(of_last_bit, sum, sizeof(sum));
    memset(block, 'x', 4096);
    assert_int_equal(0, block_sum(s, block, 4096, sum));
    assert_memory_equal(of_x, sum, sizeof(sum));
    block_summer_free(s);
}

/* What a brick of GlusterFS 10.3 answered about these bytes. */
static void range_sums_are_those_of_a_glusterfs_brick(void **state)
{
    static const uint8_t sha[] = { 0xd0, 0x89, 0x28, 0xa1, 0x68, 0x95, 0x2d, 0xcd };
    static const uint8_t md5[] = { 0x07, 0xce, 0x78, 0xc6, 0x75, 0x11, 0x54, 0xbf };
    SCOPED_FREE uint8_t *data = mem_alloc(300000);
    struct range_sums s;

    for (size_t i = 0; i < 300000; i++)
        data[i] = (uint8_t)(i * 7 + i / 256);
    assert_int_equal(0, range_sums_of(data, 300000, true, &s));
    assert_true(s.weak == 0x929ec939);
    assert_memory_equal(sha, s.strong, 8);
    assert_int_equal(0, range_sums_of(data, 300000, false, &s));
    assert_true(s.weak == 0x929ec939);
    assert_memory_equal(md5, s.strong, 8);
}

static void range_sums_of_a_few_bytes(void **state)
{
    static const uint8_t sha_of_abc[] = { 0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea };
    static const uint8_t md5_of_abc[] = { 0x90, 0x01, 0x50, 0x98, 0x3c, 0xd2, 0x4f, 0xb0 };
    struct range_sums s;

    assert_int_equal(0, range_sums_of("abc", 3, true, &s));
    assert_memory_equal(sha_of_abc, s.strong, 8);
    assert_int_equal((97 + 195 + 294) << 16 | 294, s.weak);
    assert_int_equal(0, range_sums_of("abc", 3, false, &s));
    assert_memory_equal(md5_of_abc, s.strong, 8);
    assert_int_equal(0, range_sums_of("\xff\xff", 2, true, &s));
    assert_int_equal(765 << 16 | 510, s.weak);
    assert_int_equal(0, range_sums_of("", 0, true, &s));
    assert_int_equal(0, s.weak);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_question_has_these_bytes),
        cmocka_unit_test(a_cut_or_padded_question_is_refused),
        cmocka_unit_test(a_question_past_a_limit_is_refused),
        cmocka_unit_test(an_answer_has_these_bytes_and_only_as_many_sums_as_were_asked),
        cmocka_unit_test(sums_are_gmac_tags),
        cmocka_unit_test(range_sums_are_those_of_a_glusterfs_brick),
        cmocka_unit_test(range_sums_of_a_few_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
