/* mount/fuse at its edge to the kernel: a socket stands for the device, messages go in and answers come out, the
 * scripted leaf is the volume. Nothing is mounted. */
#include "mount/fuse/fuse_internal.h"
#include "unit/graph/test_graph.h"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_MS 5000

struct kernel {
    struct test *t;
    struct translator *top;
    struct mount *m;
    int fd; /* our end */
    uint64_t last_unique;
    uint8_t *in; /* the last answer */
    size_t in_bytes;
    unsigned notices; /* messages that answered nothing, before it */
    struct fuse_notify_inval_inode_out notice;
};

static void kernel_open(struct kernel *k, struct test *t)
{
    struct fuse *f;
    int fds[2];

    *k = (struct kernel) { .t = t };
    test_push(t, &leaf_class, NULL);
    k->top = test_push(t, &fuse_class, "mountpoint", "/nowhere", NULL);
    fuse_will_take_over(k->top);
    test_start(t);
    assert_int_equal(0, mount_new(k->top, &k->m));
    assert_int_equal(0, socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds));
    k->m->dev_fd = fds[0];
    k->fd = fds[1];
    k->m->mount_point = mem_strdup("/nowhere");
    f = k->top->state;
    f->mount = k->m;
    k->in = malloc(2 * FUSE_MAX_WRITE);
    assert_int_equal(0, mount_read_start(k->m));
}

static FIBER void kernel_close(struct kernel *k)
{
    struct fuse *f = k->top->state;

    mount_read_stop(k->m);
    assert_int_equal(0, k->m->running);
    f->mount = NULL;
    mount_free(k->m);
    env_forget_fd(k->t->env, k->fd);
    close(k->fd);
    free(k->in);
}

struct message {
    uint32_t opcode;
    uint64_t nodeid;
    const void *args;
    size_t args_bytes;
    const void *rest; /* names or data */
    size_t rest_bytes;
    uint32_t uid, pid;
};

static uint64_t kernel_send(struct kernel *k, const struct message *w)
{
    struct fuse_in_header head = {
        .len = (uint32_t)(sizeof(head) + w->args_bytes + w->rest_bytes),
        .opcode = w->opcode,
        .unique = k->last_unique += 2,
        .nodeid = w->nodeid ? w->nodeid : FUSE_ROOT_ID,
        .uid = w->uid,
        .gid = w->uid,
        .pid = w->pid ? w->pid : (uint32_t)getpid(),
    };
    struct iovec iov[3] = { { &head, sizeof(head) },
                            { (void *)w->args, w->args_bytes },
                            { (void *)w->rest, w->rest_bytes } };

    assert_int_equal(head.len, writev(k->fd, iov, 3));
    return head.unique;
}

/* The next message of the file system, into k->in. Its error field. */
static FIBER int kernel_receive(struct kernel *k, uint64_t unique)
{
    const struct fuse_out_header *head = (const void *)k->in;
    struct scope scope;

    k->notices = 0;
    scope_init(&scope, env_deadline_ms(k->t->env, ANSWER_MS));
    for (;;) {
        ssize_t n = read(k->fd, k->in, 2 * FUSE_MAX_WRITE);

        if (n < 0) {
            assert_int_equal(EAGAIN, errno);
            assert_int_equal(0, env_wait_readable(k->t->env, k->fd, &scope));
            continue;
        }
        assert_int_equal(head->len, n);
        k->in_bytes = (size_t)n - sizeof(*head);
        if (head->unique == 0) {
            k->notices++;
            if (head->error == FUSE_NOTIFY_INVAL_INODE)
                memcpy(&k->notice, head + 1, sizeof(k->notice));
            continue;
        }
        assert_int_equal(unique, head->unique);
        scope_done(&scope);
        return head->error;
    }
}

static const void *answer_of(const struct kernel *k)
{
    return k->in + sizeof(struct fuse_out_header);
}

static FIBER int ask_kernel(struct kernel *k, const struct message *w)
{
    return kernel_receive(k, kernel_send(k, w));
}

#define ASK(k, ...) ask_kernel((k), &(struct message) { __VA_ARGS__ })
#define ARGS(a)     .args = &(a), .args_bytes = sizeof(a)
#define NAME(text)  .rest = (text), .rest_bytes = strlen(text) + 1

static FIBER void handshake(struct kernel *k)
{
    struct fuse_init_in init = { .major = 7, .minor = 45, .max_readahead = 131072, .flags = ~0u, .flags2 = ~0u };

    assert_int_equal(0, ASK(k, .opcode = FUSE_INIT, ARGS(init)));
}

/* A look-up of a file that is there: its nodeid. */
static FIBER uint64_t look_up(struct kernel *k, const char *name)
{
    assert_int_equal(0, ASK(k, .opcode = FUSE_LOOKUP, NAME(name)));
    return ((const struct fuse_entry_out *)answer_of(k))->nodeid;
}

static FIBER uint64_t open_file(struct kernel *k, uint64_t nodeid, uint32_t flags, uint32_t *ret_open_flags)
{
    struct fuse_open_in args = { .flags = flags };
    const struct fuse_open_out *out = answer_of(k);

    assert_int_equal(0, ASK(k, .opcode = FUSE_OPEN, .nodeid = nodeid, ARGS(args)));
    if (ret_open_flags)
        *ret_open_flags = out->open_flags;
    return out->fh;
}

static FIBER void release(struct kernel *k, uint64_t nodeid, uint64_t fh)
{
    struct fuse_release_in args = { .fh = fh };

    assert_int_equal(0, ASK(k, .opcode = FUSE_RELEASE, .nodeid = nodeid, ARGS(args)));
}

#define KERNEL_TEST(name)                                            \
    static FIBER void name##_with(struct test *t, struct kernel *k); \
    FIBER_TEST(name)                                                 \
    {                                                                \
        struct kernel k;                                             \
        kernel_open(&k, t);                                          \
        handshake(&k);                                               \
        t->leaf->stat.gfid = test_gfid(9);                           \
        leaf_clear(t->leaf);                                         \
        name##_with(t, &k);                                          \
        kernel_close(&k);                                            \
    }                                                                \
    static FIBER void name##_with(struct test *t, struct kernel *k)

KERNEL_TEST(init_takes_what_both_know)
{
    struct fuse_init_in init = {
        .major = 7, .minor = 31, .max_readahead = 65536, .flags = FUSE_ASYNC_READ | FUSE_MAX_PAGES
    };
    const struct fuse_init_out *out = answer_of(k);

    assert_int_equal(0, ASK(k, .opcode = FUSE_INIT, ARGS(init)));
    assert_int_equal(7, out->major);
    assert_int_equal(31, out->minor);
    assert_int_equal(FUSE_ASYNC_READ | FUSE_MAX_PAGES, out->flags);
    assert_int_equal(FUSE_MAX_WRITE, out->max_write);
    assert_int_equal(256, out->max_pages);
}

KERNEL_TEST(init_of_an_old_kernel_is_refused)
{
    struct fuse_init_in init = { .major = 7, .minor = 12 };

    assert_int_equal(-EPROTO, ASK(k, .opcode = FUSE_INIT, ARGS(init)));
    assert_logged(t, "kernel-too-old");
}

KERNEL_TEST(found_name_becomes_a_node_that_is_forgotten_again)
{
    const struct fuse_entry_out *out = answer_of(k);
    struct fuse_forget_in forget = { .nlookup = 2 };
    struct gfid gfid = test_gfid(9);
    uint64_t id = look_up(k, "a");

    assert_int_equal(gfid_to_ino(&gfid), out->attr.ino);
    assert_int_equal(1, out->entry_valid);
    assert_true(out->generation > 0);
    assert_int_equal(id, look_up(k, "a"));
    assert_non_null(node_by_gfid(k->m, &gfid));
    assert_string_equal("a", leaf_last(t->leaf)->name);
    (void)kernel_send(k, &(struct message) { .opcode = FUSE_FORGET, .nodeid = id, ARGS(forget) });
    assert_int_equal(0, ASK(k, .opcode = FUSE_ACCESS, .args = &(struct fuse_access_in) { 4, 0 }, .args_bytes = 8));
    assert_null(node_by_gfid(k->m, &gfid));
}

KERNEL_TEST(missing_name_is_enoent)
{
    leaf_fail(t->leaf, OP_LOOKUP, ENOENT, 0);
    assert_int_equal(-ENOENT, ASK(k, .opcode = FUSE_LOOKUP, NAME("a")));
}

KERNEL_TEST(stale_lookup_is_asked_again_once)
{
    leaf_fail(t->leaf, OP_LOOKUP, ESTALE, 1);
    assert_int_not_equal(0, look_up(k, "a"));
    assert_int_equal(2, leaf_count(t->leaf, OP_LOOKUP));
}

KERNEL_TEST(names_have_255_bytes)
{
    char name[258] = "";

    memset(name, 'x', 255);
    assert_int_not_equal(0, look_up(k, name));
    name[255] = 'x';
    assert_int_equal(-ENAMETOOLONG, ASK(k, .opcode = FUSE_LOOKUP, NAME(name)));
    assert_int_equal(-ENAMETOOLONG, ASK(k, .opcode = FUSE_UNLINK, NAME(name)));
}

KERNEL_TEST(unknown_operations_are_enosys_and_ioctl_enotty)
{
    assert_int_equal(-ENOSYS, ASK(k, .opcode = FUSE_POLL));
    assert_int_equal(-ENOSYS, ASK(k, .opcode = 999));
    assert_int_equal(-ENOTTY, ASK(k, .opcode = FUSE_IOCTL));
}

KERNEL_TEST(cut_messages_are_refused)
{
    assert_int_equal(-EIO, ASK(k, .opcode = FUSE_SETATTR, .args = "1234", .args_bytes = 4));
    assert_int_equal(-EIO, ASK(k, .opcode = FUSE_LOOKUP, .rest = "abc", .rest_bytes = 3));
    assert_int_equal(-EIO, ASK(k, .opcode = FUSE_RENAME2, .args = "1234567812345678", .args_bytes = 16, NAME("one")));
    assert_int_equal(0, leaf_count(t->leaf, OP_SETATTR));
}

KERNEL_TEST(errors_the_kernel_cannot_take_are_changed)
{
    leaf_fail(t->leaf, OP_STATFS, ESHUTDOWN, 0);
    assert_int_equal(-ENOTCONN, ASK(k, .opcode = FUSE_STATFS));
    leaf_fail(t->leaf, OP_STATFS, 524, 0);
    assert_int_equal(-EIO, ASK(k, .opcode = FUSE_STATFS));
    leaf_fail(t->leaf, OP_STATFS, ENOTCONN, 0);
    assert_int_equal(-ENOTCONN, ASK(k, .opcode = FUSE_STATFS));
}

KERNEL_TEST(attributes_come_from_an_open_descriptor_first)
{
    struct fuse_getattr_in args = { 0 };
    uint64_t id = look_up(k, "a"), fh;

    assert_int_equal(0, ASK(k, .opcode = FUSE_GETATTR, .nodeid = id, ARGS(args)));
    assert_false(leaf_last(t->leaf)->has_fd);
    fh = open_file(k, id, O_RDONLY, NULL);
    assert_int_equal(0, ASK(k, .opcode = FUSE_GETATTR, .nodeid = id, ARGS(args)));
    assert_true(leaf_last(t->leaf)->has_fd);
    release(k, id, fh);
}

KERNEL_TEST(attributes_of_a_gone_gfid_are_estale)
{
    struct fuse_getattr_in args = { 0 };
    uint64_t id = look_up(k, "a");

    leaf_fail(t->leaf, OP_STAT, ENOENT, 0);
    assert_int_equal(-ESTALE, ASK(k, .opcode = FUSE_GETATTR, .nodeid = id, ARGS(args)));
}

static int stat_of_what_is_open(struct leaf *leaf, struct call *call UNUSED, const struct request *q, struct reply *r)
{
    if (!q->fd)
        return -ESTALE;
    r->stat = leaf->stat;
    return 0;
}

/* The thread was told ESTALE and walks the path again: what it finds now goes, too, before it is opened. */
static FIBER void walk_again(struct test *t, struct kernel *k, uint64_t id)
{
    struct fuse_getattr_in args = { 0 };

    leaf_fail(t->leaf, OP_LOOKUP, ESTALE, 4);
    assert_int_equal(id, look_up(k, "a"));
    leaf_fail(t->leaf, OP_OPEN, ESTALE, 0);
    t->leaf->answers[OP_STAT] = stat_of_what_is_open;
    assert_int_equal(0, ASK(k, .opcode = FUSE_GETATTR, .nodeid = id, ARGS(args)));
    release(k, id, open_file(k, id, O_RDONLY, NULL));
}

KERNEL_TEST(second_walk_after_a_stale_open_succeeds_whatever_is_replaced)
{
    struct fuse_open_in args = { .flags = O_RDONLY };
    uint64_t id = look_up(k, "a");

    leaf_fail(t->leaf, OP_OPEN, ESTALE, 1);
    assert_int_equal(-ESTALE, ASK(k, .opcode = FUSE_OPEN, .nodeid = id, ARGS(args)));
    walk_again(t, k, id);
}

KERNEL_TEST(second_walk_after_stale_attributes_succeeds_whatever_is_replaced)
{
    struct fuse_getattr_in args = { 0 };
    uint64_t id = look_up(k, "a");

    leaf_fail(t->leaf, OP_STAT, ESTALE, 1);
    assert_int_equal(-ESTALE, ASK(k, .opcode = FUSE_GETATTR, .nodeid = id, ARGS(args)));
    walk_again(t, k, id);
}

KERNEL_TEST(second_walk_after_a_stale_lookup_succeeds_whatever_is_replaced)
{
    uint64_t id = look_up(k, "a");

    leaf_fail(t->leaf, OP_LOOKUP, ESTALE, 2);
    assert_int_equal(-ESTALE, ASK(k, .opcode = FUSE_LOOKUP, NAME("a")));
    walk_again(t, k, id);
}

static FIBER void write_and_check(struct test *t, struct kernel *k, size_t bytes)
{
    uint64_t id = look_up(k, "a"), fh = open_file(k, id, O_WRONLY, NULL);
    struct fuse_write_in args = { .fh = fh, .offset = 4096, .size = (uint32_t)bytes };
    uint8_t *data = malloc(bytes);

    for (size_t i = 0; i < bytes; i++)
        data[i] = (uint8_t)(i * 7);
    assert_int_equal(0, ASK(k, .opcode = FUSE_WRITE, .nodeid = id, ARGS(args), .rest = data, .rest_bytes = bytes));
    assert_int_equal(bytes, ((const struct fuse_write_out *)answer_of(k))->size);
    assert_int_equal(bytes, leaf_last(t->leaf)->data_size);
    assert_memory_equal(data, leaf_last(t->leaf)->data, MIN(bytes, sizeof(leaf_last(t->leaf)->data)));
    assert_int_equal(4096, leaf_last(t->leaf)->offset);
    free(data);
    release(k, id, fh);
}

KERNEL_TEST(small_write_arrives)
{
    write_and_check(t, k, 100);
}

KERNEL_TEST(large_write_arrives)
{
    write_and_check(t, k, 128 * 1024);
    write_and_check(t, k, 128 * 1024);
}

KERNEL_TEST(write_whose_size_does_not_fit_its_data_is_refused)
{
    uint64_t id = look_up(k, "a"), fh = open_file(k, id, O_WRONLY, NULL);
    struct fuse_write_in args = { .fh = fh, .size = 10 };

    assert_int_equal(-EIO, ASK(k, .opcode = FUSE_WRITE, .nodeid = id, ARGS(args), .rest = "abc", .rest_bytes = 3));
    release(k, id, fh);
}

static int give_bytes(struct leaf *leaf, struct call *call, const struct request *q, struct reply *r)
{
    const char *text = leaf->arg;
    size_t len = strlen(text), n = q->offset < len ? MIN(len - q->offset, q->size) : 0;

    r->data = buf_copy(text + MIN(q->offset, len), n);
    return (int)n;
}

KERNEL_TEST(read_gives_what_is_there)
{
    uint64_t id, fh;
    struct fuse_read_in args = { .size = 4096 };

    t->leaf->stat.size = 5;
    t->leaf->arg = (void *)"hello";
    t->leaf->answers[OP_READ] = give_bytes;
    id = look_up(k, "a");
    args.fh = fh = open_file(k, id, O_RDONLY, NULL);
    assert_int_equal(0, ASK(k, .opcode = FUSE_READ, .nodeid = id, ARGS(args)));
    assert_int_equal(5, k->in_bytes);
    assert_memory_equal("hello", answer_of(k), 5);
    release(k, id, fh);
}

/* The file shrank under a program that has mapped it. */
KERNEL_TEST(read_within_the_size_the_kernel_knows_is_never_short)
{
    uint64_t id, fh;
    struct fuse_read_in args = { .size = 4096 };

    t->leaf->stat.size = 10;
    t->leaf->arg = (void *)"hello";
    t->leaf->answers[OP_READ] = give_bytes;
    id = look_up(k, "a");
    args.fh = fh = open_file(k, id, O_RDONLY, NULL);
    assert_int_equal(0, ASK(k, .opcode = FUSE_READ, .nodeid = id, ARGS(args)));
    assert_int_equal(10, k->in_bytes);
    assert_memory_equal("hello\0\0\0\0\0", answer_of(k), 10);
    args.flags = O_DIRECT; /* nobody maps what direct I/O reads */
    assert_int_equal(0, ASK(k, .opcode = FUSE_READ, .nodeid = id, ARGS(args)));
    assert_int_equal(5, k->in_bytes);
    release(k, id, fh);
    while (inval_is_busy(k->m))
        (void)waitq_wait(&k->m->idle, NULL);
}

KERNEL_TEST(open_of_a_changed_file_drops_attributes_first)
{
    uint32_t flags;
    uint64_t id = look_up(k, "a"), fh = open_file(k, id, O_RDONLY, &flags);

    assert_int_equal(0, k->notices);
    release(k, id, fh);
    t->leaf->stat.size = 4711;
    fh = open_file(k, id, O_RDONLY, &flags);
    assert_int_equal(1, k->notices);
    assert_int_equal(id, k->notice.ino);
    assert_int_equal(0, flags & FOPEN_KEEP_CACHE);
    release(k, id, fh);
}

KERNEL_TEST(pages_are_kept_only_when_nothing_changed_for_a_while)
{
    struct gfid gfid = test_gfid(9);
    uint64_t id = look_up(k, "a"), fh;
    struct node *node = node_by_gfid(k->m, &gfid);
    uint32_t flags;

    fh = open_file(k, id, O_RDONLY, &flags);
    release(k, id, fh);
    assert_int_equal(0, flags & FOPEN_KEEP_CACHE);
    fh = open_file(k, id, O_RDONLY, &flags); /* two changes within one tick of the brick would look the same */
    release(k, id, fh);
    assert_int_equal(0, flags & FOPEN_KEEP_CACHE);
    node->cache_ns = node->told_ns + FUSE_STEADY_NS;
    fh = open_file(k, id, O_RDONLY, &flags);
    release(k, id, fh);
    assert_int_equal(FOPEN_KEEP_CACHE, flags & FOPEN_KEEP_CACHE);
    t->leaf->stat.mtime += 30 * 86400; /* far ahead, and back again */
    fh = open_file(k, id, O_RDONLY, &flags);
    release(k, id, fh);
    assert_int_equal(0, flags & FOPEN_KEEP_CACHE);
}

KERNEL_TEST(granted_lock_drops_data_before_the_answer)
{
    uint64_t id = look_up(k, "a"), fh = open_file(k, id, O_RDWR, NULL);
    struct fuse_lk_in args = { .fh = fh, .owner = 77, .lk = { .start = 10, .end = 19, .type = F_WRLCK, .pid = 5 } };

    assert_int_equal(0, ASK(k, .opcode = FUSE_SETLK, .nodeid = id, ARGS(args)));
    assert_true(k->notices >= 1);
    assert_int_equal(LOCK_TRY, leaf_last(t->leaf)->command);
    assert_int_equal(LOCK_WRITE, leaf_last(t->leaf)->lock.type);
    assert_int_equal(10, leaf_last(t->leaf)->lock.start);
    assert_int_equal(10, leaf_last(t->leaf)->lock.length);
    args.lk.type = F_UNLCK;
    args.lk.end = INT64_MAX;
    assert_int_equal(0, ASK(k, .opcode = FUSE_SETLK, .nodeid = id, ARGS(args)));
    assert_int_equal(LOCK_UNLOCK, leaf_last(t->leaf)->command);
    assert_int_equal(0, leaf_last(t->leaf)->lock.length); /* to the end of everything */
    release(k, id, fh);
    while (inval_is_busy(k->m))
        (void)waitq_wait(&k->m->idle, NULL);
}

static int wait_for_ever(struct leaf *leaf, struct call *call, const struct request *q, struct reply *r)
{
    struct waitq *q_ = leaf->arg;

    return waitq_wait(q_, &call->scope);
}

static FIBER void interrupted_wait(struct test *t, struct kernel *k, bool at_once)
{
    uint64_t id = look_up(k, "a"), fh = open_file(k, id, O_RDWR, NULL), unique;
    struct fuse_lk_in args = { .fh = fh, .owner = 77, .lk = { .end = INT64_MAX, .type = F_WRLCK, .pid = 5 } };
    struct fuse_interrupt_in interrupt;
    struct waitq never;

    waitq_init(&never);
    t->leaf->arg = &never;
    t->leaf->answers[OP_LK] = wait_for_ever;
    unique = kernel_send(k, &(struct message) { .opcode = FUSE_SETLKW, .nodeid = id, ARGS(args) });
    while (!at_once && waitq_is_empty(&never))
        fiber_yield();
    interrupt.unique = unique;
    (void)kernel_send(k, &(struct message) { .opcode = FUSE_INTERRUPT, .nodeid = id, ARGS(interrupt) });
    assert_int_equal(-EINTR, kernel_receive(k, unique));
    t->leaf->answers[OP_LK] = NULL;
    release(k, id, fh);
    while (inval_is_busy(k->m))
        (void)waitq_wait(&k->m->idle, NULL);
}

KERNEL_TEST(interrupt_ends_a_lock_wait)
{
    interrupted_wait(t, k, false);
}

KERNEL_TEST(interrupt_right_behind_its_request_counts)
{
    interrupted_wait(t, k, true);
}

KERNEL_TEST(create_makes_a_random_gfid_exclusively)
{
    struct fuse_create_in args = { .flags = O_RDWR | O_CREAT | O_TRUNC, .mode = S_IFREG | 0640, .umask = 022 };
    const struct fuse_entry_out *out = answer_of(k);
    const struct fuse_open_out *open = (const void *)(out + 1);
    uint64_t id, fh;

    assert_int_equal(0, ASK(k, .opcode = FUSE_CREATE, ARGS(args), NAME("new")));
    id = out->nodeid;
    fh = open->fh;
    assert_false(gfid_is_null(&leaf_last(t->leaf)->gfid));
    assert_true(leaf_last(t->leaf)->flags & O_EXCL);
    assert_int_equal(S_IFREG | 0640, leaf_last(t->leaf)->mode);
    assert_int_equal(022, leaf_last(t->leaf)->umask);
    release(k, id, fh);
}

KERNEL_TEST(create_of_what_others_made_first_opens_it)
{
    struct fuse_create_in args = { .flags = O_RDWR | O_CREAT, .mode = S_IFREG | 0640 };
    const struct fuse_entry_out *out = answer_of(k);
    const struct fuse_open_out *open = (const void *)(out + 1);
    struct gfid gfid = test_gfid(9);
    uint64_t id, fh;

    leaf_fail(t->leaf, OP_CREATE, EEXIST, 0);
    assert_int_equal(0, ASK(k, .opcode = FUSE_CREATE, ARGS(args), NAME("new")));
    id = out->nodeid;
    fh = open->fh;
    assert_int_equal(gfid_to_ino(&gfid), out->attr.ino);
    release(k, id, fh);
    args.flags |= O_EXCL;
    assert_int_equal(-EEXIST, ASK(k, .opcode = FUSE_CREATE, ARGS(args), NAME("new")));
}

KERNEL_TEST(create_begins_again_when_what_others_made_is_gone_before_it_is_opened)
{
    struct fuse_create_in args = { .flags = O_RDWR | O_CREAT, .mode = S_IFREG | 0640 };
    const struct fuse_entry_out *out = answer_of(k);
    const struct fuse_open_out *open = (const void *)(out + 1);

    leaf_fail(t->leaf, OP_CREATE, EEXIST, 0);
    leaf_fail(t->leaf, OP_OPEN, ESTALE, 3);
    assert_int_equal(0, ASK(k, .opcode = FUSE_CREATE, ARGS(args), NAME("new")));
    release(k, out->nodeid, open->fh);
    assert_int_equal(4, leaf_count(t->leaf, OP_OPEN));
    assert_int_equal(4, leaf_count(t->leaf, OP_CREATE));
    leaf_fail(t->leaf, OP_OPEN, ESTALE, 0);
    assert_int_equal(-ESTALE, ASK(k, .opcode = FUSE_CREATE, ARGS(args), NAME("new")));
}

KERNEL_TEST(rename_carries_both_names_and_the_flags)
{
    struct fuse_rename2_in args = { .newdir = FUSE_ROOT_ID, .flags = 1 };

    assert_int_equal(0, ASK(k, .opcode = FUSE_RENAME2, ARGS(args), .rest = "from\0to", .rest_bytes = 8));
    assert_string_equal("from", leaf_last(t->leaf)->name);
    assert_string_equal("to", leaf_last(t->leaf)->name2);
    assert_int_equal(1, leaf_last(t->leaf)->flags);
}

KERNEL_TEST(setattr_sorts_size_from_the_rest)
{
    struct fuse_setattr_in args = {
        .valid = FATTR_SIZE | FATTR_MODE | FATTR_MTIME, .size = 123, .mode = 0600, .mtime = 1000, .mtimensec = 5
    };
    uint64_t id = look_up(k, "a");

    assert_int_equal(0, ASK(k, .opcode = FUSE_SETATTR, .nodeid = id, ARGS(args)));
    assert_int_equal(1, leaf_count(t->leaf, OP_TRUNCATE));
    assert_int_equal(ATTR_MODE, leaf_last(t->leaf)->valid);
    args.valid = FATTR_MTIME;
    assert_int_equal(0, ASK(k, .opcode = FUSE_SETATTR, .nodeid = id, ARGS(args)));
    assert_int_equal(ATTR_MTIME, leaf_last(t->leaf)->valid);
    assert_int_equal(1000, leaf_last(t->leaf)->attr.mtime);
    assert_int_equal(5, leaf_last(t->leaf)->attr.mtime_nsec);
}

KERNEL_TEST(unprivileged_write_clears_suid)
{
    uint64_t id = look_up(k, "a"), fh = open_file(k, id, O_WRONLY, NULL);
    struct fuse_write_in args = { .fh = fh, .size = 3, .write_flags = FUSE_WRITE_KILL_SUIDGID };

    t->leaf->stat.mode = S_IFREG | 06775;
    assert_int_equal(0, ASK(k, .opcode = FUSE_WRITE, .nodeid = id, ARGS(args), .rest = "abc", .rest_bytes = 3));
    assert_int_equal(OP_SETATTR, leaf_last(t->leaf)->op);
    assert_int_equal(0775, leaf_last(t->leaf)->attr.mode);
    assert_int_equal(0, leaf_last(t->leaf)->uid);
    release(k, id, fh);
}

KERNEL_TEST(internal_xattr_names_are_refused)
{
    struct fuse_setxattr_in set = { .size = 1 };
    uint64_t id = look_up(k, "a");

    assert_int_equal(
        -EPERM, ASK(k, .opcode = FUSE_SETXATTR, .nodeid = id, ARGS(set), .rest = "trusted.gfid\0x", .rest_bytes = 14));
    assert_int_equal(-EPERM, ASK(k, .opcode = FUSE_REMOVEXATTR, .nodeid = id, NAME("trusted.afr.dirty")));
    assert_int_equal(-EOPNOTSUPP, ASK(k, .opcode = FUSE_SETXATTR, .nodeid = id, ARGS(set),
                                      .rest = "system.posix_acl_access\0x", .rest_bytes = 25));
    assert_int_equal(0, leaf_count(t->leaf, OP_SETXATTR));
    assert_int_equal(0, ASK(k, .opcode = FUSE_SETXATTR, .nodeid = id, ARGS(set), .rest = "user.a\0x", .rest_bytes = 8));
    assert_int_equal(1, leaf_count(t->leaf, OP_SETXATTR));
}

KERNEL_TEST(upcall_drops_what_the_kernel_has)
{
    struct event event = { .kind = EVENT_INVALIDATE, .gfid = test_gfid(9) };
    uint64_t id = look_up(k, "a");
    struct fuse_getattr_in args = { 0 };

    notify_parents(t->leaf->me, &event);
    while (inval_is_busy(k->m))
        (void)waitq_wait(&k->m->idle, NULL);
    assert_int_equal(0, ASK(k, .opcode = FUSE_GETATTR, .nodeid = id, ARGS(args)));
    assert_int_equal(1, k->notices);
    assert_int_equal(id, k->notice.ino);
    assert_int_equal(0, k->notice.off);
}

KERNEL_TEST(groups_of_an_ordinary_caller_come_from_its_process)
{
    struct groups *g = NULL;

    assert_int_equal(0, groups_get(k->m, (uint32_t)getpid(), 1000, false, &g));
    assert_int_equal(getgroups(0, NULL), g->count);
    groups_unref(g);
    assert_int_equal(-ENOENT, groups_get(k->m, 0x7fffffff, 1000, false, &g));
}

KERNEL_TEST(refusal_is_not_repeated_when_the_groups_are_the_same)
{
    leaf_fail(t->leaf, OP_LOOKUP, EACCES, 0);
    assert_int_equal(-EACCES, ASK(k, .opcode = FUSE_LOOKUP, NAME("a"), .uid = 1000));
    assert_int_equal(1, leaf_count(t->leaf, OP_LOOKUP));
    assert_int_equal(1000, leaf_last(t->leaf)->uid);
}

/* ---- .gfid ---- */

#define UUID_9 "00000000-0000-0000-0000-000000000009"

/* The node of .gfid, and of a name in it. */
static FIBER uint64_t look_up_gfid(struct kernel *k, const char *uuid)
{
    struct fuse *f = k->top->state;

    f->gfid_access = true;
    uint64_t dir = look_up(k, GFID_DIR_NAME);
    assert_int_equal(0, ASK(k, .opcode = FUSE_LOOKUP, .nodeid = dir, NAME(uuid)));
    return ((const struct fuse_entry_out *)answer_of(k))->nodeid;
}

KERNEL_TEST(gfid_directory_is_there_only_when_asked_for)
{
    const struct fuse_entry_out *out = answer_of(k);
    struct fuse *f = k->top->state;

    leaf_fail(t->leaf, OP_LOOKUP, ENOENT, 0);
    assert_int_equal(-ENOENT, ASK(k, .opcode = FUSE_LOOKUP, NAME(GFID_DIR_NAME)));
    f->gfid_access = true;
    assert_int_equal(0, ASK(k, .opcode = FUSE_LOOKUP, NAME(GFID_DIR_NAME)));
    assert_int_equal(S_IFDIR | 0700, out->attr.mode);
    uint64_t dir = out->nodeid;
    assert_int_equal(-ENOENT, ASK(k, .opcode = FUSE_LOOKUP, .nodeid = dir, NAME("no-gfid")));
    assert_int_equal(-ENOENT, ASK(k, .opcode = FUSE_LOOKUP, .nodeid = dir, NAME(UUID_9)));
    assert_int_equal(-EPERM, ASK(k, .opcode = FUSE_UNLINK, .nodeid = dir, NAME(UUID_9)));
}

KERNEL_TEST(file_is_the_same_by_its_gfid_and_by_its_path)
{
    uint64_t by_path = look_up(k, "file");

    assert_int_equal(by_path, look_up_gfid(k, UUID_9));
    assert_int_equal(0, ((const struct fuse_entry_out *)answer_of(k))->entry_valid);
}

KERNEL_TEST(directory_is_another_one_by_its_gfid_and_so_is_what_is_below)
{
    const struct fuse_entry_out *out = answer_of(k);
    struct fuse_forget_in forget = { .nlookup = 1 };

    t->leaf->stat.mode = S_IFDIR | 0755;
    uint64_t by_path = look_up(k, "directory");
    uint64_t by_gfid = look_up_gfid(k, UUID_9);
    assert_int_not_equal(by_path, by_gfid);
    assert_int_equal(0, out->attr_valid);
    assert_int_equal(0, ASK(k, .opcode = FUSE_LOOKUP, .nodeid = by_gfid, NAME("sub")));
    assert_int_not_equal(by_path, out->nodeid); /* the leaf says that it has the same gfid */
    struct gfid gfid = test_gfid(9);
    assert_true(gfid_equal(&gfid, &leaf_last(t->leaf)->parent));
    for (int i = 0; i < 2; i++)
        (void)kernel_send(k, &(struct message) { .opcode = FUSE_FORGET, .nodeid = by_gfid, ARGS(forget) });
    assert_int_equal(0, ASK(k, .opcode = FUSE_ACCESS, .args = &(struct fuse_access_in) { 4, 0 }, .args_bytes = 8));
    assert_true(list_empty(&k->m->aliases));
}

KERNEL_TEST(change_by_gfid_is_told_for_the_path)
{
    t->leaf->stat.mode = S_IFDIR | 0755;
    uint64_t by_path = look_up(k, "directory");
    uint64_t by_gfid = look_up_gfid(k, UUID_9);
    unsigned notices = 0;

    assert_int_equal(0, ASK(k, .opcode = FUSE_UNLINK, .nodeid = by_gfid, NAME("name")));
    for (int i = 0; i < 3; i++) { /* notices come from a thread */
        assert_int_equal(0, ASK(k, .opcode = FUSE_ACCESS, .args = &(struct fuse_access_in) { 4, 0 }, .args_bytes = 8));
        notices += k->notices;
        (void)fiber_sleep_ms(NULL, 20);
    }
    assert_int_equal(2, notices); /* the name, and the attributes */
    assert_int_equal(by_path, k->notice.ino);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(init_takes_what_both_know),
        cmocka_unit_test(init_of_an_old_kernel_is_refused),
        cmocka_unit_test(found_name_becomes_a_node_that_is_forgotten_again),
        cmocka_unit_test(missing_name_is_enoent),
        cmocka_unit_test(stale_lookup_is_asked_again_once),
        cmocka_unit_test(names_have_255_bytes),
        cmocka_unit_test(unknown_operations_are_enosys_and_ioctl_enotty),
        cmocka_unit_test(cut_messages_are_refused),
        cmocka_unit_test(errors_the_kernel_cannot_take_are_changed),
        cmocka_unit_test(attributes_come_from_an_open_descriptor_first),
        cmocka_unit_test(attributes_of_a_gone_gfid_are_estale),
        cmocka_unit_test(second_walk_after_a_stale_open_succeeds_whatever_is_replaced),
        cmocka_unit_test(second_walk_after_stale_attributes_succeeds_whatever_is_replaced),
        cmocka_unit_test(second_walk_after_a_stale_lookup_succeeds_whatever_is_replaced),
        cmocka_unit_test(small_write_arrives),
        cmocka_unit_test(large_write_arrives),
        cmocka_unit_test(write_whose_size_does_not_fit_its_data_is_refused),
        cmocka_unit_test(read_gives_what_is_there),
        cmocka_unit_test(read_within_the_size_the_kernel_knows_is_never_short),
        cmocka_unit_test(open_of_a_changed_file_drops_attributes_first),
        cmocka_unit_test(pages_are_kept_only_when_nothing_changed_for_a_while),
        cmocka_unit_test(granted_lock_drops_data_before_the_answer),
        cmocka_unit_test(interrupt_ends_a_lock_wait),
        cmocka_unit_test(interrupt_right_behind_its_request_counts),
        cmocka_unit_test(create_makes_a_random_gfid_exclusively),
        cmocka_unit_test(create_of_what_others_made_first_opens_it),
        cmocka_unit_test(create_begins_again_when_what_others_made_is_gone_before_it_is_opened),
        cmocka_unit_test(rename_carries_both_names_and_the_flags),
        cmocka_unit_test(setattr_sorts_size_from_the_rest),
        cmocka_unit_test(unprivileged_write_clears_suid),
        cmocka_unit_test(internal_xattr_names_are_refused),
        cmocka_unit_test(upcall_drops_what_the_kernel_has),
        cmocka_unit_test(groups_of_an_ordinary_caller_come_from_its_process),
        cmocka_unit_test(gfid_directory_is_there_only_when_asked_for),
        cmocka_unit_test(file_is_the_same_by_its_gfid_and_by_its_path),
        cmocka_unit_test(directory_is_another_one_by_its_gfid_and_so_is_what_is_below),
        cmocka_unit_test(change_by_gfid_is_told_for_the_path),
        cmocka_unit_test(refusal_is_not_repeated_when_the_groups_are_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
