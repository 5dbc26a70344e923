/* Running operations on translators: the table of names, dispatch with checks and counters, calls. */
#include "graph/graph.h"
#include "core/mem.h"
#include <stdio.h>
#include <strings.h>

#define ERRNO_MAX 4095

static const struct {
    const char *name;
    unsigned needs;
} op_table[OP_COUNT] = {
#define X(upper, lower, needs_) [OP_##upper] = { #lower, needs_ },
    OPS(X)
#undef X
};

const char *op_name(enum op op)
{
    return (unsigned)op < OP_COUNT ? op_table[op].name : "unknown";
}

unsigned op_needs(enum op op)
{
    assert((unsigned)op < OP_COUNT);
    return op_table[op].needs;
}

int op_parse(const char *name)
{
    static const struct {
        const char *name;
        enum op op;
    } old_names[] = {
        { "fstat", OP_STAT },         { "readv", OP_READ },
        { "writev", OP_WRITE },       { "ftruncate", OP_TRUNCATE },
        { "discard", OP_FALLOCATE },  { "zerofill", OP_FALLOCATE },
        { "fsetattr", OP_SETATTR },   { "fsetxattr", OP_SETXATTR },
        { "fgetxattr", OP_GETXATTR }, { "fxattrop", OP_XATTROP },
        { "finodelk", OP_INODELK },   { "fremovexattr", OP_REMOVEXATTR },
        { "fentrylk", OP_ENTRYLK },   { "copy_file_range", OP_COPY_RANGE },
        { "lseek", OP_SEEK },         { "icreate", OP_CREATE },
        { "namelink", OP_LINK },      { "put", OP_CREATE },
    };

    for (unsigned i = 0; i < OP_COUNT; i++) {
        if (strcasecmp(name, op_table[i].name) == 0)
            return (int)i;
    }
    for (unsigned i = 0; i < ARRAY_SIZE(old_names); i++) {
        if (strcasecmp(name, old_names[i].name) == 0)
            return (int)old_names[i].op;
    }
    return -EINVAL;
}

int op_set_parse(const char *text, uint64_t *ret_set, struct error *err)
{
    static const char separators[] = ", \t";
    uint64_t set = 0;

    while (*(text += strspn(text, separators))) {
        char word[32];
        size_t len = strcspn(text, separators);
        snprintf(word, sizeof(word), "%.*s", (int)MIN(len, sizeof(word) - 1), text);
        int op = op_parse(word);
        if (op < 0 || len >= sizeof(word))
            return error_set(err, -EINVAL, "\"%s\" is not an operation, write names such as read, write, lookup", word);
        set |= 1ull << op;
        text += len;
    }
    *ret_set = set ? set : (1ull << OP_COUNT) - 1;
    return 0;
}

/* ---- the call ---- */

void lk_owner_from_u64(struct lk_owner *o, uint64_t v)
{
    memset(o, 0, sizeof(*o));
    o->size = 8;
    for (unsigned i = 0; i < 8; i++)
        o->bytes[i] = (uint8_t)(v >> (8 * i));
}

void call_init(struct call *call, struct graph *graph)
{
    memset(call, 0, sizeof(*call));
    scope_init(&call->scope, 0);
    call->pid = env_pid(graph->env);
    call->trace_id = ++graph->last_trace_id;
}

void call_copy(struct call *call, const struct call *from)
{
    *call = *from;
    call->own_groups = NULL;
    scope_init(&call->scope, from->scope.deadline_ns);
}

int call_own_groups(struct call *call)
{
    if (call->own_groups || call->group_count == 0)
        return 0;
    uint32_t *copy = mem_dup(call->groups, call->group_count * sizeof(*copy));
    if (!copy)
        return -ENOMEM;
    call->groups = call->own_groups = copy;
    return 0;
}

void call_done(struct call *call)
{
    scope_done(&call->scope);
    mem_free(call->own_groups);
    call->own_groups = NULL;
    call->groups = NULL;
    call->group_count = 0;
}

/* ---- dispatch ---- */

static void check_request(const struct request *q)
{
    unsigned needs = op_table[q->op].needs;

    assert(!(needs & OP_INODE) || q->inode);
    assert(!(needs & OP_FD) || q->fd);
    assert(!(needs & OP_PARENT) || (q->parent && q->name));
    assert(!(needs & OP_PARENT2) || (q->parent2 && q->name2));
}

static void check_reply(const struct request *q, const struct reply *r, int result)
{
    assert(result >= -ERRNO_MAX);
    if (result < 0 && q->op != OP_COMPOUND)
        assert(!r->data && !r->xattrs && !r->text && !r->entries && !r->statfs && !r->lock && !r->locks);
}

static __attribute__((noinline)) void trace_op(struct translator *me, struct call *call, const struct request *q,
                                               int result)
{
    TLOG(me, LOG_TRACE, "op", "op=%s gfid=%s name=%s trace=%llu ret=%d", op_name(q->op),
         q->inode ? GFID_TEXT(&q->inode->gfid) : "-", q->name ? q->name : "-", (unsigned long long)call->trace_id,
         result);
}

/* Would `me` itself see any step of the compound? If not, it may travel on as one. */
static bool takes_part_in(const struct translator_class *class, const struct request *q)
{
    for (uint32_t i = 0; i < q->step_count; i++) {
        if (class->ops[q->steps[i].op])
            return true;
    }
    return false;
}

/* The function of `me` for the request, NULL when it passes it on. */
static op_fn op_of(const struct translator *me, const struct request *q)
{
    const struct translator_class *class = me->class;

    if (class->ops[q->op])
        return class->ops[q->op];
    if (class->any)
        return class->any;
    if (q->op == OP_COMPOUND && (me->child_count == 0 || takes_part_in(class, q)))
        return default_compound;
    return NULL;
}

static FIBER int run_op(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    op_fn fn = op_of(me, q);
    int result;

    me->stats[q->op].calls++;
    me->ops_in_flight++;
    if (fn)
        result = fn(me, call, q, r);
    else if (me->child_count > 0)
        result = run_op(me->children[0], call, q, r); /* r is still clean: nobody here has touched it */
    else
        result = -EOPNOTSUPP;
    me->ops_in_flight--;
    if (result < 0)
        me->stats[q->op].failures++;
    r->ret = result;
    if (__builtin_expect(me->graph->is_tracing, 0))
        trace_op(me, call, q, result);
    return result;
}

FIBER int translator_call(struct translator *me, struct call *call, const struct request *q, struct reply *r);

static __attribute__((noinline)) FIBER int call_without_reply(struct translator *me, struct call *call,
                                                              const struct request *q)
{
    struct reply scratch;
    int result = translator_call(me, call, q, &scratch);

    reply_done(&scratch);
    return result;
}

FIBER int translator_call(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    if (!r)
        return call_without_reply(me, call, q);
    check_request(q);
    reply_init(r);
    int result = run_op(me, call, q, r);
    check_reply(q, r, result);
    return result;
}

FIBER int child_call(struct translator *me, unsigned child, struct call *call, const struct request *q, struct reply *r)
{
    assert(child < me->child_count);
    return translator_call(me->children[child], call, q, r);
}

FIBER int default_op(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    if (me->child_count == 0)
        return -EOPNOTSUPP;
    return translator_call(me->children[0], call, q, r);
}

FIBER int default_compound(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    if (q->step_count == 0)
        return 0;
    r->steps = mem_array(q->step_count, sizeof(struct reply));
    if (!r->steps)
        return -ENOMEM;
    for (uint32_t i = 0; i < q->step_count; i++) {
        r->step_count = i + 1;
        int result = translator_call(me, call, &q->steps[i], &r->steps[i]);
        if (result < 0)
            return result;
    }
    return 0;
}

bool translator_lease(struct translator *me, struct inode *inode, struct lease *ret_lease)
{
    while (!me->class->lease && me->child_count == 1)
        me = me->children[0];
    return me->class->lease && me->class->lease(me, inode, ret_lease);
}

/* ---- short forms ---- */

FIBER int child_lookup(struct translator *me, unsigned child, struct call *call, struct inode *inode,
                       struct inode *parent, const char *name, struct dict *xdata, struct reply *r)
{
    struct request q = { .op = OP_LOOKUP, .inode = inode, .parent = parent, .name = name, .xdata = xdata };

    return child_call(me, child, call, &q, r);
}

FIBER int child_stat(struct translator *me, unsigned child, struct call *call, struct inode *inode, struct fd *fd,
                     struct dict *xdata, struct reply *r)
{
    struct request q = { .op = OP_STAT, .inode = inode, .fd = fd, .xdata = xdata };

    return child_call(me, child, call, &q, r);
}

FIBER int child_read(struct translator *me, unsigned child, struct call *call, struct inode *inode, struct fd *fd,
                     uint64_t size_bytes, uint64_t offset, struct reply *r)
{
    struct request q = { .op = OP_READ, .inode = inode, .fd = fd, .size = size_bytes, .offset = offset };

    return child_call(me, child, call, &q, r);
}

FIBER int child_write(struct translator *me, unsigned child, struct call *call, struct inode *inode, struct fd *fd,
                      struct buf *data, uint64_t offset, uint32_t flags, struct dict *xdata, struct reply *r)
{
    struct request q = { .op = OP_WRITE,
                         .inode = inode,
                         .fd = fd,
                         .data = data,
                         .offset = offset,
                         .size = data ? data->size : 0,
                         .flags = flags,
                         .xdata = xdata };

    return child_call(me, child, call, &q, r);
}

FIBER int child_getxattr(struct translator *me, unsigned child, struct call *call, struct inode *inode, struct fd *fd,
                         const char *name, struct reply *r)
{
    struct request q = { .op = OP_GETXATTR, .inode = inode, .fd = fd, .text = name };

    return child_call(me, child, call, &q, r);
}

FIBER int child_setxattr(struct translator *me, unsigned child, struct call *call, struct inode *inode, struct fd *fd,
                         struct dict *xattrs, uint32_t flags, struct reply *r)
{
    struct request q = { .op = OP_SETXATTR, .inode = inode, .fd = fd, .xattrs = xattrs, .flags = flags };

    return child_call(me, child, call, &q, r);
}

FIBER int child_xattrop(struct translator *me, unsigned child, struct call *call, struct inode *inode, struct fd *fd,
                        enum xattrop how, struct dict *xattrs, struct dict *xdata, struct reply *r)
{
    struct request q = { .op = OP_XATTROP, .inode = inode, .fd = fd, .flags = how, .xattrs = xattrs, .xdata = xdata };

    return child_call(me, child, call, &q, r);
}

FIBER int child_inodelk(struct translator *me, unsigned child, struct call *call, struct inode *inode, struct fd *fd,
                        const char *domain, enum lock_command command, const struct lock_range *range, struct reply *r)
{
    struct request q = {
        .op = OP_INODELK, .inode = inode, .fd = fd, .text = domain, .command = command, .lock = range
    };

    return child_call(me, child, call, &q, r);
}

FIBER int child_entrylk(struct translator *me, unsigned child, struct call *call, struct inode *inode,
                        const char *domain, const char *name, enum lock_command command, enum lock_type type,
                        struct reply *r)
{
    struct lock_range range = { .type = type };
    struct request q = {
        .op = OP_ENTRYLK, .inode = inode, .text = domain, .name = name, .command = command, .lock = &range
    };

    return child_call(me, child, call, &q, r);
}

/* ---- events ---- */

static void tell_parent(struct translator *parent, struct translator *child, const struct event *event)
{
    if (!parent->class->notify) {
        notify_parents(parent, event);
        return;
    }
    for (unsigned i = 0; i < parent->child_count; i++) {
        if (parent->children[i] == child)
            parent->class->notify(parent, i, event);
    }
}

void notify_parents(struct translator *me, const struct event *event)
{
    if (event->kind == EVENT_CHILD_UP)
        me->is_up = true;
    else if (event->kind == EVENT_CHILD_DOWN)
        me->is_up = false;
    for (unsigned i = 0; i < me->parent_count; i++)
        tell_parent(me->parents[i], me, event);
    if (me == me->graph->root && me->graph->event_handler)
        me->graph->event_handler(me->graph, me, event);
}
