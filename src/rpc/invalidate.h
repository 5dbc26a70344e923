/* rpc/invalidate.h - our own program, from a brick to a client that keeps copies: somebody else has changed this.
 *
 *   INVALIDATE request:  u32 count, then each: gfid, string<255> name. Name "": attributes and data of the gfid;
 *                        else what the directory gfid has under that name.
 *   INVALIDATE reply:    u32 0, once no program of the client can see the old state any more.
 *
 * The brick sends it to clients that said INVALIDATE_KEY in SETVOLUME and were told of the object within
 * INVALIDATE_LEASE_S or have it open, and answers the one that made the change after their replies. It waits
 * INVALIDATE_WAIT_MS at most; who is late is not waited for again until it has answered. An INVALIDATE that comes before
 * the answer of an operation is younger than that answer: the client must not keep what the answer says.
 */
#pragma once

#define INVALIDATE_KEY     "mortar-invalidate"
#define INVALIDATE_MAX     4096
#define INVALIDATE_LEASE_S 60
#define INVALIDATE_WAIT_MS 1000
