/* features/{worm, leases, upcall, marker, quota, bitrot-stub, changelog, trash, namespace, sdfs} - present in every
 * brick's volume file, switched off unless asked for.
 *
 * While switched off they pass everything through. Switching one on is refused with a sentence, at start and at a live
 * change, because pretending would lose what the feature promises. All options are known and checked. */
#include "graph/translator.h"

struct switched_off { /* checked, not used; several options share a field */
    bool flag;
    uint32_t number, seconds, choice;
    uint64_t size_bytes;
    double percent;
};

struct refusal {
    const char *type, *key, *sentence;
};

static const struct refusal refusals[] = {
    { "features/worm", "worm", "write-once volumes are not there yet; switch features.worm off" },
    { "features/worm", "worm-file-level", "write-once files are not there yet; switch features.worm-file-level off" },
    { "features/leases", "leases", "leases for SMB and NFS servers are not there yet; switch features.leases off" },
    { "features/upcall", "cache-invalidation",
      "cache invalidation is not there yet; switch features.cache-invalidation off" },
    { "features/marker", "quota", "quota accounting is not there yet; switch features.quota off" },
    { "features/marker", "inode-quota", "quota accounting is not there yet; switch features.inode-quota off" },
    { "features/marker", "xtime", "geo-replication is not there yet; switch geo-replication.indexing off" },
    { "features/quota", "server-quota", "quotas are not there yet; switch features.quota off" },
    { "features/quota", "enable", "quotas are not there yet; switch features.quota off" },
    { "features/bitrot-stub", "bitrot", "bit rot detection is not there yet; switch features.bitrot off" },
    { "features/changelog", "changelog", "the change log is not there yet; switch changelog.changelog off" },
    { "features/trash", "trash", "the trash directory is not there yet; switch features.trash off" },
    { "features/namespace", "tag-namespaces",
      "tagging requests with a name space is not there yet; switch features.tag-namespaces off" },
};

static int refuse_if_on(const struct refusal *refusal, const char *value, struct error *err)
{
    bool is_on;

    if (parse_bool(value, &is_on) < 0)
        return error_set(err, -EINVAL, "\"%.64s\" is not on or off (option \"%s\")", value, refusal->key);
    if (is_on)
        return error_set(err, -ENOTSUP, "option \"%s %.16s\" is refused: %s", refusal->key, value, refusal->sentence);
    return 0;
}

static int switched_off_option(struct translator *me, const char *key, const char *value, struct error *err)
{
    for (unsigned i = 0; i < ARRAY_SIZE(refusals); i++) {
        if (strcmp(refusals[i].type, me->class->type) == 0 && strcmp(refusals[i].key, key) == 0)
            return refuse_if_on(&refusals[i], value, err);
    }
    return 0;
}

#define SWITCH(name_)       OPT_ANY(name_, .live = true)
#define TEXT(name_)         OPT_ANY(name_, .live = true)
#define FLAG(name_, def_)   OPT_BOOL(name_, struct switched_off, flag, .def = (def_), .live = true)
#define NUMBER(name_, def_) OPT_U32(name_, struct switched_off, number, .def = (def_), .live = true)
#define SECONDS(name_, def_, ...) \
    OPT_TIME(name_, struct switched_off, seconds, .def = (def_), .live = true, __VA_ARGS__)
#define CHOICE(name_, def_, list_) OPT_ENUM(name_, struct switched_off, choice, list_, .def = (def_), .live = true)

static const char *const retention_modes[] = { "relax", "enterprise", NULL };
static const char *const op_modes[] = { "realtime", NULL };
static const char *const encodings[] = { "ascii", "binary", NULL };

static const struct option worm_options[] = {
    SWITCH("worm"),
    SWITCH("worm-file-level"),
    FLAG("worm-files-deletable", "on"),
    SECONDS("default-retention-period", "120"),
    CHOICE("retention-mode", "relax", retention_modes),
    SECONDS("auto-commit-period", "180"),
    OPT_END,
};

static const struct option leases_options[] = {
    SWITCH("leases"),
    NUMBER("lease-lock-recall-timeout", "60"),
    OPT_END,
};

static const struct option upcall_options[] = {
    SWITCH("cache-invalidation"),
    NUMBER("cache-invalidation-timeout", "60"),
    OPT_END,
};

static const struct option marker_options[] = {
    TEXT("volume-uuid"), TEXT("timestamp-file"),    SWITCH("quota"),       SWITCH("inode-quota"),
    SWITCH("xtime"),     TEXT("gsync-force-xtime"), TEXT("quota-version"), OPT_END,
};

static const struct option quota_options[] = {
    SWITCH("enable"),
    FLAG("deem-statfs", "on"),
    SWITCH("server-quota"),
    OPT_PERCENT("default-soft-limit", struct switched_off, percent, .def = "80%", .live = true),
    SECONDS("soft-timeout", "60", .max = 1800),
    SECONDS("hard-timeout", "5", .max = 60),
    TEXT("volume-uuid"),
    SECONDS("alert-time", "86400", .max = 604800),
    TEXT("limit-set"),
    OPT_END,
};

static const struct option bitrot_stub_options[] = {
    SWITCH("bitrot"),
    TEXT("export"),
    OPT_END,
};

static const struct option changelog_options[] = {
    SWITCH("changelog"),
    FLAG("changelog-notification", "off"),
    TEXT("changelog-brick"),
    TEXT("changelog-dir"),
    CHOICE("op-mode", "realtime", op_modes),
    CHOICE("encoding", "ascii", encodings),
    SECONDS("rollover-time", "15"),
    SECONDS("fsync-interval", "5"),
    SECONDS("changelog-barrier-timeout", "120"),
    FLAG("capture-del-path", "off"),
    OPT_END,
};

static const struct option trash_options[] = {
    SWITCH("trash"),
    TEXT("trash-dir"),
    TEXT("trash-eliminate-path"),
    OPT_SIZE("trash-max-filesize", struct switched_off, size_bytes, .def = "5MB", .max = 1073741824, .live = true),
    FLAG("trash-internal-op", "off"),
    TEXT("brick-path"),
    OPT_END,
};

static const struct option namespace_options[] = {
    SWITCH("tag-namespaces"),
    OPT_END,
};

/* sdfs made operations on one name wait for each other; storage here does that by itself. */
static const struct option sdfs_options[] = {
    FLAG("pass-through", "true"),
    OPT_END,
};

#define SWITCHED_OFF_CLASS(name_, type_, options_) \
    const struct translator_class name_ = {        \
        .type = type_,                             \
        .state_size = sizeof(struct switched_off), \
        .options = options_,                       \
        .children_min = 1,                         \
        .children_max = 1,                         \
        .any_option = switched_off_option,         \
    }

SWITCHED_OFF_CLASS(worm_class, "features/worm", worm_options);
SWITCHED_OFF_CLASS(leases_class, "features/leases", leases_options);
SWITCHED_OFF_CLASS(upcall_class, "features/upcall", upcall_options);
SWITCHED_OFF_CLASS(marker_class, "features/marker", marker_options);
SWITCHED_OFF_CLASS(quota_class, "features/quota", quota_options);
SWITCHED_OFF_CLASS(bitrot_stub_class, "features/bitrot-stub", bitrot_stub_options);
SWITCHED_OFF_CLASS(changelog_class, "features/changelog", changelog_options);
SWITCHED_OFF_CLASS(trash_class, "features/trash", trash_options);
SWITCHED_OFF_CLASS(namespace_class, "features/namespace", namespace_options);
SWITCHED_OFF_CLASS(sdfs_class, "features/sdfs", sdfs_options);
