/* Directory listings, names, and large directories. */
#define TOPIC "readdir"
#include "suite.h"

#include <dirent.h>
#include <sys/syscall.h>

enum { BIG = 5000 };

static DIR *open_dir(const char *path)
{
    DIR *dir = opendir(path);

    THAT(dir != NULL);
    return dir;
}

/* Counts in seen[i] how often the name "N" with N = i is listed, and returns how many other names there are. */
static int list(DIR *dir, int *seen, int max)
{
    struct dirent *entry;
    int others = 0;

    errno = 0;
    while ((entry = readdir(dir))) {
        char *end;
        long i = strtol(entry->d_name, &end, 10);

        if (*end == 0 && i >= 0 && i < max)
            seen[i]++;
        else
            others++;
        errno = 0;
    }
    EQ(errno, 0);
    return others;
}

static const char *numbered(const char *dir, int i)
{
    static char name[64];

    snprintf(name, sizeof(name), "%s/%d", dir, i);
    return name;
}

static void make_numbered(const char *dir, int count)
{
    make_dir(dir);
    for (int i = 0; i < count; i++)
        OK(close((int)OK(open(numbered(dir, i), O_CREAT | O_EXCL | O_WRONLY, 0644))));
}

CASE(empty_directory_holds_dot_and_dotdot)
{
    bool dot = false, dotdot = false;
    struct dirent *entry;
    DIR *dir;

    make_dir("d");
    dir = open_dir("d");
    while ((entry = readdir(dir))) {
        if (strcmp(entry->d_name, ".") == 0) {
            EQ(entry->d_ino, stat_of("d").st_ino);
            dot = true;
        } else if (strcmp(entry->d_name, "..") == 0) {
            dotdot = true;
        } else {
            suite_fail(HERE, "the empty directory lists %s", entry->d_name);
        }
    }
    THAT(dot);
    THAT(dotdot);
}

CASE(every_name_is_listed_once)
{
    int seen[500] = { 0 };

    make_numbered("d", 500);
    EQ(list(open_dir("d"), seen, 500), 2);
    for (int i = 0; i < 500; i++)
        EQ(seen[i], 1);
}

CASE(types_and_inode_numbers_are_those_of_stat)
{
    struct dirent *entry;
    int count = 0;
    DIR *dir;

    make_dir("d");
    make_file("d/file");
    make_dir("d/dir");
    OK(symlink("x", "d/link"));
    OK(mkfifo("d/fifo", 0644));
    OK(mknod("d/socket", S_IFSOCK | 0644, 0));
    dir = open_dir("d");
    while ((entry = readdir(dir))) {
        char path[300];
        struct stat st;

        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "d/%s", entry->d_name);
        st = stat_of(path);
        EQ(entry->d_ino, st.st_ino);
        if (entry->d_type != DT_UNKNOWN)
            EQ(entry->d_type, IFTODT(st.st_mode));
        count++;
    }
    EQ(count, 5);
}

CASE(new_name_is_listed_after_rewind)
{
    int seen[11] = { 0 };
    DIR *dir;

    make_numbered("d", 10);
    dir = open_dir("d");
    list(dir, seen, 11);
    make_file("d/10");
    rewinddir(dir);
    list(dir, seen, 11);
    for (int i = 0; i < 10; i++)
        EQ(seen[i], 2);
    EQ(seen[10], 1);
}

CASE(removed_name_is_not_listed_after_rewind)
{
    int seen[10] = { 0 };
    DIR *dir;

    make_numbered("d", 10);
    dir = open_dir("d");
    list(dir, seen, 10);
    OK(unlink("d/3"));
    rewinddir(dir);
    list(dir, seen, 10);
    EQ(seen[3], 1);
    EQ(seen[4], 2);
}

CASE(listing_follows_create_unlink_and_rename_at_once)
{
    for (int i = 0; i < 30; i++) {
        int seen[30] = { 0 };

        make_file(i == 0 ? "a" : "b");
        if (i == 0) {
            OK(mkdir("d", 0755));
            OK(rename("a", "d/0"));
        } else {
            OK(rename("b", numbered("d", i)));
        }
        EQ(list(open_dir("d"), seen, 30), 2);
        for (int k = 0; k < 30; k++)
            EQ(seen[k], k <= i);
    }
}

CASE(places_can_be_returned_to)
{
    enum { COUNT = 300 };
    static struct {
        long place;
        char name[64];
    } entries[COUNT + 2];
    struct dirent *entry;
    int count = 0;
    DIR *dir;

    NEEDS(FEATURE_DIR_SEEK);
    make_numbered("d", COUNT);
    dir = open_dir("d");
    for (;;) {
        long place = telldir(dir);

        entry = readdir(dir);
        if (!entry)
            break;
        THAT(count < COUNT + 2);
        entries[count].place = place;
        snprintf(entries[count].name, sizeof(entries[count].name), "%.60s", entry->d_name);
        count++;
    }
    EQ(count, COUNT + 2);
    for (int i = 0; i < count; i++) {
        int k = (int)((unsigned)i * 7919U % (unsigned)count);

        seekdir(dir, entries[k].place);
        entry = readdir(dir);
        THAT(entry != NULL);
        STR_EQ(entry->d_name, entries[k].name);
    }
}

CASE(place_is_still_good_after_removals)
{
    enum { COUNT = 300 };
    int seen[COUNT] = { 0 }, first = 0;
    struct dirent *entry;
    long place;
    DIR *dir;

    NEEDS(FEATURE_DIR_SEEK);
    make_numbered("d", COUNT);
    dir = open_dir("d");
    for (int i = 0; i < COUNT / 2; i++) {
        entry = readdir(dir);
        THAT(entry != NULL);
        if (entry->d_name[0] == '.')
            continue;
        seen[atoi(entry->d_name)]++;
        first++;
    }
    place = telldir(dir);
    for (int i = 0; i < COUNT; i++)
        if (seen[i])
            OK(unlink(numbered("d", i)));
    seekdir(dir, place);
    list(dir, seen, COUNT);
    for (int i = 0; i < COUNT; i++)
        EQ(seen[i], 1);
    THAT(first > 0);
}

CASE(two_readers_do_not_disturb_each_other)
{
    int a[200] = { 0 }, b[200] = { 0 };
    DIR *first, *second;

    make_numbered("d", 200);
    first = open_dir("d");
    second = open_dir("d");
    for (int i = 0; i < 100; i++) {
        struct dirent *entry = readdir(first);

        THAT(entry != NULL);
        if (entry->d_name[0] != '.')
            a[atoi(entry->d_name)]++;
    }
    list(second, b, 200);
    list(first, a, 200);
    for (int i = 0; i < 200; i++) {
        EQ(a[i], 1);
        EQ(b[i], 1);
    }
}

CASE(duplicated_descriptor_shares_the_place)
{
    int seen[100] = { 0 }, fd, copy;

    make_numbered("d", 100);
    fd = (int)OK(open("d", O_RDONLY | O_DIRECTORY));
    copy = (int)OK(dup(fd));
    list(fdopendir(fd), seen, 100);
    list(fdopendir(copy), seen, 100);
    for (int i = 0; i < 100; i++)
        EQ(seen[i], 1);
}

CASE(small_buffers_list_everything)
{
    int seen[200] = { 0 }, fd;
    char buffer[300];
    long size;

    make_numbered("d", 200);
    fd = (int)OK(open("d", O_RDONLY | O_DIRECTORY));
    while ((size = OK(syscall(SYS_getdents64, fd, buffer, sizeof(buffer)))) > 0)
        for (long at = 0; at < size;) {
            struct dirent64 *entry = (struct dirent64 *)(buffer + at);

            if (entry->d_name[0] != '.')
                seen[atoi(entry->d_name)]++;
            at += entry->d_reclen;
        }
    for (int i = 0; i < 200; i++)
        EQ(seen[i], 1);
}

CASE(buffer_too_small_for_one_name_is_einval)
{
    char buffer[16];

    make_dir("d");
    FAILS(EINVAL, syscall(SYS_getdents64, (int)OK(open("d", O_RDONLY)), buffer, sizeof(buffer)));
}

CASE(listing_a_file_is_enotdir)
{
    make_file("f");
    THAT(opendir("f") == NULL);
    EQ(errno, ENOTDIR);
    FAILS(ENOTDIR, syscall(SYS_getdents64, (int)OK(open("f", O_RDONLY)), (char[256]) { 0 }, 256));
}

CASE(listing_moves_the_access_time_only)
{
    int seen[10] = { 0 };

    make_numbered("d", 10);
    MOVES("d", "", list(open_dir("d"), seen, 10));
}

CASE(listing_a_removed_directory_gives_nothing)
{
    int seen[1] = { 0 };
    DIR *dir;

    make_dir("d");
    dir = open_dir("d");
    OK(rmdir("d"));
    THAT(list(dir, seen, 1) <= 2);
}

/* ---- Large directories ---- */

CASE(big_directory_lists_every_name_once)
{
    static int seen[BIG];

    make_numbered("d", BIG);
    EQ(list(open_dir("d"), seen, BIG), 2);
    for (int i = 0; i < BIG; i++)
        EQ(seen[i], 1);
    NLINK_IS("d", 2);
}

CASE(big_directory_can_be_emptied_while_it_is_read)
{
    struct dirent *entry;
    int removed = 0;
    DIR *dir;

    make_numbered("d", BIG);
    dir = open_dir("d");
    while ((entry = readdir(dir))) {
        if (entry->d_name[0] == '.')
            continue;
        OK(unlinkat(dirfd(dir), entry->d_name, 0));
        removed++;
    }
    EQ(removed, BIG);
    OK(rmdir("d"));
}

CASE(big_directory_keeps_old_names_while_others_come_and_go)
{
    static int seen[BIG];
    int i = 0;
    struct dirent *entry;
    DIR *dir;

    make_numbered("d", BIG / 5);
    dir = open_dir("d");
    while ((entry = readdir(dir))) {
        char path[64];

        if (entry->d_name[0] != '.' && entry->d_name[0] != 't')
            seen[atoi(entry->d_name)]++;
        snprintf(path, sizeof(path), "d/t%d", i);
        if (i++ % 2 == 0 && i < 1000)
            make_file(path);
    }
    for (int k = 0; k < BIG / 5; k++)
        EQ(seen[k], 1);
}

CASE(big_directory_of_directories_counts_links)
{
    make_dir("d");
    for (int i = 0; i < 300; i++)
        OK(mkdir(numbered("d", i), 0755));
    NLINK_IS("d", 302);
    for (int i = 0; i < 300; i += 2)
        OK(rmdir(numbered("d", i)));
    NLINK_IS("d", 152);
}

CASE(big_directory_can_be_seeked_in)
{
    static long places[BIG + 2];
    static int seen[BIG];
    struct dirent *entry;
    int count = 0;
    DIR *dir;

    NEEDS(FEATURE_DIR_SEEK);
    make_numbered("d", BIG);
    dir = open_dir("d");
    do {
        THAT(count < BIG + 2);
        places[count++] = telldir(dir);
        entry = readdir(dir);
    } while (entry && count < BIG + 2);
    seekdir(dir, places[BIG / 2]);
    list(dir, seen, BIG);
    count = 0;
    for (int i = 0; i < BIG; i++) {
        THAT(seen[i] <= 1);
        count += seen[i];
    }
    THAT(count >= BIG / 2 && count <= BIG / 2 + 2);
}

/* ---- Names ---- */

static void name_works(const char *name)
{
    char other[256];
    bool seen = false;
    struct dirent *entry;
    DIR *dir;

    make_dir("d");
    OK(chdir("d"));
    make_file_with(name, "by name");
    TEXT_IS(name, "by name");
    dir = open_dir(".");
    while ((entry = readdir(dir)))
        seen |= strcmp(entry->d_name, name) == 0;
    THAT(seen);
    FAILS(EEXIST, mkdir(name, 0755));
    snprintf(other, sizeof(other), "other");
    OK(rename(name, other));
    GONE(name);
    OK(link(other, name));
    OK(unlink(other));
    TEXT_IS(name, "by name");
    OK(unlink(name));
    OK(mkdir(name, 0755));
    OK(rmdir(name));
    OK(symlink(name, name));
    OK(unlink(name));
}

CASE(name_of_255_bytes)
{
    char name[256];

    memcpy(name, name_of(255), sizeof(name));
    name_works(name);
}

CASE(name_of_255_bytes_of_utf8)
{
    char name[256];

    for (int i = 0; i < 255; i += 3)
        memcpy(name + i, "\xe2\x82\xac", 3);
    name[255] = 0;
    name_works(name);
}

CASE(name_of_every_byte)
{
    char name[256];
    int at = 0;

    for (int c = 1; c < 256; c++)
        if (c != '/')
            name[at++] = (char)c;
    name[at] = 0;
    name_works(name);
}

CASE(name_that_is_no_utf8)
{
    name_works("\xff\xfe\x80\xc0\xaf");
}

CASE(name_of_newline_and_quotes)
{
    name_works("a\nb\"c'd`e$f\\g*h?i[j]");
}

CASE(name_of_one_space)
{
    name_works(" ");
}

CASE(name_of_three_dots)
{
    name_works("...");
}

CASE(name_that_begins_with_a_dash)
{
    name_works("-rf");
}

CASE(name_that_looks_like_a_number)
{
    name_works("00000000-0000-0000-0000-000000000001");
}

CASE(name_that_ends_in_dots_and_spaces)
{
    name_works("name. . ");
}

CASE(name_of_a_fuse_hidden_file)
{
    name_works(".fuse_hidden0000000100000001");
}

CASE(names_that_differ_in_case)
{
    make_file_with("name", "lower");
    make_file_with("NAME", "upper");
    TEXT_IS("name", "lower");
    TEXT_IS("NAME", "upper");
}

CASE(names_that_differ_in_unicode_form)
{
    make_file_with("\xc3\xa9", "composed");
    make_file_with("e\xcc\x81", "decomposed");
    TEXT_IS("\xc3\xa9", "composed");
    TEXT_IS("e\xcc\x81", "decomposed");
}

CASE(names_of_every_length)
{
    static int seen[256];
    struct dirent *entry;
    DIR *dir;

    make_dir("d");
    OK(chdir("d"));
    for (size_t i = 1; i <= 255; i++)
        make_file(name_of(i));
    dir = open_dir(".");
    while ((entry = readdir(dir)))
        if (entry->d_name[0] != '.')
            seen[strlen(entry->d_name)]++;
    for (int i = 1; i <= 255; i++)
        EQ(seen[i], 1);
}
