/* cluster/replicate - the same files on every child.
 *
 * Promises its parent one file system as long as enough children live (quorum): a change that was answered is on enough
 * of them and recorded against the others before the answer; a read is served by a child whose copy is known to be
 * good. Needs from its children what storage behind locks and index offers (inodelk, entrylk, xattrop), and events for
 * up, down and contention. When a child fails, work goes on with the others. On-disk contract: docs/on-disk.md.
 */
#include "cluster/replicate/replicate_internal.h"
#include "cluster/replicate/replicate.h"
#include "core/mem.h"
#include "graph/graph.h"
#include <stdio.h>

enum quorum_option { QUORUM_OPTION_UNSET, QUORUM_OPTION_NONE, QUORUM_OPTION_AUTO, QUORUM_OPTION_FIXED };

static const char *const quorum_choices[] = { "unset", "none", "auto", "fixed", NULL };
static const char *const algorithm_choices[] = { "dynamic", "diff", "full", "reset", NULL };
static const char *const policy_choices[] = { "none", "size", "ctime", "mtime", "majority", NULL };
static const char *const open_choices[] = { "off", "1",  "on",    "yes",     "true", "enable",
                                            "0",   "no", "false", "disable", "open", NULL };

static const struct option replicate_options[] = {
    OPT_STR("read-subvolume", struct replicate, read_subvolume, .live = true,
            .help = "name of the child that serves reads while it is good"),
    OPT_I32("read-subvolume-index", struct replicate, read_subvolume_index, .def = "-1", .min = -1, .max = INT32_MAX,
            .live = true, .help = "number of that child, from 0; -1: none"),
    OPT_U32("read-hash-mode", struct replicate, read_hash_mode, .def = "1", .max = 5, .live = true,
            .help = "0 first good child, 1 hash of gfid, 2 hash of gfid and pid, 3 fewest reads, 4 lowest latency, 5 "
                    "reads times latency"),
    OPT_BOOL("choose-local", struct replicate, choose_local, .def = "true", .live = true,
             .help = "read from a brick on this host first"),
    OPT_U32("background-self-heal-count", struct replicate, background_heal_count, .def = "8", .max = 256, .live = true,
            .help = "heals a client runs at once"),
    OPT_U32("halo-shd-max-latency", struct replicate, halo_shd_max_latency_ms, .def = "99999", .min = 1, .max = 99999,
            .unit = "ms", .live = true),
    OPT_BOOL("halo-enabled", struct replicate, halo_enabled, .def = "false", .live = true),
    OPT_U32("halo-nfsd-max-latency", struct replicate, halo_nfsd_max_latency_ms, .def = "5", .min = 1, .max = 99999,
            .unit = "ms", .live = true),
    OPT_U32("halo-max-latency", struct replicate, halo_max_latency_ms, .def = "5", .min = 1, .max = 99999, .unit = "ms",
            .live = true),
    OPT_U32("halo-max-replicas", struct replicate, halo_max_replicas, .def = "99999", .min = 1, .max = 99999,
            .live = true),
    OPT_U32("halo-min-replicas", struct replicate, halo_min_replicas, .def = "2", .min = 1, .max = 99999, .live = true),
    OPT_U32("heal-wait-queue-length", struct replicate, heal_wait_queue_length, .def = "128", .max = 10000,
            .live = true, .help = "heals of a client that may wait for their turn"),
    { .type = OPTION_ENUM,
      .name = "data-self-heal",
      .offset = offsetof(struct replicate, data_self_heal_option),
      .def = "off",
      .choices = open_choices,
      .live = true,
      .help = "client starts data heal when it finds the need" },
    OPT_ENUM("data-self-heal-algorithm", struct replicate, data_heal_algorithm, algorithm_choices, .def = "dynamic",
             .live = true, .help = "diff copies blocks that differ, full copies all"),
    OPT_U32("data-self-heal-window-size", struct replicate, data_heal_window, .def = "8", .min = 1, .max = 1024,
            .live = true, .help = "blocks of 128 KiB healed at once"),
    OPT_U32("self-heal-share", struct replicate, heal_share, .def = "50", .min = 1, .max = 100, .unit = "%",
            .live = true,
            .help = "of the time that heal of a file may take for copying while clients are at work on the bricks"),
    OPT_BOOL("metadata-self-heal", struct replicate, metadata_self_heal, .def = "off", .live = true),
    OPT_BOOL("entry-self-heal", struct replicate, entry_self_heal, .def = "off", .live = true),
    OPT_BOOL("data-change-log", struct replicate, data_change_log, .def = "on", .live = true,
             .help = "accepted; changes are always recorded"),
    OPT_BOOL("metadata-change-log", struct replicate, metadata_change_log, .def = "on", .live = true,
             .help = "accepted; changes are always recorded"),
    OPT_BOOL("entry-change-log", struct replicate, entry_change_log, .def = "on", .live = true,
             .help = "accepted; changes are always recorded"),
    OPT_IGNORED("optimistic-change-log", .help = "the mark costs no round trip here, so it is always set"),
    OPT_IGNORED("inodelk-trace", .help = "use debug/trace"),
    OPT_IGNORED("entrylk-trace", .help = "use debug/trace"),
    OPT_IGNORED("pre-op-compat", .help = "marks travel in compounds or as calls of their own, as the brick can"),
    OPT_BOOL("eager-lock", struct replicate, eager_lock, .def = "on", .live = true,
             .help = "keep lock and mark over several changes"),
    OPT_BOOL("self-heal-daemon", struct replicate, self_heal_daemon, .def = "on", .live = true),
    OPT_BOOL("iam-self-heal-daemon", struct replicate, is_self_heal_daemon, .def = "off"),
    OPT_BOOL("iam-nfs-daemon", struct replicate, is_nfs_daemon, .def = "off"),
    OPT_ENUM("quorum-type", struct replicate, quorum_type_option, quorum_choices, .def = "unset", .live = true,
             .help = "auto: a majority must be up; fixed: quorum-count; none: one. Default auto for more than two; "
                     "with thin-arbiter all that the witness does not blame"),
    OPT_U32("quorum-count", struct replicate, quorum_count, .def = "0", .max = INT32_MAX, .live = true,
            .help = "children that must be up with quorum-type fixed"),
    OPT_IGNORED("quorum-reads", .help = "reads always need quorum"),
    OPT_STR("node-uuid", struct replicate, node_uuid),
    OPT_U32("post-op-delay-secs", struct replicate, post_op_delay_s, .def = "1", .max = INT32_MAX, .unit = "s",
            .live = true, .help = "how long lock and mark are kept after the last change"),
    OPT_SIZE("self-heal-readdir-size", struct replicate, heal_readdir_size_bytes, .def = "1KB", .min = 1024,
             .max = 131072, .live = true),
    OPT_BOOL("ensure-durability", struct replicate, ensure_durability, .def = "on", .live = true,
             .help = "data is on disk on all bricks before the mark that it may differ is taken off"),
    OPT_STR("afr-dirty-xattr", struct replicate, dirty_key, .def = "trusted.afr.dirty"),
    OPT_STR("afr-pending-xattr", struct replicate, pending_names,
            .help = "names under which the bricks record each other's missed changes, in the order of subvolumes"),
    OPT_BOOL("metadata-splitbrain-forced-heal", struct replicate, forced_metadata_heal, .def = "off", .live = true),
    OPT_U32("heal-timeout", struct replicate, heal_timeout_s, .def = "600", .min = 5, .max = INT32_MAX, .unit = "s",
            .live = true),
    OPT_BOOL("consistent-metadata", struct replicate, consistent_metadata, .def = "no", .live = true,
             .help = "no attributes in answers to writes"),
    OPT_BOOL("consistent-io", struct replicate, consistent_io, .def = "no", .live = true,
             .help = "refuse everything while a child is down (only without quorum)"),
    OPT_BOOL("verify-reads", struct replicate, verify_reads, .def = "on", .live = true,
             .help = "with each read ask, at the same time, as many other bricks as it takes to know that the one "
                     "read missed nothing: another client may be cut off from it"),
    OPT_U32("arbiter-count", struct replicate, arbiter_count, .def = "0", .max = 1,
            .help = "1: the last child holds names and attributes, no data"),
    OPT_STR("thin-arbiter", struct replicate, thin_arbiter,
            .help =
                "HOST:PATH of the witness: the last subvolume leads to it and remembers which of the two others may "
                "be stale, so that one of them can go on alone"),
    OPT_U32("shd-max-threads", struct replicate, shd_max_threads, .def = "16", .min = 1, .max = 64, .live = true,
            .help = "heals at once in a heal daemon; GlusterFS's default is 1"),
    OPT_U32("shd-wait-qlength", struct replicate, shd_wait_length, .def = "1024", .min = 1, .max = 655536,
            .live = true),
    OPT_IGNORED("locking-scheme", .help = "heal locks what it works on"),
    OPT_IGNORED("full-lock", .help = "a session always covers the whole file"),
    OPT_BOOL("granular-entry-heal", struct replicate, granular_entry_heal, .def = "no", .live = true,
             .help = "record the names a child missed, not only the directory"),
    OPT_ENUM("favorite-child-policy", struct replicate, favorite_child_policy, policy_choices, .def = "none",
             .live = true, .help = "how heal resolves a split brain by itself"),
    OPT_IGNORED("use-compound-fops", .help = "compounds are used with bricks that know them"),
    OPT_BOOL("use-anonymous-inode", struct replicate, anonymous_inode, .def = "no", .live = true),
    OPT_STR("volume-id", struct replicate, volume_id),
    OPT_END,
};

/* ---- quorum ---- */

static void choose_quorum(struct translator *me)
{
    struct replicate *s = replicate_of(me);

    s->quorum.child_count = s->child_count;
    s->quorum.fixed_count = s->quorum_count;
    switch (s->quorum_type_option) {
    case QUORUM_OPTION_NONE: s->quorum.type = QUORUM_NONE; break;
    case QUORUM_OPTION_AUTO: s->quorum.type = QUORUM_AUTO; break;
    case QUORUM_OPTION_FIXED: s->quorum.type = QUORUM_FIXED; break;
    default: s->quorum.type = s->child_count > 2 ? QUORUM_AUTO : QUORUM_NONE;
    }
    /* With a witness two copies need no rule of their own, unless they are to stand still with one. */
    if (s->witness && !(s->quorum.type == QUORUM_FIXED && s->quorum_count > 1))
        s->quorum.type = QUORUM_WITNESS;
    if (s->quorum.type == QUORUM_NONE && s->child_count > 1)
        TLOG(me, LOG_WARNING, "no-quorum",
             "children=%u: copies that change apart from each other end in split brain; use three replicas, an "
             "arbiter, a thin arbiter, or option quorum-type auto",
             s->child_count);
}

static int check_options(struct translator *me, struct error *err)
{
    struct replicate *s = replicate_of(me);

    if (s->quorum_type_option == QUORUM_OPTION_FIXED && (s->quorum_count < 1 || s->quorum_count > s->child_count))
        return error_set(err, -EINVAL,
                         "%s: option quorum-type fixed needs option quorum-count between 1 and %u, the number of "
                         "subvolumes",
                         me->name, s->child_count);
    if (s->arbiter_count && s->child_count < 3)
        return error_set(err, -EINVAL, "%s: option arbiter-count 1 needs at least three subvolumes, here are %u",
                         me->name, s->child_count);
    if (s->thin_arbiter && (me->child_count != 3 || s->arbiter_count))
        return error_set(err, -EINVAL,
                         "%s: option thin-arbiter needs three subvolumes: two bricks, then the thin arbiter; here are "
                         "%u%s",
                         me->name, me->child_count, s->arbiter_count ? ", one of them an arbiter" : "");
    if (s->halo_enabled)
        TLOG(me, LOG_WARNING, "halo-ignored", "halo-enabled=on: far children are written like near ones");
    for (unsigned i = 0; s->read_subvolume && i < s->child_count; i++) {
        if (strcmp(me->children[i]->name, s->read_subvolume) == 0)
            return 0;
    }
    if (s->read_subvolume)
        return error_set(err, -EINVAL, "%s: option read-subvolume names \"%s\", which is no subvolume here", me->name,
                         s->read_subvolume);
    return 0;
}

/* ---- life ---- */

static int replicate_init(struct translator *me, struct error *err)
{
    struct replicate *s = replicate_of(me);
    const uint8_t arbiter_byte = 0xff;
    int r;

    s->child_count = me->child_count - (s->thin_arbiter && me->child_count > 1);
    s->all = mask_all(s->child_count);
    s->heals_pending = s->all;
    s->generation = 1;
    s->choice_timeout_s = SPLIT_BRAIN_CHOICE_S;
    s->next_owner = env_random_u64(me->env);
    list_init(&s->sessions);
    list_init(&s->debts);
    list_init(&s->heals);
    waitq_init(&s->settled);
    r = check_options(me, err);
    if (r < 0)
        return r;
    if (s->arbiter_count)
        s->arbiter = bit(s->child_count - 1);
    s->arbiter_data = buf_copy(&arbiter_byte, 1);
    if (!s->arbiter_data || healer_init(me) < 0)
        return -ENOMEM;
    r = counters_init(me, err);
    if (r == 0)
        r = witness_init(me, err);
    if (r == 0)
        choose_quorum(me);
    return r;
}

static FIBER int replicate_start(struct translator *me, struct error *err)
{
    children_start(me);
    return healer_start(me);
}

static FIBER void replicate_stop(struct translator *me)
{
    timer_stop(&replicate_of(me)->first_report);
    healer_stop(me);
    witness_stop(me);
    sessions_stop(me);
    debts_forget(me);
}

static void replicate_fini(struct translator *me)
{
    struct replicate *s = replicate_of(me);

    timer_stop(&s->first_report);
    healer_fini(me);
    witness_done(me);
    counters_done(s);
    buf_unref(s->arbiter_data);
    s->arbiter_data = NULL;
}

static void options_changed(struct translator *me)
{
    choose_quorum(me);
    healer_reconfigured(me);
}

/* ---- statedump ---- */

static void dump_children(const struct replicate *s, struct dump *out)
{
    char key[32];

    /* Tools look for the pending key in the line after child_up. */
    for (unsigned i = 0; i < s->child_count; i++) {
        snprintf(key, sizeof(key), "child_up[%u]", i);
        dump_printf(out, key, "%d", (s->up & bit(i)) != 0);
        snprintf(key, sizeof(key), "pending_key[%u]", i);
        dump_printf(out, key, "%s", s->child[i].pending_key);
        snprintf(key, sizeof(key), "pending_reads[%u]", i);
        dump_printf(out, key, "%u", s->child[i].reads);
        snprintf(key, sizeof(key), "child_latency[%u]", i);
        dump_printf(out, key, "%llu", (unsigned long long)s->child[i].latency_ns);
    }
}

static void replicate_dump(struct translator *me, struct dump *out)
{
    struct replicate *s = replicate_of(me);
    static const char *const quorum_names[] = { "none", "auto", "fixed", "witness" };

    dump_printf(out, "child_count", "%u", s->child_count);
    dump_children(s, out);
    dump_printf(out, "up", "%d", s->up != 0);
    dump_printf(out, "up_count", "%u", mask_count(s->up));
    dump_printf(out, "data_self_heal", "%s", open_choices[s->data_self_heal_option]);
    dump_printf(out, "metadata_self_heal", "%d", s->metadata_self_heal);
    dump_printf(out, "entry_self_heal", "%d", s->entry_self_heal);
    dump_printf(out, "read_child", "%d", s->read_subvolume_index);
    dump_printf(out, "favorite_child", "%s", policy_choices[s->favorite_child_policy]);
    dump_printf(out, "quorum-type", "%s", quorum_names[s->quorum.type]);
    dump_printf(out, "quorum-count", "%u", s->quorum_count);
    dump_printf(out, "quorum-met", "%d", children_admit(me) == 0);
    witness_dump(me, out);
    dump_printf(out, "generation", "%llu", (unsigned long long)s->generation);
    dump_printf(out, "sessions", "%u", s->session_count);
    dump_printf(out, "sessions-opened", "%llu", (unsigned long long)s->sessions_opened);
    dump_printf(out, "sessions-contended", "%llu", (unsigned long long)s->sessions_contended);
    dump_printf(out, "lock-retries", "%llu", (unsigned long long)s->lock_retries);
    dump_printf(out, "failures-recorded", "%llu", (unsigned long long)s->blames);
    dump_printf(out, "records-due", "%u", s->debt_count);
    dump_printf(out, "quorum-failures", "%llu", (unsigned long long)s->quorum_failures);
    dump_printf(out, "read-failovers", "%llu", (unsigned long long)s->failovers);
    dump_printf(out, "refreshes", "%llu", (unsigned long long)s->refreshes);
    healer_dump(me, out);
}

/* ---- class ---- */

const struct translator_class replicate_class = {
    .type = "cluster/replicate",
    .aliases = { "cluster/afr" },
    .state_size = sizeof(struct replicate),
    .options = replicate_options,
    .children_min = 1,
    .children_max = CHILDREN_MAX,
    .uses_inode_ctx = true,
    .uses_fd_ctx = true,
    .init = replicate_init,
    .start = replicate_start,
    .stop = replicate_stop,
    .fini = replicate_fini,
    .reconfigured = options_changed,
    .notify = children_notify,
    .lease = known_lease,
    .inode_forget = inode_state_forget,
    .fd_release = fd_state_release,
    .client_gone = held_locks_client_gone,
    .dump = replicate_dump,
    .any = replicate_everywhere,
    .ops = {
        [OP_LOOKUP] = witness_gate,
        [OP_STAT] = witness_gate,
        [OP_READLINK] = witness_gate,
        [OP_ACCESS] = witness_gate,
        [OP_MKNOD] = witness_gate,
        [OP_MKDIR] = witness_gate,
        [OP_SYMLINK] = witness_gate,
        [OP_CREATE] = witness_gate,
        [OP_LINK] = witness_gate,
        [OP_UNLINK] = witness_gate,
        [OP_RMDIR] = witness_gate,
        [OP_RENAME] = witness_gate,
        [OP_OPEN] = witness_gate,
        [OP_OPENDIR] = witness_gate,
        [OP_READ] = witness_gate,
        [OP_WRITE] = witness_gate,
        [OP_TRUNCATE] = witness_gate,
        [OP_FALLOCATE] = witness_gate,
        [OP_SEEK] = witness_gate,
        [OP_COPY_RANGE] = witness_gate,
        [OP_FLUSH] = replicate_flush,
        [OP_FSYNC] = witness_gate,
        [OP_FSYNCDIR] = replicate_fsyncdir,
        [OP_STATFS] = witness_gate,
        [OP_SETATTR] = witness_gate,
        [OP_SETXATTR] = witness_gate,
        [OP_GETXATTR] = witness_gate,
        [OP_REMOVEXATTR] = witness_gate,
        [OP_XATTROP] = witness_gate,
        [OP_READDIR] = witness_gate,
        [OP_READDIRP] = witness_gate,
        [OP_LK] = witness_gate,
        [OP_INODELK] = witness_gate,
        [OP_ENTRYLK] = witness_gate,
        [OP_RCHECKSUM] = witness_gate,
        [OP_BLOCKSUMS] = witness_gate,
        [OP_LEASE] = witness_gate,
        [OP_GETACTIVELK] = witness_gate,
        [OP_IPC] = witness_gate,
        [OP_COMPOUND] = default_compound,
    },
};
