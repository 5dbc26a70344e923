/* features/index/store.c - index-base/{xattrop,dirty,entry-changes} on the disk. */
#include "features/index/index_internal.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const kind_names[INDEX_KINDS] = { "xattrop", "dirty", "entry-changes" };

static char *base_name(const struct index_dir *d, enum index_kind kind, char text[static BASE_NAME_BYTES])
{
    char uuid[GFID_TEXT_LEN + 1];
    snprintf(text, BASE_NAME_BYTES, "%s-%s", kind_names[kind], gfid_format(&d->uuid, uuid));
    return text;
}

/* ---- opening ---- */

/* Counts the entries; base files of earlier runs that nothing is linked to any more go. */
static int scan(struct index_dir *d, enum index_kind kind)
{
    size_t prefix = strlen(kind_names[kind]);
    int fd = openat(d->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *e;
    struct gfid g;
    struct stat st;

    if (!dir)
        return -errno;
    d->count = 0;
    while ((e = readdir(dir))) {
        if (gfid_parse(e->d_name, &g) == 0)
            d->count++;
        else if (strncmp(e->d_name, kind_names[kind], prefix) == 0 && e->d_name[prefix] == '-' &&
                 fstatat(d->fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_nlink == 1)
            (void)unlinkat(d->fd, e->d_name, 0); /* tried again at the next start */
    }
    closedir(dir);
    return 0;
}

static int open_kind(struct translator *me, int base_fd, enum index_kind kind)
{
    struct index *s = me->state;
    struct index_dir *d = &s->dirs[kind];
    uint32_t mode = geteuid() ? 0700 : 0600;

    if (mkdirat(base_fd, kind_names[kind], mode) < 0 && errno != EEXIST)
        return -errno;
    d->fd = openat(base_fd, kind_names[kind], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (d->fd < 0)
        return -errno;
    d->gfid = gfid_random(me->env);
    d->uuid = gfid_random(me->env);
    return scan(d, kind);
}

int index_store_open(struct translator *me, struct error *err)
{
    struct index *s = me->state;

    if (mkdir(s->base, geteuid() ? 0700 : 0600) < 0 && errno != EEXIST)
        return error_set(err, -errno, "index directory %s cannot be made: %s; index-base is <brick>/.glusterfs/indices",
                         s->base, strerror(errno));
    int base_fd = open(s->base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (base_fd < 0)
        return error_set(err, -errno, "index directory %s cannot be opened: %s", s->base, strerror(errno));
    s->brick_fd = openat(base_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = 0;
    for (int kind = 0; r == 0 && kind < INDEX_KINDS; kind++)
        r = open_kind(me, base_fd, (enum index_kind)kind);
    close(base_fd);
    if (r < 0)
        return error_set(err, r, "index directories in %s cannot be made or read: %s", s->base, strerror(-r));
    return 0;
}

static void close_one(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void index_store_close(struct index *s)
{
    for (int kind = 0; kind < INDEX_KINDS; kind++)
        close_one(&s->dirs[kind].fd);
    close_one(&s->brick_fd);
}

/* ---- links ---- */

static int make_base(struct translator *me, enum index_kind kind)
{
    struct index *s = me->state;
    struct index_dir *d = &s->dirs[kind];
    char name[BASE_NAME_BYTES];

    int fd = openat(d->fd, base_name(d, kind, name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0);
    if (fd < 0 && errno != EEXIST)
        return -errno;
    if (fd >= 0)
        close(fd);
    d->has_base = true;
    d->base_ns = env_now_ns(me->env);
    d->bases++;
    return 0;
}

/* The next entry gets a new base file, whose time is that of the entry. One that nothing is linked to goes. */
static void retire_old_base(struct translator *me, enum index_kind kind)
{
    struct index *s = me->state;
    struct index_dir *d = &s->dirs[kind];
    uint64_t age_s = d->bases > BASES_QUICK ? BASE_AGE_LONG_S : BASE_AGE_S;
    char name[BASE_NAME_BYTES];
    struct stat st;

    if (!d->has_base || env_now_ns(me->env) - d->base_ns < age_s * 1000000000ull)
        return;
    base_name(d, kind, name);
    if (fstatat(d->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_nlink == 1)
        (void)unlinkat(d->fd, name, 0); /* else the next start removes it */
    d->uuid = gfid_random(me->env);
    d->has_base = false;
}

/* One more link to the base file; 0, -EEXIST, or another -errno. */
static int link_base(struct translator *me, enum index_kind kind, int dir_fd, const char *name)
{
    struct index *s = me->state;
    struct index_dir *d = &s->dirs[kind];
    char base[BASE_NAME_BYTES];

    retire_old_base(me, kind);
    for (int tries = 0; tries < 3; tries++) {
        if (!d->has_base) {
            int r = make_base(me, kind);
            if (r < 0)
                return r;
        }
        if (linkat(d->fd, base_name(d, kind, base), dir_fd, name, 0) == 0)
            return 0;
        if (errno != EMLINK && errno != ENOENT)
            return -errno;
        if (errno == EMLINK)
            d->uuid = gfid_random(me->env);
        d->has_base = false;
    }
    return -EMLINK;
}

int index_store_add(struct translator *me, enum index_kind kind, const struct gfid *g)
{
    struct index *s = me->state;
    char text[GFID_TEXT_LEN + 1];
    int r = link_base(me, kind, s->dirs[kind].fd, gfid_format(g, text));
    if (r == 0)
        s->dirs[kind].count++;
    if (r == 0 && kind == INDEX_XATTROP)
        index_tell_healers(me);
    return r == -EEXIST ? 0 : r;
}

int index_store_remove(struct index *s, enum index_kind kind, const struct gfid *g)
{
    char text[GFID_TEXT_LEN + 1];
    if (unlinkat(s->dirs[kind].fd, gfid_format(g, text), 0) < 0)
        return -errno;
    if (s->dirs[kind].count)
        s->dirs[kind].count--;
    return 0;
}

/* ---- names of changed directories ---- */

int index_store_open_dir(struct index *s, const struct gfid *dir)
{
    char text[GFID_TEXT_LEN + 1];
    int fd = openat(s->dirs[INDEX_CHANGES].fd, gfid_format(dir, text), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int index_store_add_name(struct translator *me, const struct gfid *dir, const char *name)
{
    struct index *s = me->state;
    struct index_dir *d = &s->dirs[INDEX_CHANGES];
    char text[GFID_TEXT_LEN + 1], rel[GFID_TEXT_LEN + 1 + NAME_MAX + 1];

    if (!*name || strchr(name, '/') || strlen(name) > NAME_MAX)
        return -EINVAL;
    snprintf(rel, sizeof rel, "%s/%s", gfid_format(dir, text), name);
    int r = link_base(me, INDEX_CHANGES, d->fd, rel);
    if (r == -EMLINK) { /* ENOENT ended there: the directory is missing, not the base */
        if (mkdirat(d->fd, text, geteuid() ? 0700 : 0600) == 0)
            d->count++;
        else if (errno != EEXIST)
            return -errno;
        r = link_base(me, INDEX_CHANGES, d->fd, rel);
    }
    return r == -EEXIST ? 0 : r;
}

int index_store_remove_name(struct index *s, const struct gfid *dir, const char *name)
{
    char text[GFID_TEXT_LEN + 1], rel[GFID_TEXT_LEN + 1 + NAME_MAX + 1];

    if (!*name || strchr(name, '/') || strlen(name) > NAME_MAX)
        return -EINVAL;
    snprintf(rel, sizeof rel, "%s/%s", gfid_format(dir, text), name);
    return unlinkat(s->dirs[INDEX_CHANGES].fd, rel, 0) < 0 ? -errno : 0;
}

/* Empties and removes a directory that was put aside. It has a name nobody else uses. */
static void purge(struct index_dir *d, const char *name)
{
    int fd = openat(d->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *e;

    if (!dir)
        return;
    while ((e = readdir(dir))) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            (void)unlinkat(fd, e->d_name, 0); /* what stays is seen by the next crawl */
    }
    closedir(dir);
    (void)unlinkat(d->fd, name, AT_REMOVEDIR);
}

int index_store_remove_dir(struct translator *me, const struct gfid *dir, bool even_if_full)
{
    struct index *s = me->state;
    struct index_dir *d = &s->dirs[INDEX_CHANGES];
    char text[GFID_TEXT_LEN + 1], aside[GFID_TEXT_LEN + 1];

    gfid_format(dir, text);
    int r = unlinkat(d->fd, text, AT_REMOVEDIR) < 0 ? -errno : 0;
    if ((r == -ENOTEMPTY || r == -EEXIST) && even_if_full) {
        struct gfid g = gfid_random(me->env);
        r = renameat(d->fd, text, d->fd, gfid_format(&g, aside)) < 0 ? -errno : 0;
        if (r == 0)
            purge(d, aside);
    }
    if (r == 0 && d->count)
        d->count--;
    return r;
}
