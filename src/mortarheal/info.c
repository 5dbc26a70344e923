/* info, info summary, info split-brain, statistics heal-count: what the bricks say, as "gluster volume heal" prints it. */
#include "cluster/replicate/heal_info.h"
#include "core/mem.h"
#include "mortarheal/commands.h"
#include "mortarheal/out.h"
#include <stdio.h>
#include <time.h>

struct shown {
    struct volume *v;
    struct heal_info **info; /* by set */
    struct dict *daemon;     /* what the heal daemon says, or NULL */
};

struct counts {
    uint64_t total, pending, split, healing, failed;
};

static struct heal_info *info_of(const struct shown *s, const struct brick *b)
{
    for (unsigned i = 0; i < s->v->set_count; i++) {
        if (s->v->sets[i] == b->set)
            return s->info[i];
    }
    return NULL;
}

static bool is_up(const struct shown *s, const struct brick *b)
{
    return info_of(s, b)->child[b->child].is_up;
}

/* ---- one entry ---- */

struct failure {
    const char *brick, *err;
};

/* Has the daemon tried it and failed? */
static bool find_failure(const struct shown *s, const struct heal_entry *e, struct failure *ret)
{
    char key[64];
    int64_t number;

    if (!s->daemon || e->state == HEAL_STATE_SPLIT_BRAIN)
        return false;
    (void)snprintf(key, sizeof(key), "of.%s", GFID_TEXT(&e->gfid));
    if (dict_get_int(s->daemon, key, &number) < 0)
        return false;
    long long set = number >> 32, at = number & 0xffffffff;
    ret->brick = answer_text(s->daemon, "%lld.t.%lld.brick", set, at);
    ret->err = answer_text(s->daemon, "%lld.t.%lld.err", set, at);
    return true;
}

/* "t" lists of the answer -> "of.<gfid>" = set << 32 | number, of what failed. */
static void index_failures(struct dict *d)
{
    char key[64];

    for (long long set = 0; set < answer_number(d, 0, "sets"); set++) {
        for (long long i = 0; i < answer_number(d, 0, "%lld.troubles", set); i++) {
            if (strcmp(answer_text(d, "%lld.t.%lld.why", set, i), "failed") != 0)
                continue;
            (void)snprintf(key, sizeof(key), "of.%s", answer_text(d, "%lld.t.%lld.gfid", set, i));
            (void)dict_set_int(d, key, set << 32 | i); /* shown as pending else */
        }
    }
}

static void count_entries(const struct shown *s, const struct brick *b, struct counts *ret)
{
    const struct heal_info *info = info_of(s, b);
    const struct heal_info_child *c = &info->child[b->child];
    struct failure f;

    *ret = (struct counts) { .total = c->count };
    for (uint32_t i = 0; i < c->count; i++) {
        const struct heal_entry *e = &info->entries[c->entries[i]];

        if (e->state == HEAL_STATE_SPLIT_BRAIN)
            ret->split++;
        else if (find_failure(s, e, &f))
            ret->failed++;
        else if (e->state == HEAL_STATE_HEALING)
            ret->healing++;
        else
            ret->pending++;
    }
}

static char *label(const struct heal_entry *e)
{
    return e->path ? mem_strdup(e->path) : mem_printf("<gfid:%s>", GFID_TEXT(&e->gfid));
}

static const char *const class_names[] = { "data", "metadata", "entry" };

static char *list_needs(const struct heal_entry *e)
{
    return mem_printf("%s%s%s%s%s", e->needs & 1 ? "data" : "", (e->needs & 1) && (e->needs & 6) ? "," : "",
                      e->needs & 2 ? "metadata" : "", (e->needs & 3) && (e->needs & 4) ? "," : "",
                      e->needs & 4 ? "entry" : "");
}

/* Names of the bricks in the mask, joined by commas. Returned. */
static char *list_bricks(const struct shown *s, const struct translator *set, uint32_t mask)
{
    char *text = mem_strdup("");

    for (unsigned i = 0; text && i < s->v->brick_count; i++) {
        const struct brick *b = &s->v->bricks[i];

        if (b->set != set || !(mask & bit(b->child)))
            continue;
        char *longer = mem_printf("%s%s%s", text, *text ? "," : "", b->name);
        mem_free(text);
        text = longer;
    }
    return text;
}

static void format_time(int64_t seconds, char text[static 40])
{
    time_t t = (time_t)seconds;
    struct tm tm;

    if (!seconds || !localtime_r(&t, &tm) || !strftime(text, 40, "%Y-%m-%d %H:%M:%S", &tm))
        (void)snprintf(text, 40, "?");
}

static void print_long(const struct shown *s, const struct brick *b, const struct heal_entry *e)
{
    SCOPED_FREE char *needs = list_needs(e);
    SCOPED_FREE char *behind = list_bricks(s, b->set, e->behind);
    char since[40];

    format_time(e->since_s, since);
    printf("    needs %s, behind: %s, since %s\n", needs && *needs ? needs : "a look", behind && *behind ? behind : "?",
           since);
}

static void print_entry(const struct shown *s, const struct brick *b, const struct heal_entry *e)
{
    SCOPED_FREE char *name = label(e);
    struct failure f;

    if (s->v->args->verb == VERB_SPLIT_BRAIN)
        printf("%s\n", name ? name : "?");
    else if (e->state == HEAL_STATE_SPLIT_BRAIN)
        printf("%s - Is in split-brain\n", name ? name : "?");
    else if (find_failure(s, e, &f))
        printf("%s - Cannot be healed: %s on %s\n", name ? name : "?", *f.err ? f.err : "?", *f.brick ? f.brick : "?");
    else if (e->state == HEAL_STATE_HEALING)
        printf("%s - Possibly undergoing heal\n", name ? name : "?");
    else
        printf("%s \n", name ? name : "?");
    if (s->v->args->is_long)
        print_long(s, b, e);
}

/* ---- text ---- */

static const char away[] = "Transport endpoint is not connected";

static void print_summary(const struct shown *s, const struct brick *b)
{
    struct counts n;

    if (!is_up(s, b)) {
        printf("Status: %s\nTotal Number of entries: -\nNumber of entries in heal pending: -\n"
               "Number of entries in split-brain: -\nNumber of entries possibly healing: -\n\n",
               away);
        return;
    }
    count_entries(s, b, &n);
    printf("Status: Connected\nTotal Number of entries: %llu\nNumber of entries in heal pending: %llu\n"
           "Number of entries in split-brain: %llu\nNumber of entries possibly healing: %llu\n",
           (unsigned long long)n.total, (unsigned long long)n.pending, (unsigned long long)n.split,
           (unsigned long long)n.healing);
    if (n.failed)
        printf("Number of entries that cannot be healed: %llu\n", (unsigned long long)n.failed);
    printf("\n");
}

static void print_list(const struct shown *s, const struct brick *b)
{
    const struct heal_info *info = info_of(s, b);
    const struct heal_info_child *c = &info->child[b->child];
    bool only_split = s->v->args->verb == VERB_SPLIT_BRAIN;
    const char *what = only_split ? "Number of entries in split-brain" : "Number of entries";
    uint64_t shown = 0;

    for (uint32_t i = 0; c->is_up && i < c->count; i++) {
        const struct heal_entry *e = &info->entries[c->entries[i]];

        if (only_split && e->state != HEAL_STATE_SPLIT_BRAIN)
            continue;
        print_entry(s, b, e);
        shown++;
    }
    if (c->is_up)
        printf("Status: Connected\n%s: %llu\n\n", what, (unsigned long long)shown);
    else
        printf("Status: %s\n%s: -\n\n", away, what);
}

static void print_text(const struct shown *s)
{
    for (unsigned i = 0; i < s->v->brick_count; i++) {
        const struct brick *b = &s->v->bricks[i];

        printf("Brick %s\n", b->name);
        if (s->v->args->verb == VERB_SUMMARY)
            print_summary(s, b);
        else
            print_list(s, b);
    }
}

/* ---- XML and JSON ---- */

static void out_count(struct out *o, const char *name, bool is_known, uint64_t count)
{
    if (is_known)
        out_number(o, name, (int64_t)count);
    else
        out_text(o, name, "-");
}

static void out_summary(struct out *o, const struct shown *s, const struct brick *b)
{
    struct counts n = { 0 };
    bool known = is_up(s, b);

    if (known)
        count_entries(s, b, &n);
    out_count(o, "totalNumberOfEntries", known, n.total);
    out_count(o, "numberOfEntriesInHealPending", known, n.pending);
    out_count(o, "numberOfEntriesInSplitBrain", known, n.split);
    out_count(o, "numberOfEntriesPossiblyHealing", known, n.healing);
    if (o->is_json)
        out_count(o, "numberOfEntriesThatCannotBeHealed", known, n.failed);
}

static const char *state_name(enum heal_state state, bool has_failed)
{
    switch (state) {
    case HEAL_STATE_SPLIT_BRAIN: return "split-brain";
    case HEAL_STATE_HEALING: return has_failed ? "failed" : "healing";
    default: return has_failed ? "failed" : "pending";
    }
}

static void out_json_entry(struct out *o, const struct shown *s, const struct brick *b, const struct heal_entry *e)
{
    static const char *const split_names[] = { "data", "metadata", "gfid", "type" };
    struct failure f = { "", "" };
    bool has_failed = find_failure(s, e, &f);

    out_open(o, NULL);
    if (e->path)
        out_text(o, "path", e->path);
    out_text(o, "gfid", GFID_TEXT(&e->gfid));
    out_text(o, "type",
             e->type == S_IFDIR   ? "directory"
             : e->type == S_IFREG ? "file"
             : e->type == S_IFLNK ? "symlink"
             : e->type            ? "special"
                                  : "unknown");
    out_text(o, "state", state_name(e->state, has_failed));
    out_open_list(o, "needs");
    for (int i = 0; i < CHANGE_COUNT; i++) {
        if (e->needs & bit((unsigned)i))
            out_text(o, NULL, class_names[i]);
    }
    out_close_list(o);
    out_open_list(o, "splitBrain");
    for (unsigned i = 0; i < ARRAY_SIZE(split_names); i++) {
        if (e->split_brain & bit(i))
            out_text(o, NULL, split_names[i]);
    }
    out_close_list(o);
    out_open_list(o, "behind");
    for (unsigned i = 0; i < s->v->brick_count; i++) {
        if (s->v->bricks[i].set == b->set && (e->behind & bit(s->v->bricks[i].child)))
            out_text(o, NULL, s->v->bricks[i].name);
    }
    out_close_list(o);
    if (e->since_s)
        out_number(o, "since", e->since_s);
    if (has_failed) {
        out_text(o, "error", f.err);
        out_text(o, "errorBrick", f.brick);
    }
    out_close(o, NULL);
}

static void out_entries(struct out *o, const struct shown *s, const struct brick *b)
{
    const struct heal_info *info = info_of(s, b);
    const struct heal_info_child *c = &info->child[b->child];
    bool only_split = s->v->args->verb == VERB_SPLIT_BRAIN;
    uint64_t shown = 0;

    out_open_list(o, "entries");
    for (uint32_t i = 0; c->is_up && i < c->count; i++) {
        const struct heal_entry *e = &info->entries[c->entries[i]];
        SCOPED_FREE char *name = label(e);

        if (only_split && e->state != HEAL_STATE_SPLIT_BRAIN)
            continue;
        if (o->is_json)
            out_json_entry(o, s, b, e);
        else
            out_text_with(o, "file", "gfid", GFID_TEXT(&e->gfid), name ? name : "");
        shown++;
    }
    out_close_list(o);
    out_text(o, "status", c->is_up ? "Connected" : away);
    out_count(o, "numberOfEntries", c->is_up, shown);
}

static void print_tree(const struct shown *s)
{
    struct out o;

    out_begin(&o, s->v->args->format == FORMAT_JSON);
    if (!o.is_json) {
        out_open(&o, "healInfo");
        out_open(&o, "bricks");
    }
    out_open_list(&o, "bricks");
    for (unsigned i = 0; i < s->v->brick_count; i++) {
        const struct brick *b = &s->v->bricks[i];

        out_open_with(&o, "brick", "hostUuid", b->uuid ? b->uuid : "-");
        out_text(&o, "name", b->name);
        if (s->v->args->verb == VERB_SUMMARY) {
            out_text(&o, "status", is_up(s, b) ? "Connected" : away);
            out_summary(&o, s, b);
        } else {
            out_entries(&o, s, b);
        }
        out_close(&o, "brick");
    }
    out_close_list(&o);
    if (!o.is_json) {
        out_close(&o, "bricks");
        out_close(&o, "healInfo");
        out_number(&o, "opRet", 0);
        out_number(&o, "opErrno", 0);
        out_text(&o, "opErrstr", "");
    }
    out_end(&o);
}

/* ---- statistics heal-count ---- */

static FIBER int count_run(struct volume *v)
{
    struct call call;

    volume_call(v, &call, PID_HEAL_INFO);
    printf("Gathering count of entries to be healed on volume %s has been successful \n", v->name);
    for (unsigned i = 0; i < v->brick_count; i++) {
        struct brick *b = &v->bricks[i];
        uint64_t count;

        printf("\nBrick %s\n", b->name);
        if (b->is_up && heal_info_count(b->set, &call, b->child, &count) == 0)
            printf("Number of entries: %llu\n", (unsigned long long)count);
        else
            printf("Status: Brick is not connected\nNo gathered input for this brick\n");
    }
    call_done(&call);
    return 0;
}

/* ---- the command ---- */

static FIBER int gather(struct shown *s, struct call *call)
{
    unsigned flags = s->v->args->verb == VERB_SUMMARY ? HEAL_INFO_NAMES : HEAL_INFO_NAMES | HEAL_INFO_PATHS;
    int r = 0;

    for (unsigned i = 0; r == 0 && i < s->v->set_count; i++) {
        s->info[i] = heal_info_new(s->v->sets[i]);
        r = s->info[i] ? heal_info_gather(s->info[i], call, flags) : -ENOMEM;
    }
    return r;
}

FIBER int info_run(struct volume *v)
{
    struct shown s = { .v = v };
    struct call call;
    int r;

    if (v->args->verb == VERB_COUNT)
        return count_run(v);
    s.info = mem_array(v->set_count, sizeof(void *));
    if (!s.info)
        return exit_of(-ENOMEM);
    volume_call(v, &call, PID_HEAL_INFO);
    r = gather(&s, &call);
    call_done(&call);
    if (r == 0 && daemon_ask(v->env, v->args, "heal-status", &s.daemon, NULL) == 0)
        index_failures(s.daemon);
    if (r < 0)
        (void)fprintf(stderr, "mortar-heal: %s\n", strerror(-r));
    else if (v->args->format == FORMAT_TEXT)
        print_text(&s);
    else
        print_tree(&s);
    for (unsigned i = 0; i < v->set_count; i++)
        heal_info_free(s.info[i]);
    mem_free(s.info);
    dict_unref(s.daemon);
    return r < 0 ? exit_of(r) : 0;
}
