/* Volumes made by GlusterFS 10.3's own daemon: its store, and the volume files it made for them. */
#pragma once

#include "unit/unit.h"
#include "core/mem.h"
#include "mgmt/store.h"
#include <stdlib.h>

/* "golden/<volume>/<file>". Freed by the caller. */
static inline char *golden_path(const char *volume, const char *file)
{
    const char *top = getenv("MORTAR_GOLDEN");

    if (!top)
        fail_msg("MORTAR_GOLDEN is not set: run this through meson test");
    return mem_printf("%s/%s%s%s", top, volume, *file ? "/" : "", file);
}

static inline struct volume *golden_volume(const char *name)
{
    SCOPED_FREE char *folder = golden_path(name, "");
    struct volume *v = NULL;
    struct error err;

    if (store_read_volume(folder, name, &v, &err) < 0)
        fail_msg("%s", err.text);
    return v;
}
