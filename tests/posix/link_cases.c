/* link(), symlink() and readlink(). */
#define TOPIC "link"
#include "suite.h"

#include <sys/time.h>

CASE(gives_a_second_name)
{
    make_file_with("f", "abc");
    OK(link("f", "g"));
    NLINK_IS("f", 2);
    NLINK_IS("g", 2);
    EQ(stat_of("f").st_ino, stat_of("g").st_ino);
    TEXT_IS("g", "abc");
}

CASE(names_share_content_mode_and_owner)
{
    int fd;

    make_file("f");
    OK(link("f", "g"));
    fd = (int)OK(open("g", O_WRONLY));
    EQ(write(fd, "abc", 3), 3);
    OK(chmod("g", 0600));
    OK(chown("g", ALICE, STAFF));
    TEXT_IS("f", "abc");
    MODE_IS("f", 0600);
    OWNER_IS("f", ALICE, STAFF);
}

CASE(names_in_two_directories)
{
    make_dir("a");
    make_dir("b");
    make_file_with("a/f", "abc");
    OK(link("a/f", "b/g"));
    OK(unlink("a/f"));
    TEXT_IS("b/g", "abc");
    NLINK_IS("b/g", 1);
    OK(rmdir("a"));
}

CASE(moves_ctime_of_the_file_and_times_of_the_directory)
{
    make_dir("d");
    make_file("f");
    MOVES("f", "c", OK(link("f", "d/g")));
    MOVES("d", "mc", OK(link("f", "d/h")));
}

CASE(that_fails_moves_no_time)
{
    make_dir("d");
    make_file("f");
    make_file("d/g");
    MOVES("f", "", FAILS(EEXIST, link("f", "d/g")));
    MOVES("d", "", FAILS(EEXIST, link("f", "d/g")));
}

CASE(to_an_existing_name_is_eexist)
{
    make_file("f");
    make_file("g");
    make_dir("d");
    OK(symlink("missing", "s"));
    FAILS(EEXIST, link("f", "g"));
    FAILS(EEXIST, link("f", "d"));
    FAILS(EEXIST, link("f", "s"));
    FAILS(EEXIST, link("f", "f"));
    NLINK_IS("f", 1);
}

CASE(of_a_missing_name_is_enoent)
{
    FAILS(ENOENT, link("missing", "g"));
    GONE("g");
}

CASE(of_a_directory_is_eperm)
{
    make_dir("d");
    FAILS(EPERM, link("d", "e"));
    NLINK_IS("d", 2);
}

CASE(of_a_symlink_names_the_symlink)
{
    OK(symlink("target", "s"));
    OK(link("s", "t"));
    THAT(S_ISLNK(stat_of("t").st_mode));
    EQ(stat_of("s").st_ino, stat_of("t").st_ino);
    NLINK_IS("s", 2);
}

CASE(of_a_symlink_can_follow_it)
{
    make_file("f");
    OK(symlink("f", "s"));
    OK(linkat(AT_FDCWD, "s", AT_FDCWD, "g", AT_SYMLINK_FOLLOW));
    EQ(stat_of("g").st_ino, stat_of("f").st_ino);
    NLINK_IS("f", 2);
}

CASE(of_a_fifo_works)
{
    OK(mkfifo("p", 0644));
    OK(link("p", "q"));
    THAT(S_ISFIFO(stat_of("q").st_mode));
    NLINK_IS("p", 2);
}

CASE(of_a_device_works)
{
    NEEDS(FEATURE_DEVICES);
    OK(mknod("c", S_IFCHR | 0600, 0x103));
    OK(link("c", "e"));
    EQ(stat_of("e").st_rdev, 0x103);
    NLINK_IS("c", 2);
}

CASE(without_write_permission_on_the_directory_is_eacces)
{
    make_dir("d");
    make_dir_mode("e", 0777);
    make_file("e/f");
    OK(chown("e/f", ALICE, STAFF));
    AS (ALICE, STAFF)
        FAILS(EACCES, link("e/f", "d/g"));
    GONE("d/g");
}

CASE(by_the_owner_works)
{
    make_dir_mode("d", 0777);
    make_file("d/f");
    OK(chown("d/f", ALICE, STAFF));
    AS (ALICE, STAFF)
        OK(link("d/f", "d/g"));
    NLINK_IS("d/f", 2);
}

CASE(ninety_names_work)
{
    char name[16];

    make_file("f");
    for (int i = 2; i <= 90; i++) {
        snprintf(name, sizeof(name), "f%d", i);
        OK(link("f", name));
        NLINK_IS(name, i);
    }
    for (int i = 2; i <= 90; i++) {
        snprintf(name, sizeof(name), "f%d", i);
        OK(unlink(name));
    }
    NLINK_IS("f", 1);
}

CASE(to_a_name_that_was_unlinked_works)
{
    make_file("f");
    for (int i = 0; i < 20; i++) {
        OK(link("f", "g"));
        NLINK_IS("f", 2);
        OK(unlink("g"));
        NLINK_IS("f", 1);
    }
}

CASE(of_an_open_file_is_seen_by_fstat)
{
    int fd = (int)OK(open("f", O_CREAT | O_RDWR, 0644));

    OK(link("f", "g"));
    EQ(stat_fd(fd).st_nlink, 2);
    OK(unlink("f"));
    EQ(stat_fd(fd).st_nlink, 1);
    OK(unlink("g"));
    EQ(stat_fd(fd).st_nlink, 0);
}

/* ---- Symbolic links ---- */

static void text_is(const char *path, const char *text)
{
    static char have[5000];
    ssize_t size = OK(readlink(path, have, sizeof(have) - 1));

    have[size] = 0;
    STR_EQ(have, text);
}

CASE(symlink_keeps_its_text)
{
    OK(symlink("some/where/../else", "s"));
    text_is("s", "some/where/../else");
    THAT(S_ISLNK(stat_of("s").st_mode));
}

CASE(symlink_has_size_of_its_text_and_mode_0777)
{
    OK(symlink("12345", "s"));
    SIZE_IS("s", 5);
    MODE_IS("s", 0777);
    NLINK_IS("s", 1);
}

CASE(symlink_ignores_the_umask)
{
    umask(077);
    OK(symlink("x", "s"));
    MODE_IS("s", 0777);
}

CASE(symlink_belongs_to_the_caller)
{
    OK(chmod(".", 0777));
    AS (ALICE, STAFF)
        OK(symlink("x", "s"));
    OWNER_IS("s", ALICE, STAFF);
}

CASE(symlink_in_a_setgid_directory_takes_its_group)
{
    make_dir("d");
    OK(chown("d", 0, GUESTS));
    OK(chmod("d", 02777));
    AS (ALICE, STAFF)
        OK(symlink("x", "d/s"));
    OWNER_IS("d/s", ALICE, GUESTS);
}

CASE(symlink_to_an_existing_name_is_eexist)
{
    make_file("f");
    make_dir("d");
    OK(symlink("x", "s"));
    FAILS(EEXIST, symlink("y", "f"));
    FAILS(EEXIST, symlink("y", "d"));
    FAILS(EEXIST, symlink("y", "s"));
    text_is("s", "x");
}

CASE(symlink_with_an_empty_text_is_enoent)
{
    FAILS(ENOENT, symlink("", "s"));
}

CASE(symlink_text_of_4095_bytes_works)
{
    static char text[4096];

    memset(text, 't', 4095);
    OK(symlink(text, "s"));
    text_is("s", text);
    SIZE_IS("s", 4095);
}

CASE(symlink_text_of_4096_bytes_is_enametoolong)
{
    static char text[4097];

    memset(text, 't', 4096);
    FAILS(ENAMETOOLONG, symlink(text, "s"));
    GONE("s");
}

CASE(symlink_text_keeps_any_bytes)
{
    char text[256];

    for (int i = 0; i < 255; i++)
        text[i] = (char)(i + 1);
    text[255] = 0;
    OK(symlink(text, "s"));
    text_is("s", text);
}

CASE(symlink_texts_of_every_length_up_to_300)
{
    char text[301] = "", name[16];

    for (int i = 1; i <= 300; i++) {
        text[i - 1] = (char)('a' + i % 26);
        snprintf(name, sizeof(name), "s%d", i);
        OK(symlink(text, name));
        text_is(name, text);
    }
}

CASE(symlink_without_write_permission_is_eacces)
{
    make_dir("d");
    AS (ALICE, STAFF)
        FAILS(EACCES, symlink("x", "d/s"));
}

CASE(symlink_moves_the_times_of_the_directory)
{
    make_dir("d");
    MOVES("d", "mc", OK(symlink("x", "d/s")));
}

CASE(readlink_fills_only_the_buffer)
{
    char text[4] = "????";

    OK(symlink("abcdef", "s"));
    EQ(readlink("s", text, 3), 3);
    BYTES_EQ(text, "abc?", 4);
}

CASE(readlink_of_a_file_is_einval)
{
    char text[8];

    make_file("f");
    make_dir("d");
    OK(mkfifo("p", 0644));
    FAILS(EINVAL, readlink("f", text, sizeof(text)));
    FAILS(EINVAL, readlink("d", text, sizeof(text)));
    FAILS(EINVAL, readlink("p", text, sizeof(text)));
}

CASE(readlink_needs_no_permission_on_the_link)
{
    OK(symlink("x", "s"));
    AS (ALICE, STAFF)
        OK(readlink("s", (char[8]) { 0 }, 8));
}

CASE(symlink_can_change_owner_and_times_itself)
{
    struct timespec times[2] = { { 100, 1 }, { 200, 2 } };

    make_file("f");
    OK(symlink("f", "s"));
    OK(lchown("s", ALICE, STAFF));
    OK(utimensat(AT_FDCWD, "s", times, AT_SYMLINK_NOFOLLOW));
    OWNER_IS("s", ALICE, STAFF);
    OWNER_IS("f", 0, 0);
    EQ(stat_of("s").st_mtim.tv_sec, 200);
    EQ(stat_of("s").st_mtim.tv_nsec, 2);
    THAT(stat_of("f").st_mtim.tv_sec != 200);
    text_is("s", "f");
}

CASE(symlink_is_followed_to_a_new_target)
{
    make_file_with("a", "A");
    make_file_with("b", "B");
    OK(symlink("a", "s"));
    TEXT_IS("s", "A");
    OK(symlink("b", "t"));
    OK(rename("t", "s"));
    TEXT_IS("s", "B");
}

CASE(symlink_with_an_absolute_text_leaves_the_mount)
{
    OK(symlink("/", "s"));
    EQ(stat_of("s/.").st_ino, stat_of("/").st_ino);
}
