/* graph/nearest.h - "did you mean ...?": the known name that is closest to a wrong one. */
#pragma once

#include "core/base.h"

/* Name number i, NULL after the last one. */
typedef const char *(*nearest_fn)(const void *arg, unsigned i);

/* The name with the fewest edits to `wrong`, if that is few enough for a slip of the fingers (a third of its length, at
 * most 4; case does not count), else NULL. Borrowed from whom name_at returned it. */
const char *nearest_name(const char *wrong, nearest_fn name_at, const void *arg);
