#include "sim/damage.h"
#include "core/mem.h"
#include <stdio.h>

#define DAMAGES_MAX 3u

enum damage { DAMAGE_NAME, DAMAGE_XATTRS, DAMAGE_MODE, DAMAGE_CONTENTS, DAMAGE_COUNT };

struct pick {
    struct gfid *gfids; /* of all inodes but the root and the index */
    size_t count, room;
};

static void collect(struct disk_node *n, void *arg)
{
    struct pick *p = arg;
    if (disk_is_index(disk_gfid(n)) || gfid_is_root(disk_gfid(n)))
        return;
    if (p->count == p->room) {
        p->room = p->room * 2 + 64;
        p->gfids = mem_realloc(p->gfids, p->room * sizeof(*p->gfids));
        assert(p->gfids);
    }
    p->gfids[p->count++] = *disk_gfid(n);
}

/* Of a directory, one of its names goes; of anything else nothing does. */
static void lose_name(struct disk *d, const struct disk_node *dir, uint64_t number)
{
    const char *name;
    struct gfid gfid, parent = *disk_gfid(dir);
    char text[256];
    size_t count = disk_entry_count(dir);
    uint64_t cookie = 0;
    if (count == 0)
        return;
    for (uint64_t i = 0; i <= number % count; i++)
        if (!disk_next_entry(dir, cookie, &name, &gfid, &cookie))
            return;
    snprintf(text, sizeof(text), "%s", name);
    if (disk_unlink(d, &parent, text, false) == -EISDIR)
        (void)disk_remove_tree(d, &parent, text);
}

static void lose_xattrs(struct disk *d, const struct gfid *gfid)
{
    const char *key;
    const struct dict_value *v;
    for (;;) {
        size_t at = 0;
        const struct disk_node *n = disk_find(d, gfid);
        do {
            if (!dict_next(disk_xattrs(n), &at, &key, &v))
                return;
        } while (!strncmp(key, "trusted.afr.", 12));
        char text[256];
        snprintf(text, sizeof(text), "%s", key);
        (void)disk_remove_xattr(d, gfid, text);
    }
}

static void damage_one(struct disk *d, const struct gfid *gfid, enum damage what, uint64_t number)
{
    const struct disk_node *n = disk_find(d, gfid);
    struct iatt a;
    disk_stat(n, &a);
    switch (what) {
    case DAMAGE_NAME:
        if (S_ISDIR(a.mode))
            lose_name(d, n, number);
        break;
    case DAMAGE_XATTRS: lose_xattrs(d, gfid); break;
    case DAMAGE_MODE:
        a.mode = S_ISLNK(a.mode) ? a.mode : a.mode ^ 0111;
        a.gid = 4242;
        (void)disk_set_attr(d, gfid, &a, ATTR_MODE | ATTR_GID);
        break;
    default:
        if (S_ISREG(a.mode))
            (void)disk_truncate(d, gfid, a.size / 2);
        break;
    }
}

void disk_damage(struct disk *d, disk_random_fn random, void *arg)
{
    uint64_t times = 1 + random(arg) % DAMAGES_MAX;
    for (uint64_t i = 0; i < times; i++) {
        struct pick p = { 0 };
        disk_each(d, collect, &p);
        if (p.count)
            damage_one(d, &p.gfids[random(arg) % p.count], (enum damage)(random(arg) % DAMAGE_COUNT), random(arg));
        mem_free(p.gfids);
    }
    disk_sync_all(d);
}
