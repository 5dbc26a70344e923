/* debug/error-gen - makes operations fail on purpose.
 *
 * `failure` percent of the operations named by `enable` (all when empty) are answered with `error-no`, or with an error
 * that fits the operation, and do not reach the child. Which ones: every n-th, so that a test can count on it, or with
 * `random-failure` by chance. The error GF_ERROR_SHORT_WRITE shortens writes to half instead. Works on a live graph. */
#include "graph/translator.h"
#include "core/mem.h"

struct error_gen {
    double failure_percent;
    uint32_t error; /* index in error_names */
    bool is_random;
    char *enable;
    uint64_t ops;    /* set of operations */
    double progress; /* percent gathered since the last failure */
    uint64_t failed;
};

/* Word list and errno go together; "" = an error that fits. */
static const char *const error_names[] = {
    "",       "ENOENT",   "ENOTDIR",   "ENAMETOOLONG", "EACCES",    "EBADF",
    "EFAULT", "ENOMEM",   "EINVAL",    "EIO",          "EEXIST",    "ENOSPC",
    "EPERM",  "EROFS",    "EBUSY",     "EISDIR",       "ENOTEMPTY", "EMLINKENODEV",
    "EXDEV",  "EMFILE",   "ENFILE",    "ENOSYS",       "EINTR",     "EFBIG",
    "EAGAIN", "ENOTCONN", "ETIMEDOUT", "ESTALE",       "EDQUOT",    "GF_ERROR_SHORT_WRITE",
    NULL,
};

static const int error_numbers[] = {
    0,      ENOENT, ENOTDIR, ENAMETOOLONG, EACCES, EBADF,    EFAULT,    ENOMEM, EINVAL, EIO,
    EEXIST, ENOSPC, EPERM,   EROFS,        EBUSY,  EISDIR,   ENOTEMPTY, EMLINK, EXDEV,  EMFILE,
    ENFILE, ENOSYS, EINTR,   EFBIG,        EAGAIN, ENOTCONN, ETIMEDOUT, ESTALE, EDQUOT, 0,
};
static_assert(ARRAY_SIZE(error_names) == ARRAY_SIZE(error_numbers) + 1, "one number per word");

#define SHORT_WRITE (ARRAY_SIZE(error_numbers) - 1)

static int fitting_error(enum op op)
{
    if (op == OP_WRITE || op == OP_CREATE || op == OP_MKDIR || op == OP_MKNOD || op == OP_FALLOCATE)
        return ENOSPC;
    return EIO;
}

static bool is_turn(struct translator *me)
{
    struct error_gen *s = me->state;

    if (s->is_random)
        return (double)(env_random_u64(me->env) % 1000000) < s->failure_percent * 10000;
    s->progress += s->failure_percent;
    if (s->progress < 100)
        return false;
    s->progress -= 100;
    return true;
}

static FIBER int short_write(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct request own = *q;

    if (q->op != OP_WRITE || q->data->size < 2)
        return default_op(me, call, q, r);
    SCOPED(buf_unref) struct buf *half = buf_slice(q->data, 0, q->data->size / 2);
    if (!half)
        return -ENOMEM;
    own.data = half;
    own.size = half->size;
    return default_op(me, call, &own, r);
}

static FIBER int error_gen_any(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct error_gen *s = me->state;

    if (s->failure_percent == 0 || !op_set_has(s->ops, q->op) || !is_turn(me))
        return default_op(me, call, q, r);
    s->failed++;
    if (s->error == SHORT_WRITE)
        return short_write(me, call, q, r);
    return -(s->error ? error_numbers[s->error] : fitting_error(q->op));
}

static int error_gen_init(struct translator *me, struct error *err)
{
    struct error_gen *s = me->state;
    int r = op_set_parse(s->enable ? s->enable : "", &s->ops, err);

    return r < 0 ? error_prefix(err, r, "option \"enable\"") : 0;
}

static void error_gen_reconfigured(struct translator *me)
{
    struct error err;

    if (error_gen_init(me, &err) < 0)
        TLOG(me, LOG_WARNING, "bad-option", "%s; the old list stays", err.text);
}

static void error_gen_dump(struct translator *me, struct dump *out)
{
    dump_printf(out, "failed", "%llu", (unsigned long long)((struct error_gen *)me->state)->failed);
}

static const struct option error_gen_options[] = {
    OPT_PERCENT("failure", struct error_gen, failure_percent, .def = "10", .live = true, .help = "share that fails"),
    OPT_ENUM("error-no", struct error_gen, error, error_names, .def = "", .live = true, .help = "errno to answer"),
    OPT_BOOL("random-failure", struct error_gen, is_random, .def = "off", .live = true,
             .help = "by chance, not every n-th"),
    OPT_STR("enable", struct error_gen, enable, .aliases = { "error-fops" }, .live = true,
            .help = "operations that fail"),
    OPT_END,
};

const struct translator_class error_gen_class = {
    .type = "debug/error-gen",
    .state_size = sizeof(struct error_gen),
    .options = error_gen_options,
    .ops = { [OP_COMPOUND] = default_compound },
    .any = error_gen_any,
    .children_min = 1,
    .children_max = 1,
    .init = error_gen_init,
    .reconfigured = error_gen_reconfigured,
    .dump = error_gen_dump,
};
