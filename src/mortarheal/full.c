/* Heal itself: by the daemon where one answers, else by this process; and watching it. */
#include "cluster/replicate/heal_daemon.h"
#include "cluster/replicate/heal_info.h"
#include "core/mem.h"
#include "mortarheal/commands.h"
#include <stdio.h>
#include <unistd.h>

#define LOOK_AGAIN_MS 200
#define LINE_EVERY_MS 1000
#define BAR_WIDTH     30

/* ---- progress ---- */

void progress_begin(struct progress *p, struct env *env)
{
    *p = (struct progress) { .is_terminal = isatty(STDOUT_FILENO), .begun_ns = env_now_ns(env) };
}

static void print_bar(const struct progress *p, uint64_t done)
{
    unsigned filled = p->total ? (unsigned)(done * BAR_WIDTH / p->total) : 0;

    putchar('[');
    for (unsigned i = 0; i < BAR_WIDTH; i++)
        putchar(i < filled ? '#' : '.');
    printf("] ");
}

static void print_numbers(const struct progress *p, uint64_t now_ns, uint64_t done, uint64_t left, uint64_t failed,
                          uint64_t bytes)
{
    uint64_t took_ms = MAX((now_ns - p->begun_ns) / 1000000, UINT64_C(1)), rate = done * 1000 / took_ms;

    if (left == UINT64_MAX)
        printf("%llu looked at", (unsigned long long)done);
    else
        printf("%llu of %llu healed", (unsigned long long)done, (unsigned long long)p->total);
    if (failed)
        printf(", %llu cannot be", (unsigned long long)failed);
    printf(", %llu/s", (unsigned long long)rate);
    if (bytes)
        printf(", %.1f MB copied", (double)bytes / 1e6);
    if (left != UINT64_MAX && left && rate)
        printf(", %llu:%02llu left", (unsigned long long)(left / rate / 60), (unsigned long long)(left / rate % 60));
}

void progress_show(struct progress *p, struct env *env, uint64_t done, uint64_t left, uint64_t failed, uint64_t bytes)
{
    uint64_t now_ns = env_now_ns(env);
    bool is_over = left == 0;

    if (left != UINT64_MAX)
        p->total = MAX(p->total, done + left);
    if (!p->is_terminal && !is_over &&
        (p->has_printed && (done == p->printed_done || now_ns - p->printed_ns < LINE_EVERY_MS * UINT64_C(1000000))))
        return;
    if (!p->is_terminal && is_over && p->has_printed && done == p->printed_done)
        return;
    if (p->is_terminal)
        printf("\r");
    if (p->is_terminal && left != UINT64_MAX)
        print_bar(p, done);
    print_numbers(p, now_ns, done, left, failed, bytes);
    printf("%s", p->is_terminal ? "\033[K" : "\n");
    (void)fflush(stdout);
    p->has_printed = true;
    p->printed_done = done;
    p->printed_ns = now_ns;
}

void progress_end(struct progress *p)
{
    if (p->is_terminal && p->has_printed)
        printf("\n");
    (void)fflush(stdout);
}

/* ---- reports ---- */

struct totals {
    uint64_t found, healed, failed, split, copied;
    uint64_t left; /* of all sets: what could not be healed, for whatever reason */
    bool is_busy, is_waiting, is_full;
};

static void add_set(const struct dict *d, long long set, struct totals *t)
{
    const char *state = answer_text(d, "%lld.state", set);

    t->is_busy |= answer_number(d, 0, "%lld.due", set) || strcmp(state, "index") == 0 || strcmp(state, "full") == 0 ||
                  answer_number(d, 0, "%lld.running", set) || answer_number(d, 0, "%lld.waiting", set);
    t->is_waiting |= strcmp(state, "waiting") == 0;
    t->is_full |= strcmp(state, "full") == 0;
    t->healed += (uint64_t)answer_number(d, 0, "%lld.healed", set);
    for (long long i = 0; i < answer_number(d, 0, "%lld.bricks", set); i++) {
        t->found += (uint64_t)answer_number(d, 0, "%lld.%lld.found", set, i);
        t->copied += (uint64_t)answer_number(d, 0, "%lld.%lld.copied", set, i);
    }
    t->left += (uint64_t)answer_number(d, 0, "%lld.troubles-in-all", set);
    for (long long i = 0; i < answer_number(d, 0, "%lld.troubles", set); i++) {
        const char *why = answer_text(d, "%lld.t.%lld.why", set, i);

        t->split += strcmp(why, "split-brain") == 0;
        t->failed += strcmp(why, "failed") == 0;
    }
}

static void add_all(const struct dict *d, struct totals *t)
{
    *t = (struct totals) { 0 };
    for (long long set = 0; set < answer_number(d, 0, "sets"); set++)
        add_set(d, set, t);
}

static int report_volume(struct volume *v, struct dict *d)
{
    int r = 0;

    for (unsigned i = 0; r == 0 && i < v->set_count; i++) {
        char prefix[16];

        (void)snprintf(prefix, sizeof(prefix), "%u.", i);
        r = heal_daemon_report(v->sets[i], prefix, d);
    }
    return r < 0 ? r : dict_set_uint(d, "sets", v->set_count);
}

static void print_troubles(const struct dict *d)
{
    for (long long set = 0; set < answer_number(d, 0, "sets"); set++) {
        for (long long i = 0; i < answer_number(d, 0, "%lld.troubles", set); i++) {
            const char *path = answer_text(d, "%lld.t.%lld.path", set, i),
                       *brick = answer_text(d, "%lld.t.%lld.brick", set, i);

            printf("%s%s%s: %s%s%s%s%s\n",
                   *path ? path : "<gfid:", *path ? "" : answer_text(d, "%lld.t.%lld.gfid", set, i), *path ? "" : ">",
                   answer_text(d, "%lld.t.%lld.why", set, i), *brick ? " on " : "", brick,
                   *answer_text(d, "%lld.t.%lld.err", set, i) ? ", " : "", answer_text(d, "%lld.t.%lld.err", set, i));
        }
    }
}

/* ---- by this process ---- */

static FIBER int follow_own(struct volume *v, bool is_full)
{
    struct progress progress;
    struct totals t;

    progress_begin(&progress, v->env);
    for (;;) {
        SCOPED(dict_unref) struct dict *d = dict_new();

        if (!d || report_volume(v, d) < 0)
            return exit_of(-ENOMEM);
        add_all(d, &t);
        if (t.is_waiting) {
            progress_end(&progress);
            (void)fprintf(stderr,
                          "mortar-heal: fewer than two bricks of a set can be reached: there is nothing to heal "
                          "from\n");
            return EXIT_NOT_DONE;
        }
        progress_show(&progress, v->env, is_full ? t.found : t.healed, UINT64_MAX, t.failed, t.copied);
        if (!t.is_busy) {
            progress_end(&progress);
            if (is_full)
                printf("Looked at %llu entries. ", (unsigned long long)t.found);
            printf("Healed %llu entries.\n", (unsigned long long)t.healed);
            print_troubles(d);
            return t.left ? EXIT_NOT_DONE : 0;
        }
        (void)fiber_sleep_ms(NULL, LOOK_AGAIN_MS);
    }
}

static FIBER int heal_here(struct env *env, struct args *args)
{
    struct volume *v = NEW(struct volume);
    struct error err = { "" };
    int r = v ? volume_open(v, env, args, true, &err) : -ENOMEM;

    if (r < 0) {
        (void)fprintf(stderr, "mortar-heal: %s\n", err.text[0] ? err.text : strerror(-r));
    } else {
        for (unsigned i = 0; i < v->set_count; i++)
            (void)heal_daemon_order(v->sets[i], args->verb == VERB_FULL ? HEAL_ORDER_FULL : HEAL_ORDER_INDEX);
        r = follow_own(v, args->verb == VERB_FULL);
    }
    if (v)
        volume_close(v);
    mem_free(v);
    return r < 0 ? exit_of(r) : r;
}

/* ---- by the daemon ---- */

static FIBER int follow_daemon(struct env *env, struct args *args)
{
    struct progress progress;
    struct totals t;

    progress_begin(&progress, env);
    for (;;) {
        SCOPED(dict_unref) struct dict *d = NULL;

        if (daemon_ask(env, args, "heal-status", &d, NULL) < 0)
            break; /* it was told, and ended since */
        add_all(d, &t);
        progress_show(&progress, env, t.is_full ? t.found : t.healed, UINT64_MAX, t.failed, t.copied);
        if (!t.is_busy)
            break;
        (void)fiber_sleep_ms(NULL, LOOK_AGAIN_MS);
    }
    progress_end(&progress);
    return 0;
}

FIBER int full_run(struct env *env, struct args *args)
{
    static const char *const orders[] = {
        [VERB_INDEX] = "heal-index", [VERB_FULL] = "heal-full", [VERB_STOP] = "heal-stop"
    };
    SCOPED(dict_unref) struct dict *d = NULL, *status = NULL;
    const char *what = args->verb == VERB_FULL ? "full" : "index";
    struct error err = { "" };
    int r = daemon_ask(env, args, orders[args->verb], &d, &err);

    if (r == -ENOENT || r == -ECONNREFUSED || r == -EACCES) {
        if (args->verb != VERB_STOP)
            return heal_here(env, args);
    }
    if (r == 0 && args->verb == VERB_STOP) {
        printf("The walk ends; \"full\" goes on with it.\n");
        return 0;
    }
    const char *name = args->c.volfile_id ? args->c.volfile_id : "";
    if (daemon_ask(env, args, "heal-status", &status, NULL) == 0)
        name = answer_text(status, "0.name");
    const char *dash = strstr(name, "-replicate-");
    int len = dash ? (int)(dash - name) : (int)strlen(name);
    if (r < 0) {
        (void)fprintf(stderr,
                      "Launching heal operation to perform %s self heal on volume %.*s has been unsuccessful:\n%s\n",
                      what, len, name, err.text[0] ? err.text : strerror(-r));
        return EXIT_NOT_DONE;
    }
    printf("Launching heal operation to perform %s self heal on volume %.*s has been successful \n"
           "Use heal info commands to check status.\n",
           what, len, name);
    return isatty(STDOUT_FILENO) ? follow_daemon(env, args) : 0;
}

/* ---- watching the bricks ---- */

/* Bricks list the same inodes, so of each set the longest list counts. */
static FIBER int count_left(struct volume *v, struct call *call, uint64_t *ret_left)
{
    uint64_t left = 0;
    bool any = false;

    for (unsigned i = 0; i < v->set_count; i++) {
        uint64_t most = 0, count;

        for (unsigned child = 0; child < v->sets[i]->child_count; child++) {
            if (heal_info_child_is_up(v->sets[i], child) && heal_info_count(v->sets[i], call, child, &count) == 0) {
                most = MAX(most, count);
                any = true;
            }
        }
        left += most;
    }
    *ret_left = left;
    return any ? 0 : -ENOTCONN;
}

static FIBER int watch(struct volume *v)
{
    struct progress progress;
    struct totals t;
    struct call call;
    uint64_t left = 0, first = 0;
    int r;

    volume_call(v, &call, PID_HEAL_INFO);
    progress_begin(&progress, v->env);
    for (;;) {
        SCOPED(dict_unref) struct dict *d = NULL;

        r = count_left(v, &call, &left);
        if (r < 0)
            break;
        t = (struct totals) { .is_busy = true };
        if (daemon_ask(v->env, v->args, "heal-status", &d, NULL) == 0)
            add_all(d, &t);
        first = MAX(first, left);
        if (!first) {
            printf("Nothing waits for heal.\n");
            break;
        }
        progress_show(&progress, v->env, first - left, left, t.failed + t.split, t.copied);
        if (left == 0)
            break;
        /* Only what cannot be healed is left. */
        if (d && !t.is_busy && t.failed + t.split >= left) {
            progress_end(&progress);
            print_troubles(d);
            call_done(&call);
            return EXIT_NOT_DONE;
        }
        (void)fiber_sleep_ms(NULL, LOOK_AGAIN_MS);
    }
    call_done(&call);
    progress_end(&progress);
    if (r < 0)
        (void)fprintf(stderr, "mortar-heal: no brick can be reached\n");
    return r < 0 ? exit_of(r) : 0;
}

FIBER int watch_run(struct env *env, struct args *args)
{
    struct volume *v = NEW(struct volume);
    struct error err = { "" };
    int r = v ? volume_open(v, env, args, false, &err) : -ENOMEM;

    if (r < 0)
        (void)fprintf(stderr, "mortar-heal: %s\n", err.text[0] ? err.text : strerror(-r));
    else
        r = watch(v);
    if (v)
        volume_close(v);
    mem_free(v);
    return r < 0 ? exit_of(r) : r;
}
