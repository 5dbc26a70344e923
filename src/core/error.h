/* core/error.h - a sentence for a person.
 *
 * Functions whose failure a person will read take `struct error *err` (may be NULL) as their last argument: one
 * sentence that names the thing, the place and the way out. The errno is the function's return value as well.
 */
#pragma once

#include "core/base.h"

struct error {
    char text[512]; /* cut at this length, always NUL-terminated */
};

/* Writes the sentence (if err is not NULL) and returns `code` (a negative errno), so that
 * `return error_set(err, -EINVAL, "...");` is the whole story. */
int error_set(struct error *err, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Puts "PREFIX: " before what is there; returns `code`. */
int error_prefix(struct error *err, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);
