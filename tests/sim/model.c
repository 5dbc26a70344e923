#include "sim/model.h"
#include "core/mem.h"
#include <stdarg.h>
#include <stdio.h>

int model_init(struct model *m, const struct model_size *size)
{
    *m = (struct model) { .size = *size };
    m->block_regs = mem_array((size_t)size->files * size->blocks, sizeof(struct reg));
    m->name_regs = mem_array((size_t)size->dirs * size->names, sizeof(struct reg));
    m->attr_regs = mem_array((size_t)size->attrs * 2, sizeof(struct reg));
    return m->block_regs && m->name_regs && m->attr_regs ? 0 : -ENOMEM;
}

static void each_reg(struct model *m, void (*fn)(struct reg *r))
{
    for (size_t i = 0; i < (size_t)m->size.files * m->size.blocks; i++)
        fn(&m->block_regs[i]);
    for (size_t i = 0; i < (size_t)m->size.dirs * m->size.names; i++)
        fn(&m->name_regs[i]);
    for (size_t i = 0; i < (size_t)m->size.attrs * 2; i++)
        fn(&m->attr_regs[i]);
}

static void reg_done(struct reg *r)
{
    mem_free(r->history);
    mem_free(r->wipes);
}

void model_done(struct model *m)
{
    if (m->block_regs && m->name_regs && m->attr_regs)
        each_reg(m, reg_done);
    mem_free(m->block_regs);
    mem_free(m->name_regs);
    mem_free(m->attr_regs);
}

struct reg *model_block(struct model *m, unsigned file, unsigned block)
{
    return &m->block_regs[file * m->size.blocks + block];
}

struct reg *model_name(struct model *m, unsigned dir, unsigned name)
{
    return &m->name_regs[dir * m->size.names + name];
}

struct reg *model_attr(struct model *m, unsigned inode, enum attr_kind kind)
{
    return &m->attr_regs[inode * 2 + kind];
}

/* An array of one item per version, grown so that it has room for this one; new items are zero. */
static void *history_for(struct reg *r, void *items, size_t item_size, uint32_t version)
{
    if (version < r->room)
        return items;
    uint32_t room = version * 2 + 8;
    uint8_t *grown = mem_realloc(items, room * item_size);
    assert(grown);
    memset(grown + r->room * item_size, 0, (room - r->room) * item_size);
    r->room = room;
    return grown;
}

uint32_t reg_issue(struct reg *r)
{
    assert(r->issued < MODEL_MAX_VERSIONS);
    return ++r->issued;
}

uint32_t reg_issue_name(struct reg *r, const struct gfid *gfid)
{
    uint32_t version = reg_issue(r);
    r->history = history_for(r, r->history, sizeof(*r->history), version);
    r->history[version] = *gfid;
    return version;
}

uint32_t reg_issue_wipe(struct reg *r)
{
    uint32_t version = reg_issue(r);
    r->wipes = history_for(r, r->wipes, sizeof(*r->wipes), version);
    r->wipes[version] = true;
    return version;
}

static bool is_wipe(const struct reg *r, uint32_t version)
{
    return version == 0 || (version < r->room && r->wipes && r->wipes[version]);
}

void reg_ack(struct reg *r, uint32_t version)
{
    r->acked = MAX(r->acked, version);
}

static void reg_fall(struct reg *r)
{
    r->acked = r->synced;
}

void model_power_cut(struct model *m)
{
    each_reg(m, reg_fall);
}

bool reg_is_certain(const struct reg *r)
{
    return r->acked == r->issued;
}

static uint32_t pattern(unsigned file, unsigned index, uint32_t version, unsigned word)
{
    uint32_t x = file * 0x9e3779b1u + index * 0x85ebca6bu + version * 0xc2b2ae35u + word * 0x27d4eb2fu;
    x ^= x >> 15;
    return x * 0x2c1b3c6du;
}

void block_fill(uint8_t *block, unsigned file, unsigned index, uint32_t version)
{
    memset(block, 0, MODEL_BLOCK);
    if (version == 0)
        return;
    put_be32(block, version);
    for (unsigned w = 1; w < MODEL_BLOCK / 4; w++)
        put_be32(block + w * 4, pattern(file, index, version, w));
}

int64_t block_version(const uint8_t *block, unsigned file, unsigned index)
{
    uint32_t version = get_be32(block);
    uint8_t expected[MODEL_BLOCK];
    block_fill(expected, file, index, version);
    return memcmp(block, expected, MODEL_BLOCK) == 0 ? (int64_t)version : -1;
}

void model_violation(struct model *m, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (m->violations++ == 0)
        memcpy(m->first, text, sizeof(text));
}

/* Some version from `from` to the last that is zeros. */
static bool may_be_zeros(const struct reg *r, uint32_t from)
{
    for (uint32_t v = from; v <= r->issued; v++)
        if (is_wipe(r, v))
            return true;
    return false;
}

static bool is_checked(struct model *m)
{
    m->checks++;
    return !m->may_split || m->is_final;
}

bool model_check_block(struct model *m, unsigned file, unsigned index, const uint8_t *seen, uint32_t acked_at_start,
                       const char *who)
{
    const struct reg *r = model_block(m, file, index);
    int64_t version = block_version(seen, file, index);
    if (!is_checked(m) || (version == 0 && may_be_zeros(r, acked_at_start)))
        return true;
    if (version < 0)
        model_violation(m, "%s: file %u block %u: torn or foreign bytes (version word %u)", who, file, index,
                        get_be32(seen));
    else if (version < acked_at_start)
        model_violation(m, "%s: file %u block %u: stale version %u, acknowledged %u", who, file, index,
                        (uint32_t)version, acked_at_start);
    else if (version > r->issued || is_wipe(r, (uint32_t)version))
        model_violation(m, "%s: file %u block %u: version %u was never written (last %u)", who, file, index,
                        (uint32_t)version, r->issued);
    else
        return true;
    return false;
}

bool model_check_attr(struct model *m, unsigned inode, enum attr_kind kind, int64_t version, uint32_t acked_at_start,
                      const char *who)
{
    static const char *const kinds[] = { "owner and mode", "xattr" };
    const struct reg *r = model_attr(m, inode, kind);
    if (!is_checked(m) || (version >= acked_at_start && version <= r->issued))
        return true;
    model_violation(m, "%s: %s of inode %u: version %lld, acknowledged %u of %u", who, kinds[kind], inode,
                    (long long)version, acked_at_start, r->issued);
    return false;
}

bool model_check_name(struct model *m, unsigned dir, unsigned name, const struct gfid *seen, uint32_t acked_at_start,
                      const char *who)
{
    const struct reg *r = model_name(m, dir, name);
    if (!is_checked(m))
        return true;
    /* Merged directories: what was removed, or renamed away, may be back. */
    uint32_t from = m->may_split && !gfid_is_null(seen) ? 0 : acked_at_start;
    for (uint32_t v = from; v <= r->issued; v++)
        if (gfid_equal(v == 0 ? &gfid_null : &r->history[v], seen))
            return true;
    char text[GFID_TEXT_LEN + 1], expected[GFID_TEXT_LEN + 1];
    model_violation(m, "%s: directory %u name %u: saw %s, acknowledged (version %u of %u) %s", who, dir, name,
                    gfid_is_null(seen) ? "nothing" : gfid_format(seen, text), acked_at_start, r->issued,
                    acked_at_start && !gfid_is_null(&r->history[acked_at_start])
                        ? gfid_format(&r->history[acked_at_start], expected)
                        : "nothing");
    return false;
}
