/* What tests of translators need: a fiber on an env of its own, a graph, and a scripted leaf that records its calls.
 *
 *     FIBER_TEST(write_goes_down)
 *     {
 *         test_push(t, &leaf_class, NULL);
 *         test_push(t, &utime_class, "noatime", "off", NULL);
 *         test_start(t);
 *         assert_int_equal(0, test_op(t, OP_TRUNCATE, .inode = t->file, .offset = 7));
 *         assert_int_equal(7, leaf_last(t->leaf)->offset);
 *     }
 *
 * The body runs in a fiber; t is gone afterwards, with graph, inodes and env. A test that needs the simulated world says
 * SIM_TEST. Whole volume files (with `type test/leaf` where a leaf is wanted) go through test_build().
 */
#pragma once

#include "core/env_real.h"
#include "core/env_sim.h"
#include "core/mem.h"
#include "graph/graph.h"
#include "unit/unit.h"

#define LEAF_CALLS_MAX 256

/* One call as the leaf saw it: plain copies, usable after the call. */
struct leaf_call {
    enum op op;
    struct gfid gfid, parent, parent2;
    char name[128], name2[128], text[128];
    bool has_fd, has_text;
    uint64_t offset, size;
    uint32_t flags, mode, umask, valid;
    struct iatt attr;
    enum lock_command command;
    struct lock_range lock;
    uint8_t data[64]; /* the first bytes */
    size_t data_size;
    struct dict *xattrs, *xdata; /* references, until the leaf goes */
    uint32_t uid, gid, time_flags, time_ns;
    int64_t time_s;
    int32_t pid;
    uint32_t step_count;
};

struct leaf;
/* Answers instead of the leaf: fills r and returns what the operation returns. May suspend. */
typedef int (*leaf_answer_fn)(struct leaf *leaf, struct call *call, const struct request *q, struct reply *r);

/* State of a translator of type "test/leaf". */
struct leaf {
    struct translator *me;
    uint32_t call_count;
    struct leaf_call calls[LEAF_CALLS_MAX]; /* older ones are kept, later ones only counted */
    int results[OP_COUNT];                  /* what is returned when nothing else is said: 0 */
    uint32_t fail_times[OP_COUNT];          /* that many calls, 0 = all, answer a negative result */
    leaf_answer_fn answers[OP_COUNT];
    struct iatt stat;  /* what stat, pre and post are filled with; mode 0100644 at first */
    uint64_t delay_ms; /* each call sleeps before it answers */
    void *arg;         /* the test's */
    char *note;        /* option "note", for tests of options */
    uint32_t number;   /* option "number", live */
    uint32_t reconfigured, forgotten, released, gone;
};
extern const struct translator_class leaf_class;

struct leaf *leaf_of(struct translator *t);
/* All (times 0) or the next `times` calls of op answer -err. */
void leaf_fail(struct leaf *leaf, enum op op, int err, uint32_t times);
const struct leaf_call *leaf_last(const struct leaf *leaf); /* fails the test when there was no call */
uint32_t leaf_count(const struct leaf *leaf, enum op op);
void leaf_clear(struct leaf *leaf); /* forgets the recorded calls */

struct test {
    struct env *env;
    struct sim *sim; /* SIM_TEST only */
    struct log *log;
    char log_path[64];
    const struct translator_class *classes[160]; /* leaf_class and all_classes */
    struct graph *graph;
    struct leaf *leaf;       /* the first test/leaf of the graph */
    struct call call;        /* root, no deadline */
    struct inode *root;      /* made by test_start: a directory, gfid_root */
    struct inode *dir;       /* another directory, gfid ...02 */
    struct inode *file;      /* a regular file, gfid ...03 */
    struct inode *new_inode; /* no type yet, gfid ...04: for mknod and the like */
    struct fd *fd;           /* of file, O_RDWR */
    struct fd *dir_fd;       /* of dir */
    struct reply *r;         /* of the last test_op */
    struct error err;
};

typedef void (*test_fn)(struct test *t);
void test_in_fiber(test_fn fn);
void test_in_sim(test_fn fn, uint64_t seed);

#define FIBER_TEST(name)                     \
    static void name##_body(struct test *t); \
    static void name(void **state)           \
    {                                        \
        test_in_fiber(name##_body);          \
    }                                        \
    static void name##_body(struct test *t)

#define SIM_TEST(name)                       \
    static void name##_body(struct test *t); \
    static void name(void **state)           \
    {                                        \
        test_in_sim(name##_body, 1);         \
    }                                        \
    static void name##_body(struct test *t)

/* Adds one translator on top; then "key", "value" pairs and NULL. Fails the test when it is refused. Returned for
 * convenience. */
struct translator *test_push(struct test *t, const struct translator_class *class, ...) __attribute__((sentinel));
/* The same, expected to be refused: the errno; the sentence is in t->err. */
int test_push_refused(struct test *t, const struct translator_class *class, ...) __attribute__((sentinel));
/* A graph from the text of a volume file; the test fails when it is refused. */
void test_build(struct test *t, const char *text);
/* The same, 0 or the errno; the sentence is in t->err. */
int test_try_build(struct test *t, const char *text);
/* Starts the graph and makes root, dir, file, new_inode, fd and dir_fd. */
FIBER void test_start(struct test *t);

FIBER int test_call(struct test *t, const struct request *q);
/* test_op(t, OP_READ, .inode = t->file, .size = 10): asks the root, the reply is in t->r. */
#define test_op(t, op_, ...) test_call((t), &(struct request) { .op = (op_), __VA_ARGS__ })

/* All lines logged so far; freed with the test. */
const char *test_log(struct test *t);
#define assert_logged(t, part)                                                 \
    do {                                                                       \
        if (!strstr(test_log(t), (part)))                                      \
            fail_msg("not in the log: %s\n--- log:\n%s", (part), test_log(t)); \
    } while (0)
#define assert_not_logged(t, part)                                                       \
    do {                                                                                 \
        if (strstr(test_log(t), (part)))                                                 \
            fail_msg("should not be in the log: %s\n--- log:\n%s", (part), test_log(t)); \
    } while (0)

/* gfid 00000000-0000-0000-0000-0000000000NN */
struct gfid test_gfid(uint8_t n);

/* Between test_graph.c and test_sim.c. */
struct test_run {
    struct test *t;
    test_fn fn;
};
void test_open(struct test *t);
void test_run(void *run);
void test_close(struct test *t);
