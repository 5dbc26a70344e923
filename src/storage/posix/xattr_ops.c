/* storage/posix/xattr_ops.c - setxattr, removexattr and xattrop. getxattr with its virtual names is getxattr.c. */
#include "storage/posix/posix_internal.h"
#include <stdio.h>
#include <sys/acl.h>
#include <acl/libacl.h>
#include <sys/xattr.h>

/* What every change of xattrs answers: attributes before and after. */
static int answer_iatts(const struct dict *asked, const struct iatt *pre, const struct iatt *post,
                        struct dict **ret_xdata)
{
    if (!*ret_xdata)
        *ret_xdata = dict_new();
    if (!*ret_xdata)
        return -ENOMEM;
    int r = dict_set_iatt(*ret_xdata, "virt-gf-prestat", pre);
    if (r == 0)
        r = dict_set_iatt(*ret_xdata, "virt-gf-poststat", post);
    if (r == 0)
        r = dict_set_iatt(*ret_xdata, "dht-get-iatt-in-xattr", post);
    if (r == 0 && dict_has(asked, "dht-get-mode-in-xattr"))
        r = dict_set_int(*ret_xdata, "dht-get-mode-in-xattr", post->mode);
    return r;
}

/* ---- setxattr ---- */

/* Times for an inode that has none of its own yet. */
static int set_ctime_mdata(struct posix *s, struct pnode *n, const struct xnode *x, const struct dict_value *v)
{
    if (v->type != DICT_MDATA)
        return -EINVAL;
    pnode_load_mdata(s, n, x);
    return !s->ctime || n->has_mdata ? 0 : mdata_store(s, n, x, v->mdata);
}

/* "user::rwx,group::r--,..." as a real ACL. */
static int set_acl_text(struct posix *s, struct pfile *f, const struct dict_value *v, acl_type_t type)
{
    char path[32];
    if (v->type != DICT_STR && v->type != DICT_OLD && v->type != DICT_BIN)
        return -EINVAL;
    acl_t acl = acl_from_text((const char *)v->bytes);
    if (!acl)
        return -EINVAL;
    snprintf(path, sizeof path, "/proc/self/fd/%d", f->fd);
    int r = acl_set_file(path, type, acl) < 0 ? -errno : 0;
    acl_free(acl);
    return r;
}

static int set_value(struct posix *s, struct pnode *n, const struct xnode *x, const char *key,
                     const struct dict_value *v, int flags)
{
    char number[32];
    const void *data = v->bytes;
    size_t bytes = v->size_bytes;

    switch (v->type) {
    case DICT_OLD:
    case DICT_BIN: break;
    case DICT_STR: bytes++; break; /* text is kept with its NUL */
    case DICT_INT: bytes = (size_t)snprintf(number, sizeof number, "%lld", (long long)v->i) + 1; break;
    case DICT_UINT: bytes = (size_t)snprintf(number, sizeof number, "%llu", (unsigned long long)v->u) + 1; break;
    case DICT_GFID:
        data = v->gfid.bytes;
        bytes = 16;
        break;
    default: return -EINVAL;
    }
    if (v->type == DICT_INT || v->type == DICT_UINT)
        data = number;
    int r = px_set(s, x, key, data, bytes, flags);
    if (strcmp(key, XATTR_MDATA) == 0)
        n->mdata_known = n->has_mdata = false;
    return r;
}

static int set_one(struct posix *s, struct pnode *n, struct pfile *f, const char *key, const struct dict_value *v,
                   int flags)
{
    struct xnode x = xnode_of_file(s, f);

    if (strcmp(key, "set-ctime-mdata") == 0 || strcmp(key, "glusterfs.set-ctime-mdata") == 0)
        return set_ctime_mdata(s, n, &x, v);
    if (strcmp(key, "glusterfs.posix.acl") == 0)
        return set_acl_text(s, f, v, ACL_TYPE_ACCESS);
    if (strcmp(key, "glusterfs.posix.default_acl") == 0)
        return set_acl_text(s, f, v, ACL_TYPE_DEFAULT);
    if (posix_xattr_is_protected(key))
        return -EPERM;
    STEP(s);
    return set_value(s, n, &x, key, v, flags);
}

FIBER int posix_setxattr(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct posix *s = me->state;
    SCOPED(pfile_unref) struct pfile *f = NULL;
    struct pnode *n = pnode_of(me, q->inode);
    const struct dict_value *v;
    const char *key;
    size_t at = 0;

    int e = n ? posix_room_check(s, call, q->xdata, PAGE_BYTES) : -ENOMEM;
    if (e == 0)
        e = pnode_of_request(me, q, &f);
    struct iatt pre, post;
    if (e == 0)
        e = pfile_iatt(s, n, f, &pre);
    while (e == 0 && dict_next(q->xattrs, &at, &key, &v))
        e = set_one(s, n, f, key, v, (int)q->flags);
    if (e == 0)
        e = mdata_stamp(s, n, f, call, false);
    if (e == 0)
        e = pfile_iatt(s, n, f, &post);
    return e != 0 ? e : answer_iatts(q->xdata, &pre, &post, &r->xdata);
}

FIBER int posix_removexattr(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct posix *s = me->state;
    SCOPED(pfile_unref) struct pfile *f = NULL;
    struct pnode *n = pnode_of(me, q->inode);

    if (!n)
        return -ENOMEM;
    if (!q->text || posix_xattr_is_protected(q->text))
        return -EPERM;
    int e = pnode_of_request(me, q, &f);
    if (e < 0)
        return e;
    struct iatt pre, post;
    e = pfile_iatt(s, n, f, &pre);
    if (e < 0)
        return e;
    STEP(s);
    struct xnode x = xnode_of_file(s, f);
    e = px_remove(s, &x, q->text);
    if (strcmp(q->text, XATTR_MDATA) == 0)
        n->mdata_known = n->has_mdata = false;
    if (e == 0)
        e = mdata_stamp(s, n, f, call, false);
    if (e == 0)
        e = pfile_iatt(s, n, f, &post);
    return e != 0 ? e : answer_iatts(q->xdata, &pre, &post, &r->xdata);
}

/* ---- xattrop ---- */

static bool all_zero(const uint8_t *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (b[i])
            return false;
    }
    return true;
}

static void add_arrays(uint8_t *now, const uint8_t *add, size_t bytes, size_t word)
{
    for (size_t i = 0; i + word <= bytes; i += word) {
        if (word == 4)
            put_be32(now + i, get_be32(now + i) + get_be32(add + i));
        else
            put_be64(now + i, get_be64(now + i) + get_be64(add + i));
    }
}

/* One key: what is stored becomes what `how` says; `now` is the answer. 1: to be written; 0: unchanged. */
static int combine(enum xattrop how, const uint8_t *given, size_t given_bytes, uint8_t *now, size_t bytes)
{
    bool with_default = how == XATTROP_ADD32_DEFAULT || how == XATTROP_ADD64_DEFAULT;
    switch (how) {
    case XATTROP_ADD32_DEFAULT:
    case XATTROP_ADD64_DEFAULT:
        if (all_zero(given, bytes))
            return 0;
        if (all_zero(now, bytes))
            memcpy(now, given + bytes, bytes);
        break;
    case XATTROP_GET_AND_SET: return 1;
    case XATTROP_OR:
        for (size_t i = 0; i < bytes; i++)
            now[i] |= given[i];
        return 1;
    case XATTROP_AND:
        for (size_t i = 0; i < bytes; i++)
            now[i] &= given[i];
        return 1;
    default: break;
    }
    if (!with_default && all_zero(given, given_bytes))
        return 0;
    add_arrays(now, given, bytes, how == XATTROP_ADD32 || how == XATTROP_ADD32_DEFAULT ? 4 : 8);
    return 1;
}

static int xattrop_one(struct posix *s, const struct xnode *x, enum xattrop how, const char *key, struct dict *q,
                       struct dict *answers)
{
    const void *given;
    size_t given_bytes, bytes;
    uint8_t *now = (uint8_t *)s->value;

    if (dict_get_bin(q, key, &given, &given_bytes) < 0 || given_bytes == 0 || given_bytes > XATTR_BYTES_MAX)
        return -EINVAL;
    bytes = how == XATTROP_ADD32_DEFAULT || how == XATTROP_ADD64_DEFAULT ? given_bytes / 2 : given_bytes;
    ssize_t have = px_get(s, x, key, now, XATTR_BYTES_MAX);
    if (have == -ENODATA || have == -EOPNOTSUPP)
        have = 0;
    if (have < 0)
        return (int)have;
    /* An older format may have kept fewer words: the rest counts as zeros. More than was asked stays as it is. */
    if ((size_t)have < bytes)
        memset(now + have, 0, bytes - (size_t)have);
    size_t stored = MAX((size_t)have, bytes);
    if (how == XATTROP_GET_AND_SET) {
        int r = dict_set_bin(answers, key, now, have ? (size_t)have : bytes);
        if (r < 0)
            return r;
        STEP(s);
        return px_set(s, x, key, given, given_bytes, 0);
    }
    int r = combine(how, given, given_bytes, now, bytes);
    if (r > 0) {
        STEP(s);
        r = px_set(s, x, key, now, stored, 0);
    }
    return r < 0 ? r : dict_set_bin(answers, key, now, bytes);
}

FIBER int posix_xattrop(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct posix *s = me->state;
    SCOPED(pfile_unref) struct pfile *f = NULL;
    struct pnode *n = pnode_of(me, q->inode);
    const struct dict_value *v;
    const char *key;
    size_t at = 0;

    if (!n)
        return -ENOMEM;
    if (q->flags > XATTROP_ADD64_DEFAULT)
        return -EINVAL;
    int e = pnode_of_request(me, q, &f);
    if (e < 0)
        return e;
    SCOPED(dict_unref) struct dict *answers = dict_new();
    if (!answers)
        return -ENOMEM;
    struct xnode x = xnode_of_file(s, f);
    while (e == 0 && dict_next(q->xattrs, &at, &key, &v)) {
        if (posix_xattr_is_protected(key))
            return -EPERM;
        e = xattrop_one(s, &x, (enum xattrop)q->flags, key, q->xattrs, answers);
    }
    struct stat st;
    if (e == 0 && q->xdata)
        e = fstat(f->fd, &st) < 0 ? -errno : posix_answer(me, call, n, &x, &st, q->xdata, &r->xdata);
    if (e < 0)
        return e;
    r->xattrs = take(answers);
    return 0;
}
