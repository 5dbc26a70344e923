/* mgmt/daemon.h - mortard: the process on every machine that knows the cluster, serves volume files, and runs bricks.
 *
 *   daemon.c          life; the state machine's side of agreement; changes proposed from here
 *   server.c          connections, and what GlusterFS's clients ask: versions, volume files, ports
 *   bricks.c          processes of this machine: bricks and heal daemons
 *   reconcile.c       makes files and processes of this machine what the cluster's state says
 *   command*.c        what the command asks for
 *
 * Commands come in as JSON over one procedure (mgmt/command.h) and are answered from the state, or turned into a change
 * that is proposed. When a change has been applied, reconcile does the rest on every machine by itself: a machine that was
 * away, or dies halfway, does the same when it is back.
 */
#pragma once

#include "core/log.h"
#include "mgmt/cluster.h"
#include "mgmt/consensus.h"

struct mortard_options {
    const char *work_folder;  /* /var/lib/glusterd */
    const char *run_folder;   /* /var/run/gluster */
    const char *log_folder;   /* /var/log/glusterfs */
    const char *socket_path;  /* /var/run/glusterd.socket */
    const char *bind_address; /* "": all */
    const char *program;      /* of bricks and heal daemons: "mortarfs" */
    const char *heal_program; /* "mortar-heal" */
    uint16_t port;
    uint16_t base_port, max_port; /* for bricks */
};

struct mortard;

/* Loads what is on disk and begins to serve. 0 and a daemon (returned), or -errno with a sentence. The options' strings
 * must outlive it. */
FIBER int mortard_start(struct env *env, const struct mortard_options *options, struct mortard **ret_daemon,
                        struct error *err);
/* Ends; bricks go on. Accepts NULL. */
FIBER void mortard_stop(struct mortard *d);
/* Waits until it has to end by itself (its journal fails): the sentence. Or until mortard_stop: NULL. */
FIBER const char *mortard_wait(struct mortard *d);
