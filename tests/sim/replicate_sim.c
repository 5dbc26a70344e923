/* sim/replicate_sim - whole clusters under seeded faults against a model.
 *
 *     replicate_sim [--seed N | --seeds A-B] [--bricks N] [--clients N] [--ops N] [--quorum auto|none] [--victim N]
 *                   [--arbiter] [--heal] [--heals-late] [--power-cuts] [--clients-heal] [--granular] [--rich] [--replace] [--may-split] [--damage]
 *                   [--sabotage NAME] [--no-client-kills] [--hold-files] [--lock-files] [--verbose]
 *
 * Without a word that describes a cluster it tries every plan with the given seeds, or those from 1 to MORTAR_SEEDS of
 * the environment, or as many as below. Prints TAP: one line per kind of cluster, and for each failing seed the command
 * that replays it. With --sabotage (sim/saboteur.c) a run passes when the checks noticed.
 */
#include "sim/plan.h"

#define SEEDS_SHORT 1000
#define SEEDS_LONG  200000

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
    { .name = "two bricks, no quorum, open files are removed",
      .config = { .bricks = 2, .clients = 3, .quorum = "none" },
      .holds_files = true,
      .ops = 200 },
    { .name = "three bricks, quorum auto, open files are removed",
      .config = { .bricks = 3, .clients = 3, .quorum = "auto" },
      .holds_files = true,
      .ops = 200 },
    { .name = "two bricks, no quorum, sections under a lock file that is removed",
      .config = { .bricks = 2, .clients = 3, .quorum = "none" },
      .locks_files = true,
      .ops = 10 },
    { .name = "three bricks, quorum auto, sections under a lock file that is removed",
      .config = { .bricks = 3, .clients = 3, .quorum = "auto" },
      .locks_files = true,
      .ops = 10 },
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
    { .name = "a cache that is not told of changes is noticed",
      .config = { .bricks = 2, .clients = 2, .quorum = "none", .sabotage = SABOTAGE_FALSE_LEASE },
      .victim = 1,
      .kills_clients = true,
      .ops = 40 },
};

int main(int argc, char **argv)
{
    static const struct plan_table table = { "replicate_sim", plans, ARRAY_SIZE(plans), SEEDS_SHORT, SEEDS_LONG };
    return plan_main(&table, argc, argv);
}
