/* sim/classes.h - the translators simulated processes may use: the program's own, simdisk and simindex instead of
 * posix and index, a tap that counts messages, and the saboteur that breaks replication on purpose. */
#pragma once

#include "graph/graph.h"

extern const class_list sim_classes;
extern const struct translator_class saboteur_class, simindex_class, tap_class;
