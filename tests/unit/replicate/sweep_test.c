/* Every kind of change, with every failure of every brick at every step, and the client's death at every step.
 *
 * A change that was answered as done is seen by every later client, whichever bricks it reaches, or that client is
 * refused. A change that was not leaves the copies equal, or a counter says that they may differ.
 */
#include "unit/replicate/world.h"
#include <fcntl.h>
#include <stdio.h>

#define STEPS_MAX 60

enum seen { SEEN_OLD, SEEN_NEW, SEEN_TORN, SEEN_REFUSED };

struct change {
    const char *name;
    FIBER int (*prepare)(struct world *w);
    FIBER int (*run)(struct world *w);
    FIBER enum seen (*look)(struct world *reader);
};

/* ---- the changes ---- */

static FIBER int nothing(struct world *w)
{
    return 0;
}

static FIBER int write_old(struct world *w)
{
    return world_write(w, 0, "old text");
}

static FIBER int write_new(struct world *w)
{
    return world_write(w, 0, "new");
}

static FIBER enum seen look_text(struct world *w)
{
    char text[32];

    if (world_read(w, text, sizeof(text)) < 0)
        return SEEN_REFUSED;
    return strcmp(text, "new text") == 0 ? SEEN_NEW : strcmp(text, "old text") == 0 ? SEEN_OLD : SEEN_TORN;
}

static FIBER int truncate_file(struct world *w)
{
    return ask(w, OP_TRUNCATE, .inode = w->file, .offset = 3);
}

static FIBER enum seen look_size(struct world *w)
{
    if (ask(w, OP_STAT, .inode = w->file) < 0)
        return SEEN_REFUSED;
    return w->r->stat.size == 3 ? SEEN_NEW : w->r->stat.size == 8 ? SEEN_OLD : SEEN_TORN;
}

static FIBER int change_mode(struct world *w)
{
    const struct iatt attr = { .mode = 0600 };

    return ask(w, OP_SETATTR, .inode = w->file, .attr = &attr, .valid = ATTR_MODE);
}

static FIBER enum seen look_mode(struct world *w)
{
    if (ask(w, OP_STAT, .inode = w->file) < 0)
        return SEEN_REFUSED;
    return (w->r->stat.mode & 07777) == 0600 ? SEEN_NEW : SEEN_OLD;
}

static FIBER int set_xattr(struct world *w)
{
    SCOPED(dict_unref) struct dict *xattrs = dict_new();

    assert_int_equal(0, dict_set_bin(xattrs, "user.x", "v", 1));
    return ask(w, OP_SETXATTR, .inode = w->file, .xattrs = xattrs);
}

static FIBER int remove_xattr(struct world *w)
{
    return ask(w, OP_REMOVEXATTR, .inode = w->file, .text = "user.x");
}

static FIBER enum seen look_xattr(struct world *w)
{
    int r = ask(w, OP_GETXATTR, .inode = w->file, .text = "user.x");

    return r == 1 ? SEEN_NEW : r == -ENODATA ? SEEN_OLD : SEEN_REFUSED;
}

static FIBER enum seen look_no_xattr(struct world *w)
{
    enum seen seen = look_xattr(w);

    return seen == SEEN_NEW ? SEEN_OLD : seen == SEEN_OLD ? SEEN_NEW : seen;
}

static FIBER int create_name(struct world *w)
{
    return world_create(w, "name", 60);
}

static FIBER int make_named(struct world *w, enum op op)
{
    const struct gfid gfid = test_gfid(60);
    SCOPED(inode_unref) struct inode *inode = inode_table_get(w->graph, &gfid, 0);

    return ask(w, op, .parent = w->root, .name = "name", .inode = inode, .mode = 0755, .text = "target");
}

static FIBER int mkdir_name(struct world *w)
{
    return make_named(w, OP_MKDIR);
}

static FIBER int symlink_name(struct world *w)
{
    return make_named(w, OP_SYMLINK);
}

static FIBER int link_name(struct world *w)
{
    return ask(w, OP_LINK, .inode = w->file, .parent2 = w->root, .name2 = "name");
}

static FIBER enum seen look_name(struct world *w)
{
    int r = world_lookup(w, "name");

    return r == 0 ? SEEN_NEW : r == -ENOENT ? SEEN_OLD : SEEN_REFUSED;
}

static FIBER enum seen look_no_name(struct world *w)
{
    int r = world_lookup(w, "name");

    return r == 0 ? SEEN_OLD : r == -ENOENT ? SEEN_NEW : SEEN_REFUSED;
}

static FIBER int unlink_name(struct world *w)
{
    return ask(w, OP_UNLINK, .parent = w->root, .name = "name");
}

static FIBER int rmdir_name(struct world *w)
{
    return ask(w, OP_RMDIR, .parent = w->root, .name = "name");
}

static FIBER int rename_here(struct world *w)
{
    return ask(w, OP_RENAME, .parent = w->root, .name = "name", .parent2 = w->root, .name2 = "other", .inode = w->file);
}

static FIBER int rename_there(struct world *w)
{
    return ask(w, OP_RENAME, .parent = w->root, .name = "name", .parent2 = w->dir, .name2 = "other", .inode = w->file);
}

static FIBER enum seen look_renamed(struct world *w, struct inode *to)
{
    int there, here = world_lookup(w, "name");

    there = ask(w, OP_LOOKUP, .parent = to, .name = "other");
    if ((here < 0 && here != -ENOENT) || (there < 0 && there != -ENOENT))
        return SEEN_REFUSED;
    return here == 0 && there < 0 ? SEEN_OLD : here < 0 && there == 0 ? SEEN_NEW : SEEN_TORN;
}

static FIBER enum seen look_here(struct world *w)
{
    return look_renamed(w, w->root);
}

static FIBER enum seen look_there(struct world *w)
{
    return look_renamed(w, w->dir);
}

static const struct change changes[] = {
    { "write", write_old, write_new, look_text },
    { "truncate", write_old, truncate_file, look_size },
    { "setattr", nothing, change_mode, look_mode },
    { "setxattr", nothing, set_xattr, look_xattr },
    { "removexattr", set_xattr, remove_xattr, look_no_xattr },
    { "create", nothing, create_name, look_name },
    { "mkdir", nothing, mkdir_name, look_name },
    { "symlink", nothing, symlink_name, look_name },
    { "link", nothing, link_name, look_name },
    { "unlink", create_name, unlink_name, look_no_name },
    { "rmdir", mkdir_name, rmdir_name, look_no_name },
    { "rename", create_name, rename_here, look_here },
    { "rename to another directory", create_name, rename_there, look_there },
};

/* ---- what must hold ---- */

struct run {
    const struct change *change;
    unsigned child;
    enum fault fault;
    unsigned step;
    bool is_crash;
};

static const char *describe(const struct run *run, char *text, size_t size)
{
    static const char *const faults[] = { "none", "refuse", "lost", "down before" };

    snprintf(text, size, "%s, brick %u, fault \"%s\" at step %u%s", run->change->name, run->child, faults[run->fault],
             run->step, run->is_crash ? ", client dies" : "");
    return text;
}

#define RUN_TEXT(run) describe((run), (char[160]) { 0 }, 160)

static const uint8_t watched[] = { 1, 2, 3, 60 }; /* gfids: root, dir, file, name */

static void copy_state(struct mem_store *store, char *text, size_t size)
{
    size_t len = 0;

    text[0] = 0;
    for (size_t i = 0; i < ARRAY_SIZE(watched); i++) {
        const struct gfid gfid = test_gfid(watched[i]);
        struct mem_node *n = mem_find(store, &gfid);

        len += (size_t)snprintf(text + len, size - len, "%u:%o:%llu:%.8s:%d;", watched[i], n ? n->stat.mode : 0,
                                n ? (unsigned long long)n->stat.size : 0, n && n->data ? (char *)n->data : "",
                                n && dict_has(n->xattrs, "user.x"));
    }
    (void)snprintf(text + len, size - len, "name %d other %d there %d", mem_name(store, &gfid_root, "name") != NULL,
                   mem_name(store, &gfid_root, "other") != NULL,
                   mem_name(store, &(struct gfid) { { [15] = 2 } }, "other") != NULL);
}

static bool any_mark(void)
{
    for (int b = 0; b < 3; b++) {
        for (size_t i = 0; i < ARRAY_SIZE(watched); i++) {
            const struct gfid gfid = test_gfid(watched[i]);

            for (int c = 0; c < 3; c++) {
                if (mem_counter(&mem_stores[b], &gfid, DIRTY, c))
                    return true;
                for (int j = 0; j < 3; j++) {
                    if (mem_counter(&mem_stores[b], &gfid, PENDING(j), c))
                        return true;
                }
            }
        }
    }
    return false;
}

static void check_copies(const struct run *run)
{
    char a[512], b[512], c[512];

    copy_state(&mem_stores[0], a, sizeof(a));
    copy_state(&mem_stores[1], b, sizeof(b));
    copy_state(&mem_stores[2], c, sizeof(c));
    if ((strcmp(a, b) != 0 || strcmp(b, c) != 0) && !any_mark())
        fail_msg("%s: copies differ and no counter says so:\n%s\n%s\n%s", RUN_TEXT(run), a, b, c);
}

/* A later client that reaches all bricks, or all but one. */
static FIBER void check_reader(struct test *t, const struct run *run, int without, bool is_done)
{
    struct world reader;
    enum seen seen;

    world_join(&reader, t, 3, "");
    if (without >= 0)
        mem_brick_down(reader.b[without]);
    seen = run->change->look(&reader);
    world_close(&reader);
    if (is_done && seen != SEEN_NEW && (without < 0 || seen != SEEN_REFUSED))
        fail_msg("%s: answered as done, but a reader without brick %d sees %d", RUN_TEXT(run), without, seen);
}

static FIBER bool fault_run(struct test *t, const struct run *run)
{
    struct world w;
    bool has_hit;
    int r;

    world_open(&w, t, 3, "");
    assert_true(run->change->prepare(&w) >= 0);
    world_quiet(&w);
    w.b[run->child]->fault = run->fault;
    w.b[run->child]->fault_at = run->step;
    r = run->change->run(&w);
    world_quiet(&w); /* closing the session may meet the fault too */
    has_hit = w.b[run->child]->fault_at == 0;
    if (!w.b[run->child]->is_up)
        mem_brick_up(w.b[run->child]);
    world_quiet(&w);
    if (!has_hit && r < 0)
        fail_msg("%s: failed without a fault: %d", RUN_TEXT(run), r);
    if (!has_hit && any_mark())
        fail_msg("%s: marks are left without a fault", RUN_TEXT(run));
    if (r < 0)
        fail_msg("%s: one brick of three failed, the change must not: %d", RUN_TEXT(run), r);
    world_close(&w);
    check_copies(run);
    for (int without = -1; without < 3; without++)
        check_reader(t, run, without, r >= 0);
    return has_hit;
}

static FIBER void sweep_faults(struct test *t, enum fault fault)
{
    for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
        for (unsigned child = 0; child < 3; child++) {
            struct run run = { .change = &changes[i], .child = child, .fault = fault, .step = 1 };

            while (fault_run(t, &run)) {
                run.step++;
                assert_true(run.step < STEPS_MAX);
            }
        }
    }
}

SIM_TEST(every_refusal_is_survived)
{
    sweep_faults(t, FAULT_REFUSE);
}

SIM_TEST(every_lost_answer_is_survived)
{
    sweep_faults(t, FAULT_LOST);
}

SIM_TEST(every_lost_connection_is_survived)
{
    sweep_faults(t, FAULT_DOWN_BEFORE);
}

static FIBER bool crash_run(struct test *t, const struct run *run)
{
    struct world w;
    bool has_hit;
    int r;

    world_open(&w, t, 3, "");
    assert_true(run->change->prepare(&w) >= 0);
    world_quiet(&w);
    mem_crash_client_at(w.b, 3, run->step);
    r = run->change->run(&w);
    world_quiet(&w);
    has_hit = mem_crash_client_at(NULL, 0, 0) == 0;
    world_close(&w);
    check_copies(run);
    for (int without = -1; without < 3; without++)
        check_reader(t, run, without, r >= 0);
    return has_hit;
}

SIM_TEST(the_clients_death_at_any_step_leaves_a_trace)
{
    for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
        struct run run = { .change = &changes[i], .step = 1, .is_crash = true };

        while (crash_run(t, &run)) {
            run.step++;
            assert_true(run.step < STEPS_MAX);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_refusal_is_survived),
        cmocka_unit_test(every_lost_answer_is_survived),
        cmocka_unit_test(every_lost_connection_is_survived),
        cmocka_unit_test(the_clients_death_at_any_step_leaves_a_trace),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
