/* graph/volfile.h - the configuration language of volume files, parsed and printed.
 *
 * The grammar is that of docs/architecture.md's companion, the volume-file reference: sections `volume NAME ...
 * end-volume`, each with one `type`, options and at most one `subvolumes`; '#' comments; quoted strings; children are
 * defined before parents; the last section is the root. Back-ticks are refused. Errors name file, line, what was found
 * and what was expected. Parsing says nothing about whether types and options exist: graph_build does.
 */
#pragma once

#include "core/base.h"
#include "core/error.h"

struct volfile_option {
    char *key, *value;
    unsigned line;
};

struct volfile_section {
    char *name, *type;
    unsigned line, type_line;
    unsigned index; /* position in the file */
    struct volfile_option *options;
    unsigned option_count;
    struct volfile_section **children; /* borrowed from the file */
    unsigned child_count;
};

struct volfile {
    char *path;                        /* for messages */
    struct volfile_section **sections; /* in file order */
    unsigned section_count;
};

#define VOLFILE_MAX_BYTES    (16 * 1024 * 1024)
#define VOLFILE_MAX_SECTIONS 65536

/* `path` is only named in messages. text needs no NUL. 0 and a file (returned), or -EINVAL/-ENOMEM/-EFBIG. */
int volfile_parse(const char *path, const char *text, size_t text_bytes, struct volfile **ret_file, struct error *err);
int volfile_read(const char *path, struct volfile **ret_file, struct error *err);
void volfile_free(struct volfile *file); /* accepts NULL */
DEFINE_SCOPED(volfile_free, struct volfile)
/* Text that parses to the same file. Returned. */
char *volfile_print(const struct volfile *file) MUST_USE;
const struct volfile_section *volfile_find(const struct volfile *file, const char *name); /* NULL: none */
const char *volfile_option(const struct volfile_section *section, const char *key);       /* last one; NULL: none */
