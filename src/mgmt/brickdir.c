#include "mgmt/brickdir.h"
#include "core/mem.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

/* The second is the name of the first for processes that may not use trusted.* (docs/on-disk.md "User mode"). */
static const char *const id_names[] = { "trusted.glusterfs.volume-id", "user.glusterfs.volume-id" };
static const char *const gfid_names[] = { "trusted.gfid", "user.gfid" };

static void refuse(struct brickdir *b, int r, const char *fmt, ...) PRINTF_LIKE(3, 4);
static void refuse(struct brickdir *b, int r, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(b->err.text, sizeof(b->err.text), fmt, args);
    va_end(args);
    b->ret = r;
}

static bool is_inside(const char *path, const char *folder)
{
    size_t length = strlen(folder);

    return strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

static bool has_mark(const char *path)
{
    char value[16];

    for (int i = 0; i < 2; i++) {
        if (getxattr(path, id_names[i], value, sizeof(value)) >= 0 ||
            getxattr(path, gfid_names[i], value, sizeof(value)) >= 0)
            return true;
    }
    return false;
}

static int get_id(const char *path, struct gfid *ret_id)
{
    for (int i = 0; i < 2; i++) {
        if (getxattr(path, id_names[i], ret_id->bytes, sizeof(ret_id->bytes)) == (ssize_t)sizeof(ret_id->bytes))
            return 0;
    }
    return -ENODATA;
}

static int set_id(const char *path, const struct gfid *id)
{
    if (setxattr(path, id_names[0], id->bytes, sizeof(id->bytes), 0) == 0)
        return 0;
    if (errno != EPERM)
        return -errno;
    return setxattr(path, id_names[1], id->bytes, sizeof(id->bytes), 0) < 0 ? -errno : 0;
}

/* Every folder above it, "/" excepted: path is cut and restored. */
static bool parent_is_brick(char *path, const char **ret_parent)
{
    for (size_t i = strlen(path); i-- > 1;) {
        if (path[i] != '/')
            continue;
        path[i] = '\0';
        if (has_mark(path)) {
            *ret_parent = path; /* cut: the caller reports it, and is done */
            return true;
        }
        path[i] = '/';
    }
    return false;
}

static void check_place(struct brickdir *b, const struct stat *st)
{
    struct stat root, parent;

    (void)snprintf(b->scratch, sizeof(b->scratch), "%s/..", b->real_path);
    if (b->is_forced || stat("/", &root) < 0 || stat(b->scratch, &parent) < 0)
        return;
    if (parent.st_dev != st->st_dev)
        refuse(
            b, -EINVAL,
            "The brick %s:%s is a mount point. Please create a sub-directory under the mount point and use that as the "
            "brick directory. Or use 'force' at the end of the command if you want to override this behavior.",
            b->host, b->path);
    else if (root.st_dev == st->st_dev)
        refuse(
            b, -EINVAL,
            "The brick %s:%s is being created in the root partition. It is recommended that you don't use the system's "
            "root partition for storage backend. Or use 'force' at the end of the command if you want to override this "
            "behavior.",
            b->host, b->path);
}

static void check_marks(struct brickdir *b)
{
    const char *parent;

    if (b->is_forced)
        return;
    if (has_mark(b->real_path)) {
        refuse(b, -EEXIST, "%s is already part of a volume", b->path);
        return;
    }
    (void)snprintf(b->scratch, sizeof(b->scratch), "%s", b->real_path);
    if (parent_is_brick(b->scratch, &parent))
        refuse(b, -EEXIST, "parent directory %s is already part of a volume", parent);
}

/* What is below the mount point of its file system, which is what the store keeps. */
static void find_mount(struct brickdir *b, const struct stat *st)
{
    size_t mount_bytes = strlen(b->real_path);
    struct stat above;

    (void)snprintf(b->scratch, sizeof(b->scratch), "%s", b->real_path);
    for (size_t i = mount_bytes; i-- > 0;) {
        if (b->real_path[i] != '/')
            continue;
        b->scratch[i > 0 ? i : 1] = '\0';
        if (stat(b->scratch, &above) < 0 || above.st_dev != st->st_dev)
            break;
        mount_bytes = i;
    }
    (void)snprintf(b->mount_dir, sizeof(b->mount_dir), "%s",
                   b->real_path[mount_bytes] ? b->real_path + mount_bytes : "/");
}

static void look(struct brickdir *b, struct stat *st)
{
    struct statvfs fs;

    if (stat(b->path, st) < 0) {
        refuse(b, -errno, "%s:%s: %s", b->host, b->path, strerror(errno));
        return;
    }
    if (!S_ISDIR(st->st_mode)) {
        refuse(b, -ENOTDIR, "The provided path %s which is already present, is not a directory", b->path);
        return;
    }
    if (!realpath(b->path, b->real_path)) {
        refuse(b, -errno, "%s:%s: %s", b->host, b->path, strerror(errno));
        return;
    }
    if (statvfs(b->path, &fs) == 0)
        b->fsid = fs.f_fsid;
    find_mount(b, st);
}

static void make(struct brickdir *b)
{
    if (strlen(b->path) > BRICK_PATH_MAX - 64) {
        refuse(b, -ENAMETOOLONG, "brick path %s is too long.", b->path);
        return;
    }
    if (is_inside(b->path, b->work_folder)) {
        refuse(b, -EINVAL, "Brick isn't allowed to be created inside glusterd's working directory.");
        return;
    }
    if (mkdir(b->path, 0755) == 0)
        b->was_made = true;
    else if (errno != EEXIST)
        refuse(b, -errno, "Failed to create brick directory for brick %s:%s. Reason : %s ", b->host, b->path,
               strerror(errno));
}

static void mark(struct brickdir *b)
{
    int r = set_id(b->real_path, &b->volume_id);

    if (r < 0)
        refuse(b, r, "Glusterfs is not supported on brick: %s:%s.\nSetting extended attributes failed, reason: %s.",
               b->host, b->path, strerror(-r));
    else
        b->was_marked = true;
}

void brickdir_prepare(void *arg)
{
    struct brickdir *b = arg;
    struct stat st;

    make(b);
    if (b->ret == 0)
        look(b, &st);
    if (b->ret == 0)
        check_place(b, &st);
    if (b->ret == 0)
        check_marks(b);
    if (b->ret == 0)
        mark(b);
    if (b->ret < 0)
        brickdir_undo(b);
}

void brickdir_undo(void *arg)
{
    struct brickdir *b = arg;
    struct gfid id;

    if (b->was_marked && get_id(b->real_path, &id) == 0 && gfid_equal(&id, &b->volume_id)) {
        for (int i = 0; i < 2; i++)
            (void)removexattr(b->real_path, id_names[i]); /* one of them is there */
    }
    if (b->was_made)
        (void)rmdir(b->path); /* if somebody put something there, it stays */
    b->was_marked = b->was_made = false;
}

void brickdir_check(void *arg)
{
    struct brickdir *b = arg;
    struct gfid id;
    struct stat st;
    int r;

    if (stat(b->path, &st) < 0) {
        refuse(b, -errno, "Failed to find brick directory %s for volume. Reason : %s", b->path, strerror(errno));
        return;
    }
    r = get_id(b->path, &id);
    if (r < 0 && b->is_forced) {
        r = set_id(b->path, &b->volume_id);
        if (r < 0)
            refuse(b, r, "Failed to set extended attribute trusted.glusterfs.volume-id on %s. Reason : %s", b->path,
                   strerror(-r));
    } else if (r < 0)
        refuse(b, r, "Failed to get extended attribute trusted.glusterfs.volume-id for brick dir %s. Reason : %s",
               b->path, strerror(-r));
    else if (!gfid_equal(&id, &b->volume_id))
        refuse(b, -EINVAL, "Volume id mismatch for brick %s:%s. Expected volume id %s, volume id %s found", b->host,
               b->path, GFID_TEXT(&b->volume_id), GFID_TEXT(&id));
}
