/* Supplementary groups of callers. The kernel's message carries uid and gid only; the rest is in /proc/PID/status, as
 * many as there are. They are kept for gid-timeout. A process may change its groups meanwhile: what it lost cannot be
 * used, for the kernel checks permissions as well; what it gained is found by the repetition in ask(). */
#include "mount/fuse/fuse_internal.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define GROUP_CACHE_MAX 4096 /* callers; all are dropped beyond that */
#define STATUS_MAX      (4u * 1024u * 1024u)
#define GROUPS_MAX      65536

struct caller {
    uint32_t pid, uid;
};

struct known {
    struct caller caller;
    struct groups *groups;
    uint64_t read_ns;
    UT_hash_handle hh;
};

struct group_cache {
    struct known *known;
};

struct group_cache *group_cache_new(void)
{
    return NEW(struct group_cache);
}

void groups_unref(struct groups *g)
{
    if (!g || --g->refs > 0)
        return;
    mem_free(g->list);
    mem_free(g);
}

static void drop_all(struct group_cache *c)
{
    struct known *k, *next;

    HASH_ITER(hh, c->known, k, next)
    {
        HASH_DEL(c->known, k);
        groups_unref(k->groups);
        mem_free(k);
    }
}

void group_cache_free(struct group_cache *c)
{
    if (!c)
        return;
    drop_all(c);
    mem_free(c);
}

/* The whole of /proc/PID/status as text. Returned. */
static int read_status(uint32_t pid, char **ret_text)
{
    char path[64];
    size_t room = 8192, used = 0;
    SCOPED_FREE char *text = mem_alloc(room);
    ssize_t n = 0;
    int fd;

    if (!text)
        return -ENOMEM;
    (void)snprintf(path, sizeof(path), "/proc/%u/status", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    while ((n = read(fd, text + used, room - 1 - used)) > 0) {
        used += (size_t)n;
        if (room - 1 - used >= 4096)
            continue;
        char *more = room < STATUS_MAX ? mem_realloc(text, room * 2) : NULL;
        if (!more)
            break;
        text = more;
        room *= 2;
    }
    (void)close(fd);
    if (n != 0)
        return n < 0 ? -EIO : -ENOMEM;
    text[used] = 0;
    *ret_text = take(text);
    return 0;
}

static uint32_t count_numbers(const char *at)
{
    uint32_t count = 0;

    for (; *at && *at != '\n'; at++)
        count += *at >= '0' && *at <= '9' && (at[1] < '0' || at[1] > '9');
    return MIN(count, (uint32_t)GROUPS_MAX);
}

static int read_groups(uint32_t pid, struct groups **ret_groups)
{
    SCOPED_FREE char *text = NULL;
    struct groups *g;
    char *at;
    int r = read_status(pid, &text);

    if (r < 0)
        return r;
    at = strstr(text, "\nGroups:");
    if (!at)
        return -EIO;
    at += strlen("\nGroups:");
    g = NEW(struct groups);
    if (!g)
        return -ENOMEM;
    g->refs = 1;
    g->count = count_numbers(at);
    g->list = mem_array(g->count ? g->count : 1, sizeof(g->list[0]));
    if (!g->list) {
        groups_unref(g);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < g->count; i++)
        g->list[i] = (uint32_t)strtoul(at, &at, 10);
    *ret_groups = g;
    return 0;
}

int groups_get(struct mount *m, uint32_t pid, uint32_t uid, bool fresh, struct groups **ret_groups)
{
    struct group_cache *c = m->group_cache;
    struct caller caller = { pid, uid };
    uint64_t now = env_now_ns(m->env), keep_ns = mount_options(m)->gid_timeout_s * 1000000000ull;
    struct groups *g = NULL;
    struct known *k = NULL;
    int r;

    HASH_FIND(hh, c->known, &caller, sizeof(caller), k); // NOLINT: the macro reads eight bytes, all of them are set
    if (k && !fresh && now - k->read_ns < keep_ns) {
        k->groups->refs++;
        *ret_groups = k->groups;
        return 0;
    }
    r = read_groups(pid, &g);
    if (r < 0)
        return r;
    m->count.group_reads++;
    if (!k && HASH_COUNT(c->known) >= GROUP_CACHE_MAX)
        drop_all(c);
    if (!k && (k = NEW(struct known))) {
        k->caller = caller;
        HASH_ADD(hh, c->known, caller, sizeof(k->caller), k);
    }
    if (k) {
        groups_unref(k->groups);
        k->groups = g;
        k->read_ns = now;
        g->refs++;
    }
    *ret_groups = g;
    return 0;
}

bool groups_equal(const struct groups *a, const struct groups *b)
{
    if (!a || !b)
        return a == b;
    return a->count == b->count && memcmp(a->list, b->list, a->count * sizeof(a->list[0])) == 0;
}

void groups_put_first(struct groups *g, uint32_t gid)
{
    for (uint32_t i = 1; i < g->count; i++) {
        if (g->list[i] != gid)
            continue;
        memmove(g->list + 1, g->list, i * sizeof(g->list[0]));
        g->list[0] = gid;
        return;
    }
}

bool thread_has_sigkill(uint32_t pid)
{
    static const char *const lines[] = { "\nSigPnd:", "\nShdPnd:" };
    SCOPED_FREE char *text = NULL;

    if (read_status(pid, &text) < 0 || !text)
        return true; /* it is gone */
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        const char *at = strstr(text, lines[i]);

        if (at && strtoull(at + strlen(lines[i]), NULL, 16) & (1u << (9 - 1)))
            return true;
    }
    return false;
}
