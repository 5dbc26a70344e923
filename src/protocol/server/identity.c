/* As whom a request is done on this host: squashing, and groups looked up here (manage-gids). */
#include "core/mem.h"
#include "protocol/server/host_groups_internal.h"
#include "protocol/server/server_internal.h"

#define CACHE_SLOTS 256

/* Groups of one user as this host sees them; one slot per uid modulo CACHE_SLOTS. */
struct cached_groups {
    bool is_set;
    uint32_t uid;
    uint64_t until_ns;
    uint32_t *list;
    uint32_t count;
};

struct groups_cache {
    struct cached_groups slots[CACHE_SLOTS];
};

struct groups_cache *groups_cache_new(void)
{
    return NEW(struct groups_cache);
}

void groups_cache_free(struct groups_cache *cache)
{
    for (size_t i = 0; cache && i < CACHE_SLOTS; i++)
        mem_free(cache->slots[i].list);
    mem_free(cache);
}

static FIBER void groups_of_host(struct connection *c, struct call *call)
{
    struct server *s = c->s;
    struct env *env = s->me->env;
    struct cached_groups *slot = &s->groups->slots[call->uid % CACHE_SLOTS];

    if (!slot->is_set || slot->uid != call->uid || env_now_ns(env) > slot->until_ns) {
        struct host_groups job = { .uid = call->uid };
        env_pool_run(env, host_groups_look_up, &job);
        mem_free(slot->list);
        *slot = (struct cached_groups) { .is_set = true,
                                         .uid = call->uid,
                                         .until_ns = env_deadline_ms(env, s->gid_timeout_s * 1000ull),
                                         .list = job.list,
                                         .count = job.count > 0 ? (uint32_t)job.count : 0 };
    }
    call->groups = slot->list;
    call->group_count = slot->count;
    /* The slot may change while the call waits; without memory it goes without groups. */
    if (call_own_groups(call) < 0)
        call->group_count = 0;
}

/* Internal clients of those who authenticated by name keep their powers (docs/protocol.md "pids with a meaning"). */
static bool is_exempt(const struct connection *c, int32_t pid)
{
    return c->is_trusted && (pid == -1 || pid == -3 || pid == -4 || pid == -5 || pid == -6);
}

FIBER void identity_call(struct connection *c, const struct rpc_cred *cred, struct call *call)
{
    struct server *s = c->s;

    call_init(call, s->me->graph);
    rpc_cred_to_call(cred, call);
    call->client = c->client;
    bool is_squashed = (s->squashes_all || (s->squashes_root && call->uid == 0)) && !is_exempt(c, call->pid);
    if (is_squashed) {
        call->uid = s->anonuid;
        call->gid = s->anongid;
        call->group_count = 0;
    } else if (s->squashes_root && call->gid == 0 && !is_exempt(c, call->pid)) {
        call->gid = s->anongid;
    }
    if (s->manages_gids && !is_squashed && call->uid != 0)
        groups_of_host(c, call);
}
