/* holdlock try flock|fcntl FILE    tries to take an exclusive lock without waiting: prints granted (0), refused (1) or
 *                                  the error (2)
 * holdlock hold flock|fcntl FILE   takes it, prints held, and reads commands from stdin until it ends:
 *     check    prints alive when the descriptor still works (fstat, read), else "dead ERROR"
 *     end      unlocks, prints the result of that and of close, and ends */
#include "program.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

static int lock(int fd, const char *kind, int type, bool wait)
{
    struct flock whole = { .l_type = (short)type };

    if (strcmp(kind, "flock") == 0)
        return flock(fd, (type == F_WRLCK ? LOCK_EX : LOCK_UN) | (wait ? 0 : LOCK_NB));
    return fcntl(fd, wait ? F_SETLKW : F_SETLK, &whole);
}

static int try(const char *kind, const char *path)
{
    int fd = (int)MUST(open(path, O_RDWR | O_CREAT, 0666));

    if (lock(fd, kind, F_WRLCK, false) == 0) {
        printf("granted\n");
        return 0;
    }
    if (errno == EAGAIN || errno == EACCES) {
        printf("refused\n");
        return 1;
    }
    printf("error %s\n", strerrorname_np(errno));
    return 2;
}

static const char *state(int fd)
{
    struct stat st;
    char c;

    if (fstat(fd, &st) < 0 || pread(fd, &c, 1, 0) < 0)
        return strerrorname_np(errno);
    return NULL;
}

static int hold(const char *kind, const char *path)
{
    int fd = (int)MUST(open(path, O_RDWR | O_CREAT, 0666));
    char command[32];

    MUST(lock(fd, kind, F_WRLCK, true));
    puts("held");
    fflush(stdout);
    while (fgets(command, sizeof(command), stdin) && strcmp(command, "end\n") != 0) {
        const char *dead = state(fd);

        if (dead)
            printf("dead %s\n", dead);
        else
            puts("alive");
        fflush(stdout);
    }
    printf("unlock %s\n", lock(fd, kind, F_UNLCK, true) == 0 ? "ok" : strerrorname_np(errno));
    printf("close %s\n", close(fd) == 0 ? "ok" : strerrorname_np(errno));
    return EXIT_GOOD;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "try") == 0)
        return try(argv[2], argv[3]);
    if (argc == 4 && strcmp(argv[1], "hold") == 0)
        return hold(argv[2], argv[3]);
    fprintf(stderr, "usage: holdlock try|hold flock|fcntl FILE\n");
    return EXIT_USAGE;
}
