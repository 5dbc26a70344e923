/* A replica set over membricks for one test: bricks, a client (or several) and shorthands. */
#pragma once

#include "cluster/replicate/replicate.h"
#include "unit/graph/test_graph.h"
#include "unit/replicate/membrick.h"

#define PENDING(i) pending_name(i)
#define DIRTY      "trusted.afr.dirty"

enum { DATA, METADATA, ENTRY };

static inline const char *pending_name(unsigned i)
{
    static const char *const names[] = { "trusted.afr.c0", "trusted.afr.c1", "trusted.afr.c2" };

    return names[i];
}

struct world {
    struct test *t;
    unsigned count;
    const char *noatime; /* of features/utime above; NULL: there is none */
    struct mem_brick *b[3];
    struct translator *top;
    struct call call;
    struct graph *graph; /* of a second client; the first one's is t->graph */
    struct inode *root, *file, *dir;
    struct fd *fd;
    struct reply *r;
};

/* Bricks are emptied. `options`: lines for the replicate section, may be "". The graph is started; files are made. */
FIBER void world_open(struct world *w, struct test *t, unsigned count, const char *options);
/* The same with features/utime above, `option noatime on` or off. */
FIBER void world_open_with_times(struct world *w, struct test *t, unsigned count, const char *noatime);
/* A further client of the same bricks. */
FIBER void world_join(struct world *w, struct test *t, unsigned count, const char *options);
/* Ends what world_open or world_join made. */
FIBER void world_close(struct world *w);

FIBER int world_call(struct world *w, const struct request *q);
/* ask(w, OP_WRITE, .inode = w->file, ...): the reply is in w->r. */
#define ask(w, op_, ...) world_call((w), &(struct request) { .op = (op_), __VA_ARGS__ })
FIBER int world_write(struct world *w, uint64_t offset, const char *text);
FIBER int world_create(struct world *w, const char *name, uint8_t gfid);
FIBER int world_lookup(struct world *w, const char *name);
FIBER int world_read(struct world *w, char *text, size_t size_bytes);
/* Lets everything that runs come to rest. */
FIBER void world_rest(struct world *w);
/* Closes all sessions (and opens the graph anew is not needed): waits until no lock is left. */
FIBER void world_quiet(struct world *w);
void world_forget_messages(struct world *w);
/* Messages brick i has seen since. */
static inline uint64_t messages(const struct world *w, unsigned i)
{
    return w->b[i]->messages;
}
int32_t counter(const struct world *w, unsigned brick, const struct gfid *gfid, const char *key, int index);
bool same_data(const struct world *w, const struct gfid *gfid, uint32_t bricks);
