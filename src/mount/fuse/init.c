/* INIT: what the kernel offers and what we take. Taken when offered:
 *
 *   ASYNC_READ, ASYNC_DIO   several reads (and pieces of direct I/O) of one file at a time
 *   POSIX_LOCKS, FLOCK_LOCKS  locks are between clients, so the bricks decide
 *   ATOMIC_O_TRUNC          open and truncate in one request: no other client can come between
 *   BIG_WRITES, MAX_PAGES   requests of 1 MiB
 *   AUTO_INVAL_DATA         drop pages when attributes show another mtime (option auto-invalidation); comes on top of our
 *                           own comparison at open and lock. Not taken where bricks give leases: lease.c
 *   DO_READDIRPLUS, READDIRPLUS_AUTO  names with attributes in one request, when the kernel finds it useful (option
 *                           use-readdirp)
 *   PARALLEL_DIROPS         look-ups in one directory at a time: our answers do not depend on their order
 *   HANDLE_KILLPRIV_V2      we clear set-user-id bits after writes; without it the kernel asks for the xattr
 *                           security.capability before every write
 *   CACHE_SYMLINKS          a target cannot change: another link is another gfid
 *   SETXATTR_EXT            flag "clear set-group-id" with an ACL
 *   ABORT_ERROR             ECONNABORTED tells an aborted connection from an unmount
 *   POSIX_ACL, DONT_MASK    option acl: the kernel checks ACLs, the brick applies umask or default ACL
 *   WRITEBACK_CACHE         option kernel-writeback-cache
 *   INIT_EXT, HAS_EXPIRE_ONLY  expire a name instead of dropping it and what hangs below
 *   DIRECT_IO_ALLOW_MMAP    shared mappings of files opened with direct-io-mode
 *
 * Not taken: EXPORT_SUPPORT (nodeids are addresses, a stale NFS handle cannot be checked), SPLICE_* (data is read and
 * written in place), NO_OPEN_SUPPORT and NO_OPENDIR_SUPPORT (descriptors carry locks and O_APPEND), EXPLICIT_INVAL_DATA
 * (a change of size must drop pages), SECURITY_CTX, SUBMOUNTS, DAX. */
#include "mount/fuse/fuse_internal.h"

static uint64_t wanted_flags(const struct fuse *f, bool judges_times)
{
    uint64_t flags = FUSE_ASYNC_READ | FUSE_ASYNC_DIO | FUSE_POSIX_LOCKS | FUSE_FLOCK_LOCKS | FUSE_ATOMIC_O_TRUNC |
                     FUSE_BIG_WRITES | FUSE_MAX_PAGES | FUSE_PARALLEL_DIROPS | FUSE_HANDLE_KILLPRIV_V2 |
                     FUSE_CACHE_SYMLINKS | FUSE_SETXATTR_EXT | FUSE_ABORT_ERROR | FUSE_INIT_EXT | FUSE_HAS_EXPIRE_ONLY |
                     FUSE_DIRECT_IO_ALLOW_MMAP;

    if (f->auto_inval && !judges_times)
        flags |= FUSE_AUTO_INVAL_DATA;
    if (f->use_readdirp)
        flags |= FUSE_DO_READDIRPLUS | FUSE_READDIRPLUS_AUTO;
    if (f->acl)
        flags |= FUSE_POSIX_ACL | FUSE_DONT_MASK;
    if (f->writeback)
        flags |= FUSE_WRITEBACK_CACHE;
    return flags;
}

FIBER int on_init(struct request_in *in)
{
    struct mount *m = in->m;
    struct fuse *f = mount_options(m);
    struct fuse_init_in args = { 0 };
    struct fuse_init_out out = {
        .major = FUSE_KERNEL_VERSION,
        .max_background = (uint16_t)MIN(f->background, 65535u),
        .congestion_threshold = (uint16_t)MIN(f->congestion, 65535u),
        .max_write = FUSE_MAX_WRITE,
        .max_pages = FUSE_REQUEST_PAGES,
        .time_gran = f->granularity_ns ? f->granularity_ns : 1,
    };

    memcpy(&args, in->args, MIN(sizeof(args), in->args_bytes));
    if (args.major < FUSE_KERNEL_VERSION || (args.major == FUSE_KERNEL_VERSION && args.minor < 28)) {
        TLOG(m->me, LOG_ERROR, "kernel-too-old", "protocol=%u.%u needed=7.28 (Linux 4.20)", args.major, args.minor);
        return -EPROTO;
    }
    if (args.major > FUSE_KERNEL_VERSION) { /* it asks again with our major number */
        (void)answer(in, &out, sizeof(out));
        return 0;
    }
    m->kernel_minor = args.minor;
    m->kernel_flags = args.flags;
    if (args.flags & FUSE_INIT_EXT)
        m->kernel_flags |= (uint64_t)args.flags2 << 32;
    m->judges_times = f->auto_inval && bricks_give_leases(in);
    m->flags = m->kernel_flags & wanted_flags(f, m->judges_times);
    out.minor = MIN(args.minor, (uint32_t)FUSE_KERNEL_MINOR_VERSION);
    out.max_readahead = MIN(args.max_readahead, FUSE_MAX_WRITE);
    out.flags = (uint32_t)m->flags;
    out.flags2 = (uint32_t)(m->flags >> 32);
    (void)answer(in, &out, sizeof(out));
    TLOG(m->me, LOG_INFO, "mounted", "mountpoint=%s protocol=%u.%u offered=%#llx taken=%#llx", m->mount_point,
         args.major, args.minor, (unsigned long long)m->kernel_flags, (unsigned long long)m->flags);
    return 0;
}
