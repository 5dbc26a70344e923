/* Records: a magic word, a length, a sum over what follows, then the fields.
 *
 * A crash can leave a half-written batch at the end of the log, in which any page may be missing. What was durable before
 * must never be taken for that, or a machine would forget changes it has voted for. So every record says how much of the
 * file was durable when its batch was begun: a bad record below that point of a later, good one is damage, and reported.
 */
#include "mgmt/journal_record.h"
#include "core/mem.h"
#include <errno.h>
#include <xxhash.h>

#define ENTRY_MAGIC    0x4d4a4531 /* "MJE1" */
#define SNAPSHOT_MAGIC 0x4d4a5331
#define VOTE_MAGIC     0x4d4a5631
#define HEAD_BYTES     16 /* magic, length of the body, sum of the body */

/* The head's place, to be filled when the body is there. */
static size_t begin(struct xdr_out *o)
{
    (void)xdr_reserve(o, HEAD_BYTES); /* failure is sticky */
    return o->size - (o->failed ? 0 : HEAD_BYTES);
}

static void finish(struct xdr_out *o, size_t at, uint32_t magic)
{
    uint8_t *head;

    if (o->failed)
        return;
    head = o->buf->data + at;
    put_be32(head, magic);
    put_be32(head + 4, (uint32_t)(o->size - at - HEAD_BYTES));
    put_be64(head + 8, XXH3_64bits(head + HEAD_BYTES, o->size - at - HEAD_BYTES));
}

/* Bytes of the whole record at `data`, 0 when there is no good one. */
static size_t check(const uint8_t *data, size_t size_bytes, uint32_t magic)
{
    uint32_t length;

    if (size_bytes < HEAD_BYTES || get_be32(data) != magic)
        return 0;
    length = get_be32(data + 4);
    if (length > size_bytes - HEAD_BYTES || XXH3_64bits(data + HEAD_BYTES, length) != get_be64(data + 8))
        return 0;
    return HEAD_BYTES + (size_t)length;
}

/* ---- entries ---- */

#define ENTRY_FIELDS_BYTES 28 /* safe bytes, index, term, type */

void record_put_entry(struct xdr_out *o, const struct journal_entry *e, uint64_t safe_bytes)
{
    size_t at = begin(o);

    xdr_put_u64(o, safe_bytes);
    xdr_put_u64(o, e->index);
    xdr_put_u64(o, e->term);
    xdr_put_u32(o, e->type);
    xdr_put_bytes(o, e->data, e->size_bytes);
    finish(o, at, ENTRY_MAGIC);
}

static int take_entry(const uint8_t *body, size_t body_bytes, struct journal_image *image)
{
    struct journal_entry e = { .index = get_be64(body + 8),
                               .term = get_be64(body + 16),
                               .type = (uint16_t)get_be32(body + 24) };
    struct journal_entry *grown = mem_realloc(image->entries, (image->entry_count + 1) * sizeof(e));

    if (!grown)
        return -ENOMEM;
    image->entries = grown;
    e.size_bytes = body_bytes - ENTRY_FIELDS_BYTES;
    e.data = mem_dup(body + ENTRY_FIELDS_BYTES, e.size_bytes);
    if (!e.data && e.size_bytes > 0)
        return -ENOMEM;
    grown[image->entry_count++] = e;
    return 0;
}

/* Does a good record after `from` say that the place was durable? */
static bool was_safe(const uint8_t *data, size_t size_bytes, size_t from)
{
    for (size_t at = from + 1; at + HEAD_BYTES + ENTRY_FIELDS_BYTES <= size_bytes; at++) {
        if (get_be32(data + at) == ENTRY_MAGIC &&
            check(data + at, size_bytes - at, ENTRY_MAGIC) >= HEAD_BYTES + ENTRY_FIELDS_BYTES &&
            get_be64(data + at + HEAD_BYTES) > from)
            return true;
    }
    return false;
}

int record_read_log(const uint8_t *data, size_t size_bytes, struct journal_image *image, size_t *ret_good_bytes,
                    struct error *err)
{
    size_t at = 0;

    while (at < size_bytes) {
        size_t record_bytes = check(data + at, size_bytes - at, ENTRY_MAGIC);
        uint64_t expected = image->entry_count > 0 ? image->entries[image->entry_count - 1].index + 1 : 0;
        bool is_good = record_bytes >= HEAD_BYTES + ENTRY_FIELDS_BYTES;
        int r;

        if (is_good && expected > 0 && get_be64(data + at + HEAD_BYTES + 8) != expected)
            return error_set(err, -EBADMSG, "entry %llu follows entry %llu",
                             (unsigned long long)get_be64(data + at + HEAD_BYTES + 8),
                             (unsigned long long)(expected - 1));
        if (!is_good && was_safe(data, size_bytes, at))
            return error_set(err, -EBADMSG, "the record at byte %zu is damaged", at);
        if (!is_good)
            break;
        r = take_entry(data + at + HEAD_BYTES, record_bytes - HEAD_BYTES, image);
        if (r < 0)
            return r;
        at += record_bytes;
    }
    *ret_good_bytes = at;
    return 0;
}

/* ---- the snapshot, the vote ---- */

void record_put_snapshot(struct xdr_out *o, const struct journal_snapshot *s)
{
    size_t at = begin(o);

    xdr_put_u64(o, s->index);
    xdr_put_u64(o, s->term);
    xdr_put_u64(o, s->members_index);
    xdr_put_opaque(o, s->members, s->members_bytes);
    xdr_put_opaque(o, s->data, s->data_bytes);
    finish(o, at, SNAPSHOT_MAGIC);
}

/* The next field of variable length, copied. */
static int copy_opaque(struct xdr_in *in, void **ret_data, size_t *ret_bytes)
{
    size_t size_bytes;
    const void *data = xdr_get_opaque(in, UINT32_MAX, &size_bytes);

    if (in->failed)
        return -EBADMSG;
    *ret_data = mem_dup(data, MAX(size_bytes, (size_t)1));
    *ret_bytes = size_bytes;
    return *ret_data ? 0 : -ENOMEM;
}

int record_read_snapshot(uint8_t *data, size_t size_bytes, struct journal_snapshot *ret_snapshot, struct error *err)
{
    struct journal_snapshot s = { 0 };
    struct xdr_in in;
    int r;

    if (check(data, size_bytes, SNAPSHOT_MAGIC) != size_bytes)
        return error_set(err, -EBADMSG, "the snapshot is damaged");
    in = (struct xdr_in) { .at = data + HEAD_BYTES, .end = data + size_bytes };
    s.index = xdr_get_u64(&in);
    s.term = xdr_get_u64(&in);
    s.members_index = xdr_get_u64(&in);
    r = copy_opaque(&in, &s.members, &s.members_bytes);
    r = r < 0 ? r : copy_opaque(&in, &s.data, &s.data_bytes);
    if (r < 0) {
        journal_snapshot_clear(&s);
        return error_set(err, r, "the snapshot cannot be read");
    }
    *ret_snapshot = s;
    return 0;
}

void record_put_vote(struct xdr_out *o, uint64_t term, uint64_t vote)
{
    size_t at = begin(o);

    xdr_put_u64(o, term);
    xdr_put_u64(o, vote);
    finish(o, at, VOTE_MAGIC);
}

int record_read_vote(const uint8_t *data, size_t size_bytes, uint64_t *ret_term, uint64_t *ret_vote, struct error *err)
{
    if (size_bytes != HEAD_BYTES + 16 || check(data, size_bytes, VOTE_MAGIC) != size_bytes)
        return error_set(err, -EBADMSG, "the vote is damaged");
    *ret_term = get_be64(data + HEAD_BYTES);
    *ret_vote = get_be64(data + HEAD_BYTES + 8);
    return 0;
}

void journal_snapshot_clear(struct journal_snapshot *s)
{
    mem_free(s->members);
    mem_free(s->data);
    *s = (struct journal_snapshot) { 0 };
}

void journal_image_clear(struct journal_image *image)
{
    for (size_t i = 0; i < image->entry_count; i++)
        mem_free(image->entries[i].data);
    mem_free(image->entries);
    journal_snapshot_clear(&image->snapshot);
    *image = (struct journal_image) { 0 };
}
