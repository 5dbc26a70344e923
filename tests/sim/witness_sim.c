/* sim/witness_sim - two bricks and a third party that breaks ties, a witness or an arbiter: either brick goes on, never
 * both apart, under seeded faults of bricks, clients, heal daemons and the third party.
 *
 * The command line is that of replicate_sim; `--witness` makes such a cluster. What must hold is what holds everywhere:
 * nothing acknowledged is lost, no reader sees anything stale, and no split brain. With heal daemons all becomes equal
 * after the last fault, so blames are cleared and the other brick may be the one that goes on alone next. */
#include "sim/plan.h"

#define SEEDS_SHORT 300
#define SEEDS_LONG  50000

static const struct plan plans[] = {
    { .name = "two bricks and a witness, all suffer",
      .config = { .bricks = 2, .clients = 3, .quorum = "none", .has_witness = true },
      .victim = -1,
      .kills_clients = true,
      .ops = 40 },
    { .name = "two bricks and a witness, healed, all suffer",
      .config = { .bricks = 2, .clients = 3, .quorum = "none", .has_witness = true, .has_healers = true },
      .victim = -1,
      .kills_clients = true,
      .is_rich = true,
      .may_stay_unequal = true,
      .ops = 40 },
    { .name = "two bricks and a witness that suffers at the same time, healed",
      .config = { .bricks = 2, .clients = 3, .quorum = "none", .has_witness = true, .has_healers = true },
      .victim = -1,
      .kills_clients = true,
      .witness_suffers_too = true,
      .is_rich = true,
      .may_stay_unequal = true,
      .ops = 40 },
    { .name = "two bricks and an arbiter, all suffer",
      .config = { .bricks = 3, .clients = 3, .quorum = "auto", .has_arbiter = true },
      .victim = -1,
      .kills_clients = true,
      .ops = 40 },
    { .name = "two bricks and an arbiter, healed, all suffer",
      .config = { .bricks = 3, .clients = 3, .quorum = "auto", .has_arbiter = true, .has_healers = true },
      .victim = -1,
      .kills_clients = true,
      .is_rich = true,
      .may_stay_unequal = true,
      .ops = 40 },
    { .name = "a witness that has not recorded what it says is noticed",
      .config = { .bricks = 2, .clients = 3, .quorum = "none", .has_witness = true, .sabotage = SABOTAGE_NO_WITNESS },
      .victim = -1,
      .kills_clients = true,
      .ops = 40 },
};

int main(int argc, char **argv)
{
    static const struct plan_table table = { "witness_sim", plans, ARRAY_SIZE(plans), SEEDS_SHORT, SEEDS_LONG };
    return plan_main(&table, argc, argv);
}
