#include "sim/cluster.h"
#include "core/mem.h"
#include "sim/classes.h"
#include "sim/damage.h"
#include <stdarg.h>
#include <stdio.h>

static void text_add(char **text, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void text_add(char **text, const char *fmt, ...)
{
    char part[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(part, sizeof(part), fmt, args);
    va_end(args);
    char *joined = mem_printf("%s%s", *text ? *text : "", part);
    assert(joined);
    mem_free(*text);
    *text = joined;
}

#define HEAL_TIMEOUT_S 20
#define VOLUME_ID      "a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf"

const char *const sabotage_names[SABOTAGE_COUNT] = {
    [SABOTAGE_NONE] = "none",
    [SABOTAGE_NO_DIRTY] = "no-dirty",
    [SABOTAGE_SERVE_STALE] = "serve-stale",
    [SABOTAGE_NO_WITNESS] = "no-witness",
    [SABOTAGE_FALSE_LEASE] = "false-lease",
    [SABOTAGE_NO_SYNC] = "no-sync",
    [SABOTAGE_WRONG_SOURCE] = "wrong-source",
    [SABOTAGE_NO_NEW_MARKS] = "no-new-marks",
    [SABOTAGE_EARLY_UNLOCK] = "early-unlock",
};

static bool is_arbiter(const struct node *n)
{
    return n->cluster->config.has_arbiter && n->index == n->cluster->config.bricks - 1;
}

static char *brick_volfile(const struct node *n)
{
    char *text = NULL;
    text_add(&text, "volume disk\n type storage/simdisk\n option directory /\nend-volume\n");
    if (is_arbiter(n))
        text_add(&text, "volume arbiter\n type features/arbiter\n subvolumes disk\nend-volume\n");
    text_add(&text,
             "volume locks\n type features/locks\n subvolumes %s\nend-volume\n"
             "volume threads\n type performance/io-threads\n subvolumes locks\nend-volume\n"
             "volume brick\n type sim/index\n subvolumes threads\nend-volume\n"
             "volume server\n type protocol/server\n option transport-type tcp\n option listen-port %d\n"
             " option auth.addr.brick.allow *\n subvolumes brick\nend-volume\n",
             is_arbiter(n) ? "arbiter" : "disk", CLUSTER_PORT);
    return text;
}

static char *witness_volfile(void)
{
    char *text = NULL;
    text_add(&text,
             "volume disk\n type storage/simdisk\n option directory /\nend-volume\n"
             "volume arbiter\n type features/thin-arbiter\n subvolumes disk\nend-volume\n"
             "volume locks\n type features/locks\n subvolumes arbiter\nend-volume\n"
             "volume brick\n type performance/io-threads\n subvolumes locks\nend-volume\n"
             "volume server\n type protocol/server\n option transport-type tcp\n option listen-port %d\n"
             " option auth.addr.brick.allow *\n subvolumes brick\nend-volume\n",
             CLUSTER_PORT);
    return text;
}

/* The saboteur sits in clients, or where heal is to be broken in heal daemons. */
static bool is_sabotaged(const struct node *n)
{
    enum sabotage how = n->cluster->config.sabotage;
    if (how == SABOTAGE_NO_WITNESS)
        return false; /* it sits in front of the witness only */
    return how >= SABOTAGE_NO_SYNC ? n->kind == NODE_HEALER : how != SABOTAGE_NONE;
}

static void add_bricks(const struct node *n, char **text)
{
    const struct cluster_config *config = &n->cluster->config;
    for (unsigned i = 0; i < config->bricks; i++) {
        text_add(text,
                 "volume sim-client-%u\n type protocol/client\n option remote-host brick%u\n option remote-port %d\n"
                 " option remote-subvolume brick\n option ping-timeout 10\nend-volume\n",
                 i, i, CLUSTER_PORT);
        if (is_sabotaged(n))
            text_add(text,
                     "volume saboteur-%u\n type sim/saboteur\n option mode %s\n subvolumes sim-client-%u\n"
                     "end-volume\n",
                     i, sabotage_names[config->sabotage], i);
        text_add(text, "volume tap-%u\n type sim/tap\n subvolumes %s-%u\nend-volume\n", i,
                 is_sabotaged(n) ? "saboteur" : "sim-client", i);
    }
}

static void add_witness(const struct node *n, char **text)
{
    const struct cluster_config *config = &n->cluster->config;
    bool is_false = config->sabotage == SABOTAGE_NO_WITNESS && n->kind == NODE_CLIENT;
    text_add(text,
             "volume sim-ta-2\n type protocol/client\n option remote-host brick%u\n option remote-port %d\n"
             " option remote-subvolume brick\n option ping-timeout 10\nend-volume\n"
             "volume witness\n type sim/saboteur\n option mode %s\n subvolumes sim-ta-2\nend-volume\n",
             config->bricks, CLUSTER_PORT, sabotage_names[is_false ? SABOTAGE_NO_DIRTY : SABOTAGE_NONE]);
}

/* Of a client, or of a heal daemon. */
static char *client_volfile(const struct node *n)
{
    const struct cluster_config *config = &n->cluster->config;
    bool heals = n->kind == NODE_HEALER || config->clients_heal;
    char *text = NULL;
    add_bricks(n, &text);
    if (config->has_witness)
        add_witness(n, &text);
    text_add(
        &text,
        "volume sim-replicate-0\n type cluster/replicate\n option quorum-type %s\n option iam-self-heal-daemon %s\n"
        " option volume-id " VOLUME_ID "\n option use-anonymous-inode yes\n option heal-timeout %d\n"
        " option granular-entry-heal %s\n option data-self-heal %s\n option metadata-self-heal %s\n"
        " option entry-self-heal %s\n option data-self-heal-algorithm %s\n",
        config->quorum, n->kind == NODE_HEALER ? "yes" : "no", HEAL_TIMEOUT_S, config->is_granular ? "yes" : "no",
        heals ? "on" : "off", heals ? "on" : "off", heals ? "on" : "off",
        config->seed & 1 ? "diff" : "dynamic"); /* small files block by block, or whole */
    if (config->has_arbiter)
        text_add(&text, " option arbiter-count 1\n");
    if (config->has_witness)
        text_add(&text, " option thin-arbiter brick%u:/\n", config->bricks);
    text_add(&text, " option afr-pending-xattr ");
    for (unsigned i = 0; i < config->bricks; i++)
        text_add(&text, "%ssim-client-%u", i ? "," : "", i);
    text_add(&text, "%s\n subvolumes", config->has_witness ? ",sim-ta-2" : "");
    for (unsigned i = 0; i < config->bricks; i++)
        text_add(&text, " tap-%u", i);
    text_add(&text, "%s\nend-volume\n", config->has_witness ? " witness" : "");
    if (n->kind == NODE_CLIENT && config->has_healers) /* so that times, too, can be compared */
        text_add(&text, "volume times\n type features/utime\n subvolumes sim-replicate-0\nend-volume\n");
    return text;
}

static void node_failed(struct node *n, const struct error *err)
{
    if (!n->cluster->error[0])
        snprintf(n->cluster->error, sizeof(n->cluster->error), "%s: %.400s", n->host, err->text);
}

static FIBER void start_fiber(void *arg)
{
    struct node *n = arg;
    struct error err = { "" };
    int r = graph_start(n->graph, &err);
    n->is_starting = false;
    if (r < 0 && !sim_is_crashed(n->env))
        node_failed(n, &err);
    n->is_up = r == 0 && !sim_is_crashed(n->env);
}

void node_start(struct node *n)
{
    struct error err = { "" };
    struct volfile *file;
    char process[48];
    assert(!n->env);
    snprintf(process, sizeof(process), "%s%s.%u", n->kind == NODE_HEALER ? "heal-" : "", n->host, ++n->starts);
    n->env = sim_process_new(n->cluster->sim, n->host, process);
    SCOPED_FREE char *text = n->kind == NODE_BRICK     ? brick_volfile(n)
                             : n->kind == NODE_WITNESS ? witness_volfile()
                                                       : client_volfile(n);
    if (volfile_parse(n->host, text, strlen(text), &file, &err) < 0) {
        node_failed(n, &err);
        return;
    }
    struct graph_options options = { .id = n->starts };
    int r = graph_build(n->env, file, sim_classes, &options, &n->graph, &err);
    volfile_free(file);
    if (r < 0) {
        node_failed(n, &err);
        return;
    }
    if (n->disk.disk)
        disk_drop_orphans(n->disk.disk);
    n->graph->edge = n->disk.disk ? (void *)&n->disk : (void *)&n->tap;
    n->is_starting = true;
    r = fiber_spawn(n->env, "start", start_fiber, n);
    assert(r == 0);
}

/* What is left of a process that died: its graph is stopped without effect on anybody else and freed. */
struct corpse {
    struct env *env;
    struct graph *graph;
    struct sim *sim;
    bool is_stopped;
};

static FIBER void corpse_stop(void *arg)
{
    struct corpse *c = arg;
    graph_stop(c->graph);
    c->is_stopped = true;
}

static void corpse_bury(void *arg)
{
    struct corpse *c = arg;
    if (!c->is_stopped || sim_live_fibers(c->env) > 0) {
        (void)sim_at(c->sim, sim_now_ns(c->sim) + 1000000, corpse_bury, c);
        return;
    }
    graph_free(c->graph);
    sim_process_free(c->env);
    mem_free(c);
}

void node_kill(struct node *n)
{
    if (!n->env)
        return;
    struct corpse *c = NEW(struct corpse);
    assert(c);
    *c = (struct corpse) { .env = n->env, .graph = n->graph, .sim = n->cluster->sim };
    sim_crash(n->env);
    int r = fiber_spawn(c->env, "corpse", corpse_stop, c);
    assert(r == 0);
    (void)sim_at(c->sim, sim_now_ns(c->sim) + 1000000, corpse_bury, c);
    n->graph->edge = NULL; /* the corpse must not touch the disk any more */
    n->env = NULL;
    n->graph = NULL;
    n->is_up = n->is_starting = false;
}

static uint64_t disk_random(void *arg)
{
    return sim_random(arg);
}

void node_power_cut(struct node *n)
{
    n->cluster->times_may_differ = true;
    node_kill(n);
    node_kill(&n->cluster->healers[n->index]);
    disk_power_cut(n->disk.disk, disk_random, n->cluster->sim);
}

void node_replace_disk(struct node *brick)
{
    struct cluster *c = brick->cluster;
    static const uint8_t one_each[12] = { [3] = 1, [7] = 1, [11] = 1 };
    struct gfid index = disk_index_gfid(0), base = disk_index_base();
    char key[64];
    assert(!brick->env);
    disk_free(brick->disk.disk);
    brick->disk.disk = disk_new();
    snprintf(key, sizeof(key), "trusted.afr.sim-client-%u", brick->index);
    for (unsigned i = 0; i < c->config.bricks; i++) {
        struct disk *d = c->bricks[i].disk.disk;
        if (i == brick->index)
            continue;
        (void)disk_link(d, &base, &index, GFID_TEXT(&gfid_root)); /* may be there */
        (void)disk_set_xattr(d, &gfid_root, key, one_each, sizeof(one_each));
        disk_sync_all(d);
    }
}

static void node_init(struct cluster *c, struct node *n, enum node_kind kind, unsigned index)
{
    n->cluster = c;
    n->kind = kind;
    n->index = index;
    n->tap.sim = c->sim;
    snprintf(n->host, sizeof(n->host), "%s%u", kind == NODE_CLIENT ? "client" : "brick", index);
    if (kind == NODE_BRICK || kind == NODE_WITNESS)
        n->disk.disk = disk_new();
}

/* Kernels write back on their own: a power cut loses seconds, not minutes. */
#define WRITE_BACK_NS 5000000000ull

static void write_back(void *arg)
{
    struct cluster *c = arg;
    for (unsigned i = 0; i < cluster_brick_nodes(c); i++)
        disk_sync_all(c->bricks[i].disk.disk);
    (void)sim_at(c->sim, sim_now_ns(c->sim) + WRITE_BACK_NS, write_back, c);
}

int cluster_new(const struct cluster_config *config, struct cluster **ret_cluster)
{
    struct cluster *c = NEW(struct cluster);
    if (!c)
        return -ENOMEM;
    c->config = *config;
    struct error err = { "" };
    if (config->verbose) {
        if (log_open("-", LOG_DEBUG, &c->log, &err) < 0)
            return -EIO;
    } else {
        c->log = log_discard();
    }
    struct sim_config s = { .seed = config->seed };
    c->sim = sim_new(&s, c->log);
    if (!c->sim)
        return -ENOMEM;
    for (unsigned i = 0; i < config->bricks; i++)
        node_init(c, &c->bricks[i], NODE_BRICK, i);
    if (config->has_witness)
        node_init(c, &c->bricks[config->bricks], NODE_WITNESS, config->bricks);
    for (unsigned i = 0; i < config->bricks; i++)
        node_init(c, &c->healers[i], NODE_HEALER, i);
    for (unsigned i = 0; i < config->clients; i++)
        node_init(c, &c->clients[i], NODE_CLIENT, i);
    (void)sim_at(c->sim, WRITE_BACK_NS, write_back, c);
    *ret_cluster = c;
    return 0;
}

void node_damage(struct node *brick)
{
    assert(!brick->env);
    disk_damage(brick->disk.disk, disk_random, brick->cluster->sim);
}

bool cluster_has_converged(struct cluster *c, struct converge *report)
{
    struct converge own = { 0 };
    struct converge *r = report ? report : &own;
    r->count = c->config.bricks;
    r->with_mtimes = c->config.has_healers && !c->times_may_differ;
    r->arbiter = c->config.has_arbiter ? (int)c->config.bricks - 1 : -1;
    for (unsigned i = 0; i < c->config.bricks; i++)
        r->disks[i] = c->bricks[i].disk.disk;
    converge_check(r);
    return r->differences == 0;
}

static void time_passes(void *arg UNUSED)
{
}

bool cluster_run_until(struct cluster *c, const bool *flag, uint64_t max_ns)
{
    uint64_t end = sim_now_ns(c->sim) + max_ns;
    (void)sim_at(c->sim, end, time_passes, NULL); /* else an idle world stands still */
    while (!*flag && sim_now_ns(c->sim) < end && !c->error[0])
        (void)sim_run(c->sim, MIN(end, sim_now_ns(c->sim) + 10000000));
    return *flag;
}

void cluster_free(struct cluster *c)
{
    for (unsigned i = 0; i < c->config.clients; i++)
        node_kill(&c->clients[i]);
    for (unsigned i = 0; i < cluster_brick_nodes(c); i++) {
        node_kill(&c->healers[i]);
        node_kill(&c->bricks[i]);
    }
    bool never = false;
    (void)cluster_run_until(c, &never, 60ull * 1000000000);
    for (unsigned i = 0; i < cluster_brick_nodes(c); i++)
        disk_free(c->bricks[i].disk.disk);
    sim_free(c->sim);
    if (c->config.verbose)
        log_close(c->log);
    mem_free(c);
}
