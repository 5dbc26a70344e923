/* The simulated disk itself: what survives a power cut and what does not. */
#include "core/mem.h"
#include "sim/disk.h"
#include "unit/unit.h"

static const struct gfid file = { { [15] = 7 } };

static uint64_t zero(void *arg UNUSED)
{
    return 0;
}

static uint64_t all(void *arg)
{
    return *(uint64_t *)arg;
}

static struct disk *disk_with_file(void)
{
    struct disk *d = disk_new();
    struct iatt a = { .gfid = file, .mode = S_IFREG | 0644 };
    assert_int_equal(disk_make(d, &gfid_root, "f", &a, NULL, NULL), 0);
    return d;
}

static void unsynced_changes_are_lost_in_a_power_cut(void **state UNUSED)
{
    struct disk *d = disk_with_file();
    disk_power_cut(d, zero, NULL);
    assert_null(disk_child(d, &gfid_root, "f"));
    disk_free(d);
}

static void synced_data_survives_and_later_data_does_not(void **state UNUSED)
{
    struct disk *d = disk_with_file();
    char text[8] = "";
    assert_int_equal(disk_write(d, &file, 0, "one", 3), 0);
    disk_sync(d, &file);
    assert_int_equal(disk_write(d, &file, 0, "two", 3), 0);
    assert_int_equal(disk_read(disk_find(d, &file), 0, text, 8), 3);
    assert_string_equal(text, "two");
    disk_power_cut(d, zero, NULL);
    memset(text, 0, sizeof(text));
    assert_int_equal(disk_read(disk_find(d, &file), 0, text, 8), 3);
    assert_string_equal(text, "one");
    disk_free(d);
}

static void data_that_was_taken_away_does_not_come_back(void **state UNUSED)
{
    struct disk *d = disk_with_file();
    struct gfid other = { { [15] = 8 } };
    char text[8] = "";
    assert_int_equal(disk_write(d, &file, 0, "abcdef", 6), 0);
    assert_int_equal(disk_punch(d, &file, 1, 2), 0);
    assert_int_equal(disk_truncate(d, &file, 5), 0);
    disk_sync(d, &other); /* punch and truncation are durable now, the bytes still wait */
    disk_sync(d, &file);
    disk_power_cut(d, zero, NULL);
    assert_int_equal(disk_read(disk_find(d, &file), 0, text, 8), 5);
    assert_memory_equal(text, "a\0\0de\0", 6);
    disk_free(d);
}

static void sync_of_one_file_keeps_all_metadata_but_not_other_data(void **state UNUSED)
{
    struct disk *d = disk_with_file();
    struct gfid other = { { [15] = 8 } };
    struct iatt a = { .gfid = other, .mode = S_IFREG | 0644 };
    assert_int_equal(disk_make(d, &gfid_root, "g", &a, NULL, NULL), 0);
    assert_int_equal(disk_write(d, &other, 0, "lost", 4), 0);
    assert_int_equal(disk_set_xattr(d, &other, "user.k", "v", 1), 0);
    disk_sync(d, &file);
    disk_power_cut(d, zero, NULL);
    struct iatt seen;
    disk_stat(disk_child(d, &gfid_root, "g"), &seen);
    assert_int_equal(seen.size, 0);
    assert_true(dict_has(disk_xattrs(disk_find(d, &other)), "user.k"));
    disk_free(d);
}

static void metadata_survives_in_order(void **state UNUSED)
{
    struct disk *d = disk_with_file();
    disk_sync_all(d);
    assert_int_equal(disk_link(d, &file, &gfid_root, "second"), 0);
    assert_int_equal(disk_unlink(d, &gfid_root, "f", false), 0);
    uint64_t prefix = 1; /* of two: the link, not the unlink */
    disk_power_cut(d, all, &prefix);
    assert_non_null(disk_child(d, &gfid_root, "f"));
    assert_non_null(disk_child(d, &gfid_root, "second"));
    struct iatt seen;
    disk_stat(disk_find(d, &file), &seen);
    assert_int_equal(seen.nlink, 2);
    disk_free(d);
}

static void rename_answers_like_a_file_system(void **state UNUSED)
{
    struct disk *d = disk_with_file();
    struct gfid dir = { { [15] = 9 } }, below = { { [15] = 10 } };
    struct iatt a = { .gfid = dir, .mode = S_IFDIR | 0755 }, b = { .gfid = below, .mode = S_IFDIR | 0755 };
    assert_int_equal(disk_make(d, &gfid_root, "d", &a, NULL, NULL), 0);
    assert_int_equal(disk_make(d, &dir, "e", &b, NULL, NULL), 0);
    assert_int_equal(disk_rename(d, &gfid_root, "f", &gfid_root, "d", 0, false), -EISDIR);
    assert_int_equal(disk_rename(d, &gfid_root, "d", &gfid_root, "f", 0, false), -ENOTDIR);
    assert_int_equal(disk_rename(d, &gfid_root, "d", &below, "x", 0, false), -EINVAL);
    assert_int_equal(disk_rmdir(d, &gfid_root, "d"), -ENOTEMPTY);
    assert_int_equal(disk_rename(d, &dir, "e", &gfid_root, "e", 0, false), 0);
    assert_int_equal(disk_rmdir(d, &gfid_root, "d"), 0);
    disk_free(d);
}

static void a_tree_goes_with_all_that_is_in_it(void **state UNUSED)
{
    struct disk *d = disk_with_file();
    struct gfid dir = { { [15] = 9 } }, below = { { [15] = 10 } }, leaf = { { [15] = 11 } };
    struct iatt a = { .gfid = dir, .mode = S_IFDIR | 0755 }, b = { .gfid = below, .mode = S_IFDIR | 0755 };
    struct iatt c = { .gfid = leaf, .mode = S_IFREG | 0644 }, seen;
    assert_int_equal(disk_make(d, &gfid_root, "d", &a, NULL, NULL), 0);
    assert_int_equal(disk_make(d, &dir, "e", &b, NULL, NULL), 0);
    assert_int_equal(disk_make(d, &below, "g", &c, NULL, NULL), 0);
    assert_int_equal(disk_link(d, &file, &below, "second"), 0);
    assert_int_equal(disk_remove_tree(d, &gfid_root, "f"), -ENOTDIR);
    assert_int_equal(disk_remove_tree(d, &gfid_root, "d"), 0);
    assert_null(disk_find(d, &dir));
    assert_null(disk_find(d, &below));
    assert_null(disk_find(d, &leaf));
    disk_stat(disk_child(d, &gfid_root, "f"), &seen);
    assert_int_equal(seen.nlink, 1);
    disk_free(d);
}

static void unlinked_but_open_nodes_live_until_dropped(void **state UNUSED)
{
    struct disk *d = disk_with_file();
    assert_int_equal(disk_unlink(d, &gfid_root, "f", true), 0);
    assert_int_equal(disk_write(d, &file, 0, "x", 1), 0);
    disk_drop(d, &file);
    assert_null(disk_find(d, &file));
    disk_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unsynced_changes_are_lost_in_a_power_cut),
        cmocka_unit_test(synced_data_survives_and_later_data_does_not),
        cmocka_unit_test(data_that_was_taken_away_does_not_come_back),
        cmocka_unit_test(sync_of_one_file_keeps_all_metadata_but_not_other_data),
        cmocka_unit_test(metadata_survives_in_order),
        cmocka_unit_test(rename_answers_like_a_file_system),
        cmocka_unit_test(a_tree_goes_with_all_that_is_in_it),
        cmocka_unit_test(unlinked_but_open_nodes_live_until_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
