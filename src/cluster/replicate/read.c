/* cluster/replicate/read.c - asking one good child, another one when it fails. */
#include "cluster/replicate/replicate_internal.h"
#include "core/mem.h"

enum hash_mode { HASH_FIRST, HASH_GFID, HASH_GFID_AND_PID, LEAST_READS, LEAST_LATENCY, LEAST_LOAD };

static uint32_t hash_of(const struct replicate *s, const struct call *call, const struct inode *inode)
{
    struct gfid gfid = inode->gfid;

    if (s->read_hash_mode == HASH_GFID_AND_PID && inode->type != S_IFDIR) {
        uint32_t pid = (uint32_t)call->pid;

        for (int i = 0; i < 4; i++)
            gfid.bytes[i] ^= (uint8_t)(pid >> (8 * i));
    }
    return super_fast_hash(gfid.bytes, sizeof(gfid.bytes));
}

static unsigned nth_of(uint32_t mask, unsigned n)
{
    while (n-- > 0)
        mask &= mask - 1;
    return mask_first(mask);
}

/* The child that everybody's hash names, else one of the others by the rest of the hash. */
static unsigned by_hash(const struct replicate *s, uint32_t hash, uint32_t readable)
{
    unsigned child = hash % s->child_count;

    return readable & bit(child) ? child : nth_of(readable, hash / s->child_count % mask_count(readable));
}

static uint32_t local_ones(const struct replicate *s, uint32_t readable)
{
    uint32_t local = 0;

    for_each_child(i, readable)
    {
        if (s->child[i].is_local)
            local |= bit(i);
    }
    return local;
}

static uint64_t cost(const struct replicate *s, unsigned child)
{
    const struct child *c = &s->child[child];

    switch (s->read_hash_mode) {
    case LEAST_READS: return c->reads;
    case LEAST_LATENCY: return c->latency_ns;
    default: return (c->reads + 1) * (c->latency_ns + 1);
    }
}

static unsigned cheapest(const struct replicate *s, uint32_t readable)
{
    unsigned best = mask_first(readable);

    for_each_child(i, readable)
    {
        if (cost(s, i) < cost(s, best))
            best = i;
    }
    return best;
}

static int fixed_child(struct translator *me)
{
    struct replicate *s = replicate_of(me);

    for (unsigned i = 0; s->read_subvolume && i < s->child_count; i++) {
        if (strcmp(me->children[i]->name, s->read_subvolume) == 0)
            return (int)i;
    }
    return s->read_subvolume_index;
}

unsigned read_choose(struct translator *me, struct call *call, const struct inode *inode, uint32_t readable)
{
    struct replicate *s = replicate_of(me);
    int fixed = fixed_child(me);

    assert(readable);
    if (fixed >= 0 && fixed < (int)s->child_count && (readable & bit((unsigned)fixed)))
        return (unsigned)fixed;
    if (s->choose_local && local_ones(s, readable))
        readable = local_ones(s, readable);
    if (s->read_hash_mode == HASH_FIRST)
        return mask_first(readable);
    if (s->read_hash_mode >= LEAST_READS)
        return cheapest(s, readable);
    return by_hash(s, hash_of(s, call, inode), readable);
}

FIBER int ask_child(struct translator *me, unsigned child, struct call *call, const struct request *q, struct reply *r)
{
    struct child *c = &replicate_of(me)->child[child];
    struct request own = *q;
    uint64_t began = env_now_ns(me->env);
    int ret;

    if (own.fd && q->op != OP_OPEN && q->op != OP_OPENDIR) {
        ret = fd_ensure(me, child, call, own.fd);
        if (ret < 0 && (op_needs(own.op) & OP_FD))
            return ret;
        if (ret < 0)
            own.fd = NULL;
    }
    c->reads++;
    ret = child_call(me, child, call, &own, r);
    c->reads--;
    c->latency_ns = (c->latency_ns * 7 + (env_now_ns(me->env) - began)) / 8;
    return ret;
}

/* Would another copy answer differently? What a good child says of the request itself is final. */
static bool is_worth_another(int r)
{
    return result_is_unknown(r) || r == -ESTALE || r == -ENOENT || r == -EBADF || r == -EBADFD;
}

static uint32_t readable_for(const struct known *known, enum op op)
{
    uint32_t both = known->data & known->metadata;

    switch (op) {
    case OP_GETXATTR:
    case OP_ACCESS:
    case OP_STAT: return both ? both : known->metadata;
    default: return both ? both : known->data;
    }
}

/* ---- proof ----
 *
 * Another client may be cut off from the child we read, and have changed the file on the others. Whatever it had
 * acknowledged before is recorded against the child on a quorum of the others. So while the child reads, so many others
 * are asked for their counters that no quorum can have passed us by. */

struct proof {
    struct translator *me;
    struct call *call;
    struct inode *inode;
    uint32_t witnesses;
    uint32_t accused_contents, accused_metadata;
    int result;
};

static uint32_t witnesses_for(struct translator *me, unsigned child)
{
    struct replicate *s = replicate_of(me);
    uint32_t others = s->all & ~bit(child), asked = 0;

    /* The arbiter has nothing else to do; then the next ones, so that the load spreads. */
    if ((s->arbiter & s->up & others) && quorum_may_be_met(&s->quorum, others))
        asked |= s->arbiter;
    for (unsigned n = 1; n < s->child_count; n++) {
        uint32_t next = bit((child + n) % s->child_count);

        if (!quorum_may_be_met(&s->quorum, others & ~asked))
            break;
        asked |= next & s->up;
    }
    return asked;
}

static FIBER int prove(void *arg)
{
    struct proof *p = arg;
    struct replicate *s = replicate_of(p->me);
    const struct request q = { .op = OP_LOOKUP, .inode = p->inode, .xdata = s->ask };
    SCOPED(fan_free) struct fan *fan = fan_new(p->me, p->call, p->witnesses, &q);
    struct accusations contents, metadata;

    if (!fan)
        return p->result = -ENOMEM;
    fan_run(fan);
    accusations_init(&contents, s->child_count);
    accusations_init(&metadata, s->child_count);
    for_each_child(i, p->witnesses)
    {
        int r = fan->list[i].ret;

        if (r == -ENOENT || r == -ESTALE)
            continue; /* it cannot have recorded anything on what it does not have */
        if (r < 0)
            return p->result = r;
        counters_read(s, p->inode->type == S_IFDIR ? CHANGE_ENTRY : CHANGE_DATA, i, fan->list[i].r.xdata, &contents);
        counters_read(s, CHANGE_METADATA, i, fan->list[i].r.xdata, &metadata);
    }
    p->accused_contents = accusations_accused(&contents);
    p->accused_metadata = accusations_accused(&metadata);
    return p->result = 0;
}

static bool needs_proof(struct translator *me, const struct request *q, const struct known *known)
{
    struct replicate *s = replicate_of(me);
    struct lease lease;

    if (!s->verify_reads || known->is_just_asked || split_brain_is_chosen(me, q->inode))
        return false;
    /* Whatever was recorded since we learnt it, we would have been told. */
    if (known->asked_ns && known_lease(me, q->inode, &lease) && lease.since_ns <= known->asked_ns)
        return false;
    /* Holding the lock, we would know. */
    if (q->op == OP_READ || q->op == OP_SEEK)
        return !session_find(me, q->inode, CHANGE_DATA);
    return q->op == OP_STAT || q->op == OP_GETXATTR || q->op == OP_READDIR || q->op == OP_READDIRP;
}

/* Is the child, as the witnesses say, as good as we thought? 0, -ESTALE: no, it missed something. */
static FIBER int check_proof(struct proof *p, const struct request *q, unsigned child)
{
    struct known known;
    bool is_contents = q->op == OP_READ || q->op == OP_SEEK || q->op == OP_READDIR || q->op == OP_READDIRP;

    if (p->result == 0) {
        if (!((is_contents ? p->accused_contents : p->accused_contents | p->accused_metadata) & bit(child)))
            return 0;
        known_forget(p->me, p->inode);
        return -ESTALE;
    }
    /* A witness was lost: ask everybody. */
    int r = known_get(p->me, p->call, p->inode, q->fd, true, &known);

    if (r < 0)
        return r;
    return readable_for(&known, q->op) & bit(child) ? 0 : -ESTALE;
}

FIBER int ask_child_proven(struct translator *me, unsigned child, struct call *call, const struct request *q,
                           const struct known *known, struct reply *r)
{
    struct proof p = { .me = me, .call = call, .inode = q->inode };
    struct group group;
    int ret, proven;

    if (needs_proof(me, q, known))
        p.witnesses = witnesses_for(me, child);
    if (!p.witnesses)
        return ask_child(me, child, call, q, r);
    group_init(&group, me->env);
    ret = group_run(&group, "read-proof", prove, &p);
    if (ret < 0)
        return ret;
    ret = ask_child(me, child, call, q, r);
    group_wait_all(&group);
    if (ret < 0)
        return ret;
    proven = check_proof(&p, q, child);
    if (proven < 0)
        reply_done(r);
    return proven < 0 ? proven : ret;
}

static FIBER int read_from(struct translator *me, struct call *call, const struct request *q, struct known *known,
                           struct reply *r)
{
    struct replicate *s = replicate_of(me);
    uint32_t tried = 0;
    int ret = 0;

    for (;;) {
        uint32_t from = readable_for(known, q->op) & s->up & ~tried;
        unsigned child;
        int asked;

        if (!from && ret)
            return ret == -ESTALE && !readable_for(known, q->op) ? known_none(me, call, q->inode, known, "data") : ret;
        if (!from)
            return known_none(me, call, q->inode, known, q->op == OP_STAT ? "metadata" : "data");
        child = read_choose(me, call, q->inode, from);
        ret = ask_child_proven(me, child, call, q, known, r);
        if (ret >= 0 || !is_worth_another(ret) || scope_check(&call->scope, me->env) < 0)
            return ret;
        s->failovers++;
        reply_done(r);
        asked = known_get(me, call, q->inode, q->fd, true, known);
        if (asked < 0)
            return asked;
        tried |= bit(child);
    }
}

FIBER int replicate_read(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct known known;
    int ret = children_admit(me);

    if (ret == 0)
        ret = known_get(me, call, q->inode, q->fd, false, &known);
    if (ret != 0)
        return ret;
    if (!readable_for(&known, q->op)) {
        ret = known_get(me, call, q->inode, q->fd, true, &known);
        if (ret < 0)
            return ret;
    }
    return read_from(me, call, q, &known, r);
}

/* Attributes from a child good for those, size from one good for data. */
static FIBER int stat_in_two(struct translator *me, struct call *call, const struct request *q,
                             const struct known *known, struct reply *r)
{
    SCOPED(reply_free) struct reply *data = reply_new();
    int ret;

    if (!data)
        return -ENOMEM;
    ret = ask_child(me, read_choose(me, call, q->inode, known->metadata), call, q, r);
    if (ret < 0)
        return ret;
    ret = ask_child(me, read_choose(me, call, q->inode, known->data), call, q, data);
    if (ret < 0)
        return ret;
    r->asked_ns = 0;
    r->stat.size = data->stat.size;
    r->stat.blocks = data->stat.blocks;
    return 0;
}

FIBER int replicate_stat(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct replicate *s = replicate_of(me);
    struct known known;
    int ret = children_admit(me);

    if (ret == 0)
        ret = known_get(me, call, q->inode, q->fd, false, &known);
    if (ret == 0 && !(known.data & known.metadata))
        ret = known_get(me, call, q->inode, q->fd, true, &known);
    if (ret != 0)
        return ret;
    if (known.data & known.metadata & s->up)
        return read_from(me, call, q, &known, r);
    if (known.data && known.metadata)
        return stat_in_two(me, call, q, &known, r);
    /* A file in split brain still shows what it looks like on one side, so that it can be found and dealt with. */
    if (q->inode->type != S_IFDIR && !known.arbiter_is_good && (known.seen & ~s->arbiter & s->up))
        return ask_child(me, mask_first(known.metadata ? known.metadata : known.seen & ~s->arbiter & s->up), call, q,
                         r);
    return known.metadata ? read_from(me, call, q, &known, r) : known_none(me, call, q->inode, &known, "metadata");
}
