#include "core/mem.h"
#include "sim/workload_internal.h"
#include <fcntl.h>
#include <stdio.h>

bool actor_is_dead(const struct actor *a)
{
    return sim_is_crashed(a->env);
}

uint64_t actor_dice(struct actor *a, uint64_t sides)
{
    return env_random_u64(a->env) % sides;
}

FIBER int actor_ask(struct actor *a, struct request *q, struct reply *r)
{
    struct call call;
    call_init(&call, a->graph);
    call.scope.deadline_ns = env_deadline_ms(a->env, OP_DEADLINE_MS);
    call.pid = 1000 + (int)a->index;
    lk_owner_from_u64(&call.lk_owner, 77 + a->index);
    int ret = translator_call(a->graph->root, &call, q, r);
    call_done(&call);
    if (!actor_is_dead(a)) {
        a->w->stats.ops++;
        a->w->stats.failed += ret < 0;
    }
    return ret;
}

static bool is_leased(struct actor *a, struct inode *inode, const struct kept *k)
{
    struct lease lease;
    return k->asked_ns && translator_lease(a->graph->root, inode, &lease) && lease.since_ns <= k->asked_ns;
}

void actor_say(const struct actor *a, const char *what, unsigned x, unsigned y, uint32_t version, int ret)
{
    if (a->w->cluster->config.verbose)
        fprintf(stderr, "# %.6f s: %s: %s %u/%u version %u: %d\n", (double)env_now_ns(a->env) / 1e9, a->who, what, x, y,
                version, ret);
}

static FIBER void rest(struct actor *a, uint64_t max_ms)
{
    (void)fiber_sleep_ms(NULL, 1 + actor_dice(a, max_ms));
}

/* ---- blocks of files ---- */

uint64_t block_offset(unsigned file, unsigned index)
{
    return (uint64_t)index * (file < SHARED_FILES ? MODEL_BLOCK : LOOSE_STRIDE);
}

static FIBER struct fd *file_fd(struct actor *a, unsigned file)
{
    if (a->fds[file] && actor_dice(a, 10))
        return a->fds[file];
    fd_unref(take(a->fds[file]));
    SCOPED(fd_unref) struct fd *fd = fd_new(a->files[file], O_RDWR, 1000);
    SCOPED(reply_free) struct reply *r = reply_new();
    struct request q = { .op = OP_OPEN, .inode = a->files[file], .fd = fd, .flags = O_RDWR };
    int ret = actor_ask(a, &q, r);
    if (ret < 0) {
        actor_failed(a, &a->files[file]->gfid, "open of file", file, 0, ret);
        return NULL;
    }
    a->fds[file] = take(fd);
    return a->fds[file];
}

FIBER struct fd *actor_open(struct actor *a, unsigned file)
{
    struct fd *fd = file_fd(a, file);
    return fd ? fd_ref(fd) : NULL;
}

FIBER void write_block(struct actor *a, unsigned file, unsigned index)
{
    struct reg *reg = model_block(&a->w->model, file, index);
    SCOPED(fd_unref) struct fd *fd = actor_open(a, file);
    if (!fd || actor_is_dead(a) || reg->issued + 1 >= MODEL_MAX_VERSIONS)
        return;
    uint32_t version = reg_issue(reg);
    SCOPED(buf_unref) struct buf *data = buf_new(MODEL_BLOCK);
    block_fill(data->data, file, index, version);
    SCOPED(reply_free) struct reply *r = reply_new();
    struct request q = { .op = OP_WRITE,
                         .inode = fd->inode,
                         .fd = fd,
                         .offset = block_offset(file, index),
                         .data = data,
                         .size = MODEL_BLOCK };
    a->blocks[file][index].asked_ns = 0;
    int ret = actor_ask(a, &q, r);
    actor_say(a, "write", file, index, version, ret);
    if (actor_is_dead(a))
        return;
    a->w->stats.writes++;
    if (ret == (int)MODEL_BLOCK)
        reg_ack(reg, version);
    else if (ret >= 0)
        model_violation(&a->w->model, "%s: write of %u bytes answered %d", a->who, MODEL_BLOCK, ret);
}

FIBER void read_block(struct actor *a, unsigned file, unsigned index)
{
    SCOPED(fd_unref) struct fd *fd = actor_open(a, file);
    if (!fd || actor_is_dead(a))
        return;
    uint32_t acked = model_block(&a->w->model, file, index)->acked;
    SCOPED(reply_free) struct reply *r = reply_new();
    struct request q = {
        .op = OP_READ, .inode = fd->inode, .fd = fd, .offset = block_offset(file, index), .size = MODEL_BLOCK
    };
    int ret = actor_ask(a, &q, r);
    if (ret < 0)
        actor_failed(a, &fd->inode->gfid, "read of block", file, index, ret);
    if (ret < 0 || actor_is_dead(a))
        return;
    uint8_t seen[MODEL_BLOCK] = { 0 };
    if (r->data)
        memcpy(seen, r->data->data, MIN(r->data->size, (size_t)MODEL_BLOCK));
    a->w->stats.reads++;
    a->blocks[file][index].asked_ns = r->asked_ns;
    memcpy(a->blocks[file][index].block, seen, MODEL_BLOCK);
    (void)model_check_block(&a->w->model, file, index, seen, acked, a->who);
}

static FIBER void sync_file(struct actor *a, unsigned file)
{
    SCOPED(fd_unref) struct fd *fd = actor_open(a, file);
    if (!fd || actor_is_dead(a))
        return;
    uint32_t acked[BLOCKS];
    for (unsigned i = 0; i < BLOCKS; i++)
        acked[i] = model_block(&a->w->model, file, i)->acked;
    SCOPED(reply_free) struct reply *r = reply_new();
    struct request q = { .op = OP_FSYNC, .inode = fd->inode, .fd = fd };
    int ret = actor_ask(a, &q, r);
    actor_say(a, "sync", file, 0, 0, ret);
    if (ret < 0 || actor_is_dead(a))
        return;
    for (unsigned i = 0; i < BLOCKS; i++) {
        struct reg *reg = model_block(&a->w->model, file, i);
        reg->synced = MAX(reg->synced, MIN(acked[i], reg->acked));
    }
}

/* ---- names ---- */

const char *name_text(unsigned name, char text[static 16])
{
    snprintf(text, 16, "n%u", name);
    return text;
}

static FIBER int look_up(struct actor *a, unsigned dir, unsigned name, struct gfid *ret_gfid, uint64_t *ret_asked_ns)
{
    char text[16];
    SCOPED(reply_free) struct reply *r = reply_new();
    struct request q = { .op = OP_LOOKUP, .parent = a->dirs[dir], .name = name_text(name, text) };
    int ret = actor_ask(a, &q, r);
    *ret_asked_ns = r->asked_ns;
    if (ret >= 0)
        *ret_gfid = r->stat.gfid;
    else if (ret == -ENOENT)
        *ret_gfid = gfid_null;
    return ret == -ENOENT ? 0 : ret;
}

FIBER void check_name(struct actor *a, unsigned dir, unsigned name)
{
    uint32_t acked = model_name(&a->w->model, dir, name)->acked;
    struct kept *k = &a->names[dir][name];
    struct gfid seen;
    uint64_t asked_ns;
    int ret = look_up(a, dir, name, &seen, &asked_ns);
    if (ret < 0)
        actor_failed(a, &a->dirs[dir]->gfid, "lookup of name", dir, name, ret);
    if (ret < 0 || actor_is_dead(a))
        return;
    a->w->stats.reads++;
    *k = (struct kept) { .asked_ns = asked_ns, .gfid = seen };
    (void)model_check_name(&a->w->model, dir, name, &seen, acked, a->who);
}

bool name_is_present(const struct reg *reg)
{
    return reg->acked && !gfid_is_null(&reg->history[reg->acked]);
}

bool actor_is_certain(const struct actor *a, const struct reg *reg)
{
    return !a->w->model.may_split && reg_is_certain(reg);
}

static FIBER void make_name(struct actor *a, unsigned dir, unsigned name, struct reg *reg)
{
    char text[16];
    bool certain = actor_is_certain(a, reg), present = name_is_present(reg);
    bool is_link = actor_dice(a, 4) == 0;
    struct gfid gfid = gfid_random(a->env);
    gfid.bytes[0] = is_link ? TAG_LINK : TAG_FILE;
    uint32_t version = reg_issue_name(reg, &gfid);
    a->names[dir][name].asked_ns = 0;
    SCOPED(inode_unref) struct inode *inode = inode_table_get(a->graph, &gfid, is_link ? S_IFLNK : S_IFREG);
    SCOPED(fd_unref) struct fd *fd = fd_new(inode, O_RDWR, 1000);
    SCOPED(reply_free) struct reply *r = reply_new();
    struct request q = { .op = OP_CREATE,
                         .parent = a->dirs[dir],
                         .name = name_text(name, text),
                         .inode = inode,
                         .fd = fd,
                         .flags = O_RDWR | O_CREAT | O_EXCL,
                         .mode = S_IFREG | 0644 };
    if (is_link)
        q = (struct request) {
            .op = OP_SYMLINK, .parent = a->dirs[dir], .name = text, .inode = inode, .text = "nowhere"
        };
    int ret = actor_ask(a, &q, r);
    if (actor_is_dead(a))
        return;
    actor_say(a, "make", dir, name, version, ret);
    a->w->stats.name_changes++;
    if (ret >= 0)
        reg_ack(reg, version);
    if (certain && (ret >= 0 && present))
        model_violation(&a->w->model, "%s: create of %u/%u succeeded over an existing name", a->who, dir, name);
    if (certain && ret == -EEXIST && !present)
        model_violation(&a->w->model, "%s: create of %u/%u says EEXIST, the name is absent", a->who, dir, name);
}

static FIBER void remove_name(struct actor *a, unsigned dir, unsigned name, struct reg *reg)
{
    char text[16];
    bool certain = actor_is_certain(a, reg), present = name_is_present(reg);
    bool is_dir = present && reg->history[reg->acked].bytes[0] == TAG_DIR;
    if (is_dir)
        empty_dir(a, &reg->history[reg->acked]);
    if (actor_is_dead(a))
        return;
    uint32_t version = reg_issue_name(reg, &gfid_null);
    a->names[dir][name].asked_ns = 0;
    SCOPED(reply_free) struct reply *r = reply_new();
    struct request q = { .op = is_dir ? OP_RMDIR : OP_UNLINK, .parent = a->dirs[dir], .name = name_text(name, text) };
    int ret = actor_ask(a, &q, r);
    if (actor_is_dead(a))
        return;
    actor_say(a, "remove", dir, name, version, ret);
    a->w->stats.name_changes++;
    if (ret >= 0)
        reg_ack(reg, version);
    if (certain && ret == -ENOENT && present)
        model_violation(&a->w->model, "%s: unlink of %u/%u says ENOENT, the name is there", a->who, dir, name);
}

static FIBER void rename_name(struct actor *a, unsigned dir, unsigned from, unsigned dir2, unsigned to)
{
    char text[16], text2[16];
    struct reg *old = model_name(&a->w->model, dir, from), *new = model_name(&a->w->model, dir2, to);
    if (old == new || !reg_is_certain(old) || !reg_is_certain(new) || !name_is_present(old))
        return;
    struct gfid gfid = old->history[old->acked];
    /* Known gap: a directory that has two names after each brick renamed it alone keeps its parents pending. */
    if (a->w->model.may_split && gfid.bytes[0] == TAG_DIR)
        return;
    if (name_is_present(new) && gfid_equal(&gfid, &new->history[new->acked]))
        return; /* two links of one file: nothing would happen */
    uint32_t version = reg_issue_name(old, &gfid_null), version2 = reg_issue_name(new, &gfid);
    a->names[dir][from].asked_ns = a->names[dir2][to].asked_ns = 0;
    SCOPED(inode_unref) struct inode *inode = inode_table_get(a->graph, &gfid, 0);
    SCOPED(reply_free) struct reply *r = reply_new();
    struct request q = { .op = OP_RENAME,
                         .parent = a->dirs[dir],
                         .name = name_text(from, text),
                         .inode = inode,
                         .parent2 = a->dirs[dir2],
                         .name2 = name_text(to, text2) };
    int ret = actor_ask(a, &q, r);
    if (actor_is_dead(a))
        return;
    actor_say(a, "rename from", dir, from, version, ret);
    actor_say(a, "rename to", dir2, to, version2, ret);
    a->w->stats.name_changes++;
    if (ret == -ENOENT && !a->w->model.may_split)
        model_violation(&a->w->model, "%s: rename of %u/%u says ENOENT, the name is there", a->who, dir, from);
    if (ret < 0)
        return;
    reg_ack(old, version);
    reg_ack(new, version2);
}

unsigned actor_own(struct actor *a, unsigned count)
{
    unsigned clients = a->w->cluster->config.clients;
    unsigned mine = (count + clients - 1 - a->index % clients) / clients;
    return (unsigned)actor_dice(a, mine) * clients + a->index % clients;
}

FIBER void change_name(struct actor *a)
{
    unsigned dirs = a->w->holds_files ? 1 : DIRS, dir = (unsigned)actor_dice(a, dirs), name = actor_own(a, NAMES);
    struct reg *reg = model_name(&a->w->model, dir, name);
    if (reg->issued + 2 >= MODEL_MAX_VERSIONS)
        return;
    switch (actor_dice(a, a->w->is_rich ? 5 : 3)) {
    case 3: make_dir(a, dir, name); break;
    case 4: link_name(a, dir, name, (unsigned)actor_dice(a, DIRS), actor_own(a, NAMES)); break;
    case 0: make_name(a, dir, name, reg); break;
    case 1: remove_name(a, dir, name, reg); break;
    default: rename_name(a, dir, name, (unsigned)actor_dice(a, dirs), actor_own(a, NAMES)); break;
    }
}

/* ---- a client's life ---- */

struct actor *actor_new(struct workload *w, unsigned client)
{
    struct actor *a = NEW(struct actor);
    assert(a);
    a->w = w;
    a->index = client;
    a->node = &w->cluster->clients[client];
    a->env = a->node->env;
    a->graph = a->node->graph;
    a->start = a->node->starts;
    snprintf(a->who, sizeof(a->who), "client%u.%u", client, a->start);
    for (unsigned i = 0; i < DIRS; i++)
        a->dirs[i] = inode_table_get(a->graph, &w->dir_gfids[i], S_IFDIR);
    for (unsigned i = 0; i < FILES; i++)
        a->files[i] = inode_table_get(a->graph, &w->file_gfids[i], S_IFREG);
    return a;
}

void actor_free(struct actor *a)
{
    for (unsigned i = 0; i < FILES; i++) {
        fd_unref(a->fds[i]);
        inode_unref(a->files[i]);
    }
    for (unsigned i = 0; i < DIRS; i++)
        inode_unref(a->dirs[i]);
    fd_unref(a->held);
    mem_free(a);
}

/* As a cache above the graph would answer. */
static void check_kept(struct actor *a)
{
    struct model *m = &a->w->model;
    for (unsigned i = 0; i < SHARED_FILES * BLOCKS; i++) {
        const struct kept *k = &a->blocks[i / BLOCKS][i % BLOCKS];
        if (!is_leased(a, a->files[i / BLOCKS], k))
            continue;
        a->w->stats.kept_reads++;
        (void)model_check_block(m, i / BLOCKS, i % BLOCKS, k->block, model_block(m, i / BLOCKS, i % BLOCKS)->acked,
                                a->who);
    }
    for (unsigned i = 0; i < DIRS * NAMES; i++) {
        const struct kept *k = &a->names[i / NAMES][i % NAMES];
        if (!is_leased(a, a->dirs[i / NAMES], k))
            continue;
        a->w->stats.kept_reads++;
        (void)model_check_name(m, i / NAMES, i % NAMES, &k->gfid, model_name(m, i / NAMES, i % NAMES)->acked, a->who);
    }
}

static FIBER void one_op(struct actor *a)
{
    check_kept(a);
    if (a->w->holds_files) {
        hold_op(a);
        return;
    }
    if (a->w->locks_files) {
        lock_op(a);
        return;
    }
    uint64_t what = actor_dice(a, a->w->is_rich ? 150 : 100);
    if (what >= 100)
        rich_op(a);
    else if (what < 30)
        write_block(a, (unsigned)actor_dice(a, SHARED_FILES), actor_own(a, BLOCKS));
    else if (what < 55)
        read_block(a, (unsigned)actor_dice(a, SHARED_FILES), (unsigned)actor_dice(a, BLOCKS));
    else if (what < 58)
        sync_file(a, (unsigned)actor_dice(a, SHARED_FILES));
    else if (what < 80)
        change_name(a);
    else
        check_name(a, (unsigned)actor_dice(a, DIRS), (unsigned)actor_dice(a, NAMES));
}

struct life {
    struct workload *w;
    unsigned client;
    unsigned done;
    bool is_waiting; /* for the process to come up */
    bool is_over;    /* counted as finished: a restart of its process changes nothing */
};

static FIBER void live(void *arg)
{
    struct life *life = arg;
    struct workload *w = life->w;
    struct actor *a = actor_new(w, life->client);
    while (life->done < w->ops_per_client && !actor_is_dead(a)) {
        life->done++;
        one_op(a);
        rest(a, w->holds_files || w->locks_files ? 4 : actor_dice(a, 8) ? 20 : 3000);
    }
    if (!actor_is_dead(a) && !life->is_over) {
        life->is_over = true;
        w->finished++;
        w->is_finished = w->finished == w->cluster->config.clients;
    }
    actor_free(a);
}

/* Once per incarnation of the process: waits until the graph runs, then goes on with what is left. */
static void try_start(void *arg)
{
    struct life *life = arg;
    struct node *n = &life->w->cluster->clients[life->client];
    life->is_waiting = !n->is_up;
    if (!n->is_up) {
        (void)sim_at(life->w->cluster->sim, sim_now_ns(life->w->cluster->sim) + 10000000, try_start, life);
        return;
    }
    int r = fiber_spawn(n->env, "client", live, life);
    assert(r == 0);
}

int workload_start_client(struct workload *w, unsigned client)
{
    struct life *life = NEW(struct life); /* lives as long as the simulation */
    if (!life)
        return -ENOMEM;
    *life = (struct life) { .w = w, .client = client };
    w->lives[client] = life;
    try_start(life);
    return 0;
}

void workload_client_restarted(struct workload *w, unsigned client)
{
    if (w->lives[client] && !w->lives[client]->is_waiting)
        try_start(w->lives[client]);
}

/* ---- preparation ---- */

static FIBER int prepare_dir(struct actor *a, struct inode *root, unsigned i)
{
    char text[16];
    snprintf(text, sizeof(text), "d%u", i);
    SCOPED(reply_free) struct reply *r = reply_new();
    struct request q = { .op = OP_MKDIR, .parent = root, .name = text, .inode = a->dirs[i], .mode = S_IFDIR | 0755 };
    return actor_ask(a, &q, r);
}

static FIBER int prepare_file(struct actor *a, struct inode *root, unsigned i)
{
    char text[16];
    snprintf(text, sizeof(text), "f%u", i);
    SCOPED(fd_unref) struct fd *fd = fd_new(a->files[i], O_RDWR, 1000);
    SCOPED(reply_free) struct reply *r = reply_new();
    struct request q = { .op = OP_CREATE,
                         .parent = root,
                         .name = text,
                         .inode = a->files[i],
                         .fd = fd,
                         .flags = O_RDWR | O_CREAT | O_EXCL,
                         .mode = S_IFREG | 0644 };
    int ret = actor_ask(a, &q, r);
    if (ret < 0)
        return ret;
    SCOPED(reply_free) struct reply *r2 = reply_new();
    struct request grow = { .op = OP_TRUNCATE, .inode = a->files[i], .fd = fd, .offset = BLOCKS * MODEL_BLOCK };
    return actor_ask(a, &grow, r2);
}

static FIBER void prepare(void *arg)
{
    struct workload *w = arg;
    struct actor *a = actor_new(w, 0);
    SCOPED(inode_unref) struct inode *root = inode_table_get(a->graph, &gfid_root, S_IFDIR);
    int r = 0;
    for (unsigned i = 0; i < DIRS && r >= 0; i++)
        r = prepare_dir(a, root, i);
    for (unsigned i = 0; i < SHARED_FILES && r >= 0; i++)
        r = prepare_file(a, root, i);
    for (unsigned i = 0; w->is_rich && i < w->cluster->config.clients && r >= 0; i++)
        r = prepare_loose_file(a, root, i);
    if (w->is_rich && r >= 0)
        r = prepare_old(a, root);
    if (r < 0)
        model_violation(&w->model, "preparation failed: %s", errno_name(r));
    (void)fiber_sleep_ms(NULL, 5000); /* sessions close */
    w->is_prepared = true;
    actor_free(a);
}

void workload_prepare(struct workload *w)
{
    int r = fiber_spawn(w->cluster->clients[0].env, "prepare", prepare, w);
    assert(r == 0);
}

int workload_init(struct workload *w, struct cluster *c, unsigned ops_per_client)
{
    memset(w, 0, sizeof(*w));
    w->cluster = c;
    w->ops_per_client = ops_per_client;
    for (unsigned i = 0; i < DIRS; i++)
        w->dir_gfids[i] = (struct gfid) { { 0xd0, [15] = (uint8_t)(i + 1) } };
    for (unsigned i = 0; i < FILES; i++)
        w->file_gfids[i] = (struct gfid) { { 0xf0, [15] = (uint8_t)(i + 1) } };
    struct model_size size = { .files = FILES, .blocks = BLOCKS, .dirs = DIRS, .names = NAMES, .attrs = ATTRS };
    return model_init(&w->model, &size);
}

void workload_done(struct workload *w)
{
    for (unsigned i = 0; i < CLUSTER_MAX_CLIENTS; i++)
        mem_free(w->lives[i]);
    model_done(&w->model);
}
