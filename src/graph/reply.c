/* Replies and directory listings. */
#include "graph/translator.h"
#include "core/mem.h"

void reply_init(struct reply *r)
{
    memset(r, 0, sizeof(*r));
}

static void release_steps(struct reply *r)
{
    for (uint32_t i = 0; i < r->step_count; i++)
        reply_done(&r->steps[i]); /* one level: steps of steps are refused where compounds enter */
    mem_free(r->steps);
}

void reply_done(struct reply *r)
{
    dict_unref(r->xdata);
    dict_unref(r->xattrs);
    buf_unref(r->data);
    mem_free(r->text);
    dir_entries_free(r->entries);
    mem_free(r->statfs);
    mem_free(r->lock);
    mem_free(r->locks);
    if (r->steps)
        release_steps(r);
    reply_init(r);
}

void reply_move(struct reply *to, struct reply *from)
{
    *to = *from;
    reply_init(from);
}

struct reply *reply_new(void)
{
    return NEW(struct reply);
}

void reply_free(struct reply *r)
{
    if (!r)
        return;
    reply_done(r);
    mem_free(r);
}

/* ---- directory listings ---- */

#define NAMES_CHUNK_BYTES 8192

/* Names lie back to back in chunks, so that a listing costs few allocations. */
struct dir_names {
    struct dir_names *next;
    size_t used, room;
    char bytes[];
};

struct dir_entries *dir_entries_new(void)
{
    return NEW(struct dir_entries);
}

static char *keep_name(struct dir_entries *e, const char *name, size_t name_len)
{
    struct dir_names *chunk = e->names;

    if (!chunk || chunk->room - chunk->used < name_len + 1) {
        size_t room = MAX((size_t)NAMES_CHUNK_BYTES, name_len + 1);
        chunk = mem_alloc(sizeof(*chunk) + room);
        if (!chunk)
            return NULL;
        *chunk = (struct dir_names) { .next = e->names, .room = room };
        e->names = chunk;
    }
    char *kept = chunk->bytes + chunk->used;
    memcpy(kept, name, name_len);
    kept[name_len] = '\0';
    chunk->used += name_len + 1;
    return kept;
}

int dir_entries_add(struct dir_entries *e, const char *name, size_t name_len, uint64_t ino, uint64_t offset,
                    uint32_t type, struct dir_entry **ret_entry)
{
    if (e->count == e->room) {
        uint32_t room = e->room ? e->room * 2 : 32;
        struct dir_entry *list = mem_realloc(e->list, room * sizeof(*list));
        if (!list)
            return -ENOMEM;
        e->list = list;
        e->room = room;
    }
    char *kept = keep_name(e, name, name_len);
    if (!kept)
        return -ENOMEM;
    struct dir_entry *entry = &e->list[e->count++];
    *entry = (struct dir_entry) {
        .ino = ino,
        .offset = offset,
        .type = type,
        .name = kept,
        .name_len = (uint32_t)name_len,
    };
    if (ret_entry)
        *ret_entry = entry;
    return 0;
}

void dir_entries_drop(struct dir_entries *e, uint32_t index)
{
    assert(index < e->count);
    dict_unref(e->list[index].xattrs);
    e->count--;
    memmove(&e->list[index], &e->list[index + 1], (e->count - index) * sizeof(*e->list));
}

void dir_entries_free(struct dir_entries *e)
{
    if (!e)
        return;
    for (uint32_t i = 0; i < e->count; i++)
        dict_unref(e->list[i].xattrs);
    while (e->names) {
        struct dir_names *chunk = e->names;
        e->names = chunk->next;
        mem_free(chunk);
    }
    mem_free(e->list);
    mem_free(e);
}
