/* performance/io-threads - how many operations run at once, and whose turn it is.
 *
 * The name is the field's; here no threads are involved: an operation runs on the fiber that brought it. This
 * translator only admits it: at most `thread-count` at a time, at most so many per priority class (high: names and
 * attributes; normal: changes of names and attributes; low: data; least: everything internal clients ask). A class with
 * nothing running may always start one, so none starves. Within a class clients take turns.
 *
 * Lock requests, and what holds no storage while it waits, pass without admission: a waiting lock must not occupy the
 * place that the unlock needs.
 */
#pragma once

#include "graph/translator.h"

extern const struct translator_class io_threads_class;
