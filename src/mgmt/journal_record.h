/* mgmt/journal_record.h - the bytes of a journal's files (docs/management.md "The journal"). */
#pragma once

#include "core/buf.h"
#include "mgmt/journal.h"
#include "rpc/xdr_buf.h"

/* Appends an entry's record. `safe_bytes`: how much of the file was durable before this batch. */
void record_put_entry(struct xdr_out *o, const struct journal_entry *e, uint64_t safe_bytes);
/* Reads the log: entries are appended to the image, *ret_good_bytes says how long the readable part is. 0, -ENOMEM, or
 * -EBADMSG with a sentence when records that had been durable cannot be read. */
int record_read_log(const uint8_t *data, size_t size_bytes, struct journal_image *image, size_t *ret_good_bytes,
                    struct error *err);
void record_put_snapshot(struct xdr_out *o, const struct journal_snapshot *s);
int record_read_snapshot(uint8_t *data, size_t size_bytes, struct journal_snapshot *ret_snapshot, struct error *err);
void record_put_vote(struct xdr_out *o, uint64_t term, uint64_t vote);
int record_read_vote(const uint8_t *data, size_t size_bytes, uint64_t *ret_term, uint64_t *ret_vote, struct error *err);
