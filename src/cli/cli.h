/* cli/cli.h - `mortar`, the command: GlusterFS's words in, its lines out.
 *
 *   main.c      options, questions, exit codes
 *   words.c     words to a request for the daemon
 *   ask.c       the request over the daemon's socket
 *   text.c      answers for people; xml.c for scripts; JSON is the answer itself
 *
 * What it says on which stream, and its exit codes, are those of `gluster` (docs/management.md "The command").
 */
#pragma once

#include "core/error.h"
#include <jansson.h>

#define CLI_TIMEOUT_S 120

enum cli_form { CLI_TEXT, CLI_XML, CLI_JSON };

struct cli {
    const char *program;
    enum cli_form form;
    bool is_script; /* questions are answered with yes */
    const char *socket_path;
    unsigned timeout_s;
};

/* What the words mean. */
struct cli_request {
    json_t *json; /* to the daemon; owned; NULL: answered here already, with `code` */
    char *const
        *tool; /* words of mortar-heal that does it, behind where the volume file is; NULL: the daemon does it */
    const char *usage;    /* of the command, for wrong words */
    const char *question; /* to be asked first, or NULL */
    bool no_is_failure;   /* "no" ends with 1 and the usage, as for replica 2 */
    int code;
};

/* 0; -EINVAL: the words are wrong, what is to be said has been said. */
int words_parse(const struct cli *cli, int count, char **words, struct cli_request *ret_request);
void words_print_help(const char *group);

/* Asks the daemon. 0 and the answer (new reference), or -errno with a sentence. */
int ask_daemon(const struct cli *cli, const json_t *request, json_t **ret_answer, struct error *err);

/* Prints; returns the exit code. */
int text_print(const json_t *request, const json_t *answer);
int xml_print(const json_t *request, const json_t *answer);
