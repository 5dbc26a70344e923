/* mkdir() and rmdir(), link counts and times of directories. */
#define TOPIC "dir"
#include "suite.h"

CASE(mkdir_makes_an_empty_directory)
{
    OK(mkdir("d", 0755));
    THAT(S_ISDIR(stat_of("d").st_mode));
    NLINK_IS("d", 2);
    EXISTS("d/.");
    EQ(stat_of("d/..").st_ino, stat_of(".").st_ino);
}

CASE(mkdir_applies_the_umask)
{
    umask(0027);
    OK(mkdir("d", 0777));
    MODE_IS("d", 0750);
}

CASE(mkdir_with_umask_0_keeps_every_permission_bit)
{
    umask(0);
    OK(mkdir("d", 0777));
    MODE_IS("d", 0777);
}

CASE(mkdir_takes_the_sticky_bit_but_no_suid)
{
    OK(mkdir("d", 01755));
    MODE_IS("d", 01755);
    OK(mkdir("e", 04755));
    MODE_IS("e", 0755);
}

CASE(mkdir_belongs_to_the_caller)
{
    OK(chmod(".", 0777));
    AS (ALICE, STAFF)
        OK(mkdir("d", 0755));
    OWNER_IS("d", ALICE, STAFF);
}

CASE(mkdir_in_a_setgid_directory_inherits_group_and_bit)
{
    make_dir("d");
    OK(chown("d", 0, GUESTS));
    OK(chmod("d", 02777));
    AS (ALICE, STAFF)
        OK(mkdir("d/e", 0755));
    OWNER_IS("d/e", ALICE, GUESTS);
    MODE_IS("d/e", 02755);
}

CASE(mkdir_of_an_existing_name_is_eexist)
{
    make_file("f");
    make_dir("d");
    OK(symlink("missing", "s"));
    OK(mkfifo("p", 0644));
    FAILS(EEXIST, mkdir("f", 0755));
    FAILS(EEXIST, mkdir("d", 0755));
    FAILS(EEXIST, mkdir("s", 0755));
    FAILS(EEXIST, mkdir("p", 0755));
}

CASE(mkdir_of_dot_is_eexist)
{
    FAILS(EEXIST, mkdir(".", 0755));
    FAILS(EEXIST, mkdir("..", 0755));
}

CASE(mkdir_without_write_permission_is_eacces)
{
    make_dir_mode("d", 0755);
    AS (ALICE, STAFF)
        FAILS(EACCES, mkdir("d/e", 0755));
    GONE("d/e");
}

CASE(mkdir_counts_in_the_parent)
{
    make_dir("d");
    for (int i = 1; i <= 10; i++) {
        char name[16];

        snprintf(name, sizeof(name), "d/%d", i);
        OK(mkdir(name, 0755));
        NLINK_IS("d", 2 + i);
    }
}

CASE(mkdir_moves_the_times_of_the_parent)
{
    make_dir("d");
    MOVES("d", "mc", OK(mkdir("d/e", 0755)));
}

CASE(mkdir_that_fails_moves_no_time)
{
    make_dir("d");
    make_dir("d/e");
    MOVES("d", "", FAILS(EEXIST, mkdir("d/e", 0755)));
}

CASE(mkdir_lets_one_of_many_win)
{
    enum { PROCESSES = 6, ROUNDS = 50 };
    char won[PROCESSES * ROUNDS];
    ssize_t count = 0, r;
    int results[2];

    OK(pipe(results));
    for (int p = 0; p < PROCESSES; p++) {
        if (fork() != 0)
            continue;
        for (int round = 0; round < ROUNDS; round++) {
            char name[16];
            int made;

            snprintf(name, sizeof(name), "d%d", round);
            made = mkdir(name, 0755);
            THAT(made == 0 || errno == EEXIST);
            if (made == 0)
                EQ(write(results[1], "x", 1), 1);
        }
        _exit(0);
    }
    close(results[1]);
    while ((r = read(results[0], won, sizeof(won))) > 0)
        count += r;
    EQ(count, ROUNDS);
    NLINK_IS(".", 2 + ROUNDS);
}

CASE(rmdir_removes_an_empty_directory)
{
    make_dir("d");
    OK(rmdir("d"));
    GONE("d");
}

CASE(rmdir_counts_in_the_parent)
{
    make_dir("d");
    make_dir("d/a");
    make_dir("d/b");
    NLINK_IS("d", 4);
    OK(rmdir("d/a"));
    NLINK_IS("d", 3);
    OK(rmdir("d/b"));
    NLINK_IS("d", 2);
}

CASE(files_do_not_count_in_the_parent)
{
    make_dir("d");
    make_file("d/f");
    OK(symlink("x", "d/s"));
    OK(mkfifo("d/p", 0644));
    NLINK_IS("d", 2);
}

CASE(rmdir_moves_the_times_of_the_parent)
{
    make_dir("d");
    make_dir("d/e");
    MOVES("d", "mc", OK(rmdir("d/e")));
}

CASE(rmdir_that_fails_moves_no_time)
{
    make_dir("d");
    make_dir("d/e");
    make_file("d/e/f");
    MOVES("d", "", FAILS(ENOTEMPTY, rmdir("d/e")));
}

CASE(rmdir_of_a_directory_with_a_file_is_enotempty)
{
    make_dir("d");
    make_file("d/f");
    FAILS(ENOTEMPTY, rmdir("d"));
    EXISTS("d/f");
}

CASE(rmdir_of_a_directory_with_a_directory_is_enotempty)
{
    make_dir("d");
    make_dir("d/e");
    FAILS(ENOTEMPTY, rmdir("d"));
}

CASE(rmdir_of_a_directory_with_a_dangling_symlink_is_enotempty)
{
    make_dir("d");
    OK(symlink("missing", "d/s"));
    FAILS(ENOTEMPTY, rmdir("d"));
}

CASE(rmdir_works_once_the_last_entry_is_gone)
{
    make_dir("d");
    make_file("d/f");
    FAILS(ENOTEMPTY, rmdir("d"));
    OK(unlink("d/f"));
    OK(rmdir("d"));
}

CASE(rmdir_of_a_file_is_enotdir)
{
    make_file("f");
    OK(mkfifo("p", 0644));
    FAILS(ENOTDIR, rmdir("f"));
    FAILS(ENOTDIR, rmdir("p"));
}

CASE(rmdir_of_a_symlink_to_a_directory_is_enotdir)
{
    make_dir("d");
    OK(symlink("d", "s"));
    FAILS(ENOTDIR, rmdir("s"));
    EXISTS("d");
}

CASE(rmdir_of_dot_is_einval)
{
    make_dir("d");
    FAILS(EINVAL, rmdir("d/."));
    FAILS(EINVAL, rmdir("."));
}

CASE(rmdir_of_dotdot_is_enotempty)
{
    make_dir("d");
    make_dir("d/e");
    FAILS(ENOTEMPTY, rmdir("d/e/.."));
}

CASE(rmdir_without_write_permission_is_eacces)
{
    make_dir("d");
    make_dir_mode("d/e", 0777);
    AS (ALICE, STAFF)
        FAILS(EACCES, rmdir("d/e"));
    EXISTS("d/e");
}

CASE(rmdir_needs_no_permission_on_the_directory_itself)
{
    make_dir_mode("d", 0777);
    make_dir_mode("d/e", 0);
    AS (ALICE, STAFF)
        OK(rmdir("d/e"));
    GONE("d/e");
}

CASE(rmdir_in_a_sticky_directory_of_another_owner_is_eperm)
{
    make_dir_mode("d", 01777);
    make_dir("d/e");
    OK(chown("d/e", BOB, STAFF));
    AS (ALICE, STAFF)
        FAILS(EPERM, rmdir("d/e"));
    AS (BOB, STAFF)
        OK(rmdir("d/e"));
}

CASE(removed_directory_that_is_open_stays_usable)
{
    int dir;

    make_dir("d");
    dir = (int)OK(open("d", O_RDONLY | O_DIRECTORY));
    OK(rmdir("d"));
    EQ(stat_fd(dir).st_nlink, 0);
    FAILS(ENOENT, openat(dir, "f", O_CREAT | O_WRONLY, 0644));
    FAILS(ENOENT, faccessat(dir, "f", F_OK, 0));
}

CASE(removed_working_directory_takes_no_entries)
{
    make_dir("d");
    IN_CHILD () {
        OK(chdir("d"));
        OK(rmdir("../d"));
        FAILS(ENOENT, mkdir("e", 0755));
        FAILS(ENOENT, open("f", O_CREAT | O_WRONLY, 0644));
        FAILS(ENOENT, stat("g", &(struct stat) { 0 }));
    }
}

CASE(name_of_a_removed_directory_can_be_used_again)
{
    ino_t ino;
    int old;

    make_dir("d");
    old = (int)OK(open("d", O_RDONLY));
    ino = stat_of("d").st_ino;
    OK(rmdir("d"));
    make_dir("d");
    make_file("d/f");
    EXISTS("d/f");
    THAT(stat_of("d").st_ino != ino);
    EQ(stat_fd(old).st_nlink, 0);
    EQ(stat_fd(old).st_ino, ino);
}

CASE(name_of_a_directory_can_become_a_file)
{
    make_dir("n");
    OK(rmdir("n"));
    make_file_with("n", "file");
    TEXT_IS("n", "file");
    OK(unlink("n"));
    make_dir("n");
    THAT(S_ISDIR(stat_of("n").st_mode));
}

CASE(size_of_a_directory_is_not_negative)
{
    make_dir("d");
    THAT(stat_of("d").st_size >= 0);
    THAT(stat_of("d").st_blksize >= 512);
}

CASE(inode_number_stays)
{
    ino_t ino;

    make_dir("d");
    ino = stat_of("d").st_ino;
    make_file("d/f");
    OK(chmod("d", 0700));
    OK(rename("d", "e"));
    EQ(stat_of("e").st_ino, ino);
}

CASE(inode_numbers_differ)
{
    ino_t seen[50];

    for (int i = 0; i < 50; i++) {
        char name[16];

        snprintf(name, sizeof(name), "%s%d", i % 2 ? "d" : "f", i);
        if (i % 2)
            make_dir(name);
        else
            make_file(name);
        seen[i] = stat_of(name).st_ino;
        for (int k = 0; k < i; k++)
            THAT(seen[k] != seen[i]);
    }
}
