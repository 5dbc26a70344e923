#include "rpc/xdr_buf.h"
#include <sys/sysmacros.h>

/* Which fields of an iattx are valid: everything but btime, as 10.3 bricks send it. */
#define IATTX_ALL     0x17ff
#define IATTX_NO_GFID 0x16ff /* the inode number, which comes from the gfid, is not known */

/* A device number travels as major and minor word; in MKNOD, however, as the host's dev_t. */
static uint64_t rdev_to_wire(uint64_t rdev)
{
    return (uint64_t)major(rdev) << 32 | minor(rdev);
}

static uint64_t rdev_from_wire(uint64_t wire)
{
    return makedev((unsigned)(wire >> 32), (unsigned)wire);
}

void xdr_put_gfid(struct xdr_out *o, const struct gfid *g)
{
    uint8_t *p = xdr_reserve(o, 16);
    if (p)
        memcpy(p, g->bytes, 16);
}

void xdr_get_gfid(struct xdr_in *in, struct gfid *ret_gfid)
{
    const uint8_t *p = xdr_get_bytes(in, 16);
    if (p)
        memcpy(ret_gfid->bytes, p, 16);
    else
        *ret_gfid = gfid_null;
}

void xdr_put_iattx(struct xdr_out *o, const struct iatt *a)
{
    uint8_t *p = xdr_reserve(o, IATTX_BYTES);
    if (!p)
        return;
    memset(p, 0, IATTX_BYTES);
    if (!a)
        return;
    memcpy(p, a->gfid.bytes, 16);
    if (iatt_is_set(a))
        put_be64(p + 16, gfid_is_null(&a->gfid) ? IATTX_NO_GFID : IATTX_ALL);
    put_be64(p + 24, a->ino);
    put_be64(p + 32, a->dev);
    put_be64(p + 40, rdev_to_wire(a->rdev));
    put_be64(p + 48, a->size);
    put_be64(p + 56, a->blocks);
    put_be64(p + 80, (uint64_t)a->atime);
    put_be64(p + 88, (uint64_t)a->mtime);
    put_be64(p + 96, (uint64_t)a->ctime);
    put_be64(p + 104, (uint64_t)a->btime);
    put_be32(p + 112, a->atime_nsec);
    put_be32(p + 116, a->mtime_nsec);
    put_be32(p + 120, a->ctime_nsec);
    put_be32(p + 124, a->btime_nsec);
    put_be32(p + 128, a->nlink);
    put_be32(p + 132, a->uid);
    put_be32(p + 136, a->gid);
    put_be32(p + 140, a->blksize);
    put_be32(p + 144, a->mode);
}

void xdr_get_iattx(struct xdr_in *in, struct iatt *ret_iatt)
{
    const uint8_t *p = xdr_get_bytes(in, IATTX_BYTES);
    if (!p) {
        *ret_iatt = (struct iatt) { 0 };
        return;
    }
    struct iatt *a = ret_iatt;
    memcpy(a->gfid.bytes, p, 16);
    a->ino = get_be64(p + 24);
    a->dev = get_be64(p + 32);
    a->rdev = rdev_from_wire(get_be64(p + 40));
    a->size = get_be64(p + 48);
    a->blocks = get_be64(p + 56);
    a->atime = (int64_t)get_be64(p + 80);
    a->mtime = (int64_t)get_be64(p + 88);
    a->ctime = (int64_t)get_be64(p + 96);
    a->btime = (int64_t)get_be64(p + 104);
    a->atime_nsec = get_be32(p + 112);
    a->mtime_nsec = get_be32(p + 116);
    a->ctime_nsec = get_be32(p + 120);
    a->btime_nsec = get_be32(p + 124);
    a->nlink = get_be32(p + 128);
    a->uid = get_be32(p + 132);
    a->gid = get_be32(p + 136);
    a->blksize = get_be32(p + 140);
    a->mode = get_be32(p + 144);
}

void xdr_put_iatt33(struct xdr_out *o, const struct iatt *a)
{
    uint8_t *p = xdr_reserve(o, IATT33_BYTES);
    if (!p)
        return;
    memset(p, 0, IATT33_BYTES);
    if (!a)
        return;
    memcpy(p, a->gfid.bytes, 16);
    put_be64(p + 16, a->ino);
    put_be64(p + 24, a->dev);
    put_be32(p + 32, a->mode);
    put_be32(p + 36, a->nlink);
    put_be32(p + 40, a->uid);
    put_be32(p + 44, a->gid);
    put_be64(p + 48, rdev_to_wire(a->rdev));
    put_be64(p + 56, a->size);
    put_be32(p + 64, a->blksize);
    put_be64(p + 68, a->blocks);
    put_be32(p + 76, (uint32_t)a->atime);
    put_be32(p + 80, a->atime_nsec);
    put_be32(p + 84, (uint32_t)a->mtime);
    put_be32(p + 88, a->mtime_nsec);
    put_be32(p + 92, (uint32_t)a->ctime);
    put_be32(p + 96, a->ctime_nsec);
}

void xdr_get_iatt33(struct xdr_in *in, struct iatt *ret_iatt)
{
    const uint8_t *p = xdr_get_bytes(in, IATT33_BYTES);
    *ret_iatt = (struct iatt) { 0 };
    if (!p)
        return;
    struct iatt *a = ret_iatt;
    memcpy(a->gfid.bytes, p, 16);
    a->ino = get_be64(p + 16);
    a->dev = get_be64(p + 24);
    a->mode = get_be32(p + 32);
    a->nlink = get_be32(p + 36);
    a->uid = get_be32(p + 40);
    a->gid = get_be32(p + 44);
    a->rdev = rdev_from_wire(get_be64(p + 48));
    a->size = get_be64(p + 56);
    a->blksize = get_be32(p + 64);
    a->blocks = get_be64(p + 68);
    a->atime = get_be32(p + 76);
    a->atime_nsec = get_be32(p + 80);
    a->mtime = get_be32(p + 84);
    a->mtime_nsec = get_be32(p + 88);
    a->ctime = get_be32(p + 92);
    a->ctime_nsec = get_be32(p + 96);
}
