/* Several operations in one message: rpc/compound.h. */
#include "core/mem.h"
#include "protocol/server/server_internal.h"

struct compound {
    struct connection *c;
    struct rpc_incoming *in;
    struct call call;
    uint32_t *groups;
    uint32_t step_count, done;
    int64_t opened[COMPOUND_STEPS_MAX]; /* descriptor numbers that steps opened, else -1 */
    struct xdr_out steps;               /* answers so far */
    struct changes changes;
};

/* Groups and the number of steps. */
static int get_head(struct compound *k, struct xdr_in *in)
{
    k->in->is_lazy = xdr_get_u32(in) & COMPOUND_LAZY;
    uint32_t count = xdr_get_u32(in);
    if (in->failed || count > COMPOUND_GROUPS_MAX || count > xdr_left(in) / 4)
        return -EBADMSG;
    if (count > 0) {
        k->groups = mem_array(count, sizeof(uint32_t));
        if (!k->groups)
            return -ENOMEM;
    }
    for (uint32_t i = 0; i < count; i++)
        k->groups[i] = xdr_get_u32(in);
    /* A squashed user has none, and manage-gids knows better. */
    if (count > 0 && k->call.uid != 0 && k->call.uid != k->c->s->anonuid && !k->c->s->manages_gids) {
        k->call.groups = k->groups;
        k->call.group_count = count;
    }
    k->step_count = xdr_get_u32(in);
    return in->failed || k->step_count > COMPOUND_STEPS_MAX ? -EBADMSG : 0;
}

static int translate(const struct compound *k, int64_t number, int64_t *ret_number)
{
    *ret_number = number;
    if (!FD_IS_OF_STEP(number))
        return 0;
    uint32_t step = FD_STEP_OF(number);
    if (step >= k->done || k->opened[step] < 0)
        return -EBADF;
    *ret_number = k->opened[step];
    return 0;
}

/* -EBADMSG: the message cannot be read; else the step's result. */
static FIBER int one_step(struct compound *k, struct xdr_in *in)
{
    SCOPED_FREE struct step *st = NEW(struct step);
    uint32_t proc = xdr_get_u32(in), number = k->done;

    if (!st)
        return -ENOMEM;
    if (in->failed || fop_get_request(in, proc, NULL, true, &st->w) < 0)
        return -EBADMSG;
    if (step_may_wait(&st->w))
        rpc_incoming_uncount(k->in);
    int r = translate(k, st->w.fd, &st->translated);
    if (r == 0)
        r = translate(k, st->w.fd2, &st->translated2);
    if (r == 0)
        r = step_run(k->c, &k->call, st);
    interest_end(k->c, st, r, &k->changes);
    k->done++;
    k->opened[number] = r >= 0 && (proc == FOP_OPEN || proc == FOP_OPENDIR || proc == FOP_CREATE) ? st->number : -1;
    xdr_put_u32(&k->steps, proc);
    step_put_answer(k->c, &k->steps, st, r, true);
    step_done(st);
    return r;
}

static void answer(struct compound *k, struct rpc_incoming *in, int result)
{
    struct xdr_out o;

    rpc_reply_begin(in, &o, 64 + k->steps.size);
    xdr_put_u32(&o, result < 0 ? (uint32_t)-1 : 0);
    xdr_put_u32(&o, result < 0 ? (uint32_t)-result : 0);
    xdr_put_u32(&o, k->done);
    xdr_append(&o, &k->steps);
    rpc_reply_send(in, &o);
}

FIBER void serve_compound(struct connection *c, struct rpc_incoming *in)
{
    SCOPED_FREE struct compound *k = NEW(struct compound);

    if (!k || in->head.procedure != MORTAR_COMPOUND) {
        rpc_reply_error(in, k ? RPC_ACCEPT_NO_PROCEDURE : RPC_ACCEPT_SYSTEM);
        return;
    }
    k->c = c;
    k->in = in;
    xdr_out_init(&k->steps, 1024);
    identity_call(c, &in->head.cred, &k->call);
    int r = get_head(k, &in->body);
    while (r >= 0 && k->done < k->step_count)
        r = one_step(k, &in->body);
    interest_tell(c, &k->changes);
    if (r == -EBADMSG || r == -ENOMEM)
        rpc_reply_error(in, r == -ENOMEM ? RPC_ACCEPT_SYSTEM : RPC_ACCEPT_GARBAGE);
    else
        answer(k, in, r);
    xdr_out_done(&k->steps);
    call_done(&k->call);
    mem_free(k->groups);
}
