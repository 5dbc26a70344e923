/* mortarheal/commands.h - the commands, one file each. All return what the program exits with, having said why on
 * standard output or error. */
#pragma once

#include "core/dict.h"
#include "mortarheal/volume.h"

#define EXIT_NOT_DONE 1

/* gluster's exit status for a command that could not begin: the low byte of -errno. */
static inline int exit_of(int err)
{
    return err & 0xff;
}

FIBER int info_run(struct volume *v);    /* info, info summary, info split-brain, statistics heal-count */
FIBER int resolve_run(struct volume *v); /* resolve source-brick, bigger-file, latest-mtime */
FIBER int mark_run(struct volume *v);    /* mark-brick */
FIBER int full_run(struct env *env, struct args *args);       /* full, full stop, no command; opens the volume itself */
FIBER int watch_run(struct env *env, struct args *args);      /* watch */
FIBER int status_run(struct env *env, struct args *args);     /* status */
FIBER int statistics_run(struct env *env, struct args *args); /* statistics */

/* ---- the heal daemon (daemon.c) ---- */

/* Asks it over its socket: 0 and what it says (returned), or -errno with a sentence. */
FIBER int daemon_ask(struct env *env, const struct args *args, const char *verb, struct dict **ret_answer,
                     struct error *err);
int64_t answer_number(const struct dict *d, int64_t otherwise, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Text that lives as long as the dict; "" when there is none. */
const char *answer_text(const struct dict *d, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* ---- progress (full.c) ---- */

struct progress {
    bool is_terminal;
    uint64_t total, printed_done; /* total: the most that was ever left */
    uint64_t begun_ns, printed_ns;
    bool has_printed;
};

void progress_begin(struct progress *p, struct env *env);
/* A bar on a terminal, else a line when something changed, not more often than once a second. */
void progress_show(struct progress *p, struct env *env, uint64_t done, uint64_t left, uint64_t failed, uint64_t bytes);
void progress_end(struct progress *p);
