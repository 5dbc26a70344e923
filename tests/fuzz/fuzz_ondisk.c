/* What a brick's disk may hold, damaged: texts of directory handles, mdata, side files. The first byte chooses. */
#include "core/mem.h"
#include "storage/posix/posix_internal.h"
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

static void handle_text(const uint8_t *data, size_t size_bytes)
{
    char text[DIR_LINK_MAX], again[DIR_LINK_MAX];
    struct gfid parent;
    const char *name;

    if (size_bytes >= sizeof text)
        return;
    memcpy(text, data, size_bytes);
    text[size_bytes] = '\0';
    if (handle_parse_dir_text(text, &parent, &name) < 0)
        return;
    handle_dir_text(&parent, name, again);
    assert(strlen(again) == strlen(text)); /* but for the case of hex digits, what is read is what would be written */
}

static void mdata(const uint8_t *data, size_t size_bytes)
{
    struct mdata_times m, n;
    uint8_t bytes[MDATA_BYTES];

    if (mdata_decode(data, size_bytes, &m) < 0)
        return;
    mdata_encode(&m, bytes);
    assert(mdata_decode(bytes, sizeof bytes, &n) == 0);
    assert(m.atime == n.atime && m.mtime_nsec == n.mtime_nsec && m.ctime == n.ctime);
}

/* The bytes as the side file of inode 7 in a directory of our own. */
static void side_file(const uint8_t *data, size_t size_bytes)
{
    static char dir[] = "/tmp/mortar-fuzz-XXXXXX";
    static struct posix s = { .gfs_fd = -1, .user_namespace = true };
    static const char *const text = "11111111-2222-3333-4444-000000000001";
    char value[64];
    static char names[XATTR_BYTES_MAX];
    struct xnode x = { .fd = -1, .is_special = true, .ino = 7 };

    if (s.gfs_fd < 0) {
        if (!mkdtemp(dir))
            abort();
        s.gfs_fd = open(dir, O_RDONLY | O_DIRECTORY);
        for (const char *const *d =
                 (const char *const[]) { "xattr", "xattr/ino", "xattr/ino/07", "xattr/11", "xattr/11/11", NULL };
             *d; d++)
            (void)mkdirat(s.gfs_fd, *d, 0700); /* new: it works or nothing below does */
        if (symlinkat(text, s.gfs_fd, "xattr/ino/07/7") < 0)
            abort();
    }
    int fd = openat(s.gfs_fd, "xattr/11/11/11111111-2222-3333-4444-000000000001", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, data, size_bytes) < 0)
        abort();
    close(fd);
    ssize_t n = side_list(&s, &x, names, sizeof names);
    (void)side_get(&s, &x, "trusted.afr.dirty", value, sizeof value); /* any answer */
    if (side_set(&s, &x, "trusted.afr.dirty", "0123", 4, 0) == 0) {
        assert(n >= 0);
        assert(side_get(&s, &x, "trusted.afr.dirty", value, sizeof value) == 4);
        assert(side_remove(&s, &x, "trusted.afr.dirty") == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
    if (size_bytes == 0)
        return 0;
    switch (data[0]) {
    case 'h': handle_text(data + 1, size_bytes - 1); break;
    case 'm': mdata(data + 1, size_bytes - 1); break;
    default: side_file(data + 1, size_bytes - 1); break;
    }
    return 0;
}
