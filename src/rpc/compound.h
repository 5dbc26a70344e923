/* rpc/compound.h - our own program (PROGRAM_MORTAR): several file operations in one message.
 *
 *   COMPOUND request:  u32 flags (COMPOUND_LAZY), u32 group count, groups, u32 step count, then each step: u32 procedure of the
 *                      4.x program and its request body, raw data as opaque<>
 *   COMPOUND reply:    i32 op_ret (0, or -1 when a step failed), i32 op_errno, u32 steps done, then each: u32 procedure
 *                      and its reply body. The last one is the one that failed.
 *
 * Steps run in order and stop at the first failure. A step names a descriptor that an earlier step opened as
 * FD_OF_STEP(number of that step). A RENAME has its flags (RENAME_*, u32) behind its body, for which GlusterFS's message
 * has no room. Groups, when there are any, replace the credential's, which cannot carry as many.
 */
#pragma once

#define COMPOUND_LAZY       1 /* nobody waits for the answer: it may be sent together with others */
#define COMPOUND_STEPS_MAX  64
#define COMPOUND_GROUPS_MAX 65536 /* NGROUPS_MAX of Linux */

#define FD_OF_STEP(step)  (-16 - (int64_t)(step))
#define FD_IS_OF_STEP(fd) ((fd) <= -16 && (fd) > -16 - COMPOUND_STEPS_MAX)
#define FD_STEP_OF(fd)    ((uint32_t)(-16 - (fd)))
