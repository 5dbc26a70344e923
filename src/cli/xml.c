/* Answers as GlusterFS's XML documents (docs/management.md "The command"). */
#include "cli/cli.h"
#include "cli/text.h"
#include "core/base.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_escaped(const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '<': fputs("&lt;", stdout); break;
        case '>': fputs("&gt;", stdout); break;
        case '&': fputs("&amp;", stdout); break;
        default: putchar(*text);
        }
    }
}

static void indent(int depth)
{
    printf("%*s", depth * 2, "");
}

static void leaf(int depth, const char *name, const char *text)
{
    indent(depth);
    if (!*text) {
        printf("<%s/>\n", name);
        return;
    }
    printf("<%s>", name);
    put_escaped(text);
    printf("</%s>\n", name);
}

static void leaf_number(int depth, const char *name, long long value)
{
    indent(depth);
    printf("<%s>%lld</%s>\n", name, value, name);
}

static void open_element(int depth, const char *name)
{
    indent(depth);
    printf("<%s>\n", name);
}

static void close_element(int depth, const char *name)
{
    indent(depth);
    printf("</%s>\n", name);
}

/* ---- simple answers ---- */

static void volume_part(const char *element, const json_t *answer)
{
    open_element(1, element);
    open_element(2, "volume");
    leaf(3, "name", text_of(answer, "name"));
    leaf(3, "id", text_of(answer, "id"));
    close_element(2, "volume");
    close_element(1, element);
}

static void create_part(const json_t *request, const json_t *answer)
{
    (void)request;
    volume_part("volCreate", answer);
}

static void start_part(const json_t *request, const json_t *answer)
{
    (void)request;
    volume_part("volStart", answer);
}

static void stop_part(const json_t *request, const json_t *answer)
{
    (void)request;
    volume_part("volStop", answer);
}

static void delete_part(const json_t *request, const json_t *answer)
{
    (void)request;
    volume_part("volDelete", answer);
}

/* ---- info, list ---- */

static void info_bricks(const json_t *v)
{
    size_t i;
    json_t *b;

    open_element(4, "bricks");
    json_array_foreach(json_object_get(v, "bricks"), i, b)
    {
        indent(5);
        printf("<brick uuid=\"%s\">", text_of(b, "node"));
        put_escaped(text_of(b, "host"));
        putchar(':');
        put_escaped(text_of(b, "path"));
        fputs("<name>", stdout);
        put_escaped(text_of(b, "host"));
        putchar(':');
        put_escaped(text_of(b, "path"));
        printf("</name><hostUuid>%s</hostUuid><isArbiter>%d</isArbiter></brick>\n", text_of(b, "node"),
               is_arbiter(v, i));
    }
    close_element(4, "bricks");
}

static void info_options(const json_t *v)
{
    const json_t *settings = json_object_get(v, "settings");
    size_t i;
    json_t *pair;

    leaf_number(4, "optCount", (long long)json_array_size(settings));
    open_element(4, "options");
    json_array_foreach(settings, i, pair)
    {
        open_element(5, "option");
        leaf(6, "name", json_string_value(json_array_get(pair, 0)));
        leaf(6, "value", json_string_value(json_array_get(pair, 1)));
        close_element(5, "option");
    }
    close_element(4, "options");
}

static void info_volume(const json_t *v)
{
    long long bricks = (long long)json_array_size(json_object_get(v, "bricks"));
    bool is_mirror = number_of(v, "kind") == 2;
    long long sets = is_mirror ? bricks / number_of(v, "replica") : bricks;

    open_element(3, "volume");
    leaf(4, "name", text_of(v, "name"));
    leaf(4, "id", text_of(v, "id"));
    leaf_number(4, "status", number_of(v, "state"));
    leaf(4, "statusStr", state_text(v));
    leaf_number(4, "snapshotCount", 0);
    leaf_number(4, "brickCount", bricks);
    leaf_number(4, "distCount", sets);
    leaf_number(4, "replicaCount", is_mirror ? number_of(v, "replica") : 1);
    leaf_number(4, "arbiterCount", number_of(v, "arbiter"));
    leaf_number(4, "disperseCount", 0);
    leaf_number(4, "redundancyCount", 0);
    leaf_number(4, "type", !is_mirror ? 0 : sets > 1 ? 7 : 2);
    leaf(4, "typeStr", type_text(v));
    leaf_number(4, "transport", 0);
    info_bricks(v);
    info_options(v);
    close_element(3, "volume");
}

static void info_part(const json_t *request, const json_t *answer)
{
    const json_t *volumes = json_object_get(answer, "volumes");
    size_t i;
    json_t *v;

    (void)request;
    open_element(1, "volInfo");
    open_element(2, "volumes");
    json_array_foreach(volumes, i, v)
    {
        info_volume(v);
    }
    leaf_number(3, "count", (long long)json_array_size(volumes));
    close_element(2, "volumes");
    close_element(1, "volInfo");
}

static void list_part(const json_t *request, const json_t *answer)
{
    const json_t *volumes = json_object_get(answer, "volumes");
    size_t i;
    json_t *v;

    (void)request;
    open_element(1, "volList");
    leaf_number(2, "count", (long long)json_array_size(volumes));
    json_array_foreach(volumes, i, v)
    {
        leaf(2, "volume", json_string_value(v));
    }
    close_element(1, "volList");
}

/* ---- status ---- */

static void leaf_or_none(int depth, const char *name, bool is_there, long long value)
{
    if (is_there)
        leaf_number(depth, name, value);
    else
        leaf(depth, name, "N/A");
}

static void status_row(const json_t *request, const json_t *row)
{
    bool is_brick = strcmp(text_of(row, "kind"), "brick") == 0, is_up = json_is_true(json_object_get(row, "online"));
    bool has_port = is_brick && is_up;

    open_element(4, "node");
    leaf(5, "hostname", is_brick ? text_of(row, "host") : "Self-heal Daemon");
    leaf(5, "path", is_brick ? text_of(row, "path") : text_of(row, "host"));
    leaf(5, "peerid", text_of(row, "node"));
    leaf_number(5, "status", is_up);
    leaf_or_none(5, "port", has_port, number_of(row, "port"));
    open_element(5, "ports");
    leaf_or_none(6, "tcp", has_port, number_of(row, "port"));
    leaf(6, "rdma", "N/A");
    close_element(5, "ports");
    leaf_number(5, "pid", is_up ? number_of(row, "pid") : -1);
    if (is_brick && strcmp(text_of(request, "kind"), "detail") == 0) {
        leaf_number(5, "sizeTotal", number_of(row, "size_total"));
        leaf_number(5, "sizeFree", number_of(row, "size_free"));
        leaf_number(5, "blockSize", number_of(row, "block_size"));
        leaf_number(5, "inodesTotal", number_of(row, "inodes_total"));
        leaf_number(5, "inodesFree", number_of(row, "inodes_free"));
    }
    close_element(4, "node");
}

static void status_part(const json_t *request, const json_t *answer)
{
    bool is_tasks = strcmp(text_of(request, "kind"), "tasks") == 0;
    size_t i, k;
    json_t *v, *row;

    open_element(1, "volStatus");
    open_element(2, "volumes");
    json_array_foreach(json_object_get(answer, "volumes"), i, v)
    {
        if (!json_is_true(json_object_get(v, "started")))
            continue;
        open_element(3, "volume");
        leaf(4, "volName", text_of(v, "name"));
        if (!is_tasks)
            leaf_number(4, "nodeCount", (long long)json_array_size(json_object_get(v, "rows")));
        json_array_foreach(json_object_get(v, "rows"), k, row)
        {
            if (!is_tasks)
                status_row(request, row);
        }
        leaf(4, "tasks", "");
        close_element(3, "volume");
    }
    close_element(2, "volumes");
    close_element(1, "volStatus");
}

/* ---- options, machines ---- */

static void get_part(const json_t *request, const json_t *answer)
{
    const json_t *options = json_object_get(answer, "options");
    size_t i;
    json_t *o;

    (void)request;
    open_element(1, "volGetopts");
    leaf_number(2, "count", (long long)json_array_size(options));
    json_array_foreach(options, i, o)
    {
        const char *value = json_string_value(json_object_get(o, "value"));
        char text[1024];

        (void)snprintf(text, sizeof(text), "%s%s", value ? value : "(null)",
                       json_is_true(json_object_get(o, "default")) ? " (DEFAULT)" : "");
        open_element(2, "Opt");
        leaf(3, "Option", text_of(o, "key"));
        leaf(3, "Value", text);
        close_element(2, "Opt");
    }
    close_element(1, "volGetopts");
}

static void peer_element(const json_t *peer, bool is_pool)
{
    const json_t *names = json_object_get(peer, "names");
    bool is_local = json_is_true(json_object_get(peer, "local"));
    size_t i;
    json_t *name;

    if (is_local && !is_pool)
        return;
    open_element(2, "peer");
    leaf(3, "uuid", text_of(peer, "id"));
    leaf(3, "hostname", is_local ? "localhost" : json_string_value(json_array_get(names, 0)));
    if (!is_local) {
        open_element(3, "hostnames");
        json_array_foreach(names, i, name)
        {
            leaf(4, "hostname", json_string_value(name));
        }
        close_element(3, "hostnames");
    }
    leaf_number(3, "connected", json_is_true(json_object_get(peer, "connected")));
    if (!is_local) {
        leaf_number(3, "state", number_of(peer, "state"));
        leaf(3, "stateStr", text_of(peer, "state_text"));
    }
    close_element(2, "peer");
}

static void peers_part(const json_t *request, const json_t *answer)
{
    bool is_pool = strcmp(text_of(request, "as"), "pool") == 0;
    size_t i;
    json_t *peer;

    open_element(1, "peerStatus");
    for (int local = 0; local < 2; local++) {
        json_array_foreach(json_object_get(answer, "peers"), i, peer)
        {
            if (json_is_true(json_object_get(peer, "local")) == (local == 1))
                peer_element(peer, is_pool);
        }
    }
    close_element(1, "peerStatus");
}

static void probe_part(const json_t *request, const json_t *answer)
{
    const char *note = text_of(answer, "note");

    if (strcmp(note, "already in peer list") == 0) {
        indent(1);
        printf("<output>Host %s port 24007 already in peer list</output>\n", text_of(request, "host"));
        return;
    }
    leaf(1, "output", note);
}

static void detach_part(const json_t *request, const json_t *answer)
{
    (void)request;
    (void)answer;
    leaf(1, "output", "success");
}

static void uuid_part(const json_t *request, const json_t *answer)
{
    (void)request;
    open_element(1, "uuidGenerate");
    leaf(2, "uuid", text_of(answer, "uuid"));
    close_element(1, "uuidGenerate");
}

/* ---- the frame ---- */

static const struct part {
    const char *command;
    void (*print)(const json_t *request, const json_t *answer); /* NULL: a cliOp and its output */
    const char *op, *output;
} parts[] = {
    { "volume-create", create_part, NULL, NULL },
    { "volume-start", start_part, NULL, NULL },
    { "volume-stop", stop_part, NULL, NULL },
    { "volume-delete", delete_part, NULL, NULL },
    { "volume-info", info_part, NULL, NULL },
    { "volume-list", list_part, NULL, NULL },
    { "volume-status", status_part, "volStatus", NULL },
    { "volume-get", get_part, "volGetopts", NULL },
    { "volume-set", NULL, "volSet", "Set volume successful" },
    { "volume-reset", NULL, "volReset", "reset volume successful" },
    { "add-brick", NULL, "volAddBrick", "Add Brick successful" },
    { "peer-probe", probe_part, NULL, NULL },
    { "peer-detach", detach_part, NULL, NULL },
    { "peer-status", peers_part, NULL, NULL },
    { "uuid", uuid_part, NULL, NULL },
};

static const struct part *find_part(const char *command)
{
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        if (strcmp(parts[i].command, command) == 0)
            return &parts[i];
    }
    return NULL;
}

static const char *success_text(const char *command)
{
    return strcmp(command, "replace-brick") == 0  ? "replace-brick commit force operation successful"
           : strcmp(command, "remove-brick") == 0 ? "Remove Brick commit force successful"
                                                  : "";
}

int xml_print(const json_t *request, const json_t *answer)
{
    const char *command = text_of(request, "command");
    const struct part *part = find_part(command);
    bool is_good = number_of(answer, "ret") == 0;

    puts("<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n<cliOutput>");
    leaf_number(1, "opRet", number_of(answer, "ret"));
    leaf_number(1, "opErrno", is_good ? 0 : strcmp(command, "volume-info") == 0 ? 30806 : 30800);
    leaf(1, "opErrstr", is_good ? success_text(command) : text_of(answer, "error"));
    if (part && part->op && (!part->print || !is_good))
        leaf(1, "cliOp", part->op);
    if (part && part->output && is_good)
        leaf(1, "output", part->output);
    if (part && part->print && is_good)
        part->print(request, answer);
    if (is_good && strcmp(command, "remove-brick") == 0)
        leaf(1, "volRemoveBrick", "");
    puts("</cliOutput>");
    return strcmp(command, "volume-get") == 0 && !is_good ? 1 : 0;
}
