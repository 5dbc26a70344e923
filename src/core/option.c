/* core/option.c - from text to typed values and back, by the tables. */
#include "core/option.h"
#include "core/mem.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

/* ---- plain values ---- */

int parse_bool(const char *text, bool *ret)
{
    static const char *const yes[] = { "1", "on", "yes", "true", "enable" };
    static const char *const no[] = { "0", "off", "no", "false", "disable" };

    for (size_t i = 0; i < ARRAY_SIZE(yes); i++) {
        if (strcasecmp(text, yes[i]) == 0) {
            *ret = true;
            return 0;
        }
        if (strcasecmp(text, no[i]) == 0) {
            *ret = false;
            return 0;
        }
    }
    return -EINVAL;
}

/* A whole number as C writes them (decimal, 0x hex, 0 octal), optional sign, nothing before it. *ret_end is where it
 * ends. -ERANGE past 64 bits. */
static int scan_integer(const char *text, bool *ret_is_negative, uint64_t *ret, const char **ret_end)
{
    bool is_negative = text[0] == '-';
    const char *digits = text + (text[0] == '-' || text[0] == '+');

    if (!isdigit((unsigned char)digits[0]))
        return -EINVAL;
    char *end;
    errno = 0;
    unsigned long long v = strtoull(digits, &end, 0);
    if (errno == ERANGE)
        return -ERANGE;
    *ret_is_negative = is_negative && v != 0;
    *ret = v;
    *ret_end = end;
    return 0;
}

/* Decimal number with an optional fraction, no sign, no exponent. */
static int scan_fraction(const char *text, double *ret, const char **ret_end)
{
    const char *p = text;
    size_t digits = 0;

    for (; isdigit((unsigned char)*p); p++)
        digits++;
    if (*p == '.')
        for (p++; isdigit((unsigned char)*p); p++)
            digits++;
    if (digits == 0 || p - text > 63)
        return -EINVAL;
    char copy[64];
    memcpy(copy, text, (size_t)(p - text));
    copy[p - text] = '\0';
    *ret = strtod(copy, NULL);
    *ret_end = p;
    return 0;
}

int parse_size(const char *text, uint64_t *ret_bytes)
{
    static const struct {
        const char *suffix;
        unsigned shift;
    } units[] = { { "", 0 }, { "B", 0 }, { "KB", 10 }, { "MB", 20 }, { "GB", 30 }, { "TB", 40 }, { "PB", 50 } };
    const char *end;
    double number;

    if (scan_fraction(text, &number, &end) < 0)
        return -EINVAL;
    for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
        if (strcasecmp(end, units[i].suffix) != 0)
            continue;
        bool is_whole = memchr(text, '.', (size_t)(end - text)) == NULL;
        uint64_t unit = (uint64_t)1 << units[i].shift;
        if (is_whole) { /* exact: a double has 53 bits */
            errno = 0;
            unsigned long long whole = strtoull(text, NULL, 10);
            if (errno == ERANGE || __builtin_mul_overflow((uint64_t)whole, unit, ret_bytes))
                return -ERANGE;
            return 0;
        }
        double bytes = number * (double)unit;
        if (bytes >= 18446744073709551616.0)
            return -ERANGE;
        *ret_bytes = (uint64_t)bytes;
        return 0;
    }
    return -EINVAL;
}

int parse_time(const char *text, uint32_t *ret_seconds)
{
    static const struct {
        const char *suffix;
        uint32_t seconds;
    } units[] = { { "", 1 },      { "s", 1 },     { "sec", 1 },      { "m", 60 },     { "min", 60 },   { "h", 3600 },
                  { "hr", 3600 }, { "d", 86400 }, { "days", 86400 }, { "w", 604800 }, { "wk", 604800 } };
    bool is_negative;
    uint64_t number;
    const char *end;
    int r = scan_integer(text, &is_negative, &number, &end);

    if (r < 0)
        return r;
    for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
        if (strcmp(end, units[i].suffix) != 0)
            continue;
        uint64_t seconds;
        if (is_negative || __builtin_mul_overflow(number, units[i].seconds, &seconds) || seconds > UINT32_MAX)
            return -ERANGE;
        *ret_seconds = (uint32_t)seconds;
        return 0;
    }
    return -EINVAL;
}

/* ---- the table ---- */

/* A key with one '*' stands for any text in its place. */
static bool name_matches(const char *name, const char *key)
{
    const char *star = strchr(name, '*');

    if (!star)
        return strcmp(name, key) == 0;
    size_t before = (size_t)(star - name);
    size_t after = strlen(star + 1);
    size_t len = strlen(key);
    return len > before + after && memcmp(key, name, before) == 0 && strcmp(key + len - after, star + 1) == 0;
}

const struct option *option_find(const struct option *table, const char *key)
{
    const struct option *pattern = NULL;

    if (!table)
        return NULL;
    for (const struct option *o = table; o->type != OPTION_END; o++) {
        if (strcmp(o->name, key) == 0)
            return o;
        for (size_t i = 0; i < ARRAY_SIZE(o->aliases) && o->aliases[i]; i++)
            if (strcmp(o->aliases[i], key) == 0)
                return o;
        if (!pattern && strchr(o->name, '*') && name_matches(o->name, key))
            pattern = o;
        for (size_t i = 0; !pattern && i < ARRAY_SIZE(o->aliases) && o->aliases[i]; i++)
            if (strchr(o->aliases[i], '*') && name_matches(o->aliases[i], key))
                pattern = o;
    }
    return pattern;
}

/* ---- messages: what it is not, and what would be accepted ---- */

/* ", 1 to 16" or ", at least 1" or nothing. */
static const char *range_text(const struct option *o, char *text, size_t text_bytes)
{
    const char *unit = o->unit ? o->unit : "";
    const char *space = o->unit ? " " : "";

    text[0] = '\0';
    if (o->max != 0)
        snprintf(text, text_bytes, ", %" PRId64 " to %" PRId64 "%s%s", o->min, o->max, space, unit);
    else if (o->min != 0)
        snprintf(text, text_bytes, ", at least %" PRId64 "%s%s", o->min, space, unit);
    return text;
}

static int refuse(const struct option *o, const char *text, const char *what, struct error *err)
{
    char range[96];

    return error_set(err, -EINVAL, "\"%s\" is not %s (option \"%s\"%s)", text, what, o->name,
                     range_text(o, range, sizeof(range)));
}

static int refuse_range(const struct option *o, const char *text, struct error *err)
{
    char range[96];

    range_text(o, range, sizeof(range));
    return error_set(err, -ERANGE, "\"%s\" is out of range (option \"%s\"%s)", text, o->name, range);
}

static int refuse_percent(const struct option *o, const char *text, const char *or_size, int code, struct error *err)
{
    if (code == -ERANGE)
        return error_set(err, code, "\"%s\" is out of range (option \"%s\", 0 to 100 percent)", text, o->name);
    return error_set(err, code, "\"%s\" is not a percentage%s (option \"%s\", 0 to 100, \"%%\" may follow%s)", text,
                     or_size, o->name, or_size[0] ? ", else bytes or KB, MB, GB, TB, PB" : "");
}

static int refuse_choice(const struct option *o, const char *text, struct error *err)
{
    char list[256] = "";
    size_t at = 0;

    for (const char *const *c = o->choices; *c && at < sizeof(list); c++) {
        int n = snprintf(list + at, sizeof(list) - at, "%s%s", at ? ", " : "", *c);
        at += n > 0 ? (size_t)n : 0;
    }
    return error_set(err, -EINVAL, "\"%s\" is not one of: %s (option \"%s\")", text, list, o->name);
}

/* ---- one value by type: checks, and writes to `field` unless it is NULL ---- */

static bool in_range_u64(const struct option *o, uint64_t v)
{
    return (o->min <= 0 || v >= (uint64_t)o->min) && (o->max == 0 || (o->max > 0 && v <= (uint64_t)o->max));
}

static int store_unsigned(const struct option *o, const char *text, uint64_t limit, void *field, struct error *err)
{
    bool is_negative;
    uint64_t v;
    const char *end;
    int r = scan_integer(text, &is_negative, &v, &end);

    if (r == -EINVAL || (r == 0 && *end != '\0'))
        return refuse(o, text, "a number", err);
    if (r < 0 || is_negative || v > limit || !in_range_u64(o, v))
        return refuse_range(o, text, err);
    if (field && o->type == OPTION_U32)
        *(uint32_t *)field = (uint32_t)v;
    else if (field)
        *(uint64_t *)field = v;
    return 0;
}

static int store_i32(const struct option *o, const char *text, void *field, struct error *err)
{
    bool is_negative;
    uint64_t u;
    const char *end;
    int r = scan_integer(text, &is_negative, &u, &end);

    if (r == -EINVAL || (r == 0 && *end != '\0'))
        return refuse(o, text, "a number", err);
    if (r < 0 || u > (uint64_t)INT32_MAX + (is_negative ? 1 : 0))
        return refuse_range(o, text, err);
    int64_t v = is_negative ? -(int64_t)u : (int64_t)u;
    bool has_range = o->min != 0 || o->max != 0;
    if (has_range && (v < o->min || (o->max != 0 && v > o->max)))
        return refuse_range(o, text, err);
    if (field)
        *(int32_t *)field = (int32_t)v;
    return 0;
}

static int store_size(const struct option *o, const char *text, void *field, struct error *err)
{
    uint64_t v;
    int r = parse_size(text, &v);

    if (r == -EINVAL)
        return refuse(o, text, "a size in bytes or with KB, MB, GB, TB, PB", err);
    if (r < 0 || !in_range_u64(o, v))
        return refuse_range(o, text, err);
    if (field)
        *(uint64_t *)field = v;
    return 0;
}

static int store_time(const struct option *o, const char *text, void *field, struct error *err)
{
    uint32_t v;
    int r = parse_time(text, &v);

    if (r == -EINVAL)
        return refuse(o, text, "a time in seconds or with s, m, h, d, w", err);
    if (r < 0 || !in_range_u64(o, v))
        return refuse_range(o, text, err);
    if (field)
        *(uint32_t *)field = v;
    return 0;
}

/* 0, -EINVAL, or -ERANGE past 100. *ret_has_sign: a '%' followed. */
static int parse_percent(const char *text, double *ret, bool *ret_has_sign)
{
    const char *end;
    double v;

    if (scan_fraction(text, &v, &end) < 0)
        return -EINVAL;
    *ret_has_sign = *end == '%';
    if (end[*ret_has_sign] != '\0')
        return -EINVAL;
    *ret = v;
    return v > 100 ? -ERANGE : 0;
}

static int store_percent(const struct option *o, const char *text, void *field, struct error *err)
{
    bool has_sign;
    double v;
    int r = parse_percent(text, &v, &has_sign);

    if (r < 0)
        return refuse_percent(o, text, "", r, err);
    if ((o->min > 0 && v < (double)o->min) || (o->max > 0 && v > (double)o->max))
        return refuse_range(o, text, err);
    if (field)
        *(double *)field = v;
    return 0;
}

static int store_percent_or_size(const struct option *o, const char *text, void *field, struct error *err)
{
    struct percent_or_size v = { .is_percent = false };
    bool has_sign = false;
    int r = parse_percent(text, &v.percent, &has_sign);

    if (has_sign) {
        if (r < 0)
            return refuse_percent(o, text, " or a size", r, err);
        v.is_percent = true;
    } else {
        v.percent = 0;
        r = parse_size(text, &v.size_bytes);
        if (r == -EINVAL)
            return refuse_percent(o, text, " or a size", r, err);
        if (r < 0)
            return refuse_range(o, text, err);
    }
    if (field)
        *(struct percent_or_size *)field = v;
    return 0;
}

static int store_double(const struct option *o, const char *text, void *field, struct error *err)
{
    bool is_negative = text[0] == '-';
    const char *end;
    double v;

    if (scan_fraction(text + is_negative, &v, &end) < 0 || *end != '\0')
        return refuse(o, text, "a decimal number", err);
    if (is_negative)
        v = -v;
    bool has_range = o->min != 0 || o->max != 0;
    if (has_range && (v < (double)o->min || (o->max != 0 && v > (double)o->max)))
        return refuse_range(o, text, err);
    if (field)
        *(double *)field = v;
    return 0;
}

static int store_enum(const struct option *o, const char *text, void *field, struct error *err)
{
    for (uint32_t i = 0; o->choices[i]; i++) {
        if (strcasecmp(text, o->choices[i]) != 0)
            continue;
        if (field)
            *(uint32_t *)field = i;
        return 0;
    }
    return refuse_choice(o, text, err);
}

static int store_mode(const struct option *o, const char *text, void *field, struct error *err)
{
    uint32_t v = 0;

    if (text[0] == '\0')
        return refuse(o, text, "an octal mode such as 0755", err);
    for (const char *p = text; *p; p++) {
        if (*p < '0' || *p > '7')
            return refuse(o, text, "an octal mode such as 0755", err);
        v = v * 8 + (uint32_t)(*p - '0');
        if (v > 07777)
            return error_set(err, -ERANGE, "\"%s\" is out of range (option \"%s\", 0000 to 7777 octal)", text, o->name);
    }
    if (!in_range_u64(o, v))
        return error_set(err, -ERANGE, "\"%s\" is out of range (option \"%s\", %04o to %04o octal)", text, o->name,
                         (unsigned)o->min, o->max ? (unsigned)o->max : 07777U);
    if (field)
        *(uint32_t *)field = v;
    return 0;
}

static int store_text(const struct option *o, const char *text, void *field, struct error *err)
{
    if (o->type == OPTION_PATH && text[0] != '/')
        return error_set(err, -EINVAL, "\"%s\" is not an absolute path (option \"%s\")", text, o->name);
    if (!field)
        return 0;
    char *copy = mem_strdup(text);
    if (!copy)
        return error_set(err, -ENOMEM, "out of memory (option \"%s\")", o->name);
    char **to = field;
    mem_free(*to);
    *to = copy;
    return 0;
}

static int store_bool(const struct option *o, const char *text, void *field, struct error *err)
{
    bool v;

    if (parse_bool(text, &v) < 0)
        return refuse(o, text, "on or off", err);
    if (field)
        *(bool *)field = v;
    return 0;
}

int option_store(const struct option *o, const char *text, void *state, struct error *err)
{
    void *field = state ? (char *)state + o->offset : NULL;

    switch (o->type) {
    case OPTION_END:
    case OPTION_ANY:
    case OPTION_IGNORED: return 0;
    case OPTION_BOOL: return store_bool(o, text, field, err);
    case OPTION_U32: return store_unsigned(o, text, UINT32_MAX, field, err);
    case OPTION_U64: return store_unsigned(o, text, UINT64_MAX, field, err);
    case OPTION_I32: return store_i32(o, text, field, err);
    case OPTION_SIZE: return store_size(o, text, field, err);
    case OPTION_PERCENT: return store_percent(o, text, field, err);
    case OPTION_PERCENT_OR_SIZE: return store_percent_or_size(o, text, field, err);
    case OPTION_TIME: return store_time(o, text, field, err);
    case OPTION_DOUBLE: return store_double(o, text, field, err);
    case OPTION_STR:
    case OPTION_PATH: return store_text(o, text, field, err);
    case OPTION_ENUM: return store_enum(o, text, field, err);
    case OPTION_MODE: return store_mode(o, text, field, err);
    }
    return error_set(err, -EINVAL, "option \"%s\" has no known type", o->name);
}

/* ---- whole tables ---- */

static size_t field_bytes(enum option_type type)
{
    switch (type) {
    case OPTION_BOOL: return sizeof(bool);
    case OPTION_U32:
    case OPTION_I32:
    case OPTION_TIME:
    case OPTION_ENUM:
    case OPTION_MODE: return sizeof(uint32_t);
    case OPTION_U64:
    case OPTION_SIZE: return sizeof(uint64_t);
    case OPTION_PERCENT:
    case OPTION_DOUBLE: return sizeof(double);
    case OPTION_PERCENT_OR_SIZE: return sizeof(struct percent_or_size);
    case OPTION_STR:
    case OPTION_PATH: return sizeof(char *);
    case OPTION_END:
    case OPTION_ANY:
    case OPTION_IGNORED: break;
    }
    return 0;
}

static int store_default(const struct option *o, void *state, struct error *err)
{
    if (o->def)
        return option_store(o, o->def, state, err);
    if (o->type == OPTION_STR || o->type == OPTION_PATH) {
        char **field = (char **)(void *)((char *)state + o->offset);
        mem_free(*field);
    }
    memset((char *)state + o->offset, 0, field_bytes(o->type));
    return 0;
}

int options_parse(const struct option *table, const struct dict *given, void *state, struct error *err)
{
    if (!table)
        return 0;
    for (const struct option *o = table; o->type != OPTION_END; o++) {
        int r = o->def ? option_store(o, o->def, state, err) : 0;
        if (r < 0)
            return r;
    }
    size_t at = 0;
    const char *key, *text;
    const struct dict_value *value;
    while (dict_next(given, &at, &key, &value)) {
        const struct option *o = option_find(table, key);
        if (!o)
            continue;
        int r = dict_get_str(given, key, &text);
        if (r < 0)
            return error_set(err, r, "the value of option \"%s\" is not text", key);
        r = option_store(o, text, state, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* The text that decides option o: the last pair that means it, else its default (may be NULL). -EINVAL: no text. */
static int effective_text(const struct option *table, const struct option *o, const struct dict *given,
                          const char **ret_text)
{
    size_t at = 0;
    const char *key;
    const struct dict_value *value;

    *ret_text = o->def;
    while (dict_next(given, &at, &key, &value)) {
        if (option_find(table, key) != o)
            continue;
        int r = dict_get_str(given, key, ret_text);
        if (r < 0)
            return r;
    }
    return 0;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

int options_reconfigure(const struct option *table, const struct dict *before, const struct dict *given, void *state,
                        bool *ret_needs_restart, struct error *err)
{
    bool needs_restart = false;
    const char *old_text, *text;

    if (!table) {
        *ret_needs_restart = false;
        return 0;
    }
    for (const struct option *o = table; o->type != OPTION_END; o++) { /* check all before changing any */
        int r = effective_text(table, o, given, &text);
        if (r < 0)
            return error_set(err, r, "the value of option \"%s\" is not text", o->name);
        if (text && (r = option_store(o, text, NULL, err)) < 0)
            return r;
        if (o->live || o->type == OPTION_ANY || o->type == OPTION_IGNORED)
            continue;
        r = effective_text(table, o, before, &old_text);
        needs_restart |= r < 0 || !same_text(old_text, text);
    }
    for (const struct option *o = table; o->type != OPTION_END; o++) {
        if (!o->live || field_bytes(o->type) == 0)
            continue;
        (void)effective_text(table, o, given, &text); /* it was text a moment ago */
        int r = text ? option_store(o, text, state, err) : store_default(o, state, err);
        if (r < 0)
            return r;
    }
    *ret_needs_restart = needs_restart;
    return 0;
}

void options_release(const struct option *table, void *state)
{
    if (!table || !state)
        return;
    for (const struct option *o = table; o->type != OPTION_END; o++) {
        if (o->type != OPTION_STR && o->type != OPTION_PATH)
            continue;
        char **field = (char **)(void *)((char *)state + o->offset);
        mem_free(*field);
        *field = NULL;
    }
}

static void format_percent_or_size(const struct percent_or_size *v, char *text, size_t text_bytes)
{
    if (v->is_percent)
        snprintf(text, text_bytes, "%g%%", v->percent);
    else
        snprintf(text, text_bytes, "%" PRIu64, v->size_bytes);
}

char *option_format(const struct option *o, const void *state, char *text, size_t text_bytes)
{
    const void *f = (const char *)state + o->offset;

    assert(text_bytes > 0);
    text[0] = '\0';
    switch (o->type) {
    case OPTION_END:
    case OPTION_ANY:
    case OPTION_IGNORED: break;
    case OPTION_BOOL: snprintf(text, text_bytes, "%s", *(const bool *)f ? "on" : "off"); break;
    case OPTION_U32:
    case OPTION_TIME: snprintf(text, text_bytes, "%" PRIu32, *(const uint32_t *)f); break;
    case OPTION_I32: snprintf(text, text_bytes, "%" PRId32, *(const int32_t *)f); break;
    case OPTION_U64:
    case OPTION_SIZE: snprintf(text, text_bytes, "%" PRIu64, *(const uint64_t *)f); break;
    case OPTION_PERCENT: snprintf(text, text_bytes, "%g%%", *(const double *)f); break;
    case OPTION_DOUBLE: snprintf(text, text_bytes, "%g", *(const double *)f); break;
    case OPTION_PERCENT_OR_SIZE: format_percent_or_size(f, text, text_bytes); break;
    case OPTION_MODE: snprintf(text, text_bytes, "%04" PRIo32, *(const uint32_t *)f); break;
    case OPTION_ENUM: snprintf(text, text_bytes, "%s", o->choices[*(const uint32_t *)f]); break;
    case OPTION_STR:
    case OPTION_PATH: {
        const char *const *s = f;
        snprintf(text, text_bytes, "%s", *s ? *s : "");
        break;
    }
    }
    return text;
}
