/* features/selinux - security.selinux of the user is trusted.glusterfs.selinux on the brick.
 *
 * The brick's own SELinux labels its files under the first name, so the user's label needs another. Both directions:
 * names asked for and values given on the way down, names found on the way up. */
#include "graph/translator.h"

#define USER_NAME  "security.selinux"
#define BRICK_NAME "trusted.glusterfs.selinux"

struct selinux {
    bool is_on;
};

/* A copy of `d` in which the key `from` is called `to`; *ret is NULL when there is nothing to rename. */
static int renamed(const struct dict *d, const char *from, const char *to, struct dict **ret)
{
    const struct dict_value *value;
    const char *key;
    size_t at = 0;

    *ret = NULL;
    if (!d || !dict_has(d, from))
        return 0;
    SCOPED(dict_unref) struct dict *copy = dict_new();
    int r = copy ? 0 : -ENOMEM;
    while (r == 0 && dict_next(d, &at, &key, &value))
        r = dict_set_value(copy, strcmp(key, from) == 0 ? to : key, value);
    if (r == 0)
        *ret = take(copy);
    return r;
}

static int rename_in_place(struct dict **d)
{
    struct dict *copy;
    int r = renamed(*d, BRICK_NAME, USER_NAME, &copy);

    if (r < 0 || !copy)
        return r;
    dict_unref(*d);
    *d = copy;
    return 0;
}

static int rename_reply(struct reply *r)
{
    int result = rename_in_place(&r->xdata);

    if (result == 0)
        result = rename_in_place(&r->xattrs);
    for (uint32_t i = 0; result == 0 && r->entries && i < r->entries->count; i++)
        result = rename_in_place(&r->entries->list[i].xattrs);
    return result;
}

static FIBER int selinux_any(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    const struct selinux *s = me->state;
    SCOPED(dict_unref) struct dict *xdata = NULL;
    SCOPED(dict_unref) struct dict *xattrs = NULL;
    struct request own = *q;

    if (!s->is_on)
        return default_op(me, call, q, r);
    int result = renamed(q->xdata, USER_NAME, BRICK_NAME, &xdata);
    if (result == 0)
        result = renamed(q->xattrs, USER_NAME, BRICK_NAME, &xattrs);
    if (result < 0)
        return result;
    if (xdata)
        own.xdata = xdata;
    if (xattrs)
        own.xattrs = xattrs;
    if ((q->op == OP_GETXATTR || q->op == OP_REMOVEXATTR) && q->text && strcmp(q->text, USER_NAME) == 0)
        own.text = BRICK_NAME;
    result = default_op(me, call, &own, r);
    if (result < 0)
        return result;
    int renaming = rename_reply(r);
    if (renaming < 0) {
        reply_done(r);
        return renaming;
    }
    return result;
}

static const struct option selinux_options[] = {
    OPT_BOOL("selinux", struct selinux, is_on, .def = "on", .live = true, .help = "keep SELinux labels of users"),
    OPT_END,
};

const struct translator_class selinux_class = {
    .type = "features/selinux",
    .state_size = sizeof(struct selinux),
    .options = selinux_options,
    .ops = { [OP_COMPOUND] = default_compound },
    .any = selinux_any,
    .children_min = 1,
    .children_max = 1,
};
