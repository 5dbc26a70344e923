/* unlink(), and files that are used on after their last name has gone. */
#define TOPIC "unlink"
#include "suite.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/xattr.h>

CASE(takes_a_file_away)
{
    make_file("f");
    OK(unlink("f"));
    GONE("f");
    FAILS(ENOENT, unlink("f"));
}

CASE(takes_a_symlink_away_and_not_its_target)
{
    make_file("f");
    OK(symlink("f", "s"));
    OK(unlink("s"));
    GONE("s");
    EXISTS("f");
}

CASE(takes_a_dangling_symlink_away)
{
    OK(symlink("missing", "s"));
    OK(unlink("s"));
    GONE("s");
}

CASE(takes_a_fifo_away)
{
    OK(mkfifo("p", 0644));
    OK(unlink("p"));
    GONE("p");
}

CASE(takes_a_device_away)
{
    NEEDS(FEATURE_DEVICES);
    OK(mknod("c", S_IFCHR | 0600, 0x103));
    OK(unlink("c"));
    GONE("c");
}

CASE(takes_a_socket_away)
{
    struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = "sock" };
    int fd = (int)OK(socket(AF_UNIX, SOCK_STREAM, 0));

    OK(bind(fd, (struct sockaddr *)&name, sizeof(name)));
    THAT(S_ISSOCK(stat_of("sock").st_mode));
    OK(unlink("sock"));
    GONE("sock");
}

CASE(of_a_directory_is_eisdir)
{
    make_dir("d");
    FAILS(EISDIR, unlink("d"));
    EXISTS("d");
}

CASE(of_dot_is_refused)
{
    make_dir("d");
    FAILS(EISDIR, unlink("d/."));
    FAILS(EISDIR, unlink("d/.."));
}

CASE(without_write_permission_on_the_directory_is_eacces)
{
    make_dir("d");
    make_file_mode("d/f", 0666);
    AS (ALICE, STAFF)
        FAILS(EACCES, unlink("d/f"));
    EXISTS("d/f");
}

CASE(needs_no_permission_on_the_file)
{
    make_dir_mode("d", 0777);
    make_file_mode("d/f", 0);
    AS (ALICE, STAFF)
        OK(unlink("d/f"));
    GONE("d/f");
}

CASE(in_a_sticky_directory_only_for_owners)
{
    make_dir("d");
    OK(chown("d", BOB, STAFF));
    OK(chmod("d", 01777));
    for (int i = 0; i < 4; i++) {
        char name[8];

        snprintf(name, sizeof(name), "d/%d", i);
        make_file_mode(name, 0666);
        OK(chown(name, ALICE, STAFF));
    }
    AS (ALICE + 5, STAFF)
        FAILS(EPERM, unlink("d/0"));
    AS (ALICE, STAFF)
        OK(unlink("d/0")); /* of the file */
    AS (BOB, STAFF)
        OK(unlink("d/1")); /* of the directory */
    OK(unlink("d/2"));
    EXISTS("d/3");
}

CASE(moves_the_times_of_the_directory)
{
    make_dir("d");
    make_file("d/f");
    MOVES("d", "mc", OK(unlink("d/f")));
}

CASE(that_fails_moves_no_time)
{
    make_dir("d");
    make_dir("d/e");
    MOVES("d", "", FAILS(EISDIR, unlink("d/e")));
}

CASE(of_one_of_two_names_moves_ctime_of_the_file)
{
    make_file("f");
    OK(link("f", "g"));
    MOVES("g", "c", OK(unlink("f")));
    NLINK_IS("g", 1);
}

CASE(of_one_of_two_names_keeps_the_other)
{
    make_file_with("f", "abc");
    OK(link("f", "g"));
    OK(unlink("f"));
    GONE("f");
    TEXT_IS("g", "abc");
}

CASE(frees_the_space_when_nobody_has_it_open)
{
    ino_t ino;

    make_pattern("f", 1 << 20);
    ino = stat_of("f").st_ino;
    OK(unlink("f"));
    make_file("f");
    SIZE_IS("f", 0);
    THAT(stat_of("f").st_ino != ino || stat_of("f").st_blocks == 0);
}

CASE(lets_the_name_be_used_again)
{
    for (int i = 0; i < 100; i++) {
        char text[16];

        snprintf(text, sizeof(text), "%d", i);
        make_file_with("f", text);
        TEXT_IS("f", text);
        OK(unlink("f"));
    }
    GONE("f");
}

CASE(lets_one_of_many_win)
{
    enum { PROCESSES = 6, ROUNDS = 50 };
    char won[PROCESSES * ROUNDS];
    ssize_t count = 0, r;
    int results[2];

    for (int round = 0; round < ROUNDS; round++) {
        char name[16];

        snprintf(name, sizeof(name), "f%d", round);
        make_file(name);
    }
    OK(pipe(results));
    for (int p = 0; p < PROCESSES; p++) {
        if (fork() != 0)
            continue;
        for (int round = 0; round < ROUNDS; round++) {
            char name[16];
            int gone;

            snprintf(name, sizeof(name), "f%d", round);
            gone = unlink(name);
            THAT(gone == 0 || errno == ENOENT);
            if (gone == 0)
                EQ(write(results[1], "x", 1), 1);
        }
        _exit(0);
    }
    close(results[1]);
    while ((r = read(results[0], won, sizeof(won))) > 0)
        count += r;
    EQ(count, ROUNDS);
}

/* ---- Open files without a name ---- */

/* An open file of 10,000 bytes of pattern whose name is gone. */
static int open_unlinked(void)
{
    int fd;

    make_pattern("gone", 10000);
    fd = (int)OK(open("gone", O_RDWR));
    OK(unlink("gone"));
    GONE("gone");
    return fd;
}

CASE(open_file_has_link_count_0)
{
    EQ(stat_fd(open_unlinked()).st_nlink, 0);
}

CASE(open_file_keeps_its_inode_number_and_size)
{
    struct stat before, after;
    int fd;

    make_pattern("f", 10000);
    fd = (int)OK(open("f", O_RDWR));
    before = stat_fd(fd);
    OK(unlink("f"));
    after = stat_fd(fd);
    EQ(after.st_ino, before.st_ino);
    EQ(after.st_dev, before.st_dev);
    EQ(after.st_size, 10000);
    EQ(after.st_mode, before.st_mode);
}

CASE(moves_ctime_of_an_open_file)
{
    struct stat before;
    int fd;

    make_file("f");
    fd = (int)OK(open("f", O_RDWR));
    before = stat_fd(fd);
    tick();
    OK(unlink("f"));
    THAT(time_cmp(stat_fd(fd).st_ctim, before.st_ctim) > 0);
    EQ(time_cmp(stat_fd(fd).st_mtim, before.st_mtim), 0);
}

CASE(open_file_can_be_read)
{
    int fd = open_unlinked();

    RANGE_IS_PATTERN(fd, 0, 10000);
}

CASE(open_file_can_be_written_and_extended)
{
    int fd = open_unlinked();

    EQ(pwrite(fd, "xyz", 3, 20000), 3);
    EQ(stat_fd(fd).st_size, 20003);
    OK(fsync(fd));
    RANGE_IS_PATTERN(fd, 0, 10000);
    RANGE_IS(fd, 10000, 20000, 0);
    RANGE_IS(fd, 20000, 20001, 'x');
}

CASE(open_file_can_be_truncated_and_grown)
{
    int fd = open_unlinked();

    OK(ftruncate(fd, 5));
    EQ(stat_fd(fd).st_size, 5);
    OK(ftruncate(fd, 10000000));
    EQ(stat_fd(fd).st_size, 10000000);
    EQ(pwrite(fd, "end", 3, 9000000), 3);
    RANGE_IS(fd, 5, 8000, 0);
    RANGE_IS(fd, 9000000, 9000001, 'e');
}

CASE(open_file_can_be_allocated_and_punched)
{
    int fd = open_unlinked();

    NEEDS(FEATURE_PUNCH);
    OK(fallocate(fd, 0, 0, 100000));
    EQ(stat_fd(fd).st_size, 100000);
    OK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096));
    RANGE_IS(fd, 0, 4096, 0);
    RANGE_IS_PATTERN(fd, 4096, 10000);
}

CASE(open_file_takes_mode_owner_and_times)
{
    struct timespec times[2] = { { 1000, 5 }, { 2000, 6 } };
    int fd = open_unlinked();

    OK(fchmod(fd, 0640));
    OK(fchown(fd, ALICE, STAFF));
    OK(futimens(fd, times));
    EQ(stat_fd(fd).st_mode & 07777, 0640);
    EQ(stat_fd(fd).st_uid, ALICE);
    EQ(stat_fd(fd).st_gid, STAFF);
    EQ(stat_fd(fd).st_mtim.tv_sec, 2000);
    EQ(stat_fd(fd).st_mtim.tv_nsec, 6);
    EQ(stat_fd(fd).st_nlink, 0);
}

CASE(open_file_takes_xattrs)
{
    char value[8];
    int fd = open_unlinked();

    NEEDS(FEATURE_USER_XATTR);
    OK(fsetxattr(fd, "user.a", "abc", 3, 0));
    EQ(fgetxattr(fd, "user.a", value, sizeof(value)), 3);
    EQ(flistxattr(fd, NULL, 0), sizeof("user.a"));
    OK(fremovexattr(fd, "user.a"));
    FAILS(ENODATA, fgetxattr(fd, "user.a", value, sizeof(value)));
}

CASE(open_file_takes_locks)
{
    struct flock lock = { .l_type = F_WRLCK };
    int fd = open_unlinked();

    OK(fcntl(fd, F_SETLK, &lock));
    IN_CHILD ()
        FAILS(EAGAIN, fcntl(fd, F_SETLK, &lock));
}

CASE(open_file_can_be_mapped)
{
    int fd = open_unlinked();
    char *map;

    NEEDS(FEATURE_SHARED_MMAP);
    map = mmap(NULL, 10000, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    THAT(map != MAP_FAILED);
    EQ((uint8_t)map[9999], pattern_byte(9999));
    map[0] = 'm';
    OK(msync(map, 10000, MS_SYNC));
    RANGE_IS(fd, 0, 1, 'm');
}

CASE(open_file_is_shared_with_a_child)
{
    int fd = open_unlinked();

    IN_CHILD () {
        EQ(pwrite(fd, "child", 5, 0), 5);
    }
    RANGE_IS(fd, 0, 1, 'c');
    RANGE_IS_PATTERN(fd, 5, 10000);
}

CASE(open_file_does_not_keep_its_directory)
{
    int fd;

    make_dir("d");
    make_file_with("d/f", "abc");
    fd = (int)OK(open("d/f", O_RDWR));
    OK(unlink("d/f"));
    OK(rmdir("d"));
    GONE("d");
    EQ(pwrite(fd, "x", 1, 3), 1);
    EQ(stat_fd(fd).st_size, 4);
}

CASE(open_file_leaves_no_entry_behind)
{
    int fd;

    make_dir("d");
    make_file("d/f");
    fd = (int)OK(open("d/f", O_RDWR));
    OK(unlink("d/f"));
    EQ(write(fd, "x", 1), 1);
    OK(rmdir("d")); /* would be refused if the file had only been renamed */
}

CASE(open_file_is_apart_from_a_new_one_of_its_name)
{
    int old;

    make_file_with("f", "old");
    old = (int)OK(open("f", O_RDWR));
    OK(unlink("f"));
    make_file_with("f", "new!");
    EQ(stat_fd(old).st_size, 3);
    THAT(stat_fd(old).st_ino != stat_of("f").st_ino);
    EQ(pwrite(old, "OLD", 3, 0), 3);
    TEXT_IS("f", "new!");
    NLINK_IS("f", 1);
}

CASE(open_file_with_another_name_has_link_count_1)
{
    int fd;

    make_file("f");
    OK(link("f", "g"));
    fd = (int)OK(open("f", O_RDWR));
    OK(unlink("f"));
    EQ(stat_fd(fd).st_nlink, 1);
    EQ(write(fd, "x", 1), 1);
    TEXT_IS("g", "x");
}

CASE(many_open_files_without_names)
{
    enum { COUNT = 200 };
    int fds[COUNT];

    for (int i = 0; i < COUNT; i++) {
        fds[i] = (int)OK(open("same", O_CREAT | O_EXCL | O_RDWR, 0644));
        EQ(write(fds[i], &i, sizeof(i)), sizeof(i));
        OK(unlink("same"));
    }
    for (int i = 0; i < COUNT; i++) {
        int value;

        EQ(pread(fds[i], &value, sizeof(value), 0), sizeof(value));
        EQ(value, i);
        EQ(stat_fd(fds[i]).st_nlink, 0);
    }
}

CASE(link_to_an_open_file_without_a_name_is_enoent)
{
    int fd = open_unlinked();
    char self[64];

    snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
    FAILS(ENOENT, linkat(AT_FDCWD, self, AT_FDCWD, "again", AT_SYMLINK_FOLLOW));
}

CASE(reopening_an_open_file_without_a_name_through_proc_works)
{
    int fd = open_unlinked(), again;
    char self[64];

    snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
    again = (int)OK(open(self, O_RDONLY));
    RANGE_IS_PATTERN(again, 0, 10000);
    EQ(stat_fd(again).st_nlink, 0);
}
