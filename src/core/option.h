/* core/option.h - options declared in tables: parsing, validation, help and the reference page come from one place.
 *
 *     static const struct option retry_options[] = {
 *         OPT_U32("attempts", struct retry, attempts, .def = "3", .min = 1, .max = 16, .help = "tries in all"),
 *         OPT_TIME("pause", struct retry, pause_s, .def = "1"),
 *         OPT_END,
 *     };
 *
 * Values are the text users write. Accepted forms per type are those of docs/protocol.md's companion, the volume-file
 * reference: bool 1/on/yes/true/enable and 0/off/no/false/disable in any case; integers decimal, 0x hex, 0 octal; sizes
 * with KB MB GB TB PB (binary) or B; percents 0..100 with optional %; times in seconds with s/sec m/min h/hr d/days
 * w/wk.
 */
#pragma once

#include "core/dict.h"
#include "core/error.h"

enum option_type {
    OPTION_END,
    OPTION_BOOL,            /* bool */
    OPTION_U32,             /* uint32_t */
    OPTION_U64,             /* uint64_t */
    OPTION_I32,             /* int32_t */
    OPTION_SIZE,            /* uint64_t bytes */
    OPTION_PERCENT,         /* double 0..100 */
    OPTION_PERCENT_OR_SIZE, /* struct percent_or_size */
    OPTION_TIME,            /* uint32_t seconds */
    OPTION_DOUBLE,          /* double */
    OPTION_STR,             /* char *, owned by the state (mem_free by options_release) */
    OPTION_PATH,            /* char *, absolute */
    OPTION_ENUM,            /* uint32_t, index in choices */
    OPTION_MODE,            /* uint32_t, octal permission bits */
    OPTION_ANY,             /* text checked by the translator itself; key may hold one '*'; not stored in the state */
    OPTION_IGNORED,         /* accepted, has no effect; `help` says why (logged once at INFO) */
};

struct percent_or_size {
    bool is_percent;
    double percent;
    uint64_t size_bytes;
};

struct option {
    enum option_type type;
    const char *name;
    const char *aliases[4];     /* older or shorter names */
    size_t offset;              /* of the field in the translator's state */
    const char *def;            /* default as text; NULL: zero / NULL */
    int64_t min, max;           /* numbers, sizes and times; max 0 = no upper limit */
    const char *const *choices; /* ENUM: NULL-terminated, compared without case */
    const char *unit;
    const char *help;
    bool live; /* may change while the graph runs */
};

#define OPT_(type_, name_, state_, field_, ...)                                           \
    {                                                                                     \
        .type = (type_), .name = (name_), .offset = offsetof(state_, field_), __VA_ARGS__ \
    }
#define OPT_BOOL(name, state, field, ...)            OPT_(OPTION_BOOL, name, state, field, __VA_ARGS__)
#define OPT_U32(name, state, field, ...)             OPT_(OPTION_U32, name, state, field, __VA_ARGS__)
#define OPT_U64(name, state, field, ...)             OPT_(OPTION_U64, name, state, field, __VA_ARGS__)
#define OPT_I32(name, state, field, ...)             OPT_(OPTION_I32, name, state, field, __VA_ARGS__)
#define OPT_SIZE(name, state, field, ...)            OPT_(OPTION_SIZE, name, state, field, __VA_ARGS__)
#define OPT_PERCENT(name, state, field, ...)         OPT_(OPTION_PERCENT, name, state, field, __VA_ARGS__)
#define OPT_PERCENT_OR_SIZE(name, state, field, ...) OPT_(OPTION_PERCENT_OR_SIZE, name, state, field, __VA_ARGS__)
#define OPT_TIME(name, state, field, ...)            OPT_(OPTION_TIME, name, state, field, __VA_ARGS__)
#define OPT_DOUBLE(name, state, field, ...)          OPT_(OPTION_DOUBLE, name, state, field, __VA_ARGS__)
#define OPT_STR(name, state, field, ...)             OPT_(OPTION_STR, name, state, field, __VA_ARGS__)
#define OPT_PATH(name, state, field, ...)            OPT_(OPTION_PATH, name, state, field, __VA_ARGS__)
#define OPT_ENUM(name, state, field, list, ...)      OPT_(OPTION_ENUM, name, state, field, .choices = (list), __VA_ARGS__)
#define OPT_MODE(name, state, field, ...)            OPT_(OPTION_MODE, name, state, field, __VA_ARGS__)
#define OPT_ANY(name_, ...)                              \
    {                                                    \
        .type = OPTION_ANY, .name = (name_), __VA_ARGS__ \
    }
#define OPT_IGNORED(name_, ...)                              \
    {                                                        \
        .type = OPTION_IGNORED, .name = (name_), __VA_ARGS__ \
    }
#define OPT_END            \
    {                      \
        .type = OPTION_END \
    }

/* The entry that `key` means (name, alias or '*' pattern), or NULL. */
const struct option *option_find(const struct option *table, const char *key);
/* Is `text` a value of this option? 0 or -EINVAL / -ERANGE with a sentence: `"abc" is not a number (option
 * "page-count", 1 to 16)`. Stores into the state when state is not NULL. */
int option_store(const struct option *o, const char *text, void *state, struct error *err);
/* Defaults, then every pair of `given` (text values). Keys the table does not know are left alone: the caller reports
 * them. On failure the state holds defaults or valid values; release it all the same. */
int options_parse(const struct option *table, const struct dict *given, void *state, struct error *err);
/* Changes the live ones to `given` or back to their defaults. *ret_needs_restart is set when a non-live one differs. */
int options_reconfigure(const struct option *table, const struct dict *before, const struct dict *given, void *state,
                        bool *ret_needs_restart, struct error *err);
/* Frees OPTION_STR and OPTION_PATH fields. */
void options_release(const struct option *table, void *state);
/* The value in the state as text (for statedump and help); returns `text`. */
char *option_format(const struct option *o, const void *state, char *text, size_t text_bytes);

int parse_bool(const char *text, bool *ret);
int parse_size(const char *text, uint64_t *ret_bytes);
int parse_time(const char *text, uint32_t *ret_seconds);
