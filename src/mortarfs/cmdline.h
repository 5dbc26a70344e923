/* mortarfs/cmdline.h - the command line, as users and tools of glusterfs and glusterfsd write it.
 *
 * One table (cmdline.c) names every option, its kind and its help; --help prints it. Options that mean something to
 * mount/fuse end in a dict of that translator's options; what has no effect here is accepted and named in `skipped`. Both
 * `--name=value` and `--name value` are understood, and letters with their value attached (-LWARNING).
 */
#pragma once

#include "core/dict.h"
#include "core/error.h"
#include "core/log.h"

#define CMDLINE_SERVERS_MAX 32
#define CMDLINE_SKIPPED_MAX 32 /* more are not named */

struct cmdline {
    char *volfile;                      /* -f: a file */
    char *servers[CMDLINE_SERVERS_MAX]; /* -s, in order */
    unsigned server_count;
    char *volfile_id, *server_transport, *volume_name;
    char *log_file, *log_level, *pid_file, *socket_file;
    char *process_name, *brick_name, *subdir, *statedump_dir;
    char *mount_point;
    uint32_t server_port, brick_port, fetch_attempts, oom_score_adj;
    bool has_oom_score_adj;
    bool no_daemon, debug, read_only, worm, no_root_squash, localtime;
    bool wants_help, wants_version;
    const char *print;           /* a path to print and be done, or NULL */
    struct dict *xlator_options; /* "PATTERN.KEY" -> value */
    struct dict *fuse_options;
    const char *skipped[CMDLINE_SKIPPED_MAX]; /* given, and without effect here: the log says so once */
    unsigned skipped_count;
    const char *program; /* argv[0] without its folder */
};

/* 0, or -EINVAL with a sentence. Release in any case. */
int cmdline_parse(struct cmdline *c, int argc, char **argv, struct error *err);
void cmdline_release(struct cmdline *c);
void cmdline_print_help(const char *program);
/* Started under a name of GlusterFS: file systems then show as fuse.glusterfs. */
bool cmdline_is_compat(const struct cmdline *c);
