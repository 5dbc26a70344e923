/* Members of a cluster agree on one order of changes, whatever happens to machines and messages.
 *
 * Five machines: the first founds the cluster, others are added and removed. Clients on all of them propose numbers. Until
 * the faults end, machines crash and come back, links between them are cut, messages are lost and delayed. Promised:
 *   - two members never have different changes at the same place;
 *   - a change that was acknowledged is there for ever, and once;
 *   - when the faults end, the members agree on a leader and all have the same changes.
 *
 *     consensus_sim [--seeds A-B] [--seed N]
 */
#include "core/log.h"
#include "core/mem.h"
#include "mgmt/consensus.h"
#include "sim/memjournal.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define MEMBERS       5
#define CHANGES_MAX   4096
#define FAULTS_END_MS 60000
#define SILENT_MS     5000 /* the last ones of the quiet */
#define QUIET_MS      30000
#define SEEDS_SHORT   300
#define SEEDS_LONG    20000
#define ACKED_MAX     CHANGES_MAX

struct world;
struct member {
    struct world *w;
    unsigned number; /* from 0; the library's is one more */
    char address[16];
    struct memjournal_disk disk;
    struct env *env;
    struct journal *journal;
    struct consensus *consensus;
    bool is_up, is_failed;
    uint64_t life; /* raised at every start: messages to an earlier one are lost */
    uint64_t values[CHANGES_MAX];
    size_t count;
};

struct world {
    uint64_t seed;
    struct sim *sim;
    struct member members[MEMBERS];
    bool is_cut[MEMBERS][MEMBERS];
    unsigned loss_percent;
    uint64_t history[CHANGES_MAX]; /* what any member had at a place, 0: nobody yet */
    uint64_t acked[ACKED_MAX];
    size_t acked_count;
    uint64_t next_value;
    bool is_quiet, is_silent, is_over; /* faults have ended; proposals too; all */
    char wrong[256];
};

static uint64_t chance(struct world *w, uint64_t below)
{
    return sim_random(w->sim) % below;
}

static void violated(struct world *w, const char *what, uint64_t a, uint64_t b)
{
    if (!*w->wrong)
        (void)snprintf(w->wrong, sizeof(w->wrong), "%s (%llu, %llu)", what, (unsigned long long)a,
                       (unsigned long long)b);
}

/* ---- the state machine: a list of numbers ---- */

static int apply(void *arg, const void *data, size_t size_bytes, void **ret_result)
{
    struct member *m = arg;
    uint64_t value;

    if (size_bytes != sizeof(value) || m->count == CHANGES_MAX)
        return -EINVAL;
    memcpy(&value, data, sizeof(value));
    if (m->w->history[m->count] != 0 && m->w->history[m->count] != value)
        violated(m->w, "two members differ", m->w->history[m->count], value);
    m->w->history[m->count] = value;
    m->values[m->count++] = value;
    *ret_result = mem_dup(&value, sizeof(value));
    return 0;
}

static int snapshot(void *arg, void **ret_data, size_t *ret_bytes)
{
    struct member *m = arg;

    *ret_bytes = m->count * sizeof(uint64_t);
    *ret_data = mem_dup(m->values, *ret_bytes + 1);
    return *ret_data ? 0 : -ENOMEM;
}

static int restore(void *arg, const void *data, size_t size_bytes)
{
    struct member *m = arg;

    m->count = size_bytes / sizeof(uint64_t);
    memcpy(m->values, data, size_bytes);
    for (size_t i = 0; i < m->count; i++) {
        if (m->w->history[i] != m->values[i])
            violated(m->w, "a snapshot differs", m->w->history[i], m->values[i]);
    }
    return 0;
}

static void changed(void *arg UNUSED)
{
}

static void stopped(void *arg, const char *why UNUSED)
{
    struct member *m = arg;

    m->is_failed = true;
    if (m->is_up && !sim_is_crashed(m->env))
        violated(m->w, "a healthy member stopped", m->number, 0);
}

/* ---- messages ---- */

struct message {
    struct member *from, *to;
    uint64_t life;
    size_t size_bytes;
    char data[];
};

static void deliver(void *arg)
{
    struct message *msg = arg;
    struct member *to = msg->to;

    if (to->is_up && to->life == msg->life && !msg->to->w->is_cut[msg->from->number][to->number])
        consensus_receive(to->consensus, msg->from->number + 1, msg->from->address, msg->data, msg->size_bytes);
    mem_free(msg);
}

static void send_message(void *arg, uint64_t member, const char *address UNUSED, const void *data, size_t size_bytes)
{
    struct member *from = arg, *to = &from->w->members[member - 1];
    struct world *w = from->w;
    struct message *msg;

    if (!to->is_up || sim_is_crashed(from->env) || w->is_cut[from->number][to->number] ||
        chance(w, 100) < w->loss_percent)
        return;
    msg = mem_alloc(sizeof(*msg) + size_bytes);
    *msg = (struct message) { from, to, to->life, size_bytes };
    memcpy(msg->data, data, size_bytes);
    if (sim_at(w->sim, sim_now_ns(w->sim) + 100000 + chance(w, chance(w, 20) == 0 ? 300000000 : 3000000), deliver,
               msg) < 0)
        mem_free(msg);
}

static const struct consensus_hooks hooks = {
    .apply = apply,
    .snapshot = snapshot,
    .restore = restore,
    .send = send_message,
    .changed = changed,
    .stopped = stopped,
};

/* ---- machines ---- */

static void note_acked(struct world *w, uint64_t value)
{
    if (w->acked_count < ACKED_MAX)
        w->acked[w->acked_count++] = value;
}

static FIBER void propose_one(struct member *m)
{
    uint64_t value = m->w->next_value++;
    struct scope scope;
    void *result = NULL;
    int r;

    scope_init(&scope, env_deadline_ms(m->env, 50 + chance(m->w, 3000)));
    r = consensus_propose(m->consensus, &value, sizeof(value), &scope, &result);
    scope_done(&scope);
    if (r == 0 && (!result || memcmp(result, &value, sizeof(value)) != 0))
        violated(m->w, "an answer of another proposal", value, result ? *(uint64_t *)result : 0);
    if (r == 0)
        note_acked(m->w, value);
    mem_free(result);
}

static FIBER void change_members(struct member *m)
{
    unsigned other = (unsigned)chance(m->w, MEMBERS);
    struct scope scope;

    scope_init(&scope, env_deadline_ms(m->env, 5000));
    /* What it answers tells nothing here: it may be done all the same. */
    if (chance(m->w, 3) > 0)
        (void)consensus_add(m->consensus, other + 1, m->w->members[other].address, &scope);
    else if (other != m->number && consensus_member_count(m->consensus) > 3)
        (void)consensus_remove(m->consensus, other + 1, &scope);
    scope_done(&scope);
}

static FIBER void live(void *arg)
{
    struct member *m = arg;
    struct world *w = m->w;
    struct error err = { "" };

    if (m->number == 0)
        (void)consensus_found(m->consensus); /* once: later it has a journal */
    if (consensus_start(m->consensus, &err) < 0 && !sim_is_crashed(m->env))
        violated(w, "a member does not start", m->number, 0);
    m->is_up = !sim_is_crashed(m->env);
    while (!sim_is_crashed(m->env) && !w->is_over) {
        if (consensus_is_leader(m->consensus) && w->next_value < CHANGES_MAX / 2 && !w->is_silent) {
            propose_one(m);
            if (!w->is_quiet && chance(w, 20) == 0)
                change_members(m);
        }
        (void)fiber_sleep_ms(NULL, 10 + chance(w, 200));
    }
    m->is_up = false;
    consensus_free(take(m->consensus));
    journal_free(take(m->journal));
}

static void start_member(struct member *m)
{
    m->env = sim_process_new(m->w->sim, m->address, m->address);
    m->journal = memjournal_new(m->env, m->w->sim, &m->disk);
    m->consensus = consensus_new(m->env, m->number + 1, m->address, m->journal, &hooks, m);
    m->life++;
    m->count = 0;
    m->is_failed = false;
    if (fiber_spawn(m->env, "live", live, m) < 0)
        abort();
}

/* After a crash, when its fibers have unwound. */
static void restart_member(void *arg)
{
    struct member *m = arg;

    if (sim_live_fibers(m->env) > 0) {
        (void)sim_at(m->w->sim, sim_now_ns(m->w->sim) + 1000000, restart_member, m);
        return;
    }
    sim_process_free(m->env);
    start_member(m);
}

/* ---- faults ---- */

static void toggle_cut(struct world *w)
{
    unsigned a = (unsigned)chance(w, MEMBERS), b = (unsigned)chance(w, MEMBERS);
    bool is_cut = chance(w, 2) == 0;

    if (chance(w, 3) == 0) {
        for (unsigned i = 0; i < MEMBERS; i++)
            w->is_cut[a][i] = w->is_cut[i][a] = is_cut && i != a;
        return;
    }
    w->is_cut[a][b] = is_cut && a != b;
    if (chance(w, 2) == 0)
        w->is_cut[b][a] = w->is_cut[a][b];
}

static void disturb(void *arg)
{
    struct world *w = arg;
    struct member *m = &w->members[chance(w, MEMBERS)];

    if (w->is_quiet)
        return;
    switch (chance(w, 4)) {
    case 0:
        if (m->is_up) {
            m->is_up = false;
            sim_crash(m->env);
            (void)sim_at(w->sim, sim_now_ns(w->sim) + 1000000 + chance(w, 8000000000), restart_member, m);
        }
        break;
    case 1: w->loss_percent = (unsigned)chance(w, 40); break;
    default: toggle_cut(w);
    }
    (void)sim_at(w->sim, sim_now_ns(w->sim) + chance(w, 2000000000), disturb, w);
}

static void end_faults(void *arg)
{
    struct world *w = arg;

    w->is_quiet = true;
    w->loss_percent = 0;
    memset(w->is_cut, 0, sizeof(w->is_cut));
}

/* ---- judging ---- */

static void check_end(struct world *w)
{
    const struct member *first = NULL;
    unsigned leaders = 0, at_end = 0;

    for (unsigned i = 0; i < MEMBERS; i++) {
        const struct member *m = &w->members[i];

        if (!m->is_up)
            violated(w, "a member did not come back", i, 0);
        leaders += m->is_up && consensus_is_leader(m->consensus);
        if (!first || m->count > first->count)
            first = m;
    }
    for (unsigned i = 0; i < MEMBERS; i++)
        at_end += w->members[i].count == first->count;
    if (leaders != 1)
        violated(w, "there is not one leader", leaders, 0);
    /* Machines that were not added, or were removed, are behind; a majority of three at least is not. */
    if (w->acked_count > 0 && at_end < (consensus_member_count(first->consensus) / 2) + 1)
        violated(w, "members are behind", at_end, first->count);
    for (size_t a = 0; a < w->acked_count; a++) {
        unsigned found = 0;

        for (size_t i = 0; i < first->count; i++)
            found += first->values[i] == w->acked[a];
        if (found != 1)
            violated(w, "an acknowledged change is there n times", w->acked[a], found);
    }
}

static void stop_all(struct world *w)
{
    w->is_over = true;
    for (unsigned i = 0; i < MEMBERS; i++) {
        struct member *m = &w->members[i];

        while (sim_live_fibers(m->env) > 0)
            (void)sim_run(w->sim, sim_now_ns(w->sim) + 100000000);
        sim_process_free(m->env);
        journal_image_clear(&m->disk.image);
    }
    (void)sim_run(w->sim, sim_now_ns(w->sim) + 1000000000); /* messages that were under way */
}

static bool run_seed(uint64_t seed, uint64_t *ret_acked)
{
    struct world *w = mem_zalloc(sizeof(*w));
    bool is_good;

    w->seed = seed;
    w->next_value = 1;
    w->sim = sim_new(&(struct sim_config) { .seed = seed }, log_discard());
    for (unsigned i = 0; i < MEMBERS; i++) {
        struct member *m = &w->members[i];

        m->w = w;
        m->number = i;
        (void)snprintf(m->address, sizeof(m->address), "host%u", i);
        start_member(m);
    }
    (void)sim_at(w->sim, 3000000000, disturb, w);
    (void)sim_at(w->sim, (uint64_t)FAULTS_END_MS * 1000000, end_faults, w);
    (void)sim_run(w->sim, (uint64_t)(FAULTS_END_MS + QUIET_MS - SILENT_MS) * 1000000);
    w->is_silent = true;
    (void)sim_run(w->sim, (uint64_t)(FAULTS_END_MS + QUIET_MS) * 1000000);
    check_end(w);
    stop_all(w);
    *ret_acked += w->acked_count;
    is_good = !*w->wrong;
    if (!is_good)
        printf("# seed %llu: %s\n# again: tests/sim/consensus_sim --seed %llu\n", (unsigned long long)seed, w->wrong,
               (unsigned long long)seed);
    sim_free(w->sim);
    mem_free(w);
    return is_good;
}

int main(int argc, char **argv)
{
    uint64_t first = 1, last = getenv("MORTAR_LONG") ? SEEDS_LONG : SEEDS_SHORT, acked = 0, bad = 0;
    const char *count = getenv("MORTAR_SEEDS");

    if (count)
        last = MIN(last, MAX(strtoull(count, NULL, 10), 1ull));
    if (argc == 3 && strcmp(argv[1], "--seed") == 0)
        first = last = strtoull(argv[2], NULL, 10);
    else if (argc == 3 && strcmp(argv[1], "--seeds") == 0) {
        char *end;

        first = strtoull(argv[2], &end, 10);
        last = *end == '-' ? strtoull(end + 1, NULL, 10) : first;
    } else if (argc > 1) {
        fprintf(stderr, "usage: consensus_sim [--seeds A-B] [--seed N]\n");
        return 2;
    }
    printf("1..1\n");
    for (uint64_t seed = first; seed <= last && bad < 5; seed++)
        bad += !run_seed(seed, &acked);
    printf("%sok 1 - members agree, seeds %llu to %llu, %llu changes acknowledged\n", bad ? "not " : "",
           (unsigned long long)first, (unsigned long long)last, (unsigned long long)acked);
    return bad ? 1 : 0;
}
