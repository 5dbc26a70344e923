/* core/env_real_listen.c - accepting connections. */
#include "core/env_real_internal.h"
#include "core/log.h"
#include "core/mem.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define ACCEPTS_PER_TURN 64
#define ACCEPT_PAUSE_MS  100 /* when the process is out of descriptors */

struct real_listener {
    struct listener listener; /* first */
    int fd;
    bool is_closed;
    bool is_accepting; /* inside accept_some: closing waits for its end */
    accept_fn on_accept;
    void *arg;
    struct fd_poll poll;
    struct timer pause;
    char unix_path[108]; /* "": TCP */
};

/* ---- binding ---- */

static int open_socket(int family, const struct sockaddr *at, socklen_t at_bytes, int backlog, int *ret_fd)
{
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int on = 1, off = 0, err = 0;

    if (fd < 0)
        return -errno;
    if (family != AF_UNIX)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (family == AF_INET6) /* "any address" means IPv4 too */
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (bind(fd, at, at_bytes) < 0 || listen(fd, backlog) < 0)
        err = -errno;
    if (err < 0) {
        close(fd);
        return err;
    }
    *ret_fd = fd;
    return 0;
}

static int open_any(uint16_t port, int backlog, int *ret_fd)
{
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = in6addr_any };
    struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
    int err = open_socket(AF_INET6, (struct sockaddr *)&v6, sizeof(v6), backlog, ret_fd);

    if (err == -EAFNOSUPPORT || err == -EADDRNOTAVAIL) /* a kernel without IPv6 */
        err = open_socket(AF_INET, (struct sockaddr *)&v4, sizeof(v4), backlog, ret_fd);
    return err;
}

static int open_tcp(const struct address *at, int backlog, int *ret_fd)
{
    struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
    struct addrinfo *found;
    char port[8];

    if (at->host[0] == '\0')
        return open_any(at->port, backlog, ret_fd);
    snprintf(port, sizeof(port), "%u", at->port);
    /* Names of own addresses come from files; done at start-up only, so the loop may wait for it. */
    if (getaddrinfo(at->host, port, &hints, &found) != 0)
        return -EADDRNOTAVAIL;
    int err = -EADDRNOTAVAIL;
    for (struct addrinfo *a = found; a && err < 0; a = a->ai_next)
        err = open_socket(a->ai_family, a->ai_addr, a->ai_addrlen, backlog, ret_fd);
    freeaddrinfo(found);
    return err;
}

/* Is somebody behind the socket file? */
static bool is_alive(const struct sockaddr_un *at)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return true; /* cannot tell: do not take it away */
    bool is_refused = connect(fd, (const struct sockaddr *)at, sizeof(*at)) < 0 && errno == ECONNREFUSED;
    close(fd);
    return !is_refused;
}

static int open_unix(const struct address *at, int backlog, int *ret_fd)
{
    struct sockaddr_un a = { .sun_family = AF_UNIX };
    struct stat st;

    if (at->path[0] == '\0')
        return -EINVAL;
    memcpy(a.sun_path, at->path, strnlen(at->path, sizeof(a.sun_path) - 1));
    int err = open_socket(AF_UNIX, (struct sockaddr *)&a, sizeof(a), backlog, ret_fd);
    if (err != -EADDRINUSE || lstat(a.sun_path, &st) < 0 || !S_ISSOCK(st.st_mode) || is_alive(&a))
        return err;
    if (unlink(a.sun_path) < 0)
        return err;
    return open_socket(AF_UNIX, (struct sockaddr *)&a, sizeof(a), backlog, ret_fd);
}

static uint16_t bound_port(int fd)
{
    struct sockaddr_in6 a = { .sin6_port = 0 };
    socklen_t len = sizeof(a);

    if (getsockname(fd, (struct sockaddr *)&a, &len) < 0)
        return 0;
    return ntohs(a.sin6_port); /* where sockaddr_in has it too */
}

static_assert(offsetof(struct sockaddr_in6, sin6_port) == offsetof(struct sockaddr_in, sin_port), "one place for both");

/* ---- accepting ---- */

static void resume_accepting(void *arg)
{
    struct real_listener *l = arg;

    if (fd_poll_want(&l->poll, UV_READABLE) < 0)
        timer_start(l->listener.env, &l->pause, env_deadline_ms(l->listener.env, ACCEPT_PAUSE_MS), resume_accepting, l);
}

static void pause_accepting(struct real_listener *l, int err)
{
    LOG(env_log(l->listener.env), LOG_WARNING, "listener", "accept-failed", "port=%u path=%s err=%s", l->listener.port,
        l->unix_path, errno_name(err));
    (void)fd_poll_want(&l->poll, 0); /* ending interest cannot fail */
    timer_start(l->listener.env, &l->pause, env_deadline_ms(l->listener.env, ACCEPT_PAUSE_MS), resume_accepting, l);
}

static void free_listener(struct fd_poll *p)
{
    mem_free(container_of(p, struct real_listener, poll));
}

static void accept_some(struct real_listener *l)
{
    struct env_real *r = real(l->listener.env);

    for (int i = 0; i < ACCEPTS_PER_TURN && !l->is_closed; i++) {
        int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            int err = -errno;
            if (err == -ECONNABORTED || err == -EINTR)
                continue;
            if (err != -EAGAIN)
                pause_accepting(l, err);
            return;
        }
        struct stream *s = NULL;
        int err = real_stream_new(r, fd, l->unix_path[0] != '\0', &s);
        if (err < 0) {
            pause_accepting(l, err);
            return;
        }
        l->on_accept(l->arg, s);
    }
}

static void on_connections(struct fd_poll *p)
{
    struct real_listener *l = container_of(p, struct real_listener, poll);

    l->is_accepting = true;
    accept_some(l);
    l->is_accepting = false;
    if (l->is_closed)
        fd_poll_close(&l->poll, free_listener);
}

int real_listen(struct env *env, const struct address *at, int backlog, accept_fn on_accept, void *arg,
                struct listener **ret_listener)
{
    bool is_unix = at->family == ADDRESS_UNIX;
    int fd = -1;
    struct real_listener *l = NEW(struct real_listener);

    if (!l)
        return -ENOMEM;
    int err = is_unix ? open_unix(at, backlog, &fd) : open_tcp(at, backlog, &fd);
    if (err < 0) {
        mem_free(l);
        return err;
    }
    l->listener.env = env;
    l->listener.port = is_unix ? 0 : bound_port(fd);
    l->fd = fd;
    l->on_accept = on_accept;
    l->arg = arg;
    if (is_unix)
        memcpy(l->unix_path, at->path, strnlen(at->path, sizeof(l->unix_path) - 1));
    err = fd_poll_open(real(env), &l->poll, fd);
    if (err < 0) {
        close(fd);
        mem_free(l);
        return err;
    }
    l->poll.on_readable = on_connections;
    err = fd_poll_want(&l->poll, UV_READABLE);
    if (err < 0) {
        fd_poll_close(&l->poll, free_listener);
        close(fd);
        return err;
    }
    *ret_listener = &l->listener;
    return 0;
}

void real_listener_close(struct listener *listener)
{
    struct real_listener *l = container_of(listener, struct real_listener, listener);

    assert(!l->is_closed);
    l->is_closed = true;
    timer_stop(&l->pause);
    if (l->unix_path[0])
        unlink(l->unix_path);
    uv_poll_stop(&l->poll.handle); /* before the descriptor goes */
    close(l->fd);
    if (!l->is_accepting)
        fd_poll_close(&l->poll, free_listener);
}
