/* performance/read-ahead - fetches the next pages of a file that is read from front to back.
 *
 * Per descriptor: after a read that continues the one before, up to page-count pages of page-size bytes (or of the size
 * of the reads, if that is more) are asked for ahead. A page is served at most once and only when it answers the whole
 * read; the end of the file always comes from the child. Pages are dropped, unread, when
 *   - anything through this graph may have changed the file: write, truncate, fallocate, copy, open with O_TRUNC;
 *   - a POSIX lock was granted, on whatever file (what its last holder wrote must be seen);
 *   - any reply shows another size, mtime or ctime than the reply before, or a child says the inode changed;
 *   - they are older than a second, or the descriptor is read elsewhere.
 * So a read never returns less than what a write that was answered through this graph made visible.
 */
#pragma once

#include "graph/translator.h"

extern const struct translator_class read_ahead_class;
