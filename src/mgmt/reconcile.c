/* Makes files and processes of this machine what the cluster's state says.
 *
 * One fiber does it, again whenever the state changes, and every few seconds for processes that ended. Everything it does
 * can be done again: whatever it was stopped in the middle of is finished the next time.
 */
#include "core/mem.h"
#include "mgmt/daemon_internal.h"
#include "mgmt/mirror.h"
#include "mgmt/volgen.h"
#include <errno.h>
#include <stdio.h>
#include <inttypes.h>

#define LOOK_EVERY_MS     2000
#define RETRY_FIRST_MS    1000
#define RETRY_LAST_MS     60000
#define PORT_TRIES        100
#define HEALTHY_AFTER_MS  60000
#define PROCESS_WORDS_MAX 24

char *brick_key(const struct volume *v, unsigned brick)
{
    SCOPED_FREE char *id = volgen_brick_id(v, brick);

    return id ? mem_printf("brick %s", id) : NULL;
}

/* ---- which processes there should be ---- */

static char *brick_pid_file(const struct mortard *d, const struct volume *v, const struct brick *b)
{
    SCOPED_FREE char *dashes = path_with_dashes(b->path, true);

    return dashes ? mem_printf("%s/vols/%s/%s%s.pid", d->options->run_folder, v->name, b->host, dashes) : NULL;
}

/* The keys are given. */
static void want(struct mortard *d, const struct volume *v, const struct brick *b, char *key, char *pid_file)
{
    struct process *p = key ? process_find(d, key) : NULL;

    if (p) {
        p->is_wanted = true;
        mem_free(key);
        mem_free(pid_file);
        return;
    }
    p = key && pid_file ? NEW(struct process) : NULL;
    if (!p) {
        mem_free(key);
        mem_free(pid_file);
        return; /* no memory: the next round */
    }
    p->d = d;
    p->key = key;
    p->pid_file = pid_file;
    p->volume = mem_strdup(v->name);
    p->brick = b ? mem_strdup(b->path) : NULL;
    p->state = PROCESS_DOWN;
    p->is_wanted = p->volume && (!b || p->brick);
    list_add_tail(&d->processes, &p->node);
    if (process_look(p))
        p->port = process_port(p);
}

static bool is_here(const struct mortard *d, const struct brick *b)
{
    return gfid_equal(&b->node, &d->node);
}

static void want_of_volume(struct mortard *d, const struct volume *v)
{
    bool is_involved = false;

    for (unsigned i = 0; i < v->brick_count; i++) {
        const struct brick *b = &v->bricks[i];

        if (!is_here(d, b))
            continue;
        is_involved = true;
        want(d, v, b, brick_key(v, i), brick_pid_file(d, v, b));
    }
    if (is_involved && v->kind == VOLUME_REPLICATE && volume_option_is_on(v, "cluster.self-heal-daemon"))
        want(d, v, NULL, mem_printf("heal shd/%s", v->name),
             mem_printf("%s/shd/%s/%s-shd.pid", d->options->run_folder, v->name, v->name));
}

static void decide(struct mortard *d)
{
    struct process *p;

    list_for_each (p, &d->processes, node)
        p->is_wanted = false;
    for (unsigned i = 0; i < d->cluster->volume_count; i++) {
        if (d->cluster->volumes[i]->state == VOLUME_STARTED)
            want_of_volume(d, d->cluster->volumes[i]);
    }
}

/* ---- starting ---- */

static void on_probe(void *arg, struct stream *stream)
{
    (void)arg;
    stream_close(stream);
}

/* A port that nobody has now. 0: none found. */
static uint16_t free_port(struct mortard *d)
{
    unsigned range = (unsigned)(d->options->max_port - d->options->base_port) + 1;
    struct address *at = NEW(struct address);
    uint16_t found = 0;

    for (int i = 0; at && i < PORT_TRIES && !found; i++) {
        uint16_t port = (uint16_t)(d->options->base_port + env_random_u64(d->env) % range);
        struct listener *probe;

        at->family = ADDRESS_TCP;
        at->port = port;
        (void)snprintf(at->host, sizeof(at->host), "%s", d->options->bind_address);
        if (listener_open(d->env, at, 1, on_probe, NULL, &probe) < 0)
            continue;
        listener_close(probe);
        found = port;
    }
    mem_free(at);
    return found;
}

/* A list of words that are freed together. */
struct words {
    char *list[PROCESS_WORDS_MAX + 1];
    unsigned count;
    bool is_failed;
};

/* `word` is given; NULL: no memory. */
static void add_word(struct words *w, char *word)
{
    w->is_failed = w->is_failed || !word || w->count == PROCESS_WORDS_MAX;
    if (w->is_failed)
        mem_free(word);
    else
        w->list[w->count++] = word;
}

static void add_pair(struct words *w, const char *option, char *value)
{
    add_word(w, mem_strdup(option));
    add_word(w, value);
}

static void words_done(struct words *w)
{
    for (unsigned i = 0; i < w->count; i++)
        mem_free(w->list[i]);
}

static void add_common(struct words *w, const struct process *p, char *log_file)
{
    const struct mortard_options *o = p->d->options;
    uint64_t hash = env_random_u64(p->d->env);

    add_word(w, mem_strdup(o->program));
    add_pair(w, "-s", mem_strdup(*o->bind_address ? o->bind_address : "localhost"));
    if (o->port != CLIENT_PORT_DEFAULT)
        add_word(w, mem_printf("--volfile-server-port=%u", o->port));
    add_pair(w, "--volfile-id", mem_strdup(strchr(p->key, ' ') + 1));
    add_pair(w, "-p", mem_strdup(p->pid_file));
    add_pair(w, "-S", mem_printf("%s/%016" PRIx64 ".socket", o->run_folder, hash));
    add_pair(w, "-l", log_file);
}

static void brick_words(struct words *w, const struct process *p)
{
    const struct mortard *d = p->d;
    SCOPED_FREE char *dashes = path_with_dashes(p->brick, false);

    add_common(w, p, dashes ? mem_printf("%s/bricks/%s.log", d->options->log_folder, dashes) : NULL);
    add_pair(w, "--brick-name", mem_strdup(p->brick));
    add_pair(w, "--xlator-option", mem_printf("*-posix.glusterd-uuid=%s", GFID_TEXT(&d->node)));
    add_pair(w, "--process-name", mem_strdup("brick"));
    add_pair(w, "--brick-port", mem_printf("%u", p->port));
    add_pair(w, "--xlator-option", mem_printf("%s-server.listen-port=%u", p->volume, p->port));
}

static void heal_words(struct words *w, const struct process *p)
{
    const struct mortard *d = p->d;

    add_common(w, p, mem_printf("%s/glustershd.log", d->options->log_folder));
    add_pair(w, "--xlator-option", mem_printf("*replicate*.node-uuid=%s", GFID_TEXT(&d->node)));
    add_pair(w, "--process-name", mem_strdup("glustershd"));
    add_word(w, mem_strdup("--client-pid=-6"));
}

static FIBER void start(struct process *p)
{
    struct mortard *d = p->d;
    struct words *w = NEW(struct words);
    uint64_t pause_ms;

    if (p->brick)
        p->port = free_port(d);
    if (!w || (p->brick && !p->port)) {
        (void)snprintf(p->why, sizeof(p->why), "no port between %u and %u is free", d->options->base_port,
                       d->options->max_port);
        mem_free(w);
        return;
    }
    if (p->brick)
        brick_words(w, p);
    else
        heal_words(w, p);
    mirror_make_folders(d->options->run_folder, d->options->log_folder, p->volume);
    if (!w->is_failed && process_start(p, w->list) == 0) {
        p->failures = 0;
        p->started_ns = env_now_ns(d->env);
    } else {
        p->failures++;
    }
    words_done(w);
    mem_free(w);
    pause_ms = (uint64_t)RETRY_FIRST_MS << MIN(p->failures, 6u);
    p->retry_ns = env_deadline_ms(d->env, MIN(pause_ms, (uint64_t)RETRY_LAST_MS));
}

/* One that ends again and again is started less and less often. */
static void note_end(struct process *p)
{
    struct mortard *d = p->d;
    uint64_t lived_ms = p->started_ns ? (env_now_ns(d->env) - p->started_ns) / 1000000 : HEALTHY_AFTER_MS;
    uint64_t pause_ms;

    p->failures = lived_ms >= HEALTHY_AFTER_MS ? 0 : p->failures + 1;
    pause_ms = (uint64_t)RETRY_FIRST_MS << MIN(p->failures, 6u);
    p->retry_ns = env_deadline_ms(d->env, MIN(pause_ms, (uint64_t)RETRY_LAST_MS));
}

static FIBER void look_after(struct process *p, bool is_forced)
{
    bool was_up = p->state == PROCESS_UP;

    if (process_look(p)) {
        if (!p->is_wanted)
            process_stop(p);
        return;
    }
    if (was_up)
        note_end(p);
    if (p->is_wanted && !p->d->is_stopping && (is_forced || env_now_ns(p->d->env) >= p->retry_ns))
        start(p);
}

/* ---- the fiber ---- */

static FIBER void write_files(struct mortard *d)
{
    struct error err = { "" };

    if (mirror_write(d->env, d->cluster, d->options->work_folder, mortard_state_text(d), &err) < 0)
        LOG(env_log(d->env), LOG_ERROR, "mortard", "files-not-written", "reason=\"%s\"", err.text);
}

static FIBER void run_processes(struct mortard *d, bool is_forced)
{
    struct process *p;

    decide(d);
    list_for_each (p, &d->processes, node)
        look_after(p, is_forced);
    list_for_each (p, &d->processes, node) {
        if (!p->is_wanted && p->state == PROCESS_DOWN)
            process_free(p);
    }
}

static FIBER void reconcile(void *arg)
{
    struct mortard *d = arg;
    uint64_t written = UINT64_MAX;

    while (!d->is_stopping) {
        uint64_t wanted = d->wanted;
        bool is_forced = d->is_forced;

        d->is_forced = false;

        if (written != d->changes) {
            written = d->changes;
            write_files(d);
            server_tell_volume_files(d);
        }
        mortard_look_joined(d);
        mortard_adopt(d);
        run_processes(d, is_forced);
        d->done = wanted;
        (void)waitq_wake_all(&d->reconciled, 0); /* reconcile_now waits */
        if (d->wanted == wanted && !d->is_stopping) {
            struct scope pause;

            scope_init(&pause, env_deadline_ms(d->env, LOOK_EVERY_MS));
            (void)waitq_wait(&d->reconcile_wanted, &pause); /* or it is time to look again */
            scope_done(&pause);
        }
    }
    d->is_reconciling = false;
    (void)waitq_wake_all(&d->reconciled, 0); /* mortard_stop waits */
}

void reconcile_start(struct mortard *d)
{
    d->is_reconciling = fiber_spawn(d->env, "reconcile", reconcile, d) == 0;
}

void reconcile_soon(struct mortard *d)
{
    d->wanted++;
    (void)waitq_wake_all(&d->reconcile_wanted, 0); /* or it is at work and sees it */
}

FIBER void reconcile_now(struct mortard *d, bool forced)
{
    uint64_t mine;

    d->is_forced = d->is_forced || forced;
    reconcile_soon(d);
    mine = d->wanted;
    while (d->is_reconciling && d->done < mine)
        (void)waitq_wait(&d->reconciled, NULL);
}
