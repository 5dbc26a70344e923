/* mortard - the management daemon: its command line, start and end. */
#include "core/daemon.h"
#include "core/env_real.h"
#include "core/mem.h"
#include "graph/volfile.h"
#include "mgmt/daemon.h"
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct settings_of_file {
    char *work, *run, *log, *socket, *bind, *pid_file, *log_file, *level, *volfile, *heal_program, *program;
    unsigned long port, base_port, max_port;
    bool in_foreground;
};

struct mortard_process {
    struct settings_of_file set;
    struct mortard_options options;
    struct env *env;
    struct log *log;
    struct daemon_link link;
    struct mortard *daemon;
    bool is_stopping;
    int code;
};

static void keep(char **place, const char *text)
{
    mem_free(*place);
    *place = mem_strdup(text);
}

/* An option of the section in glusterd.vol, or of --xlator-option management.KEY=VALUE. */
static void take_option(struct settings_of_file *s, const char *key, const char *value)
{
    const struct {
        const char *key;
        char **place;
    } texts[] = {
        { "working-directory", &s->work },
        { "run-directory", &s->run },
        { "logging-directory", &s->log },
        { "glusterd-sockfile", &s->socket },
        { "transport.socket.bind-address", &s->bind },
    };
    const struct {
        const char *key;
        unsigned long *place;
    } numbers[] = {
        { "transport.socket.listen-port", &s->port },
        { "base-port", &s->base_port },
        { "max-port", &s->max_port },
    };

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        if (strcmp(texts[i].key, key) == 0)
            keep(texts[i].place, value);
    }
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
        if (strcmp(numbers[i].key, key) == 0)
            *numbers[i].place = strtoul(value, NULL, 10);
    }
}

/* glusterd.vol. A missing one is no error unless it was named. */
static int read_volfile(struct settings_of_file *s, struct error *err)
{
    const char *path = s->volfile ? s->volfile : "/etc/glusterfs/glusterd.vol";
    SCOPED(volfile_free) struct volfile *file = NULL;
    int r;

    if (!s->volfile && access(path, F_OK) < 0)
        return 0;
    r = volfile_read(path, &file, err);
    if (r < 0)
        return r;
    for (unsigned i = 0; i < file->section_count; i++) {
        const struct volfile_section *section = file->sections[i];

        if (strcmp(section->type, "mgmt/glusterd") != 0)
            continue;
        for (unsigned k = 0; k < section->option_count; k++)
            take_option(s, section->options[k].key, section->options[k].value);
    }
    return 0;
}

static const char usage_text[] =
    "usage: mortard [OPTIONS]\n"
    "\n"
    "The management daemon of Mortar: knows the volumes, serves volume files, runs bricks and heal daemons.\n"
    "\n"
    "  -N, --no-daemon            stay in the foreground\n"
    "  -p, --pid-file=FILE        where the pid goes\n"
    "  -l, --log-file=FILE        default: glusterd.log in the log folder; \"-\": standard error\n"
    "  -L, --log-level=LEVEL      TRACE DEBUG INFO WARNING ERROR CRITICAL NONE (INFO)\n"
    "  -f, --volfile=FILE         options as in GlusterFS's glusterd.vol (/etc/glusterfs/glusterd.vol)\n"
    "      --xlator-option management.KEY=VALUE\n"
    "                             one of them: working-directory, run-directory, logging-directory, glusterd-sockfile,\n"
    "                             transport.socket.bind-address, transport.socket.listen-port, base-port, max-port\n"
    "      --brick-program=NAME   what serves a brick (mortarfs)\n"
    "      --heal-program=NAME    what marks and walks bricks for heal (mortar-heal)\n"
    "  -V, --version\n"
    "  -h, --help\n";

static int take_xlator_option(struct settings_of_file *s, const char *text, struct error *err)
{
    SCOPED_FREE char *copy = mem_strdup(text);
    char *equals = copy ? strchr(copy, '=') : NULL;

    if (!equals)
        return error_set(err, -EINVAL, "--xlator-option %s: management.KEY=VALUE is expected", text);
    *equals = '\0';
    if (strncmp(copy, "management.", 11) == 0)
        take_option(s, copy + 11, equals + 1);
    return 0;
}

enum { OPTION_XLATOR = 256, OPTION_PROGRAM, OPTION_HEAL_PROGRAM };

static int parse(struct settings_of_file *s, int argc, char **argv, struct error *err)
{
    static const struct option options[] = {
        { "no-daemon", no_argument, NULL, 'N' },
        { "pid-file", required_argument, NULL, 'p' },
        { "log-file", required_argument, NULL, 'l' },
        { "log-level", required_argument, NULL, 'L' },
        { "volfile", required_argument, NULL, 'f' },
        { "xlator-option", required_argument, NULL, OPTION_XLATOR },
        { "brick-program", required_argument, NULL, OPTION_PROGRAM },
        { "heal-program", required_argument, NULL, OPTION_HEAL_PROGRAM },
        { "version", no_argument, NULL, 'V' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
    };
    const char *overrides[32];
    unsigned override_count = 0;
    int c, r;

    while ((c = getopt_long(argc, argv, "Np:l:L:f:Vh", options, NULL)) >= 0) {
        switch (c) {
        case 'N': s->in_foreground = true; break;
        case 'p': keep(&s->pid_file, optarg); break;
        case 'l': keep(&s->log_file, optarg); break;
        case 'L': keep(&s->level, optarg); break;
        case 'f': keep(&s->volfile, optarg); break;
        case OPTION_PROGRAM: keep(&s->program, optarg); break;
        case OPTION_HEAL_PROGRAM: keep(&s->heal_program, optarg); break;
        case OPTION_XLATOR:
            if (override_count < ARRAY_SIZE(overrides))
                overrides[override_count++] = optarg;
            break;
        case 'V': puts("mortard " MORTAR_VERSION); exit(0);
        case 'h': fputs(usage_text, stdout); exit(0);
        default: return error_set(err, -EINVAL, "see mortard --help");
        }
    }
    if (optind < argc)
        return error_set(err, -EINVAL, "\"%s\" is not an option; see mortard --help", argv[optind]);
    r = read_volfile(s, err);
    for (unsigned i = 0; i < override_count && r == 0; i++)
        r = take_xlator_option(s, overrides[i], err);
    return r;
}

static const char *or_else(const char *text, const char *otherwise)
{
    return text ? text : otherwise;
}

static int check_port(const char *what, unsigned long port, struct error *err)
{
    return port == 0 || port > UINT16_MAX ? error_set(err, -EINVAL, "%s %lu is not a port (1 to 65535)", what, port)
                                          : 0;
}

static int make_options(struct mortard_process *p, struct error *err)
{
    struct settings_of_file *s = &p->set;
    int r;

    s->port = s->port ? s->port : 24007;
    s->base_port = s->base_port ? s->base_port : 49152;
    s->max_port = s->max_port ? s->max_port : 60999;
    r = check_port("transport.socket.listen-port", s->port, err);
    r = r < 0 ? r : check_port("base-port", s->base_port, err);
    r = r < 0 ? r : check_port("max-port", s->max_port, err);
    if (r == 0 && s->max_port < s->base_port)
        r = error_set(err, -EINVAL, "max-port %lu is below base-port %lu", s->max_port, s->base_port);
    if (r < 0)
        return r;
    p->options = (struct mortard_options) {
        .work_folder = or_else(s->work, "/var/lib/glusterd"),
        .run_folder = or_else(s->run, "/var/run/gluster"),
        .log_folder = or_else(s->log, "/var/log/glusterfs"),
        .socket_path = or_else(s->socket, "/var/run/glusterd.socket"),
        .bind_address = or_else(s->bind, ""),
        .program = or_else(s->program, "mortarfs"),
        .heal_program = or_else(s->heal_program, "mortar-heal"),
        .port = (uint16_t)s->port,
        .base_port = (uint16_t)s->base_port,
        .max_port = (uint16_t)s->max_port,
    };
    return 0;
}

static int open_log(struct mortard_process *p, struct error *err)
{
    enum log_level level = LOG_INFO;

    if (p->set.level && log_level_parse(p->set.level, &level) < 0)
        return error_set(err, -EINVAL, "\"%s\" is no log level", p->set.level);
    if (!p->set.log_file)
        p->set.log_file = mem_printf("%s/glusterd.log", p->options.log_folder);
    if (!p->set.log_file)
        return -ENOMEM;
    if (log_open(p->set.log_file, level, &p->log, err) < 0) {
        (void)fprintf(stderr, "mortard: no log is kept: %s\n", err->text);
        err->text[0] = '\0';
        p->log = log_discard();
    }
    return 0;
}

/* ---- running ---- */

static FIBER void stop(void *arg)
{
    struct mortard_process *p = arg;

    mortard_stop(take(p->daemon));
    env_real_stop(p->env, p->code);
}

static void ask_to_stop(struct mortard_process *p, int code)
{
    if (p->is_stopping)
        return;
    p->is_stopping = true;
    p->code = code;
    if (fiber_spawn(p->env, "stop", stop, p) < 0)
        env_real_stop(p->env, 1);
}

static void on_term(void *arg)
{
    ask_to_stop(arg, 0);
}

static void on_hup(void *arg)
{
    struct mortard_process *p = arg;

    (void)log_reopen(p->log); /* it goes on in the old file */
}

static FIBER void run(void *arg)
{
    struct mortard_process *p = arg;
    struct error *err = NEW(struct error);
    int r = err ? mortard_start(p->env, &p->options, &p->daemon, err) : -ENOMEM;

    if (r < 0) {
        daemon_failed(&p->link, "mortard", err && *err->text ? err : &(struct error) { "out of memory" });
        LOG(p->log, LOG_ERROR, "mortard", "not-started", "reason=\"%s\"", err ? err->text : "out of memory");
        mem_free(err);
        p->code = 1;
        env_real_stop(p->env, 1);
        return;
    }
    mem_free(err);
    LOG(p->log, LOG_INFO, "mortard", "ready", "version=" MORTAR_VERSION " port=%u folder=%s", p->options.port,
        p->options.work_folder);
    daemon_ready(&p->link, strcmp(p->set.log_file, "-") == 0 ? NULL : p->set.log_file);
    if (mortard_wait(p->daemon))
        ask_to_stop(p, 1);
}

static int run_process(struct mortard_process *p, struct error *err)
{
    int pid_fd = -1, code;

    if (daemon_start(&p->link, p->set.in_foreground, "mortard", err) < 0 ||
        (p->set.pid_file && pid_file_take(p->set.pid_file, &pid_fd, err) < 0)) {
        daemon_failed(&p->link, "mortard", err);
        return 1;
    }
    daemon_explain_crashes();
    p->env = env_real_new(p->log, 0);
    (void)signal(SIGPIPE, SIG_IGN);
    if (!p->env || env_on_signal(p->env, SIGTERM, on_term, p) < 0 || env_on_signal(p->env, SIGINT, on_term, p) < 0 ||
        env_on_signal(p->env, SIGHUP, on_hup, p) < 0 || fiber_spawn(p->env, "start", run, p) < 0) {
        daemon_failed(&p->link, "mortard", &(struct error) { "out of memory" });
        return 1;
    }
    log_set_env(p->log, p->env);
    code = env_real_run(p->env);
    env_real_free(p->env);
    pid_file_remove(p->set.pid_file, pid_fd);
    return code;
}

int main(int argc, char **argv)
{
    struct mortard_process p = { .link = { -1 } };
    struct error err = { "" };
    int code = 1;

    if (parse(&p.set, argc, argv, &err) < 0 || make_options(&p, &err) < 0 || open_log(&p, &err) < 0)
        (void)fprintf(stderr, "mortard: %s\n", err.text);
    else
        code = run_process(&p, &err);
    log_close(p.log);
    for (char **text = &p.set.work; text <= &p.set.program; text++)
        mem_free(*text);
    return code;
}
