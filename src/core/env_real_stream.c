/* core/env_real_stream.c - connected sockets. Reads and writes try the kernel first and wait only when it says so. */
#include "core/env_real_internal.h"
#include "core/mem.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MAX_IOV 1024 /* IOV_MAX of Linux */

static inline struct real_stream *real_stream(struct stream *s)
{
    return container_of(s, struct real_stream, stream);
}

/* ---- names ---- */

union socket_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un local;
};

/* Numeric address and port; an IPv4 address in IPv6 clothes is shown as IPv4. */
static void describe_inet(const union socket_address *a, char host[static 64], uint16_t *ret_port)
{
    if (a->any.sa_family == AF_INET) {
        inet_ntop(AF_INET, &a->v4.sin_addr, host, 64);
        *ret_port = ntohs(a->v4.sin_port);
        return;
    }
    if (IN6_IS_ADDR_V4MAPPED(&a->v6.sin6_addr))
        inet_ntop(AF_INET, a->v6.sin6_addr.s6_addr + 12, host, 64);
    else
        inet_ntop(AF_INET6, &a->v6.sin6_addr, host, 64);
    *ret_port = ntohs(a->v6.sin6_port);
}

static void describe(const union socket_address *a, socklen_t len, char *name, size_t name_bytes, char host[static 64],
                     uint16_t *ret_port)
{
    name[0] = '\0';
    if (len <= sizeof(a->any.sa_family))
        return;
    if (a->any.sa_family == AF_UNIX) {
        size_t path_bytes = len - offsetof(struct sockaddr_un, sun_path);
        snprintf(name, name_bytes, "%.*s", (int)path_bytes, a->local.sun_path);
    } else if (a->any.sa_family == AF_INET || a->any.sa_family == AF_INET6) {
        describe_inet(a, host, ret_port);
        snprintf(name, name_bytes, "%s:%u", host, *ret_port);
    }
}

void real_stream_name(struct stream *stream)
{
    struct real_stream *s = real_stream(stream);
    union socket_address a = { .any = { .sa_family = AF_UNSPEC } };
    socklen_t len = sizeof(a);
    char host[64];
    uint16_t port;

    if (getsockname(s->fd, &a.any, &len) == 0)
        describe(&a, len, s->stream.local_name, sizeof(s->stream.local_name), host, &port);
    len = sizeof(a);
    if (getpeername(s->fd, &a.any, &len) == 0)
        describe(&a, len, s->stream.peer_name, sizeof(s->stream.peer_name), s->stream.peer_host, &s->stream.peer_port);
}

/* ---- life cycle ---- */

int real_stream_new(struct env_real *r, int fd, bool is_unix, struct stream **ret_stream)
{
    struct real_stream *s = NEW(struct real_stream);
    int on = 1;

    if (!s) {
        close(fd);
        return -ENOMEM;
    }
    s->stream.env = &r->env;
    s->stream.is_unix = is_unix;
    s->fd = fd;
    if (!is_unix)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    int err = fd_poll_open(r, &s->poll, fd);
    if (err < 0) {
        close(fd);
        mem_free(s);
        return err;
    }
    real_stream_name(&s->stream);
    *ret_stream = &s->stream;
    return 0;
}

static void free_stream(struct fd_poll *p)
{
    mem_free(container_of(p, struct real_stream, poll));
}

void real_close(struct stream *stream)
{
    struct real_stream *s = real_stream(stream);

    fd_poll_close(&s->poll, free_stream);
    close(s->fd);
}

void real_shutdown(struct stream *stream)
{
    struct real_stream *s = real_stream(stream);

    if (s->is_shut)
        return;
    s->is_shut = true;
    if (!s->broken)
        s->broken = -ENOTCONN;
    shutdown(s->fd, SHUT_RDWR); /* fails when the other side was first: the same result */
    waitq_wake_all(&s->poll.readers, -ENOTCONN);
    waitq_wake_all(&s->poll.writers, -ENOTCONN);
}

int real_fd(const struct stream *s)
{
    return container_of(s, struct real_stream, stream)->fd;
}

size_t real_unacked(const struct stream *s)
{
    int bytes = 0;

    if (ioctl(real_fd(s), SIOCOUTQ, &bytes) < 0)
        return 0;
    return (size_t)MAX(bytes, 0);
}

void real_socket_options(int fd, const struct stream_options *o)
{
    int on = 1;
    int time_s = (int)o->keepalive_time_s;
    int interval_s = (int)o->keepalive_interval_s;
    int count = (int)o->keepalive_count;
    unsigned user_timeout_ms = o->user_timeout_s * 1000U;

    /* These are refinements: a kernel that refuses one still gives a working connection. */
    if (time_s || interval_s || count)
        setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    if (time_s)
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &time_s, sizeof(time_s));
    if (interval_s)
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
    if (count)
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
    if (user_timeout_ms)
        setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &user_timeout_ms, sizeof(user_timeout_ms));
}

void real_set_options(struct stream *s, const struct stream_options *o)
{
    if (!s->is_unix)
        real_socket_options(real_fd(s), o);
}

uint64_t real_silent_ms(const struct stream *s)
{
    struct tcp_info info = { .tcpi_unacked = 0 };
    socklen_t len = sizeof(info);

    if (s->is_unix || getsockopt(real_fd(s), IPPROTO_TCP, TCP_INFO, &info, &len) < 0)
        return 0;
    if (info.tcpi_unacked == 0 && info.tcpi_probes == 0)
        return 0;
    return MIN(info.tcpi_last_ack_recv, info.tcpi_last_data_recv);
}

/* ---- reading ---- */

static size_t total_bytes(const struct iovec *iov, int iov_count)
{
    size_t total = 0;

    for (int i = 0; i < iov_count; i++)
        total += iov[i].iov_len;
    return total;
}

static ssize_t receive(int fd, const struct iovec *iov, int iov_count)
{
    ssize_t n;

    do {
        if (iov_count == 1) {
            n = recv(fd, iov[0].iov_base, iov[0].iov_len, 0);
        } else {
            struct msghdr m = { .msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)MIN(iov_count, MAX_IOV) };
            n = recvmsg(fd, &m, 0);
        }
    } while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

FIBER ssize_t real_readv(struct stream *stream, const struct iovec *iov, int iov_count, struct scope *scope)
{
    struct real_stream *s = real_stream(stream);
    size_t room_bytes = total_bytes(iov, iov_count);
    /* After a short read nothing is left most times. If something is, the loop says so without sleeping. */
    bool wait_first = s->was_short && s->poll.interest & UV_READABLE;

    for (;;) {
        if (s->is_shut)
            return -ENOTCONN;
        if (!wait_first) {
            ssize_t n = receive(s->fd, iov, iov_count);
            if (n != -EAGAIN) {
                s->was_short = n > 0 && (size_t)n < room_bytes;
                return n;
            }
        }
        wait_first = false;
        int r = fd_poll_wait(&s->poll, UV_READABLE, scope);
        if (r < 0)
            return r;
    }
}

/* ---- writing ---- */

static ssize_t transmit(int fd, const struct iovec *iov, int iov_count)
{
    struct msghdr m = { .msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)MIN(iov_count, MAX_IOV) };
    ssize_t n;

    do
        n = iov_count == 1 ? send(fd, iov[0].iov_base, iov[0].iov_len, MSG_NOSIGNAL) : sendmsg(fd, &m, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

/* Takes n bytes off the front. */
static void advance(struct iovec **iov, int *iov_count, size_t n)
{
    while (*iov_count > 0 && n >= (*iov)->iov_len) {
        n -= (*iov)->iov_len;
        ++*iov;
        --*iov_count;
    }
    if (n > 0) {
        (*iov)->iov_base = (char *)(*iov)->iov_base + n;
        (*iov)->iov_len -= n;
    }
}

static int write_all(struct real_stream *s, struct iovec *iov, int iov_count, struct scope *scope)
{
    advance(&iov, &iov_count, 0); /* empty ones in front */
    while (iov_count > 0) {
        if (s->broken)
            return s->broken;
        ssize_t n = transmit(s->fd, iov, iov_count);
        if (n >= 0) {
            advance(&iov, &iov_count, (size_t)n);
            continue;
        }
        if (n != -EAGAIN)
            return (int)n;
        int r = fd_poll_wait(&s->poll, UV_WRITABLE, scope);
        if (r < 0)
            return r;
    }
    return 0;
}

FIBER int real_writev(struct stream *stream, struct iovec *iov, int iov_count, struct scope *scope)
{
    struct real_stream *s = real_stream(stream);

    assert(!s->has_writer);
    if (s->broken)
        return s->broken;
    s->has_writer = true;
    int r = write_all(s, iov, iov_count, scope);
    s->has_writer = false;
    if (r < 0 && !s->broken)
        s->broken = r;
    return r;
}

ssize_t real_try_writev(struct stream *stream, const struct iovec *iov, int iov_count)
{
    struct real_stream *s = real_stream(stream);

    if (s->broken)
        return s->broken;
    if (s->has_writer)
        return 0;
    ssize_t n = transmit(s->fd, iov, iov_count);
    if (n == -EAGAIN)
        return 0;
    if (n < 0)
        s->broken = (int)n;
    return n;
}
