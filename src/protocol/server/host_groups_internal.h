/* protocol/server/host_groups_internal.h - the groups of a user in this host's data bases; apart because <grp.h> has a
 * `struct group` as core/fiber.h does. */
#pragma once

#include <sys/types.h>

struct host_groups {
    uid_t uid;
    gid_t *list; /* mem_free */
    int count;   /* -1: not found */
};

/* A pool job (struct host_groups): the data bases may be on the network. */
void host_groups_look_up(void *arg);
