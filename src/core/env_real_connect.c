/* core/env_real_connect.c - name look-up and connecting. */
#include "core/env_real_internal.h"
#include "core/mem.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PRIVILEGED_FIRST 1023
#define PRIVILEGED_LAST  512 /* below are the well-known services */
#define MAX_ADDRESSES    8   /* of one name that are tried */
#define UNIX_RETRY_MS    5   /* while a unix listener's backlog is full */

/* ---- name look-up ---- */

/* Lives until both the fiber and the pool job are done with it. */
struct lookup {
    char host[256];
    char port[8];
    int code; /* of getaddrinfo */
    struct addrinfo *found;
    struct waitq finished;
    bool is_finished, is_abandoned;
};

static void lookup_free(struct lookup *l)
{
    if (l->found)
        freeaddrinfo(l->found);
    mem_free(l);
}
DEFINE_SCOPED(lookup_free, struct lookup)

/* On the pool. */
static void look_up(void *arg)
{
    struct lookup *l = arg;
    struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG };

    l->code = getaddrinfo(l->host, l->port, &hints, &l->found);
    if (l->code != 0)
        l->found = NULL;
}

static void look_up_done(void *arg)
{
    struct lookup *l = arg;

    l->is_finished = true;
    if (l->is_abandoned)
        lookup_free(l);
    else
        waitq_wake_one(&l->finished, 0);
}

static int lookup_result(const struct lookup *l)
{
    if (l->code == EAI_MEMORY)
        return -ENOMEM;
    return l->code == 0 ? 0 : -EHOSTUNREACH;
}

/* Returned; lookup_free it. */
static FIBER int resolve(struct env *env, const struct address *to, struct scope *scope, struct lookup **ret_lookup)
{
    struct lookup *l = NEW(struct lookup);
    struct addrinfo numeric = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV };

    if (!l)
        return -ENOMEM;
    memcpy(l->host, to->host, strnlen(to->host, sizeof(l->host) - 1));
    snprintf(l->port, sizeof(l->port), "%u", to->port);
    waitq_init(&l->finished);
    if (getaddrinfo(l->host, l->port, &numeric, &l->found) == 0) { /* no name, no wait */
        *ret_lookup = l;
        return 0;
    }
    l->found = NULL;
    int r = env_pool_post(env, look_up, look_up_done, l);
    if (r == 0) {
        r = waitq_wait(&l->finished, scope);
        if (r < 0 && !l->is_finished) {
            l->is_abandoned = true;
            return r;
        }
    }
    if (r == 0)
        r = lookup_result(l);
    if (r < 0)
        lookup_free(l);
    else
        *ret_lookup = l;
    return r;
}

/* ---- sockets ---- */

/* Binds to that port of any address of the family. */
static int bind_port(int fd, int family, uint16_t port)
{
    struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
    int r = family == AF_INET6 ? bind(fd, (struct sockaddr *)&v6, sizeof(v6))
                               : bind(fd, (struct sockaddr *)&v4, sizeof(v4));

    return r < 0 ? -errno : 0;
}

/* The next port at or below *port that can be bound; -EADDRNOTAVAIL when there is none, or the process may not. */
static int bind_privileged(int fd, int family, uint16_t *port)
{
    for (; *port >= PRIVILEGED_LAST; --*port) {
        int r = bind_port(fd, family, *port);
        if (r == 0)
            return 0;
        if (r != -EADDRINUSE)
            break;
    }
    return -EADDRNOTAVAIL;
}

static int socket_error(int fd)
{
    int err = 0;
    socklen_t len = sizeof(err);

    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0)
        return -errno;
    return -err;
}

/* Begins to connect: 0, -EINPROGRESS, -errno. */
static int begin_connect(int fd, const struct sockaddr *to, socklen_t to_bytes)
{
    int r;

    do
        r = connect(fd, to, to_bytes);
    while (r < 0 && errno == EINTR);
    return r < 0 ? -errno : 0;
}

/* Makes a stream of the socket (given) and waits until it is connected. */
static FIBER int finish_connect(struct env *env, int fd, bool is_unix, int progress, struct scope *scope,
                                struct stream **ret_stream)
{
    struct stream *s = NULL;

    if (progress == -EINPROGRESS) {
        int r = real_stream_new(real(env), fd, is_unix, &s);
        if (r < 0)
            return r;
        r = fd_poll_wait(&container_of(s, struct real_stream, stream)->poll, UV_WRITABLE, scope);
        if (r == 0)
            r = socket_error(fd);
        if (r < 0) {
            stream_close(s);
            return r;
        }
        real_stream_name(s);
        *ret_stream = s;
        return 0;
    }
    if (progress < 0) {
        close(fd);
        return progress;
    }
    return real_stream_new(real(env), fd, is_unix, ret_stream);
}

static FIBER int connect_address(struct env *env, const struct addrinfo *a, const struct stream_options *options,
                                 uint16_t *port, struct scope *scope, struct stream **ret_stream)
{
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    real_socket_options(fd, options);
    if (*port && bind_privileged(fd, a->ai_family, port) < 0)
        *port = 0; /* any port, then */
    return finish_connect(env, fd, false, begin_connect(fd, a->ai_addr, a->ai_addrlen), scope, ret_stream);
}

/* Connected, or no time left for another address. */
static bool is_final(int r, const struct scope *scope, struct env *env)
{
    return r == 0 || r == -ESHUTDOWN || scope_check(scope, env) < 0;
}

static FIBER int connect_tcp(struct env *env, const struct address *to, const struct stream_options *options,
                             struct scope *scope, struct stream **ret_stream)
{
    struct lookup *found = NULL;
    int r = resolve(env, to, scope, &found);

    if (r < 0)
        return r;
    SCOPED(lookup_free) struct lookup *l = found;
    r = -EHOSTUNREACH;
    int tried = 0;
    for (const struct addrinfo *a = l->found; a && tried < MAX_ADDRESSES; a = a->ai_next, tried++) {
        uint16_t port = to->bind_privileged ? PRIVILEGED_FIRST : 0;
        do {
            r = connect_address(env, a, options, &port, scope, ret_stream);
            /* That source port is still busy with the same destination (TIME_WAIT): the next one. */
        } while (r == -EADDRNOTAVAIL && port > 0 && --port >= PRIVILEGED_LAST);
        if (is_final(r, scope, env))
            return r;
    }
    return r;
}

static FIBER int connect_unix(struct env *env, const struct address *to, struct scope *scope,
                              struct stream **ret_stream)
{
    struct sockaddr_un a = { .sun_family = AF_UNIX };

    memcpy(a.sun_path, to->path, strnlen(to->path, sizeof(a.sun_path) - 1));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    for (;;) {
        int progress = begin_connect(fd, (struct sockaddr *)&a, sizeof(a));
        if (progress != -EAGAIN)
            return finish_connect(env, fd, true, progress == -ENOENT ? -ECONNREFUSED : progress, scope, ret_stream);
        int r = fiber_sleep_ms(scope, UNIX_RETRY_MS); /* the backlog is full */
        if (r < 0) {
            close(fd);
            return r;
        }
    }
}

FIBER int real_connect(struct env *env, const struct address *to, const struct stream_options *options,
                       struct scope *scope, struct stream **ret_stream)
{
    int r = scope_check(scope, env);

    if (r < 0)
        return r;
    if (to->family == ADDRESS_UNIX)
        return connect_unix(env, to, scope, ret_stream);
    return connect_tcp(env, to, options, scope, ret_stream);
}
