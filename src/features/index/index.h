/* features/index/index.h - which inodes of this brick may need healing, kept in directories that heal can list. */
#pragma once

#include "graph/translator.h"

extern const struct translator_class index_class;
