/* SIGUSR1: what the graph knows about itself, into a file that tools of the field look for. */
#include "core/mem.h"
#include "mortarfs/process_internal.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define DUMP_DIR "/var/run/gluster"

struct dump_job {
    struct process *p;
    char *path, *text;
    int result;
};

/* "/bricks/b1" -> "bricks-b1" */
static char *dashes(const char *path)
{
    char *name = mem_strdup(*path == '/' ? path + 1 : path);

    for (char *at = name; at && *at; at++) {
        if (*at == '/')
            *at = '-';
    }
    return name;
}

static void write_dump(void *arg)
{
    struct dump_job *j = arg;
    size_t bytes = strlen(j->text);
    int fd;

    (void)mkdir(DUMP_DIR, 0755); /* when it is not there, opening says so */
    fd = open(j->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        j->result = -errno;
        return;
    }
    j->result = write(fd, j->text, bytes) == (ssize_t)bytes ? 0 : -EIO;
    (void)close(fd);
}

static void dump_done(void *arg)
{
    struct dump_job *j = arg;

    if (j->result < 0)
        LOG(j->p->log, LOG_ERROR, "statedump", "failed", "file=%s err=%s", j->path, errno_name(j->result));
    else
        LOG(j->p->log, LOG_INFO, "statedump", "written", "file=%s", j->path);
    mem_free(j->path);
    mem_free(j->text);
    mem_free(j);
}

void statedump_write(struct process *p)
{
    const char *dir = p->c->statedump_dir ? p->c->statedump_dir : DUMP_DIR;
    SCOPED_FREE char *name = p->c->brick_name ? dashes(p->c->brick_name) : mem_strdup("glusterdump");
    struct dump_job *j = NEW(struct dump_job);
    struct timespec now;

    if (p->graph && p->graph->root)
        (void)dict_get_str(p->graph->root->options, "statedump-path", &dir); /* stays when absent */
    env_wall_time(p->env, &now);
    if (!j || !name)
        goto failed;
    j->p = p;
    j->path = mem_printf("%s/%s.%d.dump.%lld", dir, name, env_pid(p->env), (long long)now.tv_sec);
    j->text = p->graph ? graph_statedump(p->graph) : mem_strdup("");
    if (j->path && j->text && env_pool_post(p->env, write_dump, dump_done, j) == 0)
        return;
    mem_free(j->path);
    mem_free(j->text);
failed:
    mem_free(j);
}
