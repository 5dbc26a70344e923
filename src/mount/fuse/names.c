/* What the kernel asks twice.
 *
 * Before it removes or renames something it has the name looked up, and the operation then carries the name only. Who
 * does it below wants to know what the name leads to: what was found a moment ago is passed on as a hint.
 *
 * After a change of names the kernel drops the directory's attributes and asks for them before the next change, to
 * check permission. The answer to the change has told them; they may be served for as long as the kernel might have
 * kept them. */
#include "mount/fuse/fuse_internal.h"

#define RECENT_NS 100000000u

/* ---- recent names ---- */

static uint32_t hash_of(const struct gfid *parent, const char *name)
{
    uint32_t h = 2166136261u; /* FNV-1a */

    for (size_t i = 8; i < sizeof(parent->bytes); i++)
        h = (h ^ parent->bytes[i]) * 16777619u;
    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * 16777619u;
    return h;
}

static struct recent_name *find(struct mount *m, const struct gfid *parent, const char *name, uint32_t hash)
{
    for (unsigned i = 0; i < FUSE_RECENT_NAMES; i++) {
        struct recent_name *n = &m->recent[i];

        if (n->name && n->hash == hash && gfid_equal(&n->parent, parent) && strcmp(n->name, name) == 0)
            return n;
    }
    return NULL;
}

void recent_note(struct mount *m, const struct gfid *parent, const char *name, const struct gfid *gfid)
{
    uint32_t hash = hash_of(parent, name);
    struct recent_name *n = find(m, parent, name, hash);

    if (!n) {
        n = &m->recent[m->recent_next++ % FUSE_RECENT_NAMES];
        mem_free(n->name);
        n->name = mem_strdup(name); /* NULL: not remembered */
        n->parent = *parent;
        n->hash = hash;
    }
    n->gfid = gfid ? *gfid : gfid_null;
    n->at_ns = env_now_ns(m->env);
}

void recent_forget(struct mount *m, const struct gfid *parent, const char *name)
{
    struct recent_name *n = find(m, parent, name, hash_of(parent, name));

    if (n)
        mem_free(take(n->name));
}

const struct recent_name *recent_find(struct mount *m, const struct gfid *parent, const char *name)
{
    const struct recent_name *n = find(m, parent, name, hash_of(parent, name));

    return n && env_now_ns(m->env) - n->at_ns < RECENT_NS ? n : NULL;
}

void recent_free(struct mount *m)
{
    for (unsigned i = 0; i < FUSE_RECENT_NAMES; i++)
        mem_free(take(m->recent[i].name));
}

/* ---- attributes of directories ---- */

static bool is_older(const struct iatt *a, const struct iatt *b)
{
    return a->ctime != b->ctime ? a->ctime < b->ctime : a->ctime_nsec < b->ctime_nsec;
}

void own_attr_note(struct request_in *in, struct node *dir, const struct iatt *post)
{
    if (gfid_dir_is_above(in->m, dir))
        return;
    struct mount *m = in->m;

    /* Somebody else may have changed it after we did. */
    if (!iatt_is_set(post) || iatt_type(post) != S_IFDIR || in->upcalls != m->upcalls ||
        mount_options(m)->attribute_timeout_s <= 0) {
        own_attr_forget(dir);
        return;
    }
    if (!dir->own)
        dir->own = NEW(struct iatt);
    if (!dir->own)
        return;
    /* Answers to changes that ran at the same time may come in another order than they were made. */
    if (dir->own_ns && is_older(post, dir->own))
        return;
    *dir->own = *post;
    dir->own->gfid = dir->gfid;
    dir->own_ns = env_now_ns(m->env);
}

void own_attr_forget(struct node *dir)
{
    dir->own_ns = 0;
}

const struct iatt *own_attr(struct mount *m, const struct node *dir, uint64_t *ret_age_ns)
{
    uint64_t age_ns = env_now_ns(m->env) - dir->own_ns;

    if (!dir->own || !dir->own_ns || (double)age_ns >= mount_options(m)->attribute_timeout_s * 1e9 ||
        names_are_shared(m, &dir->gfid))
        return NULL;
    *ret_age_ns = age_ns;
    return dir->own;
}
