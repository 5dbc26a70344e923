/* Extended attributes: set, get, list, remove; flags, sizes, name spaces, permissions. */
#define TOPIC "xattr"
#include "suite.h"

#include <sys/xattr.h>

/* Every case begins with a file f. */
static void begin(void)
{
    NEEDS(FEATURE_USER_XATTR);
    make_file("f");
}

static void value_is(const char *path, const char *key, const char *want)
{
    char have[256];
    ssize_t size = OK(lgetxattr(path, key, have, sizeof(have) - 1));

    have[size] = 0;
    STR_EQ(have, want);
}

static int set(const char *key, const char *value, int flags)
{
    return setxattr("f", key, value, strlen(value), flags);
}

/* Whether the list of names holds key. */
static bool lists(const char *path, const char *key)
{
    static char names[65536];
    ssize_t size = OK(llistxattr(path, names, sizeof(names)));

    for (ssize_t at = 0; at < size; at += (ssize_t)strlen(names + at) + 1)
        if (strcmp(names + at, key) == 0)
            return true;
    return false;
}

CASE(value_is_kept)
{
    begin();
    OK(set("user.a", "value", 0));
    value_is("f", "user.a", "value");
    THAT(lists("f", "user.a"));
}

CASE(value_may_be_empty)
{
    begin();
    OK(set("user.empty", "", 0));
    EQ(getxattr("f", "user.empty", NULL, 0), 0);
    EQ(getxattr("f", "user.empty", (char[4]) { 0 }, 4), 0);
    THAT(lists("f", "user.empty"));
}

CASE(value_may_hold_any_bytes)
{
    uint8_t all[256], back[256];

    begin();
    for (int i = 0; i < 256; i++)
        all[i] = (uint8_t)i;
    OK(setxattr("f", "user.bytes", all, sizeof(all), 0));
    EQ(getxattr("f", "user.bytes", back, sizeof(back)), 256);
    BYTES_EQ(back, all, sizeof(all));
}

CASE(value_is_replaced)
{
    begin();
    OK(set("user.a", "a long first value", 0));
    OK(set("user.a", "short", 0));
    value_is("f", "user.a", "short");
    OK(set("user.a", "a much longer second value", 0));
    value_is("f", "user.a", "a much longer second value");
}

CASE(create_flag_makes_a_new_one)
{
    begin();
    OK(set("user.a", "1", XATTR_CREATE));
    value_is("f", "user.a", "1");
}

CASE(create_flag_on_an_existing_one_is_eexist)
{
    begin();
    OK(set("user.a", "1", 0));
    FAILS(EEXIST, set("user.a", "2", XATTR_CREATE));
    value_is("f", "user.a", "1");
}

CASE(replace_flag_replaces)
{
    begin();
    OK(set("user.a", "1", 0));
    OK(set("user.a", "2", XATTR_REPLACE));
    value_is("f", "user.a", "2");
}

CASE(replace_flag_on_a_missing_one_is_enodata)
{
    begin();
    FAILS(ENODATA, set("user.a", "1", XATTR_REPLACE));
    FAILS(ENODATA, getxattr("f", "user.a", NULL, 0));
}

CASE(both_flags_are_refused)
{
    begin();
    OK(set("user.a", "1", 0));
    THAT(set("user.a", "2", XATTR_CREATE | XATTR_REPLACE) == -1);
    value_is("f", "user.a", "1");
}

CASE(unknown_flag_is_einval)
{
    begin();
    FAILS(EINVAL, set("user.a", "1", 64));
}

CASE(missing_one_is_enodata)
{
    begin();
    FAILS(ENODATA, getxattr("f", "user.missing", (char[4]) { 0 }, 4));
    FAILS(ENODATA, removexattr("f", "user.missing"));
}

CASE(size_is_told_without_a_buffer)
{
    begin();
    OK(set("user.a", "12345", 0));
    EQ(getxattr("f", "user.a", NULL, 0), 5);
    EQ(listxattr("f", NULL, 0), listxattr("f", (char[1024]) { 0 }, 1024));
}

CASE(small_buffer_is_erange)
{
    begin();
    OK(set("user.a", "12345", 0));
    FAILS(ERANGE, getxattr("f", "user.a", (char[4]) { 0 }, 4));
    EQ(getxattr("f", "user.a", (char[5]) { 0 }, 5), 5);
    FAILS(ERANGE, listxattr("f", (char[2]) { 0 }, 2));
}

CASE(removed_one_is_gone)
{
    begin();
    OK(set("user.a", "1", 0));
    OK(set("user.b", "2", 0));
    OK(removexattr("f", "user.a"));
    FAILS(ENODATA, getxattr("f", "user.a", NULL, 0));
    THAT(!lists("f", "user.a"));
    value_is("f", "user.b", "2");
}

CASE(list_holds_every_name_once)
{
    static char names[65536];
    int counts[30] = { 0 };
    char key[32];
    ssize_t size;

    begin();
    for (int i = 0; i < 30; i++) {
        snprintf(key, sizeof(key), "user.key%d", i);
        OK(set(key, "v", 0));
    }
    size = OK(listxattr("f", names, sizeof(names)));
    for (ssize_t at = 0; at < size; at += (ssize_t)strlen(names + at) + 1) {
        int i;

        if (sscanf(names + at, "user.key%d", &i) == 1 && i >= 0 && i < 30)
            counts[i]++;
    }
    for (int i = 0; i < 30; i++)
        EQ(counts[i], 1);
}

CASE(list_of_a_fresh_file_shows_nothing_of_the_file_system)
{
    static char names[65536];
    ssize_t size;

    begin();
    size = OK(listxattr("f", names, sizeof(names)));
    for (ssize_t at = 0; at < size; at += (ssize_t)strlen(names + at) + 1)
        if (strncmp(names + at, "security.", 9) != 0 && strncmp(names + at, "system.", 7) != 0)
            suite_fail(HERE, "the list of a fresh file holds %s", names + at);
}

CASE(name_may_have_255_bytes)
{
    char key[256];

    begin();
    snprintf(key, sizeof(key), "user.%s", name_of(255 - 5));
    OK(set(key, "long", 0));
    value_is("f", key, "long");
    THAT(lists("f", key));
}

CASE(name_of_256_bytes_is_erange)
{
    char key[257];

    begin();
    snprintf(key, sizeof(key), "user.%s", name_of(256 - 5));
    FAILS(ERANGE, set(key, "long", 0));
}

CASE(empty_name_is_erange)
{
    begin();
    FAILS(ERANGE, set("", "v", 0));
}

CASE(name_without_a_name_space_is_eopnotsupp)
{
    begin();
    FAILS(EOPNOTSUPP, set("nospace", "v", 0));
    FAILS(EOPNOTSUPP, set("other.key", "v", 0));
}

CASE(names_differ_in_case)
{
    begin();
    OK(set("user.name", "lower", 0));
    OK(set("user.NAME", "upper", 0));
    value_is("f", "user.name", "lower");
    value_is("f", "user.NAME", "upper");
}

CASE(name_may_hold_any_bytes)
{
    begin();
    OK(set("user.\xff\x80 with space/and:slash", "odd", 0));
    value_is("f", "user.\xff\x80 with space/and:slash", "odd");
}

static const size_t value_sizes[] = { 1, 255, 256, 1000, 2000, 3000 };

static void value_of_size(const void *arg)
{
    static uint8_t value[4096], back[4096];
    size_t size = *(const size_t *)arg;

    begin();
    for (size_t i = 0; i < size; i++)
        value[i] = pattern_byte(i);
    OK(setxattr("f", "user.sized", value, size, 0));
    EQ(getxattr("f", "user.sized", back, sizeof(back)), size);
    BYTES_EQ(back, value, size);
}

__attribute__((constructor)) static void add_value_sizes(void)
{
    static char names[sizeof(value_sizes) / sizeof(*value_sizes)][16];

    for (size_t i = 0; i < sizeof(value_sizes) / sizeof(*value_sizes); i++) {
        snprintf(names[i], sizeof(names[i]), "%zu", value_sizes[i]);
        suite_add_row(TOPIC, "value_of_size", names[i], value_of_size, &value_sizes[i]);
    }
}

CASE(value_of_64_kib_is_kept)
{
    static uint8_t value[65536], back[65536];

    NEEDS(FEATURE_BIG_XATTR);
    begin();
    for (size_t i = 0; i < sizeof(value); i++)
        value[i] = pattern_byte(i);
    OK(setxattr("f", "user.big", value, sizeof(value), 0));
    EQ(getxattr("f", "user.big", back, sizeof(back)), 65536);
    BYTES_EQ(back, value, sizeof(value));
}

CASE(value_beyond_64_kib_is_e2big)
{
    static uint8_t value[65537];

    begin();
    FAILS(E2BIG, setxattr("f", "user.big", value, sizeof(value), 0));
}

CASE(value_too_big_for_the_file_system_keeps_the_old_one)
{
    static uint8_t value[65536];

    begin();
    OK(set("user.a", "old", 0));
    if (setxattr("f", "user.a", value, sizeof(value), 0) == 0)
        suite_skip("the file system takes values of 64 KiB");
    THAT(errno == ENOSPC || errno == E2BIG);
    value_is("f", "user.a", "old");
}

CASE(setting_moves_ctime_only)
{
    begin();
    MOVES("f", "c", OK(set("user.a", "1", 0)));
    MOVES("f", "c", OK(set("user.a", "2", 0)));
    MOVES("f", "c", OK(removexattr("f", "user.a")));
}

CASE(getting_moves_no_time)
{
    begin();
    OK(set("user.a", "1", 0));
    MOVES("f", "", OK(getxattr("f", "user.a", NULL, 0)));
    MOVES("f", "", OK(listxattr("f", NULL, 0)));
}

CASE(of_a_directory_are_kept)
{
    NEEDS(FEATURE_USER_XATTR);
    make_dir("d");
    OK(setxattr("d", "user.a", "dir", 3, 0));
    value_is("d", "user.a", "dir");
    OK(removexattr("d", "user.a"));
    FAILS(ENODATA, getxattr("d", "user.a", NULL, 0));
}

CASE(through_a_descriptor)
{
    int fd;

    begin();
    fd = (int)OK(open("f", O_RDONLY));
    OK(fsetxattr(fd, "user.a", "fd", 2, 0));
    EQ(fgetxattr(fd, "user.a", (char[4]) { 0 }, 4), 2);
    THAT(flistxattr(fd, NULL, 0) >= (ssize_t)sizeof("user.a"));
    value_is("f", "user.a", "fd");
    OK(fremovexattr(fd, "user.a"));
    FAILS(ENODATA, fgetxattr(fd, "user.a", NULL, 0));
}

CASE(follow_a_symlink)
{
    begin();
    OK(symlink("f", "s"));
    OK(setxattr("s", "user.a", "via", 3, 0));
    value_is("f", "user.a", "via");
}

CASE(of_a_symlink_in_the_user_space_are_eperm)
{
    NEEDS(FEATURE_USER_XATTR);
    OK(symlink("missing", "s"));
    FAILS(EPERM, lsetxattr("s", "user.a", "v", 1, 0));
}

CASE(of_a_fifo_in_the_user_space_are_eperm)
{
    NEEDS(FEATURE_USER_XATTR);
    OK(mkfifo("p", 0644));
    FAILS(EPERM, setxattr("p", "user.a", "v", 1, 0));
}

CASE(trusted_ones_are_kept_for_root)
{
    NEEDS(FEATURE_TRUSTED_XATTR);
    make_file("f");
    OK(set("trusted.suite", "root", 0));
    value_is("f", "trusted.suite", "root");
    THAT(lists("f", "trusted.suite"));
    OK(removexattr("f", "trusted.suite"));
    FAILS(ENODATA, getxattr("f", "trusted.suite", NULL, 0));
}

CASE(trusted_ones_of_a_symlink_and_a_fifo)
{
    NEEDS(FEATURE_TRUSTED_XATTR);
    OK(symlink("missing", "s"));
    OK(mkfifo("p", 0644));
    OK(lsetxattr("s", "trusted.suite", "link", 4, 0));
    OK(lsetxattr("p", "trusted.suite", "fifo", 4, 0));
    value_is("s", "trusted.suite", "link");
    value_is("p", "trusted.suite", "fifo");
}

CASE(trusted_ones_are_hidden_from_other_users)
{
    NEEDS(FEATURE_TRUSTED_XATTR);
    make_file_mode("f", 0666);
    OK(set("trusted.suite", "root", 0));
    AS (ALICE, STAFF) {
        FAILS(ENODATA, getxattr("f", "trusted.suite", NULL, 0));
        FAILS(EPERM, set("trusted.suite", "x", 0));
        FAILS(EPERM, removexattr("f", "trusted.suite"));
        THAT(!lists("f", "trusted.suite"));
    }
    value_is("f", "trusted.suite", "root");
}

CASE(writing_needs_write_permission)
{
    begin();
    OK(set("user.a", "1", 0));
    OK(chmod("f", 0644));
    AS (ALICE, STAFF) {
        FAILS(EACCES, set("user.a", "2", 0));
        FAILS(EACCES, removexattr("f", "user.a"));
        value_is("f", "user.a", "1");
    }
    OK(chmod("f", 0646));
    AS (ALICE, STAFF)
        OK(set("user.a", "2", 0));
    value_is("f", "user.a", "2");
}

CASE(reading_needs_read_permission)
{
    begin();
    OK(set("user.a", "1", 0));
    OK(chmod("f", 0620));
    AS (ALICE, STAFF)
        FAILS(EACCES, getxattr("f", "user.a", NULL, 0));
}

CASE(of_a_sticky_directory_only_for_the_owner)
{
    NEEDS(FEATURE_USER_XATTR);
    make_dir_mode("d", 01777);
    AS (ALICE, STAFF)
        FAILS(EPERM, setxattr("d", "user.a", "v", 1, 0));
    OK(chown("d", ALICE, STAFF));
    AS (ALICE, STAFF)
        OK(setxattr("d", "user.a", "v", 1, 0));
}

CASE(stay_through_rename_link_and_truncate)
{
    begin();
    OK(set("user.a", "kept", 0));
    OK(link("f", "g"));
    OK(rename("f", "h"));
    OK(truncate("h", 100));
    OK(chmod("h", 0600));
    value_is("g", "user.a", "kept");
    value_is("h", "user.a", "kept");
}

CASE(are_not_those_of_the_file_renamed_over)
{
    begin();
    OK(set("user.a", "f", 0));
    make_file("g");
    OK(setxattr("g", "user.b", "g", 1, 0));
    OK(rename("f", "g"));
    value_is("g", "user.a", "f");
    FAILS(ENODATA, getxattr("g", "user.b", NULL, 0));
}

CASE(are_gone_with_the_file)
{
    begin();
    OK(set("user.a", "1", 0));
    OK(unlink("f"));
    make_file("f");
    FAILS(ENODATA, getxattr("f", "user.a", NULL, 0));
}

CASE(many_changes_in_a_row)
{
    char value[32];

    begin();
    for (int i = 0; i < 100; i++) {
        snprintf(value, sizeof(value), "value %d", i);
        OK(set(i % 2 ? "user.odd" : "user.even", value, 0));
        value_is("f", i % 2 ? "user.odd" : "user.even", value);
    }
    for (int i = 0; i < 20; i++) {
        OK(set("user.x", "1", XATTR_CREATE));
        OK(removexattr("f", "user.x"));
    }
    THAT(!lists("f", "user.x"));
}

CASE(create_flag_lets_one_of_many_win)
{
    enum { PROCESSES = 5, ROUNDS = 30 };
    char won[PROCESSES * ROUNDS];
    ssize_t count = 0, r;
    int results[2];

    NEEDS(FEATURE_USER_XATTR);
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
            char name[16];
            int made;

            snprintf(name, sizeof(name), "f%d", round);
            made = setxattr(name, "user.winner", "x", 1, XATTR_CREATE);
            THAT(made == 0 || errno == EEXIST);
            if (made == 0)
                EQ(write(results[1], "x", 1), 1);
        }
        _exit(0);
    }
    close(results[1]);
    while ((r = read(results[0], won, sizeof(won))) > 0)
        count += r;
    EQ(count, ROUNDS);
}

CASE(capabilities_are_cleared_by_a_write)
{
    /* version 2 of the kernel's format, CAP_NET_RAW permitted */
    static const uint8_t caps[20] = { 0, 0, 0, 2, 0, 0x20 };
    int fd;

    make_file_mode("f", 0755);
    if (setxattr("f", "security.capability", caps, sizeof(caps), 0) < 0)
        suite_skip("no security.capability here: %s", strerror(errno));
    EQ(getxattr("f", "security.capability", (char[64]) { 0 }, 64), 20);
    fd = (int)OK(open("f", O_WRONLY));
    EQ(write(fd, "x", 1), 1);
    FAILS(ENODATA, getxattr("f", "security.capability", (char[64]) { 0 }, 64));
}
