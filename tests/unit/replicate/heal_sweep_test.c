/* Heal with the healer's death at every step, with every failure of every brick at every step, and after a client's death
 * at every step of its change.
 *
 * Whatever happened, readers that reach all bricks or all but one see what was acknowledged or are refused, and the next
 * heal makes the bricks equal and leaves no counter.
 */
#include "unit/replicate/heal_world.h"
#include <stdio.h>

#define STEPS_MAX 800
#define OPTIONS                                                                                         \
    " option use-anonymous-inode yes\n option volume-id 11111111-2222-3333-4444-555555555555\n option " \
    "granular-entry-heal on\n"

struct story {
    const char *name;
    FIBER int (*prepare)(struct world *w);
    FIBER int (*change)(struct world *w);
    FIBER int (*look)(struct world *w); /* 1: after the change, 0: before, -1: something else; -2: refused */
};

/* ---- stories ---- */

static FIBER int make(struct world *w, enum op op, struct inode *parent, const char *name, uint8_t number)
{
    const struct gfid gfid = test_gfid(number);
    SCOPED(inode_unref) struct inode *inode = inode_table_get(w->graph, &gfid, 0);

    return ask(w, op, .parent = parent, .name = name, .inode = inode, .mode = op == OP_MKNOD ? S_IFREG | 0644 : 0755,
               .text = op == OP_SYMLINK ? "target" : NULL);
}

static struct inode *inode_number(struct world *w, uint8_t number, uint32_t type)
{
    const struct gfid gfid = test_gfid(number);

    return inode_table_get(w->graph, &gfid, type);
}

static FIBER int write_text(struct world *w, uint8_t number, const char *text)
{
    SCOPED(inode_unref) struct inode *inode = inode_number(w, number, S_IFREG);
    SCOPED(buf_unref) struct buf *data = buf_copy(text, strlen(text));

    return ask(w, OP_WRITE, .inode = inode, .data = data);
}

/* 1: the name leads to this inode, 0: to nothing, -1: to another one. */
static FIBER int leads_to(struct world *w, struct inode *parent, const char *name, uint8_t number)
{
    const struct gfid gfid = test_gfid(number);
    int r = ask(w, OP_LOOKUP, .parent = parent, .name = name);

    if (r == -ENOENT)
        return 0;
    return r < 0 ? -2 : gfid_equal(&gfid, &w->r->stat.gfid) ? 1 : -1;
}

static FIBER int write_old(struct world *w)
{
    return world_write(w, 0, "old text");
}

static FIBER int write_new(struct world *w)
{
    return world_write(w, 0, "new text");
}

static FIBER int look_text(struct world *w)
{
    char text[32];

    if (world_read(w, text, sizeof(text)) < 0)
        return -2;
    return strcmp(text, "new text") == 0 ? 1 : strcmp(text, "old text") == 0 ? 0 : -1;
}

static FIBER int nothing(struct world *w)
{
    return 0;
}

static FIBER int change_mode(struct world *w)
{
    const struct iatt attr = { .mode = 0600, .uid = 5 };

    return ask(w, OP_SETATTR, .inode = w->file, .attr = &attr, .valid = ATTR_MODE | ATTR_UID);
}

static FIBER int look_mode(struct world *w)
{
    if (ask(w, OP_STAT, .inode = w->file) < 0)
        return -2;
    return (w->r->stat.mode & 07777) == 0600;
}

static FIBER int create(struct world *w)
{
    int r = make(w, OP_MKNOD, w->root, "new", 20);

    return r < 0 ? r : write_text(w, 20, "contents");
}

static FIBER int look_created(struct world *w)
{
    SCOPED(inode_unref) struct inode *inode = inode_number(w, 20, S_IFREG);
    int r = leads_to(w, w->root, "new", 20);

    if (r != 1)
        return r;
    r = ask(w, OP_READ, .inode = inode, .size = 20);
    if (r < 0)
        return -2;
    return r == 8 && memcmp(w->r->data->data, "contents", 8) == 0 ? 1 : 0;
}

static FIBER int make_tree(struct world *w)
{
    SCOPED(inode_unref) struct inode *tree = inode_number(w, 20, S_IFDIR);
    int r = make(w, OP_MKDIR, w->root, "tree", 20);

    if (r >= 0)
        r = make(w, OP_MKNOD, tree, "leaf", 21);
    return r < 0 ? r : make(w, OP_SYMLINK, tree, "sym", 22);
}

static FIBER int look_tree(struct world *w)
{
    SCOPED(inode_unref) struct inode *tree = inode_number(w, 20, S_IFDIR);
    int r = leads_to(w, w->root, "tree", 20);

    if (r == 1)
        r = leads_to(w, tree, "leaf", 21);
    return r == 1 ? leads_to(w, tree, "sym", 22) : r;
}

static FIBER int unlink_file(struct world *w)
{
    return ask(w, OP_UNLINK, .parent = w->root, .name = "file");
}

static FIBER int look_unlinked(struct world *w)
{
    int r = leads_to(w, w->root, "file", 3);

    return r == 1 ? 0 : r == 0 ? 1 : r;
}

static FIBER int make_other(struct world *w)
{
    int r = make(w, OP_MKNOD, w->root, "other", 20);

    return r < 0 ? r : write_text(w, 20, "contents");
}

static FIBER int rename_over(struct world *w)
{
    SCOPED(inode_unref) struct inode *other = inode_number(w, 20, S_IFREG);

    return ask(w, OP_RENAME, .parent = w->root, .name = "other", .parent2 = w->root, .name2 = "file", .inode = other,
               .inode2 = w->file);
}

static FIBER int look_renamed_over(struct world *w)
{
    int there = leads_to(w, w->root, "file", 20), here = leads_to(w, w->root, "other", 20);

    if (there == -2 || here == -2)
        return -2;
    return there == 1 && here == 0 ? 1 : there == -1 && here == 1 ? 0 : -1;
}

static FIBER int rename_tree(struct world *w)
{
    SCOPED(inode_unref) struct inode *tree = inode_number(w, 20, S_IFDIR);

    return ask(w, OP_RENAME, .parent = w->root, .name = "tree", .parent2 = w->dir, .name2 = "moved", .inode = tree);
}

static FIBER int look_moved(struct world *w)
{
    int here = leads_to(w, w->root, "tree", 20), there = leads_to(w, w->dir, "moved", 20);
    SCOPED(inode_unref) struct inode *tree = inode_number(w, 20, S_IFDIR);

    if (here == -2 || there == -2)
        return -2;
    if (there == 1 && here == 0)
        return leads_to(w, tree, "leaf", 21);
    return there == 0 && here == 1 ? 0 : -1;
}

static FIBER int replace_by_directory(struct world *w)
{
    int r = unlink_file(w);

    return r < 0 ? r : make(w, OP_MKDIR, w->root, "file", 20);
}

static FIBER int look_replaced(struct world *w)
{
    int r = leads_to(w, w->root, "file", 20);

    return r == -1 ? 0 : r;
}

static FIBER int link_file(struct world *w)
{
    return ask(w, OP_LINK, .inode = w->file, .parent2 = w->dir, .name2 = "hard");
}

static FIBER int look_linked(struct world *w)
{
    return leads_to(w, w->dir, "hard", 3);
}

static const struct story stories[] = {
    { "write", write_old, write_new, look_text },
    { "setattr", nothing, change_mode, look_mode },
    { "create", nothing, create, look_created },
    { "tree", nothing, make_tree, look_tree },
    { "unlink", nothing, unlink_file, look_unlinked },
    { "rename over", make_other, rename_over, look_renamed_over },
    { "rename a tree", make_tree, rename_tree, look_moved },
    { "a directory instead of a file", nothing, replace_by_directory, look_replaced },
    { "link", nothing, link_file, look_linked },
};

/* ---- runs ---- */

struct run {
    const struct story *story;
    unsigned bricks, child;
    enum fault fault;
    unsigned step;
    bool is_acknowledged;
    const char *what;
};

static const char *describe(const struct run *run, char *text, size_t size)
{
    static const char *const faults[] = { "none", "refuse", "lost", "down before" };

    (void)snprintf(text, size, "%s, %u bricks, %s at step %u (brick %u: %s)", run->story->name, run->bricks, run->what,
                   run->step, run->child, faults[run->fault]);
    return text;
}

#define RUN_TEXT(run) describe((run), (char[160]) { 0 }, 160)

/* A pair without quorum serves what it has: only with three bricks every reader sees what was acknowledged. */
static FIBER void check_readers(struct test *t, const struct run *run)
{
    int count = (int)run->bricks;

    for (int without = -1; run->is_acknowledged && without < count; without++) {
        struct world reader;
        int seen;

        if (without >= 0 && run->bricks < 3)
            continue;
        world_join(&reader, t, run->bricks, OPTIONS);
        if (without >= 0)
            mem_brick_down(reader.b[without]);
        seen = run->story->look(&reader);
        world_close(&reader);
        if (seen != 1 && seen != -2)
            fail_msg("%s: a reader without brick %d sees %d", RUN_TEXT(run), without, seen);
    }
}

static FIBER void check_healed(struct test *t, const struct run *run)
{
    struct world w;
    int seen;

    world_join(&w, t, run->bricks, OPTIONS);
    heal_crawl(&w);
    world_quiet(&w);
    if (!no_counters(&w) || !bricks_are_equal(&w))
        fail_msg("%s: not healed", RUN_TEXT(run));
    seen = run->story->look(&w);
    if (seen != 1 && (run->is_acknowledged || seen != 0))
        fail_msg("%s: after heal a reader sees %d", RUN_TEXT(run), seen);
    world_close(&w);
}

static FIBER void change_without(struct test *t, struct run *run, unsigned away)
{
    struct world w;

    world_open(&w, t, run->bricks, OPTIONS);
    assert_true(run->story->prepare(&w) >= 0);
    world_quiet(&w);
    mem_brick_down(w.b[away]);
    assert_true(run->story->change(&w) >= 0);
    run->is_acknowledged = true;
    world_close(&w);
}

static FIBER bool healer_dies(struct test *t, struct run *run)
{
    struct world w;
    bool has_died;

    change_without(t, run, run->child);
    world_join(&w, t, run->bricks, OPTIONS);
    mem_crash_client_at(w.b, w.count, run->step);
    heal_crawl(&w);
    has_died = mem_crash_client_at(NULL, 0, 0) == 0;
    world_close(&w);
    check_readers(t, run);
    check_healed(t, run);
    return has_died;
}

SIM_TEST(a_healer_may_die_at_any_step)
{
    for (size_t i = 0; i < ARRAY_SIZE(stories); i++) {
        for (unsigned bricks = 2; bricks <= 3; bricks++) {
            struct run run = { .story = &stories[i], .bricks = bricks, .child = 1, .step = 1, .what = "healer dies" };

            for (; healer_dies(t, &run); run.step++)
                assert_true(run.step < STEPS_MAX);
        }
    }
}

/* The brick fails in the middle of a heal of brick 1 (or of another one), and is back for the next. */
static FIBER bool brick_fails(struct test *t, struct run *run)
{
    struct world w;
    bool has_hit;

    change_without(t, run, 1);
    world_join(&w, t, run->bricks, OPTIONS);
    w.b[run->child]->fault = run->fault;
    w.b[run->child]->fault_at = run->step;
    heal_crawl(&w);
    has_hit = w.b[run->child]->fault_at == 0;
    world_close(&w);
    check_readers(t, run);
    check_healed(t, run);
    return has_hit;
}

static FIBER void sweep_faults(struct test *t, enum fault fault)
{
    for (size_t i = 0; i < ARRAY_SIZE(stories); i++) {
        for (unsigned child = 0; child < 3; child++) {
            struct run run = {
                .story = &stories[i], .bricks = 3, .child = child, .fault = fault, .step = 1, .what = "brick fails"
            };

            for (; brick_fails(t, &run); run.step++)
                assert_true(run.step < STEPS_MAX);
        }
    }
}

SIM_TEST(a_brick_may_refuse_any_step)
{
    sweep_faults(t, FAULT_REFUSE);
}

SIM_TEST(a_brick_may_be_lost_after_any_step)
{
    sweep_faults(t, FAULT_LOST);
}

SIM_TEST(a_brick_may_be_lost_before_any_step)
{
    sweep_faults(t, FAULT_DOWN_BEFORE);
}

/* The client dies in the middle of its change; then heal runs, first without one brick. */
static FIBER bool client_dies(struct test *t, struct run *run, int without)
{
    struct world w;
    bool has_died;

    world_open(&w, t, run->bricks, OPTIONS);
    assert_true(run->story->prepare(&w) >= 0);
    world_quiet(&w);
    mem_crash_client_at(w.b, w.count, run->step);
    run->is_acknowledged = run->story->change(&w) >= 0;
    world_quiet(&w);
    has_died = mem_crash_client_at(NULL, 0, 0) == 0;
    world_close(&w);
    if (without >= 0) {
        world_join(&w, t, run->bricks, OPTIONS);
        mem_brick_down(w.b[without]);
        heal_crawl(&w);
        world_close(&w);
        check_readers(t, run);
    }
    check_healed(t, run);
    return has_died;
}

SIM_TEST(a_client_may_die_at_any_step_of_its_change)
{
    for (size_t i = 0; i < ARRAY_SIZE(stories); i++) {
        for (unsigned bricks = 2; bricks <= 3; bricks++) {
            for (int without = -1; without < (bricks == 3 ? 3 : 0); without++) {
                struct run run = { .story = &stories[i], .bricks = bricks, .step = 1, .what = "client dies" };

                run.child = (unsigned)without;
                for (; client_dies(t, &run, without); run.step++)
                    assert_true(run.step < STEPS_MAX);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_healer_may_die_at_any_step),
        cmocka_unit_test(a_brick_may_refuse_any_step),
        cmocka_unit_test(a_brick_may_be_lost_after_any_step),
        cmocka_unit_test(a_brick_may_be_lost_before_any_step),
        cmocka_unit_test(a_client_may_die_at_any_step_of_its_change),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
