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
    struct gfid *history; /* names: which inode, null = absent; [0] = absent */
    bool *wipes;          /* blocks: this version is zeros (truncated, punched); may be NULL: none is */
    uint32_t room;        /* of either */
};

struct model_size {
    unsigned files, blocks; /* per file */
    unsigned dirs, names;   /* per directory */
    unsigned attrs;         /* inodes whose attributes are changed */
};

struct model {
    struct model_size size;
    struct reg *block_regs; /* [file * blocks + block] */
    struct reg *name_regs;  /* [dir * names + name] */
    struct reg *attr_regs;  /* [inode * 2 + kind] */
    /* Two bricks without quorum or witness, each of which may go on alone: whoever reads may be served by one that
     * knows nothing of the other's changes, and merging directories brings back names that were removed. Only what is
     * there at the end counts then, and removed names may be. */
    bool may_split;
    bool is_final; /* the end has come */
    uint64_t checks, violations;
    char first[512]; /* the first violation, as text */
};

int model_init(struct model *m, const struct model_size *size);
void model_done(struct model *m);

struct reg *model_block(struct model *m, unsigned file, unsigned block);
struct reg *model_name(struct model *m, unsigned dir, unsigned name);
enum attr_kind { ATTR_OWNER_AND_MODE, ATTR_XATTR };
struct reg *model_attr(struct model *m, unsigned inode, enum attr_kind kind);

/* A write begins: its version. */
uint32_t reg_issue(struct reg *r);
uint32_t reg_issue_wipe(struct reg *r);
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
/* version -1: torn. */
bool model_check_attr(struct model *m, unsigned inode, enum attr_kind kind, int64_t version, uint32_t acked_at_start,
                      const char *who);
bool model_check_name(struct model *m, unsigned dir, unsigned name, const struct gfid *seen, uint32_t acked_at_start,
                      const char *who);
