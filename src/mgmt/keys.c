/* Finding keys and checking values. The sentences are GlusterFS's, since scripts match them. */
#include "mgmt/keys_internal.h"
#include "core/option.h"
#include "graph/nearest.h"
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

static const char *short_name(const char *name)
{
    const char *dot = strchr(name, '.');

    return dot ? dot + 1 : name;
}

const struct volume_key *volume_key_at(size_t i)
{
    if (i < volume_keys_data_count)
        return &volume_keys_data[i];
    i -= volume_keys_data_count;
    return i < volume_keys_more_count ? &volume_keys_more[i] : NULL;
}

const struct volume_key *volume_key_find(const char *name)
{
    const struct volume_key *key, *found = NULL;

    for (size_t i = 0; (key = volume_key_at(i)); i++) {
        if (strcmp(key->name, name) == 0)
            return key;
    }
    if (strchr(name, '.'))
        return NULL;
    for (size_t i = 0; (key = volume_key_at(i)); i++) {
        if (strcmp(short_name(key->name), name) != 0)
            continue;
        if (found && strcmp(found->name, key->name) != 0)
            return NULL;
        if (!found)
            found = key;
    }
    return found;
}

static const char *key_at(const void *arg, unsigned i)
{
    const bool *has_domain = arg;
    const struct volume_key *key = volume_key_at(i);

    if (!key)
        return NULL;
    return *has_domain ? key->name : short_name(key->name);
}

const char *volume_key_nearest(const char *name)
{
    bool has_domain = strchr(name, '.') != NULL;

    return nearest_name(name, key_at, &has_domain);
}

/* What sentences call the key: the translator's name of it. */
static const char *option_of(const struct volume_key *key)
{
    return key->option ? key->option : short_name(key->name);
}

static int check_range(const struct volume_key *key, const char *text, double value, struct error *err)
{
    if (!key->has_range || (value >= (double)key->min && (key->max == 0 || value <= (double)key->max)))
        return 0;
    if (key->max == 0)
        return error_set(err, -ERANGE, "'%s' in 'option %s %s' is smaller than minimum value '%" PRId64 "'", text,
                         option_of(key), text, key->min);
    return error_set(err, -ERANGE, "'%s' in 'option %s %s' is out of range [%" PRId64 " - %" PRId64 "]", text,
                     option_of(key), text, key->min, key->max);
}

static int check_int(const struct volume_key *key, const char *text, struct error *err)
{
    char *end;
    long long value;

    errno = 0;
    value = strtoll(text, &end, 0);
    if (end == text || *end || errno)
        return error_set(err, -EINVAL, "invalid number format \"%s\" in option \"%s\"", text, option_of(key));
    return check_range(key, text, (double)value, err);
}

static int check_percent(const struct volume_key *key, const char *text, struct error *err)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || (*end && strcmp(end, "%") != 0))
        return error_set(err, -EINVAL, "invalid percent format \"%s\" in \"option %s\"", text, option_of(key));
    if (value < 0 || value > 100)
        return error_set(err, -ERANGE, "'%f' in 'option %s %s' is out of range [0 - 100]", value, option_of(key), text);
    return 0;
}

static int check_size(const struct volume_key *key, const char *text, struct error *err)
{
    uint64_t bytes;

    if (parse_size(text, &bytes) < 0)
        return error_set(err, -EINVAL, "invalid size format \"%s\" in option \"%s\"", text, option_of(key));
    return check_range(key, text, (double)bytes, err);
}

static int check_time(const struct volume_key *key, const char *text, struct error *err)
{
    uint32_t seconds;

    if (parse_time(text, &seconds) < 0)
        return error_set(err, -EINVAL, "invalid time format \"%s\" in \"option %s\"", text, option_of(key));
    return check_range(key, text, seconds, err);
}

static int check_bool(const struct volume_key *key, const char *text, struct error *err)
{
    bool value;

    if (parse_bool(text, &value) < 0)
        return error_set(err, -EINVAL, "option %s %s: '%s' is not a valid boolean value", option_of(key), text, text);
    return 0;
}

static int check_words(const struct volume_key *key, const char *text, struct error *err)
{
    size_t length = strlen(text);

    for (const char *word = key->words; length > 0 && (word = strstr(word, text)); word++) {
        bool begins = word == key->words || word[-1] == ' ';

        if (begins && (word[length] == '\0' || word[length] == ','))
            return 0;
    }
    return error_set(err, -EINVAL, "option %s %s: '%s' is not valid (possible options are %s.)", option_of(key), text,
                     text, key->words);
}

/* Addresses, host names and patterns: what stands in one holds letters, digits and the signs of either notation. Which
 * of them exist is not asked here: the name may be known on another node only. */
static int check_addresses(const struct volume_key *key, const char *text, struct error *err)
{
    bool is_good = *text != '\0' && text[strlen(text) - 1] != ',' && *text != ',';

    for (const char *c = text; *c && is_good; c++) {
        is_good = isalnum((unsigned char)*c) || strchr(".:*/,_-!()|[]%", *c);
        if (*c == '*' && c[1] == '.' && (c == text || c[-1] == ','))
            is_good = false; /* "*.example.com": names are compared whole */
    }
    if (!is_good)
        return error_set(err, -EINVAL, "option %s %s: '%s' is not a valid internet-address-list", option_of(key), text,
                         text);
    return 0;
}

static int check_path(const struct volume_key *key, const char *text, struct error *err)
{
    if (*text != '/')
        return error_set(err, -EINVAL, "option %s %s: '%s' is not an absolute path name", option_of(key), text, text);
    return 0;
}

static int check_text(const struct volume_key *key, const char *text, struct error *err)
{
    /* A volume file has no way to say a line's end, and the store none either. */
    if (strchr(text, '\n'))
        return error_set(err, -EINVAL, "option %s: the value holds a newline", option_of(key));
    return 0;
}

int volume_key_check(const struct volume_key *key, const char *text, struct error *err)
{
    int r = check_text(key, text, err);

    if (r < 0)
        return r;
    switch (key->kind) {
    case KEY_BOOL: return check_bool(key, text, err);
    case KEY_INT: return check_int(key, text, err);
    case KEY_SIZE: return check_size(key, text, err);
    case KEY_PERCENT: return check_percent(key, text, err);
    case KEY_PERCENT_OR_SIZE:
        return strchr(text, '%') || !isalpha((unsigned char)text[strlen(text) - (*text != '\0')])
                   ? check_percent(key, text, err)
                   : check_size(key, text, err);
    case KEY_TIME: return check_time(key, text, err);
    case KEY_WORDS: return check_words(key, text, err);
    case KEY_PATH: return check_path(key, text, err);
    case KEY_ADDRESSES: return check_addresses(key, text, err);
    case KEY_TEXT: return 0;
    }
    return 0;
}
