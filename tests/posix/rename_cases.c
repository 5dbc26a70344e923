/* rename() and renameat2(): every pair of types, what moves, what is refused. */
#define TOPIC "rename"
#include "suite.h"

#include <sys/wait.h>

/* ---- Pairs of types ---- */

enum kind {
    KIND_NONE,
    KIND_FILE,
    KIND_DIR,
    KIND_FULL_DIR,
    KIND_SYMLINK,
    KIND_DIR_SYMLINK,
    KIND_FIFO,
    KIND_DEVICE,
    KIND_COUNT
};

static const char *const kind_names[KIND_COUNT] = { "nothing", "file",        "dir",  "full_dir",
                                                    "symlink", "dir_symlink", "fifo", "device" };

static void make_kind(const char *path, enum kind kind)
{
    char inside[64];

    switch (kind) {
    case KIND_NONE: return;
    case KIND_FILE: make_file_with(path, path); return;
    case KIND_DIR: make_dir(path); return;
    case KIND_FULL_DIR:
        make_dir(path);
        snprintf(inside, sizeof(inside), "%s/inside", path);
        make_file(inside);
        return;
    case KIND_SYMLINK: OK(symlink("missing", path)); return;
    case KIND_DIR_SYMLINK: OK(symlink(".", path)); return;
    case KIND_FIFO: OK(mkfifo(path, 0644)); return;
    case KIND_DEVICE:
        NEEDS(FEATURE_DEVICES);
        OK(mknod(path, S_IFCHR | 0600, 0x103));
        return;
    case KIND_COUNT: break;
    }
    suite_fail(HERE, "no such kind");
}

static bool is_dir(enum kind kind)
{
    return kind == KIND_DIR || kind == KIND_FULL_DIR;
}

/* What renaming a `from` over a `to` must give. */
static int expected_errno(enum kind from, enum kind to)
{
    if (to == KIND_NONE)
        return 0;
    if (is_dir(from))
        return !is_dir(to) ? ENOTDIR : to == KIND_FULL_DIR ? ENOTEMPTY : 0;
    return is_dir(to) ? EISDIR : 0;
}

struct pair {
    enum kind from, to;
};

static void over(const void *arg)
{
    const struct pair *pair = arg;
    int err = expected_errno(pair->from, pair->to);
    struct stat from, to = { 0 };

    make_kind("from", pair->from);
    make_kind("to", pair->to);
    from = stat_of("from");
    if (pair->to != KIND_NONE)
        to = stat_of("to");
    if (err == 0) {
        OK(rename("from", "to"));
        GONE("from");
        EQ(stat_of("to").st_ino, from.st_ino);
        EQ(stat_of("to").st_mode, from.st_mode);
        if (pair->from == KIND_FILE)
            TEXT_IS("to", "from");
        if (pair->from == KIND_FULL_DIR)
            EXISTS("to/inside");
    } else {
        FAILS(err, rename("from", "to"));
        EQ(stat_of("from").st_ino, from.st_ino);
        EQ(stat_of("to").st_ino, to.st_ino);
    }
}

__attribute__((constructor)) static void add_pairs(void)
{
    static struct pair pairs[KIND_COUNT * KIND_COUNT];
    static char names[KIND_COUNT * KIND_COUNT][40];

    for (int i = KIND_COUNT; i < KIND_COUNT * KIND_COUNT; i++) {
        pairs[i] = (struct pair) { (enum kind)(i / KIND_COUNT), (enum kind)(i % KIND_COUNT) };
        snprintf(names[i], sizeof(names[i]), "%s_to_%s", kind_names[pairs[i].from], kind_names[pairs[i].to]);
        suite_add_row(TOPIC, "over", names[i], over, &pairs[i]);
    }
}

/* ---- What moves ---- */

CASE(of_a_missing_name_is_enoent)
{
    make_file_with("to", "kept");
    FAILS(ENOENT, rename("missing", "to"));
    TEXT_IS("to", "kept");
}

CASE(to_another_directory)
{
    make_dir("a");
    make_dir("b");
    make_file_with("a/f", "abc");
    OK(rename("a/f", "b/g"));
    GONE("a/f");
    TEXT_IS("b/g", "abc");
    OK(rmdir("a"));
}

CASE(of_a_directory_to_another_directory_moves_its_tree_and_dotdot)
{
    make_dir("a");
    make_dir("b");
    make_dir("a/d");
    make_dir("a/d/e");
    make_file_with("a/d/e/f", "deep");
    OK(rename("a/d", "b/d"));
    TEXT_IS("b/d/e/f", "deep");
    EQ(stat_of("b/d/..").st_ino, stat_of("b").st_ino);
    NLINK_IS("a", 2);
    NLINK_IS("b", 3);
    NLINK_IS("b/d", 3);
}

CASE(to_itself_changes_nothing)
{
    make_file_with("f", "abc");
    make_dir("d");
    MOVES("f", "", OK(rename("f", "f")));
    OK(rename("d", "d"));
    TEXT_IS("f", "abc");
}

CASE(to_another_name_of_the_same_file_changes_nothing)
{
    make_file("f");
    OK(link("f", "g"));
    OK(rename("f", "g"));
    NLINK_IS("f", 2);
    NLINK_IS("g", 2);
}

CASE(moves_the_times_of_both_directories)
{
    make_dir("a");
    make_dir("b");
    make_file("a/f");
    MOVES("a", "mc", OK(rename("a/f", "b/f")));
    MOVES("b", "mc", OK(rename("b/f", "a/f")));
    MOVES("b", "mc", OK(rename("a/f", "b/f")));
}

CASE(moves_the_times_of_one_directory)
{
    make_dir("d");
    make_file("d/f");
    MOVES("d", "mc", OK(rename("d/f", "d/g")));
}

CASE(keeps_mtime_of_the_file)
{
    struct stat before;

    make_file("f");
    before = stat_of("f");
    tick();
    OK(rename("f", "g"));
    EQ(time_cmp(stat_of("g").st_mtim, before.st_mtim), 0);
}

CASE(moves_ctime_of_the_file)
{
    struct stat before;

    make_file("f");
    before = stat_of("f");
    tick();
    OK(rename("f", "g"));
    THAT(time_cmp(stat_of("g").st_ctim, before.st_ctim) > 0);
}

CASE(that_fails_moves_no_time)
{
    make_dir("d");
    make_file("f");
    make_dir("e");
    MOVES("d", "", FAILS(ENOENT, rename("d/missing", "d/g")));
    MOVES("f", "", FAILS(EISDIR, rename("f", "e")));
}

CASE(over_a_file_takes_a_link_away_from_it)
{
    make_file("old");
    OK(link("old", "other"));
    make_file("new");
    MOVES("other", "c", OK(rename("new", "old")));
    NLINK_IS("other", 1);
    NLINK_IS("old", 1);
    THAT(stat_of("old").st_ino != stat_of("other").st_ino);
}

CASE(over_an_open_file_leaves_it_usable)
{
    int fd;

    make_file_with("old", "old text");
    fd = (int)OK(open("old", O_RDWR));
    make_file_with("new", "new");
    OK(rename("new", "old"));
    EQ(stat_fd(fd).st_nlink, 0);
    EQ(stat_fd(fd).st_size, 8);
    EQ(pwrite(fd, "X", 1, 8), 1);
    EQ(stat_fd(fd).st_size, 9);
    RANGE_IS(fd, 8, 9, 'X');
    TEXT_IS("old", "new");
}

CASE(of_an_open_file_leaves_it_usable)
{
    int fd;

    make_file("f");
    fd = (int)OK(open("f", O_RDWR));
    OK(rename("f", "g"));
    EQ(write(fd, "abc", 3), 3);
    EQ(stat_fd(fd).st_nlink, 1);
    TEXT_IS("g", "abc");
}

CASE(over_an_open_directory_leaves_it_empty)
{
    int dir;

    make_dir("old");
    dir = (int)OK(open("old", O_RDONLY | O_DIRECTORY));
    make_dir("new");
    make_file("new/f");
    OK(rename("new", "old"));
    EQ(stat_fd(dir).st_nlink, 0);
    FAILS(ENOENT, openat(dir, "g", O_CREAT | O_WRONLY, 0644));
    EXISTS("old/f");
}

CASE(counts_directories)
{
    make_dir("a");
    make_dir("b");
    make_dir("a/d");
    make_dir("b/d");
    NLINK_IS("a", 3);
    NLINK_IS("b", 3);
    OK(rename("a/d", "b/d"));
    NLINK_IS("a", 2);
    NLINK_IS("b", 3);
}

CASE(of_a_directory_below_itself_is_einval)
{
    make_dir("d");
    make_dir("d/e");
    make_dir("d/e/f");
    FAILS(EINVAL, rename("d", "d/g"));
    FAILS(EINVAL, rename("d", "d/e/f/g"));
    FAILS(EINVAL, rename("d", "d/e"));
    EXISTS("d/e/f");
}

CASE(over_an_ancestor_is_enotempty)
{
    make_dir("d");
    make_dir("d/e");
    make_dir("d/e/f");
    FAILS(ENOTEMPTY, rename("d/e/f", "d"));
    FAILS(ENOTEMPTY, rename("d/e/f", "d/e"));
}

CASE(of_dot_or_dotdot_is_refused)
{
    make_dir("d");
    FAILS(EBUSY, rename("d/.", "e"));
    FAILS(EBUSY, rename("d/..", "e"));
    FAILS(EBUSY, rename("d", "."));
    FAILS(EBUSY, rename("d", ".."));
}

CASE(to_a_missing_name_with_trailing_slash)
{
    make_file("f");
    make_dir("d");
    FAILS(ENOTDIR, rename("f", "g/"));
    OK(rename("d", "e/"));
    EXISTS("e");
}

CASE(between_names_of_255_bytes)
{
    char a[256], b[256];

    memcpy(a, name_of(255), sizeof(a));
    memcpy(b, name_of(255), sizeof(b));
    b[254] = 'Z';
    make_file_with(a, "long");
    OK(rename(a, b));
    TEXT_IS(b, "long");
    GONE(a);
}

CASE(changes_case_of_letters)
{
    make_file("name");
    OK(rename("name", "NAME"));
    GONE("name");
    EXISTS("NAME");
}

/* ---- Permissions ---- */

CASE(without_write_permission_on_either_directory_is_eacces)
{
    make_dir("closed");
    make_dir_mode("open", 0777);
    make_file("closed/f");
    make_file("open/g");
    AS (ALICE, STAFF) {
        FAILS(EACCES, rename("closed/f", "open/f"));
        FAILS(EACCES, rename("open/g", "closed/g"));
        OK(rename("open/g", "open/h"));
    }
    EXISTS("closed/f");
}

CASE(of_a_directory_to_another_parent_needs_write_permission_on_it)
{
    make_dir_mode("a", 0777);
    make_dir_mode("b", 0777);
    make_dir("a/d");
    AS (ALICE, STAFF) {
        FAILS(EACCES, rename("a/d", "b/d"));
        OK(rename("a/d", "a/e"));
    }
}

CASE(from_a_sticky_directory_only_for_owners)
{
    make_dir("s");
    OK(chown("s", BOB, STAFF));
    OK(chmod("s", 01777));
    make_dir_mode("o", 0777);
    make_file("s/f");
    OK(chown("s/f", ALICE, STAFF));
    AS (ALICE + 5, STAFF)
        FAILS(EPERM, rename("s/f", "o/f"));
    AS (ALICE, STAFF)
        OK(rename("s/f", "s/g"));
    AS (BOB, STAFF)
        OK(rename("s/g", "o/g"));
}

CASE(over_a_file_in_a_sticky_directory_only_for_owners)
{
    make_dir("s");
    OK(chown("s", BOB, STAFF));
    OK(chmod("s", 01777));
    make_dir_mode("o", 0777);
    make_file("s/f");
    OK(chown("s/f", ALICE, STAFF));
    AS (ALICE + 5, STAFF) {
        make_file("o/mine");
        FAILS(EPERM, rename("o/mine", "s/f"));
    }
    AS (ALICE, STAFF) {
        make_file("o/hers");
        OK(rename("o/hers", "s/f"));
    }
}

/* ---- Flags ---- */

static int rename_with(unsigned flags, const char *from, const char *to)
{
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, flags);
}

CASE(noreplace_to_a_free_name_works)
{
    NEEDS(FEATURE_RENAME_FLAGS);
    make_file_with("f", "abc");
    OK(rename_with(RENAME_NOREPLACE, "f", "g"));
    TEXT_IS("g", "abc");
    GONE("f");
}

CASE(noreplace_to_a_taken_name_is_eexist)
{
    NEEDS(FEATURE_RENAME_FLAGS);
    make_file_with("f", "F");
    make_file_with("g", "G");
    make_dir("d");
    OK(symlink("missing", "s"));
    FAILS(EEXIST, rename_with(RENAME_NOREPLACE, "f", "g"));
    FAILS(EEXIST, rename_with(RENAME_NOREPLACE, "f", "d"));
    FAILS(EEXIST, rename_with(RENAME_NOREPLACE, "f", "s"));
    FAILS(EEXIST, rename_with(RENAME_NOREPLACE, "f", "f"));
    TEXT_IS("f", "F");
    TEXT_IS("g", "G");
}

CASE(noreplace_of_a_missing_name_is_enoent)
{
    NEEDS(FEATURE_RENAME_FLAGS);
    FAILS(ENOENT, rename_with(RENAME_NOREPLACE, "missing", "g"));
}

CASE(noreplace_of_a_directory_works)
{
    NEEDS(FEATURE_RENAME_FLAGS);
    make_dir("d");
    make_file("d/f");
    make_dir("e");
    FAILS(EEXIST, rename_with(RENAME_NOREPLACE, "d", "e"));
    OK(rename_with(RENAME_NOREPLACE, "d", "e/d"));
    EXISTS("e/d/f");
}

CASE(exchange_of_two_files)
{
    ino_t a, b;

    NEEDS(FEATURE_RENAME_FLAGS);
    make_file_with("a", "A");
    make_file_with("b", "B");
    a = stat_of("a").st_ino;
    b = stat_of("b").st_ino;
    OK(rename_with(RENAME_EXCHANGE, "a", "b"));
    TEXT_IS("a", "B");
    TEXT_IS("b", "A");
    EQ(stat_of("a").st_ino, b);
    EQ(stat_of("b").st_ino, a);
}

CASE(exchange_of_file_and_directory_across_directories)
{
    NEEDS(FEATURE_RENAME_FLAGS);
    make_dir("p");
    make_dir("q");
    make_file_with("p/x", "file");
    make_dir("q/x");
    make_file("q/x/inside");
    OK(rename_with(RENAME_EXCHANGE, "p/x", "q/x"));
    EXISTS("p/x/inside");
    TEXT_IS("q/x", "file");
    NLINK_IS("p", 3);
    NLINK_IS("q", 2);
    EQ(stat_of("p/x/..").st_ino, stat_of("p").st_ino);
}

CASE(exchange_of_full_directories)
{
    NEEDS(FEATURE_RENAME_FLAGS);
    make_dir("a");
    make_dir("b");
    make_file("a/one");
    make_file("b/two");
    OK(rename_with(RENAME_EXCHANGE, "a", "b"));
    EXISTS("a/two");
    EXISTS("b/one");
}

CASE(exchange_with_a_missing_name_is_enoent)
{
    NEEDS(FEATURE_RENAME_FLAGS);
    make_file("f");
    FAILS(ENOENT, rename_with(RENAME_EXCHANGE, "f", "missing"));
    FAILS(ENOENT, rename_with(RENAME_EXCHANGE, "missing", "f"));
}

CASE(exchange_with_an_ancestor_is_einval)
{
    NEEDS(FEATURE_RENAME_FLAGS);
    make_dir("d");
    make_dir("d/e");
    FAILS(EINVAL, rename_with(RENAME_EXCHANGE, "d", "d/e"));
    FAILS(EINVAL, rename_with(RENAME_EXCHANGE, "d/e", "d"));
}

CASE(exchange_moves_ctime_of_both)
{
    struct stat a, b;

    NEEDS(FEATURE_RENAME_FLAGS);
    make_file("a");
    make_file("b");
    a = stat_of("a");
    b = stat_of("b");
    tick();
    OK(rename_with(RENAME_EXCHANGE, "a", "b"));
    THAT(time_cmp(stat_of("b").st_ctim, a.st_ctim) > 0);
    THAT(time_cmp(stat_of("a").st_ctim, b.st_ctim) > 0);
}

CASE(noreplace_with_exchange_is_einval)
{
    make_file("a");
    make_file("b");
    FAILS(EINVAL, rename_with(RENAME_NOREPLACE | RENAME_EXCHANGE, "a", "b"));
}

CASE(unknown_flag_is_einval)
{
    make_file("a");
    FAILS(EINVAL, rename_with(1U << 20, "a", "b"));
}

/* ---- Races ---- */

CASE(name_is_never_missing_while_it_is_replaced)
{
    enum { ROUNDS = 300 };
    struct steps s;

    make_file_with("name", "content");
    if (steps_fork(&s)) {
        for (int i = 0; i < ROUNDS; i++) {
            make_file_with("new", "content");
            OK(rename("new", "name"));
        }
        steps_tell(&s);
        steps_wait(&s);
        suite_leave();
    }
    for (int i = 0; i < ROUNDS; i++) {
        int fd = (int)OK(open("name", O_RDONLY));
        char text[8] = "";

        EQ(read(fd, text, 7), 7);
        STR_EQ(text, "content");
        OK(close(fd));
    }
    steps_wait(&s);
    steps_tell(&s);
    steps_end(&s);
}

CASE(lets_one_of_many_take_the_source)
{
    enum { PROCESSES = 5, ROUNDS = 40 };
    char won[PROCESSES * ROUNDS];
    ssize_t count = 0, r;
    int results[2];

    for (int round = 0; round < ROUNDS; round++) {
        char name[16];

        snprintf(name, sizeof(name), "f%d", round);
        make_file(name);
    }
    OK(pipe(results));
    for (int p = 0; p < PROCESSES; p++) {
        if (fork() != 0)
            continue;
        for (int round = 0; round < ROUNDS; round++) {
            char from[16], to[32];
            int moved;

            snprintf(from, sizeof(from), "f%d", round);
            snprintf(to, sizeof(to), "t%d.%d", round, p);
            moved = rename(from, to);
            THAT(moved == 0 || errno == ENOENT);
            if (moved == 0)
                EQ(write(results[1], "x", 1), 1);
        }
        _exit(0);
    }
    close(results[1]);
    while ((r = read(results[0], won, sizeof(won))) > 0)
        count += r;
    EQ(count, ROUNDS);
}

CASE(two_directories_moved_into_each_other_make_no_loop)
{
    enum { ROUNDS = 60 };

    for (int round = 0; round < ROUNDS; round++) {
        pid_t children[2];
        int moved = 0, status;

        make_dir("a");
        make_dir("b");
        for (int i = 0; i < 2; i++) {
            children[i] = fork();
            if (children[i] == 0)
                _exit(rename(i ? "a" : "b", i ? "b/a" : "a/b") == 0 ? 0 : errno);
        }
        for (int i = 0; i < 2; i++) {
            OK(waitpid(children[i], &status, 0));
            THAT(WIFEXITED(status));
            moved += WEXITSTATUS(status) == 0;
            THAT(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == ENOENT || WEXITSTATUS(status) == EINVAL);
        }
        EQ(moved, 1);
        if (access("a/b", F_OK) == 0) {
            OK(rmdir("a/b"));
            OK(rmdir("a"));
        } else {
            OK(rmdir("b/a"));
            OK(rmdir("b"));
        }
    }
}
