/* Bricks that are to be: from "HOST:/path" to marked folders. */
#include "core/mem.h"
#include "mgmt/brickdir.h"
#include "mgmt/command_internal.h"
#include "mgmt/nodes.h"
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- is a name one of this machine's? ---- */

struct local_job {
    const char *host;
    bool is_local;
};

static bool same_address(const struct sockaddr *a, const struct sockaddr *b)
{
    if (!a || !b || a->sa_family != b->sa_family)
        return false;
    if (a->sa_family == AF_INET)
        return memcmp(&((const struct sockaddr_in *)a)->sin_addr, &((const struct sockaddr_in *)b)->sin_addr, 4) == 0;
    return a->sa_family == AF_INET6 &&
           memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr, &((const struct sockaddr_in6 *)b)->sin6_addr, 16) == 0;
}

static void look_up_local(void *arg)
{
    struct local_job *job = arg;
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found = NULL;
    struct ifaddrs *own = NULL;

    if (getaddrinfo(job->host, NULL, &hints, &found) == 0 && getifaddrs(&own) == 0) {
        for (struct addrinfo *f = found; f && !job->is_local; f = f->ai_next) {
            for (struct ifaddrs *o = own; o && !job->is_local; o = o->ifa_next)
                job->is_local = same_address(f->ai_addr, o->ifa_addr);
        }
    }
    if (found)
        freeaddrinfo(found);
    if (own)
        freeifaddrs(own);
}

/* The machine a name belongs to. A name that leads here is learnt. */
static FIBER int find_host(struct mortard *d, const char *host, struct gfid *ret_node, struct error *err)
{
    struct node *known = cluster_find_host(d->cluster, host);
    struct local_job job = { .host = host };
    json_t *change;
    int r;

    if (known) {
        *ret_node = known->id;
        return 0;
    }
    env_pool_run(d->env, look_up_local, &job);
    if (!job.is_local)
        return error_set(err, -ENOTCONN, "Host %s is not in 'Peer in Cluster' state", host);
    change = json_pack("{s:s, s:s, s:[s]}", "op", "node-add", "node", GFID_TEXT(&d->node), "names", host);
    r = change ? mortard_change(d, change, err) : -ENOMEM;
    json_decref(change);
    if (r == 0)
        *ret_node = d->node;
    return r;
}

/* ---- names of bricks ---- */

static bool is_loopback(const char *host)
{
    return strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 || strncmp(host, "0.", 2) == 0 ||
           strcmp(host, "::1") == 0;
}

struct brick_name {
    char host[256];
    char path[BRICK_PATH_MAX];
};

static int split(const char *text, struct brick_name *b, struct error *err)
{
    const char *colon = strstr(text, ":/");
    size_t host_bytes = colon ? (size_t)(colon - text) : 0, length;

    if (!colon || host_bytes == 0 || host_bytes >= sizeof(b->host))
        return error_set(err, -EINVAL, "Wrong brick type: %s, use <HOSTNAME>:<export-dir-abs-path>", text);
    if (strlen(colon + 1) >= sizeof(b->path) - 64)
        return error_set(err, -ENAMETOOLONG, "brick path %.200s... is too long.", colon + 1);
    memcpy(b->host, text, host_bytes);
    b->host[host_bytes] = '\0';
    (void)snprintf(b->path, sizeof(b->path), "%s", colon + 1);
    for (length = strlen(b->path); length > 1 && b->path[length - 1] == '/'; length--)
        b->path[length - 1] = '\0';
    if (is_loopback(b->host))
        return error_set(
            err, -EINVAL,
            "Please provide a valid hostname/ip other than localhost, 127.0.0.1 or loopback address (0.0.0.0 to "
            "0.255.255.255).");
    return 0;
}

/* ---- many of them ---- */

static int check_spread(const json_t *bricks, unsigned group_size, bool is_forced, struct error *err)
{
    size_t count = json_array_size(bricks);

    for (size_t i = 0; i < count && group_size > 1 && !is_forced; i++) {
        for (size_t k = i - i % group_size; k < i; k++) {
            const char *a = json_string_value(json_array_get(bricks, i));
            const char *b = json_string_value(json_array_get(bricks, k));
            size_t length = a && strstr(a, ":/") ? (size_t)(strstr(a, ":/") - a) + 1 : 0;

            if (length > 0 && b && strncmp(a, b, length) == 0)
                return error_set(
                    err, -EINVAL,
                    "Multiple bricks of a replicate volume are present on the same server. This setup is not "
                    "optimal. Bricks should be on different nodes to have best fault tolerant configuration. Use "
                    "'force' at the end of the command if you want to override this behavior. ");
        }
    }
    return 0;
}

/* The brick for the change, and how to take it back. `prepared`: the machine's answer. */
static int add_prepared(struct new_bricks *all, const struct gfid *node, const struct brick_name *b,
                        const struct gfid *volume_id, const json_t *prepared)
{
    json_t *brick = json_pack("{s:s, s:s, s:s}", "node", GFID_TEXT(node), "host", b->host, "path", b->path);
    json_t *undo = json_pack("{s:s, s:s, s:s, s:s, s:s}", "ask", "brick-undo", "node", GFID_TEXT(node), "host", b->host,
                             "path", b->path, "volume_id", GFID_TEXT(volume_id));
    static const char *const kept[] = { "real_path", "mount_dir", "fsid" };
    static const char *const done[] = { "real_path", "was_made", "was_marked" };
    bool ok = brick && undo;

    for (size_t i = 0; i < ARRAY_SIZE(kept) && ok; i++)
        ok = json_object_set(brick, kept[i], json_object_get(prepared, kept[i])) == 0;
    for (size_t i = 0; i < ARRAY_SIZE(done) && ok; i++)
        ok = json_object_set(undo, done[i], json_object_get(prepared, done[i])) == 0;
    ok = ok && json_array_append(all->json, brick) == 0 && json_array_append(all->undo, undo) == 0;
    json_decref(brick);
    json_decref(undo);
    return ok ? 0 : -ENOMEM;
}

static FIBER int prepare_one(struct mortard *d, const char *text, const struct gfid *volume_id, bool is_forced,
                             struct new_bricks *all, struct error *err)
{
    SCOPED_FREE struct brick_name *b = NEW(struct brick_name);
    json_t *prepared = NULL;
    struct gfid node = d->node;
    int r = b ? split(text, b, err) : -ENOMEM;

    r = r < 0 ? r : find_host(d, b->host, &node, err);
    if (r == 0)
        r = node_ask(d, &node,
                     json_pack("{s:s, s:s, s:s, s:s, s:b}", "ask", "brick-prepare", "host", b->host, "path", b->path,
                               "volume_id", GFID_TEXT(volume_id), "force", is_forced),
                     &prepared, err);
    if (r < 0 && b && !gfid_equal(&node, &d->node) && node_is_connected(d, &node) && err && *err->text)
        return error_prefix(err, r, "Staging failed on %s. Error", node_name(d, &node));
    r = r < 0 ? r : add_prepared(all, &node, b, volume_id, prepared);
    json_decref(prepared);
    return r;
}

FIBER int new_bricks_prepare(struct mortard *d, const json_t *bricks, const struct gfid *volume_id, unsigned group_size,
                             bool is_forced, struct new_bricks *ret_bricks, struct error *err)
{
    struct new_bricks all = { .json = json_array(), .undo = json_array() };
    size_t i;
    json_t *text;
    int r = !all.json || !all.undo ? -ENOMEM : check_spread(bricks, group_size, is_forced, err);

    json_array_foreach(bricks, i, text)
    {
        if (r == 0 && !json_is_string(text))
            r = error_set(err, -EINVAL, "a brick is not a text");
        r = r < 0 ? r : prepare_one(d, json_string_value(text), volume_id, is_forced, &all, err);
    }
    if (r < 0) {
        new_bricks_undo(d, &all);
        new_bricks_done(&all);
        return r;
    }
    *ret_bricks = all;
    return 0;
}

FIBER void new_bricks_undo(struct mortard *d, struct new_bricks *b)
{
    size_t i;
    json_t *undo;

    json_array_foreach(b->undo, i, undo)
    {
        json_t *answer = NULL;
        struct gfid node;

        if (gfid_parse(request_text(undo, "node"), &node) == 0 &&
            node_ask(d, &node, json_incref(undo), &answer, NULL) == 0)
            json_decref(answer); /* else a mark stays, and `force` is needed for that folder */
    }
}

void new_bricks_done(struct new_bricks *b)
{
    json_decref(b->json);
    json_decref(b->undo);
    *b = (struct new_bricks) { 0 };
}

FIBER int bricks_check(struct mortard *d, const struct volume *v, bool is_forced, struct error *err)
{
    SCOPED(volume_free) struct volume *copy = volume_copy(v); /* the state may change while the pool works */
    struct brickdir *b = NEW(struct brickdir);
    int r = copy && b ? 0 : -ENOMEM;

    for (unsigned i = 0; r == 0 && i < copy->brick_count; i++) {
        if (!gfid_equal(&copy->bricks[i].node, &d->node))
            continue;
        *b = (struct brickdir) { .volume_id = copy->id, .is_forced = is_forced };
        (void)snprintf(b->host, sizeof(b->host), "%s", copy->bricks[i].host);
        (void)snprintf(b->path, sizeof(b->path), "%s", copy->bricks[i].path);
        env_pool_run(d->env, brickdir_check, b);
        r = b->ret;
        if (r < 0 && err)
            *err = b->err;
    }
    mem_free(b);
    return r;
}
