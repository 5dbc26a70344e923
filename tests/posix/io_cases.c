/* Reading, writing and seeking: sizes, holes, offsets beyond 32 bits, vectors, copying inside the kernel. */
#define TOPIC "io"
#include "suite.h"

#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <signal.h>

static int open_new(const char *path)
{
    return (int)OK(open(path, O_CREAT | O_EXCL | O_RDWR, 0644));
}

CASE(write_then_read_gives_the_same_bytes)
{
    int fd;

    make_pattern("f", 1000000);
    fd = (int)OK(open("f", O_RDONLY));
    RANGE_IS_PATTERN(fd, 0, 1000000);
    SIZE_IS("f", 1000000);
}

static const size_t sizes[] = {
    1, 511, 512, 513, 4095, 4096, 4097, 65535, 65536, 65537, 131071, 131072, 131073, 1048576
};

static void one_write_of(const void *arg)
{
    size_t size = *(const size_t *)arg;
    static uint8_t data[1048576], back[1048576];
    int fd = open_new("f");

    for (size_t i = 0; i < size; i++)
        data[i] = pattern_byte(i);
    EQ(write(fd, data, size), size);
    SIZE_IS("f", size);
    EQ(pread(fd, back, size, 0), size);
    BYTES_EQ(back, data, size);
    OK(close(fd));
    fd = (int)OK(open("f", O_RDONLY));
    EQ(read(fd, back, size), size);
    BYTES_EQ(back, data, size);
    EQ(read(fd, back, 1), 0);
}

__attribute__((constructor)) static void add_sizes(void)
{
    static char names[sizeof(sizes) / sizeof(*sizes)][16];

    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        snprintf(names[i], sizeof(names[i]), "%zu", sizes[i]);
        suite_add_row(TOPIC, "one_write_of", names[i], one_write_of, &sizes[i]);
    }
}

CASE(write_moves_mtime_and_ctime)
{
    int fd;

    make_file_with("f", "abc");
    fd = (int)OK(open("f", O_WRONLY));
    MOVES("f", "mc", EQ(write(fd, "x", 1), 1));
}

CASE(write_of_no_bytes_changes_nothing)
{
    int fd;

    make_file_with("f", "abc");
    fd = (int)OK(open("f", O_WRONLY));
    MOVES("f", "", EQ(write(fd, "", 0), 0));
    SIZE_IS("f", 3);
}

CASE(write_on_a_read_only_descriptor_is_ebadf)
{
    int fd;

    make_file("f");
    fd = (int)OK(open("f", O_RDONLY));
    FAILS(EBADF, write(fd, "x", 1));
    FAILS(EBADF, pwrite(fd, "x", 1, 0));
}

CASE(read_on_a_write_only_descriptor_is_ebadf)
{
    int fd;

    make_file("f");
    fd = (int)OK(open("f", O_WRONLY));
    FAILS(EBADF, read(fd, (char[1]) { 0 }, 1));
}

CASE(read_at_the_end_gives_nothing)
{
    int fd;

    make_file_with("f", "abc");
    fd = (int)OK(open("f", O_RDONLY));
    EQ(pread(fd, (char[8]) { 0 }, 8, 3), 0);
    EQ(pread(fd, (char[8]) { 0 }, 8, 1000000), 0);
    EQ(pread(fd, (char[8]) { 0 }, 8, 1), 2);
}

CASE(read_moves_the_access_time_only)
{
    int fd;

    NEEDS(FEATURE_ATIME);
    make_file_with("f", "abc");
    fd = (int)OK(open("f", O_RDONLY));
    MOVES("f", "a", EQ(read(fd, (char[3]) { 0 }, 3), 3));
}

CASE(read_with_noatime_moves_no_time)
{
    struct stat before;
    int fd;

    make_file_with("f", "abc");
    fd = (int)OK(open("f", O_RDONLY | O_NOATIME));
    before = stat_of("f");
    tick();
    EQ(read(fd, (char[3]) { 0 }, 3), 3);
    EQ(time_cmp(stat_of("f").st_atim, before.st_atim), 0);
}

CASE(negative_offset_is_einval)
{
    int fd = open_new("f");

    FAILS(EINVAL, pread(fd, (char[1]) { 0 }, 1, -1));
    FAILS(EINVAL, pwrite(fd, "x", 1, -1));
    FAILS(EINVAL, lseek(fd, -1, SEEK_SET));
}

CASE(pread_and_pwrite_leave_the_offset_alone)
{
    int fd = open_new("f");

    EQ(write(fd, "abcdef", 6), 6);
    EQ(pwrite(fd, "XY", 2, 0), 2);
    EQ(pread(fd, (char[4]) { 0 }, 4, 1), 4);
    EQ(OK(lseek(fd, 0, SEEK_CUR)), 6);
}

CASE(offset_is_shared_by_a_duplicated_descriptor)
{
    int fd = open_new("f"), copy = (int)OK(dup(fd));

    EQ(write(fd, "abc", 3), 3);
    EQ(write(copy, "def", 3), 3);
    EQ(OK(lseek(fd, 0, SEEK_CUR)), 6);
    TEXT_IS("f", "abcdef");
}

CASE(offset_is_not_shared_by_another_open)
{
    int a = open_new("f"), b = (int)OK(open("f", O_RDWR));

    EQ(write(a, "abc", 3), 3);
    EQ(write(b, "X", 1), 1);
    EQ(OK(lseek(b, 0, SEEK_CUR)), 1);
    TEXT_IS("f", "Xbc");
}

CASE(seek_end_follows_the_size)
{
    int fd = open_new("f");

    EQ(write(fd, "abc", 3), 3);
    EQ(OK(lseek(fd, 0, SEEK_END)), 3);
    EQ(OK(lseek(fd, -2, SEEK_END)), 1);
    EQ(OK(lseek(fd, 10, SEEK_END)), 13);
    SIZE_IS("f", 3);
}

CASE(seek_end_sees_what_another_descriptor_wrote)
{
    int a = open_new("f"), b = (int)OK(open("f", O_RDONLY));

    EQ(write(a, "abcdef", 6), 6);
    EQ(OK(lseek(b, 0, SEEK_END)), 6);
}

CASE(seek_with_a_bad_whence_is_einval)
{
    FAILS(EINVAL, lseek(open_new("f"), 0, 99));
}

CASE(write_behind_a_seek_leaves_a_hole_of_zeros)
{
    int fd = open_new("f");

    EQ(write(fd, "abc", 3), 3);
    OK(lseek(fd, 100000, SEEK_SET));
    EQ(write(fd, "z", 1), 1);
    SIZE_IS("f", 100001);
    RANGE_IS(fd, 3, 100000, 0);
    RANGE_IS(fd, 100000, 100001, 'z');
}

CASE(hole_takes_no_space)
{
    int fd = open_new("f");

    EQ(pwrite(fd, "z", 1, 1 << 30), 1);
    OK(fsync(fd));
    THAT(stat_of("f").st_blocks < 1024);
    EQ(stat_of("f").st_size, (1 << 30) + 1);
}

CASE(blocks_count_what_was_written)
{
    int fd;

    make_pattern("f", 1 << 20);
    fd = (int)OK(open("f", O_RDONLY));
    OK(fsync(fd));
    THAT(stat_of("f").st_blocks >= 2048);
    THAT(stat_of("f").st_blocks < 2048 + 256);
}

CASE(filling_a_hole_in_the_middle_keeps_the_rest)
{
    int fd = open_new("f");

    EQ(pwrite(fd, "e", 1, 50000), 1);
    EQ(pwrite(fd, "mmm", 3, 20000), 3);
    RANGE_IS(fd, 0, 20000, 0);
    RANGE_IS(fd, 20000, 20003, 'm');
    RANGE_IS(fd, 20003, 50000, 0);
}

static const struct far_row {
    const char *name;
    off_t offset;
} far_rows[] = {
    { "2GiB", (off_t)1 << 31 },
    { "4GiB", (off_t)1 << 32 },
    { "4GiB_minus_1", ((off_t)1 << 32) - 1 },
    { "1TiB", (off_t)1 << 40 },
};

static void offset_beyond(const void *arg)
{
    off_t offset = ((const struct far_row *)arg)->offset;
    int fd = open_new("f");

    EQ(pwrite(fd, "far", 3, offset), 3);
    EQ(pwrite(fd, "near", 4, 0), 4);
    EQ(stat_of("f").st_size, offset + 3);
    RANGE_IS(fd, offset - 10, offset, 0);
    RANGE_IS(fd, offset, offset + 1, 'f');
    EQ(OK(lseek(fd, 0, SEEK_END)), offset + 3);
    OK(ftruncate(fd, offset + 1));
    EQ(stat_of("f").st_size, offset + 1);
    RANGE_IS(fd, 0, 1, 'n');
}

__attribute__((constructor)) static void add_far_rows(void)
{
    for (size_t i = 0; i < sizeof(far_rows) / sizeof(*far_rows); i++)
        suite_add_row(TOPIC, "offset_beyond", far_rows[i].name, offset_beyond, &far_rows[i]);
}

CASE(write_beyond_the_largest_offset_is_refused)
{
    int fd = open_new("f"), err;

    THAT(pwrite(fd, "x", 1, INT64_MAX) == -1);
    err = errno;
    THAT(err == EFBIG || err == EINVAL);
    SIZE_IS("f", 0);
}

CASE(write_beyond_the_file_size_limit_is_efbig)
{
    int fd = open_new("f");

    IN_CHILD () {
        signal(SIGXFSZ, SIG_IGN);
        OK(setrlimit(RLIMIT_FSIZE, &(struct rlimit) { 8192, 8192 }));
        EQ(pwrite(fd, "abcd", 4, 8190), 2);
        FAILS(EFBIG, pwrite(fd, "x", 1, 8192));
        FAILS(EFBIG, ftruncate(fd, 8193));
    }
    SIZE_IS("f", 8192);
}

CASE(writev_writes_the_pieces_in_order)
{
    struct iovec pieces[3] = { { "one", 3 }, { "", 0 }, { "three", 5 } };
    int fd = open_new("f");

    EQ(writev(fd, pieces, 3), 8);
    TEXT_IS("f", "onethree");
}

CASE(readv_fills_the_pieces_in_order)
{
    char a[3], b[5];
    struct iovec pieces[2] = { { a, 3 }, { b, 5 } };
    int fd;

    make_file_with("f", "onefive!");
    fd = (int)OK(open("f", O_RDONLY));
    EQ(readv(fd, pieces, 2), 8);
    BYTES_EQ(a, "one", 3);
    BYTES_EQ(b, "five!", 5);
}

CASE(pwritev_of_many_pieces_arrives_whole)
{
    static struct iovec pieces[IOV_MAX];
    static uint8_t data[IOV_MAX * 100];
    int fd = open_new("f");

    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = pattern_byte(i + 4096);
    for (int i = 0; i < IOV_MAX; i++)
        pieces[i] = (struct iovec) { data + i * 100, 100 };
    EQ(pwritev(fd, pieces, IOV_MAX, 4096), sizeof(data));
    RANGE_IS(fd, 0, 4096, 0);
    RANGE_IS_PATTERN(fd, 4096, 4096 + (off_t)sizeof(data));
}

CASE(overlapping_writes_keep_the_last)
{
    int fd = open_new("f");

    for (int i = 0; i < 64; i++) {
        uint8_t data[1000];

        memset(data, i + 1, sizeof(data));
        EQ(pwrite(fd, data, sizeof(data), i * 100), sizeof(data));
    }
    for (int i = 0; i < 63; i++)
        RANGE_IS(fd, i * 100, i * 100 + 100, (uint8_t)(i + 1));
    RANGE_IS(fd, 6300, 7300, 64);
}

CASE(backward_writes_give_the_whole_file)
{
    enum { STEP = 3000, COUNT = 60 };
    uint8_t data[STEP / 2];
    int fd = open_new("f");

    for (int i = COUNT * 2 - 1; i >= 0; i--) {
        for (size_t k = 0; k < sizeof(data); k++)
            data[k] = pattern_byte((uint64_t)i * sizeof(data) + k);
        EQ(pwrite(fd, data, sizeof(data), (off_t)i * (off_t)sizeof(data)), sizeof(data));
    }
    RANGE_IS_PATTERN(fd, 0, STEP * COUNT);
}

CASE(two_descriptors_read_what_the_other_wrote)
{
    int a = open_new("f"), b = (int)OK(open("f", O_RDWR));
    char c;

    for (int i = 0; i < 100; i++) {
        EQ(pwrite(i % 2 ? a : b, &(char) { (char)i }, 1, i * 37), 1);
        EQ(pread(i % 2 ? b : a, &c, 1, i * 37), 1);
        EQ(c, i);
    }
}

CASE(size_is_right_before_the_file_is_closed)
{
    int fd = open_new("f");

    for (int i = 1; i <= 50; i++) {
        EQ(write(fd, "0123456789", 10), 10);
        SIZE_IS("f", i * 10);
        EQ(stat_fd(fd).st_size, i * 10);
    }
}

CASE(write_by_another_user_clears_suid_and_sgid)
{
    make_file_mode("f", 06777);
    AS (ALICE, STAFF) {
        int fd = (int)OK(open("f", O_WRONLY));

        EQ(write(fd, "x", 1), 1);
    }
    MODE_IS("f", 0777);
}

CASE(write_by_another_user_keeps_sgid_without_group_execute)
{
    make_file_mode("f", 02767);
    OK(chown("f", 0, STAFF));
    OK(chmod("f", 02767));
    AS (ALICE, STAFF) {
        int fd = (int)OK(open("f", O_WRONLY));

        EQ(write(fd, "x", 1), 1);
    }
    EQ(stat_of("f").st_mode & 0777, 0767);
    EQ(stat_of("f").st_mode & S_ISUID, 0);
}

CASE(write_by_root_keeps_suid)
{
    int fd;

    make_file_mode("f", 04755);
    fd = (int)OK(open("f", O_WRONLY));
    EQ(write(fd, "x", 1), 1);
    MODE_IS("f", 04755);
}

/* ---- Copying inside the kernel ---- */

CASE(copy_file_range_copies_a_piece)
{
    off64_t from_offset = 1000, to_offset = 50;
    int from, to = open_new("to");

    NEEDS(FEATURE_COPY_FILE_RANGE);
    make_pattern("from", 200000);
    from = (int)OK(open("from", O_RDONLY));
    EQ(copy_file_range(from, &from_offset, to, &to_offset, 100000, 0), 100000);
    EQ(from_offset, 101000);
    EQ(to_offset, 100050);
    SIZE_IS("to", 100050);
    RANGE_IS(to, 0, 50, 0);
    for (int i = 0; i < 100000; i += 777) {
        uint8_t c;

        EQ(pread(to, &c, 1, 50 + i), 1);
        EQ(c, pattern_byte(1000 + (uint64_t)i));
    }
}

CASE(copy_file_range_moves_the_file_offsets)
{
    int from, to = open_new("to");

    NEEDS(FEATURE_COPY_FILE_RANGE);
    make_file_with("from", "abcdef");
    from = (int)OK(open("from", O_RDONLY));
    OK(lseek(from, 2, SEEK_SET));
    EQ(copy_file_range(from, NULL, to, NULL, 3, 0), 3);
    EQ(OK(lseek(from, 0, SEEK_CUR)), 5);
    EQ(OK(lseek(to, 0, SEEK_CUR)), 3);
    TEXT_IS("to", "cde");
}

CASE(copy_file_range_stops_at_the_end_of_the_source)
{
    int from, to = open_new("to");

    NEEDS(FEATURE_COPY_FILE_RANGE);
    make_file_with("from", "abc");
    from = (int)OK(open("from", O_RDONLY));
    EQ(copy_file_range(from, NULL, to, NULL, 1000, 0), 3);
    EQ(copy_file_range(from, NULL, to, NULL, 1000, 0), 0);
    TEXT_IS("to", "abc");
}

CASE(copy_file_range_overwrites_a_piece_in_the_middle)
{
    off64_t from_offset = 0, to_offset = 4096;
    int from, to;

    NEEDS(FEATURE_COPY_FILE_RANGE);
    make_pattern("to", 16384);
    make_file_with("from", "xxxxxxxxxx");
    from = (int)OK(open("from", O_RDONLY));
    to = (int)OK(open("to", O_RDWR));
    EQ(copy_file_range(from, &from_offset, to, &to_offset, 10, 0), 10);
    RANGE_IS_PATTERN(to, 0, 4096);
    RANGE_IS(to, 4096, 4106, 'x');
    RANGE_IS_PATTERN(to, 4106, 16384);
    SIZE_IS("to", 16384);
}

CASE(copy_file_range_inside_one_file)
{
    off64_t from_offset = 0, to_offset = 8192;
    int fd;

    NEEDS(FEATURE_COPY_FILE_RANGE);
    make_pattern("f", 4096);
    fd = (int)OK(open("f", O_RDWR));
    EQ(copy_file_range(fd, &from_offset, fd, &to_offset, 4096, 0), 4096);
    SIZE_IS("f", 12288);
    RANGE_IS_PATTERN(fd, 0, 4096);
    RANGE_IS(fd, 4096, 8192, 0);
    for (int i = 0; i < 4096; i += 97) {
        uint8_t c;

        EQ(pread(fd, &c, 1, 8192 + i), 1);
        EQ(c, pattern_byte((uint64_t)i));
    }
}

CASE(copy_file_range_of_overlapping_ranges_is_einval)
{
    off64_t from_offset = 0, to_offset = 100;
    int fd;

    NEEDS(FEATURE_COPY_FILE_RANGE);
    make_pattern("f", 4096);
    fd = (int)OK(open("f", O_RDWR));
    FAILS(EINVAL, copy_file_range(fd, &from_offset, fd, &to_offset, 200, 0));
}

CASE(copy_file_range_to_a_read_only_descriptor_is_ebadf)
{
    int from, to;

    NEEDS(FEATURE_COPY_FILE_RANGE);
    make_file_with("from", "abc");
    make_file("to");
    from = (int)OK(open("from", O_RDONLY));
    to = (int)OK(open("to", O_RDONLY));
    FAILS(EBADF, copy_file_range(from, NULL, to, NULL, 3, 0));
}

CASE(copy_file_range_to_an_append_descriptor_is_ebadf)
{
    int from, to;

    NEEDS(FEATURE_COPY_FILE_RANGE);
    make_file_with("from", "abc");
    make_file("to");
    from = (int)OK(open("from", O_RDONLY));
    to = (int)OK(open("to", O_WRONLY | O_APPEND));
    FAILS(EBADF, copy_file_range(from, NULL, to, NULL, 3, 0));
}

CASE(copy_file_range_of_a_directory_is_eisdir)
{
    int from, to = open_new("to");

    make_dir("d");
    from = (int)OK(open("d", O_RDONLY));
    FAILS(EISDIR, copy_file_range(from, NULL, to, NULL, 3, 0));
}

CASE(copy_file_range_of_no_bytes_gives_0)
{
    int from, to = open_new("to");

    NEEDS(FEATURE_COPY_FILE_RANGE);
    make_file_with("from", "abc");
    from = (int)OK(open("from", O_RDONLY));
    EQ(copy_file_range(from, NULL, to, NULL, 0, 0), 0);
    SIZE_IS("to", 0);
}

CASE(copy_file_range_moves_the_times_of_the_target)
{
    int from, to;

    NEEDS(FEATURE_COPY_FILE_RANGE);
    make_file_with("from", "abc");
    make_file("to");
    from = (int)OK(open("from", O_RDONLY));
    to = (int)OK(open("to", O_WRONLY));
    MOVES("to", "mc", EQ(copy_file_range(from, NULL, to, NULL, 3, 0), 3));
}

CASE(sendfile_copies_to_another_file)
{
    int from, to = open_new("to");

    make_pattern("from", 100000);
    from = (int)OK(open("from", O_RDONLY));
    for (size_t done = 0; done < 100000;)
        done += (size_t)OK(sendfile(to, from, NULL, 100000 - done));
    RANGE_IS_PATTERN(to, 0, 100000);
}

CASE(splice_moves_between_pipe_and_file)
{
    int ends[2], to = open_new("to"), from;

    make_pattern("from", 30000);
    from = (int)OK(open("from", O_RDONLY));
    OK(pipe(ends));
    for (off_t done = 0; done < 30000;) {
        ssize_t in = OK(splice(from, NULL, ends[1], NULL, 10000, 0));

        for (ssize_t left = in; left > 0;)
            left -= OK(splice(ends[0], NULL, to, NULL, (size_t)left, 0));
        done += in;
    }
    RANGE_IS_PATTERN(to, 0, 30000);
}

/* ---- fsync ---- */

CASE(fsync_of_a_file_works)
{
    int fd = open_new("f");

    EQ(write(fd, "abc", 3), 3);
    OK(fsync(fd));
    OK(fdatasync(fd));
    TEXT_IS("f", "abc");
}

CASE(fsync_of_a_read_only_descriptor_works)
{
    make_file_with("f", "abc");
    OK(fsync((int)OK(open("f", O_RDONLY))));
}

CASE(fsync_of_a_directory_works)
{
    int dir;

    make_dir("d");
    make_file("d/f");
    dir = (int)OK(open("d", O_RDONLY | O_DIRECTORY));
    OK(fsync(dir));
    OK(fdatasync(dir));
}

CASE(fsync_of_a_fifo_is_einval)
{
    OK(mkfifo("p", 0644));
    FAILS(EINVAL, fsync((int)OK(open("p", O_RDWR))));
}

CASE(fsync_moves_no_time)
{
    int fd;

    make_file_with("f", "abc");
    fd = (int)OK(open("f", O_RDWR));
    MOVES("f", "", OK(fsync(fd)));
}

CASE(syncfs_works)
{
    OK(syncfs(open_new("f")));
}

CASE(sync_file_range_works)
{
    int fd = open_new("f");

    EQ(write(fd, "abc", 3), 3);
    OK(sync_file_range(fd, 0, 3, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER));
}

CASE(fadvise_works)
{
    int fd;

    make_pattern("f", 65536);
    fd = (int)OK(open("f", O_RDONLY));
    EQ(posix_fadvise(fd, 0, 65536, POSIX_FADV_WILLNEED), 0);
    EQ(posix_fadvise(fd, 0, 65536, POSIX_FADV_DONTNEED), 0);
    RANGE_IS_PATTERN(fd, 0, 65536);
}

/* ---- statvfs ---- */

CASE(statvfs_makes_sense)
{
    struct statvfs st;

    OK(statvfs(".", &st));
    THAT(st.f_bsize >= 512);
    THAT(st.f_blocks > 0);
    THAT(st.f_bfree <= st.f_blocks);
    THAT(st.f_bavail <= st.f_bfree);
    THAT(st.f_files > 0);
    THAT(st.f_ffree <= st.f_files);
    EQ(st.f_namemax, 255);
}

CASE(fstatvfs_agrees_with_statvfs)
{
    struct statvfs a, b;
    int fd = open_new("f");

    OK(statvfs(".", &a));
    OK(fstatvfs(fd, &b));
    EQ(a.f_blocks, b.f_blocks);
    EQ(a.f_bsize, b.f_bsize);
    EQ(a.f_frsize, b.f_frsize);
    EQ(a.f_namemax, b.f_namemax);
}
