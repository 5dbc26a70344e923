/* sim/model.h - what every reader may see, and what must survive.
 *
 * The model is a set of registers: a block of a file, or a name in a directory. Each register has one writing client,
 * which changes it step by step; anybody reads. A register's history is a list of values by version. Version v is
 * `issued` before the operation that makes it starts and `acked` once it was acknowledged. A read that started when
 * `acked` was a, and ended when `issued` was i, may see any version from a to i: older is stale, anything else is
 * invented. An operation that failed may or may not have happened, so it raises `issued` only.
 *
 * Where a power cut may hit the only good copy, what was acknowledged but not synced may be lost with it, as on any file
 * system: `acked` then falls back to `synced`.
 */
#pragma once

#include "core/gfid.h"

#define MODEL_BLOCK        512u
#define MODEL_MAX_VERSIONS 4096u

struct reg {
    uint32_t acked, issued;
    uint32_t synced;      /* acknowledged before an fsync that succeeded began */
    struct gfid *history; /* names only: which inode, null = absent; [0] = absent */
    uint32_t history_room;
};

struct model {
    unsigned files, blocks; /* per file */
    unsigned dirs, names;   /* per directory */
    struct reg *block_regs; /* [file * blocks + block] */
    struct reg *name_regs;  /* [dir * names + name] */
    uint64_t checks, violations;
    char first[512]; /* the first violation, as text */
};

int model_init(struct model *m, unsigned files, unsigned blocks, unsigned dirs, unsigned names);
void model_done(struct model *m);

struct reg *model_block(struct model *m, unsigned file, unsigned block);
struct reg *model_name(struct model *m, unsigned dir, unsigned name);

/* A write begins: its version. */
uint32_t reg_issue(struct reg *r);
uint32_t reg_issue_name(struct reg *r, const struct gfid *gfid);
void reg_ack(struct reg *r, uint32_t version);
/* The only good copy may have lost what was not synced. */
void model_power_cut(struct model *m);
/* Nothing is uncertain: what was issued last was acknowledged. */
bool reg_is_certain(const struct reg *r);

/* Fills a block with a version's bytes (version 0: zeros), and tells the version of bytes read (-1: torn or foreign). */
void block_fill(uint8_t *block, unsigned file, unsigned index, uint32_t version);
int64_t block_version(const uint8_t *block, unsigned file, unsigned index);

void model_violation(struct model *m, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Checks what a read saw; acked_at_start was taken before it. Returns true when it may be. */
bool model_check_block(struct model *m, unsigned file, unsigned index, const uint8_t *seen, uint32_t acked_at_start,
                       const char *who);
bool model_check_name(struct model *m, unsigned dir, unsigned name, const struct gfid *seen, uint32_t acked_at_start,
                      const char *who);
