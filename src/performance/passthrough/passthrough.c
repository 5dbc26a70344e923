/* performance/{md-cache, quick-read, open-behind, io-cache, readdir-ahead, nl-cache} - known, and not needed.
 *
 * Volume files from GlusterFS name these caches. Here the kernel's caches do their work, so they pass everything
 * through; their options are known and checked, and one INFO line says that the section does nothing. */
#include "graph/translator.h"

struct passthrough { /* checked, not used; several options share a field */
    bool flag;
    uint32_t number, seconds;
    uint64_t size_bytes;
};

#define FLAG(name_, def_)        OPT_BOOL(name_, struct passthrough, flag, .def = (def_), .live = true)
#define NUMBER(name_, def_, ...) OPT_U32(name_, struct passthrough, number, .def = (def_), .live = true, __VA_ARGS__)
#define SIZE(name_, def_, ...)   OPT_SIZE(name_, struct passthrough, size_bytes, .def = (def_), .live = true, __VA_ARGS__)
#define SECONDS(name_, def_)     OPT_TIME(name_, struct passthrough, seconds, .def = (def_), .live = true)
#define TEXT(name_)              OPT_ANY(name_, .live = true)
#define FLAG_OF_SELF(name_)      FLAG(name_, "off")
#define PASS_THROUGH             FLAG("pass-through", "false")

static const struct option md_cache_options[] = {
    FLAG_OF_SELF("md-cache"),
    FLAG("stat-prefetch", "off"),
    FLAG("cache-selinux", "false"),
    FLAG("cache-capability-xattrs", "true"),
    FLAG("cache-ima-xattrs", "true"),
    FLAG("cache-swift-metadata", "false"),
    FLAG("cache-samba-metadata", "false"),
    FLAG("cache-posix-acl", "false"),
    FLAG("cache-glusterfs-acl", "false"),
    NUMBER("md-cache-timeout", "1", .max = 600),
    FLAG("force-readdirp", "true"),
    FLAG("cache-invalidation", "false"),
    FLAG("global-cache-invalidation", "true"),
    FLAG("md-cache-statfs", "off"),
    TEXT("xattr-cache-list"),
    PASS_THROUGH,
    OPT_END,
};

static const struct option quick_read_options[] = {
    FLAG_OF_SELF("quick-read"),
    TEXT("priority"),
    SIZE("cache-size", "128MB"),
    NUMBER("cache-timeout", "1"),
    SIZE("max-file-size", "64KB", .max = 1024000),
    FLAG("quick-read-cache-invalidation", "false"),
    FLAG("ctime-invalidation", "false"),
    PASS_THROUGH,
    OPT_END,
};

static const struct option open_behind_options[] = {
    FLAG_OF_SELF("open-behind"),
    FLAG("use-anonymous-fd", "no"),
    FLAG("lazy-open", "yes"),
    FLAG("read-after-open", "yes"),
    PASS_THROUGH,
    OPT_END,
};

static const struct option io_cache_options[] = {
    FLAG_OF_SELF("io-cache"),
    TEXT("priority"),
    NUMBER("cache-timeout", "1", .aliases = { "force-revalidate-timeout" }, .max = 60),
    SIZE("cache-size", "32MB", .min = 4194304),
    SIZE("min-file-size", "0"),
    SIZE("max-file-size", "0"),
    SIZE("page-size", "128KB"),
    PASS_THROUGH,
    OPT_END,
};

static const struct option readdir_ahead_options[] = {
    FLAG_OF_SELF("readdir-ahead"),
    SIZE("rda-request-size", "131072", .min = 4096, .max = 131072),
    SIZE("rda-low-wmark", "4096", .max = 10485760),
    SIZE("rda-high-wmark", "128KB", .max = 104857600),
    SIZE("rda-cache-limit", "10MB"),
    FLAG("parallel-readdir", "off"),
    FLAG("performance.readdir-ahead", "off"),
    PASS_THROUGH,
    OPT_END,
};

static const struct option nl_cache_options[] = {
    FLAG_OF_SELF("nl-cache"),
    FLAG("nl-cache-positive-entry", "false"),
    SIZE("nl-cache-limit", "131072"),
    SECONDS("nl-cache-timeout", "60"),
    PASS_THROUGH,
    OPT_END,
};

static int passthrough_init(struct translator *me, struct error *err)
{
    TLOG(me, LOG_INFO, "passed-through", "%s does nothing here: the kernel's caches do its work", me->class->type);
    return 0;
}

#define PASSTHROUGH_CLASS(name_, type_, options_, ...) \
    const struct translator_class name_ = {            \
        .type = type_,                                 \
        .aliases = { __VA_ARGS__ },                    \
        .state_size = sizeof(struct passthrough),      \
        .options = options_,                           \
        .children_min = 1,                             \
        .children_max = 1,                             \
        .init = passthrough_init,                      \
    }

PASSTHROUGH_CLASS(md_cache_class, "performance/md-cache", md_cache_options, "performance/stat-prefetch");
PASSTHROUGH_CLASS(quick_read_class, "performance/quick-read", quick_read_options, NULL);
PASSTHROUGH_CLASS(open_behind_class, "performance/open-behind", open_behind_options, NULL);
PASSTHROUGH_CLASS(io_cache_class, "performance/io-cache", io_cache_options, NULL);
PASSTHROUGH_CLASS(readdir_ahead_class, "performance/readdir-ahead", readdir_ahead_options, NULL);
PASSTHROUGH_CLASS(nl_cache_class, "performance/nl-cache", nl_cache_options, NULL);
