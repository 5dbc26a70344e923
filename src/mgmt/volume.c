/* Volumes as plain data. */
#include "mgmt/volume.h"
#include "core/mem.h"
#include "core/option.h"
#include "mgmt/keys.h"
#include <errno.h>

struct volume *volume_new(const char *name)
{
    struct volume *v = NEW(struct volume);

    if (!v)
        return NULL;
    v->name = mem_strdup(name);
    if (!v->name) {
        mem_free(v);
        return NULL;
    }
    v->replica_count = 1;
    v->version = 1;
    return v;
}

static void brick_done(struct brick *b)
{
    mem_free(b->host);
    mem_free(b->path);
    mem_free(b->id);
    mem_free(b->real_path);
    mem_free(b->mount_dir);
}

void volume_free(struct volume *v)
{
    if (!v)
        return;
    for (unsigned i = 0; i < v->brick_count; i++)
        brick_done(&v->bricks[i]);
    mem_free(v->bricks);
    settings_clear(&v->settings);
    mem_free(v->name);
    mem_free(v);
}

struct brick *volume_add_brick(struct volume *v)
{
    struct brick *grown;

    if (v->brick_count >= VOLUME_BRICKS_MAX)
        return NULL;
    grown = mem_realloc(v->bricks, (v->brick_count + 1) * sizeof(*grown));
    if (!grown)
        return NULL;
    v->bricks = grown;
    memset(&grown[v->brick_count], 0, sizeof(*grown));
    return &grown[v->brick_count++];
}

void volume_drop_brick(struct volume *v, unsigned brick)
{
    brick_done(&v->bricks[brick]);
    v->brick_count--;
    memmove(&v->bricks[brick], &v->bricks[brick + 1], (v->brick_count - brick) * sizeof(*v->bricks));
}

void volume_move_brick(struct volume *v, unsigned from, unsigned to)
{
    struct brick moved = v->bricks[from];

    if (from < to)
        memmove(&v->bricks[from], &v->bricks[from + 1], (to - from) * sizeof(moved));
    else
        memmove(&v->bricks[to + 1], &v->bricks[to], (from - to) * sizeof(moved));
    v->bricks[to] = moved;
}

int volume_find_brick(const struct volume *v, const char *host, const char *path)
{
    for (unsigned i = 0; i < v->brick_count; i++) {
        if (strcmp(v->bricks[i].host, host) == 0 && strcmp(v->bricks[i].path, path) == 0)
            return (int)i;
    }
    return -1;
}

/* A copy of a string that may be missing. False: no memory. */
static bool copy_text(const char *from, char **ret)
{
    *ret = from ? mem_strdup(from) : NULL;
    return !from || *ret;
}

static bool brick_copy(const struct brick *from, struct brick *to)
{
    *to = *from;
    to->host = to->path = to->id = to->real_path = to->mount_dir = NULL;
    return copy_text(from->host, &to->host) && copy_text(from->path, &to->path) && copy_text(from->id, &to->id) &&
           copy_text(from->real_path, &to->real_path) && copy_text(from->mount_dir, &to->mount_dir);
}

struct volume *volume_copy(const struct volume *v)
{
    SCOPED(volume_free) struct volume *copy = volume_new(v->name);
    char *name;

    if (!copy)
        return NULL;
    name = copy->name;
    *copy = *v;
    copy->name = name;
    copy->bricks = NULL;
    copy->brick_count = 0;
    copy->settings = (struct settings) { 0 };
    for (unsigned i = 0; i < v->brick_count; i++) {
        struct brick *b = volume_add_brick(copy);

        if (!b || !brick_copy(&v->bricks[i], b))
            return NULL;
    }
    for (unsigned i = 0; i < v->settings.count; i++) {
        if (settings_append(&copy->settings, v->settings.list[i].key, v->settings.list[i].value) < 0)
            return NULL;
    }
    return take(copy);
}

unsigned volume_group_size(const struct volume *v)
{
    if (v->kind == VOLUME_REPLICATE)
        return v->replica_count;
    return v->kind == VOLUME_DISPERSE ? v->disperse_count : 1;
}

bool volume_is_arbiter(const struct volume *v, unsigned brick)
{
    unsigned size = volume_group_size(v);

    return v->arbiter_count > 0 && brick % size >= size - v->arbiter_count;
}

const char *volume_option_get(const struct volume *v, const char *key)
{
    return settings_get(&v->settings, key);
}

const char *volume_option_value(const struct volume *v, const char *key)
{
    const char *value = volume_option_get(v, key);
    const struct volume_key *known;

    if (value)
        return value;
    /* Mirrors get "off" written into their options when they are made; what was made otherwise has it on. */
    if (strcmp(key, "performance.client-io-threads") == 0)
        return v->kind == VOLUME_REPLICATE ? "off" : "on";
    known = volume_key_find(key);
    return known && known->def ? known->def : "";
}

bool volume_option_is_on(const struct volume *v, const char *key)
{
    bool is_on = false;

    return parse_bool(volume_option_value(v, key), &is_on) == 0 && is_on;
}

char *path_with_dashes(const char *path, bool keep_first)
{
    char *name = mem_strdup(!keep_first && *path == '/' ? path + 1 : path);

    for (char *c = name; c && *c; c++) {
        if (*c == '/')
            *c = '-';
    }
    return name;
}
