/* features/index above a real brick: links on the disk, virtual directories, counts. */
#include "features/index/index.h"
#include "unit/storage/brick_fixture.h"
#include <dirent.h>
#include <stdio.h>

#define INDICES ".glusterfs/indices/"

static void push_index(struct brick_test *t)
{
    SCOPED(dict_unref) struct dict *options = dict_new();
    dict_set_str(options, "index-base", brick_path(t, ".glusterfs/indices"));
    dict_set_str(options, "xattrop-pending-watchlist", "trusted.afr.web-");
    assert_int_equal(0, graph_push(t->graph, &index_class, "web-index", options, &t->me, &t->err));
}

static void index_start(struct brick_test *t)
{
    t->push = push_index;
    brick_start(t, NULL);
}

static int change(struct brick_test *t, struct inode *inode, const char *key, int32_t by, struct dict *xdata)
{
    SCOPED(dict_unref) struct dict *x = dict_new();
    uint8_t bytes[12] = { 0 };
    put_be32(bytes, (uint32_t)by);
    dict_set_bin(x, key, bytes, sizeof bytes);
    return brick_op(t, OP_XATTROP, .inode = inode, .flags = XATTROP_ADD32, .xattrs = x, .xdata = xdata);
}

static uint64_t count(struct brick_test *t, const char *name)
{
    uint64_t v = 99;
    assert_int_equal(8, brick_op(t, OP_GETXATTR, .inode = t->root, .text = name));
    assert_int_equal(0, dict_get_uint(t->r->xattrs, name, &v));
    return v;
}

static struct inode *virtual_dir(struct brick_test *t, const char *name)
{
    struct gfid g;
    assert_int_equal(16, brick_op(t, OP_GETXATTR, .inode = t->root, .text = name));
    assert_int_equal(0, dict_get_gfid(t->r->xattrs, name, &g));
    return brick_inode(t, &g, S_IFDIR);
}

static bool has(struct brick_test *t, const char *kind, const char *name)
{
    return on_brick(t, brick_path(t, INDICES "%s/%s", kind, name) + strlen(t->dir) + 1);
}

#define G1 "11111111-2222-3333-4444-000000000001"
#define G2 "11111111-2222-3333-4444-000000000002"

BRICK_TEST(pending_counter_is_listed_until_zero)
{
    struct stat st;
    index_start(t);
    struct inode *f = brick_create(t, t->root, "a", GFID(1), NULL);
    assert_int_equal(0, count(t, "glusterfs.xattrop_index_count"));
    assert_int_equal(0, change(t, f, "trusted.afr.web-client-1", 1, NULL));
    assert_true(has(t, "xattrop", G1));
    assert_false(has(t, "dirty", G1));
    assert_int_equal(1, count(t, "glusterfs.xattrop_index_count"));
    assert_int_equal(0, stat(brick_path(t, INDICES "xattrop/" G1), &st));
    assert_int_equal(S_IFREG, st.st_mode);
    assert_int_equal(2, st.st_nlink);
    assert_int_equal(0, change(t, f, "trusted.afr.web-client-1", -1, NULL));
    assert_false(has(t, "xattrop", G1));
    assert_int_equal(0, count(t, "glusterfs.xattrop_index_count"));
}

BRICK_TEST(dirty_counter_has_a_list_of_its_own)
{
    index_start(t);
    struct inode *f = brick_create(t, t->root, "a", GFID(1), NULL);
    assert_int_equal(0, change(t, f, "trusted.afr.dirty", 1, NULL));
    assert_true(has(t, "dirty", G1));
    assert_false(has(t, "xattrop", G1));
    assert_int_equal(1, count(t, "glusterfs.xattrop_dirty_count"));
    assert_int_equal(0, change(t, f, "trusted.afr.dirty", -1, NULL));
    assert_false(has(t, "dirty", G1));
}

BRICK_TEST(reading_zeros_adds_nothing_and_shows_what_is_there)
{
    index_start(t);
    struct inode *f = brick_create(t, t->root, "a", GFID(1), NULL);
    assert_int_equal(0, change(t, f, "trusted.afr.web-client-1", 0, NULL));
    assert_false(has(t, "xattrop", G1));
    /* A counter that was set behind the index gets its entry at the next sight of it. */
    assert_int_equal(0, setxattr(brick_path(t, "a"), "trusted.afr.web-client-1", "\0\0\0\1\0\0\0\0\0\0\0\0", 12, 0));
    assert_int_equal(0, change(t, f, "trusted.afr.web-client-1", 0, NULL));
    assert_true(has(t, "xattrop", G1));
}

BRICK_TEST(unwatched_keys_are_not_listed)
{
    index_start(t);
    struct inode *f = brick_create(t, t->root, "a", GFID(1), NULL);
    assert_int_equal(0, change(t, f, "trusted.afr.other-client-1", 1, NULL));
    assert_int_equal(0, count(t, "glusterfs.xattrop_index_count"));
    assert_int_equal(0, change(t, f, "trusted.ec.dirty", 1, NULL));
    assert_true(has(t, "xattrop", G1));
}

BRICK_TEST(an_inode_that_is_gone_is_not_listed)
{
    index_start(t);
    struct inode *gone = brick_inode(t, GFID(1), 0);
    assert_int_equal(-ESTALE, change(t, gone, "trusted.afr.web-client-1", 1, NULL));
    assert_false(has(t, "xattrop", G1));
}

BRICK_TEST(entries_survive_a_restart_and_are_counted)
{
    index_start(t);
    struct inode *f = brick_create(t, t->root, "a", GFID(1), NULL);
    assert_int_equal(0, change(t, f, "trusted.afr.web-client-1", 1, NULL));
    struct inode *before = virtual_dir(t, "glusterfs.xattrop_index_gfid");
    struct gfid old = before->gfid;
    brick_stop(t);
    index_start(t);
    assert_int_equal(1, count(t, "glusterfs.xattrop_index_count"));
    assert_false(gfid_equal(&old, &virtual_dir(t, "glusterfs.xattrop_index_gfid")->gfid));
    f = brick_inode(t, GFID(1), S_IFREG);
    assert_int_equal(0, change(t, f, "trusted.afr.web-client-1", -1, NULL));
    assert_int_equal(0, count(t, "glusterfs.xattrop_index_count"));
    /* The base file of the first run has no links left: the next start removes it. */
    brick_stop(t);
    index_start(t);
    DIR *dir = opendir(brick_path(t, INDICES "xattrop"));
    unsigned files = 0;
    for (struct dirent *e; (e = readdir(dir));)
        files += e->d_name[0] != '.';
    closedir(dir);
    assert_int_equal(0, files);
}

BRICK_TEST(link_count_says_whether_anything_waits)
{
    SCOPED(dict_unref) struct dict *ask = dict_new();
    int64_t v;
    index_start(t);
    dict_set_str(ask, "link-count", "glusterfs.xattrop_index_count");
    struct inode *f = brick_create(t, t->root, "a", GFID(1), NULL);
    assert_int_equal(0, brick_lookup(t, t->root, "a", ask));
    assert_int_equal(0, dict_get_int(t->r->xdata, "link-count", &v));
    assert_int_equal(0, v);
    assert_int_equal(0, change(t, f, "trusted.afr.web-client-1", 1, NULL));
    assert_int_equal(-ENOENT, brick_lookup(t, t->root, "none", ask));
    assert_int_equal(0, dict_get_int(t->r->xdata, "link-count", &v));
    assert_int_equal(1, v);
    assert_int_equal(0, brick_op(t, OP_STAT, .inode = f, .xdata = ask));
    assert_int_equal(0, dict_get_int(t->r->xdata, "link-count", &v));
    assert_int_equal(1, v);
}

BRICK_TEST(virtual_directory_lists_and_removes)
{
    SCOPED(dict_unref) struct dict *types = dict_new();
    index_start(t);
    struct inode *f = brick_create(t, t->root, "a", GFID(1), NULL), *d = brick_mkdir(t, t->root, "d", GFID(2));
    assert_int_equal(0, change(t, f, "trusted.afr.web-client-1", 1, NULL));
    assert_int_equal(0, change(t, d, "trusted.afr.web-client-1", 1, NULL));
    struct inode *v = virtual_dir(t, "glusterfs.xattrop_index_gfid");
    assert_int_equal(0, brick_op(t, OP_LOOKUP, .inode = v));
    assert_true(S_ISDIR(t->r->stat.mode));
    assert_true(gfid_equal(&v->gfid, &t->r->stat.gfid));
    struct fd *fd = brick_fd(t, v, O_RDONLY);
    assert_int_equal(0, brick_op(t, OP_OPENDIR, .inode = v, .fd = fd));
    dict_set_int(types, "get-gfid-type", 1);
    assert_int_equal(2, brick_op(t, OP_READDIR, .inode = v, .fd = fd, .size = 65536, .xdata = types));
    for (int i = 0; i < 2; i++) {
        struct dir_entry *e = &t->r->entries->list[i];
        assert_int_equal(strcmp(e->name, G1) == 0 ? DT_REG : DT_DIR, e->type);
    }
    assert_true(t->r->entries->at_end);
    /* One at a time, by cookies. */
    assert_int_equal(1, brick_op(t, OP_READDIR, .inode = v, .fd = fd, .size = 70));
    uint64_t cookie = t->r->entries->list[0].offset;
    assert_int_equal(1, brick_op(t, OP_READDIR, .inode = v, .fd = fd, .size = 70, .offset = cookie));
    assert_int_equal(0, brick_op(t, OP_LOOKUP, .parent = v, .name = G1));
    assert_int_equal(-ENOENT, brick_op(t, OP_LOOKUP, .parent = v, .name = "no-gfid"));
    assert_int_equal(0, brick_op(t, OP_UNLINK, .parent = v, .name = G1));
    assert_int_equal(-ENOENT, brick_op(t, OP_UNLINK, .parent = v, .name = G1));
    assert_int_equal(1, count(t, "glusterfs.xattrop_index_count"));
    /* The node knows that its link is gone: the next change makes it again. */
    assert_int_equal(0, change(t, f, "trusted.afr.web-client-1", 1, NULL));
    assert_true(has(t, "xattrop", G1));
}

BRICK_TEST(changed_names_are_kept_per_directory)
{
    SCOPED(dict_unref) struct dict *add = dict_new();
    SCOPED(dict_unref) struct dict *drop = dict_new();
    index_start(t);
    struct inode *d = brick_mkdir(t, t->root, "d", GFID(2));
    dict_set_str(add, "glusterfs.xattrop-entry-create", "name one");
    dict_set_str(drop, "glusterfs.xattrop-entry-delete", "name one");
    assert_int_equal(0, change(t, d, "trusted.afr.web-client-1", 1, add));
    assert_true(has(t, "entry-changes", G2 "/name one"));
    struct inode *v = virtual_dir(t, "glusterfs.xattrop_entry_changes_gfid");
    assert_int_equal(0, brick_op(t, OP_LOOKUP, .parent = v, .name = G2));
    struct inode *names = brick_inode(t, &t->r->stat.gfid, S_IFDIR);
    struct fd *fd = brick_fd(t, names, O_RDONLY);
    assert_int_equal(0, brick_op(t, OP_OPENDIR, .inode = names, .fd = fd));
    assert_int_equal(1, brick_op(t, OP_READDIR, .inode = names, .fd = fd, .size = 65536));
    assert_string_equal("name one", t->r->entries->list[0].name);
    /* The counter is zero again and the name healed: all of it goes. */
    assert_int_equal(0, change(t, d, "trusted.afr.web-client-1", -1, drop));
    assert_false(has(t, "entry-changes", G2));
    assert_int_equal(-ENOENT, brick_op(t, OP_LOOKUP, .parent = v, .name = G2));
}

BRICK_TEST(healed_names_are_removed_through_the_virtual_directory)
{
    SCOPED(dict_unref) struct dict *add = dict_new();
    SCOPED(dict_unref) struct dict *purge = dict_new();
    index_start(t);
    struct inode *d = brick_mkdir(t, t->root, "d", GFID(2));
    dict_set_str(add, "glusterfs.xattrop-entry-create", "x");
    dict_set_int(purge, "glusterfs.xattrop-purge-index", 1);
    assert_int_equal(0, change(t, d, "trusted.afr.web-client-1", 1, add));
    struct inode *v = virtual_dir(t, "glusterfs.xattrop_entry_changes_gfid");
    assert_int_equal(0, brick_op(t, OP_LOOKUP, .parent = v, .name = G2));
    struct inode *names = brick_inode(t, &t->r->stat.gfid, S_IFDIR);
    assert_int_equal(0, brick_op(t, OP_UNLINK, .parent = names, .name = "x"));
    assert_int_equal(0, brick_op(t, OP_RMDIR, .parent = v, .name = G2));
    assert_int_equal(-ENOENT, brick_op(t, OP_RMDIR, .parent = v, .name = G2));
    /* A purge takes also what is not empty. */
    assert_int_equal(0, change(t, d, "trusted.afr.web-client-1", 1, add));
    assert_int_equal(0, change(t, d, "trusted.afr.web-client-1", -2, purge));
    assert_false(has(t, "entry-changes", G2));
    assert_int_equal(0, count(t, "glusterfs.xattrop_entry_changes_count"));
}

BRICK_TEST(a_name_that_is_a_path_is_refused)
{
    SCOPED(dict_unref) struct dict *add = dict_new();
    index_start(t);
    struct inode *d = brick_mkdir(t, t->root, "d", GFID(2));
    dict_set_str(add, "glusterfs.xattrop-entry-create", "../../x");
    assert_int_equal(-EINVAL, change(t, d, "trusted.afr.web-client-1", 1, add));
}

BRICK_TEST(a_listing_with_attributes_says_since_when)
{
    struct timespec now;
    index_start(t);
    struct inode *f = brick_create(t, t->root, "a", GFID(1), NULL);
    assert_int_equal(0, change(t, f, "trusted.afr.web-client-1", 1, NULL));
    struct inode *v = virtual_dir(t, "glusterfs.xattrop_index_gfid");
    struct fd *fd = brick_fd(t, v, O_DIRECTORY);
    assert_int_equal(0, brick_op(t, OP_OPENDIR, .inode = v, .fd = fd));
    assert_int_equal(1, brick_op(t, OP_READDIRP, .inode = v, .fd = fd, .size = 4096));
    assert_string_equal(G1, t->r->entries->list[0].name);
    env_wall_time(t->env, &now);
    assert_true(now.tv_sec - t->r->entries->list[0].stat.mtime <= 60);
    assert_true(gfid_is_null(&t->r->entries->list[0].stat.gfid));
}

static struct client *told;
static unsigned told_count;

static void note_heal(struct translator *me, unsigned child, const struct event *event)
{
    if (event->kind != EVENT_HEAL_NEEDED)
        return;
    told = event->client;
    told_count++;
}

static const struct translator_class ear_class = {
    .type = "test/ear", .children_min = 1, .children_max = 1, .notify = note_heal
};

static void push_index_and_ear(struct brick_test *t)
{
    SCOPED(dict_unref) struct dict *none = dict_new();
    push_index(t);
    assert_int_equal(0, graph_push(t->graph, &ear_class, "ear", none, &t->me, &t->err));
}

/* As a heal daemon lists what is pending. */
static void list_and_listen(struct brick_test *t)
{
    SCOPED(dict_unref) struct dict *listen = dict_new();
    struct inode *v = virtual_dir(t, "glusterfs.xattrop_index_gfid");
    struct fd *fd = brick_fd(t, v, O_DIRECTORY);
    dict_set_uint(listen, "mortar.heal-notice", 1);
    assert_int_equal(0, brick_op(t, OP_OPENDIR, .inode = v, .fd = fd));
    assert_true(brick_op(t, OP_READDIR, .inode = v, .fd = fd, .size = 4096, .xdata = listen) >= 0);
}

BRICK_TEST(who_lists_is_told_once_of_the_next_entry)
{
    told = NULL;
    told_count = 0;
    t->push = push_index_and_ear;
    brick_start(t, NULL);
    struct client *daemon = client_new(t->graph, "daemon", "daemon");
    struct inode *a = brick_create(t, t->root, "a", GFID(1), NULL), *b = brick_create(t, t->root, "b", GFID(2), NULL);
    t->call.client = daemon;
    assert_int_equal(0, change(t, a, "trusted.afr.web-client-1", 1, NULL));
    assert_int_equal(0, told_count); /* has not asked */
    list_and_listen(t);
    assert_int_equal(0, change(t, a, "trusted.afr.web-client-1", 1, NULL));
    assert_int_equal(0, told_count); /* is listed already */
    assert_int_equal(0, change(t, b, "trusted.afr.web-client-1", 1, NULL));
    assert_int_equal(1, told_count);
    assert_ptr_equal(daemon, told);
    assert_int_equal(0, change(t, b, "trusted.afr.web-client-1", -1, NULL));
    assert_int_equal(0, change(t, b, "trusted.afr.web-client-1", 1, NULL));
    assert_int_equal(1, told_count); /* once per listing */
    t->call.client = NULL;
    client_gone(daemon);
    client_unref(daemon);
}

BRICK_TEST(marks_that_a_client_left_are_told_when_it_goes)
{
    told_count = 0;
    t->push = push_index_and_ear;
    brick_start(t, NULL);
    struct client *daemon = client_new(t->graph, "daemon", "daemon"), *writer = client_new(t->graph, "w", "w");
    struct inode *a = brick_create(t, t->root, "a", GFID(1), NULL);
    t->call.client = daemon;
    list_and_listen(t);
    t->call.client = writer;
    assert_int_equal(0, change(t, a, "trusted.afr.dirty", 1, NULL));
    assert_int_equal(0, told_count); /* a mark of a change under way is no news */
    t->call.client = NULL;
    client_gone(writer);
    client_unref(writer);
    assert_int_equal(1, told_count);
    client_gone(daemon);
    client_unref(daemon);
}

#define T(name) cmocka_unit_test(name)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        T(pending_counter_is_listed_until_zero),
        T(dirty_counter_has_a_list_of_its_own),
        T(reading_zeros_adds_nothing_and_shows_what_is_there),
        T(unwatched_keys_are_not_listed),
        T(an_inode_that_is_gone_is_not_listed),
        T(entries_survive_a_restart_and_are_counted),
        T(link_count_says_whether_anything_waits),
        T(virtual_directory_lists_and_removes),
        T(changed_names_are_kept_per_directory),
        T(healed_names_are_removed_through_the_virtual_directory),
        T(a_name_that_is_a_path_is_refused),
        T(a_listing_with_attributes_says_since_when),
        T(who_lists_is_told_once_of_the_next_entry),
        T(marks_that_a_client_left_are_told_when_it_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
