#include "rpc/message.h"

enum { MSG_CALL = 0, MSG_REPLY = 1, MSG_ACCEPTED = 0, MSG_DENIED = 1 };
enum { RPC_VERSION = 2, AUTH_TOOWEAK = 5 };

/* Words of a v2 or v3 credential that groups (words) and owner (counted as words, although bytes) may share. */
#define V3_SHARED 91
#define V2_SHARED 95
#define V1_GROUPS 16

unsigned rpc_groups_that_fit(unsigned owner_bytes)
{
    return owner_bytes < V3_SHARED ? V3_SHARED - owner_bytes : 0;
}

/* A call without an owner is owned by its pid, least significant byte first. */
static void put_owner(struct xdr_out *o, const struct call *call)
{
    if (call && call->lk_owner.size > 0) {
        xdr_put_opaque(o, call->lk_owner.bytes, call->lk_owner.size);
        return;
    }
    uint32_t pid = call ? (uint32_t)call->pid : 0;
    uint8_t bytes[4] = { (uint8_t)pid, (uint8_t)(pid >> 8), (uint8_t)(pid >> 16), (uint8_t)(pid >> 24) };
    xdr_put_opaque(o, bytes, 4);
}

static void put_gluster_cred(struct xdr_out *o, enum rpc_flavor flavor, const struct call *call, bool with_groups)
{
    size_t start = o->size;
    unsigned shared = flavor == AUTH_FLAVOR_V3 ? V3_SHARED : V2_SHARED;
    unsigned owner = call && call->lk_owner.size > 0 ? call->lk_owner.size : 4;
    unsigned room = owner < shared ? shared - owner : 0;
    unsigned groups = call && with_groups ? MIN(call->group_count, room) : 0;

    xdr_put_u32(o, 0);
    xdr_put_u32(o, call ? (uint32_t)call->pid : 0);
    xdr_put_u32(o, call ? call->uid : 0);
    xdr_put_u32(o, call ? call->gid : 0);
    if (flavor == AUTH_FLAVOR_V3) {
        xdr_put_u32(o, call ? call->time_flags : 0);
        xdr_put_u32(o, call ? call->time_ns : 0);
        xdr_put_u64(o, call ? (uint64_t)call->time_s : 0);
    }
    xdr_put_u32(o, groups);
    for (unsigned i = 0; i < groups; i++)
        xdr_put_u32(o, call->groups[i]);
    put_owner(o, call);
    xdr_patch_u32(o, start, (uint32_t)(o->size - start - 4));
}

void rpc_put_call_head(struct xdr_out *o, uint32_t xid, uint32_t program, uint32_t version, uint32_t procedure,
                       enum rpc_flavor flavor, const struct call *call, bool with_groups)
{
    uint8_t *p = xdr_reserve(o, 28);
    if (!p)
        return;
    put_be32(p, xid);
    put_be32(p + 4, MSG_CALL);
    put_be32(p + 8, RPC_VERSION);
    put_be32(p + 12, program);
    put_be32(p + 16, version);
    put_be32(p + 20, procedure);
    put_be32(p + 24, flavor);
    if (flavor == AUTH_FLAVOR_NONE)
        xdr_put_u32(o, 0);
    else
        put_gluster_cred(o, flavor, call, with_groups);
    xdr_put_u64(o, 0); /* verifier: none, empty */
}

void rpc_put_reply_head(struct xdr_out *o, uint32_t xid, enum rpc_accept accept)
{
    uint8_t *p = xdr_reserve(o, RPC_REPLY_HEAD_BYTES);
    if (!p)
        return;
    memset(p, 0, RPC_REPLY_HEAD_BYTES);
    put_be32(p, xid);
    put_be32(p + 4, MSG_REPLY);
    put_be32(p + 20, accept);
    if (accept == RPC_ACCEPT_NO_VERSION)
        xdr_put_u64(o, 0); /* low and high, which nobody reads */
}

void rpc_put_denied(struct xdr_out *o, uint32_t xid)
{
    xdr_put_u32(o, xid);
    xdr_put_u32(o, MSG_REPLY);
    xdr_put_u32(o, MSG_DENIED);
    xdr_put_u32(o, 1);
    xdr_put_u32(o, AUTH_TOOWEAK);
}

void rpc_put_version_mismatch(struct xdr_out *o, uint32_t xid)
{
    xdr_put_u32(o, xid);
    xdr_put_u32(o, MSG_REPLY);
    xdr_put_u32(o, MSG_DENIED);
    xdr_put_u32(o, 0);
    xdr_put_u32(o, RPC_VERSION);
    xdr_put_u32(o, RPC_VERSION);
}

/* Too many groups are cut, a too long owner is refused. */
static int get_groups(struct xdr_in *in, struct rpc_cred *c, uint32_t count)
{
    if (count > RPC_CRED_MAX / 4)
        return -EACCES;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t group = xdr_get_u32(in);
        if (c->group_count < RPC_GROUPS_MAX)
            c->groups[c->group_count++] = group;
    }
    return 0;
}

static int get_gluster_cred(struct xdr_in *in, struct rpc_cred *c)
{
    size_t size;

    c->pid = (int32_t)xdr_get_u32(in);
    c->uid = xdr_get_u32(in);
    c->gid = xdr_get_u32(in);
    if (c->flavor == AUTH_FLAVOR_V3) {
        c->time_flags = xdr_get_u32(in);
        c->time_ns = xdr_get_u32(in);
        c->time_s = (int64_t)xdr_get_u64(in);
    }
    int r = get_groups(in, c, xdr_get_u32(in));
    if (r < 0)
        return r;
    const uint8_t *owner = xdr_get_opaque(in, LK_OWNER_MAX, &size);
    if (in->failed)
        return -EACCES;
    c->owner.size = (uint32_t)size;
    memcpy(c->owner.bytes, owner, size);
    return 0;
}

static int get_v1_cred(struct xdr_in *in, struct rpc_cred *c)
{
    uint64_t owner = xdr_get_u64(in);

    lk_owner_from_u64(&c->owner, owner);
    c->pid = (int32_t)xdr_get_u32(in);
    c->uid = xdr_get_u32(in);
    c->gid = xdr_get_u32(in);
    uint32_t count = MIN(xdr_get_u32(in), (uint32_t)V1_GROUPS);
    int r = get_groups(in, c, V1_GROUPS);
    c->group_count = MIN(c->group_count, count);
    return in->failed ? -EACCES : r;
}

static int get_unix_cred(struct xdr_in *in, struct rpc_cred *c)
{
    size_t size;

    (void)xdr_get_u32(in); /* stamp */
    (void)xdr_get_opaque(in, 255, &size);
    c->uid = xdr_get_u32(in);
    c->gid = xdr_get_u32(in);
    int r = get_groups(in, c, xdr_get_u32(in));
    return in->failed ? -EACCES : r;
}

static int get_cred(struct xdr_in *in, struct rpc_cred *c)
{
    size_t size;

    memset(c, 0, offsetof(struct rpc_cred, groups));
    c->owner.size = 0;
    c->time_flags = 0;
    c->time_ns = 0;
    c->time_s = 0;
    c->flavor = xdr_get_u32(in);
    uint8_t *body = xdr_get_opaque(in, RPC_CRED_MAX, &size);
    if (!body)
        return -EBADMSG;
    struct xdr_in part = { .at = body, .end = body + size };
    switch (c->flavor) {
    case AUTH_FLAVOR_V3:
    case AUTH_FLAVOR_V2: return get_gluster_cred(&part, c);
    case AUTH_FLAVOR_V1: return get_v1_cred(&part, c);
    case AUTH_FLAVOR_UNIX: return get_unix_cred(&part, c);
    default: /* as AUTH_NONE: nobody in particular */ return 0;
    }
}

int rpc_get_call_head(struct xdr_in *in, struct rpc_call_head *ret_head)
{
    size_t size;
    uint32_t version = xdr_get_u32(in);

    if (in->failed)
        return -EBADMSG;
    if (version != RPC_VERSION)
        return -EPROTONOSUPPORT;
    ret_head->program = xdr_get_u32(in);
    ret_head->version = xdr_get_u32(in);
    ret_head->procedure = xdr_get_u32(in);
    int r = get_cred(in, &ret_head->cred);
    (void)xdr_get_u32(in); /* verifier */
    (void)xdr_get_opaque(in, RPC_CRED_MAX, &size);
    return in->failed ? -EBADMSG : r;
}

int rpc_get_reply_head(struct xdr_in *in)
{
    size_t size;
    uint32_t status = xdr_get_u32(in);

    if (in->failed || status > MSG_DENIED)
        return -EBADMSG;
    if (status == MSG_DENIED)
        return -ENOTCONN;
    (void)xdr_get_u32(in);
    (void)xdr_get_opaque(in, RPC_CRED_MAX, &size);
    uint32_t accept = xdr_get_u32(in);
    if (in->failed)
        return -EBADMSG;
    return accept == RPC_ACCEPT_OK ? 0 : -ENOTCONN;
}

void rpc_cred_to_call(const struct rpc_cred *cred, struct call *call)
{
    call->pid = cred->pid;
    call->uid = cred->uid;
    call->gid = cred->gid;
    call->groups = cred->groups;
    call->group_count = cred->group_count;
    call->lk_owner = cred->owner;
    call->time_flags = cred->time_flags;
    call->time_s = cred->time_s;
    call->time_ns = cred->time_ns;
}

/* ---- where raw data begins ---- */

/* After the opaque at *at; false: more bytes are needed. */
static bool skip_opaque(const uint8_t *p, size_t have, size_t *at)
{
    if (have < *at + 4)
        return false;
    size_t size = get_be32(p + *at);
    if (size > RPC_CRED_MAX)
        return false;
    *at += 4 + size + (-size & 3);
    return true;
}

/* A fixed part of `fixed` bytes at `at` that ends in the three words of a dict, whose first word is its size. */
static ssize_t head_with_dict(const uint8_t *p, size_t have, size_t at, size_t fixed)
{
    if (have < at + fixed)
        return -EAGAIN;
    size_t dict = get_be32(p + at + fixed - 12);
    if (dict > INT32_MAX)
        return -EBADMSG;
    return (ssize_t)(at + fixed + dict + (-dict & 3));
}

ssize_t rpc_write_head_bytes(const uint8_t *head, size_t have)
{
    size_t at = 28;

    if (have < at)
        return -EAGAIN;
    if (get_be32(head + 4) != MSG_CALL || get_be32(head + 12) != PROGRAM_FOPS || get_be32(head + 16) != FOPS_VERSION ||
        get_be32(head + 20) != FOP_WRITE)
        return 0;
    if (!skip_opaque(head, have, &at))
        return have < 28 + 4 + RPC_CRED_MAX ? -EAGAIN : -EBADMSG;
    at += 4;
    if (!skip_opaque(head, have, &at))
        return have < 2 * (8 + RPC_CRED_MAX) + 28 ? -EAGAIN : -EBADMSG;
    return head_with_dict(head, have, at, 52); /* gfid fd offset size flags dict */
}

ssize_t rpc_read_reply_head_bytes(const uint8_t *head, size_t have)
{
    size_t at = 16; /* xid, direction, status, flavor of the verifier */

    if (have < at)
        return -EAGAIN;
    if (get_be32(head + 4) != MSG_REPLY || get_be32(head + 8) != MSG_ACCEPTED)
        return 0;
    if (!skip_opaque(head, have, &at))
        return have < 20 + RPC_CRED_MAX ? -EAGAIN : -EBADMSG;
    if (have < at + 4)
        return -EAGAIN;
    if (get_be32(head + at) != RPC_ACCEPT_OK)
        return 0;
    return head_with_dict(head, have, at + 4, 172); /* op_ret op_errno iatt size dict */
}
