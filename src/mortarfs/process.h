/* mortarfs/process.h - one process: a graph, perhaps mounted, and its signals, from start to end. */
#pragma once

#include "mortarfs/cmdline.h"
#include "core/daemon.h"

/* Runs until told to stop; returns the exit code. Failures of the start go to `link`, later ones to the log. */
int process_run(struct cmdline *c, struct log *log, struct daemon_link *link);
