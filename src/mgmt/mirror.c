#include "mgmt/mirror.h"
#include "core/mem.h"
#include "mgmt/store.h"
#include "mgmt/volgen.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define MARK_NAME "written-by-mortard" /* a folder that has it is ours to remove */
#define MARK_TEXT "This folder shows what mortard knows. Changes made here have no effect.\n"

struct file {
    char *path, *text;
};

/* What is to be written: made on the loop, written on the pool. */
struct batch {
    struct file *files;
    size_t count;
    bool is_failed; /* no memory */
    char **volumes; /* their names: the cluster may change while the pool works */
    size_t volume_count;
    const char *work_folder;
    int ret;
    struct error err;
};

/* Both are given. */
static void add(struct batch *b, char *path, char *text)
{
    struct file *grown = mem_realloc(b->files, (b->count + 1) * sizeof(*grown));

    if (grown)
        b->files = grown;
    if (!grown || !path || !text) {
        b->is_failed = true;
        mem_free(path);
        mem_free(text);
        return;
    }
    grown[b->count++] = (struct file) { path, text };
}

static void batch_done(struct batch *b)
{
    for (size_t i = 0; i < b->count; i++) {
        mem_free(b->files[i].path);
        mem_free(b->files[i].text);
    }
    for (size_t i = 0; i < b->volume_count; i++)
        mem_free(b->volumes[i]);
    mem_free(b->files);
    mem_free(b->volumes);
}

static void add_volume(struct batch *b, const struct volume *v)
{
    SCOPED_FREE char *folder = mem_printf("%s/vols/%s", b->work_folder, v->name);
    struct volgen_node node = { b->work_folder, 1 };

    if (!folder) {
        b->is_failed = true;
        return;
    }
    add(b, mem_printf("%s/" MARK_NAME, folder), mem_strdup(MARK_TEXT));
    add(b, mem_printf("%s/info", folder), store_print_info(v));
    add(b, mem_printf("%s/%s.tcp-fuse.vol", folder, v->name), volgen_client(v, false));
    add(b, mem_printf("%s/trusted-%s.tcp-fuse.vol", folder, v->name), volgen_client(v, true));
    if (v->kind == VOLUME_REPLICATE)
        add(b, mem_printf("%s/%s-shd.vol", folder, v->name), volgen_heal(v));
    for (unsigned i = 0; i < v->brick_count; i++) {
        SCOPED_FREE char *name = store_brick_file(&v->bricks[i]);
        SCOPED_FREE char *id = volgen_brick_id(v, i);

        add(b, name ? mem_printf("%s/bricks/%s", folder, name) : NULL, store_print_brick(&v->bricks[i]));
        add(b, id ? mem_printf("%s/%s.vol", folder, id) : NULL, volgen_brick(v, i, &node));
    }
}

/* ---- on the pool ---- */

static bool is_same(const struct file *f)
{
    size_t length = strlen(f->text);
    int fd = open(f->path, O_RDONLY | O_CLOEXEC);
    bool same = false;
    struct stat st;
    char *text;

    if (fd < 0)
        return false;
    if (fstat(fd, &st) == 0 && (size_t)st.st_size == length && (text = mem_alloc(length + 1))) {
        same = read(fd, text, length) == (ssize_t)length && memcmp(text, f->text, length) == 0;
        mem_free(text);
    }
    (void)close(fd); /* only read */
    return same;
}

static int make_parent(const char *path)
{
    SCOPED_FREE char *folder = mem_strdup(path);

    for (char *slash = folder ? strchr(folder + 1, '/') : NULL; slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(folder, 0755) < 0 && errno != EEXIST)
            return -errno;
        *slash = '/';
    }
    return folder ? 0 : -ENOMEM;
}

static int write_file(const struct file *f)
{
    SCOPED_FREE char *beside = mem_printf("%s.tmp", f->path);
    size_t length = strlen(f->text);
    int fd, r = make_parent(f->path);

    if (r < 0 || !beside)
        return beside ? r : -ENOMEM;
    fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    errno = EIO;
    r = write(fd, f->text, length) == (ssize_t)length && fsync(fd) == 0 ? 0 : -errno;
    if (close(fd) < 0 && r == 0)
        r = -errno;
    return r < 0 ? r : rename(beside, f->path) < 0 ? -errno : 0;
}

static bool is_volume(const struct batch *b, const char *name)
{
    for (size_t i = 0; i < b->volume_count; i++) {
        if (strcmp(b->volumes[i], name) == 0)
            return true;
    }
    return false;
}

/* A folder with files only, and folders with files only. */
static void remove_folder(const char *path, int depth)
{
    DIR *dir = opendir(path);
    struct dirent *e;

    while (dir && (e = readdir(dir))) {
        SCOPED_FREE char *child = mem_printf("%s/%s", path, e->d_name);

        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 || !child)
            continue;
        if (unlink(child) < 0 && errno == EISDIR && depth > 0)
            remove_folder(child, depth - 1);
    }
    if (dir)
        (void)closedir(dir); /* only read */
    (void)rmdir(path);       /* what is left is not ours */
}

static void remove_old(const struct batch *b)
{
    SCOPED_FREE char *folder = mem_printf("%s/vols", b->work_folder);
    DIR *dir = folder ? opendir(folder) : NULL;
    struct dirent *e;

    while (dir && (e = readdir(dir))) {
        SCOPED_FREE char *path = mem_printf("%s/%s", folder, e->d_name);
        SCOPED_FREE char *mark = mem_printf("%s/%s/" MARK_NAME, folder, e->d_name);

        if (*e->d_name != '.' && path && mark && !is_volume(b, e->d_name) && access(mark, F_OK) == 0)
            remove_folder(path, 2);
    }
    if (dir)
        (void)closedir(dir); /* only read */
}

static void write_batch(void *arg)
{
    struct batch *b = arg;

    for (size_t i = 0; i < b->count && b->ret == 0; i++) {
        if (is_same(&b->files[i]))
            continue;
        b->ret = write_file(&b->files[i]);
        if (b->ret < 0)
            (void)error_set(&b->err, b->ret, "%s: %s", b->files[i].path, strerror(-b->ret));
    }
    if (b->ret == 0)
        remove_old(b);
}

FIBER int mirror_write(struct env *env, const struct cluster *c, const char *work_folder, char *state,
                       struct error *err)
{
    struct batch *b = NEW(struct batch);
    int r;

    if (!b) {
        mem_free(state);
        return -ENOMEM;
    }
    b->work_folder = work_folder;
    if (state)
        add(b, mem_printf("%s/state.json", work_folder), state);
    b->volumes = mem_array(c->volume_count + 1, sizeof(char *));
    b->is_failed = !b->volumes;
    for (unsigned i = 0; i < c->volume_count && !b->is_failed; i++) {
        b->volumes[b->volume_count] = mem_strdup(c->volumes[i]->name);
        b->is_failed = !b->volumes[b->volume_count++];
        add_volume(b, c->volumes[i]);
    }
    if (!b->is_failed)
        env_pool_run(env, write_batch, b);
    r = b->is_failed ? -ENOMEM : b->ret;
    if (r < 0 && err)
        *err = b->err;
    batch_done(b);
    mem_free(b);
    return r;
}

void mirror_make_folders(const char *run_folder, const char *log_folder, const char *volume)
{
    SCOPED_FREE char *bricks = mem_printf("%s/vols/%s/", run_folder, volume);
    SCOPED_FREE char *heal = mem_printf("%s/shd/%s/", run_folder, volume);
    SCOPED_FREE char *logs = mem_printf("%s/bricks/", log_folder);

    if (bricks && heal && logs) {
        (void)make_parent(bricks); /* whoever needs them says that they are missing */
        (void)make_parent(heal);
        (void)make_parent(logs);
    }
}
