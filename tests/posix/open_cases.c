/* open() and creat(): what each flag does, and which combination is refused. */
#define TOPIC "open"
#include "suite.h"

#include <sys/wait.h>

CASE(create_makes_an_empty_regular_file)
{
    int fd = (int)OK(open("f", O_CREAT | O_WRONLY, 0644));

    THAT(S_ISREG(stat_fd(fd).st_mode));
    SIZE_IS("f", 0);
    NLINK_IS("f", 1);
    MODE_IS("f", 0644);
    EQ(stat_of("f").st_blocks, 0);
}

CASE(create_belongs_to_the_caller)
{
    OK(chmod(".", 0777));
    AS (ALICE, STAFF)
        OK(open("f", O_CREAT | O_WRONLY, 0644));
    OWNER_IS("f", ALICE, STAFF);
}

CASE(create_in_a_setgid_directory_takes_its_group)
{
    make_dir_mode("d", 0777);
    OK(chown("d", 0, GUESTS));
    OK(chmod("d", 02777));
    AS (ALICE, STAFF)
        OK(open("d/f", O_CREAT | O_WRONLY, 0644));
    OWNER_IS("d/f", ALICE, GUESTS);
    MODE_IS("d/f", 0644);
}

CASE(create_applies_the_umask)
{
    umask(0137);
    OK(open("f", O_CREAT | O_WRONLY, 0777));
    MODE_IS("f", 0640);
}

CASE(create_with_umask_0_keeps_every_permission_bit)
{
    umask(0);
    OK(open("f", O_CREAT | O_WRONLY, 0777));
    MODE_IS("f", 0777);
}

CASE(create_may_set_suid_and_sticky)
{
    OK(open("f", O_CREAT | O_WRONLY, 05755));
    MODE_IS("f", 05755);
}

CASE(create_may_set_sgid)
{
    OK(open("f", O_CREAT | O_WRONLY, 02755));
    MODE_IS("f", 02755);
}

CASE(create_of_an_existing_file_keeps_mode_owner_and_content)
{
    make_file_with("f", "old");
    OK(chown("f", ALICE, STAFF));
    OK(chmod("f", 0604));
    OK(open("f", O_CREAT | O_RDWR, 0777));
    MODE_IS("f", 0604);
    OWNER_IS("f", ALICE, STAFF);
    TEXT_IS("f", "old");
}

CASE(create_of_an_existing_file_moves_no_time)
{
    make_file("f");
    MOVES("f", "", OK(open("f", O_CREAT | O_RDWR, 0777)));
}

CASE(create_moves_the_times_of_the_directory)
{
    make_dir("d");
    MOVES("d", "mc", OK(open("d/f", O_CREAT | O_WRONLY, 0644)));
}

CASE(create_sets_all_times_of_the_file_alike)
{
    struct stat st, dir;

    tick();
    make_dir("d");
    OK(open("d/f", O_CREAT | O_WRONLY, 0644));
    st = stat_of("d/f");
    dir = stat_of("d");
    THAT(time_cmp(st.st_mtim, dir.st_ctim) >= 0 || dir.st_ctim.tv_sec - st.st_mtim.tv_sec <= 1);
    EQ(time_cmp(st.st_mtim, st.st_ctim), 0);
    EQ(time_cmp(st.st_mtim, st.st_atim), 0);
}

CASE(create_in_a_directory_without_write_permission_is_eacces)
{
    make_dir_mode("d", 0755);
    AS (ALICE, STAFF)
        FAILS(EACCES, open("d/f", O_CREAT | O_WRONLY, 0644));
    GONE("d/f");
}

CASE(create_gives_a_usable_descriptor_whatever_the_mode)
{
    make_dir_mode("d", 0777);
    AS (ALICE, STAFF) {
        int fd = (int)OK(open("d/f", O_CREAT | O_RDWR, 0));

        EQ(write(fd, "abc", 3), 3);
        EQ(pread(fd, (char[4]) { 0 }, 4, 0), 3);
        FAILS(EACCES, open("d/f", O_RDONLY));
    }
    MODE_IS("d/f", 0);
    TEXT_IS("d/f", "abc");
}

CASE(create_read_only_makes_a_file)
{
    int fd = (int)OK(open("f", O_CREAT | O_RDONLY, 0644));

    FAILS(EBADF, write(fd, "x", 1));
    EQ(read(fd, (char[1]) { 0 }, 1), 0);
}

CASE(creat_truncates)
{
    make_file_with("f", "old");
    OK(creat("f", 0600));
    SIZE_IS("f", 0);
    MODE_IS("f", 0644);
}

/* ---- O_EXCL ---- */

CASE(exclusive_create_makes_a_file)
{
    OK(open("f", O_CREAT | O_EXCL | O_WRONLY, 0600));
    MODE_IS("f", 0600);
}

CASE(exclusive_create_of_a_file_is_eexist)
{
    make_file("f");
    FAILS(EEXIST, open("f", O_CREAT | O_EXCL | O_WRONLY, 0644));
}

CASE(exclusive_create_of_a_directory_is_eexist)
{
    make_dir("d");
    FAILS(EEXIST, open("d", O_CREAT | O_EXCL | O_WRONLY, 0644));
}

CASE(exclusive_create_of_a_symlink_is_eexist)
{
    make_file("f");
    OK(symlink("f", "s"));
    FAILS(EEXIST, open("s", O_CREAT | O_EXCL | O_WRONLY, 0644));
}

CASE(exclusive_create_of_a_dangling_symlink_is_eexist)
{
    OK(symlink("missing", "s"));
    FAILS(EEXIST, open("s", O_CREAT | O_EXCL | O_WRONLY, 0644));
    GONE("missing");
}

CASE(exclusive_create_of_a_fifo_is_eexist)
{
    OK(mkfifo("p", 0644));
    FAILS(EEXIST, open("p", O_CREAT | O_EXCL | O_WRONLY, 0644));
}

CASE(exclusive_create_lets_one_of_many_win)
{
    enum { PROCESSES = 8, ROUNDS = 50 };
    int results[2];
    char won[PROCESSES * ROUNDS];
    ssize_t count = 0, r;

    OK(pipe(results));
    for (int p = 0; p < PROCESSES; p++) {
        if (fork() != 0)
            continue;
        for (int round = 0; round < ROUNDS; round++) {
            char name[16];
            int fd;

            snprintf(name, sizeof(name), "f%d", round);
            fd = open(name, O_CREAT | O_EXCL | O_WRONLY, 0644);
            THAT(fd >= 0 || errno == EEXIST);
            if (fd >= 0)
                EQ(write(results[1], "x", 1), 1);
            close(fd);
        }
        _exit(0);
    }
    close(results[1]);
    while ((r = read(results[0], won, sizeof(won))) > 0)
        count += r;
    EQ(count, ROUNDS);
}

/* ---- O_TRUNC ---- */

CASE(truncate_empties_the_file)
{
    make_file_with("f", "old");
    OK(open("f", O_WRONLY | O_TRUNC));
    SIZE_IS("f", 0);
    EQ(stat_of("f").st_blocks, 0);
}

CASE(truncate_moves_mtime_and_ctime)
{
    make_file_with("f", "old");
    MOVES("f", "mc", OK(open("f", O_WRONLY | O_TRUNC)));
}

CASE(truncate_without_write_permission_is_eacces_and_keeps_the_content)
{
    make_file_with("f", "old");
    AS (ALICE, STAFF)
        FAILS(EACCES, open("f", O_WRONLY | O_TRUNC));
    TEXT_IS("f", "old");
}

CASE(truncate_read_only_needs_write_permission)
{
    make_file_with("f", "old");
    AS (ALICE, STAFF)
        FAILS(EACCES, open("f", O_RDONLY | O_TRUNC));
    TEXT_IS("f", "old");
}

CASE(truncate_by_another_user_clears_suid)
{
    make_file_with("f", "old");
    OK(chmod("f", 06777));
    AS (ALICE, STAFF)
        OK(open("f", O_WRONLY | O_TRUNC));
    MODE_IS("f", 0777);
    SIZE_IS("f", 0);
}

CASE(truncate_is_seen_through_an_open_descriptor)
{
    int fd;

    make_file_with("f", "old content");
    fd = (int)OK(open("f", O_RDWR));
    OK(open("f", O_WRONLY | O_TRUNC));
    EQ(stat_fd(fd).st_size, 0);
    EQ(pread(fd, (char[4]) { 0 }, 4, 0), 0);
    EQ(pwrite(fd, "z", 1, 3), 1);
    EQ(stat_fd(fd).st_size, 4);
    RANGE_IS(fd, 0, 3, 0);
}

/* ---- O_APPEND ---- */

CASE(append_writes_at_the_end)
{
    int fd;

    make_file_with("f", "one");
    fd = (int)OK(open("f", O_WRONLY | O_APPEND));
    EQ(write(fd, "two", 3), 3);
    TEXT_IS("f", "onetwo");
}

CASE(append_writes_at_the_end_after_a_seek)
{
    int fd;

    make_file_with("f", "one");
    fd = (int)OK(open("f", O_RDWR | O_APPEND));
    EQ(OK(lseek(fd, 0, SEEK_SET)), 0);
    EQ(write(fd, "two", 3), 3);
    EQ(OK(lseek(fd, 0, SEEK_CUR)), 6);
    TEXT_IS("f", "onetwo");
}

CASE(append_ignores_the_offset_of_pwrite)
{
    int fd;

    make_file_with("f", "one");
    fd = (int)OK(open("f", O_WRONLY | O_APPEND));
    EQ(pwrite(fd, "two", 3, 0), 3);
    TEXT_IS("f", "onetwo");
}

CASE(append_finds_the_end_that_another_descriptor_made)
{
    int a, b;

    make_file("f");
    a = (int)OK(open("f", O_WRONLY | O_APPEND));
    b = (int)OK(open("f", O_WRONLY | O_APPEND));
    for (int i = 0; i < 10; i++) {
        EQ(write(a, "aaa", 3), 3);
        EQ(write(b, "bb", 2), 2);
    }
    SIZE_IS("f", 50);
    THAT(stat_fd(a).st_size == 50);
}

CASE(append_after_truncate_begins_at_the_new_end)
{
    int fd;

    make_file_with("f", "0123456789");
    fd = (int)OK(open("f", O_WRONLY | O_APPEND));
    OK(ftruncate(fd, 2));
    EQ(write(fd, "xx", 2), 2);
    TEXT_IS("f", "01xx");
}

CASE(append_can_be_switched_on_by_fcntl)
{
    int fd;

    make_file_with("f", "one");
    fd = (int)OK(open("f", O_WRONLY));
    OK(fcntl(fd, F_SETFL, O_APPEND));
    EQ(write(fd, "two", 3), 3);
    OK(fcntl(fd, F_SETFL, 0));
    EQ(pwrite(fd, "X", 1, 0), 1);
    TEXT_IS("f", "Xnetwo");
}

CASE(append_of_several_processes_loses_nothing)
{
    enum { PROCESSES = 4, LINES = 100, SIZE = 40 };
    char line[SIZE + 1];
    int fd, seen[PROCESSES] = { 0 };

    make_file("f");
    for (int p = 0; p < PROCESSES; p++) {
        if (fork() != 0)
            continue;
        memset(line, 'a' + p, SIZE);
        line[SIZE - 1] = '\n';
        fd = (int)OK(open("f", O_WRONLY | O_APPEND));
        for (int i = 0; i < LINES; i++)
            EQ(write(fd, line, SIZE), SIZE);
        _exit(0);
    }
    for (int p = 0; p < PROCESSES; p++)
        OK(wait(NULL));
    SIZE_IS("f", PROCESSES * LINES * SIZE);
    fd = (int)OK(open("f", O_RDONLY));
    for (int i = 0; i < PROCESSES * LINES; i++) {
        EQ(read(fd, line, SIZE), SIZE);
        THAT(line[0] >= 'a' && line[0] < 'a' + PROCESSES && line[SIZE - 1] == '\n');
        for (int k = 1; k < SIZE - 1; k++)
            EQ(line[k], line[0]);
        seen[line[0] - 'a']++;
    }
    for (int p = 0; p < PROCESSES; p++)
        EQ(seen[p], LINES);
}

/* ---- O_NOFOLLOW, O_DIRECTORY, O_PATH ---- */

CASE(nofollow_of_a_symlink_is_eloop)
{
    make_file("f");
    OK(symlink("f", "s"));
    FAILS(ELOOP, open("s", O_RDONLY | O_NOFOLLOW));
}

CASE(nofollow_of_a_symlink_to_a_directory_is_eloop_or_enotdir)
{
    make_dir("d");
    OK(symlink("d", "s"));
    FAILS(ELOOP, open("s", O_RDONLY | O_NOFOLLOW));
    FAILS(ENOTDIR, open("s", O_RDONLY | O_NOFOLLOW | O_DIRECTORY));
}

CASE(nofollow_of_a_file_works)
{
    make_file_with("f", "x");
    OK(open("f", O_RDONLY | O_NOFOLLOW));
}

CASE(nofollow_concerns_the_last_name_only)
{
    make_dir("d");
    make_file("d/f");
    OK(symlink("d", "s"));
    OK(open("s/f", O_RDONLY | O_NOFOLLOW));
}

CASE(directory_flag_opens_a_directory)
{
    make_dir("d");
    OK(open("d", O_RDONLY | O_DIRECTORY));
}

CASE(directory_flag_on_a_file_is_enotdir)
{
    make_file("f");
    FAILS(ENOTDIR, open("f", O_RDONLY | O_DIRECTORY));
}

CASE(directory_flag_on_a_fifo_is_enotdir_at_once)
{
    OK(mkfifo("p", 0644));
    FAILS(ENOTDIR, open("p", O_RDONLY | O_DIRECTORY));
}

CASE(path_flag_gives_attributes_but_no_reading)
{
    int fd;

    make_file_with("f", "abc");
    fd = (int)OK(open("f", O_PATH));
    EQ(stat_fd(fd).st_size, 3);
    FAILS(EBADF, read(fd, (char[1]) { 0 }, 1));
}

CASE(path_flag_opens_a_symlink_itself)
{
    char text[16];
    int fd;

    OK(symlink("target", "s"));
    fd = (int)OK(open("s", O_PATH | O_NOFOLLOW));
    THAT(S_ISLNK(stat_fd(fd).st_mode));
    EQ(readlinkat(fd, "", text, sizeof(text)), 6);
}

/* ---- Directories and special files ---- */

CASE(writing_to_a_directory_is_eisdir)
{
    make_dir("d");
    FAILS(EISDIR, open("d", O_WRONLY));
    FAILS(EISDIR, open("d", O_RDWR));
    FAILS(EISDIR, open("d", O_RDONLY | O_TRUNC));
    FAILS(EISDIR, open("d", O_WRONLY | O_APPEND));
}

CASE(create_on_a_directory_is_eisdir)
{
    make_dir("d");
    FAILS(EISDIR, open("d", O_CREAT | O_RDONLY, 0644));
    FAILS(EISDIR, open("d", O_CREAT | O_WRONLY, 0644));
}

CASE(reading_a_directory_as_a_file_is_eisdir)
{
    int fd;

    make_dir("d");
    fd = (int)OK(open("d", O_RDONLY));
    FAILS(EISDIR, read(fd, (char[16]) { 0 }, 16));
}

CASE(writing_a_fifo_without_a_reader_is_enxio)
{
    OK(mkfifo("p", 0644));
    FAILS(ENXIO, open("p", O_WRONLY | O_NONBLOCK));
}

CASE(fifo_carries_data)
{
    char text[4] = "";
    int in, out;

    OK(mkfifo("p", 0644));
    in = (int)OK(open("p", O_RDONLY | O_NONBLOCK));
    out = (int)OK(open("p", O_WRONLY | O_NONBLOCK));
    EQ(write(out, "abc", 3), 3);
    EQ(read(in, text, 3), 3);
    STR_EQ(text, "abc");
    SIZE_IS("p", 0);
}

CASE(create_through_a_symlink_makes_the_target)
{
    make_dir("d");
    OK(symlink("d/f", "s"));
    OK(open("s", O_CREAT | O_WRONLY, 0644));
    THAT(S_ISREG(stat_of("d/f").st_mode));
    THAT(S_ISLNK(stat_of("s").st_mode));
}

CASE(open_of_a_dangling_symlink_is_enoent)
{
    OK(symlink("missing", "s"));
    FAILS(ENOENT, open("s", O_RDONLY));
}

/* ---- Permissions ---- */

static const struct permission_row {
    const char *name;
    mode_t mode;
    bool as_owner, as_group, read, write;
} permission_rows[] = {
    { "owner_0400", 0400, true, false, true, false },   { "owner_0200", 0200, true, false, false, true },
    { "owner_0600", 0600, true, false, true, true },    { "owner_0077", 0077, true, true, false, false },
    { "group_0040", 0040, false, true, true, false },   { "group_0020", 0020, false, true, false, true },
    { "group_0060", 0060, false, true, true, true },    { "group_0707", 0707, false, true, false, false },
    { "others_0004", 0004, false, false, true, false }, { "others_0002", 0002, false, false, false, true },
    { "others_0006", 0006, false, false, true, true },  { "others_0770", 0770, false, false, false, false },
};

static void open_may(bool may, int flags)
{
    if (may)
        OK(open("f", flags));
    else
        FAILS(EACCES, open("f", flags));
}

static void permission_bits(const void *arg)
{
    const struct permission_row *row = arg;

    make_file("f");
    OK(chown("f", ALICE, STAFF));
    OK(chmod("f", row->mode));
    AS (row->as_owner ? ALICE : BOB, row->as_group ? STAFF : GUESTS) {
        open_may(row->read, O_RDONLY);
        open_may(row->write, O_WRONLY);
        open_may(row->read && row->write, O_RDWR);
        EQ(access("f", R_OK) == 0, row->read);
        EQ(access("f", W_OK) == 0, row->write);
    }
}

__attribute__((constructor)) static void add_permission_rows(void)
{
    for (size_t i = 0; i < sizeof(permission_rows) / sizeof(*permission_rows); i++)
        suite_add_row(TOPIC, "permission_bits", permission_rows[i].name, permission_bits, &permission_rows[i]);
}

CASE(root_opens_a_file_without_any_permission)
{
    make_file_mode("f", 0);
    OK(open("f", O_RDWR));
}

CASE(permission_is_checked_at_open_only)
{
    make_dir_mode("d", 0777);
    AS (ALICE, STAFF) {
        int fd = (int)OK(open("d/f", O_CREAT | O_RDWR, 0600));

        OK(chmod("d/f", 0));
        EQ(write(fd, "abc", 3), 3);
        EQ(pread(fd, (char[3]) { 0 }, 3, 0), 3);
        OK(ftruncate(fd, 1));
        OK(fsync(fd));
    }
    SIZE_IS("d/f", 1);
}

CASE(noatime_by_another_user_is_eperm)
{
    make_file_mode("f", 0666);
    AS (ALICE, STAFF)
        FAILS(EPERM, open("f", O_RDONLY | O_NOATIME));
}

/* ---- O_SYNC, O_DIRECT, O_TMPFILE ---- */

static void written_and_read_with(int flags)
{
    int fd = (int)OK(open("f", O_CREAT | O_RDWR | flags, 0644));

    EQ(write(fd, "abcdef", 6), 6);
    EQ(pwrite(fd, "XY", 2, 1), 2);
    OK(close(fd));
    TEXT_IS("f", "aXYdef");
}

CASE(sync_flag_writes_through)
{
    written_and_read_with(O_SYNC);
}

CASE(dsync_flag_writes_through)
{
    written_and_read_with(O_DSYNC);
}

CASE(flags_are_reported_by_fcntl)
{
    int fd = (int)OK(open("f", O_CREAT | O_RDWR | O_APPEND | O_SYNC | O_NONBLOCK, 0644));
    int flags = (int)OK(fcntl(fd, F_GETFL));

    EQ(flags & O_ACCMODE, O_RDWR);
    THAT(flags & O_APPEND);
    THAT(flags & O_NONBLOCK);
    EQ(flags & O_SYNC, O_SYNC);
    EQ(flags & (O_CREAT | O_EXCL | O_TRUNC), 0);
}

CASE(direct_flag_writes_and_reads_aligned_blocks)
{
    static uint8_t block[8192] __attribute__((aligned(4096)));
    int fd;

    NEEDS(FEATURE_DIRECT);
    fd = (int)OK(open("f", O_CREAT | O_RDWR | O_DIRECT, 0644));
    memset(block, 'a', sizeof(block));
    EQ(write(fd, block, sizeof(block)), sizeof(block));
    memset(block, 'b', 4096);
    EQ(pwrite(fd, block, 4096, 4096), 4096);
    SIZE_IS("f", 8192);
    memset(block, 0, sizeof(block));
    EQ(pread(fd, block, 8192, 0), 8192);
    EQ(block[0], 'a');
    EQ(block[4095], 'a');
    EQ(block[4096], 'b');
    EQ(block[8191], 'b');
    EQ(pread(fd, block, 4096, 8192), 0);
}

CASE(direct_and_cached_descriptors_see_each_other)
{
    static uint8_t block[4096] __attribute__((aligned(4096)));
    int direct, cached;

    NEEDS(FEATURE_DIRECT);
    make_pattern("f", 16384);
    cached = (int)OK(open("f", O_RDWR));
    direct = (int)OK(open("f", O_RDWR | O_DIRECT));
    RANGE_IS_PATTERN(cached, 0, 16384);
    memset(block, 'd', sizeof(block));
    EQ(pwrite(direct, block, 4096, 4096), 4096);
    RANGE_IS(cached, 4096, 8192, 'd');
    memset(block, 'c', sizeof(block));
    EQ(pwrite(cached, block, 4096, 8192), 4096);
    EQ(pread(direct, block, 4096, 8192), 4096);
    EQ(block[0], 'c');
    EQ(block[4095], 'c');
    RANGE_IS_PATTERN(cached, 12288, 16384);
}

CASE(direct_append_goes_to_the_end)
{
    static uint8_t block[4096] __attribute__((aligned(4096)));
    int fd;

    NEEDS(FEATURE_DIRECT);
    fd = (int)OK(open("f", O_CREAT | O_WRONLY | O_DIRECT | O_APPEND, 0644));
    for (int i = 0; i < 4; i++) {
        memset(block, 'a' + i, sizeof(block));
        EQ(write(fd, block, sizeof(block)), sizeof(block));
    }
    fd = (int)OK(open("f", O_RDONLY));
    RANGE_IS(fd, 0, 4096, 'a');
    RANGE_IS(fd, 12288, 16384, 'd');
    SIZE_IS("f", 16384);
}

CASE(direct_read_at_an_odd_end_is_short)
{
    static uint8_t block[8192] __attribute__((aligned(4096)));
    int fd;

    NEEDS(FEATURE_DIRECT);
    make_pattern("f", 5000);
    fd = (int)OK(open("f", O_RDONLY | O_DIRECT));
    EQ(pread(fd, block, 8192, 0), 5000);
    EQ(block[4999], pattern_byte(4999));
}

CASE(tmpfile_has_no_name_until_linked)
{
    char self[64];
    int fd;

    NEEDS(FEATURE_TMPFILE);
    fd = (int)OK(open(".", O_TMPFILE | O_RDWR, 0640));
    EQ(stat_fd(fd).st_nlink, 0);
    EQ(write(fd, "abc", 3), 3);
    snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
    OK(linkat(AT_FDCWD, self, AT_FDCWD, "f", AT_SYMLINK_FOLLOW));
    EQ(stat_fd(fd).st_nlink, 1);
    TEXT_IS("f", "abc");
    MODE_IS("f", 0640);
}

CASE(many_descriptors_on_one_file_agree)
{
    enum { COUNT = 200 };
    int fds[COUNT];

    make_file("f");
    for (int i = 0; i < COUNT; i++)
        fds[i] = (int)OK(open("f", O_RDWR));
    for (int i = 0; i < COUNT; i++)
        EQ(pwrite(fds[i], &(char) { (char)i }, 1, i), 1);
    for (int i = 0; i < COUNT; i++) {
        char c;

        EQ(pread(fds[COUNT - 1 - i], &c, 1, i), 1);
        EQ((uint8_t)c, i);
        EQ(stat_fd(fds[i]).st_size, COUNT);
    }
}

CASE(close_of_a_closed_descriptor_is_ebadf)
{
    int fd = (int)OK(open("f", O_CREAT | O_WRONLY, 0644));

    OK(close(fd));
    FAILS(EBADF, close(fd));
    FAILS(EBADF, fsync(fd));
}
