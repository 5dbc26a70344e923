/* rpc/record.h - record marking (RFC 5531, section 11): from the bytes of a stream to messages, without I/O.
 *
 * The owner asks where the next bytes should go, reads them there, says how many came, and takes the messages that are
 * complete. Small messages are windows on one receive buffer. A large message that ends in raw data (a WRITE, the reply
 * to a READ) is split: its head is a window, and its data is read straight into a buf of its own. Any splitting into
 * fragments is accepted.
 *
 *     for (;;) {
 *         n = record_reader_space(&r, iov);  read into iov;  record_reader_got(&r, n_read);
 *         while ((n = record_reader_next(&r, &m)) > 0) ...use m, record_done(&m)...
 *     }
 */
#pragma once

#include "core/buf.h"
#include "rpc/message.h"

#define RECORD_CHUNK_BYTES       (64 * 1024)
#define RECORD_LARGE_BYTES       (16 * 1024) /* from this size on, raw data gets a buf of its own */
/* A message's limit. The largest sensible one is a write of a library user (glfs_pwrite sends it whole). */
#define RECORD_MAX_BYTES         (256u * 1024 * 1024)
/* Before the other side has said who it is. */
#define RECORD_MAX_BYTES_UNKNOWN (1024u * 1024)
#define RECORD_FRAGMENTS_MAX     (1024 * 1024)

struct record {
    struct buf *head; /* the message, or what is before its raw data */
    struct buf *data; /* raw data read apart; NULL: it is at the end of head, if there is any */
};

void record_done(struct record *m);

/* Bytes of the record at head before its raw data, as rpc_write_head_bytes(). */
typedef ssize_t (*record_peek_fn)(void *arg, const uint8_t *head, size_t have);

struct record_reader {
    size_t max_bytes; /* of a message; the owner may change it */
    record_peek_fn peek;
    void *peek_arg;
    struct buf *chunk;
    size_t start, end;   /* of the bytes in chunk not handed out yet */
    bool expect_large;   /* the last message was: do not read far ahead */
    struct record large; /* being filled */
    struct buf *filling; /* large.head or large.data */
    size_t filled;
    struct buf *joined; /* fragments so far (size: bytes there); NULL outside a fragmented message */
    size_t fragment_left;
    bool fragment_is_last;
    uint32_t fragment_count;
};

int record_reader_init(struct record_reader *r, size_t max_bytes, record_peek_fn peek, void *arg) MUST_USE;
void record_reader_done(struct record_reader *r);
/* One or two places for the next bytes; how many, or -ENOMEM. */
int record_reader_space(struct record_reader *r, struct iovec iov[static 2]);
void record_reader_got(struct record_reader *r, size_t n);
/* 1 and a message; 0: more bytes are needed; -EMSGSIZE, -EBADMSG, -ENOMEM: the stream is of no use any more. */
int record_reader_next(struct record_reader *r, struct record *ret_record);
