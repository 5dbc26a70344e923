/* What a brick says before file operations, asked by hand. */
#include "rpc/fops.h"
#include "rpc/handshake.h"
#include "rpc/peer.h"
#include "rpc/rpcgen_bridge.h"
#include "unit/protocol/pair.h"
#include <stdio.h>

#define OPEN_PORTS "option transport.socket.listen-port 49152\noption standalone-port 24007"

struct visitor {
    struct rpc_peer *peer;
    bool is_closed;
};

static void on_call(void *arg, struct rpc_incoming *in)
{
    rpc_incoming_free(in);
}

static FIBER void on_closed(void *arg, int err)
{
    struct visitor *v = arg;

    v->is_closed = true;
}

static void visit(struct test *t, struct visitor *v, uint16_t port)
{
    const struct rpc_handlers handlers = { .on_call = on_call, .on_closed = on_closed };
    struct address a = { .family = ADDRESS_TCP, .host = "host", .port = port };
    struct stream *stream;

    assert_int_equal(0, stream_connect(t->env, &a, NULL, NULL, &stream));
    v->is_closed = false;
    v->peer = rpc_peer_new(t->env, stream, &handlers, v);
    assert_non_null(v->peer);
}

static void leave(struct visitor *v)
{
    rpc_peer_disconnect(v->peer, 0);
    while (!v->is_closed)
        assert_int_equal(0, fiber_sleep_ms(NULL, 1));
    rpc_peer_unref(v->peer);
}

static bool lists(struct visitor *v, uint32_t program)
{
    struct wire_dump_rsp rsp = { 0 };
    struct rpc_call c;
    struct xdr_out o;
    bool found = false;

    rpc_call_begin(v->peer, &c, &o, PROGRAM_DUMP, DUMP_VERSION, DUMP_DUMP, NULL);
    xdr_put_u64(&o, 1);
    assert_int_equal(0, rpc_peer_call(v->peer, &c, &o, NULL));
    assert_int_equal(0, RPCGEN_GET(&c.body, wire_dump_rsp, &rsp));
    for (struct wire_program *w = rsp.programs; w; w = w->next)
        found |= w->prognum == program;
    RPCGEN_FREE(wire_dump_rsp, &rsp);
    rpc_call_done(&c);
    return found;
}

SIM_TEST(only_the_standalone_port_looks_like_a_management_daemon)
{
    struct pair *p = pair_new(t, NULL, OPEN_PORTS);
    struct visitor v;

    visit(t, &v, 24007);
    assert_true(lists(&v, PROGRAM_PORTMAP));
    assert_false(lists(&v, PROGRAM_FOPS));
    leave(&v);
    visit(t, &v, 49152);
    assert_false(lists(&v, PROGRAM_PORTMAP));
    assert_true(lists(&v, PROGRAM_FOPS));
    assert_true(lists(&v, PROGRAM_MORTAR));
    leave(&v);
    pair_free(p);
}

static int getspec(struct visitor *v, const char *key, char text[static 2048])
{
    struct rpc_call c;
    struct xdr_out o;

    rpc_call_begin(v->peer, &c, &o, PROGRAM_HANDSHAKE, HANDSHAKE_VERSION, HANDSHAKE_GETSPEC, NULL);
    xdr_put_u32(&o, 1);
    xdr_put_string(&o, key);
    xdr_put_u32(&o, 0);
    assert_int_equal(0, rpc_peer_call(v->peer, &c, &o, NULL));
    int32_t op_ret = (int32_t)xdr_get_u32(&c.body), op_errno = (int32_t)xdr_get_u32(&c.body);
    snprintf(text, 2048, "%s", xdr_get_string(&c.body, 65536));
    assert_false(c.body.failed);
    assert_int_equal(op_ret < 0 ? 0 : op_ret, strlen(text));
    rpc_call_done(&c);
    return op_ret < 0 ? -op_errno : 0;
}

SIM_TEST(a_volume_file_is_made_up)
{
    struct pair *p = pair_new(t, NULL, OPEN_PORTS "\noption standalone-volume web");
    struct volfile *file;
    struct visitor v;
    SCOPED_FREE char *text = mem_alloc(2048);

    visit(t, &v, 24007);
    assert_int_equal(0, getspec(&v, "/web", text));
    assert_int_equal(0, volfile_parse("made-up", text, strlen(text), &file, &t->err));
    assert_string_equal("web", file->sections[file->section_count - 1]->name);
    assert_string_equal("brick", volfile_option(file->sections[0], "remote-subvolume"));
    assert_string_equal("49152", volfile_option(file->sections[0], "remote-port"));
    volfile_free(file);
    assert_int_equal(0, getspec(&v, "web.tcp", text));
    assert_int_equal(-ENOENT, getspec(&v, "mail", text));
    leave(&v);
    visit(t, &v, 49152);
    assert_int_equal(-ENOSYS, getspec(&v, "web", text));
    leave(&v);
    pair_free(p);
}

static int64_t port_of(struct visitor *v, const char *brick)
{
    struct rpc_call c;
    struct xdr_out o;

    rpc_call_begin(v->peer, &c, &o, PROGRAM_PORTMAP, PORTMAP_VERSION, PORTMAP_PORTBYBRICK, NULL);
    xdr_put_string(&o, brick);
    assert_int_equal(0, rpc_peer_call(v->peer, &c, &o, NULL));
    int32_t op_ret = (int32_t)xdr_get_u32(&c.body);
    (void)xdr_get_u64(&c.body);
    int64_t port = xdr_get_u32(&c.body);
    assert_false(c.body.failed);
    rpc_call_done(&c);
    return op_ret < 0 ? -1 : port;
}

SIM_TEST(the_port_map_knows_the_brick)
{
    struct pair *p = pair_new(t, NULL, OPEN_PORTS);
    struct visitor v;

    visit(t, &v, 24007);
    assert_int_equal(49152, port_of(&v, "brick"));
    assert_int_equal(-1, port_of(&v, "server"));
    assert_int_equal(-1, port_of(&v, "other"));
    leave(&v);
    pair_free(p);
}

/* The answer to SETVOLUME with these pairs (NULL ends them): 0 or -errno. */
static int set_volume(struct visitor *v, ...)
{
    SCOPED(dict_unref) struct dict *d = dict_new();
    struct rpc_call c;
    struct xdr_out o;
    const char *key;
    va_list args;

    va_start(args, v);
    while ((key = va_arg(args, const char *)))
        assert_int_equal(0, dict_set_str(d, key, va_arg(args, const char *)));
    va_end(args);
    rpc_call_begin(v->peer, &c, &o, PROGRAM_HANDSHAKE, HANDSHAKE_VERSION, HANDSHAKE_SETVOLUME, NULL);
    xdr_put_odict_opaque(&o, d);
    assert_int_equal(0, rpc_peer_call(v->peer, &c, &o, NULL));
    int32_t op_ret = (int32_t)xdr_get_u32(&c.body), op_errno = (int32_t)xdr_get_u32(&c.body);
    rpc_call_done(&c);
    return op_ret < 0 ? -op_errno : 0;
}

SIM_TEST(setvolume_needs_its_words)
{
    struct pair *p = pair_new(t, NULL, OPEN_PORTS);
    struct visitor v;

    visit(t, &v, 49152);
    assert_int_equal(-EINVAL, set_volume(&v, "process-uuid", "u", "fops-version", "1298437", NULL));
    assert_int_equal(-EINVAL, set_volume(&v, "remote-subvolume", "brick", "fops-version", "1298437", NULL));
    assert_int_equal(-EINVAL, set_volume(&v, "remote-subvolume", "brick", "process-uuid", "u", NULL));
    assert_int_equal(-ENOENT,
                     set_volume(&v, "remote-subvolume", "b", "process-uuid", "u", "fops-version", "1298437", NULL));
    assert_int_equal(0,
                     set_volume(&v, "remote-subvolume", "brick", "process-uuid", "u", "fops-version", "1298437", NULL));
    assert_int_equal(-EALREADY,
                     set_volume(&v, "remote-subvolume", "brick", "process-uuid", "u", "fops-version", "1298437", NULL));
    leave(&v);
    pair_free(p);
}

FIBER_TEST(host_names_in_auth_lists_are_looked_up)
{
    struct pair *p = pair_start(t, "option remote-host localhost",
                                "option auth.addr.brick.reject localhost.localdomain,ip6-localhost\n");
    pair_wait(p, true); /* a unix socket has no address that could match */
    pair_free(p);
}

SIM_TEST(operations_come_after_setvolume)
{
    struct pair *p = pair_new(t, NULL, OPEN_PORTS);
    struct fop_request w = { .proc = FOP_STATFS, .gfid = gfid_root };
    struct visitor v;
    struct rpc_call c;
    struct xdr_out o;

    visit(t, &v, 49152);
    uint32_t before = p->leaf->call_count;
    rpc_call_begin(v.peer, &c, &o, PROGRAM_FOPS, FOPS_VERSION, FOP_STATFS, NULL);
    fop_put_request(&o, &w, false);
    assert_int_equal(-ENOTCONN, rpc_peer_call(v.peer, &c, &o, NULL));
    rpc_call_done(&c);
    assert_int_equal(before, p->leaf->call_count);
    assert_false(v.is_closed);
    leave(&v);
    pair_free(p);
}

static FIBER int answer_subdir(struct leaf *leaf, struct call *call, const struct request *q, struct reply *r)
{
    if (q->name && strcmp(q->name, "sub") != 0 && strcmp(q->name, "dir") != 0)
        return -ENOENT;
    r->stat = leaf->stat;
    r->stat.mode = S_IFDIR | 0755;
    r->stat.gfid = !q->name ? q->inode->gfid : test_gfid(strcmp(q->name, "sub") == 0 ? 100 : 101);
    return 0;
}

SIM_TEST(a_client_of_a_subdirectory_takes_it_for_its_root)
{
    struct pair *p = pair_new(t, NULL, OPEN_PORTS);
    struct fop_request w = { .proc = FOP_STAT, .gfid = gfid_root };
    struct fop_answer a = { .r = t->r };
    struct gfid dir = test_gfid(101);
    struct visitor v;
    struct rpc_call c;
    struct xdr_out o;

    p->leaf->answers[OP_LOOKUP] = answer_subdir;
    visit(t, &v, 49152);
    assert_int_equal(-ENOENT, set_volume(&v, "remote-subvolume", "brick", "process-uuid", "u", "fops-version",
                                         "1298437", "subdir-mount", "/sub/other", NULL));
    assert_int_equal(0, set_volume(&v, "remote-subvolume", "brick", "process-uuid", "u", "fops-version", "1298437",
                                   "subdir-mount", "/sub/dir", NULL));
    rpc_call_begin(v.peer, &c, &o, PROGRAM_FOPS, FOPS_VERSION, FOP_STAT, NULL);
    fop_put_request(&o, &w, false);
    assert_int_equal(0, rpc_peer_call(v.peer, &c, &o, NULL));
    assert_int_equal(0, fop_get_answer(&c.body, FOP_STAT, NULL, false, &a));
    rpc_call_done(&c);
    assert_true(gfid_equal(&dir, &leaf_last(p->leaf)->gfid));
    assert_true(gfid_is_root(&t->r->stat.gfid));
    assert_int_equal(1, t->r->stat.ino);
    leave(&v);
    pair_free(p);
}

SIM_TEST(programs_versions_and_procedures_that_do_not_exist_are_refused)
{
    struct pair *p = pair_new(t, NULL, OPEN_PORTS);
    const uint32_t wrong[][3] = { { 12345, 1, 1 },
                                  { PROGRAM_FOPS, 330, FOP_STAT },
                                  { PROGRAM_DUMP, DUMP_VERSION, 9 },
                                  { PROGRAM_HANDSHAKE, HANDSHAKE_VERSION, 99 },
                                  { PROGRAM_PORTMAP, PORTMAP_VERSION, PORTMAP_PORTBYBRICK } };
    struct visitor v;

    visit(t, &v, 49152);
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        struct rpc_call c;
        struct xdr_out o;
        rpc_call_begin(v.peer, &c, &o, wrong[i][0], wrong[i][1], wrong[i][2], NULL);
        assert_int_equal(-ENOTCONN, rpc_peer_call(v.peer, &c, &o, NULL));
        rpc_call_done(&c);
    }
    assert_true(lists(&v, PROGRAM_FOPS)); /* the connection lives */
    leave(&v);
    pair_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_standalone_port_looks_like_a_management_daemon),
        cmocka_unit_test(a_volume_file_is_made_up),
        cmocka_unit_test(the_port_map_knows_the_brick),
        cmocka_unit_test(setvolume_needs_its_words),
        cmocka_unit_test(host_names_in_auth_lists_are_looked_up),
        cmocka_unit_test(operations_come_after_setvolume),
        cmocka_unit_test(a_client_of_a_subdirectory_takes_it_for_its_root),
        cmocka_unit_test(programs_versions_and_procedures_that_do_not_exist_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
