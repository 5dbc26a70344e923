/* performance/io-threads - how many operations run at once, and whose turn it is.
 *
 * The name is the field's; here no threads are involved: an operation runs on the fiber that brought it. This
 * translator only admits it: at most `thread-count` at a time, at most so many per priority class (high: names and
 * attributes; normal: changes of names and attributes; low: data; least: everything internal clients ask, limited only
 * while other clients are at work). A class with
 * nothing running may always start one, so none starves. Within a class clients take turns.
 *
 * What heal asks in order to compare copies (sums of blocks) is a class of its own below all others, because it is much
 * and nobody waits for it with a lock in hand. While clients are at work it takes `compare-share` percent of the time and
 * not more, but always that: after each such operation comes a pause in proportion to how long it took. Its answer then says
 * CLIENTS_BUSY_KEY in xdata (rpc/block_sums.h), so that heal slows down its copying too.
 *
 * Lock requests, and what holds no storage while it waits, pass without admission: a waiting lock must not occupy the
 * place that the unlock needs.
 */
#pragma once

#include "graph/translator.h"

#define CLIENTS_BUSY_MS 200 /* clients count as at work for so long after one of their operations */

extern const struct translator_class io_threads_class;
