/* fsyncer FILE BYTES SECONDS STOPFILE - writes 4 KiB at random places of the first BYTES of a file and syncs each, until
 * SECONDS have passed and STOPFILE exists. Prints "count=N rate=N/s p50=MS p99=MS max=MS"; exit status 1 at any error. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BLOCK     4096
#define TIMES_MAX 1000000

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
    static double times[TIMES_MAX];
    static char block[BLOCK];
    size_t n = 0;

    if (argc != 5) {
        fprintf(stderr, "usage: fsyncer FILE BYTES SECONDS STOPFILE\n");
        return 2;
    }
    int fd = open(argv[1], O_RDWR);
    long blocks = atol(argv[2]) / BLOCK;
    double begin = now_ms(), until = begin + atof(argv[3]) * 1e3;

    srandom((unsigned)getpid());
    if (fd < 0 || blocks < 1) {
        fprintf(stderr, "fsyncer: %s: %s\n", argv[1], strerror(errno));
        return 1;
    }
    while (n < TIMES_MAX && (now_ms() < until || access(argv[4], F_OK) != 0)) {
        double at = now_ms();

        memset(block, (int)random(), sizeof(block));
        if (pwrite(fd, block, BLOCK, random() % blocks * BLOCK) != BLOCK || fsync(fd) != 0) {
            fprintf(stderr, "fsyncer: after %zu: %s\n", n, strerror(errno));
            return 1;
        }
        times[n++] = now_ms() - at;
    }
    double took_s = (now_ms() - begin) / 1e3;
    qsort(times, n, sizeof(times[0]), by_value);
    printf("count=%zu rate=%.0f p50=%.2f p99=%.2f max=%.2f\n", n, (double)n / took_s, times[n / 2], times[n * 99 / 100],
           times[n - 1]);
    return 0;
}
