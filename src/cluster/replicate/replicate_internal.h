/* cluster/replicate/replicate_internal.h - the parts of the replication translator and how they fit together.
 *
 *   replicate.c    state, options, life, table of operations, statedump
 *   children.c     who is up; events from children
 *   locality.c     who is near
 *   changelog.c quorum.c result.c   pure decisions
 *   counters.c     counters in dicts: asking for them, reading answers
 *   fan.c          one request to many children at once
 *   debt.c         records that could not be written when they were due
 *   session.c      a lock and a dirty mark, held over many operations; session_open.c, session_close.c
 *   transaction.c  one change: join sessions, ask all, account for failures, answer; data.c metadata.c entry.c use it
 *   known.c        which children may serve an inode, and finding out; read.c picks one
 *   lookup.c listing.c fds.c xattr.c applock.c   the remaining operations
 *   split_brain.c  refusing what no copy can answer, virtual xattrs to end it
 *   heal_queue.c heal_crawl.c heal_walk.c heal_daemon.c   when heal runs (healer_internal.h)
 *   witness.h      a third party that remembers which copy of a pair may be stale; witness*.c
 *   heldlocks.c    POSIX locks that were granted, and putting them back on children that lack them
 *
 * Nouns. A `session` belongs to one inode and one class of change and covers the whole inode (data), its attributes
 * (metadata) or all names of a directory (entries). `locked`, `marked`, `good`, `missed` are masks of children.
 */
#pragma once

#include "cluster/replicate/changelog.h"
#include "cluster/replicate/quorum.h"
#include "cluster/replicate/result.h"
#include "cluster/replicate/witness.h"
#include "graph/translator.h"

#define SESSIONS_MAX         4096 /* open at once; past it the one idle for longest is closed */
#define HOLD_CONTENDED_MS    20   /* how long a session that another client waits for goes on admitting changes */
#define IDLE_CONTENDED_MS    2    /* and how long it waits for a next one */
#define MUTE_AGE_MAX_MS      100  /* a session of a directory on mute children ends after so long */
#define MUTE_IDLE_MAX_MS     20   /* or without a change for so long */
#define END_TOGETHER_MS      16   /* idle sessions of files end in steps of this */
#define IDLE_RELEASED_MS     100  /* how long a session is kept after the last descriptor was closed */
#define SESSION_AGE_MAX_MS   5000 /* a busy session gives way this often even when no notice of contention came */
#define SPLIT_BRAIN_CHOICE_S 300 /* for how long a user's choice holds; replica.split-brain-choice-timeout changes it */
#define DATA_LOCK_LENGTH     0
#define METADATA_LOCK_START  ((uint64_t)INT64_MAX - 1)

/* ---- state ---- */

struct child {
    char *pending_key; /* "trusted.afr.<name>" */
    uint32_t epoch;    /* raised whenever it goes up or down: locks taken under another epoch are gone */
    bool has_spoken;   /* an up, down or trying event came */
    uint32_t lacks;    /* BRICK_LACKS_*, as it said when it came up */
    bool is_local;     /* on this host, as far as known in this epoch */
    uint32_t reads;    /* in flight */
    uint64_t latency_ns;
};

struct replicate {
    /* options */
    char *read_subvolume;
    int32_t read_subvolume_index;
    uint32_t read_hash_mode;
    bool choose_local;
    uint32_t background_heal_count, heal_wait_queue_length;
    bool halo_enabled;
    uint32_t halo_shd_max_latency_ms, halo_nfsd_max_latency_ms, halo_max_latency_ms;
    uint32_t halo_max_replicas, halo_min_replicas;
    uint32_t data_self_heal_option;
    uint32_t data_heal_algorithm, data_heal_window;
    uint32_t heal_share; /* percent */
    bool metadata_self_heal, entry_self_heal;
    bool data_change_log, metadata_change_log, entry_change_log;
    bool eager_lock, ensure_durability;
    bool self_heal_daemon, is_self_heal_daemon, is_nfs_daemon;
    uint32_t quorum_type_option; /* enum quorum_option */
    uint32_t quorum_count;
    char *node_uuid;
    uint32_t post_op_delay_s;
    uint64_t heal_readdir_size_bytes;
    char *dirty_key;
    char *pending_names; /* comma list */
    bool forced_metadata_heal;
    uint32_t heal_timeout_s;
    bool consistent_metadata, consistent_io;
    bool verify_reads;
    uint32_t arbiter_count;
    char *thin_arbiter;
    char *witness_name; /* in pending_names, behind those of the children; NULL: none */
    uint32_t shd_max_threads, shd_wait_length;
    bool granular_entry_heal;
    uint32_t favorite_child_policy;
    bool anonymous_inode;
    char *volume_id;

    /* children */
    struct child child[CHILDREN_MAX];
    unsigned child_count;
    uint32_t all, up, arbiter; /* masks */
    struct quorum quorum;
    struct witness *witness; /* NULL: none */
    uint32_t witness_said;   /* children it had blamed when last asked */
    bool had_quorum;
    uint64_t generation; /* raised whenever a child goes up or down: what was known about inodes must be asked again */
    bool has_told_parents;
    bool started; /* first report to the parents is due */
    struct timer first_report;
    uint64_t clock;         /* ticks whenever a child was found bad for an inode */
    bool times_are_sent;    /* features/utime is above: bricks do not set times by their own clocks */
    uint32_t heals_pending; /* children that said so, or have not yet said no */
    struct healer *healer;
    uint32_t choice_timeout_s; /* split_brain.c */

    /* ready-made extra data, never changed after init */
    struct dict *ask;         /* for lookup and stat: all counters and lock counts */
    struct dict *zero_adds;   /* xattrop that only reads the counters */
    struct buf *arbiter_data; /* one byte: what the arbiter gets instead of data */

    uint64_t clients_busy_ns; /* until then clients count as at work on the bricks (heal_compare.c) */

    /* sessions */
    struct list sessions; /* all, longest idle first */
    unsigned session_count;
    uint64_t next_owner;
    uint64_t fibers;      /* of our own under way */
    struct waitq settled; /* stop waits here */
    bool is_stopping;

    struct list heals; /* under way (heal_internal.h) */

    struct list debts;
    unsigned debt_count;
    bool is_paying;
    size_t held_count; /* ranges remembered by heldlocks.c */

    /* statedump */
    uint64_t sessions_opened, sessions_contended, lock_retries, blames, quorum_failures, failovers, refreshes;
};

static inline struct replicate *replicate_of(struct translator *me)
{
    return me->state;
}

/* ---- children (children.c) ---- */

void children_notify(struct translator *me, unsigned child, const struct event *event);
/* 0, or -ENOTCONN when the children in the mask are too few to act. */
int children_quorum(struct translator *me, uint32_t mask);
/* May an operation begin? 0 or -ENOTCONN (quorum, consistent-io). */
int children_admit(struct translator *me);
/* Something else than the children that are up decides what is a quorum now. */
void children_quorum_changed(struct translator *me);
void children_start(struct translator *me);
uint32_t children_lack(const struct replicate *s, uint32_t children); /* what any of them cannot do, BRICK_LACKS_* */

/* Finds out whether a child that just came up is on this host (locality.c). */
void locality_find(struct translator *me, unsigned child);

/* ---- counters (counters.c) ---- */

/* Makes s->ask and s->zero_adds and the pending keys. 0 or -ENOMEM, -EINVAL with a sentence. */
int counters_init(struct translator *me, struct error *err);
void counters_done(struct replicate *s);
/* The counters under a key; absent is zero. -EINVAL: it is there and makes no sense. */
int counters_get(const struct dict *d, const char *key, struct counters *ret);
int counters_put(struct dict *d, const char *key, const struct counters *c);
/* Adds child's row to `a`, from the extra data or xattr dict of its answer. Malformed counters count as dirty. */
void counters_read(const struct replicate *s, enum change change, unsigned child, const struct dict *answer,
                   struct accusations *a);
/* The value of dirty for the class, 0 when absent. */
int32_t counters_dirty(const struct replicate *s, enum change change, const struct dict *answer);
/* An xattrop dict that adds `dirty` to dirty[change] and 1 to pending[change] of `blamed`, and 0 to all other keys so
 * that the answer tells them. Returned; NULL for lack of memory. */
struct dict *counters_delta(const struct replicate *s, enum change change, int32_t dirty, uint32_t blamed);
/* The same for a change of names that are recorded one by one. Without them (above), where the volume records names, the
 * blame says "all names", or heal would look for those that were recorded only. */
struct dict *counters_delta_named(const struct replicate *s, enum change change, uint32_t blamed);
/* The marks of a new inode of this type that `missed` do not have. */
struct dict *counters_new_inode(const struct replicate *s, uint32_t type, uint32_t missed);
/* A copy of `given` (may be NULL) with the keys of s->ask added. */
struct dict *counters_ask(const struct replicate *s, const struct dict *given);
/* Removes from an answer what the asker (extra data `given`) did not ask for but we did; *xdata is replaced by a cleaned
 * copy when need be. 0 or -ENOMEM. */
int counters_hide(const struct replicate *s, const struct dict *given, struct dict **xdata);
bool counters_is_key(const struct replicate *s, const char *name); /* is it one of the private names trusted.afr.*? */

/* ---- fan-out (fan.c) ---- */

struct fan;
struct fan_child {
    struct fan *fan;
    unsigned child;
    struct request q;        /* what this child is asked */
    struct request *steps;   /* memory of q.steps */
    uint32_t epoch;          /* the child must still be in it when the request goes out and when the answer comes */
    struct dict *own_xattrs; /* references held for q */
    struct reply r;
    int ret;
};

struct fan {
    struct translator *me;
    struct call *call;
    uint32_t targets;
    struct group group;
    struct fan_child *list; /* by child number */
};

/* Every target will be asked q (copied; what it points to is borrowed); change list[i].q before the run for
 * differences. Returned; NULL for lack of memory. */
struct fan *fan_new(struct translator *me, struct call *call, uint32_t targets, const struct request *q);
void fan_free(struct fan *fan);
DEFINE_SCOPED(fan_free, struct fan)
/* Gives every target a compound of `count` zeroed steps of its own. 0 or -ENOMEM. */
int fan_steps(struct fan *fan, uint32_t count);
/* Asks all targets at once and waits for all. A descriptor that is not open on a child is opened there first, or left
 * out; a child that went away meanwhile has failed with -ENOTCONN whatever it said. */
FIBER void fan_run(struct fan *fan);
uint32_t fan_ok(const struct fan *fan);                      /* targets that succeeded */
uint32_t fan_failed_with(const struct fan *fan, int result); /* targets that answered this */
uint64_t fan_asked_ns(const struct fan *fan);                /* reply.asked_ns over the targets that answered */
int fan_worst(const struct fan *fan);                        /* result_worse over the targets that failed; 0: none */
/* Result and reply of a step, -ENOTCONN when it did not run. */
int fan_step(const struct fan *fan, unsigned child, uint32_t step, struct reply **ret_reply);
/* One child, same care of descriptors. */
FIBER int ask_child(struct translator *me, unsigned child, struct call *call, const struct request *q, struct reply *r);

struct known;
/* The same, and at the same time a look at other children's counters unless `known` is new: -ESTALE when the child has
 * missed something by now. */
FIBER int ask_child_proven(struct translator *me, unsigned child, struct call *call, const struct request *q,
                           const struct known *known, struct reply *r);

/* ---- inodes: what is known, and their sessions ---- */

struct session;
struct known {
    uint64_t generation; /* s->generation when learnt; 0: never */
    uint64_t changed_at; /* s->clock when a child was last found bad: questions asked before do not count */
    uint64_t asked_ns;   /* reply.asked_ns of the answers this was made from; 0: not known */
    uint32_t data;       /* may serve data (of a directory: entries) */
    uint32_t metadata;
    uint32_t seen;        /* answered with success */
    uint32_t accused;     /* blamed for either */
    uint32_t shorter;     /* files: blamed by nobody, and shorter than others: lost appended data with the power */
    bool is_just_asked;   /* known_get asked for this caller, after it began */
    bool arbiter_is_good; /* the arbiter answered and nobody blames it for data */
};

struct inode_state {
    struct known known;
    struct session *session[CHANGE_COUNT];
    uint64_t contended_ns;  /* when another client last wanted it */
    struct held_lock *held; /* POSIX locks granted through us; those of open descriptors only */
    uint64_t held_version;  /* raised whenever `held` changes */
    bool was_absent;        /* the last name looked up in this directory was not there */
    bool absent_after[2];   /* nor was the one that came after a name that was there, or after one that was not */
    uint32_t choice;        /* child a user wants it served from (split_brain.c), as a mask, or 0 */
    uint64_t choice_until_ns;
    bool was_locked; /* somebody asked for a POSIX lock through us: a close has to tell the children */
};

/* Made on first use; NULL for lack of memory. */
struct inode_state *inode_state(struct translator *me, struct inode *inode);
void inode_state_forget(struct translator *me, struct inode *inode, void *ctx);

/* Answers of a lookup or stat, one per child, to what they say of the inode. */
struct testimony {
    uint32_t ok; /* fan->list[i].r counts */
    const struct fan *fan;
    uint64_t generation; /* s->generation when the question went out */
    uint64_t asked_at;   /* s->clock then */
};
/* Judges and stores what is known, unless the world moved on since the question. Writes the judgement to ret. */
void known_judge(struct translator *me, struct inode *inode, const struct testimony *t, struct known *ret);
/* A new inode, made by `children` just now and blamed nowhere. */
void known_new(struct translator *me, struct inode *inode, uint32_t children);
/* These children must not serve this class any more until asked again. */
void known_bad(struct translator *me, struct inode *inode, enum change change, uint32_t bad);
void known_forget(struct translator *me, struct inode *inode);
/* Up-to-date knowledge, asking all children if need be. 0, -ENOTCONN (too few answer), or what they answered. */
FIBER int known_get(struct translator *me, struct call *call, struct inode *inode, struct fd *fd, bool ask_again,
                    struct known *ret);
/* translator_lease(): so many children have promised it that no quorum can pass us by. */
bool known_lease(struct translator *me, struct inode *inode, struct lease *ret_lease);
/* Nobody may serve this: -EIO (split brain, logged with what the copies look like and how to end it) or -ENOTCONN (the
 * good copy is out of reach). In split_brain.c. */
FIBER int known_none(struct translator *me, struct call *call, struct inode *inode, const struct known *known,
                     const char *what);
bool known_is_fresh(struct translator *me, struct inode *inode);

/* ---- split brain (split_brain.c) ---- */

/* Does q set a virtual xattr of this translator? Then *ret is the result. */
FIBER bool split_brain_set(struct translator *me, struct call *call, const struct request *q, int *ret);
/* Has a user chosen the child that serves this inode, and is its time not over? */
bool split_brain_is_chosen(struct translator *me, struct inode *inode);
/* What nobody may serve is served by the chosen child, if it is among `ok`. */
void split_brain_apply(struct translator *me, struct inode *inode, uint32_t type, uint32_t ok, struct known *known);

/* ---- sessions ---- */

enum session_state { SESSION_CLOSED, SESSION_OPENING, SESSION_OPEN, SESSION_CLOSING };

struct session {
    struct translator *me;
    struct inode *inode;
    struct fd *fd; /* by which the inode is reached if its name is gone; may be NULL */
    enum change change;
    enum session_state state;
    uint32_t refs;        /* state other than CLOSED counts as one */
    struct list of_all;   /* s->sessions */
    struct waitq waiting; /* for a change of state, or for an earlier claim to end */
    struct list claims;   /* in order of arrival */
    struct timer timer;
    struct lk_owner owner; /* that of the inode's other session while both are open: its whole range meets ours */
    struct call lock_call; /* of the fiber that waits for locks; cancelled at stop */
    bool is_waiting;       /* that fiber runs */

    /* while open */
    bool is_marked_session;        /* false: lock only */
    uint32_t tried;                /* children that were up when it opened */
    uint32_t locked, marked, good; /* good: not blamed by anybody in this class */
    uint32_t marks[CHILDREN_MAX];  /* how often dirty was raised by us */
    uint32_t epoch[CHILDREN_MAX];
    uint32_t missed;    /* children that missed a change of this session */
    uint32_t blamed;    /* of those, recorded on a quorum */
    uint32_t recording; /* of those, being recorded */
    uint32_t rode;      /* a first attempt to open carried out its change here, and has to be repeated */
    bool keep_dirty;    /* a change has an uncertain outcome: the mark stays for heal */
    bool is_released;   /* the application closed the file: no more changes are likely */
    bool has_volatile;  /* changed something that a power cut could still take away */
    bool is_unstable;   /* and that has to be synced before the mark goes: data, but for appended data */
    uint64_t generation;
    uint64_t opened_ns, contended_ns, used_ns;
    uint64_t served;
};

/* The part of the inode a change covers; an earlier claim that overlaps goes first. */
struct claim {
    struct session *session;
    struct list of_session;
    struct inode *inode;
    enum change change;
    bool wants_mark;     /* false: only the lock is needed (a directory that is about to go) */
    bool only_if_open;   /* an inode that is about to go: if it has a session, end its marks; session may stay NULL */
    const char *name;    /* entries: NULL = all names */
    const char *name2;   /* a second name of the same directory, or NULL */
    uint64_t start, end; /* data: [start, end) */
};

/* A first change that goes out together with lock and mark. */
struct ride {
    const struct request *q;
    struct fan *fan; /* set when it rode: the answers are steps[2] */
};

/* Joins the session of the claim's inode, opening it if need be, and waits until no earlier claim overlaps. 0: call
 * session_leave(claim) in the end. ride may be NULL; ride->fan is set when the change was already carried out (the
 * caller frees it). */
FIBER int session_join(struct translator *me, struct call *call, struct claim *claim, struct fd *fd, struct ride *ride);
void session_leave(struct claim *claim);
/* Children a change may go to now: marked (or locked only, without marks) and still connected as they were. */
uint32_t session_targets(const struct session *session);
/* Closes as soon as nothing is under way; not FIBER. */
void session_want_close(struct session *session);
/* The application is done with it, mostly: closes within IDLE_RELEASED_MS unless it is used again. */
void session_released(struct session *session);
void session_contended(struct translator *me, const struct event *event);
/* A child went away or came: idle sessions close now, busy ones before their next change. */
void sessions_children_changed(struct translator *me);
FIBER void sessions_stop(struct translator *me);
/* The open session, or NULL. */
struct session *session_find(struct translator *me, struct inode *inode, enum change change);
void session_unref(struct session *session);

/* session_open.c: locks and marks. The session is OPENING. First tries all children at once; -EAGAIN: somebody else
 * holds it, call session_open_waiting() from a fiber that may wait. */
FIBER int session_open_try(struct session *session, struct call *call, struct ride *ride);
FIBER int session_open_waiting(struct session *session);
/* session_close.c: unmarks and unlocks. The session is CLOSING. */
FIBER void session_close_now(struct session *session);
/* Unlocks these children, after taking our dirty marks off `unmark` and recording there that `blamed` missed changes.
 * What fails stays for heal; locks of a child that went away are gone with the connection. */
FIBER void session_release(struct session *session, uint32_t children, uint32_t unmark, uint32_t blamed);
/* The lock step of this session. */
void session_lock_request(const struct session *session, enum lock_command command, struct lock_range *range,
                          struct request *q);
/* A fiber of our own that graph stop waits for. */
int replicate_spawn(struct translator *me, const char *name, fiber_fn fn, void *arg) MUST_USE;
void replicate_fiber_ended(struct translator *me);
/* Is this child still in the epoch in which the session took its lock? */
bool session_holds(const struct session *session, unsigned child);
/* The mask of those. */
uint32_t session_holders(const struct session *session, uint32_t children);

/* ---- debts (debt.c) ---- */

/* These children lost something of the session's inode, and too few others are within reach to record it: do it as soon
 * as enough are back. Until then the session's marks stay on the bricks. */
void debt_add(struct session *session, uint32_t lost);
/* Children changed: pay what can be paid, in the background. */
void debts_pay(struct translator *me);
void debts_forget(struct translator *me);

/* ---- heal (heal.h; heal_ask.c) ---- */

/* The graph stops: heals that wait for locks give up, the others at their next step. */
void heals_stop(struct translator *me);

/* ---- changes (transaction.c) ---- */

#define CLAIMS_MAX 7

/* What this child is asked instead: the arbiter gets no data. */
void ride_adapt(struct translator *me, unsigned child, struct request *q);

struct txn {
    struct translator *me;
    struct call *call; /* the application's */
    struct call own;   /* same identity; not cancelled once begun */
    const struct request *q;
    enum change change;
    bool is_idempotent; /* may be repeated, so may ride */
    bool is_debt;       /* only records (debt.c) */
    bool makes_inode;   /* q->inode is new */
    struct claim claim[CLAIMS_MAX];
    unsigned claim_count;
    struct dict *ending[CLAIMS_MAX]; /* takes the marks off an inode that goes; by claim */
    struct fan *fan;
    struct reply *answer[CHILDREN_MAX]; /* of the change, per child; borrowed from the fan; NULL: not asked */
    int result[CHILDREN_MAX];
    uint32_t asked, ok;
    uint32_t behind;       /* children whose copy is known to be old, without a record so far: this change makes it */
    struct inode *removed; /* a directory that goes, or NULL; borrowed */
    void (*done)(struct txn *txn); /* looks at the answers of a change that succeeded; may be NULL */
};

/* Runs the change described by q and the claims; the reply of one good child lands in r. */
FIBER int txn_run(struct txn *txn, struct reply *r);
/* Joins the sessions, changes nothing, and records that `missed` are behind. */
FIBER int txn_record(struct txn *txn, uint32_t missed);
/* On the heap: it is large. */
struct txn *txn_new(struct translator *me, struct call *call, const struct request *q, enum change change);
void txn_free(struct txn *txn);
DEFINE_SCOPED(txn_free, struct txn)
/* Adds a claim: entries of `directory` (name NULL = all), or data [start, end) or attributes of an inode. */
struct claim *txn_claim(struct txn *txn, struct inode *inode, enum change change);

/* ---- when heal runs (healer_internal.h) ---- */

struct healer;
int healer_init(struct translator *me);
int healer_start(struct translator *me);
FIBER void healer_stop(struct translator *me);
void healer_fini(struct translator *me);
void healer_dump(struct translator *me, struct dump *out);
void healer_child_changed(struct translator *me, bool is_up);
void healer_noticed(struct translator *me); /* a brick says that something was added to its index */
void healer_reconfigured(struct translator *me);
/* A client saw that a copy of the inode is behind: heals it in the background, if the options say so. */
void heal_soon(struct translator *me, const struct inode *inode);

/* ---- reads (read.c) ---- */

/* Names in the root that belong to us or to GlusterFS (lookup.c). */
bool name_is_private(const char *name);

/* Which of `readable` serves this inode. */
unsigned read_choose(struct translator *me, struct call *call, const struct inode *inode, uint32_t readable);

/* ---- descriptors (fds.c) ---- */

struct fd_state {
    uint32_t opened;  /* children on which it is open */
    uint32_t refused; /* children that refused to open it again in this generation */
    uint32_t opening; /* children that are asked to, by one fiber each; others wait in `waiting` */
    struct waitq waiting;
    uint64_t generation;
    int listing_child; /* -1: none chosen */
};
struct fd_state *fd_state(struct translator *me, struct fd *fd); /* NULL for lack of memory */
void fd_state_release(struct translator *me, struct fd *fd, void *ctx);
/* Opens the descriptor on a child that lacks it, once whoever asks at the same time. 0 when it is open there now. */
FIBER int fd_ensure(struct translator *me, unsigned child, struct call *call, struct fd *fd);

/* ---- POSIX locks that are held (heldlocks.c) ---- */

/* A lock or unlock request was granted. */
void held_lock_note(struct translator *me, const struct call *call, const struct request *q);
void held_lock_flushed(struct translator *me, struct inode *inode, const struct client *client,
                       const struct lk_owner *owner);
void held_lock_fd_released(struct translator *me, struct fd *fd);
/* Makes the child's state of the range that of what the owner (call's client, range's owner) holds. */
FIBER int held_lock_restore(struct translator *me, unsigned child, struct call *call, struct fd *fd,
                            const struct lock_range *range);
/* Gives these children all that is held, in the background. */
void held_locks_replay(struct translator *me, uint32_t children);
void held_locks_client_gone(struct translator *me, struct client *client);

/* ---- operations ---- */

FIBER int replicate_lookup(struct translator *me, struct call *call, const struct request *q, struct reply *r);
FIBER int replicate_stat(struct translator *me, struct call *call, const struct request *q, struct reply *r);
FIBER int replicate_read(struct translator *me, struct call *call, const struct request *q, struct reply *r);
FIBER int replicate_read_any(struct translator *me, struct call *call, const struct request *q, struct reply *r);
FIBER int replicate_make(struct translator *me, struct call *call, const struct request *q, struct reply *r);
FIBER int replicate_link(struct translator *me, struct call *call, const struct request *q, struct reply *r);
FIBER int replicate_unlink(struct translator *me, struct call *call, const struct request *q, struct reply *r);
FIBER int replicate_rmdir(struct translator *me, struct call *call, const struct request *q, struct reply *r);
FIBER int replicate_rename(struct translator *me, struct call *call, const struct request *q, struct reply *r);
FIBER int replicate_open(struct translator *me, struct call *call, const struct request *q, struct reply *r);
FIBER int replicate_opendir(struct translator *me, struct call *call, const struct request *q, struct reply *r);
FIBER int replicate_flush(struct translator *me, struct call *call, const struct request *q, struct reply *r);
FIBER int replicate_fsync(struct translator *me, struct call *call, const struct request *q, struct reply *r);
FIBER int replicate_fsyncdir(struct translator *me, struct call *call, const struct request *q, struct reply *r);
FIBER int replicate_write(struct translator *me, struct call *call, const struct request *q, struct reply *r);
FIBER int replicate_truncate(struct translator *me, struct call *call, const struct request *q, struct reply *r);
FIBER int replicate_fallocate(struct translator *me, struct call *call, const struct request *q, struct reply *r);
FIBER int replicate_copy_range(struct translator *me, struct call *call, const struct request *q, struct reply *r);
FIBER int replicate_statfs(struct translator *me, struct call *call, const struct request *q, struct reply *r);
FIBER int replicate_attributes(struct translator *me, struct call *call, const struct request *q, struct reply *r);
FIBER int replicate_getxattr(struct translator *me, struct call *call, const struct request *q, struct reply *r);
FIBER int replicate_readdir(struct translator *me, struct call *call, const struct request *q, struct reply *r);
FIBER int replicate_lk(struct translator *me, struct call *call, const struct request *q, struct reply *r);
FIBER int replicate_internal_lock(struct translator *me, struct call *call, const struct request *q, struct reply *r);
FIBER int replicate_everywhere(struct translator *me, struct call *call, const struct request *q, struct reply *r);
