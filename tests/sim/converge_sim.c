/* The convergence checker: it must be silent about equal bricks and notice each kind of difference. */
#include "core/mem.h"
#include "sim/converge.h"
#include "unit/unit.h"

static const struct gfid dir = { { 0xd, [15] = 1 } }, file = { { 0xf, [15] = 1 } }, text = { { 0x5, [15] = 1 } };

static void make(struct disk *d, const struct gfid *parent, const char *name, const struct gfid *gfid, uint32_t mode,
                 const char *target)
{
    struct iatt a = { .gfid = *gfid, .mode = mode, .mtime = 7 };
    SCOPED(dict_unref) struct dict *none = dict_new();
    assert_int_equal(disk_make(d, parent, name, &a, target, none), 0);
}

static struct disk *a_brick(void)
{
    struct disk *d = disk_new();
    make(d, &gfid_root, "d", &dir, S_IFDIR | 0755, NULL);
    make(d, &dir, "f", &file, S_IFREG | 0644, NULL);
    make(d, &dir, "s", &text, S_IFLNK | 0777, "there");
    assert_int_equal(disk_link(d, &file, &gfid_root, "second"), 0);
    assert_int_equal(disk_write(d, &file, 10000, "end", 3), 0);
    assert_int_equal(disk_set_xattr(d, &file, "user.k", "v", 1), 0);
    assert_int_equal(disk_set_xattr(d, &file, "trusted.afr.dirty", "\0\0\0\0\0\0\0\0\0\0\0\0", 12), 0);
    return d;
}

static struct converge two(void)
{
    return (struct converge) { .disks = { a_brick(), a_brick() }, .count = 2, .arbiter = -1, .with_mtimes = true };
}

static void free_both(struct converge *c)
{
    disk_free(c->disks[0]);
    disk_free(c->disks[1]);
}

/* The sentence says what is wrong first. */
static void expect(struct converge *c, const char *sentence)
{
    converge_check(c);
    assert_string_equal(c->first, sentence);
    assert_true(c->differences > 0);
    free_both(c);
}

static void equal_bricks_are_equal(void **state UNUSED)
{
    struct converge c = two();
    converge_check(&c);
    assert_string_equal(c.first, "");
    assert_int_equal(c.differences, 0);
    free_both(&c);
}

static void holes_read_as_zeros_whoever_wrote_them(void **state UNUSED)
{
    struct converge c = two();
    assert_int_equal(disk_write(c.disks[1], &file, 4096, "\0\0\0", 3), 0);
    converge_check(&c);
    assert_int_equal(c.differences, 0);
    free_both(&c);
}

#define FILE_TEXT "0f000000-0000-0000-0000-000000000001"
#define DIR_TEXT  "0d000000-0000-0000-0000-000000000001"
#define LINK_TEXT "05000000-0000-0000-0000-000000000001"

static void a_name_too_many_is_noticed(void **state UNUSED)
{
    struct converge c = two();
    assert_int_equal(disk_link(c.disks[1], &file, &dir, "third"), 0);
    expect(&c, "name third of " DIR_TEXT " is on brick 1 and not on brick 0");
}

static void a_missing_name_is_noticed(void **state UNUSED)
{
    struct converge c = two();
    assert_int_equal(disk_unlink(c.disks[1], &dir, "s", false), 0);
    expect(&c, "name s of " DIR_TEXT " is on brick 0 and not on brick 1");
}

static void another_inode_under_the_name_is_noticed(void **state UNUSED)
{
    static const struct gfid other = { { 0x5, [15] = 2 } };
    struct converge c = two();
    assert_int_equal(disk_unlink(c.disks[1], &dir, "s", false), 0);
    make(c.disks[1], &dir, "s", &other, S_IFLNK | 0777, "there");
    expect(&c, "name s of " DIR_TEXT " leads to " LINK_TEXT
               " on brick 0 and to 05000000-0000-0000-0000-000000000002 on brick 1");
}

static void another_type_is_noticed(void **state UNUSED)
{
    struct converge c = two();
    assert_int_equal(disk_unlink(c.disks[1], &dir, "s", false), 0);
    make(c.disks[1], &dir, "s", &text, S_IFREG | 0777, NULL);
    expect(&c, "type of " LINK_TEXT " differs between bricks 0 and 1");
}

static void another_target_is_noticed(void **state UNUSED)
{
    struct converge c = two();
    assert_int_equal(disk_unlink(c.disks[1], &dir, "s", false), 0);
    make(c.disks[1], &dir, "s", &text, S_IFLNK | 0777, "where");
    expect(&c, "target of " LINK_TEXT " differs between bricks 0 and 1");
}

static void other_bytes_are_noticed(void **state UNUSED)
{
    struct converge c = two();
    assert_int_equal(disk_write(c.disks[1], &file, 5000, "x", 1), 0);
    expect(&c, "bytes of " FILE_TEXT " at 4864 differ between bricks 0 and 1");
}

static void another_size_is_noticed(void **state UNUSED)
{
    struct converge c = two();
    assert_int_equal(disk_truncate(c.disks[1], &file, 10004), 0);
    converge_check(&c);
    assert_int_equal(c.of_power, 1);
    expect(&c, "size of " FILE_TEXT " is 10003 on brick 0 and 10004 on brick 1");
}

static void other_attributes_are_noticed(void **state UNUSED)
{
    struct converge c = two();
    struct iatt a = { .uid = 5 };
    assert_int_equal(disk_set_attr(c.disks[1], &file, &a, ATTR_UID), 0);
    expect(&c, "attributes of " FILE_TEXT " differ: 100644 0:0 on brick 0, 100644 5:0 on brick 1");
}

static void another_mtime_is_noticed(void **state UNUSED)
{
    struct converge c = two();
    struct iatt a = { .mtime = 8 };
    assert_int_equal(disk_set_attr(c.disks[1], &file, &a, ATTR_MTIME), 0);
    expect(&c, "mtime of " FILE_TEXT " is 7.000000000 on brick 0 and 8.000000000 on brick 1");
}

static void an_xattr_too_many_is_noticed(void **state UNUSED)
{
    struct converge c = two();
    assert_int_equal(disk_set_xattr(c.disks[1], &dir, "user.more", "", 0), 0);
    expect(&c, "user.more of " DIR_TEXT " differs between bricks 0 and 1");
}

static void a_counter_that_stays_is_noticed(void **state UNUSED)
{
    struct converge c = two();
    assert_int_equal(disk_set_xattr(c.disks[1], &file, "trusted.afr.dirty", "\0\0\0\1\0\0\0\0\0\0\0\0", 12), 0);
    expect(&c, "brick 1: trusted.afr.dirty of " FILE_TEXT " is left at 1/0/0");
}

static void an_index_entry_that_stays_is_noticed(void **state UNUSED)
{
    struct converge c = two();
    struct gfid base = disk_index_base(), index = disk_index_gfid(1);
    assert_int_equal(disk_link(c.disks[0], &base, &index, FILE_TEXT), 0);
    expect(&c, "brick 0: " FILE_TEXT " stays in index directory dirty");
}

static void what_is_parked_is_noticed(void **state UNUSED)
{
    static const struct gfid anonymous = { { 0xa } };
    struct converge c = two();
    for (unsigned i = 0; i < 2; i++) {
        make(c.disks[i], &gfid_root, ".glusterfs-anonymous-inode-x", &anonymous, S_IFDIR | 0755, NULL);
        assert_int_equal(disk_rename(c.disks[i], &dir, "s", &anonymous, LINK_TEXT, 0, false), 0);
    }
    expect(&c, "brick 0: " LINK_TEXT " is left in the anonymous-inode directory");
}

static void an_inode_without_a_name_is_noticed(void **state UNUSED)
{
    struct converge c = two();
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(disk_unlink(c.disks[i], &dir, "s", i == 1), 0);
    expect(&c, "brick 1: no name leads to " LINK_TEXT);
}

static void data_on_the_arbiter_is_noticed_and_its_lack_is_not(void **state UNUSED)
{
    struct converge c = two();
    c.arbiter = 1;
    c.with_mtimes = false;
    assert_int_equal(disk_truncate(c.disks[1], &file, 0), 0);
    converge_check(&c);
    assert_int_equal(c.differences, 0);
    assert_int_equal(disk_write(c.disks[1], &file, 0, "x", 1), 0);
    expect(&c, FILE_TEXT " has 1 bytes on the arbiter");
}

static bool is_file(void *arg UNUSED, const struct gfid *gfid)
{
    return gfid_equal(gfid, &file);
}

static void a_split_brain_may_differ_and_others_may_not(void **state UNUSED)
{
    struct converge c = two();
    c.is_split = is_file;
    assert_int_equal(disk_write(c.disks[1], &file, 5000, "x", 1), 0);
    assert_int_equal(disk_set_xattr(c.disks[1], &file, "trusted.afr.dirty", "\0\0\0\1\0\0\0\0\0\0\0\0", 12), 0);
    converge_check(&c);
    assert_int_equal(c.differences, 0);
    assert_int_equal(disk_unlink(c.disks[1], &dir, "s", false), 0);
    expect(&c, "name s of " DIR_TEXT " is on brick 0 and not on brick 1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_bricks_are_equal),
        cmocka_unit_test(holes_read_as_zeros_whoever_wrote_them),
        cmocka_unit_test(a_name_too_many_is_noticed),
        cmocka_unit_test(a_missing_name_is_noticed),
        cmocka_unit_test(another_inode_under_the_name_is_noticed),
        cmocka_unit_test(another_type_is_noticed),
        cmocka_unit_test(another_target_is_noticed),
        cmocka_unit_test(other_bytes_are_noticed),
        cmocka_unit_test(another_size_is_noticed),
        cmocka_unit_test(other_attributes_are_noticed),
        cmocka_unit_test(another_mtime_is_noticed),
        cmocka_unit_test(an_xattr_too_many_is_noticed),
        cmocka_unit_test(a_counter_that_stays_is_noticed),
        cmocka_unit_test(an_index_entry_that_stays_is_noticed),
        cmocka_unit_test(what_is_parked_is_noticed),
        cmocka_unit_test(an_inode_without_a_name_is_noticed),
        cmocka_unit_test(data_on_the_arbiter_is_noticed_and_its_lack_is_not),
        cmocka_unit_test(a_split_brain_may_differ_and_others_may_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
