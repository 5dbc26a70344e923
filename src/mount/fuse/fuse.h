/* mount/fuse - the top of a client's graph: the kernel's FUSE device on one side, file operations on the other.
 *
 * The translator sits above the root of a graph (graph_push). When the graph is started it waits until its child can
 * serve (option wait-for-bricks), mounts, and from then on runs one fiber per request of the kernel. The connection to
 * the kernel (struct mount) outlives the graph: fuse_take_over() moves it, with open files, to the translator on top of
 * another graph.
 *
 *     graph_push(graph, &fuse_class, "fuse", options, &top, err);
 *     fuse_on_end(top, stop_process, arg);
 *     graph_start(graph, err);          the mount point is usable when this returns 0
 */
#pragma once

#include "graph/graph.h"

extern const struct translator_class fuse_class;

/* fn(arg) runs on the loop when the mount is gone: unmounted by somebody, or the device failed. Call before start. */
void fuse_on_end(struct translator *fuse, void (*fn)(void *arg), void *arg);

/* For a graph that is to replace another: starting it does not mount. Call before start. */
void fuse_will_take_over(struct translator *fuse);
/* Moves the mount of `from` to `to` (marked as above), both on started graphs: waits until the new child can serve and
 * the requests under way are answered, opens every open file again below `to`, takes the locks along, and goes on there. On
 * failure everything stays with `from`. A file that cannot be opened again answers EBADF from then on, but if its last name
 * is gone and `may_leave` is set, it goes on in the graph of `from`: see fuse_is_left(). */
FIBER int fuse_take_over(struct translator *to, struct translator *from, bool may_leave, struct error *err);
/* After that: are there such files in this graph? Then it must live on. */
bool fuse_is_left(const struct translator *fuse);
/* fn(arg) runs on the loop when the last of them is closed; it must not stop the graph itself. */
void fuse_on_left(struct translator *fuse, void (*fn)(void *arg), void *arg);
/* Then, from a fiber: ends all use of the graph of `left` by the mount, which is on `present` now. False: a file was opened
 * there again, and the function of fuse_on_left() will be called again. */
FIBER bool fuse_leave(struct translator *present, struct translator *left);
