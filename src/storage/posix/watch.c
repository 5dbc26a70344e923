/* storage/posix/watch.c - what goes on beside operations: health check, landfill, and the disk reserve. */
#include "storage/posix/posix_internal.h"
#include <stdio.h>
#include <sys/statvfs.h>
#include <time.h>

#define LANDFILL_SOON_MS 100 /* directories removed together are emptied together */

#define ROOM_NS 1000000000ull /* how long an answer of the file system about free space is good at most */

/* ---- disk reserve ---- */

bool posix_is_internal(const struct call *call, const struct dict *xdata)
{
    return call->pid < 0 || dict_has(xdata, "glusterfs-internal-fop");
}

uint64_t posix_reserve_bytes(const struct posix *s, const struct statvfs *v)
{
    /* "reserve 5" has always meant percent; whoever means bytes asks for more than a hundred. */
    double percent = s->reserve.is_percent ? s->reserve.percent : (double)s->reserve.size_bytes;
    if (s->reserve.is_percent || s->reserve.size_bytes <= 100)
        return (uint64_t)((double)v->f_blocks * (double)v->f_frsize * percent / 100);
    return s->reserve.size_bytes;
}

/* What is free above the reserve is handed out from a counter; when that is used up or old, the file system is asked.
 * So a full disk is noticed by the very write that would cross the limit, and asking is rare. */
int posix_room_check(struct posix *s, const struct call *call, const struct dict *xdata, uint64_t bytes)
{
    struct statvfs v;
    uint64_t now = env_now_ns(s->health_timer.env);

    if (s->reserve.is_percent ? s->reserve.percent <= 0 : s->reserve.size_bytes == 0)
        return 0;
    if (posix_is_internal(call, xdata)) {
        s->room_bytes -= (int64_t)bytes;
        return 0;
    }
    if (s->room_bytes < 0 || (uint64_t)s->room_bytes < bytes || now > s->room_until_ns) {
        if (fstatvfs(s->brick_fd, &v) < 0)
            return 0; /* the operation itself will tell */
        s->room_bytes = (int64_t)(v.f_bfree * v.f_frsize) - (int64_t)posix_reserve_bytes(s, &v);
        s->room_until_ns = now + ROOM_NS;
    }
    if (s->room_bytes < 0 || (uint64_t)s->room_bytes < bytes)
        return -ENOSPC;
    s->room_bytes -= (int64_t)bytes;
    return 0;
}

/* ---- health check ---- */

struct health {
    struct translator *me;
    int gfs_fd;
    char text[32];
    int r;
};

/* Writes the time into .glusterfs/health_check and reads it back. */
static void health_job(void *arg)
{
    struct health *h = arg;
    char back[sizeof h->text];
    size_t n = strlen(h->text);

    int fd = openat(h->gfs_fd, "health_check", O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0) {
        h->r = -errno;
        return;
    }
    if (pwrite(fd, h->text, n, 0) != (ssize_t)n)
        h->r = errno ? -errno : -EIO;
    else if (pread(fd, back, n, 0) != (ssize_t)n || memcmp(back, h->text, n) != 0)
        h->r = -EIO;
    close(fd);
}

static void health_due(void *arg);

static void watch_ended(struct translator *me, bool *running)
{
    struct posix *s = me->state;
    *running = false;
    if (s->is_stopping)
        (void)waitq_wake_all(&s->idle, 0);
}

static void health_failed(struct translator *me, const char *why)
{
    struct posix *s = me->state;
    if (s->has_failed)
        return;
    s->has_failed = true;
    TLOG(me, LOG_CRITICAL, "brick-failed",
         "path=%s reason=%s the brick stops serving; look at the disk and the kernel's log", s->directory, why);
    notify_parents(me, &(struct event) { .kind = EVENT_STORAGE_FAILED, .text = why });
}

static void health_done(void *arg)
{
    struct health *h = arg;
    struct translator *me = h->me;
    struct posix *s = me->state;

    timer_stop(&s->health_timer);
    /* A full disk is no broken one. */
    if (h->r < 0 && h->r != -ENOSPC && h->r != -EDQUOT)
        health_failed(me, errno_name(h->r));
    mem_free(h);
    watch_ended(me, &s->health_running);
    if (!s->is_stopping && !s->has_failed)
        timer_start(me->env, &s->health_timer, env_deadline_ms(me->env, s->health_interval_s * 1000ull), health_due,
                    me);
}

static void health_late(void *arg)
{
    health_failed(arg, "the health check does not come back");
}

static void health_due(void *arg)
{
    struct translator *me = arg;
    struct posix *s = me->state;
    struct timespec now;
    struct tm tm;
    struct health *h = NEW(struct health);

    if (h) {
        h->me = me;
        h->gfs_fd = s->gfs_fd;
        env_wall_time(me->env, &now);
        gmtime_r(&now.tv_sec, &tm);
        strftime(h->text, sizeof h->text, "%a %b %e %H:%M:%S %Y\n", &tm);
    }
    if (!h || env_pool_post(me->env, health_job, health_done, h) < 0) {
        mem_free(h);
        timer_start(me->env, &s->health_timer, env_deadline_ms(me->env, 1000), health_due, me);
        return;
    }
    s->health_running = true;
    if (s->health_timeout_s)
        timer_start(me->env, &s->health_timer, env_deadline_ms(me->env, s->health_timeout_s * 1000ull), health_late,
                    me);
}

/* ---- landfill ---- */

int posix_landfill_move(struct posix *s, struct pfile *dir, const char *name, const struct gfid *g)
{
    char to[16 + GFID_TEXT_LEN];
    char text[GFID_TEXT_LEN + 1];

    snprintf(to, sizeof to, "landfill/%s", gfid_format(g, text));
    return renameat(dir->fd, name, s->gfs_fd, to) < 0 ? -errno : 0;
}

struct janitor {
    struct translator *me;
    struct posix *s; /* descriptors only */
    int landfill_fd;
    uint64_t moved; /* for unique names */
    bool found;
};

static void purge_entry(struct janitor *j, int dir_fd, const char *name)
{
    struct stat st;
    struct gfid g;
    char path[64], to[40], rel[HANDLE_REL_LEN + 1];

    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    if (S_ISDIR(st.st_mode)) {
        /* Up to landfill itself: its turn comes, however deep it was. */
        snprintf(to, sizeof to, "deep-%llx-%llu", (unsigned long long)st.st_ino, (unsigned long long)j->moved++);
        (void)renameat(dir_fd, name, j->landfill_fd, to);
        j->found = true;
        return;
    }
    bool is_special = !S_ISREG(st.st_mode);
    snprintf(path, sizeof path, "/proc/self/fd/%d", openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct xnode x = { .fd = -1, .path = path, .follow = true, .is_special = is_special, .ino = st.st_ino };
    if (px_get_gfid(j->s, &x, &g) == 0 && st.st_nlink <= 2) {
        (void)unlinkat(j->s->gfs_fd, handle_rel(&g, rel), 0);
        side_forget(j->s, &g, st.st_ino);
    }
    close(atoi(path + 14));
    (void)unlinkat(dir_fd, name, 0); /* what stays is tried again */
}

/* Heal may have made the directory anew, at another place, before the old one's turn came: the handle is then its. */
static bool handle_is_of(const struct janitor *j, const char *rel, int fd)
{
    struct stat by_handle, st;

    return fstatat(j->s->gfs_fd, rel, &by_handle, 0) < 0 || fstat(fd, &st) < 0 ||
           (by_handle.st_ino == st.st_ino && by_handle.st_dev == st.st_dev);
}

static void purge_dir(struct janitor *j, const char *name)
{
    struct gfid g;
    char rel[HANDLE_REL_LEN + 1];
    int fd = openat(j->landfill_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        (void)unlinkat(j->landfill_fd, name, 0);
        return;
    }
    struct xnode x = { .fd = fd };
    if (px_get_gfid(j->s, &x, &g) == 0 && handle_is_of(j, handle_rel(&g, rel), fd))
        (void)unlinkat(j->s->gfs_fd, rel, 0);
    DIR *dir = fdopendir(fd);
    if (!dir) {
        close(fd);
        return;
    }
    struct dirent *e;
    while ((e = readdir(dir))) {
        if (!is_dot(e->d_name))
            purge_entry(j, fd, e->d_name);
    }
    closedir(dir);
    (void)unlinkat(j->landfill_fd, name, AT_REMOVEDIR);
}

static void janitor_job(void *arg)
{
    struct janitor *j = arg;

    for (int rounds = 0; rounds < 10000; rounds++) {
        j->found = false;
        j->landfill_fd = openat(j->s->gfs_fd, "landfill", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int fd = j->landfill_fd < 0 ? -1 : openat(j->landfill_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        struct dirent *e;
        while (dir && (e = readdir(dir))) {
            if (!is_dot(e->d_name))
                purge_dir(j, e->d_name);
        }
        if (dir)
            closedir(dir);
        if (j->landfill_fd >= 0)
            close(j->landfill_fd);
        if (!j->found)
            return;
    }
}

static void janitor_due(void *arg);

void posix_landfill_filled(struct translator *me)
{
    struct posix *s = me->state;

    s->has_new_landfill = true;
    if (!s->janitor_running && !s->is_stopping)
        timer_start(me->env, &s->janitor_timer, env_deadline_ms(me->env, LANDFILL_SOON_MS), janitor_due, me);
}

static void janitor_done(void *arg)
{
    struct janitor *j = arg;
    struct translator *me = j->me;
    struct posix *s = me->state;
    uint64_t pause_ms = s->has_new_landfill ? LANDFILL_SOON_MS : s->janitor_s * UINT64_C(1000);

    mem_free(j);
    watch_ended(me, &s->janitor_running);
    if (!s->is_stopping)
        timer_start(me->env, &s->janitor_timer, env_deadline_ms(me->env, pause_ms), janitor_due, me);
}

static void janitor_due(void *arg)
{
    struct translator *me = arg;
    struct posix *s = me->state;
    struct janitor *j = s->disable_landfill_purge ? NULL : NEW(struct janitor);

    if (j)
        *j = (struct janitor) { .me = me, .s = s };
    if (!j || env_pool_post(me->env, janitor_job, janitor_done, j) < 0) {
        mem_free(j);
        timer_start(me->env, &s->janitor_timer, env_deadline_ms(me->env, s->janitor_s * 1000ull), janitor_due, me);
        return;
    }
    s->janitor_running = true;
    s->has_new_landfill = false;
}

/* ---- life ---- */

void posix_watch_start(struct translator *me)
{
    struct posix *s = me->state;
    waitq_init(&s->idle);
    s->health_timer.env = s->janitor_timer.env = me->env;
    if (s->health_interval_s)
        timer_start(me->env, &s->health_timer, env_now_ns(me->env) + 1, health_due, me);
    timer_start(me->env, &s->janitor_timer, env_now_ns(me->env) + 1, janitor_due, me);
}

FIBER void posix_watch_stop(struct translator *me)
{
    struct posix *s = me->state;
    s->is_stopping = true;
    timer_stop(&s->health_timer);
    timer_stop(&s->janitor_timer);
    while (s->health_running || s->janitor_running)
        (void)waitq_wait(&s->idle, NULL); /* they end by themselves */
}
