#include "sim/simdisk.h"
#include "core/mem.h"
#include "graph/graph.h"
#include "rpc/block_sums.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/xattr.h>
#include <unistd.h>

#ifndef FALLOC_FL_KEEP_SIZE
#include <linux/falloc.h>
#endif

static struct simdisk_host *host(struct translator *me)
{
    assert(me->graph->edge); /* the harness gives the disk before it starts the graph */
    return me->graph->edge;
}

static struct disk *disk(struct translator *me)
{
    return host(me)->disk;
}

static void nothing(void *arg UNUSED)
{
}

/* The seeded moment; afterwards nothing suspends until the answer is complete. */
static FIBER int begin(struct translator *me)
{
    env_pool_run(me->env, nothing, NULL);
    if (!me->graph->edge)
        return -ESHUTDOWN; /* this process died meanwhile; the disk goes on without it */
    if (env_random_u64(me->env) % 100 < disk_eio_percent(disk(me)))
        return -EIO;
    return 0;
}

static void now(struct translator *me, const struct call *call, struct iatt *a)
{
    struct timespec t;
    env_wall_time(me->env, &t);
    if (call->time_flags) {
        t.tv_sec = call->time_s;
        t.tv_nsec = call->time_ns;
    }
    a->atime = a->mtime = a->ctime = t.tv_sec;
    a->atime_nsec = a->mtime_nsec = a->ctime_nsec = (uint32_t)t.tv_nsec;
}

static void touch(struct translator *me, const struct call *call, const struct gfid *gfid, uint32_t valid)
{
    struct iatt a = { 0 };
    now(me, call, &a);
    (void)disk_set_attr(disk(me), gfid, &a, valid);
}

/* The same for an operation on an inode that must exist; -ESTALE: it does not. */
static FIBER int begin_at(struct translator *me, const struct inode *inode, struct disk_node **ret)
{
    int e = begin(me);
    if (e < 0)
        return e;
    *ret = disk_find(disk(me), &inode->gfid);
    return *ret ? 0 : -ESTALE;
}

static void stat_of(struct translator *me, const struct gfid *gfid, struct iatt *a)
{
    struct disk_node *n = disk_find(disk(me), gfid);
    if (n)
        disk_stat(n, a);
}

/* ---- xdata that lookups, stats and reads of directories ask for ---- */

static bool is_internal(const char *key)
{
    return !strncmp(key, "trusted.afr.", 12) || !strncmp(key, "trusted.gfid", 12);
}

static int wanted_xattrs(const struct disk_node *n, const struct dict *wanted, struct dict **out)
{
    const struct dict *have = disk_xattrs(n);
    const char *key;
    const struct dict_value *v;
    bool all = dict_has(wanted, "list-xattr");
    for (size_t at = 0; dict_next(have, &at, &key, &v);) {
        if (!dict_has(wanted, key) && !(all && !is_internal(key)))
            continue;
        int r = dict_put_bin(out, key, v->bytes, v->size_bytes);
        if (r < 0)
            return r;
    }
    return 0;
}

static int answer_xdata(const struct request *q, const struct disk_node *n, struct reply *r)
{
    if (!q->xdata)
        return 0;
    if (q->inode && dict_has(q->xdata, "glusterfs.open-fd-count")) {
        int e = dict_put_uint(&r->xdata, "glusterfs.open-fd-count", q->inode->open_fds);
        if (e < 0)
            return e;
    }
    return wanted_xattrs(n, q->xdata, &r->xdata);
}

/* ---- looking ---- */

static FIBER int simdisk_lookup(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    int e = begin(me);
    if (e < 0)
        return e;
    struct disk_node *n;
    if (q->parent) {
        if (!disk_find(disk(me), &q->parent->gfid))
            return -ESTALE;
        n = disk_child(disk(me), &q->parent->gfid, q->name);
        if (!n)
            return -ENOENT;
        stat_of(me, &q->parent->gfid, &r->post);
    } else {
        n = disk_find(disk(me), &q->inode->gfid);
        if (!n)
            return -ENOENT;
    }
    disk_stat(n, &r->stat);
    if (!q->parent && r->stat.nlink == 0) {
        memset(&r->stat, 0, sizeof(r->stat));
        return -ENOENT; /* only descriptors are left of it */
    }
    return answer_xdata(q, n, r);
}

static FIBER int simdisk_stat(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct disk_node *n;
    int e = begin_at(me, q->inode, &n);
    if (e < 0)
        return e;
    disk_stat(n, &r->stat);
    return answer_xdata(q, n, r);
}

static FIBER int simdisk_readlink(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct disk_node *n;
    int e = begin_at(me, q->inode, &n);
    if (e < 0)
        return e;
    if (!disk_target(n))
        return -EINVAL;
    disk_stat(n, &r->stat);
    r->text = mem_strdup(disk_target(n));
    return (int)strlen(r->text);
}

static FIBER int simdisk_access(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct disk_node *n;
    return begin_at(me, q->inode, &n);
}

static FIBER int simdisk_statfs(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    int e = begin(me);
    if (e < 0)
        return e;
    r->statfs = NEW(struct fs_stat);
    if (!r->statfs)
        return -ENOMEM;
    *r->statfs = (struct fs_stat) { .bsize = 4096,
                                    .frsize = 4096,
                                    .blocks = 1 << 20,
                                    .bfree = 1 << 19,
                                    .bavail = 1 << 19,
                                    .files = 1 << 20,
                                    .ffree = 1 << 19,
                                    .favail = 1 << 19,
                                    .namemax = 255 };
    return 0;
}

/* ---- names ---- */

static FIBER int make(struct translator *me, struct call *call, const struct request *q, struct reply *r, uint32_t type,
                      uint32_t mode, const char *target)
{
    int e = begin(me);
    if (e < 0)
        return e;
    struct iatt a = {
        .gfid = q->inode->gfid, .mode = type | (mode & 07777), .uid = call->uid, .gid = call->gid, .rdev = q->rdev
    };
    now(me, call, &a);
    stat_of(me, &q->parent->gfid, &r->pre);
    SCOPED(dict_unref) struct dict *xattrs = dict_new();
    const char *key;
    const struct dict_value *v;
    for (size_t at = 0; dict_next(q->xdata, &at, &key, &v);)
        if (!strncmp(key, "trusted.", 8) || !strncmp(key, "user.", 5) || !strncmp(key, "system.", 7))
            if (v->type == DICT_BIN || v->type == DICT_STR || v->type == DICT_OLD)
                (void)dict_set_bin(xattrs, key, v->bytes, v->size_bytes);
    e = disk_make(disk(me), &q->parent->gfid, q->name, &a, target, xattrs);
    if (e < 0)
        return e;
    touch(me, call, &q->parent->gfid, ATTR_MTIME | ATTR_CTIME);
    stat_of(me, &q->inode->gfid, &r->stat);
    stat_of(me, &q->parent->gfid, &r->post);
    return 0;
}

static FIBER int simdisk_mknod(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    bool link_existing = dict_has(q->xdata, "glusterfs-internal-fop") && disk_find(disk(me), &q->inode->gfid);
    if (!link_existing)
        return make(me, call, q, r, q->mode & S_IFMT ? q->mode & S_IFMT : S_IFREG, q->mode, NULL);
    int e = begin(me);
    if (e < 0)
        return e;
    e = disk_link(disk(me), &q->inode->gfid, &q->parent->gfid, q->name);
    if (e == 0)
        stat_of(me, &q->inode->gfid, &r->stat);
    return e;
}

static FIBER int simdisk_mkdir(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    return make(me, call, q, r, S_IFDIR, q->mode, NULL);
}

static FIBER int simdisk_symlink(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    return make(me, call, q, r, S_IFLNK, 0777, q->text);
}

static void mark_open(struct translator *me, struct fd *fd)
{
    *fd_ctx(fd, me) = me; /* the release hook drops the node when this was the last descriptor of an unlinked file */
}

static FIBER int simdisk_create(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    int e = make(me, call, q, r, S_IFREG, q->mode, NULL);
    if (e == 0)
        mark_open(me, q->fd);
    return e;
}

static FIBER int simdisk_link(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    int e = begin(me);
    if (e < 0)
        return e;
    stat_of(me, &q->parent2->gfid, &r->pre2);
    e = disk_link(disk(me), &q->inode->gfid, &q->parent2->gfid, q->name2);
    if (e < 0)
        return e;
    touch(me, call, &q->parent2->gfid, ATTR_MTIME | ATTR_CTIME);
    touch(me, call, &q->inode->gfid, ATTR_CTIME);
    stat_of(me, &q->inode->gfid, &r->stat);
    stat_of(me, &q->parent2->gfid, &r->post2);
    return 0;
}

static bool is_open(struct translator *me, const struct gfid *gfid)
{
    SCOPED(inode_unref) struct inode *inode = inode_table_find(me->graph, gfid);
    return inode && inode->open_fds > 0;
}

static FIBER int simdisk_unlink(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    int e = begin(me);
    if (e < 0)
        return e;
    struct disk_node *n = disk_child(disk(me), &q->parent->gfid, q->name);
    bool keep = n && is_open(me, disk_gfid(n));
    stat_of(me, &q->parent->gfid, &r->pre);
    e = disk_unlink(disk(me), &q->parent->gfid, q->name, keep);
    if (e < 0)
        return e;
    touch(me, call, &q->parent->gfid, ATTR_MTIME | ATTR_CTIME);
    stat_of(me, &q->parent->gfid, &r->post);
    return 0;
}

static FIBER int simdisk_rmdir(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    int e = begin(me);
    if (e < 0)
        return e;
    stat_of(me, &q->parent->gfid, &r->pre);
    e = q->flags & 1 ? disk_remove_tree(disk(me), &q->parent->gfid, q->name)
                     : disk_rmdir(disk(me), &q->parent->gfid, q->name);
    if (e < 0)
        return e;
    touch(me, call, &q->parent->gfid, ATTR_MTIME | ATTR_CTIME);
    stat_of(me, &q->parent->gfid, &r->post);
    return 0;
}

static FIBER int simdisk_rename(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    int e = begin(me);
    if (e < 0)
        return e;
    struct disk_node *n = disk_child(disk(me), &q->parent->gfid, q->name);
    struct disk_node *victim = disk_child(disk(me), &q->parent2->gfid, q->name2);
    struct gfid gfid = n ? *disk_gfid(n) : gfid_null;
    bool keep = victim && is_open(me, disk_gfid(victim));
    stat_of(me, &q->parent->gfid, &r->pre);
    stat_of(me, &q->parent2->gfid, &r->pre2);
    e = disk_rename(disk(me), &q->parent->gfid, q->name, &q->parent2->gfid, q->name2, q->flags, keep);
    if (e < 0)
        return e;
    touch(me, call, &q->parent->gfid, ATTR_MTIME | ATTR_CTIME);
    touch(me, call, &q->parent2->gfid, ATTR_MTIME | ATTR_CTIME);
    touch(me, call, &gfid, ATTR_CTIME);
    stat_of(me, &gfid, &r->stat);
    stat_of(me, &q->parent->gfid, &r->post);
    stat_of(me, &q->parent2->gfid, &r->post2);
    return 0;
}

/* ---- descriptors and data ---- */

static FIBER int simdisk_open(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct disk_node *n;
    int e = begin_at(me, q->inode, &n);
    if (e < 0)
        return e;
    if (q->op == OP_OPEN && q->flags & O_TRUNC)
        e = disk_truncate(disk(me), &q->inode->gfid, 0);
    if (e == 0)
        mark_open(me, q->fd);
    return e;
}

static void simdisk_release(struct translator *me, struct fd *fd, void *ctx)
{
    if (me->graph->edge && fd->inode->open_fds <= 1)
        disk_drop(disk(me), &fd->inode->gfid);
}

static FIBER int simdisk_read(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct disk_node *n;
    int e = begin_at(me, q->inode, &n);
    if (e < 0)
        return e;
    disk_stat(n, &r->stat);
    uint64_t left = q->offset < r->stat.size ? r->stat.size - q->offset : 0;
    r->data = buf_new(MIN(left, q->size));
    if (!r->data)
        return -ENOMEM;
    return (int)disk_read(n, q->offset, r->data->data, r->data->size);
}

static FIBER int simdisk_rchecksum(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct disk_node *n;
    struct range_sums sums;
    int e = begin_at(me, q->inode, &n);
    if (e < 0)
        return e;
    SCOPED(buf_unref) struct buf *b = buf_new(q->size);
    if (!b)
        return -ENOMEM;
    e = range_sums_of(b->data, disk_read(n, q->offset, b->data, b->size), true, &sums);
    if (e == 0)
        e = dict_put_uint(&r->xdata, "fips-mode-rchecksum", 1);
    r->weak_checksum = sums.weak;
    memcpy(r->strong_checksum, sums.strong, sizeof(r->strong_checksum));
    return e;
}

static int sum_block(const struct disk_node *n, struct block_summer *summer, uint64_t offset, struct buf *block,
                     uint8_t *ret_sum)
{
    uint64_t at;

    if (!disk_seek(n, offset, true, &at) || at >= offset + block->size)
        return 0; /* a hole, as the answer says already */
    memset(block->data, 0, block->size);
    (void)disk_read(n, offset, block->data, block->size);
    return block_sum(summer, block->data, block->size, ret_sum);
}

static int sum_blocks(const struct disk_node *n, const struct block_question *k, struct buf *answer)
{
    struct block_summer *summer = block_summer_new(k->key);
    SCOPED(buf_unref) struct buf *block = buf_new(k->block_bytes);
    uint32_t done = 0;
    int e = summer && block ? 0 : -ENOMEM;

    for (uint32_t i = 0; i < k->range_count; i++) {
        for (uint64_t at = 0; at < k->ranges[i].size && e == 0; at += k->block_bytes)
            e = sum_block(n, summer, k->ranges[i].offset + at, block, block_answer_sum(answer, done++));
    }
    block_summer_free(summer);
    return e;
}

static FIBER int simdisk_blocksums(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    SCOPED_FREE struct block_question *k = NEW(struct block_question);
    struct disk_node *n;
    int e = begin_at(me, q->inode, &n);
    if (e == 0)
        e = block_question_get(q->data, k);
    if (e < 0)
        return e;
    SCOPED(buf_unref) struct buf *answer = block_answer_new((uint32_t)block_question_count(k));
    if (!answer)
        return -ENOMEM;
    e = sum_blocks(n, k, answer);
    if (e < 0)
        return e;
    const struct block_range *last = &k->ranges[k->range_count - 1];
    uint64_t next = UINT64_MAX;
    disk_stat(n, &r->stat);
    (void)disk_seek(n, last->offset + last->size, true, &next);
    block_answer_head(answer, r->stat.size, next);
    r->data = take(answer);
    return (int)r->data->size;
}

static FIBER int simdisk_write(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct disk_node *n;
    int e = begin_at(me, q->inode, &n);
    if (e < 0)
        return e;
    disk_stat(n, &r->pre);
    uint64_t offset = q->flags & O_APPEND ? r->pre.size : q->offset;
    e = disk_write(disk(me), &q->inode->gfid, offset, q->data->data, q->data->size);
    if (e < 0)
        return e;
    touch(me, call, &q->inode->gfid, ATTR_MTIME | ATTR_CTIME);
    stat_of(me, &q->inode->gfid, &r->post);
    if (q->flags & (O_SYNC | O_DSYNC))
        disk_sync(disk(me), &q->inode->gfid);
    if (dict_has(q->xdata, "glusterfs.write-is-append"))
        (void)dict_put_uint(&r->xdata, "glusterfs.write-is-append", offset >= r->pre.size);
    if (dict_has(q->xdata, "glusterfs.open-fd-count"))
        (void)dict_put_uint(&r->xdata, "glusterfs.open-fd-count", q->inode->open_fds);
    return (int)q->data->size;
}

static FIBER int simdisk_truncate(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct disk_node *n;
    int e = begin_at(me, q->inode, &n);
    if (e < 0)
        return e;
    disk_stat(n, &r->pre);
    e = disk_truncate(disk(me), &q->inode->gfid, q->offset);
    if (e < 0)
        return e;
    touch(me, call, &q->inode->gfid, ATTR_MTIME | ATTR_CTIME);
    stat_of(me, &q->inode->gfid, &r->post);
    return 0;
}

static FIBER int simdisk_fallocate(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct disk_node *n;
    int e = begin_at(me, q->inode, &n);
    if (e < 0)
        return e;
    disk_stat(n, &r->pre);
    if (q->flags & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE))
        e = disk_punch(disk(me), &q->inode->gfid, q->offset, q->size);
    if (e == 0 && !(q->flags & FALLOC_FL_KEEP_SIZE) && q->offset + q->size > r->pre.size)
        e = disk_truncate(disk(me), &q->inode->gfid, q->offset + q->size);
    if (e < 0)
        return e;
    stat_of(me, &q->inode->gfid, &r->post);
    return 0;
}

static FIBER int simdisk_seek(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct disk_node *n;
    int e = begin_at(me, q->inode, &n);
    if (e < 0)
        return e;
    return disk_seek(n, q->offset, q->flags == SEEK_DATA, &r->offset) ? 0 : -ENXIO;
}

static FIBER int simdisk_flush(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    return begin(me);
}

static FIBER int simdisk_fsync(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct disk_node *n;
    int e = begin_at(me, q->inode, &n);
    if (e < 0)
        return e;
    disk_sync(disk(me), &q->inode->gfid);
    host(me)->syncs++;
    disk_stat(n, &r->pre);
    disk_stat(n, &r->post);
    return 0;
}

/* ---- attributes ---- */

static FIBER int simdisk_setattr(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct disk_node *n;
    int e = begin_at(me, q->inode, &n);
    if (e < 0)
        return e;
    disk_stat(n, &r->pre);
    e = disk_set_attr(disk(me), &q->inode->gfid, q->attr, q->valid);
    if (e == 0 && q->valid & ATTR_SIZE)
        e = disk_truncate(disk(me), &q->inode->gfid, q->attr->size);
    if (e < 0)
        return e;
    stat_of(me, &q->inode->gfid, &r->post);
    return 0;
}

static FIBER int simdisk_setxattr(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct disk_node *n;
    int e = begin_at(me, q->inode, &n);
    if (e < 0)
        return e;
    const char *key;
    const struct dict_value *v;
    for (size_t at = 0; dict_next(q->xattrs, &at, &key, &v);) {
        bool has = dict_has(disk_xattrs(n), key);
        if (q->flags & XATTR_CREATE && has)
            return -EEXIST;
        if (q->flags & XATTR_REPLACE && !has)
            return -ENODATA;
        const void *bytes;
        size_t size;
        e = dict_get_bin(q->xattrs, key, &bytes, &size);
        if (e < 0 || (e = disk_set_xattr(disk(me), &q->inode->gfid, key, bytes, size)) < 0)
            return e;
    }
    return 0;
}

static FIBER int simdisk_getxattr(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct disk_node *n;
    int e = begin_at(me, q->inode, &n);
    if (e < 0)
        return e;
    const char *key;
    const struct dict_value *v;
    size_t size = 0;
    for (size_t at = 0; dict_next(disk_xattrs(n), &at, &key, &v);) {
        if (q->text ? strcmp(key, q->text) != 0 : is_internal(key))
            continue;
        e = dict_put_bin(&r->xattrs, key, v->bytes, v->size_bytes);
        if (e < 0)
            return e;
        size += q->text ? v->size_bytes : strlen(key) + 1;
    }
    return q->text && !r->xattrs ? -ENODATA : (int)size;
}

static FIBER int simdisk_removexattr(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct disk_node *n;
    int e = begin_at(me, q->inode, &n);
    if (e < 0)
        return e;
    return disk_remove_xattr(disk(me), &q->inode->gfid, q->text);
}

static void add32(uint8_t *sum, const uint8_t *add, size_t size)
{
    for (size_t i = 0; i + 4 <= size; i += 4)
        put_be32(sum + i, get_be32(sum + i) + get_be32(add + i));
}

static int xattrop_one(struct translator *me, const struct request *q, struct disk_node *n, const char *key,
                       struct reply *r)
{
    const void *add, *old;
    size_t size, old_size;
    uint8_t sum[64] = { 0 };
    int e = dict_get_bin(q->xattrs, key, &add, &size);
    if (e < 0)
        return e;
    if (size > sizeof(sum))
        return -E2BIG;
    if (dict_get_bin(disk_xattrs(n), key, &old, &old_size) == 0)
        memcpy(sum, old, MIN(size, old_size));
    add32(sum, add, size);
    static const uint8_t zeros[64];
    if (memcmp(add, zeros, size) != 0) {
        e = disk_set_xattr(disk(me), &q->inode->gfid, key, sum, size);
        if (e < 0)
            return e;
    }
    return dict_put_bin(&r->xattrs, key, sum, size);
}

static FIBER int simdisk_xattrop(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct disk_node *n;
    int e = begin_at(me, q->inode, &n);
    if (e < 0)
        return e;
    if (q->flags != XATTROP_ADD32)
        return -EOPNOTSUPP;
    const char *key;
    const struct dict_value *v;
    for (size_t at = 0; dict_next(q->xattrs, &at, &key, &v);) {
        e = xattrop_one(me, q, n, key, r);
        if (e < 0)
            break;
    }
    if (e < 0)
        dict_unref(take(r->xattrs)); /* a failure carries nothing */
    return e;
}

/* ---- directories ---- */

static uint32_t dirent_type(uint32_t mode)
{
    return (mode & S_IFMT) >> 12;
}

static int list_dir(struct translator *me, const struct request *q, const struct disk_node *dir, struct reply *r)
{
    int e = 0;
    const char *name;
    struct gfid gfid;
    uint64_t cookie = q->offset, used = 0;
    r->entries->at_end = true;
    while (disk_next_entry(dir, cookie, &name, &gfid, &cookie)) {
        struct disk_node *n = disk_find(disk(me), &gfid);
        struct dir_entry *entry;
        struct iatt a = { 0 };
        if (n)
            disk_stat(n, &a);
        used += strlen(name) + 1 + sizeof(*entry);
        if (used > q->size && r->entries->count) {
            r->entries->at_end = false;
            break;
        }
        e = dir_entries_add(r->entries, name, strlen(name), gfid_to_ino(&gfid), cookie, dirent_type(a.mode), &entry);
        if (e < 0)
            return e;
        if (q->op == OP_READDIRP && n) {
            entry->stat = a;
            e = wanted_xattrs(n, q->xattrs, &entry->xattrs);
            if (e < 0)
                return e;
        }
    }
    return (int)r->entries->count;
}

static FIBER int simdisk_readdir(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct disk_node *dir;
    int e = begin_at(me, q->inode, &dir);
    if (e < 0)
        return e;
    r->entries = dir_entries_new();
    if (!r->entries)
        return -ENOMEM;
    e = list_dir(me, q, dir, r);
    if (e < 0)
        dir_entries_free(take(r->entries));
    return e;
}

static const struct option simdisk_options[] = { OPT_IGNORED("directory", .help = "the disk is in memory"), OPT_END };

const struct translator_class simdisk_class = {
    .type = "storage/simdisk",
    .options = simdisk_options,
    .is_leaf = true,
    .uses_fd_ctx = true,
    .fd_release = simdisk_release,
    .ops = {
        [OP_LOOKUP] = simdisk_lookup,
        [OP_STAT] = simdisk_stat,
        [OP_READLINK] = simdisk_readlink,
        [OP_ACCESS] = simdisk_access,
        [OP_MKNOD] = simdisk_mknod,
        [OP_MKDIR] = simdisk_mkdir,
        [OP_SYMLINK] = simdisk_symlink,
        [OP_CREATE] = simdisk_create,
        [OP_LINK] = simdisk_link,
        [OP_UNLINK] = simdisk_unlink,
        [OP_RMDIR] = simdisk_rmdir,
        [OP_RENAME] = simdisk_rename,
        [OP_OPEN] = simdisk_open,
        [OP_OPENDIR] = simdisk_open,
        [OP_READ] = simdisk_read,
        [OP_WRITE] = simdisk_write,
        [OP_RCHECKSUM] = simdisk_rchecksum,
        [OP_BLOCKSUMS] = simdisk_blocksums,
        [OP_TRUNCATE] = simdisk_truncate,
        [OP_FALLOCATE] = simdisk_fallocate,
        [OP_SEEK] = simdisk_seek,
        [OP_FLUSH] = simdisk_flush,
        [OP_FSYNC] = simdisk_fsync,
        [OP_FSYNCDIR] = simdisk_fsync,
        [OP_STATFS] = simdisk_statfs,
        [OP_SETATTR] = simdisk_setattr,
        [OP_SETXATTR] = simdisk_setxattr,
        [OP_GETXATTR] = simdisk_getxattr,
        [OP_REMOVEXATTR] = simdisk_removexattr,
        [OP_XATTROP] = simdisk_xattrop,
        [OP_READDIR] = simdisk_readdir,
        [OP_READDIRP] = simdisk_readdir,
    },
};
