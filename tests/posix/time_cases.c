/* utimensat() and futimens(): values, permissions, and what else moves the times. */
#define TOPIC "time"
#include "suite.h"

#include <sys/time.h>
#include <time.h>
#include <utime.h>

static const struct timespec past[2] = { { 1000000000, 123456789 }, { 1100000000, 987654321 } };

static void times_are(const char *path, struct timespec atime, struct timespec mtime)
{
    struct stat st = stat_of(path);

    EQ(st.st_atim.tv_sec, atime.tv_sec);
    EQ(st.st_atim.tv_nsec, atime.tv_nsec);
    EQ(st.st_mtim.tv_sec, mtime.tv_sec);
    EQ(st.st_mtim.tv_nsec, mtime.tv_nsec);
}

static int set(const char *path, struct timespec atime, struct timespec mtime)
{
    return utimensat(AT_FDCWD, path, (struct timespec[2]) { atime, mtime }, 0);
}

static bool is_now(struct timespec t)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return t.tv_sec >= now.tv_sec - 60 && t.tv_sec <= now.tv_sec + 1;
}

#define NOW  ((struct timespec) { 0, UTIME_NOW })
#define OMIT ((struct timespec) { 0, UTIME_OMIT })

CASE(both_are_set_to_the_nanosecond)
{
    make_file("f");
    OK(set("f", past[0], past[1]));
    times_are("f", past[0], past[1]);
}

CASE(both_are_set_through_a_descriptor)
{
    int fd = (int)OK(open("f", O_CREAT | O_RDONLY, 0644));

    OK(futimens(fd, past));
    times_are("f", past[0], past[1]);
    EQ(time_cmp(stat_fd(fd).st_mtim, past[1]), 0);
}

CASE(of_a_directory_are_set)
{
    make_dir("d");
    OK(set("d", past[0], past[1]));
    times_are("d", past[0], past[1]);
}

CASE(of_a_symlink_are_set_without_following)
{
    struct stat before;

    make_file("f");
    before = stat_of("f");
    OK(symlink("f", "s"));
    OK(utimensat(AT_FDCWD, "s", past, AT_SYMLINK_NOFOLLOW));
    times_are("s", past[0], past[1]);
    EQ(time_cmp(stat_of("f").st_mtim, before.st_mtim), 0);
}

CASE(of_a_symlink_are_set_at_the_target_when_followed)
{
    make_file("f");
    OK(symlink("f", "s"));
    OK(set("s", past[0], past[1]));
    times_are("f", past[0], past[1]);
}

CASE(of_a_dangling_symlink_followed_are_enoent)
{
    OK(symlink("missing", "s"));
    FAILS(ENOENT, set("s", past[0], past[1]));
}

CASE(omitted_atime_stays)
{
    make_file("f");
    OK(set("f", past[0], past[1]));
    OK(set("f", OMIT, (struct timespec) { 77, 7 }));
    times_are("f", past[0], (struct timespec) { 77, 7 });
}

CASE(omitted_mtime_stays)
{
    make_file("f");
    OK(set("f", past[0], past[1]));
    OK(set("f", (struct timespec) { 77, 7 }, OMIT));
    times_are("f", (struct timespec) { 77, 7 }, past[1]);
}

CASE(both_omitted_changes_nothing)
{
    make_file("f");
    OK(set("f", past[0], past[1]));
    MOVES("f", "", OK(set("f", OMIT, OMIT)));
    times_are("f", past[0], past[1]);
}

CASE(null_sets_both_to_now)
{
    make_file("f");
    OK(set("f", past[0], past[1]));
    OK(utimensat(AT_FDCWD, "f", NULL, 0));
    THAT(is_now(stat_of("f").st_atim));
    THAT(is_now(stat_of("f").st_mtim));
}

CASE(now_sets_one_to_now)
{
    make_file("f");
    OK(set("f", past[0], past[1]));
    OK(set("f", NOW, OMIT));
    THAT(is_now(stat_of("f").st_atim));
    EQ(time_cmp(stat_of("f").st_mtim, past[1]), 0);
    OK(set("f", past[0], NOW));
    EQ(time_cmp(stat_of("f").st_atim, past[0]), 0);
    THAT(is_now(stat_of("f").st_mtim));
}

CASE(setting_moves_ctime)
{
    struct stat before;

    make_file("f");
    before = stat_of("f");
    tick();
    OK(set("f", past[0], past[1]));
    THAT(time_cmp(stat_of("f").st_ctim, before.st_ctim) > 0);
    THAT(is_now(stat_of("f").st_ctim));
}

CASE(setting_moves_no_time_of_the_directory)
{
    make_dir("d");
    make_file("d/f");
    MOVES("d", "", OK(set("d/f", past[0], past[1])));
}

static const struct epoch_row {
    const char *name;
    struct timespec time;
} epoch_rows[] = {
    { "0", { 0, 0 } },
    { "1ns", { 0, 1 } },
    { "before_1970", { -1000, 500 } },
    { "1901", { INT32_MIN, 0 } },
    { "end_of_31_bits", { INT32_MAX, 999999999 } },
    { "past_31_bits", { (time_t)INT32_MAX + 1, 1 } },
    { "past_32_bits", { (time_t)UINT32_MAX + 10, 5 } },
    { "2400", { 13569465600, 1 } },
};

static void epoch(const void *arg)
{
    struct timespec t = ((const struct epoch_row *)arg)->time;

    make_file("f");
    make_dir("d");
    OK(set("f", t, t));
    times_are("f", t, t);
    OK(set("d", t, t));
    times_are("d", t, t);
}

__attribute__((constructor)) static void add_epochs(void)
{
    for (size_t i = 0; i < sizeof(epoch_rows) / sizeof(*epoch_rows); i++)
        suite_add_row(TOPIC, "epoch", epoch_rows[i].name, epoch, &epoch_rows[i]);
}

CASE(nanoseconds_out_of_range_are_einval)
{
    make_file("f");
    FAILS(EINVAL, set("f", (struct timespec) { 0, 1000000000 }, past[1]));
    FAILS(EINVAL, set("f", past[0], (struct timespec) { 0, -1 }));
}

CASE(future_stays_after_a_read_and_moves_back_by_a_write)
{
    struct timespec now;
    int fd;

    NEEDS(FEATURE_TIME_BACK);
    clock_gettime(CLOCK_REALTIME, &now);
    now.tv_sec += 30L * 86400;
    make_file_with("f", "abc");
    OK(set("f", now, now));
    fd = (int)OK(open("f", O_RDWR));
    EQ(read(fd, (char[1]) { 0 }, 1), 1);
    EQ(time_cmp(stat_of("f").st_mtim, now), 0);
    EQ(write(fd, "x", 1), 1);
    THAT(is_now(stat_of("f").st_mtim));
}

CASE(set_after_writes_wins_over_them)
{
    int fd = (int)OK(open("f", O_CREAT | O_WRONLY, 0644));

    for (int i = 0; i < 20; i++)
        EQ(write(fd, "0123456789", 10), 10);
    OK(futimens(fd, past));
    times_are("f", past[0], past[1]);
    OK(close(fd));
    times_are("f", past[0], past[1]);
    SIZE_IS("f", 200);
}

CASE(set_by_path_while_another_descriptor_has_written)
{
    int fd = (int)OK(open("f", O_CREAT | O_WRONLY, 0644));

    EQ(write(fd, "0123456789", 10), 10);
    OK(set("f", past[0], past[1]));
    OK(fsync(fd));
    OK(close(fd));
    times_are("f", past[0], past[1]);
}

/* ---- Permissions ---- */

CASE(owner_may_set_any_time)
{
    make_file_mode("f", 0444);
    OK(chown("f", ALICE, STAFF));
    AS (ALICE, STAFF)
        OK(set("f", past[0], past[1]));
    times_are("f", past[0], past[1]);
}

CASE(writer_may_set_to_now_only)
{
    make_file_mode("f", 0666);
    OK(set("f", past[0], past[1]));
    AS (ALICE, STAFF) {
        FAILS(EPERM, set("f", past[0], past[1]));
        FAILS(EPERM, set("f", NOW, OMIT));
        FAILS(EPERM, set("f", OMIT, NOW));
        OK(utimensat(AT_FDCWD, "f", NULL, 0));
    }
    THAT(is_now(stat_of("f").st_mtim));
}

CASE(writer_may_set_both_to_now_explicitly)
{
    make_file_mode("f", 0666);
    OK(set("f", past[0], past[1]));
    AS (ALICE, STAFF)
        OK(set("f", NOW, NOW));
    THAT(is_now(stat_of("f").st_atim));
    THAT(is_now(stat_of("f").st_mtim));
}

CASE(reader_may_not_set_to_now)
{
    make_file_mode("f", 0644);
    AS (ALICE, STAFF) {
        FAILS(EACCES, utimensat(AT_FDCWD, "f", NULL, 0));
        FAILS(EACCES, set("f", NOW, NOW));
        FAILS(EPERM, set("f", past[0], past[1]));
    }
}

CASE(anybody_may_omit_both)
{
    make_file_mode("f", 0600);
    AS (ALICE, STAFF)
        OK(set("f", OMIT, OMIT));
}

CASE(older_calls_work)
{
    struct timeval old[2] = { { 1000, 250000 }, { 2000, 750000 } };
    struct utimbuf older = { 3000, 4000 };

    make_file("f");
    OK(utimes("f", old));
    times_are("f", (struct timespec) { 1000, 250000000 }, (struct timespec) { 2000, 750000000 });
    OK(utime("f", &older));
    times_are("f", (struct timespec) { 3000, 0 }, (struct timespec) { 4000, 0 });
}

/* ---- What moves which time ---- */

CASE(stat_moves_no_time)
{
    make_file("f");
    make_dir("d");
    MOVES("f", "", OK(stat("f", &(struct stat) { 0 })));
    MOVES("d", "", OK(stat("d", &(struct stat) { 0 })));
}

CASE(change_inside_a_subdirectory_moves_no_time_of_its_parent)
{
    make_dir("d");
    make_dir("d/e");
    MOVES("d", "", make_file("d/e/f"));
}

CASE(writing_a_file_moves_no_time_of_its_directory)
{
    int fd;

    make_dir("d");
    make_file("d/f");
    fd = (int)OK(open("d/f", O_WRONLY));
    MOVES("d", "", EQ(write(fd, "abc", 3), 3));
}

CASE(times_of_new_files_do_not_run_backward)
{
    struct timespec last = { 0, 0 };

    for (int i = 0; i < 50; i++) {
        char name[16];

        snprintf(name, sizeof(name), "f%d", i);
        make_file(name);
        THAT(time_cmp(stat_of(name).st_mtim, last) >= 0);
        last = stat_of(name).st_mtim;
    }
}

CASE(statx_tells_the_same_as_stat)
{
    struct statx x;
    struct stat st;

    make_pattern("f", 5000);
    OK(set("f", past[0], past[1]));
    st = stat_of("f");
    OK(statx(AT_FDCWD, "f", AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &x));
    EQ(x.stx_size, st.st_size);
    EQ(x.stx_ino, st.st_ino);
    EQ(x.stx_mode, st.st_mode);
    EQ(x.stx_nlink, st.st_nlink);
    EQ(x.stx_mtime.tv_sec, past[1].tv_sec);
    EQ(x.stx_mtime.tv_nsec, past[1].tv_nsec);
    EQ(x.stx_ctime.tv_sec, st.st_ctim.tv_sec);
}
