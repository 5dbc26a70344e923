/* rpc/invalidate.h - our own program, from a brick to a client that keeps copies: somebody else has changed this.
 *
 *   INVALIDATE request:  u32 count, then each: gfid, string<255> name. Name "": attributes and data of the gfid;
 *                        else what the directory gfid has under that name.
 *   INVALIDATE reply:    u32 0, once no program of the client can see the old state any more.
 *
 * The brick sends it to clients that said INVALIDATE_KEY in SETVOLUME and were told of the object within
 * INVALIDATE_LEASE_S or have it open, and answers the one that made the change after their replies. It waits
 * INVALIDATE_WAIT_MS at most. Who is late is told all the same, but not waited for again until it has answered. An
 * INVALIDATE that comes before the answer of an operation is younger than that answer: the client must not keep what the
 * answer says.
 *
 * So a client that was told of an object holds a lease on it, under these conditions:
 *   - the question that told it began less than INVALIDATE_LEASE_S ago, on this connection;
 *   - no INVALIDATE of the object came since;
 *   - the brick can reach it: it has answered a question that began less than INVALIDATE_WAIT_MS ago, and every
 *     INVALIDATE that came had been answered before that question was sent.
 */
#pragma once

#include "graph/translator.h"

#define INVALIDATE_KEY             "mortar-invalidate"
#define INVALIDATE_MAX             4096
#define INVALIDATE_LEASE_S         60
#define INVALIDATE_WAIT_MS         1000
/* What clients leave of both times: clocks of two machines differ in speed, and what runs takes its time. */
#define INVALIDATE_LEASE_MARGIN_MS 1000
#define INVALIDATE_WAIT_MARGIN_MS  100

/* Operations whose answers tell nothing that a client keeps: the brick notes no interest for them, and the client takes no
 * lease from them. Both sides must agree, so it is said once. */
static inline bool invalidate_is_untold(enum op op)
{
    switch (op) {
    case OP_XATTROP:
    case OP_INODELK:
    case OP_ENTRYLK:
    case OP_LK:
    case OP_FLUSH:
    case OP_FSYNC:
    case OP_FSYNCDIR:
    case OP_STATFS:
    case OP_IPC:
    case OP_GETACTIVELK:
    case OP_RCHECKSUM:
    case OP_BLOCKSUMS:
    case OP_LEASE: return true;
    default: return false;
    }
}
