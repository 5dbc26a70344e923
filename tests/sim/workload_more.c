/* sim/workload_more.c - attributes, truncated and punched files, directories with contents, hard links. */
#include "core/mem.h"
#include "sim/workload_internal.h"
#include <linux/falloc.h>
#include <stdio.h>

/* ---- files of one writer, truncated and punched ---- */

FIBER int prepare_loose_file(struct actor *a, struct inode *root, unsigned client)
{
    char text[16];
    snprintf(text, sizeof(text), "l%u", client);
    struct inode *inode = a->files[SHARED_FILES + client];
    SCOPED(fd_unref) struct fd *fd = fd_new(inode, O_RDWR, 1000);
    SCOPED(reply_free) struct reply *r = reply_new();
    struct request q = { .op = OP_CREATE,
                         .parent = root,
                         .name = text,
                         .inode = inode,
                         .fd = fd,
                         .flags = O_RDWR | O_CREAT | O_EXCL,
                         .mode = S_IFREG | 0644 };
    return actor_ask(a, &q, r);
}

/* Everything from block `from` (or that block only) becomes zeros. */
static FIBER void wipe_blocks(struct actor *a, unsigned file, unsigned from, bool only)
{
    SCOPED(fd_unref) struct fd *fd = actor_open(a, file);
    if (!fd || actor_is_dead(a))
        return;
    uint32_t versions[BLOCKS] = { 0 };
    unsigned end = only ? from + 1 : BLOCKS;
    for (unsigned i = from; i < end; i++) {
        struct reg *reg = model_block(&a->w->model, file, i);
        if (reg->issued + 1 >= MODEL_MAX_VERSIONS)
            return;
        versions[i] = reg_issue_wipe(reg);
    }
    SCOPED(reply_free) struct reply *r = reply_new();
    struct request q = { .op = OP_TRUNCATE, .inode = fd->inode, .fd = fd, .offset = block_offset(file, from) };
    if (only) {
        q.op = OP_FALLOCATE;
        q.flags = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
        q.size = LOOSE_STRIDE;
    }
    int ret = actor_ask(a, &q, r);
    actor_say(a, only ? "punch" : "truncate", file, from, versions[from], ret);
    if (ret < 0 || actor_is_dead(a))
        return;
    for (unsigned i = from; i < end; i++)
        reg_ack(model_block(&a->w->model, file, i), versions[i]);
}

static FIBER void grow_file(struct actor *a, unsigned file)
{
    SCOPED(fd_unref) struct fd *fd = actor_open(a, file);
    if (!fd || actor_is_dead(a))
        return;
    SCOPED(reply_free) struct reply *r = reply_new();
    struct request q = { .op = OP_TRUNCATE, .inode = fd->inode, .fd = fd, .offset = BLOCKS * LOOSE_STRIDE };
    (void)actor_ask(a, &q, r);
}

/* ---- attributes: version v is owner v, and a mode made of it ---- */

static uint32_t mode_of(uint32_t version)
{
    return 0600 | (version & 077);
}

static struct inode *attr_inode(struct actor *a, unsigned inode)
{
    return inode < SHARED_FILES ? a->files[inode] : a->dirs[inode - SHARED_FILES];
}

static FIBER void change_attr(struct actor *a, unsigned inode, enum attr_kind kind)
{
    struct reg *reg = model_attr(&a->w->model, inode, kind);
    if (reg->issued + 1 >= MODEL_MAX_VERSIONS)
        return;
    uint32_t version = reg_issue(reg);
    uint8_t value[4];
    struct iatt attr = { .uid = version, .mode = mode_of(version) };
    SCOPED(dict_unref) struct dict *xattrs = dict_new();
    put_be32(value, version);
    if (dict_set_bin(xattrs, "user.v", value, sizeof(value)) < 0)
        return;
    SCOPED(reply_free) struct reply *r = reply_new();
    struct request q = {
        .op = OP_SETATTR, .inode = attr_inode(a, inode), .attr = &attr, .valid = ATTR_UID | ATTR_MODE
    };
    if (kind == ATTR_XATTR)
        q = (struct request) { .op = OP_SETXATTR, .inode = attr_inode(a, inode), .xattrs = xattrs };
    int ret = actor_ask(a, &q, r);
    actor_say(a, kind == ATTR_XATTR ? "set xattr" : "set attributes", inode, kind, version, ret);
    if (ret >= 0 && !actor_is_dead(a))
        reg_ack(reg, version);
}

static FIBER int look_at_attr(struct actor *a, unsigned inode, enum attr_kind kind, int64_t *ret_version)
{
    SCOPED(reply_free) struct reply *r = reply_new();
    struct request q = { .op = OP_STAT, .inode = attr_inode(a, inode) };
    if (kind == ATTR_XATTR)
        q = (struct request) { .op = OP_GETXATTR, .inode = attr_inode(a, inode), .text = "user.v" };
    int ret = actor_ask(a, &q, r);
    const void *bytes;
    size_t size;
    if (kind == ATTR_XATTR && ret == -ENODATA)
        *ret_version = 0;
    else if (ret < 0)
        return ret;
    else if (kind == ATTR_XATTR)
        *ret_version =
            dict_get_bin(r->xattrs, "user.v", &bytes, &size) == 0 && size == 4 ? (int64_t)get_be32(bytes) : -1;
    else if (r->stat.uid == 0 || (r->stat.mode & 07777) == mode_of(r->stat.uid))
        *ret_version = r->stat.uid;
    else
        *ret_version = -1;
    return 0;
}

FIBER void check_attr(struct actor *a, unsigned inode, enum attr_kind kind)
{
    uint32_t acked = model_attr(&a->w->model, inode, kind)->acked;
    int64_t version;
    int ret = look_at_attr(a, inode, kind, &version);
    if (ret < 0)
        actor_failed(a, &attr_inode(a, inode)->gfid, "attributes of inode", inode, kind, ret);
    if (ret < 0 || actor_is_dead(a))
        return;
    a->w->stats.reads++;
    (void)model_check_attr(&a->w->model, inode, kind, version, acked, a->who);
}

FIBER void rich_op(struct actor *a)
{
    unsigned file = SHARED_FILES + a->index, block = (unsigned)actor_dice(a, BLOCKS);
    enum attr_kind kind = actor_dice(a, 2) ? ATTR_XATTR : ATTR_OWNER_AND_MODE;
    switch (actor_dice(a, 8)) {
    case 0: wipe_blocks(a, file, block, true); break;
    case 1: wipe_blocks(a, file, block, false); break;
    case 2: grow_file(a, file); break;
    case 3:
    case 4: write_block(a, file, block); break;
    case 5: read_block(a, SHARED_FILES + (unsigned)actor_dice(a, a->w->cluster->config.clients), block); break;
    case 6: change_attr(a, actor_own(a, ATTRS), kind); break;
    default: check_attr(a, (unsigned)actor_dice(a, ATTRS), kind); break;
    }
}

/* ---- directories and links ---- */

/* The file in a directory, known by the directory's gfid. */
static struct gfid inner_gfid(const struct gfid *dir)
{
    struct gfid g = *dir;
    g.bytes[0] = TAG_FILE;
    return g;
}

#define INNER_BYTES 100

static FIBER void make_inner(struct actor *a, struct inode *dir)
{
    struct gfid gfid = inner_gfid(&dir->gfid);
    SCOPED(inode_unref) struct inode *inode = inode_table_get(a->graph, &gfid, S_IFREG);
    SCOPED(reply_free) struct reply *r = reply_new();
    struct request q = { .op = OP_MKNOD, .parent = dir, .name = "inner", .inode = inode, .mode = S_IFREG | 0600 };
    if (actor_ask(a, &q, r) < 0 || actor_is_dead(a))
        return;
    SCOPED(buf_unref) struct buf *data = buf_new(INNER_BYTES);
    memset(data->data, 'i', data->size);
    SCOPED(reply_free) struct reply *r2 = reply_new();
    struct request w = { .op = OP_WRITE, .inode = inode, .data = data, .size = data->size };
    (void)actor_ask(a, &w, r2);
}

static const struct gfid old_gfid = { { TAG_DIR, [15] = 9 } };

FIBER int prepare_old(struct actor *a, struct inode *root)
{
    SCOPED(inode_unref) struct inode *inode = inode_table_get(a->graph, &old_gfid, S_IFDIR);
    SCOPED(reply_free) struct reply *r = reply_new();
    struct request q = { .op = OP_MKDIR, .parent = root, .name = "old", .inode = inode, .mode = S_IFDIR | 0700 };
    int ret = actor_ask(a, &q, r);
    if (ret >= 0)
        make_inner(a, inode);
    return ret;
}

FIBER void check_old(struct actor *a)
{
    struct gfid gfid = inner_gfid(&old_gfid);
    SCOPED(inode_unref) struct inode *inode = inode_table_get(a->graph, &gfid, S_IFREG);
    SCOPED(reply_free) struct reply *r = reply_new();
    struct request q = { .op = OP_READ, .inode = inode, .size = INNER_BYTES + 1 };
    int ret = actor_ask(a, &q, r);
    if (ret < 0)
        actor_failed(a, &gfid, "read of the old file", 0, 0, ret);
    if (ret < 0 || actor_is_dead(a))
        return;
    bool is_right = r->data && r->data->size == INNER_BYTES;
    for (unsigned i = 0; is_right && i < INNER_BYTES; i++)
        is_right = r->data->data[i] == 'i';
    a->w->model.checks++;
    if (!is_right)
        model_violation(&a->w->model, "%s: the old file has other bytes", a->who);
}

FIBER void make_dir(struct actor *a, unsigned dir, unsigned name)
{
    char text[16];
    struct reg *reg = model_name(&a->w->model, dir, name);
    bool certain = actor_is_certain(a, reg), present = name_is_present(reg);
    struct gfid gfid = gfid_random(a->env);
    gfid.bytes[0] = TAG_DIR;
    uint32_t version = reg_issue_name(reg, &gfid);
    a->names[dir][name].asked_ns = 0;
    SCOPED(inode_unref) struct inode *inode = inode_table_get(a->graph, &gfid, S_IFDIR);
    SCOPED(reply_free) struct reply *r = reply_new();
    struct request q = {
        .op = OP_MKDIR, .parent = a->dirs[dir], .name = name_text(name, text), .inode = inode, .mode = S_IFDIR | 0700
    };
    int ret = actor_ask(a, &q, r);
    if (actor_is_dead(a))
        return;
    actor_say(a, "make directory", dir, name, version, ret);
    a->w->stats.name_changes++;
    if (ret >= 0)
        reg_ack(reg, version);
    if (certain && ret >= 0 && present)
        model_violation(&a->w->model, "%s: mkdir of %u/%u succeeded over an existing name", a->who, dir, name);
    if (ret >= 0)
        make_inner(a, inode);
}

FIBER void empty_dir(struct actor *a, const struct gfid *gfid)
{
    SCOPED(inode_unref) struct inode *inode = inode_table_get(a->graph, gfid, S_IFDIR);
    SCOPED(reply_free) struct reply *r = reply_new();
    struct request q = { .op = OP_UNLINK, .parent = inode, .name = "inner" };
    (void)actor_ask(a, &q, r);
}

FIBER void link_name(struct actor *a, unsigned dir, unsigned from, unsigned dir2, unsigned to)
{
    char text[16];
    struct reg *old = model_name(&a->w->model, dir, from), *new = model_name(&a->w->model, dir2, to);
    if (old == new || !reg_is_certain(old) || !name_is_present(old) || old->history[old->acked].bytes[0] != TAG_FILE)
        return;
    struct gfid gfid = old->history[old->acked];
    bool certain = actor_is_certain(a, new), present = name_is_present(new);
    uint32_t version = reg_issue_name(new, &gfid);
    a->names[dir2][to].asked_ns = 0;
    SCOPED(inode_unref) struct inode *inode = inode_table_get(a->graph, &gfid, S_IFREG);
    SCOPED(reply_free) struct reply *r = reply_new();
    struct request q = { .op = OP_LINK, .inode = inode, .parent2 = a->dirs[dir2], .name2 = name_text(to, text) };
    int ret = actor_ask(a, &q, r);
    if (actor_is_dead(a))
        return;
    actor_say(a, "link", dir2, to, version, ret);
    a->w->stats.name_changes++;
    if (ret >= 0)
        reg_ack(new, version);
    if (certain && ret >= 0 && present)
        model_violation(&a->w->model, "%s: link of %u/%u succeeded over an existing name", a->who, dir2, to);
}
