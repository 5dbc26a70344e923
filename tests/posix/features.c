/* Probes: which abilities the file system under test has. Each probe works on names of its own. */
#include "suite_internal.h"

#include <dirent.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <time.h>

static int open_new(const char *path)
{
    return open(path, O_CREAT | O_EXCL | O_RDWR, 0644);
}

static bool has_xattr(const char *key, size_t size)
{
    static const char value[65536];
    int fd = open_new(key);
    bool has = fd >= 0 && fsetxattr(fd, key, value, size, 0) == 0;

    close(fd);
    return has;
}

static bool has_acl(void)
{
    /* version 2; user::rw-, group::r--, other::r-- */
    static const uint8_t acl[] = { 2, 0, 0,   0,   1,   0,   6,  0, 255, 255, 255, 255, 4,   0,
                                   4, 0, 255, 255, 255, 255, 32, 0, 4,   0,   255, 255, 255, 255 };

    return open_new("acl") >= 0 && setxattr("acl", "system.posix_acl_access", acl, sizeof(acl), 0) == 0;
}

static bool has_user_xattr(void)
{
    return has_xattr("user.probe", 1);
}

static bool has_trusted_xattr(void)
{
    return has_xattr("trusted.probe", 1);
}

static bool has_big_xattr(void)
{
    return has_xattr("user.big", 65536);
}

static bool has_devices(void)
{
    return mknod("device", S_IFCHR | 0600, makedev(1, 3)) == 0;
}

static bool has_fallocate_mode(const char *path, int mode)
{
    int fd = open_new(path);

    return fd >= 0 && ftruncate(fd, 65536) == 0 && fallocate(fd, mode, 4096, 8192) == 0;
}

static bool has_fallocate(void)
{
    return has_fallocate_mode("fallocate", 0);
}

static bool has_punch(void)
{
    return has_fallocate_mode("punch", FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE);
}

static bool has_zero_range(void)
{
    return has_fallocate_mode("zero", FALLOC_FL_ZERO_RANGE);
}

static bool has_seek_hole(void)
{
    int fd = open_new("hole");

    return fd >= 0 && pwrite(fd, "x", 1, 0) == 1 && pwrite(fd, "x", 1, 1 << 24) == 1 && fsync(fd) == 0 &&
           lseek(fd, 0, SEEK_HOLE) < 1 << 24;
}

static bool has_copy_file_range(void)
{
    int from = open_new("copy_from"), to = open_new("copy_to");

    return from >= 0 && to >= 0 && write(from, "abc", 3) == 3 &&
           copy_file_range(from, &(off64_t) { 0 }, to, NULL, 3, 0) == 3;
}

static bool has_direct(void)
{
    return open("direct", O_CREAT | O_RDWR | O_DIRECT, 0644) >= 0;
}

static bool has_rename_flags(void)
{
    return open_new("rename_a") >= 0 && open_new("rename_b") >= 0 &&
           renameat2(AT_FDCWD, "rename_a", AT_FDCWD, "rename_b", RENAME_EXCHANGE) == 0 &&
           renameat2(AT_FDCWD, "rename_a", AT_FDCWD, "rename_c", RENAME_NOREPLACE) == 0;
}

static bool has_tmpfile(void)
{
    return open(".", O_TMPFILE | O_RDWR, 0644) >= 0;
}

static bool has_ofd_locks(void)
{
    struct flock lock = { .l_type = F_WRLCK };
    int fd = open_new("ofd");

    return fd >= 0 && fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

static bool has_separate_locks(void)
{
    struct flock lock = { .l_type = F_WRLCK };
    int fd = open_new("locks");

    return fd >= 0 && flock(fd, LOCK_EX) == 0 && fcntl(fd, F_SETLK, &lock) == 0;
}

static bool has_shared_mmap(void)
{
    int fd = open_new("mmap");

    return fd >= 0 && ftruncate(fd, 4096) == 0 &&
           mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED;
}

static bool has_dir_seek(void)
{
    DIR *dir = opendir(".");
    struct dirent *entry;
    char second[256];
    long place;

    if (!dir || !readdir(dir))
        return false;
    place = telldir(dir);
    entry = readdir(dir);
    if (!entry)
        return false;
    snprintf(second, sizeof(second), "%s", entry->d_name);
    (void)readdir(dir); /* further on, whatever comes */
    seekdir(dir, place);
    entry = readdir(dir);
    return entry && strcmp(entry->d_name, second) == 0;
}

/* With relatime the first read after a change of content moves the access time. */
static bool has_atime(void)
{
    int fd = open_new("atime");
    struct stat before;
    char c;

    if (fd < 0 || write(fd, "x", 1) != 1 || fsync(fd) < 0)
        return false;
    before = stat_of("atime");
    tick();
    return pread(fd, &c, 1, 0) == 1 && time_cmp(stat_of("atime").st_atim, before.st_atim) > 0;
}

static bool has_time_back(void)
{
    struct timespec future[2] = { { time(NULL) + 1000000, 0 }, { time(NULL) + 1000000, 0 } };
    int fd = open_new("time");

    return fd >= 0 && futimens(fd, future) == 0 && write(fd, "x", 1) == 1 && fsync(fd) == 0 &&
           stat_fd(fd).st_mtim.tv_sec < future[1].tv_sec;
}

static bool has_ids(void)
{
    return geteuid() == 0;
}

uint32_t features_probe(void)
{
    static bool (*const probes[FEATURE_COUNT])(void) = {
        [FEATURE_ACL] = has_acl,
        [FEATURE_USER_XATTR] = has_user_xattr,
        [FEATURE_TRUSTED_XATTR] = has_trusted_xattr,
        [FEATURE_BIG_XATTR] = has_big_xattr,
        [FEATURE_DEVICES] = has_devices,
        [FEATURE_FALLOCATE] = has_fallocate,
        [FEATURE_PUNCH] = has_punch,
        [FEATURE_ZERO_RANGE] = has_zero_range,
        [FEATURE_SEEK_HOLE] = has_seek_hole,
        [FEATURE_COPY_FILE_RANGE] = has_copy_file_range,
        [FEATURE_DIRECT] = has_direct,
        [FEATURE_RENAME_FLAGS] = has_rename_flags,
        [FEATURE_TMPFILE] = has_tmpfile,
        [FEATURE_OFD_LOCKS] = has_ofd_locks,
        [FEATURE_SEPARATE_LOCKS] = has_separate_locks,
        [FEATURE_SHARED_MMAP] = has_shared_mmap,
        [FEATURE_DIR_SEEK] = has_dir_seek,
        [FEATURE_ATIME] = has_atime,
        [FEATURE_TIME_BACK] = has_time_back,
        [FEATURE_IDS] = has_ids,
    };
    uint32_t bits = 0;

    for (enum feature f = 0; f < FEATURE_COUNT; f++)
        if (probes[f]())
            bits |= 1U << f;
    return bits;
}
