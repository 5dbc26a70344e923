/* The scripted leaf and the fibers that tests of translators run in. */
#include "unit/graph/test_graph.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- the leaf ---- */

static void copy_text(char *to, size_t room, const char *from)
{
    snprintf(to, room, "%s", from ? from : "");
}

static void record(struct leaf *leaf, const struct call *call, const struct request *q)
{
    if (leaf->call_count++ >= LEAF_CALLS_MAX)
        return;
    struct leaf_call *c = &leaf->calls[leaf->call_count - 1];
    *c = (struct leaf_call) {
        .op = q->op,
        .has_fd = q->fd != NULL,
        .has_text = q->text != NULL,
        .offset = q->offset,
        .size = q->size,
        .flags = q->flags,
        .mode = q->mode,
        .umask = q->umask,
        .valid = q->valid,
        .command = q->command,
        .uid = call->uid,
        .gid = call->gid,
        .pid = call->pid,
        .time_flags = call->time_flags,
        .time_s = call->time_s,
        .time_ns = call->time_ns,
        .step_count = q->step_count,
    };
    if (q->inode)
        c->gfid = q->inode->gfid;
    if (q->parent)
        c->parent = q->parent->gfid;
    if (q->parent2)
        c->parent2 = q->parent2->gfid;
    copy_text(c->name, sizeof(c->name), q->name);
    copy_text(c->name2, sizeof(c->name2), q->name2);
    copy_text(c->text, sizeof(c->text), q->text);
    if (q->attr)
        c->attr = *q->attr;
    if (q->lock)
        c->lock = *q->lock;
    if (q->data) {
        c->data_size = q->data->size;
        memcpy(c->data, q->data->data, MIN(q->data->size, sizeof(c->data)));
    }
    c->xattrs = dict_ref(q->xattrs);
    c->xdata = dict_ref(q->xdata);
}

/* What a healthy child would say, roughly: attributes everywhere. */
static int answer_default(struct leaf *leaf, const struct request *q, struct reply *r)
{
    int result = leaf->results[q->op];

    if (result < 0)
        return result;
    r->stat = r->pre = r->post = leaf->stat;
    if (q->inode && q->op != OP_RENAME) {
        r->stat.gfid = q->inode->gfid;
        r->stat.ino = gfid_to_ino(&q->inode->gfid);
        if (q->inode->type)
            r->stat.mode = q->inode->type | (r->stat.mode & 07777);
    }
    if (q->op == OP_WRITE && result == 0 && q->data)
        return (int)q->data->size;
    return result;
}

static FIBER int leaf_any(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct leaf *leaf = me->state;

    record(leaf, call, q);
    if (leaf->delay_ms) {
        int r2 = fiber_sleep_ms(&call->scope, leaf->delay_ms);
        if (r2 < 0)
            return r2;
    }
    if (leaf->answers[q->op])
        return leaf->answers[q->op](leaf, call, q, r);
    int result = answer_default(leaf, q, r);
    if (result < 0 && leaf->fail_times[q->op] && --leaf->fail_times[q->op] == 0)
        leaf->results[q->op] = 0;
    return result;
}

static int leaf_init(struct translator *me, struct error *err)
{
    struct leaf *leaf = me->state;

    if (leaf->number == 13)
        return error_set(err, -ERANGE, "number 13 is not lucky, use another");
    leaf->me = me;
    leaf->stat = (struct iatt) { .mode = S_IFREG | 0644, .nlink = 1, .gfid = test_gfid(3) };
    return 0;
}

static void leaf_fini(struct translator *me)
{
    leaf_clear(me->state);
}

static void leaf_reconfigured(struct translator *me)
{
    ((struct leaf *)me->state)->reconfigured++;
}

static void leaf_forget(struct translator *me, struct inode *inode, void *ctx)
{
    ((struct leaf *)me->state)->forgotten++;
}

static void leaf_release(struct translator *me, struct fd *fd, void *ctx)
{
    ((struct leaf *)me->state)->released++;
}

static void leaf_client_gone(struct translator *me, struct client *client)
{
    ((struct leaf *)me->state)->gone++;
}

static void leaf_dump(struct translator *me, struct dump *out)
{
    dump_printf(out, "calls", "%u", ((struct leaf *)me->state)->call_count);
}

static const struct option leaf_options[] = {
    OPT_STR("note", struct leaf, note, .aliases = { "remark" }, .help = "any text"),
    OPT_U32("number", struct leaf, number, .def = "1", .min = 1, .max = 16, .live = true),
    OPT_IGNORED("old-habit", .help = "it never did anything"),
    OPT_END,
};

const struct translator_class leaf_class = {
    .type = "test/leaf",
    .aliases = { "test/alias" },
    .state_size = sizeof(struct leaf),
    .options = leaf_options,
    .any = leaf_any,
    .is_leaf = true,
    .uses_inode_ctx = true,
    .uses_fd_ctx = true,
    .uses_client_ctx = true,
    .init = leaf_init,
    .fini = leaf_fini,
    .reconfigured = leaf_reconfigured,
    .inode_forget = leaf_forget,
    .fd_release = leaf_release,
    .client_gone = leaf_client_gone,
    .dump = leaf_dump,
};

struct leaf *leaf_of(struct translator *t)
{
    assert_ptr_equal(t->class, &leaf_class);
    return t->state;
}

void leaf_fail(struct leaf *leaf, enum op op, int err, uint32_t times)
{
    leaf->results[op] = -err;
    leaf->fail_times[op] = times;
}

const struct leaf_call *leaf_last(const struct leaf *leaf)
{
    if (leaf->call_count == 0)
        fail_msg("the leaf has not been called");
    return &leaf->calls[MIN(leaf->call_count, (uint32_t)LEAF_CALLS_MAX) - 1];
}

uint32_t leaf_count(const struct leaf *leaf, enum op op)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < MIN(leaf->call_count, (uint32_t)LEAF_CALLS_MAX); i++)
        count += leaf->calls[i].op == op;
    return count;
}

void leaf_clear(struct leaf *leaf)
{
    for (uint32_t i = 0; i < MIN(leaf->call_count, (uint32_t)LEAF_CALLS_MAX); i++) {
        dict_unref(leaf->calls[i].xattrs);
        dict_unref(leaf->calls[i].xdata);
    }
    leaf->call_count = 0;
}

/* ---- the fiber ---- */

struct gfid test_gfid(uint8_t n)
{
    struct gfid gfid = { { 0 } };

    gfid.bytes[15] = n;
    return gfid;
}

void test_open(struct test *t)
{
    unsigned count = 0;
    int fd;

    snprintf(t->log_path, sizeof(t->log_path), "/tmp/mortar-unit-XXXXXX");
    fd = mkstemp(t->log_path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(0, log_open(t->log_path, LOG_DEBUG, &t->log, NULL));
    t->classes[count++] = &leaf_class;
    for (class_list c = all_classes; *c; c++) {
        assert_true(count + 1 < ARRAY_SIZE(t->classes));
        t->classes[count++] = *c;
    }
    t->r = reply_new();
    assert_non_null(t->r);
}

static void close_graph(struct test *t)
{
    reply_free(t->r);
    if (!t->graph)
        return;
    if (t->root) {
        fd_unref(t->fd);
        fd_unref(t->dir_fd);
        inode_unref(t->root);
        inode_unref(t->dir);
        inode_unref(t->file);
        inode_unref(t->new_inode);
        call_done(&t->call);
    }
    graph_stop(t->graph);
    graph_free(t->graph);
}

void test_close(struct test *t)
{
    log_close(t->log);
    unlink(t->log_path);
}

void test_run(void *arg)
{
    struct test_run *run = arg;

    run->fn(run->t);
    close_graph(run->t);
}

void test_in_fiber(test_fn fn)
{
    struct test *t = mem_zalloc(sizeof(*t));

    assert_non_null(t);
    test_open(t);
    t->env = env_real_new(t->log, 2);
    assert_non_null(t->env);
    env_real_run_fiber(t->env, test_run, &(struct test_run) { .t = t, .fn = fn });
    env_real_free(t->env);
    test_close(t);
    mem_free(t);
}

/* ---- graphs ---- */

static void find_leaf(struct test *t)
{
    for (unsigned i = 0; i < t->graph->count && !t->leaf; i++) {
        if (t->graph->all[i]->class == &leaf_class)
            t->leaf = t->graph->all[i]->state;
    }
}

static int push(struct test *t, const struct translator_class *class, va_list args, struct translator **ret)
{
    SCOPED(dict_unref) struct dict *options = dict_new();
    const char *key;
    char name[64];

    assert_non_null(options);
    while ((key = va_arg(args, const char *)))
        assert_int_equal(0, dict_set_str(options, key, va_arg(args, const char *)));
    if (!t->graph)
        t->graph = graph_new(t->env);
    assert_non_null(t->graph);
    snprintf(name, sizeof(name), "t%u", t->graph->count);
    int r = graph_push(t->graph, class, name, options, ret, &t->err);
    find_leaf(t);
    return r;
}

struct translator *test_push(struct test *t, const struct translator_class *class, ...)
{
    struct translator *me = NULL;
    va_list args;

    va_start(args, class);
    int r = push(t, class, args, &me);
    va_end(args);
    if (r < 0)
        fail_msg("%s", t->err.text);
    return me;
}

int test_push_refused(struct test *t, const struct translator_class *class, ...)
{
    va_list args;

    va_start(args, class);
    int r = push(t, class, args, NULL);
    va_end(args);
    if (r >= 0)
        fail_msg("%s was not refused", class->type);
    return r;
}

int test_try_build(struct test *t, const char *text)
{
    SCOPED(volfile_free) struct volfile *file = NULL;
    int r = volfile_parse("x.vol", text, strlen(text), &file, &t->err);

    if (r == 0)
        r = graph_build(t->env, file, t->classes, NULL, &t->graph, &t->err);
    if (r == 0)
        find_leaf(t);
    return r;
}

void test_build(struct test *t, const char *text)
{
    if (test_try_build(t, text) < 0)
        fail_msg("%s", t->err.text);
}

FIBER void test_start(struct test *t)
{
    if (graph_start(t->graph, &t->err) < 0)
        fail_msg("%s", t->err.text);
    call_init(&t->call, t->graph);
    t->root = inode_table_get(t->graph, &gfid_root, S_IFDIR);
    assert_non_null(t->root);
    struct gfid dir = test_gfid(2), file = test_gfid(3), new_inode = test_gfid(4);
    t->dir = inode_table_get(t->graph, &dir, S_IFDIR);
    t->file = inode_table_get(t->graph, &file, S_IFREG);
    t->new_inode = inode_table_get(t->graph, &new_inode, 0);
    t->fd = fd_new(t->file, O_RDWR, 1);
    t->dir_fd = fd_new(t->dir, O_RDONLY, 1);
    assert_non_null(t->new_inode);
    assert_non_null(t->fd);
    assert_non_null(t->dir_fd);
}

FIBER int test_call(struct test *t, const struct request *q)
{
    reply_done(t->r);
    return translator_call(t->graph->root, &t->call, q, t->r);
}

const char *test_log(struct test *t)
{
    static char text[65536];
    int fd = open(t->log_path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    return text;
}
