#include "core/env_internal.h"

uint64_t clock_monotonic_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void clock_wall_time(struct timespec *ret)
{
    clock_gettime(CLOCK_REALTIME, ret);
}
