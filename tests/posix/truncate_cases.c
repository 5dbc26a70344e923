/* truncate() and ftruncate(). */
#define TOPIC "truncate"
#include "suite.h"

static int open_pattern(size_t size)
{
    make_pattern("f", size);
    return (int)OK(open("f", O_RDWR));
}

static const off_t lengths[] = { 0, 1, 4095, 4096, 4097, 65536, 100000, 131072, 199999 };

static void shrinks_to(const void *arg)
{
    off_t length = *(const off_t *)arg;
    int fd = open_pattern(200000);

    OK(truncate("f", length));
    SIZE_IS("f", length);
    EQ(stat_fd(fd).st_size, length);
    RANGE_IS_PATTERN(fd, 0, length);
    EQ(pread(fd, (char[1]) { 0 }, 1, length), 0);
}

static void grown_again_after(const void *arg)
{
    off_t length = *(const off_t *)arg;
    int fd = open_pattern(200000);

    OK(ftruncate(fd, length));
    OK(ftruncate(fd, 200000));
    SIZE_IS("f", 200000);
    RANGE_IS_PATTERN(fd, 0, length);
    RANGE_IS(fd, length, 200000, 0);
}

__attribute__((constructor)) static void add_lengths(void)
{
    static char names[sizeof(lengths) / sizeof(*lengths)][16];

    for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
        snprintf(names[i], sizeof(names[i]), "%lld", (long long)lengths[i]);
        suite_add_row(TOPIC, "shrinks_to", names[i], shrinks_to, &lengths[i]);
        suite_add_row(TOPIC, "grown_again_after", names[i], grown_again_after, &lengths[i]);
    }
}

CASE(grows_with_zeros)
{
    int fd = open_pattern(1000);

    OK(truncate("f", 500000));
    SIZE_IS("f", 500000);
    RANGE_IS_PATTERN(fd, 0, 1000);
    RANGE_IS(fd, 1000, 500000, 0);
}

CASE(growing_takes_no_space)
{
    make_file("f");
    OK(truncate("f", (off_t)1 << 40));
    EQ(stat_of("f").st_size, (off_t)1 << 40);
    THAT(stat_of("f").st_blocks < 256);
}

CASE(shrinking_frees_space)
{
    int fd = open_pattern(1 << 20);

    OK(fsync(fd));
    OK(ftruncate(fd, 4096));
    OK(fsync(fd));
    THAT(stat_of("f").st_blocks < 256);
}

CASE(to_the_same_size_keeps_the_content)
{
    int fd = open_pattern(12345);

    OK(ftruncate(fd, 12345));
    RANGE_IS_PATTERN(fd, 0, 12345);
    SIZE_IS("f", 12345);
}

CASE(leaves_the_offset_of_descriptors)
{
    int fd = open_pattern(1000);

    OK(lseek(fd, 900, SEEK_SET));
    OK(ftruncate(fd, 10));
    EQ(OK(lseek(fd, 0, SEEK_CUR)), 900);
    EQ(read(fd, (char[1]) { 0 }, 1), 0);
    EQ(write(fd, "x", 1), 1);
    SIZE_IS("f", 901);
    RANGE_IS(fd, 10, 900, 0);
}

CASE(moves_mtime_and_ctime)
{
    make_file_with("f", "abcdef");
    MOVES("f", "mc", OK(truncate("f", 3)));
    MOVES("f", "mc", OK(truncate("f", 30)));
}

CASE(through_a_descriptor_moves_mtime_and_ctime)
{
    int fd = open_pattern(100);

    MOVES("f", "mc", OK(ftruncate(fd, 50)));
}

CASE(that_fails_moves_no_time)
{
    make_file_with("f", "abcdef");
    MOVES("f", "", AS (ALICE, STAFF) FAILS(EACCES, truncate("f", 3)));
    SIZE_IS("f", 6);
}

CASE(of_a_directory_is_eisdir)
{
    make_dir("d");
    FAILS(EISDIR, truncate("d", 0));
}

CASE(of_a_fifo_is_einval)
{
    OK(mkfifo("p", 0644));
    FAILS(EINVAL, truncate("p", 0));
}

CASE(to_a_negative_size_is_einval)
{
    int fd = open_pattern(100);

    FAILS(EINVAL, truncate("f", -1));
    FAILS(EINVAL, ftruncate(fd, -1));
    SIZE_IS("f", 100);
}

CASE(to_more_than_the_file_system_can_is_efbig)
{
    int err;

    make_file("f");
    THAT(truncate("f", INT64_MAX) == -1);
    err = errno;
    THAT(err == EFBIG || err == EINVAL);
    SIZE_IS("f", 0);
}

CASE(of_a_read_only_descriptor_is_einval)
{
    make_file_with("f", "abc");
    FAILS(EINVAL, ftruncate((int)OK(open("f", O_RDONLY)), 0));
    SIZE_IS("f", 3);
}

CASE(of_an_append_descriptor_works)
{
    int fd;

    make_file_with("f", "abcdef");
    fd = (int)OK(open("f", O_WRONLY | O_APPEND));
    OK(ftruncate(fd, 2));
    TEXT_IS("f", "ab");
}

CASE(without_write_permission_is_eacces)
{
    make_file_with("f", "abc");
    AS (ALICE, STAFF)
        FAILS(EACCES, truncate("f", 0));
    SIZE_IS("f", 3);
}

CASE(through_a_descriptor_needs_no_permission_any_more)
{
    int fd;

    make_file_with("f", "abc");
    fd = (int)OK(open("f", O_RDWR));
    OK(chmod("f", 0));
    AS (ALICE, STAFF)
        OK(ftruncate(fd, 1));
    SIZE_IS("f", 1);
}

CASE(follows_a_symlink)
{
    make_file_with("f", "abc");
    OK(symlink("f", "s"));
    OK(truncate("s", 1));
    TEXT_IS("f", "a");
}

CASE(by_another_user_clears_suid_and_sgid)
{
    make_file_with("f", "abc");
    OK(chmod("f", 06777));
    AS (ALICE, STAFF)
        OK(truncate("f", 1));
    MODE_IS("f", 0777);
}

CASE(drops_what_was_just_written)
{
    int fd = (int)OK(open("f", O_CREAT | O_RDWR, 0644));

    for (int i = 0; i < 100; i++) {
        EQ(pwrite(fd, "0123456789", 10, i * 10), 10);
        OK(ftruncate(fd, i * 10 + 5));
        SIZE_IS("f", i * 10 + 5);
    }
    RANGE_IS(fd, 990, 991, '0');
    RANGE_IS(fd, 985, 990, 0);
}

CASE(between_a_shrink_and_a_write_the_gap_is_zero)
{
    int fd = open_pattern(20000);

    OK(ftruncate(fd, 1000));
    EQ(pwrite(fd, "end", 3, 15000), 3);
    RANGE_IS_PATTERN(fd, 0, 1000);
    RANGE_IS(fd, 1000, 15000, 0);
    SIZE_IS("f", 15003);
}

CASE(is_seen_by_other_descriptors)
{
    int a = open_pattern(10000), b = (int)OK(open("f", O_RDONLY));

    RANGE_IS_PATTERN(b, 0, 10000);
    OK(ftruncate(a, 100));
    EQ(stat_fd(b).st_size, 100);
    EQ(pread(b, (char[10]) { 0 }, 10, 95), 5);
    OK(ftruncate(a, 10000));
    RANGE_IS(b, 100, 10000, 0);
}
