/* Replies of file operations; see fops.h. */
#include "core/mem.h"
#include "rpc/fops_internal.h"

enum {
    A_END,
    A_XDATA,
    A_STAT,
    A_PRE,
    A_POST,
    A_PRE2,
    A_POST2,
    A_XATTRS,
    A_TEXT,
    A_FD,
    A_SIZE,
    A_DATA,
    A_STATFS,
    A_LOCK,
    A_OFFSET,
    A_ENTRIES,
    A_ENTRIES_STAT,
    A_CHECKSUMS,
    A_LEASE,
    A_LOCKS,
};

#define FIELDS_MAX      8
#define LEASE_BYTES     28
#define CHECKSUM_SHA256 1
#define STRONG_MAX      32
#define LOCKS_MAX       65536

#define R0 A_XDATA
#define R1 A_XDATA, A_STAT
#define R2 A_XDATA, A_PRE, A_POST
#define R3 A_XDATA, A_STAT, A_PRE, A_POST
#define RD A_XDATA, A_XATTRS, A_PRE, A_POST

/* What follows op_ret and op_errno. */
static const uint8_t answer_fields[FOP_PROC_COUNT][FIELDS_MAX] = {
    [FOP_STAT] = { R1 },
    [FOP_READLINK] = { R1, A_TEXT },
    [FOP_MKNOD] = { R3 },
    [FOP_MKDIR] = { R3 },
    [FOP_UNLINK] = { R2 },
    [FOP_RMDIR] = { R2 },
    [FOP_SYMLINK] = { R3 },
    [FOP_RENAME] = { R3, A_PRE2, A_POST2 },
    [FOP_LINK] = { R1, A_PRE2, A_POST2 },
    [FOP_TRUNCATE] = { R2 },
    [FOP_OPEN] = { R0, A_FD },
    [FOP_READ] = { A_STAT, A_SIZE, A_XDATA, A_DATA },
    [FOP_WRITE] = { R2 },
    [FOP_STATFS] = { R0, A_STATFS },
    [FOP_FLUSH] = { R0 },
    [FOP_FSYNC] = { R2 },
    [FOP_SETXATTR] = { R0 },
    [FOP_GETXATTR] = { RD },
    [FOP_REMOVEXATTR] = { R0 },
    [FOP_OPENDIR] = { R0, A_FD },
    [FOP_FSYNCDIR] = { R0 },
    [FOP_ACCESS] = { R0 },
    [FOP_CREATE] = { R1, A_FD, A_PRE, A_POST },
    [FOP_FTRUNCATE] = { R2 },
    [FOP_FSTAT] = { R1 },
    [FOP_LK] = { R0, A_LOCK },
    [FOP_LOOKUP] = { R1, A_POST },
    [FOP_READDIR] = { R0, A_ENTRIES },
    [FOP_INODELK] = { R0 },
    [FOP_FINODELK] = { R0 },
    [FOP_ENTRYLK] = { R0 },
    [FOP_FENTRYLK] = { R0 },
    [FOP_XATTROP] = { RD },
    [FOP_FXATTROP] = { RD },
    [FOP_FGETXATTR] = { RD },
    [FOP_FSETXATTR] = { R0 },
    [FOP_RCHECKSUM] = { R0, A_CHECKSUMS },
    [FOP_SETATTR] = { R2 },
    [FOP_FSETATTR] = { R2 },
    [FOP_READDIRP] = { R0, A_ENTRIES_STAT },
    [FOP_RELEASE] = { R0 },
    [FOP_RELEASEDIR] = { R0 },
    [FOP_FREMOVEXATTR] = { R0 },
    [FOP_FALLOCATE] = { R2 },
    [FOP_DISCARD] = { R2 },
    [FOP_ZEROFILL] = { R2 },
    [FOP_IPC] = { R0 },
    [FOP_SEEK] = { R0, A_OFFSET },
    [FOP_LEASE] = { R0, A_LEASE },
    [FOP_GETACTIVELK] = { R0, A_LOCKS },
    [FOP_SETACTIVELK] = { R0 },
    [FOP_ICREATE] = { R1 },
    [FOP_NAMELINK] = { R2 },
    [FOP_PUT] = { R3 },
    [FOP_COPY_FILE_RANGE] = { R3 },
    [FOP_BLOCKSUMS] = { A_STAT, A_SIZE, A_XDATA, A_DATA },
};

/* Attributes among the fields; NULL: another kind of field. */
static struct iatt *iatt_of(struct reply *r, unsigned field)
{
    switch (field) {
    case A_STAT: return &r->stat;
    case A_PRE: return &r->pre;
    case A_POST: return &r->post;
    case A_PRE2: return &r->pre2;
    case A_POST2: return &r->post2;
    default: return NULL;
    }
}

/* ---- writing ---- */

static void put_statfs(struct xdr_out *o, const struct fs_stat *s)
{
    static const struct fs_stat none;

    if (!s)
        s = &none;
    const uint64_t all[] = { s->bsize, s->frsize, s->blocks, s->bfree, s->bavail, s->files,
                             s->ffree, s->favail, s->fsid,   s->flag,  s->namemax };
    for (size_t i = 0; i < ARRAY_SIZE(all); i++)
        xdr_put_u64(o, all[i]);
}

static void put_range(struct xdr_out *o, const struct lock_range *l)
{
    struct fop_lock w = { 0 };

    if (l) {
        w.type = l->type;
        w.start = l->start;
        w.length = l->length;
        w.pid = (uint32_t)l->pid;
        w.owner = l->owner;
    }
    fop_put_lock(o, &w);
}

static void put_locks(struct xdr_out *o, const struct reply *r)
{
    for (uint32_t i = 0; i < r->lock_count; i++) {
        xdr_put_u32(o, 1);
        put_range(o, &r->locks[i].range);
        xdr_put_string(o, r->locks[i].client_uid);
        xdr_put_u32(o, r->locks[i].flags);
    }
    xdr_put_u32(o, 0);
}

static void put_entries(struct xdr_out *o, const struct dir_entries *e, bool with_stat)
{
    for (uint32_t i = 0; e && i < e->count; i++) {
        const struct dir_entry *d = &e->list[i];
        uint8_t *p = xdr_reserve(o, 28);
        if (!p)
            return;
        put_be32(p, 1);
        put_be64(p + 4, d->ino);
        put_be64(p + 12, d->offset);
        put_be32(p + 20, d->name_len);
        put_be32(p + 24, d->type);
        xdr_put_opaque(o, d->name, d->name_len);
        if (with_stat) {
            xdr_put_iattx(o, &d->stat);
            xdr_put_xdict(o, d->xattrs, NULL);
        }
    }
    xdr_put_u32(o, 0);
}

static void put_checksums(struct xdr_out *o, const struct reply *r)
{
    xdr_put_u32(o, dict_has(r->xdata, "fips-mode-rchecksum") ? CHECKSUM_SHA256 : 0);
    xdr_put_u32(o, r->weak_checksum);
    xdr_put_opaque(o, r->strong_checksum, STRONG_MAX);
}

static void put_field(struct xdr_out *o, const struct fop_answer *a, unsigned field, bool is_step)
{
    struct reply *r = a->r;

    switch (field) {
    case A_XDATA: xdr_put_xdict(o, r->xdata, NULL); break;
    case A_XATTRS: xdr_put_xdict(o, r->xattrs, NULL); break;
    case A_TEXT: xdr_put_string(o, r->text); break;
    case A_FD: xdr_put_u64(o, (uint64_t)a->fd); break;
    case A_SIZE: xdr_put_u32(o, r->data ? (uint32_t)r->data->size : 0); break;
    case A_DATA: fop_put_data(o, r->data, is_step); break;
    case A_STATFS: put_statfs(o, r->statfs); break;
    case A_LOCK: put_range(o, r->lock); break;
    case A_OFFSET: xdr_put_u64(o, r->offset); break;
    case A_ENTRIES:
    case A_ENTRIES_STAT: put_entries(o, r->entries, field == A_ENTRIES_STAT); break;
    case A_CHECKSUMS: put_checksums(o, r); break;
    case A_LEASE: xdr_put_bytes(o, (const uint8_t[LEASE_BYTES]) { 0 }, LEASE_BYTES); break;
    case A_LOCKS: put_locks(o, r); break;
    }
}

void fop_put_answer(struct xdr_out *o, enum fop_proc proc, const struct fop_answer *a, bool is_step)
{
    assert(a->r);
    xdr_put_u32(o, (uint32_t)a->op_ret);
    xdr_put_u32(o, (uint32_t)a->op_errno);
    for (const uint8_t *f = answer_fields[proc]; *f != A_END; f++) {
        const struct iatt *iatt = iatt_of(a->r, *f);
        if (iatt)
            xdr_put_iattx(o, iatt);
        else
            put_field(o, a, *f, is_step);
    }
}

/* ---- reading ---- */

static void get_statfs(struct xdr_in *in, struct reply *r)
{
    uint64_t all[11];

    for (size_t i = 0; i < ARRAY_SIZE(all); i++)
        all[i] = xdr_get_u64(in);
    struct fs_stat *s = NEW(struct fs_stat);
    if (!s) {
        in->failed = true;
        return;
    }
    *s = (struct fs_stat) { all[0], all[1], all[2], all[3], all[4], all[5], all[6], all[7], all[8], all[9], all[10] };
    r->statfs = s;
}

static void range_from(struct lock_range *l, const struct fop_lock *w)
{
    l->type = w->type > LOCK_NONE ? LOCK_NONE : w->type;
    l->start = w->start;
    l->length = w->length;
    l->pid = (int32_t)w->pid;
    l->owner = w->owner;
}

static void get_range(struct xdr_in *in, struct reply *r)
{
    struct fop_lock w = { 0 };

    fop_get_lock(in, &w);
    r->lock = NEW(struct lock_range);
    if (r->lock)
        range_from(r->lock, &w);
    else
        in->failed = true;
}

static void get_locks(struct xdr_in *in, struct reply *r)
{
    uint32_t room = 0;

    while (xdr_get_u32(in) == 1 && r->lock_count < LOCKS_MAX) {
        struct fop_lock w = { 0 };
        if (r->lock_count == room) {
            room = room ? 2 * room : 8;
            struct active_lock *more = mem_realloc(r->locks, room * sizeof(*more));
            if (!more) {
                in->failed = true;
                return;
            }
            r->locks = more;
        }
        struct active_lock *l = &r->locks[r->lock_count++];
        *l = (struct active_lock) { 0 };
        fop_get_lock(in, &w);
        range_from(&l->range, &w);
        const char *uid = xdr_get_string(in, FOP_NAME_MAX);
        memcpy(l->client_uid, uid, MIN(strlen(uid), sizeof(l->client_uid) - 1));
        l->flags = xdr_get_u32(in);
    }
}

static void get_entry(struct xdr_in *in, struct dir_entries *e, bool with_stat)
{
    struct dir_entry *d;
    size_t name_len;
    uint64_t ino = xdr_get_u64(in), offset = xdr_get_u64(in);

    (void)xdr_get_u32(in); /* the name's length, which follows again */
    uint32_t type = xdr_get_u32(in);
    const char *name = (const char *)xdr_get_opaque(in, FOP_NAME_MAX, &name_len);
    if (in->failed || dir_entries_add(e, name, name_len, ino, offset, type, &d) < 0) {
        in->failed = true;
        return;
    }
    if (!with_stat)
        return;
    xdr_get_iattx(in, &d->stat);
    xdr_get_xdict(in, &d->xattrs);
}

static void get_entries(struct xdr_in *in, struct fop_answer *a, bool with_stat)
{
    struct dir_entries *e = a->r->entries = dir_entries_new();

    in->failed = in->failed || !e;
    while (!in->failed && xdr_get_u32(in) == 1) {
        if (e->count == FOP_ENTRIES_MAX)
            in->failed = true;
        else
            get_entry(in, e, with_stat);
    }
    /* "End reached" is an errno in a successful reply. */
    if (!in->failed)
        e->at_end = e->count == 0 || a->op_errno == ENOENT;
}

static void get_checksums(struct xdr_in *in, struct reply *r)
{
    size_t size;

    (void)xdr_get_u32(in); /* which kind of strong sum: both ends are configured alike */
    r->weak_checksum = xdr_get_u32(in);
    const uint8_t *p = xdr_get_opaque(in, STRONG_MAX, &size);
    if (p)
        memcpy(r->strong_checksum, p, size);
}

static void get_text(struct xdr_in *in, struct reply *r)
{
    r->text = mem_strdup(xdr_get_string(in, FOP_NAME_MAX));
    in->failed = in->failed || !r->text;
}

static void get_field(struct xdr_in *in, struct fop_answer *a, unsigned field, struct buf *raw, bool is_step,
                      uint32_t *data_size)
{
    struct reply *r = a->r;

    switch (field) {
    case A_XDATA: xdr_get_xdict(in, &r->xdata); break;
    case A_XATTRS: xdr_get_xdict(in, &r->xattrs); break;
    case A_TEXT: get_text(in, r); break;
    case A_FD: a->fd = (int64_t)xdr_get_u64(in); break;
    case A_SIZE: *data_size = xdr_get_u32(in); break;
    case A_DATA:
        r->data = fop_get_data(in, raw, is_step);
        in->failed = in->failed || !r->data || r->data->size != *data_size;
        break;
    case A_STATFS: get_statfs(in, r); break;
    case A_LOCK: get_range(in, r); break;
    case A_OFFSET: r->offset = xdr_get_u64(in); break;
    case A_ENTRIES:
    case A_ENTRIES_STAT: get_entries(in, a, field == A_ENTRIES_STAT); break;
    case A_CHECKSUMS: get_checksums(in, r); break;
    case A_LEASE: (void)xdr_get_bytes(in, LEASE_BYTES); break;
    case A_LOCKS: get_locks(in, r); break;
    }
}

int fop_get_answer(struct xdr_in *in, enum fop_proc proc, struct buf *raw, bool is_step, struct fop_answer *a)
{
    uint32_t data_size = 0;

    assert(a->r);
    if (!fop_is_known(proc))
        return -EBADMSG;
    a->op_ret = (int32_t)xdr_get_u32(in);
    a->op_errno = (int32_t)xdr_get_u32(in);
    a->fd = FD_ANONYMOUS;
    for (const uint8_t *f = answer_fields[proc]; *f != A_END && !in->failed; f++) {
        struct iatt *iatt = iatt_of(a->r, *f);
        if (iatt)
            xdr_get_iattx(in, iatt);
        else
            get_field(in, a, *f, raw, is_step, &data_size);
    }
    if (!in->failed)
        return 0;
    reply_done(a->r);
    return -EBADMSG;
}
