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

static void option_done(struct volume_option *o)
{
    mem_free(o->key);
    mem_free(o->value);
}

void volume_free(struct volume *v)
{
    if (!v)
        return;
    for (unsigned i = 0; i < v->brick_count; i++)
        brick_done(&v->bricks[i]);
    for (unsigned i = 0; i < v->option_count; i++)
        option_done(&v->options[i]);
    mem_free(v->bricks);
    mem_free(v->options);
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

static struct volume_option *find_option(const struct volume *v, const char *key)
{
    for (unsigned i = 0; i < v->option_count; i++) {
        if (strcmp(v->options[i].key, key) == 0)
            return &v->options[i];
    }
    return NULL;
}

const char *volume_option_get(const struct volume *v, const char *key)
{
    const struct volume_option *o = find_option(v, key);

    return o ? o->value : NULL;
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

bool volume_option_reset(struct volume *v, const char *key)
{
    struct volume_option *o = find_option(v, key);

    if (!o)
        return false;
    option_done(o);
    v->option_count--;
    memmove(o, o + 1, (size_t)(v->options + v->option_count - o) * sizeof(*o));
    return true;
}

int volume_option_set(struct volume *v, const char *key, const char *value)
{
    struct volume_option fresh = { .key = mem_strdup(key), .value = mem_strdup(value) };
    struct volume_option *grown = mem_realloc(v->options, (v->option_count + 1) * sizeof(*grown));

    if (grown)
        v->options = grown;
    if (!fresh.key || !fresh.value || !grown) {
        option_done(&fresh);
        return -ENOMEM;
    }
    (void)volume_option_reset(v, key); /* whether it was set before makes no difference */
    memmove(&v->options[1], &v->options[0], v->option_count * sizeof(*v->options));
    v->options[0] = fresh;
    v->option_count++;
    return 0;
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
