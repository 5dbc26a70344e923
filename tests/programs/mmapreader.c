/* mmapreader READDIR WRITEDIR SECONDS [READERS]
 *
 * READDIR and WRITEDIR are one directory through two mounts. Readers map files there as a web server does (open, fstat,
 * mmap of that size, read every page) while one process changes the files through the other mount. Each file is changed
 * in one way:
 *
 *     renamed      a new file, of another size and version, is renamed over it: whoever opened it before must see the
 *                  old version to its last byte, on every page
 *     rewritten    its pages are written again in place, its size stays
 *     truncated    it is cut and grown again, in step with a reader, never below its first half: between two changes,
 *                  every page inside the size that fstat tells must be there; while it is being changed, every page of
 *                  the first half
 *
 * A page is filled with its version, so that a mixed page shows. Prints what was counted and ends with 1 at the first
 * SIGBUS or mixed page. */
#include "program.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { PAGE = 4096, PAGES_MAX = 64, HALF = PAGES_MAX / 2 };

static sigjmp_buf after_bus;

static void on_bus(int number)
{
    siglongjmp(after_bus, number);
}

/* The version on the page, -1 when the page gives SIGBUS; a mixed page ends the program. */
static int64_t page_version(const char *what, const volatile uint64_t *page)
{
    uint64_t first;

    if (sigsetjmp(after_bus, 1) != 0)
        return -1;
    first = page[0];
    for (size_t i = 1; i < PAGE / sizeof(*page); i++) {
        uint64_t other = page[i];

        /* a page being written again in place may show both for a moment, as on a local disk */
        if (other != first && strcmp(what, "renamed") == 0)
            wrong("%s: a page holds versions %llu and %llu", what, (unsigned long long)first,
                  (unsigned long long)other);
    }
    return (int64_t)first;
}

static void path_in(char *path, size_t size, const char *dir, const char *name)
{
    if (snprintf(path, size, "%s/%s", dir, name) >= (int)size)
        wrong("mmapreader: %s is too long", dir);
}

/* ---- The side that changes files ---- */

static void write_pages(int fd, uint64_t version, off_t from, off_t to)
{
    uint64_t page[PAGE / sizeof(uint64_t)];

    for (size_t i = 0; i < PAGE / sizeof(*page); i++)
        page[i] = version;
    for (off_t at = from; at < to; at++)
        if (MUST(pwrite(fd, page, PAGE, at * PAGE)) != PAGE)
            wrong("mmapreader: short write");
}

static void make(const char *path, uint64_t version, off_t pages)
{
    int fd = (int)MUST(open(path, O_CREAT | O_TRUNC | O_RDWR, 0644));

    write_pages(fd, version, 0, pages);
    MUST(close(fd));
}

static void change_until(const char *dir, double end_s)
{
    char renamed[4096], rewritten[4096], fresh[4096];
    uint64_t version = 1;
    int fd;

    path_in(renamed, sizeof(renamed), dir, "renamed");
    path_in(rewritten, sizeof(rewritten), dir, "rewritten");
    path_in(fresh, sizeof(fresh), dir, "fresh");
    while (now_s() < end_s) {
        version++;
        make(fresh, version, 1 + (off_t)(version * 29 % PAGES_MAX));
        MUST(rename(fresh, renamed));
        fd = (int)MUST(open(rewritten, O_RDWR));
        write_pages(fd, version, 0, PAGES_MAX);
        MUST(close(fd));
    }
    printf("changes=%llu\n", (unsigned long long)version);
}

/* ---- Readers ---- */

/* Maps the file as large as fstat says and looks at all pages; each must be there. */
static void read_all(const char *path, const char *what)
{
    int fd = (int)MUST(open(path, O_RDONLY));
    struct stat st;
    uint64_t *map;
    int64_t first = 0;

    MUST(fstat(fd, &st));
    if (st.st_size == 0 || st.st_size % PAGE != 0)
        wrong("%s: fstat says %lld bytes", what, (long long)st.st_size);
    map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        wrong("%s: mmap: %m", what);
    for (off_t at = 0; at < st.st_size / PAGE; at++) {
        int64_t version = page_version(what, map + at * (PAGE / (off_t)sizeof(*map)));

        if (version < 0)
            wrong("%s: SIGBUS on page %lld of %lld", what, (long long)at, (long long)st.st_size / PAGE);
        if (version == 0)
            wrong("%s: page %lld is empty", what, (long long)at);
        if (at == 0)
            first = version;
        if (version != first && strcmp(what, "renamed") == 0)
            wrong("%s: page %lld is of version %lld, page 0 of version %lld", what, (long long)at, (long long)version,
                  (long long)first);
        if (strcmp(what, "renamed") == 0 && st.st_size / PAGE != 1 + (off_t)(first * 29 % PAGES_MAX))
            wrong("%s: %lld pages, but version %lld", what, (long long)st.st_size / PAGE, (long long)first);
    }
    munmap(map, (size_t)st.st_size);
    MUST(close(fd));
}

static void read_until(const char *dir, double end_s)
{
    char renamed[4096], rewritten[4096];
    unsigned long rounds = 0;

    path_in(renamed, sizeof(renamed), dir, "renamed");
    path_in(rewritten, sizeof(rewritten), dir, "rewritten");
    while (now_s() < end_s) {
        read_all(renamed, "renamed");
        read_all(rewritten, "rewritten");
        rounds++;
    }
    printf("rounds=%lu\n", rounds);
}

/* One process plays both sides of the file that is cut and grown, so that they are in step. */
static void cut_until(const char *read_dir, const char *write_dir, double end_s)
{
    char path[4096];
    unsigned long rounds = 0;
    uint64_t random = 88172645463325252, *map;
    struct stat st;
    int reader, writer;

    path_in(path, sizeof(path), write_dir, "truncated");
    make(path, 1, PAGES_MAX);
    writer = (int)MUST(open(path, O_RDWR));
    path_in(path, sizeof(path), read_dir, "truncated");
    reader = (int)MUST(open(path, O_RDONLY));
    map = mmap(NULL, (size_t)PAGES_MAX * PAGE, PROT_READ, MAP_SHARED, reader, 0);
    if (map == MAP_FAILED)
        wrong("truncated: mmap: %m");
    while (now_s() < end_s) {
        off_t pages = HALF + (off_t)(random_next(&random) % HALF) + 1;

        MUST(ftruncate(writer, (off_t)HALF * PAGE + (off_t)(random_next(&random) % HALF) * PAGE));
        MUST(ftruncate(writer, pages * PAGE));
        MUST(fstat(reader, &st));
        if (st.st_size != pages * PAGE)
            wrong("truncated: fstat says %lld pages, expected %lld", (long long)st.st_size / PAGE, (long long)pages);
        for (off_t at = 0; at < pages; at++) {
            int64_t version = page_version("truncated", map + at * (PAGE / (off_t)sizeof(*map)));

            if (version < 0)
                wrong("truncated: SIGBUS on page %lld of %lld", (long long)at, (long long)pages);
            if (at < HALF && version != 1)
                wrong("truncated: page %lld of the first half has changed", (long long)at);
        }
        rounds++;
    }
    printf("cuts=%lu\n", rounds);
}

static void start(void (*run)(const char *const *dirs, double end_s), const char *const *dirs, double end_s)
{
    if (MUST(fork()) != 0)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGBUS, on_bus);
    run(dirs, end_s);
    fflush(stdout);
    _exit(EXIT_GOOD);
}

static void run_reader(const char *const *dirs, double end_s)
{
    read_until(dirs[0], end_s);
}

static void run_changer(const char *const *dirs, double end_s)
{
    change_until(dirs[1], end_s);
}

static void run_cutter(const char *const *dirs, double end_s)
{
    cut_until(dirs[0], dirs[1], end_s);
}

int main(int argc, char **argv)
{
    int readers = argc == 5 ? atoi(argv[4]) : 2, status, failed = 0;
    const char *dirs[2];
    char path[4096];
    double end_s;

    if (argc != 4 && argc != 5) {
        fprintf(stderr, "usage: mmapreader READDIR WRITEDIR SECONDS [READERS]\n");
        return EXIT_USAGE;
    }
    dirs[0] = argv[1];
    dirs[1] = argv[2];
    path_in(path, sizeof(path), dirs[1], "renamed");
    make(path, 1, 1 + 29);
    path_in(path, sizeof(path), dirs[1], "rewritten");
    make(path, 1, PAGES_MAX);
    end_s = now_s() + atof(argv[3]);
    for (int i = 0; i < readers; i++)
        start(run_reader, dirs, end_s);
    start(run_changer, dirs, end_s);
    start(run_cutter, dirs, end_s);
    while (wait(&status) > 0)
        failed |= status != 0;
    return failed ? EXIT_WRONG : EXIT_GOOD;
}
