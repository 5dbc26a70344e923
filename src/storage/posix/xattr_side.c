/* storage/posix/xattr_side.c - xattrs of symlinks, devices, fifos and sockets in user mode.
 *
 * The kernel allows user.* on regular files and directories only, so these inodes keep theirs in
 * .glusterfs/xattr/xx/yy/<gfid text>, found by the inode number through the symlink .glusterfs/xattr/ino/<hex>, whose
 * text is the gfid. The symlinks are an index: a brick that was copied to another file system gets new ones at its next
 * start (docs/on-disk.md "user mode"). An index entry counts when the gfid's handle is the same inode, or not made yet.
 * Files are replaced by rename, so that a crash leaves the old or the new set. */
#include "storage/posix/posix_internal.h"
#include <stdio.h>
#include <sys/xattr.h>

#define SIDE_MAGIC     "MXA1"
#define SIDE_BYTES_MAX (128 * 1024)
#define SIDE_REL_BYTES (6 + HANDLE_REL_LEN + 1)
#define INDEX_BYTES    48

/* A side file in memory: magic, then per xattr u32 name length, u32 value length, name, value; all big endian. */
struct side {
    uint8_t *bytes;
    size_t used;
};

static char *side_rel(const struct gfid *g, char text[static SIDE_REL_BYTES])
{
    char handle[HANDLE_REL_LEN + 1];
    snprintf(text, SIDE_REL_BYTES, "xattr/%s", handle_rel(g, handle));
    return text;
}

static char *index_rel(uint64_t ino, char text[static INDEX_BYTES])
{
    snprintf(text, INDEX_BYTES, "xattr/ino/%02x/%llx", (unsigned)(ino & 0xff), (unsigned long long)ino);
    return text;
}

static int side_find(struct posix *s, uint64_t ino, struct gfid *ret_gfid)
{
    char rel[INDEX_BYTES], text[GFID_TEXT_LEN + 2], handle[HANDLE_REL_LEN + 1];
    struct stat st;

    ssize_t n = readlinkat(s->gfs_fd, index_rel(ino, rel), text, sizeof text - 1);
    if (n != GFID_TEXT_LEN)
        return -ENODATA;
    text[n] = '\0';
    struct gfid g;
    if (gfid_parse(text, &g) < 0)
        return -ENODATA;
    if (fstatat(s->gfs_fd, handle_rel(&g, handle), &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_ino != ino)
        return -ENODATA; /* left over from an inode that had this number before */
    *ret_gfid = g;
    return 0;
}

/* Walks the pairs. Returns false at the end or where the bytes are broken. */
static bool side_next(const struct side *f, size_t *at, const char **ret_name, size_t *ret_name_len,
                      const uint8_t **ret_value, size_t *ret_size)
{
    if (*at < 4)
        *at = 4;
    if (f->used - *at < 8)
        return false;
    size_t name_len = get_be32(f->bytes + *at), size = get_be32(f->bytes + *at + 4);
    if (name_len > f->used - *at - 8 || size > f->used - *at - 8 - name_len)
        return false;
    *ret_name = (const char *)f->bytes + *at + 8;
    *ret_name_len = name_len;
    *ret_value = f->bytes + *at + 8 + name_len;
    *ret_size = size;
    *at += 8 + name_len + size;
    return true;
}

/* The whole file, or an empty set. */
static int side_load(struct posix *s, const struct gfid *g, struct side *ret)
{
    char rel[SIDE_REL_BYTES];

    ret->bytes = mem_alloc(SIDE_BYTES_MAX);
    ret->used = 4;
    if (!ret->bytes)
        return -ENOMEM;
    memcpy(ret->bytes, SIDE_MAGIC, 4);
    int fd = openat(s->gfs_fd, side_rel(g, rel), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    ssize_t n = read(fd, ret->bytes, SIDE_BYTES_MAX);
    int r = n < 0 ? -errno : 0;
    close(fd);
    if (r < 0)
        return r;
    if (n < 4 || memcmp(ret->bytes, SIDE_MAGIC, 4) != 0)
        return -EIO;
    ret->used = (size_t)n;
    const char *name;
    const uint8_t *value;
    size_t len, size, at = 4;
    while (side_next(ret, &at, &name, &len, &value, &size))
        ;
    return at == ret->used ? 0 : -EIO; /* damaged: nothing may be added behind what cannot be read */
}

/* Offset of the pair and its length; 0: not there. */
static size_t side_search(const struct side *f, const char *name, const uint8_t **ret_value, size_t *ret_size,
                          size_t *ret_pair_bytes)
{
    const char *found;
    size_t found_len, at = 4, start;
    while (start = at, side_next(f, &at, &found, &found_len, ret_value, ret_size)) {
        if (found_len == strlen(name) && memcmp(found, name, found_len) == 0) {
            *ret_pair_bytes = at - start;
            return start;
        }
    }
    return 0;
}

static int side_write(struct posix *s, const struct gfid *g, const struct side *f)
{
    char rel[SIDE_REL_BYTES], temp[64];

    side_rel(g, rel);
    snprintf(temp, sizeof temp, "xattr/tmp-%llu", (unsigned long long)s->temp_seq++);
    int fd = openat(s->gfs_fd, temp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    ssize_t n = write(fd, f->bytes, f->used);
    int r = n < 0 ? -errno : (size_t)n < f->used ? -ENOSPC : 0;
    close(fd);
    if (r == 0 && renameat(s->gfs_fd, temp, s->gfs_fd, rel) < 0) {
        r = -errno;
        if (r == -ENOENT) {
            rel[8] = '\0'; /* "xattr/xx" */
            (void)mkdirat(s->gfs_fd, rel, 0700);
            rel[8] = '/';
            rel[11] = '\0'; /* "xattr/xx/yy" */
            (void)mkdirat(s->gfs_fd, rel, 0700);
            rel[11] = '/';
            r = renameat(s->gfs_fd, temp, s->gfs_fd, rel) < 0 ? -errno : 0;
        }
    }
    if (r < 0)
        (void)unlinkat(s->gfs_fd, temp, 0); /* the error that counts is r */
    return r;
}

static int index_make(struct posix *s, uint64_t ino, const struct gfid *g)
{
    char rel[INDEX_BYTES], text[GFID_TEXT_LEN + 1];

    gfid_format(g, text);
    index_rel(ino, rel);
    for (int tries = 0; tries < 3; tries++) {
        if (symlinkat(text, s->gfs_fd, rel) == 0)
            return 0;
        if (errno == EEXIST) {
            if (unlinkat(s->gfs_fd, rel, 0) < 0 && errno != ENOENT)
                return -errno;
        } else if (errno == ENOENT) {
            char dir[INDEX_BYTES];
            snprintf(dir, sizeof dir, "xattr/ino/%02x", (unsigned)(ino & 0xff));
            if (mkdirat(s->gfs_fd, dir, 0700) < 0 && errno != EEXIST)
                return -errno;
        } else {
            return -errno;
        }
    }
    return -EIO;
}

/* An inode without a gfid yet has nowhere to keep its xattrs: they wait in a file named by the inode number, which
 * becomes the gfid's when that is set (creation sets gfid2path and others before the gfid). */
static void waiting_gfid(uint64_t ino, struct gfid *ret)
{
    memset(ret->bytes, 0xff, 8);
    put_be64(ret->bytes + 8, ino);
}

static void side_gfid(struct posix *s, const struct xnode *x, struct gfid *ret)
{
    if (side_find(s, x->ino, ret) < 0)
        waiting_gfid(x->ino, ret);
}

ssize_t side_get(struct posix *s, const struct xnode *x, const char *name, void *data, size_t size_bytes)
{
    struct gfid g;
    int r = side_find(s, x->ino, &g);
    if (strcmp(name, XATTR_GFID) == 0) {
        if (r < 0)
            return r;
        if (size_bytes == 0)
            return 16;
        if (size_bytes < 16)
            return -ERANGE;
        memcpy(data, g.bytes, 16);
        return 16;
    }
    if (r < 0)
        waiting_gfid(x->ino, &g);
    struct side f;
    r = side_load(s, &g, &f);
    SCOPED_FREE uint8_t *owned = f.bytes;
    if (r < 0)
        return r;
    const uint8_t *value;
    size_t size, pair;
    if (!side_search(&f, name, &value, &size, &pair))
        return -ENODATA;
    if (size_bytes == 0)
        return (ssize_t)size;
    if (size > size_bytes)
        return -ERANGE;
    memcpy(data, value, size);
    return (ssize_t)size;
}

static int side_cut(struct side *f, size_t at, size_t pair_bytes)
{
    memmove(f->bytes + at, f->bytes + at + pair_bytes, f->used - at - pair_bytes);
    f->used -= pair_bytes;
    return 0;
}

static int side_append(struct side *f, const char *name, const void *data, size_t size_bytes)
{
    size_t name_len = strlen(name);
    if (size_bytes > XATTR_BYTES_MAX || f->used + 8 + name_len + size_bytes > SIDE_BYTES_MAX)
        return -ENOSPC;
    put_be32(f->bytes + f->used, (uint32_t)name_len);
    put_be32(f->bytes + f->used + 4, (uint32_t)size_bytes);
    memcpy(f->bytes + f->used + 8, name, name_len);
    if (size_bytes)
        memcpy(f->bytes + f->used + 8 + name_len, data, size_bytes);
    f->used += 8 + name_len + size_bytes;
    return 0;
}

/* The gfid is not a pair but the file's name and the index: first the file, then the index that makes it count. */
static int set_gfid(struct posix *s, const struct xnode *x, const void *data, size_t size_bytes, int flags)
{
    struct gfid g, old;
    if (size_bytes != sizeof g.bytes)
        return -EINVAL;
    memcpy(g.bytes, data, sizeof g.bytes);
    bool has_old = side_find(s, x->ino, &old) == 0;
    if (has_old && (flags & XATTR_CREATE))
        return -EEXIST;
    if (!has_old)
        waiting_gfid(x->ino, &old);
    struct side f;
    int r = side_load(s, &old, &f);
    SCOPED_FREE uint8_t *owned = f.bytes;
    if (r == 0)
        r = side_write(s, &g, &f);
    if (r == 0)
        r = index_make(s, x->ino, &g);
    if (r == 0 && !gfid_equal(&old, &g)) {
        char rel[SIDE_REL_BYTES];
        (void)unlinkat(s->gfs_fd, side_rel(&old, rel), 0); /* there may be none */
    }
    return r;
}

int side_set(struct posix *s, const struct xnode *x, const char *name, const void *data, size_t size_bytes, int flags)
{
    if (strcmp(name, XATTR_GFID) == 0)
        return set_gfid(s, x, data, size_bytes, flags);
    struct gfid g;
    side_gfid(s, x, &g);
    struct side f;
    int r = side_load(s, &g, &f);
    SCOPED_FREE uint8_t *owned = f.bytes;
    if (r < 0)
        return r;
    const uint8_t *value;
    size_t size, pair, at = side_search(&f, name, &value, &size, &pair);
    if (at && (flags & XATTR_CREATE))
        return -EEXIST;
    if (!at && (flags & XATTR_REPLACE))
        return -ENODATA;
    if (at)
        side_cut(&f, at, pair);
    r = side_append(&f, name, data, size_bytes);
    return r < 0 ? r : side_write(s, &g, &f);
}

int side_remove(struct posix *s, const struct xnode *x, const char *name)
{
    struct gfid g;
    side_gfid(s, x, &g);
    struct side f;
    int r = side_load(s, &g, &f);
    SCOPED_FREE uint8_t *owned = f.bytes;
    if (r < 0)
        return r;
    const uint8_t *value;
    size_t size, pair, at = side_search(&f, name, &value, &size, &pair);
    if (!at)
        return -ENODATA;
    side_cut(&f, at, pair);
    return side_write(s, &g, &f);
}

ssize_t side_list(struct posix *s, const struct xnode *x, char *names, size_t size_bytes)
{
    struct gfid g;
    size_t used = 0;
    if (side_find(s, x->ino, &g) == 0) {
        if (size_bytes < sizeof XATTR_GFID)
            return -ERANGE;
        memcpy(names, XATTR_GFID, sizeof XATTR_GFID);
        used = sizeof XATTR_GFID;
    } else {
        waiting_gfid(x->ino, &g);
    }
    struct side f;
    int r = side_load(s, &g, &f);
    SCOPED_FREE uint8_t *owned = f.bytes;
    if (r < 0)
        return r;
    const char *name;
    const uint8_t *value;
    size_t len, size, at = 4;
    while (side_next(&f, &at, &name, &len, &value, &size)) {
        if (used + len + 1 > size_bytes)
            return -ERANGE;
        memcpy(names + used, name, len);
        names[used + len] = '\0';
        used += len + 1;
    }
    return (ssize_t)used;
}

void side_forget(struct posix *s, const struct gfid *g, uint64_t ino)
{
    char rel[SIDE_REL_BYTES], index[INDEX_BYTES];
    struct gfid waiting;

    if (!s->user_namespace)
        return;
    waiting_gfid(ino, &waiting);
    /* What is missing needs no removal; what fails to go is overruled by the handle's inode number. */
    (void)unlinkat(s->gfs_fd, index_rel(ino, index), 0);
    (void)unlinkat(s->gfs_fd, side_rel(g, rel), 0);
    (void)unlinkat(s->gfs_fd, side_rel(&waiting, rel), 0);
}

/* ---- start ---- */

/* One second-level directory of side files: an index entry for each that has a handle. */
static int index_rebuild_dir(struct posix *s, const char *rel_dir)
{
    int fd = openat(s->gfs_fd, rel_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    DIR *dir = fdopendir(fd);
    if (!dir) {
        close(fd);
        return -ENOMEM;
    }
    int r = 0;
    struct dirent *e;
    while (r == 0 && (e = readdir(dir))) {
        struct gfid g;
        struct stat st;
        char handle[HANDLE_REL_LEN + 1];
        if (gfid_parse(e->d_name, &g) == 0 && fstatat(s->gfs_fd, handle_rel(&g, handle), &st, AT_SYMLINK_NOFOLLOW) == 0)
            r = index_make(s, st.st_ino, &g);
    }
    closedir(dir);
    return r;
}

static int index_rebuild(struct posix *s)
{
    for (unsigned i = 0; i < 65536; i++) {
        char rel[SIDE_REL_BYTES];
        snprintf(rel, sizeof rel, "xattr/%02x/%02x", i >> 8, i & 0xff);
        int r = index_rebuild_dir(s, rel);
        if (r < 0)
            return r;
    }
    return 0;
}

int side_start(struct posix *s, struct error *err)
{
    char want[64], have[64];
    struct stat st;

    if (!s->user_namespace)
        return 0;
    if ((mkdirat(s->gfs_fd, "xattr", 0700) < 0 && errno != EEXIST) ||
        (mkdirat(s->gfs_fd, "xattr/ino", 0700) < 0 && errno != EEXIST))
        return error_set(err, -errno, "cannot make %s/" PRIVATE_DIR "/xattr: %s; check the permissions of the brick",
                         s->directory, strerror(errno));
    if (fstat(s->gfs_fd, &st) < 0)
        return -errno;
    /* The index belongs to this very file system tree: the inode number of .glusterfs tells a copy from the original. */
    snprintf(want, sizeof want, "%llx", (unsigned long long)st.st_ino);
    ssize_t n = readlinkat(s->gfs_fd, "xattr/ino/of", have, sizeof have - 1);
    have[n < 0 ? 0 : n] = '\0';
    if (strcmp(have, want) == 0)
        return 0;
    int r = index_rebuild(s);
    if (r == 0) {
        (void)unlinkat(s->gfs_fd, "xattr/ino/of", 0); /* there may be none */
        r = symlinkat(want, s->gfs_fd, "xattr/ino/of") < 0 ? -errno : 0;
    }
    if (r < 0)
        return error_set(err, r, "cannot rebuild the inode index in %s/" PRIVATE_DIR "/xattr/ino: %s", s->directory,
                         strerror(-r));
    return 0;
}
