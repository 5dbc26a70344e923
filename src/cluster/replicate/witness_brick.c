/* cluster/replicate/witness_brick.c - the witness as a thin arbiter: a file on a brick of its own (docs/on-disk.md "Thin
 * arbiter").
 *
 * The file is named after the thin arbiter's pending key and has no contents; the pending counters of the pair are
 * xattrs on it, its gfid is the identity. Three locks on it, as GlusterFS's clients and heal daemon take them:
 *   NOTIFY  one byte by each who relies on a blame, all of it by who wants to heal; the holders are told and let go
 *   MODIFY  all of it, around each change of the counters
 * features/thin-arbiter on that brick refuses to blame both, so that this holds for clients of any kind.
 */
#include "cluster/replicate/witness_internal.h"
#include "core/mem.h"
#include "graph/graph.h"

#define NOTIFY "afr.ta.dom-notify"
#define MODIFY "afr.ta.dom-modify"

/* ---- locks ---- */

/* One byte of the domain, another one for each owner. */
static void notify_range(const struct lk_owner *owner, struct lock_range *ret)
{
    uint64_t at = 0;

    for (uint32_t i = 0; i < MIN(owner->size, 8u); i++)
        at = at << 8 | owner->bytes[i];
    *ret = (struct lock_range) { .type = LOCK_WRITE, .start = at % (UINT64_C(1) << 62), .length = 1 };
}

static FIBER int lock_file(struct translator *me, struct call *call, struct inode *file, const char *domain,
                           enum lock_command command, const struct lock_range *range)
{
    unsigned child = replicate_of(me)->witness->child;

    return child_inodelk(me, child, call, file, NULL, domain, command, range, NULL);
}

static FIBER int lock_all(struct translator *me, struct call *call, struct inode *file, const char *domain,
                          enum lock_command command)
{
    const struct lock_range all = { .type = LOCK_WRITE };

    return lock_file(me, call, file, domain, command, &all);
}

/* ---- the file ---- */

static void read_word(const struct replicate *s, const struct dict *counters, struct counters tally[2],
                      struct witness_word *word)
{
    word->blamed = 0;
    for (unsigned i = 0; i < 2; i++) {
        word->times[i] = 0;
        if (counters_get(counters, s->child[i].pending_key, &tally[i]) < 0)
            word->blamed |= bit(i); /* it is there and makes no sense: nobody can say that the child is good */
        for (int k = 0; k < CHANGE_COUNT; k++) {
            if (tally[i].n[k])
                word->blamed |= bit(i);
            word->times[i] += (uint32_t)tally[i].n[k];
        }
    }
}

static FIBER int look_at_file(struct translator *me, struct call *call, struct counters tally[2],
                              struct witness_word *ret_word, struct inode **ret_file)
{
    struct replicate *s = replicate_of(me);
    struct witness *w = s->witness;
    SCOPED(inode_unref) struct inode *root = inode_table_get(me->graph, &gfid_root, S_IFDIR);
    SCOPED(reply_free) struct reply *reply = reply_new();
    int r;

    if (!root || !reply)
        return -ENOMEM;
    r = child_lookup(me, w->child, call, NULL, root, w->file_name, w->ask, reply);
    if (r < 0)
        return r;
    ret_word->id = reply->stat.gfid;
    read_word(s, reply->xdata, tally, ret_word);
    if (!ret_file)
        return 0;
    *ret_file = inode_table_get(me->graph, &reply->stat.gfid, S_IFREG);
    return *ret_file ? 0 : -ENOMEM;
}

/* By creating: GlusterFS's thin arbiter refuses mknod. */
static FIBER int make_file(struct translator *me, struct call *call)
{
    struct witness *w = replicate_of(me)->witness;
    struct gfid gfid = gfid_random(me->env);
    SCOPED(inode_unref) struct inode *root = inode_table_get(me->graph, &gfid_root, S_IFDIR);
    SCOPED(inode_unref) struct inode *file = inode_table_get(me->graph, &gfid, S_IFREG);
    SCOPED(fd_unref) struct fd *fd = NULL;
    struct request q = { .op = OP_CREATE, .parent = root, .name = w->file_name, .mode = S_IFREG | 0664 };

    if (!root || !file)
        return -ENOMEM;
    q.flags = O_RDWR | O_CREAT | O_EXCL;
    fd = fd_new(file, q.flags, 0);
    if (!fd)
        return -ENOMEM;
    q.inode = file;
    q.fd = fd;
    return child_call(me, w->child, call, &q, NULL);
}

/* ---- the interface ---- */

static FIBER int brick_ask(struct translator *me, struct call *call, struct witness_word *ret_word)
{
    struct counters tally[2];

    return look_at_file(me, call, tally, ret_word, NULL);
}

static FIBER int brick_enrol(struct translator *me, struct call *call, struct witness_word *ret_word)
{
    struct counters tally[2];
    int r = look_at_file(me, call, tally, ret_word, NULL);

    if (r != -ENOENT)
        return r;
    r = make_file(me, call);
    if (r < 0 && r != -EEXIST)
        return r;
    return look_at_file(me, call, tally, ret_word, NULL);
}

/* An xattrop's answer is not yet on disk. Bricks that sync no file without a descriptor have to be believed. */
static FIBER int make_durable(struct translator *me, struct call *call, struct inode *file)
{
    const struct request q = { .op = OP_FSYNC, .inode = file };
    int r = child_call(me, replicate_of(me)->witness->child, call, &q, NULL);

    return r == -EBADF || r == -EINVAL || r == -EOPNOTSUPP ? 0 : r;
}

static FIBER int add_counters(struct translator *me, struct call *call, struct inode *file,
                              const struct counters tally[2])
{
    struct replicate *s = replicate_of(me);
    SCOPED(dict_unref) struct dict *delta = dict_new();
    int r = delta ? 0 : -ENOMEM;

    for (unsigned i = 0; i < 2 && r == 0; i++)
        r = counters_put(delta, s->child[i].pending_key, &tally[i]);
    if (r == 0)
        r = child_xattrop(me, s->witness->child, call, file, NULL, XATTROP_ADD32, delta, NULL, NULL);
    return r < 0 ? r : make_durable(me, call, file);
}

static FIBER int blame_locked(struct translator *me, struct call *call, struct inode *file, unsigned child,
                              struct witness_word *word)
{
    struct counters tally[2];
    int r = look_at_file(me, call, tally, word, NULL);

    if (r < 0)
        return r;
    if (!gfid_equal(&word->id, &file->gfid))
        return -ESTALE;
    if (word->blamed & bit(other_child(child)))
        return -EPERM;
    memset(tally, 0, sizeof(tally));
    tally[child].n[CHANGE_DATA] = 1;
    r = add_counters(me, call, file, tally);
    if (r == -EINVAL)
        return -EPERM; /* features/thin-arbiter says so */
    if (r == 0) {
        word->blamed |= bit(child);
        word->times[child]++;
    }
    return r;
}

static FIBER int brick_blame(struct translator *me, struct call *call, unsigned child, struct witness_word *ret_word)
{
    SCOPED(inode_unref) struct inode *file = NULL;
    struct lock_range range;
    struct counters tally[2];
    struct call unlock;
    int r = look_at_file(me, call, tally, ret_word, &file);

    if (r < 0)
        return r;
    notify_range(&call->lk_owner, &range);
    r = lock_file(me, call, file, NOTIFY, LOCK_WAIT, &range);
    if (r == 0)
        r = lock_all(me, call, file, MODIFY, LOCK_WAIT);
    if (r < 0)
        return r;
    r = blame_locked(me, call, file, child, ret_word);
    call_copy(&unlock, call); /* also when the deadline has passed */
    unlock.scope.deadline_ns = env_deadline_ms(me->env, WITNESS_WAIT_MS);
    (void)lock_all(me, &unlock, file, MODIFY, LOCK_UNLOCK); /* else the connection broke, and the lock is gone */
    call_done(&unlock);
    return r;
}

/* Locks are by gfid, and the file of a blame is the one that is enrolled. */
static FIBER void brick_drop(struct translator *me, struct call *call)
{
    SCOPED(inode_unref) struct inode *file = NULL;
    struct witness_word word;
    struct counters tally[2];
    struct lock_range range;

    if (look_at_file(me, call, tally, &word, &file) < 0)
        return;
    notify_range(&call->lk_owner, &range);
    (void)lock_file(me, call, file, NOTIFY, LOCK_UNLOCK, &range); /* else it is gone with the connection */
}

static FIBER int brick_recall(struct translator *me, struct call *call)
{
    SCOPED(inode_unref) struct inode *file = NULL;
    struct witness_word word;
    struct counters tally[2];
    int r = look_at_file(me, call, tally, &word, &file);

    if (r < 0)
        return r;
    r = lock_all(me, call, file, NOTIFY, LOCK_WAIT);
    if (r < 0)
        return r;
    return lock_all(me, call, file, NOTIFY, LOCK_UNLOCK);
}

static FIBER int brick_clear(struct translator *me, struct call *call, unsigned child, uint64_t times)
{
    SCOPED(inode_unref) struct inode *file = NULL;
    struct witness_word word;
    struct counters tally[2];
    int r = look_at_file(me, call, tally, &word, &file);

    if (r < 0)
        return r;
    r = lock_all(me, call, file, MODIFY, LOCK_WAIT);
    if (r < 0)
        return r;
    r = look_at_file(me, call, tally, &word, NULL);
    if (r == 0 && word.times[child] != times)
        r = -EAGAIN;
    if (r == 0) {
        memset(&tally[other_child(child)], 0, sizeof(tally[0]));
        for (int k = 0; k < CHANGE_COUNT; k++)
            tally[child].n[k] = -tally[child].n[k];
        r = add_counters(me, call, file, tally);
    }
    (void)lock_all(me, call, file, MODIFY, LOCK_UNLOCK);
    return r;
}

static bool brick_is_recall(struct translator *me, unsigned child, const struct event *event)
{
    return child == replicate_of(me)->witness->child && event->kind == EVENT_INODELK_CONTENTION && event->domain &&
           strcmp(event->domain, NOTIFY) == 0;
}

const struct witness_class witness_brick_class = {
    .name = "thin-arbiter",
    .ask = brick_ask,
    .enrol = brick_enrol,
    .blame = brick_blame,
    .drop = brick_drop,
    .recall = brick_recall,
    .clear = brick_clear,
    .is_recall = brick_is_recall,
};

/* ---- life ---- */

/* The third name of afr-pending-xattr is the thin arbiter's, else the name of its section. */
int witness_brick_init(struct translator *me, struct error *err)
{
    struct replicate *s = replicate_of(me);
    struct witness *w = s->witness;
    const char *name = me->children[s->child_count]->name;
    int r = 0;

    w->class = &witness_brick_class;
    w->child = s->child_count;
    if (s->witness_name)
        name = s->witness_name;
    w->file_name = mem_printf("trusted.afr.%s", name);
    w->ask = dict_new();
    if (!w->file_name || !w->ask)
        return -ENOMEM;
    for (unsigned i = 0; i < 2 && r == 0; i++)
        r = dict_set_uint(w->ask, s->child[i].pending_key, COUNTERS_BYTES);
    return r;
}

void witness_brick_done(struct witness *w)
{
    mem_free(w->file_name);
    dict_unref(w->ask);
}
