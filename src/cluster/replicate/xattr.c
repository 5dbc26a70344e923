/* cluster/replicate/xattr.c - reading extended attributes, and the virtual ones of this translator. */
#include "cluster/replicate/replicate_internal.h"
#include "core/mem.h"
#include <stdio.h>

static int put_text(struct reply *r, const char *name, const char *text)
{
    int ret;

    r->xattrs = dict_new();
    if (!r->xattrs)
        return -ENOMEM;
    ret = dict_set_str(r->xattrs, name, text);
    return ret < 0 ? ret : (int)strlen(text);
}

/* ---- replica.split-brain-status ---- */

static FIBER int split_brain_status(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct replicate *s = replicate_of(me);
    SCOPED_FREE char *text = NULL;
    struct known known;
    bool in_data, in_metadata;
    int ret = known_get(me, call, q->inode, q->fd, true, &known);

    if (ret < 0)
        return ret;
    in_data = !known.data && !known.arbiter_is_good && q->inode->type != S_IFDIR;
    in_metadata = !known.metadata && !known.arbiter_is_good;
    if (!in_data && !in_metadata)
        return put_text(r, q->text, "The file is not under data or metadata split-brain");
    text = mem_printf("data-split-brain:%s    metadata-split-brain:%s    Choices:", in_data ? "yes" : "no",
                      in_metadata ? "yes" : "no");
    for_each_child(i, known.seen & ~s->arbiter)
    {
        char *longer =
            text ? mem_printf("%s%s%s", text, text[strlen(text) - 1] == ':' ? "" : ",", me->children[i]->name) : NULL;

        mem_free(text);
        text = longer;
    }
    return text ? put_text(r, q->text, text) : -ENOMEM;
}

/* ---- names that all bricks answer together ---- */

enum joining { JOIN_PATHINFO, JOIN_LIST };

static int append_answer(struct fan *fan, unsigned child, const char *name, enum joining how, char **text)
{
    struct replicate *s = replicate_of(fan->me);
    const char *value;
    char *longer;

    (void)s;
    if (dict_get_str(fan->list[child].r.xattrs, name, &value) < 0)
        return 0;
    if (how == JOIN_PATHINFO && !**text)
        longer = mem_printf("(<REPLICATE:%s> %s", fan->me->name, value);
    else
        longer = mem_printf("%s%s%s", *text, **text ? " " : "", value);
    if (!longer)
        return -ENOMEM;
    mem_free(*text);
    *text = longer;
    return 0;
}

static FIBER int ask_all_bricks(struct translator *me, struct call *call, const struct request *q, enum joining how,
                                struct reply *r)
{
    SCOPED(fan_free) struct fan *fan = fan_new(me, call, replicate_of(me)->up, q);
    SCOPED_FREE char *text = mem_strdup("");
    int ret = 0;

    if (!fan || !text)
        return -ENOMEM;
    fan_run(fan);
    if (!fan_ok(fan))
        return fan_worst(fan) ? fan_worst(fan) : -ENOTCONN;
    for_each_child(i, fan_ok(fan))
    {
        if (ret == 0)
            ret = append_answer(fan, i, q->text, how, &text);
    }
    if (ret < 0)
        return ret;
    if (how == JOIN_PATHINFO && *text) {
        char *closed = mem_printf("%s)", text);

        if (!closed)
            return -ENOMEM;
        mem_free(text);
        text = closed;
    }
    return put_text(r, q->text, text);
}

/* ---- the operation ---- */

static FIBER int hide_private(struct replicate *s, struct reply *r)
{
    const struct dict_value *value;
    struct dict *clean;
    const char *name;
    size_t at = 0;
    int ret = 0, size_bytes = 0;

    clean = dict_new();
    if (!clean)
        return -ENOMEM;
    while (ret == 0 && dict_next(r->xattrs, &at, &name, &value)) {
        if (counters_is_key(s, name))
            continue;
        ret = dict_set_value(clean, name, value);
        size_bytes += (int)strlen(name) + 1;
    }
    dict_unref(r->xattrs);
    r->xattrs = clean;
    return ret < 0 ? ret : size_bytes;
}

static bool is_one_of(const char *name, const char *const *names)
{
    for (; *names; names++) {
        if (strcmp(name, *names) == 0)
            return true;
    }
    return false;
}

FIBER int replicate_getxattr(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    static const char *const pathinfo[] = { "trusted.glusterfs.pathinfo", "glusterfs.pathinfo", NULL };
    static const char *const lists[] = { "trusted.glusterfs.list-node-uuids", NULL };
    struct replicate *s = replicate_of(me);
    int ret = children_admit(me);

    if (ret < 0)
        return ret;
    if (!q->text) {
        ret = replicate_read(me, call, q, r);
        return ret < 0 ? ret : hide_private(s, r);
    }
    if (counters_is_key(s, q->text))
        return -ENODATA;
    if (strcmp(q->text, "replica.split-brain-status") == 0)
        return split_brain_status(me, call, q, r);
    if (is_one_of(q->text, pathinfo))
        return ask_all_bricks(me, call, q, JOIN_PATHINFO, r);
    if (is_one_of(q->text, lists))
        return ask_all_bricks(me, call, q, JOIN_LIST, r);
    return replicate_read(me, call, q, r);
}
