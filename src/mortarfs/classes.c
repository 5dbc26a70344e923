/* The list of all translator classes. One line each, in the order of their folders. */
#include "graph/graph.h"

#define CLASSES(X) X(locks_class)

#define X(name) extern const struct translator_class name;
CLASSES(X)
#undef X

const struct translator_class *const all_classes[] = {
#define X(name) &name,
    CLASSES(X)
#undef X
        NULL,
};
