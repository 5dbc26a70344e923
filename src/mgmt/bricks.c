/* Processes of this machine. They outlive mortard: it finds them again by their pid files. */
#include "core/mem.h"
#include "mgmt/daemon_internal.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define STOP_MS             10000 /* then it is killed */
#define LOOK_MS             20
#define ARGUMENTS_MAX_BYTES 16384

extern char **environ;

struct process *process_find(const struct mortard *d, const char *key)
{
    struct process *p;

    list_for_each (p, &d->processes, node) {
        if (strcmp(p->key, key) == 0)
            return p;
    }
    return NULL;
}

void process_free(struct process *p)
{
    list_del(&p->node);
    mem_free(p->key);
    mem_free(p->volume);
    mem_free(p->brick);
    mem_free(p->pid_file);
    mem_free(p);
}

/* The arguments of a process, each ended by a NUL. Their bytes, 0: it is gone. */
static size_t read_arguments(int pid, char *text, size_t max_bytes)
{
    char path[64];
    ssize_t n;
    int fd;

    if (pid <= 0)
        return 0;
    (void)snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    n = read(fd, text, max_bytes - 1);
    (void)close(fd); /* only read */
    text[MAX(n, 0)] = '\0';
    return (size_t)MAX(n, 0);
}

/* Where the argument is in the text; NULL: nowhere. */
static const char *find_argument(const char *text, size_t size_bytes, const char *word)
{
    for (const char *at = text; at < text + size_bytes; at += strlen(at) + 1) {
        if (strcmp(at, word) == 0)
            return at;
    }
    return NULL;
}

bool pid_has_word(int pid, const char *word)
{
    SCOPED_FREE char *text = mem_alloc(ARGUMENTS_MAX_BYTES);
    size_t size_bytes = text ? read_arguments(pid, text, ARGUMENTS_MAX_BYTES) : 0;

    return find_argument(text, size_bytes, word) != NULL;
}

uint16_t process_port(const struct process *p)
{
    SCOPED_FREE char *text = mem_alloc(ARGUMENTS_MAX_BYTES);
    size_t size_bytes = text ? read_arguments(p->pid, text, ARGUMENTS_MAX_BYTES) : 0;
    const char *option = find_argument(text, size_bytes, "--brick-port");

    return option && option + sizeof("--brick-port") < text + size_bytes
               ? (uint16_t)strtoul(option + sizeof("--brick-port"), NULL, 10)
               : 0;
}

static int read_pid(const char *path)
{
    FILE *f = fopen(path, "re");
    int pid = 0;

    if (f) {
        if (fscanf(f, "%d", &pid) != 1)
            pid = 0;
        (void)fclose(f); /* only read */
    }
    return pid;
}

static const char *id_word(const struct process *p)
{
    return strchr(p->key, ' ') + 1;
}

bool process_look(struct process *p)
{
    bool is_up;

    if (p->state == PROCESS_STARTING)
        return false;
    if (p->pid == 0) {
        int pid = read_pid(p->pid_file);

        if (pid > 0 && pid_has_word(pid, id_word(p)))
            p->pid = pid;
    }
    is_up = p->pid > 0 && kill(p->pid, 0) == 0 && pid_has_word(p->pid, id_word(p));
    if (!is_up && p->state == PROCESS_UP) {
        (void)snprintf(p->why, sizeof(p->why), "the process has ended");
        LOG(env_log(p->d->env), LOG_WARNING, "mortard", "process-ended", "process=\"%s\" pid=%d", p->key, p->pid);
    }
    p->state = is_up ? PROCESS_UP : PROCESS_DOWN;
    if (!is_up)
        p->pid = 0;
    return is_up;
}

/* ---- starting: the program forks, and its parent ends when the child works or has said why not ---- */

struct launch {
    char *const *words;
    int code;          /* of the parent; -errno: it was not started */
    char output[2048]; /* what it said */
    char why[WHY_BYTES];
};

static int open_pipe(int ends[2])
{
    return pipe2(ends, O_CLOEXEC) < 0 ? -errno : 0;
}

/* The last line it wrote, without its own name in front. */
static void keep_last_line(struct launch *l)
{
    const char *line = l->output;

    for (const char *c = l->output; *c; c++) {
        if (*c == '\n' && c[1])
            line = c + 1;
    }
    (void)snprintf(l->why, sizeof(l->why), "%.*s", (int)strcspn(line, "\n"), line);
}

static int spawn(struct launch *l, int output, pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    int r;

    (void)sigemptyset(&none);
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawnattr_init(&attributes);
    (void)posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_adddup2(&actions, output, 1);
    (void)posix_spawn_file_actions_adddup2(&actions, output, 2);
    (void)posix_spawnattr_setsigmask(&attributes, &none);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
    r = posix_spawnp(ret_pid, l->words[0], &actions, &attributes, l->words, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attributes);
    return -r;
}

static void launch_job(void *arg)
{
    struct launch *l = arg;
    size_t used = 0;
    ssize_t n;
    pid_t pid;
    int ends[2], status = 0;

    l->code = open_pipe(ends);
    if (l->code < 0)
        return;
    l->code = spawn(l, ends[1], &pid);
    (void)close(ends[1]); /* the child has its own */
    if (l->code < 0) {
        (void)snprintf(l->why, sizeof(l->why), "%s: %s", l->words[0], strerror(-l->code));
        (void)close(ends[0]); /* nothing came */
        return;
    }
    while ((n = read(ends[0], l->output + used, sizeof(l->output) - 1 - used)) > 0)
        used += (size_t)n;
    l->output[used] = '\0';
    (void)close(ends[0]); /* all was read */
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    l->code = WIFEXITED(status) ? WEXITSTATUS(status) : -EIO;
    if (l->code != 0)
        keep_last_line(l);
}

FIBER int program_run(struct mortard *d, char *const *words, char why[static WHY_BYTES])
{
    struct launch *l = NEW(struct launch);
    int r;

    why[0] = '\0';
    if (!l)
        return -ENOMEM;
    l->words = words;
    env_pool_run(d->env, launch_job, l);
    r = l->code < 0 ? l->code : l->code > 0 ? -EIO : 0;
    if (r < 0)
        (void)snprintf(why, WHY_BYTES, "%s", *l->why ? l->why : "it ended without a word");
    mem_free(l);
    return r;
}

FIBER int process_start(struct process *p, char *const *words)
{
    int r;

    p->state = PROCESS_STARTING;
    r = program_run(p->d, words, p->why);
    p->state = PROCESS_DOWN;
    p->pid = 0;
    if (r < 0) {
        LOG(env_log(p->d->env), LOG_ERROR, "mortard", "process-failed", "process=\"%s\" reason=\"%s\"", p->key, p->why);
        return -EIO;
    }
    if (!process_look(p)) {
        (void)snprintf(p->why, sizeof(p->why), "it ended at once, see its log");
        return -EIO;
    }
    p->why[0] = '\0';
    LOG(env_log(p->d->env), LOG_INFO, "mortard", "process-started", "process=\"%s\" pid=%d port=%u", p->key, p->pid,
        p->port);
    return 0;
}

FIBER void process_stop(struct process *p)
{
    uint64_t end_ns = env_deadline_ms(p->d->env, STOP_MS);
    int signal_number = SIGTERM;

    if (!process_look(p))
        return;
    LOG(env_log(p->d->env), LOG_INFO, "mortard", "process-stops", "process=\"%s\" pid=%d", p->key, p->pid);
    (void)kill(p->pid, signal_number); /* it may have ended by itself */
    while (pid_has_word(p->pid, id_word(p))) {
        if (signal_number == SIGTERM && env_now_ns(p->d->env) > end_ns) {
            signal_number = SIGKILL;
            (void)kill(p->pid, signal_number); /* as above */
        }
        (void)fiber_sleep_ms(NULL, LOOK_MS);
    }
    p->state = PROCESS_DOWN;
    p->pid = 0;
    p->why[0] = '\0';
}
