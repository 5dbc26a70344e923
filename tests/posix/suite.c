/* The list of cases, checks and helpers. What a test process knows of itself (the pipe to the runner, the features)
 * is kept in `me`: it is set up once per process by the runner, before the case begins. */
#include "suite.h"

#include "suite_internal.h"

#include <dirent.h>
#include <grp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

static struct {
    struct posix_case *first, **end;
    int report_fd;     /* a failing or skipping process writes its reason here */
    uint32_t features; /* bit per feature that the file system has */
    uint32_t demanded; /* bit per feature that must not be missing */
    const char *other; /* this directory through another mount */
} me = { .end = &me.first, .report_fd = STDERR_FILENO };

static const char *const feature_names[FEATURE_COUNT] = {
    [FEATURE_ACL] = "acl",
    [FEATURE_USER_XATTR] = "user-xattr",
    [FEATURE_TRUSTED_XATTR] = "trusted-xattr",
    [FEATURE_BIG_XATTR] = "big-xattr",
    [FEATURE_DEVICES] = "devices",
    [FEATURE_FALLOCATE] = "fallocate",
    [FEATURE_PUNCH] = "punch",
    [FEATURE_ZERO_RANGE] = "zero-range",
    [FEATURE_SEEK_HOLE] = "seek-hole",
    [FEATURE_COPY_FILE_RANGE] = "copy-file-range",
    [FEATURE_DIRECT] = "direct",
    [FEATURE_RENAME_FLAGS] = "rename-flags",
    [FEATURE_TMPFILE] = "tmpfile",
    [FEATURE_OFD_LOCKS] = "ofd-locks",
    [FEATURE_SEPARATE_LOCKS] = "separate-locks",
    [FEATURE_SHARED_MMAP] = "shared-mmap",
    [FEATURE_DIR_SEEK] = "dir-seek",
    [FEATURE_ATIME] = "atime",
    [FEATURE_TIME_BACK] = "time-back",
    [FEATURE_IDS] = "ids",
};

/* ---- Cases ---- */

void suite_add(struct posix_case *c)
{
    *me.end = c;
    me.end = &c->next;
}

void suite_add_row(const char *topic, const char *group, const char *row, void (*run)(const void *arg), const void *arg)
{
    struct posix_case *c = calloc(1, sizeof(*c));
    char *name = NULL;

    if (!c || asprintf(&name, "%s:%s", group, row) < 0)
        abort();
    *c = (struct posix_case) { topic, name, run, arg, NULL };
    suite_add(c);
}

struct posix_case *suite_cases(void)
{
    return me.first;
}

void suite_begin(int report_fd, uint32_t features, uint32_t demanded, const char *other)
{
    me.other = other;
    me.report_fd = report_fd;
    me.features = features;
    me.demanded = demanded;
}

const char *suite_feature_name(enum feature feature)
{
    return feature_names[feature];
}

/* ---- Ends of a case ---- */

static void report(const char *format, va_list args)
{
    char line[1024];
    int size = vsnprintf(line, sizeof(line) - 1, format, args);

    if (size < 0)
        size = 0;
    if ((size_t)size > sizeof(line) - 2)
        size = sizeof(line) - 2;
    line[size++] = '\n';
    (void)!write(me.report_fd, line, (size_t)size); /* the exit status tells the result even without the reason */
}

static void report_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void report_line(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    report(format, args);
    va_end(args);
}

void suite_fail(const char *file, int line, const char *format, ...)
{
    const char *base = strrchr(file, '/');
    char text[900];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    report_line("%s:%d: %s", base ? base + 1 : file, line, text);
    _exit(EXIT_FAILED);
}

void suite_skip(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    report(format, args);
    va_end(args);
    _exit(EXIT_SKIPPED);
}

void suite_need(enum feature feature)
{
    if (me.features & (1U << feature))
        return;
    if (me.demanded & (1U << feature))
        suite_fail(HERE, "the file system lacks %s, which was demanded", feature_names[feature]);
    suite_skip("the file system lacks %s", feature_names[feature]);
}

/* ---- Checks ---- */

static const char *errno_name(int err)
{
    const char *name = strerrorname_np(err);

    return err == 0 ? "success" : name ? name : "an unknown error";
}

long check_ok(long result, const char *text, const char *file, int line)
{
    int err = errno;

    if (result == -1)
        suite_fail(file, line, "%s gave %s", text, errno_name(err));
    return result;
}

void check_fails(int err, long result, const char *text, const char *file, int line)
{
    int seen = errno;

    if (result != -1)
        suite_fail(file, line, "%s gave %ld, expected %s", text, result, errno_name(err));
    if (seen != err)
        suite_fail(file, line, "%s gave %s, expected %s", text, errno_name(seen), errno_name(err));
}

void check_eq(long long have, long long want, const char *text, const char *file, int line)
{
    if (have != want)
        suite_fail(file, line, "%s is %lld (0%llo), expected %lld (0%llo)", text, have, (unsigned long long)have, want,
                   (unsigned long long)want);
}

void check_str_eq(const char *have, const char *want, const char *text, const char *file, int line)
{
    if (strcmp(have, want) != 0)
        suite_fail(file, line, "%s is \"%.200s\", expected \"%.200s\"", text, have, want);
}

void check_bytes_eq(const void *have, const void *want, size_t size, const char *text, const char *file, int line)
{
    const uint8_t *h = have, *w = want;

    for (size_t i = 0; i < size; i++)
        if (h[i] != w[i])
            suite_fail(file, line, "byte %zu of %s is %02x, expected %02x", i, text, h[i], w[i]);
}

/* ---- Other users ---- */

static void pass_on(pid_t child)
{
    int status;
    pid_t r;

    do
        r = waitpid(child, &status, 0);
    while (r < 0 && errno == EINTR);
    if (r != child)
        suite_fail(HERE, "waitpid: %s", errno_name(errno));
    if (WIFSIGNALED(status))
        suite_fail(HERE, "a child process was killed by signal %d", WTERMSIG(status));
    if (WEXITSTATUS(status) != 0)
        _exit(WEXITSTATUS(status)); /* the child has reported */
}

static pid_t fork_bound(void) /* the child ends with its parent */
{
    pid_t child = fork();

    if (child < 0)
        suite_fail(HERE, "fork: %s", errno_name(errno));
    if (child == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    return child;
}

bool suite_enter(uid_t uid, gid_t gid, size_t count, const gid_t *groups)
{
    pid_t child;

    if (uid != 0)
        NEEDS(FEATURE_IDS);
    child = fork_bound();
    if (child != 0) {
        pass_on(child);
        return false;
    }
    if (uid == 0 && gid == 0 && count == 0)
        return true;
    if (setgroups(count, groups) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
        suite_fail(HERE, "becoming uid %u gid %u with %zu groups: %s", uid, gid, count, errno_name(errno));
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* the change of user has cleared it */
    return true;
}

void suite_leave(void)
{
    _exit(EXIT_PASSED);
}

bool suite_left(void)
{
    suite_leave();
}

bool steps_fork(struct steps *s)
{
    OK(pipe2(s->to_child, O_CLOEXEC));
    OK(pipe2(s->to_parent, O_CLOEXEC));
    s->child = fork_bound();
    close(s->child ? s->to_child[0] : s->to_child[1]);
    close(s->child ? s->to_parent[1] : s->to_parent[0]);
    return s->child == 0;
}

void steps_tell(struct steps *s)
{
    EQ(write(s->child ? s->to_child[1] : s->to_parent[1], "x", 1), 1);
}

void steps_wait(struct steps *s)
{
    char c;

    if (read(s->child ? s->to_parent[0] : s->to_child[0], &c, 1) == 1)
        return;
    if (s->child)
        pass_on(s->child);
    suite_fail(HERE, "the other process ended early");
}

void steps_end(struct steps *s)
{
    pass_on(s->child);
    close(s->to_child[1]);
    close(s->to_parent[0]);
}

/* ---- Files ---- */

void make_file(const char *path)
{
    make_file_mode(path, 0644);
}

void make_file_mode(const char *path, mode_t mode)
{
    int fd = (int)OK(open(path, O_CREAT | O_EXCL | O_WRONLY, 0600));

    OK(fchmod(fd, mode));
    OK(close(fd));
}

/* Closing a file that was just made need not wait for its data (flush-behind), so a case that looks through another
 * mount must. */
static void close_made(int fd)
{
    if (me.other)
        OK(fsync(fd));
    OK(close(fd));
}

void make_file_with(const char *path, const char *text)
{
    int fd = (int)OK(open(path, O_CREAT | O_EXCL | O_WRONLY, 0644));

    EQ(write(fd, text, strlen(text)), strlen(text));
    close_made(fd);
}

void make_dir(const char *path)
{
    OK(mkdir(path, 0755));
}

void make_dir_mode(const char *path, mode_t mode)
{
    OK(mkdir(path, 0700));
    OK(chmod(path, mode));
}

uint8_t pattern_byte(uint64_t offset)
{
    uint64_t x = (offset / 8 + 1) * UINT64_C(0x9e3779b97f4a7c15);

    x ^= x >> 29;
    return (uint8_t)(x >> (offset % 8 * 8)) | 1; /* never zero, so that holes stand out */
}

static uint8_t chunk[65536];

void make_pattern(const char *path, size_t size)
{
    int fd = (int)OK(open(path, O_CREAT | O_EXCL | O_WRONLY, 0644));

    for (size_t at = 0; at < size;) {
        size_t n = size - at < sizeof(chunk) ? size - at : sizeof(chunk);

        for (size_t i = 0; i < n; i++)
            chunk[i] = pattern_byte(at + i);
        EQ(write(fd, chunk, n), n);
        at += n;
    }
    close_made(fd);
}

void check_text(const char *path, const char *text, const char *file, int line)
{
    static char have[4096];
    int fd = open(path, O_RDONLY);
    ssize_t size;

    if (fd < 0)
        suite_fail(file, line, "opening %s: %s", path, errno_name(errno));
    size = read(fd, have, sizeof(have) - 1);
    if (size < 0)
        suite_fail(file, line, "reading %s: %s", path, errno_name(errno));
    have[size] = 0;
    close(fd);
    if ((size_t)size != strlen(text) || memcmp(have, text, (size_t)size) != 0)
        suite_fail(file, line, "%s holds \"%.200s\" (%zd bytes), expected \"%.200s\" (%zu bytes)", path, have, size,
                   text, strlen(text));
}

static void check_bytes(int fd, off_t from, off_t to, int value, const char *file, int line)
{
    while (from < to) {
        size_t n = to - from < (off_t)sizeof(chunk) ? (size_t)(to - from) : sizeof(chunk);
        ssize_t r = pread(fd, chunk, n, from);

        if (r <= 0)
            suite_fail(file, line, "pread at %lld gave %zd (%s)", (long long)from, r, errno_name(r < 0 ? errno : 0));
        for (ssize_t i = 0; i < r; i++) {
            uint8_t want = value < 0 ? pattern_byte((uint64_t)from + (uint64_t)i) : (uint8_t)value;

            if (chunk[i] != want)
                suite_fail(file, line, "byte at %lld is %02x, expected %02x", (long long)from + i, chunk[i], want);
        }
        from += r;
    }
}

void check_range(int fd, off_t from, off_t to, uint8_t value, const char *file, int line)
{
    check_bytes(fd, from, to, value, file, line);
}

void check_pattern(int fd, off_t from, off_t to, const char *file, int line)
{
    check_bytes(fd, from, to, -1, file, line);
}

struct stat stat_of(const char *path)
{
    struct stat st;

    if (lstat(path, &st) < 0)
        suite_fail(HERE, "lstat of %.300s: %s", path, errno_name(errno));
    return st;
}

struct stat stat_fd(int fd)
{
    struct stat st;

    OK(fstat(fd, &st));
    return st;
}

const char *suite_other(const char *path)
{
    static char paths[4][PATH_MAX];
    static unsigned next;
    char *full = paths[next++ % 4];

    snprintf(full, PATH_MAX, "%s/%s", me.other, path);
    return full;
}

const char *name_of(size_t length)
{
    static char name[8192];

    for (size_t i = 0; i < length; i++)
        name[i] = (char)('a' + i % 26);
    name[length] = 0;
    return name;
}

const char *path_of(size_t length, const char *last)
{
    static char path[8192];
    size_t tail = last ? strlen(last) : 1, at = 0;

    if ((length - tail) % 2)
        path[at++] = '.'; /* ".//" is as good as "./" and makes the count odd */
    for (bool dot = at == 0; at < length - tail; dot = !dot)
        path[at++] = dot ? '.' : '/';
    if (at && path[at - 1] == '.')
        path[at - 1] = '/';
    memcpy(path + at, last ? last : ".", tail);
    path[at + tail] = 0;
    return path;
}

/* ---- Time ---- */

int time_cmp(struct timespec a, struct timespec b)
{
    if (a.tv_sec != b.tv_sec)
        return a.tv_sec < b.tv_sec ? -1 : 1;
    return a.tv_nsec == b.tv_nsec ? 0 : a.tv_nsec < b.tv_nsec ? -1 : 1;
}

double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void tick(void)
{
    struct timespec start, now;
    const struct timespec pause = { 0, 500000 };
    double deadline_s = now_s() + 5;

    for (int moves = 0; moves < 2; moves++) {
        clock_gettime(CLOCK_REALTIME_COARSE, &start);
        do {
            nanosleep(&pause, NULL);
            clock_gettime(CLOCK_REALTIME_COARSE, &now);
            THAT(now_s() < deadline_s);
        } while (time_cmp(start, now) == 0);
    }
}

static void check_time(const char *path, char kind, struct timespec before, struct timespec after, const char *which,
                       const char *text, const char *file, int line)
{
    int moved = time_cmp(after, before);

    if (strchr(which, kind) && moved <= 0)
        suite_fail(file, line, "%ctime of %s went from %ld.%09ld to %ld.%09ld, expected it to move on by %s", kind,
                   path, before.tv_sec, before.tv_nsec, after.tv_sec, after.tv_nsec, text);
    if (!strchr(which, kind) && moved != 0 && kind != 'a')
        suite_fail(file, line, "%ctime of %s went from %ld.%09ld to %ld.%09ld, expected it to stay through %s", kind,
                   path, before.tv_sec, before.tv_nsec, after.tv_sec, after.tv_nsec, text);
}

void check_times(const char *path, struct stat before, const char *which, const char *text, const char *file, int line)
{
    struct stat after = stat_of(path);

    check_time(path, 'a', before.st_atim, after.st_atim, which, text, file, line);
    check_time(path, 'm', before.st_mtim, after.st_mtim, which, text, file, line);
    check_time(path, 'c', before.st_ctim, after.st_ctim, which, text, file, line);
}
