/* mortarheal/args.h - the command line of mortar-heal. */
#pragma once

#include "core/error.h"
#include "mortarfs/cmdline.h"

enum verb {
    VERB_INDEX, /* no word: heal what the indices list */
    VERB_FULL,
    VERB_STOP,
    VERB_INFO,
    VERB_SUMMARY,
    VERB_SPLIT_BRAIN,
    VERB_STATISTICS,
    VERB_COUNT,
    VERB_STATUS,
    VERB_WATCH,
    VERB_SOURCE_BRICK,
    VERB_BIGGER_FILE,
    VERB_LATEST_MTIME,
    VERB_MARK_BRICK,
};

enum format { FORMAT_TEXT, FORMAT_XML, FORMAT_JSON };

struct args {
    struct cmdline c; /* where the volume file comes from; what else mortarfs takes stays as it is */
    char *socket;     /* of the heal daemon */
    enum verb verb;
    enum format format;
    bool is_long; /* say what each entry needs */
    bool wants_help, wants_version;
    char *brick;     /* HOST:PATH */
    char *file;      /* path in the volume, or gfid:UUID */
    uint32_t wait_s; /* for bricks that do not answer */
};

/* 0, or -EINVAL with a sentence. Release in any case. */
int args_parse(struct args *a, int argc, char **argv, struct error *err);
void args_release(struct args *a);
void args_print_help(void);
