/* cluster/replicate/metadata.c - changes of attributes and extended attributes. */
#include "cluster/replicate/replicate_internal.h"
#include <sys/xattr.h>

/* Not private names. 0 or the refusal. */
static int check_names(const struct replicate *s, const struct request *q)
{
    const struct dict_value *value;
    const char *name;
    size_t at = 0;

    if (q->op == OP_REMOVEXATTR)
        return q->text && counters_is_key(s, q->text) ? -EPERM : 0;
    if (q->op != OP_SETXATTR)
        return 0;
    while (dict_next(q->xattrs, &at, &name, &value)) {
        if (counters_is_key(s, name))
            return -EPERM;
    }
    return 0;
}

static bool is_idempotent(const struct request *q)
{
    if (q->op == OP_SETATTR)
        return true;
    return q->op == OP_SETXATTR && !(q->flags & (XATTR_CREATE | XATTR_REPLACE));
}

FIBER int replicate_attributes(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    SCOPED(txn_free) struct txn *txn = NULL;
    int ret = check_names(replicate_of(me), q);

    if (ret < 0 || split_brain_set(me, call, q, &ret))
        return ret;
    txn = txn_new(me, call, q, CHANGE_METADATA);
    if (!txn)
        return -ENOMEM;
    txn_claim(txn, q->inode, CHANGE_METADATA);
    txn->is_idempotent = is_idempotent(q);
    return txn_run(txn, r);
}
