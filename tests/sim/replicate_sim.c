/* sim/replicate_sim - whole clusters under seeded faults against a model.
 *
 *     replicate_sim [--seed N | --seeds A-B] [--bricks N] [--clients N] [--ops N] [--quorum auto|none]
 *                   [--victim N] [--sabotage no-dirty|serve-stale] [--no-client-kills] [--verbose]
 *
 * Without a seed it tries every plan with the seeds from 1 to MORTAR_SEEDS of the environment, or as many as below.
 * Prints TAP: one line per kind of cluster, and for each failing seed the command that replays it. With --sabotage a
 * run passes when the checks noticed.
 */
#include "core/mem.h"
#include "sim/faults.h"
#include <stdio.h>
#include <stdlib.h>

struct plan {
    const char *name;
    struct cluster_config config;
    int victim;
    bool kills_clients;
    unsigned ops;
};

struct result {
    bool is_broken; /* the harness itself failed */
    uint64_t violations, checks;
    struct workload_stats stats;
    uint64_t steps;
    char first[512];
};

#define SECOND      1000000000ull
#define SEEDS_SHORT 1000   /* of each plan, in `make test` */
#define SEEDS_LONG  200000 /* in `make test-long` */

static bool all_up(struct cluster *c)
{
    for (unsigned i = 0; i < c->config.bricks; i++)
        if (!c->bricks[i].is_up)
            return false;
    for (unsigned i = 0; i < c->config.clients; i++)
        if (!c->clients[i].is_up)
            return false;
    return true;
}

static bool bring_up(struct cluster *c)
{
    for (unsigned i = 0; i < c->config.bricks; i++)
        node_start(&c->bricks[i]);
    for (unsigned i = 0; i < c->config.clients; i++)
        node_start(&c->clients[i]);
    bool never = false;
    for (unsigned i = 0; i < 600 && !all_up(c) && !c->error[0]; i++)
        (void)cluster_run_until(c, &never, SECOND / 10);
    (void)cluster_run_until(c, &never, 10 * SECOND); /* connections, first child-up */
    return all_up(c);
}

static void stopped(struct workload *w, const struct cluster *c, const char *where)
{
    model_violation(&w->model, "%s did not end in time (%u of %u clients finished) %s", where, w->finished,
                    c->config.clients, c->error);
}

static void scenario(const struct plan *plan, struct cluster *c, struct workload *w)
{
    bool never = false;
    if (!bring_up(c)) {
        model_violation(&w->model, "the cluster did not come up: %s", c->error);
        return;
    }
    workload_prepare(w);
    if (!cluster_run_until(c, &w->is_prepared, 300 * SECOND)) {
        stopped(w, c, "preparation");
        return;
    }
    struct faults f = { .cluster = c,
                        .workload = w,
                        .victim = plan->victim,
                        .kills_clients = plan->kills_clients,
                        .cuts_lose = plan->victim < 0 && c->config.bricks == 2 };
    for (unsigned i = 0; i < c->config.clients; i++)
        (void)workload_start_client(w, i);
    faults_start(&f);
    if (!cluster_run_until(c, &w->is_finished, 40000 * SECOND))
        stopped(w, c, "the workload");
    faults_stop(&f);
    if (!cluster_run_until(c, &f.is_quiet, 600 * SECOND))
        stopped(w, c, "the last fault");
    (void)cluster_run_until(c, &never, 120 * SECOND);
    bool done = false;
    workload_verify(w, 0, &done);
    if (!cluster_run_until(c, &done, 4000 * SECOND))
        stopped(w, c, "the verification");
    (void)cluster_run_until(c, &never, 10 * SECOND);
    (void)workload_check_disks(w);
}

static void run_seed(const struct plan *plan, uint64_t seed, struct result *result)
{
    struct plan p = *plan;
    struct cluster *c;
    struct workload w;
    p.config.seed = seed;
    *result = (struct result) { 0 };
    if (cluster_new(&p.config, &c) < 0 || workload_init(&w, c, p.ops) < 0) {
        result->is_broken = true;
        return;
    }
    scenario(&p, c, &w);
    result->steps = sim_steps(c->sim);
    cluster_free(c);
    result->violations = w.model.violations;
    result->checks = w.model.checks;
    result->stats = w.stats;
    memcpy(result->first, w.model.first, sizeof(result->first));
    workload_done(&w);
}

static void print_replay(const struct plan *p, uint64_t seed)
{
    static const char *const mode[] = { "", " --sabotage no-dirty", " --sabotage serve-stale" };
    printf("# replay: replicate_sim --seed %llu --bricks %u --clients %u --ops %u --quorum %s --victim %d%s%s\n",
           (unsigned long long)seed, p->config.bricks, p->config.clients, p->ops, p->config.quorum, p->victim,
           mode[p->config.sabotage], p->kills_clients ? "" : " --no-client-kills");
}

struct seeds {
    uint64_t first, last;
};

/* Returns true when the plan went as it should: no violation, or with sabotage at least one. */
static bool run_plan(const struct plan *plan, struct seeds seeds, unsigned number)
{
    unsigned bad = 0;
    struct workload_stats sum = { 0 };
    uint64_t checks = 0;
    for (uint64_t seed = seeds.first; seed <= seeds.last; seed++) {
        struct result r;
        run_seed(plan, seed, &r);
        checks += r.checks;
        sum.ops += r.stats.ops;
        sum.failed += r.stats.failed;
        if (r.violations || r.is_broken) {
            bad++;
            if (!plan->config.sabotage || bad == 1) {
                printf("# seed %llu: %llu violations, first: %s\n", (unsigned long long)seed,
                       (unsigned long long)r.violations, r.first);
                print_replay(plan, seed);
            }
            if (plan->config.sabotage)
                break;
        }
    }
    bool ok = plan->config.sabotage ? bad > 0 : bad == 0;
    printf("%sok %u - %s, seeds %llu-%llu: %llu operations (%llu failed), %llu checks, %u bad seeds\n",
           ok ? "" : "not ", number, plan->name, (unsigned long long)seeds.first, (unsigned long long)seeds.last,
           (unsigned long long)sum.ops, (unsigned long long)sum.failed, (unsigned long long)checks, bad);
    fflush(stdout);
    return ok;
}

static const struct plan plans[] = {
    { .name = "two bricks, no quorum, one of them suffers",
      .config = { .bricks = 2, .clients = 3, .quorum = "none" },
      .victim = 1,
      .kills_clients = true,
      .ops = 40 },
    { .name = "two bricks, quorum auto, both suffer",
      .config = { .bricks = 2, .clients = 2, .quorum = "auto" },
      .victim = -1,
      .kills_clients = true,
      .ops = 40 },
    { .name = "three bricks, quorum auto, all suffer",
      .config = { .bricks = 3, .clients = 3, .quorum = "auto" },
      .victim = -1,
      .kills_clients = true,
      .ops = 40 },
};

static const struct plan sabotaged[] = {
    { .name = "marks that never reach the disk are noticed",
      .config = { .bricks = 2, .clients = 2, .quorum = "none", .sabotage = SABOTAGE_NO_DIRTY },
      .victim = 1,
      .kills_clients = true,
      .ops = 40 },
    { .name = "a stale replica that serves is noticed",
      .config = { .bricks = 2, .clients = 2, .quorum = "none", .sabotage = SABOTAGE_SERVE_STALE },
      .victim = 1,
      .kills_clients = true,
      .ops = 40 },
};

static int run_all(struct seeds seeds)
{
    unsigned number = 0, failed = 0;
    printf("1..%zu\n", ARRAY_SIZE(plans) + ARRAY_SIZE(sabotaged));
    for (unsigned i = 0; i < ARRAY_SIZE(plans); i++)
        failed += !run_plan(&plans[i], seeds, ++number);
    for (unsigned i = 0; i < ARRAY_SIZE(sabotaged); i++)
        failed += !run_plan(&sabotaged[i], seeds, ++number);
    return failed ? 1 : 0;
}

static bool parse_seeds(const char *text, struct seeds *seeds)
{
    char *end;
    seeds->first = seeds->last = strtoull(text, &end, 10);
    if (*end == '-')
        seeds->last = strtoull(end + 1, &end, 10);
    return *end == '\0' && seeds->last >= seeds->first;
}

static int usage(void)
{
    fprintf(stderr, "usage: replicate_sim [--seed N | --seeds A-B] [--bricks N] [--clients N] [--ops N]\n"
                    "         [--quorum auto|none] [--victim N] [--sabotage no-dirty|serve-stale]\n"
                    "         [--no-client-kills] [--verbose]\n");
    return 2;
}

enum word_id { SEEDS, BRICKS, CLIENTS, OPS, QUORUM, VICTIM, SABOTAGE, NO_KILLS, VERBOSE };

struct word {
    const char *name;
    bool has_value;
    enum word_id id;
};

static const struct word words[] = {
    { "--seed", true, SEEDS },      { "--seeds", true, SEEDS },       { "--bricks", true, BRICKS },
    { "--clients", true, CLIENTS }, { "--ops", true, OPS },           { "--quorum", true, QUORUM },
    { "--victim", true, VICTIM },   { "--sabotage", true, SABOTAGE }, { "--no-client-kills", false, NO_KILLS },
    { "--verbose", false, VERBOSE }
};

static const struct word *find_word(const char *text)
{
    for (unsigned k = 0; k < ARRAY_SIZE(words); k++)
        if (!strcmp(text, words[k].name))
            return &words[k];
    return NULL;
}

static void apply_word(struct plan *own, enum word_id id, const char *value)
{
    if (id == BRICKS)
        own->config.bricks = (unsigned)atoi(value);
    else if (id == CLIENTS)
        own->config.clients = (unsigned)atoi(value);
    else if (id == OPS)
        own->ops = (unsigned)atoi(value);
    else if (id == QUORUM)
        own->config.quorum = value;
    else if (id == VICTIM)
        own->victim = atoi(value);
    else if (id == SABOTAGE)
        own->config.sabotage = !strcmp(value, "no-dirty") ? SABOTAGE_NO_DIRTY : SABOTAGE_SERVE_STALE;
    else if (id == NO_KILLS)
        own->kills_clients = false;
    else if (id == VERBOSE)
        own->config.verbose = true;
}

int main(int argc, char **argv)
{
    struct seeds seeds = { 1, getenv("MORTAR_LONG") ? SEEDS_LONG : SEEDS_SHORT };
    const char *count = getenv("MORTAR_SEEDS");
    if (count)
        seeds.last = MAX(strtoull(count, NULL, 10), 1ull);
    struct plan own = plans[0];
    bool is_own = false;
    own.name = "given on the command line";
    for (int i = 1; i < argc; i++) {
        const struct word *w = find_word(argv[i]);
        if (!w || (w->has_value && i + 1 >= argc))
            return usage();
        const char *value = w->has_value ? argv[++i] : "";
        if (w->id == SEEDS && !parse_seeds(value, &seeds))
            return usage();
        is_own = is_own || w->id != SEEDS;
        apply_word(&own, w->id, value);
    }
    if (!is_own)
        return run_all(seeds);
    if (own.config.bricks < 1 || own.config.bricks > CLUSTER_MAX_BRICKS || own.config.clients < 1 ||
        own.config.clients > CLUSTER_MAX_CLIENTS)
        return usage();
    printf("1..1\n");
    return run_plan(&own, seeds, 1) ? 0 : 1;
}
