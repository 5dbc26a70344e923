#include "mgmt/settings.h"
#include "core/mem.h"
#include <errno.h>

static void setting_done(struct setting *s)
{
    mem_free(s->key);
    mem_free(s->value);
}

void settings_clear(struct settings *s)
{
    for (unsigned i = 0; i < s->count; i++)
        setting_done(&s->list[i]);
    mem_free(s->list);
    *s = (struct settings) { 0 };
}

static struct setting *find(const struct settings *s, const char *key)
{
    for (unsigned i = 0; i < s->count; i++) {
        if (strcmp(s->list[i].key, key) == 0)
            return &s->list[i];
    }
    return NULL;
}

const char *settings_get(const struct settings *s, const char *key)
{
    const struct setting *found = find(s, key);

    return found ? found->value : NULL;
}

bool settings_reset(struct settings *s, const char *key)
{
    struct setting *found = find(s, key);

    if (!found)
        return false;
    setting_done(found);
    s->count--;
    memmove(found, found + 1, (size_t)(s->list + s->count - found) * sizeof(*found));
    return true;
}

static int insert(struct settings *s, const char *key, const char *value, bool is_first)
{
    struct setting fresh = { .key = mem_strdup(key), .value = mem_strdup(value) };
    struct setting *grown = mem_realloc(s->list, (s->count + 1) * sizeof(*grown));

    if (grown)
        s->list = grown;
    if (!fresh.key || !fresh.value || !grown) {
        setting_done(&fresh);
        return -ENOMEM;
    }
    (void)settings_reset(s, key); /* whether it was set before makes no difference */
    if (is_first)
        memmove(&s->list[1], &s->list[0], s->count * sizeof(*s->list));
    s->list[is_first ? 0 : s->count] = fresh;
    s->count++;
    return 0;
}

int settings_set(struct settings *s, const char *key, const char *value)
{
    return insert(s, key, value, true);
}

int settings_append(struct settings *s, const char *key, const char *value)
{
    return insert(s, key, value, false);
}
