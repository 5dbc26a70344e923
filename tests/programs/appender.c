/* appender FILE TAG LINES [PROCESSES]
 * appender --check FILE TOTAL
 *
 * The first form appends LINES lines from each of some processes through descriptors of their own with O_APPEND. Lines
 * differ in length and tell who wrote them, their number and their length. The second form checks that FILE consists of
 * exactly TOTAL such lines, each whole, none twice, and those of one writer in order. */
#include "program.h"

#include <fcntl.h>
#include <sys/wait.h>

enum { LINE_MAX_SIZE = 256, WRITERS_MAX = 64 };

static void append_lines(const char *path, const char *tag, int process, long lines)
{
    int fd = (int)MUST(open(path, O_WRONLY | O_CREAT | O_APPEND, 0666));
    char line[LINE_MAX_SIZE];

    for (long i = 0; i < lines; i++) {
        int length = 40 + (int)((i * 37 + process * 11) % 160), used;

        memset(line, '.', sizeof(line));
        used = snprintf(line, sizeof(line), "%.8s.%d %ld %d ", tag, process, i, length);
        line[used] = '.';
        line[length - 1] = '\n';
        if (MUST(write(fd, line, (size_t)length)) != length)
            wrong("appender: short write");
    }
    MUST(close(fd));
}

static int append_all(const char *path, const char *tag, long lines, int processes)
{
    int status, failed = 0;

    for (int p = 0; p < processes; p++)
        if (MUST(fork()) == 0) {
            append_lines(path, tag, p, lines);
            exit(EXIT_GOOD);
        }
    while (wait(&status) > 0)
        failed |= status != 0;
    return failed ? EXIT_WRONG : EXIT_GOOD;
}

/* Takes one line apart; its order within its writer must be right. */
static void check_line(const char *line, size_t size, long number)
{
    static struct {
        char name[32];
        long next;
    } writers[WRITERS_MAX];
    char name[32];
    long index;
    size_t length, w = 0;

    if (sscanf(line, "%31s %ld %zu ", name, &index, &length) != 3)
        wrong("appender: line %ld is torn: %.60s", number, line);
    if (length != size)
        wrong("appender: line %ld has %zu bytes, written were %zu: %.60s", number, size, length, line);
    while (w < WRITERS_MAX && writers[w].name[0] && strcmp(writers[w].name, name) != 0)
        w++;
    if (w == WRITERS_MAX)
        wrong("appender: too many writers");
    snprintf(writers[w].name, sizeof(writers[w].name), "%s", name);
    if (writers[w].next != index)
        wrong("appender: line %ld of %s where %ld was to come", index, name, writers[w].next);
    writers[w].next++;
}

static int check(const char *path, long total)
{
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t space = 0;
    ssize_t size;
    long count = 0;

    if (!file)
        wrong("appender: %s: %m", path);
    while ((size = getline(&line, &space, file)) > 0) {
        count++;
        if (line[size - 1] != '\n' || strlen(line) != (size_t)size)
            wrong("appender: line %ld is torn", count);
        check_line(line, (size_t)size, count);
    }
    free(line);
    (void)fclose(file); /* only read */
    if (count != total)
        wrong("appender: %ld lines, expected %ld", count, total);
    printf("lines=%ld\n", count);
    return EXIT_GOOD;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--check") == 0)
        return check(argv[2], atol(argv[3]));
    if (argc == 4 || argc == 5)
        return append_all(argv[1], argv[2], atol(argv[3]), argc == 5 ? atoi(argv[4]) : 1);
    fprintf(stderr, "usage: appender FILE TAG LINES [PROCESSES]\n       appender --check FILE TOTAL\n");
    return EXIT_USAGE;
}
