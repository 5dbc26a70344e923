/* The members that held before an entry which is now taken back.
 *
 * When a leader that was replaced left entries which were not agreed on, they are taken back, and with them a change of
 * members. The library then wants the entry that holds the members before; but that may be gone from the log, with only the
 * snapshot left to say it; and after a restart it takes the last such entry in the log for agreed on, and would keep it. So
 * the members to go back to are found here, and set, before the library takes the entries back.
 */
#include "core/mem.h"
#include "mgmt/consensus_internal.h"
#include <errno.h>

/* ---- the library's way to write members into an entry ---- */

#define MEMBERS_FORMAT     1
#define MEMBERS_HEAD_BYTES 9 /* format, number of members (little-endian) */
#define MEMBERS_MAX        1024

static uint64_t get_le64(const uint8_t *p)
{
    uint64_t value = 0;

    for (int i = 7; i >= 0; i--)
        value = value << 8 | p[i];
    return value;
}

int members_decode(const void *data, size_t size_bytes, struct raft_configuration *ret_members)
{
    const uint8_t *at = data, *end = at + size_bytes;
    uint64_t count = size_bytes >= MEMBERS_HEAD_BYTES && at[0] == MEMBERS_FORMAT ? get_le64(at + 1) : UINT64_MAX;

    if (count > MEMBERS_MAX)
        return -EBADMSG;
    raft_configuration_init(ret_members);
    at += MEMBERS_HEAD_BYTES;
    for (uint64_t i = 0; i < count; i++) {
        const uint8_t *nul = end - at > 8 ? memchr(at + 8, '\0', (size_t)(end - at) - 8) : NULL;

        if (!nul || end - nul < 2 || nul[1] > RAFT_SPARE ||
            raft_configuration_add(ret_members, get_le64(at), (const char *)at + 8, nul[1]) != 0) {
            raft_configuration_close(ret_members);
            return -EBADMSG;
        }
        at = nul + 2;
    }
    return 0;
}

/* ---- ours, in messages and in the journal ---- */

void members_put(struct xdr_out *o, const struct raft_configuration *members)
{
    xdr_put_u32(o, members->n);
    for (unsigned i = 0; i < members->n; i++) {
        xdr_put_u64(o, members->servers[i].id);
        xdr_put_string(o, members->servers[i].address);
        xdr_put_u32(o, (uint32_t)members->servers[i].role);
    }
}

int members_get(struct xdr_in *in, struct raft_configuration *ret_members)
{
    uint32_t count = xdr_get_u32(in);
    int r = in->failed ? -EBADMSG : 0;

    raft_configuration_init(ret_members);
    for (uint32_t i = 0; i < count && r == 0; i++) {
        uint64_t id = xdr_get_u64(in);
        const char *address = xdr_get_string(in, 1024);
        uint32_t role = xdr_get_u32(in);

        if (in->failed || role > RAFT_SPARE || raft_configuration_add(ret_members, id, address, (int)role) != 0)
            r = -EBADMSG;
    }
    if (r < 0)
        raft_configuration_close(ret_members);
    return r;
}

/* ---- the library's log ---- */

static uint64_t last_index(const struct raft_log *log)
{
    size_t count = log->back >= log->front ? log->back - log->front : log->size - log->front + log->back;

    return log->offset + count;
}

/* NULL: not in the log. */
static const struct raft_entry *entry_at(const struct raft_log *log, uint64_t index)
{
    if (index <= log->offset || index > last_index(log))
        return NULL;
    return &log->entries[(log->front + (index - 1 - log->offset)) % log->size];
}

/* The first entry here that the message says otherwise; 0: none. */
static uint64_t first_conflict(const struct consensus *c, const struct raft_append_entries *a)
{
    for (unsigned i = 0; i < a->n_entries; i++) {
        const struct raft_entry *mine = entry_at(&c->raft.log, a->prev_log_index + 1 + i);

        if (!mine)
            return 0;
        if (mine->term != a->entries[i].term)
            return a->prev_log_index + 1 + i;
    }
    return 0;
}

/* The members as they were before entry `end`. */
static int members_before(const struct consensus *c, uint64_t end, struct raft_configuration *ret_members,
                          uint64_t *ret_index)
{
    for (uint64_t index = end - 1; index > c->raft.log.offset; index--) {
        const struct raft_entry *e = entry_at(&c->raft.log, index);

        if (e && e->type == RAFT_CHANGE) {
            *ret_index = index;
            return members_decode(e->buf.base, e->buf.len, ret_members);
        }
    }
    *ret_index = c->snapshot_members_index;
    return *ret_index > 0 ? members_decode(c->snapshot_members.base, c->snapshot_members.len, ret_members) : -ENOENT;
}

void members_take_back(struct consensus *c, const struct raft_append_entries *a)
{
    uint64_t known = MAX(c->raft.configuration_index, c->raft.configuration_uncommitted_index);
    uint64_t conflict = first_conflict(c, a);
    struct raft_configuration members;
    uint64_t index;

    if (conflict == 0 || conflict > known)
        return;
    if (members_before(c, conflict, &members, &index) < 0) {
        /* Before the first entry that names members: it joined just now. */
        raft_configuration_init(&members);
        index = 0;
    }
    raft_configuration_close(&c->raft.configuration);
    c->raft.configuration = members;
    c->raft.configuration_index = index;
    c->raft.configuration_uncommitted_index = 0;
}

int members_keep(struct consensus *c, const struct raft_configuration *members, uint64_t index)
{
    struct raft_buffer copy;

    if (raft_configuration_encode(members, &copy) != 0)
        return -ENOMEM;
    raft_free(c->snapshot_members.base);
    c->snapshot_members = copy;
    c->snapshot_members_index = index;
    return 0;
}
