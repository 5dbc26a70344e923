/* cli/text.h - words about volumes that text and XML share. `v`: a volume of an answer. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

const char *type_text(const json_t *v);  /* "Replicate", "Distributed-Replicate", ... */
const char *state_text(const json_t *v); /* "Created", "Started", "Stopped" */
bool is_arbiter(const json_t *v, size_t brick);
