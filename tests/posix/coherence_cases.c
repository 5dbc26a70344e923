/* Two mounts of one volume: what is done through one (plain paths) is seen at once through the other (B(path)), whatever
 * the other knew before. A writer has closed the file before the other looks, or called fsync() if it made the file or
 * keeps it open: the close of a new file does not wait for its data (flush-behind). */
#define TOPIC "coherence"
#include "suite_internal.h"

#include <dirent.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>

const bool suite_needs_other = true;

static void write_text(const char *path, int flags, const char *text)
{
    int fd = (int)OK(open(path, O_WRONLY | flags, 0644));

    EQ(write(fd, text, strlen(text)), strlen(text));
    if (flags & O_CREAT)
        OK(fsync(fd));
    OK(close(fd));
}

static bool is_listed(const char *dir_path, const char *name)
{
    DIR *dir = opendir(dir_path);
    struct dirent *entry;
    bool seen = false;

    THAT(dir != NULL);
    while ((entry = readdir(dir)))
        seen |= strcmp(entry->d_name, name) == 0;
    OK(closedir(dir));
    return seen;
}

/* ---- Names ---- */

CASE(new_file)
{
    make_file_with("f", "hello");
    TEXT_IS(B("f"), "hello");
}

CASE(new_file_where_none_was_a_moment_ago)
{
    for (int i = 0; i < 20; i++) {
        char name[16];

        snprintf(name, sizeof(name), "f%d", i);
        GONE(B(name));
        make_file_with(name, "hello");
        TEXT_IS(B(name), "hello");
    }
}

CASE(new_file_in_both_directions)
{
    for (int i = 0; i < 20; i++) {
        char name[16];

        snprintf(name, sizeof(name), "f%d", i);
        GONE(name);
        GONE(B(name));
        make_file(i % 2 ? name : B(name));
        EXISTS(name);
        EXISTS(B(name));
    }
}

CASE(new_directory_where_none_was_a_moment_ago)
{
    GONE(B("d"));
    make_dir("d");
    EXISTS(B("d"));
    make_file(B("d/f"));
    EXISTS("d/f");
}

CASE(removed_file)
{
    make_file_with("f", "x");
    TEXT_IS(B("f"), "x");
    OK(unlink("f"));
    GONE(B("f"));
    FAILS(ENOENT, open(B("f"), O_RDONLY));
}

CASE(removed_directory)
{
    make_dir("d");
    EXISTS(B("d"));
    OK(rmdir("d"));
    GONE(B("d"));
    FAILS(ENOENT, open(B("d/f"), O_CREAT | O_WRONLY, 0644));
}

CASE(directory_made_full_through_the_other)
{
    make_dir("d");
    EXISTS(B("d"));
    make_file("d/f");
    FAILS(ENOTEMPTY, rmdir(B("d")));
    OK(unlink("d/f"));
    OK(rmdir(B("d")));
    GONE("d");
}

CASE(renamed_file)
{
    make_file_with("f", "x");
    TEXT_IS(B("f"), "x");
    GONE(B("g"));
    OK(rename("f", "g"));
    GONE(B("f"));
    TEXT_IS(B("g"), "x");
}

CASE(file_replaced_by_rename)
{
    make_file_with("f", "old");
    TEXT_IS(B("f"), "old");
    for (int i = 0; i < 20; i++) {
        char text[16];

        snprintf(text, sizeof(text), "new %d", i);
        make_file_with("tmp", text);
        OK(rename("tmp", "f"));
        TEXT_IS(B("f"), text);
        EQ(stat_of(B("f")).st_ino, stat_of("f").st_ino);
    }
}

CASE(renamed_directory_with_content)
{
    make_dir("d");
    make_file_with("d/f", "x");
    TEXT_IS(B("d/f"), "x");
    OK(rename("d", "e"));
    GONE(B("d"));
    GONE(B("d/f"));
    TEXT_IS(B("e/f"), "x");
}

CASE(directory_moved_to_another_parent)
{
    make_dir("p");
    make_dir("q");
    make_dir("p/d");
    make_file("p/d/f");
    EXISTS(B("p/d/f"));
    OK(rename("p/d", "q/d"));
    GONE(B("p/d"));
    EXISTS(B("q/d/f"));
    EQ(stat_of(B("q/d/..")).st_ino, stat_of(B("q")).st_ino);
}

CASE(name_that_changes_its_type)
{
    make_file("n");
    THAT(S_ISREG(stat_of(B("n")).st_mode));
    OK(unlink("n"));
    make_dir("n");
    THAT(S_ISDIR(stat_of(B("n")).st_mode));
    make_file(B("n/f"));
    OK(unlink("n/f"));
    OK(rmdir("n"));
    OK(symlink("x", "n"));
    THAT(S_ISLNK(stat_of(B("n")).st_mode));
}

CASE(symlink_with_another_text)
{
    char text[8] = "";

    OK(symlink("one", "s"));
    OK(readlink(B("s"), text, sizeof(text)));
    OK(unlink("s"));
    OK(symlink("other", "s"));
    EQ(readlink(B("s"), text, sizeof(text)), 5);
    BYTES_EQ(text, "other", 5);
}

CASE(second_name)
{
    make_file_with("f", "x");
    NLINK_IS(B("f"), 1);
    OK(link("f", "g"));
    NLINK_IS(B("f"), 2);
    TEXT_IS(B("g"), "x");
    EQ(stat_of(B("f")).st_ino, stat_of(B("g")).st_ino);
    OK(unlink("f"));
    NLINK_IS(B("g"), 1);
}

CASE(link_count_of_a_directory)
{
    make_dir("d");
    NLINK_IS(B("d"), 2);
    make_dir("d/e");
    NLINK_IS(B("d"), 3);
    OK(rmdir("d/e"));
    NLINK_IS(B("d"), 2);
}

CASE(listing)
{
    make_dir("d");
    make_file("d/a");
    THAT(is_listed(B("d"), "a"));
    for (int i = 0; i < 20; i++) {
        make_file("d/b");
        THAT(is_listed(B("d"), "b"));
        OK(rename("d/b", "d/c"));
        THAT(!is_listed(B("d"), "b"));
        THAT(is_listed(B("d"), "c"));
        OK(unlink("d/c"));
        THAT(!is_listed(B("d"), "c"));
    }
}

CASE(times_of_a_directory)
{
    struct stat before;

    make_dir("d");
    before = stat_of(B("d"));
    tick();
    make_file("d/f");
    THAT(time_cmp(stat_of(B("d")).st_mtim, before.st_mtim) > 0);
}

CASE(inode_numbers_agree)
{
    make_file("f");
    make_dir("d");
    EQ(stat_of("f").st_ino, stat_of(B("f")).st_ino);
    EQ(stat_of("d").st_ino, stat_of(B("d")).st_ino);
}

CASE(exclusive_create_lets_one_side_win)
{
    struct steps s;
    int mine = 0, theirs;

    if (steps_fork(&s)) {
        for (int i = 0; i < 100; i++) {
            char name[16];
            int fd;

            snprintf(name, sizeof(name), "f%d", i);
            fd = open(B(name), O_CREAT | O_EXCL | O_WRONLY, 0644);
            THAT(fd >= 0 || errno == EEXIST);
            if (fd >= 0)
                EQ(write(fd, "B", 1), 1);
            close(fd);
        }
        suite_leave();
    }
    for (int i = 0; i < 100; i++) {
        char name[16];
        int fd;

        snprintf(name, sizeof(name), "f%d", i);
        fd = open(name, O_CREAT | O_EXCL | O_WRONLY, 0644);
        THAT(fd >= 0 || errno == EEXIST);
        mine += fd >= 0;
        close(fd);
    }
    steps_end(&s);
    theirs = 0;
    for (int i = 0; i < 100; i++) {
        char name[16];

        snprintf(name, sizeof(name), "f%d", i);
        /* The byte of a file just made may still be on its way after the close (flush-behind). */
        for (double deadline_s = now_s() + 5; stat_of(B(name)).st_size != stat_of(name).st_size; tick())
            THAT(now_s() < deadline_s);
        theirs += stat_of(name).st_size == 1;
    }
    EQ(mine + theirs, 100);
}

/* ---- Content ---- */

CASE(rewritten_content_that_was_read_before)
{
    make_file_with("f", "one");
    for (int i = 0; i < 20; i++) {
        write_text("f", 0, i % 2 ? "two" : "six");
        TEXT_IS(B("f"), i % 2 ? "two" : "six");
    }
}

CASE(rewritten_content_through_an_open_descriptor)
{
    char text[4] = "";
    int fd;

    make_file_with("f", "one");
    fd = (int)OK(open(B("f"), O_RDONLY));
    EQ(pread(fd, text, 3, 0), 3);
    write_text("f", 0, "two");
    EQ(pread(fd, text, 3, 0), 3);
    STR_EQ(text, "two");
}

CASE(appended_content)
{
    make_file_with("f", "1234");
    TEXT_IS(B("f"), "1234");
    write_text("f", O_APPEND, "5678");
    SIZE_IS(B("f"), 8);
    TEXT_IS(B("f"), "12345678");
}

CASE(appended_content_with_mtime_in_the_future)
{
    struct timespec times[2] = { { 0, UTIME_NOW }, { time(NULL) + 30L * 86400, 0 } };

    make_file_with("f", "1234");
    OK(utimensat(AT_FDCWD, "f", times, 0));
    TEXT_IS(B("f"), "1234");
    write_text("f", O_APPEND, "5678");
    TEXT_IS(B("f"), "12345678");
}

CASE(appended_content_through_an_open_descriptor)
{
    int fd;

    make_file_with("f", "1234");
    fd = (int)OK(open(B("f"), O_RDONLY));
    EQ(pread(fd, (char[16]) { 0 }, 16, 0), 4);
    write_text("f", O_APPEND, "5678");
    EQ(stat_fd(fd).st_size, 8);
    EQ(pread(fd, (char[16]) { 0 }, 16, 0), 8);
    EQ(OK(lseek(fd, 0, SEEK_END)), 8);
}

CASE(truncated_content)
{
    int fd;

    make_pattern("f", 100000);
    fd = (int)OK(open(B("f"), O_RDONLY));
    RANGE_IS_PATTERN(fd, 0, 100000);
    OK(truncate("f", 10));
    EQ(stat_fd(fd).st_size, 10);
    EQ(pread(fd, (char[16]) { 0 }, 16, 0), 10);
    OK(truncate("f", 1000));
    RANGE_IS(fd, 10, 1000, 0);
}

CASE(content_truncated_and_written_anew)
{
    make_file_with("f", "a long first content");
    for (int i = 0; i < 20; i++) {
        char text[32];

        TEXT_IS(B("f"), i == 0 ? "a long first content" : text);
        snprintf(text, sizeof(text), "number %d", i * i);
        write_text("f", O_TRUNC, text);
        TEXT_IS(B("f"), text);
    }
}

CASE(content_after_fsync_of_an_open_file)
{
    int fd = (int)OK(open("f", O_CREAT | O_WRONLY, 0644));

    for (int i = 1; i <= 20; i++) {
        EQ(write(fd, "0123456789", 10), 10);
        OK(fsync(fd));
        SIZE_IS(B("f"), i * 10);
    }
}

/* What a writer has neither synced nor closed may be kept back by its mount, but not for long. */
CASE(content_of_an_open_file_within_seconds)
{
    int fd = (int)OK(open("f", O_CREAT | O_WRONLY, 0644));

    for (int i = 1; i <= 5; i++) {
        EQ(write(fd, "0123456789", 10), 10);
        for (double deadline_s = now_s() + 5; stat_of(B("f")).st_size != i * 10; tick())
            THAT(now_s() < deadline_s);
    }
}

CASE(content_written_in_turns_through_open_descriptors)
{
    int a = (int)OK(open("f", O_CREAT | O_RDWR, 0644)), b = (int)OK(open(B("f"), O_RDWR)), value;

    for (int i = 0; i < 50; i++) {
        int from = i % 2 ? a : b, to = i % 2 ? b : a;

        EQ(pwrite(from, &i, sizeof(i), 0), sizeof(i));
        OK(fsync(from));
        EQ(pread(to, &value, sizeof(value), 0), sizeof(value));
        EQ(value, i);
    }
}

CASE(content_of_large_files)
{
    int fd;

    make_pattern("f", 3000000);
    fd = (int)OK(open(B("f"), O_RDWR));
    RANGE_IS_PATTERN(fd, 0, 3000000);
    EQ(pwrite(fd, "XXXX", 4, 1500000), 4);
    OK(close(fd));
    fd = (int)OK(open("f", O_RDONLY));
    RANGE_IS_PATTERN(fd, 0, 1500000);
    RANGE_IS(fd, 1500000, 1500004, 'X');
    RANGE_IS_PATTERN(fd, 1500004, 3000000);
}

CASE(neighbouring_pieces_written_from_both_sides)
{
    enum { PIECE = 1000, COUNT = 60 };
    int a = (int)OK(open("f", O_CREAT | O_RDWR, 0644)), b = (int)OK(open(B("f"), O_RDWR));
    char piece[PIECE];

    for (int i = 0; i < COUNT; i++) {
        memset(piece, 'a' + i % 26, PIECE);
        EQ(pwrite(i % 2 ? a : b, piece, PIECE, (off_t)i * PIECE), PIECE);
    }
    OK(fsync(a));
    OK(fsync(b));
    for (int i = 0; i < COUNT; i++) {
        RANGE_IS(a, (off_t)i * PIECE, (off_t)(i + 1) * PIECE, (uint8_t)('a' + i % 26));
        RANGE_IS(b, (off_t)i * PIECE, (off_t)(i + 1) * PIECE, (uint8_t)('a' + i % 26));
    }
}

CASE(appends_from_both_sides_lose_nothing)
{
    struct steps s;
    int fd, counts[2] = { 0 };
    char line[32];

    make_file("f");
    if (steps_fork(&s)) {
        fd = (int)OK(open(B("f"), O_WRONLY | O_APPEND));
        for (int i = 0; i < 200; i++)
            EQ(write(fd, "bbbbbbbbbbbbbbb\n", 16), 16);
        OK(close(fd));
        suite_leave();
    }
    fd = (int)OK(open("f", O_WRONLY | O_APPEND));
    for (int i = 0; i < 200; i++)
        EQ(write(fd, "aaaaaaaaaaaaaaa\n", 16), 16);
    OK(close(fd));
    steps_end(&s);
    SIZE_IS("f", 6400);
    SIZE_IS(B("f"), 6400);
    fd = (int)OK(open("f", O_RDONLY));
    for (int i = 0; i < 400; i++) {
        EQ(read(fd, line, 16), 16);
        THAT(memcmp(line, "aaaaaaaaaaaaaaa\n", 16) == 0 || memcmp(line, "bbbbbbbbbbbbbbb\n", 16) == 0);
        counts[line[0] - 'a']++;
    }
    EQ(counts[0], 200);
    EQ(counts[1], 200);
}

CASE(map_after_a_rewrite)
{
    uint8_t *p;
    int fd;

    NEEDS(FEATURE_SHARED_MMAP);
    make_pattern("f", 8192);
    fd = (int)OK(open(B("f"), O_RDONLY));
    p = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0);
    THAT(p != MAP_FAILED);
    EQ(p[4096], pattern_byte(4096));
    fd = (int)OK(open("f", O_WRONLY));
    EQ(pwrite(fd, "new", 3, 4096), 3);
    OK(close(fd));
    EQ(p[4096], 'n');
}

CASE(store_into_a_map)
{
    uint8_t *p;
    int fd;

    NEEDS(FEATURE_SHARED_MMAP);
    make_pattern("f", 8192);
    fd = (int)OK(open(B("f"), O_RDONLY));
    RANGE_IS_PATTERN(fd, 0, 8192);
    p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, (int)OK(open("f", O_RDWR)), 0);
    THAT(p != MAP_FAILED);
    p[100] = 'm';
    OK(msync(p, 8192, MS_SYNC));
    RANGE_IS(fd, 100, 101, 'm');
}

CASE(unlinked_through_the_other_while_open)
{
    char text[8] = "";
    int fd;

    make_file_with("f", "content");
    fd = (int)OK(open("f", O_RDWR));
    OK(unlink(B("f")));
    GONE("f");
    EQ(pread(fd, text, 7, 0), 7);
    STR_EQ(text, "content");
    EQ(pwrite(fd, "more", 4, 7), 4);
    OK(fsync(fd));
    EQ(stat_fd(fd).st_size, 11);
    EQ(stat_fd(fd).st_nlink, 0);
    make_file_with(B("f"), "other");
    TEXT_IS("f", "other");
    EQ(stat_fd(fd).st_size, 11);
}

CASE(renamed_over_through_the_other_while_open)
{
    char text[8] = "";
    int fd;

    make_file_with("f", "content");
    fd = (int)OK(open("f", O_RDWR));
    make_file_with(B("g"), "new");
    OK(rename(B("g"), B("f")));
    EQ(pread(fd, text, 7, 0), 7);
    STR_EQ(text, "content");
    EQ(stat_fd(fd).st_nlink, 0);
    TEXT_IS("f", "new");
}

CASE(allocated_and_punched)
{
    int fd;

    NEEDS(FEATURE_PUNCH);
    make_pattern("f", 100000);
    fd = (int)OK(open(B("f"), O_RDONLY));
    RANGE_IS_PATTERN(fd, 0, 100000);
    OK(fallocate((int)OK(open("f", O_RDWR)), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 50000));
    RANGE_IS(fd, 0, 50000, 0);
    RANGE_IS_PATTERN(fd, 50000, 100000);
    OK(fallocate((int)OK(open("f", O_RDWR)), 0, 0, 200000));
    EQ(stat_fd(fd).st_size, 200000);
}

/* ---- Attributes ---- */

CASE(mode_and_owner)
{
    make_file("f");
    MODE_IS(B("f"), 0644);
    OK(chmod("f", 0600));
    MODE_IS(B("f"), 0600);
    OK(chown("f", ALICE, STAFF));
    OWNER_IS(B("f"), ALICE, STAFF);
}

CASE(permission_taken_away)
{
    make_file_with("f", "x");
    AS (ALICE, STAFF)
        OK(open(B("f"), O_RDONLY));
    OK(chmod("f", 0600));
    AS (ALICE, STAFF)
        FAILS(EACCES, open(B("f"), O_RDONLY));
}

CASE(permission_to_search_taken_away)
{
    make_dir("d");
    make_file("d/f");
    AS (ALICE, STAFF)
        OK(stat(B("d/f"), &(struct stat) { 0 }));
    OK(chmod("d", 0700));
    AS (ALICE, STAFF)
        FAILS(EACCES, stat(B("d/f"), &(struct stat) { 0 }));
}

CASE(times)
{
    struct timespec times[2] = { { 1000, 1 }, { 2000, 2 } };

    make_file("f");
    THAT(stat_of(B("f")).st_mtim.tv_sec != 2000);
    OK(utimensat(AT_FDCWD, "f", times, 0));
    EQ(stat_of(B("f")).st_mtim.tv_sec, 2000);
    EQ(stat_of(B("f")).st_mtim.tv_nsec, 2);
    EQ(stat_of(B("f")).st_atim.tv_sec, 1000);
}

/* It asks for the truth, whatever anybody has kept. */
CASE(attributes_asked_for_without_caches)
{
    make_file("f");
    for (int i = 0; i < 50; i++) {
        const char *here = i % 2 ? "f" : B("f"), *there = i % 2 ? B("f") : "f";
        struct statx now;

        OK(statx(AT_FDCWD, here, AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &now));
        OK(statx(AT_FDCWD, here, AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &now));
        OK(chmod(there, i % 2 ? 0600 : 0640));
        OK(statx(AT_FDCWD, here, AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &now));
        EQ(now.stx_mode & 07777, i % 2 ? 0600 : 0640);
        OK(truncate(there, i + 1));
        OK(statx(AT_FDCWD, here, AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &now));
        EQ(now.stx_size, i + 1);
        OK(chmod(here, 0644)); /* and what was done here */
        OK(statx(AT_FDCWD, here, AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &now));
        EQ(now.stx_mode & 07777, 0644);
    }
}

CASE(change_time)
{
    struct stat before;

    make_file("f");
    before = stat_of(B("f"));
    tick();
    OK(chmod("f", 0600));
    THAT(time_cmp(stat_of(B("f")).st_ctim, before.st_ctim) > 0);
    EQ(time_cmp(stat_of(B("f")).st_ctim, stat_of("f").st_ctim), 0);
}

CASE(extended_attributes)
{
    char value[16];

    NEEDS(FEATURE_USER_XATTR);
    make_file("f");
    FAILS(ENODATA, getxattr(B("f"), "user.a", value, sizeof(value)));
    OK(setxattr("f", "user.a", "one", 3, 0));
    EQ(getxattr(B("f"), "user.a", value, sizeof(value)), 3);
    OK(setxattr("f", "user.a", "three", 5, 0));
    EQ(getxattr(B("f"), "user.a", value, sizeof(value)), 5);
    BYTES_EQ(value, "three", 5);
    OK(removexattr("f", "user.a"));
    FAILS(ENODATA, getxattr(B("f"), "user.a", value, sizeof(value)));
    EQ(listxattr(B("f"), NULL, 0), listxattr("f", NULL, 0));
}

/* ---- Locks ---- */

static int record_lock(int fd, int type)
{
    struct flock lock = { .l_type = (short)type };

    return fcntl(fd, F_SETLK, &lock);
}

/* Two processes, for the kernel knows that the mounts are two file systems but POSIX locks belong to processes. */
CASE(record_lock_is_held_against_the_other)
{
    struct steps s;
    int fd;

    make_file("f");
    if (steps_fork(&s)) {
        fd = (int)OK(open(B("f"), O_RDWR));
        steps_wait(&s);
        FAILS(EAGAIN, record_lock(fd, F_WRLCK));
        FAILS(EAGAIN, record_lock(fd, F_RDLCK));
        steps_tell(&s);
        steps_wait(&s);
        OK(record_lock(fd, F_WRLCK));
        suite_leave();
    }
    fd = (int)OK(open("f", O_RDWR));
    OK(record_lock(fd, F_WRLCK));
    steps_tell(&s);
    steps_wait(&s);
    OK(record_lock(fd, F_UNLCK));
    steps_tell(&s);
    steps_end(&s);
}

CASE(record_lock_is_known_to_the_other)
{
    struct flock lock = { .l_type = F_WRLCK, .l_start = 100, .l_len = 50 };
    int fd = (int)OK(open("f", O_CREAT | O_RDWR, 0644));

    OK(fcntl(fd, F_SETLK, &lock));
    IN_CHILD () {
        int other = (int)OK(open(B("f"), O_RDWR));

        lock = (struct flock) { .l_type = F_RDLCK };
        OK(fcntl(other, F_GETLK, &lock));
        EQ(lock.l_type, F_WRLCK);
        EQ(lock.l_start, 100);
        EQ(lock.l_len, 50);
        lock = (struct flock) { .l_type = F_WRLCK, .l_start = 150 };
        OK(fcntl(other, F_SETLK, &lock));
    }
}

CASE(record_lock_is_waited_for)
{
    struct flock lock = { .l_type = F_WRLCK };
    struct steps s;
    int fd = (int)OK(open("f", O_CREAT | O_RDWR, 0644));

    OK(record_lock(fd, F_WRLCK));
    if (steps_fork(&s)) {
        int other = (int)OK(open(B("f"), O_RDWR));

        steps_tell(&s);
        OK(fcntl(other, F_SETLKW, &lock));
        EQ(write(other, "!", 1), 1);
        suite_leave();
    }
    steps_wait(&s);
    tick();
    SIZE_IS("f", 0);
    OK(record_lock(fd, F_UNLCK));
    steps_end(&s);
    SIZE_IS("f", 1);
}

CASE(record_lock_of_a_killed_process_is_free_for_the_other)
{
    struct steps s;
    int fd;

    make_file("f");
    fd = (int)OK(open(B("f"), O_RDWR));
    if (steps_fork(&s)) {
        OK(record_lock((int)OK(open("f", O_RDWR)), F_WRLCK));
        steps_tell(&s);
        pause();
    }
    steps_wait(&s);
    FAILS(EAGAIN, record_lock(fd, F_WRLCK));
    OK(kill(s.child, SIGKILL));
    OK(waitpid(s.child, NULL, 0));
    /* the kernel does not wait for the answer when a process that ends closes its files */
    for (double deadline_s = now_s() + 10; record_lock(fd, F_WRLCK) < 0; tick()) {
        EQ(errno, EAGAIN);
        THAT(now_s() < deadline_s);
    }
}

CASE(flock_is_held_against_the_other)
{
    int a, b;

    make_file("f");
    a = (int)OK(open("f", O_RDWR));
    b = (int)OK(open(B("f"), O_RDWR));
    OK(flock(a, LOCK_EX));
    FAILS(EWOULDBLOCK, flock(b, LOCK_EX | LOCK_NB));
    FAILS(EWOULDBLOCK, flock(b, LOCK_SH | LOCK_NB));
    OK(flock(a, LOCK_SH));
    OK(flock(b, LOCK_SH | LOCK_NB));
    OK(flock(b, LOCK_UN));
    OK(flock(a, LOCK_UN));
    OK(flock(b, LOCK_EX | LOCK_NB));
    FAILS(EWOULDBLOCK, flock(a, LOCK_EX | LOCK_NB));
}

CASE(flock_is_waited_for)
{
    struct steps s;
    int fd = (int)OK(open("f", O_CREAT | O_RDWR, 0644));

    OK(flock(fd, LOCK_EX));
    if (steps_fork(&s)) {
        int other = (int)OK(open(B("f"), O_RDWR));

        steps_tell(&s);
        OK(flock(other, LOCK_EX));
        EQ(write(other, "!", 1), 1);
        suite_leave();
    }
    steps_wait(&s);
    tick();
    SIZE_IS("f", 0);
    OK(flock(fd, LOCK_UN));
    steps_end(&s);
    SIZE_IS("f", 1);
}

/* What was written under a lock is there for the next who gets it, closed or not. */
CASE(counter_under_flock_from_both_sides)
{
    enum { ROUNDS = 100 };
    int total = 0, fd = (int)OK(open("f", O_CREAT | O_RDWR, 0644));

    EQ(pwrite(fd, &total, sizeof(total), 0), sizeof(total));
    OK(fsync(fd));
    OK(close(fd));
    for (int side = 0; side < 2; side++) {
        if (fork() != 0)
            continue;
        fd = (int)OK(open(side ? B("f") : "f", O_RDWR));
        for (int i = 0; i < ROUNDS; i++) {
            OK(flock(fd, LOCK_EX));
            EQ(pread(fd, &total, sizeof(total), 0), sizeof(total));
            total++;
            EQ(pwrite(fd, &total, sizeof(total), 0), sizeof(total));
            OK(flock(fd, LOCK_UN));
        }
        _exit(0);
    }
    for (int side = 0; side < 2; side++) {
        int status;

        OK(wait(&status));
        EQ(status, 0);
    }
    fd = (int)OK(open(B("f"), O_RDONLY));
    EQ(pread(fd, &total, sizeof(total), 0), sizeof(total));
    EQ(total, 2 * ROUNDS);
}

/* ---- At random ---- */

enum { NAMES = 12, STEPS = 1500 };

struct expected {
    enum { NOTHING, FILE_KIND, DIR_KIND } kind;
    char text[32];
    mode_t mode;
};

static const char *name_number(int i)
{
    static char names[4][16];
    static unsigned next;
    char *name = names[next++ % 4];

    snprintf(name, 16, "n%d", i);
    return name;
}

static const char *side_path(int side, int name)
{
    return side ? B(name_number(name)) : name_number(name);
}

/* Does one random thing through a side; the model says what must come of it. */
static void random_step(struct expected *names, int side, unsigned what, int i, int k, int step)
{
    struct expected *e = &names[i], *to = &names[k];
    const char *path = side_path(side, i);

    switch (what) {
    case 0: /* write a file */
        if (e->kind == DIR_KIND) {
            FAILS(EISDIR, open(path, O_CREAT | O_WRONLY, 0644));
            return;
        }
        snprintf(e->text, sizeof(e->text), "step %d", step);
        write_text(path, O_CREAT | O_TRUNC, e->text);
        if (e->kind == NOTHING)
            e->mode = 0644;
        e->kind = FILE_KIND;
        return;
    case 1:
        if (e->kind == NOTHING) {
            OK(mkdir(path, 0755));
            *e = (struct expected) { .kind = DIR_KIND, .mode = 0755 };
        } else {
            FAILS(EEXIST, mkdir(path, 0755));
        }
        return;
    case 2: /* remove */
        if (e->kind == NOTHING)
            FAILS(ENOENT, unlink(path));
        else
            OK(e->kind == DIR_KIND ? rmdir(path) : unlink(path));
        e->kind = NOTHING;
        return;
    case 3:
        if (e->kind == NOTHING) {
            FAILS(ENOENT, rename(path, side_path(side, k)));
        } else if (i != k && to->kind != NOTHING && to->kind != e->kind) {
            FAILS(e->kind == DIR_KIND ? ENOTDIR : EISDIR, rename(path, side_path(side, k)));
        } else if (i != k) {
            OK(rename(path, side_path(side, k)));
            *to = *e;
            e->kind = NOTHING;
        }
        return;
    default:
        if (e->kind == NOTHING) {
            FAILS(ENOENT, chmod(path, 0700));
        } else {
            e->mode = 0600 | (mode_t)(step % 64);
            OK(chmod(path, e->mode));
        }
        return;
    }
}

static void check_side(const struct expected *names, int side, int i)
{
    const char *path = side_path(side, i);

    if (names[i].kind == NOTHING) {
        GONE(path);
        return;
    }
    EQ(S_ISDIR(stat_of(path).st_mode), names[i].kind == DIR_KIND);
    MODE_IS(path, names[i].mode);
    if (names[i].kind == FILE_KIND)
        TEXT_IS(path, names[i].text);
    EQ(is_listed(side ? B(".") : ".", name_number(i)), true);
}

CASE(random_steps_from_both_sides)
{
    struct expected names[NAMES] = { 0 };
    unsigned random = 12345;

    for (int step = 0; step < STEPS; step++) {
        int side, i, k;
        unsigned what;

        random = random * 1103515245 + 12345;
        side = random >> 30 & 1;
        what = (random >> 16) % 5;
        i = (int)(random >> 8 & 0xff) % NAMES;
        k = (int)(random >> 20 & 0xff) % NAMES;
        random_step(names, side, what, i, k, step);
        check_side(names, !side, i);
        check_side(names, !side, k);
    }
    for (int i = 0; i < NAMES; i++) {
        check_side(names, 0, i);
        check_side(names, 1, i);
    }
}
