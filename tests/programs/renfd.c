/* renfd DIR
 *
 * Uses a file through its descriptor after its name has gone: once because another file was renamed over it, once
 * because it was unlinked. Then stores into a shared map of a new, sparse file. Prints one TAP line per step. */
#include "program.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

static unsigned number, failed;

static void step(bool good, const char *how, const char *what)
{
    int err = errno;

    number++;
    failed += !good;
    printf("%s %u - %s: %s", good ? "ok" : "not ok", number, how, what);
    if (!good)
        printf(" (%s)", strerror(err));
    putchar('\n');
}

static int open_at(const char *dir, const char *name, int flags)
{
    char path[4096];

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return open(path, flags, 0644);
}

static void use_without_name(int fd, const char *how)
{
    static const char text[] = "first content\n";
    struct timespec times[2] = { { 1000, 1 }, { 2000, 2 } };
    char back[sizeof(text)] = "";
    struct stat st = { 0 };

    errno = 0;
    step(fstat(fd, &st) == 0, how, "fstat");
    step(st.st_nlink == 0, how, "link count is 0");
    step(fchmod(fd, 0600) == 0, how, "fchmod");
    step(futimens(fd, times) == 0, how, "futimens");
    step(fchown(fd, 1, 1) == 0 || errno == EPERM, how, "fchown");
    step(pread(fd, back, sizeof(text) - 1, 0) == sizeof(text) - 1 && strcmp(back, text) == 0, how,
         "pread gives the data");
    step(ftruncate(fd, 10000000) == 0, how, "ftruncate up");
    step(pwrite(fd, "later", 5, 9000000) == 5, how, "pwrite");
    step(fsync(fd) == 0, how, "fsync");
    step(fstat(fd, &st) == 0 && st.st_size == 10000000, how, "fstat gives the size");
    step(st.st_nlink == 0, how, "link count still is 0");
    step(close(fd) == 0, how, "close");
}

static int open_pair(const char *dir)
{
    int one = open_at(dir, "one", O_CREAT | O_TRUNC | O_RDWR), two = open_at(dir, "two", O_CREAT | O_TRUNC | O_RDWR);

    step(one >= 0 && two >= 0, "prepare", "open one and two");
    step(write(one, "first content\n", 14) == 14, "prepare", "write one");
    step(close(two) == 0, "prepare", "close two");
    return one;
}

static void use_map(const char *dir)
{
    int fd = open_at(dir, "map", O_CREAT | O_TRUNC | O_RDWR);
    struct stat st = { 0 };
    char back = 0, *p;

    step(fd >= 0, "map", "open a new file");
    step(ftruncate(fd, 8192) == 0, "map", "ftruncate");
    step(fstat(fd, &st) == 0 && st.st_size == 8192, "map", "fstat gives the size");
    p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    step(p != MAP_FAILED, "map", "mmap shared");
    if (p != MAP_FAILED) {
        p[4096] = 's';
        step(msync(p, 8192, MS_SYNC) == 0, "map", "msync");
        step(pread(fd, &back, 1, 4096) == 1 && back == 's', "map", "the store is read back");
        munmap(p, 8192);
    }
    step(close(fd) == 0, "map", "close");
}

int main(int argc, char **argv)
{
    char one[4096], two[4096];
    int fd;

    if (argc != 2) {
        fprintf(stderr, "usage: renfd DIR\n");
        return EXIT_USAGE;
    }
    snprintf(one, sizeof(one), "%s/one", argv[1]);
    snprintf(two, sizeof(two), "%s/two", argv[1]);
    fd = open_pair(argv[1]);
    step(rename(two, one) == 0, "renamed over", "rename");
    use_without_name(fd, "renamed over");
    fd = open_pair(argv[1]);
    step(unlink(one) == 0, "unlinked", "unlink");
    use_without_name(fd, "unlinked");
    use_map(argv[1]);
    printf("1..%u\n", number);
    return failed ? EXIT_WRONG : EXIT_GOOD;
}
