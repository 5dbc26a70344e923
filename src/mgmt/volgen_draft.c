/* Sections of a volume file, from the bottom to the top. */
#include "core/mem.h"
#include "mgmt/keys.h"
#include "mgmt/volgen_internal.h"
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

int draft_begin(struct draft *d, const struct volume *v)
{
    *d = (struct draft) { .v = v };
    d->f = open_memstream(&d->text, &d->size_bytes);
    return d->f ? 0 : -ENOMEM;
}

char *draft_end(struct draft *d)
{
    bool is_whole = !ferror(d->f) && !d->is_failed;
    char *copy;

    if (fclose(d->f) != 0)
        is_whole = false;
    copy = is_whole ? mem_strdup(d->text) : NULL;
    free(d->text);
    mem_free(d->top);
    mem_free(d->now);
    return copy;
}

/* Words of a volume file end at blanks; quotes keep them together. */
static void print_word(FILE *f, const char *word)
{
    if (*word && !strpbrk(word, " \t\r\n\"\\#")) {
        fputs(word, f);
        return;
    }
    fputc('"', f);
    for (; *word; word++) {
        if (*word == '"' || *word == '\\')
            fputc('\\', f);
        fputc(*word, f);
    }
    fputc('"', f);
}

/* Takes over the name; the section before keeps its own until this one ends. */
static void begin(struct draft *d, char *name, const char *type)
{
    mem_free(d->now);
    d->now = name;
    d->is_failed = d->is_failed || !name;
    fputs("volume ", d->f);
    print_word(d->f, name ? name : "");
    fprintf(d->f, "\n    type %s\n", type);
}

void draft_named(struct draft *d, const char *name, const char *type)
{
    begin(d, mem_strdup(name), type);
}

void draft_section(struct draft *d, const char *short_name, const char *type)
{
    begin(d, mem_printf("%s-%s", d->v->name, short_name), type);
}

void draft_option(struct draft *d, const char *key, const char *value)
{
    fprintf(d->f, "    option %s ", key);
    print_word(d->f, value);
    fputc('\n', d->f);
}

void draft_number(struct draft *d, const char *key, unsigned value)
{
    fprintf(d->f, "    option %s %u\n", key, value);
}

/* Is an earlier row of this type about the same option, and set? performance.cache-size is one of two names. */
static bool is_said(const struct volume *v, size_t row)
{
    const struct volume_key *key = volume_key_at(row);

    for (size_t i = 0; i < row; i++) {
        const struct volume_key *other = volume_key_at(i);

        if (other->option && strcmp(other->type, key->type) == 0 && strcmp(other->option, key->option) == 0 &&
            volume_option_get(v, other->name))
            return true;
    }
    return false;
}

void draft_keys(struct draft *d, const char *type)
{
    const struct volume_key *key;

    for (size_t i = 0; (key = volume_key_at(i)); i++) {
        const char *value;

        if (!key->option || strcmp(key->type, type) != 0 || is_said(d->v, i))
            continue;
        /* Of NFS servers, which nobody has any more. */
        if (strstr(key->name, ".nfs."))
            continue;
        value = volume_option_get(d->v, key->name);
        if (value || key->written)
            draft_option(d, key->option, value ? value : key->written);
    }
}

void draft_tls(struct draft *d)
{
    static const struct {
        const char *key, *option;
    } rows[] = {
        { "ssl.own-cert", "transport.socket.ssl-own-cert" },
        { "ssl.private-key", "transport.socket.ssl-private-key" },
        { "ssl.ca-list", "transport.socket.ssl-ca-list" },
        { "ssl.crl-path", "transport.socket.ssl-crl-path" },
        { "ssl.certificate-depth", "transport.socket.ssl-cert-depth" },
        { "ssl.cipher-list", "transport.socket.ssl-cipher-list" },
        { "ssl.dh-param", "transport.socket.ssl-dh-param" },
        { "ssl.ec-curve", "transport.socket.ssl-ec-curve" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *value = volume_option_get(d->v, rows[i].key);

        if (value)
            draft_option(d, rows[i].option, value);
    }
}

void draft_over(struct draft *d, const char *list)
{
    if (list)
        fprintf(d->f, "    subvolumes %s\n", list);
    fputs("end-volume\n\n", d->f);
    mem_free(d->top);
    d->top = take(d->now);
}

void draft_leaf(struct draft *d)
{
    draft_over(d, NULL);
}

void draft_over_top(struct draft *d)
{
    fputs("    subvolumes ", d->f);
    print_word(d->f, d->top ? d->top : "");
    fputc('\n', d->f);
    draft_leaf(d);
}

void draft_plain(struct draft *d, const char *short_name, const char *type)
{
    draft_section(d, short_name, type);
    draft_keys(d, type);
    draft_over_top(d);
}

void draft_debug(struct draft *d, const char *place)
{
    static const char *const names[] = { "trace", "error-gen", "delay-gen" };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char key[32], type[32];

        (void)snprintf(key, sizeof(key), "debug.%s", names[i]);
        (void)snprintf(type, sizeof(type), "debug/%s", names[i]);
        if (strcmp(volume_option_value(d->v, key), place) == 0)
            draft_plain(d, names[i], type);
    }
}
