/* Locks: fcntl() record locks, flock(), locks of open file descriptions. */
#define TOPIC "lock"
#include "suite.h"

#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>

static struct flock range(int type, off_t start, off_t length)
{
    return (struct flock) { .l_type = (short)type, .l_whence = SEEK_SET, .l_start = start, .l_len = length };
}

static int try_lock(int fd, int type, off_t start, off_t length)
{
    struct flock lock = range(type, start, length);

    return fcntl(fd, F_SETLK, &lock);
}

static int open_file(void)
{
    make_pattern("f", 1000);
    return (int)OK(open("f", O_RDWR));
}

/* Whether another process could take this lock, as F_GETLK tells; checks that F_SETLK agrees. */
static bool is_free(int type, off_t start, off_t length)
{
    bool free = true;

    /* a child, because a process's own locks are never in its way */
    IN_CHILD () {
        int fd = (int)OK(open("f", O_RDWR)), out = (int)OK(open("is_free", O_CREAT | O_WRONLY | O_TRUNC, 0644));
        struct flock lock = range(type, start, length);

        OK(fcntl(fd, F_GETLK, &lock));
        if (lock.l_type == F_UNLCK) {
            OK(try_lock(fd, type, start, length));
            EQ(write(out, "y", 1), 1);
        } else {
            THAT(try_lock(fd, type, start, length) == -1);
            THAT(errno == EAGAIN || errno == EACCES);
        }
        OK(close(fd)); /* the end of the process would give the lock up a little late, see becomes_free() */
    }
    free = stat_of("is_free").st_size == 1;
    OK(unlink("is_free"));
    return free;
}

/* The kernel tells a FUSE file system of files that are closed by the end of a process without waiting for its answer. */
static void becomes_free(int type, off_t start, off_t length)
{
    for (double deadline_s = now_s() + 10; !is_free(type, start, length); tick())
        THAT(now_s() < deadline_s);
}

/* ---- Record locks ---- */

CASE(write_lock_keeps_others_out)
{
    int fd = open_file();

    OK(try_lock(fd, F_WRLCK, 0, 0));
    THAT(!is_free(F_WRLCK, 0, 0));
    THAT(!is_free(F_RDLCK, 0, 0));
}

CASE(read_lock_lets_readers_in)
{
    int fd = open_file();

    OK(try_lock(fd, F_RDLCK, 0, 0));
    THAT(is_free(F_RDLCK, 0, 0));
    THAT(!is_free(F_WRLCK, 0, 0));
}

CASE(unlock_lets_others_in)
{
    int fd = open_file();

    OK(try_lock(fd, F_WRLCK, 0, 0));
    OK(try_lock(fd, F_UNLCK, 0, 0));
    THAT(is_free(F_WRLCK, 0, 0));
}

CASE(ranges_that_do_not_meet_are_independent)
{
    int fd = open_file();

    OK(try_lock(fd, F_WRLCK, 100, 100));
    THAT(is_free(F_WRLCK, 0, 100));
    THAT(is_free(F_WRLCK, 200, 0));
    THAT(!is_free(F_WRLCK, 199, 1));
    THAT(!is_free(F_WRLCK, 100, 1));
    THAT(!is_free(F_WRLCK, 0, 0));
    THAT(!is_free(F_WRLCK, 50, 51));
}

CASE(length_0_reaches_beyond_the_end)
{
    int fd = open_file();

    OK(try_lock(fd, F_WRLCK, 500, 0));
    THAT(is_free(F_WRLCK, 0, 500));
    THAT(!is_free(F_WRLCK, 1000000, 10));
    THAT(!is_free(F_WRLCK, (off_t)1 << 40, 1));
}

CASE(negative_length_reaches_backward)
{
    int fd = open_file();

    OK(try_lock(fd, F_WRLCK, 200, -100));
    THAT(!is_free(F_WRLCK, 100, 1));
    THAT(!is_free(F_WRLCK, 199, 1));
    THAT(is_free(F_WRLCK, 200, 1));
    THAT(is_free(F_WRLCK, 99, 1));
}

CASE(unlock_in_the_middle_splits)
{
    int fd = open_file();

    OK(try_lock(fd, F_WRLCK, 0, 300));
    OK(try_lock(fd, F_UNLCK, 100, 100));
    THAT(!is_free(F_WRLCK, 0, 100));
    THAT(is_free(F_WRLCK, 100, 100));
    THAT(!is_free(F_WRLCK, 200, 100));
}

CASE(lock_in_the_middle_changes_its_type)
{
    int fd = open_file();

    OK(try_lock(fd, F_WRLCK, 0, 300));
    OK(try_lock(fd, F_RDLCK, 100, 100));
    THAT(!is_free(F_RDLCK, 0, 100));
    THAT(is_free(F_RDLCK, 100, 100));
    THAT(!is_free(F_RDLCK, 200, 100));
}

CASE(neighbouring_locks_are_both_held)
{
    struct flock lock = range(F_WRLCK, 0, 0);
    int fd = open_file();

    OK(try_lock(fd, F_WRLCK, 0, 100));
    OK(try_lock(fd, F_WRLCK, 100, 100));
    IN_CHILD () {
        OK(fcntl(fd, F_GETLK, &lock));
        EQ(lock.l_type, F_WRLCK);
        EQ(lock.l_start, 0);
        THAT(lock.l_len == 100 || lock.l_len == 200); /* joined or not */
    }
    THAT(!is_free(F_WRLCK, 100, 100));
    OK(try_lock(fd, F_UNLCK, 50, 100));
    THAT(is_free(F_WRLCK, 50, 100));
    THAT(!is_free(F_WRLCK, 150, 1));
}

CASE(getlk_names_the_holder)
{
    struct flock lock = range(F_RDLCK, 0, 0);
    pid_t self = getpid();
    int fd = open_file();

    OK(try_lock(fd, F_WRLCK, 10, 20));
    IN_CHILD () {
        OK(fcntl(fd, F_GETLK, &lock));
        EQ(lock.l_type, F_WRLCK);
        EQ(lock.l_whence, SEEK_SET);
        EQ(lock.l_start, 10);
        EQ(lock.l_len, 20);
        EQ(lock.l_pid, self);
    }
}

CASE(getlk_of_a_free_range_is_unlocked)
{
    struct flock lock = range(F_WRLCK, 0, 0);
    int fd = open_file();

    OK(fcntl(fd, F_GETLK, &lock));
    EQ(lock.l_type, F_UNLCK);
}

CASE(own_locks_are_not_in_the_way)
{
    struct flock lock = range(F_WRLCK, 0, 0);
    int a = open_file(), b = (int)OK(open("f", O_RDWR));

    OK(try_lock(a, F_WRLCK, 0, 0));
    OK(fcntl(b, F_GETLK, &lock));
    EQ(lock.l_type, F_UNLCK);
    OK(try_lock(b, F_WRLCK, 0, 100));
}

CASE(closing_any_descriptor_of_the_file_drops_the_locks)
{
    int a = open_file(), b = (int)OK(open("f", O_RDONLY));

    OK(try_lock(a, F_WRLCK, 0, 0));
    THAT(!is_free(F_WRLCK, 0, 0));
    OK(close(b));
    THAT(is_free(F_WRLCK, 0, 0));
}

CASE(locks_end_with_the_process)
{
    struct steps s;

    open_file();
    if (steps_fork(&s)) {
        OK(try_lock((int)OK(open("f", O_RDWR)), F_WRLCK, 0, 0));
        steps_tell(&s);
        steps_wait(&s);
        suite_leave();
    }
    steps_wait(&s);
    THAT(!is_free(F_WRLCK, 0, 0));
    steps_tell(&s);
    steps_end(&s);
    becomes_free(F_WRLCK, 0, 0);
}

CASE(locks_end_with_a_killed_process)
{
    struct steps s;

    open_file();
    if (steps_fork(&s)) {
        OK(try_lock((int)OK(open("f", O_RDWR)), F_WRLCK, 0, 0));
        steps_tell(&s);
        pause();
    }
    steps_wait(&s);
    THAT(!is_free(F_WRLCK, 0, 0));
    OK(kill(s.child, SIGKILL));
    OK(waitpid(s.child, NULL, 0));
    becomes_free(F_WRLCK, 0, 0);
}

CASE(locks_are_not_inherited_by_fork)
{
    int fd = open_file();

    OK(try_lock(fd, F_WRLCK, 0, 0));
    IN_CHILD ()
        FAILS(EAGAIN, try_lock(fd, F_WRLCK, 0, 0));
    THAT(!is_free(F_WRLCK, 0, 0));
}

CASE(waiting_lock_is_granted_when_the_holder_unlocks)
{
    struct flock lock = range(F_WRLCK, 0, 0);
    struct steps s;
    int fd = open_file();

    OK(try_lock(fd, F_WRLCK, 0, 0));
    if (steps_fork(&s)) {
        int mine = (int)OK(open("f", O_RDWR));

        steps_tell(&s);
        OK(fcntl(mine, F_SETLKW, &lock));
        EQ(pwrite(mine, "!", 1, 0), 1);
        suite_leave();
    }
    steps_wait(&s);
    RANGE_IS_PATTERN(fd, 0, 1);
    tick();
    RANGE_IS_PATTERN(fd, 0, 1);
    OK(try_lock(fd, F_UNLCK, 0, 0));
    steps_end(&s);
    RANGE_IS(fd, 0, 1, '!');
}

static void no_action(int number)
{
    (void)number;
}

CASE(waiting_lock_is_interrupted_by_a_signal)
{
    struct sigaction action = { .sa_handler = no_action };
    struct flock lock = range(F_WRLCK, 0, 0);
    struct steps s;
    int fd = open_file(), status;

    OK(try_lock(fd, F_WRLCK, 0, 0));
    if (steps_fork(&s)) {
        int mine = (int)OK(open("f", O_RDWR));

        OK(sigaction(SIGUSR1, &action, NULL));
        steps_tell(&s);
        FAILS(EINTR, fcntl(mine, F_SETLKW, &lock));
        suite_leave();
    }
    steps_wait(&s);
    /* again until it has ended, for the first may come before the child waits */
    for (double deadline_s = now_s() + 20; waitpid(s.child, &status, WNOHANG) == 0; tick()) {
        THAT(now_s() < deadline_s);
        OK(kill(s.child, SIGUSR1));
    }
    EQ(status, 0);
    OK(try_lock(fd, F_UNLCK, 0, 0));
    becomes_free(F_WRLCK, 0, 0);
}

CASE(waiting_process_can_be_killed)
{
    struct flock lock = range(F_WRLCK, 0, 0);
    struct steps s;
    int fd = open_file();

    OK(try_lock(fd, F_WRLCK, 0, 0));
    if (steps_fork(&s)) {
        int mine = (int)OK(open("f", O_RDWR));

        steps_tell(&s);
        OK(fcntl(mine, F_SETLKW, &lock));
        suite_leave();
    }
    steps_wait(&s);
    tick();
    OK(kill(s.child, SIGKILL));
    OK(waitpid(s.child, NULL, 0));
    OK(try_lock(fd, F_UNLCK, 0, 0));
    becomes_free(F_WRLCK, 0, 0); /* not granted to the dead one */
}

CASE(read_lock_needs_a_readable_descriptor)
{
    make_file("f");
    FAILS(EBADF, try_lock((int)OK(open("f", O_WRONLY)), F_RDLCK, 0, 0));
}

CASE(write_lock_needs_a_writable_descriptor)
{
    make_file("f");
    FAILS(EBADF, try_lock((int)OK(open("f", O_RDONLY)), F_WRLCK, 0, 0));
}

CASE(bad_arguments_are_einval)
{
    int fd = open_file();

    FAILS(EINVAL, try_lock(fd, F_WRLCK, -1, 10));
    FAILS(EINVAL, try_lock(fd, 99, 0, 0));
    FAILS(EINVAL, try_lock(fd, F_WRLCK, 10, -20));
}

CASE(locks_beyond_32_bits)
{
    int fd = open_file();

    OK(try_lock(fd, F_WRLCK, (off_t)1 << 40, 10));
    THAT(is_free(F_WRLCK, 0, (off_t)1 << 40));
    THAT(!is_free(F_WRLCK, ((off_t)1 << 40) + 9, 1));
    THAT(is_free(F_WRLCK, ((off_t)1 << 40) + 10, 1));
}

CASE(locks_relative_to_the_end)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_END, .l_start = -100, .l_len = 50 };
    int fd = open_file();

    OK(fcntl(fd, F_SETLK, &lock));
    THAT(!is_free(F_WRLCK, 900, 1));
    THAT(is_free(F_WRLCK, 950, 1));
    THAT(is_free(F_WRLCK, 899, 1));
}

CASE(many_ranges)
{
    int fd = open_file();

    for (int i = 0; i < 200; i++)
        OK(try_lock(fd, F_WRLCK, i * 10, 5));
    IN_CHILD () {
        for (int i = 0; i < 200; i++) {
            FAILS(EAGAIN, try_lock(fd, F_WRLCK, i * 10 + 4, 1));
            OK(try_lock(fd, F_WRLCK, i * 10 + 5, 5));
        }
    }
    OK(try_lock(fd, F_UNLCK, 0, 0));
    becomes_free(F_WRLCK, 0, 0);
}

CASE(counter_under_a_lock_counts_right)
{
    enum { PROCESSES = 4, ROUNDS = 50 };
    int fd = (int)OK(open("f", O_CREAT | O_RDWR, 0644)), total = 0;

    EQ(pwrite(fd, &total, sizeof(total), 0), sizeof(total));
    for (int p = 0; p < PROCESSES; p++) {
        if (fork() != 0)
            continue;
        fd = (int)OK(open("f", O_RDWR));
        for (int i = 0; i < ROUNDS; i++) {
            struct flock lock = range(F_WRLCK, 0, 0);

            OK(fcntl(fd, F_SETLKW, &lock));
            EQ(pread(fd, &total, sizeof(total), 0), sizeof(total));
            total++;
            EQ(pwrite(fd, &total, sizeof(total), 0), sizeof(total));
            OK(try_lock(fd, F_UNLCK, 0, 0));
        }
        _exit(0);
    }
    for (int p = 0; p < PROCESSES; p++) {
        int status;

        OK(wait(&status));
        EQ(status, 0);
    }
    EQ(pread(fd, &total, sizeof(total), 0), sizeof(total));
    EQ(total, PROCESSES * ROUNDS);
}

/* ---- flock() ---- */

CASE(flock_keeps_another_description_out)
{
    int a = open_file(), b = (int)OK(open("f", O_RDWR));

    OK(flock(a, LOCK_EX));
    FAILS(EWOULDBLOCK, flock(b, LOCK_EX | LOCK_NB));
    FAILS(EWOULDBLOCK, flock(b, LOCK_SH | LOCK_NB));
    OK(flock(a, LOCK_UN));
    OK(flock(b, LOCK_EX | LOCK_NB));
}

CASE(flock_shared_lets_readers_in)
{
    int a = open_file(), b = (int)OK(open("f", O_RDONLY)), c = (int)OK(open("f", O_RDWR));

    OK(flock(a, LOCK_SH));
    OK(flock(b, LOCK_SH | LOCK_NB));
    FAILS(EWOULDBLOCK, flock(c, LOCK_EX | LOCK_NB));
}

CASE(flock_needs_no_writable_descriptor)
{
    make_file("f");
    OK(flock((int)OK(open("f", O_RDONLY)), LOCK_EX));
}

/* FUSE tells the file system of the last close of a description only after close() has returned. */
static void flock_soon(int fd)
{
    for (double deadline_s = now_s() + 10; flock(fd, LOCK_EX | LOCK_NB) < 0; tick()) {
        EQ(errno, EWOULDBLOCK);
        THAT(now_s() < deadline_s);
    }
}

CASE(flock_belongs_to_the_open_description)
{
    int a = open_file(), b = (int)OK(open("f", O_RDWR)), copy = (int)OK(dup(a));

    OK(flock(a, LOCK_EX));
    OK(flock(copy, LOCK_EX | LOCK_NB));
    OK(close(a));
    FAILS(EWOULDBLOCK, flock(b, LOCK_EX | LOCK_NB));
    OK(close(copy));
    flock_soon(b);
}

CASE(flock_is_shared_with_a_child)
{
    int a = open_file(), b = (int)OK(open("f", O_RDWR));

    OK(flock(a, LOCK_EX));
    IN_CHILD () {
        OK(flock(a, LOCK_EX | LOCK_NB));
        FAILS(EWOULDBLOCK, flock(b, LOCK_EX | LOCK_NB));
        OK(flock(a, LOCK_UN));
    }
    OK(flock(b, LOCK_EX | LOCK_NB));
}

CASE(flock_is_not_dropped_by_closing_another_descriptor)
{
    int a = open_file(), b = (int)OK(open("f", O_RDWR)), c = (int)OK(open("f", O_RDWR));

    OK(flock(a, LOCK_EX));
    OK(close(b));
    FAILS(EWOULDBLOCK, flock(c, LOCK_EX | LOCK_NB));
}

CASE(flock_can_be_converted)
{
    int a = open_file(), b = (int)OK(open("f", O_RDWR));

    OK(flock(a, LOCK_EX));
    OK(flock(a, LOCK_SH));
    OK(flock(b, LOCK_SH | LOCK_NB));
    FAILS(EWOULDBLOCK, flock(a, LOCK_EX | LOCK_NB));
    OK(flock(b, LOCK_UN));
    OK(flock(a, LOCK_EX | LOCK_NB));
}

CASE(flock_ends_with_a_killed_process)
{
    struct steps s;
    int fd = open_file();

    if (steps_fork(&s)) {
        OK(flock((int)OK(open("f", O_RDWR)), LOCK_EX));
        steps_tell(&s);
        pause();
    }
    steps_wait(&s);
    FAILS(EWOULDBLOCK, flock(fd, LOCK_EX | LOCK_NB));
    OK(kill(s.child, SIGKILL));
    OK(waitpid(s.child, NULL, 0));
    flock_soon(fd);
}

CASE(flock_waits_until_the_holder_unlocks)
{
    struct steps s;
    int fd = open_file();

    OK(flock(fd, LOCK_EX));
    if (steps_fork(&s)) {
        int mine = (int)OK(open("f", O_RDWR));

        steps_tell(&s);
        OK(flock(mine, LOCK_EX));
        EQ(pwrite(mine, "!", 1, 0), 1);
        suite_leave();
    }
    steps_wait(&s);
    tick();
    RANGE_IS_PATTERN(fd, 0, 1);
    OK(flock(fd, LOCK_UN));
    steps_end(&s);
    RANGE_IS(fd, 0, 1, '!');
}

CASE(flock_wait_is_interrupted_by_a_signal)
{
    struct sigaction action = { .sa_handler = no_action };
    struct steps s;
    int fd = open_file(), status;

    OK(flock(fd, LOCK_EX));
    if (steps_fork(&s)) {
        int mine = (int)OK(open("f", O_RDWR));

        OK(sigaction(SIGUSR1, &action, NULL));
        steps_tell(&s);
        FAILS(EINTR, flock(mine, LOCK_EX));
        suite_leave();
    }
    steps_wait(&s);
    for (double deadline_s = now_s() + 20; waitpid(s.child, &status, WNOHANG) == 0; tick()) {
        THAT(now_s() < deadline_s);
        OK(kill(s.child, SIGUSR1));
    }
    EQ(status, 0);
}

CASE(flock_of_a_directory_works)
{
    int a, b;

    make_dir("d");
    a = (int)OK(open("d", O_RDONLY | O_DIRECTORY));
    b = (int)OK(open("d", O_RDONLY | O_DIRECTORY));
    OK(flock(a, LOCK_EX));
    FAILS(EWOULDBLOCK, flock(b, LOCK_EX | LOCK_NB));
}

CASE(flock_and_record_locks_do_not_meet)
{
    int fd = open_file();

    NEEDS(FEATURE_SEPARATE_LOCKS);
    OK(flock(fd, LOCK_EX));
    THAT(is_free(F_WRLCK, 0, 0));
}

CASE(flock_with_bad_arguments_is_einval)
{
    FAILS(EINVAL, flock(open_file(), 64));
}

/* ---- Locks of open file descriptions ---- */

CASE(ofd_lock_keeps_another_description_of_the_process_out)
{
    struct flock lock = range(F_WRLCK, 0, 0);
    int a = open_file(), b = (int)OK(open("f", O_RDWR));

    NEEDS(FEATURE_OFD_LOCKS);
    OK(fcntl(a, F_OFD_SETLK, &lock));
    FAILS(EAGAIN, fcntl(b, F_OFD_SETLK, &lock));
    lock.l_type = F_UNLCK;
    OK(fcntl(a, F_OFD_SETLK, &lock));
    lock.l_type = F_WRLCK;
    OK(fcntl(b, F_OFD_SETLK, &lock));
}

CASE(ofd_lock_and_record_lock_meet)
{
    struct flock lock = range(F_WRLCK, 0, 0);
    int fd = open_file();

    NEEDS(FEATURE_OFD_LOCKS);
    OK(fcntl(fd, F_OFD_SETLK, &lock));
    THAT(!is_free(F_WRLCK, 0, 0));
}

CASE(ofd_lock_stays_when_another_descriptor_is_closed)
{
    struct flock lock = range(F_WRLCK, 0, 0);
    int a = open_file(), b = (int)OK(open("f", O_RDWR));

    NEEDS(FEATURE_OFD_LOCKS);
    OK(fcntl(a, F_OFD_SETLK, &lock));
    OK(close(b));
    THAT(!is_free(F_WRLCK, 0, 0));
    OK(close(a));
    becomes_free(F_WRLCK, 0, 0);
}

CASE(ofd_lock_is_shared_with_a_child)
{
    struct flock lock = range(F_WRLCK, 0, 0);
    int fd = open_file();

    NEEDS(FEATURE_OFD_LOCKS);
    OK(fcntl(fd, F_OFD_SETLK, &lock));
    IN_CHILD ()
        OK(fcntl(fd, F_OFD_SETLK, &lock));
    THAT(!is_free(F_WRLCK, 0, 0));
}

CASE(ofd_getlk_tells_no_process)
{
    struct flock lock = range(F_WRLCK, 5, 10);
    int a = open_file(), b = (int)OK(open("f", O_RDWR));

    NEEDS(FEATURE_OFD_LOCKS);
    OK(fcntl(a, F_OFD_SETLK, &lock));
    lock = range(F_WRLCK, 0, 0);
    OK(fcntl(b, F_OFD_GETLK, &lock));
    EQ(lock.l_type, F_WRLCK);
    EQ(lock.l_start, 5);
    EQ(lock.l_len, 10);
    EQ(lock.l_pid, -1);
}

CASE(locks_of_two_files_are_independent)
{
    int a = open_file(), b;

    make_file("g");
    b = (int)OK(open("g", O_RDWR));
    OK(try_lock(a, F_WRLCK, 0, 0));
    IN_CHILD () {
        OK(try_lock(b, F_WRLCK, 0, 0));
        FAILS(EAGAIN, try_lock(a, F_WRLCK, 0, 0));
    }
}

CASE(lock_is_on_the_file_and_not_on_its_name)
{
    int fd = open_file();

    OK(try_lock(fd, F_WRLCK, 0, 0));
    OK(link("f", "g"));
    OK(unlink("f"));
    make_file("f");
    THAT(is_free(F_WRLCK, 0, 0));
    OK(rename("g", "f"));
    THAT(!is_free(F_WRLCK, 0, 0));
}
