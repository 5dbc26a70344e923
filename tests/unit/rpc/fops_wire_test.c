/* The definition for people (rpc/fops_wire.x) against messages of the real GlusterFS 10.3: rpcgen's code reads and writes
 * the same bytes as they, and with them as our tables (fops_test.c). */
#include "core/mem.h"
#include "rpc/fops_wire.h"
#include "rpc/message.h"
#include "rpc/rpcgen_bridge.h"
#include "unit/rpc/golden.h"
#include "unit/unit.h"

struct types {
    xdrproc_t request, reply;
    size_t request_size, reply_size;
};

#define TYPES(req, rsp)                                                                      \
    {                                                                                        \
        .request = (xdrproc_t)(void (*)(void))xdr_##req, .request_size = sizeof(struct req), \
        .reply = (xdrproc_t)(void (*)(void))xdr_##rsp, .reply_size = sizeof(struct rsp)      \
    }

static const struct types types[FOP_PROC_COUNT] = {
    [FOP_STAT] = TYPES(wire_gfid_req, wire_stat_rsp),
    [FOP_READLINK] = TYPES(wire_word_req, wire_readlink_rsp),
    [FOP_MKNOD] = TYPES(wire_mknod_req, wire_entry_rsp),
    [FOP_MKDIR] = TYPES(wire_mkdir_req, wire_entry_rsp),
    [FOP_UNLINK] = TYPES(wire_unlink_req, wire_change_rsp),
    [FOP_RMDIR] = TYPES(wire_rmdir_req, wire_change_rsp),
    [FOP_SYMLINK] = TYPES(wire_symlink_req, wire_entry_rsp),
    [FOP_RENAME] = TYPES(wire_rename_req, wire_rename_rsp),
    [FOP_LINK] = TYPES(wire_link_req, wire_entry_rsp),
    [FOP_TRUNCATE] = TYPES(wire_truncate_req, wire_change_rsp),
    [FOP_OPEN] = TYPES(wire_word_req, wire_open_rsp),
    [FOP_READ] = TYPES(wire_read_req, wire_read_rsp),
    [FOP_WRITE] = TYPES(wire_write_req, wire_change_rsp),
    [FOP_STATFS] = TYPES(wire_gfid_req, wire_statfs_rsp),
    [FOP_FLUSH] = TYPES(wire_fd_req, wire_plain_rsp),
    [FOP_FSYNC] = TYPES(wire_fsync_req, wire_change_rsp),
    [FOP_SETXATTR] = TYPES(wire_dict_req, wire_plain_rsp),
    [FOP_GETXATTR] = TYPES(wire_getxattr_req, wire_dict_rsp),
    [FOP_REMOVEXATTR] = TYPES(wire_removexattr_req, wire_plain_rsp),
    [FOP_OPENDIR] = TYPES(wire_gfid_req, wire_open_rsp),
    [FOP_FSYNCDIR] = TYPES(wire_fsync_req, wire_plain_rsp),
    [FOP_CREATE] = TYPES(wire_create_req, wire_create_rsp),
    [FOP_FTRUNCATE] = TYPES(wire_ftruncate_req, wire_change_rsp),
    [FOP_FSTAT] = TYPES(wire_fd_req, wire_stat_rsp),
    [FOP_LK] = TYPES(wire_lk_req, wire_lk_rsp),
    [FOP_LOOKUP] = TYPES(wire_lookup_req, wire_change_rsp),
    [FOP_READDIR] = TYPES(wire_readdir_req, wire_readdir_rsp),
    [FOP_INODELK] = TYPES(wire_inodelk_req, wire_plain_rsp),
    [FOP_FINODELK] = TYPES(wire_finodelk_req, wire_plain_rsp),
    [FOP_ENTRYLK] = TYPES(wire_entrylk_req, wire_plain_rsp),
    [FOP_XATTROP] = TYPES(wire_dict_req, wire_dict_rsp),
    [FOP_FXATTROP] = TYPES(wire_fdict_req, wire_dict_rsp),
    [FOP_SETATTR] = TYPES(wire_setattr_req, wire_change_rsp),
    [FOP_READDIRP] = TYPES(wire_readdir_req, wire_readdirp_rsp),
    [FOP_RELEASE] = TYPES(wire_fd_req, wire_plain_rsp),
    [FOP_RELEASEDIR] = TYPES(wire_fd_req, wire_plain_rsp),
    [FOP_FALLOCATE] = TYPES(wire_fallocate_req, wire_change_rsp),
    [FOP_DISCARD] = TYPES(wire_discard_req, wire_change_rsp),
    [FOP_ZEROFILL] = TYPES(wire_discard_req, wire_change_rsp),
    [FOP_SEEK] = TYPES(wire_seek_req, wire_seek_rsp),
};

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

/* The body from `in` on is one value of the type, plus `raw` bytes of data. */
static void check(const char *what, struct xdr_in *in, xdrproc_t proc, size_t size, size_t raw)
{
    SCOPED_FREE void *value = mem_zalloc(size);
    const uint8_t *body = in->at;
    struct xdr_out o;

    assert_int_equal(0, rpcgen_get(in, proc, value));
    if (xdr_left(in) != raw)
        fail_msg("%s: %zu bytes are left, not %zu", what, xdr_left(in), raw);
    xdr_out_init(&o, 64);
    rpcgen_put(&o, proc, value);
    assert_false(o.failed);
    assert_int_equal(in->at - body, o.size);
    if (memcmp(body, o.buf->data, o.size) != 0)
        fail_msg("%s: what is written differs from what was read", what);
    xdr_out_done(&o);
    xdr_free(proc, value);
}

static void the_definition_fits_what_glusterfs_sends(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(golden_fops); i++) {
        const struct golden *g = &golden_fops[i];
        SCOPED(buf_unref) struct buf *call = from_hex(g->call);
        SCOPED(buf_unref) struct buf *reply = from_hex(g->reply);
        struct xdr_in in = xdr_in_of(call);
        struct rpc_call_head head;
        if (!types[g->proc].request)
            fail_msg("procedure %d has no type", g->proc);
        (void)xdr_get_bytes(&in, 8);
        assert_int_equal(0, rpc_get_call_head(&in, &head));
        check("request", &in, types[g->proc].request, types[g->proc].request_size,
              g->proc == FOP_WRITE ? strlen("some bytes of data") : 0);
        in = xdr_in_of(reply);
        (void)xdr_get_bytes(&in, 8);
        assert_int_equal(0, rpc_get_reply_head(&in));
        check("reply", &in, types[g->proc].reply, types[g->proc].reply_size, g->proc == FOP_READ ? 7 : 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_definition_fits_what_glusterfs_sends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
