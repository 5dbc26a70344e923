/* storage/posix - the leaf of a brick: files of a local directory under gfids. See posix_internal.h for how an
 * operation runs, and docs/on-disk.md for what is on the disk. */
#include "storage/posix/posix_internal.h"

static const char *const namespaces[] = { "auto", "trusted", "user", NULL };
static const char *const fsync_modes[] = {
    "none", "syncfs", "syncfs-single-fsync", "reverse-fsync", "syncfs-reverse-fsync", NULL
};

static const struct option posix_options[] = {
    OPT_PATH("directory", struct posix, directory, .help = "the brick: an absolute path"),
    OPT_STR("volume-id", struct posix, volume_id_text,
            .help = "UUID that the brick directory must carry as trusted.glusterfs.volume-id"),
    OPT_STR("glusterd-uuid", struct posix, glusterd_uuid, .help = "answer to questions for the node's uuid"),
    OPT_STR("hostname", struct posix, hostname, .help = "the host's name in pathinfo (default: uname)"),
    OPT_ENUM("xattr-namespace", struct posix, xattr_namespace, namespaces, .def = "auto",
             .help = "where trusted.* attributes are kept: as they are (needs CAP_SYS_ADMIN) or as user.*; auto: what "
                     "the brick has, else what the process may"),
    OPT_BOOL("o-direct", struct posix, o_direct, .help = "read and write past the page cache where aligned"),
    OPT_BOOL("export-statfs-size", struct posix, export_statfs_size, .def = "on", .live = true,
             .help = "off: statfs shows no sizes (bricks that share a file system)"),
    OPT_BOOL("mandate-attribute", struct posix, mandate_attribute, .def = "on",
             .help = "refuse to start without extended attributes"),
    OPT_TIME("janitor-sleep-duration", struct posix, janitor_s, .def = "10", .min = 1, .live = true,
             .help = "pause between two looks into landfill"),
    OPT_I32("brick-uid", struct posix, brick_uid, .def = "-1", .min = -1, .help = "owner of the volume's root"),
    OPT_I32("brick-gid", struct posix, brick_gid, .def = "-1", .min = -1, .help = "group of the volume's root"),
    OPT_BOOL("node-uuid-pathinfo", struct posix, node_uuid_pathinfo, .live = true,
             .help = "the node's uuid instead of the host's name in pathinfo"),
    OPT_TIME("health-check-interval", struct posix, health_interval_s, .def = "30", .help = "0: no health check"),
    OPT_TIME("health-check-timeout", struct posix, health_timeout_s, .def = "20", .live = true,
             .help = "a health check that takes longer means that the disk is gone; 0: wait for ever"),
    OPT_PERCENT_OR_SIZE("reserve", struct posix, reserve, .def = "1", .live = true,
                        .help = "space kept free; below it users get ENOSPC"),
    OPT_ENUM("batch-fsync-mode", struct posix, batch_fsync_mode, fsync_modes, .def = "reverse-fsync", .live = true,
             .help = "accepted; every fsync is done at once on a pool thread"),
    OPT_IGNORED("batch-fsync-delay-usec", .help = "fsyncs are not delayed"),
    OPT_BOOL("update-link-count-parent", struct posix, update_pgfid, .live = true,
             .help = "keep trusted.pgfid.*: links per parent directory"),
    OPT_BOOL("gfid2path", struct posix, gfid2path, .def = "on", .live = true,
             .help = "keep trusted.gfid2path.*: a name per link"),
    OPT_STR("gfid2path-separator", struct posix, gfid2path_separator, .def = ":",
            .help = "between paths in glusterfs.gfidtopath"),
    OPT_U32("shared-brick-count", struct posix, shared_brick_count, .def = "1", .live = true,
            .help = "bricks of this volume on the same file system: statfs is divided by it"),
    OPT_BOOL("disable-landfill-purge", struct posix, disable_landfill_purge, .live = true,
             .help = "leave landfill as it is"),
    OPT_MODE("force-create-mode", struct posix, force_create_mode, .def = "0000", .live = true,
             .help = "permissions every new file gets"),
    OPT_MODE("force-directory-mode", struct posix, force_directory_mode, .def = "0000", .live = true,
             .help = "permissions every new directory gets"),
    OPT_MODE("create-mask", struct posix, create_mask, .def = "0777", .live = true,
             .help = "permissions a new file may have"),
    OPT_MODE("create-directory-mask", struct posix, create_directory_mask, .def = "0777", .live = true,
             .help = "permissions a new directory may have"),
    OPT_U32("max-hardlinks", struct posix, max_hardlinks, .def = "100", .live = true, .help = "0: no limit"),
    OPT_BOOL("fips-mode-rchecksum", struct posix, fips_rchecksum, .live = true,
             .help = "SHA-256 instead of MD5 as strong checksum"),
    OPT_BOOL("ctime", struct posix, ctime, .def = "on", .live = true,
             .help = "keep the client's times in trusted.glusterfs.mdata"),
    OPT_SIZE("inline-write-size", struct posix, inline_write_bytes, .def = "64KB", .live = true,
             .help = "buffered writes up to this size run on the loop, larger ones on the pool"),
    OPT_IGNORED("linux-aio", .help = "reads and writes never block the loop anyway"),
    OPT_IGNORED("linux-io_uring", .help = "reads and writes never block the loop anyway"),
    OPT_IGNORED("background-unlink", .help = "blocks of large files are always freed beside other operations"),
    OPT_END,
};

bool posix_step(struct posix *s)
{
    if (s->crashed)
        return false;
    if (s->crash_steps && --s->crash_steps == 0)
        s->crashed = true;
    return !s->crashed;
}

uint32_t posix_crash_at(struct translator *me, uint32_t steps)
{
    struct posix *s = me->state;
    uint32_t left = s->crash_steps;
    s->crash_steps = steps;
    return left;
}

static int posix_init(struct translator *me, struct error *err)
{
    struct posix *s = me->state;

    s->brick_fd = s->gfs_fd = s->unlink_fd = -1;
    list_init(&s->node_lru);
    waitq_init(&s->idle);
    waitq_init(&s->closed);
    list_init(&s->to_close);
    s->health_timer.env = me->env;
    if (!s->directory)
        return error_set(err, -EINVAL, "there is no 'option directory': it names the brick's path");
    s->path = mem_alloc(PATH_MAX);
    s->value = mem_alloc(XATTR_BYTES_MAX + 1);
    s->names = mem_alloc(XATTR_BYTES_MAX);
    return s->path && s->value && s->names ? 0 : -ENOMEM;
}

/* All but "none" promise the same as an fsync at once; "none" promises less. */
static void say_what_has_no_effect(struct translator *me)
{
    struct posix *s = me->state;
    const char *mode = fsync_modes[s->batch_fsync_mode];

    if (strcmp(mode, "reverse-fsync") != 0)
        TLOG(me, LOG_WARNING, "option-ignored",
             "option batch-fsync-mode %s has no effect: every fsync is done at once; leaving it out changes nothing",
             mode);
}

static FIBER int posix_start(struct translator *me, struct error *err)
{
    int r = brick_open(me, err);

    say_what_has_no_effect(me);
    if (r < 0)
        return r;
    posix_watch_start(me);
    notify_parents(me, &(struct event) { .kind = EVENT_CHILD_UP });
    return 0;
}

static FIBER void posix_stop(struct translator *me)
{
    posix_watch_stop(me);
    posix_wait_closed(me);
}

static void posix_fini(struct translator *me)
{
    struct posix *s = me->state;
    while (!list_empty(&s->node_lru))
        pnode_drop_file(s, list_first(&s->node_lru, struct pnode, lru));
    brick_close(s);
    mem_free(s->path);
    mem_free(s->value);
    mem_free(s->names);
    s->path = s->value = s->names = NULL;
}

static void posix_dump(struct translator *me, struct dump *out)
{
    struct posix *s = me->state;
    dump_printf(out, "directory", "%s", s->directory);
    dump_printf(out, "xattr_namespace", "%s", s->user_namespace ? "user" : "trusted");
    dump_printf(out, "cached_files", "%u", s->node_files);
    dump_printf(out, "cached_files_max", "%u", s->node_files_max);
    dump_printf(out, "inline_ops", "%llu", (unsigned long long)s->inline_ops);
    dump_printf(out, "pool_ops", "%llu", (unsigned long long)s->pool_ops);
    dump_printf(out, "close_removed_ns", "%llu", (unsigned long long)s->close_ns);
    dump_printf(out, "room_bytes", "%lld", (long long)s->room_bytes);
}

const struct translator_class posix_class = {
    .type = "storage/posix",
    .state_size = sizeof(struct posix),
    .options = posix_options,
    .is_leaf = true,
    .uses_inode_ctx = true,
    .uses_fd_ctx = true,
    .ops = {
        [OP_LOOKUP] = posix_lookup,
        [OP_STAT] = posix_stat,
        [OP_READLINK] = posix_readlink,
        [OP_ACCESS] = posix_access,
        [OP_MKNOD] = posix_mknod,
        [OP_MKDIR] = posix_mkdir,
        [OP_SYMLINK] = posix_symlink,
        [OP_CREATE] = posix_create,
        [OP_LINK] = posix_link,
        [OP_UNLINK] = posix_unlink,
        [OP_RMDIR] = posix_rmdir,
        [OP_RENAME] = posix_rename,
        [OP_OPEN] = posix_open,
        [OP_OPENDIR] = posix_opendir,
        [OP_READ] = posix_read,
        [OP_WRITE] = posix_write,
        [OP_TRUNCATE] = posix_truncate,
        [OP_FALLOCATE] = posix_allocate, /* the other name is libc's */
        [OP_SEEK] = posix_seek,
        [OP_COPY_RANGE] = posix_copy_range,
        [OP_FLUSH] = posix_flush,
        [OP_FSYNC] = posix_fsync,
        [OP_FSYNCDIR] = posix_fsyncdir,
        [OP_STATFS] = posix_statfs,
        [OP_SETATTR] = posix_setattr,
        [OP_SETXATTR] = posix_setxattr,
        [OP_GETXATTR] = posix_getxattr,
        [OP_REMOVEXATTR] = posix_removexattr,
        [OP_XATTROP] = posix_xattrop,
        [OP_READDIR] = posix_readdir,
        [OP_READDIRP] = posix_readdirp,
        [OP_RCHECKSUM] = posix_rchecksum,
        [OP_BLOCKSUMS] = posix_blocksums,
        [OP_COMPOUND] = default_compound,
    },
    .init = posix_init,
    .start = posix_start,
    .stop = posix_stop,
    .fini = posix_fini,
    .inode_forget = posix_inode_forget,
    .fd_release = posix_fd_release,
    .dump = posix_dump,
};
