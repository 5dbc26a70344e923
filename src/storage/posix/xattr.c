/* storage/posix/xattr.c - xattrs of the brick under the names callers use, whatever name space they are kept in.
 *
 * In user mode trusted.X is kept as user.X, and in a side file for what the kernel refuses user xattrs on. */
#include "storage/posix/posix_internal.h"
#include <stdio.h>
#include <sys/xattr.h>
#include <xxhash.h>

#define NAME_BYTES_MAX 256

/* What user.X means trusted.X when names are listed in user mode: X begins with one of these. */
static const char *const internal_prefixes[] = {
    "gfid",    "gfid2path.",  "pgfid.",     "glusterfs.", "afr.",     "ec.",  "bit-rot.",  "ta.",
    "SGI_ACL", "reten_state", "start_time", "cloudsync.", "overlay.", "gfs.", "add-brick", NULL,
};

static bool is_trusted(const char *name)
{
    return strncmp(name, "trusted.", 8) == 0;
}

static bool is_internal_user(const char *name)
{
    if (strncmp(name, "user.", 5) != 0)
        return false;
    for (size_t i = 0; internal_prefixes[i]; i++) {
        size_t n = strlen(internal_prefixes[i]);
        if (strncmp(name + 5, internal_prefixes[i], n) == 0 &&
            (internal_prefixes[i][n - 1] == '.' || name[5 + n] == '\0' || i == 8))
            return true;
    }
    return false;
}

/* The name on disk, or NULL when it is kept in the side file. -errno in *ret for names that cannot be. */
static const char *disk_name(struct posix *s, const struct xnode *x, const char *name, char text[static NAME_BYTES_MAX],
                             int *ret)
{
    *ret = 0;
    if (strlen(name) >= NAME_BYTES_MAX) {
        *ret = -ERANGE;
        return name;
    }
    if (!s->user_namespace)
        return name;
    if (is_internal_user(name)) {
        *ret = -EPERM; /* a client's own user.gfid would be taken for ours */
        return name;
    }
    if (!is_trusted(name))
        return name;
    if (x->is_special)
        return NULL;
    snprintf(text, NAME_BYTES_MAX, "user.%s", name + 8);
    return text;
}

struct xnode xnode_of_file(struct posix *s, const struct pfile *f)
{
    struct xnode x = {
        .fd = f->fd, .is_special = !S_ISREG(f->type) && !S_ISDIR(f->type), .ino = f->ino, .follow = true
    };
    if (f->is_path) {
        snprintf(s->path, PATH_MAX, "/proc/self/fd/%d", f->fd);
        x.fd = -1;
        x.path = s->path;
    }
    return x;
}

struct xnode xnode_of_entry(struct posix *s, const struct pfile *dir, const char *name, const struct stat *st)
{
    snprintf(s->path, PATH_MAX, "/proc/self/fd/%d/%s", dir->fd, name);
    return (struct xnode) {
        .fd = -1, .path = s->path, .is_special = !S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode), .ino = st->st_ino
    };
}

ssize_t px_get(struct posix *s, const struct xnode *x, const char *name, void *data, size_t size_bytes)
{
    char text[NAME_BYTES_MAX];
    int r;
    const char *on_disk = disk_name(s, x, name, text, &r);
    if (r < 0)
        return r == -EPERM ? -ENODATA : r;
    if (!on_disk)
        return side_get(s, x, name, data, size_bytes);
    ssize_t n = x->fd >= 0  ? fgetxattr(x->fd, on_disk, data, size_bytes)
                : x->follow ? getxattr(x->path, on_disk, data, size_bytes)
                            : lgetxattr(x->path, on_disk, data, size_bytes);
    if (n < 0)
        return -errno;
    return n;
}

static int set_once(const struct xnode *x, const char *name, const void *data, size_t size_bytes, int flags)
{
    int r = x->fd >= 0  ? fsetxattr(x->fd, name, data, size_bytes, flags)
            : x->follow ? setxattr(x->path, name, data, size_bytes, flags)
                        : lsetxattr(x->path, name, data, size_bytes, flags);
    return r < 0 ? -errno : 0;
}

/* A process that is neither root nor may override permissions cannot put user xattrs on its own file of mode 0400. */
static int set_with_mode_lifted(const struct xnode *x, const char *name, const void *data, size_t size_bytes, int flags)
{
    struct stat st;
    if (x->fd < 0 || fstat(x->fd, &st) < 0 || (st.st_mode & S_IWUSR) ||
        fchmod(x->fd, (st.st_mode & 07777) | S_IWUSR) < 0)
        return -EACCES;
    int r = set_once(x, name, data, size_bytes, flags);
    if (fchmod(x->fd, st.st_mode & 07777) < 0 && r == 0)
        r = -errno;
    return r;
}

int px_set(struct posix *s, const struct xnode *x, const char *name, const void *data, size_t size_bytes, int flags)
{
    char text[NAME_BYTES_MAX];
    int r;
    const char *on_disk = disk_name(s, x, name, text, &r);
    if (r < 0)
        return r;
    if (!on_disk)
        return side_set(s, x, name, data, size_bytes, flags);
    r = set_once(x, on_disk, data, size_bytes, flags);
    if (r == -EACCES && s->user_namespace && on_disk == text)
        r = set_with_mode_lifted(x, on_disk, data, size_bytes, flags);
    return r;
}

int px_remove(struct posix *s, const struct xnode *x, const char *name)
{
    char text[NAME_BYTES_MAX];
    int r;
    const char *on_disk = disk_name(s, x, name, text, &r);
    if (r < 0)
        return r;
    if (!on_disk)
        return side_remove(s, x, name);
    r = x->fd >= 0  ? fremovexattr(x->fd, on_disk)
        : x->follow ? removexattr(x->path, on_disk)
                    : lremovexattr(x->path, on_disk);
    return r < 0 ? -errno : 0;
}

/* user.X back to trusted.X where it is ours. `names` has room for the growth. */
static ssize_t names_to_callers(char *names, size_t size_bytes, size_t used)
{
    for (size_t at = 0; at < used; at += strlen(names + at) + 1) {
        if (!is_internal_user(names + at))
            continue;
        if (used + 3 > size_bytes)
            return -ERANGE;
        memmove(names + at + 8, names + at + 5, used - at - 5);
        memcpy(names + at, "trusted.", 8); // NOLINT: the rest of the name follows
        used += 3;
    }
    return (ssize_t)used;
}

ssize_t px_list(struct posix *s, const struct xnode *x, char *names, size_t size_bytes)
{
    ssize_t n = x->fd >= 0  ? flistxattr(x->fd, names, size_bytes)
                : x->follow ? listxattr(x->path, names, size_bytes)
                            : llistxattr(x->path, names, size_bytes);
    if (n < 0) {
        if (errno != EOPNOTSUPP && errno != EPERM)
            return -errno;
        n = 0;
    }
    if (!s->user_namespace)
        return n;
    n = names_to_callers(names, size_bytes, (size_t)n);
    if (n < 0 || !x->is_special)
        return n;
    ssize_t more = side_list(s, x, names + n, size_bytes - (size_t)n);
    return more < 0 ? more : n + more;
}

int px_get_gfid(struct posix *s, const struct xnode *x, struct gfid *ret_gfid)
{
    struct gfid g;
    ssize_t n = px_get(s, x, XATTR_GFID, g.bytes, sizeof g.bytes);
    if (n == -EOPNOTSUPP || n == -EPERM)
        return -ENODATA;
    if (n == -ERANGE || (n >= 0 && n != sizeof g.bytes) || (n > 0 && gfid_is_null(&g)))
        return -EIO;
    if (n < 0)
        return (int)n;
    *ret_gfid = g;
    return 0;
}

bool posix_xattr_is_protected(const char *name)
{
    return strcmp(name, XATTR_GFID) == 0 || strcmp(name, XATTR_VOLUME_ID) == 0 ||
           strncmp(name, XATTR_GFID2PATH, sizeof XATTR_GFID2PATH - 1) == 0 ||
           strncmp(name, XATTR_PGFID, sizeof XATTR_PGFID - 1) == 0;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

bool posix_xattr_is_hidden(const struct call *call, const char *name)
{
    if (strncmp(name, XATTR_GFID2PATH, sizeof XATTR_GFID2PATH - 1) == 0)
        return true;
    if (strcmp(name, XATTR_MDATA) == 0)
        return call->pid >= 0;
    if (strncmp(name, "trusted.glusterfs.", 18) == 0 && (ends_with(name, ".xtime") || ends_with(name, "stime")))
        return call->pid != PID_GSYNCD;
    return false;
}

/* ---- what posix itself keeps about the places of an inode ---- */

void gfid2path_key(const struct gfid *parent, const char *name, char key[static 48], char *value, size_t value_bytes)
{
    char parent_text[GFID_TEXT_LEN + 1];
    int n = snprintf(value, value_bytes, "%s/%s", gfid_format(parent, parent_text), name);
    snprintf(key, 48, XATTR_GFID2PATH "%016llx", (unsigned long long)XXH64(value, (size_t)n, 0));
}

int gfid2path_set(struct posix *s, const struct xnode *x, const struct gfid *parent, const char *name)
{
    char key[48], value[GFID_TEXT_LEN + 1 + NAME_MAX + 1];

    if (!s->gfid2path)
        return 0;
    gfid2path_key(parent, name, key, value, sizeof value);
    int r = px_set(s, x, key, value, strlen(value), 0);
    /* Only a help for finding paths: a file system that has no room for one more goes without. */
    return r == -ENOSPC || r == -E2BIG || r == -ERANGE ? 0 : r;
}

int gfid2path_remove(struct posix *s, const struct xnode *x, const struct gfid *parent, const char *name)
{
    char key[48], value[GFID_TEXT_LEN + 1 + NAME_MAX + 1];

    if (!s->gfid2path)
        return 0;
    gfid2path_key(parent, name, key, value, sizeof value);
    int r = px_remove(s, x, key);
    return r == -ENODATA || r == -EOPNOTSUPP ? 0 : r;
}

int pgfid_add(struct posix *s, const struct xnode *x, const struct gfid *parent, int32_t change)
{
    char key[sizeof XATTR_PGFID + GFID_TEXT_LEN], text[GFID_TEXT_LEN + 1];
    uint8_t be[4] = { 0 };

    if (!s->update_pgfid)
        return 0;
    snprintf(key, sizeof key, XATTR_PGFID "%s", gfid_format(parent, text));
    ssize_t n = px_get(s, x, key, be, sizeof be);
    if (n < 0 && n != -ENODATA)
        return (int)n;
    uint32_t count = get_be32(be);
    if (change < 0 && count <= (uint32_t)-change) {
        int r = px_remove(s, x, key);
        return r == -ENODATA ? 0 : r;
    }
    put_be32(be, count + (uint32_t)change);
    return px_set(s, x, key, be, sizeof be, 0);
}
