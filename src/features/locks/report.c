/* features/locks/report.c - lock counts in xdata, clear-locks and interrupt by getxattr, statedump. */
#include "features/locks/locks_internal.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define PREFIX_DOMAIN    "glusterfs.inodelk-dom-prefix:"
#define PREFIX_CLEAR     "glusterfs.clrlk."
#define PREFIX_INTERRUPT "glusterfs.intrlk"

/* ---- counts ---- */

static uint32_t list_count(const struct list *head)
{
    uint32_t n = 0;
    for (const struct list *at = head->next; at != head; at = at->next)
        n++;
    return n;
}

/* Granted and waiting inodelks of the domain, or (NULL) of the domain that has most. */
static int64_t count_inodelks(struct translator *me, struct inode *inode, const char *domain)
{
    struct lock_inode *li = inode ? lock_inode_find(me, inode) : NULL;
    struct lock_domain *d;
    int64_t most = 0;

    if (li)
        list_for_each (d, &li->domains, of_inode)
            if (d->kind == LOCK_OF_INODE && (!domain || strcmp(d->name, domain) == 0))
                most = MAX(most, (int64_t)d->granted_count + d->waiting_count);
    return most;
}

static int64_t count_named(const struct list *locks, const char *name)
{
    const struct cluster_lock *l;
    int64_t n = 0;

    list_for_each (l, locks, of_domain)
        if (!name || !l->name || strcmp(l->name, name) == 0)
            n++;
    return n;
}

/* Entrylks on the directory; with a name those that cover it. */
static int64_t count_entrylks(struct translator *me, struct inode *dir, const char *name)
{
    struct lock_inode *li = dir ? lock_inode_find(me, dir) : NULL;
    struct lock_domain *d;
    int64_t n = 0;

    if (li)
        list_for_each (d, &li->domains, of_inode)
            if (d->kind == LOCK_OF_ENTRY)
                n += count_named(&d->granted, name) + count_named(&d->waiting, name);
    return n;
}

static int64_t count_posix(struct translator *me, struct inode *inode)
{
    struct lock_inode *li = inode ? lock_inode_find(me, inode) : NULL;
    return li ? (int64_t)list_count(&li->posix_granted) + list_count(&li->posix_waiting) : 0;
}

/* r->xdata as a dict of our own; NULL for lack of memory. */
static struct dict *own_xdata(struct reply *r)
{
    struct dict *own = dict_copy(r->xdata);
    if (own) {
        dict_unref(r->xdata);
        r->xdata = own;
    }
    return own;
}

static int answer_domains(struct translator *me, const struct request *q, struct inode *inode, struct dict *to)
{
    const char *key;
    const struct dict_value *value;
    size_t at = 0;

    while (dict_next(q->xdata, &at, &key, &value)) {
        if (strncmp(key, PREFIX_DOMAIN, sizeof(PREFIX_DOMAIN) - 1) != 0)
            continue;
        int r = dict_set_int(to, key, count_inodelks(me, inode, key + sizeof(PREFIX_DOMAIN) - 1));
        if (r < 0)
            return r;
    }
    return 0;
}

/* What a lookup or stat may ask for besides. */
static int answer_attributes(struct translator *me, const struct request *q, struct inode *inode, struct dict *to)
{
    int r = 0;

    if (dict_has(q->xdata, "glusterfs.inodelk-count") && !dict_has(q->xdata, "glusterfs.inodelk-dom-count"))
        r = dict_set_int(to, "glusterfs.inodelk-count", count_inodelks(me, inode, NULL));
    if (r == 0 && dict_has(q->xdata, "glusterfs.entrylk-count"))
        r = dict_set_int(to, "glusterfs.entrylk-count", count_entrylks(me, inode, NULL));
    if (r == 0 && dict_has(q->xdata, "glusterfs.parent-entrylk"))
        r = dict_set_int(to, "glusterfs.parent-entrylk", q->parent ? count_entrylks(me, q->parent, q->name) : 0);
    if (r == 0 && dict_has(q->xdata, "glusterfs.posixlk-count"))
        r = dict_set_int(to, "glusterfs.posixlk-count", count_posix(me, inode));
    if (r == 0 && dict_has(q->xdata, "glusterfs.multi-dom-lk-cnt-req"))
        r = answer_domains(me, q, inode, to);
    return r;
}

static bool asks_attributes(const struct request *q)
{
    return (q->op == OP_LOOKUP || q->op == OP_STAT) &&
           (dict_has(q->xdata, "glusterfs.inodelk-count") || dict_has(q->xdata, "glusterfs.entrylk-count") ||
            dict_has(q->xdata, "glusterfs.parent-entrylk") || dict_has(q->xdata, "glusterfs.posixlk-count") ||
            dict_has(q->xdata, "glusterfs.multi-dom-lk-cnt-req"));
}

int locks_answer_counts(struct translator *me, const struct request *q, struct reply *r)
{
    if (!q->xdata)
        return 0;
    const char *domain = NULL;
    (void)dict_get_str(q->xdata, "glusterfs.inodelk-dom-count", &domain); /* absent: not asked */
    bool more = asks_attributes(q);
    if (!domain && !more)
        return 0;
    /* A lookup by name: what was found may be an inode the caller did not know. */
    SCOPED(inode_unref)
    struct inode *inode = q->inode ? inode_ref(q->inode) : inode_table_find(me->graph, &r->stat.gfid);
    struct dict *to = own_xdata(r);
    if (!to)
        return -ENOMEM;
    if (domain) {
        int result = dict_set_int(to, "glusterfs.inodelk-count", count_inodelks(me, inode, domain));
        if (result < 0)
            return result;
    }
    return more ? answer_attributes(me, q, inode, to) : 0;
}

/* ---- clear-locks ---- */

struct clear {
    enum { CLEAR_INODE, CLEAR_ENTRY, CLEAR_POSIX } type;
    bool granted, blocked;
    bool has_range;
    struct lock_range range;
    const char *name; /* entry: only this one; NULL = all */
};

static bool skip(const char **at, const char *word)
{
    size_t n = strlen(word);
    if (strncmp(*at, word, n) != 0)
        return false;
    *at += n;
    return true;
}

/* "WHENCE,START-END" or "START-END"; END 0 = to the end, else inclusive. */
static bool parse_range(const char *text, struct lock_range *ret)
{
    unsigned whence;
    uint64_t start, end;
    int used = 0;

    if (sscanf(text, "%u,%" SCNu64 "-%" SCNu64 "%n", &whence, &start, &end, &used) != 3 || text[used] || whence != 0) {
        if (sscanf(text, "%" SCNu64 "-%" SCNu64 "%n", &start, &end, &used) != 2 || text[used])
            return false;
    }
    if (start > INT64_MAX || end > INT64_MAX || (end && end < start))
        return false;
    *ret = (struct lock_range) { .start = start, .length = end ? end - start + 1 : 0 };
    return true;
}

/* "tTYPE.kKIND[.REST]" */
static int parse_clear(const char *at, struct clear *ret)
{
    struct clear c = { 0 };

    if (skip(&at, "tinode.k"))
        c.type = CLEAR_INODE;
    else if (skip(&at, "tentry.k"))
        c.type = CLEAR_ENTRY;
    else if (skip(&at, "tposix.k"))
        c.type = CLEAR_POSIX;
    else
        return -EINVAL;
    if (skip(&at, "granted"))
        c.granted = true;
    else if (skip(&at, "blocked"))
        c.blocked = true;
    else if (skip(&at, "all"))
        c.granted = c.blocked = true;
    else
        return -EINVAL;
    if (*at == '.' && c.type == CLEAR_ENTRY)
        c.name = at + 1;
    else if (*at == '.')
        c.has_range = parse_range(at + 1, &c.range);
    else if (*at)
        return -EINVAL;
    if (*at == '.' && c.type != CLEAR_ENTRY && !c.has_range)
        return -EINVAL;
    *ret = c;
    return 0;
}

static bool is_meant(const struct clear *c, const struct cluster_lock *l)
{
    uint64_t end;

    if (c->type == CLEAR_ENTRY)
        return !c->name || (l->name && strcmp(l->name, c->name) == 0);
    return !c->has_range ||
           (lock_range_end(&c->range, &end) == 0 && ranges_overlap(l->start, l->end, c->range.start, end));
}

static struct cluster_lock *find_meant(struct lock_inode *li, const struct clear *c, bool is_waiting)
{
    enum lock_kind kind = c->type == CLEAR_INODE ? LOCK_OF_INODE : LOCK_OF_ENTRY;
    struct lock_domain *d;
    struct cluster_lock *l;

    list_for_each (d, &li->domains, of_inode)
        if (d->kind == kind)
            list_for_each (l, is_waiting ? &d->waiting : &d->granted, of_domain)
                if (is_meant(c, l))
                    return l;
    return NULL;
}

/* One at a time: dropping one may grant others or free their domain. */
static uint32_t clear_cluster(struct translator *me, struct inode *inode, const struct clear *c, bool is_waiting)
{
    struct lock_inode *li;
    struct cluster_lock *l;
    uint32_t n = 0;

    while ((li = lock_inode_find(me, inode)) && (l = find_meant(li, c, is_waiting))) {
        cluster_lock_drop(me, l, -EAGAIN);
        n++;
    }
    return n;
}

static char *clear_locks(struct translator *me, struct inode *inode, const struct clear *c)
{
    static const char *const words[] = { "inode", "entry", "posix" };
    uint32_t blocked = 0, granted = 0;

    /* Those who wait first, else they would be granted and then counted twice. */
    if (c->type == CLEAR_POSIX) {
        const struct lock_range *range = c->has_range ? &c->range : NULL;
        blocked = c->blocked ? posix_drop_waiting(me, inode, NULL, NULL, range, -EAGAIN) : 0;
        granted = c->granted ? posix_clear_granted(me, inode, range) : 0;
    } else {
        blocked = c->blocked ? clear_cluster(me, inode, c, true) : 0;
        granted = c->granted ? clear_cluster(me, inode, c, false) : 0;
    }
    if (!blocked && !granted)
        return mem_strdup("No locks cleared.");
    TLOG(me, LOG_INFO, "locks-cleared", "gfid=%s type=%s blocked=%u granted=%u", GFID_TEXT(&inode->gfid),
         words[c->type], blocked, granted);
    return mem_printf("%s: %s blocked locks=%u granted locks=%u", me->name, words[c->type], blocked, granted);
}

static int answer_text(struct reply *r, const char *name, const char *text)
{
    if (!text)
        return -ENOMEM;
    r->xattrs = dict_new();
    if (!r->xattrs)
        return -ENOMEM;
    int result = dict_set_str(r->xattrs, name, text);
    return result < 0 ? result : (int)strlen(text) + 1;
}

/* ".START-LENGTH"; anything else means all. */
static bool parse_interrupt(const char *text, struct lock_range *ret)
{
    uint64_t start, length;
    int used = 0;

    if (sscanf(text, ".%" SCNu64 "-%" SCNu64 "%n", &start, &length, &used) != 2 || text[used])
        return false;
    *ret = (struct lock_range) { .start = start, .length = length };
    return true;
}

bool locks_virtual_getxattr(struct translator *me, struct call *call, const struct request *q, struct reply *r,
                            int *ret_result)
{
    SCOPED_FREE char *text = NULL;

    if (strncmp(q->text, PREFIX_INTERRUPT, sizeof(PREFIX_INTERRUPT) - 1) == 0) {
        struct lock_range range;
        bool has_range = parse_interrupt(q->text + sizeof(PREFIX_INTERRUPT) - 1, &range);
        text = mem_printf(
            "%u", posix_drop_waiting(me, q->inode, call->client, &call->lk_owner, has_range ? &range : NULL, -EINTR));
    } else if (strncmp(q->text, PREFIX_CLEAR, sizeof(PREFIX_CLEAR) - 1) == 0) {
        struct clear c;
        *ret_result = parse_clear(q->text + sizeof(PREFIX_CLEAR) - 1, &c);
        if (*ret_result < 0)
            return true;
        text = clear_locks(me, q->inode, &c);
    } else {
        return false;
    }
    *ret_result = answer_text(r, q->text, text);
    return true;
}

/* ---- statedump ---- */

static void owner_text(const struct lk_owner *o, char text[static 2 * LK_OWNER_MAX + 1])
{
    for (uint32_t i = 0; i < o->size && i < LK_OWNER_MAX; i++)
        snprintf(text + 2 * i, 3, "%02x", o->bytes[i]);
    text[2 * MIN(o->size, (uint32_t)LK_OWNER_MAX)] = '\0';
}

static const char *type_word(enum lock_type type)
{
    return type == LOCK_WRITE ? "WRITE" : type == LOCK_READ ? "READ" : "NONE";
}

static void dump_cluster(struct dump *out, const struct lock_domain *d, const struct list *locks, const char *state,
                         uint32_t *number)
{
    const struct cluster_lock *l;
    char owner[2 * LK_OWNER_MAX + 1], key[64];

    list_for_each (l, locks, of_domain) {
        owner_text(&l->owner, owner);
        const char *client = l->client ? l->client->uid : "";
        if (d->kind == LOCK_OF_INODE) {
            snprintf(key, sizeof(key), "inodelk.inodelk[%u](%s)", (*number)++, state);
            dump_printf(out, key,
                        "type=%s, whence=0, start=%" PRIu64 ", len=%" PRIu64 ", pid = %d, owner=%s, client=%s, "
                        "connection-id=%s",
                        type_word(l->type), l->start, l->end >= INT64_MAX ? 0 : l->end - l->start + 1, l->pid, owner,
                        l->client ? l->client->name : "", client);
        } else {
            snprintf(key, sizeof(key), "entrylk.entrylk[%u](%s)", (*number)++, state);
            dump_printf(out, key, "type=ENTRYLK_WRLCK on basename=%s, pid = %d, owner=%s, client=%s, connection-id=%s",
                        l->name ? l->name : "", l->pid, owner, l->client ? l->client->name : "", client);
        }
    }
}

static void dump_posix(struct dump *out, const struct list *locks, const char *state, uint32_t *number)
{
    const struct posix_lock *l;
    char owner[2 * LK_OWNER_MAX + 1], key[64];

    list_for_each (l, locks, of_inode) {
        if (l->is_probe)
            continue;
        owner_text(&l->owner, owner);
        snprintf(key, sizeof(key), "posixlk.posixlk[%u](%s)", (*number)++, state);
        dump_printf(out, key,
                    "type=%s, whence=0, start=%" PRIu64 ", len=%" PRIu64 ", pid = %d, owner=%s, client=%s, "
                    "connection-id=%s",
                    type_word(l->type), l->start, l->end >= INT64_MAX ? 0 : l->end - l->start + 1, l->pid, owner,
                    l->client ? l->client->name : "", l->client ? l->client->uid : "");
    }
}

struct dump_job {
    struct translator *me;
    struct dump *out;
};

static void dump_inode(struct inode *inode, void *arg)
{
    struct dump_job *job = arg;
    struct lock_inode *li = lock_inode_find(job->me, inode);
    struct lock_domain *d;
    uint32_t number;

    if (!li || (list_empty(&li->domains) && !li->is_pinned))
        return;
    dump_section(job->out, "xlator.%s.%s.inode", job->me->class->type, job->me->name);
    dump_printf(job->out, "gfid", "%s", GFID_TEXT(&inode->gfid));
    list_for_each (d, &li->domains, of_inode) {
        number = 0;
        dump_printf(job->out, "lock-dump.domain.domain", "%s", d->name);
        dump_cluster(job->out, d, &d->granted, "ACTIVE", &number);
        dump_cluster(job->out, d, &d->waiting, "BLOCKED", &number);
    }
    number = 0;
    if (li->is_pinned)
        dump_printf(job->out, "posixlk-count", "%" PRId64, count_posix(job->me, inode));
    dump_posix(job->out, &li->posix_granted, "ACTIVE", &number);
    dump_posix(job->out, &li->posix_waiting, "BLOCKED", &number);
}

void locks_dump(struct translator *me, struct dump *out)
{
    struct locks *s = me->state;
    struct dump_job job = { .me = me, .out = out };

    dump_printf(out, "contention-notices", "%" PRIu64, s->contentions);
    dump_printf(out, "revoked-locks", "%" PRIu64, s->revoked);
    dump_printf(out, "in-reclaim-grace", "%d", s->in_grace);
    inode_table_each(me->graph, dump_inode, &job);
}
