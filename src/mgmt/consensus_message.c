/* Messages between members (docs/management.md "Messages between members"). */
#include "mgmt/consensus_internal.h"
#include <errno.h>

#define ENTRIES_MAX 65536

static void put_append(struct xdr_out *o, const struct raft_append_entries *a)
{
    xdr_put_u64(o, a->term);
    xdr_put_u64(o, a->prev_log_index);
    xdr_put_u64(o, a->prev_log_term);
    xdr_put_u64(o, a->leader_commit);
    xdr_put_u32(o, a->n_entries);
    for (unsigned i = 0; i < a->n_entries; i++) {
        xdr_put_u64(o, a->entries[i].term);
        xdr_put_u32(o, a->entries[i].type);
        xdr_put_opaque(o, a->entries[i].buf.base, a->entries[i].buf.len);
    }
}

static void put_snapshot(struct xdr_out *o, const struct raft_install_snapshot *s)
{
    xdr_put_u64(o, s->term);
    xdr_put_u64(o, s->last_index);
    xdr_put_u64(o, s->last_term);
    xdr_put_u64(o, s->conf_index);
    members_put(o, &s->conf);
    xdr_put_opaque(o, s->data.base, s->data.len);
}

void message_put(struct xdr_out *o, const struct raft_message *m)
{
    xdr_put_u32(o, m->type);
    switch (m->type) {
    case RAFT_IO_APPEND_ENTRIES: put_append(o, &m->append_entries); break;
    case RAFT_IO_APPEND_ENTRIES_RESULT:
        xdr_put_u64(o, m->append_entries_result.term);
        xdr_put_u64(o, m->append_entries_result.rejected);
        xdr_put_u64(o, m->append_entries_result.last_log_index);
        break;
    case RAFT_IO_REQUEST_VOTE:
        xdr_put_u64(o, m->request_vote.term);
        xdr_put_u64(o, m->request_vote.candidate_id);
        xdr_put_u64(o, m->request_vote.last_log_index);
        xdr_put_u64(o, m->request_vote.last_log_term);
        xdr_put_u32(o, m->request_vote.disrupt_leader);
        xdr_put_u32(o, m->request_vote.pre_vote);
        break;
    case RAFT_IO_REQUEST_VOTE_RESULT:
        xdr_put_u64(o, m->request_vote_result.term);
        xdr_put_u32(o, m->request_vote_result.vote_granted);
        xdr_put_u32(o, (uint32_t)m->request_vote_result.pre_vote);
        break;
    case RAFT_IO_INSTALL_SNAPSHOT: put_snapshot(o, &m->install_snapshot); break;
    case RAFT_IO_TIMEOUT_NOW:
        xdr_put_u64(o, m->timeout_now.term);
        xdr_put_u64(o, m->timeout_now.last_log_index);
        xdr_put_u64(o, m->timeout_now.last_log_term);
        break;
    default: o->failed = true;
    }
}

/* An opaque<> in memory of the library. At least one byte, so that NULL means no memory. */
static int copy_opaque(struct xdr_in *in, struct raft_buffer *ret)
{
    size_t size_bytes;
    const void *data = xdr_get_opaque(in, UINT32_MAX, &size_bytes);

    if (in->failed)
        return -EBADMSG;
    ret->base = raft_malloc(size_bytes > 0 ? size_bytes : 1);
    ret->len = size_bytes;
    if (!ret->base)
        return -ENOMEM;
    memcpy(ret->base, data, size_bytes);
    return 0;
}

void message_clear_entries(struct raft_append_entries *a)
{
    if (a->entries && a->n_entries > 0)
        raft_free(a->entries[0].batch);
    raft_free(a->entries);
    *a = (struct raft_append_entries) { 0 };
}

/* The library frees the entries' data by their batch, once for all of them: they are copied into one block. */
static int get_entries(struct xdr_in *in, struct raft_append_entries *a, uint32_t count)
{
    size_t room_bytes = xdr_left(in) + (size_t)count * 8 + 1, used_bytes = 0;
    uint8_t *batch = raft_malloc(room_bytes);

    a->entries = raft_calloc(count, sizeof(*a->entries));
    if (!a->entries || !batch) {
        raft_free(a->entries);
        raft_free(batch);
        a->entries = NULL;
        return -ENOMEM;
    }
    a->n_entries = count;
    for (uint32_t i = 0; i < count; i++) {
        struct raft_entry *e = &a->entries[i];
        const void *data;

        e->term = xdr_get_u64(in);
        e->type = (unsigned short)xdr_get_u32(in);
        data = xdr_get_opaque(in, UINT32_MAX, &e->buf.len);
        e->batch = batch;
        if (in->failed || e->type < RAFT_COMMAND || e->type > RAFT_CHANGE)
            return -EBADMSG;
        e->buf.base = batch + used_bytes;
        memcpy(e->buf.base, data, e->buf.len);
        /* Whole words, for the library reads some of them as numbers. */
        used_bytes += (e->buf.len + 7) & ~(size_t)7;
    }
    return 0;
}

static int get_append(struct xdr_in *in, struct raft_append_entries *a)
{
    uint32_t count;
    int r = 0;

    a->term = xdr_get_u64(in);
    a->prev_log_index = xdr_get_u64(in);
    a->prev_log_term = xdr_get_u64(in);
    a->leader_commit = xdr_get_u64(in);
    count = xdr_get_u32(in);
    if (in->failed || count > ENTRIES_MAX || count > xdr_left(in) / 16)
        return -EBADMSG;
    if (count > 0)
        r = get_entries(in, a, count);
    if (r < 0)
        message_clear_entries(a);
    return r;
}

static int get_snapshot(struct xdr_in *in, struct raft_install_snapshot *s)
{
    int r;

    s->term = xdr_get_u64(in);
    s->last_index = xdr_get_u64(in);
    s->last_term = xdr_get_u64(in);
    s->conf_index = xdr_get_u64(in);
    r = members_get(in, &s->conf);
    if (r < 0)
        return r;
    r = copy_opaque(in, &s->data);
    if (r < 0)
        raft_configuration_close(&s->conf);
    return r;
}

int message_get(void *data, size_t size_bytes, struct raft_message *m)
{
    struct xdr_in in = { .at = data, .end = (uint8_t *)data + size_bytes };

    m->type = (unsigned short)xdr_get_u32(&in);
    switch (m->type) {
    case RAFT_IO_APPEND_ENTRIES: return get_append(&in, &m->append_entries);
    case RAFT_IO_APPEND_ENTRIES_RESULT:
        m->append_entries_result.term = xdr_get_u64(&in);
        m->append_entries_result.rejected = xdr_get_u64(&in);
        m->append_entries_result.last_log_index = xdr_get_u64(&in);
        break;
    case RAFT_IO_REQUEST_VOTE:
        m->request_vote.term = xdr_get_u64(&in);
        m->request_vote.candidate_id = xdr_get_u64(&in);
        m->request_vote.last_log_index = xdr_get_u64(&in);
        m->request_vote.last_log_term = xdr_get_u64(&in);
        m->request_vote.disrupt_leader = xdr_get_u32(&in) != 0;
        m->request_vote.pre_vote = xdr_get_u32(&in) != 0;
        break;
    case RAFT_IO_REQUEST_VOTE_RESULT:
        m->request_vote_result.term = xdr_get_u64(&in);
        m->request_vote_result.vote_granted = xdr_get_u32(&in) != 0;
        m->request_vote_result.pre_vote =
            xdr_get_u32(&in) == raft_tribool_true ? raft_tribool_true : raft_tribool_false;
        break;
    case RAFT_IO_INSTALL_SNAPSHOT: return get_snapshot(&in, &m->install_snapshot);
    case RAFT_IO_TIMEOUT_NOW:
        m->timeout_now.term = xdr_get_u64(&in);
        m->timeout_now.last_log_index = xdr_get_u64(&in);
        m->timeout_now.last_log_term = xdr_get_u64(&in);
        break;
    default: return -EBADMSG;
    }
    return in.failed ? -EBADMSG : 0;
}
