/* performance/io-threads - see io_threads.h. */
#include "performance/io-threads/io_threads.h"
#include "core/mem.h"
#include "rpc/block_sums.h"
#include <inttypes.h>
#include <stdio.h>

enum priority {
    PRIORITY_HIGH,
    PRIORITY_NORMAL,
    PRIORITY_LOW,
    PRIORITY_LEAST,
    PRIORITY_COMPARE,
    PRIORITY_COUNT,
    PRIORITY_FREE
};

static const char *const priority_words[] = { "high", "normal", "low", "least", "compare" };

/* Requests of one client that wait in one class; exists while it has some. */
struct turn {
    struct list of_class;
    struct client *client; /* compared only: its waiters end before it does */
    struct list waiters;
};

struct waiter {
    struct list of_turn;
    struct turn *turn;
    struct waitq q;
    bool is_settled; /* out of the queue: admitted, or dropped */
};

struct priority_class {
    struct list turns; /* whose turn is next comes first */
    uint32_t waiting, running;
    uint64_t admitted, delayed;
};

struct io_threads {
    uint32_t thread_count;
    uint32_t limits[PRIORITY_COUNT];
    bool uses_least;
    bool drops_of_gone_clients;
    bool passes_through;
    uint32_t compare_share; /* percent */

    struct priority_class classes[PRIORITY_COUNT];
    uint32_t running;
    uint32_t clients_running; /* operations of clients */
    uint64_t clients_ns;      /* when one last ended */
    uint64_t compare_ns;      /* while clients are at work, the next comparison begins no earlier */
    struct timer compare_timer;
    struct env *env;
};

static const struct option io_threads_options[] = {
    OPT_U32("thread-count", struct io_threads, thread_count, .def = "16", .min = 1, .max = 64, .live = true,
            .help = "operations that run at once"),
    OPT_U32("high-prio-threads", struct io_threads, limits[PRIORITY_HIGH], .def = "16", .min = 1, .max = 64,
            .live = true, .help = "of these lookups, opens and the like"),
    OPT_U32("normal-prio-threads", struct io_threads, limits[PRIORITY_NORMAL], .def = "16", .min = 1, .max = 64,
            .live = true, .help = "of these changes of names and attributes"),
    OPT_U32("low-prio-threads", struct io_threads, limits[PRIORITY_LOW], .def = "16", .min = 1, .max = 64, .live = true,
            .help = "of these reads and writes"),
    OPT_U32("least-prio-threads", struct io_threads, limits[PRIORITY_LEAST], .def = "1", .min = 1, .max = 64,
            .live = true, .help = "of these operations of heal and rebalance, while clients are at work"),
    OPT_U32("compare-share", struct io_threads, compare_share, .def = "50", .min = 1, .max = 100, .unit = "%",
            .live = true, .help = "of the time that heal may take for comparing while clients are at work"),
    OPT_BOOL("enable-least-priority", struct io_threads, uses_least, .def = "on", .live = true,
             .help = "heal and rebalance come last"),
    OPT_BOOL("cleanup-disconnected-reqs", struct io_threads, drops_of_gone_clients, .def = "off", .live = true,
             .help = "operations of a client that is gone are dropped while they wait"),
    OPT_BOOL("pass-through", struct io_threads, passes_through, .def = "false", .live = true,
             .help = "admit everything at once"),
    OPT_IGNORED("idle-time", .help = "there are no threads to keep"),
    OPT_IGNORED("watchdog-secs", .help = "there are no threads to get stuck; see statedump"),
    OPT_IGNORED("cache-size", .help = "io-threads holds no data"),
    OPT_IGNORED("queue-limit", .help = "queues are bounded by the requests clients may have outstanding"),
    OPT_IGNORED("autoscaling", .help = "there are no threads to scale"),
    OPT_IGNORED("min-threads", .help = "there are no threads to keep"),
    OPT_IGNORED("max-threads", .help = "use thread-count"),
    OPT_END,
};

/* ---- classes ---- */

static enum priority priority_of_op(enum op op)
{
    switch (op) {
    case OP_LOOKUP:
    case OP_STAT:
    case OP_READLINK:
    case OP_ACCESS:
    case OP_OPEN:
    case OP_OPENDIR:
    case OP_STATFS:
    case OP_READDIR:
    case OP_READDIRP:
    case OP_GETACTIVELK: return PRIORITY_HIGH;
    case OP_READ:
    case OP_WRITE:
    case OP_TRUNCATE:
    case OP_FALLOCATE:
    case OP_SEEK:
    case OP_COPY_RANGE:
    case OP_FSYNC:
    case OP_FSYNCDIR:
    case OP_XATTROP:
    case OP_RCHECKSUM:
    case OP_BLOCKSUMS: return PRIORITY_LOW;
    case OP_LK:
    case OP_INODELK:
    case OP_ENTRYLK:
    case OP_LEASE:
    case OP_IPC:
    case OP_COMPOUND: return PRIORITY_FREE;
    default: return PRIORITY_NORMAL;
    }
}

static enum priority priority_of(const struct io_threads *s, const struct call *call, enum op op)
{
    enum priority p = priority_of_op(op);

    if (p == PRIORITY_FREE || !s->uses_least || call->pid >= 0)
        return p;
    return op == OP_BLOCKSUMS || op == OP_RCHECKSUM ? PRIORITY_COMPARE : PRIORITY_LEAST;
}

/* ---- admission ---- */

static bool are_clients_busy(const struct io_threads *s)
{
    return s->clients_running > 0 ||
           (s->clients_ns && env_now_ns(s->env) - s->clients_ns < CLIENTS_BUSY_MS * UINT64_C(1000000));
}

static bool must_pause(const struct io_threads *s)
{
    return env_now_ns(s->env) < s->compare_ns && are_clients_busy(s);
}

/* Internal clients are held down for the sake of others only. */
static uint32_t limit_of(const struct io_threads *s, enum priority p)
{
    if (p != PRIORITY_LEAST && p != PRIORITY_COMPARE)
        return s->limits[p];
    return are_clients_busy(s) ? s->limits[PRIORITY_LEAST] : s->thread_count;
}

static bool may_start(const struct io_threads *s, enum priority p)
{
    const struct priority_class *c = &s->classes[p];

    if (p == PRIORITY_COMPARE && must_pause(s))
        return false;
    return c->running == 0 || (c->running < limit_of(s, p) && s->running < s->thread_count);
}

static void started(struct io_threads *s, enum priority p)
{
    s->running++;
    s->classes[p].running++;
    s->classes[p].admitted++;
}

static struct turn *turn_of(struct priority_class *c, struct client *client)
{
    struct turn *turn;

    list_for_each (turn, &c->turns, of_class)
        if (turn->client == client)
            return turn;
    turn = NEW(struct turn);
    if (!turn)
        return NULL;
    turn->client = client;
    list_init(&turn->waiters);
    list_add_tail(&c->turns, &turn->of_class);
    return turn;
}

static void leave_queue(struct priority_class *c, struct waiter *w)
{
    struct turn *turn = w->turn;

    list_del(&w->of_turn);
    c->waiting--;
    if (!list_empty(&turn->waiters))
        return;
    list_del(&turn->of_class);
    mem_free(turn);
}

static void pause_ended(void *arg);

/* Starts waiting operations as long as there is room, classes in order, clients in turn. */
static void admit_waiting(struct io_threads *s)
{
    for (unsigned p = 0; p < PRIORITY_COUNT; p++) {
        struct priority_class *c = &s->classes[p];
        while (!list_empty(&c->turns) && may_start(s, p)) {
            struct turn *turn = list_first(&c->turns, struct turn, of_class);
            struct waiter *w = list_first(&turn->waiters, struct waiter, of_turn);
            list_del(&turn->of_class);
            list_add_tail(&c->turns, &turn->of_class);
            leave_queue(c, w);
            started(s, p);
            w->is_settled = true;
            waitq_wake_one(&w->q, 0);
        }
    }
    if (s->classes[PRIORITY_COMPARE].waiting && must_pause(s))
        timer_start(s->env, &s->compare_timer, s->compare_ns, pause_ended, s);
}

/* Comparisons that wait for the end of a pause. */
static void pause_ended(void *arg)
{
    admit_waiting(arg);
}

static FIBER int admit(struct io_threads *s, struct call *call, enum priority p)
{
    struct priority_class *c = &s->classes[p];
    struct waiter w = { .is_settled = false };

    if (c->waiting == 0 && may_start(s, p)) {
        started(s, p);
        return 0;
    }
    w.turn = turn_of(c, call->client);
    if (!w.turn)
        return -ENOMEM;
    waitq_init(&w.q);
    list_add_tail(&w.turn->waiters, &w.of_turn);
    c->waiting++;
    c->delayed++;
    if (p == PRIORITY_COMPARE && must_pause(s))
        timer_start(s->env, &s->compare_timer, s->compare_ns, pause_ended, s);
    int r = waitq_wait(&w.q, &call->scope);
    if (!w.is_settled)
        leave_queue(c, &w);
    return r;
}

static void leave(struct io_threads *s, enum priority p)
{
    s->running--;
    s->classes[p].running--;
    admit_waiting(s);
}

/* A comparison took from begun_ns until now: the pause after it, and what the answer tells. */
static int compared(struct io_threads *s, uint64_t begun_ns, int result, struct reply *r)
{
    uint64_t now = env_now_ns(s->env);

    s->compare_ns = now + (now - begun_ns) * (100 - s->compare_share) / s->compare_share;
    if (result < 0 || !are_clients_busy(s))
        return result;
    int error = dict_put_uint(&r->xdata, CLIENTS_BUSY_KEY, 1);
    return error < 0 ? error : result;
}

static FIBER int io_threads_any(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct io_threads *s = me->state;
    enum priority p = s->passes_through ? PRIORITY_FREE : priority_of(s, call, q->op);

    if (p == PRIORITY_FREE)
        return child_call(me, 0, call, q, r);
    int result = admit(s, call, p);
    if (result < 0)
        return result;
    uint64_t begun_ns = env_now_ns(me->env);
    s->clients_running += call->pid >= 0;
    result = child_call(me, 0, call, q, r);
    if (call->pid >= 0) {
        s->clients_running--;
        s->clients_ns = env_now_ns(me->env);
    } else if (p == PRIORITY_COMPARE) {
        result = compared(s, begun_ns, result, r);
    }
    leave(s, p);
    return result;
}

/* ---- life cycle ---- */

static int io_threads_init(struct translator *me, struct error *err UNUSED)
{
    struct io_threads *s = me->state;

    s->env = me->env;
    for (unsigned p = 0; p < PRIORITY_COUNT; p++)
        list_init(&s->classes[p].turns);
    return 0;
}

static void io_threads_fini(struct translator *me)
{
    struct io_threads *s = me->state;

    timer_stop(&s->compare_timer);
}

static void io_threads_reconfigured(struct translator *me)
{
    admit_waiting(me->state);
}

static void drop_waiters(struct priority_class *c, struct client *client)
{
    struct turn *turn, *found = NULL;

    list_for_each (turn, &c->turns, of_class)
        if (turn->client == client)
            found = turn;
    for (bool is_last = !found; !is_last;) {
        struct waiter *w = list_first(&found->waiters, struct waiter, of_turn);
        is_last = w->of_turn.next == &found->waiters;
        leave_queue(c, w); /* with the last one the turn goes */
        w->is_settled = true;
        waitq_wake_one(&w->q, -ENOTCONN);
    }
}

static void io_threads_client_gone(struct translator *me, struct client *client)
{
    struct io_threads *s = me->state;

    for (unsigned p = 0; s->drops_of_gone_clients && p < PRIORITY_COUNT; p++)
        drop_waiters(&s->classes[p], client);
}

static void io_threads_dump(struct translator *me, struct dump *out)
{
    struct io_threads *s = me->state;
    char key[64];

    dump_printf(out, "maximum_threads_count", "%u", s->thread_count);
    dump_printf(out, "current_threads_count", "%u", s->running);
    for (unsigned p = 0; p < PRIORITY_COUNT; p++) {
        const struct priority_class *c = &s->classes[p];
        snprintf(key, sizeof(key), "%s_priority", priority_words[p]);
        dump_printf(out, key, "running=%u waiting=%u limit=%u admitted=%" PRIu64 " delayed=%" PRIu64, c->running,
                    c->waiting, limit_of(s, p), c->admitted, c->delayed);
    }
}

const struct translator_class io_threads_class = {
    .type = "performance/io-threads",
    .state_size = sizeof(struct io_threads),
    .options = io_threads_options,
    .ops = { [OP_COMPOUND] = default_compound },
    .any = io_threads_any,
    .children_min = 1,
    .children_max = 1,
    .init = io_threads_init,
    .fini = io_threads_fini,
    .reconfigured = io_threads_reconfigured,
    .client_gone = io_threads_client_gone,
    .dump = io_threads_dump,
};
