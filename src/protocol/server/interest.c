/* Who keeps copies of what. A client that was told attributes, names or data of an inode goes on using them for a while;
 * when another client changes the inode, the first must hear of it before the change is answered: rpc/invalidate.h. What
 * is noted here is what the client counts on (protocol/client/lease.c), so nothing may be lost early: what the inode
 * table forgets is kept by gfid until its time is over.
 *
 * Kept per inode: one entry per client that was told of it within INVALIDATE_LEASE_S or has it open. An entry is used up
 * by telling: the client asks again when it wants to know again. A client alone on its brick costs an entry per inode
 * and nothing else.
 *
 * An answer may be on its way when the change happens. Each change has a number; a step that began before the last
 * change of what it looked at sends its client an invalidation ahead of its own answer.
 */
#include "core/mem.h"
#include "protocol/server/server_internal.h"
#include "rpc/invalidate.h"
#include <uthash.h>

#define SWEEP_MIN 4096 /* records of forgotten inodes, before old ones are looked for */

struct entry {
    uint64_t connection; /* its id */
    uint64_t until_ns;   /* 0: told already */
    uint32_t opens;
};

struct interest {
    uint64_t changed; /* number of the last change */
    uint64_t changed_by;
    uint64_t changed_before; /* number of the last one that was not by changed_by */
    struct entry *list;
    uint32_t count, room;
    struct gfid gfid;
    UT_hash_handle hh; /* s->forgotten: while there is no inode object */
};

static void drop_expired(struct interest *k, uint64_t now_ns)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < k->count; i++) {
        if (k->list[i].opens > 0 || k->list[i].until_ns > now_ns)
            k->list[kept++] = k->list[i];
    }
    k->count = kept;
}

static void interest_free(struct interest *k)
{
    mem_free(k->list);
    mem_free(k);
}

/* Looks through them each time their number has doubled. */
static void sweep_forgotten(struct server *s)
{
    struct interest *k, *next;

    if (HASH_COUNT(s->forgotten) < MAX(s->sweep_at, (uint32_t)SWEEP_MIN))
        return;
    HASH_ITER(hh, s->forgotten, k, next)
    {
        drop_expired(k, env_now_ns(s->me->env));
        if (k->count > 0)
            continue;
        HASH_DEL(s->forgotten, k);
        interest_free(k);
    }
    s->sweep_at = 2 * HASH_COUNT(s->forgotten);
}

void interest_forget(struct translator *me, struct inode *inode, void *ctx)
{
    struct server *s = me->state;
    struct interest *k = ctx;

    drop_expired(k, env_now_ns(me->env));
    if (k->count == 0) {
        interest_free(k);
        return;
    }
    k->gfid = inode->gfid;
    HASH_ADD(hh, s->forgotten, gfid, sizeof(k->gfid), k);
    sweep_forgotten(s);
}

void interest_done(struct server *s)
{
    struct interest *k, *next;

    HASH_ITER(hh, s->forgotten, k, next)
    {
        HASH_DEL(s->forgotten, k);
        interest_free(k);
    }
}

static struct interest *find_forgotten(struct server *s, const struct gfid *gfid)
{
    struct interest *k = NULL;

    HASH_FIND(hh, s->forgotten, gfid, sizeof(*gfid), k);
    return k;
}

static struct interest *of_inode(struct server *s, struct inode *inode, bool make)
{
    void **slot = inode_ctx(inode, s->me);

    if (!*slot && s->forgotten) {
        struct interest *k = find_forgotten(s, &inode->gfid);

        if (k)
            HASH_DEL(s->forgotten, k);
        *slot = k;
    }
    if (!*slot && make)
        *slot = NEW(struct interest);
    return *slot;
}

static struct interest *of_gfid(struct server *s, const struct gfid *gfid)
{
    SCOPED(inode_unref) struct inode *inode = inode_table_find(s->me->graph, gfid);

    return inode ? of_inode(s, inode, false) : find_forgotten(s, gfid);
}

static bool others_cache(const struct connection *c)
{
    return c->s->caching_count > (c->is_caching ? 1 : 0);
}

/* ---- entries ---- */

static struct entry *find_entry(struct interest *k, uint64_t connection)
{
    for (uint32_t i = 0; k && i < k->count; i++) {
        if (k->list[i].connection == connection)
            return &k->list[i];
    }
    return NULL;
}

static struct entry *make_entry(struct server *s, struct interest *k, uint64_t connection)
{
    if (k->count == k->room)
        drop_expired(k, env_now_ns(s->me->env));
    if (k->count == k->room) {
        uint32_t room = k->room ? 2 * k->room : 2;
        struct entry *more = mem_realloc(k->list, room * sizeof(*more));

        if (!more)
            return NULL;
        k->list = more;
        k->room = room;
    }
    k->list[k->count] = (struct entry) { .connection = connection };
    return &k->list[k->count++];
}

static struct entry *entry_of(struct connection *c, struct inode *inode)
{
    struct interest *k = of_inode(c->s, inode, true);
    struct entry *e = find_entry(k, c->id);

    return e || !k ? e : make_entry(c->s, k, c->id);
}

void interest_opened(struct connection *c, struct inode *inode, int by)
{
    struct entry *e = c->is_caching ? entry_of(c, inode) : NULL;

    if (e && (by > 0 || e->opens > 0))
        e->opens = (uint32_t)((int)e->opens + by);
}

/* The client of c is told of the inode now. true: it was changed by another since `since`. */
static bool note(struct connection *c, struct inode *inode, uint64_t since)
{
    struct entry *e = entry_of(c, inode);
    struct interest *k = of_inode(c->s, inode, false);

    if (e)
        e->until_ns = env_now_ns(c->s->me->env) + INVALIDATE_LEASE_S * 1000000000ull;
    else /* it must not count on a lease that is not noted */
        rpc_peer_disconnect(c->peer, -ENOMEM);
    return k && (k->changed_by != c->id ? k->changed : k->changed_before) > since;
}

static void note_and_check(struct connection *c, struct inode *inode, uint64_t since)
{
    struct event again = { .kind = EVENT_INVALIDATE, .client = c->client };

    if (!inode || !note(c, inode, since))
        return;
    again.gfid = inode->gfid;
    upcall_send(c->s, &again); /* on the same connection, so ahead of the answer */
}

/* ---- changes ---- */

static void add_change(struct connection *c, struct changes *ch, const struct gfid *gfid, const char *name)
{
    SCOPED(inode_unref) struct inode *inode = inode_table_find(c->s->me->graph, gfid);
    struct interest *k = inode ? of_inode(c->s, inode, true) : find_forgotten(c->s, gfid);

    if (!k)
        return; /* nobody has been told of it */
    if (k->changed_by != c->id)
        k->changed_before = k->changed;
    k->changed = ++c->s->change_number;
    k->changed_by = c->id;
    if (ch->count == ch->room) {
        uint32_t room = ch->room ? 2 * ch->room : 8;
        struct change *more = room > INVALIDATE_MAX ? NULL : mem_realloc(ch->list, room * sizeof(*more));

        if (!more)
            return;
        ch->list = more;
        ch->room = room;
    }
    ch->list[ch->count++] = (struct change) { *gfid, name ? mem_strdup(name) : NULL };
}

static void add_name(struct connection *c, struct changes *ch, const struct inode *directory, const char *name)
{
    add_change(c, ch, &directory->gfid, name);
    add_change(c, ch, &directory->gfid, NULL); /* its times */
}

static void add_victim(struct connection *c, struct changes *ch, const struct gfid *victim)
{
    if (!gfid_is_null(victim))
        add_change(c, ch, victim, NULL);
}

/* Records on this copy that another one has missed something. Who reads the other one, and counts on leases instead of
 * asking, must hear of it: the other brick may have seen nothing that it could tell. The dirty mark blames nobody. */
static bool blames(const struct dict *counters)
{
    static const char prefix[] = "trusted.afr.";
    const struct dict_value *v;
    const char *key;

    for (size_t at = 0; dict_next(counters, &at, &key, &v);) {
        if (strncmp(key, prefix, sizeof(prefix) - 1) != 0 || strcmp(key, "trusted.afr.dirty") == 0)
            continue;
        for (size_t i = 0; i < v->size_bytes; i++) {
            if (v->bytes[i])
                return true;
        }
    }
    return false;
}

static void collect(struct connection *c, struct step *st, struct changes *ch)
{
    switch (st->q.op) {
    case OP_WRITE:
    case OP_TRUNCATE:
    case OP_FALLOCATE:
    case OP_SETATTR:
    case OP_SETXATTR:
    case OP_REMOVEXATTR: add_change(c, ch, &st->inode->gfid, NULL); break;
    case OP_XATTROP:
        if (blames(st->q.xattrs))
            add_change(c, ch, &st->inode->gfid, NULL);
        break;
    case OP_COPY_RANGE: add_change(c, ch, &st->inode2->gfid, NULL); break;
    case OP_MKNOD:
    case OP_MKDIR:
    case OP_SYMLINK:
    case OP_CREATE: add_name(c, ch, st->parent, st->w.name); break;
    case OP_UNLINK:
    case OP_RMDIR:
        add_name(c, ch, st->parent, st->w.name);
        add_victim(c, ch, &st->before.victims[0]);
        break;
    case OP_LINK:
        add_name(c, ch, st->parent2, st->w.name2);
        add_change(c, ch, &st->inode->gfid, NULL);
        break;
    case OP_RENAME:
        add_name(c, ch, st->parent, st->w.name);
        add_name(c, ch, st->parent2, st->w.name2);
        add_victim(c, ch, &st->before.victims[0]);
        add_victim(c, ch, &st->before.victims[1]);
        break;
    default: break;
    }
}

/* ---- steps ---- */

static bool others_know(struct connection *c, struct inode *directory)
{
    struct interest *k = of_inode(c->s, directory, false);

    for (uint32_t i = 0; k && i < k->count; i++) {
        if (k->list[i].connection != c->id)
            return true;
    }
    return false;
}

/* Whoever has a file open may have been told of it long after it was told of the directory. */
static bool others_have_files(struct connection *c)
{
    struct connection *other;

    list_for_each (other, &c->s->connections, node) {
        if (other != c && other->is_caching && other->fd_count > 0)
            return true;
    }
    return false;
}

static FIBER void find_victim(struct connection *c, struct inode *parent, const char *name, struct gfid *ret_gfid)
{
    SCOPED(reply_free) struct reply *r = reply_new();
    struct request q = { .op = OP_LOOKUP, .parent = parent, .name = name };
    struct call call;

    if (!r || (!others_know(c, parent) && !others_have_files(c)))
        return;
    call_init(&call, c->s->me->graph);
    call.client = c->client;
    if (translator_call(c->bound, &call, &q, r) >= 0)
        *ret_gfid = r->stat.gfid;
    call_done(&call);
}

FIBER void interest_begin(struct connection *c, struct call *call, struct step *st)
{
    st->before = (struct interest_before) { .change_number = c->s->change_number };
    if (!others_cache(c))
        return;
    if (st->q.op == OP_UNLINK || st->q.op == OP_RMDIR || st->q.op == OP_RENAME)
        find_victim(c, st->parent, st->w.name, &st->before.victims[0]);
    if (st->q.op == OP_RENAME)
        find_victim(c, st->parent2, st->w.name2, &st->before.victims[1]);
}

static void note_entries(struct connection *c, const struct dir_entries *entries, uint64_t since)
{
    for (uint32_t i = 0; entries && i < entries->count; i++) {
        const struct iatt *a = &entries->list[i].stat;

        if (!iatt_is_set(a) || gfid_is_null(&a->gfid))
            continue;
        SCOPED(inode_unref)
        struct inode *inode = inode_table_get(c->s->me->graph, &a->gfid, iatt_type(a));
        note_and_check(c, inode, since);
    }
}

static void note_step(struct connection *c, struct step *st, int result)
{
    uint64_t since = st->before.change_number;
    bool is_answered = result >= 0;

    if (st->parent && (is_answered || result == -ENOENT)) /* a name that is not there is remembered too */
        note_and_check(c, st->parent, since);
    if (!is_answered)
        return;
    if (st->parent2)
        note_and_check(c, st->parent2, since);
    if (st->inode)
        note_and_check(c, st->inode, since);
    if (iatt_is_set(&st->r.stat) && !gfid_is_null(&st->r.stat.gfid)) {
        SCOPED(inode_unref) struct inode *found = inode_table_find(c->s->me->graph, &st->r.stat.gfid);

        note_and_check(c, found, since);
    }
    note_entries(c, st->r.entries, since);
}

void interest_end(struct connection *c, struct step *st, int result, struct changes *changes)
{
    if (st->q.op == OP_LOOKUP && !st->parent && !st->inode)
        return; /* it never began */
    if (c->is_caching && !c->is_gone && !invalidate_is_untold(st->q.op))
        note_step(c, st, result);
    if (result >= 0 && others_cache(c))
        collect(c, st, changes);
}

/* ---- telling ---- */

struct telling {
    struct rpc_call c; /* on the heap: its answer may come after we have stopped waiting */
    struct server *s;
    uint64_t connection;   /* id: the connection may go meanwhile */
    struct rpc_peer *peer; /* a reference */
    struct xdr_out o;
    struct scope scope;
    struct telling **slot; /* the teller's pointer to it; NULL there: late_answer() frees it */
};

static struct connection *connection_by_id(struct server *s, uint64_t id)
{
    struct connection *c;

    list_for_each (c, &s->connections, node) {
        if (c->id == id)
            return c;
    }
    return NULL;
}

/* Adds what the connection has been told of; how many. Those entries are used up. */
static uint32_t put_changes(struct connection *to, const struct changes *ch, struct xdr_out *o)
{
    uint64_t now = env_now_ns(to->s->me->env);
    uint32_t count = 0;

    for (uint32_t i = 0; i < ch->count; i++) {
        const struct change *change = &ch->list[i];
        struct entry *e = find_entry(of_gfid(to->s, &change->gfid), to->id);

        if (!e || (e->until_ns <= now && !(e->opens > 0 && e->until_ns != 0)))
            continue;
        if (o) {
            xdr_put_gfid(o, gfid_equal(&change->gfid, &to->subdir_gfid) ? &gfid_root : &change->gfid);
            xdr_put_string(o, change->name ? change->name : "");
        }
        count++;
    }
    return count;
}

static void use_up(struct connection *to, const struct changes *ch)
{
    for (uint32_t i = 0; i < ch->count; i++) {
        SCOPED(inode_unref) struct inode *inode = inode_table_find(to->s->me->graph, &ch->list[i].gfid);
        struct entry *e = inode ? find_entry(of_inode(to->s, inode, false), to->id) : NULL;

        /* A directory's entry also stands for the other names in it. */
        if (e && inode->type != S_IFDIR)
            e->until_ns = 0;
    }
}

static void telling_free(struct telling *t)
{
    xdr_out_done(&t->o); /* empty once it was sent */
    rpc_call_done(&t->c);
    rpc_peer_unref(t->peer);
    mem_free(t);
}

static void late_answer(struct rpc_call *c)
{
    struct telling *t = container_of(c, struct telling, c);
    struct connection *to = connection_by_id(t->s, t->connection);

    if (to)
        to->is_late = false;
    telling_free(t);
}

static FIBER int tell_one(void *arg)
{
    struct telling *t = arg;
    int r;

    scope_init(&t->scope, env_deadline_ms(t->s->me->env, INVALIDATE_WAIT_MS));
    r = rpc_peer_call(t->peer, &t->c, &t->o, &t->scope);
    scope_done(&t->scope);
    if (rpc_call_is_under_way(&t->c)) { /* too late, or this process dies: the answer, or the end, frees it */
        struct connection *to = connection_by_id(t->s, t->connection);

        t->s->invalidations_late++;
        *t->slot = NULL;
        if (to)
            to->is_late = true;
    }
    return r;
}

static struct telling *telling_new(struct connection *to, const struct changes *ch)
{
    uint32_t count = put_changes(to, ch, NULL);
    struct telling *t = count > 0 ? NEW(struct telling) : NULL;

    if (!t)
        return NULL;
    t->s = to->s;
    t->connection = to->id;
    t->peer = rpc_peer_ref(to->peer);
    rpc_call_begin(to->peer, &t->c, &t->o, PROGRAM_MORTAR, MORTAR_PROGRAM_VERSION, MORTAR_INVALIDATE, NULL);
    t->c.on_late = late_answer;
    xdr_put_u32(&t->o, count);
    (void)put_changes(to, ch, &t->o);
    use_up(to, ch);
    to->s->invalidations++;
    return t;
}

static void changes_clear(struct changes *ch)
{
    for (uint32_t i = 0; i < ch->count; i++)
        mem_free(ch->list[i].name);
    mem_free(ch->list);
    *ch = (struct changes) { 0 };
}

/* Who has not answered the last one is told without waiting. */
static void told_late(struct rpc_call *c)
{
    telling_free(container_of(c, struct telling, c));
}

static void tell_late(struct telling *t)
{
    t->c.on_done = told_late;
    if (rpc_peer_start(t->peer, &t->c, &t->o) < 0) {
        rpc_peer_disconnect(t->peer, -ENOMEM); /* what it knows is void with the connection */
        telling_free(t);
    }
}

/* Makes the messages for all who must hear of it; those of late ones leave at once. */
static uint32_t tellings(struct connection *c, const struct changes *changes, struct telling **all, uint32_t room)
{
    struct connection *to;
    uint32_t count = 0;

    list_for_each (to, &c->s->connections, node) {
        if (to == c || !to->is_caching || to->is_gone)
            continue;
        struct telling *t = telling_new(to, changes);
        if (!t)
            continue;
        if (to->is_late || count == room) {
            tell_late(t);
            continue;
        }
        all[count] = t;
        t->slot = &all[count++];
    }
    return count;
}

FIBER void interest_tell(struct connection *c, struct changes *changes)
{
    uint32_t room = c->s->caching_count, count;
    SCOPED_FREE struct telling **all = changes->count > 0 && room > 0 ? mem_array(room, sizeof(*all)) : NULL;
    struct group g;

    if (!all) {
        assert(changes->count == 0 || room == 0 || !"out of memory while others keep copies");
        changes_clear(changes);
        return;
    }
    count = tellings(c, changes, all, room);
    changes_clear(changes);
    if (count == 1) {
        (void)tell_one(all[0]); /* who does not answer is noted there */
    } else if (count > 1) {
        group_init(&g, c->s->me->env);
        for (uint32_t i = 0; i < count; i++) {
            if (group_run(&g, "tell", tell_one, all[i]) < 0)
                tell_late(take(all[i]));
        }
        group_wait_all(&g);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (all[i])
            telling_free(all[i]);
    }
}
