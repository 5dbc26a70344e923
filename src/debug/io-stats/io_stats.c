/* debug/io-stats - the top of a graph and of a brick: counts what is asked and how long it takes.
 *
 * Calls, errors, bytes and round trips are always counted; times only with `latency-measurement on`. The numbers are in
 * the statedump; as a file when `trusted.io-stats-dump` is set to a name (in `ios-dump-dir`) or every
 * `ios-dump-interval` seconds; and they are the value of that extended attribute on every inode. `log-level` sets the
 * level of the whole process. Several children are allowed (a heal daemon's file has them); operations go to the first. */
#include "core/mem.h"
#include "debug/io-stats/profile_internal.h"
#include "graph/graph.h"
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define DUMP_XATTR "trusted.io-stats-dump"

enum format { FORMAT_TEXT, FORMAT_JSON, FORMAT_DICT, FORMAT_SAMPLES };

struct io_stats {
    bool measures, flag;
    uint32_t dump_interval_s, format, log_level, number, seconds, choice;
    char *dump_dir;
    struct timer dump_timer;
    struct profile total, interval; /* interval: since the last file */
};

/* Other than the words' order: see level_words. */
static const char *const level_words[] = { "", "DEBUG", "WARNING", "ERROR", "INFO", "CRITICAL", "NONE", "TRACE", NULL };
static const char *const format_words[] = { "text", "json", "dict", "samples", NULL };
static const char *const logger_words[] = { "", "gluster-log", "syslog", NULL };
static const char *const log_format_words[] = { "", "no-msg-id", "with-msg-id", NULL };

/* ---- printing ---- */

static void print_quoted(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', out);
        if ((unsigned char)*text >= ' ')
            fputc(*text, out);
    }
    fputc('"', out);
}

/* Returned text, or NULL. */
static char *print(struct translator *me, enum format format)
{
    const struct io_stats *s = me->state;
    uint64_t now_ns = env_now_ns(me->env);
    char *text = NULL;
    size_t text_bytes = 0;
    FILE *out = open_memstream(&text, &text_bytes);

    if (!out)
        return NULL;
    if (format == FORMAT_TEXT) {
        profile_print_text(out, "Cumulative", &s->total, now_ns);
        profile_print_text(out, "Interval", &s->interval, now_ns);
    } else {
        fputs("{\"translator\":", out);
        print_quoted(out, me->name);
        fputc(',', out);
        profile_print_json(out, "cumulative", &s->total, now_ns);
        fputc(',', out);
        profile_print_json(out, "interval", &s->interval, now_ns);
        fputs("}\n", out);
    }
    char *copy = fclose(out) == 0 ? mem_strndup(text, text_bytes) : NULL;
    free(text);
    return copy;
}

/* ---- files ---- */

struct write_job {
    char *path, *text;
    int result;
};

static void write_file(void *arg)
{
    struct write_job *job = arg;
    size_t size_bytes = strlen(job->text), done = 0;
    int fd = open(job->path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0) {
        job->result = -errno;
        return;
    }
    while (done < size_bytes && job->result == 0) {
        ssize_t n = write(fd, job->text + done, size_bytes - done);
        if (n < 0 && errno != EINTR)
            job->result = -errno;
        if (n > 0)
            done += (size_t)n;
    }
    if (close(fd) < 0 && job->result == 0)
        job->result = -errno;
}

static void free_job(void *arg)
{
    struct write_job *job = arg;

    if (!job)
        return;
    mem_free(job->path);
    mem_free(job->text);
    mem_free(job);
}

/* Names from users stay inside the directory: '/' becomes '-'. */
static char *path_of(const struct io_stats *s, const char *name)
{
    char *path;

    name += strspn(name, "/");
    path = mem_printf("%s/%s", s->dump_dir, name);
    for (char *p = path ? path + strlen(s->dump_dir) + 1 : NULL; p && *p; p++) {
        if (*p == '/')
            *p = '-';
    }
    return path;
}

static struct write_job *job_new(struct translator *me, const char *name, enum format format)
{
    struct write_job *job = NEW(struct write_job);

    if (!job)
        return NULL;
    job->path = path_of(me->state, name);
    job->text = print(me, format);
    if (job->path && job->text)
        return job;
    free_job(job);
    return NULL;
}

static void restart_interval(struct translator *me)
{
    struct io_stats *s = me->state;

    memset(&s->interval, 0, sizeof(s->interval));
    s->interval.since_ns = env_now_ns(me->env);
}

static void follow_interval(struct translator *me);

static void dump_by_timer(void *arg)
{
    struct translator *me = arg;
    struct io_stats *s = me->state;
    SCOPED_FREE char *name = mem_printf("io-stats-%s.%s", me->name, s->format == FORMAT_TEXT ? "txt" : "json");
    struct write_job *job = name ? job_new(me, name, s->format) : NULL;

    if (job && env_pool_post(me->env, write_file, free_job, job) < 0)
        free_job(job);
    restart_interval(me);
    follow_interval(me);
}

static void follow_interval(struct translator *me)
{
    struct io_stats *s = me->state;

    timer_stop(&s->dump_timer);
    if (s->dump_interval_s)
        timer_start(me->env, &s->dump_timer, env_deadline_ms(me->env, (uint64_t)s->dump_interval_s * 1000),
                    dump_by_timer, me);
}

/* ---- operations ---- */

static FIBER int io_stats_any(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct io_stats *s = me->state;
    uint32_t trips_before = call->round_trips;
    struct sample sample = { .op = q->op, .is_timed = s->measures };
    uint64_t began_ns = s->measures ? env_now_ns(me->env) : 0;

    sample.result = default_op(me, call, q, r);
    if (sample.is_timed)
        sample.took_ns = env_now_ns(me->env) - began_ns;
    sample.round_trips = call->round_trips - trips_before;
    profile_add(&s->total, &sample);
    profile_add(&s->interval, &sample);
    return sample.result;
}

static FIBER int dump_to_file(struct translator *me, const char *name)
{
    const struct io_stats *s = me->state;

    if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return -EINVAL;
    struct write_job *job = job_new(me, name, s->format);
    if (!job)
        return -ENOMEM;
    env_pool_run(me->env, write_file, job);
    int result = job->result;
    if (result < 0)
        TLOG(me, LOG_WARNING, "dump-failed", "file=%s err=%s", job->path, errno_name(result));
    else
        restart_interval(me);
    free_job(job);
    return result;
}

static bool may_dump(const struct call *call)
{
    return call->uid == 0 || call->pid < 0;
}

static FIBER int io_stats_setxattr(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    const char *name;
    const void *data;
    size_t size_bytes;

    if (!dict_has(q->xattrs, DUMP_XATTR))
        return io_stats_any(me, call, q, r);
    if (!may_dump(call))
        return -EPERM;
    if (dict_get_str(q->xattrs, DUMP_XATTR, &name) == 0)
        return dump_to_file(me, name);
    if (dict_get_bin(q->xattrs, DUMP_XATTR, &data, &size_bytes) < 0)
        return -EINVAL;
    SCOPED_FREE char *copy = mem_strndup(data, size_bytes);
    return copy ? dump_to_file(me, copy) : -ENOMEM;
}

static FIBER int io_stats_getxattr(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    const struct io_stats *s = me->state;

    if (!q->text || strcmp(q->text, DUMP_XATTR) != 0 || !may_dump(call))
        return io_stats_any(me, call, q, r);
    SCOPED_FREE char *text = print(me, s->format);
    if (!text)
        return -ENOMEM;
    int result = dict_put_bin(&r->xattrs, DUMP_XATTR, text, strlen(text));
    return result < 0 ? result : (int)strlen(text);
}

/* ---- life cycle ---- */

static void follow_options(struct translator *me)
{
    const struct io_stats *s = me->state;
    enum log_level level;

    if (s->log_level && log_level_parse(level_words[s->log_level], &level) == 0) {
        log_set_level(env_log(me->env), level);
        me->graph->is_tracing = level >= LOG_TRACE;
    }
    follow_interval(me);
}

static int io_stats_init(struct translator *me, struct error *err)
{
    struct io_stats *s = me->state;

    s->total.since_ns = s->interval.since_ns = env_now_ns(me->env);
    follow_options(me);
    return 0;
}

static void io_stats_fini(struct translator *me)
{
    timer_stop(&((struct io_stats *)me->state)->dump_timer);
}

static void io_stats_dump(struct translator *me, struct dump *out)
{
    const struct io_stats *s = me->state;
    char key[64];

    dump_printf(out, "bytes-read", "%llu", (unsigned long long)s->total.bytes_read);
    dump_printf(out, "bytes-written", "%llu", (unsigned long long)s->total.bytes_written);
    for (unsigned op = 0; op < OP_COUNT; op++) {
        const struct op_profile *o = &s->total.ops[op];
        if (!o->calls)
            continue;
        snprintf(key, sizeof(key), "fop.%s", op_name(op));
        dump_printf(out, key,
                    "calls:%llu,errors:%llu,avg-us:%llu,min-us:%llu,max-us:%llu,p99-us:%llu,trips:%llu,trips-max:%llu",
                    (unsigned long long)o->calls, (unsigned long long)o->failures,
                    (unsigned long long)(o->timed ? o->total_ns / o->timed / 1000 : 0),
                    (unsigned long long)o->min_ns / 1000, (unsigned long long)o->max_ns / 1000,
                    (unsigned long long)profile_percentile_us(o, 99), (unsigned long long)o->trips_total,
                    (unsigned long long)o->trips_max);
    }
}

#define KNOWN_LEVEL(name_, def_)       OPT_ENUM(name_, struct io_stats, choice, level_words, .def = (def_), .live = true)
#define KNOWN_CHOICE(name_, list_)     OPT_ENUM(name_, struct io_stats, choice, list_, .def = "", .live = true)
#define KNOWN_NUMBER(name_, def_, ...) OPT_U32(name_, struct io_stats, number, .def = (def_), .live = true, __VA_ARGS__)
#define KNOWN_TIME(name_)              OPT_TIME(name_, struct io_stats, seconds, .def = "120", .min = 30, .max = 300, .live = true)

static const struct option io_stats_options[] = {
    OPT_BOOL("latency-measurement", struct io_stats, measures, .def = "off", .live = true, .help = "measure times too"),
    OPT_U32("ios-dump-interval", struct io_stats, dump_interval_s, .unit = "s", .def = "0", .max = 3600, .live = true,
            .help = "write a file this often; 0 = never"),
    OPT_ENUM("ios-dump-format", struct io_stats, format, format_words, .def = "json", .live = true,
             .help = "text, or JSON for all others"),
    OPT_PATH("ios-dump-dir", struct io_stats, dump_dir, .def = "/var/run/gluster", .help = "where files are written"),
    OPT_ENUM("log-level", struct io_stats, log_level, level_words, .def = "", .live = true,
             .help = "of the whole process"),
    /* Known, checked and without effect: counts are always there, there is one log in one format. */
    OPT_BOOL("count-fop-hits", struct io_stats, flag, .def = "off", .live = true),
    OPT_BOOL("dump-fd-stats", struct io_stats, flag, .def = "off", .live = true),
    OPT_BOOL("global-threading", struct io_stats, flag, .def = "off", .live = true),
    KNOWN_NUMBER("ios-sample-interval", "0", .max = 65535),
    KNOWN_NUMBER("ios-sample-buf-size", "65535", .min = 1024, .max = 1048576),
    KNOWN_NUMBER("ios-dnscache-ttl-sec", "86400", .min = 1, .max = 259200),
    KNOWN_NUMBER("threads", "16"),
    KNOWN_NUMBER("brick-threads", "16", .min = 1, .max = 128),
    KNOWN_NUMBER("client-threads", "16", .min = 1, .max = 128),
    KNOWN_NUMBER("log-buf-size", "5", .max = 20),
    KNOWN_NUMBER("client-log-buf-size", "5", .max = 20),
    KNOWN_NUMBER("brick-log-buf-size", "5", .max = 20),
    KNOWN_LEVEL("client-log-level", "INFO"),
    KNOWN_LEVEL("brick-log-level", "INFO"),
    KNOWN_LEVEL("sys-log-level", "CRITICAL"),
    KNOWN_CHOICE("logger", logger_words),
    KNOWN_CHOICE("client-logger", logger_words),
    KNOWN_CHOICE("brick-logger", logger_words),
    KNOWN_CHOICE("log-format", log_format_words),
    KNOWN_CHOICE("client-log-format", log_format_words),
    KNOWN_CHOICE("brick-log-format", log_format_words),
    KNOWN_TIME("log-flush-timeout"),
    KNOWN_TIME("client-log-flush-timeout"),
    KNOWN_TIME("brick-log-flush-timeout"),
    OPT_ANY("unique-id", .live = true),
    OPT_ANY("volume-id"),
    OPT_END,
};

const struct translator_class io_stats_class = {
    .type = "debug/io-stats",
    .state_size = sizeof(struct io_stats),
    .options = io_stats_options,
    .ops = { [OP_SETXATTR] = io_stats_setxattr, [OP_GETXATTR] = io_stats_getxattr },
    .any = io_stats_any,
    .children_min = 1,
    .init = io_stats_init,
    .fini = io_stats_fini,
    .reconfigured = follow_options,
    .dump = io_stats_dump,
};
