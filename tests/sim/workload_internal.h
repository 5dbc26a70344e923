/* sim/workload_internal.h - what the parts of the workload share: the actor, one client's present incarnation.
 *
 *   workload.c        blocks and names, a client's life, preparation
 *   workload_more.c   attributes, truncated and punched files, directories with contents
 *   workload_hold.c   files that are open while their names go
 *   workload_lock.c   sections under a lock
 *   workload_end.c    what readers and disks must show after quiet
 */
#pragma once

#include "sim/workload.h"

#define OP_DEADLINE_MS 120000
#define SHARED_FILES   3u                                   /* each block has one writing client */
#define FILES          (SHARED_FILES + CLUSTER_MAX_CLIENTS) /* and one file per client that is truncated and punched */
#define BLOCKS         4u
#define DIRS           2u
#define NAMES          6u
#define ATTRS          (SHARED_FILES + DIRS) /* inodes whose attributes change: files first */
#define LOOSE_STRIDE   4096u /* between blocks of a file that is truncated: each has its own block of the disk */

/* First byte of a gfid: what kind of inode it is. Of names in a rich workload only. */
enum { TAG_FILE = 0x0f, TAG_DIR = 0x0d, TAG_LINK = 0x05 };

/* What a client saw, to be believed again for as long as there is a lease on it. */
struct kept {
    uint64_t asked_ns; /* 0: nothing */
    struct gfid gfid;  /* names */
    uint8_t block[MODEL_BLOCK];
};

/* Fibers of a process that died must not touch the model any more. */
struct actor {
    struct workload *w;
    struct node *node;
    struct env *env;
    struct graph *graph;
    unsigned index, start;
    struct inode *dirs[DIRS], *files[FILES];
    struct fd *fds[FILES];
    struct kept blocks[FILES][BLOCKS], names[DIRS][NAMES];
    struct fd *held; /* of a file that somebody may have removed since; NULL: none */
    char who[48];
};

struct actor *actor_new(struct workload *w, unsigned client);
void actor_free(struct actor *a);
bool actor_is_dead(const struct actor *a);
uint64_t actor_dice(struct actor *a, uint64_t sides);
/* A client owns the names, blocks and attributes whose number is its own modulo the number of clients. */
unsigned actor_own(struct actor *a, unsigned count);
/* Nothing is uncertain about the register, for whoever asks any brick. */
bool actor_is_certain(const struct actor *a, const struct reg *reg);
FIBER int actor_ask(struct actor *a, struct request *q, struct reply *r);
void actor_say(const struct actor *a, const char *what, unsigned x, unsigned y, uint32_t version, int ret);
/* A reference of the caller's own, or NULL: the actor may drop its fd for a new one at any time. */
FIBER struct fd *actor_open(struct actor *a, unsigned file);
/* An operation that only looks failed, on this inode or (a name) on what is in this directory: at the end, after all is
 * healed, only a split brain that heal reports may be the reason. */
void actor_failed(struct actor *a, const struct gfid *gfid, const char *what, unsigned x, unsigned y, int error);
/* Where a block of a file is. */
uint64_t block_offset(unsigned file, unsigned index);
const char *name_text(unsigned name, char text[static 16]);
bool name_is_present(const struct reg *reg);

FIBER void write_block(struct actor *a, unsigned file, unsigned index);
FIBER void read_block(struct actor *a, unsigned file, unsigned index);
FIBER void check_name(struct actor *a, unsigned dir, unsigned name);
FIBER void change_name(struct actor *a);

/* ---- workload_more.c ---- */

FIBER int prepare_loose_file(struct actor *a, struct inode *root, unsigned client);
/* A directory with a file that nobody ever touches again: it must be there on every brick, also on an emptied one. */
FIBER int prepare_old(struct actor *a, struct inode *root);
FIBER void check_old(struct actor *a);
/* One operation of those. */
FIBER void rich_op(struct actor *a);
FIBER void check_attr(struct actor *a, unsigned inode, enum attr_kind kind);
FIBER void make_dir(struct actor *a, unsigned dir, unsigned name);
FIBER void link_name(struct actor *a, unsigned dir, unsigned from, unsigned dir2, unsigned to);
/* The file in a directory that make_dir made, so that it can be removed. */
FIBER void empty_dir(struct actor *a, const struct gfid *gfid);

/* ---- workload_hold.c ---- */

/* A directory with a file that nobody ever touches again: it must be there on every brick, also on an emptied one. */
FIBER int prepare_old(struct actor *a, struct inode *root);
FIBER void check_old(struct actor *a);
/* One operation of those. */
FIBER void hold_op(struct actor *a);

/* ---- workload_lock.c ---- */

/* One section of each locker of the client. */
FIBER void lock_op(struct actor *a);
