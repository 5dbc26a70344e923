/* storage/posix/getxattr.c - xattrs by name, all of them, and the virtual names that are questions to the brick. */
#include "storage/posix/posix_internal.h"
#include <stdio.h>
#include <strings.h>
#include <sys/acl.h>
#include <acl/libacl.h>

struct question {
    struct translator *me;
    struct call *call;
    struct pnode *node;
    struct pfile *file;
    const char *name;
    struct dict *answers;
};

static int put_text(struct question *w, const char *text)
{
    int r = dict_set_str(w->answers, w->name, text);
    return r < 0 ? r : (int)strlen(text) + 1;
}

/* ---- paths ---- */

/* Path of "<parent gfid text>/<basename>". */
static char *path_of_mark(struct posix *s, const char *mark, size_t bytes)
{
    char text[GFID_TEXT_LEN + 1];
    struct gfid parent;
    int r;

    if (bytes < GFID_TEXT_LEN + 2 || mark[GFID_TEXT_LEN] != '/')
        return NULL;
    memcpy(text, mark, GFID_TEXT_LEN);
    text[GFID_TEXT_LEN] = '\0';
    if (gfid_parse(text, &parent) < 0)
        return NULL;
    SCOPED_FREE char *dir = handle_dir_path(s, &parent, &r);
    if (!dir)
        return NULL;
    return mem_printf("%s%s%.*s", dir, dir[1] ? "/" : "", (int)(bytes - GFID_TEXT_LEN - 1), mark + GFID_TEXT_LEN + 1);
}

/* All paths of an inode, joined; at most `limit` of them. Returned, or NULL with -errno. */
static char *inode_paths(struct question *w, unsigned limit, int *ret)
{
    struct posix *s = w->me->state;
    if (w->file->type == S_IFDIR)
        return handle_dir_path(s, &w->node->gfid, ret);
    struct xnode x = xnode_of_file(s, w->file);
    ssize_t used = px_list(s, &x, s->names, XATTR_BYTES_MAX);
    SCOPED_FREE char *all = NULL;
    unsigned count = 0;
    for (ssize_t at = 0; at < used && count < limit; at += (ssize_t)strlen(s->names + at) + 1) {
        if (strncmp(s->names + at, XATTR_GFID2PATH, sizeof XATTR_GFID2PATH - 1) != 0)
            continue;
        ssize_t n = px_get(s, &x, s->names + at, s->value, XATTR_BYTES_MAX);
        SCOPED_FREE char *one = n > 0 ? path_of_mark(s, s->value, (size_t)n) : NULL;
        if (!one)
            continue;
        char *longer = mem_printf("%s%s%s", all ? all : "", all ? s->gfid2path_separator : "", one);
        mem_free(all);
        all = longer;
        count++;
    }
    *ret = -ENODATA;
    return take(all);
}

static int get_path(struct question *w, unsigned limit)
{
    int r;
    SCOPED_FREE char *paths = inode_paths(w, limit, &r);
    return paths ? put_text(w, paths) : r;
}

static int get_gfidtopath(struct question *w)
{
    return get_path(w, 500);
}

static int get_gfid2path(struct question *w)
{
    return get_path(w, 1);
}

static int get_pathinfo(struct question *w)
{
    struct posix *s = w->me->state;
    char handle[HANDLE_REL_LEN + 1];
    int r;
    const char *host = s->node_uuid_pathinfo && s->glusterd_uuid ? s->glusterd_uuid
                       : s->hostname                             ? s->hostname
                                                                 : env_host_name(w->me->env);
    SCOPED_FREE char *path = inode_paths(w, 1, &r);
    SCOPED_FREE char *text = path ? mem_printf("<POSIX(%s):%s:%s%s>", s->directory, host, s->directory, path)
                                  : mem_printf("<POSIX(%s):%s:%s/" PRIVATE_DIR "/%s>", s->directory, host, s->directory,
                                               handle_rel(&w->node->gfid, handle));
    return text ? put_text(w, text) : -ENOMEM;
}

static int get_node_uuid(struct question *w)
{
    struct posix *s = w->me->state;
    return s->glusterd_uuid ? put_text(w, s->glusterd_uuid) : -ENODATA;
}

static int get_open_fds(struct question *w)
{
    int r = dict_set_uint(w->answers, w->name, w->node->open_count);
    return r < 0 ? r : (int)sizeof(uint64_t);
}

static int acl_text(struct question *w, acl_type_t type)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", w->file->fd);
    acl_t acl = acl_get_file(path, type);
    if (!acl)
        return -errno;
    char *text = acl_to_any_text(acl, NULL, ',', TEXT_NUMERIC_IDS);
    int r = text ? put_text(w, text) : -ENOMEM;
    acl_free(text);
    acl_free(acl);
    return r;
}

static int get_access_acl(struct question *w)
{
    return acl_text(w, ACL_TYPE_ACCESS);
}

static int get_default_acl(struct question *w)
{
    return acl_text(w, ACL_TYPE_DEFAULT);
}

/* The name as it is on disk for one given in any case: the exact one first. */
static int get_real_filename(struct question *w)
{
    const char *wanted = strchr(w->name, ':') + 1;
    struct stat st;

    if (w->file->type != S_IFDIR)
        return -ENOTDIR;
    if (!posix_name_is_valid(wanted))
        return -EINVAL;
    if (fstatat(w->file->fd, wanted, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return put_text(w, wanted);
    int fd = openat(w->file->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir)
        return -errno;
    int r = -ENOENT;
    struct dirent *e;
    while (r == -ENOENT && (e = readdir(dir))) {
        if (strcasecmp(e->d_name, wanted) == 0)
            r = put_text(w, e->d_name);
    }
    closedir(dir);
    return r;
}

static const struct {
    const char *name;
    int (*get)(struct question *w);
} questions[] = {
    { "glusterfs.gfidtopath", get_gfidtopath },
    { "glusterfs.gfid2path", get_gfid2path },
    { "glusterfs.ancestry.path", get_gfid2path },
    { "glusterfs.pathinfo", get_pathinfo },
    { "trusted.glusterfs.pathinfo", get_pathinfo },
    { "trusted.glusterfs.node-uuid", get_node_uuid },
    { "trusted.glusterfs.list-node-uuids", get_node_uuid },
    { "glusterfs.open-fd-count", get_open_fds },
    { "glusterfs.posix.acl", get_access_acl },
    { "glusterfs.posix.default_acl", get_default_acl },
};

/* ---- real ones ---- */

static int get_by_name(struct question *w)
{
    struct posix *s = w->me->state;

    for (size_t i = 0; i < ARRAY_SIZE(questions); i++) {
        if (strcmp(w->name, questions[i].name) == 0)
            return questions[i].get(w);
    }
    if (strncmp(w->name, "glusterfs.get_real_filename:", 28) == 0)
        return get_real_filename(w);
    if (strncmp(w->name, "glusterfs.", 10) == 0 || posix_xattr_is_hidden(w->call, w->name))
        return -ENODATA;
    struct xnode x = xnode_of_file(s, w->file);
    ssize_t n = px_get(s, &x, w->name, s->value, XATTR_BYTES_MAX);
    if (n < 0)
        return (int)n;
    int r = dict_set_bin(w->answers, w->name, s->value, (size_t)n);
    return r < 0 ? r : (int)n;
}

static int get_all(struct question *w)
{
    struct posix *s = w->me->state;
    struct xnode x = xnode_of_file(s, w->file);
    ssize_t used = px_list(s, &x, s->names, XATTR_BYTES_MAX), listed = 0;

    for (ssize_t at = 0; at < used; at += (ssize_t)strlen(s->names + at) + 1) {
        const char *name = s->names + at;
        /* GlusterFS bricks leave the inode's own names out of listings, too. */
        if (posix_xattr_is_hidden(w->call, name) || posix_xattr_is_protected(name))
            continue;
        ssize_t n = px_get(s, &x, name, s->value, XATTR_BYTES_MAX);
        if (n < 0)
            continue;
        int r = dict_set_bin(w->answers, name, s->value, (size_t)n);
        if (r < 0)
            return r;
        listed += (ssize_t)strlen(name) + 1;
    }
    return used < 0 ? (int)used : (int)listed;
}

FIBER int posix_getxattr(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    SCOPED(pfile_unref) struct pfile *f = NULL;
    struct pnode *n = pnode_of(me, q->inode);
    int e = n ? pnode_of_request(me, q, &f) : -ENOMEM;
    if (e < 0)
        return e;
    SCOPED(dict_unref) struct dict *answers = dict_new();
    if (!answers)
        return -ENOMEM;
    struct question w = { .me = me, .call = call, .node = n, .file = f, .name = q->text, .answers = answers };
    e = q->text ? get_by_name(&w) : get_all(&w);
    if (e >= 0)
        r->xattrs = take(answers);
    return e;
}
