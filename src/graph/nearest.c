/* Edit distance over short names. */
#include "graph/nearest.h"
#include <ctype.h>

#define NAME_MAX_COMPARED  96
#define NAMES_MAX_COMPARED 4096 /* a hint is not worth more work than this */

static unsigned distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
    uint8_t row[NAME_MAX_COMPARED + 1];

    for (size_t j = 0; j <= b_len; j++)
        row[j] = (uint8_t)j;
    for (size_t i = 1; i <= a_len; i++) {
        uint8_t diagonal = row[0];
        row[0] = (uint8_t)i;
        for (size_t j = 1; j <= b_len; j++) {
            bool same = tolower((unsigned char)a[i - 1]) == tolower((unsigned char)b[j - 1]);
            uint8_t change = (uint8_t)(diagonal + (same ? 0 : 1));
            uint8_t insert = (uint8_t)(MIN(row[j], row[j - 1]) + 1);
            diagonal = row[j];
            row[j] = MIN(change, insert);
        }
    }
    return row[b_len];
}

const char *nearest_name(const char *wrong, nearest_fn name_at, const void *arg)
{
    const char *best = NULL, *name;
    size_t wrong_len = strlen(wrong);
    unsigned best_distance = (unsigned)MIN(wrong_len / 3, (size_t)4) + 1;

    if (wrong_len > NAME_MAX_COMPARED)
        return NULL;
    for (unsigned i = 0; i < NAMES_MAX_COMPARED && (name = name_at(arg, i)); i++) {
        size_t len = strlen(name);
        if (len > NAME_MAX_COMPARED || len + best_distance <= wrong_len || wrong_len + best_distance <= len)
            continue;
        unsigned d = distance(wrong, wrong_len, name, len);
        if (d < best_distance) {
            best = name;
            best_distance = d;
        }
    }
    return best;
}
