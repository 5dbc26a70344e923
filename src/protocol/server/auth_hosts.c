/* Host names in lists of addresses: looked up when a client comes, in the pool, for deciding (auth.c) must not wait. */
#include "core/mem.h"
#include "protocol/server/server_internal.h"
#include <arpa/inet.h>
#include <ctype.h>
#include <netdb.h>

#define NAMES_MAX     64 /* of one section; more are not looked up and so match nobody */
#define ADDRESSES_MAX 16 /* of one name */

/* A pool job: one name to numeric addresses. */
struct host_job {
    const char *name;
    char found[ADDRESSES_MAX][INET6_ADDRSTRLEN];
    unsigned count;
};

static void look_up(void *arg)
{
    struct host_job *job = arg;
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list = NULL;

    if (getaddrinfo(job->name, NULL, &hints, &list) != 0)
        return;
    for (struct addrinfo *a = list; a && job->count < ADDRESSES_MAX; a = a->ai_next) {
        if (getnameinfo(a->ai_addr, a->ai_addrlen, job->found[job->count], INET6_ADDRSTRLEN, NULL, 0, NI_NUMERICHOST) ==
            0)
            job->count++;
    }
    freeaddrinfo(list);
}

/* Letters, and neither a pattern nor an IPv6 address. */
static bool is_host_name(const char *text)
{
    bool has_letter = false;

    for (const char *c = text; *c; c++) {
        if (!isalnum((unsigned char)*c) && *c != '.' && *c != '-' && *c != '_')
            return false;
        has_letter |= isalpha((unsigned char)*c) != 0;
    }
    return has_letter;
}

/* "name/ADDRESS" in *hosts for each address of the name. */
static FIBER int add_name(struct env *env, const char *name, struct dict **hosts)
{
    SCOPED_FREE struct host_job *job = NEW(struct host_job);

    if (!job)
        return -ENOMEM;
    job->name = name;
    env_pool_run(env, look_up, job);
    for (unsigned i = 0; i < job->count; i++) {
        SCOPED_FREE char *key = mem_printf("%s/%s", name, job->found[i]);
        int r = key ? dict_put_uint(hosts, key, 1) : -ENOMEM;
        if (r < 0)
            return r;
    }
    return 0;
}

static FIBER int add_list(struct env *env, const char *list, struct dict **hosts)
{
    SCOPED_FREE char *copy = mem_strdup(list);
    char *save;
    int names = 0, r = copy ? 0 : -ENOMEM;

    for (char *name = copy ? strtok_r(copy, ",|() \t!", &save) : NULL; name && r == 0 && names < NAMES_MAX;
         name = strtok_r(NULL, ",|() \t!", &save)) {
        if (!is_host_name(name))
            continue;
        names++;
        r = add_name(env, name, hosts);
    }
    return r;
}

FIBER int auth_look_up(struct server *s, const char *brick, struct dict **ret_hosts)
{
    static const char *const kinds[] = { "addr", "ip" }, *const lists[] = { "allow", "reject" };
    SCOPED(dict_unref) struct dict *hosts = NULL;
    const char *list;

    for (size_t i = 0; i < 4; i++) {
        SCOPED_FREE char *key = mem_printf("auth.%s.%s.%s", kinds[i / 2], brick, lists[i % 2]);
        if (!key)
            return -ENOMEM;
        if (dict_get_str(s->me->options, key, &list) < 0)
            continue;
        SCOPED_FREE char *copy = mem_strdup(list); /* options may change while we wait */
        int r = copy ? add_list(s->me->env, copy, &hosts) : -ENOMEM;
        if (r < 0)
            return r;
    }
    *ret_hosts = take(hosts);
    return 0;
}
