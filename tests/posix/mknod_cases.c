/* mknod(), mkfifo() and sockets. */
#define TOPIC "mknod"
#include "suite.h"

#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

CASE(fifo_is_made)
{
    OK(mkfifo("p", 0644));
    THAT(S_ISFIFO(stat_of("p").st_mode));
    MODE_IS("p", 0644);
    NLINK_IS("p", 1);
    SIZE_IS("p", 0);
}

CASE(regular_file_is_made)
{
    OK(mknod("f", S_IFREG | 0640, 0));
    THAT(S_ISREG(stat_of("f").st_mode));
    MODE_IS("f", 0640);
    TEXT_IS("f", "");
}

CASE(type_0_is_a_regular_file)
{
    OK(mknod("f", 0600, 0));
    THAT(S_ISREG(stat_of("f").st_mode));
}

CASE(socket_is_made)
{
    OK(mknod("s", S_IFSOCK | 0600, 0));
    THAT(S_ISSOCK(stat_of("s").st_mode));
    MODE_IS("s", 0600);
}

CASE(devices_keep_their_numbers)
{
    NEEDS(FEATURE_DEVICES);
    OK(mknod("c", S_IFCHR | 0600, makedev(1, 3)));
    OK(mknod("b", S_IFBLK | 0640, makedev(7, 200)));
    OK(mknod("big", S_IFCHR | 0600, makedev(300, 70000)));
    THAT(S_ISCHR(stat_of("c").st_mode));
    THAT(S_ISBLK(stat_of("b").st_mode));
    EQ(stat_of("c").st_rdev, makedev(1, 3));
    EQ(stat_of("b").st_rdev, makedev(7, 200));
    EQ(stat_of("big").st_rdev, makedev(300, 70000));
    MODE_IS("b", 0640);
}

CASE(device_by_another_user_is_eperm)
{
    OK(chmod(".", 0777));
    AS (ALICE, STAFF) {
        FAILS(EPERM, mknod("c", S_IFCHR | 0600, makedev(1, 3)));
        FAILS(EPERM, mknod("b", S_IFBLK | 0600, makedev(7, 0)));
    }
    GONE("c");
}

CASE(directory_is_refused)
{
    FAILS(EPERM, mknod("d", S_IFDIR | 0755, 0));
}

CASE(symlink_is_refused)
{
    FAILS(EINVAL, mknod("s", S_IFLNK | 0777, 0));
}

CASE(existing_name_is_eexist)
{
    make_file("f");
    make_dir("d");
    OK(symlink("missing", "s"));
    FAILS(EEXIST, mkfifo("f", 0644));
    FAILS(EEXIST, mkfifo("d", 0644));
    FAILS(EEXIST, mkfifo("s", 0644));
    FAILS(EEXIST, mknod("f", S_IFREG | 0644, 0));
}

CASE(umask_is_applied)
{
    umask(0077);
    OK(mkfifo("p", 0666));
    MODE_IS("p", 0600);
    OK(mknod("f", S_IFREG | 0777, 0));
    MODE_IS("f", 0700);
}

CASE(belongs_to_the_caller)
{
    OK(chmod(".", 0777));
    AS (ALICE, STAFF)
        OK(mkfifo("p", 0644));
    OWNER_IS("p", ALICE, STAFF);
}

CASE(in_a_setgid_directory_takes_its_group)
{
    make_dir("d");
    OK(chown("d", 0, GUESTS));
    OK(chmod("d", 02777));
    AS (ALICE, STAFF)
        OK(mkfifo("d/p", 0644));
    OWNER_IS("d/p", ALICE, GUESTS);
}

CASE(without_write_permission_is_eacces)
{
    make_dir("d");
    AS (ALICE, STAFF)
        FAILS(EACCES, mkfifo("d/p", 0644));
}

CASE(moves_the_times_of_the_directory)
{
    make_dir("d");
    MOVES("d", "mc", OK(mkfifo("d/p", 0644)));
}

CASE(null_device_on_the_file_system_works)
{
    int fd;

    NEEDS(FEATURE_DEVICES);
    OK(mknod("null", S_IFCHR | 0666, makedev(1, 3)));
    fd = open("null", O_RDWR);
    if (fd < 0 && errno == EACCES)
        suite_skip("mounted with nodev");
    THAT(fd >= 0);
    EQ(write(fd, "abc", 3), 3);
    EQ(read(fd, (char[3]) { 0 }, 3), 0);
    SIZE_IS("null", 0);
}

CASE(two_processes_talk_through_a_fifo)
{
    struct steps s;
    char text[6] = "";
    int fd;

    OK(mkfifo("p", 0644));
    if (steps_fork(&s)) {
        fd = (int)OK(open("p", O_WRONLY));
        EQ(write(fd, "hello", 5), 5);
        suite_leave();
    }
    fd = (int)OK(open("p", O_RDONLY));
    EQ(read(fd, text, 5), 5);
    STR_EQ(text, "hello");
    steps_end(&s);
}

CASE(two_processes_talk_through_a_socket)
{
    struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = "sock" };
    int server = (int)OK(socket(AF_UNIX, SOCK_STREAM, 0));
    char text[6] = "";

    OK(bind(server, (struct sockaddr *)&name, sizeof(name)));
    OK(listen(server, 1));
    IN_CHILD () {
        int fd = (int)OK(socket(AF_UNIX, SOCK_STREAM, 0));

        OK(connect(fd, (struct sockaddr *)&name, sizeof(name)));
        EQ(write(fd, "hello", 5), 5);
    }
    EQ(read((int)OK(accept(server, NULL, NULL)), text, 5), 5);
    STR_EQ(text, "hello");
}

CASE(special_files_take_mode_owner_and_times)
{
    struct timespec times[2] = { { 100, 1 }, { 200, 2 } };

    OK(mkfifo("p", 0644));
    OK(chmod("p", 0600));
    OK(chown("p", ALICE, STAFF));
    OK(utimensat(AT_FDCWD, "p", times, 0));
    MODE_IS("p", 0600);
    OWNER_IS("p", ALICE, STAFF);
    EQ(stat_of("p").st_mtim.tv_sec, 200);
    EQ(stat_of("p").st_atim.tv_nsec, 1);
    THAT(S_ISFIFO(stat_of("p").st_mode));
}
