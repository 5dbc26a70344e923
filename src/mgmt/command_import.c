/* Takes over volumes of a GlusterFS installation, in place: their bricks, ids, options and passwords stay as they are. */
#include "core/mem.h"
#include "mgmt/change.h"
#include "mgmt/command_internal.h"
#include "mgmt/store.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Names of the volumes in the store that are not ours already. New reference; NULL with a sentence. */
static json_t *list_store(const struct mortard *d, const char *folder, struct error *err)
{
    SCOPED_FREE char *path = mem_printf("%s/vols", folder);
    DIR *dir = path ? opendir(path) : NULL;
    json_t *names = json_array();
    struct dirent *e;

    if (!dir) {
        json_decref(names);
        (void)error_set(err, -errno, "%s: %s", path ? path : folder, strerror(errno));
        return NULL;
    }
    while (names && (e = readdir(dir))) {
        SCOPED_FREE char *info = mem_printf("%s/%s/info", path, e->d_name);

        if (*e->d_name != '.' && info && access(info, R_OK) == 0 && !cluster_find_volume(d->cluster, e->d_name) &&
            json_array_append_new(names, json_string(e->d_name)) < 0) {
            json_decref(names);
            names = NULL;
        }
    }
    (void)closedir(dir); /* only read */
    return names;
}

/* Options that would have no effect here, or are refused: told, and kept. */
static int tell_options(const struct mortard *d, const struct volume *v, json_t *notes)
{
    int r = 0;

    for (unsigned i = 0; i < v->settings.count && r == 0; i++) {
        struct error why = { "" };

        if (strcmp(v->settings.list[i].key, "cluster.granular-entry-heal") == 0)
            continue; /* set by a command of its own, and understood */
        if (change_check_setting(d->cluster, v, v->settings.list[i].key, v->settings.list[i].value, &why) == 0)
            continue;
        r = json_array_append_new(notes, json_string(why.text)) < 0 ? -ENOMEM : 0;
    }
    return r;
}

/* Every brick's machine must be one of ours. */
static int check_machines(const struct mortard *d, const struct volume *v, struct error *err)
{
    for (unsigned i = 0; i < v->brick_count; i++) {
        if (!cluster_find_node(d->cluster, &v->bricks[i].node))
            return error_set(
                err, -EINVAL,
                "brick %s:%s is on the machine %s, which is no peer: start mortard there and probe it first",
                v->bricks[i].host, v->bricks[i].path, GFID_TEXT(&v->bricks[i].node));
    }
    return v->kind == VOLUME_DISPERSE ? error_set(err, -EOPNOTSUPP, "dispersed volumes are not supported yet") : 0;
}

static FIBER int import_one(struct mortard *d, const char *folder, const char *name, bool is_dry, json_t *row,
                            struct error *err)
{
    SCOPED_FREE char *path = mem_printf("%s/vols/%s", folder, name);
    SCOPED(volume_free) struct volume *v = NULL;
    json_t *notes = json_array(), *change;
    int r = path && notes ? store_read_volume(path, name, &v, err) : -ENOMEM;

    r = r < 0 ? r : check_machines(d, v, err);
    r = r < 0 ? r : tell_options(d, v, notes);
    if (r == 0 && (json_object_set(row, "notes", notes) < 0 ||
                   json_object_set_new(row, "bricks", json_integer(v->brick_count)) < 0 ||
                   json_object_set_new(row, "started", json_boolean(v->state == VOLUME_STARTED)) < 0))
        r = -ENOMEM;
    json_decref(notes);
    if (r < 0 || is_dry)
        return r;
    change = json_pack("{s:s, s:o}", "op", "volume-import", "volume", volume_to_json(v));
    r = change ? mortard_change(d, change, err) : -ENOMEM;
    json_decref(change);
    return r;
}

/* All are looked at; one that cannot be taken over does not keep the others. */
FIBER int command_import(struct mortard *d, const json_t *request, json_t *answer, struct error *err)
{
    const char *folder = request_text(request, "folder");
    bool is_dry = request_flag(request, "dry_run");
    json_t *names, *rows = json_array();
    struct error *why = NEW(struct error);
    size_t i;
    json_t *name;
    int failed = 0;

    names = list_store(d, folder ? folder : d->options->work_folder, err);
    if (!names || !rows || !why || json_object_set_new(answer, "volumes", rows) < 0) {
        json_decref(names);
        mem_free(why);
        return *err->text ? -ENOENT : -ENOMEM;
    }
    json_array_foreach(names, i, name)
    {
        json_t *row = json_pack("{s:O}", "name", name);

        why->text[0] = '\0';
        if (row &&
            import_one(d, folder ? folder : d->options->work_folder, json_string_value(name), is_dry, row, why) < 0) {
            failed++;
            (void)json_object_set_new(row, "error", json_string(*why->text ? why->text : "no memory"));
        }
        (void)json_array_append_new(rows, row); /* no memory: not told */
    }
    json_decref(names);
    mem_free(why);
    if (!is_dry)
        reconcile_now(d, true);
    return failed ? error_set(err, -EINVAL, "%d of %zu volumes cannot be taken over", failed, json_array_size(rows))
                  : 0;
}
