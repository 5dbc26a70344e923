/* Life of a member, proposals, membership, and the state machine as the library sees it. */
#include "core/mem.h"
#include "mgmt/consensus_internal.h"
#include <errno.h>
#include <stdio.h>

/* ---- the state machine ---- */

static int fsm_apply(struct raft_fsm *fsm, const struct raft_buffer *buf, void **result)
{
    struct consensus *c = fsm->data;
    int r;

    mem_free(take(c->unclaimed));
    r = c->hooks.apply(c->arg, buf->base, buf->len, &c->unclaimed);
    *result = c->unclaimed;
    if (r < 0)
        consensus_fail(c, "a change could not be applied");
    return r < 0 ? RAFT_NOMEM : 0;
}

static int fsm_snapshot(struct raft_fsm *fsm, struct raft_buffer *bufs[], unsigned *count)
{
    struct consensus *c = fsm->data;
    size_t size_bytes;
    void *data;

    if (c->hooks.snapshot(c->arg, &data, &size_bytes) < 0)
        return RAFT_NOMEM;
    *bufs = raft_calloc(1, sizeof(**bufs));
    if (*bufs)
        (*bufs)[0] = (struct raft_buffer) { raft_malloc(size_bytes + 1), size_bytes };
    if (!*bufs || !(*bufs)[0].base) {
        raft_free(*bufs);
        mem_free(data);
        return RAFT_NOMEM;
    }
    memcpy((*bufs)[0].base, data, size_bytes);
    mem_free(data);
    *count = 1;
    return 0;
}

static int fsm_restore(struct raft_fsm *fsm, struct raft_buffer *buf)
{
    struct consensus *c = fsm->data;
    int r = c->hooks.restore(c->arg, buf->base, buf->len);

    if (r < 0) {
        consensus_fail(c, "the snapshot cannot be used");
        return r == -ENOMEM ? RAFT_NOMEM : RAFT_MALFORMED;
    }
    raft_free(buf->base);
    return 0;
}

/* ---- life ---- */

struct consensus *consensus_new(struct env *env, uint64_t member, const char *address, struct journal *journal,
                                const struct consensus_hooks *hooks, void *arg)
{
    struct consensus *c = NEW(struct consensus);

    if (!c)
        return NULL;
    *c = (struct consensus) { .env = env, .journal = journal, .hooks = *hooks, .arg = arg, .member = member };
    c->address = mem_strdup(address);
    c->fsm = (struct raft_fsm) {
        .version = 1, .data = c, .apply = fsm_apply, .snapshot = fsm_snapshot, .restore = fsm_restore
    };
    consensus_io_init(c);
    waitq_init(&c->closed);
    if (!c->address || raft_init(&c->raft, &c->io, &c->fsm, member, address) != 0) {
        mem_free(c->address);
        mem_free(c);
        return NULL;
    }
    c->raft.data = c;
    raft_set_pre_vote(&c->raft, true);
    raft_set_snapshot_threshold(&c->raft, CONSENSUS_SNAPSHOT_EVERY);
    raft_set_snapshot_trailing(&c->raft, CONSENSUS_KEPT_ENTRIES);
    return c;
}

static void on_closed(struct raft *raft)
{
    struct consensus *c = raft->data;

    c->is_closed = true;
    (void)waitq_wake_all(&c->closed, 0); /* consensus_free waits */
}

FIBER void consensus_free(struct consensus *c)
{
    if (!c)
        return;
    c->is_stopping = true;
    raft_close(&c->raft, on_closed);
    while (!c->is_closed || c->proposals > 0)
        (void)waitq_wait(&c->closed, NULL);
    timer_stop(&c->ticker);
    mem_free(c->unclaimed);
    raft_free(c->snapshot_members.base);
    mem_free(c->address);
    mem_free(c);
}

FIBER int consensus_found(struct consensus *c)
{
    struct journal_image image;
    struct raft_configuration conf;
    bool is_empty;
    int r = journal_load(c->journal, &image, NULL);

    if (r < 0)
        return r;
    is_empty = image.term == 0 && image.entry_count == 0 && image.snapshot.index == 0;
    journal_image_clear(&image);
    if (!is_empty)
        return -EEXIST;
    raft_configuration_init(&conf);
    r = raft_configuration_add(&conf, c->member, c->address, RAFT_VOTER);
    if (r == 0)
        r = raft_bootstrap(&c->raft, &conf);
    raft_configuration_close(&conf);
    return consensus_errno(r);
}

int consensus_start(struct consensus *c, struct error *err)
{
    struct journal_image image;
    int r = journal_load(c->journal, &image, err);

    if (r < 0)
        return r;
    c->loaded = &image;
    r = raft_start(&c->raft);
    c->loaded = NULL;
    journal_image_clear(&image);
    if (r != 0)
        return error_set(err, consensus_errno(r), "the cluster's state cannot be loaded: %s", raft_errmsg(&c->raft));
    c->is_started = true;
    consensus_look(c);
    return 0;
}

void consensus_fail(struct consensus *c, const char *why)
{
    if (*c->why_stopped)
        return;
    (void)snprintf(c->why_stopped, sizeof(c->why_stopped), "%s", why);
    c->hooks.stopped(c->arg, c->why_stopped);
}

void consensus_look(struct consensus *c)
{
    const char *address;
    uint64_t leader = consensus_leader(c, &address);
    unsigned members = consensus_member_count(c);

    if (c->is_stopping || (leader == c->leader_told && members == c->members_told))
        return;
    c->leader_told = leader;
    c->members_told = members;
    c->hooks.changed(c->arg);
}

static struct raft_server *find_member(const struct consensus *c, uint64_t member)
{
    for (unsigned i = 0; i < c->raft.configuration.n; i++) {
        if (c->raft.configuration.servers[i].id == member)
            return &c->raft.configuration.servers[i];
    }
    return NULL;
}

/* The library refuses its vote while its own log does not say that it has one. But a leader that has just given it one, and
 * died before it could say so, may not be elected again without it: a cluster of one that grows to two would be stuck.
 * Raft itself does not ask for that check: who is a candidate's voter is the candidate's business, and the comparison of the
 * logs keeps it safe. Nor does the library notice without a vote of its own that its leader is silent. */
static void receive_vote_request(struct consensus *c, struct raft_message *m)
{
    struct raft_server *me = find_member(c, c->member);
    int role = me ? me->role : RAFT_VOTER;
    bool is_lifted = me && role != RAFT_VOTER;

    if (is_lifted) {
        me->role = RAFT_VOTER;
        if (c->io.time(&c->io) - c->raft.election_timer_start > c->raft.election_timeout)
            m->request_vote.disrupt_leader = true;
    }
    c->receive(&c->io, m);
    /* The members may have been replaced by the call. */
    me = is_lifted ? find_member(c, c->member) : NULL;
    if (me)
        me->role = role;
}

/* A message that was long under way can begin with entries which a snapshot stands for by now. The library takes the place
 * where it does not know an entry's term for the end of the log, and would append old entries there. They were agreed on, or
 * there would be no snapshot of them: they are cut off here. False: nothing of the message is left. */
static bool cut_known_entries(const struct consensus *c, struct raft_append_entries *a)
{
    uint64_t first_kept = c->raft.log.offset + 1;
    uint64_t known = a->prev_log_index + 1 < first_kept ? first_kept - a->prev_log_index - 1 : 0;

    if (known == 0)
        return true;
    if (known >= a->n_entries) {
        message_clear_entries(a);
        return false;
    }
    a->prev_log_index += known;
    a->prev_log_term = a->entries[known - 1].term;
    a->n_entries -= (unsigned)known;
    memmove(a->entries, a->entries + known, a->n_entries * sizeof(*a->entries));
    return true;
}

void consensus_receive(struct consensus *c, uint64_t member, const char *address, const void *message,
                       size_t size_bytes)
{
    struct raft_message m = { .server_id = member, .server_address = address };
    SCOPED_FREE void *copy = mem_dup(message, size_bytes);

    if (!c->is_started || c->is_stopping || *c->why_stopped || !copy || message_get(copy, size_bytes, &m) < 0)
        return;
    if (m.type == RAFT_IO_APPEND_ENTRIES && !cut_known_entries(c, &m.append_entries))
        return;
    if (m.type == RAFT_IO_APPEND_ENTRIES && m.append_entries.term >= c->raft.current_term)
        members_take_back(c, &m.append_entries);
    if (m.type == RAFT_IO_REQUEST_VOTE)
        receive_vote_request(c, &m);
    else
        c->receive(&c->io, &m);
    consensus_look(c);
}

/* ---- proposals ---- */

/* One request to the library. It outlives the caller that gave up. */
struct proposal {
    struct consensus *c;
    union {
        struct raft_apply apply;
        struct raft_barrier barrier;
        struct raft_change change;
    };
    bool is_done, is_abandoned;
    int ret;
    void *result;
    struct waitq waiting;
};

static void proposal_end(struct proposal *p, int status, void *result)
{
    struct consensus *c = p->c;

    c->proposals--;
    if (c->is_stopping)
        (void)waitq_wake_all(&c->closed, 0); /* consensus_free waits */
    if (p->is_abandoned) {
        mem_free(result);
        mem_free(p);
        return;
    }
    p->is_done = true;
    p->ret = consensus_errno(status);
    p->result = result;
    (void)waitq_wake_all(&p->waiting, 0); /* its caller waits */
}

static void on_applied(struct raft_apply *req, int status, void *result)
{
    struct proposal *p = req->data;

    if (status == 0)
        p->c->unclaimed = NULL; /* the proposer's now */
    proposal_end(p, status, status == 0 ? result : NULL);
}

static void on_barrier(struct raft_barrier *req, int status)
{
    proposal_end(req->data, status, NULL);
}

static void on_change(struct raft_change *req, int status)
{
    struct proposal *p = req->data;
    struct consensus *c = p->c;

    proposal_end(p, status, NULL);
    consensus_look(c);
}

static struct proposal *proposal_new(struct consensus *c)
{
    struct proposal *p = NEW(struct proposal);

    if (p) {
        p->c = c;
        waitq_init(&p->waiting);
    }
    return p;
}

/* `started`: what the library's function returned. Frees p, now or when it is done. */
static FIBER int proposal_wait(struct proposal *p, int started, struct scope *scope, void **ret_result)
{
    int r = 0;

    if (started != 0) {
        mem_free(p);
        return consensus_errno(started);
    }
    /* The library may have called back already: p says so. */
    while (!p->is_done && r == 0)
        r = waitq_wait(&p->waiting, scope);
    if (!p->is_done) {
        p->is_abandoned = true;
        return r;
    }
    r = p->ret;
    if (ret_result && r == 0)
        *ret_result = p->result;
    else
        mem_free(p->result);
    mem_free(p);
    return r;
}

static int check_can_propose(const struct consensus *c)
{
    return !c->is_started || c->is_stopping || *c->why_stopped ? -ENOTCONN : 0;
}

FIBER int consensus_propose(struct consensus *c, const void *data, size_t size_bytes, struct scope *scope,
                            void **ret_result)
{
    struct raft_buffer buf = { .len = size_bytes };
    struct proposal *p;
    int r = check_can_propose(c);

    if (r < 0)
        return r;
    if (size_bytes > CONSENSUS_PROPOSAL_MAX_BYTES)
        return -EMSGSIZE;
    buf.base = raft_malloc(size_bytes > 0 ? size_bytes : 1);
    p = proposal_new(c);
    if (!p || !buf.base) {
        raft_free(buf.base);
        mem_free(p);
        return -ENOMEM;
    }
    memcpy(buf.base, data, size_bytes);
    p->apply.data = p;
    c->proposals++;
    r = raft_apply(&c->raft, &p->apply, &buf, 1, on_applied);
    if (r != 0) {
        c->proposals--;
        raft_free(buf.base);
    }
    return proposal_wait(p, r, scope, ret_result);
}

FIBER int consensus_barrier(struct consensus *c, struct scope *scope)
{
    struct proposal *p = proposal_new(c);
    int r = check_can_propose(c);

    if (!p || r < 0) {
        mem_free(p);
        return p ? r : -ENOMEM;
    }
    p->barrier.data = p;
    c->proposals++;
    r = raft_barrier(&c->raft, &p->barrier, on_barrier);
    if (r != 0)
        c->proposals--;
    return proposal_wait(p, r, scope, NULL);
}

/* ---- members ---- */

enum member_step { MEMBER_ADD, MEMBER_VOTE, MEMBER_REMOVE };

static FIBER int change_members(struct consensus *c, enum member_step step, uint64_t member, const char *address,
                                struct scope *scope)
{
    struct proposal *p = proposal_new(c);
    int r = check_can_propose(c);

    if (!p || r < 0) {
        mem_free(p);
        return p ? r : -ENOMEM;
    }
    p->change.data = p;
    c->proposals++;
    switch (step) {
    case MEMBER_ADD: r = raft_add(&c->raft, &p->change, member, address, on_change); break;
    case MEMBER_VOTE: r = raft_assign(&c->raft, &p->change, member, RAFT_VOTER, on_change); break;
    case MEMBER_REMOVE: r = raft_remove(&c->raft, &p->change, member, on_change); break;
    }
    if (r != 0)
        c->proposals--;
    return proposal_wait(p, r, scope, NULL);
}

FIBER int consensus_add(struct consensus *c, uint64_t member, const char *address, struct scope *scope)
{
    const struct raft_server *known = find_member(c, member);
    int r = 0;

    if (!consensus_is_leader(c))
        return -ENOTCONN;
    if (known && known->role == RAFT_VOTER)
        return 0;
    if (!known)
        r = change_members(c, MEMBER_ADD, member, address, scope);
    return r < 0 ? r : change_members(c, MEMBER_VOTE, member, address, scope);
}

/* A leader that was lost between the two steps of consensus_add left a member without a vote: the next one goes on. */
void consensus_promote(struct consensus *c)
{
    struct proposal *p;

    if (!consensus_is_leader(c) || c->is_stopping)
        return;
    for (unsigned i = 0; i < c->raft.configuration.n; i++) {
        if (c->raft.configuration.servers[i].role == RAFT_VOTER)
            continue;
        p = proposal_new(c);
        if (!p)
            return;
        p->is_abandoned = true;
        p->change.data = p;
        c->proposals++;
        if (raft_assign(&c->raft, &p->change, c->raft.configuration.servers[i].id, RAFT_VOTER, on_change) != 0) {
            c->proposals--; /* another change is under way; later */
            mem_free(p);
        }
        return;
    }
}

FIBER int consensus_remove(struct consensus *c, uint64_t member, struct scope *scope)
{
    if (!consensus_is_leader(c))
        return -ENOTCONN;
    if (!find_member(c, member))
        return 0;
    return change_members(c, MEMBER_REMOVE, member, NULL, scope);
}

/* ---- looking ---- */

bool consensus_is_leader(const struct consensus *c)
{
    return c->is_started && !*c->why_stopped && raft_state((struct raft *)&c->raft) == RAFT_LEADER;
}

uint64_t consensus_leader(const struct consensus *c, const char **ret_address)
{
    raft_id id = 0;

    *ret_address = NULL;
    if (c->is_started && !*c->why_stopped)
        raft_leader((struct raft *)&c->raft, &id, ret_address);
    return id;
}

uint64_t consensus_applied(const struct consensus *c)
{
    return c->is_started ? raft_last_applied((struct raft *)&c->raft) : 0;
}

unsigned consensus_member_count(const struct consensus *c)
{
    unsigned count = 0;

    for (unsigned i = 0; i < c->raft.configuration.n; i++)
        count += c->raft.configuration.servers[i].role == RAFT_VOTER;
    return count;
}
