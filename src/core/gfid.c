#include "core/gfid.h"
#include "core/env.h"

const struct gfid gfid_null;
const struct gfid gfid_root = { .bytes = { [15] = 1 } };

struct gfid gfid_random(struct env *env)
{
    struct gfid g;

    env_random(env, g.bytes, sizeof(g.bytes));
    g.bytes[6] = (uint8_t)((g.bytes[6] & 0x0f) | 0x40); /* version 4 */
    g.bytes[8] = (uint8_t)((g.bytes[8] & 0x3f) | 0x80); /* variant of RFC 4122 */
    return g;
}

struct gfid gfid_for_new_inode(struct env *env)
{
    struct gfid g = gfid_random(env);
    uint64_t when = env_now_ns(env) >> 30; /* 1.07 s */
    uint64_t h = (when + (uint64_t)env_pid(env) * 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;

    g.bytes[0] = (uint8_t)(h >> 56);
    g.bytes[1] = (uint8_t)(h >> 48);
    return g;
}

static bool is_dash_before(size_t byte)
{
    return byte == 4 || byte == 6 || byte == 8 || byte == 10;
}

char *gfid_format(const struct gfid *g, char text[static GFID_TEXT_LEN + 1])
{
    static const char digits[] = "0123456789abcdef";
    char *p = text;

    for (size_t i = 0; i < 16; i++) {
        if (is_dash_before(i))
            *p++ = '-';
        *p++ = digits[g->bytes[i] >> 4];
        *p++ = digits[g->bytes[i] & 15];
    }
    *p = '\0';
    return text;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

int gfid_parse(const char *text, struct gfid *ret_gfid)
{
    struct gfid g;
    const char *p = text;

    for (size_t i = 0; i < 16; i++) {
        if (is_dash_before(i) && *p++ != '-')
            return -EINVAL;
        int high = hex_digit(p[0]);
        if (high < 0)
            return -EINVAL;
        int low = hex_digit(p[1]);
        if (low < 0)
            return -EINVAL;
        g.bytes[i] = (uint8_t)(high << 4 | low);
        p += 2;
    }
    if (*p != '\0')
        return -EINVAL;
    *ret_gfid = g;
    return 0;
}

uint64_t gfid_to_ino(const struct gfid *g)
{
    return gfid_is_null(g) ? UINT64_MAX : get_be64(g->bytes + 8);
}
