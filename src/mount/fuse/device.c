/* Reading requests from the device and starting a fiber for each. */
#include "mount/fuse/buffers.h"
#include "mount/fuse/dispatch.h"
#include "mount/fuse/fuse_internal.h"
#include <unistd.h>

int mount_new(struct translator *me, struct mount **ret_mount)
{
    struct mount *m = NEW(struct mount);

    if (!m)
        return -ENOMEM;
    m->env = me->env;
    m->me = me;
    m->dev_fd = -1;
    m->root = (struct node) { .gfid = gfid_root, .type = S_IFDIR, .lookups = 1 };
    list_init(&m->root.handles);
    list_init(&m->root.held);
    list_init(&m->root.of_aliases);
    gfid_dir_init(m);
    list_init(&m->requests);
    inval_init(m);
    waitq_init(&m->idle);
    waitq_init(&m->moved);
    waitq_init(&m->reader_ended);
    scope_init(&m->reading, 0);
    m->buffers = buffer_store_new();
    m->group_cache = group_cache_new();
    if (!m->buffers || !m->group_cache) {
        mount_free(m);
        return -ENOMEM;
    }
    *ret_mount = m;
    return 0;
}

void mount_free(struct mount *m)
{
    if (!m)
        return;
    assert(m->running == 0 && !m->is_reading);
    inval_free_all(m);
    node_free_all(m);
    recent_free(m);
    buf_unref(m->body);
    buffer_store_release(m->buffers);
    group_cache_free(m->group_cache);
    if (m->dev_fd >= 0) {
        env_forget_fd(m->env, m->dev_fd);
        (void)close(m->dev_fd);
    }
    mem_free(m->mount_point);
    mem_free(m);
}

/* The data of a WRITE without its head: the body buffer itself when it is large, else a copy. */
static struct buf *take_data(struct mount *m, size_t bytes)
{
    struct buf *data;

    if (bytes < FUSE_KEEP_BYTES)
        return buf_copy(m->body->data, bytes);
    data = buf_slice(m->body, 0, bytes);
    buf_unref(m->body);
    m->body = NULL; /* read_one() takes another */
    return data;
}

/* The message that was read: head[] first, the rest in body. Returned, NULL for lack of memory. */
static struct request_in *request_make(struct mount *m, size_t bytes)
{
    const struct fuse_in_header *head = (const void *)m->head;
    size_t args_bytes = bytes - sizeof(*head);
    size_t in_head = MIN(args_bytes, FUSE_HEAD_BYTES - sizeof(*head));
    bool is_write = head->opcode == FUSE_WRITE && bytes > FUSE_HEAD_BYTES;
    struct request_in *in;

    if (is_write)
        args_bytes = in_head;
    in = mem_alloc(sizeof(*in) + args_bytes + 1);
    if (!in)
        return NULL;
    memset(in, 0, sizeof(*in));
    in->m = m;
    in->head = *head;
    in->args_bytes = args_bytes;
    memcpy(in->args, m->head + sizeof(*head), in_head);
    if (args_bytes > in_head)
        memcpy(in->args + in_head, m->body->data, args_bytes - in_head);
    in->args[args_bytes] = 0;
    list_init(&in->of_mount);
    if (is_write) {
        in->data = take_data(m, bytes - FUSE_HEAD_BYTES);
        if (!in->data) {
            mem_free(in);
            return NULL;
        }
    }
    return in;
}

/* One message: 1 = there was one, 0 = none now, -errno = the device is gone. */
static int read_one(struct mount *m)
{
    struct iovec iov[2] = { { m->head, FUSE_HEAD_BYTES } };
    struct request_in *in;
    ssize_t n;

    if (!m->body)
        m->body = buffer_take(m->buffers);
    if (!m->body)
        return -ENOMEM;
    iov[1] = (struct iovec) { m->body->data, FUSE_BODY_BYTES };
    n = readv(m->dev_fd, iov, 2);
    if (n < 0) {
        if (errno == EAGAIN)
            return 0;
        return errno == EINTR || errno == ENOENT ? 1 : -errno; /* ENOENT: the request was withdrawn meanwhile */
    }
    if ((size_t)n < sizeof(struct fuse_in_header))
        return -EIO;
    m->count.requests++;
    in = request_make(m, (size_t)n);
    if (!in) {
        struct request_in lost = { .m = m };

        memcpy(&lost.head, m->head, sizeof(lost.head));
        answer_error(&lost, -ENOMEM);
        return 1;
    }
    dispatch(in);
    return 1;
}

static FIBER void read_requests(void *arg)
{
    struct mount *m = arg;
    struct fuse *f;
    int r = 0;

    while (!m->reading.is_cancelled) {
        r = read_one(m);
        if (r == -ENOMEM)
            r = fiber_sleep_ms(&m->reading, 10);
        else if (r == 0)
            r = env_wait_readable(m->env, m->dev_fd, &m->reading);
        if (r < 0)
            break;
    }
    m->is_reading = false;
    (void)waitq_wake_all(&m->reader_ended, 0);
    if (m->reading.is_cancelled)
        return;
    m->is_ended = true;
    f = mount_options(m);
    if (r == -ENODEV || r == -ECONNABORTED)
        TLOG(m->me, LOG_INFO, "unmounted", "mountpoint=%s", m->mount_point);
    else
        TLOG(m->me, LOG_ERROR, "device-failed", "mountpoint=%s err=%s", m->mount_point, errno_name(r));
    if (f->on_end)
        f->on_end(f->on_end_arg);
}

int mount_read_start(struct mount *m)
{
    int r;

    m->is_reading = true;
    r = fiber_spawn(m->env, "fuse-read", read_requests, m);
    if (r < 0)
        m->is_reading = false;
    return r;
}

FIBER void mount_read_stop(struct mount *m)
{
    scope_cancel(&m->reading);
    while (m->is_reading)
        (void)waitq_wait(&m->reader_ended, NULL);
}
