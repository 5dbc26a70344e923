/* cluster/distribute - one subvolume: everything passes through.
 *
 * Volumes with a single set of replicas have this section too, so it must be there. It hides nothing and adds nothing.
 * All of distribute's options are known and checked, so that a file which will spread over several subvolumes later is
 * refused for that reason only. */
#include "graph/translator.h"

struct distribute { /* checked, not used: there is nothing to choose between */
    bool flag;
    uint32_t number, lookup_unhashed;
    double percent;
    struct percent_or_size free_disk;
};

static const char *const lookup_unhashed_words[] = { "auto", "yes", "no", "enable", "disable",
                                                     "1",    "0",   "on", "off",    NULL };

#define FLAG(name_, def_) OPT_BOOL(name_, struct distribute, flag, .def = (def_), .live = true)

static const struct option distribute_options[] = {
    OPT_ENUM("lookup-unhashed", struct distribute, lookup_unhashed, lookup_unhashed_words, .def = "on", .live = true),
    FLAG("lookup-optimize", "on"),
    OPT_PERCENT_OR_SIZE("min-free-disk", struct distribute, free_disk, .def = "10%", .live = true),
    OPT_PERCENT("min-free-inodes", struct distribute, percent, .def = "5%", .live = true),
    FLAG("unhashed-sticky-bit", "off"),
    FLAG("use-readdirp", "on"),
    FLAG("assert-no-child-down", "off"),
    OPT_U32("directory-layout-spread", struct distribute, number, .min = 1, .live = true),
    OPT_ANY("decommissioned-bricks", .live = true),
    OPT_U32("rebalance-cmd", struct distribute, number),
    OPT_U32("commit-hash", struct distribute, number),
    OPT_ANY("node-uuid"),
    FLAG("rebalance-stats", "off"),
    FLAG("readdir-optimize", "off"),
    OPT_ANY("rsync-hash-regex", .live = true),
    OPT_ANY("extra-hash-regex", .live = true),
    OPT_ANY("rebalance-filter"),
    OPT_ANY("xattr-name"),
    FLAG("weighted-rebalance", "on"),
    OPT_ANY("local-volume-name"),
    OPT_ANY("pattern.switch.case"),
    FLAG("randomize-hash-range-by-gfid", "off"),
    OPT_ANY("rebal-throttle", .live = true),
    FLAG("lock-migration", "off"),
    FLAG("force-migration", "off"),
    FLAG("ensure-durability", "on"),
    OPT_END,
};

static int distribute_init(struct translator *me, struct error *err)
{
    if (me->child_count > 1)
        return error_set(err, -ENOTSUP, "distribution over several subvolumes is not there yet, use one");
    return 0;
}

const struct translator_class distribute_class = {
    .type = "cluster/distribute",
    .aliases = { "cluster/dht", "cluster/nufa", "cluster/switch" },
    .state_size = sizeof(struct distribute),
    .options = distribute_options,
    .children_min = 1,
    .init = distribute_init,
};
