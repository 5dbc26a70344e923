/* core/log.h - one event, one line: level, stable event name, key=value.
 *
 *     [2026-11-30 18:17:26.356960 +0000] W [child-down] 0-web-replicate-0: child=web-client-1 err=ENOTCONN
 *
 * ERROR: someone must act. WARNING: less redundancy or speed. INFO: a state changed. DEBUG and TRACE: off by default
 * and free when off. Each event name is limited to `burst` lines per 10 s and place; the next line that passes says how
 * many were left out. Usable from the loop thread only.
 */
#pragma once

#include "core/base.h"

enum log_level { LOG_NONE, LOG_CRITICAL, LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DEBUG, LOG_TRACE };

struct log;
struct env;

/* To a file (appended; made with its directories' permissions as they are) or, path NULL or "-", to stderr. `level` is
 * the most talkative one written. 0 or -errno with a sentence in err. */
struct error;
int log_open(const char *path, enum log_level level, struct log **ret_log, struct error *err);
struct log *log_discard(void); /* a log that drops everything, for tests; never freed, log_close ignores it */
void log_close(struct log *l); /* accepts NULL */
/* After rotation: opens the path anew (SIGHUP). */
int log_reopen(struct log *l);
void log_set_level(struct log *l, enum log_level level);
enum log_level log_level(const struct log *l);
/* "DEBUG", "warning", ...: 0 or -EINVAL. */
int log_level_parse(const char *text, enum log_level *ret_level);
/* Time stamps come from this env once there is one (the simulator's lines then carry virtual time). */
void log_set_env(struct log *l, struct env *env);

void log_line(struct log *l, enum log_level level, const char *place, const char *event, const char *fmt, ...)
    PRINTF_LIKE(5, 6);

/* Evaluates its arguments only when the level is on. `place` is the translator's or module's name. */
#define LOG(l, lvl, place, event, ...)                           \
    do {                                                         \
        if ((lvl) <= log_level(l))                               \
            log_line((l), (lvl), (place), (event), __VA_ARGS__); \
    } while (0)

/* "ENOENT" for -ENOENT or ENOENT; "EUNKNOWN" for what has no name. */
const char *errno_name(int err);
