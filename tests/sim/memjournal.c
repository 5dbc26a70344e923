#include "sim/memjournal.h"
#include "core/mem.h"
#include <errno.h>

struct memjournal {
    struct journal journal;
    struct env *env;
    struct sim *sim;
    struct memjournal_disk *disk;
};

static struct memjournal *of(struct journal *j)
{
    return (struct memjournal *)j;
}

static void nothing(void *arg UNUSED)
{
}

/* Takes its time; false when the process died meanwhile and the disk knows nothing of the call. */
static FIBER bool takes_place(struct memjournal *m)
{
    env_pool_run(m->env, nothing, NULL);
    return !sim_is_crashed(m->env) || sim_random(m->sim) % 2 == 0;
}

static void *copy_of(const void *data, size_t size_bytes)
{
    void *copy = mem_alloc(size_bytes + 1);

    memcpy(copy, data, size_bytes);
    return copy;
}

static struct journal_snapshot copy_snapshot(const struct journal_snapshot *s)
{
    struct journal_snapshot copy = *s;

    copy.members = s->members ? copy_of(s->members, s->members_bytes) : NULL;
    copy.data = s->data ? copy_of(s->data, s->data_bytes) : NULL;
    return copy;
}

static void add_entry(struct journal_image *image, const struct journal_entry *e)
{
    image->entries = mem_realloc(image->entries, (image->entry_count + 1) * sizeof(*e));
    image->entries[image->entry_count] = *e;
    image->entries[image->entry_count++].data = copy_of(e->data, e->size_bytes);
}

static int mem_load(struct journal *j, struct journal_image *ret_image, struct error *err UNUSED)
{
    const struct journal_image *disk = &of(j)->disk->image;

    *ret_image = (struct journal_image) { .term = disk->term, .vote = disk->vote };
    ret_image->snapshot = copy_snapshot(&disk->snapshot);
    for (size_t i = 0; i < disk->entry_count; i++)
        add_entry(ret_image, &disk->entries[i]);
    return 0;
}

static int mem_set_vote(struct journal *j, uint64_t term, uint64_t vote)
{
    if (sim_is_crashed(of(j)->env))
        return -ESHUTDOWN;
    of(j)->disk->image.term = term;
    of(j)->disk->image.vote = vote;
    return 0;
}

/* Keeps the entries of [first, end). */
static void keep(struct journal_image *image, uint64_t first, uint64_t end)
{
    size_t kept = 0;

    for (size_t i = 0; i < image->entry_count; i++) {
        if (image->entries[i].index >= first && image->entries[i].index < end)
            image->entries[kept++] = image->entries[i];
        else
            mem_free(image->entries[i].data);
    }
    image->entry_count = kept;
}

static FIBER int mem_append(struct journal *j, const struct journal_entry *entries, size_t count)
{
    struct memjournal *m = of(j);
    bool was_dead = sim_is_crashed(m->env);

    env_pool_run(m->env, nothing, NULL);
    if (was_dead)
        return -ESHUTDOWN;
    if (sim_is_crashed(m->env))
        count = sim_random(m->sim) % (count + 1);
    for (size_t i = 0; i < count; i++)
        add_entry(&m->disk->image, &entries[i]);
    return sim_is_crashed(m->env) ? -ESHUTDOWN : 0;
}

static FIBER int mem_truncate(struct journal *j, uint64_t index)
{
    bool was_dead = sim_is_crashed(of(j)->env);

    if (!was_dead && takes_place(of(j)))
        keep(&of(j)->disk->image, 0, index);
    return sim_is_crashed(of(j)->env) ? -ESHUTDOWN : 0;
}

/* In two steps, as files do it. */
static FIBER int mem_put_snapshot(struct journal *j, const struct journal_snapshot *s, uint64_t keep_from)
{
    struct memjournal *m = of(j);

    if (sim_is_crashed(m->env) || !takes_place(m))
        return -ESHUTDOWN;
    journal_snapshot_clear(&m->disk->image.snapshot);
    m->disk->image.snapshot = copy_snapshot(s);
    if (sim_is_crashed(m->env) || !takes_place(m))
        return -ESHUTDOWN;
    keep(&m->disk->image, keep_from, UINT64_MAX);
    return sim_is_crashed(m->env) ? -ESHUTDOWN : 0;
}

static FIBER int mem_get_snapshot(struct journal *j, struct journal_snapshot *ret_snapshot)
{
    env_pool_run(of(j)->env, nothing, NULL);
    *ret_snapshot = copy_snapshot(&of(j)->disk->image.snapshot);
    return 0;
}

static FIBER int mem_erase(struct journal *j)
{
    if (!sim_is_crashed(of(j)->env) && takes_place(of(j)))
        journal_image_clear(&of(j)->disk->image);
    return 0;
}

static void mem_close(struct journal *j)
{
    mem_free(of(j));
}

static const struct journal_ops mem_ops = {
    .load = mem_load,
    .set_vote = mem_set_vote,
    .append = mem_append,
    .truncate = mem_truncate,
    .put_snapshot = mem_put_snapshot,
    .get_snapshot = mem_get_snapshot,
    .erase = mem_erase,
    .free = mem_close,
};

struct journal *memjournal_new(struct env *env, struct sim *sim, struct memjournal_disk *disk)
{
    struct memjournal *m = NEW(struct memjournal);

    if (!m)
        return NULL;
    *m = (struct memjournal) { .journal.ops = &mem_ops, .env = env, .sim = sim, .disk = disk };
    return &m->journal;
}
