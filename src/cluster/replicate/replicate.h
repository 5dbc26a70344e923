/* cluster/replicate/replicate.h - the class, for the list of all classes; see replicate.c. */
#pragma once

#include "graph/translator.h"

extern const struct translator_class replicate_class;
