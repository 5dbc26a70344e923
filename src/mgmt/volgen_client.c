/* Volume files of the client side: mounts, the heal process, the process that moves files. */
#include "core/mem.h"
#include "mgmt/volgen_internal.h"

struct side {
    bool is_trusted; /* shows user name and password */
    bool sends_gids;
    bool heals;
};

static void write_client(struct draft *d, const struct brick *b, const struct side *side)
{
    const struct volume *v = d->v;

    draft_named(d, b->id, "protocol/client");
    if (side->sends_gids)
        draft_option(d, "send-gids", volume_option_is_on(v, "server.manage-gids") ? "false" : "true");
    draft_keys(d, "protocol/client");
    if (!volume_option_get(v, "network.ping-timeout"))
        draft_option(d, "ping-timeout", "42");
    draft_tls(d);
    if (side->is_trusted) {
        draft_option(d, "username", GFID_TEXT(&v->username));
        draft_option(d, "password", GFID_TEXT(&v->password));
    }
    draft_option(d, "transport.address-family", volume_option_value(v, "transport.address-family"));
    draft_option(d, "transport-type", "tcp");
    draft_option(d, "remote-subvolume", b->path);
    draft_option(d, "remote-host", b->host);
    draft_leaf(d);
}

/* `list` is given; a longer one is returned, NULL for lack of memory (also if it was NULL already). */
static char *add_name(char *list, const char *name, char between)
{
    char text[2] = { between, '\0' };
    char *longer = list && name ? mem_printf("%s%s%s", list, *list ? text : "", name) : NULL;

    mem_free(list);
    return longer;
}

/* "V-client-0<between>V-client-1...": the bricks [first, first + count). Returned; NULL for lack of memory. */
static char *brick_names(const struct volume *v, unsigned first, unsigned count, char between)
{
    char *list = mem_strdup("");

    for (unsigned i = first; i < first + count; i++)
        list = add_name(list, v->bricks[i].id, between);
    return list;
}

/* The heal process heals all there is, whatever mounts were told. */
static void write_heal_options(struct draft *d)
{
    const char *timeout = volume_option_get(d->v, "cluster.heal-timeout");
    const char *daemon = volume_option_get(d->v, "cluster.self-heal-daemon");

    draft_option(d, "iam-self-heal-daemon", "yes");
    draft_option(d, "self-heal-daemon", daemon ? daemon : "enable");
    if (timeout)
        draft_option(d, "heal-timeout", timeout);
    draft_option(d, "entry-self-heal", "on");
    draft_option(d, "data-self-heal", "on");
    draft_option(d, "metadata-self-heal", "on");
    draft_option(d, "background-self-heal-count", "0");
}

static void write_set(struct draft *d, unsigned set, const struct side *side)
{
    const struct volume *v = d->v;
    unsigned size = volume_group_size(v);
    SCOPED_FREE char *pending = brick_names(v, set * size, size, ',');
    SCOPED_FREE char *children = brick_names(v, set * size, size, ' ');
    char name[32];

    (void)snprintf(name, sizeof(name), "replicate-%u", set);
    draft_section(d, name, "cluster/replicate");
    draft_keys(d, "cluster/replicate");
    if (side->heals)
        write_heal_options(d); /* later ones win */
    draft_option(d, "use-anonymous-inode", "yes");
    if (v->arbiter_count > 0)
        draft_number(d, "arbiter-count", v->arbiter_count);
    draft_option(d, "volume-id", GFID_TEXT(&v->id));
    draft_option(d, "afr-pending-xattr", pending ? pending : "");
    draft_over(d, children ? children : "");
    d->is_failed = d->is_failed || !pending || !children;
}

static void write_readdir_ahead(struct draft *d, const char *short_name, const char *over)
{
    draft_section(d, short_name, "performance/readdir-ahead");
    draft_keys(d, "performance/readdir-ahead");
    if (!over) {
        draft_over_top(d);
        return;
    }
    draft_option(d, "performance.readdir-ahead", "on");
    draft_over(d, over);
}

static bool has_readdir_ahead_below(const struct volume *v)
{
    return volume_option_is_on(v, "performance.readdir-ahead") &&
           volume_option_is_on(v, "performance.parallel-readdir");
}

/* One readdir-ahead per cluster child. Their names: returned, NULL for lack of memory. */
static char *write_readdir_ahead_each(struct draft *d, char *children)
{
    char *list = mem_strdup("");
    char *rest = children, *child;
    unsigned i = 0;

    while ((child = strsep(&rest, " "))) {
        char name[32];

        (void)snprintf(name, sizeof(name), "readdir-ahead-%u", i++);
        write_readdir_ahead(d, name, child);
        list = add_name(list, d->top, ' ');
    }
    return list;
}

/* Clients, and replica sets above them where there are any. The names of the uppermost: returned, NULL for lack of
 * memory. */
static char *write_clusters(struct draft *d, const struct side *side)
{
    const struct volume *v = d->v;
    char *list;

    for (unsigned i = 0; i < v->brick_count; i++)
        write_client(d, &v->bricks[i], side);
    if (v->kind != VOLUME_REPLICATE)
        return brick_names(v, 0, v->brick_count, ' ');
    list = mem_strdup("");
    for (unsigned set = 0; set < v->brick_count / volume_group_size(v); set++) {
        write_set(d, set, side);
        list = add_name(list, d->top, ' ');
    }
    return list;
}

static void write_distribute(struct draft *d, const char *children)
{
    draft_section(d, "dht", "cluster/distribute");
    draft_keys(d, "cluster/distribute");
    draft_over(d, children ? children : "");
    d->is_failed = d->is_failed || !children;
}

static void write_caches(struct draft *d)
{
    static const struct {
        const char *key, *name;
    } caches[] = {
        { "performance.write-behind", "write-behind" },
        { "performance.read-ahead", "read-ahead" },
        { "performance.readdir-ahead", "readdir-ahead" },
        { "performance.io-cache", "io-cache" },
        { "performance.open-behind", "open-behind" },
        { "performance.quick-read", "quick-read" },
        { "performance.nl-cache", "nl-cache" },
        { "performance.stat-prefetch", "md-cache" },
        { "performance.client-io-threads", "io-threads" },
    };

    for (size_t i = 0; i < sizeof(caches) / sizeof(caches[0]); i++) {
        char type[32];

        if (!volume_option_is_on(d->v, caches[i].key))
            continue;
        if (strcmp(caches[i].name, "readdir-ahead") == 0 && has_readdir_ahead_below(d->v))
            continue;
        (void)snprintf(type, sizeof(type), "performance/%s", caches[i].name);
        draft_section(d, caches[i].name, type);
        draft_keys(d, type);
        /* Without quick-read a read is the first that needs the file, and must not go past its open. */
        if (strcmp(caches[i].name, "open-behind") == 0 && !volume_option_is_on(d->v, "performance.quick-read") &&
            !volume_option_get(d->v, "performance.read-after-open"))
            draft_option(d, "read-after-open", "yes");
        draft_over_top(d);
    }
}

/* The root: it has the volume's own name. */
static void write_root(struct draft *d, const char *children)
{
    draft_named(d, d->v->name, "debug/io-stats");
    draft_option(d, "log-level", volume_option_value(d->v, "diagnostics.client-log-level"));
    draft_option(d, "threads", volume_option_value(d->v, "config.client-threads"));
    if (children) {
        draft_over(d, children);
        return;
    }
    draft_keys(d, "debug/io-stats");
    draft_over_top(d);
}

char *volgen_client(const struct volume *v, bool is_trusted)
{
    const struct side side = { .is_trusted = is_trusted, .sends_gids = true };
    SCOPED_FREE char *children = NULL;
    struct draft d;

    if (draft_begin(&d, v) < 0)
        return NULL;
    children = write_clusters(&d, &side);
    if (children && has_readdir_ahead_below(v)) {
        char *each = write_readdir_ahead_each(&d, children);

        mem_free(children);
        children = each;
    }
    write_distribute(&d, children);
    if (volume_option_is_on(v, "features.shard"))
        draft_plain(&d, "shard", "features/shard");
    if (volume_option_is_on(v, "features.ctime"))
        draft_plain(&d, "utime", "features/utime");
    write_caches(&d);
    draft_debug(&d, "client");
    write_root(&d, NULL);
    return draft_end(&d);
}

char *volgen_heal(const struct volume *v)
{
    const struct side side = { .is_trusted = true, .heals = true };
    SCOPED_FREE char *children = NULL;
    struct draft d;

    if (draft_begin(&d, v) < 0)
        return NULL;
    children = write_clusters(&d, &side);
    d.is_failed = d.is_failed || !children;
    write_root(&d, children ? children : "");
    return draft_end(&d);
}

char *volgen_rebalance(const struct volume *v)
{
    const struct side side = { .is_trusted = true };
    SCOPED_FREE char *children = NULL;
    struct draft d;

    if (draft_begin(&d, v) < 0)
        return NULL;
    children = write_clusters(&d, &side);
    write_distribute(&d, children);
    write_root(&d, NULL);
    return draft_end(&d);
}
