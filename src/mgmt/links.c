/* Connections between machines: made, proven, kept. */
#include "mgmt/links.h"
#include "core/mem.h"
#include "rpc/programs.h"
#include <errno.h>
#include <fcntl.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PROOF_BYTES 32
#define NONCE_BYTES 16

/* ---- the secret ---- */

int secret_store(struct mortard *d, const uint8_t secret[static SECRET_BYTES], struct error *err)
{
    SCOPED_FREE char *path = work_path(d, "cluster-secret");
    SCOPED_FREE char *beside = work_path(d, "cluster-secret.new");
    int fd, r = 0;

    if (!path || !beside)
        return -ENOMEM;
    fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_set(err, -errno, "%s cannot be made: %s", beside, strerror(errno));
    errno = EIO;
    if (write(fd, secret, SECRET_BYTES) != SECRET_BYTES || fsync(fd) < 0)
        r = -errno;
    if (close(fd) < 0 && r == 0)
        r = -errno;
    if (r == 0 && rename(beside, path) < 0)
        r = -errno;
    if (r < 0)
        return error_set(err, r, "%s cannot be written: %s", path, strerror(-r));
    memcpy(d->secret, secret, SECRET_BYTES);
    return 0;
}

int secret_load(struct mortard *d, struct error *err)
{
    SCOPED_FREE char *path = work_path(d, "cluster-secret");
    uint8_t fresh[SECRET_BYTES];
    ssize_t n = 0;
    int fd;

    if (!path)
        return -ENOMEM;
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno != ENOENT)
        return error_set(err, -errno, "%s: %s", path, strerror(errno));
    if (fd >= 0) {
        n = read(fd, d->secret, SECRET_BYTES);
        (void)close(fd); /* only read */
        return n == SECRET_BYTES ? 0 : error_set(err, -EBADMSG, "%s: %d bytes are expected", path, SECRET_BYTES);
    }
    env_random(d->env, fresh, sizeof(fresh));
    return secret_store(d, fresh, err);
}

/* HMAC-SHA256 over who proves it to whom, and both nonces. */
static void make_proof(const struct mortard *d, const struct gfid *from, const uint8_t *from_nonce,
                       const uint8_t *to_nonce, uint8_t proof[static PROOF_BYTES])
{
    uint8_t text[16 + 2 * NONCE_BYTES];
    unsigned size;

    memcpy(text, from->bytes, 16);
    memcpy(text + 16, from_nonce, NONCE_BYTES);
    memcpy(text + 16 + NONCE_BYTES, to_nonce, NONCE_BYTES);
    (void)HMAC(EVP_sha256(), d->secret, SECRET_BYTES, text, sizeof(text), proof, &size);
}

static bool is_proof(const struct mortard *d, const struct gfid *from, const uint8_t *from_nonce,
                     const uint8_t *to_nonce, const uint8_t *proof)
{
    uint8_t wanted[PROOF_BYTES];

    make_proof(d, from, from_nonce, to_nonce, wanted);
    return CRYPTO_memcmp(wanted, proof, PROOF_BYTES) == 0;
}

/* ---- the side that is called ---- */

/* node, nonce -> node, nonce, proof */
void link_hello(struct connection *c, struct rpc_incoming *in)
{
    uint8_t proof[PROOF_BYTES];
    const uint8_t *node = xdr_get_bytes(&in->body, 16);
    const uint8_t *nonce = xdr_get_bytes(&in->body, NONCE_BYTES);
    struct xdr_out o;

    if (in->body.failed) {
        rpc_reply_error(in, RPC_ACCEPT_GARBAGE);
        return;
    }
    memcpy(c->claimed.bytes, node, 16);
    memcpy(c->their_nonce, nonce, NONCE_BYTES);
    env_random(c->d->env, c->my_nonce, NONCE_BYTES);
    make_proof(c->d, &c->d->node, c->my_nonce, c->their_nonce, proof);
    rpc_reply_begin(in, &o, 128);
    xdr_put_bytes(&o, c->d->node.bytes, 16);
    xdr_put_bytes(&o, c->my_nonce, NONCE_BYTES);
    xdr_put_bytes(&o, proof, PROOF_BYTES);
    rpc_reply_send(in, &o);
}

/* proof -> result */
void link_prove(struct connection *c, struct rpc_incoming *in)
{
    const uint8_t *proof = xdr_get_bytes(&in->body, PROOF_BYTES);
    struct xdr_out o;

    if (in->body.failed) {
        rpc_reply_error(in, RPC_ACCEPT_GARBAGE);
        return;
    }
    c->is_proven = is_proof(c->d, &c->claimed, c->their_nonce, c->my_nonce, proof);
    if (c->is_proven) {
        c->node_id = c->claimed;
        c->peer->reader.max_bytes = RECORD_MAX_BYTES;
        (void)waitq_wake_all(&c->d->state_changed, 0); /* those who wait for a connection */
    } else {
        LOG(env_log(c->d->env), LOG_WARNING, "mortard", "peer-refused",
            "node=%s: it does not know the cluster's secret", GFID_TEXT(&c->claimed));
    }
    rpc_reply_begin(in, &o, 64);
    xdr_put_u32(&o, c->is_proven ? 0 : EACCES);
    rpc_reply_send(in, &o);
}

void link_message(struct connection *c, struct rpc_incoming *in)
{
    size_t size_bytes;
    const void *message = xdr_get_opaque(&in->body, JSON_MAX_BYTES, &size_bytes);

    if (!in->body.failed && c->is_proven && c->d->consensus)
        consensus_receive(c->d->consensus, member_of(&c->node_id), GFID_TEXT(&c->node_id), message, size_bytes);
    rpc_incoming_free(in);
}

/* ---- the side that calls ---- */

static FIBER int open_stream(struct mortard *d, const char *host, struct scope *scope, struct stream **ret_stream)
{
    const struct stream_options options = {
        .keepalive_time_s = 10, .keepalive_interval_s = 2, .keepalive_count = 5, .user_timeout_s = 20
    };
    struct address *at = NEW(struct address);
    int r;

    if (!at)
        return -ENOMEM;
    at->family = ADDRESS_TCP;
    at->port = d->options->port;
    (void)snprintf(at->host, sizeof(at->host), "%s", host);
    r = stream_connect(d->env, at, &options, scope, ret_stream);
    mem_free(at);
    return r;
}

static FIBER int call_hello(struct connection *c, struct gfid *ret_node, uint8_t their_nonce[static NONCE_BYTES],
                            struct scope *scope)
{
    struct rpc_call *call = NEW(struct rpc_call);
    uint8_t nonce[NONCE_BYTES];
    struct xdr_out o;
    int r;

    if (!call)
        return -ENOMEM;
    env_random(c->d->env, nonce, sizeof(nonce));
    rpc_call_begin(c->peer, call, &o, PROGRAM_MGMT, MGMT_VERSION, MGMT_HELLO, NULL);
    xdr_put_bytes(&o, c->d->node.bytes, 16);
    xdr_put_bytes(&o, nonce, NONCE_BYTES);
    r = rpc_peer_call(c->peer, call, &o, scope);
    if (r == 0) {
        const uint8_t *node = xdr_get_bytes(&call->body, 16);
        const uint8_t *theirs = xdr_get_bytes(&call->body, NONCE_BYTES);
        const uint8_t *proof = xdr_get_bytes(&call->body, PROOF_BYTES);

        if (call->body.failed) {
            r = -EBADMSG;
        } else {
            memcpy(ret_node->bytes, node, 16);
            memcpy(their_nonce, theirs, NONCE_BYTES);
            r = is_proof(c->d, ret_node, theirs, nonce, proof) ? 0 : -EACCES;
        }
        memcpy(c->my_nonce, nonce, NONCE_BYTES);
    }
    rpc_call_done(call);
    mem_free(call);
    return r;
}

static FIBER int call_prove(struct connection *c, const uint8_t *their_nonce, struct scope *scope)
{
    struct rpc_call *call = NEW(struct rpc_call);
    uint8_t proof[PROOF_BYTES];
    struct xdr_out o;
    int r;

    if (!call)
        return -ENOMEM;
    make_proof(c->d, &c->d->node, c->my_nonce, their_nonce, proof);
    rpc_call_begin(c->peer, call, &o, PROGRAM_MGMT, MGMT_VERSION, MGMT_PROVE, NULL);
    xdr_put_bytes(&o, proof, PROOF_BYTES);
    r = rpc_peer_call(c->peer, call, &o, scope);
    if (r == 0 && (xdr_get_u32(&call->body) != 0 || call->body.failed))
        r = -EACCES;
    rpc_call_done(call);
    mem_free(call);
    return r;
}

/* Connects, and both sides prove themselves. 0, or -errno. */
static FIBER int connect_to(struct mortard *d, const char *host, const struct gfid *wanted)
{
    uint8_t their_nonce[NONCE_BYTES] = { 0 };
    struct stream *stream = NULL;
    struct connection *c;
    struct gfid node;
    struct scope scope;
    int r;

    scope_init(&scope, env_deadline_ms(d->env, LINK_CONNECT_MS));
    r = open_stream(d, host, &scope, &stream);
    c = r == 0 ? connection_new(d, stream) : NULL;
    if (r == 0 && !c)
        r = -ENOMEM;
    if (r == 0) {
        c->under_way++; /* it stays until we are done with it */
        r = call_hello(c, &node, their_nonce, &scope);
        if (r == 0 && !gfid_equal(&node, wanted))
            r = -ENOENT; /* another machine has that name now */
        r = r < 0 ? r : call_prove(c, their_nonce, &scope);
        if (r == 0) {
            c->node_id = node;
            c->is_proven = true;
            c->peer->reader.max_bytes = RECORD_MAX_BYTES;
            (void)waitq_wake_all(&d->state_changed, 0); /* those who wait for a connection */
        } else {
            rpc_peer_disconnect(c->peer, r);
        }
        c->under_way--;
        (void)waitq_wake_all(&d->connection_ended, 0); /* on_closed may wait */
    }
    scope_done(&scope);
    return r;
}

struct connection *link_find(const struct mortard *d, const struct gfid *node)
{
    struct connection *c;

    list_for_each (c, &d->connections, node) {
        if (c->is_proven && !c->peer->is_closing && gfid_equal(&c->node_id, node))
            return c;
    }
    return NULL;
}

void link_send(struct mortard *d, uint64_t member, const void *message, size_t size_bytes)
{
    struct connection *c;
    struct xdr_out o;

    list_for_each (c, &d->connections, node) {
        if (!c->is_proven || c->peer->is_closing || member_of(&c->node_id) != member)
            continue;
        rpc_oneway_begin(c->peer, &o, PROGRAM_MGMT, MGMT_VERSION, MGMT_MESSAGE);
        xdr_put_opaque(&o, message, size_bytes);
        (void)rpc_peer_send(c->peer, &o); /* lost ones do no harm */
        return;
    }
}

/* ---- keeping them ---- */

struct attempt {
    struct mortard *d;
    struct gfid node;
    char *names[NODE_NAMES_MAX];
    unsigned name_count;
};

static FIBER void try_names(void *arg)
{
    struct attempt *a = arg;
    struct mortard *d = a->d;

    for (unsigned i = 0; i < a->name_count && !d->is_stopping && !link_find(d, &a->node); i++)
        (void)connect_to(d, a->names[i], &a->node); /* tried again in a while */
    for (unsigned i = 0; i < a->name_count; i++)
        mem_free(a->names[i]);
    mem_free(a);
    d->attempts--;
    (void)waitq_wake_all(&d->links_wanted, 0); /* keep_links waits for all of them */
}

static void begin_attempt(struct mortard *d, const struct node *n)
{
    struct attempt *a = NEW(struct attempt);

    if (!a)
        return; /* no memory: the next round */
    a->d = d;
    a->node = n->id;
    for (unsigned i = 0; i < n->name_count; i++) {
        a->names[a->name_count] = mem_strdup(n->names[i]);
        a->name_count += a->names[a->name_count] != NULL;
    }
    if (fiber_spawn(d->env, "link", try_names, a) < 0) {
        for (unsigned i = 0; i < a->name_count; i++)
            mem_free(a->names[i]);
        mem_free(a);
        return;
    }
    d->attempts++;
}

static FIBER void keep_links(void *arg)
{
    struct mortard *d = arg;

    while (!d->is_stopping) {
        struct scope pause;

        for (unsigned i = 0; i < d->cluster->node_count; i++) {
            const struct node *n = &d->cluster->nodes[i];

            if (!gfid_equal(&n->id, &d->node) && !link_find(d, &n->id))
                begin_attempt(d, n);
        }
        while (d->attempts > 0)
            (void)waitq_wait(&d->links_wanted, NULL);
        scope_init(&pause, env_deadline_ms(d->env, LINK_RETRY_MS));
        if (!d->is_stopping)
            (void)waitq_wait(&d->links_wanted, &pause); /* or it is time */
        scope_done(&pause);
    }
    d->is_linking = false;
    (void)waitq_wake_all(&d->connection_ended, 0); /* server_close waits */
}

void links_start(struct mortard *d)
{
    d->is_linking = fiber_spawn(d->env, "links", keep_links, d) == 0;
}

void links_look(struct mortard *d)
{
    (void)waitq_wake_all(&d->links_wanted, 0); /* or it is at work */
}

/* ---- questions ---- */

static FIBER int ask_over(struct rpc_peer *peer, const json_t *question, struct scope *scope, json_t **ret_answer)
{
    char *text = json_dumps(question, JSON_COMPACT);
    struct rpc_call *call = NEW(struct rpc_call);
    struct xdr_out o;
    int r = -ENOMEM;

    if (text && call) {
        rpc_call_begin(peer, call, &o, PROGRAM_MGMT, MGMT_VERSION, MGMT_ASK, NULL);
        xdr_put_opaque(&o, text, strlen(text));
        r = rpc_peer_call(peer, call, &o, scope);
        if (r == 0) {
            size_t size_bytes;
            const void *data = xdr_get_opaque(&call->body, JSON_MAX_BYTES, &size_bytes);

            *ret_answer = call->body.failed ? NULL : json_loadb(data, size_bytes, 0, NULL);
            r = *ret_answer ? 0 : -EBADMSG;
        }
        rpc_call_done(call);
    }
    mem_free(call);
    free(text);
    return r;
}

FIBER int link_ask(struct mortard *d, const struct gfid *node, const json_t *question, json_t **ret_answer)
{
    struct connection *c = link_find(d, node);
    struct scope scope;
    int r;

    if (!c)
        return -ENOTCONN;
    c->under_way++;
    scope_init(&scope, env_deadline_ms(d->env, NODE_ANSWER_MS));
    r = ask_over(c->peer, question, &scope, ret_answer);
    scope_done(&scope);
    c->under_way--;
    (void)waitq_wake_all(&d->connection_ended, 0); /* on_closed may wait */
    return r;
}

FIBER int link_ask_change(struct mortard *d, const struct gfid *leader, const json_t *change, json_t **ret_answer)
{
    json_t *question = json_pack("{s:s, s:O}", "ask", "change", "change", change);
    json_t *answer = NULL;
    int r = question ? link_ask(d, leader, question, &answer) : -ENOMEM;

    json_decref(question);
    if (r == 0 && json_integer_value(json_object_get(answer, "ret")) == -EAGAIN) {
        json_decref(answer);
        return -EAGAIN;
    }
    if (r == 0)
        *ret_answer = answer;
    return r;
}

FIBER int link_ask_stranger(struct mortard *d, const char *host, const json_t *question, json_t **ret_answer)
{
    struct stream *stream = NULL;
    struct connection *c;
    struct scope scope;
    int r;

    scope_init(&scope, env_deadline_ms(d->env, NODE_ANSWER_MS));
    r = open_stream(d, host, &scope, &stream);
    c = r == 0 ? connection_new(d, stream) : NULL;
    if (r == 0 && !c)
        r = -ENOMEM;
    if (r == 0) {
        c->under_way++;
        r = ask_over(c->peer, question, &scope, ret_answer);
        rpc_peer_disconnect(c->peer, 0);
        c->under_way--;
        (void)waitq_wake_all(&d->connection_ended, 0); /* on_closed may wait */
    }
    scope_done(&scope);
    return r;
}
