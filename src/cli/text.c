/* Answers for people: GlusterFS's lines, which scripts read too. */
#include "cli/cli.h"
#include "cli/text.h"
#include "core/mem.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DASHES "------------------------------------------------------------------------------" /* 78 */

static bool flag_of(const json_t *o, const char *key)
{
    return json_is_true(json_object_get(o, key));
}

static bool has_failed(const json_t *answer)
{
    return number_of(answer, "ret") != 0;
}

static int fail(const char *prefix, const json_t *answer)
{
    (void)fprintf(stderr, "%s%s\n", prefix, text_of(answer, "error"));
    return 1;
}

/* ---- changes ---- */

/* "volume start: V: success", "volume start: V: failed: WHY" */
static int print_named(const json_t *request, const json_t *answer, const char *what, const char *more)
{
    const char *name = text_of(request, "name");

    if (has_failed(answer)) {
        (void)fprintf(stderr, "volume %s: %s: failed: %s\n", what, name, text_of(answer, "error"));
        return 1;
    }
    printf("volume %s: %s: success%s\n", what, name, more);
    return 0;
}

static int print_create(const json_t *request, const json_t *answer)
{
    return print_named(request, answer, "create", ": please start the volume to access data");
}

static int print_start(const json_t *request, const json_t *answer)
{
    return print_named(request, answer, "start", "");
}

static int print_stop(const json_t *request, const json_t *answer)
{
    return print_named(request, answer, "stop", "");
}

static int print_delete(const json_t *request, const json_t *answer)
{
    return print_named(request, answer, "delete", "");
}

static int print_plain(const json_t *answer, const char *failed, const char *success)
{
    if (has_failed(answer))
        return fail(failed, answer);
    puts(success);
    return 0;
}

/* "heal V enable" and "disable" set an option, and say it in their own words. */
static int print_switch(const json_t *request, const json_t *answer, const char *value)
{
    const char *verb = strcmp(value, "enable") == 0 ? "Enable" : "Disable";

    if (has_failed(answer)) {
        (void)fprintf(stderr, "%s heal on volume %s has been unsuccessful:\n%s\n", verb, text_of(request, "name"),
                      text_of(answer, "error"));
        return 1;
    }
    printf("%s heal on volume %s has been successful \n", verb, text_of(request, "name"));
    return 0;
}

static int print_heal(const json_t *request, const json_t *answer)
{
    const char *kind = flag_of(request, "full") ? "full" : "index";

    if (has_failed(answer)) {
        (void)fprintf(stderr,
                      "Launching heal operation to perform %s self heal on volume %s has been unsuccessful:\n%s\n",
                      kind, text_of(request, "name"), text_of(answer, "error"));
        return 1;
    }
    printf(
        "Launching heal operation to perform %s self heal on volume %s has been successful \nUse heal info commands to check "
        "status.\n",
        kind, text_of(request, "name"));
    return 0;
}

static int print_set(const json_t *request, const json_t *answer)
{
    if (*text_of(request, "as"))
        return print_switch(request, answer, text_of(request, "as"));
    return print_plain(answer, "volume set: failed: ", "volume set: success");
}

static int print_reset(const json_t *request, const json_t *answer)
{
    (void)request;
    return print_plain(answer, "volume reset: failed: ", "volume reset: success: reset volume successful");
}

static int print_add_brick(const json_t *request, const json_t *answer)
{
    (void)request;
    return print_plain(answer, "volume add-brick: failed: ", "volume add-brick: success");
}

static int print_remove_brick(const json_t *request, const json_t *answer)
{
    (void)request;
    return print_plain(answer,
                       "volume remove-brick commit force: failed: ", "volume remove-brick commit force: success");
}

static int print_replace_brick(const json_t *request, const json_t *answer)
{
    (void)request;
    return print_plain(answer, "volume replace-brick: failed: ",
                       "volume replace-brick: success: replace-brick commit force operation successful");
}

/* ---- info ---- */

const char *type_text(const json_t *v)
{
    size_t bricks = json_array_size(json_object_get(v, "bricks"));
    long long replica = number_of(v, "replica");

    if (number_of(v, "kind") != 2)
        return "Distribute";
    return (long long)bricks > replica ? "Distributed-Replicate" : "Replicate";
}

const char *state_text(const json_t *v)
{
    static const char *const texts[] = { "Created", "Started", "Stopped" };

    return texts[number_of(v, "state") % 3];
}

bool is_arbiter(const json_t *v, size_t brick)
{
    long long replica = number_of(v, "replica"), arbiter = number_of(v, "arbiter");

    return arbiter > 0 && (long long)brick % replica >= replica - arbiter;
}

static void print_brick_count(const json_t *v)
{
    long long bricks = (long long)json_array_size(json_object_get(v, "bricks"));
    long long replica = number_of(v, "replica"), arbiter = number_of(v, "arbiter");

    if (number_of(v, "kind") != 2)
        printf("Number of Bricks: %lld\n", bricks);
    else if (arbiter > 0)
        printf("Number of Bricks: %lld x (%lld + %lld) = %lld\n", bricks / replica, replica - arbiter, arbiter, bricks);
    else
        printf("Number of Bricks: %lld x %lld = %lld\n", bricks / replica, replica, bricks);
}

static void print_volume(const json_t *v)
{
    const json_t *settings = json_object_get(v, "settings");
    size_t i;
    json_t *item;

    printf(" \nVolume Name: %s\nType: %s\nVolume ID: %s\nStatus: %s\nSnapshot Count: 0\n", text_of(v, "name"),
           type_text(v), text_of(v, "id"), state_text(v));
    print_brick_count(v);
    puts("Transport-type: tcp\nBricks:");
    json_array_foreach(json_object_get(v, "bricks"), i, item)
    {
        printf("Brick%zu: %s:%s%s\n", i + 1, text_of(item, "host"), text_of(item, "path"),
               is_arbiter(v, i) ? " (arbiter)" : "");
    }
    if (json_array_size(settings) > 0)
        puts("Options Reconfigured:");
    json_array_foreach(settings, i, item)
    {
        printf("%s: %s\n", json_string_value(json_array_get(item, 0)), json_string_value(json_array_get(item, 1)));
    }
}

static int print_info(const json_t *request, const json_t *answer)
{
    const json_t *volumes = json_object_get(answer, "volumes");
    size_t i;
    json_t *v;

    (void)request;
    if (has_failed(answer))
        return fail("", answer);
    if (json_array_size(volumes) == 0)
        (void)fprintf(stderr, "No volumes present\n");
    json_array_foreach(volumes, i, v)
    {
        print_volume(v);
    }
    return 0;
}

static int print_list(const json_t *request, const json_t *answer)
{
    const json_t *volumes = json_object_get(answer, "volumes");
    size_t i;
    json_t *v;

    (void)request;
    if (has_failed(answer))
        return fail("", answer);
    if (json_array_size(volumes) == 0)
        (void)fprintf(stderr, "No volumes present in cluster\n");
    json_array_foreach(volumes, i, v)
    {
        puts(json_string_value(v));
    }
    return 0;
}

/* ---- status ---- */

#define NAME_COLUMN 43

/* A name longer than its column is wrapped; the numbers stand on its last piece. */
static void print_name(const char *name)
{
    while (strlen(name) > NAME_COLUMN) {
        printf("%.*s\n", NAME_COLUMN, name);
        name += NAME_COLUMN;
    }
    printf("%-*s ", NAME_COLUMN, name);
}

static void print_row(const json_t *row)
{
    bool is_brick = strcmp(text_of(row, "kind"), "brick") == 0, is_up = flag_of(row, "online");
    SCOPED_FREE char *name = is_brick ? mem_printf("Brick %s:%s", text_of(row, "host"), text_of(row, "path"))
                                      : mem_printf("Self-heal Daemon on %s", text_of(row, "host"));
    char port[24] = "N/A", pid[24] = "N/A";

    if (is_brick && is_up)
        (void)snprintf(port, sizeof(port), "%lld", number_of(row, "port"));
    if (is_up)
        (void)snprintf(pid, sizeof(pid), "%lld", number_of(row, "pid"));
    print_name(name ? name : "");
    printf("%-10s%-11s%-8s%-5s\n", port, is_brick && is_up ? "0" : "N/A", is_up ? "Y" : "N", pid);
}

static bool is_chosen(const json_t *request, const json_t *row)
{
    const char *wanted = text_of(request, "row");
    SCOPED_FREE char *name = mem_printf("%s:%s", text_of(row, "host"), text_of(row, "path"));

    if (!*wanted)
        return true;
    if (strcmp(wanted, "shd") == 0)
        return strcmp(text_of(row, "kind"), "heal") == 0;
    return name && strcmp(name, wanted) == 0;
}

static void print_tasks(const json_t *v)
{
    printf("Task Status of Volume %s\n" DASHES "\nThere are no active volume tasks\n \n", text_of(v, "name"));
}

static const char *size_text(long long bytes, char text[static 32])
{
    static const char *const units[] = { "Bytes", "KB", "MB", "GB", "TB", "PB" };
    double value = (double)bytes;
    size_t unit = 0;

    while (value >= 1024 && unit + 1 < ARRAY_SIZE(units)) {
        value /= 1024;
        unit++;
    }
    (void)snprintf(text, 32, unit == 0 ? "%.0f%s" : "%.1f%s", value, units[unit]);
    return text;
}

static void print_pair(const char *label, const char *value)
{
    printf("%-20s : %-20s\n", label, value);
}

static void print_detail(const json_t *row)
{
    bool is_up = flag_of(row, "online");
    SCOPED_FREE char *name = mem_printf("Brick %s:%s", text_of(row, "host"), text_of(row, "path"));
    char text[32], size[32];

    puts(DASHES);
    print_pair("Brick", name ? name : "");
    (void)snprintf(text, sizeof(text), "%lld", number_of(row, "port"));
    print_pair("TCP Port", is_up ? text : "N/A");
    print_pair("RDMA Port", is_up ? "0" : "N/A");
    print_pair("Online", is_up ? "Y" : "N");
    (void)snprintf(text, sizeof(text), "%lld", number_of(row, "pid"));
    print_pair("Pid", is_up ? text : "N/A");
    print_pair("Disk Space Free", size_text(number_of(row, "size_free"), size));
    print_pair("Total Disk Space", size_text(number_of(row, "size_total"), size));
    (void)snprintf(text, sizeof(text), "%lld", number_of(row, "inodes_total"));
    print_pair("Inode Count", text);
    (void)snprintf(text, sizeof(text), "%lld", number_of(row, "inodes_free"));
    print_pair("Free Inodes", text);
}

static int print_volume_status(const json_t *request, const json_t *v)
{
    const char *kind = text_of(request, "kind");
    bool is_detail = strcmp(kind, "detail") == 0, found = false;
    size_t i;
    json_t *row;

    if (!flag_of(v, "started")) {
        (void)fprintf(stderr, "Volume %s is not started\n", text_of(v, "name"));
        return 0; /* of `status all` */
    }
    if (strcmp(kind, "tasks") == 0) {
        print_tasks(v);
        return 0;
    }
    json_array_foreach(json_object_get(v, "rows"), i, row)
    {
        found = found || is_chosen(request, row);
    }
    if (!found) {
        (void)fprintf(stderr, "No brick %s in volume %s\n", text_of(request, "row"), text_of(v, "name"));
        return 1;
    }
    printf("Status of volume: %s\n", text_of(v, "name"));
    if (!is_detail)
        printf("%-*s %-10s%-11s%-8s%s\n" DASHES "\n", NAME_COLUMN, "Gluster process", "TCP Port", "RDMA Port", "Online",
               "Pid");
    json_array_foreach(json_object_get(v, "rows"), i, row)
    {
        if (!is_chosen(request, row))
            continue;
        if (!is_detail)
            print_row(row);
        else if (strcmp(text_of(row, "kind"), "brick") == 0)
            print_detail(row);
    }
    puts(" ");
    if (!is_detail && !*text_of(request, "row"))
        print_tasks(v);
    return 0;
}

static int print_status(const json_t *request, const json_t *answer)
{
    const json_t *volumes = json_object_get(answer, "volumes");
    int code = 0;
    size_t i;
    json_t *v;

    if (has_failed(answer))
        return fail("", answer);
    if (json_array_size(volumes) == 0)
        (void)fprintf(stderr, "No volumes present\n");
    json_array_foreach(volumes, i, v)
    {
        code = MAX(code, print_volume_status(request, v));
    }
    return code;
}

/* ---- options ---- */

static int print_get(const json_t *request, const json_t *answer)
{
    size_t i;
    json_t *o;

    (void)request;
    if (has_failed(answer))
        return fail("volume get option: failed: ", answer);
    printf("%-40s %-39s\n%-40s %-39s\n", "Option", "Value", "------", "-----");
    json_array_foreach(json_object_get(answer, "options"), i, o)
    {
        const char *value = json_string_value(json_object_get(o, "value"));
        char text[1024];

        (void)snprintf(text, sizeof(text), "%s%s", value ? value : "(null)", flag_of(o, "default") ? " (DEFAULT)" : "");
        printf("%-40s %-39s\n", text_of(o, "key"), text);
    }
    return 0;
}

static int print_help(const json_t *request, const json_t *answer)
{
    size_t i;
    json_t *o;

    (void)request;
    if (has_failed(answer))
        return fail("", answer);
    json_array_foreach(json_object_get(answer, "options"), i, o)
    {
        const char *value = json_string_value(json_object_get(o, "value"));

        printf("Option: %s\nDefault Value: %s\nDescription: %s\n\n", text_of(o, "key"), value ? value : "(null)",
               text_of(o, "help"));
    }
    return 0;
}

/* ---- machines ---- */

static void print_peer(const json_t *peer)
{
    const json_t *names = json_object_get(peer, "names");
    size_t i;
    json_t *name;

    printf("\nHostname: %s\nUuid: %s\nState: %s (%s)\n", json_string_value(json_array_get(names, 0)),
           text_of(peer, "id"), text_of(peer, "state_text"), flag_of(peer, "connected") ? "Connected" : "Disconnected");
    if (json_array_size(names) > 1)
        puts("Other names:");
    json_array_foreach(names, i, name)
    {
        if (i > 0)
            puts(json_string_value(name));
    }
}

static int print_pool(const json_t *peers)
{
    int width = 8;
    size_t i;
    json_t *peer;

    json_array_foreach(peers, i, peer)
    {
        const char *name = json_string_value(json_array_get(json_object_get(peer, "names"), 0));

        width = flag_of(peer, "local") ? MAX(width, 9) : MAX(width, name ? (int)strlen(name) : 0);
    }
    printf("UUID\t\t\t\t\t%-*s\tState\n", width, "Hostname");
    for (int local = 0; local < 2; local++) {
        json_array_foreach(peers, i, peer)
        {
            const char *name = json_string_value(json_array_get(json_object_get(peer, "names"), 0));

            if (flag_of(peer, "local") == (local == 1))
                printf("%s\t%-*s\t%s \n", text_of(peer, "id"), width, local ? "localhost" : name,
                       flag_of(peer, "connected") ? "Connected" : "Disconnected");
        }
    }
    return 0;
}

static int print_peers(const json_t *request, const json_t *answer)
{
    const json_t *peers = json_object_get(answer, "peers");
    size_t i;
    json_t *peer;

    if (has_failed(answer))
        return fail("", answer);
    if (strcmp(text_of(request, "as"), "pool") == 0)
        return print_pool(peers);
    printf("Number of Peers: %zu\n", json_array_size(peers) - 1);
    json_array_foreach(peers, i, peer)
    {
        if (!flag_of(peer, "local"))
            print_peer(peer);
    }
    return 0;
}

static int print_probe(const json_t *request, const json_t *answer)
{
    const char *note = text_of(answer, "note");

    if (has_failed(answer))
        return fail("peer probe: failed: ", answer);
    if (strcmp(note, "already in peer list") == 0)
        printf("peer probe: Host %s port 24007 already in peer list\n", text_of(request, "host"));
    else
        printf("peer probe: %s\n", *note ? note : "success");
    return 0;
}

static int print_detach(const json_t *request, const json_t *answer)
{
    (void)request;
    if (has_failed(answer)) {
        (void)fail("peer detach: failed: ", answer);
        return strstr(text_of(answer, "error"), "hosts one or more bricks") ? 255 : 1;
    }
    puts("peer detach: success");
    return 0;
}

/* A line per volume, what is to be known about it below. */
static int print_import(const json_t *request, const json_t *answer)
{
    const json_t *rows = json_object_get(answer, "volumes");
    const char *done = flag_of(request, "dry_run") ? "can be taken over" : "taken over";
    size_t i, k;
    json_t *row, *note;

    json_array_foreach(rows, i, row)
    {
        if (*text_of(row, "error")) {
            printf("%s: cannot be taken over: %s\n", text_of(row, "name"), text_of(row, "error"));
            continue;
        }
        printf("%s: %s, %lld bricks%s\n", text_of(row, "name"), done, number_of(row, "bricks"),
               flag_of(row, "started") ? ", started" : "");
        json_array_foreach(json_object_get(row, "notes"), k, note)
        {
            printf("    kept without effect: %s\n", json_string_value(note));
        }
    }
    if (has_failed(answer))
        return fail("import: failed: ", answer);
    if (json_array_size(rows) == 0)
        puts("No volumes to take over");
    return 0;
}

static int print_uuid(const json_t *request, const json_t *answer)
{
    if (has_failed(answer))
        return fail("", answer);
    if (strcmp(text_of(request, "as"), "folder") == 0)
        puts(text_of(answer, "work_folder"));
    else
        printf("UUID: %s\n", text_of(answer, "uuid"));
    return 0;
}

int text_print(const json_t *request, const json_t *answer)
{
    static const struct {
        const char *command;
        int (*print)(const json_t *request, const json_t *answer);
    } printers[] = {
        { "volume-create", print_create },
        { "volume-start", print_start },
        { "volume-stop", print_stop },
        { "volume-delete", print_delete },
        { "volume-set", print_set },
        { "volume-reset", print_reset },
        { "volume-get", print_get },
        { "volume-info", print_info },
        { "volume-list", print_list },
        { "volume-status", print_status },
        { "volume-help", print_help },
        { "add-brick", print_add_brick },
        { "remove-brick", print_remove_brick },
        { "replace-brick", print_replace_brick },
        { "peer-status", print_peers },
        { "uuid", print_uuid },
        { "heal", print_heal },
        { "peer-probe", print_probe },
        { "import", print_import },
        { "peer-detach", print_detach },
    };
    const char *command = text_of(request, "command");

    for (size_t i = 0; i < ARRAY_SIZE(printers); i++) {
        if (strcmp(printers[i].command, command) == 0)
            return printers[i].print(request, answer);
    }
    return fail("", answer);
}
