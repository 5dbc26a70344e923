/* What the heal daemon says over its socket, and the commands that only show it. */
#include "core/mem.h"
#include "mortarheal/commands.h"
#include "rpc/control.h"
#include "rpc/peer.h"
#include "rpc/programs.h"
#include "rpc/rpcgen_bridge.h"
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#define ANSWER_MS 10000

struct asking {
    bool is_closed;
    struct waitq closed;
};

static void refuse(void *arg, struct rpc_incoming *in)
{
    rpc_reply_error(in, RPC_ACCEPT_NO_PROGRAM);
}

static FIBER void on_closed(void *arg, int err)
{
    struct asking *a = arg;

    a->is_closed = true;
    (void)waitq_wake_all(&a->closed, 0);
}

static FIBER int ask_peer(struct rpc_peer *peer, const char *verb, struct scope *scope, struct dict **ret_answer,
                          struct error *err)
{
    struct rpc_call *c = NEW(struct rpc_call);
    SCOPED(dict_unref) struct dict *d = NULL;
    const char *sentence = "";
    struct xdr_out o;
    int r;

    if (!c)
        return -ENOMEM;
    rpc_call_begin(peer, c, &o, PROGRAM_MORTAR, MORTAR_PROGRAM_VERSION, MORTAR_CONTROL, NULL);
    xdr_put_string(&o, verb);
    xdr_put_string(&o, "");
    r = rpc_peer_call(peer, c, &o, scope);
    if (r == 0) {
        int32_t ret = (int32_t)xdr_get_u32(&c->body);
        uint32_t number = xdr_get_u32(&c->body);

        xdr_get_odict_opaque(&c->body, CONTROL_ANSWER_BYTES, &d);
        r = c->body.failed ? -EBADMSG : ret < 0 ? -(int)MIN(number, 4095u) : 0;
    }
    rpc_call_done(c);
    mem_free(c);
    if (r < 0 && dict_get_str(d, "error", &sentence) == 0)
        return error_set(err, r, "%s", sentence);
    if (r == 0)
        *ret_answer = take(d);
    return r;
}

FIBER int daemon_ask(struct env *env, const struct args *args, const char *verb, struct dict **ret_answer,
                     struct error *err)
{
    const struct rpc_handlers handlers = { .on_call = refuse, .on_closed = on_closed };
    const struct stream_options options = { 0 };
    struct address *to = NEW(struct address);
    struct asking a = { false };
    struct rpc_peer *peer;
    struct stream *stream = NULL;
    struct scope scope;
    int r;

    if (!to)
        return -ENOMEM;
    to->family = ADDRESS_UNIX;
    (void)snprintf(to->path, sizeof(to->path), "%s", args->socket);
    scope_init(&scope, env_deadline_ms(env, ANSWER_MS));
    waitq_init(&a.closed);
    r = stream_connect(env, to, &options, &scope, &stream);
    mem_free(to);
    peer = r == 0 ? rpc_peer_new(env, stream, &handlers, &a) : NULL;
    if (r == 0 && !peer) {
        stream_close(stream);
        r = -ENOMEM;
    }
    if (peer) {
        peer->reader.max_bytes = CONTROL_ANSWER_BYTES;
        r = ask_peer(peer, verb, &scope, ret_answer, err);
        rpc_peer_disconnect(peer, 0);
        while (!a.is_closed)
            (void)waitq_wait(&a.closed, NULL); /* a connection that was ended always closes */
        rpc_peer_unref(peer);
    }
    scope_done(&scope);
    if (r < 0 && err && !err->text[0])
        return error_set(err, r,
                         "the heal daemon does not answer at %s: %s; start it with --socket-file, or name its socket "
                         "with --socket",
                         args->socket, strerror(-r));
    return r;
}

int64_t answer_number(const struct dict *d, int64_t otherwise, const char *fmt, ...)
{
    char key[128];
    va_list list;

    va_start(list, fmt);
    (void)vsnprintf(key, sizeof(key), fmt, list);
    va_end(list);
    (void)dict_get_int(d, key, &otherwise); /* stays when absent */
    return otherwise;
}

const char *answer_text(const struct dict *d, const char *fmt, ...)
{
    const char *text = "";
    char key[128];
    va_list list;

    va_start(list, fmt);
    (void)vsnprintf(key, sizeof(key), fmt, list);
    va_end(list);
    (void)dict_get_str(d, key, &text); /* stays "" when absent */
    return text;
}

/* ---- statistics ---- */

static const char *when(int64_t seconds, char text[static 32])
{
    time_t t = (time_t)seconds;
    struct tm tm;

    if (!localtime_r(&t, &tm) || !strftime(text, 32, "%a %b %e %H:%M:%S %Y", &tm))
        (void)snprintf(text, 32, "%lld", (long long)seconds);
    return text;
}

static void show_crawl(const struct dict *d, int64_t set, int64_t brick, int64_t n)
{
    int64_t end = answer_number(d, 0, "%lld.%lld.%lld.end", (long long)set, (long long)brick, (long long)n);
    char text[32];

    printf("\nStarting time of crawl: %s\n",
           when(answer_number(d, 0, "%lld.%lld.%lld.start", (long long)set, (long long)brick, (long long)n), text));
    if (end)
        printf("\nEnding time of crawl: %s\n", when(end, text));
    else
        printf("\nCrawl is in progress\n");
    printf("\nType of crawl: %s\nNo. of entries healed: %lld\nNo. of entries in split-brain: %lld\n"
           "No. of heal failed entries: %lld\n",
           answer_text(d, "%lld.%lld.%lld.type", (long long)set, (long long)brick, (long long)n),
           (long long)answer_number(d, 0, "%lld.%lld.%lld.healed", (long long)set, (long long)brick, (long long)n),
           (long long)answer_number(d, 0, "%lld.%lld.%lld.split", (long long)set, (long long)brick, (long long)n),
           (long long)answer_number(d, 0, "%lld.%lld.%lld.failed", (long long)set, (long long)brick, (long long)n));
}

static const char dashes[] = "------------------------------------------------";

static const char *volume_of(const struct args *args, const struct dict *d, char text[static 256])
{
    const char *name = answer_text(d, "0.name"), *dash = strstr(name, "-replicate-");

    (void)snprintf(text, 256, "%.*s", dash ? (int)(dash - name) : (int)strlen(name), name);
    if (!text[0] && args->c.volfile_id)
        (void)snprintf(text, 256, "%s", args->c.volfile_id);
    return text;
}

FIBER int statistics_run(struct env *env, struct args *args)
{
    SCOPED(dict_unref) struct dict *d = NULL;
    struct error err = { "" };
    char volume[256];
    int64_t number = 0;
    int r = daemon_ask(env, args, "heal-status", &d, &err);

    if (r < 0) {
        (void)fprintf(stderr, "mortar-heal: %s\n", err.text);
        return exit_of(r);
    }
    printf("Gathering crawl statistics on volume %s has been successful \n%s\n", volume_of(args, d, volume), dashes);
    for (int64_t set = 0; set < answer_number(d, 0, "sets"); set++) {
        for (int64_t b = 0; b < answer_number(d, 0, "%lld.bricks", (long long)set); b++) {
            printf("\nCrawl statistics for brick no %lld\nHostname of brick %s\n", (long long)number++,
                   answer_text(d, "%lld.%lld.host", (long long)set, (long long)b));
            for (int64_t n = 0; n < answer_number(d, 0, "%lld.%lld.crawls", (long long)set, (long long)b); n++)
                show_crawl(d, set, b, n);
            printf("%s\n", dashes);
        }
    }
    return 0;
}

/* ---- status ---- */

static void show_brick(const struct dict *d, long long set, long long b)
{
    char left[32] = "-";
    int64_t left_s = answer_number(d, -1, "%lld.%lld.left", set, b);

    if (left_s >= 0)
        (void)snprintf(left, sizeof(left), "%lld:%02lld", (long long)left_s / 60, (long long)left_s % 60);
    printf("%-28.28s %-4s %9lld %9lld %7lld %6lld %11.1f %8lld %8s\n", answer_text(d, "%lld.%lld.name", set, b),
           answer_number(d, 0, "%lld.%lld.up", set, b) ? "yes" : "no",
           (long long)answer_number(d, 0, "%lld.%lld.found", set, b),
           (long long)answer_number(d, 0, "%lld.%lld.healed", set, b),
           (long long)answer_number(d, 0, "%lld.%lld.failed", set, b),
           (long long)answer_number(d, 0, "%lld.%lld.split", set, b),
           (double)answer_number(d, 0, "%lld.%lld.copied", set, b) / 1e6,
           (long long)answer_number(d, 0, "%lld.%lld.rate", set, b), left);
}

static void show_troubles(const struct dict *d, long long set)
{
    long long count = answer_number(d, 0, "%lld.troubles", set);
    char text[32];

    if (count)
        printf("\nCannot be healed now:\n");
    for (long long i = 0; i < count; i++) {
        const char *path = answer_text(d, "%lld.t.%lld.path", set, i);

        printf("  %s%s%s: %s%s%s%s%s, since %s, tried %lld times\n",
               *path ? path : "<gfid:", *path ? "" : answer_text(d, "%lld.t.%lld.gfid", set, i), *path ? "" : ">",
               answer_text(d, "%lld.t.%lld.why", set, i), *answer_text(d, "%lld.t.%lld.brick", set, i) ? " on " : "",
               answer_text(d, "%lld.t.%lld.brick", set, i), *answer_text(d, "%lld.t.%lld.err", set, i) ? ", " : "",
               answer_text(d, "%lld.t.%lld.err", set, i), when(answer_number(d, 0, "%lld.t.%lld.since", set, i), text),
               (long long)answer_number(d, 0, "%lld.t.%lld.tries", set, i));
    }
    if (answer_number(d, 0, "%lld.troubles-in-all", set) > count)
        printf("  ... and %lld more\n", (long long)answer_number(d, 0, "%lld.troubles-in-all", set) - count);
}

FIBER int status_run(struct env *env, struct args *args)
{
    SCOPED(dict_unref) struct dict *d = NULL;
    struct error err = { "" };
    int r = daemon_ask(env, args, "heal-status", &d, &err);

    if (r < 0) {
        (void)fprintf(stderr, "mortar-heal: %s\n", err.text);
        return exit_of(r);
    }
    for (long long set = 0; set < answer_number(d, 0, "sets"); set++) {
        printf("%s%s: %s, %lld heals run, %lld wait, %lld healed since the start\n", set ? "\n" : "",
               answer_text(d, "%lld.name", set), answer_text(d, "%lld.state", set),
               (long long)answer_number(d, 0, "%lld.running", set), (long long)answer_number(d, 0, "%lld.waiting", set),
               (long long)answer_number(d, 0, "%lld.healed", set));
        printf("%-28s %-4s %9s %9s %7s %6s %11s %8s %8s\n", "Last crawl of brick", "Up", "Found", "Healed", "Failed",
               "Split", "MB copied", "Per s", "Left");
        for (long long b = 0; b < answer_number(d, 0, "%lld.bricks", set); b++)
            show_brick(d, set, b);
        show_troubles(d, set);
    }
    return 0;
}
