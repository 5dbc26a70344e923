#include "sim/cluster.h"
#include "core/mem.h"
#include "sim/classes.h"
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

static char *brick_volfile(const struct node *n)
{
    char *text = NULL;
    text_add(&text,
             "volume disk\n type storage/simdisk\n option directory /\nend-volume\n"
             "volume locks\n type features/locks\n subvolumes disk\nend-volume\n"
             "volume brick\n type performance/io-threads\n subvolumes locks\nend-volume\n"
             "volume server\n type protocol/server\n option transport-type tcp\n option listen-port %d\n"
             " option auth.addr.brick.allow *\n subvolumes brick\nend-volume\n",
             CLUSTER_PORT);
    return text;
}

static char *client_volfile(const struct cluster *c)
{
    static const char *const mode[] = { "none", "no-dirty", "serve-stale" };
    char *text = NULL;
    for (unsigned i = 0; i < c->config.bricks; i++) {
        text_add(&text,
                 "volume sim-client-%u\n type protocol/client\n option remote-host brick%u\n option remote-port %d\n"
                 " option remote-subvolume brick\n option ping-timeout 10\nend-volume\n",
                 i, i, CLUSTER_PORT);
        if (c->config.sabotage)
            text_add(&text,
                     "volume saboteur-%u\n type sim/saboteur\n option mode %s\n subvolumes sim-client-%u\n"
                     "end-volume\n",
                     i, mode[c->config.sabotage], i);
    }
    text_add(&text,
             "volume sim-replicate-0\n type cluster/replicate\n option quorum-type %s\n option afr-pending-xattr ",
             c->config.quorum);
    for (unsigned i = 0; i < c->config.bricks; i++)
        text_add(&text, "%ssim-client-%u", i ? "," : "", i);
    text_add(&text, "\n subvolumes");
    for (unsigned i = 0; i < c->config.bricks; i++)
        text_add(&text, c->config.sabotage ? " saboteur-%u" : " sim-client-%u", i);
    text_add(&text, "\nend-volume\n");
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
    snprintf(process, sizeof(process), "%s.%u", n->host, ++n->starts);
    n->env = sim_process_new(n->cluster->sim, n->host, process);
    SCOPED_FREE char *text = n->is_brick ? brick_volfile(n) : client_volfile(n->cluster);
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
    if (n->is_brick) {
        disk_drop_orphans(n->disk.disk);
        n->graph->edge = &n->disk;
    }
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
    if (n->is_brick) /* the corpse must not touch the disk any more */
        n->graph->edge = NULL;
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
    node_kill(n);
    disk_power_cut(n->disk.disk, disk_random, n->cluster->sim);
}

static void node_init(struct cluster *c, struct node *n, bool is_brick, unsigned index)
{
    n->cluster = c;
    n->is_brick = is_brick;
    n->index = index;
    snprintf(n->host, sizeof(n->host), "%s%u", is_brick ? "brick" : "client", index);
    if (is_brick)
        n->disk.disk = disk_new();
}

/* Kernels write back on their own: a power cut loses seconds, not minutes. */
#define WRITE_BACK_NS 5000000000ull

static void write_back(void *arg)
{
    struct cluster *c = arg;
    for (unsigned i = 0; i < c->config.bricks; i++)
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
        node_init(c, &c->bricks[i], true, i);
    for (unsigned i = 0; i < config->clients; i++)
        node_init(c, &c->clients[i], false, i);
    (void)sim_at(c->sim, WRITE_BACK_NS, write_back, c);
    *ret_cluster = c;
    return 0;
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
    for (unsigned i = 0; i < c->config.bricks; i++)
        node_kill(&c->bricks[i]);
    bool never = false;
    (void)cluster_run_until(c, &never, 60ull * 1000000000);
    for (unsigned i = 0; i < c->config.bricks; i++)
        disk_free(c->bricks[i].disk.disk);
    sim_free(c->sim);
    if (c->config.verbose)
        log_close(c->log);
    mem_free(c);
}
