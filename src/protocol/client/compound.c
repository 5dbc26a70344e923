/* Several operations as one message of our own program (rpc/compound.h). */
#include "core/mem.h"
#include "protocol/client/client_internal.h"

/* The message's body: identity, then the steps, which are kept in w for reading the answer. */
static int put_compound(struct remote *s, struct call *call, const struct request *q, struct fop_request *w,
                        struct xdr_out *o)
{
    bool fits = !s->sends_groups || call->group_count <= rpc_groups_that_fit(MAX(call->lk_owner.size, 4u));
    uint32_t groups = fits ? 0 : MIN(call->group_count, (uint32_t)COMPOUND_GROUPS_MAX);

    xdr_put_u32(o, call->is_lazy ? COMPOUND_LAZY : 0);
    xdr_put_u32(o, groups);
    for (uint32_t i = 0; i < groups; i++)
        xdr_put_u32(o, call->groups[i]);
    xdr_put_u32(o, q->step_count);
    for (uint32_t i = 0; i < q->step_count; i++) {
        int r = q->steps[i].op == OP_COMPOUND ? -EINVAL : remote_request(s, call, &q->steps[i], q->steps, i, &w[i]);
        if (r < 0)
            return r;
        xdr_put_u32(o, w[i].proc);
        fop_put_request(o, &w[i], true);
    }
    return 0;
}

/* Answers of the steps that were done; the result of the last. */
static int get_compound(struct remote *s, struct call *call, const struct request *q, const struct fop_request *w,
                        struct xdr_in *in, uint64_t begun_ns, struct reply *r)
{
    int32_t op_ret = (int32_t)xdr_get_u32(in), op_errno = (int32_t)xdr_get_u32(in);
    uint32_t done = xdr_get_u32(in);

    if (in->failed || done > q->step_count)
        return -EBADMSG;
    for (uint32_t i = 0; i < done; i++) {
        if (xdr_get_u32(in) != w[i].proc)
            return -EBADMSG;
        r->step_count = i + 1;
        struct reply *part = &r->steps[i];
        part->ret = remote_answer(s, call, &q->steps[i], &w[i], in, NULL, true, begun_ns, part);
        if (part->ret < 0)
            return part->ret;
    }
    if (op_ret < 0)
        return op_errno > 0 && op_errno < 4096 ? -op_errno : -EIO;
    return done == q->step_count ? 0 : -EIO;
}

static FIBER int exchange(struct remote *s, struct call *call, struct rpc_call *c, struct xdr_out *o)
{
    uint32_t begun_at = call_round_trip_begin(call);
    int result = rpc_peer_call(s->peer, c, o, &call->scope);

    call_round_trip_end(call, begun_at);
    return result;
}

/* The calls of compounds are on the heap: with their undo, if anything can be left on the brick. */
static FIBER int send_compound(struct remote *s, struct call *call, const struct request *q, struct fop_request *w,
                               struct reply *r)
{
    struct rpc_call head;
    struct xdr_out o;

    rpc_call_begin(s->peer, &head, &o, PROGRAM_MORTAR, MORTAR_PROGRAM_VERSION, MORTAR_COMPOUND, call);
    int result = put_compound(s, call, q, w, &o);
    bool has_undo = leaves_something(q->steps, q->step_count);
    struct late_call *l = result == 0 ? late_call_new(s, call, q->steps, w, has_undo ? q->step_count : 0, true) : NULL;
    if (!l) {
        xdr_out_done(&o);
        return result < 0 ? result : -ENOMEM;
    }
    uint64_t begun_ns = remote_lease_begin(s);
    l->c.xid = head.xid;
    l->c.is_lazy = call->is_lazy;
    list_init(&l->c.bucket);
    result = exchange(s, call, &l->c, &o);
    if (rpc_call_is_under_way(&l->c))
        return result; /* l lives until the answer comes */
    if (result == 0)
        result = get_compound(s, call, q, w, &l->c.body, begun_ns, r);
    late_call_free(l);
    return result;
}

FIBER int remote_compound(struct remote *s, struct call *call, const struct request *q, struct reply *r)
{
    SCOPED_FREE struct fop_request *w = mem_array(q->step_count, sizeof(*w));

    r->steps = mem_array(q->step_count, sizeof(struct reply));
    if (!w || !r->steps)
        return -ENOMEM;
    int result = send_compound(s, call, q, w, r);
    if (result == -EBADMSG) {
        remote_bad_answer(s, "compound");
        result = -EIO;
    }
    return result;
}

FIBER int remote_op_as_step(struct remote *s, struct call *call, const struct request *q, struct reply *r)
{
    struct request one = *q;
    struct request all = { .op = OP_COMPOUND, .steps = &one, .step_count = 1 };
    SCOPED(reply_free) struct reply *outer = reply_new();

    if (!outer)
        return -ENOMEM;
    int result = remote_compound(s, call, &all, outer);
    if (outer->step_count != 1)
        return result < 0 ? result : -EIO;
    reply_move(r, &outer->steps[0]);
    return r->ret;
}
