/* mortar - the command. Options stand anywhere on the line, as --name=value. */
#include "cli/cli.h"
#include "core/mem.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#define LINE_WORDS_MAX 200

struct line {
    struct cli cli;
    char **words;
    int count;
};

static void print_version(const struct cli *cli)
{
    /* Tools take the second word of the first line for GlusterFS's version. */
    (void)cli;
    printf("glusterfs 10.3\nmortar " MORTAR_VERSION ", which speaks the language of GlusterFS 10.3\n");
}

static void print_general_help(void)
{
    words_print_help(NULL);
    puts("Options, anywhere on the line:\n"
         "  --mode=script        answer every question with yes\n"
         "  --xml, --json        answers for programs\n"
         "  --glusterd-sock=PATH the daemon's socket (/var/run/glusterd.socket)\n"
         "  --timeout=SECONDS    how long to wait for an answer (120)\n"
         "  --version, --help, --print-logdir, --print-statedumpdir");
}

/* The value of an option --name=VALUE; NULL: it is another one. */
static const char *value_of(const char *word, const char *name)
{
    size_t length = strlen(name);

    return strncmp(word, name, length) == 0 && word[length] == '=' ? word + length + 1 : NULL;
}

static bool is_ignored(const char *word)
{
    static const char *const names[] = { "--log-file", "--log-level", "--secure-mgmt" };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (value_of(word, names[i]))
            return true;
    }
    return strcmp(word, "--nolog") == 0 || strcmp(word, "--wignore") == 0 || strcmp(word, "--wignore-partition") == 0 ||
           strcmp(word, "--inet6") == 0;
}

/* Options that print something and are done; -1: it is none. */
static int print_option(const struct cli *cli, const char *word)
{
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0)
        print_version(cli);
    else if (strcmp(word, "--help") == 0)
        print_general_help();
    else if (strcmp(word, "--print-logdir") == 0)
        puts("/var/log/glusterfs");
    else if (strcmp(word, "--print-statedumpdir") == 0)
        puts("/var/run/gluster");
    else
        return -1;
    return 0;
}

/* 0: taken; 1: not an option; else the exit code, negated, of a wrong one. */
static int take_option(struct cli *cli, const char *word)
{
    const char *value;

    if (strncmp(word, "--", 2) != 0 || strcmp(word, "--dry-run") == 0)
        return 1;
    if (strcmp(word, "--xml") == 0) {
        cli->form = CLI_XML;
    } else if (strcmp(word, "--json") == 0) {
        cli->form = CLI_JSON;
    } else if ((value = value_of(word, "--mode")) &&
               (strcmp(value, "script") == 0 || strcmp(value, "interactive") == 0)) {
        cli->is_script = strcmp(value, "script") == 0;
    } else if ((value = value_of(word, "--glusterd-sock"))) {
        cli->socket_path = value;
    } else if ((value = value_of(word, "--timeout"))) {
        char *end;
        unsigned long seconds = strtoul(value, &end, 10);

        if (*end || end == value || seconds == 0) {
            (void)fprintf(stderr, "timeout value should be a positive integer\n");
            return -1;
        }
        cli->timeout_s = (unsigned)MIN(seconds, 86400ul);
    } else if (!is_ignored(word)) {
        printf("unrecognized option %s\n", word);
        return -255;
    }
    return 0;
}

/* "yes", or what stands for it. */
static bool ask_user(const char *question)
{
    char answer[64] = "";

    printf("%s (y/n) ", question);
    (void)fflush(stdout);
    if (!fgets(answer, sizeof(answer), stdin)) {
        puts("gluster cli read error\nInvalid input, please enter y/n");
        return false;
    }
    answer[strcspn(answer, "\n")] = '\0';
    if (strcasecmp(answer, "y") == 0 || strcasecmp(answer, "yes") == 0)
        return true;
    if (strcasecmp(answer, "n") != 0 && strcasecmp(answer, "no") != 0)
        puts("Invalid input, please enter y/n");
    return false;
}

static int print_json(const json_t *answer)
{
    char *text = json_dumps(answer, JSON_INDENT(2) | JSON_SORT_KEYS);

    puts(text ? text : "");
    free(text);
    return json_integer_value(json_object_get(answer, "ret")) == 0 ? 0 : 1;
}

/* The low byte of a negative errno, as GlusterFS's own heal tool ends. */
static int tool_refuses(const char *sentence, int number)
{
    puts(sentence);
    puts("Volume heal failed.");
    return -number & 0xff;
}

/* What mortar-heal does; `answer` describes the volume. Does not return when the tool runs. */
static int run_tool(const struct cli *cli, const struct cli_request *request, const json_t *answer)
{
    const json_t *v = json_array_get(json_object_get(answer, "volumes"), 0);
    const char *name = json_string_value(json_object_get(request->json, "name"));
    SCOPED_FREE char *server = mem_printf("--volfile-server=%s", cli->socket_path);
    SCOPED_FREE char *id = mem_printf("--volfile-id=%s", name);
    SCOPED_FREE char *sentence = NULL;
    char *words[16] = { "mortar-heal", server, "--volfile-server-transport=unix", id };
    int count = 4;

    if (!v) {
        sentence = mem_printf("Volume %s does not exist", name);
        return tool_refuses(sentence, ENOENT);
    }
    if (json_integer_value(json_object_get(v, "kind")) != 2) {
        sentence = mem_printf(
            "This command is supported for only volumes of replicate/disperse type. Volume %s is not of type "
            "replicate/disperse",
            name);
        return tool_refuses(sentence, EINVAL);
    }
    if (json_integer_value(json_object_get(v, "state")) != 1) {
        sentence = mem_printf("%s: Not able to fetch volfile from glusterd", name);
        return tool_refuses(sentence, EIO);
    }
    if (cli->form != CLI_TEXT)
        words[count++] = cli->form == CLI_XML ? "--xml" : "--json";
    for (char *const *word = request->tool; *word; word++)
        words[count++] = *word;
    (void)execvp(words[0], words);
    (void)fprintf(stderr, "mortar-heal cannot be run: %s\n", strerror(errno));
    return 1;
}

static int run_words(const struct cli *cli, int count, char **words)
{
    struct error err = { "" };
    struct cli_request request;
    json_t *answer = NULL;
    int code = 1, r = words_parse(cli, count, words, &request);

    if (r < 0 || !request.json)
        return r < 0 ? 1 : request.code;
    if (request.question && !cli->is_script && !ask_user(request.question)) {
        if (request.no_is_failure)
            (void)fprintf(stderr, "\nUsage:\n%s\n\n", request.usage);
        json_decref(request.json);
        return request.no_is_failure ? 1 : 0;
    }
    r = ask_daemon(cli, request.json, &answer, &err);
    if (r < 0)
        puts(err.text);
    else if (request.tool)
        code = run_tool(cli, &request, answer);
    else if (cli->form == CLI_JSON)
        code = print_json(answer);
    else
        code = cli->form == CLI_XML ? xml_print(request.json, answer) : text_print(request.json, answer);
    json_decref(request.json);
    json_decref(answer);
    return code;
}

/* ---- the prompt ---- */

static int run_line(const struct cli *cli, char *text)
{
    char *words[LINE_WORDS_MAX];
    int count = 0;
    char *rest = text, *word;

    while ((word = strsep(&rest, " \t\n")) && count < LINE_WORDS_MAX) {
        if (*word)
            words[count++] = word;
    }
    return count > 0 ? run_words(cli, count, words) : 0;
}

static int run_prompt(const struct cli *cli)
{
    bool is_terminal = isatty(0) == 1;
    char *text = NULL;
    size_t room = 0;
    int code = 0;

    (void)fprintf(stderr, "Welcome to gluster prompt, type 'help' to see the available commands.\n");
    for (;;) {
        if (is_terminal) {
            (void)fputs("gluster> ", stdout);
            (void)fflush(stdout);
        }
        if (getline(&text, &room, stdin) < 0)
            break;
        text[strcspn(text, "\n")] = '\0';
        if (strcmp(text, "quit") == 0 || strcmp(text, "exit") == 0)
            break;
        code = run_line(cli, text);
    }
    free(text);
    return code;
}

int main(int argc, char **argv)
{
    struct cli cli = { .program = argv[0], .socket_path = "/var/run/glusterd.socket", .timeout_s = CLI_TIMEOUT_S };
    SCOPED_FREE char **words = mem_array((size_t)argc + 1, sizeof(char *));
    int count = 0;

    if (!words)
        return 1;
    for (int i = 1; i < argc; i++) {
        int r;

        if (print_option(&cli, argv[i]) == 0)
            return 0;
        r = take_option(&cli, argv[i]);
        if (r < 0) {
            return -r;
        }
        if (r == 1)
            words[count++] = argv[i];
    }
    return count > 0 ? run_words(&cli, count, words) : run_prompt(&cli);
}
