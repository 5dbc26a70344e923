#include "rpc/fops.h"
#include "rpc/fops_internal.h"
#include <fcntl.h>

/* Fields of requests. */
enum {
    Q_END,
    Q_GFID,
    Q_GFID2,
    Q_FD,
    Q_FD2,
    Q_OFFSET,
    Q_OFFSET2,
    Q_SIZE32,
    Q_SIZE64,
    Q_RDEV,
    Q_FLAGS,
    Q_MODE,
    Q_UMASK,
    Q_VALID,
    Q_COMMAND,
    Q_TYPE,
    Q_NAMED32,
    Q_NAMED64,
    Q_NAME,
    Q_NAME2,
    Q_TEXT,
    Q_ATTR,
    Q_LOCK,
    Q_XATTRS,
    Q_XDATA,
    Q_DATA,
    Q_STEP_FLAGS, /* flags that only steps of compounds have room for */
};

#define FIELDS_MAX 12

static const uint8_t request_fields[FOP_PROC_COUNT][FIELDS_MAX] = {
    [FOP_STAT] = { Q_GFID, Q_XDATA },
    [FOP_READLINK] = { Q_GFID, Q_SIZE32, Q_XDATA },
    [FOP_MKNOD] = { Q_GFID, Q_RDEV, Q_MODE, Q_UMASK, Q_NAME, Q_XDATA },
    [FOP_MKDIR] = { Q_GFID, Q_MODE, Q_UMASK, Q_NAME, Q_XDATA },
    [FOP_UNLINK] = { Q_GFID, Q_NAME, Q_FLAGS, Q_XDATA },
    [FOP_RMDIR] = { Q_GFID, Q_FLAGS, Q_NAME, Q_XDATA },
    [FOP_SYMLINK] = { Q_GFID, Q_NAME, Q_UMASK, Q_TEXT, Q_XDATA },
    [FOP_RENAME] = { Q_GFID, Q_GFID2, Q_NAME, Q_NAME2, Q_XDATA, Q_STEP_FLAGS },
    [FOP_LINK] = { Q_GFID, Q_GFID2, Q_NAME2, Q_XDATA },
    [FOP_TRUNCATE] = { Q_GFID, Q_OFFSET, Q_XDATA },
    [FOP_OPEN] = { Q_GFID, Q_FLAGS, Q_XDATA },
    [FOP_READ] = { Q_GFID, Q_FD, Q_OFFSET, Q_SIZE32, Q_FLAGS, Q_XDATA },
    [FOP_WRITE] = { Q_GFID, Q_FD, Q_OFFSET, Q_SIZE32, Q_FLAGS, Q_XDATA, Q_DATA },
    [FOP_STATFS] = { Q_GFID, Q_XDATA },
    [FOP_FLUSH] = { Q_GFID, Q_FD, Q_XDATA },
    [FOP_FSYNC] = { Q_GFID, Q_FD, Q_FLAGS, Q_XDATA },
    [FOP_SETXATTR] = { Q_GFID, Q_FLAGS, Q_XATTRS, Q_XDATA },
    [FOP_GETXATTR] = { Q_GFID, Q_NAMED32, Q_TEXT, Q_XDATA },
    [FOP_REMOVEXATTR] = { Q_GFID, Q_TEXT, Q_XDATA },
    [FOP_OPENDIR] = { Q_GFID, Q_XDATA },
    [FOP_FSYNCDIR] = { Q_GFID, Q_FD, Q_FLAGS, Q_XDATA },
    [FOP_ACCESS] = { Q_GFID, Q_FLAGS, Q_XDATA },
    [FOP_CREATE] = { Q_GFID, Q_FLAGS, Q_MODE, Q_UMASK, Q_NAME, Q_XDATA },
    [FOP_FTRUNCATE] = { Q_GFID, Q_FD, Q_OFFSET, Q_XDATA },
    [FOP_FSTAT] = { Q_GFID, Q_FD, Q_XDATA },
    [FOP_LK] = { Q_GFID, Q_FD, Q_COMMAND, Q_TYPE, Q_LOCK, Q_XDATA },
    [FOP_LOOKUP] = { Q_GFID, Q_GFID2, Q_FLAGS, Q_NAME, Q_XDATA },
    [FOP_READDIR] = { Q_GFID, Q_FD, Q_OFFSET, Q_SIZE32, Q_XDATA },
    [FOP_INODELK] = { Q_GFID, Q_COMMAND, Q_TYPE, Q_LOCK, Q_TEXT, Q_XDATA },
    [FOP_FINODELK] = { Q_GFID, Q_FD, Q_COMMAND, Q_TYPE, Q_LOCK, Q_TEXT, Q_XDATA },
    [FOP_ENTRYLK] = { Q_GFID, Q_COMMAND, Q_TYPE, Q_NAMED64, Q_NAME, Q_TEXT, Q_XDATA },
    [FOP_FENTRYLK] = { Q_GFID, Q_FD, Q_COMMAND, Q_TYPE, Q_NAMED64, Q_NAME, Q_TEXT, Q_XDATA },
    [FOP_XATTROP] = { Q_GFID, Q_FLAGS, Q_XATTRS, Q_XDATA },
    [FOP_FXATTROP] = { Q_GFID, Q_FD, Q_FLAGS, Q_XATTRS, Q_XDATA },
    [FOP_FGETXATTR] = { Q_GFID, Q_FD, Q_NAMED32, Q_TEXT, Q_XDATA },
    [FOP_FSETXATTR] = { Q_GFID, Q_FD, Q_FLAGS, Q_XATTRS, Q_XDATA },
    [FOP_RCHECKSUM] = { Q_GFID, Q_FD, Q_OFFSET, Q_SIZE32, Q_FLAGS, Q_XDATA },
    [FOP_SETATTR] = { Q_GFID, Q_ATTR, Q_VALID, Q_XDATA },
    [FOP_FSETATTR] = { Q_GFID, Q_FD, Q_ATTR, Q_VALID, Q_XDATA },
    [FOP_READDIRP] = { Q_GFID, Q_FD, Q_OFFSET, Q_SIZE32, Q_XDATA },
    [FOP_RELEASE] = { Q_GFID, Q_FD, Q_XDATA },
    [FOP_RELEASEDIR] = { Q_GFID, Q_FD, Q_XDATA },
    [FOP_FREMOVEXATTR] = { Q_GFID, Q_FD, Q_TEXT, Q_XDATA },
    [FOP_FALLOCATE] = { Q_GFID, Q_FD, Q_FLAGS, Q_OFFSET, Q_SIZE64, Q_XDATA },
    [FOP_DISCARD] = { Q_GFID, Q_FD, Q_OFFSET, Q_SIZE64, Q_XDATA },
    [FOP_ZEROFILL] = { Q_GFID, Q_FD, Q_OFFSET, Q_SIZE64, Q_XDATA },
    [FOP_IPC] = { Q_COMMAND, Q_XDATA },
    [FOP_SEEK] = { Q_GFID, Q_FD, Q_OFFSET, Q_FLAGS, Q_XDATA },
    [FOP_GETACTIVELK] = { Q_GFID, Q_XDATA },
    /* These are answered with EOPNOTSUPP: only what tells whom they are about is read. */
    [FOP_LEASE] = { Q_GFID },
    [FOP_SETACTIVELK] = { Q_GFID },
    [FOP_ICREATE] = { Q_GFID },
    [FOP_NAMELINK] = { Q_GFID },
    [FOP_PUT] = { Q_GFID },
    [FOP_COPY_FILE_RANGE] = { Q_GFID, Q_GFID2, Q_FD, Q_FD2, Q_OFFSET, Q_OFFSET2, Q_SIZE32, Q_FLAGS, Q_XDATA },
    [FOP_BLOCKSUMS] = { Q_GFID, Q_FD, Q_SIZE32, Q_XDATA, Q_DATA },
};

bool fop_is_known(uint32_t proc)
{
    return proc < FOP_PROC_COUNT && request_fields[proc][0] != Q_END;
}

void fop_put_lock(struct xdr_out *o, const struct fop_lock *l)
{
    xdr_put_u32(o, l->type);
    xdr_put_u32(o, l->whence);
    xdr_put_u64(o, l->start);
    xdr_put_u64(o, l->length);
    xdr_put_u32(o, l->pid);
    xdr_put_opaque(o, l->owner.bytes, l->owner.size);
}

void fop_get_lock(struct xdr_in *in, struct fop_lock *l)
{
    size_t size;

    l->type = xdr_get_u32(in);
    l->whence = xdr_get_u32(in);
    l->start = xdr_get_u64(in);
    l->length = xdr_get_u64(in);
    l->pid = xdr_get_u32(in);
    const uint8_t *owner = xdr_get_opaque(in, LK_OWNER_MAX, &size);
    if (!owner)
        return;
    l->owner.size = (uint32_t)size;
    memcpy(l->owner.bytes, owner, size);
}

void fop_put_data(struct xdr_out *o, struct buf *data, bool is_step)
{
    if (is_step && data)
        xdr_put_opaque_insert(o, data);
    else if (is_step)
        xdr_put_u32(o, 0);
    else if (data)
        xdr_put_insert(o, data);
}

/* All data there is: what was read apart, or the rest of the message. */
struct buf *fop_get_data(struct xdr_in *in, struct buf *raw, bool is_step)
{
    if (is_step)
        return xdr_get_opaque_buf(in, SIZE_MAX);
    if (raw)
        return buf_ref(raw);
    size_t size = xdr_left(in);
    uint8_t *p = xdr_get_bytes(in, size);
    if (!p)
        return NULL;
    struct buf *b = in->buf ? buf_slice(in->buf, (size_t)(p - in->buf->data), size) : buf_copy(p, size);
    if (!b)
        in->failed = true;
    return b;
}

/* READDIRP has no other place for the xattrs wanted of each entry. */
static void put_xdata(struct xdr_out *o, const struct fop_request *w)
{
    if (w->proc != FOP_READDIRP || !w->xattrs || !w->xdata) {
        xdr_put_xdict(o, w->proc == FOP_READDIRP && w->xattrs ? w->xattrs : w->xdata, w->gfid_req);
        return;
    }
    SCOPED(dict_unref) struct dict *both = dict_copy(w->xdata);
    if (!both || dict_merge(both, w->xattrs) < 0)
        o->failed = true;
    else
        xdr_put_xdict(o, both, NULL);
}

static void put_large_field(struct xdr_out *o, const struct fop_request *w, unsigned field, bool is_step)
{
    switch (field) {
    case Q_NAME: xdr_put_string(o, w->name); break;
    case Q_NAME2: xdr_put_string(o, w->name2); break;
    case Q_TEXT: xdr_put_string(o, w->text); break;
    case Q_ATTR: xdr_put_iattx(o, &w->attr); break;
    case Q_LOCK: fop_put_lock(o, &w->lock); break;
    case Q_XATTRS: xdr_put_xdict(o, w->xattrs, NULL); break;
    case Q_XDATA: put_xdata(o, w); break;
    case Q_DATA: fop_put_data(o, w->data, is_step); break;
    case Q_STEP_FLAGS:
        if (is_step)
            xdr_put_u32(o, w->flags);
        break;
    }
}

/* Fields of fixed size: where they are in a fop_request, and as how many bytes on the wire. */
static const struct {
    uint16_t offset;
    uint8_t held, sent;
} numbers[] = {
#define NUMBER(field, member, bytes)                               \
    [field] = { .offset = offsetof(struct fop_request, member),    \
                .held = sizeof(((struct fop_request *)0)->member), \
                .sent = (bytes) }
    NUMBER(Q_FD, fd, 8),       NUMBER(Q_FD2, fd2, 8),       NUMBER(Q_OFFSET, offset, 8), NUMBER(Q_OFFSET2, offset2, 8),
    NUMBER(Q_SIZE32, size, 4), NUMBER(Q_SIZE64, size, 8),   NUMBER(Q_RDEV, rdev, 8),     NUMBER(Q_FLAGS, flags, 4),
    NUMBER(Q_MODE, mode, 4),   NUMBER(Q_UMASK, umask, 4),   NUMBER(Q_VALID, valid, 4),   NUMBER(Q_COMMAND, command, 4),
    NUMBER(Q_TYPE, type, 4),   NUMBER(Q_NAMED32, named, 4), NUMBER(Q_NAMED64, named, 8),
#undef NUMBER
};

static bool is_number(unsigned field)
{
    return field < ARRAY_SIZE(numbers) && numbers[field].sent != 0;
}

static void put_number(struct xdr_out *o, const struct fop_request *w, unsigned field)
{
    const char *at = (const char *)w + numbers[field].offset;
    uint64_t v = numbers[field].held == 8 ? *(const uint64_t *)(const void *)at : *(const uint32_t *)(const void *)at;

    if (numbers[field].sent == 8)
        xdr_put_u64(o, v);
    else
        xdr_put_u32(o, (uint32_t)v);
}

static void get_number(struct xdr_in *in, struct fop_request *w, unsigned field)
{
    char *at = (char *)w + numbers[field].offset;
    uint64_t v = numbers[field].sent == 8 ? xdr_get_u64(in) : xdr_get_u32(in);

    if (numbers[field].held == 8)
        *(uint64_t *)(void *)at = v;
    else
        *(uint32_t *)(void *)at = (uint32_t)v;
}

void fop_put_request(struct xdr_out *o, const struct fop_request *w, bool is_step)
{
    for (const uint8_t *f = request_fields[w->proc]; *f != Q_END; f++) {
        if (is_number(*f))
            put_number(o, w, *f);
        else if (*f == Q_GFID)
            xdr_put_gfid(o, &w->gfid);
        else if (*f == Q_GFID2)
            xdr_put_gfid(o, &w->gfid2);
        else
            put_large_field(o, w, *f, is_step);
    }
}

static void get_large_field(struct xdr_in *in, struct fop_request *w, unsigned field, struct buf *raw, bool is_step)
{
    switch (field) {
    case Q_NAME: w->name = xdr_get_string(in, FOP_NAME_MAX); break;
    case Q_NAME2: w->name2 = xdr_get_string(in, FOP_NAME_MAX); break;
    case Q_TEXT: w->text = xdr_get_string(in, FOP_NAME_MAX); break;
    case Q_ATTR: xdr_get_iattx(in, &w->attr); break;
    case Q_LOCK: fop_get_lock(in, &w->lock); break;
    case Q_XATTRS: xdr_get_xdict(in, &w->xattrs); break;
    case Q_XDATA: xdr_get_xdict(in, &w->xdata); break;
    case Q_STEP_FLAGS: w->flags = is_step ? xdr_get_u32(in) : 0; break;
    case Q_DATA:
        w->data = fop_get_data(in, raw, is_step);
        in->failed = in->failed || !w->data || w->data->size != w->size;
        break;
    }
}

int fop_get_request(struct xdr_in *in, enum fop_proc proc, struct buf *raw, bool is_step, struct fop_request *ret)
{
    if (!fop_is_known(proc) || (fop_is_ours(proc) && !is_step))
        return -EOPNOTSUPP;
    *ret = (struct fop_request) { .proc = proc, .fd = FD_ANONYMOUS, .fd2 = FD_ANONYMOUS };
    for (const uint8_t *f = request_fields[proc]; *f != Q_END && !in->failed; f++) {
        if (is_number(*f))
            get_number(in, ret, *f);
        else if (*f == Q_GFID)
            xdr_get_gfid(in, &ret->gfid);
        else if (*f == Q_GFID2)
            xdr_get_gfid(in, &ret->gfid2);
        else
            get_large_field(in, ret, *f, raw, is_step);
    }
    if (!in->failed)
        return 0;
    fop_request_done(ret);
    return -EBADMSG;
}

void fop_request_done(struct fop_request *w)
{
    dict_unref(w->xattrs);
    dict_unref(w->xdata);
    buf_unref(w->data);
    w->xattrs = w->xdata = NULL;
    w->data = NULL;
}

static const struct {
    uint32_t host, wire;
} open_flags[] = {
    { O_WRONLY, 1 },
    { O_RDWR, 2 },
    { O_CREAT, 0100 },
    { O_EXCL, 0200 },
    { O_NOCTTY, 0400 },
    { O_TRUNC, 01000 },
    { O_APPEND, 02000 },
    { O_NONBLOCK, 04000 },
    { O_ASYNC, 020000 },
    { O_DIRECT, 040000 },
    { O_DIRECTORY, 0200000 },
    { O_NOFOLLOW, 0400000 },
    { O_NOATIME, 01000000 },
    { O_CLOEXEC, 02000000 },
    { 040, 040 }, /* FMODE_EXEC of the kernel */
#ifdef __O_LARGEFILE
    { 0100000, 0100000 }, /* glibc's macro is 0 on 64-bit hosts, the kernel's bit is not */
#endif
};

/* The wire's SYNC stands for either of the host's. */
#define WIRE_SYNC 010000

uint32_t fop_flags_to_wire(uint32_t flags)
{
    uint32_t wire = flags & (O_SYNC | O_DSYNC) ? WIRE_SYNC : 0;

    for (size_t i = 0; i < ARRAY_SIZE(open_flags); i++)
        if (open_flags[i].host && (flags & open_flags[i].host) == open_flags[i].host)
            wire |= open_flags[i].wire;
    return wire;
}

uint32_t fop_flags_from_wire(uint32_t flags)
{
    uint32_t host = flags & WIRE_SYNC ? O_SYNC : 0;

    for (size_t i = 0; i < ARRAY_SIZE(open_flags); i++)
        if (flags & open_flags[i].wire)
            host |= open_flags[i].host;
    return host;
}

static const char *const names[FOP_PROC_COUNT] = {
    "null",        "stat",         "readlink",
    "mknod",       "mkdir",        "unlink",
    "rmdir",       "symlink",      "rename",
    "link",        "truncate",     "open",
    "read",        "write",        "statfs",
    "flush",       "fsync",        "setxattr",
    "getxattr",    "removexattr",  "opendir",
    "fsyncdir",    "access",       "create",
    "ftruncate",   "fstat",        "lk",
    "lookup",      "readdir",      "inodelk",
    "finodelk",    "entrylk",      "fentrylk",
    "xattrop",     "fxattrop",     "fgetxattr",
    "fsetxattr",   "rchecksum",    "setattr",
    "fsetattr",    "readdirp",     "release",
    "releasedir",  "fremovexattr", "fallocate",
    "discard",     "zerofill",     "ipc",
    "seek",        "compound",     "lease",
    "getactivelk", "setactivelk",  "icreate",
    "namelink",    "put",          "copy_file_range",
    "blocksums",
};

const char *fop_name(uint32_t proc)
{
    return proc < FOP_PROC_COUNT ? names[proc] : "unknown";
}
