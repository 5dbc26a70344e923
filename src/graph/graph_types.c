/* Translator types: those of the program, and those that GlusterFS 1.3 to 11 knew and what to use for them. */
#include "graph/graph_internal.h"
#include "graph/nearest.h"

struct old_type {
    const char *type;
    const char *advice;   /* completes "... is not there: " */
    bool changes_nothing; /* the graph answers the same without it: pass through */
};

#define CACHE "it makes nothing faster here; leave the section out"

/* docs: the volume-file reference, "translator type names through the ages". Types that this program has are found in
 * the class list first; they stand here for programs that are linked without them. */
static const struct old_type old_types[] = {
    { "cluster/afr", "use cluster/replicate in mortarfs", false },
    { "cluster/replicate", "use mortarfs, which has it", false },
    { "cluster/unify", "use cluster/distribute over the same subvolumes, without namespace and scheduler", false },
    { "cluster/stripe", "GlusterFS removed it in 6.0; use cluster/distribute", false },
    { "cluster/dht", "use cluster/distribute in mortarfs", false },
    { "cluster/distribute", "use mortarfs, which has it", false },
    { "cluster/nufa", "use cluster/distribute", false },
    { "cluster/switch", "use cluster/distribute", false },
    { "cluster/ha", "GlusterFS removed it in 3.12; use cluster/replicate, or one protocol/client", false },
    { "cluster/map", "GlusterFS removed it in 3.12; use cluster/distribute", false },
    { "cluster/pump", "GlusterFS removed it; replace a brick by adding the new one to cluster/replicate", false },
    { "cluster/ec", "erasure coding is not there yet; use cluster/replicate", false },
    { "cluster/disperse", "erasure coding is not there yet; use cluster/replicate", false },
    { "cluster/tier", "GlusterFS removed it in 6.0; use cluster/distribute over the cold subvolumes", false },
    { "debug/trace", "use mortarfs, which has it", false },
    { "debug/error-gen", "use mortarfs, which has it", false },
    { "debug/io-stats", "use mortarfs, which has it", false },
    { "debug/sink", "it swallowed everything for tests; use debug/error-gen", false },
    { "debug/delay-gen", "use mortarfs, which has it", false },
    { "encryption/rot-13",
      "GlusterFS removed it in 6.0; it protected nothing, leave the section out and rewrite the data", false },
    { "encryption/crypt",
      "GlusterFS removed it in 6.0; copy the data out with that release, then encrypt the disks under "
      "the bricks",
      false },
    { "playground/rot-13", "it protects nothing; leave the section out and rewrite the data", false },
    { "playground/template", "it is an empty example; leave the section out", false },
    { "features/filter", "GlusterFS removed it in 3.12; use features/read-only, or root-squash of protocol/server",
      false },
    { "features/fixed-id", "GlusterFS removed it in 1.4; use all-squash, anonuid and anongid of protocol/server",
      false },
    { "features/posix-locks", "use features/locks in mortarfs", false },
    { "features/locks", "use mortarfs, which has it", false },
    { "features/trash", "use mortarfs, which has it", false },
    { "features/path-converter", "GlusterFS removed it in 3.12; mount a sub-directory instead", false },
    { "features/quota", "use mortarfs, which has it", false },
    { "features/access-control", "use mortarfs, which has it", false },
    { "system/posix-acl", "use features/access-control in mortarfs", false },
    { "features/mac-compat", "GlusterFS removed it in 3.12; leave the section out", false },
    { "features/quiesce", "use mortarfs, which has it", false },
    { "features/read-only", "use mortarfs, which has it", false },
    { "features/marker", "use mortarfs, which has it", false },
    { "features/index", "use mortarfs, which has it", false },
    { "features/worm", "use mortarfs, which has it", false },
    { "features/changelog", "use mortarfs, which has it", false },
    { "features/gfid-access", "access by gfid is not there yet; leave the section out", false },
    { "features/cdc", "compression on the wire is not there yet; leave the section out on both sides", false },
    { "features/compress", "compression on the wire is not there yet; leave the section out on both sides", false },
    { "features/quotad", "quotas are not there yet; switch them off", false },
    { "features/glupy", "GlusterFS removed it in 6.0; leave the section out", false },
    { "features/qemu-block", "GlusterFS removed it in 3.12; use image files on the mount", false },
    { "features/prot_client", "GlusterFS removed it in 3.12; leave the section out", false },
    { "features/prot_server", "GlusterFS removed it in 3.12; leave the section out", false },
    { "features/prot_dht", "GlusterFS removed it in 3.12; use cluster/distribute", false },
    { "features/arbiter", "use mortarfs, which has it", false },
    { "features/barrier", "use mortarfs, which has it", false },
    { "features/bit-rot", "bit rot detection is not there yet; switch it off", false },
    { "features/bitrot-stub", "use mortarfs, which has it", false },
    { "features/changetimerecorder", "GlusterFS removed it in 6.0 together with cluster/tier; leave the section out",
      false },
    { "features/ganesha", "GlusterFS removed it in 4.0; leave the section out and export with nfs-ganesha", false },
    { "features/shard", "sharding is not there yet; switch it off for volumes without sharded files", false },
    { "features/snapview-client", "user-visible snapshots are not there yet; switch features.uss off", false },
    { "features/snapview-server", "user-visible snapshots are not there yet; switch features.uss off", false },
    { "features/upcall", "use mortarfs, which has it", false },
    { "features/leases", "use mortarfs, which has it", false },
    { "features/selinux", "use mortarfs, which has it", false },
    { "features/sdfs", "use mortarfs, which has it", false },
    { "features/cloudsync", "archiving to cloud storage is not there; switch features.cloudsync off", false },
    { "features/namespace", "use mortarfs, which has it", false },
    { "features/utime", "use mortarfs, which has it", false },
    { "features/metadisp", "GlusterFS never built it by default; leave the section out", false },
    { "features/simple-quota", "quotas are not there yet; switch them off", false },
    { "mgmt/glusterd", "it is no part of a file system; start mortard for management", false },
    { "mount/fuse", "leave the section out: mortarfs puts it on top by itself", false },
    { "mount/api", "leave the section out: the library puts it on top by itself", false },
    { "nfs/server", "the built-in NFS server is gone; export the mount with nfs-ganesha", false },
    { "performance/read-ahead", CACHE, true },
    { "performance/write-behind", CACHE, true },
    { "performance/io-threads", CACHE, true },
    { "performance/io-cache", CACHE, true },
    { "performance/stat-prefetch", CACHE, true },
    { "performance/symlink-cache", CACHE, true },
    { "performance/quick-read", CACHE, true },
    { "performance/md-cache", CACHE, true },
    { "performance/open-behind", CACHE, true },
    { "performance/readdir-ahead", CACHE, true },
    { "performance/nl-cache", CACHE, true },
    { "performance/decompounder", CACHE, true },
    { "testing/performance/symlink-cache", CACHE, true },
    { "testing/features/template", "it is an empty example; leave the section out", false },
    { "protocol/client", "use mortarfs, which has it", false },
    { "protocol/server", "use mortarfs, which has it", false },
    { "protocol/legacy-client", "GlusterFS removed it in 3.4; use protocol/client", false },
    { "protocol/legacy-server", "GlusterFS removed it in 3.4; use protocol/server", false },
    { "storage/posix", "use mortarfs, which has it", false },
    { "storage/bdb", "GlusterFS removed it in 3.4; copy the files to a directory and use storage/posix", false },
    { "storage/bd", "GlusterFS removed it in 6.0; copy the volumes to files and use storage/posix", false },
    { "storage/bd_map", "GlusterFS removed it; copy the volumes to files and use storage/posix", false },
    { "meta", "leave the section out: the client puts it on top by itself", false },
};

static const struct translator_class passthrough_class = {
    .type = "performance (left out)",
    .children_min = 1,
    .children_max = 1,
};

const struct translator_class *class_find(class_list classes, const char *type)
{
    for (; *classes; classes++) {
        const struct translator_class *class = *classes;
        if (strcmp(class->type, type) == 0)
            return class;
        for (unsigned i = 0; i < ARRAY_SIZE(class->aliases) && class->aliases[i]; i++) {
            if (strcmp(class->aliases[i], type) == 0)
                return class;
        }
    }
    return NULL;
}

/* The program's own types first, then the old ones: all are names a person may have meant. */
static const char *type_at(const void *arg, unsigned i)
{
    class_list classes = arg;

    for (; *classes; classes++) {
        if (i-- == 0)
            return (*classes)->type;
        for (unsigned k = 0; k < ARRAY_SIZE((*classes)->aliases) && (*classes)->aliases[k]; k++) {
            if (i-- == 0)
                return (*classes)->aliases[k];
        }
    }
    return i < ARRAY_SIZE(old_types) ? old_types[i].type : NULL;
}

const struct translator_class *class_for_old_type(class_list classes, const char *type, const char *section,
                                                  const char *where, const char **ret_advice, struct error *err)
{
    for (unsigned i = 0; i < ARRAY_SIZE(old_types); i++) {
        if (strcmp(old_types[i].type, type) != 0)
            continue;
        if (old_types[i].changes_nothing) {
            *ret_advice = old_types[i].advice;
            return &passthrough_class;
        }
        error_set(err, -EINVAL, "%s: type \"%s\" of section \"%.64s\" is not there: %s", where, type, section,
                  old_types[i].advice);
        return NULL;
    }
    const char *near = nearest_name(type, type_at, classes);
    error_set(err, -EINVAL, "%s: found type \"%.64s\" in section \"%.64s\", expected a known type%s%s%s", where, type,
              section, near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "");
    return NULL;
}
