#include "core/daemon.h"
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs in the parent and does not return. */
static void wait_for_child(int from_child, pid_t child, const char *program)
{
    struct error why = { "" };
    size_t used = 0;
    ssize_t n;
    int status = 0;

    while (used < sizeof(why.text) - 1 && (n = read(from_child, why.text + used, sizeof(why.text) - 1 - used)) != 0) {
        if (n < 0 && errno != EINTR)
            break;
        used += n > 0 ? (size_t)n : 0;
        if (used > 0 && why.text[0] == '+') /* daemon_ready() */
            _exit(0);
    }
    why.text[used] = 0;
    if (used == 0) {
        (void)waitpid(child, &status, 0);
        if (WIFSIGNALED(status))
            (void)snprintf(why.text, sizeof(why.text),
                           "the process in the background was ended by signal %d; see the log", WTERMSIG(status));
        else
            (void)snprintf(why.text, sizeof(why.text), "the process in the background ended with code %d; see the log",
                           WEXITSTATUS(status));
    }
    (void)fprintf(stderr, "%s: %s\n", program, why.text);
    _exit(1);
}

int daemon_start(struct daemon_link *d, bool in_foreground, const char *program, struct error *err)
{
    int pipe_fd[2];
    pid_t child;

    d->to_parent = -1;
    if (in_foreground)
        return 0;
    if (pipe2(pipe_fd, O_CLOEXEC) < 0)
        return error_set(err, -errno, "cannot make a pipe: %s", strerror(errno));
    child = fork();
    if (child < 0)
        return error_set(err, -errno, "cannot start a process in the background: %s", strerror(errno));
    if (child > 0) {
        (void)close(pipe_fd[1]);
        wait_for_child(pipe_fd[0], child, program);
    }
    (void)close(pipe_fd[0]);
    d->to_parent = pipe_fd[1];
    (void)setsid(); /* cannot fail in a fresh child */
    if (chdir("/") < 0)
        return error_set(err, -errno, "cannot change to /: %s", strerror(errno));
    return 0;
}

/* Whoever reads our output to its end must not wait for us. */
static void leave_terminal(const char *log_file)
{
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    int log_fd = log_file ? open(log_file, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;

    if (null_fd < 0)
        return;
    for (int fd = 0; fd <= 2; fd++)
        (void)dup2(fd == 2 && log_fd >= 0 ? log_fd : null_fd, fd);
    if (null_fd > 2)
        (void)close(null_fd);
    if (log_fd > 2)
        (void)close(log_fd);
}

void daemon_ready(struct daemon_link *d, const char *log_file)
{
    if (d->to_parent < 0)
        return;
    leave_terminal(log_file);
    (void)!write(d->to_parent, "+", 1); /* a parent that is gone does not mind */
    (void)close(d->to_parent);
    d->to_parent = -1;
}

/* Only what is safe in a signal handler: no memory, no locks, no stdio. */
static void explain_crash(int signo)
{
    static const char text[] =
        "\nmortarfs " MORTAR_VERSION " crashed; where (addr2line -e mortarfs -f ADDRESS tells the lines):\n";
    void *frames[48];

    (void)!write(STDERR_FILENO, text, sizeof(text) - 1);
    backtrace_symbols_fd(frames, backtrace(frames, ARRAY_SIZE(frames)), STDERR_FILENO);
    (void)raise(signo); /* SA_RESETHAND: now it ends the process */
}

void daemon_explain_crashes(void)
{
    static const int signals[] = { SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE };
    static uint8_t stack[64 * 1024]; /* the fiber's own may be what ran out */
    const stack_t alternate = { .ss_sp = stack, .ss_size = sizeof(stack) };
    struct sigaction action = { .sa_handler = explain_crash, .sa_flags = SA_ONSTACK | SA_RESETHAND | SA_NODEFER };
    void *warm_up[1];

    (void)backtrace(warm_up, 1); /* loads libgcc now, not in the handler */
    (void)sigaltstack(&alternate, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
        (void)sigaction(signals[i], &action, NULL);
}

void daemon_failed(struct daemon_link *d, const char *program, const struct error *why)
{
    if (d->to_parent < 0) {
        (void)fprintf(stderr, "%s: %s\n", program, why->text);
        return;
    }
    (void)!write(d->to_parent, why->text, strlen(why->text));
    (void)close(d->to_parent);
    d->to_parent = -1;
}

int pid_file_take(const char *path, int *ret_fd, struct error *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    char text[32];
    ssize_t n;

    if (fd < 0)
        return error_set(err, -errno, "pid file %s: %s", path, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        n = read(fd, text, sizeof(text) - 1);
        text[n > 0 ? n : 0] = 0;
        text[strcspn(text, "\n")] = 0;
        (void)close(fd);
        return error_set(err, -EEXIST, "pid file %s is held by process %s: this service is already running", path,
                         *text ? text : "(unknown)");
    }
    n = snprintf(text, sizeof(text), "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) < 0 || write(fd, text, (size_t)n) != n) {
        int r = -errno;

        (void)close(fd);
        return error_set(err, r, "pid file %s cannot be written: %s", path, strerror(-r));
    }
    *ret_fd = fd;
    return 0;
}

void pid_file_remove(const char *path, int fd)
{
    if (fd < 0)
        return;
    (void)unlink(path);
    (void)close(fd);
}
