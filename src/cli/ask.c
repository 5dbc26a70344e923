/* One request over the daemon's socket. */
#include "cli/cli.h"
#include "core/env_real.h"
#include "core/log.h"
#include "core/mem.h"
#include "rpc/peer.h"
#include "rpc/programs.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define ANSWER_MAX_BYTES (64 * 1024 * 1024)

struct ask {
    struct env *env;
    const struct cli *cli;
    const json_t *request;
    json_t *answer;
    int ret;
    struct error *err;
    bool is_closed;
    struct waitq closed;
};

static void on_call(void *arg, struct rpc_incoming *in)
{
    (void)arg;
    rpc_incoming_free(in);
}

static FIBER void on_closed(void *arg, int err)
{
    struct ask *a = arg;

    (void)err;
    a->is_closed = true;
    (void)waitq_wake_all(&a->closed, 0); /* finish waits, or will see it */
}

static int take_answer(struct ask *a, struct rpc_call *c)
{
    size_t size_bytes;
    const void *text = xdr_get_opaque(&c->body, ANSWER_MAX_BYTES, &size_bytes);

    a->answer = c->body.failed ? NULL : json_loadb(text, size_bytes, 0, NULL);
    return a->answer ? 0 : error_set(a->err, -EBADMSG, "the daemon's answer cannot be read");
}

static FIBER int call(struct ask *a, struct rpc_peer *peer, struct scope *scope)
{
    char *text = json_dumps(a->request, JSON_COMPACT);
    struct rpc_call *c = NEW(struct rpc_call);
    struct xdr_out o;
    int r = -ENOMEM;

    if (text && c) {
        rpc_call_begin(peer, c, &o, PROGRAM_MGMT, MGMT_VERSION, MGMT_COMMAND, NULL);
        xdr_put_opaque(&o, text, strlen(text));
        r = rpc_peer_call(peer, c, &o, scope);
        r = r == -ETIMEDOUT ? error_set(a->err, r, "Error : Request timed out")
            : r < 0         ? error_set(a->err, r, "Connection failed. Please check if gluster daemon is operational.")
                            : take_answer(a, c);
        rpc_call_done(c);
    }
    mem_free(c);
    free(text);
    return r;
}

static FIBER void ask(void *arg)
{
    const struct rpc_handlers handlers = { .on_call = on_call, .on_closed = on_closed };
    const struct stream_options options = { 0 };
    struct ask *a = arg;
    struct address *at = NEW(struct address);
    struct stream *stream = NULL;
    struct rpc_peer *peer;
    struct scope scope;

    scope_init(&scope, env_deadline_ms(a->env, (uint64_t)a->cli->timeout_s * 1000));
    a->ret = -ENOMEM;
    if (at) {
        at->family = ADDRESS_UNIX;
        (void)snprintf(at->path, sizeof(at->path), "%s", a->cli->socket_path);
        a->ret = stream_connect(a->env, at, &options, &scope, &stream);
        mem_free(at);
    }
    if (a->ret < 0) {
        (void)error_set(a->err, a->ret, "Connection failed. Please check if gluster daemon is operational.");
        scope_done(&scope);
        return;
    }
    peer = rpc_peer_new(a->env, stream, &handlers, a);
    if (peer) {
        peer->reader.max_bytes = RECORD_MAX_BYTES;
        a->ret = call(a, peer, &scope);
        rpc_peer_disconnect(peer, 0);
        while (!a->is_closed)
            (void)waitq_wait(&a->closed, NULL);
        rpc_peer_unref(peer);
    } else {
        stream_close(stream);
        a->ret = -ENOMEM;
    }
    scope_done(&scope);
}

int ask_daemon(const struct cli *cli, const json_t *request, json_t **ret_answer, struct error *err)
{
    struct ask a = { .cli = cli, .request = request, .err = err };

    a.env = env_real_new(log_discard(), 1);
    if (!a.env)
        return error_set(err, -ENOMEM, "out of memory");
    waitq_init(&a.closed);
    env_real_run_fiber(a.env, ask, &a);
    env_real_free(a.env);
    if (a.ret == 0)
        *ret_answer = a.answer;
    return a.ret;
}
