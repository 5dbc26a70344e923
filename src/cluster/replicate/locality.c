/* cluster/replicate/locality.c - which children are on this host, so that reads need not cross the network.
 *
 * The volume file says it when it names a unix socket, this host or its loop back, or when no network lies between us
 * and the storage (a brick that replicates itself). Otherwise the brick is asked where its files are.
 */
#include "cluster/replicate/replicate_internal.h"
#include "core/mem.h"
#include "graph/graph.h"

#define PATHINFO       "trusted.glusterfs.pathinfo"
#define ASK_TIMEOUT_MS 10000

static const char *text_option(const struct translator *t, const char *key)
{
    const char *text;

    return dict_get_str(t->options, key, &text) == 0 ? text : NULL;
}

static bool is_this_host(struct env *env, const char *host)
{
    return strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0 ||
           strcmp(host, env_host_name(env)) == 0;
}

enum where { WHERE_HERE, WHERE_ELSEWHERE_OR_UNKNOWN };

static enum where by_volume_file(struct translator *child)
{
    for (; child; child = child->child_count ? child->children[0] : NULL) {
        const char *host, *transport;

        if (strcmp(child->class->type, "protocol/client") != 0)
            continue;
        host = text_option(child, "remote-host");
        transport = text_option(child, "transport-type");
        if ((transport && strcmp(transport, "unix") == 0) || text_option(child, "transport.socket.connect-path"))
            return WHERE_HERE;
        return host && is_this_host(child->env, host) ? WHERE_HERE : WHERE_ELSEWHERE_OR_UNKNOWN;
    }
    return WHERE_HERE;
}

/* "<POSIX(/bricks/1):host:/bricks/1/file>": is it our host? */
static bool pathinfo_names_us(struct env *env, const char *text)
{
    const char *host = strstr(text, "):");
    size_t len;

    if (!host)
        return false;
    host += 2;
    len = strcspn(host, ":>");
    return len == strlen(env_host_name(env)) && strncmp(host, env_host_name(env), len) == 0;
}

struct question {
    struct translator *me;
    unsigned child;
    uint32_t epoch;
};

static FIBER void ask(struct question *question, struct reply *r)
{
    struct translator *me = question->me;
    struct child *c = &replicate_of(me)->child[question->child];
    SCOPED(inode_unref) struct inode *root = inode_table_get(me->graph, &gfid_root, S_IFDIR);
    struct call call;
    const char *text;

    if (!root)
        return;
    call_init(&call, me->graph);
    call.scope.deadline_ns = env_deadline_ms(me->env, ASK_TIMEOUT_MS);
    if (child_getxattr(me, question->child, &call, root, NULL, PATHINFO, r) >= 0 && c->epoch == question->epoch &&
        dict_get_str(r->xattrs, PATHINFO, &text) == 0)
        c->is_local = pathinfo_names_us(me->env, text);
    call_done(&call);
}

static FIBER void asking_fiber(void *arg)
{
    struct question *question = arg;
    struct translator *me = question->me;
    struct reply *r = reply_new();

    if (r)
        ask(question, r);
    reply_free(r);
    mem_free(question);
    replicate_fiber_ended(me);
}

void locality_find(struct translator *me, unsigned child)
{
    struct replicate *s = replicate_of(me);
    struct question *question;

    s->child[child].is_local = by_volume_file(me->children[child]) == WHERE_HERE;
    if (s->child[child].is_local || !s->choose_local || s->is_stopping)
        return;
    question = NEW(struct question);
    if (!question)
        return;
    *question = (struct question) { .me = me, .child = child, .epoch = s->child[child].epoch };
    if (replicate_spawn(me, "locality", asking_fiber, question) < 0)
        mem_free(question); /* then it counts as far away */
}
