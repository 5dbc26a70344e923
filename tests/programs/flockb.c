/* flockb LOCK COUNTER SECONDS UNLINK(0|1)
 *
 * Counts critical sections. Until the time is over: open LOCK (creating it), take an exclusive flock, check that the
 * name still is the file that was opened (else close and try again), replace the decimal number in COUNTER by the next
 * one, remove LOCK when UNLINK is 1, close. Run in several processes on several mounts, the number in COUNTER must in
 * the end be the sum of their sections. Prints sections, lost races, and errors by call; ends with 1 when there were
 * errors. */
#include "program.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

enum { ERRORS_MAX = 32 };

static struct {
    struct {
        const char *call;
        int err;
        unsigned long count;
    } rows[ERRORS_MAX];
    size_t count;
} errors;

static void count_error(const char *call, int err)
{
    size_t i = 0;

    while (i < errors.count && (strcmp(errors.rows[i].call, call) != 0 || errors.rows[i].err != err))
        i++;
    if (i == ERRORS_MAX)
        return;
    if (i == errors.count) {
        errors.rows[i].call = call;
        errors.rows[i].err = err;
        errors.count++;
    }
    errors.rows[i].count++;
}

/* Whether the call went well; a failed one is counted. */
#define WENT_WELL(name, call) went_well(name, (long)(call))
static bool went_well(const char *name, long result)
{
    if (result == -1)
        count_error(name, errno);
    return result != -1;
}

/* Whether the name still leads to the open file. */
static bool is_same(int fd, const char *path)
{
    struct stat by_fd, by_name;

    if (!WENT_WELL("fstat", fstat(fd, &by_fd)))
        return false;
    if (stat(path, &by_name) < 0) {
        if (errno != ENOENT) /* unlinked by the one before: an ordinary lost race */
            count_error("stat", errno);
        return false;
    }
    return by_fd.st_ino == by_name.st_ino && by_fd.st_dev == by_name.st_dev;
}

static bool add_one(const char *path)
{
    char text[32] = "", *end;
    int fd = open(path, O_RDWR);
    unsigned long value;
    bool done = false;
    ssize_t size;

    if (!WENT_WELL("open COUNTER", fd))
        return false;
    size = read(fd, text, sizeof(text) - 1);
    if (WENT_WELL("read COUNTER", size)) {
        value = strtoul(text, &end, 10);
        if (end == text) {
            count_error("parse COUNTER", EINVAL);
        } else {
            size = snprintf(text, sizeof(text), "%lu\n", value + 1);
            done = WENT_WELL("write COUNTER", pwrite(fd, text, (size_t)size, 0));
        }
    }
    return WENT_WELL("close COUNTER", close(fd)) && done;
}

int main(int argc, char **argv)
{
    unsigned long sections = 0, lost = 0, failed = 0;
    double end_s;
    bool with_unlink;

    if (argc != 5) {
        fprintf(stderr, "usage: flockb LOCK COUNTER SECONDS UNLINK(0|1)\n");
        return EXIT_USAGE;
    }
    with_unlink = atoi(argv[4]) != 0;
    end_s = now_s() + atof(argv[3]);
    while (now_s() < end_s) {
        int fd = open(argv[1], O_CREAT | O_RDWR, 0666);

        if (!WENT_WELL("open LOCK", fd))
            continue;
        if (WENT_WELL("flock", flock(fd, LOCK_EX))) {
            if (!is_same(fd, argv[1])) {
                lost++;
            } else {
                sections += add_one(argv[2]);
                if (with_unlink)
                    (void)WENT_WELL("unlink LOCK", unlink(argv[1]));
            }
        }
        (void)WENT_WELL("close LOCK", close(fd));
    }
    printf("sections=%lu lost=%lu", sections, lost);
    for (size_t i = 0; i < errors.count; i++) {
        printf(" error=%s:%s:%lu", errors.rows[i].call, strerrorname_np(errors.rows[i].err), errors.rows[i].count);
        failed += errors.rows[i].count;
    }
    printf(" errors=%lu\n", failed);
    return failed ? EXIT_WRONG : EXIT_GOOD;
}
