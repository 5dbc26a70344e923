/* sim/disk.h - a disk that forgets what a real one forgets.
 *
 * The file system of a simulated brick lives in memory twice: as it looks now, and as it would look after a power cut.
 * Between the two stands a journal of changes. Metadata changes (names, attributes, extended attributes) reach the
 * durable image in the order they were made, as on a journalling file system; data does so only when it was synced, or
 * by luck, block by block. So:
 *
 *   disk_sync(d, gfid)     fsync: all metadata up to now, and this file's data, survive
 *   disk_power_cut(d, rng) a random prefix of the unsynced metadata survives, unsynced data of that prefix by chance
 *   a killed process       loses nothing: the present image simply goes on
 *
 * A disk outlives the brick processes that use it. All functions run on the simulator's thread; none suspends.
 */
#pragma once

#include "core/dict.h"
#include "core/iatt.h"

struct disk;
struct disk_node;

struct disk *disk_new(void) MUST_USE;
void disk_free(struct disk *d); /* accepts NULL */

/* Random number source of the caller (a seeded one). */
typedef uint64_t (*disk_random_fn)(void *arg);

void disk_sync(struct disk *d, const struct gfid *gfid);
void disk_sync_all(struct disk *d);
void disk_power_cut(struct disk *d, disk_random_fn random, void *arg);
/* Faults: percent of operations that fail with EIO; all writes fail with ENOSPC. */
void disk_set_faults(struct disk *d, unsigned eio_percent, bool is_full);
unsigned disk_eio_percent(const struct disk *d);
bool disk_is_full(const struct disk *d);
size_t disk_unsynced(const struct disk *d); /* changes in the journal */

/* ---- looking (present image) ---- */

struct disk_node *disk_find(struct disk *d, const struct gfid *gfid); /* NULL: none */
struct disk_node *disk_child(struct disk *d, const struct gfid *parent, const char *name);
void disk_stat(const struct disk_node *n, struct iatt *ret);
const char *disk_target(const struct disk_node *n);                                          /* symlink */
const struct dict *disk_xattrs(const struct disk_node *n);                                   /* borrowed; may be NULL */
size_t disk_read(const struct disk_node *n, uint64_t offset, void *data, size_t size_bytes); /* bytes read */
/* First data (or hole) at or after offset; false: none before the end. */
bool disk_seek(const struct disk_node *n, uint64_t offset, bool want_data, uint64_t *ret_offset);
size_t disk_entry_count(const struct disk_node *dir);
/* Entry number `at` in order of creation; false past the end. Cookies are creation numbers, stable over changes. */
bool disk_next_entry(const struct disk_node *dir, uint64_t after_cookie, const char **ret_name, struct gfid *ret_gfid,
                     uint64_t *ret_cookie);
/* Parent of a directory. */
const struct gfid *disk_parent(const struct disk_node *dir);

/* ---- index directories (features/index of the simulation) ----
 *
 * Directories of a brick that no name leads to, and an empty file that entries of all of them link to. */

#define DISK_INDEX_KINDS 3 /* xattrop, dirty, entry-changes */

struct gfid disk_index_gfid(unsigned kind);
struct gfid disk_index_base(void);
bool disk_is_index(const struct gfid *gfid); /* one of those, or a directory made in entry-changes */
/* Gfid of the directory in entry-changes that lists the changed names of `dir`. */
struct gfid disk_changes_gfid(const struct gfid *dir);

/* ---- changing (both images, by way of the journal) ---- */

/* 0 or -errno as a file system would answer (EEXIST, ENOENT, ENOTDIR, ENOTEMPTY, EISDIR, ENOSPC, ENOMEM). */
int disk_make(struct disk *d, const struct gfid *parent, const char *name, const struct iatt *attr, const char *target,
              const struct dict *xattrs);
int disk_link(struct disk *d, const struct gfid *gfid, const struct gfid *parent, const char *name);
int disk_unlink(struct disk *d, const struct gfid *parent, const char *name, bool keep_node);
int disk_rmdir(struct disk *d, const struct gfid *parent, const char *name);
/* With all that is in it, name by name. */
int disk_remove_tree(struct disk *d, const struct gfid *parent, const char *name);
int disk_rename(struct disk *d, const struct gfid *parent, const char *name, const struct gfid *parent2,
                const char *name2, uint32_t flags, bool keep_victim);
int disk_set_attr(struct disk *d, const struct gfid *gfid, const struct iatt *attr, uint32_t valid);
int disk_set_xattr(struct disk *d, const struct gfid *gfid, const char *key, const void *value, size_t size_bytes);
int disk_remove_xattr(struct disk *d, const struct gfid *gfid, const char *key);
int disk_write(struct disk *d, const struct gfid *gfid, uint64_t offset, const void *data, size_t size_bytes);
int disk_truncate(struct disk *d, const struct gfid *gfid, uint64_t size_bytes);
int disk_punch(struct disk *d, const struct gfid *gfid, uint64_t offset, uint64_t size_bytes);
/* An unlinked node kept for open descriptors goes away; all of them (a brick process starts). */
void disk_drop(struct disk *d, const struct gfid *gfid);
void disk_drop_orphans(struct disk *d);
/* Calls fn for every node of the present image. */
void disk_each(struct disk *d, void (*fn)(struct disk_node *n, void *arg), void *arg);
const struct gfid *disk_gfid(const struct disk_node *n);
