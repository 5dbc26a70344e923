/* cluster/replicate/heal_daemon.c - what a heal daemon is doing, for commands and statedumps. */
#include "cluster/replicate/heal_daemon.h"
#include "cluster/replicate/healer_internal.h"
#include "core/mem.h"
#include <stdio.h>

#define TROUBLES_SHOWN 1000

/* Collects; the first failure stays. */
struct report {
    struct translator *me;
    const char *prefix;
    struct dict *d;
    int failed;
};

static char *full_key(const struct report *out, const char *key)
{
    return mem_printf("%s%s", out->prefix, key);
}

static void say_text(struct report *out, const char *key, const char *text)
{
    SCOPED_FREE char *full = full_key(out, key);
    int r = full ? dict_set_str(out->d, full, text) : -ENOMEM;

    out->failed = out->failed ? out->failed : r;
}

static void say_int(struct report *out, const char *key, int64_t value)
{
    SCOPED_FREE char *full = full_key(out, key);
    int r = full ? dict_set_int(out->d, full, value) : -ENOMEM;

    out->failed = out->failed ? out->failed : r;
}

/* say_item(out, 3, "healed", 5): key "3.healed" */
static void say_item(struct report *out, const char *list, unsigned number, const char *key, int64_t value)
{
    char text[80];

    snprintf(text, sizeof(text), "%s%u.%s", list, number, key);
    say_int(out, text, value);
}

static void say_item_text(struct report *out, const char *list, unsigned number, const char *key, const char *value)
{
    char text[80];

    snprintf(text, sizeof(text), "%s%u.%s", list, number, key);
    say_text(out, text, value);
}

static const char *state_of(const struct replicate *s)
{
    if (!s->self_heal_daemon)
        return "off";
    if (mask_count(s->up) < 2)
        return "waiting";
    if (s->healer->is_crawling)
        return "index";
    return s->healer->is_walking ? "full" : "idle";
}

static const char *why(const struct translator *me, const struct heal_trouble *t)
{
    if (heal_trouble_is_early(me, t))
        return "later";
    switch (t->outcome) {
    case HEAL_SPLIT_BRAIN: return "split-brain";
    case HEAL_BUSY: return "busy";
    case HEAL_LEFT: return t->error && t->error != -ENOTCONN ? "failed" : "away";
    default: return t->error == -ENOTCONN ? "away" : "failed";
    }
}

/* ---- one brick ---- */

/* The one under way that was begun last, or else the last. */
static const struct heal_crawl *present(struct healer *h, unsigned child)
{
    const struct heal_history *history = &h->history[child];
    const struct heal_crawl *crawl = heal_crawl_of(h, (int)child, false);

    if (!crawl)
        crawl = heal_crawl_of(h, (int)child, true);
    if (!crawl && history->count)
        crawl = &history->crawl[(history->first + history->count - 1) % CRAWLS_KEPT];
    return crawl;
}

static void say_progress(struct report *out, unsigned child, const struct heal_crawl *c)
{
    uint64_t took_ms = MAX((env_now_ns(out->me->env) - c->start_ns) / 1000000, UINT64_C(1));
    uint64_t done = c->tally.healed + c->tally.failed + c->tally.split;
    int64_t left = -1;

    if (!c->end_s && !c->is_full && done && c->expected >= done)
        left = (int64_t)((c->expected - done) * took_ms / done / 1000);
    say_item(out, "", child, "found", (int64_t)c->tally.found);
    say_item(out, "", child, "expected", (int64_t)c->expected);
    say_item(out, "", child, "healed", (int64_t)c->tally.healed);
    say_item(out, "", child, "failed", (int64_t)c->tally.failed);
    say_item(out, "", child, "split", (int64_t)c->tally.split);
    say_item(out, "", child, "bytes", (int64_t)c->tally.bytes_compared);
    say_item(out, "", child, "copied", (int64_t)c->tally.bytes_copied);
    say_item(out, "", child, "rate", c->end_s ? 0 : (int64_t)(done * 1000 / took_ms));
    say_item(out, "", child, "left", left);
}

static void say_brick(struct report *out, unsigned child)
{
    struct replicate *s = replicate_of(out->me);
    const struct heal_history *history = &s->healer->history[child];
    const struct heal_crawl *crawl = present(s->healer, child);
    const char *host = "";

    (void)dict_get_str(out->me->children[child]->options, "remote-host", &host); /* a local one has none */
    say_item_text(out, "", child, "name", out->me->children[child]->name);
    say_item_text(out, "", child, "host", host);
    say_item(out, "", child, "up", (s->up & bit(child)) != 0);
    if (crawl)
        say_progress(out, child, crawl);
    say_item(out, "", child, "crawls", history->count);
    for (unsigned i = 0; i < history->count; i++) {
        char list[24];

        crawl = &history->crawl[(history->first + i) % CRAWLS_KEPT];
        snprintf(list, sizeof(list), "%u.", child);
        say_item(out, list, i, "start", crawl->start_s);
        say_item(out, list, i, "end", crawl->end_s);
        say_item_text(out, list, i, "type", crawl->is_full ? "FULL" : "INDEX");
        say_item(out, list, i, "healed", (int64_t)crawl->tally.healed);
        say_item(out, list, i, "split", (int64_t)crawl->tally.split);
        say_item(out, list, i, "failed", (int64_t)crawl->tally.failed);
    }
}

static void say_trouble(struct report *out, unsigned number, const struct heal_trouble *t)
{
    say_item_text(out, "t.", number, "gfid", GFID_TEXT(&t->gfid));
    say_item_text(out, "t.", number, "path", t->path ? t->path : "");
    say_item_text(out, "t.", number, "brick", t->child < 0 ? "" : out->me->children[t->child]->name);
    say_item_text(out, "t.", number, "err", t->error ? errno_name(t->error) : "");
    say_item(out, "t.", number, "since", t->since_s);
    say_item(out, "t.", number, "tries", t->tries);
    say_item_text(out, "t.", number, "why", why(out->me, t));
}

int heal_daemon_report(struct translator *me, const char *prefix, struct dict *d)
{
    struct replicate *s = replicate_of(me);
    struct healer *h = s->healer;
    struct report out = { .me = me, .prefix = prefix, .d = d };
    struct heal_trouble *t, *next;
    unsigned shown = 0;

    say_text(&out, "name", me->name);
    say_int(&out, "daemon", h->history != NULL);
    say_text(&out, "state", state_of(s));
    say_int(&out, "due", h->has_main && (h->wants_index || h->wants_full));
    say_int(&out, "waiting", h->waiting_count);
    say_int(&out, "running", h->running_count);
    say_int(&out, "healed", (int64_t)h->all.healed);
    say_int(&out, "bricks", s->child_count);
    for (unsigned i = 0; h->history && i < s->child_count; i++)
        say_brick(&out, i);
    HASH_ITER(hh, h->troubles, t, next)
    {
        if (shown < TROUBLES_SHOWN)
            say_trouble(&out, shown++, t);
    }
    say_int(&out, "troubles", shown);
    say_int(&out, "troubles-in-all", h->trouble_count);
    return out.failed;
}

/* ---- statedump ---- */

void healer_dump(struct translator *me, struct dump *out)
{
    struct replicate *s = replicate_of(me);
    struct healer *h = s->healer;
    char key[64];

    dump_printf(out, "heal-state", "%s", h->history ? state_of(s) : "client");
    dump_printf(out, "heals-waiting", "%u", h->waiting_count);
    dump_printf(out, "heals-running", "%u", h->running_count);
    dump_printf(out, "healed", "%llu", (unsigned long long)h->all.healed);
    dump_printf(out, "heals-failed", "%llu", (unsigned long long)h->all.failed);
    dump_printf(out, "heals-in-split-brain", "%llu", (unsigned long long)h->all.split);
    dump_printf(out, "heal-bytes-compared", "%llu", (unsigned long long)h->all.bytes_compared);
    dump_printf(out, "heal-bytes-copied", "%llu", (unsigned long long)h->all.bytes_copied);
    dump_printf(out, "heal-troubles", "%u", h->trouble_count);
    for (unsigned i = 0; h->history && i < s->child_count; i++) {
        const struct heal_crawl *c = present(h, i);

        if (!c)
            continue;
        snprintf(key, sizeof(key), "crawl[%u]", i);
        dump_printf(out, key, "%s %s found=%llu of=%llu healed=%llu failed=%llu split-brain=%llu",
                    c->is_full ? "FULL" : "INDEX", c->end_s ? "ended" : "runs", (unsigned long long)c->tally.found,
                    (unsigned long long)c->expected, (unsigned long long)c->tally.healed,
                    (unsigned long long)c->tally.failed, (unsigned long long)c->tally.split);
    }
}
