/* Extended attributes. Names of the bricks' own (changelogs, gfids, layouts) are not shown and cannot be set. */
#include "mount/fuse/fuse_internal.h"
#include <fnmatch.h>
#include <linux/limits.h>
#include <linux/xattr.h>

static const char *const internal_names[] = {
    "trusted.afr.*",  "trusted.gfid",    "trusted.gfid2path.*", "trusted.glusterfs.*",
    "trusted.ec.*",   "trusted.pgfid.*", "trusted.bit-rot.*",   "trusted.io-stats-dump",
    "trusted.tier.*", "user.trusted.*",  "glusterfs.*",
};

static bool is_internal(const struct request_in *in, const char *name)
{
    if (in->call.pid < 0) /* geo-replication and the like live on them */
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(internal_names); i++) {
        if (fnmatch(internal_names[i], name, 0) == 0)
            return true;
    }
    return false;
}

/* 0, or why this name is not asked for at all. */
static int check_name(const struct request_in *in, const char *name)
{
    const struct fuse *f = in->m->me->state;

    if (!*name || strlen(name) > XATTR_NAME_MAX)
        return *name ? -ERANGE : -EINVAL;
    if (!f->selinux && strcmp(name, XATTR_NAME_SELINUX) == 0)
        return -EOPNOTSUPP;
    if (!f->acl && strncmp(name, "system.posix_acl_", 17) == 0)
        return -EOPNOTSUPP;
    return 0;
}

static FIBER int ask_xattr(struct request_in *in, struct request *q, struct reply *r)
{
    struct handle *h = node_handle(in->node, false);
    SCOPED(fd_unref) struct fd *fd = h ? fd_ref(h->fd) : NULL;
    int result;

    q->inode = node_inode(in->m, in->node);
    if (!q->inode || !r)
        return -ENOMEM;
    q->fd = fd;
    if (fd)
        q->inode = fd->inode;
    result = ask(in, q, r);
    if (fd && (result == -EBADF || result == -EBADFD || result == -ESTALE)) {
        reply_done(r);
        q->fd = NULL;
        q->inode = node_inode(in->m, in->node);
        result = q->inode ? ask(in, q, r) : -ENOMEM;
    }
    return result == -ENOENT ? -ESTALE : result;
}

/* size 0 asks how long it is. */
static int answer_sized(struct request_in *in, uint32_t room, const void *data, size_t bytes)
{
    struct fuse_getxattr_out out = { .size = (uint32_t)bytes };

    if (bytes > XATTR_SIZE_MAX)
        return -E2BIG;
    if (room == 0)
        (void)answer(in, &out, sizeof(out));
    else if (bytes > room)
        return -ERANGE;
    else
        (void)answer(in, data, bytes);
    return 0;
}

/* The kernel asks for capabilities before the first write after every change of attributes. The brick's own kernel drops
 * them at a write, so a "none" may be as old as attributes may be. */
static bool is_known_without_caps(const struct request_in *in)
{
    uint64_t age_ns = env_now_ns(in->m->env) - in->node->no_caps_ns;

    return in->node->no_caps_ns && (double)age_ns < mount_options(in->m)->attribute_timeout_s * 1e9;
}

FIBER int on_getxattr(struct request_in *in)
{
    const struct fuse_getxattr_in *args = (const void *)in->args;
    const char *name = (const char *)in->args + sizeof(*args);
    SCOPED(reply_free) struct reply *r = reply_new();
    struct request q = { .op = OP_GETXATTR, .text = name };
    const void *data;
    size_t bytes;
    bool is_caps = strcmp(name, XATTR_NAME_CAPS) == 0;
    int result = check_name(in, name);

    if (result < 0)
        return result;
    if (is_caps && is_known_without_caps(in))
        return -ENODATA;
    /* Virtual names (glusterfs.pathinfo, ...) are asked for on purpose; what is listed for nobody stays hidden. */
    if (is_internal(in, name) && strncmp(name, "glusterfs.", 10) != 0 && strncmp(name, "trusted.glusterfs.", 18) != 0)
        return -ENODATA;
    result = ask_xattr(in, &q, r);
    if (is_caps && result == -ENODATA)
        in->node->no_caps_ns = env_now_ns(in->m->env);
    if (result < 0)
        return result;
    if (dict_get_bin(r->xattrs, name, &data, &bytes) < 0)
        return -ENODATA;
    return answer_sized(in, args->size, data, bytes);
}

static bool is_listed(const struct request_in *in, const char *name)
{
    const struct fuse *f = in->m->me->state;

    if (is_internal(in, name))
        return false;
    if (!strchr(name, '.'))
        return false; /* answers to requests, not attributes */
    if (in->head.uid != 0 && strncmp(name, XATTR_TRUSTED_PREFIX, XATTR_TRUSTED_PREFIX_LEN) == 0)
        return false;
    if (!f->acl && strncmp(name, "system.posix_acl_", 17) == 0)
        return false;
    return f->selinux || strcmp(name, XATTR_NAME_SELINUX) != 0;
}

FIBER int on_listxattr(struct request_in *in)
{
    const struct fuse_getxattr_in *args = (const void *)in->args;
    SCOPED(reply_free) struct reply *r = reply_new();
    struct request q = { .op = OP_GETXATTR };
    const struct dict_value *value;
    SCOPED_FREE char *names = NULL;
    size_t at = 0, bytes = 0;
    const char *key;
    int result = ask_xattr(in, &q, r);

    if (result < 0)
        return result;
    while (dict_next(r->xattrs, &at, &key, &value))
        bytes += is_listed(in, key) ? strlen(key) + 1 : 0;
    names = mem_alloc(bytes + 1);
    if (!names)
        return -ENOMEM;
    at = bytes = 0;
    while (dict_next(r->xattrs, &at, &key, &value)) {
        if (!is_listed(in, key))
            continue;
        memcpy(names + bytes, key, strlen(key) + 1);
        bytes += strlen(key) + 1;
    }
    return answer_sized(in, args->size, names, bytes);
}

FIBER int on_setxattr(struct request_in *in)
{
    bool is_ext = in->m->flags & FUSE_SETXATTR_EXT;
    size_t fixed = is_ext ? sizeof(struct fuse_setxattr_in) : FUSE_COMPAT_SETXATTR_IN_SIZE;
    struct fuse_setxattr_in args = { 0 };
    SCOPED(reply_free) struct reply *r = reply_new();
    SCOPED(dict_unref) struct dict *xattrs = dict_new();
    struct request q = { .op = OP_SETXATTR, .xattrs = xattrs };
    const char *name = (const char *)in->args + fixed;
    size_t name_bytes, rest;
    int result;

    own_attr_forget(in->node); /* an ACL changes the mode */
    if (!r || !xattrs)
        return -ENOMEM;
    if (in->args_bytes <= fixed)
        return -EIO;
    memcpy(&args, in->args, fixed);
    name_bytes = strnlen(name, in->args_bytes - fixed) + 1;
    rest = in->args_bytes - fixed;
    if (name_bytes > rest || args.size > rest - name_bytes)
        return -EIO;
    result = check_name(in, name);
    if (result < 0)
        return result;
    if (is_internal(in, name) && strncmp(name, "trusted.glusterfs.", 18) != 0 && strncmp(name, "glusterfs.", 10) != 0)
        return -EPERM;
    result = dict_set_bin(xattrs, name, name + name_bytes, args.size);
    if (result < 0)
        return result;
    q.flags = args.flags;
    in->node->no_caps_ns = 0;
    result = ask_xattr(in, &q, r);
    if (result < 0)
        return result;
    if (args.setxattr_flags & FUSE_SETXATTR_ACL_KILL_SGID) {
        reply_done(r);
        if (ask_stat(in, in->node, r) == 0)
            clear_mode_bits(in, in->node, r->stat.mode, S_ISGID);
    }
    (void)answer(in, NULL, 0);
    return 0;
}

FIBER int on_removexattr(struct request_in *in)
{
    const char *name = (const char *)in->args;
    SCOPED(reply_free) struct reply *r = reply_new();
    struct request q = { .op = OP_REMOVEXATTR, .text = name };
    int result = check_name(in, name);

    own_attr_forget(in->node);
    if (result < 0)
        return result;
    if (is_internal(in, name))
        return -EPERM;
    result = ask_xattr(in, &q, r);
    if (result < 0)
        return result;
    (void)answer(in, NULL, 0);
    return 0;
}
