#include "mortarfs/process.h"
#include "core/env_real.h"
#include "core/mem.h"
#include "mortarfs/process_internal.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define POOL_THREADS    0 /* the env's default */
#define STOP_PATIENCE_S 20
#define EXIT_UNFINISHED 3 /* stopping took too long */

/* ---- start ---- */

static struct graph *present_graph(void *arg)
{
    struct process *p = arg;

    return p->is_stopping ? NULL : p->graph;
}

static void log_skipped(const struct process *p)
{
    for (unsigned i = 0; i < p->c->skipped_count; i++)
        LOG(p->log, LOG_WARNING, "command-line", "option-ignored",
            "option --%s has no effect here; leaving it out changes nothing", p->c->skipped[i]);
}

static FIBER void start(void *arg)
{
    struct process *p = arg;
    struct error *err = NEW(struct error);
    int r = err ? volfile_get(p, &p->volfile_text, err) : -ENOMEM;

    log_skipped(p);
    if (r == 0 && p->c->socket_file)
        r = control_open(p->env, p->c->socket_file, present_graph, p, &p->control, err);
    if (r == 0)
        r = graph_make(p, p->volfile_text, false, &p->graph, &p->fuse, err);
    if (r < 0) {
        LOG(p->log, LOG_ERROR, "start", "failed", "reason=\"%s\"", err ? err->text : "out of memory");
        daemon_failed(p->link, p->c->program, err ? err : &(struct error) { "out of memory" });
        mem_free(err);
        process_stop(p, 1);
        return;
    }
    mem_free(err);
    p->is_ready = true;
    LOG(p->log, LOG_INFO, "start", "ready", "version=" MORTAR_VERSION " file=%s%s%s", volfile_label(p),
        p->c->mount_point ? " mountpoint=" : "", p->c->mount_point ? p->c->mount_point : "");
    daemon_ready(p->link, p->c->log_file);
}

/* ---- stop ---- */

static FIBER void stop(void *arg)
{
    struct process *p = arg;

    while (p->is_reloading)
        (void)fiber_sleep_ms(NULL, 10);
    control_close(take(p->control));
    if (p->graph) {
        graph_stop(p->graph);
        graph_free(take(p->graph));
    }
    reload_end_left(p);
    volserver_free(take(p->volserver));
    timer_stop(&p->patience);
    env_real_stop(p->env, p->exit_code);
}

static void give_up(void *arg)
{
    struct process *p = arg;

    LOG(p->log, LOG_ERROR, "stop", "unfinished", "after=%ds; leaving all the same", STOP_PATIENCE_S);
    _exit(EXIT_UNFINISHED);
}

void process_stop(struct process *p, int exit_code)
{
    if (p->is_stopping)
        return;
    p->is_stopping = true;
    p->exit_code = exit_code;
    timer_start(p->env, &p->patience, env_deadline_ms(p->env, STOP_PATIENCE_S * 1000), give_up, p);
    if (fiber_spawn(p->env, "stop", stop, p) < 0)
        give_up(p);
}

void process_on_unmount(void *arg)
{
    process_stop(arg, 0);
}

void process_on_event(struct graph *graph, struct translator *from, const struct event *event)
{
    struct process *p = graph->edge;

    switch (event->kind) {
    case EVENT_CHILD_UP: LOG(p->log, LOG_INFO, from->name, "up", "graph=%u", graph->id); break;
    case EVENT_CHILD_DOWN: LOG(p->log, LOG_WARNING, from->name, "down", "graph=%u", graph->id); break;
    case EVENT_AUTH_FAILED:
        LOG(p->log, LOG_ERROR, from->name, "refused", "reason=\"%s\"", event->text ? event->text : "");
        break;
    case EVENT_STORAGE_FAILED:
        LOG(p->log, LOG_CRITICAL, from->name, "storage-failed", "reason=\"%s\"; this brick stops",
            event->text ? event->text : "");
        process_stop(p, 1);
        break;
    case EVENT_VOLFILE_CHANGED: reload_request(p); break;
    default: break;
    }
}

/* ---- signals ---- */

static void on_term(void *arg)
{
    struct process *p = arg;

    if (p->is_stopping)
        return; /* it is under way; give_up() comes if it hangs */
    LOG(p->log, LOG_INFO, "stop", "asked", "by=signal");
    process_stop(p, 0);
}

static void on_hup(void *arg)
{
    struct process *p = arg;

    if (log_reopen(p->log) < 0)
        LOG(p->log, LOG_ERROR, "log", "not-reopened", "file=%s", p->c->log_file ? p->c->log_file : "");
    reload_request(p);
}

static void on_usr1(void *arg)
{
    statedump_write(arg);
}

static void on_usr2(void *arg)
{
    struct process *p = arg;

    log_set_level(p->log, log_level(p->log) == LOG_DEBUG ? p->level : LOG_DEBUG);
}

static void on_fetchspec(void *arg)
{
    reload_request(arg);
}

static int watch_signals(struct process *p)
{
    static const struct {
        int signo;
        void (*fn)(void *arg);
    } signals[] = {
        { SIGTERM, on_term }, { SIGINT, on_term }, { SIGHUP, on_hup }, { SIGUSR1, on_usr1 }, { SIGUSR2, on_usr2 }
    };

    (void)signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
        int r = env_on_signal(p->env, signals[i].signo, signals[i].fn, p);
        if (r < 0)
            return r;
    }
    return 0;
}

static int prepare(struct process *p, struct error *err)
{
    p->env = env_real_new(p->log, POOL_THREADS);
    if (!p->env)
        return error_set(err, -ENOMEM, "out of memory");
    log_set_env(p->log, p->env);
    list_init(&p->left);
    struct gfid id = gfid_random(p->env);
    gfid_format(&id, p->process_id);
    if (watch_signals(p) < 0)
        return error_set(err, -EINVAL, "cannot watch signals");
    if (p->c->server_count) {
        p->volserver = volserver_new(p->env, p->c, on_fetchspec, p);
        if (!p->volserver)
            return error_set(err, -ENOMEM, "out of memory");
    }
    return fiber_spawn(p->env, "start", start, p);
}

int process_run(struct cmdline *c, struct log *log, struct daemon_link *link)
{
    struct process p = { .log = log, .level = log_level(log), .c = c, .link = link };
    struct error err = { "" };
    int code;

    if (prepare(&p, &err) < 0) {
        daemon_failed(link, c->program, &err);
        return 1;
    }
    code = env_real_run(p.env);
    mem_free(p.volfile_text);
    log_set_env(log, NULL);
    env_real_free(p.env);
    return code;
}
