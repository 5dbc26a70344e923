/* cluster/replicate/heal_info.c - gathers what there is to heal: all indices are listed, then every inode on them is
 * looked at on all bricks, LOOKS_MAX at a time. */
#include "cluster/replicate/heal_info.h"
#include "cluster/replicate/replicate_internal.h"
#include "core/mem.h"
#include "graph/graph.h"
#include <uthash.h>

#define LOOKS_MAX   64
#define LIST_BYTES  (128 * 1024)
#define ENTRIES_MAX (16u * 1024 * 1024) /* on the indices together; more is not shown */
#define NAMES_MAX   100000              /* of a directory, compared */

struct seen {
    struct gfid gfid;
    uint32_t number;
    UT_hash_handle hh;
};

struct heal_info *heal_info_new(struct translator *me)
{
    struct heal_info *info = NEW(struct heal_info);

    if (!info)
        return NULL;
    info->me = me;
    info->child_count = replicate_of(me)->child_count;
    return info;
}

static void forget_seen(struct heal_info *info)
{
    struct seen *all = info->known, *s, *next;

    HASH_ITER(hh, all, s, next)
    {
        HASH_DELETE(hh, all, s);
        mem_free(s);
    }
    info->known = NULL;
}

void heal_info_free(struct heal_info *info)
{
    if (!info)
        return;
    forget_seen(info);
    for (unsigned i = 0; i < info->child_count; i++)
        mem_free(info->child[i].entries);
    for (uint32_t i = 0; i < info->count; i++)
        mem_free(info->entries[i].path);
    mem_free(info->entries);
    mem_free(info);
}

bool heal_info_is_ready(const struct translator *me)
{
    const struct replicate *s = me->state;

    for (unsigned i = 0; i < s->child_count; i++) {
        if (!s->child[i].has_spoken)
            return false;
    }
    return true;
}

bool heal_info_child_is_up(const struct translator *me, unsigned child)
{
    return (((const struct replicate *)me->state)->up & bit(child)) != 0;
}

FIBER int heal_info_count(struct translator *me, struct call *call, unsigned child, uint64_t *ret_count)
{
    static const char name[] = "glusterfs.xattrop_index_count";
    SCOPED(inode_unref) struct inode *root = inode_table_get(me->graph, &gfid_root, S_IFDIR);
    SCOPED(reply_free) struct reply *r = reply_new();
    int ret;

    if (!root || !r)
        return -ENOMEM;
    ret = child_getxattr(me, child, call, root, NULL, name, r);
    if (ret >= 0)
        ret = dict_get_uint(r->xattrs, name, ret_count);
    return ret < 0 ? ret : 0;
}

/* ---- what is listed ---- */

static int make_room(void **list, uint32_t count, uint32_t *room, size_t item_bytes)
{
    uint32_t more = *room ? *room * 2 : 64;
    void *longer;

    if (count < *room)
        return 0;
    if (count >= ENTRIES_MAX)
        return -E2BIG;
    longer = mem_realloc(*list, more * item_bytes);
    if (!longer)
        return -ENOMEM;
    *list = longer;
    *room = more;
    return 0;
}

/* The entry of this gfid, made if need be. */
static int entry_of(struct heal_info *info, const struct gfid *gfid, int64_t since_s, uint32_t *ret_number)
{
    struct seen *all = info->known, *s;
    int r;

    HASH_FIND(hh, all, gfid, sizeof(*gfid), s);
    if (s) {
        struct heal_entry *e = &info->entries[s->number];

        if (since_s && (!e->since_s || since_s < e->since_s))
            e->since_s = since_s;
        *ret_number = s->number;
        return 0;
    }
    r = make_room((void **)&info->entries, info->count, &info->room, sizeof(*info->entries));
    s = r == 0 ? NEW(struct seen) : NULL;
    if (!s)
        return r < 0 ? r : -ENOMEM;
    s->gfid = *gfid;
    s->number = info->count;
    HASH_ADD(hh, all, gfid, sizeof(s->gfid), s);
    info->known = all;
    info->entries[info->count++] = (struct heal_entry) { .gfid = *gfid, .since_s = since_s };
    *ret_number = s->number;
    return 0;
}

static int note_entry(struct heal_info *info, unsigned child, const struct gfid *gfid, int64_t since_s)
{
    struct heal_info_child *c = &info->child[child];
    uint32_t number;
    int r = entry_of(info, gfid, since_s, &number);

    if (r == 0 && (info->entries[number].listed_on & bit(child)))
        return 0; /* in `dirty` as well */
    if (r == 0)
        r = make_room((void **)&c->entries, c->count, &c->room, sizeof(*c->entries));
    if (r < 0)
        return r;
    c->entries[c->count++] = number;
    info->entries[number].listed_on |= bit(child);
    return 0;
}

/* ---- the index of one brick ---- */

struct pages {
    struct translator *me;
    struct call *call;
    unsigned child;
    struct reply *r;
    struct fd *fd;
    uint64_t offset;
    bool with_stat, at_end;
};

/* The next page of the directory that is open, or NULL at the end (*ret 0) or after an error. Returned. */
static FIBER struct dir_entries *next_page(struct pages *p, int *ret)
{
    struct request q = { .op = p->with_stat ? OP_READDIRP : OP_READDIR,
                         .inode = p->fd->inode,
                         .fd = p->fd,
                         .offset = p->offset,
                         .size = LIST_BYTES };
    struct dir_entries *page = NULL;

    if (p->at_end) {
        *ret = 0;
        return NULL;
    }
    *ret = child_call(p->me, p->child, p->call, &q, p->r);
    if (*ret > 0) {
        page = take(p->r->entries);
        p->offset = page->list[page->count - 1].offset;
        p->at_end = page->at_end;
    }
    reply_done(p->r);
    return page;
}

static FIBER int open_pages(struct pages *p, struct inode *dir)
{
    struct request q = { .op = OP_OPENDIR, .inode = dir };
    int r;

    p->offset = 0;
    p->at_end = false;
    p->fd = q.fd = fd_new(dir, O_RDONLY | O_DIRECTORY, PID_HEAL_INFO);
    if (!p->fd)
        return -ENOMEM;
    r = child_call(p->me, p->child, p->call, &q, p->r);
    reply_done(p->r);
    return r;
}

static FIBER int list_index(struct heal_info *info, struct pages *p, const char *which)
{
    SCOPED(inode_unref) struct inode *root = inode_table_get(p->me->graph, &gfid_root, S_IFDIR);
    SCOPED(inode_unref) struct inode *dir = NULL;
    struct dir_entries *page;
    struct gfid gfid;
    int r = root ? child_getxattr(p->me, p->child, p->call, root, NULL, which, p->r) : -ENOMEM;

    if (r >= 0)
        r = dict_get_gfid(p->r->xattrs, which, &gfid);
    reply_done(p->r);
    if (r < 0)
        return r;
    dir = inode_table_get(p->me->graph, &gfid, S_IFDIR);
    r = dir ? open_pages(p, dir) : -ENOMEM;
    while (r >= 0 && (page = next_page(p, &r))) {
        for (uint32_t i = 0; r >= 0 && i < page->count; i++) {
            if (gfid_parse(page->list[i].name, &gfid) == 0)
                r = note_entry(info, p->child, &gfid, page->list[i].stat.mtime);
        }
        dir_entries_free(page);
    }
    fd_unref(take(p->fd));
    return r;
}

struct lister {
    struct heal_info *info;
    struct call *call;
    unsigned child;
};

static FIBER int list_child(void *arg)
{
    struct lister *l = arg;
    struct heal_info *info = l->info;
    struct replicate *s = replicate_of(info->me);
    SCOPED(reply_free) struct reply *r = reply_new();
    struct pages p = { .me = info->me,
                       .call = l->call,
                       .child = l->child,
                       .r = r,
                       .with_stat = !(s->child[l->child].lacks & BRICK_LACKS_INDEX_STAT) };
    int ret;

    if (!r)
        return -ENOMEM;
    ret = list_index(info, &p, "glusterfs.xattrop_index_gfid");
    if (ret >= 0)
        ret = list_index(info, &p, "glusterfs.xattrop_dirty_gfid");
    info->child[l->child].is_up = ret >= 0;
    return ret == -ENOMEM || ret == -E2BIG ? ret : 0;
}

static FIBER int list_all(struct heal_info *info, struct call *call)
{
    struct replicate *s = replicate_of(info->me);
    SCOPED_FREE struct lister *listers = mem_array(info->child_count, sizeof(*listers));
    struct group group;
    uint32_t asked = s->up;
    size_t started = 0;

    if (!listers)
        return -ENOMEM;
    group_init(&group, info->me->env);
    for_each_child(i, asked)
    {
        listers[i] = (struct lister) { .info = info, .call = call, .child = i };
        started += group_run(&group, "heal-info", list_child, &listers[i]) == 0;
    }
    group_wait_all(&group);
    return started == mask_count(asked) && group.succeeded == started ? 0 : -ENOMEM;
}

/* ---- the names of a directory ---- */

struct name_seen {
    struct gfid gfid;
    uint32_t type;
    UT_hash_handle hh;
    char name[];
};

static int compare_name(struct name_seen **all, unsigned *count, const struct dir_entry *e, uint32_t *split)
{
    struct name_seen *n;
    size_t len = e->name_len;

    HASH_FIND(hh, *all, e->name, len, n);
    if (n) {
        if (gfid_is_null(&e->stat.gfid) || gfid_equal(&n->gfid, &e->stat.gfid))
            return 0;
        *split |= n->type == iatt_type(&e->stat) ? HEAL_SPLIT_GFID : HEAL_SPLIT_TYPE;
        return 0;
    }
    if (gfid_is_null(&e->stat.gfid) || *count >= NAMES_MAX)
        return 0;
    n = mem_alloc(sizeof(*n) + len + 1);
    if (!n)
        return -ENOMEM;
    memcpy(n->name, e->name, len + 1);
    n->gfid = e->stat.gfid;
    n->type = iatt_type(&e->stat);
    HASH_ADD_KEYPTR(hh, *all, n->name, len, n);
    ++*count;
    return 0;
}

/* Does a name lead to different inodes? */
static FIBER int compare_names(struct translator *me, struct call *call, struct inode *dir, uint32_t children,
                               uint32_t *split)
{
    SCOPED(reply_free) struct reply *reply = reply_new();
    struct name_seen *all = NULL, *n, *next;
    unsigned count = 0;
    int r = reply ? 0 : -ENOMEM;

    for_each_child(i, reply ? children : 0)
    {
        struct pages p = { .me = me, .call = call, .child = i, .r = reply, .with_stat = true };
        struct dir_entries *page;

        r = open_pages(&p, dir);
        while (r >= 0 && (page = next_page(&p, &r))) {
            for (uint32_t k = 0; r >= 0 && k < page->count; k++)
                r = page->list[k].name[0] == '.' && page->list[k].name_len <= 2
                        ? 0
                        : compare_name(&all, &count, &page->list[k], split);
            dir_entries_free(page);
        }
        fd_unref(p.fd);
    }
    HASH_ITER(hh, all, n, next)
    {
        HASH_DELETE(hh, all, n);
        mem_free(n);
    }
    return r;
}

/* ---- looking ---- */

struct looker {
    struct heal_info *info;
    struct call *call;
    unsigned flags;
    uint32_t next;
    int error;
};

static uint32_t accused(const struct heal_view *view, uint32_t child_count, enum change change)
{
    uint32_t mask = 0;

    for (unsigned i = 0; i < child_count; i++) {
        if (view->child[i].blamed_by[change] & ~bit(i))
            mask |= bit(i);
    }
    return mask;
}

static void judge_entry(struct heal_info *info, const struct heal_view *view, struct heal_entry *e)
{
    for (int change = 0; change < CHANGE_COUNT; change++)
        e->behind |= accused(view, info->child_count, (enum change)change);
    for (unsigned i = 0; i < info->child_count; i++) {
        if ((view->answered & bit(i)) && view->child[i].error == -ENOENT)
            e->behind |= bit(i);
        if ((view->answered & bit(i)) && !view->child[i].error && !e->type)
            e->type = iatt_type(&view->child[i].stat);
    }
    e->needs = view->needs;
    e->split_brain = view->split_brain;
    if (view->is_gone || !(view->needs || view->is_pending || view->split_brain))
        e->state = HEAL_STATE_NONE;
    else if (view->split_brain)
        e->state = HEAL_STATE_SPLIT_BRAIN;
    else
        e->state = view->is_healing ? HEAL_STATE_HEALING : HEAL_STATE_PENDING;
}

static FIBER char *path_of(struct heal_info *info, struct call *call, struct inode *inode)
{
    static const char name[] = "glusterfs.gfid2path";
    SCOPED(reply_free) struct reply *r = reply_new();
    const char *text;
    char *path = NULL;

    if (gfid_is_root(&inode->gfid))
        return mem_strdup("/");
    for_each_child(i, r ? replicate_of(info->me)->up : 0)
    {
        if (!path && child_getxattr(info->me, i, call, inode, NULL, name, r) >= 0 &&
            dict_get_str(r->xattrs, name, &text) == 0 && text[0] == '/')
            path = mem_strdup(text);
        reply_done(r);
    }
    return path;
}

static FIBER int look_at(struct looker *l, uint32_t number)
{
    struct heal_info *info = l->info;
    struct translator *me = info->me;
    struct heal_entry found = info->entries[number];
    SCOPED(inode_unref) struct inode *inode = inode_table_get(me->graph, &found.gfid, 0);
    SCOPED(heal_view_free) struct heal_view *view = heal_view_new();
    int r;

    if (!inode || !view)
        return -ENOMEM;
    r = heal_look(me, l->call, inode, view);
    if (r < 0) {
        found.state = HEAL_STATE_PENDING; /* better one too many than one too few */
    } else {
        judge_entry(info, view, &found);
        if ((l->flags & HEAL_INFO_NAMES) && found.type == S_IFDIR && found.state != HEAL_STATE_NONE &&
            mask_count(accused(view, info->child_count, CHANGE_ENTRY)) > 1) {
            r = compare_names(me, l->call, inode, view->answered, &found.split_brain);
            if (found.split_brain)
                found.state = HEAL_STATE_SPLIT_BRAIN;
        }
    }
    if ((l->flags & HEAL_INFO_PATHS) && found.state != HEAL_STATE_NONE)
        found.path = path_of(info, l->call, inode);
    info->entries[number] = found;
    return r == -ENOMEM ? r : 0;
}

static FIBER int look_on(void *arg)
{
    struct looker *l = arg;

    while (l->next < l->info->count && !l->error) {
        int r = look_at(l, l->next++);

        if (r < 0)
            l->error = r;
    }
    return 0;
}

static FIBER int look_at_all(struct heal_info *info, struct call *call, unsigned flags)
{
    struct looker l = { .info = info, .call = call, .flags = flags };
    struct group group;
    unsigned started = 0;

    group_init(&group, info->me->env);
    while (started < LOOKS_MAX && started < info->count && group_run(&group, "heal-look", look_on, &l) == 0)
        started++;
    group_wait_all(&group);
    return info->count && !started ? -ENOMEM : l.error;
}

static void drop_what_is_well(struct heal_info *info)
{
    for (unsigned i = 0; i < info->child_count; i++) {
        struct heal_info_child *c = &info->child[i];
        uint32_t kept = 0;

        for (uint32_t n = 0; n < c->count; n++) {
            if (info->entries[c->entries[n]].state != HEAL_STATE_NONE)
                c->entries[kept++] = c->entries[n];
        }
        c->count = kept;
    }
}

FIBER int heal_info_gather(struct heal_info *info, struct call *call, unsigned flags)
{
    int r = list_all(info, call);

    forget_seen(info);
    if (r == 0)
        r = look_at_all(info, call, flags);
    if (r == 0)
        drop_what_is_well(info);
    return r;
}
