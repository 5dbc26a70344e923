/* The grammar of volume files: tokens, sections, printer. Behaviour of the real parser is kept where it accepts. */
#include "graph/volfile.h"
#include "core/mem.h"
#include "graph/nearest.h"
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum token_kind {
    TOKEN_END,
    TOKEN_WORD,
    TOKEN_STRING,
    TOKEN_VOLUME,
    TOKEN_TYPE,
    TOKEN_OPTION,
    TOKEN_SUBVOLUMES,
    TOKEN_END_VOLUME,
};

struct parser {
    const char *at, *end;
    unsigned line;
    struct volfile *file;
    struct error *err;
    /* The token in hand. */
    enum token_kind kind;
    char *text; /* without quotes and escapes; NULL at the end of the file */
    unsigned token_line;
    /* Names of sections: open addressing, positions + 1, 0 = empty. */
    unsigned *names;
    size_t name_slots;
    unsigned section_room;
};

static const struct {
    const char *word;
    enum token_kind kind;
} keywords[] = {
    { "volume", TOKEN_VOLUME },         { "type", TOKEN_TYPE },
    { "option", TOKEN_OPTION },         { "subvolumes", TOKEN_SUBVOLUMES },
    { "subvolumeS", TOKEN_SUBVOLUMES }, { "end-volume", TOKEN_END_VOLUME },
};

/* ---- tokens ---- */

#define FAIL(p, line_, ...) fail_at((p), (line_), -EINVAL, __VA_ARGS__)

static int fail_at(struct parser *p, unsigned line, int code, const char *fmt, ...) PRINTF_LIKE(4, 5);

static int fail_at(struct parser *p, unsigned line, int code, const char *fmt, ...)
{
    char text[sizeof(p->err->text)];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    return error_set(p->err, code, "%s:%u: %s", p->file->path, line, text);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool ends_word(char c)
{
    return is_blank(c) || c == '"' || c == '\\';
}

/* Blanks, comments and stray back-slashes. A '#' counts only here: at the start of a token. */
static void skip_blanks(struct parser *p)
{
    for (; p->at < p->end; p->at++) {
        if (*p->at == '#') {
            while (p->at < p->end && *p->at != '\n')
                p->at++;
            if (p->at == p->end)
                return;
        }
        if (*p->at == '\n')
            p->line++;
        else if (!is_blank(*p->at) && *p->at != '\\')
            return;
    }
}

static enum token_kind keyword_of(const char *word)
{
    for (unsigned i = 0; i < ARRAY_SIZE(keywords); i++) {
        if (strcmp(word, keywords[i].word) == 0)
            return keywords[i].kind;
    }
    return TOKEN_WORD;
}

static int read_word(struct parser *p)
{
    const char *start = p->at;

    while (p->at < p->end && !ends_word(*p->at))
        p->at++;
    p->text = mem_strndup(start, (size_t)(p->at - start));
    if (!p->text)
        return -ENOMEM;
    p->kind = keyword_of(p->text);
    return 0;
}

/* A raw newline inside a string is dropped; \c is the character c. */
static int read_string(struct parser *p)
{
    const char *scan = ++p->at;

    while (scan < p->end && *scan != '"')
        scan += *scan == '\\' && scan + 1 < p->end ? 2 : 1;
    if (scan >= p->end)
        return FAIL(p, p->token_line, "found a string without an end, expected a closing '\"'");
    char *out = p->text = mem_alloc((size_t)(scan - p->at) + 1);
    if (!out)
        return -ENOMEM;
    for (; p->at < scan; p->at++) {
        if (*p->at == '\\')
            p->at++;
        if (*p->at == '\n')
            p->line++;
        else
            *out++ = *p->at;
    }
    *out = '\0';
    p->at++;
    p->kind = TOKEN_STRING;
    return 0;
}

static int next(struct parser *p)
{
    mem_free(p->text);
    p->text = NULL;
    skip_blanks(p);
    p->token_line = p->line;
    if (p->at == p->end) {
        p->kind = TOKEN_END;
        return 0;
    }
    int r = *p->at == '"' ? read_string(p) : read_word(p);
    return r == -ENOMEM ? error_set(p->err, r, "%s: out of memory", p->file->path) : r;
}

/* "found X, expected Y" with a hint when X is a keyword in the wrong case. */
static int unexpected(struct parser *p, const char *expected)
{
    if (p->kind == TOKEN_END)
        return FAIL(p, p->token_line, "found the end of the file, expected %s", expected);
    for (unsigned i = 0; p->kind == TOKEN_WORD && i < ARRAY_SIZE(keywords); i++) {
        if (strcasecmp(p->text, keywords[i].word) == 0)
            return FAIL(p, p->token_line, "found \"%.64s\", expected %s (keywords are written in lower case)", p->text,
                        expected);
    }
    return FAIL(p, p->token_line, "found %s\"%.64s\", expected %s", p->kind == TOKEN_STRING ? "the string " : "",
                p->text, expected);
}

static bool is_name(const struct parser *p)
{
    return p->kind == TOKEN_WORD || p->kind == TOKEN_STRING;
}

/* The word or string in hand becomes *ret_text; the next token is read. */
static int take_name(struct parser *p, const char *expected, char **ret_text)
{
    if (!is_name(p) && p->kind != TOKEN_END)
        return FAIL(p, p->token_line, "found the keyword \"%s\", expected %s (a keyword used as a word goes in quotes)",
                    p->text, expected);
    if (!is_name(p))
        return unexpected(p, expected);
    *ret_text = take(p->text);
    return next(p);
}

/* ---- names of sections ---- */

static size_t hash_text(const char *text)
{
    uint64_t h = 0xcbf29ce484222325u;

    for (; *text; text++)
        h = (h ^ (uint8_t)*text) * 0x100000001b3u;
    return (size_t)(h ^ h >> 32);
}

static unsigned *name_slot(struct parser *p, const char *name)
{
    size_t mask = p->name_slots - 1;
    size_t i = hash_text(name) & mask;

    while (p->names[i] && strcmp(p->file->sections[p->names[i] - 1]->name, name) != 0)
        i = (i + 1) & mask;
    return &p->names[i];
}

static int make_room(struct parser *p)
{
    struct volfile *file = p->file;
    unsigned room = p->section_room ? p->section_room * 2 : 64;

    if (file->section_count < p->section_room)
        return 0;
    struct volfile_section **sections = mem_realloc(file->sections, room * sizeof(struct volfile_section *));
    if (!sections)
        return -ENOMEM;
    file->sections = sections;
    unsigned *names = mem_array((size_t)room * 2, sizeof(*names));
    if (!names)
        return -ENOMEM;
    mem_free(p->names);
    p->names = names;
    p->name_slots = (size_t)room * 2;
    p->section_room = room;
    for (unsigned i = 0; i < file->section_count; i++)
        *name_slot(p, file->sections[i]->name) = i + 1;
    return 0;
}

/* ---- sections ---- */

static const char *name_at(const void *arg, unsigned i)
{
    const struct volfile *file = arg;

    return i < file->section_count ? file->sections[i]->name : NULL;
}

static int parse_option(struct parser *p, struct volfile_section *s)
{
    struct volfile_option option = { .line = p->token_line };

    if ((s->option_count & (s->option_count - 1)) == 0) { /* grows at powers of two */
        unsigned room = s->option_count ? s->option_count * 2 : 1;
        struct volfile_option *options = mem_realloc(s->options, room * sizeof(*options));
        if (!options)
            return -ENOMEM;
        s->options = options;
    }
    int r = next(p);
    if (r == 0)
        r = take_name(p, "the name of an option", &option.key);
    if (r == 0)
        r = take_name(p, "the value of the option", &option.value);
    if (r < 0) {
        mem_free(option.key);
        mem_free(option.value);
        return r;
    }
    s->options[s->option_count++] = option;
    return 0;
}

static int add_child(struct parser *p, struct volfile_section *s)
{
    unsigned position = *name_slot(p, p->text);

    if (position == 0) {
        const char *near = nearest_name(p->text, name_at, p->file);
        return FAIL(p, p->token_line,
                    "found subvolume \"%.64s\", expected the name of a section above this one%s%.64s%s", p->text,
                    near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "");
    }
    struct volfile_section *child = p->file->sections[position - 1];
    for (unsigned i = 0; i < s->child_count; i++) {
        if (s->children[i] == child)
            return FAIL(p, p->token_line, "found subvolume \"%.64s\" twice, expected each one once", p->text);
    }
    struct volfile_section **children =
        mem_realloc(s->children, (s->child_count + 1) * sizeof(struct volfile_section *));
    if (!children)
        return -ENOMEM;
    s->children = children;
    s->children[s->child_count++] = child;
    return next(p);
}

static int parse_subvolumes(struct parser *p, struct volfile_section *s)
{
    if (s->child_count)
        return FAIL(p, p->token_line,
                    "found a second \"subvolumes\" in section \"%.64s\", expected one list of all names", s->name);
    int r = next(p);
    if (r < 0)
        return r;
    if (!is_name(p))
        return unexpected(p, "the name of at least one subvolume");
    while (r == 0 && is_name(p))
        r = add_child(p, s);
    return r;
}

static int parse_body(struct parser *p, struct volfile_section *s)
{
    int r = 0;

    while (r == 0 && p->kind != TOKEN_END_VOLUME) {
        if (p->kind == TOKEN_OPTION)
            r = parse_option(p, s);
        else if (p->kind == TOKEN_SUBVOLUMES)
            r = parse_subvolumes(p, s);
        else if (p->kind == TOKEN_TYPE)
            r = FAIL(p, p->token_line, "found a second \"type\" in section \"%.64s\", expected one", s->name);
        else
            r = unexpected(p, "\"option\", \"subvolumes\" or \"end-volume\"");
    }
    if (r == 0 && s->option_count == 0 && s->child_count == 0)
        return FAIL(p, p->token_line,
                    "found \"end-volume\", expected at least one \"option\" or \"subvolumes\" in section \"%.64s\"",
                    s->name);
    return r;
}

static int parse_heading(struct parser *p, struct volfile_section *s)
{
    int r = take_name(p, "the name of the section", &s->name);

    if (r < 0)
        return r;
    if (s->name[0] == '\0')
        return FAIL(p, s->line, "found an empty name, expected the name of the section");
    unsigned same = *name_slot(p, s->name);
    if (same)
        return FAIL(p, s->line, "found a second section \"%.64s\", expected another name (the first is on line %u)",
                    s->name, p->file->sections[same - 1]->line);
    if (p->kind != TOKEN_TYPE)
        return unexpected(p, "\"type\" directly after the name of the section");
    s->type_line = p->token_line;
    r = next(p);
    if (r < 0)
        return r;
    return take_name(p, "the type of the section", &s->type);
}

static void section_free(struct volfile_section *s)
{
    for (unsigned i = 0; i < s->option_count; i++) {
        mem_free(s->options[i].key);
        mem_free(s->options[i].value);
    }
    mem_free(s->options);
    mem_free(s->children);
    mem_free(s->name);
    mem_free(s->type);
    mem_free(s);
}

static int parse_section(struct parser *p)
{
    struct volfile *file = p->file;

    if (p->kind != TOKEN_VOLUME)
        return unexpected(p, "\"volume\"");
    if (file->section_count == VOLFILE_MAX_SECTIONS)
        return fail_at(p, p->token_line, -EFBIG, "found more than %u sections, expected at most that many",
                       VOLFILE_MAX_SECTIONS);
    int r = make_room(p);
    if (r < 0)
        return r;
    struct volfile_section *s = NEW(struct volfile_section);
    if (!s)
        return -ENOMEM;
    s->line = p->token_line;
    s->index = file->section_count;
    r = next(p);
    if (r == 0)
        r = parse_heading(p, s);
    if (r == 0)
        r = parse_body(p, s);
    if (r < 0) {
        section_free(s);
        return r;
    }
    *name_slot(p, s->name) = file->section_count + 1;
    file->sections[file->section_count++] = s;
    return next(p);
}

/* What must hold for the text as a whole, before there are tokens. */
static int check_text(struct parser *p, const char *text, size_t text_bytes)
{
    unsigned line = 1;

    for (size_t i = 0; i < text_bytes; i++) {
        if (text[i] == '`' && (i == 0 || text[i - 1] != '\\'))
            return FAIL(p, line,
                        "found a back-tick, expected none: commands in volume files are not run, write what "
                        "they print instead");
        if (text[i] == '\0')
            return FAIL(p, line, "found a NUL byte, expected text");
        if (text[i] == '\n')
            line++;
    }
    return 0;
}

static int parse_file(struct parser *p, const char *text, size_t text_bytes)
{
    int r = check_text(p, text, text_bytes);

    if (r == 0)
        r = next(p);
    if (r == 0 && p->kind == TOKEN_END)
        r = unexpected(p, "\"volume\" (the file is empty)");
    while (r == 0 && p->kind != TOKEN_END)
        r = parse_section(p);
    return r;
}

int volfile_parse(const char *path, const char *text, size_t text_bytes, struct volfile **ret_file, struct error *err)
{
    if (text_bytes > VOLFILE_MAX_BYTES)
        return error_set(err, -EFBIG, "%s: is %zu bytes long, volume files have at most %d", path, text_bytes,
                         VOLFILE_MAX_BYTES);
    SCOPED(volfile_free) struct volfile *file = NEW(struct volfile);
    if (file)
        file->path = mem_strdup(path);
    if (!file || !file->path)
        return error_set(err, -ENOMEM, "%s: out of memory", path);
    struct error own;
    struct parser p = { .at = text, .end = text + text_bytes, .line = 1, .file = file, .err = &own };
    int r = parse_file(&p, text, text_bytes);
    mem_free(p.text);
    mem_free(p.names);
    if (r == -ENOMEM)
        return error_set(err, r, "%s: out of memory", path);
    if (r < 0)
        return error_set(err, r, "%s", own.text);
    *ret_file = take(file);
    return 0;
}

/* ---- files ---- */

static int read_all(int fd, char *text, size_t size_bytes, size_t *ret_bytes)
{
    size_t have = 0;

    while (have < size_bytes) {
        ssize_t n = read(fd, text + have, size_bytes - have);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        have += (size_t)n;
    }
    *ret_bytes = have;
    return 0;
}

int volfile_read(const char *path, struct volfile **ret_file, struct error *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        int r = -errno;
        return error_set(err, r, "%s: cannot be opened: %s", path, strerror(-r));
    }
    int r = fstat(fd, &st) < 0 ? -errno : 0;
    if (r == 0 && S_ISDIR(st.st_mode))
        r = -EISDIR;
    size_t text_bytes = 0;
    /* One byte more than allowed, so that a file that is too long is seen; works for pipes as well. */
    size_t room = r == 0 && S_ISREG(st.st_mode) && st.st_size < VOLFILE_MAX_BYTES ? (size_t)st.st_size + 1
                                                                                  : VOLFILE_MAX_BYTES + 1;
    SCOPED_FREE char *text = r == 0 ? mem_alloc(room) : NULL;
    if (r == 0)
        r = text ? read_all(fd, text, room, &text_bytes) : -ENOMEM;
    close(fd);
    if (r < 0)
        return error_set(err, r, "%s: cannot be read: %s", path, strerror(-r));
    return volfile_parse(path, text, text_bytes, ret_file, err);
}

void volfile_free(struct volfile *file)
{
    if (!file)
        return;
    for (unsigned i = 0; i < file->section_count; i++)
        section_free(file->sections[i]);
    mem_free(file->sections);
    mem_free(file->path);
    mem_free(file);
}

const struct volfile_section *volfile_find(const struct volfile *file, const char *name)
{
    for (unsigned i = 0; i < file->section_count; i++) {
        if (strcmp(file->sections[i]->name, name) == 0)
            return file->sections[i];
    }
    return NULL;
}

const char *volfile_option(const struct volfile_section *section, const char *key)
{
    for (unsigned i = section->option_count; i-- > 0;) {
        if (strcmp(section->options[i].key, key) == 0)
            return section->options[i].value;
    }
    return NULL;
}

/* ---- printer ---- */

static bool needs_quotes(const char *text)
{
    if (!*text || *text == '#' || keyword_of(text) != TOKEN_WORD)
        return true;
    for (; *text; text++) {
        if (ends_word(*text) || *text == '`')
            return true;
    }
    return false;
}

static void print_word(FILE *out, const char *text)
{
    if (!needs_quotes(text)) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\' || *text == '`')
            fputc('\\', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

static void print_section(FILE *out, const struct volfile_section *s)
{
    fputs("volume ", out);
    print_word(out, s->name);
    fputs("\n    type ", out);
    print_word(out, s->type);
    for (unsigned i = 0; i < s->option_count; i++) {
        fputs("\n    option ", out);
        print_word(out, s->options[i].key);
        fputc(' ', out);
        print_word(out, s->options[i].value);
    }
    if (s->child_count)
        fputs("\n    subvolumes", out);
    for (unsigned i = 0; i < s->child_count; i++) {
        fputc(' ', out);
        print_word(out, s->children[i]->name);
    }
    fputs("\nend-volume\n", out);
}

char *volfile_print(const struct volfile *file)
{
    char *text = NULL;
    size_t text_bytes = 0;
    FILE *out = open_memstream(&text, &text_bytes);

    if (!out)
        return NULL;
    for (unsigned i = 0; i < file->section_count; i++) {
        if (i)
            fputc('\n', out);
        print_section(out, file->sections[i]);
    }
    char *copy = fclose(out) == 0 ? mem_strndup(text, text_bytes) : NULL;
    free(text);
    return copy;
}
