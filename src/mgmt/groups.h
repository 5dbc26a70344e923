/* mgmt/groups.h - named groups of volume options: "virt", "metadata-cache", ... */
#pragma once

#include "core/base.h"

/* Lines key=value of a group that comes with us; NULL: none of that name. */
const char *group_text(const char *name);
