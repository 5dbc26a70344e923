/* Mounting and unmounting: mount(2) for root, the helper fusermount3 for others (it is set-user-id, opens the device,
 * checks /etc/fuse.conf, mounts, and sends the descriptor through the socket named by _FUSE_COMMFD). All of it runs on
 * the pool: it may block, and the helper is another process. */
#include "mount/fuse/fuse_internal.h"
#include <ctype.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#define HELPER            "fusermount3"
#define READ_AHEAD_KIB    1024
#define OPTIONS_MAX_BYTES 4096

extern char **environ;

struct mount_job {
    const char *mount_point;
    const char *source, *type;
    char *data; /* options for the kernel or the helper */
    unsigned long flags;
    int dev_fd, result;
    struct error err;
};

static const struct {
    const char *word;
    unsigned long set, clear;
} flag_words[] = {
    { "ro", MS_RDONLY, 0 },
    { "rw", 0, MS_RDONLY },
    { "nosuid", MS_NOSUID, 0 },
    { "suid", 0, MS_NOSUID },
    { "nodev", MS_NODEV, 0 },
    { "dev", 0, MS_NODEV },
    { "noexec", MS_NOEXEC, 0 },
    { "exec", 0, MS_NOEXEC },
    { "sync", MS_SYNCHRONOUS, 0 },
    { "async", 0, MS_SYNCHRONOUS },
    { "dirsync", MS_DIRSYNC, 0 },
    { "noatime", MS_NOATIME, 0 },
    { "atime", 0, MS_NOATIME },
    { "nodiratime", MS_NODIRATIME, 0 },
    { "diratime", 0, MS_NODIRATIME },
    { "relatime", MS_RELATIME, 0 },
    { "norelatime", 0, MS_RELATIME },
    { "strictatime", MS_STRICTATIME, 0 },
    { "nostrictatime", 0, MS_STRICTATIME },
    { "lazyatime", MS_LAZYTIME, 0 },
    { "nolazyatime", 0, MS_LAZYTIME },
    { "mand", 0, 0 },
    { "nomand", 0, 0 },
    { "defaults", 0, 0 },
    { "auto_unmount", 0, 0 },
};

static bool take_flag(const char *word, unsigned long *flags)
{
    for (size_t i = 0; i < ARRAY_SIZE(flag_words); i++) {
        if (strcmp(word, flag_words[i].word) != 0)
            continue;
        *flags = (*flags & ~flag_words[i].clear) | flag_words[i].set;
        return true;
    }
    return false;
}

static int add_option(char **data, const char *word)
{
    char *longer = mem_printf("%s%s%s", *data, **data ? "," : "", word);

    if (!longer)
        return -ENOMEM;
    mem_free(*data);
    *data = longer;
    return strlen(longer) < OPTIONS_MAX_BYTES ? 0 : -E2BIG;
}

/* Words of option fuse-mountopts: known flags into *flags (root) or all into the text (helper). Commas inside quotes
 * (SELinux contexts) do not separate. */
static int add_words(const char *words, bool for_kernel, unsigned long *flags, char **data)
{
    while (words && *words) {
        size_t len = 0;
        bool in_quotes = false;

        for (; words[len] && (in_quotes || words[len] != ','); len++)
            in_quotes ^= words[len] == '"';
        SCOPED_FREE char *word = mem_strndup(words, len);
        if (!word)
            return -ENOMEM;
        words += len + (words[len] == ',');
        if (!*word || (for_kernel && take_flag(word, flags)))
            continue;
        int r = add_option(data, word);
        if (r < 0)
            return r;
    }
    return 0;
}

static void mount_as_root(void *arg)
{
    struct mount_job *j = arg;
    char options[128];
    struct stat st;
    SCOPED_FREE char *all = NULL;

    if (stat(j->mount_point, &st) < 0) {
        j->result = error_set(&j->err, -errno, "mount point %s: %s", j->mount_point, strerror(errno));
        return;
    }
    j->dev_fd = open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (j->dev_fd < 0) {
        j->result =
            error_set(&j->err, -errno, "/dev/fuse: %s (is the kernel module \"fuse\" loaded?)", strerror(errno));
        return;
    }
    (void)snprintf(options, sizeof(options), "fd=%d,rootmode=%o,user_id=%u,group_id=%u", j->dev_fd, st.st_mode & S_IFMT,
                   getuid(), getgid());
    all = mem_printf("%s%s%s", options, *j->data ? "," : "", j->data);
    if (!all) {
        j->result = -ENOMEM;
        return;
    }
    if (mount(j->source, j->mount_point, j->type, j->flags, all) < 0)
        j->result = error_set(&j->err, -errno, "mounting %s on %s: %s (options %s)", j->source, j->mount_point,
                              strerror(errno), all);
}

/* The descriptor the helper sends, or -errno. */
static int receive_fd(int sock)
{
    char byte, control[CMSG_SPACE(sizeof(int))];
    struct iovec iov = { &byte, 1 };
    struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control) };
    struct cmsghdr *c;
    ssize_t n;
    int fd;

    do
        n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    c = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
    if (!c || c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(sizeof(int)))
        return -EIO;
    memcpy(&fd, CMSG_DATA(c), sizeof(fd));
    return fd;
}

/* Starts the helper with standard error in a pipe, the socket as descriptor comm_fd. */
static int start_helper(char *const argv[], int comm_fd, int error_fd, pid_t *ret_pid)
{
    char comm[32];
    posix_spawn_file_actions_t actions;
    char *env[2] = { comm, NULL };
    int r;

    (void)snprintf(comm, sizeof(comm), "_FUSE_COMMFD=%d", comm_fd);
    r = posix_spawn_file_actions_init(&actions);
    if (r)
        return -r;
    r = posix_spawn_file_actions_adddup2(&actions, error_fd, STDERR_FILENO);
    if (!r)
        r = posix_spawnp(ret_pid, HELPER, &actions, NULL, argv, env);
    (void)posix_spawn_file_actions_destroy(&actions);
    return -r;
}

static void read_helper_text(int fd, char *text, size_t room)
{
    size_t used = 0;
    ssize_t n;

    while (used < room - 1 && (n = read(fd, text + used, room - 1 - used)) > 0)
        used += (size_t)n;
    while (used > 0 && isspace((unsigned char)text[used - 1]))
        used--;
    text[used] = 0;
}

static int helper_failed(struct mount_job *j, int r, const char *text)
{
    if (r == -ENOENT)
        return error_set(&j->err, r, "mounting without root needs the program %s (package fuse3)", HELPER);
    if (strstr(text, "user_allow_other"))
        return error_set(
            &j->err, -EPERM,
            "mounting %s: %s; add the line \"user_allow_other\" to /etc/fuse.conf or leave allow_other out",
            j->mount_point, text);
    if (strstr(text, "/dev/fuse"))
        return error_set(&j->err, -EACCES, "mounting %s: %s; users must be able to open it (chmod 666 /dev/fuse)",
                         j->mount_point, text);
    return error_set(&j->err, r < 0 && r != -EIO ? r : -EPERM, "mounting %s: %s", j->mount_point,
                     *text ? text : "the helper " HELPER " failed");
}

static void mount_by_helper(void *arg)
{
    struct mount_job *j = arg;
    char *argv[] = { (char *)HELPER, (char *)"-o", j->data, (char *)"--", (char *)j->mount_point, NULL };
    int sock[2] = { -1, -1 }, pipe_fd[2] = { -1, -1 }, status = 0, r;
    char text[256] = "";
    pid_t pid = -1;

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, sock) < 0 || pipe2(pipe_fd, O_CLOEXEC) < 0) {
        r = -errno;
        goto out;
    }
    (void)fcntl(sock[0], F_SETFD, FD_CLOEXEC);
    r = start_helper(argv, sock[1], pipe_fd[1], &pid);
    (void)close(sock[1]);
    (void)close(pipe_fd[1]);
    sock[1] = pipe_fd[1] = -1;
    if (r == 0)
        r = receive_fd(sock[0]);
    if (pid > 0) {
        read_helper_text(pipe_fd[0], text, sizeof(text));
        (void)waitpid(pid, &status, 0); /* what it did shows in the descriptor */
    }
out:
    for (int i = 0; i < 2; i++) {
        if (sock[i] >= 0)
            (void)close(sock[i]);
        if (pipe_fd[i] >= 0)
            (void)close(pipe_fd[i]);
    }
    if (r < 0) {
        j->result = helper_failed(j, r, text);
        return;
    }
    j->dev_fd = r;
    if (fcntl(r, F_SETFL, O_NONBLOCK) < 0)
        j->result = -errno;
}

/* Options for the helper: it wants source and type as words and knows the flags by name. */
static int helper_words(struct fuse *f, char **data)
{
    SCOPED_FREE char *name = NULL;
    char *escaped = mem_zalloc(2 * strlen(f->source) + 1);
    size_t n = 0;
    int r;

    if (!escaped)
        return -ENOMEM;
    for (const char *s = f->source; *s; s++) {
        if (*s == ',' || *s == '\\')
            escaped[n++] = '\\';
        escaped[n++] = *s;
    }
    name = mem_printf("fsname=%s,subtype=%s", escaped, f->subtype);
    mem_free(escaped);
    if (!name)
        return -ENOMEM;
    r = add_option(data, name);
    if (r == 0 && f->read_only)
        r = add_option(data, "ro");
    return r;
}

static int collect_options(struct mount *m, struct mount_job *j)
{
    struct fuse *f = mount_options(m);
    char text[64];
    int r;

    j->data = mem_strdup("");
    if (!j->data)
        return -ENOMEM;
    if (m->by_helper) {
        r = helper_words(f, &j->data);
        if (r < 0)
            return r;
    }
    (void)snprintf(text, sizeof(text), "default_permissions,max_read=%u", FUSE_MAX_WRITE);
    r = add_option(&j->data, text);
    if (r == 0 && f->allow_other && !m->by_helper)
        r = add_option(&j->data, "allow_other");
    if (f->read_only)
        j->flags |= MS_RDONLY;
    /* As any mount by other than root. */
    if (m->by_helper)
        j->flags |= MS_NOSUID | MS_NODEV;
    return r < 0 ? r : add_words(f->mount_options, !m->by_helper, &j->flags, &j->data);
}

FIBER int kernel_mount(struct mount *m, struct error *err)
{
    struct fuse *f = mount_options(m);
    SCOPED_FREE struct mount_job *j = NEW(struct mount_job);
    SCOPED_FREE char *type = mem_printf("fuse.%s", f->subtype);
    int r;

    m->by_helper = geteuid() != 0;
    m->mount_point = mem_strdup(f->mount_point);
    if (!j || !type || !m->mount_point)
        return -ENOMEM;
    *j = (struct mount_job) { .mount_point = m->mount_point, .source = f->source, .type = type, .dev_fd = -1 };
    r = collect_options(m, j);
    if (r == 0) {
        env_pool_run(m->env, m->by_helper ? mount_by_helper : mount_as_root, j);
        r = j->result;
        m->dev_fd = j->dev_fd;
        m->is_mounted = r == 0;
        if (r < 0 && err)
            *err = j->err;
    }
    mem_free(j->data);
    return r;
}

static void unmount_as_root(void *arg)
{
    struct mount_job *j = arg;

    if (umount2(j->mount_point, MNT_DETACH) < 0)
        j->result = -errno;
}

static void unmount_by_helper(void *arg)
{
    struct mount_job *j = arg;
    char *argv[] = { (char *)HELPER, (char *)"-u",           (char *)"-q", (char *)"-z",
                     (char *)"--",   (char *)j->mount_point, NULL };
    int status = 0;
    pid_t pid;
    int r = posix_spawnp(&pid, HELPER, NULL, NULL, argv, environ);

    if (r == 0)
        (void)waitpid(pid, &status, 0);
    j->result = r ? -r : status ? -EPERM : 0;
}

FIBER void kernel_unmount(struct mount *m)
{
    SCOPED_FREE struct mount_job *j = NEW(struct mount_job);

    if (!j || !m->is_mounted || m->is_ended)
        return;
    m->is_mounted = false;
    j->mount_point = m->mount_point;
    env_pool_run(m->env, m->by_helper ? unmount_by_helper : unmount_as_root, j);
    if (j->result < 0 && j->result != -EINVAL) /* EINVAL: it is not mounted any more */
        TLOG(m->me, LOG_WARNING, "unmount-failed", "mountpoint=%s err=%s", m->mount_point, errno_name(j->result));
}

static void raise_read_ahead(void *arg)
{
    struct mount_job *j = arg;
    char path[128], text[16];
    struct stat st;
    int fd, n;

    if (stat(j->mount_point, &st) < 0)
        return;
    (void)snprintf(path, sizeof(path), "/sys/class/bdi/%u:%u/read_ahead_kb", major(st.st_dev), minor(st.st_dev));
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    n = snprintf(text, sizeof(text), "%d\n", READ_AHEAD_KIB);
    j->result = write(fd, text, (size_t)n) == n ? 0 : -EIO;
    (void)close(fd);
}

FIBER void kernel_raise_read_ahead(struct mount *m)
{
    SCOPED_FREE struct mount_job *j = NEW(struct mount_job);

    if (!j || m->by_helper)
        return;
    j->mount_point = m->mount_point;
    env_pool_run(m->env, raise_read_ahead, j);
}
