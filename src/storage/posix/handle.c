/* storage/posix/handle.c - .glusterfs/xx/yy/<gfid>: how inodes are found by gfid (docs/on-disk.md "handles"). */
#include "storage/posix/posix_internal.h"
#include <stdio.h>
#include <sys/syscall.h>

#define DEPTH_MAX 4096 /* directories one inside the other; more is a loop */

struct open_how_args {
    uint64_t flags, mode, resolve;
};
#define CACHED_ONLY 0x20 /* RESOLVE_CACHED of openat2(2) */

static int open_maybe_cached(int dir_fd, const char *rel, int flags, bool cached_only)
{
    if (!cached_only) {
        int fd = openat(dir_fd, rel, flags | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
    }
    struct open_how_args how = { .flags = (uint64_t)(flags | O_CLOEXEC), .resolve = CACHED_ONLY };
    long fd = syscall(SYS_openat2, dir_fd, rel, &how, sizeof how);
    if (fd >= 0)
        return (int)fd;
    return errno == ENOSYS || errno == EINVAL || errno == EPERM ? -EAGAIN : -errno;
}

char *handle_rel(const struct gfid *g, char text[static HANDLE_REL_LEN + 1])
{
    gfid_format(g, text + 6);
    text[0] = text[6];
    text[1] = text[7];
    text[2] = '/';
    text[3] = text[8];
    text[4] = text[9];
    text[5] = '/';
    return text;
}

void handle_dir_text(const struct gfid *parent, const char *name, char text[static DIR_LINK_MAX])
{
    char rel[HANDLE_REL_LEN + 1];
    snprintf(text, DIR_LINK_MAX, "../../%s/%s", handle_rel(parent, rel), name);
}

int handle_parse_dir_text(const char *text, struct gfid *ret_parent, const char **ret_name)
{
    char gfid_text[GFID_TEXT_LEN + 1], rel[HANDLE_REL_LEN + 1];
    struct gfid g;
    size_t prefix = 6 + HANDLE_REL_LEN;

    if (strncmp(text, "../../", 6) != 0 || strlen(text) < prefix + 2 || text[prefix] != '/')
        return -EINVAL;
    memcpy(gfid_text, text + 12, GFID_TEXT_LEN);
    gfid_text[GFID_TEXT_LEN] = '\0';
    if (gfid_parse(gfid_text, &g) < 0 || strncmp(text + 6, handle_rel(&g, rel), HANDLE_REL_LEN) != 0 ||
        strchr(text + prefix + 1, '/'))
        return -EINVAL;
    *ret_parent = g;
    *ret_name = text + prefix + 1;
    return 0;
}

int handle_read_dir(struct posix *s, const struct gfid *g, char text[static DIR_LINK_MAX])
{
    char rel[HANDLE_REL_LEN + 1];
    ssize_t n = readlinkat(s->gfs_fd, handle_rel(g, rel), text, DIR_LINK_MAX - 1);
    if (n < 0)
        return -errno;
    text[n] = '\0';
    return 0;
}

/* ---- making and removing ---- */

/* .glusterfs/xx is made at start, but somebody may have tidied up. */
static int make_parents(struct posix *s, const char *rel)
{
    char dir[HANDLE_REL_LEN + 1];
    memcpy(dir, rel, 6);
    dir[5] = '\0';
    if (mkdirat(s->gfs_fd, dir, 0700) == 0 || errno == EEXIST)
        return 0;
    if (errno != ENOENT)
        return -errno;
    dir[2] = '\0';
    if (mkdirat(s->gfs_fd, dir, 0700) < 0 && errno != EEXIST)
        return -errno;
    dir[2] = '/';
    return mkdirat(s->gfs_fd, dir, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

static int make_once(struct posix *s, const char *rel, struct pfile *dir, const char *name, const char *dir_text)
{
    int r = dir_text ? symlinkat(dir_text, s->gfs_fd, rel) : linkat(dir->fd, name, s->gfs_fd, rel, 0);
    return r < 0 ? -errno : 0;
}

/* Something is at the handle's place. 0: it is right; -EEXIST: it is another live inode; -EAGAIN: it was stale and is
 * removed. */
static int settle_existing(struct posix *s, const char *rel, const struct gfid *g, struct pfile *dir, const char *name,
                           const char *dir_text)
{
    struct stat have, want;
    char text[DIR_LINK_MAX];

    if (fstatat(s->gfs_fd, rel, &have, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? -EAGAIN : -errno;
    if (dir_text) {
        int r = handle_read_dir(s, g, text);
        if (r == 0 && strcmp(text, dir_text) == 0)
            return 0;
        if (r < 0 || fstatat(s->gfs_fd, rel, &have, 0) == 0) {
            struct gfid there = gfid_null;
            int fd = openat(s->gfs_fd, rel, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            struct xnode x = { .fd = fd };
            bool is_ours = fd >= 0 && px_get_gfid(s, &x, &there) == 0 && gfid_equal(&there, g);
            if (fd >= 0)
                close(fd);
            struct stat dst;
            /* The same directory under two handles' texts: a rename that stopped halfway. */
            if (is_ours && fstatat(dir->fd, name, &dst, AT_SYMLINK_NOFOLLOW) == 0 && dst.st_ino != have.st_ino)
                return -EEXIST;
        }
    } else {
        if (fstatat(dir->fd, name, &want, AT_SYMLINK_NOFOLLOW) < 0)
            return -errno;
        if (have.st_ino == want.st_ino)
            return 0;
        if (have.st_nlink > 1)
            return -EEXIST;
    }
    return unlinkat(s->gfs_fd, rel, 0) < 0 && errno != ENOENT ? -errno : -EAGAIN;
}

int handle_make(struct posix *s, const struct gfid *g, struct pfile *dir, const struct gfid *dir_gfid, const char *name,
                bool is_dir)
{
    char rel[HANDLE_REL_LEN + 1], text[DIR_LINK_MAX];
    const char *dir_text = NULL;

    if (gfid_is_root(g))
        return 0;
    handle_rel(g, rel);
    if (is_dir) {
        handle_dir_text(dir_gfid, name, text);
        dir_text = text;
    }
    for (int tries = 0; tries < 3; tries++) {
        int r = make_once(s, rel, dir, name, dir_text);
        if (r == -ENOENT) {
            r = make_parents(s, rel);
            if (r == 0)
                r = make_once(s, rel, dir, name, dir_text);
        }
        if (r == -EEXIST)
            r = settle_existing(s, rel, g, dir, name, dir_text);
        if (r != -EAGAIN)
            return r;
    }
    return -EEXIST;
}

int handle_remove(struct posix *s, const struct gfid *g)
{
    char rel[HANDLE_REL_LEN + 1];
    if (gfid_is_root(g))
        return -EBUSY;
    return unlinkat(s->gfs_fd, handle_rel(g, rel), 0) < 0 && errno != ENOENT ? -errno : 0;
}

/* ---- opening ---- */

/* Opens a directory whose chain of handles is longer than the kernel follows, from the root down. */
static int open_deep_dir(struct posix *s, const struct gfid *g)
{
    int r;
    SCOPED_FREE char *path = handle_dir_path(s, g, &r);
    if (!path)
        return r;
    int at = dup(s->brick_fd);
    if (at < 0)
        return -errno;
    for (char *name = path + 1, *end; *name; name = end) {
        end = strchrnul(name, '/');
        if (*end)
            *end++ = '\0';
        int next = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        r = -errno;
        close(at);
        if (next < 0)
            return r;
        at = next;
    }
    return at;
}

/* The directory behind a handle symlink. The gfid of what is found decides: after a crash in a rename the text may
 * lead to another directory. */
static int open_dir(struct posix *s, const struct gfid *g, const char *rel, bool cached_only, struct pfile **ret_file)
{
    struct stat st;
    struct gfid found = gfid_null;

    int fd = gfid_is_root(g) ? openat(s->brick_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                             : open_maybe_cached(s->gfs_fd, rel, O_RDONLY | O_DIRECTORY, cached_only);
    if (fd == -1)
        fd = -errno;
    if (fd == -ELOOP)
        fd = cached_only ? -EAGAIN : open_deep_dir(s, g);
    if (fd == -ENOENT || fd == -ENOTDIR) {
        (void)unlinkat(s->gfs_fd, rel, 0); /* it leads nowhere; the next look-up by name makes a right one */
        return -ENOENT;
    }
    if (fd < 0)
        return fd;
    struct xnode x = { .fd = fd };
    if (fstat(fd, &st) < 0 || px_get_gfid(s, &x, &found) < 0 || !gfid_equal(&found, g)) {
        close(fd);
        return -ENOENT;
    }
    struct pfile *f = pfile_new(fd, false, &st);
    if (!f)
        return -ENOMEM;
    *ret_file = f;
    return 0;
}

static int open_data(int dir_fd, const char *rel, bool cached_only)
{
    int fd = open_maybe_cached(dir_fd, rel, O_RDWR | O_NOFOLLOW | O_NONBLOCK, cached_only);
    if (fd == -EACCES || fd == -EROFS || fd == -EPERM || fd == -ETXTBSY)
        fd = open_maybe_cached(dir_fd, rel, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, cached_only);
    return fd;
}

static bool is_dir_handle(int dir_fd, const char *rel, const struct stat *st)
{
    char text[DIR_LINK_MAX];
    struct gfid parent;
    const char *name;

    /* A user's symlink has at least two names: its own and the handle. */
    if (!S_ISLNK(st->st_mode) || st->st_nlink > 1)
        return false;
    ssize_t n = readlinkat(dir_fd, rel, text, sizeof text - 1);
    if (n < 0)
        return false;
    text[n] = '\0';
    return handle_parse_dir_text(text, &parent, &name) == 0;
}

int handle_open(struct posix *s, const struct gfid *g, bool cached_only, struct pfile **ret_file, bool *ret_is_unlinked)
{
    char rel_text[HANDLE_REL_LEN + 1];
    struct stat st;
    int dir_fd = s->gfs_fd;
    const char *rel = handle_rel(g, rel_text);

    *ret_is_unlinked = false;
    if (gfid_is_root(g))
        return open_dir(s, g, rel, false, ret_file);
    int path_fd = open_maybe_cached(dir_fd, rel, O_PATH | O_NOFOLLOW, cached_only);
    if (path_fd == -ENOENT) {
        dir_fd = s->unlink_fd;
        rel = rel_text + 6;
        path_fd = open_maybe_cached(dir_fd, rel, O_PATH | O_NOFOLLOW, cached_only);
        *ret_is_unlinked = true;
    }
    if (path_fd < 0)
        return path_fd;
    if (fstat(path_fd, &st) < 0) {
        close(path_fd);
        return -EIO;
    }
    if (!*ret_is_unlinked && is_dir_handle(dir_fd, rel, &st)) {
        close(path_fd);
        return open_dir(s, g, rel, cached_only, ret_file);
    }
    int fd = S_ISREG(st.st_mode) ? open_data(dir_fd, rel, cached_only) : -EACCES;
    if (fd < 0 && fd != -EACCES) {
        close(path_fd);
        return fd;
    }
    if (fd >= 0)
        close(path_fd);
    struct pfile *f = pfile_new(fd >= 0 ? fd : path_fd, fd < 0, &st);
    if (!f)
        return -ENOMEM;
    *ret_file = f;
    return 0;
}

/* ---- paths ---- */

char *handle_dir_path(struct posix *s, const struct gfid *g, int *ret)
{
    struct gfid at = *g;
    SCOPED_FREE char *path = mem_strdup("");
    char text[DIR_LINK_MAX];

    *ret = -ENOMEM;
    for (int depth = 0; path && !gfid_is_root(&at); depth++) {
        struct gfid parent;
        const char *name;
        int r = depth < DEPTH_MAX ? handle_read_dir(s, &at, text) : -ELOOP;
        if (r == 0)
            r = handle_parse_dir_text(text, &parent, &name);
        if (r != 0) {
            *ret = r == -EINVAL ? -ENOTDIR : r;
            return NULL;
        }
        char *longer = mem_printf("/%s%s", name, path);
        mem_free(path);
        path = longer;
        at = parent;
    }
    if (!path)
        return NULL;
    return *path ? take(path) : mem_strdup("/");
}
