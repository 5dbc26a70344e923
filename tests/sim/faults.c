#include "sim/faults.h"
#include <stdio.h>

#define SECOND 1000000000ull

enum fault {
    FAULT_KILL_BRICK,
    FAULT_POWER_CUT,
    FAULT_CUT_LINK,
    FAULT_CUT_ALL_LINKS,
    FAULT_HOLD_LINK,
    FAULT_RESET,
    FAULT_EIO,
    FAULT_FULL,
    FAULT_KILL_CLIENT,
    FAULT_KILL_HEALER, /* from here on: of clusters with heal daemons */
    FAULT_CUT_BRICKS,  /* the brick from all other hosts of bricks: heal daemons there and here */
    FAULT_REPLACE_DISK,
    FAULT_COUNT,
};
static_assert(FAULT_COUNT <= 12, "struct faults counts them");

static const char *const fault_names[FAULT_COUNT] = {
    [FAULT_KILL_BRICK] = "kill brick",
    [FAULT_POWER_CUT] = "power cut",
    [FAULT_CUT_LINK] = "cut link",
    [FAULT_CUT_ALL_LINKS] = "cut all",
    [FAULT_HOLD_LINK] = "hold link",
    [FAULT_RESET] = "reset connections",
    [FAULT_EIO] = "I/O errors",
    [FAULT_FULL] = "disk full",
    [FAULT_KILL_CLIENT] = "kill client",
    [FAULT_KILL_HEALER] = "kill heal daemon",
    [FAULT_CUT_BRICKS] = "cut between bricks",
    [FAULT_REPLACE_DISK] = "replace disk",
};

static void say(const struct faults *f, const char *what)
{
    if (f->cluster->config.verbose)
        fprintf(stderr, "# %.6f s: %s: %s (brick %u, client %u)\n", (double)sim_now_ns(f->cluster->sim) / 1e9, what,
                fault_names[f->kind], f->brick, f->client);
}

static void begin(void *arg);
static void end(void *arg);

static uint64_t dice(struct faults *f, uint64_t sides)
{
    return sim_random(f->cluster->sim) % sides;
}

static void later(struct faults *f, uint64_t min_ns, uint64_t max_ns, void (*fn)(void *arg))
{
    int r = sim_at(f->cluster->sim, sim_now_ns(f->cluster->sim) + min_ns + dice(f, max_ns - min_ns), fn, f);
    assert(r == 0);
}

static void each_link(struct faults *f, void (*fn)(struct sim *sim, const char *a, const char *b))
{
    struct cluster *c = f->cluster;
    for (unsigned i = 0; i < c->config.clients; i++)
        if (f->kind == FAULT_CUT_ALL_LINKS || i == f->client)
            fn(c->sim, c->bricks[f->brick].host, c->clients[i].host);
}

static void each_brick_link(struct faults *f, void (*fn)(struct sim *sim, const char *a, const char *b))
{
    struct cluster *c = f->cluster;
    for (unsigned i = 0; i < c->config.bricks; i++)
        if (i != f->brick)
            fn(c->sim, c->bricks[f->brick].host, c->bricks[i].host);
}

static unsigned kinds(const struct faults *f)
{
    if (!f->kills_clients)
        return FAULT_KILL_CLIENT;
    if (!f->has_healers)
        return FAULT_KILL_HEALER;
    return f->replaces_disks ? FAULT_COUNT : FAULT_REPLACE_DISK;
}

static void replace_disk(struct node *brick)
{
    bool is_whole = cluster_has_converged(brick->cluster, NULL);
    node_kill(brick);
    if (is_whole)
        node_replace_disk(brick);
}

static void begin(void *arg)
{
    struct faults *f = arg;
    struct cluster *c = f->cluster;
    if (f->is_stopping) {
        f->is_quiet = true;
        return;
    }
    f->kind = f->only_power_cuts ? FAULT_POWER_CUT : (unsigned)dice(f, kinds(f));
    f->brick = f->victim >= 0 ? (unsigned)f->victim
                              : (unsigned)dice(f, f->spares_witness ? c->config.bricks : cluster_brick_nodes(c));
    if (f->kind == FAULT_KILL_HEALER || f->kind == FAULT_REPLACE_DISK)
        f->brick %= c->config.bricks; /* the witness has none of its own, and is not replaced here */
    f->client = (unsigned)dice(f, c->config.clients);
    f->count[f->kind]++;
    struct node *brick = &c->bricks[f->brick];
    say(f, "begin");
    switch (f->kind) {
    case FAULT_KILL_BRICK: node_kill(brick); break;
    case FAULT_POWER_CUT:
        node_power_cut(brick);
        if (f->cuts_lose && brick->kind == NODE_BRICK)
            model_power_cut(&f->workload->model);
        break;
    case FAULT_CUT_LINK:
    case FAULT_CUT_ALL_LINKS: each_link(f, sim_cut); break;
    case FAULT_HOLD_LINK: each_link(f, sim_hold); break;
    case FAULT_RESET: each_link(f, sim_reset_connections); break;
    case FAULT_EIO:
        disk_set_faults(brick->disk.disk, 1 + (unsigned)dice(f, 30), false);
        c->times_may_differ = true;
        break;
    case FAULT_FULL: disk_set_faults(brick->disk.disk, 0, true); break;
    case FAULT_KILL_HEALER: node_kill(&c->healers[f->brick]); break;
    case FAULT_CUT_BRICKS: each_brick_link(f, sim_cut); break;
    case FAULT_REPLACE_DISK: replace_disk(brick); break;
    default: node_kill(&c->clients[f->client]); break;
    }
    later(f, SECOND / 100, 20 * SECOND, end);
}

static void start_healer(struct faults *f)
{
    struct node *healer = &f->cluster->healers[f->brick];
    if (f->has_healers && f->brick < f->cluster->config.bricks && !healer->env)
        node_start(healer);
}

static void end(void *arg)
{
    struct faults *f = arg;
    struct cluster *c = f->cluster;
    say(f, "end");
    switch (f->kind) {
    case FAULT_KILL_BRICK:
    case FAULT_POWER_CUT:
    case FAULT_REPLACE_DISK:
        node_start(&c->bricks[f->brick]);
        start_healer(f);
        break;
    case FAULT_KILL_HEALER: start_healer(f); break;
    case FAULT_CUT_BRICKS: each_brick_link(f, sim_heal); break;
    case FAULT_CUT_LINK:
    case FAULT_CUT_ALL_LINKS:
    case FAULT_HOLD_LINK: each_link(f, sim_heal); break;
    case FAULT_EIO:
    case FAULT_FULL: disk_set_faults(c->bricks[f->brick].disk.disk, 0, false); break;
    case FAULT_KILL_CLIENT:
        node_start(&c->clients[f->client]);
        workload_client_restarted(f->workload, f->client);
        break;
    default: break;
    }
    later(f, SECOND / 100, f->only_power_cuts ? 5 * SECOND : 10 * SECOND, begin);
}

void faults_start(struct faults *f)
{
    later(f, SECOND / 100, 2 * SECOND, begin);
}

void faults_stop(struct faults *f)
{
    f->is_stopping = true;
}

bool faults_cut_power(const struct faults *f)
{
    return f->count[FAULT_POWER_CUT] > 0;
}
