/* mortarfs - runs one graph: a mount, a brick or a heal daemon. */
#include "core/mem.h"
#include "mortarfs/cmdline.h"
#include "core/daemon.h"
#include "mortarfs/process.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOG_DIR   "/var/log/glusterfs"
#define FILES_MAX (1u << 20)

static int fail(const struct cmdline *c, const struct error *err)
{
    (void)fprintf(stderr, "%s: %s\n", c->program, err->text);
    return 1;
}

/* /mnt/a -> /var/log/glusterfs/mnt-a.log; a brick: bricks/PATH.log; else by the volume file. Returned. */
static char *default_log(const struct cmdline *c)
{
    const char *path = c->mount_point ? c->mount_point : c->brick_name ? c->brick_name : c->volfile;
    char *name =
        path ? mem_printf(LOG_DIR "/%s%s.log", c->mount_point || !c->brick_name ? "" : "bricks/", path + (*path == '/'))
             : mem_printf(LOG_DIR "/%s.log", c->process_name ? c->process_name : c->program);
    size_t from = strlen(LOG_DIR "/") + (c->mount_point || !c->brick_name ? 0 : strlen("bricks/"));

    for (size_t i = from; name && name[i]; i++) {
        if (name[i] == '/')
            name[i] = '-';
    }
    return name;
}

/* An unnamed log that cannot be written (an ordinary user) is done without; a named one is an error. */
static int open_log(struct cmdline *c, struct log **ret_log, struct error *err)
{
    enum log_level level = LOG_INFO;
    int r;

    if (c->debug)
        level = LOG_DEBUG;
    if (c->log_level)
        (void)log_level_parse(c->log_level, &level); /* checked by cmdline_parse() */
    if (c->debug && !c->log_file)
        return log_open("-", level, ret_log, err);
    if (!c->log_file) {
        (void)mkdir(LOG_DIR, 0755);
        if (!c->mount_point && c->brick_name)
            (void)mkdir(LOG_DIR "/bricks", 0755);
        c->log_file = default_log(c);
        if (!c->log_file)
            return error_set(err, -ENOMEM, "out of memory");
        r = log_open(c->log_file, level, ret_log, NULL);
        if (r == 0)
            return 0;
        (void)fprintf(stderr, "%s: no log is kept: %s: %s (--log-file=FILE keeps one)\n", c->program, c->log_file,
                      strerror(-r));
        *ret_log = log_discard();
        return 0;
    }
    return log_open(c->log_file, level, ret_log, err);
}

static void raise_limits(const struct cmdline *c)
{
    struct rlimit files;
    int fd;

    /* Bricks hold a descriptor for every file a client has open. */
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = geteuid() == 0 ? FILES_MAX : files.rlim_max;
        files.rlim_max = MAX(files.rlim_max, files.rlim_cur);
        if (setrlimit(RLIMIT_NOFILE, &files) < 0 && getrlimit(RLIMIT_NOFILE, &files) == 0) {
            files.rlim_cur = files.rlim_max;
            (void)setrlimit(RLIMIT_NOFILE, &files); /* the old limit then */
        }
    }
    if (!c->has_oom_score_adj)
        return;
    fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)dprintf(fd, "%d\n", (int)c->oom_score_adj);
        (void)close(fd);
    }
}

static int check_mount_point(const struct cmdline *c, struct error *err)
{
    struct stat st;

    if (!c->mount_point)
        return 0;
    if (stat(c->mount_point, &st) < 0)
        return errno == ENOTCONN
                   ? error_set(err, -ENOTCONN,
                               "mount point %s belongs to a mount whose process is gone; \"umount -l %s\"",
                               c->mount_point, c->mount_point)
                   : error_set(err, -errno, "mount point %s: %s", c->mount_point, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return error_set(err, -ENOTDIR, "mount point %s is not a directory", c->mount_point);
    if (strcmp(c->mount_point, "/") == 0)
        return error_set(err, -EBUSY, "cannot mount over root");
    return 0;
}

static int run(struct cmdline *c)
{
    struct daemon_link link = { -1 };
    struct error err = { "" };
    struct log *log = NULL;
    int pid_fd = -1, code;

    if (check_mount_point(c, &err) < 0 || open_log(c, &log, &err) < 0)
        return fail(c, &err);
    if (daemon_start(&link, c->no_daemon, c->program, &err) < 0) {
        daemon_failed(&link, c->program, &err);
        return 1;
    }
    if (c->pid_file && pid_file_take(c->pid_file, &pid_fd, &err) < 0) {
        daemon_failed(&link, c->program, &err);
        return 1;
    }
    raise_limits(c);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they explain better */
    daemon_explain_crashes();
#endif
    code = process_run(c, log, &link);
    pid_file_remove(c->pid_file, pid_fd);
    log_close(log);
    return code;
}

int main(int argc, char **argv)
{
    struct cmdline c;
    struct error err = { "" };
    int code = 0;

    if (cmdline_parse(&c, argc, argv, &err) < 0) {
        code = fail(&c, &err);
    } else if (c.wants_help) {
        cmdline_print_help(c.program);
    } else if (c.wants_version) {
        /* Scripts of the field look for the word and a number in the first line. */
        if (cmdline_is_compat(&c))
            printf("glusterfs 10.3 (mortar " MORTAR_VERSION ")\n");
        else
            printf("mortarfs " MORTAR_VERSION "\n");
    } else if (c.print) {
        puts(c.print);
    } else {
        code = run(&c);
    }
    cmdline_release(&c);
    return code;
}
