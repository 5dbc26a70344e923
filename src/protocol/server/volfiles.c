/* Volume files for clients, from files that options name, or made up for a brick that stands alone. */
#include "core/mem.h"
#include "protocol/server/server_internal.h"
#include <stdio.h>

/* A pool job: the whole file as text. */
struct read_job {
    const char *path;
    char *text;
    int result;
};

static void read_file(void *arg)
{
    struct read_job *job = arg;
    FILE *f = fopen(job->path, "re");
    size_t size = 0, room = 4096;

    if (!f) {
        job->result = -errno;
        return;
    }
    job->text = mem_alloc(room);
    while (job->text) {
        size += fread(job->text + size, 1, room - size - 1, f);
        if (size < room - 1 || room > VOLFILE_MAX_BYTES)
            break;
        char *more = mem_realloc(job->text, room *= 2);
        if (!more)
            mem_free(job->text);
        job->text = more;
    }
    if (job->text)
        job->text[size] = '\0';
    job->result = !job->text ? -ENOMEM : ferror(f) ? -EIO : room > VOLFILE_MAX_BYTES ? -EFBIG : 0;
    fclose(f);
}

static FIBER int from_file(struct server *s, const char *path, char **ret_text)
{
    struct read_job job = { .path = path };

    env_pool_run(s->me->env, read_file, &job);
    if (job.result < 0) {
        TLOG(s->me, LOG_ERROR, "volume-file-unreadable", "path=%s err=%s", path, errno_name(job.result));
        mem_free(job.text);
        return job.result;
    }
    *ret_text = job.text;
    return 0;
}

/* "web" for a section "web-server". */
static char *standalone_name(const struct server *s)
{
    const char *name = s->me->name, *end = strstr(name, "-server");

    if (s->standalone_volume)
        return mem_strdup(s->standalone_volume);
    return end && end > name && strcmp(end, "-server") == 0 ? mem_strndup(name, (size_t)(end - name))
                                                            : mem_strdup(name);
}

/* "V", "/V" and "V.tcp" are the same. */
static bool is_key_of(const char *key, const char *name)
{
    size_t size = strlen(name);

    return strncmp(key, name, size) == 0 && (key[size] == '\0' || strcmp(key + size, ".tcp") == 0);
}

static int made_up(const struct server *s, const char *key, const char *host, char **ret_text)
{
    SCOPED_FREE char *name = standalone_name(s);

    if (!name)
        return -ENOMEM;
    if (!is_key_of(key, name) || !s->tcp)
        return -ENOENT;
    *ret_text =
        mem_printf("volume %s-client-0\n"
                   "    type protocol/client\n"
                   "    option transport-type tcp\n"
                   "    option remote-host %s\n"
                   "    option remote-port %u\n"
                   "    option remote-subvolume %s\n"
                   "    option send-gids true\n"
                   "end-volume\n\n"
                   "volume %s-dht\n"
                   "    type cluster/distribute\n"
                   "    subvolumes %s-client-0\n"
                   "end-volume\n\n"
                   "volume %s-utime\n"
                   "    type features/utime\n"
                   "    option noatime on\n"
                   "    subvolumes %s-dht\n"
                   "end-volume\n\n"
                   "volume %s\n"
                   "    type debug/io-stats\n"
                   "    option count-fop-hits off\n"
                   "    subvolumes %s-utime\n"
                   "end-volume\n",
                   name, host, listener_port(s->tcp), s->me->children[0]->name, name, name, name, name, name, name);
    return *ret_text ? 0 : -ENOMEM;
}

FIBER int volfile_for_key(struct server *s, bool is_standalone, const char *key, const char *host, char **ret_text)
{
    const char *path;

    if (key[0] == '/')
        key++;
    SCOPED_FREE char *option = mem_printf("volume-filename.%s", key);
    if (!option)
        return -ENOMEM;
    if (dict_get_str(s->me->options, option, &path) == 0)
        return from_file(s, path, ret_text);
    if (s->volume_file)
        return from_file(s, s->volume_file, ret_text);
    return is_standalone ? made_up(s, key, host, ret_text) : -ENOSYS;
}
