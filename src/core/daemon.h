/* core/daemon.h - going into the background, and telling whoever started us how it went.
 *
 * The parent waits until the child says that it works (daemon_ready) or why it does not (daemon_failed), and exits with
 * 0 or 1. If the child dies without a word, the parent says that.
 */
#pragma once

#include "core/error.h"

struct daemon_link {
    int to_parent; /* -1: in the foreground */
};

/* Forks. Returns in the child only (in the foreground: at once). Must be called before threads and loops exist. */
int daemon_start(struct daemon_link *d, bool in_foreground, const char *program, struct error *err);
/* Standard error goes to the log file from then on (NULL: nowhere): what asserts and sanitizers print. */
void daemon_ready(struct daemon_link *d, const char *log_file);
void daemon_failed(struct daemon_link *d, const char *program, const struct error *why);

/* From now on a crash writes where it happened to standard error before it ends the process. */
void daemon_explain_crashes(void);

/* Makes and locks the file for as long as the process lives, and writes the pid. -EEXIST with a sentence when another
 * process holds it. ret_fd is for pid_file_remove(). */
int pid_file_take(const char *path, int *ret_fd, struct error *err);
void pid_file_remove(const char *path, int fd);
