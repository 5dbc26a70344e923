/* storage/posix/brick.c - opening a brick: the checks and the tree of docs/on-disk.md "start". */
#include "storage/posix/posix_internal.h"
#include <stdio.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>

#define PROBE_XATTR "trusted.glusterfs.mortar-probe"

static int refuse_open(struct translator *me, int e, struct error *err)
{
    struct posix *s = me->state;
    switch (e) {
    case -ENOENT:
        return error_set(err, e,
                         "brick directory %s does not exist; make it, mount what belongs there, or correct "
                         "'option directory'",
                         s->directory);
    case -ENOTDIR: return error_set(err, e, "%s is not a directory; 'option directory' must name one", s->directory);
    case -EACCES:
        return error_set(err, e,
                         "brick directory %s cannot be opened: permission denied; run the brick as a user who "
                         "may",
                         s->directory);
    default: return error_set(err, e, "brick directory %s cannot be opened: %s", s->directory, strerror(-e));
    }
}

static int check_writable(struct posix *s, struct error *err)
{
    struct statvfs v;
    if (fstatvfs(s->brick_fd, &v) < 0)
        return error_set(err, -errno, "file system of brick directory %s cannot be asked for its state: %s",
                         s->directory, strerror(errno));
    if (v.f_flag & ST_RDONLY)
        return error_set(err, -EROFS,
                         "brick directory %s is on a file system mounted read-only; mount it read-write "
                         "(after checking why it is not)",
                         s->directory);
    return 0;
}

static int check_xattrs(struct translator *me, struct error *err)
{
    struct posix *s = me->state;
    if (fgetxattr(s->brick_fd, "user.x", NULL, 0) >= 0 || errno != EOPNOTSUPP)
        return 0;
    if (!s->mandate_attribute) {
        TLOG(me, LOG_WARNING, "no-xattrs", "path=%s the file system has no extended attributes; most things will fail",
             s->directory);
        return 0;
    }
    return error_set(err, -EOPNOTSUPP,
                     "file system of brick directory %s does not support extended attributes; use "
                     "one that does (xfs, ext4, btrfs), with user_xattr if it is an option",
                     s->directory);
}

static bool root_has(struct posix *s, const char *name)
{
    return fgetxattr(s->brick_fd, name, NULL, 0) >= 0;
}

/* Which name space the brick's xattrs are in: what is there decides, then what the process may do. */
static int choose_namespace(struct translator *me, struct error *err)
{
    struct posix *s = me->state;
    struct stat st;
    bool may = fsetxattr(s->brick_fd, PROBE_XATTR, "1", 1, 0) == 0;

    if (may)
        (void)fremovexattr(s->brick_fd, PROBE_XATTR); /* a left-over probe harms nobody */
    bool has_user = root_has(s, "user.gfid"), has_trusted = may && root_has(s, XATTR_GFID);
    if (s->xattr_namespace == NAMESPACE_USER)
        s->user_namespace = true;
    else if (s->xattr_namespace == NAMESPACE_TRUSTED)
        s->user_namespace = false;
    else
        s->user_namespace = has_trusted ? false : has_user || !may;
    if (!s->user_namespace && !may)
        return error_set(err, -EPERM,
                         "brick %s is to keep trusted.* attributes (option xattr-namespace trusted), which "
                         "needs CAP_SYS_ADMIN; run it as root or set xattr-namespace to user",
                         s->directory);
    bool has_tree =
        fstatat(s->brick_fd, PRIVATE_DIR "/00/00/00000000-0000-0000-0000-000000000001", &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (s->user_namespace && !has_user && !has_trusted && has_tree)
        return error_set(err, -EPERM,
                         "brick %s was written with trusted.* attributes, which this process may not read; "
                         "run it as root or with CAP_SYS_ADMIN",
                         s->directory);
    if (s->user_namespace && has_trusted && !has_user)
        return error_set(err, -EINVAL,
                         "brick %s was written with trusted.* attributes, but option xattr-namespace is "
                         "user; set it to auto",
                         s->directory);
    if (!s->user_namespace && !has_trusted && has_user)
        return error_set(err, -EINVAL,
                         "brick %s was written with user.* attributes, but option xattr-namespace is "
                         "trusted; set it to auto",
                         s->directory);
    if (s->user_namespace)
        TLOG(me, LOG_INFO, "user-namespace", "path=%s reason=%s trusted.* attributes are kept as user.*", s->directory,
             s->xattr_namespace == NAMESPACE_USER ? "option"
             : has_user                           ? "brick"
                                                  : "no CAP_SYS_ADMIN");
    return 0;
}

static int check_volume_id(struct posix *s, struct error *err)
{
    struct gfid have;
    char want_text[GFID_TEXT_LEN + 1], have_text[GFID_TEXT_LEN + 1];
    struct xnode x = { .fd = s->brick_fd };

    if (!s->volume_id_text)
        return 0;
    if (gfid_parse(s->volume_id_text, &s->volume_id) < 0)
        return error_set(err, -EINVAL, "'%s' is not a volume id (option volume-id of brick %s takes a UUID)",
                         s->volume_id_text, s->directory);
    ssize_t n = px_get(s, &x, XATTR_VOLUME_ID, have.bytes, sizeof have.bytes);
    if (n == -ENODATA)
        return error_set(err, -EINVAL,
                         "brick directory %s carries no volume id, so it may be the empty mount point of a "
                         "disk that is not mounted; mount it, or if it is the right place: setfattr -n "
                         "%s -v 0x<volume id without dashes> %s",
                         s->directory, s->user_namespace ? "user.glusterfs.volume-id" : XATTR_VOLUME_ID, s->directory);
    if (n < 0)
        return error_set(err, (int)n, "volume id of brick directory %s cannot be read: %s", s->directory,
                         strerror((int)-n));
    if (n != sizeof have.bytes)
        return error_set(err, -EINVAL, "volume id of brick directory %s is %zd bytes long instead of 16", s->directory,
                         n);
    if (!gfid_equal(&have, &s->volume_id))
        return error_set(err, -EINVAL,
                         "brick directory %s belongs to volume %s, not to %s; correct 'option directory' "
                         "or 'option volume-id'",
                         s->directory, gfid_format(&have, have_text), gfid_format(&s->volume_id, want_text));
    return 0;
}

static int no_room(struct posix *s, int e, struct error *err)
{
    return error_set(err, e,
                     "file system of brick directory %s is full: there is no room for the brick's own files; "
                     "free some space and start again",
                     s->directory);
}

static int check_root_gfid(struct posix *s, struct error *err)
{
    struct gfid have;
    char text[GFID_TEXT_LEN + 1];
    struct xnode x = { .fd = s->brick_fd };

    int r = px_get_gfid(s, &x, &have);
    if (r == -ENODATA) {
        r = px_set(s, &x, XATTR_GFID, gfid_root.bytes, 16, XATTR_CREATE);
        if (r == -ENOSPC || r == -EDQUOT)
            return no_room(s, r, err);
        if (r < 0)
            return error_set(err, r, "gfid of brick directory %s cannot be set: %s", s->directory, strerror(-r));
        return 0;
    }
    if (r < 0)
        return error_set(err, r, "gfid of brick directory %s cannot be read: %s", s->directory, strerror(-r));
    if (!gfid_is_root(&have))
        return error_set(err, -EINVAL,
                         "brick directory %s is not the root of a brick but something inside one (its gfid "
                         "is %s); 'option directory' must name the brick's top",
                         s->directory, gfid_format(&have, text));
    return 0;
}

/* ---- the tree ---- */

static int make_dir(int at, const char *rel, uint32_t mode)
{
    return mkdirat(at, rel, mode) < 0 && errno != EEXIST ? -errno : 0;
}

static int make_root_handle(struct posix *s, struct error *err)
{
    struct stat root, there;
    const char *rel = "00/00/00000000-0000-0000-0000-000000000001";

    int r = make_dir(s->gfs_fd, "00/00", 0700);
    if (r == 0 && symlinkat("../../..", s->gfs_fd, rel) < 0 && errno != EEXIST)
        r = -errno;
    if (r < 0)
        return r;
    if (fstat(s->brick_fd, &root) < 0)
        return -errno;
    if (fstatat(s->gfs_fd, rel, &there, 0) < 0 || there.st_ino != root.st_ino || there.st_dev != root.st_dev)
        return error_set(err, -EINVAL,
                         "%s/" PRIVATE_DIR "/%s does not lead back to the brick's top; is " PRIVATE_DIR
                         " of another brick mounted or copied here?",
                         s->directory, rel);
    return 0;
}

static int empty_unlink_dir(struct posix *s)
{
    int fd = openat(s->unlink_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir)
        return -errno;
    struct dirent *e;
    while ((e = readdir(dir))) {
        struct gfid g;
        struct stat st;
        if (gfid_parse(e->d_name, &g) < 0 || fstatat(s->unlink_fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        side_forget(s, &g, st.st_ino);
        (void)unlinkat(s->unlink_fd, e->d_name, 0); /* tried again at the next start */
    }
    closedir(dir);
    return 0;
}

static int make_private_dirs(struct posix *s)
{
    static const struct {
        const char *rel;
        uint32_t mode;
    } dirs[] = {
        { "landfill", 0755 },   { "unlink", 0600 },           { "indices", 0600 },
        { "changelogs", 0600 }, { "changelogs/htime", 0600 }, { "changelogs/csnap", 0600 },
    };
    int r = 0;
    for (unsigned i = 0; r == 0 && i < 256; i++) {
        char rel[3];
        snprintf(rel, sizeof rel, "%02x", i);
        r = make_dir(s->gfs_fd, rel, 0700);
    }
    /* Without the right to override permissions, a directory of mode 0600 could not be entered. */
    uint32_t more = geteuid() ? 0100 : 0;
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(dirs); i++)
        r = make_dir(s->gfs_fd, dirs[i].rel, dirs[i].mode | more);
    return r;
}

/* Bricks of 3.2 and older kept it at the top. */
static void move_old_landfill(struct posix *s)
{
    struct stat st;
    char to[64];
    if (fstatat(s->brick_fd, ".landfill", &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
        return;
    snprintf(to, sizeof to, "landfill/old-%llx", (unsigned long long)st.st_ino);
    (void)renameat(s->brick_fd, ".landfill", s->gfs_fd, to); /* if not, it stays where it harms nobody */
}

static int open_private_dir(struct posix *s, struct error *err)
{
    int r = make_dir(s->brick_fd, PRIVATE_DIR, geteuid() ? 0700 : 0600);
    if (r < 0)
        return r;
    s->gfs_fd = openat(s->brick_fd, PRIVATE_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (s->gfs_fd < 0)
        return -errno;
    if (flock(s->gfs_fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        return error_set(err, -EBUSY, "brick %s is already served by another process; stop that one first",
                         s->directory);
    return 0;
}

int handle_tree_make(struct posix *s, struct error *err)
{
    struct error own = { .text = "" };

    int r = open_private_dir(s, &own);
    if (r == 0)
        r = make_private_dirs(s);
    if (r == 0)
        r = make_root_handle(s, &own);
    if (r == 0) {
        s->unlink_fd = openat(s->gfs_fd, "unlink", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        r = s->unlink_fd < 0 ? -errno : 0;
    }
    if (r == 0)
        return 0;
    if (own.text[0])
        return error_set(err, r, "%s", own.text);
    if (r == -ENOSPC || r == -EDQUOT)
        return no_room(s, r, err);
    return error_set(err, r,
                     "%s/" PRIVATE_DIR " cannot be made or opened: %s; check its permissions and those of the "
                     "brick directory",
                     s->directory, strerror(-r));
}

/* ---- start and end ---- */

static void limit_files(struct posix *s)
{
    struct rlimit lim;
    s->node_files_max = NODE_FILES_MAX;
    if (getrlimit(RLIMIT_NOFILE, &lim) < 0)
        return;
    if (lim.rlim_cur < lim.rlim_max) {
        lim.rlim_cur = MIN(lim.rlim_max, (rlim_t)1 << 20);
        (void)setrlimit(RLIMIT_NOFILE, &lim); /* then with what there is */
    }
    if (getrlimit(RLIMIT_NOFILE, &lim) == 0 && lim.rlim_cur / 4 < s->node_files_max)
        s->node_files_max = MAX((uint32_t)(lim.rlim_cur / 4), 16u);
}

static int own_root(struct posix *s, struct error *err)
{
    if (s->brick_uid < 0 && s->brick_gid < 0)
        return 0;
    if (fchown(s->brick_fd, (uid_t)s->brick_uid, (gid_t)s->brick_gid) < 0)
        return error_set(err, -errno, "brick directory %s cannot be given to %d:%d (options brick-uid, brick-gid): %s",
                         s->directory, s->brick_uid, s->brick_gid, strerror(errno));
    return 0;
}

int brick_open(struct translator *me, struct error *err)
{
    struct posix *s = me->state;
    struct stat st;

    limit_files(s);
    umask(0);
    s->brick_fd = open(s->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->brick_fd < 0)
        return refuse_open(me, -errno, err);
    if (fstat(s->brick_fd, &st) < 0)
        return refuse_open(me, -errno, err);
    s->dev = st.st_dev;
    s->uid = geteuid();
    s->gid = getegid();
    int r = check_xattrs(me, err);
    if (r == 0)
        r = check_writable(s, err);
    if (r == 0)
        r = choose_namespace(me, err);
    if (r == 0)
        r = check_volume_id(s, err);
    if (r == 0)
        r = check_root_gfid(s, err);
    if (r == 0)
        r = handle_tree_make(s, err);
    if (r == 0)
        r = side_start(s, err);
    if (r == 0)
        r = own_root(s, err);
    if (r < 0)
        return r;
    r = empty_unlink_dir(s);
    if (r < 0)
        return error_set(err, r, "%s/" PRIVATE_DIR "/unlink cannot be emptied: %s", s->directory, strerror(-r));
    move_old_landfill(s);
    return 0;
}

static void close_one(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void brick_close(struct posix *s)
{
    close_one(&s->unlink_fd);
    close_one(&s->gfs_fd);
    close_one(&s->brick_fd);
}
