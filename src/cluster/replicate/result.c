/* cluster/replicate/result.c */
#include "cluster/replicate/result.h"

bool result_is_unknown(int r)
{
    return r == -ENOTCONN || r == -ETIMEDOUT || r == -ECANCELED || r == -ESHUTDOWN || r == -EIO || r == -ENOMEM ||
           r == -ECONNRESET || r == -EPIPE;
}

static int rank(int r)
{
    switch (r) {
    case 0: return 0;
    case -ENODATA: return 6;
    case -ENOENT: return 5;
    case -ESTALE: return 4;
    case -ENOSPC: return 3;
    case -ENOTCONN: return 1;
    }
    return 2;
}

int result_worse(int a, int b)
{
    return rank(b) >= rank(a) ? b : a;
}

static uint32_t get_le16(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

uint32_t super_fast_hash(const uint8_t *data, size_t size_bytes)
{
    uint32_t hash = (uint32_t)size_bytes;
    size_t rest = size_bytes & 3;

    for (size_t words = size_bytes >> 2; words > 0; words--, data += 4) {
        hash += get_le16(data);
        hash = (hash << 16) ^ ((get_le16(data + 2) << 11) ^ hash);
        hash += hash >> 11;
    }
    if (rest == 3) {
        hash += get_le16(data);
        hash ^= hash << 16;
        hash ^= (uint32_t)((int32_t)(int8_t)data[2] << 18);
        hash += hash >> 11;
    } else if (rest == 2) {
        hash += get_le16(data);
        hash ^= hash << 11;
        hash += hash >> 17;
    } else if (rest == 1) {
        hash += (uint32_t)(int8_t)data[0];
        hash ^= hash << 10;
        hash += hash >> 1;
    }
    hash ^= hash << 3;
    hash += hash >> 5;
    hash ^= hash << 4;
    hash += hash >> 17;
    hash ^= hash << 25;
    hash += hash >> 6;
    return hash;
}
