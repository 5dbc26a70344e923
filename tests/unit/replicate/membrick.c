#include "unit/replicate/membrick.h"
#include "core/mem.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

struct mem_lock {
    struct list of_store;
    enum op op;
    char domain[64];
    char name[256];
    bool whole;
    struct gfid gfid;
    uint64_t start, end;
    struct mem_brick *by;
    uint64_t connection;
    struct lk_owner owner;
    bool is_shared; /* inodelk for reading */
    bool is_granted;
    struct waitq *waiter;
};

struct mem_store mem_stores[STORES_MAX];
static uint64_t next_cookie;

/* ---- stores ---- */

static struct mem_node *node_new(struct mem_store *store, const struct gfid *gfid, uint32_t mode)
{
    struct mem_node *n = calloc(1, sizeof(*n));

    n->gfid = *gfid;
    n->stat = (struct iatt) { .gfid = *gfid, .ino = gfid_to_ino(gfid), .mode = mode, .nlink = 1, .blksize = 4096 };
    list_init(&n->entries);
    list_add_tail(&store->nodes, &n->of_store);
    return n;
}

static void node_free(struct mem_node *n)
{
    struct mem_entry *e;

    list_for_each (e, &n->entries, of_node) {
        list_del(&e->of_node);
        free(e);
    }
    list_del(&n->of_store);
    dict_unref(n->xattrs);
    free(n->data);
    free(n->target);
    free(n);
}

void mem_stores_reset(void)
{
    for (int i = 0; i < STORES_MAX; i++) {
        struct mem_store *s = &mem_stores[i];
        struct mem_node *n;

        if (s->nodes.next)
            list_for_each (n, &s->nodes, of_store)
                node_free(n);
        list_init(&s->nodes);
        list_init(&s->locks);
        node_new(s, &gfid_root, S_IFDIR | 0755);
        s->is_arbiter = false;
        s->entry_changed[0] = 0;
    }
}

struct mem_node *mem_find(struct mem_store *store, const struct gfid *gfid)
{
    struct mem_node *n;

    list_for_each (n, &store->nodes, of_store) {
        if (gfid_equal(&n->gfid, gfid))
            return n;
    }
    return NULL;
}

static struct mem_entry *entry_of(struct mem_node *dir, const char *name)
{
    struct mem_entry *e;

    list_for_each (e, &dir->entries, of_node) {
        if (strcmp(e->name, name) == 0)
            return e;
    }
    return NULL;
}

struct mem_node *mem_name(struct mem_store *store, const struct gfid *parent, const char *name)
{
    struct mem_node *dir = mem_find(store, parent);
    struct mem_entry *e = dir ? entry_of(dir, name) : NULL;

    return e ? mem_find(store, &e->gfid) : NULL;
}

void mem_rename_gfid(struct mem_store *store, struct mem_node *n, const struct gfid *gfid)
{
    struct mem_node *dir;
    struct mem_entry *e;

    list_for_each (dir, &store->nodes, of_store) {
        list_for_each (e, &dir->entries, of_node) {
            if (gfid_equal(&e->gfid, &n->gfid))
                e->gfid = *gfid;
        }
    }
    n->gfid = n->stat.gfid = *gfid;
}

int32_t mem_counter(struct mem_store *store, const struct gfid *gfid, const char *key, int index)
{
    struct mem_node *n = mem_find(store, gfid);
    const void *data;
    size_t size;

    if (!n || dict_get_bin(n->xattrs, key, &data, &size) < 0)
        return 0;
    return (int32_t)get_be32((const uint8_t *)data + 4 * index);
}

void mem_set_counter(struct mem_store *store, const struct gfid *gfid, const char *key, int index, int32_t value)
{
    struct mem_node *n = mem_find(store, gfid);
    uint8_t bytes[12] = { 0 };

    put_be32(bytes + 4 * index, (uint32_t)value);
    if (!n->xattrs)
        n->xattrs = dict_new();
    (void)dict_set_bin(n->xattrs, key, bytes, sizeof(bytes));
}

size_t mem_lock_count(struct mem_store *store)
{
    struct mem_lock *l;
    size_t count = 0;

    list_for_each (l, &store->locks, of_store)
        count++;
    return count;
}

/* ---- locks ---- */

static bool locks_meet(const struct mem_lock *a, const struct mem_lock *b)
{
    if (a->op != b->op || strcmp(a->domain, b->domain) != 0 || !gfid_equal(&a->gfid, &b->gfid))
        return false;
    if (a->connection == b->connection && a->by == b->by && lk_owner_equal(&a->owner, &b->owner))
        return false;
    if (a->op == OP_ENTRYLK)
        return a->whole || b->whole || strcmp(a->name, b->name) == 0;
    return a->start < b->end && b->start < a->end;
}

/* Conflicts with a granted lock, or with one that waits in front of it. */
static struct mem_lock *blocker(struct mem_store *store, struct mem_lock *lock)
{
    struct mem_lock *l;

    list_for_each (l, &store->locks, of_store) {
        if (l == lock)
            return NULL;
        if (locks_meet(l, lock) && !(l->is_shared && lock->is_shared))
            return l;
    }
    return NULL;
}

static void grant_waiting(struct mem_store *store)
{
    struct mem_lock *l;

    list_for_each (l, &store->locks, of_store) {
        if (!l->is_granted && !blocker(store, l)) {
            l->is_granted = true;
            waitq_wake_all(l->waiter, 0);
        }
    }
}

static void drop_locks(struct mem_brick *b)
{
    struct mem_lock *l;

    list_for_each (l, &b->store->locks, of_store) {
        if (l->by != b)
            continue;
        list_del(&l->of_store);
        if (l->waiter && !l->is_granted)
            waitq_wake_all(l->waiter, -ENOTCONN); /* the waiter frees it */
        else
            free(l);
    }
    grant_waiting(b->store);
}

static void tell_holder(struct mem_lock *held)
{
    bool is_metadata = held->op == OP_INODELK && held->start == (uint64_t)INT64_MAX - 1;
    char domain[300];
    /* A brick keeps locks of attributes in a domain of their own. */
    struct event event = { .kind = held->op == OP_ENTRYLK ? EVENT_ENTRYLK_CONTENTION : EVENT_INODELK_CONTENTION,
                           .gfid = held->gfid,
                           .domain = domain,
                           .range = { .start = held->start } };

    (void)snprintf(domain, sizeof(domain), "%s%s", held->domain, is_metadata ? ":metadata" : "");
    held->by->contentions++;
    notify_parents(held->by->me, &event);
}

void mem_contend(struct mem_brick *b)
{
    struct mem_lock *l;

    list_for_each (l, &b->store->locks, of_store) {
        if (l->is_granted && l->by == b && b->is_up)
            tell_holder(l);
    }
}

static void fill_lock(struct mem_brick *b, struct call *call, const struct request *q, struct mem_lock *l)
{
    l->op = q->op;
    l->by = b;
    l->connection = b->connection;
    l->owner = call->lk_owner;
    l->gfid = q->inode->gfid;
    snprintf(l->domain, sizeof(l->domain), "%s", q->text);
    l->whole = !q->name;
    if (q->name)
        snprintf(l->name, sizeof(l->name), "%s", q->name);
    l->is_shared = q->op == OP_INODELK && q->lock->type == LOCK_READ;
    if (q->op == OP_INODELK) {
        l->start = q->lock->start;
        l->end = q->lock->length ? l->start + q->lock->length : INT64_MAX;
        if (l->start != (uint64_t)INT64_MAX - 1 && !q->lock->length)
            l->end = (uint64_t)INT64_MAX - 1; /* metadata range is a domain of its own */
    }
}

static int unlock(struct mem_brick *b, const struct mem_lock *like)
{
    struct mem_lock *l;

    list_for_each (l, &b->store->locks, of_store) {
        if (l->is_granted && l->op == like->op && l->by == b && gfid_equal(&l->gfid, &like->gfid) &&
            strcmp(l->domain, like->domain) == 0 && l->start == like->start && l->whole == like->whole &&
            strcmp(l->name, like->name) == 0 && lk_owner_equal(&l->owner, &like->owner)) {
            list_del(&l->of_store);
            free(l);
            grant_waiting(b->store);
            return 0;
        }
    }
    return -EINVAL;
}

static FIBER int do_lock(struct mem_brick *b, struct call *call, const struct request *q)
{
    struct mem_lock *l = calloc(1, sizeof(*l)), *other;
    struct waitq waiter;
    int r;

    fill_lock(b, call, q, l);
    if (q->command == LOCK_UNLOCK) {
        r = unlock(b, l);
        free(l);
        return r;
    }
    list_add_tail(&b->store->locks, &l->of_store);
    other = blocker(b->store, l);
    if (!other) {
        l->is_granted = true;
        return 0;
    }
    if (other->is_granted)
        tell_holder(other);
    if (q->command == LOCK_TRY) {
        list_del(&l->of_store);
        free(l);
        return -EAGAIN;
    }
    waitq_init(&waiter);
    l->waiter = &waiter;
    r = waitq_wait(&waiter, &call->scope);
    l->waiter = NULL;
    if (r < 0) {
        list_del(&l->of_store);
        free(l);
    }
    return r;
}

/* ---- reading ---- */

static int answer_counts(struct mem_brick *b, const struct request *q, struct reply *r)
{
    struct mem_lock *l;
    uint64_t inodelks = 0, parent = 0;

    list_for_each (l, &b->store->locks, of_store) {
        if (l->op == OP_INODELK && gfid_equal(&l->gfid, &r->stat.gfid))
            inodelks++;
        if (l->op == OP_ENTRYLK && q->parent && gfid_equal(&l->gfid, &q->parent->gfid))
            parent++;
    }
    if (dict_has(q->xdata, "glusterfs.inodelk-count"))
        (void)dict_put_uint(&r->xdata, "glusterfs.inodelk-count", inodelks);
    if (dict_has(q->xdata, "glusterfs.parent-entrylk"))
        (void)dict_put_uint(&r->xdata, "glusterfs.parent-entrylk", parent);
    return 0;
}

static void answer_xattrs(struct mem_node *n, const struct request *q, struct reply *r)
{
    const struct dict_value *value;
    const char *key;
    size_t at = 0;

    while (dict_next(n->xattrs, &at, &key, &value)) {
        if (dict_has(q->xdata, key))
            (void)dict_put_bin(&r->xdata, key, value->bytes, value->size_bytes);
    }
}

static int do_look(struct mem_brick *b, const struct request *q, struct reply *r)
{
    struct mem_node *n;

    if (q->op == OP_LOOKUP && q->name) {
        if (!mem_find(b->store, &q->parent->gfid))
            return -ESTALE;
        n = mem_name(b->store, &q->parent->gfid, q->name);
        if (!n) {
            answer_counts(b, q, r);
            return -ENOENT;
        }
    } else {
        n = mem_find(b->store, &q->inode->gfid);
        if (!n)
            return -ESTALE;
    }
    r->stat = n->stat;
    answer_xattrs(n, q, r);
    return answer_counts(b, q, r);
}

static int do_read(struct mem_brick *b, struct mem_node *n, const struct request *q, struct reply *r)
{
    size_t have = q->offset < n->stat.size ? n->stat.size - q->offset : 0;

    if (b->store->is_arbiter)
        return -ENOSYS;
    have = MIN(have, (size_t)q->size);
    r->data = buf_copy(n->data ? n->data + q->offset : (const uint8_t *)"", have);
    r->stat = n->stat;
    return (int)have;
}

static uint32_t mode_of(struct mem_store *store, const struct gfid *gfid)
{
    struct mem_node *n = mem_find(store, gfid);

    return n ? n->stat.mode : 0;
}

static int do_list(struct mem_store *store, struct mem_node *n, const struct request *q, struct reply *r)
{
    struct mem_entry *e;

    r->entries = dir_entries_new();
    list_for_each (e, &n->entries, of_node) {
        struct dir_entry *made;

        if (e->cookie <= q->offset || r->entries->count >= 2)
            continue;
        if (dir_entries_add(r->entries, e->name, strlen(e->name), gfid_to_ino(&e->gfid), e->cookie, 0, &made) < 0)
            return -ENOMEM;
        made->stat = (struct iatt) { .gfid = e->gfid, .mode = mode_of(store, &e->gfid) };
    }
    return (int)r->entries->count;
}

/* ---- changing ---- */

static void resize(struct mem_node *n, size_t size)
{
    if (size > n->room) {
        n->data = realloc(n->data, size);
        memset(n->data + n->room, 0, size - n->room);
        n->room = size;
    }
    if (size < n->stat.size)
        memset(n->data + size, 0, n->stat.size - size);
    n->stat.size = size;
}

static int do_write(struct mem_brick *b, struct mem_node *n, const struct request *q, struct reply *r)
{
    r->pre = n->stat;
    if (!b->store->is_arbiter) {
        if (q->offset + q->data->size > n->stat.size)
            resize(n, q->offset + q->data->size);
        memcpy(n->data + q->offset, q->data->data, q->data->size);
    }
    n->stat.mtime++;
    r->post = n->stat;
    return (int)q->data->size;
}

static int do_link(struct mem_brick *b, const struct request *q, struct reply *r)
{
    struct mem_node *dir = mem_find(b->store, &q->parent2->gfid), *n = mem_find(b->store, &q->inode->gfid);
    struct mem_entry *e;

    if (!dir || !n)
        return -ESTALE;
    if (entry_of(dir, q->name2))
        return -EEXIST;
    e = calloc(1, sizeof(*e));
    snprintf(e->name, sizeof(e->name), "%s", q->name2);
    e->gfid = n->gfid;
    e->cookie = ++next_cookie;
    list_add_tail(&dir->entries, &e->of_node);
    n->stat.nlink++;
    r->stat = n->stat;
    return 0;
}

static int do_make(struct mem_brick *b, const struct call *call, const struct request *q, struct reply *r)
{
    static const uint32_t types[OP_COUNT] = { [OP_MKDIR] = S_IFDIR, [OP_SYMLINK] = S_IFLNK, [OP_CREATE] = S_IFREG };
    struct mem_node *dir = mem_find(b->store, &q->parent->gfid), *n;
    struct mem_entry *e;

    if (!dir)
        return -ESTALE;
    if (entry_of(dir, q->name))
        return -EEXIST;
    r->pre = dir->stat;
    if (q->op == OP_MKNOD && mem_find(b->store, &q->inode->gfid)) {
        struct request link = { .op = OP_LINK, .inode = q->inode, .parent2 = q->parent, .name2 = q->name };

        return dict_has(q->xdata, "glusterfs-internal-fop") ? do_link(b, &link, r) : -EEXIST;
    }
    n = node_new(b->store, &q->inode->gfid, (types[q->op] ? types[q->op] : q->mode & S_IFMT) | (q->mode & 07777));
    if (q->text)
        n->target = strdup(q->text);
    n->stat.uid = call->uid;
    n->stat.gid = call->gid;
    e = calloc(1, sizeof(*e));
    snprintf(e->name, sizeof(e->name), "%s", q->name);
    e->gfid = n->gfid;
    e->cookie = ++next_cookie;
    list_add_tail(&dir->entries, &e->of_node);
    r->stat = n->stat;
    r->post = dir->stat;
    return 0;
}

static void drop_entry(struct mem_store *store, struct mem_entry *e)
{
    struct mem_node *n = mem_find(store, &e->gfid);

    list_del(&e->of_node);
    free(e);
    if (n && --n->stat.nlink == 0)
        node_free(n);
}

void mem_drop_name(struct mem_store *store, const struct gfid *parent, const char *name)
{
    struct mem_node *dir = mem_find(store, parent);
    struct mem_entry *e = dir ? entry_of(dir, name) : NULL;

    if (e)
        drop_entry(store, e);
}

/* Tests nest directories a few deep. */
static void empty_directory(struct mem_store *store, struct mem_node *dir)
{
    struct mem_entry *e;

    list_for_each (e, &dir->entries, of_node) {
        struct mem_node *n = mem_find(store, &e->gfid);

        if (n)
            empty_directory(store, n);
        drop_entry(store, e);
    }
}

static int do_remove(struct mem_brick *b, const struct request *q)
{
    struct mem_node *dir = mem_find(b->store, &q->parent->gfid), *n;
    struct mem_entry *e = dir ? entry_of(dir, q->name) : NULL;

    if (!dir)
        return -ESTALE;
    if (!e)
        return -ENOENT;
    n = mem_find(b->store, &e->gfid);
    if (q->op == OP_RMDIR && n && !list_empty(&n->entries)) {
        if (!(q->flags & 1))
            return -ENOTEMPTY;
        empty_directory(b->store, n);
    }
    drop_entry(b->store, e);
    return 0;
}

static int do_rename(struct mem_brick *b, const struct request *q, struct reply *r)
{
    struct mem_node *from = mem_find(b->store, &q->parent->gfid), *to = mem_find(b->store, &q->parent2->gfid), *old;
    struct mem_entry *e = from ? entry_of(from, q->name) : NULL, *over = to ? entry_of(to, q->name2) : NULL;

    if (!from || !to)
        return -ESTALE;
    if (!e)
        return -ENOENT;
    old = over ? mem_find(b->store, &over->gfid) : NULL;
    if (old && !list_empty(&old->entries))
        return -ENOTEMPTY;
    if (over)
        drop_entry(b->store, over);
    list_del(&e->of_node);
    snprintf(e->name, sizeof(e->name), "%s", q->name2);
    e->cookie = ++next_cookie; /* entries are listed in the order of their cookies */
    list_add_tail(&to->entries, &e->of_node);
    r->stat = mem_find(b->store, &e->gfid)->stat;
    return 0;
}

static int do_xattrop(struct mem_store *store, struct mem_node *n, const struct request *q, struct reply *r)
{
    const struct dict_value *value;
    const char *key;
    size_t at = 0;

    if (dict_get_str(q->xdata, "glusterfs.xattrop-entry-create", &key) == 0)
        snprintf(store->entry_changed, sizeof(store->entry_changed), "%s", key);
    if (!n->xattrs)
        n->xattrs = dict_new();
    r->xattrs = dict_new();
    while (dict_next(q->xattrs, &at, &key, &value)) {
        uint8_t bytes[12] = { 0 };
        const void *old;
        size_t size;

        if (dict_get_bin(n->xattrs, key, &old, &size) == 0)
            memcpy(bytes, old, 12);
        for (int i = 0; i < 12; i += 4)
            put_be32(bytes + i, get_be32(bytes + i) + get_be32(value->bytes + i));
        (void)dict_set_bin(n->xattrs, key, bytes, 12);
        (void)dict_set_bin(r->xattrs, key, bytes, 12);
    }
    return 0;
}

static int do_setxattr(struct mem_node *n, const struct request *q)
{
    if (!n->xattrs)
        n->xattrs = dict_new();
    return dict_merge(n->xattrs, q->xattrs);
}

static int do_getxattr(struct mem_node *n, const struct request *q, struct reply *r)
{
    const struct dict_value *value;

    if (!q->text) {
        r->xattrs = dict_copy(n->xattrs);
        return (int)dict_count(r->xattrs);
    }
    value = dict_get(n->xattrs, q->text);
    if (!value)
        return -ENODATA;
    r->xattrs = dict_new();
    (void)dict_set_value(r->xattrs, q->text, value);
    return (int)value->size_bytes;
}

static int on_node(struct mem_brick *b, struct mem_node *n, const struct request *q, struct reply *r)
{
    switch (q->op) {
    case OP_READ: return do_read(b, n, q, r);
    case OP_WRITE: return do_write(b, n, q, r);
    case OP_TRUNCATE:
        r->pre = n->stat;
        if (!b->store->is_arbiter)
            resize(n, q->offset);
        r->post = n->stat;
        return 0;
    case OP_SETATTR:
        r->pre = n->stat;
        if (q->valid & ATTR_MODE)
            n->stat.mode = (n->stat.mode & S_IFMT) | (q->attr->mode & 07777);
        if (q->valid & ATTR_UID)
            n->stat.uid = q->attr->uid;
        if (q->valid & ATTR_GID)
            n->stat.gid = q->attr->gid;
        if (q->valid & ATTR_MTIME)
            n->stat.mtime = q->attr->mtime;
        if (q->valid & ATTR_CTIME)
            n->stat.ctime = q->attr->ctime;
        r->post = n->stat;
        return 0;
    case OP_XATTROP: return do_xattrop(b->store, n, q, r);
    case OP_SETXATTR: return do_setxattr(n, q);
    case OP_GETXATTR: return do_getxattr(n, q, r);
    case OP_REMOVEXATTR:
        if (!dict_has(n->xattrs, q->text))
            return -ENODATA;
        dict_del(n->xattrs, q->text);
        return 0;
    case OP_READDIR:
    case OP_READDIRP: return do_list(b->store, n, q, r);
    case OP_READLINK: r->text = mem_strdup(n->target ? n->target : ""); return (int)strlen(r->text);
    default: return 0; /* open, opendir, flush, fsync, access, lk ... */
    }
}

static FIBER int carry_out(struct mem_brick *b, struct call *call, const struct request *q, struct reply *r)
{
    struct mem_node *n;

    switch (q->op) {
    case OP_INODELK:
    case OP_ENTRYLK: return do_lock(b, call, q);
    case OP_LOOKUP:
    case OP_STAT: return do_look(b, q, r);
    case OP_MKNOD:
    case OP_MKDIR:
    case OP_SYMLINK:
    case OP_CREATE: return do_make(b, call, q, r);
    case OP_LINK: return do_link(b, q, r);
    case OP_UNLINK:
    case OP_RMDIR: return do_remove(b, q);
    case OP_RENAME: return do_rename(b, q, r);
    case OP_STATFS:
        r->statfs = NEW(struct fs_stat);
        r->statfs->bavail = 1000 - b->store_number;
        r->statfs->frsize = 1;
        return 0;
    default: break;
    }
    n = mem_find(b->store, &q->inode->gfid);
    return n ? on_node(b, n, q, r) : -ESTALE;
}

/* ---- the translator ---- */

static struct mem_brick *const *crash_bricks;
static unsigned crash_count;
static uint64_t crash_at;

uint64_t mem_crash_client_at(struct mem_brick *const *bricks, unsigned count, uint64_t n)
{
    uint64_t left = crash_at;

    crash_bricks = bricks;
    crash_count = count;
    crash_at = n;
    return left;
}

static void crash_if_due(void)
{
    if (crash_at && --crash_at == 0) {
        for (unsigned i = 0; i < crash_count; i++)
            mem_brick_down(crash_bricks[i]);
    }
}

static FIBER int one_step(struct mem_brick *b, struct call *call, const struct request *q, struct reply *r)
{
    bool is_hit = b->fault_at && --b->fault_at == 0;
    uint64_t connection = b->connection;
    int ret;

    crash_if_due();
    b->steps++;
    b->count[q->op]++;
    if (is_hit && b->fault == FAULT_REFUSE && q->command == LOCK_UNLOCK) {
        is_hit = false; /* giving back cannot be refused: the next step is */
        b->fault_at = 1;
    }
    if (is_hit && b->fault == FAULT_REFUSE)
        return -EIO;
    if (is_hit && b->fault == FAULT_DOWN_BEFORE)
        mem_brick_down(b);
    if (!b->is_up)
        return -ENOTCONN;
    ret = carry_out(b, call, q, r);
    if (is_hit && b->fault == FAULT_LOST)
        mem_brick_down(b);
    if (!b->is_up || b->connection != connection) {
        reply_done(r);
        return -ENOTCONN;
    }
    return ret;
}

static FIBER int membrick_any(struct translator *me, struct call *call, const struct request *q, struct reply *r)
{
    struct mem_brick *b = me->state;
    unsigned yields = b->yields_max ? (unsigned)(env_random_u64(me->env) % (b->yields_max + 1)) : 0;
    int ret = 0;

    b->messages++;
    while (yields--)
        fiber_yield();
    if (!b->is_up)
        return -ENOTCONN;
    if (q->op != OP_COMPOUND)
        return one_step(b, call, q, r);
    r->steps = mem_array(q->step_count, sizeof(struct reply));
    for (uint32_t i = 0; i < q->step_count && ret >= 0; i++) {
        ret = r->steps[i].ret = one_step(b, call, &q->steps[i], &r->steps[i]);
        r->step_count = i + 1;
    }
    if (!b->is_up) { /* the answer is lost as a whole */
        reply_done(r);
        return -ENOTCONN;
    }
    return ret < 0 ? ret : 0;
}

void mem_brick_down(struct mem_brick *b)
{
    const struct event event = { .kind = EVENT_CHILD_DOWN };

    if (!b->is_up)
        return;
    b->is_up = false;
    b->connection++;
    drop_locks(b);
    notify_parents(b->me, &event);
}

void mem_brick_up(struct mem_brick *b)
{
    const struct event event = { .kind = EVENT_CHILD_UP, .lacks = b->lacks };

    b->is_up = true;
    notify_parents(b->me, &event);
}

static int membrick_init(struct translator *me, struct error *err)
{
    struct mem_brick *b = me->state;

    b->me = me;
    b->store = &mem_stores[b->store_number];
    b->yields_max = 3;
    return 0;
}

static FIBER int membrick_start(struct translator *me, struct error *err)
{
    mem_brick_up(me->state);
    return 0;
}

static void membrick_fini(struct translator *me)
{
    struct mem_brick *b = me->state;

    if (b->store)
        drop_locks(b);
}

static const struct option membrick_options[] = {
    OPT_U32("store", struct mem_brick, store_number, .def = "0", .max = STORES_MAX - 1),
    OPT_END,
};

const struct translator_class membrick_class = {
    .type = "test/membrick",
    .state_size = sizeof(struct mem_brick),
    .options = membrick_options,
    .any = membrick_any,
    .is_leaf = true,
    .init = membrick_init,
    .start = membrick_start,
    .fini = membrick_fini,
};
