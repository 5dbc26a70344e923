/* rpc/message.h - heads of ONC-RPC calls and replies (RFC 5531) and the credentials in them (docs/protocol.md
 * "Credentials").
 *
 * A credential is read into a struct rpc_cred and from there into a struct call; a client writes it straight from its
 * struct call.
 */
#pragma once

#include "graph/translator.h"
#include "rpc/programs.h"
#include "rpc/xdr_buf.h"

#define RPC_CRED_MAX         400 /* bytes of a credential's body (RFC 5531) */
#define RPC_GROUPS_MAX       96  /* more never fit */
#define RPC_MARK_BYTES       4
#define RPC_MARK_LAST        0x80000000u
/* xid, reply, accepted, verifier, accept_stat */
#define RPC_REPLY_HEAD_BYTES 24

enum rpc_accept {
    RPC_ACCEPT_OK,
    RPC_ACCEPT_NO_PROGRAM,
    RPC_ACCEPT_NO_VERSION,
    RPC_ACCEPT_NO_PROCEDURE,
    RPC_ACCEPT_GARBAGE,
    RPC_ACCEPT_SYSTEM
};

struct rpc_cred {
    uint32_t flavor;
    int32_t pid;
    uint32_t uid, gid;
    uint32_t group_count;
    uint32_t groups[RPC_GROUPS_MAX];
    struct lk_owner owner;
    uint32_t time_flags, time_ns;
    int64_t time_s;
};

struct rpc_call_head {
    uint32_t program, version, procedure;
    struct rpc_cred cred;
};

/* How many supplementary groups an AUTH_GLUSTERFS v3 credential carries beside an owner of that many bytes. */
unsigned rpc_groups_that_fit(unsigned owner_bytes);

/* Everything from xid to the verifier. `flavor` NONE, V2 or V3; `call` NULL = root without owner (pid 0, owner four
 * zero bytes). Groups that do not fit are left out. */
void rpc_put_call_head(struct xdr_out *o, uint32_t xid, uint32_t program, uint32_t version, uint32_t procedure,
                       enum rpc_flavor flavor, const struct call *call, bool with_groups);
void rpc_put_reply_head(struct xdr_out *o, uint32_t xid, enum rpc_accept accept);
/* MSG_DENIED / AUTH_ERROR (AUTH_TOOWEAK). */
void rpc_put_denied(struct xdr_out *o, uint32_t xid);
/* MSG_DENIED / RPC_MISMATCH. */
void rpc_put_version_mismatch(struct xdr_out *o, uint32_t xid);

/* Past xid and direction. 0; -EBADMSG malformed (the connection is of no use); -EPROTONOSUPPORT another RPC version;
 * -EACCES a credential we cannot accept. */
int rpc_get_call_head(struct xdr_in *in, struct rpc_call_head *ret_head);
/* Past xid and direction: 0 when the reply is accepted with SUCCESS, -ENOTCONN for every other well-formed one, and
 * -EBADMSG. */
int rpc_get_reply_head(struct xdr_in *in);

/* Identity, groups (borrowed from cred), owner and times into a call made with call_init(). */
void rpc_cred_to_call(const struct rpc_cred *cred, struct call *call);

/* How many bytes of the call record at `head` come before its raw data: a WRITE's head with its dict. 0: no raw data.
 * -EAGAIN: needs more than the `have` bytes there are; -EBADMSG. */
ssize_t rpc_write_head_bytes(const uint8_t *head, size_t have);
/* The same for the record of a reply that is known to answer a READ. */
ssize_t rpc_read_reply_head_bytes(const uint8_t *head, size_t have);
