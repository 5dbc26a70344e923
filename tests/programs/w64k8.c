/* w64k8 DIR [MIB] [WRITERS] [RECORD]
 *
 * Writers (8) write a file of MIB (64) each at the same time, in records of RECORD (65536) bytes; fsync and close are
 * part of the time. Prints the rate of each, their sum, and the slowest as a part of the fastest:
 *
 *     writer=0 rate=10.1 ...
 *     total=80.3 fairness=0.91 */
#include "program.h"

#include <fcntl.h>
#include <sys/wait.h>

struct work {
    const char *dir;
    size_t size_bytes, record_bytes;
};

static double write_file(const struct work *work, int number)
{
    char path[4096], *record = malloc(work->record_bytes);
    double start_s;
    int fd;

    if (!record)
        wrong("w64k8: no memory");
    memset(record, 'a' + number, work->record_bytes);
    snprintf(path, sizeof(path), "%s/w64k8.%d", work->dir, number);
    start_s = now_s();
    fd = (int)MUST(open(path, O_CREAT | O_TRUNC | O_WRONLY, 0644));
    for (size_t done = 0; done < work->size_bytes; done += work->record_bytes)
        if (MUST(write(fd, record, work->record_bytes)) != (long)work->record_bytes)
            wrong("w64k8: short write");
    MUST(fsync(fd));
    MUST(close(fd));
    free(record);
    return (double)work->size_bytes / (1 << 20) / (now_s() - start_s);
}

int main(int argc, char **argv)
{
    struct work work = { .size_bytes = 64UL << 20, .record_bytes = 65536 };
    int writers = argc > 3 ? atoi(argv[3]) : 8, go[2], results[2], status;
    double slowest = 1e30, fastest = 0, total = 0;

    if (argc < 2 || argc > 5 || writers < 1) {
        fprintf(stderr, "usage: w64k8 DIR [MIB] [WRITERS] [RECORD]\n");
        return EXIT_USAGE;
    }
    work.dir = argv[1];
    if (argc > 2)
        work.size_bytes = strtoul(argv[2], NULL, 10) << 20;
    if (argc > 4)
        work.record_bytes = strtoul(argv[4], NULL, 10);
    MUST(pipe(go));
    MUST(pipe(results));
    for (int i = 0; i < writers; i++)
        if (MUST(fork()) == 0) {
            double rate;
            char c;

            close(go[1]);
            MUST(read(go[0], &c, 1)); /* the end of the pipe starts all at once */
            rate = write_file(&work, i);
            printf("writer=%d rate=%.2f\n", i, rate);
            fflush(stdout);
            MUST(write(results[1], &rate, sizeof(rate)));
            _exit(EXIT_GOOD);
        }
    close(go[0]);
    close(go[1]);
    close(results[1]);
    for (double rate; read(results[0], &rate, sizeof(rate)) == sizeof(rate); writers--) {
        slowest = rate < slowest ? rate : slowest;
        fastest = rate > fastest ? rate : fastest;
        total += rate;
    }
    while (wait(&status) > 0)
        if (status != 0)
            return EXIT_WRONG;
    if (writers != 0)
        wrong("w64k8: a writer is missing");
    printf("total=%.2f fairness=%.2f\n", total, slowest / fastest);
    return EXIT_GOOD;
}
