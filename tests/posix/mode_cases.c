/* chmod(), chown() and the permission rules: special bits, sticky directories, groups. */
#define TOPIC "mode"
#include "suite.h"

#include <signal.h>

CASE(chmod_sets_every_bit)
{
    make_file("f");
    for (mode_t mode = 0; mode <= 07777; mode = mode ? mode * 2 : 1) {
        OK(chmod("f", mode));
        MODE_IS("f", mode);
    }
    OK(chmod("f", 07777));
    MODE_IS("f", 07777);
}

CASE(chmod_of_a_directory_sets_every_bit)
{
    make_dir("d");
    for (mode_t mode = 0; mode <= 07777; mode = mode ? mode * 2 : 1) {
        OK(chmod("d", mode));
        MODE_IS("d", mode);
    }
}

CASE(chmod_ignores_the_umask)
{
    umask(0777);
    make_dir("d");
    OK(chmod("d", 0777));
    MODE_IS("d", 0777);
}

CASE(chmod_moves_ctime_only)
{
    make_file("f");
    MOVES("f", "c", OK(chmod("f", 0600)));
}

CASE(chmod_to_the_same_mode_moves_ctime)
{
    make_file("f");
    MOVES("f", "c", OK(chmod("f", 0644)));
}

CASE(chmod_that_fails_moves_no_time)
{
    make_file("f");
    MOVES("f", "", AS (ALICE, STAFF) FAILS(EPERM, chmod("f", 0600)));
}

CASE(chmod_by_the_owner_works)
{
    make_file("f");
    OK(chown("f", ALICE, STAFF));
    AS (ALICE, GUESTS)
        OK(chmod("f", 0604));
    MODE_IS("f", 0604);
}

CASE(chmod_by_another_user_is_eperm)
{
    make_file_mode("f", 0666);
    OK(chown("f", BOB, STAFF));
    AS (ALICE, STAFF)
        FAILS(EPERM, chmod("f", 0777));
    MODE_IS("f", 0666);
}

CASE(chmod_by_the_owner_outside_the_group_drops_sgid)
{
    make_file("f");
    OK(chown("f", ALICE, STAFF));
    AS (ALICE, GUESTS)
        OK(chmod("f", 02755));
    MODE_IS("f", 0755);
}

CASE(chmod_by_the_owner_inside_the_group_keeps_sgid)
{
    make_file("f");
    OK(chown("f", ALICE, STAFF));
    AS (ALICE, STAFF)
        OK(chmod("f", 02755));
    MODE_IS("f", 02755);
}

CASE(chmod_by_the_owner_with_the_group_as_supplementary_keeps_sgid)
{
    make_file("f");
    OK(chown("f", ALICE, STAFF));
    AS_GROUPS (ALICE, GUESTS, 2, ((gid_t[]) { CREW, STAFF }))
        OK(chmod("f", 02755));
    MODE_IS("f", 02755);
}

CASE(chmod_follows_a_symlink)
{
    make_file("f");
    OK(symlink("f", "s"));
    OK(chmod("s", 0600));
    MODE_IS("f", 0600);
    MODE_IS("s", 0777);
}

CASE(fchmod_works_on_a_read_only_descriptor)
{
    make_file("f");
    OK(fchmod((int)OK(open("f", O_RDONLY)), 0600));
    MODE_IS("f", 0600);
}

CASE(fchmod_of_a_directory_works)
{
    make_dir("d");
    OK(fchmod((int)OK(open("d", O_RDONLY | O_DIRECTORY)), 01700));
    MODE_IS("d", 01700);
}

CASE(chmod_is_seen_by_an_open_descriptor)
{
    int fd = (int)OK(open("f", O_CREAT | O_RDWR, 0644));

    OK(chmod("f", 0600));
    EQ(stat_fd(fd).st_mode & 07777, 0600);
}

/* ---- chown ---- */

CASE(chown_sets_owner_and_group)
{
    make_file("f");
    OK(chown("f", ALICE, STAFF));
    OWNER_IS("f", ALICE, STAFF);
}

CASE(chown_leaves_what_is_minus_1)
{
    make_file("f");
    OK(chown("f", ALICE, (gid_t)-1));
    OWNER_IS("f", ALICE, 0);
    OK(chown("f", (uid_t)-1, STAFF));
    OWNER_IS("f", ALICE, STAFF);
    OK(chown("f", (uid_t)-1, (gid_t)-1));
    OWNER_IS("f", ALICE, STAFF);
}

CASE(chown_takes_large_ids)
{
    make_file("f");
    OK(chown("f", 0xfffffffe, 0xfffffffd));
    OWNER_IS("f", 0xfffffffe, 0xfffffffd);
    OK(chown("f", 65534, 65535));
    OWNER_IS("f", 65534, 65535);
}

CASE(chown_moves_ctime_only)
{
    make_file("f");
    MOVES("f", "c", OK(chown("f", ALICE, STAFF)));
}

CASE(chown_of_a_directory_works)
{
    make_dir("d");
    OK(chown("d", ALICE, STAFF));
    OWNER_IS("d", ALICE, STAFF);
}

CASE(chown_by_another_user_is_eperm)
{
    make_file("f");
    AS (ALICE, STAFF) {
        FAILS(EPERM, chown("f", ALICE, STAFF));
        FAILS(EPERM, chown("f", (uid_t)-1, STAFF));
    }
    OWNER_IS("f", 0, 0);
}

CASE(chown_by_the_owner_to_another_user_is_eperm)
{
    make_file("f");
    OK(chown("f", ALICE, STAFF));
    AS (ALICE, STAFF)
        FAILS(EPERM, chown("f", BOB, (gid_t)-1));
    OWNER_IS("f", ALICE, STAFF);
}

CASE(chown_by_the_owner_to_an_own_group_works)
{
    make_file("f");
    OK(chown("f", ALICE, STAFF));
    AS_GROUPS (ALICE, STAFF, 2, ((gid_t[]) { CREW, GUESTS }))
        OK(chown("f", ALICE, GUESTS));
    OWNER_IS("f", ALICE, GUESTS);
}

CASE(chown_by_the_owner_to_a_foreign_group_is_eperm)
{
    make_file("f");
    OK(chown("f", ALICE, STAFF));
    AS (ALICE, STAFF)
        FAILS(EPERM, chown("f", (uid_t)-1, GUESTS));
    OWNER_IS("f", ALICE, STAFF);
}

CASE(chown_by_the_owner_clears_suid_and_sgid)
{
    make_file("f");
    OK(chown("f", ALICE, STAFF));
    OK(chmod("f", 06755));
    AS_GROUPS (ALICE, STAFF, 1, ((gid_t[]) { GUESTS }))
        OK(chown("f", (uid_t)-1, GUESTS));
    MODE_IS("f", 0755);
    OWNER_IS("f", ALICE, GUESTS);
}

CASE(chown_by_root_clears_suid_and_sgid_of_a_program)
{
    make_file_mode("f", 06755);
    OK(chown("f", ALICE, STAFF));
    MODE_IS("f", 0755);
}

CASE(chown_keeps_suid_and_sgid_of_a_directory)
{
    make_dir_mode("d", 06755);
    OK(chown("d", ALICE, STAFF));
    MODE_IS("d", 06755);
}

CASE(chown_without_group_execute_keeps_sgid)
{
    make_file_mode("f", 02745);
    OK(chown("f", ALICE, STAFF));
    EQ(stat_of("f").st_mode & 0777, 0745);
}

CASE(chown_follows_a_symlink_and_lchown_does_not)
{
    make_file("f");
    OK(symlink("f", "s"));
    OK(chown("s", ALICE, STAFF));
    OWNER_IS("f", ALICE, STAFF);
    OWNER_IS("s", 0, 0);
    OK(lchown("s", BOB, GUESTS));
    OWNER_IS("f", ALICE, STAFF);
    OWNER_IS("s", BOB, GUESTS);
}

CASE(fchown_works)
{
    int fd = (int)OK(open("f", O_CREAT | O_RDONLY, 0644));

    OK(fchown(fd, ALICE, STAFF));
    OWNER_IS("f", ALICE, STAFF);
    EQ(stat_fd(fd).st_uid, ALICE);
}

CASE(chown_takes_away_access)
{
    make_file_mode("f", 0600);
    OK(chown("f", ALICE, STAFF));
    AS (ALICE, STAFF)
        OK(open("f", O_RDONLY));
    OK(chown("f", BOB, STAFF));
    AS (ALICE, STAFF)
        FAILS(EACCES, open("f", O_RDONLY));
}

CASE(chmod_takes_away_access)
{
    make_file_mode("f", 0644);
    AS (ALICE, STAFF)
        OK(open("f", O_RDONLY));
    OK(chmod("f", 0600));
    AS (ALICE, STAFF)
        FAILS(EACCES, open("f", O_RDONLY));
    OK(chmod("f", 0604));
    AS (ALICE, STAFF)
        OK(open("f", O_RDONLY));
}

/* ---- Groups ---- */

static void group_access(size_t count)
{
    gid_t *groups = calloc(count, sizeof(*groups));

    THAT(groups != NULL);
    for (size_t i = 0; i < count; i++)
        groups[i] = 40000 + (gid_t)i;
    groups[count - 1] = STAFF;
    make_dir("d");
    OK(chown("d", 0, STAFF));
    OK(chmod("d", 0770));
    make_file("d/f");
    OK(chown("d/f", 0, STAFF));
    OK(chmod("d/f", 0660));
    AS_GROUPS (ALICE, GUESTS, count, groups) {
        int fd = (int)OK(open("d/f", O_RDWR));

        EQ(write(fd, "x", 1), 1);
        OK(open("d/new", O_CREAT | O_EXCL | O_WRONLY, 0644));
        OK(mkdir("d/dir", 0755));
        OK(access("d/f", R_OK | W_OK));
        OK(rename("d/new", "d/newer"));
        OK(unlink("d/newer"));
    }
    AS_GROUPS (ALICE, GUESTS, count - 1, groups)
        FAILS(EACCES, open("d/f", O_RDONLY));
}

CASE(access_by_the_last_of_16_groups)
{
    group_access(16);
}

CASE(access_by_the_last_of_32_groups)
{
    group_access(32);
}

CASE(access_by_the_last_of_33_groups)
{
    group_access(33);
}

CASE(access_by_the_last_of_93_groups)
{
    group_access(93);
}

CASE(access_by_the_last_of_1000_groups)
{
    group_access(1000);
}

CASE(access_by_the_last_of_65536_groups)
{
    group_access(65536);
}

CASE(groups_are_those_of_the_calling_process)
{
    make_file_mode("f", 0640);
    OK(chown("f", 0, STAFF));
    for (int i = 0; i < 10; i++) {
        AS_GROUPS (ALICE, GUESTS, 1, ((gid_t[]) { STAFF }))
            OK(open("f", O_RDONLY));
        AS_GROUPS (ALICE, GUESTS, 1, ((gid_t[]) { CREW }))
            FAILS(EACCES, open("f", O_RDONLY));
    }
}

CASE(group_class_wins_over_others)
{
    make_file_mode("f", 0604);
    OK(chown("f", 0, STAFF));
    AS (ALICE, STAFF)
        FAILS(EACCES, open("f", O_RDONLY));
    AS (ALICE, GUESTS)
        OK(open("f", O_RDONLY));
}

CASE(owner_class_wins_over_group_and_others)
{
    make_file_mode("f", 0066);
    OK(chown("f", ALICE, STAFF));
    AS (ALICE, STAFF)
        FAILS(EACCES, open("f", O_RDONLY));
}

/* ---- Running programs ---- */

static void make_script(const char *path, mode_t mode)
{
    make_file_with(path, "#!/bin/sh\nexit 0\n");
    OK(chmod(path, mode));
}

CASE(execute_permission_runs_a_script)
{
    make_script("run", 0755);
    IN_CHILD () {
        execl("./run", "run", (char *)NULL);
        suite_fail(HERE, "exec: %s", strerror(errno));
    }
}

CASE(without_execute_permission_exec_is_eacces)
{
    make_script("run", 0644);
    FAILS(EACCES, execl("./run", "run", (char *)NULL));
    AS (ALICE, STAFF)
        FAILS(EACCES, execl("./run", "run", (char *)NULL));
}

CASE(access_x_for_root_needs_one_execute_bit)
{
    make_file_mode("none", 0666);
    make_file_mode("one", 0001);
    FAILS(EACCES, access("none", X_OK));
    OK(access("one", X_OK));
}

CASE(writing_a_running_program_is_etxtbsy)
{
    static char data[65536];
    int in = (int)OK(open("/bin/sleep", O_RDONLY)), out = (int)OK(open("prog", O_CREAT | O_WRONLY, 0755)), ends[2];
    ssize_t size;
    char c;
    pid_t child;

    while ((size = OK(read(in, data, sizeof(data)))) > 0)
        EQ(write(out, data, (size_t)size), size);
    OK(close(out));
    OK(pipe2(ends, O_CLOEXEC));
    child = fork();
    if (child == 0) {
        execl("./prog", "prog", "30", (char *)NULL);
        _exit(1);
    }
    close(ends[1]);
    EQ(read(ends[0], &c, 1), 0); /* closed by exec */
    FAILS(ETXTBSY, open("prog", O_WRONLY));
    FAILS(ETXTBSY, truncate("prog", 0));
    OK(kill(child, 9));
}

/* ---- umask of makers ---- */

CASE(umask_of_the_calling_process_counts)
{
    OK(chmod(".", 0777));
    AS (ALICE, STAFF) {
        umask(0);
        OK(open("a", O_CREAT | O_WRONLY, 0666));
    }
    AS (BOB, STAFF) {
        umask(0777);
        OK(open("b", O_CREAT | O_WRONLY, 0666));
        OK(mkdir("d", 0777));
    }
    MODE_IS("a", 0666);
    MODE_IS("b", 0);
    MODE_IS("d", 0);
}
