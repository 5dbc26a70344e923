/* cluster/replicate/heal_data.c - contents of regular files. */
#include "cluster/replicate/heal_internal.h"

FIBER int heal_data(struct heal *h)
{
    heal_class_begin(h, CHANGE_DATA);
    heal_class(h)->outcome = HEAL_LEFT;
    return 0;
}
