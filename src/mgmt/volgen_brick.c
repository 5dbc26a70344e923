/* Volume files of bricks, from storage up to the server. */
#include "core/mem.h"
#include "mgmt/volgen_internal.h"

struct brick_side {
    const struct brick *brick;
    const struct volgen_node *node;
    bool is_arbiter;
};

/* An option whose value is the brick's path and something behind it. */
static void path_option(struct draft *d, const char *key, const char *folder, const char *rest)
{
    SCOPED_FREE char *path = mem_printf("%s%s", folder, rest);

    draft_option(d, key, path ? path : "");
    d->is_failed = d->is_failed || !path;
}

static void write_posix(struct draft *d, const struct brick_side *side)
{
    const struct volume *v = d->v;

    draft_section(d, "posix", "storage/posix");
    draft_keys(d, "storage/posix");
    if (volume_option_is_on(v, "features.quota") || volume_option_is_on(v, "features.trash"))
        draft_option(d, "update-link-count-parent", "on");
    draft_number(d, "shared-brick-count", side->node->shared_brick_count);
    draft_option(d, "volume-id", GFID_TEXT(&v->id));
    draft_option(d, "directory", side->brick->path);
    draft_leaf(d);
}

static void write_trash_and_changelog(struct draft *d, const struct brick_side *side)
{
    const char *path = side->brick->path;

    draft_section(d, "trash", "features/trash");
    draft_keys(d, "features/trash");
    draft_option(d, "brick-path", path);
    draft_over_top(d);
    draft_section(d, "changelog", "features/changelog");
    draft_keys(d, "features/changelog");
    draft_option(d, "changelog-notification", "off");
    path_option(d, "changelog-dir", path, "/.glusterfs/changelogs");
    draft_option(d, "changelog-brick", path);
    draft_over_top(d);
    draft_section(d, "bitrot-stub", "features/bitrot-stub");
    draft_keys(d, "features/bitrot-stub");
    draft_option(d, "bitrot", volume_option_value(d->v, "features.bitrot"));
    draft_option(d, "export", path);
    draft_over_top(d);
}

static void write_marker(struct draft *d, const struct brick_side *side)
{
    SCOPED_FREE char *stamp = mem_printf("%s/vols/%s/marker.tstamp", side->node->work_folder, d->v->name);

    draft_section(d, "marker", "features/marker");
    draft_keys(d, "features/marker");
    draft_option(d, "quota-version", "0");
    draft_option(d, "timestamp-file", stamp ? stamp : "");
    draft_option(d, "volume-uuid", GFID_TEXT(&d->v->id));
    draft_over_top(d);
    d->is_failed = d->is_failed || !stamp;
}

static void write_index(struct draft *d, const struct brick_side *side)
{
    SCOPED_FREE char *watched = mem_printf("trusted.afr.%s-", d->v->name);

    draft_section(d, "index", "features/index");
    draft_option(d, "xattrop-pending-watchlist", watched ? watched : "");
    draft_option(d, "xattrop-dirty-watchlist", "trusted.afr.dirty");
    path_option(d, "index-base", side->brick->path, "/.glusterfs/indices");
    draft_over_top(d);
    draft_section(d, "quota", "features/quota");
    draft_keys(d, "features/quota");
    draft_option(d, "server-quota", volume_option_is_on(d->v, "features.quota") ? "on" : "off");
    draft_option(d, "volume-uuid", d->v->name);
    draft_over_top(d);
    d->is_failed = d->is_failed || !watched;
}

static void write_stats(struct draft *d, const struct brick_side *side)
{
    draft_named(d, side->brick->path, "debug/io-stats");
    draft_keys(d, "debug/io-stats");
    draft_option(d, "threads", volume_option_value(d->v, "config.brick-threads"));
    draft_option(d, "log-level", volume_option_value(d->v, "diagnostics.brick-log-level"));
    draft_option(d, "volume-id", GFID_TEXT(&d->v->id));
    draft_option(d, "unique-id", side->brick->path);
    draft_over_top(d);
}

/* "auth.<how>.<whose>.<what>" */
static void auth_option(struct draft *d, const char *how, const char *whose, const char *what, const char *value)
{
    SCOPED_FREE char *key = mem_printf("auth.%s.%s.%s", how, whose, what);

    draft_option(d, key ? key : "auth", value);
    d->is_failed = d->is_failed || !key;
}

static void write_server(struct draft *d, const struct brick_side *side)
{
    const struct volume *v = d->v;
    const char *path = side->brick->path;
    const char *reject = volume_option_get(v, "auth.reject");
    const char *names = volume_option_get(v, "auth.ssl-allow");

    draft_section(d, "server", "protocol/server");
    draft_keys(d, "protocol/server");
    draft_tls(d);
    auth_option(d, "addr", path, "allow", volume_option_value(v, "auth.allow"));
    if (reject)
        auth_option(d, "addr", path, "reject", reject);
    if (names)
        auth_option(d, "login", path, "ssl-allow", names);
    draft_option(d, "auth-path", path);
    auth_option(d, "login", GFID_TEXT(&v->username), "password", GFID_TEXT(&v->password));
    auth_option(d, "login", path, "allow", GFID_TEXT(&v->username));
    draft_option(d, "transport.address-family", volume_option_value(v, "transport.address-family"));
    draft_option(d, "transport-type", "tcp");
    draft_over_top(d);
}

char *volgen_brick(const struct volume *v, unsigned brick, const struct volgen_node *node)
{
    const struct brick_side side = { &v->bricks[brick], node, volume_is_arbiter(v, brick) };
    struct draft d;

    if (draft_begin(&d, v) < 0)
        return NULL;
    write_posix(&d, &side);
    draft_debug(&d, "posix");
    if (side.is_arbiter)
        draft_plain(&d, "arbiter", "features/arbiter");
    write_trash_and_changelog(&d, &side);
    if (volume_option_is_on(v, "features.acl"))
        draft_plain(&d, "access-control", "features/access-control");
    draft_plain(&d, "locks", "features/locks");
    draft_plain(&d, "worm", "features/worm");
    draft_plain(&d, "read-only", "features/read-only");
    draft_plain(&d, "leases", "features/leases");
    draft_plain(&d, "upcall", "features/upcall");
    draft_plain(&d, "io-threads", "performance/io-threads");
    draft_plain(&d, "selinux", "features/selinux");
    write_marker(&d, &side);
    draft_plain(&d, "barrier", "features/barrier");
    write_index(&d, &side);
    draft_debug(&d, "brick");
    write_stats(&d, &side);
    write_server(&d, &side);
    return draft_end(&d);
}

char *volgen_brick_id(const struct volume *v, unsigned brick)
{
    SCOPED_FREE char *dashes = path_with_dashes(v->bricks[brick].path, false);

    return dashes ? mem_printf("%s.%s.%s", v->name, v->bricks[brick].host, dashes) : NULL;
}
