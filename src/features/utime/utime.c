/* features/utime - one clock for all replicas: the client's time travels with each operation that changes times.
 *
 * Each call that goes down carries the client's wall time and which times it sets on the object and its parent
 * (call->time_s, time_ns, time_flags); bricks store these instead of their own clocks. With `noatime` (the default)
 * reads set nothing. The call's fields are put back before the answer goes up, since a caller may use one call for
 * several operations. */
#include "graph/translator.h"

struct utime {
    bool noatime;
};

#define MAKES_ENTRY   (TIME_CTIME | TIME_MTIME | TIME_ATIME | TIME_PARENT_CTIME | TIME_PARENT_MTIME)
#define CHANGES_ENTRY (TIME_CTIME | TIME_PARENT_CTIME | TIME_PARENT_MTIME)

/* docs/protocol.md "ctime flags". GlusterFS's own translator lets fallocate move mtime and atime and punching nothing;
 * what POSIX and every local file system do is to move mtime and ctime. */
static uint32_t flags_of(const struct utime *s, const struct request *q)
{
    switch (q->op) {
    case OP_CREATE:
    case OP_MKNOD:
    case OP_MKDIR:
    case OP_SYMLINK: return MAKES_ENTRY;
    case OP_UNLINK:
    case OP_RMDIR:
    case OP_LINK:
    case OP_RENAME: return CHANGES_ENTRY;
    case OP_WRITE:
    case OP_TRUNCATE:
    case OP_FALLOCATE:
    case OP_COPY_RANGE: return TIME_CTIME | TIME_MTIME;
    case OP_SETXATTR:
    case OP_REMOVEXATTR: return TIME_CTIME;
    /* The new times travel in the attributes. A GlusterFS brick that finds their flags here as well sets them to the
     * time of the call instead. */
    case OP_SETATTR: return TIME_CTIME;
    case OP_OPEN:
    case OP_OPENDIR:
    case OP_READ: return s->noatime ? 0 : TIME_ATIME;
    default: return 0;
    }
}

static FIBER int utime_any(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    uint32_t flags = flags_of(me->state, q);
    uint32_t flags_before = call->time_flags, ns_before = call->time_ns;
    int64_t s_before = call->time_s;
    struct timespec now;

    if (!flags)
        return default_op(me, call, q, r);
    env_wall_time(me->env, &now);
    call->time_flags = flags;
    call->time_s = now.tv_sec;
    call->time_ns = (uint32_t)now.tv_nsec;
    int result = default_op(me, call, q, r);
    call->time_flags = flags_before;
    call->time_s = s_before;
    call->time_ns = ns_before;
    return result;
}

static const struct option utime_options[] = {
    OPT_BOOL("noatime", struct utime, noatime, .def = "on", .live = true, .help = "reads do not set the access time"),
    OPT_END,
};

const struct translator_class utime_class = {
    .type = "features/utime",
    .state_size = sizeof(struct utime),
    .options = utime_options,
    .ops = { [OP_COMPOUND] = default_compound },
    .any = utime_any,
    .children_min = 1,
    .children_max = 1,
};
