/* Options of a section: gathered from the file and the command line, checked against the class. */
#include "graph/graph_internal.h"
#include "core/mem.h"
#include "graph/nearest.h"
#include <fnmatch.h>
#include <stdio.h>

/* "PATTERN.KEY" of --xlator-option: the pattern ends at the first dot. */
static const char *override_key(const char *entry, const char *name)
{
    const char *dot = strchr(entry, '.');
    char pattern[256];

    if (!dot || (size_t)(dot - entry) >= sizeof(pattern))
        return NULL;
    memcpy(pattern, entry, (size_t)(dot - entry));
    pattern[dot - entry] = '\0';
    return fnmatch(pattern, name, FNM_NOESCAPE) == 0 ? dot + 1 : NULL;
}

static int apply_overrides(const char *name, const struct dict *overrides, struct dict *options)
{
    const struct dict_value *value;
    const char *entry, *text;
    size_t at = 0;

    while (dict_next(overrides, &at, &entry, &value)) {
        const char *key = override_key(entry, name);
        if (!key || dict_get_str(overrides, entry, &text) < 0)
            continue;
        int r = dict_set_str(options, key, text);
        if (r < 0)
            return r;
    }
    return 0;
}

int options_collect(const struct volfile *file, const struct volfile_section *section, const struct dict *overrides,
                    struct log *log, struct dict **ret_options, struct error *err)
{
    SCOPED(dict_unref) struct dict *options = dict_new();
    int r = options ? 0 : -ENOMEM;

    for (unsigned i = 0; r == 0 && i < section->option_count; i++) {
        const struct volfile_option *o = &section->options[i];
        if (o->value[0] != '\0') {
            r = dict_set_str(options, o->key, o->value);
            continue;
        }
        if (log)
            LOG(log, LOG_WARNING, section->name, "option-without-value",
                "%s:%u: option \"%s\" has an empty value and is left out", file->path, o->line, o->key);
    }
    if (r == 0)
        r = apply_overrides(section->name, overrides, options);
    if (r < 0)
        return error_set(err, r, "%s:%u: options of section \"%.64s\": %s", file->path, section->line, section->name,
                         strerror(-r));
    *ret_options = take(options);
    return 0;
}

/* Names and then aliases of the table. */
static const char *option_at(const void *arg, unsigned i)
{
    for (const struct option *o = arg; o && o->type != OPTION_END; o++) {
        if (i-- == 0)
            return o->name;
        for (unsigned k = 0; k < ARRAY_SIZE(o->aliases) && o->aliases[k]; k++) {
            if (i-- == 0)
                return o->aliases[k];
        }
    }
    return NULL;
}

static unsigned line_of(const struct volfile_section *section, const char *key)
{
    for (unsigned i = section->option_count; i-- > 0;) {
        if (strcmp(section->options[i].key, key) == 0)
            return section->options[i].line;
    }
    return 0; /* from the command line */
}

/* "FILE:LINE", or the command line when no line of the file has the option. */
static void describe_place(const struct volfile *file, unsigned line, char *text, size_t text_bytes)
{
    if (line)
        snprintf(text, text_bytes, "%.200s:%u", file->path, line);
    else
        snprintf(text, text_bytes, "command line");
}

int options_check(const struct volfile *file, const struct volfile_section *section,
                  const struct translator_class *class, const struct dict *options, struct log *log, struct error *err)
{
    static const struct option none[] = { OPT_END };
    const struct option *table = class->options ? class->options : none;
    const struct dict_value *value;
    const char *key, *text;
    size_t at = 0;
    char where[224];

    while (dict_next(options, &at, &key, &value)) {
        const struct option *o = option_find(table, key);
        describe_place(file, line_of(section, key), where, sizeof(where));
        if (o && o->type == OPTION_IGNORED && log)
            LOG(log, LOG_INFO, section->name, "option-ignored", "%s: option \"%s\" has no effect%s%s", where, key,
                o->help ? ": " : "", o->help ? o->help : "");
        if (!o && log) {
            const char *near = nearest_name(key, option_at, table);
            LOG(log, LOG_WARNING, section->name, "unknown-option",
                "%s: option \"%s\" is not known to %s and is left out%s%s%s", where, key, section->type,
                near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "");
        }
        if (!o || o->type == OPTION_IGNORED || o->type == OPTION_ANY || dict_get_str(options, key, &text) < 0)
            continue;
        int r = option_store(o, text, NULL, err);
        if (r < 0)
            return error_prefix(err, r, "%s: section \"%.64s\"", where, section->name);
    }
    return 0;
}

int options_tell(struct translator *me, const struct dict *options, struct error *err)
{
    const struct dict_value *value;
    const char *key, *text;
    size_t at = 0;

    if (!me->class->any_option)
        return 0;
    while (dict_next(options, &at, &key, &value)) {
        const struct option *o = option_find(me->class->options, key);
        if (!o || o->type != OPTION_ANY || dict_get_str(options, key, &text) < 0)
            continue;
        int r = me->class->any_option(me, key, text, err);
        if (r < 0)
            return r;
    }
    return 0;
}
