/* core/log.c - lines are put together in the log's own buffer and written with one write(2), so that several processes
 * may append to one file. */
#include "core/log.h"
#include "core/env_internal.h"
#include "core/error.h"
#include "core/mem.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <strings.h>
#include <unistd.h>

#define LINE_BYTES     4096
#define LIMIT_SLOTS    64 /* (event, place) pairs remembered; a clash forgets the older one */
#define LIMIT_BURST    20
#define LIMIT_PERIOD_S 10

struct limit {
    uint64_t key; /* hash of event and place; 0: unused */
    uint64_t since_ns;
    uint32_t lines, left_out;
};

struct log {
    enum log_level level;
    int fd;
    bool is_discard;
    char *path; /* NULL: stderr */
    struct env *env;
    struct limit limits[LIMIT_SLOTS];
    char line[LINE_BYTES];
};

static const char level_letters[] = { [LOG_NONE] = '-', [LOG_CRITICAL] = 'C', [LOG_ERROR] = 'E', [LOG_WARNING] = 'W',
                                      [LOG_INFO] = 'I', [LOG_DEBUG] = 'D',    [LOG_TRACE] = 'T' };

static int open_file(const char *path, int *ret_fd)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0600);

    if (fd < 0)
        return -errno;
    *ret_fd = fd;
    return 0;
}

int log_open(const char *path, enum log_level level, struct log **ret_log, struct error *err)
{
    bool is_stderr = !path || strcmp(path, "-") == 0;
    struct log *l = NEW(struct log);

    if (!l)
        return error_set(err, -ENOMEM, "out of memory for the log");
    l->level = level;
    l->fd = STDERR_FILENO;
    if (!is_stderr) {
        l->path = mem_strdup(path);
        int r = l->path ? open_file(path, &l->fd) : -ENOMEM;
        if (r < 0) {
            mem_free(l->path);
            mem_free(l);
            return error_set(err, r, "cannot open log file \"%s\" (%s); name another with --log-file", path,
                             errno_name(r));
        }
    }
    *ret_log = l;
    return 0;
}

struct log *log_discard(void)
{
    static struct log discard = { .level = LOG_NONE, .fd = -1, .is_discard = true };

    return &discard;
}

void log_close(struct log *l)
{
    if (!l || l->is_discard)
        return;
    if (l->path)
        close(l->fd);
    mem_free(l->path);
    mem_free(l);
}

int log_reopen(struct log *l)
{
    int fd = -1;

    if (!l->path)
        return 0;
    int r = open_file(l->path, &fd);
    if (r < 0)
        return r;
    close(l->fd);
    l->fd = fd;
    return 0;
}

void log_set_level(struct log *l, enum log_level level)
{
    if (!l->is_discard)
        l->level = level;
}

enum log_level log_level(const struct log *l)
{
    return l->level;
}

int log_level_parse(const char *text, enum log_level *ret_level)
{
    static const char *const names[] = {
        [LOG_NONE] = "NONE", [LOG_CRITICAL] = "CRITICAL", [LOG_ERROR] = "ERROR", [LOG_WARNING] = "WARNING",
        [LOG_INFO] = "INFO", [LOG_DEBUG] = "DEBUG",       [LOG_TRACE] = "TRACE"
    };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (strcasecmp(text, names[i]) == 0) {
            *ret_level = (enum log_level)i;
            return 0;
        }
    }
    return -EINVAL;
}

void log_set_env(struct log *l, struct env *env)
{
    if (!l->is_discard)
        l->env = env;
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = (hash ^ (uint8_t)*text) * 0x100000001b3; /* FNV-1a */
    return (hash ^ 0xff) * 0x100000001b3;
}

/* May another line of this event and place be written? *ret_left_out: how many were not since the last one. */
static bool passes_limit(struct log *l, const char *place, const char *event, uint32_t *ret_left_out)
{
    uint64_t now_ns = l->env ? env_now_ns(l->env) : clock_monotonic_ns();
    uint64_t key = hash_text(hash_text(0xcbf29ce484222325, event), place) | 1;
    struct limit *limit = &l->limits[(key >> 32) % LIMIT_SLOTS];

    *ret_left_out = 0;
    if (limit->key != key)
        *limit = (struct limit) { .key = key, .since_ns = now_ns };
    if (now_ns - limit->since_ns >= (uint64_t)LIMIT_PERIOD_S * 1000000000) {
        *ret_left_out = limit->left_out;
        *limit = (struct limit) { .key = key, .since_ns = now_ns };
    }
    if (limit->lines >= LIMIT_BURST) {
        limit->left_out++;
        return false;
    }
    limit->lines++;
    return true;
}

static size_t put_time(struct log *l)
{
    struct timespec now;
    struct tm tm;

    if (l->env)
        env_wall_time(l->env, &now);
    else
        clock_wall_time(&now);
    gmtime_r(&now.tv_sec, &tm);
    size_t n = strftime(l->line, LINE_BYTES, "[%Y-%m-%d %H:%M:%S", &tm);
    return n + (size_t)snprintf(l->line + n, LINE_BYTES - n, ".%06ld +0000] ", now.tv_nsec / 1000);
}

/* Adds printf output at `at`, cut at the end of the buffer; one byte stays for the newline. Returns the new end. */
static size_t put_text(struct log *l, size_t at, const char *fmt, va_list args)
{
    size_t room = LINE_BYTES - 1 - at;
    int n = vsnprintf(l->line + at, room, fmt, args);

    return n < 0 ? at : at + MIN((size_t)n, room - 1);
}

static PRINTF_LIKE(3, 4) size_t put(struct log *l, size_t at, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    at = put_text(l, at, fmt, args);
    va_end(args);
    return at;
}

void log_line(struct log *l, enum log_level level, const char *place, const char *event, const char *fmt, ...)
{
    uint32_t left_out;

    if (level > l->level || level == LOG_NONE || !passes_limit(l, place, event, &left_out))
        return;
    size_t at = put_time(l);
    at = put(l, at, "%c [%s] 0-%s: ", level_letters[level], event, place);
    size_t text_at = at;
    va_list args;
    va_start(args, fmt);
    at = put_text(l, at, fmt, args);
    va_end(args);
    if (left_out > 0)
        at = put(l, at, " left_out=%u", left_out);
    for (size_t i = text_at; i < at; i++)
        if ((uint8_t)l->line[i] < ' ' || l->line[i] == 0x7f)
            l->line[i] = ' '; /* one event, one line, whatever a file is called */
    l->line[at++] = '\n';
    ssize_t written = write(l->fd, l->line, at);
    (void)written; /* nobody is left to tell */
}

const char *errno_name(int err)
{
    const char *name = strerrorname_np(err < 0 ? -err : err);

    return name ? name : "EUNKNOWN";
}
