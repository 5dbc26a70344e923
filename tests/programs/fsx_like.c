/* fsx_like DIR [--ops N] [--seed S] [--mmap] [--direct] [--size BYTES] [--verbose] [--from N] [--without LIST]
 *
 * Works on one file with random operations through several descriptors and compares everything it reads with a model in
 * memory. The same seed gives the same operations; a difference prints the place, the last operations and the command
 * that replays it. --mmap adds reads and writes through shared maps, --direct aligned O_DIRECT reads and writes.
 * --verbose prints the operations, from number --from. Operations that the file system does not know are left out and
 * named; --without leaves out others, by the names that the list of last operations shows (several: "zero,copy"). */
#include "program.h"

#include <fcntl.h>
#include <getopt.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { DESCRIPTORS = 3, LOG_MAX = 24, PIECE_MAX = 65536, PAGE = 4096 };

enum operation {
    OP_READ,
    OP_WRITE,
    OP_MAP_READ,
    OP_MAP_WRITE,
    OP_DIRECT_READ,
    OP_DIRECT_WRITE,
    OP_TRUNCATE,
    OP_ALLOCATE,
    OP_ALLOCATE_KEEPING_SIZE,
    OP_PUNCH,
    OP_ZERO,
    OP_ZERO_KEEPING_SIZE,
    OP_COPY,
    OP_REOPEN,
    OP_SYNC,
    OP_STAT,
    OP_SEEK,
    OP_COUNT
};

/* How often each comes up, relative to the others. */
static const struct {
    const char *name;
    unsigned weight;
} operations[OP_COUNT] = {
    [OP_READ] = { "read", 20 },
    [OP_WRITE] = { "write", 20 },
    [OP_MAP_READ] = { "map_read", 12 },
    [OP_MAP_WRITE] = { "map_write", 12 },
    [OP_DIRECT_READ] = { "direct_read", 6 },
    [OP_DIRECT_WRITE] = { "direct_write", 6 },
    [OP_TRUNCATE] = { "truncate", 8 },
    [OP_ALLOCATE] = { "allocate", 3 },
    [OP_ALLOCATE_KEEPING_SIZE] = { "allocate_keeping_size", 3 },
    [OP_PUNCH] = { "punch", 6 },
    [OP_ZERO] = { "zero", 3 },
    [OP_ZERO_KEEPING_SIZE] = { "zero_keeping_size", 3 },
    [OP_COPY] = { "copy", 4 },
    [OP_REOPEN] = { "reopen", 4 },
    [OP_SYNC] = { "sync", 2 },
    [OP_STAT] = { "stat", 4 },
    [OP_SEEK] = { "seek", 4 },
};

struct step {
    uint64_t number;
    enum operation op;
    int fd_index;
    uint64_t offset, length, target; /* target of a copy */
};

struct run {
    const char *dir;
    uint64_t ops, seed, size_max, from;
    bool with_mmap, with_direct, verbose;

    char path[4096];
    int fds[DESCRIPTORS], direct_fd;
    uint64_t random;
    uint8_t *model, *buffer; /* bytes beyond size are zero in the model */
    uint64_t size;
    bool is_missing[OP_COUNT];
    struct step log[LOG_MAX];
};

static uint64_t below(struct run *run, uint64_t limit)
{
    return limit ? random_next(&run->random) % limit : 0;
}

static void print_step(const struct step *s)
{
    printf("  %8llu %-22s fd %d offset %7llu length %6llu", (unsigned long long)s->number, operations[s->op].name,
           s->fd_index, (unsigned long long)s->offset, (unsigned long long)s->length);
    if (s->op == OP_COPY)
        printf(" to %7llu", (unsigned long long)s->target);
    printf("\n");
}

static void __attribute__((noreturn, format(printf, 3, 4)))
differs(const struct run *run, const struct step *step, const char *format, ...)
{
    va_list args;

    printf("fsx_like: at operation %llu (%s): ", (unsigned long long)step->number, operations[step->op].name);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\nlast operations, file size now %llu:\n", (unsigned long long)run->size);
    for (uint64_t i = step->number >= LOG_MAX ? step->number - LOG_MAX + 1 : 1; i <= step->number; i++)
        print_step(&run->log[i % LOG_MAX]);
    printf("replay: fsx_like DIR --ops %llu --seed %llu --size %llu%s%s\n", (unsigned long long)step->number,
           (unsigned long long)run->seed, (unsigned long long)run->size_max, run->with_mmap ? " --mmap" : "",
           run->with_direct ? " --direct" : "");
    printf("the file is left as %s\n", run->path);
    fflush(stdout);
    _exit(EXIT_WRONG);
}

static void compare(const struct run *run, const struct step *step, const uint8_t *have, uint64_t offset,
                    uint64_t length)
{
    uint64_t first = 0, count = 0;

    if (memcmp(have, run->model + offset, length) == 0)
        return;
    while (have[first] == run->model[offset + first])
        first++;
    for (uint64_t i = first; i < length; i++)
        count += have[i] != run->model[offset + i];
    differs(run, step, "byte at %llu (0x%llx) is %02x, expected %02x; %llu of %llu bytes differ",
            (unsigned long long)offset + first, (unsigned long long)offset + first, have[first],
            run->model[offset + first], (unsigned long long)count, (unsigned long long)length);
}

static void check_size(const struct run *run, const struct step *step)
{
    struct stat st;

    if (fstat(run->fds[step->fd_index], &st) < 0)
        differs(run, step, "fstat: %s", strerror(errno));
    if ((uint64_t)st.st_size != run->size)
        differs(run, step, "fstat says %lld bytes, expected %llu", (long long)st.st_size,
                (unsigned long long)run->size);
}

/* Bytes that tell which operation wrote them. */
static void fill(struct run *run, const struct step *step)
{
    for (uint64_t i = 0; i < step->length; i++)
        run->buffer[i] = (uint8_t)(step->number * 131 + i * 7 + 1);
}

static void model_write(struct run *run, const struct step *step)
{
    memcpy(run->model + step->offset, run->buffer, step->length);
    if (step->offset + step->length > run->size)
        run->size = step->offset + step->length;
}

static void model_zero(struct run *run, uint64_t from, uint64_t to)
{
    memset(run->model + from, 0, to - from);
}

static void do_read(struct run *run, const struct step *step, int fd)
{
    uint64_t want = step->offset >= run->size                 ? 0
                    : run->size - step->offset < step->length ? run->size - step->offset
                                                              : step->length;
    ssize_t r = pread(fd, run->buffer, step->length, (off_t)step->offset);

    if (r < 0)
        differs(run, step, "pread: %s", strerror(errno));
    if ((uint64_t)r != want)
        differs(run, step, "pread gave %zd bytes, expected %llu", r, (unsigned long long)want);
    compare(run, step, run->buffer, step->offset, want);
}

static void do_write(struct run *run, const struct step *step, int fd)
{
    ssize_t r;

    fill(run, step);
    r = pwrite(fd, run->buffer, step->length, (off_t)step->offset);
    if (r != (ssize_t)step->length)
        differs(run, step, "pwrite gave %zd (%s)", r, r < 0 ? strerror(errno) : "short");
    model_write(run, step);
}

static uint8_t *map(const struct run *run, const struct step *step, int protection, uint64_t *ret_skip)
{
    uint64_t start = step->offset / PAGE * PAGE;
    uint8_t *p =
        mmap(NULL, step->offset - start + step->length, protection, MAP_SHARED, run->fds[step->fd_index], (off_t)start);

    if (p == MAP_FAILED)
        differs(run, step, "mmap: %s", strerror(errno));
    *ret_skip = step->offset - start;
    return p;
}

static void do_map_read(struct run *run, const struct step *step)
{
    uint64_t skip;
    uint8_t *p = map(run, step, PROT_READ, &skip);

    compare(run, step, p + skip, step->offset, step->length);
    munmap(p, skip + step->length);
}

static void do_map_write(struct run *run, const struct step *step)
{
    uint64_t skip;
    uint8_t *p = map(run, step, PROT_READ | PROT_WRITE, &skip);

    fill(run, step);
    memcpy(p + skip, run->buffer, step->length);
    if (step->number % 2 && msync(p, skip + step->length, MS_SYNC) < 0)
        differs(run, step, "msync: %s", strerror(errno));
    munmap(p, skip + step->length);
    model_write(run, step);
}

static void do_truncate(struct run *run, const struct step *step)
{
    int r = step->number % 2 ? truncate(run->path, (off_t)step->offset)
                             : ftruncate(run->fds[step->fd_index], (off_t)step->offset);

    if (r < 0)
        differs(run, step, "truncate: %s", strerror(errno));
    if (step->offset < run->size)
        model_zero(run, step->offset, run->size);
    run->size = step->offset;
    check_size(run, step);
}

/* fallocate(); whether the file system did it. */
static bool do_allocate(struct run *run, const struct step *step, int mode)
{
    uint64_t end = step->offset + step->length;

    if (fallocate(run->fds[step->fd_index], mode, (off_t)step->offset, (off_t)step->length) < 0) {
        if (errno != EOPNOTSUPP && errno != ENOSYS)
            differs(run, step, "fallocate: %s", strerror(errno));
        printf("fsx_like: the file system lacks: %s\n", operations[step->op].name);
        run->is_missing[step->op] = true;
        return false;
    }
    if (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE))
        model_zero(run, step->offset, end);
    if (!(mode & FALLOC_FL_KEEP_SIZE) && end > run->size)
        run->size = end;
    check_size(run, step);
    return true;
}

static void do_copy(struct run *run, const struct step *step)
{
    off64_t from = (off64_t)step->offset, to = (off64_t)step->target;
    uint64_t left = step->length;

    while (left > 0) {
        ssize_t r = copy_file_range(run->fds[step->fd_index], &from, run->fds[(step->fd_index + 1) % DESCRIPTORS], &to,
                                    left, 0);

        if (r < 0 && left == step->length && (errno == EOPNOTSUPP || errno == ENOSYS || errno == EXDEV)) {
            printf("fsx_like: the file system lacks: %s\n", operations[step->op].name);
            run->is_missing[step->op] = true;
            return;
        }
        if (r <= 0)
            differs(run, step, "copy_file_range gave %zd (%s)", r, r < 0 ? strerror(errno) : "nothing");
        left -= (uint64_t)r;
    }
    memcpy(run->model + step->target, run->model + step->offset, step->length);
    if (step->target + step->length > run->size)
        run->size = step->target + step->length;
    check_size(run, step);
}

/* What lies between the offset and the data found must be zero, and so must the first byte of a hole. */
static void do_seek(struct run *run, const struct step *step, int fd)
{
    off_t data, hole;
    uint64_t at = step->offset;

    if (at >= run->size)
        return;
    data = lseek(fd, (off_t)at, SEEK_DATA);
    if (data < 0 && errno != ENXIO)
        differs(run, step, "SEEK_DATA: %s", strerror(errno));
    if (data >= 0 && ((uint64_t)data < at || (uint64_t)data >= run->size))
        differs(run, step, "SEEK_DATA gave %lld", (long long)data);
    while (at < (data < 0 ? run->size : (uint64_t)data))
        if (run->model[at++] != 0)
            differs(run, step, "SEEK_DATA gave %lld, but there is data at %llu", (long long)data,
                    (unsigned long long)(at - 1));
    hole = lseek(fd, (off_t)step->offset, SEEK_HOLE);
    if (hole < 0 || (uint64_t)hole < step->offset || (uint64_t)hole > run->size)
        differs(run, step, "SEEK_HOLE gave %lld (%s)", (long long)hole, hole < 0 ? strerror(errno) : "out of range");
    if ((uint64_t)hole < run->size && run->model[hole] != 0)
        differs(run, step, "SEEK_HOLE gave %lld, but there is data", (long long)hole);
}

static void do_reopen(struct run *run, const struct step *step)
{
    int *fd = &run->fds[step->fd_index];

    if (close(*fd) < 0)
        differs(run, step, "close: %s", strerror(errno));
    *fd = open(run->path, O_RDWR);
    if (*fd < 0)
        differs(run, step, "open: %s", strerror(errno));
    check_size(run, step);
}

static void perform(struct run *run, const struct step *step)
{
    int fd = run->fds[step->fd_index];

    switch (step->op) {
    case OP_READ: do_read(run, step, fd); return;
    case OP_WRITE: do_write(run, step, fd); return;
    case OP_MAP_READ: do_map_read(run, step); return;
    case OP_MAP_WRITE: do_map_write(run, step); return;
    case OP_DIRECT_READ: do_read(run, step, run->direct_fd); return;
    case OP_DIRECT_WRITE: do_write(run, step, run->direct_fd); return;
    case OP_TRUNCATE: do_truncate(run, step); return;
    case OP_ALLOCATE: do_allocate(run, step, 0); return;
    case OP_ALLOCATE_KEEPING_SIZE: do_allocate(run, step, FALLOC_FL_KEEP_SIZE); return;
    case OP_PUNCH: do_allocate(run, step, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE); return;
    case OP_ZERO: do_allocate(run, step, FALLOC_FL_ZERO_RANGE); return;
    case OP_ZERO_KEEPING_SIZE: do_allocate(run, step, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE); return;
    case OP_COPY: do_copy(run, step); return;
    case OP_REOPEN: do_reopen(run, step); return;
    case OP_SYNC:
        if ((step->number % 2 ? fsync(fd) : fdatasync(fd)) < 0)
            differs(run, step, "fsync: %s", strerror(errno));
        return;
    case OP_STAT: check_size(run, step); return;
    case OP_SEEK: do_seek(run, step, fd); return;
    case OP_COUNT: break;
    }
    abort();
}

static enum operation choose(struct run *run)
{
    unsigned total = 0, pick;

    for (enum operation op = 0; op < OP_COUNT; op++)
        total += operations[op].weight;
    pick = (unsigned)below(run, total);
    for (enum operation op = 0; op < OP_COUNT; op++) {
        if (pick < operations[op].weight)
            return op;
        pick -= operations[op].weight;
    }
    abort();
}

/* What the numbers of a step may be; a step that makes no sense now becomes another one. */
static void fit(struct run *run, struct step *s)
{
    bool is_map = s->op == OP_MAP_READ || s->op == OP_MAP_WRITE;
    bool is_direct = s->op == OP_DIRECT_READ || s->op == OP_DIRECT_WRITE;

    if ((is_map && !run->with_mmap) || (is_direct && !run->with_direct) || run->is_missing[s->op])
        s->op = s->op == OP_MAP_WRITE || s->op == OP_DIRECT_WRITE ? OP_WRITE : OP_READ;
    if (((s->op == OP_MAP_READ || s->op == OP_MAP_WRITE) && run->size == 0) || (s->op == OP_COPY && run->size < 2))
        s->op = OP_WRITE;
    if (s->op == OP_MAP_READ || s->op == OP_MAP_WRITE || s->op == OP_COPY)
        s->offset %= run->size;
    if (s->op == OP_DIRECT_READ || s->op == OP_DIRECT_WRITE) {
        s->offset = s->offset / PAGE * PAGE;
        s->length = (s->length + PAGE - 1) / PAGE * PAGE;
    }
    if (s->length > run->size_max - s->offset)
        s->length = run->size_max - s->offset;
    if ((s->op == OP_MAP_READ || s->op == OP_MAP_WRITE || s->op == OP_COPY) && s->length > run->size - s->offset)
        s->length = run->size - s->offset;
    if (s->op == OP_COPY) { /* the ranges may not overlap */
        if (s->length > run->size_max / 2)
            s->length = run->size_max / 2;
        s->target = s->target % (run->size_max - s->length);
        if (s->target < s->offset + s->length && s->offset < s->target + s->length)
            s->op = OP_READ;
    }
}

static void run_all(struct run *run)
{
    for (uint64_t number = 1; number <= run->ops; number++) {
        struct step *s = &run->log[number % LOG_MAX];

        *s = (struct step) { .number = number, .op = choose(run) };
        s->fd_index = (int)below(run, DESCRIPTORS);
        s->offset = below(run, run->size_max);
        s->target = below(run, run->size_max);
        /* half of the pieces are small */
        s->length = 1 + below(run, below(run, 2) ? 512 : PIECE_MAX - PAGE);
        fit(run, s);
        if (run->verbose && number >= run->from)
            print_step(s);
        perform(run, s);
    }
}

static void check_all(struct run *run)
{
    struct step last = run->log[run->ops % LOG_MAX];

    for (int i = 0; i < DESCRIPTORS; i++) {
        last.fd_index = i;
        do_reopen(run, &last);
    }
    for (last.offset = 0; last.offset < run->size; last.offset += PIECE_MAX) {
        last.length = PIECE_MAX;
        do_read(run, &last, run->fds[0]);
    }
}

static void begin(struct run *run)
{
    if (snprintf(run->path, sizeof(run->path), "%s/fsx_like.%d", run->dir, getpid()) >= (int)sizeof(run->path))
        wrong("fsx_like: %s is too long", run->dir);
    run->fds[0] = (int)MUST(open(run->path, O_CREAT | O_EXCL | O_RDWR, 0644));
    for (int i = 1; i < DESCRIPTORS; i++)
        run->fds[i] = (int)MUST(open(run->path, O_RDWR));
    run->direct_fd = run->with_direct ? (int)MUST(open(run->path, O_RDWR | O_DIRECT)) : -1;
    run->model = calloc(1, run->size_max + PIECE_MAX);
    run->buffer = aligned_alloc(PAGE, PIECE_MAX);
    if (!run->model || !run->buffer)
        wrong("fsx_like: no memory");
    run->random = run->seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
}

static void leave_out(struct run *run, char *list)
{
    for (char *save = NULL, *word = strtok_r(list, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
        enum operation op = 0;

        while (op < OP_COUNT && strcmp(operations[op].name, word) != 0)
            op++;
        if (op == OP_COUNT) {
            fprintf(stderr, "fsx_like: no operation is called %s\n", word);
            exit(EXIT_USAGE);
        }
        run->is_missing[op] = true;
    }
}

static void parse(struct run *run, int argc, char **argv)
{
    static const struct option options[] = {
        { "ops", required_argument, NULL, 'o' },
        { "seed", required_argument, NULL, 's' },
        { "mmap", no_argument, NULL, 'm' },
        { "direct", no_argument, NULL, 'd' },
        { "size", required_argument, NULL, 'z' },
        { "from", required_argument, NULL, 'f' },
        { "verbose", no_argument, NULL, 'v' },
        { "without", required_argument, NULL, 'w' },
        { NULL, 0, NULL, 0 },
    };
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
        switch (option) {
        case 'o': run->ops = strtoull(optarg, NULL, 0); break;
        case 's': run->seed = strtoull(optarg, NULL, 0); break;
        case 'z': run->size_max = strtoull(optarg, NULL, 0) / PAGE * PAGE; break;
        case 'f': run->from = strtoull(optarg, NULL, 0); break;
        case 'm': run->with_mmap = true; break;
        case 'd': run->with_direct = true; break;
        case 'w': leave_out(run, optarg); break;
        case 'v': run->verbose = true; break;
        default: exit(EXIT_USAGE);
        }
    }
    run->dir = argv[optind];
    if (!run->dir || run->size_max < 4 * PAGE) {
        fprintf(stderr, "usage: fsx_like DIR [--ops N] [--seed S] [--mmap] [--direct] [--size BYTES]\n"
                        "                [--verbose] [--from N] [--without OPERATION,...]\n");
        exit(EXIT_USAGE);
    }
}

int main(int argc, char **argv)
{
    static struct run run = { .ops = 10000, .size_max = 262144 };
    double start_s = now_s();

    run.seed = (uint64_t)time(NULL);
    parse(&run, argc, argv);
    printf("fsx_like: seed %llu\n", (unsigned long long)run.seed);
    fflush(stdout);
    begin(&run);
    run_all(&run);
    check_all(&run);
    MUST(unlink(run.path));
    printf("fsx_like: %llu operations, seed %llu, all as expected, %.1f s\n", (unsigned long long)run.ops,
           (unsigned long long)run.seed, now_s() - start_s);
    return EXIT_GOOD;
}
