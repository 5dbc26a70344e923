/* cli/text.h - what text and XML share. `v`: a volume of an answer. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* Members of requests and answers: "" or 0 when they are missing. */
static inline const char *text_of(const json_t *o, const char *key)
{
    const char *text = json_string_value(json_object_get(o, key));

    return text ? text : "";
}

static inline long long number_of(const json_t *o, const char *key)
{
    return json_integer_value(json_object_get(o, key));
}

const char *type_text(const json_t *v);  /* "Replicate", "Distributed-Replicate", ... */
const char *state_text(const json_t *v); /* "Created", "Started", "Stopped" */
bool is_arbiter(const json_t *v, size_t brick);
