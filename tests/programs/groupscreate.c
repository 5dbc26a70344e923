/* groupscreate FILE COUNT GID
 *
 * As an ordinary user with COUNT supplementary groups of which GID is the last, creates, writes, reads and renames FILE,
 * which must not exist. (setpriv cannot be given more groups than fit on a command line.) */
#include "program.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>

enum { USER = 20099, GROUP = 20098, FIRST_GROUP = 100000 };

int main(int argc, char **argv)
{
    char renamed[4096], back[8] = "";
    struct stat st;
    size_t count;
    gid_t *groups;
    int fd;

    if (argc != 4 || (count = strtoul(argv[2], NULL, 10)) == 0) {
        fprintf(stderr, "usage: groupscreate FILE COUNT GID\n");
        return EXIT_USAGE;
    }
    groups = calloc(count, sizeof(*groups));
    if (!groups)
        wrong("groupscreate: no memory");
    for (size_t i = 0; i < count; i++)
        groups[i] = FIRST_GROUP + (gid_t)i;
    groups[count - 1] = (gid_t)strtoul(argv[3], NULL, 10);
    MUST(setgroups(count, groups));
    MUST(setresgid(GROUP, GROUP, GROUP));
    MUST(setresuid(USER, USER, USER));
    fd = (int)MUST(open(argv[1], O_CREAT | O_EXCL | O_RDWR, 0660));
    MUST(write(fd, "content", 7));
    MUST(close(fd));
    fd = (int)MUST(open(argv[1], O_RDONLY));
    if (MUST(read(fd, back, 7)) != 7 || strcmp(back, "content") != 0)
        wrong("groupscreate: the content is not what was written");
    MUST(fstat(fd, &st));
    if (st.st_uid != USER)
        wrong("groupscreate: the file belongs to %u", st.st_uid);
    snprintf(renamed, sizeof(renamed), "%s.renamed", argv[1]);
    MUST(rename(argv[1], renamed));
    free(groups);
    printf("created with %zu groups\n", count);
    return EXIT_GOOD;
}
