#include "protocol/server/host_groups_internal.h"
#include "core/mem.h"
#include <grp.h>
#include <pwd.h>

#define GROUPS_MAX   65536 /* NGROUPS_MAX of Linux */
#define FIRST_GUESS  64
#define PASSWD_BYTES 16384

void host_groups_look_up(void *arg)
{
    struct host_groups *job = arg;
    SCOPED_FREE char *text = mem_alloc(PASSWD_BYTES);
    struct passwd entry, *found = NULL;
    int count = FIRST_GUESS;

    job->count = -1;
    if (!text || getpwuid_r(job->uid, &entry, text, PASSWD_BYTES, &found) != 0 || !found)
        return;
    for (;;) {
        int room = count;
        gid_t *more = mem_realloc(job->list, (size_t)room * sizeof(*more));
        if (!more)
            return;
        job->list = more;
        if (getgrouplist(found->pw_name, found->pw_gid, job->list, &count) >= 0)
            break;
        if (count <= room || count > GROUPS_MAX)
            return;
    }
    job->count = count;
}
