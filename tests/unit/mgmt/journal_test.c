/* The journal's files: what was stored is there again, a torn end is cut off, damage is told from it. */
#include "unit/graph/test_graph.h"
#include "core/mem.h"
#include "mgmt/journal.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct folder {
    char path[64];
};

static void folder_make(struct folder *f)
{
    (void)snprintf(f->path, sizeof(f->path), "/tmp/journal-XXXXXX");
    assert_non_null(mkdtemp(f->path));
}

static void folder_remove(struct folder *f)
{
    SCOPED_FREE char *command = mem_printf("rm -r %s", f->path);

    assert_int_equal(0, system(command));
}

static struct journal *opened(struct test *t, const struct folder *f)
{
    struct journal *j = NULL;
    struct error err = { "" };

    if (journal_open(t->env, f->path, &j, &err) < 0)
        fail_msg("%s", err.text);
    return j;
}

static struct journal_image loaded(struct journal *j)
{
    struct journal_image image;
    struct error err = { "" };

    if (journal_load(j, &image, &err) < 0)
        fail_msg("%s", err.text);
    return image;
}

static FIBER void append(struct journal *j, uint64_t index, const char *text)
{
    struct journal_entry e = { .index = index, .term = 3, .type = 1, .data = (void *)text, .size_bytes = strlen(text) };

    assert_int_equal(0, journal_append(j, &e, 1));
}

static void assert_entry(const struct journal_image *image, size_t i, uint64_t index, const char *text)
{
    assert_int_equal(index, image->entries[i].index);
    assert_int_equal(3, image->entries[i].term);
    assert_int_equal(strlen(text), image->entries[i].size_bytes);
    assert_memory_equal(text, image->entries[i].data, strlen(text));
}

static void store_three(struct test *t, struct folder *f)
{
    struct journal *j = opened(t, f);
    struct journal_image image = loaded(j);

    journal_image_clear(&image);
    append(j, 1, "one");
    append(j, 2, "two");
    append(j, 3, "three");
    journal_free(j);
}

FIBER_TEST(an_empty_folder_is_an_empty_journal)
{
    struct folder f;
    struct journal *j;
    struct journal_image image;

    folder_make(&f);
    j = opened(t, &f);
    image = loaded(j);
    assert_int_equal(0, image.term);
    assert_int_equal(0, image.entry_count);
    assert_int_equal(0, image.snapshot.index);
    journal_image_clear(&image);
    journal_free(j);
    folder_remove(&f);
}

FIBER_TEST(what_was_stored_is_there_again)
{
    struct folder f;
    struct journal *j;
    struct journal_image image;

    folder_make(&f);
    store_three(t, &f);
    j = opened(t, &f);
    image = loaded(j);
    journal_image_clear(&image);
    assert_int_equal(0, journal_set_vote(j, 7, 2));
    assert_int_equal(0, journal_truncate(j, 3));
    append(j, 3, "other");
    journal_free(j);
    j = opened(t, &f);
    image = loaded(j);
    assert_int_equal(7, image.term);
    assert_int_equal(2, image.vote);
    assert_int_equal(3, image.entry_count);
    assert_entry(&image, 0, 1, "one");
    assert_entry(&image, 2, 3, "other");
    journal_image_clear(&image);
    journal_free(j);
    folder_remove(&f);
}

FIBER_TEST(a_snapshot_takes_the_place_of_entries)
{
    struct journal_snapshot s = {
        .index = 2, .term = 3, .members_index = 1, .members = "m", .members_bytes = 1, .data = "state", .data_bytes = 5
    };
    struct journal_snapshot again;
    struct folder f;
    struct journal *j;
    struct journal_image image;

    folder_make(&f);
    store_three(t, &f);
    j = opened(t, &f);
    image = loaded(j);
    journal_image_clear(&image);
    assert_int_equal(0, journal_put_snapshot(j, &s, 3));
    assert_int_equal(0, journal_get_snapshot(j, &again));
    assert_memory_equal("state", again.data, 5);
    journal_snapshot_clear(&again);
    append(j, 4, "four");
    journal_free(j);
    j = opened(t, &f);
    image = loaded(j);
    assert_int_equal(2, image.snapshot.index);
    assert_int_equal(1, image.snapshot.members_index);
    assert_memory_equal("m", image.snapshot.members, 1);
    assert_int_equal(2, image.entry_count);
    assert_entry(&image, 1, 4, "four");
    journal_image_clear(&image);
    assert_int_equal(0, journal_erase(j));
    image = loaded(j);
    assert_int_equal(0, image.entry_count);
    assert_int_equal(0, image.snapshot.index);
    journal_image_clear(&image);
    journal_free(j);
    folder_remove(&f);
}

static size_t log_bytes(const struct folder *f)
{
    SCOPED_FREE char *path = mem_printf("%s/log", f->path);
    struct stat st;

    assert_int_equal(0, stat(path, &st));
    return (size_t)st.st_size;
}

static void cut_log(const struct folder *f, size_t size_bytes)
{
    SCOPED_FREE char *path = mem_printf("%s/log", f->path);

    assert_int_equal(0, truncate(path, (off_t)size_bytes));
}

static void flip_byte(const struct folder *f, const char *name, size_t at)
{
    SCOPED_FREE char *path = mem_printf("%s/%s", f->path, name);
    int fd = open(path, O_RDWR);
    char c;

    assert_true(fd >= 0);
    assert_int_equal(1, pread(fd, &c, 1, (off_t)at));
    c ^= 0x40;
    assert_int_equal(1, pwrite(fd, &c, 1, (off_t)at));
    close(fd);
}

FIBER_TEST(a_torn_end_is_cut_off_wherever_it_tore)
{
    struct folder f;
    size_t all_bytes;

    folder_make(&f);
    store_three(t, &f);
    all_bytes = log_bytes(&f);
    folder_remove(&f);
    for (size_t left = 0; left < all_bytes; left++) {
        struct journal *j;
        struct journal_image image;

        folder_make(&f);
        store_three(t, &f);
        cut_log(&f, left);
        j = opened(t, &f);
        image = loaded(j);
        assert_true(image.entry_count < 3);
        append(j, image.entry_count + 1, "next");
        journal_image_clear(&image);
        journal_free(j);
        j = opened(t, &f);
        image = loaded(j);
        assert_entry(&image, image.entry_count - 1, image.entry_count, "next");
        journal_image_clear(&image);
        journal_free(j);
        folder_remove(&f);
    }
}

/* A flipped bit before what was durable when the last entry was written. */
FIBER_TEST(damage_of_what_was_durable_is_reported)
{
    struct folder f;
    size_t safe_bytes;

    folder_make(&f);
    store_three(t, &f);
    safe_bytes = log_bytes(&f) - 16 - 28 - 5;
    folder_remove(&f);
    for (size_t at = 0; at < safe_bytes; at += 3) {
        struct journal *j;
        struct journal_image image;
        struct error err = { "" };

        folder_make(&f);
        store_three(t, &f);
        flip_byte(&f, "log", at);
        j = opened(t, &f);
        assert_int_equal(-EBADMSG, journal_load(j, &image, &err));
        assert_non_null(strstr(err.text, "is damaged. Restore the folder"));
        journal_image_clear(&image);
        journal_free(j);
        folder_remove(&f);
    }
}

FIBER_TEST(a_damaged_vote_is_reported)
{
    struct folder f;
    struct journal *j;
    struct journal_image image;
    struct error err = { "" };

    folder_make(&f);
    j = opened(t, &f);
    assert_int_equal(0, journal_set_vote(j, 1, 1));
    journal_free(j);
    flip_byte(&f, "vote", 20);
    j = opened(t, &f);
    assert_int_equal(-EBADMSG, journal_load(j, &image, &err));
    assert_non_null(strstr(err.text, "the vote is damaged"));
    journal_image_clear(&image);
    journal_free(j);
    folder_remove(&f);
}

FIBER_TEST(a_folder_that_cannot_be_made_is_reported)
{
    struct journal *j = NULL;
    struct error err = { "" };

    assert_int_equal(-ENOENT, journal_open(t->env, "/nonexistent/folder", &j, &err));
    assert_string_equal("/nonexistent/folder cannot be made: No such file or directory", err.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_folder_is_an_empty_journal),
        cmocka_unit_test(what_was_stored_is_there_again),
        cmocka_unit_test(a_snapshot_takes_the_place_of_entries),
        cmocka_unit_test(a_torn_end_is_cut_off_wherever_it_tore),
        cmocka_unit_test(damage_of_what_was_durable_is_reported),
        cmocka_unit_test(a_damaged_vote_is_reported),
        cmocka_unit_test(a_folder_that_cannot_be_made_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
