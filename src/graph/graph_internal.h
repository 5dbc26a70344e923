/* What the files of graph/ share. */
#pragma once

#include "graph/graph.h"

/* graph_types.c: the class of this type or alias, or NULL. */
const struct translator_class *class_find(class_list classes, const char *type);
/* For a type without a class: a pass-through class (with a WARNING to log in *ret_advice), or NULL and the sentence that
 * says what to use instead in err. `where` is "FILE:LINE". */
const struct translator_class *class_for_old_type(class_list classes, const char *type, const char *section,
                                                  const char *where, const char **ret_advice, struct error *err);

/* graph_options.c: pairs of the section and of the overrides that match it, as a new dict (returned). Options without a
 * value are left out with a WARNING when `log` is not NULL. */
int options_collect(const struct volfile *file, const struct volfile_section *section, const struct dict *overrides,
                    struct log *log, struct dict **ret_options, struct error *err);
/* Checks keys (WARNING in the log, unless log is NULL) and values (error). */
int options_check(const struct volfile *file, const struct volfile_section *section,
                  const struct translator_class *class, const struct dict *options, struct log *log, struct error *err);
/* Tells the class about the options that it checks itself. */
int options_tell(struct translator *me, const struct dict *options, struct error *err);

/* graph.c */
int translator_new(struct graph *graph, const struct translator_class *class, const char *name,
                   struct translator **children, unsigned child_count, struct translator **ret_translator);
/* Parses me->options into the state and runs init. */
int translator_init(struct translator *me, struct error *err);
