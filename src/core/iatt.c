#include "core/iatt.h"

void iatt_from_stat(struct iatt *a, const struct stat *st)
{
    a->dev = st->st_dev;
    a->rdev = st->st_rdev;
    a->size = (uint64_t)st->st_size;
    a->blocks = (uint64_t)st->st_blocks;
    a->atime = st->st_atim.tv_sec;
    a->mtime = st->st_mtim.tv_sec;
    a->ctime = st->st_ctim.tv_sec;
    a->btime = 0;
    a->atime_nsec = (uint32_t)st->st_atim.tv_nsec;
    a->mtime_nsec = (uint32_t)st->st_mtim.tv_nsec;
    a->ctime_nsec = (uint32_t)st->st_ctim.tv_nsec;
    a->btime_nsec = 0;
    a->mode = st->st_mode;
    a->nlink = (uint32_t)st->st_nlink;
    a->uid = st->st_uid;
    a->gid = st->st_gid;
    a->blksize = (uint32_t)st->st_blksize;
}

void iatt_to_stat(const struct iatt *a, struct stat *st)
{
    *st = (struct stat) {
        .st_dev = a->dev,
        .st_ino = gfid_to_ino(&a->gfid),
        .st_mode = a->mode,
        .st_nlink = a->nlink,
        .st_uid = a->uid,
        .st_gid = a->gid,
        .st_rdev = a->rdev,
        .st_size = (off_t)a->size,
        .st_blksize = a->blksize,
        .st_blocks = (blkcnt_t)a->blocks,
        .st_atim = { .tv_sec = a->atime, .tv_nsec = a->atime_nsec },
        .st_mtim = { .tv_sec = a->mtime, .tv_nsec = a->mtime_nsec },
        .st_ctim = { .tv_sec = a->ctime, .tv_nsec = a->ctime_nsec },
    };
}
