/* Words to requests. */
#include "cli/cli.h"
#include "core/mem.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define REPLICA_2_QUESTION                                                                                             \
    "Replica 2 volumes are prone to split-brain. Use Arbiter or Replica 3 to avoid this. See: "                        \
    "http://docs.gluster.org/en/latest/Administrator-Guide/Split-brain-and-ways-to-deal-with-it/.\nDo you still want " \
    "to continue?\n"

/* What a command's parser works on: the words after the command's own. */
struct args {
    int count;
    char **words;
    struct cli_request *r;
};

struct cli_command {
    const char *group, *words; /* "volume", "create" */
    const char *usage, *help;
    int (*parse)(struct args *a);
};

static bool put(struct args *a, const char *key, json_t *value)
{
    return value && json_object_set_new(a->r->json, key, value) == 0;
}

static int begin(struct args *a, const char *command)
{
    a->r->json = json_pack("{s:s}", "command", command);
    return a->r->json ? 0 : -ENOMEM;
}

static int done(bool is_whole)
{
    return is_whole ? 0 : -ENOMEM;
}

static int wrong(const char *fmt, ...) PRINTF_LIKE(1, 2);
static int wrong(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    (void)vfprintf(stderr, fmt, args);
    va_end(args);
    (void)fputc('\n', stderr);
    return -EINVAL;
}

/* The last word, if it is this one: taken off. */
static bool take_last(struct args *a, const char *word)
{
    if (a->count == 0 || strcmp(a->words[a->count - 1], word) != 0)
        return false;
    a->count--;
    return true;
}

/* A number after a word at the front: both taken off. -1: not there; -EINVAL: not a number. */
static long take_count(struct args *a, const char *word)
{
    char *end;
    long value;

    if (a->count < 2 || strcmp(a->words[0], word) != 0)
        return -1;
    value = strtol(a->words[1], &end, 10);
    if (*end || end == a->words[1] || value < 0)
        return -EINVAL;
    a->words += 2;
    a->count -= 2;
    return value;
}

static json_t *rest_as_array(const struct args *a)
{
    json_t *list = json_array();

    for (int i = 0; list && i < a->count; i++) {
        if (json_array_append_new(list, json_string(a->words[i])) < 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static int check_bricks(const struct args *a)
{
    for (int i = 0; i < a->count; i++) {
        if (!strstr(a->words[i], ":/"))
            return wrong("Wrong brick type: %s, use <HOSTNAME>:<export-dir-abs-path>", a->words[i]);
        for (int k = 0; k < i; k++) {
            if (strcmp(a->words[i], a->words[k]) == 0)
                return wrong("Found duplicate exports %s", a->words[i]);
        }
    }
    return 0;
}

/* ---- volumes ---- */

/* A command that takes a name and perhaps `force`. */
static int name_and_force(struct args *a, const char *command)
{
    bool is_forced = a->count > 1 && take_last(a, "force");

    if (a->count != 1)
        return -EINVAL;
    if (begin(a, command) < 0)
        return -ENOMEM;
    return done(put(a, "name", json_string(a->words[0])) && put(a, "force", json_boolean(is_forced)));
}

static int check_name(const char *name)
{
    if (strlen(name) > 255)
        return wrong("Volume name exceeds 256 characters.");
    if (strcmp(name, "all") == 0)
        return wrong("\"all\" cannot be the name of a volume.");
    if (*name == '-' ||
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != strlen(name))
        return -EINVAL;
    return 0;
}

static int parse_create(struct args *a)
{
    const char *name = a->count > 0 ? a->words[0] : NULL;
    bool is_forced = take_last(a, "force");
    long replica, arbiter = 0, other;

    if (!name || a->count < 2 || check_name(name) < 0)
        return -EINVAL;
    a->words++;
    a->count--;
    replica = take_count(a, "replica");
    if (replica == -EINVAL || (replica != -1 && replica < 2))
        return wrong("replica count should be greater than 1");
    if (replica > 0) {
        other = take_count(a, "thin-arbiter");
        if (other != -1)
            return wrong("thin-arbiter volumes cannot be made by this command yet; use volume files");
        arbiter = take_count(a, "arbiter");
        if (arbiter != -1 && (arbiter != 1 || (replica != 2 && replica != 3)))
            return wrong(
                "For arbiter configuration, replica count must be 2 and arbiter count must be 1. The 3rd brick of the "
                "replica will be the arbiter");
        if (arbiter == 1)
            replica = 3;
    }
    if (a->count > 0 && strncmp(a->words[0], "disperse", 8) == 0)
        return wrong("dispersed volumes are not supported yet");
    if (a->count > 1 && strcmp(a->words[0], "transport") == 0) {
        if (strcmp(a->words[1], "tcp") != 0 && strcmp(a->words[1], "rdma") != 0 && strcmp(a->words[1], "tcp,rdma") != 0)
            return -EINVAL;
        a->words += 2;
        a->count -= 2;
    }
    if (a->count == 0 || check_bricks(a) < 0)
        return -EINVAL;
    if (replica > 0 && a->count % replica != 0)
        return wrong("number of bricks is not a multiple of replica count");
    if (replica == 2) {
        a->r->question = REPLICA_2_QUESTION;
        a->r->no_is_failure = true;
    }
    if (begin(a, "volume-create") < 0)
        return -ENOMEM;
    return done(put(a, "name", json_string(name)) && put(a, "replica", json_integer(replica > 0 ? replica : 1)) &&
                put(a, "arbiter", json_integer(arbiter > 0 ? arbiter : 0)) &&
                put(a, "force", json_boolean(is_forced)) && put(a, "bricks", rest_as_array(a)));
}

static int parse_start(struct args *a)
{
    return name_and_force(a, "volume-start");
}

static int parse_stop(struct args *a)
{
    a->r->question = "Stopping volume will make its data inaccessible. Do you want to continue?";
    return name_and_force(a, "volume-stop");
}

static int parse_delete(struct args *a)
{
    a->r->question = "Deleting volume will erase all information about the volume. Do you want to continue?";
    return a->count == 1 ? name_and_force(a, "volume-delete") : -EINVAL;
}

/* Nothing, "all", or a name. */
static int maybe_name(struct args *a, const char *command)
{
    if (a->count > 1)
        return -EINVAL;
    if (begin(a, command) < 0)
        return -ENOMEM;
    return done(a->count == 0 || put(a, "name", json_string(a->words[0])));
}

static int parse_info(struct args *a)
{
    return maybe_name(a, "volume-info");
}

static int parse_list(struct args *a)
{
    return a->count == 0 ? maybe_name(a, "volume-list") : -EINVAL;
}

static int parse_status(struct args *a)
{
    static const char *const kinds[] = { "detail", "tasks" };
    const char *kind = NULL, *row = NULL;
    int r;

    for (size_t i = 0; i < ARRAY_SIZE(kinds) && !kind && a->count > 0; i++) {
        if (take_last(a, kinds[i]))
            kind = kinds[i];
    }
    if (a->count == 2) {
        static const char *const later[] = {
            "clients", "mem", "inode", "fd", "callpool", "client-list", "nfs", "quotad"
        };

        row = a->words[--a->count];
        for (size_t i = 0; i < ARRAY_SIZE(later); i++) {
            if (strcmp(row, later[i]) == 0)
                return wrong("volume status ... %s is not supported yet", row);
        }
    }
    r = maybe_name(a, "volume-status");
    return r < 0 ? r : done((!kind || put(a, "kind", json_string(kind))) && (!row || put(a, "row", json_string(row))));
}

static int parse_set(struct args *a)
{
    json_t *pairs;
    bool ok = true;

    if (a->count == 1 && strcmp(a->words[0], "help") == 0)
        return begin(a, "volume-help");
    if (a->count == 3 && strcmp(a->words[1], "group") == 0) {
        if (begin(a, "volume-set") < 0)
            return -ENOMEM;
        return done(put(a, "name", json_string(a->words[0])) && put(a, "group", json_string(a->words[2])));
    }
    if (a->count < 3 || a->count % 2 == 0)
        return -EINVAL;
    pairs = json_array();
    for (int i = 1; pairs && i < a->count && ok; i += 2)
        ok = json_array_append_new(pairs, json_pack("[ss]", a->words[i], a->words[i + 1])) == 0;
    if (begin(a, "volume-set") < 0 || !ok) {
        json_decref(pairs);
        return -ENOMEM;
    }
    return done(put(a, "name", json_string(a->words[0])) && put(a, "pairs", pairs));
}

static int parse_get(struct args *a)
{
    if (a->count != 2)
        return -EINVAL;
    if (begin(a, "volume-get") < 0)
        return -ENOMEM;
    return done(put(a, "name", json_string(a->words[0])) && put(a, "key", json_string(a->words[1])));
}

static int parse_reset(struct args *a)
{
    bool is_forced = a->count > 1 && take_last(a, "force");

    if (a->count < 1 || a->count > 2)
        return -EINVAL;
    if (begin(a, "volume-reset") < 0)
        return -ENOMEM;
    return done(put(a, "name", json_string(a->words[0])) && put(a, "force", json_boolean(is_forced)) &&
                (a->count == 1 || put(a, "key", json_string(a->words[1]))));
}

static int parse_add_brick(struct args *a)
{
    const char *name = a->count > 0 ? a->words[0] : NULL;
    bool is_forced = take_last(a, "force");
    long replica, arbiter = -1;

    if (a->count < 2)
        return -EINVAL;
    a->words++;
    a->count--;
    replica = take_count(a, "replica");
    if (replica > 0)
        arbiter = take_count(a, "arbiter");
    if (replica == -EINVAL || arbiter == -EINVAL || a->count == 0 || check_bricks(a) < 0)
        return -EINVAL;
    if (replica == 2) {
        a->r->question = REPLICA_2_QUESTION;
        a->r->no_is_failure = true;
    }
    if (begin(a, "add-brick") < 0)
        return -ENOMEM;
    return done(put(a, "name", json_string(name)) && put(a, "replica", json_integer(replica > 0 ? replica : 0)) &&
                put(a, "arbiter", json_integer(arbiter > 0 ? arbiter : 0)) &&
                put(a, "force", json_boolean(is_forced)) && put(a, "bricks", rest_as_array(a)));
}

static int parse_remove_brick(struct args *a)
{
    const char *name = a->count > 0 ? a->words[0] : NULL;
    bool is_forced = take_last(a, "force");
    long replica;

    if (a->count < 2)
        return -EINVAL;
    if (!is_forced)
        return wrong("remove-brick %s: moving files away is not supported yet; only \"force\" is",
                     a->words[a->count - 1]);
    a->words++;
    a->count--;
    replica = take_count(a, "replica");
    if (replica == -EINVAL || a->count == 0 || check_bricks(a) < 0)
        return -EINVAL;
    a->r->question =
        "Remove-brick force will not migrate files from the removed bricks, so they will no longer be available on "
        "the volume.\nDo you want to continue?";
    if (begin(a, "remove-brick") < 0)
        return -ENOMEM;
    return done(put(a, "name", json_string(name)) && put(a, "replica", json_integer(replica > 0 ? replica : 0)) &&
                put(a, "bricks", rest_as_array(a)));
}

static int parse_replace_brick(struct args *a)
{
    if (a->count != 5 || strcmp(a->words[3], "commit") != 0 || strcmp(a->words[4], "force") != 0)
        return -EINVAL;
    if (begin(a, "replace-brick") < 0)
        return -ENOMEM;
    return done(put(a, "name", json_string(a->words[0])) && put(a, "old", json_string(a->words[1])) &&
                put(a, "new", json_string(a->words[2])) && put(a, "force", json_true()));
}

/* ---- heal ---- */

#define TOOL_WORDS_MAX 8

/* `words` after the volume's name, translated for mortar-heal. */
static int heal_by_tool(struct args *a, const char *first, int from)
{
    static char *words[TOOL_WORDS_MAX];
    static char first_copy[32];
    int count = 0;

    (void)snprintf(first_copy, sizeof(first_copy), "%s", first);
    words[count++] = first_copy;
    for (int i = from; i < a->count && count < TOOL_WORDS_MAX - 1; i++)
        words[count++] = a->words[i];
    words[count] = NULL;
    a->r->tool = words;
    /* The volume's kind and state are looked at first. */
    if (begin(a, "volume-info") < 0)
        return -ENOMEM;
    return done(put(a, "name", json_string(a->words[0])));
}

static int heal_switch(struct args *a, const char *value)
{
    if (begin(a, "volume-set") < 0)
        return -ENOMEM;
    return done(put(a, "name", json_string(a->words[0])) && put(a, "as", json_string(value)) &&
                put(a, "pairs", json_pack("[[ss]]", "cluster.self-heal-daemon", value)));
}

static int parse_heal(struct args *a)
{
    const char *word = a->count > 1 ? a->words[1] : "";

    if (a->count < 1)
        return -EINVAL;
    if (a->count == 1 || (a->count == 2 && strcmp(word, "full") == 0)) {
        if (begin(a, "heal") < 0)
            return -ENOMEM;
        return done(put(a, "name", json_string(a->words[0])) && put(a, "full", json_boolean(*word != '\0')));
    }
    if (a->count == 2 && (strcmp(word, "enable") == 0 || strcmp(word, "disable") == 0))
        return heal_switch(a, word);
    if (strcmp(word, "info") == 0 && (a->count == 2 || (a->count == 3 && (strcmp(a->words[2], "summary") == 0 ||
                                                                          strcmp(a->words[2], "split-brain") == 0))))
        return heal_by_tool(a, "info", 2);
    if (strcmp(word, "statistics") == 0 && (a->count == 2 || (a->count == 3 && strcmp(a->words[2], "heal-count") == 0)))
        return heal_by_tool(a, "statistics", 2);
    if (strcmp(word, "split-brain") == 0 && a->count >= 4 && a->count <= 5)
        return heal_by_tool(a, "resolve", 2);
    return -EINVAL;
}

/* ---- the rest ---- */

static int parse_probe(struct args *a)
{
    if (a->count != 1 || begin(a, "peer-probe") < 0)
        return -EINVAL;
    return done(put(a, "host", json_string(a->words[0])));
}

static int parse_detach(struct args *a)
{
    bool is_forced = a->count > 1 && take_last(a, "force");

    if (a->count != 1 || begin(a, "peer-detach") < 0)
        return -EINVAL;
    a->r->question =
        "All clients mounted through the peer which is getting detached need to be remounted using one of the other "
        "active peers in the trusted storage pool to ensure client gets notification on any changes done on the "
        "gluster configuration and if the same has been done do you want to proceed?";
    return done(put(a, "host", json_string(a->words[0])) && put(a, "force", json_boolean(is_forced)));
}

static int parse_peer_status(struct args *a)
{
    return a->count == 0 ? begin(a, "peer-status") : -EINVAL;
}

static int parse_pool_list(struct args *a)
{
    if (a->count != 0 || begin(a, "peer-status") < 0)
        return -EINVAL;
    return done(put(a, "as", json_string("pool")));
}

static int parse_import(struct args *a)
{
    bool is_dry = take_last(a, "--dry-run");

    if (a->count > 1 || (a->count == 1 && *a->words[0] != '/') || begin(a, "import") < 0)
        return -EINVAL;
    return done(put(a, "dry_run", json_boolean(is_dry)) &&
                (a->count == 0 || put(a, "folder", json_string(a->words[0]))));
}

static int parse_uuid(struct args *a)
{
    return a->count == 0 ? begin(a, "uuid") : -EINVAL;
}

static int parse_getwd(struct args *a)
{
    if (a->count != 0 || begin(a, "uuid") < 0)
        return -EINVAL;
    return done(put(a, "as", json_string("folder")));
}

static int print_group_help(struct args *a, const char *group)
{
    (void)a;
    words_print_help(group);
    return 0;
}

static int parse_volume_help(struct args *a)
{
    return print_group_help(a, "volume");
}

static int parse_peer_help(struct args *a)
{
    return print_group_help(a, "peer");
}

static int parse_help(struct args *a)
{
    return print_group_help(a, NULL);
}

static const struct cli_command commands[] = {
    { "volume", "add-brick", "volume add-brick <VOLNAME> [<replica> <COUNT> [arbiter <COUNT>]] <NEW-BRICK> ... [force]",
      "add bricks to a volume, or replicas to its sets", parse_add_brick },
    { "volume", "create",
      "volume create <NEW-VOLNAME> [[replica <COUNT> [arbiter <COUNT>]]] [transport <tcp>] <NEW-BRICK> ... [force]",
      "make a volume of bricks HOST:/path", parse_create },
    { "volume", "delete", "volume delete <VOLNAME>", "forget a stopped volume; its bricks keep their data",
      parse_delete },
    { "volume", "get", "volume get <VOLNAME|all> <key|all>", "show the value of an option", parse_get },
    { "volume", "heal",
      "volume heal <VOLNAME> [enable | disable | full |statistics [heal-count] |info [summary | split-brain] |split-brain "
      "{bigger-file <FILE> | latest-mtime <FILE> |source-brick <HOSTNAME:BRICKNAME> [<FILE>]}]",
      "heal a mirror, or show what is left to heal", parse_heal },
    { "volume", "help", "volume help", "list these commands", parse_volume_help },
    { "volume", "info", "volume info [all|<VOLNAME>]", "show volumes", parse_info },
    { "volume", "list", "volume list", "list the names of all volumes", parse_list },
    { "volume", "remove-brick", "volume remove-brick <VOLNAME> [replica <COUNT>] <BRICK> ... <force>",
      "take bricks out of a volume", parse_remove_brick },
    { "volume", "replace-brick", "volume replace-brick <VOLNAME> <SOURCE-BRICK> <NEW-BRICK> {commit force}",
      "put a new brick in the place of another; it is filled by healing", parse_replace_brick },
    { "volume", "reset", "volume reset <VOLNAME> [option] [force]", "take back options", parse_reset },
    { "volume", "set", "volume set <VOLNAME> <KEY> <VALUE>", "set options; \"volume set help\" lists them", parse_set },
    { "volume", "start", "volume start <VOLNAME> [force]", "start a volume", parse_start },
    { "volume", "status", "volume status [all | <VOLNAME> [shd|<BRICK>]] [detail|tasks]", "show what runs",
      parse_status },
    { "volume", "stop", "volume stop <VOLNAME> [force]", "stop a volume", parse_stop },
    { "peer", "detach", "peer detach { <HOSTNAME> | <IP-address> } [force]", "let a machine go", parse_detach },
    { "peer", "probe", "peer probe { <HOSTNAME> | <IP-address> }", "take a machine into the cluster", parse_probe },
    { "peer", "help", "peer help", "list these commands", parse_peer_help },
    { "peer", "status", "peer status", "list the other machines of the cluster", parse_peer_status },
    { "pool", "list", "pool list", "list all machines of the cluster", parse_pool_list },
    { "system::", "uuid get", "system:: uuid get", "show this machine's uuid", parse_uuid },
    { "system::", "getwd", "system:: getwd", "show the daemon's folder", parse_getwd },
    { "import", "", "import [FOLDER] [--dry-run]", "take over the volumes of GlusterFS's daemon", parse_import },
    { "help", "", "help", "list the groups of commands", parse_help },
};

/* Commands of `gluster` that are not there yet: said by name. */
static const char *const later[] = { "volume rebalance",
                                     "volume profile",
                                     "volume top",
                                     "volume statedump",
                                     "volume log",
                                     "volume sync",
                                     "volume barrier",
                                     "volume quota",
                                     "volume clear-locks",
                                     "volume bitrot",
                                     "volume geo-replication",
                                     "volume reset-brick",
                                     "snapshot",

                                     "get-state",
                                     "nfs-ganesha",
                                     "volume inode-quota" };

void words_print_help(const char *group)
{
    char heading[64];

    if (!group) {
        puts(" peer help                - display help for peer commands\n"
             " volume help              - display help for volume commands\n"
             " import [FOLDER] [--dry-run]\n"
             "                          - take over the volumes of GlusterFS's daemon, in place\n");
        return;
    }
    (void)snprintf(heading, sizeof(heading), "gluster %s commands", group);
    printf("\n%s\n%.*s\n\n", heading, (int)strlen(heading), "========================================");
    for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
        if (strcmp(commands[i].group, group) == 0)
            printf("%s - %s\n", commands[i].usage, commands[i].help);
    }
    puts("\n");
}

/* Is `word` this one, or the beginning of it? */
static bool begins(const char *word, const char *full)
{
    return strncmp(full, word, strlen(word)) == 0;
}

/* How many words of the line the command's own are; 0: it is another command. A word may be cut short. */
static int match(const struct cli_command *c, int count, char **words, bool *ret_is_exact)
{
    SCOPED_FREE char *own = mem_printf("%s%s%s", c->group, *c->words ? " " : "", c->words);
    char *rest = own, *word;
    int i = 0;

    *ret_is_exact = true;
    while (rest && (word = strsep(&rest, " "))) {
        if (i >= count || !begins(words[i], word))
            return 0;
        *ret_is_exact = *ret_is_exact && strcmp(words[i], word) == 0;
        i++;
    }
    return i;
}

/* The command of the line: an exact one, or the only one that begins so. */
static const struct cli_command *find(int count, char **words, int *ret_used)
{
    const struct cli_command *found = NULL;
    unsigned candidates = 0;

    for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
        bool is_exact;
        int used = match(&commands[i], count, words, &is_exact);

        if (used == 0)
            continue;
        if (is_exact) {
            *ret_used = used;
            return &commands[i];
        }
        candidates++;
        found = &commands[i];
        *ret_used = used;
    }
    return candidates == 1 ? found : NULL;
}

/* The first word that leads nowhere; a line that is only too short is an unrecognized command. */
static void puts_unrecognized(int count, char **words)
{
    bool is_group = false;

    for (size_t i = 0; i < ARRAY_SIZE(commands) && count > 0; i++)
        is_group = is_group || begins(words[0], commands[i].group);
    if (count > 0 && !is_group)
        printf("unrecognized word: %s (position 0)\n", words[0]);
    else if (count > 1)
        printf("unrecognized word: %s (position 1)\n", words[1]);
    else
        puts("unrecognized command");
}

static void print_unknown(int count, char **words)
{
    for (size_t i = 0; i < ARRAY_SIZE(later); i++) {
        size_t first = strcspn(later[i], " ");
        const char *second = later[i][first] ? later[i] + first + 1 : NULL;

        if (count > 0 && strlen(words[0]) == first && strncmp(words[0], later[i], first) == 0 &&
            (!second || (count > 1 && strcmp(words[1], second) == 0))) {
            (void)fprintf(stderr, "%s is not supported yet\n", later[i]);
            return;
        }
    }
    puts_unrecognized(count, words);
    puts("\n Usage: gluster [options] <help> <peer> <pool> <volume>\n Options:\n --help  Shows the help information\n"
         " --version  Shows the version\n --print-logdir  Shows the log directory\n"
         " --print-statedumpdir Shows the state dump directory\n");
}

int words_parse(const struct cli *cli, int count, char **words, struct cli_request *ret_request)
{
    const struct cli_command *c;
    struct args a;
    int used = 0, r;

    (void)cli;
    *ret_request = (struct cli_request) { 0 };
    c = find(count, words, &used);
    if (!c) {
        print_unknown(count, words);
        return -EINVAL;
    }
    a = (struct args) { .count = count - used, .words = words + used, .r = ret_request };
    ret_request->usage = c->usage;
    r = c->parse(&a);
    if (r == -EINVAL)
        (void)fprintf(stderr, "\nUsage:\n%s\n\n", c->usage);
    if (r < 0) {
        json_decref(ret_request->json);
        ret_request->json = NULL;
    }
    return r;
}
