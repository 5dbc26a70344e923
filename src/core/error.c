#include "core/error.h"

#include <stdarg.h>
#include <stdio.h>

int error_set(struct error *err, int code, const char *fmt, ...)
{
    if (!err)
        return code;
    va_list args;
    va_start(args, fmt);
    if (vsnprintf(err->text, sizeof(err->text), fmt, args) < 0)
        err->text[0] = '\0';
    va_end(args);
    return code;
}

int error_prefix(struct error *err, int code, const char *fmt, ...)
{
    char before[sizeof(err->text)];

    if (!err)
        return code;
    memcpy(before, err->text, sizeof(before));
    before[sizeof(before) - 1] = '\0';
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(err->text, sizeof(err->text), fmt, args);
    va_end(args);
    size_t at = n < 0 ? 0 : MIN((size_t)n, sizeof(err->text) - 1);
    snprintf(err->text + at, sizeof(err->text) - at, ": %s", before);
    return code;
}
