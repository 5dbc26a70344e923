/* sim/classes.h - the translators simulated processes may use: the program's own, simdisk instead of posix, and the
 * saboteur that breaks replication on purpose. */
#pragma once

#include "graph/graph.h"

extern const class_list sim_classes;
extern const struct translator_class saboteur_class;
