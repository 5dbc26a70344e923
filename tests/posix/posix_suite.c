/* posix_suite DIR [--only PATTERN]... [--skip PATTERN]... [--features LIST] [--timeout SECONDS] [--list]
 * coherence DIRA DIRB ... the same options, other cases: those that need two mounts of one volume
 *
 * Runs the cases whose name (topic/case) matches one of the shell patterns, in DIR, and prints TAP. --features names
 * abilities, separated by commas, that the file system must have (all: every one); a case that needs another one is
 * skipped where it is missing. --list prints the names. Needs root. Exit status 0 when no case failed. */
#include "suite_internal.h"

#include <fnmatch.h>
#include <ftw.h>
#include <getopt.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { PATTERNS_MAX = 64, TIMEOUT_DEFAULT_S = 60 };

struct run {
    const char *dir, *other; /* other: the same directory through another mount, or NULL */
    const char *only[PATTERNS_MAX], *skip[PATTERNS_MAX];
    size_t only_count, skip_count;
    uint32_t features, demanded;
    unsigned timeout_s;
    bool list;
    char work[PATH_MAX];           /* our own directory in dir */
    char case_dir[PATH_MAX + 16];  /* in work */
    char other_dir[PATH_MAX + 16]; /* case_dir through the other mount */
    char reason[4096];             /* what the case said */
    unsigned number, failed, skipped;
};

static void usage(void)
{
    fprintf(stderr,
            "usage: %s [--only PATTERN]... [--skip PATTERN]... [--features LIST|all]\n"
            "          [--timeout SECONDS] [--list]\nfeatures:",
            suite_needs_other ? "coherence DIRA DIRB" : "posix_suite DIR");
    for (enum feature f = 0; f < FEATURE_COUNT; f++)
        fprintf(stderr, " %s", suite_feature_name(f));
    fprintf(stderr, "\n");
    exit(2);
}

static uint32_t parse_features(char *list)
{
    uint32_t bits = 0;

    for (char *save = NULL, *word = strtok_r(list, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
        enum feature f = 0;

        if (strcmp(word, "all") == 0)
            return (1U << FEATURE_COUNT) - 1;
        while (f < FEATURE_COUNT && strcmp(word, suite_feature_name(f)) != 0)
            f++;
        if (f == FEATURE_COUNT)
            usage();
        bits |= 1U << f;
    }
    return bits;
}

static void parse(struct run *run, int argc, char **argv)
{
    static const struct option options[] = {
        { "only", required_argument, NULL, 'o' },     { "skip", required_argument, NULL, 's' },
        { "features", required_argument, NULL, 'f' }, { "timeout", required_argument, NULL, 't' },
        { "list", no_argument, NULL, 'l' },           { NULL, 0, NULL, 0 },
    };
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
        if (option == 'o' && run->only_count < PATTERNS_MAX)
            run->only[run->only_count++] = optarg;
        else if (option == 's' && run->skip_count < PATTERNS_MAX)
            run->skip[run->skip_count++] = optarg;
        else if (option == 'f')
            run->demanded |= parse_features(optarg);
        else if (option == 't')
            run->timeout_s = (unsigned)atoi(optarg);
        else if (option == 'l')
            run->list = true;
        else
            usage();
    }
    if (run->timeout_s == 0 || (!run->list && argc - optind != (suite_needs_other ? 2 : 1)))
        usage();
    run->dir = argv[optind];
    run->other = suite_needs_other ? argv[optind + 1] : NULL;
}

static bool matches(const char *name, const char *const *patterns, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (fnmatch(patterns[i], name, 0) == 0)
            return true;
    return false;
}

static bool is_chosen(const struct run *run, const char *name)
{
    return (run->only_count == 0 || matches(name, run->only, run->only_count)) &&
           !matches(name, run->skip, run->skip_count);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)st;
    (void)where;
    return type == FTW_DP ? rmdir(path) : unlink(path);
}

/* Removes a tree; false, with a line for the report, when that fails. */
static bool remove_tree(const char *path, char *reason, size_t size)
{
    if (nftw(path, remove_one, 32, FTW_DEPTH | FTW_PHYS) == 0)
        return true;
    snprintf(reason, size, "what the case made cannot be removed: %s\n", strerror(errno));
    return false;
}

static void enter_dir(const char *path)
{
    if (mkdir(path, 0755) < 0 || chdir(path) < 0) {
        perror(path);
        _exit(EXIT_FAILED);
    }
}

static void probe(struct run *run)
{
    int pipe_fds[2], status;
    pid_t child;

    snprintf(run->case_dir, sizeof(run->case_dir), "%s/probe", run->work);
    if (pipe(pipe_fds) < 0 || (child = fork()) < 0) {
        perror("posix_suite");
        exit(2);
    }
    if (child == 0) {
        uint32_t bits;

        umask(022);
        enter_dir(run->case_dir);
        bits = features_probe();
        _exit(write(pipe_fds[1], &bits, sizeof(bits)) == sizeof(bits) ? EXIT_PASSED : EXIT_FAILED);
    }
    close(pipe_fds[1]);
    if (read(pipe_fds[0], &run->features, sizeof(run->features)) != sizeof(run->features)) {
        fprintf(stderr, "posix_suite: %s: the probes of features failed\n", run->dir);
        exit(2);
    }
    close(pipe_fds[0]);
    waitpid(child, &status, 0);
    if (!remove_tree(run->case_dir, run->reason, sizeof(run->reason)))
        printf("# probes: %s", run->reason);
    for (enum feature f = 0; f < FEATURE_COUNT; f++)
        printf("# feature %s: %s\n", suite_feature_name(f), run->features & (1U << f) ? "yes" : "no");
}

static void run_child(const struct run *run, const struct posix_case *c, int report_fd)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_IGN);
    umask(022);
    enter_dir(run->case_dir);
    suite_begin(report_fd, run->features, run->demanded, run->other ? run->other_dir : NULL);
    alarm(run->timeout_s);
    c->run(c->arg);
    _exit(EXIT_PASSED);
}

/* Reads what the processes of the case have to say until the last of them is gone. */
static void read_reason(int fd, char *reason, size_t size)
{
    size_t used = 0;
    ssize_t r;

    while (used < size - 1 && (r = read(fd, reason + used, size - 1 - used)) > 0)
        used += (size_t)r;
    reason[used] = 0;
}

static void print_reason(char *reason)
{
    for (char *save = NULL, *line = strtok_r(reason, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        printf("#   %s\n", line);
}

/* Starts the process of the case and takes in its reasons; its wait status. */
static int run_to_end(struct run *run, const struct posix_case *c)
{
    int pipe_fds[2], status = 0;
    pid_t child;

    snprintf(run->case_dir, sizeof(run->case_dir), "%s/%u", run->work, run->number);
    if (run->other)
        snprintf(run->other_dir, sizeof(run->other_dir), "%s%s", run->other, run->case_dir + strlen(run->dir));
    fflush(stdout);
    if (pipe(pipe_fds) < 0 || (child = fork()) < 0) {
        perror("posix_suite");
        exit(2);
    }
    if (child == 0) {
        close(pipe_fds[0]);
        run_child(run, c, pipe_fds[1]);
    }
    close(pipe_fds[1]);
    read_reason(pipe_fds[0], run->reason, sizeof(run->reason));
    close(pipe_fds[0]);
    waitpid(child, &status, 0);
    return status;
}

static void run_case(struct run *run, const struct posix_case *c, const char *name)
{
    char leftover[128] = "";
    int status;
    bool is_skipped, is_clean, is_failed;

    run->number++;
    status = run_to_end(run, c);
    is_skipped = WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SKIPPED;
    is_clean = remove_tree(run->case_dir, leftover, sizeof(leftover));
    is_failed = !is_clean || (!is_skipped && status != 0);
    if (is_skipped && is_clean) {
        run->reason[strcspn(run->reason, "\n")] = 0;
        printf("ok %u - %s # SKIP %s\n", run->number, name, run->reason);
        run->skipped++;
        return;
    }
    printf("%s %u - %s\n", is_failed ? "not ok" : "ok", run->number, name);
    run->failed += is_failed;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        printf("#   took longer than %u s\n", run->timeout_s);
    else if (WIFSIGNALED(status))
        printf("#   killed by signal %d\n", WTERMSIG(status));
    print_reason(run->reason);
    print_reason(leftover);
}

/* Runs (or lists) the chosen cases, or only counts them. */
static unsigned each_case(struct run *run, bool count_only)
{
    unsigned count = 0;

    for (const struct posix_case *c = suite_cases(); c; c = c->next) {
        char name[512];

        snprintf(name, sizeof(name), "%s/%s", c->topic, c->name);
        if (!is_chosen(run, name))
            continue;
        count++;
        if (run->list)
            puts(name);
        else if (!count_only)
            run_case(run, c, name);
    }
    return count;
}

int main(int argc, char **argv)
{
    static struct run run = { .timeout_s = TIMEOUT_DEFAULT_S };

    parse(&run, argc, argv);
    if (run.list) {
        each_case(&run, true);
        return 0;
    }
    if (geteuid() != 0) {
        puts("1..0 # SKIP the cases change users and make devices: run them as root");
        return 0;
    }
    if (snprintf(run.work, sizeof(run.work), "%s/posix_suite.XXXXXX", run.dir) >= (int)sizeof(run.work) ||
        !mkdtemp(run.work) || chmod(run.work, 0755) < 0) {
        fprintf(stderr, "posix_suite: no directory can be made in %s: %s\n", run.dir, strerror(errno));
        return 2;
    }
    printf("1..%u\n", each_case(&run, true));
    probe(&run);
    each_case(&run, false);
    if (rmdir(run.work) < 0)
        printf("# %s stays behind: %s\n", run.work, strerror(errno));
    printf("# %u cases, %u failed, %u skipped\n", run.number, run.failed, run.skipped);
    return run.failed != 0;
}
