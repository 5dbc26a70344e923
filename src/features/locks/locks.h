/* features/locks - the brick's lock manager.
 *
 * Three kinds of locks, all advisory among clients, all owned by (client connection, lk-owner bytes):
 *   inodelk   byte ranges of an inode in a named domain; unlocked by exactly the range that was locked
 *   entrylk   a name in a directory, or all names, in a named domain
 *   lk        POSIX byte ranges (and flock, as the range 0..end): split and merged as fcntl(2) says
 * Requests that must wait queue first come first served. An owner never conflicts with itself. Everything a client
 * holds or waits for goes when its connection goes; closing drops POSIX locks as close(2) does.
 *
 * While somebody waits for an inodelk or entrylk, its holder is told: at once when the first request is blocked (also
 * by a refused try), about a millisecond after it became holder when others were waiting already, and again every
 * notify-contention-delay while they still wait. A notice may overtake the answer that grants the lock.
 *
 * After a brick start POSIX locks may be reclaimed: a client replays what it held with xdata LOCKS_RECLAIM set, and
 * is served at once; requests without it wait until the grace time (option reclaim-grace) is over, unless their owner
 * already holds a lock on the inode or the inode was made since the start. A reclaim never takes a lock from others.
 *
 * Virtual getxattrs on an inode:
 *   glusterfs.clrlk.t{inode,entry,posix}.k{granted,blocked,all}[.RANGE or .NAME]   drops locks; RANGE is START-END or
 *       0,START-END, both inclusive, END 0 = to the end
 *   glusterfs.intrlk[.START-LENGTH]   the caller's own waiting POSIX requests that touch the range (or all) end with
 *       EINTR; the answer is their number
 */
#pragma once

#include "graph/translator.h"

#define LOCKS_RECLAIM "mortar.lock-reclaim" /* xdata of lk, any value */

/* A program that changes its graph has two connections for a while. A request with this key (xdata of lk, any value) takes
 * over what the same owner holds in that range through another connection of the same program (docs/protocol.md), in one
 * step: nobody gets in between. */
#define LOCKS_TAKEOVER "mortar.lock-takeover"

/* A lock with this start and length 0 protects metadata: it lives in a domain of its own, "DOMAIN:metadata". */
#define LOCKS_METADATA_START ((uint64_t)INT64_MAX - 1)

extern const struct translator_class locks_class;
