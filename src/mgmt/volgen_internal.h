/* mgmt/volgen_internal.h - writing sections one on top of the other. */
#pragma once

#include "mgmt/volgen.h"
#include <stdio.h>

/* A volume file in the making. Failures of the stream are found at the end. */
struct draft {
    FILE *f;
    char *text;
    size_t size_bytes;
    const struct volume *v;
    char *top;      /* the section written last; the next one stands on it */
    char *now;      /* the one being written */
    bool is_failed; /* no memory for a name */
};

/* 0 or -ENOMEM. */
int draft_begin(struct draft *d, const struct volume *v);
/* The text. Returned; NULL when something failed. */
char *draft_end(struct draft *d) MUST_USE;

/* A section begins: its name is "V-<short_name>". */
void draft_section(struct draft *d, const char *short_name, const char *type);
void draft_named(struct draft *d, const char *name, const char *type);
void draft_option(struct draft *d, const char *key, const char *value);
void draft_number(struct draft *d, const char *key, unsigned value);
/* What the volume's keys say about this type: what was set, and what is always written. */
void draft_keys(struct draft *d, const char *type);
/* What the volume's keys say of TLS, the same on both sides of a connection. */
void draft_tls(struct draft *d);
/* The section ends, standing on the one written before it (which must be there), on `list`, or on nothing. */
void draft_over_top(struct draft *d);
void draft_over(struct draft *d, const char *list);
void draft_leaf(struct draft *d);
/* A section that has no other options than those of its keys. */
void draft_plain(struct draft *d, const char *short_name, const char *type);
/* The debugging translators that are wanted at `place` ("client", or a section's type without its folder). */
void draft_debug(struct draft *d, const char *place);
