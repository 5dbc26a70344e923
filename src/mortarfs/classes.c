/* The list of all translator classes. One line each, in the order of their folders. */
#include "graph/graph.h"

/* clang-format off */
#define CLASSES(X) \
    X(distribute_class) \
    X(replicate_class) \
    X(delay_gen_class) \
    X(error_gen_class) \
    X(io_stats_class) \
    X(trace_class) \
    X(access_control_class) \
    X(arbiter_class) \
    X(barrier_class) \
    X(bitrot_stub_class) \
    X(changelog_class) \
    X(index_class) \
    X(leases_class) \
    X(locks_class) \
    X(marker_class) \
    X(namespace_class) \
    X(quiesce_class) \
    X(quota_class) \
    X(read_only_class) \
    X(sdfs_class) \
    X(selinux_class) \
    X(thin_arbiter_class) \
    X(trash_class) \
    X(upcall_class) \
    X(utime_class) \
    X(worm_class) \
    X(fuse_class) \
    X(io_cache_class) \
    X(io_threads_class) \
    X(md_cache_class) \
    X(nl_cache_class) \
    X(open_behind_class) \
    X(quick_read_class) \
    X(read_ahead_class) \
    X(readdir_ahead_class) \
    X(write_behind_class) \
    X(client_class) \
    X(server_class) \
    X(posix_class) \
    /* end */
/* clang-format on */

#define X(name) extern const struct translator_class name;
CLASSES(X)
#undef X

const struct translator_class *const all_classes[] = {
#define X(name) &name,
    CLASSES(X)
#undef X
        NULL,
};
