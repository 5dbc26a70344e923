#include "core/error.h"
#include "core/log.h"
#include "core/mem.h"
#include "unit/unit.h"

#include <fcntl.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct log_file {
    char folder[64];
    char path[96];
    struct log *log;
};

static int set_up(void **state)
{
    struct log_file *f = NEW(struct log_file);

    strcpy(f->folder, "/tmp/mortar-log-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    snprintf(f->path, sizeof(f->path), "%s/x.log", f->folder);
    assert_int_equal(log_open(f->path, LOG_INFO, &f->log, NULL), 0);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct log_file *f = *state;

    log_close(f->log);
    unlink(f->path);
    rmdir(f->folder);
    mem_free(f);
    return 0;
}

/* The file's text in a buffer that the next call overwrites. */
static const char *text_of(const char *path)
{
    static char text[65536];
    int fd = open(path, O_RDONLY);
    ssize_t n = read(fd, text, sizeof(text) - 1);

    assert_true(n >= 0);
    close(fd);
    text[n] = '\0';
    return text;
}

static size_t count_lines(const char *text)
{
    size_t count = 0;

    for (; *text; text++)
        count += *text == '\n';
    return count;
}

static void a_line_has_time_level_event_place_and_text(void **state)
{
    struct log_file *f = *state;
    regex_t form;

    LOG(f->log, LOG_WARNING, "web-replicate-0", "child-down", "child=%s err=%s", "web-client-1", errno_name(-ENOTCONN));
    assert_int_equal(
        regcomp(&form,
                "^\\[20[0-9]{2}-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-6][0-9]\\.[0-9]{6} \\+0000\\] "
                "W \\[child-down\\] 0-web-replicate-0: child=web-client-1 err=ENOTCONN\n$",
                REG_EXTENDED | REG_NOSUB),
        0);
    assert_int_equal(regexec(&form, text_of(f->path), 0, NULL, 0), 0);
    regfree(&form);
}

static int evaluated;

static int evaluate(void)
{
    return ++evaluated;
}

static void what_is_off_is_not_even_evaluated(void **state)
{
    struct log_file *f = *state;

    LOG(f->log, LOG_DEBUG, "x", "e", "%d", evaluate());
    assert_int_equal(evaluated, 0);
    log_set_level(f->log, LOG_DEBUG);
    assert_int_equal(log_level(f->log), LOG_DEBUG);
    LOG(f->log, LOG_DEBUG, "x", "e", "%d", evaluate());
    assert_int_equal(evaluated, 1);
    assert_int_equal(count_lines(text_of(f->path)), 1);
}

static void an_event_is_one_line_of_limited_length(void **state)
{
    struct log_file *f = *state;
    SCOPED_FREE char *name = mem_zalloc(10001);

    LOG(f->log, LOG_ERROR, "x", "e", "path=%s", "a\nb\tc\x7f");
    assert_non_null(strstr(text_of(f->path), "path=a b c \n"));
    memset(name, 'n', 10000);
    LOG(f->log, LOG_ERROR, "x", "e2", "path=%s", name);
    assert_int_equal(count_lines(text_of(f->path)), 2);
    assert_true(strlen(text_of(f->path)) < 4096 + 200);
}

static void a_flood_of_one_event_is_limited_and_others_pass(void **state)
{
    struct log_file *f = *state;

    for (int i = 0; i < 1000; i++)
        LOG(f->log, LOG_INFO, "x", "flood", "i=%d", i);
    size_t lines = count_lines(text_of(f->path));
    assert_int_equal(lines, 20);
    LOG(f->log, LOG_INFO, "x", "other", "still heard");
    LOG(f->log, LOG_INFO, "y", "flood", "from elsewhere");
    assert_int_equal(count_lines(text_of(f->path)), 22);
}

static void reopen_writes_to_a_new_file_after_rotation(void **state)
{
    struct log_file *f = *state;
    char old[112];

    snprintf(old, sizeof(old), "%s.1", f->path);
    LOG(f->log, LOG_INFO, "x", "first", "1");
    assert_int_equal(rename(f->path, old), 0);
    assert_int_equal(log_reopen(f->log), 0);
    LOG(f->log, LOG_INFO, "x", "second", "2");
    assert_non_null(strstr(text_of(old), "[first]"));
    assert_non_null(strstr(text_of(f->path), "[second]"));
    unlink(old);
}

static void a_file_that_cannot_be_opened_is_an_error_with_its_name(void **state)
{
    struct log *l = NULL;
    struct error err;

    assert_int_equal(log_open("/nowhere/x.log", LOG_INFO, &l, &err), -ENOENT);
    assert_string_equal(err.text, "cannot open log file \"/nowhere/x.log\" (ENOENT); name another with --log-file");
    assert_null(l);
    for (uint64_t n = 1; n <= 2; n++) {
        mem_fail_at(n);
        assert_int_equal(log_open("/tmp/x", LOG_INFO, &l, &err), -ENOMEM);
        mem_fail_at(0);
    }
}

static void levels_have_names(void **state)
{
    enum log_level level = LOG_NONE;

    assert_int_equal(log_level_parse("warning", &level), 0);
    assert_int_equal(level, LOG_WARNING);
    assert_int_equal(log_level_parse("TRACE", &level), 0);
    assert_int_equal(level, LOG_TRACE);
    assert_int_equal(log_level_parse("loud", &level), -EINVAL);
    assert_string_equal(errno_name(ENOENT), "ENOENT");
    assert_string_equal(errno_name(-99999), "EUNKNOWN");
}

static void the_discarding_log_takes_everything_silently(void **state)
{
    LOG(log_discard(), LOG_CRITICAL, "x", "e", "%d", 1);
    log_set_level(log_discard(), LOG_TRACE);
    assert_int_equal(log_level(log_discard()), LOG_NONE);
    log_close(log_discard());
    log_close(NULL);
}

#define RUN(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(a_line_has_time_level_event_place_and_text),
        RUN(what_is_off_is_not_even_evaluated),
        RUN(an_event_is_one_line_of_limited_length),
        RUN(a_flood_of_one_event_is_limited_and_others_pass),
        RUN(reopen_writes_to_a_new_file_after_rotation),
        cmocka_unit_test(a_file_that_cannot_be_opened_is_an_error_with_its_name),
        cmocka_unit_test(levels_have_names),
        cmocka_unit_test(the_discarding_log_takes_everything_silently),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
