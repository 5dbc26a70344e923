/* performance/write-behind - acknowledges writes before they are written.
 *
 * A write is answered once a reference to its data is in the inode's queue; fibers hand the queue to the child. What
 * may be relied on:
 *   - Whoever asks through this graph sees the data: reads, stat, lookup and everything else that depends on content or
 *     size waits for the writes it depends on; a listing leaves attributes of dirty inodes out.
 *   - Overlapping writes reach the child in order. Others may overtake each other unless strict-write-ordering is on.
 *     Appends keep their order.
 *   - An error of a write that was acknowledged is told once, at the next write, fsync or flush of that descriptor, and
 *     to a replicating client at the next xattrop on the inode (so that it does not clear its marks).
 *   - fsync, truncate, setattr, fallocate, rename, link and the release of inodelks come after the inode's writes before
 *     them; taking and releasing POSIX locks after all writes before them, whatever the inode.
 *   - A flush comes after the inode's writes. With flush-behind it is answered at once when its descriptor made the
 *     file and does not append and no POSIX locks were seen on the inode: other mounts find a file that existed before
 *     complete once it was closed.
 *   - O_SYNC, O_DSYNC, O_DIRECT (with strict-O_DIRECT), writes without a descriptor, and writes that carry xdata wait
 *     for what is queued and go through.
 *   - An acknowledged write outlives its client's connection; stopping the graph writes all.
 *
 * An acknowledged write's reply has no attributes (mode 0): the child has not said yet.
 */
#pragma once

#include "graph/translator.h"

extern const struct translator_class write_behind_class;
