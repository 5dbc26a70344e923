/* Life of mortard, and its side of agreement. */
#include "core/mem.h"
#include "mgmt/change.h"
#include "mgmt/daemon_internal.h"
#include "mgmt/links.h"
#include "mgmt/nodes.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define LEADER_MS    8000  /* for an election */
#define JOIN_MS      60000 /* a machine that was told to join waits so long to be a member */
#define CHANGE_TRIES 5

char *work_path(const struct mortard *d, const char *rest)
{
    return mem_printf("%s/%s", d->options->work_folder, rest);
}

/* ---- what is served ---- */

/* What was agreed on is known again only when there is a leader, which cannot be elected by machines that do not know each
 * other's addresses; and a machine alone has to serve its volumes. So what is served is kept in a file as well, and used
 * from the start until agreement has come as far. */

void mortard_adopt(struct mortard *d)
{
    if (d->cluster == d->replica || !d->consensus || consensus_applied(d->consensus) < d->kept_index)
        return;
    cluster_free(d->cluster);
    d->cluster = d->replica;
    d->changes++;
    reconcile_soon(d);
}

char *mortard_state_text(struct mortard *d)
{
    json_t *state = d->cluster == d->replica && d->consensus ? cluster_to_json(d->cluster) : NULL;
    json_t *json =
        state ? json_pack("{s:I, s:o}", "index", (json_int_t)consensus_applied(d->consensus), "state", state) : NULL;
    char *text = json ? json_dumps(json, JSON_INDENT(1)) : NULL;
    char *copy = text ? mem_strdup(text) : NULL;

    json_decref(json);
    free(text);
    return copy;
}

/* A missing or unreadable file is no loss: agreement tells it all again. */
static void load_state(struct mortard *d)
{
    SCOPED_FREE char *path = work_path(d, "state.json");
    json_t *json = path ? json_load_file(path, 0, NULL) : NULL;
    struct cluster *kept = NULL;
    struct error err = { "" };

    if (json && cluster_from_json(json_object_get(json, "state"), &kept, &err) == 0) {
        d->kept_index = (uint64_t)json_integer_value(json_object_get(json, "index"));
        d->cluster = kept;
    } else if (json) {
        LOG(env_log(d->env), LOG_WARNING, "mortard", "state-unreadable", "file=%s reason=\"%s\"", path, err.text);
    }
    json_decref(json);
}

static void forget_state(struct mortard *d)
{
    SCOPED_FREE char *path = work_path(d, "state.json");

    if (path)
        (void)unlink(path); /* if it stays, it is older than what comes, and of no cluster that we are in */
    d->kept_index = 0;
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
    outcome->ret = change ? change_apply(d->replica, change, &outcome->err)
                          : error_set(&outcome->err, -EBADMSG, "a change is not JSON");
    r = outcome->ret == -ENOMEM ? -ENOMEM : 0;
    json_decref(change);
    *ret_result = outcome;
    d->changes++;
    mortard_adopt(d);
    (void)waitq_wake_all(&d->state_changed, 0); /* those who wait for it */
    reconcile_soon(d);
    return r;
}

static int on_snapshot(void *arg, void **ret_data, size_t *ret_bytes)
{
    struct mortard *d = arg;
    json_t *json = cluster_to_json(d->replica);
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
    if (d->cluster == d->replica)
        d->cluster = fresh;
    cluster_free(d->replica);
    d->replica = fresh;
    d->changes++;
    (void)waitq_wake_all(&d->state_changed, 0); /* see on_apply */
    reconcile_soon(d);
    return 0;
}

static void on_send(void *arg, uint64_t member, const char *address, const void *message, size_t size_bytes)
{
    (void)address; /* a machine is found by its number */
    link_send(arg, member, message, size_bytes);
}

static void on_changed(void *arg)
{
    struct mortard *d = arg;

    mortard_adopt(d);
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

/* Has it agreed on as the leader. */
static FIBER int change_here(struct mortard *d, const json_t *change, struct error *err)
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

/* The machine with this number: of the cluster, or this one. False: not known here. */
static bool find_member(const struct mortard *d, uint64_t member, struct gfid *ret_node)
{
    if (member == d->member) {
        *ret_node = d->node;
        return true;
    }
    for (unsigned i = 0; i < d->cluster->node_count; i++) {
        if (member_of(&d->cluster->nodes[i].id) == member) {
            *ret_node = d->cluster->nodes[i].id;
            return true;
        }
    }
    return false;
}

FIBER int mortard_find_leader(struct mortard *d, struct gfid *ret_node, struct error *err)
{
    struct scope scope;
    int r = 0;

    scope_init(&scope, env_deadline_ms(d->env, LEADER_MS));
    while (r == 0) {
        const char *address;
        uint64_t leader = d->is_changing_cluster ? 0 : consensus_leader(d->consensus, &address);

        if (leader != 0 && find_member(d, leader, ret_node) && node_is_connected(d, ret_node))
            break;
        r = waitq_wait(&d->state_changed, &scope);
    }
    scope_done(&scope);
    return r < 0 ? no_majority(-ENOTCONN, err) : 0;
}

FIBER int mortard_wait_applied(struct mortard *d, uint64_t index)
{
    struct scope scope;
    int r = 0;

    scope_init(&scope, env_deadline_ms(d->env, CHANGE_MS));
    while (r == 0 && (d->is_changing_cluster || consensus_applied(d->consensus) < index))
        r = waitq_wait(&d->state_changed, &scope);
    scope_done(&scope);
    return r < 0 ? r : 0;
}

/* The leader has it agreed on; it is applied here when this returns. */
static FIBER int change_there(struct mortard *d, const struct gfid *leader, const json_t *change, struct error *err)
{
    json_t *answer = NULL;
    int r = link_ask_change(d, leader, change, &answer);
    uint64_t index;

    if (r < 0)
        return no_majority(r == -EAGAIN ? r : -ENOTCONN, err);
    r = (int)json_integer_value(json_object_get(answer, "ret"));
    index = (uint64_t)json_integer_value(json_object_get(answer, "index"));
    if (r < 0) {
        const char *why = json_string_value(json_object_get(answer, "error"));

        (void)error_set(err, r, "%s", why ? why : strerror(-r));
    }
    json_decref(answer);
    if (r == 0 && mortard_wait_applied(d, index) < 0)
        r = no_majority(-ETIMEDOUT, err);
    return r;
}

FIBER int mortard_change(struct mortard *d, const json_t *change, struct error *err)
{
    int r = -EAGAIN;

    /* -EAGAIN: there was an election in between. Nothing was done then. */
    for (int tries = 0; r == -EAGAIN && tries < CHANGE_TRIES; tries++) {
        struct gfid leader;

        r = mortard_find_leader(d, &leader, err);
        if (r < 0)
            return r;
        r = gfid_equal(&leader, &d->node) ? change_here(d, change, err) : change_there(d, &leader, change, err);
        if (r == -EAGAIN)
            (void)fiber_sleep_ms(&d->life, 200); /* or the daemon ends */
    }
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
    d->member = member_of(&d->node);
    r = r < 0 ? r : secret_load(d, err);
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
static FIBER int found_cluster(struct mortard *d, struct error *err)
{
    json_t *me =
        json_pack("{s:s, s:s, s:[s]}", "op", "node-add", "node", GFID_TEXT(&d->node), "names", env_host_name(d->env));
    int r = me ? mortard_change(d, me, err) : -ENOMEM;

    json_decref(me);
    return r;
}

/* Takes part, from what the journal says. */
static FIBER int begin_agreement(struct mortard *d, struct error *err)
{
    bool is_new;
    int r;

    d->consensus = consensus_new(d->env, d->member, GFID_TEXT(&d->node), d->journal, &hooks, d);
    if (!d->consensus)
        return -ENOMEM;
    r = consensus_found(d->consensus);
    is_new = r == 0;
    if (r < 0 && r != -EEXIST)
        return error_set(err, r, "the journal cannot be written: %s", strerror(-r));
    r = consensus_start(d->consensus, err);
    d->is_changing_cluster = false;
    return r == 0 && is_new ? found_cluster(d, err) : r;
}

/* Stops taking part, and forgets everything that was agreed on. */
static FIBER int forget_cluster(struct mortard *d, struct error *err)
{
    struct cluster *empty = cluster_new();
    int r;

    if (!empty)
        return -ENOMEM;
    d->is_changing_cluster = true;
    consensus_free(take(d->consensus));
    r = journal_erase(d->journal);
    if (d->cluster != d->replica)
        cluster_free(d->replica);
    cluster_free(d->cluster);
    d->cluster = d->replica = empty;
    forget_state(d);
    d->changes++;
    reconcile_soon(d);
    return r < 0 ? error_set(err, r, "the journal cannot be written: %s", strerror(-r)) : 0;
}

/* A failure in between leaves a daemon that cannot go on: it ends, and says why. */
static int end_after(struct mortard *d, int r, const struct error *err)
{
    if (r < 0)
        on_stopped(d, err && *err->text ? err->text : "no memory");
    return r;
}

FIBER int mortard_join(struct mortard *d, const uint8_t secret[static 32], struct error *err)
{
    int r;

    if (d->is_changing_cluster)
        return error_set(err, -EBUSY, "this machine is about to join a cluster already");
    r = secret_store(d, secret, err);
    if (r < 0)
        return r;
    r = forget_cluster(d, err);
    /* A journal with a term is not empty: started again, this machine does not found a cluster of its own. */
    if (r == 0 && journal_set_vote(d->journal, 1, 0) < 0)
        r = error_set(err, -EIO, "the journal cannot be written");
    d->joined_ns = env_now_ns(d->env);
    r = r < 0 ? r : begin_agreement(d, err);
    return end_after(d, r, err);
}

FIBER int mortard_leave(struct mortard *d, struct error *err)
{
    uint8_t secret[32];
    int r;

    if (d->is_changing_cluster)
        return error_set(err, -EBUSY, "this machine is between two clusters already");
    env_random(d->env, secret, sizeof(secret));
    d->joined_ns = 0;
    r = forget_cluster(d, err);
    r = r < 0 ? r : secret_store(d, secret, err);
    r = r < 0 ? r : begin_agreement(d, err);
    return end_after(d, r, err);
}

/* Told to join, and then nothing came of it. */
FIBER void mortard_look_joined(struct mortard *d)
{
    if (d->joined_ns == 0 || d->is_changing_cluster)
        return;
    if (d->cluster->node_count > 0) {
        d->joined_ns = 0;
    } else if (env_now_ns(d->env) > d->joined_ns + JOIN_MS * 1000000ull) {
        LOG(env_log(d->env), LOG_WARNING, "mortard", "not-joined", "after=%us: a cluster of one again", JOIN_MS / 1000);
        (void)mortard_leave(d, NULL); /* it ends if that fails */
    }
}

static int open_journal(struct mortard *d, struct error *err)
{
    SCOPED_FREE char *folder = work_path(d, "journal");

    return folder ? journal_open(d->env, folder, &d->journal, err) : -ENOMEM;
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
    waitq_init(&d->links_wanted);
    list_init(&d->connections);
    list_init(&d->processes);
    scope_init(&d->life, 0);
    d->cluster = d->replica = cluster_new();
    r = d->cluster ? make_folders(d, err) : -ENOMEM;
    r = r < 0 ? r : find_identity(d, err);
    if (r == 0)
        load_state(d);
    r = r < 0 ? r : open_journal(d, err);
    r = r < 0 ? r : begin_agreement(d, err);
    r = r < 0 ? r : server_open(d, err);
    if (r < 0) {
        mortard_stop(d);
        return r;
    }
    links_start(d);
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
    if (d->cluster != d->replica)
        cluster_free(d->replica);
    cluster_free(d->cluster);
    scope_done(&d->life);
    mem_free(d);
}
