/* Plain XDR, both forms of dicts, both forms of attributes, handshakes made by rpcgen against captured messages. */
#include "core/mem.h"
#include "rpc/handshake.h"
#include "rpc/message.h"
#include "rpc/rpcgen_bridge.h"
#include "unit/rpc/golden.h"
#include "unit/unit.h"
#include <sys/sysmacros.h>

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

#define assert_bytes(o, hex)                                               \
    do {                                                                   \
        SCOPED(buf_unref) struct buf *wanted_ = from_hex(hex);             \
        assert_false((o)->failed);                                         \
        assert_int_equal(wanted_->size, (o)->size);                        \
        assert_memory_equal(wanted_->data, (o)->buf->data, wanted_->size); \
    } while (0)

static void strings_become_c_strings_in_place(void **state)
{
    SCOPED(buf_unref)
    struct buf *b = from_hex("0000000461626364"
                             "000000056162636465000000"
                             "00000000"
                             "00000007");
    struct xdr_in in = xdr_in_of(b);

    assert_string_equal("abcd", xdr_get_string(&in, 16));
    assert_string_equal("abcde", xdr_get_string(&in, 16));
    assert_string_equal("", xdr_get_string(&in, 16));
    assert_int_equal(7, xdr_get_u32(&in));
    assert_false(in.failed);
}

static void a_string_that_is_too_long_or_holds_a_nul_is_refused(void **state)
{
    SCOPED(buf_unref) struct buf *longer = from_hex("0000000461626364");
    SCOPED(buf_unref) struct buf *with_nul = from_hex("0000000461620064");
    SCOPED(buf_unref) struct buf *beyond = from_hex("7fffffff61626364");
    struct xdr_in in = xdr_in_of(longer);

    assert_string_equal("", xdr_get_string(&in, 3));
    assert_true(in.failed);
    in = xdr_in_of(with_nul);
    assert_string_equal("", xdr_get_string(&in, 16));
    assert_true(in.failed);
    in = xdr_in_of(beyond);
    assert_string_equal("", xdr_get_string(&in, SIZE_MAX));
    assert_true(in.failed);
    assert_int_equal(0, xdr_get_u32(&in));
}

static void output_grows_and_keeps_inserts_in_place(void **state)
{
    SCOPED(buf_unref) struct buf *data = buf_copy("DATA!", 5);
    struct xdr_out o, all;

    xdr_out_init(&o, 1);
    xdr_put_u32(&o, 1);
    xdr_put_opaque_insert(&o, data);
    xdr_put_u32(&o, 2);
    assert_bytes(&o, "00000001"
                     "00000005"
                     "000000"
                     "00000002");
    assert_int_equal(20, xdr_total(&o));
    assert_int_equal(8, o.inserts[0].at);
    xdr_out_init(&all, 1);
    xdr_put_u32(&all, 9);
    xdr_append(&all, &o);
    assert_int_equal(24, xdr_total(&all));
    assert_int_equal(12, all.inserts[0].at);
    xdr_out_done(&all);
}

static void more_inserts_than_there_is_room_for_are_copied(void **state)
{
    SCOPED(buf_unref) struct buf *data = buf_copy("x", 1);
    struct xdr_out o;

    xdr_out_init(&o, 1);
    for (int i = 0; i < XDR_INSERTS_MAX + 3; i++)
        xdr_put_insert(&o, data);
    assert_int_equal(XDR_INSERTS_MAX + 3, xdr_total(&o));
    assert_int_equal(XDR_INSERTS_MAX, o.insert_count);
    assert_bytes(&o, "787878");
    xdr_out_done(&o);
}

static void lack_of_memory_is_a_failure_at_every_allocation(void **state)
{
    for (uint64_t n = 1;; n++) {
        struct xdr_out o;
        mem_fail_at(n);
        xdr_out_init(&o, 16);
        for (int i = 0; i < 1000; i++)
            xdr_put_u32(&o, 1);
        bool failed = o.failed, fired = mem_fail_at(0) == 0;
        xdr_out_done(&o);
        assert_int_equal(fired, failed);
        if (!fired)
            break;
    }
}

/* ---- dicts ---- */

/* One pair of every type, as docs/protocol.md lists them. */
static struct dict *all_types(void)
{
    struct dict *d = dict_new();
    struct gfid g = { { 1, 2, 3 } };
    struct mdata_times m = { .atime = 1, .mtime = 2, .ctime = 3, .atime_nsec = 4, .mtime_nsec = 5, .ctime_nsec = 6 };
    struct iatt a = { .gfid = g, .mode = 0100644, .size = 77 };

    assert_int_equal(0, dict_set_old(d, "old", "4\0", 2));
    assert_int_equal(0, dict_set_int(d, "int", -2));
    assert_int_equal(0, dict_set_uint(d, "uint", UINT64_MAX));
    assert_int_equal(0, dict_set_double(d, "double", 1.5));
    assert_int_equal(0, dict_set_str(d, "str", "text"));
    assert_int_equal(0, dict_set_bin(d, "bin", "\0\1\2", 3));
    assert_int_equal(0, dict_set_gfid(d, "gfid", &g));
    assert_int_equal(0, dict_set_iatt(d, "iatt", &a));
    assert_int_equal(0, dict_set_mdata(d, "mdata", &m));
    return d;
}

static void every_type_survives_a_typed_dict(void **state)
{
    SCOPED(dict_unref) struct dict *d = all_types();
    SCOPED(dict_unref) struct dict *got = NULL;
    struct xdr_out o;
    int64_t i;
    uint64_t u;
    struct gfid g;
    struct iatt a;
    struct mdata_times m;
    const char *text;
    const void *data;
    size_t size;

    xdr_out_init(&o, 16);
    xdr_put_xdict(&o, d, NULL);
    assert_int_equal(o.size - 12, get_be32(o.buf->data));
    o.buf->size = o.size;
    struct xdr_in in = xdr_in_of(o.buf);
    xdr_get_xdict(&in, &got);
    assert_false(in.failed);
    assert_int_equal(0, xdr_left(&in));
    assert_int_equal(9, dict_count(got));
    assert_int_equal(0, dict_get_int(got, "int", &i));
    assert_int_equal(-2, i);
    assert_int_equal(0, dict_get_uint(got, "uint", &u));
    assert_true(u == UINT64_MAX);
    assert_true(dict_get(got, "double")->d == 1.5);
    assert_int_equal(0, dict_get_str(got, "str", &text));
    assert_string_equal("text", text);
    assert_int_equal(4, dict_get(got, "str")->size_bytes);
    assert_int_equal(0, dict_get_bin(got, "bin", &data, &size));
    assert_int_equal(3, size);
    assert_int_equal(0, dict_get_gfid(got, "gfid", &g));
    assert_int_equal(2, g.bytes[1]);
    assert_int_equal(0, dict_get_iatt(got, "iatt", &a));
    assert_int_equal(77, a.size);
    assert_int_equal(0, dict_get_mdata(got, "mdata", &m));
    assert_int_equal(6, m.ctime_nsec);
    assert_int_equal(DICT_OLD, dict_get(got, "old")->type);
    xdr_out_done(&o);
}

static void a_typed_dict_has_these_bytes(void **state)
{
    SCOPED(dict_unref) struct dict *d = dict_new();
    struct gfid g = { { 0xaa } };
    struct xdr_out o;

    assert_int_equal(0, dict_set_str(d, "k", "ab"));
    xdr_out_init(&o, 16);
    xdr_put_xdict(&o, d, &g);
    assert_bytes(&o, "00000038"
                     "00000002"
                     "00000002"
                     "00000009"
                     "676669642d72657100000000"
                     "00000007"
                     "aa000000000000000000000000000000"
                     "00000002"
                     "6b000000"
                     "00000005"
                     "00000003"
                     "61620000");
    xdr_out_done(&o);
    xdr_out_init(&o, 16);
    xdr_put_xdict(&o, NULL, NULL);
    assert_bytes(&o, "00000000"
                     "ffffffff"
                     "00000000");
    xdr_out_done(&o);
}

static bool is_refused(const char *hex)
{
    SCOPED(buf_unref) struct buf *b = from_hex(hex);
    SCOPED(dict_unref) struct dict *d = NULL;
    struct xdr_in in = xdr_in_of(b);

    xdr_get_xdict(&in, &d);
    return in.failed;
}

static void typed_dicts_that_lie_are_refused(void **state)
{
    assert_false(is_refused("00000000"
                            "00000000"
                            "00000000"));
    assert_false(is_refused("12345678"
                            "ffffffff"
                            "00000000"));
    assert_true(is_refused("00000000"
                           "00000000"
                           "00000001"));
    assert_true(is_refused("00000000"
                           "ffffffff"
                           "00000001"));
    assert_true(is_refused("00000000"
                           "7fffffff"
                           "7fffffff"));
    assert_true(is_refused("00000000"
                           "00000001"
                           "00000001"
                           "00000000"
                           "00000002"
                           "0000000000000000"));
    assert_true(is_refused("00000000"
                           "00000001"
                           "00000001"
                           "00000002"
                           "6b000000"
                           "0000000a"
                           "0000000000000000"));
    assert_true(is_refused("00000000"
                           "00000001"
                           "00000001"
                           "00000002"
                           "6b000000"
                           "00000006"
                           "ffffffff"));
    assert_true(is_refused("00000000"));
}

static void an_old_dict_has_these_bytes_and_no_types(void **state)
{
    SCOPED(dict_unref) struct dict *d = dict_new();
    SCOPED(dict_unref) struct dict *got = NULL;
    struct xdr_out o;
    int64_t i;
    const char *text;

    assert_int_equal(0, dict_set_int(d, "a", 42));
    assert_int_equal(0, dict_set_str(d, "bc", "x"));
    xdr_out_init(&o, 16);
    xdr_put_odict(&o, d);
    assert_bytes(&o, "00000002"
                     "00000001"
                     "00000003"
                     "6100"
                     "343200"
                     "00000002"
                     "00000002"
                     "626300"
                     "7800");
    assert_int_equal(0, odict_parse(o.buf->data, o.size, &got));
    assert_int_equal(0, dict_get_int(got, "a", &i));
    assert_int_equal(42, i);
    assert_int_equal(0, dict_get_str(got, "bc", &text));
    assert_string_equal("x", text);
    xdr_out_done(&o);
}

static void old_dicts_that_lie_are_refused(void **state)
{
    static const char *const bad[] = {
        "ffffffff",
        "00000001",
        "000000",
        "00000001"
        "00000001"
        "00000003"
        "6100"
        "3432",
        "00000001"
        "00000000"
        "00000001"
        "00"
        "61",
        "00000001"
        "ffffffff"
        "00000001"
        "6100"
        "61",
        "00000001"
        "00000001"
        "ffffffff"
        "6100"
        "61",
    };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        SCOPED(buf_unref) struct buf *b = from_hex(bad[i]);
        struct dict *d = NULL;
        assert_int_equal(-EINVAL, odict_parse(b->data, b->size, &d));
        assert_null(d);
    }
}

static void old_dicts_may_be_cut_anywhere(void **state)
{
    SCOPED(dict_unref) struct dict *d = all_types();
    struct xdr_out o;

    xdr_out_init(&o, 16);
    xdr_put_odict(&o, d);
    for (size_t n = 1; n < o.size; n++) {
        SCOPED(buf_unref) struct buf *b = buf_copy(o.buf->data, n);
        struct dict *got = NULL;
        assert_int_equal(-EINVAL, odict_parse(b->data, n, &got));
    }
    xdr_out_done(&o);
}

/* ---- attributes ---- */

static void old_attributes_keep_what_they_have_room_for(void **state)
{
    struct iatt a = { .gfid = { { 9 } },
                      .ino = 1,
                      .dev = 2,
                      .mode = 0100600,
                      .nlink = 3,
                      .uid = 4,
                      .gid = 5,
                      .rdev = 6,
                      .size = 1ull << 40,
                      .blksize = 4096,
                      .blocks = 8,
                      .atime = 9,
                      .mtime_nsec = 10,
                      .ctime = 11 };
    struct iatt got;
    struct xdr_out o;

    xdr_out_init(&o, 16);
    xdr_put_iatt33(&o, &a);
    assert_int_equal(IATT33_BYTES, o.size);
    struct xdr_in in = { .at = o.buf->data, .end = o.buf->data + o.size };
    xdr_get_iatt33(&in, &got);
    assert_memory_equal(&a, &got, sizeof(a));
    xdr_out_done(&o);
}

static void device_numbers_travel_as_two_words(void **state)
{
    struct iatt a = { .mode = S_IFBLK | 0600, .rdev = makedev(259, 70000), .dev = makedev(254, 0) }, got;
    struct xdr_out o;

    xdr_out_init(&o, 16);
    xdr_put_iattx(&o, &a);
    assert_int_equal(259, get_be32(o.buf->data + 40)); /* as a GlusterFS 10.3 brick sent it */
    assert_int_equal(70000, get_be32(o.buf->data + 44));
    assert_int_equal(0xfe00, get_be64(o.buf->data + 32));
    struct xdr_in in = { .at = o.buf->data, .end = o.buf->data + o.size };
    xdr_get_iattx(&in, &got);
    assert_int_equal(a.rdev, got.rdev);
    xdr_out_done(&o);
}

/* ---- messages of rpcgen's types ---- */

static struct xdr_in reply_body(struct buf *b)
{
    struct xdr_in in = xdr_in_of(b);

    (void)xdr_get_bytes(&in, 8);
    assert_int_equal(0, rpc_get_reply_head(&in));
    return in;
}

static void a_version_list_is_read_and_written(void **state)
{
    SCOPED(buf_unref) struct buf *b = from_hex(golden_dump.reply);
    struct xdr_in in = reply_body(b);
    struct wire_dump_rsp rsp = { 0 };
    struct xdr_out o;

    assert_int_equal(0, RPCGEN_GET(&in, wire_dump_rsp, &rsp));
    assert_int_equal(0, xdr_left(&in));
    assert_int_equal(PROGRAM_FOPS, rsp.programs->prognum);
    assert_int_equal(FOPS_VERSION, rsp.programs->progver);
    xdr_out_init(&o, 16);
    RPCGEN_PUT(&o, wire_dump_rsp, &rsp);
    assert_int_equal(b->size - RPC_REPLY_HEAD_BYTES, o.size);
    assert_memory_equal(b->data + RPC_REPLY_HEAD_BYTES, o.buf->data, o.size);
    xdr_out_done(&o);
    RPCGEN_FREE(wire_dump_rsp, &rsp);
}

static void a_setvolume_request_has_the_words_it_must_have(void **state)
{
    SCOPED(buf_unref) struct buf *b = from_hex(golden_setvolume.call);
    SCOPED(dict_unref) struct dict *d = NULL;
    struct xdr_in in = xdr_in_of(b);
    struct rpc_call_head head;
    const char *text;

    (void)xdr_get_bytes(&in, 8);
    assert_int_equal(0, rpc_get_call_head(&in, &head));
    assert_int_equal(PROGRAM_HANDSHAKE, head.program);
    xdr_get_odict_opaque(&in, 65536, &d);
    assert_false(in.failed);
    assert_int_equal(0, dict_get_str(d, "fops-version", &text));
    assert_string_equal("1298437", text);
    assert_true(dict_has(d, "process-uuid"));
    assert_true(dict_has(d, "remote-subvolume"));
}

static void an_invalidation_is_read(void **state)
{
    SCOPED(buf_unref) struct buf *b = from_hex(golden_invalidation);
    struct xdr_in in = xdr_in_of(b);
    struct rpc_call_head head;
    struct wire_cache_invalidation w = { 0 };
    struct gfid g;

    (void)xdr_get_bytes(&in, 8);
    assert_int_equal(0, rpc_get_call_head(&in, &head));
    assert_int_equal(AUTH_FLAVOR_NONE, head.cred.flavor);
    assert_int_equal(PROGRAM_CALLBACK, head.program);
    assert_int_equal(CALLBACK_CACHE_INVALIDATION, head.procedure);
    assert_int_equal(0, RPCGEN_GET(&in, wire_cache_invalidation, &w));
    assert_int_equal(0, xdr_left(&in));
    assert_int_equal(0, gfid_parse(w.gfid, &g));
    RPCGEN_FREE(wire_cache_invalidation, &w);
}

static void handshakes_may_be_cut_anywhere(void **state)
{
    SCOPED(buf_unref) struct buf *b = from_hex(golden_dump.reply);

    for (size_t n = 0; n < b->size - RPC_REPLY_HEAD_BYTES; n++) {
        SCOPED(buf_unref) struct buf *part = buf_copy(b->data + RPC_REPLY_HEAD_BYTES, n);
        struct xdr_in in = xdr_in_of(part);
        struct wire_dump_rsp rsp = { 0 };
        assert_int_equal(-EBADMSG, RPCGEN_GET(&in, wire_dump_rsp, &rsp));
    }
}

/* ---- credentials ---- */

static void old_credentials_are_understood(void **state)
{
    /* flavor 5: owner u64, pid, uid, gid, count, 16 groups */
    SCOPED(buf_unref)
    struct buf *v1 = from_hex("00000002"
                              "0013d005"
                              "00000190"
                              "00000001"
                              "00000005"
                              "00000058"
                              "0102030405060708"
                              "00000009"
                              "0000000a"
                              "0000000b"
                              "00000002"
                              "0000000c"
                              "0000000d"
                              "00000000"
                              "00000000"
                              "00000000"
                              "00000000"
                              "00000000"
                              "00000000"
                              "00000000"
                              "00000000"
                              "00000000"
                              "00000000"
                              "00000000"
                              "00000000"
                              "00000000"
                              "00000000"
                              "00000000"
                              "00000000");
    SCOPED(buf_unref)
    struct buf *sys = from_hex("00000002"
                               "0013d005"
                               "00000190"
                               "00000001"
                               "00000001"
                               "0000001c"
                               "00000007"
                               "00000001"
                               "68000000"
                               "00000003"
                               "00000004"
                               "00000001"
                               "00000005"
                               "00000000"
                               "00000000");
    struct rpc_call_head head;
    struct xdr_in in = xdr_in_of(v1);

    assert_int_equal(0, rpc_get_call_head(&in, &head));
    assert_int_equal(9, head.cred.pid);
    assert_int_equal(10, head.cred.uid);
    assert_int_equal(11, head.cred.gid);
    assert_int_equal(2, head.cred.group_count);
    assert_int_equal(13, head.cred.groups[1]);
    assert_int_equal(8, head.cred.owner.size);
    assert_int_equal(8, head.cred.owner.bytes[0]);
    in = xdr_in_of(sys);
    assert_int_equal(0, rpc_get_call_head(&in, &head));
    assert_int_equal(3, head.cred.uid);
    assert_int_equal(4, head.cred.gid);
    assert_int_equal(1, head.cred.group_count);
    assert_int_equal(5, head.cred.groups[0]);
}

static void groups_that_do_not_fit_are_left_out(void **state)
{
    uint32_t groups[200];
    struct call call = { .groups = groups, .group_count = 200, .pid = 1 };
    struct rpc_call_head head;
    struct xdr_out o;

    for (uint32_t i = 0; i < 200; i++)
        groups[i] = i;
    lk_owner_from_u64(&call.lk_owner, 1);
    xdr_out_init(&o, 16);
    rpc_put_call_head(&o, 7, PROGRAM_FOPS, FOPS_VERSION, FOP_STAT, AUTH_FLAVOR_V3, &call, true);
    struct xdr_in in = { .at = o.buf->data + 8, .end = o.buf->data + o.size };
    assert_int_equal(0, rpc_get_call_head(&in, &head));
    assert_int_equal(83, head.cred.group_count);
    assert_int_equal(83, rpc_groups_that_fit(8));
    assert_int_equal(82, head.cred.groups[82]);
    xdr_out_done(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_become_c_strings_in_place),
        cmocka_unit_test(a_string_that_is_too_long_or_holds_a_nul_is_refused),
        cmocka_unit_test(output_grows_and_keeps_inserts_in_place),
        cmocka_unit_test(more_inserts_than_there_is_room_for_are_copied),
        cmocka_unit_test(lack_of_memory_is_a_failure_at_every_allocation),
        cmocka_unit_test(every_type_survives_a_typed_dict),
        cmocka_unit_test(a_typed_dict_has_these_bytes),
        cmocka_unit_test(typed_dicts_that_lie_are_refused),
        cmocka_unit_test(an_old_dict_has_these_bytes_and_no_types),
        cmocka_unit_test(old_dicts_that_lie_are_refused),
        cmocka_unit_test(old_dicts_may_be_cut_anywhere),
        cmocka_unit_test(old_attributes_keep_what_they_have_room_for),
        cmocka_unit_test(device_numbers_travel_as_two_words),
        cmocka_unit_test(a_version_list_is_read_and_written),
        cmocka_unit_test(a_setvolume_request_has_the_words_it_must_have),
        cmocka_unit_test(an_invalidation_is_read),
        cmocka_unit_test(handshakes_may_be_cut_anywhere),
        cmocka_unit_test(old_credentials_are_understood),
        cmocka_unit_test(groups_that_do_not_fit_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
