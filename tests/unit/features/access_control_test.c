/* Who may do what: mode bits, ACLs, sticky directories, owners, extended attributes, exemptions. */
#include "features/access-control/acl_internal.h"
#include "unit/graph/test_graph.h"
#include <fcntl.h>
#include <unistd.h>

extern const struct translator_class access_control_class;

/* What the child says about dir (gfid 2), file (gfid 3) and whatever a name leads to. */
struct world {
    struct iatt dir, file, named;
    const void *acl;
    size_t acl_bytes;
};

static struct world world;

static int world_lookup(struct leaf *leaf, struct call *call, const struct request *q, struct reply *r)
{
    if (q->name) {
        r->stat = world.named;
        return world.named.mode ? 0 : -ENOENT;
    }
    r->stat = q->inode->type == S_IFDIR ? world.dir : world.file;
    r->stat.gfid = q->inode->gfid;
    if (world.acl && dict_has(q->xdata, ACL_ACCESS_XATTR))
        return dict_put_bin(&r->xdata, ACL_ACCESS_XATTR, world.acl, world.acl_bytes);
    return 0;
}

static struct iatt owned(uint32_t mode, uint32_t uid, uint32_t gid)
{
    return (struct iatt) { .mode = mode, .uid = uid, .gid = gid };
}

#define USER  1000
#define OTHER 2000
#define GROUP 100

static FIBER void begin(struct test *t)
{
    world = (struct world) {
        .dir = owned(S_IFDIR | 0755, USER, GROUP),
        .file = owned(S_IFREG | 0640, USER, GROUP),
        .named = owned(S_IFREG | 0644, USER, GROUP),
    };
    world.named.gfid = test_gfid(9);
    test_push(t, &leaf_class, NULL);
    test_push(t, &access_control_class, NULL);
    test_start(t);
    t->leaf->answers[OP_LOOKUP] = world_lookup;
    t->call.pid = 77;
}

static void become(struct test *t, uint32_t uid, uint32_t gid)
{
    t->call.uid = uid;
    t->call.gid = gid;
}

/* ---- the decision itself ---- */

static bool allows(uint32_t mode, const struct acl *acl, uint32_t uid, uint32_t gid, unsigned want)
{
    struct owner owner = { .uid = USER, .gid = GROUP, .mode = mode };
    struct asker who = { .uid = uid, .gid = gid };

    return acl_allows(&owner, acl, &who, want);
}

static void without_an_acl_the_first_class_that_fits_decides(void **state)
{
    assert_true(allows(0700, NULL, USER, 5, MAY_READ | MAY_WRITE | MAY_EXEC));
    assert_false(allows(0077, NULL, USER, GROUP, MAY_READ));
    assert_true(allows(0040, NULL, OTHER, GROUP, MAY_READ));
    assert_false(allows(0007, NULL, OTHER, GROUP, MAY_READ));
    assert_true(allows(0004, NULL, OTHER, 5, MAY_READ));
    assert_false(allows(0004, NULL, OTHER, 5, MAY_READ | MAY_WRITE));
}

static void supplementary_groups_count(void **state)
{
    uint32_t groups[300] = { 0 };
    struct owner owner = { .uid = USER, .gid = GROUP, .mode = 0060 };
    struct asker who = { .uid = OTHER, .gid = 5, .groups = groups, .group_count = 300 };

    assert_false(acl_allows(&owner, NULL, &who, MAY_READ));
    groups[299] = GROUP;
    assert_true(acl_allows(&owner, NULL, &who, MAY_READ));
}

/* user::rw- user:2000:rwx group::r-- group:300:-w- mask::rw- other::r-- */
static const uint8_t acl_bytes[] = {
    2,    0, 0,    0, 0x01, 0,    6,    0,    0xff, 0xff, 0xff, 0xff, 0x02, 0,    7,    0,    0xd0, 0x07,
    0,    0, 0x04, 0, 4,    0,    0xff, 0xff, 0xff, 0xff, 0x08, 0,    2,    0,    0x2c, 0x01, 0,    0,
    0x10, 0, 6,    0, 0xff, 0xff, 0xff, 0xff, 0x20, 0,    4,    0,    0xff, 0xff, 0xff, 0xff,
};

static struct acl *parsed(void)
{
    struct acl *acl = NULL;

    assert_int_equal(0, acl_parse(acl_bytes, sizeof(acl_bytes), &acl));
    return acl;
}

static void an_acl_is_read_from_its_bytes(void **state)
{
    struct acl *acl = parsed();

    assert_int_equal(6, acl->count);
    assert_int_equal(ACL_TAG_USER, acl->entries[1].tag);
    assert_int_equal(7, acl->entries[1].perm);
    assert_int_equal(2000, acl->entries[1].id);
    mem_free(acl);
}

static void truncated_or_foreign_bytes_are_no_acl(void **state)
{
    struct acl *acl = NULL;
    uint8_t other_version[4] = { 1, 0, 0, 0 };

    for (size_t n = 0; n < sizeof(acl_bytes); n++) {
        if (n < 4 || (n - 4) % 8)
            assert_int_equal(-EINVAL, acl_parse(acl_bytes, n, &acl));
    }
    assert_int_equal(-EINVAL, acl_parse(other_version, 4, &acl));
}

static void an_acl_without_entries_is_none(void **state)
{
    struct acl *acl = (void *)1;

    assert_int_equal(0, acl_parse(acl_bytes, 4, &acl));
    assert_null(acl);
}

static void the_owner_entry_is_not_masked(void **state)
{
    struct acl *acl = parsed();

    assert_true(allows(0, acl, USER, 5, MAY_READ | MAY_WRITE));
    assert_false(allows(0, acl, USER, 5, MAY_EXEC));
    mem_free(acl);
}

static void a_named_user_is_masked(void **state)
{
    struct acl *acl = parsed();

    assert_true(allows(0, acl, OTHER, 5, MAY_READ | MAY_WRITE));
    assert_false(allows(0, acl, OTHER, 5, MAY_EXEC));
    mem_free(acl);
}

static void one_granting_group_is_enough_and_a_denying_one_shuts_others_out(void **state)
{
    struct acl *acl = parsed();
    uint32_t groups[1] = { 300 };
    struct owner owner = { .uid = USER, .gid = GROUP };
    struct asker both = { .uid = 3000, .gid = GROUP, .groups = groups, .group_count = 1 };

    assert_true(allows(0, acl, 3000, GROUP, MAY_READ));
    assert_false(allows(0, acl, 3000, GROUP, MAY_WRITE));
    assert_true(allows(0, acl, 3000, 300, MAY_WRITE));
    assert_false(allows(0, acl, 3000, 300, MAY_READ)); /* although others may */
    assert_true(acl_allows(&owner, acl, &both, MAY_READ));
    assert_true(acl_allows(&owner, acl, &both, MAY_WRITE));
    assert_false(acl_allows(&owner, acl, &both, MAY_READ | MAY_WRITE)); /* no single entry grants both */
    mem_free(acl);
}

static void the_rest_get_the_other_entry(void **state)
{
    struct acl *acl = parsed();

    assert_true(allows(0, acl, 3000, 5, MAY_READ));
    assert_false(allows(0, acl, 3000, 5, MAY_WRITE));
    mem_free(acl);
}

/* ---- names ---- */

FIBER_TEST(looking_up_needs_search_permission_on_the_directory)
{
    begin(t);
    become(t, OTHER, 5);
    assert_int_equal(0, test_op(t, OP_LOOKUP, .parent = t->dir, .name = "f"));
    world.dir = owned(S_IFDIR | 0744, USER, GROUP);
    inode_table_set_limit(t->graph, 0);
    assert_int_equal(0, test_op(t, OP_STAT, .inode = t->root));
    t->call.uid = 0;
    assert_int_equal(0, test_op(t, OP_LOOKUP, .inode = t->dir)); /* the new mode comes by */
    become(t, OTHER, 5);
    assert_int_equal(-EACCES, test_op(t, OP_LOOKUP, .parent = t->dir, .name = "f"));
}

FIBER_TEST(looking_up_by_gfid_needs_nothing)
{
    begin(t);
    world.dir.mode = S_IFDIR;
    become(t, OTHER, 5);
    assert_int_equal(0, test_op(t, OP_LOOKUP, .inode = t->dir));
}

FIBER_TEST(making_an_entry_needs_write_and_search_on_the_directory)
{
    begin(t);
    become(t, OTHER, GROUP);
    assert_int_equal(-EACCES, test_op(t, OP_MKDIR, .parent = t->dir, .name = "d", .inode = t->new_inode, .mode = 0755));
    assert_int_equal(-EACCES,
                     test_op(t, OP_SYMLINK, .parent = t->dir, .name = "s", .inode = t->new_inode, .text = "x"));
    assert_int_equal(-EACCES, test_op(t, OP_CREATE, .parent = t->dir, .name = "f", .inode = t->new_inode, .fd = t->fd));
    assert_int_equal(0,
                     leaf_count(t->leaf, OP_MKDIR) + leaf_count(t->leaf, OP_SYMLINK) + leaf_count(t->leaf, OP_CREATE));
    become(t, USER, 5);
    assert_int_equal(0, test_op(t, OP_MKDIR, .parent = t->dir, .name = "d", .inode = t->new_inode, .mode = 0755));
}

FIBER_TEST(making_a_device_is_for_the_super_user)
{
    begin(t);
    become(t, USER, GROUP);
    assert_int_equal(-EPERM, test_op(t, OP_MKNOD, .parent = t->dir, .name = "d", .inode = t->new_inode,
                                     .mode = S_IFBLK | 0600, .rdev = 0x801));
    assert_int_equal(
        0, test_op(t, OP_MKNOD, .parent = t->dir, .name = "p", .inode = t->new_inode, .mode = S_IFIFO | 0600));
    become(t, 0, 0);
    assert_int_equal(0, test_op(t, OP_MKNOD, .parent = t->dir, .name = "d", .inode = t->new_inode,
                                .mode = S_IFBLK | 0600, .rdev = 0x801));
}

FIBER_TEST(linking_needs_write_on_the_new_directory)
{
    begin(t);
    become(t, OTHER, 5);
    assert_int_equal(-EACCES, test_op(t, OP_LINK, .inode = t->file, .parent2 = t->dir, .name2 = "l"));
}

FIBER_TEST(a_sticky_directory_protects_names_of_others)
{
    begin(t);
    world.dir = owned(S_IFDIR | S_ISVTX | 0777, 0, 0);
    become(t, OTHER, 5);
    assert_int_equal(-EPERM, test_op(t, OP_UNLINK, .parent = t->dir, .name = "f"));
    assert_int_equal(-EPERM, test_op(t, OP_RENAME, .parent = t->dir, .name = "f", .parent2 = t->dir, .name2 = "g"));
    become(t, USER, 5);
    assert_int_equal(0, test_op(t, OP_UNLINK, .parent = t->dir, .name = "f"));
}

FIBER_TEST(the_owner_of_a_sticky_directory_may_remove_anything_in_it)
{
    begin(t);
    world.dir = owned(S_IFDIR | S_ISVTX | 0777, OTHER, 0);
    become(t, OTHER, 5);
    assert_int_equal(0, test_op(t, OP_UNLINK, .parent = t->dir, .name = "f"));
}

FIBER_TEST(a_missing_name_in_a_sticky_directory_is_left_to_the_storage)
{
    begin(t);
    world.dir = owned(S_IFDIR | S_ISVTX | 0777, 0, 0);
    world.named.mode = 0;
    become(t, OTHER, 5);
    leaf_fail(t->leaf, OP_UNLINK, ENOENT, 1);
    assert_int_equal(-ENOENT, test_op(t, OP_UNLINK, .parent = t->dir, .name = "f"));
}

FIBER_TEST(a_directory_that_moves_must_be_writable_itself)
{
    struct gfid gfid = test_gfid(20);

    begin(t);
    world.dir = owned(S_IFDIR | 0577, USER, GROUP);
    become(t, USER, GROUP);
    SCOPED(inode_unref) struct inode *moved = inode_table_get(t->graph, &gfid, S_IFDIR);
    assert_int_equal(-EACCES, test_op(t, OP_RENAME, .parent = t->dir, .name = "a", .parent2 = t->root, .name2 = "a",
                                      .inode = moved));
}

/* ---- files ---- */

FIBER_TEST(opening_needs_what_the_flags_ask_for)
{
    begin(t);
    become(t, OTHER, GROUP); /* r-- */
    assert_int_equal(0, test_op(t, OP_OPEN, .inode = t->file, .fd = t->fd, .flags = O_RDONLY));
    assert_int_equal(-EACCES, test_op(t, OP_OPEN, .inode = t->file, .fd = t->fd, .flags = O_WRONLY));
    assert_int_equal(-EACCES, test_op(t, OP_OPEN, .inode = t->file, .fd = t->fd, .flags = O_RDWR));
    assert_int_equal(-EACCES, test_op(t, OP_OPEN, .inode = t->file, .fd = t->fd, .flags = O_RDONLY | O_TRUNC));
    become(t, OTHER, 5); /* --- */
    assert_int_equal(-EACCES, test_op(t, OP_OPEN, .inode = t->file, .fd = t->fd, .flags = O_RDONLY));
}

FIBER_TEST(opening_for_execution_needs_execute_and_not_read)
{
    begin(t);
    world.file = owned(S_IFREG | 0711, USER, GROUP);
    become(t, OTHER, 5);
    assert_int_equal(0, test_op(t, OP_OPEN, .inode = t->file, .fd = t->fd, .flags = O_RDONLY | 0x20));
    assert_int_equal(-EACCES, test_op(t, OP_OPEN, .inode = t->file, .fd = t->fd, .flags = O_RDONLY));
}

FIBER_TEST(an_open_descriptor_is_not_checked_again)
{
    begin(t);
    become(t, OTHER, 5);
    assert_int_equal(0, test_op(t, OP_READ, .inode = t->file, .fd = t->fd, .size = 1));
    assert_int_equal(0, test_op(t, OP_TRUNCATE, .inode = t->file, .fd = t->fd));
}

FIBER_TEST(data_by_gfid_is_checked_each_time)
{
    SCOPED(buf_unref) struct buf *data = buf_copy("x", 1);

    begin(t);
    become(t, OTHER, GROUP);
    assert_int_equal(0, test_op(t, OP_READ, .inode = t->file, .size = 1));
    assert_int_equal(-EACCES, test_op(t, OP_WRITE, .inode = t->file, .data = data));
    assert_int_equal(-EACCES, test_op(t, OP_TRUNCATE, .inode = t->file));
}

FIBER_TEST(the_owner_may_always_use_data_by_gfid)
{
    SCOPED(buf_unref) struct buf *data = buf_copy("x", 1);

    begin(t);
    world.file = owned(S_IFREG | 0444, USER, GROUP);
    become(t, USER, GROUP);
    assert_int_equal(1, test_op(t, OP_WRITE, .inode = t->file, .data = data));
}

FIBER_TEST(access_answers_for_the_asker)
{
    begin(t);
    become(t, OTHER, GROUP);
    assert_int_equal(0, test_op(t, OP_ACCESS, .inode = t->file, .flags = R_OK));
    assert_int_equal(-EACCES, test_op(t, OP_ACCESS, .inode = t->file, .flags = R_OK | W_OK));
    become(t, 0, 0);
    assert_int_equal(0, test_op(t, OP_ACCESS, .inode = t->file, .flags = R_OK | W_OK));
    assert_int_equal(-EACCES, test_op(t, OP_ACCESS, .inode = t->file, .flags = X_OK)); /* executable for none */
}

FIBER_TEST(listing_a_directory_needs_read)
{
    begin(t);
    world.dir = owned(S_IFDIR | 0711, USER, GROUP);
    become(t, OTHER, 5);
    assert_int_equal(-EACCES, test_op(t, OP_OPENDIR, .inode = t->dir, .fd = t->dir_fd));
}

/* ---- attributes ---- */

FIBER_TEST(only_the_owner_changes_the_mode)
{
    struct iatt attr = { .mode = S_IFREG | 0600 };

    begin(t);
    become(t, OTHER, GROUP);
    assert_int_equal(-EPERM, test_op(t, OP_SETATTR, .inode = t->file, .attr = &attr, .valid = ATTR_MODE));
    become(t, USER, GROUP);
    assert_int_equal(0, test_op(t, OP_SETATTR, .inode = t->file, .attr = &attr, .valid = ATTR_MODE));
}

FIBER_TEST(set_group_id_for_a_foreign_group_is_dropped)
{
    struct iatt attr = { .mode = S_IFREG | S_ISGID | 0755 };

    begin(t);
    become(t, USER, 5);
    assert_int_equal(0, test_op(t, OP_SETATTR, .inode = t->file, .attr = &attr, .valid = ATTR_MODE));
    assert_int_equal(0755, leaf_last(t->leaf)->attr.mode & 07777);
    become(t, USER, GROUP);
    assert_int_equal(0, test_op(t, OP_SETATTR, .inode = t->file, .attr = &attr, .valid = ATTR_MODE));
    assert_int_equal(S_ISGID | 0755, leaf_last(t->leaf)->attr.mode & 07777);
}

FIBER_TEST(giving_a_file_away_is_for_the_super_user)
{
    struct iatt attr = { .uid = OTHER };

    begin(t);
    become(t, USER, GROUP);
    assert_int_equal(-EPERM, test_op(t, OP_SETATTR, .inode = t->file, .attr = &attr, .valid = ATTR_UID));
    attr.uid = USER;
    assert_int_equal(0, test_op(t, OP_SETATTR, .inode = t->file, .attr = &attr, .valid = ATTR_UID));
    become(t, 0, 0);
    attr.uid = OTHER;
    assert_int_equal(0, test_op(t, OP_SETATTR, .inode = t->file, .attr = &attr, .valid = ATTR_UID));
}

FIBER_TEST(the_owner_gives_a_file_to_a_group_of_his)
{
    struct iatt attr = { .gid = 300 };
    uint32_t groups[1] = { 300 };

    begin(t);
    become(t, USER, GROUP);
    assert_int_equal(-EPERM, test_op(t, OP_SETATTR, .inode = t->file, .attr = &attr, .valid = ATTR_GID));
    t->call.groups = groups;
    t->call.group_count = 1;
    assert_int_equal(0, test_op(t, OP_SETATTR, .inode = t->file, .attr = &attr, .valid = ATTR_GID));
    t->call.group_count = 0;
}

FIBER_TEST(given_times_are_for_the_owner_and_now_for_who_may_write)
{
    struct iatt attr = { .mtime = 5 };

    begin(t);
    world.file = owned(S_IFREG | 0660, USER, GROUP);
    become(t, OTHER, GROUP);
    assert_int_equal(-EPERM, test_op(t, OP_SETATTR, .inode = t->file, .attr = &attr, .valid = ATTR_MTIME));
    assert_int_equal(0, test_op(t, OP_SETATTR, .inode = t->file, .attr = &attr,
                                .valid = ATTR_MTIME | ATTR_MTIME_NOW | ATTR_ATIME | ATTR_ATIME_NOW));
    become(t, OTHER, 5);
    assert_int_equal(-EACCES, test_op(t, OP_SETATTR, .inode = t->file, .attr = &attr, .valid = ATTR_MTIME_NOW));
    become(t, USER, 5);
    assert_int_equal(0, test_op(t, OP_SETATTR, .inode = t->file, .attr = &attr, .valid = ATTR_MTIME));
}

FIBER_TEST(a_change_of_the_mode_acts_at_once)
{
    struct iatt attr = { .mode = S_IFREG | 0600 };

    begin(t);
    become(t, OTHER, GROUP);
    assert_int_equal(0, test_op(t, OP_OPEN, .inode = t->file, .fd = t->fd, .flags = O_RDONLY));
    become(t, USER, GROUP);
    world.file = owned(S_IFREG | 0600, USER, GROUP);
    t->leaf->stat = world.file;
    assert_int_equal(0, test_op(t, OP_SETATTR, .inode = t->file, .attr = &attr, .valid = ATTR_MODE));
    become(t, OTHER, GROUP);
    assert_int_equal(-EACCES, test_op(t, OP_OPEN, .inode = t->file, .fd = t->fd, .flags = O_RDONLY));
}

/* ---- ACLs of the child ---- */

FIBER_TEST(the_acl_of_a_file_decides)
{
    begin(t);
    world.acl = acl_bytes;
    world.acl_bytes = sizeof(acl_bytes);
    become(t, OTHER, 5); /* user:2000:rw- after the mask */
    assert_int_equal(0, test_op(t, OP_OPEN, .inode = t->file, .fd = t->fd, .flags = O_RDWR));
    become(t, 3000, 5);
    assert_int_equal(-EACCES, test_op(t, OP_OPEN, .inode = t->file, .fd = t->fd, .flags = O_RDWR));
}

FIBER_TEST(the_acl_is_asked_for_once)
{
    begin(t);
    become(t, OTHER, GROUP);
    for (int i = 0; i < 3; i++)
        assert_int_equal(0, test_op(t, OP_OPEN, .inode = t->file, .fd = t->fd, .flags = O_RDONLY));
    assert_int_equal(1, leaf_count(t->leaf, OP_LOOKUP));
}

FIBER_TEST(the_super_user_never_asks_for_it)
{
    begin(t);
    assert_int_equal(0, test_op(t, OP_OPEN, .inode = t->file, .fd = t->fd, .flags = O_RDWR));
    assert_int_equal(0, leaf_count(t->leaf, OP_LOOKUP));
}

FIBER_TEST(setting_an_acl_acts_at_once)
{
    SCOPED(dict_unref) struct dict *xattrs = dict_new();

    begin(t);
    become(t, OTHER, 5);
    assert_int_equal(-EACCES, test_op(t, OP_OPEN, .inode = t->file, .fd = t->fd, .flags = O_RDONLY));
    become(t, USER, 5);
    world.acl = acl_bytes;
    world.acl_bytes = sizeof(acl_bytes);
    dict_set_bin(xattrs, ACL_ACCESS_XATTR, acl_bytes, sizeof(acl_bytes));
    assert_int_equal(0, test_op(t, OP_SETXATTR, .inode = t->file, .xattrs = xattrs));
    become(t, OTHER, 5);
    assert_int_equal(0, test_op(t, OP_OPEN, .inode = t->file, .fd = t->fd, .flags = O_RDONLY));
    become(t, USER, 5);
    world.acl = NULL;
    assert_int_equal(0, test_op(t, OP_REMOVEXATTR, .inode = t->file, .text = ACL_ACCESS_XATTR));
    become(t, OTHER, 5);
    assert_int_equal(-EACCES, test_op(t, OP_OPEN, .inode = t->file, .fd = t->fd, .flags = O_RDONLY));
}

FIBER_TEST(an_acl_nobody_can_read_does_not_open_the_file)
{
    begin(t);
    world.acl = acl_bytes;
    world.acl_bytes = 7;
    become(t, OTHER, GROUP);
    assert_int_equal(-EIO, test_op(t, OP_OPEN, .inode = t->file, .fd = t->fd, .flags = O_RDONLY));
}

FIBER_TEST(a_child_that_fails_is_no_permission)
{
    begin(t);
    t->leaf->answers[OP_LOOKUP] = NULL;
    leaf_fail(t->leaf, OP_LOOKUP, ESTALE, 0);
    become(t, OTHER, GROUP);
    assert_int_equal(-ESTALE, test_op(t, OP_OPEN, .inode = t->file, .fd = t->fd, .flags = O_RDONLY));
}

/* ---- extended attributes ---- */

static FIBER int set_one(struct test *t, struct inode *inode, const char *name)
{
    SCOPED(dict_unref) struct dict *xattrs = dict_new();

    dict_set_bin(xattrs, name, "v", 1);
    return test_op(t, OP_SETXATTR, .inode = inode, .xattrs = xattrs);
}

FIBER_TEST(user_attributes_need_write_and_read_permission)
{
    begin(t);
    become(t, OTHER, GROUP);
    assert_int_equal(-EACCES, set_one(t, t->file, "user.a"));
    assert_int_equal(0, test_op(t, OP_GETXATTR, .inode = t->file, .text = "user.a"));
    become(t, OTHER, 5);
    assert_int_equal(-EACCES, test_op(t, OP_GETXATTR, .inode = t->file, .text = "user.a"));
    become(t, USER, GROUP);
    assert_int_equal(0, set_one(t, t->file, "user.a"));
    assert_int_equal(0, test_op(t, OP_REMOVEXATTR, .inode = t->file, .text = "user.a"));
}

FIBER_TEST(user_attributes_exist_on_files_and_directories_only)
{
    begin(t);
    world.file = owned(S_IFLNK | 0777, USER, GROUP);
    become(t, USER, GROUP);
    assert_int_equal(-EPERM, set_one(t, t->file, "user.a"));
    assert_int_equal(-ENODATA, test_op(t, OP_GETXATTR, .inode = t->file, .text = "user.a"));
}

FIBER_TEST(trusted_attributes_are_for_the_super_user)
{
    begin(t);
    become(t, USER, GROUP);
    assert_int_equal(-EPERM, set_one(t, t->file, "trusted.mine"));
    assert_int_equal(-ENODATA, test_op(t, OP_GETXATTR, .inode = t->file, .text = "trusted.mine"));
    become(t, 0, 0);
    assert_int_equal(0, set_one(t, t->file, "trusted.mine"));
}

FIBER_TEST(what_client_translators_write_for_a_user_passes)
{
    begin(t);
    become(t, OTHER, 5);
    assert_int_equal(0, set_one(t, t->dir, "trusted.glusterfs.dht"));
    assert_int_equal(0, test_op(t, OP_GETXATTR, .inode = t->file, .text = "trusted.glusterfs.pathinfo"));
}

FIBER_TEST(acls_are_for_the_owner)
{
    begin(t);
    become(t, OTHER, GROUP);
    assert_int_equal(-EPERM, set_one(t, t->file, ACL_ACCESS_XATTR));
    assert_int_equal(-EPERM, set_one(t, t->dir, ACL_DEFAULT_XATTR));
    assert_int_equal(-EPERM, test_op(t, OP_REMOVEXATTR, .inode = t->file, .text = ACL_ACCESS_XATTR));
    become(t, USER, GROUP);
    assert_int_equal(0, set_one(t, t->dir, ACL_DEFAULT_XATTR));
}

/* ---- exemptions ---- */

FIBER_TEST(internal_clients_are_exempt)
{
    begin(t);
    become(t, OTHER, 5);
    t->call.pid = PID_SELF_HEAL;
    assert_int_equal(0, test_op(t, OP_OPEN, .inode = t->file, .fd = t->fd, .flags = O_RDWR));
    assert_int_equal(0, set_one(t, t->file, "trusted.mine"));
}

FIBER_TEST(the_super_uid_is_an_option)
{
    world = (struct world) { .file = owned(S_IFREG | 0600, USER, GROUP) };
    test_push(t, &leaf_class, NULL);
    test_push(t, &access_control_class, "super-uid", "42", NULL);
    test_start(t);
    t->leaf->answers[OP_LOOKUP] = world_lookup;
    t->call.pid = 77;
    become(t, 42, 5);
    assert_int_equal(0, test_op(t, OP_OPEN, .inode = t->file, .fd = t->fd, .flags = O_RDWR));
    become(t, 0, 0);
    assert_int_equal(-EACCES, test_op(t, OP_OPEN, .inode = t->file, .fd = t->fd, .flags = O_RDWR));
}

FIBER_TEST(every_step_of_a_compound_is_checked)
{
    struct request steps[2] = { { .op = OP_STAT }, { .op = OP_TRUNCATE } };

    begin(t);
    become(t, OTHER, 5);
    steps[0].inode = steps[1].inode = t->file;
    assert_int_equal(-EACCES, test_op(t, OP_COMPOUND, .steps = steps, .step_count = 2));
    assert_int_equal(0, leaf_count(t->leaf, OP_TRUNCATE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_an_acl_the_first_class_that_fits_decides),
        cmocka_unit_test(supplementary_groups_count),
        cmocka_unit_test(an_acl_is_read_from_its_bytes),
        cmocka_unit_test(truncated_or_foreign_bytes_are_no_acl),
        cmocka_unit_test(an_acl_without_entries_is_none),
        cmocka_unit_test(the_owner_entry_is_not_masked),
        cmocka_unit_test(a_named_user_is_masked),
        cmocka_unit_test(one_granting_group_is_enough_and_a_denying_one_shuts_others_out),
        cmocka_unit_test(the_rest_get_the_other_entry),
        cmocka_unit_test(looking_up_needs_search_permission_on_the_directory),
        cmocka_unit_test(looking_up_by_gfid_needs_nothing),
        cmocka_unit_test(making_an_entry_needs_write_and_search_on_the_directory),
        cmocka_unit_test(making_a_device_is_for_the_super_user),
        cmocka_unit_test(linking_needs_write_on_the_new_directory),
        cmocka_unit_test(a_sticky_directory_protects_names_of_others),
        cmocka_unit_test(the_owner_of_a_sticky_directory_may_remove_anything_in_it),
        cmocka_unit_test(a_missing_name_in_a_sticky_directory_is_left_to_the_storage),
        cmocka_unit_test(a_directory_that_moves_must_be_writable_itself),
        cmocka_unit_test(opening_needs_what_the_flags_ask_for),
        cmocka_unit_test(opening_for_execution_needs_execute_and_not_read),
        cmocka_unit_test(an_open_descriptor_is_not_checked_again),
        cmocka_unit_test(data_by_gfid_is_checked_each_time),
        cmocka_unit_test(the_owner_may_always_use_data_by_gfid),
        cmocka_unit_test(access_answers_for_the_asker),
        cmocka_unit_test(listing_a_directory_needs_read),
        cmocka_unit_test(only_the_owner_changes_the_mode),
        cmocka_unit_test(set_group_id_for_a_foreign_group_is_dropped),
        cmocka_unit_test(giving_a_file_away_is_for_the_super_user),
        cmocka_unit_test(the_owner_gives_a_file_to_a_group_of_his),
        cmocka_unit_test(given_times_are_for_the_owner_and_now_for_who_may_write),
        cmocka_unit_test(a_change_of_the_mode_acts_at_once),
        cmocka_unit_test(the_acl_of_a_file_decides),
        cmocka_unit_test(the_acl_is_asked_for_once),
        cmocka_unit_test(the_super_user_never_asks_for_it),
        cmocka_unit_test(setting_an_acl_acts_at_once),
        cmocka_unit_test(an_acl_nobody_can_read_does_not_open_the_file),
        cmocka_unit_test(a_child_that_fails_is_no_permission),
        cmocka_unit_test(user_attributes_need_write_and_read_permission),
        cmocka_unit_test(user_attributes_exist_on_files_and_directories_only),
        cmocka_unit_test(trusted_attributes_are_for_the_super_user),
        cmocka_unit_test(what_client_translators_write_for_a_user_passes),
        cmocka_unit_test(acls_are_for_the_owner),
        cmocka_unit_test(internal_clients_are_exempt),
        cmocka_unit_test(the_super_uid_is_an_option),
        cmocka_unit_test(every_step_of_a_compound_is_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
