/* Operations on names: look-up, making, linking, renaming, removing. */
#include "mount/fuse/fuse_internal.h"
#include <fcntl.h>
#include <stdio.h>

static int check_name(const char *name)
{
    return strlen(name) > FUSE_NAME_LEN ? -ENAMETOOLONG : *name ? 0 : -EINVAL;
}

/* What the operation found or made under that name goes to the kernel. */
static int answer_found(struct request_in *in, const struct node *parent, const char *name, const struct iatt *a,
                        const struct fuse_open_out *open)
{
    struct node *node;

    if (!iatt_is_set(a) || gfid_is_null(&a->gfid))
        return -EIO;
    node = S_ISDIR(a->mode) && gfid_dir_is_above(in->m, parent) ? gfid_dir_alias(in->m, a) : node_get(in->m, a);
    if (!node)
        return -ENOMEM;
    if (node->type != iatt_type(a)) {
        node_pin(node);
        node_unpin(in->m, node);
        return -ESTALE;
    }
    node_set_name(node, parent, name);
    return answer_entry(in, node, a, open);
}

static FIBER int ask_lookup(struct request_in *in, const char *name, struct reply *r)
{
    struct request q = { .op = OP_LOOKUP, .parent = node_inode(in->m, in->node), .name = name };
    int result;

    if (!q.parent)
        return -ENOMEM;
    result = ask(in, &q, r);
    if (result == -ESTALE) { /* renamed or replaced between two steps below */
        in->m->count.retries++;
        reply_done(r);
        result = ask(in, &q, r);
    }
    return result;
}

/* The caller's open has failed because the name had been replaced: what is found now must still be there when it is
 * opened. */
static FIBER int look_up_to_open(struct request_in *in, const char *name, struct reply *r)
{
    int result = -ESTALE;

    for (int tries = 0; tries < 10 && result == -ESTALE; tries++) {
        reply_done(r);
        result = ask_lookup(in, name, r);
        if (result == -ESTALE)
            continue;
        if (result < 0 || !S_ISREG(r->stat.mode))
            return result;
        struct node *node = node_get(in->m, &r->stat);
        if (!node)
            return -ENOMEM;
        node_pin(node);
        node_unpin(in->m, in->found);
        in->found = node; /* with its descriptor until the answer counts it */
        result = keep_spare(in, node);
        if (result == -ENOENT)
            result = -ESTALE;
    }
    return result == -ESTALE ? result : 0; /* other failures show again when it is opened */
}

static FIBER void settle_found(struct request_in *in, const struct reply *r)
{
    struct node *node = node_by_gfid(in->m, &r->stat.gfid);

    if (!node)
        return;
    node_pin(node);
    attr_settle(in->m, node, &r->stat);
    node_unpin(in->m, node);
}

/* Nothing has that name: for how long the kernel may believe it. */
static int answer_none(struct request_in *in, double timeout_s)
{
    struct fuse_entry_out none = { .entry_valid = (uint64_t)timeout_s };

    if (timeout_s <= 0)
        return -ENOENT;
    none.entry_valid_nsec = (uint32_t)((timeout_s - (double)none.entry_valid) * 1e9);
    (void)answer(in, &none, sizeof(none));
    return 0;
}

static double none_timeout_s(const struct request_in *in)
{
    bool may_keep = in->upcalls == in->m->upcalls && !names_are_shared(in->m, &in->node->gfid);

    return may_keep ? mount_options(in->m)->negative_timeout_s : 0;
}

static int answer_sure_none(struct request_in *in, const char *name, uint64_t until_ns)
{
    double left_s = (double)(until_ns - env_now_ns(in->m->env)) / 1e9;

    recent_note(in->m, &in->node->gfid, name, NULL);
    return answer_none(in, MIN(left_s, none_timeout_s(in)));
}

FIBER int on_lookup(struct request_in *in)
{
    const char *name = (const char *)in->args;
    SCOPED(reply_free) struct reply *r = NULL;
    uint64_t mark = attr_mark(in->m, in->node), until_ns;
    int result = check_name(name);

    if (result < 0)
        return result;
    if (absent_is_sure(in->m, in->node, name, &until_ns))
        return answer_sure_none(in, name, until_ns);
    r = reply_new();
    if (!r)
        return -ENOMEM;
    if (gfid_dir_look_up(in, name))
        return 0;
    result = is_walking_again(in) ? look_up_to_open(in, name, r) : ask_lookup(in, name, r);
    if (result == 0 || result == -ENOENT)
        recent_note(in->m, &in->node->gfid, name, result == 0 ? &r->stat.gfid : NULL);
    if (result == -ENOENT) {
        absent_note(in, in->node, name, r, mark);
        return answer_none(in, none_timeout_s(in));
    }
    if (result < 0)
        return result;
    absent_may_come(in->m, in->node, name);
    settle_found(in, r);
    result = answer_found(in, in->node, name, &r->stat, NULL);
    return in->is_answered ? 0 : result;
}

/* A new inode object with a new gfid for what is to be made. Returned. */
static struct inode *new_inode(struct mount *m, uint32_t type)
{
    struct gfid gfid = gfid_for_new_inode(m->env);

    return inode_table_get(m->me->graph, &gfid, type);
}

static void made_directory(struct request_in *in, const struct reply *r)
{
    struct node *node = node_by_gfid(in->m, &r->stat.gfid);

    if (node) /* the kernel may have forgotten it already */
        absent_all(in, node, r);
}

static FIBER int make(struct request_in *in, struct request *q, uint32_t type)
{
    SCOPED(reply_free) struct reply *r = reply_new();
    SCOPED(inode_unref) struct inode *inode = NULL;
    int result = check_name(q->name);

    if (result < 0)
        return result;
    inode = new_inode(in->m, type);
    q->inode = inode;
    q->parent = node_inode(in->m, in->node);
    if (!r || !inode || !q->parent)
        return -ENOMEM;
    absent_may_come(in->m, in->node, q->name);
    result = ask(in, q, r);
    if (result < 0)
        return result == -EAGAIN ? -EIO : result;
    own_attr_note(in, in->node, &r->post);
    recent_note(in->m, &in->node->gfid, q->name, &r->stat.gfid);
    result = answer_found(in, in->node, q->name, &r->stat, NULL);
    if (result == 0 && type == S_IFDIR)
        made_directory(in, r);
    return in->is_answered ? 0 : result;
}

FIBER int on_mknod(struct request_in *in)
{
    const struct fuse_mknod_in *args = (const void *)in->args;
    struct request q = {
        .op = OP_MKNOD,
        .name = (const char *)in->args + sizeof(*args),
        .mode = args->mode,
        .rdev = args->rdev,
        .umask = args->umask,
    };

    return make(in, &q, args->mode & S_IFMT);
}

FIBER int on_mkdir(struct request_in *in)
{
    const struct fuse_mkdir_in *args = (const void *)in->args;
    struct request q = {
        .op = OP_MKDIR,
        .name = (const char *)in->args + sizeof(*args),
        .mode = args->mode,
        .umask = args->umask,
    };

    return make(in, &q, S_IFDIR);
}

FIBER int on_symlink(struct request_in *in)
{
    const char *name = (const char *)in->args;
    struct request q = { .op = OP_SYMLINK, .name = name, .text = name + strlen(name) + 1 };

    return make(in, &q, S_IFLNK);
}

FIBER int on_link(struct request_in *in)
{
    const struct fuse_link_in *args = (const void *)in->args;
    const char *name = (const char *)in->args + sizeof(*args);
    struct node *old = node_by_id(in->m, args->oldnodeid);
    SCOPED(reply_free) struct reply *r = reply_new();
    struct request q = { .op = OP_LINK, .parent2 = node_inode(in->m, in->node), .name2 = name };
    int result = check_name(name);

    q.inode = node_inode(in->m, old);
    if (result < 0)
        return result;
    if (!r || !q.inode || !q.parent2)
        return -ENOMEM;
    node_pin(old);
    absent_may_come(in->m, in->node, name);
    result = ask(in, &q, r);
    if (result >= 0) {
        own_attr_note(in, in->node, &r->post2);
        recent_note(in->m, &in->node->gfid, name, &old->gfid);
        result = answer_found(in, in->node, name, &r->stat, NULL);
    }
    old->told_is_set = false; /* its ctime has changed, and maybe not only by us */
    node_unpin(in->m, old);
    return in->is_answered ? 0 : result;
}

/* The inode a name led to a moment ago, for the graph below; *ret_is_none: it led nowhere. Returned; NULL: not known. */
static struct inode *recent_inode(struct mount *m, const struct node *parent, const char *name, bool *ret_is_none)
{
    const struct recent_name *n = recent_find(m, &parent->gfid, name);
    struct node *node = n && !gfid_is_null(&n->gfid) ? node_by_gfid(m, &n->gfid) : NULL;
    struct inode *inode = node && node != &m->root && !node->left ? node_inode(m, node) : NULL;

    *ret_is_none = n && gfid_is_null(&n->gfid);
    return inode ? inode_ref(inode) : NULL;
}

static FIBER int remove_name(struct request_in *in, enum op op)
{
    struct mount *m = in->m;
    struct request q = { .op = op, .parent = node_inode(m, in->node), .name = (const char *)in->args };
    SCOPED(reply_free) struct reply *r = reply_new();
    bool is_none;
    SCOPED(inode_unref) struct inode *inode = recent_inode(m, in->node, q.name, &is_none);
    int result = check_name(q.name);

    if (result < 0)
        return result;
    if (!q.parent || !r)
        return -ENOMEM;
    if (inode && (inode->type == S_IFDIR) == (op == OP_RMDIR))
        q.inode = inode;
    absent_may_come(m, in->node, q.name);
    result = ask(in, &q, r);
    if (result < 0)
        return result;
    own_attr_note(in, in->node, &r->post);
    recent_note(m, &in->node->gfid, q.name, NULL);
    absent_has_gone(m, in->node, q.name);
    (void)answer(in, NULL, 0);
    return 0;
}

FIBER int on_unlink(struct request_in *in)
{
    return remove_name(in, OP_UNLINK);
}

FIBER int on_rmdir(struct request_in *in)
{
    return remove_name(in, OP_RMDIR);
}

static void renamed(struct request_in *in, struct node *to, const struct request *q, const struct reply *r)
{
    struct mount *m = in->m;
    bool is_exchange = q->flags & RENAME_EXCHANGE;

    own_attr_note(in, in->node, is_exchange ? &(struct iatt) { 0 } : &r->post);
    if (to != in->node)
        own_attr_note(in, to, is_exchange ? &(struct iatt) { 0 } : &r->post2);
    if (q->inode)
        recent_note(m, &to->gfid, q->name2, &q->inode->gfid);
    else
        recent_forget(m, &to->gfid, q->name2);
    if (is_exchange)
        recent_forget(m, &in->node->gfid, q->name);
    else
        recent_note(m, &in->node->gfid, q->name, NULL);
    /* Of two names of one file nothing goes. In one directory nobody can have made the other name without our hearing. */
    if (q->flags == 0 && to == in->node && q->valid & RENAME_ONTO_NOTHING)
        absent_has_gone(m, in->node, q->name);
    (void)answer(in, NULL, 0);
}

static FIBER int do_rename(struct request_in *in, uint64_t newdir, const char *names, uint32_t flags)
{
    struct mount *m = in->m;
    struct node *to = node_by_id(m, newdir);
    struct request q = { .op = OP_RENAME, .name = names, .name2 = names + strlen(names) + 1, .flags = flags };
    SCOPED(reply_free) struct reply *r = reply_new();
    bool is_none, is_onto_nothing;
    SCOPED(inode_unref) struct inode *from = recent_inode(m, in->node, q.name, &is_none);
    SCOPED(inode_unref) struct inode *onto = recent_inode(m, to, q.name2, &is_onto_nothing);
    int result;

    q.parent = node_inode(m, in->node);
    q.parent2 = node_inode(m, to);
    result = check_name(q.name);
    if (result == 0)
        result = check_name(q.name2);
    if (result < 0)
        return result;
    if (to == &m->gfid_dir)
        return -EPERM;
    if (!q.parent || !q.parent2 || !r)
        return -ENOMEM;
    if (!(flags & RENAME_EXCHANGE)) {
        q.inode = from;
        q.inode2 = onto;
        q.valid = is_onto_nothing ? RENAME_ONTO_NOTHING : 0;
    }
    node_pin(to);
    absent_may_come(m, in->node, q.name);
    absent_may_come(m, to, q.name2);
    if (gfid_dir_is_above(m, to))
        gfid_dir_will_change(m, to);
    result = ask(in, &q, r);
    if (result >= 0)
        renamed(in, to, &q, r);
    if (gfid_dir_is_above(m, to))
        gfid_dir_changed(m, to, q.name2);
    node_unpin(m, to);
    return result < 0 ? result : 0;
}

FIBER int on_rename(struct request_in *in)
{
    const struct fuse_rename_in *args = (const void *)in->args;

    return do_rename(in, args->newdir, (const char *)in->args + sizeof(*args), 0);
}

FIBER int on_rename2(struct request_in *in)
{
    const struct fuse_rename2_in *args = (const void *)in->args;

    return do_rename(in, args->newdir, (const char *)in->args + sizeof(*args), args->flags);
}

/* Makes the file; always exclusively, so that the new gfid is that of the descriptor. */
static FIBER int create_new(struct request_in *in, const char *name)
{
    const struct fuse_create_in *args = (const void *)in->args;
    struct mount *m = in->m;
    uint32_t flags = (args->flags & ~(uint32_t)(O_TRUNC | O_NOCTTY)) | O_CREAT | O_EXCL;
    SCOPED(reply_free) struct reply *r = reply_new();
    SCOPED(inode_unref) struct inode *inode = new_inode(m, S_IFREG);
    SCOPED(fd_unref) struct fd *fd = NULL;
    struct request q = { .op = OP_CREATE, .name = name, .mode = args->mode, .umask = args->umask };
    struct fuse_open_out out = { 0 };
    struct node *node;
    struct handle *h;
    int result;

    q.parent = node_inode(m, in->node);
    if (!r || !inode || !q.parent)
        return -ENOMEM;
    fd = fd_new(inode, open_flags(m, flags) & ~(uint32_t)(O_CREAT | O_EXCL), in->call.pid);
    if (!fd)
        return -ENOMEM;
    q.inode = inode;
    q.fd = fd;
    q.flags = flags;
    absent_may_come(m, in->node, name);
    result = ask(in, &q, r);
    if (result < 0)
        return result;
    if (!iatt_is_set(&r->stat))
        return -EIO;
    r->stat.gfid = inode->gfid;
    own_attr_note(in, in->node, &r->post);
    recent_note(m, &in->node->gfid, name, &inode->gfid);
    node = node_get(m, &r->stat);
    h = node ? handle_new(node, fd, args->flags) : NULL;
    if (!h) {
        if (node) {
            node_pin(node);
            node_unpin(m, node);
        }
        return -ENOMEM;
    }
    node_set_name(node, in->node, name);
    node->cache_ns = node->no_caps_ns = env_now_ns(m->env);
    open_answer(m, h, &out);
    result = answer_entry(in, node, &r->stat, &out);
    if (result < 0)
        handle_free(m, h); /* nobody will release it */
    return 0;
}

/* Somebody else made it first and the caller does not mind. -ENOENT: somebody has removed it since. */
static FIBER int create_existing(struct request_in *in, const char *name)
{
    const struct fuse_create_in *args = (const void *)in->args;
    SCOPED(reply_free) struct reply *r = reply_new();
    struct fuse_open_out out = { 0 };
    struct node *node;
    int result;

    if (!r)
        return -ENOMEM;
    result = ask_lookup(in, name, r);
    if (result < 0)
        return result;
    if (!S_ISREG(r->stat.mode))
        return S_ISDIR(r->stat.mode) ? -EISDIR : -ESTALE; /* ESTALE: the kernel walks the path again */
    node = node_get(in->m, &r->stat);
    if (!node)
        return -ENOMEM;
    node_pin(node);
    node_set_name(node, in->node, name);
    result = open_node(in, node, args->flags & ~(uint32_t)(O_CREAT | O_EXCL), args->open_flags & FUSE_OPEN_KILL_SUIDGID,
                       &out);
    if (result == -ESTALE)
        result = -ENOENT;
    if (result == 0) {
        if (args->flags & O_TRUNC)
            r->stat.size = 0;
        result = answer_entry(in, node, &r->stat, &out);
        if (result < 0)
            handle_free(in->m, handle_by_id(out.fh));
    }
    node_unpin(in->m, node);
    return in->is_answered ? 0 : result;
}

FIBER int on_create(struct request_in *in)
{
    const struct fuse_create_in *args = (const void *)in->args;
    const char *name = (const char *)in->args + sizeof(*args);
    int result = check_name(name);

    if (result < 0)
        return result;
    /* Made and removed by others in turn, it may be there or not each time. */
    for (int tries = 0; tries < 10; tries++) {
        result = create_new(in, name);
        if (result != -EEXIST || args->flags & O_EXCL)
            return result;
        result = create_existing(in, name);
        if (result != -ENOENT)
            return result;
        in->m->count.retries++;
    }
    return -ESTALE; /* the kernel walks the path again, once */
}
