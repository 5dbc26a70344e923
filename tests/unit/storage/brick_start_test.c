/* What a brick says when it will not start. */
#include "unit/storage/brick_fixture.h"
#include <stdio.h>
#include <sys/file.h>
#include <sys/mount.h>

#define VOLUME_ID "0fe76aed-4e1d-4202-acfa-b977b8c8a8b3"
static const uint8_t volume_id[16] = { 0x0f, 0xe7, 0x6a, 0xed, 0x4e, 0x1d, 0x42, 0x02,
                                       0xac, 0xfa, 0xb9, 0x77, 0xb8, 0xc8, 0xa8, 0xb3 };

/* The sentence, with %s for the brick's directory. */
#define assert_says(t, fmt, ...)                                                                     \
    do {                                                                                             \
        char want_[512];                                                                             \
        snprintf(want_, sizeof want_, "section \"web-posix\" (storage/posix): " fmt, ##__VA_ARGS__); \
        assert_string_equal(want_, (t)->err.text);                                                   \
    } while (0)

BRICK_TEST(missing_directory)
{
    assert_int_equal(0, rmdir(t->dir));
    assert_int_equal(-ENOENT, brick_try(t, NULL));
    assert_says(t,
                "brick directory %s does not exist; make it, mount what belongs there, or correct 'option directory'",
                t->dir);
    assert_int_equal(0, mkdir(t->dir, 0755));
}

BRICK_TEST(file_instead_of_a_directory)
{
    assert_int_equal(0, rmdir(t->dir));
    assert_int_equal(0, close(open(t->dir, O_CREAT | O_WRONLY, 0644)));
    assert_int_equal(-ENOTDIR, brick_try(t, NULL));
    assert_says(t, "%s is not a directory; 'option directory' must name one", t->dir);
}

BRICK_TEST(without_a_directory_option)
{
    SCOPED(dict_unref) struct dict *none = dict_new();
    struct graph *g = graph_new(t->env);
    assert_int_equal(-EINVAL, graph_push(g, &posix_class, "web-posix", none, NULL, &t->err));
    assert_non_null(strstr(t->err.text, "there is no 'option directory': it names the brick's path"));
    graph_free(g);
}

BRICK_TEST(a_way_to_sync_that_does_not_exist_here_is_named)
{
    brick_start(t, "batch-fsync-mode", "syncfs", NULL);
    assert_non_null(strstr(brick_log(t), "batch-fsync-mode syncfs has no effect"));
    brick_stop(t);
}

BRICK_TEST(volume_id_missing)
{
    assert_int_equal(-EINVAL, brick_try(t, "volume-id", VOLUME_ID, NULL));
    assert_says(t,
                "brick directory %s carries no volume id, so it may be the empty mount point of a disk that is not "
                "mounted; mount it, or if it is the right place: setfattr -n trusted.glusterfs.volume-id -v 0x<volume "
                "id without dashes> %s",
                t->dir, t->dir);
    assert_false(on_brick(t, ".glusterfs"));
}

BRICK_TEST(volume_id_of_another_volume)
{
    assert_int_equal(0, setxattr(t->dir, "trusted.glusterfs.volume-id", volume_id, 16, 0));
    assert_int_equal(-EINVAL, brick_try(t, "volume-id", "11111111-2222-3333-4444-555555555555", NULL));
    assert_says(t,
                "brick directory %s belongs to volume " VOLUME_ID ", not to 11111111-2222-3333-4444-555555555555; "
                "correct 'option directory' or 'option volume-id'",
                t->dir);
    brick_start(t, "volume-id", VOLUME_ID, NULL);
}

BRICK_TEST(volume_id_of_wrong_length)
{
    assert_int_equal(0, setxattr(t->dir, "trusted.glusterfs.volume-id", volume_id, 9, 0));
    assert_int_equal(-EINVAL, brick_try(t, "volume-id", VOLUME_ID, NULL));
    assert_says(t, "volume id of brick directory %s is 9 bytes long instead of 16", t->dir);
    assert_int_equal(-EINVAL, brick_try(t, "volume-id", "web", NULL));
    assert_says(t, "'web' is not a volume id (option volume-id of brick %s takes a UUID)", t->dir);
}

BRICK_TEST(directory_inside_a_brick)
{
    assert_int_equal(0, setxattr(t->dir, "trusted.gfid", volume_id, 16, 0));
    assert_int_equal(-EINVAL, brick_try(t, NULL));
    assert_says(t,
                "brick directory %s is not the root of a brick but something inside one (its gfid is " VOLUME_ID
                "); 'option directory' must name the brick's top",
                t->dir);
}

BRICK_TEST(root_handle_of_another_brick)
{
    assert_int_equal(0, mkdir(brick_path(t, ".glusterfs"), 0700));
    assert_int_equal(0, mkdir(brick_path(t, ".glusterfs/00"), 0700));
    assert_int_equal(0, mkdir(brick_path(t, ".glusterfs/00/00"), 0700));
    assert_int_equal(0, symlink("/", brick_path(t, ".glusterfs/00/00/00000000-0000-0000-0000-000000000001")));
    assert_int_equal(-EINVAL, brick_try(t, NULL));
    assert_says(t,
                "%s/.glusterfs/00/00/00000000-0000-0000-0000-000000000001 does not lead back to the brick's top; is "
                ".glusterfs of another brick mounted or copied here?",
                t->dir);
}

BRICK_TEST(served_already)
{
    brick_start(t, NULL);
    int fd = open(brick_path(t, ".glusterfs"), O_RDONLY | O_DIRECTORY);
    assert_int_not_equal(0, flock(fd, LOCK_EX | LOCK_NB));
    close(fd);
    brick_stop(t);
    fd = open(brick_path(t, ".glusterfs"), O_RDONLY | O_DIRECTORY);
    assert_int_equal(0, flock(fd, LOCK_EX | LOCK_NB));
    assert_int_equal(-EBUSY, brick_try(t, NULL));
    assert_says(t, "brick %s is already served by another process; stop that one first", t->dir);
    close(fd);
}

#define MOUNT_OR_SKIP(t, ...)                              \
    do {                                                   \
        if (!brick_mount(__VA_ARGS__)) {                   \
            print_message("# needs the right to mount\n"); \
            return;                                        \
        }                                                  \
    } while (0)

BRICK_TEST(read_only_file_system)
{
    MOUNT_OR_SKIP(t, NULL, t->dir, t->dir, MS_BIND, NULL);
    assert_int_equal(0, mount(NULL, t->dir, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL));
    assert_int_equal(-EROFS, brick_try(t, NULL));
    assert_says(t,
                "brick directory %s is on a file system mounted read-only; mount it read-write (after checking why it "
                "is not)",
                t->dir);
    assert_int_equal(0, umount(t->dir));
}

BRICK_TEST(file_system_without_xattrs)
{
    MOUNT_OR_SKIP(t, "ramfs", "none", t->dir, 0, NULL);
    assert_int_equal(-EOPNOTSUPP, brick_try(t, NULL));
    assert_says(t,
                "file system of brick directory %s does not support extended attributes; use one that does (xfs, ext4, "
                "btrfs), with user_xattr if it is an option",
                t->dir);
    assert_int_equal(0, umount(t->dir));
}

BRICK_TEST(full_file_system)
{
    MOUNT_OR_SKIP(t, "tmpfs", "none", t->dir, 0, "nr_inodes=8");
    if (getxattr(t->dir, "user.x", NULL, 0) < 0 && errno == EOPNOTSUPP) {
        print_message("# this kernel's tmpfs has no user xattrs\n");
        umount(t->dir);
        return;
    }
    assert_int_equal(-ENOSPC, brick_try(t, NULL));
    assert_says(
        t,
        "file system of brick directory %s is full: there is no room for the brick's own files; free some space "
        "and start again",
        t->dir);
    assert_int_equal(0, umount(t->dir));
}

BRICK_TEST(name_space_that_does_not_fit_the_brick)
{
    brick_start(t, NULL);
    brick_stop(t);
    assert_int_equal(-EINVAL, brick_try(t, "xattr-namespace", "user", NULL));
    assert_says(t, "brick %s was written with trusted.* attributes, but option xattr-namespace is user; set it to auto",
                t->dir);
}

BRICK_TEST(files_of_the_last_run_without_a_name_are_removed)
{
    brick_start(t, NULL);
    brick_stop(t);
    const char *left = ".glusterfs/unlink/11111111-2222-3333-4444-000000000001";
    assert_int_equal(0, close(open(brick_path(t, "%s", left), O_CREAT | O_WRONLY, 0644)));
    brick_start(t, NULL);
    assert_false(on_brick(t, left));
}

BRICK_TEST(health_check_writes_its_time)
{
    struct stat st;
    brick_start(t, "health-check-interval", "1", NULL);
    for (int i = 0; i < 200 && (stat(brick_path(t, ".glusterfs/health_check"), &st) < 0 || st.st_size == 0); i++)
        assert_int_equal(0, fiber_sleep_ms(NULL, 10));
    assert_int_equal(25, st.st_size);
    assert_int_equal(0100644, st.st_mode);
}

static const char *failed_because;

static void on_event(struct translator *me, unsigned child, const struct event *event)
{
    if (event->kind == EVENT_STORAGE_FAILED)
        failed_because = event->text;
}

static const struct translator_class listener_class = {
    .type = "test/listener", .children_min = 1, .children_max = 1, .notify = on_event
};

static void push_listener(struct brick_test *t)
{
    SCOPED(dict_unref) struct dict *none = dict_new();
    assert_int_equal(0, graph_push(t->graph, &listener_class, "listener", none, &t->me, &t->err));
}

BRICK_TEST(health_check_that_fails_stops_the_brick)
{
    failed_because = NULL;
    brick_start(t, "health-check-interval", "0", NULL);
    brick_stop(t);
    assert_int_equal(0, mkdir(brick_path(t, ".glusterfs/health_check"), 0755)); /* cannot be written as a file */
    t->push = push_listener;
    brick_start(t, "health-check-interval", "1", NULL);
    for (int i = 0; i < 200 && !failed_because; i++)
        assert_int_equal(0, fiber_sleep_ms(NULL, 10));
    assert_string_equal("EISDIR", failed_because);
    assert_non_null(strstr(brick_log(t), "[brick-failed]"));
}

#define T(name) cmocka_unit_test(name)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        T(missing_directory),
        T(file_instead_of_a_directory),
        T(without_a_directory_option),
        T(a_way_to_sync_that_does_not_exist_here_is_named),
        T(volume_id_missing),
        T(volume_id_of_another_volume),
        T(volume_id_of_wrong_length),
        T(directory_inside_a_brick),
        T(root_handle_of_another_brick),
        T(served_already),
        T(read_only_file_system),
        T(file_system_without_xattrs),
        T(full_file_system),
        T(name_space_that_does_not_fit_the_brick),
        T(files_of_the_last_run_without_a_name_are_removed),
        T(health_check_writes_its_time),
        T(health_check_that_fails_stops_the_brick),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
