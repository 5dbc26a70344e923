#include "unit/replicate/world.h"
#include <fcntl.h>
#include <stdio.h>

extern const struct translator_class utime_class; /* as in mortarfs/classes.c */

static FIBER struct graph *build(struct world *w, const char *options)
{
    char text[1024];
    size_t len = 0;
    SCOPED(volfile_free) struct volfile *file = NULL;
    static const struct translator_class *classes[] = { &membrick_class, &replicate_class, &utime_class, NULL };
    struct graph *graph = NULL;
    struct error err = { "" };

    for (unsigned i = 0; i < w->count; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len,
                                "volume c%u\n type test/membrick\n option store %u\nend-volume\n", i, i);
    len += (size_t)snprintf(text + len, sizeof(text) - len,
                            "volume set\n type cluster/replicate\n%s\n subvolumes%s%s%s\nend-volume\n", options, " c0",
                            w->count > 1 ? " c1" : "", w->count > 2 ? " c2" : "");
    if (w->noatime)
        len += (size_t)snprintf(text + len, sizeof(text) - len,
                                "volume times\n type features/utime\n option noatime %s\n subvolumes set\nend-volume\n",
                                w->noatime);
    assert_int_equal(0, volfile_parse("x.vol", text, len, &file, &err));
    if (graph_build(w->t->env, file, classes, NULL, &graph, &err) < 0 || graph_start(graph, &err) < 0)
        fail_msg("%s", err.text);
    return graph;
}

static void find_parts(struct world *w)
{
    const struct gfid file = test_gfid(3), dir = test_gfid(2);
    char name[8];

    for (unsigned i = 0; i < w->count; i++) {
        snprintf(name, sizeof(name), "c%u", i);
        w->b[i] = graph_find(w->graph, name)->state;
    }
    w->top = w->graph->root;
    call_init(&w->call, w->graph);
    w->r = reply_new();
    w->root = inode_table_get(w->graph, &gfid_root, S_IFDIR);
    w->file = inode_table_get(w->graph, &file, S_IFREG);
    w->dir = inode_table_get(w->graph, &dir, S_IFDIR);
    w->fd = fd_new(w->file, O_RDWR, 1);
}

static FIBER void fill(struct world *w, const char *options)
{
    mem_stores_reset();
    w->graph = build(w, options);
    find_parts(w);
    assert_int_equal(0,
                     ask(w, OP_CREATE, .parent = w->root, .name = "file", .inode = w->file, .fd = w->fd, .mode = 0644));
    assert_int_equal(0, ask(w, OP_MKDIR, .parent = w->root, .name = "dir", .inode = w->dir, .mode = 0755));
    world_quiet(w);
    world_forget_messages(w);
}

FIBER void world_join(struct world *w, struct test *t, unsigned count, const char *options)
{
    *w = (struct world) { .t = t, .count = count };
    w->graph = build(w, options);
    find_parts(w);
}

FIBER void world_open(struct world *w, struct test *t, unsigned count, const char *options)
{
    *w = (struct world) { .t = t, .count = count };
    fill(w, options);
}

FIBER void world_open_with_times(struct world *w, struct test *t, unsigned count, const char *noatime)
{
    *w = (struct world) { .t = t, .count = count, .noatime = noatime };
    fill(w, "");
}

FIBER void world_close(struct world *w)
{
    reply_free(w->r);
    fd_unref(w->fd);
    inode_unref(w->root);
    inode_unref(w->file);
    inode_unref(w->dir);
    call_done(&w->call);
    graph_stop(w->graph);
    graph_free(w->graph);
}

FIBER int world_call(struct world *w, const struct request *q)
{
    reply_done(w->r);
    return translator_call(w->top, &w->call, q, w->r);
}

FIBER int world_write(struct world *w, uint64_t offset, const char *text)
{
    SCOPED(buf_unref) struct buf *data = buf_copy(text, strlen(text));

    return ask(w, OP_WRITE, .inode = w->file, .fd = w->fd, .offset = offset, .data = data);
}

FIBER int world_create(struct world *w, const char *name, uint8_t number)
{
    const struct gfid gfid = test_gfid(number);
    SCOPED(inode_unref) struct inode *inode = inode_table_get(w->graph, &gfid, 0);
    SCOPED(fd_unref) struct fd *fd = fd_new(inode, O_RDWR, 1);

    return ask(w, OP_CREATE, .parent = w->root, .name = name, .inode = inode, .fd = fd, .mode = 0644);
}

FIBER int world_lookup(struct world *w, const char *name)
{
    return ask(w, OP_LOOKUP, .parent = w->root, .name = name);
}

FIBER int world_read(struct world *w, char *text, size_t size_bytes)
{
    int r = ask(w, OP_READ, .inode = w->file, .size = size_bytes - 1);

    text[0] = 0;
    if (r >= 0) {
        memcpy(text, w->r->data->data, (size_t)r);
        text[r] = 0;
    }
    return r;
}

FIBER void world_rest(struct world *w)
{
    for (int i = 0; i < 200; i++)
        fiber_yield();
}

static size_t locks_held(const struct world *w)
{
    size_t held = 0;

    for (unsigned i = 0; i < w->count; i++)
        held += w->b[i]->is_up ? mem_lock_count(w->b[i]->store) : 0;
    return held;
}

/* As if somebody else wanted everything that is locked. */
FIBER void world_quiet(struct world *w)
{
    uint64_t deadline_ns = env_now_ns(w->t->env) + 10000000000ull;

    while (locks_held(w) > 0) {
        assert_true(env_now_ns(w->t->env) < deadline_ns);
        for (unsigned i = 0; i < w->count; i++)
            mem_contend(w->b[i]);
        (void)fiber_sleep_ms(NULL, 1);
    }
    world_rest(w);
}

void world_forget_messages(struct world *w)
{
    for (unsigned i = 0; i < w->count; i++) {
        w->b[i]->messages = w->b[i]->steps = 0;
        memset(w->b[i]->count, 0, sizeof(w->b[i]->count));
    }
}

int32_t counter(const struct world *w, unsigned brick, const struct gfid *gfid, const char *key, int index)
{
    return mem_counter(w->b[brick]->store, gfid, key, index);
}

bool same_data(const struct world *w, const struct gfid *gfid, uint32_t bricks)
{
    const struct mem_node *first = NULL;

    for (unsigned i = 0; i < w->count; i++) {
        const struct mem_node *n = mem_find(w->b[i]->store, gfid);

        if (!(bricks & (1u << i)))
            continue;
        if (!n)
            return false;
        if (first && (n->stat.size != first->stat.size || memcmp(n->data, first->data, n->stat.size) != 0))
            return false;
        first = n;
    }
    return true;
}
