/* The store's files: lines of key=value. */
#include "mgmt/store.h"
#include "core/mem.h"
#include <errno.h>
#include <inttypes.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- reading ---- */

/* A file as lines; `line` counts from 1. */
struct lines {
    char *text, *next;
    const char *path;
    unsigned line;
};

static int read_all(int fd, char *text, size_t size_bytes)
{
    size_t done = 0;

    while (done < size_bytes) {
        ssize_t n = read(fd, text + done, size_bytes - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    text[done] = '\0';
    return 0;
}

static int lines_open(const char *path, struct lines *ret, struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    char *text;
    int r;

    if (fd < 0)
        return error_set(err, -errno, "%s: %s", path, strerror(errno));
    if (fstat(fd, &st) < 0)
        r = -errno;
    else
        r = !S_ISREG(st.st_mode) ? -EINVAL : st.st_size > STORE_FILE_MAX_BYTES ? -EFBIG : 0;
    text = r < 0 ? NULL : mem_alloc((size_t)st.st_size + 1);
    if (r == 0)
        r = text ? read_all(fd, text, (size_t)st.st_size) : -ENOMEM;
    (void)close(fd); /* only read */
    if (r < 0) {
        mem_free(text);
        return error_set(err, r, "%s: %s", path, strerror(-r));
    }
    *ret = (struct lines) { .text = text, .next = text, .path = path };
    return 0;
}

static void lines_close(struct lines *l)
{
    mem_free(l->text);
}

/* 1 and the next pair, 0 at the end. */
static int lines_next(struct lines *l, char **ret_key, char **ret_value, struct error *err)
{
    while (*l->next) {
        char *line = l->next;
        char *end = line + strcspn(line, "\n");
        char *equals;

        l->next = *end ? end + 1 : end;
        *end = '\0';
        l->line++;
        if (*line == '\0' || *line == '#')
            continue;
        equals = strchr(line, '=');
        if (!equals || equals == line)
            return error_set(err, -EINVAL, "%s:%u: \"%s\" is not a line KEY=VALUE", l->path, l->line, line);
        *equals = '\0';
        *ret_key = line;
        *ret_value = equals + 1;
        return 1;
    }
    return 0;
}

static int bad_value(const struct lines *l, const char *key, const char *value, struct error *err)
{
    return error_set(err, -EINVAL, "%s:%u: \"%s\" is no value for %s", l->path, l->line, value, key);
}

enum field_kind { FIELD_U32, FIELD_U64, FIELD_UUID, FIELD_TEXT, FIELD_FLAG };

struct field {
    const char *key;
    enum field_kind kind;
    size_t offset;
};

static int field_store(const struct lines *l, const struct field *f, const char *value, void *object, struct error *err)
{
    void *at = (char *)object + f->offset;
    char *end = NULL;
    unsigned long long number = 0;

    if (f->kind == FIELD_U32 || f->kind == FIELD_U64 || f->kind == FIELD_FLAG) {
        errno = 0;
        number = strtoull(value, &end, 10);
        if (end == value || *end || errno || *value == '-' || (f->kind != FIELD_U64 && number > UINT32_MAX))
            return bad_value(l, f->key, value, err);
    }
    switch (f->kind) {
    case FIELD_U32: *(uint32_t *)at = (uint32_t)number; return 0;
    case FIELD_U64: *(uint64_t *)at = number; return 0;
    case FIELD_FLAG: *(bool *)at = number != 0; return 0;
    case FIELD_UUID: return gfid_parse(value, at) < 0 ? bad_value(l, f->key, value, err) : 0;
    case FIELD_TEXT:
        mem_free(*(char **)at);
        *(char **)at = mem_strdup(value);
        return *(char **)at ? 0 : -ENOMEM;
    }
    return 0;
}

static const struct field *field_find(const struct field *fields, const char *key)
{
    for (; fields->key; fields++) {
        if (strcmp(fields->key, key) == 0)
            return fields;
    }
    return NULL;
}

static const struct field brick_fields[] = {
    { "uuid", FIELD_UUID, offsetof(struct brick, node) },
    { "hostname", FIELD_TEXT, offsetof(struct brick, host) },
    { "path", FIELD_TEXT, offsetof(struct brick, path) },
    { "real_path", FIELD_TEXT, offsetof(struct brick, real_path) },
    { "listen-port", FIELD_U32, offsetof(struct brick, port) },
    { "decommissioned", FIELD_FLAG, offsetof(struct brick, is_leaving) },
    { "brick-id", FIELD_TEXT, offsetof(struct brick, id) },
    { "mount_dir", FIELD_TEXT, offsetof(struct brick, mount_dir) },
    { "brick-fsid", FIELD_U64, offsetof(struct brick, fsid) },
    { NULL, 0, 0 },
};

static int read_brick(const char *folder, const char *file, struct volume *v, struct error *err)
{
    SCOPED_FREE char *path = mem_printf("%s/bricks/%s", folder, file);
    struct brick *b = volume_add_brick(v);
    const struct field *f;
    char *key = "", *value = "";
    struct lines l = { .next = "" };
    int r;

    if (!path || !b)
        return -ENOMEM;
    if (strchr(file, '/'))
        return error_set(err, -EINVAL, "%s/info: \"%s\" cannot be the name of a brick's file", folder, file);
    r = lines_open(path, &l, err);
    if (r < 0)
        return r;
    while ((r = lines_next(&l, &key, &value, err)) > 0) {
        f = field_find(brick_fields, key);
        r = f ? field_store(&l, f, value, b, err) : 0;
        if (r < 0)
            break;
    }
    lines_close(&l);
    if (r == 0 && (!b->host || !b->path || gfid_is_null(&b->node)))
        r = error_set(err, -EINVAL, "%s: uuid, hostname or path is missing", path);
    /* Volumes made before 3.6 have no ids: the position was the id. */
    if (r == 0 && !b->id && !(b->id = mem_printf("%s-client-%u", v->name, v->brick_count - 1)))
        r = -ENOMEM;
    return r;
}

/* What `info` says beside the fields of struct volume. */
struct info {
    struct volume *v;
    uint32_t type, status, count, transport;
};

static const struct field volume_fields[] = {
    { "replica_count", FIELD_U32, offsetof(struct volume, replica_count) },
    { "arbiter_count", FIELD_U32, offsetof(struct volume, arbiter_count) },
    { "disperse_count", FIELD_U32, offsetof(struct volume, disperse_count) },
    { "redundancy_count", FIELD_U32, offsetof(struct volume, redundancy_count) },
    { "version", FIELD_U32, offsetof(struct volume, version) },
    { "volume-id", FIELD_UUID, offsetof(struct volume, id) },
    { "username", FIELD_UUID, offsetof(struct volume, username) },
    { "password", FIELD_UUID, offsetof(struct volume, password) },
    { "op-version", FIELD_U32, offsetof(struct volume, op_version) },
    { "client-op-version", FIELD_U32, offsetof(struct volume, client_op_version) },
    { NULL, 0, 0 },
};

static const struct field info_fields[] = {
    { "type", FIELD_U32, offsetof(struct info, type) },
    { "status", FIELD_U32, offsetof(struct info, status) },
    { "count", FIELD_U32, offsetof(struct info, count) },
    { "transport-type", FIELD_U32, offsetof(struct info, transport) },
    { NULL, 0, 0 },
};

static int info_pair(const char *folder, struct lines *l, struct info *info, const char *key, const char *value,
                     struct error *err)
{
    const struct field *f = field_find(volume_fields, key);

    if (f)
        return field_store(l, f, value, info->v, err);
    f = field_find(info_fields, key);
    if (f)
        return field_store(l, f, value, info, err);
    if (strncmp(key, "brick-", 6) == 0)
        return read_brick(folder, value, info->v, err);
    if (strchr(key, '.'))
        return settings_append(&info->v->settings, key, value); /* the newest comes first in the file */
    return 0;
}

static int info_judge(const char *path, const struct info *info, struct error *err)
{
    struct volume *v = info->v;

    if (info->type != VOLUME_DISTRIBUTE && info->type != VOLUME_REPLICATE && info->type != VOLUME_DISPERSE)
        return error_set(err, -EOPNOTSUPP,
                         "%s: volumes of type %u (stripe, tier) are gone since GlusterFS 6; copy the data to a new one",
                         path, info->type);
    if (info->status > VOLUME_STOPPED)
        return error_set(err, -EINVAL, "%s: status %u is unknown", path, info->status);
    if (info->transport == 1)
        return error_set(err, -EOPNOTSUPP,
                         "%s: transport rdma is gone since GlusterFS 8; set config.transport tcp there", path);
    if (gfid_is_null(&v->id))
        return error_set(err, -EINVAL, "%s: volume-id is missing", path);
    if (v->brick_count == 0 || v->brick_count != info->count)
        return error_set(err, -EINVAL, "%s: count says %u bricks, %u are listed", path, info->count, v->brick_count);
    v->kind = (enum volume_kind)info->type;
    v->state = (enum volume_state)info->status;
    if (volume_group_size(v) == 0 || v->brick_count % volume_group_size(v) != 0 ||
        v->arbiter_count >= volume_group_size(v) + (v->arbiter_count == 0))
        return error_set(err, -EINVAL, "%s: %u bricks do not make sets of %u", path, v->brick_count,
                         volume_group_size(v));
    return 0;
}

int store_read_volume(const char *folder, const char *name, struct volume **ret_volume, struct error *err)
{
    SCOPED(volume_free) struct volume *v = volume_new(name);
    SCOPED_FREE char *path = mem_printf("%s/info", folder);
    struct info info = { .v = v, .type = UINT32_MAX };
    char *key = "", *value = "";
    struct lines l = { .next = "" };
    int r;

    if (!v || !path)
        return -ENOMEM;
    r = lines_open(path, &l, err);
    if (r < 0)
        return r;
    while ((r = lines_next(&l, &key, &value, err)) > 0) {
        r = info_pair(folder, &l, &info, key, value, err);
        if (r < 0)
            break;
    }
    lines_close(&l);
    if (r == 0)
        r = info_judge(path, &info, err);
    if (r < 0)
        return r;
    *ret_volume = take(v);
    return 0;
}

/* ---- writing ---- */

/* A stream into memory, as one string of the project's heap. NULL when anything failed. */
static char *stream_text(FILE *f, char **text)
{
    bool is_whole = f && !ferror(f);
    char *copy;

    if (!f || fclose(f) != 0)
        is_whole = false;
    copy = is_whole ? mem_strdup(*text) : NULL;
    free(*text);
    return copy;
}

char *store_brick_file(const struct brick *b)
{
    SCOPED_FREE char *dashes = path_with_dashes(b->path, true);

    return dashes ? mem_printf("%s:%s", b->host, dashes) : NULL;
}

char *store_print_brick(const struct brick *b)
{
    const char *real_path = b->real_path ? b->real_path : b->path;

    return mem_printf("uuid=%s\nhostname=%s\npath=%s\nreal_path=%s\nlisten-port=%u\nrdma.listen-port=0\n"
                      "decommissioned=%d\nbrick-id=%s\nmount_dir=%s\nsnap-status=0\nbrick-fsid=%" PRIu64 "\n",
                      GFID_TEXT(&b->node), b->host, b->path, real_path, b->port, b->is_leaving, b->id,
                      b->mount_dir ? b->mount_dir : real_path, b->fsid);
}

static void print_head(FILE *f, const struct volume *v)
{
    fprintf(f, "type=%d\ncount=%u\nstatus=%d\n", (int)v->kind, v->brick_count, (int)v->state);
    fprintf(f, "sub_count=%u\nreplica_count=%u\n", v->kind == VOLUME_DISTRIBUTE ? 0 : volume_group_size(v),
            v->replica_count);
    if (v->arbiter_count > 0)
        fprintf(f, "arbiter_count=%u\n", v->arbiter_count);
    fprintf(f, "disperse_count=%u\nredundancy_count=%u\nversion=%u\ntransport-type=0\n", v->disperse_count,
            v->redundancy_count, v->version);
    fprintf(f, "volume-id=%s\nusername=%s\npassword=%s\n", GFID_TEXT(&v->id), GFID_TEXT(&v->username),
            GFID_TEXT(&v->password));
    fprintf(f, "op-version=%u\nclient-op-version=%u\nquota-version=0\ntier-enabled=0\nparent_volname=N/A\n",
            v->op_version, v->client_op_version);
    fprintf(f, "restored_from_snap=%s\nsnap-max-hard-limit=256\n", GFID_TEXT(&gfid_null));
}

char *store_print_info(const struct volume *v)
{
    char *text = NULL;
    size_t size_bytes;
    FILE *f = open_memstream(&text, &size_bytes);

    if (!f)
        return NULL;
    print_head(f, v);
    for (unsigned i = 0; i < v->settings.count; i++)
        fprintf(f, "%s=%s\n", v->settings.list[i].key, v->settings.list[i].value);
    for (unsigned i = 0; i < v->brick_count; i++) {
        SCOPED_FREE char *file = store_brick_file(&v->bricks[i]);

        if (!file) {
            (void)fclose(f); /* the text is dropped */
            free(text);
            return NULL;
        }
        fprintf(f, "brick-%u=%s\n", i, file);
    }
    return stream_text(f, &text);
}
