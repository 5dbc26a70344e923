#include "sim/model.h"
#include "core/mem.h"
#include <stdarg.h>
#include <stdio.h>

int model_init(struct model *m, unsigned files, unsigned blocks, unsigned dirs, unsigned names)
{
    *m = (struct model) { .files = files, .blocks = blocks, .dirs = dirs, .names = names };
    m->block_regs = mem_array((size_t)files * blocks, sizeof(struct reg));
    m->name_regs = mem_array((size_t)dirs * names, sizeof(struct reg));
    return m->block_regs && m->name_regs ? 0 : -ENOMEM;
}

void model_done(struct model *m)
{
    for (size_t i = 0; m->name_regs && i < (size_t)m->dirs * m->names; i++)
        mem_free(m->name_regs[i].history);
    mem_free(m->block_regs);
    mem_free(m->name_regs);
}

struct reg *model_block(struct model *m, unsigned file, unsigned block)
{
    return &m->block_regs[file * m->blocks + block];
}

struct reg *model_name(struct model *m, unsigned dir, unsigned name)
{
    return &m->name_regs[dir * m->names + name];
}

uint32_t reg_issue(struct reg *r)
{
    assert(r->issued < MODEL_MAX_VERSIONS);
    return ++r->issued;
}

uint32_t reg_issue_name(struct reg *r, const struct gfid *gfid)
{
    uint32_t version = reg_issue(r);
    if (version >= r->history_room) {
        uint32_t room = version * 2 + 8;
        r->history = mem_realloc(r->history, room * sizeof(struct gfid));
        assert(r->history);
        memset(r->history + r->history_room, 0, (room - r->history_room) * sizeof(struct gfid));
        r->history_room = room;
    }
    r->history[version] = *gfid;
    return version;
}

void reg_ack(struct reg *r, uint32_t version)
{
    r->acked = MAX(r->acked, version);
}

void model_power_cut(struct model *m)
{
    for (size_t i = 0; i < (size_t)m->files * m->blocks; i++)
        m->block_regs[i].acked = m->block_regs[i].synced;
    for (size_t i = 0; i < (size_t)m->dirs * m->names; i++)
        m->name_regs[i].acked = m->name_regs[i].synced;
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

bool model_check_block(struct model *m, unsigned file, unsigned index, const uint8_t *seen, uint32_t acked_at_start,
                       const char *who)
{
    const struct reg *r = model_block(m, file, index);
    int64_t version = block_version(seen, file, index);
    m->checks++;
    if (version < 0)
        model_violation(m, "%s: file %u block %u: torn or foreign bytes (version word %u)", who, file, index,
                        get_be32(seen));
    else if (version < acked_at_start)
        model_violation(m, "%s: file %u block %u: stale version %u, acknowledged %u", who, file, index,
                        (uint32_t)version, acked_at_start);
    else if (version > r->issued)
        model_violation(m, "%s: file %u block %u: version %u was never written (last %u)", who, file, index,
                        (uint32_t)version, r->issued);
    else
        return true;
    return false;
}

bool model_check_name(struct model *m, unsigned dir, unsigned name, const struct gfid *seen, uint32_t acked_at_start,
                      const char *who)
{
    const struct reg *r = model_name(m, dir, name);
    m->checks++;
    for (uint32_t v = acked_at_start; v <= r->issued; v++)
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
