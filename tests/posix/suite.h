/* posix_suite - own cases for every operation and error of a POSIX file system, run in a directory of a mount.
 *
 * A *case* is one small function, declared with CASE(name) in the file of its *topic*:
 *
 *     #define TOPIC "unlink"
 *     #include "suite.h"
 *
 *     CASE(takes_the_name_away)
 *     {
 *         make_file("f");
 *         OK(unlink("f"));
 *         FAILS(ENOENT, unlink("f"));
 *     }
 *
 * It runs in a process of its own, as root, with umask 022, under a time limit, and its working directory is a fresh
 * empty directory (mode 0755) of the file system under test; all paths in a case are relative to that. The first check
 * that does not hold ends the case with a line that names the place, what was expected and what was seen. What a case
 * leaves behind is removed after it.
 *
 * A *feature* is an ability that a file system may lack (ACLs, hole punching...). A case that needs one says
 * NEEDS(FEATURE); it is then skipped, with the reason, where a probe shows that the feature is missing, unless the
 * caller demanded it (--features), which turns the skip into a failure.
 *
 * AS(uid, gid) runs the block after it as another user in a child process; checks in it work as usual:
 *
 *     AS(ALICE, STAFF)
 *         FAILS(EACCES, unlink("f"));
 *
 * Nothing in a case sleeps: tick() waits until the clock that stamps inodes has moved on. */
#ifndef MORTAR_TESTS_POSIX_SUITE_H
#define MORTAR_TESTS_POSIX_SUITE_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

/* Users and groups that own nothing on the machine. */
enum { ALICE = 20001, BOB = 20002, STAFF = 30001, GUESTS = 30002, CREW = 30003 };

/* ---- Cases ---- */

struct posix_case {
    const char *topic;
    const char *name;
    void (*run)(const void *arg);
    const void *arg; /* for cases made from a table: the row */
    struct posix_case *next;
};

/* Adds a case at the end of the list; the case is borrowed for the life of the process. */
void suite_add(struct posix_case *c);

/* Adds a case named "TOPIC/group:row" that runs run(arg). */
void suite_add_row(const char *topic, const char *group, const char *row, void (*run)(const void *arg),
                   const void *arg);

#define CASE(name)                                                              \
    static void name##_case(const void *arg);                                   \
    __attribute__((constructor)) static void name##_add(void)                   \
    {                                                                           \
        static struct posix_case c = { TOPIC, #name, name##_case, NULL, NULL }; \
        suite_add(&c);                                                          \
    }                                                                           \
    static void name##_case(__attribute__((unused)) const void *arg)

/* ---- Checks ---- */

#define HERE __FILE__, __LINE__

/* The call must not return -1; its value is the value of the expression. */
#define OK(call)                   check_ok((long)(call), #call, HERE)
/* The call must return -1 with this errno. */
#define FAILS(err, call)           check_fails(err, (long)(call), #call, HERE)
/* Both integers must be equal. */
#define EQ(have, want)             check_eq((long long)(have), (long long)(want), #have, HERE)
#define STR_EQ(have, want)         check_str_eq(have, want, #have, HERE)
#define BYTES_EQ(have, want, size) check_bytes_eq(have, want, size, #have, HERE)
/* The condition must hold. */
#define THAT(cond)                                 \
    do {                                           \
        if (!(cond))                               \
            suite_fail(HERE, "not so: %s", #cond); \
    } while (0)

long check_ok(long result, const char *text, const char *file, int line);
void check_fails(int err, long result, const char *text, const char *file, int line);
void check_eq(long long have, long long want, const char *text, const char *file, int line);
void check_str_eq(const char *have, const char *want, const char *text, const char *file, int line);
void check_bytes_eq(const void *have, const void *want, size_t size, const char *text, const char *file, int line);

/* Ends the case as failed. */
void suite_fail(const char *file, int line, const char *format, ...) __attribute__((noreturn, format(printf, 3, 4)));
/* Ends the case as skipped. */
void suite_skip(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* ---- Features ---- */

enum feature {
    FEATURE_ACL,
    FEATURE_USER_XATTR,
    FEATURE_TRUSTED_XATTR,
    FEATURE_BIG_XATTR, /* values of 64 KiB */
    FEATURE_DEVICES,
    FEATURE_FALLOCATE,
    FEATURE_PUNCH,
    FEATURE_ZERO_RANGE,
    FEATURE_SEEK_HOLE, /* reports a real hole, not only the end */
    FEATURE_COPY_FILE_RANGE,
    FEATURE_DIRECT,
    FEATURE_RENAME_FLAGS, /* RENAME_NOREPLACE, RENAME_EXCHANGE */
    FEATURE_TMPFILE,
    FEATURE_OFD_LOCKS,
    FEATURE_SEPARATE_LOCKS, /* flock() and record locks do not see each other */
    FEATURE_SHARED_MMAP,
    FEATURE_DIR_SEEK,  /* seekdir() to a place kept from telldir() */
    FEATURE_ATIME,     /* reading moves the access time */
    FEATURE_TIME_BACK, /* a write moves an mtime that lies in the future back to now */
    FEATURE_IDS,       /* the process may become other users */
    FEATURE_COUNT
};

#define NEEDS(feature) suite_need(feature)
void suite_need(enum feature feature);

/* ---- Other users ---- */

#define AS(uid, gid) AS_GROUPS (uid, gid, 0, NULL)
/* With supplementary groups. */
#define AS_GROUPS(uid, gid, count, groups) \
    for (bool in_child_ = suite_enter(uid, gid, count, groups); in_child_; in_child_ = suite_left())
/* As root, in a child process. */
#define IN_CHILD() AS (0, 0)

bool suite_enter(uid_t uid, gid_t gid, size_t count, const gid_t *groups);
void suite_leave(void) __attribute__((noreturn));
/* The same as an expression; it never has a value. */
bool suite_left(void) __attribute__((noreturn));

/* Two processes in step: child_step() in the child announces that it got so far, parent_wait() waits for that; the same
 * in the other direction. */
struct steps {
    int to_child[2];
    int to_parent[2];
    pid_t child;
};
/* Forks; true in the child, which must end with suite_leave(). The parent ends the child with steps_end(). */
bool steps_fork(struct steps *s);
void steps_tell(struct steps *s);
void steps_wait(struct steps *s);
/* Parent: waits for the child, whose checks must have held. */
void steps_end(struct steps *s);

/* ---- Files ---- */

/* Files with content are complete for every mount when these return. */
void make_file(const char *path);                   /* empty, mode 0644 */
void make_file_mode(const char *path, mode_t mode); /* empty, exactly this mode */
void make_file_with(const char *path, const char *text);
void make_dir(const char *path);                   /* mode 0755 */
void make_dir_mode(const char *path, mode_t mode); /* exactly this mode */
/* A file of this size whose byte at offset o is pattern_byte(o). */
void make_pattern(const char *path, size_t size);
uint8_t pattern_byte(uint64_t offset);

#define TEXT_IS(path, text) check_text(path, text, HERE)
void check_text(const char *path, const char *text, const char *file, int line);
/* Bytes from (inclusive) to (exclusive) of an open file are all `value`. */
#define RANGE_IS(fd, from, to, value) check_range(fd, from, to, value, HERE)
void check_range(int fd, off_t from, off_t to, uint8_t value, const char *file, int line);
/* The same bytes are those of make_pattern(). */
#define RANGE_IS_PATTERN(fd, from, to) check_pattern(fd, from, to, HERE)
void check_pattern(int fd, off_t from, off_t to, const char *file, int line);

/* lstat() and fstat() that must work. */
struct stat stat_of(const char *path);
struct stat stat_fd(int fd);
#define EXISTS(path)             OK(faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW))
#define GONE(path)               FAILS(ENOENT, faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW))
#define MODE_IS(path, mode)      EQ(stat_of(path).st_mode & 07777, mode)
#define SIZE_IS(path, size)      EQ(stat_of(path).st_size, size)
#define NLINK_IS(path, count)    EQ(stat_of(path).st_nlink, count)
#define OWNER_IS(path, uid, gid) (EQ(stat_of(path).st_uid, uid), EQ(stat_of(path).st_gid, gid))

/* The path as seen through the other mount of the volume; good for three more calls. Only in cases of two mounts. */
#define B(path) suite_other(path)
const char *suite_other(const char *path);

/* A name of this many bytes; the same buffer at each call. */
const char *name_of(size_t length);
/* A relative path of exactly this many bytes that names "." by a chain of "./", or ends in the name when one is given. */
const char *path_of(size_t length, const char *last);

/* ---- Time ---- */

/* Waits until the kernel's coarse clock, from which inodes are stamped, has moved on. */
void tick(void);
/* -1, 0, 1 as a is before, equal to or after b. */
int time_cmp(struct timespec a, struct timespec b);
/* Seconds on the monotonic clock. */
double now_s(void);

/* Checks which times of path the statement moves; which is some of "amc". Others must stay as they are. Access time is
 * only looked at when it is in which, for mounts may leave it alone. */
#define MOVES(path, which, statement)                        \
    do {                                                     \
        struct stat before_ = stat_of(path);                 \
        tick();                                              \
        statement;                                           \
        check_times(path, before_, which, #statement, HERE); \
    } while (0)
void check_times(const char *path, struct stat before, const char *which, const char *text, const char *file, int line);

#endif
