/* Directories. Entries are read from the graph in batches larger than the kernel's requests and handed out from there.
 * The graph is always asked for entries with attributes when it may be (use-readdirp): names alone carry no inode
 * number that is sure to be the one stat(2) shows. */
#include "mount/fuse/fuse_internal.h"
#include <dirent.h>

struct page { /* what is sent to the kernel */
    uint8_t *bytes;
    size_t room, used;
};

static void drop_batch(struct handle *h)
{
    dir_entries_free(take(h->batch));
    h->batch_next = 0;
}

/* Makes h->batch hold what comes at `offset`. Afterwards batch_next == batch->count means the end. */
static FIBER int fetch(struct request_in *in, struct handle *h, uint64_t offset)
{
    SCOPED(reply_free) struct reply *r = reply_new();
    SCOPED(fd_unref) struct fd *fd = fd_ref(h->fd);
    struct request q = { .op = mount_options(in->m)->use_readdirp ? OP_READDIRP : OP_READDIR };
    int result;

    if (!r)
        return -ENOMEM;
    q.inode = fd->inode;
    q.fd = fd;
    q.offset = offset;
    q.size = FUSE_DIR_BATCH;
    result = ask(in, &q, r);
    drop_batch(h);
    if (result < 0)
        return result == -ENOENT || result == -ESTALE ? 0 : result; /* removed, hence empty: nothing to list */
    h->batch = take(r->entries);
    h->batch_offset = offset;
    h->batch_ns = env_now_ns(in->m->env);
    h->batch_upcalls = in->upcalls;
    return h->batch ? 0 : -EIO;
}

/* Goes to `offset` in the batch, if it is there. */
static bool seek_in_batch(struct handle *h, uint64_t offset)
{
    if (!h->batch || offset == 0) /* rewound: list afresh */
        return false;
    if (h->batch_offset == offset)
        return true;
    for (uint32_t i = 0; i < h->batch->count; i++) {
        if (h->batch->list[i].offset != offset)
            continue;
        h->batch_next = i + 1;
        h->batch_offset = offset;
        return true;
    }
    return false;
}

static bool is_dot(const struct dir_entry *e)
{
    return e->name[0] == '.' && (e->name_len == 1 || (e->name_len == 2 && e->name[1] == '.'));
}

static bool put_dirent(struct page *p, uint64_t ino, const struct dir_entry *e, struct fuse_entry_out **ret_plus)
{
    size_t fixed = ret_plus ? FUSE_NAME_OFFSET_DIRENTPLUS : FUSE_NAME_OFFSET;
    size_t bytes = FUSE_REC_ALIGN(fixed + e->name_len);
    uint8_t *at = p->bytes + p->used;
    struct fuse_dirent *d;

    if (bytes > p->room - p->used)
        return false;
    memset(at, 0, bytes);
    if (ret_plus) {
        *ret_plus = (void *)at;
        at += sizeof(**ret_plus);
    }
    d = (void *)at;
    d->ino = ino;
    d->off = e->offset;
    d->namelen = e->name_len;
    d->type = e->type ? e->type : IFTODT(e->stat.mode);
    memcpy(d->name, e->name, e->name_len);
    p->used += bytes;
    return true;
}

static uint64_t entry_ino(struct mount *m, const struct dir_entry *e)
{
    struct fuse_attr attr;

    if (!iatt_is_set(&e->stat) || gfid_is_null(&e->stat.gfid))
        return e->ino ? e->ino : ~(uint64_t)0;
    attr_fill(m, &attr, &e->stat);
    return attr.ino;
}

/* The kernel learns the entry as by a look-up; a zero nodeid tells it to look it up itself. */
static void tell_entry(struct request_in *in, struct handle *h, const struct dir_entry *e, struct fuse_entry_out *plus)
{
    struct mount *m = in->m;
    bool is_fresh = env_now_ns(m->env) - h->batch_ns < FUSE_DIR_FRESH_NS && h->batch_upcalls == m->upcalls;
    struct node *node;

    if (is_dot(e) || !is_fresh || gfid_dir_is_above(m, h->node) || !iatt_is_set(&e->stat) ||
        gfid_is_null(&e->stat.gfid))
        return;
    node = node_get(m, &e->stat);
    if (!node)
        return;
    if (node->type != iatt_type(&e->stat) || !list_empty(&node->handles)) {
        /* While a file is open its attributes move; a batch is too old for them. */
        node_pin(node);
        node_unpin(m, node);
        return;
    }
    entry_fill(in, plus, node, &e->stat);
    node->lookups++;
    node_set_name(node, h->node, e->name);
    node_told(m, node, &e->stat);
}

static void untell(struct mount *m, const struct page *p)
{
    for (size_t at = 0; at < p->used;) {
        const struct fuse_direntplus *d = (const void *)(p->bytes + at);

        if (d->entry_out.nodeid)
            node_forget(m, node_by_id(m, d->entry_out.nodeid), 1);
        at += FUSE_DIRENTPLUS_SIZE(d);
    }
}

static FIBER int fill_page(struct request_in *in, struct handle *h, uint64_t offset, bool is_plus, struct page *p)
{
    if (!seek_in_batch(h, offset)) {
        int r = fetch(in, h, offset);
        if (r < 0)
            return r;
    }
    for (;;) {
        if (!h->batch)
            return 0;
        if (h->batch_next >= h->batch->count) {
            if (p->used > 0 || h->batch->count == 0 || h->batch->at_end)
                return 0; /* what is there goes out first */
            int r = fetch(in, h, h->batch_offset);
            if (r < 0)
                return r;
            continue;
        }
        const struct dir_entry *e = &h->batch->list[h->batch_next];
        struct fuse_entry_out *plus = NULL;

        if (!put_dirent(p, entry_ino(in->m, e), e, is_plus ? &plus : NULL))
            return 0;
        if (is_plus)
            tell_entry(in, h, e, plus);
        h->batch_offset = e->offset;
        h->batch_next++;
    }
}

static FIBER int read_directory(struct request_in *in, bool is_plus)
{
    const struct fuse_read_in *args = (const void *)in->args;
    struct handle *h = handle_by_id(args->fh);
    size_t room = MIN(args->size, FUSE_MAX_WRITE);
    SCOPED_FREE uint8_t *bytes = mem_alloc(room ? room : 1);
    struct page p = { .bytes = bytes, .room = room };
    int result;

    if (!bytes)
        return -ENOMEM;
    if (!h->fd)
        return -EBADF;
    result = fiber_mutex_lock(&h->dir_lock, &in->call.scope);
    if (result < 0)
        return result;
    result = fill_page(in, h, args->offset, is_plus, &p);
    fiber_mutex_unlock(&h->dir_lock);
    if (result < 0 && p.used == 0)
        return result;
    if (answer(in, p.bytes, p.used) < 0 && is_plus)
        untell(in->m, &p);
    return 0;
}

FIBER int on_readdir(struct request_in *in)
{
    return read_directory(in, false);
}

FIBER int on_readdirplus(struct request_in *in)
{
    return read_directory(in, true);
}
