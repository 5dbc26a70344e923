/* Commands about machines: taken in, let go, listed. */
#include "core/mem.h"
#include "mgmt/command_internal.h"
#include "mgmt/links.h"
#include "mgmt/nodes.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define LINK_WAIT_MS 15000

/* Gives a machine a vote, or takes it: the leader does it. */
static FIBER int set_member(struct mortard *d, const struct gfid *node, bool add, struct error *err)
{
    struct gfid leader;
    json_t *answer = NULL;
    int r = mortard_find_leader(d, &leader, err);

    r = r < 0 ? r
              : node_ask(d, &leader, json_pack("{s:s, s:s, s:b}", "ask", "member", "node", GFID_TEXT(node), "add", add),
                         &answer, err);
    json_decref(answer);
    return r;
}

static FIBER int wait_for_link(struct mortard *d, const struct gfid *node, struct error *err)
{
    struct scope scope;
    int r = 0;

    links_look(d);
    scope_init(&scope, env_deadline_ms(d->env, LINK_WAIT_MS));
    while (!link_find(d, node) && r == 0)
        r = waitq_wait(&d->state_changed, &scope);
    scope_done(&scope);
    return r < 0 ? error_set(err, r, "Probe returned with Transport endpoint is not connected") : 0;
}

static json_t *join_question(const struct mortard *d, const char *host)
{
    char hex[2 * SECRET_BYTES + 1];

    for (size_t i = 0; i < SECRET_BYTES; i++)
        (void)snprintf(hex + 2 * i, 3, "%02x", d->secret[i]);
    return json_pack("{s:s, s:s, s:s}", "ask", "join", "secret", hex, "you", host);
}

/* A question to a machine that is none of ours, with a sentence for its refusal. */
static FIBER int ask_stranger(struct mortard *d, const char *host, json_t *question, json_t **ret_answer,
                              struct error *err)
{
    json_t *answer = NULL;
    int r = question ? link_ask_stranger(d, host, question, &answer) : -ENOMEM;

    json_decref(question);
    if (r < 0)
        return error_set(err, -ENOTCONN, "Probe returned with Transport endpoint is not connected");
    r = (int)json_integer_value(json_object_get(answer, "ret"));
    if (r < 0) {
        const char *why = json_string_value(json_object_get(answer, "error"));

        (void)error_set(err, r, "%s", why ? why : "");
        json_decref(answer);
        return r;
    }
    *ret_answer = answer;
    return 0;
}

/* Takes the machine in. What was begun is taken back when it does not work out. */
static FIBER int take_in(struct mortard *d, const char *host, const struct gfid *node, struct error *err)
{
    json_t *answer = NULL;
    int r = ask_stranger(d, host, join_question(d, host), &answer, err);

    json_decref(answer);
    if (r < 0)
        return r;
    r = command_propose(d, json_pack("{s:s, s:s, s:[s]}", "op", "node-add", "node", GFID_TEXT(node), "names", host),
                        err);
    r = r < 0 ? r : wait_for_link(d, node, err);
    r = r < 0 ? r : set_member(d, node, true, err);
    if (r < 0) {
        answer = NULL;
        if (node_ask(d, node, json_pack("{s:s}", "ask", "leave"), &answer, NULL) == 0)
            json_decref(answer);
        (void)command_propose(d, json_pack("{s:s, s:s}", "op", "node-remove", "node", GFID_TEXT(node)),
                              NULL); /* or it stays: probe
                                                                                                          again, or detach */
    }
    return r;
}

/* The other machines must find this one: the one that was probed says from which address it came. */
static FIBER int learn_own_name(struct mortard *d, const json_t *probed, struct error *err)
{
    const char *own = request_text(probed, "seen");
    struct node *me = cluster_find_node(d->cluster, &d->node);

    if (!own || !*own || !me || node_has_name(me, own))
        return 0;
    return command_propose(
        d, json_pack("{s:s, s:s, s:[s]}", "op", "node-add", "node", GFID_TEXT(&d->node), "names", own), err);
}

static int note(json_t *answer, const char *text)
{
    return json_object_set_new(answer, "note", json_string(text)) < 0 ? -ENOMEM : 0;
}

FIBER int command_peer_probe(struct mortard *d, const json_t *request, json_t *answer, struct error *err)
{
    const char *host = request_text(request, "host");
    json_t *probed = NULL;
    struct gfid node;
    bool is_alone;
    int r;

    if (!host || !*host)
        return error_set(err, -EINVAL, "which machine is not said");
    if (cluster_find_host(d->cluster, host))
        return gfid_equal(&cluster_find_host(d->cluster, host)->id, &d->node)
                   ? note(answer, "Probe on localhost not needed")
                   : note(answer, "already in peer list");
    r = ask_stranger(d, host, json_pack("{s:s}", "ask", "probe"), &probed, err);
    if (r < 0)
        return r;
    r = gfid_parse(request_text(probed, "node") ? request_text(probed, "node") : "", &node);
    is_alone = request_flag(probed, "alone");
    if (r < 0)
        r = error_set(err, -EBADMSG, "Probe returned with an answer that cannot be read");
    else if (!gfid_equal(&node, &d->node))
        r = learn_own_name(d, probed, err);
    json_decref(probed);
    if (r < 0)
        return r;
    if (gfid_equal(&node, &d->node))
        return note(answer, "Probe on localhost not needed");
    if (r == 0 && cluster_find_node(d->cluster, &node)) /* a further name of one of ours */
        return command_propose(
            d, json_pack("{s:s, s:s, s:[s]}", "op", "node-add", "node", GFID_TEXT(&node), "names", host), err);
    if (r == 0 && !is_alone)
        r = error_set(err, -EBUSY, "%s is either already part of another cluster or having volumes configured", host);
    return r < 0 ? r : take_in(d, host, &node, err);
}

FIBER int command_peer_detach(struct mortard *d, const json_t *request, json_t *answer, struct error *err)
{
    const char *host = request_text(request, "host");
    const struct node *n = host ? cluster_find_host(d->cluster, host) : NULL;
    json_t *left = NULL;
    struct gfid node;
    int r;

    (void)answer;
    if (!n)
        return error_set(err, -ENOENT, "%s is not part of cluster", host ? host : "");
    node = n->id;
    if (gfid_equal(&node, &d->node))
        return error_set(err, -EINVAL, "%s is localhost", host);
    for (unsigned i = 0; i < d->cluster->node_count && !request_flag(request, "force"); i++) {
        if (!node_is_connected(d, &d->cluster->nodes[i].id))
            return error_set(err, -ENOTCONN, "One of the peers is probably down. Check with 'peer status'");
    }
    r = command_propose(d, json_pack("{s:s, s:s}", "op", "node-remove", "node", GFID_TEXT(&node)), err);
    r = r < 0 ? r : set_member(d, &node, false, err);
    if (r == 0 && node_ask(d, &node, json_pack("{s:s}", "ask", "leave"), &left, NULL) == 0)
        json_decref(left); /* else it finds out by itself that nobody talks to it */
    return r;
}

static json_t *peer_row(const struct mortard *d, const struct node *n)
{
    json_t *names = json_array();
    bool ok = names != NULL;

    for (unsigned i = 0; i < n->name_count && ok; i++)
        ok = json_array_append_new(names, json_string(n->names[i])) == 0;
    if (!ok) {
        json_decref(names);
        return NULL;
    }
    return json_pack("{s:s, s:o, s:b, s:b, s:i, s:s}", "id", GFID_TEXT(&n->id), "names", names, "local",
                     gfid_equal(&n->id, &d->node), "connected", node_is_connected(d, &n->id), "state", 3, "state_text",
                     "Peer in Cluster");
}

int command_peer_status(struct mortard *d, const json_t *request, json_t *answer, struct error *err)
{
    json_t *list = json_array();
    bool ok = list && json_object_set_new(answer, "peers", list) == 0;

    (void)request;
    (void)err;
    for (unsigned i = 0; i < d->cluster->node_count && ok; i++)
        ok = json_array_append_new(list, peer_row(d, &d->cluster->nodes[i])) == 0;
    return ok ? 0 : -ENOMEM;
}
