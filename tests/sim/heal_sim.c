/* sim/heal_sim - bricks come back, or come back empty, and are healed while clients work, under seeded faults.
 *
 * The command line is that of replicate_sim. What must hold besides what holds there: after the last fault all bricks
 * become equal in bounded time and nothing of the healing is left (sim/converge.h); with quorum nothing is ever in split
 * brain; without, every split brain is reported. */
#include "sim/plan.h"

#define SEEDS_SHORT 500
#define SEEDS_LONG  50000

static const struct plan plans[] = {
    { .name = "three bricks, healed, all suffer",
      .config = { .bricks = 3, .clients = 3, .quorum = "auto", .has_healers = true },
      .victim = -1,
      .kills_clients = true,
      .is_rich = true,
      .ops = 40 },
    { .name = "three bricks, healed when all is over",
      .config = { .bricks = 3, .clients = 2, .quorum = "auto", .has_healers = true },
      .victim = -1,
      .kills_clients = true,
      .heals_late = true,
      .is_rich = true,
      .ops = 40 },
    { .name = "three bricks, healed, disks are replaced, names missed are kept",
      .config = { .bricks = 3, .clients = 2, .quorum = "auto", .has_healers = true, .is_granular = true },
      .victim = -1,
      .kills_clients = true,
      .replaces_disks = true,
      .is_rich = true,
      .ops = 40 },
    { .name = "two bricks and an arbiter, healed, clients heal too",
      .config = { .bricks = 3,
                  .clients = 2,
                  .quorum = "auto",
                  .has_arbiter = true,
                  .has_healers = true,
                  .clients_heal = true },
      .victim = -1,
      .kills_clients = true,
      .is_rich = true,
      .ops = 40 },
    { .name = "two bricks, quorum auto, healed, both suffer",
      .config = { .bricks = 2, .clients = 2, .quorum = "auto", .has_healers = true },
      .victim = -1,
      .kills_clients = true,
      .is_rich = true,
      .ops = 40 },
    { .name = "two bricks, no quorum, one of them suffers, healed",
      .config = { .bricks = 2, .clients = 3, .quorum = "none", .has_healers = true },
      .victim = 1,
      .kills_clients = true,
      .is_rich = true,
      .ops = 40 },
    { .name = "two bricks, no quorum, both suffer: split brains are reported",
      .config = { .bricks = 2, .clients = 2, .quorum = "none", .has_healers = true },
      .victim = -1,
      .kills_clients = true,
      .heals_late = true,
      .may_split = true,
      .is_rich = true,
      .ops = 40 },
#define SABOTAGED(text, how)                                                                                           \
    {                                                                                                                  \
        .name = text, .config = { .bricks = 3, .clients = 2, .quorum = "auto", .has_healers = true, .sabotage = how }, \
        .victim = -1, .kills_clients = true, .is_rich = true, .ops = 40                                                \
    }
    SABOTAGED("healed data that is not synced is noticed", SABOTAGE_NO_SYNC),
    SABOTAGED("a wrong source is noticed", SABOTAGE_WRONG_SOURCE),
    SABOTAGED("new inodes that are not marked are noticed", SABOTAGE_NO_NEW_MARKS),
    SABOTAGED("locks that go too early are noticed", SABOTAGE_EARLY_UNLOCK),
};

int main(int argc, char **argv)
{
    static const struct plan_table table = { "heal_sim", plans, ARRAY_SIZE(plans), SEEDS_SHORT, SEEDS_LONG };
    return plan_main(&table, argc, argv);
}
