/* Commands that change a volume. */
#include "core/mem.h"
#include "mgmt/change.h"
#include "mgmt/command_internal.h"
#include "mgmt/groups.h"
#include "mgmt/nodes.h"
#include <errno.h>
#include <stdio.h>

#define GROUP_MAX_BYTES 65536

static int put_id(json_t *answer, const struct volume *v)
{
    return json_object_set_new(answer, "name", json_string(v->name)) == 0 &&
                   json_object_set_new(answer, "id", json_string(GFID_TEXT(&v->id))) == 0
               ? 0
               : -ENOMEM;
}

/* ---- create, delete ---- */

static int check_counts(size_t bricks, uint32_t replica, uint32_t arbiter, struct error *err)
{
    if (bricks == 0)
        return error_set(err, -EINVAL, "a volume needs a brick");
    if (arbiter > 0 && (arbiter != 1 || replica != 3))
        return error_set(
            err, -EINVAL,
            "For arbiter configuration, replica count must be 2 and arbiter count must be 1. The 3rd brick of the "
            "replica will be the arbiter");
    if (bricks % replica != 0)
        return error_set(err, -EINVAL, "number of bricks is not a multiple of replica count");
    return 0;
}

static json_t *new_volume(struct mortard *d, const char *name, uint32_t replica, uint32_t arbiter,
                          const struct gfid *id, const struct new_bricks *bricks)
{
    struct gfid user = gfid_random(d->env), password = gfid_random(d->env);

    return json_pack("{s:s, s:{s:s, s:i, s:i, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:[], s:O}}", "op",
                     "volume-create", "volume", "name", name, "kind",
                     replica > 1 ? VOLUME_REPLICATE : VOLUME_DISTRIBUTE, "state", VOLUME_CREATED, "id", GFID_TEXT(id),
                     "username", GFID_TEXT(&user), "password", GFID_TEXT(&password), "version", 1, "replica",
                     (int)replica, "arbiter", (int)arbiter, "disperse", 0, "redundancy", 0, "op_version", 1,
                     "client_op_version", 1, "settings", "bricks", bricks->json);
}

FIBER int command_volume_create(struct mortard *d, const json_t *request, json_t *answer, struct error *err)
{
    const json_t *bricks = json_object_get(request, "bricks");
    const char *name = request_text(request, "name");
    uint32_t replica = request_number(request, "replica", 1), arbiter = request_number(request, "arbiter", 0);
    struct gfid id = gfid_random(d->env);
    struct new_bricks fresh = { 0 };
    int r = name ? check_counts(json_array_size(bricks), MAX(replica, 1u), arbiter, err) : -EINVAL;

    if (r < 0)
        return r;
    /* The folders are touched only for a name that is free; the change checks it again. */
    if (cluster_find_volume(d->cluster, name))
        return error_set(err, -EEXIST, "Volume %s already exists", name);
    r = new_bricks_prepare(d, bricks, &id, MAX(replica, 1u), request_flag(request, "force"), &fresh, err);
    if (r < 0)
        return r;
    r = command_propose(d, new_volume(d, name, MAX(replica, 1u), arbiter, &id, &fresh), err);
    if (r < 0)
        new_bricks_undo(d, &fresh);
    new_bricks_done(&fresh);
    if (r == 0 && cluster_find_volume(d->cluster, name))
        r = put_id(answer, cluster_find_volume(d->cluster, name));
    return r;
}

FIBER int command_volume_delete(struct mortard *d, const json_t *request, json_t *answer, struct error *err)
{
    struct volume *v;
    int r = request_volume(d, request, &v, err);

    r = r < 0 ? r : put_id(answer, v);
    r = r < 0 ? r : command_propose(d, json_pack("{s:s, s:s}", "op", "volume-delete", "name", v->name), err);
    if (r == 0)
        reconcile_now(d, false);
    return r;
}

/* ---- start, stop ---- */

/* Asks the machines that have bricks of the volume, one after the other. `question` is given. Machines
 * that cannot be reached are passed over unless `needs_all`. 0, or the first refusal with a sentence. */
static FIBER int ask_machines(struct mortard *d, const char *volume, json_t *question, bool needs_all,
                              struct error *err)
{
    SCOPED_FREE struct gfid *asked = mem_array(CLUSTER_NODES_MAX, sizeof(*asked));
    unsigned count = 0;
    struct volume *v = asked ? cluster_find_volume(d->cluster, volume) : NULL;
    int r = question && asked ? 0 : -ENOMEM;

    for (unsigned i = 0; v && i < v->brick_count && count < CLUSTER_NODES_MAX; i++) {
        unsigned k = 0;

        while (k < count && !gfid_equal(&asked[k], &v->bricks[i].node))
            k++;
        if (k == count)
            asked[count++] = v->bricks[i].node;
    }
    for (unsigned i = 0; i < count && r == 0; i++) {
        json_t *answer = NULL;

        if (!needs_all && !node_is_connected(d, &asked[i]))
            continue;
        r = node_ask(d, &asked[i], json_incref(question), &answer, err);
        json_decref(answer);
        if (r < 0 && *err->text)
            (void)error_prefix(err, r, "Commit failed on %s", node_name(d, &asked[i]));
    }
    json_decref(question);
    return r;
}

static json_t *settle_question(struct mortard *d, const char *volume)
{
    return json_pack("{s:s, s:s, s:I}", "ask", "settle", "name", volume, "index",
                     (json_int_t)consensus_applied(d->consensus));
}

FIBER int command_volume_start(struct mortard *d, const json_t *request, json_t *answer, struct error *err)
{
    bool is_forced = request_flag(request, "force");
    const char *name = request_text(request, "name");
    struct volume *v;
    int r = request_volume(d, request, &v, err);

    if (r == 0 && v->state == VOLUME_STARTED && !is_forced)
        r = error_set(err, -EALREADY, "Volume %s already started", v->name);
    r = r < 0 ? r : put_id(answer, v);
    r = r < 0 ? r
              : ask_machines(d, name,
                             json_pack("{s:s, s:s, s:b}", "ask", "start-check", "name", name, "force", is_forced),
                             false, err);
    if (r < 0) {
        char *told = strstr(err->text, ": "); /* what is checked before is said without the machine */

        if (told && strncmp(err->text, "Commit failed on ", 17) == 0)
            memmove(err->text, told + 2, strlen(told + 2) + 1);
        return r;
    }
    r = command_propose(d, json_pack("{s:s, s:s, s:b}", "op", "volume-start", "name", name, "force", is_forced), err);
    if (r < 0)
        return r;
    r = ask_machines(d, name, settle_question(d, name), false, err);
    return is_forced ? 0 : r;
}

FIBER int command_volume_stop(struct mortard *d, const json_t *request, json_t *answer, struct error *err)
{
    struct volume *v;
    int r = request_volume(d, request, &v, err);

    r = r < 0 ? r : put_id(answer, v);
    r = r < 0 ? r : command_propose(d, json_pack("{s:s, s:s}", "op", "volume-stop", "name", v->name), err);
    return r < 0 ? r
                 : ask_machines(d, request_text(request, "name"), settle_question(d, request_text(request, "name")),
                                false, err);
}

/* ---- options ---- */

/* Lines key=value as pairs. `text` is changed. */
static json_t *pairs_of(char *text)
{
    json_t *pairs = json_array();
    char *rest = text, *line;

    while (pairs && (line = strsep(&rest, "\n"))) {
        char *equals = strchr(line, '=');

        if (*line == '#' || !equals)
            continue;
        *equals = '\0';
        if (json_array_append_new(pairs, json_pack("[ss]", line, equals + 1)) < 0) {
            json_decref(pairs);
            return NULL;
        }
    }
    return pairs;
}

/* The options of a group: a file of the administrator's, else one that comes with us. */
static json_t *group_pairs(struct mortard *d, const char *name, struct error *err)
{
    SCOPED_FREE char *rest = mem_printf("groups/%s", name);
    SCOPED_FREE char *path = rest ? work_path(d, rest) : NULL;
    SCOPED_FREE char *text = NULL;
    FILE *f;

    if (!path || strchr(name, '/'))
        return NULL;
    f = fopen(path, "re");
    if (f) {
        text = mem_zalloc(GROUP_MAX_BYTES);
        if (text)
            (void)fread(text, 1, GROUP_MAX_BYTES - 1, f); /* what is read counts */
        (void)fclose(f);                                  /* only read */
    } else if (group_text(name)) {
        text = mem_strdup(group_text(name));
    } else {
        (void)error_set(err, -ENOENT, "Unable to open file '%s'. Error: No such file or directory", path);
        return NULL;
    }
    return text ? pairs_of(text) : NULL;
}

FIBER int command_volume_set(struct mortard *d, const json_t *request, json_t *answer, struct error *err)
{
    const char *name = request_text(request, "name"), *group = request_text(request, "group");
    json_t *pairs = group ? group_pairs(d, group, err) : json_incref(json_object_get(request, "pairs"));
    int r = -EINVAL;

    (void)answer;
    if (name && json_array_size(pairs) > 0)
        r = command_propose(d, json_pack("{s:s, s:s, s:O}", "op", "volume-set", "name", name, "pairs", pairs), err);
    else if (!*err->text)
        r = error_set(err, r, "there is nothing to set");
    json_decref(pairs);
    if (r == 0)
        reconcile_now(d, false);
    return r;
}

FIBER int command_volume_reset(struct mortard *d, const json_t *request, json_t *answer, struct error *err)
{
    const char *name = request_text(request, "name"), *key = request_text(request, "key");
    json_t *change = json_pack("{s:s, s:s, s:b}", "op", "volume-reset", "name", name ? name : "", "force",
                               request_flag(request, "force"));
    int r;

    (void)answer;
    if (change && key && strcmp(key, "all") != 0 && json_object_set_new(change, "key", json_string(key)) < 0) {
        json_decref(change);
        return -ENOMEM;
    }
    r = command_propose(d, change, err);
    if (r == 0)
        reconcile_now(d, false);
    return r;
}

/* ---- bricks ---- */

/* Starts what has to run, and has bricks filled that are to hold what others have. `bricks` NULL: none of them. */
static FIBER int fill_new_bricks(struct mortard *d, const json_t *request, const json_t *bricks)
{
    struct volume *v;

    const char *name = request_text(request, "name");

    (void)ask_machines(d, name, settle_question(d, name), false,
                       &(struct error) { "" }); /* status tells what does not run */
    if (bricks && request_volume(d, request, &v, NULL) == 0 && v->state == VOLUME_STARTED)
        heal_mark_bricks(d, v->name, bricks);
    return 0;
}

FIBER int command_add_brick(struct mortard *d, const json_t *request, json_t *answer, struct error *err)
{
    uint32_t replica, arbiter = request_number(request, "arbiter", 0);
    struct new_bricks fresh = { 0 };
    bool grows;
    struct volume *v;
    int r = request_volume(d, request, &v, err);

    (void)answer;
    if (r < 0)
        return r;
    replica = request_number(request, "replica", 0);
    grows = replica > volume_group_size(v);
    r = new_bricks_prepare(d, json_object_get(request, "bricks"), &v->id, 1, request_flag(request, "force"), &fresh,
                           err);
    r = r < 0 ? r : request_volume(d, request, &v, err);
    if (r == 0)
        r = command_propose(d,
                            json_pack("{s:s, s:s, s:i, s:i, s:O}", "op", "add-bricks", "name", v->name, "replica",
                                      (int)replica, "arbiter", (int)arbiter, "bricks", fresh.json),
                            err);
    if (r < 0)
        new_bricks_undo(d, &fresh);
    new_bricks_done(&fresh);
    return r < 0 ? r : fill_new_bricks(d, request, grows ? json_object_get(request, "bricks") : NULL);
}

/* "HOST:/path" -> [host, path]; NULL: it is not one, or no memory. */
static json_t *host_and_path(const char *text)
{
    const char *colon = text ? strstr(text, ":/") : NULL;

    return colon ? json_pack("[s%, s]", text, (size_t)(colon - text), colon + 1) : NULL;
}

FIBER int command_remove_brick(struct mortard *d, const json_t *request, json_t *answer, struct error *err)
{
    json_t *pairs = json_array();
    struct volume *v;
    size_t i;
    json_t *text;
    int r = pairs ? request_volume(d, request, &v, err) : -ENOMEM;

    (void)answer;
    json_array_foreach(json_object_get(request, "bricks"), i, text)
    {
        json_t *pair = host_and_path(json_string_value(text));

        if (r == 0 && !pair)
            r = error_set(err, -EINVAL, "Wrong brick type: %s, use <HOSTNAME>:<export-dir-abs-path>",
                          json_string_value(text) ? json_string_value(text) : "");
        if (pair && json_array_append_new(pairs, pair) < 0)
            r = -ENOMEM;
    }
    if (r == 0)
        r = command_propose(d,
                            json_pack("{s:s, s:s, s:i, s:O}", "op", "remove-bricks", "name", v->name, "replica",
                                      (int)request_number(request, "replica", 0), "bricks", pairs),
                            err);
    json_decref(pairs);
    if (r == 0)
        reconcile_now(d, false);
    return r;
}

FIBER int command_replace_brick(struct mortard *d, const json_t *request, json_t *answer, struct error *err)
{
    const char *fresh_name = request_text(request, "new");
    json_t *old = host_and_path(request_text(request, "old"));
    json_t *list = json_pack("[s]", fresh_name ? fresh_name : "");
    struct new_bricks fresh = { 0 };
    struct volume *v;
    int r = list ? request_volume(d, request, &v, err) : -ENOMEM;

    (void)answer;
    if (r == 0 && !old)
        r = error_set(err, -EINVAL, "Wrong brick type: %s, use <HOSTNAME>:<export-dir-abs-path>",
                      request_text(request, "old") ? request_text(request, "old") : "");
    r = r < 0 ? r : new_bricks_prepare(d, list, &v->id, 1, request_flag(request, "force"), &fresh, err);
    r = r < 0 ? r : request_volume(d, request, &v, err);
    if (r == 0)
        r = command_propose(d,
                            json_pack("{s:s, s:s, s:O, s:O, s:O}", "op", "replace-brick", "name", v->name, "host",
                                      json_array_get(old, 0), "path", json_array_get(old, 1), "brick",
                                      json_array_get(fresh.json, 0)),
                            err);
    if (r < 0)
        new_bricks_undo(d, &fresh);
    new_bricks_done(&fresh);
    json_decref(old);
    if (r == 0)
        r = fill_new_bricks(d, request, list);
    json_decref(list);
    return r;
}
