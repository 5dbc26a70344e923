/* Names that are not there. Before it makes something the kernel looks the name up, and programs look for files in many
 * places. Nothing has to be asked where there is a lease on the directory (lease.c) that is no younger than what tells
 * that the name is absent:
 *
 *   - a look-up that did not find it, or
 *   - the directory was made here, so that all names in it came through us: `there` has every one that may be there.
 *
 * A name is put into `there` before anything is done that could make it, and taken out only when it was removed, so an
 * operation whose end nobody knows leaves it in. */
#include "mount/fuse/fuse_internal.h"

#define NAMES_OF_DIRECTORY 65536
#define NAMES_OF_MOUNT     262144
#define LOOKED_FOR         1024 /* of a directory; past it all are forgotten */

struct known_name {
    UT_hash_handle hh;
    uint64_t asked_ns;
    char name[];
};

struct absent_names {
    uint64_t whole_ns; /* reply.asked_ns of what made the directory; 0: names may be missing in `there` */
    struct known_name *there;
    struct known_name *looked_for; /* and not found */
};

static struct known_name *find(struct known_name *table, const char *name)
{
    struct known_name *k;

    HASH_FIND(hh, table, name, strlen(name), k);
    return k;
}

static void drop(struct mount *m, struct known_name **table, struct known_name *k)
{
    HASH_DEL(*table, k); // NOLINT: of the names in the table, one has no predecessor, and that is the head
    mem_free(k);
    m->known_names--;
}

static void drop_all(struct mount *m, struct known_name **table)
{
    struct known_name *k, *next;

    HASH_ITER(hh, *table, k, next)
    drop(m, table, k);
}

static struct known_name *add(struct mount *m, struct known_name **table, const char *name, uint32_t limit)
{
    struct known_name *k = find(*table, name);
    size_t bytes = strlen(name);

    if (k)
        return k;
    if (HASH_COUNT(*table) >= limit || m->known_names >= NAMES_OF_MOUNT)
        return NULL;
    k = mem_zalloc(sizeof(*k) + bytes + 1);
    if (!k)
        return NULL;
    memcpy(k->name, name, bytes);
    HASH_ADD(hh, *table, name, bytes, k);
    m->known_names++;
    return k;
}

static struct absent_names *absent_of(struct node *dir)
{
    if (!dir->absent && dir->type == S_IFDIR && list_empty(&dir->of_aliases)) /* an alias hears of nothing */
        dir->absent = NEW(struct absent_names);
    return dir->absent;
}

void absent_all(struct request_in *in, struct node *dir, const struct reply *r)
{
    struct absent_names *a = in->upcalls == in->m->upcalls && r->asked_ns ? absent_of(dir) : NULL;

    if (a && !a->there)
        a->whole_ns = r->asked_ns;
}

void absent_note(struct request_in *in, struct node *dir, const char *name, const struct reply *r, uint64_t mark)
{
    bool is_certain = r->asked_ns && in->upcalls == in->m->upcalls && mark == attr_mark(in->m, dir);
    struct absent_names *a = is_certain ? absent_of(dir) : NULL;
    struct known_name *k;

    if (!a)
        return;
    if (HASH_COUNT(a->looked_for) >= LOOKED_FOR)
        drop_all(in->m, &a->looked_for);
    k = add(in->m, &a->looked_for, name, LOOKED_FOR);
    if (k)
        k->asked_ns = r->asked_ns;
}

void absent_may_come(struct mount *m, struct node *dir, const char *name)
{
    struct absent_names *a = dir->absent;
    struct known_name *k;

    if (!a)
        return;
    k = find(a->looked_for, name);
    if (k)
        drop(m, &a->looked_for, k);
    if (a->whole_ns == 0 || add(m, &a->there, name, NAMES_OF_DIRECTORY))
        return;
    a->whole_ns = 0;
    drop_all(m, &a->there);
}

void absent_has_gone(struct mount *m, struct node *dir, const char *name)
{
    struct known_name *k = dir->absent ? find(dir->absent->there, name) : NULL;

    if (k)
        drop(m, &dir->absent->there, k);
}

bool absent_is_sure(struct mount *m, struct node *dir, const char *name, uint64_t *ret_until_ns)
{
    struct absent_names *a = dir->absent;
    struct known_name *k = a ? find(a->looked_for, name) : NULL;
    struct inode *inode = a ? node_inode(m, dir) : NULL;
    struct lease lease;
    bool is_sure;

    if (!inode || names_are_shared(m, &dir->gfid) || !translator_lease(m->me, inode, &lease))
        return false;
    is_sure =
        (k && k->asked_ns >= lease.since_ns) || (a->whole_ns && a->whole_ns >= lease.since_ns && !find(a->there, name));
    if (!is_sure)
        return false;
    m->count.served_absent++;
    *ret_until_ns = lease.until_ns;
    return true;
}

void absent_free(struct mount *m, struct node *dir)
{
    struct absent_names *a = take(dir->absent);

    if (!a)
        return;
    drop_all(m, &a->there);
    drop_all(m, &a->looked_for);
    mem_free(a);
}
