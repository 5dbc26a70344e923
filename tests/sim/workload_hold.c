/* sim/workload_hold.c - files that are open, whether they have a name or not. Clients open what is under a name, remove
 * and replace the names meanwhile, and go on using the descriptors: nothing of that may fail. */
#include "core/mem.h"
#include "sim/workload_internal.h"
#include <fcntl.h>

static FIBER int find(struct actor *a, struct gfid *ret_gfid)
{
    char text[16];
    SCOPED(reply_free) struct reply *r = reply_new();
    struct request q = { .op = OP_LOOKUP,
                         .parent = a->dirs[0],
                         .name = name_text((unsigned)actor_dice(a, NAMES), text) };
    int ret = actor_ask(a, &q, r);
    if (ret >= 0)
        *ret_gfid = r->stat.gfid;
    return ret;
}

static FIBER void hold_file(struct actor *a)
{
    struct gfid gfid;
    if (find(a, &gfid) < 0 || gfid.bytes[0] != TAG_FILE)
        return;
    SCOPED(inode_unref) struct inode *inode = inode_table_get(a->graph, &gfid, S_IFREG);
    SCOPED(fd_unref) struct fd *fd = fd_new(inode, O_RDWR, 1000);
    SCOPED(reply_free) struct reply *r = reply_new();
    struct request q = { .op = OP_OPEN, .inode = inode, .fd = fd, .flags = O_RDWR };
    int ret = actor_ask(a, &q, r);
    if (ret >= 0) {
        fd_unref(take(a->held));
        a->held = take(fd);
    } else if (ret != -ENOENT && ret != -ESTALE) { /* removed meanwhile */
        model_violation(&a->w->model, "%s: opening %s gave %s", a->who, GFID_TEXT(&gfid), errno_name(ret));
    }
}

static FIBER void use_held(struct actor *a)
{
    static const enum op ops[] = { OP_STAT, OP_STAT, OP_STAT, OP_READ, OP_WRITE, OP_TRUNCATE, OP_FSYNC, OP_SETATTR };
    SCOPED(fd_unref) struct fd *fd = a->held ? fd_ref(a->held) : NULL;
    SCOPED(buf_unref) struct buf *data = buf_new(MODEL_BLOCK);
    SCOPED(reply_free) struct reply *r = reply_new();
    struct iatt attr = { .mode = 0600 };
    if (!fd)
        return;
    memset(data->data, 'h', MODEL_BLOCK);
    struct request q = { .op = ops[actor_dice(a, ARRAY_SIZE(ops))], .inode = fd->inode, .fd = fd };
    if (q.op == OP_READ || q.op == OP_WRITE)
        q.size = MODEL_BLOCK;
    if (q.op == OP_WRITE)
        q.data = data;
    if (q.op == OP_SETATTR) {
        q.attr = &attr;
        q.valid = ATTR_MODE;
    }
    int ret = actor_ask(a, &q, r);
    if (ret < 0)
        model_violation(&a->w->model, "%.6f s: %s: %s of %s, which is open, gave %s", (double)env_now_ns(a->env) / 1e9,
                        a->who, op_name(q.op), GFID_TEXT(&fd->inode->gfid), errno_name(ret));
}

FIBER void hold_op(struct actor *a)
{
    uint64_t what = actor_dice(a, 100);
    if (what < 60)
        use_held(a);
    else if (what < 75)
        hold_file(a);
    else
        change_name(a);
}
