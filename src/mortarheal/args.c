#include "mortarheal/args.h"
#include "core/mem.h"
#include <stdio.h>
#include <stdlib.h>

#define DEFAULT_SOCKET "/var/run/gluster/glustershd.socket"

struct word {
    const char *words; /* as typed */
    enum verb verb;
    int more_min, more_max; /* arguments after the words */
    const char *arguments, *help;
};

/* Longer ones first. */
static const struct word verbs[] = {
    { "info summary", VERB_SUMMARY, 0, 0, "", "how many entries wait for heal, per brick" },
    { "info split-brain", VERB_SPLIT_BRAIN, 0, 0, "", "entries of which no copy can be trusted" },
    { "info", VERB_INFO, 0, 0, "", "entries that wait for heal, per brick" },
    { "statistics heal-count", VERB_COUNT, 0, 0, "", "length of each brick's index" },
    { "statistics", VERB_STATISTICS, 0, 0, "", "crawls of the heal daemon (asks the daemon)" },
    { "status", VERB_STATUS, 0, 0, "", "what the heal daemon does, and what it cannot heal (asks the daemon)" },
    { "progress", VERB_WATCH, 0, 0, "", "the same as watch" },
    { "watch", VERB_WATCH, 0, 0, "", "shows how heal goes on until nothing is left" },
    { "full stop", VERB_STOP, 0, 0, "", "ends a walk; full goes on with it (asks the daemon)" },
    { "full", VERB_FULL, 0, 0, "", "walks the whole tree and heals what no index lists" },
    { "resolve source-brick", VERB_SOURCE_BRICK, 1, 2, "HOST:BRICK [FILE]",
      "takes this brick's copy; without FILE for all it lists" },
    { "resolve bigger-file", VERB_BIGGER_FILE, 1, 1, "FILE", "takes the largest copy" },
    { "resolve latest-mtime", VERB_LATEST_MTIME, 1, 1, "FILE", "takes the copy that was changed last" },
    { "split-brain source-brick", VERB_SOURCE_BRICK, 1, 2, "", NULL },
    { "split-brain bigger-file", VERB_BIGGER_FILE, 1, 1, "", NULL },
    { "split-brain latest-mtime", VERB_LATEST_MTIME, 1, 1, "", NULL },
    { "mark-brick", VERB_MARK_BRICK, 1, 1, "HOST:BRICK", "says that this brick is new or was emptied: it is filled" },
};

void args_print_help(void)
{
    printf("usage: mortar-heal [OPTION...] --volfile FILE [COMMAND]\n"
           "       mortar-heal [OPTION...] --volfile-server HOST --volfile-id VOLUME [COMMAND]\n\n"
           "Shows what the bricks of a replicated volume have to heal, heals it, and resolves split brains.\n"
           "The volume file is that of a client or of a heal daemon. Without a command everything that the\n"
           "bricks' indices list is healed.\n\n");
    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
        char left[64];

        if (!verbs[i].help)
            continue;
        (void)snprintf(left, sizeof(left), "%s%s%s", verbs[i].words, *verbs[i].arguments ? " " : "",
                       verbs[i].arguments);
        printf("  %-40s %s\n", left, verbs[i].help);
    }
    printf("\nFILE is a path in the volume (/dir/file) or gfid:UUID. HOST:BRICK is as \"info\" shows it.\n\n"
           "  -f, --volfile=FILE                take the volume file FILE\n"
           "  -s, --volfile-server=HOST         fetch it from HOST; give it again for more hosts\n"
           "      --volfile-id=ID               which: the volume's name\n"
           "      --volfile-server-port=PORT    port of the volume file servers (24007)\n"
           "      --volfile-server-transport=T  tcp, or unix: HOST is a socket then\n"
           "      --socket=FILE                 socket of the heal daemon (mortarfs --socket-file;\n"
           "                                    default " DEFAULT_SOCKET ")\n"
           "      --wait=SECONDS                for bricks that do not answer (10)\n"
           "      --xml, --json                 output for programs\n"
           "  -v, --long                        with info: what each entry needs, since when, which brick is behind\n"
           "      --log-file=FILE               log to FILE; - is standard error (nowhere)\n"
           "      --log-level=LEVEL\n"
           "  -V, --version\n"
           "  -h, --help\n\n"
           "Exit status: 0; 1 when something could not be healed or resolved; otherwise the low byte of a\n"
           "negative errno, as \"gluster volume heal\" has it.\n");
}

/* ---- options ---- */

static int set_option(struct args *a, const char *name, const char *value, struct error *err)
{
    const struct {
        const char *name;
        char **field;
    } texts[] = { { "volfile", &a->c.volfile },
                  { "volfile-id", &a->c.volfile_id },
                  { "volfile-server-transport", &a->c.server_transport },
                  { "socket", &a->socket },
                  { "log-file", &a->c.log_file },
                  { "log-level", &a->c.log_level } };
    const struct {
        const char *name;
        uint32_t *field;
    } numbers[] = { { "volfile-server-port", &a->c.server_port }, { "wait", &a->wait_s } };

    if (strcmp(name, "volfile-server") == 0) {
        if (a->c.server_count == CMDLINE_SERVERS_MAX)
            return error_set(err, -EINVAL, "more than %d volume file servers", CMDLINE_SERVERS_MAX);
        a->c.servers[a->c.server_count] = mem_strdup(value);
        return a->c.servers[a->c.server_count++] ? 0 : -ENOMEM;
    }
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        if (strcmp(name, texts[i].name) != 0)
            continue;
        mem_free(*texts[i].field);
        *texts[i].field = mem_strdup(value);
        return *texts[i].field ? 0 : -ENOMEM;
    }
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
        char *end;
        unsigned long n = strtoul(value, &end, 10);

        if (strcmp(name, numbers[i].name) != 0)
            continue;
        if (*end || end == value || n > 65535)
            return error_set(err, -EINVAL, "\"%s\" is not a number (option --%s)", value, name);
        *numbers[i].field = (uint32_t)n;
        return 0;
    }
    return error_set(err, -EINVAL, "there is no option --%s; \"mortar-heal --help\" lists them", name);
}

static bool set_flag(struct args *a, const char *arg)
{
    if (strcmp(arg, "--xml") == 0)
        a->format = FORMAT_XML;
    else if (strcmp(arg, "--json") == 0)
        a->format = FORMAT_JSON;
    else if (strcmp(arg, "-v") == 0 || strcmp(arg, "--long") == 0)
        a->is_long = true;
    else if (strcmp(arg, "-h") == 0 || strcmp(arg, "--help") == 0 || strcmp(arg, "-?") == 0)
        a->wants_help = true;
    else if (strcmp(arg, "-V") == 0 || strcmp(arg, "--version") == 0)
        a->wants_version = true;
    else
        return false;
    return true;
}

static int parse_option(struct args *a, int argc, char **argv, int *at, struct error *err)
{
    const char *arg = argv[*at], *value = NULL;
    char name[64];

    if (set_flag(a, arg))
        return 0;
    if (arg[1] == '-') {
        (void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(arg + 2, "="), arg + 2);
        if (strchr(arg, '='))
            value = strchr(arg, '=') + 1;
    } else {
        (void)snprintf(name, sizeof(name), "%s",
                       arg[1] == 'f'   ? "volfile"
                       : arg[1] == 's' ? "volfile-server"
                                       : arg + 1);
        if (arg[2] && (arg[1] == 'f' || arg[1] == 's'))
            value = arg + 2;
    }
    if (!value && *at + 1 >= argc)
        return error_set(err, -EINVAL, "there is no option %s, or it wants a value; see \"mortar-heal --help\"", arg);
    if (!value)
        value = argv[++*at];
    return set_option(a, name, value, err);
}

/* ---- words ---- */

/* How many of the words given are those of `w`; 0: it is another. */
static int matches(const struct word *w, int count, char **words)
{
    const char *at = w->words;
    int n = 0;

    while (*at) {
        size_t len = strcspn(at, " ");

        if (n >= count || strlen(words[n]) != len || memcmp(words[n], at, len) != 0)
            return 0;
        n++;
        at += len;
        at += *at == ' ';
    }
    return n;
}

static int parse_words(struct args *a, int count, char **words, struct error *err)
{
    if (count == 0)
        return 0;
    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
        const struct word *w = &verbs[i];
        int used = matches(w, count, words), more = count - used;

        if (!used)
            continue;
        if (more < w->more_min || more > w->more_max)
            return error_set(err, -EINVAL, "usage: mortar-heal ... %s%s%s", w->words, *w->arguments ? " " : "",
                             w->arguments);
        a->verb = w->verb;
        bool has_brick = w->verb == VERB_SOURCE_BRICK || w->verb == VERB_MARK_BRICK;
        if (more > 0 && has_brick)
            a->brick = mem_strdup(words[used]);
        if (more > (has_brick ? 1 : 0))
            a->file = mem_strdup(words[count - 1]);
        if ((more > 0 && has_brick && !a->brick) || (more > (has_brick ? 1 : 0) && !a->file))
            return -ENOMEM;
        return 0;
    }
    return error_set(err, -EINVAL, "there is no command \"%s\"; \"mortar-heal --help\" lists them", words[0]);
}

static int check(struct args *a, struct error *err)
{
    enum log_level level;

    if (a->c.log_level && log_level_parse(a->c.log_level, &level) < 0)
        return error_set(err, -EINVAL, "there is no log level \"%s\"", a->c.log_level);
    if (a->c.volfile && a->c.server_count)
        return error_set(err, -EINVAL, "both a volume file (%s) and a server for it (%s): give one", a->c.volfile,
                         a->c.servers[0]);
    if (a->c.server_count && !a->c.volfile_id)
        return error_set(err, -EINVAL, "--volfile-server wants --volfile-id as well: the name of the volume");
    if (!a->c.volfile && !a->c.server_count)
        return error_set(err, -EINVAL,
                         "no volume file: give --volfile=FILE, or --volfile-server=HOST and --volfile-id=VOLUME");
    return 0;
}

int args_parse(struct args *a, int argc, char **argv, struct error *err)
{
    SCOPED_FREE char **words = mem_array((size_t)argc + 1, sizeof(char *));
    bool options_end = false;
    int count = 0, r = words ? 0 : -ENOMEM;

    *a = (struct args) { .c = { .program = "mortar-heal", .server_port = 24007, .fetch_attempts = 1 }, .wait_s = 10 };
    for (int i = 1; r == 0 && i < argc; i++) {
        if (!options_end && strcmp(argv[i], "--") == 0)
            options_end = true;
        else if (!options_end && argv[i][0] == '-' && argv[i][1])
            r = parse_option(a, argc, argv, &i, err);
        else
            words[count++] = argv[i];
    }
    if (r == 0)
        r = parse_words(a, count, words, err);
    if (r == 0 && !a->wants_help && !a->wants_version)
        r = check(a, err);
    if (r == 0 && !a->socket) {
        a->socket = mem_strdup(DEFAULT_SOCKET);
        r = a->socket ? 0 : -ENOMEM;
    }
    return r;
}

void args_release(struct args *a)
{
    mem_free(a->c.volfile);
    mem_free(a->c.volfile_id);
    mem_free(a->c.server_transport);
    mem_free(a->c.log_file);
    mem_free(a->c.log_level);
    while (a->c.server_count > 0)
        mem_free(a->c.servers[--a->c.server_count]);
    mem_free(a->socket);
    mem_free(a->brick);
    mem_free(a->file);
}
