/* core/env_real_poll.c - fibers that wait for file descriptors. */
#include "core/env_real_internal.h"
#include "core/mem.h"

/* ---- any descriptor ---- */

static void on_poll(uv_poll_t *handle, int status, int events)
{
    struct fd_poll *p = handle->data;
    int unwanted = 0;

    if (status < 0) { /* an error on the descriptor: libuv has stopped watching; who waits will see it when trying */
        p->interest = 0;
        events = UV_READABLE | UV_WRITABLE;
    }
    if (events & UV_WRITABLE && !waitq_wake_one(&p->writers, 0))
        unwanted |= UV_WRITABLE;
    if (events & UV_READABLE) {
        if (p->on_readable) {
            p->on_readable(p); /* may close p */
            return;
        }
        if (!waitq_wake_one(&p->readers, 0))
            unwanted |= UV_READABLE;
    }
    unwanted &= p->interest;
    if (unwanted)
        (void)fd_poll_want(p, p->interest & ~unwanted); /* less of it cannot fail */
}

int fd_poll_open(struct env_real *r, struct fd_poll *p, int fd)
{
    real_forget_fd(&r->env, fd); /* an earlier descriptor of that number has been closed */
    p->env = r;
    p->interest = 0;
    p->on_readable = NULL;
    waitq_init(&p->readers);
    waitq_init(&p->writers);
    p->handle.data = p;
    return uv_poll_init(&r->loop, &p->handle, fd);
}

static void poll_has_closed(uv_handle_t *handle)
{
    struct fd_poll *p = handle->data;

    p->closed(p);
}

void fd_poll_close(struct fd_poll *p, void (*closed)(struct fd_poll *p))
{
    assert(waitq_is_empty(&p->readers) && waitq_is_empty(&p->writers));
    p->closed = closed;
    uv_poll_stop(&p->handle);
    uv_close((uv_handle_t *)&p->handle, poll_has_closed);
}

int fd_poll_want(struct fd_poll *p, int events)
{
    if (events == p->interest)
        return 0;
    int err = events ? uv_poll_start(&p->handle, events, on_poll) : uv_poll_stop(&p->handle);
    if (err == 0)
        p->interest = events;
    return err;
}

FIBER int fd_poll_wait(struct fd_poll *p, int event, struct scope *scope)
{
    int err = fd_poll_want(p, p->interest | event);

    return err < 0 ? err : waitq_wait(event == UV_READABLE ? &p->readers : &p->writers, scope);
}

/* ---- env_wait_readable: descriptors of others, remembered between waits ---- */

struct fd_watch {
    struct list node;
    int fd;
    struct fd_poll poll;
};

static struct fd_watch *find_watch(struct env_real *r, int fd)
{
    struct fd_watch *w;

    list_for_each (w, &r->fd_watches, node)
        if (w->fd == fd)
            return w;
    return NULL;
}

static void free_watch(struct fd_poll *p)
{
    mem_free(container_of(p, struct fd_watch, poll));
}

static void close_watch(struct fd_watch *w)
{
    list_del(&w->node);
    fd_poll_close(&w->poll, free_watch);
}

FIBER int real_wait_readable(struct env *env, int fd, struct scope *scope)
{
    struct env_real *r = real(env);
    struct fd_watch *w = find_watch(r, fd);

    if (!w) {
        w = NEW(struct fd_watch);
        if (!w)
            return -ENOMEM;
        int err = fd_poll_open(r, &w->poll, fd);
        if (err < 0) {
            mem_free(w);
            return err;
        }
        w->fd = fd;
        list_add_head(&r->fd_watches, &w->node);
    }
    return fd_poll_wait(&w->poll, UV_READABLE, scope);
}

void real_forget_fd(struct env *env, int fd)
{
    struct fd_watch *w = find_watch(real(env), fd);

    if (w)
        close_watch(w);
}

void real_free_fd_watches(struct env_real *r)
{
    while (!list_empty(&r->fd_watches))
        close_watch(list_entry(r->fd_watches.next, struct fd_watch, node));
}
