#include "rpc/block_sums.h"
#include "core/mem.h"
#include <openssl/evp.h>

#define QUESTION_HEAD (BLOCK_KEY_BYTES + 8)
#define RANGE_BYTES   12
#define ANSWER_HEAD   16

static bool is_good_block_size(uint32_t n)
{
    return n >= BLOCK_BYTES_MIN && n <= BLOCK_BYTES_MAX && (n & (n - 1)) == 0;
}

int block_question_count(const struct block_question *k)
{
    uint64_t total_bytes = 0;

    if (!is_good_block_size(k->block_bytes) || k->range_count == 0 || k->range_count > BLOCK_RANGES_MAX)
        return -EINVAL;
    for (uint32_t i = 0; i < k->range_count; i++) {
        const struct block_range *r = &k->ranges[i];

        if (r->size == 0 || r->offset > (uint64_t)INT64_MAX - r->size || ((r->offset | r->size) & (k->block_bytes - 1)))
            return -EINVAL;
        total_bytes += r->size;
    }
    if (total_bytes > BLOCK_RANGES_BYTES || total_bytes / k->block_bytes > BLOCKS_MAX)
        return -EINVAL;
    return (int)(total_bytes / k->block_bytes);
}

struct buf *block_question_put(const struct block_question *k)
{
    struct buf *b = buf_new(QUESTION_HEAD + (size_t)k->range_count * RANGE_BYTES);

    if (!b)
        return NULL;
    memcpy(b->data, k->key, BLOCK_KEY_BYTES);
    put_be32(b->data + BLOCK_KEY_BYTES, k->block_bytes);
    put_be32(b->data + BLOCK_KEY_BYTES + 4, k->range_count);
    for (uint32_t i = 0; i < k->range_count; i++) {
        uint8_t *p = b->data + QUESTION_HEAD + (size_t)i * RANGE_BYTES;

        put_be64(p, k->ranges[i].offset);
        put_be32(p + 8, k->ranges[i].size);
    }
    return b;
}

int block_question_get(const struct buf *b, struct block_question *ret_question)
{
    struct block_question *k = ret_question;

    if (!b || b->size < QUESTION_HEAD)
        return -EINVAL;
    memcpy(k->key, b->data, BLOCK_KEY_BYTES);
    k->block_bytes = get_be32(b->data + BLOCK_KEY_BYTES);
    k->range_count = get_be32(b->data + BLOCK_KEY_BYTES + 4);
    if (k->range_count > BLOCK_RANGES_MAX || b->size != QUESTION_HEAD + (size_t)k->range_count * RANGE_BYTES)
        return -EINVAL;
    for (uint32_t i = 0; i < k->range_count; i++) {
        const uint8_t *p = b->data + QUESTION_HEAD + (size_t)i * RANGE_BYTES;

        k->ranges[i] = (struct block_range) { .offset = get_be64(p), .size = get_be32(p + 8) };
    }
    int count = block_question_count(k);
    return count < 0 ? count : 0;
}

struct buf *block_answer_new(uint32_t count)
{
    struct buf *b = buf_new(ANSWER_HEAD + (size_t)count * BLOCK_SUM_BYTES);

    if (b)
        memset(b->data, 0, b->size);
    return b;
}

void block_answer_head(struct buf *b, uint64_t size_bytes, uint64_t next_data)
{
    put_be64(b->data, size_bytes);
    put_be64(b->data + 8, next_data);
}

int block_answer_get(const struct buf *b, const struct block_question *k, struct block_answer *ret_answer)
{
    int count = block_question_count(k);

    if (!b || count < 0 || b->size != ANSWER_HEAD + (size_t)count * BLOCK_SUM_BYTES)
        return -EBADMSG;
    *ret_answer = (struct block_answer) { .size_bytes = get_be64(b->data),
                                          .next_data = get_be64(b->data + 8),
                                          .count = (uint32_t)count,
                                          .sums = b->data + ANSWER_HEAD };
    return 0;
}

static const uint8_t zero_sum[BLOCK_SUM_BYTES] = { [BLOCK_SUM_BYTES - 1] = 1 };
static const uint8_t hole_sum[BLOCK_SUM_BYTES];

enum block_kind block_kind(const uint8_t sum[static BLOCK_SUM_BYTES])
{
    if (memcmp(sum, hole_sum, BLOCK_SUM_BYTES) == 0)
        return BLOCK_IS_HOLE;
    return memcmp(sum, zero_sum, BLOCK_SUM_BYTES) == 0 ? BLOCK_IS_ZERO : BLOCK_IS_DATA;
}

/* ---- sums ---- */

struct block_summer {
    EVP_CIPHER_CTX *ctx; /* keyed; the nonce is set again for every block */
};

static const uint8_t nonce[12];

struct block_summer *block_summer_new(const uint8_t key[static BLOCK_KEY_BYTES])
{
    struct block_summer *s = NEW(struct block_summer);

    if (!s)
        return NULL;
    s->ctx = EVP_CIPHER_CTX_new();
    if (s->ctx && EVP_EncryptInit_ex(s->ctx, EVP_aes_128_gcm(), NULL, key, nonce))
        return s;
    block_summer_free(s);
    return NULL;
}

void block_summer_free(struct block_summer *s)
{
    if (!s)
        return;
    EVP_CIPHER_CTX_free(s->ctx);
    mem_free(s);
}

static bool is_all_zero(const uint8_t *data, size_t size)
{
    return size == 0 || (data[0] == 0 && memcmp(data, data + 1, size - 1) == 0);
}

int block_sum(struct block_summer *s, const void *data, size_t size_bytes, uint8_t ret_sum[static BLOCK_SUM_BYTES])
{
    uint8_t tag[BLOCK_SUM_BYTES], none[1];
    int n;

    if (is_all_zero(data, size_bytes)) {
        memcpy(ret_sum, zero_sum, BLOCK_SUM_BYTES);
        return 0;
    }
    if (!EVP_EncryptInit_ex(s->ctx, NULL, NULL, NULL, nonce) ||
        !EVP_EncryptUpdate(s->ctx, NULL, &n, data, (int)size_bytes) || !EVP_EncryptFinal_ex(s->ctx, none, &n) ||
        !EVP_CIPHER_CTX_ctrl(s->ctx, EVP_CTRL_AEAD_GET_TAG, sizeof(tag), tag))
        return -EIO;
    /* The two reserved values are no sums: as likely as any other, that is never. */
    if (block_kind(tag) != BLOCK_IS_DATA)
        tag[0] = 0x80;
    memcpy(ret_sum, tag, sizeof(tag));
    return 0;
}

/* ---- RCHECKSUM ---- */

/* How many bytes can be added before the sums of 32 bits have to be reduced, as in zlib. */
#define ADLER_STEP 5552
#define ADLER_BASE 65521

static uint32_t adler_from_zero(const uint8_t *bytes, size_t size)
{
    uint32_t a = 0, b = 0;

    while (size) {
        size_t step = MIN(size, (size_t)ADLER_STEP);

        for (size_t i = 0; i < step; i++) {
            a += bytes[i];
            b += a;
        }
        a %= ADLER_BASE;
        b %= ADLER_BASE;
        bytes += step;
        size -= step;
    }
    return b << 16 | a;
}

int range_sums_of(const void *data, size_t size_bytes, bool wants_sha256, struct range_sums *ret_sums)
{
    uint8_t strong[EVP_MAX_MD_SIZE] = { 0 };

    if (!EVP_Digest(data, size_bytes, strong, NULL, wants_sha256 ? EVP_sha256() : EVP_md5(), NULL))
        return -EIO;
    ret_sums->weak = adler_from_zero(data, size_bytes);
    memcpy(ret_sums->strong, strong, RANGE_SUM_BYTES);
    return 0;
}
