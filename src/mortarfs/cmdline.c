#include "mortarfs/cmdline.h"
#include "core/mem.h"
#include "core/option.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum kind {
    FLAG,      /* bool at offset */
    TEXT,      /* char * at offset */
    NUMBER,    /* uint32_t at offset */
    SERVER,    /* one more volfile server */
    XLATOR,    /* --xlator-option */
    FUSE_FLAG, /* a bool of mount/fuse that may have a value: --acl, --acl=off */
    FUSE_TEXT, /* a value for mount/fuse */
    PRINT,     /* prints a path */
    SKIP_FLAG, /* accepted, no effect; may have a value after '=' */
    SKIP_TEXT, /* the same with a value */
};

#define AT(field) offsetof(struct cmdline, field)
#define NO_EFFECT "accepted, has no effect"

struct entry {
    const char *name;
    char letter;
    enum kind kind;
    size_t offset;     /* FLAG, TEXT, NUMBER */
    const char *key;   /* FUSE_*: option of mount/fuse if it is called otherwise; PRINT: the path */
    const char *value; /* name of the value in the help; NULL for flags */
    const char *help;
};

static const struct entry entries[] = {
    { "volfile", 'f', TEXT, AT(volfile), NULL, "FILE", "take the volume file FILE" },
    { "volfile-server", 's', SERVER, 0, NULL, "HOST", "fetch the volume file from HOST; give it again for more hosts" },
    { "volfile-server-port", 0, NUMBER, AT(server_port), NULL, "PORT", "port of the volume file servers (24007)" },
    { "volfile-server-transport", 0, TEXT, AT(server_transport), NULL, "TYPE", "tcp, or unix: HOST is a socket then" },
    { "volfile-id", 0, TEXT, AT(volfile_id), NULL, "ID",
      "which file to fetch: the volume's name, for bricks VOL.HOST.PATH" },
    { "volfile-max-fetch-attempts", 0, NUMBER, AT(fetch_attempts), NULL, "N", "tries per server at the start (1)" },
    { "volume-name", 0, TEXT, AT(volume_name), NULL, "NAME",
      "start the graph at section NAME instead of the last one" },
    { "xlator-option", 0, XLATOR, 0, NULL, "PATTERN.KEY=VALUE", "set KEY in all sections whose name matches PATTERN" },
    { "log-file", 'l', TEXT, AT(log_file), NULL, "FILE", "write the log to FILE; - is standard error" },
    { "log-level", 'L', TEXT, AT(log_level), NULL, "LEVEL", "NONE CRITICAL ERROR WARNING INFO DEBUG or TRACE" },
    { "pid-file", 'p', TEXT, AT(pid_file), NULL, "FILE", "write the process's number to FILE and lock it" },
    { "socket-file", 'S', TEXT, AT(socket_file), NULL, "FILE",
      "unix socket at which commands ask this process (mortar-heal)" },
    { "no-daemon", 'N', FLAG, AT(no_daemon), NULL, NULL, "stay in the foreground" },
    { "debug", 0, FLAG, AT(debug), NULL, NULL, "foreground, log level DEBUG to standard error" },
    { "process-name", 0, TEXT, AT(process_name), NULL, "NAME",
      "what this process is to others: fuse, brick, glustershd" },
    { "brick-name", 0, TEXT, AT(brick_name), NULL, "PATH", "the brick's path, for its name in lists and statedumps" },
    { "brick-port", 0, NUMBER, AT(brick_port), NULL, "PORT", "port the brick listens at" },
    { "client-pid", 0, FUSE_TEXT, 0, NULL, "PID", "process number sent to the bricks; negative: an internal client" },
    { "subdir-mount", 0, TEXT, AT(subdir), NULL, "DIR", "mount this directory of the volume" },
    { "statedump-dir", 0, TEXT, AT(statedump_dir), NULL, "DIR", "where SIGUSR1 writes (/var/run/gluster)" },
    { "wait-for-bricks", 0, FUSE_TEXT, 0, NULL, "SECONDS",
      "how long a mount waits for bricks that are not up yet (60)" },
    { "attribute-timeout", 0, FUSE_TEXT, 0, NULL, "SECONDS", "how long the kernel may use attributes unasked (1)" },
    { "entry-timeout", 0, FUSE_TEXT, 0, NULL, "SECONDS", "the same for names (1)" },
    { "negative-timeout", 0, FUSE_TEXT, 0, NULL, "SECONDS", "the same for names that do not exist (0)" },
    { "gid-timeout", 0, FUSE_TEXT, 0, NULL, "SECONDS", "how long the groups of a process are kept (300)" },
    { "lru-limit", 0, FUSE_TEXT, 0, NULL, "N", "inodes kept that the kernel does not use (65536)" },
    { "invalidate-limit", 0, FUSE_TEXT, 0, NULL, "N", NO_EFFECT },
    { "background-qlen", 0, FUSE_TEXT, 0, NULL, "N", "requests the kernel may queue in the background (64)" },
    { "congestion-threshold", 0, FUSE_TEXT, 0, NULL, "N", "background requests from which the kernel holds back (48)" },
    { "reader-thread-count", 0, FUSE_TEXT, 0, NULL, "N", NO_EFFECT },
    { "direct-io-mode", 0, FUSE_FLAG, 0, NULL, "MODE", "enable: no page cache; auto (as programs ask), disable" },
    { "fuse-mountopts", 0, FUSE_TEXT, 0, NULL, "OPTIONS", "mount options for the kernel, separated by commas" },
    { "use-readdirp", 0, FUSE_FLAG, 0, NULL, "BOOL", "read directories with attributes (yes)" },
    { "read-only", 0, FUSE_FLAG, AT(read_only), NULL, "BOOL", "mount read-only" },
    { "acl", 0, FUSE_FLAG, 0, NULL, "BOOL", "POSIX access control lists" },
    { "selinux", 0, FUSE_FLAG, 0, NULL, "BOOL", "pass SELinux labels through" },
    { "capability", 0, FUSE_FLAG, 0, NULL, "BOOL", NO_EFFECT ": capabilities of files always work" },
    { "enable-ino32", 0, FUSE_FLAG, 0, NULL, "BOOL", "inode numbers of 32 bits" },
    { "fopen-keep-cache", 0, FUSE_FLAG, 0, NULL, "BOOL", "keep pages over an open when size and times are the same" },
    { "auto-invalidation", 0, FUSE_FLAG, 0, NULL, "BOOL", "drop pages when attributes show another time (yes)" },
    { "kernel-writeback-cache", 0, FUSE_FLAG, 0, NULL, "BOOL", "let the kernel collect writes" },
    { "attr-times-granularity", 0, FUSE_TEXT, 0, NULL, "NS", "granularity of times with the writeback cache" },
    { "aux-gfid-mount", 0, FUSE_FLAG, 0, NULL, "BOOL", "root finds each file and directory as .gfid/UUID" },
    { "resolve-gids", 0, FUSE_FLAG, 0, NULL, "BOOL", NO_EFFECT ": all groups of a process count" },
    { "no-root-squash", 0, FLAG, AT(no_root_squash), NULL, NULL, "root of this mount stays root" },
    { "root-squash", 0, SKIP_FLAG, 0, NULL, NULL, "the default" },
    { "worm", 0, FLAG, AT(worm), NULL, NULL, "files can be written once" },
    { "oom-score-adj", 0, NUMBER, AT(oom_score_adj), NULL, "N", "this process's /proc/PID/oom_score_adj" },
    { "print-logdir", 0, PRINT, 0, "/var/log/glusterfs", NULL, "print where logs are" },
    { "print-statedumpdir", 0, PRINT, 0, "/var/run/gluster", NULL, "print where statedumps are written" },
    { "print-libexecdir", 0, PRINT, 0, "/usr/libexec/glusterfs", NULL, "print where helpers are" },
    { "print-xlatordir", 0, PRINT, 0, "built in", NULL, "translators are part of the program" },
    { "localtime-logging", 0, SKIP_FLAG, 0, NULL, NULL, NO_EFFECT ": log times are UTC" },
    { "volfile-check", 0, SKIP_FLAG, 0, NULL, NULL, NO_EFFECT },
    { "event-history", 0, SKIP_FLAG, 0, NULL, NULL, NO_EFFECT },
    { "dump-fuse", 0, SKIP_TEXT, 0, NULL, "FILE", NO_EFFECT },
    { "mem-accounting", 0, SKIP_FLAG, 0, NULL, NULL, NO_EFFECT ": memory is always counted" },
    { "thin-client", 0, SKIP_FLAG, 0, NULL, NULL, NO_EFFECT },
    { "global-threading", 0, SKIP_FLAG, 0, NULL, NULL, NO_EFFECT },
    { "global-timer-wheel", 0, SKIP_FLAG, 0, NULL, NULL, NO_EFFECT },
    { "brick-mux", 0, SKIP_FLAG, 0, NULL, NULL, NO_EFFECT },
    { "mac-compat", 0, SKIP_FLAG, 0, NULL, NULL, NO_EFFECT },
    { "secure-mgmt", 0, SKIP_FLAG, 0, NULL, NULL, NO_EFFECT },
    { "fuse-flush-handle-interrupt", 0, SKIP_FLAG, 0, NULL, NULL, NO_EFFECT },
    { "fuse-dev-eperm-ratelimit-ns", 0, SKIP_TEXT, 0, NULL, "NS", NO_EFFECT },
    { "io-engine", 0, SKIP_TEXT, 0, NULL, "ENGINE", NO_EFFECT },
    { "logger", 0, SKIP_TEXT, 0, NULL, "NAME", NO_EFFECT },
    { "log-format", 0, SKIP_TEXT, 0, NULL, "NAME", NO_EFFECT },
    { "log-buf-size", 0, SKIP_TEXT, 0, NULL, "N", NO_EFFECT },
    { "log-flush-timeout", 0, SKIP_TEXT, 0, NULL, "SECONDS", NO_EFFECT },
    { "user-map-root", 0, SKIP_TEXT, 0, NULL, "USER", NO_EFFECT },
    { "run-id", 0, SKIP_TEXT, 0, NULL, "TEXT", NO_EFFECT },
    { "version", 'V', FLAG, AT(wants_version), NULL, NULL, "print the version" },
    { "help", 'h', FLAG, AT(wants_help), NULL, NULL, "print this" },
};

static const struct entry *find_name(const char *name, size_t len)
{
    for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
        if (strlen(entries[i].name) == len && memcmp(entries[i].name, name, len) == 0)
            return &entries[i];
    }
    return NULL;
}

static const struct entry *find_letter(char letter)
{
    for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
        if (letter && entries[i].letter == letter)
            return &entries[i];
    }
    return letter == '?' ? find_name("help", 4) : NULL;
}

static bool needs_value(const struct entry *e)
{
    switch (e->kind) {
    case FLAG:
    case FUSE_FLAG:
    case PRINT:
    case SKIP_FLAG: return false;
    default: return true;
    }
}

static int set_number(const struct entry *e, const char *value, void *field, struct error *err)
{
    char *end;
    unsigned long n;

    errno = 0;
    n = strtoul(value, &end, 10);
    if (errno || *end || end == value || n > UINT32_MAX)
        return error_set(err, -EINVAL, "\"%s\" is not a number (option --%s)", value, e->name);
    *(uint32_t *)field = (uint32_t)n;
    return 0;
}

static int set_text(const char *value, void *field)
{
    char **text = field;
    char *copy = mem_strdup(value);

    if (!copy)
        return -ENOMEM;
    mem_free(*text);
    *text = copy;
    return 0;
}

static int add_server(struct cmdline *c, const char *value, struct error *err)
{
    if (c->server_count == CMDLINE_SERVERS_MAX)
        return error_set(err, -EINVAL, "more than %d volume file servers", CMDLINE_SERVERS_MAX);
    c->servers[c->server_count] = mem_strdup(value);
    return c->servers[c->server_count++] ? 0 : -ENOMEM;
}

static int add_xlator_option(struct cmdline *c, const char *value, struct error *err)
{
    const char *equals = strchr(value, '=');
    SCOPED_FREE char *key = equals ? mem_strndup(value, (size_t)(equals - value)) : NULL;

    if (!equals || equals == value)
        return error_set(err, -EINVAL, "--xlator-option wants PATTERN.KEY=VALUE, not \"%s\"", value);
    return key ? dict_set_str(c->xlator_options, key, equals + 1) : -ENOMEM;
}

static int set_flag(const struct entry *e, const char *value, void *field, struct error *err)
{
    bool on = true;

    if (value && parse_bool(value, &on) < 0)
        return error_set(err, -EINVAL, "\"%s\" is neither yes nor no (option --%s)", value, e->name);
    *(bool *)field = on;
    return 0;
}

/* Switching off what is not there is no news. */
static void note_skipped(struct cmdline *c, const struct entry *e, const char *value)
{
    bool is_on;

    if (e->kind == SKIP_FLAG && value && parse_bool(value, &is_on) == 0 && !is_on)
        return;
    if (strncmp(e->help, NO_EFFECT, strlen(NO_EFFECT)) == 0 && c->skipped_count < CMDLINE_SKIPPED_MAX)
        c->skipped[c->skipped_count++] = e->name;
}

static int apply(struct cmdline *c, const struct entry *e, const char *value, struct error *err)
{
    void *field = (char *)c + e->offset;

    switch (e->kind) {
    case FLAG: return set_flag(e, value, field, err);
    case TEXT: return set_text(value, field);
    case NUMBER: c->has_oom_score_adj |= strcmp(e->name, "oom-score-adj") == 0; return set_number(e, value, field, err);
    case SERVER: return add_server(c, value, err);
    case XLATOR: return add_xlator_option(c, value, err);
    case FUSE_FLAG:
    case FUSE_TEXT: return dict_set_str(c->fuse_options, e->key ? e->key : e->name, value ? value : "on");
    case PRINT: c->print = e->key; return 0;
    case SKIP_FLAG:
    case SKIP_TEXT: note_skipped(c, e, value); return 0;
    }
    return 0;
}

static int unknown(const struct cmdline *c, const char *arg, struct error *err)
{
    return error_set(err, -EINVAL, "there is no option %.*s; \"%s --help\" lists them", (int)strcspn(arg, "="), arg,
                     c->program);
}

/* One option at argv[*at]; *at moves on to the last word used. */
static int parse_option(struct cmdline *c, int argc, char **argv, int *at, struct error *err)
{
    const char *arg = argv[*at], *value = NULL;
    const struct entry *e;

    if (arg[1] == '-') {
        size_t len = strcspn(arg + 2, "=");

        e = find_name(arg + 2, len);
        if (arg[2 + len] == '=')
            value = arg + 2 + len + 1;
    } else {
        e = find_letter(arg[1]);
        if (e && arg[2] && !needs_value(e))
            return unknown(c, arg, err);
        if (arg[2])
            value = arg + 2;
    }
    if (!e)
        return unknown(c, arg, err);
    if (needs_value(e) && !value) {
        if (*at + 1 >= argc)
            return error_set(err, -EINVAL, "option --%s wants a value: --%s=%s", e->name, e->name, e->value);
        value = argv[++*at];
    }
    return apply(c, e, value, err);
}

static int check(struct cmdline *c, struct error *err)
{
    enum log_level level;

    if (c->log_level && log_level_parse(c->log_level, &level) < 0)
        return error_set(err, -EINVAL, "there is no log level \"%s\" (NONE CRITICAL ERROR WARNING INFO DEBUG TRACE)",
                         c->log_level);
    if (c->server_transport && strcmp(c->server_transport, "tcp") != 0 && strcmp(c->server_transport, "unix") != 0 &&
        strcmp(c->server_transport, "socket") != 0)
        return error_set(err, -EINVAL, "there is no transport \"%s\" (tcp, unix); RDMA is gone", c->server_transport);
    if (c->volfile && c->server_count)
        return error_set(err, -EINVAL, "both a volume file (%s) and a server for it (%s): give one", c->volfile,
                         c->servers[0]);
    if (c->server_count && !c->volfile_id)
        return error_set(err, -EINVAL, "--volfile-server wants --volfile-id as well: the name of the volume");
    if (!c->volfile && !c->server_count)
        return error_set(err, -EINVAL,
                         "no volume file: give --volfile=FILE, or --volfile-server=HOST and --volfile-id=VOLUME");
    return 0;
}

/* Paths are kept absolute: the process leaves its folder. */
static int make_absolute(char **path, struct error *err)
{
    SCOPED_FREE char *here = NULL;
    char *full;

    if (!*path || **path == '/' || strcmp(*path, "-") == 0)
        return 0;
    here = mem_alloc(PATH_MAX);
    if (!here || !getcwd(here, PATH_MAX))
        return error_set(err, here ? -errno : -ENOMEM, "cannot find out the present folder for \"%s\"", *path);
    full = mem_printf("%s/%s", here, *path);
    if (!full)
        return -ENOMEM;
    mem_free(*path);
    *path = full;
    return 0;
}

static int make_all_absolute(struct cmdline *c, struct error *err)
{
    char **const paths[] = { &c->volfile,     &c->log_file,      &c->pid_file,
                             &c->socket_file, &c->statedump_dir, &c->mount_point };

    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        int r = make_absolute(paths[i], err);
        if (r < 0)
            return r;
    }
    return 0;
}

int cmdline_parse(struct cmdline *c, int argc, char **argv, struct error *err)
{
    const char *slash = strrchr(argv[0], '/');
    bool options_end = false;
    int r = 0;

    *c = (struct cmdline) { .program = slash ? slash + 1 : argv[0], .server_port = 24007, .fetch_attempts = 1 };
    c->xlator_options = dict_new();
    c->fuse_options = dict_new();
    if (!c->xlator_options || !c->fuse_options)
        return error_set(err, -ENOMEM, "out of memory");
    for (int i = 1; i < argc && r == 0; i++) {
        if (!options_end && strcmp(argv[i], "--") == 0)
            options_end = true;
        else if (!options_end && argv[i][0] == '-' && argv[i][1])
            r = parse_option(c, argc, argv, &i, err);
        else if (c->mount_point)
            r = error_set(err, -EINVAL, "one mount point is enough: \"%s\" and \"%s\"", c->mount_point, argv[i]);
        else
            r = set_text(argv[i], &c->mount_point);
    }
    if (r == 0 && !c->wants_help && !c->wants_version && !c->print)
        r = check(c, err);
    if (r == 0)
        r = make_all_absolute(c, err);
    c->no_daemon |= c->debug;
    return r;
}

void cmdline_release(struct cmdline *c)
{
    for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
        if (entries[i].kind == TEXT)
            mem_free(*(char **)((char *)c + entries[i].offset));
    }
    while (c->server_count > 0)
        mem_free(c->servers[--c->server_count]);
    mem_free(c->mount_point);
    dict_unref(c->xlator_options);
    dict_unref(c->fuse_options);
}

bool cmdline_is_compat(const struct cmdline *c)
{
    return strncmp(c->program, "gluster", 7) == 0;
}

void cmdline_print_help(const char *program)
{
    printf("usage: %s [OPTION...] --volfile=FILE [MOUNTPOINT]\n"
           "       %s [OPTION...] --volfile-server=HOST --volfile-id=VOLUME MOUNTPOINT\n\n"
           "Runs the graph of a volume file: a mount when a mount point is given, else a brick\n"
           "(its last section is of type protocol/server) or another service. Returns when the\n"
           "mount can be used or the brick listens.\n\n",
           program, program);
    for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
        const struct entry *e = &entries[i];
        char left[64];

        if (strncmp(e->help, NO_EFFECT, sizeof(NO_EFFECT) - 1) == 0)
            continue;
        (void)snprintf(left, sizeof(left), "%c%c%s --%s%s%s%s", e->letter ? '-' : ' ', e->letter ? e->letter : ' ',
                       e->letter ? "," : " ", e->name, e->value ? (needs_value(e) ? "=" : "[=") : "",
                       e->value ? e->value : "", e->value && !needs_value(e) ? "]" : "");
        printf("  %-42s %s\n", left, e->help);
    }
    printf("\nAccepted without effect:");
    for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
        if (strncmp(entries[i].help, NO_EFFECT, sizeof(NO_EFFECT) - 1) == 0)
            printf(" --%s", entries[i].name);
    }
    printf("\n\nSignals: TERM unmounts and ends; HUP opens the log anew and reads the volume file again;\n"
           "USR1 writes a statedump; USR2 switches the log to DEBUG and back.\n");
}
