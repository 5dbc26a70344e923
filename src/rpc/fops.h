/* rpc/fops.h - bodies of file operations (program 1298437 version 400): which fields in which order.
 *
 * A procedure is two rows of a table, the fields of its request and of its reply (fops.c); one loop each writes and
 * reads them. The same bodies are the steps of our compound. docs/protocol.md "Fops" says what the fields mean, and
 * fops_wire.x is the same as a definition for people and rpcgen.
 *
 * fop_request is a request as the wire has it: gfids and fd numbers, not inodes and fds. Names point into the message.
 */
#pragma once

#include "graph/translator.h"
#include "rpc/programs.h"
#include "rpc/record.h"
#include "rpc/xdr_buf.h"

#define FD_ANONYMOUS    (-2) /* "by gfid" */
#define FOP_NAME_MAX    4096 /* bytes of a name or link target that we read at all */
#define FOP_OWNER_MAX   1024
#define FOP_ENTRIES_MAX 65536 /* of one READDIR reply */

struct fop_lock {
    uint32_t type; /* enum lock_type's numbers */
    uint32_t whence;
    uint64_t start, length;
    uint32_t pid;
    struct lk_owner owner;
};

struct fop_request {
    enum fop_proc proc;
    struct gfid gfid;  /* the object, or the parent when there is only a parent */
    struct gfid gfid2; /* LOOKUP: the parent; LINK, RENAME: the new parent; COPY_FILE_RANGE: the destination */
    int64_t fd, fd2;
    uint64_t offset, offset2, size, rdev;
    uint32_t flags, mode, umask, valid;
    uint32_t command, type; /* of locks, as on the wire */
    uint32_t named;         /* a name follows */
    const char *name, *name2, *text;
    struct iatt attr;
    struct fop_lock lock;
    struct dict *xattrs, *xdata;
    const struct gfid *gfid_req; /* writing: goes into xdata */
    struct buf *data;            /* WRITE */
};

/* Writing: everything is borrowed. `is_step`: inside a compound, where raw data is an opaque<>. */
void fop_put_request(struct xdr_out *o, const struct fop_request *w, bool is_step);
/* Reading: xattrs, xdata and data are the request's: fop_request_done(). `raw` is data read apart, may be NULL. 0,
 * -EBADMSG, -EOPNOTSUPP (no such procedure), -ENOMEM. */
int fop_get_request(struct xdr_in *in, enum fop_proc proc, struct buf *raw, bool is_step, struct fop_request *ret);
void fop_request_done(struct fop_request *w);

struct fop_answer {
    int32_t op_ret, op_errno;
    int64_t fd;      /* OPEN, OPENDIR, CREATE */
    struct reply *r; /* everything else; never NULL */
};

void fop_put_answer(struct xdr_out *o, enum fop_proc proc, const struct fop_answer *a, bool is_step);
/* Fills a->r, which must be empty. 0, -EBADMSG, -ENOMEM. */
int fop_get_answer(struct xdr_in *in, enum fop_proc proc, struct buf *raw, bool is_step, struct fop_answer *a);

bool fop_is_known(uint32_t proc); /* can be read and written */
/* Only our own program has it, as a step. */
static inline bool fop_is_ours(uint32_t proc)
{
    return proc >= FOP_BLOCKSUMS && proc < FOP_PROC_COUNT;
}
const char *fop_name(uint32_t proc);

/* SEEK's `what`: 0 data, 1 hole; the host has SEEK_DATA and SEEK_HOLE. */
#define WIRE_SEEK_DATA 0
#define WIRE_SEEK_HOLE 1

/* O_* of this host to and from the wire's (docs/protocol.md "open flags"). */
uint32_t fop_flags_to_wire(uint32_t flags);
uint32_t fop_flags_from_wire(uint32_t flags);
