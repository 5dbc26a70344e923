/* Questions from machine to machine. */
#include "mgmt/nodes.h"
#include "core/mem.h"
#include "mgmt/brickdir.h"
#include "mgmt/command_internal.h"
#include "mgmt/links.h"
#include <errno.h>
#include <stdio.h>

const char *node_name(const struct mortard *d, const struct gfid *node)
{
    const struct node *n = cluster_find_node(d->cluster, node);

    if (gfid_equal(node, &d->node))
        return "localhost";
    return n && n->name_count > 0 ? n->names[0] : "unknown";
}

bool node_is_connected(const struct mortard *d, const struct gfid *node)
{
    return gfid_equal(node, &d->node) || link_find(d, node);
}

/* ---- asking ---- */

FIBER int node_ask(struct mortard *d, const struct gfid *node, json_t *question, json_t **ret_answer, struct error *err)
{
    json_t *answer = NULL;
    int r = question ? 0 : -ENOMEM;

    if (r == 0 && gfid_equal(node, &d->node))
        answer = node_answer(d, question, true, "");
    else if (r == 0)
        r = link_ask(d, node, question, &answer);
    json_decref(question);
    if (r < 0)
        return error_set(err, r, "Host %s not connected", node_name(d, node));
    if (!answer)
        return -ENOMEM;
    r = (int)json_integer_value(json_object_get(answer, "ret"));
    if (r < 0) {
        const char *why = json_string_value(json_object_get(answer, "error"));

        (void)error_set(err, r, "%s", why ? why : strerror(-r));
        json_decref(answer);
        return r;
    }
    *ret_answer = answer;
    return 0;
}

/* ---- answering ---- */

static const char *text_of(const json_t *o, const char *key)
{
    const char *text = json_string_value(json_object_get(o, key));

    return text ? text : "";
}

static int answer_probe(struct mortard *d, const json_t *question, json_t *answer, struct error *err)
{
    json_t *more = json_pack("{s:s, s:b}", "node", GFID_TEXT(&d->node), "alone",
                             d->cluster->node_count <= 1 && d->cluster->volume_count == 0);

    (void)question;
    (void)err;
    return more && json_object_update_new(answer, more) == 0 ? 0 : -ENOMEM;
}

/* Two digits a byte. */
static bool read_secret(const char *text, uint8_t secret[static SECRET_BYTES])
{
    if (strlen(text) != 2 * SECRET_BYTES)
        return false;
    for (size_t i = 0; i < SECRET_BYTES; i++) {
        unsigned value;

        if (sscanf(text + 2 * i, "%2x", &value) != 1)
            return false;
        secret[i] = (uint8_t)value;
    }
    return true;
}

static FIBER int answer_join(struct mortard *d, const json_t *question, json_t *answer, struct error *err)
{
    uint8_t secret[SECRET_BYTES];

    (void)answer;
    if (d->cluster->node_count > 1 || d->cluster->volume_count > 0)
        return error_set(err, -EBUSY, "%s is either already part of another cluster or having volumes configured",
                         text_of(question, "you"));
    if (!read_secret(text_of(question, "secret"), secret))
        return error_set(err, -EBADMSG, "the secret cannot be read");
    return mortard_join(d, secret, err);
}

static FIBER int answer_leave(struct mortard *d, const json_t *question, json_t *answer, struct error *err)
{
    (void)question;
    (void)answer;
    return mortard_leave(d, err);
}

static FIBER int answer_change(struct mortard *d, const json_t *question, json_t *answer, struct error *err)
{
    int r;

    if (!consensus_is_leader(d->consensus))
        return error_set(err, -EAGAIN, "another machine leads now");
    r = mortard_change(d, json_object_get(question, "change"), err);
    (void)json_object_set_new(answer, "index", json_integer((json_int_t)consensus_applied(d->consensus)));
    return r;
}

static FIBER int answer_member(struct mortard *d, const json_t *question, json_t *answer, struct error *err)
{
    struct gfid node;
    struct scope scope;
    int r;

    (void)answer;
    if (gfid_parse(text_of(question, "node"), &node) < 0)
        return error_set(err, -EBADMSG, "which machine is not said");
    if (!consensus_is_leader(d->consensus))
        return error_set(err, -EAGAIN, "another machine leads now");
    scope_init(&scope, env_deadline_ms(d->env, CHANGE_MS));
    r = json_is_true(json_object_get(question, "add"))
            ? consensus_add(d->consensus, member_of(&node), GFID_TEXT(&node), &scope)
            : consensus_remove(d->consensus, member_of(&node), &scope);
    scope_done(&scope);
    return r < 0 ? error_set(err, r, "the members could not be changed: %s", strerror(-r)) : 0;
}

/* ---- bricks of this machine ---- */

static struct brickdir *brickdir_of(struct mortard *d, const json_t *question)
{
    struct brickdir *b = NEW(struct brickdir);

    if (!b)
        return NULL;
    b->work_folder = d->options->work_folder;
    b->is_forced = json_is_true(json_object_get(question, "force"));
    (void)gfid_parse(text_of(question, "volume_id"), &b->volume_id); /* null then, which fits no brick */
    (void)snprintf(b->host, sizeof(b->host), "%s", text_of(question, "host"));
    (void)snprintf(b->path, sizeof(b->path), "%s", text_of(question, "path"));
    (void)snprintf(b->real_path, sizeof(b->real_path), "%s", text_of(question, "real_path"));
    b->was_made = json_is_true(json_object_get(question, "was_made"));
    b->was_marked = json_is_true(json_object_get(question, "was_marked"));
    return b;
}

static FIBER int answer_brick_prepare(struct mortard *d, const json_t *question, json_t *answer, struct error *err)
{
    SCOPED_FREE struct brickdir *b = brickdir_of(d, question);
    json_t *more;

    if (!b)
        return -ENOMEM;
    b->was_made = b->was_marked = false;
    env_pool_run(d->env, brickdir_prepare, b);
    if (b->ret < 0) {
        *err = b->err;
        return b->ret;
    }
    more = json_pack("{s:s, s:s, s:I, s:b, s:b}", "real_path", b->real_path, "mount_dir", b->mount_dir, "fsid",
                     (json_int_t)b->fsid, "was_made", b->was_made, "was_marked", b->was_marked);
    return more && json_object_update_new(answer, more) == 0 ? 0 : -ENOMEM;
}

static FIBER int answer_brick_undo(struct mortard *d, const json_t *question, json_t *answer, struct error *err)
{
    SCOPED_FREE struct brickdir *b = brickdir_of(d, question);

    (void)answer;
    (void)err;
    if (!b)
        return -ENOMEM;
    env_pool_run(d->env, brickdir_undo, b);
    return 0;
}

static FIBER int answer_start_check(struct mortard *d, const json_t *question, json_t *answer, struct error *err)
{
    struct volume *v;
    int r = request_volume(d, question, &v, err);

    (void)answer;
    return r < 0 ? r : bricks_check(d, v, json_is_true(json_object_get(question, "force")), err);
}

/* The first brick of this machine that should run and does not; NULL: they all do. */
static const struct process *find_failed(struct mortard *d, const char *volume)
{
    struct process *p;

    list_for_each (p, &d->processes, node) {
        if (p->brick && p->is_wanted && strcmp(p->volume, volume) == 0 && !process_look(p))
            return p;
    }
    return NULL;
}

/* Waits until this machine has the state of `index`, and has done what it says. */
static FIBER int answer_settle(struct mortard *d, const json_t *question, json_t *answer, struct error *err)
{
    const struct process *failed;
    int r = mortard_wait_applied(d, (uint64_t)json_integer_value(json_object_get(question, "index")));

    (void)answer;
    if (r < 0)
        return error_set(err, r, "the machine does not get the new state");
    reconcile_now(d, true);
    failed = find_failed(d, text_of(question, "name"));
    return failed ? error_set(err, -EIO, "Brick %s: %s", failed->brick, failed->why) : 0;
}

static int answer_status(struct mortard *d, const json_t *question, json_t *answer, struct error *err)
{
    struct volume *v;
    int r = request_volume(d, question, &v, err);
    json_t *rows = r == 0 ? status_rows(d, v) : NULL;

    if (r < 0)
        return r;
    return rows && json_object_set_new(answer, "rows", rows) == 0 ? 0 : -ENOMEM;
}

static const struct {
    const char *ask;
    int (*answer)(struct mortard *d, const json_t *question, json_t *answer, struct error *err);
    bool is_open; /* also to strangers */
} questions[] = {
    { "probe", answer_probe, true },
    { "join", answer_join, true },
    { "leave", answer_leave, false },
    { "change", answer_change, false },
    { "member", answer_member, false },
    { "brick-prepare", answer_brick_prepare, false },
    { "brick-undo", answer_brick_undo, false },
    { "start-check", answer_start_check, false },
    { "settle", answer_settle, false },
    { "status", answer_status, false },
};

FIBER json_t *node_answer(struct mortard *d, const json_t *question, bool is_proven, const char *seen)
{
    const char *ask = text_of(question, "ask");
    json_t *answer = json_object();
    struct error *err = NEW(struct error);
    int r = -EOPNOTSUPP;

    if (!answer || !err) {
        mem_free(err);
        return answer;
    }
    for (size_t i = 0; i < ARRAY_SIZE(questions); i++) {
        if (strcmp(questions[i].ask, ask) == 0)
            r = is_proven || questions[i].is_open ? questions[i].answer(d, question, answer, err) : -EACCES;
    }
    if (strcmp(ask, "probe") == 0)
        (void)json_object_set_new(answer, "seen",
                                  json_string(seen)); /* without it, it is found by its host's name only */
    if (r < 0 && !*err->text)
        (void)error_set(err, r, "%s", strerror(-r));
    (void)json_object_set_new(answer, "ret", json_integer(r < 0 ? r : 0));
    (void)json_object_set_new(answer, "error", json_string(err->text));
    mem_free(err);
    return answer;
}
