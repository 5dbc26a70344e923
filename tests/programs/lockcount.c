/* lockcount flock|fcntl|ofd FILE ROUNDS
 *
 * Adds one to the number in FILE, ROUNDS times, each time under an exclusive lock, through one descriptor that stays
 * open all the time. Run in several processes on several mounts, the number must in the end be the sum of their rounds:
 * who gets the lock must see what the one before has written. */
#include "program.h"

#include <fcntl.h>
#include <sys/file.h>

static void lock(int fd, const char *kind, bool on)
{
    struct flock whole = { .l_type = on ? F_WRLCK : F_UNLCK };

    if (strcmp(kind, "flock") == 0)
        MUST(flock(fd, on ? LOCK_EX : LOCK_UN));
    else
        MUST(fcntl(fd, strcmp(kind, "ofd") == 0 ? F_OFD_SETLKW : F_SETLKW, &whole));
}

static void add_one(int fd)
{
    char text[32] = "";
    unsigned long value;
    int size;

    MUST(pread(fd, text, sizeof(text) - 1, 0));
    value = strtoul(text, NULL, 10);
    size = snprintf(text, sizeof(text), "%lu\n", value + 1);
    if (MUST(pwrite(fd, text, (size_t)size, 0)) != size)
        wrong("lockcount: short write");
}

int main(int argc, char **argv)
{
    long rounds;
    int fd;

    if (argc != 4) {
        fprintf(stderr, "usage: lockcount flock|fcntl|ofd FILE ROUNDS\n");
        return EXIT_USAGE;
    }
    fd = (int)MUST(open(argv[2], O_RDWR | O_CREAT, 0666));
    rounds = atol(argv[3]);
    for (long i = 0; i < rounds; i++) {
        lock(fd, argv[1], true);
        add_one(fd);
        lock(fd, argv[1], false);
    }
    MUST(close(fd));
    printf("rounds=%ld\n", rounds);
    return EXIT_GOOD;
}
