#include "mortarheal/out.h"
#include <stdio.h>

static void indent(const struct out *o)
{
    printf("%*s", (int)o->depth * 2, "");
}

/* Length of the UTF-8 sequence at `s`, 0: it is none. */
static size_t utf8_length(const unsigned char *s)
{
    size_t len = *s < 0x80                 ? 1
                 : *s >= 0xc2 && *s < 0xe0 ? 2
                 : (*s & 0xf0) == 0xe0     ? 3
                 : *s >= 0xf0 && *s < 0xf5 ? 4
                                           : 0;

    for (size_t i = 1; i < len; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    }
    if ((*s == 0xe0 && s[1] < 0xa0) || (*s == 0xed && s[1] > 0x9f) || (*s == 0xf0 && s[1] < 0x90) ||
        (*s == 0xf4 && s[1] > 0x8f))
        return 0; /* too long a form, half of a pair, or no character */
    return len;
}

/* A character of more than one byte, or U+FFFD for a byte that belongs to none (names may hold any). How many bytes of
 * the text it used. */
static size_t put_wide(const char *text)
{
    size_t len = utf8_length((const unsigned char *)text);

    if (len)
        (void)fwrite(text, 1, len, stdout);
    else
        fputs("\xef\xbf\xbd", stdout);
    return len ? len : 1;
}

static void escape_xml(const char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text >= 0x80) {
            text += put_wide(text) - 1;
            continue;
        }
        switch (*text) {
        case '<': fputs("&lt;", stdout); break;
        case '>': fputs("&gt;", stdout); break;
        case '&': fputs("&amp;", stdout); break;
        case '"': fputs("&quot;", stdout); break;
        default:
            if ((unsigned char)*text < 32 && *text != '\t')
                printf("?"); /* XML 1.0 has no way to say it */
            else
                putchar(*text);
        }
    }
}

static void quote_json(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            printf("\\%c", *text);
        else if ((unsigned char)*text >= 0x80)
            text += put_wide(text) - 1;
        else if ((unsigned char)*text < 32)
            printf("\\u%04x", (unsigned char)*text);
        else
            putchar(*text);
    }
    putchar('"');
}

/* What comes before a member: comma, line, name. */
static void begin_member(struct out *o, const char *name)
{
    if (o->has_item[o->depth])
        putchar(',');
    if (o->depth)
        putchar('\n');
    o->has_item[o->depth] = true;
    indent(o);
    if (name) {
        quote_json(name);
        printf(": ");
    }
}

static void go_down(struct out *o)
{
    assert(o->depth + 1 < ARRAY_SIZE(o->has_item));
    o->has_item[++o->depth] = false;
}

static void go_up(struct out *o, char bracket)
{
    bool had = o->has_item[o->depth--];

    if (had) {
        putchar('\n');
        indent(o);
    }
    putchar(bracket);
}

void out_begin(struct out *o, bool is_json)
{
    *o = (struct out) { .is_json = is_json };
    if (is_json) {
        putchar('{');
        go_down(o);
        return;
    }
    printf("<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n");
    out_open(o, "cliOutput");
}

void out_open(struct out *o, const char *name)
{
    if (o->is_json) {
        begin_member(o, name);
        putchar('{');
    } else {
        indent(o);
        printf("<%s>\n", name);
    }
    go_down(o);
}

void out_open_with(struct out *o, const char *name, const char *key, const char *value)
{
    if (o->is_json) {
        out_open(o, NULL);
        out_text(o, key, value);
        return;
    }
    indent(o);
    printf("<%s %s=\"", name, key);
    escape_xml(value);
    printf("\">\n");
    go_down(o);
}

void out_close(struct out *o, const char *name)
{
    if (o->is_json) {
        go_up(o, '}');
        return;
    }
    o->depth--;
    indent(o);
    printf("</%s>\n", name);
}

void out_open_list(struct out *o, const char *name)
{
    if (!o->is_json)
        return;
    begin_member(o, name);
    putchar('[');
    go_down(o);
}

void out_close_list(struct out *o)
{
    if (o->is_json)
        go_up(o, ']');
}

void out_text(struct out *o, const char *name, const char *text)
{
    if (o->is_json) {
        begin_member(o, name);
        quote_json(text);
        return;
    }
    indent(o);
    if (!*text) {
        printf("<%s/>\n", name);
        return;
    }
    printf("<%s>", name);
    escape_xml(text);
    printf("</%s>\n", name);
}

void out_text_with(struct out *o, const char *name, const char *key, const char *value, const char *text)
{
    indent(o);
    printf("<%s %s=\"", name, key);
    escape_xml(value);
    printf("\">");
    escape_xml(text);
    printf("</%s>\n", name);
}

void out_number(struct out *o, const char *name, int64_t number)
{
    if (o->is_json) {
        begin_member(o, name);
        printf("%lld", (long long)number);
        return;
    }
    indent(o);
    printf("<%s>%lld</%s>\n", name, (long long)number, name);
}

void out_end(struct out *o)
{
    if (o->is_json) {
        go_up(o, '}');
        putchar('\n');
    } else {
        out_close(o, "cliOutput");
    }
}
