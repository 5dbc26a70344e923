/* A journal in three files of a folder: `vote`, `log`, `snapshot`. The log grows at its end; everything else is written
 * beside and renamed into place. */
#include "mgmt/journal.h"
#include "core/mem.h"
#include "mgmt/journal_record.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

struct file_journal {
    struct journal journal;
    struct env *env;
    int folder;          /* descriptor */
    int log;             /* descriptor, for appending */
    char *path;          /* of the folder, for messages */
    uint64_t safe_bytes; /* of the log: durable */
    bool is_broken;      /* a write failed halfway: what the log ends in is unknown until the next start */
};

static struct file_journal *of(struct journal *j)
{
    return (struct file_journal *)j;
}

/* ---- files: these block, and run on the pool ---- */

static int write_all(int fd, const uint8_t *data, size_t size_bytes)
{
    while (size_bytes > 0) {
        ssize_t n = write(fd, data, size_bytes);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        data += n;
        size_bytes -= (size_t)n;
    }
    return 0;
}

static int replace_file(int folder, const char *name, const struct xdr_out *o)
{
    char beside[32];
    int fd, r;

    (void)snprintf(beside, sizeof(beside), "%s.new", name);
    fd = openat(folder, beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    r = o->size > 0 ? write_all(fd, o->buf->data, o->size) : 0;
    if (r == 0 && fsync(fd) < 0)
        r = -errno;
    if (close(fd) < 0 && r == 0)
        r = -errno;
    if (r == 0 && renameat(folder, beside, folder, name) < 0)
        r = -errno;
    if (r == 0 && fsync(folder) < 0)
        r = -errno;
    return r;
}

/* The whole file; a missing one is empty. */
static int read_file(int folder, const char *name, uint8_t **ret_data, size_t *ret_bytes)
{
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
    size_t done = 0;
    struct stat st;
    uint8_t *data;

    *ret_data = NULL;
    *ret_bytes = 0;
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    if (fstat(fd, &st) < 0) {
        int r = -errno;

        (void)close(fd); /* only read */
        return r;
    }
    data = mem_alloc((size_t)st.st_size + 1);
    while (data && done < (size_t)st.st_size) {
        ssize_t n = read(fd, data + done, (size_t)st.st_size - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    (void)close(fd); /* only read */
    if (!data)
        return -ENOMEM;
    if (done < (size_t)st.st_size) {
        mem_free(data);
        return -EIO;
    }
    *ret_data = data;
    *ret_bytes = done;
    return 0;
}

/* ---- loading ---- */

static int load_vote(struct file_journal *f, struct journal_image *image, struct error *err)
{
    SCOPED_FREE uint8_t *data = NULL;
    size_t size_bytes;
    int r = read_file(f->folder, "vote", &data, &size_bytes);

    if (r == 0 && size_bytes > 0)
        r = record_read_vote(data, size_bytes, &image->term, &image->vote, err);
    return r;
}

static int load_snapshot(struct file_journal *f, struct journal_snapshot *ret_snapshot, struct error *err)
{
    SCOPED_FREE uint8_t *data = NULL;
    size_t size_bytes;
    int r = read_file(f->folder, "snapshot", &data, &size_bytes);

    if (r == 0 && size_bytes > 0)
        r = record_read_snapshot(data, size_bytes, ret_snapshot, err);
    return r;
}

static int open_log(struct file_journal *f)
{
    if (f->log >= 0)
        (void)close(f->log); /* what it wrote is synced */
    f->log = openat(f->folder, "log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    return f->log < 0 ? -errno : 0;
}

/* Reads the log and cuts off what a crash left at its end. */
static int load_log(struct file_journal *f, struct journal_image *image, struct error *err)
{
    SCOPED_FREE uint8_t *data = NULL;
    size_t size_bytes, good_bytes = 0;
    int r = read_file(f->folder, "log", &data, &size_bytes);

    r = r < 0 ? r : record_read_log(data, size_bytes, image, &good_bytes, err);
    r = r < 0 ? r : open_log(f);
    if (r < 0)
        return r;
    if (good_bytes < size_bytes && (ftruncate(f->log, (off_t)good_bytes) < 0 || fsync(f->log) < 0))
        return -errno;
    f->safe_bytes = good_bytes;
    f->is_broken = false;
    return 0;
}

static int check_gap(const struct journal_image *image, struct error *err)
{
    if (image->entry_count > 0 && image->entries[0].index > image->snapshot.index + 1)
        return error_set(err, -EBADMSG, "entries %llu to %llu are missing",
                         (unsigned long long)image->snapshot.index + 1,
                         (unsigned long long)image->entries[0].index - 1);
    return 0;
}

static int file_load(struct journal *j, struct journal_image *ret_image, struct error *err)
{
    struct file_journal *f = of(j);
    struct error why = { "" };
    int r;

    *ret_image = (struct journal_image) { 0 };
    r = load_vote(f, ret_image, &why);
    r = r < 0 ? r : load_snapshot(f, &ret_image->snapshot, &why);
    r = r < 0 ? r : load_log(f, ret_image, &why);
    r = r < 0 ? r : check_gap(ret_image, &why);
    if (r == 0)
        return 0;
    journal_image_clear(ret_image);
    return error_set(err, r, "%s: %s. Restore the folder, or remove it to let this machine join its cluster again",
                     f->path, *why.text ? why.text : strerror(-r));
}

/* ---- writing ---- */

static int file_set_vote(struct journal *j, uint64_t term, uint64_t vote)
{
    struct xdr_out o;
    int r;

    xdr_out_init(&o, 64);
    record_put_vote(&o, term, vote);
    r = o.failed ? -ENOMEM : replace_file(of(j)->folder, "vote", &o);
    xdr_out_done(&o);
    return r;
}

struct job {
    struct file_journal *f;
    const char *name; /* of the file to replace; NULL: append to the log */
    struct xdr_out o;
    int ret;
};

static void run_job(void *arg)
{
    struct job *job = arg;

    if (job->name) {
        job->ret = replace_file(job->f->folder, job->name, &job->o);
        return;
    }
    job->ret = write_all(job->f->log, job->o.buf->data, job->o.size);
    if (job->ret == 0 && fdatasync(job->f->log) < 0)
        job->ret = -errno;
}

/* Writes job->o and releases it. */
static FIBER int do_job(struct file_journal *f, struct job *job)
{
    size_t written_bytes = job->o.size;
    bool touches_log = !job->name || strcmp(job->name, "log") == 0;

    job->f = f;
    if (job->o.failed) {
        job->ret = -ENOMEM;
    } else if (touches_log && f->is_broken) {
        job->ret = -EIO;
    } else {
        env_pool_run(f->env, run_job, job);
        f->is_broken = f->is_broken || (touches_log && job->ret < 0);
        if (touches_log && job->ret == 0)
            f->safe_bytes = job->name ? written_bytes : f->safe_bytes + written_bytes;
    }
    xdr_out_done(&job->o);
    if (job->ret == 0 && job->name && touches_log)
        job->ret = open_log(f);
    return job->ret;
}

static FIBER int file_append(struct journal *j, const struct journal_entry *entries, size_t count)
{
    struct job job = { 0 };

    xdr_out_init(&job.o, 4096);
    for (size_t i = 0; i < count; i++)
        record_put_entry(&job.o, &entries[i], of(j)->safe_bytes);
    return do_job(of(j), &job);
}

/* Writes the log anew with the entries of [first, end). */
static FIBER int rewrite_log(struct file_journal *f, uint64_t first, uint64_t end)
{
    struct journal_image image = { 0 };
    SCOPED_FREE uint8_t *data = NULL;
    struct job job = { .name = "log" };
    size_t size_bytes, good_bytes;
    int r = read_file(f->folder, "log", &data, &size_bytes);

    r = r < 0 ? r : record_read_log(data, size_bytes, &image, &good_bytes, NULL);
    xdr_out_init(&job.o, 4096);
    for (size_t i = 0; r == 0 && i < image.entry_count; i++) {
        if (image.entries[i].index >= first && image.entries[i].index < end)
            record_put_entry(&job.o, &image.entries[i], 0);
    }
    journal_image_clear(&image);
    if (r < 0) {
        xdr_out_done(&job.o);
        return r;
    }
    return do_job(f, &job);
}

static FIBER int file_truncate(struct journal *j, uint64_t index)
{
    return rewrite_log(of(j), 0, index);
}

/* The snapshot first: a crash between the two leaves entries that it stands for as well, which does no harm. */
static FIBER int file_put_snapshot(struct journal *j, const struct journal_snapshot *s, uint64_t keep_from)
{
    struct job job = { .name = "snapshot" };
    int r;

    xdr_out_init(&job.o, 4096);
    record_put_snapshot(&job.o, s);
    r = do_job(of(j), &job);
    return r < 0 ? r : rewrite_log(of(j), keep_from, UINT64_MAX);
}

static FIBER int file_get_snapshot(struct journal *j, struct journal_snapshot *ret_snapshot)
{
    return load_snapshot(of(j), ret_snapshot, NULL);
}

static FIBER int file_erase(struct journal *j)
{
    struct file_journal *f = of(j);
    static const char *const names[] = { "log", "snapshot", "vote" };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (unlinkat(f->folder, names[i], 0) < 0 && errno != ENOENT)
            return -errno;
    }
    if (fsync(f->folder) < 0)
        return -errno;
    f->safe_bytes = 0;
    f->is_broken = false;
    return open_log(f);
}

static void file_free(struct journal *j)
{
    struct file_journal *f = of(j);

    if (f->folder >= 0)
        (void)close(f->folder); /* nothing is written through it */
    if (f->log >= 0)
        (void)close(f->log); /* all appends were synced */
    mem_free(f->path);
    mem_free(f);
}

static const struct journal_ops file_ops = {
    .load = file_load,
    .set_vote = file_set_vote,
    .append = file_append,
    .truncate = file_truncate,
    .put_snapshot = file_put_snapshot,
    .get_snapshot = file_get_snapshot,
    .erase = file_erase,
    .free = file_free,
};

int journal_open(struct env *env, const char *folder, struct journal **ret_journal, struct error *err)
{
    struct file_journal *f = NEW(struct file_journal);

    if (!f)
        return -ENOMEM;
    f->journal.ops = &file_ops;
    f->env = env;
    f->log = f->folder = -1;
    f->path = mem_strdup(folder);
    if (mkdir(folder, 0700) < 0 && errno != EEXIST) {
        int r = error_set(err, -errno, "%s cannot be made: %s", folder, strerror(errno));

        file_free(&f->journal);
        return r;
    }
    f->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (f->folder < 0 || !f->path) {
        int r = error_set(err, f->path ? -errno : -ENOMEM, "%s cannot be opened: %s", folder, strerror(errno));

        file_free(&f->journal);
        return r;
    }
    *ret_journal = &f->journal;
    return 0;
}
