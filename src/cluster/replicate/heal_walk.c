/* cluster/replicate/heal_walk.c - the whole tree, for what no index knows: a brick that lost files behind our back, or a
 * new one without marks.
 *
 * Depth first, one directory after the other; the entries of a page of a directory are healed side by side. Where the
 * walk is - for each directory on the way down its gfid, and the place in its listing - is kept now and then as an xattr
 * on the roots of the bricks, so that a daemon that is started again goes on there. Places are those of one brick's
 * listing; when that brick is away the directory is listed from its beginning.
 */
#include "cluster/replicate/healer_internal.h"
#include "core/mem.h"
#include "graph/graph.h"
#include <stdio.h>
#include <stdlib.h>

#define PAGE_BYTES    (64 * 1024)
#define DEPTH_MAX     1024
#define MARK_BYTES    4096 /* what fits: the walk goes on from the deepest directory that does */
#define MARK_EVERY_MS 5000

struct frame {
    struct gfid gfid;
    uint64_t offset; /* where the page begins */
    int listed_on;   /* child; -1: not listed yet */
    struct fd *fd;
    struct dir_entries *page;
    uint32_t at;   /* entry to go into next */
    uint64_t next; /* offset of the next page */
    bool at_end;
};

struct walk {
    struct translator *me;
    struct call *call;
    struct frame *frames;
    unsigned depth, room;
    uint64_t marked_ns;
    struct reply *r;
};

/* ---- frames ---- */

static void drop_page(struct frame *f)
{
    dir_entries_free(f->page);
    f->page = NULL;
    f->at = 0;
}

static void pop(struct walk *w)
{
    struct frame *f = &w->frames[--w->depth];

    drop_page(f);
    fd_unref(f->fd);
}

static int push(struct walk *w, const struct gfid *gfid)
{
    if (w->depth == DEPTH_MAX)
        return -ELOOP;
    if (w->depth == w->room) {
        unsigned room = w->room ? w->room * 2 : 16;
        struct frame *longer = mem_realloc(w->frames, room * sizeof(*longer));

        if (!longer)
            return -ENOMEM;
        w->frames = longer;
        w->room = room;
    }
    w->frames[w->depth++] = (struct frame) { .gfid = *gfid, .listed_on = -1 };
    return 0;
}

/* ---- the mark ---- */

/* "CHILD/GFID:OFFSET/GFID:OFFSET...", the child the places are of. */
static char *mark_text(const struct walk *w)
{
    char *text = w->depth ? mem_printf("%d", w->frames[0].listed_on) : NULL;

    for (unsigned i = 0; text && i < w->depth && strlen(text) < MARK_BYTES; i++) {
        const struct frame *f = &w->frames[i];
        char *longer = mem_printf("%s/%s:%llu", text, GFID_TEXT(&f->gfid),
                                  (unsigned long long)(f->listed_on == w->frames[0].listed_on ? f->offset : 0));

        mem_free(text);
        text = longer;
    }
    return text;
}

static FIBER void mark_set(struct walk *w, const char *text)
{
    SCOPED(inode_unref) struct inode *root = inode_table_get(w->me->graph, &gfid_root, S_IFDIR);
    SCOPED(dict_unref) struct dict *d = dict_new();

    w->marked_ns = env_now_ns(w->me->env);
    if (!root || !d || dict_set_bin(d, CHECKPOINT_KEY, text, strlen(text) + 1) < 0)
        return;
    for_each_child(i, replicate_of(w->me)->up)
    {
        (void)child_setxattr(w->me, i, w->call, root, NULL, d, 0, w->r); /* without it a walk begins anew */
        reply_done(w->r);
    }
}

static FIBER void mark_remove(struct walk *w)
{
    SCOPED(inode_unref) struct inode *root = inode_table_get(w->me->graph, &gfid_root, S_IFDIR);
    struct request q = { .op = OP_REMOVEXATTR, .inode = root, .text = CHECKPOINT_KEY };

    for_each_child(i, root ? replicate_of(w->me)->up : 0)(void)
        child_call(w->me, i, w->call, &q, NULL); /* a walk too many, else */
}

static FIBER char *mark_get(struct walk *w)
{
    SCOPED(inode_unref) struct inode *root = inode_table_get(w->me->graph, &gfid_root, S_IFDIR);
    char *text = NULL;
    const char *value;

    for_each_child(i, root ? replicate_of(w->me)->up : 0)
    {
        if (!text && child_getxattr(w->me, i, w->call, root, NULL, CHECKPOINT_KEY, w->r) >= 0 &&
            dict_get_str(w->r->xattrs, CHECKPOINT_KEY, &value) == 0)
            text = mem_strdup(value);
        reply_done(w->r);
    }
    return text;
}

/* Frames as the mark has them; what cannot be read is left out. */
static void mark_read(struct walk *w, const char *text)
{
    char *at;
    long child = strtol(text, &at, 10);

    while (*at == '/' && strlen(at) > GFID_TEXT_LEN + 1) {
        char gfid_text[GFID_TEXT_LEN + 1];
        struct gfid gfid;

        memcpy(gfid_text, at + 1, GFID_TEXT_LEN);
        gfid_text[GFID_TEXT_LEN] = '\0';
        at += 1 + GFID_TEXT_LEN;
        if (gfid_parse(gfid_text, &gfid) < 0 || *at != ':' || push(w, &gfid) < 0)
            return;
        w->frames[w->depth - 1].offset = strtoull(at + 1, &at, 10);
        w->frames[w->depth - 1].listed_on = child >= 0 && child < CHILDREN_MAX ? (int)child : -1;
    }
}

FIBER bool heal_walk_is_unfinished(struct translator *me, struct call *call)
{
    SCOPED(reply_free) struct reply *r = reply_new();
    struct walk w = { .me = me, .call = call, .r = r };
    SCOPED_FREE char *mark = r ? mark_get(&w) : NULL;

    return mark != NULL;
}

/* ---- listing ---- */

/* Lists by the child that the frame's place is of, or else by one that is good, from the beginning. */
static FIBER int open_frame(struct walk *w, struct frame *f, struct inode *dir)
{
    struct request q = { .op = OP_OPENDIR, .inode = dir };
    struct known known;
    int r = known_get(w->me, w->call, dir, NULL, true, &known);
    uint32_t good = known.data ? known.data : known.seen & ~replicate_of(w->me)->arbiter;

    if (r < 0)
        return r;
    if (!good)
        return -ENOTCONN;
    if (f->listed_on < 0 || !(good & bit((unsigned)f->listed_on))) {
        f->listed_on = (int)read_choose(w->me, w->call, dir, good);
        f->offset = 0;
    }
    f->fd = q.fd = fd_new(dir, O_RDONLY | O_DIRECTORY, PID_SELF_HEAL);
    if (!f->fd)
        return -ENOMEM;
    r = child_call(w->me, (unsigned)f->listed_on, w->call, &q, w->r);
    reply_done(w->r);
    return r;
}

static bool is_walked(const struct frame *f, const struct dir_entry *e)
{
    if (strcmp(e->name, ".") == 0 || strcmp(e->name, "..") == 0 || gfid_is_null(&e->stat.gfid))
        return false;
    return !gfid_is_root(&f->gfid) || (!name_is_private(e->name) && strcmp(e->name, ".glusterfs") != 0);
}

/* Queues what is on the page; returns when all of it has been tried. */
static FIBER int heal_page(struct walk *w, struct frame *f)
{
    struct healer *h = replicate_of(w->me)->healer;
    int r = 0;

    for (uint32_t i = 0; r >= 0 && f->page && i < f->page->count; i++) {
        const struct dir_entry *e = &f->page->list[i];
        uint32_t type = iatt_type(&e->stat);
        struct heal_crawl *crawl;

        if (!is_walked(f, e))
            continue;
        r = heal_queue_add_waiting(w->me, w->call, &e->stat.gfid, type, HEAL_FULL, f->listed_on);
        crawl = heal_crawl_of(h, f->listed_on, true);
        if (crawl)
            crawl->tally.found++;
        if (r == -EALREADY || r == -EAGAIN)
            r = 0;
    }
    return r < 0 ? r : heal_queue_drain(w->me, w->call);
}

static FIBER int read_page(struct walk *w, struct frame *f)
{
    SCOPED(inode_unref) struct inode *dir = inode_table_get(w->me->graph, &f->gfid, S_IFDIR);
    int r = dir ? 0 : -ENOMEM;

    drop_page(f);
    if (r == 0 && !f->fd)
        r = open_frame(w, f, dir);
    if (r < 0)
        return r;
    struct request q = { .op = OP_READDIRP, .inode = dir, .fd = f->fd, .offset = f->offset, .size = PAGE_BYTES };
    r = child_call(w->me, (unsigned)f->listed_on, w->call, &q, w->r);
    if (r > 0) {
        f->page = take(w->r->entries);
        f->next = f->page->list[f->page->count - 1].offset;
        f->at_end = f->page->at_end;
    } else {
        f->at_end = true;
    }
    reply_done(w->r);
    return r < 0 ? r : heal_page(w, f);
}

/* ---- walking ---- */

/* The next directory on the page, or NULL. */
static const struct dir_entry *next_directory(struct frame *f)
{
    while (f->page && f->at < f->page->count) {
        const struct dir_entry *e = &f->page->list[f->at++];

        if (iatt_type(&e->stat) == S_IFDIR && is_walked(f, e))
            return e;
    }
    return NULL;
}

/* One step: into a directory, to the next page, or up. A directory that went away meanwhile is no error. */
static FIBER int step(struct walk *w)
{
    struct frame *f = &w->frames[w->depth - 1];
    const struct dir_entry *e = next_directory(f);
    int r;

    if (e)
        return push(w, &e->stat.gfid);
    if (f->page && f->at_end) {
        pop(w);
        return 0;
    }
    if (f->page)
        f->offset = f->next;
    r = read_page(w, f);
    if (r == -ENOENT || r == -ESTALE) {
        pop(w);
        return 0;
    }
    if (r == 0 && !f->page) {
        pop(w);
        return 0;
    }
    return r;
}

/* Frames of a mark: pages are read again, and entered where the deeper frame says. */
static FIBER int resume(struct walk *w)
{
    unsigned depth = w->depth;

    for (unsigned i = 0; i < depth; i++) {
        struct frame *f = &w->frames[i];
        int r = read_page(w, f);
        uint32_t at = 0;

        if (r < 0) {
            while (w->depth > i + 1)
                pop(w);
            return r == -ENOENT || r == -ESTALE ? 0 : r;
        }
        if (i + 1 == depth)
            return 0;
        while (f->page && at < f->page->count && !gfid_equal(&f->page->list[at].stat.gfid, &w->frames[i + 1].gfid))
            at++;
        if (!f->page || at == f->page->count) { /* not there any more: the whole page once more */
            while (w->depth > i + 1)
                pop(w);
            return 0;
        }
        f->at = at + 1;
    }
    return 0;
}

static FIBER int begin(struct walk *w)
{
    SCOPED_FREE char *mark = mark_get(w);
    struct healer *h = replicate_of(w->me)->healer;
    int r;

    if (mark)
        mark_read(w, mark);
    if (w->depth && gfid_is_root(&w->frames[0].gfid)) {
        TLOG(w->me, LOG_INFO, "heal-walk", "goes-on-at=%s depth=%u", GFID_TEXT(&w->frames[w->depth - 1].gfid),
             w->depth);
        return resume(w);
    }
    while (w->depth)
        pop(w);
    r = heal_queue_add_waiting(w->me, w->call, &gfid_root, S_IFDIR, HEAL_FULL, -1);
    if (r == 0 || r == -EALREADY || r == -EAGAIN)
        r = heal_queue_drain(w->me, w->call);
    (void)h;
    return r < 0 ? r : push(w, &gfid_root);
}

static FIBER int go(struct walk *w)
{
    struct healer *h = replicate_of(w->me)->healer;
    int r = begin(w);

    while (r == 0 && w->depth) {
        if (h->stops_walk || scope_check(&w->call->scope, w->me->env) < 0)
            return -ECANCELED;
        if (mask_count(replicate_of(w->me)->up) < 2)
            return -ENOTCONN;
        if (env_now_ns(w->me->env) > w->marked_ns + MARK_EVERY_MS * UINT64_C(1000000)) {
            SCOPED_FREE char *text = mark_text(w);

            if (text)
                mark_set(w, text);
        }
        heal_index_if_due(w->me);
        r = step(w);
    }
    return r;
}

FIBER int heal_walk(struct translator *me, struct call *call)
{
    SCOPED(reply_free) struct reply *r = reply_new();
    struct walk w = { .me = me, .call = call, .r = r, .marked_ns = env_now_ns(me->env) };
    int ret = r ? go(&w) : -ENOMEM;

    if (ret == 0) {
        mark_remove(&w);
    } else if (r && w.depth) {
        SCOPED_FREE char *text = mark_text(&w);

        if (text && !replicate_of(me)->healer->is_stopping)
            mark_set(&w, text);
    }
    while (w.depth)
        pop(&w);
    mem_free(w.frames);
    return ret;
}
