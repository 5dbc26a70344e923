/* Changes: options of a volume, and of the cluster. */
#include "core/mem.h"
#include "core/option.h"
#include "mgmt/change_internal.h"
#include "mgmt/keys.h"
#include <errno.h>
#include <stdlib.h>
#include <strings.h>

static int unknown_key(const char *name, struct error *err)
{
    const char *near = volume_key_nearest(name);

    return near ? error_set(err, -EINVAL, "option : %s does not exist\nDid you mean %s?", name, near)
                : error_set(err, -EINVAL, "option : %s does not exist", name);
}

/* Keys that are switched by a command of their own. */
static int own_command(const char *key, struct error *err)
{
    static const struct {
        const char *key, *sentence;
    } rows[] = {
        { "cluster.granular-entry-heal",
          " 'gluster volume set <VOLNAME> cluster.granular-entry-heal {enable, disable}' is not supported. Use 'gluster "
          "volume heal <VOLNAME> granular-entry-heal {enable, disable}' instead." },
        { "features.quota",
          " 'gluster volume set <VOLNAME> features.quota <BOOL>' is deprecated. Use 'gluster volume quota "
          "<VOLNAME> <enable/disable>' instead." },
        { "features.inode-quota",
          " 'gluster volume set <VOLNAME> features.inode-quota <BOOL>' is deprecated. Use 'gluster "
          "volume inode-quota <VOLNAME> <enable/disable>' instead." },
        { "features.bitrot",
          " 'gluster volume set <VOLNAME> features.bitrot' is invalid command. Use 'gluster volume bitrot "
          "<VOLNAME> {enable|disable}' instead." },
        { "features.scrub",
          " 'gluster volume set <VOLNAME> features.scrub' is invalid command. Use 'gluster volume bitrot "
          "<VOLNAME> scrub {pause|resume}' instead." },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(rows[i].key, key) == 0)
            return error_set(err, -EINVAL, "%s", rows[i].sentence);
    }
    return 0;
}

static bool is_same_as_default(const struct volume_key *key, const char *value)
{
    bool given, wanted;

    if (!key->def)
        return false;
    if (key->kind == KEY_BOOL && parse_bool(value, &given) == 0 && parse_bool(key->def, &wanted) == 0)
        return given == wanted;
    return strcmp(value, key->def) == 0;
}

/* Translators that volumes do not have yet: their switch stays where it is, rather than be stored without effect. */
static int check_built(const struct volume_key *key, const char *value, struct error *err)
{
    static const char *const switches[] = { "features.shard",
                                            "features.uss",
                                            "features.worm",
                                            "features.trash",
                                            "features.read-only-delay",
                                            "features.sdfs",
                                            "features.leases",
                                            "features.tag-namespaces",
                                            "features.worm-file-level",
                                            "changelog.changelog",
                                            "network.compression",
                                            "features.cloudsync",
                                            "cluster.nufa",
                                            "cluster.switch",
                                            "geo-replication.indexing" };
    bool is_refused = key->effect == KEY_REFUSED;

    for (size_t i = 0; i < sizeof(switches) / sizeof(switches[0]); i++)
        is_refused = is_refused || strcmp(switches[i], key->name) == 0;
    if (!is_refused || is_same_as_default(key, value))
        return 0;
    return error_set(err, -EOPNOTSUPP, "option %s cannot be set to %s: this feature is not supported", key->name,
                     value);
}

static int check_kind(const struct volume *v, const struct volume_key *key, struct error *err)
{
    static const char *const mirrors[] = { "cluster.metadata-self-heal", "cluster.data-self-heal",
                                           "cluster.entry-self-heal", "cluster.shd-max-threads",
                                           "cluster.self-heal-daemon" };

    if (v->kind != VOLUME_DISPERSE && strncmp(key->name, "disperse.", 9) == 0)
        return error_set(err, -EINVAL, "Cannot set %s for a non-disperse volume.", key->name);
    for (size_t i = 0; v->kind != VOLUME_REPLICATE && i < sizeof(mirrors) / sizeof(mirrors[0]); i++) {
        if (strcmp(mirrors[i], key->name) == 0)
            return error_set(err, -EINVAL, "Cannot set %s for a non-replicate volume.", key->name);
    }
    if (strcmp(key->name, "nfs.disable") == 0)
        return 0;
    return 0;
}

static int check_op_version(const struct cluster *c, const char *value, struct error *err)
{
    unsigned long wanted = strtoul(value, NULL, 10);

    if (wanted > OP_VERSION_MAX)
        return error_set(err, -EINVAL, "Required op_version (%lu) is not supported. Max supported op version is %u",
                         wanted, OP_VERSION_MAX);
    if (wanted <= c->op_version)
        return error_set(err, -EINVAL,
                         "Required op-version (%lu) should not be equal or lower than current cluster op-version (%u).",
                         wanted, c->op_version);
    return 0;
}

int change_check_setting(const struct cluster *c, const struct volume *v, const char *name, const char *value,
                         struct error *err)
{
    const struct volume_key *key;
    int r;

    if (v && strncmp(name, "user.", 5) == 0)
        return strpbrk(name, " =\n") || strchr(value, '\n') ? error_set(err, -EINVAL, "option : %s is not a name", name)
                                                            : 0;
    key = volume_key_find(name);
    if (!key)
        return unknown_key(name, err);
    if (v && (key->flags & KEY_GLOBAL))
        return error_set(err, -EINVAL, "Not a valid option for single volume");
    if (!v && !(key->flags & KEY_GLOBAL))
        return error_set(err, -EINVAL, "Not a valid option for all volumes");
    if (key->op_version > c->op_version)
        return error_set(
            err, -EOPNOTSUPP,
            "One or more nodes do not support the required op-version. Cluster op-version must at least be %u.",
            key->op_version);
    r = own_command(key->name, err);
    r = r < 0 ? r : volume_key_check(key, value, err);
    r = r < 0 ? r : check_built(key, value, err);
    if (r == 0 && v)
        r = check_kind(v, key, err);
    if (r == 0 && strcmp(key->name, "cluster.op-version") == 0)
        r = check_op_version(c, value, err);
    return r;
}

static const char *full_name(const char *name)
{
    const struct volume_key *key = volume_key_find(name);

    return key ? key->name : name;
}

static int set_one(struct cluster *c, struct volume *v, const char *name, const char *value)
{
    const struct volume_key *key = volume_key_find(name);

    if (!v && strcmp(full_name(name), "cluster.op-version") == 0) {
        c->op_version = (uint32_t)strtoul(value, NULL, 10);
        return 0;
    }
    if (v && key) {
        v->op_version = MAX(v->op_version, key->op_version);
        if (key->flags & KEY_CLIENT)
            v->client_op_version = MAX(v->client_op_version, key->op_version);
    }
    return settings_set(v ? &v->settings : &c->settings, full_name(name), value);
}

/* The volume the change is about, NULL for the cluster's own options. */
static int find_target(const struct cluster *c, const json_t *change, struct volume **ret_volume, struct error *err)
{
    const char *name = change_text(change, "name", err);

    if (!name)
        return -EBADMSG;
    *ret_volume = NULL;
    return strcmp(name, "all") == 0 ? 0 : change_find_volume(c, change, ret_volume, err);
}

int change_volume_set(struct cluster *c, const json_t *change, struct error *err)
{
    const json_t *pairs = json_object_get(change, "pairs");
    struct volume *v = NULL;
    size_t i;
    json_t *pair;
    int r = find_target(c, change, &v, err);

    if (r < 0)
        return r;
    if (json_array_size(pairs) == 0)
        return error_set(err, -EBADMSG, "the change has no \"pairs\"");
    json_array_foreach(pairs, i, pair)
    {
        const char *key = json_string_value(json_array_get(pair, 0));
        const char *value = json_string_value(json_array_get(pair, 1));

        if (!key || !value)
            return error_set(err, -EBADMSG, "a pair is not two strings");
        r = change_check_setting(c, v, key, value, err);
        if (r < 0)
            return r;
    }
    json_array_foreach(pairs, i, pair)
    {
        r = set_one(c, v, json_string_value(json_array_get(pair, 0)), json_string_value(json_array_get(pair, 1)));
        if (r < 0)
            return r;
    }
    if (v)
        v->version++;
    else
        c->settings_version++;
    return 0;
}

/* Those that every new volume has come back with the value they had then. */
static const char *first_value(const struct volume *v, const char *key)
{
    if (strcmp(key, "storage.fips-mode-rchecksum") == 0 || strcmp(key, "nfs.disable") == 0)
        return "on";
    if (strcmp(key, "transport.address-family") == 0)
        return "inet";
    if (v->kind != VOLUME_REPLICATE)
        return NULL;
    return strcmp(key, "performance.client-io-threads") == 0 ? "off"
           : strcmp(key, "cluster.granular-entry-heal") == 0 ? "on"
                                                             : NULL;
}

static int reset_one(struct volume *v, const char *key)
{
    const char *again = first_value(v, key);

    if (again)
        return settings_set(&v->settings, key, again);
    (void)settings_reset(&v->settings, key); /* a key that was not set is as good as reset */
    return 0;
}

static bool may_reset(const char *name, bool is_forced)
{
    const struct volume_key *key = volume_key_find(name);

    return !key || (!(key->flags & KEY_FIXED) && (is_forced || !(key->flags & KEY_PROTECTED)));
}

static int reset_all(struct volume *v, bool is_forced)
{
    for (unsigned i = 0; i < v->settings.count;) {
        const char *key = v->settings.list[i].key;
        int r;

        if (!may_reset(key, is_forced) || first_value(v, key)) {
            i++;
            continue;
        }
        r = reset_one(v, key);
        if (r < 0)
            return r;
    }
    return 0;
}

int change_volume_reset(struct cluster *c, const json_t *change, struct error *err)
{
    const char *name = json_string_value(json_object_get(change, "key"));
    bool is_forced = change_flag(change, "force");
    struct volume *v = NULL;
    int r = find_target(c, change, &v, err);

    if (r < 0)
        return r;
    if (name && strncmp(name, "user.", 5) != 0 && !volume_key_find(name))
        return unknown_key(name, err);
    if (name && !may_reset(full_name(name), is_forced))
        return error_set(err, -EINVAL, "'%s' is protected. To reset use 'force'.", full_name(name));
    if (!v) {
        if (name)
            (void)settings_reset(&c->settings, full_name(name)); /* see reset_one */
        else
            settings_clear(&c->settings);
        c->settings_version++;
        return 0;
    }
    r = name ? reset_one(v, full_name(name)) : reset_all(v, is_forced);
    v->version++;
    return r;
}
