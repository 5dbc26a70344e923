/* mgmt/settings.h - a list of keys and values, the one set last first, as `volume info` shows them. */
#pragma once

#include "core/base.h"

struct setting {
    char *key, *value;
};

struct settings {
    struct setting *list;
    unsigned count;
};

void settings_clear(struct settings *s);
/* NULL: not set. Borrowed until the next change. */
const char *settings_get(const struct settings *s, const char *key);
/* Sets it, as the first of the list; or as the last one, where a list is read that is in order already. 0 or -ENOMEM,
 * then nothing has changed. */
int settings_set(struct settings *s, const char *key, const char *value);
int settings_append(struct settings *s, const char *key, const char *value);
/* True if it was set. */
bool settings_reset(struct settings *s, const char *key);
