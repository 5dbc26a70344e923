/* cluster/replicate/result.h - one answer out of many: pure. */
#pragma once

#include "cluster/replicate/changelog.h"

/* Of several failures, the one the application hears: ENODATA before ENOENT before ESTALE before ENOSPC before any
 * other that an operation gave, before a lost connection. All are negative errnos; 0 means "none yet". */
int result_worse(int a, int b);
/* The outcome on the brick is not known: the request may or may not have been carried out. */
bool result_is_unknown(int r);
/* SuperFastHash (Paul Hsieh) of `data`: which replica serves a gfid. */
uint32_t super_fast_hash(const uint8_t *data, size_t size_bytes);
