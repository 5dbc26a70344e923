/* sim/heal_sweep_sim - something dies at every single step.
 *
 *     heal_sweep_sim [--scene N --process heal|heal-stale|client --action NAME --step K [--after]
 *                     [--sabotage] [--verbose]]
 *
 * A scene is one fixed run: a brick is away (or comes back empty) while clients change everything there is to change;
 * it returns, and is healed while they go on. The messages of one process are counted; then the scene runs once for each
 * of them, and there something happens: before the message goes out, or (--after) when it was answered and the process
 * does not know yet. Two virtual seconds later all is repaired. In the end all bricks must be equal, nothing of the
 * healing left, and every acknowledged change be there.
 *
 * Every STRIDEth message is taken, another one each time, so that neighbouring actions cover the rest; MORTAR_LONG=1
 * takes all. MORTAR_SEEDS below 100 (sanitizers) takes few.
 */
#include "core/mem.h"
#include "sim/plan.h"
#include <stdio.h>
#include <stdlib.h>

#define STRIDE           32
#define STRIDE_FEW       97
#define SABOTAGED_STRIDE 8
#define REPAIR_NS        (2 * SIM_SECOND)
#define OPS_PER_CLIENT   30 /* per client */
#define OPS_AWAY         30 /* of all clients together, until the brick returns */
#define QUIET_MAX_S      4000
#define CLIENTS          2

struct scene {
    const char *name;
    struct cluster_config config;
    unsigned stale; /* the brick that is away */
    bool is_replaced;
    bool is_only_copy; /* beside the stale brick one holds data: a power cut there may take what was not synced */
};

static const struct scene scenes[] = {
    { .name = "three bricks",
      .config = { .seed = 11, .bricks = 3, .clients = CLIENTS, .quorum = "auto", .has_healers = true },
      .stale = 1 },
    { .name = "three bricks, an empty one",
      .config = { .seed = 12,
                  .bricks = 3,
                  .clients = CLIENTS,
                  .quorum = "auto",
                  .has_healers = true,
                  .is_granular = true },
      .stale = 1,
      .is_replaced = true },
    { .name = "two bricks and an arbiter",
      .config = { .seed = 13,
                  .bricks = 3,
                  .clients = CLIENTS,
                  .quorum = "auto",
                  .has_healers = true,
                  .has_arbiter = true },
      .stale = 1,
      .is_only_copy = true },
    { .name = "two bricks",
      .config = { .seed = 14, .bricks = 2, .clients = CLIENTS, .quorum = "auto", .has_healers = true },
      .stale = 1,
      .is_only_copy = true },
};

enum process { PROCESS_HEALER, PROCESS_STALE_HEALER, PROCESS_CLIENT, PROCESS_COUNT };
static const char *const process_names[PROCESS_COUNT] = { "heal", "heal-stale", "client" };

enum action {
    ACTION_DIE,
    ACTION_KILL_STALE,
    ACTION_CUT_STALE,
    ACTION_KILL_GOOD,
    ACTION_CUT_GOOD,
    ACTION_PART,
    ACTION_COUNT
};
static const char *const action_names[ACTION_COUNT] = {
    [ACTION_DIE] = "die",
    [ACTION_KILL_STALE] = "kill-stale",
    [ACTION_CUT_STALE] = "power-cut-stale",
    [ACTION_KILL_GOOD] = "kill-good",
    [ACTION_CUT_GOOD] = "power-cut-good",
    [ACTION_PART] = "part",
};

struct run {
    const struct scene *scene;
    enum process process;
    enum action action;
    uint64_t step; /* 0: only count */
    bool after, verbose;
    enum sabotage sabotage;
    /* while it runs */
    struct cluster *c;
    struct workload *w;
    struct node *counted; /* the process whose messages are counted */
    uint64_t steps;       /* counted */
    char first[512];
};

static void each_part(struct run *run, void (*fn)(struct sim *sim, const char *a, const char *b))
{
    if (strcmp(run->counted->host, run->c->bricks[run->scene->stale].host) != 0)
        fn(run->c->sim, run->counted->host, run->c->bricks[run->scene->stale].host);
    else
        fn(run->c->sim, run->counted->host, run->c->bricks[0].host);
}

static void start_if_dead(struct run *run, struct node *n)
{
    if (n->env)
        return;
    node_start(n);
    if (n->kind == NODE_CLIENT)
        workload_client_restarted(run->w, n->index);
}

static void repair(void *arg)
{
    struct run *run = arg;
    start_if_dead(run, &run->c->bricks[0]);
    start_if_dead(run, &run->c->bricks[run->scene->stale]);
    start_if_dead(run, &run->c->healers[0]);
    start_if_dead(run, &run->c->healers[run->scene->stale]);
    start_if_dead(run, run->counted);
    if (run->action == ACTION_PART)
        each_part(run, sim_heal);
}

static void act(void *arg)
{
    struct run *run = arg;
    struct node *stale = &run->c->bricks[run->scene->stale], *good = &run->c->bricks[0];
    if (run->verbose)
        fprintf(stderr, "# %.6f s: %s\n", (double)sim_now_ns(run->c->sim) / 1e9, action_names[run->action]);
    switch (run->action) {
    case ACTION_DIE: node_kill(run->counted); break;
    case ACTION_KILL_STALE: node_kill(stale); break;
    case ACTION_CUT_STALE: node_power_cut(stale); break;
    case ACTION_KILL_GOOD: node_kill(good); break;
    case ACTION_CUT_GOOD: node_power_cut(good); break;
    default: each_part(run, sim_cut); break;
    }
    (void)sim_at(run->c->sim, sim_now_ns(run->c->sim) + REPAIR_NS, repair, run);
}

static bool wait_for_ops(struct run *run, uint64_t ops)
{
    bool never = false;
    for (unsigned i = 0; i < QUIET_MAX_S * 10 && run->w->stats.ops < ops && !run->w->is_finished; i++)
        (void)cluster_run_until(run->c, &never, SIM_SECOND / 10);
    return run->w->stats.ops >= ops || run->w->is_finished;
}

/* All that happens before heal: the brick is away. */
static bool begin(struct run *run)
{
    struct node *stale = &run->c->bricks[run->scene->stale];
    if (!plan_bring_up(run->c, true))
        return false;
    workload_prepare(run->w);
    if (!cluster_run_until(run->c, &run->w->is_prepared, QUIET_MAX_S * SIM_SECOND))
        return false;
    node_kill(stale);
    if (run->process == PROCESS_CLIENT)
        run->counted->tap.is_counting = true;
    uint64_t ops = run->w->stats.ops + OPS_AWAY;
    for (unsigned i = 0; i < CLIENTS; i++)
        (void)workload_start_client(run->w, i);
    if (!wait_for_ops(run, ops))
        return false;
    if (stale->env) /* somebody's repair started it */
        node_kill(stale);
    if (run->scene->is_replaced)
        node_replace_disk(stale);
    run->counted->tap.is_counting = true;
    node_start(stale);
    return true;
}

static void finish(struct run *run)
{
    bool cuts_power = run->action == ACTION_CUT_STALE || run->action == ACTION_CUT_GOOD;
    bool never = false, done = false;
    if (!cluster_run_until(run->c, &run->w->is_finished, QUIET_MAX_S * SIM_SECOND))
        model_violation(&run->w->model, "the workload did not end %s", run->c->error);
    plan_wait_for_heal(run->c, run->w, cuts_power, false);
    run->counted->tap.is_counting = false;
    (void)cluster_run_until(run->c, &never, 10 * SIM_SECOND); /* all is repaired and connected */
    plan_wait_for_heal(run->c, run->w, cuts_power, false);
    run->steps = run->counted->tap.count;
    run->w->model.is_final = true;
    if (run->verbose)
        cluster_dump(run->c);
    workload_verify(run->w, 0, &done);
    if (!cluster_run_until(run->c, &done, QUIET_MAX_S * SIM_SECOND))
        model_violation(&run->w->model, "the verification did not end %s", run->c->error);
}

static struct node *counted_process(struct run *run)
{
    switch (run->process) {
    case PROCESS_HEALER: return &run->c->healers[0];
    case PROCESS_STALE_HEALER: return &run->c->healers[run->scene->stale];
    default: return &run->c->clients[0];
    }
}

/* Returns true when all was as it must be; else run->first says what was not. */
static bool carry_out(struct run *run)
{
    struct cluster_config config = run->scene->config;
    config.verbose = run->verbose;
    config.sabotage = run->sabotage;
    run->w = NEW(struct workload);
    if (!run->w || cluster_new(&config, &run->c) < 0 || workload_init(run->w, run->c, OPS_PER_CLIENT) < 0) {
        snprintf(run->first, sizeof(run->first), "no memory");
        return false;
    }
    run->w->is_rich = true;
    run->counted = counted_process(run);
    run->counted->tap.stop_at = run->step;
    run->counted->tap.stop_after = run->after;
    run->counted->tap.fn = act;
    run->counted->tap.arg = run;
    if (begin(run))
        finish(run);
    else
        model_violation(&run->w->model, "the scene did not begin: %s", run->c->error);
    cluster_free(run->c);
    bool ok = run->w->model.violations == 0;
    memcpy(run->first, run->w->model.first, sizeof(run->first));
    workload_done(run->w);
    mem_free(run->w);
    return ok;
}

static bool run_one(struct run *run)
{
    if (carry_out(run))
        return true;
    printf("# step %llu of %s, %s: %s\n", (unsigned long long)run->step, run->scene->name, action_names[run->action],
           run->first);
    printf("# replay: heal_sweep_sim --scene %u --process %s --action %s --step %llu%s\n",
           (unsigned)(run->scene - scenes), process_names[run->process], action_names[run->action],
           (unsigned long long)run->step, run->after ? " --after" : "");
    return false;
}

static unsigned stride(void)
{
    const char *seeds = getenv("MORTAR_SEEDS");
    return getenv("MORTAR_LONG") ? 1 : seeds && atoi(seeds) < 100 ? STRIDE_FEW : STRIDE;
}

static bool sweep(const struct scene *scene, enum process process, enum action action, unsigned number, uint64_t *runs)
{
    struct run run = { .scene = scene, .process = process, .action = action };
    unsigned bad = !run_one(&run), tried = 1;
    uint64_t steps = run.steps;
    for (unsigned after = 0; after < 2; after++) {
        for (uint64_t step = 1 + (number + after) % stride(); step <= steps; step += stride()) {
            run.step = step;
            run.after = after != 0;
            bad += !run_one(&run);
            tried++;
        }
    }
    *runs += tried;
    printf("%sok %u - %s; %s, at a step of %s: %llu steps, %u runs, %u bad\n", bad ? "not " : "", number, scene->name,
           action_names[action], process_names[process], (unsigned long long)steps, tried, bad);
    fflush(stdout);
    return bad == 0;
}

/* With heal daemons that do not mark the inodes they make: one that dies there leaves an empty file nobody knows of. */
static bool sweep_sabotaged(unsigned number)
{
    struct run run = { .scene = &scenes[1], .process = PROCESS_STALE_HEALER, .sabotage = SABOTAGE_NO_NEW_MARKS };
    unsigned tried = 1;
    bool is_noticed = !carry_out(&run);
    for (uint64_t steps = run.steps, step = 1; step <= steps && !is_noticed; step += SABOTAGED_STRIDE, tried++) {
        run.step = step;
        is_noticed = !carry_out(&run);
    }
    printf("%sok %u - new inodes that are not marked are noticed: after %u runs, step %llu: %s\n",
           is_noticed ? "" : "not ", number, tried, (unsigned long long)run.step, run.first);
    return is_noticed;
}

static bool applies(const struct scene *scene, enum action action)
{
    return action != ACTION_CUT_GOOD || !scene->is_only_copy;
}

static int sweep_all(void)
{
    unsigned number = 0, failed = 0;
    uint64_t runs = 0;
    for (unsigned i = 0; i < ARRAY_SIZE(scenes); i++)
        for (unsigned p = 0; p < PROCESS_COUNT; p++)
            for (unsigned a = 0; a < ACTION_COUNT; a++)
                if (applies(&scenes[i], (enum action)a))
                    failed += !sweep(&scenes[i], (enum process)p, (enum action)a, ++number, &runs);
    failed += !sweep_sabotaged(++number);
    printf("1..%u\n# %llu runs\n", number, (unsigned long long)runs);
    return failed ? 1 : 0;
}

static int find_name(const char *const *names, unsigned count, const char *name)
{
    for (unsigned i = 0; i < count; i++)
        if (!strcmp(names[i], name))
            return (int)i;
    return -1;
}

static int usage(void)
{
    fprintf(stderr, "usage: heal_sweep_sim [--scene N --process heal|heal-stale|client --action die|kill-stale|\n"
                    "         power-cut-stale|kill-good|power-cut-good|part --step K [--after] [--sabotage]\n"
                    "         [--verbose]]\n");
    return 2;
}

int main(int argc, char **argv)
{
    struct run run = { .scene = scenes };
    if (argc == 1)
        return sweep_all();
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        int number;
        if (!strcmp(argv[i], "--after")) {
            run.after = true;
            continue;
        }
        if (!strcmp(argv[i], "--verbose")) {
            run.verbose = true;
            continue;
        }
        if (!strcmp(argv[i], "--sabotage")) {
            run.sabotage = SABOTAGE_NO_NEW_MARKS;
            continue;
        }
        i++;
        if (!strcmp(argv[i - 1], "--scene") && (number = atoi(value)) >= 0 && number < (int)ARRAY_SIZE(scenes))
            run.scene = &scenes[number];
        else if (!strcmp(argv[i - 1], "--process") && (number = find_name(process_names, PROCESS_COUNT, value)) >= 0)
            run.process = (enum process)number;
        else if (!strcmp(argv[i - 1], "--action") && (number = find_name(action_names, ACTION_COUNT, value)) >= 0)
            run.action = (enum action)number;
        else if (!strcmp(argv[i - 1], "--step"))
            run.step = strtoull(value, NULL, 10);
        else
            return usage();
    }
    printf("1..1\n");
    bool ok = run_one(&run);
    printf("%sok 1 - one run, %llu steps\n", ok ? "" : "not ", (unsigned long long)run.steps);
    return ok ? 0 : 1;
}
