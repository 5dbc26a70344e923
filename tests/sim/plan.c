#include "sim/plan.h"
#include "cluster/replicate/heal_daemon.h"
#include "core/mem.h"
#include <stdio.h>
#include <stdlib.h>

static bool all_up(struct cluster *c, bool with_healers)
{
    for (unsigned i = 0; i < c->config.bricks; i++)
        if (!c->bricks[i].is_up || (with_healers && !c->healers[i].is_up))
            return false;
    if (c->config.has_witness && !c->bricks[c->config.bricks].is_up)
        return false;
    for (unsigned i = 0; i < c->config.clients; i++)
        if (!c->clients[i].is_up)
            return false;
    return true;
}

bool plan_bring_up(struct cluster *c, bool with_healers)
{
    for (unsigned i = 0; i < cluster_brick_nodes(c); i++)
        node_start(&c->bricks[i]);
    for (unsigned i = 0; i < c->config.bricks && with_healers; i++)
        node_start(&c->healers[i]);
    for (unsigned i = 0; i < c->config.clients; i++)
        node_start(&c->clients[i]);
    bool never = false;
    for (unsigned i = 0; i < 600 && !all_up(c, with_healers) && !c->error[0]; i++)
        (void)cluster_run_until(c, &never, SIM_SECOND / 10);
    (void)cluster_run_until(c, &never, 10 * SIM_SECOND); /* connections, first child-up */
    return all_up(c, with_healers);
}

static void stopped(struct workload *w, const struct cluster *c, const char *where)
{
    model_violation(&w->model, "%s did not end in time (%u of %u clients finished) %s", where, w->finished,
                    c->config.clients, c->error);
}

static bool is_split(void *arg, const struct gfid *gfid)
{
    return workload_is_split(arg, gfid);
}

static void order_full(struct cluster *c)
{
    for (unsigned i = 0; i < c->config.bricks; i++) {
        struct graph *graph = c->healers[i].graph;
        if (graph && c->healers[i].is_up)
            (void)heal_daemon_order(graph->root, HEAL_ORDER_FULL); /* one that has no brick has nothing to walk */
    }
}

static void wait_until_equal(struct cluster *c, struct converge *report, bool had_power_cut)
{
    uint64_t end = sim_now_ns(c->sim) + HEAL_BOUND_S * SIM_SECOND;
    bool never = false;
    while (!cluster_has_converged(c, report) && sim_now_ns(c->sim) < end) {
        if (had_power_cut && report->differences == report->of_power)
            order_full(c);
        (void)cluster_run_until(c, &never, 2 * SIM_SECOND);
    }
}

void plan_wait_for_heal(struct cluster *c, struct workload *w, bool had_power_cut, bool may_split)
{
    struct converge report = { .is_split = is_split, .arg = w };
    bool done = false;
    wait_until_equal(c, &report, had_power_cut);
    if (report.differences && may_split) {
        workload_find_splits(w, &c->healers[0], &done);
        if (!cluster_run_until(c, &done, 600 * SIM_SECOND))
            stopped(w, c, "looking for split brains");
        wait_until_equal(c, &report, had_power_cut); /* what is left beside them */
    }
    if (report.differences)
        model_violation(&w->model, "not equal %d s after the last fault: %s (%u differences)", HEAL_BOUND_S,
                        report.first, report.differences);
}

/* Nobody but who compares all can know: that is ordered. */
static void damage_and_heal(struct cluster *c, struct workload *w)
{
    struct node *brick = &c->bricks[sim_random(c->sim) % c->config.bricks];
    bool never = false;
    node_kill(brick);
    node_damage(brick);
    if (c->config.verbose) {
        struct converge report = { 0 };
        (void)cluster_has_converged(c, &report);
        fprintf(stderr, "# %.6f s: brick %u is damaged: %s (%u differences)\n", (double)sim_now_ns(c->sim) / 1e9,
                brick->index, report.first, report.differences);
    }
    node_start(brick);
    (void)cluster_run_until(c, &never, 20 * SIM_SECOND); /* all are connected */
    order_full(c);
    plan_wait_for_heal(c, w, true, false);
}

static void heal_at_last(const struct plan *plan, struct cluster *c, struct workload *w, bool had_power_cut,
                         struct result *result)
{
    bool never = false;
    for (unsigned i = 0; plan->heals_late && i < c->config.bricks; i++)
        if (!c->healers[i].env)
            node_start(&c->healers[i]);
    uint64_t begin = sim_now_ns(c->sim);
    plan_wait_for_heal(c, w, had_power_cut, plan->may_split);
    result->heal_ms = (sim_now_ns(c->sim) - begin) / 1000000;
    result->splits = w->split_count;
    (void)cluster_run_until(c, &never, 10 * SIM_SECOND); /* all are connected */
    if (plan->damages && !w->model.violations)
        damage_and_heal(c, w);
}

static void scenario(const struct plan *plan, struct cluster *c, struct workload *w, struct result *result)
{
    bool never = false, done = false;
    if (!plan_bring_up(c, c->config.has_healers && !plan->heals_late)) {
        model_violation(&w->model, "the cluster did not come up: %s", c->error);
        return;
    }
    workload_prepare(w);
    if (!cluster_run_until(c, &w->is_prepared, 300 * SIM_SECOND)) {
        stopped(w, c, "preparation");
        return;
    }
    struct faults f = { .cluster = c,
                        .workload = w,
                        .victim = plan->victim,
                        .spares_witness = plan->witness_suffers_too,
                        .kills_clients = plan->kills_clients,
                        .only_power_cuts = plan->only_power_cuts,
                        .has_healers = c->config.has_healers && !plan->heals_late,
                        .replaces_disks = plan->replaces_disks,
                        .cuts_lose = plan->victim < 0 && c->config.bricks - c->config.has_arbiter == 2 };
    struct faults of_witness = { .cluster = c, .workload = w, .victim = (int)c->config.bricks, .is_quiet = true };
    for (unsigned i = 0; i < c->config.clients; i++)
        (void)workload_start_client(w, i);
    bool has_faults = !plan->holds_files && !plan->locks_files;
    if (has_faults)
        faults_start(&f);
    if (plan->witness_suffers_too) {
        of_witness.is_quiet = false;
        faults_start(&of_witness);
    }
    if (!cluster_run_until(c, &w->is_finished, 40000 * SIM_SECOND))
        stopped(w, c, "the workload");
    faults_stop(&f);
    faults_stop(&of_witness);
    if (has_faults && !cluster_run_until(c, &f.is_quiet, 600 * SIM_SECOND))
        stopped(w, c, "the last fault");
    if (!cluster_run_until(c, &of_witness.is_quiet, 600 * SIM_SECOND))
        stopped(w, c, "the witness's last fault");
    if (c->config.has_healers && !plan->may_stay_unequal)
        heal_at_last(plan, c, w, faults_cut_power(&f), result);
    else
        (void)cluster_run_until(c, &never, 120 * SIM_SECOND);
    w->model.is_final = true;
    if (c->config.verbose)
        cluster_dump(c);
    workload_verify(w, 0, &done);
    if (!cluster_run_until(c, &done, 4000 * SIM_SECOND))
        stopped(w, c, "the verification");
    (void)cluster_run_until(c, &never, 10 * SIM_SECOND);
    (void)workload_check_disks(w);
}

void plan_run_seed(const struct plan *plan, uint64_t seed, struct result *ret)
{
    struct plan p = *plan;
    struct cluster *c;
    struct workload *w = NEW(struct workload);
    p.config.seed = seed;
    *ret = (struct result) { 0 };
    if (!w || cluster_new(&p.config, &c) < 0 || workload_init(w, c, p.ops) < 0) {
        ret->is_broken = true;
        return;
    }
    w->is_rich = p.is_rich;
    c->times_may_differ = p.may_split;
    w->holds_files = p.holds_files;
    w->locks_files = p.locks_files;
    w->model.may_split = p.may_split && p.victim < 0;
    scenario(&p, c, w, ret);
    ret->steps = sim_steps(c->sim);
    cluster_free(c);
    ret->violations = w->model.violations;
    ret->checks = w->model.checks;
    ret->stats = w->stats;
    memcpy(ret->first, w->model.first, sizeof(ret->first));
    workload_done(w);
    mem_free(w);
}

static void print_replay(const char *program, const struct plan *p, uint64_t seed)
{
    const struct {
        bool is_set;
        const char *word;
    } flags[] = {
        { p->witness_suffers_too, "--witness-suffers" },
        { p->may_stay_unequal, "--may-stay-unequal" },
        { p->config.has_arbiter, "--arbiter" },
        { p->config.has_witness, "--witness" },
        { p->config.has_healers, "--heal" },
        { p->config.clients_heal, "--clients-heal" },
        { p->config.is_granular, "--granular" },
        { p->heals_late, "--heals-late" },
        { p->only_power_cuts, "--power-cuts" },
        { p->is_rich, "--rich" },
        { p->replaces_disks, "--replace" },
        { p->may_split, "--may-split" },
        { p->damages, "--damage" },
        { !p->kills_clients, "--no-client-kills" },
        { p->holds_files, "--hold-files" },
        { p->locks_files, "--lock-files" },
    };
    printf("# replay: %s --seed %llu --bricks %u --clients %u --ops %u --quorum %s --victim %d", program,
           (unsigned long long)seed, p->config.bricks, p->config.clients, p->ops, p->config.quorum, p->victim);
    for (unsigned i = 0; i < ARRAY_SIZE(flags); i++)
        if (flags[i].is_set)
            printf(" %s", flags[i].word);
    if (p->config.sabotage)
        printf(" --sabotage %s", sabotage_names[p->config.sabotage]);
    printf("\n");
}

struct sum {
    uint64_t ops, failed, checks, kept_reads, heal_ms_max;
    unsigned bad, splits;
};

static void add(struct sum *sum, const struct result *r)
{
    sum->checks += r->checks;
    sum->kept_reads += r->stats.kept_reads;
    sum->ops += r->stats.ops;
    sum->failed += r->stats.failed;
    sum->splits += r->splits;
    sum->heal_ms_max = MAX(sum->heal_ms_max, r->heal_ms);
}

static bool run(const char *program, const struct plan *plan, struct seeds seeds, unsigned number)
{
    struct sum sum = { 0 };
    for (uint64_t seed = seeds.first; seed <= seeds.last; seed++) {
        struct result r;
        plan_run_seed(plan, seed, &r);
        add(&sum, &r);
        if (!r.violations && !r.is_broken)
            continue;
        if (sum.bad++ == 0 || !plan->config.sabotage) {
            printf("# seed %llu: %llu violations, first: %s\n", (unsigned long long)seed,
                   (unsigned long long)r.violations, r.first);
            print_replay(program, plan, seed);
        }
        if (plan->config.sabotage)
            break;
    }
    bool ok = plan->config.sabotage ? sum.bad > 0 : sum.bad == 0;
    printf(
        "%sok %u - %s, seeds %llu-%llu: %llu operations (%llu failed), %llu checks (%llu of what was kept), %u bad seeds",
        ok ? "" : "not ", number, plan->name, (unsigned long long)seeds.first, (unsigned long long)seeds.last,
        (unsigned long long)sum.ops, (unsigned long long)sum.failed, (unsigned long long)sum.checks,
        (unsigned long long)sum.kept_reads, sum.bad);
    if (plan->config.has_healers)
        printf(", healed within %llu s, %u split brains", (unsigned long long)sum.heal_ms_max / 1000, sum.splits);
    printf("\n");
    fflush(stdout);
    return ok;
}

static int run_all(const struct plan_table *table, struct seeds seeds)
{
    unsigned failed = 0;
    printf("1..%u\n", table->count);
    /* What is broken on purpose shows within the seeds of `make test`, however few are asked for. */
    struct seeds all = { seeds.first, MAX(seeds.last, table->seeds_short) };
    for (unsigned i = 0; i < table->count; i++)
        failed += !run(table->program, &table->plans[i], table->plans[i].config.sabotage ? all : seeds, i + 1);
    return failed ? 1 : 0;
}

/* ---- command line ---- */

static bool parse_seeds(const char *text, struct seeds *seeds)
{
    char *end;
    seeds->first = seeds->last = strtoull(text, &end, 10);
    if (*end == '-')
        seeds->last = strtoull(end + 1, &end, 10);
    return *end == '\0' && seeds->last >= seeds->first;
}

enum word_id {
    SEEDS,
    BRICKS,
    CLIENTS,
    OPS,
    QUORUM,
    VICTIM,
    SABOTAGE,
    ARBITER,
    WITNESS,
    HEAL,
    CLIENTS_HEAL,
    GRANULAR,
    HEALS_LATE,
    POWER_CUTS,
    DAMAGE,
    RICH,
    REPLACE,
    MAY_SPLIT,
    WITNESS_SUFFERS,
    MAY_STAY_UNEQUAL,
    NO_KILLS,
    HOLD_FILES,
    LOCK_FILES,
    VERBOSE
};

struct word {
    const char *name;
    bool has_value;
    enum word_id id;
};

static const struct word words[] = { { "--seed", true, SEEDS },
                                     { "--seeds", true, SEEDS },
                                     { "--bricks", true, BRICKS },
                                     { "--clients", true, CLIENTS },
                                     { "--ops", true, OPS },
                                     { "--quorum", true, QUORUM },
                                     { "--victim", true, VICTIM },
                                     { "--sabotage", true, SABOTAGE },
                                     { "--arbiter", false, ARBITER },
                                     { "--witness", false, WITNESS },
                                     { "--heal", false, HEAL },
                                     { "--clients-heal", false, CLIENTS_HEAL },
                                     { "--granular", false, GRANULAR },
                                     { "--heals-late", false, HEALS_LATE },
                                     { "--power-cuts", false, POWER_CUTS },
                                     { "--damage", false, DAMAGE },
                                     { "--rich", false, RICH },
                                     { "--replace", false, REPLACE },
                                     { "--may-split", false, MAY_SPLIT },
                                     { "--witness-suffers", false, WITNESS_SUFFERS },
                                     { "--may-stay-unequal", false, MAY_STAY_UNEQUAL },
                                     { "--no-client-kills", false, NO_KILLS },
                                     { "--hold-files", false, HOLD_FILES },
                                     { "--lock-files", false, LOCK_FILES },
                                     { "--verbose", false, VERBOSE } };

static int usage(const char *program)
{
    fprintf(stderr, "usage: %s", program);
    for (unsigned i = 0; i < ARRAY_SIZE(words); i++)
        fprintf(stderr, " [%s%s]", words[i].name, words[i].has_value ? " VALUE" : "");
    fprintf(stderr, "\n");
    return 2;
}

static const struct word *find_word(const char *text)
{
    for (unsigned k = 0; k < ARRAY_SIZE(words); k++)
        if (!strcmp(text, words[k].name))
            return &words[k];
    return NULL;
}

static enum sabotage find_sabotage(const char *name)
{
    for (unsigned i = 0; i < SABOTAGE_COUNT; i++)
        if (!strcmp(name, sabotage_names[i]))
            return (enum sabotage)i;
    return SABOTAGE_NONE;
}

static void apply_word(struct plan *own, enum word_id id, const char *value)
{
    switch (id) {
    case SEEDS: break;
    case BRICKS: own->config.bricks = (unsigned)atoi(value); break;
    case CLIENTS: own->config.clients = (unsigned)atoi(value); break;
    case OPS: own->ops = (unsigned)atoi(value); break;
    case QUORUM: own->config.quorum = value; break;
    case VICTIM: own->victim = atoi(value); break;
    case SABOTAGE: own->config.sabotage = find_sabotage(value); break;
    case ARBITER: own->config.has_arbiter = true; break;
    case WITNESS: own->config.has_witness = true; break;
    case HEAL: own->config.has_healers = true; break;
    case CLIENTS_HEAL: own->config.clients_heal = true; break;
    case GRANULAR: own->config.is_granular = true; break;
    case DAMAGE: own->damages = true; break;
    case POWER_CUTS: own->only_power_cuts = true; break;
    case HEALS_LATE: own->heals_late = true; break;
    case RICH: own->is_rich = true; break;
    case REPLACE: own->replaces_disks = true; break;
    case MAY_SPLIT: own->may_split = true; break;
    case WITNESS_SUFFERS: own->witness_suffers_too = true; break;
    case MAY_STAY_UNEQUAL: own->may_stay_unequal = true; break;
    case NO_KILLS: own->kills_clients = false; break;
    case HOLD_FILES: own->holds_files = true; break;
    case LOCK_FILES: own->locks_files = true; break;
    case VERBOSE: own->config.verbose = true; break;
    }
}

int plan_main(const struct plan_table *table, int argc, char **argv)
{
    struct seeds seeds = { 1, getenv("MORTAR_LONG") ? table->seeds_long : table->seeds_short };
    const char *count = getenv("MORTAR_SEEDS");
    if (count)
        seeds.last = MAX(strtoull(count, NULL, 10), 1ull);
    struct plan own = { .name = "given on the command line",
                        .config = { .bricks = 2, .clients = 3, .quorum = "none" },
                        .victim = 1,
                        .kills_clients = true,
                        .ops = 40 };
    bool is_own = false;
    for (int i = 1; i < argc; i++) {
        const struct word *w = find_word(argv[i]);
        if (!w || (w->has_value && i + 1 >= argc))
            return usage(table->program);
        const char *value = w->has_value ? argv[++i] : "";
        if (w->id == SEEDS && !parse_seeds(value, &seeds))
            return usage(table->program);
        is_own = is_own || w->id != SEEDS;
        apply_word(&own, w->id, value);
    }
    if (!is_own)
        return run_all(table, seeds);
    if (own.config.bricks < 1 || own.config.bricks > CLUSTER_MAX_BRICKS || own.config.clients < 1 ||
        own.config.clients > CLUSTER_MAX_CLIENTS)
        return usage(table->program);
    printf("1..1\n");
    return run(table->program, &own, seeds, 1) ? 0 : 1;
}
