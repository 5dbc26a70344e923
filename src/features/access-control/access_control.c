/* features/access-control - POSIX permissions and ACLs, checked on the brick with the credentials of the call.
 *
 * The storage below works as root, so this is where EACCES and EPERM come from. The super user (option super-uid) and
 * internal clients (negative pid) are exempt. Owner, mode and access ACL of an inode are kept in its slot: owner and mode
 * come by with each lookup and stat, the ACL is asked for when a check first needs it, and every change of attributes or
 * ACLs passes through here and drops what is kept. Inheriting default ACLs is the storage's work.
 *
 * An open descriptor carries its permission. Operations by gfid only (the wire's anonymous descriptor) are checked each
 * time; there the owner may always read and write, since he may have opened the file before its mode forbade it. */
#include "core/mem.h"
#include "features/access-control/acl_internal.h"
#include "graph/translator.h"
#include <fcntl.h>
#include <unistd.h>

#define FLAG_EXEC 0x20 /* open(2) for execve: the kernel's __FMODE_EXEC travels in the flags */

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif

struct access_control {
    uint32_t super_uid;
    uint64_t drops; /* of all inodes: attributes that were on their way during one are not kept */
    uint64_t refused;
};

struct kept {
    struct owner owner;
    struct acl *acl;
    bool owner_known, acl_known;
    uint32_t generation; /* counts drops: what was being loaded meanwhile is not kept */
};

/* ---- what is kept per inode ---- */

static struct kept *kept_of(struct translator *me, struct inode *inode)
{
    void **ctx = inode_ctx(inode, me);

    if (!*ctx)
        *ctx = NEW(struct kept);
    return *ctx;
}

static void keep_owner(struct translator *me, struct inode *inode, const struct iatt *stat)
{
    struct kept *k = iatt_is_set(stat) ? kept_of(me, inode) : NULL;

    if (!k)
        return; /* without memory the next check asks the child */
    k->owner = (struct owner) { .uid = stat->uid, .gid = stat->gid, .mode = stat->mode };
    k->owner_known = true;
}

static uint64_t drops_so_far(const struct translator *me)
{
    return ((const struct access_control *)me->state)->drops;
}

static void drop(struct translator *me, struct inode *inode)
{
    struct kept *k = *inode_ctx(inode, me);

    ((struct access_control *)me->state)->drops++;
    if (!k)
        return;
    mem_free(take(k->acl));
    k->owner_known = k->acl_known = false;
    k->generation++;
}

static int keep_acl(struct kept *k, const struct dict *xdata)
{
    const void *data;
    size_t size_bytes;
    struct acl *acl = NULL;

    if (dict_get_bin(xdata, ACL_ACCESS_XATTR, &data, &size_bytes) == 0) {
        int r = acl_parse(data, size_bytes, &acl);
        if (r < 0)
            return r == -EINVAL ? -EIO : r; /* an ACL nobody can read protects: it does not open the file */
    }
    mem_free(k->acl);
    k->acl = acl;
    k->acl_known = true;
    return 0;
}

/* Owner and ACL from the child, unless both are known. */
static FIBER int load(struct translator *me, struct call *call, struct inode *inode, struct kept **ret_kept)
{
    struct kept *k = kept_of(me, inode);

    if (!k)
        return -ENOMEM;
    *ret_kept = k;
    if (k->owner_known && k->acl_known)
        return 0;
    SCOPED(reply_free) struct reply *r = reply_new();
    SCOPED(dict_unref) struct dict *ask = dict_new();
    if (!r || !ask || dict_set_int(ask, ACL_ACCESS_XATTR, 0) < 0)
        return -ENOMEM;
    uint32_t generation_at_start;
    do {
        generation_at_start = k->generation;
        reply_done(r);
        int result = child_lookup(me, 0, call, inode, NULL, NULL, ask, r);
        if (result < 0)
            return result;
    } while (k->generation != generation_at_start);
    keep_owner(me, inode, &r->stat);
    return keep_acl(k, r->xdata);
}

/* ---- checks ---- */

static bool is_exempt(const struct translator *me, const struct call *call)
{
    return call->pid < 0 || call->uid == ((const struct access_control *)me->state)->super_uid;
}

static int refuse(struct translator *me, int err)
{
    ((struct access_control *)me->state)->refused++;
    return err;
}

static struct asker asker_of(const struct call *call)
{
    return (
        struct asker) { .uid = call->uid, .gid = call->gid, .groups = call->groups, .group_count = call->group_count };
}

static FIBER int check(struct translator *me, struct call *call, struct inode *inode, unsigned want)
{
    struct kept *k;

    if (is_exempt(me, call))
        return 0;
    int r = load(me, call, inode, &k);
    if (r < 0)
        return r;
    struct asker who = asker_of(call);
    return acl_allows(&k->owner, k->acl, &who, want) ? 0 : refuse(me, -EACCES);
}

static FIBER int check_is_owner(struct translator *me, struct call *call, struct inode *inode)
{
    struct kept *k;

    if (is_exempt(me, call))
        return 0;
    int r = load(me, call, inode, &k);
    if (r < 0)
        return r;
    return k->owner.uid == call->uid ? 0 : refuse(me, -EPERM);
}

/* For data by gfid: as check(), and the owner always may. */
static FIBER int check_data(struct translator *me, struct call *call, const struct request *q, unsigned want)
{
    struct kept *k;

    if (q->fd || is_exempt(me, call))
        return 0;
    int r = load(me, call, q->inode, &k);
    if (r < 0 || k->owner.uid == call->uid)
        return r;
    return check(me, call, q->inode, want);
}

/* The owner of what `name` in `parent` is. */
static FIBER int owner_of_name(struct translator *me, struct call *call, struct inode *parent, const char *name,
                               uint32_t *ret_uid)
{
    SCOPED(reply_free) struct reply *r = reply_new();

    if (!r)
        return -ENOMEM;
    int result = child_lookup(me, 0, call, NULL, parent, name, NULL, r);
    if (result < 0)
        return result;
    *ret_uid = r->stat.uid;
    return 0;
}

/* May the name go away or be overwritten? In a sticky directory only for its owner or the directory's. */
static FIBER int check_removal(struct translator *me, struct call *call, struct inode *parent, const char *name)
{
    struct kept *k;
    uint32_t uid;

    if (is_exempt(me, call))
        return 0;
    int r = check(me, call, parent, MAY_WRITE | MAY_EXEC);
    if (r == 0)
        r = load(me, call, parent, &k);
    if (r < 0 || !(k->owner.mode & S_ISVTX) || k->owner.uid == call->uid)
        return r;
    r = owner_of_name(me, call, parent, name, &uid);
    if (r == -ENOENT)
        return 0; /* nothing there to protect; the operation itself says what it thinks of that */
    if (r < 0)
        return r;
    return uid == call->uid ? 0 : refuse(me, -EPERM);
}

/* ---- operations on names ---- */

static FIBER int ac_lookup(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    int result = q->name && q->parent ? check(me, call, q->parent, MAY_EXEC) : 0;
    uint64_t drops_at_start = drops_so_far(me);

    if (result == 0)
        result = default_op(me, call, q, r);
    if (result < 0 || gfid_is_null(&r->stat.gfid) || drops_so_far(me) != drops_at_start)
        return result;
    SCOPED(inode_unref) struct inode *found = inode_table_get(me->graph, &r->stat.gfid, iatt_type(&r->stat));
    if (found)
        keep_owner(me, found, &r->stat);
    return result;
}

/* mknod, mkdir, symlink, create */
static FIBER int ac_make(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    int result = check(me, call, q->parent, MAY_WRITE | MAY_EXEC);

    if (result < 0)
        return result;
    bool is_device = q->op == OP_MKNOD && ((S_ISCHR(q->mode) && q->rdev != 0) || S_ISBLK(q->mode));
    if (is_device && !is_exempt(me, call))
        return refuse(me, -EPERM);
    result = default_op(me, call, q, r);
    if (result >= 0) {
        drop(me, q->inode);
        keep_owner(me, q->inode, &r->stat);
    }
    return result;
}

static FIBER int ac_link(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    int result = check(me, call, q->parent2, MAY_WRITE | MAY_EXEC);

    return result < 0 ? result : default_op(me, call, q, r);
}

static FIBER int ac_remove(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    int result = check_removal(me, call, q->parent, q->name);

    return result < 0 ? result : default_op(me, call, q, r);
}

/* A directory that changes its parent changes its "..", so it must be writable itself. */
static FIBER int check_moved_directory(struct translator *me, struct call *call, struct inode *inode)
{
    if (!inode || inode->type != S_IFDIR)
        return 0;
    return check(me, call, inode, MAY_WRITE);
}

static FIBER int ac_rename(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    int result = check_removal(me, call, q->parent, q->name);

    if (result == 0)
        result = check_removal(me, call, q->parent2, q->name2);
    if (result == 0 && q->parent != q->parent2)
        result = check_moved_directory(me, call, q->inode);
    if (result == 0 && q->parent != q->parent2 && (q->flags & RENAME_EXCHANGE))
        result = check_moved_directory(me, call, q->inode2);
    return result < 0 ? result : default_op(me, call, q, r);
}

/* ---- operations on inodes ---- */

static FIBER int ac_stat(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    uint64_t drops_at_start = drops_so_far(me);
    int result = default_op(me, call, q, r);

    if (result >= 0 && drops_so_far(me) == drops_at_start)
        keep_owner(me, q->inode, &r->stat);
    return result;
}

static FIBER int ac_access(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct kept *k;
    unsigned want =
        (q->flags & R_OK ? MAY_READ : 0) | (q->flags & W_OK ? MAY_WRITE : 0) | (q->flags & X_OK ? MAY_EXEC : 0);
    int result = check(me, call, q->inode, want);

    if (result == 0 && (want & MAY_EXEC) && is_exempt(me, call)) {
        result = load(me, call, q->inode, &k); /* nobody may execute a file that is executable for none */
        if (result == 0 && S_ISREG(k->owner.mode) && !(k->owner.mode & 0111))
            result = refuse(me, -EACCES);
    }
    return result < 0 ? result : default_op(me, call, q, r);
}

static unsigned wanted_by_open(uint32_t flags)
{
    unsigned want = 0;

    if ((flags & O_ACCMODE) != O_WRONLY)
        want |= flags & FLAG_EXEC ? MAY_EXEC : MAY_READ;
    if ((flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC))
        want |= MAY_WRITE;
    return want;
}

static FIBER int ac_open(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    int result = check(me, call, q->inode, wanted_by_open(q->flags));

    return result < 0 ? result : default_op(me, call, q, r);
}

static FIBER int ac_opendir(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    int result = check(me, call, q->inode, MAY_READ);

    return result < 0 ? result : default_op(me, call, q, r);
}

static FIBER int ac_read(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    int result = check_data(me, call, q, MAY_READ);

    return result < 0 ? result : default_op(me, call, q, r);
}

static FIBER int ac_write(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    int result = check_data(me, call, q, MAY_WRITE);

    return result < 0 ? result : default_op(me, call, q, r);
}

static FIBER int ac_copy_range(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct request into = { .inode = q->inode2, .fd = q->fd2 };
    int result = check_data(me, call, q, MAY_READ);

    if (result == 0)
        result = check_data(me, call, &into, MAY_WRITE);
    return result < 0 ? result : default_op(me, call, q, r);
}

static FIBER int ac_truncate(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    int result = q->fd ? 0 : check(me, call, q->inode, MAY_WRITE);

    return result < 0 ? result : default_op(me, call, q, r);
}

/* ---- attributes ---- */

static FIBER int check_times(struct translator *me, struct call *call, const struct request *q, const struct kept *k)
{
    uint32_t now = q->valid & (ATTR_ATIME_NOW | ATTR_MTIME_NOW);
    uint32_t given = q->valid & (ATTR_ATIME | ATTR_MTIME | ATTR_CTIME);

    /* "now" comes with ATTR_ATIME / ATTR_MTIME set as well. */
    if (now & ATTR_ATIME_NOW)
        given &= ~(uint32_t)ATTR_ATIME;
    if (now & ATTR_MTIME_NOW)
        given &= ~(uint32_t)ATTR_MTIME;
    if (k->owner.uid == call->uid)
        return 0;
    if (given)
        return refuse(me, -EPERM);
    return now ? check(me, call, q->inode, MAY_WRITE) : 0;
}

static FIBER int check_setattr(struct translator *me, struct call *call, const struct request *q, const struct kept *k)
{
    struct asker who = asker_of(call);
    bool is_owner = k->owner.uid == call->uid;

    if ((q->valid & ATTR_MODE) && !is_owner)
        return refuse(me, -EPERM);
    if ((q->valid & ATTR_UID) && (!is_owner || q->attr->uid != k->owner.uid))
        return refuse(me, -EPERM);
    if ((q->valid & ATTR_GID) && (!is_owner || (q->attr->gid != k->owner.gid && !asker_in_group(&who, q->attr->gid))))
        return refuse(me, -EPERM);
    int r = check_times(me, call, q, k);
    if (r == 0 && (q->valid & ATTR_SIZE) && !q->fd)
        r = check(me, call, q->inode, MAY_WRITE);
    return r;
}

static FIBER int ac_setattr(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct asker who = asker_of(call);
    struct request own = *q;
    struct iatt attr;
    struct kept *k;
    int result = 0;

    if (!is_exempt(me, call)) {
        result = load(me, call, q->inode, &k);
        if (result == 0)
            result = check_setattr(me, call, q, k);
        if (result < 0)
            return result;
        /* Set-group-id for a group one is not in is dropped silently, as chmod(2) says. */
        if ((q->valid & ATTR_MODE) && (q->attr->mode & S_ISGID) && !S_ISDIR(k->owner.mode) &&
            !asker_in_group(&who, q->valid & ATTR_GID ? q->attr->gid : k->owner.gid)) {
            attr = *q->attr;
            attr.mode &= ~(uint32_t)S_ISGID;
            own.attr = &attr;
        }
    }
    drop(me, q->inode);
    result = default_op(me, call, &own, r);
    drop(me, q->inode); /* a load that ran meanwhile may have seen the old state */
    if (result >= 0)
        keep_owner(me, q->inode, &r->post);
    return result;
}

/* ---- extended attributes ---- */

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool is_acl_name(const char *name)
{
    return strcmp(name, ACL_ACCESS_XATTR) == 0 || strcmp(name, ACL_DEFAULT_XATTR) == 0 ||
           strcmp(name, "glusterfs.posix.acl") == 0 || strcmp(name, "glusterfs.posix.default_acl") == 0;
}

/* What translators of clients write on behalf of users. */
static bool is_internal_name(const char *name)
{
    return starts_with(name, "trusted.glusterfs.") || starts_with(name, "trusted.afr.") ||
           starts_with(name, "trusted.ec.") || starts_with(name, "glusterfs.");
}

/* user.* exists on files and directories only, in sticky directories for the owner only. */
static FIBER int check_user_xattr(struct translator *me, struct call *call, struct inode *inode, unsigned want)
{
    struct kept *k;
    int r = load(me, call, inode, &k);

    if (r < 0)
        return r;
    if (!S_ISREG(k->owner.mode) && !S_ISDIR(k->owner.mode))
        return want & MAY_WRITE ? refuse(me, -EPERM) : -ENODATA;
    if ((want & MAY_WRITE) && S_ISDIR(k->owner.mode) && (k->owner.mode & S_ISVTX) && k->owner.uid != call->uid)
        return refuse(me, -EPERM);
    return check(me, call, inode, want);
}

static FIBER int check_xattr_change(struct translator *me, struct call *call, struct inode *inode, const char *name)
{
    if (is_internal_name(name) && !is_acl_name(name))
        return 0;
    if (is_acl_name(name))
        return check_is_owner(me, call, inode);
    if (starts_with(name, "user."))
        return check_user_xattr(me, call, inode, MAY_WRITE);
    if (starts_with(name, "trusted.") || strcmp(name, "security.capability") == 0)
        return refuse(me, -EPERM);
    return starts_with(name, "security.") ? check_is_owner(me, call, inode) : 0;
}

static FIBER int ac_setxattr(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    const struct dict_value *value;
    const char *key;
    size_t at = 0;
    bool changes_acl = false;
    int result = 0;

    while (result == 0 && dict_next(q->xattrs, &at, &key, &value)) {
        changes_acl |= is_acl_name(key);
        if (!is_exempt(me, call))
            result = check_xattr_change(me, call, q->inode, key);
    }
    if (result < 0)
        return result;
    if (!changes_acl)
        return default_op(me, call, q, r);
    drop(me, q->inode);
    result = default_op(me, call, q, r);
    drop(me, q->inode);
    return result;
}

static FIBER int ac_removexattr(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    int result = q->text && !is_exempt(me, call) ? check_xattr_change(me, call, q->inode, q->text) : 0;

    if (result < 0)
        return result;
    result = default_op(me, call, q, r);
    if (q->text && is_acl_name(q->text))
        drop(me, q->inode);
    return result;
}

static FIBER int ac_getxattr(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    int result = 0;

    if (q->text && starts_with(q->text, "user.") && !is_exempt(me, call))
        result = check_user_xattr(me, call, q->inode, MAY_READ);
    if (result < 0)
        return result;
    if (q->text && starts_with(q->text, "trusted.") && !is_internal_name(q->text) && !is_exempt(me, call))
        return -ENODATA;
    return default_op(me, call, q, r);
}

/* ---- life cycle ---- */

static void ac_forget(struct translator *me, struct inode *inode, void *ctx)
{
    struct kept *k = ctx;

    mem_free(k->acl);
    mem_free(k);
}

static void ac_dump(struct translator *me, struct dump *out)
{
    dump_printf(out, "refused", "%llu", (unsigned long long)((struct access_control *)me->state)->refused);
}

static const struct option access_control_options[] = {
    OPT_U32("super-uid", struct access_control, super_uid, .def = "0", .live = true,
            .help = "user that may do everything"),
    OPT_END,
};

const struct translator_class access_control_class = {
    .type = "features/access-control",
    .aliases = { "system/posix-acl" },
    .state_size = sizeof(struct access_control),
    .options = access_control_options,
    .ops = {
        [OP_LOOKUP] = ac_lookup,
        [OP_STAT] = ac_stat,
        [OP_ACCESS] = ac_access,
        [OP_MKNOD] = ac_make,
        [OP_MKDIR] = ac_make,
        [OP_SYMLINK] = ac_make,
        [OP_CREATE] = ac_make,
        [OP_LINK] = ac_link,
        [OP_UNLINK] = ac_remove,
        [OP_RMDIR] = ac_remove,
        [OP_RENAME] = ac_rename,
        [OP_OPEN] = ac_open,
        [OP_OPENDIR] = ac_opendir,
        [OP_READ] = ac_read,
        [OP_SEEK] = ac_read,
        [OP_BLOCKSUMS] = ac_read,
        [OP_WRITE] = ac_write,
        [OP_FALLOCATE] = ac_write,
        [OP_COPY_RANGE] = ac_copy_range,
        [OP_TRUNCATE] = ac_truncate,
        [OP_SETATTR] = ac_setattr,
        [OP_SETXATTR] = ac_setxattr,
        [OP_REMOVEXATTR] = ac_removexattr,
        [OP_GETXATTR] = ac_getxattr,
    },
    .children_min = 1,
    .children_max = 1,
    .uses_inode_ctx = true,
    .inode_forget = ac_forget,
    .dump = ac_dump,
};
