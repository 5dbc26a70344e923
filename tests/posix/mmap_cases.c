/* mmap(): shared and private maps, their coherence with read() and write(), the end of the file. */
#define TOPIC "mmap"
#include "suite.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { PAGE = 4096 };

static uint8_t *map(int fd, size_t size, int protection, int flags)
{
    void *p = mmap(NULL, size, protection, flags, fd, 0);

    OK((long)(p == MAP_FAILED ? -1 : 0));
    return p;
}

static uint8_t *map_shared(int fd, size_t size)
{
    NEEDS(FEATURE_SHARED_MMAP);
    return map(fd, size, PROT_READ | PROT_WRITE, MAP_SHARED);
}

static int open_pattern(size_t size)
{
    make_pattern("f", size);
    return (int)OK(open("f", O_RDWR));
}

CASE(private_map_shows_the_content)
{
    uint8_t *p = map(open_pattern(100000), 100000, PROT_READ, MAP_PRIVATE);

    for (size_t i = 0; i < 100000; i += 7)
        EQ(p[i], pattern_byte(i));
}

CASE(private_map_of_a_read_only_descriptor)
{
    uint8_t *p;

    make_pattern("f", PAGE);
    p = map((int)OK(open("f", O_RDONLY)), PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE);
    p[0] = 0;
    EQ(p[0], 0);
}

CASE(private_map_keeps_its_changes_from_the_file)
{
    int fd = open_pattern(PAGE * 2);
    uint8_t *p = map(fd, PAGE * 2, PROT_READ | PROT_WRITE, MAP_PRIVATE);

    memset(p, 'x', PAGE * 2);
    OK(msync(p, PAGE * 2, MS_SYNC));
    RANGE_IS_PATTERN(fd, 0, PAGE * 2);
}

CASE(shared_map_shows_the_content)
{
    uint8_t *p = map_shared(open_pattern(100000), 100000);

    for (size_t i = 0; i < 100000; i += 7)
        EQ(p[i], pattern_byte(i));
}

CASE(shared_map_changes_the_file)
{
    int fd = open_pattern(PAGE * 4);
    uint8_t *p = map_shared(fd, PAGE * 4);

    memset(p + PAGE, 'm', PAGE);
    OK(msync(p, PAGE * 4, MS_SYNC));
    RANGE_IS_PATTERN(fd, 0, PAGE);
    RANGE_IS(fd, PAGE, PAGE * 2, 'm');
    RANGE_IS_PATTERN(fd, PAGE * 2, PAGE * 4);
}

CASE(shared_map_is_seen_by_read_at_once)
{
    int fd = open_pattern(PAGE);
    uint8_t *p = map_shared(fd, PAGE);

    for (int i = 0; i < 50; i++) {
        p[i * 11] = (uint8_t)i;
        RANGE_IS(fd, i * 11, i * 11 + 1, (uint8_t)i);
    }
}

CASE(write_is_seen_by_a_shared_map_at_once)
{
    int fd = open_pattern(PAGE);
    uint8_t *p = map_shared(fd, PAGE);

    EQ(p[0], pattern_byte(0));
    for (int i = 0; i < 50; i++) {
        uint8_t c = (uint8_t)(i + 100);

        EQ(pwrite(fd, &c, 1, i * 13), 1);
        EQ(p[i * 13], c);
    }
}

CASE(write_through_another_descriptor_is_seen_by_a_shared_map)
{
    int fd = open_pattern(PAGE), other;
    uint8_t *p = map_shared(fd, PAGE);

    EQ(p[10], pattern_byte(10));
    other = (int)OK(open("f", O_WRONLY));
    EQ(pwrite(other, "Z", 1, 10), 1);
    OK(close(other));
    EQ(p[10], 'Z');
}

CASE(two_shared_maps_see_each_other)
{
    int fd = open_pattern(PAGE);
    uint8_t *p = map_shared(fd, PAGE), *q = map_shared((int)OK(open("f", O_RDWR)), PAGE);

    p[100] = 'p';
    EQ(q[100], 'p');
    q[200] = 'q';
    EQ(p[200], 'q');
}

CASE(shared_map_is_shared_with_a_child)
{
    uint8_t *p = map_shared(open_pattern(PAGE), PAGE);

    IN_CHILD ()
        p[5] = 'c';
    EQ(p[5], 'c');
}

CASE(map_outlives_its_descriptor)
{
    int fd = open_pattern(PAGE);
    uint8_t *p = map_shared(fd, PAGE);

    OK(close(fd));
    p[0] = 'x';
    EQ(p[1], pattern_byte(1));
    OK(msync(p, PAGE, MS_SYNC));
    OK(munmap(p, PAGE));
    fd = (int)OK(open("f", O_RDONLY));
    RANGE_IS(fd, 0, 1, 'x');
}

CASE(map_outlives_its_name)
{
    int fd = open_pattern(PAGE * 8);
    uint8_t *p = map_shared(fd, PAGE * 8);

    OK(close(fd));
    OK(unlink("f"));
    for (size_t i = 0; i < PAGE * 8; i += 100)
        EQ(p[i], pattern_byte(i));
    p[PAGE] = 'x';
    OK(msync(p, PAGE * 8, MS_SYNC));
    EQ(p[PAGE], 'x');
}

CASE(map_outlives_a_rename_over_it)
{
    uint8_t *p = map_shared(open_pattern(PAGE * 8), PAGE * 8);

    make_file_with("new", "short");
    OK(rename("new", "f"));
    for (size_t i = 0; i < PAGE * 8; i += 100)
        EQ(p[i], pattern_byte(i));
    TEXT_IS("f", "short");
}

CASE(data_is_written_without_msync)
{
    int fd = open_pattern(PAGE);
    uint8_t *p = map_shared(fd, PAGE);

    p[7] = 'w';
    OK(munmap(p, PAGE));
    OK(close(fd));
    fd = (int)OK(open("f", O_RDONLY));
    RANGE_IS(fd, 7, 8, 'w');
    RANGE_IS_PATTERN(fd, 8, PAGE);
}

CASE(tail_of_the_last_page_is_zero_and_stays_out_of_the_file)
{
    int fd = open_pattern(100);
    uint8_t *p = map_shared(fd, PAGE);

    for (int i = 100; i < PAGE; i++)
        EQ(p[i], 0);
    p[100] = 'x';
    p[0] = 'y';
    OK(msync(p, PAGE, MS_SYNC));
    SIZE_IS("f", 100);
    OK(munmap(p, PAGE));
    OK(ftruncate(fd, 200));
    RANGE_IS(fd, 0, 1, 'y');
    RANGE_IS(fd, 100, 200, 0);
}

static sigjmp_buf bus_return;

static void on_bus(int number)
{
    siglongjmp(bus_return, number);
}

static bool is_bus_error(volatile uint8_t *p)
{
    OK(signal(SIGBUS, on_bus) == SIG_ERR ? -1 : 0);
    if (sigsetjmp(bus_return, 1) != 0)
        return true;
    (void)*p;
    return false;
}

CASE(page_beyond_the_end_is_sigbus)
{
    uint8_t *p = map_shared(open_pattern(100), PAGE * 2);

    THAT(!is_bus_error(p));
    THAT(is_bus_error(p + PAGE));
}

CASE(page_cut_off_by_truncate_is_sigbus)
{
    int fd = open_pattern(PAGE * 4);
    uint8_t *p = map_shared(fd, PAGE * 4);

    EQ(p[PAGE * 3], pattern_byte(PAGE * 3));
    OK(ftruncate(fd, PAGE));
    THAT(is_bus_error(p + PAGE * 3));
    EQ(p[10], pattern_byte(10));
}

CASE(growing_the_file_makes_its_pages_usable)
{
    int fd = open_pattern(100);
    uint8_t *p = map_shared(fd, PAGE * 3);

    OK(ftruncate(fd, PAGE * 3));
    EQ(p[PAGE * 2], 0);
    p[PAGE * 2] = 'g';
    OK(msync(p, PAGE * 3, MS_SYNC));
    RANGE_IS(fd, PAGE * 2, PAGE * 2 + 1, 'g');
}

CASE(store_into_a_new_sparse_file)
{
    int fd = (int)OK(open("f", O_CREAT | O_RDWR, 0644));
    uint8_t *p;

    OK(ftruncate(fd, 8192));
    EQ(stat_fd(fd).st_size, 8192);
    p = map_shared(fd, 8192);
    p[4096] = 's';
    OK(msync(p, 8192, MS_SYNC));
    RANGE_IS(fd, 4096, 4097, 's');
    RANGE_IS(fd, 0, 4096, 0);
    EQ(stat_fd(fd).st_size, 8192);
}

CASE(store_moves_mtime)
{
    struct stat before;
    int fd = open_pattern(PAGE);
    uint8_t *p = map_shared(fd, PAGE);

    before = stat_of("f");
    tick();
    p[0] = 'x';
    OK(msync(p, PAGE, MS_SYNC));
    THAT(time_cmp(stat_of("f").st_mtim, before.st_mtim) > 0);
    THAT(time_cmp(stat_of("f").st_ctim, before.st_ctim) > 0);
}

CASE(punched_hole_is_seen_by_a_map)
{
    int fd = open_pattern(PAGE * 4);
    uint8_t *p = map_shared(fd, PAGE * 4);

    NEEDS(FEATURE_PUNCH);
    EQ(p[PAGE], pattern_byte(PAGE));
    OK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, PAGE, PAGE));
    EQ(p[PAGE], 0);
    EQ(p[PAGE * 2], pattern_byte(PAGE * 2));
}

CASE(write_from_a_map_of_the_same_file)
{
    int fd = open_pattern(PAGE * 16);
    uint8_t *p = map_shared(fd, PAGE * 16);

    EQ(pwrite(fd, p, PAGE * 8, PAGE * 8), PAGE * 8);
    for (size_t i = 0; i < PAGE * 8; i += 61)
        EQ(p[PAGE * 8 + i], pattern_byte(i));
}

CASE(read_into_a_map_of_another_file)
{
    int from = open_pattern(PAGE * 16), to = (int)OK(open("g", O_CREAT | O_RDWR, 0644));
    uint8_t *p;

    OK(ftruncate(to, PAGE * 16));
    p = map_shared(to, PAGE * 16);
    EQ(pread(from, p, PAGE * 16, 0), PAGE * 16);
    OK(munmap(p, PAGE * 16));
    RANGE_IS_PATTERN(to, 0, PAGE * 16);
}

CASE(large_map_written_page_by_page)
{
    enum { PAGES = 2048 };
    int fd = (int)OK(open("f", O_CREAT | O_RDWR, 0644));
    uint8_t *p;

    OK(ftruncate(fd, (off_t)PAGES * PAGE));
    p = map_shared(fd, (size_t)PAGES * PAGE);
    for (size_t i = 0; i < PAGES; i++)
        memset(p + (i * 1031 % PAGES) * PAGE, (int)(i * 1031 % PAGES % 251), PAGE);
    OK(msync(p, (size_t)PAGES * PAGE, MS_SYNC));
    OK(munmap(p, (size_t)PAGES * PAGE));
    for (size_t i = 0; i < PAGES; i += 17)
        RANGE_IS(fd, (off_t)(i * PAGE), (off_t)(i * PAGE + PAGE), (uint8_t)(i % 251));
}

CASE(shared_map_needs_a_writable_descriptor)
{
    int fd;

    make_pattern("f", PAGE);
    fd = (int)OK(open("f", O_RDONLY));
    THAT(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
    EQ(errno, EACCES);
}

CASE(map_of_a_write_only_descriptor_is_eacces)
{
    int fd;

    make_pattern("f", PAGE);
    fd = (int)OK(open("f", O_WRONLY));
    THAT(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED);
    EQ(errno, EACCES);
}

CASE(map_of_a_directory_is_enodev)
{
    int fd;

    make_dir("d");
    fd = (int)OK(open("d", O_RDONLY));
    THAT(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED);
    EQ(errno, ENODEV);
}

CASE(executable_map_runs_a_program)
{
    static char data[65536];
    int in = (int)OK(open("/bin/true", O_RDONLY)), out = (int)OK(open("prog", O_CREAT | O_WRONLY, 0755));
    ssize_t size;

    while ((size = OK(read(in, data, sizeof(data)))) > 0)
        EQ(write(out, data, (size_t)size), size);
    OK(close(out));
    IN_CHILD () {
        execl("./prog", "prog", (char *)NULL);
        suite_fail(HERE, "exec: %s", strerror(errno));
    }
}
