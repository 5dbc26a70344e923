/* features/arbiter - a brick that keeps names, attributes and extended attributes, but no data.
 *
 * What would change data is answered here with success and the attributes of the last look at the inode; the child
 * never sees it, so files on this brick have size 0. Reading data is ENOSYS: whoever asks a replica for data must know
 * that this one has none. Everything else passes through. */
#include "graph/translator.h"
#include "core/mem.h"

static void remember(struct translator *me, struct inode *inode, const struct iatt *stat)
{
    if (!inode || !iatt_is_set(stat))
        return;
    void **ctx = inode_ctx(inode, me);
    if (!*ctx)
        *ctx = mem_alloc(sizeof(*stat));
    if (*ctx)
        memcpy(*ctx, stat, sizeof(*stat)); /* without memory the next answer asks the child */
}

/* The attributes to answer with: remembered, or the child's. */
static FIBER int attributes_of(struct translator *me, struct call *call, const struct request *q, struct iatt *ret_stat)
{
    const struct iatt *known = *inode_ctx(q->inode, me);

    if (known) {
        *ret_stat = *known;
        return 0;
    }
    SCOPED(reply_free) struct reply *r = reply_new();
    if (!r)
        return -ENOMEM;
    int result = child_stat(me, 0, call, q->inode, q->fd, NULL, r);
    if (result < 0)
        return result;
    remember(me, q->inode, &r->stat);
    *ret_stat = r->stat;
    return 0;
}

static FIBER int answer_change(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    int result = attributes_of(me, call, q, &r->pre);

    if (result < 0)
        return result;
    r->post = r->pre;
    return 0;
}

static FIBER int arbiter_write(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    int result = answer_change(me, call, q, r);

    if (result < 0)
        return result;
    if (dict_has(q->xdata, "glusterfs.open-fd-count"))
        result = dict_put_uint(&r->xdata, "glusterfs.open-fd-count", q->inode->open_fds);
    if (result == 0 && dict_has(q->xdata, "glusterfs.open-active-fd-count"))
        result = dict_put_uint(&r->xdata, "glusterfs.open-active-fd-count", q->inode->open_fds);
    if (result == 0 && dict_has(q->xdata, "glusterfs.write-is-append"))
        result = dict_put_uint(&r->xdata, "glusterfs.write-is-append", 1);
    return result < 0 ? result : (int)q->data->size;
}

static FIBER int arbiter_copy_range(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    int result = answer_change(me, call, q, r);

    if (result < 0)
        return result;
    r->stat = r->pre;
    return (int)MIN(q->size, (uint64_t)INT32_MAX);
}

static FIBER int has_no_data(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    return -ENOSYS;
}

static FIBER int arbiter_look(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    int result = default_op(me, call, q, r);

    if (result < 0)
        return result;
    if (q->op != OP_LOOKUP) {
        remember(me, q->inode, q->op == OP_SETATTR ? &r->post : &r->stat);
    } else if (!gfid_is_null(&r->stat.gfid)) {
        SCOPED(inode_unref) struct inode *found = inode_table_get(me->graph, &r->stat.gfid, iatt_type(&r->stat));
        remember(me, found, &r->stat);
    }
    return result;
}

static void arbiter_forget(struct translator *me, struct inode *inode, void *ctx)
{
    mem_free(ctx);
}

const struct translator_class arbiter_class = {
    .type = "features/arbiter",
    .ops = {
        [OP_LOOKUP] = arbiter_look,
        [OP_STAT] = arbiter_look,
        [OP_SETATTR] = arbiter_look,
        [OP_WRITE] = arbiter_write,
        [OP_TRUNCATE] = answer_change,
        [OP_FALLOCATE] = answer_change,
        [OP_COPY_RANGE] = arbiter_copy_range,
        [OP_READ] = has_no_data,
        [OP_SEEK] = has_no_data,
        [OP_BLOCKSUMS] = has_no_data,
    },
    .children_min = 1,
    .children_max = 1,
    .uses_inode_ctx = true,
    .inode_forget = arbiter_forget,
};
