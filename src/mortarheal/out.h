/* mortarheal/out.h - XML as GlusterFS's --xml has it, and JSON, on standard output. Both are written as they come: whoever
 * opens an element or object closes it. */
#pragma once

#include "core/base.h"

struct out {
    bool is_json;
    unsigned depth;
    bool has_item[32]; /* per depth, JSON: a comma is due */
};

void out_begin(struct out *o, bool is_json);
/* <name> or "name": { ; name NULL in JSON: an item of a list. */
void out_open(struct out *o, const char *name);
/* <name key="value"> ; JSON: as out_open, with the pair as first member. */
void out_open_with(struct out *o, const char *name, const char *key, const char *value);
void out_close(struct out *o, const char *name);
/* JSON: "name": [ ... ]; XML: nothing. */
void out_open_list(struct out *o, const char *name);
void out_close_list(struct out *o);
void out_text(struct out *o, const char *name, const char *text);
void out_text_with(struct out *o, const char *name, const char *key, const char *value, const char *text);
void out_number(struct out *o, const char *name, int64_t number);
void out_end(struct out *o);
