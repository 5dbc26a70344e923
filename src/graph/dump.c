/* Statedump: what a running graph knows about itself, in the layout that GlusterFS's tools read. */
#include "graph/graph.h"
#include "core/mem.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct dump {
    FILE *out;
};

void dump_section(struct dump *out, const char *fmt, ...)
{
    va_list args;

    fputs("\n[", out->out);
    va_start(args, fmt);
    vfprintf(out->out, fmt, args);
    va_end(args);
    fputs("]\n", out->out);
}

void dump_printf(struct dump *out, const char *key, const char *fmt, ...)
{
    va_list args;

    fprintf(out->out, "%s=", key);
    va_start(args, fmt);
    vfprintf(out->out, fmt, args);
    va_end(args);
    fputc('\n', out->out);
}

static void dump_time(struct dump *d, struct env *env, const char *label)
{
    struct timespec now;
    struct tm tm;
    char text[32];

    env_wall_time(env, &now);
    gmtime_r(&now.tv_sec, &tm);
    strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
    fprintf(d->out, "%s: %s.%06ld +0000\n", label, text, now.tv_nsec / 1000);
}

static void dump_memory(struct dump *d)
{
    struct mem_stats stats;

    mem_get_stats(&stats);
    dump_section(d, "mallinfo");
    dump_printf(d, "mallinfo_uordblks", "%llu", (unsigned long long)stats.live_bytes);
    dump_section(d, "global.glusterfs - Memory usage");
    dump_printf(d, "num_types", "1");
    dump_printf(d, "size", "%llu", (unsigned long long)stats.live_bytes);
    dump_printf(d, "num_allocs", "%llu", (unsigned long long)stats.live_blocks);
    dump_printf(d, "total_allocs", "%llu", (unsigned long long)stats.total_blocks);
}

static void count_fd(struct fd *fd, void *arg)
{
    (*(size_t *)arg)++;
}

static void dump_graph(struct dump *d, struct graph *graph)
{
    size_t fds = 0, clients = 0;
    struct client *client;

    fd_each(graph, count_fd, &fds);
    list_for_each (client, &graph->clients, of_graph)
        clients++;
    dump_section(d, "global.graph");
    dump_printf(d, "id", "%u", graph->id);
    dump_printf(d, "volfile-id", "%s", graph->volfile_id ? graph->volfile_id : "");
    dump_printf(d, "volume-id", "%s", graph->volume_id ? graph->volume_id : "");
    dump_printf(d, "root", "%s", graph->root ? graph->root->name : "");
    dump_printf(d, "inodes", "%zu", inode_table_count(graph));
    dump_printf(d, "fds", "%zu", fds);
    dump_printf(d, "clients", "%zu", clients);
}

static void dump_options(struct dump *d, const struct translator *t)
{
    char key[128], text[256];

    for (const struct option *o = t->class->options; o && o->type != OPTION_END; o++) {
        if (o->type == OPTION_ANY || o->type == OPTION_IGNORED)
            continue;
        if (strstr(o->name, "password") || strstr(o->name, "seckey"))
            continue;
        snprintf(key, sizeof(key), "option.%s", o->name);
        dump_printf(d, key, "%s", option_format(o, t->state, text, sizeof(text)));
    }
}

static void dump_counts(struct dump *d, const struct translator *t)
{
    char key[64];

    dump_printf(d, "up", "%d", t->is_up);
    dump_printf(d, "ops-in-flight", "%llu", (unsigned long long)t->ops_in_flight);
    for (unsigned op = 0; op < OP_COUNT; op++) {
        if (!t->stats[op].calls)
            continue;
        snprintf(key, sizeof(key), "op.%s", op_name(op));
        dump_printf(d, key, "%llu,%llu", (unsigned long long)t->stats[op].calls,
                    (unsigned long long)t->stats[op].failures);
    }
}

static void dump_translator(struct dump *d, struct translator *t)
{
    dump_section(d, "%s.%s", t->class->type, t->name);
    if (t->class->dump)
        t->class->dump(t, d);
    dump_section(d, "xlator.%s.%s.priv", t->class->type, t->name);
    dump_counts(d, t);
    dump_options(d, t);
}

char *graph_statedump(struct graph *graph)
{
    char *text = NULL;
    size_t text_bytes = 0;
    struct dump d = { .out = open_memstream(&text, &text_bytes) };

    if (!d.out)
        return NULL;
    dump_time(&d, graph->env, "DUMP-START-TIME");
    dump_memory(&d);
    dump_graph(&d, graph);
    for (unsigned i = graph->count; i-- > 0;)
        dump_translator(&d, graph->all[i]);
    fputc('\n', d.out);
    dump_time(&d, graph->env, "DUMP-END-TIME");
    char *copy = fclose(d.out) == 0 ? mem_strndup(text, text_bytes) : NULL;
    free(text);
    return copy;
}
