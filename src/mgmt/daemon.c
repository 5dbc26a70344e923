/* Life of mortard, and its side of agreement. */
#include "core/mem.h"
#include "mgmt/change.h"
#include "mgmt/daemon_internal.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

char *work_path(const struct mortard *d, const char *rest)
{
    return mem_printf("%s/%s", d->options->work_folder, rest);
}

/* ---- the state machine ---- */

/* The result of a change: the sentence it was refused with, "" for success, behind the errno. */
struct outcome {
    int ret;
    struct error err;
};

static int on_apply(void *arg, const void *data, size_t size_bytes, void **ret_result)
{
    struct mortard *d = arg;
    struct outcome *outcome = NEW(struct outcome);
    json_t *change = json_loadb(data, size_bytes, 0, NULL);
    int r;

    if (!outcome) {
        json_decref(change);
        return -ENOMEM;
    }
    outcome->ret = change ? change_apply(d->cluster, change, &outcome->err)
                          : error_set(&outcome->err, -EBADMSG, "a change is not JSON");
    r = outcome->ret == -ENOMEM ? -ENOMEM : 0;
    json_decref(change);
    *ret_result = outcome;
    d->changes++;
    (void)waitq_wake_all(&d->state_changed, 0); /* those who wait for it */
    reconcile_soon(d);
    return r;
}

static int on_snapshot(void *arg, void **ret_data, size_t *ret_bytes)
{
    struct mortard *d = arg;
    json_t *json = cluster_to_json(d->cluster);
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    void *copy = text ? mem_strdup(text) : NULL;

    json_decref(json);
    free(text);
    if (!copy)
        return -ENOMEM;
    *ret_data = copy;
    *ret_bytes = strlen(copy);
    return 0;
}

static int on_restore(void *arg, const void *data, size_t size_bytes)
{
    struct mortard *d = arg;
    json_t *json = json_loadb(data, size_bytes, 0, NULL);
    struct cluster *fresh = NULL;
    struct error err = { "" };
    int r = json ? cluster_from_json(json, &fresh, &err) : -EBADMSG;

    json_decref(json);
    if (r < 0) {
        LOG(env_log(d->env), LOG_ERROR, "mortard", "snapshot-unreadable", "reason=\"%s\"", err.text);
        return r;
    }
    cluster_free(d->cluster);
    d->cluster = fresh;
    (void)waitq_wake_all(&d->state_changed, 0); /* see on_apply */
    reconcile_soon(d);
    return 0;
}

static void on_send(void *arg, uint64_t member, const char *address, const void *message, size_t size_bytes)
{
    (void)arg;
    (void)member;
    (void)address;
    (void)message;
    (void)size_bytes;
}

static void on_changed(void *arg)
{
    struct mortard *d = arg;

    (void)waitq_wake_all(&d->state_changed, 0); /* those who wait for a leader */
}

static void on_stopped(void *arg, const char *why)
{
    struct mortard *d = arg;

    LOG(env_log(d->env), LOG_ERROR, "mortard", "stopped", "reason=\"%s\"", why);
    (void)snprintf(d->why_stopped, sizeof(d->why_stopped), "%s", why);
    (void)waitq_wake_all(&d->ending, 0); /* mortard_wait */
}

static const struct consensus_hooks hooks = {
    .apply = on_apply,
    .snapshot = on_snapshot,
    .restore = on_restore,
    .send = on_send,
    .changed = on_changed,
    .stopped = on_stopped,
};

static int no_majority(int r, struct error *err)
{
    return error_set(err, r, "Quorum not met. Volume operation not allowed.");
}

FIBER int mortard_change(struct mortard *d, const json_t *change, struct error *err)
{
    char *text = json_dumps(change, JSON_COMPACT);
    void *result = NULL;
    struct outcome *outcome;
    struct scope scope;
    int r;

    if (!text)
        return -ENOMEM;
    scope_init(&scope, env_deadline_ms(d->env, CHANGE_MS));
    r = consensus_propose(d->consensus, text, strlen(text), &scope, &result);
    scope_done(&scope);
    free(text);
    if (r < 0)
        return no_majority(r, err);
    outcome = result;
    r = outcome->ret;
    if (r < 0 && err)
        *err = outcome->err;
    mem_free(outcome);
    return r;
}

/* ---- who this machine is ---- */

static int make_folder(const char *path, mode_t mode, struct error *err)
{
    SCOPED_FREE char *copy = mem_strdup(path);

    if (!copy)
        return -ENOMEM;
    for (char *slash = strchr(copy + 1, '/');; slash = strchr(slash + 1, '/')) {
        if (slash)
            *slash = '\0';
        if (mkdir(copy, mode) < 0 && errno != EEXIST)
            return error_set(err, -errno, "%s cannot be made: %s", copy, strerror(errno));
        if (!slash)
            return 0;
        *slash = '/';
    }
}

/* UUID= of glusterd.info, so that an installation keeps its identity. False: there is none. */
static bool read_identity(const char *path, struct gfid *ret_id)
{
    FILE *f = fopen(path, "re");
    char line[256];
    bool is_found = false;

    while (f && !is_found && fgets(line, sizeof(line), f)) {
        line[strcspn(line, "\n")] = '\0';
        is_found = strncmp(line, "UUID=", 5) == 0 && gfid_parse(line + 5, ret_id) == 0;
    }
    if (f)
        (void)fclose(f); /* only read */
    return is_found;
}

static int write_identity(const char *path, const struct gfid *id, struct error *err)
{
    SCOPED_FREE char *beside = mem_printf("%s.tmp", path);
    FILE *f = beside ? fopen(beside, "we") : NULL;
    bool is_good = f && fprintf(f, "UUID=%s\noperating-version=%u\n", GFID_TEXT(id), OP_VERSION_MAX) > 0 &&
                   fflush(f) == 0 && fsync(fileno(f)) == 0;

    if (f && fclose(f) != 0)
        is_good = false;
    if (!is_good || rename(beside, path) < 0)
        return error_set(err, -EIO, "%s cannot be written: %s", path, strerror(errno));
    return 0;
}

static int find_identity(struct mortard *d, struct error *err)
{
    SCOPED_FREE char *path = work_path(d, "glusterd.info");
    int r = 0;

    if (!path)
        return -ENOMEM;
    if (!read_identity(path, &d->node)) {
        d->node = gfid_random(d->env);
        r = write_identity(path, &d->node, err);
    }
    d->member = get_be64(d->node.bytes) | 1; /* never 0 */
    return r;
}

/* ---- life ---- */

static int make_folders(struct mortard *d, struct error *err)
{
    SCOPED_FREE char *volumes = work_path(d, "vols");
    int r = volumes ? make_folder(volumes, 0755, err) : -ENOMEM;

    r = r < 0 ? r : make_folder(d->options->run_folder, 0755, err);
    return r < 0 ? r : make_folder(d->options->log_folder, 0755, err);
}

/* A machine that was never part of a cluster is one by itself, and knows itself by its name. */
static FIBER int begin_agreement(struct mortard *d, struct error *err)
{
    SCOPED_FREE char *folder = work_path(d, "journal");
    bool is_new;
    int r = folder ? journal_open(d->env, folder, &d->journal, err) : -ENOMEM;

    if (r < 0)
        return r;
    d->consensus = consensus_new(d->env, d->member, GFID_TEXT(&d->node), d->journal, &hooks, d);
    if (!d->consensus)
        return -ENOMEM;
    r = consensus_found(d->consensus);
    is_new = r == 0;
    if (r < 0 && r != -EEXIST)
        return error_set(err, r, "%s: %s", folder, strerror(-r));
    r = consensus_start(d->consensus, err);
    if (r == 0 && is_new) {
        json_t *me = json_pack("{s:s, s:s, s:[s]}", "op", "node-add", "node", GFID_TEXT(&d->node), "names",
                               env_host_name(d->env));

        r = me ? mortard_change(d, me, err) : -ENOMEM;
        json_decref(me);
    }
    return r;
}

FIBER int mortard_start(struct env *env, const struct mortard_options *options, struct mortard **ret_daemon,
                        struct error *err)
{
    struct mortard *d = NEW(struct mortard);
    int r;

    if (!d)
        return -ENOMEM;
    d->env = env;
    d->options = options;
    waitq_init(&d->state_changed);
    waitq_init(&d->reconcile_wanted);
    waitq_init(&d->reconciled);
    waitq_init(&d->connection_ended);
    waitq_init(&d->ending);
    list_init(&d->connections);
    list_init(&d->processes);
    scope_init(&d->life, 0);
    d->cluster = cluster_new();
    r = d->cluster ? make_folders(d, err) : -ENOMEM;
    r = r < 0 ? r : find_identity(d, err);
    r = r < 0 ? r : begin_agreement(d, err);
    r = r < 0 ? r : server_open(d, err);
    if (r < 0) {
        mortard_stop(d);
        return r;
    }
    reconcile_start(d);
    *ret_daemon = d;
    return 0;
}

FIBER const char *mortard_wait(struct mortard *d)
{
    while (!d->is_stopping && !*d->why_stopped)
        (void)waitq_wait(&d->ending, NULL);
    return *d->why_stopped ? d->why_stopped : NULL;
}

FIBER void mortard_stop(struct mortard *d)
{
    if (!d)
        return;
    d->is_stopping = true;
    scope_cancel(&d->life);
    (void)waitq_wake_all(&d->ending, 0);           /* mortard_wait */
    (void)waitq_wake_all(&d->reconcile_wanted, 0); /* it ends */
    server_close(d);
    while (d->is_reconciling || d->heals > 0)
        (void)waitq_wait(&d->reconciled, NULL);
    consensus_free(d->consensus);
    journal_free(d->journal);
    while (!list_empty(&d->processes))
        process_free(list_first(&d->processes, struct process, node));
    cluster_free(d->cluster);
    scope_done(&d->life);
    mem_free(d);
}
