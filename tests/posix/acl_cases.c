/* POSIX access control lists, in the kernel's form: what they grant, how they tie in with the mode, and how a default
 * list is inherited. The bytes are a version word, then per entry tag, permissions (16 bits each) and id (32 bits), all
 * little endian. */
#define TOPIC "acl"
#include "suite.h"

#include <sys/xattr.h>

#define ACCESS  "system.posix_acl_access"
#define DEFAULT "system.posix_acl_default"

enum { USER_OBJ = 1, USER = 2, GROUP_OBJ = 4, GROUP = 8, MASK = 16, OTHER = 32, ENTRIES_MAX = 40 };

struct entry {
    unsigned tag, perm, id;
};

struct list {
    size_t count;
    struct entry entries[ENTRIES_MAX];
};

#define LIST(...) ((struct list) { sizeof((struct entry[]) { __VA_ARGS__ }) / sizeof(struct entry), { __VA_ARGS__ } })

static size_t encode(const struct list *list, uint8_t *bytes)
{
    static const uint8_t version[4] = { 2 };
    uint8_t *p = bytes;

    p = mempcpy(p, version, sizeof(version));
    for (size_t i = 0; i < list->count; i++) {
        const struct entry *e = &list->entries[i];
        unsigned id = e->tag == USER || e->tag == GROUP ? e->id : 0xffffffff;

        *p++ = (uint8_t)e->tag;
        *p++ = 0;
        *p++ = (uint8_t)e->perm;
        *p++ = 0;
        for (int shift = 0; shift < 32; shift += 8)
            *p++ = (uint8_t)(id >> shift);
    }
    return (size_t)(p - bytes);
}

static int set(const char *path, const char *key, struct list list)
{
    uint8_t bytes[4 + 8 * ENTRIES_MAX];

    return setxattr(path, key, bytes, encode(&list, bytes), 0);
}

static void is(const char *path, const char *key, struct list want)
{
    uint8_t have[4 + 8 * ENTRIES_MAX], bytes[4 + 8 * ENTRIES_MAX];
    size_t size = encode(&want, bytes);

    EQ(getxattr(path, key, have, sizeof(have)), size);
    BYTES_EQ(have, bytes, size);
}

/* A file f of root with rw- for Alice (or what the mask leaves of it). */
static void file_for_alice(unsigned mask)
{
    NEEDS(FEATURE_ACL);
    make_file_mode("f", 0600);
    OK(set("f", ACCESS,
           LIST({ USER_OBJ, 6, 0 }, { USER, 6, ALICE }, { GROUP_OBJ, 0, 0 }, { MASK, mask, 0 }, { OTHER, 0, 0 })));
}

static bool may(const char *path, int flags)
{
    int fd = open(path, flags);

    THAT(fd >= 0 || errno == EACCES);
    close(fd);
    return fd >= 0;
}

CASE(list_is_kept)
{
    file_for_alice(6);
    is("f", ACCESS, LIST({ USER_OBJ, 6, 0 }, { USER, 6, ALICE }, { GROUP_OBJ, 0, 0 }, { MASK, 6, 0 }, { OTHER, 0, 0 }));
}

CASE(list_is_named_by_listxattr)
{
    static char names[4096];
    bool seen = false;
    ssize_t size;

    file_for_alice(6);
    size = OK(listxattr("f", names, sizeof(names)));
    for (ssize_t at = 0; at < size; at += (ssize_t)strlen(names + at) + 1)
        seen |= strcmp(names + at, ACCESS) == 0;
    THAT(seen);
}

CASE(named_user_gets_access)
{
    file_for_alice(6);
    AS (ALICE, STAFF) {
        THAT(may("f", O_RDWR));
        OK(access("f", R_OK | W_OK));
    }
    AS (BOB, STAFF)
        THAT(!may("f", O_RDONLY));
}

CASE(mask_limits_the_named_user)
{
    file_for_alice(4);
    AS (ALICE, STAFF) {
        THAT(may("f", O_RDONLY));
        THAT(!may("f", O_WRONLY));
    }
}

CASE(named_user_may_get_less_than_others)
{
    NEEDS(FEATURE_ACL);
    make_file_mode("f", 0644);
    OK(set("f", ACCESS,
           LIST({ USER_OBJ, 6, 0 }, { USER, 0, ALICE }, { GROUP_OBJ, 4, 0 }, { MASK, 4, 0 }, { OTHER, 4, 0 })));
    AS (ALICE, STAFF)
        THAT(!may("f", O_RDONLY));
    AS (BOB, STAFF)
        THAT(may("f", O_RDONLY));
}

CASE(named_group_gets_access)
{
    NEEDS(FEATURE_ACL);
    make_file_mode("f", 0600);
    OK(set("f", ACCESS,
           LIST({ USER_OBJ, 6, 0 }, { GROUP_OBJ, 0, 0 }, { GROUP, 4, STAFF }, { MASK, 4, 0 }, { OTHER, 0, 0 })));
    AS (ALICE, STAFF) {
        THAT(may("f", O_RDONLY));
        THAT(!may("f", O_WRONLY));
    }
    AS_GROUPS (BOB, GUESTS, 1, ((gid_t[]) { STAFF }))
        THAT(may("f", O_RDONLY));
    AS (BOB, GUESTS)
        THAT(!may("f", O_RDONLY));
}

CASE(any_of_several_groups_is_enough)
{
    NEEDS(FEATURE_ACL);
    make_file_mode("f", 0600);
    OK(set("f", ACCESS,
           LIST({ USER_OBJ, 6, 0 }, { GROUP_OBJ, 0, 0 }, { GROUP, 0, STAFF }, { GROUP, 6, GUESTS }, { MASK, 6, 0 },
                { OTHER, 0, 0 })));
    AS_GROUPS (ALICE, STAFF, 1, ((gid_t[]) { GUESTS }))
        THAT(may("f", O_RDWR));
    AS (ALICE, STAFF)
        THAT(!may("f", O_RDONLY));
}

CASE(owner_is_not_limited_by_the_mask)
{
    NEEDS(FEATURE_ACL);
    make_file_mode("f", 0600);
    OK(chown("f", BOB, STAFF));
    OK(set("f", ACCESS,
           LIST({ USER_OBJ, 6, 0 }, { USER, 6, ALICE }, { GROUP_OBJ, 0, 0 }, { MASK, 0, 0 }, { OTHER, 0, 0 })));
    AS (BOB, STAFF)
        THAT(may("f", O_RDWR));
    AS (ALICE, STAFF)
        THAT(!may("f", O_RDONLY));
}

CASE(group_bits_of_the_mode_show_the_mask)
{
    file_for_alice(6);
    MODE_IS("f", 0660);
}

CASE(chmod_changes_the_mask)
{
    file_for_alice(6);
    OK(chmod("f", 0640));
    is("f", ACCESS, LIST({ USER_OBJ, 6, 0 }, { USER, 6, ALICE }, { GROUP_OBJ, 0, 0 }, { MASK, 4, 0 }, { OTHER, 0, 0 }));
    AS (ALICE, STAFF)
        THAT(!may("f", O_WRONLY));
    OK(chmod("f", 0600));
    is("f", ACCESS, LIST({ USER_OBJ, 6, 0 }, { USER, 6, ALICE }, { GROUP_OBJ, 0, 0 }, { MASK, 0, 0 }, { OTHER, 0, 0 }));
    AS (ALICE, STAFF)
        THAT(!may("f", O_RDONLY));
}

CASE(list_of_three_entries_is_only_a_mode)
{
    NEEDS(FEATURE_ACL);
    make_file_mode("f", 0600);
    OK(set("f", ACCESS, LIST({ USER_OBJ, 7, 0 }, { GROUP_OBJ, 5, 0 }, { OTHER, 1, 0 })));
    MODE_IS("f", 0751);
    FAILS(ENODATA, getxattr("f", ACCESS, (char[64]) { 0 }, 64));
}

CASE(list_that_is_removed_grants_nothing)
{
    file_for_alice(6);
    OK(removexattr("f", ACCESS));
    FAILS(ENODATA, getxattr("f", ACCESS, (char[64]) { 0 }, 64));
    AS (ALICE, STAFF)
        THAT(!may("f", O_RDONLY));
}

CASE(list_moves_ctime)
{
    NEEDS(FEATURE_ACL);
    make_file("f");
    MOVES("f", "c",
          OK(set("f", ACCESS,
                 LIST({ USER_OBJ, 6, 0 }, { USER, 6, ALICE }, { GROUP_OBJ, 4, 0 }, { MASK, 6, 0 }, { OTHER, 4, 0 }))));
}

CASE(list_by_another_user_is_eperm)
{
    NEEDS(FEATURE_ACL);
    make_file_mode("f", 0666);
    AS (ALICE, STAFF) {
        FAILS(EPERM,
              set("f", ACCESS,
                  LIST({ USER_OBJ, 6, 0 }, { USER, 6, ALICE }, { GROUP_OBJ, 4, 0 }, { MASK, 6, 0 }, { OTHER, 4, 0 })));
        FAILS(EPERM, removexattr("f", ACCESS));
    }
    MODE_IS("f", 0666);
}

CASE(list_by_the_owner_works)
{
    NEEDS(FEATURE_ACL);
    make_file_mode("f", 0600);
    OK(chown("f", ALICE, STAFF));
    AS (ALICE, STAFF)
        OK(set("f", ACCESS,
               LIST({ USER_OBJ, 6, 0 }, { USER, 4, BOB }, { GROUP_OBJ, 0, 0 }, { MASK, 4, 0 }, { OTHER, 0, 0 })));
    AS (BOB, GUESTS)
        THAT(may("f", O_RDONLY));
}

CASE(malformed_lists_are_einval)
{
    NEEDS(FEATURE_ACL);
    make_file("f");
    FAILS(EINVAL, set("f", ACCESS, LIST({ USER_OBJ, 6, 0 }, { GROUP_OBJ, 4, 0 })));
    FAILS(EINVAL, set("f", ACCESS, LIST({ USER_OBJ, 6, 0 }, { USER, 6, ALICE }, { GROUP_OBJ, 4, 0 }, { OTHER, 4, 0 })));
    FAILS(EINVAL, set("f", ACCESS, LIST({ USER_OBJ, 6, 0 }, { GROUP_OBJ, 4, 0 }, { OTHER, 4, 0 }, { OTHER, 4, 0 })));
    FAILS(EINVAL, setxattr("f", ACCESS, "\2\0\0\0x", 5, 0));
    MODE_IS("f", 0644);
}

CASE(long_list_is_kept)
{
    struct list list = LIST({ USER_OBJ, 6, 0 });

    NEEDS(FEATURE_ACL);
    make_file("f");
    for (unsigned i = 0; i < 30; i++)
        list.entries[list.count++] = (struct entry) { USER, 4, 50000 + i };
    list.entries[list.count++] = (struct entry) { GROUP_OBJ, 0, 0 };
    list.entries[list.count++] = (struct entry) { MASK, 4, 0 };
    list.entries[list.count++] = (struct entry) { OTHER, 0, 0 };
    OK(set("f", ACCESS, list));
    is("f", ACCESS, list);
    AS (50029, STAFF)
        THAT(may("f", O_RDONLY));
    AS (50030, STAFF)
        THAT(!may("f", O_RDONLY));
}

CASE(list_stays_through_rename_and_link)
{
    file_for_alice(6);
    OK(link("f", "g"));
    OK(rename("f", "h"));
    AS (ALICE, STAFF) {
        THAT(may("g", O_RDWR));
        THAT(may("h", O_RDWR));
    }
}

CASE(list_on_a_directory_lets_through_and_write)
{
    NEEDS(FEATURE_ACL);
    make_dir_mode("d", 0700);
    make_file("d/f");
    OK(set("d", ACCESS,
           LIST({ USER_OBJ, 7, 0 }, { USER, 7, ALICE }, { GROUP_OBJ, 0, 0 }, { MASK, 7, 0 }, { OTHER, 0, 0 })));
    AS (ALICE, STAFF) {
        OK(open("d/new", O_CREAT | O_EXCL | O_WRONLY, 0600));
        OK(unlink("d/f"));
        OK(mkdir("d/dir", 0755));
    }
    AS (BOB, STAFF)
        FAILS(EACCES, stat("d/new", &(struct stat) { 0 }));
}

/* ---- Default lists ---- */

static void dir_with_default(void)
{
    NEEDS(FEATURE_ACL);
    make_dir_mode("d", 0777);
    OK(set("d", DEFAULT,
           LIST({ USER_OBJ, 7, 0 }, { USER, 6, ALICE }, { GROUP_OBJ, 5, 0 }, { MASK, 7, 0 }, { OTHER, 0, 0 })));
}

CASE(default_list_is_kept_and_grants_nothing_on_the_directory)
{
    NEEDS(FEATURE_ACL);
    make_dir_mode("d", 0700);
    OK(set("d", DEFAULT,
           LIST({ USER_OBJ, 7, 0 }, { USER, 7, ALICE }, { GROUP_OBJ, 5, 0 }, { MASK, 7, 0 }, { OTHER, 0, 0 })));
    is("d", DEFAULT,
       LIST({ USER_OBJ, 7, 0 }, { USER, 7, ALICE }, { GROUP_OBJ, 5, 0 }, { MASK, 7, 0 }, { OTHER, 0, 0 }));
    MODE_IS("d", 0700);
    AS (ALICE, STAFF)
        THAT(!may("d", O_RDONLY));
}

CASE(default_list_on_a_file_is_refused)
{
    NEEDS(FEATURE_ACL);
    make_file("f");
    FAILS(EACCES, set("f", DEFAULT, LIST({ USER_OBJ, 6, 0 }, { GROUP_OBJ, 4, 0 }, { OTHER, 4, 0 })));
}

CASE(new_file_inherits_the_default_list)
{
    dir_with_default();
    OK(open("d/f", O_CREAT | O_WRONLY, 0666));
    is("d/f", ACCESS,
       LIST({ USER_OBJ, 6, 0 }, { USER, 6, ALICE }, { GROUP_OBJ, 5, 0 }, { MASK, 6, 0 }, { OTHER, 0, 0 }));
    MODE_IS("d/f", 0660);
    FAILS(ENODATA, getxattr("d/f", DEFAULT, (char[64]) { 0 }, 64));
}

CASE(new_file_with_a_default_list_ignores_the_umask)
{
    dir_with_default();
    umask(077);
    OK(open("d/f", O_CREAT | O_WRONLY, 0666));
    MODE_IS("d/f", 0660);
}

CASE(new_file_with_a_default_list_keeps_to_the_requested_mode)
{
    dir_with_default();
    OK(open("d/f", O_CREAT | O_WRONLY, 0600));
    MODE_IS("d/f", 0600);
    AS (ALICE, STAFF)
        THAT(!may("d/f", O_RDONLY));
}

CASE(new_directory_inherits_both_lists)
{
    dir_with_default();
    OK(mkdir("d/e", 0777));
    is("d/e", DEFAULT,
       LIST({ USER_OBJ, 7, 0 }, { USER, 6, ALICE }, { GROUP_OBJ, 5, 0 }, { MASK, 7, 0 }, { OTHER, 0, 0 }));
    is("d/e", ACCESS,
       LIST({ USER_OBJ, 7, 0 }, { USER, 6, ALICE }, { GROUP_OBJ, 5, 0 }, { MASK, 7, 0 }, { OTHER, 0, 0 }));
    MODE_IS("d/e", 0770);
}

CASE(new_fifo_inherits_the_default_list)
{
    dir_with_default();
    OK(mkfifo("d/p", 0666));
    MODE_IS("d/p", 0660);
    is("d/p", ACCESS,
       LIST({ USER_OBJ, 6, 0 }, { USER, 6, ALICE }, { GROUP_OBJ, 5, 0 }, { MASK, 6, 0 }, { OTHER, 0, 0 }));
}

CASE(new_symlink_inherits_nothing)
{
    dir_with_default();
    OK(symlink("x", "d/s"));
    MODE_IS("d/s", 0777);
}

CASE(file_in_a_grandchild_inherits_the_default_list)
{
    dir_with_default();
    OK(mkdir("d/e", 0777));
    OK(open("d/e/f", O_CREAT | O_WRONLY, 0666));
    is("d/e/f", ACCESS,
       LIST({ USER_OBJ, 6, 0 }, { USER, 6, ALICE }, { GROUP_OBJ, 5, 0 }, { MASK, 6, 0 }, { OTHER, 0, 0 }));
}

CASE(file_by_another_user_inherits_the_default_list)
{
    dir_with_default();
    AS (BOB, STAFF)
        OK(open("d/f", O_CREAT | O_WRONLY, 0666));
    OWNER_IS("d/f", BOB, STAFF);
    AS (ALICE, GUESTS)
        THAT(may("d/f", O_RDWR));
}

CASE(default_list_of_three_entries_replaces_the_umask)
{
    NEEDS(FEATURE_ACL);
    make_dir_mode("d", 0777);
    OK(set("d", DEFAULT, LIST({ USER_OBJ, 7, 0 }, { GROUP_OBJ, 0, 0 }, { OTHER, 4, 0 })));
    umask(077);
    OK(open("d/f", O_CREAT | O_WRONLY, 0666));
    MODE_IS("d/f", 0604);
    FAILS(ENODATA, getxattr("d/f", ACCESS, (char[64]) { 0 }, 64));
}

CASE(default_list_that_is_removed_is_inherited_no_more)
{
    dir_with_default();
    OK(removexattr("d", DEFAULT));
    OK(open("d/f", O_CREAT | O_WRONLY, 0666));
    MODE_IS("d/f", 0644);
    FAILS(ENODATA, getxattr("d/f", ACCESS, (char[64]) { 0 }, 64));
}

CASE(moved_file_keeps_its_own_list)
{
    dir_with_default();
    make_file("f");
    OK(rename("f", "d/f"));
    MODE_IS("d/f", 0644);
    FAILS(ENODATA, getxattr("d/f", ACCESS, (char[64]) { 0 }, 64));
}
