/* Every operation that takes a path, crossed with everything that can be wrong with a path. Each pair is a case of its
 * own, named "path/CONDITION:OPERATION". */
#define TOPIC "path"
#include "suite_internal.h"

#include <dirent.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>

const bool suite_needs_other = false;

/* An operation on a path whose other arguments are fine: -1 with errno, or anything else. */
struct path_op {
    const char *name;
    long (*call)(const char *path);
    enum { MAKES = 1, FOLLOWS = 2, NEEDS_XATTR = 4 } traits; /* makes the last name; follows a last symlink */
};

static long op_open_read(const char *path)
{
    return open(path, O_RDONLY);
}
static long op_open_write(const char *path)
{
    return open(path, O_WRONLY);
}
static long op_open_create(const char *path)
{
    return open(path, O_CREAT | O_RDWR, 0644);
}
static long op_open_exclusive(const char *path)
{
    return open(path, O_CREAT | O_EXCL | O_RDWR, 0644);
}
static long op_opendir(const char *path)
{
    return opendir(path) ? 0 : -1;
}
static long op_stat(const char *path)
{
    return stat(path, &(struct stat) { 0 });
}
static long op_lstat(const char *path)
{
    return lstat(path, &(struct stat) { 0 });
}
static long op_statvfs(const char *path)
{
    return statvfs(path, &(struct statvfs) { 0 });
}
static long op_access(const char *path)
{
    return access(path, F_OK);
}
static long op_chdir(const char *path)
{
    return chdir(path);
}
static long op_mkdir(const char *path)
{
    return mkdir(path, 0755);
}
static long op_rmdir(const char *path)
{
    return rmdir(path);
}
static long op_unlink(const char *path)
{
    return unlink(path);
}
static long op_mkfifo(const char *path)
{
    return mkfifo(path, 0644);
}
static long op_mknod(const char *path)
{
    return mknod(path, S_IFREG | 0644, 0);
}
static long op_symlink(const char *path)
{
    return symlink("text", path);
}
static long op_readlink(const char *path)
{
    return readlink(path, (char[8]) { 0 }, 8);
}
static long op_link_from(const char *path)
{
    return link(path, "op_link");
}
static long op_link_to(const char *path)
{
    return link("op_file", path);
}
static long op_rename_from(const char *path)
{
    return rename(path, "op_renamed");
}
static long op_rename_to(const char *path)
{
    return rename("op_file", path);
}
static long op_chmod(const char *path)
{
    return chmod(path, 0600);
}
static long op_chown(const char *path)
{
    return chown(path, (uid_t)-1, (gid_t)-1);
}
static long op_lchown(const char *path)
{
    return lchown(path, (uid_t)-1, (gid_t)-1);
}
static long op_utimens(const char *path)
{
    return utimensat(AT_FDCWD, path, NULL, 0);
}
static long op_lutimens(const char *path)
{
    return utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW);
}
static long op_truncate(const char *path)
{
    return truncate(path, 0);
}
static long op_getxattr(const char *path)
{
    return getxattr(path, "user.x", (char[8]) { 0 }, 8);
}
static long op_setxattr(const char *path)
{
    return setxattr(path, "user.x", "v", 1, 0);
}
static long op_listxattr(const char *path)
{
    return listxattr(path, (char[256]) { 0 }, 256);
}
static long op_removexattr(const char *path)
{
    return removexattr(path, "user.x");
}

static const struct path_op ops[] = {
    { "open_read", op_open_read, FOLLOWS },
    { "open_write", op_open_write, FOLLOWS },
    { "open_create", op_open_create, MAKES | FOLLOWS },
    { "open_exclusive", op_open_exclusive, MAKES },
    { "opendir", op_opendir, FOLLOWS },
    { "stat", op_stat, FOLLOWS },
    { "lstat", op_lstat, 0 },
    { "statvfs", op_statvfs, FOLLOWS },
    { "access", op_access, FOLLOWS },
    { "chdir", op_chdir, FOLLOWS },
    { "mkdir", op_mkdir, MAKES },
    { "rmdir", op_rmdir, 0 },
    { "unlink", op_unlink, 0 },
    { "mkfifo", op_mkfifo, MAKES },
    { "mknod", op_mknod, MAKES },
    { "symlink", op_symlink, MAKES },
    { "readlink", op_readlink, 0 },
    { "link_from", op_link_from, 0 },
    { "link_to", op_link_to, MAKES },
    { "rename_from", op_rename_from, 0 },
    { "rename_to", op_rename_to, MAKES },
    { "chmod", op_chmod, FOLLOWS },
    { "chown", op_chown, FOLLOWS },
    { "lchown", op_lchown, 0 },
    { "utimens", op_utimens, FOLLOWS },
    { "lutimens", op_lutimens, 0 },
    { "truncate", op_truncate, FOLLOWS },
    { "getxattr", op_getxattr, FOLLOWS | NEEDS_XATTR },
    { "setxattr", op_setxattr, FOLLOWS | NEEDS_XATTR },
    { "listxattr", op_listxattr, FOLLOWS | NEEDS_XATTR },
    { "removexattr", op_removexattr, FOLLOWS | NEEDS_XATTR },
};

/* The operation on the path must fail with err. The directory is writable to all, so that only the path is wrong. */
static void expect(const struct path_op *op, int err, const char *path)
{
    long result;
    int seen;

    if (op->traits & NEEDS_XATTR)
        NEEDS(FEATURE_USER_XATTR);
    make_file_mode("op_file", 0666);
    errno = 0;
    result = op->call(path);
    seen = errno;
    if (result != -1)
        suite_fail(HERE, "%s gave %ld, expected %s", op->name, result, strerrorname_np(err));
    if (seen != err)
        suite_fail(HERE, "%s gave %s, expected %s", op->name, strerrorname_np(seen), strerrorname_np(err));
}

static void missing_parent_is_enoent(const void *op)
{
    expect(op, ENOENT, "missing/name");
}

static void missing_name_is_enoent(const void *op)
{
    if (!(((const struct path_op *)op)->traits & MAKES))
        expect(op, ENOENT, "missing");
}

static void empty_path_is_enoent(const void *op)
{
    expect(op, ENOENT, "");
}

static void dangling_parent_is_enoent(const void *op)
{
    OK(symlink("nowhere", "dangling"));
    expect(op, ENOENT, "dangling/name");
}

static void file_as_parent_is_enotdir(const void *op)
{
    make_file("file");
    expect(op, ENOTDIR, "file/name");
}

static void fifo_as_parent_is_enotdir(const void *op)
{
    OK(mkfifo("fifo", 0666));
    expect(op, ENOTDIR, "fifo/name");
}

static void name_of_256_bytes_is_enametoolong(const void *op)
{
    expect(op, ENAMETOOLONG, name_of(256));
}

static void parent_of_256_bytes_is_enametoolong(const void *op)
{
    char path[300];

    snprintf(path, sizeof(path), "%s/name", name_of(256));
    expect(op, ENAMETOOLONG, path);
}

static void path_of_4096_bytes_is_enametoolong(const void *op)
{
    expect(op, ENAMETOOLONG, path_of(4096, "name"));
}

static void looping_parent_is_eloop(const void *op)
{
    OK(symlink("b", "a"));
    OK(symlink("a", "b"));
    expect(op, ELOOP, "a/name");
}

static void looping_name_is_eloop(const void *op)
{
    const struct path_op *o = op;

    if (!(o->traits & FOLLOWS))
        return;
    OK(symlink("b", "a"));
    OK(symlink("a", "b"));
    expect(op, ELOOP, "a");
}

static void unsearchable_parent_is_eacces(const void *op)
{
    make_dir_mode("closed", 0700);
    make_file_mode("closed/name", 0666);
    OK(chmod(".", 0777));
    AS (ALICE, STAFF)
        expect(op, EACCES, "closed/name");
}

static void unsearchable_parent_hides_that_a_name_is_missing(const void *op)
{
    make_dir_mode("closed", 0766);
    OK(chmod(".", 0777));
    AS (ALICE, STAFF)
        expect(op, EACCES, "closed/missing");
}

static const struct {
    const char *name;
    void (*run)(const void *op);
    int without, with; /* traits an operation must not, and must, have */
} conditions[] = {
    { "missing_parent_is_enoent", missing_parent_is_enoent, 0, 0 },
    { "missing_name_is_enoent", missing_name_is_enoent, MAKES, 0 },
    { "empty_path_is_enoent", empty_path_is_enoent, 0, 0 },
    { "dangling_parent_is_enoent", dangling_parent_is_enoent, 0, 0 },
    { "file_as_parent_is_enotdir", file_as_parent_is_enotdir, 0, 0 },
    { "fifo_as_parent_is_enotdir", fifo_as_parent_is_enotdir, 0, 0 },
    { "name_of_256_bytes_is_enametoolong", name_of_256_bytes_is_enametoolong, 0, 0 },
    { "parent_of_256_bytes_is_enametoolong", parent_of_256_bytes_is_enametoolong, 0, 0 },
    { "path_of_4096_bytes_is_enametoolong", path_of_4096_bytes_is_enametoolong, 0, 0 },
    { "looping_parent_is_eloop", looping_parent_is_eloop, 0, 0 },
    { "looping_name_is_eloop", looping_name_is_eloop, 0, FOLLOWS },
    { "unsearchable_parent_is_eacces", unsearchable_parent_is_eacces, 0, 0 },
    { "unsearchable_parent_hides_that_a_name_is_missing", unsearchable_parent_hides_that_a_name_is_missing, 0, 0 },
};

__attribute__((constructor)) static void add_all(void)
{
    for (size_t c = 0; c < sizeof(conditions) / sizeof(*conditions); c++)
        for (size_t o = 0; o < sizeof(ops) / sizeof(*ops); o++)
            if (!(ops[o].traits & conditions[c].without) && !(~ops[o].traits & conditions[c].with))
                suite_add_row(TOPIC, conditions[c].name, ops[o].name, conditions[c].run, &ops[o]);
}

/* ---- Paths that are fine ---- */

CASE(path_of_4095_bytes_works)
{
    make_file("name");
    OK(access(path_of(4095, "name"), F_OK));
}

CASE(forty_symlinks_in_a_row_work)
{
    char from[16], to[16];

    make_file_with("link0", "end");
    for (int i = 1; i <= 40; i++) {
        snprintf(from, sizeof(from), "link%d", i - 1);
        snprintf(to, sizeof(to), "link%d", i);
        OK(symlink(from, to));
    }
    TEXT_IS("link40", "end");
}

CASE(forty_one_symlinks_in_a_row_are_eloop)
{
    char from[16], to[16];

    make_file("link0");
    for (int i = 1; i <= 41; i++) {
        snprintf(from, sizeof(from), "link%d", i - 1);
        snprintf(to, sizeof(to), "link%d", i);
        OK(symlink(from, to));
    }
    FAILS(ELOOP, open("link41", O_RDONLY));
}

CASE(dot_and_dotdot_and_repeated_slashes_lead_through)
{
    make_dir("a");
    make_dir("a/b");
    make_file_with("a/b/f", "x");
    TEXT_IS("a/./b/../b//f", "x");
    TEXT_IS("./a///b/./f", "x");
}

CASE(trailing_slash_on_a_file_is_enotdir)
{
    make_file("f");
    FAILS(ENOTDIR, stat("f/", &(struct stat) { 0 }));
    FAILS(ENOTDIR, open("f/", O_RDONLY));
    FAILS(ENOTDIR, unlink("f/"));
    FAILS(ENOTDIR, rename("f/", "g"));
}

CASE(trailing_slash_on_a_directory_works)
{
    OK(mkdir("d/", 0755));
    OK(stat("d/", &(struct stat) { 0 }));
    OK(rename("d/", "e/"));
    OK(rmdir("e/"));
}

CASE(trailing_slash_follows_a_symlink)
{
    struct stat st;

    make_dir("d");
    OK(symlink("d", "s"));
    OK(lstat("s/", &st));
    THAT(S_ISDIR(st.st_mode));
    OK(lstat("s", &st));
    THAT(S_ISLNK(st.st_mode));
}

CASE(trailing_slash_on_a_new_name_makes_no_file)
{
    FAILS(EISDIR, open("f/", O_CREAT | O_WRONLY, 0644));
    FAILS(ENOENT, symlink("x", "f/"));
    FAILS(ENOENT, mknod("f/", S_IFREG | 0644, 0));
    GONE("f");
}

CASE(directory_with_search_but_no_read_permission_leads_through)
{
    make_dir_mode("d", 0711);
    make_file_mode("d/f", 0644);
    AS (ALICE, STAFF) {
        OK(open("d/f", O_RDONLY));
        FAILS(EACCES, open("d", O_RDONLY | O_DIRECTORY));
    }
}

CASE(directory_with_read_but_no_search_permission_only_lists)
{
    struct dirent *entry;
    bool seen = false;
    DIR *dir;

    make_dir_mode("d", 0744);
    make_file("d/f");
    AS (ALICE, STAFF) {
        dir = opendir("d");
        THAT(dir != NULL);
        while ((entry = readdir(dir)))
            seen |= strcmp(entry->d_name, "f") == 0;
        THAT(seen);
        FAILS(EACCES, stat("d/f", &(struct stat) { 0 }));
    }
}

CASE(directory_relative_calls_work_on_a_renamed_directory)
{
    int dir;

    make_dir("d");
    dir = (int)OK(open("d", O_RDONLY | O_DIRECTORY));
    OK(rename("d", "e"));
    OK(openat(dir, "f", O_CREAT | O_WRONLY, 0644));
    EXISTS("e/f");
    OK(unlinkat(dir, "f", 0));
    GONE("e/f");
}

CASE(directory_relative_call_on_a_file_is_enotdir)
{
    int fd;

    make_file("f");
    fd = (int)OK(open("f", O_RDONLY));
    FAILS(ENOTDIR, openat(fd, "g", O_CREAT | O_WRONLY, 0644));
}

CASE(directory_relative_call_in_a_removed_directory_is_enoent)
{
    int dir;

    make_dir("d");
    dir = (int)OK(open("d", O_RDONLY | O_DIRECTORY));
    OK(rmdir("d"));
    FAILS(ENOENT, openat(dir, "f", O_CREAT | O_WRONLY, 0644));
    FAILS(ENOENT, mkdirat(dir, "g", 0755));
    FAILS(ENOENT, symlinkat("x", dir, "h"));
}

CASE(deep_tree_beyond_the_length_of_a_path_works)
{
    enum { DEPTH = 40 };
    char name[201];
    int top = (int)OK(open(".", O_RDONLY | O_DIRECTORY));

    memcpy(name, name_of(200), sizeof(name));
    for (int i = 0; i < DEPTH; i++) {
        OK(mkdir(name, 0755));
        OK(chdir(name));
    }
    make_file_with("bottom", "deep");
    TEXT_IS("bottom", "deep");
    OK(unlink("bottom"));
    for (int i = 0; i < DEPTH; i++) {
        OK(chdir(".."));
        OK(rmdir(name));
    }
    EQ(stat_of(".").st_ino, stat_fd(top).st_ino);
}
