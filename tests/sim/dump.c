/* sim/dump.c - the disks of a cluster as text. */
#include "sim/cluster.h"
#include <stdio.h>

static void dump_counters(const struct disk_node *n)
{
    const char *key;
    const struct dict_value *v;
    for (size_t at = 0; dict_next(disk_xattrs(n), &at, &key, &v);) {
        bool is_counter = !strncmp(key, "trusted.afr.", 12) && v->size_bytes == 12;
        if (!is_counter)
            fprintf(stderr, " %s(%zu)", key, v->size_bytes);
        else if (get_be32(v->bytes) | get_be32(v->bytes + 4) | get_be32(v->bytes + 8))
            fprintf(stderr, " %s=%d/%d/%d", key + 12, (int)get_be32(v->bytes), (int)get_be32(v->bytes + 4),
                    (int)get_be32(v->bytes + 8));
    }
}

static void dump_node(struct disk_node *n, void *arg)
{
    struct disk *d = arg;
    struct iatt a;
    const char *name;
    struct gfid gfid;
    disk_stat(n, &a);
    if (disk_is_index(disk_gfid(n)) && !S_ISDIR(a.mode))
        return;
    fprintf(stderr, "#   %s %o %u:%u links %u size %llu", GFID_TEXT(disk_gfid(n)), a.mode, a.uid, a.gid, a.nlink,
            (unsigned long long)a.size);
    dump_counters(n);
    fprintf(stderr, "\n");
    for (uint64_t cookie = 0; S_ISDIR(a.mode) && disk_next_entry(n, cookie, &name, &gfid, &cookie);)
        fprintf(stderr, "#     %s -> %s%s\n", name, GFID_TEXT(&gfid), disk_find(d, &gfid) ? "" : " (missing)");
}

void cluster_dump(struct cluster *c)
{
    for (unsigned i = 0; i < c->config.bricks; i++) {
        fprintf(stderr, "# %.6f s: disk of brick %u:\n", (double)sim_now_ns(c->sim) / 1e9, i);
        disk_each(c->bricks[i].disk.disk, dump_node, c->bricks[i].disk.disk);
    }
}
