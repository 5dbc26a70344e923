/* debug/trace - who asked what, and what was answered.
 *
 * `log-file on` writes one line per operation into the log; `log-history on` keeps the last `history-size` of them for
 * the statedump. `include-ops` and `exclude-ops` choose the operations. */
#include "graph/translator.h"
#include "core/mem.h"

struct entry {
    uint64_t at_ns, took_ns;
    uint64_t trace_id;
    enum op op;
    int result;
    struct gfid gfid;
    char name[32];
    uint64_t offset, size;
};

struct trace {
    char *include, *exclude;
    uint64_t ops; /* set of operations */
    uint64_t history_size;
    bool to_log, to_history;
    struct entry *history; /* a ring */
    uint64_t room, seen;
};

#define HISTORY_MAX 1000000

static void fill(struct entry *e, const struct call *call, const struct request *q, int result)
{
    const struct inode *about = q->inode ? q->inode : q->parent;

    e->trace_id = call->trace_id;
    e->op = q->op;
    e->result = result;
    e->gfid = about ? about->gfid : gfid_null;
    e->offset = q->offset;
    e->size = q->data ? q->data->size : q->size;
    memset(e->name, 0, sizeof(e->name));
    if (q->name)
        strncpy(e->name, q->name, sizeof(e->name) - 1);
}

static void log_entry(struct translator *me, const struct call *call, const struct entry *e)
{
    TLOG(me, LOG_INFO, op_name(e->op),
         "gfid=%s name=\"%s\" offset=%llu size=%llu uid=%u gid=%u pid=%d trace=%llu ret=%d%s%s took_us=%llu",
         GFID_TEXT(&e->gfid), e->name, (unsigned long long)e->offset, (unsigned long long)e->size, call->uid, call->gid,
         call->pid, (unsigned long long)e->trace_id, e->result, e->result < 0 ? " err=" : "",
         e->result < 0 ? errno_name(e->result) : "", (unsigned long long)e->took_ns / 1000);
}

static FIBER int trace_any(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct trace *s = me->state;
    struct entry e;

    if (!(s->to_log || s->to_history) || !op_set_has(s->ops, q->op))
        return default_op(me, call, q, r);
    e.at_ns = env_now_ns(me->env);
    int result = default_op(me, call, q, r);
    e.took_ns = env_now_ns(me->env) - e.at_ns;
    fill(&e, call, q, result);
    if (s->to_log)
        log_entry(me, call, &e);
    if (s->to_history && s->room)
        s->history[s->seen++ % s->room] = e;
    return result;
}

static int choose_ops(struct trace *s, struct error *err)
{
    uint64_t include = 0, exclude = 0;
    int r = op_set_parse(s->include ? s->include : "", &include, err);

    if (r < 0)
        return error_prefix(err, r, "option \"include-ops\"");
    if (s->exclude && *s->exclude)
        r = op_set_parse(s->exclude, &exclude, err);
    if (r < 0)
        return error_prefix(err, r, "option \"exclude-ops\"");
    s->ops = include & ~exclude;
    return 0;
}

static int make_history(struct trace *s)
{
    if (!s->to_history || s->room == s->history_size)
        return 0;
    struct entry *history = mem_array(s->history_size ? s->history_size : 1, sizeof(*history));
    if (!history)
        return -ENOMEM;
    mem_free(s->history);
    s->history = history;
    s->room = s->history_size;
    s->seen = 0;
    return 0;
}

static int trace_init(struct translator *me, struct error *err)
{
    struct trace *s = me->state;
    int r = choose_ops(s, err);

    if (r == 0 && make_history(s) < 0)
        r = error_set(err, -ENOMEM, "out of memory for a history of %llu entries", (unsigned long long)s->history_size);
    return r;
}

static void trace_fini(struct translator *me)
{
    mem_free(((struct trace *)me->state)->history);
}

static void trace_reconfigured(struct translator *me)
{
    struct error err;

    if (trace_init(me, &err) < 0)
        TLOG(me, LOG_WARNING, "bad-option", "%s; the old value stays", err.text);
}

static void trace_dump(struct translator *me, struct dump *out)
{
    const struct trace *s = me->state;
    uint64_t kept = MIN(s->seen, s->room);

    dump_printf(out, "seen", "%llu", (unsigned long long)s->seen);
    for (uint64_t i = s->seen - kept; i < s->seen; i++) {
        const struct entry *e = &s->history[i % s->room];
        dump_printf(out, "op", "%s gfid=%s name=\"%s\" offset=%llu size=%llu trace=%llu ret=%d took_us=%llu",
                    op_name(e->op), GFID_TEXT(&e->gfid), e->name, (unsigned long long)e->offset,
                    (unsigned long long)e->size, (unsigned long long)e->trace_id, e->result,
                    (unsigned long long)e->took_ns / 1000);
    }
}

static const struct option trace_options[] = {
    OPT_STR("include-ops", struct trace, include, .aliases = { "include" }, .live = true, .help = "operations to show"),
    OPT_STR("exclude-ops", struct trace, exclude, .aliases = { "exclude" }, .live = true, .help = "operations to hide"),
    OPT_SIZE("history-size", struct trace, history_size, .def = "1024", .max = HISTORY_MAX, .live = true,
             .help = "operations kept for the statedump"),
    OPT_BOOL("log-file", struct trace, to_log, .def = "no", .live = true, .help = "a line per operation in the log"),
    OPT_BOOL("log-history", struct trace, to_history, .def = "no", .live = true, .help = "keep a history"),
    OPT_END,
};

const struct translator_class trace_class = {
    .type = "debug/trace",
    .state_size = sizeof(struct trace),
    .options = trace_options,
    .any = trace_any,
    .children_min = 1,
    .children_max = 1,
    .init = trace_init,
    .fini = trace_fini,
    .reconfigured = trace_reconfigured,
    .dump = trace_dump,
};
