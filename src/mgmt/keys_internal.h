/* mgmt/keys_internal.h - the table of keys, in two files for its length. */
#pragma once

#include "mgmt/keys.h"

#define KEY(name_, type_, option_, kind_, ...)                                              \
    {                                                                                       \
        .name = (name_), .type = (type_), .option = (option_), .kind = (kind_), __VA_ARGS__ \
    }

extern const struct volume_key volume_keys_data[], volume_keys_more[];
extern const size_t volume_keys_data_count, volume_keys_more_count;
