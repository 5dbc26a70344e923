/* cluster/replicate/counters.c - counters in dicts: keys, requests that ask for them, answers that hold them.
 *
 * Keys: "trusted.afr.<name of child>" and the dirty key; values of 12 bytes (docs/on-disk.md "replication counters").
 */
#include "cluster/replicate/replicate_internal.h"
#include "core/mem.h"

#define PENDING_PREFIX "trusted.afr."

static const char *const count_keys[] = { "glusterfs.inodelk-count", "glusterfs.entrylk-count",
                                          "glusterfs.parent-entrylk", "link-count" };

static int make_pending_keys(struct translator *me, struct error *err)
{
    struct replicate *s = replicate_of(me);
    const char *names = s->pending_names;
    const char *rest;

    for (unsigned i = 0; i < s->child_count; i++) {
        const char *name = me->children[i]->name;
        size_t len = strlen(name);

        if (names) {
            name = names;
            len = strcspn(names, ",");
            names += len + (names[len] == ',');
        }
        if (len == 0)
            return error_set(err, -EINVAL,
                             "%s: option afr-pending-xattr names fewer bricks than there are subvolumes (%u); give one "
                             "name per subvolume, in their order",
                             me->name, s->child_count);
        s->child[i].pending_key = mem_printf(PENDING_PREFIX "%.*s", (int)len, name);
        if (!s->child[i].pending_key)
            return -ENOMEM;
    }
    rest = names;
    if (rest && *rest && s->thin_arbiter && !strchr(rest, ',')) {
        s->witness_name = mem_strdup(rest);
        return s->witness_name ? 0 : -ENOMEM;
    }
    if (rest && *rest)
        return error_set(err, -EINVAL,
                         "%s: option afr-pending-xattr names more bricks than there are subvolumes (%u); give one name "
                         "per subvolume, in their order",
                         me->name, s->child_count);
    return 0;
}

int counters_init(struct translator *me, struct error *err)
{
    struct replicate *s = replicate_of(me);
    int r = make_pending_keys(me, err);

    if (r < 0)
        return r;
    s->ask = dict_new();
    s->zero_adds = counters_delta(s, CHANGE_DATA, 0, 0);
    if (!s->ask || !s->zero_adds)
        return -ENOMEM;
    for (unsigned i = 0; i < s->child_count && r == 0; i++)
        r = dict_set_uint(s->ask, s->child[i].pending_key, COUNTERS_BYTES);
    if (r == 0)
        r = dict_set_uint(s->ask, s->dirty_key, COUNTERS_BYTES);
    for (size_t i = 0; i < ARRAY_SIZE(count_keys) - 1 && r == 0; i++)
        r = dict_set_uint(s->ask, count_keys[i], 0);
    if (r == 0)
        r = dict_set_str(s->ask, "link-count", "glusterfs.xattrop_index_count");
    return r;
}

void counters_done(struct replicate *s)
{
    for (unsigned i = 0; i < CHILDREN_MAX; i++) {
        mem_free(s->child[i].pending_key);
        s->child[i].pending_key = NULL;
    }
    mem_free(s->witness_name);
    s->witness_name = NULL;
    if (s->ask)
        dict_unref(take(s->ask));
    if (s->zero_adds)
        dict_unref(take(s->zero_adds));
}

int counters_get(const struct dict *d, const char *key, struct counters *ret)
{
    const void *data;
    size_t size_bytes;
    int r = dict_get_bin(d, key, &data, &size_bytes);

    memset(ret, 0, sizeof(*ret));
    if (r == -ENOENT)
        return 0;
    if (r < 0)
        return r;
    return counters_parse(data, size_bytes, ret);
}

void counters_read(const struct replicate *s, enum change change, unsigned child, const struct dict *answer,
                   struct accusations *a)
{
    struct counters c;
    uint32_t blames = 0;
    bool is_dirty = counters_get(answer, s->dirty_key, &c) < 0 || c.n[change] != 0;

    for (unsigned j = 0; j < s->child_count; j++) {
        if (counters_get(answer, s->child[j].pending_key, &c) < 0)
            is_dirty = true;
        else if (c.n[change] != 0)
            blames |= bit(j);
    }
    accusations_add(a, child, blames, is_dirty);
}

int32_t counters_dirty(const struct replicate *s, enum change change, const struct dict *answer)
{
    struct counters c;

    return counters_get(answer, s->dirty_key, &c) < 0 ? 0 : c.n[change];
}

int counters_put(struct dict *d, const char *key, const struct counters *c)
{
    uint8_t bytes[COUNTERS_BYTES];

    counters_format(c, bytes);
    return dict_set_bin(d, key, bytes, sizeof(bytes));
}

static struct dict *make_delta(const struct replicate *s, enum change change, int32_t dirty, uint32_t blamed,
                               bool says_all_names)
{
    struct counters c = { 0 };
    struct dict *d = dict_new();
    int r = 0;

    if (!d)
        return NULL;
    for (unsigned j = 0; j < s->child_count && r == 0; j++) {
        c.n[change] = (blamed & bit(j)) != 0;
        if (says_all_names)
            c.n[CHANGE_DATA] = c.n[change];
        r = counters_put(d, s->child[j].pending_key, &c);
    }
    memset(&c, 0, sizeof(c));
    c.n[change] = dirty;
    if (r == 0)
        r = counters_put(d, s->dirty_key, &c);
    if (r == 0)
        return d;
    dict_unref(d);
    return NULL;
}

struct dict *counters_delta(const struct replicate *s, enum change change, int32_t dirty, uint32_t blamed)
{
    /* On a directory a data count means "heal all names", not only those recorded one by one. */
    return make_delta(s, change, dirty, blamed, change == CHANGE_ENTRY && s->granular_entry_heal);
}

struct dict *counters_delta_named(const struct replicate *s, enum change change, uint32_t blamed)
{
    return make_delta(s, change, 0, blamed, false);
}

struct dict *counters_new_inode(const struct replicate *s, uint32_t type, uint32_t missed)
{
    struct counters c = { 0 };
    struct dict *d = dict_new();
    int r = 0;

    if (!d)
        return NULL;
    c.n[CHANGE_METADATA] = 1;
    if (type == S_IFREG)
        c.n[CHANGE_DATA] = 1;
    if (type == S_IFDIR) {
        c.n[CHANGE_ENTRY] = 1;
        c.n[CHANGE_DATA] = s->granular_entry_heal;
    }
    for_each_child(j, missed)
    {
        if (r == 0)
            r = counters_put(d, s->child[j].pending_key, &c);
    }
    if (r == 0)
        return d;
    dict_unref(d);
    return NULL;
}

struct dict *counters_ask(const struct replicate *s, const struct dict *given)
{
    struct dict *d;

    if (dict_count(given) == 0)
        return dict_ref(s->ask);
    d = dict_copy(given);
    if (d && dict_merge(d, s->ask) == 0)
        return d;
    dict_unref(d);
    return NULL;
}

bool counters_is_key(const struct replicate *s, const char *name)
{
    return strncmp(name, PENDING_PREFIX, strlen(PENDING_PREFIX)) == 0 || strcmp(name, s->dirty_key) == 0;
}

static bool is_ours(const struct replicate *s, const struct dict *given, const char *key)
{
    if (counters_is_key(s, key))
        return true;
    for (size_t i = 0; i < ARRAY_SIZE(count_keys); i++) {
        if (strcmp(key, count_keys[i]) == 0)
            return !dict_has(given, key);
    }
    return false;
}

int counters_hide(const struct replicate *s, const struct dict *given, struct dict **xdata)
{
    const struct dict_value *value;
    struct dict *clean = NULL;
    const char *key;
    bool has_ours = false;
    size_t at = 0;
    int r = 0;

    while (!has_ours && dict_next(*xdata, &at, &key, &value))
        has_ours = is_ours(s, given, key);
    if (!has_ours)
        return 0;
    at = 0;
    while (r == 0 && dict_next(*xdata, &at, &key, &value)) {
        if (is_ours(s, given, key))
            continue;
        if (!clean)
            clean = dict_new();
        r = clean ? dict_set_value(clean, key, value) : -ENOMEM;
    }
    dict_unref(*xdata);
    *xdata = clean;
    if (r < 0 && clean) {
        dict_unref(clean);
        *xdata = NULL;
    }
    return r;
}
