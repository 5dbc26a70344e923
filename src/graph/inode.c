/* The inode table, open descriptors and clients of a graph. */
#include "graph/graph.h"
#include "core/mem.h"

#define BUCKETS_AT_START     256
#define UNREFERENCED_DEFAULT 16384

struct inode_table {
    struct inode **buckets; /* chained by hash_next; a power of two of them */
    size_t bucket_count;
    size_t count;        /* inode objects in all */
    size_t unreferenced; /* of these on the lru list */
    uint32_t unreferenced_max;
    struct list lru; /* oldest first */
    bool is_evicting;
};

struct inode_table *inode_table_new(void)
{
    struct inode_table *table = NEW(struct inode_table);
    if (!table)
        return NULL;
    table->buckets = mem_array(BUCKETS_AT_START, sizeof(struct inode *));
    if (!table->buckets) {
        mem_free(table);
        return NULL;
    }
    table->bucket_count = BUCKETS_AT_START;
    table->unreferenced_max = UNREFERENCED_DEFAULT;
    list_init(&table->lru);
    return table;
}

static size_t hash_of(const struct gfid *gfid)
{
    uint64_t h = (get_be64(gfid->bytes) ^ get_be64(gfid->bytes + 8)) * 0x9e3779b97f4a7c15u;

    return (size_t)(h >> 20);
}

static struct inode **bucket_of(struct inode_table *table, const struct gfid *gfid)
{
    return &table->buckets[hash_of(gfid) & (table->bucket_count - 1)];
}

static struct inode *find(struct inode_table *table, const struct gfid *gfid)
{
    struct inode *inode = *bucket_of(table, gfid);

    while (inode && !gfid_equal(&inode->gfid, gfid))
        inode = inode->hash_next;
    return inode;
}

static void put(struct inode_table *table, struct inode *inode)
{
    struct inode **bucket = bucket_of(table, &inode->gfid);

    inode->hash_next = *bucket;
    *bucket = inode;
}

/* Doubles the buckets; without memory the chains only get longer. */
static void grow(struct inode_table *table)
{
    size_t old_count = table->bucket_count;
    struct inode **old = table->buckets;
    struct inode **buckets = mem_array(old_count * 2, sizeof(struct inode *));

    if (!buckets)
        return;
    table->buckets = buckets;
    table->bucket_count = old_count * 2;
    for (size_t i = 0; i < old_count; i++) {
        for (struct inode *inode = old[i], *next; inode; inode = next) {
            next = inode->hash_next;
            put(table, inode);
        }
    }
    mem_free(old);
}

static void take_out(struct inode_table *table, struct inode *inode)
{
    struct inode **at = bucket_of(table, &inode->gfid);

    while (*at != inode)
        at = &(*at)->hash_next;
    *at = inode->hash_next;
    table->count--;
}

/* Parents are told first, as everywhere when something goes. */
static void forget(struct inode *inode)
{
    struct graph *graph = inode->graph;

    for (unsigned i = graph->count; i-- > 0;) {
        struct translator *t = graph->all[i];
        if (t->inode_slot < 0 || !inode->slots[t->inode_slot])
            continue;
        if (t->class->inode_forget)
            t->class->inode_forget(t, inode, inode->slots[t->inode_slot]);
        inode->slots[t->inode_slot] = NULL;
    }
    mem_free(inode);
}

/* inode_forget may drop references to other inodes and so come back here: the outer call goes on with those. */
static void evict(struct inode_table *table, size_t unreferenced_max)
{
    if (table->is_evicting)
        return;
    table->is_evicting = true;
    while (table->unreferenced > unreferenced_max) {
        struct inode *oldest = list_first(&table->lru, struct inode, lru);
        list_del(&oldest->lru);
        table->unreferenced--;
        take_out(table, oldest);
        forget(oldest);
    }
    table->is_evicting = false;
}

size_t inode_table_free(struct inode_table *table)
{
    if (!table)
        return 0;
    evict(table, 0);
    size_t left = table->count;
    mem_free(table->buckets);
    mem_free(table);
    return left;
}

static struct inode *inode_new(struct graph *graph, const struct gfid *gfid)
{
    struct inode *inode = mem_zalloc(sizeof(*inode) + graph->inode_slots * sizeof(void *));

    if (!inode)
        return NULL;
    inode->gfid = *gfid;
    inode->graph = graph;
    inode->slots = (void **)(inode + 1);
    list_init(&inode->lru);
    return inode;
}

struct inode *inode_table_find(struct graph *graph, const struct gfid *gfid)
{
    struct inode *inode = find(graph->inodes, gfid);

    return inode ? inode_ref(inode) : NULL;
}

struct inode *inode_table_get(struct graph *graph, const struct gfid *gfid, uint32_t type)
{
    struct inode_table *table = graph->inodes;
    struct inode *inode = inode_table_find(graph, gfid);

    assert(!gfid_is_null(gfid));
    if (!inode) {
        inode = inode_new(graph, gfid);
        if (!inode)
            return NULL;
        inode->refs = 1;
        if (table->count >= table->bucket_count)
            grow(table);
        put(table, inode);
        table->count++;
    }
    if (type)
        inode->type = type;
    return inode;
}

struct inode *inode_ref(struct inode *inode)
{
    if (inode->refs++ == 0) {
        list_del(&inode->lru);
        inode->graph->inodes->unreferenced--;
    }
    return inode;
}

void inode_unref(struct inode *inode)
{
    if (!inode)
        return;
    assert(inode->refs > 0);
    if (--inode->refs > 0)
        return;
    struct inode_table *table = inode->graph->inodes;
    list_add_tail(&table->lru, &inode->lru);
    table->unreferenced++;
    evict(table, table->unreferenced_max);
}

void **inode_ctx(struct inode *inode, struct translator *me)
{
    assert(me->inode_slot >= 0);
    return &inode->slots[me->inode_slot];
}

void inode_table_set_limit(struct graph *graph, uint32_t unreferenced_max)
{
    graph->inodes->unreferenced_max = unreferenced_max;
    evict(graph->inodes, unreferenced_max);
}

size_t inode_table_count(const struct graph *graph)
{
    return graph->inodes->count;
}

void inode_table_each(struct graph *graph, void (*fn)(struct inode *inode, void *arg), void *arg)
{
    struct inode_table *table = graph->inodes;

    for (size_t i = 0; i < table->bucket_count; i++) {
        for (struct inode *inode = table->buckets[i], *next; inode; inode = next) {
            next = inode->hash_next;
            fn(inode, arg);
        }
    }
}

/* ---- descriptors ---- */

struct fd *fd_new(struct inode *inode, uint32_t flags, int32_t pid)
{
    struct graph *graph = inode->graph;
    struct fd *fd = mem_zalloc(sizeof(*fd) + graph->fd_slots * sizeof(void *));

    if (!fd)
        return NULL;
    fd->inode = inode_ref(inode);
    fd->flags = flags;
    fd->pid = pid;
    fd->refs = 1;
    fd->is_dir = inode->type == S_IFDIR;
    fd->slots = (void **)(fd + 1);
    list_add_tail(&graph->fds, &fd->of_inode);
    inode->open_fds++;
    return fd;
}

struct fd *fd_ref(struct fd *fd)
{
    fd->refs++;
    return fd;
}

void fd_unref(struct fd *fd)
{
    if (!fd)
        return;
    assert(fd->refs > 0);
    if (--fd->refs > 0)
        return;
    struct graph *graph = fd->inode->graph;
    list_del(&fd->of_inode);
    for (unsigned i = graph->count; i-- > 0;) {
        struct translator *t = graph->all[i];
        if (t->fd_slot < 0 || !fd->slots[t->fd_slot])
            continue;
        if (t->class->fd_release)
            t->class->fd_release(t, fd, fd->slots[t->fd_slot]);
        fd->slots[t->fd_slot] = NULL;
    }
    fd->inode->open_fds--;
    inode_unref(fd->inode);
    mem_free(fd);
}

void **fd_ctx(struct fd *fd, struct translator *me)
{
    assert(me->fd_slot >= 0);
    return &fd->slots[me->fd_slot];
}

void fd_each(struct graph *graph, void (*fn)(struct fd *fd, void *arg), void *arg)
{
    struct fd *fd;

    list_for_each (fd, &graph->fds, of_inode)
        fn(fd, arg);
}

/* ---- clients ---- */

struct client *client_new(struct graph *graph, const char *uid, const char *name)
{
    struct client *client = mem_zalloc(sizeof(*client) + graph->client_slots * sizeof(void *));

    if (!client)
        return NULL;
    client->uid = mem_strdup(uid);
    client->name = mem_strdup(name);
    if (!client->uid || !client->name) {
        mem_free(client->uid);
        mem_free(client->name);
        mem_free(client);
        return NULL;
    }
    client->refs = 1;
    client->graph = graph;
    client->slots = (void **)(client + 1);
    list_add_tail(&graph->clients, &client->of_graph);
    return client;
}

struct client *client_ref(struct client *client)
{
    client->refs++;
    return client;
}

void client_unref(struct client *client)
{
    if (!client)
        return;
    assert(client->refs > 0);
    if (--client->refs > 0)
        return;
    list_del(&client->of_graph);
    mem_free(client->uid);
    mem_free(client->name);
    mem_free(client);
}

void **client_ctx(struct client *client, struct translator *me)
{
    assert(me->client_slot >= 0);
    return &client->slots[me->client_slot];
}

void client_gone(struct client *client)
{
    struct graph *graph = client->graph;

    if (client->is_gone)
        return;
    client->is_gone = true;
    client_ref(client);
    for (unsigned i = graph->count; i-- > 0;) {
        struct translator *t = graph->all[i];
        if (t->class->client_gone)
            t->class->client_gone(t, client);
    }
    client_unref(client);
}
