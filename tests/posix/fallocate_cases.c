/* fallocate() in its modes, and SEEK_HOLE/SEEK_DATA. */
#define TOPIC "fallocate"
#include "suite.h"

enum { KIB = 1024, MIB = 1 << 20 };

static const int PUNCH = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;

static int open_pattern(size_t size)
{
    int fd;

    make_pattern("f", size);
    fd = (int)OK(open("f", O_RDWR));
    OK(fsync(fd));
    return fd;
}

static int open_new(void)
{
    return (int)OK(open("f", O_CREAT | O_EXCL | O_RDWR, 0644));
}

CASE(reserves_space_and_grows)
{
    int fd = open_new();

    NEEDS(FEATURE_FALLOCATE);
    OK(fallocate(fd, 0, 0, MIB));
    SIZE_IS("f", MIB);
    THAT(stat_of("f").st_blocks >= 2048);
    RANGE_IS(fd, 0, MIB, 0);
}

CASE(grows_from_an_offset)
{
    int fd = open_new();

    NEEDS(FEATURE_FALLOCATE);
    OK(fallocate(fd, 0, MIB, 4096));
    SIZE_IS("f", MIB + 4096);
    RANGE_IS(fd, 0, MIB + 4096, 0);
}

CASE(keeps_existing_content)
{
    int fd = open_pattern(100000);

    NEEDS(FEATURE_FALLOCATE);
    OK(fallocate(fd, 0, 0, 200000));
    RANGE_IS_PATTERN(fd, 0, 100000);
    RANGE_IS(fd, 100000, 200000, 0);
    SIZE_IS("f", 200000);
}

CASE(inside_the_file_keeps_the_size)
{
    int fd = open_pattern(100000);

    NEEDS(FEATURE_FALLOCATE);
    OK(fallocate(fd, 0, 1000, 5000));
    SIZE_IS("f", 100000);
    RANGE_IS_PATTERN(fd, 0, 100000);
}

CASE(keep_size_reserves_beyond_the_end)
{
    int fd = open_pattern(1000);

    NEEDS(FEATURE_FALLOCATE);
    OK(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, MIB));
    SIZE_IS("f", 1000);
    THAT(stat_of("f").st_blocks >= 2048);
    RANGE_IS_PATTERN(fd, 0, 1000);
    EQ(pread(fd, (char[1]) { 0 }, 1, 1000), 0);
}

CASE(reserved_space_can_be_written)
{
    int fd = open_new();

    NEEDS(FEATURE_FALLOCATE);
    OK(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, MIB));
    EQ(pwrite(fd, "abc", 3, 500000), 3);
    SIZE_IS("f", 500003);
    RANGE_IS(fd, 0, 500000, 0);
}

CASE(posix_fallocate_works)
{
    int fd = open_new();

    NEEDS(FEATURE_FALLOCATE);
    EQ(posix_fallocate(fd, 0, 123456), 0);
    SIZE_IS("f", 123456);
}

CASE(moves_mtime_and_ctime)
{
    int fd = open_new();

    NEEDS(FEATURE_FALLOCATE);
    MOVES("f", "mc", OK(fallocate(fd, 0, 0, 4096)));
}

CASE(without_length_is_einval)
{
    int fd = open_new();

    FAILS(EINVAL, fallocate(fd, 0, 0, 0));
    FAILS(EINVAL, fallocate(fd, 0, -1, 10));
    FAILS(EINVAL, fallocate(fd, 0, 0, -1));
}

CASE(on_a_read_only_descriptor_is_ebadf)
{
    make_file("f");
    FAILS(EBADF, fallocate((int)OK(open("f", O_RDONLY)), 0, 0, 4096));
}

CASE(on_a_fifo_is_espipe)
{
    OK(mkfifo("p", 0644));
    FAILS(ESPIPE, fallocate((int)OK(open("p", O_RDWR)), 0, 0, 4096));
}

CASE(beyond_the_largest_offset_is_efbig)
{
    FAILS(EFBIG, fallocate(open_new(), 0, INT64_MAX - 100, 4096));
}

/* ---- Punching holes ---- */

static const struct piece {
    const char *name;
    off_t from, to;
} pieces[] = {
    { "aligned", 8192, 65536 },         { "unaligned", 5000, 77777 },   { "inside_a_block", 5000, 6000 },
    { "one_byte", 8191, 8192 },         { "from_the_start", 0, 10000 }, { "to_the_end", 150000, 200000 },
    { "over_the_end", 150000, 300000 }, { "everything", 0, 200000 },
};

static off_t min_off(off_t a, off_t b)
{
    return a < b ? a : b;
}

static void zeroed_by(int mode, const struct piece *piece)
{
    int fd = open_pattern(200000);

    OK(fallocate(fd, mode, piece->from, piece->to - piece->from));
    SIZE_IS("f", 200000);
    RANGE_IS_PATTERN(fd, 0, piece->from);
    RANGE_IS(fd, piece->from, min_off(piece->to, 200000), 0);
    RANGE_IS_PATTERN(fd, min_off(piece->to, 200000), 200000);
}

static void punch(const void *arg)
{
    NEEDS(FEATURE_PUNCH);
    zeroed_by(PUNCH, arg);
}

static void zero_keeping_size(const void *arg)
{
    NEEDS(FEATURE_ZERO_RANGE);
    zeroed_by(FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, arg);
}

static void zero(const void *arg)
{
    const struct piece *piece = arg;
    int fd = open_pattern(200000);

    NEEDS(FEATURE_ZERO_RANGE);
    OK(fallocate(fd, FALLOC_FL_ZERO_RANGE, piece->from, piece->to - piece->from));
    SIZE_IS("f", piece->to > 200000 ? piece->to : 200000);
    RANGE_IS_PATTERN(fd, 0, piece->from);
    RANGE_IS(fd, piece->from, piece->to, 0);
    RANGE_IS_PATTERN(fd, min_off(piece->to, 200000), 200000);
}

__attribute__((constructor)) static void add_pieces(void)
{
    for (size_t i = 0; i < sizeof(pieces) / sizeof(*pieces); i++) {
        suite_add_row(TOPIC, "punch", pieces[i].name, punch, &pieces[i]);
        suite_add_row(TOPIC, "zero_keeping_size", pieces[i].name, zero_keeping_size, &pieces[i]);
        suite_add_row(TOPIC, "zero", pieces[i].name, zero, &pieces[i]);
    }
}

CASE(punch_frees_space)
{
    int fd = open_pattern(MIB);

    NEEDS(FEATURE_PUNCH);
    OK(fallocate(fd, PUNCH, 0, MIB));
    OK(fsync(fd));
    THAT(stat_of("f").st_blocks < 256);
    SIZE_IS("f", MIB);
}

CASE(punch_beyond_the_end_changes_nothing)
{
    int fd = open_pattern(1000);

    NEEDS(FEATURE_PUNCH);
    OK(fallocate(fd, PUNCH, 5000, 5000));
    SIZE_IS("f", 1000);
    RANGE_IS_PATTERN(fd, 0, 1000);
}

CASE(punch_without_keep_size_is_eopnotsupp)
{
    FAILS(EOPNOTSUPP, fallocate(open_pattern(1000), FALLOC_FL_PUNCH_HOLE, 0, 100));
}

CASE(punch_moves_mtime_and_ctime)
{
    int fd = open_pattern(100000);

    NEEDS(FEATURE_PUNCH);
    MOVES("f", "mc", OK(fallocate(fd, PUNCH, 0, 50000)));
}

CASE(punched_hole_can_be_filled_again)
{
    int fd = open_pattern(100000);

    NEEDS(FEATURE_PUNCH);
    OK(fallocate(fd, PUNCH, 10000, 50000));
    EQ(pwrite(fd, "new", 3, 30000), 3);
    RANGE_IS(fd, 10000, 30000, 0);
    RANGE_IS(fd, 30000, 30001, 'n');
    RANGE_IS(fd, 30003, 60000, 0);
    RANGE_IS_PATTERN(fd, 60000, 100000);
}

CASE(punch_drops_what_was_just_written)
{
    int fd = open_new();

    NEEDS(FEATURE_PUNCH);
    for (int i = 0; i < 20; i++) {
        EQ(pwrite(fd, "0123456789", 10, 100), 10);
        OK(fallocate(fd, PUNCH, 102, 5));
        RANGE_IS(fd, 102, 107, 0);
        RANGE_IS(fd, 107, 108, '7');
    }
}

CASE(unknown_mode_is_eopnotsupp)
{
    FAILS(EOPNOTSUPP, fallocate(open_pattern(1000), 0x4000, 0, 100));
}

/* ---- SEEK_HOLE and SEEK_DATA ---- */

CASE(seek_finds_the_end_as_a_hole)
{
    int fd = open_pattern(10000);

    EQ(OK(lseek(fd, 0, SEEK_HOLE)), 10000);
    EQ(OK(lseek(fd, 0, SEEK_DATA)), 0);
    EQ(OK(lseek(fd, 5000, SEEK_DATA)), 5000);
}

CASE(seek_at_or_beyond_the_end_is_enxio)
{
    int fd = open_pattern(10000);

    FAILS(ENXIO, lseek(fd, 10000, SEEK_DATA));
    FAILS(ENXIO, lseek(fd, 10000, SEEK_HOLE));
    FAILS(ENXIO, lseek(fd, 20000, SEEK_DATA));
}

CASE(seek_in_an_empty_file_is_enxio)
{
    int fd = open_new();

    FAILS(ENXIO, lseek(fd, 0, SEEK_DATA));
    FAILS(ENXIO, lseek(fd, 0, SEEK_HOLE));
}

CASE(seek_finds_holes_and_data)
{
    int fd = open_new();

    NEEDS(FEATURE_SEEK_HOLE);
    EQ(pwrite(fd, "a", 1, 0), 1);
    EQ(pwrite(fd, "b", 1, 4 * MIB), 1);
    OK(ftruncate(fd, 8 * MIB));
    OK(fsync(fd));
    THAT(OK(lseek(fd, 0, SEEK_HOLE)) <= MIB);
    EQ(OK(lseek(fd, MIB, SEEK_HOLE)), MIB);
    THAT(OK(lseek(fd, MIB, SEEK_DATA)) <= 4 * MIB);
    THAT(OK(lseek(fd, MIB, SEEK_DATA)) > 3 * MIB);
    FAILS(ENXIO, lseek(fd, 5 * MIB, SEEK_DATA));
    EQ(OK(lseek(fd, 5 * MIB, SEEK_HOLE)), 5 * MIB);
}

CASE(seek_in_a_file_that_is_all_hole)
{
    int fd = open_new();

    NEEDS(FEATURE_SEEK_HOLE);
    OK(ftruncate(fd, MIB));
    FAILS(ENXIO, lseek(fd, 0, SEEK_DATA));
    EQ(OK(lseek(fd, 0, SEEK_HOLE)), 0);
}

CASE(seek_finds_a_punched_hole)
{
    int fd = open_pattern(MIB);

    NEEDS(FEATURE_SEEK_HOLE);
    NEEDS(FEATURE_PUNCH);
    OK(fallocate(fd, PUNCH, 256 * KIB, 256 * KIB));
    EQ(OK(lseek(fd, 0, SEEK_HOLE)), 256 * KIB);
    EQ(OK(lseek(fd, 256 * KIB, SEEK_DATA)), 512 * KIB);
    EQ(OK(lseek(fd, 512 * KIB, SEEK_HOLE)), MIB);
}

CASE(seek_sees_data_that_was_just_written)
{
    int fd = open_new();

    OK(ftruncate(fd, 8 * MIB));
    EQ(pwrite(fd, "x", 1, 4 * MIB), 1);
    THAT(OK(lseek(fd, 0, SEEK_DATA)) <= 4 * MIB);
}

CASE(seek_sets_the_offset)
{
    int fd = open_pattern(10000);

    OK(lseek(fd, 100, SEEK_DATA));
    EQ(OK(lseek(fd, 0, SEEK_CUR)), 100);
    OK(lseek(fd, 100, SEEK_HOLE));
    EQ(OK(lseek(fd, 0, SEEK_CUR)), 10000);
}
