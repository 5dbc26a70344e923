/* Bodies of file operations against messages of the real GlusterFS 10.3, in both directions, cut and flipped. */
#include "core/mem.h"
#include "rpc/fops.h"
#include "unit/rpc/golden.h"
#include "unit/unit.h"
#include <fcntl.h>
#include <stdio.h>

static int digit(char c)
{
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

static struct buf *from_hex(const char *hex)
{
    struct buf *b = buf_new(strlen(hex) / 2);

    assert_non_null(b);
    for (size_t i = 0; i < b->size; i++)
        b->data[i] = (uint8_t)(digit(hex[2 * i]) << 4 | digit(hex[2 * i + 1]));
    return b;
}

/* All bytes of o in one piece, inserts included. */
static struct buf *flat(struct xdr_out *o)
{
    struct buf *b = buf_new(xdr_total(o));
    size_t at = 0, to = 0;

    assert_non_null(b);
    assert_false(o->failed);
    for (unsigned i = 0; i < o->insert_count; i++) {
        const struct xdr_insert *insert = &o->inserts[i];
        memcpy(b->data + to, o->buf->data + at, insert->at - at);
        to += insert->at - at;
        memcpy(b->data + to, insert->data->data, insert->data->size);
        to += insert->data->size;
        at = insert->at;
    }
    memcpy(b->data + to, o->buf->data + at, o->size - at);
    return b;
}

/* A missing dict is sent as "none" by us, and as "empty" by GlusterFS in some messages. Both mean the same. */
static void assert_same(const char *what, const uint8_t *expected, const uint8_t *got, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        bool is_count = i >= 4 && (i & ~(size_t)3) + 8 <= size &&
                        memcmp(got + (i & ~3u), "\xff\xff\xff\xff\0\0\0\0", 8) == 0 &&
                        memcmp(expected + (i & ~3u), "\0\0\0\0\0\0\0\0", 8) == 0;
        if (expected[i] != got[i] && !is_count)
            fail_msg("%s: byte %zu is %02x instead of %02x", what, i, got[i], expected[i]);
    }
}

static void body_of_call(struct buf *b, struct xdr_in *in, struct rpc_call_head *head)
{
    *in = xdr_in_of(b);
    (void)xdr_get_bytes(in, 8);
    assert_int_equal(0, rpc_get_call_head(in, head));
}

static void check_call(const struct golden *g)
{
    SCOPED(buf_unref) struct buf *original = from_hex(g->call);
    SCOPED(buf_unref) struct buf *b = from_hex(g->call);
    struct rpc_call_head head;
    struct fop_request w;
    struct xdr_out o;
    struct xdr_in in;

    body_of_call(b, &in, &head);
    size_t at = (size_t)(in.at - b->data);
    assert_int_equal(PROGRAM_FOPS, head.program);
    assert_int_equal(FOPS_VERSION, head.version);
    assert_int_equal(g->proc, head.procedure);
    assert_int_equal(AUTH_FLAVOR_V3, head.cred.flavor);
    assert_int_equal(0, fop_get_request(&in, g->proc, NULL, false, &w));
    assert_int_equal(0, xdr_left(&in));
    xdr_out_init(&o, 16);
    fop_put_request(&o, &w, false);
    SCOPED(buf_unref) struct buf *again = flat(&o);
    assert_int_equal(original->size - at, again->size);
    /* SETATTR's mask of valid fields is filled as in answers; a brick looks at `valid` only. */
    if (g->proc == FOP_SETATTR || g->proc == FOP_FSETATTR)
        memcpy(again->data + 32, original->data + at + 32, 8);
    assert_same(fop_name(g->proc), original->data + at, again->data, again->size);
    xdr_out_done(&o);
    fop_request_done(&w);
}

static void calls_read_and_write_the_same_bytes(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(golden_fops); i++)
        check_call(&golden_fops[i]);
}

static void check_reply(const struct golden *g)
{
    SCOPED(buf_unref) struct buf *original = from_hex(g->reply);
    SCOPED(buf_unref) struct buf *b = from_hex(g->reply);
    SCOPED(reply_free) struct reply *r = reply_new();
    struct fop_answer a = { .r = r };
    struct xdr_in in = xdr_in_of(b);
    struct xdr_out o;

    (void)xdr_get_bytes(&in, 8);
    assert_int_equal(0, rpc_get_reply_head(&in));
    assert_int_equal(0, fop_get_answer(&in, g->proc, NULL, false, &a));
    assert_int_equal(0, xdr_left(&in));
    assert_true(a.op_ret >= 0);
    xdr_out_init(&o, 16);
    fop_put_answer(&o, g->proc, &a, false);
    SCOPED(buf_unref) struct buf *again = flat(&o);
    assert_int_equal(original->size - RPC_REPLY_HEAD_BYTES, again->size);
    assert_same(fop_name(g->proc), original->data + RPC_REPLY_HEAD_BYTES, again->data, again->size);
    xdr_out_done(&o);
}

static void replies_read_and_write_the_same_bytes(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(golden_fops); i++)
        check_reply(&golden_fops[i]);
}

static void our_own_procedures_are_steps_only(void **state)
{
    SCOPED(buf_unref) struct buf *empty = buf_new(1);
    struct xdr_in in = xdr_in_of(empty);
    struct fop_request w;

    assert_true(fop_is_ours(FOP_BLOCKSUMS));
    assert_false(fop_is_ours(FOP_COPY_FILE_RANGE));
    assert_int_equal(-EOPNOTSUPP, fop_get_request(&in, FOP_BLOCKSUMS, NULL, false, &w));
    assert_int_equal(-EBADMSG, fop_get_request(&in, FOP_BLOCKSUMS, NULL, true, &w));
}

/* Reads a copy of the first `size` bytes, with one byte changed. Nothing must be read outside or leak. */
static int read_call(const struct golden *g, const struct buf *whole, size_t from, size_t size, size_t flip)
{
    SCOPED(buf_unref) struct buf *b = buf_copy(whole->data + from, size);
    struct fop_request w;

    if (flip < size)
        b->data[flip] ^= 0xff;
    struct xdr_in in = xdr_in_of(b);
    int r = fop_get_request(&in, g->proc, NULL, false, &w);
    if (r == 0)
        fop_request_done(&w);
    return r;
}

static void cut_calls_are_refused_and_flipped_ones_do_no_harm(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(golden_fops); i++) {
        const struct golden *g = &golden_fops[i];
        SCOPED(buf_unref) struct buf *b = from_hex(g->call);
        struct rpc_call_head head;
        struct xdr_in in;
        body_of_call(b, &in, &head);
        size_t from = (size_t)(in.at - b->data), size = b->size - from;
        for (size_t n = 0; n < size; n++) {
            assert_int_equal(-EBADMSG, read_call(g, b, from, n, SIZE_MAX));
            (void)read_call(g, b, from, size, n);
        }
    }
}

static int read_reply(const struct golden *g, const struct buf *whole, size_t size, size_t flip)
{
    SCOPED(buf_unref) struct buf *b = buf_copy(whole->data + RPC_REPLY_HEAD_BYTES, size);
    SCOPED(reply_free) struct reply *r = reply_new();
    struct fop_answer a = { .r = r };

    if (flip < size)
        b->data[flip] ^= 0xff;
    struct xdr_in in = xdr_in_of(b);
    return fop_get_answer(&in, g->proc, NULL, false, &a);
}

static void cut_replies_are_refused_and_flipped_ones_do_no_harm(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(golden_fops); i++) {
        const struct golden *g = &golden_fops[i];
        SCOPED(buf_unref) struct buf *b = from_hex(g->reply);
        size_t size = b->size - RPC_REPLY_HEAD_BYTES;
        for (size_t n = 0; n < size; n++) {
            assert_int_equal(-EBADMSG, read_reply(g, b, n, SIZE_MAX));
            (void)read_reply(g, b, size, n);
        }
    }
}

static const struct golden *golden_of(enum fop_proc proc)
{
    for (size_t i = 0; i < ARRAY_SIZE(golden_fops); i++) {
        if (golden_fops[i].proc == proc)
            return &golden_fops[i];
    }
    fail_msg("no golden message of %s", fop_name(proc));
    return NULL;
}

static void raw_data_begins_behind_the_dict(void **state)
{
    SCOPED(buf_unref) struct buf *call = from_hex(golden_of(FOP_WRITE)->call);
    SCOPED(buf_unref) struct buf *reply = from_hex(golden_of(FOP_READ)->reply);
    const char data[] = "some bytes of data";
    const size_t size = sizeof(data) - 1;

    assert_int_equal(call->size - size, rpc_write_head_bytes(call->data, call->size));
    assert_memory_equal(data, call->data + call->size - size, size);
    assert_int_equal(reply->size - 7, rpc_read_reply_head_bytes(reply->data, reply->size));
    assert_memory_equal(data, reply->data + reply->size - 7, 7);
    assert_int_equal(-EAGAIN, rpc_write_head_bytes(call->data, 60));
    assert_int_equal(-EAGAIN, rpc_read_reply_head_bytes(reply->data, 60));
    assert_int_equal(0, rpc_write_head_bytes(reply->data, reply->size));
    assert_int_equal(0, rpc_read_reply_head_bytes(call->data, call->size));
}

static void a_written_credential_is_the_one_that_was_read(void **state)
{
    SCOPED(buf_unref) struct buf *original = from_hex(golden_of(FOP_CREATE)->call);
    SCOPED(buf_unref) struct buf *b = from_hex(golden_of(FOP_CREATE)->call);
    struct rpc_call_head head;
    struct call call = { 0 };
    struct xdr_in in;
    struct xdr_out o;

    body_of_call(b, &in, &head);
    rpc_cred_to_call(&head.cred, &call);
    xdr_out_init(&o, 16);
    rpc_put_call_head(&o, get_be32(original->data), PROGRAM_FOPS, FOPS_VERSION, FOP_CREATE, AUTH_FLAVOR_V3, &call,
                      true);
    assert_int_equal(in.at - b->data, o.size);
    assert_memory_equal(original->data, o.buf->data, o.size);
    xdr_out_done(&o);
}

static void open_flags_keep_their_meaning(void **state)
{
    const uint32_t flags = O_RDWR | O_CREAT | O_EXCL | O_TRUNC | O_APPEND | O_DIRECT | O_NOFOLLOW | O_DIRECTORY;

    assert_int_equal(02 | 0100 | 0200 | 01000 | 02000 | 040000 | 0400000 | 0200000, fop_flags_to_wire(flags));
    assert_int_equal(flags, fop_flags_from_wire(fop_flags_to_wire(flags)));
    assert_int_equal(010000, fop_flags_to_wire(O_DSYNC));
    assert_int_equal(O_SYNC, fop_flags_from_wire(010000));
    assert_int_equal(0, fop_flags_from_wire(0x40000000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_read_and_write_the_same_bytes),
        cmocka_unit_test(replies_read_and_write_the_same_bytes),
        cmocka_unit_test(our_own_procedures_are_steps_only),
        cmocka_unit_test(cut_calls_are_refused_and_flipped_ones_do_no_harm),
        cmocka_unit_test(cut_replies_are_refused_and_flipped_ones_do_no_harm),
        cmocka_unit_test(raw_data_begins_behind_the_dict),
        cmocka_unit_test(a_written_credential_is_the_one_that_was_read),
        cmocka_unit_test(open_flags_keep_their_meaning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
